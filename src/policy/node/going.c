/*
 * going - what goes to the host though nobody needs its room: what is parked, and what goes warm
 *
 * A workload is warm when all of it is on the host and nobody asks for it: it keeps its request,
 * and its next call brings it back. It goes there once each of its processes has been idle,
 * proven, for warm_after; all of it or nothing, and only where that takes nothing from what is
 * lent.
 */
#include "policy/node/plan.h"

/* The pool had no room for it. */
#define TRIED_AGAIN_AFTER (5 * SL_S)

static uint64_t to_leave(
	const struct sl_node *node, const struct sl_node_client *client, uint32_t gpu)
{
	return client->stage == SL_NODE_DYING || node->gpu[gpu].lost
		       ? 0
		       : sl_ledger_evictable(&client->holding.cell[gpu]);
}

static uint64_t all_of(
	const struct sl_node *node, const struct sl_node_workload *workload)
{
	uint64_t bytes = 0;

	sl_node_each_client_of(client, workload)
	{
		for (uint32_t left = client->holding.touched; left; left &= left - 1)
			bytes += to_leave(node, client, (uint32_t)__builtin_ctz(left));
	}
	return bytes;
}

/* What the pool has no room for waits. Whether something of it is still to leave. */
static bool send(struct sl_node_step *step, struct sl_node_client *client, uint64_t other)
{
	struct sl_node *node = step->node;
	bool more = client->order.id != 0;

	for (uint32_t left = client->holding.touched; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(left);
		uint64_t bytes = to_leave(node, client, gpu);

		if (!bytes)
			continue;
		more = true;
		if (!client->order.id && !client->look->stays &&
			node->ledger.evicted_bytes + node->ledger.leaving_bytes + bytes <=
				node->config.config.pool_bytes &&
			sl_node_trim_for(step, client, bytes))
			sl_node_evict(step, client, gpu, bytes, other);
	}
	return more;
}

static void park(struct sl_node_step *step, struct sl_node_workload *workload)
{
	uint64_t out = 0;
	bool more = false;

	sl_node_each_client_of(client, workload)
	{
		if (client->stage != SL_NODE_DYING)
			more |= send(step, client, workload->index.id);
	}
	if (more || workload->told & SL_NODE_TOLD_PARKED)
		return;
	for (uint32_t left = workload->account.touched; left; left &= left - 1)
		out += workload->account.cell[__builtin_ctz(left)].evicted_bytes;
	workload->told |= SL_NODE_TOLD_PARKED;
	sl_node_emit(
		step, (struct sl_action){.type = SL_ACTION_PARKED,
			      .parked = {.workload = workload->index.id, .bytes = out}});
}

static bool is_demand_coming(const struct sl_node_plan *plan)
{
	for (uint32_t i = 0; i < plan->claims_count; i++) {
		const struct sl_node_claim *claim = &plan->claims[i];

		if (!claim->is_over && claim->demand && !claim->demand->epoch &&
			claim->has_seat)
			return SL_MUTANT(WARM_BEFORE_DEMANDS, true, false);
	}
	return false;
}

/* What the pool has left for it, and for nobody else. */
static uint64_t room_for_warm(const struct sl_node *node)
{
	uint64_t taken = node->ledger.evicted_bytes + node->ledger.leaving_bytes +
			 node->config.config.slack_bytes;

	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++)
		taken += sl_ledger_overlap(&node->ledger, gpu);
	return sl_sub_sat(node->config.config.pool_bytes, taken);
}

static void note_no_room(struct sl_node_step *step, struct sl_node_workload *workload,
	uint64_t bytes, uint64_t room)
{
	bool bound = room == workload->sums->now.part_bytes;

	sl_node_wake(step, sl_node_later(step->now, TRIED_AGAIN_AFTER));
	if (workload->told & SL_NODE_TOLD_WARM)
		return;
	workload->told |= SL_NODE_TOLD_WARM;
	sl_node_note_because(step,
		&(struct sl_node_because){.reason = bound ? SL_REASON_WARM_POOL_BOUND
							  : SL_REASON_WARM_POOL_FULL,
			.gpu = (uint32_t)__builtin_ctz(workload->sums->gpus),
			.workload = workload->index.id,
			.bytes = bytes,
			.available_bytes = room,
			.span = workload->warm_after});
}

static void warm(struct sl_node_step *step, struct sl_node_workload *workload)
{
	uint64_t bytes = all_of(step->node, workload);
	uint64_t room =
		sl_min_u64(room_for_warm(step->node), workload->sums->now.part_bytes);

	if (!bytes)
		return;
	if (is_demand_coming(step->node->plan)) {
		sl_node_wake(step, sl_node_later(step->now, TRIED_AGAIN_AFTER));
		return;
	}
	if (SL_MUTANT(WARM_IN_PART, bytes > room, false)) {
		note_no_room(step, workload, bytes, room);
		return;
	}
	workload->told &= ~SL_NODE_TOLD_WARM;
	sl_node_each_client_of(client, workload)
	{
		if (client->stage != SL_NODE_DYING)
			send(step, client, 0);
	}
}

void sl_node_send_away(struct sl_node_step *step)
{
	sl_list_foreach (link, &step->node->all_workloads) {
		struct sl_node_workload *workload = sl_node_workload_at(link);

		if (workload->stage == SL_NODE_PARKED)
			park(step, workload);
		else if (workload->sums->is_warm)
			warm(step, workload);
	}
}
