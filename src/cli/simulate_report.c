/* simulate_report - see the header */
#include "cli/simulate_report.h"

#include "cli/table.h"
#include "policy/quota/explain.h"

#include <math.h>
#include <string.h>

#define HOUR 3600.0

/* SL_VALUE(NAME, name): what is said of a project and of all of them together; counts come in addition. */
#define SL_VALUES                                                           \
	SL_VALUE(WAIT_MEDIAN, wait_median_s)                                \
	SL_VALUE(WAIT_P95, wait_p95_s)                                      \
	SL_VALUE(USED, used_gpu_h)     /* GPUs x hours that it had */       \
	SL_VALUE(SHARE, share_gpu_h)   /* that its fair share came to */    \
	SL_VALUE(PART, part_of_share)  /* the one as a part of the other */ \
	SL_VALUE(REDONE, redone_gpu_h) /* of work that was lost and done again */

enum value {
#define SL_VALUE(NAME, name) VALUE_##NAME,
	SL_VALUES
#undef SL_VALUE
		VALUES
};

static const char *const value_names[VALUES] = {
#define SL_VALUE(NAME, name) #name,
	SL_VALUES
#undef SL_VALUE
};

static const char *const count_names[SL_FIGURES] = {
#define SL_FIGURE(NAME, name, text) #name,
	SL_FIGURES_LIST
#undef SL_FIGURE
};

static double value_of(const struct sl_figures *figures, uint32_t project, int value)
{
	const struct sl_figures_project *of = &figures->of[project];

	switch ((enum value)value) {
	case VALUE_WAIT_MEDIAN:
		return (double)sl_figures_wait(figures, project, 50) / 1e9;
	case VALUE_WAIT_P95: return (double)sl_figures_wait(figures, project, 95) / 1e9;
	case VALUE_USED: return of->sum.used / SL_FIT_WHOLE / HOUR;
	case VALUE_SHARE: return of->sum.share / SL_FIT_WHOLE / HOUR;
	case VALUE_PART: return sl_figures_part(figures, project);
	case VALUE_REDONE: return of->redone / SL_FIT_WHOLE / HOUR;
	case VALUES: break;
	}
	return NAN;
}

static double count_of(const struct sl_figures *figures, uint32_t project, int what)
{
	return (double)figures->of[project].count[what];
}

/* SL_WHOLE(NAME, name): what is said of the cluster. */
#define SL_WHOLES                                                             \
	SL_WHOLE(SPAN, span_s)                                                \
	SL_WHOLE(ALLOCATED, allocated_pct) /* means over time, of all GPUs */ \
	SL_WHOLE(FRAGMENTS, fragments_pct)                                    \
	SL_WHOLE(WAITING, waiting_jobs)                                       \
	SL_WHOLE(JAIN, jain)

enum whole {
#define SL_WHOLE(NAME, name) WHOLE_##NAME,
	SL_WHOLES
#undef SL_WHOLE
		WHOLES
};

static const char *const whole_names[WHOLES] = {
#define SL_WHOLE(NAME, name) #name,
	SL_WHOLES
#undef SL_WHOLE
};

static double whole_of(const struct sl_figures *figures, uint32_t all, int what)
{
	const struct sl_figures_point *sum = &figures->of[all].sum;
	double s = (double)figures->now / 1e9, most = s * figures->capacity;

	switch ((enum whole)what) {
	case WHOLE_SPAN: return s;
	case WHOLE_ALLOCATED: return most > 0 ? 100 * sum->used / most : 0;
	case WHOLE_FRAGMENTS: return most > 0 ? 100 * sum->fragments / most : 0;
	case WHOLE_WAITING: return s > 0 ? sum->waiting / s : 0;
	case WHOLE_JAIN: return sl_figures_jain(figures);
	case WHOLES: break;
	}
	return NAN;
}

typedef double (*figure_fn)(const struct sl_figures *figures, uint32_t project, int what);

