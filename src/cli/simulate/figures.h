/*
 * figures - statistics of jobs and projects over virtual time
 *
 * Accounts only, no decisions. Amounts are thousandths of a GPU; their sums over time are
 * thousandths of a GPU times seconds. The world reports changes; sl_figures_go() adds up the time
 * between two changes. Times count from the first arrival.
 *
 * The series over time has at most SL_FIGURES_POINTS stretches of equal width. When a run gets
 * longer, pairs of stretches are merged and the width doubles. So every stretch is exact and memory
 * does not grow with time.
 */
#ifndef SL_CLI_SIMULATE_FIGURES_H
#define SL_CLI_SIMULATE_FIGURES_H

#include "base/arena.h"
#include "base/clock.h"

#define SL_FIGURES_POINTS 256

/* SL_FIGURE(NAME, name, text): every count per project. From PARKED on tasks are counted. */
#define SL_FIGURES_LIST                                               \
	SL_FIGURE(JOBS, jobs, "jobs that came")                       \
	SL_FIGURE(STARTED, started, "jobs that ran")                  \
	SL_FIGURE(ENDED, ended, "jobs that ended")                    \
	SL_FIGURE(REFUSED, refused, "jobs that fit nowhere, ever")    \
	SL_FIGURE(PARKED, parked, "tasks parked")                     \
	SL_FIGURE(TERMINATED, terminated, "tasks terminated")         \
	SL_FIGURE(MOVED, moved, "tasks moved")                        \
	SL_FIGURE(GIVEN_UP, parked_given_up, "parked tasks given up") \
	SL_FIGURE(LOST, lost, "tasks lost with their node")

enum sl_figure {
#define SL_FIGURE(NAME, name, text) SL_FIGURE_##NAME,
	SL_FIGURES_LIST
#undef SL_FIGURE
		SL_FIGURES
};

/* Sums over a stretch: thousandths of GPUs, or jobs, times seconds. */
struct sl_figures_point {
	double used, share, waiting, fragments;
};

struct sl_figures_project {
	uint64_t count[SL_FIGURES];
	/* Now. waiting: jobs that have arrived, have not ended and do not run. */
	double used, share, waiting, fragments;
	/* Over time. redone: work that was lost and done again. */
	struct sl_figures_point sum;
	double redone;
	struct sl_figures_point point[SL_FIGURES_POINTS];
	sl_ns *waits; /* of jobs that started, sorted by sl_figures_finish() */
	uint32_t wait_room;
};

struct sl_figures {
	uint32_t projects;
	struct sl_figures_project *of; /* of[projects]: all projects together */
	double capacity;               /* of all GPUs */
	sl_ns now, width;
	/* The run was given up: jobs are stopped again and again without ending, or run beyond
	 * SL_WORLD_TIME_MOST. */
	bool gave_up;
	/* line of the first job that had not ended by then; 0: none */
	uint32_t late_line;
};

/* jobs: the most jobs of any project. */
void sl_figures_init(struct sl_figures *figures, struct sl_arena *arena, double capacity,
	uint32_t projects, const uint32_t *jobs);
/* Advances time to now, which never decreases. */
void sl_figures_go(struct sl_figures *figures, sl_ns now);

/* Counts for this project and for the sum. */
void sl_figures_count(struct sl_figures *figures, uint32_t project, enum sl_figure what);
void sl_figures_use(struct sl_figures *figures, uint32_t project, double milli);
void sl_figures_share(struct sl_figures *figures, uint32_t project, double milli);
void sl_figures_waiting(struct sl_figures *figures, uint32_t project, int jobs);
void sl_figures_redo(struct sl_figures *figures, uint32_t project, double milli_s);
void sl_figures_waited(struct sl_figures *figures, uint32_t project, sl_ns wait);
void sl_figures_finish(struct sl_figures *figures);

/* The wait that `percent` of the started jobs did not exceed; 0 if none started. */
sl_ns sl_figures_wait(
	const struct sl_figures *figures, uint32_t project, unsigned int pct);
/* What the project got as a fraction of its fair share, both over time; NaN if it never had a
 * share. */
double sl_figures_part(const struct sl_figures *figures, uint32_t project);
/* Jain's index of these fractions: 1 if all are equal, 1/n if one project has everything. 1 without
 * any. */
double sl_figures_jain(const struct sl_figures *figures);

/* Merges stretches until they are this wide, the width of another run. */
void sl_figures_widen(struct sl_figures *figures, sl_ns width);
uint32_t sl_figures_points(const struct sl_figures *figures);
/* Means over stretch i. */
struct sl_figures_point sl_figures_at(
	const struct sl_figures *figures, uint32_t project, uint32_t i);

#endif
