/* RUN as a job in the foreground, over the wire: refusals, waiting runs, ends of waits, and the
 * lists meanwhile. */
#include <string.h>
#include <unistd.h>

#include "../rig.h"
#include "policy/node.h"
#include "submitting.h"

/* More than half of a GPU, so that two have no room on one. */
#define BIG (10 * RIG_GIB)

/* visible: NULL, or its CUDA_VISIBLE_DEVICES. */
static void send_run(const struct rig_peer *peer, const char *name, unsigned int gpus,
	const char *visible, bool waits)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_RUN);
	msg.run.request_kind = SL_AMOUNT_BYTES;
	msg.run.request_value = BIG;
	msg.run.gpu_count = gpus;
	msg.run.priority_biased = SL_PRIORITY_BIAS;
	msg.run.flags = (visible ? SL_RUN_VISIBLE_SET : 0) | (waits ? SL_RUN_WAIT : 0);
	sl_wire_str(msg.run.name, sizeof(msg.run.name), name);
	sl_wire_str(msg.run.command, sizeof(msg.run.command), "serve");
	sl_wire_str(msg.run.visible, sizeof(msg.run.visible), visible ? visible : "");
	rig_send(peer, &msg);
}

/* A greeted peer that has sent RUN. */
static struct rig_peer ask(const struct rig *rig, const char *name, unsigned int gpus,
	const char *visible, bool waits)
{
	struct rig_peer peer = greet(rig_peer(rig));

	send_run(&peer, name, gpus, visible, waits);
	return peer;
}

static struct rig_peer start(const struct rig *rig, const char *name, unsigned int gpus)
{
	struct rig_peer peer = ask(rig, name, gpus, NULL, false);
	union sl_msg msg;

	rig_expect(&peer, SL_MSG_RUN_REPLY, &msg);
	if (!msg.run_reply.ok)
		fail_msg("%s: %s", name, msg.run_reply.text);
	return peer;
}

static void expect_start(const struct rig_peer *peer)
{
	union sl_msg msg;

	rig_expect(peer, SL_MSG_RUN_REPLY, &msg);
	if (!msg.run_reply.ok)
		fail_msg("refused: %s", msg.run_reply.text);
}

static void expect_wait(const struct rig_peer *peer, const char *words)
{
	union sl_msg msg;

	rig_expect(peer, SL_MSG_RUN_WAITS, &msg);
	if (!strstr(msg.run_waits.text, words))
		fail_msg("it waits for: %s", msg.run_waits.text);
}

static void does_not_wait_unasked(void **state)
{
	struct rig *rig = *state;
	struct rig_peer looks, first, second;
	union sl_msg msg;

	rig_start(rig, "context_reserve: 0\n");
	looks = greet(rig_peer(rig));
	first = start(rig, "first", 2);
	/* A workload like others. */
	assert_int_equal(row_of(&looks, "first").job, 0);
	second = ask(rig, "second", 1, NULL, false);
	rig_expect(&second, SL_MSG_RUN_REPLY, &msg);
	assert_int_equal(msg.run_reply.ok, 0);
	assert_non_null(strstr(msg.run_reply.text, "does not fit"));
	assert_int_equal(row_of(&looks, "second").job, 0);
	rig_peer_end(&second);
	rig_peer_end(&first);
	rig_peer_end(&looks);
}

