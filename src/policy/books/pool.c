/*
 * pool - see the header
 *
 * Subtractions saturate: a pool that was made smaller than what it holds lends nothing until
 * it has emptied, and is no error.
 */
#include "policy/books/pool.h"
#include "policy/mutant.h"

uint64_t sl_pool_lend(const struct sl_pool *pool, uint64_t overlap_elsewhere_bytes)
{
	uint64_t usable =
		sl_sub_sat(pool->pool_bytes, SL_MUTANT(POOL_SLACK, pool->slack_bytes, 0));

	return sl_sub_sat(usable, pool->evicted_bytes + overlap_elsewhere_bytes);
}

int sl_pool_check(const struct sl_pool *pool, struct sl_error *err)
{
	if (pool->evicted_bytes <= pool->pool_bytes)
		return 0;
	sl_error_set(err, "pool: %llu bytes evicted into a pool of %llu",
		(unsigned long long)pool->evicted_bytes,
		(unsigned long long)pool->pool_bytes);
	return 1;
}
