#include "cluster_play.h"

/* --- Bad input. --- */

static void refuses_jobs(void **state)
{
	static const struct {
		const char *name;
		uint64_t id, project;
		uint32_t tasks, least;
		struct sl_need need;
		enum sl_pending_reason reason;
	} rows[] = {
		{"unknown project", 9, 7, 1, 1, {1, 1, 1, 1000}, SL_PENDING_NO_PROJECT},
		{"id taken", 1, 1, 1, 1, {1, 1, 1, 1000}, SL_PENDING_DUPLICATE},
		{"asks for nothing", 9, 1, 1, 1, {0}, SL_PENDING_VALUE},
		{"no task", 9, 1, 0, 0, {1, 1, 1, 1000}, SL_PENDING_VALUE},
		{"least above tasks", 9, 1, 1, 2, {1, 1, 1, 1000}, SL_PENDING_TASKS},
		{"more than a GPU of each", 9, 1, 1, 1, {1, 1, 1, 1001},
			SL_PENDING_TOO_MUCH},
		{"nothing of a GPU", 9, 1, 1, 1, {1, 1, 1, 0}, SL_PENDING_VALUE},
		{"33 GPUs", 9, 1, 1, 1, {1, 1, 33, 1000}, SL_PENDING_TOO_MUCH},
		{"2^32 - 1 tasks", 9, 1, UINT32_MAX, 1, {1, 1, 1, 1000},
			SL_PENDING_TASKS},
		{"3 GPUs of nodes with 2", 9, 1, 1, 1, {1, 1, 3, 1000}, SL_PENDING_NEVER},
		{"more memory than GPUs have", 9, 1, 1, 1, {1, 1, 1, 0, 40961},
			SL_PENDING_NEVER},
		{"a pool without nodes", 9, 1, 1, 1, {1, 1, 1, 1000, 0, 0, 2},
			SL_PENDING_NEVER},
	};

	send(job(1, 1, 1, 1, 1));
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_cluster_event event =
			job(rows[i].id, rows[i].project, rows[i].tasks, rows[i].least, 1);

		event.job_add.need = rows[i].need;
		send(event);
		if (seen(SL_CLUSTER_ACTION_REFUSE_JOB) != 1 ||
			s.seen[0].refuse_job.reason != (uint32_t)rows[i].reason)
			fail_msg("%s: %u refusals, reason %u instead of %u", rows[i].name,
				seen(SL_CLUSTER_ACTION_REFUSE_JOB),
				s.seen[0].refuse_job.reason, rows[i].reason);
	}
	assert_int_equal(sl_cluster_totals(s.cluster).jobs, 1);
}

static void refuses_projects(void **state)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_PROJECT_REMOVE};

	put_project(4, 1, 3000, SL_QUOTA_ALL);
	assert_int_equal(s.seen[0].refuse_project.outcome, SL_TREE_SUM);
	put_project(4, 9, 0, SL_QUOTA_ALL);
	assert_int_equal(s.seen[0].refuse_project.outcome, SL_TREE_PARENT);
	put_project(4, 1, 1000, 500);
	assert_int_equal(s.seen[0].refuse_project.outcome, SL_TREE_VALUE);
	put_project(4, 1, 1000, SL_QUOTA_ALL);
	put_project(1, 4, 2000, SL_QUOTA_ALL);
	assert_int_equal(s.seen[0].refuse_project.outcome, SL_TREE_CYCLE);
	event.project_remove.project = 1;
	send(event);
	assert_int_equal(s.seen[0].refuse_project.outcome, SL_TREE_IN_USE);
}

/* A refusal is told with its numbers. */
static void refusals_have_numbers(void **state)
{
	struct sl_cluster_event event = job(9, 7, 1, 1, 1);

	send(event);
	assert_int_equal(s.seen[0].refuse_job.project, 7);
	event = job(9, 1, 2, 3, 1);
	send(event);
	assert_int_equal(s.seen[0].refuse_job.wanted, 3);
	assert_int_equal(s.seen[0].refuse_job.available, 2);
	send(job(9, 1, 1, 1, 33));
	assert_int_equal(s.seen[0].refuse_job.resource, SL_RES_GPU);
	assert_int_equal(s.seen[0].refuse_job.wanted, 33000);
	assert_int_equal(s.seen[0].refuse_job.available, 32000);
	send(job(9, 1, 1, 1, 3));
	assert_int_equal(s.seen[0].refuse_job.reason, SL_PENDING_NEVER);
	assert_int_equal(s.seen[0].refuse_job.wanted, 3000);
	assert_int_equal(s.seen[0].refuse_job.available, 2000);
	assert_int_equal(s.seen[0].refuse_job.project, 1);
}

