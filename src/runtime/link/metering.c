/*
 * metering - see metering.h
 *
 * How many entries a slice has is learnt: work that is queued cannot be taken back, so the number
 * grows while slices end early for lack of entries, and shrinks when the queued work outlasts them.
 */
#include "runtime/link/metering.h"
#include "runtime/contexts/prove.h"
#include "runtime/gate/door.h"
#include "runtime/gate/gate.h"
#include "runtime/gate/meter.h"
#include "runtime/gate/residency.h"
#include "runtime/process/futex.h"
#include "runtime/process/libc.h"
#include "runtime/process/wake.h"
#include "runtime/session/state.h"

#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>

/* A program that submits nothing for so long, while nothing runs, gives its slice back. */
#define QUIET_NS    (1 * SL_MS)
#define ENTRIES_MAX (1u << 20)
/* While work runs on after its slice, the daemon hears this often of threads that wait at the gate:
 * the work may be waiting for them. */
#define TELL_NS (250 * SL_MS)

static struct {
	pthread_mutex_t lock;
	struct sl_msg_meter order; /* under the lock */
	bool started;              /* the agent's */
	bool told;                 /* atomic: a WANT is of no use now */
	uint32_t stop;             /* atomic: an order came */
} metering = {.lock = PTHREAD_MUTEX_INITIALIZER, .told = true};

/* The thread's own. */
static uint32_t entries = 1;
static uint64_t seen; /* submissions at the end of the last slice */

static bool is_stopped(void)
{
	return __atomic_load_n(&metering.stop, __ATOMIC_ACQUIRE);
}

/* Under the session's lock. */
static void say(uint64_t order, bool wants, bool ended)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_METERED);
	msg.metered.order = order;
	msg.metered.wants = wants;
	msg.metered.ended = ended;
	sl_session_say(&msg);
}

static void tell_end(uint64_t order, bool wants)
{
	sl_session_lock();
	if (!is_stopped()) {
		say(order, wants, true);
		__atomic_store_n(&metering.told, wants, __ATOMIC_RELEASE);
	}
	sl_session_unlock();
	/* A thread may have come to the gate after the last look. */
	if (!wants)
		sl_wake_agent();
}

/* --- the thread ------------------------------------------------------------------------- */

/* Returns once the program's work has ended, or another order came. While the door is closed
 * nothing runs, and a proof would wait in the driver. */
static void wait_for_work(uint64_t order)
{
	int r = SL_PROVE_LATE;

	while (!is_stopped() && !sl_gate_drain(TELL_NS))
		continue;
	while (!is_stopped() && r == SL_PROVE_LATE && !sl_door_is_closed()) {
		r = sl_prove_idle(sl_clock_now() + TELL_NS, &metering.stop);
		if (r != SL_PROVE_LATE || is_stopped() || !sl_gate_parked())
			continue;
		sl_session_lock();
		say(order, true, false);
		sl_session_unlock();
	}
}

static void learn(uint64_t submitted, bool spent, sl_ns span, sl_ns took)
{
	if (spent && took < span / 2)
		entries = entries < ENTRIES_MAX ? 2 * entries : entries;
	else if (took > span + span / 2 && submitted)
		entries = (uint32_t)sl_max_u64(
			1, sl_min_u64(submitted, ENTRIES_MAX) * span / took);
}

/* Returns true if the program has nothing to do before the slice is over. */
static bool watch(sl_ns until)
{
	uint64_t before = sl_gate_submissions();
	bool idle = false;

	while (!is_stopped() && !sl_meter_is_shut()) {
		uint32_t bell = __atomic_load_n(&sl_meter_bell, __ATOMIC_ACQUIRE);
		sl_ns now = sl_clock_now();
		uint64_t submissions;

		if (now >= until)
			return false;
		if (!is_stopped() && !sl_meter_is_shut())
			sl_futex_wait(
				&sl_meter_bell, bell, sl_min_u64(until - now, QUIET_NS));
		submissions = sl_gate_submissions();
		if (submissions != before || !sl_gate_is_drained())
			idle = false;
		else if (idle)
			return true;
		else
			idle = sl_door_is_closed() ||
			       sl_prove_idle(until, &metering.stop) == SL_PROVE_IDLE;
		before = submissions;
	}
	return false;
}

static void carry_out(const struct sl_msg_meter *order)
{
	sl_ns span = order->span_us * SL_US, from = sl_clock_now();
	bool idle = false, spent = false;
	uint64_t now;

	if (order->mode == SL_WIRE_METER_OFF || order->mode == SL_WIRE_METER_OPEN) {
		sl_meter_open();
		return;
	}
	if (order->mode == SL_WIRE_METER_SLICE) {
		sl_meter_shut(); /* of an earlier slice that was taken away */
		sl_meter_run(entries, from + span);
		idle = watch(from + span);
		spent = sl_meter_is_shut() && !sl_meter_left();
	}
	sl_meter_shut();
	wait_for_work(order->order);
	if (is_stopped())
		return;
	now = sl_gate_submissions();
	if (order->mode == SL_WIRE_METER_SLICE)
		learn(now - seen, spent, span, sl_clock_now() - from);
	idle |= now == seen;
	seen = now;
	tell_end(order->order, !idle || sl_gate_parked());
}

static void *metering_main(void *arg)
{
	struct sl_msg_meter order;

	(void)prctl(PR_SET_NAME, "sluice-meter", 0, 0, 0);
	for (;;) {
		uint32_t bell = __atomic_load_n(&sl_meter_bell, __ATOMIC_ACQUIRE);

		if (!is_stopped()) {
			sl_futex_wait(&sl_meter_bell, bell, SL_NS_NEVER);
			continue;
		}
		(void)pthread_mutex_lock(&metering.lock);
		order = metering.order;
		__atomic_store_n(&metering.stop, 0, __ATOMIC_RELEASE);
		(void)pthread_mutex_unlock(&metering.lock);
		carry_out(&order);
	}
	return arg;
}

/* --- the agent -------------------------------------------------------------------------- */

static void post(const struct sl_msg_meter *order)
{
	(void)pthread_mutex_lock(&metering.lock);
	metering.order = *order;
	__atomic_store_n(&metering.told, true, __ATOMIC_RELEASE);
	__atomic_store_n(&metering.stop, 1, __ATOMIC_RELEASE);
	(void)pthread_mutex_unlock(&metering.lock);
	sl_meter_ring();
}

void sl_metering_order(const struct sl_msg_meter *order)
{
	/* Without a thread nothing is metered: the program runs on as if it did not compete. */
	if (!metering.started)
		metering.started = sl_libc_start_thread(metering_main, NULL) == 0;
	if (metering.started)
		post(order);
}

bool sl_metering_look(void)
{
	/* Threads that wait for memory could not use a slice. */
	if (__atomic_load_n(&metering.told, __ATOMIC_ACQUIRE) ||
		sl_residency_is_partial() || sl_door_is_closed() || !sl_gate_parked())
		return true;
	sl_session_lock();
	if (!__atomic_exchange_n(&metering.told, true, __ATOMIC_ACQ_REL))
		say(0, true, false);
	sl_session_unlock();
	return sl_session_flush();
}

void sl_metering_lost(void)
{
	struct sl_msg_meter off = {.mode = SL_WIRE_METER_OFF};

	if (metering.started)
		post(&off);
}

void sl_metering_forget(void)
{
	sl_meter_forget();
	(void)pthread_mutex_init(&metering.lock, NULL);
	memset(&metering.order, 0, sizeof(metering.order));
	metering.started = false;
	metering.told = true;
	metering.stop = 0;
	entries = 1;
	seen = 0;
}
