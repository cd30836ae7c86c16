/*
 * proto - the wire format of Protocol Buffers, as far as the kubelet's messages need it
 *
 * A message is a list of fields, each with a number. Writing appends fields to a buffer that grows;
 * a message within a message is written by itself and put as bytes. Reading goes through the
 * fields of a slice of bytes, which may be anybody's; those of a number that the reader does not
 * know are passed over, as the format demands. Pure but for memory.
 */
#ifndef SL_CLUSTER_KUBERNETES_API_PROTO_H
#define SL_CLUSTER_KUBERNETES_API_PROTO_H

#include "base/sl.h"

/* Zero-initialise. */
struct sl_proto_out {
	uint8_t *data;
	size_t size, room;
	bool failed; /* no memory: what was put since is missing */
};

void sl_proto_put_number(struct sl_proto_out *out, uint32_t field, uint64_t value);
void sl_proto_put_bytes(
	struct sl_proto_out *out, uint32_t field, const void *data, size_t size);
/* The format demands UTF-8, and the kubelet drops a whole message over one byte that is none, such
 * as half a character where a text was cut: those bytes are left out. The format also leaves out
 * what is empty; repeated texts are put all the same. */
void sl_proto_put_text(struct sl_proto_out *out, uint32_t field, const char *text);
/* The message of inner, which is freed; its failure becomes out's. */
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

/* The next field. BAD: what follows is no message; nothing more can be read. */
SL_MUST_CHECK int sl_proto_next(struct sl_proto_in *in, struct sl_proto_field *field);
/* Copies a text of at most size - 1 bytes without NUL. False: it is not that. */
SL_MUST_CHECK bool sl_proto_text(
	const struct sl_proto_field *field, char *text, size_t size);

#endif
