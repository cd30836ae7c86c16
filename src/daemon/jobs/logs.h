/*
 * logs - bounds a job's output: the oldest part is dropped
 *
 * The program writes its file itself, so it never waits for the daemon, and no output is lost with
 * the daemon. The dropped part becomes a hole at the beginning of the file, which takes no disk
 * space; offsets in the file stay valid for readers. A line in front of the rest says that output
 * was dropped; sl_file_first() finds it.
 */
#ifndef SL_DAEMON_JOBS_LOGS_H
#define SL_DAEMON_JOBS_LOGS_H

#include "daemon/store/store.h"

/* Trims a log that takes more than most_bytes on the disk to three quarters of that. 0, also if
 * nothing was to be done; -EAGAIN: later; -EOPNOTSUPP: the file system has no holes; -ENOENT: no
 * such log (any more). */
SL_MUST_CHECK int sl_jobs_logs_trim(
	const char *folder, uint64_t id, uint32_t task, uint64_t most_bytes);

/* A log to trim, and what became of it. */
struct sl_jobs_log {
	uint64_t id;
	uint32_t task;
	int r;
};
/* The store's thread trims them as the only step of a change. */
struct sl_jobs_trim {
	struct sl_store_step step;
	void *context; /* the caller's */
	const char *folder;
	uint64_t most_bytes;
	size_t count;
	struct sl_jobs_log logs[];
};
/* With room for so many; NULL: no memory. */
struct sl_jobs_trim *sl_jobs_trim_new(
	const char *folder, uint64_t most_bytes, size_t room);

#endif
