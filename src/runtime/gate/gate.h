/*
 * gate - the place where new GPU work of this process is held back
 *
 * Every thread that submits has a record; its depth is above 0 while it is inside a submitting
 * driver call. The closer waits until all depths are 0; then no submission is under way and none
 * will start. Waits and queries never pass the gate.
 *
 * The open path has no lock, no system call and no shared write: depth++, compiler barrier, load of
 * the gate word. The closer makes that safe with membarrier(2), which puts a full fence into every
 * running thread. Where membarrier is refused, the word carries SL_GATE_FENCED and each entry makes
 * its own fence.
 *
 * A signal handler of the program may leave a call by siglongjmp, and our depth stays behind. A
 * nested entry lies deeper in the stack than the outer one. If an entry does not, the thread has
 * left the outer call, and the entry replaces it. A thread that jumped out and never calls again
 * seems inside for ever, so a drain then ends by its deadline.
 *
 * Closing nests. Records are never unmapped, so a closer may look at them at any time.
 */
#ifndef SL_RUNTIME_GATE_GATE_H
#define SL_RUNTIME_GATE_GATE_H

#include "base/clock.h"

struct sl_gate_thread {
	uint32_t depth; /* written by its thread only */
	uint32_t calls; /* driver calls under way (door.h); written by its thread only */
	uint32_t in_use;
	uint64_t submissions; /* outermost entries so far; written by its thread only */
	uintptr_t stack;      /* the stack's end at the outermost entry */
	uintptr_t entry;      /* the stack's end where the gate was last found not open */
	struct sl_gate_thread *next;
	bool lent; /* see sl_gate_borrow() */
	sl_ns parked_ns; /* when it last reported that it waits at the closed gate; 0: it does not
			  * wait */
} __attribute__((aligned(64)));

/* The word: four bits, and above them the number of closers. 0 is the fast path. */
#define SL_GATE_FENCED 1u
#define SL_GATE_LISTENS \
	2u /* the next thread that enters calls sl_gate_on_entry and clears this bit */
#define SL_GATE_DOOR    4u /* one of the closers closed the door, too (door.h) */
#define SL_GATE_METERED 8u /* sl_gate_on_metered lets each entry in, or closes the gate */
#define SL_GATE_CLOSER  16u

/* The calling thread's record, from its first submission on. */
extern __thread struct sl_gate_thread *sl_gate_self
	__attribute__((tls_model("initial-exec")));
/* The same, from its first call on (door.h). */
extern __thread struct sl_gate_thread *sl_door_self
	__attribute__((tls_model("initial-exec")));
extern uint32_t sl_gate_word;

/* The calling thread's record, made and published now. NULL in bypass or without memory: the thread
 * is not gated. */
struct sl_gate_thread *sl_gate_attach(void) SL_COLD;
/* The calling thread's record, for a call that passes the gate without being a submission: unless
 * the thread has submitted before, sl_gate_self is its record until sl_gate_give_back. */
struct sl_gate_thread *sl_gate_borrow(void);
/* Leaves, without counting a submission. NULL is fine. */
void sl_gate_give_back(struct sl_gate_thread *self);
/* Like sl_gate_enter, but returns false instead of waiting. The thread then counts as parked until
 * it enters or calls sl_gate_give_up. */
SL_MUST_CHECK bool sl_gate_try(struct sl_gate_thread *self);
/* The thread stops trying. */
void sl_gate_give_up(struct sl_gate_thread *self);
void sl_gate_enter_slowly(struct sl_gate_thread *self) SL_COLD;
/* An entry at a depth above 0: a nested one, or one after a jump. */
void sl_gate_enter_again(struct sl_gate_thread *self, uintptr_t stack) SL_COLD;

/* Stack addresses prove nothing on a signal handler's alternate stack. */
bool sl_gate_is_on_signal_stack(void) SL_COLD;

/* Not the address of a local variable: a sanitizer may keep those elsewhere. */
static inline uintptr_t sl_gate_stack(void)
{
	uintptr_t stack;

	__asm__ volatile("movq %%rsp, %0" : "=r"(stack));
	return stack;
}

/* Blocks while the gate is closed, unless the thread is inside already. Keeps errno. Always
 * inlined: otherwise the compiler makes one shared function of it for hooks with many arguments,
 * launches among them. */
