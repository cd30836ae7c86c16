/*
 * peer - what other GPU-sharing layers did to their users, one function per failure
 *
 * `peer NUMBER` plays the program of that user inside a workload and says what it found. Each row
 * stands for a failure reported to another layer (rows); it must fail if we ever do the like.
 * Exit statuses as in prog.h.
 */
#include "prog.h"

#include "base/sl.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static unsigned int checks, failed;

static void check(bool right, const char *what, const char *got)
{
	checks++;
	failed += !right;
	printf("  %s: %s%s%s\n", right ? "ok" : "FAILED", what, got ? ": " : "",
		got ? got : "");
	fflush(stdout);
}
#define CHECK(condition) check(condition, #condition, NULL)
#define IS(want, call)   is(CUDA_##want, call, #call)
#define SUCCEEDS(call)   is(CUDA_SUCCESS, call, #call)

static void is(CUresult want, CUresult got, const char *call)
{
	check(want == got, call, want == got ? NULL : prog_error_name(got));
}

static size_t free_bytes(void)
{
	size_t available = 0, total = 0;

	PROG_MUST(cuMemGetInfo_v2(&available, &total));
	return available;
}

static size_t total_bytes(void)
{
	size_t available = 0, total = 0;

	PROG_MUST(cuMemGetInfo_v2(&available, &total));
	return total;
}

static CUmemAllocationProp device_prop(void)
{
	return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
}

/* --- 1 ---------------------------------------------------------------------------------------- */

static void null_outs(void)
{
	CUdeviceptr ptr;
	size_t bytes;

	PROG_MUST(cuInit(0));
	IS(ERROR_INVALID_CONTEXT, cuMemGetInfo_v2(&bytes, &bytes));
	IS(ERROR_INVALID_CONTEXT, cuMemAlloc_v2(&ptr, 4096));
	(void)prog_context(0);
	SUCCEEDS(cuMemGetInfo_v2(NULL, &bytes));
	SUCCEEDS(cuMemGetInfo_v2(&bytes, NULL));
	IS(ERROR_INVALID_VALUE, cuMemAlloc_v2(NULL, 4096));
	SUCCEEDS(cuMemAlloc_v2(&ptr, 4096));
	SUCCEEDS(cuMemGetAddressRange_v2(NULL, &bytes, ptr));
	SUCCEEDS(cuMemGetAddressRange_v2(&ptr, NULL, ptr));
	IS(ERROR_INVALID_VALUE, cuDeviceTotalMem_v2(NULL, 0));
	SUCCEEDS(cuMemFree_v2(ptr));
	SUCCEEDS(cuMemFree_v2(0));
}

/* --- 2 ---------------------------------------------------------------------------------------- */

static void host_location(void)
{
	static const CUmemLocationType types[] = {
		CU_MEM_LOCATION_TYPE_HOST, CU_MEM_LOCATION_TYPE_HOST_NUMA};
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp prop;
	size_t before;

	(void)prog_context(0);
	before = free_bytes();
	for (size_t i = 0; i < SL_ARRAY_LEN(types); i++) {
		prop = device_prop();
		/* What a program leaves there where the id means nothing. */
		prop.location.id =
			types[i] == CU_MEM_LOCATION_TYPE_HOST_NUMA ? 0 : 1234567;
		prop.location.type = types[i];
		SUCCEEDS(cuMemCreate(&handle, 64 * SL_MIB, &prop, 0));
		CHECK(free_bytes() == before);
		SUCCEEDS(cuMemRelease(handle));
	}
	/* The manual refuses this one; with the same code as without us, and no crash. */
	prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
	IS(ERROR_INVALID_VALUE, cuMemCreate(&handle, 64 * SL_MIB, &prop, 0));
	prop = device_prop();
	prop.location.id = 99;
	IS(ERROR_INVALID_DEVICE, cuMemCreate(&handle, 64 * SL_MIB, &prop, 0));
}

/* --- 7, 31 ------------------------------------------------------------------------------------ */

static void unmatched_free(void)
{
	CUdeviceptr ptr;
	size_t before;

	(void)prog_context(0);
	before = free_bytes();
	for (int i = 0; i < 200; i++) {
		PROG_MUST(cuMemAlloc_v2(&ptr, i % 2 ? 4096 : 8 * SL_MIB));
		PROG_MUST(cuMemFree_v2(ptr));
		if (cuMemFree_v2(ptr) != CUDA_ERROR_INVALID_VALUE ||
			cuMemFree_v2(ptr + 256) != CUDA_ERROR_INVALID_VALUE)
			check(false, "a second free", NULL);
	}
	IS(ERROR_INVALID_VALUE, cuMemFree_v2(0x1234567000));
	CHECK(free_bytes() == before);
	CHECK(free_bytes() <= total_bytes());
}

