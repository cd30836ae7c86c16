/*
 * store - see the header
 */
#include "daemon/jobs/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/step.h"
#include "daemon/core/map.h"
#include "daemon/jobs/files.h"
#include "daemon/jobs/state.h"

/* What the name of a folder begins with while its record comes or goes. */
#define PART "part."

/* One job's folder, as it is moved. */
struct step {
	struct sl_store_step step;
	const char *folder;
	uint64_t id;
	char name[24], part[32];
	uint32_t task;
	int *fd; /* of read_log */
	size_t size;
	char spec[]; /* of a new job */
};

static struct step *step_of(struct sl_store_step *step)
{
	return SL_CONTAINER_OF(step, struct step, step);
}

/* NULL: no memory, which the change remembers. */
static struct step *add_step(struct sl_store_change *change, struct sl_store_step what,
	const char *folder, uint64_t id, size_t size)
{
	struct step *step = malloc(sizeof(*step) + size);

	if (step) {
		*step = (struct step){
			.step = what, .folder = folder, .id = id, .size = size};
		(void)snprintf(step->name, sizeof(step->name), "%" PRIu64, id);
		(void)snprintf(step->part, sizeof(step->part), PART "%" PRIu64, id);
	}
	sl_store_add_step(change, step ? &step->step : NULL);
	return change ? step : NULL;
}

/* --- A new job. --- */

/* The folder is closed to others: what jobs run and print is their users' business. Returns its
 * descriptor. */
static int have_folder(const char *folder)
{
	char parent[SL_PATH_MAX], *slash;
	int fd = sl_jobs_files_folder(AT_FDCWD, folder), r = 0;

	if (fd != -ENOENT)
		return fd;
	(void)snprintf(parent, sizeof(parent), "%s", folder);
	slash = strrchr(parent, '/');
	if (slash && slash != parent) {
		*slash = '\0';
		r = sl_file_make_dirs(parent, 0755);
	}
	if (r == 0 && mkdir(folder, 0700) < 0)
		r = -errno;
	fd = r < 0 ? r : sl_jobs_files_folder(AT_FDCWD, parent);
	if (fd < 0)
		return sl_err_origin(fd);
	r = sl_jobs_files_sync(fd);
	(void)close(fd);
	return r < 0 ? r : sl_jobs_files_folder(AT_FDCWD, folder);
}

