/* figures - see the header */
#include "cli/simulate/figures.h"

#include <math.h>
#include <stdlib.h>

#define FIRST_WIDTH SL_S

void sl_figures_init(struct sl_figures *figures, struct sl_arena *arena, double capacity,
	uint32_t projects, const uint32_t *jobs)
{
	uint32_t all = 0;

	*figures = (struct sl_figures){
		.capacity = capacity, .projects = projects, .width = FIRST_WIDTH};
	figures->of = sl_arena_take(arena, (projects + 1) * sizeof(*figures->of));
	for (uint32_t i = 0; i <= projects; i++) {
		struct sl_figures_project *of = &figures->of[i];

		of->wait_room = i < projects ? jobs[i] : all;
		of->waits = sl_arena_take(arena, of->wait_room * sizeof(*of->waits));
		all += of->wait_room;
	}
}

/* --- Over time. --- */

static void add(struct sl_figures_point *to, const struct sl_figures_point *more)
{
	to->used += more->used;
	to->share += more->share;
	to->waiting += more->waiting;
	to->fragments += more->fragments;
}

static void double_width(struct sl_figures *figures)
{
	for (uint32_t i = 0; i <= figures->projects; i++) {
		struct sl_figures_point *point = figures->of[i].point;

		for (uint32_t k = 0; k < SL_FIGURES_POINTS / 2; k++) {
			struct sl_figures_point two = point[2 * k];

			add(&two, &point[2 * k + 1]);
			point[k] = two;
		}
		for (uint32_t k = SL_FIGURES_POINTS / 2; k < SL_FIGURES_POINTS; k++)
			point[k] = (struct sl_figures_point){0};
	}
	figures->width *= 2;
}

/* Within one stretch. */
static void stay(struct sl_figures *figures, uint32_t stretch, sl_ns span)
{
	double s = (double)span / 1e9;

	for (uint32_t i = 0; i <= figures->projects; i++) {
		struct sl_figures_project *of = &figures->of[i];
		struct sl_figures_point more = {
			of->used * s, of->share * s, of->waiting * s, of->fragments * s};

		add(&of->sum, &more);
		add(&of->point[stretch], &more);
	}
}

void sl_figures_go(struct sl_figures *figures, sl_ns now)
{
	while (now > figures->width * SL_FIGURES_POINTS)
		double_width(figures);
	while (figures->now < now) {
		uint32_t stretch = (uint32_t)(figures->now / figures->width);
		sl_ns end = (stretch + 1) * figures->width;

		if (end > now)
			end = now;
		stay(figures, stretch, end - figures->now);
		figures->now = end;
	}
}

void sl_figures_widen(struct sl_figures *figures, sl_ns width)
{
	while (figures->width < width)
		double_width(figures);
}

uint32_t sl_figures_points(const struct sl_figures *figures)
{
	return (uint32_t)((figures->now + figures->width - 1) / figures->width);
}

struct sl_figures_point sl_figures_at(
	const struct sl_figures *figures, uint32_t project, uint32_t i)
{
	struct sl_figures_point point = {0};
	sl_ns begin = i * figures->width, span = figures->width;

	if (i >= SL_FIGURES_POINTS || begin >= figures->now)
		return point;
	if (span > figures->now - begin)
		span = figures->now - begin;
	point = figures->of[project].point[i];
	point.used /= (double)span / 1e9;
	point.share /= (double)span / 1e9;
	point.waiting /= (double)span / 1e9;
	point.fragments /= (double)span / 1e9;
	return point;
}

/* --- Changes. --- */

void sl_figures_count(struct sl_figures *figures, uint32_t project, enum sl_figure what)
{
	figures->of[project].count[what]++;
	figures->of[figures->projects].count[what]++;
}

void sl_figures_use(struct sl_figures *figures, uint32_t project, double milli)
{
	figures->of[project].used += milli;
	figures->of[figures->projects].used += milli;
}

void sl_figures_share(struct sl_figures *figures, uint32_t project, double milli)
{
	figures->of[figures->projects].share += milli - figures->of[project].share;
	figures->of[project].share = milli;
}

void sl_figures_waiting(struct sl_figures *figures, uint32_t project, int jobs)
{
	figures->of[project].waiting += jobs;
	figures->of[figures->projects].waiting += jobs;
}

void sl_figures_redo(struct sl_figures *figures, uint32_t project, double milli_s)
{
	figures->of[project].redone += milli_s;
	figures->of[figures->projects].redone += milli_s;
}

void sl_figures_waited(struct sl_figures *figures, uint32_t project, sl_ns wait)
{
	struct sl_figures_project *of[] = {
		&figures->of[project], &figures->of[figures->projects]};

	for (int i = 0; i < 2; i++)
		of[i]->waits[of[i]->count[SL_FIGURE_STARTED]] = wait;
	sl_figures_count(figures, project, SL_FIGURE_STARTED);
}

static int shorter(const void *a, const void *b)
{
	sl_ns x = *(const sl_ns *)a, y = *(const sl_ns *)b;

	return x < y ? -1 : x > y;
}

void sl_figures_finish(struct sl_figures *figures)
{
	for (uint32_t i = 0; i <= figures->projects; i++)
		qsort(figures->of[i].waits, figures->of[i].count[SL_FIGURE_STARTED],
			sizeof(sl_ns), shorter);
}

/* --- Results. --- */

sl_ns sl_figures_wait(
	const struct sl_figures *figures, uint32_t project, unsigned int pct)
{
	const struct sl_figures_project *of = &figures->of[project];
	uint64_t count = of->count[SL_FIGURE_STARTED];
	uint64_t rank = (count * pct + 99) / 100;

	return count ? of->waits[rank ? rank - 1 : 0] : 0;
}

double sl_figures_part(const struct sl_figures *figures, uint32_t project)
{
	const struct sl_figures_point *sum = &figures->of[project].sum;

	return sum->share > 0 ? sum->used / sum->share : NAN;
}

double sl_figures_jain(const struct sl_figures *figures)
{
	double sum = 0, squares = 0, count = 0;

	for (uint32_t i = 0; i < figures->projects; i++) {
		double part = sl_figures_part(figures, i);

		if (isnan(part))
			continue;
		sum += part;
		squares += part * part;
		count++;
	}
	return squares > 0 ? sum * sum / (count * squares) : 1;
}
