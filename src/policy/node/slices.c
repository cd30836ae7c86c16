/*
 * slices - the time in which a workload keeps its seat against equal ranks
 *
 * A slice begins when everything of the workload that wants to run has come back; later clients
 * join it.
 */
#include "policy/node/plan.h"

static bool is_in_slice(const struct sl_node_client *client, sl_ns now)
{
	return client->seat == SL_NODE_SERVED && now < client->workload->slice_ends;
}

static void begin(struct sl_node_step *step, struct sl_node_client *own)
{
	struct sl_node_workload *workload = own->workload;

	sl_node_each_client_of (client, workload) {
		if (client != own && is_in_slice(client, step->now) &&
			!SL_MUTANT(TURN_AGAIN, false, true))
			return; /* it joins that slice */
	}
	workload->served_at = sl_node_stamp(step);
	workload->slice_ends = sl_node_later(step->now, workload->sums->slice);
	workload->slice_bytes = sl_node_use_of(workload);
	workload->turns++;
	sl_node_each_client_of (client, workload)
		if (client != own)
			client->told &= ~SL_NODE_OVERDUE;
}

static bool is_sibling_coming(const struct sl_node_client *own)
{
	sl_node_each_client_of (client, own->workload) {
		if (client != own && client->seat == SL_NODE_COMING &&
			!client->look->is_whole)
			return true;
	}
	return false;
}

void sl_node_begin_slices(struct sl_node_step *step, struct sl_node_workload *workload)
{
	sl_node_each_client_of (client, workload) {
		if (client->stage != SL_NODE_LIVES || client->seat != SL_NODE_COMING ||
			!client->look->is_whole || is_sibling_coming(client))
			continue;
		begin(step, client);
		client->seat = SL_NODE_SERVED;
		step->changes = true;
	}
}

void sl_node_lengthen_slice(struct sl_node *node, const struct sl_node_demand *demand)
{
	struct sl_node_sums *sums = demand->client->workload->sums;
	sl_ns turn_max = node->config.config.turn_max;
	struct sl_turns_unit unit = {0};

	sums->cost += sl_node_cost_out(node, demand->gpu, demand->bytes) +
		      sl_node_cost_in(node, demand->gpu, demand->bytes);
	sl_turns_join(&unit, sums->cost, 1, turn_max);
	sums->slice = sl_max_u64(sums->slice, sl_turns_length(&unit, 1, turn_max));
}

void sl_node_grant_in_slice(struct sl_node_step *step, struct sl_node_demand *demand,
	bool waited, bool overdue)
{
	struct sl_node_client *client = demand->client;
	struct sl_node_workload *workload = client->workload;
	bool first = !sl_ledger_holds(&workload->account, ~0u);

	sl_node_grant(step, demand);
	if (is_in_slice(client, step->now)) {
		workload->slice_ends = sl_max_u64(workload->slice_ends,
			sl_node_later(workload->served_at, workload->sums->slice));
		return;
	}
	if (!first && !waited)
		return;
	begin(step, client);
	client->seat = SL_NODE_SERVED;
	sl_node_set_overdue(client, overdue);
}
