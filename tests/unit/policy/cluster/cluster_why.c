#include "cluster_play.h"

#include "policy/quota/explain.h"

/*
 * Why a job waits, and what would become of one that came now. Every forecast is also held against
 * what happens when the job does come.
 */

static struct sl_pending_because why(uint64_t id)
{
	return sl_cluster_job(s.cluster, id).because;
}

static const char *name_of(void *context, uint64_t id)
{
	static const char *const names[] = {"?", "vision", "text", "guests", "small"};

	return id < SL_ARRAY_LEN(names) ? names[id] : "?";
}

static struct sl_cluster_forecast ask(struct sl_cluster_event event)
{
	struct sl_error err = {{0}};
	struct sl_cluster_forecast forecast =
		sl_cluster_forecast(s.cluster, s.now, &event);

	if (sl_cluster_check(s.cluster, &err))
		fail_msg("after a forecast: %s", err.text);
	return forecast;
}

static void assert_says(const struct sl_cluster_forecast *forecast, const char *wanted)
{
	char text[SL_FORECAST_MAX];

	assert_row_text("forecast",
		sl_forecast_text(forecast, name_of, NULL, text, sizeof(text)), wanted);
}

/* --- Why it waits. --- */

static void says_what_there_is_too_little_of(void **state)
{
	struct sl_cluster_event event = job(1, 1, 2, 2, 1);

	/* Half of each node's cores, and a GPU of each. */
	event.job_add.need.cpu_milli = 12000;
	event.job_add.flags = 0;
	send(event);
	run_all();
	send(job(2, 1, 1, 1, 2));
	event = job(3, 2, 1, 1, 1);
	event.job_add.need.cpu_milli = 8000;
	send(event);
	event = job(4, 2, 1, 1, 1);
	event.job_add.need.memory_mib = 65536;
	send(event);
	event = job(5, 2, 1, 1, 1);
	event.job_add.need.cpu_milli = 15000;
	event.job_add.need.gpus = 0;
	send(event);
	cycle();
	assert_int_equal(why(2).reason, SL_PENDING_FRAGMENTS);
	assert_int_equal(why(2).available, 2000);
	assert_int_equal(why(3).reason, SL_PENDING_FRAGMENTS);
	assert_int_equal(why(3).resource, SL_RES_CPU);
	assert_int_equal(why(3).available, 8000);
	assert_int_equal(why(4).resource, SL_RES_MEMORY);
	assert_int_equal(why(5).reason, SL_PENDING_NO_ROOM);
	assert_int_equal(why(5).resource, SL_RES_CPU);
	assert_int_equal(why(5).wanted, 15000);
	assert_int_equal(why(5).available, 8000);
}

static void says_that_it_never_will(void **state)
{
	struct sl_cluster_event lost = {.type = SL_CLUSTER_EVENT_NODE_LOST};

	send(job(1, 1, 5, 5, 1));
	send(job(2, 3, 4, 4, 1));
	send(job(3, 1, 1, 1, 2));
	run_all();
	assert_int_equal(why(1).reason, SL_PENDING_GANG_NEVER);
	assert_int_equal(why(1).wanted, 5);
	assert_int_equal(why(1).available, 4);
	assert_int_equal(why(2).reason, SL_PENDING_OVER_LIMIT);
	assert_int_equal(why(2).wanted, 4000);
	assert_int_equal(why(2).available, 3000);
	for (lost.node_lost.node = 1; lost.node_lost.node <= 2; lost.node_lost.node++)
		send(lost);
	cycle();
	assert_int_equal(why(3).reason, SL_PENDING_NEVER);
	assert_int_equal(why(3).available, 0);
}

static void says_who_came_before(void **state)
{
	struct sl_cluster_event strong = job(1, 3, 1, 1, 1);

	strong.job_add.priority = 75;
	for (uint64_t id = 1; id <= 3; id++) {
		strong.job_add.job = id;
		send(strong);
	}
	run_all();
	send(job(4, 3, 1, 1, 1));
	send(job(5, 3, 2, 2, 1));
	send(job(6, 3, 1, 1, 1));
	cycle();
	assert_int_equal(why(4).reason, SL_PENDING_PRIORITY);
	assert_int_equal(why(4).project, 3);
	assert_int_equal(why(4).ahead, 1);
	assert_int_equal(why(5).reason, SL_PENDING_PRIORITY);
	assert_int_equal(why(5).ahead, 2);
	/* It is true: with a higher one it runs. */
	strong = job(7, 3, 1, 1, 1);
	strong.job_add.priority = 76;
	send(strong);
	cycle();
	assert_int_equal(in(7, SL_TASK_PIPELINED), 1);
	assert_int_equal(why(7).reason, SL_PENDING_PROMISED);
}

