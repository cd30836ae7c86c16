/* Jobs on the disk, record and folder: written and read again, damaged, killed in the middle, on a
 * full disk. */
#include "../../base/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "daemon/jobs/files.h"
#include "daemon/jobs/logs.h"
#include "daemon/jobs/state.h"
#include "daemon/jobs/store.h"
#include "policy/cluster.h"
#include "../sql.h"

#define MOST 4096

static char top[64], data[80], folder[96], database[112];

static int make_top(void **state)
{
	(void)state;
	/* In memory where there is such a place: thousands of fsyncs of a disk tell nothing
	 * more. */
	(void)snprintf(top, sizeof(top), "%s/sluice-jobs-XXXXXX",
		access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(top));
	(void)snprintf(data, sizeof(data), "%s/data", top);
	(void)snprintf(folder, sizeof(folder), "%s/jobs", data);
	(void)snprintf(database, sizeof(database), "%s/" SL_STORE_STATE_FILE, data);
	return 0;
}

static int remove_top(void **state)
{
	char command[128];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -r %s", top);
	return system(command);
}

/* --- Rows. --- */

static struct sl_jobs_row row_of(uint64_t id, uint32_t tasks)
{
	struct sl_jobs_row row = {.id = id,
		.uid = 1000,
		.gid = UINT32_MAX - 1,
		.name = "train",
		.project = "team-a",
		.command = "python train.py \"\\\n\x01\xc3\xa4",
		.request = {.kind = SL_AMOUNT_FRACTION, .value = 250000},
		.limit = {.kind = SL_AMOUNT_BYTES, .value = UINT64_MAX},
		.gpu_count = 2,
		.flags = SL_SUBMIT_PREEMPTIBLE,
		.task_count = tasks,
		.least = 1,
		.retries = 3,
		.workloads_most = 12,
		.priority = -1000,
		.wait_max = SL_NS_NEVER,
		.warm_after = 5 * SL_S,
		.preempt_delay = 600 * SL_S,
		.state = SL_JOB_RUNNING,
		.submitted_ms = 1700000000000,
		.exit_status = SL_JOB_LOST,
		.started = 7};

	row.tasks = calloc(tasks, sizeof(*row.tasks));
	for (uint32_t i = 0; i < tasks; i++)
		row.tasks[i] = (struct sl_jobs_task){.state = i % SL_TASK_STATES,
			.attempt = i,
			.failures = i / 2,
			.workload = UINT64_MAX - i,
			.parked = i % 3 == 0,
			.exit_status = i << 8};
	return row;
}

static void same_rows(const struct sl_jobs_row *got, const struct sl_jobs_row *want)
{
	struct sl_jobs_row a = *got, b = *want;

	a.tasks = b.tasks = NULL;
	assert_memory_equal(&a, &b, sizeof(a));
	for (uint32_t i = 0; i < want->task_count; i++) {
		const struct sl_jobs_task *x = &got->tasks[i], *y = &want->tasks[i];

		assert_int_equal(x->state, y->state);
		assert_int_equal(x->attempt, y->attempt);
		assert_int_equal(x->failures, y->failures);
		assert_true(x->workload == y->workload);
		assert_int_equal(x->parked, y->parked);
		assert_int_equal(x->exit_status, y->exit_status);
	}
}

static void test_text(void **state)
{
	struct sl_jobs_row row = row_of(12, SL_JOB_TASKS_MAX), back;
	struct sl_error err = {{0}};
	char *text;

	(void)state;
	/* Not UTF-8, and as long as it may be. */
	memset(row.why, '\xff', sizeof(row.why) - 1);
	(void)snprintf(row.visible, sizeof(row.visible), "\x80,1");
	text = sl_jobs_state_write(&row);
	if (!sl_jobs_state_read(text, 12, &back, &err))
		fail_msg("%s", err.text);
	same_rows(&back, &row);
	sl_jobs_row_fini(&back);
	/* Half a record is refused. */
	for (size_t size = strlen(text) - 1; size > 997; size -= 997) {
		text[size] = '\0';
		assert_false(sl_jobs_state_read(text, 12, &back, &err));
	}
	assert_null(back.tasks);
	free(text);
	sl_jobs_row_fini(&row);
}

