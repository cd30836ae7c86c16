/* Projects over the wire: which users may change them, rows in and out of order, several that
 * change at once. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/projects/wire.h"
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

static struct rig_peer greet(struct rig_peer peer)
{
	union sl_msg msg;

	rig_hello(&peer, SL_ROLE_CONTROL, 0);
	rig_expect(&peer, SL_MSG_WELCOME, &msg);
	return peer;
}

static union sl_msg put_msg(
	const char *name, const char *parent, uint32_t index, uint32_t count)
{
	struct sl_project_row row;
	union sl_msg msg;

	sl_project_defaults(&row, name);
	(void)snprintf(row.parent, sizeof(row.parent), "%s", parent);
	row.quota.of[SL_RES_GPU] = 1000;
	sl_wire_init(&msg, SL_MSG_PROJECT_PUT);
	sl_project_to_put(&row, &msg.project_put);
	msg.project_put.index = index;
	msg.project_put.count = count;
	return msg;
}

static void put(const struct rig_peer *peer, const char *name, const char *parent,
	uint32_t index, uint32_t count)
{
	union sl_msg msg = put_msg(name, parent, index, count);

	rig_send(peer, &msg);
}

static void send_delete(const struct rig_peer *peer, const char *name)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_PROJECT_DELETE);
	sl_wire_str(msg.project_delete.name, sizeof(msg.project_delete.name), name);
	rig_send(peer, &msg);
}

static struct sl_msg_project_reply reply(const struct rig_peer *peer)
{
	union sl_msg msg;

	rig_expect(peer, SL_MSG_PROJECT_REPLY, &msg);
	return msg.project_reply;
}

static void expect_no(const struct rig_peer *peer, const char *name, const char *what)
{
	struct sl_msg_project_reply said = reply(peer);

	assert_int_equal(said.ok, 0);
	assert_string_equal(said.name, name);
	if (!strstr(said.text, what))
		fail_msg("'%s' does not contain '%s'", said.text, what);
}

static void expect_reject(const struct rig_peer *peer, enum sl_reject reason)
{
	union sl_msg msg;

	rig_expect(peer, SL_MSG_REJECT, &msg);
	assert_int_equal(msg.reject.reason, reason);
	rig_expect_closed(peer);
}

/* The names that LIST tells, with a blank behind each; how many. */
static uint32_t list(const struct rig *rig, char names[1024])
{
	struct rig_peer peer = greet(rig_peer(rig));
	union sl_msg msg;
	uint32_t rows;

	names[0] = '\0';

	sl_wire_init(&msg, SL_MSG_LIST);
	msg.list.what = SL_LIST_STATUS;
	rig_send(&peer, &msg);
	rig_expect(&peer, SL_MSG_STATUS_ROW, &msg);
	rig_expect(&peer, SL_MSG_LIST_END, &msg);
	sl_wire_init(&msg, SL_MSG_LIST);
	msg.list.what = SL_LIST_PROJECTS;
	rig_send(&peer, &msg);
	/* default is among them, so there is one at least, and each says how many there are. */
	rig_expect(&peer, SL_MSG_PROJECT_ROW, &msg);
	rows = msg.project_row.count;
	for (uint32_t i = 0;; i++) {
		assert_int_equal(msg.project_row.index, i);
		(void)strcat(strcat(names, msg.project_row.name), " ");
		if (i + 1 == rows)
			break;
		rig_expect(&peer, SL_MSG_PROJECT_ROW, &msg);
	}
	rig_expect(&peer, SL_MSG_LIST_END, &msg);
	rig_peer_end(&peer);
	return rows;
}

static void expect_list(const struct rig *rig, const char *wanted)
{
	char names[1024];

	(void)list(rig, names);
	assert_string_equal(names, wanted);
}

static void taken_whole_or_not_at_all(void **state)
{
	struct rig *rig = *state;
	struct sl_msg_project_reply said;
	struct rig_peer peer;

	rig_start(rig, NULL);
	peer = greet(rig_peer(rig));
	put(&peer, "b", "a", 0, 2);
	rig_expect_silence(&peer, 50);
	expect_list(rig, "default ");
	put(&peer, "a", "", 1, 2);
	said = reply(&peer);
	assert_int_equal(said.ok, 1);
	assert_int_equal(said.added, 2);
	expect_list(rig, "a b default ");
	put(&peer, "c", "", 0, 2);
	put(&peer, "d", "nowhere", 1, 2);
	expect_no(&peer, "d", "there is no project nowhere");
	put(&peer, "c", "", 0, 2);
	put(&peer, "c", "", 1, 2);
	expect_no(&peer, "", "c comes twice");
	send_delete(&peer, "a");
	expect_no(&peer, "", "has children, b for one");
	send_delete(&peer, "b");
	assert_int_equal(reply(&peer).removed, 1);
	expect_list(rig, "a default ");
	/* A leaf is changed, and as it was. */
	put(&peer, "a", "", 0, 1);
	said = reply(&peer);
	assert_int_equal(said.added + said.changed, 0);
	rig_peer_end(&peer);
	rig_kill_daemon(rig);
	rig_start(rig, NULL);
	expect_list(rig, "a default ");
}

