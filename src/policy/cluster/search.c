/*
 * search - which tasks must go so that a job finds its places
 *
 * A bounded search, tried out on the books themselves and undone if it fails:
 *   1. collect   candidates in the order of going (project, priority, age), and their nodes
 *   2. build     for each wanted task, takes the node where least is lost. In this order count:
 *                priority within a project (lower goes first), room freed beyond the need, number
 *                of tasks, order of going. A job goes whole, except for tasks beyond its least.
 *   3. prune     keeps candidates that need not go after all, the most valuable first
 *   4. move      moves tasks that find another place instead of losing them; a parked task loses
 *                nothing, and stays parked
 * To consolidate, the same search requires that every task finds another place. Of jobs that can be
 * parked it takes only those that move (SL_JOB_MOVES), one task at a time, to places on the same
 * node. A search that fails is repeated without the node that it began with, up to search_most
 * times.
 */
#include "policy/cluster/search.h"
#include "policy/quota/reclaim.h"

#include "policy/mutant.h"

/* Nodes that are left out after failures. */
#define BANS_MOST 64

/* --- Taking, and taking back. --- */

static bool reserve_pool(struct sl_search *h, struct sl_cl_task *task)
{
	const struct sl_cl_job *job = task->part->job;
	bool moves = sl_search_moves(h, job);

	if (!(job->flags & SL_JOB_PARKS))
		return true;
	if (!sl_search_has_pool(h, task))
		return job->flags & SL_JOB_GIVES_UP && !moves;
	if (moves && !sl_search_has_move(h))
		return false;
	h->cl->node[task->place.node].parked_mib += job->park_mib;
	task->pooled = true;
	h->moving++;
	return true;
}

static void unreserve_pool(struct sl_search *h, struct sl_cl_task *task)
{
	if (!task->pooled)
		return;
	h->cl->node[task->place.node].parked_mib -= task->part->job->park_mib;
	task->pooled = false;
	h->moving--;
}

static void back_to(struct sl_search *h, uint32_t evicted, uint32_t given)
{
	struct sl_cluster *cl = h->cl;

	while (cl->given.count > given)
		sl_cl_task_unpromise(cl, cl->given.task[--cl->given.count]);
	while (cl->evicted.count > evicted) {
		struct sl_cl_task *task = cl->evicted.task[--cl->evicted.count];

		if (task->promised)
			sl_cl_task_unpromise(cl, task);
		unreserve_pool(h, task);
		sl_cl_task_unrelease(cl, task);
	}
}

static bool evict_task(struct sl_search *h, struct sl_cl_task *task)
{
	if (sl_search_spared(h, task) > h->cl->now || !reserve_pool(h, task))
		return false;
	sl_cl_task_release(h->cl, task);
	sl_cl_trail_add(h->cl, &h->cl->evicted, task);
	return true;
}

/* Evicts the task, and with it the rest of its job if the job cannot spare it. False: it may not
 * go; some of its job may have been evicted. */
static bool evict(struct sl_search *h, struct sl_cl_task *task)
{
	struct sl_cl_job *job = task->part->job;
	bool whole = !sl_search_spare(task->part) && !sl_search_moves(h, job);
	struct sl_quantity taken = {{0}};

	for (int r = 0; r < SL_RESOURCES; r++) {
		if (!whole)
			taken.of[r] = task->booked.of[r];
		for (uint32_t p = 0; whole && p < job->parts; p++)
			taken.of[r] += job->part[p]->each.of[r] *
				       job->part[p]->in[SL_TASK_RUNNING];
	}
	if (h->mode == SL_CL_RECLAIM && sl_reclaim_may(&h->cl->tree, h->job->project,
						&h->rest, job->project, &taken))
		return false;
	if (!whole)
		return evict_task(h, task);
	for (uint32_t p = 0; p < job->parts; p++) {
		for (uint32_t i = 0; i < job->part[p]->tasks; i++) {
			struct sl_cl_task *one = &job->part[p]->task[i];

			if (one->state == SL_TASK_RUNNING && !evict_task(h, one))
				return false;
		}
	}
	return true;
}

/* --- Building. --- */

static bool is_below(const struct sl_cl_near *a, const struct sl_cl_near *b)
{
	if (a->tier != b->tier)
		return a->tier < b->tier;
	if (a->lost != b->lost)
		return SL_MUTANT(CLUSTER_VICTIMS_MANY, a->lost<b->lost, a->lost> b->lost);
	return a->rank < b->rank;
}

