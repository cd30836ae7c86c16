/*
 * promised - workloads within their requests, beside those that want more than theirs, played
 * by hand
 *
 * A GPU of 100, of which workload 1 has requested 60. The others have requested nothing.
 */
#include "play.h"

#define SWAPPER(c, w) EVENT(CLIENT_JOIN, client_join, {c, w, 0, 1})
#define COMES(c, w)   EVENT(CLIENT_JOIN, client_join, {c, w, 1, 1})
#define OUT(c, n)     EVENT(CLIENT_EVICTED, client_evicted, {c, 0, n})
#define REPORTED(c)   EVENT(CLIENT_REPORTED, client_reported, {c})
#define WANT(c, n)    EVENT(WANT, want, {c, n})
#define DONE(c, o, n) EVENT(DONE, done, {c, o, 0, SL_SWAP_OK, 0, n})
#define CHAIN(...)    SETTINGS(.pool_bytes = 1000, .chain = SL_CHAIN(__VA_ARGS__, 0))
#define POOL(n, bound)                                            \
	SETTINGS(.pool_bytes = (n), .pool_member_bytes = (bound), \
		.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0))
/* The first has requested 60, any other nothing. */
#define FIRST          EVENT(WORKLOAD_ADD, workload_add, {1, BYTES(60), ANY, 1, 1, 0})
#define OTHER(w, prio) EVENT(WORKLOAD_ADD, workload_add, {w, ANY, ANY, 1, 1, prio})

/* Nothing within its request takes turns with bursts: it leaves once it has been idle, and is
 * proven to be. */

static void idles(struct play *p, uint64_t at_ms, uint64_t client, sl_ns span)
{
	(void)play(p, "idles", at_ms,
		(struct sl_event)EVENT(PULSE, pulse, {client, span, 0, 1}));
}

static void all(struct play *p, const struct sl_event *event, size_t count, uint64_t ms)
{
	for (size_t i = 0; i < count; i++)
		(void)play(p, "before", ms, event[i]);
}

static uint64_t order_of(const struct play *p, uint64_t client)
{
	return sl_node_client(p->node, client).order;
}

static bool is_endless(const struct play *p, uint64_t workload)
{
	return sl_node_workload(p->node, workload).longest_wait == SL_NS_NEVER;
}

/* A comes back at once, also behind `wait`, which is for demands above a request. */
static void test_waits_for_no_chain(void **state)
{
	enum { A = 1, B };
	static const struct sl_event before[] = {
		CHAIN(SL_RESOLVER_WAIT, SL_RESOLVER_SWAP), GPU(0, 100), FIRST,
		OTHER(2, 0), COMES(A, 1), REPORT(A, 0, 60), OUT(A, 60), REPORTED(A),
		SWAPPER(B, 2), ASK(B, 1, 0, 60), COMMIT(B, 1, 60)};
	struct play p;

	(void)state;
	play_open(&p);
	all(&p, before, SL_ARRAY_LEN(before), 0);
	assert_non_null(strstr(play(&p, "A wants", 1000, (struct sl_event)WANT(A, 1)),
		"EVICT 2 g0 20 EVICTED_FOR"));
	assert_true(sl_node_workload(p.node, 1).longest_wait < 60 * SL_S);
	assert_true(sl_node_workload(p.node, 2).longest_wait > 60 * SL_S);
	play_close(&p);
}

/* A2 comes back, for which B leaves. A, of the same workload, has had its turn, and still is
 * not taken for C. */
static void test_is_whole_first(void **state)
{
	enum { A = 1, A2, B, C };
	static const struct sl_event before[] = {
		CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT), GPU(0, 100), FIRST,
		OTHER(2, 0), OTHER(3, 0), COMES(A, 1), REPORT(A, 0, 30), REPORTED(A),
		COMES(A2, 1), REPORT(A2, 0, 30), OUT(A2, 30), REPORTED(A2), COMES(C, 3),
		REPORT(C, 0, 10), OUT(C, 10), REPORTED(C), SWAPPER(B, 2)};
	static const struct sl_event asks[] = {ASK(B, 1, 0, 60), COMMIT(B, 1, 60)};
	struct play p;

	(void)state;
	play_open(&p);
	all(&p, before, SL_ARRAY_LEN(before), 0);
	all(&p, asks, SL_ARRAY_LEN(asks), 4990);
	assert_non_null(strstr(play(&p, "A2 wants", 5015, (struct sl_event)WANT(A2, 1)),
		"EVICT 3 g0 20 EVICTED_FOR"));
	assert_null(
		strstr(play(&p, "C wants", 5016, (struct sl_event)WANT(C, 1)), "EVICT"));
	play_close(&p);
}

