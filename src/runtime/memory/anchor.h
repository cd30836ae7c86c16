/*
 * anchor - regions and slabs that must stay on the GPU
 *
 * Another process, a peer device, a NIC or a multicast object uses the pages behind them. Anchors
 * are counted per region or slab; freeing the memory ends those that remain. The first anchor makes
 * the bytes held (held.h). Asking may wait, so no lock may be held. Bytes.
 */
#ifndef SL_RUNTIME_MEMORY_ANCHOR_H
#define SL_RUNTIME_MEMORY_ANCHOR_H

#include "base/cuda_types.h"
#include "base/sl.h"

struct sl_backing;
struct sl_gpu;

/* Adds one anchor to each region and slab that the range touches, if any. False: they may not
 * become held, and no anchor was added. */
SL_MUST_CHECK bool sl_anchor_range(CUdeviceptr ptr, uint64_t bytes);
/* Removes one anchor from each. */
void sl_anchor_drop(CUdeviceptr ptr, uint64_t bytes);
/* Like sl_anchor_range, for new memory that is in no list and not in the page map yet. */
SL_MUST_CHECK bool sl_anchor_backing(struct sl_backing *backing, struct sl_gpu *gpu);

#endif
