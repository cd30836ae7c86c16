/*
 * anchor - regions and slabs that must stay on the GPU
 *
 * Another process, a peer device, a NIC or a multicast object knows the pages behind them. Anchors
 * are counted per region or slab; those that are left go with the memory. The first anchor makes
 * the bytes held (held.h). Asking may wait, so no lock may be held. Bytes.
 */
#ifndef SL_RUNTIME_MEMORY_ANCHOR_H
#define SL_RUNTIME_MEMORY_ANCHOR_H

#include "base/cuda_types.h"
#include "base/sl.h"

struct sl_backing;
struct sl_gpu;

/* One anchor more on each region and slab that the range touches; nothing happens where there are
 * none. False: they may not become held, and no anchor was added. */
SL_MUST_CHECK bool sl_anchor_range(CUdeviceptr ptr, uint64_t bytes);
/* One anchor less on each. */
void sl_anchor_drop(CUdeviceptr ptr, uint64_t bytes);
/* As sl_anchor_range for new memory: in no list yet, not in the page map. */
SL_MUST_CHECK bool sl_anchor_backing(struct sl_backing *backing, struct sl_gpu *gpu);

#endif
