/*
 * hold - regions and slabs that must stay where they are
 *
 * Somebody else knows the pages behind them: another process, a peer device, a NIC, a multicast
 * object. Counted per region or slab; what is left when its memory goes, goes with it. Asking may
 * wait: no lock may be held. Bytes.
 */
#ifndef SL_RUNTIME_MEMORY_HOLD_H
#define SL_RUNTIME_MEMORY_HOLD_H

#include "runtime/contexts/space.h"

/* One hold more on each region and slab that the range touches; nothing happens where there are
 * none.
 * False: they may not become held, and none is by this. */
SL_MUST_CHECK bool sl_hold_range(CUdeviceptr ptr, uint64_t bytes);
/* One hold less on each. */
void sl_hold_drop(CUdeviceptr ptr, uint64_t bytes);
/* As sl_hold_range for memory that nobody has found yet: in no list, not in the page map. */
SL_MUST_CHECK bool sl_hold_backing(struct sl_backing *backing, struct sl_gpu *gpu);

#endif
