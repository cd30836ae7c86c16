#include "play.h"

/* A workload is asked to end, and processes that we do not manage. */

#define WORKLOAD(w)                       \
	EVENT(WORKLOAD_ADD, workload_add, \
		{w, BYTES(0), BYTES(100), 1, 1, 0, 0, 0, 0, 0, {ANY}})
#define STOP(w, grace_ms) EVENT(WORKLOAD_STOP, workload_stop, {w, (grace_ms)*SL_MS})

static void ends_within_its_grace(void **state)
{
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"one", 0, WORKLOAD(1), "ADMIT 1 m1 r0 l100"},
		{"two", 0, WORKLOAD(2), "ADMIT 2 m1 r0 l100"},
		{"processes", 1, JOIN(10, 1), ""},
		{"processes", 1, JOIN(20, 2), ""},
		{"all of it", 1, ASK(20, 1, 0, 100), "GRANT 20/1 g0 100"},
		{"waits", 1, ASK(10, 1, 0, 60), "WAKE 1001"},
		{"told to end; what waits need not", 100, STOP(1, 5000),
			"STOP 0 1 TERM STOP_ASKED; DENY 10/1 CANCELLED g0; WAKE 5100"},
		{"and gets no more", 200, ASK(10, 2, 0, 1),
			"DENY 10/2 CANCELLED g0; WAKE 201"},
		{"what is denied is looked at once more", 201, TIME, "WAKE 5100"},
		{"not yet", 5099, TIME, ""},
		{"gone by itself", 5099, REMOVE(1), "WAKE never"},
		{"nothing is killed", 5200, TIME, ""},
	};
	struct play p;

	play_open(&p);
	p.shows_wakes = true;
	play_rows(&p, rows, 11);
	assert_true(sl_node_workload(p.node, 1).stopping);
	assert_false(sl_node_workload(p.node, 2).stopping);
	play_rows(&p, rows + 11, SL_ARRAY_LEN(rows) - 11);
	play_close(&p);
}

static void is_killed_after_it(void **state)
{
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"one", 0, WORKLOAD(1), "ADMIT 1 m1 r0 l100"},
		{"its process", 1, JOIN(10, 1), ""},
		{"a grant", 1, ASK(10, 1, 0, 60), "GRANT 10/1 g0 60"},
		{"told to end", 1, STOP(1, 5000), "STOP 0 1 TERM STOP_ASKED; WAKE 5001"},
		{"what was granted is granted, but not again", 10, FAILED(10, 1),
			"NOTE CREATE_FAILED g0 1/0 60; DENY 10/1 CANCELLED g0; WAKE 11"},
		{"looked at once more", 11, TIME, "WAKE 5001"},
		{"a longer grace is no grace", 100, STOP(1, 9000), ""},
		{"a shorter one counts", 200, STOP(1, 2000), "WAKE 2200"},
		{"its time is over", 2200, TIME, "STOP 0 1 KILL STOP_ASKED; WAKE 2201"},
		{"looked at once more", 2201, TIME, "WAKE 12200"},
		{"once", 4000, TIME, ""},
		{"something survived", 5000, STOP(1, 0),
			"STOP 0 1 KILL STOP_ASKED; WAKE 5001"},
		{"looked at once more", 5001, TIME, "WAKE 15000"},
		{"it is over", 6000, EXIT(10), ""},
		{"and gone", 6000, REMOVE(1), "WAKE never"},
		{"too late", 7000, STOP(1, 0), "NOTE STRAY g0 1/0 0"},
		{"at once", 7000, WORKLOAD(2), "ADMIT 2 m1 r0 l100"},
		{"both in one step", 7000, STOP(2, 0),
			"STOP 0 2 TERM STOP_ASKED; STOP 0 2 KILL STOP_ASKED; WAKE 7001"},
		{"looked at once more", 7001, TIME, "WAKE 17000"},
		{"a grace without end", 8000, WORKLOAD(3), "ADMIT 3 m1 r0 l100"},
		{"is never over", 8000,
			EVENT(WORKLOAD_STOP, workload_stop, {3, UINT64_MAX}),
			"STOP 0 3 TERM STOP_ASKED"},
		{"unknown", 9000, STOP(9, 0), "NOTE STRAY g0 9/0 0"},
	};
	struct play p;

	play_open(&p);
	p.shows_wakes = true;
	play_rows(&p, rows, SL_ARRAY_LEN(rows));
	play_close(&p);
}

/* Reports that are waited for do not hold up a stop. */
static void is_killed_while_recovering(void **state)
{
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"one", 0, WORKLOAD(1), "ADMIT 1 m1 r0 l100"},
		{"is expected", 0, EVENT(CLIENT_JOIN, client_join, {10, 1, 1}),
			"WAKE 2000"},
		{"told to end", 100, STOP(1, 500), "STOP 0 1 TERM STOP_ASKED; WAKE 600"},
		{"killed", 600, TIME, "STOP 0 1 KILL STOP_ASKED; WAKE 2000"},
	};
	struct play p;

	play_open(&p);
	p.shows_wakes = true;
	play_rows(&p, rows, SL_ARRAY_LEN(rows));
	play_close(&p);
}

