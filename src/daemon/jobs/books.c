/*
 * books - nodes, projects, jobs and workloads, as told to the cluster machine
 *
 * GPUs of one kind (model and size) are one node: they are interchangeable for a task. A GPU keeps
 * its index in the node; while the GPU is lost, it gets no tasks. The machine lives as long as the
 * daemon. Jobs that have run before are told at the daemon's start, when a task's lost supervisor
 * ends, and when the values of a job change.
 */
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "daemon/jobs/internal.h"
#include "daemon/projects/registry.h"
#include "daemon/workloads/workload.h"

/* --- Projects. --- */

uint64_t sl_jobs_project_id(const struct sl_daemon *daemon, const char *name)
{
	const struct sl_projects *set = sl_registry_set(daemon);
	const struct sl_project_row *row =
		sl_projects_find(set, name[0] ? name : SL_PROJECT_DEFAULT);

	return row ? row->id : 0;
}

const char *sl_jobs_project_name(void *context, uint64_t id)
{
	const struct sl_projects *set = sl_registry_set(context);

	for (size_t i = 0; i < set->count; i++) {
		if (set->rows[i].id == id)
			return set->rows[i].name;
	}
	return "?";
}

/* --- The machine. --- */

static void queue_action(void *context, const struct sl_cluster_action *action)
{
	struct sl_jobs *jobs = context;

	switch (action->type) {
	case SL_CLUSTER_ACTION_WAKE_AT: jobs->wake_at = action->wake_at.at; return;
	case SL_CLUSTER_ACTION_REFUSE_JOB:
		jobs->was_refused = true;
		jobs->refusal = (struct sl_pending_because){
			.reason = (enum sl_pending_reason)action->refuse_job.reason,
			.resource = (enum sl_resource)action->refuse_job.resource,
			.wanted = action->refuse_job.wanted,
			.available = action->refuse_job.available};
		return;
	case SL_CLUSTER_ACTION_REFUSE_PROJECT:
		jobs->refused_project = action->refuse_project.project;
		return;
	case SL_CLUSTER_ACTION_REFUSE_MOVE: jobs->move_refusal = *action; return;
	case SL_CLUSTER_ACTION_PIPELINE: jobs->promises = true; return;
	/* Parking tasks have a deadline here; ending ones are waited for. */
	case SL_CLUSTER_ACTION_LATE: return;
	default: break;
	}
	if (jobs->todo_count == jobs->todo_room) {
		struct sl_cluster_action *old = jobs->todo;

		jobs->todo_room = old ? 2 * jobs->todo_room : 64;
		jobs->todo = sl_arena_take(
			jobs->books.arena, jobs->todo_room * sizeof(old[0]));
		if (old)
			memcpy(jobs->todo, old, jobs->todo_count * sizeof(old[0]));
	}
	jobs->todo[jobs->todo_count++] = *action;
}

void sl_jobs_tell(struct sl_jobs *jobs, const struct sl_cluster_event *event)
{
	sl_cluster_step(jobs->books.cluster, sl_clock_now(), event, queue_action, jobs);
	if (event->type != SL_CLUSTER_EVENT_CYCLE) {
		jobs->dirty = true;
		sl_jobs_awake(jobs);
	}
}

/* --- Jobs and their tasks. --- */

static uint32_t milli_of(const struct sl_amount *amount)
{
	return (uint32_t)((amount->value * SL_FIT_WHOLE + SL_AMOUNT_WHOLE - 1) /
			  SL_AMOUNT_WHOLE);
}

void sl_jobs_set_need(const struct sl_jobs *jobs, struct sl_job *job)
{
	const struct sl_jobs_row *row = &job->row;
	/* As in admission: a missing one equals the other. */
	const struct sl_amount *request =
		row->request.kind != SL_AMOUNT_UNSET ? &row->request : &row->limit;
	uint32_t only = job->need.only;

	job->need = (struct sl_need){.gpus = (uint16_t)row->gpu_count};
	job->is_free = !request->value && !row->compute_request_pm;
	if (request->kind == SL_AMOUNT_FRACTION)
		job->need.gpu_milli = (uint16_t)milli_of(request);
	else
		job->need.gpu_mib = (uint32_t)sl_min_u64(
			(request->value + SL_MIB - 1) / SL_MIB, UINT32_MAX);
	sl_need_add_compute(&job->need, row->compute_request_pm);
	if (row->flags & SL_RUN_VISIBLE_SET) {
		job->need.only = sl_jobs_named_gpus(jobs, row);
		/* While NVML does not answer, what was known holds. */
		job->need.only = job->need.only ? job->need.only : only;
		job->need.pools = job->need.only ? 0 : SL_JOBS_NO_POOL;
	}
	job->parks = !(row->flags & SL_SUBMIT_TERMINATES);
	if (job->foreground)
		sl_jobs_front_set_flags(jobs, job);
}

