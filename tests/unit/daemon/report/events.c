/* Events: kept, found, followed, lost. */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "policy/words/reason.h"
#include "../rig.h"

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

static struct rig_peer control(const struct rig *rig)
{
	struct rig_peer self = {.fd = sl_wire_connect(rig->socket, NULL), .order = -1};
	union sl_msg msg;

	assert_true(self.fd >= 0);
	rig_hello(&self, SL_ROLE_CONTROL, 0);
	rig_expect(&self, SL_MSG_WELCOME, &msg);
	return self;
}

static void ask_events(const struct rig_peer *peer, uint64_t after, uint32_t last,
	uint32_t flags, const char *name)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_EVENTS);
	msg.events.after = after;
	msg.events.last = last;
	msg.events.flags = flags;
	sl_wire_str(msg.events.name, sizeof(msg.events.name), name);
	rig_send(peer, &msg);
}

static union sl_msg next(const struct rig_peer *peer)
{
	struct pollfd ready = {.fd = peer->fd, .events = POLLIN};
	union sl_msg msg;

	assert_int_equal(poll(&ready, 1, 5000), 1);
	assert_int_equal(sl_wire_recv(peer->fd, SL_FROM_DAEMON, &msg, NULL), SL_WIRE_OK);
	return msg;
}

/* All rows up to LIST_END; returns how many there were, the first `room` in rows. */
static unsigned int take(
	const struct rig_peer *peer, struct sl_msg_event_row *rows, unsigned int room)
{
	unsigned int count = 0;

	for (;;) {
		union sl_msg msg = next(peer);

		if (msg.head.type == SL_MSG_LIST_END)
			return count;
		assert_int_equal(msg.head.type, SL_MSG_EVENT_ROW);
		if (count < room)
			rows[count] = msg.event_row;
		count++;
	}
}

static unsigned int events(const struct rig *rig, uint64_t after, uint32_t last,
	const char *name, struct sl_msg_event_row *rows, unsigned int room)
{
	struct rig_peer peer = control(rig);
	unsigned int count;

	ask_events(&peer, after, last, 0, name);
	count = take(&peer, rows, room);
	(void)close(peer.fd);
	return count;
}

static struct rig_peer run_named(
	const struct rig *rig, const char *name, uint64_t request, uint64_t limit)
{
	struct rig_peer peer = rig_peer(rig);
	union sl_msg msg;

	rig_hello(&peer, SL_ROLE_CONTROL, 0);
	rig_expect(&peer, SL_MSG_WELCOME, &msg);
	rig_send_run(&peer, request, limit, 1, name, NULL);
	rig_expect(&peer, SL_MSG_RUN_REPLY, &msg);
	assert_true(msg.run_reply.ok);
	peer.workload = msg.run_reply.workload;
	memcpy(peer.token, msg.run_reply.token, sizeof(peer.token));
	return peer;
}

/* Refused for its name: one event each would be too cheap a flood; so ask for too much. */
static void refuse(const struct rig_peer *peer, const char *name)
{
	union sl_msg msg;

	rig_send_run(peer, 900 * RIG_GIB, 0, 1, name, NULL);
	rig_expect(peer, SL_MSG_RUN_REPLY, &msg);
	assert_false(msg.run_reply.ok);
}

static void a_life_is_told_in_order(void **state)
{
	static const uint32_t reasons[] = {SL_REASON_STARTED, SL_REASON_JOINED,
		SL_REASON_OVER_LIMIT, SL_REASON_LEFT, SL_REASON_ENDED};
	struct rig *rig = *state;
	struct sl_msg_event_row rows[8];
	struct rig_peer run, client;
	union sl_msg msg;
	pid_t pid;

	rig_start(rig, NULL);
	run = run_named(rig, "alpha", RIG_GIB, 2 * RIG_GIB);
	client = rig_join(rig, &run);
	pid = client.pid;
	rig_ask(&client, 1, 3 * RIG_GIB);
	rig_expect(&client, SL_MSG_DENY, &msg);
	rig_peer_end(&client);
	rig_peer_end(&run);
	rig_until(events(rig, 0, 0, "alpha", rows, 8) == SL_ARRAY_LEN(reasons));
	for (size_t i = 0; i < SL_ARRAY_LEN(reasons); i++) {
		assert_string_equal(
			sl_reason_name(rows[i].reason), sl_reason_name(reasons[i]));
		assert_string_equal(rows[i].name, "alpha");
		assert_int_equal(rows[i].uid, getuid());
		assert_int_equal(rows[i].current, 0);
		assert_true(rows[i].realtime_ms > 1600000000000);
		if (i)
			assert_true(rows[i].serial > rows[i - 1].serial);
	}
	assert_int_equal(rows[1].pid, pid);
	assert_int_equal(rows[2].pid, pid);
	assert_int_equal(rows[2].bytes, 3 * RIG_GIB);
	assert_int_equal(rows[2].available_bytes, 2 * RIG_GIB);
	assert_int_equal(rows[3].pid, pid);
	/* By number, too; and everything begins with the daemon's start. */
	assert_int_equal(events(rig, 0, 0, "1", rows, 8), SL_ARRAY_LEN(reasons));
	assert_int_equal(events(rig, 0, 0, "2", rows, 8), 0);
	assert_int_equal(events(rig, 0, 0, "", rows, 1), SL_ARRAY_LEN(reasons) + 1);
	assert_int_equal(rows[0].reason, SL_REASON_DAEMON_STARTED);
}

