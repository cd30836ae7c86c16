/* report - see the header */
#include "cli/simulate/report.h"

#include "cli/line/table.h"
#include "policy/quota/explain.h"

#include <math.h>
#include <string.h>

static const struct sl_world_refusal *first_refusal(const struct sl_report *report)
{
	const struct sl_world_refusal *first = NULL;

	for (uint32_t i = 0; i < report->runs; i++) {
		const struct sl_world_refusal *here = &report->refusal[i];

		if (here->line && (!first || here->line < first->line))
			first = here;
	}
	return first;
}

static uint32_t given_up(const struct sl_report *report)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < report->runs; i++)
		count += report->figures[i].gave_up;
	return count;
}

/* How many of these runs exceeded the time limit; first: the smallest line of a job that had not
 * ended. */
static uint32_t too_long(const struct sl_report *report, uint32_t *first)
{
	uint32_t count = 0;

	*first = 0;
	for (uint32_t i = 0; i < report->runs; i++) {
		uint32_t line = report->figures[i].late_line;

		count += line > 0;
		if (line && (!*first || line < *first))
			*first = line;
	}
	return count;
}

/* --- Text. --- */

/* With as few digits as needed. */
static const char *number_text(double number, char *buf, size_t size)
{
	snprintf(buf, size, number == rint(number) ? "%.0f" : "%.1f", number);
	return buf;
}

static void print_head(const struct sl_report *report, FILE *out)
{
	const struct sl_trace *trace = report->trace;
	uint32_t projects = 0;
	char buf[32];

	for (uint32_t i = 0; i < sl_report_projects(report); i++)
		projects += sl_report_has_jobs(report, i);
	fprintf(out, "%u nodes, %llu GPUs, %u kinds of GPU; %u jobs of %u projects\n",
		trace->node_count,
		(unsigned long long)(trace->capacity_milli / SL_FIT_WHOLE),
		trace->model_count, trace->job_count, projects);
	fprintf(out, "policy %s, arrivals %s, %s%u %s of %s\n\n",
		sl_placement_policy_name(report->policy), report->arrivals,
		report->runs == 1 ? "" : "mean of ", report->runs,
		report->runs == 1 ? "run" : "runs",
		sl_report_span(sl_report_mean(report, sl_report_projects(report),
				       sl_report_whole, SL_WHOLE_SPAN),
			buf, sizeof(buf)));
}

static void print_whole(const struct sl_report *report, FILE *out)
{
	static const char *const titles[] = {
#define SL_FIGURE(NAME, name, text) text,
		SL_FIGURES_LIST
#undef SL_FIGURE
	};
	uint32_t all = sl_report_projects(report);
	char a[32], b[32];

	fprintf(out, "%-34s %8.2f%%\n", "GPUs allocated, over time",
		sl_report_mean(report, all, sl_report_whole, SL_WHOLE_ALLOCATED));
	fprintf(out, "%-34s %8.2f%%\n", "fragmentation, of all GPUs",
		sl_report_mean(report, all, sl_report_whole, SL_WHOLE_FRAGMENTS));
	for (int i = 0; i < SL_FIGURES; i++) {
		double count = sl_report_mean(report, all, sl_report_count, i);

		if (count > 0 || i <= SL_FIGURE_ENDED)
			fprintf(out, "%-34s %9s\n", titles[i],
				number_text(count, a, sizeof(a)));
	}
	if (sl_report_mean(report, all, sl_report_count, SL_FIGURE_MOVED) > 0)
		fprintf(out, "%-34s %9.2f\n", "tasks moved per hour",
			sl_report_mean(report, all, sl_report_whole, SL_WHOLE_MOVES));
	fprintf(out, "%-34s %9s\n", "jobs waiting, over time",
		number_text(
			sl_report_mean(report, all, sl_report_whole, SL_WHOLE_WAITING), a,
			sizeof(a)));
	fprintf(out, "%-34s %9s %9s\n", "wait, median and 95 %",
		sl_report_span(sl_report_mean(report, all, sl_report_value,
				       SL_VALUE_WAIT_MEDIAN),
			a, sizeof(a)),
		sl_report_span(
			sl_report_mean(report, all, sl_report_value, SL_VALUE_WAIT_P95),
			b, sizeof(b)));
	fprintf(out, "%-34s %9.2f\n", "GPU-hours of work done again",
		sl_report_mean(report, all, sl_report_value, SL_VALUE_REDONE));
	fprintf(out, "%-34s %9.3f\n\n", "Jain's index over projects",
		sl_report_mean(report, all, sl_report_whole, SL_WHOLE_JAIN));
}

