/*
 * vmm-user - works with handles, ranges and mappings of its own, as the large frameworks do
 *
 * --do NAME chooses the way: see `ways` below. Contents are written and checked by kernels. A
 * second process is this program again; its imports come as descriptor 3.
 */
#include "prog.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PIECE ((uint64_t)2 << 20)

static uint64_t bytes = 64 << 20, ms, devices = 1, threads = 64;
static const char *until;
static CUfunction fill, check;
static uint32_t wrong;

static CUmemAllocationProp prop_on(int device)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
	};

	return prop;
}

static CUmemGenericAllocationHandle make(uint64_t size)
{
	CUmemAllocationProp prop = prop_on(0);
	CUmemGenericAllocationHandle handle;

	PROG_MUST(cuMemCreate(&handle, size, &prop, 0));
	return handle;
}

static CUdeviceptr reserve(uint64_t size)
{
	CUdeviceptr at;

	PROG_MUST(cuMemAddressReserve(&at, size, 0, 0, 0));
	return at;
}

/* For all devices at once. */
static void allow(CUdeviceptr at, uint64_t size)
{
	CUmemAccessDesc access[16];

	for (uint64_t i = 0; i < devices; i++) {
		access[i].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
		access[i].location.id = (int)i;
		access[i].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	}
	PROG_MUST(cuMemSetAccess(at, size, access, devices));
}

static void load_kernels(void)
{
	CUmodule module = prog_kernels();

	fill = prog_kernel(module, "prog_fill");
	check = prog_kernel(module, "prog_check");
}

static void verify(CUdeviceptr at, uint64_t size, uint32_t seed)
{
	uint32_t one = 0;
	CUdeviceptr bad;

	PROG_MUST(cuMemAlloc_v2(&bad, 4));
	PROG_MUST(prog_check(check, at, size, seed, bad, &one));
	PROG_MUST(cuMemFree_v2(bad));
	wrong += one;
}

static void tell(const char *what)
{
	size_t free_bytes = 0;

	PROG_MUST(cuMemGetInfo_v2(&free_bytes, NULL));
	prog_say("{\"event\":\"%s\",\"free\":%zu,\"wrong\":%u}", what, free_bytes, wrong);
}

/* --- PyTorch's expandable segments: one large range that grows and shrinks -------------------- */

static void expandable(void)
{
	uint64_t count = bytes / PIECE;
	CUdeviceptr at = reserve(16 * bytes);

	for (uint32_t round = 1; round <= 3; round++) {
		for (uint64_t i = 0; i < count; i++) {
			CUmemGenericAllocationHandle handle = make(PIECE);

			PROG_MUST(cuMemMap(at + i * PIECE, PIECE, 0, handle, 0));
			allow(at + i * PIECE, PIECE);
			PROG_MUST(cuMemRelease(handle));
		}
		PROG_MUST(prog_fill(fill, at, bytes, round));
		verify(at, bytes, round);
		tell("full");
		/* The end goes, and comes back with whatever it has then. */
		PROG_MUST(cuMemUnmap(at + bytes / 2, bytes - bytes / 2));
		tell("half");
		verify(at, bytes / 2, round);
		PROG_MUST(cuMemUnmap(at, bytes / 2));
		tell("empty");
	}
	PROG_MUST(cuMemAddressFree(at, 16 * bytes));
}

/* --- NCCL's buffers: made here, mapped there, used by all devices ----------------------------- */

