/* SET and STOP: rights, checks, and what stays. Bounds of users. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "policy/node.h"
#include "../rig.h"

#define OTHER_USER 12345

static int setup(void **state)
{
	static struct rig rig;

	rig_init(&rig, 1, 16 * RIG_GIB);
	*state = &rig;
	return 0;
}

static int teardown(void **state)
{
	rig_fini(*state);
	return 0;
}

static struct rig_peer greeted(const struct rig *rig)
{
	struct rig_peer peer = rig_peer(rig);
	union sl_msg msg;

	rig_hello(&peer, SL_ROLE_CONTROL, 0);
	rig_expect(&peer, SL_MSG_WELCOME, &msg);
	return peer;
}

/* A process of another user, with one supplementary group, that speaks for itself. */
static struct rig_peer greeted_as(const struct rig *rig, uid_t uid, gid_t gid)
{
	struct rig_peer peer = rig_peer_as(rig, uid, gid);
	union sl_msg msg;

	rig_hello(&peer, SL_ROLE_CONTROL, 0);
	rig_expect(&peer, SL_MSG_WELCOME, &msg);
	return peer;
}

static void run(struct rig_peer *peer, const char *name, uint64_t request, uint64_t limit)
{
	union sl_msg msg;

	rig_send_run(peer, request, limit, 1, name, NULL);
	rig_expect(peer, SL_MSG_RUN_REPLY, &msg);
	if (!msg.run_reply.ok)
		fail_msg("refused: %s", msg.run_reply.text);
	peer->workload = msg.run_reply.workload;
	memcpy(peer->token, msg.run_reply.token, sizeof(peer->token));
}

static union sl_msg set_msg(uint64_t workload, const char *name, uint32_t which)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_SET);
	msg.set.workload = workload;
	msg.set.which = which;
	msg.set.priority_biased = SL_PRIORITY_BIAS;
	sl_wire_str(msg.set.name, sizeof(msg.set.name), name);
	return msg;
}

static struct sl_msg_set_reply set(const struct rig_peer *peer, union sl_msg msg)
{
	rig_send(peer, &msg);
	rig_expect(peer, SL_MSG_SET_REPLY, &msg);
	return msg.set_reply;
}

static union sl_msg set_bytes(const char *name, uint64_t request, uint64_t limit)
{
	union sl_msg msg = set_msg(
		0, name, (request ? SL_SET_REQUEST : 0) | (limit ? SL_SET_LIMIT : 0));

	msg.set.request_kind = SL_AMOUNT_BYTES;
	msg.set.request_value = request;
	msg.set.limit_kind = SL_AMOUNT_BYTES;
	msg.set.limit_value = limit;
	return msg;
}

static void expect_troubles(const struct rig_peer *self, unsigned int count)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_LIST);
	msg.list.what = SL_LIST_STATUS;
	rig_send(self, &msg);
	rig_expect(self, SL_MSG_STATUS_ROW, &msg);
	assert_int_equal(msg.status_row.journal_error != 0, count);
	assert_int_equal(msg.status_row.journal[0], '/');
	rig_expect(self, SL_MSG_LIST_END, &msg);
}

static void shell(const char *format, const char *dir)
{
	char command[256];

	(void)snprintf(command, sizeof(command), format, dir, dir);
	assert_int_equal(system(command), 0);
}

