/*
 * least - NEEDED: no more leaves a GPU for others than they lack
 *
 * By brute force. Each client that is not told to leave now may be served in three ways: nothing,
 * its body, or its body and its demand. Each combination that fits on the GPUs is tried. All that
 * is told to leave is needed if one combination lacks that much: with one order less, or one unit
 * less of an order, it would not fit.
 */
#include "world.h"

#define HEAD_PASS SL_S

enum part { NOTHING, BODY, WITH_DEMAND, PARTS };

struct choice {
	enum part of[EXPLORE_CLIENTS];
	bool leaves[EXPLORE_CLIENTS]; /* was told so in this step */
	uint32_t gpu;
};

static bool may_be(const struct explore *x, const struct choice *choice, uint32_t i)
{
	const struct explore_client *c = &x->s.client[i];
	uint32_t workload = x->world->of[i];

	if (choice->of[i] == NOTHING)
		return true;
	if (choice->leaves[i] || !c->alive || c->expected || x->s.parked[workload])
		return false;
	if (choice->of[i] == WITH_DEMAND)
		return c->ask_units && !c->granted;
	return explore_wants_back(c) || x->s.returns[workload];
}

static uint32_t demand_of(
	const struct explore *x, const struct choice *choice, uint32_t i, uint32_t gpu)
{
	const struct explore_client *c = &x->s.client[i];

	return choice->of[i] == WITH_DEMAND && c->ask_gpu == gpu ? c->ask_units : 0;
}

static bool fits_together(const struct explore *x, const struct choice *choice)
{
	for (uint32_t gpu = 0; gpu < x->world->gpus; gpu++) {
		uint32_t sum = 0;

		for (uint32_t i = 0; i < x->world->clients; i++) {
			const struct explore_client *c = &x->s.client[i];

			if (choice->of[i] != NOTHING)
				sum += c->resident[gpu] + c->evicted[gpu] +
				       explore_unpaid(c, gpu) + explore_entry(x, c, gpu) +
				       demand_of(x, choice, i, gpu);
			else
				sum += explore_fixed(x, i, gpu);
		}
		if (sum > x->world->units)
			return false;
	}
	return true;
}

/* What grows in its slice has room made ahead: as much again as it has, within its limit. */
static uint32_t ahead_of(const struct explore *x, uint32_t i)
{
	const struct explore_client *c = &x->s.client[i];
	uint32_t use = explore_use(x, x->world->of[i], c->ask_gpu);

	return (uint32_t)sl_min_u64(
		use, sl_sub_sat(explore_workload_of(x, i)->limit, use + c->ask_units));
}

/* A burst that can never move again leaves the others their requests. */
static uint32_t unclaimed_for(const struct explore *x, uint32_t i, uint32_t gpu)
{
	const struct explore_client *c = &x->s.client[i];

	if (explore_is_entitled(x, i) ||
		!(c->ask_held || explore_workload_of(x, i)->flags & SL_WORKLOAD_NO_SWAP))
		return 0;
	return explore_unclaimed(x, gpu, x->world->of[i]);
}

/* A demand that has waited long keeps free memory, even while its client has to leave. */
static uint32_t kept_for(const struct explore *x, const struct choice *choice, uint32_t i)
{
	const struct explore_client *c = &x->s.client[i];
	uint32_t gpu = choice->gpu, kept = 0;

	if (choice->of[i] == WITH_DEMAND)
		return 0;
	if (c->ask_units && !c->granted && c->ask_gpu == gpu &&
		x->s.now >= c->asked_at + HEAD_PASS)
		kept += c->ask_units;
	if (choice->of[i] == NOTHING && explore_wants_back(c) &&
		(kept || x->s.now >= c->wants_at + HEAD_PASS))
		kept += c->evicted[gpu] - explore_returning(c, gpu);
	return kept;
}

/* Units that the choice lacks on the GPU, beyond what was free or on its way before. */
static uint32_t lack_of(const struct explore *x, const struct choice *choice)
{
	uint32_t gpu = choice->gpu, coming = x->world->units, kept = 0, wanted = 0,
		 there = explore_physical(x, gpu);

	for (uint32_t i = 0; i < x->world->clients; i++) {
		const struct explore_client *c = &x->s.client[i];
		uint32_t leaving = explore_leaving(c, gpu);

		coming += c->dying[gpu];
		kept += kept_for(x, choice, i);
		if (!choice->leaves[i] && !c->aborted)
			coming += leaving;
		if (choice->of[i] != NOTHING)
			wanted += c->evicted[gpu] - explore_returning(c, gpu) +
				  explore_entry(x, c, gpu) + (c->aborted ? 0 : leaving);
		if (demand_of(x, choice, i, gpu))
			wanted +=
				c->ask_units + ahead_of(x, i) + unclaimed_for(x, i, gpu);
	}
	wanted += there + sl_min_u64(kept, sl_sub_sat(coming, there));
	return (uint32_t)sl_sub_sat(wanted, coming);
}

static bool is_needed(const struct explore *x, struct choice *choice, uint32_t units)
{
	uint32_t all = 1;

	for (uint32_t i = 0; i < x->world->clients; i++)
		all *= PARTS;
	for (uint32_t n = 0; n < all; n++) {
		bool possible = true;

		for (uint32_t i = 0, rest = n; i < x->world->clients; i++) {
			choice->of[i] = (enum part)(rest % PARTS);
			rest /= PARTS;
			possible = possible && may_be(x, choice, i);
		}
		if (possible && fits_together(x, choice) && lack_of(x, choice) >= units)
			return true;
	}
	return false;
}

/* Until a client has reported all, its measured memory counts as well. */
static bool one_reports(const struct explore *x)
{
	bool any = false;

	for (uint32_t i = 0; i < x->world->clients; i++)
		any |= x->s.client[i].expected;
	return any;
}

void explore_judge_least(
	struct explore *x, const struct sl_action *actions, uint32_t count)
{
	if (one_reports(x))
		return;
	for (uint32_t gpu = 0; gpu < x->world->gpus; gpu++) {
		struct choice choice = {.gpu = gpu};
		uint32_t units = 0;

		for (uint32_t i = 0; i < count; i++) {
			const struct sl_action *a = &actions[i];
			uint32_t who = explore_index(x, a->evict.client);

			if (a->type != SL_ACTION_EVICT || a->evict.gpu != gpu ||
				!a->evict.other || who == EXPLORE_CLIENTS)
				continue;
			choice.leaves[who] = true;
			units += explore_leaving(&x->s.client[who], gpu);
		}
		if (units && !is_needed(x, &choice, units))
			explore_break(x, EXPLORE_NEEDED,
				"%u units are told to leave GPU %u, more than any lack "
				"that could be there together",
				units, gpu);
	}
}
