/*
 * names - see the header
 *
 * Tasks of two gangs with different names never collide: the number is behind the last dot, and all
 * before it is the name, which is never cut. So it suffices to compare each gang's name with the
 * name and the tasks of the other.
 */
#include "daemon/jobs/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/jobs/internal.h"
#include "daemon/workloads/workload.h"

_Static_assert(SL_JOB_TASKS_MAX <= 10000, "SL_JOBS_GANG_NAME_MOST is for four digits");

void sl_jobs_task_name(const struct sl_jobs_row *row, uint32_t task, char name[64])
{
	if (row->task_count == 1)
		memcpy(name, row->name, 64);
	else
		(void)snprintf(name, 64, "%.*s.%" PRIu32, SL_JOBS_GANG_NAME_MOST,
			row->name, task);
}

/* Is it the name of a task of a job of that name and size? */
static bool is_task_of(const char *name, const char *job, uint32_t tasks)
{
	size_t length = strlen(job);
	const char *digits = name + length + 1;
	char *end;

	if (tasks < 2 || strncmp(name, job, length) != 0 || name[length] != '.')
		return false;
	/* Digits as we write them: no blanks, signs, or leading zeros. */
	if (digits[0] < '0' || digits[0] > '9' || (digits[0] == '0' && digits[1]))
		return false;
	return strtoul(digits, &end, 10) < tasks && !*end;
}

/* other: the name of an existing workload, or of a job of so many tasks. */
static bool collide(const char *name, uint32_t tasks, const char *other,
	uint32_t other_tasks, struct sl_error *err)
{
	if (strcmp(name, other) == 0)
		sl_error_set(err,
			"a job or workload named %s is there already; choose another "
			"--name, or end that one (sluice ps)",
			name);
	else if (is_task_of(name, other, other_tasks))
		sl_error_set(err,
			"%s is what a task of job %s is named; choose another --name, or "
			"end that job (sluice ps)",
			name, other);
	else if (is_task_of(other, name, tasks))
		sl_error_set(err,
			"a task of it would be named %s, as a job or workload is that is "
			"there already; choose another --name, or end that one (sluice "
			"ps)",
			other);
	else
		return false;
	return true;
}

bool sl_jobs_name_is_free(struct sl_daemon *daemon, uid_t uid, const char *name,
	uint32_t tasks, struct sl_error *err)
{
	sl_list_foreach (link, &daemon->jobs->all) {
		const struct sl_job *job = SL_LIST_ENTRY(link, struct sl_job, link);

		if (!job->over && job->row.uid == uid &&
			collide(name, tasks, job->row.name, job->row.task_count, err))
			return false;
	}
	sl_list_foreach (link, &daemon->workload_list) {
		const struct sl_workload *workload =
			SL_LIST_ENTRY(link, struct sl_workload, link);

		if (workload->uid == uid && collide(name, tasks, workload->name, 1, err))
			return false;
	}
	return true;
}