/* A yes that the journal does not know of says so, the first one too. */
static void a_promise_without_a_journal_says_so(void **state)
{
	static const char words[] = "after a restart of it this is forgotten";
	struct rig *rig = *state;
	struct sl_msg_set_reply reply;
	struct rig_peer peer, self;
	union sl_msg msg;

	rig_start(rig, NULL);
	peer = greeted(rig);
	self = greeted(rig);
	run(&peer, "alpha", RIG_GIB, 4 * RIG_GIB);
	expect_troubles(&self, 0);
	shell("rm %s/run.db && mkdir %s/run.db", rig->dir);
	reply = set(&self, set_bytes("alpha", 2 * RIG_GIB, 0));
	assert_int_equal(reply.ok, 1);
	assert_non_null(strstr(reply.text, words));
	rig_send_run(&self, RIG_GIB, RIG_GIB, 1, "beta", NULL);
	rig_expect(&self, SL_MSG_RUN_REPLY, &msg);
	assert_int_equal(msg.run_reply.ok, 1);
	assert_non_null(strstr(msg.run_reply.text, words));
	expect_troubles(&self, 1);
	assert_true(rig_log_has(rig, "JOURNAL_FAILS"));
	/* A no needs none. */
	reply = set(&self, set_bytes("alpha", 900 * RIG_GIB, 0));
	assert_int_equal(reply.ok, 0);
	assert_null(strstr(reply.text, words));
	/* Tried again, though the change stays the same. */
	shell("rmdir %s/run.db", rig->dir);
	assert_true(rig_log_gets(rig, "JOURNAL_WORKS"));
	expect_troubles(&self, 0);
	reply = set(&self, set_bytes("alpha", 3 * RIG_GIB, 0));
	assert_int_equal(reply.ok, 1);
	assert_string_equal(reply.text, "");
	rig_peer_end(&self);
	rig_peer_end(&peer);
}

static void set_takes_effect_and_survives(void **state)
{
	struct rig *rig = *state;
	struct sl_msg_use_row row = {0};
	struct sl_msg_set_reply reply;
	struct rig_peer peer, self;
	union sl_msg msg;

	rig_start(rig, NULL);
	peer = greeted(rig);
	self = greeted(rig);
	run(&peer, "alpha", 2 * RIG_GIB, 4 * RIG_GIB);
	reply = set(&self, set_bytes("alpha", 3 * RIG_GIB, 8 * RIG_GIB));
	assert_int_equal(reply.ok, 1);
	assert_int_equal(reply.workload, peer.workload);
	assert_int_equal(reply.request_bytes, 3 * RIG_GIB);
	assert_int_equal(reply.limit_bytes, 8 * RIG_GIB);
	assert_string_equal(reply.name, "alpha");
	msg = set_msg(peer.workload, "", SL_SET_PRIORITY | SL_SET_FLAGS | SL_SET_WAIT);
	msg.set.priority_biased = SL_PRIORITY_BIAS - 7;
	msg.set.flags = SL_WORKLOAD_NO_SWAP | SL_WORKLOAD_OOM_FIRST;
	msg.set.longest_wait_ms = 1500;
	reply = set(&self, msg);
	assert_int_equal(reply.ok, 1);
	assert_int_equal(reply.priority_biased, SL_PRIORITY_BIAS - 7);
	/* It named no GPU, and still does not. */
	assert_int_equal(reply.flags,
		SL_WORKLOAD_NO_SWAP | SL_WORKLOAD_OOM_FIRST | SL_WORKLOAD_LATE);
	assert_int_equal(reply.request_bytes, 3 * RIG_GIB);
	/* The reply is as good as the journal: not even kill -9 loses what it said. */
	rig_kill_daemon(rig);
	rig_start(rig, NULL);
	assert_int_equal(rig_uses(rig, &row, 1), 1);
	assert_int_equal(row.request_bytes, 3 * RIG_GIB);
	assert_int_equal(row.limit_bytes, 8 * RIG_GIB);
	assert_int_equal(row.priority_biased, SL_PRIORITY_BIAS - 7);
	assert_int_equal(row.flags, SL_USE_NO_SWAP | SL_USE_OOM_FIRST);
	rig_peer_end(&self);
	self = greeted(rig);
	sl_wire_init(&msg, SL_MSG_SET);
	msg.set.workload = peer.workload;
	msg.set.which = SL_SET_LIMIT;
	msg.set.limit_kind = SL_AMOUNT_BYTES;
	msg.set.limit_value = 6 * RIG_GIB;
	reply = set(&self, msg);
	/* Changed again, and unnamed values are as the daemon before had them. */
	assert_int_equal(reply.ok, 1);
	assert_int_equal(reply.request_bytes, 3 * RIG_GIB);
	assert_int_equal(reply.limit_bytes, 6 * RIG_GIB);
	assert_int_equal(reply.flags,
		SL_WORKLOAD_NO_SWAP | SL_WORKLOAD_OOM_FIRST | SL_WORKLOAD_LATE);
	rig_peer_end(&self);
	rig_peer_end(&peer);
}