static void the_last_and_those_after(void **state)
{
	struct rig *rig = *state;
	struct sl_msg_event_row rows[40], some[40];
	struct rig_peer peer;

	rig_start(rig, "events_kept: 16\n");
	peer = control(rig);
	for (int i = 0; i < 5; i++)
		refuse(&peer, i % 2 ? "odd" : "even");
	assert_int_equal(events(rig, 0, 0, "", rows, 40), 6);
	assert_int_equal(rows[5].reason, SL_REASON_REQUEST_TOO_LARGE);
	assert_int_equal(rows[5].bytes, 900 * RIG_GIB);
	assert_int_equal(events(rig, 0, 2, "", some, 40), 2);
	assert_memory_equal(&some[0], &rows[4], 2 * sizeof(rows[0]));
	assert_int_equal(events(rig, 0, 1, "odd", some, 40), 1);
	assert_memory_equal(&some[0], &rows[4], sizeof(rows[0]));
	assert_int_equal(events(rig, 0, 99, "odd", some, 40), 2);
	assert_int_equal(events(rig, rows[2].serial, 0, "", some, 40), 3);
	assert_memory_equal(&some[0], &rows[3], 3 * sizeof(rows[0]));
	assert_int_equal(events(rig, rows[2].serial, 1, "", some, 40), 1);
	assert_int_equal(events(rig, rows[5].serial, 0, "", some, 40), 0);
	assert_int_equal(events(rig, UINT64_MAX - 1, 0, "", some, 40), 0);
	/* The ring is full: the oldest are gone, and a reader that asks for them hears how many. */
	for (int i = 0; i < 20; i++)
		refuse(&peer, "more");
	assert_int_equal(events(rig, 0, 0, "", some, 40), 16);
	assert_int_equal(some[0].lost, 0);
	assert_int_equal(some[0].serial, rows[0].serial + 10);
	assert_int_equal(events(rig, rows[0].serial, 0, "", some, 40), 16);
	assert_int_equal(some[0].lost, 9);
	assert_int_equal(some[1].lost, 0);
	(void)close(peer.fd);
}

static void hangup_changes_the_size(void **state)
{
	struct rig *rig = *state;
	struct sl_msg_event_row rows[60];
	struct rig_peer peer;

	rig_start(rig, "events_kept: 32\n");
	peer = control(rig);
	for (int i = 0; i < 40; i++)
		refuse(&peer, "x");
	assert_int_equal(events(rig, 0, 0, "", rows, 60), 32);
	rig_configure(rig, "events_kept: 20\n");
	assert_int_equal(events(rig, 0, 0, "", rows, 60), 20);
	rig_configure(rig, "events_kept: 50\n");
	assert_int_equal(events(rig, 0, 0, "", rows, 60), 20);
	for (int i = 0; i < 40; i++)
		refuse(&peer, "x");
	assert_int_equal(events(rig, 0, 0, "", rows, 60), 50);
	for (int i = 1; i < 50; i++)
		assert_int_equal(rows[i].serial, rows[i - 1].serial + 1);
	(void)close(peer.fd);
}

static void followers_hear_of_it(void **state)
{
	struct rig *rig = *state;
	struct sl_msg_event_row rows[4];
	struct rig_peer all, one, peer;
	union sl_msg msg;

	rig_start(rig, NULL);
	all = control(rig);
	one = control(rig);
	peer = control(rig);
	ask_events(&all, 0, 0, SL_EVENTS_FOLLOW, "");
	ask_events(&one, 0, 0, SL_EVENTS_FOLLOW, "beta");
	assert_int_equal(take(&all, rows, 4), 1);
	assert_int_equal(take(&one, rows, 4), 0);
	refuse(&peer, "alpha");
	refuse(&peer, "beta");
	rig_expect(&all, SL_MSG_EVENT_ROW, &msg);
	assert_string_equal(msg.event_row.name, "alpha");
	rig_expect(&all, SL_MSG_EVENT_ROW, &msg);
	assert_string_equal(msg.event_row.name, "beta");
	rig_expect(&one, SL_MSG_EVENT_ROW, &msg);
	assert_string_equal(msg.event_row.name, "beta");
	rig_expect_silence(&one, 30);
	/* A follower that goes away does no harm. */
	(void)close(all.fd);
	refuse(&peer, "beta");
	rig_expect(&one, SL_MSG_EVENT_ROW, &msg);
	assert_int_equal(msg.event_row.lost, 0);
	(void)close(one.fd);
	(void)close(peer.fd);
}

