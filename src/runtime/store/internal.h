/*
 * internal - the store's files, under its lock, which store.c and pinning.c share
 */
#ifndef SL_RUNTIME_STORE_INTERNAL_H
#define SL_RUNTIME_STORE_INTERNAL_H

#include "base/clock.h"
#include "base/list.h"
#include "runtime/process/fd.h"
#include "runtime/store/host_copy.h"

/* Pinned at a time. A registration keeps the driver busy for 20 to 100 ms a GiB and more, which is
 * what a mover may find itself behind. */
#define SL_STORE_PIECE (256 * SL_MIB)

struct sl_store_file {
	struct sl_link link;
	uint32_t number, flags;
	uint32_t near; /* a bit for each ordinal whose GPU is on its NUMA node */
	struct sl_fd fd;
	char *map;
	uint64_t bytes;
	uint32_t grains, free;       /* in all, and nobody's */
	struct sl_host_copy **owner; /* of each grain */
	CUcontext *pinned; /* of each piece: in which context; NULL: it is not */
	uint32_t pieces;
	/* The driver refused to pin it: the ring will do until it is asked again, twice as late
	 * each time. */
	sl_ns refused_ns, due_ns;
	bool leaving; /* it is being given back: nothing new comes into it */
};

struct sl_store {
	struct sl_link files;
	bool moving;
	bool started;        /* the thread */
	CUcontext pinning;   /* the thread pins something in it */
	uint64_t trim_bytes; /* wanted back, by the last TRIM */
};

extern struct sl_store sl_store;

void sl_store_lock(void);
void sl_store_unlock(void);

/* Under the lock. */
void sl_store_give_locked(struct sl_host_copy *host);
/* There may be something to pin or to give back. Under the lock. */
void sl_store_wake(void);
/* The file is in no list any more, and nothing of it is pinned. Not under the lock. */
void sl_store_close(struct sl_store_file *file);
/* In the child of a fork. */
void sl_store_pinning_forget(void);

#endif
