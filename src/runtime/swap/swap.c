/*
 * swap - see swap.h
 *
 * The agent's thread puts orders into a short queue; the swap thread takes them one by one. Only
 * the swap thread closes and opens the gate for orders. The gate stays closed as long as anything
 * is on the host, whatever becomes of the daemon. An answer goes out while the control lock is
 * still closed: later frees are reported after it, so the daemon's books and ours change in the
 * same order. The same holds for progress messages of an EVICT: other clients return into the freed
 * memory while the rest still leaves.
 *
 * A GPU whose context is broken, or whose driver has shut down with the process, gets nothing back.
 * Its memory on the host then keeps no thread at the gate, since every call fails by itself.
 */
#include "runtime/swap/swap.h"
#include "runtime/contexts/capture.h"
#include "runtime/contexts/prove.h"
#include "runtime/contexts/sticky.h"
#include "runtime/gate/control.h"
#include "runtime/gate/door.h"
#include "runtime/gate/residency.h"
#include "runtime/process/futex.h"
#include "runtime/process/libc.h"
#include "runtime/process/wake.h"
#include "runtime/real/real.h"
#include "runtime/session/session.h"
#include "runtime/session/state.h"

#include "base/log.h"
#include "base/step.h"

#include <string.h>
#include <sys/prctl.h>

/* The daemon sends one order at a time; an ABORT and the next order may follow immediately. */
#define ORDERS_MAX 4
/* While waiting for work, `stop` is checked this often. */
#define STOP_SPAN_NS (10 * SL_MS)
/* Calls that change mappings are inside for a few driver calls. */
#define CONTROL_SPAN_NS (10 * SL_S)
/* Pause between looks for threads that want memory; a jump out of a signal handler may have ended
 * the wish unseen. */
#define WANT_SPAN_NS (1 * SL_S)
/* Running frees take a few driver calls: checked so often, 1 ms apart. */
#define LEFT_TRIES 1000
/* Longest wait for threads that keep memory in place. */
#define KEEP_SPAN_NS (20 * SL_MS)
/* Between tries to restore memory without a daemon that could order it. */
#define ALONE_SPAN_NS (1 * SL_S)

struct order {
	uint32_t type; /* SL_MSG_EVICT or SL_MSG_RESTORE */
	uint32_t ordinal;
	uint64_t number, bytes, tell_bytes;
	sl_ns came_ns, deadline_ns;
	uint32_t generation; /* of the connection it came on */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Under the lock. */
static struct order orders[ORDERS_MAX];
static uint32_t order_count;
static uint64_t running_number;
static bool running, started;
static bool connecting; /* a report is being made: nothing may be restored alone */
/* Atomic. */
static uint32_t stop; /* the running order is no longer needed */
static bool alone;    /* the daemon does not order memory back */
/* The swap thread's. */
static bool gate_closed;
static bool given_up[SL_GPUS_MAX];  /* nothing can come back to this GPU */
static const struct order *telling; /* EVICT whose progress is being reported, or NULL */
static uint64_t told_bytes;         /* bytes reported as having left */
/* The agent's. */
static bool told_want;
static uint32_t told_generation, told_trips;

struct sl_swap_mover sl_swap_mover = {
	.evict = sl_mover_evict,
	.restore = sl_mover_restore,
};

static struct sl_gpu *gpu_at(uint32_t ordinal)
{
	struct sl_gpu *found = NULL;

