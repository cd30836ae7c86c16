/*
 * turns - how long turns are when not all workloads fit
 *
 * Pure arithmetic on bytes and spans of time. verdicts/rank.h has the order.
 *
 * Moving costs at most a tenth of a turn, and turns are shared out by weight:
 *   base(i)   = clamp(10 x cost(i), 200 ms, turn_max);
 *   unit      = the largest base(i) / weight(i) of the competitors;
 *   turn(w)   = unit x weight(w).
 * So every turn is at least its own base. If the turn of the largest weight would exceed turn_max,
 * the unit is cut so that it equals turn_max. The others keep their ratio to it, at least 200 ms,
 * and may then be shorter than their base. cost(i): moving all of i out and in; weight(i): its
 * request, or 5 % of what the GPU can share if that is more.
 */
#ifndef SL_POLICY_TURNS_H
#define SL_POLICY_TURNS_H

#include "base/clock.h"

#define SL_TURNS_LEAST   (200 * SL_MS)
#define SL_TURNS_DEFAULT (10 * SL_S)
/* In thousandths of the time. */
#define SL_TURNS_MIN_SHARE 50

/* The unit of a set; zero-initialise. */
struct sl_turns_unit {
	sl_ns base;
	uint64_t weight;
	uint64_t largest; /* weight of the competitors */
};

/* 5 % of shareable_bytes, or the request. */
uint64_t sl_turns_weight(uint64_t request_bytes, uint64_t shareable_bytes);
void sl_turns_join(
	struct sl_turns_unit *unit, sl_ns cost, uint64_t weight, sl_ns turn_max);
sl_ns sl_turns_length(const struct sl_turns_unit *unit, uint64_t weight, sl_ns turn_max);
/* How long a lower priority waits at most until it gets a turn. */
sl_ns sl_turns_patience(sl_ns turn, uint32_t min_share_pm);

/* The first part of a turn, in which an equal priority takes nothing; also the time without work
 * after which a client counts as idle. It is the cost of moving, at least 20 ms. */
sl_ns sl_turns_first_part(sl_ns cost);

#endif
