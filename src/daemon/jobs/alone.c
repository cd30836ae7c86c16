/*
 * alone - a task whose supervisor lives, but whose workload is unknown
 *
 * The journal was damaged or lost, or the workload could not be taken over from it. All that is
 * left of the task is its supervisor, which the lock on the exit record names. While the supervisor
 * lives, the task counts as running and is not started a second time; once it is gone, the record
 * says how the task ended. The cluster machine is told that the task is over, because its GPUs are
 * unknown; what the task uses there counts as unmanaged. No event tells of the supervisor's end, so
 * a timer looks for it.
 */
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "daemon/jobs/internal.h"

#define LOOK_NS SL_S

static pid_t supervisor_of(const struct sl_jobs *jobs, const struct sl_job_task *task)
{
	const struct sl_jobs_row *row = &task->job->row;
	uint32_t attempt = row->tasks[task->number].attempt;

	return attempt ? sl_jobs_files_supervisor(
				 jobs->folder, row->id, task->number, attempt)
		       : 0;
}

bool sl_jobs_alone_find(struct sl_jobs *jobs, struct sl_job_task *task)
{
	struct sl_job *job = task->job;
	struct sl_jobs_task *row = &job->row.tasks[task->number];
	pid_t pid = supervisor_of(jobs, task);

	if (!pid)
		return false;
	sl_warning("job %" PRIu64
		   " (%s): task %u runs on under its supervisor %d, and its "
		   "workload is not known any more; its memory counts as unmanaged",
		job->row.id, job->row.name, task->number, (int)pid);
	task->alone = true;
	/* That number may be given to another workload. */
	row->workload = 0;
	task->went = row->state != SL_TASK_BINDING;
	sl_jobs_find_begun(jobs, task);
	task->asked = row->state == SL_TASK_ENDED;
	task->stopped = row->state == SL_TASK_RELEASING;
	task->phase = task->asked || task->stopped ? SL_PHASE_STOPPING : SL_PHASE_RUNS;
	task->grace = jobs->daemon->config.stop_grace;
	task->deadline = sl_clock_now() + LOOK_NS;
	sl_list_push_tail(&jobs->active, &task->active);
	sl_jobs_awake(jobs);
	return true;
}

/* Checks the lock again after opening the pidfd, so that only the supervisor is signalled. */
static void signal_it(
	const struct sl_jobs *jobs, const struct sl_job_task *task, int number)
{
	pid_t pid = supervisor_of(jobs, task);
	sl_cleanup(sl_closep) int fd = pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

	if (fd < 0 || supervisor_of(jobs, task) != pid ||
		syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) < 0)
		return;
	sl_info("SIG%s to process %d", sigabbrev_np(number), (int)pid);
}

void sl_jobs_alone_stop(const struct sl_jobs *jobs, struct sl_job_task *task)
{
	signal_it(jobs, task, SIGTERM);
	task->kill_at = sl_clock_now() + task->grace;
	task->deadline = sl_clock_now() + LOOK_NS;
}

void sl_jobs_alone_look(struct sl_jobs *jobs, struct sl_job_task *task)
{
	sl_ns now = sl_clock_now();

	task->deadline = now + LOOK_NS;
	if (!supervisor_of(jobs, task)) {
		task->alone = false;
		sl_jobs_task_over(jobs, task);
		/* The machine was told that the task is over. */
		if (task->job->counted && task->phase != SL_PHASE_OVER) {
			sl_jobs_take_job(jobs, task->job);
			sl_jobs_put_job(jobs, task->job);
		}
		sl_jobs_awake(jobs);
	} else if (task->phase == SL_PHASE_STOPPING && now >= task->kill_at) {
		/* The shim then kills all its descendants. */
		signal_it(jobs, task, SIGUSR1);
	}
}

bool sl_jobs_alone_any(const struct sl_job *job)
{
	bool any = false;

	for (uint32_t i = 0; i < job->row.task_count; i++)
		any |= job->tasks[i].alone;
	return any;
}
