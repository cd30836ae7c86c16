/* One peer that floods, and another that only wants its memory. What is asserted is that the other
 * is answered; how long it waited is printed. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig.h"

enum { ASKS = 300, FLOODERS = 4 };

static int setup(void **state)
{
	static struct rig rig;

	rig_init(&rig, 1, 64 * RIG_GIB);
	rig_start(&rig, "events_kept: 10000\n");
	*state = &rig;
	return 0;
}

static int teardown(void **state)
{
	rig_fini(*state);
	return 0;
}

/* Greets as control; -1 if the daemon will not have it (it has enough of us). */
static int control(const char *path)
{
	int fd = sl_wire_connect(path, NULL);
	union sl_msg msg;

	if (fd < 0)
		return -1;
	sl_wire_init(&msg, SL_MSG_HELLO);
	msg.hello.role = SL_ROLE_CONTROL;
	if (sl_wire_send(fd, &msg) == SL_WIRE_OK &&
		sl_wire_recv(fd, SL_FROM_DAEMON, &msg, NULL) == SL_WIRE_OK &&
		msg.head.type == SL_MSG_WELCOME)
		return fd;
	(void)close(fd);
	return -1;
}

/* Takes everything that is there. */
static void swallow(int fd)
{
	char buf[4096];

	while (recv(fd, buf, sizeof(buf), MSG_DONTWAIT) > 0)
		;
}

/* --- floods: each runs until it is killed ------------------------------------------------- */

static void flood_control(
	const char *path, enum sl_msg_type type, uint32_t what, bool reads)
{
	for (;;) {
		int fd = control(path);
		union sl_msg msg;
		int r = fd < 0 ? SL_WIRE_CLOSED : SL_WIRE_OK;

		while (r == SL_WIRE_OK) {
			sl_wire_init(&msg, type);
			if (type == SL_MSG_LIST)
				msg.list.what = what;
			if (type == SL_MSG_WHY)
				msg.why.workload = 1;
			if (reads)
				swallow(fd);
			r = sl_wire_send(fd, &msg);
		}
		if (fd >= 0)
			(void)close(fd);
	}
}

static void lists(const char *path)
{
	flood_control(path, SL_MSG_LIST, SL_LIST_USES, true);
}
static void processes(const char *path)
{
	flood_control(path, SL_MSG_LIST, SL_LIST_CLIENTS, true);
}
static void events(const char *path)
{
	flood_control(path, SL_MSG_EVENTS, 0, true);
}
static void whys(const char *path)
{
	flood_control(path, SL_MSG_WHY, 0, true);
}
static void dumps(const char *path)
{
	flood_control(path, SL_MSG_DUMP, 0, true);
}
static void deaf(const char *path)
{
	flood_control(path, SL_MSG_DUMP, 0, false);
}

static void connects(const char *path)
{
	for (;;) {
		int fd = sl_wire_connect(path, NULL);

		if (fd >= 0)
			(void)close(fd);
	}
}

static void greets(const char *path)
{
	for (;;) {
		int fd = control(path);

		if (fd >= 0)
			(void)close(fd);
	}
}

static void junk(const char *path)
{
	for (;;) {
		int fd = sl_wire_connect(path, NULL);

		for (int i = 0; i < 50 && fd >= 0; i++)
			if (send(fd, "rubbish", 7, MSG_NOSIGNAL) < 0)
				break;
		if (fd >= 0)
			(void)close(fd);
	}
}

static uint8_t token[SL_WIRE_TOKEN_BYTES];

/* A client that says valid things, as fast as it can. */
static void talks(const char *path)
{
	int fd = sl_wire_connect(path, NULL);
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_HELLO);
	memcpy(msg.hello.token, token, sizeof(token));
	(void)!sl_wire_send(fd, &msg);
	sl_wire_init(&msg, SL_MSG_REPORTED);
	(void)!sl_wire_send(fd, &msg);
	for (uint64_t i = 1;; i++) {
		sl_wire_init(&msg, i % 2 ? SL_MSG_ASK : SL_MSG_WORK);
		if (i % 2) {
			msg.ask.ask = i;
			msg.ask.bytes = 100 * RIG_GIB;
		}
		if (sl_wire_send(fd, &msg) != SL_WIRE_OK)
			_exit(1);
		swallow(fd);
	}
}

static pid_t start(const struct rig *rig, void (*flood)(const char *))
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* Who gets a core is the kernel's matter, and not what is looked at here. */
		(void)!nice(19);
		flood(rig->socket);
		_exit(0);
	}
	assert_true(pid > 0);
	return pid;
}

