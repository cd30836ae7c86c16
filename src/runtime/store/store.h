/*
 * store - this process's host memory for evicted chunks
 *
 * The daemon makes sealed files and hands them over (STORE), one after the other as more is needed.
 * Each is mapped here once and pinned piece by piece in the background, never while something is
 * being moved. Until then copies go through a small pinned ring (copier.h). A chunk has a list of
 * places, mostly one. Accesses cannot fault: a file that could be cut short, or is shorter than
 * announced, is given back unused. Its own lock is below the session's and above the books'. Bytes.
 */
#ifndef SL_RUNTIME_STORE_STORE_H
#define SL_RUNTIME_STORE_STORE_H

#include "base/cuda_types.h"
#include "base/sl.h"
#include "wire/wire.h"

/* Unit of places; the size of every chunk is a multiple. */
#define SL_STORE_GRAIN (2 * SL_MIB)

struct sl_store_file;
struct sl_host_copy;
struct sl_place;

/* Gives `host`, which has no places yet, places of `bytes` together: few, and preferably near the
 * GPU of that ordinal. Copies of resident chunks are dropped if their places are needed. False: not
 * enough room, and nothing was taken. */
SL_MUST_CHECK bool sl_store_take(
	uint64_t bytes, uint32_t ordinal, struct sl_host_copy *host);
/* Gives the places back; the copy is no longer valid. Without places: does nothing. */
void sl_store_give(struct sl_host_copy *host);

/* Abandons the places for good, since something may still write to them. The record then has
 * none. */
void sl_store_lose(struct sl_host_copy *host);

/* A stretch of a place that one copy may use. */
struct sl_run {
	char *at;
	uint64_t bytes;
	bool pinned; /* copy engines can access it directly */
};
/* The run that begins at that offset in the place; it ends with the place at the latest. */
struct sl_run sl_store_run(const struct sl_place *place, uint64_t offset);

/* Between these two nothing else is pinned and no copy is given up. No context is destroyed: the
 * control lock is closed. */
void sl_store_begin(void);
void sl_store_end(void);

/* The process may have been off its GPUs. */
void sl_store_doubt(void);

/* The context is about to be destroyed, or gone: what it had pinned is no longer pinned. Its space,
 * if it has one, is held (memory.h). */
void sl_store_drop_context(CUcontext ctx);

/* --- for the session: from the agent's thread, under its lock --- */

void sl_store_on_store(const struct sl_msg_store *msg, struct sl_wire_fds *fds);
/* Gives up copies of resident chunks; STORE_BACK follows from another thread. */
void sl_store_on_trim(const struct sl_msg_trim *msg);
/* Sends STORE_HELD for every file. */
void sl_store_report(void);
/* In the child of a fork: empties the store. */
void sl_store_forget(void);

/* For tests. */
struct sl_store_counts {
	uint32_t files;
	uint64_t bytes, free_bytes, pinned_bytes;
};
struct sl_store_counts sl_store_count(void);

#endif
