/*
 * leave - which client leaves a GPU for another, and is counted on in later looks, played by hand
 */
#include "play.h"

#define MIB ((uint64_t)SL_MIB)
/* `swap, wait` over a pool. */
#define SWAP(pool)                   \
	SETTINGS(.pool_bytes = pool, \
		.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0))
#define WORKLOAD(w)      EVENT(WORKLOAD_ADD, workload_add, {w, ANY, ANY, 1, 1, 0})
#define SWAPPER(c, w)    EVENT(CLIENT_JOIN, client_join, {c, w, 0, 1})
#define COMES(c, w)      EVENT(CLIENT_JOIN, client_join, {c, w, 1, 1})
#define PARK(w)          EVENT(WORKLOAD_PARK, workload_park, {w, 0})
#define WANT(c, n)       EVENT(WANT, want, {c, n})
#define OUT(c, g, n)     EVENT(CLIENT_EVICTED, client_evicted, {c, g, n})
#define REPORTED(c)      EVENT(CLIENT_REPORTED, client_reported, {c})
#define STORE(c, n)      EVENT(STORE, store, {c, n})
#define DONE(c, o, g, n) EVENT(DONE, done, {c, o, g, SL_SWAP_OK, 0, n})

/* The order of the last EVICT. */
static uint64_t evicted_as(const struct play *p)
{
	return p->last[SL_ACTION_EVICT].id;
}

static void says(struct play *p, const char *row, uint64_t at_ms, struct sl_event event,
	const char *expected)
{
	const char *got = play(p, row, at_ms, event);

	assert_row_text(row, got, expected);
}

/* A, the more urgent one, wants 60 back on each of two GPUs, of which V has 70 each. */
static const char *wants_on_both(struct play *p, uint64_t pool)
{
	const struct sl_event before[] = {SWAP(pool), GPU(0, 100), GPU(1, 100),
		EVENT(WORKLOAD_ADD, workload_add, {1, ANY, ANY, 2, 3, 1}),
		EVENT(WORKLOAD_ADD, workload_add, {2, ANY, ANY, 2, 3, 0}),
		EVENT(CLIENT_JOIN, client_join, {1, 1, 1, 1}), REPORT(1, 0, 60),
		OUT(1, 0, 60), REPORT(1, 1, 60), OUT(1, 1, 60), REPORTED(1),
		SWAPPER(2, 2), ASK(2, 1, 0, 70), COMMIT(2, 1, 70), ASK(2, 2, 1, 70),
		COMMIT(2, 2, 70)};

	play_open(p);
	for (size_t i = 0; i < SL_ARRAY_LEN(before); i++)
		(void)play(p, "before", 0, before[i]);
	return play(p, "A wants", 10, (struct sl_event)WANT(1, 1));
}

/* V leaves one GPU after the other, and is not told to stay while it is about the first. */
static void test_leaves_both(void **state)
{
	struct play p;

	(void)state;
	assert_row_text("the first", wants_on_both(&p, 180),
		"EVICT 2 g0 30 EVICTED_FOR; PROBE 2 1; PROBE 1 1");
	says(&p, "looked at again", 20, (struct sl_event)TIME, "");
	assert_non_null(strstr(play(&p, "the second", 30,
				       (struct sl_event)DONE(2, evicted_as(&p), 0, 30)),
		"EVICT 2 g1 30 EVICTED_FOR"));
	assert_non_null(strstr(play(&p, "there is room", 40,
				       (struct sl_event)DONE(2, evicted_as(&p), 1, 30)),
		"RESTORE 1 g0 60"));
	play_close(&p);
}

/* The pool has room for what V gives on either GPU, and not for both: then it gives nothing. */
static void test_pool_for_one(void **state)
{
	struct play p;

	(void)state;
	assert_null(strstr(wants_on_both(&p, 179), "EVICT"));
	assert_null(strstr(play(&p, "nor later", 20, (struct sl_event)TIME), "EVICT"));
	play_close(&p);
}

/* X, D, C and P fill the GPU. D has copies on the host. When P is parked, D does not give them
 * back; then P ends. C has copies of 5 as well. */
