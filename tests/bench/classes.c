/*
 * classes - what a hook of each class adds to a call that does nothing
 *
 * As launch.c, for the other classes of hooks.def. `bench classes` starts itself in front of the
 * stub driver and times the same few calls alternately through the hooks and past them. One thread
 * suffices: no hook of these classes writes a word that threads share. Each figure is of a pair of
 * calls, where one makes what the other ends.
 */
#include "stub.h"

#include "driver.h"

#include <stdlib.h>
#include <string.h>

#define NAME    "bench-classes"
#define BATCHES 300
#define WARM_UP 20

/* The timed calls, hooked or not. */
#define CALLS(X)                   \
	X(cuDriverGetVersion)      \
	X(cuStreamQuery)           \
	X(cuMemGetInfo_v2)         \
	X(cuPointerGetAttribute)   \
	X(cuCtxSetLimit)           \
	X(cuStreamBeginCapture_v2) \
	X(cuStreamEndCapture)      \
	X(cuGetProcAddress_v2)     \
	X(cuMemAlloc_v2)           \
	X(cuMemFree_v2)            \
	X(cuMemAllocAsync)         \
	X(cuMemFreeAsync)          \
	X(cuArrayCreate_v2)        \
	X(cuArrayDestroy)          \
	X(cuMemCreate)             \
	X(cuMemRelease)            \
	X(cuMemMap)                \
	X(cuMemUnmap)

struct calls {
#define CALL(name) __typeof__(name) *name;
	CALLS(CALL)
#undef CALL
	CUdeviceptr ptr;   /* of an allocation made through the same calls */
	CUdeviceptr range; /* reserved */
	CUmemGenericAllocationHandle handle;
};

static const CUmemAllocationProp prop = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
};
static const CUDA_ARRAY_DESCRIPTOR array_desc = {
	.Width = 64, .Height = 64, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};

#define MUST(call) bench_require((call) == CUDA_SUCCESS, "%s failed", #call)

/* --- one batch each ------------------------------------------------------------------------- */

/* It has no hook, and passes the door all the same. */
static void ask_version(const struct calls *cu)
{
	int version;

	MUST(cu->cuDriverGetVersion(&version));
}

static void query_stream(const struct calls *cu)
{
	MUST(cu->cuStreamQuery(NULL));
}

static void ask_memory(const struct calls *cu)
{
	size_t free_bytes, total_bytes;

	MUST(cu->cuMemGetInfo_v2(&free_bytes, &total_bytes));
}

static void ask_pointer(const struct calls *cu)
{
	CUcontext ctx;

	MUST(cu->cuPointerGetAttribute(&ctx, CU_POINTER_ATTRIBUTE_CONTEXT, cu->ptr));
}

static void set_limit(const struct calls *cu)
{
	MUST(cu->cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024));
}

static void capture(const struct calls *cu)
{
	CUgraph graph;

	/* The legacy stream never captures. */
	MUST(cu->cuStreamBeginCapture_v2(
		CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED));
	MUST(cu->cuStreamEndCapture(CU_STREAM_PER_THREAD, &graph));
}

static void look_up(const struct calls *cu)
{
	CUdriverProcAddressQueryResult status;
	void *function;

	MUST(cu->cuGetProcAddress_v2("cuLaunchKernel", &function, 12040, 0, &status));
}

static void alloc(const struct calls *cu)
{
	CUdeviceptr ptr;

	MUST(cu->cuMemAlloc_v2(&ptr, 4096));
	MUST(cu->cuMemFree_v2(ptr));
}

static void alloc_async(const struct calls *cu)
{
	CUdeviceptr ptr;

	MUST(cu->cuMemAllocAsync(&ptr, 4096, NULL));
	MUST(cu->cuMemFreeAsync(ptr, NULL));
}

static void make_array(const struct calls *cu)
{
	CUarray array;

	MUST(cu->cuArrayCreate_v2(&array, &array_desc));
	MUST(cu->cuArrayDestroy(array));
}

static void make_handle(const struct calls *cu)
{
	CUmemGenericAllocationHandle handle;

	MUST(cu->cuMemCreate(&handle, 2 * SL_MIB, &prop, 0));
	MUST(cu->cuMemRelease(handle));
}

static void map_handle(const struct calls *cu)
{
	MUST(cu->cuMemMap(cu->range, 2 * SL_MIB, 0, cu->handle, 0));
	MUST(cu->cuMemUnmap(cu->range, 2 * SL_MIB));
}

/* calls: per batch; those that ask the daemon are dearer by a thousand. */
static const struct kind {
	const char *variant;
	int calls;
	void (*run)(const struct calls *cu);
} kinds[] = {
	{"through", 1000, ask_version},
	{"watch-stream", 1000, query_stream},
	{"query-memory", 1000, ask_memory},
	{"query-pointer", 1000, ask_pointer},
	{"load-limit", 1000, set_limit},
	{"capture", 200, capture},
	{"route-look-up", 200, look_up},
	{"mem-slot", 200, alloc},
	{"pass-pool", 200, alloc_async},
	{"pass-array", 200, make_array},
	{"vmm-handle", 10, make_handle},
	{"vmm-map", 200, map_handle},
};

static uint64_t time_batch(const struct kind *kind, const struct calls *cu)
{
	sl_ns begin = sl_clock_now();

	for (int i = 0; i < kind->calls; i++)
		kind->run(cu);
	return sl_clock_now() - begin;
}

static void measure(const struct kind *kind, const struct calls *hooked,
	const struct calls *bare, struct bench_samples *with,
	struct bench_samples *without)
{
	double added;

	with->count = without->count = 0;
	for (int i = 0; i < WARM_UP + BATCHES; i++) {
		uint64_t a = time_batch(kind, hooked), b = time_batch(kind, bare);

		if (i < WARM_UP)
			continue;
		bench_samples_add(with, a);
		bench_samples_add(without, b);
	}
	added = (double)bench_quantile(with, 500) - (double)bench_quantile(without, 500);
	bench_emit(BENCH_HOOK_ADDED, kind->variant, added / kind->calls);
}

static void prepare(struct calls *cu)
{
	MUST(cu->cuMemAlloc_v2(&cu->ptr, 4096));
	MUST(cu->cuMemCreate(&cu->handle, 2 * SL_MIB, &prop, 0));
	/* Only the driver knows the addresses. */
	MUST(bench_cu.cuMemAddressReserve(&cu->range, 2 * SL_MIB, 0, 0, 0));
}

int bench_part_classes(int argc, char **argv)
{
	struct bench_samples *with, *without;
	struct calls hooked, bare;

	if (argc < 2 || strcmp(argv[1], "inside") != 0)
		bench_stub_start("classes", NAME);
	bench_stub_join(NAME);
#define CALL(name) bench_stub_find(#name, (void **)&hooked.name, (void **)&bare.name);
	CALLS(CALL)
#undef CALL
	prepare(&hooked);
	prepare(&bare);
	with = bench_samples_new();
	without = bench_samples_new();
	for (size_t i = 0; i < SL_ARRAY_LEN(kinds); i++)
		measure(&kinds[i], &hooked, &bare, with, without);
	free(with);
	free(without);
	return 0;
}
