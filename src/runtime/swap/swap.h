/*
 * swap - carries out the daemon's orders to move this process's memory to the host and back
 *
 * A thread of its own does it, in the order of design.md section 5 and no other: look for captures,
 * close the gate, wait until no thread is inside, look again, wait until every context is idle,
 * close the control lock, move (mover.h), answer, open what may be opened. The gate stays closed
 * while anything is on the host. One order at a time; a failure before anything was released leaves
 * all as it was.
 */
#ifndef SL_RUNTIME_SWAP_SWAP_H
#define SL_RUNTIME_SWAP_SWAP_H

#include "base/clock.h"
#include "base/cuda_types.h"
#include "runtime/swap/mover.h"

/* Before the first message. */
void sl_swap_start(void);

/* --- for the agent's thread; none of them blocks --- */

/* EVICT, RESTORE or ABORT has come. */
void sl_swap_order(const union sl_msg *msg);
/* Sends WANT where it is due. */
void sl_swap_look(void);
/* When to look next; SL_NS_NEVER: when woken. */
sl_ns sl_swap_due(void);
/* The line is lost: of an order that was begun nothing more is released; what has left is told in
 * the next report. */
void sl_swap_stop(void);
/* A daemon is to be connected to: nothing comes back by itself until it has our report or the line
 * is lost. False: an order is being carried out, or waits for that, and no report can be given now;
 * the agent is woken when it has ended. */
SL_MUST_CHECK bool sl_swap_connects(void);

/* --- under the session's lock --- */

/* A daemon has our report. One that knows nothing of memory on the host orders nothing back, nor
 * does one that rejects
 * us: then all that is out comes back by itself. */
void sl_swap_joined(bool knows_swap);
/* In the child of a fork. */
void sl_swap_forget(void);

/* Who moves: mover.h. Tests of the order of things put their own there. */
struct sl_swap_mover {
	void (*evict)(struct sl_gpu *gpu, uint64_t bytes, const uint32_t *stop,
		struct sl_moved *out);
	void (*restore)(struct sl_gpu *gpu, uint64_t bytes, struct sl_moved *out);
};
extern struct sl_swap_mover sl_swap_mover;

#endif
