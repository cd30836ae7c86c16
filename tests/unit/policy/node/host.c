/*
 * host - clients for which the host has no space, and what is said of them, played by hand
 */
#include "play.h"

#define SWAP(pool, ...)                \
	SETTINGS(.pool_bytes = (pool), \
		.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0), __VA_ARGS__)
#define WORKLOAD(w, request) EVENT(WORKLOAD_ADD, workload_add, {w, request, ANY, 1, 1, 0})
#define SWAPPER(c, w)        EVENT(CLIENT_JOIN, client_join, {c, w, 0, 1})
#define PARK(w)              EVENT(WORKLOAD_PARK, workload_park, {w, 0})
#define STORE(c, n)          EVENT(STORE, store, {c, n})
#define CONDITION(c, what)   EVENT(CONDITION, condition, {c, SL_CONDITION_##what})
#define REFUSED(c, o, why)   EVENT(DONE, done, {c, o, 0, SL_SWAP_REFUSED, SL_SWAP_##why, 0})
#define DONE(c, o, n)        EVENT(DONE, done, {c, o, 0, SL_SWAP_OK, 0, n})

static const char *at(struct play *p, uint64_t at_ms, struct sl_event event)
{
	return play(p, "story", at_ms, event);
}

static void says(struct play *p, const char *row, uint64_t at_ms, struct sl_event event,
	const char *expected)
{
	const char *got = play(p, row, at_ms, event);

	assert_row_text(row, got, expected);
}

static uint64_t evicted_as(const struct play *p)
{
	return p->last[SL_ACTION_EVICT].id;
}

/* It asks for so much, and has it. */
static void has(struct play *p, uint64_t client, uint64_t bytes)
{
	(void)at(p, 0, (struct sl_event)ASK(client, 1, 0, bytes));
	(void)at(p, 0,
		(struct sl_event)COMMIT(
			client, p->last[SL_ACTION_GRANT].grant.epoch, bytes));
}

static void count_why(void *context, const struct sl_node_because *because)
{
	struct sl_node_because *rows = context;

	/* The last is kept, and how many there were. */
	rows[0] = *because;
	rows[1].bytes++;
}

/* Workload 1 has two processes with 30 each. */
static void begin(struct play *p, struct sl_event settings)
{
	play_open(p);
	(void)at(p, 0, settings);
	(void)at(p, 0, (struct sl_event)GPU(0, 100));
	(void)at(p, 0, (struct sl_event)WORKLOAD(1, ANY));
	(void)at(p, 0, (struct sl_event)SWAPPER(1, 1));
	(void)at(p, 0, (struct sl_event)SWAPPER(2, 1));
	has(p, 1, 30);
	has(p, 2, 30);
}

/* The pool has space, but the workload's own bound has not. The refusal names the bound, and all
 * that the workload would have in the pool. */
static void test_refused_by_its_bound(void **state)
{
	struct play p;

	begin(&p, (struct sl_event)SWAP(1000, .pool_member_bytes = 50));
	says(&p, "park", 10, (struct sl_event)PARK(1), "REFUSE 1 PARK_BOUND g0 60 50");
	play_close(&p);
	begin(&p, (struct sl_event)SWAP(50, .pool_member_bytes = 60));
	says(&p, "park", 10, (struct sl_event)PARK(1), "REFUSE 1 PARK_NO_POOL g0 60 50");
	play_close(&p);
}

/* Workload 1's processes leave for being idle, which takes the room that they need. */
static void leaves(struct play *p, struct sl_event settings)
{
	begin(p, settings);
	(void)at(p, 0,
		(struct sl_event)EVENT(WORKLOAD_SET, workload_set,
			{.workload = 1, .which = SL_SET_WARM, .warm_after = SL_S}));
	(void)at(p, 1500, (struct sl_event)EVENT(PULSE, pulse, {1, 500 * SL_MS, 0, 1}));
	(void)at(p, 1500, (struct sl_event)EVENT(PULSE, pulse, {2, 500 * SL_MS, 0, 1}));
	says(p, "idle", 2000, (struct sl_event)TIME,
		"EVICT 1 g0 30 EVICTED_IDLE; EVICT 2 g0 30 EVICTED_IDLE");
}

/* Bytes on their way count once, both in the pool and in the bound. Bytes that are not on their way
 * yet need room of their own. */
