/*
 * simulate_report - what `sluice simulate --projects` found, as text, JSON, CSV and a picture
 *
 * Figures of several runs are means over the runs.
 */
#ifndef SL_CLI_SIMULATE_REPORT_H
#define SL_CLI_SIMULATE_REPORT_H

#include "cli/simulate_world.h"

#include <jansson.h>
#include <stdio.h>

struct sl_report {
	const struct sl_trace *trace;
	enum sl_placement_policy policy;
	const char *arrivals, *jobs; /* jobs: the file */
	uint32_t runs;
	const uint64_t *seed;             /* names of the runs */
	const struct sl_figures *figures; /* of each run, all of one width */
	const struct sl_world_refusal *refusal;
};

/* False when out of memory. */
SL_MUST_CHECK bool sl_report_print(const struct sl_report *report, FILE *out);
/* NULL when out of memory. */
json_t *sl_report_json(const struct sl_report *report);
/* What each project had and was due over time: a line per run, stretch and project; `*`: all together. */
void sl_report_csv(const void *report, FILE *out);
/* What each project had over time, one upon the other. */
void sl_report_svg(const void *report, FILE *out);

#endif
