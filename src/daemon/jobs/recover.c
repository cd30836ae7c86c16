/*
 * recover - what the earlier daemon left: tasks that run, have ended, or never got their go
 *
 * The journal has brought back the workloads whose shims live (loop/recover.c: the same pid with
 * the same start time in the same boot). A task without such a workload has ended: its record says
 * how, or that it was killed, or that it never got its go. If its supervisor lives all the same,
 * see jobs/alone.c. After a reboot nothing runs, and the journal is void.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/jobs/internal.h"
#include "daemon/state/drive.h"
#include "daemon/workloads/workload.h"

/* RUNNING is stored after the go, and a parked task got its go long ago. For other tasks that are
 * BINDING, the record tells. */
static bool has_gone(const struct sl_jobs_task *row)
{
	return row->state != SL_TASK_BINDING || row->parked;
}

static void adopt(
	struct sl_jobs *jobs, struct sl_job_task *task, struct sl_workload *workload)
{
	const struct sl_jobs_task *row = &task->job->row.tasks[task->number];

	workload->task = task;
	workload->has_shim = true;
	task->went = has_gone(row);
	sl_jobs_find_begun(jobs, task);
	/* The supervisor is dead, other processes live. */
	if (!workload->root)
		sl_jobs_supervisor_gone(jobs->daemon, workload);
	sl_list_push_tail(&jobs->active, &task->active);
	if (row->state == SL_TASK_RELEASING || row->state == SL_TASK_ENDED) {
		/* Stopped for others, or by a user. If the journal does not have that yet, no
		 * process was signalled. */
		task->phase = SL_PHASE_STOPPING;
		task->told = workload->kill_at != 0;
		task->grace = jobs->daemon->config.stop_grace;
		/* A disk that does not answer delays the signal no longer than for a task stopped
		 * now. */
		if (!task->told)
			task->deadline = sl_clock_now() + SL_JOBS_STORE_NS;
		sl_jobs_awake(jobs);
		task->asked = row->state == SL_TASK_ENDED;
		task->stopped = !task->asked;
	} else if (row->parked && workload->park == SL_PARK_RESUMING) {
		task->phase = SL_PHASE_RESUMING;
		task->deadline = sl_clock_now() + SL_JOBS_RESUME_NS;
	} else if (row->parked && workload->park == SL_PARK_PARKED) {
		/* RUNNING: it was on its way there. */
		task->phase = row->state == SL_TASK_RUNNING ? SL_PHASE_PARKING
							    : SL_PHASE_PARKED;
		if (task->phase == SL_PHASE_PARKING)
			sl_jobs_goes_on_parking(task);
	} else {
		task->phase = SL_PHASE_RUNS;
	}
}

static void recover_task(struct sl_jobs *jobs, struct sl_job_task *task)
{
	const struct sl_jobs_task *row = &task->job->row.tasks[task->number];
	struct sl_workload *workload =
		row->workload ? sl_map_get(&jobs->daemon->workloads, row->workload)
			      : NULL;

	if (workload) {
		adopt(jobs, task, workload);
	} else if (sl_jobs_alone_find(jobs, task)) {
		return;
	} else if (row->workload) {
		/* As if its end were told now. */
		task->phase = SL_PHASE_STOPPING;
		task->told = true;
		task->asked = row->state == SL_TASK_ENDED;
		task->stopped = row->state == SL_TASK_RELEASING;
		task->went = has_gone(row);
		task->over_at = sl_clock_now();
		task->former = true;
		sl_list_push_tail(&jobs->active, &task->active);
	} else if (row->state == SL_TASK_ENDED) {
		task->phase = SL_PHASE_OVER;
		task->asked = task->failed = false;
		task->failed = row->exit_status != 0;
	}
}

static void take_row(void *context, struct sl_jobs_row *row)
{
	struct sl_jobs *jobs = context;
	uint64_t id = row->id;
	struct sl_job *job = sl_jobs_new_job(jobs, row);

	if (!job) {
		sl_error_log("out of memory: job %" PRIu64 " is not taken in", id);
		sl_jobs_row_fini(row);
		return;
	}
	job->stored = true;
	sl_jobs_set_need(jobs, job);
	if (job->row.state >= SL_JOB_DONE) {
		job->over = true;
		jobs->living--;
		jobs->tasks -= job->row.task_count;
		for (uint32_t i = 0; i < job->row.task_count; i++)
			job->tasks[i].phase = SL_PHASE_OVER;
		return;
	}
	if (job->is_free)
		jobs->free_at = 0;
	for (uint32_t i = 0; i < job->row.task_count; i++)
		recover_task(jobs, &job->tasks[i]);
	for (uint32_t i = 0; i < job->row.task_count; i++)
		if (job->row.state == SL_JOB_STOPPING &&
			job->tasks[i].phase == SL_PHASE_WAITING)
			job->tasks[i].phase = SL_PHASE_OVER;
}

void sl_jobs_recover(struct sl_jobs *jobs)
{
	uint64_t next_id = 1;
	int r = sl_jobs_store_load(jobs->daemon->store, jobs->folder, take_row, jobs,
		&next_id, &jobs->unread);

	if (r != SL_STORE_OK)
		sl_error_log("%s", jobs->unread.text);
	jobs->is_unread = r == SL_STORE_BAD;
	jobs->daemon->next_workload = sl_max_u64(jobs->daemon->next_workload, next_id);
	if (jobs->living)
		sl_info("took in %u jobs with %u tasks", jobs->living, jobs->tasks);
}
