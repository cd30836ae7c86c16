/*
 * evict - whom memory is taken from, and when; turns, as arithmetic
 */
#include "../base/test.h"

#include "policy/verdicts/evict.h"
#include "policy/verdicts/turns.h"

#define POOL 1000

/* A client with bytes, of which burst are above its workload's request; so much is left of its
 * turn. */
#define CLIENT(number, n, burst, part, turn, ...)                           \
	{                                                                   \
		.id = (number), .workload = (number)-1, .bytes = (n),       \
		.burst_bytes = (burst), .within_bytes = (n) - (burst),      \
		.share_bytes = POOL, .idle_enough = 20 * SL_MS,             \
		.first_part_left = (part), .turn_left = (turn), __VA_ARGS__ \
	}
/* In its turn; after its first part; after all of it. */
#define BUSY(number, n, burst, ...) \
	CLIENT(number, n, burst, 20 * SL_MS, SL_S, __VA_ARGS__)
#define LATE(number, n, burst, ...) CLIENT(number, n, burst, 0, SL_S, __VA_ARGS__)
#define OVER(number, n, burst, ...) CLIENT(number, n, burst, 0, 0, __VA_ARGS__)

struct row {
	const char *name;
	struct sl_evict_ask ask;
	struct sl_evict_candidate candidate[3];
	bool enough, ever;
	sl_ns next;
	uint64_t take[3]; /* by id */
};

