/*
 * pack - the default placement; docs/decisions/0015-placement.md describes what it was measured
 * against
 *
 * A short list is made by the growth of fragmentation, like FGD but without rounding. Of these, the
 * state that loses the least worth wins. A state is worth its idle GPUs less its waste (waste.h),
 * at the price of its hardware (typical.h): taking or wasting a model that constrained tasks ask
 * for counts more. Waste is measured when small tasks have filled nearly every hole of a node; long
 * before that, large jobs find no node, which waste does not show. A separate term counts that:
 * what tasks of several whole GPUs could use.
 */
#include "policy/placement/rules.h"

#include <math.h>

/* Tells fractions of a thousandth apart in the whole numbers of the short list. */
#define SHORTLIST_SCALE 1024
/* In a close look, harm counts in steps of this many thousandths of a GPU; of equal states the
 * lowest rank wins. Smaller differences are noise of the streams, and following noise would spread
 * tasks over all nodes. With ROUNDING, floor() does not turn exactly n steps into n - 1. */
#define STEP     20
#define ROUNDING 1

/* The harm of placing a task on the GPUs of mask; less is better. */
typedef double (*harm_fn)(struct sl_score_context *context,
	const struct sl_fit_node *before, const struct sl_fit_node *after);

static double harm_of(struct sl_score_context *context, const struct sl_fit_node *state,
	const struct sl_need *need, uint32_t mask, harm_fn harm)
{
	struct sl_place place = {0, mask, (uint16_t)sl_fit_milli(state, need)};
	struct sl_fit_node after = *state;

	sl_fit_take(&after, need, place);
	return harm(context, state, &after);
}

/* The least harm over the state's GPUs; *gpu gets the GPU. The GPUs are sorted, so equal ones are
 * adjacent. Of GPUs with equal harm, the fullest wins: while few tasks are known, most GPUs show no
 * harm, and whole GPUs should stay free. */
static double least_harm(struct sl_score_context *context,
	const struct sl_fit_node *state, const struct sl_need *need, harm_fn harm,
	uint16_t *gpu)
{
	int32_t milli = (int32_t)sl_fit_milli(state, need);
	double least = INFINITY;

	*gpu = SL_SCORE_ANY_GPU;
	if (need->gpus != 1 || milli == SL_FIT_WHOLE)
		return harm_of(context, state, need,
			need->gpus ? sl_fit_gpus(state, &state->now, need) : 0, harm);
	for (uint16_t i = 0; i < state->gpus && state->now.left[i] >= milli; i++) {
		double value;

		if (i && state->now.left[i] == state->now.left[i - 1])
			continue;
		value = harm_of(context, state, need, UINT32_C(1) << i, harm);
		if (value <= least) {
			least = value;
			*gpu = i;
		}
	}
	return least;
}

static double fragmentation(struct sl_score_context *context,
	const struct sl_fit_node *before, const struct sl_fit_node *after)
{
	return sl_typical_fragments(&context->typical, after) -
	       sl_typical_fragments(&context->typical, before);
}

static int32_t score(
	void *context, const struct sl_fit_node *state, const struct sl_need *need)
{
	uint16_t gpu;

	return (int32_t)(-SHORTLIST_SCALE *
			 least_harm(context, state, need, fragmentation, &gpu));
}

/* How much of what is idle on such a node will be used, at its price. */
static double worth(struct sl_score_context *context, const struct sl_fit_node *state)
{
	double waste = sl_waste_of(&context->waste, state, context->close);

	return sl_typical_price(&context->typical, state) *
		       (state->now.gpu_milli - waste) +
	       sl_typical_large(&context->typical, state);
}

static double loss_of(struct sl_score_context *context, const struct sl_fit_node *before,
	const struct sl_fit_node *after)
{
	struct sl_fit_node state;
	double loss;

	sl_state_make(&state, after, &after->now, true);
	loss = worth(context, before) - worth(context, &state);
	return context->close ? floor((loss + ROUNDING) / STEP) : loss;
}

static double judge(struct sl_score_context *context, const struct sl_fit_node *state,
	const struct sl_need *need, bool close, uint16_t *gpu)
{
	context->close = close;
	return least_harm(context, state, need, loss_of, gpu);
}

const struct sl_score_rule sl_score_pack = {.sorted = true,
	.learns = true,
	.score = score,
	.shortlist = SL_QUEUE_BEST_MOST,
	.judge = judge};
