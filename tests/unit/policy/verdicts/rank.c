/*
 * rank - which of two claims is looked at first, and which slot decides it
 *
 * The table of decision 0037, section 1, one row each. Times are seconds; the present time is NOW.
 */
#include "../../base/test.h"

#include "../../../sim/common/mutants.h"
#include "policy/verdicts/rank.h"

#define NOW 100

/* A body that is away and waits. */
#define WAITS(since) .asked_at = (since)*SL_S
#define IN_SLICE(since) \
	.whole = true, .served = true, .served_at = (since)*SL_S, .slice_ends = 900 * SL_S
#define OVER(end)        .whole = true, .served = true, .slice_ends = (end)*SL_S
#define DEMAND(arrived)  .kind = SL_RANK_DEMAND, .asked_at = (arrived)*SL_S
#define COMING           .coming = true, .covered = true, WAITS(5)
#define OVERDUE          .patience = 10 * SL_S, WAITS(5)
#define ENTITLED         .entitled = true
#define PRIORITY(number) .priority = (number)
/* A slice of a workload whose moving costs so much. */
#define MS_IN_SLICE(ms, cost_ms)                                             \
	.whole = true, .served = true, .served_at = NOW * SL_S - (ms)*SL_MS, \
	.slice_ends = 900 * SL_S, .cost = (cost_ms)*SL_MS
#define SIBLING(...)                             \
	.sibling = &(const struct sl_rank_facts) \
	{                                        \
		__VA_ARGS__                      \
	}

static const struct row {
	const char *name;
	struct sl_rank_facts first, second;
	int slot;
} rows[] = {
	{"there before a guard", {ENTITLED, OVER(1)}, {COMING}, 1},
	{"there before an overdue burst", {.kind = SL_RANK_GRACE, ENTITLED, OVER(1)},
		{OVERDUE}, 1},
	{"a guard is no licence to grow", {ENTITLED, OVER(1)},
		{DEMAND(99), MS_IN_SLICE(100, 1000)}, 1},
	{"not to overtake a request, either", {ENTITLED, WAITS(5)},
		{DEMAND(99), MS_IN_SLICE(100, 1000)}, 1},
	{"a request's burst is a burst", {IN_SLICE(9)}, {DEMAND(9), IN_SLICE(1)}, 4},
	{"a guard before a return", {COMING}, {ENTITLED, WAITS(1)}, 1},
	{"200 ms before a return", {MS_IN_SLICE(100, 1000)}, {ENTITLED, WAITS(1)}, 1},
	{"what is leaving is not there", {COMING},
		{ENTITLED, OVER(1), .evict_open = true}, 1},
	{"dying bytes guard nothing", {ENTITLED, DEMAND(9)},
		{.coming = true, .covered = false, WAITS(5)}, 1},
	{"a back-off guards nothing", {ENTITLED, WAITS(9)}, {COMING, .backs_off = true},
		1},
	{"a guard is not shared", {ENTITLED, WAITS(9)}, {OVER(1), SIBLING(COMING)}, 1},
	{"a request before a slice", {ENTITLED, WAITS(9)}, {MS_IN_SLICE(300, 1000)}, 1},
	{"a cheap move guards no longer than it takes", {ENTITLED, WAITS(9)},
		{MS_IN_SLICE(100, 50)}, 1},
	{"a request before overdue", {ENTITLED, WAITS(9), PRIORITY(0)},
		{OVERDUE, PRIORITY(9)}, 1},
	{"entitled take no turns", {ENTITLED, OVER(9)}, {ENTITLED, WAITS(1)}, 1},
	{"crowded: a slice holds", {ENTITLED, IN_SLICE(9), PRIORITY(-1), .crowded = true},
		{ENTITLED, WAITS(1), PRIORITY(0), .crowded = true}, 1},
	{"crowded: over goes last", {ENTITLED, WAITS(9), .crowded = true},
		{ENTITLED, OVER(1), .crowded = true}, 5},
	{"overdue before priority", {OVERDUE, PRIORITY(0)}, {IN_SLICE(1), PRIORITY(9)},
		1},
	{"the overdue slice holds", {IN_SLICE(9), PRIORITY(0), .overdue_seat = true},
		{OVERDUE, PRIORITY(9)}, 2},
	{"so does one by a grant", {IN_SLICE(9), PRIORITY(0), .overdue_seat = true},
		{WAITS(1), PRIORITY(9)}, 1},
	{"and what grows in it",
		{DEMAND(9), IN_SLICE(9), PRIORITY(0), .overdue_seat = true},
		{WAITS(1), PRIORITY(9)}, 1},
	{"within the request it does not fall behind",
		{ENTITLED, DEMAND(9), IN_SLICE(9), .overdue_seat = true}, {OVERDUE}, 1},
	{"a higher priority within its request is first",
		{ENTITLED, WAITS(9), PRIORITY(5)}, {ENTITLED, WAITS(1), PRIORITY(0)}, 3},
	{"priority ends a slice", {WAITS(9), PRIORITY(5)}, {IN_SLICE(1), PRIORITY(0)}, 2},
	{"a slice holds among equals", {IN_SLICE(9)}, {WAITS(1)}, 3},
	{"served first stays", {IN_SLICE(1)}, {IN_SLICE(2)}, 5},
	{"growth before the queue", {DEMAND(9), IN_SLICE(9)}, {WAITS(1)}, 3},
	{"but not of a client that stalls", {WAITS(1)},
		{DEMAND(9), IN_SLICE(9), .stalls = true}, 5},
	{"a guarded body before a guarded demand", {COMING},
		{DEMAND(1), .coming = true, .covered = true}, 4},
	{"oldest first", {DEMAND(1)}, {WAITS(2)}, 5},
	{"a slice counts for its demand", {WAITS(3)}, {DEMAND(1), OVER(5)}, 5},
	{"a sibling is waited for", {OVER(1), SIBLING(WAITS(1))}, {WAITS(2)}, 5},
	{"also one that is overdue", {OVER(1), SIBLING(OVERDUE)}, {WAITS(1)}, 1},
	{"and in a slice, too", {IN_SLICE(9), SIBLING(OVERDUE)}, {IN_SLICE(1)}, 1},
	/* No sibling counts, since together they are too large. */
	{"not if it never comes beside it", {WAITS(2)}, {OVER(1)}, 5},
	{"siblings: what is there stays", {OVER(1), SIBLING(WAITS(1)), .client = 9},
		{WAITS(1), .client = 8}, 6},
	{"slice over goes last", {WAITS(99)}, {OVER(1)}, 5},
	{"longest over leaves first", {OVER(9)}, {OVER(1)}, 5},
	{"first asked, first looked at", {DEMAND(1), .sequence = 1, .client = 9},
		{DEMAND(1), .sequence = 2, .client = 8}, 6},
	{"never equal", {WAITS(1), .client = 3}, {WAITS(1), .client = 4}, 6},
};

