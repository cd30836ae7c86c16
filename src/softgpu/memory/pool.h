/*
 * pool - pools of memory, and what stream order means to them
 *
 * A pool takes memory in chunks of SL_POOL_CHUNK (more where one allocation needs more) and cuts
 * them into blocks. A block freed in stream order leaves a *piece* that says after which point of
 * which stream the place is free again. At a synchronisation pieces that are over are forgotten,
 * and chunks with nothing in them go back to the GPU as far as the release threshold allows.
 *
 * All of it under sl_space_lock, and streams' locks within it for a look at how far they are:
 * nothing that holds a stream's lock touches memory. pool.c has the entry points, space_pool.c the
 * chunks.
 */
#ifndef SL_SOFTGPU_MEMORY_POOL_H
#define SL_SOFTGPU_MEMORY_POOL_H

#include "softgpu/memory/space.h"

#define SL_POOL_CHUNK  (32 * SL_MIB)
#define SL_POOL_REUSES 3

struct CUmemPoolHandle_st {
	struct sl_object o; /* o.link: in the list of all pools */
	CUmemPoolProps props;
	CUdevice device; /* of a pool on the host: 0, and of no meaning */
	bool is_host;
	bool is_default, is_imported;
	bool destroyed; /* waits for its last allocation */
	uint64_t uid;   /* an export names it by this and pid */
	int64_t pid;
	struct sl_link chunks; /* struct sl_mapping.link */
	uint64_t release_threshold;
	uint64_t used, used_high, reserved, reserved_high;
	int reuse
		[SL_POOL_REUSES]; /* follow events, opportunistic, internal dependencies */
	uint8_t access[SL_SOFTGPU_GPUS_MAX];
};

/*
 * Finds or makes room of `bytes` for work in `stream`. Where it depends on another stream's free,
 * waits for that are put into *wait (the caller's to submit or free). Takes the lock.
 */
SL_MUST_CHECK CUresult sl_pool_take(CUmemoryPool pool, CUstream stream, uint64_t bytes,
	struct sl_op **wait, CUdeviceptr *out);
/* The block at the address is free once the stream has reached seq. Takes the lock. */
SL_MUST_CHECK CUresult sl_pool_give(CUdeviceptr address, CUstream stream, uint64_t seq);
/* Forgets what is over and gives back what is above `keep` (of all pools with pool NULL). */
void sl_pool_release(CUmemoryPool pool, uint64_t keep_bytes);
/* The pool ends with the last free of what is still in use. It may be gone at return: a
 * synchronisation of another thread ends it, too. */
void sl_pool_destroy(CUmemoryPool pool);
/* A synchronisation happened: every pool gives back what is above its threshold. Cheap without. */
void sl_pool_synced(void);
/* Access of a device, or the host with device -1, to all chunks. Takes the lock. */
SL_MUST_CHECK CUresult sl_pool_open(
	CUmemoryPool pool, CUdevice device, CUmemAccess_flags flags);
/* A block another process's pool made, found by the server's id. Takes the lock. */
SL_MUST_CHECK CUresult sl_pool_import_block(CUmemoryPool pool, uint64_t id,
	uint64_t offset, uint64_t bytes, CUdeviceptr *out);

/* pool.c: the list of all pools, and those of a device. The default one is made when asked for. */
extern struct sl_link sl_pools;
/* A pool of nobody's yet, or NULL. The properties are checked. */
CUmemoryPool sl_pool_new(const CUmemPoolProps *props);
CUmemoryPool sl_pool_current(CUdevice device);

#endif
