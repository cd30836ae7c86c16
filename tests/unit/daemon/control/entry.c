/* Workloads with a socket of their own: a process that connects there belongs to it, whatever
 * it says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../rig.h"

#define CONFIG "context_reserve: 1GiB\nmeasure_interval: 50ms\nrecover_wait: 1s\n"
#define KEY    "0f8b3c1e-7d7f-4e2a-9a55-1f6f0e1b2c3d"
#define USER   4711

static char folder[128];

static int setup(void **state)
{
	static struct rig rig;

	rig_init(&rig, 1, 16 * RIG_GIB);
	rig_start(&rig, CONFIG);
	*state = &rig;
	return 0;
}

static int teardown(void **state)
{
	rig_fini(*state);
	return 0;
}

static struct rig_peer control(const struct rig *rig)
{
	struct rig_peer peer = rig_peer(rig);
	union sl_msg msg;

	rig_hello(&peer, SL_ROLE_CONTROL, 0);
	rig_expect(&peer, SL_MSG_WELCOME, &msg);
	return peer;
}

static union sl_msg add_message(const char *key, uint64_t request, uint64_t limit)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_ENTRY_ADD);
	msg.entry_add.request_kind = msg.entry_add.limit_kind = SL_AMOUNT_BYTES;
	msg.entry_add.request_value = request;
	msg.entry_add.limit_value = limit;
	msg.entry_add.gpu_count = 1;
	msg.entry_add.priority_biased = SL_PRIORITY_BIAS;
	sl_wire_str(msg.entry_add.key, sizeof(msg.entry_add.key), key);
	sl_wire_str(msg.entry_add.name, sizeof(msg.entry_add.name), "team.notebook");
	sl_wire_str(msg.entry_add.command, sizeof(msg.entry_add.command),
		"pod team/notebook");
	return msg;
}

static struct sl_msg_entry_reply add(const struct rig *rig, const char *key)
{
	struct rig_peer peer = control(rig);
	union sl_msg msg = add_message(key, 6 * RIG_GIB, 12 * RIG_GIB);

	rig_send(&peer, &msg);
	rig_expect(&peer, SL_MSG_ENTRY_REPLY, &msg);
	rig_peer_end(&peer);
	if (!msg.entry_reply.ok)
		fail_msg("refused: %s", msg.entry_reply.text);
	return msg.entry_reply;
}

static void end(const struct rig *rig, const char *key)
{
	struct rig_peer peer = control(rig);
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_ENTRY_END);
	sl_wire_str(msg.entry_end.key, sizeof(msg.entry_end.key), key);
	rig_send(&peer, &msg);
	rig_expect(&peer, SL_MSG_ENTRY_REPLY, &msg);
	assert_int_equal(msg.entry_reply.ok, 1);
	rig_peer_end(&peer);
}

/* As a container does, which sees the folder alone, and has users of its own. */
static void enter(void)
{
	assert_int_equal(chdir(folder), 0);
	if (geteuid() == 0)
		assert_int_equal(setresuid(USER, USER, USER), 0);
}

static struct rig_peer inside(
	const struct rig *rig, const struct sl_msg_entry_reply *entry)
{
	struct rig in = *rig;

	sl_wire_str(folder, sizeof(folder), entry->folder);
	sl_wire_str(in.socket, sizeof(in.socket), "sluiced.sock");
	return rig_peer_after(&in, enter);
}

static struct rig_peer join(const struct rig *rig, const struct sl_msg_entry_reply *entry)
{
	struct rig_peer run = {.workload = entry->workload};
	struct rig_peer peer = inside(rig, entry);

	/* An unknown token. */
	memset(run.token, 7, sizeof(run.token));
	rig_join_as(&peer, &run, 0);
	return peer;
}

