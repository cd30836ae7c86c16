/*
 * cycle - one cycle: allocate, consolidate, reclaim, preempt, stale gangs, spread
 *
 * Allocate asks for the first group in order (joborder.h) and starts its first job. Each start
 * changes the books and so the order. Once a job finds no place, the rest of its group is skipped.
 * The other actions go over what is left with bounded effort. A failed search is not repeated
 * before something has changed. If the effort does not suffice for all, the remaining jobs come
 * first in the next cycle.
 */
#include "policy/cluster/internal.h"

#include "policy/mutant.h"

/* --- Allocate. --- */

/* False: so many tasks of this kind surely do not all fit; *most gets an upper bound of how many
 * do. One pass over the nodes. */
static bool could_fit(const struct sl_cluster *cl, const struct sl_need *need,
	uint32_t tasks, uint32_t *most)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < cl->nodes_high && sum < tasks; i++) {
		const struct sl_fit_node *node = &cl->fit[i];
		uint64_t here = tasks;

		if (!cl->node[i].used || !sl_fit_in(node, &node->later, need))
			continue;
		if (need->cpu_milli)
			here = sl_min_u64(
				here, (uint64_t)node->later.cpu_milli / need->cpu_milli);
		if (need->memory_mib)
			here = sl_min_u64(here,
				(uint64_t)node->later.memory_mib / need->memory_mib);
		if (need->gpus) {
			uint32_t milli = sl_fit_milli(node, need), gpus = 0;
			bool whole = milli == SL_FIT_WHOLE && !need->only;
			uint32_t mask = whole ? 0 : sl_fit_usable(node, need);

			if (whole)
				gpus = (uint32_t)node->later.whole;
			for (; mask; mask &= mask - 1) {
				int16_t left = sl_fit_above_zero(
					node->later.left[__builtin_ctz(mask)]);

				gpus += (uint32_t)left / (milli ? milli : 1);
			}
			here = sl_min_u64(here, gpus / need->gpus);
		}
		sum += here;
	}
	*most = (uint32_t)sl_min_u64(sum, tasks);
	return sum >= tasks;
}

static void undo_given(struct sl_cluster *cl)
{
	while (cl->given.count) {
		struct sl_cl_task *task = cl->given.task[--cl->given.count];

		if (task->promised)
			sl_cl_task_unpromise(cl, task);
		else
			sl_cl_task_untake(cl, task);
	}
}

/* Finds a place for each task, free now if possible. *wait: one of them must wait. */
static bool give_all(struct sl_cluster *cl, struct sl_cl_job *job,
	const struct sl_cl_want *want, uint32_t wants, bool may_wait, bool *wait)
{
	for (uint32_t w = 0; w < wants; w++) {
		struct sl_cl_part *part = job->part[want[w].part];

		for (uint32_t i = 0; i < want[w].count; i++) {
			struct sl_cl_task *task = sl_cl_next_pending(part, 0);
			struct sl_place place;

			if (sl_cl_find_place(cl, task, false, &place)) {
				sl_cl_task_take(cl, task, place, SL_TASK_BINDING);
			} else if (may_wait && sl_cl_find_place(cl, task, true, &place)) {
				sl_cl_task_promise(cl, task, place);
				*wait = true;
			} else {
				return false;
			}
			sl_cl_trail_add(cl, &cl->given, task);
		}
	}
	return true;
}

static void tell_given(struct sl_cluster *cl, bool wait)
{
	for (uint32_t i = 0; i < cl->given.count; i++) {
		struct sl_cl_task *task = cl->given.task[i];

		if (!wait) {
			sl_cl_task_bind(cl, task);
			continue;
		}
		if (!task->promised) {
			struct sl_place place = task->place;

			sl_cl_task_untake(cl, task);
			sl_cl_task_promise(cl, task, place);
		}
		sl_cl_tell_place(cl, task);
	}
	cl->given.count = 0;
}

/* For a job alone in its group: its only place is not free, or free nodes have just refused it. */
static void explain_alone(const struct sl_cluster *cl, const struct sl_cl_job *job,
	struct sl_pending_because *because)
{
	for (uint32_t p = 0; p < job->parts; p++) {
		for (uint32_t i = 0; i < job->part[p]->tasks; i++) {
			if (job->part[p]->task[i].parked)
				because->reason = SL_PENDING_PARKED;
		}
	}
	if (sl_cl_is_refused(cl, job, SL_CL_NO_NODE))
		because->reason = SL_PENDING_BIND_REFUSED;
}

