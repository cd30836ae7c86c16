/*
 * joined - workloads on two GPUs, and how leaving one affects the other, played by hand
 *
 * V has just got 60 of each of two GPUs of 100. W has the rest of the first, 40, and 10 more on the
 * host. The host has space for 240. Beside W's 10, it holds 75 of Z's and copies: 140 of V's and 30
 * of Y's.
 */
#include "play.h"

#define SWAP(pool)                     \
	SETTINGS(.pool_bytes = (pool), \
		.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0))
#define WORKLOAD(w, gpus, mask, priority) \
	EVENT(WORKLOAD_ADD, workload_add, {w, ANY, ANY, gpus, mask, priority})
#define SWAPPER(c, w) EVENT(CLIENT_JOIN, client_join, {c, w, 0, 1})
#define STORE(c, n)   EVENT(STORE, store, {c, n})

static const struct play_row crowded[] = {
	{"pool", 0, SWAP(240), NULL},
	{"GPU", 0, GPU(0, 100), NULL},
	{"GPU", 0, GPU(1, 100), NULL},
	{"H", 0, WORKLOAD(1, 1, 2, 1), NULL},
	{"V", 0, WORKLOAD(2, 2, 3, 0), NULL},
	{"W", 0, WORKLOAD(3, 1, 1, -1), NULL},
	{"L", 0, WORKLOAD(4, 1, 1, 0), NULL},
	{"Y", 0, WORKLOAD(5, 1, 1, 0), NULL},
	{"Z", 0, WORKLOAD(6, 1, 1, 0), NULL},
	{"Z", 0, EVENT(CLIENT_JOIN, client_join, {6, 6, 1, 1}), NULL},
	{"Z has", 0, REPORT(6, 0, 75), NULL},
	{"on the host", 0, EVENT(CLIENT_EVICTED, client_evicted, {6, 0, 75}), NULL},
	{"all", 0, EVENT(CLIENT_REPORTED, client_reported, {6}), NULL},
	{"made", 0, STORE(6, 75), NULL},
	{"Y", 0, SWAPPER(5, 5), NULL},
	{"had some", 0, STORE(5, 30), NULL},
	{"W", 0, EVENT(CLIENT_JOIN, client_join, {3, 3, 1, 1}), NULL},
	{"W has", 0, REPORT(3, 0, 50), NULL},
	{"on the host", 0, EVENT(CLIENT_EVICTED, client_evicted, {3, 0, 10}), NULL},
	{"all", 0, EVENT(CLIENT_REPORTED, client_reported, {3}), NULL},
	{"made", 0, STORE(3, 10), NULL},
	{"V", 5000, SWAPPER(2, 2), NULL},
	{"had some", 5000, STORE(2, 140), NULL},
	{"asks", 5000, ASK(2, 1, 0, 60), NULL},
	{"has", 5000, COMMIT(2, 1, 60), NULL},
	{"asks", 5000, ASK(2, 2, 1, 60), NULL},
	{"has", 5000, COMMIT(2, 2, 60), NULL},
	{"H", 5000, SWAPPER(1, 1), NULL},
	{"L", 5000, SWAPPER(4, 4), NULL},
};

/*
 * L lacks all of W's memory on the first GPU, and 10 more, for which it waits until V's turn is
 * over. H, of higher priority, lacks 20 on the second. V leaves these as soon as Y has given back
 * copies, and until then L cannot count on V. V then leaves for H, and W for L once V has given
 * back copies, too.
 */
static void test_waits_for_the_pool(void **state)
{
	struct play p;
	const char *got;

	(void)state;
	play_open(&p);
	for (size_t i = 0; i < SL_ARRAY_LEN(crowded); i++)
		(void)play(&p, crowded[i].name, crowded[i].at_ms, crowded[i].event);
	assert_null(strstr(
		play(&p, "L asks", 5010, (struct sl_event)ASK(4, 1, 0, 50)), "EVICT"));
	got = play(&p, "H asks", 5020, (struct sl_event)ASK(1, 1, 1, 60));
	assert_row_text("H asks", got, "TRIM 5 15");
	assert_row_text("Y gives a part back",
		play(&p, "Y gives a part back", 5025, (struct sl_event)STORE(5, 20)),
		"TRIM 5 20; TRIM 2 25");
	got = play(&p, "Y gives back", 5030, (struct sl_event)STORE(5, 0));
	assert_row_text("Y gives back", got, "EVICT 2 g1 20 EVICTED_FOR");
	got = play(&p, "V gives back", 5040, (struct sl_event)STORE(2, 115));
	assert_row_text("V gives back", got, "EVICT 3 g0 40 EVICTED_FOR");
	play_close(&p);
}

