/*
 * conformance - situations and outcomes taken as facts from another scheduler's public tests,
 * played to the cluster machine
 *
 *   conformance FILE [--only ID] [--verbose] [--exact]
 *
 * Each record has nodes, queues and jobs, the name of one action, and the state that each task has
 * after it. Printed per action are the tables, and how many are exact (every named task is in its
 * state) or placed (and on the node that the table names, if any). Violations are printed, too:
 * rules that must hold however victims and equal nodes are chosen. They are: nothing
 * over-allocated, gangs whole, limits and quotas kept, the same queues lose. Then come the tables
 * that are not exact, with the known reason.
 *
 * A record with rounds is played with all actions for so many of them; in between bound tasks run
 * and stopped ones are gone. Then it is compared, and in the rounds after that nothing may change.
 * Exit status 1: a violation, or, with --exact, a table that is not exact. rounds.json beside this
 * file has such records of our own.
 *
 * Gaps in the file are filled by rule, never by table: see table.h.
 */
#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
	const char *action;
	uint32_t tables, exact, placed, violations;
};

static struct row rows[] = {
	{"allocate"}, {"consolidation"}, {"reclaim"}, {"preempt"}, {"stalegangeviction"}};

static struct row *row_of(const char *action)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		if (!strcmp(rows[i].action, action))
			return &rows[i];
	}
	return NULL;
}

static void tell(const char *id, const struct verdict *verdict, bool verbose)
{
	if (verdict->violation[0])
		printf("%s: VIOLATION: %s\n", id, verdict->violation);
	if (verdict->differs[0])
		printf("%s: %s%s%s\n", id, verdict->differs, verdict->reason ? "; " : "",
			verdict->reason ? verdict->reason : "");
	else if (verbose)
		printf("%s: exact\n", id);
}

static bool play(const json_t *record, const char *only, bool verbose)
{
	const char *id = json_string_value(json_object_get(record, "id"));
	const char *action = json_string_value(json_object_get(record, "action"));
	struct row *row = action ? row_of(action) : NULL;
	struct verdict verdict = {.placed = true};

	if (!id || !row) {
		fprintf(stderr,
			"conformance: a record without id, or of an unknown action\n");
		return false;
	}
	if (only && strcmp(only, id))
		return true;
	table_play(record, action, verbose, &verdict);
	row->tables++;
	row->exact += !verdict.differs[0];
	row->placed += !verdict.differs[0] && verdict.placed;
	row->violations += verdict.violation[0] != 0;
	tell(id, &verdict, verbose);
	return true;
}

static void print_rows(void)
{
	struct row sum = {"all"};

	printf("%-18s %7s %7s %7s %11s\n", "action", "tables", "exact", "placed",
		"violations");
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		printf("%-18s %7u %7u %7u %11u\n", rows[i].action, rows[i].tables,
			rows[i].exact, rows[i].placed, rows[i].violations);
		sum.tables += rows[i].tables;
		sum.exact += rows[i].exact;
		sum.placed += rows[i].placed;
		sum.violations += rows[i].violations;
	}
	printf("%-18s %7u %7u %7u %11u\n", sum.action, sum.tables, sum.exact, sum.placed,
		sum.violations);
}

int main(int argc, char **argv)
{
	const char *file = NULL, *only = NULL;
	bool verbose = false, exact = false;
	json_error_t error;
	json_t *all;
	size_t i;
	json_t *record;
	uint32_t violations = 0;

	for (int a = 1; a < argc; a++) {
		if (!strcmp(argv[a], "--only") && a + 1 < argc)
			only = argv[++a];
		else if (!strcmp(argv[a], "--verbose"))
			verbose = true;
		else if (!strcmp(argv[a], "--exact"))
			exact = true;
		else
			file = argv[a];
	}
	if (!file) {
		fprintf(stderr,
			"usage: conformance FILE [--only ID] [--verbose] [--exact]\n");
		return 2;
	}
	all = json_load_file(file, 0, &error);
	if (!json_is_array(all)) {
		fprintf(stderr, "conformance: %s, line %d: %s\n", file, error.line,
			all ? "a list of records is expected" : error.text);
		return 2;
	}
	json_array_foreach(all, i, record)
	{
		if (!play(record, only, verbose))
			return 2;
	}
	json_decref(all);
	print_rows();
	for (size_t r = 0; r < SL_ARRAY_LEN(rows); r++)
		violations +=
			rows[r].violations + (exact ? rows[r].tables - rows[r].exact : 0);
	return violations > 0;
}
