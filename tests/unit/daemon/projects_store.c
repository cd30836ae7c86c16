/* Projects in their database: written and read again, damaged, locked, on a full disk. */
#include "../base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/projects/store.h"

static char folder[64], path[128];

static int open_folder(void **state)
{
	(void)snprintf(folder, sizeof(folder), "/tmp/sl-store-XXXXXX");
	assert_non_null(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/%s", folder, SL_PROJECTS_STORE_FILE);
	return 0;
}

static int remove_folder(void **state)
{
	char journal[160];

	(void)snprintf(journal, sizeof(journal), "%s-journal", path);
	(void)remove(journal);
	(void)remove(path);
	return rmdir(folder);
}

/* Two projects that use every field. */
static struct sl_projects_stored two(void)
{
	static const char text[] =
		"projects:\n"
		"  a: {gpu: {quota: 8, limit: 9.5, over_quota_weight: 1000000},"
		" cpu: {quota: unlimited, limit: 3, over_quota_weight: 0}, memory: "
		"{quota: 1GiB},"
		" priority: -1000, users: [u, v], groups: [g], pools: [p],"
		" preempt_min_runtime: 1s, reclaim_min_runtime: 876000h, swap: no}\n"
		"  b: {parent: a}\n";
	struct sl_projects_stored stored = {.next_id = 12};
	struct sl_error err = {0};

	assert_int_equal(sl_projects_parse(text, strlen(text), "f", &stored.set, &err),
		SL_PROJECTS_OK);
	for (size_t i = 0; i < stored.set.count; i++) {
		stored.set.rows[i].id = 10 + i;
		stored.set.rows[i].line = 0;
	}
	return stored;
}

static void save(const struct sl_projects_stored *stored)
{
	struct sl_error err = {0};

	if (sl_projects_store_save(folder, stored, &err) != SL_PROJECTS_STORE_OK)
		fail_msg("%s", err.text);
}

static void expect(const struct sl_projects_stored *wanted)
{
	struct sl_projects_stored got = {0};
	struct sl_error err = {0};

	if (sl_projects_store_load(folder, &got, &err) != SL_PROJECTS_STORE_OK)
		fail_msg("%s", err.text);
	assert_int_equal(got.next_id, wanted->next_id);
	assert_int_equal(got.set.count, wanted->set.count);
	for (size_t i = 0; i < got.set.count; i++)
		assert_memory_equal(
			&got.set.rows[i], &wanted->set.rows[i], sizeof(got.set.rows[i]));
	sl_projects_fini(&got.set);
}

static void expect_bad(const char *name, const char *what)
{
	struct sl_projects_stored got = {0};
	struct sl_error err = {0};

	if (sl_projects_store_load(folder, &got, &err) == SL_PROJECTS_STORE_OK)
		fail_msg("row '%s': it was read", name);
	assert_row_contains(name, err.text, path);
	assert_row_contains(name, err.text, what);
	assert_null(got.set.rows);
}

static void reads_what_it_wrote(void **state)
{
	struct sl_projects_stored none = {0}, stored = two();

	expect(&none);
	save(&stored);
	expect(&stored);
	/* A row that is gone is gone; one that changed has changed. */
	sl_projects_drop(&stored.set, "b");
	stored.set.rows[0].priority = 7;
	stored.next_id = 13;
	save(&stored);
	expect(&stored);
	sl_projects_fini(&stored.set);
}

static void write_file(const char *text, size_t size, long at)
{
	FILE *file = fopen(path, at < 0 ? "w" : "r+");

	assert_non_null(file);
	if (at > 0)
		assert_int_equal(fseek(file, at, SEEK_SET), 0);
	assert_int_equal(fwrite(text, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static void sql(const char *text)
{
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", text, sqlite3_errmsg(db));
	(void)sqlite3_close(db);
}

static void says_that_it_is_damaged(void **state)
{
	static const struct {
		const char *sql, *what;
	} rows[] = {
		{"UPDATE project SET parent = 'z' WHERE name = 'b'",
			"there is no project z"},
		{"UPDATE project SET parent = 'b' WHERE name = 'a'",
			"stands above itself"},
		{"UPDATE project SET gpu_quota_milli = -7", "are damaged"},
		{"UPDATE project SET priority = 1 << 40", "a row is not what it may be"},
		{"UPDATE project SET id = 99 WHERE name = 'a'",
			"a number was not given yet"},
		{"UPDATE project SET users = hex(zeroblob(999))", "are damaged"},
		{"DROP TABLE meta", "no such table"},
		{"PRAGMA user_version = 2", "written by a newer sluiced"},
	};
	struct sl_projects_stored stored = two();
	struct sl_error err = {0};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		save(&stored);
		sql(rows[i].sql);
		expect_bad(rows[i].sql, rows[i].what);
		assert_int_equal(remove(path), 0);
	}
	save(&stored);
	sql("PRAGMA user_version = 2");
	assert_int_equal(
		sl_projects_store_save(folder, &stored, &err), SL_PROJECTS_STORE_BAD);
	assert_row_contains("written over", err.text, "written by a newer sluiced");
	assert_int_equal(remove(path), 0);
	write_file("this is no database, and long enough to be seen as none. ----------",
		64, -1);
	expect_bad("no database", "move it away");
	assert_int_equal(remove(path), 0);
	save(&stored);
	write_file("garbage garbage garbage garbage garbage garbage", 47, 4096);
	expect_bad("a page", "it is damaged; move it away");
	sl_projects_fini(&stored.set);
}

static void says_that_it_is_locked(void **state)
{
	struct sl_projects_stored stored = two(), got = {0};
	struct sl_error err = {0};
	sqlite3 *other = NULL;

	save(&stored);
	assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(other, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(
		sl_projects_store_load(folder, &got, &err), SL_PROJECTS_STORE_BAD);
	assert_row_contains(
		"read", err.text, "database is locked; another program has it open");
	assert_int_equal(
		sl_projects_store_save(folder, &stored, &err), SL_PROJECTS_STORE_BAD);
	assert_row_contains("write", err.text, "another program has it open");
	(void)sqlite3_close(other);
	expect(&stored);
	sl_projects_fini(&stored.set);
}

/* A write that does not fit on the disk leaves the old file. */
static void says_that_the_disk_is_full(void **state)
{
	struct rlimit before, small = {.rlim_cur = 16384};
	struct sl_projects_stored stored = two(), large = {.next_id = 1000};
	struct sl_project_row row;
	struct sl_error err = {0};
	char name[16];

	save(&stored);
	for (uint64_t i = 1; i < 500; i++) {
		(void)snprintf(name, sizeof(name), "p%d", (int)i);
		sl_project_defaults(&row, name);
		row.id = i;
		assert_int_equal(sl_projects_put(&large.set, &row), 0);
	}
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(
		sl_projects_store_save(folder, &large, &err), SL_PROJECTS_STORE_BAD);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_row_contains("full", err.text, "cannot store the projects in");
	expect(&stored);
	save(&large);
	expect(&large);
	sl_projects_fini(&stored.set);
	sl_projects_fini(&large.set);
}

static void says_where_it_may_not_write(void **state)
{
	struct sl_projects_stored stored = two();
	struct sl_error err = {0};

	assert_int_equal(sl_projects_store_save("/proc/sluice", &stored, &err),
		SL_PROJECTS_STORE_BAD);
	assert_row_contains("folder", err.text, "cannot make the folder /proc/sluice");
	assert_row_contains("folder", err.text, "data_dir");
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(
		sl_projects_store_save(folder, &stored, &err), SL_PROJECTS_STORE_BAD);
	assert_row_contains("a folder in its place", err.text, "unable to open");
	sl_projects_fini(&stored.set);
}

static int wait_for(struct sl_projects_store *store, struct sl_error *err)
{
	struct pollfd over = {.fd = sl_projects_store_fd(store), .events = POLLIN};
	int result = -1;

	while (!sl_projects_store_take(store, &result, err))
		assert_true(poll(&over, 1, 20000) == 1);
	return result;
}

static void the_thread_writes(void **state)
{
	struct sl_projects_stored stored = two();
	struct sl_projects_store *store = NULL;
	struct sl_error err = {0};

	assert_int_equal(sl_projects_store_new(folder, &store), 0);
	sl_projects_store_start(store, &stored);
	assert_int_equal(wait_for(store, &err), SL_PROJECTS_STORE_OK);
	expect(&stored);
	write_file("no database", 11, -1);
	sl_projects_store_start(store, &stored);
	assert_int_equal(wait_for(store, &err), SL_PROJECTS_STORE_BAD);
	assert_row_contains("damaged", err.text, path);
	assert_int_equal(remove(path), 0);
	/* Handed-over data is written before the end. */
	stored.next_id = 77;
	sl_projects_store_start(store, &stored);
	store = sl_projects_store_free(store);
	expect(&stored);
	assert_null(sl_projects_store_free(store));
	sl_projects_fini(&stored.set);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(reads_what_it_wrote),
		TEST(says_that_it_is_damaged),
		TEST(says_that_it_is_locked),
		TEST(says_that_the_disk_is_full),
		TEST(says_where_it_may_not_write),
		TEST(the_thread_writes),
	};

	return cmocka_run_group_tests_name("projects_store", tests, NULL, NULL);
}
