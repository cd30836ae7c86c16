/*
 * turns - who comes first when not all fit, and for how long
 *
 * Pure arithmetic: facts in, answers out. Bytes, and spans of time.
 *
 * Order of service: what is within a request, then higher priority, then who has wanted for
 * longest: equal ones thus go round.
 *
 * A turn is long enough that moving costs at most a tenth of it, and shared out by weight: with
 *   base(i)   = clamp(10 x cost(i), 200 ms, turn_max)
 *   unit      = the largest base(i) / weight(i) of those that compete
 *   turn(w)   = unit x weight(w)
 * everybody's turn is at least its own base. Where the largest weight's turn would be longer than
 * turn_max, the unit is cut so that it is turn_max: the others keep their ratio to it, at least 200
 * ms, and may then be shorter than their base. cost(i) is what moving all of i out and in takes;
 * weight(i) its request, or 5 % of what the GPU can share if that is more.
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
	uint64_t largest; /* weight of those that compete */
};

/* 5 % of shareable_bytes, or the request. */
uint64_t sl_turns_weight(uint64_t request_bytes, uint64_t shareable_bytes);
void sl_turns_join(
	struct sl_turns_unit *unit, sl_ns cost, uint64_t weight, sl_ns turn_max);
sl_ns sl_turns_length(const struct sl_turns_unit *unit, uint64_t weight, sl_ns turn_max);
/* How long a lower priority waits until it gets a turn all the same. */
sl_ns sl_turns_patience(sl_ns turn, uint32_t min_share_pm);

/* The part of a turn in which nobody of the same priority is taken, and how long somebody must have
 * had no work to count as idle: what moving costs, at least 20 ms. */
sl_ns sl_turns_first_part(sl_ns cost);

#endif