static void whoever_connects_belongs_to_it(void **state)
{
	struct rig *rig = *state;
	struct sl_msg_entry_reply entry = add(rig, KEY), again = add(rig, KEY);
	struct sl_msg_use_row use;
	struct rig_peer peer;

	assert_int_equal(again.workload, entry.workload);
	assert_string_equal(again.folder, entry.folder);
	assert_string_equal(entry.name, "team.notebook");
	assert_int_equal(entry.request_bytes, 6 * RIG_GIB);
	assert_int_equal(rig_uses(rig, &use, 1), 1);
	assert_int_equal(use.state, SL_STATE_RESERVED);
	assert_int_equal(use.request_bytes, 6 * RIG_GIB);
	peer = join(rig, &entry);
	rig_hold(rig, &peer, 1, 10 * RIG_GIB);
	assert_int_equal(rig_uses(rig, &use, 1), 1);
	assert_int_equal(use.workload, entry.workload);
	assert_int_equal(use.backing_bytes, 10 * RIG_GIB);
	/* Beyond its limit it gets nothing. */
	rig_ask(&peer, 2, 3 * RIG_GIB);
	rig_expect(&peer, SL_MSG_DENY, &(union sl_msg){0});
	/* It outlives its processes. */
	rig_nvml(rig, peer.pid, 0);
	rig_peer_end(&peer);
	rig_until(
		rig_uses(rig, &use, 1) == 1 && use.backing_bytes + use.dying_bytes == 0);
	assert_int_equal(use.state, SL_STATE_RESERVED);
	peer = join(rig, &entry);
	end(rig, KEY);
	assert_int_equal(rig_uses(rig, &use, 1), 1);
	assert_int_equal(access(entry.folder, F_OK), -1);
	rig_peer_end(&peer);
	rig_until(rig_uses(rig, NULL, 0) == 0);
	end(rig, KEY);
}

static void nothing_else_gets_in(void **state)
{
	struct rig *rig = *state;
	struct sl_msg_entry_reply entry = add(rig, KEY);
	struct rig_peer peer = inside(rig, &entry);
	struct stat stat_;
	char above[160];
	union sl_msg msg;

	/* The command line could change what the container has. */
	rig_hello(&peer, SL_ROLE_CONTROL, 0);
	rig_expect(&peer, SL_MSG_REJECT, &msg);
	assert_int_equal(msg.reject.reason, SL_REJECT_DENIED);
	rig_peer_end(&peer);
	/* And the daemon's own socket is no way into the workload. */
	peer = rig_peer(rig);
	rig_hello(&peer, SL_ROLE_CLIENT, 0);
	rig_expect(&peer, SL_MSG_REJECT, &msg);
	assert_int_equal(msg.reject.reason, SL_REJECT_WORKLOAD);
	rig_peer_end(&peer);
	/* Other users of the machine do not come near. */
	(void)snprintf(above, sizeof(above), "%s/..", entry.folder);
	assert_int_equal(stat(above, &stat_), 0);
	assert_int_equal(stat_.st_mode & 0777, 0700);
	/* Its end is the container's. */
	peer = control(rig);
	sl_wire_init(&msg, SL_MSG_STOP);
	msg.stop.workload = entry.workload;
	rig_send(&peer, &msg);
	rig_expect(&peer, SL_MSG_STOP_REPLY, &msg);
	assert_int_equal(msg.stop_reply.ok, 0);
	assert_non_null(strstr(msg.stop_reply.text, "pod team/notebook"));
	rig_peer_end(&peer);
	/* A connection from before the end is not let in after it. */
	peer = inside(rig, &entry);
	end(rig, KEY);
	rig_until(rig_uses(rig, NULL, 0) == 0);
	rig_hello(&peer, SL_ROLE_CLIENT, 0);
	rig_expect(&peer, SL_MSG_REJECT, &msg);
	assert_int_equal(msg.reject.reason, SL_REJECT_WORKLOAD);
	rig_peer_end(&peer);
}

static void refused(const struct rig_peer *peer, union sl_msg msg, const char *words)
{
	rig_send(peer, &msg);
	rig_expect(peer, SL_MSG_ENTRY_REPLY, &msg);
	assert_int_equal(msg.entry_reply.ok, 0);
	if (!strstr(msg.entry_reply.text, words))
		fail_msg("'%s' is not in: %s", words, msg.entry_reply.text);
}

