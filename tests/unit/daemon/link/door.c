/* Threads of the daemon talk to the loop as the command line does, with the same rights and
 * answers. The end of the door wakes them. */
#include "../inside.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/link/bounds.h"
#include "daemon/report/events.h"
#include "daemon/link/inside.h" /* of the daemon, not of the tests */
#include "daemon/link/peer.h"

#define STRANGER 12345

static int setup(void **state)
{
	static struct inside inside;

	inside_init(&inside, "context_reserve: 1GiB\nmeasure_interval: 20ms\n"
			     "recover_wait: 1ms\nmax_clients: 2\n");
	*state = &inside;
	return 0;
}

static int teardown(void **state)
{
	inside_fini(*state);
	return 0;
}

/* --- a thread that does something inside, while the test turns the loop ----------------------- */

struct visit {
	struct sl_inside_door *door;
	const struct sl_user *who;
	uint64_t workload;
	int (*body)(struct visit *visit, struct sl_inside *line);
	struct sl_error err;
	int opened, outcome;
	union sl_msg answer;
	uint32_t rows;
	pthread_t thread;
	atomic_bool is_in, done, leave;
};

static void *go_in(void *context)
{
	struct visit *visit = context;
	struct sl_inside line;

	visit->opened = sl_inside_open(&line, visit->door, visit->who, &visit->err);
	visit->outcome = visit->opened;
	atomic_store(&visit->is_in, true);
	if (visit->opened == SL_INSIDE_OK && visit->body)
		visit->outcome = visit->body(visit, &line);
	sl_inside_close(&line);
	sl_inside_close(&line);
	atomic_store(&visit->done, true);
	return NULL;
}

static void begin(struct inside *inside, struct visit *visit)
{
	visit->door = inside->daemon.inside;
	assert_int_equal(pthread_create(&visit->thread, NULL, go_in, visit), 0);
}

static void finish(struct inside *inside, struct visit *visit)
{
	inside_until(inside, atomic_load(&visit->done));
	assert_int_equal(pthread_join(visit->thread, NULL), 0);
}

static void visit(struct inside *inside, struct visit *visit)
{
	begin(inside, visit);
	finish(inside, visit);
}

static struct sl_user *stranger(uint32_t gid, bool contained)
{
	struct sl_user *who = malloc(sizeof(*who) + 2 * sizeof(who->gids[0]));

	assert_non_null(who);
	*who = (struct sl_user){.uid = STRANGER,
		.contained = contained ? "is in a container" : NULL,
		.has_rights = true,
		.gid_count = 2};
	who->gids[0] = STRANGER;
	who->gids[1] = gid;
	return who;
}

/* --- actions ---------------------------------------------------------------------------------- */

static void count_row(void *context, const union sl_msg *row)
{
	struct visit *visit = context;

	visit->answer = *row;
	visit->rows++;
}

static int list_twice(struct visit *visit, struct sl_inside *line)
{
	int r = sl_inside_list(
		line, SL_LIST_GPUS, SL_MSG_GPU_ROW, count_row, visit, &visit->err);

	if (r != SL_INSIDE_OK)
		return r;
	return sl_inside_list(
		line, SL_LIST_STATUS, SL_MSG_STATUS_ROW, count_row, visit, &visit->err);
}

static int set_priority(struct visit *visit, struct sl_inside *line)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_SET);
	msg.set.workload = visit->workload;
	msg.set.which = SL_SET_PRIORITY;
	msg.set.priority_biased = SL_PRIORITY_BIAS + 5;
	return sl_inside_call(line, &msg, SL_MSG_SET_REPLY, &visit->answer, &visit->err);
}

static int run_something(struct visit *visit, struct sl_inside *line)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_RUN);
	msg.run.gpu_count = 1;
	msg.run.priority_biased = SL_PRIORITY_BIAS;
	return sl_inside_call(line, &msg, SL_MSG_RUN_REPLY, &visit->answer, &visit->err);
}