static void test_parked_while_it_leaves(void **state)
{
	const char *begins = "SET 1 r0 l100 p0 over0; NOTE PARK_BEGINS g0 1/0 60";
	struct play p;

	leaves(&p, (struct sl_event)SWAP(60));
	says(&p, "all of the pool", 2010, (struct sl_event)PARK(1), begins);
	play_close(&p);
	leaves(&p, (struct sl_event)SWAP(1000, .pool_member_bytes = 60));
	says(&p, "all of its bound", 2010, (struct sl_event)PARK(1), begins);
	play_close(&p);
	leaves(&p, (struct sl_event)SWAP(80));
	(void)at(&p, 2010, (struct sl_event)SWAPPER(3, 1));
	(void)at(&p, 2010, (struct sl_event)ASK(3, 1, 0, 30));
	(void)at(&p, 2010,
		(struct sl_event)COMMIT(3, p.last[SL_ACTION_GRANT].grant.epoch, 30));
	says(&p, "and no more", 2020, (struct sl_event)PARK(1),
		"REFUSE 1 PARK_NO_POOL g0 30 20");
	play_close(&p);
}

/* Neither could leave, and one is told to again before the other: that one has all the space that
 * it needs. */
static void test_warm_while_it_leaves(void **state)
{
	struct play p;

	leaves(&p, (struct sl_event)SWAP(60));
	(void)at(&p, 2010, (struct sl_event)REFUSED(1, evicted_as(&p) - 1, CAPTURE));
	(void)at(&p, 2100, (struct sl_event)REFUSED(2, evicted_as(&p), CAPTURE));
	says(&p, "the first", 2110, (struct sl_event)TIME, "EVICT 1 g0 30 EVICTED_IDLE");
	play_close(&p);
}

/* With a bound of the workload in the pool, copies of one of its processes make room for what
 * leaves of the other, though the pool has room for both. Copies of other workloads are not asked
 * for. */
static void test_copies_count_for_its_bound(void **state)
{
	struct play p;

	begin(&p, (struct sl_event)SWAP(1000, .pool_member_bytes = 60));
	(void)at(&p, 0, (struct sl_event)WORKLOAD(2, ANY));
	(void)at(&p, 0, (struct sl_event)SWAPPER(3, 2));
	has(&p, 3, 10);
	(void)at(&p, 0, (struct sl_event)STORE(3, 60));
	(void)at(&p, 0, (struct sl_event)STORE(1, 50));
	says(&p, "the first", 10, (struct sl_event)PARK(1),
		"SET 1 r0 l100 p0 over0; NOTE PARK_BEGINS g0 1/0 60; EVICT 1 g0 30 "
		"PARK_BEGINS; TRIM 1 20");
	(void)at(&p, 20, (struct sl_event)DONE(1, evicted_as(&p), 30));
	says(&p, "the second", 30, (struct sl_event)STORE(1, 30),
		"EVICT 2 g0 30 PARK_BEGINS");
	play_close(&p);
}

/* --- obstacles to parking --------------------------------------------------------------------- */

static void is_parking_as(struct play *p, const char *row, enum sl_reason reason,
	uint64_t bytes, sl_ns span)
{
	struct sl_node_because rows[2] = {0};

	sl_node_why(p->node, 1, count_why, rows);
	assert_row_u64(row, rows[1].bytes, 1);
	assert_row_text(row, sl_reason_name(rows[0].reason), sl_reason_name(reason));
	assert_row_u64(row, rows[0].bytes, bytes);
	assert_row_u64(row, rows[0].span, span);
	assert_row_u64(row, sl_node_workload(p->node, 1).residency, SL_RESIDENCY_PARKING);
}

