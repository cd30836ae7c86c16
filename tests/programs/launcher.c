/*
 * launcher - several threads launch, copy and set memory as fast as they can
 *
 * Each thread owns a word and a stream; every launch adds one to the word, so that lost, doubled or
 * reordered work shows in the final count. It prints its rate and the longest time that one call
 * took, which show the effect of a gate that closes and opens under load.
 */
#include "prog.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct worker {
	pthread_t thread;
	CUcontext context;
	CUfunction step;
	const char *until;
	uint64_t stop_ms, launches, longest_ns;
	uint32_t result;
	bool wrong;
};

/* Drains now and then, and checks that the word is as far as it must be. */
static void check(struct worker *w, CUstream stream, CUdeviceptr word)
{
	uint32_t seen = 0;

	PROG_MUST(cuMemcpyDtoHAsync_v2(&seen, word, sizeof(seen), stream));
	PROG_MUST(cuStreamSynchronize(stream));
	if (seen != (uint32_t)w->launches)
		w->wrong = true;
	w->result = seen;
}

static bool over(const struct worker *w)
{
	return prog_now_ms() >= w->stop_ms || (w->until && access(w->until, F_OK) == 0);
}

static void *work(void *argument)
{
	struct worker *w = argument;
	CUdeviceptr word;
	CUstream stream;
	uint32_t one = 1;
	void *args[] = {&word, &one, &one};

	PROG_MUST(cuCtxSetCurrent(w->context));
	PROG_MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	PROG_MUST(cuMemAlloc_v2(&word, sizeof(uint32_t)));
	PROG_MUST(cuMemsetD32Async(word, 0, 1, stream));
	while (!over(w) && !w->wrong) {
		for (int i = 0; i < 64; i++) {
			uint64_t start_ns = prog_now_ns(), took_ns;

			PROG_MUST(prog_launch(w->step, 1, stream, args));
			took_ns = prog_now_ns() - start_ns;
			if (took_ns > w->longest_ns)
				w->longest_ns = took_ns;
			w->launches++;
		}
		check(w, stream, word);
	}
	PROG_MUST(cuStreamDestroy_v2(stream));
	PROG_MUST(cuMemFree_v2(word));
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t threads = 4, ms = 1000, launches = 0, longest_ns = 0;
	const char *until = NULL;
	const struct prog_option options[] = {
		{"threads", PROG_NUMBER, &threads, "threads, 64 at most"},
		{"ms", PROG_NUMBER, &ms, "time to run"},
		{"until", PROG_TEXT, &until, "or until there is such a file"},
	};
	struct worker workers[64] = {0};
	bool wrong = false;
	CUcontext context;
	CUmodule module;

	prog_options(argc, argv, "Launches under load.", options,
		sizeof(options) / sizeof(options[0]));
	if (!threads || threads > 64)
		return PROG_USAGE;
	context = prog_context(0);
	module = prog_kernels();
	prog_say("{\"event\":\"started\"}");
	for (uint64_t i = 0; i < threads; i++) {
		workers[i].context = context;
		workers[i].until = until;
		workers[i].step = prog_kernel(module, "prog_step");
		workers[i].stop_ms = prog_now_ms() + ms;
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			return PROG_USAGE;
	}
	for (uint64_t i = 0; i < threads; i++) {
		pthread_join(workers[i].thread, NULL);
		launches += workers[i].launches;
		wrong |= workers[i].wrong;
		if (workers[i].longest_ns > longest_ns)
			longest_ns = workers[i].longest_ns;
	}
	prog_say("{\"event\":\"end\",\"launches\":%llu,\"longest_us\":%llu,\"wrong\":%d}",
		(unsigned long long)launches, (unsigned long long)(longest_ns / 1000),
		wrong);
	return wrong ? PROG_WRONG : PROG_OK;
}
