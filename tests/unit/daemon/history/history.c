/* The history: open rows, roll-up, deletion, reading; against sums that are obviously right. */
#include "history_file.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/history/query.h"
#include "daemon/history/read.h"
#include "daemon/history/runs.h"
#include "policy/words/reason.h"

/* --- a world of which everything is known ----------------------------------------------------- */

#define T0        (1000 * 3600 + 1234)
#define SECONDS   9000
#define WORKLOADS 3

/* What each second had, by workload: one column that sums, one that is the largest. */
static struct {
	int64_t resident, most, out;
	bool lives;
} truth[SECONDS][WORKLOADS];

/* Deterministic; small steps, so that stretches are alike for a while. */
static void invent(unsigned int seed)
{
	srand(seed);
	for (int s = 0; s < SECONDS; s++) {
		for (int w = 0; w < WORKLOADS; w++) {
			bool changes = s == 0 || rand() % (w == 0 ? 2 : 200) == 0;

			truth[s][w] = truth[s ? s - 1 : 0][w];
			truth[s][w].out = 0;
			if (!changes)
				continue;
			truth[s][w].lives = rand() % 5 != 0;
			truth[s][w].resident = rand() % 100000;
			truth[s][w].most = truth[s][w].resident + rand() % 100;
			truth[s][w].out = rand() % 7;
		}
	}
}

/* One second of the world into runs; the rows to be written come out. */
static void add_second(struct sl_history_runs *runs, struct sl_history_runs *gpus, int s,
	struct sl_history_rows *out, struct sl_history_rows *gpu_out)
{
	struct sl_history_row row = {.t = T0 + s, .span = 1, .gpu = 1};

	row.value[SL_HISTORY_GPU_shareable] = 5;
	assert_int_equal(sl_history_runs_add(gpus, &row, gpu_out), 0);
	row.value[SL_HISTORY_GPU_shareable] = 0;
	for (int w = 0; w < WORKLOADS; w++) {
		if (!truth[s][w].lives)
			continue;
		row.workload = w + 1;
		row.value[SL_HISTORY_USE_resident] = truth[s][w].resident;
		row.value[SL_HISTORY_USE_most] = truth[s][w].most;
		row.value[SL_HISTORY_USE_out] = truth[s][w].out;
		row.value[SL_HISTORY_USE_turn_ms] = w == 0 && s % 20 < 5 ? 1000 : 0;
		assert_int_equal(sl_history_runs_add(runs, &row, out), 0);
	}
	assert_int_equal(sl_history_runs_sweep(runs, T0 + s + 1, out), 0);
}

/* Writes [from, to) of the world, in steps of `each` seconds; every `tell` seconds open rows are
 * written, too. */
static void write_world_each(struct sl_history_store *store, int each, int from, int to,
	int tell, const struct sl_history_keep *keep, size_t *written)
{
	struct sl_history_runs runs = {.kind = SL_HISTORY_USES};
	struct sl_history_runs gpus = {.kind = SL_HISTORY_GPUS};
	struct sl_history_rows out = {0}, gpu_out = {0};

	for (int s = from; s < to; s++) {
		struct sl_history_batch batch = {0};

		add_second(&runs, &gpus, s, &out, &gpu_out);
		if (s % tell == 0 || s == to - 1) {
			assert_int_equal(sl_history_runs_tell(&runs, &out), 0);
			assert_int_equal(sl_history_runs_tell(&gpus, &gpu_out), 0);
		}
		if (s % each != 0 && s != to - 1)
			continue;
		batch.rows[SL_HISTORY_USES] = out.all;
		batch.row_count[SL_HISTORY_USES] = out.count;
		batch.rows[SL_HISTORY_GPUS] = gpu_out.all;
		batch.row_count[SL_HISTORY_GPUS] = gpu_out.count;
		history_write(store, &batch, T0 + s + 1, keep);
		*written += out.count;
		out.count = gpu_out.count = 0;
	}
	sl_history_runs_fini(&runs);
	sl_history_runs_fini(&gpus);
	sl_history_rows_fini(&out);
	sl_history_rows_fini(&gpu_out);
}

/* Each second, as the daemon does. */
static void write_world(struct sl_history_store *store, int from, int to, int tell,
	const struct sl_history_keep *keep, size_t *written)
{
	write_world_each(store, 1, from, to, tell, keep, written);
}

struct sums {
	int64_t from, to, resident[WORKLOADS], out[WORKLOADS], most[WORKLOADS];
};

static struct sums reference(int64_t from, int64_t to)
{
	struct sums sums = {.from = from, .to = to};

