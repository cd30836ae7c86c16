/*
 * tree - see the header
 *
 * Every walk goes up the parents, or down first_child and next; both are at most SL_PROJECT_DEEP
 * levels long, which bounds recursion. What a child could use counts in its parent only up to the
 * child's limit: otherwise a parent would get what none of its children may take.
 */
#include "policy/quota/tree.h"

#include <inttypes.h>

#include "policy/mutant.h"
#include "policy/quota/fairshare.h"

void sl_tree_init(struct sl_tree *tree, struct sl_arena *arena, uint32_t most)
{
	*tree = (struct sl_tree){
		.most = most, .roots = SL_PROJECT_NONE, .free = SL_PROJECT_NONE};
	tree->all = sl_arena_take(arena, (size_t)most * sizeof(tree->all[0]));
	/* A row for each child of one parent, and one for the parent's own jobs. */
	tree->rows = sl_arena_take(arena, ((size_t)most + 1) * sizeof(tree->rows[0]));
	sl_index_init(&tree->by_id, arena);
}

uint32_t sl_tree_find(const struct sl_tree *tree, uint64_t id)
{
	struct sl_index_node *node = sl_index_find(&tree->by_id, id);

	if (!node)
		return SL_PROJECT_NONE;
	return (uint32_t)(SL_CONTAINER_OF(node, struct sl_project, by_id) - tree->all);
}

/* --- Adding, changing, removing. --- */

static bool amount_fits(int64_t amount)
{
	return amount >= SL_QUOTA_ALL && amount <= SL_QUOTA_MOST;
}

static bool rules_fit(const struct sl_project_rules *rules)
{
	for (int r = 0; r < SL_RESOURCES; r++) {
		int64_t quota = rules->quota.of[r], limit = rules->limit.of[r];

		if (!amount_fits(quota) || !amount_fits(limit))
			return false;
		if (limit != SL_QUOTA_ALL && quota > limit)
			return false;
	}
	return true;
}

/* First child of parent, or first of the top level. */
static uint32_t *children_of(struct sl_tree *tree, uint32_t parent)
{
	return parent == SL_PROJECT_NONE ? &tree->roots : &tree->all[parent].first_child;
}

/* With `rules` for the project `number` (or for a new one), would the children of parent still be
 * promised no more than parent is? */
static bool sum_fits(const struct sl_tree *tree, uint32_t parent, uint32_t number,
	const struct sl_project_rules *rules, const struct sl_project_rules *parents)
{
	for (int r = 0; r < SL_RESOURCES; r++) {
		int64_t sum = rules && rules->quota.of[r] > 0 ? rules->quota.of[r] : 0;
		int64_t most = parents->quota.of[r];

		if (most == SL_QUOTA_ALL)
			continue;
		/* Stops at the first excess, so that the sum cannot overflow. */
		for (uint32_t child = tree->all[parent].first_child;
			child != SL_PROJECT_NONE && sum <= most;
			child = tree->all[child].next) {
			const struct sl_project *project = &tree->all[child];

			if (SL_MUTANT(TREE_SUM_TWICE, child != number, true) &&
				project->rules.quota.of[r] > 0)
				sum += project->rules.quota.of[r];
		}
		if (sum > most)
			return SL_MUTANT(TREE_SUM_OPEN, false, true);
	}
	return true;
}

/* Levels of the branch from number down. */
static uint32_t height(const struct sl_tree *tree, uint32_t number)
{
	uint32_t most = 0;

	for (uint32_t child = tree->all[number].first_child; child != SL_PROJECT_NONE;
		child = tree->all[child].next) {
		uint32_t below = height(tree, child);

		most = below > most ? below : most;
	}
	return most + 1;
}

static bool stands_below(const struct sl_tree *tree, uint32_t number, uint32_t above)
{
	while (number != SL_PROJECT_NONE && number != above)
		number = tree->all[number].parent;
	return number == above;
}

/* number: the present project; SL_PROJECT_NONE: it is new. */
static enum sl_tree_outcome judge(const struct sl_tree *tree, uint32_t number,
	uint32_t parent, const struct sl_project_rules *rules)
{
	bool known = number != SL_PROJECT_NONE;
	uint32_t levels =
		SL_MUTANT(TREE_DEEP_ALONE, known, false) ? height(tree, number) : 1;

	if (!rules_fit(rules))
		return SL_TREE_VALUE;
	if (parent != SL_PROJECT_NONE &&
		(parent >= tree->high || !tree->all[parent].used))
		return SL_TREE_PARENT;
	if (known && parent != SL_PROJECT_NONE && stands_below(tree, parent, number))
		return SL_TREE_CYCLE;
	if (parent != SL_PROJECT_NONE)
		levels += tree->all[parent].depth + 1;
	if (levels > SL_PROJECT_DEEP)
		return SL_TREE_DEEP;
	if (tree->sums_free)
		return SL_TREE_OK;
	if (parent != SL_PROJECT_NONE &&
		!sum_fits(tree, parent, number, rules, &tree->all[parent].rules))
		return SL_TREE_SUM;
	if (SL_MUTANT(TREE_CHILDREN_UNASKED, known, false) &&
		!sum_fits(tree, number, SL_PROJECT_NONE, NULL, rules))
		return SL_TREE_SUM;
	return SL_TREE_OK;
}

