/*
 * residency - see residency.h
 *
 * Only the swap thread changes what is on the host. The futex it sleeps on is here, so that the
 * free of the last byte can wake it.
 */
#include "runtime/gate/residency.h"
#include "runtime/gate/door.h"
#include "runtime/gate/meter.h"
#include "runtime/process/futex.h"
#include "runtime/process/libc.h"
#include "runtime/process/mode.h"
#include "runtime/process/wake.h"

/* The kernel puts more than this on the stack before a signal handler runs. */
#define SIGNAL_FRAME_BYTES 1024
/* A thread that may have to give up looks at the gate this often. */
#define TRY_SPAN_NS (5 * SL_MS)

/* Atomic. */
static bool partial;     /* memory is on the host, or may be in a moment */
static uint32_t trips;   /* how often `partial` was set */
static uint32_t keepers; /* threads with a depth above 0 */
uint32_t sl_residency_wanted;

static __thread struct {
	uint32_t depth;
	bool watched;
	uintptr_t stack; /* at the outermost entry */
} self __attribute__((tls_model("initial-exec")));

static struct sl_libc_watch watch;

bool sl_residency_is_partial(void)
{
	return __atomic_load_n(&partial, __ATOMIC_ACQUIRE);
}

uint32_t sl_residency_trips(void)
{
	return __atomic_load_n(&trips, __ATOMIC_ACQUIRE);
}

void sl_residency_set_partial(bool now)
{
	if (now)
		__atomic_fetch_add(&trips, 1, __ATOMIC_ACQ_REL);
	__atomic_store_n(&partial, now, __ATOMIC_RELEASE);
}

void sl_residency_wake(void)
{
	__atomic_fetch_add(&sl_residency_wanted, 1, __ATOMIC_RELEASE);
	sl_futex_wake(&sl_residency_wanted, 1);
}

void sl_residency_nothing_left(void)
{
	if (sl_residency_is_partial())
		sl_residency_wake();
}

/* --- needing memory -------------------------------------------------------------------------- */

void sl_residency_enter(void)
{
	struct sl_gate_thread *thread = sl_gate_borrow();

	if (thread)
		sl_gate_enter(thread);
}

void sl_residency_leave(void)
{
	sl_gate_give_back(sl_gate_self);
}

bool sl_residency_enter_unless(uint32_t *word, uint32_t value)
{
	struct sl_gate_thread *thread = sl_gate_borrow();
	uint32_t now, calls;

	while (thread && !sl_gate_try(thread)) {
		now = __atomic_load_n(word, __ATOMIC_ACQUIRE);
		if (now == value) {
			sl_gate_give_up(thread);
			return false;
		}
		calls = sl_door_step_out();
		sl_futex_wait(word, now, TRY_SPAN_NS);
		sl_door_step_in(calls);
	}
	return true;
}

/* --- keeping memory -------------------------------------------------------------------------- */

static void count_out(void)
{
	if (!self.depth)
		return;
	self.depth = 0;
	__atomic_fetch_sub(&keepers, 1, __ATOMIC_ACQ_REL);
}

static void on_thread_exit(void *arg)
{
	(void)arg;
	self.watched = false;
	count_out();
}

/* Is a call at this stack address nested in the outermost entry? */
static bool goes_on(uintptr_t stack)
{
	return stack < self.stack || sl_gate_is_on_signal_stack();
}

/* stack: sl_gate_stack() of sl_residency_keep. */
static void keep(uintptr_t stack)
{
	int saved_errno = errno;

	if (!self.watched) {
		self.watched = true;
		sl_libc_watch_exit(&watch, on_thread_exit, &self);
	}
	if (self.depth && goes_on(stack)) {
		self.depth++;
	} else {
		/* Above 0: the former entry was left by a jump and is still counted. */
		if (!self.depth)
			__atomic_fetch_add(&keepers, 1, __ATOMIC_ACQ_REL);
		self.stack = stack;
		self.depth = 1;
	}
	errno = saved_errno;
}

/* The calling thread has come to the closed gate with that stack. */
static void look(uintptr_t stack)
{
	int saved_errno = errno;

	/* A keeping thread reaches the gate only from a signal handler, beyond the handler's
	 * frame. */
	if (self.depth && !goes_on(stack + SIGNAL_FRAME_BYTES))
		count_out();
	errno = saved_errno;
}

void sl_residency_keep(void)
{
	sl_residency_enter();
	if (sl_mode_is_active())
		keep(sl_gate_stack());
	sl_residency_leave();
}

void sl_residency_keep_end(void)
{
	if (self.depth > 1)
		self.depth--;
	else
		count_out();
}

bool sl_residency_is_kept(void)
{
	return __atomic_load_n(&keepers, __ATOMIC_ACQUIRE) > 0;
}

/* A thread waits at the gate, or has left it. */
static void on_park(void)
{
	if (sl_gate_self)
		look(sl_gate_self->stack);
	if (sl_residency_is_partial() || sl_door_is_closed() || sl_meter_is_on())
		sl_wake_agent();
}

void sl_residency_start(void)
{
	sl_gate_on_park = on_park;
}

void sl_residency_forget(void)
{
	partial = false;
	keepers = sl_residency_wanted = 0;
	self.depth = 0;
}