	for (int64_t t = from; t < to; t++) {
		for (int w = 0; w < WORKLOADS; w++) {
			if (t < T0 || t >= T0 + SECONDS || !truth[t - T0][w].lives)
				continue;
			sums.resident[w] += truth[t - T0][w].resident;
			sums.out[w] += truth[t - T0][w].out;
			if (truth[t - T0][w].most > sums.most[w])
				sums.most[w] = truth[t - T0][w].most;
		}
	}
	return sums;
}

/* What SQLite adds up, as a single step of time. */
static struct sums as_read(enum sl_history_level finest, int64_t from, int64_t to)
{
	const struct sl_history_cut cut = {.from = from,
		.to = to,
		.first = from,
		.step = to - from,
		.level = finest,
		.most = WORKLOADS};
	struct sl_history_reader reader;
	struct sums sums = {.from = from, .to = to};
	struct sl_error err = {0};
	sqlite3_stmt *statement;

	if (sl_history_reader_open(&reader, history_path, NULL, &err) !=
			SL_HISTORY_STORE_OK ||
		!sl_history_cells_make(&reader, false) ||
		!sl_history_reader_run(&reader,
			"INSERT INTO keys VALUES (1, 1, '', 0, 0), (2, 2, '', 0, 0), (3, "
			"3, '', 0, 0)") ||
		sl_history_cells_fill(&reader, SL_HISTORY_USES, &cut, &err) !=
			SL_HISTORY_STORE_OK)
		fail_msg("%s %s", err.text, sqlite3_errmsg(reader.db));
	statement = sl_history_reader_ask(
		&reader, "SELECT key, resident, \"out\", most FROM cells");
	assert_non_null(statement);
	while (sqlite3_step(statement) == SQLITE_ROW) {
		int w = sqlite3_column_int(statement, 0) - 1;

		assert_in_range(w, 0, WORKLOADS - 1);
		sums.resident[w] = sqlite3_column_int64(statement, 1);
		sums.out[w] = sqlite3_column_int64(statement, 2);
		sums.most[w] = sqlite3_column_int64(statement, 3);
	}
	(void)sqlite3_finalize(statement);
	sl_history_reader_close(&reader);
	return sums;
}

static void expect_same(const char *row, struct sums got, struct sums wanted)
{
	for (int w = 0; w < WORKLOADS; w++) {
		assert_row_u64(row, got.resident[w], wanted.resident[w]);
		assert_row_u64(row, got.out[w], wanted.out[w]);
		assert_row_u64(row, got.most[w], wanted.most[w]);
	}
}

/* --- tests ------------------------------------------------------------------------------------ */

/* Every level has the sums of what happened, over any time that the level can tell apart. */
static void roll_up_is_exact(void **state)
{
	static const struct {
		const char *name;
		enum sl_history_level finest;
		int64_t unit;
	} rows[] = {
		{"seconds", SL_HISTORY_SECONDS, 1},
		{"minutes", SL_HISTORY_MINUTES, 60},
		{"hours", SL_HISTORY_HOURS, 3600},
	};
	struct sl_history_store *store = history_open_store();
	size_t written = 0;

	invent(1);
	write_world(store, 0, SECONDS, 15, &history_everything, &written);
	/* The first of the three changes each other second, the others seldom. */
	assert_in_range(written, 1, SECONDS * 3 / 2);
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		for (int n = 0; n < 40; n++) {
			int64_t from = (T0 - 100 + rand() % SECONDS) / rows[i].unit *
				       rows[i].unit;
			int64_t to =
				from + rand() % (SECONDS / rows[i].unit) * rows[i].unit;
			struct sums wanted = reference(from, to);

			if (to >= T0 + SECONDS)
				to = T0 + SECONDS, wanted = reference(from, to);
			if (from < to)
				expect_same(rows[i].name,
					as_read(rows[i].finest, from, to), wanted);
		}
	}
	sl_history_store_close(store);
}

/* Rows that are too old for a level are still in the one above, and none is in two. */
static void what_is_old_goes(void **state)
{
	struct sl_history_keep keep = {.seconds = {600, 3600, 1 << 30}, .events = 10};
	struct sl_history_store *store = history_open_store();
	int64_t end = T0 + SECONDS, hour = (T0 + 3600) / 3600 * 3600;
	size_t written = 0;

	invent(2);
	write_world(store, 0, SECONDS, 60, &keep, &written);
	assert_in_range(
		history_number("SELECT min(t) FROM seconds"), end - 700, end - 540);
	assert_in_range(history_number("SELECT min(t) FROM minutes"), end - 3600 - 3600,
		end - 3600 + 120);
	assert_in_range(
		history_number("SELECT min(t) FROM hours"), T0 / 3600 * 3600, hour);
	/* Whole hours, which by now are hours, minutes and seconds. */
	expect_same("all", as_read(SL_HISTORY_SECONDS, hour - 3600, end),
		reference(hour - 3600, end));
	expect_same("hours", as_read(SL_HISTORY_HOURS, hour, hour + 3600),
		reference(hour, hour + 3600));
	expect_same("the last ones", as_read(SL_HISTORY_SECONDS, end - 501, end),
		reference(end - 501, end));
	expect_same("minutes", as_read(SL_HISTORY_MINUTES, (end - 1800) / 60 * 60, end),
		reference((end - 1800) / 60 * 60, end));
	sl_history_store_close(store);
}