/* Its limit is above its request. */
static bool bursts(const struct sl_jobs_row *row)
{
	if (row->limit.kind == SL_AMOUNT_UNSET || row->request.kind == SL_AMOUNT_UNSET)
		return false;
	return row->limit.kind != row->request.kind ||
	       row->limit.value > row->request.value;
}

struct sl_cluster_event sl_jobs_add_event(
	const struct sl_jobs *jobs, const struct sl_job *job)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_ADD};

	event.job_add.job = job->row.id;
	event.job_add.project = sl_jobs_project_id(jobs->daemon, job->row.project);
	/* A `sluice run` may name a project that does not exist. */
	if (!event.job_add.project && job->foreground)
		event.job_add.project =
			sl_jobs_project_id(jobs->daemon, SL_PROJECT_DEFAULT);
	event.job_add.priority = job->row.priority;
	event.job_add.flags =
		(job->row.flags & SL_SUBMIT_PREEMPTIBLE ? SL_JOB_PREEMPTIBLE : 0) |
		(job->parks ? SL_JOB_PARKS : 0) |
		(sl_jobs_may_move(jobs, job) ? SL_JOB_MOVES : 0) |
		(bursts(&job->row) ? SL_JOB_BURSTS : 0);
	event.job_add.tasks = job->row.task_count;
	event.job_add.least = job->row.least;
	event.job_add.need = job->need;
	event.job_add.park_mib = sl_max_u64(1, job->park_mib);
	event.job_add.swap_cost = job->swap_cost;
	event.job_add.preempt_delay = job->row.preempt_delay;
	event.job_add.owner = sl_jobs_owner_of(job);
	event.job_add.order = job->row.id & ~(uint64_t)SL_JOB_FOREGROUND;
	/* It has not run yet. */
	if (job->row.tasks && !job->row.tasks[0].attempt)
		event.job_add.waited =
			sl_sub_sat(sl_jobs_now_ms(), job->row.submitted_ms) * SL_MS;
	return event;
}

bool sl_jobs_count(struct sl_jobs *jobs, struct sl_job *job)
{
	struct sl_cluster_event event = sl_jobs_add_event(jobs, job);

	jobs->was_refused = false;
	sl_jobs_tell(jobs, &event);
	job->counted = !jobs->was_refused;
	job->moves = event.job_add.flags & SL_JOB_MOVES;
	job->refused = jobs->was_refused ? jobs->refusal : (struct sl_pending_because){0};
	return job->counted;
}

bool sl_jobs_tell_place(struct sl_jobs *jobs, enum sl_cluster_event_type type,
	struct sl_job_task *task, const struct sl_workload *workload)
{
	struct sl_cluster_event event = {.type = type};

	if (!workload || !sl_jobs_place_of(&jobs->books, sl_workload_gpus(workload),
				 &task->node, &task->gpu_mask))
		return false;
	/* Both events begin alike. */
	event.task_runs.job = task->job->row.id;
	event.task_runs.task = task->number;
	event.task_runs.node = task->node;
	event.task_runs.gpu_mask = task->gpu_mask;
	if (type == SL_CLUSTER_EVENT_TASK_RUNS)
		event.task_runs.ago = sl_sub_sat(sl_clock_now(), workload->born);
	sl_jobs_tell(jobs, &event);
	return true;
}

static void put_task(struct sl_jobs *jobs, struct sl_job_task *task)
{
	const struct sl_workload *workload = sl_jobs_workload_of(jobs, task);
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_TASK_STOPS};

	event.task_stops.job = task->job->row.id;
	event.task_stops.task = task->number;
	switch (task->alone ? SL_PHASE_OVER : task->phase) {
	case SL_PHASE_CHOSEN:
	case SL_PHASE_WAITING: break;
	case SL_PHASE_OVER:
		event.type = SL_CLUSTER_EVENT_TASK_ENDED;
		event.task_ended.again = 0;
		event.task_ended.failed = task->failed;
		sl_jobs_tell(jobs, &event);
		break;
	case SL_PHASE_PARKED:
		(void)sl_jobs_tell_place(
			jobs, SL_CLUSTER_EVENT_TASK_PARKED, task, workload);
		break;
	case SL_PHASE_STARTING:
	case SL_PHASE_RUNS:
	case SL_PHASE_PARKING:
	case SL_PHASE_RESUMING:
	case SL_PHASE_STOPPING:
		if (sl_jobs_tell_place(
			    jobs, SL_CLUSTER_EVENT_TASK_RUNS, task, workload) &&
			(task->phase == SL_PHASE_STOPPING ||
				task->phase == SL_PHASE_PARKING))
			sl_jobs_tell(jobs, &event);
		break;
	}
}

