/*
 * out - results of `sluice simulate` as text, JSON, CSV and a picture
 */
#ifndef SL_CLI_SIMULATE_OUT_H
#define SL_CLI_SIMULATE_OUT_H

#include "cli/simulate/run.h"

#include <jansson.h>
#include <stdio.h>

struct sl_simulate_result {
	const struct sl_trace *trace;
	enum sl_placement_policy policy;
	const char *arrivals, *mix; /* mix: NULL for none */
	uint32_t until_pct, seeds;
	const uint64_t *seed; /* names of the curves */
	const struct sl_simulate_curve *curves;
};

/* Mean over the seeds at pct percent. If that percent has no figure, the last one before it that
 * has. */
double sl_simulate_used(const struct sl_simulate_result *result, uint32_t pct);
double sl_simulate_fragments(const struct sl_simulate_result *result, uint32_t pct);
/* Decisions per second of processor time. */
double sl_simulate_speed(const struct sl_simulate_result *result);

void sl_simulate_print(const struct sl_simulate_result *result, FILE *out);
/* NULL when out of memory. */
json_t *sl_simulate_json(const struct sl_simulate_result *result);
/* A line per seed and percent, and the mean as seed `mean`. */
void sl_simulate_csv(const void *result, FILE *out);
/* Allocation over arrived demand: mean, lowest and highest. */
void sl_simulate_svg(const void *result, FILE *out);

/* Lets `write` put the result into the file. False with err, which names the file and the loss. */
SL_MUST_CHECK bool sl_simulate_save(const void *result,
	void (*write)(const void *result, FILE *out), const char *path,
	struct sl_error *err);

#endif