static uint32_t take_number(struct sl_tree *tree)
{
	uint32_t number = tree->free;

	if (number != SL_PROJECT_NONE)
		tree->free = tree->all[number].next;
	else if (tree->high < tree->most)
		number = tree->high++;
	return number;
}

static void set_depth(struct sl_tree *tree, uint32_t number, uint32_t depth)
{
	tree->all[number].depth = depth;
	for (uint32_t child = tree->all[number].first_child; child != SL_PROJECT_NONE;
		child = tree->all[child].next)
		set_depth(tree, child, depth + 1);
}

static void link_in(struct sl_tree *tree, uint32_t number, uint32_t parent)
{
	struct sl_project *project = &tree->all[number];
	uint32_t *first = children_of(tree, parent);

	project->parent = parent;
	project->next = *first;
	*first = number;
	set_depth(tree, number,
		parent == SL_PROJECT_NONE ? 0 : tree->all[parent].depth + 1);
}

static void link_out(struct sl_tree *tree, uint32_t number)
{
	uint32_t *at = children_of(tree, tree->all[number].parent);

	while (*at != number)
		at = &tree->all[*at].next;
	*at = tree->all[number].next;
}

static void add(struct sl_quantity *to, int sign, const struct sl_quantity *what)
{
	for (int r = 0; what && r < SL_RESOURCES; r++)
		to->of[r] += sign * what->of[r];
}

static void book_up(struct sl_tree *tree, uint32_t number, int sign,
	const struct sl_quantity *has, const struct sl_quantity *fixed,
	const struct sl_quantity *asks)
{
	while (number != SL_PROJECT_NONE) {
		struct sl_project *project = &tree->all[number];

		add(&project->has, sign, has);
		add(&project->fixed, sign, fixed);
		add(&project->asks, sign, asks);
		number = project->parent;
	}
}

static void hold_up(struct sl_tree *tree, uint32_t number, int sign,
	const struct sl_quantity *holds, const struct sl_quantity *fixed)
{
	while (number != SL_PROJECT_NONE) {
		struct sl_project *project = &tree->all[number];

		add(&project->holds, sign, holds);
		add(&project->holds_fixed, sign, fixed);
		number = project->parent;
	}
}

static void move(struct sl_tree *tree, uint32_t number, uint32_t parent)
{
	const struct sl_project *project = &tree->all[number];

	if (project->parent == parent)
		return;
	hold_up(tree, project->parent, -1, &project->holds, &project->holds_fixed);
	book_up(tree, project->parent, -1, &project->has, &project->fixed,
		&project->asks);
	link_out(tree, number);
	link_in(tree, number, parent);
	book_up(tree, SL_MUTANT(TREE_MOVE_BARE, parent, SL_PROJECT_NONE), 1,
		&project->has, &project->fixed, &project->asks);
	hold_up(tree, parent, 1, &project->holds, &project->holds_fixed);
}

enum sl_tree_outcome sl_tree_put(struct sl_tree *tree, uint64_t id, uint32_t parent,
	const struct sl_project_rules *rules, sl_ns now, uint32_t *number)
{
	uint32_t known = sl_tree_find(tree, id);
	enum sl_tree_outcome outcome = judge(tree, known, parent, rules);

	if (outcome != SL_TREE_OK)
		return outcome;
	if (known == SL_PROJECT_NONE) {
		known = take_number(tree);
		if (known == SL_PROJECT_NONE)
			return SL_TREE_FULL;
		tree->all[known] = (struct sl_project){.used = true,
			.id = id,
			.first_child = SL_PROJECT_NONE,
			.created = now,
			.by_id = {.id = id}};
		sl_index_add(&tree->by_id, &tree->all[known].by_id);
		link_in(tree, known, parent);
	} else {
		move(tree, known, parent);
	}
	tree->all[known].rules = *rules;
	tree->changes++;
	*number = known;
	return SL_TREE_OK;
}

static bool is_empty(const struct sl_quantity *quantity)
{
	for (int r = 0; r < SL_RESOURCES; r++) {
		if (quantity->of[r])
			return false;
	}
	return true;
}

