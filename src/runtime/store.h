/*
 * store - this process's host memory for evicted chunks
 *
 * Sealed files that the daemon makes and hands over (STORE), one after the other as more is needed: each is
 * mapped here once, and pinned piece by piece in the background, never while something is being moved; until
 * then copies go through a small pinned ring. A chunk's place is inside one file. Lock of its own. Bytes.
 */
#ifndef SL_RUNTIME_STORE_H
#define SL_RUNTIME_STORE_H

#include "base/cuda_types.h"
#include "wire/wire.h"

struct sl_place {
	uint32_t number; /* of the file; 0: nowhere */
	uint32_t pad;
	uint64_t offset, bytes;
};

/* A place of so many bytes that nobody has. False: there is none. */
SL_MUST_CHECK bool sl_store_take(uint64_t bytes, struct sl_place *out);
/* Gives it back and makes *place nowhere. */
void sl_store_give(struct sl_place *place);
void *sl_store_at(const struct sl_place *place);
/* Can copy engines use all of it as it is? */
bool sl_store_is_pinned(const struct sl_place *place);
/* The context is about to go, or is gone: what was pinned in it is so no longer. */
void sl_store_drop_context(CUcontext ctx);

/* --- for the session: from the agent's thread, under its lock --- */

void sl_store_on_store(const struct sl_msg_store *msg, struct sl_wire_fds *fds);
/* Copies of resident chunks are given up; STORE_BACK follows, from another thread. */
void sl_store_on_trim(const struct sl_msg_trim *msg);
/* Says STORE_HELD for every file. */
void sl_store_report(void);
/* In the child of a fork: nothing is left. */
void sl_store_forget(void);

#endif
