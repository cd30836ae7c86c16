/*
 * why - what the last plan says of a workload, for people
 *
 * Claims without a seat are still there as the plan left them: whatever ends one of them plans
 * anew.
 */
#include "policy/node/plan.h"

static enum sl_reason by_endless(enum sl_endless endless)
{
	switch (endless) {
	case SL_ENDLESS_HOST: return SL_REASON_NO_HOST_WAITS;
	case SL_ENDLESS_POOL: return SL_REASON_POOL_WAITS;
	case SL_ENDLESS_BOUND: return SL_REASON_POOL_BOUND_WAITS;
	case SL_ENDLESS_WHOLE: return SL_REASON_WHOLE_WAITS;
	case SL_ENDLESS_REQUESTS: return SL_REASON_GRACE_WAITS;
	default: return SL_REASON_STAYS_WAITS;
	}
}

static enum sl_reason reason_of(const struct sl_node_claim *claim)
{
	if (claim->endless != SL_ENDLESS_NOT)
		return by_endless(claim->endless);
	if (claim->verdict == SL_NODE_LACKS && claim->room.code == SL_ROOM_POOL)
		return SL_REASON_POOL_WAITS;
	if (claim->verdict == SL_NODE_LACKS && claim->room.code == SL_ROOM_BOUND)
		return SL_REASON_POOL_BOUND_WAITS;
	return SL_REASON_TURN_WAITS;
}

static uint64_t lacks_of(const struct sl_node_claim *claim)
{
	uint64_t bytes = claim->demand ? claim->demand->bytes : 0;

	for (uint32_t left = claim->demand ? 0 : claim->gpus; left; left &= left - 1)
		bytes += sl_node_missing(
			&claim->client->holding.cell[__builtin_ctz(left)]);
	return bytes;
}

void sl_node_why(const struct sl_node *node, uint64_t workload, sl_node_because_fn fn,
	void *context)
{
	const struct sl_node_plan *plan = node->plan;

	for (uint32_t i = 0; i < plan->claims_count; i++) {
		const struct sl_node_claim *claim = plan->order[i];
		struct sl_node_because because;

		if (claim->has_seat || claim->is_over || !claim->gpus ||
			claim->client->workload->index.id != workload)
			continue;
		because = (struct sl_node_because){.reason = reason_of(claim),
			.gpu = claim->demand ? claim->demand->gpu
					     : (uint32_t)__builtin_ctz(claim->gpus),
			.workload = workload,
			.client = claim->client->index.id,
			.bytes = lacks_of(claim),
			.available_bytes = claim->room.lacks_bytes};
		fn(context, &because);
	}
}
