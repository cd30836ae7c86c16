/* Identity: joining, ancestors, forks, execs, lost connections, bad peers. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "../rig.h"

#include "policy/node.h"

static int setup(void **state)
{
	static struct rig rig;

	rig_init(&rig, 2, 16 * RIG_GIB);
	/* NVML's order is not the bus order: UUIDs and the bus count, not indices. */
	rig.nvml->order[0] = 1;
	rig.nvml->order[1] = 0;
	rig_start(&rig, "context_reserve: 1GiB\nmeasure_interval: 50ms\n");
	*state = &rig;
	return 0;
}

static int teardown(void **state)
{
	rig_fini(*state);
	return 0;
}

static struct rig_peer control(struct rig *rig)
{
	struct rig_peer peer = rig_peer(rig);
	union sl_msg msg;

	rig_hello(&peer, SL_ROLE_CONTROL, 0);
	rig_expect(&peer, SL_MSG_WELCOME, &msg);
	assert_int_equal(msg.welcome.client, 0);
	assert_string_equal(msg.welcome.version, SL_VERSION);
	return peer;
}

/* peer-failures row 19. */
static void gpus_go_by_bus_and_uuid(void **state)
{
	struct rig *rig = *state;
	static const struct {
		const char *visible;
		unsigned int gpus;
		const char *out, *words;
	} rows[] = {
		{NULL, 2, "0,1", NULL},
		{"0", 1, "0", NULL},
		{"1", 1, "1", NULL},
		{"1,0", 2, "0,1", NULL},
		{"", 1, NULL, "CUDA_VISIBLE_DEVICES leaves 0 of the 2"},
		{"1", 2, NULL, "CUDA_VISIBLE_DEVICES leaves 1 of the 2"},
		{"5", 1, NULL, "CUDA_VISIBLE_DEVICES leaves 0 of the 2"},
		{NULL, 3, NULL, "3 GPUs wanted, and sluiced manages 2"},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct rig_peer peer = control(rig);
		union sl_msg msg;

		rig_send_run(&peer, RIG_GIB, 0, rows[i].gpus, "", rows[i].visible);
		rig_expect(&peer, SL_MSG_RUN_REPLY, &msg);
		if (rows[i].out) {
			if (!msg.run_reply.ok)
				fail_msg("row %zu: %s", i, msg.run_reply.text);
			assert_string_equal(msg.run_reply.visible_out, rows[i].out);
		} else {
			assert_int_equal(msg.run_reply.ok, 0);
			assert_int_equal(msg.run_reply.reason, SL_REASON_TOO_FEW_GPUS);
			if (!strstr(msg.run_reply.text, rows[i].words))
				fail_msg("row %zu: want '%s', got '%s'", i, rows[i].words,
					msg.run_reply.text);
		}
		if (rows[i].out && strcmp(rows[i].out, "1") == 0) {
			struct rig_peer a = peer;

			memcpy(a.token, msg.run_reply.token, sizeof(a.token));
			a = rig_peer(rig);
			memcpy(a.token, msg.run_reply.token, sizeof(a.token));
			rig_hello(&a, SL_ROLE_CLIENT, 0);
			rig_expect(&a, SL_MSG_WELCOME, &msg);
			assert_int_equal(msg.welcome.gpu_count, 1);
			rig_expect(&a, SL_MSG_GPU, &msg);
			assert_int_equal(msg.gpu.ordinal, 0);
			/* The second GPU by bus: its UUID ends in 1. */
			assert_int_equal(msg.gpu.uuid[15], 1);
			rig_peer_end(&a);
		}
		rig_peer_end(&peer);
		rig_until(rig_uses(rig, NULL, 0) == 0);
	}
}

