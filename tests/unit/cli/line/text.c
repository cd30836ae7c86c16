/* Other people's text: no control character of it reaches a terminal or breaks JSON. */
#include "../../base/test.h"

#include "cli/line/text.h"

#include <stdio.h>
#include <stdlib.h>

static const struct {
	const char *row, *text, *tame, *json;
} rows[] = {
	{"plain", "srv-1", "srv-1", "srv-1"},
	{"empty", "", "", ""},
	{"utf-8", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
		"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
		"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
	{"escape", "a\x1b[31m\n", "a?[31m?", "a\x1b[31m\n"},
	{"delete", "a\x7f", "a?", "a\x7f"},
	{"C1 in two bytes",
		"a\xc2\x9b"
		"31m",
		"a?31m",
		"a\xc2\x9b"
		"31m"},
	{"turned around",
		"a\xe2\x80\xae"
		"b\xe2\x81\xa6",
		"a?b?",
		"a\xe2\x80\xae"
		"b\xe2\x81\xa6"},
	{"no UTF-8", "a\xff\xc3", "a??", "a\xef\xbf\xbd\xef\xbf\xbd"},
	{"cut", "\xe2\x82", "??", "\xef\xbf\xbd\xef\xbf\xbd"},
	{"overlong", "\xc0\xaf", "??", "\xef\xbf\xbd\xef\xbf\xbd"},
	{"surrogate", "\xed\xa0\x80", "???", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
	{"beyond", "\xf4\x90\x80\x80", "????",
		"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
};

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		char text[64];
		json_t *string = sl_text_json(rows[i].text);

		snprintf(text, sizeof(text), "%s", rows[i].text);
		sl_text_tame(text);
		assert_row_text(rows[i].row, text, rows[i].tame);
		assert_non_null(string);
		assert_row_text(rows[i].row, json_string_value(string), rows[i].json);
		json_decref(string);
	}
}

/* Every string of three bytes: the result is UTF-8, never longer, without controls. */
static void test_all(void **state)
{
	(void)state;
	for (unsigned int bits = 0; bits < 1u << 24; bits += 7) {
		char text[4] = {(char)bits, (char)(bits >> 8), (char)(bits >> 16), 0};
		const char *at = text;
		size_t before = strlen(text);
		uint32_t c;

		sl_text_tame(text);
		assert_true(strlen(text) <= before);
		while ((c = sl_text_next(&at)))
			assert_true(
				c != UINT32_MAX && c >= 0x20 && (c < 0x7f || c >= 0xa0));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
