/* From samples of the daemon's lists to rows: use, time, and the program of a command. */
#include "../../base/test.h"

#include <stdlib.h>

#include "daemon/history/sample.h"
#include "daemon/history/scribe.h"

#define GIB (1ull << 30)
#define T0  (6000 * 60)

static struct sl_history_sample samples[2];
static struct sl_history_tables tables;

static int setup(void **state)
{
	tables = (struct sl_history_tables){0};
	tables.runs[SL_HISTORY_GPUS].kind = SL_HISTORY_GPUS;
	return 0;
}

static int teardown(void **state)
{
	for (int i = 0; i < 2; i++)
		sl_history_sample_fini(&samples[i]);
	for (int kind = 0; kind < SL_HISTORY_KINDS; kind++) {
		sl_history_runs_fini(&tables.runs[kind]);
		sl_history_rows_fini(&tables.out[kind]);
	}
	return 0;
}

/* One GPU of 10 GiB that can be shared. */
static void begin(struct sl_history_sample *sample, int64_t t, uint32_t busy_pct)
{
	union sl_msg msg;

	sl_history_sample_clear(sample);
	sample->t = t;
	sl_wire_init(&msg, SL_MSG_GPU_ROW);
	msg.gpu_row.shareable_bytes = 10 * GIB;
	msg.gpu_row.utilisation_pct = busy_pct;
	sl_history_sample_take(sample, &msg);
	sample->gpus[0].id = 1;
}

struct what {
	uint64_t request, backing, evicted, out;
	uint32_t residency;
	uint64_t waits, waits_ms, denials, waiting;
	uint64_t waited_ms, idle_ms; /* idle_ms 0: it works */
	uint32_t work_pm;            /* of all work; with `told` */
	bool told;
	uint64_t turns, turn_left_ms;
	uint32_t compute_pm; /* 0: not metered */
	uint64_t had_us, alone_us;
};

static void add(struct sl_history_sample *sample, uint64_t workload, struct what what)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_USE_ROW);
	msg.use_row.workload = workload;
	msg.use_row.request_bytes = what.request;
	msg.use_row.backing_bytes = what.backing;
	msg.use_row.waiting = what.waiting > 0;
	msg.use_row.waiting_bytes = what.waiting;
	msg.use_row.evicted_bytes = what.evicted;
	msg.use_row.out_bytes = what.out;
	msg.use_row.waited_ms = what.waited_ms;
	msg.use_row.waits = what.waits;
	msg.use_row.waits_ms = what.waits_ms;
	msg.use_row.denials = what.denials;
	msg.use_row.turns = what.turns;
	msg.use_row.turn_left_ms = what.turn_left_ms;
	msg.use_row.work_pm = what.told ? what.work_pm : UINT32_MAX;
	msg.use_row.compute_request_pm = what.compute_pm;
	msg.use_row.compute_used_pm = what.compute_pm ? 0 : UINT32_MAX;
	msg.use_row.compute_us = what.had_us;
	msg.use_row.compute_alone_us = what.alone_us;
	msg.use_row.residency = what.residency ? what.residency : SL_WIRE_BOUND;
	sl_history_sample_take(sample, &msg);
	sl_wire_init(&msg, SL_MSG_CLIENT_ROW);
	msg.client_row.workload = workload;
	msg.client_row.flags = what.idle_ms ? SL_CLIENT_IDLE : 0;
	msg.client_row.idle_ms = what.idle_ms;
	sl_history_sample_take(sample, &msg);
	sl_history_sample_find(sample, workload, 0)->id = (int64_t)workload;
}

/* The rows between the two, all of them told. */
static void between(void)
{
	assert_int_equal(sl_history_sample_rows(&samples[0], &samples[1], &tables), 0);
	for (int kind = 0; kind < SL_HISTORY_KINDS; kind++)
		assert_int_equal(
			sl_history_runs_tell(&tables.runs[kind], &tables.out[kind]), 0);
}

