/*
 * stock_alloc - stream-ordered allocation and free; see stock.h
 *
 * Where an allocation looks, in this order: the cuts of its own stream and those that any stream
 * may use; those that other streams have got past since; those of other streams, with a wait; a new
 * tract.
 */
#include "runtime/contexts/capture.h"
#include "runtime/contexts/space.h"
#include "runtime/memory/internal.h"
#include "runtime/memory/pagemap.h"
#include "runtime/memory/peer.h"
#include "runtime/memory/supply.h"
#include "runtime/real/real.h"
#include "runtime/session/device.h"

/* Pools of drivers so far grow by such steps. */
#define STEP_BYTES (32 * SL_MIB)
/* More than any GPU has. */
#define BYTES_MAX (1ull << 46)

/* --- allocating ------------------------------------------------------------------------------- */

/* One allocation on its way. */
struct want {
	struct sl_stock *stock;
	struct sl_space *space;
	struct sl_stream *stream;
	uint64_t bytes, asked_bytes, id;
};

typedef CUresult obtain_fn(
	struct sl_space *space, uint64_t bytes, struct sl_backing *out);

/* A cut has left its shelf for the program. */
static CUdeviceptr hand_out(struct sl_cut *cut, uint64_t bytes, uint64_t id)
{
	struct sl_tract *tract = cut->tract;
	struct sl_stock *stock = tract->stock;

	cut->live = true;
	cut->bytes = bytes;
	cut->id = id;
	cut->sync_memops = false;
	if (tract->live++ == 0)
		sl_stock_count_idle(tract, -1);
	stock->used += cut->extent.bytes;
	stock->used_high = sl_max_u64(stock->used_high, stock->used);
	return cut->extent.address;
}

static CUdeviceptr take_cut(const struct want *want, struct sl_cut *cut)
{
	return hand_out(sl_shelf_take(cut, want->bytes), want->asked_bytes, want->id);
}

static struct sl_cut *best_on(const struct want *want, struct sl_stream *stream)
{
	struct sl_shelf *shelf =
		sl_shelf_find(&want->stock->shelves, want->space, stream);

	return shelf ? sl_shelf_best(shelf, want->bytes) : NULL;
}

/* Under the lock: what this stream may have now. 0: nothing. */
static CUdeviceptr take_own(const struct want *want)
{
	struct sl_cut *own = best_on(want, want->stream), *any = best_on(want, NULL);

	if (own && any)
		own = any->extent.bytes < own->extent.bytes ? any : own;
	else
		own = own ? own : any;
	return own ? take_cut(want, own) : 0;
}

/* Under the lock: neighbours, of which one is the stream's and one is free for any. */
static CUdeviceptr take_gathered(const struct want *want)
{
	struct sl_link *shelves = &want->stock->shelves;
	struct sl_shelf *own = sl_shelf_find(shelves, want->space, want->stream);
	struct sl_shelf *any = sl_shelf_find(shelves, want->space, NULL);
	struct sl_cut *cut;

	sl_list_foreach (link, &want->stock->tracts) {
		struct sl_tract *tract = SL_LIST_ENTRY(link, struct sl_tract, in_stock);

		if (!own || !any || tract->block.space != want->space)
			continue;
		cut = sl_tract_gather(tract, any, own, want->bytes);
		if (cut)
			return take_cut(want, cut);
	}
	return 0;
}

static bool allows(const struct sl_stock *stock, CUmemPool_attribute attribute)
{
	int value = 0;

	return sl_real.cuMemPoolGetAttribute(stock->handle, attribute, &value) ==
		       CUDA_SUCCESS &&
	       value;
}

/* What other streams have got past by now. 0: nothing. */
static CUdeviceptr take_over(const struct want *want)
{
	bool may = allows(want->stock, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC);
	CUdeviceptr at;

	if (may)
		sl_stream_look();
	sl_books_lock();
	if (may)
		sl_stock_sort(want->stock);
	at = take_own(want);
	if (!at)
		at = take_gathered(want);
	sl_books_unlock();
	return at;
}

