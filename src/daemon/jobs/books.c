/*
 * books - nodes, projects, jobs and workloads, as told to the cluster machine
 *
 * GPUs of one kind (model and size) are one node: they are interchangeable for a task. The machine
 * cannot express that a node loses GPUs, which is rare; then, as at the start, it is made anew and
 * told everything. The same code fills a second machine to answer a question ("what would become of
 * this job?").
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

typedef void (*tell_fn)(void *context, const struct sl_cluster_event *event);

/* Legal at every step: parents stand before their children, and the set was judged as a whole. */
static void put_projects(const struct sl_daemon *daemon,
	const struct sl_jobs_books *books, tell_fn tell, void *context)
{
	const struct sl_projects *set = sl_registry_set(daemon);

	for (size_t i = 0; i < set->count; i++) {
		const struct sl_project_row *row = &set->rows[i];
		struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_PROJECT_PUT};

		event.project_put.project = row->id;
		event.project_put.parent =
			row->parent[0] ? sl_jobs_project_id(daemon, row->parent) : 0;
		event.project_put.rules = sl_project_rules_of(row, NULL, NULL);
		event.project_put.rules.pools = sl_jobs_pools_named(books, row->pools);
		tell(context, &event);
	}
}

/* --- The machine. --- */

static void queue_action(void *context, const struct sl_cluster_action *action)
{
	struct sl_jobs *jobs = context;
	size_t room = jobs->todo_room ? 2 * jobs->todo_room : 64;
	struct sl_cluster_action *todo;

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
		sl_warning("the queue could not take project %s over (%u); it is told "
			   "everything anew",
			sl_jobs_project_name(
				jobs->daemon, action->refuse_project.project),
			action->refuse_project.outcome);
		jobs->books.refused_project = true;
		return;
	case SL_CLUSTER_ACTION_PIPELINE: jobs->promises = true; return;
	/* Parking tasks have a deadline here; ending ones are waited for. */
	case SL_CLUSTER_ACTION_LATE: return;
	default: break;
	}
	if (jobs->todo_count == jobs->todo_room) {
		todo = realloc(jobs->todo, room * sizeof(todo[0]));
		/* A lost action was never answered, so a rebuild leads to it again. */
		if (!todo) {
			jobs->rebuild = true;
			return;
		}
		jobs->todo = todo;
		jobs->todo_room = room;
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

/* Context of the events that fill a machine. */
struct filling {
	struct sl_jobs *jobs;
	struct sl_jobs_books *books;
	sl_cluster_action_fn emit;
	void *context;
	struct sl_jobs_counted counted;
};

static void fill_in(void *context, const struct sl_cluster_event *event)
{
	const struct filling *filling = context;

	sl_cluster_step(filling->books->cluster, sl_clock_now(), event, filling->emit,
		filling->context);
}

static void fill_nodes(const struct filling *filling)
{
	const struct sl_daemon *daemon = filling->jobs->daemon;
	struct sl_jobs_books *books = filling->books;
	long cores = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES);
	uint64_t memory_mib =
		pages > 0 ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) / SL_MIB
			  : 0;

	sl_jobs_find_kinds(daemon, books);
	for (uint32_t k = 0; k < books->kinds; k++) {
		const struct sl_jobs_kind *kind = &books->kind[k];
		struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_NODE_ADD};

		event.node_add.node = k + 1;
		event.node_add.cpu_milli = cores > 0 ? (uint32_t)cores * 1000 : 0;
		event.node_add.memory_mib = (uint32_t)sl_min_u64(memory_mib, UINT32_MAX);
		event.node_add.gpus = (uint16_t)kind->count;
		event.node_add.gpu_mib = kind->mib;
		event.node_add.model = event.node_add.pool = (uint8_t)sl_min_u64(k, 30);
		event.node_add.swaps = books->swaps;
		event.node_add.pool_mib = books->pool_mib;
		fill_in((void *)filling, &event);
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
	uint64_t pools;

	job->need = (struct sl_need){.gpus = (uint16_t)row->gpu_count};
	job->is_free = !request->value;
	if (request->kind == SL_AMOUNT_FRACTION)
		job->need.gpu_milli = (uint16_t)milli_of(request);
	else
		job->need.gpu_mib = (uint32_t)sl_min_u64(
			(request->value + SL_MIB - 1) / SL_MIB, UINT32_MAX);
	/* If its GPUs have changed since it was accepted, it may use any. */
	job->need.pools = sl_jobs_pools_of(jobs, row, &pools) ? pools : 0;
	job->parks = !(row->flags & SL_SUBMIT_TERMINATES);
	if (job->foreground)
		sl_jobs_front_set_flags(jobs, job);
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
		(job->parks ? SL_JOB_PARKS : 0);
	event.job_add.tasks = job->row.task_count;
	event.job_add.least = job->row.least;
	event.job_add.need = job->need;
	event.job_add.park_mib = sl_max_u64(1, job->park_mib);
	event.job_add.swap_cost = job->swap_cost;
	event.job_add.failures = job->failures;
	event.job_add.held_for = sl_sub_sat(job->held_until, sl_clock_now());
	event.job_add.paused_for = sl_sub_sat(job->paused_until, sl_clock_now());
	event.job_add.preempt_delay = job->row.preempt_delay;
	event.job_add.owner = sl_jobs_owner_of(job);
	if (job->waits_since)
		event.job_add.waited = sl_sub_sat(sl_clock_now(), job->waits_since);
	return event;
}

