/*
 * usage - how much of a GPU is allocated to a workload, and how much of that is used
 *
 * Pure arithmetic on one GPU at one moment; no clock, no I/O. Parts of a GPU are millionths of what
 * it shares.
 *
 * Memory on the GPU is allocated to the workload that has it there. An unclaimed request is
 * allocated to its own workload, but lent parts belong to the borrower while they are lent, so
 * nothing counts twice. Thus, for any figures at all:
 *
 *   allocated = here x min(1, shareable / H) + unclaimed x min(1, max(0, shareable - H) / U)
 *   used      = min(allocated, utilisation x part)
 *
 * with here: resident + hidden, unclaimed: max(0, request - here), and H, U: their sums over all
 * workloads there. The sum of allocated over workloads never exceeds the GPU, and used never
 * exceeds allocated.
 */
#ifndef SL_POLICY_FIGURES_USAGE_H
#define SL_POLICY_FIGURES_USAGE_H

#include "base/sl.h"

#define SL_USAGE_WHOLE 1000000u

/* With only the first field set, a GPU without workloads. */
struct sl_usage_gpu {
	uint64_t shareable_bytes;
	uint64_t here_bytes, unclaimed_bytes; /* H, U */
};

/* Adds one workload; add all of them before asking about any. */
void sl_usage_add(struct sl_usage_gpu *gpu, uint64_t request_bytes, uint64_t here_bytes);
/* Millionths of the GPU, rounded down. */
uint32_t sl_usage_allocated(
	const struct sl_usage_gpu *gpu, uint64_t request_bytes, uint64_t here_bytes);
/* Millionths. utilisation_pm: of the GPU; part_ppm: the workload's part of the work on it. */
uint32_t sl_usage_used(
	uint32_t allocated_ppm, uint32_t utilisation_pm, uint32_t part_ppm);

/* Whether it has more than its request, from one time step to the next; zeroed before the first. */
struct sl_usage_bursting {
	uint64_t request_bytes, claim_bytes;
};
/* here_bytes: resident + hidden; memory on the host is no burst. A request that drops to 0 belongs
 * to a workload that is parked: its last request still counts, because what is above 0 is on its
 * way out. In the step in which a request shrinks, the larger value counts. */
bool sl_usage_bursts(
	struct sl_usage_bursting *so_far, uint64_t request_bytes, uint64_t here_bytes);

/* What one look found about one workload on a GPU. */
struct sl_usage_look {
	uint64_t here_bytes;
	uint32_t clients, idle_clients;
	uint64_t idle_ms; /* the shortest of the idle clients */
	/* Its part of the work since the last look; SL_USAGE_UNTOLD: the driver did not say */
	uint32_t work_pm;
};
#define SL_USAGE_UNTOLD UINT32_MAX

enum sl_usage_work { SL_USAGE_IDLE = 0, SL_USAGE_WORKED, SL_USAGE_UNKNOWN };

/* Did the workload have work between two looks, span_ms apart, on a GPU that worked in that time?
 * now: NULL if the workload was gone by then. Its last look then decides; UNKNOWN if that look does
 * not tell. told: the driver says which process worked on the GPU. Without it, every workload with
 * memory there in either look may have worked, unless all its clients were idle for that long. */
enum sl_usage_work sl_usage_work(const struct sl_usage_look *before,
	const struct sl_usage_look *now, bool told, uint64_t span_ms);

#endif
