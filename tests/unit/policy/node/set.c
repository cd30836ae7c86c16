#include "play.h"

/* A workload changes while it runs: the rows are events on GPUs of 100 (0) and 60 (1) bytes. */

#define WORKLOAD(w, request, limit, count, mask, priority) \
	EVENT(WORKLOAD_ADD, workload_add,                  \
		{w, request, limit, count, mask, priority, 0, 0, 0, 0, {ANY}})
#define OWNED(w, owned, ...)              \
	EVENT(WORKLOAD_ADD, workload_add, \
		{w, BYTES(10), BYTES(20), 1, 1, 0, 0, owned, 0, 0, __VA_ARGS__})
#define SET(w, which, request, limit, priority) \
	EVENT(WORKLOAD_SET, workload_set,       \
		{w, which, request, limit, priority, 0, 0, {ANY}})
#define SET_BOUND(w, which, request, limit, priority, ...) \
	EVENT(WORKLOAD_SET, workload_set,                  \
		{w, which, request, limit, priority, 0, 0, __VA_ARGS__})
#define R SL_SET_REQUEST
#define L SL_SET_LIMIT
#define P SL_SET_PRIORITY

static void changes_numbers(void **state)
{
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"a workload", 0, WORKLOAD(1, BYTES(20), BYTES(50), 1, 1, 0),
			"ADMIT 1 m1 r20 l50"},
		{"another", 0, WORKLOAD(2, BYTES(30), BYTES(60), 1, 1, 0),
			"ADMIT 2 m1 r30 l60"},
		{"no process, nobody told", 0, SET(1, L, ANY, BYTES(70), 0),
			"SET 1 r20 l70 p0 over0"},
		{"its process", 0, JOIN(10, 1), ""},
		{"the limit", 0, SET(1, L, ANY, BYTES(60), 0),
			"SET 1 r20 l60 p0 over0; VIEW 1 g0"},
		{"the request: no program sees it", 0, SET(1, R, BYTES(40), ANY, 0),
			"SET 1 r40 l60 p0 over0"},
		{"both and the priority", 0, SET(1, R | L | P, BYTES(50), BYTES(90), 7),
			"SET 1 r50 l90 p7 over0; VIEW 1 g0"},
		{"all that is left", 0, SET(1, R, BYTES(70), ANY, 0),
			"SET 1 r70 l90 p7 over0"},
		{"a byte more", 0, SET(1, R, BYTES(71), ANY, 0),
			"REFUSE 1 REQUESTS_TAKEN g0 71 70"},
		{"a limit above the GPU is the GPU", 0, SET(1, L, ANY, BYTES(500), 0),
			"SET 1 r70 l100 p7 over0; VIEW 1 g0"},
		{"a limit below the request", 0, SET(1, L, ANY, BYTES(69), 0),
			"REFUSE 1 LIMIT_BELOW_REQUEST g0 70 69"},
		{"a request above the limit", 0, SET(2, R, BYTES(61), ANY, 0),
			"REFUSE 2 LIMIT_BELOW_REQUEST g0 61 60"},
		{"a request above the GPU", 0, SET(2, R | L, BYTES(101), BYTES(500), 0),
			"REFUSE 2 REQUEST_TOO_LARGE g0 101 100"},
		{"a lower request leaves room", 0, SET(1, R, BYTES(0), ANY, 0),
			"SET 1 r0 l100 p7 over0"},
		{"for the other", 0, SET(2, R | L, BYTES(100), BYTES(100), 0),
			"SET 2 r100 l100 p0 over0"},
		{"nothing named, nothing changed", 0, SET(2, 0, ANY, ANY, 9),
			"SET 2 r100 l100 p0 over0"},
		{"unknown", 0, SET(3, P, ANY, ANY, 1),
			"REFUSE 3 UNKNOWN_WORKLOAD g0 0 0"},
		{"removed", 0, REMOVE(2), ""},
		{"too late", 0, SET(2, P, ANY, ANY, 1),
			"REFUSE 2 UNKNOWN_WORKLOAD g0 0 0"},
	};

	PLAY(rows);
}

