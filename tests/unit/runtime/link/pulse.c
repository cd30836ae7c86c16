/*
 * pulse - reports of this process's work to the daemon, and that asking does no harm
 */
#include "../child.h"
#include "../fake.h"
#include "../stub.h"

#include "runtime/contexts/prove.h"
#include "runtime/gate/gate.h"
#include "runtime/link/pulse.h"
#include "runtime/real/real.h"

#include <pthread.h>

#define SPAN_MS 20

static CUcontext ctx;

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
}

static bool works(const struct sl_msg_pulse *p)
{
	return p->idle_ms == 0;
}

static bool idles(const struct sl_msg_pulse *p)
{
	return p->idle_ms > 0;
}

static bool proven(const struct sl_msg_pulse *p)
{
	return idles(p) && p->proven;
}

static bool busy_for_long(const struct sl_msg_pulse *p)
{
	return works(p) && !p->proven && p->busy_ms >= 5 * SPAN_MS;
}

static bool of_two(const struct sl_msg_pulse *p)
{
	return p->submissions == 2;
}

/* A pulse that is so, of those after the first `seen`. */
static bool hear_after(unsigned int seen, bool (*what)(const struct sl_msg_pulse *))
{
	for (int i = 0; i < 50000; i++) {
		bool is_so;

		fake_lock();
		is_so = fake.pulses > seen && what(&fake.last_pulse);
		fake_unlock();
		if (is_so)
			return true;
		usleep(100);
	}
	return false;
}

/* The next pulse that is so, of those sent from now on. */
static bool hear(bool (*what)(const struct sl_msg_pulse *))
{
	return hear_after(FAKE(pulses), what);
}

/* Asks, and waits for an answer that is so. With a long span there is only one, which may be here
 * before fake_send_probe() returns. */
static bool ask(
	uint32_t mode, uint32_t span_ms, bool (*what)(const struct sl_msg_pulse *))
{
	unsigned int seen = FAKE(pulses);

	fake_send_probe(mode, span_ms);
	return hear_after(seen, what);
}

/* The last one is so, or one that comes. */
static bool is_told(bool (*what)(const struct sl_msg_pulse *))
{
	struct sl_msg_pulse last = FAKE(last_pulse);

	return (FAKE(pulses) && what(&last)) || hear(what);
}

static void body_watch(void)
{
	unsigned int count;

	start();
	launch();
	usleep(3000 * SPAN_MS);
	CHECK_EQ(FAKE(pulses), 0);
	CHECK(ask(SL_WIRE_PROBE_WATCH, SPAN_MS, idles));
	CHECK_EQ(FAKE(last_pulse.submissions), 1);
	CHECK_EQ(FAKE(last_pulse.proven), 0);
	CHECK_EQ(FAKE(last_pulse.busy_ms), 0);
	/* An idle process has no more to report. */
	count = FAKE(pulses);
	usleep(5000 * SPAN_MS);
	CHECK_EQ(FAKE(pulses), count);
	launch();
	/* That it works may be told for less than a span. */
	CHECK(hear_after(count, of_two));
	CHECK(is_told(idles));
	/* Asked again, it has not forgotten since when. */
	fake_send_probe(SL_WIRE_PROBE_OFF, 0);
	usleep(3000 * SPAN_MS);
	CHECK(ask(SL_WIRE_PROBE_WATCH, SPAN_MS, idles));
	CHECK(FAKE(last_pulse.idle_ms) >= 3 * SPAN_MS);
	/* The driver was never asked anything. */
	CHECK_EQ(STUB(syncs), 0);
	fake_send_probe(SL_WIRE_PROBE_OFF, 0);
	usleep(2000 * SPAN_MS);
	count = FAKE(pulses);
	launch();
	usleep(3000 * SPAN_MS);
	CHECK_EQ(FAKE(pulses), count);
	CHECK(!FAKE(protocol_error));
	fake_stop();
}

static void *launch_once(void *arg)
{
	launch();
	return arg;
}

