/*
 * save - hands jobs to the store, and acts on what became of it
 *
 * A ticket is the number of a write, so all tasks and peers that wait for the same write go on
 * together. If a write fails, starts are called off and stops go on unwritten; the jobs in it wait
 * for the next write. A new job and a removed one are changes of their own, because folders belong
 * to them. The later states of a new job wait until the job itself is stored.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/step.h"
#include "daemon/jobs/internal.h"
#include "daemon/jobs/logs.h"

/* Pause after a failed write, and between checks of logs. */
#define AGAIN_NS SL_S
#define TRIM_NS  SL_S

static const struct sl_error no_memory = {"sluiced is out of memory; try again"};

/* The state that a later daemon shall find. */
static uint32_t stored_state(const struct sl_job_task *task)
{
	/* Its end for good was requested; it may still run. */
	if (task->asked)
		return SL_TASK_ENDED;
	switch (task->phase) {
	case SL_PHASE_STARTING:
	case SL_PHASE_RESUMING: return SL_TASK_BINDING;
	case SL_PHASE_RUNS:
	case SL_PHASE_PARKING: return SL_TASK_RUNNING;
	case SL_PHASE_STOPPING: return SL_TASK_RELEASING;
	case SL_PHASE_OVER: return SL_TASK_ENDED;
	case SL_PHASE_WAITING:
	case SL_PHASE_CHOSEN:
	case SL_PHASE_PARKED:
	default: return SL_TASK_PENDING;
	}
}

uint64_t sl_jobs_save(struct sl_jobs *jobs, struct sl_job *job)
{
	/* The journal has all there is to know of its workload. */
	if (job->foreground)
		return 0;
	job->row.state = sl_jobs_state_of(job);
	for (uint32_t i = 0; i < job->row.task_count; i++) {
		struct sl_jobs_task *row = &job->row.tasks[i];

		row->state = stored_state(&job->tasks[i]);
		row->parked = job->tasks[i].phase == SL_PHASE_PARKED ||
			      job->tasks[i].phase == SL_PHASE_PARKING ||
			      job->tasks[i].phase == SL_PHASE_RESUMING;
	}
	sl_list_unlink(&job->write);
	sl_list_push_tail(&jobs->unsaved, &job->write);
	jobs->unwritten = true;
	return jobs->ticket;
}

/* What a write that is over means for all. */
static void note_result(struct sl_jobs *jobs, const struct sl_error *err)
{
	if (err->text[0] && strcmp(err->text, jobs->unstored.text) != 0)
		sl_error_log("%s", err->text);
	jobs->unstored = *err;
	/* A new job may start, and waiting tasks may get their go. */
	jobs->dirty = true;
	sl_jobs_awake(jobs);
}

static void on_written(void *context, int r, const struct sl_error *err)
{
	struct sl_jobs *jobs = context;

	if (jobs->closes)
		return;
	jobs->writes = false;
	note_result(jobs, err);
	jobs->write_at = r < 0 ? sl_clock_now() + AGAIN_NS : 0;
	jobs->unwritten |= r < 0;
	sl_list_foreach_safe (link, &jobs->saving) {
		sl_list_unlink(link);
		if (r < 0)
			sl_list_push_tail(&jobs->unsaved, link);
	}
	sl_list_foreach_safe (link, &jobs->active) {
		struct sl_job_task *task =
			SL_LIST_ENTRY(link, struct sl_job_task, active);

		if (!task->ticket || task->ticket == jobs->ticket)
			continue;
		task->ticket = 0;
		if (r < 0) {
			sl_jobs_unstart(task, err->text);
			sl_jobs_stop_unwritten(jobs, task, "the disk refuses it");
		}
	}
	sl_jobs_release(jobs, jobs->ticket - 1);
}

static struct sl_store_change *change_of_unsaved(struct sl_jobs *jobs)
{
	struct sl_store_change *change = sl_store_change_new();

	sl_list_foreach_safe (link, &jobs->unsaved) {
		sl_jobs_store_put(
			change, &SL_LIST_ENTRY(link, struct sl_job, write)->row);
		sl_list_unlink(link);
		sl_list_push_tail(&jobs->saving, link);
	}
	return change;
}

void sl_jobs_write(struct sl_jobs *jobs)
{
	if (!jobs->unwritten || jobs->writes || sl_clock_now() < jobs->write_at)
		return;
	sl_list_foreach (link, &jobs->unsaved) {
		if (!SL_LIST_ENTRY(link, struct sl_job, write)->stored)
			return;
	}
	jobs->unwritten = false;
	jobs->writes = true;
	jobs->ticket++;
	if (sl_store_commit(
		    jobs->daemon->store, change_of_unsaved(jobs), on_written, jobs) < 0)
		on_written(jobs, -ENOMEM, &no_memory);
}

void sl_jobs_write_last(struct sl_jobs *jobs)
{
	jobs->closes = true;
	if (jobs->unwritten && sl_store_commit(jobs->daemon->store,
				       change_of_unsaved(jobs), on_written, jobs) < 0)
		sl_error_log("%s", no_memory.text);
	sl_store_finish(jobs->daemon->store);
}

