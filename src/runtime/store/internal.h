/*
 * internal - the store's files, under its lock, which store.c and pinning.c share
 */
#ifndef SL_RUNTIME_STORE_INTERNAL_H
#define SL_RUNTIME_STORE_INTERNAL_H

#include "base/clock.h"
#include "base/list.h"
#include "runtime/process/fd.h"
#include "runtime/store/host_copy.h"

/* Pinned at a time. A registration keeps the driver busy for 20 to 100 ms per GiB and more, and a
 * mover may have to wait for it. */
#define SL_STORE_PIECE (256 * SL_MIB)

struct sl_store_file {
	struct sl_link link;
	uint32_t number, flags;
	uint32_t near; /* a bit for each ordinal whose GPU is on its NUMA node */
	struct sl_fd fd;
	char *map;
	uint64_t bytes;
	uint32_t grains, free;       /* all grains, and unowned ones */
	struct sl_host_copy **owner; /* of each grain */
	CUcontext *pinned; /* of each piece: the context that pinned it, or NULL */
	uint32_t pieces;
	uint32_t checked; /* pieces that are pinned for sure, if they are marked so */
	/* The driver refused to pin it. Copies use the ring until the next try; the span doubles
	 * each time. */
	sl_ns refused_ns, due_ns;
	bool leaving; /* being given back: takes no new copies */
};

struct sl_store {
	struct sl_link files;
	bool moving;
	bool started;        /* the pinning thread */
	CUcontext pinning;   /* the thread is pinning in this context */
	uint64_t trim_bytes; /* requested by the last TRIM */
};

extern struct sl_store sl_store;

void sl_store_lock(void);
void sl_store_unlock(void);

/* Under the lock. */
void sl_store_give_locked(struct sl_host_copy *host);
/* There may be something to pin or to give back. Under the lock. */
void sl_store_wake(void);
/* The file is off the list, and no part of it is pinned. Not under the lock. */
void sl_store_close(struct sl_store_file *file);
/* In the child of a fork. */
void sl_store_pinning_forget(void);

#endif