static void double_release(void)
{
	CUmemAllocationProp prop = device_prop();
	CUmemGenericAllocationHandle handle, again;
	CUmemAccessDesc access = {
		.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUdeviceptr at;
	size_t before;

	(void)prog_context(0);
	before = free_bytes();
	for (int i = 0; i < 20; i++) {
		PROG_MUST(cuMemAddressReserve(&at, 4 * SL_MIB, 0, 0, 0));
		PROG_MUST(cuMemCreate(&handle, 4 * SL_MIB, &prop, 0));
		PROG_MUST(cuMemMap(at, 4 * SL_MIB, 0, handle, 0));
		PROG_MUST(cuMemSetAccess(at, 4 * SL_MIB, &access, 1));
		PROG_MUST(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)at));
		/* Released while mapped: the mapping keeps it, and it is counted until that
		 * goes. */
		PROG_MUST(cuMemRelease(handle));
		PROG_MUST(cuMemRelease(again));
		PROG_MUST(cuMemsetD8_v2(at, 7, 4 * SL_MIB));
		PROG_MUST(cuCtxSynchronize());
		if (free_bytes() + 4 * SL_MIB > before)
			check(false, "a released handle that is mapped counts", NULL);
		PROG_MUST(cuMemUnmap(at, 4 * SL_MIB));
		PROG_MUST(cuMemAddressFree(at, 4 * SL_MIB));
	}
	CHECK(cuMemRelease(handle) != CUDA_SUCCESS);
	CHECK(cuMemUnmap(at, 4 * SL_MIB) != CUDA_SUCCESS);
	CHECK(free_bytes() == before);
}

/* --- 8 ---------------------------------------------------------------------------------------- */

static void async_pools(void)
{
	CUdeviceptr kept[4] = {0};
	CUmemoryPool pool;
	CUstream stream;
	size_t before;
	unsigned int refused = 0;

	(void)prog_context(0);
	PROG_MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	PROG_MUST(cuDeviceGetDefaultMemPool(&pool, 0));
	before = free_bytes();
	/* A high-water mark would add up to far more than the limit. */
	for (int i = 0; i < 2000; i++) {
		CUdeviceptr *slot = &kept[i % 4];

		if (*slot)
			PROG_MUST(cuMemFreeAsync(*slot, stream));
		refused += cuMemAllocAsync(slot, (1 + (size_t)i % 8) * SL_MIB, stream) !=
			   CUDA_SUCCESS;
		if (i % 100 == 0)
			PROG_MUST(cuStreamSynchronize(stream));
	}
	CHECK(refused == 0);
	for (int i = 0; i < 4; i++)
		PROG_MUST(cuMemFreeAsync(kept[i], stream));
	PROG_MUST(cuStreamSynchronize(stream));
	IS(ERROR_INVALID_VALUE, cuMemFreeAsync(0x1234567000, stream));
	SUCCEEDS(cuMemPoolTrimTo(pool, 0));
	CHECK(free_bytes() == before);
	/* Managed memory may end in a stream, too. */
	for (int i = 0; i < 6; i++) {
		PROG_MUST(cuMemAllocManaged(&kept[0], 64 * SL_MIB, CU_MEM_ATTACH_GLOBAL));
		PROG_MUST(cuMemFreeAsync(kept[0], stream));
		PROG_MUST(cuStreamSynchronize(stream));
	}
	CHECK(free_bytes() == before);
	/* Memory of a pool may be freed like any other, and the other way round. */
	SUCCEEDS(cuMemAllocAsync(&kept[0], SL_MIB, stream));
	SUCCEEDS(cuStreamSynchronize(stream));
	SUCCEEDS(cuMemFree_v2(kept[0]));
	SUCCEEDS(cuMemAlloc_v2(&kept[0], SL_MIB));
	SUCCEEDS(cuMemFreeAsync(kept[0], stream));
	SUCCEEDS(cuStreamSynchronize(stream));
}

/* --- 9 ---------------------------------------------------------------------------------------- */