/* One process with 30, which is asked again and again until it goes. */
static void test_not_parked_yet(void **state)
{
	struct sl_node_because rows[2] = {0};
	struct play p;

	begin(&p, (struct sl_event)SWAP(1000));
	(void)at(&p, 0, (struct sl_event)EXIT(2));
	(void)at(&p, 0, (struct sl_event)RELEASED(2, 0, 0));
	(void)at(&p, 10, (struct sl_event)PARK(1));
	is_parking_as(&p, "on its way", SL_REASON_PARKING, 30, 0);
	(void)at(&p, 510, (struct sl_event)REFUSED(1, evicted_as(&p), BUSY));
	is_parking_as(&p, "busy", SL_REASON_PARKING_BUSY, 30, 500 * SL_MS);
	(void)at(&p, 610, (struct sl_event)TIME);
	is_parking_as(&p, "still", SL_REASON_PARKING_BUSY, 30, 600 * SL_MS);
	(void)at(&p, 710, (struct sl_event)REFUSED(1, evicted_as(&p), CAPTURE));
	is_parking_as(&p, "a graph", SL_REASON_PARKING_CAPTURE, 30, 700 * SL_MS);
	(void)at(&p, 910, (struct sl_event)TIME);
	(void)at(&p, 920, (struct sl_event)REFUSED(1, evicted_as(&p), NO_HOST));
	is_parking_as(&p, "the host", SL_REASON_PARKING_NO_HOST, 30, 910 * SL_MS);
	(void)at(&p, 1320, (struct sl_event)TIME);
	(void)at(&p, 1330, (struct sl_event)REFUSED(1, evicted_as(&p), DRIVER));
	is_parking_as(&p, "the driver", SL_REASON_PARKING_FAILED, 30, 1320 * SL_MS);
	(void)at(&p, 1400, (struct sl_event)CONDITION(1, STOPPED));
	(void)at(&p, 1500, (struct sl_event)TIME);
	is_parking_as(&p, "stopped", SL_REASON_PARKING_STOPPED, 30, 100 * SL_MS);
	(void)at(&p, 2200, (struct sl_event)CONDITION(1, RUNNING));
	(void)at(&p, 2210, (struct sl_event)DONE(1, evicted_as(&p), 30));
	assert_row_u64(
		"gone", sl_node_workload(p.node, 1).residency, SL_RESIDENCY_PARKED);
	sl_node_why(p.node, 1, count_why, rows);
	assert_row_u64("nothing is in its way", rows[1].bytes, 0);
	play_close(&p);
}

/* The pool shrank after the park was accepted. */
static void test_no_room_any_more(void **state)
{
	struct play p;

	begin(&p, (struct sl_event)SWAP(1000));
	(void)at(&p, 0, (struct sl_event)EXIT(2));
	(void)at(&p, 0, (struct sl_event)RELEASED(2, 0, 0));
	(void)at(&p, 10, (struct sl_event)PARK(1));
	(void)at(&p, 20, (struct sl_event)EVENT(POOL_SIZE, pool_size, {20}));
	(void)at(&p, 20, (struct sl_event)REFUSED(1, evicted_as(&p), LOST));
	is_parking_as(&p, "less than it has", SL_REASON_PARKING_NO_HOST, 30, 10 * SL_MS);
	play_close(&p);
}

/* --- obstacles to going warm ------------------------------------------------------------------ */

/* Workload 1 has 30 and is idle for long enough at 2 s. */
static const char *idles(struct play *p, struct sl_event settings)
{
	begin(p, settings);
	(void)at(p, 0, (struct sl_event)EXIT(2));
	(void)at(p, 0, (struct sl_event)RELEASED(2, 0, 0));
	(void)at(p, 0,
		(struct sl_event)EVENT(WORKLOAD_SET, workload_set,
			{.workload = 1, .which = SL_SET_WARM, .warm_after = SL_S}));
	(void)at(p, 1500, (struct sl_event)EVENT(PULSE, pulse, {1, 500 * SL_MS, 0, 1}));
	return at(p, 2000, (struct sl_event)TIME);
}

static uint64_t said_why(const struct play *p, enum sl_reason reason, uint64_t available)
{
	struct sl_node_because rows[2] = {0};

	sl_node_why(p->node, 1, count_why, rows);
	return rows[1].bytes == 1 && rows[0].reason == reason && rows[0].bytes == 30 &&
	       rows[0].available_bytes == available;
}

/* Said once, however often it is tried; and again when there was room meanwhile. */
static void test_not_warm_for_the_pool(void **state)
{
	struct play p;
	const char *said = idles(&p, (struct sl_event)SWAP(20));

	assert_row_text("told", said, "NOTE WARM_POOL_FULL g0 1/0 30");
	says(&p, "tried again", 7000, (struct sl_event)TIME, "");
	assert_row_u64("why", said_why(&p, SL_REASON_WARM_POOL_FULL, 20), 1);
	says(&p, "room", 8000, (struct sl_event)EVENT(POOL_SIZE, pool_size, {100}),
		"EVICT 1 g0 30 EVICTED_IDLE");
	assert_row_u64("nothing", said_why(&p, SL_REASON_WARM_POOL_FULL, 20), 0);
	(void)at(&p, 8010, (struct sl_event)REFUSED(1, evicted_as(&p), BUSY));
	says(&p, "none again", 9000, (struct sl_event)EVENT(POOL_SIZE, pool_size, {20}),
		"NOTE WARM_POOL_FULL g0 1/0 30");
	/* It works, so nothing is said of it. */
	(void)at(&p, 10000, (struct sl_event)EVENT(PULSE, pulse, {1, 0, 0, 0}));
	assert_row_u64("works", said_why(&p, SL_REASON_WARM_POOL_FULL, 20), 0);
	play_close(&p);
}

