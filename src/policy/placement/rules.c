/*
 * rules - see the header
 *
 * BESTFIT and FGD score in whole numbers as published: the rounding makes most states equal, and
 * among equals the lowest rank wins, which works like first fit. Without the rounding, FGD
 * allocates a whole point less.
 */
#include "policy/placement/rules.h"

#include <math.h>

/* The published BestFit divides by the largest node of its trace. */
#define CPU_FULL 128000.0
#define GPU_FULL 8000.0

/* What is left of CPU and GPUs afterwards, each as a part of a full node, 1 in all. */
static double left_after(const struct sl_fit_node *state, const struct sl_need *need)
{
	double cpu = (double)(state->now.cpu_milli - need->cpu_milli);
	double gpu =
		state->now.gpu_milli - (double)(need->gpus * sl_fit_milli(state, need));

	return cpu / CPU_FULL / 2 + gpu / GPU_FULL / 2;
}

static int32_t bestfit(
	void *context, const struct sl_fit_node *state, const struct sl_need *need)
{
	return (int32_t)(100 * (1 - left_after(state, need)));
}

static uint16_t any_gpu(
	void *context, const struct sl_fit_node *state, const struct sl_need *need)
{
	return SL_SCORE_ANY_GPU;
}

const struct sl_score_rule sl_score_bestfit = {.score = bestfit, .gpu = any_gpu};

/* Finer than BESTFIT: otherwise the first of equals would be filled up before the second gets
 * anything. */
static int32_t spread(
	void *context, const struct sl_fit_node *state, const struct sl_need *need)
{
	return (int32_t)(1e6 * left_after(state, need));
}

static uint16_t emptiest(
	void *context, const struct sl_fit_node *state, const struct sl_need *need)
{
	uint16_t best = 0;

	if (need->gpus != 1)
		return SL_SCORE_ANY_GPU;
	for (uint16_t i = 1; i < state->gpus; i++)
		if (state->now.left[i] > state->now.left[best])
			best = i;
	return best;
}

const struct sl_score_rule sl_score_spread = {.score = spread, .gpu = emptiest};

/* --- FGD. --- */

/* The score of placing it on the GPUs of mask. */
static int32_t fgd_of(struct sl_score_context *context, const struct sl_fit_node *state,
	const struct sl_need *need, uint32_t mask, double before)
{
	struct sl_fit_node after = *state;
	struct sl_place place = {0, mask, (uint16_t)sl_fit_milli(state, need)};
	double growth;

	sl_fit_take(&after, need, place);
	growth = sl_typical_fragments(&context->typical, &after) - before;
	return (int32_t)(100 / (1 + exp(growth / 1000)));
}

/* *gpu: the best one, the first of equals. */
static int32_t fgd_best(struct sl_score_context *context, const struct sl_fit_node *state,
	const struct sl_need *need, uint16_t *gpu)
{
	double before = sl_typical_fragments(&context->typical, state);
	int32_t milli = (int32_t)sl_fit_milli(state, need), best = SL_SCORE_NEVER;

	*gpu = SL_SCORE_ANY_GPU;
	if (need->gpus != 1 || milli == SL_FIT_WHOLE)
		return fgd_of(context, state, need,
			need->gpus ? sl_fit_gpus(state, &state->now, need) : 0, before);
	for (uint16_t i = 0; i < state->gpus; i++) {
		int32_t score;

		if (state->now.left[i] < milli)
			continue;
		score = fgd_of(context, state, need, UINT32_C(1) << i, before);
		if (score > best) {
			best = score;
			*gpu = i;
		}
	}
	return best;
}

static int32_t fgd(
	void *context, const struct sl_fit_node *state, const struct sl_need *need)
{
	uint16_t gpu;

	return fgd_best(context, state, need, &gpu);
}

static uint16_t fgd_gpu(
	void *context, const struct sl_fit_node *state, const struct sl_need *need)
{
	uint16_t gpu;

	fgd_best(context, state, need, &gpu);
	return gpu;
}

const struct sl_score_rule sl_score_fgd = {.learns = true, .score = fgd, .gpu = fgd_gpu};
