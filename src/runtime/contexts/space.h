/*
 * space - what one CUDA context has allocated through us
 *
 * An allocation finds the space by the current context; the first allocation in a context makes its
 * space. The books' lock (books.h) guards all of it. A space is freed when its context is gone and
 * no thread uses it.
 */
#ifndef SL_RUNTIME_CONTEXTS_SPACE_H
#define SL_RUNTIME_CONTEXTS_SPACE_H

#include "base/cuda_types.h"
#include "base/list.h"
#include "runtime/contexts/books.h"
#include "runtime/contexts/stream.h"
#include "runtime/session/gpu.h"

#include <pthread.h>

/* Classes of small sizes: slab.h. */
#define SL_SLAB_CLASSES 44

struct sl_space {
	struct sl_link link;
	CUcontext ctx;
	CUdevice dev;
	struct sl_gpu *gpu;
	uint32_t users;         /* threads that hold the pointer without the lock */
	bool dead;              /* its context is gone */
	bool ending;            /* its context is being destroyed: no flush begins */
	bool detached;          /* no longer found by its context */
	CUresult broken;        /* its sticky error, or CUDA_SUCCESS; atomic */
	bool flushing;          /* a thread is between taking a batch and settling it */
	pthread_t flusher;      /* that thread; valid while flushing */
	uint32_t flushes;       /* futex: counts flushes that have ended */
	uint64_t round;         /* the last sl_memory_flush_all that visited the space */
	struct sl_link regions; /* live ones */
	struct sl_link leaving; /* freed regions, still mapped */
	struct sl_link slabs;
	struct sl_link in_hands;   /* blocks that a thread is working on: block.h */
	struct sl_link with_freed; /* slabs with freed slots in quarantine */
	struct sl_link with_room[SL_SLAB_CLASSES];
	uint64_t freed_bytes;  /* of slots in quarantine */
	uint32_t idle_slabs;   /* slabs without a live slot */
	uint32_t empty_slabs;  /* of these, slabs without a quarantined slot either */
	struct sl_link tracts; /* of pools: tract.h */
	uint32_t idle_tracts;  /* tracts without a live cut */
	struct sl_stream everything; /* marks that only a wait for all work reaches */
};

enum sl_space_outcome {
	SL_SPACE_OK = 0,
	/* The device is not the workload's, or cannot map memory: leave it alone */
	SL_SPACE_FOREIGN,
	SL_SPACE_FAILED, /* *result has the error */
};

/* The current context's space, made if needed. On OK the caller uses it until sl_space_leave. */
SL_MUST_CHECK int sl_space_enter(struct sl_space **out, CUresult *result);
void sl_space_leave(struct sl_space *space);
/* The space of ctx that is not detached, or NULL. Under the lock. */
struct sl_space *sl_space_find(CUcontext ctx);
/* The same, without the lock; the caller uses it until sl_space_leave. */
struct sl_space *sl_space_of(CUcontext ctx);
/* All spaces, under the lock. */
extern struct sl_link sl_spaces;
/* There were spaces on two or more GPUs; atomic. */
extern uint32_t sl_space_several;
/* The space holds freed memory or empty slabs that have not gone back. Under the lock. */
bool sl_space_hoards(const struct sl_space *space);
/* Takes the space off the list; it is freed when its last user leaves. Under the lock. */
void sl_space_kill(struct sl_space *space);
/* In the child of a fork. */
void sl_space_forget(void);

#endif
