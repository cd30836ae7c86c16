/*
 * scenes - situations that chance makes too rarely, played by hand
 *
 * A node of 4 GPUs, and another that is closed; project 1 is guaranteed 1 GPU and never borrows,
 * project 2 is guaranteed 3, project 3 none.
 */
#include "scenes.h"

#include <stdio.h>

struct stage {
	struct sl_arena *arena;
	struct sl_cluster *cluster;
	sl_ns now;
	uint32_t stops, count;
	struct sl_cluster_action open[64];
};

static void on_action(void *context, const struct sl_cluster_action *action)
{
	struct stage *s = context;

	s->stops += action->type == SL_CLUSTER_ACTION_STOP;
	if ((action->type == SL_CLUSTER_ACTION_STOP ||
		    action->type == SL_CLUSTER_ACTION_BIND) &&
		s->count < SL_ARRAY_LEN(s->open))
		s->open[s->count++] = *action;
}

static void send(struct stage *s, struct sl_cluster_event event)
{
	s->now += SL_S;
	sl_cluster_step(s->cluster, s->now, &event, on_action, s);
}

static void cycle(struct stage *s)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_CYCLE};

	event.cycle.which = SL_CYCLE_ALL;
	s->stops = s->count = 0;
	send(s, event);
}

static void answer(struct stage *s)
{
	for (uint32_t i = 0; i < s->count; i++) {
		const struct sl_cluster_action *open = &s->open[i];
		struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_TASK_RUNS};

		event.task_runs.job = open->bind.job;
		event.task_runs.task = open->bind.task;
		if (open->type == SL_CLUSTER_ACTION_STOP) {
			event.type = SL_CLUSTER_EVENT_TASK_ENDED;
			event.task_ended.job = open->stop.job;
			event.task_ended.task = open->stop.task;
			event.task_ended.again = 1;
		}
		send(s, event);
	}
}

static void add_tasks(struct stage *s, uint64_t id, uint64_t project, uint32_t tasks,
	uint32_t cpu_milli, uint16_t gpus, int32_t priority)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_ADD};

	event.job_add.job = id;
	event.job_add.project = project;
	event.job_add.priority = priority;
	event.job_add.flags = SL_JOB_PREEMPTIBLE;
	event.job_add.tasks = tasks;
	event.job_add.least = 1;
	event.job_add.need =
		(struct sl_need){cpu_milli, 1024, gpus, SL_FIT_WHOLE, 0, 0, 0};
	send(s, event);
}

static void add_job(
	struct stage *s, uint64_t id, uint64_t project, uint16_t gpus, int32_t priority)
{
	add_tasks(s, id, project, 1, 1000, gpus, priority);
}

/* A node like the first, with so many GPUs of that model and memory. */
static void put_node(struct stage *s, uint64_t id, uint16_t gpus, uint32_t gpu_mib,
	uint8_t model, uint8_t closed)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_NODE_PUT};

	event.node_put.node = id;
	event.node_put.cpu_milli = 64000;
	event.node_put.memory_mib = 65536;
	event.node_put.gpus = gpus;
	event.node_put.gpu_mib = gpu_mib;
	event.node_put.model = model;
	event.node_put.pool_mib = 4096;
	event.node_put.closed = closed;
	send(s, event);
}

static void add_node(struct stage *s, uint64_t id, uint16_t gpus, uint8_t model)
{
	put_node(s, id, gpus, 40960, model, 0);
}

/* It is found to run there. */
static void runs(
	struct stage *s, uint64_t job, uint32_t task, uint64_t node, uint32_t mask)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_TASK_RUNS};

	event.task_runs.job = job;
	event.task_runs.task = task;
	event.task_runs.node = node;
	event.task_runs.gpu_mask = mask;
	send(s, event);
}

static void task_event(struct stage *s, enum sl_cluster_event_type type, uint64_t job,
	uint32_t task, bool again)
{
	struct sl_cluster_event event = {.type = type};

	event.task_ended.job = job;
	event.task_ended.task = task;
	if (type == SL_CLUSTER_EVENT_TASK_ENDED)
		event.task_ended.again = again;
	send(s, event);
}

