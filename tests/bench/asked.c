/*
 * asked - the daemon's loop while it is asked long questions about the history
 *
 * Other threads of the daemon answer such questions, so its loop should not be delayed. Long
 * questions come by the page and by the command line, while a list of one row is asked for again
 * and again.
 */
#include "http.h"

#include "ask.h"

#include <jansson.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"

#define WORKLOADS 1000
#define MINUTES   360
#define ASKERS    3
#define ASK_NS    (4 * SL_S)
#define REPLIES   400

/* Minutes of workloads that have ended, as the daemon would have rolled them up. */
static void fill(const char *path, int64_t now)
{
	sqlite3 *db = NULL;
	char sql[1024], *said = NULL;

	(void)snprintf(sql, sizeof(sql),
		"BEGIN IMMEDIATE; WITH RECURSIVE w(n) AS (SELECT 1 UNION ALL SELECT n + "
		"1 FROM w WHERE n < %d) INSERT INTO workloads (id, number, name, uid, "
		"user, project, program, begun_ms, ended_ms) SELECT 1000000 + n, 1000000 "
		"+ n, 'past-' || n, n %% 40, 'user' || (n %% 40), 'past', 'past', %lld, "
		"%lld FROM w; WITH RECURSIVE m(t) AS (SELECT %lld UNION ALL SELECT t + "
		"60 FROM m WHERE t + 60 < %lld), w(n) AS (SELECT 1 UNION ALL SELECT n + "
		"1 FROM w WHERE n < %d) INSERT INTO minutes (t, gpu, workload, span, "
		"request, resident, allocated_us) SELECT t, 1, 1000000 + n, 60, n * 60, "
		"n * 600, 15000 FROM m CROSS JOIN w; COMMIT",
		WORKLOADS, (long long)(now - MINUTES * 60ll) * 1000,
		(long long)now * 1000, (long long)(now - MINUTES * 60ll), (long long)now,
		WORKLOADS);
	bench_require(sqlite3_open(path, &db) == SQLITE_OK &&
			      sqlite3_busy_timeout(db, 20000) == SQLITE_OK &&
			      sqlite3_exec(db, sql, NULL, NULL, &said) == SQLITE_OK,
		"%s: %s", path, said ? said : sqlite3_errmsg(db));
	(void)sqlite3_close(db);
}

/* --- the questions ---------------------------------------------------------------------------- */

static void ask_page(const char *target, char *text)
{
	sl_cleanup(sl_closep) int fd = bench_http_ask(getenv("SL_BENCH_PAGE"), target);
	ssize_t got = bench_http_read(fd, text);

	bench_require(got > 10000 && strncmp(text + strlen("HTTP/1.x"), " 200 ", 5) == 0,
		"the page did not answer: %.200s", got > 0 ? text : "nothing");
}

static void ask_control(int fd, int64_t now)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_HISTORY);
	msg.history.what = SL_HISTORY_USAGE;
	msg.history.by = SL_HISTORY_BY_WORKLOAD;
	msg.history.step_s = 300;
	msg.history.from_ms = (uint64_t)(now - MINUTES * 60ll) * 1000;
	msg.history.to_ms = (uint64_t)now * 1000;
	bench_send(fd, &msg);
	bench_receive(fd, SL_MSG_HISTORY_FILE, &msg);
	bench_require(msg.history_file.bytes > 10000, "the history said nothing");
}

/* Until it is killed. */
static void asker_main(int index, int64_t now, uint32_t *answers, char *text)
{
	static const uint8_t no_token[SL_WIRE_TOKEN_BYTES];
	sl_cleanup(sl_closep) int fd = bench_dial(SL_ROLE_CONTROL, no_token, NULL);
	char target[192];

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)snprintf(target, sizeof(target),
		"/api/history?by=user&step_s=60&from_ms=%lld&to_ms=%lld",
		(long long)(now - MINUTES * 60ll) * 1000, (long long)now * 1000);
	for (;;) {
		if (index == 0)
			ask_control(fd, now);
		else
			ask_page(target, text);
		(void)__atomic_add_fetch(answers, 1, __ATOMIC_RELAXED);
	}
}

/* --- their effect on the loop ----------------------------------------------------------------- */

static void time_replies(int control, const char *variant)
{
	struct bench_samples *took = bench_samples_new();
	struct sl_msg_status_row status;

	for (int i = 0; i < REPLIES; i++) {
		sl_ns begin = sl_clock_now();

		bench_status(control, &status);
		bench_samples_add(took, sl_clock_now() - begin);
		sl_clock_sleep(ASK_NS / REPLIES);
	}
	bench_emit(BENCH_HISTORY_REPLY, variant,
		(double)bench_quantile(took, 990) / (double)SL_MS);
	free(took);
}

static void emit_turns(void)
{
	static const char *const kinds[] = {"control", "history", "accept"};
	json_t *json = bench_dump(), *turns = json_object_get(json, "long_turns");

	for (size_t i = 0; i < SL_ARRAY_LEN(kinds); i++) {
		char key[32];
		json_t *value;

		(void)snprintf(key, sizeof(key), "%s_us", kinds[i]);
		value = json_object_get(turns, key);
		bench_require(value, "the dump has no %s", key);
		bench_emit_turn(BENCH_HISTORY_TURN, kinds[i], value);
	}
	json_decref(json);
}

void bench_asked(int control, char *text)
{
	const char *path = getenv("SL_BENCH_HISTORY");
	int64_t now = (int64_t)time(NULL) / 60 * 60 - 60;
	uint32_t *answers = mmap(NULL, sizeof(*answers), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pids[ASKERS];

	bench_require(path, "SL_BENCH_HISTORY is not set: the daemon's history.db");
	bench_require(answers != MAP_FAILED, "out of memory");
	fill(path, now);
	time_replies(control, NULL);
	for (int i = 0; i < ASKERS; i++) {
		pids[i] = fork();
		bench_require(pids[i] >= 0, "no process");
		if (pids[i] == 0)
			asker_main(i, now, answers, text);
	}
	time_replies(control, "asked");
	bench_require(__atomic_load_n(answers, __ATOMIC_RELAXED) > 0,
		"the history has not answered anybody");
	for (int i = 0; i < ASKERS; i++) {
		(void)kill(pids[i], SIGKILL);
		bench_require(waitpid(pids[i], NULL, 0) == pids[i], "no child");
	}
	emit_turns();
	(void)munmap(answers, sizeof(*answers));
}