static void test_not_warm_for_its_bound(void **state)
{
	struct play p;
	const char *said =
		idles(&p, (struct sl_event)SWAP(1000, .pool_member_bytes = 25));

	assert_row_text("told", said, "NOTE WARM_POOL_BOUND g0 1/0 30");
	assert_row_u64("why", said_why(&p, SL_REASON_WARM_POOL_BOUND, 25), 1);
	play_close(&p);
}

static void count_no_host(void *context, const struct sl_node_because *because)
{
	struct sl_node_because *row = context;

	if (because->reason == SL_REASON_NO_HOST_WAITS)
		*row = *because;
}

static bool has_bound(const struct play *p, uint64_t workload)
{
	return sl_node_workload(p->node, workload).longest_wait != SL_NS_NEVER;
}

/* Fewer than four refusals in a row do not end a wait. Returns when the wait is over. */
static uint64_t refuse_often(struct play *p)
{
	for (uint64_t ms = 5030; ms < 6000; ms += 10) {
		(void)at(p, ms, (struct sl_event)TIME);
		for (uint64_t client = 1; client <= 2; client++) {
			uint64_t order = sl_node_client(p->node, client).order;

			if (order)
				(void)at(p, ms,
					(struct sl_event)REFUSED(client, order, NO_HOST));
		}
	}
	return 6000;
}

/* A waiting client is told that the host has no room for those that would leave for it, until one
 * of them has found room. Meanwhile the client has no longest wait. */
static void test_waits_for_the_host(void **state)
{
	struct sl_node_because row = {0};
	struct play p;

	begin(&p, (struct sl_event)SWAP(1000));
	(void)at(&p, 0,
		(struct sl_event)EVENT(
			WORKLOAD_ADD, workload_add, {2, BYTES(60), ANY, 1, 1, 0}));
	(void)at(&p, 0, (struct sl_event)SWAPPER(3, 2));
	(void)at(&p, 5000, (struct sl_event)ASK(3, 1, 0, 60));
	sl_node_why(p.node, 2, count_no_host, &row);
	assert_row_u64("nothing is known of the host", row.reason, 0);
	assert_true(has_bound(&p, 2));
	says(&p, "the one", 5010, (struct sl_event)REFUSED(2, evicted_as(&p), NO_HOST),
		"NOTE EVICT_NO_HOST g0 1/2 20; EVICT 1 g0 20 EVICTED_FOR");
	(void)at(&p, 5020, (struct sl_event)REFUSED(1, evicted_as(&p), NO_HOST));
	sl_node_why(p.node, 2, count_no_host, &row);
	assert_row_u64("who waits", row.workload, 2);
	assert_row_u64("for whom", row.other, 1);
	assert_row_u64("with what", row.other_bytes, 60);
	(void)refuse_often(&p);
	assert_false(has_bound(&p, 2));
	assert_row_u64("because", sl_node_workload(p.node, 2).endless, SL_ENDLESS_HOST);
	assert_true(has_bound(&p, 1));
	assert_row_u64("because", sl_node_workload(p.node, 1).endless, SL_ENDLESS_NOT);
	row = (struct sl_node_because){0};
	(void)at(&p, 9000, (struct sl_event)TIME);
	(void)at(&p, 9010,
		(struct sl_event)DONE(
			p.last[SL_ACTION_EVICT].evict.client, evicted_as(&p), 20));
	sl_node_why(p.node, 2, count_no_host, &row);
	assert_row_u64("it had room", row.reason, 0);
	assert_true(has_bound(&p, 2));
	play_close(&p);
}

/* While a client that found no host memory is told to leave once more, it may find some. The wait
 * is then not endless because of this client. Through all retries, either the host is named as the
 * reason or the wait has a bound. */
static void test_endless_says_why(void **state)
{
	struct play p;
	uint32_t endless = 0, bound = 0;

	(void)state;
	begin(&p, (struct sl_event)SWAP(1000));
	(void)at(&p, 0,
		(struct sl_event)EVENT(
			WORKLOAD_ADD, workload_add, {2, BYTES(90), ANY, 1, 1, 0}));
	(void)at(&p, 0, (struct sl_event)SWAPPER(3, 2));
	(void)at(&p, 5000, (struct sl_event)ASK(3, 1, 0, 90));
	(void)at(&p, 5010, (struct sl_event)REFUSED(2, evicted_as(&p), NO_HOST));
	(void)at(&p, 5020, (struct sl_event)REFUSED(1, evicted_as(&p), NO_HOST));
	for (uint64_t ms = refuse_often(&p) + 30; ms < 12000; ms += 50) {
		struct sl_node_because row = {0};

		(void)at(&p, ms, (struct sl_event)TIME);
		sl_node_why(p.node, 2, count_no_host, &row);
		/* It is named from the first refusal on. */
		assert_true(row.other || has_bound(&p, 2));
		endless += !has_bound(&p, 2);
		bound += has_bound(&p, 2);
	}
	assert_true(endless && bound);
	play_close(&p);
}

