/*
 * sluice history: GPU time that was allocated and used, by user, project or other subject.
 *
 * The daemon adds up. The verb asks for as many steps as a line has space for, and draws them.
 * --json and --csv print the daemon's answer unchanged.
 */
#include "cli/conn/past.h"
#include "cli/conn/rows.h"
#include "cli/line/table.h"
#include "cli/line/text.h"

#include "base/file.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VERB SL_VERB_history
/* Steps of the line over time, and characters of the bar. */
#define STEPS 24
#define BAR   20

struct settings {
	bool json, csv;
	const char *from, *to, *by, *name;
	sl_ns last, step;
};

const struct sl_option sl_verb_history_options[] = {
	SL_OPT(struct settings, last, DURATION, "TIME", 1000, 315360000000,
		"Period until now, or until --to. Default: 24h."),
	SL_OPT(struct settings, from, STRING, "WHEN", 0, 0,
		"Start of the period: \"2026-11-22 10:00\", 2026-11-22, or 10:00."),
	SL_OPT(struct settings, to, STRING, "WHEN", 0, 0,
		"End of the period. Default: now."),
	SL_OPT(struct settings, by, STRING, "user|project|gpu|workload|program", 0, 0,
		"Subject of a line. Default: user."),
	SL_OPT(struct settings, name, STRING, "NAME", 0, 0, "Only this subject."),
	SL_OPT(struct settings, step, DURATION, "TIME", 1000, 31536000000,
		"With --json and --csv: time per row."),
	SL_OPT(struct settings, csv, FLAG, NULL, 0, 0, "Print CSV, a row for each step."),
	SL_OPT_JSON(struct settings),
	SL_OPT_END,
};

static const char *const words[SL_HISTORY_BYS] = {
	"user", "project", "gpu", "workload", "program"};
static const char *const titles[SL_HISTORY_BYS] = {
	"USER", "PROJECT", "GPU", "WORKLOAD", "PROGRAM"};

enum { WHO, ALLOCATED, USED, IDLE, USE, BARS, OVER_TIME, MOST, WAITED, OUT, IN, COLUMNS };

/* --- the question ------------------------------------------------------------------------- */

static int refuse(const struct settings *s, const char *format, const char *what)
{
	return sl_cli_fail(VERB, s->json, SL_EXIT_USAGE, format, what);
}

static int choose_time(const struct settings *s, struct sl_msg_history *ask)
{
	time_t now = time(NULL);
	struct sl_error err = {0};

	ask->to_ms = (uint64_t)now * 1000 + 999;
	if (s->to && !sl_past_time(s->to, now, &ask->to_ms, &err))
		return refuse(s, "--to: %s", err.text);
	if (s->from && s->last)
		return refuse(s, "%s", "--from and --last say the same; leave one out");
	ask->from_ms = sl_sub_sat(ask->to_ms, (s->last ? s->last : 86400 * SL_S) / SL_MS);
	if (s->from && !sl_past_time(s->from, now, &ask->from_ms, &err))
		return refuse(s, "--from: %s", err.text);
	if (ask->from_ms >= ask->to_ms)
		return refuse(s, "%s", "the period ends before it starts");
	return -1;
}

static int choose(const struct settings *s, struct sl_msg_history *ask)
{
	uint64_t span_s;
	int status;

	ask->what = SL_HISTORY_USAGE;
	ask->by = SL_HISTORY_BY_USER;
	if (s->by) {
		for (ask->by = 0; ask->by < SL_HISTORY_BYS; ask->by++) {
			if (strcmp(s->by, words[ask->by]) == 0)
				break;
		}
		if (ask->by == SL_HISTORY_BYS)
			return refuse(s,
				"--by %.40s: write user, project, gpu, workload or "
				"program",
				s->by);
	}
	if (s->json && s->csv)
		return refuse(s, "%s", "either --json or --csv");
	if (s->step && !s->json && !s->csv)
		return refuse(s, "%s", "--step goes with --json or --csv");
	if (s->step % SL_S)
		return refuse(s, "%s", "--step: whole seconds only");
	if (s->name && strlen(s->name) >= sizeof(ask->name))
		return refuse(s, "%s", "--name is longer than any name");
	if (s->name)
		sl_wire_str(ask->name, sizeof(ask->name), s->name);
	status = choose_time(s, ask);
	if (status >= 0)
		return status;
	ask->format = s->csv ? SL_HISTORY_CSV : SL_HISTORY_JSON;
	ask->step_s = (uint32_t)(s->step / SL_S);
	/* Whole minutes and hours, which the daemon has precomputed. */
	span_s = (ask->to_ms - ask->from_ms) / 1000 + 1;
	if (!s->json && !s->csv) {
		uint64_t step = (span_s + STEPS - 1) / STEPS;
		uint64_t unit = step > 3600 ? 3600 : step > 60 ? 60 : 1;

		ask->step_s = (uint32_t)((step + unit - 1) / unit * unit);
	}
	return -1;
}

