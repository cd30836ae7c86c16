/*
 * share - memory that others know: other processes, NICs, arrays, multicast objects, peers
 */
#include "../vmm-test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

/* --- memory that others know ------------------------------------------------------------------ */

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* peer-failures row 29: exported memory is held until it is gone; imported memory is not moved
 * here and not charged twice. */
static void body_export(void)
{
	CUmemGenericAllocationHandle a, b, mine;
	int fd = -1;

	start();
	a = create(4 * GRAIN);
	CHECK_EQ(bytes_held(), 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(cuMemExportToShareableHandle(
				 &fd, a, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
			CUDA_SUCCESS);
	CHECK_EQ(bytes_held(), 4 * GRAIN);
	CHECK(is_open(fd));
	CHECK_EQ(cuMemImportFromShareableHandle(&mine, (void *)(intptr_t)fd,
			 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
		CUDA_SUCCESS);
	CHECK_EQ(mine >> 48, TAG);
	check_books(4 * GRAIN);
	CHECK_EQ(cuMemRelease(mine), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(a), CUDA_SUCCESS);
	CHECK_EQ(bytes_held(), 0);
	/* If it may not be held it cannot be exported, and no descriptor is left. */
	b = create(3 * SL_GIB);
	a = create(2 * SL_GIB);
	CHECK_EQ(cuMemExportToShareableHandle(
			 &fd, b, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
		CUDA_SUCCESS);
	fake_lock();
	fake.deny = true;
	fake_unlock();
	CHECK_EQ(cuMemExportToShareableHandle(
			 &fd, a, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
		CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(!is_open(VMM(last_fd)));
	CHECK_EQ(bytes_held(), 3 * SL_GIB);
	CHECK_EQ(cuMemRelease(a), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(b), CUDA_SUCCESS);
	finish();
}

/* Made for others from the start. */
static void body_held_from_birth(void)
{
	CUmemAllocationProp props[4];
	CUmemGenericAllocationHandle handle;

	start();
	for (size_t i = 0; i < SL_ARRAY_LEN(props); i++)
		props[i] = prop_of(CU_MEM_LOCATION_TYPE_DEVICE, 0);
	props[0].requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
	props[1].allocFlags.compressionType = 1;
	props[2].allocFlags.gpuDirectRDMACapable = 1;
	props[3].allocFlags.usage = 1;
	for (size_t i = 0; i < SL_ARRAY_LEN(props); i++) {
		CHECK_EQ(cuMemCreate(&handle, GRAIN, &props[i], 0), CUDA_SUCCESS);
		CHECK_EQ(bytes_held(), GRAIN);
		check_books(GRAIN);
		CHECK_EQ(cuMemRelease(handle), CUDA_SUCCESS);
		CHECK_EQ(bytes_held(), 0);
	}
	/* A descriptor costs nothing until it is asked for. */
	props[0].requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	CHECK_EQ(cuMemCreate(&handle, GRAIN, &props[0], 0), CUDA_SUCCESS);
	CHECK_EQ(bytes_held(), 0);
	CHECK_EQ(cuMemRelease(handle), CUDA_SUCCESS);
	finish();
}

/* The program's list stays as it is; the driver sees its own handles, in short lists and long
 * ones. */
static void body_tiles(void)
{
	static CUarrayMapInfo list[40], copy[40];
	CUmemGenericAllocationHandle a;

	start();
	a = create(GRAIN);
	for (size_t i = 0; i < SL_ARRAY_LEN(list); i++)
		list[i].memHandle.memHandle = a;
	memcpy(copy, list, sizeof(list));
	for (unsigned int count = 1; count <= 40; count += 13) {
		CHECK_EQ(cuMemMapArrayAsync(list, count, NULL), CUDA_SUCCESS);
		CHECK(VMM(last_tile) && VMM(last_tile) != a);
	}
	CHECK_EQ(memcmp(copy, list, sizeof(list)), 0);
	CHECK_EQ(bytes_held(), GRAIN);
	CHECK_EQ(cuMemRelease(a), CUDA_SUCCESS);
	CHECK_EQ(cuMemMapArrayAsync(list, 3, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(VMM(last_tile), 0);
	finish();
}

static void body_multicast(void)
{
	const CUmulticastObjectProp prop = {.numDevices = 2, .size = 8 * GRAIN};
	CUmemGenericAllocationHandle object, a, b;
	CUdeviceptr at, region;

	start();
	CHECK_EQ(cuMulticastCreate(&object, &prop), CUDA_SUCCESS);
	CHECK_EQ(object >> 48, TAG);
	CHECK_EQ(cuMulticastAddDevice(object, 0), CUDA_SUCCESS);
	a = create(2 * GRAIN);
	b = create(GRAIN);
	CHECK_EQ(cuMulticastBindMem(object, 0, a, 0, 2 * GRAIN, 0), CUDA_SUCCESS);
	CHECK_EQ(bytes_held(), 2 * GRAIN);
	at = reserve(GRAIN);
	CHECK_EQ(cuMemMap(at, GRAIN, 0, b, 0), CUDA_SUCCESS);
	CHECK_EQ(cuMulticastBindAddr(object, 4 * GRAIN, at, GRAIN, 0), CUDA_SUCCESS);
	CHECK_EQ(bytes_held(), 3 * GRAIN);
	/* Bound memory outlives its handle, and is charged. */
	CHECK_EQ(cuMemRelease(a), CUDA_SUCCESS);
	check_books(3 * GRAIN);
	/* A refusal changes nothing. */
	vmm_stub.calls = 0;
	vmm_stub.fault_at = 1;
	CHECK_EQ(cuMulticastUnbind(object, 0, 0, 2 * GRAIN), CUDA_ERROR_UNKNOWN);
	CHECK_EQ(bytes_held(), 3 * GRAIN);
	vmm_stub.calls = 0;
	CHECK_EQ(cuMulticastBindMem(object, 0, b, 0, GRAIN, 0), CUDA_ERROR_UNKNOWN);
	CHECK_EQ(bytes_held(), 3 * GRAIN);
	vmm_stub.fault_at = 0;
	CHECK_EQ(cuMulticastUnbind(object, 1, 0, 2 * GRAIN), CUDA_SUCCESS);
	CHECK_EQ(bytes_held(), 3 * GRAIN); /* another device's */
	CHECK_EQ(cuMulticastUnbind(object, 0, 0, 2 * GRAIN), CUDA_SUCCESS);
	CHECK_EQ(bytes_held(), GRAIN);
	check_books(GRAIN);
	/* Memory of cuMemAlloc; it goes with the object, as the rest. */
	CHECK_EQ(cuMemAlloc_v2(&region, 64 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMulticastBindAddr(object, 0, region, 64 * SL_MIB, 0), CUDA_SUCCESS);
	CHECK_EQ(bytes_held(), 64 * SL_MIB + GRAIN);
	CHECK_EQ(cuMemRelease(object), CUDA_SUCCESS);
	CHECK_EQ(bytes_held(), 0);
	CHECK_EQ(cuMemUnmap(at, GRAIN), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(b), CUDA_SUCCESS);
	CHECK_EQ(cuMemAddressFree(at, GRAIN), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(region), CUDA_SUCCESS);
	finish();
}

/* The same with the device named, and for endpoints, whose end is never announced. */
static void body_multicast_v2(void)
{
	const CUmulticastObjectProp prop = {.numDevices = 2, .size = 8 * GRAIN};
	CUmemGenericAllocationHandle object, a;
	CUdeviceptr region;

	start();
	CHECK_EQ(cuMulticastCreate(&object, &prop), CUDA_SUCCESS);
	a = create(GRAIN);
	CHECK_EQ(cuMulticastBindMem_v2(object, 0, 0, a, 0, GRAIN, 0), CUDA_SUCCESS);
	CHECK_EQ(bytes_held(), GRAIN);
	CHECK_EQ(cuMulticastUnbind(object, 0, 0, GRAIN), CUDA_SUCCESS);
	CHECK_EQ(bytes_held(), 0);
	CHECK_EQ(cuMemAlloc_v2(&region, 64 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMulticastBindAddr_v2(object, 0, GRAIN, region, 64 * SL_MIB, 0),
		CUDA_SUCCESS);
	CHECK_EQ(bytes_held(), 64 * SL_MIB);
	/* Freed while bound: gone, and the unbind finds nothing to drop. */
	CHECK_EQ(cuMemFree_v2(region), CUDA_SUCCESS);
	CHECK_EQ(bytes_held(), 0);
	CHECK_EQ(cuMulticastUnbind(object, 0, GRAIN, 64 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(object), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(&region, 64 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuLogicalEndpointBindMem(1, 0, 0, a, 0, GRAIN, 0), CUDA_SUCCESS);
	CHECK_EQ(cuLogicalEndpointBindAddr(
			 1, 0, 0, (void *)(uintptr_t)region, 64 * SL_MIB, 0),
		CUDA_SUCCESS);
	CHECK_EQ(bytes_held(), 64 * SL_MIB + GRAIN);
	CHECK_EQ(cuMemRelease(a), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(region), CUDA_SUCCESS);
	finish();
}

/* peer-failures row 29: a descriptor of addresses keeps the pages of now. */
static void body_address_range(void)
{
	CUmemGenericAllocationHandle a;
	CUdeviceptr at, region;
	int fd = -1;

	start();
	at = reserve(2 * GRAIN);
	a = create(2 * GRAIN);
	CHECK_EQ(cuMemMap(at, 2 * GRAIN, 0, a, 0), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(&region, 64 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemGetHandleForAddressRange(
			 &fd, at + GRAIN, GRAIN, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
		CUDA_SUCCESS);
	CHECK_EQ(bytes_held(), 2 * GRAIN);
	CHECK(is_open(fd));
	CHECK_EQ(cuMemGetHandleForAddressRange(&fd, region, 64 * SL_MIB,
			 CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
		CUDA_SUCCESS);
	CHECK_EQ(bytes_held(), 2 * GRAIN + 64 * SL_MIB);
	CHECK_EQ(cuMemFree_v2(region), CUDA_SUCCESS);
	/* What may not be held is not given out. */
	CHECK_EQ(cuMemAlloc_v2(&region, 5 * SL_GIB), CUDA_SUCCESS);
	fake_lock();
	fake.deny = true;
	fake_unlock();
	CHECK_EQ(cuMemGetHandleForAddressRange(
			 &fd, region, 5 * SL_GIB, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
		CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(!is_open(VMM(last_fd)));
	CHECK_EQ(bytes_held(), 2 * GRAIN);
	CHECK_EQ(cuMemFree_v2(region), CUDA_SUCCESS);
	CHECK_EQ(cuMemUnmap(at, 2 * GRAIN), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(a), CUDA_SUCCESS);
	CHECK_EQ(cuMemAddressFree(at, 2 * GRAIN), CUDA_SUCCESS);
	finish();
}

static unsigned int sync_memops(CUdeviceptr at)
{
	unsigned int on = 7;

	CHECK_EQ(cuPointerGetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, at), 0);
	return on;
}

/* A NIC's library names the memory that it is about to register. */
static void body_registration(void)
{
	CUdeviceptr region, slot, other;
	unsigned int yes = 1, no = 0;

	start();
	CHECK_EQ(cuMemAlloc_v2(&region, 64 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(&slot, 100), CUDA_SUCCESS);
	CHECK_EQ(cuPointerSetAttribute(&no, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, region), 0);
	CHECK_EQ(bytes_held(), 0);
	CHECK_EQ(
		cuPointerSetAttribute(&yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, region + 5),
		CUDA_SUCCESS);
	CHECK_EQ(bytes_held(), 64 * SL_MIB);
	CHECK_EQ(cuPointerSetAttribute(&yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, slot), 0);
	CHECK_EQ(bytes_held(), 66 * SL_MIB);
	/* Each allocation has its own, also where two share a slab. */
	CHECK_EQ(cuMemAlloc_v2(&other, 100), CUDA_SUCCESS);
	CHECK_EQ(sync_memops(region), 1);
	CHECK_EQ(sync_memops(slot + 99), 1);
	CHECK_EQ(sync_memops(other), 0);
	CHECK_EQ(cuPointerSetAttribute(&no, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, region), 0);
	CHECK_EQ(sync_memops(region), 0);
	CHECK_EQ(cuMemFree_v2(region), CUDA_SUCCESS);
	CHECK_EQ(bytes_held(), 2 * SL_MIB);
	CHECK_EQ(
		cuPointerSetAttribute(&yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, slot + 100),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuCtxDestroy_v2(ctx), CUDA_SUCCESS);
	finish();
}

/* --- peers ------------------------------------------------------------------------------------ */

static void check_open(CUdeviceptr at, uint64_t bytes, bool open)
{
	for (uint64_t i = 0; i < bytes; i += GRAIN)
		CHECK_EQ(vmm_stub_access(at + i, 1),
			open ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
			     : CU_MEM_ACCESS_FLAGS_PROT_NONE);
}

/* Present and new memory, slabs, two users of one device; all closed and dropped at the end. */
static void body_peers(void)
{
	CUdeviceptr region, slot, later, small;
	CUcontext first, second, old;

	start();
	CHECK_EQ(cuMemAlloc_v2(&region, 64 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(&slot, 100), CUDA_SUCCESS);
	second = stub_make_current(1);
	first = stub_make_current(1);
	CHECK_EQ(cuCtxEnablePeerAccess(ctx, 0), CUDA_SUCCESS);
	check_open(region, 64 * SL_MIB, true);
	check_open(slot, 100, true);
	CHECK_EQ(bytes_held(), 66 * SL_MIB);
	CHECK_EQ(sl_real.cuCtxPopCurrent_v2(&old), CUDA_SUCCESS);
	CHECK_EQ(cuCtxEnablePeerAccess(ctx, 0), CUDA_SUCCESS);
	CHECK_EQ(bytes_held(), 66 * SL_MIB);
	CHECK_EQ(sl_real.cuCtxPushCurrent_v2(ctx), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(&later, 32 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(&small, 1 * SL_MIB), CUDA_SUCCESS);
	check_open(later, 32 * SL_MIB, true);
	check_open(small, 100, true);
	CHECK_EQ(bytes_held(), 100 * SL_MIB);
	CHECK_EQ(cuMemFree_v2(region), CUDA_SUCCESS);
	CHECK_EQ(bytes_held(), 36 * SL_MIB);
	CHECK_EQ(sl_real.cuCtxPopCurrent_v2(&old), CUDA_SUCCESS);
	/* The other one of the device still may. */
	CHECK_EQ(cuCtxDisablePeerAccess(ctx), CUDA_SUCCESS);
	check_open(later, 32 * SL_MIB, true);
	CHECK_EQ(cuCtxDestroy_v2(first), CUDA_SUCCESS);
	check_open(later, 32 * SL_MIB, false);
	check_open(small, 100, false);
	CHECK_EQ(bytes_held(), 0);
	CHECK_EQ(cuCtxEnablePeerAccess(ctx, 0), CUDA_SUCCESS);
	CHECK_EQ(bytes_held(), 36 * SL_MIB);
	CHECK_EQ(cuCtxDestroy_v2(ctx), CUDA_SUCCESS);
	CHECK_EQ(bytes_held(), 0);
	CHECK_EQ(cuCtxDestroy_v2(second), CUDA_SUCCESS);
	finish();
}

/* Memory that may not be held cannot be opened: nothing is. */
static void body_peers_refused(void)
{
	CUdeviceptr one, two;

	start();
	CHECK_EQ(cuMemAlloc_v2(&one, 3 * SL_GIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(&two, 3 * SL_GIB), CUDA_SUCCESS);
	stub_make_current(1);
	fake_lock();
	fake.deny = true;
	fake_unlock();
	CHECK_EQ(cuCtxEnablePeerAccess(ctx, 0), CUDA_ERROR_OUT_OF_MEMORY);
	check_open(one, 1, false);
	check_open(two, 1, false);
	CHECK_EQ(bytes_held(), 0);
	CHECK_EQ(cuCtxDestroy_v2(ctx), CUDA_SUCCESS);
	finish();
}

/* The last reason goes while another one comes: whichever is first, the memory stays held. */
#define RACES 15000
static struct sl_handle *raced;
static _Atomic unsigned int race_begun, race_done;

static void *unbinder(void *arg)
{
	for (unsigned int i = 1; i <= RACES; i++) {
		while (race_begun != i)
			sched_yield();
		for (volatile unsigned int n = i % 100; n; n--)
			; /* at every point of the other's call, sooner or later */
		sl_handle_unbind(raced);
		race_done = i;
	}
	return NULL;
}

static void body_hold_race(void)
{
	CUmemGenericAllocationHandle handle, real;
	pthread_t thread;

	start();
	CHECK_EQ(pthread_create(&thread, NULL, unbinder, NULL), 0);
	for (unsigned int i = 1; i <= RACES; i++) {
		handle = create(GRAIN);
		raced = sl_handle_use(handle, &real);
		CHECK(sl_handle_hold(raced, SL_WHY_BOUND));
		race_begun = i;
		CHECK(sl_handle_hold(raced, SL_WHY_EXPORTED));
		while (race_done != i)
			sched_yield();
		CHECK_EQ(sl_held_bytes(gpu), GRAIN);
		sl_handle_leave(raced);
		CHECK_EQ(cuMemRelease(handle), CUDA_SUCCESS);
	}
	pthread_join(thread, NULL);
	finish();
}

#define TEST(name)                            \
	static void test_##name(void **state) \
	{                                     \
		in_child(body_##name, 60);    \
	}
#define TESTS(X)           \
	X(export)          \
	X(held_from_birth) \
	X(tiles)           \
	X(multicast)       \
	X(multicast_v2)    \
	X(hold_race)       \
	X(address_range)   \
	X(registration)    \
	X(peers)           \
	X(peers_refused)
TESTS(TEST)
#define ROW(name) cmocka_unit_test(test_##name),

int main(void)
{
	const struct CMUnitTest tests[] = {TESTS(ROW)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
