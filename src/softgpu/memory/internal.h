/*
 * internal - what space.c, space_block.c and space_vmm.c share
 *
 * All of it under sl_space_lock.
 */
#ifndef SL_SOFTGPU_MEMORY_INTERNAL_H
#define SL_SOFTGPU_MEMORY_INTERNAL_H

#include "softgpu/memory/space.h"

/* Rows begin with address and bytes, do not overlap, and are sorted by address. */
struct sl_table {
	void **row;
	unsigned count, room;
};
extern struct sl_table sl_reservations, sl_mappings, sl_blocks;
/* [from][to]: kernels of the first may access native memory of the second. */
extern bool sl_peer[SL_SOFTGPU_GPUS_MAX][SL_SOFTGPU_GPUS_MAX];

unsigned sl_table_lower(const struct sl_table *t, uint64_t address);
void *sl_table_find(const struct sl_table *t, uint64_t address);
bool sl_table_overlaps(const struct sl_table *t, uint64_t address, uint64_t bytes);
/* False: no memory. The row must not overlap another. */
SL_MUST_CHECK bool sl_table_insert(struct sl_table *t, void *row);
void sl_table_remove(struct sl_table *t, void *row);

/* 0: no free range. */
uint64_t sl_space_reserve_locked(
	uint64_t bytes, uint64_t alignment, uint64_t hint, bool by_program);
void sl_space_unreserve_locked(struct sl_reservation *r);

/* All handles with pages of a GPU: struct sl_phys.link. */
extern struct sl_link sl_phys_all;
SL_MUST_CHECK CUresult sl_phys_get(
	const struct sl_sg_request *q, int fd, struct sl_phys **out);
/* Host memory: new, or that of a memfd (kept by the caller). */
SL_MUST_CHECK CUresult sl_phys_host_new(uint64_t bytes, struct sl_phys **out);
SL_MUST_CHECK CUresult sl_phys_host_get(int fd, struct sl_phys **out);
void sl_phys_unref(struct sl_phys *p);
/* This process's own mapping of it, or NULL. */
char *sl_phys_alias(struct sl_phys *p);
SL_MUST_CHECK bool sl_phys_map_at(const struct sl_phys *p, char *at, int prot);

/* The handle's memory, or NULL. */
struct sl_phys *sl_handle_phys(CUmemGenericAllocationHandle handle);
/* Names a new handle; on failure drops phys. */
SL_MUST_CHECK CUresult sl_handle_new(
	struct sl_phys *phys, CUmemGenericAllocationHandle *out);

/* space_multicast.c: as sl_handle_phys(), but waits until a multicast object has all its
 * devices. */
struct sl_phys *sl_multicast_wait(CUmemGenericAllocationHandle handle);
void sl_multicast_free(struct sl_multicast *mc);
/* The memory bound at an offset for a device, and its size; NULL: none. */
struct sl_phys *sl_multicast_at(const struct sl_multicast *mc, CUdevice device,
	uint64_t offset, uint64_t *within, uint64_t *bytes);
SL_MUST_CHECK CUresult sl_multicast_tell(struct sl_mapping *m, CUdevice device);

/* NULL: out of memory. Takes a reference of its own to phys. */
struct sl_mapping *sl_mapping_new(
	uint64_t address, uint64_t bytes, struct sl_phys *phys, enum sl_map_kind kind);
void sl_mapping_drop(struct sl_mapping *m);
/* Gives the program itself access to host memory, or takes it. */
SL_MUST_CHECK CUresult sl_mapping_open(struct sl_mapping *m, CUmemAccess_flags flags);
/* Makes range and mapping for phys, whose reference is taken in every case. No device has access
 * yet. */
SL_MUST_CHECK CUresult sl_native_map(
	struct sl_phys *phys, enum sl_map_kind kind, struct sl_mapping **out);
/* Removes the mapping and its range. */
void sl_native_drop(struct sl_mapping *m);
SL_MUST_CHECK struct sl_block *sl_block_new(CUcontext ctx, enum sl_block_kind kind);
/* Frees a block and its own mapping. Blocks of a pool go back to the pool. */
void sl_block_drop(struct sl_block *b);
/* space_pool.c: frees empty chunks of pools on the device. */
void sl_pool_drop_device(CUdevice device);
/* A block of a chunk was freed at once. */
void sl_pool_block_gone(struct sl_mapping *chunk, const struct sl_block *b);
/* Brings the device's companion up to date with m->access. */
SL_MUST_CHECK CUresult sl_mapping_tell(struct sl_mapping *m, CUdevice device);
SL_MUST_CHECK CUresult sl_block_tell(const struct sl_block *b, bool map);

#endif
