/*
 * away - demands whose longest wait ends while their client is on the host, or on its way, played
 * by hand
 *
 * A has 40 of a GPU of 100 and asks for 15 more, of which 10 are free: it lacks 5. N has 40 that
 * cannot be moved. S has 10 that could be moved, but it is stopped. C, which cannot be moved
 * either, has a request of 35, for which A has to leave.
 */
#include "play.h"

#define SWAP(first, second)           \
	SETTINGS(.pool_bytes = 10000, \
		.chain = SL_CHAIN(SL_RESOLVER_##first, SL_RESOLVER_##second, 0))
#define WORKLOAD(w, request) EVENT(WORKLOAD_ADD, workload_add, {w, request, ANY, 1, 1, 0})
#define SWAPPER(c, w)        EVENT(CLIENT_JOIN, client_join, {c, w, 0, 1})
#define DONE(c, o, n)        EVENT(DONE, done, {c, o, 0, SL_SWAP_OK, 0, n})
#define REFUSED(c, o)        EVENT(DONE, done, {c, o, 0, SL_SWAP_REFUSED, SL_SWAP_BUSY, 0})
#define CONDITION(c, what)   EVENT(CONDITION, condition, {c, SL_CONDITION_##what})

static const char *at(struct play *p, uint64_t at_ms, struct sl_event event)
{
	return play(p, "story", at_ms, event);
}

static void begin(struct play *p, struct sl_event settings)
{
	play_open(p);
	(void)at(p, 0, settings);
	(void)at(p, 0, (struct sl_event)GPU(0, 100));
	(void)at(p, 0, (struct sl_event)WORKLOAD(1, ANY));
	(void)at(p, 0, (struct sl_event)WORKLOAD(2, ANY));
	(void)at(p, 0, (struct sl_event)WORKLOAD(4, ANY));
	(void)at(p, 0, (struct sl_event)SWAPPER(1, 1));
	(void)at(p, 0, (struct sl_event)JOIN(2, 2));
	(void)at(p, 0, (struct sl_event)SWAPPER(4, 4));
	play_has(p, 1, 1, 40);
	play_has(p, 2, 1, 40);
	play_has(p, 4, 1, 10);
	(void)at(p, 0, (struct sl_event)WORKLOAD(3, BYTES(35)));
	(void)at(p, 0, (struct sl_event)JOIN(3, 3));
	(void)at(p, 0, (struct sl_event)CONDITION(4, STOPPED));
	(void)at(p, 0, (struct sl_event)ASK(1, 2, 0, 15));
	assert_row_u64("A waits", sl_node_use(p->node, 1, 0).waiting, 1);
}

static uint64_t evicted_as(const struct play *p)
{
	return p->last[SL_ACTION_EVICT].id;
}

/* C asks for its request, and has it once A has left. */
static void leaves_for_c(struct play *p, uint64_t at_ms, uint64_t ask)
{
	assert_non_null(strstr(at(p, at_ms, (struct sl_event)ASK(3, ask, 0, 35)),
		"EVICT 1 g0 25 EVICTED_FOR"));
	assert_non_null(
		strstr(at(p, at_ms + 10, (struct sl_event)DONE(1, evicted_as(p), 25)),
			"GRANT 3/"));
	(void)at(p, at_ms + 10,
		(struct sl_event)COMMIT(3, p->last[SL_ACTION_GRANT].grant.epoch, 35));
}

/* A demand that can never be served brings no client back: A has 40 and asks for 15, and N and S
 * keep 50. The demand has one longest wait, wherever its client is meanwhile. */
static void test_over_while_away(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)SWAP(SWAP, WAIT));
	leaves_for_c(&p, 1000, 1);
	assert_null(strstr(at(&p, 2000, (struct sl_event)FREED(3, 0, 35)), "RESTORE"));
	assert_null(strstr(at(&p, 59999, (struct sl_event)TIME), "DENY"));
	assert_non_null(
		strstr(at(&p, 60001, (struct sl_event)TIME), "DENY 1/2 WAITED_TOO_LONG"));
	play_close(&p);
}

/* A also works, and comes back for that. Once S can be moved, A is resident, and S leaves for A's
 * demand. */
static void test_over_in_vain(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)SWAP(SWAP, WAIT));
	leaves_for_c(&p, 1000, 1);
	(void)at(&p, 1500, (struct sl_event)EVENT(WANT, want, {1, 1}));
	assert_non_null(strstr(
		at(&p, 2000, (struct sl_event)FREED(3, 0, 35)), "RESTORE 1 g0 25"));
	(void)at(&p, 2010, (struct sl_event)DONE(1, p.last[SL_ACTION_RESTORE].id, 0));
	assert_non_null(strstr(
		at(&p, 3000, (struct sl_event)CONDITION(4, RUNNING)), "EVICT 4 g0 5"));
	play_close(&p);
}

/* `wait` before `swap` is a time for bursts: C is within its request, and has its memory at
 * once. */
static void test_a_request_does_not_wait(void **state)
{
	struct play p;

	(void)state;
	begin(&p, (struct sl_event)SWAP(WAIT, SWAP));
	leaves_for_c(&p, 1000, 1);
	assert_non_null(
		strstr(at(&p, 60001, (struct sl_event)TIME), "DENY 1/2 WAITED_TOO_LONG"));
	play_close(&p);
}

/* A process that does not answer makes no claim, but its demand still waits. Another process of its
 * workload gets what the limit had left for that demand. */
static void test_denied_by_the_limit(void **state)
{
	enum { AWAY = 1, OTHER };
	struct play p;

	(void)state;
	play_open(&p);
	(void)at(&p, 0, (struct sl_event)SWAP(SWAP, WAIT));
	(void)at(&p, 0, (struct sl_event)GPU(0, 200));
	(void)at(&p, 0,
		(struct sl_event)EVENT(WORKLOAD_ADD, workload_add,
			{1, BYTES(100), BYTES(100), 1, 1, 0}));
	(void)at(&p, 0, (struct sl_event)SWAPPER(AWAY, 1));
	(void)at(&p, 0, (struct sl_event)SWAPPER(OTHER, 1));
	play_has(&p, AWAY, 1, 40);
	(void)at(&p, 0, (struct sl_event)EVENT(WORKLOAD_PARK, workload_park, {1}));
	(void)at(&p, 10, (struct sl_event)DONE(AWAY, evicted_as(&p), 40));
	(void)at(&p, 20, (struct sl_event)CONDITION(AWAY, STOPPED));
	(void)at(&p, 30, (struct sl_event)EVENT(WORKLOAD_RESUME, workload_resume, {1}));
	(void)at(&p, 40, (struct sl_event)ASK(AWAY, 2, 0, 50));
	assert_non_null(
		strstr(at(&p, 50, (struct sl_event)ASK(OTHER, 1, 0, 30)), "GRANT 2/1"));
	assert_non_null(strstr(at(&p, 50, (struct sl_event)TIME), "DENY 1/2 OVER_LIMIT"));
	play_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_over_while_away),
		cmocka_unit_test(test_over_in_vain),
		cmocka_unit_test(test_a_request_does_not_wait),
		cmocka_unit_test(test_denied_by_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
