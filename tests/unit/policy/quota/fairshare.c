#include "../../base/test.h"

#include "policy/quota/fairshare.h"

#define GPU  1000
#define ALL  (-1)
#define MOST ((int64_t)1 << 53)
#define ROWS 4

/* Projects in order of age; amounts in thousandths, shares as computed by hand. */
static const struct {
	const char *name;
	int64_t total, unit;
	struct sl_fairshare_row row[ROWS];
	int64_t share[ROWS];
} cases[] = {
	{"nobody asks", 4 * GPU, GPU, {{.quota = GPU, .limit = ALL, .weight = 1}}, {0}},
	{"quota first, then what is over", 4 * GPU, GPU,
		{{2 * GPU, ALL, 4 * GPU, 1}, {2 * GPU, ALL, GPU, 1}}, {3 * GPU, GPU}},
	{"by weight", 8 * GPU, GPU, {{0, ALL, 9 * GPU, 3}, {0, ALL, 9 * GPU, 1}},
		{6 * GPU, 2 * GPU}},
	{"what one does not want is shared again", 9 * GPU, GPU,
		{{0, ALL, GPU, 1}, {0, ALL, 9 * GPU, 1}, {0, ALL, 9 * GPU, 1}},
		{GPU, 4 * GPU, 4 * GPU}},
	{"of equal remainders the older", 4 * GPU, GPU,
		{{0, ALL, 9 * GPU, 1}, {0, ALL, 9 * GPU, 1}, {0, ALL, 9 * GPU, 1}},
		{2 * GPU, GPU, GPU}},
	/* 4.5, 2.7 and 1.8. */
	{"the largest remainders", 9 * GPU, GPU,
		{{0, ALL, 9 * GPU, 5}, {0, ALL, 9 * GPU, 3}, {0, ALL, 9 * GPU, 2}},
		{4 * GPU, 3 * GPU, 2 * GPU}},
	{"no rounding by ones", 10, 1, {{0, ALL, 10, 7}, {0, ALL, 10, 3}}, {7, 3}},
	{"high priority before weight", 3 * GPU, GPU,
		{{0, ALL, 9 * GPU, 9, 1}, {0, ALL, 2 * GPU, 1, 2}}, {GPU, 2 * GPU}},
	{"quota before priority", 3 * GPU, GPU,
		{{2 * GPU, ALL, 9 * GPU, 1, 1}, {0, ALL, 9 * GPU, 1, 2}}, {2 * GPU, GPU}},
	{"weight 0 does not borrow", 8 * GPU, GPU,
		{{GPU, ALL, 9 * GPU, 0}, {0, ALL, 2 * GPU, 1}}, {GPU, 2 * GPU}},
	{"never above the limit", 8 * GPU, GPU,
		{{0, 3 * GPU, 9 * GPU, 9}, {0, ALL, 9 * GPU, 1}}, {3 * GPU, 5 * GPU}},
	{"nor the quota", 8 * GPU, GPU, {{4 * GPU, 2 * GPU, 9 * GPU, 1}}, {2 * GPU}},
	{"limit 0", 8 * GPU, GPU, {{0, 0, 9 * GPU, 1}}, {0}},
	{"a guarantee is never cut", 4 * GPU, GPU,
		{{3 * GPU, ALL, 9 * GPU, 1}, {3 * GPU, ALL, 9 * GPU, 1}},
		{3 * GPU, 3 * GPU}},
	{"quota without bound is all that is asked for", 4 * GPU, GPU,
		{{ALL, ALL, 9 * GPU, 1}, {0, ALL, GPU, 1}}, {9 * GPU, 0}},
	{"fractions are given to the end", GPU, GPU,
		{{0, ALL, 500, 1}, {0, ALL, 500, 1}, {0, ALL, 500, 1}}, {500, 500, 0}},
	{"nobody gets more than it wants of a unit", 2 * GPU, GPU,
		{{0, ALL, 700, 1}, {0, ALL, 700, 1}, {0, ALL, 700, 1}}, {700, 700, 600}},
	{"half of a GPU is left", 1500, GPU, {{0, ALL, 2 * GPU, 1}, {0, ALL, 2 * GPU, 1}},
		{GPU, 500}},
	{"who used all the time has no part", 4 * GPU, GPU,
		{{0, ALL, 4 * GPU, 1, 0, 1000000}, {0, ALL, 4 * GPU, 1}}, {0, 4 * GPU}},
	{"who used more has less", 4 * GPU, GPU,
		{{0, ALL, 4 * GPU, 1, 0, 750000}, {0, ALL, 4 * GPU, 1, 0, 250000}},
		{GPU, 3 * GPU}},
	{"all used all: by weight", 6 * GPU, GPU,
		{{0, ALL, 9 * GPU, 1, 0, 1000000}, {0, ALL, 9 * GPU, 1, 0, 1000000},
			{0, ALL, 9 * GPU, 1, 0, 2000000}},
		{2 * GPU, 2 * GPU, 2 * GPU}},
	{"who has no part still gets what nobody else wants", 4 * GPU, GPU,
		{{0, ALL, 4 * GPU, 1, 0, 1000000}, {0, ALL, GPU, 1}}, {3 * GPU, GPU}},
	{"huge numbers", MOST, 1,
		{{0, ALL, MOST, UINT32_MAX}, {0, ALL, MOST, UINT32_MAX},
			{0, ALL, MOST, UINT32_MAX}, {0, ALL, MOST, 0}},
		{MOST / 3 + 1, MOST / 3 + 1, MOST / 3, 0}},
	{"huge and small", MOST, 1, {{0, ALL, MOST, UINT32_MAX}, {0, ALL, MOST, 1}},
		/* 2^53 / 2^32 = 2^21, exactly. */
		{MOST - ((int64_t)1 << 21), (int64_t)1 << 21}},
	{"nothing there", 0, GPU, {{0, ALL, 9 * GPU, 1}, {GPU, ALL, GPU, 1}}, {0, GPU}},
};

/* Row i stands at place (i x step) mod ROWS: the order must not matter. */
static void check(size_t number, size_t step)
{
	struct sl_fairshare_row row[ROWS] = {0};

	for (size_t i = 0; i < ROWS; i++) {
		struct sl_fairshare_row *to = &row[i * step % ROWS];

		*to = cases[number].row[i];
		to->created = i + 1;
		to->id = 100 - i;
	}
	sl_fairshare(row, ROWS, cases[number].total, cases[number].unit);
	for (size_t i = 0; i < ROWS; i++) {
		size_t place = i * step % ROWS;

		assert_row_u64(cases[number].name, (uint64_t)row[place].share,
			(uint64_t)cases[number].share[i]);
	}
}

static void shares_as_by_hand(void **state)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(cases); i++) {
		check(i, 1);
		check(i, 3);
	}
}

static void equals_are_told_apart_by_id(void **state)
{
	struct sl_fairshare_row row[2] = {
		{.limit = ALL, .asks = 1, .weight = 1, .id = 8},
		{.limit = ALL, .asks = 1, .weight = 1, .id = 7},
	};

	sl_fairshare(row, 2, 1, 1);
	assert_row_u64("id 8", (uint64_t)row[0].share, 0);
	assert_row_u64("id 7", (uint64_t)row[1].share, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares_as_by_hand),
		cmocka_unit_test(equals_are_told_apart_by_id),
	};

	return cmocka_run_group_tests_name("fairshare", tests, NULL, NULL);
}