static int compare(const void *a, const void *b)
{
	sl_ns x = *(const sl_ns *)a, y = *(const sl_ns *)b;

	return x < y ? -1 : x > y;
}

/* The other one: asks, gets, frees. */
static void live(const struct rig *rig, const struct rig_peer *client, const char *beside)
{
	static uint64_t ask = 1;
	sl_ns spans[ASKS];
	union sl_msg msg;

	(void)rig;
	for (int i = 0; i < ASKS; i++) {
		sl_ns begin = sl_clock_now();
		uint64_t epoch;

		rig_ask(client, ask, RIG_GIB);
		rig_expect(client, SL_MSG_GRANT, &msg);
		spans[i] = sl_clock_now() - begin;
		assert_int_equal(msg.grant.ask, ask);
		epoch = msg.grant.epoch;
		rig_commit(client, epoch, 0);
		ask++;
		sl_clock_sleep(SL_MS);
	}
	qsort(spans, ASKS, sizeof(spans[0]), compare);
	print_message("beside %-10s ASK to GRANT: median %4llu us, 99 %% %5llu us, "
		      "longest %5llu us\n",
		beside, (unsigned long long)(spans[ASKS / 2] / SL_US),
		(unsigned long long)(spans[ASKS * 99 / 100] / SL_US),
		(unsigned long long)(spans[ASKS - 1] / SL_US));
}

static void print_turns(const struct rig *rig)
{
	struct rig_peer self = {.fd = -1, .order = -1};
	char text[8192] = "", *at;
	union sl_msg msg;
	size_t size = 0;

	for (int i = 0; i < 1000 && self.fd < 0; i++) {
		self.fd = control(rig->socket);
		sl_clock_sleep(SL_MS);
	}
	assert_true(self.fd >= 0);
	sl_wire_init(&msg, SL_MSG_DUMP);
	rig_send(&self, &msg);
	while (size + sizeof(msg.dump_row.text) < sizeof(text)) {
		assert_int_equal(
			sl_wire_recv(self.fd, SL_FROM_DAEMON, &msg, NULL), SL_WIRE_OK);
		if (msg.head.type != SL_MSG_DUMP_ROW)
			break;
		memcpy(text + size, msg.dump_row.text, msg.dump_row.size);
		size += msg.dump_row.size;
	}
	at = strstr(text, "\"longest_turns\"");
	assert_non_null(at);
	print_message("    %.*s\n", (int)strcspn(at, "\n"), at);
	(void)close(self.fd);
}

static void nobody_waits_for_a_flood(void **state)
{
	static const struct {
		const char *name;
		void (*flood)(const char *);
	} rows[] = {{"nobody", NULL}, {"lists", lists}, {"processes", processes},
		{"events", events}, {"whys", whys}, {"dumps", dumps}, {"deaf", deaf},
		{"connects", connects}, {"greets", greets}, {"junk", junk},
		{"talks", talks}};
	const char *many = getenv("FAIR_WORKLOADS");
	int workloads = many ? atoi(many) : 50;
	struct rig *rig = *state;
	struct rig_peer *runs = calloc((size_t)workloads, sizeof(*runs));
	struct rig_peer *clients = calloc((size_t)workloads, sizeof(*clients));
	struct rig_peer run, client;

	for (int i = 0; i < workloads; i++) {
		runs[i] = rig_run(rig, 1 << 20, 0);
		clients[i] = rig_join(rig, &runs[i]);
	}
	run = rig_run(rig, RIG_GIB, 0);
	memcpy(token, runs[0].token, sizeof(token));
	client = rig_join(rig, &run);
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		pid_t flooders[FLOODERS];
		int count = rows[i].flood == talks ? 1 : rows[i].flood ? FLOODERS : 0;

		for (int j = 0; j < count; j++)
			flooders[j] = start(rig, rows[i].flood);
		live(rig, &client, rows[i].name);
		for (int j = 0; j < count; j++) {
			(void)kill(flooders[j], SIGKILL);
			assert_int_equal(waitpid(flooders[j], NULL, 0), flooders[j]);
		}
	}
	print_turns(rig);
	rig_peer_end(&client);
	rig_peer_end(&run);
	for (int i = 0; i < workloads; i++) {
		rig_peer_end(&clients[i]);
		rig_peer_end(&runs[i]);
	}
	free(runs);
	free(clients);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			nobody_waits_for_a_flood, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
