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
 *   PACK     our default; docs/decisions say what it is made of and what was tried
 *
 * Single-threaded; pure: no clock, and the random numbers it uses are its own, from a fixed seed.
 * Memory from the arena, growing only with nodes and kinds of task; memos are bounded.
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

/* A task of this kind was seen `times` times: what is typical is learnt so. */
void sl_placer_learn(
	struct sl_placer *placer, const struct sl_need *need, uint32_t times);

/* Node `node` is new, or its accounts changed by other hands than sl_placer_place's caller taking
 * the place it just got. O(log nodes). */
void sl_placer_changed(struct sl_placer *placer, uint32_t node);

/*
 * The best place for need, by `now`; if later, by `later`. False: it fits
 * nowhere. Nothing is taken: the caller does that with sl_fit_take and says so with
 * sl_placer_changed.
 */
bool sl_placer_place(struct sl_placer *placer, const struct sl_need *need, bool later,
	struct sl_place *place);

const char *sl_placement_policy_name(enum sl_placement_policy policy);
/* False: there is none of that name; policy is as it was. */
bool sl_placement_policy_find(const char *name, enum sl_placement_policy *policy);

#endif
