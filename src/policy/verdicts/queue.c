/*
 * queue - see the header
 */
#include "policy/verdicts/queue.h"

struct sl_queue_verdict sl_queue_judge(const struct sl_queue_share *has,
	const struct sl_queue_bounds *bounds, uint32_t tasks, uint64_t bytes)
{
	struct sl_queue_verdict verdict = {.outcome = SL_QUEUE_OK};
	uint64_t jobs = (uint64_t)has->living + has->kept + 1;
	uint64_t stays = has->living_bytes + bytes;

	if (has->living >= bounds->jobs)
		verdict.outcome = SL_QUEUE_JOBS;
	else if (has->tasks + tasks > (uint64_t)bounds->jobs * SL_QUEUE_TASKS_PER_JOB)
		verdict.outcome = SL_QUEUE_TASKS;
	else if (bounds->bytes && stays > bounds->bytes)
		verdict.outcome = SL_QUEUE_BYTES;
	if (verdict.outcome != SL_QUEUE_OK)
		return verdict;
	verdict.drop_jobs = (uint32_t)sl_sub_sat(jobs, bounds->jobs);
	if (bounds->bytes)
		verdict.drop_bytes = sl_sub_sat(stays + has->kept_bytes, bounds->bytes);
	return verdict;
}
