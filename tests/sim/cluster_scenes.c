/*
 * cluster_scenes - situations that chance makes too rarely, played by hand
 *
 * A node of 4 GPUs, and another that is closed; project 1 is guaranteed 1 GPU and never borrows,
 * project 2 is guaranteed 3, project 3 none.
 */
#include "cluster_scenes.h"

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

static void begin(struct stage *s)
{
	static const struct {
		int64_t quota;
		uint32_t weight;
	} projects[] = {{1000, 0}, {3000, 3}, {0, 0}};
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_NODE_ADD};

	*s = (struct stage){.arena = sl_arena_new(), .now = 1000 * SL_S};
	s->cluster = sl_cluster_new(s->arena, 2, 4);
	event.node_add.node = 1;
	event.node_add.cpu_milli = 64000;
	event.node_add.memory_mib = 65536;
	event.node_add.gpus = 4;
	event.node_add.gpu_mib = 40960;
	event.node_add.pool_mib = 4096;
	send(s, event);
	event.node_add.node = 2;
	send(s, event);
	event = (struct sl_cluster_event){.type = SL_CLUSTER_EVENT_NODE_CLOSE};
	event.node_close.node = 2;
	event.node_close.closed = 1;
	send(s, event);
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

/* Project 2 takes all from 1, which takes its one GPU back, and borrows what is left of the rest;
 * and so on? */
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

/* Two GPUs and most of the cores: the two that have cores, and not the one first looked at, which
 * has only a GPU to spare. */
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

/* Of two that may go, the one that is parked goes, and not the younger one that would lose its
 * work. */
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

const char *cw_scenes(void)
{
	static const char *(*const scenes[])(struct stage * s) = {
		one_goes, nobody_goes_in_vain, comes_to_rest, parks_first};
	const char *wrong = NULL;

	for (size_t i = 0; i < SL_ARRAY_LEN(scenes) && !wrong; i++) {
		struct stage s;

		begin(&s);
		wrong = scenes[i](&s);
		s.arena = sl_arena_free(s.arena);
	}
	return wrong;
}
