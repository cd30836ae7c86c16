/* The history's file when something is wrong with it: damaged, of another sluiced, locked, on a
 * full disk. */
#include "history_file.h"

#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/history/query.h"
#include "daemon/history/read.h"
#include "policy/words/reason.h"

#define T0 (1000 * 3600 + 1234)

static void a_damaged_one_is_set_aside(void **state)
{
	struct sl_history_store *store = history_open_store();
	struct sl_history_batch none = {0};
	struct sl_error err = {0};
	char command[256];
	int fd;

	history_write(store, &none, T0, &history_everything);
	store = sl_history_store_close(store);
	fd = open(history_path, O_WRONLY);
	assert_int_equal(pwrite(fd, "this is no database, it is a letter", 35, 0), 35);
	(void)close(fd);
	assert_int_equal(sl_history_store_open(history_path, &store, &err),
		SL_HISTORY_STORE_DAMAGED);
	assert_null(store);
	assert_int_equal(sl_history_store_set_aside(history_path,
				 SL_HISTORY_STORE_DAMAGED, 1000000000, &err),
		0);
	assert_row_contains("said", err.text, "history.db.damaged-20010909T014640Z");
	(void)snprintf(command, sizeof(command), "test -f '%s.damaged-20010909T014640Z'",
		history_path);
	assert_int_equal(system(command), 0);
	/* Of many the newest three stay. */
	for (int i = 1; i <= 4; i++) {
		store = sl_history_store_close(history_open_store());
		assert_int_equal(sl_history_store_set_aside(history_path,
					 SL_HISTORY_STORE_DAMAGED, 1000000000 + i, &err),
			0);
	}
	(void)snprintf(command, sizeof(command),
		"test $(ls '%s.damaged-'*Z | wc -l) = 3 -a -f "
		"'%s.damaged-20010909T014644Z'",
		history_path, history_path);
	assert_int_equal(system(command), 0);
	store = history_open_store();
	history_write(store, &none, T0, &history_everything);
	sl_history_store_close(store);
}

/* A damaged page in the middle, where the writer never looks: a reader of the page gets an error,
 * and a check of the whole file finds the damage. */
static void damage_is_met_by_readers(void **state)
{
	struct sl_history_store *store = history_open_store();
	static struct sl_history_row rows[4000];
	static char junk[3 * 4096];
	struct sl_history_batch batch = {.rows = {rows}, .row_count = {4000}};
	struct sl_history_ask ask = {
		.by = SL_HISTORY_BY_USER, .step_s = 1, .from_ms = T0 * 1000ull};
	struct sl_error err = {0};
	struct stat stat_buf;
	FILE *out = fopen("/dev/null", "w");
	int fd;

	for (int i = 0; i < 4000; i++)
		rows[i] = (struct sl_history_row){
			.t = T0 + i, .span = 1, .gpu = 1, .workload = 1};
	history_write(store, &batch, T0 + 4000, &history_everything);
	assert_int_equal(sl_history_store_check(store, &err), SL_HISTORY_STORE_OK);
	assert_null(sl_history_store_close(store));
	memset(junk, 0xa5, sizeof(junk));
	fd = open(history_path, O_WRONLY);
	assert_int_equal(fstat(fd, &stat_buf), 0);
	assert_int_equal(
		pwrite(fd, junk, sizeof(junk), stat_buf.st_size / 2 / 4096 * 4096),
		sizeof(junk));
	(void)close(fd);
	store = history_open_store();
	assert_int_equal(
		sl_history_query(history_path, &ask, (T0 + 4000) * 1000ull, out, &err),
		SL_HISTORY_STORE_DAMAGED);
	(void)fclose(out);
	assert_int_equal(sl_history_store_check(store, &err), SL_HISTORY_STORE_DAMAGED);
	assert_row_contains("said", err.text, "is damaged");
	assert_null(sl_history_store_close(store));
}

/* Written pages are put in their place when the last reader is out, and not before. */
static void a_reader_keeps_what_is_written_waiting(void **state)
{
	struct sl_history_store *store = history_open_store();
	static struct sl_history_row rows[1000];
	struct sl_history_batch batch = {.rows = {rows}, .row_count = {1000}};
	struct sl_history_reader reader;
	struct sl_error err = {0};

	history_write(store, &batch, T0, &history_everything);
	assert_int_equal(sl_history_reader_open(&reader, history_path, NULL, &err),
		SL_HISTORY_STORE_OK);
	for (int i = 0; i < 1000; i++)
		rows[i] = (struct sl_history_row){
			.t = T0 + i, .span = 1, .gpu = 1, .workload = 1};
	history_write(store, &batch, T0 + 1000, &history_everything);
	assert_in_range(sl_history_store_wal_bytes(store), 1000, 1 << 30);
	assert_false(sl_history_store_checkpoint(store, 10));
	sl_history_reader_close(&reader);
	assert_true(sl_history_store_checkpoint(store, 10));
	assert_int_equal(sl_history_store_wal_bytes(store), 0);
	assert_null(sl_history_store_close(store));
}

