/*
 * simulate_world - see the header
 *
 * The machine is never called from within itself: its actions are kept in a row and carried out one after the other, and
 * the events that answer them may add to the row. The world keeps accounts of its own of what is where, by the
 * machine's actions alone; what is measured is measured on these.
 */
#include "cli/simulate_world.h"

#include "cli/simulate_gauge.h"
#include "cli/simulate_mix.h"
#include "cli/simulate_run.h"
#include "cli/simulate_timers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How often a run says how far it is: in moments. */
#define PROGRESS_EVERY 64
/* Rounds of one moment, and stops for each job, after which it is no progress any more. */
#define ROUNDS_MOST 10000
#define STOPS_EACH  1000
#define STOPS_LEAST 100000
#define IDLE_MOST   1000000
/* What a node's id tells: which node it is, and how often it was repaired before. */
#define NODE_ID(number, repairs) ((uint64_t)(repairs) << 32 | ((number) + 1))
#define NODE_OF(id)              ((uint32_t)(id)-1)

/* Nanoseconds of all tasks of a gang together. */
__extension__ typedef unsigned __int128 wide;

enum task_state { IDLE = 0, STARTING, RUNS, STOPPING };

struct task {
	struct sl_place place; /* while it has one, and while it is parked */
	uint32_t turn;
	uint8_t state;
	bool parked, parks; /* parks: STOPPING, and will be parked */
};

enum job_phase { TO_COME = 0, IN, OVER };

struct job {
	struct task *tasks;
	enum job_phase phase;
	bool started;
	uint32_t runs, turn;
	sl_ns submitted, since; /* since: runs has been so */
	wide done;
};

struct world {
	const struct sl_trace *trace;
	const struct sl_world_ask *ask;
	struct sl_figures *figures;
	struct sl_world_refusal *refusal;
	struct sl_arena *arena;
	struct sl_cluster *cluster;
	struct sl_fit_node *nodes;
	uint32_t *repairs; /* by node */
	uint32_t *numbers; /* of projects in the machine's tree */
	struct sl_gauge gauge;
	struct job *jobs;
	struct task *tasks;
	struct sl_arrivals order;
	uint32_t *times; /* by arrival: the job whose time it has */
	struct sl_timers timers;
	struct sl_cluster_action *actions; /* not carried out yet: [first..count) */
	uint32_t action_first, action_count, action_room;
	sl_ns now;
	uint64_t random, stops, busy; /* busy: tasks that have a place */
	uint32_t arrived, over, down, idle;
	bool failed; /* out of memory */
};

/* --- The machine. --- */

static void keep_action(void *context, const struct sl_cluster_action *action)
{
	struct world *w = context;

	if (w->action_count == w->action_room) {
		uint32_t room = w->action_room ? 2 * w->action_room : 256;
		struct sl_cluster_action *grown =
			realloc(w->actions, room * sizeof(*grown));

		if (!grown) {
			w->failed = true;
			return;
		}
		w->actions = grown;
		w->action_room = room;
	}
	w->actions[w->action_count++] = *action;
}

static void send(struct world *w, struct sl_cluster_event event)
{
	sl_cluster_step(w->cluster, w->now, &event, keep_action, w);
}

static void set_timer(struct world *w, struct sl_timer timer, sl_ns in)
{
	timer.at = in > SL_NS_NEVER - 1 - w->now ? SL_NS_NEVER - 1 : w->now + in;
	w->failed |= !sl_timers_add(&w->timers, timer);
}

static const struct sl_work_job *work_of(const struct world *w, uint32_t number)
{
	return &w->trace->work_jobs[number];
}

static bool works(const struct world *w, uint32_t number)
{
	return w->jobs[number].runs >= work_of(w, number)->least;
}

/* --- Places. --- */

static double milli_at(struct sl_place place)
{
	return (double)place.milli * __builtin_popcount(place.gpu_mask);
}

