/*
 * chain - a demand is helped by moving others, and then `swap` leaves the chain, played by hand
 *
 * Of a GPU of 100, X has 50 and V 40. X ends, and the driver is slow to release its memory. D asks
 * for 60, and waits for that memory.
 */
#include "play.h"

#define CHAIN(...) SETTINGS(.pool_bytes = 1000, .chain = SL_CHAIN(__VA_ARGS__))
#define ADD(w, rank, warm)                  \
	EVENT(WORKLOAD_ADD, workload_add,   \
		{.workload = (w),           \
			.request = ANY,     \
			.limit = ANY,       \
			.gpu_count = 1,     \
			.gpu_mask = 1,      \
			.priority = (rank), \
			.warm_after = (warm)})
#define ON(w, mask, bytes, rank, set)                                               \
	EVENT(WORKLOAD_ADD, workload_add,                                           \
		{.workload = (w),                                                   \
			.request = {(bytes) ? SL_AMOUNT_BYTES : SL_AMOUNT_UNSET, 0, \
				(bytes)},                                           \
			.limit = ANY,                                               \
			.gpu_count = (mask) == 3 ? 2 : 1,                           \
			.gpu_mask = (mask),                                         \
			.priority = (rank),                                         \
			.flags = (set)})
#define SWAPPER(c, w) EVENT(CLIENT_JOIN, client_join, {c, w, 0, 1})

enum { X = 1, V, D };

static const struct sl_event before[] = {CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0),
	GPU(0, 100), ADD(X, 0, 0), ADD(V, 0, SL_S), ADD(D, 5, 0), SWAPPER(X, X),
	SWAPPER(V, V), SWAPPER(D, D), ASK(X, 1, 0, 50), COMMIT(X, 1, 50),
	ASK(V, 1, 0, 40), COMMIT(V, 2, 40)};

static bool said(struct play *p, uint64_t at_ms, struct sl_event event, const char *what)
{
	return strstr(play(p, what, at_ms, event), what) != NULL;
}

static void begin(struct play *p)
{
	play_open(p);
	for (size_t i = 0; i < SL_ARRAY_LEN(before); i++)
		(void)play(p, "before", 0, before[i]);
	(void)play(p, "ends", 1000, (struct sl_event)EXIT(X));
	assert_row_text(
		"asks", play(p, "asks", 1000, (struct sl_event)ASK(D, 1, 0, 60)), "");
	assert_row_text("says", play(p, "says", 2000, (struct sl_event)TIME),
		"NOTE DYING_WAITS g0 3/0 60");
}

/* V, which is idle for long enough, goes warm at once: it is not moved for D any more. */
static void test_goes_warm(void **state)
{
	struct play p;

	(void)state;
	begin(&p);
	/* D gets X's memory: V is not moved for it before that, either. */
	(void)play(&p, "chain", 2400, (struct sl_event)CHAIN(SL_RESOLVER_WAIT, 0, 0));
	assert_true(said(&p, 2500,
		(struct sl_event)EVENT(PULSE, pulse, {V, 1500 * SL_MS, 0, 1}),
		"EVICT 2 g0 40 EVICTED_IDLE"));
	play_close(&p);
}

/* Others get what X had: D is helped by `priority` then. */
static void test_is_helped_otherwise(void **state)
{
	struct play p;

	(void)state;
	begin(&p);
	(void)play(&p, "chain", 3000,
		(struct sl_event)CHAIN(SL_RESOLVER_PRIORITY, SL_RESOLVER_WAIT, 0));
	assert_true(said(&p, 4000, (struct sl_event)UNMANAGED(0, 30),
		"STOP 2 2 TERM STOP_PRIORITY"));
	/* A process that was told to end does not go warm any more. */
	assert_false(said(&p, 4010,
		(struct sl_event)EVENT(PULSE, pulse, {V, 3000 * SL_MS, 0, 1}), "EVICT"));
	play_close(&p);
}

