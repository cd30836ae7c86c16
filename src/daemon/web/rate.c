/*
 * rate - see the header
 *
 * A bucket stores when it will be full again, so nothing needs to refill it.
 */
#include "daemon/web/rate.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>

#define BUCKETS 1024 /* a power of two */

struct sl_page_rate {
	pthread_mutex_t mutex;
	sl_ns each, room; /* time for one, and for a full bucket */
	uint64_t salt;
	sl_ns full_at[BUCKETS];
};

struct sl_page_rate *sl_page_rate_new(uint32_t per_second, uint32_t burst)
{
	struct sl_page_rate *rate = calloc(1, sizeof(*rate));

	if (!rate)
		return NULL;
	(void)pthread_mutex_init(&rate->mutex, NULL);
	rate->each = SL_S / per_second;
	rate->room = rate->each * burst;
	if (getrandom(&rate->salt, sizeof(rate->salt), GRND_NONBLOCK) < 0)
		rate->salt = sl_clock_now();
	return rate;
}

struct sl_page_rate *sl_page_rate_free(struct sl_page_rate *rate)
{
	if (!rate)
		return NULL;
	(void)pthread_mutex_destroy(&rate->mutex);
	free(rate);
	return NULL;
}

bool sl_page_rate_take(struct sl_page_rate *rate, uint64_t key, sl_ns now)
{
	uint64_t hash = (key + 1) * 0x9e3779b97f4a7c15ull ^ rate->salt;
	sl_ns *full_at;
	bool left;

	hash ^= hash >> 29;
	hash *= 0xbf58476d1ce4e5b9ull;
	full_at = &rate->full_at[(hash >> 32) & (BUCKETS - 1)];
	(void)pthread_mutex_lock(&rate->mutex);
	*full_at = sl_max_u64(*full_at, now);
	left = *full_at + rate->each <= now + rate->room;
	if (left)
		*full_at += rate->each;
	(void)pthread_mutex_unlock(&rate->mutex);
	return left;
}
