/*
 * memory - the program's device memory, as regions and slots
 *
 * What cuMemAlloc and cuMemFree mean here. From sl_options.region_min on an allocation is a
 * region with chunks of its own; below, a slot of a slab. Freed memory is quarantined until all
 * work of its context that could use it is complete. Thread-safe; blocks while the daemon makes
 * us wait; no lock is held meanwhile. Bytes.
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
	SL_MEMORY_DEAD,    /* ours, but nothing is allocated there (any more) */
};

/* Allocates for the current context. SL_MEMORY_FOREIGN: nothing happened, call the driver; else
 * *result is the program's. */
SL_MUST_CHECK int sl_memory_alloc(CUdeviceptr *out, size_t bytes, CUresult *result);

/* Frees what begins at ptr. may_block: wait for the context's work as cuMemFree does; else what
 * cannot go at once is left to the sweeper. Outcomes as above but DEAD. */
SL_MUST_CHECK int sl_memory_free(CUdeviceptr ptr, bool may_block, CUresult *result);

struct sl_memory_info {
	CUdeviceptr base; /* of the allocation */
	uint64_t bytes;   /* as asked */
	uint64_t id;      /* never reused */
	CUcontext ctx;
	CUdevice dev;
	CUdeviceptr mapping_base; /* of the slab or region around it */
	uint64_t mapping_bytes;
	bool sync_memops; /* as set by cuPointerSetAttribute */
	CUresult broken;  /* sticky error of its context, or CUDA_SUCCESS */
};

/* For what a process has opened as well: ids of a process are told apart, whoever made the
 * memory. */
uint64_t sl_memory_new_id(void);

/* What is allocated at ptr or around it. *out is set for SL_MEMORY_OURS only. */
SL_MUST_CHECK int sl_memory_find(CUdeviceptr ptr, struct sl_memory_info *out);

/* Remembers that attribute of what is allocated around ptr. */
void sl_memory_set_sync_memops(CUdeviceptr ptr, bool on);

/* Gives back what is quarantined and the empty slabs beyond a few (everything: all), after the
 * context's work is done, which may take as long as that work. The caller uses the space. A
 * sticky error of the context is returned. */
SL_MUST_CHECK CUresult sl_memory_flush(struct sl_space *space, bool everything);
/* sl_memory_flush of every space, left out where another thread is at it. */
void sl_memory_flush_all(bool everything);
/* Until what other threads' flushes have taken out is given back; not longer than some seconds. No
 * lock may be held. */
void sl_memory_await_flushes(void);

/* As sl_memory_flush of everything in all spaces of the GPU, when their work is known to be done:
 * waits for none. */
void sl_memory_flush_idle(struct sl_gpu *gpu);

/* Around a call that may end a context: from sl_memory_hold on no flush works in it, and one under
 * way has ended. hide: an allocation in a context that gets the same handle is none of this
 * one's. NULL if nothing was allocated there. End with one of the other two. */
struct sl_space *sl_memory_hold(CUcontext ctx, bool hide);
/* The context is gone: so is all its memory, live or not. */
void sl_memory_drop(struct sl_space *space);
/* The context is still there, and its memory as it was. */
void sl_memory_unhold(struct sl_space *space);

/* In the child of a fork. */
void sl_memory_forget(void);
void sl_memory_forget_flushes(void); /* by that one */

#endif