static void begin(struct stage *s)
{
	static const struct {
		int64_t quota;
		uint32_t weight;
	} projects[] = {{1000, 0}, {3000, 3}, {0, 0}};
	struct sl_cluster_event event;

	*s = (struct stage){.arena = sl_arena_new(), .now = 1000 * SL_S};
	s->cluster = sl_cluster_new(s->arena, 8, 4);
	add_node(s, 1, 4, 0);
	put_node(s, 2, 4, 40960, 0, 1);
	for (uint32_t i = 0; i < SL_ARRAY_LEN(projects); i++) {
		struct sl_project_rules *rules = &event.project_put.rules;

		event = (struct sl_cluster_event){.type = SL_CLUSTER_EVENT_PROJECT_PUT};
		for (int r = 0; r < SL_RESOURCES; r++) {
			rules->quota.of[r] = rules->limit.of[r] = SL_QUOTA_ALL;
			rules->weight[r] = projects[i].weight;
		}
		rules->quota.of[SL_RES_GPU] = projects[i].quota;
		event.project_put.project = i + 1;
		send(s, event);
	}
}

/* Two GPUs are wanted: one job of two goes rather than two jobs of one. */
static const char *one_goes(struct stage *s)
{
	add_job(s, 1, 3, 2, 50);
	add_job(s, 2, 3, 1, 50);
	add_job(s, 3, 3, 1, 50);
	cycle(s);
	answer(s);
	add_job(s, 4, 2, 2, 50);
	cycle(s);
	return s->stops == 1 ? NULL : "two jobs of one GPU go, and not one of two";
}

/* Project 2 takes all GPUs from project 1, which takes its guaranteed one back and borrows the
 * rest. Does this ever end? */
static const char *comes_to_rest(struct stage *s)
{
	add_job(s, 1, 1, 1, 49);
	add_job(s, 2, 1, 2, 50);
	cycle(s);
	answer(s);
	add_job(s, 3, 2, 4, 50);
	for (int i = 0; i < 60; i++) {
		cycle(s);
		if (!s->count)
			return NULL;
		answer(s);
	}
	return "two projects take from each other for ever";
}

/*
 * Each of two projects has a borrowing job of higher priority and a parked job that is
 * guaranteed its GPU, both on the same GPU. The borrower stops the job of its own project; the
 * other project's job takes its GPU back. Does this ever end?
 */
static const char *priorities_come_to_rest(struct stage *s)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_ADD};

	event.job_add.priority = 49;
	event.job_add.flags = SL_JOB_PREEMPTIBLE | SL_JOB_PARKS;
	event.job_add.tasks = 1;
	event.job_add.need = (struct sl_need){1000, 1024, 1, SL_FIT_WHOLE, 0, 0, 0};
	event.job_add.park_mib = 100;
	for (uint64_t project = 1; project <= 2; project++) {
		event.job_add.job = event.job_add.project = project;
		send(s, event);
		for (int i = 0; i < 2; i++) {
			cycle(s);
			answer(s);
		}
		add_job(s, 2 + project, project, 4, 50);
		for (int i = 0; i < 2; i++) {
			cycle(s);
			answer(s);
		}
	}
	for (int i = 0; i < 60; i++) {
		cycle(s);
		if (!s->count)
			return NULL;
		answer(s);
	}
	return "two projects take from each other for ever, each for its priorities";
}

/* The same where a parked job is given up after a while: its end is an answer, not an event
 * from outside. */
static const char *given_up_comes_to_rest(struct stage *s)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_ADD};
	static const struct {
		uint64_t project;
		uint16_t gpus;
		int32_t priority;
	} jobs[] = {{1, 1, 49}, {1, 2, 50}, {2, 4, 50}};

	for (uint32_t i = 0; i < SL_ARRAY_LEN(jobs); i++) {
		event.job_add.job = i + 1;
		event.job_add.project = jobs[i].project;
		event.job_add.priority = jobs[i].priority;
		event.job_add.flags = SL_JOB_PREEMPTIBLE | SL_JOB_PARKS | SL_JOB_GIVES_UP;
		event.job_add.tasks = 1;
		event.job_add.need =
			(struct sl_need){1000, 1024, jobs[i].gpus, SL_FIT_WHOLE, 0, 0, 0};
		event.job_add.park_mib = 100;
		event.job_add.resume_wait = 5 * SL_S;
		send(s, event);
		if (i == 0)
			continue;
		cycle(s);
		answer(s);
	}
	for (uint32_t i = 0, idle = 0; i < 100; i++) {
		s->now += 10 * SL_S;
		cycle(s);
		idle = s->count ? 0 : idle + 1;
		if (idle == 3)
			return NULL;
		answer(s);
	}
	return "what is given up lets two projects take from each other for ever";
}

