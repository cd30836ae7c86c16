/*
 * grace - a workload within its request is moved for a burst only after its idle_grace
 *
 * A has 40 of a GPU of 100 within its request of 40, B 60 above its request of 0, and the pool has
 * space for all. A has an idle_grace of 5 s.
 */
#include "play.h"

#define SWAP                          \
	SETTINGS(.pool_bytes = 10000, \
		.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0))
#define WORKLOAD(w, r, g)                       \
	EVENT(WORKLOAD_ADD, workload_add,       \
		{.workload = w,                 \
			.request = r,           \
			.limit = PART(1000000), \
			.gpu_count = 1,         \
			.gpu_mask = 1,          \
			.idle_grace = g})
#define SWAPPER(c, w)      EVENT(CLIENT_JOIN, client_join, {c, w, 0, 1})
#define DONE(c, o, n)      EVENT(DONE, done, {c, o, 0, SL_SWAP_OK, 0, n})
#define IDLE(c, ms, proof) EVENT(PULSE, pulse, {c, ms * SL_MS, 0, proof})
#define BUSY(c, ms)        EVENT(PULSE, pulse, {c, 0, ms * SL_MS})
#define WORK(c)            EVENT(WORK, work, {c})
#define HELD(c, n)         EVENT(HELD, held, {c, 0, n})
#define WANT(c)            EVENT(WANT, want, {c, 1})
#define GRACE(w, span)                    \
	EVENT(WORKLOAD_SET, workload_set, \
		{.workload = w, .which = SL_SET_GRACE, .idle_grace = span})

enum { A = 1, B = 2 };

static const char *at(struct play *p, uint64_t at_ms, struct sl_event event)
{
	return play(p, "story", at_ms, event);
}

static void begin(struct play *p, sl_ns grace)
{
	play_open(p);
	(void)at(p, 0, (struct sl_event)SWAP);
	(void)at(p, 0, (struct sl_event)GPU(0, 100));
	(void)at(p, 0, (struct sl_event)WORKLOAD(A, BYTES(40), grace));
	(void)at(p, 0, (struct sl_event)WORKLOAD(B, BYTES(0), 0));
	(void)at(p, 0, (struct sl_event)SWAPPER(A, A));
	(void)at(p, 0, (struct sl_event)SWAPPER(B, B));
	play_has(p, A, 1, 40);
	play_has(p, B, 1, 60);
}

/* B asks for 20 more; A has done nothing for a second, and proves it. */
static void asks(struct play *p)
{
	assert_null(strstr(at(p, 1000, (struct sl_event)ASK(B, 2, 0, 20)), "EVICT"));
}

static bool leaves(struct play *p, uint64_t at_ms, struct sl_event event)
{
	return strstr(at(p, at_ms, event), "EVICT 1 g0 20 EVICTED_FOR") != NULL;
}

static struct sl_node_because found;

static void keep(void *context, const struct sl_node_because *because)
{
	found = *because;
}

static void not_before_its_grace(void **state)
{
	struct play p;

	begin(&p, 5 * SL_S);
	asks(&p);
	assert_false(leaves(&p, 2000, (struct sl_event)IDLE(A, 2000, 1)));
	assert_false(leaves(&p, 4990, (struct sl_event)TIME));
	sl_node_why(p.node, B, keep, NULL);
	assert_row_text("why it waits", sl_reason_name(found.reason), "GRACE_WAITS");
	assert_row_u64("who has it", found.other, A);
	assert_row_u64("so much", found.other_bytes, 40);
	assert_true(leaves(&p, 5001, (struct sl_event)TIME));
	play_close(&p);
}

static bool has_grace_waits, has_stays_waits;

static void note(void *context, const struct sl_node_because *because)
{
	has_grace_waits |= because->reason == SL_REASON_GRACE_WAITS;
	has_stays_waits |= because->reason == SL_REASON_STAYS_WAITS;
}

/* A's memory cannot be moved, so neither its idleness nor a request of B would help. */
static void nothing_is_promised_of_what_stays(void **state)
{
	struct play p;

	begin(&p, 5 * SL_S);
	(void)at(&p, 0, (struct sl_event)HELD(A, 40));
	asks(&p);
	(void)at(&p, 2000, (struct sl_event)IDLE(A, 2000, 1));
	has_grace_waits = has_stays_waits = false;
	sl_node_why(p.node, B, note, NULL);
	assert_true(has_stays_waits);
	assert_false(has_grace_waits);
	play_close(&p);
}

static char said[256];

