/* Quantities as Kubernetes writes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/kubernetes/api/quantity.h"

static void right_ones(void **state)
{
	static const struct {
		const char *text;
		uint64_t value;
	} rows[] = {
		{"0", 0},
		{"6Gi", 6ull << 30},
		{"+6Gi", 6ull << 30},
		{"1.5Gi", 3ull << 29},
		{".5Ki", 512},
		{"5.", 5},
		{"6442450944", 6442450944},
		{"1500M", 1500000000},
		{"1k", 1000},
		{"1Ki", 1024},
		{"2Ei", 2ull << 60},
		{"1E", 1000000000000000000},
		{"1e3", 1000},
		{"1E3", 1000},
		{"1.25e2", 125},
		{"25e-1", 3},
		{"1e-30", 1},
		{"0e39", 0},
		{"100m", 1},
		{"1000m", 1},
		{"1001m", 2},
		{"1n", 1},
		{"0.000000001", 1},
		{"1.000000000000000000000000000000000000000000", 1},
		{"4611686018427387904", 1ull << 62},
		{"0000000000000000000000000000000000000000000001", 1},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		uint64_t value = 77;

		if (!sl_kube_quantity_parse(rows[i].text, &value) ||
			value != rows[i].value)
			fail_msg("%s: %llu", rows[i].text, (unsigned long long)value);
	}
}

static void wrong_ones(void **state)
{
	static const char *const texts[] = {"", ".", "-1", "Gi", "6GiB", "6gi", "6 Gi",
		" 6", "6K", "1e", "1e+", "1e1.5", "1e99", "0x10", "1.2.3", "6Gi ", "1i",
		"8Ei", "9E", "4611686018427387905",
		"99999999999999999999999999999999999999999", "inf", "nan", "1 "};

	for (size_t i = 0; i < SL_ARRAY_LEN(texts); i++) {
		uint64_t value;

		if (sl_kube_quantity_parse(texts[i], &value))
			fail_msg("'%s' is taken for %llu", texts[i],
				(unsigned long long)value);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(right_ones), cmocka_unit_test(wrong_ones)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
