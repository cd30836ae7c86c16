/*
 * back - the host memory that evicted clients need to come back, played by hand
 *
 * A GPU of 100, and workloads that have requested nothing.
 */
#include "play.h"

#define SWAP(pool, ...)                \
	SETTINGS(.pool_bytes = (pool), \
		.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0), __VA_ARGS__)
#define WORKLOAD(w, request) EVENT(WORKLOAD_ADD, workload_add, {w, request, ANY, 1, 1, 0})
#define SWAPPER(c, w)        EVENT(CLIENT_JOIN, client_join, {c, w, 0, 1})
#define DONE(c, o, n)        EVENT(DONE, done, {c, o, 0, SL_SWAP_OK, 0, n})
#define WANT(c)              EVENT(WANT, want, {c, 1})
#define CANCEL(c, a)         EVENT(CANCEL, cancel, {c, a})
#define CHUNK(c, n)          EVENT(CHUNK, chunk, {c, n})

static const char *at(struct play *p, uint64_t at_ms, struct sl_event event)
{
	return play(p, "story", at_ms, event);
}

struct whys {
	struct sl_node_because row[4];
	uint32_t count;
};

static void on_why(void *context, const struct sl_node_because *because)
{
	struct whys *whys = context;

	whys->row[whys->count++ % 4] = *because;
}

static bool said(const char *text, const char *what)
{
	return strstr(text, what) != NULL;
}

/* A workload of the client's number, which asks for so much and has it. */
static void enter(struct play *p, uint64_t client, uint64_t bytes)
{
	(void)at(p, 0, (struct sl_event)WORKLOAD(client, ANY));
	(void)at(p, 0, (struct sl_event)SWAPPER(client, client));
	(void)at(p, 0, (struct sl_event)ASK(client, 1, 0, bytes));
	(void)at(p, 0,
		(struct sl_event)COMMIT(
			client, p->last[SL_ACTION_GRANT].grant.epoch, bytes));
}

/* Client 1 has 60, client 2 comes for 80 after its turn. */
static const char *asks(struct play *p, uint64_t pool, uint64_t member)
{
	play_open(p);
	(void)at(p, 0, (struct sl_event)SWAP(pool, .pool_member_bytes = member));
	(void)at(p, 0, (struct sl_event)GPU(0, 100));
	enter(p, 1, 60);
	(void)at(p, 0, (struct sl_event)WORKLOAD(2, ANY));
	(void)at(p, 0, (struct sl_event)SWAPPER(2, 2));
	return at(p, 20000, (struct sl_event)ASK(2, 1, 0, 80));
}

/* 40 of the first would leave, and 40 of the second have to before they come back. */
static void test_leaves_room(void **state)
{
	const char *got;
	struct play p;

	(void)state;
	got = asks(&p, 79, 0);
	assert_true(said(got, "NOTE POOL_FULL g0 2/0 80"));
	assert_false(said(got, "EVICT"));
	assert_row_u64("room", p.last[SL_ACTION_NOTE].note.available_bytes, 39);
	play_close(&p);
	assert_true(said(asks(&p, 80, 0), "EVICT 1 g0 40 EVICTED_FOR"));
	play_close(&p);
}

/* Each wait is noted once, also of a client that only asks. */
static void test_told_again(void **state)
{
	struct play p;

	(void)state;
	assert_true(said(asks(&p, 79, 0), "NOTE POOL_FULL g0 2/0 80"));
	assert_false(said(at(&p, 50000, (struct sl_event)WORKLOAD(3, ANY)), "POOL_FULL"));
	assert_true(said(
		at(&p, 80000, (struct sl_event)TIME), "DENY 2/1 WAITED_TOO_LONG g0"));
	assert_true(said(at(&p, 90000, (struct sl_event)ASK(2, 2, 0, 85)),
		"NOTE POOL_FULL g0 2/0 85"));
	assert_false(said(at(&p, 90010, (struct sl_event)ASK(2, 3, 0, 90)), "POOL_FULL"));
	assert_true(said(at(&p, 90020, (struct sl_event)CANCEL(2, 2)), "DENY 2/2"));
	assert_false(said(at(&p, 90030, (struct sl_event)ASK(2, 4, 0, 90)), "POOL_FULL"));
	play_close(&p);
}

