/*
 * cluster_play - the cluster machine driven by hand
 *
 * One machine per test, checked after every event. Nodes 1 and 2 have 2 GPUs, 16 cores and 64 GiB
 * each, and 10 GiB of host memory; projects 1 and 2 are guaranteed 2 GPUs each, project 3 none, and
 * may have 3. Time is a millisecond more with each event.
 */
#ifndef SL_TESTS_CLUSTER_PLAY_H
#define SL_TESTS_CLUSTER_PLAY_H

#include "../../base/test.h"

#include "policy/cluster.h"

#include <inttypes.h>
#include <string.h>

#define SEEN_MOST 64

static struct {
	struct sl_arena *arena;
	struct sl_cluster *cluster;
	sl_ns now;
	struct sl_cluster_action seen[SEEN_MOST]; /* of the last event, without WAKE_AT */
	uint32_t count;
} s;

static inline void on_action(void *context, const struct sl_cluster_action *action)
{
	if (action->type == SL_CLUSTER_ACTION_WAKE_AT)
		return;
	assert_true(s.count < SEEN_MOST);
	s.seen[s.count++] = *action;
}

static inline void send(struct sl_cluster_event event)
{
	struct sl_error err = {{0}};

	s.count = 0;
	s.now += SL_MS;
	sl_cluster_step(s.cluster, s.now, &event, on_action, NULL);
	if (sl_cluster_check(s.cluster, &err))
		fail_msg("%s: %s", sl_cluster_event_name(event.type), err.text);
}

/* Of the last event: how many actions of this type. */
static inline uint32_t seen(enum sl_cluster_action_type type)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < s.count; i++)
		count += s.seen[i].type == type;
	return count;
}

static inline void cycle(void)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_CYCLE};

	event.cycle.which = SL_CYCLE_ALL;
	send(event);
}

static inline struct sl_cluster_event node_put(uint64_t id)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_NODE_PUT};

	event.node_put.node = id;
	event.node_put.cpu_milli = 16000;
	event.node_put.memory_mib = 65536;
	event.node_put.gpus = 2;
	event.node_put.gpu_mib = 40960;
	event.node_put.pool_mib = 10240;
	return event;
}

static inline void add_node(uint64_t id)
{
	send(node_put(id));
}

static inline void put_project(uint64_t id, uint64_t parent, int64_t quota, int64_t limit)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_PROJECT_PUT};
	struct sl_project_rules *rules = &event.project_put.rules;

	for (int r = 0; r < SL_RESOURCES; r++) {
		rules->quota.of[r] = rules->limit.of[r] = SL_QUOTA_ALL;
		rules->weight[r] = 1;
	}
	rules->quota.of[SL_RES_GPU] = quota;
	rules->limit.of[SL_RES_GPU] = limit;
	event.project_put.project = id;
	event.project_put.parent = parent;
	send(event);
}

/* GPUs: whole ones. */
static inline struct sl_cluster_event job(
	uint64_t id, uint64_t project, uint32_t tasks, uint32_t least, uint16_t gpus)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_ADD};

	event.job_add.job = id;
	event.job_add.project = project;
	event.job_add.priority = SL_JOB_PRIORITY_TRAIN;
	event.job_add.flags = SL_JOB_PREEMPTIBLE;
	event.job_add.tasks = tasks;
	event.job_add.least = least;
	event.job_add.need = (struct sl_need){1000, 1024, gpus, SL_FIT_WHOLE, 0, 0, 0};
	return event;
}

static inline void task(
	enum sl_cluster_event_type type, uint64_t id, uint32_t number, bool again)
{
	struct sl_cluster_event event = {.type = type};

	event.task_ended.job = id;
	event.task_ended.task = number;
	if (type == SL_CLUSTER_EVENT_TASK_ENDED)
		event.task_ended.again = again;
	send(event);
}

/* All that is being bound runs, all that was told to stop is gone. */
static inline void answer(void)
{
	struct sl_cluster_action open[SEEN_MOST];
	uint32_t count = s.count;

	memcpy(open, s.seen, sizeof(open));
	for (uint32_t i = 0; i < count; i++) {
		if (open[i].type == SL_CLUSTER_ACTION_BIND)
			task(SL_CLUSTER_EVENT_TASK_RUNS, open[i].bind.job,
				open[i].bind.task, false);
		else if (open[i].type == SL_CLUSTER_ACTION_STOP)
			task(SL_CLUSTER_EVENT_TASK_ENDED, open[i].stop.job,
				open[i].stop.task, true);
	}
}

static inline void run_all(void)
{
	cycle();
	answer();
}

static inline uint32_t in(uint64_t id, enum sl_task_state state)
{
	return sl_cluster_job(s.cluster, id).in[state];
}

static inline int open_machine(void **state)
{
	memset(&s, 0, sizeof(s));
	s.arena = sl_arena_new();
	s.cluster = sl_cluster_new(s.arena, 4, 5);
	s.now = 1000 * SL_S;
	add_node(1);
	add_node(2);
	put_project(1, 0, 2000, SL_QUOTA_ALL);
	put_project(2, 0, 2000, SL_QUOTA_ALL);
	put_project(3, 0, 0, 3000);
	return 0;
}

static inline int close_machine(void **state)
{
	s.arena = sl_arena_free(s.arena);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_machine, close_machine)

#endif