/* Under the lock: the best cut of another stream that one can wait for. */
static struct sl_cut *best_of_others(const struct want *want)
{
	struct sl_cut *best = NULL, *cut;

	sl_list_foreach (link, &want->stock->shelves) {
		struct sl_shelf *shelf = SL_LIST_ENTRY(link, struct sl_shelf, link);

		if (shelf->space != want->space || !shelf->stream ||
			shelf->stream == want->stream ||
			shelf->stream == &want->space->everything)
			continue;
		cut = sl_shelf_best(shelf, want->bytes);
		if (cut && (!best || cut->extent.bytes < best->extent.bytes))
			best = cut;
	}
	return best;
}

/* Under the lock. Without host memory for a shelf the cut waits for the end of its space. */
static void return_cut(
	struct sl_space *space, CUdeviceptr at, struct sl_stream *stream, uint64_t mark)
{
	struct sl_cut *cut = sl_stock_live_cut(sl_pagemap_get(at), at);
	struct sl_shelf *shelf = sl_shelf_of(&cut->tract->stock->shelves, space, stream);

	if (shelf)
		sl_stock_put_back(shelf, cut, mark);
	else
		cut->live = false;
}

/* What another stream freed, after a wait for that. 0: nothing. */
static CUdeviceptr take_behind(const struct want *want)
{
	struct sl_stream *other;
	struct sl_cut *cut;
	uint64_t mark;
	CUdeviceptr at;
	bool waits;

	if (!allows(want->stock, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES))
		return 0;
	sl_books_lock();
	cut = best_of_others(want);
	if (!cut) {
		sl_books_unlock();
		return 0;
	}
	other = cut->shelf->stream;
	other->users++;
	mark = cut->mark;
	at = take_cut(want, cut);
	sl_books_unlock();
	waits = sl_stream_wait(want->stream, other, mark);
	sl_books_lock();
	if (!waits && !want->space->dead)
		return_cut(want->space, at, other, mark);
	sl_stream_let_go(other);
	sl_books_unlock();
	return waits ? at : 0;
}

/* --- growing ---------------------------------------------------------------------------------- */

static bool promise(struct sl_stock *stock, uint64_t bytes)
{
	bool fits;

	sl_books_lock();
	/* A pool has whole grains, however small its maximum. */
	fits = !stock->max_bytes ||
	       stock->reserved + stock->promised + bytes <=
		       sl_round_up(stock->max_bytes, SL_DEVICE_GRAIN);
	stock->promised += fits ? bytes : 0;
	sl_books_unlock();
	return fits;
}

/* Under the lock: enters a new tract and takes the allocation from it. */
static CUresult enter_tract(
	const struct want *want, struct sl_tract *tract, CUdeviceptr *at)
{
	struct sl_stock *stock = want->stock;
	struct sl_backing *backing = &tract->block.backing;
	struct sl_shelf *any;
	struct sl_cut *cut;

	if (want->space->dead)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	any = sl_shelf_of(&stock->shelves, want->space, NULL);
	if (!any || !sl_pagemap_set(backing->base, backing->bytes, &tract->block))
		return CUDA_ERROR_OUT_OF_MEMORY;
	sl_list_push_tail(&want->space->tracts, &tract->in_space);
	sl_list_push_tail(&stock->tracts, &tract->in_stock);
	stock->reserved += backing->bytes;
	stock->reserved_high = sl_max_u64(stock->reserved_high, stock->reserved);
	sl_stock_count_idle(tract, 1);
	cut = sl_tract_whole(tract);
	sl_shelf_put(any, cut, 0);
	*at = take_cut(want, cut);
	return CUDA_SUCCESS;
}

