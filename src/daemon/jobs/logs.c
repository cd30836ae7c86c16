/*
 * logs - see the header
 */
#include "daemon/jobs/logs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/amount.h"
#include "base/file.h"
#include "daemon/jobs/files.h"

/* How far to look for the end of a line to cut at. */
#define LINE_MOST 65536

static off_t behind_line(int fd, off_t at)
{
	static const size_t most = LINE_MOST;
	char piece[4096];

	for (size_t seen = 0; seen < most; seen += sizeof(piece)) {
		ssize_t n = pread(fd, piece, sizeof(piece), at + (off_t)seen);
		const char *end = n > 0 ? memchr(piece, '\n', (size_t)n) : NULL;

		if (end)
			return at + (off_t)seen + (end - piece) + 1;
		if (n < (ssize_t)sizeof(piece))
			break;
	}
	return at;
}

static int drop_until(int fd, off_t cut, uint64_t most_bytes)
{
	char text[160], dropped[32], most[32];
	int size = snprintf(text, sizeof(text),
		"sluice: the oldest %s of this output are dropped; %s are kept "
		"(job_log_max in sluiced.conf)\n",
		sl_bytes_format((uint64_t)cut, dropped, sizeof(dropped)),
		sl_bytes_format(most_bytes, most, sizeof(most)));

	if (cut <= size)
		return 0;
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, cut) < 0)
		return -errno;
	return pwrite(fd, text, (size_t)size, cut - size) == size ? 0 : -EIO;
}

static uint64_t disk_of(const struct stat *st)
{
	return (uint64_t)st->st_blocks * 512;
}

/* Frees space behind the end of a log. File systems allocate some there, which does not count, but
 * a user could allocate any amount. */
static int drop_behind_end(int fd, uint64_t most_bytes)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (disk_of(&st) / 2 <= most_bytes)
		return 0;
	return ftruncate(fd, st.st_size) < 0 ? -errno : 0;
}

int sl_jobs_logs_trim(const char *folder, uint64_t id, uint32_t task, uint64_t most_bytes)
{
	sl_cleanup(sl_closep) int fd = -1;
	char path[SL_PATH_MAX];
	struct stat st;
	off_t cut;
	int r = sl_jobs_files_path(path, folder, id, "log.%u", task, 0);

	if (r < 0)
		return r;
	if (lstat(path, &st) < 0)
		return -errno;
	/* Holes take no space. */
	if (!most_bytes || disk_of(&st) <= most_bytes)
		return 0;
	fd = sl_jobs_files_open(path, O_RDWR);
	if (fd < 0)
		return fd;
	cut = st.st_size - (off_t)(most_bytes / 4 * 3);
	if ((uint64_t)st.st_size > most_bytes)
		r = drop_until(fd, behind_line(fd, cut), most_bytes);
	return r < 0 ? r : drop_behind_end(fd, most_bytes);
}

static int trim_all(struct sl_store_step *step, struct sl_error *err)
{
	struct sl_jobs_trim *trim = SL_CONTAINER_OF(step, struct sl_jobs_trim, step);

	for (size_t i = 0; i < trim->count; i++)
		trim->logs[i].r = sl_jobs_logs_trim(trim->folder, trim->logs[i].id,
			trim->logs[i].task, trim->most_bytes);
	return 0;
}

struct sl_jobs_trim *sl_jobs_trim_new(
	const char *folder, uint64_t most_bytes, size_t room)
{
	struct sl_jobs_trim *trim = malloc(sizeof(*trim) + room * sizeof(trim->logs[0]));

	if (trim)
		*trim = (struct sl_jobs_trim){.step = {.before = trim_all},
			.folder = folder,
			.most_bytes = most_bytes};
	return trim;
}
