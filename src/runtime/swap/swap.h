/*
 * swap - carries out the daemon's orders to move this process's memory to the host and back
 *
 * A helper thread follows the order of design.md section 5: look for captures, close the gate, wait
 * until no thread is inside, look again. Then it waits until every context is idle, closes the
 * control lock, moves (mover.h), answers, and opens what may be opened. The gate stays closed while
 * anything is on the host. One order at a time; a failure before anything was released leaves all
 * as it was.
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
/* Sends WANT where due. */
void sl_swap_look(void);
/* When to look next; SL_NS_NEVER: when woken. */
sl_ns sl_swap_due(void);
/* The line is lost: the current order releases nothing more; the next report has what has left. */
void sl_swap_stop(void);
/* Called before connecting to a daemon. From here on no memory comes back without an order, until
 * the daemon has our report or the connection is lost. False: an order is running or queued, so no
 * report is possible now; the agent is woken when the order has ended. */
SL_MUST_CHECK bool sl_swap_connects(void);

/* --- under the session's lock --- */

/* true: a daemon has our report. false: a daemon has rejected us and will order nothing back, so
 * all evicted memory comes back without an order. */
void sl_swap_joined(bool accepted);
/* In the child of a fork. */
void sl_swap_forget(void);

/* The functions that move memory (mover.h); tests of the order of steps replace them. */
struct sl_swap_mover {
	void (*evict)(struct sl_gpu *gpu, uint64_t bytes, const uint32_t *stop,
		struct sl_moved *out);
	void (*restore)(struct sl_gpu *gpu, uint64_t bytes, struct sl_moved *out);
};
extern struct sl_swap_mover sl_swap_mover;

#endif
