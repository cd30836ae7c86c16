/*
 * memory - allocations with and without Sluice, in turn
 *
 * Small allocations come from slabs and should cost less than the driver's own. For large ones the
 * library asks the daemon, creates and maps. No other demands compete. The first rounds are not
 * counted: the first allocation of a process also pays for its start.
 */
#include "bench.h"

#include "worker.h"

#include <stdlib.h>

#define WARM_UP      2
#define SMALL_ROUNDS 15
#define SMALL_COUNT  4096
#define SMALL_BYTES  4096
#define LARGE_ROUNDS 8
#define LARGE_COUNT  4 /* per round */

struct both {
	struct bench_worker native, with;
	struct bench_samples *a, *b, *c, *d;
};

/* Amortised: the time of a whole round by its allocations. */
static void measure_small(struct both *both, enum bench_verb verb, const char *variant,
	enum bench_row_id row, enum bench_row_id native_row, enum bench_row_id ratio_row)
{
	struct bench_reply reply;
	double native, with;

	both->a->count = both->b->count = 0;
	for (int i = 0; i < WARM_UP + SMALL_ROUNDS; i++) {
		bench_worker_do(&both->native, verb, SMALL_COUNT, SMALL_BYTES, &reply);
		if (i >= WARM_UP)
			bench_samples_add(both->a, reply.sample[0]);
		bench_worker_do(&both->with, verb, SMALL_COUNT, SMALL_BYTES, &reply);
		if (i >= WARM_UP)
			bench_samples_add(both->b, reply.sample[0]);
	}
	native = (double)bench_quantile(both->a, 500) / SMALL_COUNT / (double)SL_US;
	with = (double)bench_quantile(both->b, 500) / SMALL_COUNT / (double)SL_US;
	bench_emit(row, variant, with);
	bench_emit(native_row, variant, native);
	bench_emit_against(ratio_row, variant, with / native, native_row, BENCH_COMPUTED);
}

static void add_large(const struct bench_reply *reply, struct bench_samples *alloc,
	struct bench_samples *free_samples)
{
	for (uint32_t i = 0; i + 1 < reply->count; i += 2) {
		bench_samples_add(alloc, reply->sample[i]);
		bench_samples_add(free_samples, reply->sample[i + 1]);
	}
}

static double median_us(struct bench_samples *samples)
{
	return (double)bench_quantile(samples, 500) / (double)SL_US;
}

static void measure_large(
	struct both *both, uint64_t bytes, const char *variant, double ratio_budget)
{
	struct bench_reply reply;
	double native, with, free_native, free_with;

	both->a->count = both->b->count = both->c->count = both->d->count = 0;
	for (int i = 0; i < WARM_UP + LARGE_ROUNDS; i++) {
		bench_worker_do(
			&both->native, BENCH_DO_LARGE, LARGE_COUNT, bytes, &reply);
		if (i >= WARM_UP)
			add_large(&reply, both->a, both->c);
		bench_worker_do(&both->with, BENCH_DO_LARGE, LARGE_COUNT, bytes, &reply);
		if (i >= WARM_UP)
			add_large(&reply, both->b, both->d);
	}
	native = median_us(both->a);
	with = median_us(both->b);
	bench_emit_against(
		BENCH_LARGE, variant, with, BENCH_LARGE_NATIVE, 1.25 * native + 50);
	bench_emit(BENCH_LARGE_NATIVE, variant, native);
	free_native = median_us(both->c);
	free_with = median_us(both->d);
	bench_emit(BENCH_LARGE_FREE, variant, free_with);
	bench_emit(BENCH_LARGE_FREE_NATIVE, variant, free_native);
	bench_emit_against(BENCH_LARGE_RATIO, variant,
		(with + free_with) / (native + free_native), BENCH_LARGE_NATIVE,
		ratio_budget);
}

int bench_part_memory(int argc, char **argv)
{
	struct bench_reply reply;
	struct both both = {
		.a = bench_samples_new(),
		.b = bench_samples_new(),
		.c = bench_samples_new(),
		.d = bench_samples_new(),
	};

	bench_worker_start(&both.native, NULL);
	bench_worker_start(&both.with, "bench-memory");
	bench_worker_do(&both.native, BENCH_DO_CONTEXT, 0, 0, &reply);
	bench_worker_do(&both.with, BENCH_DO_CONTEXT, 0, 0, &reply);
	measure_small(&both, BENCH_DO_SMALL_PAIR, "pair", BENCH_SMALL, BENCH_SMALL_NATIVE,
		BENCH_SMALL_RATIO);
	measure_small(&both, BENCH_DO_SMALL_BATCH, "batch", BENCH_SMALL,
		BENCH_SMALL_NATIVE, BENCH_SMALL_RATIO);
	measure_small(&both, BENCH_DO_ASYNC_PAIR, NULL, BENCH_ASYNC, BENCH_ASYNC_NATIVE,
		BENCH_ASYNC_RATIO);
	measure_large(&both, 64 * SL_MIB, "64MiB", 4);
	measure_large(&both, SL_GIB, "1GiB", BENCH_NONE);
	bench_worker_stop(&both.native);
	bench_worker_stop(&both.with);
	free(both.a);
	free(both.b);
	free(both.c);
	free(both.d);
	return 0;
}

/* --- heavy ---------------------------------------------------------------------------------- */

#define HEAVY_COUNT 1000000
#define HEAVY_ALIVE 2000
#define HEAVY_S     90

static double heavy_s(const char *sluice_name)
{
	struct bench_worker worker;
	struct bench_reply reply;

	bench_worker_start(&worker, sluice_name);
	bench_worker_do(&worker, BENCH_DO_CONTEXT, 0, 0, &reply);
	bench_worker_send(&worker, BENCH_DO_HEAVY, HEAVY_COUNT, HEAVY_ALIVE);
	bench_worker_wait(&worker, &reply, HEAVY_S);
	bench_worker_stop(&worker);
	return (double)reply.sample[0] / (double)SL_S;
}

int bench_part_heavy(int argc, char **argv)
{
	double native = heavy_s(NULL), with = heavy_s("bench-heavy");

	bench_emit(BENCH_HEAVY, NULL, with);
	bench_emit(BENCH_HEAVY_NATIVE, NULL, native);
	bench_emit_against(
		BENCH_HEAVY_RATIO, NULL, with / native, BENCH_HEAVY_NATIVE, BENCH_NONE);
	return 0;
}
