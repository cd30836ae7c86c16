/*
 * pool - the host memory that evicted bytes live in, as arithmetic
 *
 * One per node; sizes are bytes. Promise I2 (design.md section 4) keeps room for everything that is
 * lent to be taken back:
 *
 *   evicted + leaving - returning + lent <= pool - slack
 *
 * lent is, per GPU, what stands on unclaimed requests once all that is told to leave has left:
 * max(0, resident + unclaimed - shareable). Memory that leaves a GPU where bytes are lent takes
 * the place of these, as far as it is above its workload's request: I2 counts it once.
 */
#ifndef SL_POLICY_BOOKS_POOL_H
#define SL_POLICY_BOOKS_POOL_H

#include "policy/books/ledger.h"

struct sl_pool {
	uint64_t pool_bytes, slack_bytes;
	uint64_t evicted_bytes;   /* on the host */
	uint64_t leaving_bytes;   /* told to leave: their place in the pool is taken */
	uint64_t returning_bytes; /* of evicted: have their room on a GPU already */
	int64_t lent_bytes[SL_LEDGER_GPUS_MAX]; /* below 0: so much more could be lent */
};

/* Bytes that the pool can still take at all: for demands within a request. */
uint64_t sl_pool_there(const struct sl_pool *pool);
/* Bytes that I2 leaves. */
uint64_t sl_pool_left(const struct sl_pool *pool);
/* How far the GPU may be lent out. */
uint64_t sl_pool_lend(const struct sl_pool *pool, uint32_t gpu);
/* Of burst_bytes that leave the GPU, those that take the place of what was lent there. */
uint64_t sl_pool_taken_back(
	const struct sl_pool *pool, uint32_t gpu, uint64_t burst_bytes);
/* The most that may leave the GPU, of a workload that has burst_bytes above its request there. */
uint64_t sl_pool_room(const struct sl_pool *pool, uint32_t gpu, uint64_t burst_bytes);

#endif
