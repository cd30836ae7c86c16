/*
 * fairshare - who among siblings may have how much of one resource
 *
 * Each gets min(quota, what it can use), what it can use being min(asks, limit). The rest is given by priority,
 * high first, and within a priority by weight, in rounds until nothing changes:
 *   n(i)     = weight(i) / sum of the weights of those that still want
 *   part(i)  = max(0, n(i) + k (n(i) - usage(i)))
 *   gives(i) = rest x part(i) / sum of the parts
 * Who wants no more than gives(i) gets what it wants; the others get floor(gives(i)) in whole units, and what
 * is left over goes unit by unit: largest remainder first, then the older project, then the smaller id.
 * Weight 0 never borrows. k = 1; usage is the share of the time past that it used, 0 without history.
 * (The rule of KAI; facts and names as there.)
 *
 * Pure; no memory of its own. Arithmetic in whole numbers and long double-free: deterministic everywhere.
 */
#ifndef SL_POLICY_QUOTA_FAIRSHARE_H
#define SL_POLICY_QUOTA_FAIRSHARE_H

#include "base/sl.h"

struct sl_fairshare_row {
	int64_t quota, limit; /* -1: all, no limit */
	int64_t asks;
	uint32_t weight;
	int32_t priority;
	uint32_t usage_ppm; /* of the resource over the time past, in millionths */
	uint64_t created, id;
	int64_t share; /* the answer */
	/* Working fields. */
	int64_t wants;
	uint64_t remainder;
};

/* unit: what leftovers are given in (1000 thousandths of a GPU; 1 of the others). total >= 0. Quotas are
 * given even where they sum to more than total: a guarantee is never cut. O(n^2) at worst. */
void sl_fairshare(
	struct sl_fairshare_row *rows, size_t count, int64_t total, int64_t unit);

#endif