static bool fail(struct sl_cl_group *group, const struct sl_pending_because *because)
{
	group->room = group->because = *because;
	return false;
}

/* Is there room for the tasks of each kind, as far as counting tells? */
static bool has_room(struct sl_cluster *cl, const struct sl_cl_want *want, uint32_t wants,
	struct sl_pending_because *because)
{
	for (uint32_t w = 0; w < wants; w++) {
		struct sl_cl_class *class = want[w].class;
		uint32_t most = class->fit;
		bool fits = false;

		if (want[w].count == 1)
			continue;
		/* Without gains there is no more room than before. */
		if (class->counted_at != cl->gains || class->fit >= want[w].count) {
			fits = could_fit(cl, &class->need, want[w].count, &most);
			class->counted_at = fits ? 0 : cl->gains;
			class->fit = most;
		}
		if (!fits) {
			*because = sl_cl_why_no_room(cl, &want[w], most);
			return false;
		}
	}
	return true;
}

/* Nothing has become free, so the group is not tried again. But there may be even less room than
 * its reason says. */
static void fail_again(
	struct sl_cluster *cl, struct sl_cl_group *group, const struct sl_cl_want *want)
{
	struct sl_pending_because because;

	if ((group->room.reason != SL_PENDING_NO_ROOM &&
		    group->room.reason != SL_PENDING_FRAGMENTS) ||
		group->tried[SL_CL_RECLAIM] == cl->version)
		return;
	because = sl_cl_why_no_room(cl, want, 0);
	if (group->because.reason == group->room.reason)
		group->because = because;
	group->room = because;
}

/* Finds places for the first job of the group: the tasks in cl->given have them, free or promised
 * (*wait), but no BIND was sent yet. False: there are none, and the group's reason says why. */
static bool find_places(struct sl_cluster *cl, struct sl_cl_group *group, bool *wait)
{
	struct sl_cl_job *job = group->heap[0];
	struct sl_cl_want want[SL_CL_PARTS];
	uint32_t extra, most, wants = sl_cl_job_wants(job, want, &extra);
	uint64_t gains = cl->gains;
	struct sl_pending_because because, leaving;
	bool now;

	if (!sl_cl_allowed(cl, job, &group->order.wants, &because) ||
		!sl_cl_owner_allows(job, want, wants, &because))
		return fail(group, &because);
	now = sl_cl_allowed_now(cl, job, &group->order.wants, &leaving);
	for (uint32_t i = 0; group->only && i < job->refusals; i++)
		sl_cl_wake(cl, job->refused[i].until);
	/* A job alone in its group may have failed for its own reasons, not for lack of room. */
	if (group->failed_at == gains && !group->only) {
		fail_again(cl, group, want);
		return false;
	}
	if (!has_room(cl, want, wants, &because)) {
		group->failed_at = gains;
		if (group->only)
			explain_alone(cl, job, &because);
		return fail(group, &because);
	}
	*wait = false;
	if (!give_all(cl, job, want, wants, true, wait)) {
		most = cl->given.count;
		undo_given(cl);
		cl->gains = gains;
		group->failed_at = gains;
		because = sl_cl_why_no_room(cl, &want[0], most);
		if (group->only)
			explain_alone(cl, job, &because);
		return fail(group, &because);
	}
	/* What is free is for a job that may have it now. */
	if (!now && !*wait) {
		undo_given(cl);
		cl->gains = gains;
		return fail(group, &leaving);
	}
	return true;
}

/* Starts the first job of the group, or promises it a place. */
static bool start(struct sl_cluster *cl, struct sl_cl_group *group)
{
	bool wait;

	if (!find_places(cl, group, &wait))
		return false;
	/* If others of its gang still wait for places, it starts when all can. */
	tell_given(cl, wait || sl_list_is_linked(&group->heap[0]->promised));
	return true;
}

/* The job takes those of its promised places that are free now. A gang takes none before it can
 * start. */