/* Six nodes refuse a job, one after the other: none of them is tried again at once. */
static const char *refused_by_many(struct stage *s)
{
	uint32_t refused = 0;

	for (uint64_t node = 3; node <= 7; node++)
		add_node(s, node, 1, 0);
	add_job(s, 1, 2, 1, 50);
	for (int i = 0; i < 6; i++) {
		cycle(s);
		if (s->count != 1 || refused >> s->open[0].bind.node & 1)
			return "a job is bound to a node that has just refused it";
		refused |= 1u << s->open[0].bind.node;
		task_event(s, SL_CLUSTER_EVENT_BIND_REFUSED, 1, 0, false);
	}
	cycle(s);
	return s->count ? "a job is bound where all nodes have just refused it" : NULL;
}

/*
 * One task of job 1 fails, and is not tried again for 32 s. Its other task is moved to a place that
 * job 4 still holds. Then node 3 becomes free. The failed task must not start there in the turn of
 * the moved one.
 */
static const char *only_what_moved_comes_back(struct stage *s)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_ADD};

	add_node(s, 3, 1, 1);
	add_node(s, 4, 1, 2);
	event.job_add.job = 1;
	event.job_add.project = 3;
	event.job_add.priority = 50;
	event.job_add.flags = SL_JOB_PREEMPTIBLE;
	event.job_add.tasks = 2;
	event.job_add.least = 1;
	event.job_add.need = (struct sl_need){1000, 1024, 1, SL_FIT_WHOLE, 0, 0, 0};
	send(s, event);
	runs(s, 1, 1, 1, 1);
	add_job(s, 4, 3, 1, 50);
	runs(s, 4, 0, 4, 1);
	add_job(s, 5, 3, 3, 50);
	runs(s, 5, 0, 1, 14);
	event = (struct sl_cluster_event){.type = SL_CLUSTER_EVENT_TASK_ENDED};
	event.task_ended.job = 1;
	event.task_ended.again = event.task_ended.failed = 1;
	/* Its back-off is 32 s in the end. */
	for (int i = 0; i < 6; i++) {
		s->now += 20 * SL_S;
		runs(s, 1, 0, 3, 1);
		send(s, event);
	}
	add_job(s, 2, 2, 1, 50);
	runs(s, 2, 0, 3, 1);
	task_event(s, SL_CLUSTER_EVENT_TASK_ENDED, 5, 0, false);
	task_event(s, SL_CLUSTER_EVENT_TASK_STOPS, 4, 0, false);
	add_job(s, 3, 2, 4, 50);
	cycle(s);
	if (s->stops != 1 || s->open[0].stop.how != SL_STOP_MOVE)
		return "a task that can be moved is not";
	task_event(s, SL_CLUSTER_EVENT_TASK_ENDED, 1, 1, true);
	task_event(s, SL_CLUSTER_EVENT_TASK_ENDED, 2, 0, false);
	cycle(s);
	for (uint32_t i = 0; i < s->count; i++) {
		if (s->open[i].bind.job == 1 && s->open[i].bind.task == 0)
			return "a task that failed is tried again too soon";
	}
	return NULL;
}

/* Job 4 wants two GPUs and most of the cores. The two jobs with many cores are stopped; the one
 * that is looked at first has only a GPU to give, and is not. */
static const char *nobody_goes_in_vain(struct stage *s)
{
	add_tasks(s, 1, 3, 2, 100, 1, 50);
	add_tasks(s, 2, 3, 1, 30000, 1, 50);
	add_tasks(s, 3, 3, 1, 30000, 1, 50);
	for (int i = 0; i < 3; i++) {
		cycle(s);
		answer(s);
	}
	add_tasks(s, 4, 2, 1, 60000, 2, 50);
	cycle(s);
	return s->stops == 2 ? NULL : "more jobs go than have to";
}

