/*
 * stock - the memory behind a pool of the program
 *
 * A pool of the driver keeps its handle, its arguments and its simple attributes; its bytes are
 * ours, so that they can be evicted, restored and moved like those of cuMemAlloc. A stock takes
 * tracts (tract.h) of 32 MiB or more with the daemon's grant and cuts them; an allocation that its
 * reserve serves costs no message and no driver call. Tracts belong to the space of the allocating
 * stream's context, and go with it.
 *
 * Order. Memory freed in a stream may be used at once by later allocations there. Others may use it
 * when the stream has got there, which a synchronisation or an allocation that needs it finds out;
 * or at once with a wait of theirs for the free. Both are subject to the pool's attributes. Events
 * of the program that order two streams are not followed. A free never waits.
 *
 * Thread-safe; no lock may be held. An allocation may wait for the daemon. Bytes.
 */
#ifndef SL_RUNTIME_MEMORY_STOCK_H
#define SL_RUNTIME_MEMORY_STOCK_H

#include "base/cuda_types.h"
#include "base/list.h"
#include "runtime/memory/info.h"

struct sl_block;
struct sl_space;
struct sl_stock;

/* For that pool of the device. max_bytes: the pool never has more; 0: no limit. NULL: no host
 * memory. */
struct sl_stock *sl_stock_new(CUmemoryPool handle, CUdevice dev, uint64_t max_bytes);
/* The program destroyed the pool: its memory ends with the last free. */
void sl_stock_end(struct sl_stock *stock);

/* SL_MEMORY_FOREIGN: nothing happened, call the driver. Otherwise *result is the program's, with
 * *out on success. bytes > 0. */
SL_MUST_CHECK int sl_stock_alloc(struct sl_stock *stock, CUdeviceptr *out, uint64_t bytes,
	CUstream stream, bool per_thread, CUresult *result);
/* Frees in the order of the stream. SL_MEMORY_FOREIGN: not memory of a stock. */
SL_MUST_CHECK int sl_stock_free(
	CUdeviceptr ptr, CUstream stream, bool per_thread, CUresult *result);

/* So much unused memory stays at a synchronisation. */
void sl_stock_keeps(struct sl_stock *stock, uint64_t threshold_bytes);
/* Gives unused memory back until keep_bytes are left. */
void sl_stock_trim(struct sl_stock *stock, uint64_t keep_bytes);
/* Another device may use all memory of the pool from now on, or no longer. */
SL_MUST_CHECK CUresult sl_stock_open(struct sl_stock *stock, CUdevice dev, bool on);

struct sl_stock_figures {
	uint64_t used, used_high, reserved, reserved_high;
};
void sl_stock_figures(struct sl_stock *stock, struct sl_stock_figures *out);
/* The highest figure is what it is now. */
void sl_stock_reset_used(struct sl_stock *stock);
void sl_stock_reset_reserved(struct sl_stock *stock);

/* Stocks that give something back at the next synchronisation; atomic. */
extern uint32_t sl_stock_watched;
/* After the driver has synchronised. */
void sl_stock_synced(void) SL_COLD;

/* --- for memory.c and flush.c ----------------------------------------------------------------- */

/* Under the books' lock: the live allocation around ptr. False: there is none. */
bool sl_stock_describe(
	struct sl_block *block, CUdeviceptr ptr, struct sl_memory_info *out);
void sl_stock_set_sync_memops(struct sl_block *block, CUdeviceptr ptr, bool on);
/* Under the books' lock: takes what begins at ptr from the program; it is reused after the next
 * flush of its space. CUDA_ERROR_INVALID_VALUE: nothing live begins there. Without host memory
 * CUDA_ERROR_OUT_OF_MEMORY; it stays the program's. */
SL_MUST_CHECK CUresult sl_stock_take_back(struct sl_block *block, CUdeviceptr ptr);
/* Under the books' lock: would a flush find work there? */
bool sl_stock_is_due(const struct sl_space *space, bool everything);
/* All work of the space is done up to this mark of space->everything. Gives back unused memory:
 * everything, or what a synchronisation does. */
void sl_stock_flushed(struct sl_space *space, bool everything);
/* Under the books' lock: the space is dead; its tracts go to the list. */
void sl_stock_take_all(struct sl_space *space, struct sl_link *tracts);
/* Gives the memory of these tracts back to the driver, also while another thread captures. */
void sl_stock_discard(struct sl_link *tracts);
/* In the child of a fork. */
void sl_stock_forget(void);

#endif
