/*
 * Whatever decodes must be printable and decode again to the same bytes; the first byte of the
 * input chooses the direction, so that all senders are tried.
 */
#include "fuzz.h"

#include "wire/wire.h"

#include <stdlib.h>
#include <string.h>

/* As long as the largest number of a message, and one more. */
enum {
	TYPES = sizeof((const char[]){
#define SL_MSG(NAME, name, number, since, sender, fields) [number] = 1,
#include "wire/messages.def"
#undef SL_MSG
	})
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sl_error err = {{0}};
	union sl_msg msg, again;
	uint8_t fixed[sizeof(union sl_msg) + 1] = {0};

	if (size < 2)
		return 0;
	/* Steer to a known type and version half of the time, else the head is never right. */
	size = sl_min_u64(size - 1, sizeof(fixed));
	memcpy(fixed, data + 1, size);
	if (data[0] & 8 && size >= 8) {
		uint32_t head[2] = {fixed[0] % (uint32_t)TYPES, SL_PROTOCOL_VERSION};

		memcpy(fixed, head, sizeof(head));
		if (data[0] & 16 && sl_wire_size(head[0]))
			size = sl_wire_size(head[0]);
	}
	if (sl_wire_decode(fixed, size, data[0] & 7u, &msg, &err) != SL_WIRE_OK)
		return 0;
	if (sl_wire_decode(&msg, sl_wire_size(msg.head.type), data[0] & 7u, &again,
		    &err) != SL_WIRE_OK)
		abort();
	if (memcmp(&msg, &again, sizeof(msg)) != 0)
		abort();
	if (msg.head.type == SL_MSG_RUN && strlen(msg.run.name) >= sizeof(msg.run.name))
		abort();
	return 0;
}
