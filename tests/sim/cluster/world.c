/*
 * world - see the header
 *
 * Time goes in random strides of up to a few seconds. The machine's actions are answered later: a
 * BIND runs or is refused, a STOP ends or fails. Silent nodes answer no STOP. If a task there is
 * LATE and was to be parked, the world withdraws the order. In between, jobs come and go, nodes
 * come, go and close, projects change.
 */
#include "world.h"

#include <stdio.h>
#include <string.h>

static uint64_t below(struct cw *w, uint64_t bound)
{
	return sl_rng_below(&w->rng, bound);
}

static bool one_in(struct cw *w, uint64_t n)
{
	return sl_rng_one_in(&w->rng, n);
}

struct cw_job *cw_find_job(struct cw *w, uint64_t id)
{
	for (uint32_t i = 0; i < CW_JOBS; i++) {
		if (w->job[i].used && w->job[i].id == id)
			return &w->job[i];
	}
	return NULL;
}

struct cw_task *cw_find_task(struct cw_job *job, uint32_t number, uint32_t *part)
{
	for (uint32_t p = 0; p < job->parts; p++) {
		if (number < job->tasks[p]) {
			*part = p;
			return &job->task[p][number];
		}
		number -= job->tasks[p];
	}
	return NULL;
}

uint32_t cw_find_node(const struct cw *w, uint64_t id)
{
	for (uint32_t i = 0; i < CW_NODES; i++) {
		if (w->node[i].used && w->node[i].id == id)
			return i;
	}
	return UINT32_MAX;
}

static uint32_t number_of(const struct cw_job *job, uint32_t part, uint32_t task)
{
	return (part ? job->tasks[0] : 0) + task;
}

void cw_refresh(struct cw *w)
{
	for (uint32_t j = 0; j < CW_JOBS; j++) {
		struct cw_job *job = &w->job[j];

		for (uint32_t p = 0; job->used && p < job->parts; p++) {
			for (uint32_t i = 0; i < job->tasks[p]; i++) {
				struct cw_task *task = &job->task[p][i];
				struct sl_cluster_task_view view = sl_cluster_task(
					w->cluster, job->id, number_of(job, p, i));
				bool piped = view.state == SL_TASK_PIPELINED;

				if (view.known && view.parked != task->parked)
					cw_break(w,
						"job %lu task %u is %sparked, the "
						"machine "
						"says otherwise",
						(unsigned long)job->id,
						number_of(job, p, i),
						task->parked ? "" : "not ");
				task->promised = piped || view.moves;
				task->next = view.moves ? view.next : view.place;
				if (task->promised)
					task->next.node = cw_find_node(w,
						view.moves ? view.next_node : view.node);
				if (!view.known || (piped ? task->state != SL_TASK_PENDING
							  : view.state != task->state))
					cw_break(w,
						"job %lu task %u is in state %d, the "
						"machine says %d",
						(unsigned long)job->id,
						number_of(job, p, i), task->state,
						view.state);
			}
		}
	}
}

static void on_pipeline(struct cw *w, const struct sl_cluster_action *action)
{
	struct cw_job *job = cw_find_job(w, action->pipeline.job);
	uint32_t part;
	struct cw_task *task =
		job ? cw_find_task(job, action->pipeline.task, &part) : NULL;

	if (!task ||
		(task->state != SL_TASK_PENDING && task->state != SL_TASK_RELEASING)) {
		cw_break(w, "a promise to job %lu task %u, which cannot have one",
			(unsigned long)action->pipeline.job, action->pipeline.task);
		return;
	}
	task->promised = job->started_ever = true;
	task->next.node = cw_find_node(w, action->pipeline.node);
	task->next.gpu_mask = action->pipeline.gpu_mask;
	if (task->next.node == UINT32_MAX) {
		cw_break(w, "a promise on an unknown node");
		return;
	}
	if ((task->on_move || task->parked) && task->next.node != task->place.node)
		cw_break(w, "job %lu moves away from its memory", (unsigned long)job->id);
	task->next.milli =
		(uint16_t)sl_fit_milli(&w->node[task->next.node].fit, &job->need[part]);
}

