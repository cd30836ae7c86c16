/*
 * vain - a client asks for memory for which none can be moved, and others wait for their turn
 * beside it, played by hand
 *
 * N has 50 of a GPU of 100, which cannot be moved. A has 40 and asks for 15 more, of which none are
 * free: in vain. D wants 20 back from the host. B, of A's workload, is told to come back with 10
 * and never does, so no turn of their workload begins.
 */
#include "play.h"

#define SWAP(pool)                     \
	SETTINGS(.pool_bytes = (pool), \
		.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0))
#define WORKLOAD(w)       EVENT(WORKLOAD_ADD, workload_add, {w, ANY, ANY, 1, 1, 0})
#define SWAPPER(c, w)     EVENT(CLIENT_JOIN, client_join, {c, w, 0, 1})
#define COMES(c, w)       EVENT(CLIENT_JOIN, client_join, {c, w, 1, 1})
#define OUT(c, n)         EVENT(CLIENT_EVICTED, client_evicted, {c, 0, n})
#define REPORTED(c)       EVENT(CLIENT_REPORTED, client_reported, {c})
#define ASK_HELD(c, a, n) EVENT(ASK, ask, {c, a, 0, n, SL_NODE_ASK_HELD})
#define WANT(c, n)        EVENT(WANT, want, {c, n})
#define STAYED(c, o)      EVENT(DONE, done, {c, o, 0, SL_SWAP_REFUSED, SL_SWAP_ABORTED, 0})

enum { A = 1, N, D, B };

static const struct sl_event before[] = {SWAP(1000), GPU(0, 100), WORKLOAD(1),
	WORKLOAD(2), WORKLOAD(3), COMES(D, 3), REPORT(D, 0, 20), OUT(D, 20), REPORTED(D),
	COMES(B, 1), REPORT(B, 0, 10), OUT(B, 10), REPORTED(B), SWAPPER(A, 1), JOIN(N, 2),
	ASK(A, 1, 0, 40), COMMIT(A, 1, 40), ASK(N, 1, 0, 50), COMMIT(N, 2, 50),
	ASK(A, 2, 0, 15), WANT(B, 1)};

/* Every 10 ms all clients but B do what they were told. D works whenever it is back, and so wants
 * to be back. Ends when A is denied and returns that time in ms; 0: A was not denied before
 * until_ms. */
static uint64_t goes_round(struct play *p, uint64_t until_ms, uint32_t *evictions)
{
	for (uint64_t ms = 1010; ms < until_ms; ms += 10) {
		for (uint64_t c = A; c <= D; c++) {
			uint64_t order = sl_node_client(p->node, c).order;
			uint64_t out = sl_node_client_use(p->node, c, 0).evicted_bytes;
			bool leaves = order == p->last[SL_ACTION_EVICT].id;
			struct sl_event done =
				EVENT(DONE, done, {.client = c, .order = order});

			if (!order)
				continue;
			if (leaves)
				done.done.evicted_bytes =
					out + p->last[SL_ACTION_EVICT].evict.bytes;
			*evictions += leaves;
			if (strstr(play(p, "done", ms, done), "DENY 1/2"))
				return ms;
			if (leaves && c == D)
				(void)play(p, "D works", ms, (struct sl_event)WANT(D, 1));
		}
		if (strstr(play(p, "time", ms, (struct sl_event)TIME), "DENY 1/2"))
			return ms;
	}
	return 0;
}

/* A stays for B, which has waited longer than D and fits beside A. So A is not moved for D, and
 * nothing is moved for A's demand, which never fits. */

static void begin(struct play *p)
{
	const char *said;

	play_open(p);
	for (size_t i = 0; i < SL_ARRAY_LEN(before); i++)
		(void)play(p, "before", 0, before[i]);
	said = play(p, "D wants", 1000, (struct sl_event)WANT(D, 1));
	assert_null(strstr(said, "EVICT 1 g0 20 EVICTED_FOR"));
}

/* A is not moved for D, so D stays on the host. A's demand waits for its longest wait, once, and is
 * then denied. */
static void test_is_told_so(void **state)
{
	struct play p;
	uint32_t evictions = 0;
	uint64_t denied_ms;

	(void)state;
	begin(&p);
	denied_ms = goes_round(&p, 100000, &evictions);
	assert_in_range(denied_ms, 60000, 62000);
	assert_true(evictions <= 100);
	play_close(&p);
}

/* N has 40 that cannot be moved, D 30 that can, and 20 are about to be free. A's 65 never fit, and
 * free memory is kept for A while it waits. When A is denied, no client has to leave for B, which
 * gets what was kept. */
static void nobody_leaves_for_what_was_kept(void **state)
{
	static const struct play_row rows[] = {
		{"swap", 0, SWAP(1000), ""},
		{"a GPU", 0, GPU(0, 100), ""},
		{"A", 0, WORKLOAD(1), "ADMIT 1 m1 r0 l100"},
		{"N", 0, WORKLOAD(2), "ADMIT 2 m1 r0 l100"},
		{"D", 0, WORKLOAD(3), "ADMIT 3 m1 r0 l100"},
		{"B", 0, WORKLOAD(4), "ADMIT 4 m1 r0 l100"},
		{"cannot be moved", 0, JOIN(N, 2), ""},
		{"has 40", 0, ASK(N, 1, 0, 40), "GRANT 2/1 g0 40"},
		{"", 0, COMMIT(N, 1, 40), ""},
		{"can be moved", 0, SWAPPER(D, 3), ""},
		{"has 30", 0, ASK(D, 1, 0, 30), "GRANT 3/1 g0 30"},
		{"", 0, COMMIT(D, 2, 30), ""},
		{"its sibling", 0, JOIN(5, 3), ""},
		{"has 20", 0, ASK(5, 1, 0, 20), "GRANT 5/1 g0 20"},
		{"", 0, COMMIT(5, 3, 20), "VIEW 3 g0"},
		{"has nothing", 0, SWAPPER(A, 1), ""},
		{"has nothing", 0, SWAPPER(B, 4), ""},
		{"in vain", 0, ASK(A, 1, 0, 65), "PROBE 3 1"},
		{"dies", 59900, EXIT(5),
			"VIEW 3 g0; NOTE BURST_WAITS g0 1/2 65; PROBE 3 2"},
		{"as A's time is over", 60000, ASK(B, 1, 0, 30),
			"DENY 1/1 WAITED_TOO_LONG g0"},
		{"all is free", 60001, RELEASED(5, 0, 0), "GRANT 4/1 g0 30"},
	};

	PLAY(rows);
}