static bool keep_promise(struct sl_cluster *cl, struct sl_cl_job *job)
{
	uint32_t count = 0;
	bool whole = true;

	for (uint32_t p = 0; p < job->parts; p++) {
		struct sl_cl_part *part = job->part[p];
		uint32_t waits = part->in[SL_TASK_PIPELINED];

		for (uint32_t i = 0; i < part->tasks && waits; i++) {
			struct sl_cl_task *task = &part->task[i];
			struct sl_need need = sl_cl_moves(task, task->next.node);
			struct sl_place next = task->next;

			if (task->state != SL_TASK_PIPELINED)
				continue;
			waits--;
			if (!sl_cl_room_at(&cl->fit[next.node], &cl->fit[next.node].now,
				    &need, next))
				continue;
			sl_cl_task_unpromise(cl, task);
			sl_cl_task_take(cl, task, next, SL_TASK_BINDING);
			sl_cl_trail_add(cl, &cl->given, task);
			count++;
		}
		whole &= sl_cl_running(part) + part->done >= part->least;
	}
	if (!count)
		return false;
	/* Nor while stopping tasks of its project still use up the limit. */
	if (SL_MUTANT(CLUSTER_GANG_TORN, !whole, false) ||
		SL_MUTANT(CLUSTER_LIMIT_FORGETS, sl_cl_is_over_now(cl, job), false)) {
		while (cl->given.count) {
			struct sl_cl_task *task = cl->given.task[--cl->given.count];
			struct sl_place place = task->place;

			sl_cl_task_untake(cl, task);
			sl_cl_task_promise(cl, task, place);
		}
		return false;
	}
	tell_given(cl, false);
	return true;
}

/* The job may start these tasks now, without waiting for stopping tasks, even if it was promised
 * fewer. */
static bool may_have(struct sl_cluster *cl, const struct sl_cl_job *job,
	const struct sl_cl_want *want, uint32_t wants)
{
	struct sl_pending_because because;
	struct sl_quantity more = {{0}};

	for (uint32_t w = 0; w < wants; w++) {
		for (int r = 0; r < SL_RESOURCES; r++)
			more.of[r] += job->part[want[w].part]->each.of[r] * want[w].count;
	}
	return sl_cl_allowed(cl, job, &more, &because) &&
	       sl_cl_allowed_now(cl, job, &more, &because);
}

/* A whole job that waits for its promised places may find others that are free now. */
static bool find_sooner(struct sl_cluster *cl, struct sl_cl_job *job)
{
	struct sl_cl_want want[SL_CL_PARTS];
	uint32_t wants, extra;
	uint64_t gains = cl->gains;
	bool wait = false;

	/* A failed job only has its promised place. */
	if (job->held_until > cl->now)
		return false;
	for (uint32_t p = 0; p < job->parts; p++) {
		if (job->part[p]->coming || sl_cl_running(job->part[p]))
			return false;
	}
	/* The trail of evicted tasks keeps the old promises, which come back if nothing better is
	 * found. */
	for (uint32_t p = 0; p < job->parts; p++) {
		for (uint32_t i = 0; i < job->part[p]->tasks; i++) {
			struct sl_cl_task *task = &job->part[p]->task[i];

			if (task->state != SL_TASK_PIPELINED)
				continue;
			sl_cl_task_unpromise(cl, task);
			sl_cl_trail_add(cl, &cl->evicted, task);
		}
	}
	wants = sl_cl_job_wants(job, want, &extra);
	if (wants && may_have(cl, job, want, wants) &&
		give_all(cl, job, want, wants, false, &wait)) {
		cl->evicted.count = 0;
		tell_given(cl, false);
		return true;
	}
	undo_given(cl);
	for (uint32_t i = 0; i < cl->evicted.count; i++)
		sl_cl_task_promise(cl, cl->evicted.task[i], cl->evicted.task[i]->next);
	cl->evicted.count = 0;
	cl->gains = gains;
	return false;
}

/* Adds what the job got to its owner's tasks. */
static void has_more(struct sl_cluster *cl, struct sl_cl_job *job, uint32_t before)
{
	uint32_t stands = sl_cl_stands(job);

	if (stands > before)
		job->owner->stands += stands - before;
	sl_cl_job_settle(cl, job);
}

static void allocate(struct sl_cluster *cl)
{
	struct sl_joborder_job *at;

	sl_list_foreach_safe (link, &cl->promised) {
		struct sl_cl_job *job = SL_CL_ENTRY(link, sl_cl_job, promised);
		uint32_t before = sl_cl_stands(job);

		/* A limit was lowered, or a task that was to go stays: promises come last. */
		if (sl_cl_is_over(cl, job) ||
			(job->owner && job->owner->stands > job->owner->most)) {
			sl_cl_job_unpromise(cl, job);
			if (job->owner)
				job->owner->stands -= before - sl_cl_stands(job);
			sl_cl_job_settle(cl, job);
		} else if (keep_promise(cl, job) || find_sooner(cl, job)) {
			sl_cl_job_settle(cl, job);
		}
	}
	sl_joborder_begin(cl->order);
	while ((at = sl_joborder_next(cl->order))) {
		struct sl_cl_group *group = sl_cl_group_of(at);
		struct sl_cl_job *job = group->heap[0];
		uint32_t before = sl_cl_stands(job);

		if (start(cl, group))
			has_more(cl, job, before);
	}
}

