/*
 * queue - see the header
 */
#include "policy/quota/queue.h"

struct sl_queue_verdict sl_queue_judge(const struct sl_queue_share *has,
	const struct sl_queue_bounds *bounds, uint32_t tasks, uint64_t bytes)
{
	struct sl_queue_verdict verdict = {.outcome = SL_QUEUE_OK};
	struct sl_queue_share then = *has;
	uint64_t stays = has->living_bytes + bytes;

	if (has->living >= bounds->jobs)
		verdict.outcome = SL_QUEUE_JOBS;
	else if (has->tasks + tasks > (uint64_t)bounds->jobs * SL_QUEUE_TASKS_PER_JOB)
		verdict.outcome = SL_QUEUE_TASKS;
	else if (bounds->bytes && stays > bounds->bytes)
		verdict.outcome = SL_QUEUE_BYTES;
	if (verdict.outcome != SL_QUEUE_OK)
		return verdict;
	then.living++;
	then.living_bytes = stays;
	return sl_queue_excess(&then, bounds);
}

struct sl_queue_verdict sl_queue_excess(
	const struct sl_queue_share *has, const struct sl_queue_bounds *bounds)
{
	struct sl_queue_verdict verdict = {.outcome = SL_QUEUE_OK};

	verdict.drop_jobs =
		(uint32_t)sl_sub_sat((uint64_t)has->living + has->kept, bounds->jobs);
	if (bounds->bytes)
		verdict.drop_bytes =
			sl_sub_sat(has->living_bytes + has->kept_bytes, bounds->bytes);
	return verdict;
}
