/*
 * parks - parked workloads: all of it to the host, its request given up, and back on RESUME
 *
 * A parked workload keeps its limit, its GPUs and its clients; RESUME may name other GPUs
 * (moves.c). Its requests, for memory and for time, are no promise until it is resumed and there is
 * room for both again. Workloads that wait for that on shared GPUs are served in the order of their
 * RESUME.
 */
#include "policy/node/internal.h"
#include "policy/verdicts/admit.h"

static void tell_done(struct sl_node_step *step, const struct sl_node_workload *workload)
{
	sl_node_emit(step, (struct sl_action){.type = SL_ACTION_SET_DONE,
				   .set_done = {.workload = workload->index.id,
					   .request_bytes = sl_node_request_of(workload),
					   .limit_bytes = workload->account.limit_bytes,
					   .priority = workload->priority}});
}

/* It has memory there that it cannot move. */
static bool cannot_move(
	const struct sl_node *node, const struct sl_node_workload *workload)
{
	if (sl_node_is_fixed(node, workload))
		return true;
	sl_node_each_client_of (client, workload) {
		if (client->stage == SL_NODE_DYING || client->swaps)
			continue;
		sl_each_gpu (gpu, client->holding.touched) {
			if (client->holding.cell[gpu].backing_bytes)
				return true;
		}
	}
	return false;
}

static bool refuse_park(
	struct sl_node_step *step, const struct sl_node_workload *workload)
{
	const struct sl_node *node = step->node;
	struct sl_node_all_out all = sl_node_all_out(node, workload, true);
	uint64_t id = workload->index.id, part = node->config.config.pool_member_bytes;
	uint64_t part_left = sl_node_part_left(node, workload, true);

	if (workload->stage == SL_NODE_PARKED)
		sl_node_refuse(step, id, SL_REASON_PARKED_ALREADY, 0, 0, 0);
	else if (cannot_move(node, workload))
		sl_node_refuse(step, id, SL_REASON_PARK_NO_SWAP, 0, 0, 0);
	else if (SL_MUTANT(PARKS_WITHOUT_POOL,
			 all.bytes > all.room_bytes || !node->config.config.pool_bytes,
			 false))
		sl_node_refuse(
			step, id, SL_REASON_PARK_NO_POOL, 0, all.bytes, all.room_bytes);
	else if (all.bytes > part_left)
		sl_node_refuse(step, id, SL_REASON_PARK_BOUND, 0,
			all.bytes + part - part_left, part);
	else
		return false;
	return true;
}

void sl_node_on_workload_park(struct sl_node_step *step, const struct sl_event *event)
{
	uint64_t id = event->workload_park.workload;
	struct sl_node_workload *workload = sl_node_find_workload(step->node, id);
	bool recovered = event->workload_park.recovered;

	if (!workload || sl_node_is_removed(workload) || sl_node_is_stopped(workload)) {
		sl_node_refuse(step, id, SL_REASON_UNKNOWN_WORKLOAD, 0, 0, 0);
		return;
	}
	if (recovered ? sl_node_is_parked(workload) : refuse_park(step, workload))
		return;
	if (!sl_node_is_parked(workload)) {
		workload->request_bytes = workload->account.request_bytes;
		sl_ledger_change(&step->node->ledger, &workload->account,
			SL_MUTANT(PARKED_KEEPS_REQUEST, 0, workload->request_bytes),
			workload->account.limit_bytes);
	}
	workload->stage = SL_MUTANT(DETACHED_STAYS, event->workload_park.returns, false)
				  ? SL_NODE_DETACHED
				  : SL_NODE_PARKED;
	workload->stage_at = 0;
	sl_node_book_stays(step->node, workload);
	workload->told &= ~SL_NODE_TOLD_PARKED;
	sl_node_each_client_of (client, workload)
		client->told &= ~SL_NODE_COMES_BACK;
	tell_done(step, workload);
	if (!recovered)
		sl_node_note(step,
			event->workload_park.returns ? SL_REASON_DETACH_BEGINS
						     : SL_REASON_PARK_BEGINS,
			0, id, 0,
			sl_ledger_evictable_on(
				workload->account.cell, workload->account.touched));
	step->plans = true;
}