#define RANKS (2 * SL_ARRAY_LEN(rows))

static struct sl_rank rank_at(const struct sl_rank_facts *facts, sl_ns now)
{
	sl_ns next = SL_NS_NEVER;

	return sl_rank_of(facts, now, &next);
}

/* Clients that a row does not name have a workload of their own. */
static struct sl_rank_facts facts_of(uint32_t i)
{
	struct sl_rank_facts facts = i % 2 ? rows[i / 2].second : rows[i / 2].first;

	if (!facts.client)
		facts.client = 100 + i;
	return facts;
}

static struct sl_rank rank(uint32_t i)
{
	const struct sl_rank_facts facts = facts_of(i);

	return rank_at(&facts, NOW * SL_S);
}

/* The first slot in which two ranks differ. */
static int slot(const struct sl_rank *a, const struct sl_rank *b)
{
	if (a->class != b->class)
		return 1;
	if (a->second != b->second)
		return 2;
	if (a->third != b->third)
		return 3;
	if (a->kind != b->kind)
		return 4;
	return a->since != b->since ? 5 : 6;
}

static void orders_pairs(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_rank first = rank(2 * i), second = rank(2 * i + 1);

		assert_row_u64(rows[i].name, sl_rank_compare(&first, &second) < 0, 1);
		assert_row_u64(rows[i].name, sl_rank_compare(&second, &first) > 0, 1);
		assert_row_u64(rows[i].name, (uint64_t)slot(&first, &second),
			(uint64_t)rows[i].slot);
	}
}

static void is_an_order(void **state)
{
	static int by[RANKS][RANKS];

	(void)state;
	for (uint32_t a = 0; a < RANKS; a++) {
		for (uint32_t b = 0; b < RANKS; b++) {
			struct sl_rank left = rank(a), right = rank(b);

			by[a][b] = sl_rank_compare(&left, &right);
		}
	}
	for (uint32_t a = 0; a < RANKS; a++) {
		for (uint32_t b = 0; b < RANKS; b++) {
			assert_row_u64(rows[a / 2].name, by[a][b] == 0, a == b);
			assert_row_u64(rows[a / 2].name, by[a][b]<0, by[b][a]> 0);
			for (uint32_t c = 0; c < RANKS; c++) {
				if (by[a][b] < 0 && by[b][c] < 0)
					assert_row_u64(rows[a / 2].name, by[a][c] < 0, 1);
			}
		}
	}
}

/* A rank stays until the time that it told, and everything that ends by time alone has such
 * a time. */
static void changes_when_told(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < RANKS; i++) {
		const struct sl_rank_facts facts = facts_of(i);
		sl_ns next = SL_NS_NEVER;
		const struct sl_rank now = sl_rank_of(&facts, NOW * SL_S, &next);
		sl_ns last = sl_min_u64(next, 1000 * SL_S) - 1;
		struct sl_rank then = rank_at(&facts, last);

		assert_row_u64(
			rows[i / 2].name, (uint64_t)sl_rank_compare(&now, &then), 0);
		then = rank_at(&facts, SL_NS_NEVER / 2);
		if (sl_rank_compare(&now, &then) != 0)
			assert_row_u64(rows[i / 2].name, next < SL_NS_NEVER, 1);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(orders_pairs),
		cmocka_unit_test(is_an_order),
		cmocka_unit_test(changes_when_told),
	};

	/* Nothing is drawn here: --seed is as good as no argument. */
	if (argc == 2 && !sl_mutant_switch(argv[1]))
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
