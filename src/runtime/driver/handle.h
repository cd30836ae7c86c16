/*
 * handle - the program's own handles of device memory, and where they are mapped
 *
 * The program sees ids of ours instead of the driver's handles, so a handle can be released and
 * made anew at the same addresses without the program noticing. The record keeps what that takes:
 * how the handle was made, where it is mapped, which devices may use each mapping. A handle is
 *   evictable  if it is of kind DEVICE and why_held is 0. To leave the GPU it is released. To come
 *              back it is created again with `prop`, `bytes` and `flags`, and every mapping is
 *              mapped with its accesses as before. swap/handles.c copies the contents.
 *   held       otherwise: another process, a NIC, an array or a multicast object uses the memory,
 *              the record is incomplete, or we cannot make it again (imported, host memory).
 * An id lives as long as the program has references or mappings, or has bound it to a multicast
 * object. Its charge is given back after the last of these.
 *
 * One lock, held for table work only, never during a driver call; functions take it themselves. For
 * a driver call, sl_handle_use keeps a handle's record in existence until sl_handle_leave.
 * sl_mappings_take takes mappings out of the table, and they belong to that thread until it puts
 * them back or drops them. So the books stay right whatever other threads do to the same object.
 * The caller holds no lock. Bytes.
 */
#ifndef SL_RUNTIME_DRIVER_HANDLE_H
#define SL_RUNTIME_DRIVER_HANDLE_H

#include "base/cuda_types.h"
#include "base/list.h"
#include "runtime/memory/extents.h"
#include "runtime/store/host_copy.h"

struct sl_gpu;

enum sl_handle_kind {
	SL_HANDLE_DEVICE = 1,
	SL_HANDLE_HOST, /* host memory of any kind: never charged */
	SL_HANDLE_IMPORTED,
	SL_HANDLE_MULTICAST,
};

/* Why a handle is held. All but SL_WHY_BOUND last for its whole life. */
enum sl_handle_why {
	SL_WHY_EXPORTED = 1,
	SL_WHY_FABRIC = 2,     /* may be exported to other nodes */
	SL_WHY_COMPRESSED = 4, /* its mapping decides how contents are stored */
	SL_WHY_RDMA = 8,       /* made for registration with a NIC, which no hook sees */
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
	/* Of an imported handle as far as mapped; of a multicast object as created */
	uint64_t bytes;
	unsigned long long flags;
	enum sl_handle_kind kind;
	uint32_t why_held;
	/* The program's references; while there is one, we have one of the driver's */
	uint32_t references;
	uint32_t bound; /* to multicast objects */
	uint32_t users; /* threads in a driver call with it */
	/* The contents are on the host. The driver has neither the handle nor its mappings, except
	 * those that `made` and `there` record after a move that failed half-way. Written while the
	 * control lock is closed, read inside (swap/handles.c). */
	bool evicted;
	bool made;                         /* evicted, but the driver still has `real` */
	CUmemGenericAllocationHandle lent; /* a temporary reference of ours; 0: none */
	CUdeviceptr own;                   /* a mapping of ours, for copies; 0: none */
	struct sl_host_copy host;
	struct sl_link mappings;
	struct sl_link
		bindings; /* of a multicast object: what is bound to it (multicast.c) */
	void (*on_end)(struct sl_handle *handle); /* may be NULL; before it is freed */
	struct sl_gpu *gpu;                       /* charged to this GPU, or NULL */
	uint64_t charged_bytes;
	uint32_t charge_flags; /* enum sl_passed_flags */
	uint64_t held_bytes;   /* reported as held beyond the charge (held.h) */
};

struct sl_access {
	CUmemLocation where;
	CUmemAccess_flags flags;
};

struct sl_mapping {
	struct sl_extent extent; /* first: extents.h points at it */
	struct sl_link link;     /* handle->mappings */
	struct sl_link taken;
	struct sl_handle *handle;
	uint64_t offset;
	unsigned long long flags;
	bool there; /* the handle is evicted, but the driver still has this mapping */
	struct sl_access *accesses; /* locations without access have no row */
	uint32_t access_count;
};

/* --- handles ---------------------------------------------------------------------------------- */

/* A record in no table yet, made before the driver is called. NULL: no host memory. */
struct sl_handle *sl_handle_new(enum sl_handle_kind kind, uint64_t bytes);
/* The driver refused. */
void sl_handle_discard(struct sl_handle *handle);
/* The driver made `real`; this is the program's first reference. Returns the id. */
CUmemGenericAllocationHandle sl_handle_add(
	struct sl_handle *handle, CUmemGenericAllocationHandle real);

