/* The store: records written and read again, damaged, locked, on a failing disk, killed at each
 * write. */
#include "../../base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "daemon/projects/store.h"
#include "daemon/store/store.h"
#include "../sql.h"

#define KIND SL_KIND_RESOURCE

static char folder[64], path[128], journal[160];

static int open_folder(void **state)
{
	(void)snprintf(folder, sizeof(folder), "/tmp/sl-store-XXXXXX");
	assert_non_null(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/" SL_STORE_STATE_FILE, folder);
	(void)snprintf(journal, sizeof(journal), "%s-journal", path);
	return 0;
}

static int remove_folder(void **state)
{
	(void)remove(journal);
	(void)remove(path);
	return rmdir(folder);
}

static struct sl_store *new_store(void)
{
	struct sl_store *store = NULL;

	assert_int_equal(sl_store_new("/nowhere", folder, &store), 0);
	return store;
}

/* --- What is there. --- */

struct records {
	uint64_t number[64];
	char text[64][1100];
	size_t count;
};

static bool take(void *context, uint64_t number, const char *text, struct sl_error *why)
{
	struct records *records = context;

	if (strcmp(text, "wrong") == 0) {
		sl_error_set(why, "it is wrong");
		return false;
	}
	assert_true(records->count < SL_ARRAY_LEN(records->number));
	records->number[records->count] = number;
	(void)snprintf(
		records->text[records->count++], sizeof(records->text[0]), "%s", text);
	return true;
}

static int load(struct sl_store *store, struct records *records, struct sl_error *err)
{
	records->count = 0;
	err->text[0] = '\0';
	return sl_store_load(store, KIND, take, records, err);
}

static void expect(struct sl_store *store, const char *wanted)
{
	static struct records records;
	char all[512] = "";
	struct sl_error err;
	size_t used = 0;

	if (load(store, &records, &err) != SL_STORE_OK)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < records.count; i++)
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%llu=%s",
			i ? " " : "", (unsigned long long)records.number[i],
			records.text[i]);
	assert_string_equal(all, wanted);
}

static void expect_again(const char *wanted)
{
	struct sl_store *store = new_store();

	expect(store, wanted);
	store = sl_store_free(store);
}

static void expect_error(int wanted, const char *what)
{
	static struct records records;
	struct sl_store *store = new_store();
	struct sl_error err;

	assert_int_equal(load(store, &records, &err), wanted);
	assert_row_contains(what, err.text, path);
	assert_row_contains(what, err.text, what);
	store = sl_store_free(store);
}

/* --- Changes. --- */

static struct sl_error trouble;
static unsigned int over;

static void on_done(void *context, int r, const struct sl_error *err)
{
	assert_int_equal(r < 0, err->text[0] != '\0');
	trouble = *err;
	over++;
}

/* Numbers 1 to count, of the same text. */
static struct sl_store_change *put(uint64_t count, const char *text)
{
	struct sl_store_change *change = sl_store_change_new();

	for (uint64_t i = 1; i <= count; i++)
		sl_store_put(change, KIND, i, text);
	return change;
}

static const char *commit(struct sl_store *store, struct sl_store_change *change)
{
	over = 0;
	assert_int_equal(sl_store_commit(store, change, on_done, NULL), 0);
	sl_store_finish(store);
	assert_int_equal(over, 1);
	return trouble.text;
}

/* --- Tests. --- */

static void reads_what_it_wrote(void **state)
{
	struct sl_store *store = new_store();
	struct sl_store_change *change = put(2, "a");
	struct stat there;

	expect(store, "");
	assert_int_equal(access(path, F_OK), -1);
	assert_string_equal(commit(store, change), "");
	expect(store, "1=a 2=a");
	assert_int_equal(stat(path, &there), 0);
	assert_int_equal(there.st_mode & 0777, 0600);
	change = sl_store_change_new();
	sl_store_put(change, KIND, 2, "b");
	sl_store_put(change, KIND, 9, "");
	sl_store_drop(change, KIND, 1);
	sl_store_put(change, SL_KIND_NUMBER, 1, "of another kind");
	assert_string_equal(commit(store, change), "");
	expect(store, "2=b 9=");
	assert_string_equal(commit(store, sl_store_change_new()), "");
	change = sl_store_change_new();
	sl_store_clear(change, KIND);
	sl_store_put(change, KIND, 3, "c");
	assert_string_equal(commit(store, change), "");
	store = sl_store_free(store);
	expect_again("3=c");
	assert_null(sl_store_free(NULL));
}

