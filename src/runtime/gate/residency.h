/*
 * residency - whether all memory of this process is on the GPU, and threads that need it there
 *
 * Memory leaves and returns while the gate is closed. A thread that needs memory on the GPU passes
 * the gate and stays inside as long as it needs it. A thread that may wait for the daemon meanwhile
 * calls sl_residency_keep instead: such threads are counted, and eviction checks the count while
 * the gate is closed. A thread that ends before sl_residency_keep_end is counted out. A thread that
 * left by a jump out of a signal handler is counted out when it keeps again or comes to the closed
 * gate. Keeps errno. Async-signal-safe except for a thread's first entry.
 */
#ifndef SL_RUNTIME_GATE_RESIDENCY_H
#define SL_RUNTIME_GATE_RESIDENCY_H

#include "base/sl.h"

/* At the join, before threads wait at the gate. */
void sl_residency_start(void);

/* Is any memory of this process on the host, or on its way there? One load. */
bool sl_residency_is_partial(void);
/* How often residency has become partial so far. If it changed during a driver call, the driver's
 * answer may be about memory that was not on the GPU. */
uint32_t sl_residency_trips(void);
/* For a call that needs memory on the GPU but submits nothing. Like sl_gate_enter and
 * sl_gate_leave; in addition the daemon learns that a thread waits. The caller holds no lock, not
 * even the control lock, and does not wait for the daemon before it leaves. */
void sl_residency_enter(void);
void sl_residency_leave(void);
/* The same, but stops waiting when *word (a futex, atomic) equals `value`. False: not entered, so
 * do not leave. */
SL_MUST_CHECK bool sl_residency_enter_unless(uint32_t *word, uint32_t value);
/* For a call that may wait for the daemon between these two. All memory is on the GPU after the
 * first and stays there until the second: orders to evict are refused meanwhile. The caller holds
 * no lock, not even the control lock, and does not pass the gate in between. */
void sl_residency_keep(void);
void sl_residency_keep_end(void);
/* The last byte that was on the host is freed. */
void sl_residency_nothing_left(void);

/* --- for the swap thread --- */

/* Does any thread keep memory in place? */
SL_MUST_CHECK bool sl_residency_is_kept(void);
/* Memory is about to leave (counts a trip), or all is back. */
void sl_residency_set_partial(bool partial);
/* Futex: counts reasons for the swap thread to look. */
extern uint32_t sl_residency_wanted;
void sl_residency_wake(void);

/* In the child of a fork. */
void sl_residency_forget(void);

#endif
