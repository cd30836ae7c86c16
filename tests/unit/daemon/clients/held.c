/* Memory that must not be evicted, from the message to the books and to those that read them. */
#include <signal.h>

#include "../rig.h"

#include "policy/node.h"

#define CONFIG "context_reserve: 1GiB\nmeasure_interval: 50ms\nlongest_wait: 30s\n"

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

static void ask_as(
	const struct rig_peer *peer, uint64_t ask, uint64_t bytes, uint32_t flags)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_ASK);
	msg.ask.ask = ask;
	msg.ask.bytes = bytes;
	msg.ask.flags = flags;
	rig_send(peer, &msg);
}

static uint64_t granted(
	const struct rig_peer *peer, uint64_t ask, uint64_t bytes, uint32_t flags)
{
	union sl_msg msg;

	ask_as(peer, ask, bytes, flags);
	rig_expect(peer, SL_MSG_GRANT, &msg);
	assert_int_equal(msg.grant.ask, ask);
	return msg.grant.epoch;
}

static void denied(
	const struct rig_peer *peer, uint64_t ask, uint64_t bytes, uint32_t flags)
{
	union sl_msg msg;

	ask_as(peer, ask, bytes, flags);
	rig_expect(peer, SL_MSG_DENY, &msg);
	assert_int_equal(msg.deny.ask, ask);
	assert_int_equal(msg.deny.reason, SL_REASON_HELD_ON_REQUESTS);
}

static void tell_held(const struct rig_peer *peer, uint64_t bytes)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_HELD);
	msg.held.held_bytes = bytes;
	rig_send(peer, &msg);
}

static void from_message_to_list(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, 2 * RIG_GIB, 15 * RIG_GIB);
	struct rig_peer other = rig_run(rig, 8 * RIG_GIB, 15 * RIG_GIB);
	struct rig_peer a = rig_join(rig, &run);
	uint64_t epoch;

	assert_int_equal(rig_held(rig), 0);
	/* Requests leave 15 - 8. */
	denied(&a, 1, 7 * RIG_GIB + 1, SL_ASK_HELD);
	epoch = granted(&a, 2, 4 * RIG_GIB, SL_ASK_HELD);
	rig_commit(&a, epoch, 4 * RIG_GIB);
	rig_until(rig_held(rig) == 4 * RIG_GIB);
	epoch = granted(&a, 3, 3 * RIG_GIB, 0);
	rig_commit(&a, epoch, 3 * RIG_GIB);
	/* Existing memory becomes held, and is charged once. */
	epoch = granted(&a, 4, 2 * RIG_GIB, SL_ASK_HELD | SL_ASK_THERE);
	rig_commit(&a, epoch, 2 * RIG_GIB);
	rig_until(rig_held(rig) == 6 * RIG_GIB);
	assert_int_equal(rig_gpu(rig).backing_bytes, 7 * RIG_GIB);
	denied(&a, 5, RIG_GIB + 1, SL_ASK_HELD | SL_ASK_THERE);
	tell_held(&a, RIG_GIB);
	rig_until(rig_held(rig) == RIG_GIB);
	/* More than it has. */
	tell_held(&a, UINT64_MAX);
	rig_until(rig_held(rig) == 7 * RIG_GIB);
	rig_peer_end(&a);
	rig_until(rig_held(rig) == 0);
	rig_peer_end(&run);
	rig_peer_end(&other);
	rig_until(rig_uses(rig, NULL, 0) == 0);
}

/* The next daemon is told again, before it decides anything. */
static void outlives_the_daemon(void **state)
{
	struct rig *rig = *state;
	struct rig_peer run = rig_run(rig, 2 * RIG_GIB, 15 * RIG_GIB);
	struct rig_peer other = rig_run(rig, 8 * RIG_GIB, 15 * RIG_GIB);
	struct rig_peer a = rig_join(rig, &run), b = rig_join(rig, &other);
	uint64_t epoch = a.epoch;
	union sl_msg msg;

	rig_hold(rig, &a, 1, 6 * RIG_GIB);
	tell_held(&a, 5 * RIG_GIB);
	rig_until(rig_held(rig) == 5 * RIG_GIB);
	rig_kill_daemon(rig);
	rig_start(rig, CONFIG);
	rig_reconnect(rig, &a);
	rig_join_as(&a, &run, epoch);
	sl_wire_init(&msg, SL_MSG_REPORT);
	msg.report.backing_bytes = 6 * RIG_GIB;
	rig_send(&a, &msg);
	tell_held(&a, 5 * RIG_GIB);
	sl_wire_init(&msg, SL_MSG_REPORTED);
	rig_send(&a, &msg);
	/* It has to wait for the other's report. */
	ask_as(&a, 2, RIG_GIB, SL_ASK_HELD | SL_ASK_THERE);
	rig_expect_silence(&a, 200);
	rig_reconnect(rig, &b);
	rig_join_as(&b, &other, epoch);
	rig_send(&b, &msg);
	rig_expect(&a, SL_MSG_GRANT, &msg);
	rig_commit(&a, msg.grant.epoch, RIG_GIB);
	rig_until(rig_held(rig) == 6 * RIG_GIB);
	rig_peer_end(&a);
	rig_nvml(rig, a.pid, 0);
	rig_peer_end(&b);
	rig_peer_end(&run);
	rig_peer_end(&other);
	rig_until(rig_uses(rig, NULL, 0) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(from_message_to_list),
		cmocka_unit_test(outlives_the_daemon),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, setup, teardown);
}
