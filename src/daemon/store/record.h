/*
 * record - an object as the text of a record, by a table of its fields
 *
 * The text is a JSON object. Reading is strict: each field is there, is in its range, and nothing
 * else is there. A text that is not UTF-8 (a command is the user's bytes) is an object with its
 * bytes in hex. Pure.
 */
#ifndef SL_DAEMON_STORE_RECORD_H
#define SL_DAEMON_STORE_RECORD_H

#include <jansson.h>

#include "base/error.h"

struct sl_field {
	const char *name;
	enum {
		SL_FIELD_TEXT,  /* char[size] */
		SL_FIELD_BYTES, /* uint8_t[size] */
		SL_FIELD_U32,
		SL_FIELD_I32,
		SL_FIELD_U64, /* also int64_t; from 2^63 on written as negative numbers */
		SL_FIELD_YES  /* bool */
	} type;
	size_t offset, size;
	int64_t least, most; /* of U32 and I32 */
};

#define SL_FIELD_AT(type, what, member, least, most)                       \
	{                                                                  \
#member, SL_FIELD_##what, offsetof(struct type, member),   \
			sizeof(((struct type *)NULL)->member), least, most \
	}

/* NULL without memory. The caller owns it. */
json_t *sl_record_json(const struct sl_field *fields, size_t count, const void *object);
/* The same as text. */
char *sl_record_write(const struct sl_field *fields, size_t count, const void *object);
/* more: number of keys besides the fields. False: why says what is wrong. */
SL_MUST_CHECK bool sl_record_from(const struct sl_field *fields, size_t count,
	size_t more, const json_t *json, void *object, struct sl_error *why);
/* NULL: not JSON, and why says where. */
json_t *sl_record_parse(const char *text, size_t size, struct sl_error *why);
/* Both. */
SL_MUST_CHECK bool sl_record_read(const struct sl_field *fields, size_t count,
	const char *text, void *object, struct sl_error *why);

#endif
