/*
 * order - copies between two GPUs in the legacy stream
 *
 * Such a copy starts after all work that either GPU was given before, and ends before the work that
 * either is given later (CUDA Programming Guide 3.4.2.1). A driver sees to that where it knows that
 * memory is another GPU's. Ours is mapped, and no manual says that it knows then; so the legacy
 * streams of the two owners wait for each other here, before the copy and after it.
 *
 * Costs one load in a process with memory on one GPU; in others a look at both ends, without a
 * lock, for copies in the legacy stream. Thread-safe; no lock may be held.
 */
#ifndef SL_RUNTIME_HOOKS_ORDER_H
#define SL_RUNTIME_HOOKS_ORDER_H

#include "base/cuda_types.h"
#include "runtime/contexts/space.h"
#include "runtime/memory/pagemap.h"

/* The two ends of a copy; 0 for what cannot be memory of ours. */
struct sl_order_ends {
	CUdeviceptr dst, src;
	bool legacy; /* in the current context's legacy stream */
};

/* Between begin and end: contexts of the other GPU that the copy is in order with. */
struct sl_order {
	CUcontext other[2];
	unsigned int count;
};

/* One load in most processes: false where no copy can go between two GPUs in the legacy stream. */
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

/* Inside the gate. While a capture is open nothing is done: it would be spoiled. */
void sl_order_begin(struct sl_order *order, struct sl_order_ends ends) SL_COLD;
void sl_order_end(struct sl_order *order, CUresult result) SL_COLD;

#endif
