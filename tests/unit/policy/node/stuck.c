/*
 * stuck - a client wants its request back, and an untakeable process is in its way, played by hand
 *
 * A GPU of 100. R has 60 on the host, B a burst of 50: on its way back, or resident.
 */
#include "play.h"

enum { R = 1, B };

#define SWAP(resort)                                                \
	SETTINGS(.pool_bytes = 1000, .untakeable_after = 30 * SL_S, \
		.last_resort = SL_LAST_RESORT_##resort,             \
		.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, SL_RESOLVER_NONE))
#define ONLY_WAIT(resort)                                           \
	SETTINGS(.pool_bytes = 1000, .untakeable_after = 30 * SL_S, \
		.last_resort = SL_LAST_RESORT_##resort,             \
		.chain = SL_CHAIN(SL_RESOLVER_WAIT, SL_RESOLVER_NONE, SL_RESOLVER_NONE))
#define WORKLOAD(w, request) \
	EVENT(WORKLOAD_ADD, workload_add, {w, BYTES(request), BYTES(100), 1, 1, 0})
#define ON_BOTH(w, request) \
	EVENT(WORKLOAD_ADD, workload_add, {w, BYTES(request), BYTES(100), 2, 3, 0})
#define SWAPPER(c, w)      EVENT(CLIENT_JOIN, client_join, {c, w, 0, 1})
#define COMES(c, w)        EVENT(CLIENT_JOIN, client_join, {c, w, 1, 1})
#define OUT(c, g, n)       EVENT(CLIENT_EVICTED, client_evicted, {c, g, n})
#define REPORTED(c)        EVENT(CLIENT_REPORTED, client_reported, {c})
#define WANT(c)            EVENT(WANT, want, {c, 1})
#define CONDITION(c, what) EVENT(CONDITION, condition, {c, SL_CONDITION_##what})
#define DONE(c, o, g, n)   EVENT(DONE, done, {c, o, g, SL_SWAP_OK, 0, n})
#define STOPS_B            "STOP 2 2 TERM STOP_LAST_RESORT"

static const char *at(struct play *p, uint64_t at_ms, struct sl_event event)
{
	return play(p, "story", at_ms, event);
}

static bool stops_b(struct play *p, uint64_t at_ms)
{
	return strstr(at(p, at_ms, (struct sl_event)TIME), STOPS_B);
}

static void all(struct play *p, const struct sl_event *events, size_t count)
{
	for (size_t i = 0; i < count; i++)
		(void)at(p, 0, events[i]);
}

static void is_said(void *context, const struct sl_node_because *because)
{
	*(struct sl_node_because *)context = *because;
}

static void assert_why(const struct play *p, enum sl_reason reason, uint64_t client,
	uint32_t gpu, uint64_t bytes, uint64_t other_bytes)
{
	struct sl_node_because because = {0};

	sl_node_why(p->node, R, is_said, &because);
	assert_row_text("why", sl_reason_name(because.reason), sl_reason_name(reason));
	assert_row_u64("client", because.client, client);
	assert_row_u64("other", because.other, B);
	assert_row_u64("gpu", because.gpu, gpu);
	assert_row_u64("bytes", because.bytes, bytes);
	assert_row_u64("other's bytes", because.other_bytes, other_bytes);
}

/* B is stopped on its way back, which it began at 10; R wants to be back at 20. */
static void begin(struct play *p, struct sl_event config, uint64_t request)
{
	const struct sl_event before[] = {config, GPU(0, 100), WORKLOAD(R, request),
		WORKLOAD(B, 0), COMES(R, R), REPORT(R, 0, 60), OUT(R, 0, 60), REPORTED(R),
		COMES(B, B), REPORT(B, 0, 50), OUT(B, 0, 50), REPORTED(B)};

	play_open(p);
	all(p, before, SL_ARRAY_LEN(before));
	assert_non_null(strstr(at(p, 10, (struct sl_event)WANT(B)), "RESTORE 2 g0 50"));
	(void)at(p, 20, (struct sl_event)CONDITION(B, STOPPED));
	(void)at(p, 20, (struct sl_event)WANT(R));
}