static void on_action(void *context, const struct sl_cluster_action *action)
{
	struct cw *w = context;

	w->actions++;
	if (w->trace)
		printf("  %s job %lu task %u\n", sl_cluster_action_name(action->type),
			(unsigned long)action->bind.job, action->bind.task);
	switch (action->type) {
	case SL_CLUSTER_ACTION_BIND:
		w->cycle_actions++;
		w->binds++;
		cw_judge_bind(w, action);
		break;
	case SL_CLUSTER_ACTION_STOP:
		w->cycle_actions++;
		if (action->stop.how == SL_STOP_GIVE_UP) {
			w->given_up++;
			cw_judge_give_up(w, action);
			break;
		}
		w->stops++;
		w->cycle_stops++;
		w->asked_stops += action->stop.other == w->asked;
		cw_judge_stop(w, action);
		break;
	case SL_CLUSTER_ACTION_REFUSE_MOVE: cw_judge_refusal(w, action); break;
	case SL_CLUSTER_ACTION_LATE:
		w->cycle_actions++;
		w->late++;
		cw_judge_late(w, action);
		break;
	case SL_CLUSTER_ACTION_PIPELINE:
		w->cycle_actions++;
		on_pipeline(w, action);
		break;
	case SL_CLUSTER_ACTION_REFUSE_JOB: {
		struct cw_job *job = cw_find_job(w, action->refuse_job.job);

		if (job)
			job->used = false;
		break;
	}
	default: break;
	}
}

static void send(struct cw *w, struct sl_cluster_event event)
{
	struct sl_error err = {{0}};

	w->events++;
	if (w->broken[0])
		return;
	if (w->trace)
		printf("%lu.%03lu %s %lu %u\n", (unsigned long)(w->now / SL_S),
			(unsigned long)(w->now / SL_MS % 1000),
			sl_cluster_event_name(event.type),
			(unsigned long)event.task_runs.job, event.task_runs.task);
	sl_cluster_step(w->cluster, w->now, &event, on_action, w);
	if (sl_cluster_check(w->cluster, &err))
		cw_break(w, "books after %s: %s", sl_cluster_event_name(event.type),
			err.text);
	cw_refresh(w);
	cw_watch(w);
}

/* --- Projects and nodes. --- */

static int64_t some_quota(struct cw *w)
{
	return one_in(w, 8) ? SL_QUOTA_ALL : (int64_t)below(w, 7) * 1000;
}

static void put_project(struct cw *w, uint32_t i)
{
	struct cw_project *project = &w->project[i];
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_PROJECT_PUT};
	struct sl_project_rules *rules = &event.project_put.rules;

	if (!project->used) {
		project->id = i + 1;
		project->parent = UINT32_MAX;
		if (i > 2 && !one_in(w, 3))
			project->parent = (uint32_t)below(w, 3);
		else if (i > 6)
			project->parent = 3 + (uint32_t)below(w, 3);
		if (project->parent != UINT32_MAX && !w->project[project->parent].used)
			project->parent = UINT32_MAX;
	}
	for (int r = 0; r < SL_RESOURCES; r++)
		rules->quota.of[r] = rules->limit.of[r] = SL_QUOTA_ALL;
	rules->quota.of[SL_RES_GPU] = some_quota(w);
	if (one_in(w, 3) && rules->quota.of[SL_RES_GPU] >= 0)
		rules->limit.of[SL_RES_GPU] =
			rules->quota.of[SL_RES_GPU] + (int64_t)below(w, 4) * 1000;
	/* Of cores and memory most have any amount. */
	for (int r = SL_RES_CPU; r < SL_RESOURCES && one_in(w, 4); r++) {
		rules->quota.of[r] = (int64_t)below(w, 12) * 1024;
		if (one_in(w, 2))
			rules->limit.of[r] =
				rules->quota.of[r] + (int64_t)below(w, 8) * 1024;
	}
	for (int r = 0; r < SL_RESOURCES; r++)
		rules->weight[r] = (uint32_t)below(w, 4);
	rules->priority = (int32_t)below(w, 3);
	rules->preempt_min_runtime = one_in(w, 3) ? below(w, 60) * SL_S : 0;
	rules->reclaim_min_runtime = one_in(w, 3) ? below(w, 60) * SL_S : 0;
	rules->pools = one_in(w, 6) ? 1 + below(w, 3) : 0;
	rules->no_swap = one_in(w, 8);
	event.project_put.project = project->id;
	event.project_put.parent =
		project->parent == UINT32_MAX ? 0 : w->project[project->parent].id;
	project->used = true;
	project->rules = *rules;
	send(w, event);
}

