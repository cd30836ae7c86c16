/*
 * owed - the resolver `priority` beside `swap`, played by hand: clients that want their request
 * back, and bursts that would be stopped for what they take
 *
 * A GPU of 100. W has 60 on the host, which is all of its request. L borrows what it leaves there.
 */
#include "play.h"

#define CHAIN(pool, ...) SETTINGS(.pool_bytes = (pool), .chain = SL_CHAIN(__VA_ARGS__))
#define SWAP             SL_RESOLVER_SWAP
#define PRIORITY         SL_RESOLVER_PRIORITY
#define WAIT             SL_RESOLVER_WAIT
#define WORKLOAD(w, request, priority) \
	EVENT(WORKLOAD_ADD, workload_add, {w, BYTES(request), BYTES(100), 1, 1, priority})
#define MIB (1024 * 1024ull)
#define LARGE(w, request, priority)       \
	EVENT(WORKLOAD_ADD, workload_add, \
		{w, BYTES(request), BYTES(600 * MIB), 1, 1, priority})
#define BACK(c, w)        EVENT(CLIENT_JOIN, client_join, {c, w, 1, 1})
#define SWAPPER(c, w)     EVENT(CLIENT_JOIN, client_join, {c, w, 0, 1})
#define WANT(c, n)        EVENT(WANT, want, {c, n})
#define OUT(c, g, n)      EVENT(CLIENT_EVICTED, client_evicted, {c, g, n})
#define REPORTED(c)       EVENT(CLIENT_REPORTED, client_reported, {c})
#define DONE(c, o, g, n)  EVENT(DONE, done, {c, o, g, SL_SWAP_OK, 0, n})
#define MOVED(c, o, g, n) EVENT(MOVED, moved, {c, o, g, n})
#define REFUSED(c, o, g, n) \
	EVENT(DONE, done, {c, o, g, SL_SWAP_REFUSED, SL_SWAP_CAPTURE, n})

static void says(struct play *p, const char *row, uint64_t at_ms, struct sl_event event,
	const char *expected)
{
	const char *got = play(p, row, at_ms, event);

	assert_row_text(row, got, expected);
}

static void all(struct play *p, const struct sl_event *events, size_t count)
{
	for (size_t i = 0; i < count; i++)
		(void)play(p, "before", 0, events[i]);
}

/* The host has room for 10 more: not for the 50 that W lacks. */
static void lend(
	struct play *p, struct sl_event config, uint64_t request, int32_t priority)
{
	const struct sl_event events[] = {config, GPU(0, 100),
		WORKLOAD(1, request, priority), WORKLOAD(2, 0, 0), BACK(1, 1),
		REPORT(1, 0, 60), OUT(1, 0, 60), REPORTED(1), SWAPPER(2, 2),
		ASK(2, 1, 0, 90), COMMIT(2, 1, 90)};

	play_open(p);
	all(p, events, SL_ARRAY_LEN(events));
}

/* The GPU is gone, and with it W's memory there. No process is ended for that memory, and one that
 * was told to end is spared. */
static void test_lost(void **state)
{
	struct play p;

	(void)state;
	lend(&p, (struct sl_event)CHAIN(70, SWAP, PRIORITY, WAIT), 60, 5);
	(void)play(&p, "the GPU is lost", 5, (struct sl_event)LOST(0));
	assert_null(strstr(play(&p, "W wants", 10, (struct sl_event)WANT(1, 1)), "STOP"));
	play_close(&p);
	lend(&p, (struct sl_event)CHAIN(70, SWAP, PRIORITY, WAIT), 60, 5);
	assert_non_null(strstr(
		play(&p, "W wants", 10, (struct sl_event)WANT(1, 1)), "STOP 2 2 TERM"));
	(void)play(&p, "the GPU is lost", 20, (struct sl_event)LOST(0));
	says(&p, "after the grace", 10010, (struct sl_event)TIME,
		"NOTE STOP_REVOKED g0 2/1 60; PROBE 2 2");
	play_close(&p);
}

