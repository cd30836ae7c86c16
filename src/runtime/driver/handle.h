/*
 * handle - the program's own handles of device memory, and where they are mapped
 *
 * The program never sees the driver's handles, but ids of ours: so a handle can be given up and
 * made anew behind its back, at the same addresses. What that takes is remembered here: how it was
 * made, where it is mapped, which devices may use each mapping. A handle is
 *   evictable  if it is of kind DEVICE and why_held is 0: released and created again with `prop`,
 *              `bytes` and `flags`, then every mapping mapped and its accesses set as before; its
 *              contents go through any mapping with access, or through one of our own where it has
 *              none
 *   held       otherwise: another process, a NIC, an array or a multicast object knows the memory,
 *              the record is not complete, or it is not ours to make again (imported, host memory).
 * An id lives as long as the program has references, mappings, or bound it to a multicast object;
 * what it is charged is given back after the last of these.
 *
 * One lock, held for table work only, never during a driver call; functions take it themselves. A
 * handle or a mapping taken out of the tables for a call of the driver (sl_handle_use,
 * sl_mappings_take) belongs to that thread until it is put back or dropped, so whatever other
 * threads do to the same one meanwhile, the books stay right. No lock may be held by the caller.
 * Bytes.
 */
#ifndef SL_RUNTIME_DRIVER_HANDLE_H
#define SL_RUNTIME_DRIVER_HANDLE_H

#include "base/cuda_types.h"
#include "base/list.h"
#include "runtime/driver/extents.h"
#include "runtime/store/host_copy.h"

struct sl_gpu;

enum sl_handle_kind {
	SL_HANDLE_DEVICE = 1,
	SL_HANDLE_HOST, /* host memory, wherever: never charged */
	SL_HANDLE_IMPORTED,
	SL_HANDLE_MULTICAST,
};

/* Why it must stay where it is. For its whole life, but for the last one. */
enum sl_handle_why {
	SL_WHY_EXPORTED = 1,
	SL_WHY_FABRIC = 2,     /* may be exported to other nodes */
	SL_WHY_COMPRESSED = 4, /* its mapping decides how contents are stored */
	SL_WHY_RDMA = 8,       /* made for registration with a NIC, which nobody sees */
	SL_WHY_TILES = 16,     /* behind a sparse array */
	SL_WHY_ADDRESS = 32,   /* a descriptor of its addresses was given out */
	SL_WHY_RECORD = 64,    /* host memory was missing for the record */
	SL_WHY_BOUND = 128,    /* bound to multicast objects */
};

struct sl_handle {
	struct sl_link bucket;
	uint64_t id;
	CUmemGenericAllocationHandle real; /* valid while references are above 0 */
	CUmemAllocationProp prop;          /* as it was created */
	uint64_t
		bytes; /* of an imported one as far as mapped; of a multicast object as created */
	unsigned long long flags;
	enum sl_handle_kind kind;
	uint32_t why_held;
	/* The program's; of the driver's there is one as long as there are any */
	uint32_t references;
	uint32_t bound; /* to multicast objects */
	uint32_t users; /* threads in a call with it */
	/* On the host: neither it nor any of its mappings is in the driver, but for what `made` and
	 * `there` say of one that stayed half-way. Written while the control lock is closed, read
	 * inside (swap/handles.c). */
	bool evicted;
	bool made; /* evicted, and the driver has `real` nevertheless */
	CUmemGenericAllocationHandle
		lent;    /* a reference of ours to it, for the while; 0: none */
	CUdeviceptr own; /* a mapping of ours, for copies; 0: none */
	struct sl_host_copy host;
	struct sl_link mappings;
	struct sl_link
		bindings; /* of a multicast object: what is bound to it (multicast.c) */
	void (*on_end)(struct sl_handle *handle); /* may be NULL; before it is freed */
	struct sl_gpu *gpu;                       /* which it is charged to, or NULL */
	uint64_t charged_bytes;
	uint32_t charge_flags; /* enum sl_passed_flags */
	uint64_t held_bytes;   /* told as held beyond the charge (held.h) */
};

struct sl_access {
	CUmemLocation where;
	CUmemAccess_flags flags;
};

struct sl_mapping {
	struct sl_extent extent; /* first: the index knows it as this */
	struct sl_link link;     /* handle->mappings */
	struct sl_link taken;
	struct sl_handle *handle;
	uint64_t offset;
	unsigned long long flags;
	bool there; /* the handle is evicted, and the driver has this nevertheless */
	struct sl_access *accesses; /* locations without access have no row */
	uint32_t access_count;
};

/* --- handles ---------------------------------------------------------------------------------- */

