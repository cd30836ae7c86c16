/*
 * pool - pools of memory with stream order
 *
 * A pool takes memory in chunks of SL_POOL_CHUNK (more if one allocation needs more) and cuts them
 * into blocks. A block freed in stream order leaves a *piece*, which names the point of the stream
 * after which its place is free again. At a synchronisation finished pieces are dropped, and empty
 * chunks go back to the GPU as far as the release threshold allows.
 *
 * sl_space_lock guards all of it. A holder of that lock may take streams' locks to read their
 * progress, so no holder of a stream's lock touches memory. pool.c has the entry points,
 * space_pool.c the chunks.
 */
#ifndef SL_SOFTGPU_MEMORY_POOL_H
#define SL_SOFTGPU_MEMORY_POOL_H

#include "softgpu/memory/space.h"

#define SL_POOL_CHUNK  (32 * SL_MIB)
#define SL_POOL_REUSES 3

struct CUmemPoolHandle_st {
	struct sl_object o; /* o.link: in the list of all pools */
	CUmemPoolProps props;
	CUdevice device; /* of a pool on the host 0, without meaning */
	bool is_host;
	bool is_default, is_imported;
	bool destroyed; /* waits for its last allocation */
	uint64_t uid;   /* with the pid it names an export */
	int64_t pid;
	struct sl_link chunks; /* struct sl_mapping.link */
	uint64_t release_threshold;
	uint64_t used, used_high, reserved, reserved_high;
	int reuse
		[SL_POOL_REUSES]; /* follow events, opportunistic, internal dependencies */
	uint8_t access[SL_SOFTGPU_GPUS_MAX];
};

/*
 * Finds or makes space of `bytes` for work in `stream`. If it depends on another stream's free,
 * *wait gets the waits, which the caller submits or frees. Takes the lock.
 */
SL_MUST_CHECK CUresult sl_pool_take(CUmemoryPool pool, CUstream stream, uint64_t bytes,
	struct sl_op **wait, CUdeviceptr *out);
/* The block at the address is free once the stream has reached seq. Takes the lock. */
SL_MUST_CHECK CUresult sl_pool_give(CUdeviceptr address, CUstream stream, uint64_t seq);
/* Drops finished pieces and gives back what exceeds `keep` (of all pools if pool is NULL). */
void sl_pool_release(CUmemoryPool pool, uint64_t keep_bytes);
/* Ends the pool with the last free of memory in use. It may be gone at return, since a
 * synchronisation of another thread ends it, too. */
void sl_pool_destroy(CUmemoryPool pool);
/* After a synchronisation: every pool gives back what exceeds its threshold. Cheap without
 * pools. */
void sl_pool_synced(void);
/* Access of a device, or the host with device -1, to all chunks. Takes the lock. */
SL_MUST_CHECK CUresult sl_pool_open(
	CUmemoryPool pool, CUdevice device, CUmemAccess_flags flags);
/* A block of another process's pool, found by the server's id. Takes the lock. */
SL_MUST_CHECK CUresult sl_pool_import_block(CUmemoryPool pool, uint64_t id,
	uint64_t offset, uint64_t bytes, CUdeviceptr *out);

/* pool.c: the list of all pools. */
extern struct sl_link sl_pools;
/* A new pool, or NULL. The properties are checked. */
CUmemoryPool sl_pool_new(const CUmemPoolProps *props);

#endif