/* One thing replaced in a good text. */
static void test_damaged_text(void **state)
{
	static const struct {
		const char *from, *to, *says;
	} rows[] = {
		{"\"uid\":1000", "\"uid\":4294967295", "uid"},
		{"\"uid\":1000,", "", "'uid' is missing"},
		{"\"uid\":1000,", "\"uid\":1000,\"more\":1,", "unknown keys"},
		{"\"name\":\"train\"", "\"name\":\"a\\u0000b\"", ""},
		{"\"name\":\"train\"", "\"name\":{\"hex\":\"zz\"}", "name"},
		{"\"name\":\"train\"", "\"name\":{\"hex\":\"4100\"}", "name"},
		{"\"name\":\"train\"", "\"name\":{\"hex\":\"41\",\"x\":1}", "name"},
		{"\"name\":\"train\"",
			"\"name\":\"1234567890123456789012345678901234567890"
			"1234567890123456789012345678901234567890\"",
			"name"},
		{"\"state\":1", "\"state\":7", "state"},
		{"\"gpu_count\":2", "\"gpu_count\":65", "gpu_count"},
		{"\"priority\":-1000", "\"priority\":-1001", "priority"},
		{"\"request_value\":250000", "\"request_value\":1000001", "request"},
		{"\"request_kind\":1", "\"request_kind\":9", "request_kind"},
		{"\"task_count\":2", "\"task_count\":0", "task_count"},
		{"\"task_count\":2", "\"task_count\":1025", "task_count"},
		{"\"task_count\":2", "\"task_count\":3", "tasks"},
		{"\"least\":1", "\"least\":3", "least"},
		{"\"tasks\":[", "\"tasks\":[7,", "tasks"},
		{"\"parked\":false", "\"parked\":0", "task 1: 'parked'"},
		{"\"attempt\":1", "\"attempt\":4294967296", "task 1: 'attempt'"},
		{"\"tasks\":[{", "\"tasks\":[{\"x\":1,", "task 0"},
		{"{", "[{", ""},
	};
	struct sl_jobs_row row = row_of(12, 2), back;
	char *text = sl_jobs_state_write(&row);

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_error err = {{0}};
		char bad[4096];
		const char *found = strstr(text, rows[i].from);

		if (!found)
			fail_msg("no %s in %s", rows[i].from, text);
		(void)snprintf(bad, sizeof(bad), "%.*s%s%s", (int)(found - text), text,
			rows[i].to, found + strlen(rows[i].from));
		if (sl_jobs_state_read(bad, 12, &back, &err))
			fail_msg("%s: it was read", rows[i].to);
		assert_row_contains(rows[i].to, err.text, rows[i].says);
		assert_true(err.text[0]);
	}
	free(text);
	sl_jobs_row_fini(&row);
}

/* --- The store. --- */

static struct sl_jobspec spec_of(const char *word)
{
	struct sl_jobspec spec = {0};

	assert_int_equal(sl_jobspec_add(&spec, SL_JOBSPEC_ARG, word), 0);
	assert_int_equal(sl_jobspec_add(&spec, SL_JOBSPEC_DIR, "/"), 0);
	assert_int_equal(sl_jobspec_add(&spec, SL_JOBSPEC_UID, "0"), 0);
	assert_int_equal(sl_jobspec_add(&spec, SL_JOBSPEC_GID, "0"), 0);
	return spec;
}

static void ignore(void *context, struct sl_jobs_row *row)
{
	sl_jobs_row_fini(row);
}

/* Read, as by the daemon. */
static struct sl_store *open_store(void)
{
	struct sl_store *store = NULL;
	struct sl_error err = {0};
	uint64_t next;

	assert_int_equal(sl_store_new("/nowhere", data, &store), 0);
	(void)(sl_jobs_store_load(store, folder, ignore, NULL, &next, &err) + 1);
	return store;
}

/* Of the change that was over last. */
static struct sl_error trouble;

static void on_done(void *context, int r, const struct sl_error *err)
{
	assert_int_equal(r < 0, err->text[0] != '\0');
	trouble = *err;
}

