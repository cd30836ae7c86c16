/*
 * queue - may a user have one more job in the queue
 *
 * Pure: facts in, verdict out. Ended jobs are kept for their output and go first: the user's own
 * oldest ones make room for a new job. Sizes are bytes on disk.
 */
#ifndef SL_POLICY_QUEUE_H
#define SL_POLICY_QUEUE_H

#include "base/sl.h"

/* Tasks that a user may have per allowed job. */
#define SL_QUEUE_TASKS_PER_JOB 10

/* What a user has: living jobs have not ended, kept ones have. tasks: of living jobs. */
struct sl_queue_share {
	uint32_t living, kept;
	uint64_t tasks, living_bytes, kept_bytes;
};

/* jobs: living and kept; bytes 0: no bound. */
struct sl_queue_bounds {
	uint32_t jobs;
	uint64_t bytes;
};

enum sl_queue_outcome { SL_QUEUE_OK = 0, SL_QUEUE_JOBS, SL_QUEUE_TASKS, SL_QUEUE_BYTES };

struct sl_queue_verdict {
	enum sl_queue_outcome outcome;
	/* OK: this many kept jobs and bytes must go once the new job exists. */
	uint32_t drop_jobs;
	uint64_t drop_bytes;
};

/* For a new job with this many tasks and bytes. */
struct sl_queue_verdict sl_queue_judge(const struct sl_queue_share *has,
	const struct sl_queue_bounds *bounds, uint32_t tasks, uint64_t bytes);
/* What exceeds the bounds now: the oldest kept jobs are removed until this many jobs and bytes are
 * gone, or none is kept. */
struct sl_queue_verdict sl_queue_excess(
	const struct sl_queue_share *has, const struct sl_queue_bounds *bounds);

#endif
