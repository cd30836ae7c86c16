/*
 * trace - nodes, jobs and orders of arrival from CSV files
 *
 * The columns of the public Alibaba traces (openb), found by name in the first line; others are
 * ignored:
 *   nodes     sn or name, cpu_milli, memory_mib, gpu; model, gpu_mib
 *   jobs      name, cpu_milli, memory_mib, num_gpu, gpu_milli; gpu_spec (models, '|' between),
 *             gpu_mib, creation_time, deletion_time (seconds)
 *   arrivals  seed, kind, indices: a line of kind `pods` with the rows of the jobs file (from 0) in
 *             the order of arrival; and one of kind `nodes` with each node's rank for ties
 * Columns behind the semicolon are optional. work.h has further columns, for projects. A file must
 * end with a newline: without one it may have been cut short. Errors name file and line.
 */
#ifndef SL_CLI_SIMULATE_TRACE_H
#define SL_CLI_SIMULATE_TRACE_H

#include "base/error.h"
#include "cli/simulate/work.h"
#include "policy/placement/fit.h"

#define SL_TRACE_MODELS 64
#define SL_TRACE_MODEL  32 /* bytes of a model's name */
#define SL_TRACE_NODES  100000
#define SL_TRACE_JOBS   10000000

struct sl_trace_job {
	struct sl_need need;
	double created, ended; /* seconds; 0 if the file lacks them */
};

struct sl_trace {
	struct sl_fit_node *nodes;
	uint32_t node_count;
	char models[SL_TRACE_MODELS][SL_TRACE_MODEL];
	uint32_t model_count;
	struct sl_trace_job *jobs;
	uint32_t job_count;
	uint64_t capacity_milli; /* of all GPUs */
	/* With projects, else NULL: the columns of work.h by node and by job. The caller owns the
	 * set. */
	struct sl_work *work;
	struct sl_work_node *work_nodes;
	struct sl_work_job *work_jobs;
};

/* One order of arrival. */
struct sl_arrivals {
	uint64_t seed;
	uint32_t *jobs, count;
	uint32_t *ranks; /* by node */
};

struct sl_arrivals_list {
	struct sl_arrivals *all;
	uint32_t count;
};

enum sl_trace_outcome { SL_TRACE_OK = 0, SL_TRACE_BAD /* err names file and line */ };

/* Zero-initialise, and fini in any case. Read nodes first: jobs name their models. */
SL_MUST_CHECK int sl_trace_nodes(
	struct sl_trace *trace, const char *path, struct sl_error *err);
SL_MUST_CHECK int sl_trace_jobs(
	struct sl_trace *trace, const char *path, struct sl_error *err);
void sl_trace_fini(struct sl_trace *trace);

/* Orders for this trace; indices are checked. */
SL_MUST_CHECK int sl_arrivals_read(struct sl_arrivals_list *list,
	const struct sl_trace *trace, const char *path, struct sl_error *err);
void sl_arrivals_fini(struct sl_arrivals_list *list);

/* GPU thousandths that a job asks for in all. */
static inline uint64_t sl_trace_milli(const struct sl_need *need)
{
	return (uint64_t)need->gpus * need->gpu_milli;
}

#endif
