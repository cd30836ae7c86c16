#include "cluster_play.h"

/*
 * Jobs that are stopped and come back. A job is parked where host memory has space. One that has
 * been parked for its resume_wait is given up: it ends and is queued again for any node. One that
 * fails is tried again, after a longer pause each time.
 */

/* One task on whole GPUs that parks, and may end instead. */
static struct sl_cluster_event parker(
	uint64_t id, uint64_t project, uint16_t gpus, uint64_t park_mib, uint32_t flags)
{
	struct sl_cluster_event event = job(id, project, 1, 1, gpus);

	event.job_add.flags |= SL_JOB_PARKS | flags;
	event.job_add.park_mib = park_mib;
	return event;
}

static void later(sl_ns by)
{
	s.now += by;
	cycle();
}

/* Job 1 of project 3 is parked for job 2, which cannot be moved for it; project 1 has the other
 * node. */
static void park_one(uint32_t flags, sl_ns resume_wait)
{
	struct sl_cluster_event first = parker(1, 3, 2, 1024, flags);
	struct sl_cluster_event second = job(2, 2, 1, 1, 2);

	second.job_add.flags = 0;
	first.job_add.resume_wait = resume_wait;
	send(first);
	send(job(3, 1, 1, 1, 2));
	run_all();
	send(second);
	run_all();
	run_all();
	assert_int_equal(in(2, SL_TASK_RUNNING), 1);
	assert_true(sl_cluster_task(s.cluster, 1, 0).parked);
}

/* --- Host memory. --- */

static void ends_what_cannot_be_parked(void **state)
{
	send(parker(1, 3, 2, 20480, SL_JOB_GIVES_UP));
	send(job(3, 1, 1, 1, 2));
	run_all();
	send(job(2, 2, 1, 1, 2));
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 1);
	assert_int_equal(s.seen[0].stop.how, SL_STOP_TERMINATE);
	answer();
	assert_false(sl_cluster_task(s.cluster, 1, 0).parked);
}

/* Job 1 has 10 cores of node 1, parked or not, if it keeps them. Job 3 has the GPUs of node 2. */
static void keeps_its_cores(void **state)
{
	static const struct {
		const char *name;
		uint32_t flags, cores;
		bool fits;
	} rows[] = {
		{"what it keeps is not free", SL_JOB_KEEPS_HOST, 7, false},
		{"what it leaves is", SL_JOB_KEEPS_HOST, 6, true},
		{"without the flag all is free", 0, 16, true},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_cluster_event first = parker(1, 3, 2, 1024, rows[i].flags);
		struct sl_cluster_event second = job(2, 2, 1, 1, 2);
		struct sl_cluster_event third = job(3, 1, 1, 1, 2);

		(void)open_machine(state);
		first.job_add.need.cpu_milli = 10000;
		second.job_add.need.cpu_milli = rows[i].cores * 1000;
		second.job_add.flags = third.job_add.flags = 0;
		third.job_add.need.cpu_milli = 16000;
		send(first);
		run_all();
		send(third);
		run_all();
		send(second);
		run_all();
		run_all();
		assert_row_u64(rows[i].name, in(2, SL_TASK_RUNNING), rows[i].fits);
		assert_row_u64(rows[i].name, sl_cluster_task(s.cluster, 1, 0).parked,
			rows[i].fits);
		if (!rows[i].fits)
			goto next;
		/* And it comes back, into the cores that it kept. */
		task(SL_CLUSTER_EVENT_TASK_ENDED, 2, 0, false);
		run_all();
		assert_row_u64(rows[i].name, in(1, SL_TASK_RUNNING), 1);
	next:
		(void)close_machine(state);
	}
}

