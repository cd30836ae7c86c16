#include "cluster_play.h"

/*
 * The victims for another job are the set that frees least beyond what is wanted, and of equal ones
 * the smallest; here that set is found by trying all sets. One node of 4 GPUs; all jobs on it
 * borrow and can be parked, so that none moves.
 */

#define GPUS 4
#define JOBS 9

struct stand {
	uint32_t mask, milli; /* of each GPU of the mask */
};

static struct {
	uint64_t state;
	struct stand job[JOBS];
	uint32_t jobs, left[GPUS];
} round_;

static uint32_t draw(uint32_t below)
{
	round_.state =
		round_.state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)((round_.state >> 33) % below);
}

static void open_node(void)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_NODE_PUT};

	s.arena = sl_arena_new();
	s.cluster = sl_cluster_new(s.arena, 1, 2);
	s.now = 1000 * SL_S;
	event.node_put.node = 1;
	event.node_put.cpu_milli = 64000;
	event.node_put.memory_mib = 65536;
	event.node_put.gpus = GPUS;
	event.node_put.gpu_mib = 40960;
	event.node_put.pool_mib = 1000000;
	send(event);
	put_project(1, 0, SL_QUOTA_ALL, SL_QUOTA_ALL);
	put_project(2, 0, 0, SL_QUOTA_ALL);
	for (uint32_t g = 0; g < GPUS; g++)
		round_.left[g] = SL_FIT_WHOLE;
	round_.jobs = 0;
}

/* A job of the borrowing project is found to run on some GPUs, where there is room. */
static void stand(void)
{
	static const uint32_t shares[] = {100, 200, 300, 400, 500, 700, 1000, 1000};
	struct stand *at = &round_.job[round_.jobs];
	struct sl_cluster_event event = job(round_.jobs + 1, 2, 1, 1, 1), runs = {0};
	uint32_t first = draw(GPUS), count = 1 + draw(2);

	*at = (struct stand){.milli = shares[draw(SL_ARRAY_LEN(shares))]};
	for (uint32_t g = first; g < GPUS && count; g++, count--) {
		if (round_.left[g] >= at->milli)
			at->mask |= 1u << g;
	}
	if (!at->mask)
		return;
	event.job_add.flags |= SL_JOB_PARKS;
	event.job_add.park_mib = 1;
	event.job_add.need.gpus = (uint16_t)__builtin_popcount(at->mask);
	event.job_add.need.gpu_milli = (uint16_t)at->milli;
	send(event);
	runs.type = SL_CLUSTER_EVENT_TASK_RUNS;
	runs.task_runs.job = event.job_add.job;
	runs.task_runs.node = 1;
	runs.task_runs.gpu_mask = at->mask;
	send(runs);
	for (uint32_t g = 0; g < GPUS; g++)
		round_.left[g] -= at->mask >> g & 1 ? at->milli : 0;
	round_.jobs++;
}

static bool has_room(uint32_t gone, uint32_t gpus, uint32_t milli)
{
	uint32_t fit = 0;

	for (uint32_t g = 0; g < GPUS; g++) {
		uint32_t left = round_.left[g];

		for (uint32_t j = 0; j < round_.jobs; j++) {
			if (gone >> j & 1 && round_.job[j].mask >> g & 1)
				left += round_.job[j].milli;
		}
		fit += left >= milli;
	}
	return fit >= gpus;
}

/* GPUs that the set frees and its number of jobs, as one number. */
static uint32_t cost_of(uint32_t gone)
{
	uint32_t freed = 0;

	for (uint32_t j = 0; j < round_.jobs; j++) {
		if (gone >> j & 1)
			freed += (uint32_t)__builtin_popcount(round_.job[j].mask) *
				 round_.job[j].milli;
	}
	return freed * 100 + (uint32_t)__builtin_popcount(gone);
}

