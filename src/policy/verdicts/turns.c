/*
 * turns - see the header
 *
 * Products of a time and a weight can exceed 64 bits: weights count in MiB, and quotients are taken
 * of wider products. All sums saturate at SL_NS_NEVER.
 */
#include "policy/verdicts/turns.h"

#include "policy/mutant.h"

__extension__ typedef unsigned __int128 wide;

uint64_t sl_turns_weight(uint64_t request_bytes, uint64_t shareable_bytes)
{
	uint64_t weight = sl_max_u64(
		SL_MUTANT(TURN_UNWEIGHTED, request_bytes, 0), shareable_bytes / 20);

	return sl_max_u64(weight, 1);
}

void sl_turns_join(
	struct sl_turns_unit *unit, sl_ns cost, uint64_t weight, sl_ns turn_max)
{
	sl_ns base = cost > SL_NS_NEVER / 10 ? SL_NS_NEVER : 10 * cost;

	base = sl_max_u64(SL_MUTANT(TURN_IGNORES_COST, base, 0), SL_TURNS_LEAST);
	base = sl_min_u64(base, turn_max);
	if (!unit->weight || (wide)base * unit->weight > (wide)unit->base * weight) {
		unit->base = base;
		unit->weight = weight;
	}
	unit->largest = sl_max_u64(unit->largest, weight);
}

sl_ns sl_turns_length(const struct sl_turns_unit *unit, uint64_t weight, sl_ns turn_max)
{
	sl_ns least = sl_min_u64(SL_TURNS_LEAST, turn_max);
	wide turn;

	if (!unit->weight)
		return least;
	turn = (wide)unit->base * weight / unit->weight;
	/* The longest turn is cut, and all others in the same ratio. */
	if (SL_MUTANT(TURN_UNBOUNDED,
		    (wide)unit->base * unit->largest > (wide)turn_max * unit->weight,
		    false))
		turn = (wide)turn_max * weight / unit->largest;
	/* A workload that does not compete can weigh more than all that do. */
	if (SL_MUTANT(TURN_UNBOUNDED, turn > turn_max, turn > SL_NS_NEVER))
		return turn_max;
	return sl_max_u64((sl_ns)turn, least);
}

sl_ns sl_turns_patience(sl_ns turn, uint32_t min_share_pm)
{
	wide span =
		(wide)turn * 1000 / (min_share_pm ? min_share_pm : SL_TURNS_MIN_SHARE);

	return span > SL_NS_NEVER ? SL_NS_NEVER : (sl_ns)span;
}

sl_ns sl_turns_first_part(sl_ns cost)
{
	return sl_max_u64(SL_MUTANT(IDLE_AT_ANY_COST, cost, 0), 20 * SL_MS);
}
