/* One peer that floods, and another that only wants its memory. The test asserts that the other is
 * answered; it prints how long that took. */
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
#include "../../system/floods.h"

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
	struct rig_peer self = {.fd = sl_wire_connect(path, NULL)};
	union sl_msg msg;

	if (self.fd < 0)
		return -1;
	sl_wire_init(&msg, SL_MSG_HELLO);
	msg.hello.role = SL_ROLE_CONTROL;
	if (sl_wire_send(self.fd, &msg) == SL_WIRE_OK &&
		rig_receive(&self, 20000, &msg) == SL_WIRE_OK &&
		msg.head.type == SL_MSG_WELCOME)
		return self.fd;
	(void)close(self.fd);
	return -1;
}

static pid_t start(const struct rig *rig, const char *name)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* The kernel shares out the cores; this test does not look at that. */
		(void)!nice(19);
		floods_run(rig->socket, name);
		_exit(1);
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
	const char *many = getenv("FAIR_WORKLOADS");
	int workloads = many ? atoi(many) : 50;
	struct rig *rig = *state;
	struct rig_peer *runs = calloc((size_t)workloads, sizeof(*runs));
	struct rig_peer *clients = calloc((size_t)workloads, sizeof(*clients));
	struct rig_peer run, client;

	for (int i = 0; i < workloads; i++) {
		runs[i] = rig_run(rig, 1 << 20, 0);
		clients[i] = rig_join(rig, &runs[i]);
		rig_nvml(rig, clients[i].pid, 1 << 19);
	}
	run = rig_run(rig, RIG_GIB, 0);
	client = rig_join(rig, &run);
	live(rig, &client, "nobody");
	for (size_t i = 0; floods_names[i]; i++) {
		pid_t flooders[FLOODERS];

		for (int j = 0; j < FLOODERS; j++)
			flooders[j] = start(rig, floods_names[i]);
		live(rig, &client, floods_names[i]);
		for (int j = 0; j < FLOODERS; j++) {
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