/* Two jobs may be stopped. The one that can be parked is, and not the younger one, which would lose
 * its work. */
static const char *parks_first(struct stage *s)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_ADD};

	event.job_add.job = 1;
	event.job_add.project = 3;
	event.job_add.priority = 50;
	event.job_add.flags = SL_JOB_PREEMPTIBLE | SL_JOB_PARKS | SL_JOB_GIVES_UP;
	event.job_add.tasks = 1;
	event.job_add.need = (struct sl_need){1000, 1024, 2, SL_FIT_WHOLE, 0, 0, 0};
	event.job_add.park_mib = 4096;
	send(s, event);
	event.job_add.job = 2;
	event.job_add.park_mib = 4097;
	send(s, event);
	cycle(s);
	answer(s);
	add_job(s, 3, 2, 2, 50);
	cycle(s);
	return s->stops == 1 && s->open[0].stop.job == 1 &&
			       s->open[0].stop.how == SL_STOP_PARK
		       ? NULL
		       : "a job is terminated, and another could be parked";
}

static void may_have(struct stage *s, uint32_t most)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_OWNER_MOST};

	event.owner_most.owner = 7;
	event.owner_most.most = most;
	send(s, event);
}

/* Of that owner, within the guaranteed quota of project 2, with whole GPUs. */
static void add_owned(struct stage *s, uint64_t id, uint32_t tasks, uint32_t least)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_ADD};

	event.job_add.job = id;
	event.job_add.owner = 7;
	event.job_add.project = 2;
	event.job_add.priority = 50;
	event.job_add.flags = SL_JOB_PREEMPTIBLE;
	event.job_add.tasks = tasks;
	event.job_add.least = least;
	event.job_add.need = (struct sl_need){1000, 1024, 1, SL_FIT_WHOLE, 0, 0, 0};
	send(s, event);
}

/* Two jobs of two tasks each, whose owner may have three tasks: no job is stopped for the fourth
 * before the bound rises. */
static const char *nobody_goes_beyond_the_most(struct stage *s)
{
	add_job(s, 1, 3, 1, 50);
	cycle(s);
	answer(s);
	may_have(s, 2);
	add_owned(s, 2, 2, 1);
	add_owned(s, 3, 2, 1);
	for (int i = 0; i < 3; i++) {
		cycle(s);
		if (s->stops || s->count > 2)
			return "a job is stopped for a task that its owner may not have";
		answer(s);
	}
	may_have(s, 3);
	cycle(s);
	if (s->stops || s->count != 1)
		return "a task that its owner may have does not come";
	answer(s);
	cycle(s);
	return s->count ? "an owner has more than it may" : NULL;
}

/* A promise made while an owner was below the bound is dropped once it is above it. */
static const char *a_promise_beyond_the_most(struct stage *s)
{
	add_job(s, 1, 3, 4, 50);
	cycle(s);
	answer(s);
	may_have(s, 1);
	add_owned(s, 2, 1, 1);
	cycle(s);
	if (s->stops != 1)
		return "a job within its quota has no room made for it";
	may_have(s, 0);
	answer(s);
	cycle(s);
	return s->count == 1 && s->open[0].bind.job == 1
		       ? NULL
		       : "what its owner may not have keeps its promise";
}

/* Job 1 is being parked for job 2 when its own end is asked for. It ends, and is not parked. */
static const char *ends_while_it_parks(struct stage *s)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_ADD};

	event.job_add.job = 1;
	event.job_add.project = 3;
	event.job_add.flags = SL_JOB_PREEMPTIBLE | SL_JOB_PARKS;
	event.job_add.tasks = event.job_add.least = 1;
	event.job_add.need = (struct sl_need){1000, 1024, 4, SL_FIT_WHOLE, 0, 0, 0};
	event.job_add.park_mib = 100;
	send(s, event);
	cycle(s);
	answer(s);
	add_job(s, 2, 2, 1, 50);
	cycle(s);
	if (s->stops != 1 || s->open[0].stop.how != SL_STOP_PARK)
		return "a job that can be parked is not";
	task_event(s, SL_CLUSTER_EVENT_TASK_STOPS, 1, 0, false);
	task_event(s, SL_CLUSTER_EVENT_TASK_ENDED, 1, 0, true);
	return sl_cluster_task(s->cluster, 1, 0).parked
		       ? "a task that was stopped while it parked counts as parked"
		       : NULL;
}