static bool asks(struct play *p, uint64_t at_ms, struct sl_event event)
{
	return strstr(at(p, at_ms, event), "TRIM 1 30");
}

/* C, client 3, is told to leave, without copies being asked for, and the host has no space
 * for it. */
static void tried(struct play *p, uint64_t at_ms)
{
	const char *said = at(p, at_ms, (struct sl_event)TIME);

	assert_non_null(strstr(said, "EVICT 3 g0 30 PARK_BEGINS"));
	assert_null(strstr(said, "TRIM"));
	(void)at(p, at_ms, (struct sl_event)REFUSED(3, evicted_as(p), NO_HOST));
}

/* Client 1 has 30 on the host, in a file that takes all of the pool. C, with 30, is to be parked:
 * client 1 is asked for copies in vain. C tries to leave all the same, for the last time at 1400
 * ms; its next try comes 400 ms later. */
static void asks_in_vain(struct play *p)
{
	begin(p, (struct sl_event)SWAP(60, .slack_bytes = 0));
	(void)at(p, 0, (struct sl_event)WORKLOAD(2, ANY));
	(void)at(p, 0, (struct sl_event)SWAPPER(3, 2));
	has(p, 3, 30);
	(void)at(p, 10, (struct sl_event)PARK(1));
	(void)at(p, 20, (struct sl_event)STORE(1, 60));
	(void)at(p, 20, (struct sl_event)DONE(1, evicted_as(p), 30));
	(void)at(p, 20, (struct sl_event)DONE(2, evicted_as(p), 0));
	(void)at(p, 20, (struct sl_event)EVENT(CLIENT_EXIT, client_exit, {2}));
	assert_true(asks(p, 100, (struct sl_event)PARK(2)));
	tried(p, 1100);
	tried(p, 1200);
	tried(p, 1400);
}

/* It cannot give its file while it needs some of it, and does not say when that ends. */
static void test_copies_asked_again(void **state)
{
	struct play p;

	asks_in_vain(&p);
	(void)at(&p, 1500, (struct sl_event)EVENT(FREED, freed, {1, 0, 10, 1}));
	assert_true(asks(&p, 1800, (struct sl_event)TIME));
	play_close(&p);

	asks_in_vain(&p);
	(void)at(&p, 1500, (struct sl_event)EVENT(WORKLOAD_RESUME, workload_resume, {1}));
	(void)at(&p, 1510, (struct sl_event)DONE(1, p.last[SL_ACTION_RESTORE].id, 0));
	assert_true(asks(&p, 1800, (struct sl_event)TIME));
	play_close(&p);
}

/* Nor does it then say anything: it is asked again all the same, less and less often. */
static void test_copies_asked_less_often(void **state)
{
	struct play p;

	asks_in_vain(&p);
	tried(&p, 1800);
	tried(&p, 2600);
	assert_true(asks(&p, 4200, (struct sl_event)TIME));
	tried(&p, 5200);
	tried(&p, 8400);
	assert_true(asks(&p, 13400, (struct sl_event)TIME));
	play_close(&p);
}

/* V has 60, and W, with 60 on the host, waits for its turn. If the pool has no room for copies
 * beside them, V leaves only after these were waited for: a second for each move. */
static void test_copies_lengthen_waits(void **state)
{
	enum { V = 1, W };
	static const struct sl_event before[] = {SWAP(200), GPU(0, 100), WORKLOAD(V, ANY),
		WORKLOAD(W, ANY), SWAPPER(V, V),
		EVENT(CLIENT_JOIN, client_join, {W, W, 1, 1}), REPORT(W, 0, 60),
		EVENT(CLIENT_EVICTED, client_evicted, {W, 0, 60}),
		EVENT(CLIENT_REPORTED, client_reported, {W}), STORE(W, 60)};
	struct play p;
	sl_ns wait;

	(void)state;
	play_open(&p);
	for (size_t i = 0; i < SL_ARRAY_LEN(before); i++)
		(void)at(&p, 0, before[i]);
	has(&p, V, 60);
	(void)at(&p, 1, (struct sl_event)EVENT(WANT, want, {W, 1}));
	wait = sl_node_workload(p.node, W).longest_wait;
	assert_true(wait && wait != SL_NS_NEVER);
	(void)at(&p, 1, (struct sl_event)STORE(V, 80));
	(void)at(&p, 2, (struct sl_event)TIME);
	assert_row_u64("they fit", sl_node_workload(p.node, W).longest_wait, wait);
	(void)at(&p, 2, (struct sl_event)STORE(V, 90));
	(void)at(&p, 3, (struct sl_event)TIME);
	wait += 2 * SL_S;
	assert_row_u64("they do not", sl_node_workload(p.node, W).longest_wait, wait);
	play_close(&p);
}

