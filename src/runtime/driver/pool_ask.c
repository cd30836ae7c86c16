/*
 * pool_ask - what a growth of a pool asks for; see pool.h
 *
 * A new call asks for
 *    used + pending + its own - max(charged, reserved) - granted
 * so it never counts on bytes granted to another call. When a call is done, the charge falls to
 * what the driver reports as reserved plus what pending calls may yet take. If graphs made a pool
 * reserve more than was asked for, the rest is owed: the next launch that would ask for nothing
 * asks for the owed bytes, or is denied.
 *
 * Drivers take memory for a pool in chunks: of a minimum size, and large enough for the allocation.
 * We ask for such a chunk, and learn from the result how this pool grows. Bytes that a pool has
 * reserved beyond that are measured as hidden, and asked for with its next growth.
 *
 * Memory freed on a stream counts as used until the stream gets there. If a demand is denied, a
 * synchronisation and a trim show the true use before the program gets the error.
 */
#include "runtime/driver/internal.h"
#include "runtime/driver/pool.h"

#include <errno.h>
#include <string.h>

/* A trim may turn a reserve that a demand counted on into free memory; the rest is then asked
 * for. */
#define ASKS_MAX 4

/* Under the lock, once the growth has what it needs: from now on other growths count its bytes as
 * pending. Before that they do not, since the growth may still be denied. */
static void promise(struct sl_pool_growth *growth)
{
	growth->pool->pending_bytes += growth->bytes - growth->pending_bytes;
	growth->pending_bytes = growth->bytes;
	growth->pool->version++;
}

/* Under the lock: what the reserve lacks by the driver's figures. */
static uint64_t compare(struct sl_pool_growth *growth, uint64_t used, uint64_t reserved,
	uint64_t *unasked)
{
	struct sl_pool *pool = growth->pool;
	uint64_t have = sl_max_u64(pool->charged_bytes, reserved) + pool->granted_bytes;
	uint64_t wanted =
		used + pool->pending_bytes + growth->bytes - growth->pending_bytes;

	*unasked = sl_sub_sat(reserved, pool->charged_bytes + pool->granted_bytes);
	if (sl_unlikely(wanted <= have && pool->owed_bytes)) {
		/* Graphs on their way do not count as used yet, so the reserve may be theirs. */
		*unasked = 0;
		return pool->owed_bytes;
	}
	if (sl_likely(wanted <= have))
		promise(growth);
	return sl_sub_sat(wanted, have);
}

/* The bytes that the pool's reserve lacks for the growth. 0: none, and promise() was called.
 * *unasked: bytes that the pool has reserved beyond what was asked for. */
static uint64_t lacking(struct sl_pool_growth *growth, uint64_t *unasked)
{
	uint64_t used, reserved = 0, lack;
	bool known = sl_pool_used(growth->pool, &used) == CUDA_SUCCESS;

	*unasked = 0;
	/* The first round skips the second query, which is seldom needed. */
	for (int i = 0; i < 2; i++) {
		if (i == 1)
			known = known &&
				sl_pool_reserved(growth->pool, &reserved) == CUDA_SUCCESS;
		sl_pool_lock();
		lack = known ? compare(growth, used, reserved, unasked) : 0;
		if (!known)
			promise(growth);
		sl_pool_unlock();
		if (sl_likely(!lack))
			return 0;
	}
	growth->reserved_bytes = reserved;
	growth->lacking_bytes = lack;
	return lack;
}

static bool ask_once(struct sl_pool_growth *growth, uint64_t bytes, CUresult *result)
{
	return sl_passed_ask(
		&growth->passed, growth->pool->dev, bytes, SL_PASSED_HELD, result);
}

/* Asks for what the driver will take, plus `unasked`. If that is denied, asks again without
 * `unasked`, whose bytes are already measured as hidden. If that is denied, too, and the pool has
 * not been seen to grow, asks for less than a whole chunk. */
static bool ask_for(
	struct sl_pool_growth *growth, uint64_t bytes, uint64_t unasked, CUresult *result)
{
	struct sl_pool *pool = growth->pool;
	uint64_t chunk = bytes;
	bool learned;

