/*
 * judge - the rules, by the world's own accounts
 *
 * After each action: it is legal for that task, it fits, it is within limits, and a stopped job was
 * one that may be stopped. After each cycle: gangs are whole, no job that fits is left waiting, no
 * job was stopped in vain. At rest: no guaranteed job waits while another project borrows its GPUs.
 */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>

void cw_break(struct cw *w, const char *format, ...)
{
	va_list args;

	if (w->broken[0])
		return;
	va_start(args, format);
	(void)vsnprintf(w->broken, sizeof(w->broken), format, args);
	va_end(args);
}

/* --- BIND --- */

static bool may_use(const struct cw *w, const struct cw_job *job,
	const struct sl_need *need, uint32_t node)
{
	const struct cw_node *at = &w->node[node];

	if (need->pools && !(need->pools >> at->pool & 1))
		return false;
	for (uint32_t i = job->project; i != UINT32_MAX; i = w->project[i].parent) {
		const struct sl_project_rules *rules = &w->project[i].rules;

		if ((rules->pools && !(rules->pools >> at->pool & 1)) ||
			(rules->no_swap && at->swaps))
			return false;
	}
	return true;
}

/* The resources of which it gets something. */
static void judge_limits(
	struct cw *w, const struct cw_job *job, const struct sl_quantity *gets)
{
	for (uint32_t i = job->project; i != UINT32_MAX; i = w->project[i].parent) {
		const struct sl_project_rules *rules = &w->project[i].rules;
		struct sl_quantity has = cw_sum(w, i, false, true);
		struct sl_quantity fixed = cw_sum(w, i, true, true);

		for (int r = 0; r < SL_RESOURCES; r++) {
			if (!gets->of[r])
				continue;
			if (rules->limit.of[r] >= 0 && has.of[r] > rules->limit.of[r])
				cw_break(w, "job %lu takes project %u to %ld, limit %ld",
					(unsigned long)job->id, i + 1, (long)has.of[r],
					(long)rules->limit.of[r]);
			if (!(job->flags & SL_JOB_PREEMPTIBLE) &&
				rules->quota.of[r] >= 0 &&
				fixed.of[r] > rules->quota.of[r])
				cw_break(w,
					"job %lu, not preemptible, takes project %u to "
					"%ld, quota %ld",
					(unsigned long)job->id, i + 1, (long)fixed.of[r],
					(long)rules->quota.of[r]);
		}
	}
}

static void judge_place(struct cw *w, struct cw_job *job, const struct cw_task *task,
	uint32_t part, struct sl_place place)
{
	const struct cw_node *node = &w->node[place.node];
	const struct sl_need *need = &job->need[part],
			     comes = cw_comes(job, task, part, place.node);
	struct sl_room room = cw_room(w, place.node, false);

	if (node->closed)
		cw_break(w, "job %lu is bound to a closed node", (unsigned long)job->id);
	if (node->shut & place.gpu_mask)
		cw_break(w, "job %lu is bound to a GPU that is shut",
			(unsigned long)job->id);
	if (!may_use(w, job, need, place.node) ||
		(need->gpus && need->models && !(need->models >> node->fit.model & 1)))
		cw_break(w, "job %lu is bound to a node that it may not use",
			(unsigned long)job->id);
	if (__builtin_popcount(place.gpu_mask) != need->gpus ||
		(need->gpus && !task->parked &&
			place.milli != sl_fit_milli(&node->fit, need)))
		cw_break(w, "job %lu gets other GPUs than it needs",
			(unsigned long)job->id);
	if (need->only && place.gpu_mask & ~(need->only >> node->first))
		cw_break(w, "job %lu is bound to a GPU that it may not use",
			(unsigned long)job->id);
	if (job->refused_until[place.node] > w->now)
		cw_break(w, "job %lu is bound to a node that has just refused it",
			(unsigned long)job->id);
	cw_take(&room, &comes, place);
	if ((comes.cpu_milli && room.cpu_milli < 0) ||
		(comes.memory_mib && room.memory_mib < 0))
		cw_break(w, "job %lu: cores or memory are over-allocated",
			(unsigned long)job->id);
	for (uint32_t g = 0; g < SL_FIT_GPUS_MAX; g++) {
		if (room.left[g] < 0)
			cw_break(w, "job %lu: GPU %u is over-allocated",
				(unsigned long)job->id, g);
	}
}

