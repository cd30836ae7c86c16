/*
 * floods - one function per kind
 *
 * Whenever the daemon drops a connection a new one is made. If the daemon is full or absent the
 * next attempt follows at once, which is a flood of its own.
 */
#include "floods.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "policy/node.h"
#include "wire/wire.h"

/* Says HELLO; -1 if the daemon will not have us. */
static int greet(const char *path, enum sl_role role, const uint8_t *token)
{
	int fd = sl_wire_connect(path, NULL);
	union sl_msg msg, question;

	if (fd < 0)
		return -1;
	sl_wire_init(&msg, SL_MSG_HELLO);
	msg.hello.role = role;
	if (token)
		memcpy(msg.hello.token, token, sizeof(msg.hello.token));
	while (sl_wire_send(fd, &msg) == SL_WIRE_OK &&
		sl_wire_recv(fd, SL_FROM_DAEMON, &question, NULL) == SL_WIRE_OK) {
		if (question.head.type == SL_MSG_WELCOME)
			return fd;
		if (question.head.type != SL_MSG_CHALLENGE)
			break;
		sl_wire_proof(&msg, &question);
	}
	(void)close(fd);
	return -1;
}

static void hang_up(int fd)
{
	if (fd >= 0)
		(void)close(fd);
}

/* Takes everything that is there; false if the other end is gone. */
static bool swallow(int fd)
{
	char buf[4096];
	ssize_t n;

	while ((n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		;
	return n < 0;
}

/* The same question again and again, whether or not the answer was read. */
static void question(const char *path, const union sl_msg *msg, bool reads)
{
	for (;;) {
		int fd = greet(path, SL_ROLE_CONTROL, NULL);

		while (fd >= 0 && (!reads || swallow(fd)) &&
			sl_wire_send(fd, msg) == SL_WIRE_OK)
			;
		hang_up(fd);
	}
}

static void lists(const char *path)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_LIST);
	msg.list.what = SL_LIST_USES;
	question(path, &msg, true);
}

static void processes(const char *path)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_LIST);
	msg.list.what = SL_LIST_CLIENTS;
	question(path, &msg, true);
}

static void events(const char *path)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_EVENTS);
	sl_wire_str(msg.events.name, sizeof(msg.events.name), "nobody-of-this-name");
	question(path, &msg, true);
}

static void whys(const char *path)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_WHY);
	msg.why.workload = 1;
	question(path, &msg, true);
}

static void dumps(const char *path)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_DUMP);
	question(path, &msg, true);
}

/* Asks for much and reads nothing. */
static void deaf(const char *path)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_DUMP);
	question(path, &msg, false);
}

/* Many peers follow the events, and do not read them. */
static void follows(const char *path)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_EVENTS);
	msg.events.flags = SL_EVENTS_FOLLOW;
	for (;;) {
		int fds[100];

		for (size_t i = 0; i < SL_ARRAY_LEN(fds); i++) {
			fds[i] = greet(path, SL_ROLE_CONTROL, NULL);
			if (fds[i] >= 0)
				(void)!sl_wire_send(fds[i], &msg);
		}
		for (size_t i = 0; i < SL_ARRAY_LEN(fds); i++)
			hang_up(fds[i]);
	}
}

static void connects(const char *path)
{
	for (;;)
		hang_up(sl_wire_connect(path, NULL));
}

/* As many connections as this process may have, that say nothing and stay for a while. */
static void crowds(const char *path)
{
	for (;;) {
		int fds[900];

		for (size_t i = 0; i < SL_ARRAY_LEN(fds); i++)
			fds[i] = sl_wire_connect(path, NULL);
		sl_clock_sleep(300 * SL_MS);
		for (size_t i = 0; i < SL_ARRAY_LEN(fds); i++)
			hang_up(fds[i]);
	}
}

static void greets(const char *path)
{
	for (;;)
		hang_up(greet(path, SL_ROLE_CONTROL, NULL));
}