/* The sum of a column of a workload (0: of the GPU). */
static int64_t sum(int64_t workload, uint32_t column)
{
	const struct sl_history_rows *out =
		&tables.out[workload ? SL_HISTORY_USES : SL_HISTORY_GPUS];
	int64_t value = 0;

	for (size_t i = 0; i < out->count; i++) {
		if (out->all[i].workload == workload)
			value += out->all[i].value[column];
	}
	return value;
}

static void use_is_divided_among_those_that_work(void **state)
{
	begin(&samples[0], T0, 0);
	begin(&samples[1], T0 + 1, 60);
	for (int i = 0; i < 2; i++) {
		add(&samples[i], 1, (struct what){.request = 5 * GIB, .backing = GIB});
		add(&samples[i], 2, (struct what){.request = GIB, .backing = 3 * GIB});
		add(&samples[i], 3, (struct what){.backing = 2 * GIB, .idle_ms = 5000});
		/* All of it is on the host: it cannot have worked. */
		add(&samples[i], 4, (struct what){.backing = GIB, .evicted = GIB});
	}
	between();
	assert_int_equal(sum(1, SL_HISTORY_USE_used_us), 300000);
	assert_int_equal(sum(2, SL_HISTORY_USE_used_us), 300000);
	assert_int_equal(sum(3, SL_HISTORY_USE_used_us), 0);
	assert_int_equal(sum(4, SL_HISTORY_USE_used_us), 0);
	/* The request where that is more, else the resident bytes. */
	assert_int_equal(sum(1, SL_HISTORY_USE_allocated_us), 500000);
	assert_int_equal(sum(2, SL_HISTORY_USE_allocated_us), 300000);
	assert_int_equal(sum(3, SL_HISTORY_USE_allocated_us), 200000);
	assert_int_equal(sum(4, SL_HISTORY_USE_allocated_us), 0);
	assert_int_equal(sum(1, SL_HISTORY_USE_idle_us), 0);
	assert_int_equal(sum(3, SL_HISTORY_USE_idle_us), 200000);
	assert_int_equal(sum(0, SL_HISTORY_GPU_busy_us), 600000);
	assert_int_equal(sum(0, SL_HISTORY_GPU_by_process_ms), 0);
	assert_int_equal(sum(0, SL_HISTORY_GPU_allocated_us), 1000000);
	assert_int_equal(sum(0, SL_HISTORY_GPU_idle_us), 0);
}

/* The part of a request that other workloads use is allocated to them, and not to its owner, too. A
 * workload that is allocated two fifths of the GPU uses at most these. */
static void what_is_lent_is_not_counted_twice(void **state)
{
	begin(&samples[0], T0, 0);
	begin(&samples[1], T0 + 2, 100);
	for (int i = 0; i < 2; i++) {
		add(&samples[i], 1,
			(struct what){
				.request = 6 * GIB, .backing = 2 * GIB, .idle_ms = 5000});
		add(&samples[i], 2, (struct what){.backing = 4 * GIB});
		add(&samples[i], 3, (struct what){.backing = 4 * GIB, .idle_ms = 5000});
	}
	between();
	assert_int_equal(sum(1, SL_HISTORY_USE_allocated_us), 2 * 200000);
	assert_int_equal(sum(2, SL_HISTORY_USE_allocated_us), 2 * 400000);
	assert_int_equal(sum(3, SL_HISTORY_USE_allocated_us), 2 * 400000);
	assert_int_equal(sum(0, SL_HISTORY_GPU_allocated_us), 2 * 1000000);
	assert_int_equal(sum(2, SL_HISTORY_USE_used_us), 2 * 400000);
	assert_int_equal(sum(0, SL_HISTORY_GPU_busy_us), 2 * 1000000);
}