/* Others take cores of a node, and give them back; what runs stays. */
static void hosts_shrink_and_grow(void **state)
{
	struct sl_cluster_event host;
	struct sl_cluster_event second = job(2, 2, 1, 1, 1);

	send(job(1, 1, 1, 1, 1));
	run_all();
	for (uint64_t node = 1; node <= 2; node++) {
		host = node_put(node);
		host.node_put.cpu_milli = 500;
		send(host);
	}
	assert_int_equal(in(1, SL_TASK_RUNNING), 1);
	second.job_add.need.cpu_milli = 500;
	send(second);
	run_all();
	assert_int_equal(in(2, SL_TASK_RUNNING), 1);
	assert_int_not_equal(sl_cluster_task(s.cluster, 2, 0).node,
		sl_cluster_task(s.cluster, 1, 0).node);
	second.job_add.job = 3;
	send(second);
	run_all();
	assert_int_equal(in(3, SL_TASK_RUNNING), 0);
	host.node_put.cpu_milli = 1500;
	host.node_put.node = sl_cluster_task(s.cluster, 1, 0).node;
	send(host);
	run_all();
	assert_int_equal(in(3, SL_TASK_RUNNING), 1);
}

/* The younger one would go, and lose its work; the elder is parked. */
static void parks_before_it_ends(void **state)
{
	send(parker(1, 3, 1, 1024, 0));
	send(parker(2, 3, 1, 20480, SL_JOB_GIVES_UP));
	send(job(3, 1, 1, 1, 2));
	run_all();
	send(job(4, 2, 1, 1, 1));
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 1);
	assert_int_equal(s.seen[0].stop.job, 1);
	assert_int_equal(s.seen[0].stop.how, SL_STOP_PARK);
}

/* Room for one of two: the second is terminated, or stays. */
static void parks_as_many_as_fit(void **state)
{
	for (uint64_t id = 1; id <= 2; id++)
		send(parker(id, 3, 1, 6144, SL_JOB_GIVES_UP));
	send(job(3, 1, 1, 1, 2));
	run_all();
	send(job(4, 2, 1, 1, 2));
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 2);
	assert_int_equal(s.seen[0].stop.how + s.seen[1].stop.how,
		SL_STOP_PARK + SL_STOP_TERMINATE);
}

/* Job 1 of project 3 parks, and has a GPU of one node. Job 2 of project 1 has one of the other, and
 * cannot be stopped. */
static void spread_two(uint64_t park_mib, uint32_t flags)
{
	struct sl_cluster_event second = job(2, 1, 1, 1, 1);

	second.job_add.flags = 0;
	send(parker(1, 3, 1, park_mib, flags));
	send(job(8, 2, 1, 1, 2));
	run_all();
	send(job(9, 1, 1, 1, 1));
	run_all();
	task(SL_CLUSTER_EVENT_TASK_ENDED, 8, 0, false);
	send(second);
	run_all();
	task(SL_CLUSTER_EVENT_TASK_ENDED, 9, 0, false);
	assert_int_not_equal(sl_cluster_task(s.cluster, 1, 0).node,
		sl_cluster_task(s.cluster, 2, 0).node);
}

/* It would begin again elsewhere: job 3, which may not take from it, waits. */
static void stays_rather_than_moves(void **state)
{
	spread_two(1024, SL_JOB_GIVES_UP);
	send(job(3, 3, 1, 1, 2));
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 0);
	assert_int_equal(in(3, SL_TASK_PENDING), 1);
	task(SL_CLUSTER_EVENT_TASK_ENDED, 1, 0, false);
	run_all();
	assert_int_equal(in(3, SL_TASK_RUNNING), 1);
}

/* When job 1 is stopped, the other node has room for it. Moved there, it would lose its work;
 * parked, it loses nothing. */
static void is_parked_rather_than_moved(void **state)
{
	spread_two(1024, 0);
	send(job(3, 2, 1, 1, 2));
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 1);
	assert_int_equal(s.seen[0].stop.job, 1);
	assert_int_equal(s.seen[0].stop.how, SL_STOP_PARK);
}

/* Host memory has no room for job 1, so it loses its work in any case. Then it is moved at once
 * instead of queued again. */
static void moves_rather_than_ends(void **state)
{
	spread_two(20480, SL_JOB_GIVES_UP);
	send(job(3, 2, 1, 1, 2));
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 1);
	assert_int_equal(s.seen[0].stop.job, 1);
	assert_int_equal(s.seen[0].stop.how, SL_STOP_MOVE);
}

