/* work - see the header */
#include "cli/simulate/work.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRIORITY_MOST 1000000
/* 4 PiB. */
#define MIB_MOST UINT32_MAX

/* --- Projects. --- */

static bool add_default(struct sl_projects *set, struct sl_error *err)
{
	struct sl_project_row row;

	if (sl_projects_find(set, SL_PROJECT_DEFAULT))
		return true;
	sl_project_defaults(&row, SL_PROJECT_DEFAULT);
	if (!sl_projects_put(set, &row))
		return true;
	sl_error_set(err, "there is no room for project " SL_PROJECT_DEFAULT
			  ", which is always there; remove a project");
	return false;
}

bool sl_work_projects(struct sl_work *work, const char *path, struct sl_error *err)
{
	const struct sl_project_row *culprit = NULL;

	if (sl_projects_load(path, &work->projects, err))
		return false;
	if (!add_default(&work->projects, err))
		return false;
	if (sl_projects_check(&work->projects, &culprit, err)) {
		if (culprit) {
			struct sl_error said = *err;

			sl_error_set(
				err, "%s, line %lu: %s", path, culprit->line, said.text);
		}
		return false;
	}
	sl_projects_sort(&work->projects);
	for (size_t i = 0; i < work->projects.count; i++)
		work->projects.rows[i].id = i + 1;
	return true;
}

void sl_work_fini(struct sl_work *work)
{
	sl_projects_fini(&work->projects);
}

static int pool_number(void *context, const char *name)
{
	const struct sl_work *work = context;

	for (uint32_t i = 0; i < work->pool_count; i++)
		if (!strcmp(work->pools[i], name))
			return (int)i;
	return -1;
}

struct sl_project_rules sl_work_rules(struct sl_work *work, uint32_t row)
{
	return sl_project_rules_of(&work->projects.rows[row], pool_number, work);
}

/* --- Fields. --- */

static const char *field(const struct sl_csv *csv, int column)
{
	return column < 0 ? "" : csv->field[column];
}

/* One of two words; an empty field leaves *out unchanged. */
static bool read_choice(const struct sl_csv *csv, int column, const char *yes,
	const char *no, bool *out, struct sl_error *err)
{
	const char *text = field(csv, column);

	if (!*text)
		return true;
	if (strcmp(text, yes) != 0 && strcmp(text, no) != 0) {
		sl_csv_complain(csv, err, "%s is '%.40s'; it must be %s or %s",
			csv->header[column], text, yes, no);
		return false;
	}
	*out = !strcmp(text, yes);
	return true;
}

/* An empty field leaves *out unchanged. */
static bool read_span(
	const struct sl_csv *csv, int column, sl_ns *out, struct sl_error *err)
{
	double seconds;

	if (!sl_csv_seconds(csv, column, &seconds, err))
		return false;
	if (seconds > SL_WORK_SECONDS_MOST) {
		sl_csv_complain(csv, err,
			"%s is '%.40s'; it must be seconds, at most 1000000000",
			csv->header[column], csv->field[column]);
		return false;
	}
	if (*field(csv, column))
		*out = (sl_ns)llrint(seconds * 1e9);
	return true;
}

static bool read_priority(
	const struct sl_csv *csv, int column, int32_t *out, struct sl_error *err)
{
	const char *text = field(csv, column);
	char *end;
	long value;

	if (!*text)
		return true;
	errno = 0;
	value = strtol(text, &end, 10);
	if (*end || errno || *text == ' ' || value < -PRIORITY_MOST ||
		value > PRIORITY_MOST) {
		sl_csv_complain(csv, err,
			"%s is '%.40s'; it must be a whole number of -%d to %d",
			csv->header[column], text, PRIORITY_MOST, PRIORITY_MOST);
		return false;
	}
	*out = (int32_t)value;
	return true;
}

/* --- Nodes. --- */

