/*
 * A refused file of projects leaves the set empty and says why. An accepted file has rows that are
 * in range, and that are the same when read again. If the set was found consistent, the policy's
 * tree accepts its rows. Most inputs follow the beginning of a valid file: chance alone would never
 * write one.
 */
#include "fuzz.h"

#include "daemon/projects/projects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 4096

static const char *const starts[] = {
	"",
	"projects:\n",
	"projects: {a: {",
	"projects: {a: {gpu: {quota: ",
	"projects: {a: {gpu: {limit: 1, over_quota_weight: ",
	"projects: {a: {memory: {limit: ",
	"projects: {a: {cpu: {quota: 1}, parent: ",
	"projects: {a: {users: [",
	"projects: {a: {reclaim_min_runtime: ",
	"projects: {a: {priority: ",
	"projects: {a: {swap: ",
	"projects: {a: {parent: b}, b: {parent: c}, c: {parent: ",
};

/* A set that fits together must be a tree for the policy as well. */
static void plant(const struct sl_projects *set)
{
	struct sl_arena *arena = sl_arena_new();
	struct sl_tree tree;

	sl_tree_init(&tree, arena, (uint32_t)set->count);
	for (size_t i = 0; i < set->count; i++) {
		const struct sl_project_row *row = &set->rows[i];
		struct sl_project_rules rules = sl_project_rules_of(row, NULL, NULL);
		uint32_t parent = SL_PROJECT_NONE, number;

		for (size_t j = 0; j < i; j++) {
			if (strcmp(set->rows[j].name, row->parent) == 0)
				parent = sl_tree_find(&tree, j + 1);
		}
		if ((row->parent[0] && parent == SL_PROJECT_NONE) ||
			sl_tree_put(&tree, i + 1, parent, &rules, i, &number) !=
				SL_TREE_OK)
			abort();
	}
	sl_arena_free(arena);
}

/* As text, each row is read as the same row. */
static void write_and_read(const struct sl_projects *set)
{
	struct sl_projects again = {0};
	struct sl_error err = {{0}};
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	(void)fputs("projects:\n", out);
	for (size_t i = 0; i < set->count; i++)
		sl_project_write(out, &set->rows[i]);
	(void)fclose(out);
	if (sl_projects_parse(text, size, "again", &again, &err) != SL_PROJECTS_OK ||
		again.count != set->count)
		abort();
	for (size_t i = 0; i < set->count; i++) {
		again.rows[i].line = set->rows[i].line;
		if (memcmp(&again.rows[i], &set->rows[i], sizeof(again.rows[i])) != 0)
			abort();
	}
	sl_projects_fini(&again);
	free(text);
}

static void check(struct sl_projects *set)
{
	const struct sl_project_row *culprit = NULL;
	struct sl_error err = {{0}};

	for (size_t i = 0; i < set->count; i++) {
		if (sl_project_check(&set->rows[i], &err) != SL_PROJECTS_OK ||
			sl_projects_find(set, set->rows[i].name) != &set->rows[i])
			abort();
	}
	if (sl_projects_check(set, &culprit, &err) != SL_PROJECTS_OK) {
		if (!err.text[0] || !culprit)
			abort();
		return;
	}
	sl_projects_sort(set);
	plant(set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sl_projects set = {0}, again = {0};
	struct sl_error err = {{0}};
	char text[TEXT_MAX];
	size_t used;
	int r;

	if (size < 1)
		return 0;
	used = (size_t)snprintf(
		text, sizeof(text), "%s", starts[data[0] % SL_ARRAY_LEN(starts)]);
	size = sl_min_u64(size - 1, TEXT_MAX - used);
	memcpy(text + used, data + 1, size);
	r = sl_projects_parse(text, used + size, "fuzz", &set, &err);
	if (r != SL_PROJECTS_OK && (!err.text[0] || set.count || set.rows))
		abort();
	if (r == SL_PROJECTS_OK) {
		if (sl_projects_parse(text, used + size, "fuzz", &again, &err) !=
				SL_PROJECTS_OK ||
			again.count != set.count)
			abort();
		for (size_t i = 0; i < set.count; i++) {
			if (memcmp(&set.rows[i], &again.rows[i], sizeof(set.rows[i])) !=
				0)
				abort();
		}
		write_and_read(&set);
		check(&set);
	}
	sl_projects_fini(&set);
	sl_projects_fini(&again);
	return 0;
}
