/*
 * swap - orders to evict and restore: the steps before and after the move, and the gate
 *
 * The move itself is tested elsewhere. peer-failures: unmap under running work, a drain that never
 * ends.
 */
#include "../swap-test.h"

#include "runtime/contexts/capture.h"

/* --- there and back -------------------------------------------------------------------------- */

static void body_there_and_back(void)
{
	struct submitter s;

	start();
	CHECK_EQ(launch(), CUDA_SUCCESS);
	order(SL_MSG_EVICT, 1);
	check_ok(1, BYTES);
	CHECK(sl_residency_is_partial());
	CHECK_EQ(FAKE(wants), 0);
	start_submitting(&s);
	CHECK(want_becomes(1));
	CHECK_EQ(__atomic_load_n(&s.done, __ATOMIC_ACQUIRE), 0);
	CHECK_EQ(__atomic_load_n(&stub.launches, __ATOMIC_ACQUIRE), 1);
	order(SL_MSG_RESTORE, 2);
	check_ok(2, 0);
	check_submitted(&s);
	CHECK(!sl_residency_is_partial());
	CHECK(want_becomes(0));
	CHECK_EQ(FAKE(wants), 2);
	CHECK_EQ(__atomic_load_n(&mover.evicts, __ATOMIC_ACQUIRE), 1);
	CHECK_EQ(__atomic_load_n(&mover.restores, __ATOMIC_ACQUIRE), 1);
	stop();
}

/* More can leave while some is on the host, and a RESTORE of resident memory is answered. */
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

/* It says how far it is where that was asked for, and not at the end, which its answer tells. */
static void body_told(void)
{
	start();
	order(SL_MSG_EVICT, 1);
	check_ok(1, BYTES);
	CHECK_EQ(FAKE(moveds), 0);
	fake.tell_bytes = BYTES / 4;
	order(SL_MSG_EVICT, 2);
	check_ok(2, 2 * BYTES);
	CHECK_EQ(FAKE(moveds), 3);
	for (unsigned int i = 0; i < 3; i++) {
		struct sl_msg_moved moved = FAKE(moved[i]);

		CHECK_EQ(moved.order, 2);
		CHECK_EQ(moved.evicted_bytes, BYTES + (i + 1) * BYTES / 4);
	}
	fake.tell_bytes = BYTES / 2;
	order(SL_MSG_EVICT, 3);
	check_ok(3, 3 * BYTES);
	CHECK_EQ(FAKE(moveds), 4);
	order(SL_MSG_RESTORE, 4);
	check_ok(4, 0);
	CHECK_EQ(FAKE(moveds), 4);
	stop();
}

/* A return in parts keeps the gate closed until the last of them, and is wanted all the time. */
static void body_parts(void)
{
	struct submitter s;

	start();
	order(SL_MSG_EVICT, 1);
	check_ok(1, BYTES);
	start_submitting(&s);
	CHECK(want_becomes(1));
	for (uint64_t i = 1; i < 4; i++) {
		fake_send_order(SL_MSG_RESTORE, 1 + i, BYTES / 4, LONG_MS);
		check_ok(1 + i, BYTES - i * BYTES / 4);
		CHECK_EQ(answer_to(1 + i).moved_bytes, BYTES / 4);
		CHECK(!gate_is_open());
		CHECK(sl_residency_is_partial());
		CHECK_EQ(__atomic_load_n(&s.done, __ATOMIC_ACQUIRE), 0);
	}
	CHECK_EQ(FAKE(last_want), 1);
	fake_send_order(SL_MSG_RESTORE, 5, BYTES, LONG_MS);
	check_ok(5, 0);
	check_submitted(&s);
	CHECK(gate_opens());
	CHECK(want_becomes(0));
	stop();
}