static void take_place(
	struct world *w, uint32_t number, struct task *task, struct sl_place place)
{
	task->place = place;
	sl_fit_take(&w->nodes[place.node], &w->trace->jobs[number].need, place);
	sl_gauge_node(&w->gauge, place.node, &w->nodes[place.node]);
	sl_figures_use(w->figures, work_of(w, number)->project, milli_at(place));
	w->busy++;
}

static void give_place(struct world *w, uint32_t number, struct task *task)
{
	struct sl_place place = task->place;

	sl_fit_give(&w->nodes[place.node], &w->trace->jobs[number].need, place, false);
	sl_gauge_node(&w->gauge, place.node, &w->nodes[place.node]);
	sl_figures_use(w->figures, work_of(w, number)->project, -milli_at(place));
	w->busy--;
	task->state = IDLE;
	task->turn++;
}

/* --- Work. --- */

static wide work_whole(const struct world *w, uint32_t number)
{
	return (wide)work_of(w, number)->duration * work_of(w, number)->tasks;
}

/* One more of its tasks runs, or one less. */
static void change_runs(struct world *w, uint32_t number, int change)
{
	const struct sl_work_job *work = work_of(w, number);
	struct job *job = &w->jobs[number];
	bool before = works(w, number), after;
	wide left;

	if (before)
		job->done += (wide)job->runs * (w->now - job->since);
	job->since = w->now;
	job->runs = (uint32_t)((int64_t)job->runs + change);
	after = works(w, number);
	if (before != after)
		sl_figures_waiting(w->figures, work->project, after ? -1 : 1);
	if (after && !job->started) {
		job->started = true;
		sl_figures_waited(w->figures, work->project, w->now - job->submitted);
	}
	job->turn++;
	if (!after)
		return;
	left = work_whole(w, number);
	left = left > job->done ? left - job->done : 0;
	set_timer(w,
		(struct sl_timer){.kind = SL_TIMER_END, .of = number, .turn = job->turn},
		(sl_ns)((left + job->runs - 1) / job->runs));
}

/* A task of this place ended or was lost before its time. What the job has done is lost if too few are left. */
static void lose_work(struct world *w, uint32_t number, struct sl_place place)
{
	struct job *job = &w->jobs[number];

	if (works(w, number) || !job->done)
		return;
	sl_figures_redo(w->figures, work_of(w, number)->project,
		(double)job->done / 1e9 * milli_at(place));
	job->done = 0;
}

/* --- Actions. --- */

static void runs(struct world *w, uint32_t number, uint32_t t)
{
	struct task *task = &w->jobs[number].tasks[t];
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_TASK_RUNS};

	task->state = RUNS;
	task->parked = false;
	task->turn++;
	change_runs(w, number, 1);
	event.task_runs.job = number + 1;
	event.task_runs.task = t;
	event.task_runs.node = NODE_ID(task->place.node, w->repairs[task->place.node]);
	event.task_runs.gpu_mask = task->place.gpu_mask;
	send(w, event);
}

static void on_bind(struct world *w, const struct sl_cluster_action *action)
{
	uint32_t number = (uint32_t)action->bind.job - 1, t = action->bind.task;
	struct task *task = &w->jobs[number].tasks[t];
	struct sl_place place = {.node = NODE_OF(action->bind.node),
		.gpu_mask = action->bind.gpu_mask,
		.milli = action->bind.milli};

	take_place(w, number, task, place);
	task->state = STARTING;
	task->turn++;
	if (task->parked && work_of(w, number)->swap_cost)
		set_timer(w,
			(struct sl_timer){.kind = SL_TIMER_STARTED,
				.of = number,
				.task = t,
				.turn = task->turn},
			work_of(w, number)->swap_cost);
	else
		runs(w, number, t);
}

static void stopped(struct world *w, uint32_t number, uint32_t t)
{
	struct task *task = &w->jobs[number].tasks[t];
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_TASK_ENDED};

	task->parked = task->parks;
	give_place(w, number, task);
	event.task_ended.job = number + 1;
	event.task_ended.task = t;
	event.task_ended.again = true;
	send(w, event);
}