/* Over runs that have a figure; NaN where none has. */
static double mean(
	const struct sl_report *report, uint32_t project, figure_fn figure, int what)
{
	double sum = 0;
	uint32_t count = 0;

	for (uint32_t i = 0; i < report->runs; i++) {
		double value = figure(&report->figures[i], project, what);

		if (!isnan(value)) {
			sum += value;
			count++;
		}
	}
	return count ? sum / count : NAN;
}

static uint32_t projects_of(const struct sl_report *report)
{
	return report->figures[0].projects;
}

/* Projects that jobs stand in. */
static bool has_jobs(const struct sl_report *report, uint32_t project)
{
	return report->figures[0].of[project].wait_room > 0;
}

static const char *name_of(const struct sl_report *report, uint32_t project)
{
	return report->trace->work->projects.rows[project].name;
}

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

/* --- Text. --- */

/* "5 s", "12.5 min", "3.2 h", "4.1 d"; returns buf. 32 bytes suffice. */
static const char *span_text(double s, char *buf, size_t size)
{
	if (s < 120)
		snprintf(buf, size, "%.4g s", s);
	else if (s < 2 * HOUR)
		snprintf(buf, size, "%.1f min", s / 60);
	else if (s < 48 * HOUR)
		snprintf(buf, size, "%.1f h", s / HOUR);
	else
		snprintf(buf, size, "%.1f d", s / HOUR / 24);
	return buf;
}

/* As few digits as say it. */
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

	for (uint32_t i = 0; i < projects_of(report); i++)
		projects += has_jobs(report, i);
	fprintf(out, "%u nodes, %llu GPUs, %u kinds of GPU; %u jobs of %u projects\n",
		trace->node_count,
		(unsigned long long)(trace->capacity_milli / SL_FIT_WHOLE),
		trace->model_count, trace->job_count, projects);
	fprintf(out, "policy %s, arrivals %s, %s%u %s of %s\n\n",
		sl_placement_policy_name(report->policy), report->arrivals,
		report->runs == 1 ? "" : "mean of ", report->runs,
		report->runs == 1 ? "run" : "runs",
		span_text(mean(report, projects_of(report), whole_of, WHOLE_SPAN), buf,
			sizeof(buf)));
}

static void print_whole(const struct sl_report *report, FILE *out)
{
	static const char *const titles[] = {
#define SL_FIGURE(NAME, name, text) text,
		SL_FIGURES_LIST
#undef SL_FIGURE
	};
	uint32_t all = projects_of(report);
	char a[32], b[32];

	fprintf(out, "%-34s %8.2f%%\n", "GPUs allocated, over time",
		mean(report, all, whole_of, WHOLE_ALLOCATED));
	fprintf(out, "%-34s %8.2f%%\n", "fragmentation, of all GPUs",
		mean(report, all, whole_of, WHOLE_FRAGMENTS));
	for (int i = 0; i < SL_FIGURES; i++) {
		double count = mean(report, all, count_of, i);

		if (count > 0 || i <= SL_FIGURE_ENDED)
			fprintf(out, "%-34s %9s\n", titles[i],
				number_text(count, a, sizeof(a)));
	}
	fprintf(out, "%-34s %9s\n", "jobs waiting, over time",
		number_text(mean(report, all, whole_of, WHOLE_WAITING), a, sizeof(a)));
	fprintf(out, "%-34s %9s %9s\n", "wait, median and 95 %",
		span_text(mean(report, all, value_of, VALUE_WAIT_MEDIAN), a, sizeof(a)),
		span_text(mean(report, all, value_of, VALUE_WAIT_P95), b, sizeof(b)));
	fprintf(out, "%-34s %9.2f\n", "GPU-hours of work done again",
		mean(report, all, value_of, VALUE_REDONE));
	fprintf(out, "%-34s %9.3f\n\n", "Jain's index over projects",
		mean(report, all, whole_of, WHOLE_JAIN));
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
	double part = mean(report, project, value_of, VALUE_PART);
	char buf[32];

	sl_table_set(table, NAME, "%s", name_of(report, project));
	sl_table_set(table, QUOTA, "%s",
		sl_project_amount(SL_RES_GPU,
			report->trace->work->projects.rows[project].quota.of[SL_RES_GPU],
			buf, sizeof(buf)));
	for (size_t i = 0; i < SL_ARRAY_LEN(counts); i++)
		sl_table_set(table, counts[i].column, "%s",
			number_text(mean(report, project, count_of, counts[i].count), buf,
				sizeof(buf)));
	sl_table_set(table, MEDIAN, "%s",
		span_text(mean(report, project, value_of, VALUE_WAIT_MEDIAN), buf,
			sizeof(buf)));
	sl_table_set(table, P95, "%s",
		span_text(mean(report, project, value_of, VALUE_WAIT_P95), buf,
			sizeof(buf)));
	sl_table_set(
		table, GPU_HOURS, "%.2f", mean(report, project, value_of, VALUE_USED));
	sl_table_set(table, SHARE, "%.2f", mean(report, project, value_of, VALUE_SHARE));
	sl_table_set(table, PART, isnan(part) ? "-" : "%.3f", part);
	return sl_table_end_row(table);
}

