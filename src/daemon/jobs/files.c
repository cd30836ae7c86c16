/*
 * files - see the header
 */
#include "daemon/jobs/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"

/* Disk space for an exit record, reserved from the start. */
#define RECORD_BYTES 128

int sl_jobs_files_path(char path[SL_PATH_MAX], const char *folder, uint64_t id,
	const char *format, uint32_t task, uint32_t attempt)
{
	char file[64];
	int n;

	(void)snprintf(file, sizeof(file), format, task, attempt);
	n = snprintf(path, SL_PATH_MAX, "%s/%" PRIu64 "/%s", folder, id, file);
	return n > 0 && n < SL_PATH_MAX ? 0 : sl_err_origin(-ENAMETOOLONG);
}

int sl_jobs_files_sync(int folder_fd)
{
	/* Some file systems cannot fsync folders. */
	return fsync(folder_fd) < 0 && errno != EINVAL ? sl_err_origin(-errno) : 0;
}

int sl_jobs_files_folder(int parent_fd, const char *name)
{
	/* The folder of jobs may be a link to another disk; nothing in it may be a link. */
	int link = parent_fd == AT_FDCWD ? 0 : O_NOFOLLOW;
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | link);

	return fd < 0 ? -errno : fd;
}

void sl_jobs_files_clear(int parent_fd, const char *name)
{
	int fd = sl_jobs_files_folder(parent_fd, name);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			(void)unlinkat(fd, entry->d_name, 0);
	if (dir)
		(void)closedir(dir);
	else if (fd >= 0)
		(void)close(fd);
	if (unlinkat(parent_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		sl_warning("cannot remove the folder %s of a job: %s", name,
			strerror(errno));
}

static const char *remedy(int error)
{
	switch (error) {
	case ENOSPC:
	case EDQUOT:
	case EFBIG: return "the disk is full; make room, and try again";
	case EACCES:
	case EPERM:
	case EROFS:
		return "let sluiced's user write there, or choose another folder with "
		       "data_dir";
	case ENOENT: return "somebody has removed it; submit the job again";
	case EMFILE:
	case ENFILE: return "give sluiced more descriptors (LimitNOFILE)";
	default: return "look at the disk, and try again";
	}
}

int sl_jobs_files_failed(
	const char *what, const char *folder, uint64_t id, int r, struct sl_error *err)
{
	sl_error_set(err, "cannot %s job %" PRIu64 " in %.200s: %s; %s", what, id, folder,
		strerror(-r), remedy(-r));
	return r;
}

/* As `du` counts: holes take nothing, and a file takes whole blocks. */
static uint64_t used_by(int folder_fd, const char *name)
{
	struct stat st;

	if (fstatat(folder_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		!S_ISREG(st.st_mode))
		return 0;
	return (uint64_t)st.st_blocks * 512;
}

uint64_t sl_jobs_files_used(const char *folder, uint64_t id, bool begun)
{
	char path[SL_PATH_MAX];
	struct dirent *entry;
	uint64_t used = 0;
	DIR *dir;

	if (sl_jobs_files_path(path, folder, id, "spec", 0, 0) < 0)
		return 0;
	if (!begun)
		return used_by(AT_FDCWD, path);
	*strrchr(path, '/') = '\0';
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		used += used_by(dirfd(dir), entry->d_name);
	if (dir)
		(void)closedir(dir);
	return used;
}

/* --- Files of a job. --- */

int sl_jobs_files_open(const char *path, int flags)
{
	sl_cleanup(sl_closep) int fd =
		open(path, flags | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return sl_err_origin(-errno);
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	/* Programs get this descriptor, and do not expect O_NONBLOCK. */
	if (fcntl(fd, F_SETFL, flags & O_APPEND) < 0)
		return sl_err_origin(-errno);
	return sl_steal_fd(&fd);
}

int sl_jobs_files_open_log(const char *folder, uint64_t id, uint32_t task, bool append)
{
	char path[SL_PATH_MAX];
	int r = sl_jobs_files_path(path, folder, id, "log.%u", task, 0);

	return r < 0 ? r
		     : sl_jobs_files_open(
			       path, append ? O_WRONLY | O_APPEND | O_CREAT : O_RDONLY);
}

int sl_jobs_files_open_record(
	const char *folder, uint64_t id, uint32_t task, uint32_t attempt)
{
	char path[SL_PATH_MAX];
	int r = sl_jobs_files_path(path, folder, id, "exit.%u.%u", task, attempt);
	int fd = r < 0 ? r : sl_jobs_files_open(path, O_WRONLY | O_CREAT | O_TRUNC);

	if (fd < 0)
		return sl_err_origin(fd);
	/* A disk that is full when the program ends must not lose its status. File systems that
	 * cannot reserve space go without. */
	if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, RECORD_BYTES) < 0 &&
		errno != EOPNOTSUPP && errno != ENOSYS) {
		r = -errno;
		(void)close(fd);
		return sl_err_origin(r);
	}
	return fd;
}

pid_t sl_jobs_files_supervisor(
	const char *folder, uint64_t id, uint32_t task, uint32_t attempt)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	sl_cleanup(sl_closep) int fd = -1;
	char path[SL_PATH_MAX];
	int r = sl_jobs_files_path(path, folder, id, "exit.%u.%u", task, attempt);

	fd = r < 0 ? r : sl_jobs_files_open(path, O_RDONLY);
	if (fd < 0 || fcntl(fd, F_GETLK, &lock) < 0 || lock.l_type == F_UNLCK ||
		lock.l_pid <= 0)
		return 0;
	return lock.l_pid;
}

bool sl_jobs_files_read_spec(
	const char *folder, uint64_t id, struct sl_jobspec *spec, struct sl_error *err)
{
	sl_cleanup(sl_freep) char *text = NULL;
	char path[SL_PATH_MAX];
	size_t size = 0;
	int r = sl_jobs_files_path(path, folder, id, "spec", 0, 0);

	if (r == 0)
		r = sl_file_read(
			path, SL_JOBSPEC_BYTES_MAX + SL_JOBSPEC_MORE_BYTES, &text, &size);
	if (r < 0) {
		(void)sl_jobs_files_failed("read what to execute of", folder, id, r, err);
		return false;
	}
	if (sl_jobspec_check(text, size, true, err) != SL_JOBSPEC_OK) {
		sl_error_wrap(err, "%.200s is damaged", path);
		return false;
	}
	sl_jobspec_take(spec, sl_steal(&text), size);
	return true;
}

ssize_t sl_jobs_files_read_record(const char *folder, uint64_t id, uint32_t task,
	uint32_t attempt, char *buf, size_t size)
{
	sl_cleanup(sl_closep) int fd = -1;
	char path[SL_PATH_MAX];
	size_t used = 0;
	int r = sl_jobs_files_path(path, folder, id, "exit.%u.%u", task, attempt);

	fd = r < 0 ? r : sl_jobs_files_open(path, O_RDONLY);
	if (fd < 0)
		return fd;
	while (used + 1 < size) {
		ssize_t n = read(fd, buf + used, size - 1 - used);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sl_err_origin(-errno);
		if (n == 0)
			break;
		used += (size_t)n;
	}
	buf[used] = '\0';
	return (ssize_t)used;
}
