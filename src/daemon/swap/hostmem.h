/*
 * hostmem - the thread that makes, empties and closes the files of the host pool
 *
 * A file is a sealed memfd with all its pages allocated. The thread allocates them itself: so they
 * are charged to the daemon's control group, lie near the GPU that they serve, and are huge pages
 * where the administrator set some aside. The loop neither makes nor frees files, because a GiB
 * takes a tenth of a second. One thread serves the requests in order. All functions but the
 * thread's own are the loop's and do not block.
 */
#ifndef SL_DAEMON_SWAP_HOSTMEM_H
#define SL_DAEMON_SWAP_HOSTMEM_H

#include "daemon/core/host_budget.h"

/* Most bytes of one file: pinning more at once burdens the machine. */
#define SL_HOSTMEM_FILE_MAX (1 * SL_GIB)
/* Sizes are multiples of it. */
#define SL_HOSTMEM_GRAIN (2 * SL_MIB)
/* Seals that a file has, and two that it must not have: they would keep us from writing or emptying
 * it. */
#define SL_HOSTMEM_SEALS     (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define SL_HOSTMEM_SEALS_NOT (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)

struct sl_hostmem;

struct sl_hostmem_answer {
	struct sl_hostmem_answer *next; /* the thread's own */
	bool made;                      /* answers MAKE; otherwise only `room` is news */
	uint64_t client;                /* as in the request */
	uint64_t bytes;
	int fd;      /* the receiver's; -1 if error */
	int error;   /* 0 or negative errno; -ENOSPC: the host has too little */
	bool huge;   /* of huge pages */
	bool forget; /* the thread's own: the request was cancelled */
	int kind;    /* the thread's own */
	int node;    /* as in the request */
	struct sl_host_budget room; /* afterwards; all 0 if it could not be read */
};

/* Starts the thread. root: as in core/host_budget.h; must outlive the thread. 0 or negative
 * errno. */
SL_MUST_CHECK int sl_hostmem_new(const char *root, struct sl_hostmem **out);
/* Ends the thread and the file that it is making. NULL is fine; returns NULL. */
struct sl_hostmem *sl_hostmem_free(struct sl_hostmem *hostmem);
/* Polls readable while there are answers. */
int sl_hostmem_fd(const struct sl_hostmem *hostmem);
/* Makes a file of bytes (at most SL_HOSTMEM_FILE_MAX, a multiple of the grain) for the client. Its
 * pages come from that NUMA node while the node has some (-1: from any). Answered once, unless
 * cancelled. False: no memory for the request. */
SL_MUST_CHECK bool sl_hostmem_make(
	struct sl_hostmem *hostmem, uint64_t client, uint64_t bytes, int node);
/* Drops this client's requests for files that are not made yet; they get no answer. */
void sl_hostmem_cancel(struct sl_hostmem *hostmem, uint64_t client);
/* Empties and closes a file (takes fd). A client that still maps it finds zeros. The answer tells
 * how much room there is. */
void sl_hostmem_drop(struct sl_hostmem *hostmem, int fd, uint64_t bytes);
/* Only measures how much room there is. */
void sl_hostmem_look(struct sl_hostmem *hostmem);
/* The oldest answer, or NULL. */
struct sl_hostmem_answer *sl_hostmem_take(struct sl_hostmem *hostmem);
/* Closes the descriptor if it was not taken. NULL is fine; returns NULL. */
struct sl_hostmem_answer *sl_hostmem_answer_free(struct sl_hostmem_answer *answer);

#endif
