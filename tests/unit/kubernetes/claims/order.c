/* Orders by annotations, and what is said of those that cannot be. */
#include "../../base/test.h"

#include "cluster/kubernetes/claims/order.h"

#define REQUEST (6 * SL_GIB)
#define MOST    (15 * SL_GIB + SL_MIB / 2)

static void limits(void **state)
{
	static const struct {
		const char *text;
		uint64_t limit; /* 0: refused */
		const char *want;
	} rows[] = {
		{"12Gi", 12 * SL_GIB, ""},
		{"6Gi", REQUEST, ""},
		{"8G", 8000000000, ""},
		{"9663676416", 9 * SL_GIB, ""},
		{"15Gi", 15 * SL_GIB, ""},
		{"8GiB", 0, "8GiB is no amount of Kubernetes; write 8Gi"},
		{"8GB", 0, "write 8G"},
		{"eight", 0, "'eight' is no amount; write one such as 8Gi"},
		{"", 0, "'' is no amount"},
		{"-8Gi", 0, "is no amount"},
		{"B", 0, "'B' is no amount"},
		{"8192", 0, "at least 6Gi, with its unit"},
		{"100m", 0, "at least 6Gi, with its unit"},
		{"4Gi", 0, "4Gi (4 GiB) is below the request; write at least 6Gi"},
		{"16Gi", 0, "above what the GPU can share; write at most 15Gi"},
		{"1Ei", 0, "above what the GPU can share"},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_error err = {0};
		uint64_t limit = 0;
		bool is_right = sl_kube_order_limit(
			rows[i].text, REQUEST, MOST, UINT64_MAX, &limit, &err);

		assert_row_u64(rows[i].text, is_right, rows[i].limit != 0);
		assert_row_u64(rows[i].text, limit, rows[i].limit);
		assert_row_contains(rows[i].text, err.text, rows[i].want);
		if (!is_right)
			assert_row_contains(rows[i].text, err.text, "sluice.dev/limit: ");
	}
}

static void a_gpu_that_is_not_known_bounds_nothing(void **state)
{
	struct sl_error err = {0};
	uint64_t limit = 0;

	assert_true(sl_kube_order_limit("64Gi", REQUEST, 0, UINT64_MAX, &limit, &err));
	assert_int_equal(limit, 64 * SL_GIB);
}

static void a_namespace_bounds_it(void **state)
{
	struct sl_error err = {0};
	uint64_t limit = 0;

	assert_true(sl_kube_order_limit("8Gi", REQUEST, MOST, 8 * SL_GIB, &limit, &err));
	assert_false(sl_kube_order_limit("9Gi", REQUEST, MOST, 8 * SL_GIB, &limit, &err));
	assert_non_null(strstr(err.text, "sluice.dev/max-limit"));
	assert_non_null(strstr(err.text, "write at most 8Gi"));
	assert_int_equal(limit, 8 * SL_GIB);
}

#define POD(annotations, conditions)                         \
	"{\"metadata\":{\"annotations\":{" annotations "}}," \
	"\"status\":{\"conditions\":[" conditions "]}}"
#define PARK(value)     "\"sluice.dev/park\":\"" value "\""
#define ORDERED(status) "{\"type\":\"sluice.dev/Parked\",\"status\":\"" status "\"}"
#define OTHER           "{\"type\":\"Ready\",\"status\":\"True\"}"

static void parking(void **state)
{
	static const struct {
		const char *pod;
		bool is_parked, is_wrong;
	} rows[] = {
		{"{}", false, false},
		{POD("", OTHER), false, false},
		{POD(PARK("true"), ""), true, false},
		{POD(PARK("false"), ""), false, false},
		{POD(PARK(""), ""), false, false},
		{POD(PARK("yes"), ""), false, true},
		{POD(PARK("True"), ""), false, true},
		{POD("", OTHER "," ORDERED("True")), true, false},
		{POD("", ORDERED("False")), false, false},
		{POD("", ORDERED("Unknown")), false, false},
		{POD(PARK("false"), ORDERED("True")), true, false},
		{POD(PARK("1"), ORDERED("True")), true, true},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		json_t *pod = json_loads(rows[i].pod, 0, NULL);
		struct sl_error err = {0};

		assert_non_null(pod);
		assert_row_u64(
			rows[i].pod, sl_kube_order_park(pod, &err), rows[i].is_parked);
		assert_row_u64(rows[i].pod, err.text[0] != '\0', rows[i].is_wrong);
		if (rows[i].is_wrong)
			assert_row_contains(rows[i].pod, err.text, "write \"true\"");
		json_decref(pod);
	}
}

static void claims_of_a_pod(void **state)
{
	json_t *pod = json_loads(
		"{\"spec\":{\"resourceClaims\":[{\"name\":\"a\",\"resourceClaimName\":"
		"\"own\"}"
		",{\"name\":\"b\",\"resourceClaimTemplateName\":\"t\"}]},"
		"\"status\":{\"resourceClaimStatuses\":[{\"name\":\"b\","
		"\"resourceClaimName\":\"made\"},{\"name\":\"c\"}],"
		"\"extendedResourceClaimStatus\":{\"resourceClaimName\":\"whole\"}}}",
		0, NULL);
	json_t *names = sl_kube_order_claims(pod);
	json_t *want = json_pack("[sss]", "own", "made", "whole");

	assert_true(json_equal(names, want));
	json_decref(want);
	json_decref(names);
	names = sl_kube_order_claims(NULL);
	assert_int_equal(json_array_size(names), 0);
	json_decref(names);
	json_decref(pod);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits),
		cmocka_unit_test(a_gpu_that_is_not_known_bounds_nothing),
		cmocka_unit_test(a_namespace_bounds_it),
		cmocka_unit_test(parking),
		cmocka_unit_test(claims_of_a_pod),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
