/*
 * managed - hints about the use of managed memory
 */
#ifndef SL_SOFTGPU_MEMORY_MANAGED_H
#define SL_SOFTGPU_MEMORY_MANAGED_H

#include "softgpu/memory/space.h"

#define SL_HINT_HOST (1u << 31)

/* The hint for [start, end); a block's hints follow one another without gaps. */
struct sl_hint {
	struct sl_hint *next;
	uint64_t start, end;
	bool read_mostly;
	uint32_t accessed_by; /* a bit per device, and SL_HINT_HOST */
	CUmemLocation preferred, prefetched;
};

/* Frees a block's hints. Under sl_space_lock. */
void sl_managed_free(struct sl_block *b);

#endif
