/*
 * bind - which of the GPUs that could take a workload does
 *
 * Pure. First come the GPUs on which the request could be served now, from what is free beyond the
 * others' unclaimed requests: a burst that stands there already may never come back without a
 * resolver, and a promise that must wait for it is worth less than one that need not. Among these
 * one of two orders counts:
 *   best fit  least left over, so that whole GPUs stay free for larger workloads
 *   spread    most burst room to be expected: what nobody requested, shared with the burstable
 *             workloads already there, but no more than is free now
 * The caller spreads the workloads that can burst, unless told to pack them. Ties go to the larger
 * share, to fewer burstable neighbours, to the lowest number.
 */
#ifndef SL_POLICY_BIND_H
#define SL_POLICY_BIND_H

#include "base/sl.h"

#define SL_BIND_GPUS_MAX 32

struct sl_bind_gpu {
	uint64_t room_bytes;    /* not requested by anyone once this workload is in */
	uint32_t burstable;     /* workloads with limit > request already there */
	uint64_t free_bytes;    /* now, beyond the others' unclaimed requests */
	uint64_t request_bytes; /* of this workload, on this GPU */
};

/* gpu_count GPUs out of mask, as a mask; 0 if mask has fewer or gpu_count is 0. */
SL_MUST_CHECK uint32_t sl_bind_choose(const struct sl_bind_gpu gpu[SL_BIND_GPUS_MAX],
	uint32_t mask, uint32_t gpu_count, bool spread);

#endif
