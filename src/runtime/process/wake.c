/*
 * wake - see wake.h
 */
#include "runtime/process/wake.h"
#include "runtime/process/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct sl_fd in = SL_FD_NONE, out = SL_FD_NONE;

int sl_wake_open(void)
{
	int fds[2], r;

	if (syscall(SYS_pipe2, fds, O_CLOEXEC) != 0)
		return -errno;
	r = sl_fd_claim(&in, fds[0]);
	if (r < 0) {
		(void)syscall(SYS_close, fds[1]);
		return r;
	}
	r = sl_fd_claim(&out, fds[1]);
	if (r < 0)
		sl_wake_close();
	return r;
}

void sl_wake_close(void)
{
	sl_fd_close(&in);
	sl_fd_close(&out);
}

void sl_wake_agent(void)
{
	int saved_errno = errno;

	if (sl_fd_is_ours(&out))
		(void)syscall(SYS_write, out.fd, "", 1);
	errno = saved_errno;
}

int sl_wake_fd(void)
{
	return sl_fd_is_ours(&in) ? in.fd : -1;
}

void sl_wake_drain(void)
{
	char bytes[64];

	if (sl_wake_fd() >= 0)
		(void)syscall(SYS_read, in.fd, bytes, sizeof(bytes));
}
