/*
 * region - see region.h
 *
 * A region that is being freed leaves the page map before its addresses go back to the driver: the
 * driver may give them to another thread at once.
 */
#include "runtime/memory/region.h"
#include "runtime/contexts/settle.h"
#include "runtime/memory/pagemap.h"
#include "runtime/memory/supply.h"
#include "runtime/memory/sweep.h"
#include "runtime/session/session.h"

#include "base/log.h"

#include <stdlib.h>

CUresult sl_region_release(
	struct sl_space *space, struct sl_region *region, bool live_again)
{
	CUdeviceptr base = region->block.backing.base;
	uint64_t bytes = region->block.backing.bytes;
	CUresult r = sl_supply_release(space->gpu, &region->block.backing);

	if (r != CUDA_SUCCESS)
		sl_warning("freeing %#llx failed in the driver: error %d", base, (int)r);
	sl_books_lock();
	sl_block_let_go(&region->block);
	if (r == CUDA_SUCCESS) {
		sl_books_unlock();
		free(region);
		return r;
	}
	if (!space->dead && sl_pagemap_set(base, bytes, &region->block)) {
		region->live = live_again;
		sl_list_push_tail(
			live_again ? &space->regions : &space->leaving, &region->link);
	}
	sl_books_unlock();
	return r;
}

CUresult sl_region_free(struct sl_space *space, struct sl_region *region, bool may_block)
{
	uint64_t bytes = region->block.backing.bytes;
	CUresult result = CUDA_SUCCESS;
	int r = may_block ? sl_settle(space, &result) : SL_SETTLE_CAPTURING;

	sl_books_lock();
	/* Its context was destroyed meanwhile with all its work; lists no longer matter. */
	if (space->dead)
		r = SL_SETTLED;
	switch (r) {
	case SL_SETTLED: sl_pagemap_clear(region->block.backing.base, bytes); break;
	case SL_SETTLE_CAPTURING:
		sl_block_let_go(&region->block);
		sl_list_push_tail(&space->leaving, &region->link);
		break;
	default:
		/* It is not freed. In a broken context the bytes stay charged until the process
		 * ends. */
		region->live = true;
		sl_block_let_go(&region->block);
		sl_list_push_tail(&space->regions, &region->link);
	}
	sl_books_unlock();
	if (r == SL_SETTLED)
		return sl_region_release(space, region, true);
	if (r != SL_SETTLE_CAPTURING)
		return result;
	sl_session_quarantined(space->gpu, (int64_t)bytes);
	if (may_block)
		sl_sweep_owe();
	else
		sl_sweep_soon(false);
	return CUDA_SUCCESS;
}