void sl_node_on_workload_resume(struct sl_node_step *step, const struct sl_event *event)
{
	uint64_t id = event->workload_resume.workload;
	struct sl_node_workload *workload = sl_node_find_workload(step->node, id);

	if (!workload || sl_node_is_removed(workload)) {
		sl_node_refuse(step, id, SL_REASON_UNKNOWN_WORKLOAD, 0, 0, 0);
		return;
	}
	if (!sl_node_is_parked(workload)) {
		sl_node_refuse(step, id, SL_REASON_NOT_PARKED, 0, 0, 0);
		return;
	}
	if (!sl_node_change_gpus(step, workload, event->workload_resume.gpu_mask))
		return;
	if (sl_node_is_put_away(workload)) {
		workload->stage = SL_NODE_RESUMING;
		workload->stage_at = step->now;
	}
	tell_done(step, workload);
	step->plans = true;
}

/* The compute requests of others leave room for its own. */
static bool has_time(
	const struct sl_node *node, const struct sl_node_workload *workload, uint32_t gpu)
{
	return !workload->compute_pm ||
	       workload->compute_pm <= sl_node_compute_room(node, workload, gpu);
}

/* What I1 counts from its return on. What has not left by then may be there for good. */
static uint64_t needs_again(
	const struct sl_node *node, const struct sl_node_workload *workload, uint32_t gpu)
{
	uint64_t here = sl_ledger_here(&workload->account, gpu);

	return SL_MUTANT(RESUMES_KEPT, sl_node_keeps_all(node, workload), false)
		       ? sl_max_u64(workload->request_bytes, here)
		       : workload->request_bytes;
}

struct sl_node_because sl_node_resume_because(
	const struct sl_node *node, const struct sl_node_workload *workload)
{
	struct sl_node_because because = {.reason = SL_REASON_RESUME_WAITS,
		.workload = workload->index.id,
		.span = node->now - workload->stage_at};

	sl_each_gpu (gpu, workload->account.gpu_mask) {
		because.gpu = gpu;
		because.bytes = needs_again(node, workload, gpu);
		because.available_bytes = sl_node_request_room(node, workload, gpu);
		if (because.available_bytes < because.bytes)
			return because;
	}
	sl_each_gpu (gpu, workload->account.gpu_mask) {
		if (has_time(node, workload, gpu))
			continue;
		because.reason = SL_REASON_RESUME_WAITS_TIME;
		because.gpu = gpu;
		because.bytes = workload->compute_pm;
		because.available_bytes = sl_node_compute_room(node, workload, gpu);
		break;
	}
	return because;
}

/* For the contexts of its processes that are away, the same rule as for new ones holds. */
static bool have_contexts_room(
	const struct sl_node *node, const struct sl_node_workload *workload)
{
	sl_node_each_client_of (client, workload) {
		if (!sl_node_may_attach(node, client))
			return false;
		sl_each_gpu (gpu, client->holding.touched) {
			struct sl_admit_gpu facts = {0};

			if (!client->holding.cell[gpu].away_bytes)
				continue;
			sl_node_context_facts(node, gpu, workload->request_bytes, &facts);
			if (SL_MUTANT(RETURN_CROWDS, facts.crowded, false))
				return false;
		}
	}
	return true;
}

/* Each of its GPUs has room for its requests. */
static bool fits_again(
	const struct sl_node *node, const struct sl_node_workload *workload)
{
	if (!have_contexts_room(node, workload))
		return false;
	sl_each_gpu (gpu, workload->account.gpu_mask) {
		if (node->gpu[gpu].lost || sl_ledger_is_degraded(&node->ledger, gpu) ||
			SL_MUTANT(RESUME_OVERBOOKS,
				needs_again(node, workload, gpu) >
					sl_node_request_room(node, workload, gpu),
				false) ||
			!SL_MUTANT(
				RESUME_WITHOUT_TIME, has_time(node, workload, gpu), true))
			return false;
	}
	return true;
}

/* Its last refusal was that of a DETACH. */
static bool refused_to_leave(const struct sl_node_client *client)
{
	return client->back_off.cause == SL_REASON_DETACH_FAILED ||
	       client->back_off.cause == SL_REASON_DETACH_BUSY;
}

