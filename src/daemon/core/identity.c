/*
 * identity - a pidfd from the kernel, or a nonce answered
 *
 * Why the nonce is sound: the pidfd is opened before the nonce is sent, and shows its process alive
 * after the answer has come. So that process had its number all the time between, and an answer
 * sent under this number comes from it. The nonce is random, so no earlier message in the queue can
 * answer it. A child that kept the socket answers under its own number. An unrelated process that
 * got the number has no socket to answer on. Only a sender with CAP_SYS_ADMIN over its pid
 * namespace may name another number, and only one from within that namespace.
 */
#include "daemon/core/identity.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* since Linux 6.5 */
#endif

bool sl_identity_is_alive(int pidfd)
{
	struct pollfd death = {.fd = pidfd, .events = POLLIN};

	return poll(&death, 1, 0) == 0;
}

static bool is_shortage(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM;
}

/* 0, or an errno. Tests set the variable to get the behaviour of kernels before 6.5. */
static int ask_kernel(int fd, int *pidfd)
{
	socklen_t size = sizeof(*pidfd);

	if (getenv("SLUICE_NO_PEERPIDFD"))
		return ENOPROTOOPT;
	return getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, pidfd, &size) < 0 ? errno : 0;
}

static int open_pidfd(int fd, struct sl_identity *out)
{
	int error = ask_kernel(fd, &out->pidfd);

	out->proven = error == 0;
	if (error == ENOPROTOOPT) {
		out->pidfd = (int)syscall(SYS_pidfd_open, out->pid, 0);
		error = out->pidfd < 0 ? errno : 0;
	}
	if (is_shortage(error))
		return sl_err_origin(-error);
	/* ESRCH, ENODATA, and EINVAL before Linux 6.9 mean that the process is dead. Other errors
	 * count as that, too, because looking up its number could find another process. */
	return error ? SL_IDENTITY_GONE : SL_IDENTITY_OK;
}

int sl_identity_of_socket(int fd, struct sl_identity *out)
{
	struct sl_identity found = {.pidfd = -1};
	struct ucred cred = {0};
	socklen_t size = sizeof(cred);
	int r;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
		return sl_err_origin(-errno);
	/* A process of a namespace that the daemon cannot see has no number here. */
	if (cred.pid <= 0)
		return SL_IDENTITY_GONE;
	found.pid = cred.pid;
	found.uid = cred.uid;
	r = open_pidfd(fd, &found);
	if (r != SL_IDENTITY_OK)
		return r;
	/* The pidfd shows the process alive, so the start time read here is that process's. */
	r = sl_file_pid_start(found.pid, &found.start_ticks);
	if (!sl_identity_is_alive(found.pidfd)) {
		sl_closep(&found.pidfd);
		return SL_IDENTITY_GONE;
	}
	if (is_shortage(-r)) {
		sl_closep(&found.pidfd);
		return r;
	}
	*out = found;
	return SL_IDENTITY_OK;
}

static int name_senders(int fd, int on)
{
	return setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
}

int sl_identity_ask(int fd, uint8_t nonce[SL_IDENTITY_NONCE_BYTES])
{
	if (getrandom(nonce, SL_IDENTITY_NONCE_BYTES, 0) != SL_IDENTITY_NONCE_BYTES)
		return sl_err_origin(-EIO);
	return name_senders(fd, 1) < 0 ? sl_err_origin(-errno) : 0;
}

void sl_identity_asked(int fd)
{
	(void)name_senders(fd, 0);
}

static int check_user(pid_t pid, uid_t uid)
{
	sl_cleanup(sl_freep) char *text = NULL;
	unsigned int effective = 0;
	char path[32];
	const char *line;
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	r = sl_file_read(path, 1 << 16, &text, NULL);
	if (r < 0)
		return is_shortage(-r) ? r : SL_IDENTITY_GONE;
	line = strstr(text, "\nUid:");
	return line && sscanf(line, "\nUid: %*u %u", &effective) == 1 && effective == uid
		       ? SL_IDENTITY_OK
		       : SL_IDENTITY_OTHER;
}

int sl_identity_prove(pid_t sender, pid_t pid, int pidfd, uid_t uid)
{
	/* A program that changes its user inherits sockets, and may be made to write to them. */
	int r = sender == pid ? check_user(pid, uid) : SL_IDENTITY_OTHER;

	/* Checked last: it proves that the checks above looked at this process. */
	return r == SL_IDENTITY_OK && !sl_identity_is_alive(pidfd) ? SL_IDENTITY_GONE : r;
}