/* Metrics tell the same as the rows, also of what was no row yet. */
static void sums_are_those_of_the_rows(void **state)
{
	static struct sl_history_summing summing;
	const struct sl_history_sum *user, *other, *project, *gpu;

	memset(&summing, 0, sizeof(summing));
	tables.summing = &summing;
	for (int i = 0; i < 2; i++) {
		begin(&samples[i], T0 + 57 + 5 * i, 60);
		samples[i].gpus[0].place = sl_history_summing_find(
			&summing, SL_HISTORY_OF_GPU, "GPU-a", "GPU-a");
		add(&samples[i], 1, (struct what){.request = 5 * GIB, .backing = GIB});
		add(&samples[i], 2,
			(struct what){.backing = 2 * GIB,
				.idle_ms = 9000,
				.waits = (uint64_t)i,
				.waits_ms = (uint64_t)(700 * i),
				.turns = (uint64_t)(3 * i)});
		for (uint64_t w = 1; w <= 2; w++) {
			struct sl_history_seen *seen =
				sl_history_sample_find(&samples[i], w, 0);

			seen->user = sl_history_summing_find(&summing, SL_HISTORY_OF_USER,
				w == 1 ? "1000" : "1001", "");
			seen->project = sl_history_summing_find(
				&summing, SL_HISTORY_OF_PROJECT, "p", "p");
		}
	}
	between();
	user = &summing.all[SL_HISTORY_OF_USER][0];
	other = &summing.all[SL_HISTORY_OF_USER][1];
	project = &summing.all[SL_HISTORY_OF_PROJECT][0];
	gpu = &summing.all[SL_HISTORY_OF_GPU][0];
	assert_int_equal(user->allocated_us, sum(1, SL_HISTORY_USE_allocated_us));
	assert_int_equal(user->used_us, 5 * 500000);
	assert_int_equal(user->idle_us, 0);
	assert_int_equal(other->idle_us, sum(2, SL_HISTORY_USE_idle_us));
	assert_int_equal(other->idle_us, 5 * 200000);
	assert_int_equal(other->waits, 1);
	assert_int_equal(other->turns, 3);
	assert_int_equal(other->waiting_ms, sum(2, SL_HISTORY_USE_waiting_ms));
	assert_int_equal(project->allocated_us, user->allocated_us + other->allocated_us);
	assert_int_equal(gpu->busy_us, sum(0, SL_HISTORY_GPU_busy_us));
	assert_int_equal(gpu->known_ms, 5000);
	assert_int_equal(gpu->allocated_us, sum(0, SL_HISTORY_GPU_allocated_us));
}

/* Where the driver gives the work of each process, nothing is guessed. A process without Sluice did
 * a tenth of the work here. */
static void use_is_divided_by_what_each_did(void **state)
{
	begin(&samples[0], T0, 0);
	begin(&samples[1], T0 + 2, 60);
	for (int i = 0; i < 2; i++) {
		add(&samples[i], 1,
			(struct what){.request = 5 * GIB,
				.backing = GIB,
				.told = true,
				.work_pm = 700});
		/* It says itself that it was idle; the driver knows better. */
		add(&samples[i], 2,
			(struct what){.backing = GIB,
				.idle_ms = 5000,
				.told = true,
				.work_pm = 200});
		add(&samples[i], 3, (struct what){.backing = 2 * GIB, .told = true});
	}
	between();
	assert_int_equal(sum(1, SL_HISTORY_USE_used_us), 2 * 420000);
	/* It has a tenth of the GPU. */
	assert_int_equal(sum(2, SL_HISTORY_USE_used_us), 2 * 100000);
	assert_int_equal(sum(3, SL_HISTORY_USE_used_us), 0);
	assert_int_equal(sum(1, SL_HISTORY_USE_idle_us), 0);
	assert_int_equal(sum(2, SL_HISTORY_USE_idle_us), 0);
	assert_int_equal(sum(3, SL_HISTORY_USE_idle_us), 2 * 200000);
	assert_int_equal(sum(0, SL_HISTORY_GPU_busy_us), 2 * 600000);
	assert_int_equal(sum(0, SL_HISTORY_GPU_by_process_ms), 2000);
	assert_int_equal(sum(0, SL_HISTORY_GPU_known_ms), 2000);
}

/* A process that is gone counts with its last figures. One that has told nothing yet counts neither
 * as working nor as idle. */