/* A task that comes back is told to stop and cannot: its memory is on the host until it runs. */
static void keeps_its_host_memory_until_it_runs(void **state)
{
	struct sl_cluster_event gang = parker(1, 3, 1, 5120, 0);
	struct sl_cluster_event other = job(3, 1, 1, 1, 2);

	gang.job_add.tasks = gang.job_add.least = 2;
	other.job_add.flags = 0;
	send(gang);
	send(other);
	run_all();
	send(job(2, 2, 1, 1, 2));
	run_all();
	run_all();
	task(SL_CLUSTER_EVENT_TASK_ENDED, 2, 0, false);
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_BIND), 2);
	task(SL_CLUSTER_EVENT_TASK_RUNS, 1, 0, false);
	task(SL_CLUSTER_EVENT_TASK_ENDED, 1, 0, false);
	task(SL_CLUSTER_EVENT_TASK_STOPS, 1, 1, false);
	task(SL_CLUSTER_EVENT_STOP_FAILED, 1, 1, false);
	assert_int_equal(sl_cluster_job(s.cluster, 1).in[SL_TASK_BINDING], 1);
	/* What would be parked beside it finds no room, and then it does. */
	send(parker(4, 3, 1, 6144, 0));
	run_all();
	assert_int_equal(in(4, SL_TASK_RUNNING), 1);
	send(job(5, 2, 1, 1, 1));
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 0);
	task(SL_CLUSTER_EVENT_TASK_RUNS, 1, 1, false);
	later(61 * SL_S);
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 1);
}

/* --- Waiting for its GPUs. --- */

static void is_tied_to_its_gpus_for_a_while(void **state)
{
	park_one(SL_JOB_GIVES_UP, 100 * SL_S);
	/* The other node comes free, but its GPUs are not the job's. */
	task(SL_CLUSTER_EVENT_TASK_ENDED, 3, 0, false);
	later(90 * SL_S);
	assert_int_equal(s.count, 0);
	assert_int_equal(sl_cluster_job(s.cluster, 1).because.reason, SL_PENDING_PARKED);
	later(11 * SL_S);
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 1);
	assert_int_equal(s.seen[0].stop.job, 1);
	assert_int_equal(s.seen[0].stop.how, SL_STOP_GIVE_UP);
	/* Not before its former GPUs are free. */
	later(SL_S);
	assert_int_equal(s.count, 0);
	assert_int_equal(
		sl_cluster_job(s.cluster, 1).because.reason, SL_PENDING_GIVEN_UP);
	task(SL_CLUSTER_EVENT_TASK_ENDED, 1, 0, true);
	assert_false(sl_cluster_task(s.cluster, 1, 0).parked);
	run_all();
	assert_int_equal(in(1, SL_TASK_RUNNING), 1);
	assert_int_not_equal(sl_cluster_task(s.cluster, 1, 0).node,
		sl_cluster_task(s.cluster, 2, 0).node);
}

static void other_answers_to_giving_up(void **state)
{
	struct sl_cluster_event unpark = {.type = SL_CLUSTER_EVENT_JOB_UNPARK};

	park_one(SL_JOB_GIVES_UP, 100 * SL_S);
	later(101 * SL_S);
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 1);
	/* It could not be done: it stays parked for as long again. */
	task(SL_CLUSTER_EVENT_STOP_FAILED, 1, 0, false);
	assert_true(sl_cluster_task(s.cluster, 1, 0).parked);
	later(90 * SL_S);
	assert_int_equal(s.count, 0);
	later(11 * SL_S);
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 1);
	unpark.job_unpark.job = 1;
	send(unpark);
	assert_false(sl_cluster_task(s.cluster, 1, 0).parked);
	task(SL_CLUSTER_EVENT_TASK_ENDED, 3, 0, false);
	run_all();
	assert_int_equal(in(1, SL_TASK_RUNNING), 1);
}

static void comes_back_rather_than_being_given_up(void **state)
{
	park_one(SL_JOB_GIVES_UP, 100 * SL_S);
	task(SL_CLUSTER_EVENT_TASK_ENDED, 2, 0, false);
	later(101 * SL_S);
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 0);
	assert_int_equal(in(1, SL_TASK_BINDING), 1);
}

