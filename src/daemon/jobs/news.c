/*
 * news - calls from the rest of the daemon about workloads, GPUs and projects
 *
 * They may come from anywhere, so each only notes its news in the task; sl_jobs_settle() acts on
 * it.
 */
#include "daemon/jobs/internal.h"
#include "daemon/workloads/workload.h"

static void note(struct sl_daemon *daemon, struct sl_job_task *task)
{
	if (task)
		sl_jobs_awake(daemon->jobs);
}

static struct sl_job_task *task_of(struct sl_daemon *daemon, uint64_t id)
{
	const struct sl_workload *workload =
		daemon->jobs ? sl_map_get(&daemon->workloads, id) : NULL;

	return workload ? workload->task : NULL;
}

void sl_jobs_workload_over(struct sl_daemon *daemon, uint64_t workload)
{
	struct sl_job_task *task = task_of(daemon, workload);
	const struct sl_workload *over = sl_map_get(&daemon->workloads, workload);

	if (!daemon->jobs)
		return;
	/* A workload that the node refused had no GPUs to free. */
	if (over && over->gpu_count)
		sl_jobs_front_hurry(daemon->jobs);
	if (daemon->jobs->bounded)
		sl_jobs_awake(daemon->jobs);
	if (!task)
		return;
	task->over_at = sl_clock_now();
	note(daemon, task);
}

uint32_t sl_jobs_workload_stopped(
	struct sl_daemon *daemon, uint64_t workload, sl_ns grace)
{
	struct sl_job_task *task = task_of(daemon, workload);

	if (!task)
		return 0;
	note(daemon, task);
	return sl_jobs_end_task(daemon->jobs, task, grace, true);
}

bool sl_jobs_makes_room(struct sl_daemon *daemon, uint64_t workload)
{
	const struct sl_job_task *task = task_of(daemon, workload);

	return task && task->stopped && !task->asked;
}

/* The task that the queue has parked there, or NULL. */
static const struct sl_job_task *parked_task(
	const struct sl_daemon *daemon, uint64_t workload)
{
	const struct sl_job_task *task = task_of((struct sl_daemon *)daemon, workload);

	return task && (task->phase == SL_PHASE_PARKED || task->phase == SL_PHASE_PARKING)
		       ? task
		       : NULL;
}

uint32_t sl_jobs_reason(
	const struct sl_daemon *daemon, uint64_t workload, uint32_t reason)
{
	const struct sl_workload *of = sl_map_get(&daemon->workloads, workload);

	switch (reason) {
	case SL_REASON_STOP_ASKED:
		/* By a user, or by the job of which it is a task. */
		return of && of->task && !of->stop_asker ? SL_REASON_STOP_WITH_JOB
							 : reason;
	case SL_REASON_PARKED:
		if (of && sl_jobs_is_moving(of))
			return SL_REASON_MOVING;
		return parked_task(daemon, workload) ? SL_REASON_PARKED_FOR_JOB : reason;
	case SL_REASON_PARKED_WAITS:
		return parked_task(daemon, workload) ? SL_REASON_PARKED_FOR_JOB_WAITS
						     : reason;
	default: return reason;
	}
}

bool sl_jobs_keeps_parked(
	const struct sl_daemon *daemon, uint64_t workload, struct sl_error *text)
{
	const struct sl_job_task *task = parked_task(daemon, workload);

	if (!task)
		return false;
	sl_error_set(text,
		"job %s was parked for others, and comes back by itself when there is "
		"room for it; sluice why %s says when",
		task->job->row.name, task->job->row.name);
	return true;
}

bool sl_jobs_bring_back(
	struct sl_daemon *daemon, uint64_t workload, struct sl_error *text)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_RESUME};
	const struct sl_job_task *task = parked_task(daemon, workload);
	char why[512];

	if (!task)
		return false;
	event.job_resume.job = task->job->row.id;
	sl_jobs_tell(daemon->jobs, &event);
	/* An extra cycle, only for the answer; an ordinary one follows. */
	if (sl_jobs_may_choose(daemon->jobs))
		sl_jobs_cycle(daemon->jobs, SL_CYCLE_ALL & ~SL_CYCLE_STALE);
	task = parked_task(daemon, workload);
	if (!task)
		return true;
	(void)sl_jobs_why(daemon->jobs, task->job, why, sizeof(why));
	sl_error_set(text, "job %s comes back by itself, and not at once%s%s",
		task->job->row.name, why[0] ? ": " : "", why);
	return true;
}

