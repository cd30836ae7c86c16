/*
 * evict - whose memory goes to the host for somebody who lacks it
 *
 * Pure: facts in, plan out. Sizes are bytes on the GPU in question, times are spans from now. The
 * caller lists the clients of other workloads that could be told to leave at all; this verdict says
 * which of them may be, when, and how much of which is enough.
 *
 * A client may be taken from
 *   suspended    part of it is on the host already, so that it cannot run, and it comes later in
 *                the order
 *   idle         it has had no work for as long as moving it takes, at least 20 ms, and that is
 *                proven; while the proof may still come, it may be taken later
 *   lower        its priority is lower than that of who lacks, and it is not in a turn of
 *                min_share; nor is its workload within its request, while who lacks is not: a
 *                priority is no claim to what others were promised. While who lacks is, too, it is
 *                only if all the others never suffice, whatever the priorities, nor is its turn
 *                over for him before
 *   after turn   its turn is over, and its priority is not higher, but for a turn of min_share
 *   burst        who lacks is within his request: what its workload has above its own, after the
 *                first part of its turn
 * and not before it is willing again, if it refused lately. Where who lacks is above its request, a
 * workload within its own keeps all it has until it was idle for its grace (and proves that): no
 * turn of it ends for a burst. In this order, those that were idle for
 * longest first; then lower priority, larger burst, the younger client. The last one gives only
 * what is still missing.
 */
#ifndef SL_POLICY_EVICT_H
#define SL_POLICY_EVICT_H

#include "base/clock.h"
#include "policy/books/pool.h"

struct sl_evict_candidate {
	void *who;         /* the caller's */
	uint64_t id;       /* of the client */
	uint32_t workload; /* the caller's dense number of its workload, below count */
	uint64_t bytes;    /* that it could be told to move */
	/* Of its workload: above its request; within it; what the pool takes of it beyond what it
	 * has there. */
	uint64_t burst_bytes, within_bytes, share_bytes;
	uint64_t chunk_bytes; /* told to move a part, it moves more by less than that */
	int32_t priority;
	bool suspended, proven;
	bool promoted; /* in a turn that no priority ends */
	/* All of its workload is, on all its GPUs: no burst ends its turn, of whatever priority. */
	bool within_request;
	/* And has an idle_grace, of which so much is left: 0 once the workload was idle for so
	 * long. */
	bool has_grace;
	sl_ns grace_left;
	/* It refused several times without a break: it is asked again, but nobody waits for it. */
	bool unwilling;
	sl_ns idle; /* 0: busy, or not known */
	sl_ns idle_enough;
	sl_ns first_part_left, turn_left, refused_left; /* 0: over */
	/* It is idle by all that was heard, and for so long the proof of it is waited for. 0: it is
	 * proven, or busy, or did not prove it in time */
	sl_ns proof_left;
	uint64_t take_bytes; /* out: 0: none */
	bool prove; /* out: whether it is idle matters, and is to be (and to stay) proven */
	uint64_t gone_bytes; /* scratch */
};

struct sl_evict_ask {
	uint64_t missing_bytes;
	/* Beyond these the last one gives up to so many, which who lacks will ask for next. */
	uint64_t ahead_bytes;
	int32_t priority;
	bool entitled, promoted;
	/* A burst demand leaves others what they have not claimed, but for what may be lent. */
	bool leaves_requests;
	bool spares; /* scratch */
	/* One that is above its request comes back before who asks, and can be taken for it later:
	 * who is within his own and works is not taken meanwhile. */
	bool burst_comes;
	uint64_t unclaimed_bytes, lend_bytes;
	uint32_t gpu;
	/* That it may take of the pool at all; a burst demand, whatever whole chunks are moved. */
	uint64_t pool_bytes;
	struct sl_pool pool; /* I2 holds for it, unless entitled */
};

struct sl_evict_plan {
	bool enough;    /* take_bytes are set, and give what is missing */
	bool ever;      /* all together would, at some time */
	bool pool_full; /* but for the pool they would */
	/* The pool has that much, but the bound of a workload there, or whole chunks, leave too
	 * little of it. */
	bool bound;
	uint64_t
		gives_bytes; /* so much they would, at some time, with the pool and its bounds */
	sl_ns next; /* when one more may be taken; SL_NS_NEVER: time alone changes nothing */
};

/* Sorts candidate[0..count). No take_bytes unless enough. O(n log n). */
SL_MUST_CHECK struct sl_evict_plan sl_evict_choose(struct sl_evict_candidate candidate[],
	uint32_t count, const struct sl_evict_ask *ask);

#endif
