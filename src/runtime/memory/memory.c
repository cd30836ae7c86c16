/*
 * memory - see memory.h
 *
 * Freeing. The driver's cuMemFree waits for the work of the context before memory goes, and so do
 * we, in the thread that frees. Freeing a region waits at once. Freeing slots waits when 1 MiB of
 * them has gathered, or when more slabs than we keep could go. A program expects that wait in a
 * free. An allocation waits for the GPU only before it fails for good, so a kernel that waits for
 * the program's next step after an allocation cannot hang. Waiting in the freeing thread also means
 * that the daemon has the memory back when cuMemFree returns, as cuMemGetInfo should show. While a
 * capture is open no thread may synchronise: frees then queue, and the sweeper does them
 * afterwards.
 */
#include "runtime/memory/memory.h"
#include "runtime/contexts/capture.h"
#include "runtime/gate/control.h"
#include "runtime/memory/giving.h"
#include "runtime/memory/pagemap.h"
#include "runtime/memory/peer.h"
#include "runtime/memory/region.h"
#include "runtime/memory/slab.h"
#include "runtime/memory/stock.h"
#include "runtime/memory/supply.h"
#include "runtime/memory/sweep.h"
#include "runtime/process/mode.h"

#include "base/step.h"

#include <stdlib.h>

/* Freed slots that may gather before a free waits for the GPU. */
#define FREED_BYTES_MAX (1 * SL_MIB)

/* --- allocating --------------------------------------------------------------------------- */

/* The slab's backing is gone. */
static void free_slab(struct sl_slab *slab)
{
	sl_books_lock();
	sl_block_let_go(&slab->block);
	sl_books_unlock();
	free(slab);
}

/* A slab of that class with backing, in no list but in_hands. */
static CUresult fresh_slab(
	struct sl_space *space, unsigned int class, struct sl_slab **out)
{
	struct sl_slab *slab = sl_slab_new(class), *empty;
	CUresult r = CUDA_SUCCESS;

	if (!slab)
		return CUDA_ERROR_OUT_OF_MEMORY;
	slab->block.space = space;
	/* A mover may be working on the backing. */
	sl_control_enter();
	sl_books_lock();
	empty = sl_slab_take_empty(space);
	if (empty) {
		sl_pagemap_clear(empty->block.backing.base, SL_SLAB_BYTES);
		slab->block.backing = empty->block.backing;
		sl_block_take(&slab->block);
	}
	sl_books_unlock();
	sl_control_leave();
	if (!empty)
		r = sl_supply_obtain(space, SL_SLAB_BYTES, &slab->block.backing);
	free(empty);
	if (r == CUDA_SUCCESS)
		r = sl_peer_admit(space, &slab->block.backing);
	if (r == CUDA_SUCCESS)
		*out = slab;
	else
		free_slab(slab);
	return r;
}

