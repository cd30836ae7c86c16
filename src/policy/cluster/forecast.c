/*
 * forecast - what would happen to a job that came now
 *
 * The machine's memory is copied away, the job is added, one ordinary cycle decides, and the copy
 * is put back. So a forecast is what the next cycle does, and nothing needs to be undone: all that
 * a cycle changes (books, counters, what placement has learned) is in that memory.
 */
#include "policy/cluster/internal.h"
#include "policy/quota/explain.h"

#include "policy/mutant.h"

/* The most cycles until a job has its turn, if one does not suffice for all. */
#define CYCLES_MOST 8

/* With these nodes and projects it could not run even alone. */
static bool is_never(enum sl_pending_reason reason)
{
	return reason == SL_PENDING_NEVER || reason == SL_PENDING_GANG_NEVER ||
	       reason == SL_PENDING_OVER_LIMIT || reason == SL_PENDING_OVER_QUOTA;
}

/* Does this project have quota left, with which it can reclaim? */
static bool has_quota_left(const struct sl_project *project, enum sl_resource which)
{
	int64_t quota = project->rules.quota.of[which];

	return quota == SL_QUOTA_ALL || project->has.of[which] < quota;
}

/* The only project of other branches that has quota left; 0: several have, or none. */
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

/* By all that it asks for, and by the present books. */
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

/* A forecast in progress. */
struct asked {
	struct sl_cluster *cl;
	uint64_t job;
	struct sl_cluster_forecast forecast;
};

static void on_stop(struct asked *asked, const struct sl_cluster_action *action)
{
	const struct sl_cl_job *victim = sl_cl_find_job(asked->cl, action->stop.job);
	struct sl_cluster_forecast *forecast = &asked->forecast;
	uint64_t project;

	if (action->stop.other != asked->job)
		return;
	if (action->stop.how == SL_STOP_MOVE) {
		forecast->moves++;
		return;
	}
	project = asked->cl->tree.all[victim->project].id;
	if (!forecast->stops++)
		forecast->from = project;
	else if (forecast->from != project)
		forecast->from = 0;
}

static void on_action(void *context, const struct sl_cluster_action *action)
{
	struct asked *asked = context;

	if (action->type == SL_CLUSTER_ACTION_STOP)
		on_stop(asked, action);
	else if (action->type == SL_CLUSTER_ACTION_REFUSE_JOB)
		asked->forecast.because = (struct sl_pending_because){
			.reason = (enum sl_pending_reason)action->refuse_job.reason,
			.resource = (enum sl_resource)action->refuse_job.resource,
			.wanted = action->refuse_job.wanted,
			.available = action->refuse_job.available,
			.project = action->refuse_job.project};
}

/* Reads the fate from the machine after the cycle. */
static void read_fate(struct asked *asked)
{
	struct sl_cluster_job_view view = sl_cluster_job(asked->cl, asked->job);
	struct sl_cluster_forecast *forecast = &asked->forecast;

	if (view.in[SL_TASK_BINDING])
		forecast->fate = SL_FORECAST_RUNS;
	else if (view.in[SL_TASK_PIPELINED])
		forecast->fate = forecast->stops || forecast->moves ? SL_FORECAST_TAKES
								    : SL_FORECAST_FOLLOWS;
	else {
		forecast->because = view.because;
		forecast->fate = is_never(view.because.reason) ? SL_FORECAST_NEVER
							       : SL_FORECAST_WAITS;
	}
}

/* Runs it; this changes the machine. */
static void play(struct asked *asked, sl_ns now, const struct sl_cluster_event *job_add)
{
	struct sl_cluster_event cycle = {.type = SL_CLUSTER_EVENT_CYCLE};
	struct sl_cluster *cl = asked->cl;
	const struct sl_cl_job *job;

	sl_cluster_step(cl, now, job_add, on_action, asked);
	job = sl_cl_find_job(cl, asked->job);
	if (!job)
		return;
	judge_quota(cl, job, &asked->forecast);
	cycle.cycle.which = SL_MUTANT(
		CLUSTER_FORECAST_BLIND, SL_CYCLE_ALL, SL_CYCLE_ALL & ~SL_CYCLE_RECLAIM);
	for (int i = 0; i < CYCLES_MOST && job->group && (!i || cl->more); i++)
		sl_cluster_step(cl, now, &cycle, on_action, asked);
	read_fate(asked);
}

struct sl_cluster_forecast sl_cluster_forecast(
	struct sl_cluster *cl, sl_ns now, const struct sl_cluster_event *job_add)
{
	struct asked asked = {.cl = cl,
		.job = UINT64_MAX,
		.forecast = {.fate = SL_FORECAST_NEVER,
			.preemptible = job_add->job_add.flags & SL_JOB_PREEMPTIBLE,
			.parks = job_add->job_add.flags & SL_JOB_PARKS,
			.gives_up = job_add->job_add.flags & SL_JOB_GIVES_UP}};
	struct sl_arena_image *image = sl_arena_save(cl->arena);
	struct sl_cluster_event event = *job_add;

	event.job_add.job = asked.job;
	play(&asked, now, &event);
	sl_arena_restore(cl->arena, image);
	return asked.forecast;
}
