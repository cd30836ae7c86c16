/*
 * evict - whose memory goes to the host for whom
 *
 * Pure: facts in, plan out. Sizes are bytes on the GPU in question, times are as of `now`.
 */
#ifndef SL_POLICY_EVICT_H
#define SL_POLICY_EVICT_H

#include "base/clock.h"

struct sl_evict_candidate {
	void *who;
};

#endif
