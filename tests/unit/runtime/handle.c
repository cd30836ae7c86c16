/*
 * handle - the program's own handles, against a driver that counts and a fake daemon
 *
 * After every scene three books agree: what lives in the driver, what the daemon has granted, and what
 * is remembered in between.
 */
#include "runtime/handle.h"
#include "child.h"
#include "fake.h"
#include "stub.h"
#include "vmm-stub.h"

#include "runtime/device.h"
#include "runtime/held.h"
#include "runtime/hooks.h"
#include "runtime/passed.h"
#include "runtime/session.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#define GRAIN (2 * SL_MIB)
#define TAG   0x5ac0

static CUcontext ctx;
static struct sl_gpu *gpu;

static void start(void)
{
	stub_install();
	vmm_stub_install();
	fake_start(true);
	fake.gpus = 2;
	fake_listen();
	CHECK_EQ(cuInit(0), CUDA_SUCCESS);
	ctx = stub_make_current(0);
	gpu = sl_device_gpu(0);
	CHECK(gpu);
}

/* Without the grain that stays for the next one. */
static uint64_t bytes_held(void)
{
	(void)sl_passed_trim();
	return sl_held_bytes(gpu);
}

/* The daemon has read all; the driver has `bytes`, and so many are charged, but for spare grains. */
static void check_books(uint64_t bytes)
{
	(void)sl_passed_trim();
	CHECK(fake_wait_u64(&fake.uncommitted_bytes, 0));
	if (!fake_wait_u64(&fake.held_bytes, bytes))
		CHECK_EQ(FAKE(held_bytes), bytes);
	CHECK_EQ(VMM(device_bytes), bytes);
	CHECK(!FAKE(protocol_error));
}

static void finish(void)
{
	struct sl_handle_counts counts = sl_handle_count();

	check_books(0);
	CHECK_EQ(VMM(live), 0);
	CHECK_EQ(VMM(references), 0);
	CHECK_EQ(VMM(reserved), 0);
	CHECK_EQ(counts.handles, 0);
	CHECK_EQ(counts.mappings, 0);
	CHECK_EQ(counts.ranges, 0);
	CHECK_EQ(counts.promised, 0);
	CHECK_EQ(bytes_held(), 0);
	CHECK(fake_wait_u64(&fake.unevictable_bytes, 0));
	fake_stop();
}

static CUmemAllocationProp prop_of(CUmemLocationType type, int id)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = type, .id = id},
	};

	return prop;
}

static CUmemGenericAllocationHandle create(uint64_t bytes)
{
	CUmemAllocationProp prop = prop_of(CU_MEM_LOCATION_TYPE_DEVICE, 0);
	CUmemGenericAllocationHandle handle = 0;

	CHECK_EQ(cuMemCreate(&handle, bytes, &prop, 0), CUDA_SUCCESS);
	CHECK_EQ(handle >> 48, TAG);
	return handle;
}

static CUdeviceptr reserve(uint64_t bytes)
{
	CUdeviceptr at = 0;

	CHECK_EQ(cuMemAddressReserve(&at, bytes, 0, 0, 0), CUDA_SUCCESS);
	return at;
}

static void allow(CUdeviceptr at, uint64_t bytes)
{
	CUmemAccessDesc access = {
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};

	CHECK_EQ(cuMemSetAccess(at, bytes, &access, 1), CUDA_SUCCESS);
}

/* --- a handle's life -------------------------------------------------------------------------------- */

/* peer-failures rows 7 and 31: references and mappings end in any order; nothing is given back twice, and
 * what has no match is refused and counts nowhere. */