/* Jobs, and not kinds of jobs. */
static void counts_the_jobs_before_it(void **state)
{
	send(job(1, 3, 3, 3, 1));
	run_all();
	for (uint64_t id = 2; id <= 4; id++)
		send(job(id, 3, 1, 1, 1));
	send(job(5, 3, 2, 2, 1));
	cycle();
	assert_int_equal(why(2).ahead, 0);
	assert_int_equal(why(4).ahead, 2);
	assert_int_equal(why(5).ahead, 3);
}

static void says_whose_runtime_it_waits_for(void **state)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_PROJECT_PUT};
	struct sl_project_rules *rules = &event.project_put.rules;

	for (int r = 0; r < SL_RESOURCES; r++) {
		rules->quota.of[r] = rules->limit.of[r] = SL_QUOTA_ALL;
		rules->weight[r] = 1;
	}
	rules->quota.of[SL_RES_GPU] = 0;
	rules->reclaim_min_runtime = 60 * SL_S;
	event.project_put.project = 3;
	send(event);
	send(job(1, 3, 4, 4, 1));
	run_all();
	send(job(2, 1, 1, 1, 1));
	s.now += 20 * SL_S;
	cycle();
	assert_int_equal(why(2).reason, SL_PENDING_RUNTIME);
	assert_true(why(2).would_reclaim);
	assert_int_equal(why(2).other, 3);
	assert_in_range(why(2).wanted, 39 * SL_S, 40 * SL_S);
	s.now += 40 * SL_S;
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 4);
}

static void says_that_it_would_reclaim(void **state)
{
	struct sl_cluster_event parks = job(1, 3, 1, 1, 2);

	parks.job_add.flags |= SL_JOB_PARKS;
	parks.job_add.park_mib = 20480;
	send(parks);
	send(job(4, 1, 2, 2, 1));
	run_all();
	send(job(2, 2, 1, 1, 2));
	cycle();
	assert_int_equal(why(2).reason, SL_PENDING_POOL);
	assert_int_equal(why(2).wanted, 20480);
	assert_int_equal(why(2).available, 10240);
	assert_true(why(2).would_reclaim);
	assert_int_equal(why(2).other, 3);
	/* Beyond its share nothing is, and it is said that way. */
	send(job(5, 2, 3, 3, 1));
	cycle();
	assert_int_equal(why(5).reason, SL_PENDING_SHARE);
	assert_false(why(5).would_reclaim);
}

/* Without others a project has all there is, and no quota would give it more. */
static void says_no_share_where_nobody_else_has_any(void **state)
{
	send(job(1, 2, 4, 4, 1));
	run_all();
	send(job(2, 2, 1, 1, 1));
	cycle();
	assert_int_equal(why(2).reason, SL_PENDING_NO_ROOM);
}

static void says_that_it_is_being_stopped(void **state)
{
	send(job(1, 3, 3, 3, 1));
	run_all();
	send(job(2, 1, 2, 2, 1));
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 3);
	task(SL_CLUSTER_EVENT_TASK_ENDED, 1, 0, true);
	assert_int_equal(why(1).reason, SL_PENDING_LEAVING);
	task(SL_CLUSTER_EVENT_TASK_ENDED, 1, 1, true);
	task(SL_CLUSTER_EVENT_TASK_ENDED, 1, 2, true);
	cycle();
	assert_int_not_equal(why(1).reason, SL_PENDING_LEAVING);
	assert_int_not_equal(why(1).reason, SL_PENDING_NONE);
}

/* --- What if. --- */

