/*
 * tasks - carries out the machine's actions: tasks start, are parked, terminated, moved; jobs work
 *
 * The machine must not be called while it emits actions. So its actions are queued and carried out
 * one after the other; the events that answer them may add to the queue.
 */
#include "cli/simulate/internal.h"

#include <stdlib.h>

/* --- The machine. --- */

static void keep_action(void *context, const struct sl_cluster_action *action)
{
	struct sl_world *w = context;

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

void sl_world_send(struct sl_world *w, struct sl_cluster_event event)
{
	sl_cluster_step(w->cluster, w->now, &event, keep_action, w);
}

void sl_world_timer(struct sl_world *w, struct sl_timer timer, sl_ns in)
{
	timer.at = in > SL_NS_NEVER - 1 - w->now ? SL_NS_NEVER - 1 : w->now + in;
	w->failed |= !sl_timers_add(&w->timers, timer);
}

/* --- Places. --- */

static double milli_at(struct sl_place place)
{
	return (double)place.milli * __builtin_popcount(place.gpu_mask);
}

static void take_place(struct sl_world *w, uint32_t number, struct sl_world_task *task,
	struct sl_place place)
{
	task->place = place;
	sl_fit_take(&w->nodes[place.node], &w->trace->jobs[number].need, place);
	sl_gauge_node(&w->gauge, place.node, &w->nodes[place.node]);
	sl_figures_use(w->figures, sl_world_work(w, number)->project, milli_at(place));
	w->busy++;
}

void sl_world_give_place(struct sl_world *w, uint32_t number, struct sl_world_task *task)
{
	struct sl_place place = task->place;

	sl_fit_give(&w->nodes[place.node], &w->trace->jobs[number].need, place, false);
	sl_gauge_node(&w->gauge, place.node, &w->nodes[place.node]);
	sl_figures_use(w->figures, sl_world_work(w, number)->project, -milli_at(place));
	w->busy--;
	task->state = SL_WORLD_IDLE;
	task->turn++;
}

/* --- Work. --- */

static sl_world_wide work_whole(const struct sl_world *w, uint32_t number)
{
	return (sl_world_wide)sl_world_work(w, number)->duration *
	       sl_world_work(w, number)->tasks;
}

/* Changes the number of the job's running tasks by one. */
void sl_world_change_runs(struct sl_world *w, uint32_t number, int change)
{
	const struct sl_work_job *work = sl_world_work(w, number);
	struct sl_world_job *job = &w->jobs[number];
	bool before = sl_world_works(w, number), after;
	sl_world_wide left;

	if (before)
		job->done += (sl_world_wide)job->runs * (w->now - job->since);
	job->since = w->now;
	job->runs = (uint32_t)((int64_t)job->runs + change);
	after = sl_world_works(w, number);
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
	left = (left + job->runs - 1) / job->runs;
	/* A single running task of a large gang may need thousands of years. */
	sl_world_timer(w,
		(struct sl_timer){.kind = SL_TIMER_END, .of = number, .turn = job->turn},
		left < SL_NS_NEVER ? (sl_ns)left : SL_NS_NEVER);
}

/* A task at this place ended early or was lost. The job's work is lost if too few tasks are
 * left. */
void sl_world_lose_work(struct sl_world *w, uint32_t number, struct sl_place place)
{
	struct sl_world_job *job = &w->jobs[number];

	if (sl_world_works(w, number) || !job->done)
		return;
	sl_figures_redo(w->figures, sl_world_work(w, number)->project,
		(double)job->done / 1e9 * milli_at(place));
	job->done = 0;
}

/* --- Actions. --- */

void sl_world_task_runs(struct sl_world *w, uint32_t number, uint32_t t)
{
	struct sl_world_task *task = &w->jobs[number].tasks[t];
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_TASK_RUNS};

	task->state = SL_WORLD_RUNS;
	task->parked = false;
	task->turn++;
	sl_world_change_runs(w, number, 1);
	event.task_runs.job = number + 1;
	event.task_runs.task = t;
	event.task_runs.node = SL_NODE_ID(task->place.node, w->repairs[task->place.node]);
	event.task_runs.gpu_mask = task->place.gpu_mask;
	sl_world_send(w, event);
}

static void on_bind(struct sl_world *w, const struct sl_cluster_action *action)
{
	uint32_t number = (uint32_t)action->bind.job - 1, t = action->bind.task;
	struct sl_world_task *task = &w->jobs[number].tasks[t];
	struct sl_place place = {.node = SL_NODE_OF(action->bind.node),
		.gpu_mask = action->bind.gpu_mask,
		.milli = action->bind.milli};

	take_place(w, number, task, place);
	task->state = SL_WORLD_STARTING;
	task->turn++;
	if (task->parked && sl_world_work(w, number)->swap_cost)
		sl_world_timer(w,
			(struct sl_timer){.kind = SL_TIMER_STARTED,
				.of = number,
				.task = t,
				.turn = task->turn},
			sl_world_work(w, number)->swap_cost);
	else
		sl_world_task_runs(w, number, t);
}

