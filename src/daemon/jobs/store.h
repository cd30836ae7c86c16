/*
 * store - what of jobs outlives the daemon, and the machine
 *
 * `folder` is data_dir/jobs; in it ID/ holds for each job:
 *	spec        as it was submitted, and who submitted it: uid, gid, groups (jobspec.h)
 *	state       what the daemon knows of it, JSON, replaced whole
 *	log.T       output of task T, all attempts
 *	exit.T.A    exit record of attempt A of task T (daemon/shim.h)
 *
 * and the file `next` a number above those of jobs that were removed, so that none is given twice.
 *
 * Loading is done at the start, by the loop. Writing and removing is done by a thread of its own,
 * in order, fsynced; a slow or full disk is its to wait for. A job counts as taken once its spec
 * and first state are stored: whoever submitted is answered then. Its folder appears whole or not
 * at all, and goes so, whenever the daemon or the machine dies. A folder that cannot be read is
 * left as it is, told in the log, and its number is not given again.
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
	/* Enum sl_task_state of policy/cluster.h; BINDING is stored before the shim may go */
	uint32_t state;
	uint32_t attempt;  /* of its last start, from 1; 0: never started */
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
		workloads_most; /* of its user at a time, as bounds were then; 0: any number */
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

/* Calls each(context, row) for every job there is, by number; what row owns is given away.
 * *next_id: above every number that was ever given. Without a folder there are no jobs. Clears away
 * what a crash left half made. SL_JOBS_STORE_BAD: the folder as a whole cannot be read. With
 * SL_JOBS_STORE_OK err names what was left alone, "" if nothing was. */
SL_MUST_CHECK int sl_jobs_store_load(const char *folder,
	void (*each)(void *context, struct sl_jobs_row *row), void *context,
	uint64_t *next_id, struct sl_error *err);

/* Makes the thread, after sl_jobs_store_load; the folder (0700) comes with the first job. 0 or
 * negative errno. */
SL_MUST_CHECK int sl_jobs_store_new(const char *folder, struct sl_jobs_store **out);
/* Writes what is left, then ends. NULL is fine; returns NULL. */
struct sl_jobs_store *sl_jobs_store_free(struct sl_jobs_store *store);
/* Readable when something is over. */
int sl_jobs_store_fd(const struct sl_jobs_store *store);

/* Stores state, and spec if it is not NULL (a new job). Copies both. ticket comes back from
 * sl_jobs_store_take. A state that is not being written yet is overtaken by a newer one of the same
 * job, and then both tickets come back. 0 or -ENOMEM. */
SL_MUST_CHECK int sl_jobs_store_put(struct sl_jobs_store *store,
	const struct sl_jobs_row *row, const struct sl_jobspec *spec, uint64_t ticket);
/* Removes the folder with all that is in it, after what was put before. A failure is told in the
 * log. 0 or -ENOMEM. */
SL_MUST_CHECK int sl_jobs_store_remove(struct sl_jobs_store *store, uint64_t id);
/* That log is kept within so many bytes of the disk, looked at every second (0: it is not); after
 * SL_JOBS_STORE_LAST it is looked at once more. */
#define SL_JOBS_STORE_LAST UINT64_MAX
void sl_jobs_store_bound_log(
	struct sl_jobs_store *store, uint64_t id, uint32_t task, uint64_t most_bytes);
/* Opens that log for reading. 0 or -ENOMEM. */
SL_MUST_CHECK int sl_jobs_store_read_log(
	struct sl_jobs_store *store, uint64_t id, uint32_t task, uint64_t ticket);
/* True once for each ticket; *result: SL_JOBS_STORE_*; *log_fd: the log that was to be opened, the
 * caller's, or negative errno. Whenever the descriptor is readable, until
 * it says false. */
SL_MUST_CHECK bool sl_jobs_store_take(struct sl_jobs_store *store, uint64_t *ticket,
	int *result, int *log_fd, struct sl_error *err);

/* Files of a job, opened by the loop (small, local), but for logs that are read. Descriptor or
 * negative errno; never waits for the job's user: -EAGAIN where that user holds a lease, -EINVAL
 * where no regular file stands. The log is made for appending only; a record is new and empty, and
 * has room on the disk for what is to be written. */
SL_MUST_CHECK int sl_jobs_store_open_log(
	const char *folder, uint64_t id, uint32_t task, bool append);
SL_MUST_CHECK int sl_jobs_store_open_record(
	const char *folder, uint64_t id, uint32_t task, uint32_t attempt);
/* SL_JOBS_STORE_*; *spec was empty. */
SL_MUST_CHECK int sl_jobs_store_read_spec(
	const char *folder, uint64_t id, struct sl_jobspec *spec, struct sl_error *err);
/* At most size - 1 bytes of the exit record; how many, or negative errno (-ENOENT: none). */
SL_MUST_CHECK ssize_t sl_jobs_store_read_record(const char *folder, uint64_t id,
	uint32_t task, uint32_t attempt, char *buf, size_t size);
/* The living shim of that attempt, by the lock that it holds on its record; 0: there is none. */
SL_MUST_CHECK pid_t sl_jobs_store_supervisor(
	const char *folder, uint64_t id, uint32_t task, uint32_t attempt);

#endif