static const struct row rows[] = {
	{"busy in their turns", {.missing_bytes = 10}, {BUSY(1, 50, 0), BUSY(2, 50, 0)},
		false, true, SL_S, {0}},
	{"the turn is over", {.missing_bytes = 10}, {BUSY(1, 50, 0), OVER(2, 50, 0)},
		true, true, SL_NS_NEVER, {0, 10}},
	{"idle before busy", {.missing_bytes = 60},
		{OVER(1, 50, 50), BUSY(2, 50, 0, .idle = SL_S, .proven = true)}, true,
		true, SL_NS_NEVER, {10, 50}},
	{"idle for longest first", {.missing_bytes = 10},
		{BUSY(1, 50, 0, .idle = SL_S, .proven = true),
			BUSY(2, 50, 0, .idle = 2 * SL_S, .proven = true)},
		true, true, SL_NS_NEVER, {0, 10}},
	{"idle, not proven", {.missing_bytes = 10}, {BUSY(1, 50, 0, .idle = SL_S)}, false,
		true, SL_S, {0}},
	{"a higher priority is to prove it", {.missing_bytes = 10, .priority = -1},
		{OVER(1, 50, 0, .idle = SL_S, .proof_left = SL_S)}, false, true, SL_S,
		{0}},
	{"all of it then, for whom only bursts are",
		{.missing_bytes = 40, .priority = -1, .entitled = true},
		{BUSY(1, 50, 30, .idle = SL_S, .proof_left = SL_S)}, false, true,
		20 * SL_MS, {0}},
	{"but not if it did not", {.missing_bytes = 10, .priority = -1},
		{OVER(1, 50, 0, .idle = SL_S)}, false, false, SL_NS_NEVER, {0}},
	{"nor what it has within its request",
		{.missing_bytes = 40, .priority = -1, .entitled = true},
		{BUSY(1, 50, 30, .idle = SL_S)}, false, false, 20 * SL_MS, {0}},
	{"idle soon", {.missing_bytes = 10},
		{BUSY(1, 50, 0, .idle = 15 * SL_MS, .proven = true)}, false, true,
		5 * SL_MS, {0}},
	{"who cannot run anyhow", {.missing_bytes = 10},
		{BUSY(1, 50, 0, .idle = SL_S, .proven = true),
			BUSY(2, 50, 0, .suspended = true)},
		true, true, SL_NS_NEVER, {0, 10}},
	{"a lower priority at once", {.missing_bytes = 10, .priority = 1},
		{BUSY(1, 50, 0)}, true, true, SL_NS_NEVER, {10}},
	{"but not in a turn of min_share", {.missing_bytes = 10, .priority = 1},
		{BUSY(1, 50, 0, .promoted = true)}, false, true, SL_S, {0}},
	{"nor who is within its request, by a burst",
		{.missing_bytes = 10, .priority = 1},
		{BUSY(1, 50, 0, .within_request = true)}, false, true, SL_S, {0}},
	{"but by whom as much was promised",
		{.missing_bytes = 10, .priority = 1, .entitled = true},
		{BUSY(1, 50, 0, .within_request = true)}, true, true, SL_NS_NEVER, {10}},
	{"but after those that were promised less",
		{.missing_bytes = 10, .priority = 2, .entitled = true},
		{BUSY(1, 50, 0, .within_request = true), LATE(2, 50, 30, .priority = 1)},
		true, true, SL_NS_NEVER, {0, 10}},
	{"also where these are safe for a while",
		{.missing_bytes = 10, .priority = 1, .entitled = true},
		{BUSY(1, 50, 0, .within_request = true), BUSY(2, 50, 30, .priority = 2)},
		false, true, 20 * SL_MS, {0}},
	{"and where its turn is over", {.missing_bytes = 10, .entitled = true},
		{OVER(1, 50, 0, .within_request = true), BUSY(2, 50, 30, .priority = 2)},
		false, true, 20 * SL_MS, {0}},
	{"but idle like all others", {.missing_bytes = 10, .entitled = true},
		{BUSY(1, 50, 0, .within_request = true, .idle = SL_S, .proven = true),
			LATE(2, 50, 30)},
		true, true, SL_NS_NEVER, {10}},
	{"and at once if they do not suffice",
		{.missing_bytes = 40, .priority = 1, .entitled = true},
		{BUSY(1, 50, 0, .within_request = true), LATE(2, 50, 30, .priority = 2)},
		true, true, SL_NS_NEVER, {40}},
	{"also while it rests for a moment",
		{.missing_bytes = 10, .priority = 1, .entitled = true},
		{BUSY(1, 50, 0, .within_request = true, .idle = 5 * SL_MS,
			.proven = true)},
		true, true, SL_NS_NEVER, {10}},
	{"or may be about to", {.missing_bytes = 10, .priority = 1, .entitled = true},
		{BUSY(1, 50, 0, .within_request = true, .idle = 5 * SL_MS,
			.proof_left = SL_S)},
		true, true, SL_NS_NEVER, {10}},
	{"or refuse on and on", {.missing_bytes = 10, .priority = 1, .entitled = true},
		{BUSY(1, 50, 0, .within_request = true),
			LATE(2, 50, 30, .priority = 2, .refused_left = SL_S,
				.unwilling = true)},
		true, true, SL_NS_NEVER, {10}},
	{"who refused once is waited for", {.missing_bytes = 10},
		{OVER(1, 50, 50, .refused_left = SL_S)}, false, true, SL_S, {0}},
	{"who refuses on and on is not", {.missing_bytes = 10},
		{OVER(1, 50, 50, .refused_left = SL_S, .unwilling = true)}, false, false,
		SL_S, {0}},
	{"but is asked again", {.missing_bytes = 10},
		{OVER(1, 50, 50, .unwilling = true)}, true, true, SL_NS_NEVER, {10}},
	{"a higher priority has no turns", {.missing_bytes = 10},
		{OVER(1, 50, 0, .priority = 1)}, false, false, SL_NS_NEVER, {0}},
	{"but for min_share", {.missing_bytes = 10, .promoted = true},
		{OVER(1, 50, 0, .priority = 1)}, true, true, SL_NS_NEVER, {10}},
	{"entitled: bursts after the first part", {.missing_bytes = 10, .entitled = true},
		{BUSY(1, 50, 30)}, false, true, 20 * SL_MS, {0}},
	{"and no more than bursts", {.missing_bytes = 40, .entitled = true},
		{LATE(1, 50, 30), LATE(2, 50, 30)}, true, true, SL_NS_NEVER, {10, 30}},
	{"but for all of it once its turn is over",
		{.missing_bytes = 40, .entitled = true}, {LATE(1, 50, 30)}, false, true,
		SL_S, {0}},
	{"of the last one as much ahead", {.missing_bytes = 60, .ahead_bytes = 20},
		{OVER(1, 50, 0), OVER(2, 50, 0), OVER(3, 50, 0)}, true, true, SL_NS_NEVER,
		{0, 30, 50}},
	{"as far as it has that", {.missing_bytes = 60, .ahead_bytes = 90},
		{OVER(1, 50, 0), OVER(2, 50, 0), OVER(3, 50, 0)}, true, true, SL_NS_NEVER,
		{0, 50, 50}},
	{"refused lately", {.missing_bytes = 10},
		{OVER(1, 50, 0, .refused_left = 100 * SL_MS)}, false, true, 100 * SL_MS,
		{0}},
	{"all together do not suffice", {.missing_bytes = 60}, {OVER(1, 50, 0)}, false,
		false, SL_NS_NEVER, {0}},
	/* 20 of others' requests are free now; what leaves within a request is kept for its
	 * owner. */
	{"a burst leaves requests",
		{.missing_bytes = 10, .leaves_requests = true, .unclaimed_bytes = 20},
		{BUSY(1, 50, 0, .idle = SL_S, .proven = true)}, false, false, SL_NS_NEVER,
		{0}},
	{"but for what is lent",
		{.missing_bytes = 10,
			.leaves_requests = true,
			.unclaimed_bytes = 20,
			.lend_bytes = 60},
		{BUSY(1, 50, 0, .idle = SL_S, .proven = true)}, true, true, SL_NS_NEVER,
		{10}},
};

