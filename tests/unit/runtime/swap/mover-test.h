/*
 * mover-test - what the tests of the mover begin and end with, and how calls are made to fail
 */
#ifndef SL_TEST_RUNTIME_MOVER_TEST_H
#define SL_TEST_RUNTIME_MOVER_TEST_H

#include "copy-stub.h"
#include "store-test.h"
#include "../vmm-test.h"

#include "runtime/contexts/space.h"
#include "runtime/gate/control.h"
#include "runtime/gate/residency.h"
#include "runtime/link/reclaim.h"
#include "runtime/memory/block.h"
#include "runtime/memory/memory.h"
#include "runtime/memory/pagemap.h"
#include "runtime/process/mode.h"
#include "runtime/session/state.h"
#include "runtime/store/store.h"
#include "runtime/swap/mover.h"
#include "runtime/swap/piece.h"
#include "runtime/swap/swap.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

/* Regions of three chunks, a slab full of slots, and one that is half empty. */
#define THINGS 5
static struct thing {
	CUdeviceptr at;
	uint64_t bytes;
} things[THINGS] = {
	{0, 6 * SL_MIB},
	{0, 5 * SL_MIB + 512},
	{0, 600 * SL_KIB},
	{0, 600 * SL_KIB},
	{0, 4096},
};
/* 6 + 6 of regions, and a slab for each of two classes. */
#define ALL_BYTES (16 * SL_MIB)

static inline void begin(uint64_t store_bytes, bool pinned)
{
	setenv("SLUICE_CHUNK_MOST", "2097152", 1);
	start();
	copy_stub_install();
	if (!pinned)
		copy_stub_let_pin(0);
	for (size_t i = 0; i < THINGS; i++) {
		CHECK_EQ(cuMemAlloc_v2(&things[i].at, things[i].bytes), CUDA_SUCCESS);
		copy_stub_fill(things[i].at, things[i].bytes, i + 1);
	}
	CHECK_EQ(VMM(device_bytes), ALL_BYTES);
	if (!store_bytes)
		return;
	give_store(1, store_bytes);
	if (pinned)
		wait_pinned(store_bytes);
}

static inline void check_contents(void)
{
	for (size_t i = 0; i < THINGS; i++)
		if (things[i].at && !copy_stub_is(things[i].at, things[i].bytes, i + 1))
			CHECK_EQ(i, -1);
}

static inline void end(void)
{
	check_contents();
	CHECK_EQ(copy_stub.streams, 0);
	CHECK_EQ(copy_stub.events, 0);
	CHECK_EQ(sl_session_evicted_bytes(gpu), 0);
	for (size_t i = 0; i < THINGS; i++)
		if (things[i].at)
			CHECK_EQ(cuMemFree_v2(things[i].at), CUDA_SUCCESS);
	sl_reclaim_spaces(sl_clock_now() + 10 * SL_S);
	check_books(0);
	CHECK_EQ(sl_store_count().free_bytes, sl_store_count().bytes);
	CHECK_EQ(VMM(live), 0);
	CHECK_EQ(VMM(reserved), 0);
	fake_stop();
}

static inline struct sl_moved evict(uint64_t bytes)
{
	struct sl_moved moved;

	CHECK(sl_control_close(SL_S));
	sl_mover_evict(gpu, bytes, NULL, &moved);
	sl_control_open();
	return moved;
}

static inline struct sl_moved restore_part(uint64_t bytes)
{
	struct sl_moved moved;

	CHECK(sl_control_close(SL_S));
	sl_mover_restore(gpu, bytes, &moved);
	sl_control_open();
	return moved;
}

static inline struct sl_moved restore(void)
{
	return restore_part(UINT64_MAX);
}

/* --- failures --------------------------------------------------------------------------------- */

/* A sanitizer makes a trip many times slower: it sees every so manieth call fail. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define CALL_STEP 7
/* Trips of what changes each time. */
#define DIRTY_TRIPS 24
#else
#define CALL_STEP   1
#define DIRTY_TRIPS 60
#endif

/* Each call of the driver fails once, on the way out, and on the way back. */
static inline bool fail_once(unsigned int call, bool back, CUresult fault,
	uint64_t all_bytes, void (*check)(void))
{
	struct sl_moved moved;
	bool failed;

	if (back)
		CHECK_EQ(evict(UINT64_MAX).left_bytes, all_bytes);
	vmm_stub_lock();
	vmm_stub.fault = fault;
	vmm_stub.fault_at = vmm_stub.calls + call;
	vmm_stub_unlock();
	moved = back ? restore() : evict(UINT64_MAX);
	vmm_stub_lock();
	failed = vmm_stub.fault_at <= vmm_stub.calls;
	vmm_stub.fault_at = 0;
	vmm_stub_unlock();
	if (!failed || moved.cause == SL_WIRE_SWAP_NO_CAUSE)
		CHECK_EQ(moved.left_bytes, all_bytes);
	if (back)
		CHECK_EQ(sl_session_evicted_bytes(gpu), all_bytes - moved.left_bytes);
	/* Half-way, a chunk may be in both places; never in none. */
	CHECK(VMM(device_bytes) + sl_session_evicted_bytes(gpu) >= all_bytes);
	moved = restore();
	CHECK_EQ(moved.cause, SL_WIRE_SWAP_NO_CAUSE);
	CHECK_EQ(sl_session_evicted_bytes(gpu), 0);
	CHECK_EQ(VMM(device_bytes), all_bytes);
	CHECK_EQ(copy_stub.streams, 0);
	CHECK_EQ(copy_stub.events, 0);
	check();
	return failed;
}

/* gap above 0: a second one fails so many calls later, when the first is made up for. */
static inline void fail_each(unsigned int gap, uint64_t all_bytes, void (*check)(void))
{
	static const CUresult faults[] = {
		CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY};
	unsigned int last = 0;

	vmm_stub_twice = gap;
	for (size_t i = 0; i < (gap ? 2 : 2 * SL_ARRAY_LEN(faults)); i++) {
		for (unsigned int call = 1 + i % CALL_STEP;
			fail_once(call, i % 2, faults[i / 2], all_bytes, check);
			call += CALL_STEP)
			last = call;
		CHECK(last > 30);
	}
	vmm_stub_twice = 0;
}

#define TEST(name)                            \
	static void test_##name(void **state) \
	{                                     \
		(void)state;                  \
		in_child(body_##name, 400);   \
	}

#endif
