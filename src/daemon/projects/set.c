/*
 * set - see the header
 *
 * Checks of a whole set look names up in an index of pointers sorted by name, made for each check.
 * Sets are small and change rarely, and a kept index would need upkeep.
 */
#include "daemon/projects/projects.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "daemon/projects/value.h"
#include "policy/quota/explain.h"
#include "wire/wire.h"

void sl_projects_fini(struct sl_projects *set)
{
	free(set->rows);
	*set = (struct sl_projects){0};
}

void sl_project_defaults(struct sl_project_row *row, const char *name)
{
	*row = (struct sl_project_row){0};
	for (int r = 0; r < SL_RESOURCES; r++) {
		row->quota.of[r] = row->limit.of[r] = SL_QUOTA_ALL;
		row->weight[r] = 1;
	}
	row->quota.of[SL_RES_GPU] = 0;
	(void)snprintf(row->name, sizeof(row->name), "%s", name);
}

struct sl_project_row *sl_projects_find(const struct sl_projects *set, const char *name)
{
	for (size_t i = 0; i < set->count; i++) {
		if (strcmp(set->rows[i].name, name) == 0)
			return &set->rows[i];
	}
	return NULL;
}

static int make_room(struct sl_projects *set, size_t count)
{
	size_t room = set->room ? set->room : 16;
	struct sl_project_row *rows;

	if (count > SL_PROJECTS_MAX)
		return -ENOSPC;
	if (count <= set->room)
		return 0;
	while (room < count)
		room *= 2;
	rows = realloc(set->rows, room * sizeof(rows[0]));
	if (!rows)
		return -ENOMEM;
	set->rows = rows;
	set->room = room;
	return 0;
}

int sl_projects_put(struct sl_projects *set, const struct sl_project_row *row)
{
	struct sl_project_row *known = sl_projects_find(set, row->name);
	uint64_t id = known ? known->id : row->id;
	int r;

	if (!known) {
		r = make_room(set, set->count + 1);
		if (r < 0)
			return r;
		known = &set->rows[set->count++];
	}
	*known = *row;
	known->id = id;
	return 0;
}

void sl_projects_drop(struct sl_projects *set, const char *name)
{
	struct sl_project_row *row = sl_projects_find(set, name);

	if (row)
		memmove(row, row + 1,
			(size_t)(set->rows + --set->count - row) * sizeof(*row));
}

int sl_projects_copy(struct sl_projects *to, const struct sl_projects *from)
{
	int r = make_room(to, from->count);

	if (r < 0)
		return r;
	if (from->count)
		memcpy(to->rows, from->rows, from->count * sizeof(from->rows[0]));
	to->count = from->count;
	return 0;
}

/* --- One row. --- */

static bool is_list(const char *list, size_t size)
{
	char one[SL_PROJECT_LIST_MAX];

	if (!memchr(list, '\0', size))
		return false;
	while (*list) {
		size_t length = strcspn(list, ",");

		(void)snprintf(one, sizeof(one), "%.*s", (int)length, list);
		if (!sl_project_is_name(one) && strcmp(one, "_") != 0)
			return false;
		list += length;
		if (*list && !*++list)
			return false;
	}
	return true;
}

static bool is_amount(int64_t amount)
{
	return amount >= SL_QUOTA_ALL && amount <= SL_QUOTA_MOST / (2 * SL_PROJECTS_MAX);
}

static int check_amounts(const struct sl_project_row *row, struct sl_error *err)
{
	for (uint32_t r = 0; r < SL_RESOURCES; r++) {
		int64_t quota = row->quota.of[r], limit = row->limit.of[r];
		char a[32], b[32];

		if (!is_amount(quota) || !is_amount(limit) ||
			row->weight[r] > SL_PROJECT_WEIGHT) {
			sl_error_set(err,
				"project %s: %s: a number is negative or too large; "
				"write "
				"smaller ones",
				row->name, sl_resource_name(r));
			return SL_PROJECTS_BAD;
		}
		if (limit == SL_QUOTA_ALL || quota <= limit)
			continue;
		sl_error_set(err,
			"project %s: %s.quota %s is above %s.limit %s; lower the quota, "
			"or raise "
			"the limit",
			row->name, sl_resource_name(r),
			sl_project_amount((enum sl_resource)r, quota, a, sizeof(a)),
			sl_resource_name(r),
			sl_project_amount((enum sl_resource)r, limit, b, sizeof(b)));
		return SL_PROJECTS_BAD;
	}
	return SL_PROJECTS_OK;
}

