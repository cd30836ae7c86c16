/*
 * threads - many threads and many contexts at once
 *
 * threads streams MS: 64 threads allocate, launch, capture and free on their own default streams.
 *
 * threads comers COUNT [MS]: at least COUNT threads start, submit and end, for at least MS.
 *
 * threads contexts: 32 contexts, each made, used and ended in a thread of its own. Meanwhile the
 * primary context is reset again and again, and one more context works all the time.
 *
 * Each thread counts in a word of its own, so that lost, doubled and misplaced work shows.
 */
#include "prog.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM_THREADS = 64, CONTEXTS = 32, COMERS_AT_ONCE = 16 };

static CUcontext context;
static CUfunction step;
static uint64_t stop_ms;
static int stop, wrong;
static uint64_t work_done;

/* The variants whose stream 0 is the thread's own. */
static __typeof__(&cuLaunchKernel) launch_pt;
static __typeof__(&cuMemcpyDtoHAsync_v2) copy_pt;
static __typeof__(&cuStreamSynchronize) synchronize_pt;
static __typeof__(&cuMemsetD32Async) set_pt;
static __typeof__(&cuMemcpyHtoD_v2) write_pt;

static void *per_thread(const char *symbol)
{
	CUdriverProcAddressQueryResult status;
	void *function = NULL;

	PROG_MUST(cuGetProcAddress_v2(symbol, &function, 12000,
		CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status));
	return function;
}

static void find_per_thread(void)
{
	*(void **)&launch_pt = per_thread("cuLaunchKernel");
	*(void **)&copy_pt = per_thread("cuMemcpyDtoHAsync");
	*(void **)&synchronize_pt = per_thread("cuStreamSynchronize");
	*(void **)&set_pt = per_thread("cuMemsetD32Async");
	*(void **)&write_pt = per_thread("cuMemcpyHtoD");
}

static void is_wrong(const char *what, uint64_t want, uint64_t got)
{
	prog_say("{\"error\":\"%s\",\"want\":%llu,\"got\":%llu}", what,
		(unsigned long long)want, (unsigned long long)got);
	__atomic_store_n(&wrong, 1, __ATOMIC_RELAXED);
}

/* Three steps captured on a stream of our own, launched once. */
static void capture(CUdeviceptr word)
{
	uint32_t one = 1;
	void *args[] = {&word, &one, &one};
	CUstream stream;
	CUgraph graph;
	CUgraphExec exec;

	PROG_MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	PROG_MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	for (int i = 0; i < 3; i++)
		PROG_MUST(prog_launch(step, 1, stream, args));
	PROG_MUST(cuStreamEndCapture(stream, &graph));
	PROG_MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
	PROG_MUST(cuGraphLaunch(exec, stream));
	PROG_MUST(cuStreamSynchronize(stream));
	PROG_MUST(cuGraphExecDestroy(exec));
	PROG_MUST(cuGraphDestroy(graph));
	PROG_MUST(cuStreamDestroy_v2(stream));
}

