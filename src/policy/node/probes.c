/*
 * probes - which clients must report what they do, and which must prove that they are idle
 */
#include "policy/node/plan.h"

/* After this wait, find out whether the memory in the way can be had back. */
#define PRESSED_AFTER (1 * SL_S)
/* A client that grows piece by piece lacks memory only at times: no probe is lowered sooner than
 * this. */
#define TOLD_FOR (1 * SL_S)

/* GPUs that a claim has waited for, for long enough. */
struct pressed {
	uint32_t by_entitled; /* within its request */
	uint32_t by_unseated;
};

static struct pressed find_pressed(struct sl_node_step *step)
{
	const struct sl_node_plan *plan = step->node->plan;
	struct pressed pressed = {0};

	for (uint32_t i = 0; i < plan->claims_count; i++) {
		const struct sl_node_claim *claim = plan->order[i];
		sl_ns at = sl_node_later(claim->facts.asked_at, PRESSED_AFTER);
		uint32_t gpus = claim->demand ? 1u << claim->demand->gpu : claim->gpus;

		if (claim->is_over || (claim->demand ? claim->demand->epoch != 0
						     : claim->client->look->is_whole))
			continue;
		if (!sl_node_has_come(step, at))
			continue;
		if (claim->entitled && step->node->config.config.untakeable_after)
			pressed.by_entitled |= gpus;
		if (!claim->has_seat)
			pressed.by_unseated |= gpus;
	}
	return pressed;
}

static bool is_in_the_way(const struct sl_node_client *client, uint32_t pressed)
{
	sl_each_gpu (gpu, client->holding.touched & pressed) {
		const struct sl_ledger_account *account = &client->workload->account;

		if (sl_ledger_live(&client->holding.cell[gpu]) &&
			sl_ledger_here(account, gpu) > sl_ledger_request(account, gpu))
			return true;
	}
	return false;
}

/* A park or return of the client takes long: probe the client, to find out what is in the way. */
static bool is_late(struct sl_node_step *step, const struct sl_node_client *client)
{
	sl_ns at = sl_node_later(client->order.since, PRESSED_AFTER);

	if (sl_node_is_parked(client->workload) && client->back_off.times)
		return true;
	return client->order.id && sl_node_has_come(step, at);
}

/* The client has been watched for a while and was never seen idle. Rests shorter than a pulse only
 * show by proof. */
static bool may_rest_unseen(struct sl_node_step *step,
	const struct sl_node_client *client, const struct pressed *pressed)
{
	return client->probe == SL_PROBE_WATCH && client->look->is_whole &&
	       client->holding.touched & pressed->by_unseated &&
	       sl_node_has_come(step, sl_node_later(client->probe_at, PRESSED_AFTER));
}

static enum sl_probe wanted(struct sl_node_step *step,
	const struct sl_node_client *client, const struct pressed *pressed)
{
	const struct sl_node *node = step->node;
	bool can_move = client->swaps && sl_node_swaps(node);
	uint32_t lacks = node->lacks & client->holding.touched;

	if (client->told & SL_NODE_TOLD_UNTAKEABLE)
		return SL_MUTANT(UNTAKEABLE_UNWATCHED, SL_PROBE_PROVE, SL_PROBE_OFF);
	if (client->look->proves || is_in_the_way(client, pressed->by_entitled))
		return SL_MUTANT(NEVER_PROVES, SL_PROBE_PROVE, SL_PROBE_WATCH);
	if (can_move && lacks &&
		(client->probe == SL_PROBE_PROVE ||
			(client->idle_since && !client->proven) ||
			may_rest_unseen(step, client, pressed)))
		return SL_MUTANT(NEVER_PROVES, SL_PROBE_PROVE, SL_PROBE_WATCH);
	if (client->condition != SL_CONDITION_RUNNING || is_late(step, client))
		return SL_PROBE_WATCH;
	if (can_move && lacks)
		return SL_PROBE_WATCH;
	if (client->swaps &&
		(client->workload->warm_after || client->workload->detach_after) &&
		node->config.config.pool_bytes)
		return SL_PROBE_WATCH;
	return sl_node_has(node, SL_RESOLVER_PRIORITY) ? SL_PROBE_WATCH : SL_PROBE_OFF;
}

static enum sl_probe mode_of(struct sl_node_step *step,
	const struct sl_node_client *client, const struct pressed *pressed)
{
	enum sl_probe mode = wanted(step, client, pressed);
	sl_ns at = sl_node_later(client->probe_at, TOLD_FOR);

	return mode < client->probe && !sl_node_has_come(step, at) ? client->probe : mode;
}

void sl_node_probe(struct sl_node_step *step)
{
	const struct sl_node_plan *plan = step->node->plan;
	struct pressed pressed = find_pressed(step);

	for (uint32_t i = 0; i < plan->all_count; i++) {
		struct sl_node_client *client = plan->all[i];
		enum sl_probe mode = mode_of(step, client, &pressed);

		if (client->stage == SL_NODE_EXPECTED || client->stage == SL_NODE_DYING ||
			mode == client->probe)
			continue;
		client->probe = mode;
		client->probe_at = sl_node_stamp(step);
		/* No reports follow, so the last one must not seem to continue. But an evicted
		 * client runs nothing before it wants to. */
		if (mode == SL_PROBE_OFF && !sl_node_is_out(client)) {
			client->idle_since = client->busy_since = 0;
			client->proven = false;
		}
		sl_node_emit(step,
			(struct sl_action){.type = SL_ACTION_PROBE,
				.probe = {.client = client->index.id, .mode = mode}});
	}
}