static void put_node(struct cw *w, uint32_t i)
{
	const struct cw_node *node = &w->node[i];
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_NODE_PUT};

	event.node_put.node = node->id;
	event.node_put.cpu_milli = node->fit.cpu_milli;
	event.node_put.memory_mib = node->fit.memory_mib;
	event.node_put.gpus = node->fit.gpus;
	event.node_put.shut = node->shut;
	event.node_put.gpu_mib = node->fit.gpu_mib;
	event.node_put.model = node->fit.model;
	event.node_put.pool = node->pool;
	event.node_put.first = node->first;
	event.node_put.swaps = node->swaps;
	event.node_put.pool_mib = node->pool_mib;
	event.node_put.closed = node->closed;
	send(w, event);
}

static void add_node(struct cw *w, uint32_t i)
{
	struct cw_node *node = &w->node[i];
	uint32_t gpus = one_in(w, 6) ? 0 : 1u << below(w, 4);

	*node = (struct cw_node){.used = true, .id = ++w->next_id};
	node->pool_mib = below(w, 5) * 1000;
	node->pool = (uint8_t)below(w, 2);
	node->first = (uint8_t)below(w, 25);
	node->swaps = one_in(w, 3);
	sl_fit_node_init(&node->fit, (uint32_t)sl_rng_between(&w->rng, 4, 32) * 1000,
		(uint32_t)sl_rng_between(&w->rng, 4, 64) * 1024, (uint16_t)gpus,
		one_in(w, 3) ? 16384 : 40960, (uint8_t)below(w, 3), node->pool);
	put_node(w, i);
}

static void lose_node(struct cw *w, uint32_t i)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_NODE_LOST};

	event.node_lost.node = w->node[i].id;
	w->node[i].used = false;
	for (uint32_t j = 0; j < CW_JOBS; j++) {
		struct cw_job *job = &w->job[j];

		for (uint32_t p = 0; job->used && p < job->parts; p++) {
			for (uint32_t k = 0; k < job->tasks[p]; k++) {
				struct cw_task *task = &job->task[p][k];

				if (task->state == SL_TASK_ENDED ||
					task->place.node != i ||
					(task->state == SL_TASK_PENDING && !task->parked))
					continue;
				task->state = SL_TASK_PENDING;
				task->parked = task->giving_up = task->on_move = false;
			}
		}
		job->refused_until[i] = 0;
	}
	send(w, event);
}

/* --- Jobs. --- */

static struct sl_need some_need(struct cw *w)
{
	struct sl_need need = {.cpu_milli = (uint32_t)below(w, 4) * 1000 + 100,
		.memory_mib = (uint32_t)below(w, 4) * 1024};

	switch (below(w, 8)) {
	case 0: break;
	case 1:
		need.gpus = 1;
		need.gpu_milli = (uint16_t)sl_rng_between(&w->rng, 1, 9) * 100;
		break;
	case 2:
		need.gpus = (uint16_t)sl_rng_between(&w->rng, 1, 2);
		need.gpu_mib = (uint32_t)sl_rng_between(&w->rng, 1, 10) * 2048;
		break;
	case 3:
		need.gpus = 2;
		need.gpu_milli = 500;
		break;
	default:
		need.gpus = one_in(w, 2) ? 1 : (uint16_t)(1u << below(w, 4));
		need.gpu_milli = SL_FIT_WHOLE;
	}
	if (need.gpus && one_in(w, 4))
		sl_need_add_compute(&need, (uint32_t)below(w, 11) * 100);
	need.models = one_in(w, 6) ? 1 + below(w, 7) : 0;
	need.pools = one_in(w, 8) ? 1 + below(w, 3) : 0;
	need.only = one_in(w, 6) ? 1 + (uint32_t)below(w, UINT32_MAX) : 0;
	return need;
}