static void refusals_tell_the_numbers(void **state)
{
	struct rig *rig = *state;
	struct rig_peer other = rig_run(rig, 10 * RIG_GIB, 0), peer = control(rig);
	static const struct {
		uint64_t request, limit;
		unsigned int gpus, reason;
		const char *words[3];
	} rows[] = {
		{4 * RIG_GIB, 2 * RIG_GIB, 1, SL_REASON_LIMIT_BELOW_REQUEST,
			{"(2 GiB)", "(4 GiB)", "raise --limit"}},
		{16 * RIG_GIB, 0, 1, SL_REASON_REQUEST_TOO_LARGE,
			{"16 GiB", "can share 15 GiB", "lower --request"}},
		{10 * RIG_GIB, 0, 2, SL_REASON_REQUESTS_TAKEN,
			{"10 GiB on each of 2 GPUs", "leave 5 GiB", "sluice ps"}},
	};
	union sl_msg msg;

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		rig_send_run(
			&peer, rows[i].request, rows[i].limit, rows[i].gpus, "", NULL);
		rig_expect(&peer, SL_MSG_RUN_REPLY, &msg);
		assert_int_equal(msg.run_reply.ok, 0);
		assert_int_equal(msg.run_reply.reason, rows[i].reason);
		for (size_t j = 0; j < 3; j++) {
			if (!strstr(msg.run_reply.text, rows[i].words[j]))
				fail_msg("row %zu: want '%s', got '%s'", i,
					rows[i].words[j], msg.run_reply.text);
		}
	}
	/* What no command line of ours sends. */
	rig_send_run(&peer, RIG_GIB, 0, 0, "", NULL);
	rig_expect(&peer, SL_MSG_RUN_REPLY, &msg);
	assert_non_null(strstr(msg.run_reply.text, "--gpus"));
	rig_send_run(&peer, RIG_GIB, 0, 1, "a\033[2Jb", NULL);
	rig_expect(&peer, SL_MSG_RUN_REPLY, &msg);
	assert_non_null(strstr(msg.run_reply.text, "--name"));
	rig_send_run(&peer, UINT64_MAX, 0, 1, "", NULL);
	rig_expect(&peer, SL_MSG_RUN_REPLY, &msg);
	assert_non_null(strstr(msg.run_reply.text, "--request"));
	/* After all that the same peer can still register. */
	rig_send_run(&peer, RIG_GIB, 0, 1, "fine", NULL);
	rig_expect(&peer, SL_MSG_RUN_REPLY, &msg);
	assert_int_equal(msg.run_reply.ok, 1);
	rig_peer_end(&peer);
	rig_peer_end(&other);
	rig_until(rig_uses(rig, NULL, 0) == 0);
}

static void names_are_unique_and_made_up(void **state)
{
	struct rig *rig = *state;
	struct rig_peer a = control(rig), b = control(rig);
	union sl_msg msg;

	rig_send_run(&a, 0, RIG_GIB, 1, "", NULL);
	rig_expect(&a, SL_MSG_RUN_REPLY, &msg);
	assert_memory_equal(msg.run_reply.name, "server-", 7);
	rig_send_run(&a, 0, RIG_GIB, 1, "web", NULL);
	rig_expect(&a, SL_MSG_RUN_REPLY, &msg);
	assert_string_equal(msg.run_reply.name, "web");
	/* The same process registered twice: it is no longer what it was the first time. */
	assert_int_equal(rig_uses(rig, NULL, 0), 1);
	rig_send_run(&b, 0, RIG_GIB, 1, "web", NULL);
	rig_expect(&b, SL_MSG_RUN_REPLY, &msg);
	assert_int_equal(msg.run_reply.ok, 0);
	assert_int_equal(msg.run_reply.reason, SL_REASON_DUPLICATE);
	rig_peer_end(&a);
	rig_until(rig_uses(rig, NULL, 0) == 0);
	rig_send_run(&b, 0, RIG_GIB, 1, "web", NULL);
	rig_expect(&b, SL_MSG_RUN_REPLY, &msg);
	assert_int_equal(msg.run_reply.ok, 1);
	rig_peer_end(&b);
	rig_until(rig_uses(rig, NULL, 0) == 0);
}

