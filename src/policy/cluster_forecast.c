/*
 * cluster_forecast - what would become of a job that came now
 *
 * The job is added, tried by the very code of a cycle, and taken away again; nothing of it is told
 * to anybody. Three things are kept from it: placement, which would learn from what it is asked
 * (cluster->dry); the moments of waking; and the counters that later events are numbered by.
 */
#include "policy/cluster_hunt.h"
#include "policy/quota/explain.h"

#include "policy/mutant.h"

/* As nodes and projects are, it could not run even if it were alone. */
static bool is_never(enum sl_pending_reason reason)
{
	return reason == SL_PENDING_NEVER || reason == SL_PENDING_GANG_NEVER ||
	       reason == SL_PENDING_OVER_LIMIT || reason == SL_PENDING_OVER_QUOTA;
}

static bool makes_room(struct sl_cluster *cl, struct sl_cl_group *group,
	struct sl_cluster_forecast *forecast)
{
	struct sl_cl_would would = {0};

	for (int mode = 0; mode < SL_CL_MODES; mode++) {
		/* Looking for places without the placer costs more. */
		cl->effort = 4 * SL_CL_EFFORT;
		if (!sl_cl_search(cl, group, (enum sl_cl_mode)mode, &would))
			continue;
		forecast->fate = SL_FORECAST_TAKES;
		forecast->stops = would.stops;
		forecast->moves = would.moves;
		forecast->from = would.from;
		return true;
	}
	return false;
}

static void try_it(struct sl_cluster *cl, struct sl_cl_group *group,
	struct sl_cluster_forecast *forecast)
{
	uint64_t gains = cl->gains;
	bool wait;

	if (sl_cl_try(cl, group, &wait)) {
		sl_cl_undo_given(cl);
		cl->gains = gains;
		forecast->fate = wait ? SL_FORECAST_FOLLOWS : SL_FORECAST_RUNS;
		return;
	}
	if (SL_MUTANT(CLUSTER_FORECAST_BLIND, makes_room(cl, group, forecast), false))
		return;
	forecast->because = group->because;
	forecast->fate = is_never(forecast->because.reason) ? SL_FORECAST_NEVER
							    : SL_FORECAST_WAITS;
}

/* Does this project have quota left, to take back by what others have? */
static bool has_quota_left(const struct sl_project *project, enum sl_resource which)
{
	int64_t quota = project->rules.quota.of[which];

	return quota == SL_QUOTA_ALL || project->has.of[which] < quota;
}

/* The only project of other branches that has; 0: several have, or none. */
static uint64_t who_may_take(
	const struct sl_tree *tree, uint32_t from, enum sl_resource which)
{
	uint64_t by = 0;
	uint32_t a, b;

	for (uint32_t i = 0; i < tree->high; i++) {
		const struct sl_project *project = &tree->all[i];

		if (!project->used || project->first_child != SL_PROJECT_NONE ||
			!sl_tree_branches(tree, i, from, &a, &b) ||
			!has_quota_left(project, which))
			continue;
		if (by)
			return 0;
		by = project->id;
	}
	return by;
}

bool sl_cl_is_alone(const struct sl_tree *tree, uint32_t project)
{
	for (uint32_t i = 0; i < tree->high; i++) {
		if (i != project && tree->all[i].used &&
			tree->all[i].first_child == SL_PROJECT_NONE)
			return false;
	}
	return true;
}

/* By all that it asks for, and the books as they are. */
static void judge_quota(const struct sl_cluster *cl, const struct sl_cl_job *job,
	struct sl_cluster_forecast *forecast)
{
	struct sl_quantity all = job->part[0]->each;
	uint32_t at = job->project;

	for (int r = 0; r < SL_RESOURCES; r++)
		all.of[r] *= job->part[0]->tasks;
	forecast->above = sl_tree_above_quota(
		&cl->tree, job->project, &all, &at, &forecast->resource);
	forecast->quota_of = cl->tree.all[at].id;
	forecast->alone = sl_cl_is_alone(&cl->tree, job->project);
	if (forecast->above)
		forecast->by = who_may_take(&cl->tree, job->project, forecast->resource);
}

struct sl_cluster_forecast sl_cluster_forecast(
	struct sl_cluster *cl, sl_ns now, const struct sl_cluster_event *job_add)
{
	struct sl_cluster_forecast forecast = {.fate = SL_FORECAST_NEVER};
	struct sl_cluster_event event = *job_add;
	sl_ns was = cl->now, due = cl->due;
	uint64_t seq = cl->next_seq;
	struct sl_cl_job *job;
	uint32_t project;

	event.job_add.job = UINT64_MAX;
	forecast.preemptible = event.job_add.flags & SL_JOB_PREEMPTIBLE;
	forecast.parks = event.job_add.flags & SL_JOB_PARKS;
	forecast.gives_up = event.job_add.flags & SL_JOB_GIVES_UP;
	if (!sl_cl_judge_job(cl, &event, &project, &forecast.because)) {
		forecast.because.project = event.job_add.project;
		return forecast;
	}
	cl->now = sl_max_u64(was, now);
	cl->dry = true;
	cl->why_effort = cl->lack_effort = SL_CL_WHY_EFFORT;
	job = sl_cl_job_make(cl, &event, project, true);
	sl_tree_share(&cl->tree, &cl->capacity);
	try_it(cl, job->group, &forecast);
	judge_quota(cl, job, &forecast);
	sl_cl_job_drop(cl, job);
	sl_tree_share(&cl->tree, &cl->capacity);
	cl->dry = false;
	cl->now = was;
	cl->due = due;
	cl->next_seq = seq;
	return forecast;
}