/* "", or what went wrong. */
static const char *commit(struct sl_store *store, struct sl_store_change *change)
{
	assert_int_equal(sl_store_commit(store, change, on_done, NULL), 0);
	sl_store_finish(store);
	return trouble.text;
}

static const char *add(struct sl_store *store, const struct sl_jobs_row *row)
{
	struct sl_store_change *change = sl_store_change_new();
	struct sl_jobspec spec = spec_of(row->name);

	sl_jobs_store_add(change, folder, row, &spec);
	sl_jobspec_fini(&spec);
	return commit(store, change);
}

static const char *put(struct sl_store *store, const struct sl_jobs_row *row)
{
	struct sl_store_change *change = sl_store_change_new();

	sl_jobs_store_put(change, row);
	return commit(store, change);
}

static const char *drop(struct sl_store *store, uint64_t id)
{
	struct sl_store_change *change = sl_store_change_new();

	sl_jobs_store_drop(change, folder, id);
	return commit(store, change);
}

struct loaded {
	struct sl_jobs_row rows[MOST];
	size_t count;
	uint64_t next;
};

static void keep(void *context, struct sl_jobs_row *row)
{
	struct loaded *loaded = context;

	assert_true(loaded->count < MOST);
	loaded->rows[loaded->count++] = *row;
}

static struct loaded *load_with(int wanted, struct sl_error *err)
{
	struct sl_store *store = NULL;
	struct loaded *loaded = calloc(1, sizeof(*loaded));

	assert_int_equal(sl_store_new("/nowhere", data, &store), 0);
	*err = (struct sl_error){0};
	if (sl_jobs_store_load(store, folder, keep, loaded, &loaded->next, err) != wanted)
		fail_msg("%s", err->text);
	store = sl_store_free(store);
	return loaded;
}

static struct loaded *load(void)
{
	struct sl_error err;

	return load_with(SL_STORE_OK, &err);
}

static void forget(struct loaded *loaded)
{
	for (size_t i = 0; i < loaded->count; i++)
		sl_jobs_row_fini(&loaded->rows[i]);
	free(loaded);
}

static void store_jobs(const uint64_t *ids, size_t count)
{
	struct sl_store *store = open_store();

	for (size_t i = 0; i < count; i++) {
		struct sl_jobs_row row = row_of(ids[i], 1);

		assert_string_equal(add(store, &row), "");
		sl_jobs_row_fini(&row);
	}
	store = sl_store_free(store);
}

static bool is_there(const char *name)
{
	char path[160];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	return access(path, F_OK) == 0;
}

static void test_there_and_back(void **state)
{
	static const uint64_t ids[] = {9, 10, 100};
	struct sl_store *store;
	struct sl_jobs_row row = row_of(10, 3);
	struct loaded *loaded;
	struct sl_jobspec spec = {0};
	struct sl_error err = {{0}};
	struct stat stat_of;
	size_t at_ = 0;
	char path[160];

	(void)state;
	/* A daemon that has no jobs leaves no trace. */
	loaded = load();
	assert_int_equal(access(data, F_OK), -1);
	assert_int_equal(loaded->count, 0);
	assert_int_equal(loaded->next, 1);
	forget(loaded);
	store_jobs(ids, SL_ARRAY_LEN(ids));
	assert_int_equal(stat(folder, &stat_of), 0);
	assert_int_equal(stat_of.st_mode & 0777, 0700);
	(void)snprintf(path, sizeof(path), "%s/10/spec", folder);
	assert_int_equal(stat(path, &stat_of), 0);
	assert_int_equal(stat_of.st_mode & 0777, 0600);
	store = open_store();
	row.state = SL_JOB_FAILED;
	assert_string_equal(put(store, &row), "");
	/* No job takes the place of another. */
	assert_row_contains("twice", add(store, &row), "cannot store job 10 in");
	store = sl_store_free(store);
	loaded = load();
	assert_int_equal(loaded->count, 3);
	assert_int_equal(loaded->next, 101);
	assert_int_equal(loaded->rows[0].id, 9);
	same_rows(&loaded->rows[1], &row);
	assert_int_equal(loaded->rows[2].id, 100);
	forget(loaded);
	sl_jobs_row_fini(&row);
	assert_true(sl_jobs_files_read_spec(folder, 10, &spec, &err));
	assert_string_equal(sl_jobspec_next(&spec, SL_JOBSPEC_ARG, &at_), "train");
	sl_jobspec_fini(&spec);
	assert_false(sl_jobs_files_read_spec(folder, 11, &spec, &err));
	assert_non_null(strstr(err.text, "job 11"));
}

