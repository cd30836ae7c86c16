/*
 * admit - see the header
 *
 * The allowed GPUs go through one sieve after the other (limit, size, health, room, time,
 * contexts). The first sieve that leaves too few names the reason. So users learn that a request
 * can never fit before they learn of neighbours in the way.
 */
#include "policy/verdicts/admit.h"
#include "policy/mutant.h"

struct sl_admit_offer sl_admit_resolve(
	const struct sl_admit_ask *ask, uint64_t shareable_bytes)
{
	bool has_request = ask->request.kind != SL_AMOUNT_UNSET;
	bool has_limit = ask->limit.kind != SL_AMOUNT_UNSET;
	uint64_t request = sl_amount_resolve(&ask->request, shareable_bytes, 0);
	uint64_t limit = sl_amount_resolve(&ask->limit, shareable_bytes, shareable_bytes);

	if (has_request && !has_limit)
		limit = SL_MUTANT(MISSING_LIMIT_IS_ALL, request, shareable_bytes);
	limit = SL_MUTANT(LIMIT_UNCLAMPED, sl_min_u64(limit, shareable_bytes), limit);
	if (has_limit && !has_request)
		request = SL_MUTANT(MISSING_REQUEST_IS_NONE, limit, 0);
	return (struct sl_admit_offer){.request_bytes = request, .limit_bytes = limit};
}

/* The limit before it is cut to the GPU: "--request 0.5 --limit 1GiB" is a contradiction on a large
 * GPU only, and "--request 100GiB --limit 200GiB" on none. */
static bool limit_below_request(const struct sl_admit_ask *ask, uint64_t shareable_bytes,
	const struct sl_admit_offer *offer)
{
	if (ask->limit.kind == SL_AMOUNT_UNSET || ask->request.kind == SL_AMOUNT_UNSET)
		return false;
	return sl_amount_resolve(&ask->limit, shareable_bytes, 0) < offer->request_bytes;
}

/* The k-th largest of the values of the GPUs in mask; 0 if there are fewer. */
static uint64_t kth_largest(
	const uint64_t value[], uint32_t mask, uint32_t k, uint32_t *at)
{
	uint32_t best = 0;

	for (; k > 0; k--) {
		bool found = false;

		for (uint32_t gpu = 0; gpu < SL_ADMIT_GPUS_MAX; gpu++) {
			if ((mask >> gpu & 1) && (!found || value[gpu] > value[best])) {
				best = gpu;
				found = true;
			}
		}
		if (!found)
			return 0;
		mask &= ~(1u << best);
	}
	*at = best;
	return value[best];
}

/* True if enough GPUs are left in `passed`; else fills in the refusal, with the k-th best value of
 * the remaining GPUs. */
static bool enough(struct sl_admit_plan *plan, uint32_t passed, uint32_t count,
	enum sl_reason reason, const uint64_t value[])
{
	uint32_t at = 0;

	if ((uint32_t)__builtin_popcount(passed) >= count) {
		plan->mask = passed;
		return true;
	}
	plan->reason = reason;
	plan->available_bytes = kth_largest(value, plan->mask, count, &at);
	plan->wanted_bytes = plan->offer[at].request_bytes;
	plan->gpu = at;
	plan->mask = 0;
	return false;
}

/* Its whole request has no room, and parked programs have all that it lacks: then it gets the
 * rest. */
static bool takes_less(const struct sl_admit_ask *ask, const struct sl_admit_gpu *gpu,
	uint64_t request_bytes, uint64_t room_bytes)
{
	/* A missing request equals the limit. */
	uint32_t kind = ask->request.kind != SL_AMOUNT_UNSET ? ask->request.kind
							     : ask->limit.kind;

	if (!ask->may_take_less || kind != SL_AMOUNT_FRACTION || !room_bytes)
		return false;
	return SL_MUTANT(TAKES_LESS_OF_ANYBODY,
		sl_sub_sat(request_bytes, room_bytes) <= gpu->parked_bytes, true);
}