/* Only hours are kept: what is not an hour yet stays until it is. */
static void what_is_not_rolled_up_stays(void **state)
{
	struct sl_history_keep keep = {.seconds = {0, 0, 1 << 30}, .events = 10};
	struct sl_history_store *store = history_open_store();
	size_t written = 0;

	invent(8);
	write_world(store, 0, 5000, 15, &keep, &written);
	memset(truth[5000], 0, sizeof(truth) - 5000 * sizeof(truth[0]));
	expect_same("all", as_read(SL_HISTORY_SECONDS, T0 / 3600 * 3600, T0 + 5000),
		reference(T0 / 3600 * 3600, T0 + 5000));
	assert_in_range(
		history_number("SELECT count(*) FROM minutes"), 1, 70 * WORKLOADS);
	sl_history_store_close(store);
}

/* The writer dies in the middle of a minute and another goes on later: each row that was written is
 * there once. */
static void a_crash_loses_what_was_not_written(void **state)
{
	struct sl_history_store *store = history_open_store();
	struct sl_history_known known;
	struct sl_error err = {0};
	size_t written = 0;

	invent(3);
	/* write_world writes open rows at its end, so nothing is lost here. */
	write_world(store, 0, 4000, 15, &history_everything, &written);
	store = sl_history_store_close(store);
	store = history_open_store();
	assert_int_equal(
		sl_history_store_known(store, &known, &err), SL_HISTORY_STORE_OK);
	assert_int_equal(known.end, T0 + 4000);
	free(known.gpus);
	free(known.living);
	/* Three hours after, nothing happened in between. */
	for (int s = 4000; s < 5000; s++)
		memset(truth[s], 0, sizeof(truth[s]));
	write_world(store, 5000, SECONDS, 15, &history_everything, &written);
	expect_same("seconds", as_read(SL_HISTORY_SECONDS, T0, T0 + SECONDS),
		reference(T0, T0 + SECONDS));
	/* The first hour is read from minutes and seconds, from where it begins. */
	expect_same("hours", as_read(SL_HISTORY_HOURS, T0 + 7, T0 + SECONDS),
		reference(T0 + 7, T0 + SECONDS));
	assert_int_equal(history_number("SELECT count(*) FROM minutes WHERE t % 60"), 0);
	sl_history_store_close(store);
}

/* --- queries ---------------------------------------------------------------------------------- */

static json_t *query(struct sl_history_ask ask, uint64_t now_ms)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	struct sl_error err = {0};
	json_error_t bad;
	json_t *json;

	if (sl_history_query(history_path, &ask, now_ms, out, &err) !=
		SL_HISTORY_STORE_OK)
		fail_msg("%s", err.text);
	(void)fclose(out);
	json = json_loads(text, 0, &bad);
	if (!json)
		fail_msg("%s: %s", bad.text, text);
	free(text);
	return json;
}

static const char hostile[] = "<b>\"x\",\x1b[31m\xff=1";

static void fill_for_queries(struct sl_history_store *store)
{
	struct sl_history_gpu gpu = {.id = 1, .uuid = "GPU-1", .name = "A GPU"};
	struct sl_history_workload workloads[WORKLOADS] = {
		{.id = 1,
			.number = 7,
			.uid = 10,
			.user = "u",
			.name = "a",
			.project = "p",
			.program = "python a.py"},
		{.id = 2,
			.number = 8,
			.uid = 10,
			.user = "u",
			.name = "b",
			.project = "q",
			.program = "python a.py"},
		{.id = 3, .number = 9, .uid = 11, .user = "v"},
	};
	struct sl_history_batch batch = {.gpus = &gpu,
		.gpu_count = 1,
		.workloads = workloads,
		.workload_count = WORKLOADS};
	size_t written = 0;

	memcpy(workloads[2].name, hostile, sizeof(hostile));
	memcpy(workloads[2].project, hostile, sizeof(hostile));
	history_write(store, &batch, T0, &history_everything);
	write_world_each(store, 15, 0, SECONDS, 15, &history_everything, &written);
}