static void is_all_or_nothing(void **state)
{
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"a workload", 0, WORKLOAD(1, BYTES(20), BYTES(50), 1, 1, 3),
			"ADMIT 1 m1 r20 l50"},
		{"good priority, bad request", 0, SET(1, R | P, BYTES(60), ANY, 9),
			"REFUSE 1 LIMIT_BELOW_REQUEST g0 60 50"},
		{"as it was", 0, SET(1, 0, ANY, ANY, 0), "SET 1 r20 l50 p3 over0"},
	};

	PLAY(rows);
}

/* I1 counts the larger of request and fixed, on each of its GPUs. */
static void keeps_the_promise_everywhere(void **state)
{
	static const struct play_row rows[] = {
		{"a large GPU", 0, GPU(0, 100), ""},
		{"a small GPU", 0, GPU(1, 60), ""},
		{"on both", 0, WORKLOAD(1, BYTES(10), BYTES(60), 2, 3, 0),
			"ADMIT 1 m3 r10 l60"},
		{"its process", 0, JOIN(10, 1), ""},
		{"a neighbour on the large one", 0,
			WORKLOAD(2, BYTES(70), BYTES(70), 1, 1, 0), "ADMIT 2 m1 r70 l70"},
		{"its process", 0, JOIN(20, 2), ""},
		{"the small one has 60, the large one 30", 0,
			SET(1, R, BYTES(31), ANY, 0), "REFUSE 1 REQUESTS_TAKEN g0 31 30"},
		{"30 on both", 0, SET(1, R, BYTES(30), ANY, 0), "SET 1 r30 l60 p0 over0"},
		{"a limit by the smallest", 0, SET(1, L, ANY, BYTES(90), 0),
			"SET 1 r30 l60 p0 over0"},
		{"told on both", 0, SET(1, L, ANY, BYTES(50), 0),
			"SET 1 r30 l50 p0 over0; VIEW 1 g0; VIEW 1 g1"},
		{"measured above its request", 0, HIDDEN(10, 0, 20), "VIEW 1 g0"},
		{"less", 0, SET(1, R, BYTES(10), ANY, 0), "SET 1 r10 l50 p0 over0"},
		{"the neighbour gets 80, not 90: 20 are fixed", 0,
			SET(2, R | L, BYTES(81), BYTES(90), 0),
			"REFUSE 2 REQUESTS_TAKEN g0 81 80"},
		{"80", 0, SET(2, R | L, BYTES(80), BYTES(90), 0),
			"SET 2 r80 l90 p0 over0; VIEW 2 g0"},
		{"degraded", 0, HIDDEN(10, 0, 30),
			"VIEW 1 g0; NOTE DEGRADED_BEGINS g0 0/0 10"},
		{"no raise, though the small one could", 0, SET(1, R, BYTES(11), ANY, 0),
			"REFUSE 1 DEGRADED g0 11 20"},
		{"what lowers is welcome", 0, SET(2, R, BYTES(70), ANY, 0),
			"SET 2 r70 l90 p0 over0; NOTE DEGRADED_ENDS g0 0/0 0"},
		{"and other changes are no raise", 0, SET(1, P, ANY, ANY, 5),
			"SET 1 r10 l50 p5 over0"},
	};

	PLAY(rows);
}

static void fractions_are_of_the_smallest(void **state)
{
	static const struct play_row rows[] = {
		{"a large GPU", 0, GPU(0, 100 * SL_MIB), ""},
		{"a small GPU", 0, GPU(1, 40 * SL_MIB), ""},
		{"on both", 0, WORKLOAD(1, BYTES(0), ANY, 2, 3, 0), "ADMIT 1 m3 r0 l0"},
		{"half of both", 0, SET(1, R | L, PART(500000), PART(1000000), 0),
			"SET 1 r20971520 l41943040 p0 over0"},
	};

	PLAY(rows);
}

