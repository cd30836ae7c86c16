/*
 * ask - one function per request of the bench to the daemon
 *
 * These functions do not use the command line's connection code. The bench also speaks as a client,
 * and its times should contain as little of Sluice's own code as possible.
 */
#include "ask.h"

#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/file.h"
#include "base/paths.h"

#define LIMIT_S 30

void bench_send(int fd, const union sl_msg *msg)
{
	int r = sl_wire_send(fd, msg);

	bench_require(
		r == SL_WIRE_OK, "%s was not sent: %d", sl_wire_name(msg->head.type), r);
}

/* Reads any message; answers a question for our identity; dies on a broken message and on
 * REJECT. */
static void receive_any(int fd, union sl_msg *msg)
{
	struct sl_error err = {{0}};
	int r = sl_wire_recv(fd, SL_FROM_DAEMON, msg, &err);

	bench_require(r == SL_WIRE_OK, "no answer from the daemon: %d %s", r, err.text);
	bench_require(msg->head.type != SL_MSG_REJECT, "rejected: %s", msg->reject.text);
	if (msg->head.type == SL_MSG_CHALLENGE) {
		union sl_msg proof;

		sl_wire_proof(&proof, msg);
		bench_send(fd, &proof);
	}
}

void bench_receive(int fd, enum sl_msg_type type, union sl_msg *msg)
{
	do
		receive_any(fd, msg);
	while (msg->head.type != type);
}

int bench_dial(enum sl_role role, const uint8_t token[SL_WIRE_TOKEN_BYTES],
	struct sl_msg_welcome *welcome)
{
	struct timeval limit = {.tv_sec = LIMIT_S};
	char path[SL_SOCKET_PATH_MAX];
	struct sl_error err = {{0}};
	union sl_msg msg;
	int fd;

	bench_require(
		sl_paths_socket(path, sizeof(path), &err) == SL_PATHS_OK, "%s", err.text);
	fd = sl_wire_connect(path, &err);
	bench_require(fd >= 0, "%s", err.text);
	bench_require(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0,
		"no time limit");
	sl_wire_init(&msg, SL_MSG_HELLO);
	msg.hello.role = role;
	memcpy(msg.hello.token, token, SL_WIRE_TOKEN_BYTES);
	sl_wire_str(msg.hello.version, sizeof(msg.hello.version), SL_VERSION);
	bench_send(fd, &msg);
	bench_receive(fd, SL_MSG_WELCOME, &msg);
	if (welcome)
		*welcome = msg.welcome;
	if (role == SL_ROLE_CLIENT) {
		union sl_msg gpu;

		for (uint32_t i = 0; i < msg.welcome.gpu_count; i++)
			bench_receive(fd, SL_MSG_GPU, &gpu);
	}
	return fd;
}

void bench_reported(int fd)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_REPORTED);
	bench_send(fd, &msg);
}

void bench_ask(int fd, uint64_t ask, uint64_t bytes)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_ASK);
	msg.ask.ask = ask;
	msg.ask.bytes = bytes;
	bench_send(fd, &msg);
}

void bench_collect(int fd, uint64_t ask, uint64_t used_bytes)
{
	union sl_msg grant, msg;

	bench_receive(fd, SL_MSG_GRANT, &grant);
	bench_require(grant.grant.ask == ask, "another demand was granted");
	sl_wire_init(&msg, SL_MSG_COMMIT);
	msg.commit.epoch = grant.grant.epoch;
	msg.commit.used_bytes = used_bytes;
	bench_send(fd, &msg);
}

void bench_register(int fd, const char *name, uint64_t limit_bytes, int32_t priority,
	uint8_t token[SL_WIRE_TOKEN_BYTES])
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_RUN);
	msg.run.request_kind = SL_AMOUNT_BYTES;
	msg.run.limit_kind = SL_AMOUNT_BYTES;
	msg.run.limit_value = limit_bytes;
	msg.run.gpu_count = 1;
	msg.run.priority_biased = SL_PRIORITY_BIAS + (uint32_t)priority;
	sl_wire_str(msg.run.name, sizeof(msg.run.name), name);
	sl_wire_str(msg.run.project, sizeof(msg.run.project), "default");
	sl_wire_str(msg.run.command, sizeof(msg.run.command), "bench");
	bench_send(fd, &msg);
	bench_receive(fd, SL_MSG_RUN_REPLY, &msg);
	bench_require(
		msg.run_reply.ok, "workload %s refused: %s", name, msg.run_reply.text);
	memcpy(token, msg.run_reply.token, SL_WIRE_TOKEN_BYTES);
}

/* The first row for which want() is true, or, without want, the first. All rows are read. */
static bool list(int fd, enum sl_list_what what, const char *name, union sl_msg *out)
{
	union sl_msg msg;
	bool found = false;

	sl_wire_init(&msg, SL_MSG_LIST);
	msg.list.what = what;
	bench_send(fd, &msg);
	for (;;) {
		receive_any(fd, &msg);
		if (msg.head.type == SL_MSG_LIST_END)
			return found;
		if (found || (name && strcmp(msg.use_row.name, name) != 0))
			continue;
		*out = msg;
		found = true;
	}
}