static void check(const struct row *row)
{
	struct sl_evict_candidate c[3];
	struct sl_evict_ask ask = row->ask;
	struct sl_evict_plan plan;
	uint32_t count = 0;

	ask.pool_bytes = ask.pool.pool_bytes = POOL;
	while (count < 3 && row->candidate[count].id) {
		c[count] = row->candidate[count];
		count++;
	}
	plan = sl_evict_choose(c, count, &ask);
	assert_row_u64(row->name, plan.enough, row->enough);
	assert_row_u64(row->name, plan.ever, row->ever);
	assert_row_u64(row->name, plan.next, row->next);
	for (uint32_t i = 0; i < count; i++)
		assert_row_u64(row->name, c[i].take_bytes, row->take[c[i].id - 1]);
}

static void test_choices(void **state)
{
	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++)
		check(&rows[i]);
}

/* The pool, the workload's part of it, and what is lent on it. */
static void test_pool(void **state)
{
	struct sl_evict_candidate c = OVER(1, 50, 50);
	struct sl_evict_ask ask = {
		.missing_bytes = 40, .pool_bytes = 30, .pool = {.pool_bytes = POOL}};
	struct sl_evict_plan plan = sl_evict_choose(&c, 1, &ask);

	(void)state;
	assert_row_u64("the pool has 30", plan.enough || plan.ever, false);
	assert_row_u64("which is said", plan.pool_full, true);
	ask.pool_bytes = POOL;
	c.share_bytes = 30;
	plan = sl_evict_choose(&c, 1, &ask);
	assert_row_u64("its part has 30", plan.ever, false);
	assert_row_u64("which is said", plan.bound, true);
	c.share_bytes = POOL;
	ask.pool.kept_bytes = POOL - 30;
	plan = sl_evict_choose(&c, 1, &ask);
	assert_row_u64("lent, but for 30", plan.enough, false);
	ask.pool.lent_bytes[0] = 40;
	plan = sl_evict_choose(&c, 1, &ask);
	assert_row_u64("what leaves was lent", plan.enough, true);
	ask.pool.lent_bytes[0] = 0;
	ask.entitled = true;
	plan = sl_evict_choose(&c, 1, &ask);
	assert_row_u64("who takes back what is his", plan.enough, true);
}

