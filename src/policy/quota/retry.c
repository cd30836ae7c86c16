/*
 * retry - see the header
 */
#include "policy/quota/retry.h"

static sl_ns pause_after(uint32_t failures)
{
	sl_ns pause = SL_RETRY_PAUSE_FIRST;

	while (failures-- && pause < SL_RETRY_PAUSE_MOST)
		pause *= 2;
	return sl_min_u64(pause, SL_RETRY_PAUSE_MOST);
}

struct sl_retry_verdict sl_retry_judge(const struct sl_retry_facts *facts)
{
	struct sl_retry_verdict again = {.outcome = SL_RETRY_AGAIN};

	if (facts->asked)
		return (struct sl_retry_verdict){.outcome = SL_RETRY_STOPPED};
	if (facts->stopped || facts->ending == SL_RETRY_NEVER_WENT)
		return again;
	if (facts->ending == SL_RETRY_EXITED && facts->ok)
		return (struct sl_retry_verdict){.outcome = SL_RETRY_DONE};
	/* A task that may be stopped at any time can start over. */
	if (facts->ending == SL_RETRY_REBOOT && facts->preemptible)
		return again;
	if (facts->failures >= facts->retries)
		return (struct sl_retry_verdict){
			.outcome = SL_RETRY_FAILED, .counts = true};
	again.counts = true;
	again.pause = facts->ending == SL_RETRY_REBOOT ? 0 : pause_after(facts->failures);
	return again;
}

bool sl_retry_is_hopeless(uint32_t tasks, uint32_t least, uint32_t failed)
{
	return failed && tasks - failed < (least ? least : tasks);
}