/* peer-failures row 24: the connected process counts, not the environment. */
static void without_token_ancestors_count(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, RIG_GIB, 0), lost = rig_peer(rig),
			self = {.fd = -1};
	union sl_msg msg;

	/* No token and no ancestor: no workload. */
	rig_hello(&lost, SL_ROLE_CLIENT, 0);
	rig_expect(&lost, SL_MSG_REJECT, &msg);
	assert_int_equal(msg.reject.reason, SL_REJECT_WORKLOAD);
	assert_non_null(strstr(msg.reject.text, "sluice run"));
	rig_expect_closed(&lost);
	/* A wrong token and no ancestor: likewise. */
	rig_reconnect(rig, &lost);
	memset(lost.token, 0x5a, sizeof(lost.token));
	rig_hello(&lost, SL_ROLE_CLIENT, 0);
	rig_expect(&lost, SL_MSG_REJECT, &msg);
	assert_int_equal(msg.reject.reason, SL_REJECT_WORKLOAD);
	rig_peer_end(&lost);
	/* The test itself registers; the children it makes are of its workload. */
	self.fd = sl_wire_connect(rig->socket, NULL);
	rig_hello(&self, SL_ROLE_CONTROL, 0);
	rig_expect(&self, SL_MSG_WELCOME, &msg);
	rig_send_run(&self, RIG_GIB, 0, 1, "mother", NULL);
	rig_expect(&self, SL_MSG_RUN_REPLY, &msg);
	assert_int_equal(msg.run_reply.ok, 1);
	self.workload = msg.run_reply.workload;
	lost = rig_peer(rig);
	memset(lost.token, 0, sizeof(lost.token));
	rig_hello(&lost, SL_ROLE_CLIENT, 0);
	rig_expect(&lost, SL_MSG_WELCOME, &msg);
	assert_int_equal(msg.welcome.workload, self.workload);
	assert_string_equal(msg.welcome.name, "mother");
	rig_peer_end(&lost);
	(void)close(self.fd);
	rig_peer_end(&run);
	/* "mother" lives as long as the test does. */
	rig_until(rig_uses(rig, NULL, 0) == 1);
}

static void another_user_is_turned_away(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, RIG_GIB, 0);
	int status = 0;
	pid_t child;

	if (geteuid() != 0)
		skip();
	assert_int_equal(system("exec true"), 0);
	child = fork();
	if (child == 0) {
		struct rig_peer peer = {.fd = -1};
		union sl_msg msg;

		if (chdir("/") || setgid(65534) || setuid(65534))
			_exit(10);
		peer.fd = sl_wire_connect("/proc/self/cwd", NULL);
		peer.fd = sl_wire_connect(rig->socket, NULL);
		if (peer.fd < 0)
			_exit(11);
		sl_wire_init(&msg, SL_MSG_HELLO);
		memcpy(msg.hello.token, run.token, sizeof(run.token));
		if (sl_wire_send(peer.fd, &msg) != SL_WIRE_OK ||
			rig_receive(&peer, 5000, &msg) != SL_WIRE_OK)
			_exit(12);
		_exit(msg.head.type == SL_MSG_REJECT &&
					msg.reject.reason == SL_REJECT_USER
				? 0
				: 13);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), 0);
	rig_peer_end(&run);
}

static void report(const struct rig_peer *peer, bool with_report, uint64_t bytes)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_REPORT);
	msg.report.backing_bytes = bytes;
	if (with_report)
		rig_send(peer, &msg);
	sl_wire_init(&msg, SL_MSG_REPORTED);
	rig_send(peer, &msg);
}

