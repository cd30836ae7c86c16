/* An old history: two years of hours and a week of minutes of 200 workloads, as they would be on
 * the disk. Checks what is then answered, kept and deleted. */
#include "history_file.h"

#include <inttypes.h>
#include <jansson.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/history/query.h"

#define WORKLOADS 200
/* Each lives in every eighth hour, so that so many live at a time. */
#define ALIVE 25
#define HOURS (730 * 24)
#define WEEK  (7 * 86400)
/* Ends on a whole hour; a little before the seconds begin. */
#define NOW (500000ll * 3600)
/* Of each row: a quarter of a GPU. */
#define QUARTER 4

static sqlite3 *open_file(void)
{
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open(history_path, &db), SQLITE_OK);
	return db;
}

static void run(sqlite3 *db, const char *sql)
{
	char *said = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &said) != SQLITE_OK)
		fail_msg("%s: %s", sql, said);
}

/* Rows of a level up to NOW; workload n has those of the hours h with (h + n) % 8 = 0. */
static void fill_level(sqlite3 *db, enum sl_history_level level, int64_t span)
{
	int64_t grain = sl_history_grains[level];
	char sql[1024];

	(void)snprintf(sql, sizeof(sql),
		"WITH RECURSIVE m(t) AS (SELECT %lld UNION ALL SELECT t + %" PRId64
		" FROM m WHERE t + %" PRId64 " < %lld), w(n) AS (SELECT 1 UNION ALL "
		"SELECT n + 1 FROM w WHERE n < %d) INSERT INTO %s (t, gpu, workload, "
		"span, "
		"resident, most, allocated_us, used_us, idle_us) SELECT m.t, 1 + n %% 8, "
		"n, %" PRId64 ", n * %" PRId64 ", n, %" PRId64 ", 0, %" PRId64
		" FROM m CROSS JOIN w WHERE (m.t / 3600 + n) %% %d = 0",
		NOW - span, grain, grain, NOW, WORKLOADS,
		sl_history_tables[SL_HISTORY_USES][level], grain, grain,
		grain * 1000000 / QUARTER, grain * 1000000 / QUARTER, WORKLOADS / ALIVE);
	run(db, sql);
	(void)snprintf(sql, sizeof(sql),
		"WITH RECURSIVE m(t) AS (SELECT %lld UNION ALL SELECT t + %" PRId64
		" FROM m WHERE t + %" PRId64 " < %lld), g(n) AS (SELECT 1 UNION ALL "
		"SELECT n + 1 FROM g WHERE n < 8) INSERT INTO %s (t, gpu, workload, "
		"span, known_ms, busy_us, allocated_us) SELECT m.t, n, 0, %" PRId64
		", %" PRId64 ", 0, %" PRId64 " FROM m CROSS JOIN g",
		NOW - span, grain, grain, NOW, sl_history_tables[SL_HISTORY_GPUS][level],
		grain, grain * 1000, grain * 1000000 * ALIVE / QUARTER / 8);
	run(db, sql);
}

/* As the daemon would have left it at NOW. */
static int make_history(void **state)
{
	char sql[512];
	sqlite3 *db;

	assert_int_equal(history_open_folder(state), 0);
	assert_null(sl_history_store_close(history_open_store()));
	db = open_file();
	run(db, "PRAGMA synchronous = OFF; BEGIN");
	fill_level(db, SL_HISTORY_HOURS, HOURS * 3600ll);
	fill_level(db, SL_HISTORY_MINUTES, WEEK);
	(void)snprintf(sql, sizeof(sql),
		"WITH RECURSIVE w(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM w WHERE n "
		"< "
		"%d) INSERT INTO workloads SELECT n, n, 'w' || n, n %% 7, 'u' || (n %% "
		"7), 'p', 'prog' || (n %% 5), '', 1, 1, 0, 0, %lld, 0 "
		"FROM w",
		WORKLOADS, (NOW - HOURS * 3600ll) * 1000);
	run(db, sql);
	run(db, "INSERT INTO gpus WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + "
		"1 FROM g WHERE n < 8) SELECT n, 'GPU-' || n, '' FROM g");
	(void)snprintf(sql, sizeof(sql), "UPDATE meta SET done = %lld; COMMIT", NOW);
	run(db, sql);
	(void)sqlite3_close(db);
	return 0;
}