/* The node that costs least; its cost holds until the node changes. */
static struct sl_cl_near *cheapest(
	struct sl_search *h, const struct sl_cl_task *wanted, struct sl_search_plan *plan)
{
	for (;;) {
		struct sl_cl_near *best = NULL;
		uint64_t lost, rank;

		for (uint32_t i = 0; i < h->nears; i++) {
			struct sl_cl_near *near = &h->cl->near[i];
			uint64_t changes = h->cl->node[near->node].changes;

			if (near->banned)
				continue;
			if (near->changes != changes + 1) {
				near->changes = changes + 1;
				near->lost =
					sl_search_evaluate(h, near->node, wanted, plan)
						? plan->lost
						: SL_SEARCH_NEVER;
				near->rank = plan->rank;
				near->tier = plan->tier;
			}
			if (near->lost != SL_SEARCH_NEVER &&
				(!best || is_below(near, best)))
				best = near;
		}
		if (!best)
			return NULL;
		lost = best->lost;
		rank = best->rank;
		if (!sl_search_evaluate(h, best->node, wanted, plan))
			plan->lost = SL_SEARCH_NEVER;
		if (plan->lost == lost && plan->rank == rank)
			return best;
		best->lost = plan->lost;
		best->rank = plan->rank;
		best->tier = plan->tier;
	}
}

static bool promise(struct sl_search *h, struct sl_cl_task *wanted, struct sl_place place)
{
	struct sl_quantity amount = sl_cl_quantity(&wanted->part->class->need, place);

	sl_cl_task_promise(h->cl, wanted, place);
	sl_cl_trail_add(h->cl, &h->cl->given, wanted);
	for (int r = 0; r < SL_RESOURCES; r++)
		h->rest.of[r] -=
			amount.of[r] < h->rest.of[r] ? amount.of[r] : h->rest.of[r];
	return true;
}

/* Evicts all tasks of the plan. A job that may not be evicted at first may be once another one was,
 * so this repeats while it helps. NULL: all were evicted; else a job that may not be. */
static struct sl_cl_job *evict_plan(
	struct sl_search *h, const struct sl_search_plan *plan)
{
	uint32_t left = plan->count, before;
	struct sl_cl_job *job;

	do {
		before = left;
		left = 0;
		job = NULL;
		for (uint32_t i = 0; i < plan->count; i++) {
			if (plan->task[i]->state != SL_TASK_RUNNING ||
				evict(h, plan->task[i]))
				continue;
			job = plan->task[i]->part->job;
			left++;
		}
	} while (left && left < before);
	return job;
}

static bool place_one(
	struct sl_search *h, struct sl_cl_task *wanted, struct sl_search_plan *plan)
{
	struct sl_cluster *cl = h->cl;
	struct sl_cl_near *near;
	struct sl_place place;

	if (sl_cl_find_place(cl, wanted, true, &place))
		return promise(h, wanted, place);
	while ((near = cheapest(h, wanted, plan))) {
		uint32_t evicted = cl->evicted.count;
		struct sl_cl_job *cannot = evict_plan(h, plan);

		if (!cannot && sl_cl_place_on(cl, wanted, near->node, &place)) {
			if (h->first == SL_CL_NO_NODE)
				h->first = near->node;
			return promise(h, wanted, place);
		}
		back_to(h, evicted, cl->given.count);
		near->banned = !cannot;
		if (!cannot)
			continue;
		/* Without that job, costs differ. */
		cannot->mark = 0;
		for (uint32_t i = 0; i < h->nears; i++)
			cl->near[i].changes = 0;
	}
	return false;
}

/* In a project at its limit a job must go first, wherever it runs. */
static bool below_limit(struct sl_search *h, struct sl_cl_part *part)
{
	struct sl_cluster *cl = h->cl;

	while (!sl_tree_allows(
		&cl->tree, h->job->project, &part->each, false, NULL, NULL)) {
		struct sl_cl_task *best = NULL;
		struct sl_search_plan none = {.count = 0};

		sl_search_weigh(h, &part->asked, &none);
		for (uint32_t i = 0; i < h->nears; i++) {
			sl_list_foreach (link, &cl->node[cl->near[i].node].tasks) {
				struct sl_cl_task *task =
					SL_CL_ENTRY(link, sl_cl_task, on_node);

				if (task->state == SL_TASK_RUNNING &&
					task->part->job->mark == h->mark &&
					(!best ||
						sl_search_before(task,
							sl_search_cost(&none, task), best,
							sl_search_cost(&none, best))))
					best = task;
			}
		}
		if (h->mode != SL_CL_PREEMPT || !best || !evict(h, best))
			return false;
	}
	return true;
}