/* Time of death is the pidfd: a child may keep the socket, and a living process may lose it. */
static void sockets_are_not_lives(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, 8 * RIG_GIB, 0);
	struct rig_peer a = rig_join(rig, &run), b = rig_join(rig, &run);
	uint64_t client = a.client, epoch;
	union sl_msg msg;

	rig_hold(rig, &a, 1, 2 * RIG_GIB);
	rig_ask(&a, 2, RIG_GIB);
	rig_expect(&a, SL_MSG_GRANT, &msg);
	epoch = msg.grant.epoch;
	/* The connection breaks; bytes and grant stay. */
	rig_reconnect(rig, &a);
	sl_clock_sleep(50 * SL_MS);
	assert_int_equal(rig_gpu(rig).backing_bytes, 2 * RIG_GIB);
	assert_int_equal(rig_gpu(rig).granted_bytes, RIG_GIB);
	rig_join_as(&a, &run, a.epoch);
	assert_int_equal(a.client, client);
	report(&a, true, 2 * RIG_GIB);
	/* It asks again with the same number and gets a grant in place of the lost one. */
	rig_ask(&a, 2, RIG_GIB);
	rig_expect(&a, SL_MSG_GRANT, &msg);
	assert_int_not_equal(msg.grant.epoch, epoch);
	assert_int_equal(rig_gpu(rig).granted_bytes, RIG_GIB);
	rig_commit(&a, msg.grant.epoch, RIG_GIB);
	rig_until(rig_gpu(rig).backing_bytes == 3 * RIG_GIB);
	rig_nvml(rig, a.pid, 3 * RIG_GIB);
	/* Now it dies, and its socket stays open. */
	rig_peer_kill(&a);
	rig_until(rig_gpu(rig).dying_bytes == 3 * RIG_GIB);
	rig_expect_closed(&a);
	sl_closep(&a.fd);
	rig_nvml(rig, a.pid, 0);
	rig_until(rig_gpu(rig).dying_bytes == 0);
	assert_int_equal(rig_status(rig).clients, 1);
	rig_peer_end(&b);
	rig_peer_end(&run);
	rig_until(rig_uses(rig, NULL, 0) == 1);
}

/* Bytes that a connection left granted and not committed are in the next report, or do not
 * exist. */
static void a_report_ends_lost_grants(void **state)
{
	struct rig *rig = *state;
	static const struct {
		const char *name;
		bool with_report;
		uint64_t reported, backing;
	} rows[] = {
		{"the grant had arrived", true, 3 * RIG_GIB, 3 * RIG_GIB},
		{"it had not", true, 2 * RIG_GIB, 2 * RIG_GIB},
		{"half of it was used", true, 5 * RIG_GIB / 2, 5 * RIG_GIB / 2},
		{"no report at all", false, 0, 2 * RIG_GIB},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct rig_peer run = rig_run(rig, 8 * RIG_GIB, 0);
		struct rig_peer a = rig_join(rig, &run);
		struct sl_msg_gpu_row gpu;
		union sl_msg msg;
		uint64_t epoch;

		rig_hold(rig, &a, 1, 2 * RIG_GIB);
		rig_ask(&a, 2, RIG_GIB);
		rig_expect(&a, SL_MSG_GRANT, &msg);
		epoch = msg.grant.epoch;
		rig_reconnect(rig, &a);
		rig_join_as(&a, &run, a.epoch);
		report(&a, rows[i].with_report, rows[i].reported);
		/* A message of the old connection changes nothing any more. */
		rig_commit(&a, epoch, RIG_GIB);
		rig_ask(&a, 3, RIG_GIB / 4);
		rig_expect(&a, SL_MSG_GRANT, &msg);
		gpu = rig_gpu(rig);
		if (gpu.backing_bytes != rows[i].backing ||
			gpu.granted_bytes != RIG_GIB / 4)
			fail_msg("%s: backing %llu MiB, granted %llu MiB", rows[i].name,
				(unsigned long long)gpu.backing_bytes >> 20,
				(unsigned long long)gpu.granted_bytes >> 20);
		rig_peer_end(&a);
		rig_nvml(rig, a.pid, 0);
		rig_peer_end(&run);
		rig_until(rig_gpu(rig).dying_bytes == 0);
	}
}

/* A connection made by a process that is dead now, and whose number another process got. */
static void a_number_is_not_a_process(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, 8 * RIG_GIB, 0), old = rig_peer(rig), next;
	union sl_msg msg;

	sl_clock_sleep(50 * SL_MS); /* accepted */
	rig_peer_kill(&old);
	next = rig_peer_with_pid(rig, old.pid);
	if (!next.pid)
		print_message("skipped: this kernel does not let us choose a pid\n");
	if (next.pid) {
		rig_join_as(&next, &run, 0);
		memcpy(old.token, run.token, sizeof(old.token));
		rig_hello(&old, SL_ROLE_CLIENT, 0);
		rig_expect(&old, SL_MSG_REJECT, &msg);
		/* Its owner noticed nothing. */
		rig_ask(&next, 1, RIG_GIB);
		rig_expect(&next, SL_MSG_GRANT, &msg);
		rig_peer_end(&next);
	}
	sl_closep(&old.fd);
	rig_peer_end(&run);
	rig_until(rig_gpu(rig).dying_bytes == 0);
}