static const struct sl_event copies[] = {SWAP(100), GPU(0, 100), WORKLOAD(1), WORKLOAD(2),
	WORKLOAD(3), WORKLOAD(4), WORKLOAD(5), WORKLOAD(6), SWAPPER(1, 1), SWAPPER(2, 2),
	SWAPPER(3, 3), SWAPPER(4, 4), SWAPPER(5, 5), SWAPPER(6, 6), ASK(1, 1, 0, 60),
	COMMIT(1, 1, 60), ASK(2, 1, 0, 10), COMMIT(2, 2, 10), ASK(3, 1, 0, 10),
	COMMIT(3, 3, 10), ASK(4, 1, 0, 20), COMMIT(4, 4, 20), STORE(2, 90)};

/* A needs 8 of X, and waits until C has given back copies of 3. B needs 28 more. No copies will
 * come for these, so X leaves anyway, because the host may have space all the same. One order then
 * covers A and B. */
static void test_waits_for_the_pool(void **state)
{
	struct play p;

	(void)state;
	play_open(&p);
	for (size_t i = 0; i < SL_ARRAY_LEN(copies); i++)
		(void)play(&p, "before", 0, copies[i]);
	(void)play(&p, "P is parked", 10, (struct sl_event)PARK(4));
	assert_row_u64("D is asked", p.last[SL_ACTION_TRIM].trim.client, 2);
	says(&p, "and gives nothing", 1010, (struct sl_event)TIME,
		"EVICT 4 g0 20 PARK_BEGINS");
	(void)play(
		&p, "P is gone", 1020, (struct sl_event)DONE(4, evicted_as(&p), 0, 20));
	(void)play(&p, "P ends", 1020, (struct sl_event)EXIT(4));
	(void)play(&p, "C was back", 1020, (struct sl_event)STORE(3, 5));
	(void)play(&p, "X idles", 1990,
		(struct sl_event)EVENT(PULSE, pulse, {1, 900 * SL_MS, 0, 1}));
	assert_non_null(strstr(
		play(&p, "A asks", 2000, (struct sl_event)ASK(5, 1, 0, 28)), "TRIM 3 3"));
	assert_non_null(
		strstr(play(&p, "B asks", 2001, (struct sl_event)ASK(6, 1, 0, 28)),
			"EVICT 1 g0 36 EVICTED_FOR"));
	assert_row_u64("leaving", sl_node_pool(p.node).leaving_bytes, 36);
	play_close(&p);
}

/* A has two processes of 40. The second is on the host. Beside the first, 30 are free; the rest of
 * the GPU of 100 is a stranger's, or B's, which never leaves. */
static void begin_siblings(struct play *p, bool is_stranger)
{
	const struct sl_event before[] = {SWAP(1000), GPU(0, 100), WORKLOAD(1),
		EVENT(WORKLOAD_ADD, workload_add,
			{.workload = 2,
				.request = ANY,
				.limit = ANY,
				.gpu_count = 1,
				.gpu_mask = 1,
				.flags = SL_WORKLOAD_NO_SWAP}),
		EVENT(CLIENT_JOIN, client_join, {1, 1, 1, 1}),
		EVENT(CLIENT_JOIN, client_join, {2, 1, 1, 1}), REPORT(1, 0, 40),
		REPORTED(1), REPORT(2, 0, 40), OUT(2, 0, 40), REPORTED(2), SWAPPER(3, 2)};

	play_open(p);
	for (size_t i = 0; i < SL_ARRAY_LEN(before); i++)
		(void)play(p, "before", 100, before[i]);
	if (is_stranger) {
		(void)play(p, "a stranger", 100, (struct sl_event)UNMANAGED(0, 30));
	} else {
		(void)play(p, "B asks", 100, (struct sl_event)ASK(3, 1, 0, 30));
		(void)play(p, "B has", 100, (struct sl_event)COMMIT(3, 1, 30));
	}
	assert_row_u64("free", sl_node_gpu(p->node, 0).free_bytes, 30);
}

/* A workload within its request takes no turns with bursts. So A leaves once both of its processes
 * are proven idle; the second has been idle for longer. */
