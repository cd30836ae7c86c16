/*
 * stops - which processes the resolver `priority` stops for a claim
 *
 * Pure: facts in, a choice out. Sizes are bytes on the GPU that the claim lacks memory on, times
 * are spans. The caller lists the clients that could be stopped at all (of other workloads, above
 * their request there), and knows whether the claim would fit without those that are taken.
 *
 * A client may be stopped if its workload is above its limit, or it has been idle (proven) for
 * stop_idle, or its workload's priority is lower than the claim's; or whoever it is (`any`). Order
 * of going first: those that were told to end before, above the limit, idle longest (in whole
 * seconds), lower priority, larger burst, the younger client.
 */
#ifndef SL_POLICY_STOPS_H
#define SL_POLICY_STOPS_H

#include "base/clock.h"
#include "policy/words/reason.h"

struct sl_stop {
	uint64_t client;
	uint32_t gpu;      /* the caller's */
	uint32_t workload; /* the caller's dense number of its workload, below count */
	int32_t priority;
	uint64_t held_bytes;     /* what stopping it frees */
	uint64_t workload_bytes; /* use of its workload on this GPU */
	uint64_t request_bytes, limit_bytes;
	sl_ns idle;  /* 0: busy, or not known */
	bool proven; /* idle is known to be true: all work is finished */
	bool told;   /* to end, already: whether it still has to is asked again */
	bool taken;  /* out: is to be stopped */
	bool prove;  /* out: would be, if its idleness were proven */
	enum sl_reason
		reason; /* out, if taken: STOP_OVER_LIMIT, STOP_IDLE, STOP_PRIORITY */
	uint64_t gone_bytes; /* scratch */
};

struct sl_stops_ask {
	int32_t priority;
	sl_ns stop_idle; /* 0: idleness alone stops nobody */
	bool any;        /* all may be stopped alike */
	void *context;
	/* The process is gone, or is there again. */
	void (*move)(void *context, const struct sl_stop *stop, bool gone);
	/* The claim would fit without those that are gone. */
	bool (*fits)(void *context);
};

/*
 * Sorts stop[0..count) and marks the fewest from the front without whom the claim fits; then takes
 * back each that proves unnecessary, last first. Processes end in any order, so each of those taken
 * of a workload is one that would still be above its request (or limit, if that is why) with all
 * the others gone: nobody is stopped of a workload that is within it by then.
 * Returns the number taken; 0 and no marks but `prove` if all together do not suffice. In the end
 * nobody is gone. O(n log n), and a few calls of fits() for each one that is taken.
 */
SL_MUST_CHECK uint32_t sl_stops_choose(
	struct sl_stop stop[], uint32_t count, const struct sl_stops_ask *ask);

#endif
