/*
 * state - what the daemon knows of a job, as the text of its record
 *
 * JSON. The reader trusts nothing: it rejects a number out of range, a text too long, a key missing
 * or unknown. Pure.
 */
#ifndef SL_DAEMON_JOBS_STATE_H
#define SL_DAEMON_JOBS_STATE_H

#include "base/amount.h"
#include "base/clock.h"
#include "base/error.h"
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
	sl_ns wait_max, warm_after, detach_after, preempt_delay;
	sl_ns idle_grace; /* with SL_SUBMIT_GRACE */
	uint32_t compute_request_pm, compute_limit_pm;
	uint32_t state; /* enum sl_job_state */
	uint64_t submitted_ms, started_ms, ended_ms;
	uint32_t exit_status, started;
	char why[512]; /* once it has failed */
	struct sl_jobs_task *tasks;
};

void sl_jobs_row_fini(struct sl_jobs_row *row);

/* NUL-terminated text, which the caller frees; NULL without memory. */
char *sl_jobs_state_write(const struct sl_jobs_row *row);
/* Reads the text of job `id`. False: *row is empty, and err says what is wrong. */
SL_MUST_CHECK bool sl_jobs_state_read(
	const char *text, uint64_t id, struct sl_jobs_row *row, struct sl_error *err);

#endif
