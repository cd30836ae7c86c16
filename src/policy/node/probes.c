/*
 * probes - who is to tell what it does, and who is to prove that it does nothing
 */
#include "policy/node/plan.h"

static enum sl_probe wanted(
	const struct sl_node *node, const struct sl_node_client *client)
{
	bool can_move = client->swaps && sl_node_swaps(node);
	uint32_t lacks = node->lacks & client->holding.touched;

	if (client->told & SL_NODE_TOLD_UNTAKEABLE)
		return SL_MUTANT(UNTAKEABLE_UNWATCHED, SL_PROBE_PROVE, SL_PROBE_OFF);
	if (can_move && lacks &&
		(client->probe == SL_PROBE_PROVE ||
			(client->idle_since && !client->proven)))
		return SL_MUTANT(NEVER_PROVES, SL_PROBE_PROVE, SL_PROBE_WATCH);
	if (can_move && client->workload->warm_after && client->idle_since &&
		!client->proven)
		return SL_PROBE_PROVE;
	if (client->condition != SL_CONDITION_RUNNING || client->order.id)
		return SL_PROBE_WATCH;
	if (can_move && (lacks || client->workload->warm_after))
		return SL_PROBE_WATCH;
	return sl_node_has(node, SL_RESOLVER_PRIORITY) ? SL_PROBE_WATCH : SL_PROBE_OFF;
}

void sl_node_probe(struct sl_node_step *step)
{
	struct sl_node *node = step->node;

	for (struct sl_index_node *at = sl_index_next(&node->clients, NULL); at;
		at = sl_index_next(&node->clients, at)) {
		struct sl_node_client *client = SL_NODE_ENTRY(at, sl_node_client);
		enum sl_probe mode = wanted(node, client);

		if (client->stage != SL_NODE_LIVES || mode == client->probe)
			continue;
		client->probe = mode;
		client->probe_at = sl_node_stamp(step);
		/* Nobody tells any more what it does: what was told must not go on by itself; but
		 * nothing of what is on the host runs before it wants to. */
		if (mode == SL_PROBE_OFF && client->look->is_whole) {
			client->idle_since = 0;
			client->proven = false;
		}
		sl_node_emit(step,
			(struct sl_action){.type = SL_ACTION_PROBE,
				.probe = {.client = client->index.id, .mode = mode}});
	}
}
