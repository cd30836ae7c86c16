/*
 * score - which of the nodes that have room is the best one
 *
 * A placer picks one of the nodes of a cluster for a task, deterministically: ties go to the
 * lowest rank. It never refuses what fits somewhere.
 *
 *   BESTFIT  the least of CPU and GPU left: int(100 (1 - cpuLeft/128000/2 - gpuLeft/8000/2)),
 *            shares on the fullest GPU that suffices
 *   FGD      the least growth of fragmentation: F(node) = sum over typical tasks of p x the idle
 *            thousandths that the task could not use there; int(100 sigmoid((F before - F after) /
 *            1000)), best over the GPUs (Weng et al., USENIX ATC 2023; figures and rounding as
 *            published)
 *   SPREAD   the most left
 * PACK our default; docs/decisions describe it and the alternatives
 *
 * Single-threaded; pure: no clock, and its random numbers come from a fixed seed. Memory comes from
 * the arena and grows only with nodes and kinds of task; memos are bounded.
 */
#ifndef SL_POLICY_PLACEMENT_SCORE_H
#define SL_POLICY_PLACEMENT_SCORE_H

#include "base/arena.h"
#include "policy/placement/fit.h"

enum sl_placement_policy {
#define SL_PLACEMENT_POLICY(NAME, name) SL_PLACE_##NAME,
#include "policy/placement/policies.def"
#undef SL_PLACEMENT_POLICY
	SL_PLACE_POLICIES
};

struct sl_placer;

/* nodes[0..count) belong to the caller and may grow up to `most`; they must not move. ranks: per
 * node, for ties; NULL: by number. */
struct sl_placer *sl_placer_new(struct sl_arena *arena, enum sl_placement_policy policy,
	const struct sl_fit_node *nodes, uint32_t most);
void sl_placer_ranks(struct sl_placer *placer, const uint32_t *ranks);

/* A task of this kind was seen `times` times; this teaches what is typical. */
void sl_placer_learn(
	struct sl_placer *placer, const struct sl_need *need, uint32_t times);

/* The node is new, or its accounts changed other than by taking the place that sl_placer_place just
 * gave. O(log nodes). */
void sl_placer_changed(struct sl_placer *placer, uint32_t node);

/*
 * The best place for need in `now`, or with later in `later`. False: it fits nowhere. The caller
 * takes the place with sl_fit_take and reports that with sl_placer_changed.
 */
bool sl_placer_place(struct sl_placer *placer, const struct sl_need *need, bool later,
	struct sl_place *place);

const char *sl_placement_policy_name(enum sl_placement_policy policy);
/* False: there is none of that name, and policy is unchanged. */
bool sl_placement_policy_find(const char *name, enum sl_placement_policy *policy);

#endif