static char *answer(const struct sl_history_ask *asked)
{
	struct sl_error err = {0};
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (sl_history_query(history_path, asked, (uint64_t)NOW * 1000, out, &err) !=
		SL_HISTORY_STORE_OK)
		fail_msg("%s", err.text);
	(void)fclose(out);
	return text;
}

/* The sum over all rows, in GPU-seconds. */
static double total(const struct sl_history_ask *asked, size_t *count)
{
	char *text = answer(asked);
	json_t *object = json_loads(text, 0, NULL), *row;
	double sum = 0;
	size_t i;

	assert_non_null(object);
	json_array_foreach(json_object_get(object, "totals"), i, row)
	{
		sum += json_number_value(json_object_get(row, "allocated_gpu_s"));
	}
	*count = json_array_size(json_object_get(object, "totals"));
	json_decref(object);
	free(text);
	return sum;
}

static void two_years_are_answered(void **state)
{
	static const struct {
		enum sl_history_by by;
		uint32_t step_s;
		int64_t span_s;
		size_t keys;
	} rows[] = {
		{SL_HISTORY_BY_USER, 86400, HOURS * 3600ll, 7},
		{SL_HISTORY_BY_PROGRAM, 3600, HOURS * 3600ll, 5},
		{SL_HISTORY_BY_WORKLOAD, 7 * 86400, HOURS * 3600ll, WORKLOADS},
		{SL_HISTORY_BY_GPU, 86400, HOURS * 3600ll, 8},
		{SL_HISTORY_BY_PROJECT, 60, WEEK, 1},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		const struct sl_history_ask asked = {.by = rows[i].by,
			.step_s = rows[i].step_s,
			.from_ms = (uint64_t)(NOW - rows[i].span_s) * 1000,
			.to_ms = (uint64_t)NOW * 1000};
		size_t keys = 0;
		double sum = total(&asked, &keys);

		assert_int_equal(keys, rows[i].keys);
		/* Every eighth hour of 200, a quarter each; whole numbers, so exactly. */
		if (sum != (double)(rows[i].span_s * ALIVE / QUARTER))
			fail_msg("row %zu: %f of %f", i, sum,
				(double)(rows[i].span_s * ALIVE / QUARTER));
	}
}

/* One of many workloads has the rows that it would have alone. */
static void one_workload_is_found(void **state)
{
	static const struct {
		uint32_t step_s;
		int64_t span_s;
	} rows[] = {{60, WEEK}, {3600, HOURS * 3600ll}, {60, 20000}, {1, 20000}};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		char *text = answer(&(struct sl_history_ask){.what = SL_HISTORY_SERIES,
			.workload = 77,
			.step_s = rows[i].step_s,
			.from_ms = (uint64_t)(NOW - rows[i].span_s) * 1000,
			.to_ms = (uint64_t)NOW * 1000});
		json_t *object = json_loads(text, 0, NULL), *line;
		int64_t there = 0, steps = rows[i].span_s / rows[i].step_s;

		line = json_object_get(json_object_get(object, "gpus"), "GPU-6");
		assert_int_equal(json_object_size(json_object_get(object, "gpus")), 1);
		line = json_object_get(line, "resident");
		assert_in_range(json_array_size(line), steps, steps + 1);
		for (size_t n = 0; n < json_array_size(line); n++) {
			json_t *value = json_array_get(line, n);

			there += !json_is_null(value);
			if (!json_is_null(value))
				assert_int_equal(json_integer_value(value), 77 * 1024);
		}
		/* In every eighth hour. */
		assert_in_range(there, steps / 8 / 2, steps / 8 + 3600);
		json_decref(object);
		free(text);
	}
}

