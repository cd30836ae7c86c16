#include "cluster_play.h"

/*
 * Jobs whose tasks may go to any GPU of their node: they return from host memory to another GPU,
 * move beside others for a job that needs a whole GPU, move for a user, and spread again.
 */

static void config(uint32_t move_most, bool spread)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_CONFIG};

	event.config.move_most = move_most;
	event.config.spread = spread;
	event.config.placement = spread ? SL_PLACE_SPREAD : SL_PLACE_PACK;
	send(event);
}

/* Node 1 alone, with so many GPUs. */
static void one_node(uint16_t gpus, uint32_t move_most, bool spread)
{
	struct sl_cluster_event event = node_put(1);

	event.node_put.gpus = gpus;
	send(event);
	event = node_put(2);
	event.node_put.closed = 1;
	send(event);
	config(move_most, spread);
}

/* One task on a part of a GPU, that moves. */
static struct sl_cluster_event mover(uint64_t id, uint64_t project, uint16_t milli)
{
	struct sl_cluster_event event = job(id, project, 1, 1, 1);

	event.job_add.flags |= SL_JOB_PARKS | SL_JOB_MOVES;
	event.job_add.park_mib = 1024;
	event.job_add.need.gpu_milli = milli;
	return event;
}

/* It is found to run there. */
static void runs(struct sl_cluster_event event, uint32_t gpu_mask)
{
	struct sl_cluster_event found = {.type = SL_CLUSTER_EVENT_TASK_RUNS};

	send(event);
	found.task_runs.job = event.job_add.job;
	found.task_runs.node = 1;
	found.task_runs.gpu_mask = gpu_mask;
	send(found);
}

static struct sl_cluster_task_view view(uint64_t id)
{
	return sl_cluster_task(s.cluster, id, 0);
}

static uint32_t moved(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < s.count; i++)
		count += s.seen[i].type == SL_CLUSTER_ACTION_STOP &&
			 s.seen[i].stop.how == SL_STOP_MOVE;
	return count;
}

static void later(sl_ns by)
{
	s.now += by;
	cycle();
}

static void settle(void)
{
	for (int i = 0; i < 3; i++) {
		answer();
		cycle();
	}
}

/* --- For a job that needs the room. --- */

static void goes_beside_another(void **state)
{
	static const struct {
		const char *name;
		uint32_t flags; /* taken away */
		uint64_t park_mib;
		uint32_t most, moves;
	} rows[] = {
		{"one moves", 0, 1024, 10, 1},
		{"one moves that cannot be preempted", SL_JOB_PREEMPTIBLE, 1024, 10, 1},
		{"none may", SL_JOB_MOVES | SL_JOB_PREEMPTIBLE, 1024, 10, 0},
		{"none may within an hour", SL_JOB_PREEMPTIBLE, 1024, 0, 0},
		{"host memory has no room", SL_JOB_PREEMPTIBLE, 20480, 10, 0},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_cluster_event event;

		(void)open_machine(state);
		one_node(2, rows[i].most, false);
		for (uint32_t id = 1; id <= 2; id++) {
			event = mover(id, 1, 500);
			event.job_add.flags &= ~rows[i].flags;
			event.job_add.park_mib = rows[i].park_mib;
			runs(event, id);
		}
		send(job(3, 1, 1, 1, 1));
		cycle();
		assert_row_u64(rows[i].name, seen(SL_CLUSTER_ACTION_STOP), rows[i].moves);
		assert_row_u64(rows[i].name, moved(), rows[i].moves);
		if (!rows[i].moves)
			goto next;
		/* The younger one goes, and is parked until its BIND. */
		assert_true(view(2).moves);
		assert_int_equal(view(2).next.gpu_mask, 1);
		answer();
		assert_true(view(2).parked);
		assert_true(view(2).moves);
		assert_int_equal(view(2).place.gpu_mask, 2);
		assert_int_equal(view(2).next.gpu_mask, 1);
		cycle();
		settle();
		assert_row_u64(rows[i].name, in(3, SL_TASK_RUNNING), 1);
		assert_row_u64(rows[i].name, in(2, SL_TASK_RUNNING), 1);
		assert_int_equal(view(1).place.gpu_mask, 1);
		assert_int_equal(view(2).place.gpu_mask, 1);
		assert_int_equal(view(3).place.gpu_mask, 2);
	next:
		(void)close_machine(state);
	}
}

