#include "../../base/test.h"

#include "policy/verdicts/bounds.h"

#define ANY                           \
	{                             \
		SL_AMOUNT_UNSET, 0, 0 \
	}
#define BYTES(n)                        \
	{                               \
		SL_AMOUNT_BYTES, 0, (n) \
	}
#define PART(millionths)                            \
	{                                           \
		SL_AMOUNT_FRACTION, 0, (millionths) \
	}
#define GIB (1024 * SL_MIB)

/* All asks are on a GPU that shares 10 GiB. */
static const struct {
	const char *name;
	struct sl_bounds bounds;
	uint64_t request, limit;
	int32_t priority;
	uint32_t workloads;
	enum sl_reason reason;
	uint64_t wanted, allowed;
} rows[] = {
	{"no bounds", {ANY, ANY, false, 0, 0}, 10 * GIB, 10 * GIB, 2000000000, 1000000,
		SL_REASON_NONE, 0, 0},
	{"just the largest request", {BYTES(4096), ANY, false, 0, 0}, 4096, GIB, 0, 1,
		SL_REASON_NONE, 0, 0},
	{"a byte too much", {BYTES(4096), ANY, false, 0, 0}, 4097, GIB, 0, 1,
		SL_REASON_BOUND_REQUEST, 4097, 4096},
	{"a fraction is of the GPU", {PART(250000), ANY, false, 0, 0}, 5 * GIB / 2, GIB,
		0, 1, SL_REASON_NONE, 0, 0},
	{"more than the fraction", {PART(250000), ANY, false, 0, 0}, 5 * GIB / 2 + 1, GIB,
		0, 1, SL_REASON_BOUND_REQUEST, 5 * GIB / 2 + 1, 5 * GIB / 2},
	{"the limit", {ANY, BYTES(100), false, 0, 0}, 0, 101, 0, 1, SL_REASON_BOUND_LIMIT,
		101, 100},
	{"the limit is no bound of the request", {ANY, BYTES(100), false, 0, 0}, 100, 100,
		0, 1, SL_REASON_NONE, 0, 0},
	{"a bound of nothing", {BYTES(0), ANY, false, 0, 0}, 1, 1, 0, 1,
		SL_REASON_BOUND_REQUEST, 1, 0},
	{"0 is never judged", {BYTES(0), BYTES(0), false, 0, 0}, 0, 0, 0, 1,
		SL_REASON_NONE, 0, 0},
	{"the highest priority", {ANY, ANY, true, 5, 0}, 1, 1, 5, 1, SL_REASON_NONE, 0,
		0},
	{"a higher one", {ANY, ANY, true, 5, 0}, 1, 1, 6, 1, SL_REASON_BOUND_PRIORITY, 6,
		5},
	{"priorities below zero", {ANY, ANY, true, -5, 0}, 1, 1, -4, 1,
		SL_REASON_BOUND_PRIORITY, UINT64_MAX - 3, UINT64_MAX - 4},
	{"a priority that is not bounded", {ANY, ANY, false, 5, 0}, 1, 1, 6, 1,
		SL_REASON_NONE, 0, 0},
	{"the last workload", {ANY, ANY, false, 0, 3}, 1, 1, 0, 3, SL_REASON_NONE, 0, 0},
	{"one more", {ANY, ANY, false, 0, 3}, 1, 1, 0, 4, SL_REASON_BOUND_WORKLOADS, 4,
		3},
	{"the request is named first", {BYTES(1), BYTES(1), true, 0, 1}, 2, 2, 1, 2,
		SL_REASON_BOUND_REQUEST, 2, 1},
	{"then the limit", {BYTES(2), BYTES(1), true, 0, 1}, 2, 2, 1, 2,
		SL_REASON_BOUND_LIMIT, 2, 1},
	{"then the priority", {BYTES(2), BYTES(2), true, 0, 1}, 2, 2, 1, 2,
		SL_REASON_BOUND_PRIORITY, 1, 0},
};

static void judges(void **state)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_bounds_ask ask = {rows[i].request, rows[i].limit, 10 * GIB,
			rows[i].priority, rows[i].workloads};
		struct sl_bounds_verdict got = sl_bounds_judge(&rows[i].bounds, &ask);

		assert_row_text(rows[i].name, sl_reason_name(got.reason),
			sl_reason_name(rows[i].reason));
		assert_row_u64(rows[i].name, got.wanted, rows[i].wanted);
		assert_row_u64(rows[i].name, got.allowed, rows[i].allowed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(judges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