static const char *ends_turn(struct play *p, uint64_t at_ms)
{
	(void)play(p, "idle", at_ms,
		(struct sl_event)EVENT(PULSE, pulse, {2, 900 * SL_MS, 0, 1}));
	return play(p, "idle", at_ms,
		(struct sl_event)EVENT(PULSE, pulse, {1, 800 * SL_MS, 0, 1}));
}

static void keep_endless(void *context, const struct sl_node_because *because)
{
	if (because->reason == SL_REASON_STAYS_WAITS ||
		because->reason == SL_REASON_WHOLE_WAITS)
		*(struct sl_node_because *)context = *because;
}

/* They take turns. */
static void test_siblings(void **state)
{
	struct sl_node_because why;
	struct play p;

	(void)state;
	for (int is_stranger = 0; is_stranger < 2; is_stranger++) {
		begin_siblings(&p, is_stranger);
		assert_null(strstr(
			play(&p, "wants", 110, (struct sl_event)WANT(2, 1)), "EVICT"));
		assert_row_u64("never whole", sl_node_workload(p.node, 1).longest_wait,
			SL_NS_NEVER);
		assert_row_u64("because", sl_node_workload(p.node, 1).endless,
			is_stranger ? SL_ENDLESS_WHOLE : SL_ENDLESS_STAYS);
		why = (struct sl_node_because){0};
		sl_node_why(p.node, 1, keep_endless, &why);
		assert_row_text("and that is said", sl_reason_name(why.reason),
			is_stranger ? "WHOLE_WAITS" : "STAYS_WAITS");
		assert_row_u64("what it has", why.bytes, 80);
		assert_row_u64("what it can have", why.available_bytes, 70);
		assert_row_u64("whose the rest is", why.other, is_stranger ? 0 : 2);
		assert_row_u64("how much", why.other_bytes, is_stranger ? 0 : 30);
		assert_null(strstr(
			play(&p, "in its turn", 299, (struct sl_event)TIME), "EVICT"));
		assert_non_null(strstr(play(&p, "is over", 300, (struct sl_event)TIME),
			"EVICT 1 g0 10 EVICTED_FOR"));
		assert_non_null(
			strstr(play(&p, "left", 305,
				       (struct sl_event)DONE(1, evicted_as(&p), 0, 10)),
				"RESTORE 2 g0 40"));
		(void)play(&p, "wants", 305, (struct sl_event)WANT(1, 1));
		(void)play(&p, "back", 310,
			(struct sl_event)DONE(2, p.last[SL_ACTION_RESTORE].id, 0, 0));
		assert_null(strstr(
			play(&p, "in its turn", 509, (struct sl_event)TIME), "EVICT"));
		assert_non_null(strstr(play(&p, "is over", 510, (struct sl_event)TIME),
			"EVICT 2 g0 10 EVICTED_FOR"));
		play_close(&p);
	}
}

/* The first process is idle, so 10 of it leave at once for the second. If the second also asks for
 * 5, 15 leave: a demand and its client's return are one claim. */
static void test_idle_sibling(void **state)
{
	struct play p;

	(void)state;
	begin_siblings(&p, true);
	(void)play(&p, "idles", 110,
		(struct sl_event)EVENT(PULSE, pulse, {1, 50 * SL_MS, 0, 1}));
	assert_non_null(strstr(play(&p, "wants", 120, (struct sl_event)WANT(2, 1)),
		"EVICT 1 g0 10 EVICTED_FOR"));
	play_close(&p);
	begin_siblings(&p, false);
	(void)play(&p, "idles", 110,
		(struct sl_event)EVENT(PULSE, pulse, {1, 50 * SL_MS, 0, 1}));
	assert_non_null(strstr(play(&p, "asks", 120, (struct sl_event)ASK(2, 1, 0, 5)),
		"EVICT 1 g0 15 EVICTED_FOR"));
	play_close(&p);
}

/* A, two processes of 224, is within its request. 152 of B's 512 are resident, and B wants the
 * rest. N never leaves, has the highest priority, and asks for 200 above its request. */
