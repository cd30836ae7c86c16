/* Messages of Protocol Buffers: written ones are read, and broken ones are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/kubernetes/api/proto.h"

static void what_is_written_is_read(void **state)
{
	struct sl_proto_out out = {0}, inner = {0};
	struct sl_proto_field field;
	struct sl_proto_in in;
	char text[8];

	sl_proto_put_text(&inner, 3, "abc");
	sl_proto_put_number(&out, 1, 300);
	sl_proto_put_text(&out, 2, "");
	sl_proto_put_message(&out, 15, &inner);
	sl_proto_put_number(&out, 16, UINT64_MAX);
	assert_false(out.failed);
	/* As others write it. */
	assert_memory_equal(out.data,
		"\x08\xac\x02\x12\x00\x7a\x05\x1a\x03"
		"abc\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		out.size);
	in = (struct sl_proto_in){out.data, out.data + out.size};
	assert_int_equal(sl_proto_next(&in, &field), SL_PROTO_FIELD);
	assert_int_equal(field.number, 1);
	assert_int_equal(field.value, 300);
	assert_int_equal(sl_proto_next(&in, &field), SL_PROTO_FIELD);
	assert_true(sl_proto_text(&field, text, sizeof(text)));
	assert_string_equal(text, "");
	assert_int_equal(sl_proto_next(&in, &field), SL_PROTO_FIELD);
	assert_int_equal(field.number, 15);
	in = (struct sl_proto_in){field.data, field.data + field.size};
	assert_int_equal(sl_proto_next(&in, &field), SL_PROTO_FIELD);
	assert_true(sl_proto_text(&field, text, sizeof(text)));
	assert_string_equal(text, "abc");
	assert_false(sl_proto_text(&field, text, 3));
	assert_int_equal(sl_proto_next(&in, &field), SL_PROTO_END);
	sl_proto_fini(&out);
}

static int read_all(const char *data, size_t size, unsigned int *fields)
{
	/* Of just that size, so that a sanitizer sees what reads behind it. */
	uint8_t *copy = malloc(size ? size : 1);
	struct sl_proto_in in = {copy, copy + size};
	struct sl_proto_field field;
	int r;

	memcpy(copy, data, size);
	*fields = 0;
	while ((r = sl_proto_next(&in, &field)) == SL_PROTO_FIELD)
		(*fields)++;
	free(copy);
	return r;
}

/* A text that was cut within a character, and bytes that never were one. */
static void text_is_utf8(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {{"", ""}, {"m\xc3\xbc", "m\xc3\xbc"}, {"m\xc3", "m"},
		{"\xe2\x82", ""},
		{"a\xff"
		 "b",
			"ab"},
		{"\xf0\x9f\x98\x80!", "\xf0\x9f\x98\x80!"}};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		struct sl_proto_out out = {0};
		struct sl_proto_field field;
		struct sl_proto_in in;
		char text[16];

		sl_proto_put_text(&out, 1, rows[i].text);
		in = (struct sl_proto_in){out.data, out.data + out.size};
		assert_int_equal(sl_proto_next(&in, &field), SL_PROTO_FIELD);
		assert_true(sl_proto_text(&field, text, sizeof(text)));
		assert_string_equal(text, rows[i].want);
		assert_int_equal(sl_proto_next(&in, &field), SL_PROTO_END);
		sl_proto_fini(&out);
	}
}

static void other_kinds_are_passed_over(void **state)
{
	static const char message[] = "\x09"
				      "12345678"
				      "\x15"
				      "1234"
				      "\x18\x01";
	unsigned int fields;

	assert_int_equal(read_all(message, sizeof(message) - 1, &fields), SL_PROTO_END);
	assert_int_equal(fields, 3);
	/* Cut anywhere but between two fields it is refused. */
	for (size_t size = 0; size < sizeof(message) - 1; size++)
		assert_int_equal(read_all(message, size, &fields),
			size == 0 || size == 9 || size == 14 ? SL_PROTO_END
							     : SL_PROTO_BAD);
}

static void what_is_none(void **state)
{
	static const struct {
		const char *data;
		size_t size;
	} rows[] = {
		{"\x00\x00", 2}, /* field 0 */
		{"\x0b\x0c", 2}, /* a group */
		{"\x0e", 1},     /* kind 6 */
		{"\x0a\x05"
		 "abc",
			5},                                           /* too short */
		{"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11}, /* 2^64 - 1 bytes */
		{"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11}, /* 65 bits */
		{"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12}, /* 11 bytes */
		{"\x88\x80\x80\x80\x10\x00", 6},                          /* field 2^29 */
	};

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		unsigned int fields;

		if (read_all(rows[i].data, rows[i].size, &fields) != SL_PROTO_BAD)
			fail_msg("row %zu is taken for a message", i);
	}
}

static void text_has_no_nul(void **state)
{
	static const uint8_t nul[] = "\x0a\x03"
				     "a\0b";
	struct sl_proto_in in = {nul, nul + 5};
	struct sl_proto_field field;
	char text[8];

	assert_int_equal(sl_proto_next(&in, &field), SL_PROTO_FIELD);
	assert_false(sl_proto_text(&field, text, sizeof(text)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(text_is_utf8),
		cmocka_unit_test(other_kinds_are_passed_over),
		cmocka_unit_test(what_is_none),
		cmocka_unit_test(text_has_no_nul),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
