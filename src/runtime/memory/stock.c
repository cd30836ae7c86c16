/*
 * stock - see stock.h
 *
 * A tract goes back as a whole, when no part of it is in use or on a stream's shelf. What is given
 * back is out of all lists first, and goes to the driver without a lock.
 */
#include "runtime/memory/stock.h"
#include "runtime/contexts/capture.h"
#include "runtime/contexts/space.h"
#include "runtime/gate/control.h"
#include "runtime/memory/giving.h"
#include "runtime/memory/internal.h"
#include "runtime/memory/pagemap.h"
#include "runtime/memory/peer.h"
#include "runtime/memory/supply.h"

#include <errno.h>
#include <stdlib.h>

/* Under the books' lock. */
static struct sl_link stocks = SL_LIST_INIT(stocks);
uint32_t sl_stock_watched; /* atomic */

/* --- books ------------------------------------------------------------------------------------ */

static void watch(struct sl_stock *stock)
{
	bool now = stock->idle && stock->reserved > stock->threshold_bytes;

	if (now != stock->watched)
		__atomic_fetch_add(&sl_stock_watched, now ? 1 : -1, __ATOMIC_RELAXED);
	stock->watched = now;
}

void sl_stock_count_idle(struct sl_tract *tract, int by)
{
	tract->stock->idle += (uint32_t)by;
	tract->block.space->idle_tracts += (uint32_t)by;
	watch(tract->stock);
}

static void free_if_over(struct sl_stock *stock)
{
	if (!stock->gone || !sl_list_is_empty(&stock->tracts))
		return;
	sl_list_foreach_safe (link, &stock->shelves)
		sl_shelf_free(SL_LIST_ENTRY(link, struct sl_shelf, link));
	sl_list_unlink(&stock->link);
	free(stock);
}

void sl_stock_put_back(struct sl_shelf *shelf, struct sl_cut *cut, uint64_t mark)
{
	struct sl_tract *tract = cut->tract;

	cut->live = false;
	tract->stock->used -= cut->extent.bytes;
	sl_shelf_put(shelf, cut, mark);
	if (--tract->live == 0)
		sl_stock_count_idle(tract, 1);
}

struct sl_cut *sl_stock_live_cut(struct sl_block *block, CUdeviceptr ptr)
{
	struct sl_cut *cut = sl_tract_cut(sl_tract_of(block), ptr);

	return cut && cut->live ? cut : NULL;
}

void sl_stock_sort(struct sl_stock *stock)
{
	sl_list_foreach_safe (link, &stock->shelves) {
		struct sl_shelf *shelf = SL_LIST_ENTRY(link, struct sl_shelf, link);
		struct sl_shelf *any =
			shelf->stream ? sl_shelf_of(&stock->shelves, shelf->space, NULL)
				      : NULL;

		while (any && !sl_list_is_empty(&shelf->order)) {
			struct sl_cut *cut =
				SL_LIST_ENTRY(shelf->order.next, struct sl_cut, in_order);

			if (!sl_stream_has_reached(shelf->stream, cut->mark))
				break;
			(void)sl_shelf_take(cut, cut->extent.bytes);
			sl_shelf_put(any, cut, 0);
		}
		if (any && sl_list_is_empty(&shelf->order))
			sl_shelf_free(shelf);
	}
}

/* --- giving back ------------------------------------------------------------------------------ */

static void leave_books(struct sl_tract *tract)
{
	struct sl_stock *stock = tract->stock;

	if (tract->live == 0)
		sl_stock_count_idle(tract, -1);
	sl_pagemap_clear(tract->block.backing.base, tract->block.backing.bytes);
	sl_tract_clear(tract);
	sl_list_unlink(&tract->in_space);
	sl_list_unlink(&tract->in_stock);
	stock->reserved -= tract->block.backing.bytes;
	watch(stock);
}

/* Takes empty tracts of the space (NULL: of all), the last first, until keep_bytes are left. */
static void take_empty(struct sl_stock *stock, const struct sl_space *space,
	uint64_t keep_bytes, struct sl_link *out)
{
	for (struct sl_link *link = stock->tracts.prev, *next; link != &stock->tracts;
		link = next) {
		struct sl_tract *tract = SL_LIST_ENTRY(link, struct sl_tract, in_stock);
		uint64_t bytes = tract->block.backing.bytes;

		next = link->prev;
		if (stock->reserved < keep_bytes || stock->reserved - keep_bytes < bytes)
			continue;
		if ((space && tract->block.space != space) || !sl_tract_is_empty(tract))
			continue;
		leave_books(tract);
		tract->block.space->users++;
		sl_block_take(&tract->block);
		sl_list_push_tail(out, &tract->in_stock);
	}
}

