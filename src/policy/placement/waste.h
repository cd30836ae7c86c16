/*
 * waste - how much of a node stays idle once it has been filled up
 *
 * A node in some state is filled alone with streams of random tasks, each placed where it fits.
 * What stays idle on its GPUs is its waste, in thousandths of a GPU, as a mean over the streams. A
 * task does the least harm where the sum of all wastes grows least.
 *
 * Streams are drawn per kind of hardware from the known tasks, mixed with those placed on such
 * nodes so far. They stay the same until drawn anew, so equal states have equal wastes, and a memo
 * of bounded size keeps them.
 */
#ifndef SL_POLICY_PLACEMENT_WASTE_H
#define SL_POLICY_PLACEMENT_WASTE_H

#include "policy/placement/typical.h"

/* Streams per kind of hardware: all for a close look, the first ones for a rough one. */
#define SL_WASTE_STREAMS 160
#define SL_WASTE_ROUGH   16
#define SL_WASTE_LENGTH  40 /* tasks in a stream */
#define SL_WASTE_CLASSES 64 /* kinds of hardware; further ones are judged like the last */

/* A task of a stream, as nodes of its hardware see it. */
struct sl_waste_task {
	int32_t cpu_milli, memory_mib;
	uint16_t gpus, milli;
};

/* One kind of hardware. */
struct sl_waste_class {
	struct sl_fit_node empty;
	uint32_t *placed; /* by kind of task: how many were placed here */
	uint64_t placed_all;
	uint32_t drawn;  /* the drawing that its streams come from */
	uint32_t length; /* 0: no known task runs here */
	struct sl_waste_task (*streams)[SL_WASTE_LENGTH];
	int32_t least_cpu, least_milli; /* of tasks with GPUs */
};

struct sl_waste {
	struct sl_arena *arena;
	struct sl_typical *typical;
	struct sl_waste_class *classes[SL_WASTE_CLASSES];
	uint32_t class_count;
	uint32_t drawn;              /* drawings so far */
	uint64_t placed, draw_again; /* placements so far, and when to draw anew */
	struct sl_waste_memo {
		uint64_t hash;
		float rough, close; /* close < 0: not known */
		uint32_t drawn;
	} * memo;
};

void sl_waste_init(
	struct sl_waste *waste, struct sl_arena *arena, struct sl_typical *typical);
/* Draws streams anew, because the known tasks changed. */
void sl_waste_refresh(struct sl_waste *waste);
/* A task like need was placed on this node. Sometimes draws anew, ever more rarely. */
void sl_waste_placed(struct sl_waste *waste, const struct sl_fit_node *node,
	const struct sl_need *need);

/* For a state as sl_state_make(sorted) makes it; proportionally less while few tasks were seen. */
double sl_waste_of(struct sl_waste *waste, const struct sl_fit_node *state, bool close);

#endif
