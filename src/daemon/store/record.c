/*
 * record - see the header
 */
#include "daemon/store/record.h"

#include <stdlib.h>
#include <string.h>

/* Longest field. */
#define BYTES_MAX 512

static const char digits[] = "0123456789abcdef";

static json_t *hex_json(const void *bytes, size_t size)
{
	const unsigned char *at = bytes;
	char hex[2 * BYTES_MAX + 1];

	if (size > BYTES_MAX)
		return NULL;
	for (size_t i = 0; i < size; i++) {
		hex[2 * i] = digits[at[i] >> 4];
		hex[2 * i + 1] = digits[at[i] & 15];
	}
	return json_stringn(hex, 2 * size);
}

static json_t *text_json(const char *text)
{
	json_t *json = json_string(text);

	return json ? json : json_pack("{s:o}", "hex", hex_json(text, strlen(text)));
}

static json_t *field_json(const struct sl_field *field, const void *object)
{
	const char *at = (const char *)object + field->offset;
	uint64_t big;
	uint32_t number;

	switch (field->type) {
	case SL_FIELD_TEXT: return text_json(at);
	case SL_FIELD_BYTES: return hex_json(at, field->size);
	case SL_FIELD_YES: return json_boolean(*(const bool *)at);
	case SL_FIELD_I32: return json_integer(*(const int32_t *)at);
	case SL_FIELD_U32:
		memcpy(&number, at, sizeof(number));
		return json_integer(number);
	case SL_FIELD_U64:
		memcpy(&big, at, sizeof(big));
		return json_integer((json_int_t)big);
	}
	return NULL;
}

json_t *sl_record_json(const struct sl_field *fields, size_t count, const void *object)
{
	json_t *json = json_object();

	for (size_t i = 0; json && i < count; i++) {
		if (json_object_set_new(
			    json, fields[i].name, field_json(&fields[i], object)) < 0) {
			json_decref(json);
			json = NULL;
		}
	}
	return json;
}

char *sl_record_write(const struct sl_field *fields, size_t count, const void *object)
{
	json_t *json = sl_record_json(fields, count, object);
	char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

	json_decref(json);
	return text;
}

/* Two digits each; returns how many bytes, or -1. */
static int from_hex(const char *hex, char *out, size_t room)
{
	size_t length = strlen(hex);

	if (length % 2 || length / 2 > room)
		return -1;
	for (size_t i = 0; i < length; i++) {
		const char *digit = strchr(digits, hex[i]);

		if (!digit)
			return -1;
		out[i / 2] = (char)((unsigned char)out[i / 2] << 4 | (digit - digits));
	}
	return (int)(length / 2);
}

static bool read_text(const json_t *json, char *out, size_t size)
{
	const char *text = json_string_value(json);
	const char *hex = json_string_value(json_object_get(json, "hex"));
	int used;

	if (hex && json_object_size(json) == 1) {
		used = from_hex(hex, out, size - 1);
		if (used <= 0 || memchr(out, '\0', (size_t)used))
			return false;
		out[used] = '\0';
		return true;
	}
	if (!text || strlen(text) != json_string_length(json) || strlen(text) >= size)
		return false;
	memcpy(out, text, strlen(text) + 1);
	return true;
}

static bool read_field(const struct sl_field *field, const json_t *json, void *object)
{
	char *at = (char *)object + field->offset;
	int64_t number = json_integer_value(json);
	uint64_t big = (uint64_t)number;
	uint32_t small = (uint32_t)number;

	switch (field->type) {
	case SL_FIELD_TEXT: return read_text(json, at, field->size);
	case SL_FIELD_BYTES:
		return json_is_string(json) && from_hex(json_string_value(json), at,
						       field->size) == (int)field->size;
	case SL_FIELD_YES: *(bool *)at = json_is_true(json); return json_is_boolean(json);
	case SL_FIELD_U64: memcpy(at, &big, sizeof(big)); return json_is_integer(json);
	case SL_FIELD_U32:
	case SL_FIELD_I32:
		memcpy(at, &small, sizeof(small));
		return json_is_integer(json) && number >= field->least &&
		       number <= field->most;
	}
	return false;
}

bool sl_record_from(const struct sl_field *fields, size_t count, size_t more,
	const json_t *json, void *object, struct sl_error *why)
{
	for (size_t i = 0; i < count; i++) {
		const json_t *value = json_object_get(json, fields[i].name);

		if (value && read_field(&fields[i], value, object))
			continue;
		sl_error_set(why, "'%s' %s", fields[i].name,
			value ? "is not what it may be" : "is missing");
		return false;
	}
	if (json_object_size(json) == count + more)
		return true;
	sl_error_set(why, "it has unknown keys");
	return false;
}

json_t *sl_record_parse(const char *text, size_t size, struct sl_error *why)
{
	json_error_t where;
	json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, &where);

	if (!json)
		sl_error_set(why, "byte %d: %.150s", where.position, where.text);
	return json;
}

bool sl_record_read(const struct sl_field *fields, size_t count, const char *text,
	void *object, struct sl_error *why)
{
	json_t *json = sl_record_parse(text, strlen(text), why);
	bool ok = json && sl_record_from(fields, count, 0, json, object, why);

	json_decref(json);
	return ok;
}
