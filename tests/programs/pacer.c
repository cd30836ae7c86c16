/*
 * pacer - keeps a GPU busy with kernels of one length, and tells how much of its time it got
 *
 * With its rivals it starts when a file appears. A kernel counts once it has ended, so what was
 * only queued does not.
 */
#include "prog.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct work {
	CUcontext context;
	CUfunction spin;
	uint64_t ms, us, blocks, queue, pause_us;
	uint64_t kernels, longest_ms; /* between two that ended */
};

static void *work(void *argument)
{
	struct work *w = argument;
	uint64_t ns = w->us * 1000 / w->blocks, end_ms = prog_now_ms() + w->ms, last;
	void *args[] = {&ns};
	CUstream stream;

	PROG_MUST(cuCtxSetCurrent(w->context));
	PROG_MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	last = prog_now_ms();
	for (;;) {
		uint64_t now;

		for (uint64_t i = 0; i < w->queue; i++)
			PROG_MUST(cuLaunchKernel(w->spin, (unsigned int)w->blocks, 1, 1,
				1, 1, 1, 0, stream, args, NULL));
		PROG_MUST(cuStreamSynchronize(stream));
		now = prog_now_ms();
		if (now - last > w->longest_ms)
			w->longest_ms = now - last;
		last = now;
		if (now >= end_ms)
			return NULL;
		w->kernels += w->queue;
		if (w->pause_us)
			usleep((useconds_t)w->pause_us);
	}
}

int main(int argc, char **argv)
{
	struct work one = {.ms = 5000, .us = 1000, .blocks = 1, .queue = 1};
	uint64_t threads = 1, kernels = 0, longest = 0;
	const char *go = NULL;
	const struct prog_option options[] = {
		{"ms", PROG_NUMBER, &one.ms, "time to run"},
		{"us", PROG_NUMBER, &one.us, "length of a kernel"},
		{"blocks", PROG_NUMBER, &one.blocks, "blocks of a kernel"},
		{"queue", PROG_NUMBER, &one.queue, "kernels until it waits for them"},
		{"pause-us", PROG_NUMBER, &one.pause_us, "pause after that"},
		{"threads", PROG_NUMBER, &threads, "threads, 8 at most"},
		{"go", PROG_TEXT, &go, "begin when there is such a file"},
	};
	struct work works[8];
	pthread_t thread[8];

	prog_options(argc, argv, "Keeps a GPU busy.", options,
		sizeof(options) / sizeof(options[0]));
	if (!threads || threads > 8 || !one.blocks || !one.queue)
		return PROG_USAGE;
	one.context = prog_context(0);
	one.spin = prog_kernel(prog_kernels(), "prog_spin");
	prog_say("{\"event\":\"started\"}");
	prog_rest(60000, go);
	for (uint64_t i = 0; i < threads; i++) {
		works[i] = one;
		if (pthread_create(&thread[i], NULL, work, &works[i]))
			return PROG_USAGE;
	}
	for (uint64_t i = 0; i < threads; i++) {
		pthread_join(thread[i], NULL);
		kernels += works[i].kernels;
		if (works[i].longest_ms > longest)
			longest = works[i].longest_ms;
	}
	prog_say("{\"event\":\"end\",\"kernels\":%llu,\"gpu_us\":%llu,\"longest_ms\":%"
		 "llu}",
		(unsigned long long)kernels, (unsigned long long)(kernels * one.us),
		(unsigned long long)longest);
	return PROG_OK;
}
