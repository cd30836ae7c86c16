/*
 * machine - events in, actions out
 *
 * A handler per event changes the books; only a CYCLE decides. All events between two cycles
 * therefore cost one decision, however they are grouped.
 */
#include "policy/cluster/internal.h"

#include <string.h>

#include "policy/mutant.h"

#define DEFAULT_STALE_GRACE   (60 * SL_S)
#define DEFAULT_SEARCH_MOST   64
#define DEFAULT_RESUME_FACTOR 10
#define DEFAULT_STOP_WITHIN   (120 * SL_S)
/* Waiting jobs are not counted beyond this. */
#define AHEAD_MOST 1000

void sl_cl_emit(struct sl_cluster *cl, struct sl_cluster_action action)
{
	action.id = ++cl->next_action;
	cl->emit(cl->context, &action);
}

void sl_cl_refuse_job(
	struct sl_cluster *cl, uint64_t id, const struct sl_pending_because *because)
{
	sl_cl_emit(cl, (struct sl_cluster_action){.type = SL_CLUSTER_ACTION_REFUSE_JOB,
			       .refuse_job = {.job = id,
				       .reason = because->reason,
				       .resource = because->resource,
				       .wanted = because->wanted,
				       .available = because->available,
				       .project = because->project}});
}

void sl_cl_wake(struct sl_cluster *cl, sl_ns at)
{
	if (at > cl->now && at < cl->due)
		cl->due = at;
}

/* --- Recycled memory. The first word of a free block is the link. --- */

void *sl_cl_spare_take(struct sl_cluster *cl, void **spare, size_t size)
{
	void *object = *spare;

	if (!object)
		return sl_arena_take(cl->arena, size);
	memcpy(spare, object, sizeof(*spare));
	memset(object, 0, size);
	return object;
}

void sl_cl_spare_give(void **spare, void *object)
{
	memcpy(object, spare, sizeof(*spare));
	*spare = object;
}

void *sl_cl_block_take(struct sl_cluster *cl, uint32_t bits)
{
	return sl_cl_spare_take(cl, &cl->spare_blocks[bits], (size_t)1 << bits);
}

void sl_cl_block_give(struct sl_cluster *cl, void *block, uint32_t bits)
{
	sl_cl_spare_give(&cl->spare_blocks[bits], block);
}

void sl_cl_trail_add(
	struct sl_cluster *cl, struct sl_cl_trail *trail, struct sl_cl_task *task)
{
	if (trail->count == trail->room) {
		struct sl_cl_task **old = trail->task;

		trail->room = trail->room ? 2 * trail->room : 256;
		trail->task =
			sl_arena_take(cl->arena, trail->room * sizeof(trail->task[0]));
		if (old)
			memcpy(trail->task, old, trail->count * sizeof(old[0]));
	}
	trail->task[trail->count++] = task;
}

/* --- Handlers. --- */

static void on_config(struct sl_cluster *cl, const struct sl_cluster_event *event)
{
	uint32_t placement = event->config.placement;

	if (placement < SL_PLACE_POLICIES)
		cl->placement = (enum sl_placement_policy)placement;
	cl->stale_grace = event->config.stale_grace ? event->config.stale_grace
						    : DEFAULT_STALE_GRACE;
	cl->search_most = event->config.search_most ? event->config.search_most
						    : DEFAULT_SEARCH_MOST;
	cl->resume_factor = event->config.resume_factor ? event->config.resume_factor
							: DEFAULT_RESUME_FACTOR;
	cl->stop_within = event->config.stop_within ? event->config.stop_within
						    : DEFAULT_STOP_WITHIN;
	cl->move_most = event->config.move_most;
	cl->spreads = event->config.spread;
	cl->tree.sums_free = event->config.sums_free;
}

static void refuse_project(struct sl_cluster *cl, uint64_t id, uint32_t outcome)
{
	sl_cl_emit(
		cl, (struct sl_cluster_action){.type = SL_CLUSTER_ACTION_REFUSE_PROJECT,
			    .refuse_project = {.project = id, .outcome = outcome}});
}

