/*
 * store - the part of jobs that outlives the daemon and the boot
 *
 * How a job stands is a record of state.db (store/store.h). Programs open the rest, so that is
 * files: `folder` is data_dir/jobs, and in it ID/ holds for each job:
 *	spec        as submitted, with the submitter's uid, gid and groups (jobspec.h).
 *	log.T       output of task T, all attempts.
 *	exit.T.A    exit record of attempt A of task T (jobs/shim.h).
 *
 * The store's thread moves folder and record together, in this order:
 *	new job     part.ID/ is made with its spec, all of it fsynced; then the record is stored;
 *	            then part.ID/ becomes ID/.
 *	removed     ID/ becomes part.ID/; then the record is dropped; then part.ID/ is emptied.
 * So the record decides, whenever the daemon or the computer dies in between: at the next start the
 * part.ID/ of a job with a record becomes ID/ again, and any other is removed. A job counts as
 * accepted, and its submitter is answered, once all three steps are done.
 *
 * A folder ID/ without a record is left alone and named in the log: an earlier sluiced made it, or
 * its record is damaged. Its number is not given again.
 */
#ifndef SL_DAEMON_JOBS_STORE_H
#define SL_DAEMON_JOBS_STORE_H

#include "base/amount.h"
#include "base/clock.h"
#include "base/error.h"
#include "daemon/store/store.h"
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

/* Calls each(context, row) for every job; passes on what row owns. *next_id: above every number
 * ever given. Finishes what a crash left of folders. SL_STORE_*; err names what was left out, or is
 * left alone. */
SL_MUST_CHECK int sl_jobs_store_load(struct sl_store *store, const char *folder,
	void (*each)(void *context, struct sl_jobs_row *row), void *context,
	uint64_t *next_id, struct sl_error *err);

/* These add to a change what it is to do for a job. It copies all but folder, which must last until
 * done. */
void sl_jobs_store_put(struct sl_store_change *change, const struct sl_jobs_row *row);
/* A new job; the first one makes the folder (0700). No other step fits into the change, nor into
 * the ones below. */
void sl_jobs_store_add(struct sl_store_change *change, const char *folder,
	const struct sl_jobs_row *row, const struct sl_jobspec *spec);
/* Removes record and folder. */
void sl_jobs_store_drop(struct sl_store_change *change, const char *folder, uint64_t id);
/* Opens that log for reading; *fd: when done, its descriptor, or negative errno. */
void sl_jobs_store_read_log(struct sl_store_change *change, const char *folder,
	uint64_t id, uint32_t task, int *fd);

/* Files of a job that the loop opens itself (small, local), unlike logs for reading. Descriptor or
 * negative errno; never waits for the job's user: -EAGAIN while that user holds a lease, -EINVAL if
 * it is no regular file. The log is for appending only; a record is new and empty, with disk space
 * reserved. */
SL_MUST_CHECK int sl_jobs_store_open_log(
	const char *folder, uint64_t id, uint32_t task, bool append);
SL_MUST_CHECK int sl_jobs_store_open_record(
	const char *folder, uint64_t id, uint32_t task, uint32_t attempt);
/* False: err says why; *spec must be empty. */
SL_MUST_CHECK bool sl_jobs_store_read_spec(
	const char *folder, uint64_t id, struct sl_jobspec *spec, struct sl_error *err);
/* Reads at most size - 1 bytes of the exit record; returns how many, or negative errno (-ENOENT:
 * none). */
SL_MUST_CHECK ssize_t sl_jobs_store_read_record(const char *folder, uint64_t id,
	uint32_t task, uint32_t attempt, char *buf, size_t size);
/* The living shim of that attempt, found by its lock on the record; 0: none. */
SL_MUST_CHECK pid_t sl_jobs_store_supervisor(
	const char *folder, uint64_t id, uint32_t task, uint32_t attempt);

#endif
