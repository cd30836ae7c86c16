/*
 * node_view - what can be looked at from outside
 *
 * Reads only. Sums that the decisions need are kept by the ledger; those that only people look
 * at (waiting bytes of a workload) are counted when asked for.
 */
#include "policy/node_state.h"

struct sl_node_gpu_view sl_node_gpu(const struct sl_node *node, uint32_t gpu)
{
	const struct sl_ledger_gpu *g;

	if (gpu >= SL_NODE_GPUS_MAX || !node->ledger.gpu[gpu].present)
		return (struct sl_node_gpu_view){0};
	g = &node->ledger.gpu[gpu];
	return (struct sl_node_gpu_view){
		.present = true,
		.degraded = node->queue[gpu].degraded,
		.lost = node->queue[gpu].lost,
		.capacity_bytes = g->capacity_bytes,
		.reserve_bytes = g->reserve_bytes,
		.unmanaged_bytes = g->unmanaged_bytes,
		.shareable_bytes = sl_ledger_shareable(&node->ledger, gpu),
		.requests_bytes = g->requests_bytes,
		.backing_bytes = g->sum.backing_bytes,
		.granted_bytes = g->sum.granted_bytes,
		.hidden_bytes = g->sum.hidden_bytes,
		.paid_bytes = g->sum.paid_bytes,
		.held_bytes = g->sum.held_bytes,
		.dying_bytes = g->sum.dying_bytes,
		.evicted_bytes = g->sum.evicted_bytes,
		.returning_bytes = g->sum.returning_bytes,
		.free_bytes = sl_ledger_free_bytes(&node->ledger, gpu),
		.workloads = g->workloads,
		.waiting = node->queue[gpu].count,
	};
}

struct sl_node_left_view sl_node_left(const struct sl_node *node)
{
	if (!node->goes_on_at)
		return (struct sl_node_left_view){0};
	return (struct sl_node_left_view){
		.gpu_mask = node->dirty_mask,
		.resolve_mask = node->resolve_mask,
		.timers = node->timers_dirty,
		.turns = node->swap_dirty,
		.deadlock = node->deadlock_dirty,
		.goes_on_at = node->goes_on_at,
	};
}

static enum sl_residency parked_as(
	const struct sl_node *node, const struct sl_node_member *member)
{
	if (member->resuming)
		return SL_RESIDENCY_RESUMING;
	sl_list_foreach (link, &member->clients) {
		if (sl_node_is_parking(
			    node, SL_LIST_ENTRY(link, struct sl_node_client, of_member)))
			return SL_RESIDENCY_PARKING;
	}
	return SL_RESIDENCY_PARKED;
}

static enum sl_residency residency_of(
	const struct sl_node *node, const struct sl_node_member *member)
{
	bool wants = false, returns = false, leaves = false, is_out = false, has = false;
	bool stays = false;

	if (member->parked)
		return parked_as(node, member);
	sl_list_foreach (link, &member->clients) {
		const struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_member);

		is_out |= client->is_out != 0;
		wants |= client->is_out &&
			 (client->wants || client->comes_back || client->waiting);
		returns |= client->order.id && client->order.restores;
		leaves |= client->order.id && !client->order.restores;
		stays |= sl_node_is_leaving(node, client);
	}
	for (uint32_t left = member->account.touched; left; left &= left - 1)
		has |= sl_ledger_all(&member->account.cell[__builtin_ctz(left)]) != 0;
	if (leaves)
		return SL_RESIDENCY_LEAVING;
	if (returns)
		return SL_RESIDENCY_RETURNING;
	if (is_out)
		return wants   ? SL_RESIDENCY_EVICTED
		       : stays ? SL_RESIDENCY_PARTIAL
			       : SL_RESIDENCY_WARM;
	return has ? SL_RESIDENCY_BOUND : SL_RESIDENCY_RESERVED;
}