static void stays_parked_for_ever(void **state)
{
	static const struct {
		uint32_t flags;
		sl_ns resume_wait;
	} rows[] = {{0, 100 * SL_S}, {SL_JOB_GIVES_UP, 0}};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		(void)close_machine(state);
		(void)open_machine(state);
		park_one(rows[i].flags, rows[i].resume_wait);
		task(SL_CLUSTER_EVENT_TASK_ENDED, 3, 0, false);
		later(1000000 * SL_S);
		assert_int_equal(s.count, 0);
		assert_true(sl_cluster_task(s.cluster, 1, 0).parked);
	}
}

/* --- Its pause: so long no other job goes for it. --- */

/* Job 1 of project 1 was parked for job 2, which has a higher priority and cannot be moved for job
 * 1. The pause of job 1 is 60 s. The other node stays in use. */
static void park_with_pause(void)
{
	struct sl_cluster_event first = parker(1, 1, 2, 1024, 0);
	struct sl_cluster_event above = job(2, 1, 1, 1, 2), other = job(3, 2, 1, 1, 2);

	first.job_add.swap_cost = 6 * SL_S;
	above.job_add.priority++;
	other.job_add.flags = 0;
	send(first);
	send(other);
	run_all();
	send(above);
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 1);
	assert_int_equal(s.seen[0].stop.how, SL_STOP_PARK);
	answer();
	run_all();
	assert_int_equal(in(2, SL_TASK_RUNNING), 1);
}

static void end_job(uint64_t id)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_REMOVE};

	event.job_remove.job = id;
	send(event);
}

/* Job 4 of project 3, which borrows, is found to run where job 1 was. */
static void others_take_its_place(void)
{
	struct sl_cluster_event runs = {.type = SL_CLUSTER_EVENT_TASK_RUNS};

	runs.task_runs.job = 4;
	runs.task_runs.node = sl_cluster_task(s.cluster, 1, 0).node;
	runs.task_runs.gpu_mask = 3;
	end_job(2);
	send(job(4, 3, 1, 1, 2));
	send(runs);
}

/* The job that it was parked for is cancelled after a second: nothing is left of it. */
static void is_back_once_there_is_room(void **state)
{
	park_with_pause();
	s.now += SL_S;
	end_job(2);
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_BIND), 1);
	assert_int_equal(s.seen[0].bind.job, 1);
}

static void takes_from_nobody_in_its_pause(void **state)
{
	struct sl_pending_because because;

	park_with_pause();
	others_take_its_place();
	cycle();
	assert_int_equal(s.count, 0);
	because = sl_cluster_job(s.cluster, 1).because;
	assert_int_equal(because.reason, SL_PENDING_RESUME_WAIT);
	assert_in_range(because.wanted, 59 * SL_S, 60 * SL_S);
	later(59 * SL_S);
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 0);
	later(SL_S);
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 1);
	assert_int_equal(s.seen[0].stop.job, 4);
	answer();
	run_all();
	assert_int_equal(in(1, SL_TASK_RUNNING), 1);
}

static void is_resumed_in_its_pause(void **state)
{
	struct sl_cluster_event resume = {.type = SL_CLUSTER_EVENT_JOB_RESUME};

	park_with_pause();
	others_take_its_place();
	cycle();
	assert_int_equal(s.count, 0);
	resume.job_resume.job = 1;
	send(resume);
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 1);
	assert_int_equal(s.seen[0].stop.job, 4);
	assert_int_equal(in(1, SL_TASK_PIPELINED), 1);
	/* Of one that is not known. */
	resume.job_resume.job = 77;
	send(resume);
}

/* A job of the same want that was not stopped does not wait for the pause of one that was. */
static void holds_nobody_else_in_its_pause(void **state)
{
	struct sl_cluster_event paused = job(1, 2, 1, 1, 2), equal = job(2, 2, 1, 1, 2);
	struct sl_cluster_event first = job(6, 2, 1, 1, 2);
	struct sl_cluster_event runs = {.type = SL_CLUSTER_EVENT_TASK_RUNS};

	paused.job_add.swap_cost = 6 * SL_S;
	first.job_add.priority++;
	send(paused);
	send(job(5, 1, 1, 1, 2));
	run_all();
	runs.task_runs.job = 4;
	runs.task_runs.node = sl_cluster_task(s.cluster, 1, 0).node;
	runs.task_runs.gpu_mask = 3;
	send(first);
	run_all();
	end_job(6);
	send(job(4, 3, 1, 1, 2));
	send(runs);
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 0);
	assert_in_range(sl_cluster_job(s.cluster, 1).paused_until, s.now + 59 * SL_S,
		s.now + 60 * SL_S);
	send(equal);
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 1);
	assert_int_equal(s.seen[0].stop.other, 2);
}