static void claim_again(struct sl_node_step *step, struct sl_node_workload *workload)
{
	workload->stage = SL_NODE_RUNS;
	sl_node_count_unused(step, workload);
	sl_ledger_change(&step->node->ledger, &workload->account, workload->request_bytes,
		sl_max_u64(workload->account.limit_bytes, workload->request_bytes));
	sl_node_book_stays(step->node, workload);
	sl_node_each_client_of (client, workload) {
		if (client->stage != SL_NODE_DYING &&
			(sl_node_is_out(client) || client->order.id)) {
			client->told |= SL_NODE_COMES_BACK;
			/* An earlier wait ended with the PARK. */
			if (SL_MUTANT(RESUMED_WAITS_ON, true, !client->wants_since))
				client->wants_since = sl_node_stamp(step);
		}
		if (SL_MUTANT(STAYS_AFTER_PARK, refused_to_leave(client), false))
			client->back_off = (struct sl_node_back_off){0};
		sl_node_each_demand_of (demand, client)
			demand->burst_since = 0;
	}
	sl_node_emit(step, (struct sl_action){.type = SL_ACTION_RESUMED,
				   .resumed = {.workload = workload->index.id,
					   .request_bytes = workload->request_bytes}});
}

/* The next workload that was resumed at this time or later, after `last`. */
static struct sl_node_workload *next_resumed(
	struct sl_node *node, const struct sl_node_workload *last)
{
	struct sl_node_workload *next = NULL;
	bool passed = !last;

	sl_node_each_workload (workload, node) {
		bool is_later = !last || workload->stage_at > last->stage_at ||
				(workload->stage_at == last->stage_at && passed);

		passed |= workload == last;
		if (workload->stage == SL_NODE_RESUMING && is_later && workload != last &&
			(!next || workload->stage_at < next->stage_at))
			next = workload;
	}
	return next;
}

void sl_node_resume(struct sl_node_step *step)
{
	struct sl_node_workload *workload = next_resumed(step->node, NULL);
	uint32_t taken = 0;

	while (workload) {
		struct sl_node_workload *next = next_resumed(step->node, workload);

		if (!(SL_MUTANT(RESUME_PASSES, taken, 0) & workload->account.gpu_mask) &&
			fits_again(step->node, workload))
			claim_again(step, workload);
		else
			taken |= workload->account.gpu_mask;
		workload = next;
	}
}

/* --- detached --- */

/* Its project may not let it come back yet, or the host may have no room for it to leave. */
#define ASKED_AGAIN_AFTER SL_S
#define LEFT_AGAIN_AFTER  (5 * SL_S)

static bool wants_to_run(const struct sl_node_workload *workload)
{
	sl_node_each_client_of (client, workload) {
		if (client->stage != SL_NODE_DYING &&
			(client->wants_since || !sl_list_is_empty(&client->demands)))
			return true;
	}
	return false;
}

void sl_node_call(struct sl_node_step *step)
{
	sl_node_each_workload (workload, step->node) {
		if (workload->stage != SL_NODE_DETACHED || !wants_to_run(workload) ||
			!sl_node_has_come(step, workload->stage_at))
			continue;
		workload->stage_at = sl_node_later(step->now, ASKED_AGAIN_AFTER);
		sl_node_wake(step, workload->stage_at);
		sl_node_emit(step, (struct sl_action){.type = SL_ACTION_CALLS,
					   .calls = {.workload = workload->index.id}});
	}
}

void sl_node_count_unused(struct sl_node_step *step, struct sl_node_workload *workload)
{
	sl_node_each_client_of (client, workload) {
		if (client->stage != SL_NODE_DYING)
			return;
	}
	if (workload->stage == SL_NODE_RUNS)
		workload->stage_at = sl_node_later(step->now, workload->detach_after);
}

void sl_node_leave_idle(struct sl_node_step *step, struct sl_node_workload *workload)
{
	if (!sl_node_has_come(step, workload->stage_at))
		return;
	workload->stage_at = sl_node_later(step->now, LEFT_AGAIN_AFTER);
	sl_node_wake(step, workload->stage_at);
	sl_node_emit(step, (struct sl_action){.type = SL_ACTION_DETACHES,
				   .detaches = {.workload = workload->index.id}});
}
