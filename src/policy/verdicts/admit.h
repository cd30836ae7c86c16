/*
 * admit - may a workload's request be promised, and on which GPUs
 *
 * Pure: facts in, plan out. Sizes are bytes per GPU. Turns a request and limit as the user
 * wrote them into bytes on each allowed GPU, and says where promise I1 (claims <= shareable)
 * would still hold. Which of the possible GPUs is taken is bind's question.
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
	uint64_t
		parked_bytes; /* of claims: what programs that are parked could not take along */
	/* What one more context may take, and what the reserve has left for it. crowded: it has too
	 * little, and beside that context a workload could never be whole. */
	uint64_t context_bytes, reserve_bytes;
	bool crowded;
};

struct sl_admit_ask {
	struct sl_amount request, limit;
	uint32_t gpu_count; /* 0 is taken as 1 */
	/* A fraction may mean a fraction of what parked programs leave: where nothing but that is
	 * in the way, the request is what there is room for. Bytes are bytes. */
	bool may_take_less;
};

struct sl_admit_offer {
	uint64_t request_bytes, limit_bytes;
};

struct sl_admit_plan {
	enum sl_reason reason; /* SL_REASON_NONE: at least gpu_count GPUs in mask */
	uint32_t mask;         /* GPUs on which the request fits */
	struct sl_admit_offer offer[SL_ADMIT_GPUS_MAX]; /* for every allowed GPU */
	/* With a refusal: what was wanted, and what the GPU that decided has. For k GPUs that
	 * is the k-th best. Counts for TOO_FEW_GPUS; request and limit for LIMIT_BELOW_REQUEST. */
	uint64_t wanted_bytes, available_bytes;
	uint32_t gpu; /* that one; 0 if none decided */
};

/* Bytes on a GPU with shareable_bytes. A missing request or limit equals the other; with
 * neither the request is 0 and the limit everything; the limit is cut to what is shareable. */
struct sl_admit_offer sl_admit_resolve(
	const struct sl_admit_ask *ask, uint64_t shareable_bytes);

void sl_admit_judge(const struct sl_admit_ask *ask,
	const struct sl_admit_gpu gpu[SL_ADMIT_GPUS_MAX], struct sl_admit_plan *plan);

#endif