/* Spans as of now: how long it has waited to come back. */
static sl_ns wants_since_of(
	const struct sl_node *node, const struct sl_node_member *member)
{
	sl_ns since = SL_NS_NEVER;

	sl_list_foreach (link, &member->clients) {
		const struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_member);

		if (sl_node_wants_back(client))
			since = sl_min_u64(since, sl_node_wants_since(client));
	}
	return since == SL_NS_NEVER ? 0 : sl_max_u64(node->now - since, 1);
}

/* While others wait for its end. */
static sl_ns turn_left_of(const struct sl_node *node, const struct sl_node_member *member)
{
	if (!node->contended || !member->cost || wants_since_of(node, member))
		return 0;
	return sl_node_turn_left(node, member);
}

struct sl_node_workload_view sl_node_workload_alone(
	const struct sl_node *node, uint64_t workload)
{
	const struct sl_node_member *member = sl_node_find_member(node, workload);

	if (!member || member->leaving)
		return (struct sl_node_workload_view){0};
	return (struct sl_node_workload_view){
		.known = true,
		.stopping = member->stopping,
		.actual_mask = member->actual_mask,
		.gpu_mask = member->account.gpu_mask,
		.clients = member->living,
		.priority = member->priority,
		.request_bytes = member->parked ? member->parked_bytes
						: member->account.request_bytes,
		.limit_bytes = member->account.limit_bytes,
		.owner = member->owner,
		.flags = member->flags,
		.untakeable = member->untakeable,
		.wait_max = member->wait_max,
		.residency = residency_of(node, member),
		.warm_after = member->warm_after,
		.idle_grace = member->idle_grace,
		.turns = member->turns,
		.wants_since = wants_since_of(node, member),
		.waits = sl_node_waits_of(node, member),
		.waited = sl_node_waited_of(node, member),
		.denials = member->denials,
	};
}

struct sl_node_workload_view sl_node_workload(
	const struct sl_node *node, uint64_t workload)
{
	const struct sl_node_member *member = sl_node_find_member(node, workload);
	struct sl_node_workload_view view = sl_node_workload_alone(node, workload);

	if (!view.known)
		return view;
	view.turn_left = turn_left_of(node, member);
	view.longest_wait = sl_node_longest_wait(node, member, &view.endless);
	return view;
}

static struct sl_node_use_view cell_view(const struct sl_ledger_cell *cell)
{
	return (struct sl_node_use_view){
		.backing_bytes = cell->backing_bytes,
		.granted_bytes = cell->granted_bytes,
		.hidden_bytes = cell->hidden_bytes,
		.paid_bytes = cell->paid_bytes,
		.held_bytes = cell->held_bytes,
		.dying_bytes = cell->dying_bytes,
		.evicted_bytes = cell->evicted_bytes,
		.returning_bytes = cell->returning_bytes,
	};
}

static void add_waiting(
	struct sl_node_use_view *view, const struct sl_node_client *client, uint32_t gpu)
{
	sl_list_foreach (link, &client->party.demands) {
		const struct sl_demand *demand =
			SL_LIST_ENTRY(link, struct sl_demand, of_client);

		if (demand->epoch || demand->gpu != gpu)
			continue;
		view->waiting_bytes += demand->bytes;
		view->waiting++;
	}
}

struct sl_node_use_view sl_node_use(
	const struct sl_node *node, uint64_t workload, uint32_t gpu)
{
	const struct sl_node_member *member = sl_node_find_member(node, workload);
	struct sl_node_use_view view;

	if (!member || gpu >= SL_NODE_GPUS_MAX)
		return (struct sl_node_use_view){0};
	view = cell_view(&member->account.cell[gpu]);
	sl_list_foreach (link, &member->clients)
		add_waiting(&view, SL_LIST_ENTRY(link, struct sl_node_client, of_member),
			gpu);
	return view;
}

struct sl_node_use_view sl_node_client_use(
	const struct sl_node *node, uint64_t client, uint32_t gpu)
{
	const struct sl_node_client *found = sl_node_find_client(node, client);
	struct sl_node_use_view view;

	if (!found || gpu >= SL_NODE_GPUS_MAX)
		return (struct sl_node_use_view){0};
	view = cell_view(&found->holding.cell[gpu]);
	add_waiting(&view, found, gpu);
	return view;
}
