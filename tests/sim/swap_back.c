/*
 * swap_back - who was moved to the host for somebody's burst can change places with others again
 *
 * Whose memory is on the host comes back after as much of others' has gone there: for that the pool
 * must have room while both are there. How much one lacks may grow while turns go round, since
 * others leave in his stead; but never beyond what he has, nor, on any GPU, beyond what is on the
 * host of all together, which is the same after an exchange as before.
 */
#include <inttypes.h>

#include "swap_rules.h"

static uint64_t away_on(const struct swap_rules *r, uint32_t gpu)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];

		if (p->used && p->alive)
			sum += p->evicted[gpu] + swap_party_leaving(p, gpu);
	}
	return sum;
}

static uint64_t worst_of(const struct swap_rules *r, const struct swap_party *p,
	const struct swap_member *m)
{
	bool moves = p->swaps && !(m->flags & SL_WORKLOAD_NO_SWAP);
	uint64_t sum = 0;

	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		uint64_t most = p->evicted[gpu];

		if (moves)
			most = sl_max_u64(
				most, sl_sub_sat(p->backing[gpu], p->held[gpu]));
		sum += sl_min_u64(most, away_on(r, gpu));
	}
	return sum;
}

uint64_t swap_back_and_forth(struct swap_rules *r, uint32_t times)
{
	uint64_t away = 0, worst = 0;

	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		away += away_on(r, gpu);
		for (uint32_t i = 0; i < r->parties; i++) {
			const struct swap_party *p = &r->party[i];

			if (p->used && p->alive)
				away -= swap_party_returning(p, gpu);
		}
	}
	for (uint32_t i = 0; i < r->parties; i++) {
		const struct swap_party *p = &r->party[i];
		const struct swap_member *m = swap_member_of(r, p->workload);

		/* Who is parked stays there for as long as somebody says. */
		if (p->used && p->alive && m && !m->parked)
			worst = sl_max_u64(worst, worst_of(r, p, m));
	}
	return away + times * worst;
}

void swap_judge_way_back(
	struct swap_rules *r, const struct swap_party *p, const struct swap_member *other)
{
	uint64_t room = sl_sub_sat(r->pool, r->slack);
	uint64_t needs = swap_back_and_forth(r, 1);

	for (uint32_t i = 0; i < r->parties; i++) {
		/* It may be for who comes back himself. */
		if (r->party[i].workload == other->id && swap_party_wants(&r->party[i]))
			return;
	}
	if (needs > room)
		swap_rules_fail(r,
			"client %" PRIu64 " is evicted for a burst of workload %" PRIu64
			", and to change places with others afterwards the host needs "
			"%" PRIu64 " of %" PRIu64,
			p->id, other->id, needs, room);
}
