/* Probes: which clients are asked, the use of the answers, and the system's word on processes. */
#include "../inside.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/workloads/probing.h"

static struct rig_peer run, a;

static void begin(void **state, const char *config)
{
	static struct inside inside;

	inside_init(&inside, config);
	run = rig_run(&inside.rig, RIG_GIB, RIG_GIB);
	a = rig_join(&inside.rig, &run);
	inside_turn(&inside);
	*state = &inside;
}

/* Only the test asks. */
static int setup(void **state)
{
	begin(state, "context_reserve: 1GiB\n");
	return 0;
}

/* A client that may be stopped for another is watched all the time. */
static int setup_watched(void **state)
{
	union sl_msg msg;

	begin(state, "context_reserve: 1GiB\nresolvers: priority wait\n");
	rig_expect(&a, SL_MSG_PROBE, &msg);
	assert_int_equal(msg.probe.mode, SL_WIRE_PROBE_WATCH);
	return 0;
}

static int teardown(void **state)
{
	rig_peer_end(&a);
	rig_peer_end(&run);
	inside_fini(*state);
	return 0;
}

static void pulse(uint64_t idle_ms, uint64_t busy_ms, bool proven)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_PULSE);
	msg.pulse.idle_ms = idle_ms;
	msg.pulse.busy_ms = busy_ms;
	msg.pulse.proven = proven;
	rig_send(&a, &msg);
}

static void expect_probe(enum sl_wire_probe mode)
{
	union sl_msg msg;

	rig_expect(&a, SL_MSG_PROBE, &msg);
	assert_int_equal(msg.probe.mode, mode);
}

static void the_names_agree(void **state)
{
	(void)state;
	assert_int_equal(sl_probing_wire_mode(SL_PROBE_OFF), SL_WIRE_PROBE_OFF);
	assert_int_equal(sl_probing_wire_mode(SL_PROBE_WATCH), SL_WIRE_PROBE_WATCH);
	assert_int_equal(sl_probing_wire_mode(SL_PROBE_PROVE), SL_WIRE_PROBE_PROVE);
	assert_int_equal(
		sl_probing_wire_condition(SL_CONDITION_RUNNING), SL_WIRE_RUNNING);
	assert_int_equal(
		sl_probing_wire_condition(SL_CONDITION_STOPPED), SL_WIRE_STOPPED);
	assert_int_equal(sl_probing_wire_condition(SL_CONDITION_TRACED), SL_WIRE_TRACED);
	assert_int_equal(sl_probing_wire_condition(SL_CONDITION_SILENT), SL_WIRE_SILENT);
}

static void asked_once_per_mode_and_told_the_end(void **state)
{
	struct inside *inside = *state;

	sl_probing_set(&inside->daemon, a.client, SL_PROBE_WATCH);
	expect_probe(SL_WIRE_PROBE_WATCH);
	sl_probing_set(&inside->daemon, a.client, SL_PROBE_WATCH);
	rig_expect_silence(&a, 50);
	sl_probing_set(&inside->daemon, a.client, SL_PROBE_PROVE);
	expect_probe(SL_WIRE_PROBE_PROVE);
	assert_int_equal(inside->daemon.probing->count, 1);
	sl_probing_set(&inside->daemon, a.client, SL_PROBE_OFF);
	expect_probe(SL_WIRE_PROBE_OFF);
	assert_int_equal(inside->daemon.probing->count, 0);
	/* An unknown number: nothing happens. */
	sl_probing_set(&inside->daemon, 12345, SL_PROBE_WATCH);
	assert_int_equal(inside->daemon.probing->count, 0);
}

static void asked_again_after_a_lost_connection(void **state)
{
	struct inside *inside = *state;
	union sl_msg msg;

	sl_probing_set(&inside->daemon, a.client, SL_PROBE_WATCH);
	expect_probe(SL_WIRE_PROBE_WATCH);
	rig_reconnect(&inside->rig, &a);
	rig_join_as(&a, &run, a.epoch);
	rig_expect_silence(&a, 30); /* not before it has reported */
	sl_wire_init(&msg, SL_MSG_REPORTED);
	rig_send(&a, &msg);
	expect_probe(SL_WIRE_PROBE_WATCH);
	sl_probing_set(&inside->daemon, a.client, SL_PROBE_OFF);
	expect_probe(SL_WIRE_PROBE_OFF);
}

static void stopped_traced_and_running(void **state)
{
	struct inside *inside = *state;
	struct sl_client *client = inside_client(inside, &a);

	pulse(10, 0, true);
	inside_until(inside, client->pulse_due == 0);
	assert_int_equal(kill(a.pid, SIGSTOP), 0);
	inside_until(inside, client->condition == SL_CONDITION_STOPPED);
	assert_int_equal(kill(a.pid, SIGCONT), 0);
	inside_until(inside, client->condition == SL_CONDITION_RUNNING);
	if (ptrace(PTRACE_ATTACH, a.pid, NULL, NULL) == 0) {
		assert_int_equal(waitpid(a.pid, NULL, __WALL), a.pid);
		inside_until(inside, client->condition == SL_CONDITION_TRACED);
		assert_int_equal(ptrace(PTRACE_DETACH, a.pid, NULL, NULL), 0);
		inside_until(inside, client->condition == SL_CONDITION_RUNNING);
	}
}