/* A clock that goes back stands still: nothing comes back, is spared or falls due by it. */
static void clock_goes_backwards(void **state)
{
	send(job(1, 1, 3, 3, 1));
	run_all();
	s.now -= 500 * SL_S;
	send(job(2, 1, 1, 1, 1));
	run_all();
	assert_int_equal(in(2, SL_TASK_RUNNING), 1);
	/* A minute of that clock later a stale gang still has its grace by the first one. */
	task(SL_CLUSTER_EVENT_TASK_ENDED, 1, 0, true);
	s.now += 300 * SL_S;
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 0);
	s.now = 0;
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 0);
}

/* Whatever names nothing, or comes at the wrong moment, changes nothing. */
static void ignores_strays(void **state)
{
	send(job(1, 1, 1, 1, 1));
	for (uint32_t type = 0; type < SL_CLUSTER_EVENTS; type++) {
		struct sl_cluster_event event = {.type = type};

		if (type == SL_CLUSTER_EVENT_CONFIG || type == SL_CLUSTER_EVENT_CYCLE ||
			type == SL_CLUSTER_EVENT_PROJECT_PUT ||
			type == SL_CLUSTER_EVENT_NODE_PUT)
			continue;
		event.task_runs.job = 77;
		event.task_runs.task = 5;
		send(event);
	}
	task(SL_CLUSTER_EVENT_TASK_RUNS, 1, 0, false);
	task(SL_CLUSTER_EVENT_BIND_REFUSED, 1, 0, false);
	task(SL_CLUSTER_EVENT_STOP_FAILED, 1, 0, false);
	task(SL_CLUSTER_EVENT_TASK_STOPS, 1, 0, false);
	assert_int_equal(in(1, SL_TASK_PENDING), 1);
	add_node(1);
	assert_int_equal(sl_cluster_totals(s.cluster).nodes, 2);
}

/* --- Starting. --- */

static void starts_gangs_whole(void **state)
{
	send(job(1, 1, 1, 1, 2));
	send(job(2, 1, 3, 3, 1));
	send(job(3, 1, 4, 1, 1));
	run_all();
	assert_int_equal(in(1, SL_TASK_RUNNING), 1);
	/* Two GPUs are left: not enough for three tasks, but for one after the other. */
	assert_int_equal(in(2, SL_TASK_PENDING), 3);
	assert_int_equal(in(3, SL_TASK_RUNNING), 2);
	assert_int_equal(sl_cluster_job(s.cluster, 2).because.reason, SL_PENDING_GANG);
}

static void keeps_limits_and_quotas(void **state)
{
	struct sl_cluster_event strong = job(2, 1, 3, 3, 1);

	send(job(1, 3, 4, 1, 1));
	strong.job_add.priority = SL_JOB_PRIORITY_BUILD;
	strong.job_add.flags = 0;
	send(strong);
	run_all();
	assert_int_equal(in(1, SL_TASK_RUNNING), 3);
	assert_int_equal(sl_cluster_job(s.cluster, 1).because.reason, SL_PENDING_LIMIT);
	assert_int_equal(in(2, SL_TASK_PENDING), 3);
	assert_int_equal(
		sl_cluster_job(s.cluster, 2).because.reason, SL_PENDING_OVER_QUOTA);
	assert_int_equal(sl_cluster_job(s.cluster, 2).because.wanted, 3000);
	assert_int_equal(sl_cluster_job(s.cluster, 2).because.available, 2000);
}

/* A job that is being stopped still counts in its project's limit: another job of the project
 * may not take what is free. */
static void limits_count_what_is_stopping(void **state)
{
	send(job(1, 3, 1, 1, 1));
	send(job(2, 3, 2, 2, 1));
	run_all();
	task(SL_CLUSTER_EVENT_TASK_STOPS, 1, 0, false);
	send(job(3, 3, 1, 1, 1));
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_BIND), 0);
	assert_int_equal(
		sl_cluster_job(s.cluster, 3).because.reason, SL_PENDING_LIMIT_LEAVING);
	/* Nor is the free GPU kept for it. */
	send(job(4, 1, 1, 1, 1));
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_BIND), 1);
	assert_int_equal(s.seen[0].bind.job, 4);
	answer();
	task(SL_CLUSTER_EVENT_TASK_ENDED, 1, 0, false);
	run_all();
	assert_int_equal(in(3, SL_TASK_RUNNING), 1);
}

