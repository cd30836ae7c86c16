/*
 * memory - the program's device memory, as regions and slots
 *
 * This module implements cuMemAlloc and cuMemFree. An allocation of sl_options.region_min bytes or
 * more is a region with chunks of its own; a smaller one is a slot of a slab. Freed memory is
 * quarantined until all work of its context that could use it is complete. Thread-safe; blocks
 * while the daemon makes us wait; no lock is held meanwhile. Bytes.
 */
#ifndef SL_RUNTIME_MEMORY_MEMORY_H
#define SL_RUNTIME_MEMORY_MEMORY_H

#include "base/cuda_types.h"
#include "base/sl.h"
#include "runtime/memory/info.h"

struct sl_gpu;
struct sl_space;

/* Allocates for the current context. SL_MEMORY_FOREIGN: nothing happened, call the driver.
 * Otherwise *result is the program's result. */
SL_MUST_CHECK int sl_memory_alloc(CUdeviceptr *out, size_t bytes, CUresult *result);

/* Frees the allocation that begins at ptr. may_block: waits for the context's work as cuMemFree
 * does; otherwise the sweeper frees later what cannot go at once. Outcomes as above except DEAD. */
SL_MUST_CHECK int sl_memory_free(CUdeviceptr ptr, bool may_block, CUresult *result);

/* The allocation that contains ptr. *out is set for SL_MEMORY_OURS only. */
SL_MUST_CHECK int sl_memory_find(CUdeviceptr ptr, struct sl_memory_info *out);

/* Stores that attribute of the allocation that contains ptr. */
void sl_memory_set_sync_memops(CUdeviceptr ptr, bool on);

/* Gives back quarantined memory and empty slabs: all of them if `everything`, else all but a few.
 * Waits for the context's work, however long that takes. The caller has the space in use. Returns a
 * sticky error of the context. */
SL_MUST_CHECK CUresult sl_memory_flush(struct sl_space *space, bool everything);
/* sl_memory_flush of every space, except those that another thread is flushing. */
void sl_memory_flush_all(bool everything);
/* sl_memory_flush of everything in all spaces of the GPU whose work is known to be done: waits for
 * none. */
void sl_memory_flush_idle(struct sl_gpu *gpu);

/* Around a call that may end a context. sl_memory_hold waits for a running flush and blocks new
 * ones. hide: an allocation in a new context with the same handle gets another space. NULL: nothing
 * was allocated there. sl_memory_drop or sl_memory_unhold must follow. */
struct sl_space *sl_memory_hold(CUcontext ctx, bool hide);
/* The context is gone with all its memory, live or not. */
void sl_memory_drop(struct sl_space *space);
/* The context still exists; its memory is as before. */
void sl_memory_unhold(struct sl_space *space);

/* In the child of a fork. */
void sl_memory_forget(void);

#endif
