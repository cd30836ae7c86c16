/* A claim's part of a node. */
#include "../../base/test.h"

#include <string.h>

#include "cluster/kubernetes/claims/share.h"

#define HEAD                                                                     \
	"{\"metadata\":{\"uid\":\"u-1\",\"namespace\":\"team\",\"name\":\"c\"}," \
	"\"status\":{\"reservedFor\":[{\"resource\":\"pods\",\"name\":\"p\"}],"  \
	"\"allocation\":{\"devices\":{\"results\":["
#define TAIL "]}}}}"
#define OURS(device, more)                                                             \
	"{\"request\":\"gpu/small\",\"driver\":\"gpu.sluice.dev\",\"pool\":\"node1\"," \
	"\"device\":\"" device "\",\"shareID\":\"s-1\"" more "}"
#define HAS(memory, limit)                                                          \
	",\"consumedCapacity\":{\"memory\":\"" memory "\",\"memoryLimit\":\"" limit \
	"\",\"compute\":\"0\"}"
#define TIME(compute, limit)                                               \
	",\"consumedCapacity\":{\"memory\":\"6Gi\",\"compute\":\"" compute \
	"\",\"computeLimit\":\"" limit "\"}"
#define OTHERS                                                                  \
	"{\"request\":\"n\",\"driver\":\"net.example.com\",\"pool\":\"node1\"," \
	"\"device\":\"n\"}"
#define ELSEWHERE                                                                \
	"{\"request\":\"gpu\",\"driver\":\"gpu.sluice.dev\",\"pool\":\"node2\"," \
	"\"device\":\"x\"}"

static int read_claim(const char *text, struct sl_share *out, struct sl_error *err)
{
	json_t *json = json_loads(text, 0, NULL);
	int r;

	assert_non_null(json);
	err->text[0] = '\0';
	r = sl_share_read(json, "node1", out, err);
	json_decref(json);
	return r;
}

static void of_one_gpu(void **state)
{
	struct sl_share share;
	struct sl_error err;

	assert_int_equal(read_claim(HEAD OTHERS
				 "," OURS("gpu-a", HAS("6Gi", "14Gi")) "," ELSEWHERE TAIL,
				 &share, &err),
		SL_SHARE_OK);
	assert_int_equal(share.count, 1);
	assert_string_equal(share.uid, "u-1");
	assert_string_equal(share.namespace, "team");
	assert_string_equal(share.pod, "p");
	assert_string_equal(share.devices[0].device, "gpu-a");
	assert_string_equal(share.devices[0].id, "s-1");
	assert_string_equal(share.devices[0].request, "gpu");
	assert_int_equal(share.memory, 6ull << 30);
	assert_int_equal(share.limit, 14ull << 30);
	assert_int_equal(share.compute_pct, 0);
	assert_int_equal(read_claim(HEAD OURS("a", TIME("20", "50")) TAIL, &share, &err),
		SL_SHARE_OK);
	assert_int_equal(share.compute_pct, 20);
	assert_int_equal(share.compute_limit_pct, 50);
}

static void whole_or_without_limit(void **state)
{
	struct sl_share share;
	struct sl_error err;

	assert_int_equal(
		read_claim(HEAD OURS("gpu-a", "") TAIL, &share, &err), SL_SHARE_OK);
	assert_true(share.memory == UINT64_MAX && share.limit == 0);
	assert_int_equal(read_claim(HEAD OURS("gpu-a", HAS("6Gi", "0")) "," OURS(
					    "gpu-b", HAS("6Gi", "0")) TAIL,
				 &share, &err),
		SL_SHARE_OK);
	assert_true(share.count == 2 && share.limit == 0);
}