void sl_work_find_node_columns(const struct sl_csv *csv, struct sl_work_node_columns *at)
{
	*at = (struct sl_work_node_columns){.pool = sl_csv_column(csv, "pool"),
		.host_mib = sl_csv_column(csv, "host_mib"),
		.swaps = sl_csv_column(csv, "swaps"),
		.memory = sl_csv_column(csv, "memory_mib")};
}

static bool read_pool(struct sl_work *work, const struct sl_csv *csv, int column,
	uint8_t *pool, struct sl_error *err)
{
	const char *name = field(csv, column);
	int number = pool_number(work, name);

	if (number >= 0) {
		*pool = (uint8_t)number;
		return true;
	}
	if (*name && !sl_project_is_name(name)) {
		sl_csv_complain(csv, err,
			"pool is '%.40s'; it must be letters, digits, '.', '_' and '-', "
			"at most 63",
			name);
		return false;
	}
	if (work->pool_count == SL_WORK_POOLS) {
		sl_csv_complain(csv, err,
			"the pool '%.40s' is one too many: %d can be told apart", name,
			SL_WORK_POOLS);
		return false;
	}
	*pool = (uint8_t)work->pool_count;
	snprintf(work->pools[work->pool_count++], SL_PROJECT_NAME_MAX, "%s", name);
	return true;
}

bool sl_work_read_node(struct sl_work *work, const struct sl_csv *csv,
	const struct sl_work_node_columns *at, struct sl_work_node *node, uint8_t *pool,
	struct sl_error *err)
{
	uint64_t memory;

	*node = (struct sl_work_node){0};
	return sl_csv_number(csv, at->memory, 0, MIB_MOST, &memory, err) &&
	       sl_csv_number(csv, at->host_mib, (int64_t)memory / 2, MIB_MOST,
		       &node->host_mib, err) &&
	       read_choice(csv, at->swaps, "yes", "no", &node->swaps, err) &&
	       read_pool(work, csv, at->pool, pool, err);
}

/* --- Jobs. --- */

void sl_work_find_job_columns(const struct sl_csv *csv, struct sl_work_job_columns *at)
{
	*at = (struct sl_work_job_columns){
		.project = sl_csv_column(csv, "project"),
		.user = sl_csv_column(csv, "user"),
		.priority = sl_csv_column(csv, "priority"),
		.gang = sl_csv_column(csv, "gang"),
		.min = sl_csv_column(csv, "min"),
		.preemptible = sl_csv_column(csv, "preemptible"),
		.on_reclaim = sl_csv_column(csv, "on_reclaim"),
		.swap_cost = sl_csv_column(csv, "swap_cost"),
		.park_mib = sl_csv_column(csv, "park_mib"),
		.duration = sl_csv_column(csv, "duration"),
		.created = sl_csv_column(csv, "creation_time"),
		.ended = sl_csv_column(csv, "deletion_time"),
	};
}

/* A project without users and groups admits those of its parent. The members of groups are not
 * known here, so a project with groups counts as admitting every user. */
static bool admits(
	const struct sl_projects *set, const struct sl_project_row *row, const char *user)
{
	while (row && !row->users[0] && !row->groups[0])
		row = row->parent[0] ? sl_projects_find(set, row->parent) : NULL;
	return !row || row->groups[0] || sl_project_lists(row->users, user);
}

static bool read_project(struct sl_work *work, const struct sl_csv *csv,
	const struct sl_work_job_columns *at, uint32_t *out, struct sl_error *err)
{
	const char *name = field(csv, at->project), *user = field(csv, at->user);
	const struct sl_project_row *row;

	row = sl_projects_find(&work->projects, *name ? name : SL_PROJECT_DEFAULT);
	if (!row) {
		sl_csv_complain(csv, err,
			"there is no project '%.63s' in the file of projects; add it "
			"there, or name another one",
			name);
		return false;
	}
	if (*user && !admits(&work->projects, row, user)) {
		sl_csv_complain(csv, err,
			"project %s is not for user '%.40s'; add the user to the file of "
			"projects, or name another project",
			row->name, user);
		return false;
	}
	*out = (uint32_t)(row - work->projects.rows);
	return true;
}

