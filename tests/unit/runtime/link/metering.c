/*
 * metering - slices as the daemon orders them, and what it hears of their ends
 */
#include "../child.h"
#include "../fake.h"
#include "../stub.h"

#include "runtime/gate/gate.h"
#include "runtime/gate/meter.h"
#include "runtime/real/real.h"

#include <pthread.h>

#define FAR (1000 * SL_S)

static CUcontext ctx;
static uint32_t stop;
static uint64_t launches; /* atomic: that returned */

static void start(void)
{
	stub_install();
	fake_start(false);
	CHECK_EQ(cuInit(0), CUDA_SUCCESS);
	CHECK_EQ(cuCtxCreate_v2(&ctx, 0, 0), CUDA_SUCCESS);
}

static void launch(void)
{
	CHECK_EQ(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
		CUDA_SUCCESS);
	__atomic_fetch_add(&launches, 1, __ATOMIC_RELEASE);
}

static uint64_t count(void)
{
	return __atomic_load_n(&launches, __ATOMIC_ACQUIRE);
}

static void *launch_on(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
		launch();
	return arg;
}

static pthread_t begin(void)
{
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, launch_on, NULL), 0);
	return thread;
}

static void end(pthread_t thread)
{
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	CHECK(!FAKE(protocol_error));
	fake_stop();
}

static void wait_for_parked(void)
{
	while (!sl_gate_parked())
		usleep(100);
}

static void wait_for_launch(uint64_t before)
{
	while (count() <= before)
		usleep(100);
}

/* Shut, a thread waits, and the daemon hears so; each slice lets more in, and OFF lets all. */
static void body_slices(void)
{
	pthread_t thread;
	uint64_t before;

	start();
	fake_send_meter(1, SL_WIRE_METER_SHUT, 0);
	CHECK(fake_wait(&fake.meter_ends, 1));
	CHECK_EQ(FAKE(last_end.order), 1);
	CHECK_EQ(FAKE(last_end.wants), 0);
	thread = begin();
	CHECK(fake_wait(&fake.meter_wants, 1));
	CHECK_EQ(count(), 0);
	for (unsigned int i = 2; i < 12; i++) {
		before = count();
		fake_send_meter(i, SL_WIRE_METER_SLICE, FAR);
		CHECK(fake_wait(&fake.meter_ends, i));
		CHECK_EQ(FAKE(last_end.order), i);
		CHECK_EQ(FAKE(last_end.wants), 1);
		/* The last one may not have returned to the test's counter. */
		wait_for_parked();
		CHECK_EQ(count() - before, 1u << (i - 2));
	}
	fake_send_meter(12, SL_WIRE_METER_OFF, 0);
	before = count();
	wait_for_launch(before + 5000);
	CHECK_EQ(FAKE(meter_ends), 11);
	end(thread);
}

/* The end waits for the work, but not for its thread; a thread that waits meanwhile is told of. */
static void body_long_work(void)
{
	pthread_t thread;
	unsigned int wants;

	start();
	fake_send_meter(1, SL_WIRE_METER_SHUT, 0);
	CHECK(fake_wait(&fake.meter_ends, 1));
	thread = begin();
	CHECK(fake_wait(&fake.meter_wants, 1));
	__atomic_store_n(&stub_busy, ctx, __ATOMIC_RELEASE);
	wants = FAKE(meter_wants);
	fake_send_meter(2, SL_WIRE_METER_SLICE, SL_MS);
	CHECK(fake_wait(&fake.meter_wants, wants + 2));
	CHECK_EQ(FAKE(meter_ends), 1);
	__atomic_store_n(&stub_busy, NULL, __ATOMIC_RELEASE);
	CHECK(fake_wait(&fake.meter_ends, 2));
	CHECK_EQ(FAKE(last_end.wants), 1);
	fake_send_meter(3, SL_WIRE_METER_OPEN, 0);
	end(thread);
}

/* A new order takes the place of one whose work has not ended. */
static void body_taken_over(void)
{
	pthread_t thread;
	uint64_t before;

	start();
	fake_send_meter(1, SL_WIRE_METER_SHUT, 0);
	CHECK(fake_wait(&fake.meter_ends, 1));
	thread = begin();
	CHECK(fake_wait(&fake.meter_wants, 1));
	__atomic_store_n(&stub_busy, ctx, __ATOMIC_RELEASE);
	fake_send_meter(2, SL_WIRE_METER_SLICE, SL_MS);
	wait_for_launch(0);
	wait_for_parked();
	before = count();
	fake_send_meter(3, SL_WIRE_METER_SLICE, FAR);
	wait_for_launch(before);
	__atomic_store_n(&stub_busy, NULL, __ATOMIC_RELEASE);
	CHECK(fake_wait(&fake.meter_ends, 2));
	CHECK_EQ(FAKE(last_end.order), 3);
	fake_send_meter(4, SL_WIRE_METER_OFF, 0);
	end(thread);
}

/* A slice that nothing uses comes back long before its end. */
static void body_gives_back(void)
{
	start();
	launch();
	fake_send_meter(1, SL_WIRE_METER_SLICE, FAR);
	CHECK(fake_wait(&fake.meter_ends, 1));
	CHECK_EQ(FAKE(last_end.wants), 0);
	CHECK(sl_meter_is_shut());
	fake_send_meter(2, SL_WIRE_METER_OFF, 0);
	launch();
	fake_stop();
}

/* The daemon is gone: the gate opens, and stays open for the next one. */
static void body_lost(void)
{
	pthread_t thread;
	uint64_t before;

	start();
	fake_send_meter(1, SL_WIRE_METER_SHUT, 0);
	CHECK(fake_wait(&fake.meter_ends, 1));
	thread = begin();
	wait_for_parked();
	fake_die();
	wait_for_launch(0);
	fake_listen();
	CHECK(fake_wait(&fake.reporteds, 2));
	before = count();
	wait_for_launch(before + 100);
	CHECK_EQ(FAKE(meter_ends), 1);
	end(thread);
}

#define TEST(name)                            \
	static void test_##name(void **state) \
	{                                     \
		(void)state;                  \
		in_child(body_##name, 60);    \
	}
TEST(slices)
TEST(long_work)
TEST(taken_over)
TEST(gives_back)
TEST(lost)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slices),
		cmocka_unit_test(test_long_work),
		cmocka_unit_test(test_taken_over),
		cmocka_unit_test(test_gives_back),
		cmocka_unit_test(test_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