/* A part of V leaves GPU 0 for W. Meanwhile X, on GPU 1, has been idle for long enough: it leaves
 * once W has its memory. */
static void test_warm_after_demands(void **state)
{
	enum { V = 1, W, X };
	static const struct sl_event before[] = {SWAP(1000), GPU(0, 100), GPU(1, 100),
		EVENT(WORKLOAD_ADD, workload_add, {V, ANY, ANY, 1, 1, 0}),
		EVENT(WORKLOAD_ADD, workload_add, {W, ANY, ANY, 1, 1, 5}),
		EVENT(WORKLOAD_ADD, workload_add,
			{.workload = X,
				.request = ANY,
				.limit = ANY,
				.gpu_count = 1,
				.gpu_mask = 2,
				.warm_after = SL_S}),
		SWAPPER(V, V), SWAPPER(W, W), SWAPPER(X, X)};
	struct play p;

	(void)state;
	play_open(&p);
	for (size_t i = 0; i < SL_ARRAY_LEN(before); i++)
		(void)at(&p, 0, before[i]);
	has(&p, V, 60);
	(void)at(&p, 0, (struct sl_event)ASK(X, 1, 1, 30));
	(void)at(&p, 0, (struct sl_event)COMMIT(X, 2, 30));
	(void)at(&p, 5000, (struct sl_event)EVENT(PULSE, pulse, {X, 500 * SL_MS, 0, 1}));
	assert_non_null(strstr(at(&p, 5000, (struct sl_event)ASK(W, 1, 0, 60)),
		"EVICT 1 g0 20 EVICTED_FOR"));
	says(&p, "idle for long", 5500, (struct sl_event)TIME, "");
	assert_non_null(strstr(at(&p, 5600, (struct sl_event)DONE(V, evicted_as(&p), 20)),
		"GRANT 2/1 g0 60; EVICT 3 g1 30 EVICTED_IDLE"));
	play_close(&p);
}

/* Two processes use V's memory, and one works in held memory: nothing of V is warm. */
static void test_not_warm_while_one_works(void **state)
{
	enum { V = 1, HOLDER };
	static const struct sl_event before[] = {SWAP(1000), GPU(0, 100),
		EVENT(WORKLOAD_ADD, workload_add,
			{.workload = V,
				.request = ANY,
				.limit = ANY,
				.gpu_count = 1,
				.gpu_mask = 1,
				.warm_after = SL_S}),
		SWAPPER(V, V), SWAPPER(HOLDER, V)};
	struct play p;

	(void)state;
	play_open(&p);
	for (size_t i = 0; i < SL_ARRAY_LEN(before); i++)
		(void)at(&p, 0, before[i]);
	has(&p, V, 30);
	has(&p, HOLDER, 5);
	(void)at(&p, 10, (struct sl_event)EVENT(HELD, held, {HOLDER, 0, 5}));
	(void)at(&p, 4900, (struct sl_event)EVENT(WORK, work, {HOLDER}));
	(void)at(&p, 5000, (struct sl_event)EVENT(PULSE, pulse, {HOLDER, 0, SL_MS, 0}));
	assert_null(strstr(
		at(&p, 5000, (struct sl_event)EVENT(PULSE, pulse, {V, 2 * SL_S, 0, 1})),
		"EVICT"));
	assert_non_null(strstr(
		at(&p, 7000,
			(struct sl_event)EVENT(PULSE, pulse, {HOLDER, 2 * SL_S, 0, 1})),
		"EVICT 1 g0 30 EVICTED_IDLE"));
	play_close(&p);
}

/* V has borrowed all that W requested on GPU 1, and is told to give back 30 of it. Only 10 are lent
 * there then, and the host's 60 suffice for the 20 that D borrows on GPU 0, although V has not left
 * yet. */
