/*
 * line - see line.h
 *
 * System calls are made directly: send(2) and friends are cancellation points in the C library,
 * and a thread of the program that is cancelled while it holds our lock would take the process
 * with it. fcntl and fstat would also bind us to newer symbol versions.
 */
#include "runtime/line.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Programs dup2 to small numbers and count on the next free one being small, too. */
#define LOWEST_FD      200
#define LOWEST_FD_POOR 10
/* A daemon that does not read 1 MiB of messages is as good as gone: a new line reports all. */
#define KEPT_MAX (1024 * 1024)

static bool identify(int fd, uint64_t *device, uint64_t *inode)
{
	struct stat info;

	if (syscall(SYS_fstat, fd, &info) != 0)
		return false;
	*device = info.st_dev;
	*inode = info.st_ino;
	return true;
}

static int move_up(int fd)
{
	static const int floors[] = {LOWEST_FD, LOWEST_FD_POOR};

	for (size_t i = 0; i < SL_ARRAY_LEN(floors); i++) {
		long moved = syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, floors[i]);

		if (moved >= 0) {
			(void)syscall(SYS_close, fd);
			return (int)moved;
		}
	}
	return fd;
}

int sl_fd_claim(struct sl_fd *out, int fd_in)
{
	int fd = move_up(fd_in);
	long flags = syscall(SYS_fcntl, fd, F_GETFL);
	int r = 0;

	if (flags < 0 || syscall(SYS_fcntl, fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
		!identify(fd, &out->device, &out->inode)) {
		r = -errno;
		(void)syscall(SYS_close, fd);
		fd = -1;
	}
	out->fd = fd;
	return r;
}

bool sl_fd_is_ours(const struct sl_fd *fd)
{
	uint64_t device, inode;

	return fd->fd >= 0 && identify(fd->fd, &device, &inode) && device == fd->device &&
	       inode == fd->inode;
}

void sl_fd_close(struct sl_fd *fd)
{
	if (sl_fd_is_ours(fd))
		(void)syscall(SYS_close, fd->fd);
	fd->fd = -1;
}

int sl_line_open(struct sl_line *line, const char *path, struct sl_error *err)
{
	int fd = sl_wire_connect(path, err);

	if (fd < 0)
		return fd;
	line->kept_bytes = 0;
	return sl_fd_claim(&line->socket, fd);
}

void sl_line_close(struct sl_line *line)
{
	sl_fd_close(&line->socket);
	free(line->kept);
	line->kept = NULL;
	line->kept_bytes = line->kept_room = 0;
}

bool sl_line_is_open(const struct sl_line *line)
{
	return line->socket.fd >= 0;
}

bool sl_line_has_kept(const struct sl_line *line)
{
	return line->kept_bytes > 0;
}

static int send_bytes(const struct sl_line *line, const void *data, size_t size)
{
	long n;

	if (!sl_fd_is_ours(&line->socket))
		return SL_WIRE_CLOSED;
	do {
		n = syscall(SYS_sendto, line->socket.fd, data, size,
			MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);
	} while (n < 0 && errno == EINTR);
	if (n >= 0)
		return SL_WIRE_OK;
	return errno == EAGAIN || errno == ENOBUFS ? SL_WIRE_AGAIN : SL_WIRE_CLOSED;
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

bool sl_line_send(struct sl_line *line, union sl_msg *msg)
{
	size_t size = sl_wire_size(msg->head.type);
	int r = SL_WIRE_AGAIN, saved_errno = errno;

	if (!sl_line_is_open(line))
		return false;
	if (sl_wire_since(msg->head.type) > line->version)
		return true;
	msg->head.version = line->version;
	/* Behind what is kept already, so that the order stays. */
	if (line->kept_bytes == 0)
		r = send_bytes(line, msg, size);
	if (r == SL_WIRE_AGAIN && keep(line, msg, size))
		r = SL_WIRE_OK;
	errno = saved_errno;
	return r == SL_WIRE_OK;
}

void sl_line_break(const struct sl_line *line)
{
	int saved_errno = errno;

	if (sl_fd_is_ours(&line->socket))
		(void)syscall(SYS_shutdown, line->socket.fd, SHUT_RDWR);
	errno = saved_errno;
}

bool sl_line_flush(struct sl_line *line)
{
	size_t done = 0;
	int r = SL_WIRE_OK;

	if (line->kept_bytes == 0)
		return true;
	while (done < line->kept_bytes && r == SL_WIRE_OK) {
		struct sl_msg_head head;
		size_t size;

		memcpy(&head, line->kept + done, sizeof(head));
		size = sl_wire_size(head.type);
		r = send_bytes(line, line->kept + done, size);
		if (r == SL_WIRE_OK)
			done += size;
	}
	memmove(line->kept, line->kept + done, line->kept_bytes - done);
	line->kept_bytes -= done;
	return r != SL_WIRE_CLOSED;
}

int sl_line_recv(const struct sl_line *line, union sl_msg *out, struct sl_error *err)
{
	if (!sl_fd_is_ours(&line->socket))
		return SL_WIRE_CLOSED;
	return sl_wire_recv(line->socket.fd, SL_FROM_DAEMON, out, err);
}