/* Does a foreground job have a place in the machine? A job that a user parked has none, since it
 * gave up its request. Nor does a job on GPUs of several kinds, or on lost GPUs. */
static bool stands(const struct sl_jobs *jobs, const struct sl_job *job)
{
	const struct sl_workload *workload = sl_jobs_workload_of(jobs, &job->tasks[0]);
	uint64_t node;
	uint32_t mask;

	if (job->tasks[0].phase == SL_PHASE_WAITING)
		return !job->early;
	if (!workload || !sl_workload_has_request(workload) ||
		(job->tasks[0].phase == SL_PHASE_RUNS && workload->park != SL_PARK_NOT))
		return false;
	return sl_jobs_place_of(&jobs->books, sl_workload_gpus(workload), &node, &mask) &&
	       !sl_jobs_is_lost(&jobs->books, node, mask);
}

void sl_jobs_put_job(struct sl_jobs *jobs, struct sl_job *job)
{
	struct sl_jobs_counted counted = {0};
	struct sl_cluster_event event;

	if (!sl_jobs_count(jobs, job))
		return;
	if (sl_jobs_owner_of(job)) {
		event = sl_jobs_most_event(jobs, job, &counted);
		job->most = event.owner_most.most;
		sl_jobs_tell(jobs, &event);
	}
	for (uint32_t i = 0; i < job->row.task_count; i++)
		put_task(jobs, &job->tasks[i]);
}

void sl_jobs_take_job(struct sl_jobs *jobs, struct sl_job *job)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_REMOVE};

	if (!job->counted)
		return;
	/* The machine's decisions about this job are void. */
	for (size_t i = 0; i < jobs->todo_count; i++) {
		if (jobs->todo[i].bind.job == job->row.id)
			jobs->todo[i].type = SL_CLUSTER_ACTION_WAKE_AT;
	}
	for (uint32_t i = 0; i < job->row.task_count; i++) {
		if (job->tasks[i].phase == SL_PHASE_CHOSEN)
			sl_jobs_phase(&job->tasks[i], SL_PHASE_WAITING);
	}
	event.job_remove.job = job->row.id;
	sl_jobs_tell(jobs, &event);
	job->counted = false;
}

static bool is_same(const struct sl_cluster_event *a, const struct sl_cluster_event *b)
{
	return a->job_add.project == b->job_add.project &&
	       a->job_add.priority == b->job_add.priority &&
	       a->job_add.flags == b->job_add.flags &&
	       sl_need_is_same(&a->job_add.need, &b->job_add.need);
}

void sl_jobs_put_again(
	struct sl_jobs *jobs, struct sl_job *job, const struct sl_cluster_event *before)
{
	struct sl_cluster_event now;
	bool counts;

	sl_jobs_set_need(jobs, job);
	now = sl_jobs_add_event(jobs, job);
	counts = !job->is_free && !job->bound && (!job->foreground || stands(jobs, job));
	if (counts == job->counted && (!counts || is_same(before, &now)))
		return;
	sl_jobs_take_job(jobs, job);
	if (counts)
		sl_jobs_put_job(jobs, job);
}

void sl_jobs_put_anew(struct sl_jobs *jobs, struct sl_job *job)
{
	if (!job->counted)
		return;
	sl_jobs_take_job(jobs, job);
	sl_jobs_put_job(jobs, job);
}

static void put_jobs(struct sl_jobs *jobs)
{
	sl_list_foreach (link, &jobs->all) {
		struct sl_job *job = SL_LIST_ENTRY(link, struct sl_job, link);
		struct sl_cluster_event before;

		if (job->over)
			continue;
		before = sl_jobs_add_event(jobs, job);
		sl_jobs_put_again(jobs, job, &before);
	}
}

/* --- What changes. --- */

/* Parents stand before their children. */
static void put_projects(struct sl_jobs *jobs)
{
	const struct sl_projects *set = sl_registry_set(jobs->daemon);

	for (size_t i = 0; i < set->count; i++) {
		const struct sl_project_row *row = &set->rows[i];
		struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_PROJECT_PUT};

		event.project_put.project = row->id;
		event.project_put.parent =
			row->parent[0] ? sl_jobs_project_id(jobs->daemon, row->parent)
				       : 0;
		event.project_put.rules = sl_project_rules_of(row, NULL, NULL);
		event.project_put.rules.pools = sl_jobs_pools_named(jobs, row->pools);
		sl_jobs_tell(jobs, &event);
	}
}