static void changes_keep_their_order(void **state)
{
	struct sl_store *store = new_store();

	over = 0;
	for (int i = 0; i < 20; i++) {
		char text[16];

		(void)snprintf(text, sizeof(text), "%d", i);
		assert_int_equal(sl_store_commit(store, put(2, text), on_done, NULL), 0);
	}
	sl_store_finish(store);
	assert_int_equal(over, 20);
	expect(store, "1=19 2=19");
	/* Not reported any more, and written all the same. */
	assert_int_equal(sl_store_commit(store, put(1, "last"), on_done, NULL), 0);
	store = sl_store_free(store);
	assert_int_equal(over, 20);
	expect_again("1=last 2=19");
	store = new_store();
	assert_int_equal(sl_store_commit(store, NULL, on_done, NULL), -ENOMEM);
	assert_int_equal(sl_store_commit(store, put(1, NULL), on_done, NULL), -ENOMEM);
	store = sl_store_free(store);
	expect_again("1=last 2=19");
}

static void flip(size_t at, unsigned int bit)
{
	int fd = open(path, O_RDWR);
	unsigned char byte;

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
	byte ^= (unsigned char)(1u << bit);
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
	(void)close(fd);
}

/* Damage of any byte never changes a record, and is named where it costs one. */
static void each_byte_is_checked(void **state)
{
	sl_cleanup(sl_freep) char *bytes = NULL;
	struct sl_store *store = new_store();
	struct sl_store_change *change = sl_store_change_new();
	static struct records was, is;
	struct sl_error err;
	size_t size = 0, texts = 0;

	for (uint64_t i = 1; i <= 40; i++) {
		char text[1024];

		(void)snprintf(text, sizeof(text), "{\"record %llu\": \"%0400llu\"}",
			(unsigned long long)i, (unsigned long long)(i * 7919));
		sl_store_put(change, KIND, i, text);
	}
	assert_string_equal(commit(store, change), "");
	assert_int_equal(load(store, &was, &err), SL_STORE_OK);
	assert_int_equal(was.count, 40);
	store = sl_store_free(store);
	assert_int_equal(sl_file_read(path, 1 << 20, &bytes, &size), 0);
	for (size_t at = 0; at < size; at += 3) {
		size_t same = 0;
		int r;

		flip(at, at % 8);
		store = new_store();
		r = load(store, &is, &err);
		for (size_t i = 0; i < is.count; i++) {
			uint64_t number = is.number[i];

			assert_in_range(number, 1, 40);
			assert_string_equal(is.text[i], was.text[number - 1]);
			same++;
		}
		if (same < 40 && r == SL_STORE_OK)
			fail_msg("byte %zu: %zu of 40 and no error", at, same);
		if (r != SL_STORE_OK)
			assert_row_contains("where", err.text, path);
		/* Within a text: that record, and no other. */
		if (at > 0 && memcmp(&bytes[at - 1], "000", 3) == 0) {
			assert_int_equal(same, 39);
			assert_int_equal(r, SL_STORE_PARTLY);
			assert_row_contains("text", err.text, "its checksum is wrong");
			assert_row_contains(
				"text", err.text, "DELETE FROM resource WHERE number = ");
			texts++;
		}
		store = sl_store_free(store);
		flip(at, at % 8);
	}
	assert_true(texts > 1000);
}

/* A damaged page costs the records on it: those behind it are read from the other end. */
static void a_page_costs_its_records(void **state)
{
	sl_cleanup(sl_freep) char *bytes = NULL;
	struct sl_store *store = new_store();
	struct sl_store_change *change = sl_store_change_new();
	static struct records is;
	struct sl_error err;
	size_t size = 0;
	char text[1024], *at;

	for (uint64_t i = 1; i <= 40; i++) {
		(void)snprintf(text, sizeof(text), "%01000llu", (unsigned long long)i);
		sl_store_put(change, KIND, i, text);
	}
	assert_string_equal(commit(store, change), "");
	store = sl_store_free(store);
	assert_int_equal(sl_file_read(path, 1 << 20, &bytes, &size), 0);
	(void)snprintf(text, sizeof(text), "%01000d", 20);
	at = memmem(bytes, size, text, strlen(text));
	assert_non_null(at);
	/* The kind of the page. */
	flip((size_t)(at - bytes) / 4096 * 4096, 3);
	store = new_store();
	assert_int_equal(load(store, &is, &err), SL_STORE_PARTLY);
	assert_row_contains(
		"page", err.text, "cannot read all of the compute resources in");
	assert_row_contains("page", err.text, "it is damaged; put back a copy");
	assert_in_range(is.count, 30, 39);
	assert_int_equal(is.number[0], 1);
	store = sl_store_free(store);
}

