/*
 * files - the folder of jobs on the disk
 *
 * What jobs/writer.c and jobs/load.c have in common. A folder named by a number is always a whole
 * job; an unfinished or removed job's folder has another name. Errors are negative errno.
 */
#ifndef SL_DAEMON_JOBS_FILES_H
#define SL_DAEMON_JOBS_FILES_H

#include "base/paths.h"
#include "daemon/jobs/store.h"

/* Prefixes of folders that are not yet, and no longer, jobs; the number follows. */
#define SL_JOBS_MAKING "new."
#define SL_JOBS_ENDING "old."

/* The path of a job's file; format gets task and attempt. */
SL_MUST_CHECK int sl_jobs_files_path(char path[SL_PATH_MAX], const char *folder,
	uint64_t id, const char *format, uint32_t task, uint32_t attempt);
/* Writes `name`.new, then renames it to `name`, so that readers find the old or the new file,
 * whole. The rename survives a crash of the computer once the folder is fsynced. */
SL_MUST_CHECK int sl_jobs_files_put(
	int folder_fd, const char *name, const void *data, size_t size);
/* Fsyncs a folder, so that renames in it last. */
SL_MUST_CHECK int sl_jobs_files_sync(int folder_fd);
/* A descriptor of a folder. */
SL_MUST_CHECK int sl_jobs_files_folder(int parent_fd, const char *name);
/* Removes a folder of files. Subfolders stay, and the log says so. */
void sl_jobs_files_clear(int parent_fd, const char *name);

/* Opens a job's file without waiting for its user. A log belongs to that user, who may hold a lease
 * on it (-EAGAIN; the kernel ends it within lease-break-time). If the folder is the user's, too, it
 * may be a FIFO (-EINVAL, -ENXIO). */
SL_MUST_CHECK int sl_jobs_files_open(const char *path, int flags);

struct sl_jobs_files_ids {
	uint64_t *ids;
	size_t count, room;
};
void sl_jobs_files_ids_fini(struct sl_jobs_files_ids *ids);
/* The numbers of all jobs, ascending. Removes unfinished and removed jobs: only while nothing
 * writes. */
SL_MUST_CHECK int sl_jobs_files_ids(int folder_fd, struct sl_jobs_files_ids *ids);
/* The number in the file `next`; 1 without it. */
uint64_t sl_jobs_files_next(const char *folder);

/* Disk space of a job's files in bytes; begun: it has more files than were submitted. 0 once they
 * are gone. */
uint64_t sl_jobs_files_used(const char *folder, uint64_t id, bool begun);
/* The remedy for a (positive) errno. */
const char *sl_jobs_files_remedy(int error);
/* Returns SL_JOBS_STORE_BAD; err says that `what` failed for that job, and the remedy. */
int sl_jobs_files_failed(
	const char *what, const char *folder, uint64_t id, int r, struct sl_error *err);

#endif