static void begin_requested(struct play *p)
{
	const struct sl_event before[] = {SWAP(4096 * MIB), GPU(0, 600 * MIB),
		EVENT(LINK_COST, link_cost, {0, 32000 * MIB, 32000 * MIB}),
		EVENT(WORKLOAD_ADD, workload_add,
			{1, BYTES(448 * MIB), BYTES(448 * MIB), 1, 1, 0}),
		WORKLOAD(2),
		EVENT(WORKLOAD_ADD, workload_add,
			{.workload = 3,
				.request = ANY,
				.limit = ANY,
				.gpu_count = 1,
				.gpu_mask = 1,
				.priority = 5,
				.flags = SL_WORKLOAD_NO_SWAP}),
		COMES(1, 1), COMES(2, 1), COMES(3, 2), REPORT(1, 0, 224 * MIB),
		REPORTED(1), REPORT(2, 0, 224 * MIB), REPORTED(2),
		REPORT(3, 0, 512 * MIB), OUT(3, 0, 360 * MIB), REPORTED(3), SWAPPER(4, 3),
		WANT(3, 1), ASK(4, 1, 0, 200 * MIB)};

	play_open(p);
	for (size_t i = 0; i < SL_ARRAY_LEN(before); i++)
		(void)play(p, "before", 100, before[i]);
	assert_row_u64("free", sl_node_gpu(p->node, 0).free_bytes, 0);
}

/* When both processes of A are idle, A leaves for B. N gets none of that, which is A's request, so
 * nothing of it is kept from B. Otherwise the first process of A, which comes before B, would be
 * back before the second is gone, and A would have another turn. */
static void test_requests_stay(void **state)
{
	struct play p;
	uint64_t order;

	(void)state;
	begin_requested(&p);
	(void)play(&p, "N waits", 1100, (struct sl_event)TIME);
	assert_null(
		strstr(play(&p, "in A's turn", 4870, (struct sl_event)TIME), "EVICT"));
	assert_row_text("is over", ends_turn(&p, 4900),
		"EVICT 2 g0 234881024 EVICTED_FOR; EVICT 1 g0 142606336 EVICTED_FOR");
	order = sl_node_client(p.node, 1).order;
	says(&p, "A gives", 4901,
		(struct sl_event)EVENT(MOVED, moved, {1, order, 0, 64 * MIB}),
		"RESTORE 3 g0 67108864");
	(void)play(&p, "A has left", 4902, (struct sl_event)DONE(1, order, 0, 136 * MIB));
	says(&p, "and wants back", 4902, (struct sl_event)WANT(1, 1), "");
	play_close(&p);
}

/* A, two processes of 24 and 424, is all within its request. */
#define TWO_OF_A                                                              \
	SWAP(4096 * MIB), GPU(0, 600 * MIB),                                  \
		EVENT(LINK_COST, link_cost, {0, 32000 * MIB, 32000 * MIB}),   \
		EVENT(WORKLOAD_ADD, workload_add,                             \
			{1, BYTES(448 * MIB), BYTES(448 * MIB), 1, 1, 0}),    \
		WORKLOAD(2), COMES(1, 1), COMES(2, 1), COMES(3, 2),           \
		REPORT(1, 0, 24 * MIB), REPORTED(1), REPORT(2, 0, 424 * MIB), \
		REPORTED(2)

/* B wants 448 back, which are as many as A has; or asks for them. */
static const struct sl_event two_for_one[] = {
	TWO_OF_A, REPORT(3, 0, 600 * MIB), OUT(3, 0, 448 * MIB), REPORTED(3), WANT(3, 1)};
static const struct sl_event two_for_demand[] = {
	TWO_OF_A, REPORT(3, 0, 152 * MIB), REPORTED(3), ASK(3, 1, 0, 448 * MIB)};

/* The first process of A is on the host, and wants back before anything of the second has left. It
 * comes before B in the order, but does not get back the memory that it gave up. Otherwise A would
 * begin another turn, and B would never have one. */