/* One event for each kind of change, with the user who asked. */
static void events_say_what_changed_and_who_asked(void **state)
{
	static const uint32_t reasons[] = {SL_REASON_STARTED, SL_REASON_CHANGED,
		SL_REASON_CHANGED_PRIORITY, SL_REASON_CHANGED_WAIT,
		SL_REASON_CHANGED_SWAP_OFF, SL_REASON_CHANGED_SWAP_ON,
		SL_REASON_CHANGED_OOM_FIRST, SL_REASON_STOP_ASKED};
	struct rig *rig = *state;
	struct rig_peer peer, self;
	union sl_msg msg;

	rig_start(rig, NULL);
	peer = greeted(rig);
	self = greeted(rig);
	run(&peer, "alpha", RIG_GIB, 4 * RIG_GIB);
	assert_int_equal(set(&self, set_bytes("alpha", 2 * RIG_GIB, 0)).ok, 1);
	msg = set_msg(0, "alpha", SL_SET_PRIORITY | SL_SET_WAIT | SL_SET_FLAGS);
	msg.set.priority_biased = SL_PRIORITY_BIAS - 7;
	msg.set.longest_wait_ms = 1500;
	msg.set.flags = SL_WORKLOAD_NO_SWAP;
	assert_int_equal(set(&self, msg).ok, 1);
	/* An unchanged value is no change. */
	msg = set_msg(0, "alpha", SL_SET_FLAGS);
	msg.set.flags = SL_WORKLOAD_NO_SWAP;
	assert_int_equal(set(&self, msg).ok, 1);
	msg.set.flags = SL_WORKLOAD_OOM_FIRST;
	assert_int_equal(set(&self, msg).ok, 1);
	sl_wire_init(&msg, SL_MSG_STOP);
	msg.stop.grace_ms = 60000;
	sl_wire_str(msg.stop.name, sizeof(msg.stop.name), "alpha");
	rig_send(&self, &msg);
	rig_expect(&self, SL_MSG_STOP_REPLY, &msg);
	sl_wire_init(&msg, SL_MSG_EVENTS);
	sl_wire_str(msg.events.name, sizeof(msg.events.name), "alpha");
	rig_send(&self, &msg);
	for (size_t i = 0; i < SL_ARRAY_LEN(reasons); i++) {
		rig_expect(&self, SL_MSG_EVENT_ROW, &msg);
		if (msg.event_row.reason != reasons[i])
			fail_msg("event %zu is %u, not %u", i, msg.event_row.reason,
				reasons[i]);
		assert_int_equal(msg.event_row.other_bytes, i ? getuid() + 1 : 0);
		if (reasons[i] == SL_REASON_CHANGED_PRIORITY)
			assert_true((int64_t)msg.event_row.bytes == -7);
		if (reasons[i] == SL_REASON_CHANGED_WAIT)
			assert_int_equal(msg.event_row.span_ms, 1500);
	}
	rig_peer_end(&self);
	rig_peer_end(&peer);
}