static void print_troubles(const struct sl_report *report, FILE *out)
{
	const struct sl_world_refusal *refusal = first_refusal(report);

	if (refusal)
		fprintf(out, "\nthe first job that fits nowhere, %s line %u: %s\n",
			report->jobs, refusal->line, refusal->text);
	if (given_up(report))
		fprintf(out,
			"\n%u of %u runs given up: jobs are stopped again and again "
			"before they end; give --until, or fewer failures\n",
			given_up(report), report->runs);
}

bool sl_report_print(const struct sl_report *report, FILE *out)
{
	sl_cleanup(sl_table_freep) struct sl_table *table =
		sl_table_new(columns, SL_ARRAY_LEN(columns));
	bool made = table != NULL;

	for (uint32_t i = 0; made && i < projects_of(report); i++)
		made = !has_jobs(report, i) || add_row(report, i, table);
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

/* Of the given runs, into object. */
static bool put_values(json_t *object, const struct sl_report *report, uint32_t project)
{
	int r = 0;

	for (int i = 0; i < SL_FIGURES; i++)
		r |= json_object_set_new(object, count_names[i],
			number_json(mean(report, project, count_of, i)));
	for (int i = 0; i < VALUES; i++)
		r |= json_object_set_new(object, value_names[i],
			number_json(mean(report, project, value_of, i)));
	return !r;
}

static bool put_whole(json_t *object, const struct sl_report *report)
{
	uint32_t all = projects_of(report);
	int r = 0;

	for (int i = 0; i < WHOLES; i++)
		r |= json_object_set_new(object, whole_names[i],
			number_json(mean(report, all, whole_of, i)));
	r |= json_object_set_new(object, "given_up", json_integer(given_up(report)));
	return !r && put_values(object, report, all);
}

static json_t *projects_json(const struct sl_report *report)
{
	json_t *list = json_array();

	for (uint32_t i = 0; list && i < projects_of(report); i++) {
		const struct sl_project_row *row = &report->trace->work->projects.rows[i];
		json_t *one;

		if (!has_jobs(report, i))
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

/* --- Over time. --- */

static uint32_t points_of(const struct sl_report *report)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < report->runs; i++) {
		uint32_t points = sl_figures_points(&report->figures[i]);

		if (points > most)
			most = points;
	}
	return most;
}

static void csv_run(const struct sl_report *report, uint32_t run, FILE *out)
{
	const struct sl_figures *figures = &report->figures[run];
	uint32_t points = sl_figures_points(figures), all = figures->projects;

	for (uint32_t i = 0; i < points; i++) {
		for (uint32_t p = 0; p <= all; p++) {
			struct sl_figures_point at = sl_figures_at(figures, p, i);

			if (p < all && !has_jobs(report, p))
				continue;
			fprintf(out, "%s,%llu,%.0f,%s,%.4f,%.4f,%.2f,",
				sl_placement_policy_name(report->policy),
				(unsigned long long)report->seed[run],
				(double)i * (double)figures->width / 1e9,
				p < all ? name_of(report, p) : "*",
				at.used / SL_FIT_WHOLE, at.share / SL_FIT_WHOLE,
				at.waiting);
			if (p == all)
				fprintf(out, "%.4f", at.fragments / SL_FIT_WHOLE);
			fputc('\n', out);
		}
	}
}

void sl_report_csv(const void *what, FILE *out)
{
	const struct sl_report *report = what;

	fprintf(out, "policy,seed,time_s,project,gpus,share_gpus,waiting_jobs,fragments_"
		     "gpus\n");
	for (uint32_t i = 0; i < report->runs; i++)
		csv_run(report, i, out);
}

#define SVG_WIDTH   860
#define SVG_HEIGHT  440
#define SVG_LEFT    60
#define SVG_TOP     40
#define SVG_INNER   600 /* width of the plot */
#define SVG_TALL    340
#define SVG_COLOURS 9 /* projects that have one of their own, less one for the others */

static const char *const colours[SVG_COLOURS] = {"#1668b3", "#e08e0b", "#2e8b57",
	"#8e44ad", "#16a0a0", "#b5651d", "#d35489", "#7a8b2d", "#9aa0a6"};

struct picture {
	const struct sl_report *report;
	FILE *out;
	uint32_t points;
	uint32_t band[SVG_COLOURS], bands; /* projects; the others are one band more */
	bool others;
	double low[SL_FIGURES_POINTS]; /* what is below the next band, percent */
};

static double svg_x(const struct picture *p, double point)
{
	return SVG_LEFT + point * SVG_INNER / (p->points ? p->points : 1);
}

static double svg_y(double pct)
{
	return SVG_TOP + SVG_TALL - pct * SVG_TALL / 100;
}

/* Percent of all GPUs, mean over the runs. */
static double pct_at(
	const struct picture *p, uint32_t project, uint32_t point, bool fragments)
{
	double sum = 0;

	for (uint32_t i = 0; i < p->report->runs; i++) {
		struct sl_figures_point at =
			sl_figures_at(&p->report->figures[i], project, point);

		sum += fragments ? at.fragments : at.used;
	}
	return 100 * sum / p->report->runs / p->report->figures[0].capacity;
}

static bool has_band(const struct picture *p, uint32_t project)
{
	for (uint32_t i = 0; i < p->bands; i++)
		if (p->band[i] == project)
			return true;
	return false;
}

/* Those that had most get a band of their own; of equals the first. */
static void choose_bands(struct picture *p)
{
	while (p->bands < SVG_COLOURS) {
		double most = -1;
		uint32_t best = 0;

		for (uint32_t i = 0; i < projects_of(p->report); i++) {
			double used = mean(p->report, i, value_of, VALUE_USED);

			if (has_jobs(p->report, i) && !has_band(p, i) && used > most) {
				most = used;
				best = i;
			}
		}
		if (most < 0)
			return;
		if (p->bands == SVG_COLOURS - 1) {
			p->others = true;
			return;
		}
		p->band[p->bands++] = best;
	}
}

static void svg_axes(const struct picture *p)
{
	const double width = (double)p->report->figures[0].width / 1e9;
	char buf[32];

	for (uint32_t pct = 0; pct <= 100; pct += 10)
		fprintf(p->out,
			"<path d='M%d %.1fh%d' stroke='#ddd'/>"
			"<text x='%d' y='%.1f' text-anchor='end'>%u</text>\n",
			SVG_LEFT, svg_y(pct), SVG_INNER, SVG_LEFT - 6, svg_y(pct) + 4,
			pct);
	for (uint32_t i = 0; i <= 6; i++)
		fprintf(p->out, "<text x='%.1f' y='%d' text-anchor='middle'>%s</text>\n",
			svg_x(p, p->points * i / 6.0), SVG_TOP + SVG_TALL + 18,
			span_text(width * p->points * i / 6.0, buf, sizeof(buf)));
	fprintf(p->out,
		"<text x='%d' y='%d' text-anchor='middle'>time since the first job, GPUs "
		"in %% of all</text>\n",
		SVG_LEFT + SVG_INNER / 2, SVG_HEIGHT - 14);
}

/* From what is below it to what it adds: there along the top, back along the bottom. */
static void svg_band(struct picture *p, const double *adds, const char *colour)
{
	fprintf(p->out, "<path fill='%s' fill-opacity='0.8' d='", colour);
	for (uint32_t i = 0; i < p->points; i++)
		fprintf(p->out, "%s%.1f %.1fH%.1f", i ? "L" : "M", svg_x(p, i),
			svg_y(p->low[i] + adds[i]), svg_x(p, i + 1));
	for (uint32_t i = p->points; i--;) {
		fprintf(p->out, "L%.1f %.1fH%.1f", svg_x(p, i + 1), svg_y(p->low[i]),
			svg_x(p, i));
		p->low[i] += adds[i];
	}
	fprintf(p->out, "z'/>\n");
}

static void svg_bands(struct picture *p)
{
	double adds[SL_FIGURES_POINTS];

	for (uint32_t b = 0; b < p->bands; b++) {
		for (uint32_t i = 0; i < p->points; i++)
			adds[i] = pct_at(p, p->band[b], i, false);
		svg_band(p, adds, colours[b]);
	}
	if (!p->others)
		return;
	for (uint32_t i = 0; i < p->points; i++)
		adds[i] = pct_at(p, projects_of(p->report), i, false) - p->low[i];
	svg_band(p, adds, colours[SVG_COLOURS - 1]);
}

static void svg_fragments(const struct picture *p)
{
	fprintf(p->out, "<path fill='none' stroke='#c0392b' stroke-width='2' d='");
	for (uint32_t i = 0; i < p->points; i++)
		fprintf(p->out, "%s%.1f %.1f", i ? "L" : "M", svg_x(p, i + 0.5),
			svg_y(pct_at(p, projects_of(p->report), i, true)));
	fprintf(p->out, "'/>\n");
}

static void svg_legend(const struct picture *p)
{
	int x = SVG_LEFT + SVG_INNER + 14, y = SVG_TOP + 12;

	for (uint32_t b = 0; b < p->bands; b++, y += 18)
		fprintf(p->out, "<text x='%d' y='%d' fill='%s'>%.24s</text>\n", x, y,
			colours[b], name_of(p->report, p->band[b]));
	if (p->others) {
		fprintf(p->out, "<text x='%d' y='%d' fill='%s'>others</text>\n", x, y,
			colours[SVG_COLOURS - 1]);
		y += 18;
	}
	fprintf(p->out, "<text x='%d' y='%d' fill='#c0392b'>fragmentation</text>\n", x,
		y);
}

void sl_report_svg(const void *what, FILE *out)
{
	struct picture p = {.report = what, .out = out};
	uint32_t all = projects_of(p.report);

	p.points = points_of(p.report);
	choose_bands(&p);
	fprintf(out,
		"<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' "
		"font-family='sans-serif' font-size='12'>\n"
		"<rect width='100%%' height='100%%' fill='white'/>\n"
		"<text x='%d' y='22' font-size='14'>%s: %.2f %% of all GPUs allocated "
		"over "
		"time, Jain's index of projects %.3f, mean of %u</text>\n",
		SVG_WIDTH, SVG_HEIGHT, SVG_LEFT,
		sl_placement_policy_name(p.report->policy),
		mean(p.report, all, whole_of, WHOLE_ALLOCATED),
		mean(p.report, all, whole_of, WHOLE_JAIN), p.report->runs);
	svg_axes(&p);
	svg_bands(&p);
	svg_fragments(&p);
	svg_legend(&p);
	fprintf(out, "</svg>\n");
}