	sl_session_lock();
	for (uint32_t i = 0; i < sl_session.gpu_count; i++) {
		if (sl_session.gpus[i].ordinal == ordinal)
			found = &sl_session.gpus[i];
	}
	sl_session_unlock();
	return found;
}

/* --- answers ------------------------------------------------------------------------------- */

/* If an order's connection is lost, the report on the next one covers it. */
static void answer(const struct order *order, uint32_t outcome,
	const struct sl_moved *moved, sl_ns drained_ns)
{
	struct sl_gpu *gpu = gpu_at(order->ordinal);
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_SWAPPED);
	msg.swapped.order = order->number;
	msg.swapped.ordinal = order->ordinal;
	msg.swapped.outcome = outcome;
	msg.swapped.cause = moved->cause;
	msg.swapped.driver_result = (uint32_t)moved->driver_result;
	msg.swapped.moved_bytes = moved->moved_bytes;
	msg.swapped.clean_bytes = moved->clean_bytes;
	msg.swapped.zero_bytes = moved->zero_bytes;
	msg.swapped.drain_us = sl_sub_sat(drained_ns, order->came_ns) / SL_US;
	msg.swapped.span_us = sl_sub_sat(sl_clock_now(), order->came_ns) / SL_US;
	sl_session_lock();
	msg.swapped.evicted_bytes = gpu ? gpu->evicted_bytes : 0;
	if (order->generation == sl_session.generation)
		sl_session_say(&msg);
	sl_session_unlock();
	sl_info("%s %llu: outcome %u, cause %u, %llu bytes left or came back",
		sl_wire_name(order->type), (unsigned long long)order->number, outcome,
		(unsigned int)moved->cause, (unsigned long long)moved->left_bytes);
}

static void refuse(const struct order *order, enum sl_wire_swap_cause cause)
{
	struct sl_moved moved = {.cause = cause};

	answer(order, SL_WIRE_SWAP_REFUSED, &moved, sl_clock_now());
}

static uint32_t outcome_of(const struct sl_moved *moved)
{
	if (moved->cause == SL_WIRE_SWAP_NO_CAUSE)
		return SL_WIRE_SWAP_OK;
	return moved->left_bytes ? SL_WIRE_SWAP_PART : SL_WIRE_SWAP_REFUSED;
}

/* --- the gate ------------------------------------------------------------------------------- */

static bool is_anything_out(void)
{
	bool found = false;

	sl_session_lock();
	for (uint32_t i = 0; i < sl_session.gpu_count; i++) {
		if (sl_session.gpus[i].evicted_bytes == 0)
			given_up[i] = false;
		else
			found = found || !given_up[i];
	}
	sl_session_unlock();
	return found;
}

static void close_gate(void)
{
	if (!gate_closed)
		sl_gate_close();
	gate_closed = true;
}

/* Opens the gate unless memory is on the host. */
static void settle_gate(void)
{
	if (is_anything_out())
		return;
	sl_residency_set_partial(false);
	if (gate_closed)
		sl_gate_open();
	gate_closed = false;
}

/* --- evicting ------------------------------------------------------------------------------- */

static bool is_stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_ACQUIRE);
}

static bool is_late(const struct order *order)
{
	return sl_clock_now() >= order->deadline_ns;
}

static enum sl_wire_swap_cause late_cause(void)
{
	return is_stopped() ? SL_WIRE_SWAP_ABORTED : SL_WIRE_SWAP_BUSY;
}

/* Waits until no thread is inside. */
static bool drain(const struct order *order)
{
	while (!sl_gate_drain(STOP_SPAN_NS)) {
		if (is_stopped() || is_late(order))
			return false;
	}
	return true;
}

/* Waits until all submitted work has ended. A context under destruction refuses the proof: it is
 * requested again. */
static enum sl_wire_swap_cause prove(const struct order *order)
{
	for (;;) {
		int r = sl_prove_idle(order->deadline_ns, &stop);

		if (r == SL_PROVE_IDLE)
			return SL_WIRE_SWAP_NO_CAUSE;
		if (r == SL_PROVE_REFUSED && sl_capture_is_open())
			return SL_WIRE_SWAP_CAPTURE;
		if (r == SL_PROVE_LATE || is_stopped() || is_late(order))
			return late_cause();
		sl_futex_pause(SL_MS);
	}
}

/* Waits up to KEEP_SPAN_NS, with the gate closed, until no thread keeps memory in place. Most such
 * threads finish in that time. One that jumped out of its call is found when it comes to the closed
 * gate. */
static bool is_left_to_us(const struct order *order)
{
	sl_ns until_ns = sl_min_u64(sl_clock_now() + KEEP_SPAN_NS, order->deadline_ns);

	while (sl_residency_is_kept()) {
		if (is_stopped() || sl_clock_now() >= until_ns)
			return false;
		sl_futex_pause(SL_MS);
	}
	return true;
}

/* Everything before the first copy, in the order of design.md. On success the control lock is
 * closed. */
static enum sl_wire_swap_cause prepare(const struct order *order)
{
	enum sl_wire_swap_cause cause;