static void test_left_for_it(void **state)
{
	static const struct {
		const char *name;
		const struct sl_event *before;
		size_t count;
		const char *gets;
	} rows[] = {
		{"wants", two_for_one, SL_ARRAY_LEN(two_for_one),
			"RESTORE 3 g0 469762048"},
		{"asks", two_for_demand, SL_ARRAY_LEN(two_for_demand),
			"GRANT 3/1 g0 469762048"},
	};

	(void)state;
	for (size_t row = 0; row < SL_ARRAY_LEN(rows); row++) {
		struct play p;
		uint64_t order;

		play_open(&p);
		for (size_t i = 0; i < rows[row].count; i++)
			(void)play(&p, rows[row].name, 100, rows[row].before[i]);
		(void)play(&p, rows[row].name, 1100, (struct sl_event)TIME);
		assert_row_text(rows[row].name, ends_turn(&p, 10000),
			"EVICT 2 g0 444596224 EVICTED_FOR; EVICT 1 g0 25165824 "
			"EVICTED_FOR");
		order = sl_node_client(p.node, 1).order;
		(void)play(&p, rows[row].name, 10001,
			(struct sl_event)DONE(1, order, 0, 24 * MIB));
		says(&p, rows[row].name, 10001, (struct sl_event)WANT(1, 1), "");
		order = sl_node_client(p.node, 2).order;
		assert_row_contains(rows[row].name,
			play(&p, rows[row].name, 10002,
				(struct sl_event)DONE(2, order, 0, 424 * MIB)),
			rows[row].gets);
		play_close(&p);
	}
}

/* A's turn is over, and its first leaves: its order. */
static uint64_t first_leaves(struct play *p)
{
	play_open(p);
	for (size_t i = 0; i < SL_ARRAY_LEN(two_for_demand); i++)
		(void)play(p, "before", 100, two_for_demand[i]);
	(void)ends_turn(p, 10000);
	return sl_node_client(p->node, 1).order;
}

/* B ends while A leaves for it: nothing is strange about that. */
static void test_left_for_the_dead(void **state)
{
	struct play p;
	uint64_t order;

	(void)state;
	order = first_leaves(&p);
	(void)play(&p, "B ends", 10001, (struct sl_event)EXIT(3));
	says(&p, "the first of A", 10002, (struct sl_event)DONE(1, order, 0, 24 * MIB),
		"NOTE EVICTED_FOR g0 1/2 25165824");
	play_close(&p);
}

/* B asks, the second of A cannot leave: the first is not kept waiting for what does not come. */
static void test_not_behind_for_nothing(void **state)
{
	struct play p;
	uint64_t order;

	(void)state;
	order = first_leaves(&p);
	(void)play(&p, "the first", 10001, (struct sl_event)DONE(1, order, 0, 24 * MIB));
	(void)play(&p, "wants back", 10001, (struct sl_event)WANT(1, 1));
	order = sl_node_client(p.node, 2).order;
	assert_non_null(strstr(
		play(&p, "the second refuses", 10002,
			(struct sl_event)EVENT(DONE, done,
				{2, order, 0, SL_SWAP_REFUSED, SL_SWAP_CAPTURE, 0})),
		"RESTORE 1 g0 25165824"));
	play_close(&p);
}

/* Of A's 100, 60 are on the host. If A reports fewer bytes, the missing ones count as host bytes,
 * and free nothing on the GPU, until A says where the rest is. */
static void test_reports_less(void **state)
{
	static const struct {
		const char *name;
		uint64_t bytes, free_bytes;
	} rows[] = {
		{"all", 100, 60},
		{"some of what is on the host", 70, 60},
		{"all of it", 40, 60},
		{"and what is here", 10, 90},
		{"more", 120, 40},
	};
	const struct sl_event before[] = {SWAP(1000), GPU(0, 100), WORKLOAD(1),
		COMES(1, 1), REPORT(1, 0, 100), OUT(1, 0, 60), REPORTED(1)};

	(void)state;
	for (size_t row = 0; row < SL_ARRAY_LEN(rows); row++) {
		struct play p;

		play_open(&p);
		for (size_t i = 0; i < SL_ARRAY_LEN(before); i++)
			(void)play(&p, rows[row].name, 0, before[i]);
		(void)play(&p, rows[row].name, 10,
			(struct sl_event)REPORT(1, 0, rows[row].bytes));
		assert_row_u64(rows[row].name, sl_node_gpu(p.node, 0).free_bytes,
			rows[row].free_bytes);
		play_close(&p);
	}
}

/* The first workload fills the GPU; its context uses 75 of the reserve of 80. One more context is
 * assumed to need as much, and an eighth of the reserve. It is refused while the first workload
 * could never be fully resident beside it. */