/* Keeps what only the machine knows of a job. */
static void remember(struct sl_jobs *jobs, struct sl_job *job)
{
	const struct sl_cluster *cluster = jobs->books.cluster;
	struct sl_cluster_job_view view = sl_cluster_job(cluster, job->row.id);

	if (job->over || !view.known)
		return;
	job->failures = view.failures;
	job->held_until = view.held_until;
	job->paused_until = view.paused_until;
	job->waits_since = view.waits_since;
	for (uint32_t i = 0; i < job->row.task_count; i++)
		job->tasks[i].spared_until =
			sl_cluster_task(cluster, job->row.id, i).spared_until;
}

static void remember_all(struct sl_jobs *jobs)
{
	sl_list_foreach (link, &jobs->all)
		remember(jobs, SL_LIST_ENTRY(link, struct sl_job, link));
}

bool sl_jobs_count(struct sl_jobs *jobs, struct sl_job *job)
{
	struct sl_cluster_event event = sl_jobs_add_event(jobs, job);

	jobs->was_refused = false;
	sl_jobs_tell(jobs, &event);
	job->counted = !jobs->was_refused;
	job->refused = jobs->was_refused ? jobs->refusal : (struct sl_pending_because){0};
	return job->counted;
}

/* Tells the task's place as a fact. False: that place is gone. */
static bool fill_running(const struct filling *filling, uint64_t job,
	const struct sl_job_task *task, const struct sl_workload *workload)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_TASK_RUNS};
	uint64_t node;
	uint32_t mask;

	if (!sl_jobs_place_of(filling->books, sl_workload_gpus(workload), &node, &mask))
		return false;
	event.task_runs.job = job;
	event.task_runs.task = task ? task->number : 0;
	event.task_runs.node = node;
	event.task_runs.gpu_mask = mask;
	event.task_runs.ago = sl_sub_sat(sl_clock_now(), workload->born);
	event.task_runs.spared_for =
		task ? sl_sub_sat(task->spared_until, sl_clock_now()) : 0;
	fill_in((void *)filling, &event);
	return true;
}

static void fill_parked(const struct filling *filling, const struct sl_job_task *task,
	const struct sl_workload *workload)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_TASK_PARKED};
	uint64_t node;
	uint32_t mask;

	if (!sl_jobs_place_of(filling->books, sl_workload_gpus(workload), &node, &mask))
		return;
	event.task_parked.job = task->job->row.id;
	event.task_parked.task = task->number;
	event.task_parked.node = node;
	event.task_parked.gpu_mask = mask;
	fill_in((void *)filling, &event);
}

static void fill_task(const struct filling *filling, struct sl_job_task *task)
{
	const struct sl_workload *workload = sl_map_get(&filling->jobs->daemon->workloads,
		task->job->row.tasks[task->number].workload);
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_TASK_STOPS};

	event.task_stops.job = task->job->row.id;
	event.task_stops.task = task->number;
	switch (task->alone ? SL_PHASE_OVER : task->phase) {
	case SL_PHASE_WAITING:
	case SL_PHASE_CHOSEN: break;
	case SL_PHASE_OVER:
		event.type = SL_CLUSTER_EVENT_TASK_ENDED;
		event.task_ended.job = task->job->row.id;
		event.task_ended.task = task->number;
		event.task_ended.again = 0;
		event.task_ended.failed = task->failed;
		fill_in((void *)filling, &event);
		break;
	case SL_PHASE_PARKED:
		if (workload)
			fill_parked(filling, task, workload);
		break;
	case SL_PHASE_STARTING:
	case SL_PHASE_RUNS:
	case SL_PHASE_PARKING:
	case SL_PHASE_RESUMING:
	case SL_PHASE_STOPPING:
		if (!workload ||
			!fill_running(filling, task->job->row.id, task, workload))
			break;
		if (task->phase == SL_PHASE_STOPPING || task->phase == SL_PHASE_PARKING)
			fill_in((void *)filling, &event);
		break;
	}
}

