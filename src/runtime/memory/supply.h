/*
 * supply - device memory as granted by the daemon, and its return
 */
#ifndef SL_RUNTIME_MEMORY_SUPPLY_H
#define SL_RUNTIME_MEMORY_SUPPLY_H

#include "runtime/contexts/space.h"
#include "runtime/memory/backing.h"

/* Asks for `bytes` (whole grains) on the space's device, waits for the answer without a deadline,
 * and creates the memory. Before a final out-of-memory, everything that spaces hoard is given back.
 * No lock may be held. */
SL_MUST_CHECK CUresult sl_supply_obtain(
	struct sl_space *space, uint64_t bytes, struct sl_backing *out);
/* The same only if memory is free now: out-of-memory at once otherwise, and nothing is given back,
 * moved or told as a denial for it. */
SL_MUST_CHECK CUresult sl_supply_obtain_now(
	struct sl_space *space, uint64_t bytes, struct sl_backing *out);
/* Called when the daemon's answer is slow: gives back what the process hoards, in the background,
 * and never blocks (link/reclaim.c). No lock may be held. */
extern void (*const sl_supply_on_slow)(void);
/* Called after a denial: gives back what the process hoards and waits for that, but not for long
 * work. No lock may be held. False: nothing was hoarded, and nothing was freed since
 * sl_session_frees returned `frees`, before the denied demand. */
extern bool (*const sl_supply_on_denial)(uint32_t frees);
/* As sl_backing_destroy, inside the control lock, which it takes; reports the freed bytes to the
 * daemon. No lock may be held. */
SL_MUST_CHECK CUresult sl_supply_release(struct sl_gpu *gpu, struct sl_backing *backing);
/* The same as a last attempt. No work may use the memory. What the driver keeps stays charged. */
void sl_supply_discard(struct sl_gpu *gpu, struct sl_backing *backing);

#endif
