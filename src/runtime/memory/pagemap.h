/*
 * pagemap - which block of ours lies at a device address
 *
 * Two levels, indexed by the page number in grains; covers addresses below 2^49. The caller locks,
 * unless stated otherwise. A look-up is two loads.
 */
#ifndef SL_RUNTIME_MEMORY_PAGEMAP_H
#define SL_RUNTIME_MEMORY_PAGEMAP_H

#include "base/cuda_types.h"
#include "base/sl.h"

struct sl_block;

/* Maps [base, base + bytes), whole grains, to block. False: no memory, or beyond the covered
 * addresses; nothing is mapped. */
SL_MUST_CHECK bool sl_pagemap_set(
	CUdeviceptr base, uint64_t bytes, struct sl_block *block);
void sl_pagemap_clear(CUdeviceptr base, uint64_t bytes);
struct sl_block *sl_pagemap_get(CUdeviceptr address);
/* The ordinal of the GPU whose memory of ours contains the address, plus 1; 0: none. Needs no
 * lock. */
uint8_t sl_pagemap_gpu(CUdeviceptr address);
/* Is any part of the range mapped to a block? Skips 32 GiB at once where no block ever was. */
bool sl_pagemap_touches(CUdeviceptr base, uint64_t bytes);
/* In the child of a fork. */
void sl_pagemap_forget(void);

#endif