void bench_status(int fd, struct sl_msg_status_row *out)
{
	union sl_msg msg;

	bench_require(list(fd, SL_LIST_STATUS, NULL, &msg), "the daemon has no status");
	*out = msg.status_row;
}

void bench_gpu(int fd, struct sl_msg_gpu_row *out)
{
	union sl_msg msg;

	bench_require(list(fd, SL_LIST_GPUS, NULL, &msg), "the daemon manages no GPU");
	*out = msg.gpu_row;
}

bool bench_use(int fd, const char *name, struct sl_msg_use_row *out)
{
	union sl_msg msg;

	if (!list(fd, SL_LIST_USES, name, &msg))
		return false;
	*out = msg.use_row;
	return true;
}

/* Often enough for what takes a second, and rarely enough for the daemon. */
#define LOOK_NS      (2 * SL_MS)
#define MOVE_LIMIT_S 60

static bool is_parked(int fd, const char *name)
{
	struct sl_msg_use_row row;

	bench_require(bench_use(fd, name, &row), "%s is no workload", name);
	return row.residency == SL_WIRE_PARKED && row.backing_bytes <= row.evicted_bytes;
}

static bool is_resident(int fd, const char *name)
{
	struct sl_msg_use_row row;

	bench_require(bench_use(fd, name, &row), "%s is no workload", name);
	return !sl_wire_gave_up_request(row.residency) && !row.evicted_bytes &&
	       !row.returning_bytes;
}

static void wait_until(int fd, const char *name, bool (*there)(int fd, const char *name))
{
	sl_ns begin = sl_clock_now();

	while (!there(fd, name)) {
		bench_require(sl_clock_now() - begin < MOVE_LIMIT_S * SL_S,
			"%s does not get there", name);
		sl_clock_sleep(LOOK_NS);
	}
}

static void order_park(int fd, const char *name, bool parked)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_PARK);
	msg.park.parked = parked;
	sl_wire_str(msg.park.name, sizeof(msg.park.name), name);
	bench_send(fd, &msg);
	bench_receive(fd, SL_MSG_PARK_REPLY, &msg);
	bench_require(msg.park_reply.ok, "%s: %s", name, msg.park_reply.text);
}

sl_ns bench_park(int fd, const char *name, bool parked)
{
	sl_ns begin = sl_clock_now();

	order_park(fd, name, parked);
	wait_until(fd, name, parked ? is_parked : is_resident);
	return sl_clock_now() - begin;
}

sl_ns bench_move(int fd, const char *name, uint32_t gpu)
{
	sl_ns begin = sl_clock_now();
	struct sl_msg_use_row row;
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_MOVE);
	msg.move.gpus = 1u << gpu;
	sl_wire_str(msg.move.name, sizeof(msg.move.name), name);
	bench_send(fd, &msg);
	bench_receive(fd, SL_MSG_PARK_REPLY, &msg);
	bench_require(msg.park_reply.ok, "%s: %s", name, msg.park_reply.text);
	wait_until(fd, name, is_resident);
	bench_require(bench_use(fd, name, &row) && row.gpu == gpu, "%s stays", name);
	return sl_clock_now() - begin;
}

void bench_resume(int fd, const char *name)
{
	order_park(fd, name, false);
}

void bench_until_resident(int fd, const char *name)
{
	wait_until(fd, name, is_resident);
}

json_t *bench_dump(void)
{
	sl_cleanup(sl_closep) int fd = bench_dial(
		SL_ROLE_CONTROL, (const uint8_t[SL_WIRE_TOKEN_BYTES]){0}, NULL);
	char *text = NULL;
	size_t size = 0;
	union sl_msg msg;
	json_t *json;

	sl_wire_init(&msg, SL_MSG_DUMP);
	bench_send(fd, &msg);
	for (;;) {
		char *grown;

		bench_require(sl_wire_recv(fd, SL_FROM_DAEMON, &msg, NULL) == SL_WIRE_OK,
			"no dump");
		if (msg.head.type != SL_MSG_DUMP_ROW)
			break;
		grown = realloc(text, size + msg.dump_row.size);
		bench_require(grown, "out of memory");
		text = grown;
		memcpy(text + size, msg.dump_row.text, msg.dump_row.size);
		size += msg.dump_row.size;
	}
	json = json_loadb(text, size, 0, NULL);
	bench_require(json, "the dump is no JSON");
	free(text);
	return json;
}

void bench_emit_turn(enum bench_row_id id, const char *variant, const json_t *us)
{
	json_int_t value = json_integer_value(us);

	/* A kind with too few turns has 0 there, which would keep every budget. */
	bench_emit(id, variant, value ? (double)value / 1000 : NAN);
}