static void body_life(void)
{
	CUmemGenericAllocationHandle a, b;
	CUdeviceptr at;

	start();
	at = reserve(8 * GRAIN);
	a = create(2 * GRAIN);
	b = create(GRAIN);
	CHECK(a != b);
	check_books(3 * GRAIN);
	CHECK_EQ(cuMemMap(at, 2 * GRAIN, 0, a, 0), CUDA_SUCCESS);
	allow(at, 2 * GRAIN);
	/* Released, but mapped: it lives, and is charged. */
	CHECK_EQ(cuMemRelease(a), CUDA_SUCCESS);
	check_books(3 * GRAIN);
	CHECK_EQ(cuMemRelease(a), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(VMM(last), 0);
	CHECK_EQ(cuMemMap(at + 4 * GRAIN, 2 * GRAIN, 0, a, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemUnmap(at, 2 * GRAIN), CUDA_SUCCESS);
	check_books(GRAIN);
	CHECK_EQ(cuMemUnmap(at, 2 * GRAIN), CUDA_ERROR_INVALID_VALUE);
	/* The other order. */
	CHECK_EQ(cuMemMap(at, GRAIN, 0, b, 0), CUDA_SUCCESS);
	CHECK_EQ(cuMemUnmap(at, GRAIN), CUDA_SUCCESS);
	check_books(GRAIN);
	CHECK_EQ(cuMemRelease(b), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(b), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemAddressFree(at, 8 * GRAIN), CUDA_SUCCESS);
	CHECK_EQ(cuMemAddressFree(at, 8 * GRAIN), CUDA_ERROR_INVALID_VALUE);
	finish();
}

static void body_retain(void)
{
	CUmemGenericAllocationHandle a, again = 0;
	CUdeviceptr at;

	start();
	at = reserve(2 * GRAIN);
	a = create(GRAIN);
	CHECK_EQ(cuMemMap(at, GRAIN, 0, a, 0), CUDA_SUCCESS);
	CHECK_EQ(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(at + 100)), 0);
	CHECK_EQ(again, a);
	CHECK_EQ(cuMemRelease(a), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(a), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(a), CUDA_ERROR_INVALID_VALUE);
	/* Without a reference left the address still gives the handle that was mapped. */
	again = 0;
	CHECK_EQ(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)at), 0);
	CHECK_EQ(again, a);
	CHECK_EQ(cuMemMap(at + GRAIN, GRAIN, 0, again, 0), CUDA_SUCCESS);
	CHECK_EQ(cuMemUnmap(at, 2 * GRAIN), CUDA_SUCCESS);
	check_books(GRAIN);
	CHECK_EQ(cuMemRelease(again), CUDA_SUCCESS);
	CHECK_EQ(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)at),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemAddressFree(at, 2 * GRAIN), CUDA_SUCCESS);
	finish();
}

/* PyTorch's way: a large range, pieces made, mapped and released at once, unmapped in runs. */
static void body_expandable(void)
{
	enum { COUNT = 512 };
	CUdeviceptr at;

	start();
	at = reserve(COUNT * GRAIN);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < COUNT; i++) {
			/* Not in order, so that the index is put together from all sides. */
			CUdeviceptr piece = at + (uint64_t)(i * 37 % COUNT) * GRAIN;
			CUmemGenericAllocationHandle handle = create(GRAIN);

			CHECK_EQ(cuMemMap(piece, GRAIN, 0, handle, 0), CUDA_SUCCESS);
			allow(piece, GRAIN);
			CHECK_EQ(cuMemRelease(handle), CUDA_SUCCESS);
		}
		CHECK_EQ(sl_handle_count().mappings, COUNT);
		CHECK_EQ(cuMemUnmap(at + 10 * GRAIN, 100 * GRAIN), CUDA_SUCCESS);
		CHECK_EQ(sl_handle_count().mappings, COUNT - 100);
		check_books((COUNT - 100) * GRAIN);
		CHECK_EQ(cuMemUnmap(at + 5 * GRAIN, 6 * GRAIN), CUDA_ERROR_INVALID_VALUE);
		CHECK_EQ(cuMemUnmap(at, 10 * GRAIN), CUDA_SUCCESS);
		CHECK_EQ(cuMemUnmap(at + 110 * GRAIN, (COUNT - 110) * GRAIN), 0);
		check_books(0);
	}
	CHECK_EQ(cuMemAddressFree(at, COUNT * GRAIN), CUDA_SUCCESS);
	finish();
}

/* --- where memory lies --------------------------------------------------------------------------------- */

/* peer-failures row 2: a location that is no device's has an id that means nothing, and costs no GPU
 * memory. */
