/*
 * logs - a job's output is bounded: the oldest part of it goes
 *
 * The program writes into its file itself, so nobody stands in its way and nothing is lost with
 * the daemon. What is dropped becomes a hole at the beginning of the file, which takes no disk;
 * places in the file stay what they are for a reader. In front of what is left stands a line that
 * says so. sl_file_first() finds it.
 */
#ifndef SL_DAEMON_JOBS_LOGS_H
#define SL_DAEMON_JOBS_LOGS_H

#include "base/sl.h"

/* Three quarters of most_bytes stay of a log that takes more on the disk. 0, also where there was
 * nothing to do; -EAGAIN: later; -EOPNOTSUPP: this file system has no holes; -ENOENT: there is no
 * such log (any more). */
SL_MUST_CHECK int sl_jobs_logs_trim(
	const char *folder, uint64_t id, uint32_t task, uint64_t most_bytes);

#endif
