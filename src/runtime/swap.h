/*
 * swap - carries out the daemon's orders to move this process's memory to the host and back
 *
 * A thread of its own does it, in the order of design.md section 5 and no other: look for captures, close
 * the gate, wait until nobody is inside, look again, wait until every context is idle, close the control
 * lock, move (mover.h), open what may be opened, answer. The gate stays closed while anything is on the
 * host. One order at a time; a failure before anything was released leaves all as it was.
 */
#ifndef SL_RUNTIME_SWAP_H
#define SL_RUNTIME_SWAP_H

#include "base/clock.h"
#include "base/cuda_types.h"
#include "wire/wire.h"

/* --- for the agent's thread; none of them blocks --- */

/* EVICT, RESTORE or ABORT has come. */
void sl_swap_order(const union sl_msg *msg);
/* Sends SWAPPED and WANT where they are due. False: the line is lost. */
SL_MUST_CHECK bool sl_swap_look(void);
/* When to look next; SL_NS_NEVER: when woken. */
sl_ns sl_swap_due(void);
/* The line is lost: an order that was begun is carried through, and told in the next report. */
void sl_swap_stop(void);

/* --- for everybody --- */

/* Is anything of this process on the host, or on its way? One load. */
bool sl_swap_is_out(void);
/* For a call that needs memory to be on the GPU, without being a submission: as sl_gate_enter and
 * sl_gate_leave; the daemon is told that somebody waits. */
void sl_swap_need(void);
void sl_swap_done(void);
/* In the child of a fork. */
void sl_swap_forget(void);

#endif
