/*
 * door - the place that every call of the program into the driver passes
 *
 * A process can be taken off its GPU only while none of its threads is inside of the driver, and
 * until it is back every call would block there. So calls wait at the closed door, where the agent
 * sees them and tells the daemon. Each thread counts its calls under way in its record (gate.h).
 * Calls from within a call pass, and so do those of a thread inside of the gate. A call that waits
 * inside of the driver keeps the door from being drained.
 *
 * Closing the door closes the gate, too: both share one word and its fences. So hooks that do all
 * their work inside of the gate need no door.
 *
 * Keeps errno; async-signal-safe after a thread's first call. A thread that left a call by a jump
 * out of a signal handler counts as inside until it ends.
 */
#ifndef SL_RUNTIME_GATE_DOOR_H
#define SL_RUNTIME_GATE_DOOR_H

#include "runtime/gate/gate.h"

/* The first statement of a hook: inside of the door up to the end of the block. */
#define SL_DOOR                                \
	__attribute__((cleanup(sl_door_leave), \
		unused)) struct sl_gate_thread *const sl_door_entered_ = sl_door_enter()

/* NULL in bypass: straight through. */
struct sl_gate_thread *sl_door_enter_slowly(void) SL_COLD;

/* Blocks while the door is closed. Returns what sl_door_leave takes. Costs as much as the gate's
 * fast path. */
static inline struct sl_gate_thread *sl_door_enter(void)
{
	struct sl_gate_thread *self = sl_door_self;
	uint32_t calls;

	if (sl_unlikely(!self))
		return sl_door_enter_slowly();
	calls = self->calls;
	__atomic_store_n(&self->calls, calls + 1, __ATOMIC_RELAXED);
	/* As at the gate, the closer's membarrier makes this a fence. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (sl_likely(!(__atomic_load_n(&sl_gate_word, __ATOMIC_ACQUIRE) &
			(SL_GATE_FENCED | SL_GATE_DOOR))))
		return self;
	__atomic_store_n(&self->calls, calls, __ATOMIC_RELEASE);
	return sl_door_enter_slowly();
}

static inline void sl_door_leave(struct sl_gate_thread *const *self)
{
	if (*self)
		__atomic_store_n(&(*self)->calls, (*self)->calls - 1, __ATOMIC_RELEASE);
}

/* For a wait inside of a hook but outside of the driver: the thread counts as outside until it
 * steps in again with that number, which blocks while the door is closed. No lock is held then. */
uint32_t sl_door_step_out(void);
void sl_door_step_in(uint32_t calls);

/* Closes door and gate. Returns at once. One closer at a time. */
void sl_door_close(void);
void sl_door_open(void);
bool sl_door_is_closed(void);
/* True when no thread is inside of door or gate, while the door is closed. */
bool sl_door_is_drained(void);

#endif