	if (sl_capture_is_open())
		return SL_WIRE_SWAP_CAPTURE;
	close_gate();
	sl_step(C_EVICT_SHUT);
	if (!drain(order))
		return late_cause();
	if (sl_capture_is_open())
		return SL_WIRE_SWAP_CAPTURE;
	if (!is_left_to_us(order))
		return late_cause();
	cause = prove(order);
	if (cause != SL_WIRE_SWAP_NO_CAUSE)
		return cause;
	sl_step(C_EVICT_IDLE);
	if (!sl_control_close(CONTROL_SPAN_NS))
		return SL_WIRE_SWAP_BUSY;
	return SL_WIRE_SWAP_NO_CAUSE;
}

/* The answer reports the last piece. */
static void on_left(const struct sl_gpu *gpu, const struct sl_moved *moved)
{
	union sl_msg msg;

	if (!telling || moved->left_bytes - told_bytes < telling->tell_bytes ||
		moved->left_bytes >= telling->bytes)
		return;
	told_bytes = moved->left_bytes;
	sl_wire_init(&msg, SL_MSG_MOVED);
	msg.moved.order = telling->number;
	msg.moved.ordinal = telling->ordinal;
	sl_session_lock();
	msg.moved.evicted_bytes = gpu->evicted_bytes;
	if (telling->generation == sl_session.generation)
		sl_session_say(&msg);
	sl_session_unlock();
	sl_step(C_EVICT_TOLD);
}

static void move_out(
	const struct order *order, struct sl_gpu *gpu, struct sl_moved *moved)
{
	told_bytes = 0;
	telling = order->tell_bytes ? order : NULL;
	sl_swap_mover.evict(gpu, order->bytes, &stop, moved);
	telling = NULL;
}

static void evict(const struct order *order)
{
	struct sl_gpu *gpu = gpu_at(order->ordinal);
	struct sl_moved moved = {0};
	sl_ns drained_ns;

	moved.cause = gpu ? prepare(order) : SL_WIRE_SWAP_NOTHING;
	if (moved.cause != SL_WIRE_SWAP_NO_CAUSE) {
		settle_gate();
		answer(order, SL_WIRE_SWAP_REFUSED, &moved, sl_clock_now());
		sl_step(C_EVICT_REFUSED);
		return;
	}
	drained_ns = sl_clock_now();
	sl_residency_set_partial(true);
	move_out(order, gpu, &moved);
	answer(order, outcome_of(&moved), &moved, drained_ns);
	sl_step(C_EVICTED);
	sl_control_open();
	settle_gate();
}

/* --- restoring ------------------------------------------------------------------------------ */

static bool is_for_good(const struct sl_moved *moved)
{
	return moved->cause == SL_WIRE_SWAP_BROKEN ||
	       sl_sticky_is(moved->driver_result) ||
	       moved->driver_result == CUDA_ERROR_DEINITIALIZED;
}

/* Restores what was ordered; the control lock is closed before and after. Blocks that a thread is
 * freeing come back, too. If all memory must come back, this tries again for a while as long as
 * some is still on the host, and reports BUSY if some remains. It opens the lock in between; false:
 * the lock could not be closed again. */
static bool move_in(struct sl_gpu *gpu, uint64_t bytes, struct sl_moved *moved)
{
	bool all = bytes >= sl_session_evicted_bytes(gpu);
	struct sl_moved more;

	sl_swap_mover.restore(gpu, bytes, moved);
	for (int i = 0; all && i < LEFT_TRIES; i++) {
		if (moved->cause != SL_WIRE_SWAP_NO_CAUSE ||
			!sl_session_evicted_bytes(gpu))
			return true;
		sl_control_open();
		sl_futex_pause(SL_MS);
		if (!sl_control_close(CONTROL_SPAN_NS)) {
			moved->cause = SL_WIRE_SWAP_BUSY;
			return false;
		}
		sl_swap_mover.restore(gpu, bytes - moved->left_bytes, &more);
		moved->cause = more.cause;
		moved->driver_result = more.driver_result;
		moved->left_bytes += more.left_bytes;
		moved->moved_bytes += more.moved_bytes;
		moved->zero_bytes += more.zero_bytes;
	}
	if (all && moved->cause == SL_WIRE_SWAP_NO_CAUSE && sl_session_evicted_bytes(gpu))
		moved->cause = SL_WIRE_SWAP_BUSY;
	return true;
}