static bool build(struct sl_search *h, const struct sl_cl_want *want, uint32_t wants)
{
	struct sl_search_plan plan;

	for (uint32_t w = 0; w < wants; w++) {
		struct sl_cl_part *part = h->job->part[want[w].part];

		/* Costs hold for one kind of task. */
		for (uint32_t i = 0; i < h->nears; i++)
			h->cl->near[i].changes = 0;
		for (uint32_t i = 0; i < want[w].count; i++) {
			struct sl_cl_task *task = sl_cl_next_pending(part, 0);

			if (!task || !below_limit(h, part) || !place_one(h, task, &plan))
				return false;
			/* It would be in vain. */
			if (h->dry && !h->cl->effort)
				return false;
		}
	}
	return h->cl->evicted.count;
}

/* --- Which jobs stay, which move. --- */

/* The evicted job of the highest rank below `below`: the most valuable first. */
static struct sl_cl_job *next_evicted(const struct sl_search *h, uint32_t below)
{
	struct sl_cl_job *best = NULL;

	for (uint32_t i = 0; i < h->cl->evicted.count; i++) {
		struct sl_cl_job *job = h->cl->evicted.task[i]->part->job;

		if (job->rank < below && (!best || job->rank > best->rank))
			best = job;
	}
	return best;
}

static bool stays(struct sl_search *h, struct sl_cl_task *task)
{
	struct sl_need need = sl_cl_moves(task, task->place.node);
	struct sl_cluster *cl = h->cl;

	if (!sl_cl_room_at(&cl->fit[task->place.node], &cl->fit[task->place.node].later,
		    &need, task->place))
		return false;
	if (!SL_MUTANT(CLUSTER_UNTRIMMED, true, false))
		return false;
	sl_cl_task_unrelease(cl, task);
	if (!sl_cl_is_over(cl, task->part->job)) {
		unreserve_pool(h, task);
		return true;
	}
	sl_cl_task_release(cl, task);
	return false;
}

static bool is_torn(const struct sl_cl_job *job)
{
	for (uint32_t p = 0; p < job->parts; p++) {
		if (sl_cl_placed(job->part[p]) + job->part[p]->done < job->part[p]->least)
			return true;
	}
	return false;
}

/* Removes tasks that run again from the trail. */
static void compact(struct sl_search *h)
{
	struct sl_cl_trail *trail = &h->cl->evicted;
	uint32_t count = 0;

	for (uint32_t i = 0; i < trail->count; i++) {
		if (trail->task[i]->state == SL_TASK_RELEASING)
			trail->task[count++] = trail->task[i];
	}
	trail->count = count;
}

static void prune(struct sl_search *h)
{
	struct sl_cluster *cl = h->cl;
	struct sl_cl_job *job;

	for (uint32_t below = UINT32_MAX; (job = next_evicted(h, below));) {
		bool torn = is_torn(job) && !sl_search_moves(h, job);

		below = job->rank;
		for (uint32_t i = 0; i < cl->evicted.count; i++) {
			struct sl_cl_task *task = cl->evicted.task[i];

			if (task->part->job == job)
				(void)stays(h, task);
		}
		/* If not all of a gang can stay, none does. */
		for (uint32_t i = 0; i < cl->evicted.count && torn && is_torn(job); i++) {
			struct sl_cl_task *task = cl->evicted.task[i];

			if (task->part->job == job && task->state == SL_TASK_RUNNING) {
				(void)reserve_pool(h, task);
				sl_cl_task_release(cl, task);
			}
		}
		compact(h);
	}
}

/* All its evicted tasks are parked: a new place would cost the work that host memory keeps. (A job
 * of SL_JOB_MOVES finds one when it returns.) */
static bool is_kept(const struct sl_cluster *cl, const struct sl_cl_job *job)
{
	for (uint32_t i = 0; i < cl->evicted.count; i++) {
		const struct sl_cl_task *task = cl->evicted.task[i];

		if (task->part->job == job && !task->pooled)
			return false;
	}
	return true;
}

