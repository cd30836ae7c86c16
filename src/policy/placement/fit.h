/*
 * fit - what a task needs, what a node has left, and whether the one goes into the other
 *
 * Units: CPU in thousandths of a core, memory in MiB, GPU share in thousandths of a GPU. Pure; a
 * node is a plain value that its owner keeps.
 *
 * A node counts twice what is free: now, and once the tasks that are being stopped on it are gone
 * (`later` = now + releasing). A task that fits only later is placed there and waits.
 */
#ifndef SL_POLICY_PLACEMENT_FIT_H
#define SL_POLICY_PLACEMENT_FIT_H

#include "base/sl.h"

#define SL_FIT_GPUS_MAX 32
#define SL_FIT_WHOLE    1000 /* thousandths */

/*
 * gpus: how many different GPUs, of one node. 0: none, and the rest is ignored.
 * gpu_milli: share of each; SL_FIT_WHOLE: whole ones, which must be unused. gpu_mib: instead, or in
 * addition, memory of each in MiB: on a node whose GPUs have M MiB that is ceil(1000 x gpu_mib / M)
 * thousandths, and the larger of the two counts. models: bit i allows model i, 0: any. pools: bit i
 * allows nodes of pool i, 0: any.
 */
struct sl_need {
	uint32_t cpu_milli, memory_mib;
	uint16_t gpus, gpu_milli;
	uint32_t gpu_mib;
	uint64_t models, pools;
};

/*
 * What is free, in one of the two countings. Nothing here clamps: where promises overlap (a task
 * that was to go stays and somebody counts on its place) `later` may fall below zero for a while,
 * and the sums are right again once the promise is taken back.
 */
struct sl_room {
	int64_t cpu_milli, memory_mib;
	int32_t gpu_milli;             /* sum over gpus */
	int16_t whole;                 /* GPUs nothing is on */
	int16_t left[SL_FIT_GPUS_MAX]; /* thousandths, per GPU */
};

struct sl_fit_node {
	uint32_t cpu_milli, memory_mib, gpu_mib;
	uint16_t gpus;
	uint8_t model, pool; /* bit numbers in sl_need */
	bool closed;         /* lost, or drained by a person: nothing new */
	struct sl_room now, later;
};

/* The GPUs a task got: a bit each. milli: of each one. */
struct sl_place {
	uint32_t node, gpu_mask;
	uint16_t milli;
};

/* An empty node. gpus <= SL_FIT_GPUS_MAX. */
void sl_fit_node_init(struct sl_fit_node *node, uint32_t cpu_milli, uint32_t memory_mib,
	uint16_t gpus, uint32_t gpu_mib, uint8_t model, uint8_t pool);

/* Thousandths of each GPU of this node that need asks for, 0 without GPUs; more than SL_FIT_WHOLE:
 * it never fits here. */
uint32_t sl_fit_milli(const struct sl_fit_node *node, const struct sl_need *need);

/* Model, pool, size: could it ever run here, were the node empty? */
bool sl_fit_ever(const struct sl_fit_node *node, const struct sl_need *need);
/* Is there room for it, by room (node->now or node->later)? Includes sl_fit_ever. */
bool sl_fit_in(const struct sl_fit_node *node, const struct sl_room *room,
	const struct sl_need *need);

/*
 * Which GPUs: those with the least left that suffices (whole ones: the lowest numbers). Only where
 * sl_fit_in said yes.
 */
uint32_t sl_fit_gpus(const struct sl_fit_node *node, const struct sl_room *room,
	const struct sl_need *need);

/*
 * The accounts. take: it starts (both countings). release: it is told to stop (later only grows);
 * give: it is gone; released: release came before. pipeline: it is promised what comes free (later
 * only); unpipeline takes the promise back. unrelease: it was told to stop, and goes on all the
 * same. A place must have come from this need and node.
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