static void the_least_is_freed(void **state)
{
	uint32_t taken = 0;

	round_.state = 11;
	for (uint32_t round = 0; round < 1500; round++) {
		struct sl_cluster_event wanted = job(100, 1, 1, 1, 1);
		uint32_t gpus = 1 + draw(3), milli = 1000, best = UINT32_MAX, gone = 0;

		if (gpus == 1)
			milli = 100 * (1 + draw(10));
		open_node();
		for (uint32_t i = 0; i < JOBS; i++)
			stand();
		for (uint32_t set = 0; set < 1u << round_.jobs; set++) {
			if (has_room(set, gpus, milli) && cost_of(set) < best)
				best = cost_of(set);
		}
		wanted.job_add.need.gpus = (uint16_t)gpus;
		wanted.job_add.need.gpu_milli = (uint16_t)milli;
		send(wanted);
		cycle();
		for (uint32_t i = 0; i < s.count; i++) {
			if (s.seen[i].type == SL_CLUSTER_ACTION_STOP)
				gone |= 1u << (s.seen[i].stop.job - 1);
		}
		if (cost_of(gone) != best)
			fail_msg("round %u, %u GPUs of %u: %u tasks go that have %u, and "
				 "%u that have %u would do",
				round, gpus, milli, cost_of(gone) % 100,
				cost_of(gone) / 100, best % 100, best / 100);
		taken += gone != 0;
		(void)close_machine(state);
	}
	assert_in_range(taken, 500, 1500);
}

/* A half GPU goes before a whole one; the lower priority of its project before either. */
static void half_before_whole(void **state)
{
	static const struct {
		const char *name;
		int32_t half, whole;
		uint64_t goes;
	} rows[] = {{"equals", 50, 50, 1}, {"the whole is worth less", 50, 40, 2},
		{"the half is worth less", 40, 50, 1}};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_cluster_event event = job(1, 3, 1, 1, 1);

		(void)open_machine(state);
		event.job_add.flags |= SL_JOB_PARKS;
		event.job_add.need.gpu_milli = 500;
		event.job_add.priority = rows[i].half;
		send(event);
		event.job_add.job = 2;
		event.job_add.need.gpu_milli = 1000;
		event.job_add.priority = rows[i].whole;
		send(event);
		/* Nothing else may go. */
		event = job(3, 2, 1, 1, 2);
		event.job_add.flags = 0;
		send(event);
		run_all();
		send(job(4, 1, 1, 1, 1));
		cycle();
		assert_row_u64(rows[i].name, seen(SL_CLUSTER_ACTION_STOP), 1);
		assert_row_u64(rows[i].name, s.seen[0].stop.job, rows[i].goes);
		(void)close_machine(state);
	}
}

/* What a start has to keep: the limit of its project and of each project above, and, for a job that
 * cannot be preempted, their quotas. The same for every resource. */