/* Four quarters on four GPUs. */
static void joins_fragments(void **state)
{
	static const struct {
		const char *name;
		uint16_t gpus;
		uint32_t most, moves;
	} rows[] = {
		{"one GPU", 1, 10, 1},
		{"three GPUs", 3, 3, 3},
		{"three GPUs, and two moves", 3, 2, 0},
		{"four GPUs", 4, 10, 0},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		(void)open_machine(state);
		one_node(4, rows[i].most, false);
		for (uint32_t id = 1; id <= 4; id++)
			runs(mover(id, 1, 250), 1u << (id - 1));
		send(job(5, 1, 1, 1, rows[i].gpus));
		cycle();
		assert_row_u64(rows[i].name, moved(), rows[i].moves);
		assert_row_u64(rows[i].name, seen(SL_CLUSTER_ACTION_STOP), rows[i].moves);
		answer();
		cycle();
		settle();
		assert_row_u64(rows[i].name, in(5, SL_TASK_RUNNING), rows[i].moves > 0);
		for (uint32_t id = 1; id <= 4; id++)
			assert_row_u64(rows[i].name, in(id, SL_TASK_RUNNING), 1);
		(void)close_machine(state);
	}
}

/* Two whole GPUs are wanted, one after the other; one task may move within an hour. */
static void waits_for_the_next_move(void **state)
{
	struct sl_cluster_job_view why;
	char text[SL_FORECAST_MAX];
	sl_ns moved_at;

	one_node(4, 1, false);
	for (uint32_t id = 1; id <= 4; id++)
		runs(mover(id, 1, 500), 1u << (id - 1));
	send(job(5, 1, 1, 1, 1));
	cycle();
	assert_int_equal(moved(), 1);
	moved_at = s.now;
	answer();
	cycle();
	settle();
	send(job(6, 1, 1, 1, 1));
	cycle();
	assert_int_equal(moved(), 0);
	why = sl_cluster_job(s.cluster, 6);
	assert_int_equal(why.because.reason, SL_PENDING_MOVE_BUDGET);
	assert_int_equal(why.because.available, 1);
	assert_in_range(why.because.wanted, 3500 * SL_S, 3660 * SL_S);
	assert_non_null(strstr(
		sl_pending_text(&why.because, NULL, NULL, text, sizeof(text)),
		"no more than 1 task may move within an hour (move_budget), and the next "
		"one may in "));
	later(moved_at + 3600 * SL_S - s.now - 2 * SL_MS);
	assert_int_equal(moved(), 0);
	later(60 * SL_S);
	assert_int_equal(moved(), 1);
	answer();
	cycle();
	settle();
	assert_int_equal(in(6, SL_TASK_RUNNING), 1);
}

/* What could not leave stays, and the job that was to have its place waits. */
static void stays_where_it_cannot_leave(void **state)
{
	one_node(2, 10, false);
	runs(mover(1, 1, 500), 1);
	runs(mover(2, 1, 500), 2);
	send(job(3, 1, 1, 1, 1));
	cycle();
	assert_int_equal(in(3, SL_TASK_PIPELINED), 1);
	task(SL_CLUSTER_EVENT_STOP_FAILED, 2, 0, false);
	assert_int_equal(in(2, SL_TASK_RUNNING), 1);
	assert_int_equal(view(2).place.gpu_mask, 2);
	assert_false(view(2).moves);
	assert_int_equal(in(3, SL_TASK_PIPELINED), 0);
	/* The other one goes instead. */
	cycle();
	assert_int_equal(moved(), 1);
	assert_true(view(1).moves);
	answer();
	cycle();
	settle();
	assert_int_equal(in(3, SL_TASK_RUNNING), 1);
	assert_int_equal(view(1).place.gpu_mask, 2);
}

/* A task that was just moved is not moved again, nor one that could not leave. */
static void rests_after_a_move(void **state)
{
	one_node(2, 10, false);
	runs(mover(1, 1, 500), 1);
	runs(mover(2, 1, 500), 2);
	send(job(3, 1, 1, 1, 1));
	cycle();
	settle();
	assert_int_equal(in(3, SL_TASK_RUNNING), 1);
	assert_int_equal(view(2).place.gpu_mask, 1);
	task(SL_CLUSTER_EVENT_TASK_ENDED, 3, 0, false);
	task(SL_CLUSTER_EVENT_TASK_ENDED, 1, 0, false);
	runs(mover(4, 1, 500), 2);
	send(job(5, 1, 1, 1, 1));
	cycle();
	assert_int_equal(moved(), 1);
	assert_true(view(4).moves);
	task(SL_CLUSTER_EVENT_STOP_FAILED, 4, 0, false);
	cycle();
	assert_int_equal(moved(), 0);
	later(61 * SL_S);
	assert_int_equal(moved(), 1);
}

