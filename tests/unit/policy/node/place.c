#include "play.h"

/* Which GPUs a workload gets, with what stands on them already. */

#define WORKLOAD(w, request, limit, count, mask) \
	EVENT(WORKLOAD_ADD, workload_add,        \
		{w, BYTES(request), BYTES(limit), count, mask, 0, 0, 0, 0, 0, {ANY}})

static void burstable_ones_are_spread(void **state)
{
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"another", 0, GPU(1, 100), ""},
		{"a notebook", 0, WORKLOAD(1, 0, 100, 1, 3), "ADMIT 1 m1 r0 l100"},
		{"a notebook", 0, WORKLOAD(2, 0, 100, 1, 3), "ADMIT 2 m2 r0 l100"},
		{"with a request", 0, WORKLOAD(3, 20, 100, 1, 3), "ADMIT 3 m1 r20 l100"},
		{"with a request", 0, WORKLOAD(4, 20, 100, 1, 3), "ADMIT 4 m2 r20 l100"},
		{"a rigid one fits anywhere", 0, WORKLOAD(5, 50, 50, 1, 3),
			"ADMIT 5 m1 r50 l50"},
		{"and the next beside it", 0, WORKLOAD(6, 30, 30, 1, 3),
			"ADMIT 6 m1 r30 l30"},
	};

	PLAY(rows);
}

static void unless_they_are_packed(void **state)
{
	static const struct play_row rows[] = {
		{"packed", 0, SETTINGS(.placement = SL_PLACEMENT_PACK), ""},
		{"a GPU", 0, GPU(0, 100), ""},
		{"another", 0, GPU(1, 100), ""},
		{"a notebook", 0, WORKLOAD(1, 0, 100, 1, 3), "ADMIT 1 m1 r0 l100"},
		{"a notebook", 0, WORKLOAD(2, 0, 100, 1, 3), "ADMIT 2 m1 r0 l100"},
		{"with a request", 0, WORKLOAD(3, 20, 100, 1, 3), "ADMIT 3 m1 r20 l100"},
		{"with a request", 0, WORKLOAD(4, 80, 100, 1, 3), "ADMIT 4 m1 r80 l100"},
		{"when it is full", 0, WORKLOAD(5, 20, 100, 1, 3), "ADMIT 5 m2 r20 l100"},
		{"spread again", 0, SETTINGS(.placement = SL_PLACEMENT_SPREAD), ""},
		{"to where there is room", 0, WORKLOAD(6, 0, 100, 1, 3),
			"ADMIT 6 m2 r0 l100"},
	};

	PLAY(rows);
}

/* A burst that stands on one GPU may never come back; the other can serve the request now. */
static void never_behind_a_burst_if_it_can_be_helped(void **state)
{
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"another", 0, GPU(1, 100), ""},
		{"makes the first the tighter one", 0, WORKLOAD(1, 30, 100, 1, 1),
			"ADMIT 1 m1 r30 l100"},
		{"its process", 0, JOIN(10, 1), ""},
		{"bursts", 0, ASK(10, 1, 0, 80), "GRANT 10/1 g0 80"},
		{"best fit would wait for the burst", 0, WORKLOAD(2, 30, 30, 1, 3),
			"ADMIT 2 m2 r30 l30"},
		{"what fits beside it goes there", 0, WORKLOAD(3, 20, 20, 1, 3),
			"ADMIT 3 m1 r20 l20"},
		{"only there: it has to wait", 0, WORKLOAD(4, 30, 30, 1, 1),
			"ADMIT 4 m1 r30 l30"},
		{"others' unclaimed requests are not free either", 0,
			WORKLOAD(5, 10, 10, 1, 3), "ADMIT 5 m2 r10 l10"},
		{"the burst is made", 0, COMMIT(10, 1, 80), ""},
		{"and given back", 0, FREED(10, 0, 80), ""},
		{"best fit again", 0, WORKLOAD(6, 10, 10, 1, 3), "ADMIT 6 m1 r10 l10"},
	};

	PLAY(rows);
}

/* Unrequested memory counts for nothing while it is in use. */
static void burst_room_is_what_is_free(void **state)
{
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"another", 0, GPU(1, 100), ""},
		{"alone on the first", 0, WORKLOAD(1, 0, 100, 1, 1),
			"ADMIT 1 m1 r0 l100"},
		{"its process", 0, JOIN(10, 1), ""},
		{"has nearly all of it", 0, ASK(10, 1, 0, 90), "GRANT 10/1 g0 90"},
		{"rigid on the second", 0, WORKLOAD(2, 70, 70, 1, 2),
			"ADMIT 2 m2 r70 l70"},
		{"30 that are free, not half of 100 that are not", 0,
			WORKLOAD(3, 0, 100, 1, 3), "ADMIT 3 m2 r0 l100"},
	};

	PLAY(rows);
}

static void several_at_once_or_none(void **state)
{
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"another", 0, GPU(1, 60), ""},
		{"a third", 0, GPU(2, 100), ""},
		{"rigid", 0, WORKLOAD(1, 70, 70, 1, 1), "ADMIT 1 m1 r70 l70"},
		{"two of three: where it fits", 0, WORKLOAD(2, 50, 60, 2, 7),
			"ADMIT 2 m6 r50 l60"},
		{"three: one has too little", 0, WORKLOAD(3, 20, 60, 3, 7),
			"REFUSE 3 REQUESTS_TAKEN g1 20 10"},
		{"and nothing was reserved", 0, WORKLOAD(4, 50, 50, 1, 4),
			"ADMIT 4 m4 r50 l50"},
		{"its process", 0, JOIN(20, 2), ""},
		{"on one", 0, ASK(20, 1, 1, 50), "GRANT 20/1 g1 50"},
		{"on the other", 0, ASK(20, 2, 2, 50), "GRANT 20/2 g2 50"},
		{"on one that is not its own", 0, ASK(20, 3, 0, 10),
			"DENY 20/3 UNKNOWN_CLIENT g0"},
	};

	PLAY(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(burstable_ones_are_spread),
		cmocka_unit_test(unless_they_are_packed),
		cmocka_unit_test(never_behind_a_burst_if_it_can_be_helped),
		cmocka_unit_test(burst_room_is_what_is_free),
		cmocka_unit_test(several_at_once_or_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