void sl_stock_discard(struct sl_link *tracts)
{
	CUstreamCaptureMode mode = sl_capture_relax();

	sl_list_foreach_safe (link, tracts) {
		struct sl_tract *tract = SL_LIST_ENTRY(link, struct sl_tract, in_stock);
		struct sl_space *space = tract->block.space;

		sl_list_unlink(link);
		/* If the driver keeps it, a mover may have it in its list. */
		sl_control_enter();
		sl_supply_discard(space->gpu, &tract->block.backing);
		sl_books_lock();
		sl_block_let_go(&tract->block);
		sl_books_unlock();
		sl_control_leave();
		sl_tract_free(tract);
		sl_space_leave(space);
	}
	sl_capture_unrelax(mode);
}

void sl_stock_give_back(
	struct sl_stock *only, struct sl_space *space, const uint64_t *keep_bytes)
{
	struct sl_link out = SL_LIST_INIT(out);

	sl_memory_gives(true);
	sl_stream_look();
	sl_books_lock();
	sl_list_foreach_safe (link, &stocks) {
		struct sl_stock *stock = SL_LIST_ENTRY(link, struct sl_stock, link);

		if (only && stock != only)
			continue;
		sl_stock_sort(stock);
		take_empty(stock, space,
			keep_bytes ? *keep_bytes : stock->threshold_bytes, &out);
		free_if_over(stock);
	}
	sl_books_unlock();
	sl_stock_discard(&out);
	sl_memory_gives(false);
}

void sl_stock_synced(void)
{
	int saved_errno = errno;

	sl_stock_give_back(NULL, NULL, NULL);
	errno = saved_errno;
}

void sl_stock_trim(struct sl_stock *stock, uint64_t keep_bytes)
{
	sl_stock_give_back(stock, NULL, &keep_bytes);
}

bool sl_stock_is_due(const struct sl_space *space, bool everything)
{
	return space->everything.reached < space->everything.given ||
	       (everything && space->idle_tracts);
}

void sl_stock_flushed(struct sl_space *space, bool everything)
{
	static const uint64_t nothing;

	sl_stock_give_back(NULL, space, everything ? &nothing : NULL);
}

void sl_stock_take_all(struct sl_space *space, struct sl_link *tracts)
{
	sl_list_foreach_safe (link, &space->tracts) {
		struct sl_tract *tract = SL_LIST_ENTRY(link, struct sl_tract, in_space);

		for (size_t i = 0; i < tract->cuts.count; i++) {
			struct sl_cut *cut =
				SL_CONTAINER_OF(tract->cuts.at[i], struct sl_cut, extent);

			/* Also one that a thread is freeing. */
			tract->stock->used -= cut->shelf ? 0 : cut->extent.bytes;
		}
		leave_books(tract);
		space->users++;
		sl_list_push_tail(tracts, &tract->in_stock);
	}
	sl_list_foreach_safe (link, &stocks) {
		struct sl_stock *stock = SL_LIST_ENTRY(link, struct sl_stock, link);

		sl_list_foreach_safe (at, &stock->shelves) {
			struct sl_shelf *shelf = SL_LIST_ENTRY(at, struct sl_shelf, link);

			if (shelf->space == space)
				sl_shelf_free(shelf);
		}
		free_if_over(stock);
	}
}

/* --- for memory.c ----------------------------------------------------------------------------- */

CUresult sl_stock_take_back(struct sl_block *block, CUdeviceptr ptr)
{
	struct sl_space *space = block->space;
	struct sl_cut *cut = sl_stock_live_cut(block, ptr);
	struct sl_shelf *shelf;

	if (!cut || cut->extent.address != ptr)
		return CUDA_ERROR_INVALID_VALUE;
	shelf = sl_shelf_of(&cut->tract->stock->shelves, space, &space->everything);
	if (!shelf)
		return CUDA_ERROR_OUT_OF_MEMORY;
	sl_stock_put_back(shelf, cut, ++space->everything.given);
	return CUDA_SUCCESS;
}