static void all_resources_have_limits(void **state)
{
	static const struct {
		const char *name;
		enum sl_resource which;
		bool above, fixed;
		enum sl_pending_reason reason;
	} rows[] = {
		{"GPUs", SL_RES_GPU, false, false, SL_PENDING_LIMIT},
		{"cores", SL_RES_CPU, false, false, SL_PENDING_LIMIT},
		{"memory", SL_RES_MEMORY, false, false, SL_PENDING_LIMIT},
		{"time", SL_RES_COMPUTE, false, false, SL_PENDING_LIMIT},
		{"GPUs above", SL_RES_GPU, true, false, SL_PENDING_LIMIT},
		{"cores above", SL_RES_CPU, true, false, SL_PENDING_LIMIT},
		{"memory above", SL_RES_MEMORY, true, false, SL_PENDING_LIMIT},
		{"GPUs for good", SL_RES_GPU, false, true, SL_PENDING_QUOTA},
		{"cores for good", SL_RES_CPU, false, true, SL_PENDING_QUOTA},
		{"memory for good", SL_RES_MEMORY, false, true, SL_PENDING_QUOTA},
		{"time for good", SL_RES_COMPUTE, false, true, SL_PENDING_QUOTA},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_cluster_event put = {.type = SL_CLUSTER_EVENT_PROJECT_PUT};
		struct sl_project_rules *rules = &put.project_put.rules;
		struct sl_cluster_event last;
		/* One task's: a core, 1024 MiB, a GPU, or its time. */
		int64_t two = rows[i].which == SL_RES_MEMORY ? 2048 : 2000;

		(void)open_machine(state);
		for (int r = 0; r < SL_RESOURCES; r++) {
			rules->quota.of[r] = rules->limit.of[r] = SL_QUOTA_ALL;
			rules->weight[r] = 1;
		}
		*(rows[i].fixed ? &rules->quota : &rules->limit) = (struct sl_quantity){
			{SL_QUOTA_ALL, SL_QUOTA_ALL, SL_QUOTA_ALL, SL_QUOTA_ALL}};
		(rows[i].fixed ? &rules->quota : &rules->limit)->of[rows[i].which] = two;
		put.project_put.project = 3;
		send(put);
		if (rows[i].above)
			put_project(4, 3, SL_QUOTA_ALL, SL_QUOTA_ALL);
		for (uint64_t id = 1; id <= 3; id++) {
			struct sl_cluster_event event =
				job(id, rows[i].above ? 4 : 3, 1, 1, 1);

			sl_need_add_compute(&event.job_add.need, SL_FIT_WHOLE);
			if (rows[i].fixed)
				event.job_add.flags = 0;
			/* Older ones first; a higher priority may not pass either. */
			event.job_add.priority = id == 3 ? 100 : 50;
			send(event);
			run_all();
			if (id < 3)
				assert_row_u64(rows[i].name, in(id, SL_TASK_RUNNING), 1);
		}
		/* A job that may preempt takes the place of one; no other job gets in. */
		assert_row_u64(rows[i].name,
			in(1, SL_TASK_RUNNING) + in(2, SL_TASK_RUNNING) +
				in(3, SL_TASK_RUNNING) + in(3, SL_TASK_PIPELINED),
			2);
		if (rows[i].fixed)
			assert_row_u64(rows[i].name,
				sl_cluster_job(s.cluster, 3).because.reason,
				rows[i].reason);
		last = job(4, rows[i].above ? 4 : 3, 1, 1, 1);
		sl_need_add_compute(&last.job_add.need, SL_FIT_WHOLE);
		send(last);
		cycle();
		if (!rows[i].fixed)
			assert_row_u64(rows[i].name,
				sl_cluster_job(s.cluster, 4).because.reason,
				rows[i].reason);
		(void)close_machine(state);
	}
}

/* A quota of cores or memory is taken back as one of GPUs is. */
static void all_resources_are_taken_back(void **state)
{
	for (int r = 0; r < SL_RESOURCES; r++) {
		struct sl_cluster_event put = {.type = SL_CLUSTER_EVENT_PROJECT_PUT};
		struct sl_project_rules *rules = &put.project_put.rules;
		struct sl_cluster_event event =
			job(1, 2, 1, 1, r == SL_RES_GPU || r == SL_RES_COMPUTE ? 2 : 0);

		(void)open_machine(state);
		for (uint64_t project = 1; project <= 2; project++) {
			for (int i = 0; i < SL_RESOURCES; i++) {
				rules->quota.of[i] = rules->limit.of[i] = SL_QUOTA_ALL;
				rules->weight[i] = 1;
			}
			rules->quota.of[r] = project == 2          ? 0
					     : r == SL_RES_GPU     ? 4000
					     : r == SL_RES_COMPUTE ? 4000
					     : r == SL_RES_CPU     ? 32000
								   : 131072;
			put.project_put.project = project;
			send(put);
		}
		event.job_add.need.cpu_milli = r == SL_RES_CPU ? 16000 : 0;
		event.job_add.need.memory_mib = r == SL_RES_MEMORY ? 65536 : 0;
		if (r == SL_RES_COMPUTE)
			sl_need_add_compute(&event.job_add.need, SL_FIT_WHOLE);
		for (uint64_t id = 1; id <= 2; id++) {
			event.job_add.job = id;
			send(event);
		}
		run_all();
		assert_int_equal(in(1, SL_TASK_RUNNING) + in(2, SL_TASK_RUNNING), 2);
		event.job_add.job = 3;
		event.job_add.project = 1;
		send(event);
		cycle();
		assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 1);
		assert_int_equal(in(3, SL_TASK_PIPELINED), 1);
		(void)close_machine(state);
	}
}

