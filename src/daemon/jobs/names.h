/*
 * names - the names of jobs and their tasks, unique among one user's living jobs and workloads
 *
 * A job's name is that of its one workload; the tasks of a gang are workloads named NAME.T. A name
 * must not be all digits (see sl_control_mistake): numbers mean ids. Reads the lists of jobs and
 * workloads, changes nothing; all calls are the loop's.
 */
#ifndef SL_DAEMON_JOBS_NAMES_H
#define SL_DAEMON_JOBS_NAMES_H

#include "base/error.h"
#include "daemon/jobs/state.h"

struct sl_daemon;
struct sl_jobs;

/* Most bytes of a gang's name: ".1023" must fit behind it. */
#define SL_JOBS_GANG_NAME_MOST 58

/* The name of that task's workload. */
void sl_jobs_task_name(const struct sl_jobs_row *row, uint32_t task, char name[64]);
/* May a new job of so many tasks have this name? If not, err says what has it, and the remedy. */
SL_MUST_CHECK bool sl_jobs_name_is_free(struct sl_daemon *daemon, uid_t uid,
	const char *name, uint32_t tasks, struct sl_error *err);

#endif