static void foresees_a_start(void **state)
{
	struct sl_cluster_forecast forecast = ask(job(1, 1, 2, 2, 1));

	assert_int_equal(forecast.fate, SL_FORECAST_RUNS);
	assert_says(&forecast,
		"it starts at once. Once it runs, other projects reclaim nothing from "
		"it: it is within the quota of project vision");
	/* No trace is left. */
	assert_int_equal(sl_cluster_totals(s.cluster).jobs, 0);
	forecast = ask(job(1, 1, 3, 3, 1));
	assert_int_equal(forecast.fate, SL_FORECAST_RUNS);
	assert_int_equal(forecast.above, 1000);
	assert_int_equal(forecast.by, 2);
	assert_says(&forecast,
		"it starts at once. Once it runs, 1 GPU of it would be above the quota "
		"of project vision: when project text wants its quota, it is "
		"terminated and queued again, to start from the beginning");
}

static void foresees_whom_it_takes_from(void **state)
{
	struct sl_cluster_event event = job(2, 1, 1, 1, 2);
	struct sl_cluster_forecast forecast;

	send(job(1, 3, 3, 1, 1));
	run_all();
	event.job_add.flags |= SL_JOB_PARKS;
	forecast = ask(event);
	assert_int_equal(forecast.fate, SL_FORECAST_TAKES);
	assert_int_equal(forecast.stops, 1);
	assert_int_equal(forecast.from, 3);
	assert_says(&forecast,
		"it starts once 1 task of project guests has been stopped for it. Once "
		"it runs, other projects reclaim nothing from it: it is within the "
		"quota of project vision");
	send(event);
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 1);
	assert_int_equal(in(2, SL_TASK_PIPELINED), 1);
	/* That place is promised now. */
	forecast = ask(job(3, 3, 1, 1, 2));
	assert_int_equal(forecast.fate, SL_FORECAST_WAITS);
	assert_int_equal(forecast.because.reason, SL_PENDING_LIMIT);
}

static void foresees_that_it_never_runs(void **state)
{
	static const struct {
		const char *name;
		uint64_t project;
		uint32_t tasks;
		uint16_t gpus;
		enum sl_pending_reason reason;
	} rows[] = {
		{"no project", 9, 1, 1, SL_PENDING_NO_PROJECT},
		{"no node", 1, 1, 3, SL_PENDING_NEVER},
		{"more than all nodes", 1, 5, 1, SL_PENDING_GANG_NEVER},
		{"more than the limit", 3, 4, 1, SL_PENDING_OVER_LIMIT},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_cluster_forecast forecast = ask(job(
			1, rows[i].project, rows[i].tasks, rows[i].tasks, rows[i].gpus));
		char text[SL_FORECAST_MAX];

		assert_row_u64(rows[i].name, forecast.fate, SL_FORECAST_NEVER);
		assert_row_u64(rows[i].name, forecast.because.reason, rows[i].reason);
		assert_row_contains(rows[i].name,
			sl_forecast_text(&forecast, name_of, NULL, text, sizeof(text)),
			"it cannot run: ");
	}
}

static void foresees_waiting(void **state)
{
	struct sl_cluster_event fixed = job(1, 1, 2, 2, 1);
	struct sl_cluster_forecast forecast;

	fixed.job_add.flags = 0;
	send(fixed);
	fixed.job_add.job = 2;
	fixed.job_add.project = 2;
	send(fixed);
	run_all();
	forecast = ask(job(3, 3, 1, 1, 1));
	assert_int_equal(forecast.fate, SL_FORECAST_WAITS);
	assert_int_equal(forecast.because.wanted, 1000);
	task(SL_CLUSTER_EVENT_TASK_STOPS, 1, 0, false);
	forecast = ask(job(3, 3, 1, 1, 1));
	assert_int_equal(forecast.fate, SL_FORECAST_FOLLOWS);
}

/* Events since the last cycle, and the order of the next one, count. */
static void foresees_who_comes_first(void **state)
{
	send(job(1, 1, 4, 4, 1));
	run_all();
	send(job(2, 1, 1, 1, 1));
	cycle();
	task(SL_CLUSTER_EVENT_TASK_ENDED, 1, 0, false);
	assert_int_equal(ask(job(3, 1, 1, 1, 1)).fate, SL_FORECAST_WAITS);
	cycle();
	assert_int_equal(in(2, SL_TASK_BINDING), 1);
}

/* --- The question changes nothing. --- */

