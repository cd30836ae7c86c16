/*
 * change - a WORKLOAD_SET is judged like an admission to the GPUs that the workload has
 */
#include "policy/node/internal.h"

/* The proposed numbers, before they are judged. */
struct change {
	uint64_t request_bytes, limit_bytes; /* the limit cut to what can be shared */
	uint64_t uncut_limit_bytes;
	uint64_t shareable_bytes; /* of the smallest of its GPUs */
	int32_t priority;
	uint32_t compute_pm, smallest_gpu;
};

static struct change resolve_change(const struct sl_node *node,
	const struct sl_node_workload *workload, const struct sl_event *event)
{
	uint32_t which = event->workload_set.which;
	struct change to = {sl_node_request_of(workload), workload->account.limit_bytes,
		workload->account.limit_bytes, UINT64_MAX, workload->priority,
		workload->compute_pm};

	sl_each_gpu (gpu, workload->account.gpu_mask) {
		uint64_t bytes = sl_ledger_shareable(&node->ledger, gpu);

		if (bytes >= to.shareable_bytes)
			continue;
		to.shareable_bytes = bytes;
		to.smallest_gpu = gpu;
	}
	if (which & SL_SET_REQUEST)
		to.request_bytes = sl_amount_resolve(
			&event->workload_set.request, to.shareable_bytes, 0);
	if (which & SL_SET_LIMIT) {
		to.uncut_limit_bytes = sl_amount_resolve(&event->workload_set.limit,
			to.shareable_bytes, to.shareable_bytes);
		to.limit_bytes = sl_min_u64(to.uncut_limit_bytes,
			sl_max_u64(to.shareable_bytes, to.request_bytes));
	}
	if (which & SL_SET_PRIORITY)
		to.priority = event->workload_set.priority;
	if (which & SL_SET_COMPUTE_REQUEST)
		to.compute_pm = event->workload_set.compute_pm;
	return to;
}

/* Bounds apply to what a person changes, not to what an administrator once gave. */
static struct sl_bounds_verdict judge_bounds(const struct sl_node_workload *workload,
	const struct change *to, const struct sl_event *event)
{
	struct sl_bounds bounds = event->workload_set.bounds;
	struct sl_bounds_ask ask = {
		.shareable_bytes = to->shareable_bytes, .priority = to->priority};

	bounds.has_priority &= to->priority != workload->priority;
	if (SL_MUTANT(SET_JUDGES_ALL, to->request_bytes != sl_node_request_of(workload),
		    true))
		ask.request_bytes = to->request_bytes;
	if (SL_MUTANT(SET_JUDGES_ALL, to->limit_bytes != workload->account.limit_bytes,
		    true))
		ask.limit_bytes = to->limit_bytes;
	return sl_bounds_judge(&bounds, &ask);
}

/* A request can only be raised where I1 holds with it: on each of its GPUs. */
static bool refuse_raise(struct sl_node_step *step,
	const struct sl_node_workload *workload, uint64_t request_bytes)
{
	uint64_t id = workload->index.id;

	sl_each_gpu (gpu, workload->account.gpu_mask) {
		uint64_t room = sl_node_request_room(step->node, workload, gpu);
		enum sl_reason reason = SL_REASON_NONE;

		if (request_bytes > room)
			reason = SL_REASON_REQUESTS_TAKEN;
		if (SL_MUTANT(RAISE_DEGRADED,
			    sl_ledger_is_degraded(&step->node->ledger, gpu), false))
			reason = SL_REASON_DEGRADED;
		if (SL_MUTANT(RAISE_LOST, step->node->gpu[gpu].lost, false))
			reason = SL_REASON_GPU_LOST;
		if (SL_MUTANT(RAISE_OVERBOOKS, reason, SL_REASON_NONE) == SL_REASON_NONE)
			continue;
		sl_node_refuse(step, id, reason, gpu, request_bytes, room);
		return true;
	}
	return false;
}

