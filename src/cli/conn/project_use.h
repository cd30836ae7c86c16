/*
 * project_use - the GPUs that projects use now, against their quotas
 *
 * Computed from lists of the daemon that are read a moment apart. A project uses the requests of
 * its own workloads and of those in projects below it, in thousandths of a GPU: the larger of the
 * shares of memory and of time. The request of a
 * parked workload does not count. The struct owns its memory.
 */
#ifndef SL_CLI_CONN_PROJECT_USE_H
#define SL_CLI_CONN_PROJECT_USE_H

#include "cli/conn/rows.h"

struct sl_project_use {
	struct sl_rows projects, uses, gpus, jobs;
};

/* Outcomes of sl_conn_open. *use must be zeroed; fini it after every outcome. */
SL_MUST_CHECK int sl_project_use_fetch(
	struct sl_project_use *use, struct sl_conn *conn, struct sl_error *err);
void sl_project_use_fini(struct sl_project_use *use);

/* Thousandths of a GPU. O(workloads x projects). */
int64_t sl_project_use_of(const struct sl_project_use *use, const char *project);
/* Can others take this workload's GPUs back? True if its project is over its quota and another
 * project has one. row: from use->uses. */
bool sl_project_use_gives(
	const struct sl_project_use *use, const struct sl_msg_use_row *row);

#endif
