/*
 * typical - what tasks are typically like, and how much of a node such tasks could not use
 *
 * The fragmentation of a node is the sum over typical tasks of p x the idle thousandths of GPUs
 * that the task could not use there. These are all idle ones if it needs no GPU, or if model, CPU
 * or number of GPUs do not suffice; else those of GPUs with less left than it needs (Weng et al.,
 * USENIX ATC 2023). Typical are the most frequent kinds of task that make up 95 % of all seen;
 * memory does not count.
 *
 * For each kind of hardware, tables by CPU left and GPU left hold the sum over tasks: a state costs
 * one look-up per GPU.
 *
 * An idle GPU has a price: the demand for it if each task spread evenly over the idle GPUs that its
 * models and pools allow, as a multiple of the mean over all idle GPUs. Without constrained tasks
 * every price is 1; it rises where constrained tasks leave the fewest GPUs to others.
 */
#ifndef SL_POLICY_PLACEMENT_TYPICAL_H
#define SL_POLICY_PLACEMENT_TYPICAL_H

#include "base/arena.h"
#include "policy/placement/fit.h"

#define SL_TYPICAL_KINDS 1024 /* different kinds of task that are told apart */
#define SL_TYPICAL_MOST  128  /* the most typical kinds */
#define SL_TYPICAL_LARGE \
	32 /* kinds of task with several whole GPUs that are considered */
#define SL_TYPICAL_CLASSES \
	64 /* different kinds of hardware; further ones are judged like the last */

struct sl_typical_kind {
	struct sl_need need; /* memory_mib: of the first task seen */
	uint64_t times;
	uint32_t next;
};

/* One kind of hardware. A state uses the row with the largest `cpu` that is left. */
struct sl_typical_class {
	struct sl_fit_node any; /* an empty node of this hardware, without bounds */
	uint32_t built;
	double idle, price;                /* idle: thousandths, when prices were set */
	uint32_t rows, columns;            /* columns: different shares + 1 */
	uint32_t *cpu;                     /* by row; ascending */
	uint16_t column[SL_FIT_WHOLE + 1]; /* by thousandths left */
	/* Sums of p over tasks with no more CPU than the row. */
	double *shares; /* [row][column]: shares larger than what is left; [row][0]: all */
	double *wholes; /* [row][n <= SL_FIT_GPUS_MAX]: tasks of 1 to n whole GPUs */
	/* Tasks with shares of several GPUs are checked one by one. */
	struct sl_typical_odd {
		uint32_t cpu_milli, milli, gpus;
		double p;
	} * odd;
	uint32_t odds;
	/* Tasks of several whole GPUs, typical or not: the most frequent ones. */
	struct sl_typical_odd large[SL_TYPICAL_LARGE];
	uint32_t larges;
};

struct sl_typical {
	struct sl_arena *arena;
	struct sl_typical_kind *kinds;
	uint32_t count, *buckets;
	uint64_t seen, refreshed; /* tasks; at the last refresh */
	uint32_t built;           /* refreshes so far */
	uint32_t *order;          /* of kinds: most frequent first */
	uint32_t typical;         /* how many of them are typical */
	uint64_t weight;          /* tasks of those kinds */
	struct sl_typical_class *classes[SL_TYPICAL_CLASSES];
	uint32_t class_count;
};

void sl_typical_init(struct sl_typical *typical, struct sl_arena *arena);
void sl_typical_learn(
	struct sl_typical *typical, const struct sl_need *need, uint32_t times);
/* The number of its kind; UINT32_MAX: none. */
uint32_t sl_typical_find(const struct sl_typical *typical, const struct sl_need *need);
/* Rebuilds the tables if enough was learnt since. True: scores may have changed. */
bool sl_typical_refresh(struct sl_typical *typical);

/* The fragmentation of a node in this state, in thousandths of a GPU. */
double sl_typical_fragments(struct sl_typical *typical, const struct sl_fit_node *state);

/* Sets the prices by what will be free on nodes[0..count). O(nodes + kinds of task x kinds of
 * hardware). */
void sl_typical_set_prices(
	struct sl_typical *typical, const struct sl_fit_node *nodes, uint32_t count);
/* The price of an idle GPU of such a node. */
double sl_typical_price(struct sl_typical *typical, const struct sl_fit_node *node);

/* What tasks of several whole GPUs, typical or not, could use of the node: the sum of p x
 * thousandths of whole GPUs over those that fit. */
double sl_typical_large(struct sl_typical *typical, const struct sl_fit_node *state);

#endif
