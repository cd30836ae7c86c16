/*
 * The Lease of the scheduler against an API server of the test's own: its holder, and for how long.
 */
#include "../server.h"

#include <string.h>

#include "cluster/kubernetes/scheduler/internal.h"

#define LEASE (2 * SL_S)

/* The object, as the server has it. */
static struct {
	char holder[64];
	int version;
	bool exists, is_mute; /* mute: it no longer accepts anything */
	unsigned int hung;
	unsigned int writes;
} object;

/* Its fate once it has the Lease. */
enum then {
	ENDS = 0, /* the loop, too */
	LOSES,    /* it cannot renew it */
	LEAVES,   /* in order */
};

static struct {
	struct sl_ks ks;
	unsigned int held, lost;
	enum then then;
} s;

static char *shown(void)
{
	return text("{\"metadata\":{\"name\":\"sluice-scheduler\",\"resourceVersion\":\"%"
		    "d\"},"
		    "\"spec\":{\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":2}}",
		object.version, object.holder);
}

static void serve(struct exchange *exchange)
{
	json_t *body = exchange->body[0] ? json_loads(exchange->body, 0, NULL) : NULL;
	const char *version = sl_kube_text_at(body, "metadata", "resourceVersion", NULL);

	if (strcmp(exchange->path, "/hang") == 0) {
		exchange->how = HANG;
		object.hung++;
	} else if (object.is_mute) {
		exchange->status = 503;
	} else if (strcmp(exchange->method, "GET") == 0) {
		exchange->status = object.exists ? 200 : 404;
	} else if (strcmp(exchange->method, "PUT") == 0 &&
		   atoi(version) != object.version) {
		exchange->status = 409;
	} else {
		(void)snprintf(object.holder, sizeof(object.holder), "%s",
			sl_kube_text_at(body, "spec", "holderIdentity", NULL));
		object.exists = true;
		object.version++;
		object.writes++;
	}
	if (exchange->status < 300)
		exchange->text = shown();
	json_decref(body);
}

static void on_held(struct sl_ks *ks)
{
	s.held++;
	object.is_mute = s.then == LOSES;
	if (s.then == ENDS)
		(void)sd_event_exit(ks->loop, 0);
	if (s.then != LEAVES)
		return;
	sl_ks_lease_leave(ks->lease);
	assert_true(sl_ks_lease_left(ks->lease) == 0);
}

static void on_lost(struct sl_ks *ks)
{
	s.lost++;
	(void)sd_event_exit(ks->loop, 0);
}

static int on_late(sd_event_source *source, uint64_t usec, void *context)
{
	(void)sd_event_exit(context, 1);
	return 0;
}

static int on_answer(sd_event_source *source, uint64_t usec, void *context)
{
	struct sl_ks *ks = context;

	assert_string_equal(object.holder, "me");
	ks->writing = 0;
	return 0;
}

/* Runs the loop until the scheduler has the Lease, or has lost it again. others: calls to the API
 * that are never answered. answer_s: when a write in flight is answered; 0: none is in flight.
 * Returns the exit code of the loop. */
static int play_writing(
	enum then then, uint64_t most_s, unsigned int others, uint64_t answer_s)
{
	struct sl_kube_config config = server_config(), own = server_config();
	int r;

	s = (typeof(s)){.then = then, .ks.writing = answer_s > 0};
	s.ks.options = (struct sl_kube_scheduler_options){
		.namespace = "sluice", .identity = "me", .lease = LEASE};
	sl_list_init(&s.ks.pods);
	assert_int_equal(sd_event_new(&s.ks.loop), 0);
	assert_int_equal(sl_kube_new(&s.ks.kube, s.ks.loop, &config), 0);
	assert_int_equal(sl_kube_new(&s.ks.lease_kube, s.ks.loop, &own), 0);
	for (unsigned int i = 0; i < others; i++)
		assert_int_equal(
			sl_kube_call(s.ks.kube,
				&(struct sl_kube_request){.path = "/hang"}, NULL),
			0);
	assert_int_equal(sd_event_add_time_relative(s.ks.loop, NULL, CLOCK_MONOTONIC,
				 most_s * 1000000, 0, on_late, s.ks.loop),
		0);
	if (answer_s)
		assert_int_equal(
			sd_event_add_time_relative(s.ks.loop, NULL, CLOCK_MONOTONIC,
				answer_s * 1000000, 0, on_answer, &s.ks),
			0);
	assert_int_equal(sl_ks_lease_new(&s.ks, on_held, on_lost, &s.ks.lease), 0);
	r = sd_event_loop(s.ks.loop);
	return r;
}