static void test_has_it_back(void **state)
{
	struct play p;

	(void)state;
	lend(&p, (struct sl_event)CHAIN(70, SWAP, PRIORITY, WAIT), 60, 5);
	assert_row_u64("lent", sl_node_use(p.node, 2, 0).backing_bytes, 90);
	assert_non_null(strstr(play(&p, "W wants", 10, (struct sl_event)WANT(1, 1)),
		"STOP 2 2 TERM STOP_PRIORITY"));
	assert_row_u64("for", p.last[SL_ACTION_STOP].stop.other, 1);
	assert_row_u64("bytes", p.last[SL_ACTION_STOP].stop.bytes, 60);
	assert_null(strstr(play(&p, "once", 20, (struct sl_event)TIME), "STOP"));
	assert_null(
		strstr(play(&p, "in its grace", 10009, (struct sl_event)TIME), "STOP"));
	says(&p, "after it", 10010, (struct sl_event)TIME, "STOP 2 2 KILL STOP_PRIORITY");
	(void)play(&p, "it dies", 10020, (struct sl_event)EXIT(2));
	says(&p, "it is gone", 10030, (struct sl_event)RELEASED(2, 0, 0),
		"RESTORE 1 g0 60");
	play_close(&p);
}

static void test_wants_no_more(void **state)
{
	struct play p;

	(void)state;
	lend(&p, (struct sl_event)CHAIN(70, SWAP, PRIORITY, WAIT), 60, 5);
	assert_non_null(strstr(
		play(&p, "W wants", 10, (struct sl_event)WANT(1, 1)), "STOP 2 2 TERM"));
	(void)play(&p, "no more", 20, (struct sl_event)WANT(1, 0));
	says(&p, "let off", 10010, (struct sl_event)TIME, "NOTE STOP_REVOKED g0 2/1 60");
	play_close(&p);
}

/* Above its request; with room on the host; without `priority`. */
static void test_nobody_is_stopped(void **state)
{
	struct play p;

	(void)state;
	lend(&p, (struct sl_event)CHAIN(70, SWAP, PRIORITY, WAIT), 50, 5);
	assert_null(strstr(play(&p, "burst", 10, (struct sl_event)WANT(1, 1)), "STOP"));
	play_close(&p);
	lend(&p, (struct sl_event)CHAIN(170, SWAP, PRIORITY, WAIT), 60, 5);
	assert_non_null(strstr(play(&p, "moved", 10, (struct sl_event)WANT(1, 1)),
		"EVICT 2 g0 50 EVICTED_FOR"));
	assert_row_u64("not stopped", sl_node_client(p.node, 2).stopping, 0);
	play_close(&p);
	lend(&p, (struct sl_event)CHAIN(70, SWAP, WAIT, 0), 60, 5);
	assert_null(
		strstr(play(&p, "no chance", 10, (struct sl_event)WANT(1, 1)), "STOP"));
	play_close(&p);
}

/* L leaves for W, and a part of W's memory is on its way back; then the host has no more space for
 * L. L is told to end for the rest, at once and only once: the part on its way back does not delay
 * that. */
static void test_part_decides_nothing(void **state)
{
	const struct sl_event events[] = {CHAIN(4096 * MIB, SWAP, PRIORITY, WAIT),
		GPU(0, 600 * MIB),
		EVENT(LINK_COST, link_cost, {0, 32000 * MIB, 32000 * MIB}),
		LARGE(1, 512 * MIB, 5), LARGE(2, 0, 0), BACK(1, 1),
		REPORT(1, 0, 512 * MIB), OUT(1, 0, 512 * MIB), REPORTED(1), SWAPPER(2, 2),
		ASK(2, 1, 0, 512 * MIB), COMMIT(2, 1, 512 * MIB)};
	struct play p;
	uint64_t leaving, coming;

	(void)state;
	play_open(&p);
	all(&p, events, SL_ARRAY_LEN(events));
	(void)play(&p, "W wants", 1010, (struct sl_event)WANT(1, 1));
	leaving = p.last[SL_ACTION_EVICT].id;
	says(&p, "a part of L has left", 1020,
		(struct sl_event)MOVED(2, leaving, 0, 64 * MIB),
		"RESTORE 1 g0 159383552");
	coming = p.last[SL_ACTION_RESTORE].id;
	(void)play(&p, "the host has no more room", 1030,
		(struct sl_event)CHAIN(64 * MIB, SWAP, PRIORITY, WAIT));
	assert_non_null(strstr(play(&p, "L stays", 1040,
				       (struct sl_event)REFUSED(2, leaving, 0, 64 * MIB)),
		"STOP 2 2 TERM STOP_PRIORITY"));
	assert_null(strstr(play(&p, "the part is there", 1050,
				   (struct sl_event)DONE(1, coming, 0, 384 * MIB)),
		"STOP"));
	play_close(&p);
}