static void on_project_put(struct sl_cluster *cl, const struct sl_cluster_event *event)
{
	uint64_t parent_id = event->project_put.parent;
	uint32_t parent =
		parent_id ? sl_tree_find(&cl->tree, parent_id) : SL_PROJECT_NONE;
	enum sl_tree_outcome outcome = SL_TREE_PARENT;
	uint32_t number;

	if (!parent_id || parent != SL_PROJECT_NONE)
		outcome = sl_tree_put(&cl->tree, event->project_put.project, parent,
			&event->project_put.rules, cl->now, &number);
	if (outcome)
		refuse_project(cl, event->project_put.project, outcome);
	else
		sl_cl_reclass(cl);
}

static void on_project_remove(struct sl_cluster *cl, const struct sl_cluster_event *event)
{
	uint32_t number = sl_tree_find(&cl->tree, event->project_remove.project);

	if (number != SL_PROJECT_NONE && !sl_tree_remove(&cl->tree, number))
		refuse_project(cl, event->project_remove.project, SL_TREE_IN_USE);
}

static void (*const handlers[SL_CLUSTER_EVENTS])(
	struct sl_cluster *cl, const struct sl_cluster_event *event) = {
	[SL_CLUSTER_EVENT_CONFIG] = on_config,
	[SL_CLUSTER_EVENT_NODE_PUT] = sl_cl_on_node_put,
	[SL_CLUSTER_EVENT_NODE_LOST] = sl_cl_on_node_lost,
	[SL_CLUSTER_EVENT_PROJECT_PUT] = on_project_put,
	[SL_CLUSTER_EVENT_PROJECT_REMOVE] = on_project_remove,
	[SL_CLUSTER_EVENT_JOB_ADD] = sl_cl_on_job_add,
	[SL_CLUSTER_EVENT_TASKS_ADD] = sl_cl_on_tasks_add,
	[SL_CLUSTER_EVENT_JOB_REMOVE] = sl_cl_on_job_remove,
	[SL_CLUSTER_EVENT_JOB_COST] = sl_cl_on_job_cost,
	[SL_CLUSTER_EVENT_OWNER_MOST] = sl_cl_on_owner_most,
	[SL_CLUSTER_EVENT_JOB_RESUME] = sl_cl_on_job_resume,
	[SL_CLUSTER_EVENT_JOB_UNPARK] = sl_cl_on_job_unpark,
	[SL_CLUSTER_EVENT_TASK_RUNS] = sl_cl_on_task_runs,
	[SL_CLUSTER_EVENT_TASK_PARKED] = sl_cl_on_task_parked,
	[SL_CLUSTER_EVENT_BIND_REFUSED] = sl_cl_on_bind_refused,
	[SL_CLUSTER_EVENT_BIND_AGAIN] = sl_cl_on_bind_again,
	[SL_CLUSTER_EVENT_TASK_ENDED] = sl_cl_on_task_ended,
	[SL_CLUSTER_EVENT_TASK_STOPS] = sl_cl_on_task_stops,
	[SL_CLUSTER_EVENT_TASK_MOVE] = sl_cl_on_task_move,
	[SL_CLUSTER_EVENT_STOP_FAILED] = sl_cl_on_stop_failed,
	[SL_CLUSTER_EVENT_CYCLE] = sl_cl_on_cycle,
};

/* --- The machine. --- */

struct sl_cluster *sl_cluster_new(
	struct sl_arena *arena, uint32_t nodes_most, uint32_t projects_most)
{
	struct sl_cluster *cl = sl_arena_take(arena, sizeof(*cl));