static int play(enum then then, uint64_t most_s, unsigned int others)
{
	return play_writing(then, most_s, others, 0);
}

static void end(void)
{
	s.ks.lease = sl_ks_lease_free(s.ks.lease);
	s.ks.kube = sl_kube_free(s.ks.kube);
	s.ks.lease_kube = sl_kube_free(s.ks.lease_kube);
	s.ks.loop = sd_event_unref(s.ks.loop);
}

static void takes_what_is_not_there(void **state)
{
	object = (typeof(object)){0};
	assert_int_equal(play(ENDS, 60, 0), 0);
	assert_int_equal(s.held, 1);
	assert_string_equal(object.holder, "me");
	assert_true(sl_ks_lease_left(s.ks.lease) > 0);
	assert_true(sl_ks_lease_left(s.ks.lease) <= LEASE);
	end();
}

/* Another process has the Lease and does not renew it. The scheduler takes it once it has not
 * changed for its full duration, and not earlier. An earlier process of the same name counts as
 * another one. */
static void waits_for_one_that_is_gone(void **state)
{
	static const char *const holders[] = {"other", "me"};

	for (size_t i = 0; i < SL_ARRAY_LEN(holders); i++) {
		sl_ns began = sl_clock_now();

		object = (typeof(object)){.exists = true, .version = 7};
		(void)snprintf(object.holder, sizeof(object.holder), "%s", holders[i]);
		assert_int_equal(play(ENDS, 60, 0), 0);
		assert_row_u64(holders[i], s.held, 1);
		assert_row_u64(holders[i], sl_clock_now() - began >= LEASE, true);
		assert_row_u64(holders[i], object.writes, 1);
		end();
	}
}

/* The next one need not wait; but a write that is under way is answered first. */
static void gives_it_back(void **state)
{
	object = (typeof(object)){0};
	assert_int_equal(play_writing(LEAVES, 60, 0, 1), 0);
	assert_int_equal(s.lost, 1);
	assert_int_equal(s.ks.writing, 0);
	assert_string_equal(object.holder, "");
	end();
	assert_int_equal(play(ENDS, 1, 0), 0);
	end();
}

/* It is over before the write is answered. */
static void a_write_without_an_answer_keeps_it(void **state)
{
	object = (typeof(object)){0};
	assert_int_equal(play_writing(LEAVES, 60, 0, 100), 0);
	assert_int_equal(s.lost, 1);
	assert_string_equal(object.holder, "me");
	end();
}

/* It stops before the lease is over, not after. */
static void gives_up_in_time(void **state)
{
	sl_ns left;

	object = (typeof(object)){0};
	assert_int_equal(play(LOSES, 60, 0), 0);
	assert_int_equal(s.lost, 1);
	left = sl_ks_lease_left(s.ks.lease);
	assert_true(left == 0);
	end();
}

/* Calls that wait for answers do not delay the Lease, even if there are more than a client has
 * connections. */
static void other_calls_are_not_in_its_way(void **state)
{
	object = (typeof(object)){0};
	assert_int_equal(play(ENDS, 10, 60), 0);
	assert_int_equal(s.held, 1);
	assert_true(object.hung > 0);
	end();
}

static int start(void **state)
{
	server_start(serve);
	return 0;
}

static int stop(void **state)
{
	server_stop();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(takes_what_is_not_there, start, stop),
		cmocka_unit_test_setup_teardown(waits_for_one_that_is_gone, start, stop),
		cmocka_unit_test_setup_teardown(gives_it_back, start, stop),
		cmocka_unit_test_setup_teardown(
			a_write_without_an_answer_keeps_it, start, stop),
		cmocka_unit_test_setup_teardown(gives_up_in_time, start, stop),
		cmocka_unit_test_setup_teardown(
			other_calls_are_not_in_its_way, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
