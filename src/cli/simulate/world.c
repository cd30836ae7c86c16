/*
 * world - see the header
 *
 * The world keeps its own accounts of tasks and places, from the machine's actions alone (tasks.c).
 * The figures are measured on these.
 */
#include "cli/simulate/internal.h"

#include "cli/simulate/mix.h"
#include "cli/simulate/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Moments between two reports of progress. */
#define PROGRESS_EVERY 64
/* Rounds in one moment, and stops per job, after which the run counts as stuck. */
#define ROUNDS_MOST 10000
#define STOPS_EACH  1000
#define STOPS_LEAST 100000
#define IDLE_MOST   1000000

/* --- Events. --- */

static void arrive(struct sl_world *w, uint32_t number)
{
	const struct sl_work_job *work = sl_world_work(w, number);
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_ADD};
	struct sl_world_job *job = &w->jobs[number];

	job->phase = SL_WORLD_IN;
	job->submitted = w->now;
	sl_figures_count(w->figures, work->project, SL_FIGURE_JOBS);
	sl_figures_waiting(w->figures, work->project, 1);
	event.job_add.job = number + 1;
	event.job_add.project = work->project + 1;
	event.job_add.priority = work->priority;
	event.job_add.flags = work->flags;
	if (w->ask->moves && !(work->flags & SL_JOB_PREEMPTIBLE))
		event.job_add.flags |= SL_JOB_PARKS;
	if (w->ask->moves)
		event.job_add.flags |= SL_JOB_MOVES;
	if (w->ask->resume_wait && work->flags & SL_JOB_PARKS) {
		event.job_add.flags |= SL_JOB_GIVES_UP;
		event.job_add.resume_wait = w->ask->resume_wait;
	}
	event.job_add.tasks = work->tasks;
	event.job_add.least = work->least;
	event.job_add.need = w->trace->jobs[number].need;
	event.job_add.park_mib = work->park_mib;
	event.job_add.swap_cost = work->swap_cost;
	sl_world_send(w, event);
	sl_world_carry_out(w);
}

static void end_job(struct sl_world *w, uint32_t number)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_REMOVE};

	sl_figures_count(w->figures, sl_world_work(w, number)->project, SL_FIGURE_ENDED);
	sl_world_close_job(w, number);
	event.job_remove.job = number + 1;
	sl_world_send(w, event);
}

static void lose_task(struct sl_world *w, uint32_t number, struct sl_world_task *task)
{
	w->stops++;
	sl_figures_count(w->figures, sl_world_work(w, number)->project, SL_FIGURE_LOST);
	if (task->state == SL_WORLD_RUNS)
		sl_world_change_runs(w, number, -1);
	if (task->state != SL_WORLD_IDLE)
		sl_world_give_place(w, number, task);
	task->parked = false;
	task->turn++;
	sl_world_lose_work(w, number, task->place);
}

static void fail_in_time(struct sl_world *w, uint32_t node)
{
	/* In (0, 1], of 53 bits. */
	double part = ((double)(sl_draw(&w->random) >> 11) + 1) * 0x1p-53;
	double ns = -log(part) * (double)w->ask->failures;

	sl_world_timer(w, (struct sl_timer){.kind = SL_TIMER_FAILS, .of = node},
		ns < 1e18 ? (sl_ns)ns : (sl_ns)1e18);
}

static void node_fails(struct sl_world *w, uint32_t node)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_NODE_LOST};

	for (uint32_t j = 0; j < w->trace->job_count; j++) {
		struct sl_world_job *job = &w->jobs[j];

		for (uint32_t t = 0;
			job->phase == SL_WORLD_IN && t < sl_world_work(w, j)->tasks;
			t++) {
			struct sl_world_task *task = &job->tasks[t];

			if (task->place.node == node &&
				(task->state != SL_WORLD_IDLE || task->parked))
				lose_task(w, j, task);
		}
	}
	sl_gauge_node(&w->gauge, node, NULL);
	w->down++;
	event.node_lost.node = SL_NODE_ID(node, w->repairs[node]);
	sl_world_send(w, event);
	sl_world_timer(w, (struct sl_timer){.kind = SL_TIMER_REPAIRED, .of = node},
		w->ask->repair);
}

static void add_node(struct sl_world *w, uint32_t number)
{
	const struct sl_fit_node *node = &w->nodes[number];
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_NODE_PUT};

	event.node_put.node = SL_NODE_ID(number, w->repairs[number]);
	event.node_put.cpu_milli = node->cpu_milli;
	event.node_put.memory_mib = node->memory_mib;
	event.node_put.gpus = node->gpus;
	event.node_put.gpu_mib = node->gpu_mib;
	event.node_put.model = node->model;
	event.node_put.pool = node->pool;
	event.node_put.swaps = w->trace->work_nodes[number].swaps;
	event.node_put.pool_mib = w->trace->work_nodes[number].host_mib;
	sl_world_send(w, event);
	sl_gauge_node(&w->gauge, number, node);
	if (w->ask->failures)
		fail_in_time(w, number);
}

