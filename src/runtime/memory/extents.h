/*
 * extents - things that occupy a range of addresses, found by address
 *
 * An array of pointers, sorted by address. Finding is logarithmic; inserting and removing move all
 * later pointers (40,000 mappings: 10 us on average, where the driver's call takes 50 us and more).
 * Extents never overlap. Callers reserve room before they call the driver, so the result can always
 * be recorded. The caller locks. Bytes.
 */
#ifndef SL_RUNTIME_MEMORY_EXTENTS_H
#define SL_RUNTIME_MEMORY_EXTENTS_H

#include "base/sl.h"

/* The head of the caller's record. */
struct sl_extent {
	uint64_t address, bytes;
};

struct sl_extents {
	struct sl_extent **at;
	size_t count, capacity, promised;
};

/* Reserves room for one more. False: no host memory. */
SL_MUST_CHECK bool sl_extents_promise(struct sl_extents *set);
void sl_extents_unpromise(struct sl_extents *set);
/* Uses up a promise. The extent may not overlap another in the set. */
void sl_extents_put(struct sl_extents *set, struct sl_extent *extent);
/* Removes an extent of the set; its room is free again. */
void sl_extents_take(struct sl_extents *set, const struct sl_extent *extent);
/* The extent that contains address, or NULL. */
struct sl_extent *sl_extents_at(const struct sl_extents *set, uint64_t address);
/* The lowest extent that ends above address, or NULL: where a walk through a range begins. */
struct sl_extent *sl_extents_from(const struct sl_extents *set, uint64_t address);
/* In the child of a fork: empty; nothing is freed. */
void sl_extents_forget(struct sl_extents *set);

static inline uint64_t sl_extent_end(const struct sl_extent *extent)
{
	return extent->address + extent->bytes;
}

#endif