/* A's turn began at 10 ms. A2, of the same workload, comes back at back_ms, and B wants 20 of their
 * memory from then on. Returns when A or A2 is moved for B, in ms; 10000: neither is. */
static uint64_t when_taken(uint64_t request, uint32_t a_swaps, uint64_t back_ms)
{
	enum { A = 1, A2, B };
	const struct sl_event before[] = {CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT),
		GPU(0, 100), OTHER(2, 0),
		EVENT(WORKLOAD_ADD, workload_add, {1, BYTES(request), ANY, 1, 1, 0}),
		EVENT(CLIENT_JOIN, client_join, {A, 1, 0, a_swaps}), ASK(A, 1, 0, 30),
		COMMIT(A, 1, 30), COMES(A2, 1), REPORT(A2, 0, 30), OUT(A2, 30),
		REPORTED(A2), COMES(B, 2), REPORT(B, 0, 60), OUT(B, 60), REPORTED(B)};
	uint64_t now = back_ms;
	struct play p;

	play_open(&p);
	all(&p, before, SL_ARRAY_LEN(before), 10);
	assert_non_null(strstr(
		play(&p, "A2 wants", now, (struct sl_event)WANT(A2, 1)), "RESTORE 2"));
	(void)play(&p, "A2 is back", now, (struct sl_event)DONE(A2, order_of(&p, A2), 0));
	(void)play(&p, "B wants", now, (struct sl_event)WANT(B, 1));
	while (!order_of(&p, A) && !order_of(&p, A2) && now < 10000)
		(void)play(&p, "later", ++now, (struct sl_event)TIME);
	play_close(&p);
	return now;
}

/* Within their request, A and A2 are not moved for B, whether A2 comes back in A's turn, after it,
 * or beside an A that never moves. Above the request, one of them is moved when A's turn of 200 ms
 * is over: a process that comes back within a turn does not make it longer. */
static void test_has_what_is_left(void **state)
{
	static const struct {
		const char *name;
		uint64_t request;
		uint32_t a_swaps;
		uint64_t back_ms, taken_ms;
	} rows[] = {
		{"early", 60, 1, 20, 10000},
		{"late", 60, 1, 209, 10000},
		{"after A's turn", 60, 1, 210, 10000},
		{"A is never moved", 60, 0, 20, 10000},
		{"above the request", 50, 1, 20, 210},
	};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++)
		assert_row_u64(rows[i].name,
			when_taken(rows[i].request, rows[i].a_swaps, rows[i].back_ms),
			rows[i].taken_ms);
}

/* A and A2 are within their request and not proven idle. Neither is moved for B when its first turn
 * is over, nor later, when a slow link has made turns longer. */