static void a_lower_limit_is_felt_by_those_who_wait(void **state)
{
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"the changed one", 0, WORKLOAD(1, BYTES(20), BYTES(90), 1, 1, 0),
			"ADMIT 1 m1 r20 l90"},
		{"a neighbour", 0, WORKLOAD(2, BYTES(50), BYTES(50), 1, 1, 0),
			"ADMIT 2 m1 r50 l50"},
		{"processes", 0, JOIN(10, 1), ""},
		{"processes", 0, JOIN(11, 1), ""},
		{"processes", 0, JOIN(20, 2), ""},
		{"bursts", 0, ASK(10, 1, 0, 45), "GRANT 10/1 g0 45"},
		{"is made", 0, COMMIT(10, 1, 45), "VIEW 1 g0"},
		{"waits: 5 are free for it", 0, ASK(10, 2, 0, 30), ""},
		{"waits too", 0, ASK(11, 1, 0, 10), ""},
		{"the first no longer fits under it, the second does", 100,
			SET(1, L, ANY, BYTES(60), 0),
			"SET 1 r20 l60 p0 over0; VIEW 1 g0; DENY 10/2 OVER_LIMIT g0"},
		{"it holds more than it may", 200, SET(1, L, ANY, BYTES(40), 0),
			"SET 1 r20 l40 p0 over5; VIEW 1 g0; DENY 11/1 OVER_LIMIT g0"},
		{"demands from now on", 300, ASK(10, 3, 0, 1), "DENY 10/3 OVER_LIMIT g0"},
		{"back under it", 400, FREED(10, 0, 10), "VIEW 1 g0"},
		{"and again", 400, ASK(10, 4, 0, 5), "GRANT 10/4 g0 5"},
		{"raised", 500, SET(1, L, ANY, BYTES(90), 0),
			"SET 1 r20 l90 p0 over0; VIEW 1 g0"},
	};

	PLAY(rows);
}

/* Waiting demands are ranked anew: entitled or not, and by the new priority. */
static void ranks_anew(void **state)
{
	static const struct play_row entitled[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"the changed one", 0, WORKLOAD(1, BYTES(0), BYTES(90), 1, 1, 0),
			"ADMIT 1 m1 r0 l90"},
		{"a neighbour with a request", 0,
			WORKLOAD(2, BYTES(60), BYTES(60), 1, 1, 0), "ADMIT 2 m1 r60 l60"},
		{"and one that bursts", 0, WORKLOAD(3, BYTES(0), BYTES(90), 1, 1, 0),
			"ADMIT 3 m1 r0 l90"},
		{"processes", 0, JOIN(10, 1), ""},
		{"processes", 0, JOIN(30, 3), ""},
		{"30 of the 40 that nobody requested", 0, ASK(30, 1, 0, 30),
			"GRANT 30/1 g0 30"},
		{"a burst that waits", 0, ASK(10, 1, 0, 40), ""},
		{"39 are not enough", 100, SET(1, R, BYTES(39), ANY, 0),
			"SET 1 r39 l90 p0 over0"},
		{"entitled by the change: others' requests are no obstacle", 200,
			SET(1, R, BYTES(40), ANY, 0),
			"SET 1 r40 l90 p0 over0; GRANT 10/1 g0 40"},
		{"made", 200, COMMIT(30, 1, 30), ""},
		{"made", 200, COMMIT(10, 2, 40), ""},
		{"waits for 10 of another's request", 300, ASK(10, 2, 0, 10), ""},
		{"until that gives them up", 400, SET(2, R, BYTES(20), ANY, 0),
			"SET 2 r20 l60 p0 over0; GRANT 10/2 g0 10"},
	};
	static const struct play_row priority[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"one", 0, WORKLOAD(1, BYTES(0), BYTES(100), 1, 1, 5),
			"ADMIT 1 m1 r0 l100"},
		{"two", 0, WORKLOAD(2, BYTES(0), BYTES(100), 1, 1, 0),
			"ADMIT 2 m1 r0 l100"},
		{"three", 0, WORKLOAD(3, BYTES(0), BYTES(100), 1, 1, 0),
			"ADMIT 3 m1 r0 l100"},
		{"processes", 0, JOIN(10, 1), ""},
		{"processes", 0, JOIN(20, 2), ""},
		{"processes", 0, JOIN(30, 3), ""},
		{"all of it", 0, ASK(30, 1, 0, 100), "GRANT 30/1 g0 100"},
		{"made", 0, COMMIT(30, 1, 100), ""},
		{"waits in front", 10, ASK(10, 1, 0, 60), ""},
		{"waits behind", 20, ASK(20, 1, 0, 60), ""},
		{"to the front", 30, SET(2, P, ANY, ANY, 6), "SET 2 r0 l100 p6 over0"},
		{"is served first", 40, FREED(30, 0, 60), "GRANT 20/1 g0 60"},
		{"a refused creation comes back to the new place", 40,
			SET(2, P, ANY, ANY, 4), "SET 2 r0 l100 p4 over0"},
		{"refused", 50, FAILED(20, 2),
			"NOTE CREATE_FAILED g0 2/0 60; GRANT 10/1 g0 60"},
	};

	PLAY(entitled);
	PLAY(priority);
}