/* Of a removed job only the number is left, which is not given again, even after the store
 * was opened anew. */
static void test_remove(void **state)
{
	static const uint64_t ids[] = {1, 2, 3, 4};
	struct sl_store *store;
	struct loaded *loaded;
	char command[160];
	int fd;

	(void)state;
	store_jobs(ids, SL_ARRAY_LEN(ids));
	fd = sl_jobs_files_open_log(folder, 3, 0, true);
	assert_true(fd >= 0);
	close(fd);
	store = open_store();
	assert_string_equal(drop(store, 3), "");
	assert_string_equal(drop(store, 4), "");
	assert_string_equal(drop(store, 77), "");
	store = sl_store_free(store);
	assert_false(is_there("3") || is_there("4") || is_there("part.3"));
	loaded = load();
	assert_int_equal(loaded->count, 2);
	assert_int_equal(loaded->next, 5);
	forget(loaded);
	/* One whose folder was removed by hand. */
	(void)snprintf(command, sizeof(command), "rm -r %s/1", folder);
	assert_int_equal(system(command), 0);
	store = open_store();
	assert_string_equal(drop(store, 1), "");
	assert_string_equal(drop(store, 2), "");
	store = sl_store_free(store);
	loaded = load();
	assert_int_equal(loaded->count, 0);
	assert_int_equal(loaded->next, 5);
	forget(loaded);
}

/* --- Damage. --- */

static void run(const char *words)
{
	char command[256];

	(void)snprintf(command, sizeof(command), "cd %s && %s", folder, words);
	assert_int_equal(system(command), 0);
}

static void test_damaged(void **state)
{
	static const uint64_t ids[] = {1, 2, 3, 4};
	struct sl_error err;
	struct loaded *loaded;

	(void)state;
	store_jobs(ids, SL_ARRAY_LEN(ids));
	/* Names that are no numbers. */
	run("mkdir 007 lost+found part.x 99999999999999999999");
	loaded = load();
	assert_int_equal(loaded->count, 4);
	forget(loaded);
	/* One job of an earlier sluiced, whose next number was elsewhere. */
	run("mkdir 900 && touch 900/spec 900/state");
	loaded = load_with(SL_STORE_PARTLY, &err);
	assert_int_equal(loaded->count, 4);
	assert_int_equal(loaded->next, 901);
	assert_row_contains("foreign", err.text, "are left alone: 1 in ");
	assert_row_contains("foreign", err.text, "/jobs, 900 for one");
	forget(loaded);
	/* The record comes first. No folder is removed while one is unread. */
	sql_run(database, "UPDATE job SET checksum = 1 WHERE number = 2");
	run("mv 2 part.2 && mv 3 part.3");
	loaded = load_with(SL_STORE_PARTLY, &err);
	assert_int_equal(loaded->count, 3);
	assert_row_contains("record", err.text, "job 2 in ");
	assert_row_contains("record", err.text, "DELETE FROM job WHERE number = 2");
	assert_true(is_there("part.2/spec") && is_there("3/spec"));
	assert_true(is_there("900/state") && is_there("lost+found"));
	forget(loaded);
	/* The command of a job whose spec was overwritten. */
	run("echo -n arg=a >4/spec");
	assert_false(sl_jobs_files_read_spec(folder, 4, &(struct sl_jobspec){0}, &err));
	assert_row_contains("spec", err.text, "4/spec is damaged");
}

