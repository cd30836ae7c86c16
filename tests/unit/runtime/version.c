/*
 * version - daemons that are older or newer than the library
 */
#include "child.h"
#include "fake.h"
#include "stub.h"

#include "runtime/real/real.h"

#include <pthread.h>

static void listen_as(uint32_t version)
{
	fake.speaks = version;
	fake_listen();
}

static void start_with(uint32_t version)
{
	stub_install();
	fake_start(true);
	listen_as(version);
	CHECK_EQ(cuInit(0), CUDA_SUCCESS);
	stub_make_current(0);
}

static void replace_by(uint32_t version)
{
	unsigned int reporteds = FAKE(reporteds);

	fake_die();
	listen_as(version);
	CHECK(fake_wait(&fake.reporteds, reporteds + 1));
	CHECK_EQ(FAKE(hello_version), version);
}

/* All features of the older protocol work as ever. */
static void body_older(void)
{
	CUdeviceptr a;

	start_with(1);
	CHECK_EQ(FAKE(hellos), 2);
	CHECK_EQ(FAKE(hello_version), 1);
	CHECK_EQ(cuMemAlloc_v2(&a, 32 * SL_MIB), CUDA_SUCCESS);
	CHECK(fake_wait_u64(&fake.uncommitted_bytes, 0));
	CHECK_EQ(FAKE(held_bytes), 32 * SL_MIB);
	fake_send_gate(1, 1);
	CHECK(fake_wait(&fake.gate_dones, 1));
	fake_send_gate(2, 0);
	CHECK(fake_wait(&fake.gate_dones, 2));
	CHECK_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
	CHECK(fake_wait_u64(&fake.held_bytes, 0));
	CHECK_EQ(FAKE(connections), 2);
	CHECK(!FAKE(protocol_error));
	fake_stop();
}

/* A running program meets an older daemon, then a newer one; it keeps its memory. */
static void body_replaced(void)
{
	CUdeviceptr a, b;

	start_with(SL_PROTOCOL_VERSION);
	CHECK_EQ(FAKE(hellos), 1);
	CHECK_EQ(cuMemAlloc_v2(&a, 32 * SL_MIB), CUDA_SUCCESS);
	replace_by(1);
	CHECK_EQ(FAKE(held_bytes), 32 * SL_MIB);
	CHECK_EQ(cuMemAlloc_v2(&b, 64 * SL_MIB), CUDA_SUCCESS);
	CHECK(fake_wait_u64(&fake.uncommitted_bytes, 0));
	replace_by(SL_PROTOCOL_VERSION);
	CHECK_EQ(FAKE(held_bytes), 96 * SL_MIB);
	fake_send_probe(SL_WIRE_PROBE_WATCH, 20);
	CHECK(fake_wait(&fake.pulses, 1));
	CHECK_EQ(cuMemFree_v2(a), CUDA_SUCCESS);
	CHECK_EQ(cuMemFree_v2(b), CUDA_SUCCESS);
	CHECK(fake_wait_u64(&fake.held_bytes, 0));
	CHECK(!FAKE(protocol_error));
	fake_stop();
}

static CUcontext ctx;

static void *ask(void *arg)
{
	CHECK_EQ(sl_real.cuCtxPushCurrent_v2(ctx), CUDA_SUCCESS);
	CHECK_EQ(cuMemAlloc_v2(arg, 64 * SL_MIB), CUDA_SUCCESS);
	return NULL;
}

/* A thread that waits when the daemon is replaced asks the older one. */
static void body_waiting(void)
{
	pthread_t thread;
	CUdeviceptr a;

	start_with(SL_PROTOCOL_VERSION);
	CHECK_EQ(sl_real.cuCtxGetCurrent(&ctx), CUDA_SUCCESS);
	fake_lock();
	fake.silent = true;
	fake_unlock();
	CHECK_EQ(pthread_create(&thread, NULL, ask, &a), 0);
	CHECK(fake_wait(&fake.asks, 1));
	fake_die();
	fake.silent = false;
	listen_as(1);
	pthread_join(thread, NULL);
	CHECK(fake_wait_u64(&fake.uncommitted_bytes, 0));
	CHECK_EQ(FAKE(held_bytes), 64 * SL_MIB);
	CHECK(!FAKE(protocol_error));
	fake_stop();
}

static void refused(uint32_t claims)
{
	stub_install();
	fake_start(true);
	fake.reject = SL_REJECT_VERSION;
	fake.reject_count = 1000;
	fake.claims = claims;
	fake_listen();
	CHECK_EQ(cuInit(0), CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
	CHECK_EQ(FAKE(hellos), claims == 1 ? 2 : 1);
	fake_stop();
}

static void body_newer(void)
{
	refused(SL_PROTOCOL_VERSION + 1);
}

/* It claims to speak a version that it then refuses: asked once, not for ever. */
static void body_liar(void)
{
	refused(1);
}

static void body_same(void)
{
	refused(SL_PROTOCOL_VERSION);
}

static void body_much_newer(void)
{
	refused(UINT32_MAX);
}

#define TEST(name)                            \
	static void test_##name(void **state) \
	{                                     \
		in_child(body_##name, 60);    \
	}
#define TESTS(X)    \
	X(older)    \
	X(replaced) \
	X(waiting)  \
	X(newer)    \
	X(liar)     \
	X(same)     \
	X(much_newer)
TESTS(TEST)
#define ROW(name) cmocka_unit_test(test_##name),

int main(void)
{
	const struct CMUnitTest tests[] = {TESTS(ROW)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