int sl_project_check(const struct sl_project_row *row, struct sl_error *err)
{
	if (!memchr(row->name, '\0', sizeof(row->name)) ||
		!sl_project_is_name(row->name)) {
		sl_error_set(err,
			"'%.63s' is no name of a project; write letters, digits, '.', "
			"'_' and '-', "
			"at most 63",
			row->name);
		return SL_PROJECTS_BAD;
	}
	if (!memchr(row->parent, '\0', sizeof(row->parent)) ||
		(row->parent[0] && !sl_project_is_name(row->parent)) ||
		row->priority < -SL_PRIORITY_MAX || row->priority > SL_PRIORITY_MAX ||
		!is_list(row->users, sizeof(row->users)) ||
		!is_list(row->groups, sizeof(row->groups)) ||
		!is_list(row->pools, sizeof(row->pools))) {
		sl_error_set(err,
			"project %s: a field is not what it may be; apply it with the "
			"sluice of "
			"this version",
			row->name);
		return SL_PROJECTS_BAD;
	}
	return check_amounts(row, err);
}

/* --- A whole set. --- */

/* Pointers to the rows, sorted. */
struct index {
	const struct sl_project_row **at;
	size_t count;
};

static int by_name(const void *a, const void *b)
{
	const struct sl_project_row *const *left = a, *const *right = b;

	return strcmp((*left)->name, (*right)->name);
}

static int name_is(const void *name, const void *b)
{
	const struct sl_project_row *const *row = b;

	return strcmp(name, (*row)->name);
}

static const struct sl_project_row *look_up(const struct index *index, const char *name)
{
	const struct sl_project_row **found =
		bsearch(name, index->at, index->count, sizeof(index->at[0]), name_is);

	return found ? *found : NULL;
}

static int check_parents(const struct index *index, const struct sl_project_row **culprit,
	struct sl_error *err)
{
	for (size_t i = 0; i < index->count; i++) {
		*culprit = index->at[i];
		if (i && strcmp(index->at[i - 1]->name, index->at[i]->name) == 0) {
			sl_error_set(err, "project %s comes twice; remove one",
				index->at[i]->name);
			return SL_PROJECTS_BAD;
		}
		if (!index->at[i]->parent[0] || look_up(index, index->at[i]->parent))
			continue;
		sl_error_set(err,
			"project %s: there is no project %s for its parent; add it, or "
			"name "
			"another one",
			index->at[i]->name, index->at[i]->parent);
		return SL_PROJECTS_BAD;
	}
	return SL_PROJECTS_OK;
}

/* A cycle upwards from row: the project is its own ancestor, and this is how. */
static void say_the_cycle(
	const struct index *index, const struct sl_project_row *row, struct sl_error *err)
{
	const struct sl_project_row *at = row;
	char way[300] = "";
	size_t used = 0;

	do {
		at = look_up(index, at->parent);
		used += (size_t)snprintf(way + used, sizeof(way) - used,
			", %s is below %s", used ? "which" : "it", at->name);
	} while (at != row && used < sizeof(way));
	sl_error_set(err,
		"project %s stands above itself: %s%s; take the parent away from one of "
		"them",
		row->name, way + 2, used < sizeof(way) ? "" : "...");
}

static int check_levels(const struct index *index, const struct sl_project_row **culprit,
	struct sl_error *err)
{
	for (size_t i = 0; i < index->count; i++) {
		const struct sl_project_row *at = index->at[i];
		size_t levels = 1;

		for (; at->parent[0] && levels <= index->count; levels++) {
			at = look_up(index, at->parent);
			if (at != index->at[i])
				continue;
			*culprit = at;
			say_the_cycle(index, at, err);
			return SL_PROJECTS_BAD;
		}
		/* More levels than rows: it meets a cycle, for which another row is blamed. */
		if (levels <= SL_PROJECT_DEEP || levels > index->count)
			continue;
		*culprit = index->at[i];
		sl_error_set(err,
			"project %s stands %zu levels deep, and %d are possible; put it "
			"higher up",
			index->at[i]->name, levels, SL_PROJECT_DEEP);
		return SL_PROJECTS_BAD;
	}
	return SL_PROJECTS_OK;
}

static int by_parent(const void *a, const void *b)
{
	const struct sl_project_row *const *left = a, *const *right = b;
	int differ = strcmp((*left)->parent, (*right)->parent);

	return differ ? differ : by_name(a, b);
}

static bool sum_is_above(const struct sl_project_row *parent,
	const struct sl_quantity *sum, struct sl_error *err)
{
	for (uint32_t r = 0; r < SL_RESOURCES; r++) {
		char a[32], b[32];

		if (parent->quota.of[r] == SL_QUOTA_ALL ||
			sum->of[r] <= parent->quota.of[r])
			continue;
		sl_error_set(err,
			"project %s: its children have %s.quota %s together, and it has "
			"%s; raise "
			"its quota, or lower theirs",
			parent->name, sl_resource_name(r),
			sl_project_amount((enum sl_resource)r, sum->of[r], a, sizeof(a)),
			sl_project_amount(
				(enum sl_resource)r, parent->quota.of[r], b, sizeof(b)));
		return true;
	}
	return false;
}