static void test_turn_that_is_over(void **state)
{
	enum { A = 1, A2, B };
	static const struct sl_event before[] = {
		CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT), GPU(0, 100), FIRST,
		OTHER(2, 0), SWAPPER(A, 1), SWAPPER(A2, 1), COMES(B, 2), REPORT(B, 0, 60),
		OUT(B, 60), REPORTED(B), ASK(A, 1, 0, 30), COMMIT(A, 1, 30),
		ASK(A2, 1, 0, 30), COMMIT(A2, 2, 30)};
	struct play p;

	(void)state;
	play_open(&p);
	all(&p, before, SL_ARRAY_LEN(before), 10);
	(void)play(&p, "B wants", 5000, (struct sl_event)WANT(B, 1));
	(void)play(&p, "A2 left", 5001, (struct sl_event)DONE(A2, order_of(&p, A2), 20));
	(void)play(&p, "B is back", 5002, (struct sl_event)DONE(B, order_of(&p, B), 0));
	(void)play(&p, "A2 wants", 5002, (struct sl_event)WANT(A2, 1));
	(void)play(&p, "its first part", 5022, (struct sl_event)TIME);
	(void)play(&p, "B left", 5023, (struct sl_event)DONE(B, order_of(&p, B), 20));
	(void)play(&p, "the link is slow", 5024,
		(struct sl_event)EVENT(LINK_COST, link_cost, {0, 10, 10}));
	(void)play(
		&p, "A2 is back", 5025, (struct sl_event)DONE(A2, order_of(&p, A2), 0));
	(void)play(&p, "B wants", 5026, (struct sl_event)WANT(B, 1));
	(void)play(&p, "10 s from the first turn", 10010, (struct sl_event)TIME);
	assert_row_u64("early", order_of(&p, A) + order_of(&p, A2), 0);
	(void)play(&p, "10 s from the second", 15025, (struct sl_event)TIME);
	assert_row_u64("nor then", order_of(&p, A) + order_of(&p, A2), 0);
	play_close(&p);
}

/* B's higher priority ends no turn of A, which is twelve times as long as B's least one: 60 against
 * 5. */
static void test_has_its_turn(void **state)
{
	enum { A = 1, B };
	static const struct sl_event before[] = {
		CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT), GPU(0, 100), FIRST,
		OTHER(2, 5), SWAPPER(A, 1), COMES(B, 2), REPORT(B, 0, 60), OUT(B, 60),
		REPORTED(B)};
	static const struct sl_event asks[] = {ASK(A, 1, 0, 60), COMMIT(A, 1, 60)};
	const char *got;
	struct play p;

	(void)state;
	play_open(&p);
	all(&p, before, SL_ARRAY_LEN(before), 0);
	all(&p, asks, SL_ARRAY_LEN(asks), 5000);
	assert_null(
		strstr(play(&p, "B wants", 5010, (struct sl_event)WANT(B, 1)), "EVICT"));
	assert_null(strstr(play(&p, "early", 7399, (struct sl_event)TIME), "EVICT"));
	got = play(&p, "its turn is over", 7400, (struct sl_event)TIME);
	assert_null(strstr(got, "EVICT"));
	play_close(&p);
}

/* C and a part of A2 leave for B. A2 wants back at once, and waits for the first part of B's turn;
 * so does C behind it. A, the other process of A2's workload, must not be moved for C: A2 would get
 * its place, and B, which is on its way, would be moved before it is back. The pool, and the bound
 * in it, have space to move B once, and B's place there is kept until it is back. */
static void has_its_first_part(struct sl_event settings)
{
	enum { A = 1, A2, B, C };
	static const struct sl_event before[] = {GPU(0, 90), FIRST, OTHER(2, 0),
		EVENT(WORKLOAD_ADD, workload_add, {3, BYTES(30), ANY, 1, 1, 0}),
		SWAPPER(A, 1), SWAPPER(A2, 1), SWAPPER(C, 3), COMES(B, 2),
		REPORT(B, 0, 50), OUT(B, 50), REPORTED(B), ASK(A, 1, 0, 30),
		COMMIT(A, 1, 30), ASK(A2, 1, 0, 30), COMMIT(A2, 2, 30), ASK(C, 1, 0, 30),
		COMMIT(C, 3, 30)};
	struct play p;

	play_open(&p);
	all(&p, &settings, 1, 0);
	all(&p, before, SL_ARRAY_LEN(before), 0);
	(void)play(&p, "link", 0,
		(struct sl_event)EVENT(LINK_COST, link_cost, {0, 5000, 5000}));
	(void)play(&p, "B wants", 30000, (struct sl_event)WANT(B, 1));
	idles(&p, 30000, C, 900 * SL_MS);
	idles(&p, 30000, A2, 800 * SL_MS);
	idles(&p, 30000, A, 700 * SL_MS);
	assert_row_u64("of C", order_of(&p, C) > 0, 1);
	assert_row_u64("of A2", order_of(&p, A2) > 0, 1);
	(void)play(&p, "20 of A2 left", 30001,
		(struct sl_event)DONE(A2, order_of(&p, A2), 20));
	assert_string_equal(
		play(&p, "A2 wants", 30001, (struct sl_event)WANT(A2, 1)), "");
	assert_false(is_endless(&p, 1));
	assert_non_null(strstr(play(&p, "all of C left", 30002,
				       (struct sl_event)DONE(C, order_of(&p, C), 30)),
		"RESTORE 3 g0 50"));
	assert_string_equal(play(&p, "C wants", 30002, (struct sl_event)WANT(C, 1)), "");
	assert_false(is_endless(&p, 1) || is_endless(&p, 3));
	(void)play(&p, "B is back", 30003, (struct sl_event)DONE(B, order_of(&p, B), 0));
	assert_null(strstr(play(&p, "early", 30022, (struct sl_event)TIME), "EVICT"));
	assert_non_null(
		strstr(play(&p, "after its first part", 30023, (struct sl_event)TIME),
			"EVICT 3 g0"));
	play_close(&p);
}

