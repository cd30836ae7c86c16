/*
 * line - see line.h
 *
 * System calls are made directly. send(2) and friends are cancellation points in the C library, and
 * a program's thread cancelled while it holds our lock would hang the process.
 */
#include "runtime/session/line.h"

#include "base/trust.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A daemon that leaves 1 MiB of messages unread counts as lost: a new line reports everything. */
#define KEPT_MAX (1024 * 1024)

int sl_line_open(struct sl_line *line, const char *path, struct sl_error *err)
{
	int fd = sl_wire_connect(path, err);

	if (fd < 0)
		return fd;
	if (sl_trust_daemon(fd, path, err) != SL_TRUST_OK) {
		(void)syscall(SYS_close, fd);
		return SL_LINE_UNTRUSTED;
	}
	line->kept_bytes = 0;
	return sl_fd_claim(&line->socket, fd);
}

static void close_fds(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		(void)syscall(SYS_close, fds[i]);
}

void sl_line_close(struct sl_line *line)
{
	sl_fd_close(&line->socket);
	free(line->kept);
	line->kept = NULL;
	line->kept_bytes = line->kept_room = 0;
	close_fds(line->kept_fds, line->kept_fd_count);
	free(line->kept_fds);
	line->kept_fds = NULL;
	line->kept_fd_count = line->kept_fd_room = 0;
}

bool sl_line_is_open(const struct sl_line *line)
{
	return line->socket.fd >= 0;
}

bool sl_line_is_crowded(const struct sl_line *line)
{
	return line->kept_bytes > 0 && line->crowded;
}

bool sl_line_has_kept(const struct sl_line *line)
{
	return line->kept_bytes > 0;
}

/* Sends count descriptors along, which stay open here. */
static int send_bytes(struct sl_line *line, const void *data, size_t size, const int *fds,
	uint32_t count)
{
	struct iovec part = {.iov_base = (void *)(uintptr_t)data, .iov_len = size};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
	union sl_wire_control control;
	long n;

	if (!sl_fd_is_ours(&line->socket))
		return SL_WIRE_CLOSED;
	if (count)
		sl_wire_attach(&header, &control, fds, count);
	do {
		n = syscall(SYS_sendmsg, line->socket.fd, &header,
			MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	line->crowded = n < 0 && errno == ETOOMANYREFS;
	if (n >= 0)
		return SL_WIRE_OK;
	return errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS
		       ? SL_WIRE_AGAIN
		       : SL_WIRE_CLOSED;
}

static bool keep(struct sl_line *line, const void *data, size_t size)
{
	if (line->kept_bytes + size > line->kept_room) {
		size_t room = line->kept_room ? 2 * line->kept_room : 4096;
		unsigned char *grown =
			room <= KEPT_MAX ? realloc(line->kept, room) : NULL;

		if (!grown)
			return false;
		line->kept = grown;
		line->kept_room = room;
	}
	memcpy(line->kept + line->kept_bytes, data, size);
	line->kept_bytes += size;
	return true;
}

static bool keep_fds(struct sl_line *line, const int *fds, uint32_t count)
{
	if (line->kept_fd_count + count > line->kept_fd_room) {
		size_t room = 2 * line->kept_fd_room + SL_WIRE_FDS_MAX;
		int *grown = realloc(line->kept_fds, room * sizeof(*grown));

		if (!grown)
			return false;
		line->kept_fds = grown;
		line->kept_fd_room = room;
	}
	memcpy(line->kept_fds + line->kept_fd_count, fds, count * sizeof(*fds));
	line->kept_fd_count += count;
	return true;
}

/* True: sent, or kept with its descriptors. */
static bool send_or_keep(struct sl_line *line, union sl_msg *msg, const int *fds,
	uint32_t count, bool *kept)
{
	size_t size = sl_wire_size(msg->head.type);
	int r = SL_WIRE_AGAIN;

	/* After messages already kept, so that the order stays. */
	if (line->kept_bytes == 0)
		r = send_bytes(line, msg, size, fds, count);
	*kept = r == SL_WIRE_AGAIN && (!count || keep_fds(line, fds, count));
	if (*kept && keep(line, msg, size))
		return true;
	if (*kept)
		line->kept_fd_count -= count;
	*kept = false;
	return r == SL_WIRE_OK;
}

bool sl_line_send_fds(
	struct sl_line *line, union sl_msg *msg, const int *fds, uint32_t count)
{
	int saved_errno = errno;
	bool kept = false, sent;

	if (!sl_line_is_open(line))
		sent = false;
	else
		sent = send_or_keep(line, msg, fds, count, &kept);
	if (!kept)
		close_fds(fds, count);
	errno = saved_errno;
	return sent;
}

bool sl_line_send(struct sl_line *line, union sl_msg *msg)
{
	return sl_line_send_fds(line, msg, NULL, 0);
}
void sl_line_break(const struct sl_line *line)
{
	int saved_errno = errno;

	if (sl_fd_is_ours(&line->socket))
		(void)syscall(SYS_shutdown, line->socket.fd, SHUT_RDWR);
	errno = saved_errno;
}

/* Number of descriptors that go with a kept message. */
static uint32_t fds_of(const unsigned char *data)
{
	struct sl_msg_ipc_give give;

	memcpy(&give.head, data, sizeof(give.head));
	if (give.head.type == SL_MSG_STORE_HELD)
		return 1;
	if (give.head.type != SL_MSG_IPC_GIVE)
		return 0;
	memcpy(&give, data, sizeof(give));
	return give.fds;
}

static size_t size_of(const unsigned char *data)
{
	struct sl_msg_head head;

	memcpy(&head, data, sizeof(head));
	return sl_wire_size(head.type);
}

bool sl_line_flush(struct sl_line *line)
{
	size_t done = 0, done_fds = 0;
	int r = SL_WIRE_OK;

	if (line->kept_bytes == 0)
		return true;
	while (done < line->kept_bytes && r == SL_WIRE_OK) {
		const unsigned char *data = line->kept + done;
		uint32_t count = fds_of(data);

		r = send_bytes(
			line, data, size_of(data), line->kept_fds + done_fds, count);
		if (r != SL_WIRE_OK)
			break;
		close_fds(line->kept_fds + done_fds, count);
		done += size_of(data);
		done_fds += count;
	}
	memmove(line->kept, line->kept + done, line->kept_bytes - done);
	line->kept_bytes -= done;
	line->kept_fd_count -= done_fds;
	if (line->kept_fd_count)
		memmove(line->kept_fds, line->kept_fds + done_fds,
			line->kept_fd_count * sizeof(*line->kept_fds));
	return r != SL_WIRE_CLOSED;
}

int sl_line_recv(const struct sl_line *line, union sl_msg *out, struct sl_wire_fds *fds,
	struct sl_error *err)
{
	int r;

	fds->count = 0;
	if (!sl_fd_is_ours(&line->socket))
		return SL_WIRE_CLOSED;
	r = sl_wire_recv_fds(line->socket.fd, SL_FROM_DAEMON, out, fds, err);
	if (r != SL_WIRE_OK)
		sl_wire_fds_close(fds);
	return r;
}