static const struct sl_column columns[] = {{"PROJECT", false, 0, 0},
	{"QUOTA", true, 0, 0}, {"JOBS", true, 0, 0}, {"ENDED", true, 0, 0},
	{"MEDIAN", true, 0, 0}, {"95%", true, 0, 0}, {"PARKED", true, 0, 0},
	{"TERMINATED", true, 0, 0}, {"MOVED", true, 0, 0}, {"GPU-HOURS", true, 0, 0},
	{"SHARE", true, 0, 0}, {"PART", true, 0, 0}};

enum column {
	NAME = 0,
	QUOTA,
	JOBS,
	ENDED,
	MEDIAN,
	P95,
	PARKED,
	TERMINATED,
	MOVED,
	GPU_HOURS,
	SHARE,
	PART
};

static bool add_row(
	const struct sl_report *report, uint32_t project, struct sl_table *table)
{
	static const struct {
		enum column column;
		enum sl_figure count;
	} counts[] = {{JOBS, SL_FIGURE_JOBS}, {ENDED, SL_FIGURE_ENDED},
		{PARKED, SL_FIGURE_PARKED}, {TERMINATED, SL_FIGURE_TERMINATED},
		{MOVED, SL_FIGURE_MOVED}};
	double part = sl_report_mean(report, project, sl_report_value, SL_VALUE_PART);
	char buf[32];

	sl_table_set(table, NAME, "%s", sl_report_name(report, project));
	sl_table_set(table, QUOTA, "%s",
		sl_project_amount(SL_RES_GPU,
			report->trace->work->projects.rows[project].quota.of[SL_RES_GPU],
			buf, sizeof(buf)));
	for (size_t i = 0; i < SL_ARRAY_LEN(counts); i++)
		sl_table_set(table, counts[i].column, "%s",
			number_text(sl_report_mean(report, project, sl_report_count,
					    counts[i].count),
				buf, sizeof(buf)));
	sl_table_set(table, MEDIAN, "%s",
		sl_report_span(sl_report_mean(report, project, sl_report_value,
				       SL_VALUE_WAIT_MEDIAN),
			buf, sizeof(buf)));
	sl_table_set(table, P95, "%s",
		sl_report_span(sl_report_mean(report, project, sl_report_value,
				       SL_VALUE_WAIT_P95),
			buf, sizeof(buf)));
	sl_table_set(table, GPU_HOURS, "%.2f",
		sl_report_mean(report, project, sl_report_value, SL_VALUE_USED));
	sl_table_set(table, SHARE, "%.2f",
		sl_report_mean(report, project, sl_report_value, SL_VALUE_SHARE));
	sl_table_set(table, PART, isnan(part) ? "-" : "%.3f", part);
	return sl_table_end_row(table);
}

static void print_troubles(const struct sl_report *report, FILE *out)
{
	const struct sl_world_refusal *refusal = first_refusal(report);
	uint32_t line, late = too_long(report, &line);

	if (refusal)
		fprintf(out, "\nthe first job that fits nowhere, %s line %u: %s\n",
			report->jobs, refusal->line, refusal->text);
	if (given_up(report) > late)
		fprintf(out,
			"\n%u of %u runs given up: jobs are stopped again and again "
			"before they end; give --until, or fewer failures\n",
			given_up(report) - late, report->runs);
	if (late)
		fprintf(out,
			"\n%u of %u runs given up after a hundred years: the job of %s "
			"line %u has not ended by then; give shorter durations, which "
			"are seconds, or --until\n",
			late, report->runs, report->jobs, line);
}

