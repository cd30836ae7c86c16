#include "../../base/test.h"

#include "policy/verdicts/admit.h"

#define NONE                          \
	{                             \
		SL_AMOUNT_UNSET, 0, 0 \
	}
#define BYTES(n)                      \
	{                             \
		SL_AMOUNT_BYTES, 0, n \
	}
#define PCT(n)                                   \
	{                                        \
		SL_AMOUNT_FRACTION, 0, (n)*10000 \
	}
#define S (1000 * SL_MIB)

static const struct {
	const char *name;
	struct sl_admit_ask ask;
	uint64_t request, limit;
} amounts[] = {
	{"neither", {NONE, NONE, 1}, 0, S},
	{"request only", {PCT(25), NONE, 1}, 250 * SL_MIB, 250 * SL_MIB},
	{"limit only", {NONE, PCT(25), 1}, 250 * SL_MIB, 250 * SL_MIB},
	{"both", {PCT(10), PCT(80), 1}, 100 * SL_MIB, 800 * SL_MIB},
	{"limit cut to the GPU", {BYTES(5), BYTES(2 * S), 1}, 5, S},
	{"limit only, above the GPU", {NONE, BYTES(2 * S), 1}, S, S},
	{"request 0 is a request", {BYTES(0), NONE, 1}, 0, 0},
	{"fractions round down to 2 MiB", {PCT(1), PCT(33), 1}, 10 * SL_MIB,
		330 * SL_MIB},
	{"the whole", {PCT(100), NONE, 1}, S, S},
};

static void resolves_amounts(void **state)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(amounts); i++) {
		struct sl_admit_offer offer = sl_admit_resolve(&amounts[i].ask, S);

		assert_row_u64(amounts[i].name, offer.request_bytes, amounts[i].request);
		assert_row_u64(amounts[i].name, offer.limit_bytes, amounts[i].limit);
	}
}

/* Four GPUs: 100 free, 200 of which 150 are claimed, 300 but degraded, 400 not allowed. */
static const struct sl_admit_gpu gpus[SL_ADMIT_GPUS_MAX] = {
	{true, false, 100, 0},
	{true, false, 200, 150},
	{true, true, 300, 0},
	{false, false, 400, 0},
};

static const struct {
	const char *name;
	struct sl_admit_ask ask;
	enum sl_reason reason;
	uint32_t mask;
	uint64_t wanted, available;
} verdicts[] = {
	{"fits on two", {BYTES(50), NONE, 1}, SL_REASON_NONE, 3, 0, 0},
	{"fits on one", {BYTES(51), NONE, 1}, SL_REASON_NONE, 1, 0, 0},
	{"to the last byte", {BYTES(100), NONE, 1}, SL_REASON_NONE, 1, 0, 0},
	{"no count means one", {BYTES(100), NONE, 0}, SL_REASON_NONE, 1, 0, 0},
	{"two, of 50 each", {BYTES(50), NONE, 2}, SL_REASON_NONE, 3, 0, 0},
	{"two, the second has 50", {BYTES(51), NONE, 2}, SL_REASON_REQUESTS_TAKEN, 0, 51,
		50},
	{"requests taken", {BYTES(101), NONE, 1}, SL_REASON_REQUESTS_TAKEN, 0, 101, 50},
	{"only the degraded one is large enough", {BYTES(201), NONE, 1},
		SL_REASON_DEGRADED, 0, 201, 300},
	{"none is large enough", {BYTES(301), NONE, 1}, SL_REASON_REQUEST_TOO_LARGE, 0,
		301, 300},
	{"the second largest is too small", {BYTES(201), NONE, 2},
		SL_REASON_REQUEST_TOO_LARGE, 0, 201, 200},
	{"more GPUs than there are", {BYTES(1), NONE, 4}, SL_REASON_TOO_FEW_GPUS, 0, 4,
		3},
	{"limit below request", {BYTES(50), BYTES(49), 1}, SL_REASON_LIMIT_BELOW_REQUEST,
		0, 50, 49},
	{"limit equal to request", {BYTES(50), BYTES(50), 1}, SL_REASON_NONE, 3, 0, 0},
	{"an absurd request", {BYTES(UINT64_MAX), NONE, 1}, SL_REASON_REQUEST_TOO_LARGE,
		0, UINT64_MAX, 300},
};

static void judges(void **state)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(verdicts); i++) {
		struct sl_admit_plan plan;

		sl_admit_judge(&verdicts[i].ask, gpus, &plan);
		assert_row_text(verdicts[i].name, sl_reason_name(plan.reason),
			sl_reason_name(verdicts[i].reason));
		assert_row_u64(verdicts[i].name, plan.mask, verdicts[i].mask);
		assert_row_u64(verdicts[i].name, plan.wanted_bytes, verdicts[i].wanted);
		assert_row_u64(
			verdicts[i].name, plan.available_bytes, verdicts[i].available);
	}
}