static void waits_and_starts(void **state)
{
	struct rig *rig = *state;
	struct rig_peer looks, first, second, third;
	struct sl_msg_job_row row;
	union sl_msg msg;

	rig_start(rig, "context_reserve: 0\n");
	looks = greet(rig_peer(rig));
	first = start(rig, "first", 2);
	second = ask(rig, "second", 2, NULL, true);
	expect_wait(&second, "it wants ");
	row = row_of(&looks, "second");
	assert_true(row.job & SL_JOB_FOREGROUND);
	assert_int_equal(row.state, SL_JOB_QUEUED);
	assert_non_null(strstr(row.why, "it wants 1.25 GPUs"));
	/* Its name is taken, and only its user hears how it ends. */
	third = ask(rig, "second", 1, NULL, true);
	rig_expect(&third, SL_MSG_RUN_REPLY, &msg);
	assert_int_equal(msg.run_reply.ok, 0);
	sl_wire_init(&msg, SL_MSG_JOB_WAIT);
	sl_wire_str(msg.job_wait.name, sizeof(msg.job_wait.name), "second");
	rig_send(&looks, &msg);
	rig_expect(&looks, SL_MSG_JOB_REPLY, &msg);
	assert_int_equal(msg.job_reply.ok, 0);
	rig_peer_end(&first);
	expect_start(&second);
	assert_int_equal(row_of(&looks, "second").job, 0);
	assert_int_equal(rig_uses(rig, NULL, 0), 2);
	rig_peer_end(&second);
	rig_until(rig_uses(rig, NULL, 0) == 0);
	rig_peer_end(&third);
	rig_peer_end(&looks);
}

/* What is free on other GPUs does not count for it. */
static void waits_for_some_of_the_gpus(void **state)
{
	struct rig *rig = *state;
	struct rig_peer first, second, third;

	rig_start(rig, "context_reserve: 0\n");
	first = ask(rig, "first", 1, "0", false);
	expect_start(&first);
	second = ask(rig, "second", 1, "0", true);
	expect_wait(&second, "have only 0.375 GPUs free for it");
	/* A run that may use the other GPU does not wait for it. */
	third = start(rig, "third", 1);
	rig_expect_silence(&second, 50);
	rig_peer_end(&third);
	rig_expect_silence(&second, 50);
	rig_peer_end(&first);
	expect_start(&second);
	rig_peer_end(&second);
}

static void is_stopped_and_goes_away(void **state)
{
	struct rig *rig = *state;
	struct rig_peer looks, first, second, third;
	union sl_msg msg;

	rig_start(rig, "context_reserve: 0\n");
	looks = greet(rig_peer(rig));
	first = start(rig, "first", 2);
	second = ask(rig, "second", 1, NULL, true);
	third = ask(rig, "third", 1, NULL, true);
	expect_wait(&second, "it wants ");
	expect_wait(&third, "it wants ");
	sl_wire_init(&msg, SL_MSG_JOB_STOP);
	sl_wire_str(msg.job_stop.name, sizeof(msg.job_stop.name), "second");
	rig_send(&looks, &msg);
	rig_expect(&looks, SL_MSG_JOB_REPLY, &msg);
	assert_int_equal(msg.job_reply.ok, 1);
	assert_int_equal(msg.job_reply.state, SL_JOB_STOPPED);
	rig_expect(&second, SL_MSG_RUN_REPLY, &msg);
	assert_int_equal(msg.run_reply.ok, 0);
	assert_non_null(strstr(msg.run_reply.text, "somebody asked for its end"));
	/* A wait ends with its process, also if the socket lives on in a child and nothing else
	 * makes the queue look: by now the cycle that the end of "second" caused is over. */
	sl_clock_sleep(500 * SL_MS);
	rig_peer_kill(&third);
	rig_until(!row_of(&looks, "third").job);
	(void)close(third.fd);
	/* The one that was stopped may ask again, but not twice at once. */
	rig_send_run(&second, BIG, 0, 1, "again", NULL);
	rig_expect(&second, SL_MSG_RUN_REPLY, &msg);
	assert_int_equal(msg.run_reply.ok, 0);
	rig_peer_end(&second);
	second = ask(rig, "twice", 1, NULL, true);
	expect_wait(&second, "it wants ");
	rig_send_run(&second, BIG, 0, 1, "twice", NULL);
	rig_expect(&second, SL_MSG_REJECT, &msg);
	rig_until(!row_of(&looks, "twice").job);
	rig_peer_end(&second);
	rig_peer_end(&first);
	rig_peer_end(&looks);
}

/* A process has one workload and waits for the place of a second. Its death frees the place, but
 * the second must not start, because its process is dead. */