/* Reporting gives no client more than asking. */
static void claims_are_bounded(void **state)
{
	struct rig *rig = *state;
	static const struct {
		const char *name;
		uint64_t limit, held, listed, said, backing;
		bool anew; /* not the client that this daemon knows */
	} rows[] = {
		{"promised to others", 15 * RIG_GIB, 0, 0, 1ull << 48, 6 * RIG_GIB, true},
		{"above the limit", 3 * RIG_GIB, 0, 0, UINT64_MAX, 3 * RIG_GIB, true},
		{"shown by the driver", 3 * RIG_GIB, 0, 5 * RIG_GIB, 1ull << 48,
			5 * RIG_GIB, true},
		{"more than granted", 15 * RIG_GIB, RIG_GIB, 0, 1ull << 48, RIG_GIB,
			false},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct rig_peer promised = rig_run(rig, 8 * RIG_GIB, 0);
		struct rig_peer run = rig_run(rig, 0, rows[i].limit), liar;
		struct rig_peer good = rig_join(rig, &promised);
		union sl_msg msg;

		liar = rows[i].anew ? rig_peer(rig) : rig_join(rig, &run);
		if (rows[i].held)
			rig_hold(rig, &liar, 1, rows[i].held);
		if (!rows[i].anew)
			rig_reconnect(rig, &liar);
		rig_join_as(&liar, &run, good.epoch);
		if (rows[i].listed) {
			rig_nvml(rig, liar.pid, rows[i].listed);
			rig_until(rig_measured(rig) == rows[i].listed);
		}
		report(&liar, true, rows[i].said);
		/* Messages of two connections have no order of their own. */
		rig_until(rig_gpu(rig).backing_bytes == rows[i].backing);
		rig_ask(&good, 1, 8 * RIG_GIB);
		rig_expect(&good, SL_MSG_GRANT, &msg);
		if (rig_gpu(rig).backing_bytes != rows[i].backing ||
			rig_gpu(rig).condition)
			fail_msg("%s: backing %llu MiB, condition %u", rows[i].name,
				(unsigned long long)rig_gpu(rig).backing_bytes >> 20,
				rig_gpu(rig).condition);
		assert_true(rig_log_has(rig, "more than it can hold"));
		rig_peer_end(&liar);
		rig_nvml(rig, liar.pid, 0);
		rig_peer_end(&good);
		rig_peer_end(&run);
		rig_peer_end(&promised);
		rig_until(rig_gpu(rig).dying_bytes == 0);
	}
}

/* A waiting demand reserves nothing while its connection is broken. */
static void a_lost_waiter_does_not_get(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, 0, 15 * RIG_GIB);
	struct rig_peer a = rig_join(rig, &run), b = rig_join(rig, &run), c;
	union sl_msg msg;

	c = rig_run(rig, 13 * RIG_GIB, 0);
	rig_hold(rig, &a, 1, RIG_GIB);
	rig_ask(&b, 9, 14 * RIG_GIB);
	rig_expect_silence(&b, 30);
	sl_closep(&b.fd);
	rig_until(rig_gpu(rig).waiting == 0);
	rig_peer_end(&c);
	rig_peer_end(&a);
	rig_nvml(rig, a.pid, 0);
	rig_until(rig_gpu(rig).dying_bytes == 0);
	assert_int_equal(rig_gpu(rig).granted_bytes, 0);
	rig_reconnect(rig, &b);
	rig_join_as(&b, &run, b.epoch);
	sl_wire_init(&msg, SL_MSG_REPORTED);
	rig_send(&b, &msg);
	rig_ask(&b, 9, 14 * RIG_GIB);
	rig_expect(&b, SL_MSG_GRANT, &msg);
	assert_int_equal(msg.grant.ask, 9);
	rig_peer_end(&b);
	rig_peer_end(&run);
	rig_until(rig_gpu(rig).dying_bytes == 0);
}

