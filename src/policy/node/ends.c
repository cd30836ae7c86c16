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
		since = claim->entitled ? demand->arrived : demand->burst_since;
	return sl_node_later(since, wait_of(node, claim->client));
}

/* The driver has refused for as long as a demand waits at most. */
static bool is_refused_for_long(
	struct sl_node_step *step, const struct sl_node_demand *demand)
{
	sl_ns at = sl_node_later(
		demand->back_off.since, wait_of(step->node, demand->client));

	if (!demand->back_off.times)
		return false;
	if (step->now < at)
		sl_node_wake(step, at);
	return step->now >= at;
}

/* Why this burst is denied now; NONE: it waits. *late: by its longest wait, of which there is one
 * per plan and GPU. */
static enum sl_reason end_of(
	struct sl_node_step *step, struct sl_node_claim *claim, bool *late)
{
	const struct sl_node_demand *demand = claim->demand;
	struct sl_node_client *client = claim->client;
	sl_ns at = sl_node_wait_end(step->node, claim);

	if (client->workload->flags & SL_WORKLOAD_OOM_FIRST &&
		!(client->told & SL_NODE_TOLD_OOM)) {
		client->told |= SL_NODE_TOLD_OOM;
		return SL_REASON_OOM_FIRST;
	}
	if (demand->flags & SL_NODE_DEMAND_HELD &&
		sl_node_never_held(step->node, demand) != SL_REASON_NONE)
		return SL_REASON_HELD_ON_REQUESTS;
	/* Its turn comes; but nothing comes where it would fit and is kept waiting. */
	if (sl_node_endless(step->node, claim) == SL_ENDLESS_NOT &&
		claim->verdict != SL_NODE_KEPT)
		return SL_REASON_NONE;
	if (!sl_node_has(step->node, SL_RESOLVER_WAIT))
		return SL_REASON_NO_RESOLVER;
	if (step->now < at) {
		sl_node_wake(step, at);
		return SL_REASON_NONE;
	}
	*late = true;
	return SL_REASON_WAITED_TOO_LONG;
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
		if (claim->has_seat || claim->entitled)
			continue;
		reason = end_of(step, claim, &late);
		if (reason == SL_REASON_NONE || (late && denied & gpu))
			continue;
		denied |= late ? gpu : 0;
		sl_node_end_demand(step, claim, reason);
	}
}