void cw_judge_bind(struct cw *w, const struct sl_cluster_action *action)
{
	struct cw_job *job = cw_find_job(w, action->bind.job);
	uint32_t part = 0, node = cw_find_node(w, action->bind.node);
	struct cw_task *task = job ? cw_find_task(job, action->bind.task, &part) : NULL;
	struct sl_place place = {node, action->bind.gpu_mask, action->bind.milli};

	if (!task || task->state != SL_TASK_PENDING || node == UINT32_MAX) {
		cw_break(w, "BIND of job %lu task %u to node %lu: no such thing waits",
			(unsigned long)action->bind.job, action->bind.task,
			(unsigned long)action->bind.node);
		return;
	}
	if (task->giving_up)
		cw_break(w, "job %lu comes back while it is given up",
			(unsigned long)job->id);
	if (job->failed_at && w->now < job->failed_at + SL_S && !task->promised)
		cw_break(w, "job %lu has failed, and is tried again at once",
			(unsigned long)job->id);
	if (task->parked &&
		(task->place.node != node ||
			(task->place.gpu_mask != place.gpu_mask && !cw_movable(job))))
		cw_break(w, "job %lu is parked elsewhere", (unsigned long)job->id);
	judge_place(w, job, task, part, place);
	task->state = SL_TASK_BINDING;
	task->comes_back = task->parked;
	task->home = task->place;
	task->promised = task->parked = false;
	task->place = place;
	task->due = w->now + sl_rng_below(&w->rng, 5) * SL_S;
	job->bound |= 1u << part;
	job->started_ever = true;
}

/* --- STOP --- */

static sl_ns min_runtime(const struct cw *w, const struct cw_job *job, bool preempted)
{
	for (uint32_t i = job->project; i != UINT32_MAX; i = w->project[i].parent) {
		sl_ns least = preempted ? w->project[i].rules.preempt_min_runtime
					: w->project[i].rules.reclaim_min_runtime;

		if (least)
			return least;
	}
	return 0;
}

/* Is the project above its quota in some resource? Tasks stopped in this cycle still count, because
 * the first of them was chosen while all of them ran. */
static bool above_quota(const struct cw *w, uint32_t project)
{
	struct sl_quantity has = cw_has(w, project, false);

	for (int r = 0; r < SL_RESOURCES; r++) {
		int64_t quota = w->project[project].rules.quota.of[r];

		if (quota != SL_QUOTA_ALL && has.of[r] > quota)
			return true;
	}
	return false;
}

