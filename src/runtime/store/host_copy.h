/*
 * host_copy - what the host knows of one chunk's contents
 *
 * Part of the record of whatever can be moved: a chunk of a region or slab, a handle of the
 * program's. Its address never changes while it has places. Bytes.
 */
#ifndef SL_RUNTIME_STORE_HOST_COPY_H
#define SL_RUNTIME_STORE_HOST_COPY_H

#include "runtime/hash/hash.h"

struct sl_store_file;

struct sl_place {
	struct sl_store_file *file;
	uint64_t offset, bytes;
};

/* In the order of the contents. None: nowhere. */
struct sl_places {
	struct sl_place *at;
	uint32_t count;
};

/* Where the contents are. "Held" is no state of its own: what is held is not picked. The mover
 * alone changes it, while the control lock is closed; others read it from inside. */
enum sl_where {
	SL_RESIDENT = 0, /* on the GPU */
	SL_LEAVING,      /* on the GPU, and being copied to the host */
	/* On the host; no memory of the GPU is mapped there, or none with the contents */
	SL_EVICTED,
	SL_RETURNING, /* on the host, and being copied to the GPU */
};

struct sl_host_copy {
	struct sl_places places; /* the store's lock */
	uint8_t where;           /* enum sl_where */
	bool valid;    /* places have the contents as they were when copied last */
	bool zero;     /* they were all zeros when they left: there is no copy */
	bool hashed;   /* hash tells what places have */
	uint8_t dirty; /* so often in a row it had changed since */
	uint8_t rest;  /* so many times more it is not looked at */
	struct sl_hash hash;
};

/* Must the host keep what it has of it? */
static inline bool sl_host_copy_is_needed(const struct sl_host_copy *host)
{
	return __atomic_load_n(&host->where, __ATOMIC_ACQUIRE) != SL_RESIDENT;
}

#endif
