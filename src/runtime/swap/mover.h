/*
 * mover - moves chunks between the GPU and the host
 *
 * Works on all memory of one GPU that may be evicted: regions, slabs, the program's own handles.
 * Only swap.c calls it, with the gate closed, all contexts idle and the control lock closed, in a
 * thread of ours with captures relaxed. Freed memory still waiting (quarantine, empty slabs) goes
 * first. Bytes.
 */
#ifndef SL_RUNTIME_SWAP_MOVER_H
#define SL_RUNTIME_SWAP_MOVER_H

#include "base/cuda_types.h"
#include "wire/wire.h"

struct sl_gpu;

struct sl_moved {
	uint64_t left_bytes; /* left the GPU, or came back to it */
	uint64_t moved_bytes, clean_bytes,
		zero_bytes;            /* of these: copied over the link; not copied */
	enum sl_wire_swap_cause cause; /* why it was not all */
	CUresult driver_result;
};

/* Frees at least `bytes` of the GPU: whole chunks, zero ones first, then clean, then dirty ones. A
 * chunk is released only when its contents are known to be on the host. After a failure, chunks
 * released before stay evicted. *stop (atomic) is checked between chunks and ends the eviction. */
void sl_mover_evict(
	struct sl_gpu *gpu, uint64_t bytes, const uint32_t *stop, struct sl_moved *out);
/* Called before each copy that is waited for, if something has left; moved->left_bytes has the
 * total. Chunks without a copy leave too quickly to be worth a report. May be NULL. */
extern void (*sl_mover_on_left)(const struct sl_gpu *gpu, const struct sl_moved *moved);
/* Brings back at most `bytes`, as many whole chunks as fit; a chunk larger than the rest stays out.
 * Chunks restored before a failure stay, and the next call continues from there. */
void sl_mover_restore(struct sl_gpu *gpu, uint64_t bytes, struct sl_moved *out);
/* The bytes of the GPU that could be evicted now. For tests and logs. Takes the books' lock. */
uint64_t sl_mover_evictable(struct sl_gpu *gpu);

#endif