static bool refuse_time(struct sl_node_step *step,
	const struct sl_node_workload *workload, uint32_t compute_pm)
{
	sl_each_gpu (gpu, workload->account.gpu_mask) {
		uint32_t room = sl_node_compute_room(step->node, workload, gpu);

		if (SL_MUTANT(RAISE_WITHOUT_TIME, compute_pm <= room, true))
			continue;
		sl_node_refuse(step, workload->index.id, SL_REASON_COMPUTE_TAKEN, gpu,
			compute_pm, room);
		return true;
	}
	return false;
}

/* What it has can only be kept there for good where I1 holds with it. */
static bool refuse_keep(struct sl_node_step *step,
	const struct sl_node_workload *workload, const struct change *to,
	const struct sl_event *event)
{
	bool now_kept = event->workload_set.which & SL_SET_FLAGS &&
			event->workload_set.flags & SL_WORKLOAD_NO_SWAP;

	if (!now_kept || !sl_node_keeps_for_good(step->node) ||
		sl_node_is_parked(workload) || sl_node_is_fixed(step->node, workload))
		return false;
	sl_each_gpu (gpu, workload->account.touched) {
		uint64_t has = sl_ledger_use(&workload->account, gpu);
		uint64_t room = sl_node_request_room(step->node, workload, gpu);

		if (has <= sl_max_u64(room, to->request_bytes) ||
			step->node->gpu[gpu].lost ||
			SL_MUTANT(KEEPS_WITH_LOAN, false, true))
			continue;
		sl_node_refuse(step, workload->index.id, SL_REASON_STANDS_ON_REQUESTS,
			gpu, has - to->request_bytes,
			sl_sub_sat(room, to->request_bytes));
		return true;
	}
	return false;
}

/* Unclaimed requests of others on this GPU that the workload may not use. */
static uint64_t kept_from(const struct sl_node *node, const struct sl_node_workload *but,
	uint32_t gpu, int32_t priority, bool from_all)
{
	uint64_t bytes = 0;

	sl_node_each_workload (workload, node) {
		if (workload != but && (from_all || workload->priority <= priority))
			bytes += sl_ledger_unclaimed(&workload->account, gpu);
	}
	return bytes;
}

/*
 * A workload's burst may use requests of higher priority, because `priority` can take the bytes
 * back. Refuses a change after which it no longer could: the workload would rise above those
 * requests, or become no-swap. O(workloads).
 */
static bool refuse_rise(struct sl_node_step *step,
	const struct sl_node_workload *workload, const struct change *to,
	const struct sl_event *event)
{
	bool now_kept = event->workload_set.which & SL_SET_FLAGS &&
			event->workload_set.flags & SL_WORKLOAD_NO_SWAP;

	if (!sl_node_has(step->node, SL_RESOLVER_PRIORITY) ||
		sl_node_is_fixed(step->node, workload) ||
		(to->priority <= workload->priority && !now_kept))
		return false;
	sl_each_gpu (gpu, workload->account.touched) {
		uint64_t burst = sl_sub_sat(
			sl_ledger_here(&workload->account, gpu), to->request_bytes);
		uint64_t kept =
			kept_from(step->node, workload, gpu, to->priority, now_kept);
		uint64_t free_bytes = sl_ledger_free_bytes(&step->node->ledger, gpu);

		if (!burst || kept <= free_bytes || step->node->gpu[gpu].lost ||
			kept <= kept_from(step->node, workload, gpu, workload->priority,
					false))
			continue;
		if (SL_MUTANT(RISES_WITH_LOAN, false, true))
			continue;
		sl_node_refuse(step, workload->index.id, SL_REASON_STANDS_ON_REQUESTS,
			gpu, burst, free_bytes);
		return true;
	}
	return false;
}