void sl_world_task_stopped(struct sl_world *w, uint32_t number, uint32_t t)
{
	struct sl_world_task *task = &w->jobs[number].tasks[t];
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_TASK_ENDED};

	task->parked = task->parks;
	sl_world_give_place(w, number, task);
	event.task_ended.job = number + 1;
	event.task_ended.task = t;
	event.task_ended.again = true;
	sl_world_send(w, event);
}

/* Drops the job's parked work in host memory; once for all of its tasks. */
static void give_up(struct sl_world *w, uint32_t number, uint32_t t)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_UNPARK};
	struct sl_world_task *tasks = w->jobs[number].tasks;

	sl_figures_count(
		w->figures, sl_world_work(w, number)->project, SL_FIGURE_GIVEN_UP);
	if (!tasks[t].parked)
		return;
	for (uint32_t i = 0; i < sl_world_work(w, number)->tasks; i++)
		if (tasks[i].state == SL_WORLD_IDLE)
			tasks[i].parked = false;
	sl_world_lose_work(w, number, tasks[t].place);
	event.job_unpark.job = number + 1;
	sl_world_send(w, event);
}

/* Its tasks are parked on the way to other GPUs. */
static bool loses_nothing(const struct sl_world *w, uint32_t number)
{
	struct sl_cluster_job_view view = sl_cluster_job(w->cluster, number + 1);

	return view.flags & SL_JOB_PARKS && view.flags & SL_JOB_MOVES;
}

static void on_stop(struct sl_world *w, const struct sl_cluster_action *action)
{
	uint32_t number = (uint32_t)action->stop.job - 1, t = action->stop.task;
	struct sl_world_task *task = &w->jobs[number].tasks[t];
	uint32_t how = action->stop.how;

	w->stops++;
	if (how == SL_STOP_GIVE_UP) {
		give_up(w, number, t);
		return;
	}
	sl_figures_count(w->figures, sl_world_work(w, number)->project,
		how == SL_STOP_PARK   ? SL_FIGURE_PARKED
		: how == SL_STOP_MOVE ? SL_FIGURE_MOVED
				      : SL_FIGURE_TERMINATED);
	if (task->state == SL_WORLD_RUNS)
		sl_world_change_runs(w, number, -1);
	task->state = SL_WORLD_STOPPING;
	task->parks =
		how == SL_STOP_PARK || (how == SL_STOP_MOVE && loses_nothing(w, number));
	task->turn++;
	if (!task->parks)
		sl_world_lose_work(w, number, task->place);
	if (task->parks && sl_world_work(w, number)->swap_cost)
		sl_world_timer(w,
			(struct sl_timer){.kind = SL_TIMER_STOPPED,
				.of = number,
				.task = t,
				.turn = task->turn},
			sl_world_work(w, number)->swap_cost);
	else
		sl_world_task_stopped(w, number, t);
}

/* The job is over: removes all that waits or works for it. */
void sl_world_close_job(struct sl_world *w, uint32_t number)
{
	struct sl_world_job *job = &w->jobs[number];

	for (uint32_t t = 0; t < sl_world_work(w, number)->tasks; t++)
		if (job->tasks[t].state != SL_WORLD_IDLE)
			sl_world_give_place(w, number, &job->tasks[t]);
	if (!sl_world_works(w, number))
		sl_figures_waiting(w->figures, sl_world_work(w, number)->project, -1);
	job->phase = SL_WORLD_OVER;
	w->over++;
}

static const char *project_name(void *context, uint64_t id)
{
	const struct sl_world *w = context;

	return id && id <= w->trace->work->projects.count
		       ? w->trace->work->projects.rows[id - 1].name
		       : "?";
}

static void on_refuse(struct sl_world *w, const struct sl_cluster_action *action)
{
	uint32_t number = (uint32_t)action->refuse_job.job - 1;
	const struct sl_work_job *work = sl_world_work(w, number);
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
	sl_world_close_job(w, number);
}

void sl_world_carry_out(struct sl_world *w)
{
	while (w->action_first < w->action_count) {
		struct sl_cluster_action action = w->actions[w->action_first++];

		switch (action.type) {
		case SL_CLUSTER_ACTION_BIND: on_bind(w, &action); break;
		case SL_CLUSTER_ACTION_STOP: on_stop(w, &action); break;
		case SL_CLUSTER_ACTION_REFUSE_JOB: on_refuse(w, &action); break;
		case SL_CLUSTER_ACTION_WAKE_AT:
			sl_world_timer(w, (struct sl_timer){.kind = SL_TIMER_WAKE},
				action.wake_at.at - w->now);
			break;
		default: break;
		}
	}
	w->action_first = w->action_count = 0;
}
