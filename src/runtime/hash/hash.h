/*
 * hash - has a chunk changed since it was copied to the host, and is it all zeros?
 *
 * A keyed 128-bit hash, defined once (math.h: definition and bound on collisions) and run in
 * three places: on the GPU from PTX, on the software GPU from a host module, both made from
 * kernel.c, and on the CPU here. The key is random, one per process, and never leaves it: a
 * program that knew it could make two chunks look equal. Thread-safe. Bytes.
 */
#ifndef SL_RUNTIME_HASH_HASH_H
#define SL_RUNTIME_HASH_HASH_H

#include "base/cuda_types.h"
#include "base/sl.h"

/* The smallest piece that the GPU hashes. */
#define SL_HASH_UNIT_BYTES (2 * SL_MIB)

/* a and b of the first half, then of the second; any random bits will do. */
struct sl_hash_key {
	uint64_t word[4];
};

/* Of chunks of one size only. */
struct sl_hash {
	uint64_t low, high;
	bool zero; /* all bytes are 0 */
};

/* data is aligned for words of 32 bits, size a multiple of 4. For where there is no hasher. */
void sl_hash_bytes(const struct sl_hash_key *key, const void *data, uint64_t size,
	struct sl_hash *out);

/* This process's key. NULL: the system has no random numbers; then nothing can be hashed. */
const struct sl_hash_key *sl_hash_own_key(void);
/* In the child of a fork: it makes a key of its own. */
void sl_hash_forget(void);

/* --- on the GPU (hasher.c) ---------------------------------------------------------------- */

/* Loads the code into a context, from a thread of ours that does nothing else, some time after the
 * context was made and never while something is being moved. Twice does no harm. Never blocks. */
void sl_hasher_context(CUcontext ctx, CUdevice dev);
/* The context is about to go: returns when nothing of ours is being done in it. What was loaded
 * goes with it. One we do not know, or NULL, is nothing. */
void sl_hasher_drop_context(CUcontext ctx);
/* Is there a context of dev in which sl_hasher_run works? It then is current for the caller. */
SL_MUST_CHECK bool sl_hasher_ready(CUdevice dev, CUcontext *ctx);

struct sl_hash_item {
	CUdeviceptr address;
	uint64_t bytes; /* a multiple of SL_HASH_UNIT_BYTES */
	struct sl_hash out;
};
/* Hashes all of them on the GPU with our own key and waits. The context is current. On failure no
 * `out` counts: CUDA_ERROR_INVALID_CONTEXT if it is not ready (any more), what the driver said
 * else. */
SL_MUST_CHECK CUresult sl_hasher_run(
	CUcontext ctx, struct sl_hash_item *items, uint32_t count);
/* In the child of a fork. Also sl_hash_forget. */
void sl_hasher_forget(void);

#endif
