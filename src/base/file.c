/*
 * file - the few file operations that must be whole or not happen
 */
#include "base/file.h"
#include "base/error.h"
#include "base/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

void sl_closep(int *fd)
{
	int saved_errno = errno;

	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
	errno = saved_errno;
}

void sl_freep(void *pointer_to_pointer)
{
	void **pointer = pointer_to_pointer;

	free(*pointer);
	*pointer = NULL;
}

int sl_file_read(const char *path, size_t max_bytes, char **out, size_t *out_bytes)
{
	sl_cleanup(sl_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	sl_cleanup(sl_freep) char *data = NULL;
	size_t used = 0, room = 0;

	if (fd < 0)
		return sl_err_origin(-errno);
	for (;;) {
		ssize_t n;

		/* One byte beyond the bound reveals a file that is too large; another is for the
		 * terminator. /proc files report no size, so the buffer doubles. */
		if (used == room) {
			size_t want = sl_min_u64(
				room ? room * 2 : 4096, (uint64_t)max_bytes + 1);
			char *grown = realloc(data, want + 1);

			if (!grown)
				return sl_err_origin(-ENOMEM);
			data = grown;
			room = want;
		}
		n = read(fd, data + used, room - used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sl_err_origin(-errno);
		if (n == 0)
			break;
		used += (size_t)n;
		if (used > max_bytes)
			return sl_err_origin(-EFBIG);
	}
	data[used] = '\0';
	if (out_bytes)
		*out_bytes = used;
	*out = sl_steal(&data);
	return 0;
}

int sl_file_write_all(int fd, const void *data, size_t bytes)
{
	const char *at = data;

	while (bytes > 0) {
		ssize_t n = write(fd, at, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sl_err_origin(-errno);
		at += n;
		bytes -= (size_t)n;
	}
	return 0;
}

int sl_file_replace(const char *path, const void *data, size_t bytes, bool durable)
{
	return sl_file_replace_as(path, data, bytes, 0600, durable);
}

int sl_file_replace_as(
	const char *path, const void *data, size_t bytes, unsigned int mode, bool durable)
{
	char temporary[SL_PATH_MAX];
	sl_cleanup(sl_closep) int fd = -1;
	int n = snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path);
	int r;

	if (n < 0 || (size_t)n >= sizeof(temporary))
		return sl_err_origin(-ENAMETOOLONG);
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return sl_err_origin(-errno);
	r = sl_file_write_all(fd, data, bytes);
	if (r == 0 && mode != 0600 && fchmod(fd, mode) < 0)
		r = sl_err_origin(-errno);
	if (r == 0 && durable && fsync(fd) < 0)
		r = sl_err_origin(-errno);
	if (r == 0 && rename(temporary, path) < 0)
		r = sl_err_origin(-errno);
	if (r < 0)
		(void)unlink(temporary);
	return r;
}

off_t sl_file_first(int fd)
{
	off_t at = lseek(fd, 0, SEEK_DATA);
	char piece[4096];
	ssize_t n;

	if (at <= 0)
		return 0;
	while ((n = pread(fd, piece, sizeof(piece), at)) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			if (piece[i])
				return at + i;
		}
		at += n;
	}
	return at;
}

int sl_file_make_dirs(const char *path, unsigned int mode)
{
	char part[SL_PATH_MAX];
	size_t length = strlen(path);

	if (length == 0 || length >= sizeof(part))
		return sl_err_origin(length ? -ENAMETOOLONG : -EINVAL);
	memcpy(part, path, length + 1);
	for (size_t i = 1; i <= length; i++) {
		if (part[i] != '/' && part[i] != '\0')
			continue;
		part[i] = '\0';
		if (mkdir(part, (mode_t)mode) < 0 && errno != EEXIST)
			return sl_err_origin(-errno);
		part[i] = path[i];
	}
	return 0;
}

/* PF_KTHREAD of the kernel, stable since 2.6. */
#define FLAG_KERNEL_THREAD 0x00200000u

/* The text behind the last ')' of /proc/PID/stat, where the fields are numbers. The command's name
 * before it may contain spaces and parentheses. */
static int read_stat_tail(int pid, char *buf, size_t size)
{
	sl_cleanup(sl_freep) char *text = NULL;
	char path[64];
	const char *tail;
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	r = sl_file_read(path, 4096, &text, NULL);
	if (r < 0)
		return r;
	tail = strrchr(text, ')');
	if (!tail || tail[1] != ' ')
		return sl_err_origin(-EPROTO);
	(void)snprintf(buf, size, "%s", tail + 2);
	return 0;
}

int sl_file_pid_stat(int pid, struct sl_pid_stat *out)
{
	char tail[2048], *at = tail;
	int r = read_stat_tail(pid, tail, sizeof(tail));

	if (r < 0)
		return r;
	*out = (struct sl_pid_stat){.state = tail[0]};
	/* tail begins with field 3, the state; field 4 is the parent, 9 the flags, 22 the start. */
	for (int field = 4; field <= 22; field++) {
		at = strchr(at, ' ');
		if (!at)
			return sl_err_origin(-EPROTO);
		at++;
		if (field == 4)
			out->parent = (int)strtol(at, NULL, 10);
		else if (field == 9)
			out->kernel_thread = strtoull(at, NULL, 10) & FLAG_KERNEL_THREAD;
	}
	out->start_ticks = strtoull(at, NULL, 10);
	return 0;
}

int sl_file_pid_start(int pid, uint64_t *out_ticks)
{
	struct sl_pid_stat stat;
	int r = sl_file_pid_stat(pid, &stat);

	if (r == 0)
		*out_ticks = stat.start_ticks;
	return r;
}

int sl_file_pid_rights(int pid, struct sl_pid_rights *out)
{
	static const char gids[] = "\nGid:\t", capabilities[] = "\nCapPrm:\t";
	sl_cleanup(sl_freep) char *text = NULL;
	const char *gid, *permitted;
	char path[64];
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	r = sl_file_read(path, 16384, &text, NULL);
	if (r < 0)
		return r;
	gid = strstr(text, gids);
	permitted = strstr(text, capabilities);
	if (!gid || !permitted)
		return sl_err_origin(-EPROTO);
	out->gid = (uint32_t)strtoul(gid + strlen(gids), NULL, 10);
	out->capabilities = strtoull(permitted + strlen(capabilities), NULL, 16);
	return 0;
}

int sl_file_pid_parent(int pid)
{
	char tail[2048];
	int r = read_stat_tail(pid, tail, sizeof(tail));

	if (r < 0)
		return r;
	return (int)strtol(tail + 2, NULL, 10);
}

int sl_file_clear_socket(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	sl_cleanup(sl_closep) int fd = -1;
	struct stat stat = {0};
	int r;

	if (strlen(path) >= sizeof(address.sun_path))
		return sl_err_origin(-ENAMETOOLONG);
	if (lstat(path, &stat) < 0)
		return errno == ENOENT ? 0 : sl_err_origin(-errno);
	if (!S_ISSOCK(stat.st_mode))
		return sl_err_origin(-EEXIST);
	memcpy(address.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return sl_err_origin(-errno);
	r = connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -errno
										: 0;
	/* Only a refused connection proves that the socket is stale. EAGAIN: a program listens and
	 * its queue is full. EPROTOTYPE: a socket of another type, which the kernel reports only
	 * while it is in use. */
	if (r == 0 || r == -EAGAIN || r == -EPROTOTYPE)
		return sl_err_origin(-EADDRINUSE);
	if (r != -ECONNREFUSED)
		return r == -ENOENT ? 0 : sl_err_origin(r);
	return unlink(path) < 0 && errno != ENOENT ? sl_err_origin(-errno) : 0;
}
