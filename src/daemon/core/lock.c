/*
 * lock - files whose name is checked after they are locked
 *
 * The holder removes its file before it unlocks, so that files of GPUs long gone do not pile up. A
 * process that opened the file before its removal can then lock a file without a name, while the
 * next process makes a new one. So a lock counts only if the path still leads to the locked file.
 *
 * Another user's file in a sticky folder may not be opened with O_CREAT (fs.protected_regular), so
 * opening is first tried without that flag. O_NOFOLLOW is set because a socket, and so its lock
 * file, may be in /tmp, where all users may write.
 *
 * Users cannot open each other's files, so daemons of two users do not exclude each other. The
 * system's daemon excludes all others: every user can see its files in /run/sluice, and /proc/locks
 * lists their locks.
 */
#include "daemon/core/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/paths.h"

/* /proc/locks has a line for each lock of the machine. */
#define LOCKS_BYTES_MAX (4u << 20)

static bool is_foreign(const struct stat *stat)
{
	return !S_ISREG(stat->st_mode) || stat->st_uid != geteuid() || stat->st_nlink > 1;
}

/* May return SL_LOCK_FOREIGN, which is positive but not a descriptor; *fd is then unchanged. */
static int open_file(const char *path, int *fd)
{
	int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	struct stat stat;
	int error;

	*fd = open(path, flags);
	if (*fd < 0 && errno == ENOENT)
		*fd = open(path, flags | O_CREAT, 0600);
	error = errno;
	if (*fd >= 0)
		return fstat(*fd, &stat) < 0 || is_foreign(&stat) ? SL_LOCK_FOREIGN
								  : SL_LOCK_OK;
	return lstat(path, &stat) == 0 && is_foreign(&stat) ? SL_LOCK_FOREIGN
							    : sl_err_origin(-error);
}

static int read_holder(int fd)
{
	char text[16] = "";

	if (pread(fd, text, sizeof(text) - 1, 0) <= 0)
		return 0;
	return atoi(text);
}

/* Older daemons made their files readable for all users. */
static void write_holder(int fd)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%d\n", (int)getpid());

	if (fchmod(fd, 0600) < 0 || ftruncate(fd, 0) < 0 ||
		pwrite(fd, text, (size_t)n, 0) < 0)
		sl_debug("a lock file without its holder: %s", strerror(errno));
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
		sl_cleanup(sl_closep) int fd = -1;
		int r = open_file(path, &fd);

		if (r != SL_LOCK_OK)
			return r;
		if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
			if (errno != EWOULDBLOCK)
				return sl_err_origin(-errno);
			*holder = read_holder(fd);
			return SL_LOCK_BUSY;
		}
		/* Its last holder removed it meanwhile: try again with the new file. */
		if (!is_named(fd, path))
			continue;
		write_holder(fd);
		*out_fd = sl_steal_fd(&fd);
		return SL_LOCK_OK;
	}
}

void sl_lock_drop(const char *path, int *fd)
{
	if (*fd >= 0)
		(void)unlink(path);
	sl_closep(fd);
}

/* --- GPUs ------------------------------------------------------------------------------------- */

struct folders {
	char text[SL_LOCK_DIRS_MAX][32];
	const char *list[SL_LOCK_DIRS_MAX + 1];
};

/* The environment does not decide: it may differ between two daemons of one user. */
static const char *const *own_folders(struct folders *folders)
{
	unsigned int uid = (unsigned int)geteuid();

	(void)snprintf(folders->text[0], sizeof(folders->text[0]),
		uid ? "/run/user/%u/sluice" : SL_PATHS_SYSTEM_DIR, uid);
	(void)snprintf(folders->text[1], sizeof(folders->text[1]), "/tmp/sluice-%u", uid);
	for (int i = 0; i < SL_LOCK_DIRS_MAX; i++)
		folders->list[i] = folders->text[i];
	folders->list[SL_LOCK_DIRS_MAX] = NULL;
	return folders->list;
}

static void gpu_path(char path[SL_PATH_MAX], const char *dir, const char *uuid_text)
{
	(void)snprintf(path, SL_PATH_MAX, "%s/sluice-%s.lock", dir, uuid_text);
}

int sl_lock_holder_in(const char *locks, uint64_t device, uint64_t inode)
{
	char wanted[64];
	const char *line;

	(void)snprintf(wanted, sizeof(wanted), " %02x:%02x:%" PRIu64 " ",
		major((dev_t)device), minor((dev_t)device), inode);
	for (line = locks; line && *line; line = strchr(line, '\n')) {
		const char *end, *at;
		int pid;

		line += *line == '\n';
		end = line + strcspn(line, "\n");
		at = strstr(line, wanted);
		/* "1: -> FLOCK" is a lock that is still waited for. */
		if (at && at < end && sscanf(line, "%*d: FLOCK %*s %*s %d", &pid) == 1)
			return pid;
	}
	return 0;
}

/* The pid of the system's daemon if it manages this GPU; 0: it does not, or cannot be seen. */
static int system_holder(const char *uuid_text)
{
	sl_cleanup(sl_freep) char *locks = NULL;
	char path[SL_PATH_MAX];
	struct stat stat;

	gpu_path(path, SL_PATHS_SYSTEM_DIR, uuid_text);
	if (lstat(path, &stat) < 0 || stat.st_uid != 0 ||
		sl_file_read("/proc/locks", LOCKS_BYTES_MAX, &locks, NULL) < 0)
		return 0;
	return sl_lock_holder_in(locks, stat.st_dev, stat.st_ino);
}

/* Makes the folder if possible. Other users must not be able to add files or remove ours. */
static bool is_own_folder(const char *dir)
{
	struct stat stat;

	return (mkdir(dir, 0755) == 0 || errno == EEXIST) && lstat(dir, &stat) == 0 &&
	       S_ISDIR(stat.st_mode) && stat.st_uid == geteuid() &&
	       !(stat.st_mode & (S_IWGRP | S_IWOTH));
}

static void warn_of_folders(const char *const *dirs)
{
	for (int i = 0; i < SL_LOCK_DIRS_MAX && dirs[i]; i++) {
		if (access(dirs[i], F_OK) == 0 && !is_own_folder(dirs[i]))
			sl_warning("ignoring %s for lock files: others may write to it",
				dirs[i]);
	}
}

void sl_lock_gpu_drop(
	const char *const *dirs, const char *uuid_text, int fds[SL_LOCK_DIRS_MAX])
{
	struct folders own;

	dirs = dirs ? dirs : own_folders(&own);
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
	struct folders own;

	for (int i = 0; i < SL_LOCK_DIRS_MAX; i++)
		fds[i] = -1;
	*holder = dirs || geteuid() == 0 ? 0 : system_holder(uuid_text);
	if (*holder)
		return SL_LOCK_BUSY;
	dirs = dirs ? dirs : own_folders(&own);
	for (int i = 0; i < SL_LOCK_DIRS_MAX && dirs[i]; i++) {
		char path[SL_PATH_MAX];
		int r;

		if (!is_own_folder(dirs[i]))
			continue;
		gpu_path(path, dirs[i], uuid_text);
		r = sl_lock_take(path, &fds[i], holder);
		if (r == SL_LOCK_BUSY) {
			sl_lock_gpu_drop(dirs, uuid_text, fds);
			return r;
		}
		if (r == SL_LOCK_OK)
			result = SL_LOCK_OK;
	}
	if (result == SL_LOCK_OK)
		warn_of_folders(dirs);
	return result;
}