/* The same for a promised GPU: it is free before the limit is. */
static void promises_wait_for_the_limit(void **state)
{
	struct sl_cluster_event strong = job(2, 3, 1, 1, 1);

	send(job(1, 3, 3, 1, 1));
	run_all();
	strong.job_add.priority++;
	send(strong);
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 1);
	assert_int_equal(in(2, SL_TASK_PIPELINED), 1);
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_BIND), 0);
	task(SL_CLUSTER_EVENT_TASK_ENDED, 1, 2, true);
	run_all();
	assert_int_equal(in(2, SL_TASK_RUNNING), 1);
	assert_int_equal(in(1, SL_TASK_RUNNING), 2);
}

static void waits_for_what_is_stopping(void **state)
{
	send(job(1, 1, 4, 4, 1));
	run_all();
	task(SL_CLUSTER_EVENT_TASK_STOPS, 1, 0, false);
	send(job(2, 2, 1, 1, 1));
	cycle();
	assert_int_equal(in(2, SL_TASK_PIPELINED), 1);
	/* The GPU that comes free is kept for it. */
	send(job(3, 1, 1, 1, 1));
	task(SL_CLUSTER_EVENT_TASK_ENDED, 1, 0, false);
	run_all();
	assert_int_equal(in(2, SL_TASK_RUNNING), 1);
	assert_int_equal(in(3, SL_TASK_PENDING), 1);
}

static void does_nothing_twice(void **state)
{
	uint64_t tried;

	send(job(1, 1, 9, 9, 1));
	run_all();
	cycle();
	tried = sl_cluster_totals(s.cluster).tried;
	for (int i = 0; i < 10; i++) {
		cycle();
		assert_int_equal(s.count, 0);
	}
	assert_int_equal(sl_cluster_totals(s.cluster).tried, tried);
}

/* --- Taking back. --- */

static void takes_back_in_quota_only(void **state)
{
	send(job(1, 1, 4, 1, 1));
	run_all();
	assert_int_equal(in(1, SL_TASK_RUNNING), 4);
	send(job(2, 2, 3, 1, 1));
	/* Two for its quota, the last as said: never the work within the other's. */
	for (int i = 0; i < 6; i++)
		run_all();
	assert_int_equal(in(2, SL_TASK_RUNNING), 2);
	assert_int_equal(in(1, SL_TASK_RUNNING), 2);
	cycle();
	assert_int_equal(s.count, 0);
}

static void parks_where_it_fits(void **state)
{
	struct sl_cluster_event parks = job(1, 3, 2, 1, 1);

	parks.job_add.flags |= SL_JOB_PARKS;
	parks.job_add.park_mib = 20480;
	send(parks);
	send(job(4, 1, 2, 2, 1));
	run_all();
	send(job(2, 2, 1, 1, 2));
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 0);
	assert_int_equal(sl_cluster_job(s.cluster, 2).because.reason, SL_PENDING_POOL);
}

static void comes_back_where_it_was(void **state)
{
	struct sl_cluster_event parks = job(1, 3, 1, 1, 2);
	struct sl_place was;

	parks.job_add.flags |= SL_JOB_PARKS;
	parks.job_add.park_mib = 1024;
	parks.job_add.swap_cost = SL_S;
	send(parks);
	run_all();
	was = sl_cluster_task(s.cluster, 1, 0).place;
	send(job(2, 1, 1, 1, 2));
	run_all();
	send(job(3, 2, 1, 1, 2));
	run_all();
	assert_true(sl_cluster_task(s.cluster, 1, 0).parked);
	run_all();
	assert_int_equal(in(3, SL_TASK_RUNNING), 1);
	/* The other node is free, and it waits for its own. */
	task(SL_CLUSTER_EVENT_TASK_ENDED, 2, 0, false);
	run_all();
	assert_int_equal(in(1, SL_TASK_PENDING), 1);
	task(SL_CLUSTER_EVENT_TASK_ENDED, 3, 0, false);
	run_all();
	assert_int_equal(in(1, SL_TASK_RUNNING), 1);
	assert_int_equal(sl_cluster_task(s.cluster, 1, 0).place.node, was.node);
	assert_int_equal(sl_cluster_task(s.cluster, 1, 0).place.gpu_mask, was.gpu_mask);
}

