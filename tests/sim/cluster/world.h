/*
 * world - what is outside the cluster machine: projects, nodes and jobs, modelled
 *
 * The world knows all messages to and from the machine, and keeps its own accounts of both. Judging
 * (judge.c) uses these accounts. Of the machine's accounts it only uses the promises, because no
 * action reports that a promise was withdrawn.
 */
#ifndef SL_SIM_CLUSTER_WORLD_H
#define SL_SIM_CLUSTER_WORLD_H

#include "policy/cluster.h"
#include "../common/rng.h"

#define CW_NODES    12
#define CW_PROJECTS 12
#define CW_JOBS     48
#define CW_PARTS    2
#define CW_TASKS    8 /* of a part */
#define CW_MOVES    8 /* the largest move_most that is drawn */

struct cw_task {
	enum sl_task_state state; /* PENDING also while PIPELINED */
	bool promised, parked, failed;
	struct sl_place place, next; /* node: index of the world */
	sl_ns since, due, spared_until, told_at;
	enum sl_stop_how how;
	enum sl_task_state was; /* before RELEASING */
	bool told;              /* to stop, in this cycle */
	bool parked_first; /* RELEASING: it was being parked before it was told to end */
	bool late;         /* RELEASING: the machine no longer counts on its place */
	bool giving_up;    /* parked, and told to drop that */
	bool comes_back;   /* BINDING: its memory is on the host until it runs */
	struct sl_place home; /* comes_back: where it was parked */
	bool on_move;         /* stopped to move, and does not run yet */
	uint64_t stayed;      /* w->taken_back when that began */
	bool quiet;           /* the world was silent then */
	sl_ns moved_until;    /* spared, as its last stop was a move */
	sl_ns parked_at;
};

struct cw_job {
	bool used, broken; /* broken: it can never be whole again */
	bool reclaimed;    /* in this cycle */
	bool started_ever; /* it was bound, or promised a place */
	uint64_t id;
	uint32_t project, parts, flags;
	int32_t priority;
	uint64_t park_mib;
	sl_ns swap_cost, paused_until, stale_since, started, resume_wait;
	sl_ns preempt_delay, waits_since, stale_grace;
	sl_ns failed_at; /* last, to be tried again */
	bool ended;      /* in this cycle, though it parks elsewhere */
	uint32_t ended_on;
	struct sl_need need[CW_PARTS];
	uint32_t tasks[CW_PARTS], least[CW_PARTS];
	struct cw_task task[CW_PARTS][CW_TASKS];
	sl_ns refused_until[CW_NODES];
	uint32_t bound; /* in this cycle: a bit per part */
	uint64_t told_for;
};

struct cw_project {
	bool used;
	uint64_t id;
	uint32_t parent; /* UINT32_MAX: top */
	struct sl_project_rules rules;
};

struct cw_node {
	bool used, closed;
	bool mute; /* its tasks never stop when told to */
	uint64_t id, pool_mib;
	uint32_t shut; /* GPUs that are lost or drained */
	uint8_t pool, swaps, first;
	struct sl_fit_node fit; /* sizes alone */
};

struct cw {
	struct sl_arena *arena;
	struct sl_cluster *cluster;
	struct sl_rng rng;
	sl_ns now;
	uint64_t next_id, events, cycles, actions, binds, stops, moves, settled;
	uint64_t given_up, parks, ends, foretold, late, taken_back;
	uint64_t resume_factor;
	sl_ns stale_grace;
	bool has_moves, spreads; /* jobs may move: a bit of the seed */
	uint32_t move_most;
	sl_ns moved_at[CW_MOVES]; /* times of moves within move_most, a ring */
	uint64_t moved, asked_moves, refused_moves, spread;
	bool asks_move, whole; /* a user's move is being answered; a whole cycle */
	struct cw_node node[CW_NODES];
	struct cw_project project[CW_PROJECTS];
	struct cw_job job[CW_JOBS];
	uint32_t cycle_stops;
	uint32_t cycle_actions; /* BIND, STOP, PIPELINE of the cycle that goes on */
	uint64_t stop_for;    /* jobs that were stopped for in it; UINT64_MAX: several */
	uint64_t asked;       /* job that was foretold last */
	uint32_t asked_stops; /* tasks stopped or moved for it since */
	bool quiet;           /* nothing goes wrong outside */
	char broken[512];     /* the first rule that broke */
	bool trace;
};

void cw_init(struct cw *w, uint64_t seed);
void cw_fini(struct cw *w);
/* One random thing happens, then perhaps a cycle. */
void cw_step(struct cw *w);
/* The world is silent but for answers to the machine, until it asks for nothing. */
void cw_settle(struct cw *w);

/* Prints projects, nodes and jobs, as the world knows them. */
void cw_dump(const struct cw *w);

/* --- accounts.c --- */
bool cw_stands(const struct cw_task *task);
bool cw_is_done(const struct cw_task *task);
/* The project, or one below it. */
bool cw_is_below(const struct cw *w, uint32_t project, uint32_t above);
struct sl_quantity cw_amount(const struct sl_need *need, struct sl_place place);
/* GPUs of the project and all below it: running or being bound, and promised. */
struct sl_quantity cw_has(const struct cw *w, uint32_t project, bool fixed);
/* The same; holds: what is on nodes, with what is being stopped and without promises. */
struct sl_quantity cw_sum(const struct cw *w, uint32_t project, bool fixed, bool holds);
void cw_take(struct sl_room *room, const struct sl_need *need, struct sl_place place);
/* Free on the node: now, or once stopped tasks are gone and all promises kept. */
struct sl_room cw_room(const struct cw *w, uint32_t node, bool later);
/* Its tasks go to other GPUs of their node and lose nothing. */
bool cw_movable(const struct cw_job *job);
/* Its memory goes to the host when it is stopped so. */
bool cw_parks(const struct cw_job *job, enum sl_stop_how how);
/* What changes on that node when the task comes there or leaves it. */
struct sl_need cw_comes(const struct cw_job *job, const struct cw_task *task,
	uint32_t part, uint32_t node);

/* --- judge.c: each sets w->broken --- */
void cw_break(struct cw *w, const char *format, ...) SL_PRINTF(2, 3);
void cw_judge_bind(struct cw *w, const struct sl_cluster_action *action);
void cw_judge_stop(struct cw *w, const struct sl_cluster_action *action);
void cw_judge_give_up(struct cw *w, const struct sl_cluster_action *action);
void cw_judge_late(struct cw *w, const struct sl_cluster_action *action);
void cw_judge_cycle(struct cw *w, bool whole);
void cw_judge_rest(struct cw *w);
void cw_judge_forecast(struct cw *w, const struct cw_job *job,
	const struct sl_cluster_forecast *forecast);
struct cw_job *cw_find_job(struct cw *w, uint64_t id);
struct cw_task *cw_find_task(struct cw_job *job, uint32_t number, uint32_t *part);
uint32_t cw_find_node(const struct cw *w, uint64_t id);
void cw_judge_refusal(struct cw *w, const struct sl_cluster_action *action);
/* After every event: since when a gang is below its least. */
void cw_watch(struct cw *w);
/* Reads the promises from the machine. */
void cw_refresh(struct cw *w);

#endif
