/*
 * ends - claims without a seat: which of them are denied
 *
 * Only demands are denied, and within a request only what the driver refuses for too long.
 */
#include "policy/node/plan.h"

static sl_ns wait_of(const struct sl_node *node, const struct sl_node_client *client)
{
	sl_ns own = SL_MUTANT(OWN_WAIT_IGNORED, client->workload->wait_max, 0);

	return own ? own : node->config.config.wait_max;
}

sl_ns sl_node_wait_end(const struct sl_node *node, const struct sl_node_claim *claim)
{
	const struct sl_node_demand *demand = claim->demand;
	sl_ns since = claim->client->wants_since;

	if (demand)
		since = demand->burst_since ? demand->burst_since : demand->arrived;
	return sl_node_later(since, wait_of(node, claim->client));
}

/* The driver has refused what is free for as long as a demand waits at most: that alone ends one
 * within its request. */
static bool is_refused_for_long(struct sl_node_step *step, struct sl_node_demand *demand)
{
	const struct sl_node *node = step->node;
	sl_ns at = sl_node_later(demand->back_off.since, node->config.config.wait_max);

	if (!demand->back_off.times ||
		SL_MUTANT(BURST_ONLY_BLAME, demand->burst_since != 0, true))
		return false;
	if (step->now < at) {
		sl_node_wake(step, at);
		return false;
	}
	if (demand->bytes <= sl_ledger_free_bytes(&node->ledger, demand->gpu))
		return true;
	demand->back_off = (struct sl_node_back_off){0};
	return false;
}

/* What its seat counts on may never come: of a driver that refuses, or that keeps what a dead
 * process had. */
static bool is_in_doubt(const struct sl_node *node, const struct sl_node_claim *claim)
{
	const struct sl_node_demand *demand = claim->demand;

	if (demand->back_off.times)
		return true;
	if (sl_node_has(node, SL_RESOLVER_PRIORITY) || claim->room.moves)
		return false;
	return demand->bytes > sl_ledger_free_bytes(&node->ledger, demand->gpu) +
				       node->plan->leaving_bytes[demand->gpu] ||
	       !sl_node_can_lend(node, claim);
}

/* Its turn comes. Nothing comes where it would fit and is kept waiting; nor, but for what ends by
 * itself, where nothing is moved. */
static bool comes(struct sl_node *node, struct sl_node_claim *claim)
{
	if (claim->has_seat || claim->verdict == SL_NODE_KEPT ||
		sl_node_endless(node, claim) != SL_ENDLESS_NOT)
		return false;
	return sl_node_swaps(node) || !sl_node_has(node, SL_RESOLVER_WAIT);
}

/* Why this burst is denied now; NONE: it waits. *late: by its longest wait, of which there is one
 * per plan and GPU. */
static enum sl_reason end_of(
	struct sl_node_step *step, struct sl_node_claim *claim, bool *late)
{
	const struct sl_node_demand *demand = claim->demand;
	sl_ns at = sl_node_wait_end(step->node, claim);

	if (comes(step->node, claim))
		return SL_REASON_NONE;
	*late = claim->has_seat || claim->verdict == SL_NODE_KEPT ||
		sl_node_has(step->node, SL_RESOLVER_WAIT);
	if (*late && step->now < at) {
		sl_node_wake(step, at);
		return SL_REASON_NONE;
	}
	if (step->node->plan->now.gpu[demand->gpu].degraded)
		return SL_REASON_GPU_DEGRADED;
	if (demand->back_off.times)
		return SL_REASON_DRIVER_REFUSES;
	return *late ? SL_REASON_WAITED_TOO_LONG : SL_REASON_NO_RESOLVER;
}

void sl_node_end_demand(
	struct sl_node_step *step, struct sl_node_claim *claim, enum sl_reason reason)
{
	sl_node_note_wait(step, claim->demand);
	sl_node_deny(step, claim->demand, reason);
	claim->demand = NULL;
	claim->is_over = true;
	/* What it barred may fit now. */
	sl_node_wake(step, step->now);
}

void sl_node_end_demands(struct sl_node_step *step)
{
	struct sl_node_plan *plan = step->node->plan;
	uint32_t denied = 0;

	for (uint32_t i = 0; i < plan->claims_count; i++) {
		struct sl_node_claim *claim = plan->order[i];
		enum sl_reason reason;
		bool late = false;
		uint32_t gpu;

		if (!claim->demand)
			continue;
		gpu = 1u << claim->demand->gpu;
		if (is_refused_for_long(step, claim->demand)) {
			sl_node_end_demand(step, claim, SL_REASON_DRIVER_REFUSES);
			continue;
		}
		if (!claim->demand->burst_since ||
			(claim->has_seat && !is_in_doubt(step->node, claim)))
			continue;
		reason = end_of(step, claim, &late);
		if (reason == SL_REASON_NONE || (late && denied & gpu))
			continue;
		denied |= late ? gpu : 0;
		sl_node_end_demand(step, claim, reason);
	}
}