/* A detached foreground job, which the queue then counts as parked, or no more. */
static void count(struct sl_daemon *daemon, struct sl_job_task *task, bool queued)
{
	struct sl_cluster_event before = sl_jobs_add_event(daemon->jobs, task->job);

	sl_jobs_phase(task, queued ? SL_PHASE_PARKED : SL_PHASE_RUNS);
	sl_jobs_put_again(daemon->jobs, task->job, &before);
	sl_jobs_awake(daemon->jobs);
}

bool sl_jobs_call_back(struct sl_daemon *daemon, struct sl_workload *workload)
{
	struct sl_job_task *task = daemon->jobs ? workload->task : NULL;

	if (!task || !task->job->foreground)
		return false;
	if (task->phase != SL_PHASE_RUNS)
		return true;
	count(daemon, task, true);
	if (task->job->counted)
		return true;
	count(daemon, task, false);
	return false;
}

bool sl_jobs_resume_anywhere(struct sl_daemon *daemon, struct sl_workload *workload)
{
	return daemon->jobs && workload->task &&
	       sl_jobs_may_move(daemon->jobs, workload->task->job) &&
	       sl_jobs_call_back(daemon, workload);
}

bool sl_jobs_call_off(struct sl_daemon *daemon, struct sl_workload *workload)
{
	struct sl_job_task *task = daemon->jobs ? workload->task : NULL;

	if (!task || !task->job->foreground || task->phase == SL_PHASE_RUNS)
		return true;
	if (task->phase == SL_PHASE_PARKED)
		count(daemon, task, false);
	return task->phase == SL_PHASE_RUNS;
}

void sl_jobs_over_limit(
	const struct sl_workload *workload, const struct sl_node_because *because)
{
	if (!workload->task)
		return;
	workload->task->denied = *because;
	workload->task->denied_at = sl_clock_now();
}

void sl_jobs_parked(struct sl_daemon *daemon, uint64_t workload)
{
	struct sl_job_task *task = task_of(daemon, workload);

	if (!task)
		return;
	task->is_parked = true;
	note(daemon, task);
}

void sl_jobs_resumed(struct sl_daemon *daemon, uint64_t workload)
{
	struct sl_job_task *task = task_of(daemon, workload);
	struct sl_workload *back = sl_map_get(&daemon->workloads, workload);

	if (!task)
		return;
	/* A user parked and resumed it: from now on it counts again. */
	if (task->job->foreground && task->phase == SL_PHASE_RUNS && back) {
		sl_jobs_workload_changed(daemon, back);
		return;
	}
	task->is_resumed = true;
	note(daemon, task);
}

/* A waiting foreground job has no workload whose end would be told, and its connection may live on
 * in a child process. */
void sl_jobs_process_died(struct sl_daemon *daemon)
{
	if (daemon->jobs && daemon->jobs->front_waits)
		sl_jobs_awake(daemon->jobs);
}

void sl_jobs_written(struct sl_daemon *daemon)
{
	if (daemon->jobs && !sl_list_is_empty(&daemon->jobs->active))
		sl_jobs_awake(daemon->jobs);
}

void sl_jobs_measured(struct sl_daemon *daemon)
{
	if (daemon->jobs && daemon->jobs->listens)
		sl_jobs_awake(daemon->jobs);
}

void sl_jobs_gpus_changed(struct sl_daemon *daemon)
{
	if (!daemon->jobs)
		return;
	daemon->jobs->gpus_changed = true;
	sl_jobs_awake(daemon->jobs);
}

void sl_jobs_recovered(struct sl_daemon *daemon)
{
	if (daemon->jobs)
		sl_jobs_awake(daemon->jobs);
}

void sl_jobs_projects_changed(struct sl_daemon *daemon)
{
	if (daemon->jobs)
		sl_jobs_put_projects(daemon->jobs);
}
