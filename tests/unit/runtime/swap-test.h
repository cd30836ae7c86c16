/*
 * swap-test - a mover and a program for tests of the order in which memory is moved
 *
 * The mover is the test's own: it moves all at once, and checks that it may. Included once per
 * test.
 */
#ifndef SL_TEST_RUNTIME_SWAP_TEST_H
#define SL_TEST_RUNTIME_SWAP_TEST_H

#include "books-test.h"

#include "runtime/gate/control.h"
#include "runtime/gate/gate.h"
#include "runtime/gate/residency.h"
#include "runtime/real/real.h"
#include "runtime/swap/swap.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#define BYTES   (64 * SL_MIB)
#define LATE_MS 50
#define LONG_MS 60000

static CUcontext ctx;

/* The mover of these tests: it moves all at once, and checks that it may. */
static struct {
	unsigned int evicts, restores;
	uint32_t hold; /* stays inside while above 0 */
	uint32_t inside;
	uint64_t unseen; /* bytes that the way back does not find, while above 0 */
	enum sl_wire_swap_cause cause; /* of the next failure */
	CUresult result;
} mover;

static inline void stay_inside(void)
{
	__atomic_store_n(&mover.inside, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&mover.hold, __ATOMIC_ACQUIRE))
		usleep(100);
	__atomic_store_n(&mover.inside, 0, __ATOMIC_RELEASE);
}

static inline bool fails(struct sl_moved *out)
{
	out->driver_result = __atomic_load_n(&mover.result, __ATOMIC_ACQUIRE);
	out->cause = __atomic_load_n(&mover.cause, __ATOMIC_ACQUIRE);
	return out->cause != SL_WIRE_SWAP_NO_CAUSE;
}

static inline void fail_with(enum sl_wire_swap_cause cause, CUresult result)
{
	__atomic_store_n(&mover.result, result, __ATOMIC_RELEASE);
	__atomic_store_n(&mover.cause, cause, __ATOMIC_RELEASE);
}

static inline void test_evict(
	struct sl_gpu *gpu, uint64_t bytes, const uint32_t *stop, struct sl_moved *out)
{
	uint64_t submissions = sl_gate_submissions();

	CHECK(__atomic_load_n(&sl_gate_word, __ATOMIC_ACQUIRE) >= SL_GATE_CLOSER);
	/* A thread that comes now is inside for a moment, until it sees that the gate is closed:
	 * nothing is submitted meanwhile. */
	CHECK(sl_gate_drain(10 * SL_S));
	CHECK_EQ(sl_gate_submissions(), submissions);
	CHECK(sl_residency_is_partial());
	/* The thread that is alone may call functions that others call inside. */
	sl_control_enter();
	sl_control_leave();
	__atomic_fetch_add(&mover.evicts, 1, __ATOMIC_RELEASE);
	stay_inside();
	if (__atomic_load_n(stop, __ATOMIC_ACQUIRE)) {
		out->cause = SL_WIRE_SWAP_ABORTED;
		return;
	}
	if (fails(out))
		return;
	/* In four pieces. */
	for (int i = 0; i < 4; i++) {
		out->left_bytes = out->moved_bytes += bytes / 4;
		sl_session_evicted(gpu, (int64_t)(bytes / 4));
		if (sl_mover_on_left)
			sl_mover_on_left(gpu, out);
	}
}

static inline void test_restore(struct sl_gpu *gpu, uint64_t most, struct sl_moved *out)
{
	uint64_t bytes = sl_session_evicted_bytes(gpu);

	CHECK(!bytes ||
		__atomic_load_n(&sl_gate_word, __ATOMIC_ACQUIRE) >= SL_GATE_CLOSER);
	memset(out, 0, sizeof(*out));
	bytes = sl_sub_sat(bytes, __atomic_load_n(&mover.unseen, __ATOMIC_ACQUIRE));
	bytes = sl_min_u64(bytes, most);
	__atomic_fetch_add(&mover.restores, 1, __ATOMIC_RELEASE);
	stay_inside();
	if (fails(out))
		return;
	out->left_bytes = out->moved_bytes = bytes;
	sl_session_evicted(gpu, -(int64_t)bytes);
}

static inline void start(void)
{
	stub_install();
	sl_swap_mover.evict = test_evict;
	sl_swap_mover.restore = test_restore;
	fake_start(false);
	CHECK_EQ(cuInit(0), CUDA_SUCCESS);
	CHECK_EQ(cuCtxCreate_v2(&ctx, 0, 0), CUDA_SUCCESS);
}

static inline void stop(void)
{
	CHECK(!FAKE(protocol_error));
	fake_stop();
}

static inline CUresult launch(void)
{
	return cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

/* The outcome of that order, once it has come. */
static inline struct sl_msg_swapped answer_to(uint64_t order)
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

static inline void order(enum sl_msg_type type, uint64_t number)
{
	/* All of it comes back. */
	fake_send_order(type, number, type == SL_MSG_RESTORE ? 0 : BYTES, LONG_MS);
}

static inline void check_refused(uint64_t number, enum sl_wire_swap_cause cause)
{
	struct sl_msg_swapped last = answer_to(number);

	CHECK_EQ(last.outcome, SL_WIRE_SWAP_REFUSED);
	CHECK_EQ(last.cause, cause);
	CHECK_EQ(last.evicted_bytes, 0);
}

static inline void check_ok(uint64_t number, uint64_t evicted_bytes)
{
	struct sl_msg_swapped last = answer_to(number);

	CHECK_EQ(last.outcome, SL_WIRE_SWAP_OK);
	CHECK_EQ(last.evicted_bytes, evicted_bytes);
}

static inline void evict_all(void)
{
	order(SL_MSG_EVICT, 1);
	check_ok(1, BYTES);
}

/* Whether it is so within ten seconds. */
#define SOON(condition)                                         \
	({                                                      \
		bool soon_ = false;                             \
                                                                \
		for (int i_ = 0; i_ < 100000 && !soon_; i_++) { \
			soon_ = (condition);                    \
			if (!soon_)                             \
				usleep(100);                    \
		}                                               \
		soon_;                                          \
	})

static inline bool becomes(uint32_t *what, uint32_t value)
{
	return SOON(__atomic_load_n(what, __ATOMIC_ACQUIRE) == value);
}

static inline bool gate_is_open(void)
{
	return __atomic_load_n(&sl_gate_word, __ATOMIC_ACQUIRE) < SL_GATE_CLOSER;
}

static inline bool gate_opens(void)
{
	return SOON(gate_is_open());
}

static inline bool want_becomes(uint32_t value)
{
	return SOON(FAKE(wants) && FAKE(last_want) == value);
}

/* --- a thread at the gate ------------------------------------------------------------------- */

struct submitter {
	pthread_t thread;
	uint32_t begun, done;
	CUresult result;
};

static inline void *submit(void *arg)
{
	struct submitter *s = arg;

	CHECK_EQ(sl_real.cuCtxPushCurrent_v2(ctx), CUDA_SUCCESS);
	__atomic_store_n(&s->begun, 1, __ATOMIC_RELEASE);
	s->result = launch();
	__atomic_store_n(&s->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static inline void start_submitting(struct submitter *s)
{
	memset(s, 0, sizeof(*s));
	CHECK_EQ(pthread_create(&s->thread, NULL, submit, s), 0);
	CHECK(becomes(&s->begun, 1));
}

static inline void check_submitted(struct submitter *s)
{
	CHECK_EQ(pthread_join(s->thread, NULL), 0);
	CHECK_EQ(s->result, CUDA_SUCCESS);
}

#endif
