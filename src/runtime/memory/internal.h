/*
 * internal - a stock's record, which stock.c and stock_alloc.c share
 *
 * Under the books' lock, unless stated otherwise.
 */
#ifndef SL_RUNTIME_MEMORY_INTERNAL_H
#define SL_RUNTIME_MEMORY_INTERNAL_H

#include "runtime/memory/stock.h"
#include "runtime/memory/tract.h"

struct sl_stock {
	struct sl_link link;
	CUmemoryPool handle;
	CUdevice dev;
	bool gone;    /* the program destroyed the pool */
	bool watched; /* counted in sl_stock_watched */
	uint64_t max_bytes, threshold_bytes;
	uint64_t promised; /* tracts on their way */
	uint64_t used, used_high, reserved, reserved_high;
	uint64_t allowed; /* other devices with access, by ordinal */
	uint32_t idle;    /* tracts without a live cut */
	struct sl_link tracts;
	struct sl_link shelves;
};

/* A tract has no live cut any more (1), or one again (-1). */
void sl_stock_count_idle(struct sl_tract *tract, int by);
/* The live cut around ptr, or NULL. */
struct sl_cut *sl_stock_live_cut(struct sl_block *block, CUdeviceptr ptr);
/* A live cut goes to a shelf. */
void sl_stock_put_back(struct sl_shelf *shelf, struct sl_cut *cut, uint64_t mark);
/* Moves what streams have got past to where any stream finds it. */
void sl_stock_sort(struct sl_stock *stock);
/* Gives back what exceeds keep_bytes (NULL: its threshold), of one stock or all, in one space or
 * all. No lock. */
void sl_stock_give_back(
	struct sl_stock *only, struct sl_space *space, const uint64_t *keep_bytes);

#endif