/* --- drawing ------------------------------------------------------------------------------ */

static double real(const json_t *row, const char *key)
{
	return json_number_value(json_object_get(row, key));
}

static uint64_t whole(const json_t *row, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(row, key));

	return value > 0 ? (uint64_t)value : 0;
}

/* As on the page (units.js): hours if there are any, else minutes. */
static const char *gpu_time(double seconds, char *buf, size_t size)
{
	if (seconds >= 3600)
		(void)snprintf(buf, size, "%.1fh", seconds / 3600);
	else if (seconds >= 60)
		(void)snprintf(buf, size, "%.1fm", seconds / 60);
	else
		(void)snprintf(buf, size, "%.1fs", seconds);
	return buf;
}

static const char *waited(uint64_t ms, char *buf, size_t size)
{
	if (!ms)
		return "-";
	return ms < 1000 ? sl_span_format(ms * SL_MS, buf, size)
			 : sl_table_age(ms, buf, size);
}

/* A bar relative to the largest allocation: the used and the unused part. */
static void bar(double allocated, double used, double most, char *buf, size_t size)
{
	int all = most > 0 ? (int)(allocated / most * BAR + 0.5) : 0;
	int solid = most > 0 ? (int)(used / most * BAR + 0.5) : 0;

	buf[0] = '\0';
	if (all == 0 && allocated > 0)
		all = 1;
	solid = solid > all ? all : solid;
	for (int i = 0; i < all; i++)
		(void)snprintf(buf + strlen(buf), size - strlen(buf), "%s",
			i < solid ? "█" : "░");
}

struct drawing {
	const json_t *answer;
	uint32_t by;
	uint64_t first_ms, step_ms;
	double most; /* allocated, largest of all lines */
};

