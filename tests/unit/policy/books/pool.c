/*
 * pool - what host memory may be lent on, and what may leave for it
 */
#include "../../base/test.h"

#include "policy/books/pool.h"

#define POOL(...)                                                 \
	{                                                         \
		.pool_bytes = 100, .slack_bytes = 10, __VA_ARGS__ \
	}

static const struct {
	const char *name;
	struct sl_pool pool;
	uint64_t lend; /* on GPU 0 */
	/* What may leave GPU 0 of a workload within its request, and of one with a burst of 15. */
	uint64_t within, burst;
} rows[] = {
	{"no pool lends nothing", {0}, 0, 0, 0},
	{"less the slack", POOL(), 90, 90, 90},
	{"less what is evicted", POOL(.evicted_bytes = 30), 60, 60, 60},
	{"and what leaves", POOL(.evicted_bytes = 30, .leaving_bytes = 20), 40, 40, 40},
	{"but what comes back", POOL(.evicted_bytes = 30, .returning_bytes = 20), 80, 70,
		70},
	{"what other GPUs borrowed", POOL(.lent_bytes = {0, 30}), 60, 60, 60},
	{"nothing where less is used than promised", POOL(.lent_bytes = {-30, -30}), 90,
		90, 90},
	{"a burst takes the place of what is lent", POOL(.lent_bytes = {30}), 90, 60, 75},
	{"of no more than that", POOL(.lent_bytes = {10}), 90, 80, 90},
	{"also where I2 is broken", POOL(.evicted_bytes = 20, .lent_bytes = {30, 90}), 0,
		0, 15},
	{"overdrawn is nothing, not a huge number", POOL(.evicted_bytes = 200), 0, 0, 0},
	{"slack above the pool", {.pool_bytes = 100, .slack_bytes = 200}, 0, 0, 0},
};

static void has_room(void **state)
{
	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		const struct sl_pool *pool = &rows[i].pool;

		assert_row_u64(rows[i].name, sl_pool_lend(pool, 0), rows[i].lend);
		assert_row_u64(rows[i].name, sl_pool_room(pool, 0, 0), rows[i].within);
		assert_row_u64(rows[i].name, sl_pool_room(pool, 0, 15), rows[i].burst);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
