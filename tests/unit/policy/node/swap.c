/*
 * swap - parking, resuming, and the books of evicted memory, played by hand
 */
#include "play.h"

/* `swap, wait` over a pool. */
#define SWAP(pool, ...)                \
	SETTINGS(.pool_bytes = (pool), \
		.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0), __VA_ARGS__)
#define WORKLOAD(w, request, limit) \
	EVENT(WORKLOAD_ADD, workload_add, {w, request, limit, 1, 1, 0})
#define SWAPPER(c, w)      EVENT(CLIENT_JOIN, client_join, {c, w, 0, 1})
#define PARK(w)            EVENT(WORKLOAD_PARK, workload_park, {w, 0})
#define RESUME(w)          EVENT(WORKLOAD_RESUME, workload_resume, {w})
#define WANT(c, n)         EVENT(WANT, want, {c, n})
#define OUT(c, g, n)       EVENT(CLIENT_EVICTED, client_evicted, {c, g, n})
#define REPORTED(c)        EVENT(CLIENT_REPORTED, client_reported, {c})
#define STORE(c, n)        EVENT(STORE, store, {c, n})
#define FREED_OUT(c, g, n) EVENT(FREED, freed, {c, g, n, 1})
#define DONE(c, o, g, n)   EVENT(DONE, done, {c, o, g, SL_SWAP_OK, 0, n})
/* A turn is as long as it was when it began: 10 times what moving its client costs. */
#define BY_COST(bytes_s) EVENT(LINK_COST, link_cost, {0, bytes_s, bytes_s})
#define REFUSED(c, o, g, n, why) \
	EVENT(DONE, done, {c, o, g, SL_SWAP_REFUSED, SL_SWAP_##why, n})

/* The order of the last EVICT or RESTORE. */
static uint64_t evicted_as(const struct play *p)
{
	return p->last[SL_ACTION_EVICT].id;
}

static uint64_t restored_as(const struct play *p)
{
	return p->last[SL_ACTION_RESTORE].id;
}

static const struct play_row parking[] = {
	{"pool", 0, SWAP(100), ""},
	{"GPU", 0, GPU(0, 100), ""},
	{"a", 0, WORKLOAD(1, BYTES(60), BYTES(60)), "ADMIT 1 m1 r60 l60"},
	{"its process", 0, SWAPPER(1, 1), ""},
	{"asks", 0, ASK(1, 1, 0, 60), "GRANT 1/1 g0 60 e1"},
	{"has", 0, COMMIT(1, 1, 60), ""},
};

static void says(struct play *p, const char *row, uint64_t at_ms, struct sl_event event,
	const char *expected)
{
	const char *got = play(p, row, at_ms, event);

	assert_row_text(row, got, expected);
}

static void play_parking(struct play *p)
{
	play_open(p);
	for (size_t i = 0; i < SL_ARRAY_LEN(parking); i++)
		(void)play(p, parking[i].name, parking[i].at_ms, parking[i].event);
}

static void test_park_and_resume(void **state)
{
	struct play p;

	(void)state;
	play_parking(&p);
	says(&p, "park", 10, (struct sl_event)PARK(1),
		"SET 1 r60 l60 p0 over0; NOTE PARK_BEGINS g0 1/0 60; EVICT 1 g0 60 "
		"PARK_BEGINS");
	assert_row_u64("leaving", sl_node_pool(p.node).leaving_bytes, 60);
	says(&p, "twice", 10, (struct sl_event)PARK(1), "REFUSE 1 PARKED_ALREADY g0 0 0");
	says(&p, "gone", 20, (struct sl_event)DONE(1, evicted_as(&p), 0, 60),
		"PARKED 1 60");
	assert_row_u64("free", sl_node_gpu(p.node, 0).free_bytes, 100);
	assert_row_u64("out", sl_node_pool(p.node).evicted_bytes, 60);
	assert_row_u64(
		"parked", sl_node_workload(p.node, 1).residency, SL_RESIDENCY_PARKED);
	says(&p, "wants", 30, (struct sl_event)WANT(1, 1), "");
	/* Its request is free for others. */
	says(&p, "b", 40, (struct sl_event)WORKLOAD(2, BYTES(50), BYTES(50)),
		"ADMIT 2 m1 r50 l50");
	says(&p, "resume", 50, (struct sl_event)RESUME(1), "SET 1 r60 l60 p0 over0");
	assert_row_u64(
		"resuming", sl_node_workload(p.node, 1).residency, SL_RESIDENCY_RESUMING);
	says(&p, "b goes", 60, (struct sl_event)REMOVE(2),
		"RESUMED 1 60; RESTORE 1 g0 60");
	assert_row_u64("kept", sl_node_gpu(p.node, 0).free_bytes, 40);
	says(&p, "back", 70, (struct sl_event)DONE(1, restored_as(&p), 0, 0),
		"NOTE RESTORED g0 1/0 60");
	assert_row_u64(
		"bound", sl_node_workload(p.node, 1).residency, SL_RESIDENCY_BOUND);
	says(&p, "again", 80, (struct sl_event)RESUME(1), "REFUSE 1 NOT_PARKED g0 0 0");
	play_close(&p);
}

/* A client that refuses is asked again later, twice as late each time. */
static void test_refused_park(void **state)
{
	struct play p;

	(void)state;
	play_parking(&p);
	(void)play(&p, "park", 10, (struct sl_event)PARK(1));
	says(&p, "refused", 20,
		(struct sl_event)REFUSED(1, evicted_as(&p), 0, 0, CAPTURE),
		"NOTE EVICT_CAPTURE g0 1/0 60; PROBE 1 1");
	says(&p, "early", 119, (struct sl_event)TIME, "");
	says(&p, "again", 120, (struct sl_event)TIME, "EVICT 1 g0 60 PARK_BEGINS");
	says(&p, "refused again", 130,
		(struct sl_event)REFUSED(1, evicted_as(&p), 0, 0, CAPTURE), "");
	says(&p, "later", 329, (struct sl_event)TIME, "");
	says(&p, "third", 330, (struct sl_event)TIME, "EVICT 1 g0 60 PARK_BEGINS");
	p.shows_left = true;
	/* All that was decided comes before. */
	says(&p, "dies", 340, (struct sl_event)EXIT(1), "PARKED 1 0; LEFT 1 1 60");
	assert_row_u64("nothing leaves", sl_node_pool(p.node).leaving_bytes, 0);
	play_close(&p);
}

/* Evicted memory counts for the limit, and can be freed on the host. */
static void test_free_on_the_host(void **state)
{
	struct play p;

	(void)state;
	play_parking(&p);
	(void)play(&p, "park", 10, (struct sl_event)PARK(1));
	(void)play(&p, "gone", 20, (struct sl_event)DONE(1, evicted_as(&p), 0, 60));
	says(&p, "over its limit", 30, (struct sl_event)ASK(1, 2, 0, 1),
		"DENY 1/2 OVER_LIMIT g0");
	says(&p, "frees", 30, (struct sl_event)FREED_OUT(1, 0, 20), "");
	assert_row_u64("left", sl_node_pool(p.node).evicted_bytes, 40);
	says(&p, "asks", 40, (struct sl_event)ASK(1, 3, 0, 20), "");
	says(&p, "resumed", 50, (struct sl_event)RESUME(1),
		"SET 1 r60 l60 p0 over0; RESUMED 1 60; RESTORE 1 g0 40; PROBE 1 1");
	says(&p, "back", 60, (struct sl_event)DONE(1, restored_as(&p), 0, 0),
		"NOTE RESTORED g0 1/0 40; GRANT 1/3 g0 20");
	play_close(&p);
}

/* After a restart the reports say what is on the host; a client that wants comes back. */
static void test_recovered(void **state)
{
	struct play p;

	(void)state;
	play_open(&p);
	(void)play(&p, "pool", 0, (struct sl_event)SWAP(100));
	(void)play(&p, "GPU", 0, (struct sl_event)GPU(0, 100));
	(void)play(&p, "a", 0, (struct sl_event)WORKLOAD(1, BYTES(60), BYTES(80)));
	(void)play(&p, "joins", 0,
		(struct sl_event)EVENT(CLIENT_JOIN, client_join, {1, 1, 1, 1}));
	says(&p, "reports", 1, (struct sl_event)REPORT(1, 0, 70), "");
	says(&p, "out", 1, (struct sl_event)OUT(1, 0, 50), "");
	assert_row_u64("free", sl_node_gpu(p.node, 0).free_bytes, 80);
	says(&p, "wants", 1, (struct sl_event)WANT(1, 1), "");
	says(&p, "reported", 2, (struct sl_event)REPORTED(1), "RESTORE 1 g0 50");
	play_close(&p);
}

/* a has all of the GPU; b asks. Both compute all the time, and nothing is known of idleness. */
static const struct play_row two[] = {
	{"pool", 0, SWAP(1000), ""},
	{"GPU", 0, GPU(0, 100), ""},
	{"a", 0, WORKLOAD(1, BYTES(0), BYTES(100)), "ADMIT 1 m1 r0 l100"},
	{"b", 0, WORKLOAD(2, BYTES(0), BYTES(100)), "ADMIT 2 m1 r0 l100"},
	{"process of a", 0, SWAPPER(1, 1), ""},
	{"process of b", 0, SWAPPER(2, 2), ""},
	{"a asks", 0, ASK(1, 1, 0, 80), "GRANT 1/1 g0 80"},
	{"a has", 0, COMMIT(1, 1, 80), ""},
};

static void test_turns(void **state)
{
	struct sl_event drains = SWAP(1000);
	struct play p;
	sl_ns bound;

	drains.config.evict_drain = 7 * SL_S;

	(void)state;
	play_open(&p);
	for (size_t i = 0; i < SL_ARRAY_LEN(two); i++)
		(void)play(&p, two[i].name, two[i].at_ms, two[i].event);
	/* A client that has something there is asked for a proof once it says that it is idle. */
	says(&p, "b in a's turn", 10, (struct sl_event)ASK(2, 1, 0, 60), "PROBE 1 1");
	says(&p, "not yet", 199, (struct sl_event)TIME, "");
	says(&p, "only what is missing", 200, (struct sl_event)TIME,
		"EVICT 1 g0 40 EVICTED_FOR");
	says(&p, "its turn", 210, (struct sl_event)DONE(1, evicted_as(&p), 0, 40),
		"NOTE EVICTED_FOR g0 1/2 40; GRANT 2/1 g0 60");
	(void)play(&p, "has", 210, (struct sl_event)COMMIT(2, 2, 60));
	assert_row_u64(
		"partly", sl_node_workload(p.node, 1).residency, SL_RESIDENCY_PARTIAL);
	(void)play(&p, "a wants", 220, (struct sl_event)WANT(1, 1));
	assert_row_u64(
		"waits", sl_node_workload(p.node, 1).residency, SL_RESIDENCY_EVICTED);
	/* The bound: its own turn and the other's, what moving both costs, and a drain for each of
	 * the two. */
	assert_row_u64("bound known",
		sl_node_workload(p.node, 1).longest_wait >= 200 * SL_MS, true);
	bound = sl_node_workload(p.node, 1).longest_wait;
	(void)play(&p, "longer drains", 230, drains);
	assert_row_u64("and a longer bound", sl_node_workload(p.node, 1).longest_wait,
		bound + 10 * SL_S);
	(void)play(&p, "b's turn", 409, (struct sl_event)TIME);
	assert_row_u64("b is not moved yet", sl_node_client(p.node, 2).order, 0);
	(void)play(&p, "is over", 410, (struct sl_event)TIME);
	assert_row_u64("b is moved", sl_node_client(p.node, 2).order, evicted_as(&p));
	says(&p, "a is back", 420, (struct sl_event)DONE(2, evicted_as(&p), 0, 40),
		"NOTE EVICTED_FOR g0 2/1 40; RESTORE 1 g0 40");
	play_close(&p);
}

/* A victim that refuses is asked again later; one that dies frees its memory. */
static void test_refused_turn(void **state)
{
	struct play p;

	(void)state;
	play_open(&p);
	for (size_t i = 0; i < SL_ARRAY_LEN(two); i++)
		(void)play(&p, two[i].name, two[i].at_ms, two[i].event);
	(void)play(&p, "b", 300, (struct sl_event)ASK(2, 1, 0, 60));
	says(&p, "refused", 2300, (struct sl_event)REFUSED(1, evicted_as(&p), 0, 0, BUSY),
		"NOTE EVICT_BUSY g0 1/2 40; NOTE BURST_WAITS g0 2/1 60; PROBE 1 2");
	(void)play(&p, "early", 2399, (struct sl_event)TIME);
	assert_row_u64("not asked yet", sl_node_client(p.node, 1).order, 0);
	(void)play(&p, "again", 2400, (struct sl_event)TIME);
	assert_row_u64("asked", sl_node_client(p.node, 1).order, evicted_as(&p));
	(void)play(&p, "dies", 2410, (struct sl_event)EXIT(1));
	says(&p, "released", 2420, (struct sl_event)RELEASED(1, 0, 0),
		"GRANT 2/1 g0 60; NOTE SERVED_AFTER_WAIT g0 2/0 60");
	play_close(&p);
}

/* A client that frees memory instead of being moved has refused nothing; one that only asks
 * has waited since it asked. */
static void test_freed_meanwhile(void **state)
{
	struct play p;

	(void)state;
	play_open(&p);
	for (size_t i = 0; i < SL_ARRAY_LEN(two); i++)
		(void)play(&p, two[i].name, two[i].at_ms, two[i].event);
	(void)play(&p, "b", 300, (struct sl_event)ASK(2, 1, 0, 60));
	says(&p, "frees some", 310, (struct sl_event)FREED(1, 0, 20), "");
	says(&p, "and has moved nothing", 311,
		(struct sl_event)DONE(1, evicted_as(&p), 0, 0), "");
	says(&p, "again", 411, (struct sl_event)TIME, "EVICT 1 g0 20 EVICTED_FOR");
	says(&p, "b's turn", 420, (struct sl_event)DONE(1, evicted_as(&p), 0, 20),
		"NOTE EVICTED_FOR g0 1/2 20; GRANT 2/1 g0 60");
	(void)play(&p, "has", 420, (struct sl_event)COMMIT(2, 2, 60));
	(void)play(&p, "a asks for more", 1000, (struct sl_event)ASK(1, 2, 0, 10));
	(void)play(&p, "b frees all", 1500, (struct sl_event)FREED(2, 0, 60));
	(void)play(
		&p, "a is back", 1600, (struct sl_event)DONE(1, restored_as(&p), 0, 0));
	assert_row_u64("since it asked", p.last[SL_ACTION_NOTE].note.span, 600 * SL_MS);
	play_close(&p);
}

/* On GPU 0 A is within its request, and what it leaves will be lent; B stands on 20 of C's request.
 * X, on GPU 1, goes warm as well, and the pool of 100 has to take both. Returns the actions when
 * both have been idle for long enough. */
static const char *two_warm(struct play *p, uint64_t bytes)
{
	const struct sl_event before[] = {SWAP(100), GPU(0, 100), GPU(1, 100),
		EVENT(WORKLOAD_ADD, workload_add,
			{.workload = 1,
				.request = BYTES(50),
				.limit = BYTES(50),
				.gpu_count = 1,
				.gpu_mask = 1,
				.warm_after = SL_S}),
		WORKLOAD(2, ANY, ANY), WORKLOAD(3, BYTES(40), BYTES(40)),
		EVENT(WORKLOAD_ADD, workload_add,
			{.workload = 4,
				.request = ANY,
				.limit = ANY,
				.gpu_count = 1,
				.gpu_mask = 2,
				.warm_after = SL_S}),
		SWAPPER(1, 1), SWAPPER(2, 2), SWAPPER(4, 4)};

	play_open(p);
	for (size_t i = 0; i < SL_ARRAY_LEN(before); i++)
		(void)play(p, "before", 0, before[i]);
	(void)play(p, "A", 0, (struct sl_event)ASK(1, 1, 0, 50));
	(void)play(p, "A", 0, (struct sl_event)COMMIT(1, 1, 50));
	(void)play(p, "B", 0, (struct sl_event)ASK(2, 1, 0, 30));
	(void)play(p, "B", 0, (struct sl_event)COMMIT(2, 2, 30));
	(void)play(p, "X", 0, (struct sl_event)ASK(4, 1, 1, bytes));
	(void)play(p, "X", 0, (struct sl_event)COMMIT(4, 3, bytes));
	assert_row_u64("lent", sl_node_pool(p->node).overlap_bytes, 20);
	(void)play(p, "X idles", 2000,
		(struct sl_event)EVENT(PULSE, pulse, {4, 500 * SL_MS, 0, 1}));
	(void)play(p, "A idles", 2000,
		(struct sl_event)EVENT(PULSE, pulse, {1, 500 * SL_MS, 0, 1}));
	return play(p, "both for long", 2500, (struct sl_event)TIME);
}

static void test_warm_beside_lent(void **state)
{
	struct play p;

	(void)state;
	assert_row_text("room for one", two_warm(&p, 31),
		"EVICT 1 g0 50 EVICTED_IDLE; NOTE WARM_POOL_FULL g1 4/0 31");
	play_close(&p);
	assert_row_text("room for both", two_warm(&p, 30),
		"EVICT 1 g0 50 EVICTED_IDLE; EVICT 4 g1 30 EVICTED_IDLE");
	play_close(&p);
}

/* 50 on GPU 0 and 40 on GPU 1, idle for long: in a pool of so much. */
static const char *warm_on_two(struct play *p, uint64_t pool)
{
	const struct sl_event before[] = {SWAP(pool), GPU(0, 100), GPU(1, 100),
		EVENT(WORKLOAD_ADD, workload_add,
			{.workload = 1,
				.request = ANY,
				.limit = ANY,
				.gpu_count = 2,
				.gpu_mask = 3,
				.warm_after = SL_S}),
		SWAPPER(1, 1), ASK(1, 1, 0, 50), COMMIT(1, 1, 50), ASK(1, 2, 1, 40),
		COMMIT(1, 2, 40)};

	play_open(p);
	for (size_t i = 0; i < SL_ARRAY_LEN(before); i++)
		(void)play(p, "before", 0, before[i]);
	(void)play(p, "idles", 2000,
		(struct sl_event)EVENT(PULSE, pulse, {1, 500 * SL_MS, 0, 1}));
	return play(p, "for long", 2500, (struct sl_event)TIME);
}

/* A part of it on the host would help no client and come back at the next call. */
static void test_warm_as_a_whole(void **state)
{
	struct play p;

	(void)state;
	assert_row_text("room for one GPU's", warm_on_two(&p, 89),
		"NOTE WARM_POOL_FULL g0 1/0 90");
	play_close(&p);
	assert_row_text(
		"room for both", warm_on_two(&p, 90), "EVICT 1 g0 50 EVICTED_IDLE");
	play_close(&p);
}

static void all(struct play *p, const struct play_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		(void)play(p, rows[i].name, rows[i].at_ms, rows[i].event);
}

#define RANKED(w, request, priority) \
	EVENT(WORKLOAD_ADD, workload_add, {w, BYTES(request), BYTES(100), 1, 1, priority})

/* Z runs and has its turn. X waits for its end, then D asks for what is free, then Y waits, too.
 * Free memory is kept for X. When X gives up, it is not kept for Y, which lacks as much: D comes
 * before Y. */
static const struct play_row kept[] = {
	{"pool", 0, SWAP(1000), NULL},
	{"GPU", 0, GPU(0, 100), NULL},
	{"link", 0, BY_COST(1000), NULL},
	{"X", 0, WORKLOAD(1, ANY, ANY), NULL},
	{"Y", 0, WORKLOAD(2, ANY, ANY), NULL},
	{"Z", 0, RANKED(3, 60, 0), NULL},
	{"D", 0, WORKLOAD(4, ANY, ANY), NULL},
	{"X", 0, EVENT(CLIENT_JOIN, client_join, {1, 1, 1, 1}), NULL},
	{"Y", 0, EVENT(CLIENT_JOIN, client_join, {2, 2, 1, 1}), NULL},
	{"X has", 0, REPORT(1, 0, 40), NULL},
	{"on the host", 0, OUT(1, 0, 40), NULL},
	{"all", 0, REPORTED(1), NULL},
	{"Y has", 0, REPORT(2, 0, 40), NULL},
	{"on the host", 0, OUT(2, 0, 40), NULL},
	{"all", 0, REPORTED(2), NULL},
	{"Z", 0, SWAPPER(3, 3), NULL},
	{"asks", 0, ASK(3, 1, 0, 70), NULL},
	{"has", 0, COMMIT(3, 1, 70), NULL},
	{"D", 0, SWAPPER(4, 4), NULL},
	{"X wants", 10, WANT(1, 1), NULL},
	{"D asks", 1020, ASK(4, 1, 0, 20), NULL},
	{"Y wants", 1030, WANT(2, 1), NULL},
};

static void test_kept_for_another(void **state)
{
	struct play p;

	(void)state;
	play_open(&p);
	all(&p, kept, SL_ARRAY_LEN(kept));
	assert_row_u64("D waits", sl_node_use(p.node, 4, 0).waiting, 1);
	assert_non_null(
		strstr(play(&p, "X does not want", 1040, (struct sl_event)WANT(1, 0)),
			"GRANT 4/1 g0 20"));
	play_close(&p);
}

/* X waits for the end of Z's turn, which is 2.4 s; free memory is kept for X. D would fit in that,
 * but has a lower priority. After two turns of its own, of 200 ms, D comes before X. No event marks
 * that moment, only time. */
static const struct play_row patient[] = {
	{"pool", 0, SWAP(1000, .min_share_pm = 1000, .turn_max = 20 * SL_S), NULL},
	{"GPU", 0, GPU(0, 100), NULL},
	{"link", 0, BY_COST(200), NULL},
	{"X", 0, RANKED(1, 30, 1), NULL},
	{"Z", 0, RANKED(2, 60, 1), NULL},
	{"D", 0, RANKED(3, 0, 0), NULL},
	{"X", 0, EVENT(CLIENT_JOIN, client_join, {1, 1, 1, 1}), NULL},
	{"X has", 0, REPORT(1, 0, 40), NULL},
	{"on the host", 0, OUT(1, 0, 40), NULL},
	{"all", 0, REPORTED(1), NULL},
	{"Z", 0, SWAPPER(2, 2), NULL},
	{"asks", 0, ASK(2, 1, 0, 85), NULL},
	{"has", 0, COMMIT(2, 1, 85), NULL},
	{"D", 0, SWAPPER(3, 3), NULL},
	{"X wants", 10, WANT(1, 1), NULL},
	{"D asks", 1020, ASK(3, 1, 0, 10), NULL},
};

static void test_promoted_by_time(void **state)
{
	struct play p;

	(void)state;
	play_open(&p);
	all(&p, patient, SL_ARRAY_LEN(patient));
	assert_row_u64("D waits", sl_node_use(p.node, 3, 0).waiting, 1);
	assert_null(strstr(play(&p, "early", 2019, (struct sl_event)TIME), "GRANT"));
	assert_non_null(strstr(play(&p, "for long enough", 2020, (struct sl_event)TIME),
		"GRANT 3/1 g0 10"));
	play_close(&p);
}

/* Z has 70, and H asks for 30; neither can be moved. H must leave W its request, so it waits for Z.
 * D asks for 40, and R wants back as much. Z frees 15 after more than a second. They are not D's;
 * they are kept for H, but do not suffice for it. So R comes back. */
static const struct sl_event yielding[] = {SWAP(1000), GPU(0, 100),
	WORKLOAD(1, BYTES(30), BYTES(100)), RANKED(2, 0, 0), RANKED(3, 0, 0),
	RANKED(4, 0, 0), RANKED(5, 0, 0), EVENT(CLIENT_JOIN, client_join, {5, 5, 1, 1}),
	REPORT(5, 0, 40), OUT(5, 0, 40), REPORTED(5), JOIN(2, 2), ASK(2, 1, 0, 70),
	COMMIT(2, 1, 70), JOIN(4, 4), SWAPPER(3, 3), ASK(4, 1, 0, 30), ASK(3, 1, 0, 40),
	WANT(5, 1)};

static void test_yields(void **state)
{
	struct play p;

	(void)state;
	play_open(&p);
	for (size_t i = 0; i < SL_ARRAY_LEN(yielding); i++)
		(void)play(&p, "before", 10 * i, yielding[i]);
	assert_non_null(
		strstr(play(&p, "Z frees", 2000, (struct sl_event)FREED(2, 0, 15)),
			"RESTORE 5 g0 40"));
	play_close(&p);
}

/* D has a second demand, which does not fit beside the first. Once D has had its turn of 200 ms,
 * its next one is two turns away, however long that demand has waited. Until then, what Z frees is
 * left to X. */
static void test_promoted_again(void **state)
{
	struct play p;

	(void)state;
	play_open(&p);
	all(&p, patient, SL_ARRAY_LEN(patient));
	(void)play(&p, "D asks for more", 1020, (struct sl_event)ASK(3, 2, 0, 8));
	assert_non_null(strstr(play(&p, "for long enough", 2820, (struct sl_event)TIME),
		"GRANT 3/1 g0 10"));
	(void)play(&p, "has", 2820, (struct sl_event)COMMIT(3, 2, 10));
	(void)play(&p, "a moment later", 2821, (struct sl_event)TIME);
	assert_true(sl_node_client(p.node, 2).order > 0);
	play_close(&p);
}

/* D asks for more than is free, and is promoted, but Z's turn is not over yet. Then D gives up, and
 * asks anew for what would fit. The new demand has its ordinary place behind X, for which the free
 * memory is kept. */
static void test_promoted_in_vain(void **state)
{
	const char *got;
	struct play p;

	(void)state;
	play_open(&p);
	all(&p, patient, SL_ARRAY_LEN(patient) - 1);
	(void)play(&p, "D asks", 1020, (struct sl_event)ASK(3, 1, 0, 40));
	got = play(&p, "promoted", 5020, (struct sl_event)TIME);
	assert_non_null(strstr(got, "EVICT 2 g0 25 EVICTED_FOR"));
	(void)play(&p, "gives up", 5030, (struct sl_event)EVENT(CANCEL, cancel, {3, 1}));
	(void)play(&p, "nothing of Z left", 5031,
		(struct sl_event)REFUSED(2, evicted_as(&p), 0, 0, ABORTED));
	assert_null(strstr(
		play(&p, "asks anew", 5040, (struct sl_event)ASK(3, 2, 0, 10)), "GRANT"));
	assert_null(strstr(play(&p, "early", 6039, (struct sl_event)TIME), "GRANT"));
	assert_non_null(strstr(play(&p, "for long enough", 6040, (struct sl_event)TIME),
		"GRANT 3/2 g0 10"));
	play_close(&p);
}

/* With `wait` first, two longest waits end together. A's demand cannot be served: N cannot be
 * moved, and S does not answer. So it is denied, nothing is kept for it, and A leaves for C. */
static const struct play_row anew[] = {
	{"wait swap", 0,
		SETTINGS(.pool_bytes = 1000,
			.chain = SL_CHAIN(SL_RESOLVER_WAIT, SL_RESOLVER_SWAP, 0)),
		NULL},
	{"GPU", 0, GPU(0, 100), NULL},
	{"A", 0, WORKLOAD(1, ANY, ANY), NULL},
	{"N", 0, WORKLOAD(2, ANY, ANY), NULL},
	{"C", 0, WORKLOAD(3, ANY, ANY), NULL},
	{"S", 0, WORKLOAD(4, ANY, ANY), NULL},
	{"A", 0, SWAPPER(1, 1), NULL},
	{"N cannot move", 0, JOIN(2, 2), NULL},
	{"C", 0, SWAPPER(3, 3), NULL},
	{"S", 0, SWAPPER(4, 4), NULL},
	{"asks", 0, ASK(1, 1, 0, 40), NULL},
	{"has", 0, COMMIT(1, 1, 40), NULL},
	{"asks", 0, ASK(2, 1, 0, 40), NULL},
	{"has", 0, COMMIT(2, 2, 40), NULL},
	{"asks", 0, ASK(4, 1, 0, 10), NULL},
	{"has", 0, COMMIT(4, 3, 10), NULL},
	{"S stops", 0, EVENT(CONDITION, condition, {4, SL_CONDITION_STOPPED}), NULL},
	{"C asks", 0, ASK(3, 1, 0, 35), NULL},
	{"A asks", 0, ASK(1, 2, 0, 15), NULL},
};

static void test_waits_anew(void **state)
{
	const char *got = NULL;
	struct play p;

	(void)state;
	(void)got;
	play_open(&p);
	all(&p, anew, SL_ARRAY_LEN(anew));
	got = play(&p, "their time is over", 60001, (struct sl_event)TIME);
	assert_non_null(strstr(got, "DENY 1/2 WAITED_TOO_LONG"));
	got = play(&p, "and nothing is kept for it", 60001, (struct sl_event)TIME);
	assert_non_null(strstr(got, "EVICT 1 g0 25 EVICTED_FOR"));
	play_close(&p);
}

/* What V is moving to the host counts for E. `priority` stops one process for the 50 that E lacks
 * beside that, not two for all 70. W's and Y's memory cannot be moved. */
static const struct play_row under_way[] = {
	{"swap priority", 0,
		SETTINGS(.pool_bytes = 1000, .stop_idle = SL_S,
			.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_PRIORITY, 0)),
		NULL},
	{"GPU", 0, GPU(0, 100), NULL},
	{"V", 0, WORKLOAD(1, ANY, ANY), NULL},
	{"W", 0, WORKLOAD(2, ANY, ANY), NULL},
	{"Y", 0, WORKLOAD(3, ANY, ANY), NULL},
	{"E is more urgent", 0,
		EVENT(WORKLOAD_ADD, workload_add,
			{.workload = 4,
				.request = ANY,
				.limit = ANY,
				.gpu_count = 1,
				.gpu_mask = 1,
				.priority = 1}),
		NULL},
	{"V", 0, SWAPPER(1, 1), NULL},
	{"W cannot move", 0, JOIN(2, 2), NULL},
	{"Y cannot move", 0, JOIN(3, 3), NULL},
	{"E", 0, SWAPPER(4, 4), NULL},
	{"V asks", 0, ASK(1, 1, 0, 20), NULL},
	{"has", 0, COMMIT(1, 1, 20), NULL},
	{"W asks", 0, ASK(2, 1, 0, 50), NULL},
	{"has", 0, COMMIT(2, 2, 50), NULL},
	{"Y asks", 0, ASK(3, 1, 0, 30), NULL},
	{"has", 0, COMMIT(3, 3, 30), NULL},
	{"V is parked", 10, PARK(1), NULL},
};

/* E asks for so many bytes; the actions that follow at once. */
static const char *asks_under_way(struct play *p, uint64_t bytes)
{
	play_open(p);
	all(p, under_way, SL_ARRAY_LEN(under_way));
	return play(p, "E asks", 20, (struct sl_event)ASK(4, 1, 0, bytes));
}

static void test_counts_what_leaves(void **state)
{
	struct play p;

	(void)state;
	assert_null(strstr(asks_under_way(&p, 20), "STOP"));
	assert_non_null(strstr(play(&p, "V has left", 30,
				       (struct sl_event)DONE(1, evicted_as(&p), 0, 20)),
		"GRANT 4/1 g0 20"));
	play_close(&p);
	/* One is enough for 30 beside those 20; without them both would go. */
	assert_non_null(strstr(asks_under_way(&p, 70), "STOP 2 2 TERM STOP_PRIORITY"));
	assert_row_u64("one", sl_node_client(p.node, 3).stopping, 0);
	play_close(&p);
	/* A client that does not answer may never give it: then another has to. */
	(void)asks_under_way(&p, 20);
	says(&p, "V hangs", 30,
		(struct sl_event)EVENT(CONDITION, condition, {1, SL_CONDITION_STOPPED}),
		"STOP 2 2 TERM STOP_PRIORITY");
	play_close(&p);
}

/* A has 60 on each of two GPUs, all on the host, and is told to come back on the first. */
static void begin_return(struct play *p)
{
	const struct sl_event before[] = {SWAP(1000), GPU(0, 100), GPU(1, 100),
		EVENT(WORKLOAD_ADD, workload_add, {1, ANY, ANY, 2, 3, 0}),
		WORKLOAD(2, ANY, ANY), EVENT(CLIENT_JOIN, client_join, {1, 1, 1, 1}),
		REPORT(1, 0, 60), OUT(1, 0, 60), REPORT(1, 1, 60), OUT(1, 1, 60),
		REPORTED(1)};

	play_open(p);
	for (size_t i = 0; i < SL_ARRAY_LEN(before); i++)
		(void)play(p, "before", 0, before[i]);
	says(p, "A wants", 1, (struct sl_event)WANT(1, 1), "RESTORE 1 g0 60");
	assert_row_u64("kept", sl_node_gpu(p->node, 1).free_bytes, 40);
}

/* Meanwhile measured memory takes so much of the second that A does not fit there any more. */
static void test_room_lost(void **state)
{
	struct play p;

	(void)state;
	begin_return(&p);
	(void)play(&p, "fits beside A", 2, (struct sl_event)UNMANAGED(1, 40));
	/* That it is back is said per GPU. */
	says(&p, "goes on", 3, (struct sl_event)DONE(1, restored_as(&p), 0, 0),
		"NOTE RESTORED g0 1/0 60; RESTORE 1 g1 60");
	play_close(&p);
	begin_return(&p);
	(void)play(&p, "one more", 2, (struct sl_event)UNMANAGED(1, 41));
	assert_row_u64("nothing free", sl_node_gpu(p.node, 1).free_bytes, 0);
	says(&p, "stays where it is", 3, (struct sl_event)DONE(1, restored_as(&p), 0, 0),
		"NOTE RESTORED g0 1/0 60; PROBE 1 1");
	assert_row_u64("nothing kept", sl_node_gpu(p.node, 1).free_bytes, 59);
	assert_row_u64("on the host", sl_node_pool(p.node).evicted_bytes, 60);
	says(&p, "there is room again", 4, (struct sl_event)UNMANAGED(1, 40),
		"RESTORE 1 g1 60");
	says(&p, "back", 5, (struct sl_event)DONE(1, restored_as(&p), 1, 0),
		"NOTE RESTORED g1 1/0 60");
	play_close(&p);
}

#define M SL_MIB
#define PARTLY(w, part, may)              \
	EVENT(WORKLOAD_ADD, workload_add, \
		{.workload = w,           \
			.request = part,  \
			.gpu_count = 1,   \
			.gpu_mask = 1,    \
			.may_take_less = may})

/* A parked program's context stays on the GPU. A workload that asks for a fraction may accept less:
 * it then gets what such contexts leave of the fraction. If other requests are in the way, too, it
 * is refused. */
static void test_beside_the_parked(void **state)
{
	struct play p;

	(void)state;
	play_open(&p);
	(void)play(&p, "pool", 0, (struct sl_event)SWAP(100 * M));
	(void)play(&p, "GPU", 0, (struct sl_event)GPU(0, 100 * M));
	(void)play(
		&p, "a", 0, (struct sl_event)WORKLOAD(1, BYTES(60 * M), BYTES(60 * M)));
	(void)play(&p, "its process", 0, (struct sl_event)SWAPPER(1, 1));
	(void)play(&p, "its context", 0, (struct sl_event)HIDDEN(1, 0, 10 * M));
	says(&p, "beside one that runs", 1, (struct sl_event)PARTLY(2, PART(1000000), 1),
		"REFUSE 2 REQUESTS_TAKEN g0 104857600 41943040");
	(void)play(&p, "park", 2, (struct sl_event)PARK(1));
	says(&p, "it may not", 3, (struct sl_event)PARTLY(2, PART(1000000), 0),
		"REFUSE 2 REQUESTS_TAKEN g0 104857600 94371840");
	says(&p, "bytes", 4, (struct sl_event)PARTLY(2, BYTES(100 * M), 1),
		"REFUSE 2 REQUESTS_TAKEN g0 104857600 94371840");
	says(&p, "it may", 5, (struct sl_event)PARTLY(2, PART(1000000), 1),
		"ADMIT 2 m1 r94371840 l104857600");
	(void)play(&p, "goes", 6, (struct sl_event)REMOVE(2));
	(void)play(
		&p, "c", 7, (struct sl_event)WORKLOAD(3, BYTES(20 * M), BYTES(20 * M)));
	says(&p, "beside both", 8, (struct sl_event)PARTLY(2, PART(1000000), 1),
		"REFUSE 2 REQUESTS_TAKEN g0 104857600 73400320");
	/* A client that waits to come back does not count as the rest of a parked one. */
	(void)play(&p, "c", 9, (struct sl_event)REMOVE(3));
	(void)play(
		&p, "d", 9, (struct sl_event)WORKLOAD(4, BYTES(45 * M), BYTES(45 * M)));
	(void)play(&p, "back", 10, (struct sl_event)RESUME(1));
	assert_row_u64(
		"waits", sl_node_workload(p.node, 1).residency, SL_RESIDENCY_RESUMING);
	says(&p, "in front of it", 11, (struct sl_event)PARTLY(2, PART(500000), 1),
		"REFUSE 2 REQUESTS_TAKEN g0 52428800 47185920");
	play_close(&p);
}

/* A has its turn. B waits for 10 of its 50, then C for its 40. B frees the 10, so it is fully
 * resident and its turn begins. B had no work before because it could not run; it must not be moved
 * for that. Having no work for 20 ms from now on is a reason. */
static void test_whole_by_freeing(void **state)
{
	const struct sl_event before[] = {SWAP(1000), GPU(0, 100), WORKLOAD(1, ANY, ANY),
		WORKLOAD(2, ANY, ANY), WORKLOAD(3, ANY, ANY),
		EVENT(CLIENT_JOIN, client_join, {2, 2, 1, 1}), REPORT(2, 0, 50),
		OUT(2, 0, 10), REPORTED(2), EVENT(CLIENT_JOIN, client_join, {3, 3, 1, 1}),
		REPORT(3, 0, 40), OUT(3, 0, 40), REPORTED(3), SWAPPER(1, 1),
		ASK(1, 1, 0, 60), COMMIT(1, 1, 60), WANT(2, 1)};
	struct play p;

	(void)state;
	play_open(&p);
	for (size_t i = 0; i < SL_ARRAY_LEN(before); i++)
		(void)play(&p, "before", 0, before[i]);
	(void)play(&p, "C wants", 10, (struct sl_event)WANT(3, 1));
	(void)play(&p, "B idles", 100,
		(struct sl_event)EVENT(PULSE, pulse, {2, 90 * SL_MS, 0, 1}));
	assert_null(strstr(
		play(&p, "B frees", 110, (struct sl_event)FREED_OUT(2, 0, 10)), "EVICT"));
	assert_null(strstr(
		play(&p, "early", 129,
			(struct sl_event)EVENT(PULSE, pulse, {2, 19 * SL_MS, 0, 1})),
		"EVICT"));
	assert_non_null(strstr(play(&p, "idle again", 130, (struct sl_event)TIME),
		"EVICT 2 g0 40 EVICTED_FOR"));
	play_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_park_and_resume),
		cmocka_unit_test(test_refused_park),
		cmocka_unit_test(test_free_on_the_host),
		cmocka_unit_test(test_recovered),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_refused_turn),
		cmocka_unit_test(test_freed_meanwhile),
		cmocka_unit_test(test_warm_beside_lent),
		cmocka_unit_test(test_warm_as_a_whole),
		cmocka_unit_test(test_kept_for_another),
		cmocka_unit_test(test_promoted_by_time),
		cmocka_unit_test(test_yields),
		cmocka_unit_test(test_promoted_again),
		cmocka_unit_test(test_promoted_in_vain),
		cmocka_unit_test(test_waits_anew),
		cmocka_unit_test(test_counts_what_leaves),
		cmocka_unit_test(test_room_lost),
		cmocka_unit_test(test_beside_the_parked),
		cmocka_unit_test(test_whole_by_freeing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
