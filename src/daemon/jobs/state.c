/*
 * state - see the header
 *
 * One table of fields for writing and reading, for the job and for its tasks (store/record.h).
 */
#include "daemon/jobs/state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/record.h"
#include "policy/cluster.h"
#include "policy/compute/compute.h"

#define GPUS_MAX 64

#define ROW(what, member, least, most) SL_FIELD_AT(sl_jobs_row, what, member, least, most)
#define TASK(what, member, most)       SL_FIELD_AT(sl_jobs_task, what, member, 0, most)
#define NAMED(name, what, member, most)                                                 \
	{                                                                               \
		name, SL_FIELD_##what, offsetof(struct sl_jobs_row, member), 0, 0, most \
	}

static const struct sl_field job_fields[] = {
	ROW(U32, uid, 0, UINT32_MAX - 1),
	ROW(U32, gid, 0, UINT32_MAX - 1),
	ROW(TEXT, name, 0, 0),
	ROW(TEXT, project, 0, 0),
	ROW(TEXT, command, 0, 0),
	ROW(TEXT, visible, 0, 0),
	NAMED("request_kind", U32, request.kind, SL_AMOUNT_KINDS - 1),
	NAMED("request_value", U64, request.value, 0),
	NAMED("limit_kind", U32, limit.kind, SL_AMOUNT_KINDS - 1),
	NAMED("limit_value", U64, limit.value, 0),
	ROW(U32, gpu_count, 0, GPUS_MAX),
	ROW(U32, flags, 0, UINT32_MAX),
	ROW(U32, task_count, 1, SL_JOB_TASKS_MAX),
	ROW(U32, least, 0, SL_JOB_TASKS_MAX),
	ROW(U32, retries, 0, SL_JOB_RETRIES_MAX),
	ROW(U32, workloads_most, 0, UINT32_MAX),
	ROW(I32, priority, -SL_PRIORITY_MAX, SL_PRIORITY_MAX),
	ROW(U64, wait_max, 0, 0),
	ROW(U64, warm_after, 0, 0),
	ROW(U64, detach_after, 0, 0),
	ROW(U64, preempt_delay, 0, 0),
	ROW(U64, idle_grace, 0, 0),
	ROW(U32, compute_request_pm, 0, SL_COMPUTE_WHOLE),
	ROW(U32, compute_limit_pm, 0, SL_COMPUTE_WHOLE),
	ROW(U32, state, 0, SL_JOB_STATES - 1),
	ROW(U64, submitted_ms, 0, 0),
	ROW(U64, started_ms, 0, 0),
	ROW(U64, ended_ms, 0, 0),
	ROW(U32, exit_status, 0, UINT32_MAX),
	ROW(U32, started, 0, UINT32_MAX),
	ROW(TEXT, why, 0, 0),
};

static const struct sl_field task_fields[] = {
	TASK(U32, state, SL_TASK_STATES - 1),
	TASK(U32, attempt, UINT32_MAX),
	TASK(U32, failures, UINT32_MAX),
	TASK(U64, workload, 0),
	TASK(YES, parked, 0),
	TASK(U32, exit_status, UINT32_MAX),
};

void sl_jobs_row_fini(struct sl_jobs_row *row)
{
	free(row->tasks);
	row->tasks = NULL;
}

/* --- Writing. --- */

char *sl_jobs_state_write(const struct sl_jobs_row *row)
{
	json_t *json = sl_record_json(job_fields, SL_ARRAY_LEN(job_fields), row);
	json_t *tasks = json_array();
	bool ok = json && tasks;
	char *text = NULL;

	for (uint32_t i = 0; ok && i < row->task_count; i++)
		ok = json_array_append_new(
			     tasks, sl_record_json(task_fields, SL_ARRAY_LEN(task_fields),
					    &row->tasks[i])) == 0;
	if (ok && json_object_set(json, "tasks", tasks) == 0)
		text = json_dumps(json, JSON_COMPACT);
	json_decref(tasks);
	json_decref(json);
	return text;
}

/* --- Reading. Each: false says what is wrong in err. --- */

static bool amount_is_fine(const struct sl_amount *amount)
{
	return amount->kind != SL_AMOUNT_FRACTION ||
	       (amount->value >= 1 && amount->value <= SL_AMOUNT_WHOLE);
}

static bool fits_together(const struct sl_jobs_row *row, struct sl_error *err)
{
	const char *wrong = NULL;

	if (!amount_is_fine(&row->request) || !amount_is_fine(&row->limit))
		wrong = "'request_value' or 'limit_value' is not what it may be";
	else if (row->least > row->task_count)
		wrong = "'least' is more than 'task_count'";
	if (wrong)
		sl_error_set(err, "%s", wrong);
	return !wrong;
}

static bool read_tasks(const json_t *tasks, struct sl_jobs_row *row, struct sl_error *err)
{
	if (!json_is_array(tasks) || json_array_size(tasks) != row->task_count) {
		sl_error_set(err, "'tasks' are not as many as 'task_count'");
		return false;
	}
	row->tasks = calloc(row->task_count, sizeof(*row->tasks));
	if (!row->tasks) {
		sl_error_set(err, "there is no memory for it");
		return false;
	}
	for (uint32_t i = 0; i < row->task_count; i++) {
		if (sl_record_from(task_fields, SL_ARRAY_LEN(task_fields), 0,
			    json_array_get(tasks, i), &row->tasks[i], err))
			continue;
		sl_error_wrap(err, "task %" PRIu32, i);
		return false;
	}
	return true;
}

bool sl_jobs_state_read(
	const char *text, uint64_t id, struct sl_jobs_row *row, struct sl_error *err)
{
	json_t *json = sl_record_parse(text, strlen(text), err);
	bool ok;

	*row = (struct sl_jobs_row){.id = id};
	/* One more: tasks. */
	ok = json &&
	     sl_record_from(job_fields, SL_ARRAY_LEN(job_fields), 1, json, row, err) &&
	     fits_together(row, err) &&
	     read_tasks(json_object_get(json, "tasks"), row, err);
	json_decref(json);
	if (!ok) {
		sl_jobs_row_fini(row);
		*row = (struct sl_jobs_row){0};
	}
	return ok;
}
