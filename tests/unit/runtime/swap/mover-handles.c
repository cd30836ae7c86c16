/*
 * mover-handles - the program's own handles between the GPU and the host
 *
 * Mappings, accesses and references are as they were after each trip, whatever failed in it.
 */
#include "mover-test.h"

#define HANDLE_BYTES (14 * SL_MIB)

static struct {
	CUmemGenericAllocationHandle two, none;
	CUdeviceptr a, b, kept, later;
} own;

static CUdeviceptr map(CUmemGenericAllocationHandle handle, uint64_t bytes)
{
	CUdeviceptr at = reserve(bytes);

	CHECK_EQ(cuMemMap(at, bytes, 0, handle, 0), CUDA_SUCCESS);
	return at;
}

/* Makes four handles: one with two mappings of different access; one that only its mapping keeps
 * alive; one that is not mapped; and one that none of its devices may write. */
static void begin_handles(bool pinned)
{
	CUmemAccessDesc read = {
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READ,
	};
	CUmemGenericAllocationHandle kept;

	begin(0, true);
	for (size_t i = 0; i < THINGS; i++) {
		CHECK_EQ(cuMemFree_v2(things[i].at), CUDA_SUCCESS);
		things[i].at = 0;
	}
	sl_reclaim_spaces(sl_clock_now() + 10 * SL_S);
	own.two = create(6 * SL_MIB);
	own.a = map(own.two, 6 * SL_MIB);
	own.b = map(own.two, 6 * SL_MIB);
	allow(own.a, 6 * SL_MIB);
	CHECK_EQ(cuMemSetAccess(own.b, 6 * SL_MIB, &read, 1), CUDA_SUCCESS);
	copy_stub_fill(own.a, 6 * SL_MIB, 21);
	kept = create(4 * SL_MIB);
	own.kept = map(kept, 4 * SL_MIB);
	allow(own.kept, 4 * SL_MIB);
	CHECK_EQ(cuMemRelease(kept), CUDA_SUCCESS);
	copy_stub_fill(own.kept, 4 * SL_MIB, 22);
	own.none = create(4 * SL_MIB);
	own.later = map(own.none, 4 * SL_MIB);
	allow(own.later, 4 * SL_MIB);
	copy_stub_fill(own.later, 4 * SL_MIB, 23);
	CHECK_EQ(cuMemUnmap(own.later, 4 * SL_MIB), CUDA_SUCCESS);
	if (!pinned)
		copy_stub_let_pin(0);
	give_store(1, 32 * SL_MIB);
	if (pinned)
		wait_pinned(32 * SL_MIB);
}