static void write_text(const char *text)
{
	assert_int_equal(sl_file_replace(path, text, strlen(text), false), 0);
}

static void says_that_it_is_damaged(void **state)
{
	struct sl_store *store = new_store();
	static struct records records;
	struct sl_error err;

	assert_string_equal(commit(store, put(3, "a")), "");
	sql_run(path, "UPDATE resource SET text = 'b' WHERE number = 2");
	store = sl_store_free(store);
	expect_error(SL_STORE_PARTLY, "compute resource 2 in ");
	/* As the remedy says. */
	sql_run(path, "DELETE FROM resource WHERE number = 2");
	expect_again("1=a 3=a");
	/* Records change places. */
	sql_run(path, "UPDATE resource SET number = 7 WHERE number = 3");
	expect_error(SL_STORE_PARTLY, "compute resource 7 in ");
	store = new_store();
	assert_int_equal(load(store, &records, &err), SL_STORE_PARTLY);
	assert_string_equal(commit(store, put(7, "wrong")), "");
	store = sl_store_free(store);
	expect_error(SL_STORE_PARTLY, "it is wrong");
	sql_run(path, "PRAGMA user_version = 2");
	expect_error(SL_STORE_BAD, "written by another version of sluiced");
	store = new_store();
	assert_row_contains(
		"version", commit(store, put(1, "b")), "put there while sluiced ran");
	store = sl_store_free(store);
	write_text("not a database, but long enough for one");
	expect_error(
		SL_STORE_BAD, "file is not a database; it is damaged; put back a copy");
}

static void says_that_it_is_locked(void **state)
{
	struct sl_store *store = new_store();
	sqlite3 *other = NULL;

	assert_string_equal(commit(store, put(1, "a")), "");
	assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(other, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
	assert_row_contains("write", commit(store, put(1, "b")),
		"database is locked; another program has it open");
	expect_error(SL_STORE_BAD, "another program has it open");
	(void)sqlite3_close(other);
	assert_string_equal(commit(store, put(1, "c")), "");
	expect(store, "1=c");
	store = sl_store_free(store);
}

static void says_that_it_was_moved(void **state)
{
	struct sl_store *store = new_store();
	struct sl_store_change *whole;
	char away[160];

	(void)snprintf(away, sizeof(away), "%s.away", path);
	assert_string_equal(commit(store, put(2, "a")), "");
	assert_int_equal(rename(path, away), 0);
	assert_row_contains(
		"moved", commit(store, put(1, "b")), "was moved away or replaced");
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(rename(away, path), 0);
	assert_string_equal(commit(store, put(1, "c")), "");
	expect(store, "1=c 2=a");
	assert_int_equal(remove(path), 0);
	whole = sl_store_change_new();
	sl_store_clear(whole, KIND);
	sl_store_put(whole, KIND, 5, "d");
	assert_string_equal(commit(store, whole), "");
	store = sl_store_free(store);
	expect_again("5=d");
}

static void says_where_it_may_not_write(void **state)
{
	struct sl_store *store = NULL;

	assert_int_equal(sl_store_new("/nowhere", "/proc/sluice", &store), 0);
	assert_row_contains("folder", commit(store, put(1, "a")),
		"cannot store the compute resources: cannot make /proc/sluice/state.db");
	store = sl_store_free(store);
}

/* --- A disk that fails, or a daemon that dies, at the Nth write. --- */

static sqlite3_vfs disk;
static const sqlite3_vfs *real_disk;
static const sqlite3_io_methods *real[2];
static sqlite3_io_methods mine[2];
static int fail_at, writes;
static bool dies;

static bool fails(void)
{
	if (++writes != fail_at)
		return false;
	if (dies)
		(void)raise(SIGKILL);
	return true;
}

#define REAL(file) real[(file)->pMethods == &mine[1]]

static int on_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 at)
{
	return fails() ? SQLITE_FULL : REAL(file)->xWrite(file, bytes, size, at);
}

/* A killed process loses nothing that is not synced, so it is not, and the test is fast. */
static int on_sync(sqlite3_file *file, int flags)
{
	return fails() ? SQLITE_IOERR_FSYNC : SQLITE_OK;
}

static int on_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	return fails() ? SQLITE_IOERR_TRUNCATE : REAL(file)->xTruncate(file, size);
}