/* Devices that may use the pool's memory. */
static uint64_t allowed(struct sl_stock *stock)
{
	uint64_t mask;

	sl_books_lock();
	mask = stock->allowed;
	sl_books_unlock();
	return mask;
}

static CUresult fill_tract(const struct want *want, struct sl_tract *tract,
	uint64_t bytes, obtain_fn *obtain, CUdeviceptr *at)
{
	struct sl_backing *backing = &tract->block.backing;
	uint64_t mask = allowed(want->stock);
	CUresult r = obtain(want->space, bytes, backing);

	if (r == CUDA_SUCCESS)
		r = sl_peer_admit_to(want->space, backing, mask);
	if (r != CUDA_SUCCESS)
		return r;
	sl_books_lock();
	r = enter_tract(want, tract, at);
	sl_books_unlock();
	if (r != CUDA_SUCCESS) {
		sl_supply_discard(want->space->gpu, backing);
		return r;
	}
	/* Access that was given meanwhile. */
	sl_peer_open_to(*at, allowed(want->stock) & ~mask);
	return r;
}

static CUresult new_tract(
	const struct want *want, uint64_t bytes, obtain_fn *obtain, CUdeviceptr *at)
{
	struct sl_stock *stock = want->stock;
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;
	struct sl_tract *tract;

	if (!promise(stock, bytes))
		return r;
	tract = sl_tract_new(stock, want->space);
	if (tract)
		r = fill_tract(want, tract, bytes, obtain, at);
	if (tract && r != CUDA_SUCCESS)
		sl_tract_free(tract);
	sl_books_lock();
	stock->promised -= bytes;
	sl_books_unlock();
	return r;
}

/* More than is needed only while it is free: no other workload gives anything up for that. */
static CUresult grow(const struct want *want, CUdeviceptr *at)
{
	uint64_t usual = sl_round_up(want->bytes, STEP_BYTES);
	uint64_t least = sl_round_up(want->bytes, SL_DEVICE_GRAIN);
	static const uint64_t nothing;
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (least < usual)
		r = new_tract(want, usual, sl_supply_obtain_now, at);
	if (r == CUDA_ERROR_OUT_OF_MEMORY)
		r = new_tract(want, least, sl_supply_obtain, at);
	/* Within its own limit a pool makes room by itself. */
	if (r == CUDA_ERROR_OUT_OF_MEMORY && want->stock->max_bytes) {
		sl_stock_give_back(want->stock, NULL, &nothing);
		r = new_tract(want, least, sl_supply_obtain, at);
	}
	return r;
}

/* --- what programs call ----------------------------------------------------------------------- */

