/*
 * memory - see memory.h
 *
 * Freeing. The driver's cuMemFree waits for the work of the context before memory goes, and so
 * do we, in the thread that frees: for a region at once; for slots when 1 MiB of them has
 * gathered, or more slabs than we would keep anyway could go. That is where a program expects to
 * wait; an allocation never waits for the GPU (but before it fails for good), so a kernel that waits
 * for something the program does after an allocation cannot hang. Waiting in the thread that frees also means that memory is
 * back with the daemon when cuMemFree returns, as cuMemGetInfo is expected to show. While a
 * capture is open nobody may synchronise: frees then queue, and the sweeper does them afterwards.
 *
 * A region that is being freed is out of the page map before its addresses go back to the
 * driver, which may hand them to another thread at once.
 */
#include "runtime/memory.h"
#include "runtime/capture.h"
#include "runtime/device.h"
#include "runtime/futex.h"
#include "runtime/hooks.h"
#include "runtime/mode.h"
#include "runtime/pagemap.h"
#include "runtime/slab.h"
#include "runtime/sticky.h"
#include "runtime/sweep.h"

#include "base/log.h"

#include <stdlib.h>

/* Empty slabs a space keeps, so that alternating allocate and free costs no driver call. */
#define EMPTY_SLABS_KEPT 4
/* Freed slots that may gather before their free waits for the GPU. */
#define FREED_BYTES_MAX (1 * SL_MIB)
/* Ids apart from the driver's own, which count up from 1. */
#define FIRST_ID (1ull << 48)

struct region {
	struct sl_block block;
	struct sl_link link; /* space->regions or space->leaving */
	uint64_t bytes;      /* as asked */
	uint64_t id;
	bool live;
};

static uint64_t last_id = FIRST_ID;

static uint64_t new_id(void)
{
	return __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
}

static struct region *region_of(struct sl_block *block)
{
	return SL_CONTAINER_OF(block, struct region, block);
}

static struct sl_slab *slab_of(struct sl_block *block)
{
	return SL_CONTAINER_OF(block, struct sl_slab, block);
}

/* --- waiting for the GPU ------------------------------------------------------------------ */

enum settle_outcome {
	SETTLED = 0, /* all work submitted before is complete, or the context is gone */
	CAPTURING,   /* a capture is open: not now */
	BROKEN,      /* the context has a sticky error, or the driver shuts down */
};