/* Behind `wait` it has to wait first, as demands have. */
static void test_behind_wait(void **state)
{
	struct play p;

	(void)state;
	lend(&p, (struct sl_event)CHAIN(70, SWAP, WAIT, PRIORITY), 60, 5);
	assert_null(strstr(play(&p, "W wants", 10, (struct sl_event)WANT(1, 1)), "STOP"));
	assert_null(strstr(play(&p, "early", 60009, (struct sl_event)TIME), "STOP"));
	assert_non_null(strstr(play(&p, "for long enough", 60010, (struct sl_event)TIME),
		"STOP 2 2 TERM STOP_PRIORITY"));
	play_close(&p);
}

/* V has 50. E, more urgent, asks for 70 and lacks 20 that V is moving out; then L asks for 40 of
 * the 50 that are free. */
static void begin_passing(struct play *p, int32_t priority)
{
	const struct sl_event events[] = {CHAIN(1000, SWAP, PRIORITY, WAIT), GPU(0, 100),
		WORKLOAD(1, 0, 0), WORKLOAD(2, 0, 5), WORKLOAD(3, 0, priority),
		SWAPPER(1, 1), SWAPPER(2, 2), SWAPPER(3, 3), ASK(1, 1, 0, 50),
		COMMIT(1, 1, 50)};

	play_open(p);
	all(p, events, SL_ARRAY_LEN(events));
	assert_non_null(strstr(play(p, "E asks", 10, (struct sl_event)ASK(2, 1, 0, 70)),
		"EVICT 1 g0 20 EVICTED_FOR"));
}

static void test_does_not_pass(void **state)
{
	uint64_t order;
	struct play p;

	(void)state;
	begin_passing(&p, 0);
	order = p.last[SL_ACTION_EVICT].id;
	assert_null(strstr(
		play(&p, "L asks", 20, (struct sl_event)ASK(3, 1, 0, 40)), "GRANT"));
	assert_non_null(
		strstr(play(&p, "V has left", 30, (struct sl_event)DONE(1, order, 0, 20)),
			"GRANT 2/1 g0 70"));
	play_close(&p);
	/* V refuses, and nothing is on its way. */
	begin_passing(&p, 0);
	order = p.last[SL_ACTION_EVICT].id;
	(void)play(&p, "L asks", 20, (struct sl_event)ASK(3, 1, 0, 40));
	assert_non_null(strstr(
		play(&p, "V refuses", 30, (struct sl_event)REFUSED(1, order, 0, 0)),
		"GRANT 3/1 g0 40"));
	play_close(&p);
	/* Nor does an equally urgent demand: E's memory is on its way, and the rest set aside. */
	begin_passing(&p, 5);
	order = p.last[SL_ACTION_EVICT].id;
	assert_null(strstr(
		play(&p, "L asks", 20, (struct sl_event)ASK(3, 1, 0, 40)), "GRANT"));
	assert_non_null(
		strstr(play(&p, "V has left", 30, (struct sl_event)DONE(1, order, 0, 20)),
			"GRANT 2/1 g0 70"));
	play_close(&p);
}

/* V cannot be moved, and is told to end for E, more urgent, which asks for 90. R wants back 40 from
 * the host. Half of V's memory becomes free first: R would fit in it, but would be ended next. */
static void test_leaves_what_ends(void **state)
{
	static const struct sl_event events[] = {CHAIN(1000, SWAP, PRIORITY, WAIT),
		GPU(0, 100), WORKLOAD(1, 0, 5), WORKLOAD(2, 0, 0), WORKLOAD(3, 0, 0),
		BACK(3, 3), REPORT(3, 0, 40), OUT(3, 0, 40), REPORTED(3), JOIN(2, 2),
		ASK(2, 1, 0, 80), COMMIT(2, 1, 80), SWAPPER(1, 1)};
	struct play p;

	(void)state;
	play_open(&p);
	all(&p, events, SL_ARRAY_LEN(events));
	says(&p, "E asks", 10, (struct sl_event)ASK(1, 1, 0, 90),
		"STOP 2 2 TERM STOP_PRIORITY");
	(void)play(&p, "R wants", 20, (struct sl_event)WANT(3, 1));
	(void)play(&p, "V ends", 30, (struct sl_event)EXIT(2));
	assert_null(strstr(
		play(&p, "half", 40, (struct sl_event)RELEASED(2, 0, 40)), "RESTORE"));
	assert_non_null(strstr(play(&p, "all", 50, (struct sl_event)RELEASED(2, 0, 0)),
		"GRANT 1/1 g0 90"));
	(void)play(&p, "E has it", 60, (struct sl_event)COMMIT(1, 2, 90));
	assert_row_u64("R is let alone", sl_node_client(p.node, 3).stopping, 0);
	play_close(&p);
}

/* L is told to end for W at stop_ms, because the host has no space for L's memory. Then the host
 * gets space, and L's priority is no lower than W's. So L lives, and is moved. */
