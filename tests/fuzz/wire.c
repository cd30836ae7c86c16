/*
 * Bytes that decode must be printable and decode again to the same bytes; the first byte of the
 * input chooses the direction, so that all senders are tried. Some of the bytes also go through a
 * socket with some descriptors. Of a message's descriptors all or none arrive, and a message that
 * needs some arrives with as many as it says.
 */
#include "fuzz.h"

#include "wire/wire.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* As long as the largest number of a message, and one more. */
enum {
	TYPES = sizeof((const char[]){
#define SL_MSG(NAME, name, number, sender, fields) [number] = 1,
#include "wire/messages.def"
#undef SL_MSG
	})
};

enum { FDS_MOST = 250 }; /* many more than a message may have */

static void send_with_fds(int fd, const uint8_t *data, size_t size, unsigned int count)
{
	union {
		struct cmsghdr part;
		char room[CMSG_SPACE(FDS_MOST * sizeof(int))];
	} control = {0};
	struct iovec part = {.iov_base = (void *)(uintptr_t)data, .iov_len = size};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};

	if (count) {
		header.msg_control = control.room;
		header.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.part.cmsg_level = SOL_SOCKET;
		control.part.cmsg_type = SCM_RIGHTS;
		control.part.cmsg_len = CMSG_LEN(count * sizeof(int));
		for (unsigned int i = 0; i < count; i++)
			memcpy(CMSG_DATA(&control.part) + i * sizeof(int), &fd,
				sizeof(int));
	}
	if (sendmsg(fd, &header, 0) < 0)
		abort();
}

/* The lowest free number tells whether something was left open below it. */
static int lowest_free(int like)
{
	int fd = dup(like);

	(void)close(fd);
	return fd;
}

static void through_a_socket(
	const uint8_t *data, size_t size, unsigned int from, unsigned int count)
{
	struct sl_wire_fds fds;
	union sl_msg msg;
	int ends[2], free_before;

	if (size == 0 || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) < 0)
		return;
	send_with_fds(ends[0], data, size, count);
	free_before = lowest_free(ends[0]);
	if (sl_wire_recv_fds(ends[1], from, &msg, &fds, NULL) == SL_WIRE_OK) {
		if (sl_wire_carries(msg.head.type) &&
			(fds.count == 0 || fds.count > SL_WIRE_FDS_MAX))
			abort();
		if ((msg.head.type == SL_MSG_STORE ||
			    msg.head.type == SL_MSG_STORE_HELD ||
			    msg.head.type == SL_MSG_SUBMIT ||
			    msg.head.type == SL_MSG_JOB_LOG_FILE ||
			    msg.head.type == SL_MSG_HISTORY_FILE) &&
			fds.count != 1)
			abort();
	}
	if (fds.count && fds.count != count)
		abort();
	sl_wire_fds_close(&fds);
	if (lowest_free(ends[0]) != free_before)
		abort();
	(void)close(ends[0]);
	(void)close(ends[1]);
}

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
	/* Sockets and descriptors cost more than all the rest. */
	if (data[1] % 16 == 0)
		through_a_socket(
			fixed, size, data[0] & 7u, (data[0] >> 5) * 35u % (FDS_MOST + 1));
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