static void import_fd(void)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at = reserve(bytes);

	PROG_MUST(cuMemImportFromShareableHandle(
		&handle, (void *)3, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	PROG_MUST(cuMemMap(at, bytes, 0, handle, 0));
	allow(at, bytes);
	verify(at, bytes, 1);
	PROG_MUST(prog_fill(fill, at, bytes, 2));
	PROG_MUST(cuCtxSynchronize());
	tell("imported");
	PROG_MUST(cuMemUnmap(at, bytes));
	PROG_MUST(cuMemRelease(handle));
	PROG_MUST(cuMemAddressFree(at, bytes));
}

static int import_elsewhere(int fd)
{
	char size[32], count[32];
	int status = 0;
	pid_t pid;

	snprintf(size, sizeof(size), "%llu", (unsigned long long)bytes);
	snprintf(count, sizeof(count), "%llu", (unsigned long long)devices);
	pid = fork();
	if (pid == 0) {
		if (fd == 3)
			(void)fcntl(3, F_SETFD, 0);
		else
			dup2(fd, 3);
		execl("/proc/self/exe", "vmm-user", "--do", "import", "--bytes", size,
			"--devices", count, (char *)NULL);
		_exit(126);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void share(void)
{
	CUmemAllocationProp prop = prop_on(0);
	CUmemGenericAllocationHandle handle, again;
	CUdeviceptr at = reserve(bytes);
	int fd = -1;

	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	PROG_MUST(cuMemCreate(&handle, bytes, &prop, 0));
	PROG_MUST(cuMemMap(at, bytes, 0, handle, 0));
	allow(at, bytes);
	PROG_MUST(prog_fill(fill, at, bytes, 1));
	PROG_MUST(cuCtxSynchronize());
	PROG_MUST(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)at));
	wrong += again != handle;
	PROG_MUST(cuMemExportToShareableHandle(
		&fd, again, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	tell("exported");
	wrong += import_elsewhere(fd) != 0;
	close(fd);
	verify(at, bytes, 2);
	PROG_MUST(cuMemRelease(again));
	prog_rest(ms, until);
	PROG_MUST(cuMemUnmap(at, bytes));
	PROG_MUST(cuMemRelease(handle));
	PROG_MUST(cuMemAddressFree(at, bytes));
}

/* --- peers: the first device uses memory of the second one's context -------------------------- */

static void peers(void)
{
	CUcontext first, second;
	CUdeviceptr before, after, small;

	PROG_MUST(cuCtxGetCurrent(&first));
	PROG_MUST(cuDevicePrimaryCtxRetain(&second, 1));
	PROG_MUST(cuCtxPushCurrent_v2(second));
	PROG_MUST(cuMemAlloc_v2(&before, bytes));
	PROG_MUST(cuMemAlloc_v2(&small, 4096));
	PROG_MUST(cuCtxPushCurrent_v2(first));
	PROG_MUST(cuCtxEnablePeerAccess(second, 0));
	wrong += cuCtxEnablePeerAccess(second, 0) !=
		 CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	PROG_MUST(prog_fill(fill, before, bytes, 1));
	PROG_MUST(prog_fill(fill, small, 4096, 2));
	PROG_MUST(cuCtxSynchronize());
	PROG_MUST(cuCtxPushCurrent_v2(second));
	PROG_MUST(cuMemAlloc_v2(&after, bytes));
	PROG_MUST(cuCtxPopCurrent_v2(NULL));
	PROG_MUST(prog_fill(fill, after, bytes, 3));
	verify(before, bytes, 1);
	verify(small, 4096, 2);
	verify(after, bytes, 3);
	tell("peers");
	prog_rest(ms, until);
	PROG_MUST(cuCtxDisablePeerAccess(second));
	wrong += cuCtxDisablePeerAccess(second) != CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	/* Closed again: a kernel of the first device has no business there. */
	wrong += prog_fill(fill, before, 4096, 9) == CUDA_SUCCESS &&
		 cuCtxSynchronize() == CUDA_SUCCESS;
	prog_say("{\"event\":\"closed\",\"wrong\":%u}", wrong);
	_exit(wrong ? PROG_WRONG : PROG_OK);
}

/* --- memory on the host: the id means nothing, no GPU pays ------------------------------------ */

static void host(void)
{
	static const CUmemLocationType types[] = {CU_MEM_LOCATION_TYPE_HOST,
		CU_MEM_LOCATION_TYPE_HOST_NUMA, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT};

	CUdeviceptr small;

	/* The first launches take memory of their own: not between the two figures. */
	PROG_MUST(cuMemAlloc_v2(&small, 4096));
	PROG_MUST(prog_fill(fill, small, 4096, 1));
	verify(small, 4096, 1);
	PROG_MUST(cuMemFree_v2(small));
	tell("before");
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		CUmemAllocationProp prop = prop_on(0);
		CUmemGenericAllocationHandle handle;
		CUdeviceptr at = reserve(bytes);
		CUresult r;

		prop.location.type = types[i];
		/* Whatever was there before: plain host locations have no id. */
		prop.location.id =
			types[i] == CU_MEM_LOCATION_TYPE_HOST_NUMA ? 0 : 0x5a5a5a;
		r = cuMemCreate(&handle, bytes, &prop, 0);
		if (r == CUDA_SUCCESS) {
			PROG_MUST(cuMemMap(at, bytes, 0, handle, 0));
			allow(at, bytes);
			PROG_MUST(prog_fill(fill, at, bytes, 7));
			verify(at, bytes, 7);
			tell("host");
			PROG_MUST(cuMemUnmap(at, bytes));
			PROG_MUST(cuMemRelease(handle));
		}
		prog_say("{\"event\":\"location\",\"type\":%d,\"result\":\"%s\"}",
			(int)types[i], prog_error_name(r));
		PROG_MUST(cuMemAddressFree(at, bytes));
	}
}

/* --- many threads ----------------------------------------------------------------------------- */

static void *thread_main(void *arg)
{
	CUdeviceptr at;

	PROG_MUST(cuCtxSetCurrent(arg));
	at = reserve(8 * PIECE);
	for (uint64_t i = 0; i < 12; i++) {
		uint64_t size = (1 + i % 4) * PIECE;
		CUmemGenericAllocationHandle handle = make(size), again;

		PROG_MUST(cuMemMap(at, size, 0, handle, 0));
		allow(at, size);
		PROG_MUST(cuMemsetD32_v2(at, (unsigned int)i, size / 4));
		PROG_MUST(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)at));
		PROG_MUST(cuMemRelease(handle));
		PROG_MUST(cuCtxSynchronize());
		if (again != handle)
			__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
		PROG_MUST(cuMemUnmap(at, size));
		PROG_MUST(cuMemRelease(again));
	}
	PROG_MUST(cuMemAddressFree(at, 8 * PIECE));
	return NULL;
}