bool sl_tree_remove(struct sl_tree *tree, uint32_t number)
{
	struct sl_project *project = &tree->all[number];

	if (project->first_child != SL_PROJECT_NONE || !is_empty(&project->has) ||
		!is_empty(&project->fixed) || !is_empty(&project->asks) ||
		!is_empty(&project->holds))
		return false;
	link_out(tree, number);
	sl_index_remove(&tree->by_id, &project->by_id);
	*project = (struct sl_project){.next = tree->free};
	tree->free = number;
	tree->changes++;
	return true;
}

/* --- Books and shares. --- */

void sl_tree_book(struct sl_tree *tree, uint32_t number, int sign,
	const struct sl_quantity *has, const struct sl_quantity *fixed,
	const struct sl_quantity *asks)
{
	add(&tree->all[number].own_has, sign, has);
	add(&tree->all[number].own_asks, sign, asks);
	book_up(tree, number, sign, has, fixed, asks);
}

void sl_tree_hold(struct sl_tree *tree, uint32_t number, int sign,
	const struct sl_quantity *holds, const struct sl_quantity *fixed)
{
	hold_up(tree, number, sign, holds, fixed);
}

/* What the children leave of the project's quota. */
static struct sl_quantity left_by_children(
	const struct sl_tree *tree, const struct sl_project *project)
{
	struct sl_quantity left = project->rules.quota;

	for (uint32_t child = project->first_child; child != SL_PROJECT_NONE;
		child = tree->all[child].next) {
		for (int r = 0; r < SL_RESOURCES; r++) {
			int64_t given = tree->all[child].rules.quota.of[r];

			if (SL_MUTANT(TREE_OWN_WHOLE, left.of[r] > 0, false) && given > 0)
				left.of[r] = left.of[r] > given ? left.of[r] - given : 0;
		}
	}
	return left;
}

/* Computes what each branch could use, from below. */
static void use(struct sl_tree *tree, uint32_t first)
{
	for (uint32_t i = first; i != SL_PROJECT_NONE; i = tree->all[i].next) {
		struct sl_project *project = &tree->all[i];

		use(tree, project->first_child);
		project->own_quota = left_by_children(tree, project);
		project->usable = project->own_asks;
		for (uint32_t child = project->first_child; child != SL_PROJECT_NONE;
			child = tree->all[child].next)
			add(&project->usable, 1, &tree->all[child].usable);
		for (int r = 0; r < SL_RESOURCES; r++) {
			int64_t limit = project->rules.limit.of[r];

			if (SL_MUTANT(
				    TREE_ASKS_UNLIMITED, limit != SL_QUOTA_ALL, false) &&
				project->usable.of[r] > limit)
				project->usable.of[r] = limit;
		}
	}
}

static struct sl_fairshare_row row_of(const struct sl_project *project, int r)
{
	return (struct sl_fairshare_row){
		.quota = project->rules.quota.of[r],
		.limit = project->rules.limit.of[r],
		.asks = project->usable.of[r],
		.weight = project->rules.weight[r],
		.priority = project->rules.priority,
		.usage_ppm = project->usage_ppm[r],
		.created = project->created,
		.id = project->id,
	};
}

/* The jobs in the parent itself, as one more child. */
static struct sl_fairshare_row own_row(const struct sl_project *parent, int r)
{
	return (struct sl_fairshare_row){
		.quota = parent->own_quota.of[r],
		.limit = SL_QUOTA_ALL,
		.asks = parent->own_asks.of[r],
		.weight = 1,
		.created = parent->created,
		.id = parent->id,
	};
}

/* Shares `total` of one resource among the children of parent (NULL: the top level). */
static void share_level(struct sl_tree *tree, uint32_t first, struct sl_project *parent,
	int r, int64_t total)
{
	struct sl_fairshare_row *row = tree->rows;
	size_t count = 0;

	for (uint32_t i = first; i != SL_PROJECT_NONE; i = tree->all[i].next)
		row[count++] = row_of(&tree->all[i], r);
	if (parent)
		row[count++] = own_row(parent, r);
	sl_fairshare(row, count, total, r == SL_RES_GPU ? 1000 : 1);
	if (parent)
		parent->own_share.of[r] = row[count - 1].share;
	for (uint32_t i = first; i != SL_PROJECT_NONE; i = tree->all[i].next)
		tree->all[i].share.of[r] = row++->share;
}

static void share_branch(struct sl_tree *tree, uint32_t first, struct sl_project *parent,
	const struct sl_quantity *total)
{
	for (int r = 0; r < SL_RESOURCES; r++)
		share_level(tree, first, parent, r, total->of[r]);
	for (uint32_t i = first; i != SL_PROJECT_NONE; i = tree->all[i].next) {
		struct sl_project *project = &tree->all[i];

		if (project->first_child == SL_PROJECT_NONE)
			project->own_share = project->share;
		else
			share_branch(
				tree, project->first_child, project, &project->share);
	}
}