static void flags_and_waits(void **state)
{
	struct play p;
	struct sl_event set = EVENT(WORKLOAD_SET, workload_set,
		{1, SL_SET_FLAGS, ANY, ANY, 0, SL_WORKLOAD_OOM_FIRST, 7 * SL_S, {ANY}});
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"a workload", 0,
			EVENT(WORKLOAD_ADD, workload_add,
				{1, BYTES(0), BYTES(100), 1, 1, 0, 0, 4,
					SL_WORKLOAD_NO_SWAP, 3 * SL_S, {ANY}}),
			"ADMIT 1 m1 r0 l100"},
	};

	play_open(&p);
	play_rows(&p, rows, SL_ARRAY_LEN(rows));
	assert_row_u64("flags", sl_node_workload(p.node, 1).flags, SL_WORKLOAD_NO_SWAP);
	assert_row_u64("wait", sl_node_workload(p.node, 1).wait_max, 3 * SL_S);
	(void)play(&p, "flags alone", 0, set);
	assert_row_u64("flags", sl_node_workload(p.node, 1).flags, SL_WORKLOAD_OOM_FIRST);
	assert_row_u64("wait", sl_node_workload(p.node, 1).wait_max, 3 * SL_S);
	set.workload_set.which = SL_SET_WAIT;
	set.workload_set.flags = 0;
	(void)play(&p, "the wait alone", 0, set);
	assert_row_u64("flags", sl_node_workload(p.node, 1).flags, SL_WORKLOAD_OOM_FIRST);
	assert_row_u64("wait", sl_node_workload(p.node, 1).wait_max, 7 * SL_S);
	play_close(&p);
}

/* What an administrator allows a user, on arrival and with each change. */
static void bounds_hold(void **state)
{
#define TWO                       \
	{                         \
		ANY, ANY, 0, 0, 2 \
	}
#define TIGHT                                    \
	{                                        \
		BYTES(30), BYTES(50), true, 4, 0 \
	}
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"one of a user", 0, OWNED(1, 1, TWO), "ADMIT 1 m1 r10 l20"},
		{"two of it", 0, OWNED(2, 2, TWO), "ADMIT 2 m1 r10 l20"},
		{"three of it", 0, OWNED(3, 3, TWO), "REFUSE 3 BOUND_WORKLOADS g0 3 2"},
		{"another user", 0, OWNED(3, 1, TWO), "ADMIT 3 m1 r10 l20"},
		{"one of them has ended", 0, OWNED(4, 2, TWO), "ADMIT 4 m1 r10 l20"},
		{"recovered ones are not judged", 0,
			EVENT(WORKLOAD_ADD, workload_add,
				{5, BYTES(10), BYTES(20), 1, 1, 0, 1, 3, 0, 0, TWO}),
			"ADMIT 5 m1 r10 l20"},
		{"a request too large for the user", 0,
			EVENT(WORKLOAD_ADD, workload_add,
				{6, BYTES(31), BYTES(40), 1, 1, 0, 0, 9, 0, 0, TIGHT}),
			"REFUSE 6 BOUND_REQUEST g0 31 30"},
		{"though it would not fit anyway", 0,
			EVENT(WORKLOAD_ADD, workload_add,
				{6, BYTES(90), BYTES(95), 1, 1, 0, 0, 9, 0, 0, TIGHT}),
			"REFUSE 6 BOUND_REQUEST g0 90 30"},
		{"a priority too high", 0,
			EVENT(WORKLOAD_ADD, workload_add,
				{6, BYTES(30), BYTES(50), 1, 1, 5, 0, 9, 0, 0, TIGHT}),
			"REFUSE 6 BOUND_PRIORITY g0 5 4"},
		{"all as allowed", 0,
			EVENT(WORKLOAD_ADD, workload_add,
				{6, BYTES(30), BYTES(50), 1, 1, 4, 0, 9, 0, 0, TIGHT}),
			"ADMIT 6 m1 r30 l50"},
		{"raised by an administrator", 0, SET(6, L | P, ANY, BYTES(80), 9),
			"SET 6 r30 l80 p9 over0"},
		{"the user changes the request; the rest stays", 0,
			SET_BOUND(6, R, BYTES(20), ANY, 0, TIGHT),
			"SET 6 r20 l80 p9 over0"},
		{"naming what it is already is no change", 0,
			SET_BOUND(6, L | P, ANY, BYTES(80), 9, TIGHT),
			"SET 6 r20 l80 p9 over0"},
		{"a limit above the bound, though lower than before", 0,
			SET_BOUND(6, L, ANY, BYTES(60), 0, TIGHT),
			"REFUSE 6 BOUND_LIMIT g0 60 50"},
		{"a request above the bound", 0,
			SET_BOUND(6, R, BYTES(31), ANY, 0, TIGHT),
			"REFUSE 6 BOUND_REQUEST g0 31 30"},
		{"a priority above the bound", 0, SET_BOUND(6, P, ANY, ANY, 5, TIGHT),
			"REFUSE 6 BOUND_PRIORITY g0 5 4"},
		{"one within it", 0, SET_BOUND(6, P, ANY, ANY, 4, TIGHT),
			"SET 6 r20 l80 p4 over0"},
	};

	PLAY(rows);
}

