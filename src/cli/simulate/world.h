/*
 * world - what stands outside the cluster machine, in virtual time
 *
 * The machine of policy/cluster.h decides; here is what becomes of it. Nothing is as simple
 * outside:
 *   a task that is bound runs at once; one that was parked, after its swap cost
 *   parking takes the swap cost, in which the GPUs are still its; what it has done is kept
 *   terminating takes no time, and neither does moving: both end the process, and it begins anew
 *   where it goes a job works while its `least` tasks run, the faster the more of its gang do; it
 *   ends when `duration` times its tasks are done. A job that falls below its least by other ways
 *   than parking begins again from nothing. nodes fail only where they are told to: after times
 *   drawn from an exponential distribution, each for itself, and come back empty; what was parked
 *   there is lost, too
 * A cycle follows every moment at which something happens (or as seldom as it is told), until it
 * has nothing more to do.
 *
 * Single-threaded; the same question has the same answer, byte for byte.
 */
#ifndef SL_CLI_SIMULATE_WORLD_H
#define SL_CLI_SIMULATE_WORLD_H

#include "cli/simulate/figures.h"
#include "cli/simulate/trace.h"

/* A hundred years of virtual time: sl_ns has room for five times as many, so that sums of two times
 * do not overflow. */
#define SL_WORLD_TIME_MOST (3155760000 * SL_S)

struct sl_world_ask {
	enum sl_placement_policy policy;
	/* false: as the file says; else the jobs take one another's times of arrival, by the
	 * seed. */
	bool shuffled;
	uint64_t seed;
	/* Of virtual time, from the first arrival; 0: until nothing more can happen, or
	 * SL_WORLD_TIME_MOST. */
	sl_ns until;
	sl_ns cycle; /* the machine decides at most so often; 0: whenever something happens */
	/* Jobs that park are given up once they were parked for so long, and begin again anywhere;
	 * 0: never. */
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

/* A trace with work. Memory of the figures is the arena's. False: out of memory. */
SL_MUST_CHECK bool sl_world_run(const struct sl_trace *trace,
	const struct sl_world_ask *ask, struct sl_arena *arena,
	struct sl_figures *figures, struct sl_world_refusal *refusal);

#endif