/* Where others have requested the time of a GPU, there is no room for a compute request; memory is
 * looked at first. */
static void time_needs_room(void **state)
{
	struct sl_admit_gpu two[SL_ADMIT_GPUS_MAX] = {
		{.allowed = true, .shareable_bytes = 100, .compute_full = true},
		{.allowed = true, .shareable_bytes = 90},
	};
	struct sl_admit_ask ask = {BYTES(50), NONE, 1};
	struct sl_admit_plan plan;

	sl_admit_judge(&ask, two, &plan);
	assert_row_u64("the other one", plan.mask, 2);
	ask.gpu_count = 2;
	sl_admit_judge(&ask, two, &plan);
	assert_row_text("both", sl_reason_name(plan.reason), "COMPUTE_TAKEN");
	assert_row_u64("nowhere", plan.mask, 0);
	two[1].claims_bytes = 60;
	sl_admit_judge(&ask, two, &plan);
	assert_row_text("memory", sl_reason_name(plan.reason), "REQUESTS_TAKEN");
}

/* Beside one more context a workload of the first could never be whole. */
static void a_context_needs_room(void **state)
{
	struct sl_admit_gpu two[SL_ADMIT_GPUS_MAX] = {
		{true, false, 100, 0, 0, 10, 3, true},
		{true, false, 90, 0, 0, 8, 8, false},
	};
	struct sl_admit_ask ask = {BYTES(0), NONE, 1};
	struct sl_admit_plan plan;

	sl_admit_judge(&ask, two, &plan);
	assert_row_u64("there is another", plan.mask, 2);
	two[1].crowded = true;
	two[1].reserve_bytes = 2;
	sl_admit_judge(&ask, two, &plan);
	assert_row_text("none", sl_reason_name(plan.reason), "CONTEXTS_FULL");
	assert_row_u64("a context", plan.wanted_bytes, 10);
	assert_row_u64("what is left", plan.available_bytes, 3);
	assert_row_u64("nowhere", plan.mask, 0);
}

/* Three GPUs of S. The first is free but for 100 MiB of a parked program. The second has such a
 * program, too, and a running one besides. The third is full, of parked programs alone. */
static const struct sl_admit_gpu shared[SL_ADMIT_GPUS_MAX] = {
	{true, false, S, 100 * SL_MIB, 100 * SL_MIB},
	{true, false, S, 300 * SL_MIB, 100 * SL_MIB},
	{true, false, S, S, S},
};

static const struct {
	const char *name;
	struct sl_admit_ask ask;
	enum sl_reason reason;
	uint32_t mask;
	uint64_t request, limit; /* in MiB, on the first GPU */
} less[] = {
	{"all of what is left", {PCT(100), NONE, 1, true}, SL_REASON_NONE, 1, 900, 1000},
	{"to the last byte", {PCT(92), NONE, 1, true}, SL_REASON_NONE, 1, 900, 920},
	{"by its limit alone", {NONE, PCT(92), 1, true}, SL_REASON_NONE, 1, 900, 920},
	{"not unless it may", {PCT(100), NONE, 1, false}, SL_REASON_REQUESTS_TAKEN, 0,
		1000, 1000},
	{"bytes are bytes", {BYTES(S), NONE, 1, true}, SL_REASON_REQUESTS_TAKEN, 0, 1000,
		1000},
	{"others' room is theirs", {PCT(100), NONE, 2, true}, SL_REASON_REQUESTS_TAKEN, 0,
		1000, 1000},
	{"as much as is parked, and no more", {PCT(80), NONE, 2, true}, SL_REASON_NONE, 3,
		800, 800},
	{"nobody takes less where all of it is to be had", {PCT(80), NONE, 1, true},
		SL_REASON_NONE, 1, 800, 800},
	{"nothing is not less", {PCT(60), NONE, 3, true}, SL_REASON_REQUESTS_TAKEN, 0,
		600, 600},
};

static void takes_less_beside_the_parked(void **state)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(less); i++) {
		struct sl_admit_plan plan;

		sl_admit_judge(&less[i].ask, shared, &plan);
		assert_row_text(less[i].name, sl_reason_name(plan.reason),
			sl_reason_name(less[i].reason));
		assert_row_u64(less[i].name, plan.mask, less[i].mask);
		assert_row_u64(less[i].name, plan.offer[0].request_bytes,
			less[i].request * SL_MIB);
		assert_row_u64(
			less[i].name, plan.offer[0].limit_bytes, less[i].limit * SL_MIB);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resolves_amounts),
		cmocka_unit_test(judges),
		cmocka_unit_test(time_needs_room),
		cmocka_unit_test(a_context_needs_room),
		cmocka_unit_test(takes_less_beside_the_parked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
