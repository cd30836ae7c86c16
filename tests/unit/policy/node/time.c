/*
 * time - compute requests: promised on a GPU up to all of its time, given up by a park, and claimed
 * again by a resume once there is room
 *
 * All requests of memory fit.
 */
#include "play.h"

#define COMPUTE(w, gpus, pm_) \
	EVENT(WORKLOAD_ADD, workload_add, {w, BYTES(10), ANY, 1, gpus, .compute_pm = pm_})
#define KNOWN(w, pm_)                     \
	EVENT(WORKLOAD_ADD, workload_add, \
		{w, BYTES(10), ANY, 1, 1, .recovered = 1, .compute_pm = pm_})
#define RAISE(w, pm_)                     \
	EVENT(WORKLOAD_SET, workload_set, \
		{.workload = w, .which = SL_SET_COMPUTE_REQUEST, .compute_pm = pm_})
#define PARK(w)         EVENT(WORKLOAD_PARK, workload_park, {w, 0})
#define LEAVE(w)        EVENT(WORKLOAD_PARK, workload_park, {w, .returns = 1})
#define RESUME(w)       EVENT(WORKLOAD_RESUME, workload_resume, {w, 0})
#define RESUME_ON(w, m) EVENT(WORKLOAD_RESUME, workload_resume, {w, m})
#define STOP(w)         EVENT(WORKLOAD_STOP, workload_stop, {w, SL_S})
#define SWAP                         \
	SETTINGS(.pool_bytes = 1000, \
		.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0))

static void test_promised(void **state)
{
	const struct play_row rows[] = {
		{"", 0, SWAP, ""},
		{"", 0, GPU(0, 100), ""},
		{"", 0, GPU(1, 100), ""},
		{"first", 0, COMPUTE(1, 1, 600), "ADMIT 1 m1 r10 l10"},
		{"beside it", 1, COMPUTE(2, 1, 401), "REFUSE 2 COMPUTE_TAKEN g0 10 90"},
		{"all that is left", 1, COMPUTE(2, 1, 400), "ADMIT 2 m1 r10 l10"},
		{"where there is some", 1, COMPUTE(3, 3, 500), "ADMIT 3 m2 r10 l10"},
		{"none wanted", 1, COMPUTE(4, 1, 0), "ADMIT 4 m1 r10 l10"},
		{"more", 2, RAISE(2, 401), "REFUSE 2 COMPUTE_TAKEN g0 401 400"},
		{"less", 2, RAISE(1, 500), "SET 1 r10 l10 p0 over0"},
		{"now more", 2, RAISE(2, 500), "SET 2 r10 l10 p0 over0"},
		{"full", 3, COMPUTE(5, 1, 1), "REFUSE 5 COMPUTE_TAKEN g0 10 70"},
		{"one ends", 3, REMOVE(1), ""},
		{"its part", 3, COMPUTE(5, 1, 500), "ADMIT 5 m1 r10 l10"},
	};

	(void)state;
	PLAY(rows);
}

/* What a parked workload gave up, and what is changed meanwhile, is no promise before there is room
 * for it. Those that wait are served in order. */
static void test_claimed_again(void **state)
{
	const struct play_row rows[] = {
		{"", 0, SWAP, ""},
		{"", 0, GPU(0, 100), ""},
		{"", 0, COMPUTE(1, 1, 800), "ADMIT 1 m1 r10 l10"},
		{"", 0, COMPUTE(2, 1, 200), "ADMIT 2 m1 r10 l10"},
		{"given up", 1, PARK(2),
			"SET 2 r10 l10 p0 over0; NOTE PARK_BEGINS g0 2/0 0; "
			"PARKED 2 0"},
		{"raised", 2, RAISE(2, 1000), "SET 2 r10 l10 p0 over0"},
		{"waits", 3, RESUME(2), "SET 2 r10 l10 p0 over0"},
		{"no promise", 4, COMPUTE(3, 1, 200), "ADMIT 3 m1 r10 l10"},
		{"leaves", 5, LEAVE(3),
			"SET 3 r10 l10 p0 over0; NOTE DETACH_BEGINS g0 3/0 0; "
			"PARKED 3 0"},
		{"called back, behind it", 6, RESUME(3), "SET 3 r10 l10 p0 over0"},
		{"lowered", 7, RAISE(2, 200), "SET 2 r10 l10 p0 over0; RESUMED 2 10"},
		{"one ends", 8, REMOVE(1), "RESUMED 3 10"},
		{"again", 9, PARK(3),
			"SET 3 r10 l10 p0 over0; NOTE PARK_BEGINS g0 3/0 0; "
			"PARKED 3 0"},
		{"taken", 9, COMPUTE(4, 1, 800), "ADMIT 4 m1 r10 l10"},
		{"ends parked", 9, STOP(3), "STOP 0 3 TERM STOP_ASKED"},
		{"claims nothing", 9, REMOVE(4), ""},
		{"", 9, COMPUTE(5, 1, 800), "ADMIT 5 m1 r10 l10"},
	};

	(void)state;
	PLAY(rows);
}

static void keep(void *context, const struct sl_node_because *because)
{
	*(struct sl_node_because *)context = *because;
}

/* `why` names the GPU, what is wanted and what is left. On another GPU there is room. */
static void test_says_why(void **state)
{
	struct sl_node_because because = {0};
	struct play p;

	(void)state;
	play_open(&p);
	(void)play(&p, "", 0, (struct sl_event)SWAP);
	(void)play(&p, "", 0, (struct sl_event)GPU(0, 100));
	(void)play(&p, "", 0, (struct sl_event)GPU(1, 100));
	(void)play(&p, "", 0, (struct sl_event)COMPUTE(1, 1, 400));
	(void)play(&p, "", 1, (struct sl_event)PARK(1));
	(void)play(&p, "", 2, (struct sl_event)COMPUTE(2, 1, 700));
	(void)play(&p, "", 3, (struct sl_event)RESUME(1));
	sl_node_why(p.node, 1, keep, &because);
	assert_row_text("why", sl_reason_name(because.reason), "RESUME_WAITS_TIME");
	assert_row_u64("wants", because.bytes, 400);
	assert_row_u64("left", because.available_bytes, 300);
	assert_non_null(strstr(
		play(&p, "", 4, (struct sl_event)RESUME_ON(1, 2)), "RESUMED 1 10"));
	play_close(&p);
}

/* An earlier daemon's promises are kept, and one that it parked waits. */
static void test_after_a_restart(void **state)
{
	const struct play_row rows[] = {
		{"", 0, SWAP, ""},
		{"", 0, GPU(0, 100), ""},
		{"", 0, KNOWN(1, 600), "ADMIT 1 m1 r10 l10"},
		{"", 0, KNOWN(2, 600), "ADMIT 2 m1 r10 l10"},
		{"parked", 0, EVENT(WORKLOAD_PARK, workload_park, {2, .recovered = 1}),
			"SET 2 r10 l10 p0 over0; PARKED 2 0"},
		{"waits", 1, RESUME(2), "SET 2 r10 l10 p0 over0"},
		{"comes back", 2, REMOVE(1), "RESUMED 2 10"},
	};

	(void)state;
	PLAY(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_promised),
		cmocka_unit_test(test_claimed_again),
		cmocka_unit_test(test_says_why),
		cmocka_unit_test(test_after_a_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