/* exec: the same process, another program; its memory died with the address space. */
static void exec_makes_a_new_client(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, 8 * RIG_GIB, 0);
	struct rig_peer a = rig_join(rig, &run);
	uint64_t client = a.client;

	rig_hold(rig, &a, 1, 4 * RIG_GIB);
	rig_nvml(rig, a.pid, 0);
	rig_reconnect(rig, &a);
	rig_join_as(&a, &run, 0);
	assert_int_not_equal(a.client, client);
	rig_until(rig_gpu(rig).backing_bytes == 0 && rig_gpu(rig).dying_bytes == 0);
	/* The new program's bytes under the same number are not taken for the old one's. */
	rig_hold(rig, &a, 1, RIG_GIB);
	rig_until(rig_gpu(rig).backing_bytes == RIG_GIB);
	assert_int_equal(rig_status(rig).clients, 1);
	rig_peer_end(&a);
	rig_nvml(rig, a.pid, 0);
	rig_peer_end(&run);
	rig_until(rig_gpu(rig).dying_bytes == 0);
}

/* exec into a program without CUDA: no connection, no row in NVML, a living process. */
static void a_program_without_cuda_keeps_nothing(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, 8 * RIG_GIB, 0);
	struct rig_peer a = rig_join(rig, &run);

	rig_hold(rig, &a, 1, 4 * RIG_GIB);
	sl_clock_sleep(200 * SL_MS);
	rig_nvml(rig, a.pid, 0);
	sl_closep(&a.fd);
	rig_until(rig_gpu(rig).backing_bytes == 0 && rig_gpu(rig).dying_bytes == 0);
	rig_peer_end(&a);
	rig_peer_end(&run);
}

static void send_raw(const struct rig_peer *peer, const void *data, size_t size)
{
	assert_int_equal(send(peer->fd, data, size, MSG_NOSIGNAL), size);
}

/* Both versions are named, and what to do. */
static void other_versions_are_refused(void **state)
{
	static const struct {
		uint32_t version;
		const char *words;
	} rows[] = {
		{0, " speaks protocol " SL_STRINGIFY(
			    SL_PROTOCOL_VERSION) ", and this program 0;"},
		{0, "the program is the older"},
		{99, " speaks protocol " SL_STRINGIFY(
			     SL_PROTOCOL_VERSION) ", and this program 99;"},
		{99, "install sluice, sluiced and libsluice.so of one version"},
		{99, "sluiced is the older"},
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct rig_peer peer = rig_peer(rig);
		union sl_msg msg;

		sl_wire_init(&msg, SL_MSG_HELLO);
		msg.head.version = rows[i].version;
		rig_send(&peer, &msg);
		rig_expect(&peer, SL_MSG_REJECT, &msg);
		assert_int_equal(msg.reject.reason, SL_REJECT_VERSION);
		assert_int_equal(msg.reject.daemon_version, SL_PROTOCOL_VERSION);
		if (!strstr(msg.reject.text, rows[i].words))
			fail_msg("want '%s' in '%s'", rows[i].words, msg.reject.text);
		rig_expect_closed(&peer);
		rig_peer_end(&peer);
	}
}

static void bad_peers_lose_their_connection_only(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, RIG_GIB, 0), good = rig_join(rig, &run), bad;
	union sl_msg msg;

	/* Not a message. */
	bad = rig_peer(rig);
	send_raw(&bad, "hello there", 11);
	rig_expect(&bad, SL_MSG_REJECT, &msg);
	rig_peer_end(&bad);
	/* Something else before HELLO. */
	bad = rig_peer(rig);
	rig_ask(&bad, 1, 1);
	rig_expect(&bad, SL_MSG_REJECT, &msg);
	assert_int_equal(msg.reject.reason, SL_REJECT_PROTOCOL);
	rig_peer_end(&bad);
	/* HELLO twice, a GPU that is not there, the daemon's own words, an empty datagram. */
	for (int i = 0; i < 4; i++) {
		bad = rig_join(rig, &run);
		if (i == 0)
			rig_hello(&bad, SL_ROLE_CLIENT, 0);
		sl_wire_init(&msg, i == 1 ? SL_MSG_FREED : SL_MSG_GRANT);
		if (i == 1)
			msg.freed.ordinal = 7;
		if (i == 1 || i == 2)
			rig_send(&bad, &msg);
		if (i == 3)
			send_raw(&bad, "", 0);
		rig_expect_closed(&bad);
		rig_peer_end(&bad);
	}
	/* Gone before an answer can be sent. */
	for (int i = 0; i < 20; i++) {
		bad = rig_peer(rig);
		rig_hello(&bad, SL_ROLE_CLIENT, 0);
		rig_peer_end(&bad);
	}
	rig_ask(&good, 1, RIG_GIB / 2);
	rig_expect(&good, SL_MSG_GRANT, &msg);
	rig_until(rig_status(rig).clients == 1);
	rig_peer_end(&good);
	rig_peer_end(&run);
}

