/* See ps_jobs.h. The time of a job counts from its first start, including the time it was
 * parked. */
#include "cli/conn/ps_jobs.h"

#include "cli/conn/jobs.h"
#include "cli/conn/state.h"

#include <stdio.h>
#include <string.h>

enum {
	ID,
	NAME,
	PROJECT,
	PRIO,
	STATE,
	TASKS,
	GPUS,
	REQUEST,
	AGE,
	RAN,
	EXIT,
	COMMAND,
	WHY,
	COLUMNS
};
static const struct sl_column columns[COLUMNS] = {
	[ID] = {"ID", true, 0, 0},
	[NAME] = {"NAME", false, 10, 0},
	[PROJECT] = {"PROJECT", false, 7, 5},
	[PRIO] = {"PRIO", true, 0, 2},
	[STATE] = {"STATE", false, 0, 0},
	[TASKS] = {"TASKS", true, 0, 0},
	[GPUS] = {"GPUS", true, 0, 3},
	[REQUEST] = {"REQUEST", true, 0, 4},
	[AGE] = {"AGE", true, 0, 6},
	[RAN] = {"RAN", true, 0, 0},
	[EXIT] = {"EXIT", true, 0, 0},
	[COMMAND] = {"COMMAND", false, 8, 1},
	[WHY] = {"WHY", false, 12, 7},
};

const struct sl_msg_job_row *sl_ps_job_of(
	const struct sl_rows *jobs, const struct sl_msg_use_row *use)
{
	for (size_t i = 0; i < jobs->count; i++) {
		const struct sl_msg_job_row *job = &jobs->all[i].job_row;
		size_t len = strlen(job->name);

		if (sl_tell_job_is_over(job->state) || job->uid != use->uid)
			continue;
		if (job->workload && job->workload == use->workload)
			return job;
		if (job->tasks == 1 && !strcmp(use->name, job->name))
			return job;
		if (job->tasks > 1 && !strncmp(use->name, job->name, len) &&
			use->name[len] == '.' &&
			use->name[len + 1 + strspn(use->name + len + 1, "0123456789")] ==
				'\0')
			return job;
	}
	return NULL;
}

bool sl_ps_job_is_alone(const struct sl_msg_job_row *job, const struct sl_rows *uses)
{
	const struct sl_rows one = {.all = (union sl_msg *)job, .count = 1};

	if (sl_tell_job_is_over(job->state))
		return false;
	for (size_t i = 0; i < uses->count; i++)
		if (sl_ps_job_of(&one, &uses->all[i].use_row))
			return false;
	return true;
}

const char *sl_ps_job_why(const struct sl_msg_job_row *job, char *buf, size_t size)
{
	bool waits = job->state <= SL_JOB_PARKED;
	const char *end = strstr(job->why, "; ");

	snprintf(buf, size, "%.*s",
		waits ? (int)(end ? end - job->why : (long)strlen(job->why)) : 0,
		job->why);
	return buf;
}

static void set_end(struct sl_table *table, const struct sl_msg_job_row *job)
{
	bool over = sl_tell_job_is_over(job->state);
	char text[16];

	sl_table_set(table, RAN, "%s",
		job->started_ms ? sl_table_age(sl_jobs_span_ms(job), text, sizeof(text))
				: "-");
	if (!over)
		sl_table_set(table, EXIT, "-");
	else if (job->exit_status == SL_JOB_LOST)
		sl_table_set(table, EXIT, "?");
	else
		sl_table_set(
			table, EXIT, "%d", sl_jobs_exit(job->state, job->exit_status));
}

static bool add(struct sl_table *table, const struct sl_msg_job_row *job)
{
	const struct sl_amount request = {
		.kind = job->request_kind, .value = job->request_value};
	char text[sizeof(job->why)];

	sl_table_set(
		table, ID, "%llu", (unsigned long long)(job->job & ~SL_JOB_FOREGROUND));
	sl_state_set_name(table, NAME, job->uid, job->name);
	sl_table_set(table, PROJECT, "%s", job->project);
	sl_table_set(table, PRIO, "%d", (int)(job->priority_biased - SL_PRIORITY_BIAS));
	sl_table_set(table, STATE, "%s", sl_wire_job_state(job->state));
	sl_table_set(table, TASKS, "%u/%u", job->running, job->tasks);
	sl_table_set(table, GPUS, "%u", job->gpu_count);
	sl_table_set(table, REQUEST, "%s",
		request.kind ? sl_amount_format(&request, text, sizeof(text)) : "-");
	sl_table_set(
		table, AGE, "%s", sl_table_age(sl_jobs_age_ms(job), text, sizeof(text)));
	set_end(table, job);
	sl_table_set(table, COMMAND, "%s", job->command);
	sl_table_set(table, WHY, "%s",
		sl_tell_job_is_over(job->state) ? job->why
						: sl_ps_job_why(job, text, sizeof(text)));
	return sl_table_end_row(table);
}

struct sl_table *sl_ps_jobs_table(const struct sl_rows *jobs, bool all)
{
	struct sl_table *table = sl_table_new(columns, COLUMNS);

	for (size_t i = 0; table && i < jobs->count; i++)
		if ((all || !sl_tell_job_is_over(jobs->all[i].job_row.state)) &&
			!add(table, &jobs->all[i].job_row))
			table = sl_table_free(table);
	return table;
}

void sl_ps_set_id(json_t *object, const struct sl_msg_job_row *job)
{
	json_object_set_new(
		object, "id", json_integer((json_int_t)(job->job & ~SL_JOB_FOREGROUND)));
}

json_t *sl_ps_jobs_json(const struct sl_rows *jobs, bool all)
{
	json_t *array = json_array();

	for (size_t i = 0; i < jobs->count; i++) {
		const struct sl_msg_job_row *job = &jobs->all[i].job_row;
		json_t *object;

		if (!all && sl_tell_job_is_over(job->state))
			continue;
		object = sl_tell_job(job, sl_tell_now_ms());
		sl_ps_set_id(object, job);
		json_array_append_new(array, object);
	}
	return array;
}
