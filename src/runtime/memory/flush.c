/*
 * flush - gives back what is quarantined or hoarded
 *
 * A flush takes a batch (everything freed before) and waits until the context's work is complete.
 * Only then does it reuse or unmap the batch; later frees make the next batch. One flush per space
 * at a time. A thread that must have its freed memory back waits for a running flush, as it would
 * wait in the driver. Otherwise a thread that frees and allocates would run ahead of the GPU until
 * no memory is left. Declared in memory.h.
 */
#include "runtime/contexts/settle.h"
#include "runtime/gate/control.h"
#include "runtime/memory/giving.h"
#include "runtime/memory/memory.h"
#include "runtime/memory/pagemap.h"
#include "runtime/memory/region.h"
#include "runtime/memory/slab.h"
#include "runtime/memory/stock.h"
#include "runtime/memory/supply.h"
#include "runtime/memory/sweep.h"
#include "runtime/process/futex.h"
#include "runtime/session/session.h"

#include "base/log.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

/* A thread that frees waits at most this long for another thread's flush: longer work only delays
 * it. */
#define FLUSH_WAIT_NS (10 * SL_S)

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
		sl_block_take(&slab->block);
		sl_list_push_tail(out, &slab->all);
	}
}

/* Under the lock: moves regions between the space's list and a flush. */
static void move_regions(struct sl_link *from, struct sl_link *to, bool into_hands)
{
	sl_list_foreach (link, from) {
		struct sl_block *block =
			&SL_LIST_ENTRY(link, struct sl_region, link)->block;

		if (into_hands)
			sl_block_take(block);
		else
			sl_block_let_go(block);
	}
	move_all(from, to);
}

static void discard_slabs(struct sl_gpu *gpu, struct sl_link *slabs)
{
	sl_list_foreach_safe (link, slabs) {
		struct sl_slab *slab = SL_LIST_ENTRY(link, struct sl_slab, all);

		sl_list_unlink(link);
		/* If the driver keeps the slab, a mover may have it in its list. */
		sl_control_enter();
		sl_supply_discard(gpu, &slab->block.backing);
		sl_books_lock();
		sl_block_let_go(&slab->block);
		sl_books_unlock();
		sl_control_leave();
		free(slab);
	}
}

/* Under the lock: quarantined slots become free for reuse, quarantined regions can be released. */
static void clear_batch(
	struct sl_space *space, struct sl_link *batch, struct sl_link *regions)
{
	sl_slab_return_batch(space, batch);
	sl_list_foreach (link, regions) {
		struct sl_region *region = SL_LIST_ENTRY(link, struct sl_region, link);

		sl_pagemap_clear(region->block.backing.base, region->block.backing.bytes);
	}
}

static void release_regions(struct sl_space *space, struct sl_link *regions)
{
	sl_list_foreach_safe (link, regions) {
		struct sl_region *region = SL_LIST_ENTRY(link, struct sl_region, link);

		uint64_t bytes = region->block.backing.bytes;

		sl_list_unlink(link);
		if (sl_region_release(space, region, false) == CUDA_SUCCESS)
			sl_session_quarantined(space->gpu, -(int64_t)bytes);
	}
}

enum flush_kind {
	FLUSH_IDLE,   /* does not wait for the work */
	FLUSH_CHANCE, /* waits for the work; does nothing during another flush */
	FLUSH_FULLY,  /* on return all memory freed before is back */
};

/* Under the lock, which is released during the wait. False: nothing to do here, or another flush
 * takes too long. */
static bool begin_flush(struct sl_space *space, enum flush_kind kind)
{
	sl_ns end_ns = sl_clock_now() + FLUSH_WAIT_NS, now_ns;

	/* If this thread is the flusher, a jump out of a signal handler ended its flush: do not
	 * wait for it. */
	while (kind == FLUSH_FULLY && space->flushing && !space->ending && !space->dead &&
		!pthread_equal(space->flusher, pthread_self()) &&
		(now_ns = sl_clock_now()) < end_ns) {
		uint32_t seen = space->flushes;

		sl_books_unlock();
		sl_futex_wait(&space->flushes, seen, end_ns - now_ns);
		sl_books_lock();
	}
	if (space->flushing || space->ending || space->dead)
		return false;
	space->flushing = true;
	space->flusher = pthread_self();
	return true;
}

/* Under the lock. */
static void end_flush(struct sl_space *space)
{
	space->flushing = false;
	space->flushes++;
	sl_futex_wake(&space->flushes, INT_MAX);
}

