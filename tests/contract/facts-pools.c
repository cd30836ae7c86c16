/*
 * facts-pools - pools of memory and stream-ordered allocation
 */
#include "contract.h"

#include <pthread.h>
#include <unistd.h>

#define MANUAL "driver API manual"
#define GUIDE  "programming guide, stream-ordered allocation"

static CUmemoryPool pool_of(CUmemAllocationHandleType types)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = types,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemoryPool pool = NULL;

	OK(cuMemPoolCreate, &pool, &props);
	return pool;
}

static uint64_t ask(CUmemoryPool pool, CUmemPool_attribute attribute)
{
	cuuint64_t value = 0;

	OK(cuMemPoolGetAttribute, pool, attribute, &value);
	return value;
}

static void keep(CUmemoryPool pool, cuuint64_t bytes)
{
	OK(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes);
}

static CUdeviceptr take(CUmemoryPool pool, size_t bytes, CUstream stream)
{
	CUdeviceptr at = 0;

	OK(cuMemAllocFromPoolAsync, &at, bytes, pool, stream);
	return at;
}

static CUstream new_stream(void)
{
	CUstream stream;

	OK(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	return stream;
}

FACT(pool_default, MANUAL, SAME, "the default pool is the current one, and stays")
{
	CUmemoryPool pool, current;

	contract_context();
	OK(cuDeviceGetDefaultMemPool, &pool, 0);
	OK(cuDeviceGetMemPool, &current, 0);
	HOLDS((uintptr_t)pool, ==, (uintptr_t)current);
	IS(ERROR_INVALID_VALUE, cuMemPoolDestroy, pool);
}

FACT(pool_set, MANUAL, SAME,
	"a device's pool can be changed, and comes back when that is destroyed")
{
	CUmemoryPool first, made, current, of;
	CUdeviceptr at;

	contract_context();
	OK(cuDeviceGetDefaultMemPool, &first, 0);
	made = pool_of(0);
	OK(cuDeviceSetMemPool, 0, made);
	OK(cuDeviceGetMemPool, &current, 0);
	HOLDS((uintptr_t)current, ==, (uintptr_t)made);
	OK(cuMemAllocAsync, &at, 1 << 20, NULL);
	OK(cuPointerGetAttribute, &of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, at);
	HOLDS((uintptr_t)of, ==, (uintptr_t)made);
	OK(cuMemFreeAsync, at, NULL);
	OK(cuMemPoolDestroy, made);
	OK(cuDeviceGetMemPool, &current, 0);
	HOLDS((uintptr_t)current, ==, (uintptr_t)first);
}

FACT(pool_bad, MANUAL, SAME, "what cannot be a pool is refused")
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1000}};
	CUmemoryPool pool;
	CUdeviceptr at;

	contract_context();
	FAILS(cuMemPoolCreate, &pool, &props);
	props.location.id = 0;
	props.allocType = CU_MEM_ALLOCATION_TYPE_INVALID;
	FAILS(cuMemPoolCreate, &pool, &props);
	FAILS(cuMemPoolCreate, &pool, NULL);
	FAILS(cuMemPoolDestroy, NULL);
	FAILS(cuMemAllocFromPoolAsync, &at, 1 << 20, NULL, NULL);
}

FACT(pool_marks, MANUAL, SAME, "a pool counts what is used and what is reserved")
{
	CUmemoryPool pool;
	CUdeviceptr at;
	cuuint64_t zero = 0, one = 1;

	contract_context();
	pool = pool_of(0);
	HOLDS(ask(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), ==, 0);
	at = take(pool, 3 << 20, NULL);
	HOLDS(ask(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), ==, 3 << 20);
	HOLDS(ask(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), >=, 3 << 20);
	OK(cuMemFreeAsync, at, NULL);
	OK(cuStreamSynchronize, NULL);
	HOLDS(ask(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), ==, 0);
	HOLDS(ask(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), ==, 3 << 20);
	HOLDS(ask(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), >=, 3 << 20);
	IS(ERROR_INVALID_VALUE, cuMemPoolSetAttribute, pool,
		CU_MEMPOOL_ATTR_USED_MEM_HIGH, &one);
	OK(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero);
	HOLDS(ask(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), ==, 0);
}