/* A random job with up to so many parts; the event that adds the first of them. */
static struct sl_cluster_event draw_job(struct cw *w, uint32_t j, uint32_t parts)
{
	struct cw_job *job = &w->job[j];
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_ADD};

	*job = (struct cw_job){.used = true, .id = ++w->next_id};
	job->project = (uint32_t)below(w, CW_PROJECTS);
	job->priority = (int32_t)below(w, 4) * 25 + 50;
	job->flags = job->priority < 100 ? SL_JOB_PREEMPTIBLE : 0;
	if (one_in(w, 2))
		job->flags |= SL_JOB_PARKS;
	if (one_in(w, 2))
		job->flags |= SL_JOB_GIVES_UP;
	if (job->flags & SL_JOB_PARKS && one_in(w, 3))
		job->flags |= SL_JOB_KEEPS_HOST;
	if (w->has_moves && !one_in(w, 3))
		job->flags |= SL_JOB_PARKS | SL_JOB_MOVES | SL_JOB_BURSTS;
	job->resume_wait = below(w, 4) * 40 * SL_S;
	job->park_mib = below(w, 4) * 500;
	job->swap_cost = below(w, 3) * SL_S;
	job->preempt_delay = one_in(w, 4) ? below(w, 90) * SL_S : 0;
	job->stale_grace = one_in(w, 4) ? sl_rng_between(&w->rng, 1, 60) * SL_S : 0;
	job->waits_since = w->now;
	job->parts = parts > 1 && one_in(w, 5) ? 2 : 1;
	for (uint32_t p = 0; p < job->parts; p++) {
		job->need[p] = some_need(w);
		job->tasks[p] = one_in(w, 2) ? 1 : 1 + (uint32_t)below(w, CW_TASKS);
		job->least[p] = one_in(w, 2) ? job->tasks[p]
					     : 1 + (uint32_t)below(w, job->tasks[p]);
	}
	event.job_add.job = job->id;
	event.job_add.project = job->project + 1;
	event.job_add.priority = job->priority;
	event.job_add.flags = job->flags;
	event.job_add.tasks = job->tasks[0];
	event.job_add.least = job->least[0];
	event.job_add.need = job->need[0];
	event.job_add.park_mib = job->park_mib;
	event.job_add.swap_cost = job->swap_cost;
	event.job_add.resume_wait = job->resume_wait;
	event.job_add.preempt_delay = job->preempt_delay;
	event.job_add.stale_grace = job->stale_grace;
	return event;
}

static void add_job(struct cw *w, uint32_t j)
{
	struct cw_job *job = &w->job[j];
	struct sl_cluster_event event = draw_job(w, j, CW_PARTS);

	if (job->parts == 2) {
		/* One event: the machine sees it whole only after both, and so does the world. */
		uint32_t parts = job->parts;

		job->parts = 1;
		send(w, event);
		if (!job->used)
			return;
		job->parts = parts;
		event = (struct sl_cluster_event){.type = SL_CLUSTER_EVENT_TASKS_ADD};
		event.tasks_add.job = job->id;
		event.tasks_add.tasks = job->tasks[1];
		event.tasks_add.least = job->least[1];
		event.tasks_add.need = job->need[1];
	}
	send(w, event);
}

static void remove_job(struct cw *w, uint32_t j)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_REMOVE};

	event.job_remove.job = w->job[j].id;
	w->job[j].used = false;
	send(w, event);
}

/* --- Tasks. --- */

static bool is_done(const struct cw_job *job)
{
	for (uint32_t p = 0; p < job->parts; p++) {
		for (uint32_t i = 0; i < job->tasks[p]; i++) {
			if (job->task[p][i].state != SL_TASK_ENDED)
				return false;
		}
	}
	return true;
}

static void end_task(struct cw *w, struct cw_job *job, uint32_t p, uint32_t i, bool again)
{
	struct cw_task *task = &job->task[p][i];
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_TASK_ENDED};
	bool failed = !w->quiet && one_in(w, again ? 3 : 10);

	/* Tasks that fail within the pause of the first have failed with it. */
	if (again && failed && task->state == SL_TASK_RUNNING &&
		w->now >= job->failed_at + SL_S)
		job->failed_at = w->now;
	task->parked =
		again && task->state == SL_TASK_RELEASING && cw_parks(job, task->how);
	task->on_move &= task->parked;
	task->parked_at = w->now;
	task->state = again ? SL_TASK_PENDING : SL_TASK_ENDED;
	job->broken |= failed && !again;
	task->failed = failed && !again;
	event.task_ended.job = job->id;
	event.task_ended.task = number_of(job, p, i);
	event.task_ended.again = again;
	event.task_ended.failed = failed;
	send(w, event);
}

static void refuse(struct cw *w, struct cw_job *job, uint32_t p, uint32_t i)
{
	struct cw_task *task = &job->task[p][i];
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_BIND_REFUSED};

	job->refused_until[task->place.node] = w->now + 30 * SL_S;
	task->state = SL_TASK_PENDING;
	event.bind_refused.job = job->id;
	event.bind_refused.task = number_of(job, p, i);
	/* The parked memory is still there. */
	task->parked = task->comes_back;
	if (task->parked)
		task->place = task->home;
	task->on_move = false;
	send(w, event);
}

/* The cause of the refusal may be gone: it is tried at once. */
static void try_again(struct cw *w, struct cw_job *job)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_BIND_AGAIN};
	bool refused = false;

	for (uint32_t n = 0; n < CW_NODES; n++)
		refused |= job->refused_until[n] > w->now;
	if (!refused || w->quiet || !one_in(w, 10))
		return;
	memset(job->refused_until, 0, sizeof(job->refused_until));
	event.bind_again.job = job->id;
	send(w, event);
}

