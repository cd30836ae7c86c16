/*
 * swap - orders to evict and restore, and who stands at the gate meanwhile
 *
 * The mover is the test's own, so that what comes before and after it can be looked at; what it moves is
 * tested elsewhere. peer-failures: unmap under running work, a drain that never ends, a lock held at the gate.
 */
#include "child.h"
#include "fake.h"
#include "stub.h"

#include "runtime/capture.h"
#include "runtime/control.h"
#include "runtime/gate.h"
#include "runtime/hooks.h"
#include "runtime/session.h"
#include "runtime/swap.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#define BYTES   (64 * SL_MIB)
#define LATE_MS 50
#define LONG_MS 60000

static CUcontext ctx;

/* The mover of these tests: all of it at once, and it looks whether it may. */
static struct {
	unsigned int evicts, restores;
	uint32_t hold; /* stays inside while above 0 */
	uint32_t inside;
	enum sl_wire_swap_cause cause; /* of the next failure */
	CUresult result;
} mover;

static void stay_inside(void)
{
	__atomic_store_n(&mover.inside, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&mover.hold, __ATOMIC_ACQUIRE))
		usleep(100);
	__atomic_store_n(&mover.inside, 0, __ATOMIC_RELEASE);
}

static bool fails(struct sl_moved *out)
{
	out->driver_result = __atomic_load_n(&mover.result, __ATOMIC_ACQUIRE);
	out->cause = __atomic_load_n(&mover.cause, __ATOMIC_ACQUIRE);
	return out->cause != SL_WIRE_SWAP_NO_CAUSE;
}

static void fail_with(enum sl_wire_swap_cause cause, CUresult result)
{
	__atomic_store_n(&mover.result, result, __ATOMIC_RELEASE);
	__atomic_store_n(&mover.cause, cause, __ATOMIC_RELEASE);
}

static void test_evict(
	struct sl_gpu *gpu, uint64_t bytes, const uint32_t *stop, struct sl_moved *out)
{
	CHECK(__atomic_load_n(&sl_gate_word, __ATOMIC_ACQUIRE) >= SL_GATE_CLOSER);
	CHECK(sl_gate_is_drained());
	CHECK(sl_swap_is_out());
	/* Who is alone may call what others call inside. */
	sl_control_enter();
	sl_control_leave();
	mover.evicts++;
	stay_inside();
	if (__atomic_load_n(stop, __ATOMIC_ACQUIRE)) {
		out->cause = SL_WIRE_SWAP_ABORTED;
		return;
	}
	if (fails(out))
		return;
	out->left_bytes = out->moved_bytes = bytes;
	sl_session_evicted(gpu, (int64_t)bytes);
}

static void test_restore(struct sl_gpu *gpu, struct sl_moved *out)
{
	uint64_t bytes = sl_session_evicted_bytes(gpu);

	CHECK(!bytes ||
		__atomic_load_n(&sl_gate_word, __ATOMIC_ACQUIRE) >= SL_GATE_CLOSER);
	mover.restores++;
	stay_inside();
	if (fails(out))
		return;
	out->left_bytes = out->moved_bytes = bytes;
	sl_session_evicted(gpu, -(int64_t)bytes);
}

static void start(void)
{
	stub_install();
	sl_swap_mover.evict = test_evict;
	sl_swap_mover.restore = test_restore;
	fake_start(false);
	CHECK_EQ(cuInit(0), CUDA_SUCCESS);
	CHECK_EQ(cuCtxCreate_v2(&ctx, 0, 0), CUDA_SUCCESS);
}

static void stop(void)
{
	CHECK(!FAKE(protocol_error));
	fake_stop();
}