static CUresult alloc_slot(struct sl_space *space, uint64_t bytes, CUdeviceptr *out)
{
	unsigned int class = sl_slab_class(bytes);
	uint64_t id = sl_memory_new_id();
	struct sl_slot *slot;
	struct sl_slab *slab;
	CUresult r;

	sl_books_lock();
	slot = sl_slab_take(space, class, bytes, id, out);
	sl_books_unlock();
	if (slot)
		return CUDA_SUCCESS;
	r = fresh_slab(space, class, &slab);
	if (r != CUDA_SUCCESS)
		return r;
	sl_books_lock();
	if (!space->dead &&
		sl_pagemap_set(slab->block.backing.base, SL_SLAB_BYTES, &slab->block)) {
		sl_slab_add(space, slab);
		slot = sl_slab_take(space, class, bytes, id, out);
	}
	sl_books_unlock();
	if (slot) {
		sl_peer_catch_up(space, *out & ~(SL_SLAB_BYTES - 1));
		return CUDA_SUCCESS;
	}
	sl_supply_discard(space->gpu, &slab->block.backing);
	free_slab(slab);
	return CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

static CUresult alloc_region(struct sl_space *space, uint64_t bytes, CUdeviceptr *out)
{
	uint64_t backing_bytes = sl_backing_round(bytes);
	struct sl_region *region = backing_bytes ? calloc(1, sizeof(*region)) : NULL;
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;
	bool listed;

	if (region)
		r = sl_supply_obtain(space, backing_bytes, &region->block.backing);
	if (r == CUDA_SUCCESS)
		r = sl_peer_admit(space, &region->block.backing);
	if (r != CUDA_SUCCESS) {
		free(region);
		return r;
	}
	region->block.kind = SL_BLOCK_REGION;
	sl_list_init(&region->block.in_hands);
	region->block.space = space;
	region->bytes = bytes;
	region->id = sl_memory_new_id();
	region->live = true;
	*out = region->block.backing.base;
	sl_books_lock();
	listed = !space->dead && sl_pagemap_set(*out, backing_bytes, &region->block);
	if (listed)
		sl_list_push_tail(&space->regions, &region->link);
	sl_books_unlock();
	if (listed) {
		sl_peer_catch_up(space, *out);
		return CUDA_SUCCESS;
	}
	sl_supply_discard(space->gpu, &region->block.backing);
	free(region);
	return CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

int sl_memory_alloc(CUdeviceptr *out, size_t bytes, CUresult *result)
{
	struct sl_space *space;
	CUdeviceptr made = 0;
	int r;

	/* The driver refuses and invalidates the capture, as without us. */
	if (sl_capture_forbids())
		return SL_MEMORY_FOREIGN;
	r = sl_space_enter(&space, result);
	if (r == SL_SPACE_FOREIGN)
		return SL_MEMORY_FOREIGN;
	if (r == SL_SPACE_FAILED)
		return SL_MEMORY_OURS;
	if (!out || bytes == 0)
		*result = CUDA_ERROR_INVALID_VALUE;
	else if (bytes >= sl_options.region_min)
		*result = alloc_region(space, bytes, &made);
	else
		*result = alloc_slot(space, bytes, &made);
	sl_space_leave(space);
	if (*result == CUDA_SUCCESS)
		*out = made;
	return SL_MEMORY_OURS;
}

/* --- freeing ------------------------------------------------------------------------------ */

static bool is_due(const struct sl_space *space)
{
	return space->freed_bytes >= FREED_BYTES_MAX ||
	       space->idle_slabs - space->empty_slabs > SL_EMPTY_SLABS_KEPT;
}

/* Under the lock. Takes what begins at ptr from the program and uses the space; or the program's
 * error. */
static CUresult take_from_program(struct sl_block *block, CUdeviceptr ptr)
{
	CUdeviceptr base;

	if (block->kind == SL_BLOCK_REGION) {
		struct sl_region *region = sl_region_of(block);

		if (!region->live || block->backing.base != ptr)
			return CUDA_ERROR_INVALID_VALUE;
		region->live = false;
		sl_list_unlink(&region->link);
		sl_block_take(block);
	} else if (block->kind == SL_BLOCK_TRACT) {
		CUresult r = sl_stock_take_back(block, ptr);

		if (r != CUDA_SUCCESS)
			return r;
	} else {
		struct sl_slot *slot = sl_slab_slot(sl_slab_of(block), ptr, &base);

		if (!slot || base != ptr || slot->state != SL_SLOT_LIVE)
			return CUDA_ERROR_INVALID_VALUE;
		sl_slab_quarantine(sl_slab_of(block), slot);
	}
	block->space->users++;
	return CUDA_SUCCESS;
}

int sl_memory_free(CUdeviceptr ptr, bool may_block, CUresult *result)
{
	struct sl_block *block;
	struct sl_space *space;
	bool due, is_region;

	sl_step(C_FREEING);
	sl_books_lock();
	block = sl_pagemap_get(ptr);
	if (!block) {
		sl_books_unlock();
		return SL_MEMORY_FOREIGN;
	}
	*result = __atomic_load_n(&block->space->broken, __ATOMIC_RELAXED);
	if (*result == CUDA_SUCCESS)
		*result = take_from_program(block, ptr);
	if (*result != CUDA_SUCCESS) {
		sl_books_unlock();
		return SL_MEMORY_OURS;
	}
	space = block->space;
	is_region = block->kind == SL_BLOCK_REGION;
	due = block->kind == SL_BLOCK_TRACT || (!is_region && is_due(space));
	sl_books_unlock();
	if (is_region)
		*result = sl_region_free(space, sl_region_of(block), may_block);
	else if (due && may_block)
		*result = sl_memory_flush(space, false);
	else if (due)
		sl_sweep_soon(false);
	sl_space_leave(space);
	return SL_MEMORY_OURS;
}

/* --- looking up ---------------------------------------------------------------------------- */

/* The fields that each kind of block knows of the live allocation around ptr. */
static bool describe_part(
	struct sl_block *block, CUdeviceptr ptr, struct sl_memory_info *out)
{
	const struct sl_region *region;
	const struct sl_slot *slot;

	if (block->kind == SL_BLOCK_TRACT)
		return sl_stock_describe(block, ptr, out);
	out->base = block->backing.base;
	if (block->kind == SL_BLOCK_REGION) {
		region = sl_region_of(block);
		out->bytes = region->live ? region->bytes : 0;
		out->id = region->id;
		out->sync_memops = region->sync_memops;
	} else {
		slot = sl_slab_slot(sl_slab_of(block), ptr, &out->base);
		out->bytes = slot && slot->state == SL_SLOT_LIVE ? slot->bytes : 0;
		out->id = slot ? slot->id : 0;
		out->sync_memops = slot && slot->sync_memops;
	}
	return ptr - out->base < out->bytes;
}

static int describe(struct sl_block *block, CUdeviceptr ptr, struct sl_memory_info *out)
{
	struct sl_memory_info info = {
		.ctx = block->space->ctx,
		.dev = block->space->dev,
		.mapping_base = block->backing.base,
		.mapping_bytes = block->backing.bytes,
		.broken = __atomic_load_n(&block->space->broken, __ATOMIC_RELAXED),
	};

	if (!describe_part(block, ptr, &info))
		return SL_MEMORY_DEAD;
	*out = info;
	return SL_MEMORY_OURS;
}

int sl_memory_find(CUdeviceptr ptr, struct sl_memory_info *out)
{
	struct sl_block *block;
	int r = SL_MEMORY_FOREIGN;

	sl_books_lock();
	block = sl_pagemap_get(ptr);
	if (block)
		r = describe(block, ptr, out);
	sl_books_unlock();
	return r;
}

void sl_memory_set_sync_memops(CUdeviceptr ptr, bool on)
{
	struct sl_block *block;
	struct sl_slot *slot;
	CUdeviceptr base;

	sl_books_lock();
	block = sl_pagemap_get(ptr);
	if (block && block->kind == SL_BLOCK_REGION) {
		sl_region_of(block)->sync_memops = on;
	} else if (block && block->kind == SL_BLOCK_TRACT) {
		sl_stock_set_sync_memops(block, ptr, on);
	} else if (block) {
		slot = sl_slab_slot(sl_slab_of(block), ptr, &base);
		if (slot)
			slot->sync_memops = on;
	}
	sl_books_unlock();
}

void sl_memory_forget(void)
{
	sl_space_forget();
	sl_stream_forget();
	sl_stock_forget();
	sl_pagemap_forget();
	sl_memory_forget_giving();
}
