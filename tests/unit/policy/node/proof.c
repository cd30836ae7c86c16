/*
 * proof - a client that seems idle proves it before it is moved for a lower priority, played by
 * hand
 *
 * A GPU of 100. H, of the higher priority, has 60 and is above its limit, which was lowered. So
 * `priority` could stop H if its memory could not be moved. L asks for 60, of which 40 are free.
 */
#include "play.h"

#define CHAIN(...)                   \
	SETTINGS(.pool_bytes = 1000, \
		.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_PRIORITY, __VA_ARGS__))
#define WORKLOAD(w, priority) \
	EVENT(WORKLOAD_ADD, workload_add, {w, BYTES(0), BYTES(100), 1, 1, priority})
#define LIMIT(w, n) \
	EVENT(WORKLOAD_SET, workload_set, {w, SL_SET_LIMIT, BYTES(0), BYTES(n)})
#define SWAPPER(c, w)        EVENT(CLIENT_JOIN, client_join, {c, w, 0, 1})
#define PULSE(c, idle, busy) EVENT(PULSE, pulse, {c, idle, busy, 0})
#define PROOF(c, idle)       EVENT(PULSE, pulse, {c, idle, 0, 1})

enum { H = 1, L };

static void says(struct play *p, const char *row, uint64_t at_ms, struct sl_event event,
	const char *expected)
{
	const char *got = play(p, row, at_ms, event);

	assert_row_text(row, got, expected);
}

/* H has had no work for 5 s, by its reports, and was not asked for a proof. L asks at 10 s. */
static void begin(struct play *p, struct sl_event config)
{
	const struct sl_event events[] = {config, GPU(0, 100), WORKLOAD(H, 1),
		WORKLOAD(L, 0), SWAPPER(H, H), SWAPPER(L, L), ASK(H, 1, 0, 60),
		COMMIT(H, 1, 60), LIMIT(H, 50)};

	play_open(p);
	for (size_t i = 0; i < SL_ARRAY_LEN(events); i++)
		(void)play(p, "before", 0, events[i]);
	(void)play(p, "H idles", 5000, (struct sl_event)PULSE(H, SL_S, 0));
}

#define ASKS(p) play(p, "L asks", 10000, (struct sl_event)ASK(L, 1, 0, 60))

/* No process is stopped for memory that the answer may let be moved. */
static void is_moved(struct sl_event config)
{
	struct play p;
	const char *got;

	begin(&p, config);
	got = ASKS(&p);
	assert_null(strstr(got, "STOP"));
	assert_null(strstr(got, "DENY"));
	assert_non_null(strstr(got, "PROBE 1 2"));
	assert_non_null(strstr(
		play(&p, "the proof", 10500, (struct sl_event)PROOF(H, 6500 * SL_MS)),
		"EVICT 1 g0 20 EVICTED_FOR"));
	play_close(&p);
}

static void test_waits_for_it(void **state)
{
	(void)state;
	is_moved((struct sl_event)CHAIN(SL_RESOLVER_WAIT));
	/* Nor is a burst refused for want of `wait`. */
	is_moved((struct sl_event)CHAIN(0));
}

/* No process is ended for L, because its turn comes: after slice / min_share L is overdue, and H
 * leaves for it without a proof. */
static void turn_comes(struct play *p)
{
	assert_null(strstr(play(p, "not yet", 13999, (struct sl_event)TIME), "STOP"));
	says(p, "the turn of L", 14000, (struct sl_event)TIME,
		"EVICT 1 g0 20 EVICTED_FOR");
}

/* A capture is open, or its last work never ends: then it counts as busy. */
static void test_not_for_ever(void **state)
{
	struct play p;
	const char *got;

	(void)state;
	begin(&p, (struct sl_event)CHAIN(SL_RESOLVER_WAIT));
	(void)ASKS(&p);
	p.shows_wakes = true;
	got = play(&p, "idle, it says", 11000, (struct sl_event)PULSE(H, 7 * SL_S, 0));
	assert_null(strstr(got, "STOP"));
	assert_non_null(strstr(got, "WAKE 14000"));
	p.shows_wakes = false;
	turn_comes(&p);
	play_close(&p);
}

static void test_is_busy(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)CHAIN(SL_RESOLVER_WAIT));
	(void)ASKS(&p);
	assert_null(strstr(
		play(&p, "it works", 10500, (struct sl_event)PULSE(H, 0, 400 * SL_MS)),
		"STOP"));
	turn_comes(&p);
	play_close(&p);
}

/* Asked for the sake of another before: the answer would have been there. */
static void test_was_asked_before(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)CHAIN(SL_RESOLVER_WAIT));
	(void)play(&p, "back to its limit", 9000, (struct sl_event)LIMIT(H, 100));
	says(&p, "L asks", 10000, (struct sl_event)ASK(L, 1, 0, 60), "PROBE 1 2");
	(void)play(&p, "in vain", 12000, (struct sl_event)TIME);
	assert_null(strstr(
		play(&p, "its limit is lowered", 13000, (struct sl_event)LIMIT(H, 50)),
		"STOP"));
	turn_comes(&p);
	play_close(&p);
}

/* The host has no room for what H would leave: no proof helps, and no turn comes. */
static void test_has_no_turn(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)CHAIN(SL_RESOLVER_WAIT));
	(void)play(
		&p, "no room", 9000, (struct sl_event)EVENT(POOL_SIZE, pool_size, {10}));
	says(&p, "L asks", 10000, (struct sl_event)ASK(L, 1, 0, 60),
		"STOP 1 1 TERM STOP_OVER_LIMIT; PROBE 1 2");
	play_close(&p);
}

/* No demand waits for H's memory any more. So H need not prove anything, and is watched only for
 * `priority`. */
static void test_for_nobody(void **state)
{
	const struct sl_event events[] = {
		SETTINGS(.stop_idle = 60 * SL_S,
			.chain = SL_CHAIN(SL_RESOLVER_PRIORITY, SL_RESOLVER_WAIT, 0)),
		GPU(0, 100), WORKLOAD(H, 1),
		EVENT(WORKLOAD_ADD, workload_add, {L, BYTES(50), BYTES(100), 1, 1, 0}),
		SWAPPER(H, H), SWAPPER(L, L), ASK(H, 1, 0, 50), COMMIT(H, 1, 50),
		EVENT(HIDDEN, hidden, {H, 0, 50})};
	struct play p;

	(void)state;
	play_open(&p);
	for (size_t i = 0; i < SL_ARRAY_LEN(events); i++)
		(void)play(&p, "before", 0, events[i]);
	(void)play(&p, "H idles", 70000, (struct sl_event)PULSE(H, 65 * SL_S, 0));
	says(&p, "L asks", 70000, (struct sl_event)ASK(L, 1, 0, 50), "PROBE 1 2");
	says(&p, "and gives up", 70001, (struct sl_event)EVENT(CANCEL, cancel, {L, 1}),
		"DENY 2/1 CANCELLED g0");
	says(&p, "for a while", 71000, (struct sl_event)TIME, "PROBE 1 1");
	play_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits_for_it),
		cmocka_unit_test(test_not_for_ever),
		cmocka_unit_test(test_is_busy),
		cmocka_unit_test(test_was_asked_before),
		cmocka_unit_test(test_has_no_turn),
		cmocka_unit_test(test_for_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
