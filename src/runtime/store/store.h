/*
 * store - this process's host memory for evicted chunks
 *
 * Sealed files that the daemon makes and hands over (STORE), one after the other as more is needed:
 * each is mapped here once, and pinned piece by piece in the background, never while something is
 * being moved; until then copies go through a small pinned ring (copier.h). What a chunk has is a
 * list of places, mostly one. Nothing here can fault: a file that could be cut short, or that is
 * shorter than it was said to be, is given back unused. Lock of its own, below the session's and
 * above the books'. Bytes.
 */
#ifndef SL_RUNTIME_STORE_STORE_H
#define SL_RUNTIME_STORE_STORE_H

#include "base/cuda_types.h"
#include "base/sl.h"
#include "wire/wire.h"

/* What places are cut from; all chunks are multiples of it. */
#define SL_STORE_GRAIN (2 * SL_MIB)

struct sl_store_file;
struct sl_host_copy;
struct sl_place;

/* Takes places of so many bytes that nobody has, in few pieces, near the GPU of that ordinal as
 * long as there are any; the record has none before. Copies of what is resident give way. All or
 * nothing. False: there is not so much. */
SL_MUST_CHECK bool sl_store_take(
	uint64_t bytes, uint32_t ordinal, struct sl_host_copy *host);
/* Gives them back, and what they held is no longer valid. None: nothing. */
void sl_store_give(struct sl_host_copy *host);

/* They are never used again, and the record has none: something may still write to them. */
void sl_store_lose(struct sl_host_copy *host);

/* A stretch of a place that copies may treat as one. */
struct sl_run {
	char *at;
	uint64_t bytes;
	bool pinned; /* copy engines can use it as it is */
};
/* The one that begins at so many bytes into the place, no longer than the rest of it. */
struct sl_run sl_store_run(const struct sl_place *place, uint64_t offset);

/* Between these two nothing is pinned anew, and no copy is given up. */
void sl_store_begin(void);
void sl_store_end(void);

/* The context is about to go, or is gone: what was pinned in it is so no longer. Its space, if it
 * has one, is held (memory.h). */
void sl_store_drop_context(CUcontext ctx);

/* --- for the session: from the agent's thread, under its lock --- */

void sl_store_on_store(const struct sl_msg_store *msg, struct sl_wire_fds *fds);
/* Copies of resident chunks are given up; STORE_BACK follows, from another thread. */
void sl_store_on_trim(const struct sl_msg_trim *msg);
/* Says STORE_HELD for every file. */
void sl_store_report(void);
/* In the child of a fork: nothing is left. */
void sl_store_forget(void);

/* For tests. */
struct sl_store_counts {
	uint32_t files;
	uint64_t bytes, free_bytes, pinned_bytes;
};
struct sl_store_counts sl_store_count(void);

#endif