/* Allocation in each step, relative to the largest step of this line. */
static void over_time(
	const struct drawing *drawing, const char *key, char *buf, size_t size)
{
	static const char *const heights[] = {
		" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	double steps[STEPS + 2] = {0}, most = 0;
	const json_t *row, *rows = json_object_get(drawing->answer, "rows");
	size_t i, last = 0;

	json_array_foreach(rows, i, row)
	{
		const char *of = json_string_value(json_object_get(row, "key"));
		uint64_t at = (whole(row, "t_ms") - drawing->first_ms) / drawing->step_ms;

		if (!of || strcmp(of, key) != 0 || at >= SL_ARRAY_LEN(steps))
			continue;
		steps[at] += real(row, "allocated_gpu_s");
		most = steps[at] > most ? steps[at] : most;
	}
	last = (whole(drawing->answer, "to_ms") - drawing->first_ms) / drawing->step_ms;
	buf[0] = '\0';
	for (i = 0; i <= last && i < SL_ARRAY_LEN(steps); i++) {
		int height = most > 0 ? (int)(steps[i] / most * 8 + 0.5) : 0;

		if (height == 0 && steps[i] > 0)
			height = 1;
		(void)snprintf(
			buf + strlen(buf), size - strlen(buf), "%s", heights[height]);
	}
}

static bool add_line(
	struct sl_table *table, const struct drawing *drawing, const json_t *row)
{
	const char *key = json_string_value(json_object_get(row, "key"));
	const char *name = json_string_value(json_object_get(row, "name"));
	const json_t *utilisation = json_object_get(row, "utilisation");
	double allocated = real(row, "allocated_gpu_s");
	double used = real(row, "used_gpu_s");
	char text[SL_TABLE_CELL_MAX];

	key = key ? key : "?";
	name = name && name[0] ? name : key;
	/* Numbers of workloads are reused; names of GPUs do not tell them apart. */
	if (drawing->by == SL_HISTORY_BY_GPU)
		sl_table_set(table, WHO, "%s", key);
	else
		sl_table_set(table, WHO, "%s", name[0] ? name : "(none)");
	sl_table_set(table, ALLOCATED, "%s", gpu_time(allocated, text, sizeof(text)));
	sl_table_set(table, USED, "%s", gpu_time(used, text, sizeof(text)));
	sl_table_set(
		table, IDLE, "%s", gpu_time(real(row, "idle_gpu_s"), text, sizeof(text)));
	if (json_is_number(utilisation))
		sl_table_set(table, USE, "%.0f%%", json_number_value(utilisation) * 100);
	else
		sl_table_set(table, USE, "-");
	bar(allocated, used, drawing->most, text, sizeof(text));
	sl_table_set(table, BARS, "%s", text);
	over_time(drawing, key, text, sizeof(text));
	sl_table_set(table, OVER_TIME, "%s", text);
	sl_table_set(table, MOST, "%s",
		sl_bytes_short(whole(row, "most_bytes"), text, sizeof(text)));
	sl_table_set(table, WAITED, "%s",
		waited(whole(row, "waiting_ms"), text, sizeof(text)));
	sl_table_set(table, OUT, "%s",
		sl_bytes_short(whole(row, "out_bytes"), text, sizeof(text)));
	sl_table_set(table, IN, "%s",
		sl_bytes_short(whole(row, "in_bytes"), text, sizeof(text)));
	return sl_table_end_row(table);
}

static void print_time(uint64_t ms)
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;
	char text[32] = "?";

	if (localtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%F %H:%M", &tm);
	printf("%s", text);
}

static int draw(const json_t *answer, uint32_t by)
{
	sl_cleanup(sl_table_freep) struct sl_table *table = NULL;
	const json_t *row, *totals = json_object_get(answer, "totals");
	struct sl_column columns[COLUMNS] = {
		[WHO] = {titles[by], false, 8, 0},
		[ALLOCATED] = {"ALLOCATED", true, 0, 0},
		[USED] = {"USED", true, 0, 0},
		[IDLE] = {"IDLE", true, 0, 0},
		[USE] = {"USE", true, 0, 0},
		[BARS] = {"USED █ OF ALLOCATED ░", false, 0, 3},
		[OVER_TIME] = {"OVER TIME", false, 0, 4},
		[MOST] = {"MOST", true, 0, 5},
		[WAITED] = {"WAITED", true, 0, 6},
		[OUT] = {"OUT", true, 0, 1},
		[IN] = {"IN", true, 0, 2},
	};
	struct drawing drawing = {.answer = answer, .by = by};
	size_t i;

	drawing.step_ms = sl_max_u64(1, whole(answer, "step_s")) * 1000;
	drawing.first_ms = whole(answer, "from_ms") / drawing.step_ms * drawing.step_ms;
	json_array_foreach(totals, i, row) drawing.most =
		real(row, "allocated_gpu_s") > drawing.most ? real(row, "allocated_gpu_s")
							    : drawing.most;
	table = sl_table_new(columns, COLUMNS);
	json_array_foreach(totals, i, row) if (table && !add_line(table, &drawing, row))
		table = sl_table_free(table);
	if (!table)
		return sl_cli_fail(VERB, false, SL_EXIT_SYSTEM, "out of memory");
	print_time(whole(answer, "from_ms"));
	printf(" to ");
	print_time(whole(answer, "to_ms"));
	printf("; times are those of a whole GPU\n");
	if (json_array_size(totals) == 0)
		printf("no data for this period\n");
	else
		sl_table_print(table, sl_table_terminal_width(STDOUT_FILENO), stdout);
	return sl_cli_finish(VERB, SL_EXIT_OK);
}

int sl_verb_history(int argc, char **argv)
{
	sl_cleanup(sl_freep) char *text = NULL;
	struct sl_msg_history ask = {0};
	struct settings s = {0};
	size_t size = 0;
	json_t *answer;
	int first, status;

	status = sl_cli_parse(VERB, &s, argc, argv, &first);
	if (status < 0)
		status = choose(&s, &ask);
	if (status < 0)
		status = sl_past_fetch(VERB, s.json, &ask, &text, &size);
	if (status >= 0)
		return status;
	if (s.json || s.csv) {
		(void)fwrite(text, 1, size, stdout);
		return sl_cli_finish(VERB, SL_EXIT_OK);
	}
	status = sl_past_parse(VERB, text, size, &answer);
	if (status >= 0)
		return status;
	status = draw(answer, ask.by);
	json_decref(answer);
	return status;
}