/* A has 61, of which 45 are held, B has 30 and D 3; 6 are free and kept for A. The pool has no room
 * for A's 17, which wait for what B has. So B's 8 may use what is kept, and only 2 leave for it
 * instead of 8. */
static void what_helps_takes_what_is_kept(void **state)
{
	static const struct play_row rows[] = {
		{"swap", 0, SWAP(6), ""},
		{"a GPU", 0, GPU(0, 100), ""},
		{"A", 0, WORKLOAD(1), "ADMIT 1 m1 r0 l100"},
		{"B", 0, WORKLOAD(4), "ADMIT 4 m1 r0 l100"},
		{"D", 0, WORKLOAD(3), "ADMIT 3 m1 r0 l100"},
		{"A", 0, SWAPPER(A, 1), ""},
		{"B", 0, SWAPPER(B, 4), ""},
		{"D", 0, SWAPPER(D, 3), ""},
		{"has", 0, ASK_HELD(A, 1, 45), "GRANT 1/1 g0 45"},
		{"", 0, COMMIT(A, 1, 45), ""},
		{"has", 0, ASK(A, 2, 0, 16), "GRANT 1/2 g0 16"},
		{"", 0, COMMIT(A, 2, 16), ""},
		{"has", 0, ASK(B, 1, 0, 30), "GRANT 4/1 g0 30"},
		{"", 0, COMMIT(B, 3, 30), ""},
		{"has", 0, ASK(D, 1, 0, 3), "GRANT 3/1 g0 3"},
		{"", 0, COMMIT(D, 4, 3), ""},
		{"waits", 8000, ASK(A, 3, 0, 17),
			"NOTE POOL_FULL g0 1/0 17; PROBE 4 1; PROBE 1 1; "
			"PROBE 3 1"},
		{"waits", 10000, ASK(B, 2, 0, 8),
			"NOTE BURST_WAITS g0 1/4 17; PROBE 4 2; PROBE 1 2; "
			"PROBE 3 2"},
		{"has stood still, too", 11000, TIME,
			"EVICT 3 g0 2 EVICTED_FOR; NOTE LEAVING_WAITS g0 4/3 8"},
	};

	PLAY(rows);
}

/* A's 95 do not fit in the pool. The 10 that are free and D's 30, which are about to be, are kept
 * for A. 30 of B are to leave for N. Leaving memory is not kept for A; otherwise B would be told to
 * stay, and to leave again as soon as it may be. */
static void what_has_a_seat_keeps_it_beside_what_is_kept(void **state)
{
	static const struct play_row rows[] = {
		{"swap", 0, SWAP(70), ""},
		{"a GPU", 0, GPU(0, 100), ""},
		{"A", 0, WORKLOAD(1), "ADMIT 1 m1 r0 l100"},
		{"N", 0, WORKLOAD(2), "ADMIT 2 m1 r0 l100"},
		{"D", 0, WORKLOAD(3), "ADMIT 3 m1 r0 l100"},
		{"B", 0, WORKLOAD(4), "ADMIT 4 m1 r0 l100"},
		{"A", 0, SWAPPER(A, 1), ""},
		{"N", 0, SWAPPER(N, 2), ""},
		{"D", 0, SWAPPER(D, 3), ""},
		{"B", 0, SWAPPER(B, 4), ""},
		{"has", 0, ASK(D, 1, 0, 30), "GRANT 3/1 g0 30"},
		{"", 0, COMMIT(D, 1, 30), ""},
		{"has", 0, ASK(B, 1, 0, 60), "GRANT 4/1 g0 60"},
		{"", 0, COMMIT(B, 2, 60), ""},
		{"dies", 7000, EXIT(D), ""},
		{"waits", 8000, ASK(A, 1, 0, 95), "NOTE POOL_FULL g0 1/0 95; PROBE 4 1"},
		{"keeps", 9500, TIME, "NOTE BURST_WAITS g0 1/4 95; PROBE 4 2"},
		{"is to come", 10000, ASK(N, 1, 0, 30), "EVICT 4 g0 30 EVICTED_FOR"},
		{"needs D's, too", 10000, TIME, "ABORT 4"},
		{"", 10000, STAYED(B, 18), ""},
		{"has a seat still", 10050, TIME, ""},
		{"comes", 10060, RELEASED(D, 0, 0), "GRANT 2/1 g0 30; PROBE 2 1"},
	};

	PLAY(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_is_told_so),
		cmocka_unit_test(nobody_leaves_for_what_was_kept),
		cmocka_unit_test(what_helps_takes_what_is_kept),
		cmocka_unit_test(what_has_a_seat_keeps_it_beside_what_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
