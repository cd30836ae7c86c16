/*
 * lock - files that are never removed
 *
 * Removing a lock file opens a race (one holds the removed file, the next makes a new one), so
 * they stay. Another user's file in a sticky folder may not be opened with O_CREAT
 * (fs.protected_regular), therefore it is tried without first. O_NOFOLLOW, because /tmp is
 * everyone's.
 */
#include "daemon/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/paths.h"

static int open_file(const char *path)
{
	int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	int fd = open(path, O_RDWR | flags);

	if (fd < 0 && errno == EACCES)
		fd = open(path, O_RDONLY | flags);
	if (fd < 0 && errno == ENOENT)
		fd = open(path, O_RDWR | O_CREAT | flags, 0644);
	return fd < 0 ? sl_err_origin(-errno) : fd;
}

static int read_holder(int fd)
{
	char text[16] = "";

	if (pread(fd, text, sizeof(text) - 1, 0) <= 0)
		return 0;
	return atoi(text);
}

static void write_holder(int fd)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%d\n", (int)getpid());

	/* Fails on another user's file; then the message has no pid. */
	if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) < 0)
		return;
}

int sl_lock_take(const char *path, int *out_fd, int *holder)
{
	sl_cleanup(sl_closep) int fd = open_file(path);

	*holder = 0;
	if (fd < 0)
		return fd;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return sl_err_origin(-errno);
		*holder = read_holder(fd);
		return SL_LOCK_BUSY;
	}
	write_holder(fd);
	*out_fd = sl_steal_fd(&fd);
	return SL_LOCK_OK;
}

int sl_lock_gpu(const char *const *dirs, const char *uuid_text, int fds[SL_LOCK_DIRS_MAX],
	int *holder)
{
	static const char *const usual[] = {"/run/lock", "/tmp", NULL};
	int result = sl_err_origin(-EACCES);

	for (int i = 0; i < SL_LOCK_DIRS_MAX; i++)
		fds[i] = -1;
	for (int i = 0; i < SL_LOCK_DIRS_MAX && (dirs ? dirs : usual)[i]; i++) {
		char path[SL_PATH_MAX];
		int r;

		(void)snprintf(path, sizeof(path), "%s/sluice-%s.lock",
			(dirs ? dirs : usual)[i], uuid_text);
		r = sl_lock_take(path, &fds[i], holder);
		if (r == SL_LOCK_BUSY) {
			for (int j = 0; j < i; j++)
				sl_closep(&fds[j]);
			return r;
		}
		if (r == SL_LOCK_OK)
			result = SL_LOCK_OK;
	}
	return result;
}