/* Memory that is just being freed is in no list: the answer comes when it has gone. */
static void body_freed_meanwhile(void)
{
	struct sl_gpu *gpu;
	CUdeviceptr ptr;

	start();
	gpu = books_gpu();
	CHECK_EQ(cuMemAlloc_v2(&ptr, BYTES), CUDA_SUCCESS);
	order(SL_MSG_EVICT, 1);
	check_ok(1, BYTES);
	__atomic_store_n(&mover.unseen, BYTES / 4, __ATOMIC_RELEASE);
	order(SL_MSG_RESTORE, 2);
	for (int i = 0; i < 100000; i++) {
		if (__atomic_load_n(&mover.restores, __ATOMIC_ACQUIRE) >= 3)
			break;
		usleep(100);
	}
	CHECK(!gate_is_open());
	sl_control_enter();
	sl_session_freed_evicted(gpu, BYTES / 4);
	__atomic_store_n(&mover.unseen, 0, __ATOMIC_RELEASE);
	sl_control_leave();
	check_ok(2, 0);
	CHECK_EQ(answer_to(2).moved_bytes, BYTES - BYTES / 4);
	CHECK(gate_opens());
	stop();
}

/* What does not go for long is left out, and the answer does not say that all is back. */
static void body_freed_at_length(void)
{
	struct sl_gpu *gpu;
	CUdeviceptr ptr;
	uint8_t uuid[16];

	start();
	stub_uuid(0, uuid);
	gpu = sl_session_gpu(uuid);
	CHECK_EQ(cuMemAlloc_v2(&ptr, BYTES), CUDA_SUCCESS);
	order(SL_MSG_EVICT, 1);
	check_ok(1, BYTES);
	__atomic_store_n(&mover.unseen, BYTES / 4, __ATOMIC_RELEASE);
	order(SL_MSG_RESTORE, 2);
	CHECK_EQ(answer_to(2).outcome, SL_WIRE_SWAP_PART);
	CHECK_EQ(answer_to(2).cause, SL_WIRE_SWAP_BUSY);
	CHECK_EQ(answer_to(2).evicted_bytes, BYTES / 4);
	CHECK(!gate_is_open());
	sl_control_enter();
	sl_session_freed_evicted(gpu, BYTES / 4);
	sl_control_leave();
	CHECK(gate_opens());
	stop();
}

/* --- refusals --------------------------------------------------------------------------------- */

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
	CHECK_EQ(__atomic_load_n(&mover.evicts, __ATOMIC_ACQUIRE), 0);
	__atomic_store_n(&stub_busy, NULL, __ATOMIC_RELEASE);
	order(SL_MSG_EVICT, 4);
	check_ok(4, BYTES);
	stop();
}