static void add_name(void *context, const struct sl_node_because *because)
{
	(void)snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s%s %u",
		said[0] ? ", " : "", sl_reason_name(because->reason),
		(unsigned)because->other);
}

static void says_why(struct play *p, uint64_t workload, const char *want)
{
	said[0] = '\0';
	sl_node_why(p->node, workload, add_name, NULL);
	assert_row_text("why", said, want);
}

/* K has 50 above its request and is never moved. B and C, of 30 each, take turns in the rest, and C
 * has its turn. If K left, both would fit. But K takes no turns: no client waits for a turn of K,
 * and K waits for none. */
static void a_burst_that_stays_has_no_turns(void **state)
{
	enum { K = 3, C = 4 };

	struct play p;

	play_open(&p);
	(void)at(&p, 0, (struct sl_event)SWAP);
	(void)at(&p, 0, (struct sl_event)GPU(0, 100));
	(void)at(&p, 0,
		(struct sl_event)EVENT(WORKLOAD_ADD, workload_add,
			{.workload = K,
				.request = BYTES(0),
				.limit = PART(1000000),
				.gpu_count = 1,
				.gpu_mask = 1,
				.flags = SL_WORKLOAD_NO_SWAP}));
	(void)at(&p, 0, (struct sl_event)WORKLOAD(B, BYTES(0), 0));
	(void)at(&p, 0, (struct sl_event)WORKLOAD(C, BYTES(0), 0));
	(void)at(&p, 0, (struct sl_event)SWAPPER(K, K));
	(void)at(&p, 0, (struct sl_event)SWAPPER(B, B));
	(void)at(&p, 0, (struct sl_event)SWAPPER(C, C));
	play_has(&p, K, 1, 50);
	play_has(&p, B, 1, 30);
	play_has(&p, C, 1, 20);
	(void)at(&p, 1000, (struct sl_event)ASK(C, 2, 0, 10));
	(void)at(&p, 1010, (struct sl_event)DONE(B, p.last[SL_ACTION_EVICT].id, 10));
	(void)at(&p, 1010,
		(struct sl_event)COMMIT(C, p.last[SL_ACTION_GRANT].grant.epoch, 10));
	(void)at(&p, 1020, (struct sl_event)WANT(B));
	says_why(&p, B, "TURN_WAITS 4, BURST_STAYS 3");
	assert_row_u64("K has no turns", sl_node_workload(p.node, K).longest_wait, 0);
	assert_true(sl_node_workload(p.node, B).longest_wait > 0);
	play_close(&p);
}

/* B is stopped while it is to leave for A. It waits for itself, and for no turn. */
static void who_is_stopped_waits_for_nobody(void **state)
{
	struct play p;

	play_open(&p);
	(void)at(&p, 0, (struct sl_event)SWAP);
	(void)at(&p, 0, (struct sl_event)GPU(0, 100));
	(void)at(&p, 0, (struct sl_event)WORKLOAD(A, BYTES(60), 5 * SL_S));
	(void)at(&p, 0, (struct sl_event)WORKLOAD(B, BYTES(0), 0));
	(void)at(&p, 0, (struct sl_event)SWAPPER(A, A));
	(void)at(&p, 0, (struct sl_event)SWAPPER(B, B));
	play_has(&p, A, 1, 40);
	play_has(&p, B, 1, 60);
	assert_true(strstr(at(&p, 1000, (struct sl_event)ASK(A, 2, 0, 20)), "EVICT 2"));
	(void)at(&p, 1010,
		(struct sl_event)EVENT(CONDITION, condition, {B, SL_CONDITION_STOPPED}));
	(void)at(&p, 2000, (struct sl_event)TIME);
	assert_row_u64("B", sl_node_workload(p.node, B).longest_wait, 0);
	play_close(&p);
}

/* A has been idle for long; B and C have 30 each and ask for 20 more each. Without A all would fit,
 * but the pool has no room for what would have to leave. So no turn comes, and the wait has no
 * bound. */
