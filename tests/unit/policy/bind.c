#include "../base/test.h"

#include "policy/verdicts/bind.h"

static const struct {
	const char *name;
	struct sl_bind_gpu gpu[4];
	uint32_t mask, count;
	bool can_burst;
	uint32_t chosen;
} rows[] = {
	{"rigid: least left over", {{50, 0}, {20, 9}, {30, 0}}, 7, 1, false, 2},
	{"rigid: ties go to the lowest", {{50, 0}, {20, 0}, {20, 0}}, 7, 1, false, 2},
	{"rigid: only what is possible", {{50, 0}, {20, 0}, {30, 0}}, 5, 1, false, 4},
	{"rigid: the two tightest", {{50, 0}, {20, 0}, {30, 0}}, 7, 2, false, 6},
	{"burst: most room", {{50, 0}, {20, 0}, {60, 0}}, 7, 1, true, 4},
	{"burst: room is shared", {{50, 0}, {20, 0}, {60, 1}}, 7, 1, true, 1},
	{"burst: equal share, fewer to share with", {{60, 1}, {30, 0}}, 3, 1, true, 2},
	{"burst: no room anywhere, fewer to share with", {{0, 2}, {0, 1}}, 3, 1, true, 2},
	{"burst: ties go to the lowest", {{40, 1}, {40, 1}}, 3, 1, true, 1},
	{"all of them", {{1, 0}, {2, 0}, {3, 0}}, 7, 3, true, 7},
	{"too few", {{1, 0}, {2, 0}}, 3, 3, true, 0},
	{"none possible", {{1, 0}}, 0, 1, false, 0},
};

static void chooses(void **state)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_bind_gpu gpu[SL_BIND_GPUS_MAX] = {{0, 0}};

		memcpy(gpu, rows[i].gpu, sizeof(rows[i].gpu));
		assert_row_u64(rows[i].name,
			sl_bind_choose(
				gpu, rows[i].mask, rows[i].count, rows[i].can_burst),
			rows[i].chosen);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chooses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