static void test_burst_has_its_first_part(void **state)
{
	(void)state;
	has_its_first_part((struct sl_event)CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT));
	has_its_first_part((struct sl_event)POOL(100, 0));
	has_its_first_part((struct sl_event)POOL(1000, 50));
	has_its_first_part((struct sl_event)POOL(1000, 55));
}

/* D and a part of C leave for B, which then comes back before all others. C wants back at once, and
 * waits for the first part of B's turn. A, of lower priority but within its request, keeps its
 * memory. */
static void test_exchange_is_waited_for(void **state)
{
	enum { A = 1, B, C, D };
	static const struct sl_event before[] = {
		CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT), GPU(0, 100), OTHER(2, 0),
		EVENT(WORKLOAD_ADD, workload_add, {1, BYTES(30), ANY, 1, 1, -1}),
		EVENT(WORKLOAD_ADD, workload_add, {3, BYTES(30), ANY, 1, 1, 0}),
		EVENT(WORKLOAD_ADD, workload_add, {4, BYTES(30), ANY, 1, 1, 0}),
		SWAPPER(A, 1), SWAPPER(C, 3), SWAPPER(D, 4), COMES(B, 2),
		REPORT(B, 0, 50), OUT(B, 50), REPORTED(B), ASK(C, 1, 0, 30),
		COMMIT(C, 1, 30), ASK(D, 1, 0, 30), COMMIT(D, 2, 30)};
	static const struct sl_event asks[] = {ASK(A, 1, 0, 30), COMMIT(A, 3, 30)};
	struct play p;

	(void)state;
	play_open(&p);
	all(&p, before, SL_ARRAY_LEN(before), 0);
	all(&p, asks, SL_ARRAY_LEN(asks), 29990);
	(void)play(&p, "B wants", 30000, (struct sl_event)WANT(B, 1));
	idles(&p, 30000, C, 800 * SL_MS);
	idles(&p, 30000, D, 900 * SL_MS);
	assert_row_u64("of D", order_of(&p, D) > 0, 1);
	(void)play(
		&p, "10 of C left", 30001, (struct sl_event)DONE(C, order_of(&p, C), 10));
	assert_null(
		strstr(play(&p, "C wants", 30001, (struct sl_event)WANT(C, 1)), "EVICT"));
	assert_non_null(strstr(play(&p, "all of D left", 30002,
				       (struct sl_event)DONE(D, order_of(&p, D), 30)),
		"RESTORE 2 g0 50"));
	(void)play(&p, "B is back", 30003, (struct sl_event)DONE(B, order_of(&p, B), 0));
	assert_non_null(
		strstr(play(&p, "after its first part", 30023, (struct sl_event)TIME),
			"EVICT 2 g0"));
	play_close(&p);
}

/* B is coming back before all others, and is stopped. So is A2, which left for B. C asks within its
 * request, and must not wait for B's exchange to go on: as the last resort, B is ended for C. */