/* Finds a new place for every evicted task (all), or else for as many jobs as possible. */
static bool move(struct sl_search *h, bool all)
{
	struct sl_cluster *cl = h->cl;
	struct sl_cl_job *job;

	for (uint32_t below = UINT32_MAX; (job = next_evicted(h, below));) {
		bool torn = is_torn(job), found = true;
		struct sl_place place;

		below = job->rank;
		if (SL_MUTANT(CLUSTER_MOVES_PARKED,
			    !all && (sl_cl_movable(job) || is_kept(cl, job)), false))
			continue;
		for (uint32_t i = 0; i < cl->evicted.count; i++) {
			struct sl_cl_task *task = cl->evicted.task[i];

			if (task->part->job != job)
				continue;
			if (!sl_cl_find_place(cl, task, true, &place)) {
				found = false;
				continue;
			}
			sl_cl_task_promise(cl, task, place);
			/* A need in MiB counts for more on smaller GPUs. */
			if (sl_cl_is_over(cl, job)) {
				sl_cl_task_unpromise(cl, task);
				found = false;
			}
		}
		if (all && SL_MUTANT(CLUSTER_MOVES_NOWHERE, !found, false))
			return false;
		for (uint32_t i = 0; i < cl->evicted.count && torn && !found; i++) {
			struct sl_cl_task *task = cl->evicted.task[i];

			if (task->part->job == job && task->promised)
				sl_cl_task_unpromise(cl, task);
		}
	}
	return true;
}

/* A moved job is on the books again. So a reclaim that was fair without the job may not be fair
 * now. */
static bool is_fair(const struct sl_search *h, const struct sl_quantity *wants)
{
	const struct sl_cluster *cl = h->cl;

	for (uint32_t i = 0; i < cl->evicted.count && h->mode == SL_CL_RECLAIM; i++) {
		const struct sl_cl_task *task = cl->evicted.task[i];

		if (!task->promised && !sl_reclaim_is_fair(&cl->tree, h->job->project,
					       wants, task->part->job->project))
			return false;
	}
	return true;
}

/* --- The end. --- */

static void commit(struct sl_search *h)
{
	struct sl_cluster *cl = h->cl;
	uint64_t done;

	/* A job that begins again elsewhere needs no host memory, so others may have room now. */
	for (uint32_t i = 0; i < cl->evicted.count; i++) {
		if (cl->evicted.task[i]->promised && h->mode != SL_CL_CONSOLIDATE)
			unreserve_pool(h, cl->evicted.task[i]);
	}
	for (uint32_t i = 0; i < cl->evicted.count; i++) {
		struct sl_cl_task *task = cl->evicted.task[i];
		enum sl_stop_how how = SL_STOP_MOVE;

		if (!task->promised && !task->pooled)
			(void)reserve_pool(h, task);
		if (!task->promised)
			how = task->pooled ? SL_STOP_PARK : SL_STOP_TERMINATE;
		if (task->promised && task->pooled)
			sl_cl_moves_count(cl);
		if (how != SL_STOP_MOVE && h->mode == SL_CL_RECLAIM)
			task->part->job->taken_at = cl->outside;
		sl_cl_task_stop(cl, task, how, h->job, h->mode == SL_CL_PREEMPT);
		if (task->promised)
			sl_cl_tell_place(cl, task);
	}
	for (uint32_t i = 0; i < cl->given.count; i++)
		sl_cl_tell_place(cl, cl->given.task[i]);
	done = ++cl->next_mark;
	for (uint32_t i = 0; i < cl->evicted.count; i++) {
		struct sl_cl_job *job = cl->evicted.task[i]->part->job;

		if (job->mark == done)
			continue;
		job->mark = done;
		sl_cl_job_settle(cl, job);
		sl_joborder_booked(cl->order, job->project);
	}
	cl->evicted.count = cl->given.count = 0;
}

/* Tells what commit would do. */
static void tell_would(struct sl_search *h)
{
	struct sl_cluster *cl = h->cl;
	uint64_t done = ++cl->next_mark;

	h->would = (struct sl_cl_would){0};
	for (uint32_t i = 0; i < cl->evicted.count; i++) {
		struct sl_cl_task *task = cl->evicted.task[i];
		struct sl_cl_job *job = task->part->job;
		uint64_t project = cl->tree.all[job->project].id;

		h->would.moves += task->promised;
		if (!task->promised) {
			h->would.from =
				!h->would.stops || h->would.from == project ? project : 0;
			h->would.stops++;
		}
		h->would.jobs += job->mark != done;
		job->mark = done;
	}
}