/* One task, which waits. */
static bool is_simple(const struct cw_job *job)
{
	const struct cw_task *task = &job->task[0][0];

	return job->used && job->parts == 1 && job->tasks[0] == 1 &&
	       task->state == SL_TASK_PENDING && !task->promised && !task->giving_up;
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Limits and quotas as they count for a new promise. now: tasks being stopped count, too. */
static bool within(const struct cw *w, const struct cw_job *job,
	const struct sl_quantity *more, bool quota, bool now)
{
	for (uint32_t i = job->project; i != UINT32_MAX; i = w->project[i].parent) {
		const struct sl_project_rules *rules = &w->project[i].rules;
		struct sl_quantity has = cw_has(w, i, false), fixed = cw_has(w, i, true);
		struct sl_quantity holds = cw_sum(w, i, false, true);
		struct sl_quantity holds_fixed = cw_sum(w, i, true, true);
		bool strict = !(job->flags & SL_JOB_PREEMPTIBLE);

		for (int r = 0; r < SL_RESOURCES; r++) {
			int64_t limit = rules->limit.of[r], most = rules->quota.of[r];

			if (!more->of[r])
				continue;
			if (now) {
				has.of[r] = larger(has.of[r], holds.of[r]);
				fixed.of[r] = larger(fixed.of[r], holds_fixed.of[r]);
			}
			if (limit >= 0 && has.of[r] + more->of[r] > limit)
				return false;
			if (most >= 0 && strict && fixed.of[r] + more->of[r] > most)
				return false;
			if (most >= 0 && quota && has.of[r] + more->of[r] > most)
				return false;
		}
	}
	return true;
}

/* The most that a task can count for: memory of GPUs counts by the smallest of them. */
static struct sl_quantity most_of(const struct cw *w, const struct sl_need *need)
{
	uint32_t milli = need->gpu_milli;

	for (uint32_t n = 0; n < CW_NODES && need->gpu_mib; n++) {
		if (w->node[n].used)
			milli = SL_FIT_WHOLE;
	}
	return (struct sl_quantity){{[SL_RES_GPU] = (int64_t)need->gpus * milli,
		[SL_RES_CPU] = need->cpu_milli,
		[SL_RES_MEMORY] = need->memory_mib,
		[SL_RES_COMPUTE] = (int64_t)need->gpus * need->compute_milli}};
}

/* Is host memory in use for it, or will be? What ends instead of being parked, or on its way back,
 * has it until it has ended. */
static bool has_host(const struct cw_job *job, const struct cw_task *task)
{
	bool returns = task->state == SL_TASK_BINDING ||
		       (task->state == SL_TASK_RELEASING && task->was == SL_TASK_BINDING);

	return task->parked || (returns && task->comes_back) ||
	       (task->state == SL_TASK_RELEASING &&
		       (cw_parks(job, task->how) || task->parked_first));
}

/* Host memory in use on that node. */
static uint64_t parked_on(const struct cw *w, uint32_t node)
{
	uint64_t sum = 0;

	for (uint32_t j = 0; j < CW_JOBS; j++) {
		for (uint32_t p = 0; w->job[j].used && p < w->job[j].parts; p++) {
			for (uint32_t i = 0; i < w->job[j].tasks[p]; i++) {
				const struct cw_task *task = &w->job[j].task[p][i];

				if (task->place.node == node &&
					has_host(&w->job[j], task))
					sum += w->job[j].park_mib;
			}
		}
	}
	return sum;
}

static void judge_park(struct cw *w, const struct cw_job *job, uint32_t node)
{
	uint64_t sum = parked_on(w, node);

	if (sum > w->node[node].pool_mib)
		cw_break(w, "job %lu is parked where %lu of %lu MiB are parked",
			(unsigned long)job->id, (unsigned long)sum,
			(unsigned long)w->node[node].pool_mib);
}

/* A user wants it, or it spreads over a GPU that is unused and that no job waits for. */
static void judge_own_move(struct cw *w, struct cw_job *job, const struct cw_task *task)
{
	unsigned long id = (unsigned long)job->id;

	if (w->asks_move) {
		w->asked_moves++;
		return;
	}
	w->spread++;
	if (!w->spreads || !(job->flags & SL_JOB_BURSTS))
		cw_break(w, "job %lu is moved for no reason", id);
	for (uint32_t j = 0; j < CW_JOBS && w->whole; j++) {
		const struct cw_job *waits = &w->job[j];
		struct sl_quantity more;

		if (!is_simple(waits) || !waits->need[0].gpus)
			continue;
		more = most_of(w, &waits->need[0]);
		if (within(w, waits, &more, false, true))
			cw_break(w, "job %lu spreads where job %lu waits", id,
				(unsigned long)waits->id);
	}
}

/* A move of a job that loses nothing by it. */
static void judge_move(struct cw *w, struct cw_job *job, struct cw_task *task)
{
	sl_ns *oldest = &w->moved_at[w->moved % (w->move_most ? w->move_most : 1)];

	task->on_move = true;
	task->stayed = w->taken_back;
	task->quiet = w->quiet;
	judge_park(w, job, task->place.node);
	if (w->asks_move)
		return;
	if (task->moved_until > w->now)
		cw_break(w, "job %lu moves again too soon", (unsigned long)job->id);
	if (!w->move_most || (*oldest && w->now < *oldest + 3600 * SL_S))
		cw_break(w, "job %lu moves beyond %u an hour", (unsigned long)job->id,
			w->move_most);
	*oldest = w->now;
	w->moved++;
}

static void judge_victim(struct cw *w, struct cw_job *job, struct cw_task *task,
	const struct sl_cluster_action *action)
{
	const struct cw_job *other = cw_find_job(w, action->stop.other);
	unsigned long id = (unsigned long)job->id;
	bool moves = action->stop.how == SL_STOP_MOVE && cw_movable(job);

	if (moves && !action->stop.other) {
		judge_own_move(w, job, task);
		return;
	}
	if (!other) {
		cw_break(w, "job %lu is stopped for no other job", id);
		return;
	}
	if (!(job->flags & SL_JOB_PREEMPTIBLE) && !moves)
		cw_break(w, "job %lu, not preemptible, is stopped", id);
	if (task->spared_until > w->now)
		cw_break(w, "job %lu is stopped again though it cannot be", id);
	if (other->paused_until > w->now)
		cw_break(w, "job %lu goes for %lu, which was stopped too lately", id,
			(unsigned long)other->id);
	/* As long as it has never had anything, it has waited since it came. */
	if (!other->started_ever && w->now < other->waits_since + other->preempt_delay)
		cw_break(w, "job %lu goes for %lu, which has a delay", id,
			(unsigned long)other->id);
	if (action->stop.how == SL_STOP_MOVE)
		return;
	if (w->now < job->started + min_runtime(w, job, action->stop.preempted))
		cw_break(w, "job %lu is stopped before its minimum runtime", id);
	if (action->stop.preempted) {
		if (job->project != other->project || job->priority >= other->priority)
			cw_break(w, "job %lu is preempted by %lu, which has no right to",
				id, (unsigned long)other->id);
	} else if (job->project == other->project) {
		cw_break(w, "job %lu is reclaimed within its own project", id);
	}
}

void cw_judge_give_up(struct cw *w, const struct sl_cluster_action *action)
{
	struct cw_job *job = cw_find_job(w, action->stop.job);
	uint32_t part;
	struct cw_task *task = job ? cw_find_task(job, action->stop.task, &part) : NULL;
	sl_ns since = SL_NS_NEVER;

	if (!task || task->state != SL_TASK_PENDING || !task->parked || task->giving_up) {
		cw_break(w, "job %lu task %u is given up and is not parked",
			(unsigned long)action->stop.job, action->stop.task);
		return;
	}
	for (uint32_t p = 0; p < job->parts; p++) {
		for (uint32_t i = 0; i < job->tasks[p]; i++) {
			if (job->task[p][i].parked)
				since = sl_min_u64(since, job->task[p][i].parked_at);
		}
	}
	if (!(job->flags & SL_JOB_GIVES_UP) || !job->resume_wait ||
		w->now < since + job->resume_wait)
		cw_break(w, "job %lu is given up too soon", (unsigned long)job->id);
	task->giving_up = true;
	task->due = w->now + sl_rng_below(&w->rng, 20) * SL_S;
}

/* Parked if it may be and can be; else moved or terminated, if it may be. */
static void judge_how(struct cw *w, struct cw_job *job, const struct cw_task *task,
	const struct sl_cluster_action *action)
{
	if (action->stop.how == SL_STOP_PARK && !(job->flags & SL_JOB_PARKS))
		cw_break(w, "job %lu is parked and should be terminated",
			(unsigned long)job->id);
	if (action->stop.how == SL_STOP_MOVE && job->flags & SL_JOB_PARKS &&
		!(job->flags & (SL_JOB_GIVES_UP | SL_JOB_MOVES)))
		cw_break(w, "job %lu is moved, loses its work, and could be parked",
			(unsigned long)job->id);
	if (action->stop.how != SL_STOP_TERMINATE || !(job->flags & SL_JOB_PARKS))
		return;
	if (!(job->flags & SL_JOB_GIVES_UP))
		cw_break(w, "job %lu is terminated and should be parked",
			(unsigned long)job->id);
	job->ended = true;
	job->ended_on = task->place.node;
}

static bool is_whole(const struct cw_job *job)
{
	for (uint32_t p = 0; p < job->parts; p++) {
		uint32_t has = 0;

		for (uint32_t i = 0; i < job->tasks[p]; i++)
			has += cw_stands(&job->task[p][i]) || job->task[p][i].promised ||
			       cw_is_done(&job->task[p][i]);
		if (has < job->least[p])
			return false;
	}
	return true;
}

static sl_ns grace_of(const struct cw *w, const struct cw_job *job)
{
	return job->stale_grace ? job->stale_grace : w->stale_grace;
}

void cw_judge_stop(struct cw *w, const struct sl_cluster_action *action)
{
	struct cw_job *job = cw_find_job(w, action->stop.job);
	uint32_t part;
	struct cw_task *task = job ? cw_find_task(job, action->stop.task, &part) : NULL;
	uint64_t other = action->stop.other;

	if (!task || !cw_stands(task)) {
		cw_break(w, "STOP of job %lu task %u, which does not run",
			(unsigned long)action->stop.job, action->stop.task);
		return;
	}
	if (action->stop.how == SL_STOP_STALE) {
		if (!job->told_for && is_whole(job))
			cw_break(w, "job %lu is stale, and yet whole",
				(unsigned long)job->id);
		if (!job->stale_since || w->now < job->stale_since + grace_of(w, job))
			cw_break(w, "job %lu is stale without a grace",
				(unsigned long)job->id);
		job->told_for = w->stop_for = UINT64_MAX;
	} else {
		/* Quota safety, at the first task of this job that goes for that other. */
		if (action->stop.how != SL_STOP_MOVE && !action->stop.preempted &&
			job->told_for != other && w->stop_for != other &&
			!above_quota(w, job->project))
			cw_break(w, "job %lu is reclaimed within the quota of project %u",
				(unsigned long)job->id, job->project + 1);
		judge_victim(w, job, task, action);
		w->stop_for = w->stop_for && w->stop_for != other ? UINT64_MAX : other;
		job->told_for = other;
	}
	if (action->stop.how != SL_STOP_STALE && action->stop.how != SL_STOP_MOVE &&
		!action->stop.preempted)
		job->reclaimed = true;
	task->was = task->state;
	task->state = SL_TASK_RELEASING;
	task->how = (enum sl_stop_how)action->stop.how;
	task->told = true;
	task->late = task->parked_first = false;
	task->told_at = w->now;
	task->due = w->now + sl_rng_below(&w->rng, 20) * SL_S;
	judge_how(w, job, task, action);
	w->parks += action->stop.how == SL_STOP_PARK;
	w->ends += action->stop.how == SL_STOP_TERMINATE;
	if (action->stop.how == SL_STOP_PARK)
		judge_park(w, job, task->place.node);
	if (action->stop.how == SL_STOP_MOVE && cw_movable(job))
		judge_move(w, job, task);
	if (action->stop.how == SL_STOP_PARK || action->stop.how == SL_STOP_TERMINATE)
		job->paused_until = w->now + w->resume_factor * job->swap_cost;
	w->moves += action->stop.how == SL_STOP_MOVE;
}

void cw_judge_refusal(struct cw *w, const struct sl_cluster_action *action)
{
	w->refused_moves++;
	if (!w->asks_move)
		cw_break(w, "job %lu may not move, and was not to",
			(unsigned long)action->refuse_move.job);
	if (action->refuse_move.wanted &&
		action->refuse_move.available >= action->refuse_move.wanted)
		cw_break(w, "job %lu may not move, and there is room for it",
			(unsigned long)action->refuse_move.job);
}

/* --- LATE --- */

static bool is_overdue(const struct cw *w, const struct cw_task *task)
{
	return task->state == SL_TASK_RELEASING && !task->late &&
	       w->now >= task->told_at + 120 * SL_S;
}

void cw_judge_late(struct cw *w, const struct sl_cluster_action *action)
{
	struct cw_job *job = cw_find_job(w, action->late.job);
	uint32_t part;
	struct cw_task *task = job ? cw_find_task(job, action->late.task, &part) : NULL;

	if (!task || !is_overdue(w, task)) {
		cw_break(w, "job %lu task %u is late, and was not told to go so long ago",
			(unsigned long)action->late.job, action->late.task);
		return;
	}
	task->late = true;
}

/* No job waits for a task that does not stop, and none is promised its place. */
static void judge_leaving(struct cw *w)
{
	for (uint32_t n = 0; n < CW_NODES; n++) {
		struct sl_room room = {0};

		if (w->node[n].used)
			room = cw_room(w, n, true);
		for (uint32_t g = 0; g < SL_FIT_GPUS_MAX; g++) {
			if (room.left[g] < 0)
				cw_break(w,
					"GPU %u of node %lu is promised, and does not "
					"come free",
					g, (unsigned long)w->node[n].id);
		}
	}
	for (uint32_t j = 0; j < CW_JOBS; j++) {
		for (uint32_t p = 0; w->job[j].used && p < w->job[j].parts; p++) {
			for (uint32_t i = 0; i < w->job[j].tasks[p]; i++) {
				const struct cw_task *task = &w->job[j].task[p][i];

				if (task->promised && w->node[task->next.node].shut &
							      task->next.gpu_mask)
					cw_break(w,
						"job %lu is promised a GPU that is shut",
						(unsigned long)w->job[j].id);
				if (is_overdue(w, task))
					cw_break(w,
						"job %lu does not go, and is waited for",
						(unsigned long)w->job[j].id);
			}
		}
	}
}

/* --- After a cycle. --- */

/* A gang that started in this cycle is complete now. Only a gang that is in the middle of another
 * change may be incomplete. */
static void judge_gang(struct cw *w, const struct cw_job *job)
{
	for (uint32_t p = 0; p < job->parts && job->bound; p++) {
		uint32_t has = 0;

		for (uint32_t i = 0; i < job->tasks[p]; i++)
			has += cw_stands(&job->task[p][i]) ||
			       cw_is_done(&job->task[p][i]) || job->task[p][i].on_move;
		if (has < job->least[p])
			cw_break(w, "job %lu starts with %u of %u tasks",
				(unsigned long)job->id, has, job->least[p]);
	}
}

static bool fits(const struct sl_room *room, const struct cw_node *node,
	const struct sl_need *need)
{
	struct sl_need any = *need;

	any.pools = 0;
	any.only >>= node->first;
	return (any.only || !need->only || !need->gpus) &&
	       sl_fit_in(&node->fit, room, &any);
}

static struct sl_room both(const struct cw *w, uint32_t node)
{
	struct sl_room now = cw_room(w, node, false), later = cw_room(w, node, true);

	now.cpu_milli = now.cpu_milli < later.cpu_milli ? now.cpu_milli : later.cpu_milli;
	now.memory_mib =
		now.memory_mib < later.memory_mib ? now.memory_mib : later.memory_mib;
	now.whole = 0;
	for (uint32_t g = 0; g < w->node[node].fit.gpus; g++) {
		if (later.left[g] < now.left[g])
			now.left[g] = later.left[g];
		now.whole = (int16_t)(now.whole + (now.left[g] == SL_FIT_WHOLE));
	}
	return now;
}

/* A parked task comes back to its own GPUs alone, or to any of its node. */
static bool has_place(const struct cw *w, const struct cw_job *job, uint32_t node)
{
	const struct cw_task *task = &job->task[0][0];
	struct sl_room room = both(w, node);
	struct sl_need comes;

	if (!task->parked)
		return fits(&room, &w->node[node], &job->need[0]);
	if (task->place.node != node)
		return false;
	comes = cw_comes(job, task, 0, node);
	/* The GPUs of the node may have become too small for it. */
	if (comes.gpus && sl_fit_milli(&w->node[node].fit, &comes) > SL_FIT_WHOLE)
		return false;
	if (cw_movable(job) && fits(&room, &w->node[node], &comes))
		return true;
	cw_take(&room, &comes, task->place);
	for (uint32_t g = 0; g < SL_FIT_GPUS_MAX; g++) {
		if (room.left[g] < 0)
			return false;
	}
	return room.cpu_milli >= 0 && room.memory_mib >= 0;
}

static void judge_conserving(struct cw *w, const struct cw_job *job)
{
	struct sl_quantity more = most_of(w, &job->need[0]);

	/* Waiting after a failure is bounded. */
	if (job->failed_at && w->now < job->failed_at + 300 * SL_S)
		return;
	if (!within(w, job, &more, false, true))
		return;
	for (uint32_t n = 0; n < CW_NODES; n++) {
		if (!w->node[n].used || w->node[n].closed ||
			job->refused_until[n] > w->now ||
			!may_use(w, job, &job->need[0], n))
			continue;
		if (has_place(w, job, n))
			cw_break(w,
				"job %lu waits though node %lu has room (machine: reason "
				"%d)",
				(unsigned long)job->id, (unsigned long)w->node[n].id,
				sl_cluster_job(w->cluster, job->id).because.reason);
	}
}

/* In this cycle, a task of the node was ended instead of parked. Parked, it would have kept its
 * cores on the host; that it could not be parked was known only after all victims were chosen. */
static bool left_cores(const struct cw *w, uint32_t node)
{
	for (uint32_t j = 0; j < CW_JOBS; j++) {
		const struct cw_job *job = &w->job[j];

		for (uint32_t p = 0;
			job->used && job->flags & SL_JOB_KEEPS_HOST && p < job->parts;
			p++) {
			for (uint32_t i = 0; i < job->tasks[p]; i++) {
				const struct cw_task *task = &job->task[p][i];

				if (task->told && task->how != SL_STOP_PARK &&
					task->place.node == node)
					return true;
			}
		}
	}
	return false;
}

/* All tasks of a job were stopped for another job, though they would still fit. */
static void judge_vain(struct cw *w, const struct cw_job *job)
{
	struct sl_quantity taken = {{0}};
	uint32_t told = 0;

	for (uint32_t p = 0; p < job->parts; p++) {
		for (uint32_t i = 0; i < job->tasks[p]; i++) {
			const struct cw_task *task = &job->task[p][i];
			struct sl_need leaves = cw_comes(job, task, p, task->place.node);
			struct sl_room room;

			if (!task->told || task->how == SL_STOP_STALE || task->promised)
				continue;
			if (left_cores(w, task->place.node))
				return;
			told++;
			taken = cw_amount(&job->need[p], task->place);
			room = cw_room(w, task->place.node, true);
			cw_take(&room, &leaves, task->place);
			if (room.cpu_milli < 0 || room.memory_mib < 0)
				return;
			for (uint32_t g = 0; g < SL_FIT_GPUS_MAX; g++) {
				if (room.left[g] < 0)
					return;
			}
		}
	}
	/* Only jobs of one task are judged: several tasks may need each other's room. A job stopped
	 * for the sake of a limit is not blamed either. */
	if (told == 1 && within(w, job, &taken, false, false) && job->tasks[0] == 1 &&
		job->parts == 1)
		cw_break(w, "job %lu is stopped in vain", (unsigned long)job->id);
}

/* The branches below the last project that stands above both; false: one stands above the other. */
static bool branches(
	const struct cw *w, uint32_t a, uint32_t b, uint32_t *at, uint32_t *bt)
{
	*at = a;
	*bt = b;
	if (cw_is_below(w, a, b) || cw_is_below(w, b, a))
		return false;
	while (w->project[*at].parent != UINT32_MAX &&
		!cw_is_below(w, b, w->project[*at].parent))
		*at = w->project[*at].parent;
	while (w->project[*bt].parent != UINT32_MAX &&
		!cw_is_below(w, a, w->project[*bt].parent))
		*bt = w->project[*bt].parent;
	return true;
}

/* Sets has and share to those of the resource with the largest has / share. Only resources count
 * that the job wants and whose guarantee is bounded; GPUs always do. Shares are the machine's. */
static void most_above(const struct cw *w, uint32_t project, const struct cw_job *by,
	int64_t *has, int64_t *share)
{
	const struct sl_tree *tree = sl_cluster_tree(w->cluster);
	const struct sl_project *level = &tree->all[sl_tree_find(tree, project + 1)];
	struct sl_quantity all = cw_has(w, project, false);
	struct sl_quantity wants = cw_amount(&by->need[0],
		(struct sl_place){.gpu_mask = by->need[0].gpus ? 1 : 0, .milli = 1});

	*has = 0;
	*share = 1;
	for (int r = 0; r < SL_RESOURCES; r++) {
		int64_t mine = all.of[r], due = level->share.of[r];

		if (!wants.of[r] ||
			(r != SL_RES_GPU && level->rules.quota.of[r] == SL_QUOTA_ALL))
			continue;
		if (!due) {
			mine *= 1000;
			due = 1;
		}
		if (mine * *share > *has * due) {
			*has = mine;
			*share = due;
		}
	}
}

/* No project takes so much that it is further above its share than the one it took it from. */
static void judge_greed(struct cw *w, const struct cw_job *victim)
{
	const struct cw_job *by = cw_find_job(w, w->stop_for);
	uint32_t a, b;
	int64_t has_a, has_b, share_a, share_b;

	if (!by || by->parts != 1 || !branches(w, by->project, victim->project, &a, &b) ||
		!above_quota(w, a))
		return;
	most_above(w, a, by, &has_a, &share_a);
	most_above(w, b, by, &has_b, &share_b);
	if (has_a > share_a && has_a * share_b >= has_b * share_a)
		cw_break(w,
			"project %u has %ld of %ld after taking from %u, with %ld of %ld",
			a + 1, (long)has_a, (long)share_a, b + 1, (long)has_b,
			(long)share_b);
}

static void watch_stale(struct cw *w, struct cw_job *job)
{
	bool runs = false, running = false;

	for (uint32_t p = 0; p < job->parts; p++) {
		for (uint32_t i = 0; i < job->tasks[p]; i++) {
			runs |= cw_stands(&job->task[p][i]);
			running |= job->task[p][i].state == SL_TASK_RUNNING;
		}
	}
	if (!running)
		job->started = 0;
	else if (!job->started)
		job->started = w->now;
	if (!runs || is_whole(job))
		job->stale_since = 0;
	else if (!job->stale_since)
		job->stale_since = w->now;
}

void cw_watch(struct cw *w)
{
	for (uint32_t j = 0; j < CW_JOBS; j++) {
		if (w->job[j].used)
			watch_stale(w, &w->job[j]);
	}
}

void cw_judge_cycle(struct cw *w, bool whole)
{
	judge_leaving(w);
	for (uint32_t j = 0; j < CW_JOBS; j++) {
		struct cw_job *job = &w->job[j];

		if (!job->used)
			continue;
		judge_gang(w, job);
		for (uint32_t p = 0; p < job->parts; p++) {
			struct sl_quantity gets = most_of(w, &job->need[p]);

			if (job->bound >> p & 1)
				judge_limits(w, job, &gets);
		}
		if (whole && job->stale_since &&
			w->now >= job->stale_since + grace_of(w, job))
			cw_break(w, "job %lu is stale, and still runs",
				(unsigned long)job->id);
		if (whole && w->stop_for != UINT64_MAX)
			judge_vain(w, job);
		if (whole && !w->cycle_stops && is_simple(job))
			judge_conserving(w, job);
		if (job->reclaimed && w->stop_for && w->stop_for != UINT64_MAX)
			judge_greed(w, job);
		if (job->ended && parked_on(w, job->ended_on) + job->park_mib <=
					  w->node[job->ended_on].pool_mib)
			cw_break(w,
				"job %lu is terminated though host memory has room for "
				"it",
				(unsigned long)job->id);
		job->told_for = 0;
		job->reclaimed = job->ended = false;
	}
}

/* --- At rest. --- */

/* All the way up to where the two meet. */
static bool borrows(const struct cw *w, uint32_t project, uint32_t by)
{
	for (uint32_t i = project; i != UINT32_MAX && !cw_is_below(w, by, i);
		i = w->project[i].parent) {
		struct sl_quantity has = cw_has(w, i, false);
		int64_t quota = w->project[i].rules.quota.of[SL_RES_GPU];

		if (quota == SL_QUOTA_ALL || has.of[SL_RES_GPU] <= quota)
			return false;
	}
	return project != by && !cw_is_below(w, by, project) &&
	       !cw_is_below(w, project, by);
}

/* This one runs on borrowed GPUs, and if it went the other would have its place. */
static bool is_in_the_way(
	const struct cw *w, const struct cw_job *victim, const struct cw_job *job)
{
	const struct cw_task *task = &victim->task[0][0];
	const struct sl_need *need = &job->need[0];
	struct sl_room room;

	if (!victim->used || victim->parts != 1 || victim->tasks[0] != 1 ||
		task->state != SL_TASK_RUNNING || !(victim->flags & SL_JOB_PREEMPTIBLE) ||
		(victim->flags & SL_JOB_PARKS && !(victim->flags & SL_JOB_GIVES_UP)) ||
		task->spared_until > w->now ||
		!borrows(w, victim->project, job->project) ||
		w->node[task->place.node].closed ||
		job->refused_until[task->place.node] > w->now ||
		!may_use(w, job, need, task->place.node))
		return false;
	room = cw_room(w, task->place.node, true);
	for (uint32_t g = 0; g < SL_FIT_GPUS_MAX; g++) {
		if ((task->place.gpu_mask & ~w->node[task->place.node].shut) >> g & 1)
			room.left[g] = (int16_t)(room.left[g] + task->place.milli);
	}
	if (!(victim->flags & SL_JOB_KEEPS_HOST)) {
		room.cpu_milli += victim->need[0].cpu_milli;
		room.memory_mib += victim->need[0].memory_mib;
	}
	room.whole = 0;
	for (uint32_t g = 0; g < w->node[task->place.node].fit.gpus; g++)
		room.whole = (int16_t)(room.whole + (room.left[g] == SL_FIT_WHOLE));
	return fits(&room, &w->node[task->place.node], need);
}

/* Not a gang of which too many tasks have failed for good. */
static bool can_be_whole(const struct cw_job *job)
{
	for (uint32_t p = 0; p < job->parts; p++) {
		uint32_t left = 0;

		for (uint32_t i = 0; i < job->tasks[p]; i++)
			left += job->task[p][i].state != SL_TASK_ENDED ||
				cw_is_done(&job->task[p][i]);
		if (left < job->least[p])
			return false;
	}
	return true;
}

/* What moved runs again, unless a task that was to go stayed. */
static void judge_arrived(struct cw *w, const struct cw_job *job)
{
	if (!job->used || !can_be_whole(job))
		return;
	for (uint32_t p = 0; p < job->parts; p++) {
		for (uint32_t i = 0; i < job->tasks[p]; i++) {
			const struct cw_task *task = &job->task[p][i];

			if (task->on_move && task->quiet && task->stayed == w->taken_back)
				cw_break(w, "job %lu has moved, and does not run",
					(unsigned long)job->id);
		}
	}
}

void cw_judge_rest(struct cw *w)
{
	for (uint32_t j = 0; j < CW_JOBS; j++) {
		const struct cw_job *job = &w->job[j];
		struct sl_quantity more;

		judge_arrived(w, job);
		if (!is_simple(job) || !job->need[0].gpus)
			continue;
		more = most_of(w, &job->need[0]);
		judge_conserving(w, job);
		/* One that is parked waits for its GPUs, or those of its node, alone. */
		if (job->task[0][0].parked || !within(w, job, &more, true, true))
			continue;
		for (uint32_t v = 0; v < CW_JOBS; v++) {
			if (is_in_the_way(w, &w->job[v], job))
				cw_break(w,
					"job %lu is within the quotas of project %u and "
					"waits for ever, while job %lu runs on what "
					"project %u borrows",
					(unsigned long)job->id, job->project + 1,
					(unsigned long)w->job[v].id,
					w->job[v].project + 1);
		}
	}
}

/* --- A forecast of a job: exactly what the cycle then did. --- */

void cw_judge_forecast(struct cw *w, const struct cw_job *job,
	const struct sl_cluster_forecast *forecast)
{
	struct sl_pending_because because = sl_cluster_job(w->cluster, job->id).because;
	enum sl_forecast is = SL_FORECAST_WAITS;
	uint32_t bound = 0, promised = 0;

	for (uint32_t i = 0; i < job->tasks[0]; i++) {
		bound += job->task[0][i].state == SL_TASK_BINDING;
		promised += job->task[0][i].promised;
	}
	if (bound >= job->least[0])
		is = SL_FORECAST_RUNS;
	else if (promised)
		is = w->asked_stops ? SL_FORECAST_TAKES : SL_FORECAST_FOLLOWS;
	else if (forecast->fate == SL_FORECAST_NEVER)
		is = SL_FORECAST_NEVER;
	if (is != forecast->fate)
		cw_break(w, "job %lu was foretold %d, and it is %d",
			(unsigned long)job->id, forecast->fate, is);
	if (w->asked_stops != forecast->stops + forecast->moves)
		cw_break(w, "%u tasks go for job %lu, and %u were foretold",
			w->asked_stops, (unsigned long)job->id,
			forecast->stops + forecast->moves);
	if ((is == SL_FORECAST_WAITS || is == SL_FORECAST_NEVER) &&
		because.reason != forecast->because.reason)
		cw_break(w, "job %lu waits for %d, and was foretold %d",
			(unsigned long)job->id, because.reason, forecast->because.reason);
}