/* Told to drop its host memory: it does, or cannot. */
static void drop_parked(struct cw *w, struct cw_job *job, uint32_t p, uint32_t i)
{
	struct cw_task *task = &job->task[p][i];
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_TASK_ENDED};

	task->giving_up = false;
	task->parked_at = w->now;
	event.task_ended.job = job->id;
	event.task_ended.task = number_of(job, p, i);
	event.task_ended.again = 1;
	if (!w->quiet && one_in(w, 8))
		event.type = SL_CLUSTER_EVENT_STOP_FAILED;
	else
		task->parked = task->on_move = false;
	send(w, event);
}

/* Its order is taken back, or cannot be carried out: it runs on. */
static void stays(
	struct cw *w, struct cw_job *job, uint32_t p, uint32_t i, sl_ns spared_for)
{
	struct cw_task *task = &job->task[p][i];
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_STOP_FAILED};

	task->state = task->was;
	task->on_move = false;
	task->spared_until = w->now + (spared_for ? spared_for : 60 * SL_S);
	task->due = w->now + 60 * SL_S;
	event.stop_failed.job = job->id;
	event.stop_failed.task = number_of(job, p, i);
	event.stop_failed.spared_for = spared_for;
	send(w, event);
}

static void leave(struct cw *w, struct cw_job *job, uint32_t p, uint32_t i)
{
	struct cw_task *task = &job->task[p][i];
	bool parks = cw_parks(job, task->how);

	if (w->node[task->place.node].mute && !(task->late && parks))
		return;
	if (w->node[task->place.node].mute) {
		w->taken_back++;
		/* Long enough to come to rest. */
		stays(w, job, p, i, (w->quiet ? 200000 : 300) * SL_S);
	} else if (!w->quiet && one_in(w, 15)) {
		stays(w, job, p, i, 0);
	} else {
		end_task(w, job, p, i, w->quiet || !one_in(w, 12));
	}
}

/* Its end is asked for, and the machine hears of that late. */
static void stop_task(struct cw *w, struct cw_job *job, uint32_t p, uint32_t i)
{
	struct cw_task *task = &job->task[p][i];
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_TASK_STOPS};
	bool runs = task->state == SL_TASK_RUNNING || task->state == SL_TASK_BINDING;

	event.task_stops.job = job->id;
	event.task_stops.task = number_of(job, p, i);
	event.task_stops.ago = below(w, 60) * SL_S;
	if (task->parked) {
		task->giving_up = true;
	} else if (runs ||
		   (task->state == SL_TASK_RELEASING && cw_parks(job, task->how))) {
		task->parked_first = !runs;
		if (runs)
			task->was = task->state;
		task->state = SL_TASK_RELEASING;
		task->how = SL_STOP_TERMINATE;
		task->late = task->on_move = false;
		task->told_at = w->now - event.task_stops.ago;
	} else {
		return;
	}
	task->due = w->now + below(w, 20) * SL_S;
	send(w, event);
}

static void stop_one(struct cw *w, struct cw_job *job)
{
	uint32_t p = (uint32_t)below(w, job->parts);

	stop_task(w, job, p, (uint32_t)below(w, job->tasks[p]));
}

/* --- Nodes that change. --- */

/* What runs, is parked or is being parked on these GPUs is stopped. */
static void stop_there(struct cw *w, uint32_t node, uint32_t gpus)
{
	for (uint32_t j = 0; j < CW_JOBS; j++) {
		struct cw_job *job = &w->job[j];

		for (uint32_t p = 0; job->used && p < job->parts; p++) {
			for (uint32_t i = 0; i < job->tasks[p]; i++) {
				const struct cw_task *task = &job->task[p][i];

				if (task->state != SL_TASK_ENDED &&
					task->place.node == node &&
					task->place.gpu_mask & gpus)
					stop_task(w, job, p, i);
			}
		}
	}
}

/* Some of its GPUs are lost or drained, others come back, and more may be there than before. */
static void change_gpus(struct cw *w, uint32_t i)
{
	struct cw_node *node = &w->node[i];
	uint32_t before = node->shut;

	if (node->fit.gpus && node->fit.gpus < 8 && one_in(w, 4))
		sl_fit_node_init(&node->fit, node->fit.cpu_milli, node->fit.memory_mib,
			(uint16_t)(node->fit.gpus + 1), node->fit.gpu_mib,
			node->fit.model, node->pool);
	node->shut = one_in(w, 3) ? 0 : (uint32_t)below(w, 1u << node->fit.gpus);
	put_node(w, i);
	if (one_in(w, 2))
		stop_there(w, i, node->shut & ~before);
}