static void test_leaving_is_lent_no_more(void **state)
{
	enum { V = 1, W, R, D };
	static const struct sl_event before[] = {
		SETTINGS(.pool_bytes = 60, .chain = SL_CHAIN(SL_RESOLVER_SWAP, 0, 0)),
		GPU(0, 100), GPU(1, 100),
		EVENT(WORKLOAD_ADD, workload_add, {V, ANY, ANY, 1, 2, 0}),
		EVENT(WORKLOAD_ADD, workload_add, {W, BYTES(40), ANY, 1, 2, 0}),
		EVENT(WORKLOAD_ADD, workload_add, {R, BYTES(85), ANY, 1, 1, 0}),
		EVENT(WORKLOAD_ADD, workload_add, {D, ANY, ANY, 1, 1, 0}), SWAPPER(V, V),
		SWAPPER(W, W), SWAPPER(D, D), ASK(V, 1, 1, 100), COMMIT(V, 1, 100)};
	struct play p;

	(void)state;
	play_open(&p);
	for (size_t i = 0; i < SL_ARRAY_LEN(before); i++)
		(void)at(&p, 0, before[i]);
	assert_non_null(strstr(at(&p, 5000, (struct sl_event)ASK(W, 1, 1, 30)),
		"EVICT 1 g1 30 EVICTED_FOR"));
	assert_non_null(strstr(
		at(&p, 5001, (struct sl_event)ASK(D, 1, 0, 35)), "GRANT 4/1 g0 35"));
	play_close(&p);
}

/* On GPU 1 the burst B stands on 70 of others' requests. A goes warm: its memory leaves within its
 * request, and what it leaves is lent on. So the host has no space for P, which is to be parked. */
static void test_parked_beside_what_is_lent(void **state)
{
	enum { U = 1, A, B, P };
	static const struct sl_event before[] = {SWAP(100), GPU(0, 100), GPU(1, 100),
		EVENT(WORKLOAD_ADD, workload_add, {U, BYTES(40), ANY, 1, 2, 0}),
		EVENT(WORKLOAD_ADD, workload_add,
			{A, BYTES(60), ANY, 1, 2, 0, .warm_after = SL_S}),
		EVENT(WORKLOAD_ADD, workload_add, {B, ANY, ANY, 1, 2, 0}),
		EVENT(WORKLOAD_ADD, workload_add, {P, ANY, ANY, 1, 1, 0}), SWAPPER(A, A),
		SWAPPER(B, B), SWAPPER(P, P), ASK(A, 1, 1, 30), COMMIT(A, 1, 30),
		ASK(B, 1, 1, 70), COMMIT(B, 2, 70), ASK(P, 1, 0, 30), COMMIT(P, 3, 30)};
	struct play p;

	(void)state;
	play_open(&p);
	for (size_t i = 0; i < SL_ARRAY_LEN(before); i++)
		(void)at(&p, 0, before[i]);
	(void)at(&p, 1500, (struct sl_event)EVENT(PULSE, pulse, {A, 500 * SL_MS, 0, 1}));
	assert_non_null(strstr(at(&p, 2000, (struct sl_event)TIME), "EVICT 2 g1 30"));
	says(&p, "all of it is lent", 2000, (struct sl_event)PARK(P),
		"REFUSE 4 PARK_NO_POOL g0 30 0");
	(void)at(&p, 2000, (struct sl_event)EXIT(B));
	(void)at(&p, 2000, (struct sl_event)RELEASED(B, 1, 0));
	assert_non_null(strstr(at(&p, 2000, (struct sl_event)PARK(P)), "EVICT 4 g0 30"));
	play_close(&p);
}

/* On GPU 0 B stands on 60 of what U requested, so the pool lends D no more than 40 on GPU 1. When U
 * is parked it gives its request up, and D gets its memory. */
static void test_parked_lends_no_more(void **state)
{
	enum { U = 1, X, B, D };
	static const struct sl_event before[] = {SWAP(100), GPU(0, 100), GPU(1, 100),
		EVENT(WORKLOAD_ADD, workload_add, {U, BYTES(100), ANY, 1, 1, 0}),
		EVENT(WORKLOAD_ADD, workload_add, {X, BYTES(60), ANY, 1, 2, 0}),
		EVENT(WORKLOAD_ADD, workload_add, {B, ANY, ANY, 1, 1, 0}),
		EVENT(WORKLOAD_ADD, workload_add, {D, ANY, ANY, 1, 2, 0}), SWAPPER(B, B),
		SWAPPER(D, D), ASK(B, 1, 0, 60), COMMIT(B, 1, 60)};
	struct play p;

	(void)state;
	play_open(&p);
	for (size_t i = 0; i < SL_ARRAY_LEN(before); i++)
		(void)at(&p, 0, before[i]);
	assert_null(strstr(at(&p, 0, (struct sl_event)ASK(D, 1, 1, 90)), "GRANT"));
	assert_non_null(strstr(at(&p, 0, (struct sl_event)PARK(U)), "GRANT 4/1 g1 90"));
	play_close(&p);
}

