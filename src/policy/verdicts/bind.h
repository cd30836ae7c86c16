/*
 * bind - which of the GPUs that could take a workload does
 *
 * Pure. A workload that cannot burst (limit == request) goes where it leaves the least over
 * (best fit), so that whole GPUs stay free for larger ones. One that can goes where most burst
 * room is to be expected: what nobody requested, shared with the burstable ones already there.
 * Ties go to the lowest number.
 */
#ifndef SL_POLICY_BIND_H
#define SL_POLICY_BIND_H

#include "base/sl.h"

#define SL_BIND_GPUS_MAX 32

struct sl_bind_gpu {
	uint64_t room_bytes; /* not requested by anyone once this workload is in */
	uint32_t burstable;  /* workloads with limit > request already there */
};

/* gpu_count GPUs out of mask, as a mask; 0 if mask has fewer or gpu_count is 0. */
SL_MUST_CHECK uint32_t sl_bind_choose(const struct sl_bind_gpu gpu[SL_BIND_GPUS_MAX],
	uint32_t mask, uint32_t gpu_count, bool can_burst);

#endif