static void rows_that_no_sluice_sends(void **state)
{
	struct rig *rig = *state;
	struct rig_peer peer;
	union sl_msg msg;

	rig_start(rig, NULL);
	peer = greet(rig_peer(rig));
	msg = put_msg("../a", "", 0, 1);
	rig_send(&peer, &msg);
	expect_no(&peer, "", "no name of a project");
	msg = put_msg("a", "", 0, 1);
	msg.project_put.gpu_quota = (uint64_t)INT64_MIN;
	rig_send(&peer, &msg);
	expect_no(&peer, "a", "negative or too large");
	msg = put_msg("a", "", 0, 1);
	msg.project_put.memory_limit = INT64_MAX;
	rig_send(&peer, &msg);
	expect_no(&peer, "a", "negative or too large");
	msg = put_msg("a", "", 0, 1);
	msg.project_put.priority_biased = UINT32_MAX;
	rig_send(&peer, &msg);
	expect_no(&peer, "a", "a field is not what it may be");
	msg = put_msg("a", "", 0, 1);
	(void)strcpy(msg.project_put.users, "x\n,y");
	rig_send(&peer, &msg);
	expect_no(&peer, "a", "a field is not what it may be");
	/* The connection lives on, and nothing of it is there. */
	put(&peer, "b", "", 0, 1);
	assert_int_equal(reply(&peer).added, 1);
	expect_list(rig, "b default ");
	rig_peer_end(&peer);
}

static void rows_out_of_order(void **state)
{
	static const uint32_t wrong[][2] = {
		{1, 2}, {0, 0}, {0, SL_PROJECTS_MAX + 1}, {UINT32_MAX, UINT32_MAX}};
	struct rig *rig = *state;
	struct rig_peer peer;

	rig_start(rig, NULL);
	for (size_t i = 0; i < SL_ARRAY_LEN(wrong); i++) {
		peer = greet(rig_peer(rig));
		put(&peer, "a", "", wrong[i][0], wrong[i][1]);
		expect_reject(&peer, SL_REJECT_PROTOCOL);
		rig_peer_end(&peer);
	}
	peer = greet(rig_peer(rig));
	put(&peer, "a", "", 0, 3);
	put(&peer, "b", "", 1, 2);
	expect_reject(&peer, SL_REJECT_PROTOCOL);
	rig_peer_end(&peer);
	peer = greet(rig_peer(rig));
	put(&peer, "a", "", 0, 3);
	send_delete(&peer, "default");
	expect_reject(&peer, SL_REJECT_PROTOCOL);
	rig_peer_end(&peer);
	peer = greet(rig_peer(rig));
	send_delete(&peer, "");
	expect_reject(&peer, SL_REJECT_PROTOCOL);
	rig_peer_end(&peer);
	expect_list(rig, "default ");
}

static void others_may_look(void **state)
{
	struct rig *rig = *state;
	struct rig_peer peer;
	union sl_msg msg;

	if (geteuid() != 0)
		skip();
	rig_start(rig, NULL);
	peer = greet(rig_peer_as(rig, OTHER_USER, OTHER_USER));
	sl_wire_init(&msg, SL_MSG_LIST);
	msg.list.what = SL_LIST_PROJECTS;
	rig_send(&peer, &msg);
	rig_expect(&peer, SL_MSG_PROJECT_ROW, &msg);
	rig_expect(&peer, SL_MSG_LIST_END, &msg);
	put(&peer, "a", "", 0, 1);
	expect_reject(&peer, SL_REJECT_DENIED);
	rig_peer_end(&peer);
	peer = greet(rig_peer_as(rig, OTHER_USER, OTHER_USER));
	send_delete(&peer, "default");
	expect_reject(&peer, SL_REJECT_DENIED);
	rig_peer_end(&peer);
	expect_list(rig, "default ");
}

static struct sl_msg_run_reply run_in(
	const struct rig *rig, uid_t uid, gid_t gid, const char *project)
{
	struct rig_peer peer = greet(rig_peer_as(rig, uid, gid));
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_RUN);
	msg.run.gpu_count = 1;
	msg.run.priority_biased = SL_PRIORITY_BIAS;
	sl_wire_str(msg.run.project, sizeof(msg.run.project), project);
	sl_wire_str(msg.run.command, sizeof(msg.run.command), "train");
	rig_send(&peer, &msg);
	rig_expect(&peer, SL_MSG_RUN_REPLY, &msg);
	rig_peer_end(&peer);
	return msg.run_reply;
}

