/*
 * mover - moves chunks between the GPU and the host
 *
 * Works on everything of one GPU that may be evicted: regions, slabs, the program's own handles.
 * Called by swap.c only: the gate is closed, all contexts are idle, the control lock is closed; a
 * thread of ours, with captures relaxed. Freed memory that still waits (quarantine, empty slabs)
 * goes first. Bytes.
 */
#ifndef SL_RUNTIME_SWAP_MOVER_H
#define SL_RUNTIME_SWAP_MOVER_H

#include "base/cuda_types.h"
#include "wire/wire.h"

struct sl_gpu;

struct sl_moved {
	uint64_t left_bytes; /* left the GPU, or came back to it */
	uint64_t moved_bytes, clean_bytes,
		zero_bytes;            /* of these: crossed the link; need not */
	enum sl_wire_swap_cause cause; /* why it was not all */
	CUresult driver_result;
};

/* Makes room of at least bytes: whole chunks, zero ones first, then clean, then dirty ones. A chunk
 * is released only when its contents are known to be on the host. After a failure what has left has
 * left. stop is looked at between chunks (atomic); then no further one is released. */
void sl_mover_evict(
	struct sl_gpu *gpu, uint64_t bytes, const uint32_t *stop, struct sl_moved *out);
/* Called before each copy that is waited for, if something has left: with how much has
 * (moved->left_bytes). What leaves without a copy is gone too soon to tell of it. NULL: nobody. */
extern void (*sl_mover_on_left)(const struct sl_gpu *gpu, const struct sl_moved *moved);
/* Brings back at most bytes of it, whole chunks, as many as fit: of what is larger nothing comes.
 * What came back before a failure stays, and the next call goes on from there. */
void sl_mover_restore(struct sl_gpu *gpu, uint64_t bytes, struct sl_moved *out);
/* Could anything of it be evicted, and how much? For tests and logs. Takes the books' lock. */
uint64_t sl_mover_evictable(struct sl_gpu *gpu);

#endif
