/*
 * fairshare - how much of one resource each sibling may have
 *
 * Each row gets min(quota, usable), with usable = min(asks, limit). The rest is given by priority,
 * high first, and within a priority by weight, in rounds until nothing changes:
 *   n(i)     = weight(i) / sum of the weights of the rows that still want;
 *   part(i)  = max(0, n(i) + k (n(i) - usage(i)));
 *   gives(i) = rest x part(i) / sum of the parts.
 * A row that wants no more than gives(i) gets what it wants. Each other row gets floor(gives(i)) in
 * whole units; leftovers go unit by unit by largest remainder, then to the older project, then to
 * the smaller id. If that satisfies a row and still leaves something, all begins anew. Weight 0
 * never borrows. k = 1; usage is the share of past time that it used, 0 without history. (The rule
 * of KAI, with its facts and names. In addition, no row gets more than it wants, and nothing is
 * left over while a row may have it.)
 *
 * Rounding: everything is whole numbers. A part is n(i) times the sum of the weights, in
 * millionths; gives and the remainder are exact 128-bit fractions, rounded down once, to the unit.
 * So the answer is the same on every machine and for every order of the rows.
 *
 * What follows: the sum of the shares is at most max(total, sum of min(quota, usable)). No row is
 * above its usable; weight 0 stays within its quota; of two rows that differ only in weight, the
 * heavier has no less. A row that asks for more has no less if all amounts are whole units; a
 * fraction can cost less than a unit, because unsatisfied wants are rounded.
 *
 * Pure; no memory of its own.
 */
#ifndef SL_POLICY_QUOTA_FAIRSHARE_H
#define SL_POLICY_QUOTA_FAIRSHARE_H

#include "base/sl.h"

/* All of the past time. */
#define SL_FAIRSHARE_PPM 1000000u

/* 128 bits: rest (2^53) times part (2^21 x 2^32). */
__extension__ typedef unsigned __int128 sl_fairshare_wide;

struct sl_fairshare_row {
	int64_t quota, limit; /* -1: all, no limit; at most 2^53 */
	int64_t asks;         /* 0 to 2^53 */
	uint32_t weight;
	int32_t priority;
	/* Of the resource over the past time, in millionths; above 1 counts as 1 */
	uint32_t usage_ppm;
	uint64_t created, id;
	int64_t share; /* the answer */
	/* Working fields. */
	int64_t wants;
	uint64_t part;
	sl_fairshare_wide remainder;
	uint32_t order; /* of the row with this number: which row is here */
};

/* unit: leftovers are given in this (1000 thousandths of a GPU; 1 of the others), at least 1. total
 * >= 0. Quotas are given even if they sum to more than total: a guarantee is never cut. O(n log n)
 * per round; few rounds, n at worst. */
void sl_fairshare(
	struct sl_fairshare_row *rows, size_t count, int64_t total, int64_t unit);

#endif