/* The driver fails to say whether the work has ended: nothing is moved, and all is as it was. */
static void body_proof_fails(void)
{
	const CUresult faults[] = {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE,
		CUDA_ERROR_DEINITIALIZED};

	start();
	CHECK_EQ(launch(), CUDA_SUCCESS);
	__atomic_store_n(&stub_busy, ctx, __ATOMIC_RELEASE);
	for (uint64_t i = 1; i <= SL_ARRAY_LEN(faults); i++) {
		stub_sync_with(faults[i - 1]);
		fake_send_order(SL_MSG_EVICT, i, BYTES, LATE_MS);
		check_refused(i, SL_WIRE_SWAP_BUSY);
		CHECK(gate_opens());
	}
	CHECK_EQ(__atomic_load_n(&mover.evicts, __ATOMIC_ACQUIRE), 0);
	stub_sync_with(CUDA_SUCCESS);
	__atomic_store_n(&stub_busy, NULL, __ATOMIC_RELEASE);
	order(SL_MSG_EVICT, 9);
	check_ok(9, BYTES);
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
	CHECK_EQ(__atomic_load_n(&mover.evicts, __ATOMIC_ACQUIRE), 0);
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
	CHECK_EQ(__atomic_load_n(&mover.evicts, __ATOMIC_ACQUIRE), 0);
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
	CHECK(!sl_residency_is_partial());
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

/* A broken context gets nothing back, and no thread waits at the gate for it. */
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

/* --- captures and contexts -------------------------------------------------------------------- */

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

/* No thread ends a context under the mover. */
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

/* --- calls that submit nothing ---------------------------------------------------------------- */

static uint32_t given_up;

static void *need(void *arg)
{
	struct submitter *s = arg;

	s->result = sl_residency_enter_unless(&given_up, 1);
	if (s->result)
		sl_residency_leave();
	__atomic_store_n(&s->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* A thread that waits for it counts as wanting it, without a submission, and may give up. */
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

/* --- the daemon goes -------------------------------------------------------------------------- */

/* Evicted, it waits; the next daemon hears what is on the host, and that it is wanted. */
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

/* The daemon goes in the middle: the evicted bytes are told afterwards, in the report, not in
 * an answer. */
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

/* A daemon that does not know us any more orders nothing back: the memory comes by itself, and
 * the daemon's later messages are ignored. */
static void body_rejected(void)
{
	struct submitter s;

	start();
	order(SL_MSG_EVICT, 1);
	check_ok(1, BYTES);
	start_submitting(&s);
	fake_die();
	fail_with(SL_WIRE_SWAP_NO_ROOM, CUDA_SUCCESS);
	fake.reject = SL_REJECT_WORKLOAD;
	fake_listen();
	for (int i = 0; i < 100000; i++) {
		if (__atomic_load_n(&mover.restores, __ATOMIC_ACQUIRE))
			break;
		usleep(100);
	}
	CHECK_EQ(__atomic_load_n(&s.done, __ATOMIC_ACQUIRE), 0);
	fail_with(SL_WIRE_SWAP_NO_CAUSE, CUDA_SUCCESS);
	check_submitted(&s);
	CHECK(!sl_residency_is_partial());
	stop();
}

/* --- frees ------------------------------------------------------------------------------------ */

/* The last evicted byte is freed: no order is needed. */
static void body_all_freed(void)
{
	struct submitter s;
	CUdeviceptr ptr;
	struct sl_gpu *gpu;

	start();
	gpu = books_gpu();
	CHECK_EQ(cuMemAlloc_v2(&ptr, BYTES), CUDA_SUCCESS);
	order(SL_MSG_EVICT, 1);
	check_ok(1, BYTES);
	start_submitting(&s);
	CHECK(want_becomes(1));
	sl_session_freed_evicted(gpu, BYTES);
	check_submitted(&s);
	CHECK(!sl_residency_is_partial());
	CHECK(fake_wait(&fake.freed_evicteds, 1));
	CHECK_EQ(FAKE(evicted_bytes), 0);
	order(SL_MSG_RESTORE, 2);
	check_ok(2, 0);
	stop();
}

#define TEST(name, limit_s)                     \
	static void test_##name(void **x)       \
	{                                       \
		in_child(body_##name, limit_s); \
	}
#define TESTS(X)               \
	X(there_and_back, 30)  \
	X(twice, 30)           \
	X(told, 30)            \
	X(parts, 30)           \
	X(freed_meanwhile, 30) \
	X(freed_at_length, 30) \
	X(capture, 30)         \
	X(endless, 30)         \
	X(proof_fails, 30)     \
	X(held_inside, 30)     \
	X(abort, 30)           \
	X(crowd, 30)           \
	X(mover_fails, 30)     \
	X(broken, 30)          \
	X(capture_begins, 30)  \
	X(contexts, 30)        \
	X(destroy_waits, 30)   \
	X(needed, 30)          \
	X(gone_evicted, 30)    \
	X(gone_draining, 30)   \
	X(gone_moving, 30)     \
	X(rejected, 30)        \
	X(all_freed, 30)
TESTS(TEST)

#define ROW(name, limit_s) cmocka_unit_test(test_##name),

int main(void)
{
	const struct CMUnitTest tests[] = {TESTS(ROW)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