/* After a restart a parked job is announced, and comes back to its place and to no other. */
static void takes_in_who_is_parked(void **state)
{
	struct sl_cluster_event parks = job(1, 3, 1, 1, 2);
	struct sl_cluster_event found = {.type = SL_CLUSTER_EVENT_TASK_PARKED};
	struct sl_cluster_event runs = {.type = SL_CLUSTER_EVENT_TASK_RUNS};

	parks.job_add.flags |= SL_JOB_PARKS;
	parks.job_add.park_mib = 1024;
	send(parks);
	found.task_parked.job = 1;
	found.task_parked.node = 2;
	found.task_parked.gpu_mask = 1;
	send(found);
	assert_false(sl_cluster_task(s.cluster, 1, 0).parked);
	found.task_parked.gpu_mask = 3;
	send(found);
	send(found);
	assert_true(sl_cluster_task(s.cluster, 1, 0).parked);
	/* Node 1 is free. */
	send(job(2, 1, 1, 1, 2));
	runs.task_runs.job = 2;
	runs.task_runs.node = 2;
	runs.task_runs.gpu_mask = 3;
	send(runs);
	run_all();
	assert_true(sl_cluster_task(s.cluster, 1, 0).parked);
	task(SL_CLUSTER_EVENT_TASK_ENDED, 2, 0, false);
	run_all();
	assert_int_equal(sl_cluster_job(s.cluster, 1).in[SL_TASK_RUNNING], 1);
	assert_int_equal(sl_cluster_task(s.cluster, 1, 0).node, 2);
	assert_false(sl_cluster_task(s.cluster, 1, 0).parked);
}

/* The host memory of a job is known better once it runs. */
static void parks_by_what_was_measured(void **state)
{
	struct sl_cluster_event parks = job(1, 3, 2, 1, 1);
	struct sl_cluster_event cost = {.type = SL_CLUSTER_EVENT_JOB_COST};

	parks.job_add.flags |= SL_JOB_PARKS;
	parks.job_add.park_mib = 1024;
	send(parks);
	run_all();
	cost.job_cost.job = 1;
	cost.job_cost.park_mib = 20480;
	send(cost);
	send(job(2, 1, 1, 1, 2));
	send(job(3, 2, 1, 1, 2));
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 0);
	cost.job_cost.park_mib = 5120;
	send(cost);
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 2);
	/* While it is on its way: the pool's books follow. */
	cost.job_cost.park_mib = 2048;
	send(cost);
	answer();
}

/* A GPU can share less than before: a running job keeps its part, a new one is counted by
 * the new size. */
static void counts_by_the_new_size(void **state)
{
	struct sl_cluster_event event = job(1, 3, 1, 1, 1);

	event.job_add.need.gpu_milli = 0;
	event.job_add.need.gpu_mib = 20480;
	send(event);
	run_all();
	assert_int_equal(sl_cluster_task(s.cluster, 1, 0).place.milli, 500);
	for (uint64_t node = 1; node <= 2; node++) {
		struct sl_cluster_event size = node_put(node);

		size.node_put.gpu_mib = 20480;
		send(size);
	}
	assert_int_equal(sl_cluster_task(s.cluster, 1, 0).place.milli, 500);
	event.job_add.job = 2;
	send(event);
	run_all();
	assert_int_equal(sl_cluster_task(s.cluster, 2, 0).place.milli, 1000);
	event.job_add.job = 3;
	event.job_add.need.gpu_mib = 20481;
	send(event);
	assert_int_equal(seen(SL_CLUSTER_ACTION_REFUSE_JOB), 1);
}

static void preempts_lower_priority_only(void **state)
{
	struct sl_cluster_event strong = job(2, 1, 1, 1, 2);

	send(job(1, 1, 4, 1, 1));
	run_all();
	send(strong);
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 0);
	strong.job_add.job = 3;
	strong.job_add.priority++;
	send(strong);
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 2);
	assert_int_equal(in(3, SL_TASK_PIPELINED), 1);
}

static void moves_who_finds_a_place(void **state)
{
	send(job(1, 1, 1, 1, 1));
	send(job(2, 1, 1, 1, 1));
	send(job(3, 1, 2, 2, 1));
	run_all();
	/* One task stays on each node. */
	for (uint32_t id = 1, node = 0; id <= 3; id++) {
		if (id < 3 && sl_cluster_task(s.cluster, id, 0).node != node) {
			node = (uint32_t)sl_cluster_task(s.cluster, id, 0).node;
			continue;
		}
		if (id < 3)
			task(SL_CLUSTER_EVENT_TASK_ENDED, id, 0, false);
	}
	task(SL_CLUSTER_EVENT_TASK_ENDED, 3, 0, false);
	send(job(4, 1, 1, 1, 2));
	cycle();
	assert_int_equal(in(4, SL_TASK_PIPELINED), 1);
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 1);
	assert_int_equal(s.seen[0].stop.how, SL_STOP_MOVE);
	answer();
	run_all();
	assert_int_equal(in(4, SL_TASK_RUNNING), 1);
}