/* What it has in host memory is dropped; once for all of its tasks. */
static void give_up(struct world *w, uint32_t number, uint32_t t)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_UNPARK};
	struct task *tasks = w->jobs[number].tasks;

	sl_figures_count(w->figures, work_of(w, number)->project, SL_FIGURE_GIVEN_UP);
	if (!tasks[t].parked)
		return;
	for (uint32_t i = 0; i < work_of(w, number)->tasks; i++)
		if (tasks[i].state == IDLE)
			tasks[i].parked = false;
	lose_work(w, number, tasks[t].place);
	event.job_unpark.job = number + 1;
	send(w, event);
}

static void on_stop(struct world *w, const struct sl_cluster_action *action)
{
	uint32_t number = (uint32_t)action->stop.job - 1, t = action->stop.task;
	struct task *task = &w->jobs[number].tasks[t];
	uint32_t how = action->stop.how;

	w->stops++;
	if (how == SL_STOP_GIVE_UP) {
		give_up(w, number, t);
		return;
	}
	sl_figures_count(w->figures, work_of(w, number)->project,
		how == SL_STOP_PARK   ? SL_FIGURE_PARKED
		: how == SL_STOP_MOVE ? SL_FIGURE_MOVED
				      : SL_FIGURE_TERMINATED);
	if (task->state == RUNS)
		change_runs(w, number, -1);
	task->state = STOPPING;
	task->parks = how == SL_STOP_PARK;
	task->turn++;
	if (!task->parks)
		lose_work(w, number, task->place);
	if (task->parks && work_of(w, number)->swap_cost)
		set_timer(w,
			(struct sl_timer){.kind = SL_TIMER_STOPPED,
				.of = number,
				.task = t,
				.turn = task->turn},
			work_of(w, number)->swap_cost);
	else
		stopped(w, number, t);
}

/* It is over: nothing of it waits or works any more. */
static void close_job(struct world *w, uint32_t number)
{
	struct job *job = &w->jobs[number];

	for (uint32_t t = 0; t < work_of(w, number)->tasks; t++)
		if (job->tasks[t].state != IDLE)
			give_place(w, number, &job->tasks[t]);
	if (!works(w, number))
		sl_figures_waiting(w->figures, work_of(w, number)->project, -1);
	job->phase = OVER;
	w->over++;
}

static const char *project_name(void *context, uint64_t id)
{
	const struct world *w = context;

	return id && id <= w->trace->work->projects.count
		       ? w->trace->work->projects.rows[id - 1].name
		       : "?";
}

static void on_refuse(struct world *w, const struct sl_cluster_action *action)
{
	uint32_t number = (uint32_t)action->refuse_job.job - 1;
	const struct sl_work_job *work = work_of(w, number);
	const struct sl_pending_because because = {
		.reason = (enum sl_pending_reason)action->refuse_job.reason,
		.project = action->refuse_job.project,
		.resource = (enum sl_resource)action->refuse_job.resource,
		.wanted = action->refuse_job.wanted,
		.available = action->refuse_job.available};

	sl_figures_count(w->figures, work->project, SL_FIGURE_REFUSED);
	if (!w->refusal->line || work->line < w->refusal->line) {
		w->refusal->line = work->line;
		sl_pending_text(&because, project_name, w, w->refusal->text,
			sizeof(w->refusal->text));
	}
	close_job(w, number);
}

static void carry_out(struct world *w)
{
	while (w->action_first < w->action_count) {
		struct sl_cluster_action action = w->actions[w->action_first++];

		switch (action.type) {
		case SL_CLUSTER_ACTION_BIND: on_bind(w, &action); break;
		case SL_CLUSTER_ACTION_STOP: on_stop(w, &action); break;
		case SL_CLUSTER_ACTION_REFUSE_JOB: on_refuse(w, &action); break;
		case SL_CLUSTER_ACTION_WAKE_AT:
			set_timer(w, (struct sl_timer){.kind = SL_TIMER_WAKE},
				action.wake_at.at - w->now);
			break;
		default: break;
		}
	}
	w->action_first = w->action_count = 0;
}

/* --- What happens. --- */