static void moved_after_all(const char *row, struct sl_event chain, uint64_t stop_ms,
	const struct sl_event *then)
{
	const struct sl_event before[] = {chain, GPU(0, 100), WORKLOAD(1, 0, 5),
		WORKLOAD(2, 0, 0), SWAPPER(1, 1), SWAPPER(2, 2), ASK(2, 1, 0, 90),
		COMMIT(2, 1, 90)};
	static const struct sl_event as_high =
		EVENT(WORKLOAD_SET, workload_set, {2, SL_SET_PRIORITY, .priority = 5});
	static const struct sl_event room = EVENT(POOL_SIZE, pool_size, {200});
	const char *told;
	struct play p;

	play_open(&p);
	all(&p, before, SL_ARRAY_LEN(before));
	told = play(&p, row, 5000, (struct sl_event)ASK(1, 1, 0, 60));
	if (stop_ms > 5000)
		told = play(&p, row, stop_ms, (struct sl_event)TIME);
	assert_non_null(strstr(told, "STOP 2 2 TERM STOP_PRIORITY"));
	(void)play(&p, row, stop_ms + 1000, as_high);
	(void)play(&p, row, stop_ms + 1000, room);
	if (then)
		(void)play(&p, row, stop_ms + 2000, *then);
	says(&p, row, stop_ms + 10000, (struct sl_event)TIME,
		"NOTE STOP_REVOKED g0 2/1 60");
	says(&p, row, stop_ms + 10000, (struct sl_event)TIME,
		"EVICT 2 g0 50 EVICTED_FOR");
	play_close(&p);
}

static void test_is_moved_after_all(void **state)
{
	static const struct sl_event stops_first = CHAIN(10, SWAP, PRIORITY, WAIT),
				     waits_first = CHAIN(10, SWAP, WAIT, PRIORITY),
				     only_stops = CHAIN(10, SWAP, PRIORITY, 0),
				     stops_no_more = CHAIN(200, SWAP, WAIT, 0);

	(void)state;
	moved_after_all("stops first", stops_first, 5000, NULL);
	moved_after_all("waits first", waits_first, 65000, NULL);
	moved_after_all("does not wait", only_stops, 5000, NULL);
	moved_after_all("stops no more", stops_first, 5000, &stops_no_more);
}

/* L borrows what W requested, and is told to end. Then the host has space, and the chain is
 * without `priority`. */
static void test_is_moved_for_a_request(void **state)
{
	static const struct sl_event before[] = {CHAIN(10, SWAP, PRIORITY, WAIT),
		GPU(0, 100), WORKLOAD(1, 60, 5), WORKLOAD(2, 0, 0), SWAPPER(1, 1),
		SWAPPER(2, 2), ASK(2, 1, 0, 90), COMMIT(2, 1, 90)};
	struct play p;

	(void)state;
	play_open(&p);
	all(&p, before, SL_ARRAY_LEN(before));
	says(&p, "W asks", 5000, (struct sl_event)ASK(1, 1, 0, 60),
		"NOTE POOL_FULL g0 1/0 60; STOP 2 2 TERM STOP_PRIORITY");
	(void)play(&p, "there is room", 7000, (struct sl_event)CHAIN(200, SWAP, WAIT, 0));
	says(&p, "the grace is over", 15000, (struct sl_event)TIME,
		"NOTE STOP_REVOKED g0 2/1 60");
	says(&p, "at once", 15000, (struct sl_event)TIME, "EVICT 2 g0 50 EVICTED_FOR");
	play_close(&p);
}

/* L is told to end while it has more than its request. Then its request is raised, so L is spared.
 * It is within its request from then on, and nothing of it is moved for a burst. */
static void test_is_spared_within_its_request(void **state)
{
	static const struct sl_event before[] = {CHAIN(10, SWAP, PRIORITY, WAIT),
		GPU(0, 100), WORKLOAD(1, 0, 5), WORKLOAD(2, 0, 0), SWAPPER(1, 1),
		SWAPPER(2, 2), ASK(2, 1, 0, 90), COMMIT(2, 1, 90)};
	struct play p;

	(void)state;
	play_open(&p);
	all(&p, before, SL_ARRAY_LEN(before));
	says(&p, "W asks", 5000, (struct sl_event)ASK(1, 1, 0, 60),
		"NOTE POOL_FULL g0 1/0 60; STOP 2 2 TERM STOP_PRIORITY");
	(void)play(&p, "there is room", 7000, (struct sl_event)CHAIN(200, SWAP, WAIT, 0));
	(void)play(&p, "L has a request", 7000,
		(struct sl_event)EVENT(WORKLOAD_SET, workload_set,
			{2, SL_SET_REQUEST, .request = {SL_AMOUNT_BYTES, 0, 95}}));
	(void)play(&p, "L works", 14900, (struct sl_event)EVENT(WORK, work, {2}));
	says(&p, "the grace is over", 15000, (struct sl_event)TIME,
		"NOTE STOP_REVOKED g0 2/1 60");
	says(&p, "at once", 15000, (struct sl_event)TIME, "PROBE 2 2");
	play_close(&p);
}

