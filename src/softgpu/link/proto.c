/*
 * proto - messages with descriptors over SOCK_SEQPACKET
 *
 * Interrupted calls are repeated here, so callers ignore signals. A receiver without space for
 * descriptors closes those that come, so a faulty peer cannot leak them into a program.
 */
#include "softgpu/link/proto.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

union fd_space {
	char bytes[CMSG_SPACE(SL_SG_FDS_MAX * sizeof(int))];
	struct cmsghdr align;
};

int sl_sg_send(int socket, const void *head, size_t head_bytes, const void *tail,
	size_t tail_bytes, const int *fds, unsigned fd_count)
{
	struct iovec parts[2] = {{(void *)head, head_bytes}, {(void *)tail, tail_bytes}};
	struct msghdr msg = {.msg_iov = parts, .msg_iovlen = tail_bytes ? 2 : 1};
	union fd_space space;
	ssize_t n;

	if (fd_count) {
		memset(&space, 0, sizeof(space));
		msg.msg_control = &space;
		msg.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, fd_count * sizeof(int));
	}
	do
		n = sendmsg(socket, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

static void take_fds(struct msghdr *msg, int *fds, unsigned room, unsigned *got)
{
	*got = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		unsigned n = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		for (unsigned i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (*got < room)
				fds[(*got)++] = fd;
			else
				close(fd);
		}
	}
}

ssize_t sl_sg_receive(int socket, void *data, size_t size, int *fds, unsigned *fd_count)
{
	struct iovec part = {data, size};
	union fd_space space;
	struct msghdr msg = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &space,
		.msg_controllen = sizeof(space)};
	unsigned got;
	ssize_t n;

	do
		n = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	take_fds(&msg, fds, fds ? *fd_count : 0, &got);
	if (fds)
		*fd_count = got;
	return n;
}

struct sl_sg_board *sl_sg_board_map(int memfd, bool to_write)
{
	struct stat st;
	void *at;

	if (fstat(memfd, &st) < 0 || st.st_size < SL_SG_BOARD_BYTES)
		return NULL;
	at = mmap(NULL, SL_SG_BOARD_BYTES, PROT_READ | (to_write ? PROT_WRITE : 0),
		MAP_SHARED, memfd, st.st_size - SL_SG_BOARD_BYTES);
	return at == MAP_FAILED ? NULL : at;
}

/* May be called before cuInit, without a connection to the server. */
int sl_softgpu_cuda_version(void)
{
	static _Atomic int version;
	const char *text;
	int v = atomic_load(&version);

	if (v)
		return v;
	text = getenv(SL_SOFTGPU_ENV_CUDA);
	v = text ? atoi(text) : 0;
	if (v < 11000)
		v = SL_SOFTGPU_CUDA_PRESET;
	atomic_store(&version, v);
	return v;
}
