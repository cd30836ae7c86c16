/* Peers of other versions of the protocol: what they get, and what they are told. */
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "rig.h"

static int setup(void **state)
{
	static struct rig rig;

	rig_init(&rig, 1, 16 * RIG_GIB);
	rig_start(&rig, "resolvers: priority wait\n");
	*state = &rig;
	return 0;
}

static int teardown(void **state)
{
	rig_fini(*state);
	return 0;
}

static void send_as(const struct rig_peer *peer, uint32_t version, union sl_msg *msg)
{
	msg->head.version = version;
	rig_send(peer, msg);
}

/* The next message of this type, whose version must be the peer's; GPU messages are checked and
 * passed over. */
static union sl_msg expect_as(
	const struct rig_peer *peer, uint32_t version, enum sl_msg_type type)
{
	union sl_msg msg;

	do {
		struct pollfd ready = {.fd = peer->fd, .events = POLLIN};

		assert_int_equal(poll(&ready, 1, 5000), 1);
		assert_int_equal(
			sl_wire_recv(peer->fd, SL_FROM_DAEMON, &msg, NULL), SL_WIRE_OK);
		assert_int_equal(msg.head.version, version);
		assert_true(sl_wire_since(msg.head.type) <= version);
	} while (msg.head.type == SL_MSG_GPU && type != SL_MSG_GPU);
	assert_string_equal(sl_wire_name(msg.head.type), sl_wire_name(type));
	return msg;
}

static void hello_as(const struct rig_peer *peer, uint32_t version, enum sl_role role,
	uint32_t token_of)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_HELLO);
	msg.hello.role = role;
	if (token_of)
		memcpy(msg.hello.token, peer->token, sizeof(msg.hello.token));
	send_as(peer, version, &msg);
}

/* A whole life in version 1: run, join, ask, wait, free. */
static void version_1_lives(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_peer(rig), client = rig_peer(rig);
	union sl_msg msg;

	if (!rig_kernel_names_processes())
		skip();
	hello_as(&run, 1, SL_ROLE_CONTROL, 0);
	(void)expect_as(&run, 1, SL_MSG_WELCOME);
	sl_wire_init(&msg, SL_MSG_RUN);
	msg.run.request_kind = msg.run.limit_kind = SL_AMOUNT_BYTES;
	msg.run.request_value = RIG_GIB;
	msg.run.limit_value = 2 * RIG_GIB;
	msg.run.gpu_count = 1;
	msg.run.priority_biased = SL_PRIORITY_BIAS;
	send_as(&run, 1, &msg);
	msg = expect_as(&run, 1, SL_MSG_RUN_REPLY);
	assert_int_equal(msg.run_reply.ok, 1);
	memcpy(client.token, msg.run_reply.token, sizeof(client.token));
	hello_as(&client, 1, SL_ROLE_CLIENT, 1);
	(void)expect_as(&client, 1, SL_MSG_WELCOME);
	(void)expect_as(&client, 1, SL_MSG_GPU);
	sl_wire_init(&msg, SL_MSG_REPORTED);
	send_as(&client, 1, &msg);
	sl_wire_init(&msg, SL_MSG_ASK);
	msg.ask.ask = 1;
	msg.ask.bytes = RIG_GIB;
	send_as(&client, 1, &msg);
	msg = expect_as(&client, 1, SL_MSG_GRANT);
	rig_nvml(rig, client.pid, RIG_GIB);
	msg.commit = (struct sl_msg_commit){.head = {.type = SL_MSG_COMMIT},
		.epoch = msg.grant.epoch,
		.used_bytes = RIG_GIB};
	send_as(&client, 1, &msg);
	sl_wire_init(&msg, SL_MSG_ASK);
	msg.ask.ask = 2;
	msg.ask.bytes = 8 * RIG_GIB;
	send_as(&client, 1, &msg);
	msg = expect_as(&client, 1, SL_MSG_DENY);
	assert_int_equal(msg.deny.ask, 2);
	/* The resolver `priority` watches every process that can be watched: not this one. */
	rig_expect_silence(&client, 50);
	/* Its lists are as they were. */
	sl_wire_init(&msg, SL_MSG_LIST);
	msg.list.what = SL_LIST_USES;
	send_as(&run, 1, &msg);
	msg = expect_as(&run, 1, SL_MSG_USE_ROW);
	assert_int_equal(msg.use_row.backing_bytes, RIG_GIB);
	(void)expect_as(&run, 1, SL_MSG_LIST_END);
	rig_peer_end(&client);
	rig_nvml(rig, client.pid, 0);
	rig_peer_end(&run);
}

