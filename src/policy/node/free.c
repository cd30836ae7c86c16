/*
 * free - what a demand could have of a GPU now
 *
 * Unclaimed requests of others are not free for a burst, and free memory may be kept for earlier
 * claims.
 */
#include "policy/node/plan.h"

uint64_t sl_node_set_aside(
	const struct sl_node *node, const struct sl_node_claim *claim, uint32_t gpu)
{
	if (claim->is_over || !(claim->gpus >> gpu & 1))
		return 0;
	if (!claim->has_seat)
		return claim->reserved_bytes[gpu];
	if (!claim->demand)
		return sl_node_missing(node, claim->client, gpu);
	return claim->demand->gpu == gpu && !claim->demand->epoch ? claim->demand->bytes
								  : 0;
}

/* Free bytes that are kept for earlier claims. */
static uint64_t kept_before(
	const struct sl_node *node, const struct sl_node_claim *own, uint32_t gpu)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; own && node->plan->order[i] != own; i++)
		bytes += sl_node_set_aside(node, node->plan->order[i], gpu);
	return bytes;
}

uint64_t sl_node_promised(const struct sl_node *node, const struct sl_node_demand *demand)
{
	const struct sl_node_workload *own = demand->client->workload;
	bool stays = sl_node_stays_for_good(node, demand);
	bool stands = sl_node_has(node, SL_RESOLVER_PRIORITY) &&
		      !(demand->flags & SL_NODE_DEMAND_HELD) &&
		      !sl_node_is_fixed(node, own);
	uint64_t bytes = 0;

	sl_node_each_workload (other, node) {
		if (other != own && !(stands && other->priority > own->priority))
			bytes += sl_ledger_unclaimed(&other->account, demand->gpu);
	}
	return stays ? bytes : sl_sub_sat(bytes, sl_node_lend(node, demand->gpu));
}

uint64_t sl_node_free_for(const struct sl_node *node, const struct sl_node_demand *demand)
{
	uint64_t bytes = sl_ledger_free_bytes(&node->ledger, demand->gpu);

	if (sl_node_is_entitled(demand))
		return bytes;
	return sl_ledger_is_degraded(&node->ledger, demand->gpu)
		       ? 0
		       : sl_sub_sat(bytes, sl_node_promised(node, demand));
}

uint64_t sl_node_available(
	const struct sl_node *node, const struct sl_node_demand *demand)
{
	uint64_t bytes = sl_node_free_for(node, demand);
	uint64_t unkept = sl_sub_sat(sl_ledger_free_bytes(&node->ledger, demand->gpu),
		kept_before(node, sl_node_claim_of(node, demand->client, demand),
			demand->gpu));

	return sl_node_is_entitled(demand) ? bytes : sl_min_u64(bytes, unkept);
}