static void run_takes_flags_and_defaults(void **state)
{
	static const struct {
		uint32_t run, use;
	} rows[] = {
		{0, SL_USE_OOM_FIRST},
		{SL_RUN_OOM_WAIT, 0},
		{SL_RUN_OOM_WAIT | SL_RESOLVER_WAIT << SL_RUN_CHAIN_SHIFT,
			SL_RESOLVER_WAIT << SL_RUN_CHAIN_SHIFT},
		{SL_RUN_OOM_FIRST | SL_RUN_NO_SWAP, SL_USE_OOM_FIRST | SL_USE_NO_SWAP},
	};
	struct rig *rig = *state;
	struct rig_peer peers[SL_ARRAY_LEN(rows)], bad;
	struct sl_msg_use_row uses[SL_ARRAY_LEN(rows)];
	union sl_msg msg;

	rig_start(rig, "oom_first: yes\n");
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		peers[i] = greeted(rig);
		sl_wire_init(&msg, SL_MSG_RUN);
		msg.run.gpu_count = 1;
		msg.run.priority_biased = SL_PRIORITY_BIAS;
		msg.run.flags = rows[i].run;
		rig_send(&peers[i], &msg);
		rig_expect(&peers[i], SL_MSG_RUN_REPLY, &msg);
		assert_int_equal(msg.run_reply.ok, 1);
	}
	assert_int_equal(rig_uses(rig, uses, SL_ARRAY_LEN(rows)), SL_ARRAY_LEN(rows));
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++)
		assert_int_equal(uses[i].flags, rows[i].use);
	bad = greeted(rig);
	sl_wire_init(&msg, SL_MSG_RUN);
	msg.run.gpu_count = 1;
	msg.run.priority_biased = SL_PRIORITY_BIAS;
	msg.run.flags = SL_RUN_OOM_FIRST | SL_RUN_OOM_WAIT;
	rig_send(&bad, &msg);
	rig_expect(&bad, SL_MSG_RUN_REPLY, &msg);
	assert_int_equal(msg.run_reply.ok, 0);
	assert_non_null(strstr(msg.run_reply.text, "--oom-first"));
	rig_peer_end(&bad);
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++)
		rig_peer_end(&peers[i]);
}

static void mistakes_change_nothing(void **state)
{
	struct rig *rig = *state;
	struct sl_msg_use_row row = {0};
	struct rig_peer a, b, self;
	struct {
		union sl_msg msg;
		const char *words;
	} rows[] = {
		{set_msg(0, "alpha", 0), "nothing that can be set"},
		{set_msg(0, "alpha", 1u << 30), "nothing that can be set"},
		{set_bytes("alpha", 1ull << 60, 0), "--request is no amount"},
		{set_bytes("alpha", 0, 1ull << 60), "--limit is no amount"},
		{set_msg(0, "alpha", SL_SET_PRIORITY), "--priority"},
		{set_msg(0, "alpha", SL_SET_FLAGS), "flag"},
		{set_msg(0, "alpha", SL_SET_CHAIN), "no chain of resolvers"},
		{set_msg(0, "alpha", SL_SET_CHAIN),
			"priority, which is not among the resolvers of this node"},
		{set_bytes("alpha", 4 * RIG_GIB, 3 * RIG_GIB), "below the request"},
		{set_bytes("alpha", 0, RIG_GIB), "below the request"},
		{set_bytes("alpha", 14 * RIG_GIB, 15 * RIG_GIB),
			"others' requests and held memory leave"},
		{set_bytes("alpha", 100 * RIG_GIB, 100 * RIG_GIB), "can share"},
		{set_bytes("nobody", RIG_GIB, 0), "there is no workload 'nobody'"},
		{set_msg(77, "", SL_SET_PRIORITY), "there is no workload 77"},
	};

	rows[4].msg.set.priority_biased = SL_PRIORITY_BIAS + 1001;
	rows[5].msg.set.flags = 1u << 10;
	rows[6].msg.set.flags = 9u << SL_RUN_CHAIN_SHIFT;
	rows[7].msg.set.flags = (uint32_t)SL_RESOLVER_PRIORITY << SL_RUN_CHAIN_SHIFT;
	rig_start(rig, NULL);
	a = greeted(rig);
	b = greeted(rig);
	self = greeted(rig);
	run(&a, "alpha", 2 * RIG_GIB, 4 * RIG_GIB);
	run(&b, "beta", 2 * RIG_GIB, 0);
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_msg_set_reply reply = set(&self, rows[i].msg);

		if (reply.ok || !strstr(reply.text, rows[i].words))
			fail_msg("row %zu: ok %u, want '%s', got '%s'", i, reply.ok,
				rows[i].words, reply.text);
	}
	(void)rig_uses(rig, &row, 1);
	assert_int_equal(row.request_bytes, 2 * RIG_GIB);
	assert_int_equal(row.limit_bytes, 4 * RIG_GIB);
	assert_int_equal(row.priority_biased, SL_PRIORITY_BIAS);
	assert_int_equal(row.flags, 0);
	rig_peer_end(&self);
	rig_peer_end(&b);
	rig_peer_end(&a);
}