static void arrive(struct world *w, uint32_t number)
{
	const struct sl_work_job *work = work_of(w, number);
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_ADD};
	struct job *job = &w->jobs[number];

	job->phase = IN;
	job->submitted = w->now;
	sl_figures_count(w->figures, work->project, SL_FIGURE_JOBS);
	sl_figures_waiting(w->figures, work->project, 1);
	event.job_add.job = number + 1;
	event.job_add.project = work->project + 1;
	event.job_add.priority = work->priority;
	event.job_add.flags = work->flags;
	if (w->ask->resume_wait && work->flags & SL_JOB_PARKS) {
		event.job_add.flags |= SL_JOB_GIVES_UP;
		event.job_add.resume_wait = w->ask->resume_wait;
	}
	event.job_add.tasks = work->tasks;
	event.job_add.least = work->least;
	event.job_add.need = w->trace->jobs[number].need;
	event.job_add.park_mib = work->park_mib;
	event.job_add.swap_cost = work->swap_cost;
	send(w, event);
	carry_out(w);
}

static void end_job(struct world *w, uint32_t number)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_REMOVE};

	sl_figures_count(w->figures, work_of(w, number)->project, SL_FIGURE_ENDED);
	close_job(w, number);
	event.job_remove.job = number + 1;
	send(w, event);
}

static void lose_task(struct world *w, uint32_t number, struct task *task)
{
	w->stops++;
	sl_figures_count(w->figures, work_of(w, number)->project, SL_FIGURE_LOST);
	if (task->state == RUNS)
		change_runs(w, number, -1);
	if (task->state != IDLE)
		give_place(w, number, task);
	task->parked = false;
	task->turn++;
	lose_work(w, number, task->place);
}

static void fail_in_time(struct world *w, uint32_t node)
{
	/* In (0, 1], of 53 bits. */
	double part = ((double)(sl_simulate_draw(&w->random) >> 11) + 1) * 0x1p-53;
	double ns = -log(part) * (double)w->ask->failures;

	set_timer(w, (struct sl_timer){.kind = SL_TIMER_FAILS, .of = node},
		ns < 1e18 ? (sl_ns)ns : (sl_ns)1e18);
}

static void node_fails(struct world *w, uint32_t node)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_NODE_LOST};

	for (uint32_t j = 0; j < w->trace->job_count; j++) {
		struct job *job = &w->jobs[j];

		for (uint32_t t = 0; job->phase == IN && t < work_of(w, j)->tasks; t++) {
			struct task *task = &job->tasks[t];

			if (task->place.node == node &&
				(task->state != IDLE || task->parked))
				lose_task(w, j, task);
		}
	}
	sl_gauge_node(&w->gauge, node, NULL);
	w->down++;
	event.node_lost.node = NODE_ID(node, w->repairs[node]);
	send(w, event);
	set_timer(w, (struct sl_timer){.kind = SL_TIMER_REPAIRED, .of = node},
		w->ask->repair);
}

static void add_node(struct world *w, uint32_t number)
{
	const struct sl_fit_node *node = &w->nodes[number];
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_NODE_ADD};

	event.node_add.node = NODE_ID(number, w->repairs[number]);
	event.node_add.cpu_milli = node->cpu_milli;
	event.node_add.memory_mib = node->memory_mib;
	event.node_add.gpus = node->gpus;
	event.node_add.gpu_mib = node->gpu_mib;
	event.node_add.model = node->model;
	event.node_add.pool = node->pool;
	event.node_add.swaps = w->trace->work_nodes[number].swaps;
	event.node_add.pool_mib = w->trace->work_nodes[number].host_mib;
	send(w, event);
	sl_gauge_node(&w->gauge, number, node);
	if (w->ask->failures)
		fail_in_time(w, number);
}

static bool out_of_date(const struct world *w, const struct sl_timer *timer)
{
	const struct job *job;

	if (timer->kind > SL_TIMER_STOPPED)
		return false;
	job = &w->jobs[timer->of];
	if (job->phase != IN)
		return true;
	if (timer->kind == SL_TIMER_END)
		return job->turn != timer->turn;
	return job->tasks[timer->task].turn != timer->turn;
}

