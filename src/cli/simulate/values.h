/*
 * values - the figures of `sluice simulate --projects`, by name, as means over runs
 */
#ifndef SL_CLI_SIMULATE_VALUES_H
#define SL_CLI_SIMULATE_VALUES_H

#include "cli/simulate/world.h"

struct sl_report {
	const struct sl_trace *trace;
	enum sl_placement_policy policy;
	const char *arrivals, *jobs; /* jobs: the file */
	uint32_t runs;
	const uint64_t *seed;             /* names of the runs */
	const struct sl_figures *figures; /* of each run, all of one width */
	const struct sl_world_refusal *refusal;
};

/* SL_VALUE(NAME, name): the figures of a project and of all together; counts come in addition. */
#define SL_REPORT_VALUE_LIST                                                  \
	SL_VALUE(WAIT_MEDIAN, wait_median_s)                                  \
	SL_VALUE(WAIT_P95, wait_p95_s)                                        \
	SL_VALUE(USED, used_gpu_h)     /* GPUs x hours that it used */        \
	SL_VALUE(SHARE, share_gpu_h)   /* of its fair share */                \
	SL_VALUE(PART, part_of_share)  /* the former divided by the latter */ \
	SL_VALUE(REDONE, redone_gpu_h) /* work that was lost and done again */

enum sl_report_value {
#define SL_VALUE(NAME, name) SL_VALUE_##NAME,
	SL_REPORT_VALUE_LIST
#undef SL_VALUE
		SL_REPORT_VALUES
};

/* SL_WHOLE(NAME, name): the figures of the cluster. */
#define SL_REPORT_WHOLE_LIST                                                  \
	SL_WHOLE(SPAN, span_s)                                                \
	SL_WHOLE(ALLOCATED, allocated_pct) /* means over time, of all GPUs */ \
	SL_WHOLE(FRAGMENTS, fragments_pct)                                    \
	SL_WHOLE(WAITING, waiting_jobs)                                       \
	SL_WHOLE(MOVES, moved_per_h)                                          \
	SL_WHOLE(JAIN, jain)

enum sl_report_whole {
#define SL_WHOLE(NAME, name) SL_WHOLE_##NAME,
	SL_REPORT_WHOLE_LIST
#undef SL_WHOLE
		SL_REPORT_WHOLES
};

/* Names of JSON members. */
extern const char *const sl_report_value_names[SL_REPORT_VALUES];
extern const char *const sl_report_count_names[SL_FIGURES];
extern const char *const sl_report_whole_names[SL_REPORT_WHOLES];

/* One figure of one run; what: from the enum that goes with it (enum sl_figure for a count). NaN:
 * there is none. */
typedef double (*sl_report_fn)(
	const struct sl_figures *figures, uint32_t project, int what);
double sl_report_value(const struct sl_figures *figures, uint32_t project, int what);
double sl_report_count(const struct sl_figures *figures, uint32_t project, int what);
/* project: sl_report_projects() for all of them. */
double sl_report_whole(const struct sl_figures *figures, uint32_t project, int what);

/* Mean over the runs that have a figure; NaN if none has. */
double sl_report_mean(
	const struct sl_report *report, uint32_t project, sl_report_fn figure, int what);

uint32_t sl_report_projects(const struct sl_report *report);
/* Does the project have jobs? */
bool sl_report_has_jobs(const struct sl_report *report, uint32_t project);
const char *sl_report_name(const struct sl_report *report, uint32_t project);

/* "5 s", "12.5 min", "3.2 h", "4.1 d"; returns buf. 32 bytes suffice. */
const char *sl_report_span(double s, char *buf, size_t size);

#endif