/* What a crash leaves at each of the steps. */
static void test_left_by_a_crash(void **state)
{
	static const uint64_t ids[] = {1, 2, 3, 4};
	struct loaded *loaded;

	(void)state;
	store_jobs(ids, SL_ARRAY_LEN(ids));
	/* Stored, and not renamed yet; being removed, and still stored. */
	run("mv 1 part.1 && mv 2 part.2 && touch part.2/log.0");
	/* Not stored yet; not stored any more. */
	sql_run(database, "DELETE FROM job WHERE number = 3");
	run("mv 3 part.3 && mkdir part.9 && touch part.9/spec");
	loaded = load();
	assert_int_equal(loaded->count, 3);
	assert_int_equal(loaded->next, 5);
	assert_true(is_there("1/spec") && is_there("2/log.0") && is_there("4/spec"));
	assert_false(is_there("part.1") || is_there("part.2"));
	assert_false(is_there("3") || is_there("part.3") || is_there("part.9"));
	forget(loaded);
}

static void test_no_folder(void **state)
{
	struct sl_jobs_row row = row_of(1, 1);
	struct sl_store *store;
	struct sl_error err;

	(void)state;
	assert_int_equal(sl_file_replace(data, "", 0, false), 0);
	forget(load_with(SL_STORE_BAD, &err));
	assert_row_contains("read", err.text, database);
	store = open_store();
	assert_row_contains("write", add(store, &row), folder);
	/* It is made as soon as it can be. */
	assert_int_equal(unlink(data), 0);
	assert_string_equal(add(store, &row), "");
	store = sl_store_free(store);
	sl_jobs_row_fini(&row);
}

/* A record that is refused: the folder is as it was. */
static void test_refused(void **state)
{
	static const uint64_t ids[] = {1};
	struct sl_jobs_row row = row_of(2, 1);
	struct sl_store *store;

	(void)state;
	store_jobs(ids, 1);
	store = open_store();
	assert_string_equal(put(store, &row), "");
	assert_string_equal(drop(store, 2), "");
	sql_run(database, "CREATE TRIGGER i BEFORE INSERT ON job BEGIN SELECT "
			  "RAISE(ABORT, 'jammed'); END");
	sql_run(database, "CREATE TRIGGER d BEFORE DELETE ON job BEGIN SELECT "
			  "RAISE(ABORT, 'jammed'); END");
	assert_row_contains("new", add(store, &row), "cannot store the jobs in ");
	assert_row_contains("new", trouble.text, "jammed");
	assert_row_contains("old", drop(store, 1), "jammed");
	assert_false(is_there("2") || is_there("part.2") || is_there("part.1"));
	assert_true(is_there("1/spec"));
	store = sl_store_free(store);
	sl_jobs_row_fini(&row);
}

/* --- Killed in the middle. --- */

/* Stores job 1 again and again, each time with a larger number in all 50 tasks. Adds and drops
 * other jobs, of which two are there at a time. Each number that was stored is told through the
 * pipe. */
static void write_forever(int told)
{
	struct sl_jobs_row row = row_of(1, 50), other = row_of(2, 1);
	struct loaded *loaded = load();
	struct sl_store *store = open_store();
	uint32_t n = loaded->count ? loaded->rows[0].tasks[0].attempt : 0;
	bool fresh = loaded->count == 0;

	if (loaded->next > 2)
		other.id = loaded->next;
	for (;; other.id++) {
		n++;
		for (int i = 0; i < 50; i++)
			row.tasks[i].attempt = n;
		if ((fresh ? add(store, &row) : put(store, &row))[0] ||
			write(told, &n, sizeof(n)) != sizeof(n) ||
			add(store, &other)[0] ||
			(other.id > 4 && drop(store, other.id - 2)[0]))
			_exit(1);
		fresh = false;
	}
}

static size_t count_numbers(void)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	size_t count = 0;

	while ((entry = readdir(dir)))
		count += entry->d_name[0] >= '1' && entry->d_name[0] <= '9';
	closedir(dir);
	return count;
}

