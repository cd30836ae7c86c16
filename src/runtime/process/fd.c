/*
 * fd - see fd.h
 *
 * System calls are made directly: fcntl and fstat would bind us to newer symbol versions.
 */
#include "runtime/process/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Programs dup2 to small numbers and expect the next free one to be small, too. */
#define LOWEST_FD      200
#define LOWEST_FD_POOR 10

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
