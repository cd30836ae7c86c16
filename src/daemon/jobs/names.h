/*
 * names - what jobs and their tasks are called, and that of one user no two things that live
 * are called the same
 *
 * A job's name is that of its one workload; the tasks of a gang are workloads named NAME.T. Names
 * of digits only are nobody's (see sl_control_mistake): they would stand in front of numbers. Pure
 * but for what it looks at; all calls are the loop's.
 */
#ifndef SL_DAEMON_JOBS_NAMES_H
#define SL_DAEMON_JOBS_NAMES_H

#include "base/error.h"
#include "daemon/jobs/store.h"

struct sl_daemon;
struct sl_jobs;

/* Bytes of a gang's name: ".1023" has to fit behind it. */
#define SL_JOBS_GANG_NAME_MOST 58

/* Of the workload of that task. */
void sl_jobs_task_name(const struct sl_jobs_row *row, uint32_t task, char name[64]);
/* May a new job of so many tasks be called so? Else err says what is in the way, and the remedy. */
SL_MUST_CHECK bool sl_jobs_name_is_free(struct sl_daemon *daemon, uid_t uid,
	const char *name, uint32_t tasks, struct sl_error *err);

#endif
