/*
 * watched - a client that was told to leave does not answer because it is stopped, played by hand
 *
 * A has 60 of a GPU of 100, D 30. B asks for 20, of which 10 are free.
 */
#include "play.h"

#define SWAP(pool)                     \
	SETTINGS(.pool_bytes = (pool), \
		.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0))
#define WORKLOAD(w)        EVENT(WORKLOAD_ADD, workload_add, {w, ANY, ANY, 1, 1, 0})
#define SWAPPER(c, w)      EVENT(CLIENT_JOIN, client_join, {c, w, 0, 1})
#define PARK(w)            EVENT(WORKLOAD_PARK, workload_park, {w, 0})
#define CANCEL(c, a)       EVENT(CANCEL, cancel, {c, a})
#define CONDITION(c, what) EVENT(CONDITION, condition, {c, SL_CONDITION_##what})

static void says(struct play *p, const char *row, uint64_t at_ms, struct sl_event event,
	const char *expected)
{
	const char *got = play(p, row, at_ms, event);

	assert_row_text(row, got, expected);
}

static const struct play_row full[] = {
	{"pool", 0, SWAP(1000), ""},
	{"GPU", 0, GPU(0, 100), ""},
	{"A", 0, WORKLOAD(1), "ADMIT 1 m1 r0 l100"},
	{"B", 0, WORKLOAD(2), "ADMIT 2 m1 r0 l100"},
	{"D", 0, WORKLOAD(3), "ADMIT 3 m1 r0 l100"},
	{"A", 0, SWAPPER(1, 1), ""},
	{"B", 0, SWAPPER(2, 2), ""},
	{"D", 0, SWAPPER(3, 3), ""},
	{"A asks", 0, ASK(1, 1, 0, 60), "GRANT 1/1 g0 60"},
	{"has", 0, COMMIT(1, 1, 60), ""},
	{"D asks", 10, ASK(3, 1, 0, 30), "GRANT 3/1 g0 30"},
	{"has", 10, COMMIT(3, 2, 30), ""},
};

/* A was told to leave, but not for another client. B counts on A's memory, so A is watched. When A
 * is stopped, D leaves instead. */
static void test_whom_somebody_counts_on(void **state)
{
	struct play p;

	(void)state;
	play_open(&p);
	play_rows(&p, full, SL_ARRAY_LEN(full));
	(void)play(&p, "A is parked", 5000, (struct sl_event)PARK(1));
	says(&p, "B asks", 5010, (struct sl_event)ASK(2, 1, 0, 20),
		"PROBE 1 1; PROBE 3 1");
	says(&p, "A is stopped", 5500, (struct sl_event)CONDITION(1, STOPPED),
		"EVICT 3 g0 10 EVICTED_FOR");
	play_close(&p);
}

/* A's condition stays known until A goes on, even while no demand waits. So the next demand does
 * not count on A. */
static void test_until_it_goes_on(void **state)
{
	struct play p;

	(void)state;
	play_open(&p);
	play_rows(&p, full, SL_ARRAY_LEN(full));
	says(&p, "B asks", 5000, (struct sl_event)ASK(2, 1, 0, 20),
		"EVICT 1 g0 10 EVICTED_FOR; "
		"PROBE 1 1; PROBE 3 1");
	says(&p, "A is stopped", 5500, (struct sl_event)CONDITION(1, STOPPED),
		"ABORT 1; EVICT 3 g0 10 EVICTED_FOR");
	says(&p, "B gives up", 5500, (struct sl_event)CANCEL(2, 1),
		"DENY 2/1 CANCELLED g0; ABORT 3");
	says(&p, "D stays", 5510,
		(struct sl_event)EVENT(DONE, done,
			{3, p.last[SL_ACTION_EVICT].id, 0, SL_SWAP_REFUSED,
				SL_SWAP_ABORTED, 0}),
		"");
	says(&p, "B asks again", 7000, (struct sl_event)ASK(2, 2, 0, 20),
		"EVICT 3 g0 10 EVICTED_FOR");
	says(&p, "B gives up", 7010, (struct sl_event)CANCEL(2, 2),
		"DENY 2/2 CANCELLED g0; ABORT 3; "
		"PROBE 3 0");
	says(&p, "D stays again", 7020,
		(struct sl_event)EVENT(DONE, done,
			{3, p.last[SL_ACTION_EVICT].id, 0, SL_SWAP_REFUSED,
				SL_SWAP_ABORTED, 0}),
		"");
	says(&p, "A goes on", 8000, (struct sl_event)CONDITION(1, RUNNING), "");
	play_close(&p);
}

