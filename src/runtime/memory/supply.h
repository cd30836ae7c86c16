/*
 * supply - device memory by the daemon's leave, and back
 */
#ifndef SL_RUNTIME_MEMORY_SUPPLY_H
#define SL_RUNTIME_MEMORY_SUPPLY_H

#include "runtime/contexts/space.h"
#include "runtime/memory/backing.h"

/* bytes (whole grains) of the space's device: asks, waits without end, creates. Before
 * out-of-memory is final, what all spaces hoard goes. No lock may be held. */
SL_MUST_CHECK CUresult sl_supply_obtain(
	struct sl_space *space, uint64_t bytes, struct sl_backing *out);
/* Both give back what the process hoards (link/reclaim.c); no lock may be held. On slow answers, by
 * and by: never blocks. */
extern void (*const sl_supply_on_slow)(void);
/* On denial, at once; waits for it, but not for work that lasts long. False: nothing was hoarded,
 * nor was anything freed since sl_session_frees was `frees`, before the demand that was denied. */
extern bool (*const sl_supply_on_denial)(uint32_t frees);
/* Unmaps, releases and tells the daemon what is gone; as sl_backing_destroy, from inside the
 * control lock. No lock may be held. */
SL_MUST_CHECK CUresult sl_supply_release(struct sl_gpu *gpu, struct sl_backing *backing);
/* The same for the last time. No work may use it. What the driver keeps stays charged. */
void sl_supply_discard(struct sl_gpu *gpu, struct sl_backing *backing);

#endif