/* Looks up the value that the program passes as a handle. Returns the record, which stays until
 * sl_handle_leave; *real is then the driver's handle. NULL: not a valid id. *real is then what to
 * pass to the driver: 0 (which it refuses) for an old id of ours, otherwise the value itself. */
struct sl_handle *sl_handle_use(
	CUmemGenericAllocationHandle value, CUmemGenericAllocationHandle *real);
/* `handle` may be NULL. The last user of a handle without references or mappings gives its charge
 * back, inside the control lock if the handle may be on the host. */
void sl_handle_leave(struct sl_handle *handle);
/* The handle mapped at address, with or without references, in use until sl_handle_leave; or
 * NULL. */
struct sl_handle *sl_handle_at(uint64_t address);

enum sl_handle_outcome {
	SL_HANDLE_MORE = 0, /* references are left */
	SL_HANDLE_LAST,     /* release *real, then call sl_handle_released */
	SL_HANDLE_NONE,     /* another thread has taken the last reference off */
};
/* Takes one reference off. */
SL_MUST_CHECK int sl_handle_unreference(
	struct sl_handle *handle, CUmemGenericAllocationHandle *real);
void sl_handle_released(struct sl_handle *handle, bool released);
/* Adds a reference. False: the handle has none, so get its handle from the driver and call
 * sl_handle_revive. */
SL_MUST_CHECK bool sl_handle_reference(struct sl_handle *handle);
/* False: another thread was faster, and `real` must be released. */
SL_MUST_CHECK bool sl_handle_revive(
	struct sl_handle *handle, CUmemGenericAllocationHandle real);

/* Marks the handle as held. False: refused, since its bytes would be held at the cost of what other
 * workloads were promised. Does nothing if it is held already or costs no GPU memory. */
SL_MUST_CHECK bool sl_handle_hold(struct sl_handle *handle, enum sl_handle_why why);
/* Takes back one sl_handle_hold with SL_WHY_BOUND. */
void sl_handle_unbind(struct sl_handle *handle);
/* sl_handle_hold for all handles mapped in the range. */
SL_MUST_CHECK bool sl_handle_hold_range(
	uint64_t address, uint64_t bytes, enum sl_handle_why why);

/* --- mappings --------------------------------------------------------------------------------- */

/* As sl_handle_new and sl_handle_discard. */
struct sl_mapping *sl_mapping_new(uint64_t address, uint64_t bytes);
void sl_mapping_discard(struct sl_mapping *mapping);
/* The driver mapped the handle there; older records of that range are dropped. */
void sl_mapping_add(struct sl_mapping *mapping, struct sl_handle *handle);

/* Takes all mappings inside the range out, before the driver unmaps them. */
void sl_mappings_take(uint64_t address, uint64_t bytes, struct sl_link *taken);
/* The driver refused to unmap. */
void sl_mappings_put_back(struct sl_link *taken);
/* The mappings are gone, and perhaps their handles with them. */
void sl_mappings_drop(struct sl_link *taken);
/* Records this access for each mapping that the range touches. */
void sl_mappings_allow(uint64_t address, uint64_t bytes, const CUmemAccessDesc *access);
/* The access that `where` has to the mapping at address, as the driver would report it. False: no
 * mapping. */
bool sl_mappings_access(
	uint64_t address, const CUmemLocation *where, unsigned long long *flags);
/* The answers to queries about an address. */
struct sl_mapping_info {
	uint64_t address, bytes;
	uint64_t id; /* of the handle: stays the same when the handle is made anew */
	CUmemAllocationProp prop;
	enum sl_handle_kind kind;
};
/* False: the program has mapped nothing there. */
SL_MUST_CHECK bool sl_mapping_find(uint64_t address, struct sl_mapping_info *out);
/* The next mapping after `address` that the range touches; *address and *bytes become its own. */
bool sl_mappings_next(uint64_t end, uint64_t *address, uint64_t *bytes);

/* --- for the mover, inside the closed control lock (swap/handles.c) --------------------------- */

/* Calls on_each for every handle, under the lock. */
void sl_handle_each(void (*on_each)(struct sl_handle *handle, void *arg), void *arg);
/* Releases our reference or mapping. */
CUresult sl_handle_give_back(struct sl_handle *handle);
CUresult sl_handle_drop_own(struct sl_handle *handle);

/* For tests. */
struct sl_handle_counts {
	size_t handles, mappings;
	size_t promised; /* rooms for mappings that are being made */
};
struct sl_handle_counts sl_handle_count(void);

/* In the child of a fork: empties the tables without freeing. */
void sl_handle_forget(void);

#endif