/* Whatever it is asked by and in what steps, all rows together are all there was. */
static void answers_add_up(void **state)
{
	static const uint32_t steps[] = {7, 60, 300, 3600, 86400};
	struct sl_history_store *store = history_open_store();
	struct sums wanted;
	int64_t all_out = 0;

	invent(4);
	fill_for_queries(store);
	wanted = reference(T0, T0 + SECONDS);
	for (int w = 0; w < WORKLOADS; w++)
		all_out += wanted.out[w];
	for (int by = 0; by < SL_HISTORY_BYS; by++) {
		for (size_t i = 0; i < SL_ARRAY_LEN(steps); i++) {
			json_t *answer = query(
				(struct sl_history_ask){.by = (enum sl_history_by)by,
					.step_s = steps[i],
					.from_ms = (uint64_t)T0 / 3600 * 3600 * 1000},
				(uint64_t)(T0 + SECONDS) * 1000);
			int64_t rows_out = 0, totals_out = 0;
			size_t n;
			json_t *row;

			json_array_foreach(json_object_get(answer, "rows"), n, row)
			{
				rows_out += json_integer_value(
					json_object_get(row, "out_bytes"));
				assert_int_equal(
					json_integer_value(json_object_get(row, "t_ms")) %
						(steps[i] * 1000),
					0);
			}
			json_array_foreach(json_object_get(answer, "totals"), n, row)
				totals_out +=
				json_integer_value(json_object_get(row, "out_bytes"));
			assert_int_equal(rows_out, all_out * 1024);
			assert_int_equal(totals_out, all_out * 1024);
			json_decref(answer);
		}
	}
	sl_history_store_close(store);
}

/* Questions and answers are in the time of the machine's clock, even if the history's time is a day
 * ahead of it. */
static void answers_are_in_the_machines_time(void **state)
{
	enum { AHEAD_S = 86400 };
	struct sl_history_store *store = history_open_store();
	struct sl_history_ask ask = {.by = SL_HISTORY_BY_WORKLOAD,
		.step_s = 60,
		.from_ms = (uint64_t)(T0 + 100) * 1000};
	json_t *answer, *later;
	size_t n;
	json_t *row;

	invent(9);
	fill_for_queries(store);
	answer = query(ask, (uint64_t)(T0 + SECONDS) * 1000);
	ask.ahead_s = AHEAD_S;
	ask.from_ms -= AHEAD_S * 1000;
	later = query(ask, (uint64_t)(T0 + SECONDS) * 1000);
#define FIRST(of, name)     \
	json_integer_value( \
		json_object_get(json_array_get(json_object_get(of, "rows"), 0), name))
	assert_int_equal(FIRST(later, "t_ms"), FIRST(answer, "t_ms") - AHEAD_S * 1000);
	json_array_foreach(json_object_get(answer, "rows"), n, row)
		json_object_del(row, "t_ms");
	json_array_foreach(json_object_get(later, "rows"), n, row)
		json_object_del(row, "t_ms");
	assert_true(json_array_size(json_object_get(answer, "rows")) > 100);
	assert_true(json_equal(
		json_object_get(answer, "rows"), json_object_get(later, "rows")));
	assert_int_equal(json_integer_value(json_object_get(later, "to_ms")),
		(int64_t)(T0 + SECONDS - AHEAD_S) * 1000);
	json_decref(answer);
	json_decref(later);
	ask.what = SL_HISTORY_SERIES;
	ask.workload = 7;
	later = query(ask, (uint64_t)(T0 + SECONDS) * 1000);
	assert_int_equal(
		json_integer_value(json_array_get(json_object_get(later, "t_ms"), 0)),
		(int64_t)((T0 + 100) / 60 * 60 - AHEAD_S) * 1000);
	json_decref(later);
	sl_history_store_close(store);
}

/* A hundred users one after the other, each with a workload for a minute. Only existing rows count
 * towards the bound, and a question without a step length gets as many steps as fit. */
