/*
 * bounds - a user's bound on workloads holds for jobs, too
 *
 * A job waits until the bound has room for all its tasks that start together, beside its user's
 * workloads. Until then the machine does not know the job: no other job is stopped for it, and
 * smaller jobs of that user may go first. The machine is told how many tasks of all jobs of that
 * user may run. The node's ledger has the last word, for each task.
 */
#include "daemon/jobs/internal.h"
#include "daemon/link/bounds.h"
#include "daemon/link/places.h"

/* Does the task have a workload that counts? */
static bool stands(const struct sl_job_task *task)
{
	return task->phase != SL_PHASE_WAITING && task->phase != SL_PHASE_CHOSEN &&
	       task->phase != SL_PHASE_STOPPING && task->phase != SL_PHASE_OVER;
}

uint64_t sl_jobs_owner_of(const struct sl_job *job)
{
	return (uint64_t)job->row.workloads_most << 32 |
	       (job->row.workloads_most ? job->row.uid : 0);
}

/* Tasks that the machine counts as this owner's. */
static uint32_t standing_of(const struct sl_jobs *jobs, uint64_t owner)
{
	uint32_t standing = 0;

	sl_list_foreach (link, &jobs->active) {
		const struct sl_job_task *task =
			SL_LIST_ENTRY(link, struct sl_job_task, active);

		standing += task->job->counted && stands(task) &&
			    sl_jobs_owner_of(task->job) == owner;
	}
	return standing;
}

static void count(const struct sl_jobs *jobs, const struct sl_job *job,
	struct sl_jobs_counted *counted)
{
	uint64_t owner = sl_jobs_owner_of(job);

	if (counted->owner == owner)
		return;
	counted->owner = owner;
	counted->living = sl_places_workloads_of(jobs->daemon, job->row.uid);
	counted->standing = standing_of(jobs, owner);
}

/* Tasks that it still needs, to go on or to begin. */
static uint32_t needed(const struct sl_job *job)
{
	uint32_t standing = 0;

	for (uint32_t i = 0; i < job->row.task_count; i++)
		standing += stands(&job->tasks[i]);
	return job->row.least > standing ? job->row.least - standing : 1;
}

static bool exceeds(const struct sl_jobs *jobs, const struct sl_job *job,
	struct sl_jobs_counted *counted, struct sl_pending_because *because)
{
	struct sl_bounds bounds = {.workloads = job->row.workloads_most};
	struct sl_bounds_ask ask = {0};
	struct sl_bounds_verdict verdict;

	count(jobs, job, counted);
	ask.workloads = counted->living + needed(job);
	verdict = sl_bounds_judge(&bounds, &ask);
	*because = (struct sl_pending_because){.reason = SL_PENDING_BOUND,
		.wanted = (int64_t)verdict.wanted,
		.available = (int64_t)verdict.allowed};
	return verdict.reason != SL_REASON_NONE;
}

bool sl_jobs_bound_holds(const struct sl_jobs *jobs, const struct sl_job *job,
	struct sl_pending_because *because)
{
	struct sl_jobs_counted counted = {0};

	return job->row.workloads_most && exceeds(jobs, job, &counted, because);
}

/* A job that has begun nothing can wait outside of the machine as a whole. */
static bool waits_whole(const struct sl_job *job)
{
	bool waits = false;

	for (uint32_t i = 0; i < job->row.task_count; i++) {
		if (job->tasks[i].phase == SL_PHASE_WAITING)
			waits = true;
		else if (job->tasks[i].phase != SL_PHASE_OVER)
			return false;
	}
	return waits;
}

struct sl_cluster_event sl_jobs_most_event(const struct sl_jobs *jobs,
	const struct sl_job *job, struct sl_jobs_counted *counted)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_OWNER_MOST};

	count(jobs, job, counted);
	event.owner_most.owner = counted->owner;
	event.owner_most.most =
		counted->standing +
		(uint32_t)sl_sub_sat(job->row.workloads_most, counted->living);
	return event;
}

/* Without this, others would be stopped for tasks that the ledger refuses. */
static void tell_most(
	struct sl_jobs *jobs, struct sl_job *job, struct sl_jobs_counted *counted)
{
	struct sl_cluster_event event = sl_jobs_most_event(jobs, job, counted);

	if (!job->counted || event.owner_most.most == job->most)
		return;
	job->most = event.owner_most.most;
	sl_jobs_tell(jobs, &event);
}

void sl_jobs_look_at_bounds(struct sl_jobs *jobs)
{
	struct sl_jobs_counted counted = {0};

	if (!jobs->bounded)
		return;
	sl_list_foreach (link, &jobs->all) {
		struct sl_job *job = SL_LIST_ENTRY(link, struct sl_job, link);
		struct sl_pending_because because;
		struct sl_cluster_event before;
		bool holds;

		if (!job->row.workloads_most || job->over)
			continue;
		tell_most(jobs, job, &counted);
		if (!waits_whole(job))
			continue;
		holds = exceeds(jobs, job, &counted, &because);
		if (holds)
			job->refused = because;
		if (job->bound && !holds && job->is_free)
			jobs->free_at = 0;
		if (holds == job->bound)
			continue;
		before = sl_jobs_add_event(jobs, job);
		job->bound = holds;
		sl_jobs_put_again(jobs, job, &before);
	}
}