static void the_last_second_of_a_run_is_no_idle_one(void **state)
{
	begin(&samples[0], T0, 0);
	begin(&samples[1], T0 + 1, 60);
	add(&samples[0], 1, (struct what){.request = 5 * GIB, .backing = 2 * GIB});
	add(&samples[0], 2, (struct what){.request = 2 * GIB, .idle_ms = 3000});
	add(&samples[0], 3, (struct what){.request = GIB});
	sl_history_sample_find(&samples[0], 3, 0)->clients = 0;
	/* Its memory came after the first look. */
	add(&samples[0], 4, (struct what){.request = GIB});
	add(&samples[1], 4, (struct what){.request = GIB, .backing = GIB});
	between();
	assert_int_equal(sum(1, SL_HISTORY_USE_used_us), 300000);
	assert_int_equal(sum(1, SL_HISTORY_USE_idle_us), 0);
	assert_int_equal(sum(1, SL_HISTORY_USE_active_ms), 1000);
	assert_int_equal(sum(2, SL_HISTORY_USE_idle_us), 200000);
	assert_int_equal(sum(3, SL_HISTORY_USE_allocated_us), 100000);
	assert_int_equal(sum(3, SL_HISTORY_USE_idle_us), 0);
	assert_int_equal(sum(3, SL_HISTORY_USE_used_us), 0);
	assert_int_equal(sum(4, SL_HISTORY_USE_used_us), 100000);
}

/* The driver says nothing of dead processes: theirs is the rest of the work. */
static void what_the_dead_did_is_what_is_left(void **state)
{
	begin(&samples[0], T0, 0);
	begin(&samples[1], T0 + 1, 50);
	for (uint64_t w = 1; w <= 2; w++)
		add(&samples[0], w,
			(struct what){.backing = 3 * GIB, .told = true, .work_pm = 400});
	for (int i = 0; i < 2; i++)
		add(&samples[i], 3,
			(struct what){.backing = 4 * GIB, .told = true, .work_pm = 600});
	between();
	assert_int_equal(sum(1, SL_HISTORY_USE_used_us), 100000);
	assert_int_equal(sum(2, SL_HISTORY_USE_used_us), 100000);
	assert_int_equal(sum(3, SL_HISTORY_USE_used_us), 300000);
}

/* Its work before it was seen first is in its first row. */
static void counters_before_the_first_look_are_not_lost(void **state)
{
	begin(&samples[0], T0, 0);
	begin(&samples[1], T0 + 1, 0);
	for (uint64_t w = 1; w <= 2; w++) {
		add(&samples[0], w, (struct what){.out = 5 << 10, .turns = 2});
		sl_history_sample_find(&samples[0], w, 0)->fresh = true;
	}
	add(&samples[1], 1, (struct what){.out = 9 << 10, .turns = 4});
	between();
	assert_int_equal(sum(1, SL_HISTORY_USE_out), 9);
	assert_int_equal(sum(1, SL_HISTORY_USE_turns), 4);
	assert_int_equal(sum(2, SL_HISTORY_USE_out), 5);
	assert_int_equal(sum(2, SL_HISTORY_USE_turns), 2);
}

static void nobody_works_on_an_idle_gpu(void **state)
{
	begin(&samples[0], T0, 90);
	begin(&samples[1], T0 + 2, 0);
	for (int i = 0; i < 2; i++)
		add(&samples[i], 1, (struct what){.request = 5 * GIB, .backing = GIB});
	between();
	assert_int_equal(sum(1, SL_HISTORY_USE_used_us), 0);
	assert_int_equal(sum(1, SL_HISTORY_USE_idle_us), 1000000);
	assert_int_equal(sum(0, SL_HISTORY_GPU_idle_us), 1000000);
}

