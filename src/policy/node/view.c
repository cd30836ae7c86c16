/*
 * view - what callers can look at
 */
#include "policy/node/plan.h"

static bool waits_on(const struct sl_node_demand *demand, uint32_t gpu)
{
	return sl_node_is_waiting(demand) && demand->gpu == gpu;
}

static uint32_t waiting_on(const struct sl_node *node, uint32_t gpu)
{
	uint32_t count = 0;

	sl_node_each_client (client, node) {
		sl_node_each_demand_of (demand, client)
			count += waits_on(demand, gpu);
	}
	return count;
}

struct sl_node_gpu_view sl_node_gpu(const struct sl_node *node, uint32_t gpu)
{
	const struct sl_ledger_gpu *g;

	if (gpu >= SL_NODE_GPUS_MAX || !node->ledger.gpu[gpu].present)
		return (struct sl_node_gpu_view){0};
	g = &node->ledger.gpu[gpu];
	return (struct sl_node_gpu_view){
		.present = true,
		.degraded = sl_node_degraded(node) >> gpu & 1,
		.lost = node->gpu[gpu].lost,
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
		.waiting = waiting_on(node, gpu),
	};
}

struct sl_node_pool_view sl_node_pool(const struct sl_node *node)
{
	struct sl_node_pool_view view = {.pool_bytes = node->config.config.pool_bytes,
		.slack_bytes = node->config.config.slack_bytes,
		.evicted_bytes = node->ledger.evicted_bytes,
		.leaving_bytes = node->ledger.leaving_bytes};

	sl_node_each_client (client, node)
		view.copies_bytes += sl_node_copies(client);
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++)
		view.overlap_bytes += sl_ledger_overlap(&node->ledger, gpu);
	return view;
}

/* --- workloads --- */

struct state {
	bool wants, returns, leaves, is_out, stays, has;
	uint32_t living, untakeable;
	sl_ns since;
};

static struct state state_of(
	const struct sl_node *node, const struct sl_node_workload *workload)
{
	struct state state = {.since = SL_NS_NEVER};

	sl_node_each_client_of (client, workload) {
		bool is_out = sl_node_is_out(client);

		sl_each_gpu (gpu, client->holding.touched) {
			const struct sl_ledger_cell *cell = &client->holding.cell[gpu];

			state.has |= sl_ledger_all(cell) != 0;
			state.stays |= client->stage != SL_NODE_DYING &&
				       sl_ledger_evictable(cell);
		}
		if (client->stage == SL_NODE_DYING)
			continue;
		state.living++;
		state.untakeable += sl_node_is_untakeable(node, client);
		state.is_out |= is_out;
		state.wants |= is_out && sl_node_wanted_since(client);
		state.returns |= sl_node_is_returning(client);
		state.leaves |= client->order.id && !sl_node_is_returning(client) &&
				!sl_node_is_travelling(client);
		if (is_out && sl_node_wanted_since(client))
			state.since =
				sl_min_u64(state.since, sl_node_wanted_since(client));
	}
	return state;
}

static enum sl_residency residency_of(
	const struct sl_node_workload *workload, const struct state *state)
{
	if (workload->stage == SL_NODE_RESUMING)
		return SL_RESIDENCY_RESUMING;
	if (workload->stage == SL_NODE_PARKED)
		return state->stays || state->leaves || state->returns
			       ? SL_RESIDENCY_PARKING
			       : SL_RESIDENCY_PARKED;
	if (workload->stage == SL_NODE_DETACHED)
		return state->stays || state->leaves || state->returns
			       ? SL_RESIDENCY_LEAVING
			       : SL_RESIDENCY_DETACHED;
	if (state->leaves)
		return SL_RESIDENCY_LEAVING;
	if (state->returns)
		return SL_RESIDENCY_RETURNING;
	if (state->is_out)
		return state->wants   ? SL_RESIDENCY_EVICTED
		       : state->stays ? SL_RESIDENCY_PARTIAL
				      : SL_RESIDENCY_WARM;
	return state->has ? SL_RESIDENCY_BOUND : SL_RESIDENCY_RESERVED;
}

uint32_t sl_node_actual_mask(const struct sl_node_workload *workload)
{
	uint32_t mask = workload->account.touched;

	sl_node_each_client_of (client, workload) {
		sl_node_each_demand_of (demand, client)
			mask |= 1u << demand->gpu;
	}
	return mask;
}

struct sl_node_workload_view sl_node_workload_alone(
	const struct sl_node *node, uint64_t id)
{
	const struct sl_node_workload *workload = sl_node_find_workload(node, id);
	struct state state;
	sl_ns waits;

	if (!workload || sl_node_is_removed(workload))
		return (struct sl_node_workload_view){0};
	waits = workload->waits_since ? node->now - workload->waits_since : 0;
	state = state_of(node, workload);
	return (struct sl_node_workload_view){
		.known = true,
		.stopping = sl_node_is_stopped(workload),
		.actual_mask = sl_node_actual_mask(workload),
		.gpu_mask = workload->account.gpu_mask,
		.clients = state.living,
		.priority = workload->priority,
		.request_bytes = sl_node_request_of(workload),
		.limit_bytes = workload->account.limit_bytes,
		.flags = workload->flags,
		.untakeable = state.untakeable,
		.wait_max = workload->wait_max,
		.residency = residency_of(workload, &state),
		.presence = sl_node_presence(node, workload),
		.warm_after = workload->warm_after,
		.detach_after = workload->detach_after,
		.idle_grace = workload->idle_grace,
		.turns = workload->turns,
		.wants_since = state.since == SL_NS_NEVER
				       ? 0
				       : sl_max_u64(node->now - state.since, 1),
		.waits = workload->waits + (waits > 0),
		.waited = workload->waited + waits,
	};
}