static void crowd(void)
{
	pthread_t *ids = calloc(threads, sizeof(*ids));
	CUcontext ctx;

	PROG_MUST(cuCtxGetCurrent(&ctx));
	for (uint64_t i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, thread_main, ctx) != 0)
			exit(PROG_USAGE);
	for (uint64_t i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	free(ids);
	tell("crowd");
}

/* --- holding, forking ------------------------------------------------------------------------- */

static void hold(void)
{
	CUmemGenericAllocationHandle handle = make(bytes);
	CUdeviceptr at = reserve(bytes);

	PROG_MUST(cuMemMap(at, bytes, 0, handle, 0));
	PROG_MUST(cuMemRelease(handle));
	allow(at, bytes);
	PROG_MUST(prog_fill(fill, at, bytes, 4));
	PROG_MUST(cuCtxSynchronize());
	tell("held");
	prog_rest(ms, until);
	verify(at, bytes, 4);
	PROG_MUST(cuMemUnmap(at, bytes));
	PROG_MUST(cuMemAddressFree(at, bytes));
}

/* The child has none of it, and ends without taking anything from the parent. */
static void forked(void)
{
	CUmemGenericAllocationHandle handle = make(bytes);
	CUdeviceptr at = reserve(bytes);
	int status = 0;
	pid_t pid;

	PROG_MUST(cuMemMap(at, bytes, 0, handle, 0));
	allow(at, bytes);
	PROG_MUST(prog_fill(fill, at, bytes, 5));
	PROG_MUST(cuCtxSynchronize());
	pid = fork();
	if (pid == 0)
		_exit(cuMemRelease(handle) == CUDA_SUCCESS ||
			cuMemUnmap(at, bytes) == CUDA_SUCCESS ||
			cuMemAddressFree(at, bytes) == CUDA_SUCCESS);
	waitpid(pid, &status, 0);
	wrong += status != 0;
	verify(at, bytes, 5);
	tell("forked");
	PROG_MUST(cuMemUnmap(at, bytes));
	PROG_MUST(cuMemRelease(handle));
	PROG_MUST(cuMemAddressFree(at, bytes));
}

static const struct {
	const char *name;
	void (*run)(void);
} ways[] = {
	{"expandable", expandable},
	{"share", share},
	{"import", import_fd},
	{"peers", peers},
	{"host", host},
	{"crowd", crowd},
	{"hold", hold},
	{"fork", forked},
};

int main(int argc, char **argv)
{
	const char *what = "expandable";
	const struct prog_option options[] = {
		{"do", PROG_TEXT, &what,
			"expandable, share, import, peers, host, crowd, hold or fork"},
		{"bytes", PROG_SIZE, &bytes, "bytes to work with"},
		{"ms", PROG_NUMBER, &ms, "time to hold them"},
		{"until", PROG_TEXT, &until, "or until there is such a file"},
		{"devices", PROG_NUMBER, &devices, "so many devices get access"},
		{"threads", PROG_NUMBER, &threads, "of a crowd"},
	};
	size_t i = 0;

	prog_options(argc, argv, "Uses virtual memory management.", options,
		sizeof(options) / sizeof(options[0]));
	while (i < sizeof(ways) / sizeof(ways[0]) && strcmp(ways[i].name, what))
		i++;
	if (i == sizeof(ways) / sizeof(ways[0]) || devices < 1 || devices > 16) {
		fprintf(stderr, "vmm-user: no way called \"%s\", or too many devices\n",
			what);
		return PROG_USAGE;
	}
	prog_context(0);
	load_kernels();
	ways[i].run();
	prog_say("{\"event\":\"end\",\"wrong\":%u}", wrong);
	return wrong ? PROG_WRONG : PROG_OK;
}
