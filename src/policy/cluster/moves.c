/*
 * moves - tasks that go to other GPUs of their node and lose nothing
 *
 * Such a task (SL_JOB_PARKS and SL_JOB_MOVES) is parked with a promised place: it is stopped with
 * SL_STOP_MOVE, its memory waits on the host, and it is bound at the new place next. The search
 * moves tasks to consolidate; this file has what bounds these moves, the moves that a user asks
 * for, and those that spread bursting tasks over unused GPUs.
 */
#include "policy/cluster/internal.h"

#include "policy/mutant.h"

#define SLOT (60 * SL_S)
/* A task that was moved stays at least as long. */
#define STAYS_FOR (60 * SL_S)
/* After a user's move, how long nothing is spread. */
#define SPREAD_AFTER_USER (3600 * SL_S)

/* --- How many per hour. --- */

/* Every moment of the last hour lies in the slots that count, and up to a minute before it. */
static bool is_recent(const struct sl_cluster *cl, const struct sl_cl_moved *slot)
{
	return slot->count && slot->minute + SL_CL_MOVED > cl->now / SLOT;
}

uint32_t sl_cl_moves_left(const struct sl_cluster *cl)
{
	uint64_t moved = 0;

	for (uint32_t i = 0; i < SL_CL_MOVED; i++)
		moved += is_recent(cl, &cl->moved[i]) ? cl->moved[i].count : 0;
	return (uint32_t)sl_sub_sat(cl->move_most, moved);
}

sl_ns sl_cl_moves_again(const struct sl_cluster *cl)
{
	uint64_t oldest = UINT64_MAX;

	for (uint32_t i = 0; i < SL_CL_MOVED; i++) {
		if (is_recent(cl, &cl->moved[i]))
			oldest = sl_min_u64(oldest, cl->moved[i].minute);
	}
	return oldest == UINT64_MAX ? SL_NS_NEVER : (oldest + SL_CL_MOVED) * SLOT;
}

void sl_cl_moves_count(struct sl_cluster *cl)
{
	uint64_t minute = cl->now / SLOT;
	struct sl_cl_moved *slot = &cl->moved[minute % SL_CL_MOVED];

	if (slot->minute != minute)
		*slot = (struct sl_cl_moved){.minute = minute};
	slot->count += SL_MUTANT(CLUSTER_MOVES_UNCOUNTED, 1, 0);
}

sl_ns sl_cl_stays_until(const struct sl_cluster *cl, const struct sl_cl_task *task)
{
	const struct sl_cl_job *job = task->part->job;
	sl_ns span = sl_max_u64(STAYS_FOR, cl->resume_factor * job->swap_cost);

	/* how: its last stop was a move. */
	if (SL_MUTANT(CLUSTER_MOVES_ON, task->how != SL_STOP_MOVE, true) ||
		span > SL_NS_NEVER - task->since)
		return task->spared_until;
	return sl_max_u64(task->spared_until, task->since + span);
}

/* --- One task. --- */

static bool has_pool(const struct sl_cluster *cl, const struct sl_cl_task *task)
{
	const struct sl_cl_node *node = &cl->node[task->place.node];

	return node->parked_mib + task->part->job->park_mib <= node->pool_mib;
}

/*
 * May it go, and will it come back? A gang below its least does not start again, nor does a job
 * beyond a limit. The node must still be one that it may use, with enough cores and memory; it must
 * not have refused the job, and must count its need as it did.
 */
static bool may_move(const struct sl_cluster *cl, const struct sl_cl_task *task)
{
	const struct sl_cl_job *job = task->part->job;
	const struct sl_fit_node *node = &cl->fit[task->place.node];
	const struct sl_need *need = &task->part->class->need;

	return task->state == SL_TASK_RUNNING && sl_cl_movable(job) &&
	       !sl_list_is_linked(&job->stale) && !sl_cl_is_over(cl, job) &&
	       !sl_cl_is_refused(cl, job, task->place.node) && has_pool(cl, task) &&
	       !node->closed && sl_fit_ever(node, need) && node->later.cpu_milli >= 0 &&
	       node->later.memory_mib >= 0 &&
	       sl_fit_milli(node, need) == task->place.milli;
}

/* The least room on these GPUs: free now, and promised to no task. */
static int16_t least_left(const struct sl_fit_node *node, uint32_t gpu_mask)
{
	int16_t least = SL_FIT_WHOLE;

	for (; gpu_mask; gpu_mask &= gpu_mask - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(gpu_mask);

		if (node->now.left[gpu] < least)
			least = node->now.left[gpu];
		if (node->later.left[gpu] < least)
			least = node->later.left[gpu];
	}
	return least;
}

static void send_to(struct sl_cluster *cl, struct sl_cl_task *task, uint32_t gpu_mask)
{
	struct sl_cl_job *job = task->part->job;
	struct sl_place next = {.node = task->place.node,
		.gpu_mask = gpu_mask,
		.milli = task->place.milli};

	sl_cl_task_release(cl, task);
	cl->node[next.node].parked_mib += job->park_mib;
	task->pooled = true;
	sl_cl_task_promise(cl, task, next);
	sl_cl_task_stop(cl, task, SL_STOP_MOVE, NULL, false);
	sl_cl_tell_place(cl, task);
	sl_cl_job_settle(cl, job);
}

/* Could it go there at all? */
static bool may_go_to(
	const struct sl_cluster *cl, const struct sl_cl_task *task, uint32_t gpu_mask)
{
	const struct sl_need *need = &task->part->class->need;

	return may_move(cl, task) && gpu_mask != task->place.gpu_mask &&
	       !(gpu_mask & ~sl_fit_usable(&cl->fit[task->place.node], need)) &&
	       (uint32_t)__builtin_popcount(gpu_mask) == need->gpus;
}