/* Others use more of the node, or less; its GPUs or its host memory can be shared otherwise. */
static void change_size(struct cw *w, uint32_t i)
{
	struct cw_node *node = &w->node[i];
	uint32_t cpu_milli = node->fit.cpu_milli, memory_mib = node->fit.memory_mib;
	uint32_t gpu_mib = node->fit.gpu_mib;

	if (one_in(w, 2)) {
		cpu_milli = (uint32_t)below(w, 33) * 1000;
		memory_mib = (uint32_t)below(w, 65) * 1024;
	} else if (one_in(w, 2)) {
		gpu_mib = one_in(w, 3) ? 16384 : 40960;
	} else {
		node->pool_mib = below(w, 5) * 1000;
		node->swaps = one_in(w, 3);
	}
	sl_fit_node_init(&node->fit, cpu_milli, memory_mib, node->fit.gpus, gpu_mib,
		node->fit.model, node->pool);
	put_node(w, i);
}

static void change_node(struct cw *w, uint32_t i)
{
	switch (below(w, 3)) {
	case 0:
		w->node[i].closed = !w->node[i].closed;
		put_node(w, i);
		break;
	case 1: change_gpus(w, i); break;
	default: change_size(w, i);
	}
}

static void go_on(struct cw *w, struct cw_job *job, uint32_t p, uint32_t i)
{
	struct cw_task *task = &job->task[p][i];
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_TASK_RUNS};

	if (task->due > w->now && !w->quiet)
		return;
	if (task->state == SL_TASK_BINDING) {
		if (!w->quiet && one_in(w, 20)) {
			refuse(w, job, p, i);
			return;
		}
		task->state = SL_TASK_RUNNING;
		task->since = w->now;
		task->moved_until = task->on_move ? w->now + 60 * SL_S : 0;
		task->on_move = false;
		task->due = w->now + sl_rng_between(&w->rng, 5, 300) * SL_S;
		event.task_runs.job = job->id;
		event.task_runs.task = number_of(job, p, i);
		event.task_runs.node = w->node[task->place.node].id;
		event.task_runs.gpu_mask = task->place.gpu_mask;
		send(w, event);
	} else if (task->state == SL_TASK_RELEASING) {
		leave(w, job, p, i);
	} else if (task->giving_up && task->parked) {
		drop_parked(w, job, p, i);
	} else if (task->state == SL_TASK_RUNNING && !w->quiet) {
		end_task(w, job, p, i, one_in(w, 6));
	}
}

static void tasks_go_on(struct cw *w)
{
	for (uint32_t j = 0; j < CW_JOBS; j++) {
		struct cw_job *job = &w->job[j];

		for (uint32_t p = 0; job->used && p < job->parts; p++) {
			for (uint32_t i = 0; i < job->tasks[p]; i++)
				go_on(w, job, p, i);
		}
		if (job->used && is_done(job))
			remove_job(w, j);
		else if (job->used)
			try_again(w, job);
	}
}

/* --- Cycles. --- */

static void cycle(struct cw *w, bool whole)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_CYCLE};

	event.cycle.which = whole ? SL_CYCLE_ALL : (uint32_t)below(w, SL_CYCLE_ALL + 1);
	w->whole = event.cycle.which == SL_CYCLE_ALL;
	w->cycles++;
	w->cycle_actions = w->cycle_stops = 0;
	w->stop_for = 0;
	for (uint32_t j = 0; j < CW_JOBS; j++) {
		w->job[j].bound = 0;
		for (uint32_t p = 0; p < CW_PARTS; p++) {
			for (uint32_t i = 0; i < CW_TASKS; i++)
				w->job[j].task[p][i].told = false;
		}
	}
	send(w, event);
	if (!w->broken[0])
		cw_judge_cycle(w, event.cycle.which == SL_CYCLE_ALL);
}

/* A job that comes is foretold, and a cycle follows. */
static void foretell(struct cw *w, uint32_t j)
{
	struct cw_job *job = &w->job[j];
	struct sl_cluster_event event = draw_job(w, j, 1);
	struct sl_cluster_forecast forecast =
		sl_cluster_forecast(w->cluster, w->now, &event);
	struct sl_error err = {{0}};

	w->foretold++;
	w->asked = event.job_add.job;
	w->asked_stops = 0;
	if (sl_cluster_check(w->cluster, &err))
		cw_break(w, "books after a forecast: %s", err.text);
	send(w, event);
	if (!job->used) {
		if (forecast.fate != SL_FORECAST_NEVER)
			cw_break(w, "job %lu is refused, foretold %d",
				(unsigned long)event.job_add.job, forecast.fate);
		return;
	}
	cycle(w, true);
	if (!w->broken[0])
		cw_judge_forecast(w, job, &forecast);
}

