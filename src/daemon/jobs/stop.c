/*
 * stop - ends a task: first that is stored, then the task is signalled
 *
 * A daemon that finds a task stored as RUNNING takes its end by SIGTERM for a failure. So the task
 * is signalled only once its stored state says that it is being stopped, and why. The journal must
 * have the time of SIGKILL, too, or the next daemon would grant another grace period. Both take
 * milliseconds. If the disk is full or does not answer, the task is stopped all the same. A job
 * that cannot be stopped, and blocks its GPUs, is worse than one that counts as failed if sluiced
 * dies before it has ended.
 */
#include <inttypes.h>

#include "base/log.h"
#include "base/step.h"
#include "daemon/jobs/internal.h"
#include "daemon/state/commit.h"
#include "daemon/workloads/workload.h"

/* Tells the machine that the task's place frees itself, without an order of the machine. */
static void tell_it_stops(struct sl_jobs *jobs, const struct sl_job_task *task)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_TASK_STOPS};

	event.task_stops.job = task->job->row.id;
	event.task_stops.task = task->number;
	if (task->job->counted)
		sl_jobs_tell(jobs, &event);
}

/* Its program has not run, and never will. */
static void forget_shim(struct sl_job_task *task)
{
	sl_shim_forget(&task->shim);
	sl_jobs_phase(task, SL_PHASE_STOPPING);
	task->told = true;
}

static void write_down(struct sl_jobs *jobs, struct sl_job_task *task, sl_ns grace)
{
	if (task->phase == SL_PHASE_STOPPING) {
		task->grace = sl_min_u64(grace, task->grace);
	} else {
		sl_jobs_phase(task, SL_PHASE_STOPPING);
		task->told = false;
		task->grace = grace;
	}
	if (!task->deadline)
		task->deadline = sl_clock_now() + SL_JOBS_STORE_NS;
	task->commit = 0;
	task->ticket = sl_jobs_save(jobs, task->job);
	sl_step(D_JOB_STOP_TAKEN);
	sl_jobs_awake(jobs);
}

uint32_t sl_jobs_end_task(
	struct sl_jobs *jobs, struct sl_job_task *task, sl_ns grace, bool asked)
{
	struct sl_workload *workload = sl_jobs_workload_of(jobs, task);

	task->asked |= asked;
	if (task->phase == SL_PHASE_WAITING || task->phase == SL_PHASE_CHOSEN) {
		if (asked)
			sl_jobs_cancel(jobs, task);
		return 0;
	}
	if (task->phase == SL_PHASE_OVER || (!workload && !task->alone))
		return 0;
	if (task->phase == SL_PHASE_STARTING) {
		forget_shim(task);
		return 0;
	}
	if (task->phase != SL_PHASE_STOPPING)
		tell_it_stops(jobs, task);
	if (task->alone && task->told) {
		task->kill_at = sl_min_u64(task->kill_at, sl_clock_now() + grace);
		(void)sl_jobs_save(jobs, task->job);
		return 1;
	}
	/* The journal has all there is of a foreground job. */
	if (task->job->foreground && task->phase != SL_PHASE_STOPPING) {
		sl_jobs_phase(task, SL_PHASE_STOPPING);
		task->told = true;
	}
	if (task->phase == SL_PHASE_STOPPING && task->told) {
		/* It may be for good now. */
		(void)sl_jobs_save(jobs, task->job);
		return sl_workload_stop(jobs->daemon, workload, grace);
	}
	write_down(jobs, task, grace);
	return workload ? sl_workload_processes(workload) : 1;
}

void sl_jobs_try_stop(struct sl_jobs *jobs, struct sl_job_task *task)
{
	struct sl_workload *workload = sl_jobs_workload_of(jobs, task);

	if (task->phase != SL_PHASE_STOPPING || task->told || task->ticket)
		return;
	if (task->alone) {
		sl_jobs_stop_now(jobs, task);
		return;
	}
	if (!workload)
		return;
	if (!task->commit) {
		sl_step(D_JOB_STOP_STORED);
		sl_workload_note_stop(jobs->daemon, workload, task->grace);
		task->commit = sl_commit_next(jobs->daemon);
	}
	if (sl_commit_is_done(jobs->daemon, task->commit))
		sl_jobs_stop_now(jobs, task);
}

void sl_jobs_stop_now(struct sl_jobs *jobs, struct sl_job_task *task)
{
	struct sl_workload *workload = sl_jobs_workload_of(jobs, task);

	task->told = true;
	task->deadline = 0;
	if (task->alone)
		sl_jobs_alone_stop(jobs, task);
	else if (workload)
		(void)sl_workload_stop(jobs->daemon, workload, task->grace);
}

/* What was stored since needs the journal, too. */
static void hold_for_journal(struct sl_peer *peer)
{
	peer->held_ticket = 0;
	sl_peer_hold(peer);
	sl_commit_soon(peer->daemon);
}

/* Peers do not wait for ever for a disk that does not answer. */
static void release_all(struct sl_jobs *jobs)
{
	while (!sl_list_is_empty(&jobs->held))
		hold_for_journal(
			SL_LIST_ENTRY(jobs->held.next, struct sl_peer, held_link));
}

void sl_jobs_stop_unwritten(
	struct sl_jobs *jobs, struct sl_job_task *task, const char *why)
{
	if (task->phase != SL_PHASE_STOPPING || task->told)
		return;
	sl_warning("job %" PRIu64 " (%s): task %u is stopped without that being written "
		   "down (%s); if sluiced dies before the task has ended, the next one "
		   "takes that for a failure",
		task->job->row.id, task->job->row.name, task->number, why);
	task->ticket = 0;
	sl_jobs_stop_now(jobs, task);
	release_all(jobs);
}

/* --- Peers that asked. --- */

void sl_jobs_hold_for(struct sl_jobs *jobs, struct sl_job *job, struct sl_peer *peer)
{
	sl_peer_hold(peer);
	sl_commit_soon(jobs->daemon);
	if (peer->doomed || job->foreground)
		return;
	peer->held_ticket = sl_jobs_save(jobs, job);
	sl_list_unlink(&peer->held_link);
	sl_list_push_tail(&jobs->held, &peer->held_link);
}

void sl_jobs_hold(struct sl_peer *peer, uint64_t workload)
{
	const struct sl_workload *found = sl_map_get(&peer->daemon->workloads, workload);

	if (found && found->task)
		sl_jobs_hold_for(peer->daemon->jobs, found->task->job, peer);
}

void sl_jobs_release(struct sl_jobs *jobs, uint64_t ticket)
{
	sl_list_foreach_safe (link, &jobs->held) {
		struct sl_peer *peer = SL_LIST_ENTRY(link, struct sl_peer, held_link);

		if (peer->held_ticket <= ticket)
			hold_for_journal(peer);
	}
}

void sl_jobs_let_go(struct sl_jobs *jobs)
{
	sl_list_foreach_safe (link, &jobs->held) {
		SL_LIST_ENTRY(link, struct sl_peer, held_link)->held_ticket = 0;
		sl_list_unlink(link);
	}
}