struct sl_node_workload_view sl_node_workload(const struct sl_node *node, uint64_t id)
{
	const struct sl_node_workload *workload = sl_node_find_workload(node, id);
	struct sl_node_workload_view view = sl_node_workload_alone(node, id);

	if (!view.known)
		return view;
	if (!view.wants_since && node->lacks & workload->sums->gpus)
		view.turn_left = sl_sub_sat(workload->slice_ends, node->now);
	view.longest_wait = workload->sums->longest_wait;
	view.endless = workload->sums->endless;
	return view;
}

struct sl_node_client_view sl_node_client(const struct sl_node *node, uint64_t id)
{
	const struct sl_node_client *client = sl_node_find_client(node, id);
	bool is_told;

	if (!client)
		return (struct sl_node_client_view){0};
	is_told = client->stop_stage >= SL_NODE_TERMED &&
		  client->stop_stage <= SL_NODE_STUBBORN;
	return (struct sl_node_client_view){
		.known = true,
		.alive = client->stage != SL_NODE_DYING,
		.expected = client->stage == SL_NODE_EXPECTED,
		.waits = sl_node_first_waiting(client) && !is_told &&
			 node->now >= sl_node_later(client->active_at,
					      node->config.config.idle_wait),
		.workload = client->workload->index.id,
		.condition = client->condition,
		.probe = client->probe,
		.stopping = is_told,
		.killed = is_told && client->stop_stage != SL_NODE_TERMED,
		.untakeable = sl_node_is_untakeable(node, client),
		.proven = client->proven,
		.stop_reason = is_told ? client->stop.reason : 0,
		.idle = sl_node_idle(client, node->now),
		.busy = client->busy_since ? node->now - client->busy_since : 0,
		.swaps = client->swaps,
		.wants = client->wants_since && sl_node_is_out(client),
		.order = client->order.id,
		.store_bytes = client->store_bytes,
	};
}

static bool was_entitled(const struct sl_node_demand *demand)
{
	const struct sl_ledger_account *account = &demand->client->workload->account;

	return !demand->burst_since && sl_ledger_use(account, demand->gpu) <=
					       sl_ledger_request(account, demand->gpu);
}

static void show(const struct sl_node *node, const struct sl_node_demand *demand,
	bool head, sl_node_demand_fn fn, void *context)
{
	fn(context, &(struct sl_node_demand_view){.client = demand->client->index.id,
			    .workload = demand->client->workload->index.id,
			    .ask = demand->ask,
			    .bytes = demand->bytes,
			    .epoch = demand->epoch,
			    .gpu = demand->gpu,
			    .priority = demand->client->workload->priority,
			    .entitled = demand->epoch ? was_entitled(demand)
						      : sl_node_is_entitled(demand),
			    .head = head,
			    .waited = node->now - demand->arrived});
}

/* Demands of the GPU that make claims, by rank. */
static void show_claims(
	const struct sl_node *node, uint32_t gpu, sl_node_demand_fn fn, void *context)
{
	bool head = true;

	for (uint32_t i = 0; i < node->plan->claims_count; i++) {
		const struct sl_node_claim *claim = node->plan->order[i];

		if (!claim->demand || claim->is_over || claim->demand->epoch ||
			claim->demand->gpu != gpu)
			continue;
		show(node, claim->demand, head, fn, context);
		head = false;
	}
}

void sl_node_each_demand(const struct sl_node *node, sl_node_demand_fn fn, void *context)
{
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++)
		show_claims(node, gpu, fn, context);
	sl_node_each_client (client, node) {
		sl_node_each_demand_of (demand, client) {
			if (!(demand->flags &
				    (SL_NODE_DEMAND_VOID | SL_NODE_DEMAND_CONTEXT)) &&
				(demand->epoch ||
					!sl_node_claim_of(node, client, demand)))
				show(node, demand, false, fn, context);
		}
	}
}

/* --- bytes --- */

static struct sl_node_use_view cell_view(const struct sl_ledger_cell *cell)
{
	return (struct sl_node_use_view){
		.backing_bytes = cell->backing_bytes,
		.granted_bytes = cell->granted_bytes,
		.hidden_bytes = cell->hidden_bytes,
		.paid_bytes = cell->paid_bytes,
		.away_bytes = cell->away_bytes,
		.held_bytes = cell->held_bytes,
		.dying_bytes = cell->dying_bytes,
		.evicted_bytes = cell->evicted_bytes,
		.returning_bytes = cell->returning_bytes,
	};
}

static void add_waiting(
	struct sl_node_use_view *view, const struct sl_node_client *client, uint32_t gpu)
{
	sl_node_each_demand_of (demand, client) {
		if (!waits_on(demand, gpu))
			continue;
		view->waiting_bytes += demand->bytes;
		view->waiting++;
	}
}

struct sl_node_use_view sl_node_use(
	const struct sl_node *node, uint64_t workload, uint32_t gpu)
{
	const struct sl_node_workload *found = sl_node_find_workload(node, workload);
	struct sl_node_use_view view;

	if (!found || gpu >= SL_NODE_GPUS_MAX)
		return (struct sl_node_use_view){0};
	view = cell_view(&found->account.cell[gpu]);
	sl_node_each_client_of (client, found)
		add_waiting(&view, client, gpu);
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
