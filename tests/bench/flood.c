/*
 * flood - how long another client's grant takes beside peers that flood the daemon
 *
 * For each kind of tests/system/floods.c four flooding processes run beside one client that asks
 * for memory, gets it, and gives it back. The four run only on an idle core (SCHED_IDLE), so that
 * the figure shows how long the daemon is busy with them, not how the kernel shares cores. Variant
 * "nobody" is the client without floods, in the same run.
 */
#include "bench.h"

#include "ask.h"
#include "http.h"
#include "../system/floods.h"

#include <jansson.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

#define FLOODERS  4
#define ROUNDS    1000
#define ASK_BYTES (2 * SL_MIB)

static const uint8_t no_token[SL_WIRE_TOKEN_BYTES];

static pid_t start(const char *name)
{
	const char *path = getenv("SLUICE_SOCKET");
	pid_t pid;

	bench_require(path, "SLUICE_SOCKET is not set");
	pid = fork();
	bench_require(pid >= 0, "no process");
	if (pid == 0) {
		struct sched_param param = {0};

		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)!sched_setscheduler(0, SCHED_IDLE, &param);
		floods_run(path, name);
		_exit(1);
	}
	return pid;
}

static sl_ns one_round(int client, uint64_t ask)
{
	sl_ns begin = sl_clock_now(), end;
	union sl_msg msg, answer;

	bench_ask(client, ask, ASK_BYTES);
	bench_receive(client, SL_MSG_GRANT, &answer);
	end = sl_clock_now();
	sl_wire_init(&msg, SL_MSG_COMMIT);
	msg.commit.epoch = answer.grant.epoch;
	msg.commit.used_bytes = ASK_BYTES;
	bench_send(client, &msg);
	sl_wire_init(&msg, SL_MSG_FREED);
	msg.freed.bytes = ASK_BYTES;
	bench_send(client, &msg);
	return end - begin;
}

static void measure(int client, const char *name)
{
	static uint64_t ask;
	struct bench_samples *samples = bench_samples_new();

	for (int i = 0; i < ROUNDS; i++) {
		bench_samples_add(samples, one_round(client, ++ask));
		sl_clock_sleep(SL_MS);
	}
	bench_emit(BENCH_FLOOD_MEDIAN, name,
		(double)bench_quantile(samples, 500) / (double)SL_MS);
	bench_emit(BENCH_FLOOD_P99, name,
		(double)bench_quantile(samples, 990) / (double)SL_MS);
	free(samples);
}

static void measure_beside(int client, const char *name)
{
	pid_t flooders[FLOODERS];

	for (int i = 0; i < FLOODERS; i++)
		flooders[i] = start(name);
	sl_clock_sleep(20 * SL_MS);
	measure(client, name);
	for (int i = 0; i < FLOODERS; i++) {
		(void)kill(flooders[i], SIGKILL);
		bench_require(waitpid(flooders[i], NULL, 0) == flooders[i], "no child");
	}
}

/* A peer that asks for the page's state again and again, and for no more than it gives. */
static pid_t start_reader(const char *path)
{
	static char text[BENCH_HTTP_MAX];
	pid_t pid = fork();

	bench_require(pid >= 0, "no process");
	if (pid != 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		int fd = bench_http_ask(path, "/api/state");

		(void)bench_http_read(fd, text);
		(void)close(fd);
	}
}

static void measure_beside_page(int client)
{
	const char *path = getenv("SL_BENCH_PAGE");
	pid_t readers[FLOODERS];

	bench_require(path, "SL_BENCH_PAGE is not set: the path of the page's socket");
	for (int i = 0; i < FLOODERS; i++)
		readers[i] = start_reader(path);
	sl_clock_sleep(20 * SL_MS);
	measure(client, "page");
	for (int i = 0; i < FLOODERS; i++) {
		(void)kill(readers[i], SIGKILL);
		bench_require(waitpid(readers[i], NULL, 0) == readers[i], "no child");
	}
}

static void emit_each(const json_t *turns, enum bench_row_id row)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)turns, key, value)
	{
		char name[32];

		(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(key, "_"), key);
		bench_emit_turn(row, name, value);
	}
}

/* What kept the daemon's loop longest since it started, by its own count of its thread's time. */
static void emit_turns(void)
{
	json_t *json = bench_dump();

	emit_each(json_object_get(json, "longest_turns"), BENCH_FLOOD_LONGEST);
	emit_each(json_object_get(json, "long_turns"), BENCH_FLOOD_TURN);
	json_decref(json);
}

int bench_part_flood(int argc, char **argv)
{
	sl_cleanup(sl_closep) int control = bench_dial(SL_ROLE_CONTROL, no_token, NULL);
	sl_cleanup(sl_closep) int client = -1;
	uint8_t token[SL_WIRE_TOKEN_BYTES];

	bench_register(control, "bench-flooded", 64 * SL_MIB, 0, token);
	client = bench_dial(SL_ROLE_CLIENT, token, NULL);
	bench_reported(client);
	measure(client, "nobody");
	for (size_t i = 0; floods_names[i]; i++)
		measure_beside(client, floods_names[i]);
	measure_beside_page(client);
	emit_turns();
	return 0;
}