/* --- Failures. --- */

static void tries_another_node(void **state)
{
	uint64_t node;

	send(job(1, 1, 1, 1, 2));
	cycle();
	node = s.seen[0].bind.node;
	task(SL_CLUSTER_EVENT_BIND_REFUSED, 1, 0, false);
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_BIND), 1);
	assert_int_not_equal(s.seen[0].bind.node, node);
}

static void tries_all_nodes_again(void **state)
{
	send(job(1, 1, 1, 1, 2));
	cycle();
	task(SL_CLUSTER_EVENT_BIND_REFUSED, 1, 0, false);
	cycle();
	task(SL_CLUSTER_EVENT_BIND_REFUSED, 1, 0, false);
	cycle();
	assert_int_equal(s.count, 0);
	task(SL_CLUSTER_EVENT_BIND_AGAIN, 1, 0, false);
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_BIND), 1);
	task(SL_CLUSTER_EVENT_BIND_REFUSED, 1, 0, false);
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_BIND), 1);
	task(SL_CLUSTER_EVENT_BIND_REFUSED, 1, 0, false);
	cycle();
	assert_int_equal(s.count, 0);
}

static void spares_who_cannot_be_stopped(void **state)
{
	send(job(1, 3, 1, 1, 2));
	send(job(4, 1, 1, 1, 2));
	run_all();
	send(job(2, 2, 1, 1, 2));
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 1);
	task(SL_CLUSTER_EVENT_STOP_FAILED, 1, 0, false);
	assert_int_equal(in(2, SL_TASK_PIPELINED), 0);
	cycle();
	assert_int_equal(s.count, 0);
	s.now += 61 * SL_S;
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 1);
}

/* The first victim does not stop in time. The other job is stopped instead, in the same cycle. The
 * first one runs on, and is no victim for a while. */
static void what_does_not_go_is_late(void **state)
{
	struct sl_cluster_event failed = {.type = SL_CLUSTER_EVENT_STOP_FAILED};
	uint64_t first;

	send(job(1, 3, 1, 1, 1));
	send(job(4, 3, 1, 1, 1));
	send(job(5, 1, 1, 1, 2));
	run_all();
	send(job(2, 2, 1, 1, 1));
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 1);
	first = failed.stop_failed.job = s.seen[0].stop.job;
	s.now += 119 * SL_S;
	cycle();
	assert_int_equal(s.count, 0);
	s.now += SL_S;
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_LATE), 1);
	assert_int_equal(s.seen[0].late.job, first);
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 1);
	assert_int_equal(s.seen[1].stop.job, 5 - first);
	failed.stop_failed.spared_for = 300 * SL_S;
	send(failed);
	assert_int_equal(in(first, SL_TASK_RUNNING), 1);
	task(SL_CLUSTER_EVENT_TASK_ENDED, 5 - first, 0, true);
	cycle();
	assert_int_equal(in(2, SL_TASK_BINDING), 1);
	task(SL_CLUSTER_EVENT_TASK_RUNS, 2, 0, false);
	send(job(6, 2, 1, 1, 1));
	s.now += 290 * SL_S;
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 0);
	s.now += 11 * SL_S;
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 1);
	assert_int_equal(s.seen[0].stop.job, first);
}

/* As in CONFIG; and since the time that was told, whichever job was announced first. */
static void late_counts_from_the_order(void **state)
{
	struct sl_cluster_event stops = {.type = SL_CLUSTER_EVENT_TASK_STOPS};
	struct sl_cluster_event config = {.type = SL_CLUSTER_EVENT_CONFIG};

	config.config.stop_within = 10 * SL_S;
	send(config);
	send(job(1, 1, 1, 1, 1));
	send(job(2, 2, 1, 1, 1));
	run_all();
	stops.task_stops.job = 1;
	stops.task_stops.ago = SL_S;
	send(stops);
	stops.task_stops.job = 2;
	stops.task_stops.ago = 8 * SL_S;
	send(stops);
	s.now += 2 * SL_S;
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_LATE), 1);
	assert_int_equal(s.seen[0].late.job, 2);
	s.now += 7 * SL_S;
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_LATE), 1);
	assert_int_equal(s.seen[0].late.job, 1);
}