static void what_cannot_be_is_refused(void **state)
{
	static const char *const keys[] = {
		"", ".", "..", "../x", "a/b", ".a", "a b", "\xff"};
	struct rig *rig = *state;
	struct rig_peer peer = control(rig);
	union sl_msg msg;

	for (size_t i = 0; i < SL_ARRAY_LEN(keys); i++)
		refused(&peer, add_message(keys[i], RIG_GIB, RIG_GIB), "the key must be");
	refused(&peer, add_message(KEY, 8 * RIG_GIB, 4 * RIG_GIB), "limit");
	refused(&peer, add_message(KEY, 99 * RIG_GIB, 99 * RIG_GIB), "GiB");
	msg = add_message(KEY, RIG_GIB, RIG_GIB);
	sl_wire_str(msg.entry_add.name, sizeof(msg.entry_add.name), "two words");
	refused(&peer, msg, "--name");
	msg = add_message(KEY, RIG_GIB, RIG_GIB);
	msg.entry_add.flags = SL_RUN_VISIBLE_SET;
	sl_wire_str(msg.entry_add.visible, sizeof(msg.entry_add.visible),
		"GPU-00000000-0000-0000-0000-00000000beef");
	refused(&peer, msg, "GPU");
	assert_int_equal(rig_uses(rig, NULL, 0), 0);
	rig_peer_end(&peer);
	if (geteuid() != 0)
		return;
	peer = rig_peer_as(rig, USER, USER);
	rig_hello(&peer, SL_ROLE_CONTROL, 0);
	rig_expect(&peer, SL_MSG_WELCOME, &msg);
	msg = add_message(KEY, RIG_GIB, RIG_GIB);
	rig_send(&peer, &msg);
	rig_expect(&peer, SL_MSG_REJECT, &msg);
	assert_int_equal(msg.reject.reason, SL_REJECT_DENIED);
	rig_peer_end(&peer);
}

/* A claim's compute request counts beside others'; no GPU has more than its time. */
static void time_is_given_once(void **state)
{
	struct rig *rig = *state;
	struct rig_peer peer = control(rig);
	union sl_msg msg = add_message(KEY, RIG_GIB, RIG_GIB);
	struct sl_msg_use_row row;

	msg.entry_add.compute_request_pm = 400;
	msg.entry_add.compute_limit_pm = 500;
	rig_send(&peer, &msg);
	rig_expect(&peer, SL_MSG_ENTRY_REPLY, &msg);
	assert_int_equal(msg.entry_reply.ok, 1);
	assert_int_equal(rig_uses(rig, &row, 1), 1);
	assert_int_equal(row.compute_request_pm, 400);
	assert_int_equal(row.compute_limit_pm, 500);
	msg = add_message("another", RIG_GIB, RIG_GIB);
	msg.entry_add.flags = SL_RUN_VISIBLE_SET;
	sl_wire_str(msg.entry_add.visible, sizeof(msg.entry_add.visible), "0");
	msg.entry_add.compute_request_pm = 700;
	refused(&peer, msg, "others' compute requests leave 0.6 at best");
	msg.entry_add.compute_limit_pm = 600;
	refused(&peer, msg, "--compute-limit must not be below");
	msg.entry_add.compute_request_pm = msg.entry_add.compute_limit_pm;
	rig_send(&peer, &msg);
	rig_expect(&peer, SL_MSG_ENTRY_REPLY, &msg);
	assert_int_equal(msg.entry_reply.ok, 1);
	rig_peer_end(&peer);
	end(rig, "another");
	end(rig, KEY);
}

/* The claim was placed anew, and its former memory is still there. */
static void the_same_key_elsewhere(void **state)
{
	struct rig rig;
	struct rig_peer peer;
	union sl_msg msg = add_message(KEY, RIG_GIB, RIG_GIB), on_other = msg;

	rig_init(&rig, 2, 16 * RIG_GIB);
	rig_start(&rig, CONFIG);
	peer = control(&rig);
	msg.entry_add.flags = on_other.entry_add.flags = SL_RUN_VISIBLE_SET;
	sl_wire_str(msg.entry_add.visible, sizeof(msg.entry_add.visible), "0");
	sl_wire_str(on_other.entry_add.visible, sizeof(on_other.entry_add.visible), "1");
	rig_send(&peer, &msg);
	rig_expect(&peer, SL_MSG_ENTRY_REPLY, &(union sl_msg){0});
	refused(&peer, on_other, "other GPUs");
	rig_send(&peer, &msg);
	rig_expect(&peer, SL_MSG_ENTRY_REPLY, &msg);
	assert_int_equal(msg.entry_reply.ok, 1);
	rig_peer_end(&peer);
	end(&rig, KEY);
	rig_fini(&rig);
}