/* --- What makes room. --- */

/* Before it displaces others, the job waits for room that appears by itself. While it lacks only
 * room, or its parked place is in use, this delay is the reason shown. */
static bool is_delayed(struct sl_cluster *cl, struct sl_cl_group *group)
{
	const struct sl_cl_job *job = group->heap[0];
	sl_ns due = sl_cl_takes_at(job);

	if (SL_MUTANT(CLUSTER_NO_DELAY, cl->now >= due, true))
		return false;
	sl_cl_wake(cl, due);
	if (group->because.reason == SL_PENDING_NO_ROOM ||
		group->because.reason == SL_PENDING_FRAGMENTS ||
		group->because.reason == SL_PENDING_GANG ||
		group->because.reason == SL_PENDING_PARKED)
		group->because.reason = due == job->paused_until
						? SL_PENDING_RESUME_WAIT
						: SL_PENDING_PREEMPT_DELAY;
	return true;
}

static void make_room(struct sl_cluster *cl, enum sl_cl_mode mode)
{
	/* Each mode has its own share, so that failures of an early mode leave the others their
	 * turn. */
	static const uint64_t efforts[SL_CL_MODES] = {
		SL_CL_EFFORT / 4, SL_CL_EFFORT / 2, SL_CL_EFFORT / 4};
	struct sl_joborder_job *at;
	bool skipped = false;

	cl->effort = efforts[mode];
	sl_joborder_begin(cl->order);
	while ((at = sl_joborder_next(cl->order))) {
		struct sl_cl_group *group = sl_cl_group_of(at);
		struct sl_cl_job *job = group->heap[0];
		uint32_t before = sl_cl_stands(job);

		if (group->tried[mode] == cl->version || is_delayed(cl, group))
			continue;
		if (!cl->effort || group->round[mode] == cl->round[mode]) {
			skipped = true;
			continue;
		}
		if (sl_cl_search(cl, group, mode)) {
			cl->version++;
			has_more(cl, job, before);
		} else {
			group->tried[mode] = cl->version;
			group->round[mode] = cl->round[mode];
		}
	}
	/* Every job had its turn. */
	if (cl->effort)
		cl->round[mode]++;
	else if (skipped)
		cl->more = true;
}

static void stop_stale(struct sl_cluster *cl)
{
	sl_list_foreach_safe (link, &cl->stale) {
		struct sl_cl_job *job = SL_CL_ENTRY(link, sl_cl_job, stale);
		sl_ns grace = job->stale_grace ? job->stale_grace : cl->stale_grace;
		sl_ns due = grace > SL_NS_NEVER - job->stale_since
				    ? SL_NS_NEVER
				    : job->stale_since + grace;

		if (SL_MUTANT(CLUSTER_STALE_AT_ONCE, cl->now < due, false)) {
			sl_cl_wake(cl, due);
			continue;
		}
		for (uint32_t p = 0; p < job->parts; p++) {
			for (uint32_t i = 0; i < job->part[p]->tasks; i++) {
				struct sl_cl_task *task = &job->part[p]->task[i];

				if (task->state == SL_TASK_PIPELINED)
					sl_cl_task_unpromise(cl, task);
				if (task->state != SL_TASK_BINDING &&
					task->state != SL_TASK_RUNNING)
					continue;
				sl_cl_task_release(cl, task);
				sl_cl_task_stop(cl, task, SL_STOP_STALE, NULL, false);
			}
		}
		sl_cl_job_settle(cl, job);
	}
}

/* --- Around it. --- */

/* Since when the first of its tasks is parked. */
static sl_ns parked_since(const struct sl_cl_job *job)
{
	sl_ns since = SL_NS_NEVER;

	for (uint32_t p = 0; p < job->parts; p++) {
		for (uint32_t i = 0; i < job->part[p]->tasks; i++) {
			const struct sl_cl_task *task = &job->part[p]->task[i];

			if (task->parked && task->state == SL_TASK_PENDING)
				since = sl_min_u64(since, task->parked_at);
		}
	}
	return since;
}

