/*
 * passed - memory that the driver keeps for the program: asked for, charged, given back
 *
 * Against a fake daemon, whose books are made from messages alone and must agree with existing
 * memory after every scene. peer-failures rows 7 (no underflow), 8 and 9 (real results only).
 */
#include "../books-test.h"

#include "runtime/real/real.h"
#include "runtime/session/held.h"

#include <pthread.h>

static CUcontext ctx;
static struct sl_gpu *gpu;

static void start(void)
{
	stub_install();
	fake_start(false);
	CHECK_EQ(cuInit(0), CUDA_SUCCESS);
	ctx = stub_make_current(0);
	gpu = books_gpu();
}

static void finish(void)
{
	check_daemon(0);
	CHECK_EQ(sl_held_bytes(gpu), 0);
	fake_stop();
}

/* A driver call that answers as the test wants, so many times; then it succeeds. */
static struct {
	CUresult fails_with;
	unsigned int fails, calls;
} driver;

static CUresult call_driver(void)
{
	driver.calls++;
	if (!driver.fails)
		return CUDA_SUCCESS;
	driver.fails--;
	return driver.fails_with;
}

static CUresult make(uint64_t bytes, uint32_t flags, uint64_t *charged)
{
	struct sl_passed passed;
	CUresult result = CUDA_ERROR_UNKNOWN;

	SL_PASSED_CALL(&passed, result, SL_PASSED_CURRENT, bytes, flags, call_driver());
	*charged = passed.bytes;
	return result;
}

static void body_grains(void)
{
	uint64_t charged;

	start();
	for (int i = 0; i < 1000; i++) {
		CHECK_EQ(make(4 * SL_KIB, 0, &charged), CUDA_SUCCESS);
		CHECK_EQ(charged, 4 * SL_KIB);
	}
	/* 4000 KiB are two grains, and each was asked for once. */
	check_daemon(4 * SL_MIB);
	CHECK_EQ(FAKE(asks), 2);
	CHECK_EQ(make(100 * SL_MIB, 0, &charged), CUDA_SUCCESS);
	/* 96 KiB of the grain before are used, too. */
	check_daemon(104 * SL_MIB);
	for (int i = 0; i < 999; i++)
		sl_passed_free(gpu, 4 * SL_KIB, 0);
	check_daemon(102 * SL_MIB);
	sl_passed_free(gpu, 100 * SL_MIB, 0);
	check_daemon(2 * SL_MIB);
	sl_passed_free(gpu, 4 * SL_KIB, 0);
	finish();
}

/* One object made and ended over and over does not ask the daemon again. */
static void body_spare(void)
{
	unsigned int asks, freeds;
	uint64_t charged;

	start();
	CHECK_EQ(make(64 * SL_KIB, SL_PASSED_HELD, &charged), CUDA_SUCCESS);
	asks = FAKE(asks);
	freeds = FAKE(freeds);
	for (int i = 0; i < 100; i++) {
		sl_passed_free(gpu, 64 * SL_KIB, SL_PASSED_HELD);
		CHECK_EQ(make(64 * SL_KIB, SL_PASSED_HELD, &charged), CUDA_SUCCESS);
	}
	CHECK_EQ(FAKE(asks), asks);
	CHECK_EQ(FAKE(freeds), freeds);
	/* Nothing stays of a large one. */
	CHECK_EQ(make(100 * SL_MIB, SL_PASSED_HELD, &charged), CUDA_SUCCESS);
	sl_passed_free(gpu, 100 * SL_MIB, SL_PASSED_HELD);
	CHECK(fake_wait_u64(&fake.held_bytes, 2 * SL_MIB));
	/* It goes before a call gets out-of-memory. */
	sl_passed_free(gpu, 64 * SL_KIB, SL_PASSED_HELD);
	fake_lock();
	fake.limit_bytes = 10 * SL_MIB;
	fake_unlock();
	CHECK_EQ(make(10 * SL_MIB, 0, &charged), CUDA_SUCCESS);
	sl_passed_free(gpu, 10 * SL_MIB, 0);
	finish();
}

/* Nor is it there when figures are told: the measured hidden bytes would miss it. */
static void body_figures(void)
{
	size_t free_bytes, total_bytes;
	uint64_t charged;

	start();
	CHECK_EQ(make(64 * SL_KIB, SL_PASSED_HELD, &charged), CUDA_SUCCESS);
	sl_passed_free(gpu, 64 * SL_KIB, SL_PASSED_HELD);
	CHECK(sl_passed_has_spare());
	CHECK_EQ(cuMemGetInfo_v2(&free_bytes, &total_bytes), CUDA_SUCCESS);
	CHECK(!sl_passed_has_spare());
	CHECK_EQ(free_bytes, total_bytes - FAKE(others_bytes));
	finish();
}

