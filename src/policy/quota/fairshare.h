/*
 * fairshare - who among siblings may have how much of one resource
 *
 * Each gets min(quota, what it can use), what it can use being min(asks, limit). The rest is given
 * by priority, high first, and within a priority by weight, in rounds until nothing changes:
 *   n(i)     = weight(i) / sum of the weights of those that still want
 *   part(i)  = max(0, n(i) + k (n(i) - usage(i)))
 *   gives(i) = rest x part(i) / sum of the parts
 * Who wants no more than gives(i) gets what it wants; the others get floor(gives(i)) in whole
 * units, and what is left over goes unit by unit: largest remainder first, then the older project,
 * then the smaller id. If that satisfies somebody and still leaves something, it all begins anew.
 * Weight 0 never borrows. k = 1; usage is the share of the time past that it used, 0 without
 * history. (The rule of KAI; facts and names as there. What ours does in addition: nobody is given
 * more than it wants, and nothing stays over while somebody may have it.)
 *
 * Rounding: all of it is whole numbers. A part is n(i) times the sum of the weights, in millionths;
 * gives and the remainder are exact fractions of 128 bits that are rounded down once, to the unit.
 * So the answer is the same on every machine, and does not depend on the order of the rows.
 *
 * What follows from the rule: the sum of the shares is at most max(total, sum of min(quota, what it
 * can use)); nobody is above what it can use; weight 0 stays within its quota; of two that differ
 * in nothing else the heavier has no less. Who asks for more has no less, where all amounts are
 * whole units; a fraction asked for can cost less than a unit, as what cannot be satisfied is
 * rounded.
 *
 * Pure; no memory of its own.
 */
#ifndef SL_POLICY_QUOTA_FAIRSHARE_H
#define SL_POLICY_QUOTA_FAIRSHARE_H

#include "base/sl.h"

/* The whole of the time past. */
#define SL_FAIRSHARE_PPM 1000000u

/* 128 bits: rest (2^53) times part (2^21 x 2^32). */
__extension__ typedef unsigned __int128 sl_fairshare_wide;

struct sl_fairshare_row {
	int64_t quota, limit; /* -1: all, no limit; at most 2^53 */
	int64_t asks;         /* 0 to 2^53 */
	uint32_t weight;
	int32_t priority;
	/* Of the resource over the time past, in millionths; above 1 counts as 1 */
	uint32_t usage_ppm;
	uint64_t created, id;
	int64_t share; /* the answer */
	/* Working fields. */
	int64_t wants;
	uint64_t part;
	sl_fairshare_wide remainder;
	uint32_t order; /* of the row with this number: which row stands here */
};

/* unit: what leftovers are given in (1000 thousandths of a GPU; 1 of the others), at least 1. total
 * >= 0. Quotas are given even where they sum to more than total: a guarantee is never cut. O(n log
 * n) for each round, of which there are few; n at worst. */
void sl_fairshare(
	struct sl_fairshare_row *rows, size_t count, int64_t total, int64_t unit);

#endif