static void no_bound_where_the_pool_is_full(void **state)
{
	enum { C = 3 };

	struct sl_node_workload_view view;
	struct play p;

	play_open(&p);
	(void)at(&p, 0,
		(struct sl_event)SETTINGS(.pool_bytes = 8,
			.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0)));
	(void)at(&p, 0, (struct sl_event)GPU(0, 100));
	(void)at(&p, 0, (struct sl_event)WORKLOAD(A, BYTES(40), 5 * SL_S));
	(void)at(&p, 0, (struct sl_event)WORKLOAD(B, BYTES(0), 0));
	(void)at(&p, 0, (struct sl_event)WORKLOAD(C, BYTES(0), 0));
	for (uint64_t i = A; i <= C; i++) {
		(void)at(&p, 0, (struct sl_event)SWAPPER(i, i));
		play_has(&p, i, 1, i == A ? 40 : 30);
	}
	(void)at(&p, 20000, (struct sl_event)IDLE(A, 20000, 1));
	(void)at(&p, 20000, (struct sl_event)ASK(B, 2, 0, 20));
	(void)at(&p, 20000, (struct sl_event)ASK(C, 2, 0, 20));
	(void)at(&p, 21000, (struct sl_event)TIME);
	for (uint64_t i = B; i <= C; i++) {
		view = sl_node_workload(p.node, i);
		assert_row_u64("no bound", view.longest_wait, SL_NS_NEVER);
		assert_row_u64("the pool", view.endless, SL_ENDLESS_POOL);
	}
	play_close(&p);
}

/* The last work counts, even where the turn is long over and the client is idle otherwise. */
static void work_begins_it_anew(void **state)
{
	struct play p;

	begin(&p, 5 * SL_S);
	asks(&p);
	(void)at(&p, 2000, (struct sl_event)IDLE(A, 2000, 1));
	(void)at(&p, 4900, (struct sl_event)EVENT(WORK, work, {A}));
	(void)at(&p, 4950, (struct sl_event)IDLE(A, 50, 1));
	assert_false(leaves(&p, 9000, (struct sl_event)TIME));
	assert_false(leaves(&p, 9890, (struct sl_event)TIME));
	assert_true(leaves(&p, 9950, (struct sl_event)TIME));
	play_close(&p);
}

/* Idle for long enough by all that was heard, which a kernel that runs on would be, too. */
static void not_unproven(void **state)
{
	struct play p;

	begin(&p, 5 * SL_S);
	asks(&p);
	(void)at(&p, 2000, (struct sl_event)IDLE(A, 2000, 0));
	assert_false(leaves(&p, 6000, (struct sl_event)TIME));
	assert_false(leaves(&p, 30000, (struct sl_event)TIME));
	assert_true(leaves(&p, 30010, (struct sl_event)IDLE(A, 30010, 1)));
	play_close(&p);
}

/* A, idle for long, is told to leave for B, and works again before anything has moved. So D is to
 * leave instead. But the pool has space for only one of them, and until A answers it may have begun
 * to leave. */
static void who_leaves_instead_waits_for_the_answer(void **state)
{
	enum { D = 3 };
	struct play p;

	play_open(&p);
	(void)at(&p, 0, (struct sl_event)SWAP);
	(void)at(&p, 0, (struct sl_event)GPU(0, 100));
	(void)at(&p, 0, (struct sl_event)WORKLOAD(A, BYTES(40), 5 * SL_S));
	(void)at(&p, 0, (struct sl_event)WORKLOAD(B, BYTES(0), 0));
	(void)at(&p, 0,
		(struct sl_event)EVENT(WORKLOAD_ADD, workload_add,
			{.workload = D,
				.request = BYTES(0),
				.limit = PART(1000000),
				.gpu_count = 1,
				.gpu_mask = 1,
				.priority = -1}));
	(void)at(&p, 0, (struct sl_event)SWAPPER(A, A));
	(void)at(&p, 0, (struct sl_event)SWAPPER(B, B));
	(void)at(&p, 0, (struct sl_event)SWAPPER(D, D));
	play_has(&p, A, 1, 40);
	play_has(&p, B, 1, 40);
	play_has(&p, D, 1, 20);
	(void)at(&p, 6000, (struct sl_event)WORK(D));
	(void)at(&p, 6000, (struct sl_event)IDLE(A, 6000, 1));
	assert_non_null(strstr(at(&p, 6010, (struct sl_event)ASK(B, 2, 0, 20)),
		"EVICT 1 g0 20 EVICTED_FOR"));
	assert_string_equal(at(&p, 6020, (struct sl_event)WORK(A)), "ABORT 1");
	assert_string_equal(at(&p, 6030, (struct sl_event)TIME), "");
	assert_string_equal(
		at(&p, 6040,
			(struct sl_event)EVENT(DONE, done,
				{A, p.last[SL_ACTION_EVICT].id, 0, SL_SWAP_REFUSED,
					SL_SWAP_ABORTED, 0})),
		"EVICT 3 g0 20 EVICTED_FOR");
	play_close(&p);
}