/* An old measurement says nothing; it does not say that nothing was done. */
static void what_is_not_known_is_not_idle(void **state)
{
	begin(&samples[0], T0, 0);
	begin(&samples[1], T0 + 1, 0);
	samples[1].gpus[0].row.measured_age_ms = SL_HISTORY_MEASURED_MS + 1;
	for (int i = 0; i < 2; i++)
		add(&samples[i], 1, (struct what){.request = 5 * GIB});
	between();
	assert_int_equal(sum(1, SL_HISTORY_USE_idle_us), 0);
	assert_int_equal(sum(1, SL_HISTORY_USE_allocated_us), 500000);
	assert_int_equal(sum(0, SL_HISTORY_GPU_known_ms), 0);
}

static void counters_are_of_the_time_between(void **state)
{
	begin(&samples[0], T0, 0);
	begin(&samples[1], T0 + 1, 0);
	add(&samples[0], 1,
		(struct what){.out = 5 << 10, .turns = 2, .waits = 3, .waits_ms = 800});
	add(&samples[1], 1,
		(struct what){.out = 9 << 10,
			.turns = 4,
			.waits = 5,
			.waits_ms = 1050,
			.denials = 1});
	/* New books of the daemon count anew. */
	add(&samples[0], 2, (struct what){.out = 100 << 10, .waits = 9});
	add(&samples[1], 2, (struct what){.out = 3 << 10, .waits = 1, .waits_ms = 400});
	between();
	assert_int_equal(sum(1, SL_HISTORY_USE_out), 4);
	assert_int_equal(sum(1, SL_HISTORY_USE_turns), 2);
	assert_int_equal(sum(1, SL_HISTORY_USE_waits), 2);
	assert_int_equal(sum(1, SL_HISTORY_USE_waiting_ms), 250);
	assert_int_equal(sum(1, SL_HISTORY_USE_denials), 1);
	assert_int_equal(sum(2, SL_HISTORY_USE_out), 3);
	assert_int_equal(sum(2, SL_HISTORY_USE_waits), 1);
	assert_int_equal(sum(2, SL_HISTORY_USE_waiting_ms), 400);
}

/* Turns exist only where not all workloads fit. A workload alone, or beside an idle one, has none;
 * nor has one with memory on the host. */
/* Time alone is not contested, and without shares nothing is. */
static void time_is_of_the_contest(void **state)
{
	begin(&samples[0], T0, 100);
	add(&samples[0], 1, (struct what){.compute_pm = 300, .had_us = 5000000});
	add(&samples[0], 2, (struct what){.compute_pm = 200, .alone_us = 1000});
	add(&samples[0], 3, (struct what){.had_us = 700});
	begin(&samples[1], T0 + 2, 100);
	add(&samples[1], 1, (struct what){.compute_pm = 300, .had_us = 5600000});
	add(&samples[1], 2,
		(struct what){.compute_pm = 200, .had_us = 250000, .alone_us = 1501000});
	add(&samples[1], 3, (struct what){.had_us = 700});
	between();
	assert_int_equal(sum(1, SL_HISTORY_USE_compute_request), 600);
	assert_int_equal(sum(1, SL_HISTORY_USE_contested_ms), 2000);
	assert_int_equal(sum(1, SL_HISTORY_USE_compute_us), 600000);
	assert_int_equal(sum(2, SL_HISTORY_USE_contested_ms), 500);
	assert_int_equal(sum(2, SL_HISTORY_USE_compute_us), 250000);
	assert_int_equal(sum(3, SL_HISTORY_USE_contested_ms), 0);
	assert_int_equal(sum(3, SL_HISTORY_USE_compute_us), 0);
}