static void only_whom_it_names(void **state)
{
	static const struct {
		uid_t uid;
		gid_t gid;
		const char *project, *says; /* NULL: it is admitted */
	} rows[] = {
		{OTHER_USER, OTHER_USER, "lab", NULL},
		{OTHER_USER + 1, OTHER_USER + 1, "lab", "is for others"},
		{OTHER_USER + 1, 777, "lab", NULL},
		/* As its parent, for it says nothing. */
		{OTHER_USER, OTHER_USER, "part", NULL},
		{OTHER_USER + 1, OTHER_USER + 1, "part", "is for others"},
		/* A project with unknown names only is not open to all users. */
		{OTHER_USER, OTHER_USER, "ghosts", "is for others"},
		{OTHER_USER + 1, OTHER_USER + 1, "default", NULL},
		{OTHER_USER + 1, OTHER_USER + 1, "gohsts", "did you mean 'ghosts'?"},
		{0, 0, "a-word", "there is no project 'a-word'; sluice project list"},
		{0, 0, "ghosts", NULL},
	};
	struct rig *rig = *state;
	struct rig_peer peer;
	union sl_msg msg;

	if (geteuid() != 0)
		skip();
	rig_start(rig, NULL);
	peer = greet(rig_peer(rig));
	msg = put_msg("lab", "", 0, 3);
	(void)strcpy(msg.project_put.users, "4711,12345");
	(void)strcpy(msg.project_put.groups, "777");
	rig_send(&peer, &msg);
	put(&peer, "part", "lab", 1, 3);
	msg = put_msg("ghosts", "", 2, 3);
	(void)strcpy(msg.project_put.users, "no-such-user");
	rig_send(&peer, &msg);
	assert_int_equal(reply(&peer).added, 3);
	assert_true(rig_log_gets(rig, "project ghosts names user no-such-user, whom"));
	rig_peer_end(&peer);
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_msg_run_reply said =
			run_in(rig, rows[i].uid, rows[i].gid, rows[i].project);

		if (said.ok != !rows[i].says ||
			(rows[i].says && !strstr(said.text, rows[i].says)))
			fail_msg("user %u, group %u in %s: %s", (unsigned int)rows[i].uid,
				(unsigned int)rows[i].gid, rows[i].project, said.text);
	}
	/* The next daemon knows it, too. */
	rig_kill_daemon(rig);
	rig_start(rig, NULL);
	assert_int_equal(run_in(rig, OTHER_USER, OTHER_USER, "lab").ok, 1);
	assert_int_equal(run_in(rig, OTHER_USER + 1, OTHER_USER + 1, "lab").ok, 0);
}

/* Each change is judged against the state when its turn has come: of many children that each ask
 * for their parent's quota, one gets it. */
static void several_at_once(void **state)
{
	enum { PEERS = 8 };
	struct rig *rig = *state;
	struct rig_peer peer[PEERS];
	unsigned int taken = 0;
	char name[8], names[1024];

	rig_start(rig, NULL);
	for (int i = 0; i < PEERS; i++)
		peer[i] = greet(rig_peer(rig));
	put(&peer[0], "top", "", 0, 1);
	assert_int_equal(reply(&peer[0]).added, 1);
	/* No change waits for half of another. */
	for (int i = 0; i < PEERS; i++) {
		(void)snprintf(name, sizeof(name), "p%d", i);
		put(&peer[i], name, "top", 0, 2);
	}
	for (int i = 0; i < PEERS; i++) {
		(void)snprintf(name, sizeof(name), "q%d", i);
		put(&peer[i], name, "", 1, 2);
	}
	/* A client that goes without its answer disturbs no other, whether its change was
	 * the accepted one or not. */
	rig_peer_end(&peer[1]);
	for (int i = 0; i < PEERS; i++)
		taken += i == 1 ? 0 : reply(&peer[i]).ok;
	assert_true(taken <= 1);
	put(&peer[2], "half", "", 0, 2);
	rig_peer_end(&peer[2]);
	put(&peer[3], "last", "", 0, 1);
	assert_int_equal(reply(&peer[3]).added, 1);
	for (int i = 0; i < PEERS; i++) {
		if (i != 1 && i != 2)
			rig_peer_end(&peer[i]);
	}
	/* default, top, last, a p and its q. */
	assert_int_equal(list(rig, names), 5);
	assert_null(strstr(names, "half"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(taken_whole_or_not_at_all),
		TEST(rows_that_no_sluice_sends),
		TEST(rows_out_of_order),
		TEST(others_may_look),
		TEST(only_whom_it_names),
		TEST(several_at_once),
	};

	return cmocka_run_group_tests_name("projects_room", tests, NULL, NULL);
}
