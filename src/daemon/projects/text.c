/*
 * text - a row as the file that it could have come from
 *
 * Leaves out fields that equal the default. Names need no quotes: they contain neither blanks nor
 * any character special to YAML. A word such as `yes` or a number is special to YAML, but our
 * reader takes it as text.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/projects/projects.h"
#include "policy/quota/explain.h"

static void write_resource(FILE *out, const struct sl_project_row *row,
	const struct sl_project_row *plain, enum sl_resource r)
{
	const char *between = "";
	char text[32];

	if (row->quota.of[r] == plain->quota.of[r] &&
		row->limit.of[r] == plain->limit.of[r] &&
		row->weight[r] == plain->weight[r])
		return;
	(void)fprintf(out, "    %s: {", sl_resource_name(r));
	if (row->quota.of[r] != plain->quota.of[r]) {
		(void)fprintf(out, "quota: %s",
			sl_project_amount(r, row->quota.of[r], text, sizeof(text)));
		between = ", ";
	}
	if (row->limit.of[r] != plain->limit.of[r]) {
		(void)fprintf(out, "%slimit: %s", between,
			sl_project_amount(r, row->limit.of[r], text, sizeof(text)));
		between = ", ";
	}
	if (row->weight[r] != plain->weight[r])
		(void)fprintf(
			out, "%sover_quota_weight: %" PRIu32, between, row->weight[r]);
	(void)fputs("}\n", out);
}

static void write_list(FILE *out, const char *key, const char *list)
{
	if (list[0])
		(void)fprintf(out, "    %s: [%s]\n", key, list);
}

static void write_time(FILE *out, const char *key, sl_ns span)
{
	if (span && span % SL_S == 0)
		(void)fprintf(
			out, "    %s: %" PRIu64 "s\n", key, (uint64_t)(span / SL_S));
	else if (span)
		(void)fprintf(
			out, "    %s: %" PRIu64 "ms\n", key, (uint64_t)(span / SL_MS));
}

void sl_project_write(FILE *out, const struct sl_project_row *row)
{
	struct sl_project_row plain;

	sl_project_defaults(&plain, row->name);
	(void)fprintf(out, "  %s:\n", row->name);
	if (row->parent[0])
		(void)fprintf(out, "    parent: %s\n", row->parent);
	for (int r = 0; r < SL_RESOURCES; r++)
		write_resource(out, row, &plain, (enum sl_resource)r);
	if (row->priority)
		(void)fprintf(out, "    priority: %" PRId32 "\n", row->priority);
	write_list(out, "users", row->users);
	write_list(out, "groups", row->groups);
	write_list(out, "pools", row->pools);
	write_time(out, "preempt_min_runtime", row->preempt_min_runtime);
	write_time(out, "reclaim_min_runtime", row->reclaim_min_runtime);
	if (row->no_swap)
		(void)fputs("    swap: no\n", out);
}
