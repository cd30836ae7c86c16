/*
 * pool - arithmetic of the host memory that evicted bytes live in
 *
 * One per node; sizes are bytes. Promise I2 (design.md section 4) keeps room so that everything
 * lent can be taken back:
 *
 *   evicted + leaving - returning + lent <= pool - slack
 *
 * Per GPU, lent is what will stand on unclaimed requests once all leaving bytes have left: max(0,
 * resident + unclaimed - shareable). When burst memory leaves a GPU with lent bytes, it replaces
 * some of them. I2 counts these bytes once.
 */
#ifndef SL_POLICY_BOOKS_POOL_H
#define SL_POLICY_BOOKS_POOL_H

#include "policy/books/ledger.h"

struct sl_pool {
	uint64_t pool_bytes, slack_bytes;
	uint64_t evicted_bytes;   /* on the host */
	uint64_t leaving_bytes;   /* told to leave: their room in the pool is taken */
	uint64_t returning_bytes; /* of evicted: room on a GPU is reserved */
	/* Below 0: this much more could be lent */
	int64_t lent_bytes[SL_LEDGER_GPUS_MAX];
};

/* Bytes that the pool can still take at all, for demands within a request. */
uint64_t sl_pool_there(const struct sl_pool *pool);
/* Bytes that I2 leaves. */
uint64_t sl_pool_left(const struct sl_pool *pool);
/* How much of the GPU may be lent. */
uint64_t sl_pool_lend(const struct sl_pool *pool, uint32_t gpu);
/* Of burst_bytes that leave the GPU, those that replace lent bytes. */
uint64_t sl_pool_taken_back(
	const struct sl_pool *pool, uint32_t gpu, uint64_t burst_bytes);
/* The most that may leave the GPU of a workload with burst_bytes above its request there. */
uint64_t sl_pool_room(const struct sl_pool *pool, uint32_t gpu, uint64_t burst_bytes);

#endif