static CUresult flush_here(struct sl_space *space, bool everything, enum flush_kind kind)
{
	struct sl_link batch = SL_LIST_INIT(batch), regions = SL_LIST_INIT(regions);
	struct sl_link slabs = SL_LIST_INIT(slabs);
	CUresult result = CUDA_SUCCESS;
	int r = SL_SETTLED;
	bool gives, stocks;
	uint64_t mark;

	sl_books_lock();
	if (!begin_flush(space, kind)) {
		sl_books_unlock();
		return CUDA_SUCCESS;
	}
	sl_slab_take_batch(space, &batch);
	move_regions(&space->leaving, &regions, true);
	stocks = sl_stock_is_due(space, everything);
	mark = space->everything.given;
	sl_books_unlock();
	if (kind != FLUSH_IDLE &&
		(stocks || !sl_list_is_empty(&batch) || !sl_list_is_empty(&regions)))
		r = sl_settle(space, &result);
	sl_books_lock();
	if (r == SL_SETTLED) {
		clear_batch(space, &batch, &regions);
		space->everything.reached = mark;
	} else {
		sl_slab_keep_batch(space, &batch);
		move_regions(&regions, &space->leaving, false);
	}
	take_empty_slabs(space, everything ? 0 : SL_EMPTY_SLABS_KEPT, &slabs);
	stocks = stocks && r == SL_SETTLED;
	gives = stocks || !sl_list_is_empty(&slabs) || !sl_list_is_empty(&regions);
	if (gives)
		sl_memory_gives(true);
	end_flush(space);
	sl_books_unlock();
	release_regions(space, &regions);
	discard_slabs(space->gpu, &slabs);
	if (stocks)
		sl_stock_flushed(space, everything);
	if (gives)
		sl_memory_gives(false);
	/* The frees have succeeded; the memory goes back later. */
	if (r == SL_SETTLE_CAPTURING || r == SL_SETTLE_FAILED)
		sl_sweep_owe();
	return r == SL_SETTLE_BROKEN ? result : CUDA_SUCCESS;
}

/* A thread cancelled during the driver's wait would lose the batch and block all later flushes of
 * the space. So its cancellation waits until the flush has ended. */
static CUresult flush(struct sl_space *space, bool everything, enum flush_kind kind)
{
	CUresult result;
	int state;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	result = flush_here(space, everything, kind);
	(void)pthread_setcancelstate(state, NULL);
	return result;
}

CUresult sl_memory_flush(struct sl_space *space, bool everything)
{
	return flush(space, everything, FLUSH_FULLY);
}

static struct sl_space *next_of_round(uint64_t round, const struct sl_gpu *gpu)
{
	struct sl_space *found = NULL;

	sl_books_lock();
	sl_list_foreach (link, &sl_spaces) {
		struct sl_space *space = SL_LIST_ENTRY(link, struct sl_space, link);

		if (space->round < round && (!gpu || space->gpu == gpu)) {
			found = space;
			found->round = round;
			found->users++;
			break;
		}
	}
	sl_books_unlock();
	return found;
}

static uint64_t next_round(void)
{
	static uint64_t rounds;

	return __atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);
}

void sl_memory_flush_idle(struct sl_gpu *gpu)
{
	uint64_t round = next_round();
	struct sl_space *space;

	while ((space = next_of_round(round, gpu))) {
		if (!__atomic_load_n(&space->broken, __ATOMIC_RELAXED))
			(void)flush(space, true, FLUSH_IDLE);
		sl_space_leave(space);
	}
}

void sl_memory_flush_all(bool everything)
{
	uint64_t round = next_round();
	struct sl_space *space;

	while ((space = next_of_round(round, NULL))) {
		CUresult r = flush(space, everything, FLUSH_CHANCE);

		if (r != CUDA_SUCCESS)
			sl_debug("a context cannot be flushed: error %d", (int)r);
		sl_space_leave(space);
	}
}

/* Under the lock: takes everything out of the lists and the page map. */
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
		struct sl_region *region = SL_LIST_ENTRY(link, struct sl_region, link);

		sl_session_quarantined(space->gpu, -(int64_t)region->block.backing.bytes);
	}
	move_all(&space->leaving, regions);
	move_all(&space->regions, regions);
	sl_list_foreach (link, regions) {
		struct sl_region *region = SL_LIST_ENTRY(link, struct sl_region, link);

		sl_pagemap_clear(region->block.backing.base, region->block.backing.bytes);
	}
}

/* Waits for another thread's flush, which works on slots of this space; it ends with the GPU
 * work. */
struct sl_space *sl_memory_hold(CUcontext ctx, bool hide)
{
	struct sl_space *space;

	sl_books_lock();
	while ((space = sl_space_find(ctx)) && (space->flushing || space->ending)) {
		sl_books_unlock();
		sl_futex_pause(100 * SL_US);
		sl_books_lock();
	}
	if (space) {
		space->ending = true;
		space->detached = hide;
		space->users++;
	}
	sl_books_unlock();
	return space;
}

void sl_memory_unhold(struct sl_space *space)
{
	if (!space)
		return;
	sl_books_lock();
	space->ending = space->detached = false;
	sl_books_unlock();
	sl_space_leave(space);
}

void sl_memory_drop(struct sl_space *space)
{
	struct sl_link regions = SL_LIST_INIT(regions), slabs = SL_LIST_INIT(slabs);
	struct sl_link tracts = SL_LIST_INIT(tracts);

	if (!space)
		return;
	sl_books_lock();
	sl_space_kill(space);
	take_everything(space, &regions, &slabs);
	sl_stock_take_all(space, &tracts);
	sl_books_unlock();
	discard_slabs(space->gpu, &slabs);
	sl_stock_discard(&tracts);
	sl_list_foreach_safe (link, &regions) {
		struct sl_region *region = SL_LIST_ENTRY(link, struct sl_region, link);

		sl_list_unlink(link);
		sl_supply_discard(space->gpu, &region->block.backing);
		free(region);
	}
	sl_space_leave(space);
}
