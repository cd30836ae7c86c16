/*
 * lock - files whose name is checked after the lock is had
 *
 * The holder removes its file before it unlocks, so that the UUIDs of GPUs long gone do not
 * pile up. Whoever opened the file before that then holds a lock without a name, while the
 * next one makes a new file; therefore a lock counts only if the path still leads to it.
 * Another user's file in a sticky folder may not be opened with O_CREAT
 * (fs.protected_regular), so it is tried without first. O_NOFOLLOW, because /tmp is
 * everyone's.
 */
#include "daemon/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
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

static bool is_named(int fd, const char *path)
{
	struct stat ours, theirs;

	return fstat(fd, &ours) == 0 && lstat(path, &theirs) == 0 &&
	       ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

int sl_lock_take(const char *path, int *out_fd, int *holder)
{
	*holder = 0;
	for (;;) {
		sl_cleanup(sl_closep) int fd = open_file(path);

		if (fd < 0)
			return fd;
		if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
			if (errno != EWOULDBLOCK)
				return sl_err_origin(-errno);
			*holder = read_holder(fd);
			return SL_LOCK_BUSY;
		}
		/* Removed by its last holder meanwhile: once more, with the new one. */
		if (!is_named(fd, path))
			continue;
		write_holder(fd);
		*out_fd = sl_steal_fd(&fd);
		return SL_LOCK_OK;
	}
}

void sl_lock_drop(const char *path, int *fd)
{
	/* Another user's file stays; it is harmless. */
	if (*fd >= 0)
		(void)unlink(path);
	sl_closep(fd);
}

static const char *const usual_dirs[] = {"/run/lock", "/tmp", NULL};

static void gpu_path(char path[SL_PATH_MAX], const char *dir, const char *uuid_text)
{
	(void)snprintf(path, SL_PATH_MAX, "%s/sluice-%s.lock", dir, uuid_text);
}

void sl_lock_gpu_drop(
	const char *const *dirs, const char *uuid_text, int fds[SL_LOCK_DIRS_MAX])
{
	dirs = dirs ? dirs : usual_dirs;
	for (int i = 0; i < SL_LOCK_DIRS_MAX && dirs[i]; i++) {
		char path[SL_PATH_MAX];

		gpu_path(path, dirs[i], uuid_text);
		sl_lock_drop(path, &fds[i]);
	}
}

int sl_lock_gpu(const char *const *dirs, const char *uuid_text, int fds[SL_LOCK_DIRS_MAX],
	int *holder)
{
	int result = sl_err_origin(-EACCES);

	dirs = dirs ? dirs : usual_dirs;
	for (int i = 0; i < SL_LOCK_DIRS_MAX; i++)
		fds[i] = -1;
	for (int i = 0; i < SL_LOCK_DIRS_MAX && dirs[i]; i++) {
		char path[SL_PATH_MAX];
		int r;

		gpu_path(path, dirs[i], uuid_text);
		r = sl_lock_take(path, &fds[i], holder);
		if (r == SL_LOCK_BUSY) {
			sl_lock_gpu_drop(dirs, uuid_text, fds);
			return r;
		}
		if (r == SL_LOCK_OK)
			result = SL_LOCK_OK;
	}
	return result;
}
