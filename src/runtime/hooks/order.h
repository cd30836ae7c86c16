/*
 * order - copies between two GPUs in the legacy stream
 *
 * Such a copy starts after all earlier work of either GPU and ends before the later work of either
 * (CUDA Programming Guide 3.4.2.1). A driver ensures that order if it knows that the memory is
 * another GPU's. Our memory is mapped, and no manual says that the driver knows the owner of mapped
 * memory. So the legacy streams of the two owners wait for each other here, before the copy and
 * after it.
 *
 * Costs one load in a process with memory on one GPU. In others a copy in the legacy stream looks
 * up both ends, without a lock. Thread-safe; no lock may be held.
 */
#ifndef SL_RUNTIME_HOOKS_ORDER_H
#define SL_RUNTIME_HOOKS_ORDER_H

#include "base/cuda_types.h"
#include "runtime/contexts/space.h"
#include "runtime/memory/pagemap.h"

/* The two ends of a copy; 0 for an address that cannot be ours. */
struct sl_order_ends {
	CUdeviceptr dst, src;
	bool legacy; /* in the current context's legacy stream */
};

/* Between begin and end: contexts of the other GPU that the copy waits for and blocks. */
struct sl_order {
	CUcontext other[2];
	unsigned int count;
};

/* False where no copy can go between two GPUs in the legacy stream: one load in most processes. */
static inline __attribute__((always_inline)) bool sl_order_may_be_due(
	struct sl_order_ends ends)
{
	return sl_unlikely(__atomic_load_n(&sl_space_several, __ATOMIC_RELAXED)) &&
	       ends.legacy;
}

/* True: do the copy between sl_order_begin and sl_order_end. */
static inline bool sl_order_is_due(struct sl_order_ends ends)
{
	return sl_order_may_be_due(ends) && ends.dst && ends.src &&
	       sl_pagemap_gpu(ends.dst) != sl_pagemap_gpu(ends.src);
}

/* Inside the gate. Does nothing while a capture is open: it would invalidate the capture. */
void sl_order_begin(struct sl_order *order, struct sl_order_ends ends) SL_COLD;
void sl_order_end(struct sl_order *order, CUresult result) SL_COLD;

#endif
