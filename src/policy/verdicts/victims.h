/*
 * victims - which processes the resolver `priority` stops for a demand
 *
 * Pure: facts in, plan out. Sizes are bytes on the demand's GPU, times are spans. The caller lists
 * the clients that could be stopped at all (of other workloads, above their request there); this
 * verdict says which of them may be, for this demand, and which few of those suffice.
 *
 * A client may be stopped if its workload is above its limit, or it has been idle (proven) for
 * stop_idle, or its workload's priority is lower than the demand's. Order of going first: above the
 * limit, then idle longest (in whole
 * seconds), then lower priority, then larger burst, then the younger client.
 */
#ifndef SL_POLICY_VICTIMS_H
#define SL_POLICY_VICTIMS_H

#include "base/clock.h"
#include "policy/reason.h"

struct sl_victim {
	uint64_t client;
	uint32_t workload; /* the caller's dense number of its workload, below count */
	int32_t priority;
	uint64_t held_bytes;     /* what stopping it frees */
	uint64_t workload_bytes; /* use of its workload on this GPU */
	uint64_t request_bytes, limit_bytes;
	sl_ns idle;  /* 0: busy, or not known */
	bool lends;  /* the demand may stand on what its workload leaves of its request */
	bool proven; /* idle is known to be true: all work is finished */
	bool taken;  /* out: is to be stopped */
	bool prove;  /* out: would be, if its idleness were proven */
	enum sl_reason
		reason; /* out, if taken: STOP_OVER_LIMIT, STOP_IDLE, STOP_PRIORITY */
	uint64_t gone_bytes; /* scratch */
};

struct sl_victims_ask {
	uint64_t
		missing_bytes; /* of the demand: beyond what is free, dying or being stopped */
	bool entitled;         /* others' unclaimed requests are no obstacle to it */
	int32_t priority;
	sl_ns stop_idle; /* 0: idleness alone stops nobody */
};

/*
 * Sorts victim[0..count) and marks the fewest from the front whose going gives missing_bytes; then
 * takes back each that proves unnecessary, last first. Processes end in any order, so each of those
 * taken of a workload is one that would still be above its request (or limit, if that is
 * why) with all the others gone: nobody is stopped of a workload that is within it by then. For a
 * burst demand what falls within the request counts for nothing (it is kept for its owner), unless
 * the demand may stand on it.
 * Returns the number taken; 0 and no marks but `prove` if all together do not suffice.
 * O(n log n), and O(n) more for each one that is taken back.
 */
SL_MUST_CHECK uint32_t sl_victims_choose(
	struct sl_victim victim[], uint32_t count, const struct sl_victims_ask *ask);

#endif
