/*
 * report - rows to bench.json and a table
 *
 * A time over its budget is a finding, not a failure: machines differ, and the file is for
 * comparing. A missing row is a failure. A row with null could not be measured here, because the
 * machine lacks something that Sluice itself does not need.
 */
#include "bench.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define ROWS_FILE_MAX (4u << 20)

/* Does any row of the file carry this name, with or without a variant? */
static bool has_row(json_t *all, const char *name)
{
	size_t length = strlen(name);

	for (size_t i = 0; i < json_array_size(all); i++) {
		const char *have = json_string_value(
			json_object_get(json_array_get(all, i), "name"));

		if (have && strncmp(have, name, length) == 0 &&
			(have[length] == '\0' || have[length] == ':'))
			return true;
	}
	return false;
}

static json_t *read_rows(const char *path)
{
	sl_cleanup(sl_freep) char *text = NULL;
	json_t *all = json_array();
	size_t size = 0;
	char *rest = NULL;
	int r = sl_file_read(path, ROWS_FILE_MAX, &text, &size);

	bench_require(r == 0, "%s: %s", path, strerror(-r));
	for (char *line = strtok_r(text, "\n", &rest); line;
		line = strtok_r(NULL, "\n", &rest)) {
		json_error_t error;
		json_t *row = json_loads(line, 0, &error);

		bench_require(row, "%s: '%s' is not a row: %s", path, line, error.text);
		(void)json_array_append_new(all, row);
	}
	return all;
}

static void print_row(json_t *row)
{
	const char *reference = json_string_value(json_object_get(row, "ratio_to"));
	double value = json_number_value(json_object_get(row, "value"));
	json_t *budget = json_object_get(row, "budget");
	const char *verdict = "";
	char limit[32] = "";

	if (json_is_null(json_object_get(row, "value"))) {
		(void)printf("%-42s %10s\n",
			json_string_value(json_object_get(row, "name")), "none here");
		return;
	}
	if (json_is_number(budget)) {
		(void)snprintf(limit, sizeof(limit), "%.4g", json_number_value(budget));
		verdict = value <= json_number_value(budget) ? "within" : "OVER";
	}
	(void)printf("%-42s %10.5g %-6s %8s  %-6s %-9s %s%s\n",
		json_string_value(json_object_get(row, "name")), value,
		json_string_value(json_object_get(row, "unit")), limit, verdict,
		json_string_value(json_object_get(row, "on")),
		reference ? "against " : "", reference ? reference : "");
}

int bench_part_report(int argc, char **argv)
{
	sl_cleanup(sl_freep) char *text = NULL;
	int missing = 0, r;
	json_t *all;

	bench_require(argc == 3, "report ROWS OUT");
	all = read_rows(argv[1]);
	(void)printf("%-42s %10s %-6s %8s  %-6s %s\n", "row", "value", "unit", "at most",
		"", "on");
	for (size_t i = 0; i < json_array_size(all); i++)
		print_row(json_array_get(all, i));
	for (size_t i = 0; i < BENCH_ROWS; i++) {
		if (has_row(all, bench_rows[i].name))
			continue;
		(void)printf("%-42s %10s\n", bench_rows[i].name, "missing");
		missing++;
	}
	text = json_dumps(all, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
	bench_require(text, "out of memory");
	r = sl_file_replace(argv[2], text, strlen(text), false);
	bench_require(r == 0, "%s: %s", argv[2], strerror(-r));
	json_decref(all);
	if (missing)
		(void)fprintf(stderr, "bench: %d rows could not be measured\n", missing);
	return missing ? 1 : 0;
}
