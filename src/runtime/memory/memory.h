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

struct sl_gpu;
struct sl_space;

enum sl_memory_outcome {
	SL_MEMORY_OURS = 0,
	SL_MEMORY_FOREIGN, /* the driver's own affair */
	SL_MEMORY_DEAD,    /* ours, but not allocated (any more) */
};

/* Allocates for the current context. SL_MEMORY_FOREIGN: nothing happened, call the driver.
 * Otherwise *result is the program's result. */
SL_MUST_CHECK int sl_memory_alloc(CUdeviceptr *out, size_t bytes, CUresult *result);

/* Frees the allocation that begins at ptr. may_block: waits for the context's work as cuMemFree
 * does; otherwise the sweeper frees later what cannot go at once. Outcomes as above except DEAD. */
SL_MUST_CHECK int sl_memory_free(CUdeviceptr ptr, bool may_block, CUresult *result);

struct sl_memory_info {
	CUdeviceptr base; /* of the allocation */
	uint64_t bytes;   /* as asked */
	uint64_t id;      /* never reused */
	CUcontext ctx;
	CUdevice dev;
	CUdeviceptr mapping_base; /* of the slab or region around it */
	uint64_t mapping_bytes;
	bool sync_memops; /* of cuPointerSetAttribute */
	CUresult broken;  /* sticky error of its context, or CUDA_SUCCESS */
};

/* A number for an allocation, or for memory opened from another process: unique in this process. */
uint64_t sl_memory_new_id(void);

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
/* Waits until other threads' flushes have given back what they took; a few seconds at most. No lock
 * may be held. */
void sl_memory_await_flushes(void);

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
void sl_memory_forget_flushes(void); /* called by it */

#endif