void sl_tree_share(struct sl_tree *tree, const struct sl_quantity *total)
{
	use(tree, tree->roots);
	share_branch(tree, tree->roots, NULL, total);
}

/* --- Questions. --- */

/* What counts against the limit of the project, or against its quota. */
static const struct sl_quantity *counted(
	const struct sl_project *project, bool within_quota, bool now)
{
	if (SL_MUTANT(TREE_QUOTA_ALL_JOBS, within_quota, false))
		return now ? &project->holds_fixed : &project->fixed;
	return now ? &project->holds : &project->has;
}

static bool allows(const struct sl_tree *tree, uint32_t number,
	const struct sl_quantity *more, bool within_quota, bool now, uint32_t *at,
	enum sl_resource *which)
{
	for (; number != SL_PROJECT_NONE;
		number = SL_MUTANT(
			TREE_OWN_LEVEL, tree->all[number].parent, SL_PROJECT_NONE)) {
		const struct sl_project *project = &tree->all[number];
		const struct sl_quantity *most =
			within_quota ? &project->rules.quota : &project->rules.limit;
		const struct sl_quantity *has = counted(project, within_quota, now);

		for (int r = 0; r < SL_RESOURCES; r++) {
			if (!more->of[r] || most->of[r] == SL_QUOTA_ALL ||
				has->of[r] + more->of[r] <= most->of[r])
				continue;
			if (at)
				*at = number;
			if (which)
				*which = (enum sl_resource)r;
			return false;
		}
	}
	return true;
}

bool sl_tree_allows(const struct sl_tree *tree, uint32_t number,
	const struct sl_quantity *more, bool within_quota, uint32_t *at,
	enum sl_resource *which)
{
	return allows(tree, number, more, within_quota, false, at, which);
}

bool sl_tree_allows_now(const struct sl_tree *tree, uint32_t number,
	const struct sl_quantity *more, bool within_quota, uint32_t *at,
	enum sl_resource *which)
{
	return allows(tree, number, more, within_quota, true, at, which);
}

bool sl_tree_branches(const struct sl_tree *tree, uint32_t a, uint32_t b,
	uint32_t *branch_a, uint32_t *branch_b)
{
	const struct sl_project *all = tree->all;

	while (all[a].depth > all[b].depth && all[a].parent != b)
		a = all[a].parent;
	while (all[b].depth > all[a].depth && all[b].parent != a)
		b = all[b].parent;
	if (a == b || all[a].parent == b || all[b].parent == a)
		return false;
	while (SL_MUTANT(TREE_BRANCH_LOW, all[a].parent != all[b].parent, false)) {
		a = all[a].parent;
		b = all[b].parent;
	}
	*branch_a = a;
	*branch_b = b;
	return true;
}

/* --- The check. --- */

/* *what minus the sums over the children of one project must be its own part. */
static bool sums_hold(const struct sl_tree *tree, const struct sl_project *project)
{
	struct sl_quantity has = project->own_has, asks = project->own_asks;

	for (uint32_t child = project->first_child; child != SL_PROJECT_NONE;
		child = tree->all[child].next) {
		add(&has, 1, &tree->all[child].has);
		add(&asks, 1, &tree->all[child].asks);
	}
	for (int r = 0; r < SL_RESOURCES; r++) {
		if (has.of[r] != project->has.of[r] || asks.of[r] != project->asks.of[r])
			return false;
		if (has.of[r] < 0 || project->fixed.of[r] < 0 ||
			project->fixed.of[r] > has.of[r])
			return false;
	}
	return true;
}

static int check_level(const struct sl_tree *tree, uint32_t parent, uint32_t first,
	uint32_t depth, uint32_t *seen, struct sl_error *err)
{
	for (uint32_t i = first; i != SL_PROJECT_NONE; i = tree->all[i].next) {
		const struct sl_project *project = &tree->all[i];

		if (++*seen > tree->high || !project->used || project->parent != parent ||
			project->depth != depth || depth >= SL_PROJECT_DEEP ||
			sl_tree_find(tree, project->id) != i) {
			sl_error_set(err, "project %" PRIu64 " is linked wrongly",
				project->id);
			return 1;
		}
		if (check_level(tree, i, project->first_child, depth + 1, seen, err))
			return 1;
		if (!sums_hold(tree, project)) {
			sl_error_set(err,
				"the books of project %" PRIu64 " do not add up",
				project->id);
			return 1;
		}
	}
	return 0;
}

int sl_tree_check(const struct sl_tree *tree, struct sl_error *err)
{
	uint32_t seen = 0;

	if (check_level(tree, SL_PROJECT_NONE, tree->roots, 0, &seen, err))
		return 1;
	if (seen != tree->by_id.count) {
		sl_error_set(err, "%u projects are linked and %u are known", seen,
			tree->by_id.count);
		return 1;
	}
	return 0;
}
