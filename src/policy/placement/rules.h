/*
 * rules - how the placement policies score a state
 */
#ifndef SL_POLICY_PLACEMENT_RULES_H
#define SL_POLICY_PLACEMENT_RULES_H

#include "policy/placement/queue.h"
#include "policy/placement/typical.h"
#include "policy/placement/waste.h"

/* The GPUs that sl_fit_gpus names. */
#define SL_SCORE_ANY_GPU UINT16_MAX

struct sl_score_context {
	struct sl_typical typical;
	struct sl_waste waste; /* of rules with judge only */
	bool close;            /* whether judge looks closely now */
};

struct sl_score_rule {
	bool sorted; /* the order of GPUs does not matter */
	bool learns; /* scores change with what is typical */
	sl_score_fn score;
	/* The `shortlist` best states by score are judged roughly. Those with the least harm are
	 * judged closely, and the least of these wins. judge NULL: the best by score wins. */
	uint32_t shortlist;
	double (*judge)(struct sl_score_context *context, const struct sl_fit_node *state,
		const struct sl_need *need, bool close, uint16_t *gpu);
	/* Which GPU of the state, for a task of one GPU, or SL_SCORE_ANY_GPU; judge may override
	 * it. */
	uint16_t (*gpu)(void *context, const struct sl_fit_node *state,
		const struct sl_need *need);
};

extern const struct sl_score_rule sl_score_bestfit, sl_score_spread, sl_score_fgd,
	sl_score_pack;

#endif
