/*
 * hash - has a chunk changed since it was copied to the host, and is it all zeros?
 *
 * A keyed 128-bit hash. math.h defines it and bounds its collisions. It runs in three places: on
 * the GPU from PTX, on the software GPU from a host module (both made from kernel.c), and on the
 * CPU here. The key is random, one per process, and never leaves it: a program that knew it could
 * make two chunks look equal. Thread-safe. Bytes.
 */
#ifndef SL_RUNTIME_HASH_HASH_H
#define SL_RUNTIME_HASH_HASH_H

#include "base/cuda_types.h"
#include "base/sl.h"

/* The smallest unit that the GPU hashes. */
#define SL_HASH_UNIT_BYTES (2 * SL_MIB)

/* a and b of the first half, then of the second; any random bits are valid. */
struct sl_hash_key {
	uint64_t word[4];
};

/* Comparable only between chunks of one size. */
struct sl_hash {
	uint64_t low, high;
	bool zero; /* all bytes are 0 */
};

/* Hashes on the CPU, for where no hasher is ready. data is aligned to 4 bytes, size a multiple of
 * 4. */
void sl_hash_bytes(const struct sl_hash_key *key, const void *data, uint64_t size,
	struct sl_hash *out);

/* This process's key. NULL: the system has no random numbers, so nothing can be hashed. */
const struct sl_hash_key *sl_hash_own_key(void);
/* In the child of a fork: it will make its own key. */
void sl_hash_forget(void);

/* --- on the GPU (hasher.c) ---------------------------------------------------------------- */

/* A helper thread loads the code into the context some time after the context was made, never while
 * something is being moved. A second call for the same context does no harm. Never blocks. */
void sl_hasher_context(CUcontext ctx, CUdevice dev);
/* The context is about to be destroyed: returns when our threads have left it. The loaded code is
 * destroyed with the context. An unknown context or NULL is ignored. */
void sl_hasher_drop_context(CUcontext ctx);
/* Can sl_hasher_run work in a context of dev? If so, makes that context current for the caller. */
SL_MUST_CHECK bool sl_hasher_ready(CUdevice dev, CUcontext *ctx);

struct sl_hash_item {
	CUdeviceptr address;
	uint64_t bytes; /* a multiple of SL_HASH_UNIT_BYTES */
	struct sl_hash out;
};
/* Hashes all items on the GPU with our own key and waits. The context is current. On failure no
 * `out` is valid: CUDA_ERROR_INVALID_CONTEXT if the context is not ready, otherwise the driver's
 * error. */
SL_MUST_CHECK CUresult sl_hasher_run(
	CUcontext ctx, struct sl_hash_item *items, uint32_t count);
/* In the child of a fork; includes sl_hash_forget. */
void sl_hasher_forget(void);

#endif
