/* Size and age of the kept history, and serials of events. */
#include "history_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/history/read.h"
#include "policy/words/reason.h"

#define T0 (1000 * 3600 + 1234)

/* Rows of two years at once: the file keeps its size, and the oldest rows go. */
static void it_stays_within_its_size(void **state)
{
	struct sl_history_keep keep = {.seconds = {3600, 7200, 2ll * 365 * 86400},
		.bytes = 1 << 20,
		.events = 10};
	struct sl_history_store *store = history_open_store();
	enum { HOURS = 60, MANY = 300 };
	static struct sl_history_row rows[MANY];
	uint64_t most = 0;

	/* A row per workload and hour, each different. */
	for (int h = 0; h < HOURS; h++) {
		struct sl_history_batch batch = {.row_count = {MANY}};
		int64_t t = ((int64_t)1000 + h) * 3600;

		for (int w = 0; w < MANY; w++) {
			rows[w] = (struct sl_history_row){
				.t = t, .span = 60, .gpu = 1, .workload = w + 1};
			for (int c = 0; c < SL_HISTORY_USE_COLUMNS; c++)
				rows[w].value[c] = (int64_t)rand() << 8;
		}
		batch.rows[SL_HISTORY_USES] = rows;
		history_write(store, &batch, t + 60, &keep);
		/* Seconds go by; each gives it leave to tidy up a little. */
		batch = (struct sl_history_batch){0};
		for (int s = 61; s < 100; s++)
			history_write(store, &batch, t + s, &keep);
		most = sl_max_u64(most, sl_history_store_bytes(store));
	}
	assert_in_range(most, 1 << 18, 1 << 20);
	assert_int_not_equal(history_number("SELECT count(*) FROM hours"), 0);
	assert_in_range(
		history_number("SELECT min(t) FROM hours"), 1001 * 3600, 1060 * 3600);
	sl_history_store_close(store);
}

/* The file has half a year of hours of GPUs, and so many seconds that these alone exceed the bound:
 * seconds are deleted, and no hour and no event. */
static void what_takes_most_room_goes(void **state)
{
	struct sl_history_keep keep = {.seconds = {86400, 86400, 2ll * 365 * 86400},
		.bytes = 2 << 20,
		.events = 1000};
	enum { HOURS = 2000, WORKLOADS_MANY = 200, MINUTES = 150 };
	static struct sl_history_row rows[HOURS];
	static struct sl_msg_event_row events[500];
	struct sl_history_store *store = history_open_store();
	struct sl_history_batch batch = {.rows = {[SL_HISTORY_GPUS] = rows},
		.row_count = {[SL_HISTORY_GPUS] = HOURS},
		.events = events,
		.event_count = SL_ARRAY_LEN(events)};
	struct sl_history_keep first = history_everything;
	int64_t begin = 10000ll * 3600;

	for (size_t i = 0; i < SL_ARRAY_LEN(events); i++)
		events[i] = (struct sl_msg_event_row){
			.serial = i + 1, .reason = SL_REASON_JOINED};
	for (int h = 0; h < HOURS; h++)
		rows[h] = (struct sl_history_row){
			.t = begin - (HOURS - h) * 3600ll, .span = 60, .gpu = 1};
	history_write(store, &batch, begin - 1, &first);
	/* As they would be in years. */
	history_run("INSERT OR REPLACE INTO gpu_hours SELECT * FROM gpu_seconds; DELETE "
		    "FROM gpu_seconds; DELETE FROM gpu_minutes; UPDATE meta SET done = "
		    "36000000");
	for (int m = 0; m < MINUTES; m++) {
		batch = (struct sl_history_batch){.rows = {[SL_HISTORY_USES] = rows},
			.row_count = {[SL_HISTORY_USES] = WORKLOADS_MANY}};
		for (int w = 0; w < WORKLOADS_MANY; w++) {
			rows[w] = (struct sl_history_row){.t = begin + m * 60,
				.span = 60,
				.gpu = 1,
				.workload = w + 1};
			for (int c = 0; c < SL_HISTORY_USE_COLUMNS; c++)
				rows[w].value[c] = (int64_t)rand() << 8;
		}
		history_write(store, &batch, begin + m * 60 + 60, &first);
	}
	assert_in_range(sl_history_store_bytes(store), 4 << 20, 100 << 20);
	batch = (struct sl_history_batch){0};
	for (int s = 61; s < 200; s++)
		history_write(store, &batch, begin + MINUTES * 60 + s, &keep);
	assert_in_range(sl_history_store_bytes(store), 1 << 18, 2 << 20);
	assert_int_equal(
		history_number("SELECT count(*) FROM gpu_hours WHERE t < 36000000"),
		HOURS);
	assert_int_equal(
		history_number("SELECT count(*) FROM events"), SL_ARRAY_LEN(events));
	sl_history_store_close(store);
}

