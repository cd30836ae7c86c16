/*
 * usage - what of a GPU counts as allocated to a workload, and what of that as used
 *
 * Pure arithmetic on one GPU at one moment; no clock, no I/O. Parts of a GPU are millionths of what
 * it shares.
 *
 * Memory that is on the GPU is allocated to whoever has it there. A request that nobody stands on
 * is allocated to whoever made it; what of it is lent is the borrower's as long as it is lent, so
 * nothing is counted twice. Thus, for any figures at all:
 *
 *   allocated = here x min(1, shareable / H) + unclaimed x min(1, max(0, shareable - H) / U)
 *   used      = min(allocated, utilisation x part)
 *
 * with here: resident + hidden, unclaimed: max(0, request - here), and H, U: the sums of the two
 * over all workloads there. The sum of allocated over workloads never exceeds the GPU, and used
 * never exceeds allocated.
 */
#ifndef SL_POLICY_FIGURES_USAGE_H
#define SL_POLICY_FIGURES_USAGE_H

#include "base/sl.h"

#define SL_USAGE_WHOLE 1000000u

/* Zeroed but for the first is without workloads. */
struct sl_usage_gpu {
	uint64_t shareable_bytes;
	uint64_t here_bytes, unclaimed_bytes; /* H, U */
};

/* One workload of it; to be done for all of them before any is asked for. */
void sl_usage_add(struct sl_usage_gpu *gpu, uint64_t request_bytes, uint64_t here_bytes);
/* Millionths of the GPU, rounded down. */
uint32_t sl_usage_allocated(
	const struct sl_usage_gpu *gpu, uint64_t request_bytes, uint64_t here_bytes);
/* Millionths. utilisation_pm: of the GPU; part_ppm: of the work on it, so much was the
 * workload's. */
uint32_t sl_usage_used(
	uint32_t allocated_ppm, uint32_t utilisation_pm, uint32_t part_ppm);

/* Whether it has more than its request, step of time after step; zeroed before the first. */
struct sl_usage_bursting {
	uint64_t request_bytes, claim_bytes;
};
/* here_bytes: resident + hidden: what is on the host is no burst. A request that was given up (0,
 * where there was one) is one of a parked workload: what it had of the GPU then is on its way, and
 * no burst either. In a step in which it became less it was both. */
bool sl_usage_bursts(
	struct sl_usage_bursting *so_far, uint64_t request_bytes, uint64_t here_bytes);

/* What a look found of one workload on a GPU. */
struct sl_usage_look {
	uint64_t here_bytes;
	uint32_t clients, idle_clients;
	uint64_t idle_ms; /* of those that are idle, the shortest */
	/* Of what was done since the look before; SL_USAGE_UNTOLD: the driver did not say */
	uint32_t work_pm;
};
#define SL_USAGE_UNTOLD UINT32_MAX

enum sl_usage_work { SL_USAGE_IDLE = 0, SL_USAGE_WORKED, SL_USAGE_UNKNOWN };

/* Had it work between two looks that are span_ms apart, on a GPU that did work in that time? now:
 * NULL if it was gone by then: then what it said last counts, and who said nothing yet is UNKNOWN.
 * told: the driver says of the GPU who did what; else whoever had memory there in either of the
 * looks may have, but for those whose processes were all idle for that long. */
enum sl_usage_work sl_usage_work(const struct sl_usage_look *before,
	const struct sl_usage_look *now, bool told, uint64_t span_ms);

#endif