static struct {
	uint64_t sum;
	struct sl_rng_free {
		uint64_t state;
	} rng;
} played;

static uint64_t draw(uint64_t below)
{
	played.rng.state =
		played.rng.state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (played.rng.state >> 33) % below;
}

static struct sl_cluster_event some_job(uint64_t id)
{
	struct sl_cluster_event event = job(id, 1 + draw(3), 1 + (uint32_t)draw(3), 1, 1);

	event.job_add.priority += (int32_t)draw(3) * 10;
	event.job_add.need.gpu_milli = (uint16_t)(250 * (1 + draw(4)));
	event.job_add.need.gpus =
		event.job_add.need.gpu_milli == 1000 ? 1 + (uint16_t)draw(2) : 1;
	return event;
}

/* All actions of a small history, as one number; with `asks` questions before each cycle. */
static uint64_t history(void **state, uint32_t asks)
{
	uint64_t sum = 0;

	(void)close_machine(state);
	(void)open_machine(state);
	played.rng.state = 7;
	for (uint64_t id = 1; id <= 300; id++) {
		struct sl_cluster_event event = some_job(id), other = some_job(id);
		struct sl_cluster_event gone = {.type = SL_CLUSTER_EVENT_JOB_REMOVE};

		send(event);
		for (uint32_t i = 0; i < asks; i++)
			(void)ask(i % 2 ? event : other);
		cycle();
		for (uint32_t i = 0; i < s.count; i++) {
			const struct sl_cluster_action *action = &s.seen[i];
			bool binds = action->type == SL_CLUSTER_ACTION_BIND;

			sum = sum * 31 + action->type + action->id;
			sum = sum * 31 +
			      (binds ? action->bind.node * 64 + action->bind.gpu_mask
				     : action->stop.task);
			sum = sum * 31 + action->bind.job;
		}
		answer();
		gone.job_remove.job = id > 12 ? id - 12 : 0;
		send(gone);
	}
	return sum;
}

static void asking_changes_nothing(void **state)
{
	uint64_t without = history(state, 0);

	assert_true(without != 0);
	assert_true(history(state, 4) == without);
}

/* --- Rules alone. --- */

static enum sl_pending_reason rules_say_of(
	uint64_t number, uint64_t project, uint16_t gpus, uint32_t flags)
{
	struct sl_cluster_event event = job(number, project, 1, 1, gpus);
	struct sl_pending_because because;

	event.job_add.flags = flags;
	return sl_cluster_allows(s.cluster, &event, &because) ? SL_PENDING_NONE
							      : because.reason;
}

static enum sl_pending_reason rules_say(uint64_t project, uint16_t gpus, uint32_t flags)
{
	return rules_say_of(9, project, gpus, flags);
}

static void asks_rules_alone(void **state)
{
	const uint32_t taken = SL_JOB_PREEMPTIBLE;
	static const struct {
		const char *name;
		uint64_t project;
		uint16_t gpus;
		uint32_t flags;
		enum sl_pending_reason reason;
	} rows[] = {
		{"borrows", 2, 4, SL_JOB_PREEMPTIBLE, SL_PENDING_NONE},
		{"more than there are", 2, 9, SL_JOB_PREEMPTIBLE, SL_PENDING_NONE},
		{"what the limit leaves", 3, 1, SL_JOB_PREEMPTIBLE, SL_PENDING_NONE},
		{"more than that", 3, 2, SL_JOB_PREEMPTIBLE, SL_PENDING_LIMIT},
		{"more than the limit", 3, 4, SL_JOB_PREEMPTIBLE, SL_PENDING_OVER_LIMIT},
		{"for good, its quota", 2, 2, 0, SL_PENDING_NONE},
		{"for good, more", 2, 3, 0, SL_PENDING_OVER_QUOTA},
		{"for good, without quota", 3, 1, 0, SL_PENDING_OVER_QUOTA},
		{"no project", 9, 1, SL_JOB_PREEMPTIBLE, SL_PENDING_NO_PROJECT},
	};

	send(job(1, 3, 2, 2, 1));
	run_all();
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++)
		assert_row_u64(rows[i].name,
			rules_say(rows[i].project, rows[i].gpus, rows[i].flags),
			rows[i].reason);
	/* A job that is being stopped still counts in a limit. */
	task(SL_CLUSTER_EVENT_TASK_STOPS, 1, 0, false);
	assert_int_equal(rules_say(3, 2, taken), SL_PENDING_LIMIT_LEAVING);
}

