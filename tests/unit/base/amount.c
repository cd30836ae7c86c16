#include "test.h"

#include "base/amount.h"

struct row {
	const char *text;
	int outcome;
	uint32_t kind;
	uint64_t value;
	const char *says; /* part of the error */
};

#define FRACTION(text, millionths)                                       \
	{                                                                \
		text, SL_AMOUNT_OK, SL_AMOUNT_FRACTION, millionths, NULL \
	}
#define BYTES(text, bytes)                                       \
	{                                                        \
		text, SL_AMOUNT_OK, SL_AMOUNT_BYTES, bytes, NULL \
	}
#define BAD(text, says)                         \
	{                                       \
		text, SL_AMOUNT_BAD, 0, 0, says \
	}

static const struct row amounts[] = {
	FRACTION("0.25", 250000),
	FRACTION("1", 1000000),
	FRACTION("1.0", 1000000),
	FRACTION(".5", 500000),
	FRACTION("0.000001", 1),
	FRACTION("0.3333330", 333333),
	BYTES("0", 0),
	BYTES("0.0", 0),
	FRACTION("0.1234567", 123456),
	FRACTION("0.99999999", 999999),
	FRACTION("0.333333333333333333333333333333", 333333),
	FRACTION("1.0000000000000000000000000", 1000000),
	BYTES("1048576", SL_MIB),
	BYTES("4096B", 4096),
	BYTES("10737418240", 10 * SL_GIB),
	BYTES("8GiB", 8 * SL_GIB),
	BYTES("8Gi", 8 * SL_GIB),
	BYTES("8G", 8000000000ull),
	BYTES("8GB", 8000000000ull),
	BYTES("1.5GiB", 3 * SL_GIB / 2),
	BYTES("512Mi", 512 * SL_MIB),
	BYTES("100k", 100000),
	BYTES("17B", 17),
	BYTES("0.1Ki", 102),
	BYTES("2Ti", 2048 * SL_GIB),
	BYTES("0.33333333333333Gi", 357913941),
	BYTES("0.0000001GiB", 107),
	BYTES("0.0000000000000000", 0),
	BAD("8", "did you mean 8GiB?"),
	BAD("4095", "did you mean 4095GiB?"),
	BAD("4096", "did you mean 4096MiB?"),
	BAD("1048575", "Bytes take a suffix, as in 1048575B"),
	BAD("1.5", "at most 1"),
	BAD("1.000001", "at most 1"),
	BAD("1.0000001", "at most 1"),
	BAD("1.00000000000000000000000001", "at most 1"),
	BAD("0.0000001", "too small"),
	BAD("0.0000000000000000000000001", "too small"),
	BAD("-1", "negative"),
	BAD("", "write a fraction"),
	BAD("GiB", "write a fraction"),
	BAD("8 GiB", "suffixes"),
	BAD("8gib", "suffixes"),
	BAD("8GiBs", "suffixes"),
	BAD("0x10", "suffixes"),
	BAD("1e9", "suffixes"),
	BAD("25%", "write it as a fraction: 0.25"),
	BAD("100%", "write it as a fraction: 1.0"),
	BAD("12.5%", "write it as a fraction: 0.125"),
	BAD("150%", "no more than 1.0"),
	BAD("%", "write a fraction"),
	BAD("inf", "write a fraction"),
	BAD("1.2.3", "suffixes"),
	BAD("20Ei", "larger than any memory"),
	BAD("99999999999999999999", "not an amount"),
	BAD("\x1b[31m", "not an amount"),
};

static void test_amounts(void **state)
{
	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(amounts); i++) {
		const struct row *row = &amounts[i];
		struct sl_amount got = {0};
		struct sl_error err = {{0}};
		int outcome = sl_amount_parse(row->text, &got, &err);

		assert_row_u64(row->text, (uint64_t)outcome, (uint64_t)row->outcome);
		if (outcome == SL_AMOUNT_OK) {
			assert_row_u64(row->text, got.kind, row->kind);
			assert_row_u64(row->text, got.value, row->value);
		} else {
			assert_row_contains(row->text, err.text, row->says);
			assert_null(strchr(err.text, '\x1b'));
		}
	}
}