/* One container has a quarter of the places at most, even if it runs as root. */
static void one_container_leaves_room(void **state)
{
	struct rig rig;
	struct sl_msg_entry_reply a, b;
	struct rig_peer peers[5];
	union sl_msg msg;

	rig_init(&rig, 1, 16 * RIG_GIB);
	rig_start(&rig, CONFIG "max_clients: 16\n");
	a = add(&rig, "a");
	b = add(&rig, "b");
	for (int i = 0; i < 5; i++)
		peers[i] = inside(&rig, &a);
	rig_expect(&peers[4], SL_MSG_REJECT, &msg);
	assert_int_equal(msg.reject.reason, SL_REJECT_FULL);
	for (int i = 0; i < 5; i++)
		rig_peer_end(&peers[i]);
	peers[0] = join(&rig, &b);
	rig_peer_end(&peers[0]);
	rig_fini(&rig);
}

static void two_of_one_name(void **state)
{
	struct rig *rig = *state;
	struct sl_msg_entry_reply a = add(rig, "a"), b;
	struct rig_peer peer = control(rig);
	union sl_msg msg = add_message("b", RIG_GIB, RIG_GIB);
	unsigned int rows = 0;

	rig_send(&peer, &msg);
	rig_expect(&peer, SL_MSG_ENTRY_REPLY, &msg);
	b = msg.entry_reply;
	assert_int_equal(b.ok, 1);
	assert_string_not_equal(a.name, b.name);
	assert_memory_equal(b.name, "team.notebook", 13);
	sl_wire_init(&msg, SL_MSG_LIST);
	msg.list.what = SL_LIST_ENTRIES;
	rig_send(&peer, &msg);
	for (rig_expect(&peer, SL_MSG_ENTRY_ROW, &msg);; rows++) {
		if (msg.head.type == SL_MSG_LIST_END)
			break;
		assert_string_equal(msg.entry_row.key, rows ? "b" : "a");
		assert_int_equal(rig_receive(&peer, 20000, &msg), SL_WIRE_OK);
	}
	assert_int_equal(rows, 2);
	rig_peer_end(&peer);
	end(rig, "a");
	end(rig, "b");
	assert_int_equal(rig_uses(rig, NULL, 0), 0);
}

static struct sl_msg_entry_reply open_entry(
	const struct rig_peer *peer, uint64_t workload)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_ENTRY_OPEN);
	msg.entry_open.workload = workload;
	rig_send(peer, &msg);
	rig_expect(peer, SL_MSG_ENTRY_REPLY, &msg);
	return msg.entry_reply;
}

