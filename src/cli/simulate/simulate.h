/*
 * simulate - the common part of the two kinds of `sluice simulate`: command line and progress bar
 */
#ifndef SL_CLI_SIMULATE_SIMULATE_H
#define SL_CLI_SIMULATE_SIMULATE_H

#include "base/clock.h"
#include "base/error.h"
#include "policy/placement/score.h"

/* For options that were not given texts are NULL, numbers 0, first_seed -1, and swap_cost
 * SL_NS_NEVER. */
struct sl_simulate_settings {
	const char *nodes, *jobs, *projects, *policy, *arrivals, *until, *mix, *learn;
	const char *output, *plot, *on_reclaim;
	int64_t seeds, first_seed, moves;
	sl_ns swap_cost, resume_wait, failures, repair, cycle;
	bool json;
};

/* NULL: the default. False with err. */
SL_MUST_CHECK bool sl_simulate_read_policy(
	const char *name, enum sl_placement_policy *policy, struct sl_error *err);

/* On standard error. run: from 0. */
void sl_simulate_bar(uint32_t run, uint32_t runs, uint32_t done, uint32_t all);
void sl_simulate_bar_end(void);

/* With --projects: quotas, reclaim, waits. Returns the exit status. */
int sl_simulate_whatif(const struct sl_simulate_settings *settings);

#endif
