/*
 * waits - the longest time that a workload may have to wait (design: MAX-WAIT), by the last plan
 *
 *   W(c) = before + patience + cost(c) + sum over competitors, where not all fit together:
 *          slice x row + cost + drain + trim.
 * row: how many of a workload's clients take turns among themselves. trim: 1s where copies of
 * resident chunks may be in the way on the host. For a claim within its request, only two kinds of
 * competitors count: those guarded now, with the first part of their slice, and, where requests are
 * crowded, others within theirs. The grace of a process told to end comes on top.
 */
#include "policy/node/plan.h"

#define FIRST_PART (200 * SL_MS)
#define TRIM       (1 * SL_S)

__extension__ typedef unsigned __int128 wide;

struct set {
	wide all, entitled, guarded; /* what each class adds, summed */
};

static uint32_t row_of(const struct sl_node_workload *workload)
{
	uint32_t clients = 0;

	if (workload->sums->fits_together)
		return 1;
	sl_node_each_client_of (client, workload)
		clients += client->stage != SL_NODE_DYING && client->look->gpus;
	return clients ? clients : 1;
}

/* Before another client moves: it finishes its work, and copies make room. */
static sl_ns before_moving(const struct sl_node *node)
{
	return node->config.config.evict_drain + (node->plan->trims ? TRIM : 0);
}

static wide adds(const struct sl_node *node, const struct sl_node_workload *workload)
{
	const struct sl_node_sums *sums = workload->sums;
	/* A running slice has the length that it began with. */
	sl_ns left = sl_sub_sat(workload->slice_ends, node->now);

	return (wide)sl_max_u64(sums->slice, left) * row_of(workload) + sums->cost +
	       before_moving(node);
}

static sl_ns span_of(wide span)
{
	return span > SL_NS_NEVER ? SL_NS_NEVER : (sl_ns)span;
}

/* Nothing is moved for its memory, or for what it asks for, before the longest wait is over. */
static bool waits_first(
	const struct sl_node *node, const struct sl_node_workload *workload)
{
	return sl_chain_is_before(
		       node->config.config.chain, SL_RESOLVER_WAIT, SL_RESOLVER_SWAP) ||
	       (!workload->sums->asks_within &&
		       SL_MUTANT(OWN_WAIT_UNTOLD,
			       sl_chain_is_before(sl_node_chain(node, workload),
				       SL_RESOLVER_WAIT, SL_RESOLVER_SWAP),
			       false));
}

static sl_ns wait_of(const struct sl_node *node, const struct sl_node_workload *workload,
	const struct set *set, bool crowded)
{
	const struct sl_node_sums *sums = workload->sums;
	wide span = (wide)sums->cost + before_moving(node);
	bool within = sums->is_within && sums->asks_within;

	if (!within && waits_first(node, workload))
		span += sl_node_wait_max(node, workload);

	if (within) {
		span += set->guarded;
		if (crowded)
			span += set->entitled - adds(node, workload);
		return span_of(span);
	}
	span += set->all - adds(node, workload);
	span += sl_node_patience_of(node, workload);
	return span_of(span);
}

/* It would fit if the host had memory for clients that could not leave for lack of it. */
static bool is_barred_by_host(
	const struct sl_node *node, const struct sl_node_claim *claim, uint32_t gpu)
{
	const struct sl_node_workload *own = claim->client->workload;
	uint64_t stays = node->plan->lasts.gpu[gpu].fixed_bytes -
			 own->sums->lasts.on[gpu].fixed_bytes;
	uint64_t need = sl_ledger_use(&own->account, gpu), hostless = 0;

	if (claim->demand && claim->demand->gpu == gpu)
		need += claim->demand->bytes;
	sl_node_each_client (client, node) {
		if (client->workload != own && sl_node_must_stay(client, node->now) &&
			client->look->lasts && sl_node_is_hostless(client, node->now))
			hostless += sl_ledger_evictable(&client->holding.cell[gpu]);
	}
	return hostless &&
	       stays - hostless + need <= node->plan->lasts.gpu[gpu].shareable_bytes;
}

static enum sl_endless cause_of(
	const struct sl_node *node, const struct sl_node_claim *claim)
{
	sl_each_gpu (gpu, claim->endless == SL_ENDLESS_STAYS ? claim->gpus : 0) {
		if (is_barred_by_host(node, claim, gpu))
			return SL_ENDLESS_HOST;
	}
	return claim->endless;
}

static void add_claim(
	struct sl_node *node, struct set sets[], const struct sl_node_claim *claim)
{
	struct sl_node_workload *workload = claim->client->workload;
	struct sl_node_sums *sums = workload->sums;
	struct set *set = &sets[sl_node_set_of(node->plan, workload)];