static int classify(CUresult r)
{
	if (r == CUDA_SUCCESS || r == CUDA_ERROR_INVALID_CONTEXT ||
		r == CUDA_ERROR_CONTEXT_IS_DESTROYED)
		return SETTLED;
	if (r >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
		r <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
		return CAPTURING;
	return BROKEN;
}

static int settle(const struct sl_space *space, CUresult *result)
{
	CUcontext current = NULL;
	bool pushed = false;

	if (!sl_capture_sync_begin())
		return CAPTURING;
	*result = sl_real.cuCtxGetCurrent(&current);
	if (*result == CUDA_SUCCESS && current != space->ctx) {
		*result = sl_real.cuCtxPushCurrent_v2(space->ctx);
		pushed = *result == CUDA_SUCCESS;
	}
	if (*result == CUDA_SUCCESS)
		*result = sl_sticky_note(sl_real.cuCtxSynchronize());
	if (pushed)
		(void)sl_real.cuCtxPopCurrent_v2(&current);
	sl_capture_sync_end();
	return classify(*result);
}

/* --- backing from the daemon's grants ----------------------------------------------------- */

static bool space_hoards(const struct sl_space *space)
{
	return space->idle_slabs > 0 || !sl_list_is_empty(&space->with_freed) ||
	       !sl_list_is_empty(&space->leaving);
}

static bool anybody_hoards(void)
{
	bool found = false;

	sl_books_lock();
	sl_list_foreach (link, &sl_spaces)
		found = found || space_hoards(SL_LIST_ENTRY(link, struct sl_space, link));
	sl_books_unlock();
	return found;
}

static void give_back_soon(void)
{
	if (anybody_hoards())
		sl_sweep_soon(true);
}

static CUresult create_granted(struct sl_demand *demand, struct sl_space *space,
	uint64_t bytes, struct sl_backing *out, int *outcome)
{
	uint64_t stuck_bytes;
	CUresult r;

	while (*outcome == SL_DEMAND_GRANTED) {
		r = sl_backing_create(out, space->dev, bytes, &stuck_bytes);
		if (r == CUDA_ERROR_OUT_OF_MEMORY && stuck_bytes == 0) {
			*outcome = sl_demand_failed(demand, r);
			continue;
		}
		sl_demand_commit(demand, r == CUDA_SUCCESS ? bytes : stuck_bytes);
		return r;
	}
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* bytes of device memory: ask, wait, create. Before out-of-memory is final, what we hoard goes. */
static CUresult obtain(struct sl_space *space, uint64_t bytes, struct sl_backing *out)
{
	struct sl_demand demand;
	CUresult r;

	for (bool again = false;; again = true) {
		int outcome = sl_demand_ask(&demand, space->gpu, bytes, give_back_soon);

		r = create_granted(&demand, space, bytes, out, &outcome);
		if (outcome == SL_DEMAND_REFUSED)
			return sl_session_join();
		if (outcome == SL_DEMAND_GRANTED || again || !anybody_hoards())
			return r;
		sl_memory_flush_all(true);
	}
}

static void discard(struct sl_gpu *gpu, struct sl_backing *backing)
{
	uint64_t released_bytes;
	CUresult r = sl_backing_destroy(backing, &released_bytes);

	sl_session_freed(gpu, released_bytes);
	if (r != CUDA_SUCCESS)
		sl_error_log(
			"memory stays charged: the driver kept it with error %d", (int)r);
}

/* --- allocating --------------------------------------------------------------------------- */

static CUresult alloc_region(struct sl_space *space, uint64_t bytes, CUdeviceptr *out)
{
	uint64_t backing_bytes = sl_backing_round(bytes);
	struct region *region = backing_bytes ? calloc(1, sizeof(*region)) : NULL;
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;
	bool listed;

	if (region)
		r = obtain(space, backing_bytes, &region->block.backing);
	if (r != CUDA_SUCCESS) {
		free(region);
		return r;
	}
	region->block.kind = SL_BLOCK_REGION;
	region->block.space = space;
	region->bytes = bytes;
	region->id = new_id();
	region->live = true;
	*out = region->block.backing.base;
	sl_books_lock();
	listed = !space->dead && sl_pagemap_set(*out, backing_bytes, &region->block);
	if (listed)
		sl_list_push_tail(&space->regions, &region->link);
	sl_books_unlock();
	if (listed)
		return CUDA_SUCCESS;
	discard(space->gpu, &region->block.backing);
	free(region);
	return CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

/* A slab of that class that is in no list, with backing. */
static CUresult fresh_slab(
	struct sl_space *space, unsigned int class, struct sl_slab **out)
{
	struct sl_slab *slab = sl_slab_new(class), *empty;
	CUresult r = CUDA_SUCCESS;

	if (!slab)
		return CUDA_ERROR_OUT_OF_MEMORY;
	sl_books_lock();
	empty = sl_slab_take_empty(space);
	if (empty)
		sl_pagemap_clear(empty->block.backing.base, SL_SLAB_BYTES);
	sl_books_unlock();
	if (empty) {
		slab->block.backing = empty->block.backing;
		free(empty);
	} else {
		r = obtain(space, SL_SLAB_BYTES, &slab->block.backing);
	}
	if (r == CUDA_SUCCESS)
		*out = slab;
	else
		free(slab);
	return r;
}

static CUresult alloc_slot(struct sl_space *space, uint64_t bytes, CUdeviceptr *out)
{
	unsigned int class = sl_slab_class(bytes);
	uint64_t id = new_id();
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
	if (slot)
		return CUDA_SUCCESS;
	discard(space->gpu, &slab->block.backing);
	free(slab);
	return CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

int sl_memory_alloc(CUdeviceptr *out, size_t bytes, CUresult *result)
{
	struct sl_space *space;
	CUdeviceptr made = 0;
	int r;

	/* The driver refuses and spoils the capture, as it would without us. */
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

/* The region is in no list and not in the page map, and no work uses it. What the driver does not
 * take back is listed again: as live, so that the program may free it once more, or as leaving. */
static CUresult release_region(
	struct sl_space *space, struct region *region, bool live_again)
{
	CUdeviceptr base = region->block.backing.base;
	uint64_t bytes = region->block.backing.bytes, released_bytes;
	CUresult r = sl_backing_destroy(&region->block.backing, &released_bytes);

	sl_session_freed(space->gpu, released_bytes);
	if (r == CUDA_SUCCESS) {
		free(region);
		return r;
	}
	sl_warning("freeing %#llx failed in the driver: error %d", base, (int)r);
	sl_books_lock();
	if (!space->dead && sl_pagemap_set(base, bytes, &region->block)) {
		region->live = live_again;
		sl_list_push_tail(
			live_again ? &space->regions : &space->leaving, &region->link);
	}
	sl_books_unlock();
	return r;
}

/* The region is out of space->regions and not live. */
static CUresult free_region(struct sl_space *space, struct region *region, bool may_block)
{
	uint64_t bytes = region->block.backing.bytes;
	CUresult result = CUDA_SUCCESS;
	int r = may_block ? settle(space, &result) : CAPTURING;

	sl_books_lock();
	switch (r) {
	case SETTLED: sl_pagemap_clear(region->block.backing.base, bytes); break;
	case CAPTURING: sl_list_push_tail(&space->leaving, &region->link); break;
	default:
		/* The context is broken: its bytes stay charged until the process ends. */
		region->live = true;
		sl_list_push_tail(&space->regions, &region->link);
	}
	sl_books_unlock();
	if (r == SETTLED)
		return release_region(space, region, true);
	if (r == BROKEN)
		return result;
	sl_session_quarantined(space->gpu, (int64_t)bytes);
	if (may_block)
		sl_sweep_owe();
	else
		sl_sweep_soon(false);
	return CUDA_SUCCESS;
}

static bool is_due(const struct sl_space *space)
{
	return space->freed_bytes >= FREED_BYTES_MAX ||
	       space->idle_slabs - space->empty_slabs > EMPTY_SLABS_KEPT;
}

/* Under the lock. What begins at ptr is taken from the program, and the space used. False: nothing
 * that is live begins there. */
static bool take_from_program(struct sl_block *block, CUdeviceptr ptr)
{
	CUdeviceptr base;

	if (block->kind == SL_BLOCK_REGION) {
		struct region *region = region_of(block);

		if (!region->live || block->backing.base != ptr)
			return false;
		region->live = false;
		sl_list_unlink(&region->link);
	} else {
		struct sl_slot *slot = sl_slab_slot(slab_of(block), ptr, &base);

		if (!slot || base != ptr || slot->state != SL_SLOT_LIVE)
			return false;
		sl_slab_quarantine(slab_of(block), slot);
	}
	block->space->users++;
	return true;
}

int sl_memory_free(CUdeviceptr ptr, bool may_block, CUresult *result)
{
	struct sl_block *block;
	struct sl_space *space;
	bool due, is_region;

	sl_books_lock();
	block = sl_pagemap_get(ptr);
	if (!block) {
		sl_books_unlock();
		return SL_MEMORY_FOREIGN;
	}
	*result = __atomic_load_n(&block->space->broken, __ATOMIC_RELAXED);
	if (*result == CUDA_SUCCESS && !take_from_program(block, ptr))
		*result = CUDA_ERROR_INVALID_VALUE;
	if (*result != CUDA_SUCCESS) {
		sl_books_unlock();
		return SL_MEMORY_OURS;
	}
	space = block->space;
	is_region = block->kind == SL_BLOCK_REGION;
	due = !is_region && is_due(space);
	sl_books_unlock();
	if (is_region)
		*result = free_region(space, region_of(block), may_block);
	else if (due && may_block)
		*result = sl_memory_flush(space, false);
	else if (due)
		sl_sweep_soon(false);
	sl_space_leave(space);
	return SL_MEMORY_OURS;
}

/* --- flushing ------------------------------------------------------------------------------ */

static void move_all(struct sl_link *from, struct sl_link *to)
{
	sl_list_foreach_safe (link, from) {
		sl_list_unlink(link);
		sl_list_push_tail(to, link);
	}
}

/* Under the lock: empty slabs beyond `keep` leave the space. */
static void take_empty_slabs(struct sl_space *space, uint32_t keep, struct sl_link *out)
{
	struct sl_slab *slab;

	while (space->empty_slabs > keep && (slab = sl_slab_take_empty(space))) {
		sl_pagemap_clear(slab->block.backing.base, SL_SLAB_BYTES);
		sl_list_push_tail(out, &slab->all);
	}
}

static void discard_slabs(struct sl_gpu *gpu, struct sl_link *slabs)
{
	sl_list_foreach_safe (link, slabs) {
		struct sl_slab *slab = SL_LIST_ENTRY(link, struct sl_slab, all);

		sl_list_unlink(link);
		discard(gpu, &slab->block.backing);
		free(slab);
	}
}

/* Under the lock: what was quarantined is free for reuse, or to go. */
static void clear_batch(
	struct sl_space *space, struct sl_link *batch, struct sl_link *regions)
{
	sl_slab_return_batch(space, batch);
	sl_list_foreach (link, regions) {
		struct region *region = SL_LIST_ENTRY(link, struct region, link);

		sl_pagemap_clear(region->block.backing.base, region->block.backing.bytes);
	}
}

static void release_regions(struct sl_space *space, struct sl_link *regions)
{
	sl_list_foreach_safe (link, regions) {
		struct region *region = SL_LIST_ENTRY(link, struct region, link);

		uint64_t bytes = region->block.backing.bytes;

		sl_list_unlink(link);
		if (release_region(space, region, false) == CUDA_SUCCESS)
			sl_session_quarantined(space->gpu, -(int64_t)bytes);
	}
}

CUresult sl_memory_flush(struct sl_space *space, bool everything)
{
	struct sl_link batch = SL_LIST_INIT(batch), regions = SL_LIST_INIT(regions);
	struct sl_link slabs = SL_LIST_INIT(slabs);
	CUresult result = CUDA_SUCCESS;
	int r = SETTLED;

	sl_books_lock();
	if (space->flushing || space->dead) {
		sl_books_unlock();
		return CUDA_SUCCESS;
	}
	space->flushing = true;
	sl_slab_take_batch(space, &batch);
	move_all(&space->leaving, &regions);
	sl_books_unlock();
	if (!sl_list_is_empty(&batch) || !sl_list_is_empty(&regions))
		r = settle(space, &result);
	sl_books_lock();
	if (r == SETTLED) {
		clear_batch(space, &batch, &regions);
	} else {
		sl_slab_keep_batch(space, &batch);
		move_all(&regions, &space->leaving);
	}
	take_empty_slabs(space, everything ? 0 : EMPTY_SLABS_KEPT, &slabs);
	space->flushing = false;
	sl_books_unlock();
	release_regions(space, &regions);
	discard_slabs(space->gpu, &slabs);
	if (r == CAPTURING)
		sl_sweep_owe();
	return r == BROKEN ? result : CUDA_SUCCESS;
}

static struct sl_space *next_of_round(uint32_t round)
{
	struct sl_space *found = NULL;

	sl_books_lock();
	sl_list_foreach (link, &sl_spaces) {
		struct sl_space *space = SL_LIST_ENTRY(link, struct sl_space, link);

		if (space->round != round) {
			found = space;
			found->round = round;
			found->users++;
			break;
		}
	}
	sl_books_unlock();
	return found;
}

void sl_memory_flush_all(bool everything)
{
	static uint32_t rounds;
	uint32_t round = __atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);
	struct sl_space *space;

	while ((space = next_of_round(round))) {
		CUresult r = sl_memory_flush(space, everything);

		if (r != CUDA_SUCCESS)
			sl_debug("a context cannot be flushed: error %d", (int)r);
		sl_space_leave(space);
	}
}

/* --- contexts and look-ups ------------------------------------------------------------------ */

/* Under the lock: everything leaves lists and page map. */
static void take_everything(
	struct sl_space *space, struct sl_link *regions, struct sl_link *slabs)
{
	sl_list_foreach_safe (link, &space->slabs) {
		struct sl_slab *slab = SL_LIST_ENTRY(link, struct sl_slab, all);

		sl_slab_remove(slab);
		sl_pagemap_clear(slab->block.backing.base, SL_SLAB_BYTES);
		sl_list_push_tail(slabs, &slab->all);
	}
	sl_list_foreach (link, &space->leaving) {
		struct region *region = SL_LIST_ENTRY(link, struct region, link);

		sl_session_quarantined(space->gpu, -(int64_t)region->block.backing.bytes);
	}
	move_all(&space->leaving, regions);
	move_all(&space->regions, regions);
	sl_list_foreach (link, regions) {
		struct region *region = SL_LIST_ENTRY(link, struct region, link);

		sl_pagemap_clear(region->block.backing.base, region->block.backing.bytes);
	}
}

/* A flush by another thread has slots of this space in its hands; it ends with the work. */
static void lock_when_not_flushing(const struct sl_space *space)
{
	sl_books_lock();
	while (space->flushing) {
		sl_books_unlock();
		sl_futex_pause(100 * SL_US);
		sl_books_lock();
	}
}

bool sl_memory_drop_context(CUcontext ctx, bool alive)
{
	struct sl_link regions = SL_LIST_INIT(regions), slabs = SL_LIST_INIT(slabs);
	struct sl_space *space = sl_space_of(ctx);
	CUresult result;

	if (!space)
		return true;
	if (alive && settle(space, &result) != SETTLED) {
		sl_space_leave(space);
		return false;
	}
	lock_when_not_flushing(space);
	if (!space->dead) {
		sl_space_kill(space);
		take_everything(space, &regions, &slabs);
	}
	sl_books_unlock();
	discard_slabs(space->gpu, &slabs);
	sl_list_foreach_safe (link, &regions) {
		struct region *region = SL_LIST_ENTRY(link, struct region, link);

		sl_list_unlink(link);
		discard(space->gpu, &region->block.backing);
		free(region);
	}
	sl_space_leave(space);
	return true;
}

static int describe(struct sl_block *block, CUdeviceptr ptr, struct sl_memory_info *out)
{
	CUdeviceptr base = block->backing.base;
	uint64_t bytes = 0, id = 0;

	if (block->kind == SL_BLOCK_REGION) {
		const struct region *region = region_of(block);

		bytes = region->live ? region->bytes : 0;
		id = region->id;
	} else {
		const struct sl_slot *slot = sl_slab_slot(slab_of(block), ptr, &base);

		bytes = slot && slot->state == SL_SLOT_LIVE ? slot->bytes : 0;
		id = slot ? slot->id : 0;
	}
	if (ptr - base >= bytes)
		return SL_MEMORY_DEAD;
	*out = (struct sl_memory_info){
		.base = base,
		.bytes = bytes,
		.id = id,
		.ctx = block->space->ctx,
		.dev = block->space->dev,
		.mapping_base = block->backing.base,
		.mapping_bytes = block->backing.bytes,
	};
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

void sl_memory_forget(void)
{
	sl_space_forget();
	sl_pagemap_forget();
	sl_device_forget();
}
