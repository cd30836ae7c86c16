/*
 * proto - see the header
 */
#include "cluster/kubernetes/api/proto.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

/* --- writing ------------------------------------------------------------------------------ */

static void put(struct sl_proto_out *out, const void *data, size_t size)
{
	if (!size || out->failed)
		return;
	if (out->size + size > out->room) {
		size_t room = 2 * (out->size + size) + 64;
		uint8_t *grown = realloc(out->data, room);

		if (!grown) {
			out->failed = true;
			return;
		}
		out->data = grown;
		out->room = room;
	}
	memcpy(out->data + out->size, data, size);
	out->size += size;
}

static void put_varint(struct sl_proto_out *out, uint64_t value)
{
	uint8_t bytes[10];
	size_t size = 0;

	for (; value >= 0x80; value >>= 7)
		bytes[size++] = (uint8_t)(value | 0x80);
	bytes[size++] = (uint8_t)value;
	put(out, bytes, size);
}

void sl_proto_put_number(struct sl_proto_out *out, uint32_t field, uint64_t value)
{
	put_varint(out, (uint64_t)field << 3 | VARINT);
	put_varint(out, value);
}

void sl_proto_put_bytes(
	struct sl_proto_out *out, uint32_t field, const void *data, size_t size)
{
	put_varint(out, (uint64_t)field << 3 | BYTES);
	put_varint(out, size);
	put(out, data, size);
}

void sl_proto_put_text(struct sl_proto_out *out, uint32_t field, const char *text)
{
	const char *from = text, *at = text;
	size_t size = 0;

	for (uint32_t c; (c = sl_text_next(&at)); from = at)
		size += c == UINT32_MAX ? 0 : (size_t)(at - from);
	put_varint(out, (uint64_t)field << 3 | BYTES);
	put_varint(out, size);
	from = at = text;
	for (uint32_t c; (c = sl_text_next(&at)); from = at) {
		if (c != UINT32_MAX)
			put(out, from, (size_t)(at - from));
	}
}

void sl_proto_put_message(
	struct sl_proto_out *out, uint32_t field, struct sl_proto_out *inner)
{
	sl_proto_put_bytes(out, field, inner->data, inner->size);
	out->failed |= inner->failed;
	sl_proto_fini(inner);
}

void sl_proto_fini(struct sl_proto_out *out)
{
	free(out->data);
	*out = (struct sl_proto_out){0};
}

/* --- reading ------------------------------------------------------------------------------ */

static bool get_varint(struct sl_proto_in *in, uint64_t *out)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 64 && in->at < in->end; shift += 7) {
		uint8_t byte = *in->at++;

		/* The tenth byte has space for one bit. */
		if (shift == 63 && byte > 1)
			return false;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*out = value;
			return true;
		}
	}
	return false;
}

static bool get_fixed(struct sl_proto_in *in, size_t size, uint64_t *out)
{
	*out = 0;
	if ((size_t)(in->end - in->at) < size)
		return false;
	for (size_t i = 0; i < size; i++)
		*out |= (uint64_t)*in->at++ << (8 * i);
	return true;
}

static bool get_bytes(struct sl_proto_in *in, struct sl_proto_field *field)
{
	uint64_t size;

	if (!get_varint(in, &size) || size > (uint64_t)(in->end - in->at))
		return false;
	field->is_bytes = true;
	field->data = in->at;
	field->size = (size_t)size;
	in->at += size;
	return true;
}

int sl_proto_next(struct sl_proto_in *in, struct sl_proto_field *field)
{
	uint64_t tag;
	bool ok;

	*field = (struct sl_proto_field){0};
	if (in->at == in->end)
		return SL_PROTO_END;
	if (!get_varint(in, &tag) || tag >> 3 == 0 || tag >> 3 > (1u << 29) - 1)
		return SL_PROTO_BAD;
	field->number = (uint32_t)(tag >> 3);
	switch (tag & 7) {
	case VARINT: ok = get_varint(in, &field->value); break;
	case FIXED64: ok = get_fixed(in, 8, &field->value); break;
	case FIXED32: ok = get_fixed(in, 4, &field->value); break;
	case BYTES: ok = get_bytes(in, field); break;
	default: ok = false; /* groups, which proto3 does not have */
	}
	return ok ? SL_PROTO_FIELD : SL_PROTO_BAD;
}

bool sl_proto_text(const struct sl_proto_field *field, char *text, size_t size)
{
	if (!field->is_bytes || field->size >= size ||
		(field->size && memchr(field->data, '\0', field->size)))
		return false;
	if (field->size)
		memcpy(text, field->data, field->size);
	text[field->size] = '\0';
	return true;
}