/* Memory is kept for it: it is ended, and R has its request. */
static void test_on_its_way_back(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)SWAP(STOP), 60);
	assert_why(&p, SL_REASON_STUCK_WAITS, B, 0, 60, 50);
	assert_true(sl_node_workload(p.node, R).longest_wait == SL_NS_NEVER);
	assert_false(stops_b(&p, 30019));
	assert_true(stops_b(&p, 30020));
	assert_row_u64("for R", p.last[SL_ACTION_STOP].stop.other, R);
	assert_row_u64("lacks", p.last[SL_ACTION_STOP].stop.bytes, 60);
	assert_row_u64("burst", p.last[SL_ACTION_STOP].stop.other_bytes, 50);
	assert_why(&p, SL_REASON_STOPPING_WAITS, R, 0, 60, 50);
	assert_non_null(strstr(
		at(&p, 40020, (struct sl_event)TIME), "STOP 2 2 KILL STOP_LAST_RESORT"));
	(void)at(&p, 40030, (struct sl_event)EXIT(B));
	assert_non_null(strstr(
		at(&p, 40040, (struct sl_event)RELEASED(B, 0, 0)), "RESTORE 1 g0 60"));
	play_close(&p);
}

/* Half of the grace is over when it goes on, or R wants nothing any more: it lives. */
static void test_is_let_off(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)SWAP(STOP), 60);
	assert_true(stops_b(&p, 30020));
	(void)at(&p, 35000, (struct sl_event)CONDITION(B, RUNNING));
	assert_non_null(strstr(
		at(&p, 40020, (struct sl_event)TIME), "NOTE STOP_REVOKED g0 2/1 60"));
	play_close(&p);
	begin(&p, (struct sl_event)SWAP(STOP), 60);
	assert_true(stops_b(&p, 30020));
	(void)at(&p, 35000, (struct sl_event)EVENT(WANT, want, {R, 0}));
	assert_non_null(strstr(
		at(&p, 40020, (struct sl_event)TIME), "NOTE STOP_REVOKED g0 2/1 60"));
	play_close(&p);
}

/* With the other last resort, and for a burst, no process is ended; the one in the way is named. */
static void test_nobody_is_ended(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)SWAP(FAIL), 60);
	assert_false(stops_b(&p, 100000));
	assert_why(&p, SL_REASON_STUCK_WAITS, B, 0, 60, 50);
	(void)at(&p, 100000, (struct sl_event)CONDITION(B, RUNNING));
	(void)at(
		&p, 100010, (struct sl_event)DONE(B, p.last[SL_ACTION_RESTORE].id, 0, 0));
	/* Within a request nothing takes turns with bursts. */
	assert_why(&p, SL_REASON_LEAVING_WAITS, R, 0, 60, 10);
	play_close(&p);
	begin(&p, (struct sl_event)SWAP(STOP), 59);
	assert_false(stops_b(&p, 100000));
	assert_why(&p, SL_REASON_STUCK_WAITS, B, 0, 60, 50);
	play_close(&p);
}

/* B was resident before R, and is never moved: it is not looked at before it is in the way. */
static void test_is_there(void **state)
{
	static const struct sl_event before[] = {SWAP(STOP), GPU(0, 100), WORKLOAD(B, 0),
		JOIN(B, B), ASK(B, 1, 0, 50), COMMIT(B, 1, 50), WORKLOAD(R, 60),
		COMES(R, R), REPORT(R, 0, 60), OUT(R, 0, 60), REPORTED(R), WANT(R)};
	struct play p;

	(void)state;
	play_open(&p);
	all(&p, before, SL_ARRAY_LEN(before));
	assert_why(&p, SL_REASON_TURN_WAITS, R, 0, 60, 50);
	assert_null(strstr(at(&p, 999, (struct sl_event)TIME), "PROBE"));
	assert_non_null(strstr(at(&p, 1001, (struct sl_event)TIME), "PROBE 2 2"));
	(void)at(&p, 2000, (struct sl_event)CONDITION(B, STOPPED));
	assert_why(&p, SL_REASON_STUCK_WAITS, B, 0, 60, 50);
	assert_true(stops_b(&p, 32000));
	play_close(&p);
}

/* R has 60 on the host for each of two GPUs. B is stopped on the first. C has 50 of the second, and
 * leaves if the host has room for it. Returns whether B is ended. */