static void test_no_context_too_many(void **state)
{
	static const struct sl_event gpu = EVENT(GPU_ADD, gpu_add, {0, 180, 80});
	const struct sl_event before[] = {SWAP(1000), gpu, WORKLOAD(1), SWAPPER(1, 1),
		ASK(1, 1, 0, 96), COMMIT(1, 1, 96)};
	struct play p;

	(void)state;
	play_open(&p);
	for (size_t i = 0; i < SL_ARRAY_LEN(before); i++)
		(void)play(&p, "before", 100, before[i]);
	(void)play(&p, "its context", 100, (struct sl_event)HIDDEN(1, 0, 75));
	assert_row_text("too many", play(&p, "2", 100, (struct sl_event)WORKLOAD(2)),
		"REFUSE 2 CONTEXTS_FULL g0 85 5");
	(void)play(&p, "less is there", 101, (struct sl_event)FREED(1, 0, 77));
	assert_non_null(strstr(
		play(&p, "beside it", 101, (struct sl_event)WORKLOAD(2)), "ADMIT 2"));
	/* That one has no context yet, and none is left for it. */
	(void)play(&p, "a small one", 102, (struct sl_event)HIDDEN(1, 0, 50));
	(void)play(&p, "more again", 102, (struct sl_event)ASK(1, 2, 0, 22));
	assert_row_text("two at once", play(&p, "3", 102, (struct sl_event)WORKLOAD(3)),
		"REFUSE 3 CONTEXTS_FULL g0 60 0");
	(void)play(&p, "it has ended", 103, (struct sl_event)REMOVE(2));
	assert_non_null(strstr(
		play(&p, "in its place", 103, (struct sl_event)WORKLOAD(3)), "ADMIT 3"));
	play_close(&p);
}

/* A request is guaranteed and a burst is not. So a context is refused for a workload without a
 * request where it would keep any workload from being fully resident; for a workload with a
 * request, only where it would keep another one with a request from that. */
static void test_context_for_a_request(void **state)
{
	static const struct {
		const char *name;
		uint64_t there_bytes, new_bytes;
		const char *gets;
	} rows[] = {
		{"bursts", 0, 0, "REFUSE 2 CONTEXTS_FULL g0 85 5"},
		{"a request beside a burst", 0, 10, "ADMIT 2 m1 r10 l10"},
		{"requests", 1, 10, "REFUSE 2 CONTEXTS_FULL g0 85 5"},
	};

	(void)state;
	for (size_t row = 0; row < SL_ARRAY_LEN(rows); row++) {
		const struct sl_event before[] = {SWAP(1000),
			EVENT(GPU_ADD, gpu_add, {0, 180, 80}),
			EVENT(WORKLOAD_ADD, workload_add,
				{1, BYTES(rows[row].there_bytes), BYTES(100), 1, 1, 0}),
			SWAPPER(1, 1), ASK(1, 1, 0, 96), COMMIT(1, 1, 96),
			HIDDEN(1, 0, 75)};
		struct play p;

		play_open(&p);
		for (size_t i = 0; i < SL_ARRAY_LEN(before); i++)
			(void)play(&p, rows[row].name, 100, before[i]);
		assert_row_text(rows[row].name,
			play(&p, rows[row].name, 100,
				(struct sl_event)EVENT(WORKLOAD_ADD, workload_add,
					{2, BYTES(rows[row].new_bytes), ANY, 1, 1, 0})),
			rows[row].gets);
		play_close(&p);
	}
}

/* Of two processes of a request of 20, one asks for 25 and then the other for 15. Each alone would
 * get its room. Both together stand on others' requests by more than a pool of 60 can take back. */