static void rows_are_where_something_is(void **state)
{
	enum { USERS = 100 };
	static struct sl_history_workload workloads[USERS];
	struct sl_history_store *store = history_open_store();
	struct sl_history_batch batch = {.workloads = workloads, .workload_count = USERS};
	int64_t begin = T0 / 60 * 60;
	struct sl_history_ask ask = {.by = SL_HISTORY_BY_USER,
		.from_ms = (uint64_t)begin * 1000,
		.to_ms = (uint64_t)(begin + USERS * 60) * 1000};
	enum sl_history_fault fault = SL_HISTORY_FAULT_OURS;
	struct sl_error err = {0};
	json_t *answer, *totals;

	for (int u = 0; u < USERS; u++) {
		workloads[u] = (struct sl_history_workload){.id = u + 1,
			.number = (uint64_t)u + 1,
			.uid = (uint32_t)u,
			.begun_ms = (uint64_t)(begin + u * 60) * 1000,
			.ended_ms = (uint64_t)(begin + u * 60 + 60) * 1000};
		(void)snprintf(workloads[u].user, sizeof(workloads[u].user), "u%d", u);
	}
	for (int u = 0; u < USERS; u++) {
		struct sl_history_row row = {
			.t = begin + u * 60, .span = 60, .gpu = 1, .workload = u + 1};

		row.value[SL_HISTORY_USE_out] = 60;
		batch.rows[SL_HISTORY_USES] = &row;
		batch.row_count[SL_HISTORY_USES] = 1;
		history_write(store, &batch, row.t + 60, &history_everything);
		batch.workload_count = 0;
	}
#define ROWS(of) json_array_size(json_object_get(of, "rows"))
	/* Of 600,000 cells, seconds by users, 6,000 have something. */
	ask.step_s = 1;
	answer = query(ask, ask.to_ms);
	assert_int_equal(ROWS(answer), USERS * 60);
	totals = json_incref(json_object_get(answer, "totals"));
	json_decref(answer);
	ask.only_totals = true;
	answer = query(ask, ask.to_ms);
	assert_int_equal(ROWS(answer), 0);
	assert_true(json_equal(json_object_get(answer, "totals"), totals));
	json_decref(answer);
	ask.only_totals = false;
	ask.step_s = 0;
	for (ask.rows_most = 300; ask.rows_most < 3000; ask.rows_most *= 3) {
		answer = query(ask, ask.to_ms);
		assert_in_range(ROWS(answer), USERS, ask.rows_most);
		assert_true(json_equal(json_object_get(answer, "totals"), totals));
		json_decref(answer);
	}
	ask.rows_most = 0;
	ask.steps_most = 10;
	answer = query(ask, ask.to_ms);
	assert_int_equal(json_integer_value(json_object_get(answer, "step_s")), 600);
	assert_int_equal(ROWS(answer), USERS);
	json_decref(answer);
	json_decref(totals);
	ask.step_s = 1;
	ask.rows_most = USERS * 60 - 1;
	ask.fault = &fault;
	assert_int_equal(sl_history_query(history_path, &ask, ask.to_ms, stdout, &err),
		SL_HISTORY_STORE_BAD);
	assert_row_contains("too many", err.text, "ask for longer steps");
	assert_int_equal(fault, SL_HISTORY_FAULT_ASKED);
	sl_history_store_close(store);
}

static void a_query_has_means_and_names(void **state)
{
	struct sl_history_store *store = history_open_store();
	struct sums wanted;
	json_t *answer, *row;

	invent(5);
	fill_for_queries(store);
	wanted = reference(T0 + 100, T0 + 400);
	answer = query((struct sl_history_ask){.by = SL_HISTORY_BY_WORKLOAD,
			       .step_s = 86400,
			       .from_ms = (uint64_t)(T0 + 100) * 1000,
			       .to_ms = (uint64_t)(T0 + 400) * 1000,
			       .name = "b"},
		(uint64_t)(T0 + SECONDS) * 1000);
	assert_int_equal(json_array_size(json_object_get(answer, "rows")), 1);
	row = json_array_get(json_object_get(answer, "rows"), 0);
	assert_string_equal(json_string_value(json_object_get(row, "key")), "8");
	assert_int_equal(json_integer_value(json_object_get(row, "resident_bytes")),
		wanted.resident[1] / 300 * 1024);
	json_decref(answer);
	/* A user's two workloads are added; the other one's hostile name is the user's own. */
	answer = query((struct sl_history_ask){.by = SL_HISTORY_BY_USER,
			       .step_s = 86400,
			       .from_ms = (uint64_t)(T0 + 100) * 1000,
			       .to_ms = (uint64_t)(T0 + 400) * 1000,
			       .name = "u"},
		(uint64_t)(T0 + SECONDS) * 1000);
	row = json_array_get(json_object_get(answer, "totals"), 0);
	assert_int_equal(json_integer_value(json_object_get(row, "resident_bytes")),
		(wanted.resident[0] + wanted.resident[1]) / 300 * 1024);
	json_decref(answer);
	sl_history_store_close(store);
}

/* After a reboot the numbers of workloads begin anew. The key of the earlier of two with one number
 * has its begin, too, and finds it. */