static bool refuse_change(struct sl_node_step *step,
	const struct sl_node_workload *workload, const struct change *to,
	const struct sl_event *event)
{
	uint64_t id = workload->index.id;
	struct sl_bounds_verdict bound = judge_bounds(workload, to, event);

	if (to->request_bytes > sl_node_request_of(workload) &&
		to->request_bytes > to->shareable_bytes)
		sl_node_refuse(step, id, SL_REASON_REQUEST_TOO_LARGE, to->smallest_gpu,
			to->request_bytes, to->shareable_bytes);
	else if (to->uncut_limit_bytes < to->request_bytes)
		sl_node_refuse(step, id, SL_REASON_LIMIT_BELOW_REQUEST, 0,
			to->request_bytes, to->uncut_limit_bytes);
	else if (bound.reason != SL_REASON_NONE)
		sl_node_refuse(step, id, bound.reason, 0, bound.wanted, bound.allowed);
	else
		return (to->request_bytes > sl_node_request_of(workload) &&
			       !sl_node_is_parked(workload) &&
			       refuse_raise(step, workload, to->request_bytes)) ||
		       (to->compute_pm > workload->compute_pm &&
			       !sl_node_is_parked(workload) &&
			       refuse_time(step, workload, to->compute_pm)) ||
		       refuse_keep(step, workload, to, event) ||
		       refuse_rise(step, workload, to, event);
	return true;
}

/* The largest excess over its limit on one GPU. */
static uint64_t over_bytes(const struct sl_node_workload *workload)
{
	uint64_t most = 0;

	sl_each_gpu (gpu, workload->account.touched) {
		uint64_t use = sl_ledger_use(&workload->account, gpu);

		most = sl_max_u64(most, sl_sub_sat(use, workload->account.limit_bytes));
	}
	return most;
}

static void tell_new_limit(
	struct sl_node_step *step, const struct sl_node_workload *workload)
{
	sl_each_gpu (gpu, SL_MUTANT(SET_UNTOLD, workload->account.gpu_mask, 0))
		sl_node_tell_view(step, workload, gpu, 1);
}

/*
 * The change takes effect in this step. The plan looks at the workload's GPUs again, denies waiting
 * demands that no longer fit under the limit, and ranks the others anew as entitled or burst. A
 * higher request takes room from other workloads' bursts, which may now be hopeless.
 */
static void change(struct sl_node_step *step, struct sl_node_workload *workload,
	const struct change *to, const struct sl_event *event)
{
	bool limit_moves = to->limit_bytes != workload->account.limit_bytes;

	if (sl_node_is_parked(workload))
		workload->request_bytes = to->request_bytes;
	sl_ledger_change(&step->node->ledger, &workload->account,
		sl_node_is_parked(workload) ? 0 : to->request_bytes, to->limit_bytes);
	workload->compute_pm = to->compute_pm;
	workload->flags = sl_flags_set(
		workload->flags, event->workload_set.which, event->workload_set.flags);
	sl_node_book_stays(step->node, workload);
	if (event->workload_set.which & SL_SET_WAIT)
		workload->wait_max = event->workload_set.wait_max;
	if (event->workload_set.which & SL_SET_WARM)
		workload->warm_after = event->workload_set.warm_after;
	if (event->workload_set.which & SL_SET_DETACH) {
		workload->detach_after = event->workload_set.detach_after;
		sl_node_count_unused(step, workload);
	}
	if (event->workload_set.which & SL_SET_GRACE)
		workload->idle_grace = event->workload_set.idle_grace;
	workload->priority = SL_MUTANT(SET_KEEPS_RANK, to->priority, workload->priority);
	step->plans = true;
	sl_node_emit(step, (struct sl_action){.type = SL_ACTION_SET_DONE,
				   .set_done = {.workload = workload->index.id,
					   .request_bytes = to->request_bytes,
					   .limit_bytes = to->limit_bytes,
					   .priority = to->priority,
					   .over_bytes = over_bytes(workload)}});
	if (limit_moves)
		tell_new_limit(step, workload);
}

void sl_node_on_workload_set(struct sl_node_step *step, const struct sl_event *event)
{
	uint64_t id = event->workload_set.workload;
	struct sl_node_workload *workload = sl_node_find_workload(step->node, id);
	struct change to;

	if (!workload || sl_node_is_removed(workload)) {
		sl_node_refuse(step, id, SL_REASON_UNKNOWN_WORKLOAD, 0, 0, 0);
		return;
	}
	to = resolve_change(step->node, workload, event);
	if (!refuse_change(step, workload, &to, event))
		change(step, workload, &to, event);
}
