/*
 * space - device addresses of this process and the memory behind them
 *
 * First an address range is reserved. Nothing is mapped there in the program, so touching a device
 * pointer faults. Then handles are mapped into the range. For copies each handle has an *alias*, an
 * ordinary mapping elsewhere in this process, made at the first copy. If the device has a
 * companion, the handle is mapped there at the same address. One lock, sl_space_lock; functions
 * take it themselves unless named _locked. Sizes are bytes; results are the driver's CUresults.
 */
#ifndef SL_SOFTGPU_MEMORY_SPACE_H
#define SL_SOFTGPU_MEMORY_SPACE_H

#include "softgpu/driver/driver.h"

/* A handle of the server's, or host memory with a memfd of its own. */
struct sl_phys {
	uint64_t id;     /* the server's; with SL_PHYS_HOST for host memory */
	CUdevice device; /* 0 for host memory */
	int fd;          /* host memory's; -1: pages of the device */
	uint64_t bytes;
	CUmemAllocationProp prop;
	unsigned refs;    /* of handles, mappings and running copies */
	unsigned handles; /* references of the program; released one by one */
	CUmemGenericAllocationHandle handle; /* its name, 0: never had one */
	char *alias;                         /* NULL: not mapped yet */
	struct sl_multicast *multicast;      /* not NULL: stands for others */
	uint32_t extent_count;
	struct sl_sg_extent *extent;
	struct sl_link link; /* in sl_phys_all, if it has pages of the device */
};

#define SL_PHYS_HOST (1ull << 62)

enum sl_map_kind {
	SL_MAP_VMM,    /* the program's own cuMemMap */
	SL_MAP_NATIVE, /* cuMemAlloc: one block, or a slab cut into blocks */
	SL_MAP_POOL,   /* a chunk of a pool, cut into blocks; access as the pool's */
};

struct sl_mapping {
	uint64_t address, bytes;
	struct sl_phys *phys;
	enum sl_map_kind kind;
	uint64_t phys_id; /* id of phys, valid in a copy; phys itself is not */
	CUdevice device;
	unsigned int handle_types;
	CUcontext slab_of;   /* not NULL: small blocks of this context are in it */
	CUmemoryPool pool;   /* not NULL: a chunk of it */
	struct sl_link link; /* in its pool's chunks */
	uint64_t used;       /* bytes of a chunk's or slab's blocks, in grains */
	uint64_t cursor;     /* end of the last block cut from a chunk */
	bool is_host;        /* phys is host memory */
	bool for_array;      /* its address is hidden */
	bool rdma;           /* other devices of the machine may register it */
	uint8_t host_access; /* the program's own, by CUmemAccess_flags */
	uint8_t access[SL_SOFTGPU_GPUS_MAX]; /* CUmemAccess_flags per device */
	bool in_companion[SL_SOFTGPU_GPUS_MAX];
};

struct sl_reservation {
	uint64_t address, bytes;
	bool by_program;
};

/* An allocation as the program knows it. */
enum sl_block_kind {
	SL_BLOCK_DEVICE,
	SL_BLOCK_MANAGED,
	SL_BLOCK_POOL,
	SL_BLOCK_IPC,   /* another process made it */
	SL_BLOCK_ARRAY, /* behind an array; its address is hidden */
	SL_BLOCK_PINNED,
	SL_BLOCK_REGISTERED
};
struct sl_block {
	uint64_t address, bytes;
	enum sl_block_kind kind;
	CUcontext ctx;
	CUdevice device;
	uint64_t buffer_id;
	unsigned int flags;  /* of cuMemHostAlloc and cuMemHostRegister */
	int fd;              /* pinned memory's; -1 otherwise */
	unsigned int opened; /* number of opens, for SL_BLOCK_IPC */
	bool sync_memops;
	struct sl_hint *hints; /* of SL_BLOCK_MANAGED, see managed.h */
};

extern pthread_mutex_t sl_space_lock;

/* Blocks. */
SL_MUST_CHECK CUresult sl_space_alloc(
	CUcontext ctx, uint64_t bytes, enum sl_block_kind kind, CUdeviceptr *out);
/* Frees the block's memory at once: the caller has waited for its work. */
SL_MUST_CHECK CUresult sl_space_free(CUdeviceptr address);
SL_MUST_CHECK CUresult sl_space_free_array(CUdeviceptr address);
SL_MUST_CHECK CUresult sl_space_host_alloc(
	CUcontext ctx, uint64_t bytes, unsigned flags, void **out);
SL_MUST_CHECK CUresult sl_space_host_register(
	CUcontext ctx, void *address, uint64_t bytes, unsigned flags);
/* kind is the kind of call: unpinning memory that was allocated is an error, and the reverse. */
SL_MUST_CHECK CUresult sl_space_host_free(void *address, enum sl_block_kind kind);
/* Opens `bytes` at an offset of another process's handle; a second open returns the same
 * address. */
SL_MUST_CHECK CUresult sl_space_ipc_open(
	CUcontext ctx, uint64_t id, uint64_t offset, uint64_t bytes, CUdeviceptr *out);