static void gives_up(struct play *p, uint64_t ask, double at_ms)
{
	(void)play(p, "B gives up", at_ms, (struct sl_event)CANCEL(2, ask));
	(void)play(p, "A stays", at_ms,
		(struct sl_event)EVENT(DONE, done,
			{1, p->last[SL_ACTION_EVICT].id, 0, SL_SWAP_REFUSED,
				SL_SWAP_ABORTED, 0}));
}

/* A client that was told to leave and then to stay may be told to leave again. After two such
 * changes in a row, other clients are chosen for twice as long (20 ms). */
static void test_not_back_and_forth(void **state)
{
	struct play p;

	(void)state;
	play_open(&p);
	play_rows(&p, full, SL_ARRAY_LEN(full));
	says(&p, "B asks", 5000, (struct sl_event)ASK(2, 1, 0, 20),
		"EVICT 1 g0 10 EVICTED_FOR; "
		"PROBE 1 1; PROBE 3 1");
	gives_up(&p, 1, 5001);
	says(&p, "B asks again", 5012, (struct sl_event)ASK(2, 2, 0, 20),
		"EVICT 1 g0 10 EVICTED_FOR");
	gives_up(&p, 2, 5013);
	says(&p, "and again", 5024, (struct sl_event)ASK(2, 3, 0, 20),
		"EVICT 3 g0 10 EVICTED_FOR");
	play_close(&p);
}

/* A is resumed before any of its memory has left, so it need not come back. Later some of it leaves
 * for B, and A wants it back. When A then gives up, it must want nothing. */
static void test_resumed_before_it_left(void **state)
{
	struct play p;

	(void)state;
	play_open(&p);
	play_rows(&p, full, SL_ARRAY_LEN(full));
	(void)play(&p, "A is parked", 5000, (struct sl_event)PARK(1));
	(void)play(&p, "and resumed", 5001,
		(struct sl_event)EVENT(WORKLOAD_RESUME, workload_resume, {1}));
	(void)play(&p, "A stays", 5002,
		(struct sl_event)EVENT(DONE, done,
			{1, p.last[SL_ACTION_EVICT].id, 0, SL_SWAP_REFUSED,
				SL_SWAP_ABORTED, 0}));
	(void)play(&p, "B asks", 7000, (struct sl_event)ASK(2, 1, 0, 20));
	assert_row_u64("evicted", p.last[SL_ACTION_EVICT].evict.client, 1);
	(void)play(&p, "A leaves", 7010,
		(struct sl_event)EVENT(DONE, done,
			{1, p.last[SL_ACTION_EVICT].id, 0, SL_SWAP_OK, 0, 10, 10}));
	(void)play(&p, "wants", 7020, (struct sl_event)EVENT(WANT, want, {1, 1}));
	assert_row_u64(
		"waits", sl_node_workload(p.node, 1).residency, SL_RESIDENCY_EVICTED);
	(void)play(&p, "gives up", 7030, (struct sl_event)EVENT(WANT, want, {1, 0}));
	assert_row_u64("wants nothing", sl_node_workload(p.node, 1).residency,
		SL_RESIDENCY_PARTIAL);
	play_close(&p);
}

/* A was busy by its last report, and has been on the host since: nothing of it runs there. */
static void test_on_the_host_nothing_is_busy(void **state)
{
	struct play p;
	const char *got;

	(void)state;
	play_open(&p);
	play_rows(&p, full, SL_ARRAY_LEN(full));
	(void)play(&p, "untakeable", 10,
		(struct sl_event)SETTINGS(.pool_bytes = 1000,
			.untakeable_after = 30 * SL_S,
			.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0)));
	(void)play(&p, "busy", 5000,
		(struct sl_event)EVENT(PULSE, pulse, {1, 0, 4 * SL_S, 0}));
	(void)play(&p, "A is parked", 5000, (struct sl_event)PARK(1));
	(void)play(&p, "has left", 5010,
		(struct sl_event)EVENT(DONE, done,
			{1, p.last[SL_ACTION_EVICT].id, 0, SL_SWAP_OK, 0, 60}));
	got = play(&p, "much later", 50000, (struct sl_event)TIME);
	assert_null(strstr(got, "UNTAKEABLE"));
	play_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_on_the_host_nothing_is_busy),
		cmocka_unit_test(test_whom_somebody_counts_on),
		cmocka_unit_test(test_until_it_goes_on),
		cmocka_unit_test(test_not_back_and_forth),
		cmocka_unit_test(test_resumed_before_it_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