static void restore(const struct order *order)
{
	struct sl_gpu *gpu = gpu_at(order->ordinal);
	struct sl_moved moved = {0};
	bool closed;

	if (!gpu || !sl_control_close(CONTROL_SPAN_NS)) {
		refuse(order, gpu ? SL_WIRE_SWAP_BUSY : SL_WIRE_SWAP_NOTHING);
		return;
	}
	closed = move_in(gpu, order->bytes, &moved);
	if (moved.cause != SL_WIRE_SWAP_NO_CAUSE && is_for_good(&moved))
		given_up[gpu - sl_session.gpus] = true;
	answer(order, outcome_of(&moved), &moved, order->came_ns);
	sl_step(C_RESTORED);
	if (closed)
		sl_control_open();
	settle_gate();
	sl_step(C_RESTORE_OPENED);
}

/* --- the thread ------------------------------------------------------------------------------ */

static bool take_order(struct order *order)
{
	bool taken;

	(void)pthread_mutex_lock(&lock);
	taken = order_count > 0;
	if (taken) {
		*order = orders[0];
		memmove(orders, orders + 1, --order_count * sizeof(*orders));
		running_number = order->number;
		__atomic_store_n(&stop, 0, __ATOMIC_RELEASE);
	}
	running = taken;
	(void)pthread_mutex_unlock(&lock);
	return taken;
}

static void end_order(void)
{
	(void)pthread_mutex_lock(&lock);
	running = false;
	(void)pthread_mutex_unlock(&lock);
	/* A thread may want the memory back by now, or the agent has waited to connect. */
	sl_wake_agent();
}

static void carry_out(const struct order *order)
{
	if (order->type == SL_MSG_EVICT)
		evict(order);
	else
		restore(order);
	end_order();
}

/* Does the GPU of that index have memory on the host that can come back? */
static bool is_out_of(uint32_t index, uint32_t *ordinal)
{
	bool is_out;

	sl_session_lock();
	is_out = index < sl_session.gpu_count && sl_session.gpus[index].evicted_bytes &&
		 !given_up[index];
	*ordinal = sl_session.gpus[index].ordinal;
	sl_session_unlock();
	return is_out;
}

/* A daemon's orders never have the number 0. */
static bool begin_alone(void)
{
	bool begins;

	(void)pthread_mutex_lock(&lock);
	begins = running = !connecting;
	running_number = 0;
	(void)pthread_mutex_unlock(&lock);
	return begins;
}

/* Restores the memory of every GPU without an order, after a daemon has rejected us. This and the
 * agent's connecting and reporting exclude each other: otherwise a daemon would never learn of
 * memory that came back after the report to it. */
static void restore_alone(void)
{
	struct order order = {
		.type = SL_MSG_RESTORE, .bytes = UINT64_MAX, .came_ns = sl_clock_now()};

	if (!begin_alone())
		return;
	for (uint32_t i = 0; i < SL_GPUS_MAX; i++) {
		if (is_out_of(i, &order.ordinal))
			restore(&order);
	}
	end_order();
}

static void *swap_main(void *arg)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	struct order order;

	(void)prctl(PR_SET_NAME, "sluice-swap", 0, 0, 0);
	(void)sl_real.cuThreadExchangeStreamCaptureMode(&mode);
	for (;;) {
		uint32_t seen = __atomic_load_n(&sl_residency_wanted, __ATOMIC_ACQUIRE);
		bool by_itself;

		if (take_order(&order)) {
			carry_out(&order);
			continue;
		}
		by_itself = __atomic_load_n(&alone, __ATOMIC_ACQUIRE) &&
			    sl_residency_is_partial();
		if (by_itself)
			restore_alone();
		settle_gate();
		by_itself = by_itself && sl_residency_is_partial();
		sl_futex_wait(&sl_residency_wanted, seen,
			by_itself ? ALONE_SPAN_NS : SL_NS_NEVER);
	}
	return arg;
}

/* --- for the agent ---------------------------------------------------------------------------- */