/* --- Jobs that move. --- */

/* A task on part of a GPU that moves and bursts, found to run on that one. */
static void add_mover(
	struct stage *s, uint64_t id, uint64_t project, uint16_t milli, uint32_t gpu_mask)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_ADD};

	event.job_add.job = id;
	event.job_add.project = project;
	event.job_add.priority = 50;
	event.job_add.flags =
		SL_JOB_PREEMPTIBLE | SL_JOB_PARKS | SL_JOB_MOVES | SL_JOB_BURSTS;
	event.job_add.tasks = event.job_add.least = 1;
	event.job_add.need = (struct sl_need){1000, 1024, 1, milli, 0, 0, 0};
	event.job_add.park_mib = 100;
	send(s, event);
	runs(s, id, 0, 1, gpu_mask);
}

static void may_move(struct stage *s, uint32_t move_most, bool spread)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_CONFIG};

	event.config.move_most = move_most;
	event.config.spread = spread;
	send(s, event);
}

static void go_on(struct stage *s)
{
	for (int i = 0; i < 4; i++) {
		answer(s);
		cycle(s);
	}
}

static bool is_running(const struct stage *s, uint64_t job)
{
	return sl_cluster_job(s->cluster, job).in[SL_TASK_RUNNING];
}

/* Job 1 of project 3 is parked for project 1. Then other GPUs come free than the one that it
 * had. */
static const char *comes_back_to_any_gpu(struct stage *s)
{
	add_mover(s, 1, 3, 1000, 1);
	add_job(s, 2, 2, 3, 100);
	runs(s, 2, 0, 1, 14);
	add_job(s, 3, 1, 1, 50);
	cycle(s);
	if (s->stops != 1 || s->open[0].stop.how != SL_STOP_PARK)
		return "a borrower is not parked";
	go_on(s);
	task_event(s, SL_CLUSTER_EVENT_TASK_ENDED, 2, 0, false);
	cycle(s);
	go_on(s);
	return is_running(s, 1) ? NULL
				: "a parked job waits for one GPU, and others are free";
}

/* Four quarters on four GPUs: job 5 needs one GPU, then job 6 two. Three tasks move in all. */
static const char *fragments_join(struct stage *s)
{
	may_move(s, 3, false);
	for (uint32_t i = 0; i < 4; i++)
		add_mover(s, 1 + i, 3, 250, 1u << i);
	add_job(s, 5, 1, 1, 50);
	cycle(s);
	if (s->stops != 1 || s->open[0].stop.how != SL_STOP_MOVE)
		return "not one task moves for a whole GPU";
	go_on(s);
	add_job(s, 6, 2, 2, 50);
	cycle(s);
	if (s->stops != 2 || s->open[0].stop.how != SL_STOP_MOVE)
		return "not two tasks move for two whole GPUs";
	go_on(s);
	for (uint64_t id = 1; id <= 6; id++) {
		if (!is_running(s, id))
			return "a job does not run after its move";
	}
	return NULL;
}

/* Job 3 needs a whole GPU, and job 6 another one: a second task would have to move. */
static const char *no_move_beyond_the_most(struct stage *s)
{
	may_move(s, 1, false);
	for (uint32_t i = 0; i < 4; i++)
		add_mover(s, 1 + i, 3, 500, 1u << i);
	for (uint64_t id = 5; id <= 6; id++) {
		add_job(s, id, 3, 1, 50);
		cycle(s);
		go_on(s);
	}
	if (!is_running(s, 5) || is_running(s, 6))
		return "more tasks move within an hour than may";
	s->now += 3660 * SL_S;
	cycle(s);
	go_on(s);
	return is_running(s, 6) ? NULL : "no task moves in the next hour";
}

