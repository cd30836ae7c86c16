/*
 * pagemap - which block of ours lies at a device address
 *
 * Two levels over the grain's page number; covers addresses below 2^49. The caller locks, except
 * where it is said. Look-up is two loads.
 */
#ifndef SL_RUNTIME_MEMORY_PAGEMAP_H
#define SL_RUNTIME_MEMORY_PAGEMAP_H

#include "base/cuda_types.h"
#include "base/sl.h"

struct sl_block;

/* Maps [base, base + bytes), whole grains, to block. False without memory or beyond the
 * range: then nothing is mapped. */
SL_MUST_CHECK bool sl_pagemap_set(
	CUdeviceptr base, uint64_t bytes, struct sl_block *block);
void sl_pagemap_clear(CUdeviceptr base, uint64_t bytes);
struct sl_block *sl_pagemap_get(CUdeviceptr address);
/* The number of the GPU whose memory of ours the address is in, and one; 0: it is in none. Needs no
 * lock. */
uint8_t sl_pagemap_gpu(CUdeviceptr address);
/* Is any of the range mapped to a block? Steps over 32 GiB at once where nothing ever was. */
bool sl_pagemap_touches(CUdeviceptr base, uint64_t bytes);
/* In the child of a fork. */
void sl_pagemap_forget(void);

#endif
