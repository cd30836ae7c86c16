/*
 * extents - see extents.h
 */
#include "runtime/memory/extents.h"

#include <stdlib.h>
#include <string.h>

#define CAPACITY_FIRST 64

bool sl_extents_promise(struct sl_extents *set)
{
	size_t capacity = set->capacity ? 2 * set->capacity : CAPACITY_FIRST;
	struct sl_extent **more;

	if (set->count + set->promised == set->capacity) {
		more = realloc(set->at, capacity * sizeof(*more));
		if (!more)
			return false;
		set->at = more;
		set->capacity = capacity;
	}
	set->promised++;
	return true;
}

void sl_extents_unpromise(struct sl_extents *set)
{
	set->promised--;
}

/* The first extent that ends above address. */
static size_t index_from(const struct sl_extents *set, uint64_t address)
{
	size_t low = 0, high = set->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (sl_extent_end(set->at[middle]) > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

void sl_extents_put(struct sl_extents *set, struct sl_extent *extent)
{
	size_t i = index_from(set, extent->address);

	memmove(&set->at[i + 1], &set->at[i], (set->count - i) * sizeof(*set->at));
	set->at[i] = extent;
	set->count++;
	set->promised--;
}

void sl_extents_take(struct sl_extents *set, const struct sl_extent *extent)
{
	size_t i = index_from(set, extent->address);

	set->count--;
	memmove(&set->at[i], &set->at[i + 1], (set->count - i) * sizeof(*set->at));
}

struct sl_extent *sl_extents_from(const struct sl_extents *set, uint64_t address)
{
	size_t i = index_from(set, address);

	return i < set->count ? set->at[i] : NULL;
}

struct sl_extent *sl_extents_at(const struct sl_extents *set, uint64_t address)
{
	struct sl_extent *extent = sl_extents_from(set, address);

	return extent && extent->address <= address ? extent : NULL;
}

void sl_extents_forget(struct sl_extents *set)
{
	memset(set, 0, sizeof(*set));
}
