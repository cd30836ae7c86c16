/*
 * files - the folder of jobs on the disk: paths, opening, clearing
 *
 * Errors are negative errno.
 */
#ifndef SL_DAEMON_JOBS_FILES_H
#define SL_DAEMON_JOBS_FILES_H

#include <sys/types.h>

#include "base/error.h"
#include "base/paths.h"
#include "wire/jobspec.h"

/* The path of a job's file; format gets task and attempt. */
SL_MUST_CHECK int sl_jobs_files_path(char path[SL_PATH_MAX], const char *folder,
	uint64_t id, const char *format, uint32_t task, uint32_t attempt);
/* Fsyncs a folder, so that renames in it last. */
SL_MUST_CHECK int sl_jobs_files_sync(int folder_fd);
/* A descriptor of a folder. */
SL_MUST_CHECK int sl_jobs_files_folder(int parent_fd, const char *name);
/* Removes a folder of files. Subfolders stay, and the log says so. */
void sl_jobs_files_clear(int parent_fd, const char *name);

/* Opens a job's file without waiting for its user. A log belongs to that user, who may hold a lease
 * on it (-EAGAIN; the kernel ends it within lease-break-time). If the folder is the user's, too,
 * the log may be a FIFO (-EINVAL, -ENXIO). */
SL_MUST_CHECK int sl_jobs_files_open(const char *path, int flags);

/* Disk space of a job's files in bytes; begun: it has more files than were submitted. 0 once they
 * are gone. */
uint64_t sl_jobs_files_used(const char *folder, uint64_t id, bool begun);
/* Returns r; err says that `what` failed for that job, and the remedy. */
int sl_jobs_files_failed(
	const char *what, const char *folder, uint64_t id, int r, struct sl_error *err);

/* Files of a job that the loop opens itself (small, local), unlike logs for reading. Descriptor or
 * negative errno; never waits for the job's user: -EAGAIN while that user holds a lease, -EINVAL if
 * the file is not a regular one. The log is for appending only; a record is new and empty, with
 * disk space reserved. */
SL_MUST_CHECK int sl_jobs_files_open_log(
	const char *folder, uint64_t id, uint32_t task, bool append);
SL_MUST_CHECK int sl_jobs_files_open_record(
	const char *folder, uint64_t id, uint32_t task, uint32_t attempt);
/* False: err says why; *spec must be empty. */
SL_MUST_CHECK bool sl_jobs_files_read_spec(
	const char *folder, uint64_t id, struct sl_jobspec *spec, struct sl_error *err);
/* Reads at most size - 1 bytes of the exit record; returns how many, or negative errno (-ENOENT:
 * none). */
SL_MUST_CHECK ssize_t sl_jobs_files_read_record(const char *folder, uint64_t id,
	uint32_t task, uint32_t attempt, char *buf, size_t size);
/* The living shim of that attempt, found by its lock on the record; 0: none. */
SL_MUST_CHECK pid_t sl_jobs_files_supervisor(
	const char *folder, uint64_t id, uint32_t task, uint32_t attempt);

#endif
