/*
 * Orders to move processes, with a stub in the place of sluice-move: what is answered, how often an
 * order is sent, and what is left of helpers.
 */
#include "../../base/test.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "daemon/away/away.h"
#include "play.h"

#define LONGEST (20 * SL_S)

static char folder[] = "/tmp/sluice-away.XXXXXX";
static sd_event *loop;
static struct sl_away *away;
static struct sl_away_answer answers[PLAY_CROWD_SIZE + 1];
static size_t answered;
static bool inside;
static uint64_t orders;

/* --- The stage. --- */

static void done(void *context, const struct sl_away_answer *answer)
{
	assert_ptr_equal(context, answers);
	assert_false(inside);
	assert_true(answered < SL_ARRAY_LEN(answers));
	answers[answered++] = *answer;
}

/* All orders have these. */
static uint32_t pairs;
static struct sl_move_pair pair[2];
static uint64_t capabilities;

static uint64_t order_of(uid_t uid, int pid, bool back)
{
	struct sl_away_order order = {.id = ++orders,
		.uid = uid,
		.gid = getegid(),
		.capabilities = capabilities,
		.pid = pid,
		.back = back,
		.lock_ms = 1,
		.pairs = pairs};

	memcpy(order.pair, pair, sizeof(pair));

	inside = true;
	assert_int_equal(sl_away_order(away, &order), 0);
	inside = false;
	return order.id;
}

static uint64_t order(int pid, bool back)
{
	return order_of(geteuid(), pid, back);
}

static void turn(void)
{
	assert_true(sd_event_run(loop, 10000) >= 0);
}

static void wait_for_answers(size_t count)
{
	sl_ns end = sl_clock_now() + LONGEST;

	while (answered < count && sl_clock_now() < end)
		turn();
	assert_int_equal(answered, count);
}

/* The outcome of a single order. */
static enum sl_move_outcome outcome_of(int pid, bool back)
{
	uint64_t id = order(pid, back);

	wait_for_answers(1);
	answered = 0;
	assert_int_equal(answers[0].id, id);
	return answers[0].outcome;
}

static void path_of(const char *name, char path[64])
{
	(void)snprintf(path, 64, "%s/%s", folder, name);
}

static void put(const char *name)
{
	char path[64];

	path_of(name, path);
	assert_int_equal(sl_file_replace(path, "", 0, false), 0);
}

static void drop(const char *name)
{
	char path[64];

	path_of(name, path);
	(void)unlink(path);
}

/* How often the log has this line, or a line of this word. */
static unsigned int logged(const char *line)
{
	char path[64], *text = NULL, *rest = NULL;
	unsigned int count = 0;

	path_of("log", path);
	if (sl_file_read(path, 1 << 20, &text, NULL) < 0)
		return 0;
	for (char *at = strtok_r(text, "\n", &rest); at; at = strtok_r(NULL, "\n", &rest))
		count += strcmp(at, line) == 0 ||
			 (!strchr(line, ' ') && strncmp(at, line, strlen(line)) == 0);
	free(text);
	return count;
}

