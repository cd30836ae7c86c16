/* JSON that users had a hand in. */
#include "../../base/test.h"

#include <stdlib.h>

#include "cluster/kubernetes/api/parse.h"

static void what_jansson_refuses_is_tamed(void **state)
{
	static const struct {
		const char *name, *text, *want;
	} rows[] = {
		{"as it is", "{\"a\":[1,-2.5,\"x\"]}", "{\"a\":[1,-2.5,\"x\"]}"},
		{"largest", "[9223372036854775807]", "[9223372036854775807]"},
		{"digits", "{\"a\":123456789012345678901,\"b\":7}", "{\"a\":0,\"b\":7}"},
		{"negative", "[-123456789012345678901,1]", "[0,1]"},
		{"exponent", "[1e400,2.5e1]", "[0,25.0]"},
		{"in a string", "[\"1e400 [[[ \\\" 1e400\",1e400]",
			"[\"1e400 [[[ \\\" 1e400\",0]"},
		{"NUL", "{\"a\":\"x\\u0000y\"}", "{\"a\":\"x\\u0000y\"}"},
		{"NUL in a key", "{\"\\u0000\":1,\"b\":7}",
			"{\"\xef\xbf\xbd\":1,\"b\":7}"},
		{"half a pair", "[\"\\ud800\",\"\\uDFFFx\",\"\\udbff\\ud83d\\ude00\"]",
			"[\"\xef\xbf\xbd\",\"\xef\xbf\xbdx\","
			"\"\xef\xbf\xbd\xf0\x9f\x98\x80\"]"},
		{"no UTF-8", "[\"\xff\xc3\xa9\xc3\",\"\xed\xa0\x80\",\"\xc0\xaf\"]",
			"[\"?\xc3\xa9?\",\"???\",\"??\"]"},
		{"an escape that is none", "[\"\\u00\xff\"]", NULL},
		{"a pair without an end", "[\"\\ud800\\u", NULL},
		{"no JSON", "{\"a\":1e400", NULL},
		{"a string without an end", "[\"\\", NULL},
		{"nothing", "", NULL},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		char *text = strdup(rows[i].text);
		json_t *json = sl_kube_parse(text, strlen(text));
		char *got = json ? json_dumps(json, JSON_COMPACT) : NULL;

		if (!rows[i].want != !got)
			fail_msg("row '%s': got %s", rows[i].name, got ? got : "nothing");
		if (got)
			assert_row_text(rows[i].name, got, rows[i].want);
		free(got);
		free(text);
		json_decref(json);
	}
}

static void depth_has_an_end(void **state)
{
	enum { DEPTH = 5000 };
	static char text[2 * DEPTH + 40];
	json_t *json;

	memcpy(text, "{\"a\":7,\"x\":", 11);
	memset(text + 11, '[', DEPTH);
	memset(text + 11 + DEPTH, ']', DEPTH);
	memcpy(text + 11 + 2 * DEPTH, ",\"b\":8}", 8);
	json = sl_kube_parse(text, strlen(text));
	assert_non_null(json);
	assert_int_equal(json_integer_value(sl_kube_at(json, "a", NULL)), 7);
	assert_int_equal(json_integer_value(sl_kube_at(json, "b", NULL)), 8);
	json_decref(json);
}

static void values_are_counted(void **state)
{
	static const struct {
		const char *name, *piece;
		bool is_vast;
	} rows[] = {
		{"empty objects", "{},", true},
		{"arrays", "[],", true},
		{"numbers", "1,", true},
		{"members", "{\"\":", true},
		{"text", "\"{,[\",", false},
		{"text with quotes", "\"\\\",,,,\\\\\",", false},
		{"blanks", "   ", false},
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		size_t size = strlen(rows[i].piece);
		size_t count =
			rows[i].is_vast ? SL_KUBE_VALUES_MAX + 1 : SL_KUBE_VALUES_MAX;
		char *text = malloc(count * size), *end = text;

		assert_non_null(text);
		for (; count > 0; count--)
			end = mempcpy(end, rows[i].piece, size);
		assert_row_u64(rows[i].name, sl_kube_is_vast(text, (size_t)(end - text)),
			rows[i].is_vast);
		free(text);
	}
}

/* 32 parameters of 10 KiB may have that; a page of such claims may not. */
static void an_object_may_be_vast(void **state)
{
	enum { SIZE = 3 * SL_KUBE_VALUES_MAX };
	static char text[SIZE + 1];
	json_t *json;

	for (size_t i = 0; i < SIZE; i += 3)
		memcpy(text + i, "[],", 3);
	memcpy(text, "[  ", 3);
	text[SIZE - 1] = ']';
	assert_null(sl_kube_parse(text, SIZE));
	json = sl_kube_parse_object(text, SIZE);
	assert_int_equal(json_array_size(json), SL_KUBE_VALUES_MAX - 1);
	json_decref(json);
}

static void members_are_found(void **state)
{
	json_t *json = json_pack("{s{ss}si}", "a", "b", "x", "n", 1);

	assert_string_equal(sl_kube_text_at(json, "a", "b", NULL), "x");
	assert_string_equal(sl_kube_text_at(json, "a", "c", NULL), "");
	assert_string_equal(sl_kube_text_at(json, "n", NULL), "");
	assert_null(sl_kube_at(json, "n", "b", NULL));
	assert_null(sl_kube_at(NULL, "a", NULL));
	assert_ptr_equal(sl_kube_at(json, NULL), json);
	json_decref(json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_jansson_refuses_is_tamed),
		cmocka_unit_test(depth_has_an_end),
		cmocka_unit_test(values_are_counted),
		cmocka_unit_test(an_object_may_be_vast),
		cmocka_unit_test(members_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