	cl->arena = arena;
	cl->nodes_most = nodes_most;
	cl->fit = sl_arena_take(arena, nodes_most * sizeof(cl->fit[0]));
	cl->node = sl_arena_take(arena, nodes_most * sizeof(cl->node[0]));
	cl->node_free = sl_arena_take(arena, nodes_most * sizeof(cl->node_free[0]));
	sl_tree_init(&cl->tree, arena, projects_most);
	cl->order = sl_joborder_new(arena, &cl->tree);
	cl->ranks = sl_arena_take(arena, projects_most * sizeof(cl->ranks[0]));
	cl->from = sl_arena_take(arena, projects_most * sizeof(cl->from[0]));
	cl->near = sl_arena_take(arena, nodes_most * sizeof(cl->near[0]));
	sl_index_init(&cl->nodes_by_id, arena);
	sl_index_init(&cl->jobs_by_id, arena);
	sl_index_init(&cl->owners_by_id, arena);
	sl_list_init(&cl->jobs);
	sl_list_init(&cl->promised);
	sl_list_init(&cl->stale);
	sl_list_init(&cl->held);
	sl_list_init(&cl->parked);
	sl_list_init(&cl->leaving);
	cl->gains = cl->nodes_version = cl->version = cl->outside = 1;
	for (int mode = 0; mode < SL_CL_MODES; mode++)
		cl->round[mode] = 1;
	cl->stale_grace = DEFAULT_STALE_GRACE;
	cl->search_most = DEFAULT_SEARCH_MOST;
	cl->resume_factor = DEFAULT_RESUME_FACTOR;
	cl->stop_within = DEFAULT_STOP_WITHIN;
	cl->due = cl->told_due = SL_NS_NEVER;
	return cl;
}

/* The expected answer to a BIND or a STOP, or a measurement of a running task. */
static bool is_answer(const struct sl_cluster *cl, const struct sl_cluster_event *event)
{
	const struct sl_cl_task *task;

	if (event->type == SL_CLUSTER_EVENT_TASK_RUNS ||
		event->type == SL_CLUSTER_EVENT_JOB_COST)
		return true;
	if (event->type != SL_CLUSTER_EVENT_TASK_ENDED || !event->task_ended.again)
		return false;
	task = sl_cl_find_task(cl, event->task_ended.job, event->task_ended.task);
	return task && (task->state == SL_TASK_RELEASING || task->giving_up);
}

void sl_cluster_step(struct sl_cluster *cl, sl_ns now,
	const struct sl_cluster_event *event, sl_cluster_action_fn emit, void *context)
{
	cl->now = sl_max_u64(cl->now, now);
	cl->emit = emit;
	cl->context = context;
	if ((uint32_t)event->type >= SL_CLUSTER_EVENTS)
		return;
	if (event->type != SL_CLUSTER_EVENT_CYCLE) {
		cl->version++;
		cl->cycled = 0;
		cl->outside += !is_answer(cl, event);
	}
	handlers[event->type](cl, event);
	if (cl->due != cl->told_due && cl->due != SL_NS_NEVER) {
		cl->told_due = cl->due;
		sl_cl_emit(
			cl, (struct sl_cluster_action){.type = SL_CLUSTER_ACTION_WAKE_AT,
				    .wake_at = {.at = cl->due}});
	}
}

/* --- Views. --- */

/* Jobs of its project ahead of it; its own group is a heap. */
static uint32_t ahead_of(const struct sl_cl_job *job)
{
	const struct sl_joborder_job *at = job->group->order.before;
	uint64_t ahead = 0;

	for (uint32_t i = 0; i < job->group->count; i++)
		ahead += job->group->heap[i]->seq < job->seq;
	for (; at && ahead < AHEAD_MOST; at = at->before)
		ahead += SL_CONTAINER_OF(at, const struct sl_cl_group, order)->count;
	return (uint32_t)sl_min_u64(ahead, AHEAD_MOST);
}

/* A stopped gang of which some tasks are gone and others are not. */
static bool is_leaving(const struct sl_cl_job *job)
{
	uint32_t pending = 0, leaving = 0;

	for (uint32_t p = 0; p < job->parts; p++) {
		pending += job->part[p]->in[SL_TASK_PENDING];
		leaving += job->part[p]->in[SL_TASK_RELEASING];
	}
	return pending && leaving;
}