/* `sluice run -- podman run`: it ends with its processes, and nothing of it is left. */
static void a_run_may_have_one(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, 6 * RIG_GIB, 12 * RIG_GIB),
			peer = control(rig);
	struct sl_msg_entry_reply entry = open_entry(&peer, run.workload);
	char above[160];
	union sl_msg msg;
	struct stat st;

	assert_int_equal(entry.ok, 0);
	entry = open_entry(&run, run.workload);
	if (!entry.ok)
		fail_msg("refused: %s", entry.text);
	assert_int_equal(open_entry(&run, run.workload).ok, 0);
	assert_int_equal(open_entry(&run, 99).ok, 0);
	/* sluice-kube would end what it does not know. */
	sl_wire_init(&msg, SL_MSG_LIST);
	msg.list.what = SL_LIST_ENTRIES;
	rig_send(&peer, &msg);
	rig_expect(&peer, SL_MSG_LIST_END, &msg);
	rig_peer_end(&peer);
	(void)snprintf(above, sizeof(above), "%s/..", entry.folder);
	assert_int_equal(stat(above, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	peer = join(rig, &entry);
	assert_int_equal(rig_uses(rig, NULL, 0), 1);
	rig_peer_end(&run);
	assert_int_equal(rig_uses(rig, NULL, 0), 1);
	assert_int_equal(access(entry.folder, F_OK), 0);
	rig_peer_end(&peer);
	rig_until(rig_uses(rig, NULL, 0) == 0);
	assert_int_equal(access(entry.folder, F_OK), -1);
}

/* Another user passes through the folders of their own runs, and sees no others. */
static void enter_as_user(void)
{
	assert_int_equal(setresuid(USER, USER, USER), 0);
	assert_int_equal(chdir(folder), 0);
}

static void a_user_reaches_the_own_ones(void **state)
{
	struct rig *rig = *state;
	struct sl_msg_entry_reply entry;
	struct rig_peer run, peer;
	char above[160];
	union sl_msg msg;
	struct rig in;

	if (geteuid() != 0)
		return;
	run = rig_peer_as(rig, USER, USER);
	rig_hello(&run, SL_ROLE_CONTROL, 0);
	rig_expect(&run, SL_MSG_WELCOME, &msg);
	rig_send_run(&run, RIG_GIB, RIG_GIB, 1, "own", NULL);
	rig_expect(&run, SL_MSG_RUN_REPLY, &msg);
	entry = open_entry(&run, msg.run_reply.workload);
	if (!entry.ok)
		fail_msg("refused: %s", entry.text);
	sl_wire_str(folder, sizeof(folder), entry.folder);
	in = *rig;
	sl_wire_str(in.socket, sizeof(in.socket), "sluiced.sock");
	peer = rig_peer_after(&in, enter_as_user);
	rig_hello(&peer, SL_ROLE_CLIENT, 0);
	rig_expect(&peer, SL_MSG_WELCOME, &msg);
	rig_peer_end(&peer);
	/* For others it is shut as before: mask and group rights say so. */
	(void)snprintf(above, sizeof(above),
		"getfacl -cpn %s/.. | tr '\\n' ' ' | "
		"grep -q '^user::rwx user:4711:--x group::--- mask::--x other::--- '",
		entry.folder);
	if (system("command -v getfacl >/dev/null") == 0)
		assert_int_equal(system(above), 0);
	rig_peer_end(&run);
	rig_until(rig_uses(rig, NULL, 0) == 0);
}

/* A container keeps the folder that it has mounted; the socket in it is another daemon's. */
static void a_daemon_that_follows_has_it(void **state)
{
	struct rig *rig = *state;
	struct sl_msg_entry_reply entry = add(rig, KEY), after;
	struct rig_peer peer = join(rig, &entry), late;
	struct stat before, now;
	struct rig_peer run = {.workload = entry.workload};
	struct rig in = *rig;
	union sl_msg msg;

	rig_hold(rig, &peer, 1, 7 * RIG_GIB);
	assert_int_equal(stat(entry.folder, &before), 0);
	rig_kill_daemon(rig);
	rig_start(rig, CONFIG);
	assert_int_equal(stat(entry.folder, &now), 0);
	assert_int_equal(now.st_ino, before.st_ino);
	sl_wire_str(in.socket, sizeof(in.socket), "sluiced.sock");
	rig_reconnect(&in, &peer);
	rig_join_as(&peer, &run, peer.epoch);
	sl_wire_init(&msg, SL_MSG_REPORT);
	msg.report.backing_bytes = 7 * RIG_GIB;
	rig_send(&peer, &msg);
	sl_wire_init(&msg, SL_MSG_REPORTED);
	rig_send(&peer, &msg);
	late = join(rig, &entry);
	rig_hold(rig, &late, 1, RIG_GIB);
	after = add(rig, KEY);
	assert_int_equal(after.workload, entry.workload);
	/* Also one that has no process just then. */
	rig_nvml(rig, peer.pid, 0);
	rig_nvml(rig, late.pid, 0);
	rig_peer_end(&peer);
	rig_peer_end(&late);
	rig_stop(rig);
	rig_start(rig, CONFIG);
	after = add(rig, KEY);
	assert_int_equal(after.workload, entry.workload);
	peer = join(rig, &entry);
	rig_peer_end(&peer);
	end(rig, KEY);
	rig_until(rig_uses(rig, NULL, 0) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			whoever_connects_belongs_to_it, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_else_gets_in, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_cannot_be_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(time_is_given_once, setup, teardown),
		cmocka_unit_test(the_same_key_elsewhere),
		cmocka_unit_test(one_container_leaves_room),
		cmocka_unit_test_setup_teardown(two_of_one_name, setup, teardown),
		cmocka_unit_test_setup_teardown(a_run_may_have_one, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_user_reaches_the_own_ones, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_daemon_that_follows_has_it, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