static void out_of_memory(void)
{
	CUDA_ARRAY_DESCRIPTOR big = {.Width = 16384,
		.Height = 16384,
		.Format = CU_AD_FORMAT_FLOAT,
		.NumChannels = 4};
	CUmemAllocationProp prop = device_prop();
	CUmemGenericAllocationHandle handle;
	size_t too_much = 2 * SL_GIB, pitch;
	CUdeviceptr ptr;
	CUarray array;

	(void)prog_context(0);
	for (int round = 0; round < 3; round++) {
		IS(ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&ptr, too_much));
		IS(ERROR_OUT_OF_MEMORY,
			cuMemAllocPitch_v2(&ptr, &pitch, 65536, 65536, 4));
		IS(ERROR_OUT_OF_MEMORY, cuMemAllocAsync(&ptr, too_much, NULL));
		IS(ERROR_OUT_OF_MEMORY, cuMemCreate(&handle, too_much, &prop, 0));
		IS(ERROR_OUT_OF_MEMORY,
			cuMemAllocManaged(&ptr, too_much, CU_MEM_ATTACH_GLOBAL));
		IS(ERROR_OUT_OF_MEMORY, cuArrayCreate_v2(&array, &big));
		/* A framework drops its cache and tries again. */
		SUCCEEDS(cuMemAlloc_v2(&ptr, 64 * SL_MIB));
		SUCCEEDS(cuMemFree_v2(ptr));
	}
}

/* --- 13 --------------------------------------------------------------------------------------- */

static void hidden_bytes(void)
{
	enum { MODULES = 64, TRIES = 50 };
	CUmodule modules[MODULES];
	size_t before, loaded;

	(void)prog_context(0);
	before = free_bytes();
	CHECK(before <= total_bytes());
	/* More than the reserve pays; figures measured while code is being loaded may be old. */
	for (int i = 0; i < MODULES; i++)
		modules[i] = prog_kernels();
	loaded = free_bytes();
	for (int i = 0; i < TRIES && loaded >= before; i++) {
		prog_sleep_ms(50);
		loaded = free_bytes();
	}
	CHECK(loaded < before);
	for (int i = 0; i < MODULES; i++)
		PROG_MUST(cuModuleUnload(modules[i]));
	CHECK(free_bytes() >= loaded);
}

/* --- 15 --------------------------------------------------------------------------------------- */

/* Graphs with memory of their own, launched without a wait: the most that they had reserved. */
static uint64_t launch_graphs(unsigned int count, size_t bytes, CUstream stream)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
		.bytesize = bytes};
	cuuint64_t most = 0;

	for (unsigned int i = 0; i < count; i++) {
		CUgraphNode made, freed;
		CUgraphExec exec;
		CUgraph graph;

		PROG_MUST(cuGraphCreate(&graph, 0));
		PROG_MUST(cuGraphAddMemAllocNode(&made, graph, NULL, 0, &params));
		PROG_MUST(cuGraphAddMemFreeNode(&freed, graph, &made, 1, params.dptr));
		if (cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS)
			(void)cuGraphLaunch(exec, stream);
	}
	PROG_MUST(cuStreamSynchronize(stream));
	PROG_MUST(cuDeviceGetGraphMemAttribute(
		0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &most));
	return most;
}

static void graphs(void)
{
	CUstreamCaptureStatus status;
	CUdeviceptr word, other, freed;
	CUgraphExec exec;
	CUgraph graph;
	CUstream stream;
	uint32_t value = 0;

	(void)prog_context(0);
	PROG_MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	PROG_MUST(cuMemAlloc_v2(&word, 4096));
	PROG_MUST(cuMemAlloc_v2(&freed, 64 * SL_MIB));
	PROG_MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	SUCCEEDS(cuMemsetD32Async(word, 41, 1, stream));
	/* Memory may come and go meanwhile; nothing of ours may spoil the capture. */
	SUCCEEDS(cuMemAlloc_v2(&other, 32 * SL_MIB));
	SUCCEEDS(cuMemFree_v2(freed));
	SUCCEEDS(cuStreamIsCapturing(stream, &status));
	CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
	SUCCEEDS(cuMemsetD32Async(word, 42, 1, stream));
	SUCCEEDS(cuStreamEndCapture(stream, &graph));
	SUCCEEDS(cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (int i = 0; i < 10; i++)
		PROG_MUST(cuGraphLaunch(exec, stream));
	SUCCEEDS(cuStreamSynchronize(stream));
	PROG_MUST(cuMemcpyDtoH_v2(&value, word, sizeof(value)));
	CHECK(value == 42);
	SUCCEEDS(cuMemFree_v2(other));
	IS(ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&other, 512 * SL_MIB));
	/* Nor do they escape the limit by memory of their own: what one makes the driver reserve
	 * unasked, the next one is asked for. */
	CHECK(launch_graphs(8, 100 * SL_MIB, stream) <= 500 * SL_MIB);
}