/* After a restart: a task that was found is spared as before. */
static void is_told_how_long_it_is_spared(void **state)
{
	struct sl_cluster_event stays = job(2, 3, 1, 1, 2);
	struct sl_cluster_event runs = {.type = SL_CLUSTER_EVENT_TASK_RUNS};

	send(job(1, 1, 1, 1, 1));
	run_all();
	send(stays);
	runs.task_runs.job = runs.task_runs.node = 2;
	runs.task_runs.gpu_mask = 3;
	runs.task_runs.spared_for = 30 * SL_S;
	send(runs);
	assert_int_equal(
		sl_cluster_task(s.cluster, 2, 0).spared_until, s.now + 30 * SL_S);
	send(job(4, 1, 1, 1, 2));
	run_all();
	send(job(5, 2, 1, 1, 2));
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 0);
	s.now += 31 * SL_S;
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 1);
	assert_int_equal(s.seen[0].stop.job, 2);
}

/* Spans beyond all time never end; they are not over at once. */
static void waits_for_ever_if_told(void **state)
{
	struct sl_cluster_event runs = {.type = SL_CLUSTER_EVENT_TASK_RUNS};

	send(job(1, 1, 1, 1, 1));
	runs.task_runs.job = runs.task_runs.node = runs.task_runs.gpu_mask = 1;
	runs.task_runs.spared_for = SL_NS_NEVER;
	send(runs);
	assert_int_equal(sl_cluster_task(s.cluster, 1, 0).spared_until, SL_NS_NEVER);
}

/* The caller's order counts, whatever order jobs are told in. */
static void keeps_the_callers_order(void **state)
{
	struct sl_cluster_event late = job(1, 1, 1, 1, 2), early = job(2, 1, 1, 1, 2);

	send(job(3, 2, 2, 2, 2));
	run_all();
	late.job_add.order = 20;
	early.job_add.order = 10;
	send(late);
	send(early);
	task(SL_CLUSTER_EVENT_TASK_ENDED, 3, 0, false);
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_BIND), 1);
	assert_int_equal(s.seen[0].bind.job, 2);
}

/* --- GPUs that are named. --- */

/* Of the four GPUs, those of node 2 are the last two. */
static void number_gpus(void)
{
	struct sl_cluster_event second = node_put(2);

	second.node_put.first = 2;
	send(second);
}

/* The GPUs of a task that stands, as bits of `only`. */
static uint32_t gpus_of(uint64_t id)
{
	struct sl_cluster_task_view at = sl_cluster_task(s.cluster, id, 0);

	return at.place.gpu_mask << (at.node == 2 ? 2 : 0);
}

static void a_job_gets_the_gpu_that_it_names(void **state)
{
	number_gpus();
	for (uint32_t bit = 4; bit--;) {
		struct sl_cluster_event event = job(10 + bit, 1, 1, 1, 1);

		event.job_add.need.only = 1u << bit;
		send(event);
		run_all();
		assert_int_equal(gpus_of(10 + bit), 1u << bit);
	}
}

/* Of four jobs that have more than their project's quota, the one on the named GPU goes, whichever
 * that is: without a name it would always be the youngest. */
static void takes_from_the_named_gpu(void **state)
{
	number_gpus();
	for (uint64_t id = 10; id < 14; id++) {
		struct sl_cluster_event event = job(id, 2, 1, 1, 1);

		event.job_add.flags |= SL_JOB_PARKS;
		send(event);
		run_all();
	}
	for (uint64_t id = 10; id < 12; id++) {
		struct sl_cluster_event event = job(id + 10, 1, 1, 1, 1);
		uint32_t gpu = gpus_of(id);

		assert_int_equal(__builtin_popcount(gpu), 1);
		event.job_add.need.only = gpu;
		send(event);
		cycle();
		assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 1);
		assert_int_equal(in(id, SL_TASK_RELEASING), 1);
		assert_int_equal(in(id + 10, SL_TASK_PIPELINED), 1);
		answer();
		run_all();
		assert_int_equal(gpus_of(id + 10), gpu);
	}
}

/* The named GPU is full of what must not go: nothing on the others goes for it. */
static void takes_nothing_from_other_gpus(void **state)
{
	struct sl_cluster_event event = job(10, 2, 1, 1, 1);
	struct sl_pending_because because;
	uint32_t gpu;

	number_gpus();
	event.job_add.flags = 0;
	send(event);
	run_all();
	gpu = gpus_of(10);
	send(job(11, 3, 2, 1, 1));
	run_all();
	event = job(20, 1, 1, 1, 1);
	event.job_add.need.only = gpu;
	send(event);
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 0);
	because = sl_cluster_job(s.cluster, 20).because;
	assert_int_equal(because.reason, SL_PENDING_NO_ROOM);
	assert_int_equal(because.wanted, 1000);
	assert_int_equal(because.available, 0);
}