static void a_number_that_came_again_is_told_apart(void **state)
{
	struct sl_history_store *store = history_open_store();
	struct sl_history_workload later = {.id = 50,
		.number = 8,
		.name = "later",
		.program = "p",
		.begun_ms = (uint64_t)(T0 + SECONDS) * 1000};
	struct sl_history_batch batch = {.workloads = &later, .workload_count = 1};
	struct sl_history_ask ask = {.by = SL_HISTORY_BY_WORKLOAD,
		.step_s = 86400,
		.from_ms = (uint64_t)(T0 + 100) * 1000,
		.to_ms = (uint64_t)(T0 + 400) * 1000};
	char key[64];
	json_t *answer;

	invent(5);
	fill_for_queries(store);
	history_write(store, &batch, T0 + SECONDS, &history_everything);
	(void)snprintf(key, sizeof(key), "8@%" PRId64,
		history_number("SELECT begun_ms FROM workloads WHERE name = 'b'"));
	(void)snprintf(ask.name, sizeof(ask.name), "%s", key);
	answer = query(ask, (uint64_t)(T0 + SECONDS) * 1000);
	assert_int_equal(json_array_size(json_object_get(answer, "totals")), 1);
	assert_string_equal(
		json_string_value(json_object_get(
			json_array_get(json_object_get(answer, "totals"), 0), "name")),
		"b");
	json_decref(answer);
	ask.what = SL_HISTORY_SERIES;
	ask.step_s = 60;
	answer = query(ask, (uint64_t)(T0 + SECONDS) * 1000);
	assert_string_equal(json_string_value(json_object_get(answer, "name")), "b");
	json_decref(answer);
	sl_history_store_close(store);
}

static void csv_is_csv(void **state)
{
	struct sl_history_store *store = history_open_store();
	struct sl_history_ask ask = {.by = SL_HISTORY_BY_WORKLOAD,
		.format = SL_HISTORY_CSV,
		.step_s = 86400,
		.from_ms = (uint64_t)T0 * 1000};
	char *text = NULL, *line, *rest;
	size_t size = 0, lines = 0, commas = 0;
	struct sl_error err = {0};
	FILE *out = open_memstream(&text, &size);

	invent(6);
	fill_for_queries(store);
	assert_int_equal(sl_history_query(history_path, &ask,
				 (uint64_t)(T0 + SECONDS) * 1000, out, &err),
		SL_HISTORY_STORE_OK);
	(void)fclose(out);
	for (line = strtok_r(text, "\n", &rest); line;
		line = strtok_r(NULL, "\n", &rest)) {
		bool quoted = false;
		size_t found = 0;

		for (const char *c = line; *c; c++) {
			quoted ^= *c == '"';
			found += *c == ',' && !quoted;
			assert_true((unsigned char)*c >= 0x20);
		}
		assert_false(quoted);
		assert_int_equal(found, lines ? commas : found);
		commas = found;
		lines++;
	}
	assert_int_equal(lines, 1 + WORKLOADS);
	free(text);
	sl_history_store_close(store);
}

/* What one_workload_over_time() has written: serials 10 to 13. */
static void events_are_sifted(void)
{
	static const struct {
		const char *what;
		struct sl_history_ask ask;
		int first, count; /* serials */
	} rows[] = {
		{"all", {.last = 9}, 10, 4},
		{"between", {.after = 10, .before = 13}, 11, 2},
		{"the latest before", {.before = 12, .last = 1}, 11, 1},
		{"of a kind", {.kinds = 1u << SL_REASON_KIND_WAIT}, 13, 1},
		{"the latest of a kind", {.kinds = 1u << SL_REASON_KIND_NOTE, .last = 1},
			12, 1},
		{"of either kind",
			{.kinds = 1u << SL_REASON_KIND_WAIT | 1u << SL_REASON_KIND_NOTE},
			10, 4},
		{"of none of them", {.kinds = 1u << SL_REASON_KIND_STOP}, 0, 0},
		{"by a part of a reason", {.words = "estor"}, 11, 1},
		{"by several words", {.words = " moved  evicted_FOR "}, 10, 1},
		{"one of which is not there", {.words = "evicted nowhere"}, 0, 0},
		{"of a kind and by words",
			{.words = "a", .kinds = 1u << SL_REASON_KIND_NOTE, .last = 2}, 11,
			2},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_history_ask ask = rows[i].ask;
		json_t *answer, *all;
		int first, count;

		ask.what = SL_HISTORY_EVENTS;
		answer = query(ask, 1);
		all = json_object_get(answer, "events");
		count = (int)json_array_size(all);
		first = (int)json_integer_value(
			json_object_get(json_array_get(all, 0), "serial"));
		if (first != rows[i].first || count != rows[i].count)
			fail_msg("%s: %d from %d on, not %d from %d on", rows[i].what,
				count, first, rows[i].count, rows[i].first);
		json_decref(answer);
	}
}