static void without_one_as_soon_as_it_is_idle(void **state)
{
	struct play p;

	begin(&p, 0);
	asks(&p);
	assert_true(leaves(&p, 2000, (struct sl_event)IDLE(A, 2000, 1)));
	play_close(&p);
	begin(&p, 5 * SL_S);
	asks(&p);
	assert_false(leaves(&p, 2000, (struct sl_event)IDLE(A, 2000, 1)));
	(void)at(&p, 2010, (struct sl_event)GRACE(A, 0));
	assert_non_null(strstr(p.text, "EVICT 1 g0 20"));
	play_close(&p);
}

/* Its longest wait has no bound then, and that is said. */
static void a_burst_has_no_longest_wait(void **state)
{
	struct sl_node_workload_view view;
	struct play p;

	begin(&p, 5 * SL_S);
	asks(&p);
	view = sl_node_workload(p.node, B);
	assert_true(view.longest_wait == SL_NS_NEVER);
	assert_int_equal(view.endless, SL_ENDLESS_REQUESTS);
	view = sl_node_workload(p.node, A);
	assert_true(view.longest_wait != SL_NS_NEVER);
	play_close(&p);
}

/* A was idle for long enough and is on the host. It takes memory back from B after the first 200 ms
 * of B's turn, although moving B costs 4 s. */
static void a_return_takes_bursts_at_once(void **state)
{
	struct play p;

	begin(&p, 5 * SL_S);
	(void)at(&p, 0, (struct sl_event)EVENT(LINK_COST, link_cost, {0, 10, 10}));
	asks(&p);
	(void)at(&p, 2000, (struct sl_event)IDLE(A, 2000, 1));
	assert_true(leaves(&p, 9000, (struct sl_event)TIME));
	assert_non_null(strstr(
		at(&p, 9010, (struct sl_event)DONE(A, p.last[SL_ACTION_EVICT].id, 20)),
		"GRANT 2/2"));
	(void)at(&p, 9010,
		(struct sl_event)COMMIT(B, p.last[SL_ACTION_GRANT].grant.epoch, 20));
	assert_non_null(strstr(
		at(&p, 9300, (struct sl_event)WANT(A)), "EVICT 2 g0 20 EVICTED_FOR"));
	play_close(&p);
}

/* The rest of A could not run after that, and leaves as soon as another client asks. */
static void a_part_has_none(void **state)
{
	struct play p;

	begin(&p, 5 * SL_S);
	asks(&p);
	(void)at(&p, 2000, (struct sl_event)IDLE(A, 2000, 1));
	assert_true(leaves(&p, 9000, (struct sl_event)TIME));
	(void)at(&p, 9010, (struct sl_event)DONE(A, p.last[SL_ACTION_EVICT].id, 20));
	(void)at(&p, 9010,
		(struct sl_event)COMMIT(B, p.last[SL_ACTION_GRANT].grant.epoch, 20));
	(void)at(&p, 9012, (struct sl_event)IDLE(A, 9012, 0));
	assert_true(leaves(&p, 9020, (struct sl_event)ASK(B, 3, 0, 20)));
	play_close(&p);
}

/* It works on a second GPU, too, and that is lost: it stays on the first. */
static void a_lost_gpu_takes_none_of_it(void **state)
{
	struct sl_event two = WORKLOAD(A, BYTES(60), 5 * SL_S);
	struct play p;

	two.workload_add.gpu_count = 2;
	two.workload_add.gpu_mask = 3;
	play_open(&p);
	(void)at(&p, 0, (struct sl_event)SWAP);
	(void)at(&p, 0, (struct sl_event)GPU(0, 100));
	(void)at(&p, 0, (struct sl_event)GPU(1, 100));
	(void)at(&p, 0, two);
	(void)at(&p, 0, (struct sl_event)WORKLOAD(B, BYTES(0), 0));
	(void)at(&p, 0, (struct sl_event)SWAPPER(A, A));
	(void)at(&p, 0, (struct sl_event)SWAPPER(B, B));
	play_has(&p, A, 1, 60);
	(void)at(&p, 0, (struct sl_event)ASK(A, 2, 1, 60));
	(void)at(&p, 0, (struct sl_event)COMMIT(A, 2, 60));
	play_has(&p, B, 1, 40);
	(void)at(&p, 1, (struct sl_event)LOST(1));
	(void)at(&p, 9000, (struct sl_event)WORK(A));
	assert_false(leaves(&p, 9000, (struct sl_event)ASK(B, 2, 0, 20)));
	assert_false(leaves(&p, 9000, (struct sl_event)BUSY(A, 10)));
	assert_false(leaves(&p, 13000, (struct sl_event)TIME));
	play_close(&p);
}