/* Workload 2 asks for 70, of which 30 are free. The pool has no room for 40 and their way back. So
 * a process of workload 1, of a lower priority, is told to end. Its memory counts as gone, and is
 * not sent to the host when 1 is parked. */
static void test_what_ends_is_not_parked(void **state)
{
	const struct sl_event events[] = {
		SETTINGS(.pool_bytes = 75,
			.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_PRIORITY,
				SL_RESOLVER_WAIT)),
		GPU(0, 100), WORKLOAD(1, ANY),
		EVENT(WORKLOAD_ADD, workload_add, {2, BYTES(0), BYTES(100), 1, 1, 1}),
		SWAPPER(1, 1), SWAPPER(2, 1), SWAPPER(3, 2)};
	struct play p;

	(void)state;
	play_open(&p);
	for (size_t i = 0; i < SL_ARRAY_LEN(events); i++)
		(void)at(&p, 0, events[i]);
	has(&p, 1, 10);
	has(&p, 2, 60);
	says(&p, "a process is stopped", 10, (struct sl_event)ASK(3, 1, 0, 70),
		"NOTE POOL_FULL g0 2/0 70; STOP 2 1 TERM STOP_PRIORITY");
	says(&p, "the other leaves", 20, (struct sl_event)PARK(1),
		"SET 1 r0 l100 p0 over0; NOTE PARK_BEGINS g0 1/0 70; "
		"EVICT 1 g0 10 PARK_BEGINS");
	play_close(&p);
}

/* 1 has 60 GiB on the host, and 50 are free for it. For the rest, 10 of 2 are to leave, and find no
 * host memory. The part of 1 that comes back makes room for them. */
static void test_comes_in_part_where_the_host_is_full(void **state)
{
	const uint64_t gib = 1024 * SL_MIB;
	const struct sl_event events[] = {SWAP(1000 * gib), GPU(0, 100 * gib),
		WORKLOAD(1, ANY), WORKLOAD(2, ANY),
		EVENT(CLIENT_JOIN, client_join, {1, 1, 1, 1}), REPORT(1, 0, 60 * gib),
		EVENT(CLIENT_EVICTED, client_evicted, {1, 0, 60 * gib}),
		EVENT(CLIENT_REPORTED, client_reported, {1}), SWAPPER(2, 2)};
	struct play p;

	(void)state;
	play_open(&p);
	for (size_t i = 0; i < SL_ARRAY_LEN(events); i++)
		(void)at(&p, 0, events[i]);
	has(&p, 2, 50 * gib);
	(void)at(&p, 20000, (struct sl_event)EVENT(PULSE, pulse, {2, 20 * SL_S, 0, 1}));
	says(&p, "1 wants", 20010, (struct sl_event)EVENT(WANT, want, {1, 1}),
		"EVICT 2 g0 10737418240 EVICTED_FOR; PROBE 2 1; PROBE 1 1");
	(void)at(&p, 20020, (struct sl_event)REFUSED(2, evicted_as(&p), NO_HOST));
	says(&p, "once more", 26000, (struct sl_event)TIME,
		"RESTORE 1 g0 53687091200; EVICT 2 g0 10737418240 EVICTED_FOR");
	play_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused_by_its_bound),
		cmocka_unit_test(test_parked_while_it_leaves),
		cmocka_unit_test(test_warm_while_it_leaves),
		cmocka_unit_test(test_copies_count_for_its_bound),
		cmocka_unit_test(test_not_parked_yet),
		cmocka_unit_test(test_no_room_any_more),
		cmocka_unit_test(test_not_warm_for_the_pool),
		cmocka_unit_test(test_not_warm_for_its_bound),
		cmocka_unit_test(test_waits_for_the_host),
		cmocka_unit_test(test_endless_says_why),
		cmocka_unit_test(test_copies_asked_again),
		cmocka_unit_test(test_what_ends_is_not_parked),
		cmocka_unit_test(test_comes_in_part_where_the_host_is_full),
		cmocka_unit_test(test_copies_asked_less_often),
		cmocka_unit_test(test_copies_lengthen_waits),
		cmocka_unit_test(test_warm_after_demands),
		cmocka_unit_test(test_not_warm_while_one_works),
		cmocka_unit_test(test_leaving_is_lent_no_more),
		cmocka_unit_test(test_parked_beside_what_is_lent),
		cmocka_unit_test(test_parked_lends_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
