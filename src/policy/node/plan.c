/*
 * plan - the parts of the plan, in order
 */
#include "policy/node/plan.h"

/* --- what is due --- */

static void tell_untakeable(struct sl_node_step *step, struct sl_node_client *client)
{
	sl_ns at = sl_node_untakeable_at(step->node, client);
	bool is = sl_node_has_come(step, at);
	bool told = client->told & SL_NODE_TOLD_UNTAKEABLE;
	sl_ns since = sl_node_stuck_since(client);

	if (is == told)
		return;
	client->told ^= SL_NODE_TOLD_UNTAKEABLE;
	sl_node_note_because(
		step, &(struct sl_node_because){.reason = is ? SL_REASON_UNTAKEABLE_BEGINS
							     : SL_REASON_UNTAKEABLE_ENDS,
			      .workload = client->workload->index.id,
			      .client = client->index.id,
			      .available_bytes = client->condition,
			      .span = since ? step->now - since : 0});
}

static void times(struct sl_node_step *step)
{
	struct sl_node *node = step->node;
	struct sl_node_plan *plan = node->plan;

	sl_node_time_workloads(step);
	sl_node_time_strangers(step);
	plan->all_count = plan->askers_count = plan->movers_count = 0;
	sl_node_each_client (client, node) {
		plan->all[plan->all_count++] = client;
		if (client->stage == SL_NODE_DYING)
			continue;
		if (!sl_list_is_empty(&client->demands))
			plan->askers[plan->askers_count++] = client;
		if (client->order.id)
			plan->movers[plan->movers_count++] = client;
		tell_untakeable(step, client);
		sl_node_time_stop(step, client);
	}
}

/* Names the GPU with most measured bytes. */
static void note_missing(struct sl_node_step *step, const struct sl_node_client *client)
{
	const struct sl_ledger_cell *cell = client->holding.cell;
	uint32_t mask = client->workload->account.gpu_mask;
	uint32_t most = mask ? (uint32_t)__builtin_ctz(mask) : 0;

	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		if (sl_ledger_live(&cell[gpu]) > sl_ledger_live(&cell[most]))
			most = gpu;
	}
	sl_node_note(step, SL_REASON_REPORT_MISSING, most, client->workload->index.id, 0,
		sl_ledger_live(&cell[most]));
}

/* Counts clients that did not report as they were measured. */
static void give_up_expected(struct sl_node_step *step)
{
	struct sl_node_plan *plan = step->node->plan;

	for (uint32_t i = 0; i < plan->all_count; i++) {
		if (plan->all[i]->stage != SL_NODE_EXPECTED)
			continue;
		plan->all[i]->stage = SL_NODE_LIVES;
		plan->all[i]->told |= SL_NODE_UNHEARD;
		note_missing(step, plan->all[i]);
	}
}

static bool is_recovering(struct sl_node_step *step)
{
	struct sl_node *node = step->node;
	uint32_t waits = 0;

	if (!node->recover_until)
		return false;
	for (uint32_t i = 0; i < node->plan->all_count; i++)
		waits += node->plan->all[i]->stage == SL_NODE_EXPECTED ||
			 node->plan->all[i]->stage == SL_NODE_REPORTING;
	if (waits && step->now < node->recover_until)
		return true;
	give_up_expected(step);
	node->recover_until = 0;
	return false;
}

/* A workload waits while one of its demands does, while it wants to come back, and while it
 * resumes. A wait that begins and ends at the same moment does not count. */
static void count_waits(struct sl_node_step *step, struct sl_node_workload *workload)
{
	bool is_parked = workload->stage == SL_NODE_PARKED;
	bool waits = workload->stage == SL_NODE_RESUMING;

	sl_node_each_client_of (client, workload) {
		bool asks = sl_node_first_waiting(client);

		waits |= !is_parked &&
			 (asks || (client->wants_since && sl_node_is_out(client)));
		/* Its next wait is noted anew. */
		if (!asks && !client->wants_since)
			client->told &= ~SL_NODE_TOLD_POOL;
	}
	if (waits == (workload->waits_since != 0))
		return;
	if (waits) {
		workload->waits_since = sl_node_stamp(step);
	} else {
		sl_ns span = sl_sub_sat(step->now, workload->waits_since);

		workload->waits += span > 0;
		workload->waited += span;
		workload->waits_since = 0;
	}
}

/* --- the plan --- */

void sl_node_make_room(struct sl_node *node)
{
	struct sl_node_plan *plan = node->plan;

	if (++plan->objects <= plan->room)
		return;
	plan->room = 2 * plan->objects;
	plan->claims = sl_arena_take(node->arena, plan->room * sizeof(plan->claims[0]));
	plan->order = sl_arena_take(node->arena, plan->room * sizeof(plan->order[0]));
	plan->all = sl_arena_take(node->arena, plan->room * sizeof(plan->all[0]));
	plan->askers = sl_arena_take(node->arena, plan->room * sizeof(plan->askers[0]));
	plan->movers = sl_arena_take(node->arena, plan->room * sizeof(plan->movers[0]));
	plan->clients = sl_arena_take(node->arena, plan->room * sizeof(plan->clients[0]));
	plan->leavers = sl_arena_take(node->arena, plan->room * sizeof(plan->leavers[0]));
	plan->stops = sl_arena_take(node->arena, 2 * plan->room * sizeof(plan->stops[0]));
	sl_node_make_room_for_hopeless(node);
	/* The verdicts of the last plan were in the old arrays. */
	plan->claims_count = 0;
}

void sl_node_plan(struct sl_node_step *step)
{
	step->changes = false;
	times(step);
	sl_node_refuse_demands(step);
	if (is_recovering(step)) {
		sl_node_wake(step, step->node->recover_until);
		step->node->plan->claims_count = 0;
		sl_node_each_waiting(step, sl_node_note_wait);
		sl_node_probe(step);
		return;
	}
	sl_node_call(step);
	sl_node_resume(step);
	sl_node_answer_there(step);
	sl_node_copy(step);
	sl_node_rank_claims(step);
	sl_node_seat(step);
	sl_node_note_pool(step);
	sl_node_end_demands(step);
	sl_node_break_deadlock(step);
	sl_node_measure_waits(step->node);
	sl_node_move(step);
	/* The rank only matters if something lacks. */
	if (step->node->lacks)
		sl_node_wake(step, step->node->plan->rank_due);
	sl_node_contexts(step);
	if (!step->node->plan->is_stale)
		sl_node_each_waiting(step, sl_node_note_wait);
	sl_node_each_workload (workload, step->node) {
		sl_node_note_long(step, workload);
		count_waits(step, workload);
	}
	sl_node_probe(step);
	/* The changes have due times of their own, which the next plan finds. */
	if (step->changes)
		sl_node_wake(step, sl_node_later(step->now, SL_MS));
}