/* It loses unread events, is told how many, and keeps its connection. */
static void a_follower_that_sleeps_loses_events_only(void **state)
{
	enum { EVENTS = 3000 };
	struct rig *rig = *state;
	uint64_t serial = 0, lost = 0, told = 0;
	struct rig_peer sleeper, peer;
	union sl_msg msg;

	rig_start(rig, "events_kept: 16\n");
	sleeper = control(rig);
	peer = control(rig);
	ask_events(&sleeper, 0, 0, SL_EVENTS_FOLLOW, "");
	(void)take(&sleeper, NULL, 0);
	for (int i = 0; i < EVENTS; i++)
		refuse(&peer, "x");
	while (told + lost < EVENTS) {
		rig_expect(&sleeper, SL_MSG_EVENT_ROW, &msg);
		assert_true(msg.event_row.serial > serial);
		if (serial)
			assert_int_equal(
				msg.event_row.serial, serial + 1 + msg.event_row.lost);
		serial = msg.event_row.serial;
		lost += msg.event_row.lost;
		told++;
	}
	assert_int_equal(told + lost, EVENTS);
	assert_true(lost > EVENTS / 2);
	(void)close(sleeper.fd);
	(void)close(peer.fd);
}

/* A program refused in a loop must not push out what others need to know. */
static void one_program_does_not_fill_the_ring(void **state)
{
	enum { ASKS = 2000 };
	struct rig *rig = *state;
	struct sl_msg_event_row rows[1];
	struct rig_peer run, client;
	union sl_msg msg;
	unsigned int count;

	rig_start(rig, "events_kept: 1000\n");
	run = run_named(rig, "noisy", RIG_GIB, RIG_GIB);
	client = rig_join(rig, &run);
	for (int i = 0; i < ASKS; i++) {
		rig_ask(&client, (uint64_t)i + 1, 2 * RIG_GIB);
		rig_expect(&client, SL_MSG_DENY, &msg);
	}
	count = events(rig, 0, 0, "", rows, 1);
	assert_int_equal(rows[0].reason, SL_REASON_DAEMON_STARTED);
	assert_true(count < ASKS / 2);
	rig_peer_end(&client);
	rig_peer_end(&run);
}

static void why_names_now_and_before(void **state)
{
	struct rig *rig = *state;
	struct rig_peer a, b, client_a, client_b, self;
	struct sl_msg_event_row rows[8];
	union sl_msg msg;
	unsigned int count;

	rig_start(rig, NULL);
	a = run_named(rig, "holder", RIG_GIB, 0);
	b = run_named(rig, "waiter", RIG_GIB, 0);
	(void)a;
	client_a = rig_join(rig, &a);
	client_b = rig_join(rig, &b);
	self = control(rig);
	sl_wire_init(&msg, SL_MSG_WHY);
	sl_wire_str(msg.why.name, sizeof(msg.why.name), "waiter");
	rig_send(&self, &msg);
	assert_int_equal(take(&self, rows, 8), 0);
	rig_ask(&client_b, 1, 100 * RIG_GIB);
	rig_expect(&client_b, SL_MSG_DENY, &msg);
	sl_wire_init(&msg, SL_MSG_WHY);
	msg.why.workload = b.workload;
	rig_send(&self, &msg);
	count = take(&self, rows, 8);
	assert_int_equal(count, 1);
	assert_int_equal(rows[0].reason, SL_REASON_OVER_LIMIT);
	assert_int_equal(rows[0].current, 0);
	assert_string_equal(rows[0].name, "waiter");
	/* Ended, and still known by its name and number; others are not. */
	rig_peer_end(&client_b);
	rig_peer_end(&b);
	rig_until(rig_uses(rig, NULL, 0) == 1);
	for (int by_number = 0; by_number < 2; by_number++) {
		sl_wire_init(&msg, SL_MSG_WHY);
		msg.why.workload = by_number ? b.workload : 0;
		sl_wire_str(msg.why.name, sizeof(msg.why.name), "waiter");
		rig_send(&self, &msg);
		assert_int_equal(take(&self, rows, 8), 2);
		assert_int_equal(rows[0].reason, SL_REASON_OVER_LIMIT);
		assert_int_equal(rows[1].reason, SL_REASON_ENDED);
	}
	sl_wire_init(&msg, SL_MSG_WHY);
	sl_wire_str(msg.why.name, sizeof(msg.why.name), "nobody");
	rig_send(&self, &msg);
	assert_int_equal(take(&self, rows, 8), 0);
	(void)close(self.fd);
	rig_peer_end(&client_a);
	rig_peer_end(&a);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_life_is_told_in_order),
		TEST(the_last_and_those_after),
		TEST(hangup_changes_the_size),
		TEST(followers_hear_of_it),
		TEST(a_follower_that_sleeps_loses_events_only),
		TEST(one_program_does_not_fill_the_ring),
		TEST(why_names_now_and_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