/* Another process of A works in held memory, and cannot leave itself. */
static void work_in_what_is_held_counts(void **state)
{
	enum { HOLDER = 3 };
	struct play p;

	play_open(&p);
	(void)at(&p, 0, (struct sl_event)SWAP);
	(void)at(&p, 0, (struct sl_event)GPU(0, 100));
	(void)at(&p, 0, (struct sl_event)WORKLOAD(A, BYTES(40), 5 * SL_S));
	(void)at(&p, 0, (struct sl_event)WORKLOAD(B, BYTES(0), 0));
	(void)at(&p, 0, (struct sl_event)SWAPPER(A, A));
	(void)at(&p, 0, (struct sl_event)SWAPPER(HOLDER, A));
	(void)at(&p, 0, (struct sl_event)SWAPPER(B, B));
	play_has(&p, A, 1, 20);
	play_has(&p, HOLDER, 1, 20);
	play_has(&p, B, 1, 60);
	(void)at(&p, 10, (struct sl_event)HELD(HOLDER, 20));
	(void)at(&p, 1000, (struct sl_event)WORK(HOLDER));
	(void)at(&p, 2000, (struct sl_event)BUSY(HOLDER, 1000));
	asks(&p);
	assert_false(leaves(&p, 10000, (struct sl_event)IDLE(A, 10000, 1)));
	assert_true(leaves(&p, 20000, (struct sl_event)IDLE(HOLDER, 9000, 1)));
	play_close(&p);
}

/* Another process of A is on the host and wants to run: B leaves for it, not the rest of A. */
static void what_wants_to_come_back_is_not_idle(void **state)
{
	enum { SECOND = 3 };
	struct play p;
	const char *orders;

	play_open(&p);
	(void)at(&p, 0, (struct sl_event)SWAP);
	(void)at(&p, 0, (struct sl_event)GPU(0, 100));
	(void)at(&p, 0, (struct sl_event)WORKLOAD(A, BYTES(40), 5 * SL_S));
	(void)at(&p, 0, (struct sl_event)WORKLOAD(B, BYTES(0), 0));
	(void)at(&p, 0, (struct sl_event)SWAPPER(A, A));
	(void)at(&p, 0, (struct sl_event)SWAPPER(SECOND, A));
	(void)at(&p, 0, (struct sl_event)SWAPPER(B, B));
	play_has(&p, A, 1, 20);
	play_has(&p, SECOND, 1, 20);
	play_has(&p, B, 1, 60);
	asks(&p);
	(void)at(&p, 10000, (struct sl_event)IDLE(A, 9000, 1));
	assert_non_null(strstr(at(&p, 10000, (struct sl_event)IDLE(SECOND, 10000, 1)),
		"EVICT 3 g0 20 EVICTED_FOR"));
	(void)at(
		&p, 10100, (struct sl_event)DONE(SECOND, p.last[SL_ACTION_EVICT].id, 20));
	(void)at(&p, 10200,
		(struct sl_event)COMMIT(B, p.last[SL_ACTION_GRANT].grant.epoch, 20));
	orders = at(&p, 30000, (struct sl_event)WANT(SECOND));
	assert_non_null(strstr(orders, "EVICT 2 g0 20 EVICTED_FOR"));
	assert_null(strstr(orders, "EVICT 1 "));
	play_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(not_before_its_grace),
		cmocka_unit_test(nothing_is_promised_of_what_stays),
		cmocka_unit_test(a_burst_that_stays_has_no_turns),
		cmocka_unit_test(who_is_stopped_waits_for_nobody),
		cmocka_unit_test(no_bound_where_the_pool_is_full),
		cmocka_unit_test(work_begins_it_anew),
		cmocka_unit_test(not_unproven),
		cmocka_unit_test(work_in_what_is_held_counts),
		cmocka_unit_test(what_wants_to_come_back_is_not_idle),
		cmocka_unit_test(who_leaves_instead_waits_for_the_answer),
		cmocka_unit_test(without_one_as_soon_as_it_is_idle),
		cmocka_unit_test(a_burst_has_no_longest_wait),
		cmocka_unit_test(a_return_takes_bursts_at_once),
		cmocka_unit_test(a_part_has_none),
		cmocka_unit_test(a_lost_gpu_takes_none_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