static bool out_of_date(const struct sl_world *w, const struct sl_timer *timer)
{
	const struct sl_world_job *job;

	if (timer->kind > SL_TIMER_STOPPED)
		return false;
	job = &w->jobs[timer->of];
	if (job->phase != SL_WORLD_IN)
		return true;
	if (timer->kind == SL_TIMER_END)
		return job->turn != timer->turn;
	return job->tasks[timer->task].turn != timer->turn;
}

static void happen(struct sl_world *w, const struct sl_timer *timer)
{
	switch (timer->kind) {
	case SL_TIMER_END: end_job(w, timer->of); break;
	case SL_TIMER_STARTED: sl_world_task_runs(w, timer->of, timer->task); break;
	case SL_TIMER_STOPPED: sl_world_task_stopped(w, timer->of, timer->task); break;
	case SL_TIMER_FAILS: node_fails(w, timer->of); break;
	case SL_TIMER_REPAIRED:
		w->down--;
		w->repairs[timer->of]++;
		add_node(w, timer->of);
		break;
	default: break;
	}
	sl_world_carry_out(w);
}

/* --- Time. --- */

/* Until the machine has nothing more to do at this moment. */
static void cycle(struct sl_world *w)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_CYCLE};
	const struct sl_tree *tree = sl_cluster_tree(w->cluster);
	uint32_t rounds = 0;
	bool acts = true;

	event.cycle.which = SL_CYCLE_ALL;
	for (; acts && !w->failed && rounds < ROUNDS_MOST; rounds++) {
		acts = false;
		sl_world_send(w, event);
		for (uint32_t i = w->action_first; i < w->action_count; i++)
			acts |= w->actions[i].type == SL_CLUSTER_ACTION_BIND ||
				w->actions[i].type == SL_CLUSTER_ACTION_STOP;
		sl_world_carry_out(w);
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

static sl_ns arrival_time(const struct sl_world *w, uint32_t i)
{
	return sl_world_work(w, w->times[i])->created -
	       sl_world_work(w, w->times[0])->created;
}

/* The time of the next event; SL_NS_NEVER: there is none. */
static sl_ns next_moment(struct sl_world *w)
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

static void moment(struct sl_world *w)
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
	if (!w->ask->cycle || w->now >= w->next_cycle) {
		w->next_cycle = w->now + w->ask->cycle;
		w->owes_cycle = false;
		cycle(w);
	} else if (!w->owes_cycle) {
		w->owes_cycle = true;
		sl_world_timer(w, (struct sl_timer){.kind = SL_TIMER_WAKE},
			w->next_cycle - w->now);
	}
	w->figures->gave_up |=
		w->stops > STOPS_LEAST + (uint64_t)STOPS_EACH * w->order.count;
}

/* The line of the first job that still works; if none does, of the first that waits. */
static uint32_t late_line(const struct sl_world *w)
{
	uint32_t waits = 0;

	for (uint32_t i = 0; i < w->trace->job_count; i++) {
		if (w->jobs[i].phase != SL_WORLD_IN)
			continue;
		if (sl_world_works(w, i))
			return sl_world_work(w, i)->line;
		waits = waits ? waits : sl_world_work(w, i)->line;
	}
	return waits;
}

/* The time limit is reached: the one asked for, or the longest of any run. */
static void time_is_up(struct sl_world *w, sl_ns at)
{
	sl_figures_go(w->figures, at);
	if (at != SL_WORLD_TIME_MOST)
		return;
	w->figures->gave_up = true;
	w->figures->late_line = late_line(w);
}

static void live(struct sl_world *w)
{
	const struct sl_world_ask *ask = w->ask;
	sl_ns until = ask->until && ask->until < SL_WORLD_TIME_MOST ? ask->until
								    : SL_WORLD_TIME_MOST;

	for (uint64_t i = 0; !w->failed && !w->figures->gave_up; i++) {
		sl_ns at = next_moment(w);

		if (at == SL_NS_NEVER)
			break;
		if (at > until) {
			time_is_up(w, until);
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

static void put_projects(struct sl_world *w)
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
		sl_world_send(w, event);
		w->numbers[i] = sl_tree_find(tree, row->id);
	}
}

static void begin_figures(struct sl_world *w, struct sl_arena *arena)
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
static bool make_order(struct sl_world *w)
{
	const struct sl_trace *trace = w->trace;
	struct sl_world_task *tasks;

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

static void begin(struct sl_world *w, struct sl_arena *arena)
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
	event.config.move_most = w->ask->moves;
	sl_world_send(w, event);
	put_projects(w);
	for (uint32_t i = 0; i < trace->node_count; i++)
		add_node(w, i);
	sl_world_carry_out(w);
}

bool sl_world_run(const struct sl_trace *trace, const struct sl_world_ask *ask,
	struct sl_arena *arena, struct sl_figures *figures,
	struct sl_world_refusal *refusal)
{
	struct sl_world w = {.trace = trace,
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
