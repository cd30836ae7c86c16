/* picture - the GPUs of projects over time, as CSV and as a picture; see report.h */
#include "cli/simulate/report.h"

#include <stdio.h>

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

			if (p < all && !sl_report_has_jobs(report, p))
				continue;
			fprintf(out, "%s,%llu,%.0f,%s,%.4f,%.4f,%.2f,",
				sl_placement_policy_name(report->policy),
				(unsigned long long)report->seed[run],
				(double)i * (double)figures->width / 1e9,
				p < all ? sl_report_name(report, p) : "*",
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
#define SVG_COLOURS 9 /* bands, the last one for all other projects */

static const char *const colours[SVG_COLOURS] = {"#1668b3", "#e08e0b", "#2e8b57",
	"#8e44ad", "#16a0a0", "#b5651d", "#d35489", "#7a8b2d", "#9aa0a6"};

struct picture {
	const struct sl_report *report;
	FILE *out;
	uint32_t points;
	uint32_t band[SVG_COLOURS], bands; /* projects; the others are one band more */
	bool others;
	double low[SL_FIGURES_POINTS]; /* top of the bands drawn so far, percent */
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

/* The projects with the most GPUs get bands of their own; the first wins a tie. */
static void choose_bands(struct picture *p)
{
	while (p->bands < SVG_COLOURS) {
		double most = -1;
		uint32_t best = 0;

		for (uint32_t i = 0; i < sl_report_projects(p->report); i++) {
			double used = sl_report_mean(
				p->report, i, sl_report_value, SL_VALUE_USED);

			if (sl_report_has_jobs(p->report, i) && !has_band(p, i) &&
				used > most) {
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
			sl_report_span(width * p->points * i / 6.0, buf, sizeof(buf)));
	fprintf(p->out,
		"<text x='%d' y='%d' text-anchor='middle'>time since the first job, GPUs "
		"in %% of all</text>\n",
		SVG_LEFT + SVG_INNER / 2, SVG_HEIGHT - 14);
}

/* The outline of a band: along its top, and back along its bottom. */
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
		adds[i] = pct_at(p, sl_report_projects(p->report), i, false) - p->low[i];
	svg_band(p, adds, colours[SVG_COLOURS - 1]);
}

static void svg_fragments(const struct picture *p)
{
	fprintf(p->out, "<path fill='none' stroke='#c0392b' stroke-width='2' d='");
	for (uint32_t i = 0; i < p->points; i++)
		fprintf(p->out, "%s%.1f %.1f", i ? "L" : "M", svg_x(p, i + 0.5),
			svg_y(pct_at(p, sl_report_projects(p->report), i, true)));
	fprintf(p->out, "'/>\n");
}

static void svg_legend(const struct picture *p)
{
	int x = SVG_LEFT + SVG_INNER + 14, y = SVG_TOP + 12;

	for (uint32_t b = 0; b < p->bands; b++, y += 18)
		fprintf(p->out, "<text x='%d' y='%d' fill='%s'>%.24s</text>\n", x, y,
			colours[b], sl_report_name(p->report, p->band[b]));
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
	uint32_t all = sl_report_projects(p.report);

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
		sl_report_mean(p.report, all, sl_report_whole, SL_WHOLE_ALLOCATED),
		sl_report_mean(p.report, all, sl_report_whole, SL_WHOLE_JAIN),
		p.report->runs);
	svg_axes(&p);
	svg_bands(&p);
	svg_fragments(&p);
	svg_legend(&p);
	fprintf(out, "</svg>\n");
}