static int on_open(
	sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
	int r = real_disk->xOpen(vfs, name, file, flags, out);
	size_t i = flags & SQLITE_OPEN_MAIN_DB ? 0 : 1;

	if (r != SQLITE_OK)
		return r;
	real[i] = file->pMethods;
	mine[i] = *file->pMethods;
	mine[i].xWrite = on_write;
	mine[i].xSync = on_sync;
	mine[i].xTruncate = on_truncate;
	file->pMethods = &mine[i];
	return SQLITE_OK;
}

static void use_disk(void)
{
	if (real_disk)
		return;
	assert_int_equal(sqlite3_initialize(), SQLITE_OK);
	real_disk = sqlite3_vfs_find(NULL);
	disk = *real_disk;
	disk.zName = "failing";
	disk.xOpen = on_open;
	assert_int_equal(sqlite3_vfs_register(&disk, 1), SQLITE_OK);
}

/* "old", "new", or a mixture. */
static const char *which(struct sl_store *store)
{
	static struct records records;
	struct sl_error err;

	if (load(store, &records, &err) != SL_STORE_OK)
		return err.text[0] ? "damaged" : "unread";
	for (size_t i = 1; i < records.count; i++) {
		if (strcmp(records.text[i], records.text[0]) != 0)
			return "mixed";
	}
	return records.count == 2 ? "old" : records.count == 30 ? "new" : "part";
}

static void a_failing_disk_leaves_all_as_it_was(void **state)
{
	unsigned int after = 0;
	const char *said;

	use_disk();
	for (fail_at = 1;; fail_at++) {
		struct sl_store *store = new_store();

		(void)remove(path);
		writes = fail_at;
		assert_string_equal(commit(store, put(2, "a")), "");
		writes = 0;
		said = commit(
			store, put(30, "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"));
		if (!said[0]) {
			assert_true(writes < fail_at);
			store = sl_store_free(store);
			break;
		}
		assert_row_contains("failed", said, "cannot store the compute resources");
		/* The last fsync is behind the commit. */
		if (strcmp(which(store), "old") != 0) {
			assert_string_equal(which(store), "new");
			after++;
		}
		assert_string_equal(commit(store, put(2, "c")), "");
		store = sl_store_free(store);
	}
	assert_true(fail_at > 5);
	assert_in_range(after, 0, 1);
	fail_at = 0;
}

static void write_and_tell(int fd)
{
	struct sl_store *store = NULL;
	static struct records records;
	struct sl_error err;

	if (sl_store_new("/nowhere", folder, &store) < 0 ||
		load(store, &records, &err) != SL_STORE_OK)
		_exit(2);
	if (sl_store_commit(store, put(30, "new"), on_done, NULL) < 0)
		_exit(2);
	sl_store_finish(store);
	if (trouble.text[0] || write(fd, "y", 1) != 1)
		_exit(2);
	_exit(0);
}

/* Returns whether the change was reported as done. */
static bool die_at(int nth, int *status)
{
	int pipe_fds[2];
	char told;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(pipe_fds), 0);
	fail_at = nth;
	writes = 0;
	dies = true;
	pid = fork();
	if (pid == 0)
		write_and_tell(pipe_fds[1]);
	dies = false;
	fail_at = 0;
	(void)close(pipe_fds[1]);
	n = read(pipe_fds[0], &told, 1);
	(void)close(pipe_fds[0]);
	assert_int_equal(waitpid(pid, status, 0), pid);
	return n == 1;
}

static void killed_at_each_write(void **state)
{
	unsigned int before = 0, after = 0;
	int status = -1;

	use_disk();
	for (int nth = 1; status != 0; nth++) {
		struct sl_store *store = new_store();
		const char *is;
		bool told;

		(void)remove(path);
		(void)remove(journal);
		assert_string_equal(commit(store, put(2, "old")), "");
		store = sl_store_free(store);
		told = die_at(nth, &status);
		store = new_store();
		is = which(store);
		if (strcmp(is, "new") == 0)
			after++;
		else if (strcmp(is, "old") == 0 && !told)
			before++;
		else
			fail_msg("write %d: %s%s", nth, told ? "told, and " : "", is);
		assert_string_equal(commit(store, put(1, "next")), "");
		store = sl_store_free(store);
	}
	assert_true(before > 5 && after > 0);
}

/* The same while the database is made. */
static void killed_while_it_is_made(void **state)
{
	int status = -1;

	use_disk();
	for (int nth = 1; status != 0; nth++) {
		struct sl_store *store;
		static struct records records;
		struct sl_error err;
		bool told;

		(void)remove(path);
		(void)remove(journal);
		told = die_at(nth, &status);
		store = new_store();
		if (load(store, &records, &err) != SL_STORE_OK)
			fail_msg("write %d: %s", nth, err.text);
		if (told || records.count)
			assert_int_equal(records.count, 30);
		assert_string_equal(commit(store, put(1, "next")), "");
		store = sl_store_free(store);
	}
}

