/*
 * pool - the host memory that evicted bytes live in, as arithmetic
 *
 * One per node. Sizes are bytes. Promise I2 (design.md section 4): what is evicted plus what
 * is lent on others' unclaimed requests never exceeds the pool less its slack, so that
 * everything lent can be taken back.
 */
#ifndef SL_POLICY_BOOKS_POOL_H
#define SL_POLICY_BOOKS_POOL_H

#include "base/error.h"

struct sl_pool {
	uint64_t pool_bytes, slack_bytes, evicted_bytes;
};

/* How far resident bytes plus unclaimed requests of one GPU may exceed its shareable bytes,
 * when they do so by overlap_elsewhere_bytes on the other GPUs together. */
uint64_t sl_pool_lend(const struct sl_pool *pool, uint64_t overlap_elsewhere_bytes);

/* 0, or 1 and why: more is evicted than the pool holds. */
SL_MUST_CHECK int sl_pool_check(const struct sl_pool *pool, struct sl_error *err);

#endif
