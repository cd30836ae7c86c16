/*
 * bounds - what an administrator allows one user: largest request, limit, priority, and number
 *
 * Pure: facts in, verdict out. The daemon sends the user's bounds with each WORKLOAD_ADD and
 * WORKLOAD_SET: those of the user, else the most generous of the user's groups, else the default.
 * Sizes are bytes per GPU; fractions are parts of what a GPU can
 * share.
 */
#ifndef SL_POLICY_BOUNDS_H
#define SL_POLICY_BOUNDS_H

#include "base/amount.h"
#include "policy/words/reason.h"

/* Zeroed: no bounds. */
struct sl_bounds {
	struct sl_amount request, limit; /* SL_AMOUNT_UNSET: any */
	bool has_priority;
	int32_t priority;   /* the highest; with has_priority */
	uint32_t workloads; /* the most at a time; 0: any number */
};

struct sl_bounds_ask {
	uint64_t request_bytes, limit_bytes; /* resolved; 0 is never checked */
	uint64_t shareable_bytes;            /* of the GPU they were resolved on */
	int32_t priority;
	uint32_t workloads; /* of the same user, with this one */
};

struct sl_bounds_verdict {
	enum sl_reason reason;    /* NONE: allowed */
	uint64_t wanted, allowed; /* bytes, counts, or priorities as int64_t */
};

/* Reports the first exceeded bound, in the order request, limit, priority, workloads. */
struct sl_bounds_verdict sl_bounds_judge(
	const struct sl_bounds *bounds, const struct sl_bounds_ask *ask);

#endif
