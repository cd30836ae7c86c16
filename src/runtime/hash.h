/*
 * hash - has a chunk changed since it was copied to the host, and is it all zeros?
 *
 * A keyed 128-bit hash, defined once (hash-kernel.c) and run in three places: on the GPU from PTX, on the
 * software GPU from a host module, both made from that text, and on the CPU here. The key is random, one per
 * process, and never leaves it: a program that knew it could make two chunks look equal. The definition, its
 * bound on collisions and test vectors are in hash-kernel.c. Bytes.
 */
#ifndef SL_RUNTIME_HASH_H
#define SL_RUNTIME_HASH_H

#include "base/cuda_types.h"
#include "base/sl.h"

struct sl_hash_key {
	uint64_t word[4];
};

struct sl_hash {
	uint64_t low, high;
	bool zero; /* all bytes are 0 */
};

/* size is a multiple of 8. */
void sl_hash_bytes(const struct sl_hash_key *key, const void *data, uint64_t size,
	struct sl_hash *out);

/* This process's key. */
const struct sl_hash_key *sl_hash_own_key(void);

/* Loads the code into a context, from a thread of ours that does nothing else, some time after the context was
 * made and never while something is being moved. */
void sl_hasher_context(CUcontext ctx, CUdevice dev);
/* The context is about to go: returns when nothing of ours is being done in it. */
void sl_hasher_drop_context(CUcontext ctx);
/* Is there a context of dev in which sl_hasher_run works? It then is current for the caller. */
SL_MUST_CHECK bool sl_hasher_ready(CUdevice dev, CUcontext *ctx);

struct sl_hash_item {
	CUdeviceptr address;
	uint64_t bytes; /* a multiple of 2 MiB */
	struct sl_hash out;
};
/* Hashes all of them on the GPU and waits. The context is current. On failure no `out` counts. */
SL_MUST_CHECK CUresult sl_hasher_run(
	CUcontext ctx, struct sl_hash_item *items, uint32_t count);
/* In the child of a fork. */
void sl_hasher_forget(void);

#endif