static void remove_projects(struct sl_jobs *jobs)
{
	const struct sl_tree *tree = sl_cluster_tree(jobs->books.cluster);
	const struct sl_projects *set = sl_registry_set(jobs->daemon);

	/* Children before parents: by falling depth. */
	for (uint32_t depth = SL_PROJECT_DEEP + 1; depth-- > 0;) {
		for (uint32_t i = 0; i < tree->high; i++) {
			struct sl_cluster_event event = {
				.type = SL_CLUSTER_EVENT_PROJECT_REMOVE};
			bool stays = false;

			if (!tree->all[i].used || tree->all[i].depth != depth)
				continue;
			for (size_t j = 0; j < set->count; j++)
				stays |= set->rows[j].id == tree->all[i].id;
			if (stays)
				continue;
			event.project_remove.project = tree->all[i].id;
			sl_jobs_tell(jobs, &event);
		}
	}
}

/* The set of projects was judged as a whole, but the machine is told them one by one. It may refuse
 * one (too deep, one too many) until another is changed, so refused ones are told again. */
static void follow_projects(struct sl_jobs *jobs)
{
	for (uint32_t i = 0; i <= SL_PROJECT_DEEP; i++) {
		jobs->refused_project = 0;
		put_projects(jobs);
		remove_projects(jobs);
		if (!jobs->refused_project)
			return;
	}
	sl_warning("the queue could not take project %s over",
		sl_jobs_project_name(jobs->daemon, jobs->refused_project));
}

void sl_jobs_put_projects(struct sl_jobs *jobs)
{
	follow_projects(jobs);
	put_jobs(jobs);
}

/* It had nothing on its GPU yet, and may begin on another. */
static bool may_begin_elsewhere(
	const struct sl_jobs *jobs, const struct sl_job_task *task)
{
	const struct sl_workload *workload = sl_jobs_workload_of(jobs, task);

	return workload && sl_jobs_may_begin_on(jobs->daemon, workload);
}

/* A lost GPU took its programs' memory with it: their tasks are started anew. */
static void end_misplaced(struct sl_jobs *jobs)
{
	sl_list_foreach_safe (link, &jobs->active) {
		struct sl_job_task *task =
			SL_LIST_ENTRY(link, struct sl_job_task, active);

		if (!task->job->counted || task->job->foreground ||
			task->phase == SL_PHASE_STOPPING ||
			may_begin_elsewhere(jobs, task) ||
			!sl_jobs_is_lost(&jobs->books, task->node, task->gpu_mask))
			continue;
		sl_info("job %" PRIu64 " (%s): a GPU of task %u is lost; it is ended, "
			"and started anew",
			task->job->row.id, task->job->row.name, task->number);
		task->stopped = task->bereft = true;
		(void)sl_jobs_end_task(
			jobs, task, jobs->daemon->config.stop_grace, false);
	}
}

static void tell_config(struct sl_jobs *jobs)
{
	const struct sl_config *config = &jobs->daemon->config;
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_CONFIG};

	event.config.placement = config->job_placement;
	/* The set was judged as a whole; on the way sums may be exceeded for a moment. */
	event.config.sums_free = 1;
	/* What has spread is packed again when a whole GPU is wanted. */
	event.config.move_most = config->detach_contexts ? config->move_budget : 0;
	event.config.spread =
		event.config.move_most && config->placement == SL_PLACEMENT_SPREAD;
	sl_jobs_tell(jobs, &event);
}

void sl_jobs_follow_gpus(struct sl_jobs *jobs)
{
	jobs->gpus_changed = false;
	tell_config(jobs);
	sl_jobs_find_kinds(jobs);
	sl_jobs_put_nodes(jobs);
	/* Pools of projects and jobs are kinds of GPUs. */
	follow_projects(jobs);
	put_jobs(jobs);
	end_misplaced(jobs);
	sl_jobs_front_hurry(jobs);
	jobs->dirty = true;
	sl_jobs_awake(jobs);
}

void sl_jobs_books_open(struct sl_jobs *jobs)
{
	jobs->books.arena = sl_arena_new();
	jobs->books.cluster =
		sl_cluster_new(jobs->books.arena, SL_NODE_GPUS_MAX, SL_PROJECTS_MAX);
	sl_jobs_follow_gpus(jobs);
}