static void one_workload_over_time(void **state)
{
	static const uint32_t reasons[] = {SL_REASON_EVICTED_FOR, SL_REASON_RESTORED,
		SL_REASON_JOINED, SL_REASON_BURST_WAITS};
	struct sl_msg_event_row events[SL_ARRAY_LEN(reasons)] = {0};
	struct sl_history_batch batch = {
		.events = events, .event_count = SL_ARRAY_LEN(reasons)};
	struct sl_history_store *store = history_open_store();
	json_t *answer, *marks, *line;
	struct sums wanted;

	invent(7);
	for (int s = 100; s < 400; s++)
		truth[s][0].lives = s < 300;
	fill_for_queries(store);
	for (size_t i = 0; i < SL_ARRAY_LEN(reasons); i++)
		events[i] = (struct sl_msg_event_row){.serial = 10 + i,
			.realtime_ms = (uint64_t)(T0 + 200 + (int)i) * 1000,
			.reason = reasons[i],
			.workload = i == 3 ? 8 : 7,
			.other = 8,
			.name = "a",
			.other_name = "b"};
	history_write(store, &batch, T0 + SECONDS, &history_everything);
	wanted = reference(T0 + 100, T0 + 110);
	answer = query((struct sl_history_ask){.what = SL_HISTORY_SERIES,
			       .workload = 7,
			       .step_s = 10,
			       .from_ms = (uint64_t)(T0 + 106) * 1000,
			       .to_ms = (uint64_t)(T0 + 406) * 1000},
		(uint64_t)(T0 + SECONDS) * 1000);
	assert_int_equal(json_array_size(json_object_get(answer, "t_ms")), 30);
	line = json_object_get(json_object_get(answer, "gpus"), "GPU-1");
	wanted = reference(T0 + 106, T0 + 116);
	assert_int_equal(
		json_integer_value(json_array_get(json_object_get(line, "resident"), 0)),
		wanted.resident[0] / 10 * 1024);
	/* Half of its turns' time was in the second step, and none in the first. */
	assert_true(
		json_real_value(json_array_get(json_object_get(line, "turn"), 1)) == 0.5);
	assert_true(
		json_number_value(json_array_get(json_object_get(line, "turn"), 0)) == 0);
	assert_int_equal(json_array_size(json_object_get(line, "wait")), 30);
	/* It had ended by then. */
	assert_true(json_is_null(json_array_get(json_object_get(line, "resident"), 25)));
	/* Its own of the four, and not that it joined; and that it had more than its request. */
	marks = json_object_get(answer, "marks");
	assert_int_equal(json_array_size(marks), 3);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(marks, 0), "kind")),
		"burst");
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(marks, 1), "kind")),
		"evicted");
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(marks, 2), "reason")),
		"RESTORED");
	json_decref(answer);
	/* Events: newest ones, about a name, of a reason. */
	answer = query((struct sl_history_ask){.what = SL_HISTORY_EVENTS, .last = 2}, 1);
	assert_int_equal(json_array_size(json_object_get(answer, "events")), 2);
	assert_int_equal(
		json_integer_value(json_object_get(
			json_array_get(json_object_get(answer, "events"), 0), "serial")),
		12);
	json_decref(answer);
	answer = query(
		(struct sl_history_ask){
			.what = SL_HISTORY_EVENTS, .name = "7", .reason = "JOINED"},
		1);
	assert_int_equal(json_array_size(json_object_get(answer, "events")), 1);
	json_decref(answer);
	events_are_sifted();
	sl_history_store_close(store);
}

/* The figures of a name are those of all its runs. One of the runs has 1 GiB for 3,600 s, but 3 GiB
 * for 30 s of them. */
