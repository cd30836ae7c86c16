/*
 * figures - what became of jobs and projects, over virtual time
 *
 * Accounts, no decisions. Amounts are thousandths of a GPU; sums over time are these times seconds.
 * The world says what changes; what lies between two changes is added up by sl_figures_go(). Times
 * count from the first arrival.
 *
 * Over time: at most SL_FIGURES_POINTS stretches of equal width. A run that is longer than they
 * reach has two and two of them put together and goes on with twice the width, so what a stretch
 * says is exact and memory does not grow with time.
 */
#ifndef SL_CLI_SIMULATE_FIGURES_H
#define SL_CLI_SIMULATE_FIGURES_H

#include "base/arena.h"
#include "base/clock.h"

#define SL_FIGURES_POINTS 256

/* SL_FIGURE(NAME, name, text): what is counted by project, once. From PARKED on it is tasks. */
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
	/* Now. waiting: jobs that have come, have not ended and do not run. */
	double used, share, waiting, fragments;
	/* Over time. redone: of work that was lost. */
	struct sl_figures_point sum;
	double redone;
	struct sl_figures_point point[SL_FIGURES_POINTS];
	sl_ns *waits; /* of those that started, sorted by sl_figures_finish() */
	uint32_t wait_room;
};

struct sl_figures {
	uint32_t projects;
	struct sl_figures_project *of; /* of[projects]: all together */
	double capacity;               /* of all GPUs */
	sl_ns now, width;
	/* Jobs are stopped again and again and do not end, or not within SL_WORLD_TIME_MOST: it was
	 * given up. */
	bool gave_up;
	/* Of the first job that had not ended by then; 0: it did not come to that */
	uint32_t late_line;
};

/* jobs: how many each project has at most. */
void sl_figures_init(struct sl_figures *figures, struct sl_arena *arena, double capacity,
	uint32_t projects, const uint32_t *jobs);
/* Time goes on to now, which never goes back. */
void sl_figures_go(struct sl_figures *figures, sl_ns now);

/* A change of this project's and of the sum. */
void sl_figures_count(struct sl_figures *figures, uint32_t project, enum sl_figure what);
void sl_figures_use(struct sl_figures *figures, uint32_t project, double milli);
void sl_figures_share(struct sl_figures *figures, uint32_t project, double milli);
void sl_figures_waiting(struct sl_figures *figures, uint32_t project, int jobs);
void sl_figures_redo(struct sl_figures *figures, uint32_t project, double milli_s);
void sl_figures_waited(struct sl_figures *figures, uint32_t project, sl_ns wait);
void sl_figures_finish(struct sl_figures *figures);

/* The least wait that so many percent of those that started have not exceeded; 0 where none has. */
sl_ns sl_figures_wait(
	const struct sl_figures *figures, uint32_t project, unsigned int pct);
/* What the project got as a part of its fair share, both over time; NaN where it never had a
 * share. */
double sl_figures_part(const struct sl_figures *figures, uint32_t project);
/* Jain's index of these parts: 1 if all are equal, 1/n if one has everything. 1 without any. */
double sl_figures_jain(const struct sl_figures *figures);

/* Puts stretches together until they are this wide: a width that another run came to. */
void sl_figures_widen(struct sl_figures *figures, sl_ns width);
uint32_t sl_figures_points(const struct sl_figures *figures);
/* Means over stretch i. */
struct sl_figures_point sl_figures_at(
	const struct sl_figures *figures, uint32_t project, uint32_t i);

#endif
