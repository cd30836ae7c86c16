/*
 * ps_jobs - the part of `sluice ps` that is about jobs
 *
 * A job that runs, or is parked, is a workload too, and has its line among these. Pure but for the
 * memory of what it returns.
 */
#ifndef SL_CLI_CONN_PS_JOBS_H
#define SL_CLI_CONN_PS_JOBS_H

#include "cli/conn/rows.h"
#include "cli/line/table.h"

/* The job that a workload is a task of: its own, or the one whose name comes before ".N". NULL:
 * none. */
const struct sl_msg_job_row *sl_ps_job_of(
	const struct sl_rows *jobs, const struct sl_msg_use_row *use);
/* Has it not ended, and none of the workloads? Then it needs a line of its own. */
bool sl_ps_job_is_alone(const struct sl_msg_job_row *job, const struct sl_rows *uses);
/* Why it waits, or what of it does, cut to its first clause, tamed by the table; "" if nothing
 * waits. Returns buf. */
const char *sl_ps_job_why(const struct sl_msg_job_row *job, char *buf, size_t size);

/* A line per job: those that have not ended, or all. NULL when out of memory. */
struct sl_table *sl_ps_jobs_table(const struct sl_rows *jobs, bool all);
/* The same as a JSON array. */
json_t *sl_ps_jobs_json(const struct sl_rows *jobs, bool all);

/* Sets the ID of a job in what is told of it as JSON. */
void sl_ps_set_id(json_t *object, const struct sl_msg_job_row *job);

#endif