static bool is_ended_on_one(uint64_t pool)
{
	enum { C = 3 };
	const struct sl_event before[] = {SWAP(STOP), GPU(0, 100), GPU(1, 100),
		ON_BOTH(R, 60), ON_BOTH(B, 0), ON_BOTH(C, 0), COMES(R, R),
		REPORT(R, 0, 60), OUT(R, 0, 60), REPORT(R, 1, 60), OUT(R, 1, 60),
		REPORTED(R), SWAPPER(B, B), SWAPPER(C, C), ASK(B, 1, 0, 50),
		COMMIT(B, 1, 50), ASK(C, 1, 1, 50), COMMIT(C, 2, 50),
		CONDITION(B, STOPPED), EVENT(POOL_SIZE, pool_size, {pool}), WANT(R)};
	struct play p;
	bool is_ended;

	play_open(&p);
	all(&p, before, SL_ARRAY_LEN(before));
	assert_why(&p, SL_REASON_STUCK_WAITS, B, 0, 60, 50);
	/* It is stopped since the first moment there is, which is not 0. */
	is_ended = stops_b(&p, 30001);
	play_close(&p);
	return is_ended;
}

static void test_two_gpus(void **state)
{
	(void)state;
	assert_true(is_ended_on_one(1000));
	assert_false(is_ended_on_one(120));
}

/* R has 60 on the host; B is stopped, C works, and D is within its request. B is ended only if C
 * cannot be made to give what R lacks, and if B's memory then suffices. */
struct others {
	const char *name;
	bool swap, c_swaps;
	uint64_t pool, b, c, d;
	bool ends;
};

static bool is_ended_beside(const struct others *row)
{
	enum { C = 3, D };
	bool is_ended;
	struct play p;

	play_open(&p);
	{
		const struct sl_event before[] = {SWAP(STOP), GPU(0, 100), WORKLOAD(B, 0),
			WORKLOAD(C, 0), WORKLOAD(D, 25), SWAPPER(B, B),
			EVENT(CLIENT_JOIN, client_join, {C, C, 0, row->c_swaps}),
			EVENT(CLIENT_JOIN, client_join, {D, D, 0, 0}),
			ASK(B, 1, 0, row->b), COMMIT(B, 1, row->b), ASK(C, 1, 0, row->c),
			COMMIT(C, 2, row->c)};
		const struct sl_event then[] = {WORKLOAD(R, 60), COMES(R, R),
			REPORT(R, 0, 60), OUT(R, 0, 60), REPORTED(R),
			CONDITION(B, STOPPED), EVENT(POOL_SIZE, pool_size, {row->pool}),
			WANT(R)};

		all(&p, before, SL_ARRAY_LEN(before));
		if (!row->swap)
			(void)at(&p, 0, (struct sl_event)ONLY_WAIT(STOP));
		if (row->d) {
			(void)at(&p, 0, (struct sl_event)ASK(D, 1, 0, row->d));
			(void)at(&p, 0, (struct sl_event)COMMIT(D, 3, row->d));
		}
		all(&p, then, SL_ARRAY_LEN(then));
	}
	is_ended = stops_b(&p, 30001) || stops_b(&p, 60000);
	if (is_ended)
		assert_non_null(strstr(at(&p, 70000, (struct sl_event)TIME), "KILL"));
	play_close(&p);
	return is_ended;
}

static void test_beside_others(void **state)
{
	static const struct others rows[] = {
		{"nobody is moved, and B is not enough", false, true, 1000, 25, 40, 25,
			false},
		{"nobody is moved, and B is enough", false, true, 1000, 30, 40, 0, true},
		{"no room there, and B is not enough", true, true, 60, 25, 40, 25, false},
		{"no room there, and B is enough", true, true, 60, 30, 40, 0, true},
		{"C is never moved, and B is not enough", true, false, 1000, 25, 40, 25,
			false},
		{"C is never moved, and B is enough", true, false, 1000, 20, 40, 0, true},
		{"C is enough", true, true, 1000, 30, 40, 0, false},
	};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++)
		assert_row_u64(rows[i].name, is_ended_beside(&rows[i]), rows[i].ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_on_its_way_back),
		cmocka_unit_test(test_is_let_off),
		cmocka_unit_test(test_nobody_is_ended),
		cmocka_unit_test(test_is_there),
		cmocka_unit_test(test_two_gpus),
		cmocka_unit_test(test_beside_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