static int write_spec(int part_fd, const struct step *step)
{
	sl_cleanup(sl_closep) int fd = openat(part_fd, "spec",
		O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	int r = fd < 0 ? -errno : sl_file_write_all(fd, step->spec, step->size);

	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	return r < 0 ? r : sl_jobs_files_sync(part_fd);
}

static int fill_part(int folder_fd, const struct step *step)
{
	sl_cleanup(sl_closep) int fd = sl_jobs_files_folder(folder_fd, step->part);
	int r = fd < 0 ? fd : write_spec(fd, step);

	return r < 0 ? r : sl_jobs_files_sync(folder_fd);
}

static int before_add(struct sl_store_step *base, struct sl_error *err)
{
	const struct step *step = step_of(base);
	sl_cleanup(sl_closep) int fd = have_folder(step->folder);
	int r = fd < 0 ? fd : 0;

	if (r == 0 && faccessat(fd, step->name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		r = -EEXIST;
	if (r == 0 && mkdirat(fd, step->part, 0700) < 0)
		r = -errno;
	else if (r == 0 && (r = fill_part(fd, step)) < 0)
		sl_jobs_files_clear(fd, step->part);
	sl_step(D_JOB_MADE);
	return r < 0 ? sl_jobs_files_failed("store", step->folder, step->id, r, err) : 0;
}

/* The folder gets its other name. */
static int rename_it(int folder_fd, const char *from, const char *to)
{
	return folder_fd < 0 || renameat(folder_fd, from, folder_fd, to) < 0 ? -errno : 0;
}

static void after_add(struct sl_store_step *base, int r)
{
	const struct step *step = step_of(base);
	sl_cleanup(sl_closep) int fd = sl_jobs_files_folder(AT_FDCWD, step->folder);

	/* Its submitter is told that it failed, so the job must not reappear. */
	if (r < 0) {
		sl_jobs_files_clear(fd, step->part);
		return;
	}
	sl_step(D_JOB_KEPT);
	r = rename_it(fd, step->part, step->name);
	if (r < 0)
		sl_error_log("%s/%s cannot be renamed to %s: %s; do it by hand",
			step->folder, step->part, step->name, strerror(-r));
}

void sl_jobs_store_put(struct sl_store_change *change, const struct sl_jobs_row *row)
{
	sl_cleanup(sl_freep) char *text = sl_jobs_state_write(row);

	sl_store_put(change, SL_KIND_JOB, row->id, text);
}

void sl_jobs_store_add(struct sl_store_change *change, const char *folder,
	const struct sl_jobs_row *row, const struct sl_jobspec *spec)
{
	struct step *step = add_step(change,
		(struct sl_store_step){.before = before_add, .after = after_add}, folder,
		row->id, spec->size);

	if (step)
		memcpy(step->spec, spec->text, spec->size);
	sl_jobs_store_put(change, row);
	sl_store_put_number(change, SL_KIND_JOB, row->id + 1);
}

/* --- A job is removed. --- */

static int before_drop(struct sl_store_step *base, struct sl_error *err)
{
	const struct step *step = step_of(base);
	sl_cleanup(sl_closep) int fd = sl_jobs_files_folder(AT_FDCWD, step->folder);
	int r = fd < 0 ? fd : rename_it(fd, step->name, step->part);

	/* Gone already: only the record is left. */
	if (r == -ENOENT)
		return 0;
	if (r == 0 && (r = sl_jobs_files_sync(fd)) < 0)
		(void)rename_it(fd, step->part, step->name);
	sl_step(D_JOB_ENDING);
	return r < 0 ? sl_jobs_files_failed("remove", step->folder, step->id, r, err) : 0;
}

static void after_drop(struct sl_store_step *base, int r)
{
	const struct step *step = step_of(base);
	sl_cleanup(sl_closep) int fd = sl_jobs_files_folder(AT_FDCWD, step->folder);

	sl_step(D_JOB_DROPPED);
	if (r == 0 && fd >= 0)
		sl_jobs_files_clear(fd, step->part);
	else
		(void)rename_it(fd, step->part, step->name);
}

void sl_jobs_store_drop(struct sl_store_change *change, const char *folder, uint64_t id)
{
	(void)add_step(change,
		(struct sl_store_step){.before = before_drop, .after = after_drop},
		folder, id, 0);
	sl_store_drop(change, SL_KIND_JOB, id);
}

/* --- A log is opened. --- */

static int open_log(struct sl_store_step *base, struct sl_error *err)
{
	const struct step *step = step_of(base);

	*step->fd = sl_jobs_files_open_log(step->folder, step->id, step->task, false);
	return 0;
}

void sl_jobs_store_read_log(struct sl_store_change *change, const char *folder,
	uint64_t id, uint32_t task, int *fd)
{
	struct step *step = add_step(
		change, (struct sl_store_step){.before = open_log}, folder, id, 0);

	if (step) {
		step->task = task;
		step->fd = fd;
	}
}

/* --- Reading. --- */

struct loading {
	void (*each)(void *context, struct sl_jobs_row *row);
	void *context;
	struct sl_map known; /* jobs that were read */
	uint64_t next;       /* above every number so far */
	/* Folders without a record. */
	unsigned int left;
	char first[32];
};

static bool take(void *context, uint64_t number, const char *text, struct sl_error *why)
{
	struct loading *loading = context;
	struct sl_jobs_row row;

	loading->next = sl_max_u64(loading->next, number + 1);
	if (!sl_jobs_state_read(text, number, &row, why))
		return false;
	if (sl_map_put(&loading->known, number, loading) < 0) {
		sl_jobs_row_fini(&row);
		sl_error_set(why, "there is no memory for it");
		return false;
	}
	loading->each(loading->context, &row);
	return true;
}

/* The number that a name spells as we write it, or 0. */
static uint64_t id_of(const char *name)
{
	char again[24];
	uint64_t id;

	if (name[0] < '1' || name[0] > '9')
		return 0;
	errno = 0;
	id = strtoull(name, NULL, 10);
	(void)snprintf(again, sizeof(again), "%" PRIu64, id);
	return errno == 0 && id < INT64_MAX && strcmp(again, name) == 0 ? id : 0;
}

/* whole: all records were read. */
static void look_at(struct loading *loading, int folder_fd, const char *name, bool whole)
{
	bool part = strncmp(name, PART, strlen(PART)) == 0;
	const char *digits = name + (part ? strlen(PART) : 0);
	uint64_t id = id_of(digits);
	bool known = id && sl_map_get(&loading->known, id);

	if (!id)
		return;
	/* Its number was never told, or is below the next one. */
	if (part && !known && whole) {
		sl_jobs_files_clear(folder_fd, name);
		return;
	}
	loading->next = sl_max_u64(loading->next, id + 1);
	if (part && known) {
		if (rename_it(folder_fd, name, digits) < 0)
			sl_error_log("the folder %s of job %s cannot be renamed to it",
				name, digits);
	} else if (!known && loading->left++ == 0) {
		(void)snprintf(loading->first, sizeof(loading->first), "%s", name);
	}
}

static int look_at_all(struct loading *loading, const char *folder, bool whole)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int r;

	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while ((errno = 0, entry = readdir(dir)))
		look_at(loading, dirfd(dir), entry->d_name, whole);
	r = -errno;
	(void)closedir(dir);
	return r;
}

int sl_jobs_store_load(struct sl_store *store, const char *folder,
	void (*each)(void *context, struct sl_jobs_row *row), void *context,
	uint64_t *next_id, struct sl_error *err)
{
	struct loading loading = {.each = each, .context = context, .next = 1};
	struct sl_error why = {0};
	int number = sl_store_load_number(store, SL_KIND_JOB, &loading.next, err);
	int r = sl_store_load(store, SL_KIND_JOB, take, &loading, err), looked;

	r = r == SL_STORE_OK ? number : r;
	looked = look_at_all(&loading, folder, r == SL_STORE_OK);
	sl_map_fini(&loading.known);
	*next_id = loading.next;
	if (looked < 0)
		sl_error_set(&why,
			"cannot read the folder %.200s: %s; let sluiced's user read it, "
			"and restart sluiced",
			folder, strerror(-looked));
	else if (loading.left)
		sl_error_set(&why,
			"folders without a job in %.160s are left alone: %u in %.160s, "
			"%s for one; put back a copy of state.db, start the sluiced that "
			"made them, or remove them",
			sl_store_path(store, SL_KIND_JOB), loading.left, folder,
			loading.first);
	if (r == SL_STORE_OK && why.text[0]) {
		*err = why;
		r = SL_STORE_PARTLY;
	}
	return r;
}
