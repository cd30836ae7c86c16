/*
 * report - results of `sluice simulate --projects` as text, JSON, CSV and a picture
 *
 * Figures of several runs are means over the runs.
 */
#ifndef SL_CLI_SIMULATE_REPORT_H
#define SL_CLI_SIMULATE_REPORT_H

#include "cli/simulate/values.h"

#include <jansson.h>
#include <stdio.h>

/* False when out of memory. */
SL_MUST_CHECK bool sl_report_print(const struct sl_report *report, FILE *out);
/* NULL when out of memory. */
json_t *sl_report_json(const struct sl_report *report);
/* GPUs and fair share of each project over time: a line per run, stretch and project; `*`: all
 * together. */
void sl_report_csv(const void *report, FILE *out);
/* GPUs of each project over time, stacked. */
void sl_report_svg(const void *report, FILE *out);

#endif
