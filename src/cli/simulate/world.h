/*
 * world - everything outside the cluster machine, in virtual time
 *
 * The machine of policy/cluster.h decides; the world models the effect, in simplified form:
 *  - A bound task runs at once; a parked one after its swap cost.
 *  - Parking takes the swap cost, during which the task keeps its GPUs. Its work is kept.
 *  - Terminating takes no time, nor does moving to another node. Both end the process, which begins
 *    anew. A move within a node (`moves`) is a park and a return.
 *  - A job works while `least` of its tasks run, faster the more of its gang run. It ends when
 *    `duration` times its tasks are done. If it falls below `least` other than by parking, its
 *    work is lost.
 *  - Nodes fail only if asked for, independently, after exponentially distributed times. They come
 *    back empty; work parked there is lost, too.
 * A cycle follows every moment with an event, but not sooner than `cycle` after the previous one,
 * until the machine has nothing more to do.
 *
 * Single-threaded; the same input gives the same result, byte for byte.
 */
#ifndef SL_CLI_SIMULATE_WORLD_H
#define SL_CLI_SIMULATE_WORLD_H

#include "cli/simulate/figures.h"
#include "cli/simulate/trace.h"

/* A hundred years of virtual time: sl_ns holds five times as many, so sums of two times cannot
 * overflow. */
#define SL_WORLD_TIME_MOST (3155760000 * SL_S)

struct sl_world_ask {
	enum sl_placement_policy policy;
	/* false: arrivals as in the file; true: the jobs exchange their times of arrival, by the
	 * seed. */
	bool shuffled;
	uint64_t seed;
	/* Virtual time from the first arrival; 0: until nothing more can happen, or
	 * SL_WORLD_TIME_MOST. */
	sl_ns until;
	/* Tasks that may be moved per hour to other GPUs of their nodes, of jobs that park or that
	 * cannot be preempted; 0: none, and parked tasks return to their GPUs alone. */
	uint32_t moves;
	sl_ns cycle; /* shortest time between two cycles; 0: at every event */
	/* Jobs parked for this long are given up and begin again anywhere; 0: never. */
	sl_ns resume_wait;
	sl_ns failures, repair; /* mean time between two failures of a node, 0: none */
	/* done of all; may be NULL. */
	void (*progress)(void *context, uint32_t done, uint32_t all);
	void *context;
};

/* The first job that could never run, in words. */
struct sl_world_refusal {
	uint32_t line; /* of the file of jobs; 0: none was refused */
	char text[1024];
};

/* Runs a trace with work. The arena owns the memory of the figures. False: out of memory. */
SL_MUST_CHECK bool sl_world_run(const struct sl_trace *trace,
	const struct sl_world_ask *ask, struct sl_arena *arena,
	struct sl_figures *figures, struct sl_world_refusal *refusal);

#endif
