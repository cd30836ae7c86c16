/*
 * proto - the wire format of Protocol Buffers, as far as the kubelet's messages need it
 *
 * A message is a list of numbered fields. Writing appends fields to a growing buffer; an inner
 * message is written separately and put as bytes. Reading walks the fields of untrusted bytes and
 * skips unknown field numbers, as the format demands. Pure but for memory.
 */
#ifndef SL_CLUSTER_KUBERNETES_API_PROTO_H
#define SL_CLUSTER_KUBERNETES_API_PROTO_H

#include "base/sl.h"

/* Zero-initialise. */
struct sl_proto_out {
	uint8_t *data;
	size_t size, room;
	bool failed; /* out of memory: later fields are missing */
};

void sl_proto_put_number(struct sl_proto_out *out, uint32_t field, uint64_t value);
void sl_proto_put_bytes(
	struct sl_proto_out *out, uint32_t field, const void *data, size_t size);
/* Leaves out bytes that are not UTF-8, such as half a character of a cut text: the format demands
 * UTF-8, and the kubelet drops a whole message over one bad byte. The format also omits empty
 * fields, except repeated texts. */
void sl_proto_put_text(struct sl_proto_out *out, uint32_t field, const char *text);
/* Appends the message of inner, which is freed; its failure becomes out's. */
void sl_proto_put_message(
	struct sl_proto_out *out, uint32_t field, struct sl_proto_out *inner);
void sl_proto_fini(struct sl_proto_out *out);

struct sl_proto_in {
	const uint8_t *at, *end;
};

struct sl_proto_field {
	uint32_t number;
	bool is_bytes;  /* text, bytes or a message: data and size; else value */
	uint64_t value; /* of a number; fixed32 and fixed64, too */
	const uint8_t *data;
	size_t size;
};

enum { SL_PROTO_FIELD = 0, SL_PROTO_END, SL_PROTO_BAD };

/* The next field. BAD: the rest is not a message and cannot be read. */
SL_MUST_CHECK int sl_proto_next(struct sl_proto_in *in, struct sl_proto_field *field);
/* Copies a text of at most size - 1 bytes without NUL. False: it is another kind of field, or too
 * long. */
SL_MUST_CHECK bool sl_proto_text(
	const struct sl_proto_field *field, char *text, size_t size);

#endif