/* --- 20 --------------------------------------------------------------------------------------- */

static bool is_ours(void *function)
{
	Dl_info info;

	return function && dladdr(function, &info) && strstr(info.dli_fname, "libsluice");
}

/* Fails where anything is hooked: with bypass that is a failure, without it the rule. */
static void bypass(void)
{
	static const char *const names[] = {"cuMemAlloc_v2", "cuMemGetInfo_v2",
		"cuLaunchKernel", "cuMemCreate", "cuIpcGetMemHandle",
		"cuGetProcAddress_v2", "cuMulticastCreate", "cuInit"};
	CUdriverProcAddressQueryResult status;
	unsigned int hooked = 0;
	void *function = NULL;

	PROG_MUST(cuInit(0));
	for (size_t i = 0; i < SL_ARRAY_LEN(names); i++)
		hooked += is_ours(dlsym(dlopen("libcuda.so.1", RTLD_NOW), names[i]));
	PROG_MUST(cuGetProcAddress_v2("cuMemAlloc", &function, 12000, 0, &status));
	hooked += is_ours(function);
	CHECK(hooked == 0);
}

/* --- 21 --------------------------------------------------------------------------------------- */

static void *found_early;

/* Before main, and so before anything of ours can have started. */
static __attribute__((constructor)) void look_up_early(void)
{
	found_early = dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
	(void)dlsym(RTLD_DEFAULT, "malloc");
	(void)dlsym(RTLD_NEXT, "free");
}

static void *look_up(void *start)
{
	(void)pthread_barrier_wait(start);
	for (int i = 0; i < 1000; i++) {
		if (!dlsym(RTLD_DEFAULT, "cuLaunchKernel") ||
			!dlsym(RTLD_DEFAULT, "read"))
			return NULL;
	}
	return start;
}

static void first_call(void)
{
	pthread_barrier_t start;
	pthread_t threads[16];
	void *result;
	unsigned int good = 0;

	CHECK(found_early != NULL);
	(void)pthread_barrier_init(&start, NULL, SL_ARRAY_LEN(threads));
	for (size_t i = 0; i < SL_ARRAY_LEN(threads); i++)
		(void)pthread_create(&threads[i], NULL, look_up, &start);
	for (size_t i = 0; i < SL_ARRAY_LEN(threads); i++) {
		(void)pthread_join(threads[i], &result);
		good += result != NULL;
	}
	CHECK(good == SL_ARRAY_LEN(threads));
	(void)prog_context(0);
	CHECK(total_bytes() == 256 * SL_MIB);
}

/* --- 27 --------------------------------------------------------------------------------------- */

#define SIGNALS 65

struct host {
	struct sigaction handlers[SIGNALS];
	sigset_t mask;
	mode_t umask;
	char *cwd;
};

static void look_at_host(struct host *host)
{
	memset(host, 0, sizeof(*host));
	for (int i = 1; i < SIGNALS; i++)
		(void)sigaction(i, NULL, &host->handlers[i]);
	(void)pthread_sigmask(SIG_SETMASK, NULL, &host->mask);
	host->umask = umask(0);
	(void)umask(host->umask);
}

static bool same_handlers(const struct host *a, const struct host *b)
{
	for (int i = 1; i < SIGNALS; i++) {
		if (a->handlers[i].sa_handler != b->handlers[i].sa_handler)
			return false;
	}
	return true;
}

