/*
 * store - the part of jobs that outlives the daemon and the boot
 *
 * `folder` is data_dir/jobs; in it ID/ holds for each job:
 *	spec        as submitted, with the submitter's uid, gid and groups (jobspec.h).
 *	state       what the daemon knows of it, JSON, replaced whole.
 *	log.T       output of task T, all attempts.
 *	exit.T.A    exit record of attempt A of task T (jobs/shim.h).
 *
 * The file `next` holds a number above those of removed jobs, so that none is given twice.
 *
 * The loop loads at the start. A thread of its own writes and removes, in order, with fsync, and
 * waits for slow or full disks. A job counts as accepted, and its submitter is answered, once its
 * spec and first state are stored. Its folder appears and disappears as a whole, whenever the
 * daemon or the computer dies. A folder that cannot be read stays as it is, is logged, and its
 * number is not given again.
 */
#ifndef SL_DAEMON_JOBS_STORE_H
#define SL_DAEMON_JOBS_STORE_H

#include "base/amount.h"
#include "base/clock.h"
#include "base/error.h"
#include "wire/jobspec.h"
#include "wire/wire.h"

/* One task, as stored. */
struct sl_jobs_task {
	/* enum sl_task_state of policy/cluster.h; BINDING is stored before the shim gets its go */
	uint32_t state;
	uint32_t attempt;  /* of the last start, from 1; 0: never started */
	uint32_t failures; /* that counted against retries */
	uint64_t workload; /* of this attempt, 0: none */
	bool parked;
	uint32_t exit_status; /* of the last attempt that ended */
};

/* One job, as stored. Owns tasks. */
struct sl_jobs_row {
	uint64_t id;
	uint32_t uid, gid;
	char name[64], project[64], command[128], visible[256];
	struct sl_amount request, limit;
	uint32_t gpu_count, flags, task_count, least, retries;
	uint32_t
		workloads_most; /* its user's bound on workloads when it was submitted; 0: none */
	int32_t priority;
	sl_ns wait_max, warm_after, preempt_delay;
	sl_ns idle_grace; /* with SL_SUBMIT_GRACE */
	uint32_t state;   /* enum sl_job_state */
	uint64_t submitted_ms, started_ms, ended_ms;
	uint32_t exit_status, started;
	char why[512]; /* once it has failed */
	struct sl_jobs_task *tasks;
};

void sl_jobs_row_fini(struct sl_jobs_row *row);

struct sl_jobs_store;

enum {
	SL_JOBS_STORE_OK = 0,
	SL_JOBS_STORE_BAD /* err names the file, what is wrong, and the remedy */
};

/* Calls each(context, row) for every job, by number; passes on what row owns. *next_id: above every
 * number ever given. No folder means no jobs. Removes unfinished folders that a crash left.
 * SL_JOBS_STORE_BAD: the folder as a whole cannot be read. With SL_JOBS_STORE_OK, err names what
 * was skipped, "" if nothing was. */
SL_MUST_CHECK int sl_jobs_store_load(const char *folder,
	void (*each)(void *context, struct sl_jobs_row *row), void *context,
	uint64_t *next_id, struct sl_error *err);

/* Starts the thread, after sl_jobs_store_load; the first job makes the folder (0700). 0 or negative
 * errno. */
SL_MUST_CHECK int sl_jobs_store_new(const char *folder, struct sl_jobs_store **out);
/* Writes what is queued, then ends. NULL is fine; returns NULL. */
struct sl_jobs_store *sl_jobs_store_free(struct sl_jobs_store *store);
/* Readable when an order is done. */
int sl_jobs_store_fd(const struct sl_jobs_store *store);

/* Stores state, and spec if it is not NULL (a new job). Copies both. sl_jobs_store_take returns
 * ticket when done. A newer state of the same job replaces one that is still queued; then both
 * tickets come back. 0 or -ENOMEM. */
SL_MUST_CHECK int sl_jobs_store_put(struct sl_jobs_store *store,
	const struct sl_jobs_row *row, const struct sl_jobspec *spec, uint64_t ticket);
/* Removes the folder and its contents, after everything put before. Failures are logged. 0 or
 * -ENOMEM. */
SL_MUST_CHECK int sl_jobs_store_remove(struct sl_jobs_store *store, uint64_t id);
/* Keeps that log within so many bytes on the disk, checked every second (0: not at all).
 * SL_JOBS_STORE_LAST: once more, then no longer. */
#define SL_JOBS_STORE_LAST UINT64_MAX
void sl_jobs_store_bound_log(
	struct sl_jobs_store *store, uint64_t id, uint32_t task, uint64_t most_bytes);
/* Opens that log for reading; the descriptor comes with the ticket. 0 or -ENOMEM. */
SL_MUST_CHECK int sl_jobs_store_read_log(
	struct sl_jobs_store *store, uint64_t id, uint32_t task, uint64_t ticket);
/* True once for each ticket; *result: SL_JOBS_STORE_*; *log_fd: the log's descriptor (the
 * caller's), or negative errno. Call it whenever the descriptor is readable, until it returns
 * false. */
SL_MUST_CHECK bool sl_jobs_store_take(struct sl_jobs_store *store, uint64_t *ticket,
	int *result, int *log_fd, struct sl_error *err);

/* Files of a job that the loop opens itself (small, local), unlike logs for reading. Descriptor or
 * negative errno; never waits for the job's user: -EAGAIN while that user holds a lease, -EINVAL if
 * it is no regular file. The log is for appending only; a record is new and empty, with disk space
 * reserved. */
SL_MUST_CHECK int sl_jobs_store_open_log(
	const char *folder, uint64_t id, uint32_t task, bool append);
SL_MUST_CHECK int sl_jobs_store_open_record(
	const char *folder, uint64_t id, uint32_t task, uint32_t attempt);
/* SL_JOBS_STORE_*; *spec must be empty. */
SL_MUST_CHECK int sl_jobs_store_read_spec(
	const char *folder, uint64_t id, struct sl_jobspec *spec, struct sl_error *err);
/* Reads at most size - 1 bytes of the exit record; returns how many, or negative errno (-ENOENT:
 * none). */
SL_MUST_CHECK ssize_t sl_jobs_store_read_record(const char *folder, uint64_t id,
	uint32_t task, uint32_t attempt, char *buf, size_t size);
/* The living shim of that attempt, found by its lock on the record; 0: none. */
SL_MUST_CHECK pid_t sl_jobs_store_supervisor(
	const char *folder, uint64_t id, uint32_t task, uint32_t attempt);

#endif
