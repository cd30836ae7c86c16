/*
 * mover - chunks between the GPU and the host, against a stub driver and a fake daemon
 *
 * After every scene the books agree with the driver, and what was written is what is read.
 */
#include "copy-stub.h"
#include "vmm-test.h"

#include "runtime/control.h"
#include "runtime/memory.h"
#include "runtime/mode.h"
#include "runtime/mover.h"
#include "runtime/session_state.h"
#include "runtime/space.h"
#include "runtime/store.h"

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

static void give_store(uint32_t number, uint64_t bytes)
{
	struct sl_wire_fds fds = {.count = 1};
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_STORE);
	msg.store.number = number;
	msg.store.bytes = bytes;
	fds.fd[0] = memfd_create("store", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHECK_EQ(ftruncate(fds.fd[0], (off_t)bytes), 0);
	CHECK_EQ(fcntl(fds.fd[0], F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	sl_session_lock();
	sl_store_on_store(&msg.store, &fds);
	sl_session_unlock();
	CHECK_EQ(fds.count, 0);
}

static void wait_pinned(uint64_t bytes)
{
	for (int i = 0; i < 2000 && sl_store_count().pinned_bytes != bytes; i++)
		usleep(1000);
	CHECK_EQ(sl_store_count().pinned_bytes, bytes);
}

static void begin(uint64_t store_bytes, bool pinned)
{
	setenv("SLUICE_CHUNK_MOST", "2097152", 1);
	start();
	copy_stub_install();
	copy_stub.no_pinning = !pinned;
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

static void check_contents(void)
{
	for (size_t i = 0; i < THINGS; i++)
		if (things[i].at && !copy_stub_is(things[i].at, things[i].bytes, i + 1))
			CHECK_EQ(i, -1);
}

static void end(void)
{
	check_contents();
	CHECK_EQ(copy_stub.streams, 0);
	CHECK_EQ(copy_stub.events, 0);
	CHECK_EQ(sl_session_evicted_bytes(gpu), 0);
	for (size_t i = 0; i < THINGS; i++)
		if (things[i].at)
			CHECK_EQ(cuMemFree_v2(things[i].at), CUDA_SUCCESS);
	sl_memory_flush_all(true);
	check_books(0);
	CHECK_EQ(sl_store_count().free_bytes, sl_store_count().bytes);
	CHECK_EQ(VMM(live), 0);
	CHECK_EQ(VMM(reserved), 0);
	fake_stop();
}

static struct sl_moved evict(uint64_t bytes)
{
	struct sl_moved moved;

	CHECK(sl_control_close(SL_S));
	sl_mover_evict(gpu, bytes, NULL, &moved);
	sl_control_open();
	return moved;
}

static struct sl_moved restore(void)
{
	struct sl_moved moved;

	CHECK(sl_control_close(SL_S));
	sl_mover_restore(gpu, &moved);
	sl_control_open();
	return moved;
}

static void body_whole(void)
{
	struct sl_moved moved;

	begin(32 * SL_MIB, true);
	CHECK_EQ(sl_mover_evictable(gpu), ALL_BYTES);
	moved = evict(UINT64_MAX);
	CHECK_EQ(moved.cause, SL_WIRE_SWAP_NO_CAUSE);
	CHECK_EQ(moved.left_bytes, ALL_BYTES);
	CHECK_EQ(moved.moved_bytes, ALL_BYTES);
	CHECK_EQ(sl_session_evicted_bytes(gpu), ALL_BYTES);
	CHECK_EQ(VMM(device_bytes), 0);
	CHECK_EQ(VMM(live), 0);
	CHECK_EQ(sl_mover_evictable(gpu), 0);
	CHECK_EQ(evict(UINT64_MAX).cause, SL_WIRE_SWAP_NOTHING);
	CHECK(copy_stub.most > 2);
	CHECK_EQ(copy_stub.pageable, 0);
	moved = restore();
	CHECK_EQ(moved.cause, SL_WIRE_SWAP_NO_CAUSE);
	CHECK_EQ(moved.left_bytes, ALL_BYTES);
	CHECK_EQ(VMM(device_bytes), ALL_BYTES);
	CHECK_EQ(restore().left_bytes, 0);
	end();
}

/* Nothing is pinned: through the ring, or as the driver does it. */
static void body_ring(void)
{
	begin(0, true);
	give_store(1, 32 * SL_MIB);
	copy_stub.no_pinning = false;
	sl_store_begin(); /* the background pins nothing now */
	CHECK_EQ(evict(UINT64_MAX).moved_bytes, ALL_BYTES);
	CHECK_EQ(restore().moved_bytes, ALL_BYTES);
	CHECK_EQ(copy_stub.pageable, 0);
	end();
}

static void body_unpinnable(void)
{
	begin(32 * SL_MIB, false);
	CHECK_EQ(evict(UINT64_MAX).moved_bytes, ALL_BYTES);
	CHECK_EQ(restore().moved_bytes, ALL_BYTES);
	CHECK(copy_stub.pageable > 0);
	end();
}

/* Places in several files, and larger chunks than any hole. */
static void body_scattered(void)
{
	begin(0, true);
	for (uint32_t i = 0; i < ALL_BYTES / SL_STORE_GRAIN; i++)
		give_store(i + 1, SL_STORE_GRAIN);
	CHECK_EQ(evict(UINT64_MAX).left_bytes, ALL_BYTES);
	CHECK_EQ(sl_store_count().free_bytes, 0);
	CHECK_EQ(restore().left_bytes, ALL_BYTES);
	/* The copies' room serves again. */
	CHECK_EQ(evict(UINT64_MAX).left_bytes, ALL_BYTES);
	CHECK_EQ(restore().left_bytes, ALL_BYTES);
	end();
}

static void body_no_host(void)
{
	struct sl_moved moved;

	begin(6 * SL_MIB, true);
	moved = evict(UINT64_MAX);
	CHECK_EQ(moved.cause, SL_WIRE_SWAP_NO_HOST);
	CHECK_EQ(moved.left_bytes, 6 * SL_MIB);
	CHECK_EQ(VMM(device_bytes), ALL_BYTES - 6 * SL_MIB);
	CHECK_EQ(sl_session_evicted_bytes(gpu), 6 * SL_MIB);
	CHECK_EQ(restore().left_bytes, 6 * SL_MIB);
	end();
}

static void body_no_room(void)
{
	struct sl_moved moved;

	begin(32 * SL_MIB, true);
	CHECK_EQ(evict(UINT64_MAX).left_bytes, ALL_BYTES);
	vmm_stub.no_memory = 1;
	moved = restore();
	CHECK_EQ(moved.cause, SL_WIRE_SWAP_NO_ROOM);
	CHECK_EQ(moved.driver_result, CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(sl_session_evicted_bytes(gpu), ALL_BYTES - moved.left_bytes);
	CHECK_EQ(VMM(device_bytes), moved.left_bytes);
	moved = restore();
	CHECK_EQ(moved.cause, SL_WIRE_SWAP_NO_CAUSE);
	end();
}

/* Freed while it is on the host: never comes back, and the daemon knows which bytes. */
static void body_freed(void)
{
	begin(32 * SL_MIB, true);
	CHECK_EQ(evict(UINT64_MAX).left_bytes, ALL_BYTES);
	/* What SWAPPED would have told it. */
	fake_lock();
	fake.evicted_bytes = ALL_BYTES;
	fake_unlock();
	CHECK_EQ(cuMemFree_v2(things[0].at), CUDA_SUCCESS);
	things[0].at = 0;
	CHECK_EQ(sl_session_evicted_bytes(gpu), ALL_BYTES - 6 * SL_MIB);
	CHECK(fake_wait_u64(&fake.held_bytes, ALL_BYTES - 6 * SL_MIB));
	CHECK_EQ(cuMemFree_v2(things[4].at), CUDA_SUCCESS);
	things[4].at = 0;
	sl_memory_flush_all(true);
	CHECK_EQ(sl_session_evicted_bytes(gpu), ALL_BYTES - 8 * SL_MIB);
	CHECK(fake_wait_u64(&fake.held_bytes, ALL_BYTES - 8 * SL_MIB));
	CHECK_EQ(FAKE(evicted_bytes), ALL_BYTES - 8 * SL_MIB);
	CHECK_EQ(restore().left_bytes, ALL_BYTES - 8 * SL_MIB);
	CHECK_EQ(VMM(device_bytes), ALL_BYTES - 8 * SL_MIB);
	end();
}

/* What was freed and waits, and what is empty, goes before anything is copied. */
static void body_quarantined(void)
{
	begin(32 * SL_MIB, true);
	CHECK_EQ(cuMemFree_v2(things[4].at), CUDA_SUCCESS);
	things[4].at = 0;
	CHECK_EQ(VMM(device_bytes), ALL_BYTES);
	CHECK_EQ(evict(2 * SL_MIB).left_bytes, 0);
	CHECK_EQ(copy_stub.out_bytes, 0);
	CHECK_EQ(VMM(device_bytes), ALL_BYTES - 2 * SL_MIB);
	end();
}

static void body_stopped(void)
{
	struct sl_moved moved;
	uint32_t stop = 1;

	begin(32 * SL_MIB, true);
	CHECK(sl_control_close(SL_S));
	sl_mover_evict(gpu, UINT64_MAX, &stop, &moved);
	sl_control_open();
	CHECK_EQ(moved.cause, SL_WIRE_SWAP_ABORTED);
	CHECK_EQ(moved.left_bytes, 0);
	CHECK_EQ(VMM(device_bytes), ALL_BYTES);
	end();
}

static void body_broken(void)
{
	struct sl_moved moved;

	begin(32 * SL_MIB, true);
	copy_stub.broken = CUDA_ERROR_ILLEGAL_ADDRESS;
	moved = evict(UINT64_MAX);
	CHECK_EQ(moved.cause, SL_WIRE_SWAP_BROKEN);
	CHECK_EQ(moved.driver_result, CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_EQ(moved.left_bytes, 0);
	copy_stub.broken = CUDA_SUCCESS;
	end();
}

/* Each call of the driver fails once, on the way out, and on the way back. */
static bool fail_once(unsigned int call, bool back, CUresult fault)
{
	struct sl_moved moved;
	bool failed;

	if (back)
		CHECK_EQ(evict(UINT64_MAX).left_bytes, ALL_BYTES);
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
		CHECK_EQ(moved.left_bytes, ALL_BYTES);
	if (back)
		CHECK_EQ(sl_session_evicted_bytes(gpu), ALL_BYTES - moved.left_bytes);
	/* Half-way, a chunk may be in both places; never in none. */
	CHECK(VMM(device_bytes) + sl_session_evicted_bytes(gpu) >= ALL_BYTES);
	moved = restore();
	CHECK_EQ(moved.cause, SL_WIRE_SWAP_NO_CAUSE);
	CHECK_EQ(sl_session_evicted_bytes(gpu), 0);
	CHECK_EQ(VMM(device_bytes), ALL_BYTES);
	CHECK_EQ(copy_stub.streams, 0);
	CHECK_EQ(copy_stub.events, 0);
	check_contents();
	return failed;
}

static void fail_each(bool pinned)
{
	unsigned int last = 0;

	begin(32 * SL_MIB, pinned);
	copy_stub.no_pinning = false;
	for (int back = 0; back < 2; back++) {
		for (unsigned int call = 1;
			fail_once(call, back, CUDA_ERROR_INVALID_VALUE); call++)
			last = call;
		CHECK(last > 40);
		for (unsigned int call = 1;
			fail_once(call, back, CUDA_ERROR_OUT_OF_MEMORY); call++)
			;
	}
	end();
}

static void body_faults(void)
{
	fail_each(true);
}

static void body_faults_ring(void)
{
	fail_each(false);
}

/* Two failures in a row: what goes wrong while a failure is being made up for. */
static void body_faults_twice(void)
{
	begin(32 * SL_MIB, true);
	for (unsigned int gap = 1; gap <= 4; gap++) {
		vmm_stub_twice = gap;
		for (int back = 0; back < 2; back++)
			for (unsigned int call = 1;
				fail_once(call, back, CUDA_ERROR_INVALID_VALUE); call++)
				;
	}
	vmm_stub_twice = 0;
	end();
}

#define TEST(name)                            \
	static void test_##name(void **state) \
	{                                     \
		(void)state;                  \
		in_child(body_##name, 60);    \
	}
TEST(whole)
TEST(ring)
TEST(unpinnable)
TEST(scattered)
TEST(no_host)
TEST(no_room)
TEST(freed)
TEST(quarantined)
TEST(stopped)
TEST(broken)
TEST(faults)
TEST(faults_ring)
TEST(faults_twice)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_unpinnable),
		cmocka_unit_test(test_scattered),
		cmocka_unit_test(test_no_host),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_freed),
		cmocka_unit_test(test_quarantined),
		cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_faults_ring),
		cmocka_unit_test(test_faults_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