static void junk(const char *path)
{
	for (;;) {
		int fd = sl_wire_connect(path, NULL);

		for (int i = 0; i < 50 && fd >= 0; i++) {
			if (send(fd, "rubbish", 7, MSG_NOSIGNAL) < 0)
				break;
		}
		hang_up(fd);
	}
}

/* A workload of this process, of at most 1 MiB. */
static union sl_msg registration(void)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_RUN);
	msg.run.request_kind = SL_AMOUNT_BYTES;
	msg.run.limit_kind = SL_AMOUNT_BYTES;
	msg.run.limit_value = 1 << 20;
	msg.run.gpu_count = 1;
	msg.run.priority_biased = SL_PRIORITY_BIAS;
	sl_wire_str(msg.run.command, sizeof(msg.run.command), "flood");
	return msg;
}

/* Registers it and waits for the answer, which goes to *reply. */
static bool be_registered(int fd, struct sl_msg_run_reply *reply)
{
	union sl_msg msg = registration();

	if (fd < 0 || sl_wire_send(fd, &msg) != SL_WIRE_OK ||
		sl_wire_recv(fd, SL_FROM_DAEMON, &msg, NULL) != SL_WIRE_OK ||
		msg.head.type != SL_MSG_RUN_REPLY || !msg.run_reply.ok)
		return false;
	*reply = msg.run_reply;
	return true;
}

/* Each registration ends the workload before, and both are for the journal. */
static void runs(const char *path)
{
	const union sl_msg msg = registration();

	question(path, &msg, true);
}

static void sets(const char *path)
{
	struct sl_msg_run_reply run;
	union sl_msg msg;

	for (uint64_t i = 0;; i++) {
		int fd = greet(path, SL_ROLE_CONTROL, NULL);
		bool good = be_registered(fd, &run);

		for (; good && swallow(fd); i++) {
			sl_wire_init(&msg, SL_MSG_SET);
			msg.set.workload = run.workload;
			msg.set.which = SL_SET_LIMIT;
			msg.set.limit_kind = SL_AMOUNT_BYTES;
			msg.set.limit_value = (1 << 20) + i % 2 * 4096;
			good = sl_wire_send(fd, &msg) == SL_WIRE_OK;
		}
		hang_up(fd);
	}
}

/* A client that says valid things as fast as it can: says(i, msg) fills the i-th. */
static void client(const char *path, void (*says)(uint64_t i, union sl_msg *msg))
{
	struct sl_msg_run_reply run;
	union sl_msg msg;

	for (uint64_t i = 1;;) {
		int control = greet(path, SL_ROLE_CONTROL, NULL), fd = -1;

		if (be_registered(control, &run))
			fd = greet(path, SL_ROLE_CLIENT, run.token);
		hang_up(control);
		sl_wire_init(&msg, SL_MSG_REPORTED);
		while (fd >= 0 && sl_wire_send(fd, &msg) == SL_WIRE_OK && swallow(fd))
			says(i++, &msg);
		hang_up(fd);
	}
}

/* Above its limit, so that each is answered at once. */
static void says_ask(uint64_t i, union sl_msg *msg)
{
	sl_wire_init(msg, SL_MSG_ASK);
	msg->ask.ask = i;
	msg->ask.bytes = 1ull << 40;
}

static void asks(const char *path)
{
	client(path, says_ask);
}

static void says_beat(uint64_t i, union sl_msg *msg)
{
	sl_wire_init(msg, i % 3 ? SL_MSG_WORK : SL_MSG_MEASURE);
	if (i % 3)
		msg->work.submissions = (uint32_t)i;
}

static void beats(const char *path)
{
	client(path, says_beat);
}

static const struct {
	const char *name;
	void (*run)(const char *path);
} kinds[] = {
#define SL_FLOOD(name, text) {#name, name},
#include "floods.def"
#undef SL_FLOOD
};

const char *const floods_names[] = {
#define SL_FLOOD(name, text) #name,
#include "floods.def"
#undef SL_FLOOD
	NULL};

void floods_run(const char *path, const char *name)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(kinds); i++) {
		if (strcmp(kinds[i].name, name) == 0)
			kinds[i].run(path);
	}
}