static CUresult launch(void)
{
	return cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

/* The outcome of that order, once it has come. */
static struct sl_msg_swapped answer_to(uint64_t order)
{
	struct sl_msg_swapped last;

	for (int i = 0; i < 100000; i++) {
		last = FAKE(last_swapped);
		if (last.order == order)
			return last;
		usleep(100);
	}
	fprintf(stderr, "order %llu is not answered\n", (unsigned long long)order);
	_exit(1);
}

static void order(enum sl_msg_type type, uint64_t number)
{
	fake_send_order(type, number, BYTES, LONG_MS);
}

static void check_refused(uint64_t number, enum sl_wire_swap_cause cause)
{
	struct sl_msg_swapped last = answer_to(number);

	CHECK_EQ(last.outcome, SL_WIRE_SWAP_REFUSED);
	CHECK_EQ(last.cause, cause);
	CHECK_EQ(last.evicted_bytes, 0);
}

static void check_ok(uint64_t number, uint64_t evicted_bytes)
{
	struct sl_msg_swapped last = answer_to(number);

	CHECK_EQ(last.outcome, SL_WIRE_SWAP_OK);
	CHECK_EQ(last.evicted_bytes, evicted_bytes);
}

static void evict_all(void)
{
	order(SL_MSG_EVICT, 1);
	check_ok(1, BYTES);
}

static bool becomes(uint32_t *what, uint32_t value)
{
	for (int i = 0; i < 100000; i++) {
		if (__atomic_load_n(what, __ATOMIC_ACQUIRE) == value)
			return true;
		usleep(100);
	}
	return false;
}

static bool gate_is_open(void)
{
	return __atomic_load_n(&sl_gate_word, __ATOMIC_ACQUIRE) < SL_GATE_CLOSER;
}

static bool gate_opens(void)
{
	for (int i = 0; i < 100000; i++) {
		if (gate_is_open())
			return true;
		usleep(100);
	}
	return false;
}

static bool want_becomes(uint32_t value)
{
	for (int i = 0; i < 100000; i++) {
		if (FAKE(wants) && FAKE(last_want) == value)
			return true;
		usleep(100);
	}
	return false;
}

/* --- a thread at the gate ------------------------------------------------------------------- */

struct submitter {
	pthread_t thread;
	uint32_t begun, done;
	CUresult result;
};

static void *submit(void *arg)
{
	struct submitter *s = arg;

	CHECK_EQ(sl_real.cuCtxPushCurrent_v2(ctx), CUDA_SUCCESS);
	__atomic_store_n(&s->begun, 1, __ATOMIC_RELEASE);
	s->result = launch();
	__atomic_store_n(&s->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void start_submitting(struct submitter *s)
{
	memset(s, 0, sizeof(*s));
	CHECK_EQ(pthread_create(&s->thread, NULL, submit, s), 0);
	CHECK(becomes(&s->begun, 1));
}

static void check_submitted(struct submitter *s)
{
	CHECK_EQ(pthread_join(s->thread, NULL), 0);
	CHECK_EQ(s->result, CUDA_SUCCESS);
}

/* --- there and back -------------------------------------------------------------------------- */

static void body_there_and_back(void)
{
	struct submitter s;

	start();
	CHECK_EQ(launch(), CUDA_SUCCESS);
	order(SL_MSG_EVICT, 1);
	check_ok(1, BYTES);
	CHECK(sl_swap_is_out());
	CHECK_EQ(FAKE(wants), 0);
	start_submitting(&s);
	CHECK(want_becomes(1));
	CHECK_EQ(__atomic_load_n(&s.done, __ATOMIC_ACQUIRE), 0);
	CHECK_EQ(__atomic_load_n(&stub.launches, __ATOMIC_ACQUIRE), 1);
	order(SL_MSG_RESTORE, 2);
	check_ok(2, 0);
	check_submitted(&s);
	CHECK(!sl_swap_is_out());
	CHECK(want_becomes(0));
	CHECK_EQ(FAKE(wants), 2);
	CHECK_EQ(mover.evicts, 1);
	CHECK_EQ(mover.restores, 1);
	stop();
}

/* More can leave while something is out, and what is not there can be asked back. */
static void body_twice(void)
{
	start();
	order(SL_MSG_EVICT, 1);
	check_ok(1, BYTES);
	order(SL_MSG_EVICT, 2);
	check_ok(2, 2 * BYTES);
	order(SL_MSG_RESTORE, 3);
	check_ok(3, 0);
	CHECK(gate_opens());
	order(SL_MSG_RESTORE, 4);
	check_ok(4, 0);
	CHECK(gate_opens());
	CHECK_EQ(launch(), CUDA_SUCCESS);
	stop();
}

/* --- what is refused -------------------------------------------------------------------------- */

static void body_capture(void)
{
	CUstream stream = (CUstream)0x10;
	CUgraph graph;

	start();
	CHECK_EQ(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL),
		CUDA_SUCCESS);
	order(SL_MSG_EVICT, 1);
	check_refused(1, SL_WIRE_SWAP_CAPTURE);
	CHECK_EQ(STUB(syncs_while_capturing), 0);
	CHECK_EQ(launch(), CUDA_SUCCESS);
	CHECK_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
	order(SL_MSG_EVICT, 2);
	check_ok(2, BYTES);
	stop();
}

/* Work that never ends: at the deadline all is as it was. */
static void body_endless(void)
{
	start();
	CHECK_EQ(launch(), CUDA_SUCCESS);
	__atomic_store_n(&stub_busy, ctx, __ATOMIC_RELEASE);
	for (uint64_t i = 1; i <= 3; i++) {
		fake_send_order(SL_MSG_EVICT, i, BYTES, LATE_MS);
		check_refused(i, SL_WIRE_SWAP_BUSY);
		CHECK(gate_opens());
		CHECK_EQ(launch(), CUDA_SUCCESS);
	}
	CHECK_EQ(mover.evicts, 0);
	__atomic_store_n(&stub_busy, NULL, __ATOMIC_RELEASE);
	order(SL_MSG_EVICT, 4);
	check_ok(4, BYTES);
	stop();
}

/* A thread stays inside the driver, whose queue is full. */
static void body_held_inside(void)
{
	struct submitter s;

	start();
	__atomic_store_n(&stub_hold_launches, 1, __ATOMIC_RELEASE);
	start_submitting(&s);
	CHECK(becomes(&stub.launches, 1));
	fake_send_order(SL_MSG_EVICT, 1, BYTES, LATE_MS);
	check_refused(1, SL_WIRE_SWAP_BUSY);
	__atomic_store_n(&stub_hold_launches, 0, __ATOMIC_RELEASE);
	check_submitted(&s);
	CHECK_EQ(mover.evicts, 0);
	stop();
}

static void body_abort(void)
{
	start();
	__atomic_store_n(&stub_busy, ctx, __ATOMIC_RELEASE);
	order(SL_MSG_EVICT, 1);
	order(SL_MSG_EVICT, 2);
	order(SL_MSG_ABORT, 2);
	check_refused(2, SL_WIRE_SWAP_ABORTED);
	order(SL_MSG_ABORT, 1);
	check_refused(1, SL_WIRE_SWAP_ABORTED);
	CHECK_EQ(mover.evicts, 0);
	CHECK(gate_opens());
	__atomic_store_n(&stub_busy, NULL, __ATOMIC_RELEASE);
	stop();
}

/* More orders than fit in the queue, while the first is carried out. */
static void body_crowd(void)
{
	start();
	__atomic_store_n(&mover.hold, 1, __ATOMIC_RELEASE);
	order(SL_MSG_EVICT, 1);
	CHECK(becomes(&mover.inside, 1));
	for (uint64_t i = 2; i <= 6; i++)
		order(SL_MSG_EVICT, i);
	CHECK_EQ(answer_to(6).outcome, SL_WIRE_SWAP_REFUSED);
	__atomic_store_n(&mover.hold, 0, __ATOMIC_RELEASE);
	check_ok(5, 5 * BYTES);
	order(SL_MSG_RESTORE, 7);
	check_ok(7, 0);
	stop();
}

static void body_mover_fails(void)
{
	start();
	fail_with(SL_WIRE_SWAP_NO_HOST, CUDA_SUCCESS);
	order(SL_MSG_EVICT, 1);
	check_refused(1, SL_WIRE_SWAP_NO_HOST);
	CHECK(gate_opens());
	CHECK(!sl_swap_is_out());
	fail_with(SL_WIRE_SWAP_NO_CAUSE, CUDA_SUCCESS);
	order(SL_MSG_EVICT, 2);
	check_ok(2, BYTES);
	fail_with(SL_WIRE_SWAP_NO_ROOM, CUDA_SUCCESS);
	order(SL_MSG_RESTORE, 3);
	CHECK_EQ(answer_to(3).outcome, SL_WIRE_SWAP_REFUSED);
	CHECK_EQ(answer_to(3).evicted_bytes, BYTES);
	CHECK(!gate_is_open());
	fail_with(SL_WIRE_SWAP_NO_CAUSE, CUDA_SUCCESS);
	order(SL_MSG_RESTORE, 4);
	check_ok(4, 0);
	CHECK(gate_opens());
	stop();
}

/* A broken context gets nothing back, and holds nobody at the gate for it. */
static void body_broken(void)
{
	struct submitter s;

	start();
	order(SL_MSG_EVICT, 1);
	check_ok(1, BYTES);
	start_submitting(&s);
	fail_with(SL_WIRE_SWAP_DRIVER, CUDA_ERROR_ILLEGAL_ADDRESS);
	order(SL_MSG_RESTORE, 2);
	CHECK_EQ(answer_to(2).evicted_bytes, BYTES);
	check_submitted(&s);
	stop();
}

/* --- captures and contexts ---------------------------------------------------------------------- */

static void *begin_capture(void *arg)
{
	struct submitter *s = arg;
	CUgraph graph;

	__atomic_store_n(&s->begun, 1, __ATOMIC_RELEASE);
	s->result =
		cuStreamBeginCapture_v2((CUstream)0x10, CU_STREAM_CAPTURE_MODE_GLOBAL);
	__atomic_store_n(&s->done, 1, __ATOMIC_RELEASE);
	CHECK_EQ(cuStreamEndCapture((CUstream)0x10, &graph), CUDA_SUCCESS);
	return NULL;
}

/* One that begins while memory moves waits for its end, and for the way back. */
static void body_capture_begins(void)
{
	struct submitter s = {0};

	start();
	__atomic_store_n(&mover.hold, 1, __ATOMIC_RELEASE);
	order(SL_MSG_EVICT, 1);
	CHECK(becomes(&mover.inside, 1));
	CHECK_EQ(pthread_create(&s.thread, NULL, begin_capture, &s), 0);
	CHECK(want_becomes(1));
	CHECK(!sl_capture_is_open());
	__atomic_store_n(&mover.hold, 0, __ATOMIC_RELEASE);
	check_ok(1, BYTES);
	CHECK_EQ(__atomic_load_n(&s.done, __ATOMIC_ACQUIRE), 0);
	order(SL_MSG_RESTORE, 2);
	check_ok(2, 0);
	check_submitted(&s);
	stop();
}

/* Contexts come and go in every state. */
static void body_contexts(void)
{
	CUcontext more[8];

	start();
	for (size_t i = 0; i < SL_ARRAY_LEN(more); i++)
		CHECK_EQ(cuCtxCreate_v2(&more[i], 0, i % STUB_DEVICES), CUDA_SUCCESS);
	order(SL_MSG_EVICT, 1);
	check_ok(1, BYTES);
	CHECK_EQ(cuCtxDestroy_v2(more[0]), CUDA_SUCCESS);
	CHECK_EQ(cuCtxCreate_v2(&more[0], 0, 0), CUDA_SUCCESS);
	CHECK_EQ(cuCtxDestroy_v2(more[1]), CUDA_SUCCESS);
	order(SL_MSG_RESTORE, 2);
	check_ok(2, 0);
	CHECK_EQ(cuCtxDestroy_v2(more[2]), CUDA_SUCCESS);
	stop();
}

static void *destroy(void *arg)
{
	CHECK_EQ(cuCtxDestroy_v2(arg), CUDA_SUCCESS);
	return NULL;
}

/* Nobody ends a context under the mover. */
static void body_destroy_waits(void)
{
	pthread_t thread;

	start();
	__atomic_store_n(&mover.hold, 1, __ATOMIC_RELEASE);
	order(SL_MSG_EVICT, 1);
	CHECK(becomes(&mover.inside, 1));
	CHECK_EQ(pthread_create(&thread, NULL, destroy, ctx), 0);
	usleep(20000);
	CHECK_EQ(pthread_tryjoin_np(thread, NULL), EBUSY);
	__atomic_store_n(&mover.hold, 0, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	check_ok(1, BYTES);
	stop();
}

/* --- calls that submit nothing ------------------------------------------------------------------- */

/* Memory that somebody has just made sure of stays until he says so. */
static void body_kept(void)
{
	start();
	sl_swap_keep();
	order(SL_MSG_EVICT, 1);
	check_refused(1, SL_WIRE_SWAP_BUSY);
	CHECK_EQ(mover.evicts, 0);
	CHECK(gate_opens());
	sl_swap_keep_end();
	order(SL_MSG_EVICT, 2);
	check_ok(2, BYTES);
	stop();
}

static uint32_t given_up;

static void *need(void *arg)
{
	struct submitter *s = arg;

	s->result = sl_swap_need_unless(&given_up, 1);
	if (s->result)
		sl_swap_done();
	__atomic_store_n(&s->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Who waits for it counts as one who wants it, without a submission, and may give up. */
static void body_needed(void)
{
	struct submitter s = {0};
	uint64_t before;

	start();
	before = sl_gate_submissions();
	evict_all();
	CHECK_EQ(pthread_create(&s.thread, NULL, need, &s), 0);
	CHECK(want_becomes(1));
	CHECK_EQ(__atomic_load_n(&s.done, __ATOMIC_ACQUIRE), 0);
	__atomic_store_n(&given_up, 1, __ATOMIC_RELEASE);
	CHECK_EQ(pthread_join(s.thread, NULL), 0);
	CHECK_EQ(s.result, false);
	CHECK(want_becomes(0));
	given_up = 0;
	CHECK_EQ(pthread_create(&s.thread, NULL, need, &s), 0);
	CHECK(want_becomes(1));
	order(SL_MSG_RESTORE, 2);
	CHECK_EQ(pthread_join(s.thread, NULL), 0);
	CHECK_EQ(s.result, true);
	CHECK_EQ(sl_gate_submissions(), before);
	stop();
}

/* --- the daemon goes ------------------------------------------------------------------------------ */

/* Evicted, it waits; the next daemon hears what is out, and who wants it. */
static void body_gone_evicted(void)
{
	struct submitter s;

	start();
	order(SL_MSG_EVICT, 1);
	check_ok(1, BYTES);
	start_submitting(&s);
	CHECK(want_becomes(1));
	fake_die();
	usleep(20000);
	CHECK_EQ(__atomic_load_n(&s.done, __ATOMIC_ACQUIRE), 0);
	fake.wants = 0;
	fake_listen();
	CHECK(fake_wait(&fake.reporteds, 2));
	CHECK_EQ(FAKE(evicteds), 1);
	CHECK_EQ(FAKE(told_evicted_bytes), BYTES);
	CHECK(want_becomes(1));
	order(SL_MSG_RESTORE, 2);
	check_ok(2, 0);
	check_submitted(&s);
	stop();
}

/* Gone while work is waited for: nothing has left, and the program goes on. */
static void body_gone_draining(void)
{
	start();
	__atomic_store_n(&stub_busy, ctx, __ATOMIC_RELEASE);
	order(SL_MSG_EVICT, 1);
	while (gate_is_open())
		usleep(100);
	fake_die();
	CHECK(gate_opens());
	CHECK_EQ(launch(), CUDA_SUCCESS);
	fake_listen();
	CHECK(fake_wait(&fake.reporteds, 2));
	CHECK_EQ(FAKE(swappeds), 0);
	CHECK_EQ(FAKE(evicteds), 0);
	__atomic_store_n(&stub_busy, NULL, __ATOMIC_RELEASE);
	stop();
}

/* Gone in the middle: what has left is told once it is over, in no answer but in the report. */
static void body_gone_moving(void)
{
	start();
	order(SL_MSG_EVICT, 1);
	check_ok(1, BYTES);
	__atomic_store_n(&mover.hold, 1, __ATOMIC_RELEASE);
	order(SL_MSG_RESTORE, 2);
	CHECK(becomes(&mover.inside, 1));
	fake_die();
	fake.swappeds = 0;
	fake_listen();
	usleep(300000);
	CHECK_EQ(FAKE(reporteds), 1);
	__atomic_store_n(&mover.hold, 0, __ATOMIC_RELEASE);
	CHECK(fake_wait(&fake.reporteds, 2));
	CHECK_EQ(FAKE(evicteds), 0);
	CHECK_EQ(FAKE(swappeds), 0);
	CHECK(gate_opens());
	stop();
}

/* A daemon that knows nothing of this orders nothing back: it comes by itself. */
static void body_older_daemon(void)
{
	struct submitter s;

	start();
	order(SL_MSG_EVICT, 1);
	check_ok(1, BYTES);
	start_submitting(&s);
	fake_die();
	fail_with(SL_WIRE_SWAP_NO_ROOM, CUDA_SUCCESS);
	fake.speaks = sl_wire_since(SL_MSG_SWAPPED) - 1;
	fake_listen();
	CHECK(fake_wait(&fake.reporteds, 2));
	usleep(20000);
	CHECK_EQ(__atomic_load_n(&s.done, __ATOMIC_ACQUIRE), 0);
	fail_with(SL_WIRE_SWAP_NO_CAUSE, CUDA_SUCCESS);
	check_submitted(&s);
	CHECK_EQ(FAKE(evicteds), 0);
	stop();
}

/* --- frees ------------------------------------------------------------------------------------------ */

/* The last evicted byte is freed: nobody need order anything. */
static void body_all_freed(void)
{
	struct submitter s;
	CUdeviceptr ptr;
	struct sl_gpu *gpu;
	uint8_t uuid[16];

	start();
	stub_uuid(0, uuid);
	gpu = sl_session_gpu(uuid);
	CHECK_EQ(cuMemAlloc_v2(&ptr, BYTES), CUDA_SUCCESS);
	order(SL_MSG_EVICT, 1);
	check_ok(1, BYTES);
	start_submitting(&s);
	CHECK(want_becomes(1));
	sl_session_freed_evicted(gpu, BYTES);
	check_submitted(&s);
	CHECK(!sl_swap_is_out());
	CHECK(fake_wait(&fake.freed_evicteds, 1));
	CHECK_EQ(FAKE(evicted_bytes), 0);
	order(SL_MSG_RESTORE, 2);
	check_ok(2, 0);
	stop();
}

/* --- signals and ends at the gate --------------------------------------------------------------------- */

static uint32_t handled;
static sigjmp_buf outside;

static void on_signal(int number)
{
	(void)number;
	__atomic_fetch_add(&handled, 1, __ATOMIC_RELEASE);
}

static void on_jump(int number)
{
	(void)number;
	siglongjmp(outside, 1);
}

static void on_exit_signal(int number)
{
	(void)number;
	exit(0);
}

/* A call that waits for nothing works in a handler above the gate. */
static void on_query(int number)
{
	CUdevice dev;

	(void)number;
	if (sl_real.cuCtxGetDevice(&dev) == CUDA_SUCCESS &&
		cuCtxSynchronize() == CUDA_SUCCESS)
		__atomic_fetch_add(&handled, 1, __ATOMIC_RELEASE);
}

static void handle_with(int number, void (*handler)(int))
{
	struct sigaction action = {.sa_handler = handler};

	CHECK_EQ(sigaction(number, &action, NULL), 0);
}

static void body_signal_runs(void)
{
	struct submitter s;

	start();
	handle_with(SIGINT, on_signal);
	handle_with(SIGTERM, on_query);
	evict_all();
	start_submitting(&s);
	CHECK(want_becomes(1));
	CHECK_EQ(pthread_kill(s.thread, SIGINT), 0);
	CHECK(becomes(&handled, 1));
	CHECK_EQ(pthread_kill(s.thread, SIGTERM), 0);
	CHECK(becomes(&handled, 2));
	CHECK_EQ(__atomic_load_n(&s.done, __ATOMIC_ACQUIRE), 0);
	order(SL_MSG_RESTORE, 2);
	check_submitted(&s);
	stop();
}

static void *jump_out(void *arg)
{
	struct submitter *s = arg;

	CHECK_EQ(sl_real.cuCtxPushCurrent_v2(ctx), CUDA_SUCCESS);
	__atomic_store_n(&s->begun, 1, __ATOMIC_RELEASE);
	if (sigsetjmp(outside, 1) == 0)
		(void)launch();
	__atomic_store_n(&s->done, 1, __ATOMIC_RELEASE);
	/* It can go on, and come back. */
	CHECK(becomes(&handled, 1));
	s->result = launch();
	return NULL;
}

static void body_jump(void)
{
	struct submitter s = {0};

	start();
	handle_with(SIGINT, on_jump);
	evict_all();
	CHECK_EQ(pthread_create(&s.thread, NULL, jump_out, &s), 0);
	CHECK(want_becomes(1));
	CHECK_EQ(pthread_kill(s.thread, SIGINT), 0);
	CHECK(becomes(&s.done, 1));
	CHECK(want_becomes(0));
	__atomic_store_n(&handled, 1, __ATOMIC_RELEASE);
	CHECK(want_becomes(1));
	order(SL_MSG_RESTORE, 2);
	check_submitted(&s);
	stop();
}

static void body_exit_in_handler(void)
{
	start();
	handle_with(SIGTERM, on_exit_signal);
	evict_all();
	alarm(10);
	{
		struct submitter s;

		start_submitting(&s);
		CHECK(want_becomes(1));
		CHECK_EQ(pthread_kill(s.thread, SIGTERM), 0);
		pthread_join(s.thread, NULL);
	}
	_exit(1);
}

static void *cancel_me(void *arg)
{
	(void)pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	return submit(arg);
}

static void body_cancelled(void)
{
	struct submitter s = {0};

	start();
	evict_all();
	CHECK_EQ(pthread_create(&s.thread, NULL, cancel_me, &s), 0);
	CHECK(want_becomes(1));
	CHECK_EQ(pthread_cancel(s.thread), 0);
	CHECK_EQ(pthread_join(s.thread, NULL), 0);
	CHECK(want_becomes(0));
	order(SL_MSG_RESTORE, 2);
	check_ok(2, 0);
	CHECK_EQ(launch(), CUDA_SUCCESS);
	order(SL_MSG_EVICT, 3);
	check_ok(3, BYTES);
	stop();
}

/* How often threads of this process went to sleep so far. */
static long sleeps(void)
{
	struct rusage usage;

	CHECK_EQ(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

/* Who waits sleeps: eight threads at the gate wake for a moment once a second, and with them the agent. */
static void body_waits_quietly(void)
{
	struct submitter many[8];
	long before;

	start();
	evict_all();
	for (size_t i = 0; i < SL_ARRAY_LEN(many); i++)
		start_submitting(&many[i]);
	CHECK(want_becomes(1));
	/* The fake daemon polls, so it is not part of what is looked at. */
	fake_die();
	before = sleeps();
	usleep(2000000);
	CHECK(sleeps() - before < 200);
	fake_listen();
	CHECK(fake_wait(&fake.reporteds, 2));
	order(SL_MSG_RESTORE, 2);
	for (size_t i = 0; i < SL_ARRAY_LEN(many); i++)
		check_submitted(&many[i]);
	stop();
}

/* --- threads and processes ------------------------------------------------------------------------------ */

static uint32_t coming_and_going = 1;

static void *come_and_go(void *arg)
{
	struct submitter s;

	(void)arg;
	while (__atomic_load_n(&coming_and_going, __ATOMIC_ACQUIRE)) {
		start_submitting(&s);
		check_submitted(&s);
	}
	return NULL;
}

static void body_threads_come_and_go(void)
{
	pthread_t threads[3];

	start();
	for (size_t i = 0; i < SL_ARRAY_LEN(threads); i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, come_and_go, NULL), 0);
	for (uint64_t i = 1; i <= 60; i += 2) {
		order(SL_MSG_EVICT, i);
		check_ok(i, BYTES);
		order(SL_MSG_RESTORE, i + 1);
		check_ok(i + 1, 0);
	}
	__atomic_store_n(&coming_and_going, 0, __ATOMIC_RELEASE);
	for (size_t i = 0; i < SL_ARRAY_LEN(threads); i++)
		pthread_join(threads[i], NULL);
	CHECK(want_becomes(0));
	stop();
}

/* A child of a fork has nothing on the host, and nobody holds it. */
static void body_fork(void)
{
	int status;
	pid_t pid;

	start();
	evict_all();
	pid = fork();
	if (pid == 0) {
		CHECK(!sl_swap_is_out());
		CHECK(sl_gate_word < SL_GATE_CLOSER);
		sl_swap_need();
		sl_swap_done();
		sl_control_enter();
		sl_control_leave();
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK(sl_swap_is_out());
	order(SL_MSG_RESTORE, 2);
	check_ok(2, 0);
	stop();
}

#define TEST(name, limit_s)                     \
	static void test_##name(void **x)       \
	{                                       \
		in_child(body_##name, limit_s); \
	}
#define TESTS(X)                   \
	X(there_and_back, 30)      \
	X(twice, 30)               \
	X(capture, 30)             \
	X(endless, 30)             \
	X(held_inside, 30)         \
	X(abort, 30)               \
	X(crowd, 30)               \
	X(mover_fails, 30)         \
	X(broken, 30)              \
	X(capture_begins, 30)      \
	X(contexts, 30)            \
	X(destroy_waits, 30)       \
	X(kept, 30)                \
	X(needed, 30)              \
	X(gone_evicted, 30)        \
	X(gone_draining, 30)       \
	X(gone_moving, 30)         \
	X(older_daemon, 30)        \
	X(all_freed, 30)           \
	X(signal_runs, 30)         \
	X(jump, 30)                \
	X(exit_in_handler, 30)     \
	X(cancelled, 30)           \
	X(waits_quietly, 60)       \
	X(threads_come_and_go, 60) \
	X(fork, 30)
TESTS(TEST)

#define ROW(name, limit_s) cmocka_unit_test(test_##name),

int main(void)
{
	const struct CMUnitTest tests[] = {TESTS(ROW)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