static void check_handles(void)
{
	CHECK_EQ(VMM(device_bytes), HANDLE_BYTES);
	CHECK_EQ(VMM(live), 3);
	CHECK(copy_stub_is(own.a, 6 * SL_MIB, 21));
	CHECK(copy_stub_is(own.kept, 4 * SL_MIB, 22));
	CHECK_EQ(vmm_stub_access(own.a, 0), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CHECK_EQ(vmm_stub_access(own.a, 1), CU_MEM_ACCESS_FLAGS_PROT_NONE);
	CHECK_EQ(vmm_stub_access(own.b, 0), CU_MEM_ACCESS_FLAGS_PROT_NONE);
	CHECK_EQ(vmm_stub_access(own.b, 1), CU_MEM_ACCESS_FLAGS_PROT_READ);
}

static void drop_handles(void)
{
	check_handles();
	CHECK_EQ(cuMemMap(own.later, 4 * SL_MIB, 0, own.none, 0), CUDA_SUCCESS);
	allow(own.later, 4 * SL_MIB);
	CHECK(copy_stub_is(own.later, 4 * SL_MIB, 23));
	CHECK_EQ(cuMemUnmap(own.later, 4 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemUnmap(own.a, 6 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemUnmap(own.b, 6 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemUnmap(own.kept, 4 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(own.two), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(own.none), CUDA_SUCCESS);
	CHECK_EQ(cuMemAddressFree(own.a, 6 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemAddressFree(own.b, 6 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemAddressFree(own.kept, 4 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemAddressFree(own.later, 4 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(sl_store_count().free_bytes, 32 * SL_MIB);
	check_books(0);
	CHECK_EQ(VMM(live), 0);
}

static void end_handles(void)
{
	drop_handles();
	finish();
}

static void body_handles(void)
{
	begin_handles(true);
	for (int round = 0; round < 3; round++) {
		CHECK_EQ(sl_mover_evictable(gpu), HANDLE_BYTES);
		CHECK_EQ(evict(UINT64_MAX).left_bytes, HANDLE_BYTES);
		CHECK_EQ(VMM(live), 0);
		CHECK_EQ(VMM(device_bytes), 0);
		CHECK_EQ(VMM(reserved), 4);
		CHECK_EQ(restore().left_bytes, HANDLE_BYTES);
		CHECK_EQ(VMM(reserved), 4);
		CHECK_EQ(VMM(references), 2);
		check_handles();
	}
	end_handles();
}

static void body_held_handles(void)
{
	int fd = -1;

	begin_handles(true);
	CHECK_EQ(cuMemExportToShareableHandle(
			 &fd, own.two, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
		CUDA_SUCCESS);
	close(fd);
	CHECK_EQ(sl_mover_evictable(gpu), 8 * SL_MIB);
	CHECK_EQ(evict(UINT64_MAX).left_bytes, 8 * SL_MIB);
	CHECK(copy_stub_is(own.a, 6 * SL_MIB, 21));
	CHECK_EQ(restore().left_bytes, 8 * SL_MIB);
	end_handles();
}

/* As the daemon orders it, so that the calls know. */
static void order(enum sl_msg_type type, uint64_t evicted_bytes)
{
	static uint64_t number;
	unsigned int before = FAKE(swappeds);

	fake_send_order(type, ++number, UINT64_MAX, 10000);
	CHECK(fake_wait(&fake.swappeds, before + 1));
	CHECK_EQ(FAKE(evicted_bytes), evicted_bytes);
	for (int i = 0; i < 1000 && sl_residency_is_partial() != (evicted_bytes > 0); i++)
		usleep(1000);
}

/* Unmapped and released on the host: never made again. */
static void body_freed_handles(void)
{
	begin_handles(true);
	order(SL_MSG_EVICT, HANDLE_BYTES);
	CHECK_EQ(cuMemRelease(own.none), CUDA_SUCCESS);
	CHECK_EQ(sl_session_evicted_bytes(gpu), 10 * SL_MIB);
	CHECK_EQ(cuMemUnmap(own.b, 6 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemRelease(own.two), CUDA_SUCCESS);
	CHECK_EQ(sl_session_evicted_bytes(gpu), 10 * SL_MIB);
	order(SL_MSG_RESTORE, 0);
	CHECK(copy_stub_is(own.a, 6 * SL_MIB, 21));
	CHECK(copy_stub_is(own.kept, 4 * SL_MIB, 22));
	CHECK_EQ(VMM(live), 2);
	CHECK_EQ(VMM(references), 0);
	order(SL_MSG_EVICT, 10 * SL_MIB);
	CHECK_EQ(cuMemUnmap(own.a, 6 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemUnmap(own.kept, 4 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(sl_session_evicted_bytes(gpu), 0);
	for (int i = 0; i < 1000 && FAKE(evicted_bytes); i++)
		usleep(1000);
	CHECK_EQ(FAKE(evicted_bytes), 0);
	CHECK_EQ(cuMemAddressFree(own.a, 6 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemAddressFree(own.b, 6 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemAddressFree(own.kept, 4 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(cuMemAddressFree(own.later, 4 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(sl_store_count().free_bytes, 32 * SL_MIB);
	finish();
}

static void body_faults_handles(void)
{
	begin_handles(true);
	fail_each(0, HANDLE_BYTES, check_handles);
	/* A reference of ours that could not be given back is, with the next move. */
	CHECK_EQ(evict(UINT64_MAX).left_bytes, HANDLE_BYTES);
	CHECK_EQ(VMM(references), 0);
	CHECK_EQ(restore().left_bytes, HANDLE_BYTES);
	CHECK_EQ(VMM(references), 2);
	/* Addresses that the driver did not take back are lost, and cost nothing. */
	drop_handles();
	fake_stop();
}

/* A driver that refuses to undo, too, may keep a reference of ours: contents are right all the
 * same. */
static void check_words(void)
{
	CHECK(copy_stub_is(own.a, 6 * SL_MIB, 21));
	CHECK(copy_stub_is(own.kept, 4 * SL_MIB, 22));
}

static void body_faults_handles_twice(void)
{
	begin_handles(true);
	for (unsigned int gap = 1; gap <= 3; gap++)
		fail_each(gap, HANDLE_BYTES, check_words);
	check_words();
	fake_stop();
}

TEST(handles)
TEST(held_handles)
TEST(freed_handles)
TEST(faults_handles)
TEST(faults_handles_twice)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_handles),
		cmocka_unit_test(test_held_handles),
		cmocka_unit_test(test_freed_handles),
		cmocka_unit_test(test_faults_handles),
		cmocka_unit_test(test_faults_handles_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
