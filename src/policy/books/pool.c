/*
 * pool - see the header
 *
 * Subtractions saturate. A pool may become smaller than its content: it then lends nothing until
 * enough has left it.
 */
#include "policy/books/pool.h"
#include "policy/mutant.h"

static uint64_t lent_on(const struct sl_pool *pool, uint32_t gpu)
{
	return pool->lent_bytes[gpu] > 0 ? (uint64_t)pool->lent_bytes[gpu] : 0;
}

/* Evicted and leaving bytes, without those that have room on a GPU. */
static uint64_t away(const struct sl_pool *pool)
{
	return sl_sub_sat(
		pool->evicted_bytes + pool->leaving_bytes, pool->returning_bytes);
}

/* What I2 bounds, without what is lent on one GPU. */
static uint64_t claims(const struct sl_pool *pool, uint32_t but)
{
	uint64_t bytes = away(pool);

	for (uint32_t gpu = 0; gpu < SL_LEDGER_GPUS_MAX; gpu++)
		bytes += gpu == but ? 0 : lent_on(pool, gpu);
	return bytes;
}

static uint64_t usable(const struct sl_pool *pool)
{
	return sl_sub_sat(pool->pool_bytes, SL_MUTANT(POOL_SLACK, pool->slack_bytes, 0));
}

uint64_t sl_pool_there(const struct sl_pool *pool)
{
	return SL_MUTANT(POOL_OVERFILLED,
		sl_sub_sat(pool->pool_bytes, pool->evicted_bytes + pool->leaving_bytes),
		SL_LEDGER_BYTES_MAX);
}

uint64_t sl_pool_left(const struct sl_pool *pool)
{
	return sl_sub_sat(usable(pool), claims(pool, SL_LEDGER_GPUS_MAX));
}

uint64_t sl_pool_lend(const struct sl_pool *pool, uint32_t gpu)
{
	return sl_sub_sat(usable(pool), claims(pool, gpu));
}

uint64_t sl_pool_taken_back(
	const struct sl_pool *pool, uint32_t gpu, uint64_t burst_bytes)
{
	return sl_min_u64(burst_bytes, lent_on(pool, gpu));
}

uint64_t sl_pool_room(const struct sl_pool *pool, uint32_t gpu, uint64_t burst_bytes)
{
	uint64_t room = sl_pool_left(pool) + sl_pool_taken_back(pool, gpu, burst_bytes);

	return sl_min_u64(sl_pool_there(pool),
		SL_MUTANT(EVICTS_BEYOND_I2, room, SL_LEDGER_BYTES_MAX));
}