/* A job with a delay waits for room first; one without, which wants the same, does not wait for
 * it. */
static void waits_before_others_go(void **state)
{
	struct sl_cluster_event event = job(2, 1, 1, 1, 1);
	sl_ns came;

	send(job(1, 3, 3, 1, 1));
	run_all();
	send(job(9, 2, 1, 1, 1));
	run_all();
	event.job_add.preempt_delay = 60 * SL_S;
	send(event);
	came = s.now;
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 0);
	assert_int_equal(
		sl_cluster_job(s.cluster, 2).because.reason, SL_PENDING_PREEMPT_DELAY);
	s.now = came + 59 * SL_S;
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 0);
	assert_in_range(sl_cluster_job(s.cluster, 2).because.wanted, SL_S - SL_MS, SL_S);
	s.now = came + 60 * SL_S;
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 1);
	assert_int_equal(s.seen[0].stop.other, 2);
	answer();
	/* It has already waited for some of it elsewhere. */
	event.job_add.job = 3;
	event.job_add.waited = 59 * SL_S;
	send(event);
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 0);
	send(job(4, 2, 1, 1, 1));
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 1);
	assert_int_equal(s.seen[0].stop.other, 4);
}

/* A GPU that comes free by itself is taken at once. */
static void a_delay_is_for_others(void **state)
{
	struct sl_cluster_event event = job(2, 1, 1, 1, 1);

	send(job(1, 3, 3, 1, 1));
	send(job(9, 2, 1, 1, 1));
	run_all();
	event.job_add.preempt_delay = SL_NS_NEVER;
	send(event);
	cycle();
	assert_int_equal(s.count, 0);
	task(SL_CLUSTER_EVENT_TASK_ENDED, 9, 0, false);
	cycle();
	assert_int_equal(in(2, SL_TASK_BINDING), 1);
}

/* Each gang has its own grace period: 10 s, the cluster's 60 s, none. */
static void a_gang_says_when_it_is_stale(void **state)
{
	static const struct {
		const char *name;
		sl_ns grace, stale_at;
	} rows[] = {{"its own", 10 * SL_S, 10 * SL_S}, {"the cluster's", 0, 60 * SL_S},
		{"never", SL_NS_NEVER, SL_NS_NEVER}};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_cluster_event event = job(1, 1, 2, 2, 1);
		struct sl_cluster_event part = {.type = SL_CLUSTER_EVENT_TASKS_ADD};
		struct sl_cluster_event ended = {.type = SL_CLUSTER_EVENT_TASK_ENDED};
		sl_ns gone;

		(void)open_machine(state);
		event.job_add.stale_grace = rows[i].grace;
		send(event);
		/* The part that is gone is the other one. */
		part.tasks_add.job = 1;
		part.tasks_add.tasks = part.tasks_add.least = 1;
		part.tasks_add.need = event.job_add.need;
		part.tasks_add.need.cpu_milli = 500;
		send(part);
		run_all();
		ended.task_ended.job = 1;
		ended.task_ended.task = 2;
		ended.task_ended.failed = 1;
		send(ended);
		assert_row_u64(rows[i].name,
			sl_cluster_job(s.cluster, 1).in[SL_TASK_RUNNING], 2);
		gone = s.now;
		s.now = gone + sl_min_u64(rows[i].stale_at, 1000 * SL_S) - 2 * SL_MS;
		cycle();
		assert_row_u64(rows[i].name, seen(SL_CLUSTER_ACTION_STOP), 0);
		s.now += SL_S;
		cycle();
		assert_row_u64(rows[i].name, seen(SL_CLUSTER_ACTION_STOP),
			rows[i].stale_at == SL_NS_NEVER ? 0 : 2);
		(void)close_machine(state);
	}
}