FACT(pool_steps, "assumed", SAME, "a pool takes the GPU's memory in steps of 32 MiB")
{
	CUmemoryPool pool;

	contract_context();
	pool = pool_of(0);
	take(pool, 1000, NULL);
	HOLDS(ask(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), ==, 32 << 20);
	take(pool, 1 << 20, NULL);
	HOLDS(ask(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), ==, 32 << 20);
	take(pool, 33 << 20, NULL);
	HOLDS(ask(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), ==, 96 << 20);
}

FACT(pool_takes, MANUAL, SAME, "reserved memory is the GPU's, and gone from the free")
{
	size_t before;
	CUmemoryPool pool;

	contract_context();
	pool = pool_of(0);
	before = contract_free_bytes();
	take(pool, 64 << 20, NULL);
	HOLDS(contract_free_bytes() + (64 << 20), <=, before);
}

FACT(pool_release, MANUAL, SAME,
	"without a threshold a synchronisation gives back what is free")
{
	size_t before;
	CUmemoryPool pool;
	CUdeviceptr at;

	contract_context();
	pool = pool_of(0);
	OK(cuCtxSynchronize);
	before = contract_free_bytes();
	at = take(pool, 64 << 20, NULL);
	OK(cuMemFreeAsync, at, NULL);
	OK(cuStreamSynchronize, NULL);
	HOLDS(ask(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), ==, 0);
	HOLDS(contract_free_bytes(), >=, before);
}

FACT(pool_event_release, MANUAL, SAME, "waiting for an event is such a synchronisation")
{
	CUmemoryPool pool;
	CUdeviceptr at;
	CUevent event;

	contract_context();
	pool = pool_of(0);
	OK(cuEventCreate, &event, 0);
	at = take(pool, 64 << 20, NULL);
	OK(cuMemFreeAsync, at, NULL);
	OK(cuEventRecord, event, NULL);
	OK(cuEventSynchronize, event);
	HOLDS(ask(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), ==, 0);
}

FACT(pool_threshold, MANUAL, SAME,
	"what is below the threshold stays until it is trimmed")
{
	CUmemoryPool pool;
	CUdeviceptr at;

	contract_context();
	pool = pool_of(0);
	keep(pool, 1ull << 40);
	HOLDS(ask(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), ==, 1ull << 40);
	at = take(pool, 64 << 20, NULL);
	OK(cuMemFreeAsync, at, NULL);
	OK(cuCtxSynchronize);
	HOLDS(ask(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), >=, 64 << 20);
	OK(cuMemPoolTrimTo, pool, 0);
	HOLDS(ask(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), ==, 0);
}

FACT(pool_trim_used, MANUAL, SAME, "a trim leaves what is in use, and what is to be kept")
{
	CUmemoryPool pool;
	CUdeviceptr first, second;

	contract_context();
	pool = pool_of(0);
	keep(pool, 1ull << 40);
	first = take(pool, 32 << 20, NULL);
	second = take(pool, 32 << 20, NULL);
	take(pool, 32 << 20, NULL);
	OK(cuMemFreeAsync, first, NULL);
	OK(cuMemFreeAsync, second, NULL);
	OK(cuCtxSynchronize);
	OK(cuMemPoolTrimTo, pool, 64 << 20);
	HOLDS(ask(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), >=, 64 << 20);
	OK(cuMemPoolTrimTo, pool, 0);
	HOLDS(ask(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), >=, 32 << 20);
	HOLDS(ask(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), <, 96 << 20);
}

FACT(pool_reuse_same, GUIDE, SAME, "a stream gets what it freed before, without waiting")
{
	CUmemoryPool pool;
	CUdeviceptr first, second;
	CUstream stream;
	int off = 0;

	contract_context();
	pool = pool_of(0);
	OK(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES,
		&off);
	stream = new_stream();
	first = take(pool, 32 << 20, stream);
	contract_spin(stream, 100);
	OK(cuMemFreeAsync, first, stream);
	second = take(pool, 32 << 20, stream);
	IS(ERROR_NOT_READY, cuStreamQuery, stream);
	HOLDS(second, ==, first);
	HOLDS(ask(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), ==, 32 << 20);
}