/* A second HELLO is no CONTROL message; nor is one of a client ever. */
static int be_a_client(struct visit *visit, struct sl_inside *line)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_WORK);
	return sl_inside_call(line, &msg, SL_MSG_GRANT, &visit->answer, &visit->err);
}

static int submit_nothing(struct visit *visit, struct sl_inside *line)
{
	union sl_msg msg;
	int r, file = dup(STDIN_FILENO);

	sl_wire_init(&msg, SL_MSG_SUBMIT);
	msg.submit.gpu_count = msg.submit.tasks = 1;
	msg.submit.priority_biased = SL_PRIORITY_BIAS;
	r = sl_inside_call_giving(
		line, &msg, file, SL_MSG_SUBMIT_REPLY, &visit->answer, &visit->err);
	(void)close(file);
	return r;
}

static int follow(struct visit *visit, struct sl_inside *line)
{
	union sl_msg msg;
	int r;

	sl_inside_set_timeout(line, 20);
	sl_wire_init(&msg, SL_MSG_EVENTS);
	msg.events.flags = SL_EVENTS_FOLLOW;
	r = sl_inside_send(line, &msg, &visit->err);
	while (r == SL_INSIDE_OK || r == SL_INSIDE_END || r == SL_INSIDE_AGAIN) {
		r = sl_inside_next(line, SL_MSG_EVENT_ROW, &msg, &visit->err);
		if (r == SL_INSIDE_AGAIN)
			visit->rows++;
		if (r == SL_INSIDE_OK && msg.event_row.reason == SL_REASON_JOURNAL_WORKS)
			break;
	}
	visit->answer = msg;
	return r;
}

static int wait_long(struct visit *visit, struct sl_inside *line)
{
	union sl_msg msg;

	return sl_inside_next(line, SL_MSG_EVENT_ROW, &msg, &visit->err);
}

static int stay(struct visit *visit, struct sl_inside *line)
{
	while (!atomic_load(&visit->leave))
		sl_clock_sleep(SL_MS);
	return SL_INSIDE_OK;
}

/* --- tests ------------------------------------------------------------------------------------ */

static void rows_are_those_of_the_command_line(void **state)
{
	struct visit one = {.body = list_twice};

	visit(*state, &one);
	assert_int_equal(one.outcome, SL_INSIDE_OK);
	assert_int_equal(one.rows, 2);
	assert_int_equal(one.answer.head.type, SL_MSG_STATUS_ROW);
	assert_int_equal(one.answer.status_row.gpus, 1);
}

static void rights_are_those_of_the_user(void **state)
{
	struct inside *inside = *state;
	struct rig_peer run = rig_run(&inside->rig, RIG_GIB, 0);
	struct sl_user *who = stranger(7, false);
	struct visit own = {.body = set_priority, .workload = run.workload};
	struct visit other = {.body = set_priority, .workload = run.workload, .who = who};

	visit(inside, &own);
	assert_int_equal(own.outcome, SL_INSIDE_OK);
	assert_int_equal(own.answer.set_reply.ok, 1);
	visit(inside, &other);
	assert_int_equal(other.outcome, SL_INSIDE_REFUSED);
	assert_non_null(strstr(other.err.text, "may"));
	(void)sl_user_free(who);
	rig_peer_end(&run);
	inside_until(inside, inside->daemon.workload_count == 0);
}

static void nothing_runs_in_the_daemon(void **state)
{
	struct visit run = {.body = run_something}, client = {.body = be_a_client};

	visit(*state, &run);
	assert_int_equal(run.outcome, SL_INSIDE_OK);
	assert_int_equal(run.answer.run_reply.ok, 0);
	assert_non_null(strstr(run.answer.run_reply.text, "submit"));
	visit(*state, &client);
	assert_int_equal(client.outcome, SL_INSIDE_REFUSED);
}

/* A token from a container starts nothing outside of it. */
static void a_container_submits_nothing(void **state)
{
	struct sl_user *who = stranger(7, true);
	struct visit one = {.body = submit_nothing};

	who->uid = geteuid();
	one.who = who;
	visit(*state, &one);
	assert_int_equal(one.outcome, SL_INSIDE_OK);
	assert_int_equal(one.answer.submit_reply.ok, 0);
	assert_non_null(strstr(one.answer.submit_reply.text, "container"));
	(void)sl_user_free(who);
}

