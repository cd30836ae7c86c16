/*
 * queue - may a user have one more job in the queue
 *
 * Pure: facts in, verdict out. Jobs that have ended are kept for their output, and are the first to
 * go: the oldest of the user's own make room for what he submits now. Sizes are bytes on the disk.
 */
#ifndef SL_POLICY_QUEUE_H
#define SL_POLICY_QUEUE_H

#include "base/sl.h"

/* Tasks that a user may have for each job that he may have. */
#define SL_QUEUE_TASKS_PER_JOB 10

/* What a user has: living has not ended, kept has. tasks: of the living. */
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
	/* OK: of those that are kept, so many jobs and bytes have to go once the new one is
	 * there. */
	uint32_t drop_jobs;
	uint64_t drop_bytes;
};

/* Of a new job with so many tasks and bytes. */
struct sl_queue_verdict sl_queue_judge(const struct sl_queue_share *has,
	const struct sl_queue_bounds *bounds, uint32_t tasks, uint64_t bytes);
/* What is above the bounds now: the oldest that are kept are removed until so many jobs and bytes
 * are gone, or none is left. */
struct sl_queue_verdict sl_queue_excess(
	const struct sl_queue_share *has, const struct sl_queue_bounds *bounds);

#endif