static void tidy(struct sl_history_store *store, int64_t now,
	const struct sl_history_keep *keep, int calls)
{
	const struct sl_history_batch none = {0};
	struct sl_error err = {0};

	for (int i = 0; i < calls; i++) {
		if (sl_history_store_write(store, &none, now, keep, &err) !=
			SL_HISTORY_STORE_OK)
			fail_msg("%s", err.text);
	}
}

/* Ten hours later the rows that are ten hours too old are gone, and no others. */
static void what_is_too_old_goes(void **state)
{
	const struct sl_history_keep keep = {
		.seconds = {3600, WEEK, HOURS * 3600ll}, .events = 1000};
	struct sl_history_store *store = history_open_store();
	int64_t later = NOW + 36000;

	tidy(store, later, &keep, 200);
	assert_int_equal(
		history_number("SELECT min(t) FROM gpu_hours"), later - HOURS * 3600ll);
	assert_int_equal(history_number("SELECT min(t) FROM gpu_minutes"), later - WEEK);
	assert_int_equal(
		history_number("SELECT count(*) FROM gpu_hours"), (HOURS - 10) * 8);
	assert_int_equal(
		history_number("SELECT count(*) FROM hours"), (HOURS - 10) * ALIVE);
	assert_int_equal(history_number("SELECT count(*) FROM gpu_minutes"),
		(WEEK - 36000) / 60 * 8);
	assert_null(sl_history_store_close(store));
}

/* With a smaller bound the oldest hours are deleted, as many as it takes; the rest is answered as
 * before, and the disk gets its space back. */
static void it_shrinks_to_what_it_may_have(void **state)
{
	struct sl_history_store *store = history_open_store();
	uint64_t before = sl_history_store_bytes(store), after;
	struct sl_history_keep keep = {.seconds = {1 << 30, 1 << 30, 1ll << 40},
		.events = 1000,
		.bytes = before - before / 5};
	struct sl_history_ask asked = {
		.by = SL_HISTORY_BY_USER, .step_s = 3600, .to_ms = (uint64_t)NOW * 1000};
	int64_t pages = history_number("PRAGMA page_count"), oldest;
	int64_t minutes = history_number("SELECT count(*) FROM gpu_minutes");
	size_t keys = 0;

	for (int i = 0; i < 100 && sl_history_store_bytes(store) > keep.bytes; i++)
		tidy(store, NOW, &keep, 100);
	after = sl_history_store_bytes(store);
	assert_true(after <= keep.bytes);
	/* Not more than it takes. */
	assert_true(after > keep.bytes - keep.bytes / 8);
	tidy(store, NOW, &keep, 400);
	assert_true(history_number("PRAGMA page_count") < pages);
	assert_int_equal(history_number("SELECT count(*) FROM gpu_minutes"), minutes);
	/* Those of GPUs are few, and stay. */
	assert_true(history_number("SELECT min(t) FROM gpu_hours") <
		    history_number("SELECT min(t) FROM hours"));
	oldest = history_number("SELECT min(t) FROM hours");
	assert_true(oldest > NOW - HOURS * 3600ll);
	asked.from_ms = (uint64_t)oldest * 1000;
	assert_true(total(&asked, &keys) == (double)((NOW - oldest) * ALIVE / QUARTER));
	assert_int_equal(keys, 7);
	assert_null(sl_history_store_close(store));
}

int main(void)
{
	/* In this order, on one file: the last two change it. */
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_years_are_answered),
		cmocka_unit_test(one_workload_is_found),
		cmocka_unit_test(what_is_too_old_goes),
		cmocka_unit_test(it_shrinks_to_what_it_may_have),
	};

	return cmocka_run_group_tests(tests, make_history, history_remove_folder);
}