static void body_locations(void)
{
	static const struct {
		CUmemLocationType type;
		int id;
		uint64_t charged_bytes;
	} rows[] = {
		{CU_MEM_LOCATION_TYPE_DEVICE, 1, GRAIN},
		{CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN, 0x0101, GRAIN},
		{CU_MEM_LOCATION_TYPE_HOST, 0x7fffffff, 0},
		{CU_MEM_LOCATION_TYPE_HOST, -1, 0},
		{CU_MEM_LOCATION_TYPE_HOST_NUMA, 0, 0},
		{CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, -559038737, 0},
		{CU_MEM_LOCATION_TYPE_DEVICE, -1, 0}, /* this driver takes anything */
		{CU_MEM_LOCATION_TYPE_DEVICE, 1000, 0},
	};
	CUmemGenericAllocationHandle handle;

	start();
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		CUmemAllocationProp prop = prop_of(rows[i].type, rows[i].id), told;
		unsigned int asks = FAKE(asks);

		(void)sl_passed_trim();
		CHECK_EQ(cuMemCreate(&handle, GRAIN, &prop, 0), CUDA_SUCCESS);
		CHECK_EQ(handle >> 48, TAG);
		CHECK_EQ(FAKE(asks) - asks, rows[i].charged_bytes ? 1 : 0);
		CHECK(fake_wait_u64(&fake.held_bytes, rows[i].charged_bytes));
		CHECK_EQ(cuMemGetAllocationPropertiesFromHandle(&told, handle), 0);
		CHECK_EQ(told.location.type, rows[i].type);
		CHECK_EQ(told.location.id, rows[i].id);
		CHECK_EQ(cuMemRelease(handle), CUDA_SUCCESS);
	}
	finish();
}