/* Refused at its new place, it waits where it is parked. */
static void is_parked_where_it_was(void **state)
{
	one_node(2, 10, false);
	runs(mover(1, 1, 500), 1);
	runs(mover(2, 1, 500), 2);
	send(job(3, 1, 1, 1, 1));
	cycle();
	answer();
	cycle();
	assert_int_equal(in(2, SL_TASK_BINDING), 1);
	assert_int_equal(view(2).place.gpu_mask, 1);
	task(SL_CLUSTER_EVENT_BIND_REFUSED, 2, 0, false);
	assert_true(view(2).parked);
	assert_int_equal(view(2).place.gpu_mask, 2);
}

/* A job of two tasks moves only the one that is in the way. */
static void moves_one_of_a_gang(void **state)
{
	struct sl_cluster_event gang = mover(1, 1, 500);
	struct sl_cluster_event found = {.type = SL_CLUSTER_EVENT_TASK_RUNS};

	one_node(2, 1, false);
	gang.job_add.tasks = gang.job_add.least = 2;
	runs(gang, 1);
	found.task_runs = (__typeof__(found.task_runs)){
		.job = 1, .task = 1, .node = 1, .gpu_mask = 2};
	send(found);
	send(job(2, 1, 1, 1, 1));
	cycle();
	assert_int_equal(moved(), 1);
	answer();
	cycle();
	settle();
	assert_int_equal(in(1, SL_TASK_RUNNING), 2);
	assert_int_equal(in(2, SL_TASK_RUNNING), 1);
}

/* The node gave it another GPU before its first CUDA call: its share goes along, once. */
static void begins_elsewhere(void **state)
{
	struct sl_cluster_event found = {.type = SL_CLUSTER_EVENT_TASK_RUNS};
	struct sl_cluster_event event = job(1, 1, 1, 1, 1);

	one_node(2, 10, false);
	event.job_add.need.gpu_milli = 500;
	event.job_add.need.cpu_milli = 13000;
	event.job_add.flags |= SL_JOB_PARKS | SL_JOB_KEEPS_HOST;
	runs(event, 1);
	found.task_runs =
		(__typeof__(found.task_runs)){.job = 1, .node = 1, .gpu_mask = 2};
	for (int i = 0; i < 2; i++) {
		send(found);
		assert_int_equal(in(1, SL_TASK_RUNNING), 1);
		assert_int_equal(view(1).place.gpu_mask, 2);
	}
	/* There is no such GPU. */
	found.task_runs.gpu_mask = 8;
	send(found);
	assert_int_equal(view(1).place.gpu_mask, 2);
	/* The first GPU is free, and a half of the second one. */
	send(job(2, 1, 1, 1, 1));
	event = job(3, 1, 1, 1, 1);
	event.job_add.need.gpu_milli = 500;
	send(event);
	cycle();
	answer();
	assert_int_equal(in(2, SL_TASK_RUNNING), 1);
	assert_int_equal(view(2).place.gpu_mask, 1);
	assert_int_equal(in(3, SL_TASK_RUNNING), 1);
	assert_int_equal(view(3).place.gpu_mask, 2);
}

/* Its processes run on, so its cores are never free; they are booked once. */
static void keeps_its_cores_on_the_way(void **state)
{
	struct sl_cluster_event event = mover(2, 1, 500);

	one_node(2, 10, false);
	runs(mover(1, 1, 500), 1);
	event.job_add.flags |= SL_JOB_KEEPS_HOST;
	event.job_add.need.cpu_milli = 13000;
	runs(event, 2);
	send(job(3, 1, 1, 1, 1));
	cycle();
	assert_int_equal(moved(), 1);
	answer();
	cycle();
	settle();
	assert_int_equal(in(2, SL_TASK_RUNNING), 1);
	assert_int_equal(in(3, SL_TASK_RUNNING), 1);
}

/* A restart elsewhere loses work, a move does not: the elder job goes. */
static void moves_rather_than_restarts(void **state)
{
	struct sl_cluster_event young = job(2, 1, 1, 1, 1);

	one_node(2, 10, false);
	runs(mover(1, 1, 500), 1);
	young.job_add.need.gpu_milli = 500;
	runs(young, 2);
	send(job(3, 1, 1, 1, 1));
	cycle();
	assert_int_equal(moved(), 1);
	assert_true(view(1).moves);
}

/* --- Back from host memory. --- */