static void happen(struct world *w, const struct sl_timer *timer)
{
	switch (timer->kind) {
	case SL_TIMER_END: end_job(w, timer->of); break;
	case SL_TIMER_STARTED: runs(w, timer->of, timer->task); break;
	case SL_TIMER_STOPPED: stopped(w, timer->of, timer->task); break;
	case SL_TIMER_FAILS: node_fails(w, timer->of); break;
	case SL_TIMER_REPAIRED:
		w->down--;
		w->repairs[timer->of]++;
		add_node(w, timer->of);
		break;
	default: break;
	}
	carry_out(w);
}

/* --- Time. --- */

/* Until it has nothing more to do at this moment. */
static void cycle(struct world *w)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_CYCLE};
	const struct sl_tree *tree = sl_cluster_tree(w->cluster);
	uint32_t rounds = 0;
	bool acts = true;

	event.cycle.which = SL_CYCLE_ALL;
	for (; acts && !w->failed && rounds < ROUNDS_MOST; rounds++) {
		acts = false;
		send(w, event);
		for (uint32_t i = w->action_first; i < w->action_count; i++)
			acts |= w->actions[i].type == SL_CLUSTER_ACTION_BIND ||
				w->actions[i].type == SL_CLUSTER_ACTION_STOP;
		carry_out(w);
	}
	w->idle = rounds > 1 ? 0 : w->idle + 1;
	w->figures->gave_up |= rounds == ROUNDS_MOST || w->idle == IDLE_MOST;
	for (uint32_t i = 0; i < w->figures->projects; i++)
		if (w->numbers[i] != SL_PROJECT_NONE)
			sl_figures_share(w->figures, i,
				(double)tree->all[w->numbers[i]]
					.own_share.of[SL_RES_GPU]);
	w->figures->of[w->figures->projects].fragments = w->gauge.fragments;
}

static sl_ns arrival_time(const struct world *w, uint32_t i)
{
	return work_of(w, w->times[i])->created - work_of(w, w->times[0])->created;
}

/* The next moment at which something happens; SL_NS_NEVER: nothing will. */
static sl_ns next_moment(struct world *w)
{
	const struct sl_timer *first;
	sl_ns at =
		w->arrived < w->order.count ? arrival_time(w, w->arrived) : SL_NS_NEVER;

	while ((first = sl_timers_first(&w->timers)) && out_of_date(w, first))
		sl_timers_drop_first(&w->timers);
	if (at == SL_NS_NEVER &&
		(w->over == w->order.count ||
			(!w->busy && !w->down && !w->timers.kinds[SL_TIMER_WAKE])))
		return SL_NS_NEVER;
	return first && first->at < at ? first->at : at;
}

static void moment(struct world *w)
{
	const struct sl_timer *first;

	while (!w->failed && (first = sl_timers_first(&w->timers)) &&
		first->at <= w->now) {
		struct sl_timer timer = *first;

		sl_timers_drop_first(&w->timers);
		if (!out_of_date(w, &timer))
			happen(w, &timer);
	}
	while (w->arrived < w->order.count && arrival_time(w, w->arrived) <= w->now)
		arrive(w, w->order.jobs[w->arrived++]);
	cycle(w);
	w->figures->gave_up |=
		w->stops > STOPS_LEAST + (uint64_t)STOPS_EACH * w->order.count;
}

static void live(struct world *w)
{
	const struct sl_world_ask *ask = w->ask;

	for (uint64_t i = 0; !w->failed && !w->figures->gave_up; i++) {
		sl_ns at = next_moment(w);

		if (at == SL_NS_NEVER)
			break;
		if (ask->until && at > ask->until) {
			sl_figures_go(w->figures, ask->until);
			break;
		}
		sl_figures_go(w->figures, at);
		w->now = at;
		moment(w);
		if (ask->progress && i % PROGRESS_EVERY == 0)
			ask->progress(
				ask->context, w->arrived + w->over, 2 * w->order.count);
	}
	sl_figures_finish(w->figures);
}

/* --- Beginning and end. --- */

