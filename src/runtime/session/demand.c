/*
 * demand - see demand.h
 *
 * `generation` makes the daemon's death harmless. It counts the connections on which this process
 * has reported its memory, and a grant records the generation in which it came. If a newer one has
 * begun, no COMMIT is sent for the grant: the report to the new daemon already included it, so only
 * the unused part is given back.
 */
#include "runtime/session/demand.h"
#include "runtime/gate/door.h"
#include "runtime/process/futex.h"
#include "runtime/session/state.h"

#include "base/step.h"

#include <string.h>

/* A usual answer takes 20 to 30 us, and a thread that sleeps on an idle core another 10 to 20 us to
 * wake. So for this long the thread yields its core instead of sleeping. */
#define USUAL_ANSWER_NS (50 * SL_US)
/* After a longer wait the thread gives back what it hoards; usual answers are faster. */
#define SLOW_ANSWER_NS (5 * SL_MS)
/* WORK is sent at most this often (messages.def). */
#define WORK_SPAN_NS (250 * SL_MS)

static void say_ask(const struct sl_demand *demand)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_ASK);
	msg.ask.ask = demand->number;
	msg.ask.ordinal = demand->gpu->ordinal;
	msg.ask.flags = demand->flags;
	msg.ask.bytes = demand->bytes;
	sl_session_say(&msg);
}

static void say_commit(uint64_t epoch, uint64_t used_bytes)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_COMMIT);
	msg.commit.epoch = epoch;
	msg.commit.used_bytes = used_bytes;
	sl_session_say(&msg);
}

/* Denials other than out-of-memory, and the program's results for them. */
static const struct {
	uint32_t flag;
	CUresult result;
} denials[] = {
	{SL_DENY_GPU_LOST, CUDA_ERROR_DEVICE_UNAVAILABLE},
};

static CUresult denial_of(const struct sl_msg_deny *msg)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(denials); i++) {
		if (denials[i].flag & msg->flags)
			return denials[i].result;
	}
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* --- answers ---------------------------------------------------------------------------- */

static void finish_demand(struct sl_demand *demand, int outcome)
{
	sl_list_unlink(&demand->link);
	demand->outcome = outcome;
	__atomic_store_n(&demand->state, SL_DEMAND_DONE, __ATOMIC_RELEASE);
	/* The record may be gone once the state is written; waking needs only its address. */
	sl_futex_wake(&demand->state, 1);
}

static struct sl_demand *demand_of(uint64_t number)
{
	sl_list_foreach (link, &sl_session.demands) {
		struct sl_demand *demand = SL_LIST_ENTRY(link, struct sl_demand, link);

		if (demand->number == number)
			return demand;
	}
	return NULL;
}

/* Bytes granted earlier become held. The COMMIT tells the daemon. */
static void hold(struct sl_demand *demand, uint64_t epoch)
{
	demand->gpu->held_bytes += (int64_t)demand->bytes;
	demand->gpu->told_held_bytes += demand->bytes;
	say_commit(epoch, demand->bytes);
	finish_demand(demand, SL_DEMAND_GRANTED);
}

void sl_demand_on_grant(const struct sl_msg_grant *msg)
{
	struct sl_demand *demand = demand_of(msg->ask);

	/* A grant is for the whole demand. A smaller one, or one for a demand that is gone, goes
	 * back. The grant for a context has no bytes. */
	if (!demand ||
		(msg->bytes < demand->bytes && !(demand->flags & SL_ASK_CONTEXT))) {
		say_commit(msg->epoch, 0);
		if (demand)
			finish_demand(demand, SL_DEMAND_DENIED);
		return;
	}
	if (demand->flags & SL_ASK_THERE) {
		hold(demand, msg->epoch);
		return;
	}
	demand->epoch = msg->epoch;
	demand->granted_bytes = msg->bytes;
	demand->generation = sl_session.generation;
	demand->gpu->backing_bytes += msg->bytes;
	sl_step(C_GRANTED);
	finish_demand(demand, SL_DEMAND_GRANTED);
}

void sl_demand_on_deny(const struct sl_msg_deny *msg)
{
	struct sl_demand *demand = demand_of(msg->ask);

	if (!demand)
		return;
	sl_step(C_DENIED);
	demand->denial = denial_of(msg);
	finish_demand(demand, SL_DEMAND_DENIED);
}

void sl_demand_ask_again(void)
{
	sl_list_foreach_safe (link, &sl_session.demands) {
		say_ask(SL_LIST_ENTRY(link, struct sl_demand, link));
		sl_step(C_ASKED_AGAIN);
	}
}

void sl_demand_refuse_all(void)
{
	sl_list_foreach_safe (link, &sl_session.demands)
		finish_demand(
			SL_LIST_ENTRY(link, struct sl_demand, link), SL_DEMAND_REFUSED);
}

/* --- asking ----------------------------------------------------------------------------- */

