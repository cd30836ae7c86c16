/*
 * swap - carries out the daemon's orders to move this process's memory to the host and back
 *
 * A thread of its own does it, in the order of design.md section 5 and no other: look for captures,
 * close the gate, wait until nobody is inside, look again, wait until every context is idle, close
 * the control lock, move (mover.h), answer, open what may be opened. The gate stays closed while
 * anything is on the host. One order at a time; a failure before anything was released leaves all
 * as it was.
 */
#ifndef SL_RUNTIME_SWAP_SWAP_H
#define SL_RUNTIME_SWAP_SWAP_H

#include "base/clock.h"
#include "base/cuda_types.h"
#include "runtime/swap/mover.h"

/* Before the first message, and before threads stand at the gate. */
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
/* The last byte that was on the host is freed. */
void sl_swap_nothing_left(void);

/* --- for everybody --- */

/* Is anything of this process on the host, or on its way? One load. */
bool sl_swap_is_out(void);
/* Counts how often that has become so: what the driver says in between may be about memory that was
 * not there. */
uint32_t sl_swap_trips(void);
/* For a call that needs memory to be on the GPU, without being a submission: as sl_gate_enter and
 * sl_gate_leave; the daemon is told that somebody waits. No lock may be held, nor the control lock,
 * and inside nobody waits for the daemon. */
void sl_swap_need(void);
void sl_swap_done(void);
/* The same, but it ends with *word (a futex, atomic) when that is `value`: then false, and nothing
 * is to be done. */
SL_MUST_CHECK bool sl_swap_need_unless(uint32_t *word, uint32_t value);
/* For a call that in between may wait for the daemon: memory is on the GPU after the first, and
 * stays there until the second: orders to evict are refused meanwhile. No lock may be held, nor the
 * control lock; in between the thread does not pass the gate. */
void sl_swap_keep(void);
void sl_swap_keep_end(void);
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
