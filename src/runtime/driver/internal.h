/*
 * internal - a pool's record, which pool.c and pool_ask.c share
 *
 * Bytes of a pool: charged ones are settled with the daemon; granted ones belong to calls under
 * way; pending ones are what those calls may take. One lock for all pools, never held during a
 * driver call or a demand.
 */
#ifndef SL_RUNTIME_DRIVER_INTERNAL_H
#define SL_RUNTIME_DRIVER_INTERNAL_H

#include "base/cuda_types.h"
#include "base/list.h"
#include "base/sl.h"

struct sl_gpu;
struct sl_pool_growth;
struct sl_stock;

struct sl_pool {
	struct sl_link link;
	bool of_graphs;
	CUmemoryPool handle; /* not of a graph pool */
	CUdevice dev;
	struct sl_gpu *gpu;     /* NULL: not charged */
	struct sl_stock *stock; /* has the pool's memory; NULL: the driver has */
	bool homeless;          /* charged to the first context that uses it */
	uint32_t users;
	bool gone;
	bool watched;
	uint32_t version; /* counts beginnings and ends of calls */
	uint64_t charged_bytes, granted_bytes, pending_bytes;
	/* Graph pools: reserved beyond what was asked for, when last looked at */
	uint64_t owed_bytes;
	bool learned; /* from its own growth, the two below: */
	bool in_chunks; /* it grows by chunks of at least chunk_bytes, else by what it lacks */
	uint64_t chunk_bytes;     /* the smallest chunk */
	uint64_t threshold_bytes; /* a synchronisation leaves this much reserved */
};

void sl_pool_lock(void);
void sl_pool_unlock(void);

/* The number of pools with charged bytes, and the n-th of them (marked as in use) or NULL. Walk
 * from the last to the first: when a pool's charge falls to 0, only later pools change their
 * number. */
size_t sl_pool_count_charged(void);
struct sl_pool *sl_pool_nth_charged(size_t n);
uint64_t sl_pool_all_charged(void);

/* As the driver says. */
SL_MUST_CHECK CUresult sl_pool_used(const struct sl_pool *pool, uint64_t *bytes);
SL_MUST_CHECK CUresult sl_pool_reserved(const struct sl_pool *pool, uint64_t *bytes);

/* Lowers the charge to what is reserved (by the driver) plus pending. growth (may be NULL) is a
 * growth whose call is over: of the `grant` bytes it was granted, all but *unused become charged.
 * Returns the bytes to give back in addition to *unused. */
uint64_t sl_pool_lower(struct sl_pool *pool, struct sl_pool_growth *growth,
	uint64_t grant, uint64_t *unused);

#endif
