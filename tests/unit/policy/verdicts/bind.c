#include "../../base/test.h"

#include "policy/verdicts/bind.h"

/* A GPU on which all of the room is free now, and one on which only some is; requests are 10. */
#define IDLE(room, burstable)                        \
	{                                            \
		(room), (burstable), (room) + 10, 10 \
	}
#define TAKEN(room, burstable, free)            \
	{                                       \
		(room), (burstable), (free), 10 \
	}

static const struct {
	const char *name;
	struct sl_bind_gpu gpu[4];
	uint32_t mask, count;
	bool spread;
	uint32_t chosen;
} rows[] = {
	{"rigid: least left over", {IDLE(50, 0), IDLE(20, 9), IDLE(30, 0)}, 7, 1, false,
		2},
	{"rigid: ties go to the lowest", {IDLE(50, 0), IDLE(20, 0), IDLE(20, 0)}, 7, 1,
		false, 2},
	{"rigid: only what is possible", {IDLE(50, 0), IDLE(20, 0), IDLE(30, 0)}, 5, 1,
		false, 4},
	{"rigid: the two tightest", {IDLE(50, 0), IDLE(20, 0), IDLE(30, 0)}, 7, 2, false,
		6},
	{"burst: most room", {IDLE(50, 0), IDLE(20, 0), IDLE(60, 0)}, 7, 1, true, 4},
	{"burst: room is shared", {IDLE(50, 0), IDLE(20, 0), IDLE(60, 1)}, 7, 1, true, 1},
	{"burst: equal share, fewer to share with", {IDLE(60, 1), IDLE(30, 0)}, 3, 1,
		true, 2},
	{"burst: no room anywhere, fewer to share with", {IDLE(0, 2), IDLE(0, 1)}, 3, 1,
		true, 2},
	{"burst: ties go to the lowest", {IDLE(40, 1), IDLE(40, 1)}, 3, 1, true, 1},
	{"all of them", {IDLE(1, 0), IDLE(2, 0), IDLE(3, 0)}, 7, 3, true, 7},
	{"too few", {IDLE(1, 0), IDLE(2, 0)}, 3, 3, true, 0},
	{"none possible", {IDLE(1, 0)}, 0, 1, false, 0},
	/* bursts that stand there */
	{"rigid: the tightest is burst over", {TAKEN(20, 1, 9), IDLE(50, 0)}, 3, 1, false,
		2},
	{"rigid: just served is served", {TAKEN(20, 1, 10), IDLE(50, 0)}, 3, 1, false, 1},
	{"rigid: no better choice", {TAKEN(20, 1, 9), TAKEN(50, 1, 0)}, 3, 1, false, 1},
	{"rigid: two, one of them served",
		{TAKEN(20, 1, 9), TAKEN(30, 1, 0), IDLE(50, 0)}, 7, 2, false, 5},
	{"burst: much is not requested, and all of it is in use",
		{TAKEN(80, 0, 12), IDLE(30, 0)}, 3, 1, true, 2},
	{"burst: served with nothing to burst into before not served",
		{TAKEN(80, 0, 9), TAKEN(10, 5, 10)}, 3, 1, true, 2},
	{"burst: nothing is free, the larger share may come back",
		{TAKEN(20, 0, 10), TAKEN(30, 0, 10)}, 3, 1, true, 2},
};

static void chooses(void **state)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_bind_gpu gpu[SL_BIND_GPUS_MAX] = {{0}};

		memcpy(gpu, rows[i].gpu, sizeof(rows[i].gpu));
		assert_row_u64(rows[i].name,
			sl_bind_choose(gpu, rows[i].mask, rows[i].count, rows[i].spread),
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
