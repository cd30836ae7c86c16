/*
 * vmm-test - begin and end of the tests of virtual memory management
 *
 * After every scene three books agree: the driver's memory, the daemon's grants, and the
 * library's records in between.
 */
#ifndef SL_TEST_RUNTIME_VMM_TEST_H
#define SL_TEST_RUNTIME_VMM_TEST_H

#include "books-test.h"
#include "vmm-stub.h"

#include "runtime/driver/handle.h"
#include "runtime/driver/range.h"
#include "runtime/real/real.h"
#include "runtime/session/device.h"
#include "runtime/session/held.h"

#define GRAIN (2 * SL_MIB)
#define TAG   0x5ac0

static CUcontext ctx;
static struct sl_gpu *gpu;

static inline void start(void)
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
static inline uint64_t bytes_held(void)
{
	(void)sl_passed_trim();
	return sl_held_bytes(gpu);
}

/* The daemon has read all; the driver has `bytes`, and so many are charged, but for spare
 * grains. */
static inline void check_books(uint64_t bytes)
{
	check_daemon(bytes);
	CHECK_EQ(VMM(device_bytes), bytes);
}

static inline void finish(void)
{
	struct sl_handle_counts counts = sl_handle_count();

	check_books(0);
	CHECK_EQ(VMM(live), 0);
	CHECK_EQ(VMM(references), 0);
	CHECK_EQ(VMM(reserved), 0);
	CHECK_EQ(counts.handles, 0);
	CHECK_EQ(counts.mappings, 0);
	CHECK_EQ(counts.promised, 0);
	CHECK_EQ(sl_range_count().ranges, 0);
	CHECK_EQ(sl_range_count().promised, 0);
	CHECK_EQ(bytes_held(), 0);
	CHECK(fake_wait_u64(&fake.unevictable_bytes, 0));
	fake_stop();
}

static inline CUmemAllocationProp prop_of(CUmemLocationType type, int id)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = type, .id = id},
	};

	return prop;
}

static inline CUmemGenericAllocationHandle create(uint64_t bytes)
{
	CUmemAllocationProp prop = prop_of(CU_MEM_LOCATION_TYPE_DEVICE, 0);
	CUmemGenericAllocationHandle handle = 0;

	CHECK_EQ(cuMemCreate(&handle, bytes, &prop, 0), CUDA_SUCCESS);
	CHECK_EQ(handle >> 48, TAG);
	return handle;
}

static inline CUdeviceptr reserve(uint64_t bytes)
{
	CUdeviceptr at = 0;

	CHECK_EQ(cuMemAddressReserve(&at, bytes, 0, 0, 0), CUDA_SUCCESS);
	return at;
}

static inline void allow(CUdeviceptr at, uint64_t bytes)
{
	CUmemAccessDesc access = {
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};

	CHECK_EQ(cuMemSetAccess(at, bytes, &access, 1), CUDA_SUCCESS);
}

#endif