static bool has_child(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static void wait_for_no_child(void)
{
	sl_ns end = sl_clock_now() + LONGEST;

	while (has_child() && sl_clock_now() < end)
		turn();
	assert_false(has_child());
}

static unsigned int open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int count = 0;

	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static unsigned int fds_before;

static int set_up(void **state)
{
	(void)state;
	drop("log");
	drop("died");
	answered = 0;
	fds_before = open_fds();
	assert_true(sd_event_new(&loop) >= 0);
	assert_int_equal(sl_away_open(loop, done, answers, &away), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	away = sl_away_close(away);
	loop = sd_event_unref(loop);
	/* What was killed at last. */
	while (waitpid(-1, NULL, 0) > 0)
		;
	assert_int_equal(open_fds(), fds_before);
	return 0;
}

/* --- Answers. --- */

static void test_done(void **state)
{
	char user[64];

	(void)state;
	assert_int_equal(setenv("SECRET", "1", 1), 0);
	assert_int_equal(setenv("LD_LIBRARY_PATH", folder, 1), 0);
	assert_int_equal(outcome_of(PLAY_DONE, false), SL_MOVE_DONE);
	assert_int_equal(answers[0].span, 5);
	assert_int_equal(answers[0].cuda_result, 0);
	assert_int_equal(answers[0].at, SL_MOVE_NO_CALL);
	assert_int_equal(outcome_of(PLAY_DONE, true), SL_MOVE_DONE);
	assert_int_equal(logged("away 1"), 1);
	assert_int_equal(logged("back 1"), 1);
	/* One helper, of this user, that knows nothing else of the daemon. */
	(void)snprintf(user, sizeof(user), "start %u %u 0", geteuid(), getegid());
	assert_int_equal(logged(user), 1);
	assert_int_equal(logged("start"), 1);
	assert_int_equal(logged("variable SLUICE_SOFTGPU"), 1);
	assert_int_equal(logged("variable LD_LIBRARY_PATH"), 1);
	assert_int_equal(logged("variable SECRET"), 0);
	assert_int_equal(logged("variable PATH"), 0);
	assert_int_equal(unsetenv("SECRET"), 0);
}

/* A helper may do what the processes may that it moves. */
static void test_capabilities(void **state)
{
	char user[64];

	(void)state;
	for (capabilities = 5; capabilities > 3; capabilities--) {
		assert_int_equal(outcome_of(PLAY_DONE, false), SL_MOVE_DONE);
		assert_int_equal(outcome_of(PLAY_DONE, true), SL_MOVE_DONE);
		(void)snprintf(user, sizeof(user), "start %u %u %d", geteuid(), getegid(),
			(int)capabilities);
		assert_int_equal(logged(user), 1);
	}
	capabilities = 0;
	assert_int_equal(logged("start"), 2);
}

static void test_refused(void **state)
{
	(void)state;
	assert_int_equal(outcome_of(PLAY_REFUSED, false), SL_MOVE_REFUSED);
	assert_int_equal(answers[0].cuda_result, 600);
	assert_int_equal(answers[0].at, SL_MOVE_CALL_LOCK);
	assert_string_equal(sl_away_call_name(answers[0].at), "cuCheckpointProcessLock");
	assert_int_equal(outcome_of(PLAY_UNABLE, false), SL_MOVE_UNABLE);
	assert_int_equal(answers[0].cuda_result, 100);
	assert_string_equal(sl_away_call_name(answers[0].at), "cuInit");
	assert_int_equal(logged("start"), 1);
}

/* An AWAY that could not be undone is undone once more. */
static void test_stuck(void **state)
{
	(void)state;
	assert_int_equal(outcome_of(PLAY_STUCK, false), SL_MOVE_REFUSED);
	assert_int_equal(answers[0].cuda_result, 700);
	assert_int_equal(answers[0].at, SL_MOVE_CALL_UNLOCK);
	assert_int_equal(logged("back 7"), 1);
	assert_int_equal(outcome_of(PLAY_STUCK_BACK, false), SL_MOVE_AWAY_STILL);
	assert_int_equal(logged("back 8"), 1);
	assert_int_equal(outcome_of(PLAY_STUCK_BACK, true), SL_MOVE_AWAY_STILL);
	assert_int_equal(logged("back 8"), 2);
}

/* Of a BACK alone, and whenever it is sent. What undoes an AWAY leads to where it was. */
static void test_pairs(void **state)
{
	(void)state;
	pairs = 2;
	pair[0].from[15] = 1;
	pair[0].to[15] = 4;
	pair[1].from[15] = pair[1].to[15] = 2;
	assert_int_equal(outcome_of(PLAY_DONE, true), SL_MOVE_DONE);
	assert_int_equal(logged("pair 1-4"), 1);
	assert_int_equal(logged("pair 2-2"), 1);
	assert_int_equal(outcome_of(PLAY_DIE_ONCE, true), SL_MOVE_DONE);
	assert_int_equal(logged("pair 1-4"), 3);
	assert_int_equal(outcome_of(PLAY_STUCK, false), SL_MOVE_REFUSED);
	assert_int_equal(logged("back 7"), 1);
	pairs = 0;
	assert_int_equal(outcome_of(PLAY_DONE, true), SL_MOVE_DONE);
	assert_int_equal(logged("pair"), 6);
}

/* --- Deaths. --- */

static void test_death(void **state)
{
	static const struct {
		const char *name;
		int pid;
		bool back;
		enum sl_move_outcome outcome;
		unsigned int aways, backs;
	} rows[] = {
		{"an AWAY, once", PLAY_DIE_ONCE, false, SL_MOVE_DONE, 2, 0},
		{"a BACK, once", PLAY_DIE_ONCE, true, SL_MOVE_DONE, 0, 2},
		{"an AWAY, twice", PLAY_DIE_AWAY, false, SL_MOVE_REFUSED, 2, 1},
		{"an AWAY, each time", PLAY_DIE, false, SL_MOVE_AWAY_STILL, 2, 1},
		{"a BACK, each time", PLAY_DIE, true, SL_MOVE_AWAY_STILL, 0, 2},
	};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		drop("log");
		drop("died");
		assert_row_u64(rows[i].name, outcome_of(rows[i].pid, rows[i].back),
			rows[i].outcome);
		assert_row_u64(rows[i].name, logged("away"), rows[i].aways);
		assert_row_u64(rows[i].name, logged("back"), rows[i].backs);
	}
	/* The others of a helper that died go on. */
	drop("died");
	(void)order(PLAY_DONE, false);
	(void)order(PLAY_DIE_ONCE, false);
	(void)order(PLAY_REFUSED, false);
	wait_for_answers(3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(answers[i].outcome,
			answers[i].id == orders ? SL_MOVE_REFUSED : SL_MOVE_DONE);
}

static void test_hang(void **state)
{
	(void)state;
	sl_away_set_bounds(away, 200 * SL_MS, LONGEST);
	assert_int_equal(outcome_of(PLAY_HANG_ONCE, false), SL_MOVE_DONE);
	assert_int_equal(logged("start"), 2);
	assert_int_equal(logged("away"), 2);
}

static void test_nonsense(void **state)
{
	(void)state;
	for (int pid = PLAY_SHORT; pid <= PLAY_READY_AGAIN; pid++) {
		char name[32];

		drop("log");
		drop("died");
		(void)snprintf(name, sizeof(name), "play %d", pid);
		assert_row_u64(name, outcome_of(pid, false), SL_MOVE_DONE);
		assert_row_u64(name, logged("away"), 2);
	}
	/* Of two answers the first counts, and the second is nonsense. */
	drop("log");
	assert_int_equal(outcome_of(PLAY_TWICE, false), SL_MOVE_DONE);
	wait_for_no_child();
	assert_int_equal(outcome_of(PLAY_DONE, false), SL_MOVE_DONE);
	assert_int_equal(logged("away 1"), 1);
	assert_int_equal(logged("start"), 1);
}

/* --- Helpers. --- */

static void test_never_ready(void **state)
{
	(void)state;
	put("never-ready");
	assert_int_equal(outcome_of(PLAY_DONE, false), SL_MOVE_UNABLE);
	assert_int_equal(outcome_of(PLAY_DONE, true), SL_MOVE_UNABLE);
	assert_int_equal(logged("start"), 2);
	drop("never-ready");
	sl_away_set_bounds(away, 200 * SL_MS, LONGEST);
	put("slow-start");
	assert_int_equal(outcome_of(PLAY_DONE, false), SL_MOVE_UNABLE);
	drop("slow-start");
	assert_int_equal(logged("start"), 3);
	assert_int_equal(logged("away"), 0);
}

static void test_no_program(void **state)
{
	char *path = strdup(getenv("SLUICE_MOVE"));

	(void)state;
	assert_int_equal(setenv("SLUICE_MOVE", "/nonexistent/move", 1), 0);
	assert_int_equal(outcome_of(PLAY_DONE, false), SL_MOVE_UNABLE);
	assert_int_equal(setenv("SLUICE_MOVE", path, 1), 0);
	assert_int_equal(outcome_of(PLAY_DONE, false), SL_MOVE_DONE);
	free(path);
}

static void test_idle(void **state)
{
	(void)state;
	sl_away_set_bounds(away, LONGEST, 50 * SL_MS);
	assert_int_equal(outcome_of(PLAY_DONE, false), SL_MOVE_DONE);
	assert_true(has_child());
	wait_for_no_child();
	assert_int_equal(outcome_of(PLAY_DONE, false), SL_MOVE_DONE);
	assert_int_equal(logged("start"), 2);
}

/* No more than a helper takes at once, and all of them in the end. */
static void test_many(void **state)
{
	bool seen[PLAY_CROWD_SIZE] = {false};
	uint64_t first = orders + 1;

	(void)state;
	for (int i = 0; i < PLAY_CROWD_SIZE; i++)
		(void)order(PLAY_CROWD + i, false);
	wait_for_answers(PLAY_CROWD_SIZE);
	for (int i = 0; i < PLAY_CROWD_SIZE; i++) {
		uint64_t which = answers[i].id - first;

		assert_int_equal(answers[i].outcome, SL_MOVE_DONE);
		assert_true(which < PLAY_CROWD_SIZE && !seen[which]);
		seen[which] = true;
	}
	assert_int_equal(logged("away"), PLAY_CROWD_SIZE);
}

/* Orders of one process wait for each other. */
static void test_same_process(void **state)
{
	uint64_t first = order(PLAY_ALONE, false), second = order(PLAY_ALONE, true);

	(void)state;
	wait_for_answers(2);
	assert_int_equal(answers[0].id, first);
	assert_int_equal(answers[0].outcome, SL_MOVE_DONE);
	assert_int_equal(answers[1].id, second);
	assert_int_equal(answers[1].outcome, SL_MOVE_DONE);
}

static void test_close(void **state)
{
	sl_ns end = sl_clock_now() + LONGEST;

	(void)state;
	(void)order(PLAY_HANG_ONCE, false);
	(void)order(PLAY_DONE, true);
	while (logged("away") == 0 && sl_clock_now() < end) {
		answered = 0;
		(void)sd_event_run(loop, 50000);
	}
	assert_int_equal(logged("away"), 1);
	/* One that is answered, but not told yet. */
	assert_int_equal(setenv("SLUICE_MOVE", "/nonexistent/move", 1), 0);
	(void)order_of(geteuid() + 1, PLAY_DONE, false);
	assert_int_equal(setenv("SLUICE_MOVE", getenv("STUB"), 1), 0);
	answered = 0;
	away = sl_away_close(away);
	/* The helper ends; else this waits for ever. */
	while (waitpid(-1, NULL, 0) > 0)
		;
	assert_int_equal(sd_event_run(loop, 0), 0);
	assert_int_equal(answered, 0);
}

/* Each user has a helper; a daemon that is not root has one user. */
static void test_users(void **state)
{
	pid_t child;
	int status = 0;

	(void)state;
	if (geteuid() == 0) {
		(void)order_of(65534, PLAY_DONE, false);
		(void)order(PLAY_DONE, false);
		wait_for_answers(2);
		assert_int_equal(answers[0].outcome, SL_MOVE_DONE);
		assert_int_equal(answers[1].outcome, SL_MOVE_DONE);
		assert_int_equal(logged("start"), 2);
		assert_int_equal(logged("start 65534 0 0"), 1);
	}
	child = fork();
	if (child == 0) {
		if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
			_exit(3);
		answered = 0;
		/* A loop is of one process. */
		if (sd_event_new(&loop) < 0 ||
			sl_away_open(loop, done, answers, &away) < 0)
			_exit(3);
		(void)order_of(1, PLAY_DONE, false);
		for (int i = 0; i < 10 && answered == 0; i++)
			(void)sd_event_run(loop, 1000);
		_exit(answered == 1 && answers[0].outcome == SL_MOVE_UNABLE ? 0 : 4);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* --- The test. --- */

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) && chmod(folder, 0777) == 0 &&
			       setenv("SLUICE_SOFTGPU", folder, 1) == 0 &&
			       setenv("SLUICE_MOVE", getenv("STUB"), 1) == 0
		       ? 0
		       : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	drop("log");
	drop("died");
	return rmdir(folder);
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		ROW(test_done),
		ROW(test_capabilities),
		ROW(test_refused),
		ROW(test_stuck),
		ROW(test_pairs),
		ROW(test_death),
		ROW(test_hang),
		ROW(test_nonsense),
		ROW(test_never_ready),
		ROW(test_no_program),
		ROW(test_idle),
		ROW(test_many),
		ROW(test_same_process),
		ROW(test_close),
		ROW(test_users),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