/*
 * P and Q have 30 each on the second GPU and 20 each on the host; V has the rest. The pool keeps
 * space so that one of them can leave its place to the other. That space must not be lent on the
 * first GPU, where D asks for 10 and all but 5 are requested. P wants, so Q is to leave as soon as
 * Y has given back copies. What the pool could lend after that, D must not get now.
 */
static const struct play_row half_there[] = {
	{"pool", 0, SWAP(64), NULL},
	{"GPU", 0, GPU(0, 100), NULL},
	{"GPU", 0, GPU(1, 100), NULL},
	{"P", 0, WORKLOAD(1, 1, 2, 0), NULL},
	{"Q", 0, WORKLOAD(2, 1, 2, 0), NULL},
	{"V", 0, WORKLOAD(3, 1, 2, 0), NULL},
	{"D", 0, WORKLOAD(4, 1, 1, 0), NULL},
	{"Y", 0, WORKLOAD(5, 1, 1, 0), NULL},
	{"R", 0, EVENT(WORKLOAD_ADD, workload_add, {6, BYTES(95), ANY, 1, 1, 0}), NULL},
	{"P", 0, EVENT(CLIENT_JOIN, client_join, {1, 1, 1, 1}), NULL},
	{"P has", 0, REPORT(1, 1, 50), NULL},
	{"on the host", 0, EVENT(CLIENT_EVICTED, client_evicted, {1, 1, 20}), NULL},
	{"all", 0, EVENT(CLIENT_REPORTED, client_reported, {1}), NULL},
	{"made", 0, STORE(1, 20), NULL},
	{"Q", 0, EVENT(CLIENT_JOIN, client_join, {2, 2, 1, 1}), NULL},
	{"Q has", 0, REPORT(2, 1, 50), NULL},
	{"on the host", 0, EVENT(CLIENT_EVICTED, client_evicted, {2, 1, 20}), NULL},
	{"all", 0, EVENT(CLIENT_REPORTED, client_reported, {2}), NULL},
	{"made", 0, STORE(2, 20), NULL},
	{"Y", 0, SWAPPER(5, 5), NULL},
	{"had some", 0, STORE(5, 10), NULL},
	{"V", 0, JOIN(3, 3), NULL},
	{"asks", 0, ASK(3, 1, 1, 40), NULL},
	{"has", 0, COMMIT(3, 1, 40), NULL},
	{"D", 0, SWAPPER(4, 4), NULL},
	{"P wants", 5010, EVENT(WANT, want, {1, 1}), NULL},
	{"D asks", 5020, ASK(4, 1, 0, 10), NULL},
};

static void test_lends_what_is_there(void **state)
{
	struct play p;
	const char *got;

	(void)state;
	play_open(&p);
	for (size_t i = 0; i < SL_ARRAY_LEN(half_there); i++)
		(void)play(
			&p, half_there[i].name, half_there[i].at_ms, half_there[i].event);
	assert_row_u64("D waits", sl_node_use(p.node, 4, 0).waiting, 1);
	got = play(
		&p, "news", 5030, (struct sl_event)EVENT(PULSE, pulse, {5, SL_S, 0, 0}));
	assert_row_text("news", got, "");
	play_close(&p);
}

/* G grew on the first GPU in its slice. On the second it has nothing yet: V leaves only what G asks
 * for there, and nothing ahead for G's next piece. */
static void test_grows_where_it_has(void **state)
{
	static const struct play_row rows[] = {
		{"pool", 0, SWAP(1000), NULL},
		{"GPU", 0, GPU(0, 100), NULL},
		{"GPU", 0, GPU(1, 100), NULL},
		{"G", 0, WORKLOAD(1, 2, 3, 0), NULL},
		{"V", 0, WORKLOAD(2, 2, 3, 0), NULL},
		{"G", 0, SWAPPER(1, 1), NULL},
		{"V", 0, SWAPPER(2, 2), NULL},
		{"asks", 0, ASK(2, 1, 0, 60), NULL},
		{"has", 0, COMMIT(2, 1, 60), NULL},
		{"asks", 0, ASK(2, 2, 1, 95), NULL},
		{"has", 0, COMMIT(2, 2, 95), NULL},
		{"G asks", 9000, ASK(1, 1, 0, 10), NULL},
		{"has", 9000, COMMIT(1, 3, 10), NULL},
		{"G asks", 9000, ASK(1, 2, 0, 40), NULL},
	};
	struct play p;

	(void)state;
	play_open(&p);
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++)
		(void)play(&p, rows[i].name, rows[i].at_ms, rows[i].event);
	assert_row_text("V leaves",
		play(&p, "V leaves", 9010,
			(struct sl_event)EVENT(DONE, done,
				{2, p.last[SL_ACTION_EVICT].id, 0, SL_SWAP_OK, 0, 10})),
		"NOTE EVICTED_FOR g0 2/1 10; GRANT 1/2 g0 40");
	(void)play(&p, "has", 9011, (struct sl_event)COMMIT(1, 4, 40));
	assert_row_text("there",
		play(&p, "there", 9012, (struct sl_event)ASK(1, 3, 1, 10)),
		"EVICT 2 g1 5 EVICTED_FOR");
	play_close(&p);
}

