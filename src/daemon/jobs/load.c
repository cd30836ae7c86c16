/*
 * load - reads the stored jobs at the start of the daemon
 *
 * A job that cannot be read may be the only trace of what runs, so only the administrator may mend
 * or remove it. Its number stays taken, and the log says so.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "daemon/jobs/files.h"
#include "daemon/jobs/state.h"

void sl_jobs_row_fini(struct sl_jobs_row *row)
{
	free(row->tasks);
	row->tasks = NULL;
}

/* The number that a folder's name spells as we write it, or 0. */
static uint64_t id_of(const char *name)
{
	char again[24], *end;
	uint64_t id;

	if (name[0] < '1' || name[0] > '9')
		return 0;
	errno = 0;
	id = strtoull(name, &end, 10);
	(void)snprintf(again, sizeof(again), "%" PRIu64, id);
	return errno == 0 && id < INT64_MAX && strcmp(again, name) == 0 ? id : 0;
}

static int compare_ids(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

void sl_jobs_files_ids_fini(struct sl_jobs_files_ids *ids)
{
	free(ids->ids);
}

static int add_id(struct sl_jobs_files_ids *ids, uint64_t id)
{
	if (ids->count == ids->room) {
		size_t room = 2 * ids->room + 64;
		uint64_t *grown = realloc(ids->ids, room * sizeof(*grown));

		if (!grown)
			return sl_err_origin(-ENOMEM);
		ids->ids = grown;
		ids->room = room;
	}
	ids->ids[ids->count++] = id;
	return 0;
}

int sl_jobs_files_ids(int folder_fd, struct sl_jobs_files_ids *ids)
{
	int fd = dup(folder_fd), r = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		r = -errno;
		sl_closep(&fd);
		return sl_err_origin(r);
	}
	while (r == 0 && (errno = 0, entry = readdir(dir))) {
		uint64_t id = id_of(entry->d_name);

		if (id)
			r = add_id(ids, id);
		else if (strncmp(entry->d_name, SL_JOBS_MAKING, strlen(SL_JOBS_MAKING)) ==
				 0 ||
			 strncmp(entry->d_name, SL_JOBS_ENDING, strlen(SL_JOBS_ENDING)) ==
				 0)
			sl_jobs_files_clear(folder_fd, entry->d_name);
	}
	if (r == 0 && errno)
		r = sl_err_origin(-errno);
	(void)closedir(dir);
	if (ids->count)
		qsort(ids->ids, ids->count, sizeof(*ids->ids), compare_ids);
	return r;
}

static int load_one(
	const char *folder, uint64_t id, struct sl_jobs_row *row, struct sl_error *err)
{
	sl_cleanup(sl_freep) char *text = NULL;
	char path[SL_PATH_MAX];
	size_t size = 0;
	int r = sl_jobs_files_path(path, folder, id, "spec", 0, 0);

	if (r == 0 && access(path, R_OK) < 0)
		r = -errno;
	if (r == 0)
		r = sl_jobs_files_path(path, folder, id, "state", 0, 0);
	if (r == 0)
		r = sl_file_read(path, SL_JOBS_STATE_BYTES_MAX, &text, &size);
	if (r < 0) {
		sl_error_set(err, "%s", strerror(-r));
		sl_error_wrap(err, "%.200s", path);
		return SL_JOBS_STORE_BAD;
	}
	r = sl_jobs_state_read(text, size, id, row, err);
	if (r != SL_JOBS_STORE_OK)
		sl_error_wrap(err, "%.200s", path);
	return r;
}

uint64_t sl_jobs_files_next(const char *folder)
{
	sl_cleanup(sl_freep) char *text = NULL;
	char path[SL_PATH_MAX];
	uint64_t next;
	int r;

	(void)snprintf(path, sizeof(path), "%s/next", folder);
	r = sl_file_read(path, 32, &text, NULL);
	if (r == -ENOENT)
		return 1;
	if (r == 0)
		text[strcspn(text, "\n")] = '\0';
	next = r == 0 ? id_of(text) : 0;
	if (next)
		return next;
	sl_warning("%s cannot be read, so numbers of jobs that were removed may be given "
		   "again; remove that file",
		path);
	return 1;
}

int sl_jobs_store_load(const char *folder,
	void (*each)(void *context, struct sl_jobs_row *row), void *context,
	uint64_t *next_id, struct sl_error *err)
{
	sl_cleanup(sl_closep) int fd = sl_jobs_files_folder(AT_FDCWD, folder);
	sl_cleanup(sl_jobs_files_ids_fini) struct sl_jobs_files_ids ids = {0};
	unsigned int left = 0;
	int r = fd < 0 ? fd : 0;

	*next_id = 1;
	if (fd == -ENOENT)
		return SL_JOBS_STORE_OK;
	if (r == 0)
		r = sl_jobs_files_ids(fd, &ids);
	if (r < 0) {
		sl_error_set(err, "cannot read the jobs in %.200s: %s; %s", folder,
			strerror(-r), sl_jobs_files_remedy(-r));
		return SL_JOBS_STORE_BAD;
	}
	err->text[0] = '\0';
	*next_id = sl_jobs_files_next(folder);
	if (ids.count && ids.ids[ids.count - 1] >= *next_id)
		*next_id = ids.ids[ids.count - 1] + 1;
	for (size_t i = 0; i < ids.count; i++) {
		struct sl_jobs_row row = {0};
		struct sl_error why = {{0}};

		if (load_one(folder, ids.ids[i], &row, &why) == SL_JOBS_STORE_OK) {
			each(context, &row);
			continue;
		}
		sl_error_set(err,
			"job %" PRIu64 " is left alone: %s; repair it or remove its "
			"folder, then restart sluiced",
			ids.ids[i], why.text);
		sl_error_log("%s", err->text);
		left++;
	}
	if (left > 1)
		sl_error_wrap(err, "%u jobs cannot be read, the last of them", left);
	return SL_JOBS_STORE_OK;
}
