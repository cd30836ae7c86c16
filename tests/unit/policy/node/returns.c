/*
 * returns - clients that were parked and are to come back, some while their process is stopped,
 * played by hand
 *
 * A has 40 of a GPU of 100, is parked, and resumed again. D has a request of 80.
 */
#include "play.h"

#define SWAP                                                        \
	SETTINGS(.pool_bytes = 1000, .untakeable_after = 30 * SL_S, \
		.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0))
#define WORKLOAD(w, request) EVENT(WORKLOAD_ADD, workload_add, {w, request, ANY, 1, 1, 0})
#define SWAPPER(c, w)        EVENT(CLIENT_JOIN, client_join, {c, w, 0, 1})
#define PARK(w)              EVENT(WORKLOAD_PARK, workload_park, {w, 0})
#define RESUME(w)            EVENT(WORKLOAD_RESUME, workload_resume, {w})
#define CONDITION(c, what)   EVENT(CONDITION, condition, {c, SL_CONDITION_##what})
#define DONE(c, o, n)        EVENT(DONE, done, {c, o, 0, SL_SWAP_OK, 0, n})
#define NOT_TOLD(c, o, n) \
	EVENT(DONE, done, {c, o, 0, SL_SWAP_REFUSED, SL_SWAP_STOPPED, n})

static const char *at(struct play *p, uint64_t at_ms, struct sl_event event)
{
	return play(p, "story", at_ms, event);
}

static void is_said(void *context, const struct sl_node_because *because)
{
	*(struct sl_node_because *)context = *because;
}

static void why(const struct play *p, const char *row, enum sl_reason reason, sl_ns span)
{
	struct sl_node_because because = {0};

	sl_node_why(p->node, 1, is_said, &because);
	assert_row_text(row, sl_reason_name(because.reason), sl_reason_name(reason));
	assert_row_u64(row, because.bytes, 40);
	assert_row_u64(row, because.client, 1);
	assert_row_u64(row, because.span, span);
}

static bool comes_back(struct play *p, uint64_t at_ms, struct sl_event event)
{
	return strstr(at(p, at_ms, event), "RESTORE 1 g0 40");
}

static bool is_watched(const struct play *p)
{
	return sl_node_client(p->node, 1).probe == SL_PROBE_WATCH;
}

static void begin(struct play *p)
{
	play_open(p);
	(void)at(p, 0, (struct sl_event)SWAP);
	(void)at(p, 0, (struct sl_event)GPU(0, 100));
	(void)at(p, 0, (struct sl_event)WORKLOAD(1, ANY));
	(void)at(p, 0, (struct sl_event)WORKLOAD(2, BYTES(80)));
	(void)at(p, 0, (struct sl_event)SWAPPER(1, 1));
	(void)at(p, 0, (struct sl_event)SWAPPER(2, 2));
	(void)at(p, 0, (struct sl_event)ASK(1, 1, 0, 40));
	(void)at(p, 0, (struct sl_event)COMMIT(1, 1, 40));
	(void)at(p, 10, (struct sl_event)PARK(1));
	(void)at(p, 20, (struct sl_event)DONE(1, p->last[SL_ACTION_EVICT].id, 40));
}

static bool is_granted(struct play *p, uint64_t at_ms)
{
	return strstr(at(p, at_ms, (struct sl_event)ASK(2, 1, 0, 80)), "GRANT 2/1 g0 80");
}