/* `wait` is first. C, of P, has 20 on each GPU. P is parked: C's 20 have left the first GPU and
 * still leave the second, where V has 70 and X waits for 25 from the host. D, of P, too, asks for
 * 20 on the first GPU, C for 5 on the second. Then P is resumed. With D's 20 it exceeds its request
 * of 30 on the first GPU: C's body is a burst, for which nothing leaves yet. But C's demand is
 * within the request, so C has a seat with it, in each plan, and comes back once it has stopped
 * leaving. */
static void test_comes_with_its_demand(void **state)
{
	static const struct sl_event before[] = {
		SETTINGS(.pool_bytes = 1000,
			.chain = SL_CHAIN(SL_RESOLVER_WAIT, SL_RESOLVER_SWAP, 0)),
		GPU(0, 100), GPU(1, 100),
		EVENT(WORKLOAD_ADD, workload_add, {1, BYTES(30), BYTES(100), 2, 3, 0}),
		WORKLOAD(2, 1, 2, 0), WORKLOAD(3, 1, 2, 0), SWAPPER(1, 1), SWAPPER(2, 2),
		EVENT(CLIENT_JOIN, client_join, {3, 3, 1, 1}), REPORT(3, 1, 25),
		EVENT(CLIENT_EVICTED, client_evicted, {3, 1, 25}),
		EVENT(CLIENT_REPORTED, client_reported, {3}), ASK(1, 1, 0, 20),
		COMMIT(1, 1, 20), ASK(1, 2, 1, 20), COMMIT(1, 2, 20), ASK(2, 1, 1, 70),
		COMMIT(2, 3, 70), EVENT(WORKLOAD_PARK, workload_park, {1, 0})};
	static const struct sl_event asks[] = {SWAPPER(4, 1), ASK(4, 1, 0, 20),
		ASK(1, 3, 1, 5), EVENT(WANT, want, {3, 1})};
	struct play p;
	const char *got;
	uint64_t order;

	(void)state;
	play_open(&p);
	for (size_t i = 0; i < SL_ARRAY_LEN(before); i++)
		(void)play(&p, "before", 0, before[i]);
	order = p.last[SL_ACTION_EVICT].id;
	got = play(&p, "leaves", 10,
		(struct sl_event)EVENT(DONE, done, {1, order, 0, SL_SWAP_OK, 0, 20}));
	assert_row_text("leaves", got, "EVICT 1 g1 20 PARK_BEGINS");
	for (size_t i = 0; i < SL_ARRAY_LEN(asks); i++)
		(void)play(&p, "asks", 20, asks[i]);
	got = play(&p, "resumed", 30,
		(struct sl_event)EVENT(WORKLOAD_RESUME, workload_resume, {1}));
	assert_non_null(strstr(got, "RESUMED 1 30; ABORT 1; GRANT 4/1 g0 20"));
	for (uint32_t i = 0; i < 4; i++)
		(void)play(&p, "plans", 30, (struct sl_event)TIME);
	assert_true(p.last[SL_ACTION_WAKE_AT].wake_at.at > PLAY_BEGINS + 30 * SL_MS);
	order = p.last[SL_ACTION_EVICT].id;
	got = play(&p, "stays", 40,
		(struct sl_event)EVENT(
			DONE, done, {1, order, 1, SL_SWAP_REFUSED, SL_SWAP_ABORTED, 0}));
	assert_row_text("stays", got, "RESTORE 1 g0 20");
	play_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits_for_the_pool),
		cmocka_unit_test(test_lends_what_is_there),
		cmocka_unit_test(test_grows_where_it_has),
		cmocka_unit_test(test_comes_with_its_demand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
