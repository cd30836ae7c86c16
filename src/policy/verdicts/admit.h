/*
 * admit - may a workload's request be promised, and on which GPUs
 *
 * Pure: facts in, plan out. Sizes are bytes per GPU. Turns the user's request and limit into bytes
 * on each allowed GPU, and finds the GPUs where promise I1 (claims <= shareable) would still hold.
 * bind then chooses among them.
 */
#ifndef SL_POLICY_ADMIT_H
#define SL_POLICY_ADMIT_H

#include "base/amount.h"
#include "policy/words/reason.h"

#define SL_ADMIT_GPUS_MAX 32

struct sl_admit_gpu {
	bool allowed; /* present, and the workload may use it */
	bool degraded;
	uint64_t shareable_bytes, claims_bytes;
	uint64_t parked_bytes; /* of claims: what parked programs had to leave behind */
	/* What one more context may take, and what the reserve has left for it. crowded: that is
	 * too little, and beside that context a workload could never be fully resident. */
	uint64_t context_bytes, reserve_bytes;
	bool crowded;
	bool compute_full; /* the workload's compute request does not fit */
};

struct sl_admit_ask {
	struct sl_amount request, limit;
	uint32_t gpu_count; /* 0 is taken as 1 */
	/* A fraction may mean a fraction of what parked programs leave: if only their memory is in
	 * the way, the request becomes what there is room for. Bytes stay bytes. */
	bool may_take_less;
};

struct sl_admit_offer {
	uint64_t request_bytes, limit_bytes;
};

struct sl_admit_plan {
	enum sl_reason reason; /* SL_REASON_NONE: at least gpu_count GPUs in mask */
	uint32_t mask;         /* GPUs on which the request fits */
	struct sl_admit_offer offer[SL_ADMIT_GPUS_MAX]; /* for every allowed GPU */
	/* With a refusal: what was wanted, and what the deciding GPU has (for k GPUs, the k-th
	 * best). Counts for TOO_FEW_GPUS; request and limit for LIMIT_BELOW_REQUEST. */
	uint64_t wanted_bytes, available_bytes;
	uint32_t gpu; /* the deciding GPU; 0 if none decided */
};

/* Bytes on a GPU with shareable_bytes. A missing request or limit equals the other; without both
 * the request is 0 and the limit everything. The limit is cut to shareable_bytes. */
struct sl_admit_offer sl_admit_resolve(
	const struct sl_admit_ask *ask, uint64_t shareable_bytes);

void sl_admit_judge(const struct sl_admit_ask *ask,
	const struct sl_admit_gpu gpu[SL_ADMIT_GPUS_MAX], struct sl_admit_plan *plan);

#endif
