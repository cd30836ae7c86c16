/*
 * residency - whether all memory of this process is on the GPU, and threads that need it there
 *
 * Memory leaves and returns while the gate is closed. A thread that needs it on the GPU passes the
 * gate and stays inside for as long. A thread that in between may wait for the daemon keeps memory
 * where it is instead: such threads are counted, and eviction looks at the count while the gate is
 * closed. As in control.h, a thread that ends in between is counted out. So is one that left by a
 * jump out of a signal handler, once it keeps again or comes to the closed gate. Keeps errno.
 * Async-signal-safe but for the first entry of a thread.
 */
#ifndef SL_RUNTIME_GATE_RESIDENCY_H
#define SL_RUNTIME_GATE_RESIDENCY_H

#include "base/sl.h"

/* At the join, before threads stand at the gate. */
void sl_residency_start(void);

/* Is anything of this process on the host, or on its way? One load. */
bool sl_residency_is_partial(void);
/* Counts how often that has become so: what the driver says in between may be about memory that was
 * not there. */
uint32_t sl_residency_trips(void);
/* For a call that needs memory to be on the GPU, without being a submission: as sl_gate_enter and
 * sl_gate_leave; the daemon is told that a thread waits. No lock may be held, nor the control lock,
 * and inside no thread waits for the daemon. */
void sl_residency_enter(void);
void sl_residency_leave(void);
/* The same, but it ends with *word (a futex, atomic) when that is `value`: then false, and there is
 * nothing to leave. */
SL_MUST_CHECK bool sl_residency_enter_unless(uint32_t *word, uint32_t value);
/* For a call that in between may wait for the daemon: memory is on the GPU after the first, and
 * stays there until the second: orders to evict are refused meanwhile. No lock may be held, nor the
 * control lock; in between the thread does not pass the gate. */
void sl_residency_keep(void);
void sl_residency_keep_end(void);
/* The last byte that was on the host is freed. */
void sl_residency_nothing_left(void);

/* --- for the swap thread --- */

/* Is there any thread that keeps memory? */
SL_MUST_CHECK bool sl_residency_is_kept(void);
/* Something leaves in a moment (counts a trip), or all is back. */
void sl_residency_set_partial(bool partial);
/* Futex: counts reasons for the thread to look. */
extern uint32_t sl_residency_wanted;
void sl_residency_wake(void);

/* In the child of a fork. */
void sl_residency_forget(void);

#endif