/* A user wants one of its tasks on other GPUs of its node. */
static void move_one(struct cw *w, struct cw_job *job)
{
	uint32_t p = (uint32_t)below(w, job->parts),
		 i = (uint32_t)below(w, job->tasks[p]);
	const struct cw_task *task = &job->task[p][i];
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_TASK_MOVE};
	uint64_t answers = w->asked_moves + w->refused_moves;

	event.task_move.job = job->id;
	event.task_move.task = number_of(job, p, i);
	for (uint32_t g = 0, first = (uint32_t)below(w, 8); g < job->need[p].gpus; g++)
		event.task_move.gpu_mask |=
			1u << (first + g) % (1 + w->node[task->place.node].fit.gpus);
	w->asks_move = true;
	send(w, event);
	w->asks_move = false;
	if (w->asked_moves + w->refused_moves != answers + 1)
		cw_break(w, "a move of job %lu is answered %lu times",
			(unsigned long)job->id,
			(unsigned long)(w->asked_moves + w->refused_moves - answers));
}

static void something_happens(struct cw *w)
{
	uint32_t j = (uint32_t)below(w, CW_JOBS), n = (uint32_t)below(w, CW_NODES);
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_UNPARK};

	switch (below(w, 24)) {
	case 0:
		if (!w->node[n].used)
			add_node(w, n);
		else if (one_in(w, 6))
			lose_node(w, n);
		break;
	case 1:
		if (w->node[n].used && one_in(w, 2))
			change_node(w, n);
		break;
	case 2:
		if (one_in(w, 4))
			put_project(w, (uint32_t)below(w, CW_PROJECTS));
		break;
	case 3:
		if (w->job[j].used && (w->job[j].broken || one_in(w, 6)))
			remove_job(w, j);
		break;
	case 4:
		if (w->job[j].used && one_in(w, 3)) {
			for (uint32_t p = 0; p < w->job[j].parts; p++) {
				for (uint32_t i = 0; i < w->job[j].tasks[p]; i++) {
					w->job[j].task[p][i].parked = false;
					w->job[j].task[p][i].on_move = false;
					w->job[j].task[p][i].giving_up = false;
				}
			}
			event.job_unpark.job = w->job[j].id;
			send(w, event);
		}
		break;
	case 5:
		if (w->job[j].used && one_in(w, 3)) {
			w->job[j].paused_until = 0;
			event.type = SL_CLUSTER_EVENT_JOB_RESUME;
			event.job_resume.job = w->job[j].id;
			send(w, event);
		}
		break;
	case 6:
		if (w->job[j].used && one_in(w, 3))
			stop_one(w, &w->job[j]);
		break;
	case 8:
		if (w->has_moves && w->job[j].used)
			move_one(w, &w->job[j]);
		break;
	case 7:
		if (w->node[n].used && one_in(w, 6))
			w->node[n].mute = !w->node[n].mute;
		break;
	default:
		if (w->job[j].used)
			break;
		if (one_in(w, 8))
			foretell(w, j);
		else
			add_job(w, j);
	}
}

void cw_step(struct cw *w)
{
	w->now += below(w, 3000) * SL_MS;
	something_happens(w);
	tasks_go_on(w);
	if (!one_in(w, 3))
		cycle(w, !one_in(w, 8));
}

/* Far more cycles than a job can wait for another: each either ends something or starts
 * something. */
#define SETTLE_MOST 400

void cw_settle(struct cw *w)
{
	uint32_t idle = 0;

	w->quiet = true;
	w->settled++;
	for (uint32_t i = 0; idle < 3 && !w->broken[0]; i++) {
		w->now += 400 * SL_S;
		tasks_go_on(w);
		cycle(w, true);
		idle = w->cycle_actions ? 0 : idle + 1;
		if (i == SETTLE_MOST)
			cw_break(w,
				"livelock: after %u cycles in which nothing happened "
				"outside "
				"something still changes",
				SETTLE_MOST);
	}
	if (!w->broken[0])
		cw_judge_rest(w);
	for (uint32_t j = 0; j < CW_JOBS && !w->broken[0]; j++) {
		if (w->job[j].used)
			continue;
		foretell(w, j);
		break;
	}
	w->quiet = false;
}