/* Has a foreground job a place in these books? A job that a user parked has given up its request;
 * one on GPUs of several kinds, or on lost GPUs, has no node in the machine. */
static bool stands(const struct sl_jobs *jobs, const struct sl_jobs_books *books,
	const struct sl_job *job)
{
	const struct sl_workload *workload =
		sl_map_get(&jobs->daemon->workloads, job->row.tasks[0].workload);
	uint64_t node;
	uint32_t mask;

	if (job->tasks[0].phase == SL_PHASE_WAITING)
		return !job->apart && !job->early;
	if (!workload || !workload->request_bytes ||
		(job->tasks[0].phase == SL_PHASE_RUNS && workload->park != SL_PARK_NOT))
		return false;
	return sl_jobs_place_of(books, sl_workload_gpus(workload), &node, &mask);
}

static void fill_job(struct filling *filling, struct sl_job *job)
{
	struct sl_jobs *jobs = filling->jobs;
	struct sl_cluster_event event;
	uint64_t pools;

	if (job->over)
		return;
	sl_jobs_set_need(jobs, job);
	if (job->bound && &jobs->books == filling->books)
		job->counted = false;
	if (job->is_free || job->bound)
		return;
	if (job->waits && !job->early && &jobs->books == filling->books)
		job->apart = !sl_jobs_pools_of(jobs, &job->row, &pools);
	if (job->foreground && !stands(jobs, filling->books, job)) {
		job->counted &= &jobs->books != filling->books;
		return;
	}
	event = sl_jobs_add_event(jobs, job);
	jobs->was_refused = false;
	fill_in((void *)filling, &event);
	if (&jobs->books == filling->books) {
		job->counted = !jobs->was_refused;
		job->refused = jobs->refusal;
		job->apart |= job->waits && !job->counted;
	}
	if (sl_jobs_owner_of(job)) {
		event = sl_jobs_most_event(jobs, job, &filling->counted);
		if (&jobs->books == filling->books)
			job->most = event.owner_most.most;
		fill_in((void *)filling, &event);
	}
	for (uint32_t i = 0; i < job->row.task_count; i++)
		fill_task(filling, &job->tasks[i]);
}

void sl_jobs_books_init(struct sl_jobs *jobs, struct sl_jobs_books *books,
	sl_cluster_action_fn emit, void *context)
{
	const struct sl_daemon *daemon = jobs->daemon;
	struct filling filling = {jobs, books, emit, context, {0}};
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_CONFIG};

	if (jobs->books.cluster)
		remember_all(jobs);
	*books = (struct sl_jobs_books){.arena = sl_arena_new()};
	books->cluster = sl_cluster_new(books->arena, SL_NODE_GPUS_MAX, SL_PROJECTS_MAX);
	event.config.placement = daemon->config.job_placement;
	/* The set was judged as a whole; on the way sums may be exceeded for a moment. */
	event.config.sums_free = 1;
	fill_in(&filling, &event);
	fill_nodes(&filling);
	put_projects(daemon, books, fill_in, &filling);
	sl_list_foreach (at, &jobs->all)
		fill_job(&filling, SL_LIST_ENTRY(at, struct sl_job, link));
}

void sl_jobs_books_fini(struct sl_jobs_books *books)
{
	books->arena = sl_arena_free(books->arena);
	*books = (struct sl_jobs_books){0};
}

/* A lost GPU took its programs' memory with it: their tasks are started anew. */
static void end_misplaced(struct sl_jobs *jobs)
{
	sl_list_foreach_safe (link, &jobs->active) {
		struct sl_job_task *task =
			SL_LIST_ENTRY(link, struct sl_job_task, active);
		const struct sl_workload *workload = sl_map_get(&jobs->daemon->workloads,
			task->job->row.tasks[task->number].workload);
		uint64_t node;
		uint32_t mask;

		if (!workload || task->job->is_free || task->job->foreground ||
			task->phase == SL_PHASE_STOPPING ||
			sl_jobs_place_of(
				&jobs->books, sl_workload_gpus(workload), &node, &mask))
			continue;
		sl_info("job %" PRIu64 " (%s): a GPU of task %u is lost; it is ended, "
			"and started anew",
			task->job->row.id, task->job->row.name, task->number);
		task->stopped = task->bereft = true;
		(void)sl_jobs_end_task(
			jobs, task, jobs->daemon->config.stop_grace, false);
	}
}