/* The move that a job needs is undone when the job has ended, once. */
static const char *spreads_and_rests(struct stage *s)
{
	uint32_t moves = 0;

	may_move(s, 100, true);
	add_mover(s, 1, 3, 500, 1);
	add_mover(s, 2, 3, 500, 2);
	add_job(s, 3, 3, 3, 50);
	cycle(s);
	go_on(s);
	if (!is_running(s, 3))
		return "a job finds no room, though a task could move";
	task_event(s, SL_CLUSTER_EVENT_TASK_ENDED, 3, 0, false);
	for (int i = 0; i < 20; i++) {
		s->now += 30 * SL_S;
		cycle(s);
		moves += s->stops;
		answer(s);
	}
	if (moves != 1)
		return "tasks do not spread by one move over unused GPUs";
	return sl_cluster_task(s->cluster, 1, 0).place.gpu_mask !=
			       sl_cluster_task(s->cluster, 2, 0).place.gpu_mask
		       ? NULL
		       : "two tasks share a GPU beside unused ones";
}

/*
 * Of a gang, one task is promised a place and another one is being stopped. The latter stays, on a
 * GPU that job 3 uses by now, and the promise is withdrawn: the gang was whole at no time, so its
 * grace of 60 s goes on.
 */
static const char *is_stale_since_it_broke(struct stage *s)
{
	uint32_t mask[2];

	add_owned(s, 1, 4, 4);
	cycle(s);
	answer(s);
	for (uint32_t i = 0; i < 2; i++)
		mask[i] = sl_cluster_task(s->cluster, 1, i).place.gpu_mask;
	task_event(s, SL_CLUSTER_EVENT_TASK_ENDED, 1, 1, true);
	add_job(s, 2, 2, 1, 50);
	runs(s, 2, 0, 1, mask[1]);
	task_event(s, SL_CLUSTER_EVENT_TASK_STOPS, 2, 0, false);
	cycle(s);
	if (sl_cluster_task(s->cluster, 1, 1).state != SL_TASK_PIPELINED)
		return "a gang is not promised the GPU that becomes free";
	task_event(s, SL_CLUSTER_EVENT_TASK_STOPS, 1, 0, false);
	add_job(s, 3, 2, 1, 50);
	runs(s, 3, 0, 1, mask[0]);
	s->now += 40 * SL_S;
	task_event(s, SL_CLUSTER_EVENT_STOP_FAILED, 1, 0, false);
	task_event(s, SL_CLUSTER_EVENT_STOP_FAILED, 2, 0, false);
	s->now += 40 * SL_S;
	cycle(s);
	return s->stops == 3 && s->open[0].stop.how == SL_STOP_STALE
		       ? NULL
		       : "a gang is below its least for longer than its grace";
}

/* While a job is parked, the GPUs of its node become too small for it, and then larger again. */
static const char *comes_back_when_it_fits(struct stage *s)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_ADD};

	event.job_add.job = 1;
	event.job_add.project = 2;
	event.job_add.priority = 50;
	event.job_add.flags = SL_JOB_PREEMPTIBLE | SL_JOB_PARKS;
	event.job_add.tasks = 1;
	event.job_add.need = (struct sl_need){1000, 1024, 1, 0, 20480, 0, 0};
	event.job_add.park_mib = 100;
	send(s, event);
	event = (struct sl_cluster_event){.type = SL_CLUSTER_EVENT_TASK_PARKED};
	event.task_parked.job = event.task_parked.node = 1;
	event.task_parked.gpu_mask = 1;
	send(s, event);
	put_node(s, 1, 4, 16384, 0, 0);
	cycle(s);
	if (s->count)
		return "a job comes back to a GPU with less memory than it needs";
	put_node(s, 1, 4, 40960, 0, 0);
	cycle(s);
	return s->count == 1 ? NULL : "a job does not come back to GPUs that suffice";
}

const char *cw_scenes(void)
{
	static const char *(*const scenes[])(struct stage * s) = {one_goes,
		nobody_goes_in_vain, comes_to_rest, priorities_come_to_rest,
		given_up_comes_to_rest, parks_first, refused_by_many,
		only_what_moved_comes_back, nobody_goes_beyond_the_most,
		a_promise_beyond_the_most, ends_while_it_parks, comes_back_to_any_gpu,
		fragments_join, no_move_beyond_the_most, spreads_and_rests,
		is_stale_since_it_broke, comes_back_when_it_fits};
	const char *wrong = NULL;

	for (size_t i = 0; i < SL_ARRAY_LEN(scenes) && !wrong; i++) {
		struct stage s;

		begin(&s);
		wrong = scenes[i](&s);
		s.arena = sl_arena_free(s.arena);
	}
	return wrong;
}