static void round_of_streams(void)
{
	uint32_t one = 1, seen = 0, start = 5;
	CUdeviceptr word;
	void *args[] = {&word, &one, &one};

	PROG_MUST(cuMemAlloc_v2(&word, 4096));
	PROG_MUST(write_pt(word, &start, sizeof(start)));
	for (int i = 0; i < 4; i++)
		PROG_MUST(launch_pt(step, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
	PROG_MUST(synchronize_pt(NULL));
	capture(word);
	PROG_MUST(copy_pt(&seen, word, sizeof(seen), NULL));
	PROG_MUST(synchronize_pt(NULL));
	if (seen != start + 4 + 3)
		is_wrong("steps", start + 4 + 3, seen);
	PROG_MUST(cuMemFree_v2(word));
	__atomic_fetch_add(&work_done, 1, __ATOMIC_RELAXED);
}

static void *in_streams(void *arg)
{
	PROG_MUST(cuCtxSetCurrent(context));
	do {
		round_of_streams();
	} while (prog_now_ms() < stop_ms && !__atomic_load_n(&wrong, __ATOMIC_RELAXED));
	return arg;
}

static void start(CUcontext in)
{
	CUmodule module;

	context = in;
	find_per_thread();
	module = prog_kernels();
	step = prog_kernel(module, "prog_step");
}

static int streams(uint64_t ms)
{
	pthread_t threads[STREAM_THREADS];

	start(prog_context(0));
	stop_ms = prog_now_ms() + ms;
	for (int i = 0; i < STREAM_THREADS; i++)
		if (pthread_create(&threads[i], NULL, in_streams, NULL))
			return PROG_USAGE;
	for (int i = 0; i < STREAM_THREADS; i++)
		pthread_join(threads[i], NULL);
	return PROG_OK;
}

static void *one_comer(void *arg)
{
	uint32_t seen = 0;
	CUdeviceptr word;

	PROG_MUST(cuCtxSetCurrent(context));
	PROG_MUST(cuMemAlloc_v2(&word, 4096));
	PROG_MUST(set_pt(word, 7, 1, NULL));
	PROG_MUST(copy_pt(&seen, word, sizeof(seen), NULL));
	PROG_MUST(synchronize_pt(NULL));
	if (seen != 7)
		is_wrong("set", 7, seen);
	PROG_MUST(cuMemFree_v2(word));
	__atomic_fetch_add(&work_done, 1, __ATOMIC_RELAXED);
	return arg;
}

static int comers(uint64_t count, uint64_t ms)
{
	pthread_t threads[COMERS_AT_ONCE];

	start(prog_context(0));
	stop_ms = prog_now_ms() + ms;
	for (uint64_t done = 0; done < count || prog_now_ms() < stop_ms;
		done += COMERS_AT_ONCE) {
		for (int i = 0; i < COMERS_AT_ONCE; i++)
			if (pthread_create(&threads[i], NULL, one_comer, NULL))
				return PROG_USAGE;
		for (int i = 0; i < COMERS_AT_ONCE; i++)
			pthread_join(threads[i], NULL);
	}
	return PROG_OK;
}

/* Made, pushed, popped and ended here; its memory must be its own. */
static void *one_context(void *arg)
{
	uint32_t mark = (uint32_t)(uintptr_t)arg, seen = 0;
	CUcontext own, popped = NULL;
	CUdeviceptr at, left;

	PROG_MUST(cuCtxCreate_v2(&own, 0, 0));
	PROG_MUST(cuMemAlloc_v2(&at, 1 << 16));
	PROG_MUST(cuMemAlloc_v2(&left, 1 << 20));
	for (int i = 0; i < 8; i++) {
		PROG_MUST(cuCtxPopCurrent_v2(&popped));
		if (popped != own)
			is_wrong("popped", (uintptr_t)own, (uintptr_t)popped);
		PROG_MUST(cuCtxPushCurrent_v2(own));
		PROG_MUST(cuMemsetD32_v2(at, mark + (uint32_t)i, 64));
		PROG_MUST(cuMemcpyDtoH_v2(&seen, at, sizeof(seen)));
		if (seen != mark + (uint32_t)i)
			is_wrong("mark", mark + (uint32_t)i, seen);
	}
	PROG_MUST(cuMemFree_v2(at));
	/* The other allocation goes with its context. */
	PROG_MUST(cuCtxDestroy_v2(own));
	__atomic_fetch_add(&work_done, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void *in_another_context(void *arg)
{
	PROG_MUST(cuCtxSetCurrent(context));
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		round_of_streams();
	return arg;
}

static void *resets(void *arg)
{
	CUcontext primary;
	CUdeviceptr at;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		PROG_MUST(cuDevicePrimaryCtxRetain(&primary, 0));
		PROG_MUST(cuCtxSetCurrent(primary));
		PROG_MUST(cuMemAlloc_v2(&at, 8 << 20));
		PROG_MUST(cuMemsetD8_v2(at, 1, 8 << 20));
		PROG_MUST(cuDevicePrimaryCtxReset_v2(0));
		PROG_MUST(cuCtxSetCurrent(NULL));
		PROG_MUST(cuDevicePrimaryCtxRelease_v2(0));
		__atomic_fetch_add(&work_done, 1, __ATOMIC_RELAXED);
	}
	return arg;
}

static int contexts(void)
{
	pthread_t threads[CONTEXTS], worker, resetter;
	CUcontext other;

	PROG_MUST(cuInit(0));
	PROG_MUST(cuCtxCreate_v2(&other, 0, 0));
	start(other);
	if (pthread_create(&worker, NULL, in_another_context, NULL) ||
		pthread_create(&resetter, NULL, resets, NULL))
		return PROG_USAGE;
	for (int turn = 0; turn < 3; turn++) {
		for (uintptr_t i = 0; i < CONTEXTS; i++)
			if (pthread_create(
				    &threads[i], NULL, one_context, (void *)(i * 100)))
				return PROG_USAGE;
		for (int i = 0; i < CONTEXTS; i++)
			pthread_join(threads[i], NULL);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(worker, NULL);
	pthread_join(resetter, NULL);
	PROG_MUST(cuCtxDestroy_v2(other));
	return PROG_OK;
}

int main(int argc, char **argv)
{
	uint64_t number = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
	const char *mode = argc > 1 ? argv[1] : "";
	int status = PROG_USAGE;

	if (!strcmp(mode, "streams"))
		status = streams(number);
	else if (!strcmp(mode, "comers"))
		status = comers(number, argc > 3 ? strtoull(argv[3], NULL, 10) : 0);
	else if (!strcmp(mode, "contexts"))
		status = contexts();
	prog_say("{\"event\":\"end\",\"rounds\":%llu,\"wrong\":%d}",
		(unsigned long long)work_done, wrong);
	return status ? status : wrong ? PROG_WRONG : PROG_OK;
}
