/*
 * pool_ask - what a growth of a pool is asked for; see pool.h
 *
 * A new call asks for
 *     used + pending + its own - max(charged, reserved) - granted
 * so it never counts on what another one was granted. When a call is done, charged falls to what
 * the driver says is reserved, or pending calls may yet take. What graphs made a pool reserve
 * beyond what was asked for is owed: the next launch that would ask nothing asks for it, or is
 * denied.
 *
 * Drivers take memory for a pool in chunks: of a least size, and large enough for the one
 * allocation that needs it. So that is what is asked for, and what comes of it teaches how this
 * pool grows. What a pool has reserved beyond what was asked for is measured as hidden bytes, and
 * asked for with its next growth.
 *
 * Memory that was freed on a stream still counts as used until the stream is there. If a demand is
 * denied, a synchronisation and a trim show what is used in truth, before the program hears of it.
 */
#include "runtime/driver/internal.h"
#include "runtime/driver/pool.h"

#include <errno.h>
#include <string.h>

/* A trim may turn a reserve that a demand counted on into free memory; then the rest is asked
 * for. */
#define ASKS_MAX 4

/* Under the lock: the growth is sure of what it needs, and others count it in. One that is still
 * asking is nobody's business: it may be denied. */
static void promise(struct sl_pool_growth *growth)
{
	growth->pool->pending_bytes += growth->bytes - growth->pending_bytes;
	growth->pending_bytes = growth->bytes;
	growth->pool->version++;
}

/* Under the lock, with what the driver said: what the reserve lacks. */
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

/* What the pool's reserve lacks for the growth; 0: it is promised. *unasked: what the pool has
 * reserved and nobody asked for. */
static uint64_t lacking(struct sl_pool_growth *growth, uint64_t *unasked)
{
	uint64_t used, reserved = 0, lack;
	bool known = sl_pool_used(growth->pool, &used) == CUDA_SUCCESS;

	*unasked = 0;
	/* The first time without the second question, which is seldom needed. */
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

/* What the driver will take, and what was not asked for earlier; that is measured, so it need not
 * be had. Nor, of a pool that nobody has seen grow, a whole chunk. */
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

/* The grant is the call's, and with it comes the promise, so that no other call counts on it; an
 * earlier one of the same call is the pool's from now on. */
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
		/* Before a denial is final everybody has given back what nobody uses: was it
		 * enough? */
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
		/* Out of memory in spite of the reserve is for us to help, too. */
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
