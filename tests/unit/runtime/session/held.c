/*
 * held - memory that must not be evicted: questions, counts and reports
 */
#include "../child.h"
#include "../fake.h"
#include "../stub.h"

#include "runtime/real/real.h"
#include "runtime/session/demand.h"
#include "runtime/session/held.h"
#include "runtime/session/session.h"

#include <pthread.h>

static struct sl_gpu *gpu;

static void start_with(uint64_t request_bytes)
{
	CUdeviceptr a;
	CUuuid uuid;

	stub_install();
	fake_start(true);
	fake.request_bytes = request_bytes;
	fake_listen();
	CHECK_EQ(cuInit(0), CUDA_SUCCESS);
	stub_make_current(0);
	CHECK_EQ(cuMemAlloc_v2(&a, 128 * SL_MIB), CUDA_SUCCESS);
	CHECK_EQ(sl_real.cuDeviceGetUuid(&uuid, 0), CUDA_SUCCESS);
	gpu = sl_session_gpu((const uint8_t *)uuid.bytes);
	CHECK(gpu);
}

static void stop(void)
{
	CHECK(!FAKE(protocol_error));
	fake_stop();
}

/* Within the request the daemon is told without being asked; a hundred changes are one message or
 * two. */
static void body_within(void)
{
	unsigned int asks;

	start_with(256 * SL_MIB);
	asks = FAKE(asks);
	for (int i = 0; i < 32; i++)
		CHECK(sl_held_take(gpu, 2 * SL_MIB));
	CHECK(fake_wait_u64(&fake.unevictable_bytes, 64 * SL_MIB));
	CHECK_EQ(FAKE(asks), asks);
	CHECK(FAKE(helds) < 16);
	sl_held_drop(gpu, 64 * SL_MIB);
	CHECK(fake_wait_u64(&fake.unevictable_bytes, 0));
	CHECK_EQ(sl_held_bytes(gpu), 0);
	stop();
}

/* Beyond it the daemon decides; its grant is committed and not reported once more. */
static void body_beyond(void)
{
	unsigned int commits;

	start_with(64 * SL_MIB);
	commits = FAKE(commits);
	CHECK(sl_held_take(gpu, 96 * SL_MIB));
	CHECK_EQ(FAKE(ask_flags), SL_ASK_HELD | SL_ASK_THERE);
	CHECK(fake_wait(&fake.commits, commits + 1));
	CHECK_EQ(sl_held_bytes(gpu), 96 * SL_MIB);
	CHECK_EQ(FAKE(helds), 0);
	/* They exist already: nothing more is charged. */
	CHECK_EQ(gpu->backing_bytes, 128 * SL_MIB);
	fake_lock();
	fake.deny = true;
	fake_unlock();
	CHECK(!sl_held_take(gpu, 2 * SL_MIB));
	CHECK_EQ(sl_held_bytes(gpu), 96 * SL_MIB);
	stop();
}

/* A demand for memory that is held from its making on counts with its COMMIT, as far as it was
 * used. */
static void body_demand(void)
{
	struct sl_demand demand;

	start_with(64 * SL_MIB);
	CHECK_EQ(sl_demand_ask_as(&demand, gpu, 8 * SL_MIB, SL_ASK_HELD, NULL),
		SL_DEMAND_GRANTED);
	CHECK_EQ(FAKE(ask_flags), SL_ASK_HELD);
	CHECK_EQ(sl_held_bytes(gpu), 0);
	sl_demand_commit(&demand, 6 * SL_MIB);
	CHECK_EQ(sl_held_bytes(gpu), 6 * SL_MIB);
	CHECK_EQ(FAKE(helds), 0);
	stop();
}

/* A new daemon is told all of it with the report. */
static void body_daemon_dies(void)
{
	unsigned int reporteds;

	start_with(64 * SL_MIB);
	CHECK(sl_held_take(gpu, 32 * SL_MIB));
	CHECK(fake_wait_u64(&fake.unevictable_bytes, 32 * SL_MIB));
	reporteds = FAKE(reporteds);
	fake_die();
	fake.unevictable_bytes = 0;
	fake_listen();
	CHECK(fake_wait(&fake.reporteds, reporteds + 1));
	CHECK_EQ(FAKE(unevictable_bytes), 32 * SL_MIB);
	stop();
}

#define TEST(name)                            \
	static void test_##name(void **state) \
	{                                     \
		in_child(body_##name, 60);    \
	}
#define TESTS(X)  \
	X(within) \
	X(beyond) \
	X(demand) \
	X(daemon_dies)
TESTS(TEST)
#define ROW(name) cmocka_unit_test(test_##name),

int main(void)
{
	const struct CMUnitTest tests[] = {TESTS(ROW)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