/* All parts together are no more than was published. */
static void is_divided(void **state)
{
	static const struct {
		const char *name;
		uint64_t memory, limit, own;
		unsigned int factor;
		uint64_t request, has;
	} rows[] = {
		{"no factor", 6, 0, 16, 0, 6, 0},
		{"a factor of 1", 6, 14, 16, 100, 6, 14},
		{"its limit is what it claims", 6, 0, 16, 200, 3, 6},
		{"or its own", 6, 14, 16, 200, 3, 14},
		{"rounded down", 7, 0, 16, 200, 3, 7},
		{"more than one GPU has", 24, 0, 16, 200, 12, 16},
		{"a whole GPU", 32, 0, 16, 200, 16, 16},
		{"a whole one without shares", UINT64_MAX, 0, 16, 200, UINT64_MAX, 0},
		{"its GPU is not known", 6, 0, 0, 200, 3, 6},
		{"one and a half", 151, 0, 200, 150, 100, 151},
		{"very much", 1ull << 60, 0, 1ull << 60, 1000, (1ull << 60) / 10,
			1ull << 60},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_share share = {
			.memory = rows[i].memory, .limit = rows[i].limit};

		sl_share_divide(&share, rows[i].factor, rows[i].own);
		assert_row_u64(rows[i].name, share.memory, rows[i].request);
		assert_row_u64(rows[i].name, share.limit, rows[i].has);
	}
}

static void none_of_ours(void **state)
{
	static const char *const texts[] = {HEAD TAIL, HEAD OTHERS TAIL,
		HEAD ELSEWHERE TAIL, "{\"metadata\":{\"uid\":\"u\",\"name\":\"c\"}}",
		"{\"metadata\":{\"uid\":\"u\",\"name\":\"c\"},\"status\":7}"};

	for (size_t i = 0; i < SL_ARRAY_LEN(texts); i++) {
		struct sl_share share;
		struct sl_error err;

		assert_int_equal(read_claim(texts[i], &share, &err), SL_SHARE_NONE);
	}
}

static void what_is_wrong(void **state)
{
#define NINE(m)                                                                       \
	OURS("a", m)                                                                  \
	"," OURS("b", m) "," OURS("c", m) "," OURS("d", m) "," OURS("e", m) "," OURS( \
		"f", m) "," OURS("g", m) "," OURS("h", m) "," OURS("i", m)
	static const struct {
		const char *text, *words;
	} rows[] = {
		{"{}", "no ResourceClaim"},
		{HEAD OURS("a", HAS("6G1", "0")) TAIL, "memory of 6G1 is no amount"},
		{HEAD OURS("a", HAS("6Gi", "-1")) TAIL, "memoryLimit of -1"},
		{HEAD OURS("a", HAS("6Gi", "5Gi")) TAIL,
			"memoryLimit is below its memory"},
		{HEAD OURS("a", HAS("6Gi", "0")) "," OURS("b", HAS("7Gi", "0")) TAIL,
			"different amounts"},
		{HEAD OURS("a", TIME("20", "0")) "," OURS("b", TIME("30", "0")) TAIL,
			"different amounts"},
		{HEAD OURS("a", TIME("20", "10")) TAIL,
			"compute is 20 and its computeLimit 10"},
		{HEAD OURS("a", TIME("101", "0")) TAIL, "percents up to 100"},
		{HEAD OURS("a", TIME("half", "0")) TAIL, "compute of half is no amount"},
		{HEAD NINE("") TAIL, "more than 8 GPUs"},
		{HEAD OURS("a", HAS("6Gi", "0")) "," OURS("a", HAS("6Gi", "0")) TAIL,
			"two requests of the claim are on one GPU"},
		{HEAD OURS("a", ",\"adminAccess\":true") TAIL, "adminAccess"},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_share share;
		struct sl_error err;

		assert_int_equal(read_claim(rows[i].text, &share, &err), SL_SHARE_BAD);
		if (!strstr(err.text, rows[i].words))
			fail_msg("'%s' is not in: %s", rows[i].words, err.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_one_gpu),
		cmocka_unit_test(whole_or_without_limit),
		cmocka_unit_test(is_divided),
		cmocka_unit_test(none_of_ours),
		cmocka_unit_test(what_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