static void what_is_kept_of_hours_ends(void **state)
{
	struct sl_history_keep keep = {.seconds = {60, 3600, 10 * 3600}, .events = 10};
	struct sl_history_store *store = history_open_store();
	struct sl_history_row row = {.span = 60, .gpu = 1, .workload = 1};
	int64_t t = 0;

	for (int h = 0; h < 40; h++) {
		struct sl_history_batch batch = {.rows = {&row}, .row_count = {1}};

		t = ((int64_t)1000 + h) * 3600;
		row.t = t;
		history_write(store, &batch, t + 60, &keep);
		batch.row_count[0] = 0;
		for (int s = 61; s < 64; s++)
			history_write(store, &batch, t + s, &keep);
	}
	assert_in_range(
		history_number("SELECT min(t) FROM hours"), t - 11 * 3600, t - 9 * 3600);
	sl_history_store_close(store);
}

/* A new daemon ends what an earlier one left living, where the file ends. */
static void what_lived_on_is_ended(void **state)
{
	struct sl_history_store *store = history_open_store();
	struct sl_history_workload rows[] = {
		{.id = 1, .number = 7, .uid = 3, .pid = 5, .gpus = 2, .begun_ms = 1000},
		{.id = 2, .number = 8, .begun_ms = 2000, .ended_ms = 3000},
		{.id = 3, .number = 9, .begun_ms = 4000},
		{.id = 4, .number = 9, .begun_ms = 60000000}};
	struct sl_history_batch batch = {.workloads = rows, .workload_count = 4};
	struct sl_history_known known;
	struct sl_error err = {0};

	history_write(store, &batch, T0, &history_everything);
	assert_int_equal(
		sl_history_store_known(store, &known, &err), SL_HISTORY_STORE_OK);
	assert_int_equal(known.living_count, 3);
	assert_int_equal(known.living[0].pid, 5);
	assert_int_equal(known.living[0].gpus, 2);
	free(known.gpus);
	free(known.living);
	/* One of them lives on. */
	rows[0].gpus = 3;
	batch = (struct sl_history_batch){
		.workloads = rows, .workload_count = 1, .living_end = 5000};
	history_write(store, &batch, T0, &history_everything);
	assert_int_equal(
		history_number("SELECT ended_ms FROM workloads WHERE id = 1"), 0);
	assert_int_equal(
		history_number("SELECT ended_ms FROM workloads WHERE id = 2"), 3000);
	assert_int_equal(
		history_number("SELECT ended_ms FROM workloads WHERE id = 3"), 5000000);
	assert_int_equal(
		history_number("SELECT ended_ms FROM workloads WHERE id = 4"), 60000001);
	sl_history_store_close(store);
}

/* --- a clock that was wrong ------------------------------------------------------------------- */

/* Serials of a daemon whose clock was ahead are before those of this one, in their order. */
static void events_of_a_clock_that_was_ahead_are_before(void **state)
{
	struct sl_history_store *store = history_open_store();
	struct sl_msg_event_row events[] = {{.serial = 50, .reason = SL_REASON_JOINED},
		{.serial = 9000, .reason = SL_REASON_JOINED},
		{.serial = 9007, .reason = SL_REASON_RESTORED}};
	struct sl_history_batch batch = {.events = events, .event_count = 3};
	struct sl_error err = {0};

	history_write(store, &batch, T0, &history_everything);
	assert_int_equal(
		sl_history_store_events_before(store, 1000, &err), SL_HISTORY_STORE_OK);
	assert_int_equal(history_number("SELECT max(serial) FROM events"), 999);
	assert_int_equal(
		history_number(
			"SELECT serial FROM events ORDER BY serial LIMIT 1 OFFSET 1"),
		992);
	assert_int_equal(history_number("SELECT min(serial) FROM events"), 50);
	assert_int_equal(
		sl_history_store_events_before(store, 1000, &err), SL_HISTORY_STORE_OK);
	assert_int_equal(
		history_number(
			"SELECT count(*) FROM events WHERE reason = 'RESTORED' AND "
			"serial = 999"),
		1);
	sl_history_store_close(store);
}

int main(void)
{
#define IN_A_FOLDER(test) \
	cmocka_unit_test_setup_teardown(test, history_open_folder, history_remove_folder)
	const struct CMUnitTest tests[] = {
		IN_A_FOLDER(it_stays_within_its_size),
		IN_A_FOLDER(what_takes_most_room_goes),
		IN_A_FOLDER(what_is_kept_of_hours_ends),
		IN_A_FOLDER(what_lived_on_is_ended),
		IN_A_FOLDER(events_of_a_clock_that_was_ahead_are_before),
	};

	return cmocka_run_group_tests_name("history_kept", tests, NULL, NULL);
}