/* Project 3 borrows what project 2 takes back; then another GPU is free than the one it lost. */
static void returns_to_any_gpu(void **state)
{
	static const struct {
		const char *name;
		uint32_t flags;
		bool back;
	} rows[] = {
		{"any GPU", SL_JOB_MOVES, true},
		{"its own GPU", 0, false},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_cluster_event event = mover(1, 3, 1000);
		struct sl_cluster_event other = job(2, 1, 1, 1, 1);

		(void)open_machine(state);
		one_node(2, 0, false);
		put_project(1, 0, 1000, SL_QUOTA_ALL);
		put_project(2, 0, 1000, SL_QUOTA_ALL);
		event.job_add.flags &= ~SL_JOB_MOVES;
		event.job_add.flags |= rows[i].flags;
		other.job_add.flags = 0;
		runs(event, 1);
		runs(other, 2);
		other.job_add.job = 3;
		other.job_add.project = 2;
		send(other);
		cycle();
		settle();
		assert_row_u64(rows[i].name, in(3, SL_TASK_RUNNING), 1);
		assert_true(view(1).parked);
		task(SL_CLUSTER_EVENT_TASK_ENDED, 2, 0, false);
		cycle();
		settle();
		assert_row_u64(rows[i].name, in(1, SL_TASK_RUNNING), rows[i].back);
		if (rows[i].back)
			assert_int_equal(view(1).place.gpu_mask, 2);
		(void)close_machine(state);
	}
}

/* Two projects are guaranteed one GPU each. Job 1 was parked on the GPU of job 3, which is
 * guaranteed it; job 1 takes back the other GPU, which is borrowed. */
static void waits_for_no_gpu_of_its_own(void **state)
{
	struct sl_cluster_event event = mover(1, 1, 1000);
	struct sl_cluster_event found = {.type = SL_CLUSTER_EVENT_TASK_PARKED};

	one_node(2, 0, false);
	put_project(1, 0, 1000, SL_QUOTA_ALL);
	put_project(2, 0, 1000, SL_QUOTA_ALL);
	send(event);
	found.task_parked.job = 1;
	found.task_parked.node = 1;
	found.task_parked.gpu_mask = 1;
	send(found);
	event = job(3, 2, 1, 1, 1);
	event.job_add.flags = 0;
	runs(event, 1);
	runs(mover(2, 3, 1000), 2);
	cycle();
	assert_int_equal(seen(SL_CLUSTER_ACTION_STOP), 1);
	assert_int_equal(s.seen[0].stop.job, 2);
	assert_int_equal(s.seen[0].stop.how, SL_STOP_PARK);
	answer();
	cycle();
	settle();
	assert_int_equal(in(1, SL_TASK_RUNNING), 1);
	assert_int_equal(view(1).place.gpu_mask, 2);
	/* And job 2 goes back where there is room first. */
	task(SL_CLUSTER_EVENT_TASK_ENDED, 3, 0, false);
	cycle();
	settle();
	assert_int_equal(in(2, SL_TASK_RUNNING), 1);
	assert_int_equal(view(2).place.gpu_mask, 1);
}

/* --- For a user. --- */

static void user_moves(uint64_t id, uint32_t gpu_mask)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_TASK_MOVE};

	event.task_move.job = id;
	event.task_move.gpu_mask = gpu_mask;
	send(event);
}

/* GPU 0: jobs 1 and 2, half of it each; GPU 1: job 3, 0.7 of it; GPU 2 is free; GPU 3 is shut. */
static void moves_for_a_user(void **state)
{
	static const struct {
		const char *name;
		uint64_t job;
		uint32_t gpu_mask, wanted, available;
		bool moves;
	} rows[] = {
		{"to a free GPU", 1, 4, 0, 0, true},
		{"where there is too little", 1, 2, 500, 300, false},
		{"where it is", 1, 1, 0, 0, false},
		{"to two GPUs", 1, 6, 0, 0, false},
		{"to no GPU", 1, 0, 0, 0, false},
		{"to a shut GPU", 1, 8, 0, 0, false},
		{"to a GPU that is not there", 1, 16, 0, 0, false},
		{"not one that does not move", 2, 4, 0, 0, false},
		{"not one that waits", 4, 4, 0, 0, false},
		{"not one that is not there", 9, 4, 0, 0, false},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_cluster_event event;

		(void)open_machine(state);
		one_node(4, 0, false);
		event = node_put(1);
		event.node_put.gpus = 4;
		event.node_put.shut = 8;
		send(event);
		runs(mover(1, 1, 500), 1);
		event = mover(2, 1, 500);
		event.job_add.flags &= ~SL_JOB_MOVES;
		runs(event, 1);
		runs(mover(3, 1, 700), 2);
		event = mover(4, 3, 1000);
		send(event);
		user_moves(rows[i].job, rows[i].gpu_mask);
		assert_row_u64(rows[i].name, moved(), rows[i].moves);
		assert_row_u64(rows[i].name, seen(SL_CLUSTER_ACTION_REFUSE_MOVE),
			!rows[i].moves);
		if (!rows[i].moves) {
			assert_row_u64(rows[i].name, s.seen[0].refuse_move.wanted,
				rows[i].wanted);
			assert_row_u64(rows[i].name, s.seen[0].refuse_move.available,
				rows[i].available);
		} else {
			/* It is on its way. */
			user_moves(1, 4);
			assert_int_equal(seen(SL_CLUSTER_ACTION_REFUSE_MOVE), 1);
			task(SL_CLUSTER_EVENT_TASK_ENDED, 1, 0, true);
			cycle();
			settle();
			assert_int_equal(in(1, SL_TASK_RUNNING), 1);
			assert_int_equal(view(1).place.gpu_mask, 4);
		}
		(void)close_machine(state);
	}
}

