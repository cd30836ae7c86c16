/*
 * gating - the daemon closes gate and door, and hears when all are out and when one waits
 */
#include "../child.h"
#include "../fake.h"
#include "../stub.h"

#include "runtime/gate/door.h"
#include "runtime/real/real.h"

#include <pthread.h>

static CUcontext ctx;

static void start(void)
{
	stub_install();
	fake_start(false);
	CHECK_EQ(cuInit(0), CUDA_SUCCESS);
	CHECK_EQ(cuCtxCreate_v2(&ctx, 0, 0), CUDA_SUCCESS);
}

/* --- calls of each kind -------------------------------------------------------------------- */

static CUresult launch(void)
{
	return cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

static CUresult watch(void)
{
	return cuStreamQuery(NULL);
}

static CUresult load(void)
{
	CUmodule module;

	return cuModuleLoad(&module, "nothing");
}

static CUresult query(void)
{
	size_t free_bytes, total_bytes;

	return cuMemGetInfo_v2(&free_bytes, &total_bytes);
}

static CUresult allocate(void)
{
	CUdeviceptr at;

	return cuMemAlloc_v2(&at, 1 << 20);
}

static CUresult map(void)
{
	return cuMemAddressFree(0, 0);
}

static CUresult retain(void)
{
	CUcontext primary;

	return cuDevicePrimaryCtxRetain(&primary, 0);
}

static CUresult capture(void)
{
	return cuStreamBeginCapture_v2(NULL, CU_STREAM_CAPTURE_MODE_RELAXED);
}

static CUresult start_again(void)
{
	return cuInit(0);
}

static CUresult through(void)
{
	return cuEventCreate(NULL, 0);
}

static CUresult (*const kinds[])(void) = {
	launch, watch, load, query, allocate, map, retain, capture, start_again, through};

struct caller {
	CUresult (*call)(void);
	pthread_t thread;
	int done;
};

static void *call_once(void *arg)
{
	struct caller *caller = arg;

	(void)caller->call();
	__atomic_store_n(&caller->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void begin(struct caller *caller, CUresult (*call)(void))
{
	caller->call = call;
	caller->done = 0;
	CHECK_EQ(pthread_create(&caller->thread, NULL, call_once, caller), 0);
}

static bool has_returned(const struct caller *caller)
{
	return __atomic_load_n(&caller->done, __ATOMIC_ACQUIRE);
}

static void wait_for_parked(unsigned int count)
{
	while (sl_gate_parked() < count)
		usleep(100);
}

static void wait_for_close(void)
{
	while (!sl_door_is_closed())
		usleep(100);
}

static CUresult load_nothing(CUmodule *module, const char *name)
{
	(void)module;
	(void)name;
	return CUDA_ERROR_FILE_NOT_FOUND;
}

/* Every call waits, the daemon hears of it, and all go on when it opens. */
static void body_kinds(void)
{
	struct caller callers[SL_ARRAY_LEN(kinds)];
	unsigned int wants;

	start();
	sl_real.cuModuleLoad = load_nothing;
	fake_send_gate(7, 1);
	CHECK(fake_wait(&fake.gate_dones, 1));
	CHECK_EQ(FAKE(last_gate_order), 7);
	CHECK_EQ(FAKE(last_gate_closed), 1);
	CHECK_EQ(FAKE(wants), 0);
	for (size_t i = 0; i < SL_ARRAY_LEN(kinds); i++)
		begin(&callers[i], kinds[i]);
	wait_for_parked(SL_ARRAY_LEN(kinds));
	CHECK(fake_wait(&fake.wants, 1));
	CHECK_EQ(FAKE(last_want), 1);
	CHECK(sl_door_is_drained());
	for (size_t i = 0; i < SL_ARRAY_LEN(kinds); i++)
		CHECK(!has_returned(&callers[i]));
	wants = FAKE(wants);
	fake_send_gate(8, 0);
	for (size_t i = 0; i < SL_ARRAY_LEN(kinds); i++)
		pthread_join(callers[i].thread, NULL);
	CHECK(fake_wait(&fake.gate_dones, 2));
	CHECK_EQ(FAKE(last_gate_closed), 0);
	CHECK(fake_wait(&fake.wants, wants + 1));
	CHECK_EQ(FAKE(last_want), 0);
	CHECK(!FAKE(protocol_error));
	fake_stop();
}

static void stay_busy(CUcontext busy)
{
	__atomic_store_n(&stub_busy, busy, __ATOMIC_RELEASE);
}

static CUresult synchronize_ctx(void)
{
	CHECK_EQ(sl_real.cuCtxPushCurrent_v2(ctx), CUDA_SUCCESS);
	return cuCtxSynchronize();
}

/* A thread that waits inside of the driver keeps the answer back until it is out. */
static void body_drains(void)
{
	struct caller caller;

	start();
	stay_busy(ctx);
	begin(&caller, synchronize_ctx);
	while (STUB(sync_waits) == 0)
		usleep(100);
	fake_send_gate(1, 1);
	wait_for_close();
	usleep(30000);
	CHECK_EQ(FAKE(gate_dones), 0);
	CHECK(!sl_door_is_drained());
	stay_busy(NULL);
	CHECK(fake_wait(&fake.gate_dones, 1));
	pthread_join(caller.thread, NULL);
	fake_send_gate(2, 0);
	CHECK(fake_wait(&fake.gate_dones, 2));
	fake_stop();
}

/* So does the thread of ours that waits for a proof. None is begun while the door is closed. */
static void body_proof(void)
{
	unsigned int syncs;

	start();
	CHECK_EQ(launch(), CUDA_SUCCESS);
	stay_busy(ctx);
	fake_send_probe(SL_WIRE_PROBE_PROVE, 20);
	while (STUB(sync_waits) == 0)
		usleep(100);
	fake_send_gate(1, 1);
	wait_for_close();
	usleep(30000);
	CHECK_EQ(FAKE(gate_dones), 0);
	stub_sync_with(CUDA_ERROR_NOT_READY);
	stay_busy(NULL);
	CHECK(fake_wait(&fake.gate_dones, 1));
	syncs = STUB(syncs);
	usleep(100000);
	CHECK_EQ(STUB(syncs), syncs);
	fake_send_gate(2, 0);
	while (STUB(syncs) == syncs)
		usleep(100);
	fake_stop();
}

/* The daemon dies before it hears that all are out: the program runs on. */
static void body_lost_before(void)
{
	struct caller inside, later;

	start();
	stay_busy(ctx);
	begin(&inside, synchronize_ctx);
	while (STUB(sync_waits) == 0)
		usleep(100);
	fake_send_gate(1, 1);
	wait_for_close();
	begin(&later, watch);
	wait_for_parked(1);
	fake_die();
	pthread_join(later.thread, NULL);
	stay_busy(NULL);
	pthread_join(inside.thread, NULL);
	fake_listen();
	CHECK(fake_wait(&fake.reporteds, 2));
	CHECK_EQ(FAKE(gate_dones), 0);
	fake_stop();
}

/* It dies afterwards: they stay closed, and the next daemon hears so before REPORTED. */
static void body_lost_after(void)
{
	struct caller callers[2];

	start();
	fake_send_gate(5000, 1);
	CHECK(fake_wait(&fake.gate_dones, 1));
	begin(&callers[0], watch);
	begin(&callers[1], launch);
	wait_for_parked(2);
	fake_die();
	usleep(100000);
	CHECK(sl_door_is_closed());
	fake_lock();
	fake.last_gate_order = fake.wants = 0;
	fake_unlock();
	fake_listen();
	CHECK(fake_wait(&fake.reporteds, 2));
	CHECK_EQ(FAKE(gate_dones), 2);
	CHECK_EQ(FAKE(last_gate_order), 5000);
	CHECK_EQ(FAKE(last_gate_closed), 1);
	CHECK(fake_wait(&fake.wants, 1));
	CHECK_EQ(FAKE(last_want), 1);
	CHECK(!has_returned(&callers[0]) && !has_returned(&callers[1]));
	fake_send_gate(5001, 0);
	pthread_join(callers[0].thread, NULL);
	pthread_join(callers[1].thread, NULL);
	CHECK(fake_wait(&fake.gate_dones, 3));
	fake_stop();
}

/* The next daemon wants nothing of the client: no other will bring the process back. */
static void body_rejected(void)
{
	struct caller caller;

	start();
	fake_send_gate(1, 1);
	CHECK(fake_wait(&fake.gate_dones, 1));
	begin(&caller, watch);
	wait_for_parked(1);
	fake_die();
	fake_lock();
	fake.reject = SL_REJECT_WORKLOAD;
	fake.reject_count = 1;
	fake_unlock();
	fake_listen();
	pthread_join(caller.thread, NULL);
	CHECK(!sl_door_is_closed());
	fake_stop();
}

#define TEST(name)                            \
	static void test_##name(void **state) \
	{                                     \
		in_child(body_##name, 60);    \
	}
TEST(kinds)
TEST(drains)
TEST(proof)
TEST(lost_before)
TEST(lost_after)
TEST(rejected)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_drains),
		cmocka_unit_test(test_proof),
		cmocka_unit_test(test_lost_before),
		cmocka_unit_test(test_lost_after),
		cmocka_unit_test(test_rejected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
