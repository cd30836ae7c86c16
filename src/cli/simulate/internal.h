/*
 * internal - the world of world.h from within: its accounts, and what tasks go
 * through
 *
 * Shared by world.c, which lets time go on, and tasks.c, which does what the
 * machine says. Nobody else includes it.
 */
#ifndef SL_CLI_SIMULATE_INTERNAL_H
#define SL_CLI_SIMULATE_INTERNAL_H

#include "cli/simulate/gauge.h"
#include "cli/simulate/timers.h"
#include "cli/simulate/world.h"

/* What a node's id tells: which node it is, and how often it was repaired before. */
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
	struct sl_place place; /* while it has one, and while it is parked */
	uint32_t turn;
	uint8_t state;
	bool parked, parks; /* parks: SL_WORLD_STOPPING, and will be parked */
};

enum sl_world_phase { SL_WORLD_TO_COME = 0, SL_WORLD_IN, SL_WORLD_OVER };

struct sl_world_job {
	struct sl_world_task *tasks;
	enum sl_world_phase phase;
	bool started;
	uint32_t runs, turn;
	sl_ns submitted, since; /* since: runs has been so */
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
	uint32_t *times; /* by arrival: the job whose time it has */
	struct sl_timers timers;
	struct sl_cluster_action *actions; /* not carried out yet: [first..count) */
	uint32_t action_first, action_count, action_room;
	sl_ns now, next_cycle; /* not before next_cycle, where ask->cycle says so */
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

/* Tells the machine. What it says is kept for sl_world_carry_out(). */
void sl_world_send(struct sl_world *w, struct sl_cluster_event event);
/* Does what the machine has said, and what it says to that. */
void sl_world_carry_out(struct sl_world *w);
/* So long from now. */
void sl_world_timer(struct sl_world *w, struct sl_timer timer, sl_ns in);

/* The task has its place no more. */
void sl_world_give_place(struct sl_world *w, uint32_t number, struct sl_world_task *task);
/* One more of its tasks runs, or one less. */
void sl_world_change_runs(struct sl_world *w, uint32_t number, int change);
/* A task of this place ended or was lost before its time. What the job has done is lost if too few
 * are left. */
void sl_world_lose_work(struct sl_world *w, uint32_t number, struct sl_place place);
/* It runs; it is parked or gone: both are told to the machine. */
void sl_world_task_runs(struct sl_world *w, uint32_t number, uint32_t t);
void sl_world_task_stopped(struct sl_world *w, uint32_t number, uint32_t t);
/* It is over: nothing of it waits or works any more. */
void sl_world_close_job(struct sl_world *w, uint32_t number);

#endif
