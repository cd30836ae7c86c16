/*
 * internal - private part of world.h: the accounts, and what happens to tasks
 *
 * Shared by world.c, which advances time, and tasks.c, which carries out the machine's actions. No
 * other file includes it.
 */
#ifndef SL_CLI_SIMULATE_INTERNAL_H
#define SL_CLI_SIMULATE_INTERNAL_H

#include "cli/simulate/gauge.h"
#include "cli/simulate/timers.h"
#include "cli/simulate/world.h"

/* A node's id: its number, and how often it was repaired before. */
#define SL_NODE_ID(number, repairs) ((uint64_t)(repairs) << 32 | ((number) + 1))
#define SL_NODE_OF(id)              ((uint32_t)(id)-1)

/* Nanoseconds of all tasks of a gang together. */
__extension__ typedef unsigned __int128 sl_world_wide;

enum sl_world_task_state {
	SL_WORLD_IDLE = 0,
	SL_WORLD_STARTING,
	SL_WORLD_RUNS,
	SL_WORLD_STOPPING
};

struct sl_world_task {
	struct sl_place place; /* while it runs or is parked */
	uint32_t turn;
	uint8_t state;
	bool parked, parks; /* parks: SL_WORLD_STOPPING, to be parked */
};

enum sl_world_phase { SL_WORLD_TO_COME = 0, SL_WORLD_IN, SL_WORLD_OVER };

struct sl_world_job {
	struct sl_world_task *tasks;
	enum sl_world_phase phase;
	bool started;
	uint32_t runs, turn;
	sl_ns submitted, since; /* since: time of the last change of runs */
	sl_world_wide done;
};

struct sl_world {
	const struct sl_trace *trace;
	const struct sl_world_ask *ask;
	struct sl_figures *figures;
	struct sl_world_refusal *refusal;
	struct sl_arena *arena;
	struct sl_cluster *cluster;
	struct sl_fit_node *nodes;
	uint32_t *repairs; /* by node */
	uint32_t *numbers; /* of projects in the machine's tree */
	struct sl_gauge gauge;
	struct sl_world_job *jobs;
	struct sl_world_task *tasks;
	struct sl_arrivals order;
	uint32_t *times; /* by arrival: the job that arrives at that time */
	struct sl_timers timers;
	struct sl_cluster_action *actions; /* not carried out yet: [first..count) */
	uint32_t action_first, action_count, action_room;
	sl_ns now, next_cycle; /* the next cycle not before, if ask->cycle is set */
	uint64_t random, stops, busy; /* busy: tasks that have a place */
	uint32_t arrived, over, down, idle;
	bool owes_cycle;
	bool failed; /* out of memory */
};

static inline const struct sl_work_job *sl_world_work(
	const struct sl_world *w, uint32_t number)
{
	return &w->trace->work_jobs[number];
}

static inline bool sl_world_works(const struct sl_world *w, uint32_t number)
{
	return w->jobs[number].runs >= sl_world_work(w, number)->least;
}

/* Sends the event to the machine and keeps its actions for sl_world_carry_out(). */
void sl_world_send(struct sl_world *w, struct sl_cluster_event event);
/* Carries out the machine's actions, and those that answer the resulting events. */
void sl_world_carry_out(struct sl_world *w);
/* Adds a timer, that much later than now. */
void sl_world_timer(struct sl_world *w, struct sl_timer timer, sl_ns in);

/* The task leaves its place. */
void sl_world_give_place(struct sl_world *w, uint32_t number, struct sl_world_task *task);
/* Changes the number of the job's running tasks by one. */
void sl_world_change_runs(struct sl_world *w, uint32_t number, int change);
/* A task at this place ended early or was lost. The job's work is lost if too few tasks are
 * left. */
void sl_world_lose_work(struct sl_world *w, uint32_t number, struct sl_place place);
/* The task runs; the task is parked or gone. Both tell the machine. */
void sl_world_task_runs(struct sl_world *w, uint32_t number, uint32_t t);
void sl_world_task_stopped(struct sl_world *w, uint32_t number, uint32_t t);
/* The job is over: removes all that waits or works for it. */
void sl_world_close_job(struct sl_world *w, uint32_t number);

#endif
