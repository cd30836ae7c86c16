/* A project's quota covers all projects below it, so their use counts, too. */
#include "cli/conn/project_use.h"

#include "cli/conn/ps_jobs.h"
#include "cli/conn/state.h"
#include "daemon/projects/projects.h"
#include "daemon/projects/wire.h"

#include <string.h>

int sl_project_use_fetch(
	struct sl_project_use *use, struct sl_conn *conn, struct sl_error *err)
{
	const struct {
		struct sl_rows *rows;
		enum sl_list_what what;
	} lists[] = {
		{&use->jobs, SL_LIST_JOBS},
		{&use->uses, SL_LIST_USES},
		{&use->gpus, SL_LIST_GPUS},
		{&use->projects, SL_LIST_PROJECTS},
	};
	int status = SL_EXIT_OK;

	for (size_t i = 0; !status && i < SL_ARRAY_LEN(lists); i++)
		status = sl_rows_list(lists[i].rows, conn, lists[i].what, err);
	return status;
}

void sl_project_use_fini(struct sl_project_use *use)
{
	sl_rows_fini(&use->projects);
	sl_rows_fini(&use->uses);
	sl_rows_fini(&use->gpus);
	sl_rows_fini(&use->jobs);
}

static const struct sl_msg_project_row *find(
	const struct sl_project_use *use, const char *name)
{
	for (size_t i = 0; i < use->projects.count; i++)
		if (!strcmp(use->projects.all[i].project_row.name, name))
			return &use->projects.all[i].project_row;
	return NULL;
}

static const char *project_of(const struct sl_msg_use_row *row)
{
	return row->project[0] ? row->project : SL_PROJECT_DEFAULT;
}

/* Is project `name` the one called `project`, or below it? The count ends a cycle, which only a
 * faulty daemon would send. */
static bool is_within(
	const struct sl_project_use *use, const char *name, const char *project)
{
	for (size_t i = 0; i <= use->projects.count && name[0]; i++) {
		const struct sl_msg_project_row *row = find(use, name);

		if (!strcmp(name, project))
			return true;
		if (!row)
			return false;
		name = row->parent;
	}
	return false;
}

static int64_t requested(
	const struct sl_project_use *use, const struct sl_msg_use_row *row)
{
	if (sl_wire_gave_up_request(row->residency))
		return 0;
	for (size_t i = 0; i < use->gpus.count; i++) {
		const struct sl_msg_gpu_row *gpu = &use->gpus.all[i].gpu_row;

		if (gpu->gpu == row->gpu && gpu->shareable_bytes)
			return (int64_t)sl_max_u64(row->compute_request_pm,
				(uint64_t)((double)row->request_bytes * 1000 /
						   (double)gpu->shareable_bytes +
					   0.5));
	}
	return 0;
}

int64_t sl_project_use_of(const struct sl_project_use *use, const char *project)
{
	int64_t sum = 0;

	for (size_t i = 0; i < use->uses.count; i++) {
		const struct sl_msg_use_row *row = &use->uses.all[i].use_row;

		if (is_within(use, project_of(row), project))
			sum += requested(use, row);
	}
	return sum;
}

static bool others_have_quota(const struct sl_project_use *use, const char *project)
{
	for (size_t i = 0; i < use->projects.count; i++) {
		const struct sl_msg_project_row *row = &use->projects.all[i].project_row;

		if ((int64_t)row->gpu_quota > 0 && !is_within(use, row->name, project) &&
			!is_within(use, project, row->name))
			return true;
	}
	return false;
}

/* A job that cannot be preempted stays within the quota, and so does memory that cannot be
 * moved. */
static bool is_fixed(const struct sl_project_use *use, const struct sl_msg_use_row *row)
{
	const struct sl_msg_job_row *job = sl_ps_job_of(&use->jobs, row);

	if (job)
		return !(job->flags & SL_SUBMIT_PREEMPTIBLE);
	return row->flags & SL_USE_NO_SWAP;
}

bool sl_project_use_gives(
	const struct sl_project_use *use, const struct sl_msg_use_row *row)
{
	const struct sl_msg_project_row *project = find(use, project_of(row));
	int64_t quota = project ? (int64_t)project->gpu_quota : 0;

	return requested(use, row) > 0 && !is_fixed(use, row) && quota >= 0 &&
	       sl_project_use_of(use, project_of(row)) > quota &&
	       others_have_quota(use, project_of(row));
}
