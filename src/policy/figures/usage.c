/* usage - see the header */
#include "policy/figures/usage.h"

/* 1 PiB: products of three fit into 128 bits, and sums of any number that a node has into 64. */
#define BYTES_MAX (1ull << 50)

static uint64_t bounded(uint64_t bytes)
{
	return sl_min_u64(bytes, BYTES_MAX);
}

/* Saturates; what is divided by the sum then only gets smaller. */
static uint64_t plus(uint64_t sum, uint64_t bytes)
{
	return sum + sl_min_u64(bytes, UINT64_MAX - sum);
}

static uint64_t unclaimed_of(uint64_t request_bytes, uint64_t here_bytes)
{
	return sl_sub_sat(bounded(request_bytes), bounded(here_bytes));
}

void sl_usage_add(struct sl_usage_gpu *gpu, uint64_t request_bytes, uint64_t here_bytes)
{
	gpu->here_bytes = plus(gpu->here_bytes, bounded(here_bytes));
	gpu->unclaimed_bytes =
		plus(gpu->unclaimed_bytes, unclaimed_of(request_bytes, here_bytes));
}

uint32_t sl_usage_allocated(
	const struct sl_usage_gpu *gpu, uint64_t request_bytes, uint64_t here_bytes)
{
	uint64_t shareable = bounded(gpu->shareable_bytes);
	uint64_t room = sl_sub_sat(shareable, gpu->here_bytes);
	uint64_t unclaimed = unclaimed_of(request_bytes, here_bytes);
	unsigned __int128 here, kept;

	if (!shareable)
		return 0;
	here = (unsigned __int128)bounded(here_bytes) * SL_USAGE_WHOLE /
	       sl_max_u64(shareable, gpu->here_bytes);
	kept = (unsigned __int128)unclaimed * SL_USAGE_WHOLE;
	if (gpu->unclaimed_bytes > room)
		kept = kept * room / gpu->unclaimed_bytes;
	return (uint32_t)(here + kept / shareable);
}

uint32_t sl_usage_used(uint32_t allocated_ppm, uint32_t utilisation_pm, uint32_t part_ppm)
{
	uint64_t used = sl_min_u64(utilisation_pm, 1000) *
			sl_min_u64(part_ppm, SL_USAGE_WHOLE) / 1000;

	return (uint32_t)sl_min_u64(allocated_ppm, used);
}

bool sl_usage_bursts(
	struct sl_usage_bursting *so_far, uint64_t request_bytes, uint64_t here_bytes)
{
	if (request_bytes)
		so_far->claim_bytes = sl_max_u64(request_bytes, so_far->request_bytes);
	so_far->request_bytes = request_bytes;
	return here_bytes > so_far->claim_bytes;
}

enum sl_usage_work sl_usage_work(const struct sl_usage_look *before,
	const struct sl_usage_look *now, bool told, uint64_t span_ms)
{
	/* Its last process may be gone before the workload is. */
	const struct sl_usage_look *said = now && now->clients ? now : before;
	bool worked;

	if (told && said->work_pm == SL_USAGE_UNTOLD)
		return now ? SL_USAGE_IDLE : SL_USAGE_UNKNOWN;
	if (told)
		return said->work_pm ? SL_USAGE_WORKED : SL_USAGE_IDLE;
	if (!said->clients)
		return now ? SL_USAGE_IDLE : SL_USAGE_UNKNOWN;
	worked = said->idle_clients < said->clients || said->idle_ms < span_ms;
	return worked && (before->here_bytes || (now && now->here_bytes))
		       ? SL_USAGE_WORKED
		       : SL_USAGE_IDLE;
}
