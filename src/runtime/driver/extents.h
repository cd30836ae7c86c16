/*
 * extents - things that occupy a range of addresses, found by address
 *
 * An array of pointers, sorted by address: finding takes the logarithm, putting and taking move
 * what lies behind (40,000 mappings: 10 us on average, where the driver's call takes 50 and more).
 * Things never overlap. Room is promised before the driver is called, so that what it has done can
 * always be remembered. The caller locks. Bytes.
 */
#ifndef SL_RUNTIME_DRIVER_EXTENTS_H
#define SL_RUNTIME_DRIVER_EXTENTS_H

#include "base/sl.h"

/* The head of the caller's record. */
struct sl_extent {
	uint64_t address, bytes;
};

struct sl_extents {
	struct sl_extent **at;
	size_t count, capacity, promised;
};

/* Room for one more. False: no host memory. */
SL_MUST_CHECK bool sl_extents_promise(struct sl_extents *set);
void sl_extents_unpromise(struct sl_extents *set);
/* Uses up a promise. Nothing in the set may overlap it. */
void sl_extents_put(struct sl_extents *set, struct sl_extent *extent);
/* It is in the set; its room is free again. */
void sl_extents_take(struct sl_extents *set, const struct sl_extent *extent);
/* The one that contains address, or NULL. */
struct sl_extent *sl_extents_at(const struct sl_extents *set, uint64_t address);
/* The one that ends above address and begins lowest, or NULL: where a walk through a range
 * begins. */
struct sl_extent *sl_extents_from(const struct sl_extents *set, uint64_t address);
/* In the child of a fork: empty; nothing is freed. */
void sl_extents_forget(struct sl_extents *set);

static inline uint64_t sl_extent_end(const struct sl_extent *extent)
{
	return extent->address + extent->bytes;
}

#endif