bool sl_stock_describe(
	struct sl_block *block, CUdeviceptr ptr, struct sl_memory_info *out)
{
	const struct sl_cut *cut = sl_stock_live_cut(block, ptr);

	if (!cut || ptr - cut->extent.address >= cut->bytes)
		return false;
	out->base = cut->extent.address;
	out->bytes = cut->bytes;
	out->id = cut->id;
	out->sync_memops = cut->sync_memops;
	out->pool = cut->tract->stock->handle;
	return true;
}

void sl_stock_set_sync_memops(struct sl_block *block, CUdeviceptr ptr, bool on)
{
	struct sl_cut *cut = sl_stock_live_cut(block, ptr);

	if (cut)
		cut->sync_memops = on;
}

/* --- pools ------------------------------------------------------------------------------------ */

struct sl_stock *sl_stock_new(CUmemoryPool handle, CUdevice dev, uint64_t max_bytes)
{
	struct sl_stock *stock = calloc(1, sizeof(*stock));

	if (!stock)
		return NULL;
	stock->handle = handle;
	stock->dev = dev;
	stock->max_bytes = max_bytes;
	sl_list_init(&stock->tracts);
	sl_list_init(&stock->shelves);
	sl_books_lock();
	sl_list_push_tail(&stocks, &stock->link);
	sl_books_unlock();
	return stock;
}

void sl_stock_end(struct sl_stock *stock)
{
	static const uint64_t nothing;

	sl_books_lock();
	stock->gone = true;
	stock->threshold_bytes = 0;
	watch(stock);
	sl_books_unlock();
	sl_stock_give_back(stock, NULL, &nothing);
}

void sl_stock_keeps(struct sl_stock *stock, uint64_t threshold_bytes)
{
	sl_books_lock();
	stock->threshold_bytes = threshold_bytes;
	watch(stock);
	sl_books_unlock();
}

/* Where the stock's tracts begin. False: no host memory. */
static bool list_bases(struct sl_stock *stock, CUdeviceptr **out, size_t *count)
{
	size_t room = 0;

	*count = 0;
	sl_books_lock();
	sl_list_foreach (link, &stock->tracts)
		room++;
	*out = malloc((room + 1) * sizeof(**out));
	sl_list_foreach (link, &stock->tracts) {
		if (*out)
			(*out)[(*count)++] =
				SL_LIST_ENTRY(link, struct sl_tract, in_stock)
					->block.backing.base;
	}
	sl_books_unlock();
	return *out;
}

static void allow(struct sl_stock *stock, CUdevice dev, bool on)
{
	uint64_t bit = dev >= 0 && dev < 64 && dev != stock->dev ? 1ull << dev : 0;

	sl_books_lock();
	stock->allowed = on ? stock->allowed | bit : stock->allowed & ~bit;
	sl_books_unlock();
}

CUresult sl_stock_open(struct sl_stock *stock, CUdevice dev, bool on)
{
	CUresult r = CUDA_SUCCESS;
	CUdeviceptr *base;
	size_t count;

	if (dev == stock->dev)
		return r;
	/* New tracts first: what is listed afterwards is complete. */
	allow(stock, dev, on);
	if (!list_bases(stock, &base, &count))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++)
		r = sl_peer_turn(base[i], dev, on);
	free(base);
	if (r != CUDA_SUCCESS && on)
		(void)!sl_stock_open(stock, dev, false);
	return r;
}

void sl_stock_figures(struct sl_stock *stock, struct sl_stock_figures *out)
{
	sl_books_lock();
	*out = (struct sl_stock_figures){
		stock->used, stock->used_high, stock->reserved, stock->reserved_high};
	sl_books_unlock();
}

void sl_stock_reset_used(struct sl_stock *stock)
{
	sl_books_lock();
	stock->used_high = stock->used;
	sl_books_unlock();
}

void sl_stock_reset_reserved(struct sl_stock *stock)
{
	sl_books_lock();
	stock->reserved_high = stock->reserved;
	sl_books_unlock();
}

void sl_stock_forget(void)
{
	sl_list_init(&stocks);
	sl_stock_watched = 0;
}
