/*
 * bind - which of the possible GPUs a workload gets
 *
 * Pure. First come GPUs whose free bytes, beyond the others' unclaimed requests, cover the request
 * now: without a resolver, a burst that is there already may never leave. Among these one of two
 * orders decides:
 *   best fit  least left over, so that whole GPUs stay free for larger workloads
 *   spread    most burst room expected: unrequested memory, shared with the burstable workloads
 *             there, but no more than is free now
 * The caller spreads burstable workloads, unless told to pack them. Ties go to the larger share,
 * then to fewer burstable neighbours, then to the lowest number.
 */
#ifndef SL_POLICY_BIND_H
#define SL_POLICY_BIND_H

#include "base/sl.h"

#define SL_BIND_GPUS_MAX 32

struct sl_bind_gpu {
	uint64_t room_bytes;    /* unrequested once this workload is in */
	uint32_t burstable;     /* workloads with limit > request there */
	uint64_t free_bytes;    /* now, beyond the others' unclaimed requests */
	uint64_t request_bytes; /* of this workload on this GPU */
};

/* gpu_count GPUs out of mask, as a mask; 0 if mask has fewer or gpu_count is 0. */
SL_MUST_CHECK uint32_t sl_bind_choose(const struct sl_bind_gpu gpu[SL_BIND_GPUS_MAX],
	uint32_t mask, uint32_t gpu_count, bool spread);

/* Strictly: what chooses between two GPUs. */
bool sl_bind_is_better(
	const struct sl_bind_gpu *a, const struct sl_bind_gpu *b, bool spread);

#endif