static void test_killed(void **state)
{
	uint32_t promised = 0;
	uint64_t next = 0;

	(void)state;
	for (uint32_t round = 1; round <= 40; round++) {
		struct loaded *loaded;
		int ends[2], status;
		uint32_t n = 0;
		pid_t pid;

		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			write_forever(ends[1]);
		close(ends[1]);
		/* At different steps of its work. */
		for (uint32_t i = 0; i <= round % 5; i++)
			assert_int_equal(read(ends[0], &n, sizeof(n)), sizeof(n));
		promised = n;
		sl_clock_sleep(round % 8 * 150 * SL_US);
		assert_int_equal(kill(pid, SIGKILL), 0);
		while (read(ends[0], &n, sizeof(n)) == sizeof(n))
			promised = n;
		close(ends[0]);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		loaded = load();
		/* All there are could be read. */
		assert_int_equal(loaded->count, count_numbers());
		assert_int_equal(loaded->rows[0].id, 1);
		assert_true(loaded->rows[0].tasks[0].attempt >= promised);
		for (int i = 1; i < 50; i++)
			assert_int_equal(loaded->rows[0].tasks[i].attempt,
				loaded->rows[0].tasks[0].attempt);
		assert_true(loaded->next >= next);
		next = loaded->next;
		forget(loaded);
	}
	assert_true(promised > 40);
}

/* --- A full disk. --- */

static void fill_and_store(void)
{
	struct sl_jobs_row row = row_of(1, SL_JOB_TASKS_MAX), small = row_of(2, 1);
	struct sl_store *store = open_store();
	struct loaded *loaded;

	/* A small job fits. A large one leaves nothing behind, and a growth that is refused leaves
	 * the stored state. */
	assert_string_equal(add(store, &small), "");
	assert_row_contains("new", add(store, &row), database);
	assert_false(is_there("1") || is_there("part.1"));
	row.id = 2;
	assert_row_contains("full", put(store, &row), "the disk is full; make room");
	store = sl_store_free(store);
	loaded = load();
	assert_int_equal(loaded->count, 1);
	same_rows(&loaded->rows[0], &small);
	forget(loaded);
	assert_int_equal(count_numbers(), 1);
	sl_jobs_row_fini(&row);
	sl_jobs_row_fini(&small);
}