FACT(pool_reuse_apart, GUIDE, SAME,
	"another stream does not get it before the free is over, if it may not wait")
{
	CUmemoryPool pool;
	CUdeviceptr first, second;
	CUstream stream, other;
	int off = 0;

	contract_context();
	pool = pool_of(0);
	OK(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES,
		&off);
	stream = new_stream();
	other = new_stream();
	first = take(pool, 32 << 20, stream);
	contract_spin(stream, 100);
	OK(cuMemFreeAsync, first, stream);
	second = take(pool, 32 << 20, other);
	HOLDS(second, !=, first);
	OK(cuMemsetD32Async, second, 5, 1, other);
	OK(cuStreamSynchronize, other);
	HOLDS(contract_read(second), ==, 5);
}

FACT(pool_reuse_neighbours, GUIDE, SAME,
	"of two neighbours freed one after the other none is taken for the other")
{
	CUdeviceptr first, second, whole;
	CUmemoryPool pool;
	CUstream stream, other;
	int off = 0;

	contract_context();
	pool = pool_of(0);
	OK(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES,
		&off);
	stream = new_stream();
	other = new_stream();
	first = take(pool, 16 << 20, stream);
	second = take(pool, 16 << 20, stream);
	OK(cuMemFreeAsync, first, stream);
	contract_spin(stream, 300);
	OK(cuMemFreeAsync, second, stream);
	contract_sleep_ms(50);
	whole = take(pool, 32 << 20, other);
	IS(ERROR_NOT_READY, cuStreamQuery, stream);
	HOLDS(whole, !=, first < second ? first : second);
}

FACT(pool_free_back, MANUAL, SAME,
	"cuMemFree gives a block back to its pool, which lets it go")
{
	CUmemoryPool pool;
	CUdeviceptr at;

	contract_context();
	pool = pool_of(0);
	at = take(pool, 48 << 20, NULL);
	OK(cuMemFree_v2, at);
	OK(cuCtxSynchronize);
	HOLDS(ask(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), ==, 0);
	HOLDS(ask(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), ==, 0);
}

/* Frees 32 MiB that begin with 11, in the stream, behind a copy of their first word to the
 * address that is returned. */
static uint32_t *free_while_read(CUmemoryPool pool, CUstream stream)
{
	CUdeviceptr at = take(pool, 32 << 20, stream);
	uint32_t *seen;

	OK(cuMemAllocHost_v2, (void **)&seen, 4);
	OK(cuMemsetD32Async, at, 11, 1, stream);
	contract_spin(stream, 100);
	OK(cuMemcpyDtoHAsync_v2, seen, at, 4, stream);
	OK(cuMemFreeAsync, at, stream);
	return seen;
}

FACT(pool_reuse_wait, GUIDE, SAME,
	"memory another stream freed is not written before its time")
{
	CUmemoryPool pool;
	CUdeviceptr second;
	CUstream stream, other;
	uint32_t *seen;

	contract_context();
	pool = pool_of(0);
	stream = new_stream();
	other = new_stream();
	seen = free_while_read(pool, stream);
	second = take(pool, 32 << 20, other);
	OK(cuMemsetD32Async, second, 22, 1, other);
	OK(cuStreamSynchronize, other);
	OK(cuStreamSynchronize, stream);
	HOLDS(*seen, ==, 11);
	HOLDS(contract_read(second), ==, 22);
}

enum { CROWD = 4, ROUNDS = 60, HELD = 6 };
static CUmemoryPool crowd_pool;
static CUcontext crowd_context;

/* Allocates and frees on a stream of its own; every block keeps its mark from first to last. */
static void *crowd_member(void *arg)
{
	uint32_t member = (uint32_t)(uintptr_t)arg, seed = member * 7919 + 1;
	struct {
		CUdeviceptr at;
		uint32_t mark;
		size_t words;
	} held[HELD] = {{0}};
	CUstream stream;

	OK(cuCtxSetCurrent, crowd_context);
	stream = new_stream();
	for (uint32_t round = 0; round < ROUNDS * HELD; round++) {
		uint32_t slot = round % HELD, ends[2] = {0};

		if (held[slot].at) {
			OK(cuMemcpyDtoHAsync_v2, &ends[0], held[slot].at, 4, stream);
			OK(cuMemcpyDtoHAsync_v2, &ends[1],
				held[slot].at + 4 * (held[slot].words - 1), 4, stream);
			OK(cuStreamSynchronize, stream);
			HOLDS(ends[0], ==, held[slot].mark);
			HOLDS(ends[1], ==, held[slot].mark);
			OK(cuMemFreeAsync, held[slot].at, stream);
		}
		seed = seed * 1103515245 + 12345;
		held[slot].words = 1 + (seed >> 8) % 20000;
		held[slot].mark = member << 24 | round;
		held[slot].at = take(crowd_pool, held[slot].words * 4, stream);
		OK(cuMemsetD32Async, held[slot].at, held[slot].mark, held[slot].words,
			stream);
	}
	OK(cuStreamSynchronize, stream);
	return NULL;
}