bool sl_report_print(const struct sl_report *report, FILE *out)
{
	sl_cleanup(sl_table_freep) struct sl_table *table =
		sl_table_new(columns, SL_ARRAY_LEN(columns));
	bool made = table != NULL;

	for (uint32_t i = 0; made && i < sl_report_projects(report); i++)
		made = !sl_report_has_jobs(report, i) || add_row(report, i, table);
	if (!made)
		return false;
	print_head(report, out);
	print_whole(report, out);
	sl_table_print(table, 0, out);
	print_troubles(report, out);
	return true;
}

/* --- JSON. --- */

static json_t *number_json(double number)
{
	return isnan(number) ? json_null() : json_real(number);
}

/* Puts the figures of the given runs into object. */
static bool put_values(json_t *object, const struct sl_report *report, uint32_t project)
{
	int r = 0;

	for (int i = 0; i < SL_FIGURES; i++)
		r |= json_object_set_new(object, sl_report_count_names[i],
			number_json(sl_report_mean(report, project, sl_report_count, i)));
	for (int i = 0; i < SL_REPORT_VALUES; i++)
		r |= json_object_set_new(object, sl_report_value_names[i],
			number_json(sl_report_mean(report, project, sl_report_value, i)));
	return !r;
}

static bool put_whole(json_t *object, const struct sl_report *report)
{
	uint32_t all = sl_report_projects(report);
	int r = 0;

	for (int i = 0; i < SL_REPORT_WHOLES; i++)
		r |= json_object_set_new(object, sl_report_whole_names[i],
			number_json(sl_report_mean(report, all, sl_report_whole, i)));
	r |= json_object_set_new(object, "given_up", json_integer(given_up(report)));
	return !r && put_values(object, report, all);
}

static json_t *projects_json(const struct sl_report *report)
{
	json_t *list = json_array();

	for (uint32_t i = 0; list && i < sl_report_projects(report); i++) {
		const struct sl_project_row *row = &report->trace->work->projects.rows[i];
		json_t *one;

		if (!sl_report_has_jobs(report, i))
			continue;
		one = json_pack("{s:s, s:I}", "name", row->name, "quota_milli",
			(json_int_t)row->quota.of[SL_RES_GPU]);
		if (!one || !put_values(one, report, i) || json_array_append(list, one)) {
			json_decref(list);
			list = NULL;
		}
		json_decref(one);
	}
	return list;
}

static json_t *runs_json(const struct sl_report *report)
{
	json_t *list = json_array();

	for (uint32_t i = 0; list && i < report->runs; i++) {
		struct sl_report one = *report;
		json_t *object = json_pack("{s:I}", "seed", (json_int_t)report->seed[i]);

		one.runs = 1;
		one.figures = &report->figures[i];
		if (!object || !put_whole(object, &one) ||
			json_array_append(list, object)) {
			json_decref(list);
			list = NULL;
		}
		json_decref(object);
	}
	return list;
}

json_t *sl_report_json(const struct sl_report *report)
{
	const struct sl_world_refusal *refusal = first_refusal(report);
	json_t *all = json_pack("{s:s, s:s, s:i, s:I, s:i}", "policy",
		sl_placement_policy_name(report->policy), "arrivals", report->arrivals,
		"nodes", (int)report->trace->node_count, "gpu_milli",
		(json_int_t)report->trace->capacity_milli, "jobs_in_file",
		(int)report->trace->job_count);
	int r;

	if (!all)
		return NULL;
	r = !put_whole(all, report);
	r |= json_object_set_new(all, "refusal",
		refusal ? json_pack("{s:i, s:s}", "line", (int)refusal->line, "why",
				  refusal->text)
			: json_null());
	r |= json_object_set_new(all, "projects", projects_json(report));
	r |= json_object_set_new(all, "runs", runs_json(report));
	if (!r)
		return all;
	json_decref(all);
	return NULL;
}