/* --- Jobs that come and go. --- */

static void on_kept(void *context, int r, const struct sl_error *err)
{
	struct sl_job *job = context;
	struct sl_jobs *jobs = job->jobs;

	if (jobs->closes)
		return;
	note_result(jobs, err);
	if (r < 0) {
		sl_jobs_store_failed(jobs, job, err);
		return;
	}
	sl_step(D_JOB_STORED);
	job->stored = job->reply_due = true;
	sl_jobs_user_make_room(jobs, job);
	if (job->is_free)
		jobs->free_at = 0;
}

void sl_jobs_keep(struct sl_jobs *jobs, struct sl_job *job, const struct sl_jobspec *spec)
{
	struct sl_store_change *change = sl_store_change_new();

	sl_jobs_store_add(change, jobs->folder, &job->row, spec);
	if (sl_store_commit(jobs->daemon->store, change, on_kept, job) < 0)
		sl_jobs_store_failed(jobs, job, &no_memory);
}

static void on_removed(void *context, int r, const struct sl_error *err)
{
	if (r < 0)
		sl_error_log("%s", err->text);
}

bool sl_jobs_remove(struct sl_jobs *jobs, struct sl_job *job)
{
	struct sl_store_change *change = sl_store_change_new();

	sl_jobs_store_drop(change, jobs->folder, job->row.id);
	if (sl_store_commit(jobs->daemon->store, change, on_removed, NULL) < 0)
		return false;
	sl_jobs_drop_job(jobs, job);
	return true;
}

/* --- Logs. --- */

static bool writes_log(const struct sl_job_task *task)
{
	return !task->job->foreground && !task->unbounded &&
	       task->job->row.tasks[task->number].attempt;
}

sl_ns sl_jobs_trim_due(const struct sl_jobs *jobs, const struct sl_job_task *task)
{
	return jobs->trims || !jobs->daemon->config.job_log_max || !writes_log(task)
		       ? SL_NS_NEVER
		       : jobs->trim_at;
}

static void on_trimmed(void *context, int r, const struct sl_error *err)
{
	const struct sl_jobs_trim *trim = context;
	struct sl_jobs *jobs = trim->context;

	if (jobs->closes)
		return;
	jobs->trims = false;
	for (size_t i = 0; i < trim->count; i++) {
		const struct sl_jobs_log *log = &trim->logs[i];
		struct sl_job *job = sl_jobs_find(jobs, log->id);

		if (!job || log->r == 0 || log->r == -EAGAIN || log->r == -ENOENT)
			continue;
		job->tasks[log->task].unbounded = true;
		sl_warning("job %" PRIu64 ": the output of task %" PRIu32
			   " cannot be kept within job_log_max: %s; put data_dir on a "
			   "file system that has holes (ext4, XFS, Btrfs)",
			log->id, log->task, strerror(-log->r));
	}
	sl_jobs_awake(jobs);
}

static void add_log(struct sl_jobs_trim *trim, const struct sl_job_task *task)
{
	trim->logs[trim->count++] =
		(struct sl_jobs_log){.id = task->job->row.id, .task = task->number};
}

static struct sl_jobs_trim *new_trim(struct sl_jobs *jobs, size_t room)
{
	uint64_t most_bytes = jobs->daemon->config.job_log_max;
	struct sl_jobs_trim *trim =
		most_bytes ? sl_jobs_trim_new(jobs->folder, most_bytes, room) : NULL;

	if (trim)
		trim->context = jobs;
	return trim;
}

static void start_trim(struct sl_jobs *jobs, struct sl_jobs_trim *trim)
{
	struct sl_store_change *change = sl_store_change_new();

	sl_store_add_step(change, &trim->step);
	jobs->trims = sl_store_commit(jobs->daemon->store, change, on_trimmed, trim) == 0;
}

void sl_jobs_trim_last(struct sl_jobs *jobs, const struct sl_job_task *task)
{
	struct sl_jobs_trim *trim = writes_log(task) ? new_trim(jobs, 1) : NULL;

	if (!trim)
		return;
	add_log(trim, task);
	start_trim(jobs, trim);
}

void sl_jobs_trim(struct sl_jobs *jobs, sl_ns now)
{
	struct sl_jobs_trim *trim;
	size_t count = 0;

	if (jobs->trims || now < jobs->trim_at)
		return;
	jobs->trim_at = now + TRIM_NS;
	sl_list_foreach (link, &jobs->active)
		count += writes_log(SL_LIST_ENTRY(link, struct sl_job_task, active));
	trim = count ? new_trim(jobs, count) : NULL;
	if (!trim)
		return;
	sl_list_foreach (link, &jobs->active) {
		const struct sl_job_task *task =
			SL_LIST_ENTRY(link, struct sl_job_task, active);

		if (writes_log(task))
			add_log(trim, task);
	}
	start_trim(jobs, trim);
}