static void a_turn_is_had_before_others(void **state)
{
	begin(&samples[0], T0, 100);
	begin(&samples[1], T0 + 3, 100);
	for (int i = 0; i < 2; i++) {
		add(&samples[i], 1, (struct what){.backing = 6 * GIB});
		add(&samples[i], 2,
			(struct what){.backing = 6 * GIB,
				.evicted = 6 * GIB,
				.residency = SL_WIRE_EVICTED,
				.waited_ms = i ? 700 : 0});
	}
	between();
	assert_int_equal(sum(1, SL_HISTORY_USE_turn_ms), 0);
	begin(&samples[0], T0 + 3, 100);
	begin(&samples[1], T0 + 5, 100);
	for (int i = 0; i < 2; i++) {
		add(&samples[i], 1, (struct what){.backing = 6 * GIB});
		add(&samples[i], 2,
			(struct what){.backing = 6 * GIB,
				.evicted = 6 * GIB,
				.residency = SL_WIRE_EVICTED,
				.waited_ms = 700});
		add(&samples[i], 3, (struct what){.backing = 2 * GIB, .evicted = GIB});
		add(&samples[i], 4, (struct what){0});
	}
	between();
	assert_int_equal(sum(1, SL_HISTORY_USE_turn_ms), 2000);
	for (int64_t other = 2; other <= 4; other++)
		assert_int_equal(sum(other, SL_HISTORY_USE_turn_ms), 0);
	/* A demand waits for turns only where turns are taken. */
	begin(&samples[0], T0 + 5, 100);
	begin(&samples[1], T0 + 6, 100);
	for (int i = 0; i < 2; i++) {
		add(&samples[i], 1,
			(struct what){.backing = 6 * GIB, .turn_left_ms = 300});
		add(&samples[i], 2, (struct what){.backing = GIB});
		add(&samples[i], 3,
			(struct what){.backing = GIB, .waiting = 1, .turn_left_ms = 9});
	}
	between();
	assert_int_equal(sum(1, SL_HISTORY_USE_turn_ms), 3000);
	assert_int_equal(sum(2, SL_HISTORY_USE_turn_ms), 0);
	assert_int_equal(sum(3, SL_HISTORY_USE_turn_ms), 0);
}

/* A parked workload has given its request up. */
static void parked_requests_are_not_allocated(void **state)
{
	begin(&samples[0], T0, 0);
	begin(&samples[1], T0 + 1, 0);
	for (int i = 0; i < 2; i++)
		add(&samples[i], 1,
			(struct what){.request = 5 * GIB,
				.backing = GIB,
				.evicted = GIB,
				.residency = SL_WIRE_PARKED});
	between();
	assert_int_equal(sum(1, SL_HISTORY_USE_allocated_us), 0);
	assert_int_equal(sum(1, SL_HISTORY_USE_request), 0);
}

/* A stretch over the end of a minute is in both, and its counts are in it once. */
static void minutes_are_not_crossed(void **state)
{
	bool ends = false;

	begin(&samples[0], T0 - 3, 0);
	begin(&samples[1], T0 + 4, 100);
	add(&samples[0], 1, (struct what){.backing = GIB});
	add(&samples[1], 1, (struct what){.backing = GIB, .out = 7 << 10});
	between();
	for (size_t i = 0; i < tables.out[SL_HISTORY_USES].count; i++) {
		const struct sl_history_row *row = &tables.out[SL_HISTORY_USES].all[i];

		assert_true(row->t / 60 == (row->t + row->span - 1) / 60);
		ends |= row->t + row->span == T0;
	}
	assert_true(ends);
	assert_int_equal(sum(1, SL_HISTORY_USE_out), 7);
	assert_int_equal(sum(1, SL_HISTORY_USE_resident), 7 * (1 << 20));
	assert_int_equal(sum(1, SL_HISTORY_USE_used_us), 700000);
	assert_int_equal(sum(1, SL_HISTORY_USE_active_ms), 7000);
}

/* The machine slept: that time has no data. */
static void a_long_gap_is_unknown(void **state)
{
	begin(&samples[0], T0, 0);
	begin(&samples[1], T0 + SL_HISTORY_GAP_S + 1, 0);
	for (int i = 0; i < 2; i++)
		add(&samples[i], 1, (struct what){.backing = GIB});
	between();
	assert_int_equal(tables.out[SL_HISTORY_USES].count, 0);
	assert_int_equal(tables.out[SL_HISTORY_GPUS].count, 0);
}

/* The disk is full for long, and one workload after the other runs. The number of workloads that
 * wait to be written is bounded, and living ones are among those that are kept. */