bool sl_search_run(struct sl_search *h, struct sl_cl_group *group,
	const struct sl_cl_want *want, uint32_t wants)
{
	struct sl_cluster *cl = h->cl;
	uint64_t gains = cl->gains;
	uint32_t wanted = 0, bans[BANS_MOST], ban_count = 0;

	for (uint32_t w = 0; w < wants; w++)
		wanted += want[w].count;
	h->rest = group->order.wants;
	h->nears = h->ranks = h->tasks = 0;
	h->barred_until = SL_NS_NEVER;
	sl_search_collect(h, &want[0].class->need, wanted);
	for (uint32_t tries = 0; h->nears && tries < cl->search_most && cl->effort;
		tries++) {
		bool done;

		h->rest = group->order.wants;
		h->first = SL_CL_NO_NODE;
		for (uint32_t i = 0; i < h->nears; i++) {
			cl->near[i].banned = false;
			for (uint32_t b = 0; b < ban_count; b++)
				cl->near[i].banned |= cl->near[i].node == bans[b];
		}
		done = build(h, want, wants);
		if (done)
			prune(h);
		done = done && cl->evicted.count &&
		       move(h, h->mode == SL_CL_CONSOLIDATE) &&
		       is_fair(h, &group->order.wants);
		if (done && !h->dry) {
			commit(h);
			return true;
		}
		if (done)
			tell_would(h);
		back_to(h, 0, 0);
		cl->gains = gains;
		if (done)
			return true;
		if (h->first == SL_CL_NO_NODE || ban_count == BANS_MOST)
			return false;
		bans[ban_count++] = h->first;
	}
	return false;
}

/*
 * True if the job was reclaimed, nothing has happened outside since, and the job is not guaranteed:
 * it may take nothing yet. Otherwise jobs could displace each other for ever. Two projects could
 * each take a whole job of the other, of which only a part is above its quota. Two borrowing jobs
 * could each stop a guaranteed job of their own project with a lower priority, which then takes
 * from the other project.
 */
static bool takes_back(const struct sl_search *h, const struct sl_quantity *wants)
{
	const struct sl_cluster *cl = h->cl;

	if (h->job->taken_at != cl->outside)
		return false;
	for (uint32_t i = h->job->project; i != SL_PROJECT_NONE;
		i = cl->tree.all[i].parent) {
		const struct sl_project *level = &cl->tree.all[i];

		for (int r = 0; r < SL_RESOURCES; r++) {
			int64_t quota = level->rules.quota.of[r];

			if (wants->of[r] && quota != SL_QUOTA_ALL &&
				level->has.of[r] + wants->of[r] > quota)
				return true;
		}
	}
	return false;
}

/* Limits and quotas allow it, and a node could run it. */
static bool may_search(struct sl_cluster *cl, const struct sl_cl_group *group,
	const struct sl_cl_want *want, uint32_t wants, enum sl_cl_mode mode)
{
	const struct sl_cl_job *job = group->heap[0];
	struct sl_pending_because because;

	/* Only within limit and quota; a project at its limit may still take from itself. */
	if (!sl_cl_allowed(cl, job, &group->order.wants, &because) &&
		(mode != SL_CL_PREEMPT || because.reason != SL_PENDING_LIMIT))
		return false;
	if (!sl_cl_owner_allows(job, want, wants, &because))
		return false;
	if (!sl_cl_preemptible(job) && !sl_tree_allows(&cl->tree, job->project,
					       &group->order.wants, true, NULL, NULL))
		return false;
	for (uint32_t w = 0; w < wants; w++) {
		if (!sl_cl_ever(cl, want[w].class))
			return false;
	}
	return mode != SL_CL_CONSOLIDATE ||
	       group->order.wants.of[SL_RES_GPU] <= cl->later_gpu_milli;
}

bool sl_cl_search(struct sl_cluster *cl, struct sl_cl_group *group, enum sl_cl_mode mode)
{
	struct sl_cl_want want[SL_CL_PARTS];
	struct sl_search h = {.cl = cl, .job = group->heap[0], .mode = mode};
	uint32_t extra, wants = sl_cl_job_wants(h.job, want, &extra);
	bool back, found;

	if (!may_search(cl, group, want, wants, mode))
		return false;
	/* Tasks that can be moved need not be stopped. */
	if (mode == SL_CL_RECLAIM && group->tried[SL_CL_CONSOLIDATE] != cl->version &&
		sl_cl_search(cl, group, SL_CL_CONSOLIDATE))
		return true;
	back = mode != SL_CL_CONSOLIDATE &&
	       SL_MUTANT(CLUSTER_TAKES_BACK, takes_back(&h, &group->order.wants), false);
	found = !back && sl_search_run(&h, group, want, wants);
	if (!found && mode == SL_CL_CONSOLIDATE) {
		h.by_size = true;
		found = sl_search_run(&h, group, want, wants);
	}
	if (!found)
		sl_search_explain(&h, group, want, wants, back);
	return found;
}