/* --- What fails. --- */

static void fails_once(void)
{
	struct sl_cluster_event failed = {.type = SL_CLUSTER_EVENT_TASK_ENDED};

	failed.task_ended.job = 1;
	failed.task_ended.again = failed.task_ended.failed = 1;
	send(failed);
}

static void is_tried_ever_less_often(void **state)
{
	sl_ns wait = SL_S;

	send(job(1, 1, 1, 1, 1));
	run_all();
	for (int i = 0; i < 12; i++) {
		struct sl_pending_because because;

		fails_once();
		because = sl_cluster_job(s.cluster, 1).because;
		assert_int_equal(because.reason, SL_PENDING_BACK_OFF);
		assert_int_equal(because.wanted, wait);
		later(wait - 10 * SL_MS);
		assert_int_equal(s.count, 0);
		later(10 * SL_MS);
		assert_int_equal(seen(SL_CLUSTER_ACTION_BIND), 1);
		answer();
		wait = sl_min_u64(2 * wait, 300 * SL_S);
	}
	/* A job that has run for a while has not failed by its own nature. */
	s.now += 600 * SL_S;
	fails_once();
	assert_int_equal(sl_cluster_job(s.cluster, 1).because.wanted, SL_S);
}

static void a_gang_fails_once(void **state)
{
	struct sl_cluster_event failed = {.type = SL_CLUSTER_EVENT_TASK_ENDED};

	send(job(1, 1, 4, 4, 1));
	run_all();
	failed.task_ended.job = 1;
	failed.task_ended.again = failed.task_ended.failed = 1;
	for (failed.task_ended.task = 0; failed.task_ended.task < 4;
		failed.task_ended.task++)
		send(failed);
	later(SL_S);
	assert_int_equal(seen(SL_CLUSTER_ACTION_BIND), 4);
}

/* A stopped job has not failed, whatever its exit says. */
static void who_is_stopped_has_not_failed(void **state)
{
	send(job(1, 1, 1, 1, 1));
	run_all();
	task(SL_CLUSTER_EVENT_TASK_STOPS, 1, 0, false);
	fails_once();
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_BIND), 1);
}

/* No node takes it: each is asked twice a minute, and no more, with a cycle every second. */
static void who_is_refused_is_no_livelock(void **state)
{
	uint32_t binds = 0;

	send(job(1, 1, 1, 1, 2));
	for (int second = 0; second < 600; second++) {
		later(SL_S);
		while (seen(SL_CLUSTER_ACTION_BIND)) {
			binds++;
			task(SL_CLUSTER_EVENT_BIND_REFUSED, 1, 0, false);
			cycle();
		}
		assert_int_equal(sl_cluster_job(s.cluster, 1).because.reason,
			SL_PENDING_BIND_REFUSED);
	}
	assert_in_range(binds, 2 * 18, 2 * 21);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_its_cores),
		TEST(hosts_shrink_and_grow),
		TEST(ends_what_cannot_be_parked),
		TEST(parks_before_it_ends),
		TEST(parks_as_many_as_fit),
		TEST(stays_rather_than_moves),
		TEST(is_parked_rather_than_moved),
		TEST(moves_rather_than_ends),
		TEST(keeps_its_host_memory_until_it_runs),
		TEST(is_tied_to_its_gpus_for_a_while),
		TEST(other_answers_to_giving_up),
		TEST(comes_back_rather_than_being_given_up),
		TEST(stays_parked_for_ever),
		TEST(is_back_once_there_is_room),
		TEST(takes_from_nobody_in_its_pause),
		TEST(is_resumed_in_its_pause),
		TEST(holds_nobody_else_in_its_pause),
		TEST(is_tried_ever_less_often),
		TEST(a_gang_fails_once),
		TEST(who_is_stopped_has_not_failed),
		TEST(who_is_refused_is_no_livelock),
	};

	return cmocka_run_group_tests_name("cluster-park", tests, NULL, NULL);
}
