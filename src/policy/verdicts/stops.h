/*
 * stops - which processes the resolver `priority` stops for a claim
 *
 * Pure: facts in, a choice out. Sizes are bytes on the GPU where the claim lacks memory; times are
 * spans. The caller lists the clients that could be stopped (of other workloads, above their
 * request there), and knows whether the claim would fit without those taken.
 *
 * A client may be stopped if its workload is above its limit, if it has been idle (proven) for
 * stop_idle, or if its workload's priority is lower than the claim's; with `any`, always. Order:
 * told to end already, above the limit, idle longest (in whole seconds), lower priority, larger
 * burst, younger client.
 */
#ifndef SL_POLICY_STOPS_H
#define SL_POLICY_STOPS_H

#include "base/clock.h"
#include "policy/words/reason.h"

struct sl_stop {
	uint64_t client;
	uint32_t gpu;      /* the caller's */
	uint32_t workload; /* the caller's dense number of the workload, below count */
	int32_t priority;
	uint64_t held_bytes;     /* what stopping it frees */
	uint64_t workload_bytes; /* use of its workload on this GPU */
	uint64_t request_bytes, limit_bytes;
	sl_ns idle;  /* 0: busy, or unknown */
	bool proven; /* idle is proven: all work is finished */
	bool told;   /* to end, already; whether it still must is decided anew */
	bool taken;  /* out: to be stopped */
	bool prove;  /* out: would be taken if its idleness were proven */
	/* out, if taken: STOP_OVER_LIMIT, STOP_IDLE, STOP_PRIORITY, STOP_LAST_RESORT */
	enum sl_reason reason;
	uint64_t gone_bytes; /* scratch */
};

struct sl_stops_ask {
	int32_t priority;
	sl_ns stop_idle; /* 0: idleness alone is no reason to stop */
	bool any;        /* all may be stopped alike */
	void *context;
	/* Removes the process from the copy, or puts it back. */
	void (*move)(void *context, const struct sl_stop *stop, bool gone);
	/* Whether the claim fits without the removed processes. */
	bool (*fits)(void *context);
};

/*
 * Sorts stop[0..count) and takes processes from the front until the claim fits without them. Then
 * puts back, last first, each one that need not end.
 *
 * Processes end in any order. So a process is taken only if its workload is still above its request
 * (or limit, if that is the reason) after all its other taken processes have ended. Otherwise the
 * last of them could be stopped although its workload is within its request by then.
 *
 * Returns the number taken. If all together do not suffice: 0, with no marks but `prove`. At the
 * end the caller's copy (see `move`) has all processes again. O(n^2), and a few calls of fits() per
 * taken process.
 */
SL_MUST_CHECK uint32_t sl_stops_choose(
	struct sl_stop stop[], uint32_t count, const struct sl_stops_ask *ask);

#endif