static struct sl_pending_because because_of(
	const struct sl_cluster *cl, const struct sl_cl_job *job)
{
	struct sl_pending_because because = job->because;

	if (!job->group) {
		if (because.reason == SL_PENDING_BACK_OFF)
			because.wanted = (int64_t)sl_sub_sat(job->held_until, cl->now);
		if (sl_list_is_linked(&job->promised) && !sl_list_is_linked(&job->held))
			because.reason = SL_PENDING_PROMISED;
		if (!because.reason && is_leaving(job))
			because.reason = SL_PENDING_LEAVING;
		return because;
	}
	if (job->group->because.reason)
		because = job->group->because;
	if (because.reason == SL_PENDING_PREEMPT_DELAY ||
		because.reason == SL_PENDING_RESUME_WAIT)
		because.wanted = (int64_t)sl_sub_sat(sl_cl_takes_at(job), cl->now);
	if (because.reason == SL_PENDING_MOVE_BUDGET)
		because.wanted = (int64_t)sl_sub_sat(sl_cl_moves_again(cl), cl->now);
	if (because.reason != SL_PENDING_PRIORITY)
		because.ahead = ahead_of(job);
	return because;
}

struct sl_cluster_job_view sl_cluster_job(const struct sl_cluster *cl, uint64_t id)
{
	const struct sl_cl_job *job = sl_cl_find_job(cl, id);
	struct sl_cluster_job_view view = {.known = job};

	if (!job)
		return view;
	view.project = cl->tree.all[job->project].id;
	view.priority = job->priority;
	view.flags = job->flags;
	view.tasks = job->tasks;
	view.submitted = job->submitted;
	view.started = job->started;
	for (uint32_t p = 0; p < job->parts; p++) {
		view.least += job->part[p]->least;
		for (uint32_t s = 0; s < SL_TASK_STATES; s++)
			view.in[s] += job->part[p]->in[s];
	}
	view.because = because_of(cl, job);
	view.failures = job->failures;
	view.held_until = job->held_until;
	view.paused_until = job->paused_until;
	view.waits_since = job->waits_since;
	return view;
}

struct sl_cluster_task_view sl_cluster_task(
	const struct sl_cluster *cl, uint64_t job, uint32_t number)
{
	const struct sl_cl_task *task = sl_cl_find_task(cl, job, number);
	struct sl_cluster_task_view view = {.known = task};
	bool has_place;

	if (!task)
		return view;
	view.state = (enum sl_task_state)task->state;
	view.parked = task->parked;
	view.spared_until = task->spared_until;
	view.moves =
		task->promised &&
		(task->state == SL_TASK_RELEASING ||
			(task->parked && (task->next.gpu_mask != task->place.gpu_mask ||
						 task->next.milli != task->place.milli)));
	has_place = task->state == SL_TASK_BINDING || task->state == SL_TASK_RUNNING ||
		    task->state == SL_TASK_RELEASING || task->parked;
	if (has_place || task->promised) {
		view.place = has_place ? task->place : task->next;
		view.node = cl->node[view.place.node].index.id;
	}
	if (view.moves) {
		view.next = task->next;
		view.next_node = cl->node[task->next.node].index.id;
	}
	return view;
}

struct sl_cluster_totals sl_cluster_totals(const struct sl_cluster *cl)
{
	return (struct sl_cluster_totals){.nodes = cl->nodes,
		.jobs = (uint32_t)cl->jobs_count,
		.tasks = (uint32_t)cl->tasks_count,
		.running = cl->in[SL_TASK_RUNNING],
		.pending = cl->in[SL_TASK_PENDING],
		.capacity = cl->capacity,
		.used = cl->used,
		.tried = cl->tried};
}

const struct sl_tree *sl_cluster_tree(const struct sl_cluster *cl)
{
	return &cl->tree;
}

const char *sl_cluster_event_name(uint32_t type)
{
	static const char *const names[SL_CLUSTER_EVENTS] = {
#define SL_CLUSTER_EVENT(NAME, name, fields) #NAME,
#include "policy/cluster/event.def"
#undef SL_CLUSTER_EVENT
	};

	return type < SL_CLUSTER_EVENTS ? names[type] : "?";
}

const char *sl_cluster_action_name(uint32_t type)
{
	static const char *const names[SL_CLUSTER_ACTIONS] = {
#define SL_CLUSTER_ACTION(NAME, name, fields) #NAME,
#include "policy/cluster/action.def"
#undef SL_CLUSTER_ACTION
	};

	return type < SL_CLUSTER_ACTIONS ? names[type] : "?";
}