/* --- Projects. --- */

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

static void projects_are_kept(void **state)
{
	struct sl_projects_stored stored = two(), got = {0};
	struct sl_store *store = new_store();
	struct sl_store_change *change = sl_store_change_new();
	struct sl_error err = {0};

	assert_int_equal(sl_projects_store_load(store, &got, &err), SL_STORE_OK);
	assert_int_equal(got.set.count, 0);
	for (size_t i = 0; i < stored.set.count; i++)
		sl_projects_store_put(change, &stored.set.rows[i], 12);
	assert_string_equal(commit(store, change), "");
	assert_int_equal(sl_projects_store_load(store, &got, &err), SL_STORE_OK);
	assert_int_equal(got.next_id, 12);
	assert_int_equal(got.set.count, 2);
	for (size_t i = 0; i < 2; i++)
		assert_memory_equal(
			&got.set.rows[i], &stored.set.rows[i], sizeof(got.set.rows[i]));
	sl_projects_fini(&got.set);
	store = sl_store_free(store);
	/* A damaged parent costs its own settings alone. */
	sql_run(path, "UPDATE project SET checksum = 1 WHERE number = 10");
	store = new_store();
	assert_int_equal(sl_projects_store_load(store, &got, &err), SL_STORE_PARTLY);
	assert_row_contains("damaged", err.text, "project 10 in ");
	assert_int_equal(got.set.count, 1);
	assert_string_equal(got.set.rows[0].name, "b");
	assert_string_equal(got.set.rows[0].parent, "");
	assert_int_equal(got.next_id, 12);
	sl_projects_fini(&got.set);
	sl_projects_fini(&stored.set);
	store = sl_store_free(store);
}

/* Values that a record with the right checksum must not have. */
static void odd_projects_are_named(void **state)
{
	static const struct {
		const char *is, *was, *what;
	} rows[] = {
		{"\"parent\":\"a\"", "\"parent\":7", "'parent' is not what it may be"},
		{"\"parent\":\"a\"", "\"parent\":\"b\"", "stands above itself"},
		{"\"gpu_weight\":1,", "", "'gpu_weight' is missing"},
		{"\"no_swap\"", "\"more\":1,\"no_swap\"", "unknown keys"},
		{"\"priority\":0", "\"priority\":1001",
			"'priority' is not what it may be"},
		{"\"gpu_quota_milli\":0", "\"gpu_quota_milli\":-7", "negative"},
		{"{", "", "byte "},
	};
	char text[1024];

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_projects_stored stored = two(), got = {0};
		struct sl_store *store = new_store();
		struct sl_store_change *change = sl_store_change_new();
		static struct records records;
		struct sl_error err = {0};
		char *at;

		(void)remove(path);
		sl_projects_store_put(change, &stored.set.rows[1], 12);
		assert_string_equal(commit(store, change), "");
		records.count = 0;
		assert_int_equal(
			sl_store_load(store, SL_KIND_PROJECT, take, &records, &err),
			SL_STORE_OK);
		at = strstr(records.text[0], rows[i].is);
		assert_non_null(at);
		(void)snprintf(text, sizeof(text), "%.*s%s%s",
			(int)(at - records.text[0]), records.text[0], rows[i].was,
			at + strlen(rows[i].is));
		change = sl_store_change_new();
		sl_store_put(change, SL_KIND_PROJECT, 11, text);
		assert_string_equal(commit(store, change), "");
		if (sl_projects_store_load(store, &got, &err) == SL_STORE_OK)
			fail_msg("row '%s': it was read", rows[i].was);
		assert_row_contains(rows[i].was, err.text, rows[i].what);
		sl_projects_fini(&got.set);
		sl_projects_fini(&stored.set);
		store = sl_store_free(store);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(reads_what_it_wrote),
		TEST(changes_keep_their_order),
		TEST(each_byte_is_checked),
		TEST(a_page_costs_its_records),
		TEST(says_that_it_is_damaged),
		TEST(says_that_it_is_locked),
		TEST(says_that_it_was_moved),
		TEST(says_where_it_may_not_write),
		TEST(projects_are_kept),
		TEST(odd_projects_are_named),
		TEST(a_failing_disk_leaves_all_as_it_was),
		TEST(killed_at_each_write),
		TEST(killed_while_it_is_made),
	};

	return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
