/*
 * files - the folder of jobs, as it lies on the disk
 *
 * What jobs_store (which writes) and jobs_load (which reads) have in common. A folder with a number
 * is always a whole job; one that is not yet, or no longer, has another name. Errors are negative
 * errno.
 */
#ifndef SL_DAEMON_JOBS_FILES_H
#define SL_DAEMON_JOBS_FILES_H

#include "base/paths.h"
#include "daemon/jobs/store.h"

/* Names of folders that are not yet, and no longer, jobs; the number follows. */
#define SL_JOBS_MAKING "new."
#define SL_JOBS_ENDING "old."

/* The path of a file of a job; format gets task and attempt. */
SL_MUST_CHECK int sl_jobs_files_path(char path[SL_PATH_MAX], const char *folder,
	uint64_t id, const char *format, uint32_t task, uint32_t attempt);
/* Under `name`.new first, then in place of `name`: old or new, and whole. Which of them it is after
 * the machine's death is certain once the folder is fsynced. */
SL_MUST_CHECK int sl_jobs_files_put(
	int folder_fd, const char *name, const void *data, size_t size);
/* What was renamed in it stays so. */
SL_MUST_CHECK int sl_jobs_files_sync(int folder_fd);
/* A descriptor of a folder. */
SL_MUST_CHECK int sl_jobs_files_folder(int parent_fd, const char *name);
/* Removes a folder of files. Whatever else somebody has put there stays, and is said. */
void sl_jobs_files_clear(int parent_fd, const char *name);

/* A file of a job, without waiting for the job's user: a log belongs to that user, who may hold a
 * lease on it (-EAGAIN; the kernel ends it within lease-break-time), and where the folder does,
 * too, a FIFO may stand there (-EINVAL, -ENXIO). */
SL_MUST_CHECK int sl_jobs_files_open(const char *path, int flags);

struct sl_jobs_files_ids {
	uint64_t *ids;
	size_t count, room;
};
void sl_jobs_files_ids_fini(struct sl_jobs_files_ids *ids);
/* The numbers there are, in order. Clears away what is no job any more, or not yet: only where
 * nobody writes. */
SL_MUST_CHECK int sl_jobs_files_ids(int folder_fd, struct sl_jobs_files_ids *ids);
/* The number in the file `next`, 1 without it. */
uint64_t sl_jobs_files_next(const char *folder);

/* Bytes of the disk that its files have; begun: there are more than what was submitted. Of files
 * that are gone, none. */
uint64_t sl_jobs_files_used(const char *folder, uint64_t id, bool begun);
/* What to do about a (positive) errno. */
const char *sl_jobs_files_remedy(int error);
/* SL_JOBS_STORE_BAD, saying that `what` could not be done with that job, and the remedy. */
int sl_jobs_files_failed(
	const char *what, const char *folder, uint64_t id, int r, struct sl_error *err);

#endif