/* A file of another version is moved away as it is, and a new one takes its place. */
static void another_version_is_left_alone(void **state)
{
	struct sl_history_store *store = history_open_store();
	struct sl_error err = {0};
	char command[256];

	for (int version = 1; version < 100; version += 98) {
		char sql[64];

		store = sl_history_store_close(store);
		(void)snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", version);
		history_run(sql);
		assert_int_equal(sl_history_store_open(history_path, &store, &err),
			SL_HISTORY_STORE_OTHER);
		assert_null(store);
		assert_row_contains("said", err.text, "another version of sluiced");
		assert_int_equal(
			sl_history_store_set_aside(history_path, SL_HISTORY_STORE_OTHER,
				1000000000 + version, &err),
			0);
		assert_row_contains("said", err.text, "history.db.other-20010909T0");
		store = history_open_store();
	}
	(void)sl_history_store_close(store);
	(void)snprintf(command, sizeof(command), "test $(ls '%s.other-'*Z | wc -l) = 2",
		history_path);
	assert_int_equal(system(command), 0);
}

static void a_locked_one_is_told(void **state)
{
	struct sl_history_store *store = history_open_store();
	struct sl_history_batch none = {0};
	struct sl_error err = {0};
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open(history_path, &db), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(
		sl_history_store_write(store, &none, T0, &history_everything, &err),
		SL_HISTORY_STORE_BUSY);
	assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	history_write(store, &none, T0, &history_everything);
	(void)sqlite3_close(db);
	sl_history_store_close(store);
}

/* Half-way through a batch the disk is full: nothing of it is there, and later all of it. */
static void a_full_disk_costs_nothing_that_was_there(void **state)
{
	struct sl_history_store *store = history_open_store();
	static struct sl_history_row rows[20000];
	struct sl_history_batch batch = {.rows = {rows}, .row_count = {20000}};
	struct sl_error err = {0};
	struct stat before;
	struct rlimit limit, small;

	for (int i = 0; i < 20000; i++)
		rows[i] = (struct sl_history_row){
			.t = T0 + i / 100, .span = 1, .gpu = 1, .workload = i % 100 + 1};
	assert_int_equal(stat(history_path, &before), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	small = limit;
	small.rlim_cur = 256 << 10;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(
		sl_history_store_write(store, &batch, T0, &history_everything, &err),
		SL_HISTORY_STORE_FULL);
	assert_row_contains("said", err.text, "disk");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(history_number("SELECT count(*) FROM seconds"), 0);
	history_write(store, &batch, T0 + 200, &history_everything);
	assert_int_equal(history_number("SELECT count(*) FROM seconds"), 20000);
	sl_history_store_close(store);
}

static json_t *events_answer(const struct sl_history_ask *ask)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	struct sl_error err = {0};
	json_t *json;

	if (sl_history_query(history_path, ask, 1, out, &err) != SL_HISTORY_STORE_OK)
		fail_msg("%s", err.text);
	(void)fclose(out);
	json = json_loads(text, 0, NULL);
	assert_non_null(json);
	free(text);
	return json;
}

/* A reader that is called off says how far back it came, with its rows so far; the next finds
 * the rest, each row once. */
static void what_was_found_before_giving_up_is_told(void **state)
{
	enum { MANY = 20000 };
	struct sl_history_store *store = history_open_store();
	struct sl_msg_event_row *events = calloc(MANY, sizeof(*events));
	struct sl_history_batch batch = {.events = events, .event_count = MANY};
	struct sl_history_keep keep = history_everything;
	atomic_bool is_called_off = true;
	struct sl_history_ask ask = {.what = SL_HISTORY_EVENTS,
		.kinds = 1u << sl_reason_kind(SL_REASON_JOINED),
		.last = MANY,
		.cancel = &is_called_off};
	json_t *some, *rest;
	size_t count;
	int64_t reached;

	assert_non_null(events);
	for (int i = 0; i < MANY; i++)
		events[i] = (struct sl_msg_event_row){
			.serial = (uint64_t)i + 1, .reason = SL_REASON_JOINED};
	keep.events = MANY;
	history_write(store, &batch, 1000, &keep);
	some = events_answer(&ask);
	count = json_array_size(json_object_get(some, "events"));
	reached = json_integer_value(json_object_get(some, "reached"));
	assert_true(json_is_false(json_object_get(some, "complete")));
	assert_true(json_is_string(json_object_get(some, "text")));
	assert_in_range(count, 1, MANY - 1);
	assert_int_equal(reached, MANY + 1 - (int64_t)count);
	ask.cancel = NULL;
	ask.before = (uint64_t)reached;
	rest = events_answer(&ask);
	assert_null(json_object_get(rest, "complete"));
	assert_int_equal(json_array_size(json_object_get(rest, "events")), MANY - count);
	json_decref(some);
	json_decref(rest);
	free(events);
	sl_history_store_close(store);
}

int main(void)
{
#define IN_A_FOLDER(test) \
	cmocka_unit_test_setup_teardown(test, history_open_folder, history_remove_folder)
	const struct CMUnitTest tests[] = {
		IN_A_FOLDER(a_damaged_one_is_set_aside),
		IN_A_FOLDER(damage_is_met_by_readers),
		IN_A_FOLDER(a_reader_keeps_what_is_written_waiting),
		IN_A_FOLDER(another_version_is_left_alone),
		IN_A_FOLDER(a_locked_one_is_told),
		IN_A_FOLDER(a_full_disk_costs_nothing_that_was_there),
		IN_A_FOLDER(what_was_found_before_giving_up_is_told),
	};

	(void)signal(SIGXFSZ, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