static bool read_gang(struct sl_work *work, const struct sl_csv *csv,
	const struct sl_work_job_columns *at, struct sl_work_job *job,
	struct sl_error *err)
{
	uint64_t tasks, least;

	if (!sl_csv_number(csv, at->gang, 1, UINT32_MAX, &tasks, err) ||
		!sl_csv_number(csv, at->min, (int64_t)tasks, UINT32_MAX, &least, err))
		return false;
	if (tasks > SL_WORK_GANG_MOST) {
		sl_csv_complain(csv, err,
			"gang is %llu, and a gang may have %d tasks; make several jobs "
			"of it, or fewer tasks with more GPUs each",
			(unsigned long long)tasks, SL_WORK_GANG_MOST);
		return false;
	}
	if (!tasks || !least || least > tasks) {
		sl_csv_complain(csv, err,
			!tasks   ? "gang is 0; it must be at least 1"
			: !least ? "min is 0; it must be at least 1"
				 : "min is %llu, more than the %llu of its gang",
			(unsigned long long)least, (unsigned long long)tasks);
		return false;
	}
	work->tasks += tasks;
	if (work->tasks > SL_WORK_TASKS_MOST) {
		sl_csv_complain(csv, err, "more than %d tasks in all of the gangs",
			SL_WORK_TASKS_MOST);
		return false;
	}
	job->tasks = (uint32_t)tasks;
	job->least = (uint32_t)least;
	return true;
}

static bool read_times(const struct sl_csv *csv, const struct sl_work_job_columns *at,
	struct sl_work_job *job, struct sl_error *err)
{
	sl_ns ended = 0;

	if (!read_span(csv, at->created, &job->created, err) ||
		!read_span(csv, at->ended, &ended, err))
		return false;
	if (*field(csv, at->duration))
		return read_span(csv, at->duration, &job->duration, err);
	if (!*field(csv, at->ended)) {
		sl_csv_complain(csv, err,
			"it does not say how long it runs; give duration, or "
			"deletion_time");
		return false;
	}
	if (ended < job->created) {
		sl_csv_complain(csv, err,
			"deletion_time %.40s is before creation_time %.40s",
			field(csv, at->ended), field(csv, at->created));
		return false;
	}
	job->duration = ended - job->created;
	return true;
}

static bool read_stops(const struct sl_work *work, const struct sl_csv *csv,
	const struct sl_work_job_columns *at, const struct sl_need *need,
	struct sl_work_job *job, struct sl_error *err)
{
	bool parks = !work->terminates, preemptible;

	job->priority = SL_JOB_PRIORITY_TRAIN;
	job->swap_cost = work->swap_cost;
	if (!read_priority(csv, at->priority, &job->priority, err))
		return false;
	preemptible = job->priority <= SL_JOB_PRIORITY_PREEMPTIBLE;
	if (!read_choice(csv, at->preemptible, "yes", "no", &preemptible, err) ||
		!read_choice(csv, at->on_reclaim, "park", "terminate", &parks, err))
		return false;
	job->flags = (preemptible ? SL_JOB_PREEMPTIBLE : 0) | (parks ? SL_JOB_PARKS : 0);
	return read_span(csv, at->swap_cost, &job->swap_cost, err) &&
	       sl_csv_number(csv, at->park_mib, (int64_t)need->gpu_mib * need->gpus,
		       MIB_MOST, &job->park_mib, err);
}

bool sl_work_read_job(struct sl_work *work, const struct sl_csv *csv,
	const struct sl_work_job_columns *at, const struct sl_need *need,
	struct sl_work_job *job, struct sl_error *err)
{
	*job = (struct sl_work_job){.line = csv->line};
	return read_project(work, csv, at, &job->project, err) &&
	       read_gang(work, csv, at, job, err) && read_times(csv, at, job, err) &&
	       read_stops(work, csv, at, need, job, err);
}