static void test_exchange_that_stands_still(void **state)
{
	enum { A = 1, A2, B, C };
	static const struct sl_event before[] = {
		SETTINGS(.pool_bytes = 1000, .untakeable_after = 30 * SL_S,
			.last_resort = SL_LAST_RESORT_STOP,
			.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0)),
		GPU(0, 90), FIRST, OTHER(2, 0),
		EVENT(WORKLOAD_ADD, workload_add, {3, BYTES(30), ANY, 1, 1, 0}),
		SWAPPER(A2, 1), COMES(B, 2), SWAPPER(C, 3), REPORT(B, 0, 50), OUT(B, 50),
		REPORTED(B), ASK(A2, 1, 0, 60), COMMIT(A2, 1, 60)};
	bool is_ended = false;
	struct play p;

	(void)state;
	play_open(&p);
	all(&p, before, SL_ARRAY_LEN(before), 0);
	(void)play(&p, "B wants", 30000, (struct sl_event)WANT(B, 1));
	assert_non_null(strstr(play(&p, "A2 has left", 30001,
				       (struct sl_event)DONE(A2, order_of(&p, A2), 20)),
		"RESTORE 3"));
	(void)play(&p, "B is stopped", 30002,
		(struct sl_event)EVENT(CONDITION, condition, {B, SL_CONDITION_STOPPED}));
	(void)play(&p, "A2 is stopped", 30002,
		(struct sl_event)EVENT(CONDITION, condition, {A2, SL_CONDITION_STOPPED}));
	(void)play(&p, "C asks", 30003, (struct sl_event)ASK(C, 4, 0, 30));
	for (uint64_t s = 31; s < 100 && !is_ended; s++)
		is_ended = strstr(play(&p, "later", s * 1000, (struct sl_event)TIME),
			"STOP 3 2 TERM STOP_LAST_RESORT");
	assert_true(is_ended);
	play_close(&p);
}

/* N's held burst waits for its turn: it must leave the unused part of A's request free, and P uses
 * that. Meanwhile no memory moves for A2, although all that is wanted would fit. A2 is told a
 * longest wait that allows for this, and is back within it. */
static void test_behind_a_held_burst(void **state)
{
	enum { A = 1, A2, P, N };
	static const struct sl_event before[] = {
		CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT), GPU(0, 100),
		EVENT(WORKLOAD_ADD, workload_add, {1, BYTES(60), BYTES(70), 1, 1, 0}),
		OTHER(2, 5), OTHER(3, 0), COMES(A2, 1), REPORT(A2, 0, 30), OUT(A2, 30),
		REPORTED(A2), SWAPPER(A, 1), SWAPPER(P, 2), SWAPPER(N, 3)};
	bool is_back = false;
	struct play p;
	sl_ns wait;

	(void)state;
	play_open(&p);
	all(&p, before, SL_ARRAY_LEN(before), 0);
	play_has(&p, A, 1, 40);
	play_has(&p, P, 1, 50);
	idles(&p, 2000, A, 2 * SL_S);
	(void)play(&p, "N asks", 2000,
		(struct sl_event)EVENT(ASK, ask, {N, 1, 0, 10, SL_NODE_ASK_HELD}));
	(void)play(&p, "A2 wants", 2001, (struct sl_event)WANT(A2, 1));
	wait = sl_node_workload(p.node, 1).longest_wait;
	assert_true(wait && wait != SL_NS_NEVER);
	for (uint64_t ms = 2001; ms <= 2001 + wait / SL_MS && !is_back; ms += 10) {
		const char *got = play(&p, "later", ms, (struct sl_event)TIME);

		for (uint64_t out = 0; order_of(&p, P);) {
			out += p.last[SL_ACTION_EVICT].evict.bytes;
			got = play(&p, "P leaves", ms,
				(struct sl_event)DONE(P, order_of(&p, P), out));
		}
		is_back = strstr(got, "RESTORE 2 g0 30");
	}
	assert_true(is_back);
	play_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits_for_no_chain),
		cmocka_unit_test(test_exchange_that_stands_still),
		cmocka_unit_test(test_exchange_is_waited_for),
		cmocka_unit_test(test_is_whole_first),
		cmocka_unit_test(test_has_its_turn),
		cmocka_unit_test(test_has_what_is_left),
		cmocka_unit_test(test_turn_that_is_over),
		cmocka_unit_test(test_burst_has_its_first_part),
		cmocka_unit_test(test_behind_a_held_burst),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
