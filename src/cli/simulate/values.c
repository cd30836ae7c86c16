/* values - see the header */
#include "cli/simulate/values.h"

#include <math.h>
#include <stdio.h>

#define HOUR 3600.0

const char *const sl_report_value_names[SL_REPORT_VALUES] = {
#define SL_VALUE(NAME, name) #name,
	SL_REPORT_VALUE_LIST
#undef SL_VALUE
};

const char *const sl_report_count_names[SL_FIGURES] = {
#define SL_FIGURE(NAME, name, text) #name,
	SL_FIGURES_LIST
#undef SL_FIGURE
};

double sl_report_value(const struct sl_figures *figures, uint32_t project, int value)
{
	const struct sl_figures_project *of = &figures->of[project];

	switch ((enum sl_report_value)value) {
	case SL_VALUE_WAIT_MEDIAN:
		return (double)sl_figures_wait(figures, project, 50) / 1e9;
	case SL_VALUE_WAIT_P95:
		return (double)sl_figures_wait(figures, project, 95) / 1e9;
	case SL_VALUE_USED: return of->sum.used / SL_FIT_WHOLE / HOUR;
	case SL_VALUE_SHARE: return of->sum.share / SL_FIT_WHOLE / HOUR;
	case SL_VALUE_PART: return sl_figures_part(figures, project);
	case SL_VALUE_REDONE: return of->redone / SL_FIT_WHOLE / HOUR;
	case SL_REPORT_VALUES: break;
	}
	return NAN;
}

double sl_report_count(const struct sl_figures *figures, uint32_t project, int what)
{
	return (double)figures->of[project].count[what];
}

const char *const sl_report_whole_names[SL_REPORT_WHOLES] = {
#define SL_WHOLE(NAME, name) #name,
	SL_REPORT_WHOLE_LIST
#undef SL_WHOLE
};

double sl_report_whole(const struct sl_figures *figures, uint32_t all, int what)
{
	const struct sl_figures_point *sum = &figures->of[all].sum;
	double s = (double)figures->now / 1e9, most = s * figures->capacity;

	switch ((enum sl_report_whole)what) {
	case SL_WHOLE_SPAN: return s;
	case SL_WHOLE_ALLOCATED: return most > 0 ? 100 * sum->used / most : 0;
	case SL_WHOLE_FRAGMENTS: return most > 0 ? 100 * sum->fragments / most : 0;
	case SL_WHOLE_WAITING: return s > 0 ? sum->waiting / s : 0;
	case SL_WHOLE_MOVES:
		return s > 0 ? HOUR * sl_report_count(figures, all, SL_FIGURE_MOVED) / s
			     : 0;
	case SL_WHOLE_JAIN: return sl_figures_jain(figures);
	case SL_REPORT_WHOLES: break;
	}
	return NAN;
}

/* Mean over runs that have a figure; NaN if none has. */
double sl_report_mean(
	const struct sl_report *report, uint32_t project, sl_report_fn figure, int what)
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

uint32_t sl_report_projects(const struct sl_report *report)
{
	return report->figures[0].projects;
}

/* Does the project have jobs? */
bool sl_report_has_jobs(const struct sl_report *report, uint32_t project)
{
	return report->figures[0].of[project].wait_room > 0;
}

const char *sl_report_name(const struct sl_report *report, uint32_t project)
{
	return report->trace->work->projects.rows[project].name;
}

const char *sl_report_span(double s, char *buf, size_t size)
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