static void advice_is_by_name(void **state)
{
	enum { GIB_KIB = 1 << 20 };
	struct sl_history_store *store = history_open_store();
	struct sl_history_gpu gpus[] = {{.id = 1, .uuid = "GPU-1", .name = "A GPU"},
		{.id = 2, .uuid = "GPU-2", .name = "A GPU"},
		{.id = 3, .uuid = "GPU-3", .name = "A GPU"}};
	struct sl_history_workload runs[] = {
		{.id = 1,
			.number = 1,
			.gpus = 1,
			.name = "train",
			.program = "python a.py",
			.begun_ms = T0 * 1000ull,
			.ended_ms = (T0 + 3600) * 1000ull,
			.observed = true},
		{.id = 2,
			.number = 2,
			.gpus = 1,
			.name = "train",
			.program = "python b.py",
			.begun_ms = T0 * 1000ull,
			.ended_ms = (T0 + 3600) * 1000ull,
			.observed = true},
		{.id = 3,
			.number = 3,
			.gpus = 1,
			.name = "q-3",
			.command = "/bin/q 1",
			.program = "q",
			.begun_ms = T0 * 1000ull},
	};
	struct sl_history_batch batch = {
		.gpus = gpus, .gpu_count = 3, .workloads = runs, .workload_count = 3};
	json_t *answer, *program;

	history_write(store, &batch, T0, &history_everything);
	for (int t = 0; t < 3600; t += 30) {
		struct sl_history_row rows[3] = {0}, whole[3] = {0};

		for (int w = 0; w < 3; w++) {
			rows[w] = (struct sl_history_row){
				.t = T0 + t, .span = 30, .gpu = 1, .workload = w + 1};
			rows[w].value[SL_HISTORY_USE_backing] = 30ll * GIB_KIB;
			rows[w].value[SL_HISTORY_USE_most] = GIB_KIB;
			/* Its waiting time counts, too. */
			rows[w].value[SL_HISTORY_USE_asked] =
				w == 0 && t == 1800 ? 3 * GIB_KIB : GIB_KIB;
			rows[w].value[SL_HISTORY_USE_limit] = 30ll * 8 * GIB_KIB;
			rows[w].value[SL_HISTORY_USE_active_ms] = 15000;
		}
		for (int g = 0; g < 2; g++) {
			whole[g] = (struct sl_history_row){
				.t = T0 + t, .span = 30, .gpu = (uint32_t)g + 1};
			whole[g].value[SL_HISTORY_GPU_shareable] = 30ll * 8 * GIB_KIB;
		}
		batch = (struct sl_history_batch){.rows = {rows, whole},
			/* q ran for five minutes. */
			.row_count = {t < 300 ? 3 : 2, 2}};
		history_write(store, &batch, T0 + t + 30, &history_everything);
	}
	answer = query((struct sl_history_ask){.what = SL_HISTORY_ADVICE,
			       .from_ms = T0 * 1000ull,
			       .step_s = 3600},
		(T0 + 3600) * 1000ull);
	program = json_array_get(json_object_get(answer, "names"), 0);
#define FIGURE(name) json_integer_value(json_object_get(program, name))
	assert_string_equal(json_string_value(json_object_get(program, "name")), "train");
	assert_int_equal(FIGURE("runs"), 2);
	assert_int_equal(FIGURE("observed"), 2);
	assert_int_equal(FIGURE("at_once"), 2);
	assert_int_equal(FIGURE("span_s"), 7200);
	assert_int_equal(FIGURE("active_s"), 3600);
	assert_int_equal(FIGURE("peak_bytes"), 3ll << 30);
	/* By minutes, one of 120 had more; a histogram says it to 3 %. */
	assert_in_range(FIGURE("p99_bytes"), 1ll << 30, (1ll << 30) * 104 / 100);
	assert_int_equal(FIGURE("mean_bytes"), 1ll << 30);
	assert_string_equal(
		json_string_value(json_object_get(program, "verdict")), "change");
	/* Two whole GPUs before, and q's, but there are only two; together they fit on one. */
	assert_int_equal(json_integer_value(json_object_get(answer, "gpus_before")), 2);
	assert_int_equal(json_integer_value(json_object_get(answer, "gpus_after")), 1);
	program = json_array_get(json_object_get(answer, "names"), 1);
	/* The daemon chose its name. */
	assert_string_equal(json_string_value(json_object_get(program, "name")), "q");
	assert_string_equal(
		json_string_value(json_object_get(program, "verdict")), "too-short");
	json_decref(answer);
	sl_history_store_close(store);
}

static void too_much_is_refused(void **state)
{
	static const struct {
		const char *name;
		struct sl_history_ask ask;
		const char *says;
	} rows[] = {
		{"steps", {.from_ms = 1, .step_s = 1}, "ask for steps of"},
		{"to come", {.from_ms = 1ull << 50}, "still to come"},
		{"backwards", {.from_ms = 2000, .to_ms = 1000}, "before it ends"},
	};
	struct sl_history_store *store = history_open_store();

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_error err = {0};

		assert_int_equal(sl_history_query(history_path, &rows[i].ask,
					 (uint64_t)T0 * 1000, stdout, &err),
			SL_HISTORY_STORE_BAD);
		assert_row_contains(rows[i].name, err.text, rows[i].says);
	}
	sl_history_store_close(store);
}

int main(void)
{
#define IN_A_FOLDER(test) \
	cmocka_unit_test_setup_teardown(test, history_open_folder, history_remove_folder)
	const struct CMUnitTest tests[] = {
		IN_A_FOLDER(roll_up_is_exact),
		IN_A_FOLDER(what_is_old_goes),
		IN_A_FOLDER(what_is_not_rolled_up_stays),
		IN_A_FOLDER(a_crash_loses_what_was_not_written),
		IN_A_FOLDER(answers_add_up),
		IN_A_FOLDER(answers_are_in_the_machines_time),
		IN_A_FOLDER(rows_are_where_something_is),
		IN_A_FOLDER(a_query_has_means_and_names),
		IN_A_FOLDER(a_number_that_came_again_is_told_apart),
		IN_A_FOLDER(csv_is_csv),
		IN_A_FOLDER(one_workload_over_time),
		IN_A_FOLDER(advice_is_by_name),
		IN_A_FOLDER(too_much_is_refused),
	};

	return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}
