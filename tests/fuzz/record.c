/*
 * A record that is read can be written, and is the same when read again. The input is a text. With
 * an odd first byte it is a list of edits (place, byte) of a valid record: chance alone would never
 * write one.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/store/record.h"

struct object {
	char text[40];
	uint8_t bytes[16];
	uint32_t small;
	int32_t around;
	uint64_t big;
	bool yes;
};

static const struct sl_field fields[] = {
	SL_FIELD_AT(object, TEXT, text, 0, 0),
	SL_FIELD_AT(object, BYTES, bytes, 0, 0),
	SL_FIELD_AT(object, U32, small, 1, 99),
	SL_FIELD_AT(object, I32, around, -7, 7),
	SL_FIELD_AT(object, U64, big, 0, 0),
	SL_FIELD_AT(object, YES, yes, 0, 0),
};

static char *write_it(const struct object *object)
{
	char *text = sl_record_write(fields, SL_ARRAY_LEN(fields), object);

	if (!text)
		abort();
	return text;
}

static void try_text(const char *text)
{
	struct object one = {0}, two = {0};
	struct sl_error err = {0};
	char *first, *second;

	if (!sl_record_read(fields, SL_ARRAY_LEN(fields), text, &one, &err)) {
		if (!err.text[0])
			abort();
		return;
	}
	if (one.small < 1 || one.small > 99 || one.around < -7 || one.around > 7 ||
		!memchr(one.text, '\0', sizeof(one.text)))
		abort();
	first = write_it(&one);
	if (!sl_record_read(fields, SL_ARRAY_LEN(fields), first, &two, &err))
		abort();
	second = write_it(&two);
	if (strcmp(first, second) != 0)
		abort();
	free(first);
	free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct object goods[] = {
		{"train \"\\\t\xc3\xa9", {1, 255}, 5, -7, UINT64_MAX, true},
		{"not UTF-8: \xff", {0}, 99, 7, 1, false}};
	char *text;
	size_t length;

	if (size < 1)
		return 0;
	if (!(data[0] & 1)) {
		text = strndup((const char *)data + 1, size - 1);
		if (text)
			try_text(text);
		free(text);
		return 0;
	}
	text = write_it(&goods[data[0] >> 1 & 1]);
	length = strlen(text);
	/* One edit in most inputs: two good ones in a row are rare enough. */
	for (size_t i = 1; i + 1 < size && i < 2 * (1u + (data[0] >> 6)); i += 2)
		text[data[i] % length] = data[i + 1] ? (char)data[i + 1] : ' ';
	try_text(text);
	free(text);
	return 0;
}