/* It is found to be stopped when it is to be told: no memory is kept for it until it goes on. */
static void test_stopped_before(void **state)
{
	struct play p;

	(void)state;
	begin(&p);
	assert_true(comes_back(&p, 100, (struct sl_event)RESUME(1)));
	(void)at(&p, 100, (struct sl_event)CONDITION(1, STOPPED));
	assert_false(comes_back(
		&p, 100, (struct sl_event)NOT_TOLD(1, p.last[SL_ACTION_RESTORE].id, 40)));
	assert_true(is_watched(&p));
	assert_row_u64("kept", sl_node_gpu(p.node, 0).returning_bytes, 0);
	assert_false(comes_back(&p, 5000, (struct sl_event)TIME));
	why(&p, "stopped", SL_REASON_AWAY_STOPPED, 4900 * SL_MS);
	assert_true(is_granted(&p, 5000));
	(void)at(&p, 5001,
		(struct sl_event)COMMIT(2, p.last[SL_ACTION_GRANT].grant.epoch, 0));
	assert_true(comes_back(&p, 6000, (struct sl_event)CONDITION(1, RUNNING)));
	play_close(&p);
}

/* A was told to come back, and is watched when that takes long. The memory kept for it is not shown
 * as resident. */
static void test_stopped_meanwhile(void **state)
{
	struct play p;

	(void)state;
	begin(&p);
	assert_true(comes_back(&p, 100, (struct sl_event)RESUME(1)));
	why(&p, "runs", SL_REASON_RETURN_WAITS, 0);
	assert_false(is_watched(&p));
	(void)at(&p, 1100, (struct sl_event)TIME);
	assert_true(is_watched(&p));
	(void)at(&p, 2000, (struct sl_event)CONDITION(1, TRACED));
	(void)at(&p, 3000, (struct sl_event)TIME);
	why(&p, "stopped", SL_REASON_RETURN_STOPPED, 1000 * SL_MS);
	assert_false(is_granted(&p, 3000));
	assert_non_null(strstr(
		at(&p, 32000, (struct sl_event)TIME), "DENY 2/1 RETURN_UNTAKEABLE g0"));
	assert_row_u64("of A", p.last[SL_ACTION_DENY].deny.other_bytes, 40);
	(void)at(&p, 33000, (struct sl_event)CONDITION(1, RUNNING));
	(void)at(&p, 33000, (struct sl_event)DONE(1, p.last[SL_ACTION_RESTORE].id, 0));
	assert_row_u64("back", sl_node_gpu(p.node, 0).free_bytes, 60);
	play_close(&p);
}

/* With `wait` first, B leaves once A has waited for 60 s. A was resumed at 1 s, parked again, and
 * resumed at 40 s: its wait began with the second RESUME. */
static void test_waits_anew(void **state)
{
	static const struct sl_event before[] = {
		SETTINGS(.pool_bytes = 1000,
			.chain = SL_CHAIN(SL_RESOLVER_WAIT, SL_RESOLVER_SWAP, 0)),
		GPU(0, 100), WORKLOAD(1, ANY), WORKLOAD(2, ANY), SWAPPER(1, 1),
		SWAPPER(2, 2), ASK(1, 1, 0, 40), COMMIT(1, 1, 40), PARK(1)};
	struct play p;

	(void)state;
	play_open(&p);
	for (size_t i = 0; i < SL_ARRAY_LEN(before); i++)
		(void)at(&p, 0, before[i]);
	(void)at(&p, 20, (struct sl_event)DONE(1, p.last[SL_ACTION_EVICT].id, 40));
	(void)at(&p, 30, (struct sl_event)ASK(2, 1, 0, 80));
	(void)at(&p, 30, (struct sl_event)COMMIT(2, 2, 80));
	(void)at(&p, 1000, (struct sl_event)RESUME(1));
	(void)at(&p, 30000, (struct sl_event)PARK(1));
	(void)at(&p, 40000, (struct sl_event)RESUME(1));
	assert_null(strstr(at(&p, 61000, (struct sl_event)TIME), "EVICT"));
	assert_null(strstr(at(&p, 99000, (struct sl_event)TIME), "EVICT"));
	assert_non_null(strstr(at(&p, 100000, (struct sl_event)TIME), "EVICT 2 g0 20"));
	play_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stopped_before),
		cmocka_unit_test(test_stopped_meanwhile),
		cmocka_unit_test(test_waits_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