static inline __attribute__((always_inline)) void sl_gate_enter_at(
	struct sl_gate_thread *self, uintptr_t stack)
{
	if (sl_unlikely(self->depth)) {
		sl_gate_enter_again(self, stack);
		return;
	}
	self->stack = stack;
	__atomic_store_n(&self->depth, 1, __ATOMIC_RELAXED);
	/* The closer's membarrier makes this compiler barrier a fence when it matters. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (sl_unlikely(__atomic_load_n(&sl_gate_word, __ATOMIC_ACQUIRE)))
		sl_gate_enter_slowly(self);
}

static inline __attribute__((always_inline)) void sl_gate_enter(
	struct sl_gate_thread *self)
{
	sl_gate_enter_at(self, sl_gate_stack());
}

/* Attaches the thread and enters with the stack end of this frame. */
static inline __attribute__((always_inline)) struct sl_gate_thread *sl_gate_attach_here(
	void)
{
	struct sl_gate_thread *self = sl_gate_attach();

	if (self)
		self->entry = sl_gate_stack();
	return self;
}

/* The fast path of an open gate. False: the thread is not entered, and self->entry has the stack's
 * end of this frame, to pass to sl_gate_enter_at. Both paths must note the same end for one frame:
 * otherwise a call would look nested in an earlier one that was left by a jump. */
SL_MUST_CHECK static inline __attribute__((always_inline)) bool sl_gate_enter_open(
	struct sl_gate_thread *self)
{
	uintptr_t stack = sl_gate_stack();

	if (sl_unlikely(self->depth)) {
		self->entry = stack;
		return false;
	}
	self->stack = stack;
	__atomic_store_n(&self->depth, 1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (sl_likely(!__atomic_load_n(&sl_gate_word, __ATOMIC_ACQUIRE)))
		return true;
	__atomic_store_n(&self->depth, 0, __ATOMIC_RELEASE);
	self->entry = stack;
	return false;
}

static inline void sl_gate_leave(struct sl_gate_thread *self)
{
	uint32_t depth = self->depth;

	if (sl_unlikely(depth > 1)) {
		__atomic_store_n(&self->depth, depth - 1, __ATOMIC_RELAXED);
		return;
	}
	__atomic_store_n(&self->submissions, self->submissions + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&self->depth, 0, __ATOMIC_RELEASE);
}

/* Registers with membarrier(2) and drops SL_GATE_FENCED if that works. Once, at the join. */
void sl_gate_start(bool may_use_membarrier);
/* Holds new submissions back from now on. Returns at once; sl_gate_is_drained says when all threads
 * are out. Each close needs one open. */
void sl_gate_close(void);
void sl_gate_open(void);
/* True when no thread is inside, while the gate is closed. */
bool sl_gate_is_drained(void);
/* Polls sl_gate_is_drained for at most span_ns. */
SL_MUST_CHECK bool sl_gate_drain(sl_ns span_ns);
/* Threads parked at the closed gate now. A thread that jumped out of the wait still counts for a
 * few seconds. */
uint32_t sl_gate_parked(void);
/* Reports the next entry through sl_gate_on_entry, once. Entries before this returns show in the
 * depths or the submissions. */
void sl_gate_listen(void);
/* No thread has entered since sl_gate_listen. */
bool sl_gate_is_listening(void);
/* Submissions of all threads since the start, including ended ones. */
uint64_t sl_gate_submissions(void);
/* Number of records, in use or not; for tests. */
uint32_t sl_gate_records(void);
/* --- for door.c --- */

/* The calling thread's record from its first call on; made if there is none. NULL in bypass or
 * without memory. */
struct sl_gate_thread *sl_gate_record(void);
/* The newest record; ->next leads to the others. */
struct sl_gate_thread *sl_gate_records_first(void);
/* Notes that the thread waits since now_ns, or no longer (0). True: the agent must hear of it. */
SL_MUST_CHECK bool sl_gate_note_parked(struct sl_gate_thread *self, sl_ns now_ns);
/* Sleeps while the word is `word`, for at most the span after which a waiting thread notes that
 * again. */
void sl_gate_sleep(uint32_t word);
/* Adds bits to the word and forces a fence in every thread; takes them away again and wakes the
 * waiting threads. */
void sl_gate_add(uint32_t bits);
void sl_gate_take_away(uint32_t bits);

/* In the child of a fork: no records, gate and door open, fenced as before the start. */
void sl_gate_forget(void);
/* Called once per thread at its first submission; may be NULL. Set before threads run. */
extern void (*sl_gate_on_attach)(void);
/* A thread calls it before and after it waits at the closed gate; may be NULL. Async-signal-safe;
 * keeps errno. Set before threads run. */
extern void (*sl_gate_on_park)(void);
/* Called by the thread that entered while the gate listened, from inside; same rules. */
extern void (*sl_gate_on_entry)(void);
/* Called for each entry at a metered gate, while the thread counts as inside; same rules. False: it
 * has closed the gate. Set before the gate is metered. */
extern bool (*sl_gate_on_metered)(void);

#endif