/* peer-failures row 6: start-up stays flat. */
static void two_hundred_join_at_once(void **state)
{
	enum { COUNT = 200 };
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, RIG_GIB, 0);
	static struct rig_peer peers[COUNT];
	sl_ns begin, worst;
	union sl_msg msg;

	for (int i = 0; i < COUNT; i++) {
		peers[i] = rig_peer(rig);
		memcpy(peers[i].token, run.token, sizeof(run.token));
	}
	begin = sl_clock_now();
	for (int i = 0; i < COUNT; i++)
		rig_hello(&peers[i], SL_ROLE_CLIENT, 0);
	for (int i = 0; i < COUNT; i++)
		rig_expect(&peers[i], SL_MSG_WELCOME, &msg);
	worst = sl_clock_now() - begin;
	print_message("200 joiners: the last was welcomed after %llu us\n",
		(unsigned long long)(worst / SL_US));
	assert_int_equal(rig_status(rig).clients, COUNT);
	for (int i = 0; i < COUNT; i++)
		rig_peer_end(&peers[i]);
	rig_until(rig_status(rig).clients == 0);
	rig_peer_end(&run);
}

/* A list longer than any queue, for a slow reader. */
static void long_lists_wait_for_the_reader(void **state)
{
	enum { COUNT = 300 };
	struct rig *rig = *state;
	static struct rig_peer runs[COUNT];
	struct rig_peer reader = control(rig);
	unsigned int rows = 0;
	union sl_msg msg;

	for (int i = 0; i < COUNT; i++)
		runs[i] = rig_run(rig, 0, RIG_GIB);
	for (int i = 0; i < 3; i++) {
		sl_wire_init(&msg, SL_MSG_LIST);
		msg.list.what = SL_LIST_USES;
		rig_send(&reader, &msg);
	}
	sl_clock_sleep(50 * SL_MS);
	for (int i = 0; i < 3; i++) {
		for (rows = 0;; rows++) {
			struct sl_error err;

			assert_int_equal(
				sl_wire_recv(reader.fd, SL_FROM_DAEMON, &msg, &err),
				SL_WIRE_OK);
			if (msg.head.type == SL_MSG_LIST_END)
				break;
		}
		assert_int_equal(rows, COUNT + 1); /* and "mother" */
		assert_int_equal(msg.list_end.rows, rows);
	}
	for (int i = 0; i < COUNT; i++)
		rig_peer_end(&runs[i]);
	rig_peer_end(&reader);
	rig_until(rig_uses(rig, NULL, 0) == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gpus_go_by_bus_and_uuid),
		cmocka_unit_test(refusals_tell_the_numbers),
		cmocka_unit_test(names_are_unique_and_made_up),
		cmocka_unit_test(another_user_is_turned_away),
		cmocka_unit_test(without_token_ancestors_count),
		cmocka_unit_test(sockets_are_not_lives),
		cmocka_unit_test(a_report_ends_lost_grants),
		cmocka_unit_test(a_number_is_not_a_process),
		cmocka_unit_test(claims_are_bounded),
		cmocka_unit_test(a_lost_waiter_does_not_get),
		cmocka_unit_test(exec_makes_a_new_client),
		cmocka_unit_test(a_program_without_cuda_keeps_nothing),
		cmocka_unit_test(other_versions_are_refused),
		cmocka_unit_test(bad_peers_lose_their_connection_only),
		cmocka_unit_test(two_hundred_join_at_once),
		cmocka_unit_test(long_lists_wait_for_the_reader),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, setup, teardown);
}