FACT(pool_crowd, MANUAL, SAME,
	"many threads share a pool, and none gets what another has")
{
	pthread_t thread[CROWD];

	crowd_context = contract_context();
	crowd_pool = pool_of(0);
	for (uintptr_t i = 0; i < CROWD; i++)
		if (pthread_create(&thread[i], NULL, crowd_member, (void *)i))
			contract_skip("no threads");
	for (int i = 0; i < CROWD; i++)
		pthread_join(thread[i], NULL);
}

static bool destroyed_all;

static void *synchronises(void *arg)
{
	OK(cuCtxSetCurrent, crowd_context);
	while (!__atomic_load_n(&destroyed_all, __ATOMIC_RELAXED))
		OK(cuCtxSynchronize);
	return arg;
}

FACT(pool_destroy_beside, MANUAL, SAME,
	"a pool is destroyed while another thread synchronises")
{
	pthread_t thread;
	CUdeviceptr at;

	crowd_context = contract_context();
	/* With memory in a pool a synchronisation looks at all of them. */
	crowd_pool = pool_of(0);
	at = take(crowd_pool, 4096, NULL);
	if (pthread_create(&thread, NULL, synchronises, NULL))
		contract_skip("no thread");
	for (int i = 0; i < 20000; i++)
		OK(cuMemPoolDestroy, pool_of(0));
	__atomic_store_n(&destroyed_all, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	OK(cuMemFreeAsync, at, NULL);
}

FACT(pool_destroy_used, MANUAL, SAME,
	"a destroyed pool's memory stays while it is in use")
{
	size_t before;
	CUmemoryPool pool;
	CUdeviceptr at;

	contract_context();
	OK(cuMemsetD32_v2, contract_alloc(4096), 1, 1);
	OK(cuCtxSynchronize);
	before = contract_free_bytes();
	pool = pool_of(0);
	at = take(pool, 64 << 20, NULL);
	OK(cuMemPoolDestroy, pool);
	OK(cuMemsetD32_v2, at, 77, 1);
	HOLDS(contract_read(at), ==, 77);
	FAILS(cuMemPoolTrimTo, pool, 0);
	OK(cuMemFreeAsync, at, NULL);
	OK(cuCtxSynchronize);
	HOLDS(contract_free_bytes(), >=, before);
}

FACT(pool_max, MANUAL, SAME, "a pool with a size does not grow beyond it")
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
		.maxSize = 64 << 20};
	CUmemoryPool pool;
	CUdeviceptr at;

	contract_context();
	OK(cuMemPoolCreate, &pool, &props);
	take(pool, 48 << 20, NULL);
	IS(ERROR_OUT_OF_MEMORY, cuMemAllocFromPoolAsync, &at, 48 << 20, pool, NULL);
}

FACT(pool_oom, MANUAL, SAME, "more than the GPU has gives OUT_OF_MEMORY")
{
	size_t free_bytes, total;
	CUdeviceptr at;

	contract_context();
	OK(cuMemGetInfo_v2, &free_bytes, &total);
	IS(ERROR_OUT_OF_MEMORY, cuMemAllocAsync, &at, total + (64 << 20), NULL);
	IS(ERROR_OUT_OF_MEMORY, cuMemAllocAsync, &at, 1ull << 50, NULL);
}