/* The daemon's own threads come in beside it. */
static struct sl_peer *the_stranger(struct inside *inside)
{
	sl_list_foreach (link, &inside->daemon.peers->all) {
		struct sl_peer *peer = SL_LIST_ENTRY(link, struct sl_peer, link);

		if (peer->uid == STRANGER)
			return peer;
	}
	fail_msg("no stranger is inside");
	return NULL;
}

static void groups_come_along(void **state)
{
	struct inside *inside = *state;
	struct sl_user *who = stranger(4711, false);
	struct visit one = {.body = stay, .who = who};
	uint32_t gids[SL_BOUNDS_GROUPS_MAX];
	struct sl_peer *peer;

	begin(inside, &one);
	inside_until(inside, atomic_load(&one.is_in));
	peer = the_stranger(inside);
	assert_int_equal(sl_bounds_groups_of(peer, gids), 2);
	assert_int_equal(gids[0], STRANGER);
	assert_int_equal(gids[1], 4711);
	atomic_store(&one.leave, true);
	finish(inside, &one);
	(void)sl_user_free(who);
}

/* All of its two places are taken, and threads come in all the same. */
static void no_place_is_taken(void **state)
{
	struct inside *inside = *state;
	struct rig_peer a = rig_peer(&inside->rig), b = rig_peer(&inside->rig);
	struct visit one = {.body = list_twice};

	rig_hello(&a, SL_ROLE_CONTROL, 0);
	rig_hello(&b, SL_ROLE_CONTROL, 0);
	inside_until(inside, inside->daemon.peers->count == 2);
	visit(inside, &one);
	assert_int_equal(one.outcome, SL_INSIDE_OK);
	assert_int_equal(inside->daemon.peers->count, 2);
	rig_peer_end(&a);
	rig_peer_end(&b);
	inside_until(inside, inside->daemon.peers->count == 0);
}

static void who_follows_waits_in_slices(void **state)
{
	struct inside *inside = *state;
	struct visit one = {.body = follow};

	begin(inside, &one);
	inside_until(inside, atomic_load(&one.is_in));
	for (int i = 0; i < 20; i++) {
		inside_turn(inside);
		sl_clock_sleep(5 * SL_MS);
	}
	sl_events_add(&inside->daemon,
		&(struct sl_node_because){.reason = SL_REASON_JOURNAL_WORKS});
	finish(inside, &one);
	assert_int_equal(one.outcome, SL_INSIDE_OK);
	assert_true(one.rows > 0);
}

/* Last: the door does not open again. */
static void the_end_wakes_who_waits(void **state)
{
	struct inside *inside = *state;
	struct visit waiting = {.body = wait_long}, late = {0};
	sl_ns before;

	begin(inside, &waiting);
	inside_until(inside, atomic_load(&waiting.is_in));
	before = sl_clock_now();
	sl_inside_door_end(inside->daemon.inside);
	assert_int_equal(pthread_join(waiting.thread, NULL), 0);
	assert_int_equal(waiting.outcome, SL_INSIDE_GONE);
	assert_true(sl_clock_now() - before < SL_INSIDE_TIMEOUT_MS * SL_MS);
	begin(inside, &late);
	assert_int_equal(pthread_join(late.thread, NULL), 0);
	assert_int_equal(late.opened, SL_INSIDE_GONE);
	assert_non_null(strstr(late.err.text, "ending"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_those_of_the_command_line),
		cmocka_unit_test(rights_are_those_of_the_user),
		cmocka_unit_test(nothing_runs_in_the_daemon),
		cmocka_unit_test(a_container_submits_nothing),
		cmocka_unit_test(groups_come_along),
		cmocka_unit_test(no_place_is_taken),
		cmocka_unit_test(who_follows_waits_in_slices),
		cmocka_unit_test(the_end_wakes_who_waits),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