SL_MUST_CHECK CUresult sl_space_ipc_close(CUdeviceptr address);
/* Copies the block around an address; false: none. */
bool sl_space_block(uint64_t address, struct sl_block *out);
/* The block itself, under the lock. */
struct sl_block *sl_space_block_locked(uint64_t address);
/* Copies the mapping around an address; false: none. */
bool sl_space_mapping(uint64_t address, struct sl_mapping *out);
void sl_space_set_sync_memops(uint64_t address, bool on);
/* Frees all allocations of a context. */
void sl_space_drop_context(CUcontext ctx);
/* Opens or closes the peer's blocks, present and future, to a device's kernels. */
CUresult sl_space_peer(CUdevice from, CUdevice to, bool on);
/* Maps all memory that the device may reach into its new companion. */
SL_MUST_CHECK CUresult sl_space_fill_companion(CUdevice device);

/* Virtual memory management, as the driver's calls of similar name. */
SL_MUST_CHECK CUresult sl_space_reserve(
	uint64_t bytes, uint64_t alignment, uint64_t hint, CUdeviceptr *out);
SL_MUST_CHECK CUresult sl_space_unreserve(uint64_t address, uint64_t bytes);
SL_MUST_CHECK CUresult sl_space_create(uint64_t bytes, const CUmemAllocationProp *prop,
	CUmemGenericAllocationHandle *out);
SL_MUST_CHECK CUresult sl_space_release(CUmemGenericAllocationHandle handle);
SL_MUST_CHECK CUresult sl_space_map(
	uint64_t address, uint64_t bytes, CUmemGenericAllocationHandle handle);
SL_MUST_CHECK CUresult sl_space_unmap(uint64_t address, uint64_t bytes);
SL_MUST_CHECK CUresult sl_space_access(
	uint64_t address, uint64_t bytes, CUdevice device, CUmemAccess_flags flags);
/* The program's own access, which only host memory can have. */
SL_MUST_CHECK CUresult sl_space_host_access(
	uint64_t address, uint64_t bytes, CUmemAccess_flags flags);
SL_MUST_CHECK CUresult sl_space_retain(
	uint64_t address, CUmemGenericAllocationHandle *out);
SL_MUST_CHECK CUresult sl_space_export(CUmemGenericAllocationHandle handle, int *fd);
SL_MUST_CHECK CUresult sl_space_import(int fd, CUmemGenericAllocationHandle *out);
SL_MUST_CHECK CUresult sl_space_props(
	CUmemGenericAllocationHandle handle, CUmemAllocationProp *out);

/*
 * Pins [address, address + *bytes) for access by a device: *where is valid until
 * sl_space_unpin(*phys); *bytes is cut to the contiguous part. For pinned host memory *phys is
 * NULL. False: an address without access, which includes pageable memory.
 */
bool sl_space_pin(uint64_t address, CUdevice device, bool write, uint64_t *bytes,
	char **where, struct sl_phys **phys);
void sl_space_unpin(struct sl_phys *phys);
/*
 * Maps a handle's memory for copies only, for an array. *bytes is the handle's size, *prop its
 * properties. Pass the address, or one within it, to sl_space_array_unmap().
 */
SL_MUST_CHECK CUresult sl_space_array_map(CUmemGenericAllocationHandle handle,
	uint64_t *address, uint64_t *bytes, CUmemAllocationProp *prop);
void sl_space_array_unmap(uint64_t address);
/*
 * Copies bytes written at the address (now at `where`) to all memory bound to a multicast object
 * there. Nearly free if no such object exists.
 */
void sl_space_echo(uint64_t address, const char *where, uint64_t bytes);

/* Multicast objects, as the driver's calls of similar name. Offsets are checked for grains
 * already. */
SL_MUST_CHECK CUresult sl_space_multicast(
	const CUmulticastObjectProp *prop, CUmemGenericAllocationHandle *out);
SL_MUST_CHECK CUresult sl_space_multicast_add(
	CUmemGenericAllocationHandle handle, CUdevice device);
/* The memory to bind: a handle, or (mem 0) the mapping at ptr. device -1: any of the team. */
struct sl_space_bind {
	CUdevice device;
	uint64_t offset, bytes;
	CUmemGenericAllocationHandle mem;
	uint64_t mem_offset;
	CUdeviceptr ptr;
};
SL_MUST_CHECK CUresult sl_space_multicast_bind(
	CUmemGenericAllocationHandle handle, const struct sl_space_bind *bind);
SL_MUST_CHECK CUresult sl_space_multicast_unbind(CUmemGenericAllocationHandle handle,
	CUdevice device, uint64_t offset, uint64_t bytes);

enum sl_place {
	SL_PLACE_PAGEABLE,
	SL_PLACE_PINNED,
	SL_PLACE_MANAGED,
	SL_PLACE_DEVICE,
	SL_PLACE_NOWHERE
};
/* The kind of an address: NOWHERE is a device address without enough memory behind it. */
enum sl_place sl_space_place(uint64_t address, uint64_t bytes, CUdevice *device);

#endif