/* Needs two orders of the rows: by name, to find parents, and by parent, to add up. */
static int check_sums(const struct index *index, const struct sl_project_row **sorted,
	const struct sl_project_row **culprit, struct sl_error *err)
{
	for (size_t i = 0; i < index->count;) {
		const char *parent = sorted[i]->parent;
		struct sl_quantity sum = {{0}};

		for (; i < index->count && strcmp(sorted[i]->parent, parent) == 0; i++) {
			for (int r = 0; r < SL_RESOURCES; r++)
				sum.of[r] += sorted[i]->quota.of[r] > 0
						     ? sorted[i]->quota.of[r]
						     : 0;
		}
		*culprit = parent[0] ? look_up(index, parent) : NULL;
		if (*culprit && sum_is_above(*culprit, &sum, err))
			return SL_PROJECTS_BAD;
	}
	return SL_PROJECTS_OK;
}

static const struct sl_project_row **pointers(
	const struct sl_projects *set, int (*compare)(const void *a, const void *b))
{
	const struct sl_project_row **rows =
		calloc(set->count ? set->count : 1, sizeof(rows[0]));

	for (size_t i = 0; rows && i < set->count; i++)
		rows[i] = &set->rows[i];
	if (rows)
		qsort(rows, set->count, sizeof(rows[0]), compare);
	return rows;
}

int sl_projects_check(const struct sl_projects *set,
	const struct sl_project_row **culprit, struct sl_error *err)
{
	sl_cleanup(sl_freep) const struct sl_project_row **named = pointers(set, by_name);
	sl_cleanup(sl_freep) const struct sl_project_row **sorted =
		pointers(set, by_parent);
	struct index index = {.at = named, .count = set->count};
	const struct sl_project_row *unused;

	if (!culprit)
		culprit = &unused;
	*culprit = NULL;
	if (!named || !sorted) {
		sl_error_set(err, "no memory to look at %zu projects", set->count);
		return SL_PROJECTS_BAD;
	}
	for (size_t i = 0; i < set->count; i++) {
		*culprit = &set->rows[i];
		if (sl_project_check(&set->rows[i], err) != SL_PROJECTS_OK)
			return SL_PROJECTS_BAD;
	}
	if (check_parents(&index, culprit, err) != SL_PROJECTS_OK ||
		check_levels(&index, culprit, err) != SL_PROJECTS_OK ||
		check_sums(&index, sorted, culprit, err) != SL_PROJECTS_OK)
		return SL_PROJECTS_BAD;
	*culprit = NULL;
	return SL_PROJECTS_OK;
}

static int parent_is(const void *name, const void *b)
{
	const struct sl_project_row *const *row = b;

	return strcmp(name, (*row)->parent);
}

/* Writes the children of parent, each followed by its own children, to out. */
static size_t lay_out(const struct index *sorted, const char *parent,
	struct sl_project_row *out, size_t at)
{
	const struct sl_project_row **child = bsearch(
		parent, sorted->at, sorted->count, sizeof(sorted->at[0]), parent_is);

	while (child && child > sorted->at && strcmp(child[-1]->parent, parent) == 0)
		child--;
	for (; child && child < sorted->at + sorted->count &&
		strcmp((*child)->parent, parent) == 0;
		child++) {
		out[at++] = **child;
		at = lay_out(sorted, (*child)->name, out, at);
	}
	return at;
}

void sl_projects_sort(struct sl_projects *set)
{
	sl_cleanup(sl_freep) const struct sl_project_row **sorted =
		pointers(set, by_parent);
	struct index index = {.at = sorted, .count = set->count};
	struct sl_project_row *out = calloc(set->room ? set->room : 1, sizeof(out[0]));

	/* Without memory the order stays as it is: it serves readers only. */
	if (sorted && out && lay_out(&index, "", out, 0) == set->count) {
		free(set->rows);
		set->rows = out;
	} else {
		free(out);
	}
}

struct sl_project_rules sl_project_rules_of(const struct sl_project_row *row,
	int (*pool_bit)(void *context, const char *name), void *context)
{
	struct sl_project_rules rules = {
		.quota = row->quota,
		.limit = row->limit,
		.weight = {row->weight[0], row->weight[1], row->weight[2]},
		.priority = row->priority,
		.preempt_min_runtime = row->preempt_min_runtime,
		.reclaim_min_runtime = row->reclaim_min_runtime,
		.no_swap = row->no_swap,
	};

	for (const char *at = row->pools; *at;) {
		size_t length = strcspn(at, ",");
		char name[SL_PROJECT_NAME_MAX];
		int bit;

		(void)snprintf(name, sizeof(name), "%.*s", (int)length, at);
		bit = pool_bit ? pool_bit(context, name) : -1;
		if (bit >= 0 && bit < 32)
			rules.pools |= 1ull << bit;
		at += length + (at[length] == ',');
	}
	if (row->pools[0] && !rules.pools)
		rules.pools = 1ull << 63;
	return rules;
}