/* And then they do. */
static void test_comes_back(void **state)
{
	struct play p;

	(void)state;
	(void)asks(&p, 80, 0);
	assert_true(said(
		at(&p, 20010, (struct sl_event)DONE(1, p.last[SL_ACTION_EVICT].id, 40)),
		"GRANT 2/1 g0 80"));
	(void)at(&p, 20010,
		(struct sl_event)COMMIT(2, p.last[SL_ACTION_GRANT].grant.epoch, 80));
	(void)at(&p, 20020, (struct sl_event)WANT(1));
	assert_true(
		said(at(&p, 40000, (struct sl_event)TIME), "EVICT 2 g0 40 EVICTED_FOR"));
	assert_true(said(
		at(&p, 40010, (struct sl_event)DONE(2, p.last[SL_ACTION_EVICT].id, 40)),
		"RESTORE 1 g0 40"));
	play_close(&p);
}

/* Of many that are small only one at a time needs a way back: of 60, 20 are for that. */
static void test_largest(void **state)
{
	struct whys whys = {0};
	const char *got;
	struct play p;

	(void)state;
	play_open(&p);
	(void)at(&p, 0, (struct sl_event)SWAP(60));
	(void)at(&p, 0, (struct sl_event)GPU(0, 100));
	for (uint64_t client = 1; client <= 5; client++)
		enter(&p, client, 20);
	for (uint64_t client = 6; client <= 7; client++) {
		(void)at(&p, 0, (struct sl_event)WORKLOAD(client, ANY));
		(void)at(&p, 0, (struct sl_event)SWAPPER(client, client));
		assert_true(said(
			at(&p, 20000, (struct sl_event)ASK(client, 1, 0, 20)), "EVICT"));
	}
	(void)at(&p, 0, (struct sl_event)WORKLOAD(8, ANY));
	(void)at(&p, 0, (struct sl_event)SWAPPER(8, 8));
	got = at(&p, 20000, (struct sl_event)ASK(8, 1, 0, 20));
	/* It is noted once those that leave have left. */
	sl_node_why(p.node, 8, on_why, &whys);
	assert_row_u64("second", whys.row[1].reason, SL_REASON_POOL_WAITS);
	assert_false(said(got, "EVICT"));
	play_close(&p);
}

/* Client 1 has 60 in chunks of this size; client 2 asks for 80 after client 1's turn. 40 must
 * leave. With chunks of 10 that counts as up to 50, for which the pool just has room. */
static const char *asks_of_chunks(struct play *p, uint64_t chunk, bool entitled)
{
	play_open(p);
	(void)at(p, 0, (struct sl_event)SWAP(110));
	(void)at(p, 0, (struct sl_event)GPU(0, 100));
	enter(p, 1, 60);
	(void)at(p, 0, (struct sl_event)CHUNK(1, chunk));
	if (entitled)
		(void)at(p, 0, (struct sl_event)WORKLOAD(2, BYTES(80)));
	else
		(void)at(p, 0, (struct sl_event)WORKLOAD(2, ANY));
	(void)at(p, 0, (struct sl_event)SWAPPER(2, 2));
	return at(p, 20000, (struct sl_event)ASK(2, 1, 0, 80));
}

/* What leaves may be more than is lacking, by less than a chunk. */
static void test_whole_chunks(void **state)
{
	const char *got;
	struct play p;

	(void)state;
	assert_true(said(asks_of_chunks(&p, 10, false), "EVICT 1 g0 40 EVICTED_FOR"));
	play_close(&p);
	got = asks_of_chunks(&p, 11, false);
	assert_true(said(got, "NOTE POOL_FULL g0 2/0 80"));
	assert_false(said(got, "EVICT 1"));
	assert_row_u64("room", p.last[SL_ACTION_NOTE].note.available_bytes, 37);
	/* It waits for no turn, and is not kept waiting for ever. */
	assert_true(said(
		at(&p, 80000, (struct sl_event)TIME), "DENY 2/1 WAITED_TOO_LONG g0"));
	play_close(&p);
	/* Within a request it is kept from nothing. */
	assert_true(said(asks_of_chunks(&p, 60, true), "EVICT 1 g0 40 EVICTED_FOR"));
	play_close(&p);
}

/* Another burst does not count on what an order under way may move. */
static void test_chunks_under_way(void **state)
{
	struct play p;
	const char *got;

	(void)state;
	play_open(&p);
	(void)at(&p, 0, (struct sl_event)SWAP(66));
	(void)at(&p, 0, (struct sl_event)GPU(0, 100));
	enter(&p, 1, 50);
	enter(&p, 2, 50);
	for (uint64_t client = 1; client <= 2; client++)
		(void)at(&p, 0, (struct sl_event)CHUNK(client, 8));
	for (uint64_t client = 3; client <= 4; client++) {
		(void)at(&p, 0, (struct sl_event)WORKLOAD(client, ANY));
		(void)at(&p, 0, (struct sl_event)SWAPPER(client, client));
	}
	assert_true(said(at(&p, 20000, (struct sl_event)ASK(3, 1, 0, 10)), "EVICT"));
	got = at(&p, 20000, (struct sl_event)ASK(4, 1, 0, 10));
	assert_false(said(got, "EVICT"));
	play_close(&p);
}

