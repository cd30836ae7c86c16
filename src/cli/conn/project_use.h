/*
 * project_use - what projects have of the GPUs now, against what they are guaranteed
 *
 * From the lists of the daemon, a moment apart. What a project has is the requests of its workloads
 * and of those of projects below it, in thousandths of a GPU; what is parked has given its own up.
 * Memory is the struct's own.
 */
#ifndef SL_CLI_CONN_PROJECT_USE_H
#define SL_CLI_CONN_PROJECT_USE_H

#include "cli/conn/rows.h"

struct sl_project_use {
	struct sl_rows projects, uses, swap, gpus, jobs;
};

/* Outcomes of sl_conn_open. *use must be zeroed; fini it after every outcome. */
SL_MUST_CHECK int sl_project_use_fetch(
	struct sl_project_use *use, struct sl_conn *conn, struct sl_error *err);
void sl_project_use_fini(struct sl_project_use *use);

/* Thousandths of a GPU. O(workloads x projects). */
int64_t sl_project_use_of(const struct sl_project_use *use, const char *project);
/* Can others take this workload's GPUs back: does its project have more than its quota, and has
 * another one a quota? row: of use->uses. */
bool sl_project_use_gives(
	const struct sl_project_use *use, const struct sl_msg_use_row *row);

#endif