/* Its host memory ties it to its node and GPUs. */
static void give_up(struct sl_cluster *cl, struct sl_cl_job *job)
{
	for (uint32_t p = 0; p < job->parts; p++) {
		for (uint32_t i = 0; i < job->part[p]->tasks; i++) {
			struct sl_cl_task *task = &job->part[p]->task[i];

			if (!task->parked || task->state != SL_TASK_PENDING)
				continue;
			sl_cl_task_drop(cl, task);
			sl_cl_emit(cl,
				(struct sl_cluster_action){.type = SL_CLUSTER_ACTION_STOP,
					.stop = {.job = job->index.id,
						.task = task->number,
						.how = SL_STOP_GIVE_UP}});
		}
	}
	sl_cl_job_settle(cl, job);
}

/* Gives up jobs that were parked for their resume_wait and whose GPUs are still not free. */
static void give_up_parked(struct sl_cluster *cl)
{
	sl_list_foreach_safe (link, &cl->parked) {
		struct sl_cl_job *job = SL_CL_ENTRY(link, sl_cl_job, parked);
		sl_ns since = parked_since(job), due;

		if (job->giving_up || since == SL_NS_NEVER)
			continue;
		due = job->resume_wait > SL_NS_NEVER - since ? SL_NS_NEVER
							     : since + job->resume_wait;
		due = sl_max_u64(due, job->held_until);
		if (SL_MUTANT(CLUSTER_GIVES_UP_AT_ONCE, cl->now < due, false))
			sl_cl_wake(cl, due);
		else
			give_up(cl, job);
	}
}

/* Reports tasks that should be gone by now as LATE; their places are no longer promised. */
static void give_up_stuck(struct sl_cluster *cl)
{
	while (!sl_list_is_empty(&cl->leaving)) {
		struct sl_cl_task *task =
			SL_CL_ENTRY(cl->leaving.next, sl_cl_task, leaving);

		sl_ns due = cl->stop_within > SL_NS_NEVER - task->since
				    ? SL_NS_NEVER
				    : task->since + cl->stop_within;

		if (SL_MUTANT(CLUSTER_LATE_NEVER, cl->now < due, true)) {
			sl_cl_wake(cl, due);
			return;
		}
		sl_list_unlink(&task->leaving);
		task->stuck = true;
		sl_cl_node_unrelease(cl, task);
		sl_cl_node_repair(cl, task->place.node);
		sl_cl_emit(cl, (struct sl_cluster_action){.type = SL_CLUSTER_ACTION_LATE,
				       .late = {.job = task->part->job->index.id,
					       .task = task->number}});
	}
}

/* Jobs in the order wait for the end of a pause; the others, of a back-off. */
static void free_held(struct sl_cluster *cl)
{
	sl_list_foreach_safe (link, &cl->held) {
		struct sl_cl_job *job = SL_CL_ENTRY(link, sl_cl_job, held);

		sl_ns until = job->group ? job->paused_until : job->held_until;

		if (job->giving_up)
			continue;
		if (until <= cl->now) {
			sl_cl_job_settle(cl, job);
			cl->version++;
		} else {
			sl_cl_wake(cl, until);
		}
	}
}

void sl_cl_on_cycle(struct sl_cluster *cl, const struct sl_cluster_event *event)
{
	uint32_t which = event->cycle.which;
	uint64_t actions = cl->next_action;

	/* Nothing has happened since, and nothing is due. */
	if (cl->now < cl->due && (cl->cycled & which) == which)
		return;
	if (cl->now >= cl->due) {
		cl->version++;
		cl->due = SL_NS_NEVER;
		cl->cycled = 0;
	}
	cl->more = false;
	cl->why_effort = cl->lack_effort = SL_CL_WHY_EFFORT;
	free_held(cl);
	give_up_stuck(cl);
	sl_tree_share(&cl->tree, &cl->capacity);
	sl_cl_count_owners(cl);
	if (which & SL_CYCLE_ALLOCATE) {
		allocate(cl);
		give_up_parked(cl);
	}
	if (which & SL_CYCLE_CONSOLIDATE)
		make_room(cl, SL_CL_CONSOLIDATE);
	if (which & SL_CYCLE_RECLAIM)
		make_room(cl, SL_CL_RECLAIM);
	if (which & SL_CYCLE_PREEMPT)
		make_room(cl, SL_CL_PREEMPT);
	if (which & SL_CYCLE_STALE)
		stop_stale(cl);
	if (which & SL_CYCLE_SPREAD)
		sl_cl_spread(cl);
	/* Its own actions may allow more. */
	cl->cycled = cl->more || cl->next_action != actions ? 0 : cl->cycled | which;
	if (cl->more)
		sl_cl_wake(cl, cl->now + 1);
}