	/* A client that is there and never leaves does not wait and has no turns. */
	if (!claim->demand && claim->client->look->lasts &&
		!sl_node_must_stay(claim->client, node->now) &&
		!sl_node_is_out(claim->client))
		return;
	if (!sums->competes) {
		set->all += adds(node, workload);
		set->entitled += sums->is_within ? adds(node, workload) : 0;
	}
	sums->competes = true;
	if (claim->is_over)
		return;
	if (claim->rank.class == SL_RANK_GUARDED)
		set->guarded += FIRST_PART + sums->cost + before_moving(node);
	if (!sums->endless)
		sums->endless = cause_of(node, claim);
	if (claim->demand) {
		sums->asks_within &= claim->entitled;
	}
	sl_node_add_needs(node, claim, sums->needs_bytes);
}

/* It would not fit even alone. */
static bool is_too_large(
	const struct sl_node_plan *plan, const struct sl_node_workload *workload)
{
	sl_each_gpu (gpu, workload->sums->gpus) {
		if (sl_ledger_use(&workload->account, gpu) >
			plan->lasts.gpu[gpu].shareable_bytes)
			return true;
	}
	return false;
}

/* GPUs where a burst that stays asks, or comes back: it must leave requests room. */
static uint32_t held_gpus(const struct sl_node *node)
{
	const struct sl_node_plan *plan = node->plan;
	uint32_t gpus = 0;

	for (uint32_t i = 0; i < plan->claims_count; i++) {
		const struct sl_node_claim *claim = &plan->claims[i];

		if (claim->entitled || claim->is_over)
			continue;
		if (!claim->demand && claim->client->workload->account.stays &&
			sl_node_is_out(claim->client))
			gpus |= claim->gpus;
		else if (claim->demand && sl_node_stays_for_good(node, claim->demand))
			gpus |= 1u << claim->demand->gpu;
	}
	return SL_MUTANT(HELD_COUNT_ALONE, gpus, 0);
}

/* Sets of GPUs where not all claims fit beside what lasts, with what they must leave free. */
static uint32_t full_sets(const struct sl_node *node)
{
	const struct sl_node_plan *plan = node->plan;
	uint32_t full = 0, held = held_gpus(node);

	for (uint32_t gpu = 0; gpu < plan->now.gpus; gpu++) {
		uint64_t bytes = plan->lasts.gpu[gpu].fixed_bytes;

		sl_node_each_workload (workload, node) {
			const struct sl_node_sums *sums = workload->sums;
			const struct sl_room_share *lasts = &sums->lasts.on[gpu];

			bytes += sums->needs_bytes[gpu];
			if (held >> gpu & 1)
				bytes += sl_sub_sat(lasts->request_bytes,
					lasts->fixed_bytes + sums->needs_bytes[gpu]);
		}
		if (bytes > plan->lasts.gpu[gpu].shareable_bytes)
			full |= 1u << plan->set_of[gpu];
	}
	return full;
}

/* All claims would fit: it waits for memory that only the pool could take. */
static void tell_pool(const struct sl_node *node, const struct sl_node_claim *claim)
{
	struct sl_node_sums *sums = claim->client->workload->sums;
	struct sl_node_because because = {.workload = claim->client->workload->index.id};

	if (claim->is_over || sums->longest_wait ||
		!sl_node_waits_for_pool(node, claim, &because))
		return;
	sums->endless = because.reason == SL_REASON_POOL_WAITS ? SL_ENDLESS_POOL
							       : SL_ENDLESS_BOUND;
	sums->longest_wait = SL_NS_NEVER;
}

void sl_node_measure_waits(struct sl_node *node)
{
	struct sl_node_plan *plan = node->plan;
	struct set sets[SL_NODE_GPUS_MAX];
	uint32_t full;

	/* Without moving there are no turns. */
	if (!sl_node_swaps(node))
		return;
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++)
		sets[gpu] = (struct set){0};
	for (uint32_t i = 0; i < plan->claims_count; i++)
		add_claim(node, sets, plan->order[i]);
	full = full_sets(node);
	sl_node_each_workload (workload, node) {
		struct sl_node_sums *sums = workload->sums;
		uint32_t root = sl_node_set_of(plan, workload);

		if (!sums->competes || !(full >> root & 1))
			continue;
		if (!sums->fits_together && !sums->endless)
			sums->endless = is_too_large(plan, workload) ? SL_ENDLESS_WHOLE
								     : SL_ENDLESS_STAYS;
		sums->longest_wait = sums->endless ? SL_NS_NEVER
						   : wait_of(node, workload, &sets[root],
							     plan->crowded & sums->gpus);
	}
	for (uint32_t i = 0; i < plan->claims_count; i++)
		tell_pool(node, plan->order[i]);
}