static void names_prefer_the_callers_own(void **state)
{
	struct rig *rig = *state;
	struct rig_peer mine, theirs, third, self;
	struct sl_msg_set_reply reply;
	char number[24];

	if (getuid() != 0)
		skip();
	rig_start(rig, NULL);
	theirs = greeted_as(rig, OTHER_USER, OTHER_USER);
	run(&theirs, "train", RIG_GIB, 0);
	self = greeted(rig);
	/* Root's, though it has none of this name: there is one only. */
	reply = set(&self, set_bytes("train", 2 * RIG_GIB, 2 * RIG_GIB));
	assert_int_equal(reply.ok, 1);
	assert_int_equal(reply.workload, theirs.workload);
	third = greeted_as(rig, OTHER_USER + 1, OTHER_USER);
	run(&third, "train", RIG_GIB, 0);
	reply = set(&self, set_bytes("train", RIG_GIB, RIG_GIB));
	assert_int_equal(reply.ok, 0);
	assert_non_null(strstr(reply.text, "several users"));
	assert_non_null(strstr(reply.text, "give the number"));
	(void)snprintf(
		number, sizeof(number), "%llu", (unsigned long long)third.workload);
	reply = set(&self, set_bytes(number, RIG_GIB, RIG_GIB));
	assert_int_equal(reply.ok, 1);
	assert_int_equal(reply.workload, third.workload);
	mine = greeted(rig);
	run(&mine, "train", RIG_GIB, 0);
	reply = set(&self, set_bytes("train", RIG_GIB, RIG_GIB));
	assert_int_equal(reply.ok, 1);
	assert_int_equal(reply.workload, mine.workload);
	rig_peer_end(&self);
	rig_peer_end(&mine);
	rig_peer_end(&third);
	rig_peer_end(&theirs);
}

static void others_may_not(void **state)
{
	struct rig *rig = *state;
	struct rig_peer owner, stranger;
	struct sl_msg_use_row row = {0};
	union sl_msg msg;

	if (getuid() != 0)
		skip();
	rig_start(rig, NULL);
	owner = greeted_as(rig, OTHER_USER, OTHER_USER);
	run(&owner, "train", RIG_GIB, 2 * RIG_GIB);
	stranger = greeted_as(rig, OTHER_USER + 1, OTHER_USER);
	msg = set_bytes("train", 2 * RIG_GIB, 0);
	rig_send(&stranger, &msg);
	rig_expect(&stranger, SL_MSG_REJECT, &msg);
	assert_int_equal(msg.reject.reason, SL_REJECT_DENIED);
	assert_non_null(strstr(msg.reject.text, "belongs to user 12345"));
	rig_peer_end(&stranger);
	stranger = greeted_as(rig, OTHER_USER + 1, OTHER_USER);
	sl_wire_init(&msg, SL_MSG_STOP);
	msg.stop.workload = owner.workload;
	rig_send(&stranger, &msg);
	rig_expect(&stranger, SL_MSG_REJECT, &msg);
	assert_int_equal(msg.reject.reason, SL_REJECT_DENIED);
	rig_peer_end(&stranger);
	assert_int_equal(rig_uses(rig, &row, 1), 1);
	assert_int_equal(row.request_bytes, RIG_GIB);
	/* Its own may. */
	assert_int_equal(set(&owner, set_bytes("train", 2 * RIG_GIB, 0)).ok, 1);
	rig_peer_end(&owner);
}