static void expect_reject(const struct rig_peer *peer, uint32_t reason, const char *words)
{
	union sl_msg msg;

	rig_expect(peer, SL_MSG_REJECT, &msg);
	assert_int_equal(msg.reject.reason, reason);
	assert_int_equal(msg.reject.daemon_version, SL_PROTOCOL_VERSION);
	if (!strstr(msg.reject.text, words))
		fail_msg("want '%s' in '%s'", words, msg.reject.text);
	rig_expect_closed(peer);
}

#define TEXT_OF(number) #number
#define AS_TEXT(number) TEXT_OF(number)
#define NEWEST          AS_TEXT(SL_PROTOCOL_VERSION)
#define NEWER           (SL_PROTOCOL_VERSION + 1)

static void other_versions_are_told_both(void **state)
{
	static const struct {
		uint32_t version;
		const char *words;
	} rows[] = {
		{0, "speaks protocols 1 to " NEWEST ", and this program 0"},
		{0, "the program is the older"},
		{NEWER, "speaks protocols 1 to " NEWEST ", and this program"},
		{NEWER, "install sluice, sluiced and libsluice.so of one version"},
		{77, "sluiced is the older"},
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct rig_peer peer = rig_peer(rig);

		hello_as(&peer, rows[i].version, SL_ROLE_CONTROL, 0);
		expect_reject(&peer, SL_REJECT_VERSION, rows[i].words);
		rig_peer_end(&peer);
	}
}

/* What version 1 does not have is refused from it, however it is dressed. */
static void newer_messages_need_a_newer_hello(void **state)
{
	struct rig *rig = *state;
	struct rig_peer peer = rig_peer(rig);
	union sl_msg msg;

	if (!rig_kernel_names_processes())
		skip();
	hello_as(&peer, 1, SL_ROLE_CONTROL, 0);
	(void)expect_as(&peer, 1, SL_MSG_WELCOME);
	sl_wire_init(&msg, SL_MSG_EVENTS);
	send_as(&peer, 1, &msg);
	expect_reject(&peer, SL_REJECT_PROTOCOL, "EVENTS");
	rig_peer_end(&peer);

	peer = rig_peer(rig);
	hello_as(&peer, 1, SL_ROLE_CONTROL, 0);
	(void)expect_as(&peer, 1, SL_MSG_WELCOME);
	sl_wire_init(&msg, SL_MSG_EVENTS);
	send_as(&peer, 2, &msg);
	expect_reject(&peer, SL_REJECT_PROTOCOL, "after a HELLO of protocol 1");
	rig_peer_end(&peer);

	peer = rig_peer(rig);
	hello_as(&peer, 1, SL_ROLE_CONTROL, 0);
	(void)expect_as(&peer, 1, SL_MSG_WELCOME);
	sl_wire_init(&msg, SL_MSG_LIST);
	msg.list.what = SL_LIST_CLIENTS;
	send_as(&peer, 1, &msg);
	expect_reject(&peer, SL_REJECT_PROTOCOL, "protocol 1 does not have");
	rig_peer_end(&peer);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(version_1_lives),
		TEST(other_versions_are_told_both),
		TEST(newer_messages_need_a_newer_hello),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
