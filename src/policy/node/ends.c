/*
 * ends - which claims without a seat are denied
 *
 * Only demands are denied; within a request, only those that the driver refuses for too long.
 */
#include "policy/node/plan.h"

sl_ns sl_node_wait_max(
	const struct sl_node *node, const struct sl_node_workload *workload)
{
	sl_ns own = SL_MUTANT(OWN_WAIT_IGNORED, workload->wait_max, 0);

	return own ? own : node->config.config.wait_max;
}

uint32_t sl_node_chain_of(const struct sl_node *node, const struct sl_node_claim *claim)
{
	return claim->demand && SL_MUTANT(OWN_CHAIN_WITHIN, !claim->entitled, true)
		       ? sl_node_chain(node, claim->client->workload)
		       : node->config.config.chain;
}

bool sl_node_comes(struct sl_node *node, struct sl_node_claim *claim)
{
	return sl_node_endless(node, claim) == SL_ENDLESS_NOT &&
	       (!sl_node_swaps(node) ||
		       SL_MUTANT(COMES_WITHOUT_SWAP,
			       sl_chain_has(
				       sl_node_chain_of(node, claim), SL_RESOLVER_SWAP),
			       true));
}

static sl_ns demand_end(const struct sl_node *node, const struct sl_node_demand *demand)
{
	sl_ns since = demand->burst_since ? demand->burst_since : demand->arrived;

	return sl_node_later(since, sl_node_wait_max(node, demand->client->workload));
}

sl_ns sl_node_wait_end(const struct sl_node *node, const struct sl_node_claim *claim)
{
	sl_ns since = claim->client->wants_since;

	if (claim->demand)
		return demand_end(node, claim->demand);
	/* A client that does not want to come back yet has not waited. */
	return sl_node_later(since ? since : node->now,
		sl_node_wait_max(node, claim->client->workload));
}

sl_ns sl_node_refused_until(
	const struct sl_node *node, const struct sl_node_demand *demand)
{
	return sl_min_u64(demand->back_off.until, demand_end(node, demand));
}

/* The driver has refused free memory for the longest wait. Only this ends a demand within its
 * request. */
static bool is_refused_for_long(struct sl_node_step *step, struct sl_node_demand *demand)
{
	const struct sl_node *node = step->node;
	sl_ns at = sl_node_later(demand->back_off.since, node->config.config.wait_max);

	if (!demand->back_off.times ||
		SL_MUTANT(BURST_ONLY_BLAME, demand->burst_since != 0, true))
		return false;
	if (!sl_node_has_come(step, at))
		return false;
	if (demand->bytes <= sl_ledger_free_bytes(&node->ledger, demand->gpu))
		return true;
	demand->back_off.times = 0;
	return false;
}

/* The demand's seat counts on bytes that may never come, because the driver refuses it or keeps a
 * dead process's memory. seats_bytes: of earlier demands with seats, which are served first. */
static bool is_in_doubt(const struct sl_node *node, const struct sl_node_claim *claim,
	uint64_t seats_bytes)
{
	const struct sl_node_demand *demand = claim->demand;

	if (demand->back_off.times)
		return true;
	if (sl_chain_has(sl_node_chain_of(node, claim), SL_RESOLVER_PRIORITY) ||
		claim->room.moves)
		return false;
	return seats_bytes + demand->bytes >
		       sl_ledger_free_bytes(&node->ledger, demand->gpu) +
			       node->plan->leaving_bytes[demand->gpu] ||
	       !sl_node_can_lend(node, claim);
}

/* Why this burst is denied now; NONE: it waits. */
static enum sl_reason end_of(struct sl_node_step *step, struct sl_node_claim *claim)
{
	struct sl_node *node = step->node;
	const struct sl_node_demand *demand = claim->demand;
	bool fits = claim->has_seat || claim->verdict == SL_NODE_KEPT;
	bool comes = !fits && sl_node_comes(node, claim);
	sl_ns at = sl_node_wait_end(node, claim);
	bool late;

	/* If memory can be moved, its turn comes. */
	if (comes && sl_node_swaps(node))
		return SL_REASON_NONE;
	/* Otherwise processes that end by themselves may serve it, or earlier claims. */
	late = fits || comes ||
	       sl_chain_has(sl_node_chain_of(node, claim), SL_RESOLVER_WAIT);
	if (late && !sl_node_has_come(step, at))
		return SL_REASON_NONE;
	if (node->plan->now.gpu[demand->gpu].degraded)
		return SL_REASON_GPU_DEGRADED;
	if (demand->back_off.times)
		return SL_REASON_DRIVER_REFUSES;
	return late ? SL_REASON_WAITED_TOO_LONG : SL_REASON_NO_RESOLVER;
}

void sl_node_end_demand(
	struct sl_node_step *step, struct sl_node_claim *claim, enum sl_reason reason)
{
	sl_node_deny(step, claim->demand, reason);
	claim->demand = NULL;
	claim->is_over = true;
	step->node->plan->is_stale |= claim->has_seat || claim->reserves;
	/* What it was in the way of may fit now. */
	sl_node_wake(step, step->now);
}

/* True: a burst was denied. */
static bool end(
	struct sl_node_step *step, struct sl_node_claim *claim, uint64_t seats_bytes)
{
	enum sl_reason reason;

	if (is_refused_for_long(step, claim->demand)) {
		sl_node_end_demand(step, claim, SL_REASON_DRIVER_REFUSES);
		return false;
	}
	if (!claim->demand->burst_since ||
		(claim->has_seat && !is_in_doubt(step->node, claim, seats_bytes)))
		return false;
	reason = end_of(step, claim);
	if (reason == SL_REASON_NONE)
		return false;
	sl_node_end_demand(step, claim, reason);
	return true;
}

/* Denies one burst per plan: without it the others may be served. */
void sl_node_end_demands(struct sl_node_step *step)
{
	struct sl_node_plan *plan = step->node->plan;
	uint64_t seats_bytes[SL_NODE_GPUS_MAX] = {0};

	for (uint32_t i = 0; i < plan->claims_count; i++) {
		struct sl_node_claim *claim = plan->order[i];

		if (claim->demand && end(step, claim, seats_bytes[claim->demand->gpu]))
			return;
		if (claim->demand && claim->has_seat)
			seats_bytes[claim->demand->gpu] += claim->demand->bytes;
	}
}
