/*
 * start - what Sluice adds to the start of a process
 *
 * Two workers start the same programs in turn. One of them is inside a workload, so its children
 * inherit the library. The last row is what a user at a prompt sees: `sluice run` in front.
 */
#include "bench.h"

#include "worker.h"

#include <stdlib.h>

#define WARM_UP    1
#define ROUNDS_MIN 6
#define ROUNDS     30
#define SPAN_NS    (10 * SL_S)

static void measure(struct bench_worker *native, struct bench_worker *with,
	enum bench_verb native_verb, enum bench_verb with_verb, enum bench_row_id row,
	const char *variant)
{
	struct bench_samples *a = bench_samples_new(), *b = bench_samples_new();
	struct bench_reply reply;
	sl_ns begin = sl_clock_now();
	double without, added;

	for (int i = 0; bench_more(i, ROUNDS_MIN, ROUNDS, begin, SPAN_NS); i++) {
		bench_worker_do(native, native_verb, 1, 0, &reply);
		if (i >= WARM_UP)
			bench_samples_add(a, reply.sample[0]);
		bench_worker_do(with, with_verb, 1, 0, &reply);
		if (i >= WARM_UP)
			bench_samples_add(b, reply.sample[0]);
	}
	without = (double)bench_quantile(a, 500) / (double)SL_MS;
	added = (double)bench_quantile(b, 500) / (double)SL_MS - without;
	if (variant)
		bench_emit(BENCH_START_NATIVE, variant, without);
	bench_emit(row, NULL, added);
	free(a);
	free(b);
}

int bench_part_start(int argc, char **argv)
{
	struct bench_worker native, with;

	bench_worker_start(&native, NULL);
	bench_worker_start(&with, "bench-start");
	measure(&native, &with, BENCH_DO_START_TRUE, BENCH_DO_START_TRUE,
		BENCH_START_TRUE, "true");
	measure(&native, &with, BENCH_DO_START_INIT, BENCH_DO_START_INIT,
		BENCH_START_INIT, "init");
	measure(&native, &with, BENCH_DO_START_USE, BENCH_DO_START_USE, BENCH_START_USE,
		"context");
	measure(&native, &with, BENCH_DO_START_NAMES, BENCH_DO_START_NAMES,
		BENCH_START_NAMES, "names");
	/* Both by the native worker: `sluice run` registers a workload of its own. */
	measure(&native, &native, BENCH_DO_START_USE, BENCH_DO_START_RUN, BENCH_START_RUN,
		NULL);
	bench_worker_stop(&native);
	bench_worker_stop(&with);
	return 0;
}
