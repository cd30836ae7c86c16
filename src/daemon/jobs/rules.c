/*
 * rules - what limits and quotas leave to a `sluice run`
 *
 * They hold for all that the workload has: when it starts, when `sluice set` raises its amounts,
 * and when a user resumes it, since parking gave up its part. A workload that exceeds them already,
 * because they were lowered, may still ask for less.
 */
#include <string.h>

#include "daemon/jobs/internal.h"
#include "daemon/workloads/workload.h"

bool sl_jobs_rules_allow(struct sl_jobs *jobs, const struct sl_job *job,
	struct sl_pending_because *because, struct sl_error *text)
{
	struct sl_cluster_event add = sl_jobs_add_event(jobs, job);
	char buf[SL_FORECAST_MAX];
	bool quota;

	if (sl_cluster_allows(jobs->books.cluster, &add, because))
		return true;
	quota = because->reason == SL_PENDING_QUOTA ||
		because->reason == SL_PENDING_OVER_QUOTA;
	sl_error_set(text, "%s%s",
		sl_pending_text(
			because, sl_jobs_project_name, jobs->daemon, buf, sizeof(buf)),
		quota ? " (what cannot be moved to the host cannot be preempted; "
			"--request 0 needs no quota)"
		      : "");
	return false;
}

/* A job with these values, as the queue would have it. */
static struct sl_job job_with(const struct sl_jobs *jobs,
	const struct sl_workload *workload, const struct sl_wishes *wishes)
{
	struct sl_job job = {
		.row = {.id = workload->id | SL_JOB_FOREGROUND,
			.uid = workload->uid,
			.request = wishes->request,
			.limit = wishes->limit,
			.compute_request_pm = wishes->compute_request_pm,
			.gpu_count = workload->gpu_count,
			.flags = wishes->flags & SL_WORKLOAD_NO_SWAP ? SL_RUN_NO_SWAP : 0,
			.task_count = 1,
			.least = 1,
			.priority = workload->priority},
		.foreground = true};

	memcpy(job.row.project, workload->project, sizeof(job.row.project));
	sl_jobs_set_need(jobs, &job);
	return job;
}

/* A parked workload waits for its place anyway: refuse only violations that can never clear. */
static bool may_wait(const struct sl_workload *workload, enum sl_pending_reason reason)
{
	return workload->task && workload->task->phase == SL_PHASE_PARKED &&
	       reason != SL_PENDING_OVER_LIMIT && reason != SL_PENDING_OVER_QUOTA;
}

struct sl_wishes sl_jobs_wishes_of(const struct sl_workload *workload)
{
	return (struct sl_wishes){.request = workload->request,
		.limit = workload->limit,
		.compute_request_pm = workload->compute.request_pm,
		.flags = workload->flags};
}

bool sl_jobs_may_have(struct sl_daemon *daemon, const struct sl_workload *workload,
	const struct sl_wishes *wishes, struct sl_error *text)
{
	struct sl_jobs *jobs = daemon->jobs;
	struct sl_wishes has = sl_jobs_wishes_of(workload);
	struct sl_pending_because because, was;
	struct sl_job after, before;
	struct sl_error unsaid = {0};

	if (!jobs || workload->over || !workload->gpu_count || workload->has_shim)
		return true;
	after = job_with(jobs, workload, wishes);
	if (after.is_free || sl_jobs_rules_allow(jobs, &after, &because, text) ||
		may_wait(workload, because.reason))
		return true;
	before = job_with(jobs, workload, &has);
	return workload->task && workload->task->job->counted &&
	       (after.row.flags & SL_SUBMIT_PREEMPTIBLE) ==
		       (before.row.flags & SL_SUBMIT_PREEMPTIBLE) &&
	       !sl_jobs_rules_allow(jobs, &before, &was, &unsaid) &&
	       was.wanted >= because.wanted;
}