void sl_cl_on_task_move(struct sl_cluster *cl, const struct sl_cluster_event *event)
{
	uint32_t gpu_mask = event->task_move.gpu_mask;
	struct sl_cl_task *task =
		sl_cl_find_task(cl, event->task_move.job, event->task_move.task);
	struct sl_cluster_action refuse = {.type = SL_CLUSTER_ACTION_REFUSE_MOVE,
		.refuse_move = {
			.job = event->task_move.job, .task = event->task_move.task}};

	if (task && may_go_to(cl, task, gpu_mask)) {
		int16_t left = least_left(
			&cl->fit[task->place.node], gpu_mask & ~task->place.gpu_mask);

		if (SL_MUTANT(CLUSTER_MOVE_CROWDS, left >= task->place.milli, true)) {
			cl->spread_from = sl_cl_later(cl, SPREAD_AFTER_USER);
			send_to(cl, task, gpu_mask);
			return;
		}
		refuse.refuse_move.wanted = task->place.milli;
		refuse.refuse_move.available = (uint32_t)sl_fit_above_zero(left);
	}
	sl_cl_emit(cl, refuse);
}

/* --- Spreading. --- */

/* Tasks that run on this GPU or start there. */
static uint32_t tasks_on(const struct sl_cluster *cl, uint32_t number, uint32_t gpu)
{
	uint32_t count = 0;

	sl_list_foreach (link, &cl->node[number].tasks) {
		const struct sl_cl_task *task = SL_CL_ENTRY(link, sl_cl_task, on_node);

		count += task->state != SL_TASK_RELEASING &&
			 task->place.gpu_mask >> gpu & 1;
	}
	return count;
}

static bool may_spread(struct sl_cluster *cl, const struct sl_cl_task *task, uint32_t gpu)
{
	const struct sl_cl_job *job = task->part->job;
	const struct sl_need *need = &task->part->class->need;
	sl_ns stays = sl_cl_stays_until(cl, task);

	if (!(job->flags & SL_JOB_BURSTS) || need->gpus != 1 || !may_move(cl, task) ||
		!(sl_fit_usable(&cl->fit[task->place.node], need) >> gpu & 1) ||
		tasks_on(cl, task->place.node,
			(uint32_t)__builtin_ctz(task->place.gpu_mask)) < 2)
		return false;
	if (stays > cl->now)
		sl_cl_wake(cl, stays);
	return stays <= cl->now;
}

/* The task that has run longest on a GPU that it shares; of equals the lowest number. */
static struct sl_cl_task *choose(struct sl_cluster *cl, uint32_t number, uint32_t gpu)
{
	struct sl_cl_task *best = NULL;

	sl_list_foreach (link, &cl->node[number].tasks) {
		struct sl_cl_task *task = SL_CL_ENTRY(link, sl_cl_task, on_node);

		if (may_spread(cl, task, gpu) &&
			(!best || task->since < best->since ||
				(task->since == best->since &&
					task->part->job->index.id <
						best->part->job->index.id)))
			best = task;
	}
	return best;
}

/* Could it use a GPU that is unused now? Not if only a limit or quota keeps it from running. */
static bool waits_for_room(const struct sl_cl_job *job)
{
	enum sl_pending_reason reason =
		job->group ? job->group->because.reason : job->because.reason;

	return job->waits_since && reason != SL_PENDING_LIMIT &&
	       reason != SL_PENDING_QUOTA && reason != SL_PENDING_BOUND &&
	       reason != SL_PENDING_OVER_LIMIT && reason != SL_PENDING_OVER_QUOTA;
}

/* All jobs have their places, but for those that could not use an unused GPU. */
static bool is_room_spare(const struct sl_cluster *cl)
{
	if (!sl_list_is_empty(&cl->promised))
		return false;
	sl_list_foreach (link, &cl->jobs) {
		if (waits_for_room(SL_CL_ENTRY(link, sl_cl_job, all)))
			return false;
	}
	return true;
}

static bool spread_on(struct sl_cluster *cl, uint32_t number)
{
	const struct sl_fit_node *node = &cl->fit[number];

	if (!cl->node[number].used || node->closed || node->later.whole <= 0)
		return false;
	for (uint32_t gpu = 0; gpu < node->gpus; gpu++) {
		struct sl_cl_task *task;

		if (least_left(node, 1u << gpu) < SL_FIT_WHOLE)
			continue;
		task = choose(cl, number, gpu);
		if (!task)
			continue;
		sl_cl_moves_count(cl);
		send_to(cl, task, 1u << gpu);
		return true;
	}
	return false;
}

void sl_cl_spread(struct sl_cluster *cl)
{
	if (!cl->spreads || !cl->move_most ||
		!SL_MUTANT(CLUSTER_SPREADS_EARLY, is_room_spare(cl), true))
		return;
	/* What a user has put together stays so for a while. */
	if (cl->now < cl->spread_from) {
		sl_cl_wake(cl, cl->spread_from);
		return;
	}
	/* The next job that needs a whole GPU must still find a move. */
	if (sl_cl_moves_left(cl) <= (cl->move_most + 1) / 2) {
		sl_cl_wake(cl, sl_cl_moves_again(cl));
		return;
	}
	for (uint32_t i = 0; i < cl->nodes_high; i++) {
		if (spread_on(cl, i))
			return;
	}
}
