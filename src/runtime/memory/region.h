/*
 * region - one large allocation, with chunks of its own
 *
 * Live regions are in their space's `regions`, freed ones that wait for the GPU in `leaving`; both
 * are in the page map. The books' lock guards the fields.
 */
#ifndef SL_RUNTIME_MEMORY_REGION_H
#define SL_RUNTIME_MEMORY_REGION_H

#include "runtime/memory/block.h"

struct sl_region {
	struct sl_block block;
	struct sl_link link; /* space->regions or space->leaving */
	uint64_t bytes;      /* as asked */
	uint64_t id;
	bool live, sync_memops;
};

static inline struct sl_region *sl_region_of(struct sl_block *block)
{
	return SL_CONTAINER_OF(block, struct sl_region, block);
}

/* The region is out of space->regions and not live. may_block: waits for the context's work.
 * Otherwise, or while a capture is open, the sweeper frees it later. */
SL_MUST_CHECK CUresult sl_region_free(
	struct sl_space *space, struct sl_region *region, bool may_block);
/* The region is in no list and not in the page map, and no work uses it. If the driver does not
 * take it back it is listed again: as live, so that the program may free it once more, or as
 * leaving. */
SL_MUST_CHECK CUresult sl_region_release(
	struct sl_space *space, struct sl_region *region, bool live_again);

#endif