/* What the driver refuses costs no wait; NULL is its affair, too. */
static void body_arguments(void)
{
	CUmemAllocationProp prop = prop_of(CU_MEM_LOCATION_TYPE_DEVICE, 0);
	CUmemGenericAllocationHandle handle = 7, real;
	unsigned int asks;

	start();
	asks = FAKE(asks);
	CHECK_EQ(cuMemCreate(&handle, 0, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemCreate(&handle, 4096, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemCreate(&handle, GRAIN, &prop, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(handle, 7);
	CHECK_EQ(FAKE(asks), asks);
	/* No ids of ours: the driver sees what the program passed. */
	CHECK_EQ(cuMemRelease(0x123456), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(VMM(last), 0x123456);
	CHECK_EQ(sl_real.cuMemCreate(&real, GRAIN, &prop, 0), CUDA_SUCCESS);
	CHECK_EQ(cuMemGetAllocationPropertiesFromHandle(&prop, real), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(real), CUDA_SUCCESS);
	/* An id that never was. */
	CHECK_EQ(cuMemRelease(0x5ac0000000ffffffull), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(VMM(last), 0);
	finish();
}

/* Our ranges behind cuMemAlloc are none of the program's, at whichever end it touches them. */
static void body_regions(void)
{
	CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemGenericAllocationHandle handle, again;
	unsigned long long flags;
	unsigned int calls;
	CUdeviceptr a, slot;

	start();
	CHECK_EQ(cuMemAlloc_v2(&a, 64 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(&slot, 100), CUDA_SUCCESS);
	handle = create(GRAIN);
	calls = VMM(calls);
	CHECK_EQ(cuMemUnmap(a, 64 * SL_MIB), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemUnmap(a - GRAIN, 2 * GRAIN), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemUnmap(slot, GRAIN), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemUnmap(0, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemAddressFree(a, 64 * SL_MIB), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemMap(a + GRAIN, GRAIN, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemSetAccess(a, 64 * SL_MIB, &access, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemGetAccess(&flags, &access.location, a), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)a),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(VMM(calls), calls);
	CHECK_EQ(cuMemRelease(handle), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(slot), CUDA_SUCCESS);
	CHECK_EQ(cuCtxDestroy_v2(ctx), CUDA_SUCCESS);
	finish();
}

/* --- what is remembered --------------------------------------------------------------------------------- */

static struct sl_mapping *first_mapping(CUmemGenericAllocationHandle id)
{
	CUmemGenericAllocationHandle real;
	struct sl_handle *handle = sl_handle_use(id, &real);
	struct sl_mapping *mapping;

	CHECK(handle);
	CHECK(!sl_list_is_empty(&handle->mappings));
	mapping = SL_LIST_ENTRY(handle->mappings.next, struct sl_mapping, link);
	sl_handle_leave(handle);
	return mapping;
}

static void body_accesses(void)
{
	CUmemAccessDesc both[2] = {
		{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
		{{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READ},
	};
	CUmemGenericAllocationHandle a, b;
	struct sl_mapping *m;
	CUdeviceptr at;

	start();
	at = reserve(2 * GRAIN);
	a = create(GRAIN);
	b = create(GRAIN);
	CHECK_EQ(cuMemMap(at, GRAIN, 0, a, 0), CUDA_SUCCESS);
	CHECK_EQ(cuMemMap(at + GRAIN, GRAIN, 0, b, 0), CUDA_SUCCESS);
	m = first_mapping(b);
	CHECK_EQ(m->extent.address, at + GRAIN);
	CHECK_EQ(m->extent.bytes, GRAIN);
	CHECK_EQ(m->access_count, 0);
	CHECK_EQ(cuMemSetAccess(at, 2 * GRAIN, both, 2), CUDA_SUCCESS);
	CHECK_EQ(m->access_count, 2);
	CHECK_EQ(m->accesses[1].where.id, 1);
	CHECK_EQ(m->accesses[1].flags, CU_MEM_ACCESS_FLAGS_PROT_READ);
	both[0].flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	CHECK_EQ(cuMemSetAccess(at + GRAIN, GRAIN, both, 1), CUDA_SUCCESS);
	CHECK_EQ(m->access_count, 1);
	CHECK_EQ(m->accesses[0].where.id, 1);
	CHECK_EQ(first_mapping(a)->access_count, 2);
	/* One that fails half-way: what the driver has then is what is remembered. */
	both[0].flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
	both[1].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	vmm_stub.access_result = CUDA_ERROR_UNKNOWN;
	CHECK_EQ(cuMemSetAccess(at + GRAIN, GRAIN, both, 2), CUDA_ERROR_UNKNOWN);
	CHECK_EQ(m->access_count, 2);
	for (uint32_t i = 0; i < m->access_count; i++) {
		CHECK_EQ(m->accesses[i].flags, CU_MEM_ACCESS_FLAGS_PROT_READ);
		CHECK_EQ(m->accesses[i].flags,
			vmm_stub_access(at + GRAIN, m->accesses[i].where.id));
	}
	/* A list that is no memory is the driver's to refuse. */
	CHECK_EQ(cuMemSetAccess(at + 8 * GRAIN, GRAIN, both, SIZE_MAX),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemUnmap(at, 2 * GRAIN), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(a), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(b), CUDA_SUCCESS);
	CHECK_EQ(cuMemAddressFree(at, 2 * GRAIN), CUDA_SUCCESS);
	finish();
}

/* Threads raced: a mapping that the driver no longer has gives way to the one it has now. */
static void body_stale(void)
{
	CUmemGenericAllocationHandle a, b;
	CUdeviceptr at;

	start();
	at = reserve(GRAIN);
	a = create(GRAIN);
	b = create(GRAIN);
	CHECK_EQ(cuMemMap(at, GRAIN, 0, a, 0), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(a), CUDA_SUCCESS);
	CHECK_EQ(sl_real.cuMemUnmap(at, GRAIN), CUDA_SUCCESS);
	CHECK_EQ(cuMemMap(at, GRAIN, 0, b, 0), CUDA_SUCCESS);
	check_books(GRAIN);
	CHECK_EQ(cuMemUnmap(at, GRAIN), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(b), CUDA_SUCCESS);
	CHECK_EQ(cuMemAddressFree(at, GRAIN), CUDA_SUCCESS);
	finish();
}

/* --- when there is no memory ----------------------------------------------------------------------------- */

/* peer-failures row 9: exactly CUDA_ERROR_OUT_OF_MEMORY, and the next try is a try. */
static void body_out_of_memory(void)
{
	CUmemAllocationProp prop = prop_of(CU_MEM_LOCATION_TYPE_DEVICE, 0);
	CUmemGenericAllocationHandle handle = 7;

	start();
	CHECK_EQ(cuMemCreate(&handle, 9 * SL_GIB, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(handle, 7);
	check_books(0);
	/* Granted, but the driver has it not yet: asked for again, and the program sees nothing. */
	vmm_stub.no_memory = 1;
	CHECK_EQ(cuMemCreate(&handle, GRAIN, &prop, 0), CUDA_SUCCESS);
	CHECK_EQ(FAKE(fails), 1);
	check_books(GRAIN);
	CHECK_EQ(cuMemRelease(handle), CUDA_SUCCESS);
	finish();
}

/* Whichever call of the driver fails, nothing is lost, and trying again works. */
static void scene(void)
{
	CUmemAllocationProp prop = prop_of(CU_MEM_LOCATION_TYPE_DEVICE, 0);
	CUmemAccessDesc access = {
		{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle a, b, c;
	CUdeviceptr at;

#define UNTIL(call)                                       \
	do {                                              \
		CUresult until_ = (call);                 \
                                                          \
		if (until_ != CUDA_SUCCESS) {             \
			CHECK_EQ(until_, vmm_stub.fault); \
			CHECK_EQ((call), CUDA_SUCCESS);   \
		}                                         \
	} while (0)
	UNTIL(cuMemAddressReserve(&at, 4 * GRAIN, 0, 0, 0));
	UNTIL(cuMemCreate(&a, GRAIN, &prop, 0));
	UNTIL(cuMemCreate(&b, GRAIN, &prop, 0));
	UNTIL(cuMemMap(at, GRAIN, 0, a, 0));
	UNTIL(cuMemMap(at + GRAIN, GRAIN, 0, b, 0));
	UNTIL(cuMemSetAccess(at, 2 * GRAIN, &access, 1));
	UNTIL(cuMemRelease(a));
	UNTIL(cuMemRetainAllocationHandle(&c, (void *)(uintptr_t)at));
	CHECK_EQ(c, a);
	UNTIL(cuMemRelease(c));
	UNTIL(cuMemUnmap(at, 2 * GRAIN));
	UNTIL(cuMemRelease(b));
	UNTIL(cuMemAddressFree(at, 4 * GRAIN));
}

static void body_faults(void)
{
	unsigned int count;

	start();
	scene();
	count = VMM(calls);
	CHECK(count >= 12);
	for (unsigned int i = 1; i <= count; i++) {
		vmm_stub.calls = 0;
		vmm_stub.fault_at = i;
		scene();
		vmm_stub.fault_at = 0;
		CHECK_EQ(VMM(live), 0);
		check_books(0);
	}
	finish();
}

/* --- memory that others know -------------------------------------------------------------------------------- */

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* peer-failures row 29: exported memory is held until it is gone; imported memory is nobody's to move
 * and not charged twice. */
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

/* The program's list stays as it is; the driver sees its own handles, in short lists and long ones. */
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

/* The same with the device named, and for endpoints, of which nobody says when they end. */
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

/* A NIC's library says what it is about to register. */
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

/* --- peers ---------------------------------------------------------------------------------------------------- */

static void check_open(CUdeviceptr at, uint64_t bytes, bool open)
{
	for (uint64_t i = 0; i < bytes; i += GRAIN)
		CHECK_EQ(vmm_stub_access(at + i, 1),
			open ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
			     : CU_MEM_ACCESS_FLAGS_PROT_NONE);
}

/* What was there, what comes, slabs, two users of one device; all closed and dropped at the end. */
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

/* --- threads and children ------------------------------------------------------------------------------------- */

static CUdeviceptr shared_at;
static CUmemGenericAllocationHandle shared;

/* Handles of its own, and one that all threads retain and release. */
static void *churn(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	CUmemGenericAllocationHandle again;
	CUdeviceptr at = reserve(8 * GRAIN);

	for (int i = 0; i < 60; i++) {
		uint64_t bytes = (1 + (uint64_t)(rand_r(&seed) % 4)) * GRAIN;
		CUmemGenericAllocationHandle handle = create(bytes);

		CHECK_EQ(cuMemMap(at, bytes, 0, handle, 0), CUDA_SUCCESS);
		if (rand_r(&seed) % 2)
			CHECK_EQ(cuMemRelease(handle), CUDA_SUCCESS);
		else
			handle = 0;
		allow(at, bytes);
		CHECK_EQ(
			cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)shared_at),
			CUDA_SUCCESS);
		CHECK_EQ(again, shared);
		if (!handle) {
			CHECK_EQ(cuMemRetainAllocationHandle(
					 &handle, (void *)(uintptr_t)at),
				CUDA_SUCCESS);
			CHECK_EQ(cuMemRelease(handle), CUDA_SUCCESS);
			CHECK_EQ(cuMemRelease(handle), CUDA_SUCCESS);
		}
		CHECK_EQ(cuMemRelease(again), CUDA_SUCCESS);
		CHECK_EQ(cuMemUnmap(at, bytes), CUDA_SUCCESS);
	}
	CHECK_EQ(cuMemAddressFree(at, 8 * GRAIN), CUDA_SUCCESS);
	return NULL;
}

static void body_threads(void)
{
	pthread_t threads[64];

	start();
	shared_at = reserve(GRAIN);
	shared = create(GRAIN);
	CHECK_EQ(cuMemMap(shared_at, GRAIN, 0, shared, 0), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(shared), CUDA_SUCCESS);
	for (uintptr_t i = 0; i < 64; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
	for (int i = 0; i < 64; i++)
		pthread_join(threads[i], NULL);
	check_books(GRAIN);
	CHECK_EQ(cuMemUnmap(shared_at, GRAIN), CUDA_SUCCESS);
	CHECK_EQ(cuMemAddressFree(shared_at, GRAIN), CUDA_SUCCESS);
	finish();
}

/* Many threads at one address and one handle: whoever wins, nothing is counted twice or lost. */
static void *fight(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	CUmemGenericAllocationHandle again;

	for (int i = 0; i < 300; i++) {
		switch (rand_r(&seed) % 4) {
		case 0: (void)cuMemMap(shared_at, GRAIN, 0, shared, 0); break;
		case 1: (void)cuMemUnmap(shared_at, GRAIN); break;
		case 2:
			if (cuMemRetainAllocationHandle(
				    &again, (void *)(uintptr_t)shared_at) == 0)
				CHECK_EQ(cuMemRelease(again), CUDA_SUCCESS);
			break;
		default: allow(shared_at + GRAIN, GRAIN); break;
		}
	}
	return NULL;
}

static void body_fight(void)
{
	CUmemGenericAllocationHandle other;
	pthread_t threads[8];

	start();
	shared_at = reserve(2 * GRAIN);
	shared = create(GRAIN);
	other = create(GRAIN);
	CHECK_EQ(cuMemMap(shared_at + GRAIN, GRAIN, 0, other, 0), CUDA_SUCCESS);
	for (uintptr_t i = 0; i < 8; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, fight, (void *)(i + 1)), 0);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	(void)cuMemUnmap(shared_at, GRAIN);
	/* A leftover of the race goes when the address is used again. */
	CHECK_EQ(cuMemMap(shared_at, GRAIN, 0, shared, 0), CUDA_SUCCESS);
	CHECK_EQ(cuMemUnmap(shared_at, 2 * GRAIN), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(shared), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(other), CUDA_SUCCESS);
	CHECK_EQ(cuMemAddressFree(shared_at, 2 * GRAIN), CUDA_SUCCESS);
	finish();
}

/* The child of a fork knows nothing of the parent's, and takes nothing from it. */
static void body_fork(void)
{
	CUmemGenericAllocationHandle a;
	struct sl_handle_counts counts;
	CUdeviceptr at;
	int status;
	pid_t pid;

	start();
	at = reserve(GRAIN);
	a = create(GRAIN);
	CHECK_EQ(cuMemMap(at, GRAIN, 0, a, 0), CUDA_SUCCESS);
	pid = fork();
	if (pid == 0) {
		counts = sl_handle_count();
		CHECK_EQ(counts.handles + counts.mappings + counts.ranges, 0);
		CHECK_EQ(cuMemRelease(a), CUDA_ERROR_INVALID_VALUE);
		CHECK_EQ(vmm_stub.last, 0);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	check_books(GRAIN);
	CHECK_EQ(cuMemUnmap(at, GRAIN), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(a), CUDA_SUCCESS);
	CHECK_EQ(cuMemAddressFree(at, GRAIN), CUDA_SUCCESS);
	finish();
}

/* Calls that succeed leave errno alone. */
static void body_errno(void)
{
	CUmemGenericAllocationHandle a;

	start();
	errno = 77;
	a = create(GRAIN);
	CHECK_EQ(errno, 77);
	CHECK_EQ(cuMemRelease(a), CUDA_SUCCESS);
	CHECK_EQ(errno, 77);
	finish();
}

#define TEST(name)                            \
	static void test_##name(void **state) \
	{                                     \
		in_child(body_##name, 60);    \
	}
#define TESTS(X)           \
	X(life)            \
	X(retain)          \
	X(expandable)      \
	X(locations)       \
	X(arguments)       \
	X(regions)         \
	X(accesses)        \
	X(stale)           \
	X(out_of_memory)   \
	X(faults)          \
	X(export)          \
	X(held_from_birth) \
	X(tiles)           \
	X(multicast)       \
	X(multicast_v2)    \
	X(address_range)   \
	X(registration)    \
	X(peers)           \
	X(peers_refused)   \
	X(threads)         \
	X(fight)           \
	X(fork)            \
	X(errno)
TESTS(TEST)
#define ROW(name) cmocka_unit_test(test_##name),

int main(void)
{
	const struct CMUnitTest tests[] = {TESTS(ROW)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
