/*
 * reclaim - may one project take back what another has, and which project is taken from first
 *
 * Compares two projects by the branches just below their lowest common ancestor. The victim's
 * branch must be above its fair share in a wanted resource; or the reclaimer must stay within its
 * quota with what it wants while the victim's branch is above its own. Besides:
 *   in-quota work is never taken: each project from the victim up to that branch is over quota;
 *   the reclaimer's branch, unless within its quota, must not end up above its fair share and at
 *   least as far above it as the victim's. (Within the quota it can be above the share if something
 *   below it exceeds a limit that was lowered.)
 * (The rules of KAI, with its facts and names.)
 *
 * Pure. The tree's books are taken as they are: what was taken is off them, what the reclaimer
 * wants is not on them yet. O(depth).
 */
#ifndef SL_POLICY_QUOTA_RECLAIM_H
#define SL_POLICY_QUOTA_RECLAIM_H

#include "policy/quota/tree.h"

enum sl_reclaim_verdict {
	SL_RECLAIM_YES = 0,
	SL_RECLAIM_RELATED, /* the same project, or one above the other */
	SL_RECLAIM_IN_QUOTA,
	SL_RECLAIM_IN_SHARE, /* the victim's branch has no more than its share */
	SL_RECLAIM_GREEDY /* the reclaimer would be further above its share than the victim */
};

/* May project `by`, which wants `more`, take `taken` from project `from`? */
enum sl_reclaim_verdict sl_reclaim_may(const struct sl_tree *tree, uint32_t by,
	const struct sl_quantity *more, uint32_t from, const struct sl_quantity *taken);

/* The last rule above, asked once everything is booked: is `by` no further above its share than
 * `from`? Only resources in `more` count. */
bool sl_reclaim_is_fair(const struct sl_tree *tree, uint32_t by,
	const struct sl_quantity *more, uint32_t from);

/* Is a taken from before b? A strict order while the books do not change. */
bool sl_reclaim_before(const struct sl_tree *tree, uint32_t a, uint32_t b);

#endif
