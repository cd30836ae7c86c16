/*
 * host_copy - what the host knows of one chunk's contents
 *
 * Everything that can be moved has one in its record: each chunk of a region or slab, and each of
 * the program's handles. Its address never changes while it has places. Bytes.
 */
#ifndef SL_RUNTIME_STORE_HOST_COPY_H
#define SL_RUNTIME_STORE_HOST_COPY_H

#include "runtime/hash/hash.h"

struct sl_store_file;

struct sl_place {
	struct sl_store_file *file;
	uint64_t offset, bytes;
};

/* In the order of the contents. count 0: nothing on the host. */
struct sl_places {
	struct sl_place *at;
	uint32_t count;
};

/* Where the contents are. "Held" is not among these states: the mover does not pick held memory.
 * Only the mover changes the state, while the control lock is closed; other threads read it inside
 * that lock. */
enum sl_where {
	SL_RESIDENT = 0, /* on the GPU */
	SL_LEAVING,      /* on the GPU, and being copied to the host */
	/* On the host; no GPU memory is mapped at the address, or its contents are not valid */
	SL_EVICTED,
	SL_RETURNING, /* on the host, and being copied to the GPU */
};

struct sl_host_copy {
	struct sl_places places; /* under the store's lock */
	uint8_t where;           /* enum sl_where */
	bool valid;              /* places have the contents as last copied */
	bool zero;               /* all zeros when evicted: there is no copy */
	bool hashed;             /* hash belongs to the contents in places */
	uint8_t dirty;           /* how often in a row it had changed since its copy */
	uint8_t rest;            /* evictions for which it is not hashed again */
	struct sl_hash hash;
};

/* Must the host keep its copy? */
static inline bool sl_host_copy_is_needed(const struct sl_host_copy *host)
{
	return __atomic_load_n(&host->where, __ATOMIC_ACQUIRE) != SL_RESIDENT;
}

#endif
