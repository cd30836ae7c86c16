/*
 * limits - what limits and quotas leave to a job
 *
 * Each job is checked twice. A promise must fit beside what runs and what is promised; stopping
 * tasks no longer count. A start must fit beside everything that occupies nodes, stopping tasks
 * included, because a limit bounds what is held at any moment.
 */
#include "policy/cluster/internal.h"

#include "policy/mutant.h"

/* Why the limit (or, for_good, the quota) of this project leaves too little: only now, or for
 * ever. */
static struct sl_pending_because over(const struct sl_project *project,
	const struct sl_quantity *more, enum sl_resource which, bool for_good)
{
	const struct sl_quantity *most =
		for_good ? &project->rules.quota : &project->rules.limit;
	const struct sl_quantity *has = for_good ? &project->fixed : &project->has;
	struct sl_pending_because because = {
		.reason = for_good ? SL_PENDING_QUOTA : SL_PENDING_LIMIT,
		.project = project->id,
		.resource = which,
		.wanted = more->of[which],
		.available = most->of[which] - has->of[which]};

	if (more->of[which] > most->of[which]) {
		because.reason = for_good ? SL_PENDING_OVER_QUOTA : SL_PENDING_OVER_LIMIT;
		because.available = most->of[which];
	}
	return because;
}

bool sl_cl_allowed(struct sl_cluster *cl, const struct sl_cl_job *job,
	const struct sl_quantity *more, struct sl_pending_because *because)
{
	enum sl_resource which;
	uint32_t at;
	bool fixed = !sl_cl_preemptible(job);

	if (SL_MUTANT(CLUSTER_LIMIT_OPEN,
		    !sl_tree_allows(&cl->tree, job->project, more, false, &at, &which),
		    false)) {
		*because = over(&cl->tree.all[at], more, which, false);
		return false;
	}
	if (SL_MUTANT(CLUSTER_QUOTA_OPEN,
		    fixed && !sl_tree_allows(
				     &cl->tree, job->project, more, true, &at, &which),
		    false)) {
		*because = over(&cl->tree.all[at], more, which, true);
		return false;
	}
	return true;
}

bool sl_cl_allowed_now(struct sl_cluster *cl, const struct sl_cl_job *job,
	const struct sl_quantity *more, struct sl_pending_because *because)
{
	const struct sl_project *project;
	enum sl_resource which;
	uint32_t at;
	bool fixed = !sl_cl_preemptible(job), for_good = false;

	if (SL_MUTANT(CLUSTER_LIMIT_FORGETS, false, true))
		return true;
	if (SL_MUTANT(CLUSTER_LIMIT_OPEN,
		    sl_tree_allows_now(&cl->tree, job->project, more, false, &at, &which),
		    true)) {
		if (SL_MUTANT(CLUSTER_QUOTA_OPEN,
			    !fixed || sl_tree_allows_now(&cl->tree, job->project, more,
					      true, &at, &which),
			    true))
			return true;
		for_good = true;
	}
	project = &cl->tree.all[at];
	*because = (struct sl_pending_because){.reason = SL_PENDING_LIMIT_LEAVING,
		.project = project->id,
		.resource = which,
		.wanted = more->of[which],
		.available = for_good ? project->rules.quota.of[which] -
						project->holds_fixed.of[which]
				      : project->rules.limit.of[which] -
						project->holds.of[which]};
	return false;
}

/* Takes what the job of that number has now away from its project (-1), or puts it back (1). */
static void set_aside(struct sl_cluster *cl, uint64_t id, int sign)
{
	const struct sl_cl_job *job = sl_cl_find_job(cl, id);
	bool fixed = job && !sl_cl_preemptible(job);

	for (uint32_t p = 0; job && p < job->parts; p++) {
		const struct sl_cl_part *part = job->part[p];

		for (uint32_t i = 0; i < part->tasks; i++) {
			const struct sl_cl_task *task = &part->task[i];
			bool runs = task->state == SL_TASK_BINDING ||
				    task->state == SL_TASK_RUNNING;
			struct sl_quantity holds;

			if (runs || task->promised)
				sl_tree_book(&cl->tree, job->project, sign, &task->booked,
					fixed ? &task->booked : NULL, NULL);
			if (!runs && task->state != SL_TASK_RELEASING)
				continue;
			holds = sl_cl_quantity(&part->class->need, task->place);
			sl_tree_hold(&cl->tree, job->project, sign, &holds,
				fixed ? &holds : NULL);
		}
	}
}

bool sl_cluster_allows(struct sl_cluster *cl, const struct sl_cluster_event *job_add,
	struct sl_pending_because *because)
{
	struct sl_cl_job job = {.flags = job_add->job_add.flags};
	bool allowed;
	struct sl_quantity all = sl_cl_guess(cl, &job_add->job_add.need);

	*because = (struct sl_pending_because){
		.reason = SL_PENDING_NO_PROJECT, .project = job_add->job_add.project};
	job.project = sl_tree_find(&cl->tree, job_add->job_add.project);
	if (job.project == SL_PROJECT_NONE)
		return false;
	for (int r = 0; r < SL_RESOURCES; r++)
		all.of[r] *= job_add->job_add.tasks;
	/* A quota is kept for others, and there are none. */
	if (sl_cl_is_alone(&cl->tree, job.project))
		job.flags |= SL_JOB_PREEMPTIBLE;
	set_aside(cl, job_add->job_add.job, -1);
	allowed = sl_cl_allowed(cl, &job, &all, because) &&
		  sl_cl_allowed_now(cl, &job, &all, because);
	set_aside(cl, job_add->job_add.job, 1);
	return allowed;
}

bool sl_cluster_may_stand(const struct sl_cluster *cl, uint64_t project, uint64_t node)
{
	const struct sl_need any = {.gpus = 1};
	uint32_t number = sl_cl_find_node(cl, node);
	uint32_t place = sl_tree_find(&cl->tree, project);
	struct sl_need need;

	if (number == SL_CL_NO_NODE || place == SL_PROJECT_NONE)
		return false;
	need = sl_cl_effective(cl, place, &any);
	return !need.pools || need.pools >> cl->fit[number].pool & 1;
}

/* Does it exceed the limit, or the quota, of this resource? */
static bool is_above(const struct sl_project *level, int r, bool fixed, bool now)
{
	int64_t limit = level->rules.limit.of[r], quota = level->rules.quota.of[r];
	int64_t has = now ? level->holds.of[r] : level->has.of[r];
	int64_t for_good = now ? level->holds_fixed.of[r] : level->fixed.of[r];

	return (limit != SL_QUOTA_ALL && has > limit) ||
	       (fixed && quota != SL_QUOTA_ALL && for_good > quota);
}

static bool is_over(const struct sl_cluster *cl, const struct sl_cl_job *job, bool now)
{
	for (uint32_t i = job->project; i != SL_PROJECT_NONE;
		i = cl->tree.all[i].parent) {
		for (int r = 0; r < SL_RESOURCES; r++) {
			bool wants = false;

			for (uint32_t p = 0; p < job->parts; p++)
				wants |= job->part[p]->each.of[r] > 0;
			if (wants && is_above(&cl->tree.all[i], r,
					     !sl_cl_preemptible(job), now))
				return true;
		}
	}
	return false;
}

bool sl_cl_is_over(const struct sl_cluster *cl, const struct sl_cl_job *job)
{
	return is_over(cl, job, false);
}

bool sl_cl_is_over_now(const struct sl_cluster *cl, const struct sl_cl_job *job)
{
	return is_over(cl, job, true);
}