static void the_host(void)
{
	static struct host before, after;
	CUdeviceptr ptr;
	size_t bytes;

	look_at_host(&before);
	(void)prog_context(0);
	errno = 1234;
	PROG_MUST(cuMemAlloc_v2(&ptr, 64 * SL_MIB));
	CHECK(errno == 1234);
	PROG_MUST(cuMemsetD8_v2(ptr, 1, 64 * SL_MIB));
	CHECK(errno == 1234);
	PROG_MUST(cuMemGetInfo_v2(&bytes, &bytes));
	CHECK(errno == 1234);
	PROG_MUST(cuMemFree_v2(ptr));
	CHECK(errno == 1234);
	CHECK(cuMemAlloc_v2(&ptr, SL_GIB) == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(errno == 1234);
	look_at_host(&after);
	CHECK(same_handlers(&before, &after));
	CHECK(memcmp(&before.mask, &after.mask, sizeof(before.mask)) == 0);
	CHECK(before.umask == after.umask);
}

/* --- 28 --------------------------------------------------------------------------------------- */

static void same_memory(void)
{
	unsigned int type = 0, managed = 1, mapped = 0;
	CUdeviceptr ptr, base = 0;
	size_t bytes = 0;

	(void)prog_context(0);
	PROG_MUST(cuMemAlloc_v2(&ptr, 10 * SL_MIB + 1));
	SUCCEEDS(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, ptr));
	CHECK(type == CU_MEMORYTYPE_DEVICE);
	SUCCEEDS(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, ptr));
	CHECK(managed == 0);
	SUCCEEDS(cuPointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, ptr));
	CHECK(mapped == 1);
	SUCCEEDS(cuMemGetAddressRange_v2(&base, &bytes, ptr + 12345));
	CHECK(base == ptr && bytes == 10 * SL_MIB + 1);
}

/* --- 30 --------------------------------------------------------------------------------------- */

static void no_unmap_under_work(void)
{
	CUmodule module;
	CUfunction spin;
	CUdeviceptr ptr, word;
	uint64_t ns = 300 * 1000000ull, begin;
	void *args[] = {&ns};

	(void)prog_context(0);
	module = prog_kernels();
	spin = prog_kernel(module, "prog_spin");
	PROG_MUST(cuMemAlloc_v2(&word, 4096));
	for (int i = 0; i < 3; i++) {
		PROG_MUST(cuMemAlloc_v2(&ptr, 32 * SL_MIB));
		PROG_MUST(prog_launch(spin, 1, NULL, args));
		PROG_MUST(cuMemsetD8Async(ptr, 1, 32 * SL_MIB, NULL));
		begin = prog_now_ms();
		SUCCEEDS(cuMemFree_v2(ptr));
		/* The free waited for the work on it, as the driver's own does. */
		CHECK(prog_now_ms() - begin >= 100);
		SUCCEEDS(cuCtxSynchronize());
	}
	SUCCEEDS(cuMemsetD8_v2(word, 1, 4096));
}

/* --- 26: in front of a driver that does nothing ----------------------------------------------- */

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile int sealed_calls;

/* From here on this thread may read, write and end; anything else kills it. */
static void *run_sealed(void *context)
{
	PROG_MUST(cuCtxSetCurrent(context));
	for (int i = 0; i < 3; i++) {
		PROG_MUST(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
		PROG_MUST(cuMemsetD8Async(0x7000000000, 0, 1, NULL));
		PROG_MUST(cuMemcpyDtoDAsync_v2(0x7000000000, 0x7000001000, 1, NULL));
	}
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) {
		sealed_calls = -1;
		return NULL;
	}
	for (int i = 0; i < 100000; i++) {
		(void)cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
		(void)cuMemsetD8Async(0x7000000000, 0, 1, NULL);
		(void)cuMemcpyDtoDAsync_v2(0x7000000000, 0x7000001000, 1, NULL);
		sealed_calls = sealed_calls + 3;
	}
	(void)syscall(SYS_exit, 0);
	return NULL;
}

static void hot_path(void)
{
	CUcontext ctx = prog_context(0);
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, run_sealed, ctx) == 0);
	for (int i = 0; i < 200 && sealed_calls >= 0 && sealed_calls < 300000; i++)
		prog_sleep_ms(50);
	if (sealed_calls < 0) {
		printf("  skipped: no seccomp here\n");
		exit(77);
	}
	printf("  %d calls\n", sealed_calls);
	CHECK(sealed_calls == 300000);
}

static const struct row {
	int number;
	void (*run)(void);
} rows[] = {
	{1, null_outs},
	{2, host_location},
	{7, unmatched_free},
	{8, async_pools},
	{9, out_of_memory},
	{13, hidden_bytes},
	{15, graphs},
	{20, bypass},
	{21, first_call},
	{26, hot_path},
	{27, the_host},
	{28, same_memory},
	{30, no_unmap_under_work},
	{31, double_release},
};

int main(int argc, char **argv)
{
	int number = argc == 2 ? atoi(argv[1]) : 0;

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		if (rows[i].number != number)
			continue;
		rows[i].run();
		printf("  %u checks, %u failed\n", checks, failed);
		return failed || !checks ? PROG_WRONG : PROG_OK;
	}
	fprintf(stderr, "usage: peer NUMBER\n");
	return PROG_USAGE;
}