/* Files may not become large: as any user. */
static void test_files_too_large(void **state)
{
	struct rlimit before, few;

	(void)state;
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	few = before;
	few.rlim_cur = 65536;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
	fill_and_store();
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

/* Full, and then read-only. */
static void test_disk_full(void **state)
{
	struct sl_jobs_row row = row_of(2, 1);
	struct sl_store *store;
	char block[4096] = "", new[512], known[512];
	int fd, record, more, r;
	ssize_t written;

	(void)state;
	assert_int_equal(mkdir(data, 0700), 0);
	if (mount("tmpfs", data, "tmpfs", 0, "size=120k") < 0)
		skip();
	fill_and_store();
	/* A record that was opened before has room when the disk is full; a new one says so. */
	record = sl_jobs_files_open_record(folder, 2, 0, 1);
	assert_true(record >= 0);
	fd = sl_jobs_files_open_log(folder, 2, 0, true);
	assert_true(fd >= 0);
	while (write(fd, block, sizeof(block)) > 0)
		;
	assert_int_equal(errno, ENOSPC);
	more = sl_jobs_files_open_record(folder, 2, 0, 2);
	written = pwrite(record, "exit", 4, 0);
	close(fd);
	close(record);
	if (more >= 0)
		close(more);
	r = mount(NULL, data, NULL, MS_REMOUNT | MS_RDONLY, NULL);
	store = open_store();
	row.id = 3;
	(void)snprintf(new, sizeof(new), "%s", add(store, &row));
	row.id = 2;
	(void)snprintf(known, sizeof(known), "%s", put(store, &row));
	store = sl_store_free(store);
	(void)umount(data);
	assert_int_equal(more, -ENOSPC);
	assert_int_equal(written, 4);
	assert_int_equal(r, 0);
	assert_row_contains("new", new, folder);
	assert_row_contains("new", new, "Read-only file system; let sluiced's user");
	assert_row_contains("known", known, database);
	assert_row_contains("known", known, "let sluiced's user write there");
	sl_jobs_row_fini(&row);
}

/* --- Files of a job. --- */

static void test_files(void **state)
{
	static const uint64_t ids[] = {5};
	struct stat stat_of;
	char text[16], path[160];
	int fd;

	(void)state;
	store_jobs(ids, 1);
	assert_int_equal(sl_jobs_files_open_log(folder, 5, 3, false), -ENOENT);
	assert_int_equal(sl_jobs_files_open_log(folder, 6, 3, true), -ENOENT);
	for (int i = 0; i < 2; i++) {
		fd = sl_jobs_files_open_log(folder, 5, 3, true);
		assert_true(fd >= 0);
		assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
		assert_int_equal(write(fd, "abc", 3), 3);
		assert_int_equal(read(fd, text, 1), -1);
		close(fd);
	}
	fd = sl_jobs_files_open_log(folder, 5, 3, false);
	assert_int_equal(read(fd, text, sizeof(text)), 6);
	assert_int_equal(write(fd, "abc", 3), -1);
	close(fd);
	assert_int_equal(
		sl_jobs_files_read_record(folder, 5, 3, 1, text, sizeof(text)), -ENOENT);
	for (int i = 0; i < 2; i++) {
		fd = sl_jobs_files_open_record(folder, 5, 3, 1);
		assert_true(fd >= 0);
		assert_int_equal(fstat(fd, &stat_of), 0);
		assert_int_equal(stat_of.st_size, 0);
		assert_int_equal(stat_of.st_mode & 0777, 0600);
		assert_int_equal(
			sl_jobs_files_read_record(folder, 5, 3, 1, text, sizeof(text)),
			0);
		assert_int_equal(write(fd, "0123456789abcdefg", 17), 17);
		close(fd);
	}
	assert_int_equal(
		sl_jobs_files_read_record(folder, 5, 3, 1, text, sizeof(text)), 15);
	assert_string_equal(text, "0123456789abcde");
	/* Links are not followed. */
	(void)snprintf(path, sizeof(path), "%s/5/log.4", folder);
	assert_int_equal(symlink("/dev/null", path), 0);
	assert_int_equal(sl_jobs_files_open_log(folder, 5, 4, true), -ELOOP);
}

/* Whatever its user has put in a log's place, or does with it, keeps no other waiting. */
static void test_files_that_would_hang(void **state)
{
	static const uint64_t ids[] = {8};
	char path[160], text[16];
	int fd, mine;

	(void)state;
	store_jobs(ids, 1);
	(void)snprintf(path, sizeof(path), "%s/8/log.0", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(sl_jobs_files_open_log(folder, 8, 0, false), -EINVAL);
	/* It has no reader: -ENXIO. */
	assert_int_equal(sl_jobs_files_open_log(folder, 8, 0, true), -ENXIO);
	(void)snprintf(path, sizeof(path), "%s/8/exit.0.1", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(
		sl_jobs_files_read_record(folder, 8, 0, 1, text, sizeof(text)), -EINVAL);

	(void)signal(SIGIO, SIG_IGN);
	fd = sl_jobs_files_open_log(folder, 8, 1, true);
	assert_true(fd >= 0);
	/* It is as it would be without all this. */
	assert_int_equal(fcntl(fd, F_GETFL) & (O_APPEND | O_NONBLOCK), O_APPEND);
	close(fd);
	(void)snprintf(path, sizeof(path), "%s/8/log.1", folder);
	mine = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fcntl(mine, F_SETLEASE, F_WRLCK), 0);
	assert_int_equal(sl_jobs_files_open_log(folder, 8, 1, false), -EAGAIN);
	assert_int_equal(sl_jobs_files_open_log(folder, 8, 1, true), -EAGAIN);
	close(mine);
	fd = sl_jobs_files_open_log(folder, 8, 1, false);
	assert_true(fd >= 0);
	close(fd);
}

/* --- Logs that grow. --- */

static void write_lines(int fd, unsigned int from, unsigned int to)
{
	for (unsigned int i = from; i < to; i++)
		assert_int_equal(dprintf(fd, "line %06u\n", i), 12);
}

/* For a reader: the present part, from its first line on. Free it. */
static char *text_of(int fd, off_t *first)
{
	struct stat st;
	char *text;

	*first = sl_file_first(fd);
	assert_int_equal(fstat(fd, &st), 0);
	text = calloc(1, (size_t)(st.st_size - *first) + 1);
	assert_non_null(text);
	assert_int_equal(pread(fd, text, (size_t)(st.st_size - *first), *first),
		st.st_size - *first);
	return text;
}

static off_t size_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_size;
}

static uint64_t disk_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* The oldest lines go, the newest stay whole, and one in front says so; the program writes on as if
 * nothing were. */
static void test_log_is_trimmed(void **state)
{
	enum { LOG_MOST = 256 << 10 };
	static const uint64_t ids[] = {9};
	unsigned int written = 0, first_line = 0, before = 0;
	int fd, reading;
	off_t size;

	(void)state;
	store_jobs(ids, 1);
	assert_int_equal(sl_jobs_logs_trim(folder, 9, 0, LOG_MOST), -ENOENT);
	fd = sl_jobs_files_open_log(folder, 9, 0, true);
	reading = sl_jobs_files_open_log(folder, 9, 0, false);
	assert_true(fd >= 0 && reading >= 0);
	write_lines(fd, 0, 1000);
	assert_int_equal(sl_jobs_logs_trim(folder, 9, 0, LOG_MOST), 0);
	assert_int_equal(sl_file_first(reading), 0);
	for (written = 1000; written < 200000; written += 30000) {
		off_t first;
		char *text, *end;

		write_lines(fd, written, written + 30000);
		if (sl_jobs_logs_trim(folder, 9, 0, LOG_MOST) == -EOPNOTSUPP)
			skip();
		assert_true(disk_of(fd) <= LOG_MOST);
		text = text_of(reading, &first);
		assert_true(first > 0);
		assert_true(strlen(text) > LOG_MOST / 2);
		if (strncmp(text, "sluice: the oldest ", 19) != 0 ||
			!strstr(text, " of this output are dropped; 256 KiB are kept"))
			fail_msg("%.200s", text);
		end = strchr(text, '\n');
		assert_int_equal(sscanf(end, "\nline %06u\n", &first_line), 1);
		assert_true(first_line > before);
		before = first_line;
		for (const char *line = end + 1; *line; line += 12, first_line++)
			assert_int_equal(strtoul(line + 5, NULL, 10), first_line);
		assert_int_equal(first_line, written + 30000);
		free(text);
	}
	/* Room that its user has it keep behind the end. */
	assert_int_equal(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 64 * LOG_MOST), 0);
	size = size_of(fd);
	assert_int_equal(sl_jobs_logs_trim(folder, 9, 0, LOG_MOST), 0);
	assert_true(disk_of(fd) <= LOG_MOST);
	assert_int_equal(size_of(fd), size);
	/* 0 is no bound. */
	write_lines(fd, written, written + 50000);
	assert_int_equal(sl_jobs_logs_trim(folder, 9, 0, 0), 0);
	assert_true(disk_of(fd) > LOG_MOST);
	close(fd);
	close(reading);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_damaged_text),
		cmocka_unit_test_setup_teardown(
			test_there_and_back, make_top, remove_top),
		cmocka_unit_test_setup_teardown(test_remove, make_top, remove_top),
		cmocka_unit_test_setup_teardown(test_damaged, make_top, remove_top),
		cmocka_unit_test_setup_teardown(test_no_folder, make_top, remove_top),
		cmocka_unit_test_setup_teardown(
			test_left_by_a_crash, make_top, remove_top),
		cmocka_unit_test_setup_teardown(test_refused, make_top, remove_top),
		cmocka_unit_test_setup_teardown(test_killed, make_top, remove_top),
		cmocka_unit_test_setup_teardown(
			test_files_too_large, make_top, remove_top),
		cmocka_unit_test_setup_teardown(test_disk_full, make_top, remove_top),
		cmocka_unit_test_setup_teardown(test_files, make_top, remove_top),
		cmocka_unit_test_setup_teardown(
			test_files_that_would_hang, make_top, remove_top),
		cmocka_unit_test_setup_teardown(
			test_log_is_trimmed, make_top, remove_top),
	};

	/* Reports of damaged jobs. */
	sl_log_set_level(getenv("VERBOSE") ? SL_LOG_DEBUG : SL_LOG_OFF);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
