/*
 * anchor - see anchor.h
 *
 * The daemon is asked without a lock. Then the block is looked up again: if it is gone, or another
 * thread has anchored it, the held bytes are dropped again.
 */
#include "runtime/memory/anchor.h"
#include "runtime/memory/block.h"
#include "runtime/memory/pagemap.h"
#include "runtime/session/held.h"

/* Makes the bytes of the block at `at` held unless they are. *next: where the block ends; 0: no
 * block. */
static bool anchor_one(CUdeviceptr at, CUdeviceptr *next)
{
	struct sl_gpu *gpu = NULL;
	struct sl_block *block;
	uint64_t bytes = 0;

	*next = 0;
	sl_books_lock();
	block = sl_pagemap_get(at);
	if (block) {
		*next = block->backing.base + block->backing.bytes;
		if (block->backing.anchors) {
			block->backing.anchors++;
		} else {
			gpu = block->space->gpu;
			bytes = block->backing.bytes;
		}
	}
	sl_books_unlock();
	if (!bytes)
		return true;
	if (!sl_held_take(gpu, bytes))
		return false;
	sl_books_lock();
	block = sl_pagemap_get(at);
	if (block && block->backing.anchors) {
		block->backing.anchors++;
	} else if (block && block->backing.bytes == bytes && block->space->gpu == gpu) {
		block->backing.anchors = 1;
		block->backing.held_on = gpu;
		bytes = 0;
	}
	sl_books_unlock();
	if (bytes)
		sl_held_drop(gpu, bytes);
	return true;
}

bool sl_anchor_range(CUdeviceptr ptr, uint64_t bytes)
{
	CUdeviceptr at = ptr, next;

	/* A range that the driver treats as one piece has no gaps. */
	do {
		if (!anchor_one(at, &next)) {
			if (at != ptr)
				sl_anchor_drop(ptr, at - ptr);
			return false;
		}
		at = next;
	} while (next && next - ptr < bytes);
	return true;
}

void sl_anchor_drop(CUdeviceptr ptr, uint64_t bytes)
{
	CUdeviceptr at = ptr;

	while (at && at - ptr < bytes) {
		struct sl_gpu *gpu = NULL;
		struct sl_block *block;
		uint64_t dropped = 0;

		sl_books_lock();
		block = sl_pagemap_get(at);
		at = block ? block->backing.base + block->backing.bytes : 0;
		if (block && block->backing.anchors && --block->backing.anchors == 0) {
			gpu = block->backing.held_on;
			dropped = block->backing.bytes;
		}
		sl_books_unlock();
		if (dropped)
			sl_held_drop(gpu, dropped);
	}
}

bool sl_anchor_backing(struct sl_backing *backing, struct sl_gpu *gpu)
{
	if (backing->anchors == 0 && !sl_held_take(gpu, backing->bytes))
		return false;
	backing->held_on = gpu;
	backing->anchors++;
	return true;
}