/* A part leaves in whole chunks, which is no more than all. */
static void test_chunks(void **state)
{
	struct sl_evict_candidate c = OVER(1, 50, 50, .chunk_bytes = 20);
	struct sl_evict_ask ask = {.missing_bytes = 40,
		.leaves_requests = true,
		.pool_bytes = 49,
		.pool = {.pool_bytes = POOL}};
	struct sl_evict_plan plan = sl_evict_choose(&c, 1, &ask);

	(void)state;
	assert_row_u64("it might move 50", plan.ever, false);
	assert_row_u64("which is said", plan.bound, true);
	assert_row_u64("so many could leave", plan.gives_bytes, 29);
	ask.pool_bytes = 50;
	plan = sl_evict_choose(&c, 1, &ask);
	assert_row_u64("that is all it has", plan.enough, true);
	assert_row_u64("it is told what is missing", c.take_bytes, 40);
	ask.pool_bytes = 49;
	ask.missing_bytes = 29;
	assert_row_u64("a part", sl_evict_choose(&c, 1, &ask).enough, true);
	ask.leaves_requests = false;
	ask.missing_bytes = 49;
	assert_row_u64("no burst demand", sl_evict_choose(&c, 1, &ask).enough, true);
}

static void test_turns(void **state)
{
	struct sl_turns_unit unit = {0};
	struct sl_turns_place first = {.priority = 1, .since = 5, .tie = 9};
	struct sl_turns_place later = {.priority = 1, .since = 6, .tie = 1};
	struct sl_turns_place higher = {.priority = 2, .since = 9, .tie = 2};
	struct sl_turns_place promoted = {.promoted = true, .since = 9, .tie = 3};
	struct sl_turns_place entitled = {.entitled = true, .since = 9, .tie = 4};

	(void)state;
	assert_row_u64("goes round", sl_turns_is_before(&first, &later), true);
	assert_row_u64("priority", sl_turns_is_before(&higher, &first), true);
	assert_row_u64("min_share", sl_turns_is_before(&promoted, &higher), true);
	assert_row_u64("entitled", sl_turns_is_before(&entitled, &promoted), true);
	assert_row_u64("weight", sl_turns_weight(10, 100), 10);
	assert_row_u64("least weight", sl_turns_weight(0, 100), 5);
	sl_turns_join(&unit, 100 * SL_MS, 10, SL_TURNS_DEFAULT);
	sl_turns_join(&unit, SL_MS, 20, SL_TURNS_DEFAULT);
	assert_row_u64(
		"ten times its cost", sl_turns_length(&unit, 10, SL_TURNS_DEFAULT), SL_S);
	assert_row_u64(
		"by weight", sl_turns_length(&unit, 20, SL_TURNS_DEFAULT), 2 * SL_S);
	assert_row_u64("at most", sl_turns_length(&unit, 200, SL_TURNS_DEFAULT),
		SL_TURNS_DEFAULT);
	unit = (struct sl_turns_unit){0};
	sl_turns_join(&unit, 4 * SL_S, 10, SL_TURNS_DEFAULT);
	sl_turns_join(&unit, SL_MS, 40, SL_TURNS_DEFAULT);
	sl_turns_join(&unit, SL_MS, 1, SL_TURNS_DEFAULT);
	assert_row_u64("the largest is cut to turn_max",
		sl_turns_length(&unit, 40, SL_TURNS_DEFAULT), SL_TURNS_DEFAULT);
	assert_row_u64("and the others as much",
		sl_turns_length(&unit, 10, SL_TURNS_DEFAULT), SL_TURNS_DEFAULT / 4);
	assert_row_u64("the least of all are not cut shorter",
		sl_turns_length(&unit, 1, SL_S), SL_TURNS_LEAST);
	unit = (struct sl_turns_unit){0};
	sl_turns_join(&unit, SL_MS, 10, SL_TURNS_DEFAULT);
	assert_row_u64(
		"at least", sl_turns_length(&unit, 10, SL_TURNS_DEFAULT), SL_TURNS_LEAST);
	assert_row_u64("first part", sl_turns_first_part(SL_S), SL_S);
	assert_row_u64("first part at least", sl_turns_first_part(1), 20 * SL_MS);
	assert_row_u64("patience", sl_turns_patience(SL_S, 50), 20 * SL_S);
	assert_row_u64("longest wait",
		sl_turns_longest_wait(3 * SL_S, SL_S, 2, SL_S, 0, 2 * SL_S), 9 * SL_S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_choices),
		cmocka_unit_test(test_pool),
		cmocka_unit_test(test_chunks),
		cmocka_unit_test(test_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