static void test_round_trip(void **state)
{
	static const struct {
		const char *text, *printed;
	} rows[] = {
		{"0.25", "0.25"},
		{"1", "1.0"},
		{"0.1", "0.1"},
		{"0.123456", "0.123456"},
		{"8GiB", "8GiB"},
		{"1.5GiB", "1536MiB"},
		{"5000B", "5000B"},
		{"1B", "1B"},
		{"1048577", "1048577"},
		{"0", "0"},
	};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_amount first, second;
		char text[32];

		assert_int_equal(
			sl_amount_parse(rows[i].text, &first, NULL), SL_AMOUNT_OK);
		sl_amount_format(&first, text, sizeof(text));
		assert_row_text(rows[i].text, text, rows[i].printed);
		assert_int_equal(sl_amount_parse(text, &second, NULL), SL_AMOUNT_OK);
		assert_memory_equal(&first, &second, sizeof(first));
	}
}

static void test_resolve(void **state)
{
	static const struct {
		const char *name;
		struct sl_amount amount;
		uint64_t want;
	} rows[] = {
		{"unset", {SL_AMOUNT_UNSET, 0, 0}, 77},
		{"bytes are exact", {SL_AMOUNT_BYTES, 0, 12345}, 12345},
		{"half", {SL_AMOUNT_FRACTION, 0, 500000}, 5 * SL_GIB},
		{"whole is not rounded", {SL_AMOUNT_FRACTION, 0, 1000000}, 10 * SL_GIB},
		{"rounds down to 2 MiB", {SL_AMOUNT_FRACTION, 0, 333333},
			1706 * 2 * SL_MIB},
	};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++)
		assert_row_u64(rows[i].name,
			sl_amount_resolve(&rows[i].amount, 10 * SL_GIB, 77),
			rows[i].want);
}

static void test_bytes(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *want;
	} rows[] = {
		{0, "0 B"},
		{1023, "1023 B"},
		{1024, "1 KiB"},
		{3 * SL_GIB + SL_GIB / 4, "3.25 GiB"},
		{SL_GIB - 1, "1 GiB"},
		{3 * SL_GIB / 2, "1.5 GiB"},
		{10 * SL_GIB + 200 * SL_MIB, "10.2 GiB"},
		{UINT64_MAX, "16 EiB"},
	};
	char text[32];

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++)
		assert_row_text(rows[i].want,
			sl_bytes_format(rows[i].bytes, text, sizeof(text)), rows[i].want);
}

static void test_durations(void **state)
{
	static const struct {
		const char *text;
		int outcome;
		sl_ns want;
	} rows[] = {
		{"250ms", SL_AMOUNT_OK, 250 * SL_MS},
		{"2s", SL_AMOUNT_OK, 2 * SL_S},
		{"90", SL_AMOUNT_OK, 90 * SL_S},
		{"10m", SL_AMOUNT_OK, 600 * SL_S},
		{"1.5h", SL_AMOUNT_OK, 5400 * SL_S},
		{"0", SL_AMOUNT_OK, 0},
		{"ten", SL_AMOUNT_BAD, 0},
		{"-1s", SL_AMOUNT_BAD, 0},
		{"5 s", SL_AMOUNT_BAD, 0},
		{"999999999999d", SL_AMOUNT_BAD, 0},
	};

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		sl_ns got = 0;

		assert_row_u64(rows[i].text,
			(uint64_t)sl_duration_parse(rows[i].text, &got, NULL),
			(uint64_t)rows[i].outcome);
		assert_row_u64(rows[i].text, got, rows[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_amounts),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_resolve),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_durations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