void cw_init(struct cw *w, uint64_t seed)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_CONFIG};

	memset(w, 0, sizeof(*w));
	w->rng.state = seed;
	w->arena = sl_arena_new();
	w->cluster = sl_cluster_new(w->arena, CW_NODES, CW_PROJECTS);
	w->now = 1000 * SL_S;
	w->resume_factor = 10;
	w->stale_grace = 20 * SL_S;
	event.config.placement = (uint32_t)below(w, SL_PLACE_POLICIES);
	event.config.stale_grace = w->stale_grace;
	event.config.sums_free = 1;
	w->has_moves = seed & 1;
	if (w->has_moves) {
		w->move_most = (uint32_t)sl_rng_between(&w->rng, 1, CW_MOVES);
		w->spreads = one_in(w, 2);
	}
	event.config.move_most = w->move_most;
	event.config.spread = w->spreads;
	send(w, event);
	for (uint32_t i = 0; i < CW_PROJECTS; i++)
		put_project(w, i);
	for (uint32_t i = 0; i < CW_NODES / 2; i++)
		add_node(w, i);
}

void cw_fini(struct cw *w)
{
	w->arena = sl_arena_free(w->arena);
}

/* --- For people. --- */

static void dump_project(const struct cw *w, uint32_t i)
{
	const struct cw_project *p = &w->project[i];
	const struct sl_tree *tree = sl_cluster_tree(w->cluster);
	const struct sl_project *m = &tree->all[sl_tree_find(tree, p->id)];

	printf("project %lu under %d: quota %ld limit %ld weight %u priority %d pools "
	       "%lx%s "
	       "min %lu %lu s; has %ld fixed %ld share %ld asks %ld\n",
		(unsigned long)p->id, (int)p->parent + 1, (long)p->rules.quota.of[0],
		(long)p->rules.limit.of[0], p->rules.weight[0], p->rules.priority,
		(unsigned long)p->rules.pools, p->rules.no_swap ? " no-swap" : "",
		(unsigned long)(p->rules.preempt_min_runtime / SL_S),
		(unsigned long)(p->rules.reclaim_min_runtime / SL_S), (long)m->has.of[0],
		(long)m->fixed.of[0], (long)m->share.of[0], (long)m->asks.of[0]);
}

static void dump_job(const struct cw *w, const struct cw_job *job)
{
	printf("job %lu project %u priority %d flags %u paused %lu park %lu reason %d\n",
		(unsigned long)job->id, job->project + 1, job->priority, job->flags,
		(unsigned long)(job->paused_until / SL_S), (unsigned long)job->park_mib,
		sl_cluster_job(w->cluster, job->id).because.reason);
	for (uint32_t p = 0; p < job->parts; p++) {
		const struct sl_need *need = &job->need[p];

		printf("  %u of %u: %u gpus of %u milli %u MiB, cpu %u, memory %u, "
		       "models %lx, "
		       "pools %lx, only %x:",
			job->least[p], job->tasks[p], need->gpus, need->gpu_milli,
			need->gpu_mib, need->cpu_milli, need->memory_mib,
			(unsigned long)need->models, (unsigned long)need->pools,
			need->only);
		for (uint32_t i = 0; i < job->tasks[p]; i++) {
			const struct cw_task *task = &job->task[p][i];

			printf(" %d%s%s@%u:%x", task->state, task->promised ? "p" : "",
				task->parked ? "k" : "", task->place.node,
				task->place.gpu_mask);
		}
		printf("\n");
	}
}

void cw_dump(const struct cw *w)
{
	for (uint32_t i = 0; i < CW_PROJECTS; i++)
		dump_project(w, i);
	for (uint32_t i = 0; i < CW_NODES; i++) {
		const struct cw_node *node = &w->node[i];

		if (node->used)
			printf("node %u (%lu)%s%s: %u gpus of %u MiB, model %u, pool %u, "
			       "cpu %u, "
			       "memory %u, host %lu\n",
				i, (unsigned long)node->id, node->closed ? " closed" : "",
				node->swaps ? " swaps" : "", node->fit.gpus,
				node->fit.gpu_mib, node->fit.model, node->pool,
				node->fit.cpu_milli, node->fit.memory_mib,
				(unsigned long)node->pool_mib);
	}
	for (uint32_t j = 0; j < CW_JOBS; j++) {
		if (w->job[j].used)
			dump_job(w, &w->job[j]);
	}
}