static CUresult take(struct want *want, CUdeviceptr *at)
{
	CUstreamCaptureMode mode;
	CUresult r = CUDA_SUCCESS;

	if (want->bytes > BYTES_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	sl_books_lock();
	*at = take_own(want);
	sl_books_unlock();
	if (sl_likely(*at))
		return r;
	*at = take_over(want);
	if (!*at)
		*at = take_behind(want);
	if (*at)
		return r;
	mode = sl_capture_relax();
	r = grow(want, at);
	sl_capture_unrelax(mode);
	return r;
}

/* The space of the stream's context. Outcomes of sl_space_enter. */
static int enter_space(
	struct sl_stock *stock, CUcontext ctx, struct sl_space **out, CUresult *result)
{
	CUcontext current = NULL;
	int r = SL_SPACE_FOREIGN;
	bool push;

	/* Without a current context the driver refuses. */
	if (sl_real.cuCtxGetCurrent(&current) != CUDA_SUCCESS || !current)
		return r;
	push = current != ctx;
	if (push && sl_real.cuCtxPushCurrent_v2(ctx) != CUDA_SUCCESS)
		return r;
	r = sl_space_enter(out, result);
	if (push)
		(void)sl_real.cuCtxPopCurrent_v2(&current);
	if (r == SL_SPACE_OK && (*out)->dev != stock->dev) {
		sl_space_leave(*out);
		return SL_SPACE_FOREIGN;
	}
	return r;
}

int sl_stock_alloc(struct sl_stock *stock, CUdeviceptr *out, uint64_t bytes,
	CUstream stream, bool per_thread, CUresult *result)
{
	struct want want = {.stock = stock, .asked_bytes = bytes};
	CUdeviceptr at = 0;
	int r;

	*result = sl_stream_enter(stream, per_thread, &want.stream);
	if (*result != CUDA_SUCCESS)
		return SL_MEMORY_OURS;
	r = enter_space(stock, want.stream->ctx, &want.space, result);
	if (r == SL_SPACE_OK) {
		want.bytes =
			bytes > BYTES_MAX ? UINT64_MAX : sl_round_up(bytes, SL_CUT_GRAIN);
		want.id = sl_memory_new_id();
		*result = take(&want, &at);
		sl_space_leave(want.space);
	}
	sl_stream_leave(want.stream);
	if (r == SL_SPACE_OK && *result == CUDA_SUCCESS)
		*out = at;
	return r == SL_SPACE_FOREIGN ? SL_MEMORY_FOREIGN : SL_MEMORY_OURS;
}

/* Under the lock: the live allocation that begins at ptr, with its space in use. */
static CUresult begin_free(CUdeviceptr ptr, struct sl_cut **cut)
{
	struct sl_block *block = sl_pagemap_get(ptr);
	CUresult r;

	*cut = block && block->kind == SL_BLOCK_TRACT ? sl_stock_live_cut(block, ptr)
						      : NULL;
	if (!*cut || (*cut)->extent.address != ptr)
		return CUDA_ERROR_INVALID_VALUE;
	r = __atomic_load_n(&block->space->broken, __ATOMIC_RELAXED);
	if (r != CUDA_SUCCESS)
		return r;
	(*cut)->live = false;
	block->space->users++;
	return r;
}

static CUresult free_in(struct sl_stream *stream, CUdeviceptr ptr)
{
	struct sl_space *space;
	struct sl_shelf *shelf = NULL;
	struct sl_cut *cut;
	uint64_t mark = 0;
	CUresult r;

	sl_books_lock();
	r = begin_free(ptr, &cut);
	space = r == CUDA_SUCCESS ? cut->tract->block.space : NULL;
	sl_books_unlock();
	if (!space)
		return r;
	r = sl_stream_mark(stream, &mark);
	sl_books_lock();
	if (r == CUDA_SUCCESS && !space->dead) {
		shelf = sl_shelf_of(&cut->tract->stock->shelves, space, stream);
		r = shelf ? r : CUDA_ERROR_OUT_OF_MEMORY;
	}
	/* In a dead space the cut is gone. */
	if (shelf)
		sl_stock_put_back(shelf, cut, mark);
	else if (!space->dead)
		cut->live = true;
	sl_books_unlock();
	sl_space_leave(space);
	return r;
}

int sl_stock_free(CUdeviceptr ptr, CUstream stream, bool per_thread, CUresult *result)
{
	struct sl_stream *entered;
	struct sl_block *block;
	CUcontext ctx = NULL;
	bool ours;

	sl_books_lock();
	block = sl_pagemap_get(ptr);
	ours = block && block->kind == SL_BLOCK_TRACT;
	sl_books_unlock();
	if (!ours)
		return SL_MEMORY_FOREIGN;
	*result = sl_real.cuCtxGetCurrent(&ctx);
	if (*result == CUDA_SUCCESS && !ctx)
		*result = CUDA_ERROR_INVALID_CONTEXT;
	if (*result == CUDA_SUCCESS)
		*result = sl_stream_enter(stream, per_thread, &entered);
	if (*result == CUDA_SUCCESS) {
		*result = free_in(entered, ptr);
		sl_stream_leave(entered);
	}
	return SL_MEMORY_OURS;
}