/* A thread that is inside of the driver with its submission works, for as long as it takes. */
static void body_inside(void)
{
	pthread_t thread;

	start();
	CHECK(ask(SL_WIRE_PROBE_WATCH, SPAN_MS, idles));
	__atomic_store_n(&stub_hold_launches, 1, __ATOMIC_RELEASE);
	CHECK_EQ(pthread_create(&thread, NULL, launch_once, NULL), 0);
	for (int i = 0; i < 4; i++)
		CHECK(hear(works));
	CHECK_EQ(FAKE(last_pulse.submissions), 0);
	__atomic_store_n(&stub_hold_launches, 0, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	CHECK(hear(idles));
	CHECK_EQ(FAKE(last_pulse.submissions), 1);
	fake_stop();
}

/* That work begins is told at once, not a span later. */
static void begins(uint32_t mode)
{
	start();
	launch();
	CHECK(ask(mode, SPAN_MS, idles));
	CHECK(ask(mode, 3600000, idles));
	launch();
	CHECK(is_told(works));
	fake_stop();
}

static void body_begins_watched(void)
{
	begins(SL_WIRE_PROBE_WATCH);
}

static void body_begins_proven(void)
{
	begins(SL_WIRE_PROBE_PROVE);
}

/* A thread that stands at the closed gate wants to work: however long it has done nothing, it is
 * not idle. */
static void body_stands(void)
{
	pthread_t thread;

	start();
	CHECK(ask(SL_WIRE_PROBE_PROVE, SPAN_MS, proven));
	fake_send_gate(7, 1);
	CHECK(fake_wait(&fake.gate_dones, 1));
	CHECK_EQ(pthread_create(&thread, NULL, launch_once, NULL), 0);
	while (sl_gate_parked() == 0)
		usleep(100);
	CHECK(hear(works));
	usleep(3000 * SPAN_MS);
	CHECK(ask(SL_WIRE_PROBE_PROVE, 3600000, works));
	CHECK_EQ(FAKE(last_pulse.proven), 0);
	fake_send_gate(8, 0);
	pthread_join(thread, NULL);
	CHECK(ask(SL_WIRE_PROBE_PROVE, SPAN_MS, proven));
	fake_stop();
}

static void hold_work(CUcontext of)
{
	__atomic_store_n(&stub_busy, of, __ATOMIC_RELEASE);
}

/* A kernel that never ends, or a driver that hangs: it is reported as work, and the agent lives. */
static void body_prove(void)
{
	start();
	CHECK(ask(SL_WIRE_PROBE_PROVE, SPAN_MS, proven));
	hold_work(ctx);
	launch();
	CHECK(hear(busy_for_long));
	/* The door is not drained: our own thread is in the driver. */
	fake_send_gate(7, 1);
	fake_send_gate(8, 0);
	CHECK(fake_wait(&fake.gate_dones, 1));
	CHECK_EQ(FAKE(last_gate_order), 8);
	CHECK(hear(busy_for_long));
	hold_work(NULL);
	CHECK(hear(proven));
	CHECK_EQ(FAKE(last_pulse.busy_ms), 0);
	launch();
	CHECK(hear(proven));
	CHECK_EQ(FAKE(last_pulse.submissions), 2);
	fake_stop();
}

/* A context that cannot be asked is not idle, and is reported as proven when it can be
 * asked again. */
static void body_proof_fails(void)
{
	start();
	hold_work(ctx);
	launch();
	stub_sync_with(CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(ask(SL_WIRE_PROBE_PROVE, SPAN_MS, works));
	usleep(3000 * SPAN_MS);
	CHECK(hear(works));
	CHECK_EQ(FAKE(last_pulse.proven), 0);
	stub_sync_with(CUDA_SUCCESS);
	hold_work(NULL);
	CHECK(hear(proven));
	fake_stop();
}

static bool not_busy(const struct sl_msg_pulse *p)
{
	return works(p) && p->busy_ms == 0;
}

/* The end of a long piece of work is reported when it comes, not an hour later; other work
 * goes on. */
static void body_end_of_busy(void)
{
	start();
	fake_send_probe(SL_WIRE_PROBE_PROVE, SPAN_MS);
	hold_work(ctx);
	launch();
	CHECK(hear(busy_for_long));
	CHECK(ask(SL_WIRE_PROBE_PROVE, 3600000, busy_for_long));
	launch();
	hold_work(NULL);
	CHECK(is_told(not_busy));
	fake_stop();
}

/* Two contexts: one that is idle does not hide one that is not. */
static void body_two_contexts(void)
{
	CUcontext other;

	start();
	CHECK_EQ(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
	launch();
	hold_work(other);
	CHECK(ask(SL_WIRE_PROBE_PROVE, SPAN_MS, busy_for_long));
	hold_work(ctx);
	launch();
	CHECK(hear(busy_for_long));
	hold_work(NULL);
	CHECK(is_told(proven));
	fake_stop();
}

static void body_capture(void)
{
	CUgraph graph;
	unsigned int syncs;

	start();
	CHECK_EQ(cuStreamBeginCapture_v2((CUstream)0x10, CU_STREAM_CAPTURE_MODE_GLOBAL),
		CUDA_SUCCESS);
	launch();
	syncs = STUB(syncs);
	fake_send_probe(SL_WIRE_PROBE_PROVE, SPAN_MS);
	/* It cannot be proved now; the lack of submissions is reported all the same. */
	CHECK(is_told(idles));
	CHECK_EQ(FAKE(last_pulse.proven), 0);
	CHECK_EQ(STUB(syncs), syncs);
	CHECK_EQ(cuStreamEndCapture((CUstream)0x10, &graph), CUDA_SUCCESS);
	CHECK(is_told(proven));
	CHECK_EQ(STUB(syncs_while_capturing), 0);
	fake_stop();
}

static void *destroy(void *arg)
{
	CHECK_EQ(cuCtxDestroy_v2(ctx), CUDA_SUCCESS);
	return arg;
}

/* The destruction waits for the proof as it would for the work itself; then the context is not
 * asked again. */
static void body_destroyed(void)
{
	pthread_t thread;
	CUcontext other;

	start();
	hold_work(ctx);
	launch();
	CHECK(ask(SL_WIRE_PROBE_PROVE, SPAN_MS, busy_for_long));
	CHECK_EQ(pthread_create(&thread, NULL, destroy, NULL), 0);
	hold_work(NULL);
	pthread_join(thread, NULL);
	CHECK(is_told(proven));
	hold_work(ctx);
	launch();
	CHECK(hear(proven));
	hold_work(NULL);
	/* Its number may come again. */
	CHECK_EQ(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
	launch();
	hold_work(other);
	CHECK(hear(busy_for_long));
	hold_work(NULL);
	CHECK(hear(proven));
	fake_stop();
}

/* A release that is not the last one does not wait for anything, with a proof or without. */
static void body_released(void)
{
	CUcontext primary;

	start();
	CHECK_EQ(cuDevicePrimaryCtxRetain(&primary, 0), CUDA_SUCCESS);
	CHECK_EQ(cuDevicePrimaryCtxRetain(&primary, 0), CUDA_SUCCESS);
	launch();
	hold_work(primary);
	CHECK(ask(SL_WIRE_PROBE_PROVE, SPAN_MS, busy_for_long));
	CHECK_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
	CHECK(hear(busy_for_long));
	hold_work(NULL);
	CHECK_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
	CHECK(is_told(proven));
	fake_stop();
}

/* In a context with a sticky error nothing runs any more. */
static void body_broken(void)
{
	start();
	launch();
	stub_sync_with(CUDA_ERROR_LAUNCH_FAILED);
	CHECK(ask(SL_WIRE_PROBE_PROVE, SPAN_MS, proven));
	fake_stop();
}

/* The next daemon asks for itself; until then nothing is said. */
static void body_reconnect(void)
{
	unsigned int count;

	start();
	CHECK(ask(SL_WIRE_PROBE_PROVE, SPAN_MS, proven));
	fake_die();
	fake_listen();
	CHECK(fake_wait(&fake.reporteds, 2));
	count = FAKE(pulses);
	launch();
	usleep(3000 * SPAN_MS);
	CHECK_EQ(FAKE(pulses), count);
	CHECK(ask(SL_WIRE_PROBE_WATCH, SPAN_MS, idles));
	CHECK(!FAKE(protocol_error));
	fake_stop();
}

#if defined(__SANITIZE_THREAD__)
#define THREADS_AFTER_FORK 0 /* TSan cannot follow them */
#else
#define THREADS_AFTER_FORK 1
#endif

static void body_fork(void)
{
	struct sl_proof proof;
	int status;
	pid_t pid;

	if (!THREADS_AFTER_FORK)
		return;
	start();
	launch();
	CHECK(ask(SL_WIRE_PROBE_PROVE, SPAN_MS, proven));
	fake_lock();
	pid = fork();
	fake_unlock();
	if (pid == 0) {
		alarm(30);
		CHECK(sl_pulse_due() == SL_NS_NEVER);
		sl_prove_look(&proof);
		CHECK_EQ(proof.submissions, 0);
		fake_start(false);
		CHECK_EQ(cuInit(0), CUDA_SUCCESS);
		fake_send_probe(SL_WIRE_PROBE_PROVE, SPAN_MS);
		CHECK(is_told(proven));
		fake_stop();
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	launch();
	CHECK(hear(proven));
	fake_stop();
}

#define TEST(name)                            \
	static void test_##name(void **state) \
	{                                     \
		in_child(body_##name, 60);    \
	}
#define TESTS(X)          \
	X(watch)          \
	X(inside)         \
	X(begins_watched) \
	X(begins_proven)  \
	X(stands)         \
	X(prove)          \
	X(end_of_busy)    \
	X(proof_fails)    \
	X(two_contexts)   \
	X(capture)        \
	X(destroyed)      \
	X(released)       \
	X(broken)         \
	X(reconnect)      \
	X(fork)
TESTS(TEST)
#define ROW(name) cmocka_unit_test(test_##name),

int main(void)
{
	const struct CMUnitTest tests[] = {TESTS(ROW)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