static void begin(const struct order *order)
{
	bool taken;

	(void)pthread_mutex_lock(&lock);
	if (!started)
		started = sl_libc_start_thread(swap_main, NULL) == 0;
	taken = started && order_count < ORDERS_MAX;
	if (taken)
		orders[order_count++] = *order;
	(void)pthread_mutex_unlock(&lock);
	if (taken)
		sl_residency_wake();
	else
		refuse(order, SL_WIRE_SWAP_BUSY);
}

static void abort_order(uint64_t number)
{
	struct order aborted = {0};
	bool queued = false;

	(void)pthread_mutex_lock(&lock);
	if (running && running_number == number)
		__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < order_count && !queued; i++) {
		queued = orders[i].number == number && orders[i].type == SL_MSG_EVICT;
		if (!queued)
			continue;
		aborted = orders[i];
		order_count--;
		memmove(orders + i, orders + i + 1, (order_count - i) * sizeof(*orders));
	}
	(void)pthread_mutex_unlock(&lock);
	if (queued)
		refuse(&aborted, SL_WIRE_SWAP_ABORTED);
}

void sl_swap_order(const union sl_msg *msg)
{
	struct order order = {.type = msg->head.type, .came_ns = sl_clock_now()};

	order.generation = sl_session.generation;
	switch (msg->head.type) {
	case SL_MSG_EVICT:
		order.number = msg->evict.order;
		order.ordinal = msg->evict.ordinal;
		order.bytes = msg->evict.bytes;
		order.tell_bytes = msg->evict.tell_bytes;
		order.deadline_ns = order.came_ns + msg->evict.deadline_ms * SL_MS;
		sl_step(C_EVICT_TAKEN);
		begin(&order);
		break;
	case SL_MSG_RESTORE:
		order.number = msg->restore.order;
		order.ordinal = msg->restore.ordinal;
		order.bytes = msg->restore.bytes;
		sl_step(C_RESTORE_TAKEN);
		begin(&order);
		break;
	case SL_MSG_ABORT: abort_order(msg->abort.order); break;
	default: break;
	}
}

/* When all memory is back, the daemon drops the client's WANT. If memory has left again before this
 * call, told_want is still set, but the waiting threads need a new WANT. The changed number of
 * trips shows that. */
void sl_swap_look(void)
{
	uint32_t now_trips = sl_residency_trips();
	bool waits = sl_residency_is_partial() || sl_door_is_closed();
	uint32_t threads = waits ? sl_gate_parked() : 0;
	bool again = threads > 0 && told_trips != now_trips;
	union sl_msg msg;

	sl_session_lock();
	if (told_generation != sl_session.generation)
		told_want = false;
	told_generation = sl_session.generation;
	if (sl_session.welcomed && (again || told_want != (threads > 0))) {
		told_want = threads > 0;
		told_trips = now_trips;
		sl_wire_init(&msg, SL_MSG_WANT);
		msg.want.wants = told_want;
		msg.want.threads = threads;
		sl_session_say(&msg);
		sl_step(C_WANTED);
	}
	sl_session_unlock();
}

sl_ns sl_swap_due(void)
{
	return told_want ? sl_clock_now() + WANT_SPAN_NS : SL_NS_NEVER;
}

void sl_swap_stop(void)
{
	(void)pthread_mutex_lock(&lock);
	order_count = 0;
	connecting = false;
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	(void)pthread_mutex_unlock(&lock);
}

bool sl_swap_connects(void)
{
	bool connects;

	(void)pthread_mutex_lock(&lock);
	connects = connecting = !running && !order_count;
	(void)pthread_mutex_unlock(&lock);
	return connects;
}

void sl_swap_joined(bool accepted)
{
	(void)pthread_mutex_lock(&lock);
	__atomic_store_n(&alone, !accepted, __ATOMIC_RELEASE);
	connecting = false;
	(void)pthread_mutex_unlock(&lock);
	if (sl_residency_is_partial())
		sl_residency_wake();
}

void sl_swap_start(void)
{
	sl_mover_on_left = on_left;
}

void sl_swap_forget(void)
{
	(void)pthread_mutex_init(&lock, NULL);
	order_count = 0;
	running = started = connecting = alone = gate_closed = told_want = false;
	stop = told_generation = told_trips = 0;
	memset(given_up, 0, sizeof(given_up));
}