/* Stopped before and after a time without probes: told both times. */
static void told_anew_after_a_pause(void **state)
{
	struct inside *inside = *state;
	struct sl_client *client = inside_client(inside, &a);
	const struct sl_node *node = inside->daemon.node;

	assert_int_equal(kill(a.pid, SIGSTOP), 0);
	for (int i = 0; i < 2; i++) {
		sl_probing_set(&inside->daemon, a.client, SL_PROBE_WATCH);
		inside_until(inside, client->condition == SL_CONDITION_STOPPED);
		assert_int_equal(
			sl_node_client(node, a.client).condition, SL_CONDITION_STOPPED);
		sl_probing_set(&inside->daemon, a.client, SL_PROBE_OFF);
		assert_int_equal(client->condition, SL_CONDITION_RUNNING);
	}
	assert_int_equal(kill(a.pid, SIGCONT), 0);
	expect_probe(SL_WIRE_PROBE_OFF);
	expect_probe(SL_WIRE_PROBE_WATCH);
	expect_probe(SL_WIRE_PROBE_OFF);
}

/* Time is moved by moving deadlines, not by waiting. */
static void silent_when_its_word_is_overdue(void **state)
{
	struct inside *inside = *state;
	struct sl_client *client = inside_client(inside, &a);
	const sl_ns long_ago = sl_clock_now() - SL_PROBING_SILENT_NS - SL_MS;

	assert_true(client->pulse_due > 0);
	client->pulse_due = long_ago;
	inside_until(inside, client->condition == SL_CONDITION_SILENT);
	/* It works: the next word is due in a span. */
	pulse(0, 700, false);
	inside_until(inside, client->condition == SL_CONDITION_RUNNING);
	assert_true(client->pulse_due > sl_clock_now());
	/* While it is stopped, its silence means nothing. */
	assert_int_equal(kill(a.pid, SIGSTOP), 0);
	inside_until(inside, client->condition == SL_CONDITION_STOPPED);
	client->pulse_due = long_ago;
	sl_clock_sleep(50 * SL_MS);
	inside_until(inside, client->pulse_due != long_ago);
	assert_int_equal(kill(a.pid, SIGCONT), 0);
	inside_until(inside, client->condition != SL_CONDITION_STOPPED);
	assert_int_equal(client->condition, SL_CONDITION_RUNNING);
	/* An idle one owes nothing. */
	pulse(5, 0, true);
	inside_until(inside, client->pulse_due == 0);
}

/* A daemon that was away itself judges no client. */
static void our_own_absence_is_forgiven(void **state)
{
	struct inside *inside = *state;
	struct sl_client *client = inside_client(inside, &a);
	sl_ns long_ago = sl_clock_now() - SL_PROBING_SILENT_NS - SL_MS;

	client->pulse_due = long_ago;
	inside->daemon.probing->timer_at = long_ago;
	assert_int_equal(sl_probing_timer(NULL, 0, &inside->daemon), 0);
	assert_int_equal(client->condition, SL_CONDITION_RUNNING);
	assert_true(client->pulse_due > long_ago);
}

/* The policy gets each valid answer, and no impossible one. */
static void pulses_reach_the_policy(void **state)
{
	struct inside *inside = *state;
	struct sl_client *client = inside_client(inside, &a);

	pulse(UINT64_MAX, UINT64_MAX, true); /* not asked: ignored */
	inside_turn(inside);
	assert_int_equal(client->pulse_due, 0);
	sl_probing_set(&inside->daemon, a.client, SL_PROBE_PROVE);
	expect_probe(SL_WIRE_PROBE_PROVE);
	pulse(UINT64_MAX, UINT64_MAX, true);
	inside_until(inside, client->pulse_due == 0);
	assert_true(sl_node_client(inside->daemon.node, a.client).idle <= sl_clock_now());
	sl_probing_set(&inside->daemon, a.client, SL_PROBE_OFF);
	expect_probe(SL_WIRE_PROBE_OFF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_names_agree, setup, teardown),
		cmocka_unit_test_setup_teardown(
			asked_once_per_mode_and_told_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(
			asked_again_after_a_lost_connection, setup, teardown),
		cmocka_unit_test_setup_teardown(
			stopped_traced_and_running, setup_watched, teardown),
		cmocka_unit_test_setup_teardown(
			told_anew_after_a_pause, setup_watched, teardown),
		cmocka_unit_test_setup_teardown(
			silent_when_its_word_is_overdue, setup_watched, teardown),
		cmocka_unit_test_setup_teardown(
			our_own_absence_is_forgiven, setup_watched, teardown),
		cmocka_unit_test_setup_teardown(pulses_reach_the_policy, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