/* Tells the daemon that other threads still work while this one waits, so the wait is not a
 * deadlock. Submissions before the wait do not count: after WORK the daemon takes the client for
 * busy, and an unchanged pulse would not report it idle again. */
static void tell_work(uint64_t before)
{
	uint64_t work = sl_gate_submissions();
	sl_ns now_ns = sl_clock_now();
	union sl_msg msg;

	sl_session_lock();
	if (work != before && work != sl_session.work_sent &&
		now_ns - sl_session.work_sent_ns >= WORK_SPAN_NS) {
		sl_wire_init(&msg, SL_MSG_WORK);
		msg.work.submissions = work;
		sl_session.work_sent = work;
		sl_session.work_sent_ns = now_ns;
		sl_session_say(&msg);
	}
	sl_session_unlock();
}

static int await(struct sl_demand *demand, void (*on_slow)(void))
{
	sl_ns span_ns = SLOW_ANSWER_NS, deadline_ns = sl_clock_now() + span_ns;
	uint64_t before = sl_gate_submissions();

	sl_futex_yield(&demand->state, SL_DEMAND_WAITING, USUAL_ANSWER_NS);
	while (__atomic_load_n(&demand->state, __ATOMIC_ACQUIRE) == SL_DEMAND_WAITING) {
		uint32_t calls = sl_door_step_out();

		sl_futex_wait(&demand->state, SL_DEMAND_WAITING, span_ns);
		sl_door_step_in(calls);
		if (sl_clock_now() < deadline_ns)
			continue;
		if (on_slow)
			on_slow();
		on_slow = NULL;
		tell_work(before);
		span_ns = WORK_SPAN_NS;
		deadline_ns = sl_clock_now() + span_ns;
	}
	return demand->outcome;
}

int sl_demand_ask(struct sl_demand *demand, struct sl_gpu *gpu, uint64_t bytes,
	void (*on_slow)(void))
{
	return sl_demand_ask_as(demand, gpu, bytes, 0, on_slow);
}

int sl_demand_ask_as(struct sl_demand *demand, struct sl_gpu *gpu, uint64_t bytes,
	uint32_t flags, void (*on_slow)(void))
{
	bool refused, hopeless;

	memset(demand, 0, sizeof(*demand));
	demand->gpu = gpu;
	demand->bytes = bytes;
	demand->flags = flags;
	demand->denial = CUDA_ERROR_OUT_OF_MEMORY;
	sl_list_init(&demand->link);
	sl_session_lock();
	refused = sl_session.state == SL_SESSION_REFUSED;
	/* The demand exceeds the limit, whatever other processes use. The daemon denies it at once
	 * and keeps the reason for `sluice why`; without a daemon it is denied here. */
	hopeless = bytes > gpu->limit_bytes && !sl_session.welcomed;
	if (!refused && !hopeless) {
		demand->number = ++sl_session.last_number;
		sl_list_push_tail(&sl_session.demands, &demand->link);
		say_ask(demand);
	}
	sl_session_unlock();
	if (refused)
		return SL_DEMAND_REFUSED;
	if (hopeless)
		return SL_DEMAND_DENIED;
	sl_step(C_ASKED);
	return await(demand, on_slow);
}

int sl_demand_failed(struct sl_demand *demand, CUresult result)
{
	struct sl_gpu *gpu = demand->gpu;
	union sl_msg msg;

	sl_session_lock();
	gpu->backing_bytes = sl_sub_sat(gpu->backing_bytes, demand->granted_bytes);
	demand->state = SL_DEMAND_WAITING;
	if (sl_session.state == SL_SESSION_REFUSED) {
		sl_session_unlock();
		return SL_DEMAND_REFUSED;
	}
	sl_list_push_tail(&sl_session.demands, &demand->link);
	if (demand->generation == sl_session.generation) {
		sl_wire_init(&msg, SL_MSG_CREATE_FAILED);
		msg.create_failed.epoch = demand->epoch;
		msg.create_failed.driver_result = (uint32_t)result;
		sl_session_say(&msg);
	} else {
		sl_session_say_freed(gpu, demand->granted_bytes, 0);
		say_ask(demand);
	}
	sl_session_unlock();
	sl_step(C_CREATE_FAILED);
	return await(demand, NULL);
}

void sl_demand_commit(struct sl_demand *demand, uint64_t used_bytes)
{
	struct sl_gpu *gpu = demand->gpu;
	uint64_t unused_bytes = sl_sub_sat(demand->granted_bytes, used_bytes);

	sl_session_lock();
	gpu->backing_bytes = sl_sub_sat(gpu->backing_bytes, unused_bytes);
	if (demand->flags & SL_ASK_HELD)
		gpu->held_bytes += (int64_t)used_bytes;
	if (demand->generation == sl_session.generation) {
		say_commit(demand->epoch, used_bytes);
		if (demand->flags & SL_ASK_HELD)
			gpu->told_held_bytes += used_bytes;
	} else {
		sl_session_say_freed(gpu, unused_bytes, 0);
		sl_session_say_held(false);
	}
	sl_session_unlock();
}