/* A fraction may be allowed on a small GPU and too much on a large one. */
static void bounds_choose_the_gpu(void **state)
{
#define HALF                                                \
	EVENT(WORKLOAD_ADD, workload_add,                   \
		{1, PART(500000), ANY, 1, 3, 0, 0, 7, 0, 0, \
			{BYTES(20 * SL_MIB), ANY, false, 0, 0}})
	static const struct play_row rows[] = {
		{"a large GPU", 0, GPU(0, 100 * SL_MIB), ""},
		{"too much there", 0, HALF,
			"REFUSE 1 BOUND_REQUEST g0 52428800 20971520"},
		{"a small one", 0, GPU(1, 40 * SL_MIB), ""},
		{"goes to it", 0, HALF, "ADMIT 1 m2 r20971520 l20971520"},
	};

	PLAY(rows);
}

/* What stands on requests of higher priority stays where these can take it back. */
static void a_loan_does_not_rise(void **state)
{
	static const struct play_row rows[] = {
		{"settings", 0,
			EVENT(CONFIG, config,
				{.wait_max = 60 * SL_S,
					.head_pass = SL_S,
					.idle_wait = SL_S,
					.chain = SL_CHAIN(SL_RESOLVER_PRIORITY,
						SL_RESOLVER_WAIT, 0)}),
			""},
		{"a GPU", 0, GPU(0, 100), ""},
		{"the owner", 0, WORKLOAD(1, BYTES(50), BYTES(50), 1, 1, 5),
			"ADMIT 1 m1 r50 l50"},
		{"the borrower", 0, WORKLOAD(2, BYTES(0), BYTES(100), 1, 1, 0),
			"ADMIT 2 m1 r0 l100"},
		{"its process", 0, JOIN(20, 2), "PROBE 20 1"},
		{"what nobody requested, and more", 0, ASK(20, 1, 0, 90),
			"GRANT 20/1 g0 90"},
		{"made", 0, COMMIT(20, 1, 90), ""},
		{"still below the owner", 0, SET(2, P, ANY, ANY, 4),
			"SET 2 r0 l100 p4 over0"},
		{"out of the owner's reach", 0, SET(2, P, ANY, ANY, 5),
			"REFUSE 2 STANDS_ON_REQUESTS g0 90 10"},
		{"given back", 0, FREED(20, 0, 50), ""},
		{"nothing stands on it", 0, SET(2, P, ANY, ANY, 5),
			"SET 2 r0 l100 p5 over0"},
	};

	PLAY(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changes_numbers),
		cmocka_unit_test(is_all_or_nothing),
		cmocka_unit_test(keeps_the_promise_everywhere),
		cmocka_unit_test(fractions_are_of_the_smallest),
		cmocka_unit_test(a_lower_limit_is_felt_by_those_who_wait),
		cmocka_unit_test(ranks_anew),
		cmocka_unit_test(flags_and_waits),
		cmocka_unit_test(bounds_hold),
		cmocka_unit_test(bounds_choose_the_gpu),
		cmocka_unit_test(a_loan_does_not_rise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