/* H has 40 of one GPU, beside 30 of S that cannot be moved. 30 of H's are to leave for W's request.
 * Meanwhile H asks for memory of another GPU, which it cannot use without its memory here. S is
 * told to end once some of H's memory is on the host, and not while all of it is resident. */
static void test_is_still_there(void **state)
{
	static const struct sl_event events[] = {CHAIN(1000, SWAP, PRIORITY, WAIT),
		GPU(0, 100), GPU(1, 100),
		EVENT(WORKLOAD_ADD, workload_add, {1, BYTES(0), BYTES(100), 2, 3, 5}),
		WORKLOAD(2, 60, 0), WORKLOAD(3, 0, 0), SWAPPER(1, 1), SWAPPER(2, 2),
		JOIN(3, 3), ASK(3, 1, 0, 30), COMMIT(3, 1, 30), ASK(1, 1, 0, 40),
		COMMIT(1, 2, 40), ASK(2, 1, 0, 30), COMMIT(2, 3, 30)};
	uint64_t order;
	struct play p;

	(void)state;
	play_open(&p);
	all(&p, events, SL_ARRAY_LEN(events));
	assert_non_null(strstr(play(&p, "W asks", 10, (struct sl_event)ASK(2, 2, 0, 30)),
		"EVICT 1 g0 30 EVICTED_FOR"));
	order = p.last[SL_ACTION_EVICT].id;
	assert_null(strstr(
		play(&p, "H asks", 20, (struct sl_event)ASK(1, 2, 1, 20)), "STOP"));
	assert_non_null(
		strstr(play(&p, "some left", 30, (struct sl_event)MOVED(1, order, 0, 10)),
			"STOP 3 3 TERM STOP_PRIORITY"));
	play_close(&p);
}

/* W wants 40 back on each of two GPUs, and these 80 fill the pool. What would have to leave a GPU
 * for W finds no room in the pool before W is back on both. So on each GPU a borrower is told to
 * end. */
static void test_on_two_gpus(void **state)
{
	const struct sl_event events[] = {CHAIN(80, SWAP, PRIORITY, WAIT), GPU(0, 100),
		GPU(1, 100),
		EVENT(WORKLOAD_ADD, workload_add, {1, BYTES(40), BYTES(100), 2, 3, 5}),
		EVENT(WORKLOAD_ADD, workload_add, {2, BYTES(0), BYTES(100), 1, 1, 0}),
		EVENT(WORKLOAD_ADD, workload_add, {3, BYTES(0), BYTES(100), 1, 2, 0}),
		BACK(1, 1), REPORT(1, 0, 40), OUT(1, 0, 40), REPORT(1, 1, 40),
		OUT(1, 1, 40), REPORTED(1), SWAPPER(2, 2), SWAPPER(3, 3),
		ASK(2, 1, 0, 90), COMMIT(2, 1, 90), ASK(3, 1, 1, 90), COMMIT(3, 2, 90)};
	struct play p;
	const char *got;

	(void)state;
	play_open(&p);
	all(&p, events, SL_ARRAY_LEN(events));
	got = play(&p, "W wants", 10, (struct sl_event)WANT(1, 1));
	assert_non_null(strstr(got, "STOP 2 2 TERM STOP_PRIORITY"));
	assert_non_null(strstr(got, "STOP 3 3 TERM STOP_PRIORITY"));
	play_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_has_it_back),
		cmocka_unit_test(test_is_still_there),
		cmocka_unit_test(test_on_two_gpus),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_wants_no_more),
		cmocka_unit_test(test_nobody_is_stopped),
		cmocka_unit_test(test_part_decides_nothing),
		cmocka_unit_test(test_behind_wait),
		cmocka_unit_test(test_does_not_pass),
		cmocka_unit_test(test_leaves_what_ends),
		cmocka_unit_test(test_is_moved_after_all),
		cmocka_unit_test(test_is_moved_for_a_request),
		cmocka_unit_test(test_is_spared_within_its_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
