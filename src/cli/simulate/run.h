/*
 * run - jobs arrive one by one and are placed: the published protocol
 *
 * No departures, no retries; a job that fits nowhere, even if others move, is dropped. After each
 * arrival: arrived = all GPU thousandths asked for so far, used = those of placed jobs, both as
 * fractions of the cluster. The figure at c % is the mean of used over the arrivals at which
 * arrived, rounded, is c.
 */
#ifndef SL_CLI_SIMULATE_RUN_H
#define SL_CLI_SIMULATE_RUN_H

#include "cli/simulate/trace.h"
#include "policy/placement/score.h"

#define SL_SIMULATE_PCT_MOST 1000

/* Result of one run, by percent arrived; NaN if no arrival came to that percent. */
struct sl_simulate_curve {
	double used_pct[SL_SIMULATE_PCT_MOST + 1];
	double fragments_pct[SL_SIMULATE_PCT_MOST + 1]; /* of the cluster */
	uint64_t arrived, placed, moved;
	double seconds; /* of placing */
};

struct sl_simulate_ask {
	enum sl_placement_policy policy;
	uint32_t until_pct;
	bool learn_only; /* typical jobs are learnt from arrivals only */
	/* Tasks that may be moved per hour to other GPUs of their nodes, for a job that fits
	 * nowhere; a job arrives each minute. 0: none. Otherwise the cluster machine decides, and
	 * learns from arrivals only. */
	uint32_t moves;
	/* done: of all arrivals; may be NULL. */
	void (*progress)(void *context, uint32_t done, uint32_t all);
	void *context;
};

void sl_simulate_run(const struct sl_trace *trace, const struct sl_arrivals *arrivals,
	const struct sl_simulate_ask *ask, struct sl_simulate_curve *curve);

/* Shuffles the trace's jobs and the nodes' ranks with the seed. Further randomly chosen jobs follow
 * until all together ask for until_pct of the cluster. False: out of memory. */
SL_MUST_CHECK bool sl_simulate_shuffle(const struct sl_trace *trace, uint64_t seed,
	uint32_t until_pct, struct sl_arrivals *arrivals);
/* Each job once, by creation_time, then by place in the file. */
SL_MUST_CHECK bool sl_simulate_in_order(
	const struct sl_trace *trace, struct sl_arrivals *arrivals);
/* 0 to count - 1 in an order drawn from *random (mix.h). */
void sl_simulate_permute(uint32_t *numbers, uint32_t count, uint64_t *random);

#endif
