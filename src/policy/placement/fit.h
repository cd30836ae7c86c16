/*
 * fit - what a task needs, what a node has left, and whether the task fits
 *
 * Units: CPU in thousandths of a core, memory in MiB, GPU share in thousandths of a GPU. Pure; a
 * node is a plain value that its owner keeps.
 *
 * A node counts what is free twice: now, and once the tasks being stopped on it are gone (`later` =
 * now + releasing). A task that only fits later is placed there and waits.
 */
#ifndef SL_POLICY_PLACEMENT_FIT_H
#define SL_POLICY_PLACEMENT_FIT_H

#include "base/sl.h"

#define SL_FIT_GPUS_MAX 32
#define SL_FIT_WHOLE    1000 /* thousandths */

/*
 * gpus: how many different GPUs of one node; 0: none, and the GPU fields are ignored. gpu_milli:
 * share of each; SL_FIT_WHOLE: whole ones, which must be unused. gpu_mib: instead, or in addition,
 * memory of each in MiB. On a node whose GPUs have M MiB, that is ceil(1000 x gpu_mib / M)
 * thousandths, and the larger of the two counts. models, pools: bit i allows model or node pool i;
 * 0: any. compute_milli: of gpu_milli, the requested share of each GPU's time, which its project's
 * books count by themselves (sl_need_add_compute()). only: the GPUs that it may
 * use, a bit each, counted from each node's `first`; 0: any.
 */
struct sl_need {
	uint32_t cpu_milli, memory_mib;
	uint16_t gpus, gpu_milli;
	uint32_t gpu_mib;
	uint64_t models, pools;
	uint32_t only;
	uint16_t compute_milli;
};
/* The task asks for that share of each GPU's time, too. It takes the larger of its shares of memory
 * and of time, so what fits on a GPU by one fits by the other. */
static inline void sl_need_add_compute(struct sl_need *need, uint32_t milli)
{
	need->compute_milli = (uint16_t)milli;
	if (need->gpu_milli < milli)
		need->gpu_milli = (uint16_t)milli;
}
bool sl_need_is_same(const struct sl_need *a, const struct sl_need *b);

/*
 * What is free, now or later. Nothing here clamps: where promises overlap (a task that was to go
 * stays, and another counts on its place), `later` may be below zero until a promise is withdrawn.
 */
struct sl_room {
	int64_t cpu_milli, memory_mib;
	int32_t gpu_milli;             /* sum over gpus of what is above zero */
	int16_t whole;                 /* unused GPUs */
	int16_t left[SL_FIT_GPUS_MAX]; /* thousandths, per GPU */
};

/* What is left of a GPU, without what promises exceed it by. */
static inline int16_t sl_fit_above_zero(int16_t left)
{
	return left > 0 ? left : 0;
}

struct sl_fit_node {
	uint32_t cpu_milli, memory_mib, gpu_mib;
	uint16_t gpus;
	uint8_t model, pool; /* bit numbers in sl_need */
	uint8_t first;       /* the bit of GPU 0 in `only`; < 32 */
	bool closed;         /* lost, or drained by a person: no new tasks */
	uint32_t shut; /* GPUs that take no tasks, a bit each: nothing is left of them */
	struct sl_room now, later;
};

/* The GPUs of a task, a bit each. milli: of each one. */
struct sl_place {
	uint32_t node, gpu_mask;
	uint16_t milli;
};

/* An empty node. gpus <= SL_FIT_GPUS_MAX. */
void sl_fit_node_init(struct sl_fit_node *node, uint32_t cpu_milli, uint32_t memory_mib,
	uint16_t gpus, uint32_t gpu_mib, uint8_t model, uint8_t pool);

/* Changes the node's size and which of its GPUs are shut. Tasks keep what they have, so what is
 * left may drop below 0. If the node had more GPUs before, those from `gpus` on are shut. */
void sl_fit_resize(struct sl_fit_node *node, uint32_t cpu_milli, uint32_t memory_mib,
	uint16_t gpus, uint32_t shut);

/* GPUs that are not shut. */
static inline uint32_t sl_fit_open(const struct sl_fit_node *node)
{
	return node->gpus - (uint32_t)__builtin_popcount(node->shut);
}

/* Which of them need may use, a bit each. */
uint32_t sl_fit_usable(const struct sl_fit_node *node, const struct sl_need *need);

/* Thousandths of each GPU of this node that need asks for, 0 without GPUs; above SL_FIT_WHOLE it
 * never fits here. */
uint32_t sl_fit_milli(const struct sl_fit_node *node, const struct sl_need *need);

/* Could it run here if the node were empty, by model, pool and size? */
bool sl_fit_ever(const struct sl_fit_node *node, const struct sl_need *need);
/* Is there room for it in room (node->now or node->later)? Includes sl_fit_ever. */
bool sl_fit_in(const struct sl_fit_node *node, const struct sl_room *room,
	const struct sl_need *need);

/*
 * Which GPUs: the fullest that suffice (whole ones: the lowest numbers). Only where sl_fit_in said
 * yes.
 */
uint32_t sl_fit_gpus(const struct sl_fit_node *node, const struct sl_room *room,
	const struct sl_need *need);

/*
 * The accounts. take: a task starts (changes now and later). release: it is told to stop (later
 * grows); unrelease: it runs on all the same. give: it is gone; released: a release came before.
 * pipeline: it is promised room that will become free (changes later only); unpipeline withdraws
 * the promise. A place must come from this need and node.
 */
void sl_fit_take(
	struct sl_fit_node *node, const struct sl_need *need, struct sl_place place);
void sl_fit_give(struct sl_fit_node *node, const struct sl_need *need,
	struct sl_place place, bool released);
void sl_fit_release(
	struct sl_fit_node *node, const struct sl_need *need, struct sl_place place);
void sl_fit_unrelease(
	struct sl_fit_node *node, const struct sl_need *need, struct sl_place place);
void sl_fit_pipeline(
	struct sl_fit_node *node, const struct sl_need *need, struct sl_place place);
void sl_fit_unpipeline(
	struct sl_fit_node *node, const struct sl_need *need, struct sl_place place);

#endif
