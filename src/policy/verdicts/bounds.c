/*
 * bounds - see the header
 *
 * An unset amount allows anything: it resolves to more bytes than there can be. Fractions of bound
 * and request are rounded alike, so that a request of a quarter is within a bound of a quarter on
 * every GPU.
 */
#include "policy/verdicts/bounds.h"
#include "policy/mutant.h"

static uint64_t most(const struct sl_amount *bound, const struct sl_bounds_ask *ask)
{
	return sl_amount_resolve(bound, ask->shareable_bytes, UINT64_MAX);
}

static struct sl_bounds_verdict exceeds(
	enum sl_reason reason, uint64_t wanted, uint64_t allowed)
{
	return (struct sl_bounds_verdict){reason, wanted, allowed};
}

struct sl_bounds_verdict sl_bounds_judge(
	const struct sl_bounds *bounds, const struct sl_bounds_ask *ask)
{
	uint64_t request =
		SL_MUTANT(BOUND_REQUEST_OPEN, most(&bounds->request, ask), UINT64_MAX);
	uint64_t limit =
		SL_MUTANT(BOUND_LIMIT_OPEN, most(&bounds->limit, ask), UINT64_MAX);

	if (ask->request_bytes > request)
		return exceeds(SL_REASON_BOUND_REQUEST, ask->request_bytes, request);
	if (ask->limit_bytes > limit)
		return exceeds(SL_REASON_BOUND_LIMIT, ask->limit_bytes, limit);
	if (SL_MUTANT(BOUND_PRIORITY_OPEN, bounds->has_priority, false) &&
		ask->priority > bounds->priority)
		return exceeds(SL_REASON_BOUND_PRIORITY, (uint64_t)(int64_t)ask->priority,
			(uint64_t)(int64_t)bounds->priority);
	if (bounds->workloads && ask->workloads > bounds->workloads)
		return exceeds(
			SL_REASON_BOUND_WORKLOADS, ask->workloads, bounds->workloads);
	return exceeds(SL_REASON_NONE, 0, 0);
}
