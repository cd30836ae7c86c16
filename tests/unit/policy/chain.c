/*
 * chain - somebody is helped by moving others, and then `swap` leaves the chain, played by hand
 *
 * Of a GPU of 100, X has 50 and V 40. X ends, and the driver is slow to release what it had: D,
 * which asks for 60, waits for that.
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

/* V, which is idle for long enough, goes warm at once: nobody is moved for D any more. */
static void test_goes_warm(void **state)
{
	struct play p;

	(void)state;
	begin(&p);
	/* D has what X had: nobody is moved for it before that, either. */
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
	/* What is to end does not go warm any more. */
	assert_false(said(&p, 4010,
		(struct sl_event)EVENT(PULSE, pulse, {V, 3000 * SL_MS, 0, 1}), "EVICT"));
	play_close(&p);
}

/* Or, if nobody may be ended for it either, is denied. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_goes_warm),
		cmocka_unit_test(test_is_helped_otherwise),
		cmocka_unit_test(test_is_denied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
