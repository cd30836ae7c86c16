/*
 * bind - see the header
 *
 * GPUs of one workload are chosen one by one, each the best of the rest: the scores do not
 * depend on each other, so the k best one by one are the k best together.
 */
#include "policy/verdicts/bind.h"
#include "policy/mutant.h"

static bool is_better(
	const struct sl_bind_gpu *a, const struct sl_bind_gpu *b, bool can_burst)
{
	uint64_t a_share = a->room_bytes / (a->burstable + 1ull);
	uint64_t b_share = b->room_bytes / (b->burstable + 1ull);

	if (!can_burst)
		return SL_MUTANT(BIND_WORST_FIT,
			a->room_bytes<b->room_bytes, a->room_bytes> b->room_bytes);
	if (a_share != b_share)
		return SL_MUTANT(BIND_BURST_CROWDS, a_share > b_share, a_share < b_share);
	return a->burstable < b->burstable;
}

uint32_t sl_bind_choose(const struct sl_bind_gpu gpu[SL_BIND_GPUS_MAX], uint32_t mask,
	uint32_t gpu_count, bool can_burst)
{
	uint32_t chosen = 0;

	if ((uint32_t)__builtin_popcount(mask) < gpu_count)
		return 0;
	for (uint32_t n = 0; n < gpu_count; n++) {
		uint32_t left = mask & ~chosen;
		uint32_t best = (uint32_t)__builtin_ctz(left);

		for (left &= left - 1; left; left &= left - 1) {
			uint32_t i = (uint32_t)__builtin_ctz(left);

			if (is_better(&gpu[i], &gpu[best], can_burst))
				best = i;
		}
		chosen |= 1u << best;
	}
	return chosen;
}