/* The rule does not limit a demand within a request. */
static void test_not_for_requests(void **state)
{
	struct play p;

	(void)state;
	play_open(&p);
	(void)at(&p, 0, (struct sl_event)SWAP(60));
	(void)at(&p, 0, (struct sl_event)GPU(0, 100));
	enter(&p, 1, 60);
	(void)at(&p, 0, (struct sl_event)WORKLOAD(2, BYTES(80)));
	(void)at(&p, 0, (struct sl_event)SWAPPER(2, 2));
	assert_true(said(at(&p, 20000, (struct sl_event)ASK(2, 1, 0, 80)),
		"EVICT 1 g0 40 EVICTED_FOR"));
	play_close(&p);
}

/* A demand that waits for the pool is told so, in numbers, and whose bound it is. */
static void test_says_why_it_asks(void **state)
{
	struct whys whys = {0};
	struct play p;

	(void)state;
	(void)asks(&p, 70, 0);
	sl_node_why(p.node, 2, on_why, &whys);
	assert_row_u64("sentences", whys.count, 2);
	assert_row_u64("first", whys.row[0].reason, SL_REASON_BURST_WAITS);
	assert_row_u64("second", whys.row[1].reason, SL_REASON_POOL_WAITS);
	assert_row_u64("left", whys.row[1].available_bytes, 30);
	play_close(&p);
	whys.count = 0;
	(void)asks(&p, 1000, 30);
	sl_node_why(p.node, 2, on_why, &whys);
	assert_row_u64("bound", whys.row[1].reason, SL_REASON_POOL_BOUND_WAITS);
	assert_row_u64("whose", whys.row[1].other, 1);
	assert_row_u64("of how much", whys.row[1].available_bytes, 30);
	play_close(&p);
}

/* No client can be moved any more: nor could one with a larger pool. */
static void test_no_swap_any_more(void **state)
{
	struct whys whys = {0};
	struct play p;

	(void)state;
	(void)asks(&p, 70, 0);
	(void)at(&p, 20010, (struct sl_event)SETTINGS(.pool_bytes = 70));
	sl_node_why(p.node, 2, on_why, &whys);
	assert_row_u64("sentences", whys.count, 1);
	assert_row_u64("reason", whys.row[0].reason, SL_REASON_BURST_WAITS);
	(void)at(&p, 20020, (struct sl_event)SWAP(70));
	whys.count = 0;
	sl_node_why(p.node, 2, on_why, &whys);
	assert_row_u64("and again", whys.row[1].reason, SL_REASON_POOL_WAITS);
	play_close(&p);
}

/* The pool was made smaller: a resident client is told that, and not whose turn it is. */
static void test_says_why_it_is_away(void **state)
{
	struct whys whys = {0};
	struct play p;

	(void)state;
	(void)asks(&p, 80, 0);
	(void)at(&p, 20010, (struct sl_event)DONE(1, p.last[SL_ACTION_EVICT].id, 40));
	(void)at(&p, 20010,
		(struct sl_event)COMMIT(2, p.last[SL_ACTION_GRANT].grant.epoch, 80));
	(void)at(&p, 20020, (struct sl_event)EVENT(POOL_SIZE, pool_size, {50}));
	(void)at(&p, 20030, (struct sl_event)WANT(1));
	assert_false(said(at(&p, 40000, (struct sl_event)TIME), "EVICT"));
	sl_node_why(p.node, 1, on_why, &whys);
	assert_row_u64("sentences", whys.count, 1);
	assert_row_u64("reason", whys.row[0].reason, SL_REASON_POOL_WAITS);
	assert_row_u64("bytes", whys.row[0].bytes, 40);
	assert_row_u64("left", whys.row[0].available_bytes, 10);
	assert_row_u64("no bound", sl_node_workload(p.node, 1).longest_wait, SL_NS_NEVER);
	assert_row_u64("because", sl_node_workload(p.node, 1).endless, SL_ENDLESS_POOL);
	play_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leaves_room),
		cmocka_unit_test(test_told_again),
		cmocka_unit_test(test_comes_back),
		cmocka_unit_test(test_largest),
		cmocka_unit_test(test_whole_chunks),
		cmocka_unit_test(test_chunks_under_way),
		cmocka_unit_test(test_not_for_requests),
		cmocka_unit_test(test_says_why_it_asks),
		cmocka_unit_test(test_no_swap_any_more),
		cmocka_unit_test(test_says_why_it_is_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