FACT(pool_access, MANUAL, SAME, "a pool's device has access, and always will")
{
	CUmemAccessDesc none = {
		{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_NONE};
	CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
	CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	CUmemoryPool pool;

	contract_context();
	pool = pool_of(0);
	OK(cuMemPoolGetAccess, &flags, pool, &here);
	HOLDS(flags, ==, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	FAILS(cuMemPoolSetAccess, pool, &none, 1);
	none.location.id = 1000;
	FAILS(cuMemPoolSetAccess, pool, &none, 1);
}

FACT(pool_access_peer, MANUAL, SAME,
	"another device has no access to a pool before it is given, and then its kernels "
	"do")
{
	CUmemAccessDesc access = {
		{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemLocation there = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
	CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	CUdeviceptr at, later;
	CUcontext other;
	CUmemoryPool pool;
	int count = 0, can = 0;

	contract_context();
	OK(cuDeviceGetCount, &count);
	if (count > 1)
		OK(cuDeviceCanAccessPeer, &can, 1, 0);
	if (!can)
		contract_skip("no second GPU that could");
	pool = pool_of(0);
	at = take(pool, 1 << 20, NULL);
	OK(cuMemsetD32_v2, at, 6, 1);
	OK(cuCtxSynchronize);
	OK(cuMemPoolGetAccess, &flags, pool, &there);
	HOLDS(flags, ==, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	OK(cuMemPoolSetAccess, pool, &access, 1);
	OK(cuMemPoolGetAccess, &flags, pool, &there);
	HOLDS(flags, ==, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	later = take(pool, 64 << 20, NULL);
	OK(cuMemsetD32_v2, later, 8, 1);
	OK(cuCtxSynchronize);
	OK(cuDevicePrimaryCtxRetain, &other, 1);
	OK(cuCtxSetCurrent, other);
	contract_step(NULL, at, 7, 0);
	contract_step(NULL, later, 7, 0);
	OK(cuCtxSynchronize);
	HOLDS(contract_read(at), ==, 42);
	HOLDS(contract_read(later), ==, 56);
}

FACT(pool_pointer, MANUAL, SAME, "stream-ordered memory is device memory, and of a pool")
{
	CUmemoryPool pool, of = NULL;
	unsigned int type = 0, ipc = 9;
	CUdeviceptr at, base = 0;
	size_t bytes = 0;

	contract_context();
	OK(cuDeviceGetDefaultMemPool, &pool, 0);
	OK(cuMemAllocAsync, &at, 5000, NULL);
	OK(cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at);
	HOLDS(type, ==, CU_MEMORYTYPE_DEVICE);
	OK(cuPointerGetAttribute, &of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, at + 100);
	HOLDS((uintptr_t)of, ==, (uintptr_t)pool);
	OK(cuPointerGetAttribute, &ipc, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
		at);
	HOLDS(ipc, ==, 0);
	OK(cuMemGetAddressRange_v2, &base, &bytes, at + 100);
	HOLDS(base, ==, at);
	HOLDS(bytes, ==, 5000);
}

FACT(pool_free_wrong, MANUAL, SAME,
	"what is not allocated is not freed, and an error leaves what is")
{
	unsigned int type = 0;
	CUcontext of = (CUcontext)1;
	CUdeviceptr at;

	contract_context();
	at = take(pool_of(0), 5000, NULL);
	OK(cuPointerGetAttribute, &of, CU_POINTER_ATTRIBUTE_CONTEXT, at);
	HOLDS((uintptr_t)of, ==, 0);
	IS(ERROR_INVALID_VALUE, cuMemFreeAsync, at + 512, NULL);
	IS(ERROR_INVALID_VALUE, cuMemFree_v2, at + 512);
	OK(cuMemsetD32_v2, at, 9, 1);
	HOLDS(contract_read(at), ==, 9);
	OK(cuMemFreeAsync, at, NULL);
	IS(ERROR_INVALID_VALUE, cuMemFreeAsync, at, NULL);
	IS(ERROR_INVALID_VALUE, cuMemFree_v2, at);
	FAILS(cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at);
}

FACT(pool_stream_gone, GUIDE, SAME,
	"what was freed in a stream that is destroyed is reused once its work is over")
{
	CUmemoryPool pool;
	CUdeviceptr second;
	CUstream stream, other;
	uint32_t *seen;

	contract_context();
	pool = pool_of(0);
	stream = new_stream();
	other = new_stream();
	seen = free_while_read(pool, stream);
	OK(cuStreamDestroy_v2, stream);
	second = take(pool, 32 << 20, other);
	OK(cuMemsetD32Async, second, 22, 1, other);
	OK(cuCtxSynchronize);
	HOLDS(*seen, ==, 11);
	HOLDS(contract_read(second), ==, 22);
}

FACT(pool_host, MANUAL, SAME,
	"a pool on the host takes none of the GPU's, and both see it")
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}};
	CUmemAccessDesc access = {
		{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemoryPool pool;
	CUdeviceptr at;
	size_t before;

	contract_context();
	contract_step(NULL, contract_alloc(4096), 1, 1);
	OK(cuCtxSynchronize);
	OK(cuMemPoolCreate, &pool, &props);
	OK(cuMemPoolSetAccess, pool, &access, 1);
	before = contract_free_bytes();
	at = take(pool, 64 << 20, NULL);
	OK(cuStreamSynchronize, NULL);
	HOLDS(contract_free_bytes() + (8 << 20), >=, before);
	*(volatile uint32_t *)(uintptr_t)at = 6;
	contract_step(NULL, at, 7, 0);
	OK(cuCtxSynchronize);
	HOLDS(*(volatile uint32_t *)(uintptr_t)at, ==, 42);
	OK(cuMemFreeAsync, at, NULL);
}

FACT(pool_foreign, MANUAL, SAME, "only what was made for it can be exported")
{
	CUmemPoolPtrExportData data;
	CUmemoryPool pool;
	CUdeviceptr at;
	int fd = -1;

	contract_context();
	pool = pool_of(0);
	FAILS(cuMemPoolExportToShareableHandle, &fd, pool,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	at = take(pool, 4096, NULL);
	FAILS(cuMemPoolExportPointer, &data, at);
}

int contract_pool_import(void)
{
	CUmemPoolPtrExportData data;
	CUmemoryPool pool;
	CUdeviceptr at, none;

	contract_context();
	if (read(0, &data, sizeof(data)) != (ssize_t)sizeof(data))
		return 2;
	OK(cuMemPoolImportFromShareableHandle, &pool, (void *)(uintptr_t)3,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	FAILS(cuMemAllocFromPoolAsync, &none, 4096, pool, NULL);
	FAILS(cuDeviceSetMemPool, 0, pool);
	OK(cuMemPoolImportPointer, &at, pool, &data);
	HOLDS(contract_read(at), ==, 808);
	OK(cuMemsetD32_v2, at, 909, 1);
	OK(cuCtxSynchronize);
	OK(cuMemFreeAsync, at, NULL);
	OK(cuStreamSynchronize, NULL);
	return 0;
}

FACT(pool_export, MANUAL, SAME, "a pool and its memory can be used by another process")
{
	CUmemPoolPtrExportData data;
	CUmemoryPool pool;
	CUdeviceptr at;
	int fd = -1;

	contract_context();
	pool = pool_of(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	take(pool, 4096, NULL);
	at = take(pool, 1 << 20, NULL);
	OK(cuMemsetD32_v2, at, 808, 1);
	OK(cuCtxSynchronize);
	OK(cuMemPoolExportToShareableHandle, &fd, pool,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	OK(cuMemPoolExportPointer, &data, at);
	HOLDS(contract_again("pool_import", fd, &data, sizeof(data)), ==, 0);
	HOLDS(contract_read(at), ==, 909);
	close(fd);
	OK(cuMemFreeAsync, at, NULL);
	OK(cuCtxSynchronize);
}

FACT(pool_of_location, MANUAL, SAME, "places have pools as devices have")
{
	CUmemLocation device = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
		      host = {CU_MEM_LOCATION_TYPE_HOST, 0},
		      none = {CU_MEM_LOCATION_TYPE_INVALID, 0};
	CUmemoryPool pool, same;

	contract_context();
	OK(cuMemGetDefaultMemPool, &pool, &device, CU_MEM_ALLOCATION_TYPE_PINNED);
	OK(cuDeviceGetDefaultMemPool, &same, 0);
	HOLDS((uintptr_t)pool, ==, (uintptr_t)same);
	pool = pool_of(0);
	OK(cuMemSetMemPool, &device, CU_MEM_ALLOCATION_TYPE_PINNED, pool);
	OK(cuDeviceGetMemPool, &same, 0);
	HOLDS((uintptr_t)pool, ==, (uintptr_t)same);
	OK(cuMemGetMemPool, &same, &device, CU_MEM_ALLOCATION_TYPE_PINNED);
	HOLDS((uintptr_t)pool, ==, (uintptr_t)same);
	IS(ERROR_INVALID_VALUE, cuMemSetMemPool, &host, CU_MEM_ALLOCATION_TYPE_PINNED,
		pool);
	IS(ERROR_INVALID_VALUE, cuMemGetMemPool, &same, &none,
		CU_MEM_ALLOCATION_TYPE_PINNED);
}
