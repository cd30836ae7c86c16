/*
 * bind - see the header
 *
 * The GPUs of a workload are chosen one by one, each the best of the rest. Scores do not depend on
 * each other, so the k best one by one are the k best together.
 */
#include "policy/verdicts/bind.h"
#include "policy/mutant.h"

static bool serves(const struct sl_bind_gpu *gpu)
{
	return SL_MUTANT(BIND_BEHIND_BURSTS, gpu->free_bytes >= gpu->request_bytes, true);
}

/* What each burstable workload would have of the room if all used it. */
static uint64_t share(const struct sl_bind_gpu *gpu)
{
	return gpu->room_bytes / (gpu->burstable + 1ull);
}

static uint64_t expected(const struct sl_bind_gpu *gpu)
{
	uint64_t now = sl_sub_sat(gpu->free_bytes, gpu->request_bytes);

	return sl_min_u64(share(gpu), SL_MUTANT(BIND_FREE_UNSEEN, now, UINT64_MAX));
}

bool sl_bind_is_better(
	const struct sl_bind_gpu *a, const struct sl_bind_gpu *b, bool spread)
{
	if (serves(a) != serves(b))
		return serves(a);
	if (!spread)
		return SL_MUTANT(BIND_WORST_FIT,
			a->room_bytes<b->room_bytes, a->room_bytes> b->room_bytes);
	if (expected(a) != expected(b))
		return SL_MUTANT(BIND_BURST_CROWDS, expected(a) > expected(b),
			expected(a) < expected(b));
	if (share(a) != share(b))
		return share(a) > share(b);
	return a->burstable < b->burstable;
}

uint32_t sl_bind_choose(const struct sl_bind_gpu gpu[SL_BIND_GPUS_MAX], uint32_t mask,
	uint32_t gpu_count, bool spread)
{
	uint32_t chosen = 0;

	if ((uint32_t)__builtin_popcount(mask) < gpu_count)
		return 0;
	for (uint32_t n = 0; n < gpu_count; n++) {
		uint32_t left = mask & ~chosen;
		uint32_t best = (uint32_t)__builtin_ctz(left);

		for (left &= left - 1; left; left &= left - 1) {
			uint32_t i = (uint32_t)__builtin_ctz(left);

			if (sl_bind_is_better(&gpu[i], &gpu[best], spread))
				best = i;
		}
		chosen |= 1u << best;
	}
	return chosen;
}
