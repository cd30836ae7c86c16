/*
 * sluice advise: the request and limit that would have sufficed, by name of workload, and how many
 * GPUs that would save.
 */
#include "cli/conn/past.h"
#include "cli/line/table.h"

#include "base/file.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VERB SL_VERB_advise

struct settings {
	bool json;
	sl_ns last;
	const char *name;
};

const struct sl_option sl_verb_advise_options[] = {
	SL_OPT(struct settings, last, DURATION, "TIME", 60000, 315360000000,
		"Period until now. Default: 7d."),
	SL_OPT(struct settings, name, STRING, "NAME", 0, 0,
		"Only workloads of this name."),
	SL_OPT_JSON(struct settings),
	SL_OPT_END,
};

enum { NAME, RUNS, RAN, WORKED, MEAN, MOST, HAD, COMPUTE, ADVICE, COLUMNS };
static const struct sl_column columns[COLUMNS] = {
	[NAME] = {"NAME", false, 10, 0},
	[RUNS] = {"RUNS", true, 0, 1},
	[RAN] = {"RAN", true, 0, 2},
	[WORKED] = {"WORKED", true, 0, 3},
	[MEAN] = {"MEAN", true, 0, 4},
	[MOST] = {"MOST", true, 0, 0},
	[HAD] = {"REQUEST..LIMIT", false, 0, 5},
	[COMPUTE] = {"COMPUTE", true, 0, 6, .hides = true},
	[ADVICE] = {"ADVICE", false, 24, 0},
};

static uint64_t whole(const json_t *row, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(row, key));

	return value > 0 ? (uint64_t)value : 0;
}

static void set_advice(struct sl_table *table, const json_t *row)
{
	const json_t *advice = json_object_get(row, "advice");
	const char *verdict = json_string_value(json_object_get(row, "verdict"));
	const char *text = json_string_value(json_object_get(row, "text"));
	const json_t *share = json_object_get(json_object_get(row, "compute"), "advice");
	char request[32], limit[32], time[48] = "";

	if (json_is_number(share))
		(void)snprintf(time, sizeof(time), "--compute-request %g",
			json_number_value(share));
	if (json_is_object(advice) && verdict && strcmp(verdict, "change") == 0)
		sl_table_set(table, ADVICE, "--request %s --limit %s%s%s",
			sl_bytes_short(
				whole(advice, "request_bytes"), request, sizeof(request)),
			sl_bytes_short(
				whole(advice, "limit_bytes"), limit, sizeof(limit)),
			time[0] ? " " : "", time);
	else if (time[0])
		sl_table_set(table, ADVICE, "%s", time);
	else
		sl_table_set(table, ADVICE, "(%s)", text ? text : "?");
}

/* "0.5 used 12%": the request, and what it had of the time while others competed for it. */
static void set_compute(struct sl_table *table, const json_t *compute)
{
	const json_t *used = json_object_get(compute, "used");
	double request = json_number_value(json_object_get(compute, "request"));

	if (json_is_number(used))
		sl_table_set(table, COMPUTE, "%g used %.0f%%", request,
			json_number_value(used) * 100);
	else if (json_is_object(compute))
		sl_table_set(table, COMPUTE, "%g", request);
}

static bool add_line(struct sl_table *table, const json_t *row)
{
	const char *name = json_string_value(json_object_get(row, "name"));
	uint64_t span = whole(row, "span_s");
	char a[32], b[32];

	sl_table_set(table, NAME, "%s", name ? name : "?");
	sl_table_set(table, RUNS, "%llu", (unsigned long long)whole(row, "runs"));
	sl_table_set(table, RAN, "%s", sl_table_age(span * 1000, a, sizeof(a)));
	sl_table_set(table, WORKED, "%llu%%",
		(unsigned long long)(span ? whole(row, "active_s") * 100 / span : 0));
	sl_table_set(table, MEAN, "%s",
		sl_bytes_short(whole(row, "mean_bytes"), a, sizeof(a)));
	sl_table_set(table, MOST, "%s",
		sl_bytes_short(whole(row, "peak_bytes"), a, sizeof(a)));
	if (whole(row, "observed") == whole(row, "runs"))
		sl_table_set(table, HAD, "observed");
	else
		sl_table_set(table, HAD, "%s..%s",
			sl_bytes_short(whole(row, "request_bytes"), a, sizeof(a)),
			sl_bytes_short(whole(row, "limit_bytes"), b, sizeof(b)));
	set_compute(table, json_object_get(row, "compute"));
	set_advice(table, row);
	return sl_table_end_row(table);
}

static void print_total(const json_t *answer)
{
	uint64_t before = whole(answer, "gpus_before"),
		 after = whole(answer, "gpus_after");

	if (before == after)
		printf("\nAll of them together need %llu GPU%s, before and after.\n",
			(unsigned long long)before, before == 1 ? "" : "s");
	else if (before > after)
		printf("\nThis saves %llu of %llu GPU%s: all of them together, as often "
		       "as they ran at once, fit on %llu.\n",
			(unsigned long long)(before - after), (unsigned long long)before,
			before == 1 ? "" : "s", (unsigned long long)after);
	else
		printf("\nThis takes %llu GPUs instead of %llu: some need more than they "
		       "are guaranteed.\n",
			(unsigned long long)after, (unsigned long long)before);
	if (json_is_true(json_object_get(answer, "cut")))
		printf("(There were too many to count all of them.)\n");
}

static int draw(const json_t *answer)
{
	sl_cleanup(sl_table_freep) struct sl_table *table =
		sl_table_new(columns, COLUMNS);
	const json_t *row, *names = json_object_get(answer, "names");
	size_t i;

	if (json_array_size(names) == 0) {
		printf("Nothing ran in this time; let some program run, if need be with "
		       "sluice run --observe.\n");
		return sl_cli_finish(VERB, SL_EXIT_OK);
	}
	json_array_foreach(names, i, row) if (table && !add_line(table, row)) table =
		sl_table_free(table);
	if (!table)
		return sl_cli_fail(VERB, false, SL_EXIT_SYSTEM, "out of memory");
	sl_table_print(table, sl_table_terminal_width(STDOUT_FILENO), stdout);
	print_total(answer);
	return sl_cli_finish(VERB, SL_EXIT_OK);
}

int sl_verb_advise(int argc, char **argv)
{
	sl_cleanup(sl_freep) char *text = NULL;
	struct sl_msg_history ask = {.what = SL_HISTORY_ADVICE};
	struct settings s = {.last = 7 * 86400 * SL_S};
	size_t size = 0;
	json_t *answer;
	int first, status;

	status = sl_cli_parse(VERB, &s, argc, argv, &first);
	if (status >= 0)
		return status;
	if (s.name && strlen(s.name) >= sizeof(ask.name))
		return sl_cli_fail(
			VERB, s.json, SL_EXIT_USAGE, "--name is longer than any name");
	sl_wire_str(ask.name, sizeof(ask.name), s.name ? s.name : "");
	ask.from_ms = sl_sub_sat((uint64_t)time(NULL) * 1000, s.last / SL_MS);
	ask.step_s = 3600;
	status = sl_past_fetch(VERB, s.json, &ask, &text, &size);
	if (status >= 0)
		return status;
	if (s.json) {
		(void)fwrite(text, 1, size, stdout);
		return sl_cli_finish(VERB, SL_EXIT_OK);
	}
	status = sl_past_parse(VERB, text, size, &answer);
	if (status >= 0)
		return status;
	status = draw(answer);
	json_decref(answer);
	return status;
}
