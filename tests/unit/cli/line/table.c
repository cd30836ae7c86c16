/* Tables: a text that fits is whole, others are cut where they may be, numbers never. */
#include "../../base/test.h"

#include "base/amount.h"
#include "cli/line/table.h"

#include <stdlib.h>

static const struct sl_column columns[] = {
	{"NAME", false, 6, 0},
	{"PROJECT", false, 4, 1},
	{"USED", true, 0, 0},
	{"COMMAND", false, 8, 2},
};

static char *print(const struct sl_table *table, unsigned int width)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	sl_table_print(table, width, out);
	fclose(out);
	return text;
}

static struct sl_table *make(
	const char *name, const char *project, const char *held, const char *command)
{
	struct sl_table *t = sl_table_new(columns, 4);

	sl_table_set(t, 0, "%s", name);
	sl_table_set(t, 1, "%s", project);
	sl_table_set(t, 2, "%s", held);
	sl_table_set(t, 3, "%s", command);
	assert_true(sl_table_end_row(t));
	return t;
}

static const struct {
	const char *row;
	unsigned int width;
	const char *want;
} rows[] = {
	{"no terminal", 0,
		"NAME         PROJECT     USED  COMMAND\n"
		"a-long-name  research  9.5GiB  python serve.py --port 1\n"},
	{"fits", 80,
		"NAME         PROJECT     USED  COMMAND\n"
		"a-long-name  research  9.5GiB  python serve.py --port 1\n"},
	{"command cut", 50,
		"NAME         PROJECT     USED  COMMAND\n"
		"a-long-name  research  9.5GiB  python serve.py -..\n"},
	{"all but the name cut", 38,
		"NAME         PROJECT    USED  COMMAND\n"
		"a-long-name  resea..  9.5GiB  python..\n"},
	{"project dropped for the name", 34,
		"NAME           USED  COMMAND\n"
		"a-long-name  9.5GiB  python serv..\n"},
	{"command dropped for the name", 26,
		"NAME           USED\n"
		"a-long-name  9.5GiB\n"},
	{"name cut", 16,
		"NAME        USED\n"
		"a-long..  9.5GiB\n"},
};

static void test_widths(void **state)
{
	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_table *t = make(
			"a-long-name", "research", "9.5GiB", "python serve.py --port 1");
		char *text = print(t, rows[i].width);
		size_t line;

		assert_row_text(rows[i].row, text, rows[i].want);
		for (const char *at = text; rows[i].width && *at; at += line + 1) {
			line = strcspn(at, "\n");
			assert_true(line <= rows[i].width);
		}
		free(text);
		sl_table_free(t);
	}
}

static void test_hostile_text(void **state)
{
	struct sl_table *t = make("\x1b[2J\n", "p", "0", "caf\xc3\xa9");
	char *text = print(t, 0);

	(void)state;
	assert_null(strchr(text, '\x1b'));
	assert_row_contains("escape", text, "?[2J?");
	assert_row_contains("utf-8", text, "caf\xc3\xa9\n");
	free(text);
	sl_table_free(t);
}

static void test_many_rows(void **state)
{
	struct sl_table *t = sl_table_new(columns, 4);
	char *text;
	size_t lines = 0;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		sl_table_set(t, 0, "%d", i);
		assert_true(sl_table_end_row(t));
	}
	text = print(t, 0);
	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	assert_int_equal(lines, 1001);
	assert_row_contains("last", text, "999");
	free(text);
	sl_table_free(t);
}

static void test_bytes(void **state)
{
	static const struct {
		const char *want;
		uint64_t bytes;
	} cases[] = {
		{"0B", 0},
		{"999B", 999},
		{"1KiB", 1024},
		{"512MiB", 512 * SL_MIB},
		{"0.98GiB", 1000 * SL_MIB},
		{"1.13GiB", 9 * SL_GIB / 8},
		{"1.5GiB", 3 * SL_GIB / 2},
		{"3.25GiB", 13 * SL_GIB / 4},
		{"16GiB", 16 * SL_GIB},
		{"16.1GiB", 16 * SL_GIB + 100 * SL_MIB},
		{"141GiB", 141 * SL_GIB + 1},
		{"16EiB", UINT64_MAX},
	};
	char buf[16];

	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(cases); i++)
		assert_row_text(cases[i].want,
			sl_bytes_short(cases[i].bytes, buf, sizeof(buf)), cases[i].want);
	assert_string_equal(sl_table_age(99999, buf, sizeof(buf)), "99s");
	assert_string_equal(sl_table_age(100000, buf, sizeof(buf)), "1m");
	assert_string_equal(sl_table_age(3600000ull * 99, buf, sizeof(buf)), "99h");
	assert_string_equal(sl_table_age(3600000ull * 24 * 9, buf, sizeof(buf)), "9d");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_widths),
		cmocka_unit_test(test_hostile_text),
		cmocka_unit_test(test_many_rows),
		cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
