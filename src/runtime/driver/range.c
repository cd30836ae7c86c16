/*
 * range - see range.h
 *
 * Sorted by address. When the driver reserves addresses, nothing else is there. Entries that the
 * table still has for them were left by racing threads and are dropped.
 */
#include "runtime/driver/range.h"
#include "runtime/memory/extents.h"

#include <pthread.h>
#include <stdlib.h>

struct sl_range {
	struct sl_extent extent;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sl_extents ranges;

struct sl_range *sl_range_new(void)
{
	struct sl_range *range = calloc(1, sizeof(*range));
	bool promised;

	if (!range)
		return NULL;
	(void)pthread_mutex_lock(&lock);
	promised = sl_extents_promise(&ranges);
	(void)pthread_mutex_unlock(&lock);
	if (promised)
		return range;
	free(range);
	return NULL;
}

void sl_range_discard(struct sl_range *range)
{
	(void)pthread_mutex_lock(&lock);
	sl_extents_unpromise(&ranges);
	(void)pthread_mutex_unlock(&lock);
	free(range);
}

void sl_range_add(struct sl_range *range, uint64_t address, uint64_t bytes)
{
	struct sl_extent *stale;

	range->extent.address = address;
	range->extent.bytes = bytes;
	(void)pthread_mutex_lock(&lock);
	while ((stale = sl_extents_from(&ranges, address)) &&
		stale->address < address + bytes) {
		sl_extents_take(&ranges, stale);
		free(stale);
	}
	sl_extents_put(&ranges, &range->extent);
	(void)pthread_mutex_unlock(&lock);
}

struct sl_range *sl_range_take(uint64_t address)
{
	struct sl_extent *extent;

	(void)pthread_mutex_lock(&lock);
	extent = sl_extents_at(&ranges, address);
	if (extent) {
		sl_extents_take(&ranges, extent);
		ranges.promised++;
	}
	(void)pthread_mutex_unlock(&lock);
	return extent ? SL_CONTAINER_OF(extent, struct sl_range, extent) : NULL;
}

void sl_range_put_back(struct sl_range *range)
{
	sl_range_add(range, range->extent.address, range->extent.bytes);
}

void sl_range_drop(struct sl_range *range)
{
	sl_range_discard(range);
}

struct sl_range_counts sl_range_count(void)
{
	struct sl_range_counts counts;

	(void)pthread_mutex_lock(&lock);
	counts = (struct sl_range_counts){ranges.count, ranges.promised};
	(void)pthread_mutex_unlock(&lock);
	return counts;
}

void sl_range_forget(void)
{
	(void)pthread_mutex_init(&lock, NULL);
	sl_extents_forget(&ranges);
}