/* --- Apart again. --- */

/* Jobs 1 and 2 may use whole GPUs. Job 3 gets one of these, and ends. */
static void spreads_again(void **state)
{
	struct sl_cluster_event event;

	one_node(2, 10, true);
	for (uint32_t id = 1; id <= 2; id++) {
		event = mover(id, 1, 500);
		event.job_add.flags |= SL_JOB_BURSTS;
		send(event);
	}
	run_all();
	assert_int_not_equal(view(1).place.gpu_mask, view(2).place.gpu_mask);
	send(job(3, 1, 1, 1, 1));
	cycle();
	settle();
	assert_int_equal(in(3, SL_TASK_RUNNING), 1);
	assert_int_equal(view(1).place.gpu_mask, view(2).place.gpu_mask);
	later(100 * SL_S);
	assert_int_equal(s.count, 0);
	task(SL_CLUSTER_EVENT_TASK_ENDED, 3, 0, false);
	cycle();
	/* The one that has run longest. */
	assert_int_equal(moved(), 1);
	assert_int_equal(s.seen[0].stop.job, 1);
	assert_int_equal(s.seen[0].stop.other, 0);
	settle();
	assert_int_not_equal(view(1).place.gpu_mask, view(2).place.gpu_mask);
	later(100 * SL_S);
	assert_int_equal(s.count, 0);
}

/* Jobs 1 and 2 share GPU 0, and GPU 1 is free. */
static void spreads_where_it_may(void **state)
{
	static const struct {
		const char *name;
		uint32_t flags; /* of both */
		uint32_t most;
		bool spread, waits, moves;
	} rows[] = {
		{"one spreads", SL_JOB_BURSTS, 10, true, false, true},
		{"they do not burst", 0, 10, true, false, false},
		{"no moves", SL_JOB_BURSTS, 0, true, false, false},
		{"they are to be packed", SL_JOB_BURSTS, 10, false, false, false},
		{"a job waits for two GPUs", SL_JOB_BURSTS, 10, true, true, false},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		(void)open_machine(state);
		one_node(2, rows[i].most, rows[i].spread);
		for (uint32_t id = 1; id <= 2; id++) {
			struct sl_cluster_event event = mover(id, 1, 500);

			event.job_add.flags &= ~SL_JOB_PREEMPTIBLE;
			event.job_add.flags |= rows[i].flags;
			runs(event, 1);
		}
		if (rows[i].waits)
			send(job(3, 2, 1, 1, 2));
		cycle();
		assert_row_u64(rows[i].name, moved(), rows[i].moves);
		(void)close_machine(state);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goes_beside_another),
		cmocka_unit_test(joins_fragments),
		TEST(waits_for_the_next_move),
		TEST(stays_where_it_cannot_leave),
		TEST(rests_after_a_move),
		TEST(is_parked_where_it_was),
		TEST(moves_one_of_a_gang),
		TEST(begins_elsewhere),
		TEST(keeps_its_cores_on_the_way),
		TEST(moves_rather_than_restarts),
		cmocka_unit_test(returns_to_any_gpu),
		TEST(waits_for_no_gpu_of_its_own),
		cmocka_unit_test(moves_for_a_user),
		TEST(spreads_again),
		cmocka_unit_test(spreads_where_it_may),
	};

	return cmocka_run_group_tests_name("cluster-move", tests, NULL, NULL);
}