	sl_pool_lock();
	learned = pool->learned;
	if (pool->in_chunks)
		chunk = sl_max_u64(chunk, sl_max_u64(growth->bytes, pool->chunk_bytes));
	sl_pool_unlock();
	if (ask_once(growth, chunk + unasked, result))
		return true;
	if (unasked && *result == CUDA_ERROR_OUT_OF_MEMORY &&
		ask_once(growth, chunk, result))
		return true;
	return !learned && bytes < chunk && *result == CUDA_ERROR_OUT_OF_MEMORY &&
	       ask_once(growth, bytes, result);
}

/* Records the grant as the call's and its bytes as pending in one step, so no other call counts on
 * them. keep_grant has made an earlier grant of the same call the pool's. */
static void enter_grant(struct sl_pool_growth *growth)
{
	sl_pool_lock();
	promise(growth);
	growth->pool->granted_bytes += growth->passed.bytes;
	growth->pool->owed_bytes =
		sl_sub_sat(growth->pool->owed_bytes, growth->passed.bytes);
	growth->granted_bytes = growth->passed.bytes;
	growth->pool->version++;
	sl_pool_unlock();
}

static void keep_grant(struct sl_pool_growth *growth)
{
	uint64_t bytes = growth->granted_bytes;

	if (!bytes)
		return;
	sl_passed_settle(&growth->passed, bytes);
	sl_pool_lock();
	growth->pool->granted_bytes -= bytes;
	growth->pool->charged_bytes += bytes;
	growth->granted_bytes = 0;
	sl_pool_unlock();
	memset(&growth->passed, 0, sizeof(growth->passed));
}

static bool ask_until_enough(struct sl_pool_growth *growth, CUresult *result)
{
	uint64_t denied_bytes = UINT64_MAX, unasked;
	uint64_t bytes = lacking(growth, &unasked);

	for (int i = 0; i < ASKS_MAX && sl_unlikely(bytes); i++) {
		/* Before a denial is final all unused memory has gone back: is that enough? */
		if (bytes >= denied_bytes)
			return false;
		keep_grant(growth);
		if (ask_for(growth, bytes, unasked, result))
			enter_grant(growth);
		else if (*result == CUDA_ERROR_OUT_OF_MEMORY)
			denied_bytes = bytes;
		else
			return false;
		bytes = lacking(growth, &unasked);
	}
	if (bytes && denied_bytes == UINT64_MAX) {
		sl_pool_lock();
		promise(growth);
		sl_pool_unlock();
		bytes = 0;
	}
	return bytes == 0;
}

bool sl_pool_ask(struct sl_pool_growth *growth, struct sl_pool *pool, uint64_t bytes,
	CUresult *result)
{
	int saved_errno = errno;
	bool ok;

	memset(growth, 0, sizeof(*growth));
	if (!pool)
		return true;
	growth->pool = pool;
	growth->bytes = bytes;
	ok = ask_until_enough(growth, result);
	if (ok) {
		/* Out of memory in spite of the reserve: retry as for other memory. */
		if (!growth->granted_bytes) {
			memset(&growth->passed, 0, sizeof(growth->passed));
			growth->passed.flags = SL_PASSED_HELD;
		}
		growth->passed.gpu = pool->gpu;
	} else {
		growth->passed.gpu = NULL;
		growth->passed.bytes = 0;
		sl_pool_done(growth);
	}
	errno = saved_errno;
	return ok;
}

bool sl_pool_again(struct sl_pool_growth *growth, CUresult *result)
{
	return growth->pool && sl_passed_again(&growth->passed, result);
}

void sl_pool_done(struct sl_pool_growth *growth)
{
	struct sl_pool *pool = growth->pool;
	uint64_t unused, surplus;
	int saved_errno = errno;

	if (!pool)
		return;
	surplus = sl_pool_lower(pool, growth, growth->passed.bytes, &unused);
	sl_passed_settle(&growth->passed, growth->passed.bytes - unused);
	if (surplus)
		sl_passed_free(pool->gpu, surplus, SL_PASSED_HELD);
	sl_pool_leave(pool);
	growth->pool = NULL;
	errno = saved_errno;
}
