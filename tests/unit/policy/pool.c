#include "../base/test.h"

#include "policy/books/pool.h"

static const struct {
	const char *name;
	struct sl_pool pool;
	uint64_t elsewhere, lend;
} rows[] = {
	{"no pool lends nothing", {0, 0, 0}, 0, 0},
	{"all of it", {100, 0, 0}, 0, 100},
	{"less the slack", {100, 10, 0}, 0, 90},
	{"less what is evicted", {100, 10, 30}, 0, 60},
	{"less what other GPUs borrowed", {100, 10, 30}, 20, 40},
	{"nothing left", {100, 10, 30}, 60, 0},
	{"overdrawn is nothing, not a huge number", {100, 10, 30}, 61, 0},
	{"slack above the pool", {100, 200, 0}, 0, 0},
	{"shrunk below what it holds", {20, 10, 30}, 0, 0},
};

static void lends(void **state)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++)
		assert_row_u64(rows[i].name,
			sl_pool_lend(&rows[i].pool, rows[i].elsewhere), rows[i].lend);
}

static void checks(void **state)
{
	struct sl_pool good = {100, 0, 100}, bad = {100, 0, 101};
	struct sl_error err = {0};

	assert_row_u64("full", (uint64_t)sl_pool_check(&good, &err), 0);
	assert_row_u64("more than full", (uint64_t)sl_pool_check(&bad, &err), 1);
	assert_row_contains("more than full", err.text, "101");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lends),
		cmocka_unit_test(checks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