static void put_projects(struct world *w)
{
	struct sl_work *work = w->trace->work;
	const struct sl_tree *tree = sl_cluster_tree(w->cluster);

	for (uint32_t i = 0; i < work->projects.count; i++) {
		const struct sl_project_row *row = &work->projects.rows[i], *parent;
		struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_PROJECT_PUT};

		parent = row->parent[0] ? sl_projects_find(&work->projects, row->parent)
					: NULL;
		event.project_put.project = row->id;
		event.project_put.parent = parent ? parent->id : 0;
		event.project_put.rules = sl_work_rules(work, i);
		send(w, event);
		w->numbers[i] = sl_tree_find(tree, row->id);
	}
}

static void begin_figures(struct world *w, struct sl_arena *arena)
{
	const struct sl_trace *trace = w->trace;
	uint32_t projects = (uint32_t)trace->work->projects.count;
	uint32_t *jobs = sl_arena_take(w->arena, projects * sizeof(*jobs));

	for (uint32_t i = 0; i < trace->job_count; i++) {
		jobs[trace->work_jobs[i].project]++;
		sl_typical_learn(&w->gauge.typical, &trace->jobs[i].need,
			trace->work_jobs[i].tasks);
	}
	(void)sl_typical_refresh(&w->gauge.typical);
	sl_figures_init(w->figures, arena, (double)trace->capacity_milli, projects, jobs);
}

/* False: out of memory. */
static bool make_order(struct world *w)
{
	const struct sl_trace *trace = w->trace;
	struct task *tasks;

	w->jobs = calloc(trace->job_count, sizeof(*w->jobs));
	tasks = w->tasks = calloc(trace->work->tasks, sizeof(*w->tasks));
	w->times = calloc(trace->job_count, sizeof(*w->times));
	if (!w->jobs || !w->tasks || !w->times || !sl_simulate_in_order(trace, &w->order))
		return false;
	memcpy(w->times, w->order.jobs, trace->job_count * sizeof(*w->times));
	if (w->ask->shuffled)
		sl_simulate_permute(w->order.jobs, w->order.count, &w->random);
	for (uint32_t i = 0; i < trace->job_count; i++) {
		w->jobs[i].tasks = tasks;
		tasks += trace->work_jobs[i].tasks;
	}
	return true;
}

static void begin(struct world *w, struct sl_arena *arena)
{
	const struct sl_trace *trace = w->trace;
	uint32_t projects = (uint32_t)trace->work->projects.count;
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_CONFIG};
	size_t bytes = trace->node_count * sizeof(*w->nodes);

	w->nodes = sl_arena_take(w->arena, bytes);
	memcpy(w->nodes, trace->nodes, bytes);
	w->repairs = sl_arena_take(w->arena, trace->node_count * sizeof(*w->repairs));
	w->numbers = sl_arena_take(w->arena, projects * sizeof(*w->numbers));
	sl_gauge_init(&w->gauge, w->arena, trace->node_count);
	begin_figures(w, arena);
	w->cluster = sl_cluster_new(w->arena, trace->node_count, projects);
	event.config.placement = w->ask->policy;
	send(w, event);
	put_projects(w);
	for (uint32_t i = 0; i < trace->node_count; i++)
		add_node(w, i);
	carry_out(w);
}

bool sl_world_run(const struct sl_trace *trace, const struct sl_world_ask *ask,
	struct sl_arena *arena, struct sl_figures *figures,
	struct sl_world_refusal *refusal)
{
	struct world w = {.trace = trace,
		.ask = ask,
		.figures = figures,
		.refusal = refusal,
		.random = sl_simulate_seeded(ask->seed),
		.arena = sl_arena_new()};

	refusal->line = 0;
	w.failed = !make_order(&w);
	if (!w.failed) {
		begin(&w, arena);
		live(&w);
	}
	free(w.jobs);
	free(w.tasks);
	free(w.times);
	free(w.order.jobs);
	free(w.actions);
	sl_timers_fini(&w.timers);
	sl_arena_free(w.arena);
	return !w.failed;
}