/* A process that ignores SIGTERM is killed by the next daemon when its grace period is over. */
static void a_stop_outlives_the_daemon(void **state)
{
	struct rig *rig = *state;
	struct rig_peer deaf, other, self;
	struct sl_msg_use_row row = {0};
	union sl_msg msg;
	int status = 0;

	rig_start(rig, NULL);
	(void)signal(SIGTERM, SIG_IGN);
	deaf = greeted(rig);
	(void)signal(SIGTERM, SIG_DFL);
	other = greeted(rig);
	run(&deaf, "deaf", RIG_GIB, 0);
	run(&other, "other", RIG_GIB, 0);
	self = greeted(rig);
	sl_wire_init(&msg, SL_MSG_STOP);
	msg.stop.grace_ms = 2000;
	msg.stop.workload = deaf.workload;
	rig_send(&self, &msg);
	rig_expect(&self, SL_MSG_STOP_REPLY, &msg);
	assert_int_equal(msg.stop_reply.ok, 1);
	rig_kill_daemon(rig);
	assert_int_equal(waitpid(deaf.pid, &status, WNOHANG), 0);
	rig_start(rig, NULL);
	rig_until(waitpid(deaf.pid, &status, WNOHANG) == deaf.pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	rig_until(rig_uses(rig, &row, 1) == 1);
	assert_int_equal(row.workload, other.workload);
	(void)close(deaf.fd);
	(void)close(deaf.order);
	rig_peer_end(&self);
	rig_peer_end(&other);
}

static void stop_ends_all_of_it(void **state)
{
	struct rig *rig = *state;
	struct rig_peer root, client, self;
	int status = 0;
	union sl_msg msg;

	rig_start(rig, NULL);
	root = greeted(rig);
	run(&root, "alpha", RIG_GIB, 0);
	client = rig_join(rig, &root);
	self = greeted(rig);
	sl_wire_init(&msg, SL_MSG_STOP);
	sl_wire_str(msg.stop.name, sizeof(msg.stop.name), "nobody");
	rig_send(&self, &msg);
	rig_expect(&self, SL_MSG_STOP_REPLY, &msg);
	assert_int_equal(msg.stop_reply.ok, 0);
	assert_non_null(strstr(msg.stop_reply.text, "sluice ps"));
	sl_wire_init(&msg, SL_MSG_STOP);
	msg.stop.grace_ms = UINT32_MAX;
	sl_wire_str(msg.stop.name, sizeof(msg.stop.name), "alpha");
	rig_send(&self, &msg);
	rig_expect(&self, SL_MSG_STOP_REPLY, &msg);
	assert_int_equal(msg.stop_reply.ok, 1);
	assert_int_equal(msg.stop_reply.workload, root.workload);
	assert_int_equal(msg.stop_reply.processes, 2);
	assert_string_equal(msg.stop_reply.name, "alpha");
	assert_int_equal(waitpid(root.pid, &status, 0), root.pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	assert_int_equal(waitpid(client.pid, &status, 0), client.pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	rig_until(rig_uses(rig, NULL, 0) == 0);
	(void)close(root.fd);
	(void)close(root.order);
	(void)close(client.fd);
	(void)close(client.order);
	rig_peer_end(&self);
}

/* RUN of a user against bounds: refused with the number, or taken. */
static void try_run(const struct rig *rig, uid_t uid, gid_t gid, uint64_t request,
	uint64_t limit, int priority, const char *words)
{
	struct rig_peer peer = greeted_as(rig, uid, gid);
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_RUN);
	msg.run.request_kind = msg.run.limit_kind = SL_AMOUNT_BYTES;
	msg.run.request_value = request;
	msg.run.limit_value = limit;
	msg.run.gpu_count = 1;
	msg.run.priority_biased = (uint32_t)(SL_PRIORITY_BIAS + priority);
	rig_send(&peer, &msg);
	rig_expect(&peer, SL_MSG_RUN_REPLY, &msg);
	if (!words && !msg.run_reply.ok)
		fail_msg("refused: %s", msg.run_reply.text);
	if (words && (msg.run_reply.ok || !strstr(msg.run_reply.text, words)))
		fail_msg("want '%s', got %u '%s'", words, msg.run_reply.ok,
			msg.run_reply.text);
	rig_peer_end(&peer);
	rig_until(rig_uses(rig, NULL, 0) == 0);
}

static void bounds_hold(void **state)
{
	struct rig *rig = *state;
	struct sl_msg_set_reply reply;
	struct rig_peer peer, second, self;
	union sl_msg msg;

	if (getuid() != 0)
		skip();
	rig_start(rig,
		"bounds:\n"
		"  default: {max_request: 1GiB, max_limit: 4GiB, max_priority: 0}\n"
		"  group 777: {max_request: 3GiB, max_workloads: 1}\n"
		"  user 500: {max_priority: 9}\n");
	try_run(rig, 400, 400, RIG_GIB, 4 * RIG_GIB, 0, NULL);
	try_run(rig, 400, 400, 2 * RIG_GIB, 4 * RIG_GIB, 0, "exceeds the 1 GiB that");
	try_run(rig, 400, 400, RIG_GIB, 5 * RIG_GIB, 0, "exceeds the 4 GiB that");
	try_run(rig, 400, 400, RIG_GIB, RIG_GIB, 1, "priority 1 exceeds the 0 that");
	/* of a group, as a supplementary one */
	try_run(rig, 400, 777, 3 * RIG_GIB, 8 * RIG_GIB, 50, NULL);
	try_run(rig, 400, 777, 4 * RIG_GIB, 8 * RIG_GIB, 50, "exceeds the 3 GiB that");
	/* a row of its own */
	try_run(rig, 500, 777, 8 * RIG_GIB, 8 * RIG_GIB, 9, NULL);
	try_run(rig, 500, 777, 8 * RIG_GIB, 8 * RIG_GIB, 10, "priority 10 exceeds the 9");
	/* root is free */
	try_run(rig, 0, 0, 8 * RIG_GIB, 8 * RIG_GIB, 100, NULL);
	/* The number of workloads; and SET is held to the same, for the values it changes. */
	peer = greeted_as(rig, 400, 777);
	run(&peer, "one", RIG_GIB, RIG_GIB);
	second = greeted_as(rig, 400, 777);
	rig_send_run(&second, RIG_GIB, RIG_GIB, 1, "two", NULL);
	rig_expect(&second, SL_MSG_RUN_REPLY, &msg);
	assert_int_equal(msg.run_reply.ok, 0);
	assert_non_null(strstr(msg.run_reply.text, "allows you 1 at a time"));
	reply = set(&second, set_bytes("one", 4 * RIG_GIB, 4 * RIG_GIB));
	assert_int_equal(reply.ok, 0);
	assert_non_null(strstr(reply.text, "exceeds the 3 GiB that"));
	assert_int_equal(set(&second, set_bytes("one", 2 * RIG_GIB, 4 * RIG_GIB)).ok, 1);
	self = greeted(rig);
	assert_int_equal(set(&self, set_bytes("one", 5 * RIG_GIB, 5 * RIG_GIB)).ok, 1);
	/* Read anew, they hold for later workloads. */
	rig_configure(rig, "bounds: {}\n");
	rig_send_run(&second, 2 * RIG_GIB, 0, 1, "two", NULL);
	rig_expect(&second, SL_MSG_RUN_REPLY, &msg);
	assert_int_equal(msg.run_reply.ok, 1);
	rig_peer_end(&self);
	rig_peer_end(&second);
	rig_peer_end(&peer);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(set_takes_effect_and_survives),
		TEST(a_promise_without_a_journal_says_so),
		TEST(events_say_what_changed_and_who_asked),
		TEST(run_takes_flags_and_defaults),
		TEST(mistakes_change_nothing),
		TEST(names_prefer_the_callers_own),
		TEST(others_may_not),
		TEST(stop_ends_all_of_it),
		TEST(a_stop_outlives_the_daemon),
		TEST(bounds_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
