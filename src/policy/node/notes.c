/*
 * notes - what is told once about waits
 *
 * After 1s: why a demand waits. At once: the pool has no room for what would have to leave for a
 * wait. When slices first matter: a workload's slices are short for the cost of moving it.
 */
#include "policy/node/plan.h"

#define NOTE_AFTER (1 * SL_S)

void sl_node_note_wait(struct sl_node_step *step, struct sl_node_demand *demand)
{
	bool is_context = demand->flags & SL_NODE_DEMAND_CONTEXT;
	/* While reports are missing, the use is unknown. */
	bool entitled = step->node->recover_until ? !demand->burst_since
						  : sl_node_is_entitled(demand);
	uint32_t said =
		is_context || entitled ? SL_NODE_SAID_ENTITLED : SL_NODE_SAID_BURST;
	sl_ns at = sl_node_later(demand->arrived, NOTE_AFTER);
	struct sl_node_because because;

	if (SL_MUTANT(NO_NOTE, demand->told & said, true) || !sl_node_has_come(step, at))
		return;
	because = is_context ? sl_node_context_because(step->node, demand)
			     : sl_node_waits_because(step->node, demand);
	demand->told |= said;
	sl_node_note_because(step, &because);
}

/* The pool has no room for it, and will not if nothing changes. */
static bool pool_because(const struct sl_node *node, const struct sl_node_claim *claim,
	struct sl_node_because *because)
{
	const struct sl_node_demand *demand = claim->demand;
	uint32_t gpu;

	if ((claim->endless != SL_ENDLESS_POOL && claim->endless != SL_ENDLESS_BOUND) ||
		claim->has_seat || claim->verdict != SL_NODE_LACKS ||
		(claim->room.code != SL_ROOM_POOL && claim->room.code != SL_ROOM_BOUND))
		return false;
	gpu = demand ? demand->gpu : (uint32_t)__builtin_ctz(claim->gpus);
	*because = (struct sl_node_because){.gpu = gpu,
		.workload = claim->client->workload->index.id,
		.client = claim->client->index.id,
		.bytes = demand ? demand->bytes
				: sl_node_missing(node, claim->client, gpu)};
	if (!sl_node_waits_for_pool(node, claim, because))
		return false;
	if (because->reason == SL_REASON_POOL_WAITS) {
		because->reason = SL_REASON_POOL_FULL;
		return true;
	}
	/* The sentence is about the workload that reached its bound. */
	because->reason = SL_REASON_POOL_BOUND;
	because->workload = because->other;
	because->other = because->client = 0;
	return true;
}

void sl_node_note_pool_for(struct sl_node_step *step, const struct sl_node_claim *claim)
{
	struct sl_node_because because;

	if (claim->client->told & SL_NODE_TOLD_POOL ||
		!pool_because(step->node, claim, &because))
		return;
	claim->client->told |= SL_NODE_TOLD_POOL;
	sl_node_note_because(step, &because);
}

void sl_node_note_pool(struct sl_node_step *step)
{
	const struct sl_node_plan *plan = step->node->plan;

	for (uint32_t i = 0; i < plan->claims_count; i++)
		sl_node_note_pool_for(step, plan->order[i]);
}

void sl_node_note_long(struct sl_node_step *step, struct sl_node_workload *workload)
{
	const struct sl_node_sums *sums = workload->sums;

	/* It takes turns with others. */
	if (!sums->longest_wait || sums->cost <= sums->slice / 10 ||
		workload->told & SL_NODE_TOLD_LONG)
		return;
	workload->told |= SL_NODE_TOLD_LONG;
	sl_node_note_because(
		step, &(struct sl_node_because){.reason = SL_REASON_TURN_LONG,
			      .gpu = (uint32_t)__builtin_ctz(sums->gpus),
			      .workload = workload->index.id,
			      .span = sums->cost});
}