/* Or, if no process may be ended for it either, it is denied. */
static void test_is_denied(void **state)
{
	struct play p;

	(void)state;
	begin(&p);
	(void)play(&p, "rises", 3000,
		(struct sl_event)EVENT(WORKLOAD_SET, workload_set,
			{.workload = V, .which = SL_SET_PRIORITY, .priority = 5}));
	(void)play(&p, "chain", 3000, (struct sl_event)CHAIN(SL_RESOLVER_PRIORITY, 0, 0));
	assert_true(said(
		&p, 4000, (struct sl_event)UNMANAGED(0, 30), "DENY 3/1 NO_RESOLVER g0"));
	play_close(&p);
}

/* On two GPUs bursts stand on unused requests, as far as the pool can take them back: 35 on GPU 0,
 * and `lent` on GPU 1. N never moves and asks on GPU 1. For N, E, which has 15 on each GPU, is told
 * to end, and 10 of B are to leave. Before E has ended, the pool has no room for these 10, even if
 * E has all that is lent on GPU 1. */
static void test_leaves_by_the_books(void **state)
{
	enum { REQUESTS = 1, F, B, E, N, MORE };
	static const uint64_t lent[] = {5, 10};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(lent); i++) {
		uint64_t asks = 25 - lent[i];
		const struct sl_event story[] = {
			SETTINGS(.pool_bytes = 35 + lent[i],
				.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_PRIORITY,
					SL_RESOLVER_WAIT)),
			GPU(0, 100), GPU(1, 100), ON(REQUESTS, 1, 70, 0, 0),
			ON(F, 1, 0, 9, 0), ON(B, 2, 0, 9, 0), ON(E, 3, 0, 0, 0),
			ON(N, 2, 0, 5, SL_WORKLOAD_NO_SWAP),
			ON(MORE, 2, 55 + lent[i], 0, 0), SWAPPER(F, F), SWAPPER(B, B),
			SWAPPER(E, E), SWAPPER(N, N), ASK(F, 1, 0, 50), COMMIT(F, 1, 50),
			ASK(B, 1, 1, 30), COMMIT(B, 2, 30), ASK(E, 1, 0, 15),
			COMMIT(E, 3, 15), ASK(E, 2, 1, 15), COMMIT(E, 4, 15)};
		struct play p;
		const char *got;

		play_open(&p);
		for (size_t k = 0; k < SL_ARRAY_LEN(story); k++)
			(void)play(&p, "before", 0, story[k]);
		for (uint64_t c = F; c <= E; c++)
			(void)play(&p, "idles", 990,
				(struct sl_event)EVENT(
					PULSE, pulse, {c, 900 * SL_MS, 0, 1}));
		got = play(&p, "N asks", 1000, (struct sl_event)ASK(N, 1, 1, asks));
		assert_non_null(strstr(got, "STOP 4 4 TERM STOP_PRIORITY"));
		assert_null(strstr(got, "EVICT"));
		/* What dies is not taken back. */
		got = play(&p, "E ends", 2000, (struct sl_event)EXIT(E));
		assert_non_null(strstr(got, "EVICT 3 g1 10 EVICTED_FOR"));
		play_close(&p);
	}
}

/* V is on its way to the host when D asks, in a chain that moves nothing for others: it is not
 * ended for that. */
static void test_warm_is_on_its_way(void **state)
{
	const struct sl_event story[] = {CHAIN(SL_RESOLVER_PRIORITY, SL_RESOLVER_WAIT, 0),
		GPU(0, 100), ADD(V, 0, SL_S), ADD(D, 5, 0), SWAPPER(V, V), SWAPPER(D, D),
		ASK(V, 1, 0, 60), COMMIT(V, 1, 60)};
	struct play p;

	(void)state;
	play_open(&p);
	for (size_t i = 0; i < SL_ARRAY_LEN(story); i++)
		(void)play(&p, "before", 0, story[i]);
	assert_true(said(&p, 2000,
		(struct sl_event)EVENT(PULSE, pulse, {V, 1500 * SL_MS, 0, 1}),
		"EVICT 2 g0 60 EVICTED_IDLE"));
	assert_row_text(
		"D asks", play(&p, "asks", 2010, (struct sl_event)ASK(D, 1, 0, 50)), "");
	play_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_goes_warm),
		cmocka_unit_test(test_leaves_by_the_books),
		cmocka_unit_test(test_is_helped_otherwise),
		cmocka_unit_test(test_is_denied),
		cmocka_unit_test(test_warm_is_on_its_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