/* Its present GPUs do not stand in its own way, however it is to run. */
static void asks_rules_of_one_that_runs(void **state)
{
	const uint32_t taken = SL_JOB_PREEMPTIBLE;

	send(job(1, 3, 1, 1, 2));
	send(job(2, 2, 1, 1, 1));
	run_all();
	assert_int_equal(rules_say(3, 2, taken), SL_PENDING_LIMIT);
	assert_int_equal(rules_say_of(1, 3, 2, taken), SL_PENDING_NONE);
	assert_int_equal(rules_say_of(1, 3, 3, taken), SL_PENDING_NONE);
	assert_int_equal(rules_say_of(1, 3, 4, taken), SL_PENDING_OVER_LIMIT);
	assert_int_equal(rules_say_of(1, 3, 2, 0), SL_PENDING_OVER_QUOTA);
	assert_int_equal(rules_say_of(2, 2, 2, 0), SL_PENDING_NONE);
	task(SL_CLUSTER_EVENT_TASK_STOPS, 1, 0, false);
	assert_int_equal(rules_say_of(1, 3, 3, taken), SL_PENDING_NONE);
	/* And it is all there again. */
	assert_int_equal(rules_say(3, 3, taken), SL_PENDING_LIMIT_LEAVING);
	assert_int_equal(rules_say(3, 1, taken), SL_PENDING_NONE);
}

/* A quota is kept for others. */
static void asks_no_quota_of_who_is_alone(void **state)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_PROJECT_REMOVE};

	assert_int_equal(rules_say(1, 3, 0), SL_PENDING_OVER_QUOTA);
	for (uint64_t id = 2; id <= 3; id++) {
		event.project_remove.project = id;
		send(event);
	}
	assert_int_equal(rules_say(1, 3, 0), SL_PENDING_NONE);
}

static void knows_where_a_project_may_stand(void **state)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_NODE_PUT};

	event.node_put.node = 3;
	event.node_put.gpus = 2;
	event.node_put.gpu_mib = 40960;
	event.node_put.pool = 1;
	event.node_put.swaps = 1;
	send(event);
	assert_true(sl_cluster_may_stand(s.cluster, 1, 1));
	assert_true(sl_cluster_may_stand(s.cluster, 1, 3));
	event = (struct sl_cluster_event){.type = SL_CLUSTER_EVENT_PROJECT_PUT};
	event.project_put.project = 4;
	event.project_put.rules.pools = 2;
	send(event);
	assert_false(sl_cluster_may_stand(s.cluster, 4, 1));
	assert_true(sl_cluster_may_stand(s.cluster, 4, 3));
	event.project_put.rules.no_swap = true;
	send(event);
	assert_false(sl_cluster_may_stand(s.cluster, 4, 3));
	event.project_put.rules.pools = 0;
	send(event);
	assert_true(sl_cluster_may_stand(s.cluster, 4, 1));
	assert_false(sl_cluster_may_stand(s.cluster, 4, 3));
	assert_false(sl_cluster_may_stand(s.cluster, 9, 1));
	assert_false(sl_cluster_may_stand(s.cluster, 4, 9));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(says_what_there_is_too_little_of),
		TEST(says_that_it_never_will),
		TEST(says_who_came_before),
		TEST(counts_the_jobs_before_it),
		TEST(says_whose_runtime_it_waits_for),
		TEST(says_that_it_would_reclaim),
		TEST(says_no_share_where_nobody_else_has_any),
		TEST(says_that_it_is_being_stopped),
		TEST(foresees_a_start),
		TEST(foresees_whom_it_takes_from),
		TEST(foresees_that_it_never_runs),
		TEST(foresees_waiting),
		TEST(foresees_who_comes_first),
		TEST(asking_changes_nothing),
		TEST(asks_rules_alone),
		TEST(asks_rules_of_one_that_runs),
		TEST(asks_no_quota_of_who_is_alone),
		TEST(knows_where_a_project_may_stand),
	};

	return cmocka_run_group_tests_name("cluster-why", tests, NULL, NULL);
}