void sl_admit_judge(const struct sl_admit_ask *ask,
	const struct sl_admit_gpu gpu[SL_ADMIT_GPUS_MAX], struct sl_admit_plan *plan)
{
	uint64_t limit[SL_ADMIT_GPUS_MAX], size[SL_ADMIT_GPUS_MAX],
		room[SL_ADMIT_GPUS_MAX], reserve[SL_ADMIT_GPUS_MAX];
	uint32_t allowed = 0, sane = 0, sized = 0, healthy = 0, roomy = 0, lesser = 0;
	uint32_t uncrowded = 0, timely = 0;
	uint32_t count = ask->gpu_count ? ask->gpu_count : 1;

	*plan = (struct sl_admit_plan){.reason = SL_REASON_NONE};
	for (uint32_t i = 0; i < SL_ADMIT_GPUS_MAX; i++) {
		const struct sl_admit_gpu *g = &gpu[i];
		struct sl_admit_offer *offer = &plan->offer[i];
		uint32_t bit = 1u << i;

		limit[i] = size[i] = room[i] = reserve[i] = 0;
		if (!g->allowed)
			continue;
		*offer = sl_admit_resolve(ask, g->shareable_bytes);
		limit[i] = sl_amount_resolve(&ask->limit, g->shareable_bytes, 0);
		size[i] = g->shareable_bytes;
		room[i] = sl_sub_sat(g->shareable_bytes, g->claims_bytes);
		reserve[i] = g->reserve_bytes;
		allowed |= bit;
		uncrowded |= g->crowded ? 0 : bit;
		timely |= SL_MUTANT(ADMIT_COMPUTE_FULL, g->compute_full, false) ? 0 : bit;
		sane |= limit_below_request(ask, g->shareable_bytes, offer) ? 0 : bit;
		sized |= offer->request_bytes <= size[i] ? bit : 0;
		healthy |= SL_MUTANT(ADMIT_DEGRADED, g->degraded, false) ? 0 : bit;
		roomy |= SL_MUTANT(ADMIT_OVERBOOKS, offer->request_bytes <= room[i], true)
				 ? bit
				 : 0;
		lesser |= takes_less(ask, g, offer->request_bytes, room[i]) ? bit : 0;
	}
	if ((uint32_t)__builtin_popcount(allowed) < count) {
		plan->reason = SL_REASON_TOO_FEW_GPUS;
		plan->wanted_bytes = count;
		plan->available_bytes = (uint32_t)__builtin_popcount(allowed);
		return;
	}
	plan->mask = allowed;
	sane &= allowed;
	sized &= sane;
	healthy &= sized;
	roomy &= healthy;
	/* Only if too few have room for all of it. */
	lesser &= healthy & ~roomy;
	if ((uint32_t)__builtin_popcount(roomy) < count &&
		(uint32_t)__builtin_popcount(roomy | lesser) >= count) {
		for (uint32_t left = lesser; left; left &= left - 1) {
			uint32_t i = (uint32_t)__builtin_ctz(left);

			plan->offer[i].request_bytes = room[i];
		}
		roomy |= lesser;
	}
	if (enough(plan, sane, count, SL_REASON_LIMIT_BELOW_REQUEST, limit) &&
		enough(plan, sized, count, SL_REASON_REQUEST_TOO_LARGE, size) &&
		enough(plan, healthy, count, SL_REASON_DEGRADED, room) &&
		enough(plan, roomy, count, SL_REASON_REQUESTS_TAKEN, room) &&
		enough(plan, roomy & timely, count, SL_REASON_COMPUTE_TAKEN, room) &&
		!enough(plan, roomy & timely & uncrowded, count, SL_REASON_CONTEXTS_FULL,
			reserve))
		plan->wanted_bytes = gpu[plan->gpu].context_bytes;
}
