/*
 * hostmem - the thread that makes, empties and closes the files of the host pool
 *
 * A file is a sealed memfd whose pages are all there: faulted by this thread, so that the daemon's
 * control group pays for them, near the GPU they are for, and huge ones where the administrator set
 * some aside. Making a GiB takes a tenth of a second, giving one back as well, and both are never
 * done in the loop. One thread, in order of asking. All functions but the thread's own are the
 * loop's and do not block.
 */
#ifndef SL_DAEMON_SWAP_HOSTMEM_H
#define SL_DAEMON_SWAP_HOSTMEM_H

#include "daemon/core/host_budget.h"

/* Most bytes of one file: more than that pinned at once is a bad neighbour. */
#define SL_HOSTMEM_FILE_MAX (1 * SL_GIB)
/* Sizes are multiples of it. */
#define SL_HOSTMEM_GRAIN (2 * SL_MIB)
/* Seals that a file has, and two that it must not have: it could then not be written, or
 * emptied. */
#define SL_HOSTMEM_SEALS     (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define SL_HOSTMEM_SEALS_NOT (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)

struct sl_hostmem;

struct sl_hostmem_answer {
	struct sl_hostmem_answer *next; /* the thread's own */
	bool made;                      /* answers a make; otherwise only room is news */
	uint64_t client;                /* as it was asked */
	uint64_t bytes;
	int fd;      /* the receiver's; -1 if error */
	int error;   /* 0 or negative errno; -ENOSPC: the host has too little */
	bool huge;   /* of huge pages */
	bool forget; /* the thread's own: it was cancelled */
	int kind;    /* the thread's own */
	int node;    /* as it was asked */
	struct sl_host_budget room; /* after it; all 0 if it could not be read */
};

/* Starts the thread. root: as in core/host_budget.h; must outlive it. 0 or negative errno. */
SL_MUST_CHECK int sl_hostmem_new(const char *root, struct sl_hostmem **out);
/* Ends it, and what it is making. NULL is fine; returns NULL. */
struct sl_hostmem *sl_hostmem_free(struct sl_hostmem *hostmem);
/* Polls readable while there are answers. */
int sl_hostmem_fd(const struct sl_hostmem *hostmem);
/* Makes a file of bytes (at most SL_HOSTMEM_FILE_MAX, a multiple of the grain) for the client, of
 * that NUMA node's memory as long as it has any (-1: of any). Answered once, unless cancelled.
 * False without memory. */
SL_MUST_CHECK bool sl_hostmem_make(
	struct sl_hostmem *hostmem, uint64_t client, uint64_t bytes, int node);
/* What is not made yet for this client is not needed any more, and not answered. */
void sl_hostmem_cancel(struct sl_hostmem *hostmem, uint64_t client);
/* Empties and closes a file (takes fd). Whoever still maps it finds zeros. Answered, to tell the
 * room. */
void sl_hostmem_drop(struct sl_hostmem *hostmem, int fd, uint64_t bytes);
/* Only looks how much room there is. */
void sl_hostmem_look(struct sl_hostmem *hostmem);
/* The oldest answer, or NULL. */
struct sl_hostmem_answer *sl_hostmem_take(struct sl_hostmem *hostmem);
/* Closes a descriptor that is left in it. NULL is fine; returns NULL. */
struct sl_hostmem_answer *sl_hostmem_answer_free(struct sl_hostmem_answer *answer);

#endif