static void who_cannot_be_written_is_bounded(void **state)
{
	struct sl_history_scribe *scribe = sl_history_scribe_new("/nowhere", NULL, 0);
	struct sl_msg_use_row row = {.workload = 1};

	assert_non_null(scribe);
	for (; row.workload <= SL_HISTORY_WHO_MAX + 100; row.workload++) {
		struct sl_history_living *living =
			sl_history_ids_living(scribe, &row, 1000);

		assert_non_null(living);
		living->row.ended_ms = 2000;
		sl_history_ids_end(scribe);
	}
	assert_non_null(sl_history_ids_living(scribe, &row, 1000));
	sl_history_ids_collect(scribe);
	assert_int_equal(scribe->workload_count, SL_HISTORY_WHO_MAX + 101);
	sl_history_ids_written(scribe, false);
	assert_int_equal(scribe->dropped, 100);
	assert_int_equal(scribe->living_count, SL_HISTORY_WHO_MAX + 1);
	assert_false(scribe->living[SL_HISTORY_WHO_MAX]->over);
	sl_history_ids_collect(scribe);
	sl_history_ids_written(scribe, true);
	assert_int_equal(scribe->living_count, 1);
	assert_false(scribe->living[0]->dirty);
	(void)sl_history_scribe_free(scribe);
}

static void programs_are_told_from_commands(void **state)
{
	static const struct {
		const char *command, *program;
	} rows[] = {
		{"/usr/bin/python3.11 -u train.py --lr 0.1", "python train.py"},
		{"python /srv/x/serve.py", "python serve.py"},
		{"python3 -m vllm.entrypoints.api", "python vllm.entrypoints.api"},
		{"python -c 'import torch'", "python"},
		{"./a.out -x /y", "a.out"},
		{"python3", "python"},
		{"bash run.sh", "bash run.sh"},
		{"/opt/x/pythonic tool", "pythonic"},
		{"  ", ""},
		{"", ""},
		{"dir/", "dir/"},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		char program[128];

		sl_history_program(rows[i].command, program, sizeof(program));
		assert_row_text(rows[i].command, program, rows[i].program);
	}
}

static void runs_are_grouped_by_name(void **state)
{
	static const struct {
		const char *name, *command, *group;
	} rows[] = {
		{"train", "python a.py", "train"},
		{"python-12", "/usr/bin/python a.py", "program"},
		{"python-j3", "python a.py", "program"},
		{"python-", "python a.py", "python-"},
		{"python-j", "python a.py", "python-j"},
		{"python-2x", "python a.py", "python-2x"},
		{"resnet-50", "python a.py", "resnet-50"},
		{"job-7", "", "program"},
		{"", "python a.py", "program"},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++)
		assert_row_text(rows[i].name,
			sl_history_group(rows[i].name, rows[i].command, "program"),
			rows[i].group);
}

int main(void)
{
#define FRESH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		FRESH(use_is_divided_among_those_that_work),
		FRESH(what_is_lent_is_not_counted_twice),
		FRESH(sums_are_those_of_the_rows),
		FRESH(use_is_divided_by_what_each_did),
		FRESH(the_last_second_of_a_run_is_no_idle_one),
		FRESH(what_the_dead_did_is_what_is_left),
		FRESH(counters_before_the_first_look_are_not_lost),
		FRESH(nobody_works_on_an_idle_gpu),
		FRESH(what_is_not_known_is_not_idle),
		FRESH(counters_are_of_the_time_between),
		FRESH(time_is_of_the_contest),
		FRESH(a_turn_is_had_before_others),
		FRESH(parked_requests_are_not_allocated),
		FRESH(minutes_are_not_crossed),
		FRESH(a_long_gap_is_unknown),
		cmocka_unit_test(who_cannot_be_written_is_bounded),
		cmocka_unit_test(programs_are_told_from_commands),
		cmocka_unit_test(runs_are_grouped_by_name),
	};

	return cmocka_run_group_tests_name("history_sample", tests, NULL, NULL);
}
