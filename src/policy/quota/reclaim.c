/*
 * reclaim - see the header
 *
 * Ratios are compared by cross multiplication, so that rounding decides nothing.
 */
#include "policy/quota/reclaim.h"

#include "policy/mutant.h"

__extension__ typedef unsigned __int128 wide;

/* has / share of the resource where that is largest. */
struct ratio {
	uint64_t has, share;
};

static int compare(struct ratio a, struct ratio b)
{
	wide left = (wide)a.has * b.share, right = (wide)b.has * a.share;

	return left < right ? -1 : left > right;
}

/* A project without a share counts as if it had a thousandth of a unit. only: the wanted resources;
 * NULL: all. */
static struct ratio ratio_of(const struct sl_project *project,
	const struct sl_quantity *more, int sign, const struct sl_quantity *only)
{
	struct ratio most = {0, 1};

	for (int r = 0; r < SL_RESOURCES; r++) {
		int64_t has = project->has.of[r] + (more ? sign * more->of[r] : 0);
		struct ratio ratio = {has > 0 ? (uint64_t)has : 0, 1};

		if (only && !only->of[r])
			continue;
		/* Guaranteed without bound: its share is whatever it asks for, and no measure. */
		if (r != SL_RES_GPU && project->rules.quota.of[r] == SL_QUOTA_ALL)
			continue;
		if (project->share.of[r] > 0)
			ratio.share = (uint64_t)project->share.of[r];
		else
			ratio.has *= 1000;
		if (compare(ratio, most) > 0)
			most = ratio;
	}
	return most;
}

/* Above `most` in a wanted resource; wants NULL: in any. */
static bool exceeds(const struct sl_quantity *has, const struct sl_quantity *most,
	const struct sl_quantity *wants)
{
	for (int r = 0; r < SL_RESOURCES; r++) {
		if ((!wants || wants->of[r]) && most->of[r] != SL_QUOTA_ALL &&
			has->of[r] > most->of[r])
			return true;
	}
	return false;
}

static bool fits_quota(const struct sl_project *project, const struct sl_quantity *more)
{
	for (int r = 0; r < SL_RESOURCES; r++) {
		int64_t quota = project->rules.quota.of[r];

		if (more->of[r] && quota != SL_QUOTA_ALL &&
			project->has.of[r] + more->of[r] > quota)
			return false;
	}
	return true;
}

enum sl_reclaim_verdict sl_reclaim_may(const struct sl_tree *tree, uint32_t by,
	const struct sl_quantity *more, uint32_t from, const struct sl_quantity *taken)
{
	const struct ratio one = {1, 1};
	const struct sl_project *a, *b;
	uint32_t branch_a, branch_b;
	struct ratio after;
	bool guaranteed;

	if (!sl_tree_branches(tree, by, from, &branch_a, &branch_b))
		return SL_RECLAIM_RELATED;
	a = &tree->all[branch_a];
	b = &tree->all[branch_b];
	for (uint32_t i = from;; i = tree->all[i].parent) {
		const struct sl_project *level = &tree->all[i];

		if (!SL_MUTANT(RECLAIM_IN_QUOTA,
			    exceeds(&level->has, &level->rules.quota, more), true))
			return SL_RECLAIM_IN_QUOTA;
		if (i == branch_b)
			break;
	}
	guaranteed = SL_MUTANT(RECLAIM_NO_RIGHT, fits_quota(a, more), false);
	if (!guaranteed && !exceeds(&b->has, &b->share, more))
		return SL_RECLAIM_IN_SHARE;
	if (guaranteed)
		return SL_RECLAIM_YES;
	after = ratio_of(a, more, 1, more);
	if (SL_MUTANT(RECLAIM_GREEDY, compare(after, one) > 0, false) &&
		compare(after, ratio_of(b, taken, -1, more)) >= 0)
		return SL_RECLAIM_GREEDY;
	return SL_RECLAIM_YES;
}

bool sl_reclaim_is_fair(const struct sl_tree *tree, uint32_t by,
	const struct sl_quantity *more, uint32_t from)
{
	const struct ratio one = {1, 1};
	uint32_t a, b;
	struct ratio has;

	if (!sl_tree_branches(tree, by, from, &a, &b) ||
		!exceeds(&tree->all[a].has, &tree->all[a].rules.quota, more))
		return true;
	has = ratio_of(&tree->all[a], NULL, 0, more);
	return SL_MUTANT(RECLAIM_GREEDY, compare(has, one) <= 0, true) ||
	       compare(has, ratio_of(&tree->all[b], NULL, 0, more)) < 0;
}

bool sl_reclaim_before(const struct sl_tree *tree, uint32_t a, uint32_t b)
{
	const struct sl_project *x, *y;
	uint32_t branch_a, branch_b;
	bool above_x, above_y;
	int differ;

	if (!sl_tree_branches(tree, a, b, &branch_a, &branch_b))
		return a < b;
	x = &tree->all[branch_a];
	y = &tree->all[branch_b];
	above_x = exceeds(&x->has, &x->share, NULL);
	above_y = exceeds(&y->has, &y->share, NULL);
	if (above_x != above_y)
		return above_x;
	above_x = exceeds(&x->has, &x->rules.quota, NULL);
	above_y = exceeds(&y->has, &y->rules.quota, NULL);
	if (above_x != above_y)
		return above_x;
	if (x->rules.priority != y->rules.priority)
		return x->rules.priority < y->rules.priority;
	differ = compare(ratio_of(x, NULL, 0, NULL), ratio_of(y, NULL, 0, NULL));
	if (differ)
		return differ > 0;
	if (x->created != y->created)
		return x->created > y->created;
	return x->id > y->id;
}