static void test_beside_a_burst_of_its_own(void **state)
{
	const struct sl_event before[] = {SWAP(60), GPU(0, 100),
		EVENT(WORKLOAD_ADD, workload_add, {1, BYTES(20), BYTES(100), 1, 1, 0}),
		EVENT(WORKLOAD_ADD, workload_add, {2, BYTES(60), BYTES(100), 1, 1, 0}),
		EVENT(WORKLOAD_ADD, workload_add, {3, BYTES(0), BYTES(100), 1, 1, 0}),
		SWAPPER(1, 1), SWAPPER(2, 1), SWAPPER(3, 2), SWAPPER(4, 3),
		ASK(3, 1, 0, 40), COMMIT(3, 1, 40), ASK(4, 1, 0, 50), COMMIT(4, 2, 50)};
	struct play p;

	(void)state;
	play_open(&p);
	for (size_t i = 0; i < SL_ARRAY_LEN(before); i++)
		(void)play(&p, "before", 0, before[i]);
	for (uint64_t c = 3; c <= 4; c++)
		(void)play(&p, "idles", 20000,
			(struct sl_event)EVENT(PULSE, pulse, {c, 20 * SL_S, 0, 1}));
	says(&p, "one asks", 20000, (struct sl_event)ASK(1, 1, 0, 25),
		"EVICT 3 g0 15 EVICTED_FOR; PROBE 4 1; PROBE 3 1");
	says(&p, "the other", 20010, (struct sl_event)ASK(2, 1, 0, 15), "");
	says(&p, "has left", 20020, (struct sl_event)DONE(3, evicted_as(&p), 0, 15),
		"NOTE EVICTED_FOR g0 2/1 15; GRANT 1/1 g0 25; PROBE 1 1");
	play_close(&p);
}

/* The burst of 3 has waited, and V leaves for it. Meanwhile 2, of the same workload, wants its 30
 * back. They are within the request only until 3 has its 20, so nothing leaves for 2. */
static void test_not_for_what_grew_above(void **state)
{
	enum { V = 4 };
	const struct sl_event before[] = {
		SETTINGS(.pool_bytes = 300,
			.chain = SL_CHAIN(SL_RESOLVER_WAIT, SL_RESOLVER_SWAP, 0)),
		GPU(0, 100),
		EVENT(WORKLOAD_ADD, workload_add, {1, BYTES(50), BYTES(100), 1, 1, 0}),
		EVENT(WORKLOAD_ADD, workload_add, {2, BYTES(0), BYTES(100), 1, 1, 0}),
		COMES(2, 1), REPORT(2, 0, 30), OUT(2, 0, 30), REPORTED(2), SWAPPER(1, 1),
		SWAPPER(3, 1), SWAPPER(V, 2), ASK(1, 1, 0, 20), COMMIT(1, 1, 20),
		ASK(V, 1, 0, 70), COMMIT(V, 2, 70)};
	struct play p;

	(void)state;
	play_open(&p);
	for (size_t i = 0; i < SL_ARRAY_LEN(before); i++)
		(void)play(&p, "before", 0, before[i]);
	(void)play(&p, "3 asks", 10, (struct sl_event)ASK(3, 1, 0, 20));
	(void)play(&p, "V idles", 60000,
		(struct sl_event)EVENT(PULSE, pulse, {V, 59 * SL_S, 0, 1}));
	says(&p, "it has waited", 60011, (struct sl_event)TIME,
		"EVICT 4 g0 10 EVICTED_FOR");
	says(&p, "2 wants", 60012, (struct sl_event)WANT(2, 1), "");
	says(&p, "V has left", 60020, (struct sl_event)DONE(V, evicted_as(&p), 0, 10),
		"NOTE EVICTED_FOR g0 2/1 10; GRANT 3/1 g0 20; "
		"NOTE SERVED_AFTER_WAIT g0 1/0 20; PROBE 3 1");
	play_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leaves_both),
		cmocka_unit_test(test_pool_for_one),
		cmocka_unit_test(test_waits_for_the_pool),
		cmocka_unit_test(test_siblings),
		cmocka_unit_test(test_idle_sibling),
		cmocka_unit_test(test_requests_stay),
		cmocka_unit_test(test_left_for_it),
		cmocka_unit_test(test_left_for_the_dead),
		cmocka_unit_test(test_not_behind_for_nothing),
		cmocka_unit_test(test_reports_less),
		cmocka_unit_test(test_no_context_too_many),
		cmocka_unit_test(test_context_for_a_request),
		cmocka_unit_test(test_beside_a_burst_of_its_own),
		cmocka_unit_test(test_not_for_what_grew_above),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