/* Which GPU will open is not known, so only a job that names none of them is refused. */
static void waits_while_the_named_gpu_is_shut(void **state)
{
	struct sl_cluster_event event = node_put(2);

	event.node_put.first = 2;
	event.node_put.shut = 2;
	send(event);
	event = job(10, 1, 1, 1, 1);
	event.job_add.need.only = 1u << 4;
	send(event);
	assert_int_equal(seen(SL_CLUSTER_ACTION_REFUSE_JOB), 1);
	event.job_add.need.only = 1u << 3;
	send(event);
	assert_int_equal(s.count, 0);
	run_all();
	assert_int_equal(in(10, SL_TASK_PENDING), 1);
	assert_int_equal(sl_cluster_job(s.cluster, 10).because.reason, SL_PENDING_NEVER);
	number_gpus();
	run_all();
	assert_int_equal(gpus_of(10), 1u << 3);
}

/* --- GPUs that are shut. --- */

static struct sl_cluster_event shut_at(uint64_t node, uint32_t gpus)
{
	struct sl_cluster_event event = node_put(node);

	event.node_put.shut = gpus;
	return event;
}

/* What runs there stays until it is stopped, and starts again elsewhere; then it is open again. */
static void no_task_goes_to_a_shut_gpu(void **state)
{
	struct sl_cluster_task_view at;

	send(job(1, 1, 1, 1, 2));
	run_all();
	at = sl_cluster_task(s.cluster, 1, 0);
	send(shut_at(at.node, 1));
	assert_int_equal(in(1, SL_TASK_RUNNING), 1);
	assert_int_equal(sl_cluster_totals(s.cluster).capacity.of[SL_RES_GPU], 3000);
	task(SL_CLUSTER_EVENT_TASK_STOPS, 1, 0, false);
	assert_int_equal(in(1, SL_TASK_RELEASING), 1);
	send(job(2, 1, 2, 1, 1));
	task(SL_CLUSTER_EVENT_TASK_ENDED, 1, 0, true);
	run_all();
	run_all();
	assert_int_equal(in(1, SL_TASK_RUNNING), 1);
	assert_int_not_equal(sl_cluster_task(s.cluster, 1, 0).node, at.node);
	assert_int_equal(in(2, SL_TASK_RUNNING), 1);
	for (uint32_t i = 0; i < 2; i++)
		assert_true(sl_cluster_task(s.cluster, 2, i).state != SL_TASK_RUNNING ||
			    sl_cluster_task(s.cluster, 2, i).place.gpu_mask == 2);
	send(shut_at(at.node, 0));
	run_all();
	assert_int_equal(in(2, SL_TASK_RUNNING), 2);
}

/* Its memory was on the lost GPU's host file: it starts anew where there is room. */
static void a_parked_task_is_dropped(void **state)
{
	struct sl_cluster_event parks = job(1, 3, 1, 1, 2), second = job(2, 2, 1, 1, 2);
	uint64_t node;

	parks.job_add.flags |= SL_JOB_PARKS;
	parks.job_add.park_mib = 100;
	second.job_add.flags = 0;
	send(parks);
	send(job(3, 1, 1, 1, 2));
	run_all();
	send(second);
	run_all();
	run_all();
	assert_true(sl_cluster_task(s.cluster, 1, 0).parked);
	node = sl_cluster_task(s.cluster, 1, 0).node;
	send(shut_at(node, 3));
	task(SL_CLUSTER_EVENT_TASK_ENDED, 3, 0, false);
	run_all();
	assert_true(sl_cluster_task(s.cluster, 1, 0).parked);
	task(SL_CLUSTER_EVENT_TASK_STOPS, 1, 0, false);
	run_all();
	assert_int_equal(
		sl_cluster_job(s.cluster, 1).because.reason, SL_PENDING_GIVEN_UP);
	task(SL_CLUSTER_EVENT_TASK_ENDED, 1, 0, true);
	run_all();
	assert_int_equal(in(1, SL_TASK_RUNNING), 1);
	assert_int_not_equal(sl_cluster_task(s.cluster, 1, 0).node, node);
}

/* It is stopped for good reason while it is being parked: nothing of it stays. */
static void a_parking_task_that_is_stopped_is_not_parked(void **state)
{
	struct sl_cluster_event parks = job(1, 3, 1, 1, 2);

	parks.job_add.flags |= SL_JOB_PARKS;
	parks.job_add.park_mib = 100;
	send(parks);
	send(job(3, 1, 1, 1, 2));
	run_all();
	send(job(2, 2, 1, 1, 2));
	cycle();
	assert_int_equal(s.seen[0].stop.how, SL_STOP_PARK);
	task(SL_CLUSTER_EVENT_TASK_STOPS, 1, 0, false);
	task(SL_CLUSTER_EVENT_TASK_ENDED, 1, 0, true);
	assert_false(sl_cluster_task(s.cluster, 1, 0).parked);
	assert_int_equal(in(1, SL_TASK_PENDING), 1);
}