static void does_not_start_the_dead(void **state)
{
	struct rig *rig = *state;
	struct rig_peer first, client;
	union sl_msg msg;

	rig_start(rig, "context_reserve: 0\n");
	first = ask(rig, "first", 1, "0", false);
	rig_expect(&first, SL_MSG_RUN_REPLY, &msg);
	assert_int_equal(msg.run_reply.ok, 1);
	first.workload = msg.run_reply.workload;
	memcpy(first.token, msg.run_reply.token, sizeof(first.token));
	client = first;
	client.fd = -1;
	rig_reconnect(rig, &client);
	rig_join_as(&client, &first, 0);
	send_run(&first, "second", 1, "0", true);
	expect_wait(&first, "it wants");
	rig_peer_end(&first);
	rig_until(rig_uses(rig, NULL, 0) == 0);
	(void)close(client.fd);
}

/* Without a request it is in no books of the queue, until it is given one. */
static void counts_once_it_requests(void **state)
{
	struct rig *rig = *state;
	struct rig_peer looks, run;
	union sl_msg msg;

	rig_start(rig, "context_reserve: 0\n");
	looks = greet(rig_peer(rig));
	run = greet(rig_peer(rig));
	rig_send_run(&run, 0, 12 * RIG_GIB, 2, "free", NULL);
	expect_start(&run);
	msg = submit_msg("both");
	msg.submit.gpu_count = 2;
	msg.submit.flags |= SL_SUBMIT_TRY;
	assert_null(strstr(submit(&looks, msg, "true").text, "it waits"));
	sl_wire_init(&msg, SL_MSG_SET);
	msg.set.which = SL_SET_REQUEST;
	msg.set.request_kind = SL_AMOUNT_BYTES;
	msg.set.request_value = BIG;
	sl_wire_str(msg.set.name, sizeof(msg.set.name), "free");
	rig_send(&looks, &msg);
	rig_expect(&looks, SL_MSG_SET_REPLY, &msg);
	assert_int_equal(msg.set_reply.ok, 1);
	msg = submit_msg("both");
	msg.submit.gpu_count = 2;
	msg.submit.flags |= SL_SUBMIT_TRY;
	assert_non_null(strstr(submit(&looks, msg, "true").text, "it waits"));
	rig_peer_end(&run);
	rig_peer_end(&looks);
}

/* A RUN causes no cycle. It is answered after the cycle that examines the jobs before it, and that
 * cycle waits for reports. */
static void comes_after_who_waits(void **state)
{
	struct rig *rig = *state;
	const char *config = "context_reserve: 0\nrecover_wait: 60s\n";
	struct rig_peer looks, asks, run, client, small;
	struct sl_msg_job_row row;
	union sl_msg msg;

	rig_start(rig, config);
	run = rig_run(rig, BIG, 0);
	client = rig_join(rig, &run);
	rig_kill_daemon(rig);
	rig_start(rig, config);
	looks = greet(rig_peer(rig));
	asks = greet(rig_peer(rig));
	msg = submit_msg("pending");
	send_submit(&asks, &msg, "true");
	rig_until(row_of(&looks, "pending").job);
	small = greet(rig_peer(rig));
	rig_send_run(&small, RIG_GIB, 0, 1, "small", NULL);
	rig_expect_silence(&small, 100);
	row = row_of(&looks, "pending");
	assert_int_equal(row.state, SL_JOB_QUEUED);
	assert_int_equal(row.queued, 1);
	/* No further report is waited for. */
	rig_peer_end(&client);
	rig_peer_end(&run);
	rig_expect(&small, SL_MSG_RUN_REPLY, &msg);
	rig_peer_end(&small);
	rig_peer_end(&asks);
	rig_peer_end(&looks);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, two_gpus, two_gpus_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(does_not_wait_unasked),
		TEST(waits_and_starts),
		TEST(waits_for_some_of_the_gpus),
		TEST(is_stopped_and_goes_away),
		TEST(does_not_start_the_dead),
		TEST(counts_once_it_requests),
		TEST(comes_after_who_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