/* Translates places into these books: resuming tasks keep theirs, and of ending ones it tells
 * whether a GPU was lost. */
static void find_places(struct sl_jobs *jobs)
{
	sl_list_foreach (link, &jobs->active) {
		struct sl_job_task *task =
			SL_LIST_ENTRY(link, struct sl_job_task, active);
		const struct sl_workload *workload = sl_jobs_workload_of(jobs, task);

		if (!workload || task->job->is_free)
			continue;
		if (!sl_jobs_place_of(&jobs->books, sl_workload_gpus(workload),
			    &task->node, &task->gpu_mask))
			task->node = task->gpu_mask = 0;
	}
}

void sl_jobs_rebuild(struct sl_jobs *jobs)
{
	if (jobs->books.cluster)
		remember_all(jobs);
	sl_jobs_books_fini(&jobs->books);
	jobs->rebuild = false;
	jobs->todo_count = 0;
	jobs->wake_at = SL_NS_NEVER;
	sl_list_foreach_safe (link, &jobs->active) {
		struct sl_job_task *task =
			SL_LIST_ENTRY(link, struct sl_job_task, active);

		if (task->phase == SL_PHASE_CHOSEN)
			sl_jobs_phase(task, SL_PHASE_WAITING);
	}
	sl_jobs_books_init(jobs, &jobs->books, queue_action, jobs);
	sl_jobs_front_hurry(jobs);
	jobs->books.refused_project = false;
	find_places(jobs);
	end_misplaced(jobs);
	jobs->dirty = true;
	sl_jobs_awake(jobs);
}

/* --- What changes. --- */

static void tell_it(void *context, const struct sl_cluster_event *event)
{
	sl_jobs_tell(context, event);
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

void sl_jobs_put_projects(struct sl_jobs *jobs)
{
	put_projects(jobs->daemon, &jobs->books, tell_it, jobs);
	remove_projects(jobs);
	if (jobs->books.refused_project)
		jobs->rebuild = true;
	/* Jobs without a project, or without a GPU in its pools, may fit now. */
	sl_list_foreach (link, &jobs->all) {
		struct sl_job *job = SL_LIST_ENTRY(link, struct sl_job, link);

		if (!job->over && !job->counted && !job->is_free && !job->bound)
			jobs->rebuild = true;
	}
	sl_jobs_awake(jobs);
}

void sl_jobs_put_job(struct sl_jobs *jobs, struct sl_job *job)
{
	struct filling filling = {jobs, &jobs->books, queue_action, jobs, {0}};

	fill_job(&filling, job);
	jobs->dirty = true;
	sl_jobs_awake(jobs);
}

void sl_jobs_take_job(struct sl_jobs *jobs, struct sl_job *job)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_REMOVE};

	if (!job->counted)
		return;
	remember(jobs, job);
	event.job_remove.job = job->row.id;
	sl_jobs_tell(jobs, &event);
	job->counted = false;
}

static bool is_same(const struct sl_cluster_event *a, const struct sl_cluster_event *b)
{
	const struct sl_need *one = &a->job_add.need, *other = &b->job_add.need;

	return a->job_add.project == b->job_add.project &&
	       a->job_add.priority == b->job_add.priority &&
	       a->job_add.flags == b->job_add.flags && one->gpus == other->gpus &&
	       one->gpu_milli == other->gpu_milli && one->gpu_mib == other->gpu_mib &&
	       one->pools == other->pools;
}

void sl_jobs_put_again(
	struct sl_jobs *jobs, struct sl_job *job, const struct sl_cluster_event *before)
{
	struct sl_cluster_event now;
	bool counts;

	sl_jobs_set_need(jobs, job);
	now = sl_jobs_add_event(jobs, job);
	counts = !job->is_free && stands(jobs, &jobs->books, job);
	if (counts == job->counted && (!counts || is_same(before, &now)))
		return;
	sl_jobs_take_job(jobs, job);
	sl_jobs_put_job(jobs, job);
	/* Added now, it would stand behind all waiting jobs, and lose places promised to it. A
	 * rebuild adds all jobs in the order of their numbers. */
	if (job->counted && job->tasks[0].phase != SL_PHASE_RUNS)
		jobs->rebuild = true;
}