/* --- strangers --- */

#define STRANGER(s, g, n)  EVENT(STRANGER, stranger, {s, g, n})
#define UNMANAGED_IS(what) SETTINGS(.unmanaged = SL_UNMANAGED_##what)

static void strangers_are_noted_once(void **state)
{
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"another", 0, GPU(1, 60), ""},
		{"nothing is nobody", 0, STRANGER(5, 0, 0), ""},
		{"by default", 0, STRANGER(5, 0, 30), "NOTE UNMANAGED_SEEN g0 0/0 30"},
		{"more of it", 0, STRANGER(5, 0, 40), ""},
		{"elsewhere too", 0, STRANGER(5, 1, 50), ""},
		{"another one, where it has most", 0, STRANGER(6, 1, 20),
			"NOTE UNMANAGED_SEEN g1 0/0 20"},
		{"gone from one", 0, STRANGER(5, 0, 0), ""},
		{"gone from both: forgotten", 0, STRANGER(5, 1, 0), ""},
		{"met again", 0, STRANGER(5, 0, 10), "NOTE UNMANAGED_SEEN g0 0/0 10"},
		{"on a GPU that is not there", 0, STRANGER(7, 9, 10),
			"NOTE STRAY g9 0/0 10"},
		{"on none", 0, STRANGER(7, 99, 10), "NOTE STRAY g99 0/0 10"},
		{"ignored", 0, UNMANAGED_IS(IGNORE), ""},
		{"nobody is told", 0, STRANGER(8, 0, 10), ""},
		{"until somebody wants to hear", 0, UNMANAGED_IS(WARN),
			"NOTE UNMANAGED_SEEN g0 0/0 10"},
	};
	struct play p;

	play_open(&p);
	play_rows(&p, rows, SL_ARRAY_LEN(rows));
	assert_row_u64("which", p.last[SL_ACTION_NOTE].note.client, 8);
	play_close(&p);
}

static void strangers_are_stopped(void **state)
{
	static const struct play_row rows[] = {
		{"a GPU", 0, GPU(0, 100), ""},
		{"another", 0, GPU(1, 60), ""},
		{"known", 0, STRANGER(5, 0, 30), "NOTE UNMANAGED_SEEN g0 0/0 30"},
		{"and now forbidden", 1000, UNMANAGED_IS(STOP),
			"STRANGER 5 TERM g0 30; WAKE 11000"},
		{"another", 2000, STRANGER(6, 1, 20), "STRANGER 6 TERM g1 20"},
		{"measured again", 3000, STRANGER(6, 1, 25), ""},
		{"one goes", 4000, STRANGER(5, 0, 0), ""},
		{"its time says when the other's is", 11000, TIME, "WAKE 12000"},
		{"the other stays", 12000, TIME, "STRANGER 6 KILL g1 25; WAKE never"},
		{"once", 13000, STRANGER(6, 1, 25), ""},
		{"a third", 14000, STRANGER(7, 0, 5), "STRANGER 7 TERM g0 5; WAKE 24000"},
		{"is let off", 15000, UNMANAGED_IS(IGNORE), "WAKE never"},
		{"for good", 30000, TIME, ""},
		{"only the third is left", 30000, STRANGER(6, 1, 0), ""},
		{"all over again", 31000, UNMANAGED_IS(STOP),
			"STRANGER 7 TERM g0 5; WAKE 41000"},
		{"on both", 31500, STRANGER(7, 1, 4), ""},
		{"what is lost has nobody on it", 32000, LOST(0),
			"NOTE LOST_BEGINS g0 0/0 0"},
		{"killed for the rest", 41000, TIME, "STRANGER 7 KILL g1 4; WAKE never"},
		{"a fourth", 42000, STRANGER(8, 1, 3),
			"STRANGER 8 TERM g1 3; WAKE 52000"},
		{"lost as well: nobody is left", 43000, LOST(1),
			"NOTE LOST_BEGINS g1 0/0 0; WAKE never"},
	};
	struct play p;

	play_open(&p);
	p.shows_wakes = true;
	play_rows(&p, rows, SL_ARRAY_LEN(rows));
	play_close(&p);
}

/* Strangers that come and go take no new memory. */
static void strangers_are_forgotten(void **state)
{
	static const struct sl_event gpu = GPU(0, 100);
	size_t used = 0;
	struct play p;

	play_open(&p);
	(void)play(&p, "a GPU", 0, gpu);
	for (uint64_t i = 1; i <= 1000; i++) {
		struct sl_event come = STRANGER(i, 0, 10), go = STRANGER(i, 0, 0);

		(void)play(&p, "comes", i, come);
		(void)play(&p, "goes", i, go);
		if (i == 1)
			used = sl_arena_used_bytes(p.arena);
	}
	assert_row_u64("arena", sl_arena_used_bytes(p.arena), used);
	play_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_within_its_grace),
		cmocka_unit_test(is_killed_after_it),
		cmocka_unit_test(is_killed_while_recovering),
		cmocka_unit_test(strangers_are_noted_once),
		cmocka_unit_test(strangers_are_stopped),
		cmocka_unit_test(strangers_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
