/*
 * space_internal - what space.c, space_block.c and space_vmm.c share
 *
 * All of it under sl_space_lock.
 */
#ifndef SL_SOFTGPU_SPACE_INTERNAL_H
#define SL_SOFTGPU_SPACE_INTERNAL_H

#include "softgpu/space.h"

/* Rows begin with address and bytes, do not overlap, and are sorted by address. */
struct sl_table {
	void **row;
	unsigned count, room;
};
extern struct sl_table sl_reservations, sl_mappings, sl_blocks;
/* [from][to]: kernels of the first may use native memory of the second. */
extern bool sl_peer[SL_SOFTGPU_GPUS_MAX][SL_SOFTGPU_GPUS_MAX];

unsigned sl_table_lower(const struct sl_table *t, uint64_t address);
void *sl_table_find(const struct sl_table *t, uint64_t address);
bool sl_table_overlaps(const struct sl_table *t, uint64_t address, uint64_t bytes);
/* False: no memory. The row must not overlap another. */
SL_MUST_CHECK bool sl_table_insert(struct sl_table *t, void *row);
void sl_table_remove(struct sl_table *t, void *row);

/* 0: no place. */
uint64_t sl_space_reserve_locked(
	uint64_t bytes, uint64_t alignment, uint64_t hint, bool by_program);
void sl_space_unreserve_locked(struct sl_reservation *r);

SL_MUST_CHECK CUresult sl_phys_get(
	const struct sl_sg_request *q, int fd, struct sl_phys **out);
void sl_phys_unref(struct sl_phys *p);
SL_MUST_CHECK bool sl_phys_map_at(const struct sl_phys *p, char *at, int prot);

/* NULL: no memory. Takes a reference of its own to phys. */
struct sl_mapping *sl_mapping_new(
	uint64_t address, uint64_t bytes, struct sl_phys *phys, enum sl_map_kind kind);
void sl_mapping_drop(struct sl_mapping *m);
/* Brings the device's companion up to date with m->access. */
SL_MUST_CHECK CUresult sl_mapping_tell(struct sl_mapping *m, CUdevice device);
SL_MUST_CHECK CUresult sl_block_tell(const struct sl_block *b, bool map);

#endif