/* A record that nobody knows yet, or NULL without host memory: made before the driver is called. */
struct sl_handle *sl_handle_new(enum sl_handle_kind kind, uint64_t bytes);
/* The driver said no after all. */
void sl_handle_discard(struct sl_handle *handle);
/* The driver made `real`: the program's first reference. Returns the id. */
CUmemGenericAllocationHandle sl_handle_add(
	struct sl_handle *handle, CUmemGenericAllocationHandle real);

/* What the program passes as a handle. NULL: none of ours, *real is for the driver: the same value,
 * or for an id that is no longer good 0, which it refuses. Else *real is the driver's, and the
 * record stays until sl_handle_leave. */
struct sl_handle *sl_handle_use(
	CUmemGenericAllocationHandle value, CUmemGenericAllocationHandle *real);
/* NULL is fine. The last one of a handle of which nothing is left gives back what it is charged;
 * where that may be on the host, inside the control lock. */
void sl_handle_leave(struct sl_handle *handle);
/* The handle mapped at address, used, whether it has references or not; or NULL. */
struct sl_handle *sl_handle_at(uint64_t address);

enum sl_handle_outcome {
	SL_HANDLE_MORE = 0, /* references are left */
	SL_HANDLE_LAST, /* *real is to be released; sl_handle_released is to be told */
	SL_HANDLE_NONE, /* another thread has taken the last one off */
};
/* Takes one reference off. */
SL_MUST_CHECK int sl_handle_unreference(
	struct sl_handle *handle, CUmemGenericAllocationHandle *real);
void sl_handle_released(struct sl_handle *handle, bool released);
/* One reference more. False: it has none, so the driver must be asked for its handle first, and
 * sl_handle_revive be told. */
SL_MUST_CHECK bool sl_handle_reference(struct sl_handle *handle);
/* False: another thread was faster, and `real` is one too many. */
SL_MUST_CHECK bool sl_handle_revive(
	struct sl_handle *handle, CUmemGenericAllocationHandle real);

/* Must it stay from now on? False: it may not, bytes that others were promised would be held.
 * Nothing happens where it is held already or costs no GPU memory. */
SL_MUST_CHECK bool sl_handle_hold(struct sl_handle *handle, enum sl_handle_why why);
/* Takes back one sl_handle_hold with SL_WHY_BOUND. */
void sl_handle_unbind(struct sl_handle *handle);
/* All handles mapped in the range, as sl_handle_hold. */
SL_MUST_CHECK bool sl_handle_hold_range(
	uint64_t address, uint64_t bytes, enum sl_handle_why why);

/* --- mappings --------------------------------------------------------------------------------- */

/* As sl_handle_new and sl_handle_discard. */
struct sl_mapping *sl_mapping_new(uint64_t address, uint64_t bytes);
void sl_mapping_discard(struct sl_mapping *mapping);
/* The driver mapped the handle there; what we thought to be there before is not. */
void sl_mapping_add(struct sl_mapping *mapping, struct sl_handle *handle);

/* Takes all mappings inside the range out, before the driver unmaps them. */
void sl_mappings_take(uint64_t address, uint64_t bytes, struct sl_link *taken);
/* The driver refused. */
void sl_mappings_put_back(struct sl_link *taken);
/* They are gone, and with them perhaps handles. */
void sl_mappings_drop(struct sl_link *taken);
/* Each mapping that the range touches has this access now. */
void sl_mappings_allow(uint64_t address, uint64_t bytes, const CUmemAccessDesc *access);
/* The access that `where` has to the mapping at address, as the driver would tell. False: nothing
 * is mapped there. */
bool sl_mappings_access(
	uint64_t address, const CUmemLocation *where, unsigned long long *flags);
/* What queries about an address are answered with. */
struct sl_mapping_info {
	uint64_t address, bytes;
	uint64_t id; /* of the handle: stays the same when that is made anew */
	CUmemAllocationProp prop;
	enum sl_handle_kind kind;
};
/* False: nothing of the program's is mapped there. */
SL_MUST_CHECK bool sl_mapping_find(uint64_t address, struct sl_mapping_info *out);
/* The mapping after `address` that the range touches: *address and *bytes become its own. */
bool sl_mappings_next(uint64_t end, uint64_t *address, uint64_t *bytes);

/* --- for the mover, inside the closed control lock (swap/handles.c) --------------------------- */

/* Calls on_each for every handle, under the lock. */
void sl_handle_each(void (*on_each)(struct sl_handle *handle, void *arg), void *arg);
/* A reference of ours, or a mapping of ours, goes. */
CUresult sl_handle_give_back(struct sl_handle *handle);
CUresult sl_handle_drop_own(struct sl_handle *handle);

/* Counts of what there is; for tests. */
struct sl_handle_counts {
	size_t handles, mappings;
	size_t promised; /* rooms for mappings that are being made */
};
struct sl_handle_counts sl_handle_count(void);

/* In the child of a fork: nothing is left, nothing is freed. */
void sl_handle_forget(void);

#endif