/* One part of the job could run anywhere if other jobs were stopped; the other part only on node 3.
 * That node is closed, lost, or has a job that cannot be stopped. So no job is stopped, there or
 * elsewhere. */
static void nobody_goes_where_it_cannot_run(void **state)
{
	static const char *const rows[] = {"closed", "lost", "taken", "free to take"};

	for (uint32_t how = 0; how < SL_ARRAY_LEN(rows); how++) {
		struct sl_cluster_event third = {.type = SL_CLUSTER_EVENT_NODE_PUT},
					event;
		struct sl_cluster_event part = {.type = SL_CLUSTER_EVENT_TASKS_ADD};
		uint32_t stops = 0;

		(void)open_machine(state);
		third.node_put.node = 3;
		third.node_put.cpu_milli = 16000;
		third.node_put.memory_mib = 65536;
		third.node_put.gpus = 1;
		third.node_put.gpu_mib = 40960;
		third.node_put.model = 5;
		send(third);
		event = job(7, how == 2 ? 2 : 3, 1, 1, 1);
		event.job_add.flags = how == 2 ? 0 : SL_JOB_PREEMPTIBLE;
		event.job_add.need.models = 1u << 5;
		send(event);
		run_all();
		send(job(1, 3, 2, 1, 1));
		event = job(8, 2, 2, 2, 1);
		event.job_add.need.models = 1u << 0;
		event.job_add.flags = 0;
		send(event);
		run_all();
		send(job(2, 1, 1, 1, 1));
		part.tasks_add.job = 2;
		part.tasks_add.tasks = part.tasks_add.least = 1;
		part.tasks_add.need = event.job_add.need;
		part.tasks_add.need.models = 1u << 5;
		send(part);
		third.node_put.closed = how == 0;
		/* All events of nodes begin with the node. */
		if (how == 1)
			third.type = SL_CLUSTER_EVENT_NODE_LOST;
		send(third);
		cycle();
		for (uint32_t i = 0; i < s.count; i++)
			stops += s.seen[i].type == SL_CLUSTER_ACTION_STOP &&
				 s.seen[i].stop.other == 2;
		assert_row_u64(rows[how], stops, how == 3 ? 2 : 0);
		(void)close_machine(state);
	}
}

/* A part of which none must run: the job runs without it, and it comes one by one. */
static void a_part_may_be_extra(void **state)
{
	struct sl_cluster_event part = {.type = SL_CLUSTER_EVENT_TASKS_ADD};
	struct sl_cluster_event event = job(1, 1, 3, 3, 1);

	send(event);
	part.tasks_add.job = 1;
	part.tasks_add.tasks = 2;
	part.tasks_add.least = SL_CLUSTER_LEAST_NONE;
	part.tasks_add.need = event.job_add.need;
	part.tasks_add.need.cpu_milli = 500;
	send(part);
	run_all();
	assert_int_equal(in(1, SL_TASK_RUNNING), 4);
	assert_int_equal(sl_cluster_job(s.cluster, 1).least, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_least_is_freed),
		cmocka_unit_test(half_before_whole),
		cmocka_unit_test_setup_teardown(
			waits_before_others_go, open_machine, close_machine),
		cmocka_unit_test_setup_teardown(
			a_delay_is_for_others, open_machine, close_machine),
		cmocka_unit_test(a_gang_says_when_it_is_stale),
		cmocka_unit_test_setup_teardown(
			a_part_may_be_extra, open_machine, close_machine),
		cmocka_unit_test(nobody_goes_where_it_cannot_run),
		cmocka_unit_test(all_resources_have_limits),
		cmocka_unit_test(all_resources_are_taken_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
