/*
 * ps_jobs - the lines of `sluice ps` for jobs
 *
 * A running or parked job is also a workload, and has its line among the workloads. Pure but for
 * the memory of its results.
 */
#ifndef SL_CLI_CONN_PS_JOBS_H
#define SL_CLI_CONN_PS_JOBS_H

#include "cli/conn/rows.h"
#include "cli/line/table.h"

/* The job to which a workload belongs: of the same name, or of the part before ".N". NULL: none. */
const struct sl_msg_job_row *sl_ps_job_of(
	const struct sl_rows *jobs, const struct sl_msg_use_row *use);
/* Is it an unfinished job without a workload? Then it needs a line of its own. */
bool sl_ps_job_is_alone(const struct sl_msg_job_row *job, const struct sl_rows *uses);
/* Why the job or a task of it waits, cut to the first clause (the table tames it); "" if nothing
 * waits. Returns buf. */
const char *sl_ps_job_why(const struct sl_msg_job_row *job, char *buf, size_t size);

/* A line per job: unfinished ones, or all. NULL when out of memory. */
struct sl_table *sl_ps_jobs_table(const struct sl_rows *jobs, bool all);
/* The same as a JSON array. */
json_t *sl_ps_jobs_json(const struct sl_rows *jobs, bool all);

/* Sets the ID of a job in its JSON object. */
void sl_ps_set_id(json_t *object, const struct sl_msg_job_row *job);

#endif