/* A promise on a GPU that is lost is withdrawn; more GPUs come and are used. */
static void promises_go_with_the_gpu(void **state)
{
	struct sl_cluster_event more = node_put(1);

	send(job(1, 3, 1, 1, 2));
	send(job(3, 1, 1, 1, 2));
	run_all();
	send(job(2, 2, 1, 1, 2));
	cycle();
	assert_int_equal(in(2, SL_TASK_PIPELINED), 1);
	send(shut_at(sl_cluster_task(s.cluster, 2, 0).node, 2));
	assert_int_equal(in(2, SL_TASK_PIPELINED), 0);
	more.node_put.gpus = 4;
	more.node_put.shut = 3;
	send(more);
	run_all();
	assert_int_equal(in(2, SL_TASK_RUNNING), 1);
	assert_int_equal(sl_cluster_task(s.cluster, 2, 0).place.gpu_mask, 12);
	/* Fewer than before: those beyond are shut. */
	send(node_put(1));
	assert_int_equal(sl_cluster_totals(s.cluster).capacity.of[SL_RES_GPU], 3000);
}

static void outlives_its_nodes(void **state)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_NODE_LOST};

	send(job(1, 1, 1, 1, 2));
	run_all();
	event.node_lost.node = sl_cluster_task(s.cluster, 1, 0).node;
	send(event);
	assert_int_equal(in(1, SL_TASK_PENDING), 1);
	run_all();
	assert_int_equal(in(1, SL_TASK_RUNNING), 1);
	assert_int_equal(sl_cluster_totals(s.cluster).capacity.of[SL_RES_GPU], 2000);
}

static void ends_stale_gangs(void **state)
{
	struct sl_cluster_event failed = {.type = SL_CLUSTER_EVENT_TASK_ENDED};

	send(job(1, 1, 3, 3, 1));
	run_all();
	failed.task_ended.job = 1;
	failed.task_ended.failed = 1;
	send(failed);
	cycle();
	assert_int_equal(s.count, 0);
	s.now += 60 * SL_S;
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 2);
	assert_int_equal(s.seen[0].stop.how, SL_STOP_STALE);
}

static void memory_is_used_again(void **state)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_REMOVE};
	size_t used = 0;

	for (uint64_t id = 1; id < 2000; id++) {
		send(job(id, 1 + id % 3, 1 + id % 7, 1, 1));
		run_all();
		event.job_remove.job = id > 8 ? id - 8 : 0;
		send(event);
		if (id == 1000)
			used = sl_arena_used_bytes(s.arena);
	}
	assert_int_equal(sl_arena_used_bytes(s.arena), used);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(refuses_jobs),
		TEST(refusals_have_numbers),
		TEST(refuses_projects),
		TEST(clock_goes_backwards),
		TEST(ignores_strays),
		TEST(starts_gangs_whole),
		TEST(keeps_limits_and_quotas),
		TEST(limits_count_what_is_stopping),
		TEST(promises_wait_for_the_limit),
		TEST(waits_for_what_is_stopping),
		TEST(does_nothing_twice),
		TEST(takes_back_in_quota_only),
		TEST(parks_where_it_fits),
		TEST(takes_in_who_is_parked),
		TEST(parks_by_what_was_measured),
		TEST(counts_by_the_new_size),
		TEST(comes_back_where_it_was),
		TEST(preempts_lower_priority_only),
		TEST(moves_who_finds_a_place),
		TEST(tries_another_node),
		TEST(tries_all_nodes_again),
		TEST(spares_who_cannot_be_stopped),
		TEST(what_does_not_go_is_late),
		TEST(late_counts_from_the_order),
		TEST(is_told_how_long_it_is_spared),
		TEST(keeps_the_callers_order),
		TEST(a_job_gets_the_gpu_that_it_names),
		TEST(takes_from_the_named_gpu),
		TEST(takes_nothing_from_other_gpus),
		TEST(waits_while_the_named_gpu_is_shut),
		TEST(no_task_goes_to_a_shut_gpu),
		TEST(a_parked_task_is_dropped),
		TEST(a_parking_task_that_is_stopped_is_not_parked),
		TEST(promises_go_with_the_gpu),
		TEST(waits_for_ever_if_told),
		TEST(outlives_its_nodes),
		TEST(ends_stale_gangs),
		TEST(memory_is_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