static void body_held(void)
{
	uint64_t charged;

	start();
	CHECK_EQ(make(3 * SL_MIB, SL_PASSED_HELD, &charged), CUDA_SUCCESS);
	CHECK_EQ(sl_held_bytes(gpu), 4 * SL_MIB);
	CHECK_EQ(make(3 * SL_MIB, 0, &charged), CUDA_SUCCESS);
	CHECK_EQ(sl_held_bytes(gpu), 4 * SL_MIB);
	check_daemon(8 * SL_MIB);
	sl_passed_free(gpu, 3 * SL_MIB, SL_PASSED_HELD);
	check_daemon(4 * SL_MIB);
	CHECK_EQ(sl_held_bytes(gpu), 0);
	sl_passed_free(gpu, 3 * SL_MIB, 0);
	finish();
}

/* Without a grant the driver is not called, and nothing is kept. */
static void body_denied(void)
{
	uint64_t charged;

	start();
	CHECK_EQ(make(9 * SL_GIB, 0, &charged), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(make(1 * SL_MIB, 0, &charged), CUDA_SUCCESS);
	CHECK_EQ(driver.calls, 1);
	fake_lock();
	fake.deny = true;
	fake_unlock();
	CHECK_EQ(make(2 * SL_MIB, SL_PASSED_HELD, &charged), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(make(2 * SL_MIB, 0, &charged), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(sl_held_bytes(gpu), 0);
	check_daemon(2 * SL_MIB);
	/* The rest of the last grain needs no grant. */
	CHECK_EQ(make(1 * SL_MIB, 0, &charged), CUDA_SUCCESS);
	fake_lock();
	fake.deny_flags = SL_DENY_GPU_LOST;
	fake_unlock();
	CHECK_EQ(make(2 * SL_MIB, 0, &charged), CUDA_ERROR_DEVICE_UNAVAILABLE);
	sl_passed_free(gpu, 2 * SL_MIB, 0);
	finish();
}

/* A context with a sticky error says that and nothing else. */
static void body_broken(void)
{
	uint64_t charged;

	start();
	stub_lock();
	stub.sync_result = CUDA_ERROR_ILLEGAL_ADDRESS;
	stub_unlock();
	CHECK_EQ(make(9 * SL_GIB, 0, &charged), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK_EQ(driver.calls, 0);
	finish();
}

/* The driver's own errors are the program's, and the grant goes back whole. */
static void body_driver_errors(void)
{
	uint64_t charged;

	start();
	driver.fails = 1;
	driver.fails_with = CUDA_ERROR_INVALID_VALUE;
	CHECK_EQ(make(5 * SL_MIB, SL_PASSED_HELD, &charged), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(charged, 0);
	CHECK_EQ(sl_held_bytes(gpu), 0);
	check_daemon(0);
	CHECK_EQ(FAKE(freeds), 0);
	/* The same within a grain that another one shares. */
	CHECK_EQ(make(1 * SL_MIB, 0, &charged), CUDA_SUCCESS);
	driver.fails = 1;
	CHECK_EQ(make(512 * SL_KIB, 0, &charged), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(make(1 * SL_MIB, 0, &charged), CUDA_SUCCESS);
	check_daemon(2 * SL_MIB);
	sl_passed_free(gpu, 2 * SL_MIB, 0);
	finish();
}

/* Granted and not there: back into the queue, then more than was asked for. */
static void body_out_of_memory(void)
{
	uint64_t charged;

	start();
	driver.fails = 1;
	driver.fails_with = CUDA_ERROR_OUT_OF_MEMORY;
	CHECK_EQ(make(5 * SL_MIB, SL_PASSED_HELD, &charged), CUDA_SUCCESS);
	CHECK_EQ(FAKE(fails), 1);
	CHECK_EQ(driver.calls, 2);
	check_daemon(6 * SL_MIB);
	CHECK_EQ(sl_held_bytes(gpu), 6 * SL_MIB);
	driver.fails = 3;
	CHECK_EQ(make(5 * SL_MIB, SL_PASSED_HELD, &charged), CUDA_SUCCESS);
	CHECK_EQ(FAKE(asked_bytes), 2 * SL_MIB);
	check_daemon(10 * SL_MIB);
	/* It fits in the grain, so there is no grant to give back. */
	CHECK_EQ(make(64 * SL_KIB, 0, &charged), CUDA_SUCCESS);
	driver.fails = 1;
	CHECK_EQ(make(64 * SL_KIB, 0, &charged), CUDA_SUCCESS);
	CHECK_EQ(FAKE(fails), 2);
	CHECK_EQ(FAKE(asked_bytes), 2 * SL_MIB);
	driver.fails = 1000;
	CHECK_EQ(make(64 * SL_KIB, 0, &charged), CUDA_ERROR_OUT_OF_MEMORY);
	check_daemon(12 * SL_MIB);
	sl_passed_free(gpu, 128 * SL_KIB, 0);
	sl_passed_free(gpu, 10 * SL_MIB, SL_PASSED_HELD);
	finish();
}

/* Denied while it waits again: out of memory, nothing charged. */
static void body_gone_for_good(void)
{
	uint64_t charged;

	start();
	fake_lock();
	fake.limit_bytes = 8 * SL_MIB;
	fake_unlock();
	driver.fails = 1000;
	driver.fails_with = CUDA_ERROR_OUT_OF_MEMORY;
	CHECK_EQ(make(5 * SL_MIB, SL_PASSED_HELD, &charged), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(charged, 0);
	finish();
}

/* More is given back than was taken: said, and the books stay at zero. */
static void body_unmatched_free(void)
{
	uint64_t charged;

	start();
	CHECK_EQ(make(1 * SL_MIB, 0, &charged), CUDA_SUCCESS);
	sl_passed_free(gpu, 3 * SL_MIB, 0);
	check_daemon(0);
	sl_passed_free(gpu, 3 * SL_MIB, SL_PASSED_HELD);
	check_daemon(0);
	CHECK_EQ(make(1 * SL_MIB, 0, &charged), CUDA_SUCCESS);
	check_daemon(2 * SL_MIB);
	sl_passed_free(gpu, 1 * SL_MIB, 0);
	finish();
}

/* Nothing is for us here: the driver alone answers. */
static void body_not_ours(void)
{
	uint64_t charged;

	start();
	CHECK_EQ(make(0, 0, &charged), CUDA_SUCCESS);
	CHECK_EQ(make(UINT64_MAX, 0, &charged), CUDA_SUCCESS);
	CHECK_EQ(make(64 * SL_MIB, SL_PASSED_QUICK, &charged), CUDA_SUCCESS);
	CHECK_EQ(charged, 0);
	CHECK_EQ(cuStreamBeginCapture_v2(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL),
		CUDA_SUCCESS);
	CHECK_EQ(make(64 * SL_MIB, 0, &charged), CUDA_SUCCESS);
	CHECK_EQ(charged, 0);
	CHECK_EQ(FAKE(asks), 0);
	(void)cuCtxDestroy_v2(ctx);
	CHECK_EQ(driver.calls, 4);
	CHECK_EQ(STUB(syncs_while_capturing), 0);
	finish();
}

static void *churn(void *arg)
{
	uint64_t charged, bytes = (uint64_t)(uintptr_t)arg * 300 * SL_KIB;
	struct sl_passed passed;

	(void)stub_make_current(0);
	for (int i = 0; i < 200; i++) {
		CUresult r = i % 7 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

		SL_PASSED_CALL(&passed, r, SL_PASSED_CURRENT, bytes, SL_PASSED_HELD,
			i % 7 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
		charged = passed.bytes;
		CHECK_EQ(charged, i % 7 ? bytes : 0);
		if (charged)
			sl_passed_free(gpu, charged, SL_PASSED_HELD);
	}
	return NULL;
}

static void body_threads(void)
{
	pthread_t threads[6];

	start();
	for (uintptr_t i = 0; i < 6; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
	for (int i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	finish();
}

#define TEST(name, limit_s)                       \
	static void test_##name(void **state)     \
	{                                         \
		in_child(body_##name, (limit_s)); \
	}
TEST(grains, 20)
TEST(spare, 20)
TEST(figures, 20)
TEST(held, 20)
TEST(denied, 20)
TEST(broken, 20)
TEST(driver_errors, 20)
TEST(out_of_memory, 20)
TEST(gone_for_good, 20)
TEST(unmatched_free, 20)
TEST(not_ours, 20)
TEST(threads, 60)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grains),
		cmocka_unit_test(test_spare),
		cmocka_unit_test(test_figures),
		cmocka_unit_test(test_held),
		cmocka_unit_test(test_denied),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_driver_errors),
		cmocka_unit_test(test_out_of_memory),
		cmocka_unit_test(test_gone_for_good),
		cmocka_unit_test(test_unmatched_free),
		cmocka_unit_test(test_not_ours),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
