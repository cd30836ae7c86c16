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
/* Somebody waits for memory: what all spaces hoard goes, by and by. Never blocks. */
void sl_supply_give_back_soon(void);
/* The same at once, and waits for it, but not for work that lasts long. False: nothing was hoarded,
 * nor was anything freed since sl_session_frees was `frees`: before the demand that was denied,
 * while which it may have gone by and by. No lock may be held. */
bool sl_supply_give_back_now(uint32_t frees);
/* Unmaps, releases and tells the daemon what is gone; as sl_backing_destroy, from inside the
 * control lock. No lock may be held. */
SL_MUST_CHECK CUresult sl_supply_release(struct sl_gpu *gpu, struct sl_backing *backing);
/* The same for the last time. No work may use it. What the driver keeps stays charged. */
void sl_supply_discard(struct sl_gpu *gpu, struct sl_backing *backing);

#endif
