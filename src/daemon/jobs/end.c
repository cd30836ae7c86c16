/*
 * end - tasks that are stopped, parked, resumed, and over; and jobs with them
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/log.h"
#include "base/step.h"
#include "daemon/gpu/asking.h"
#include "daemon/jobs/internal.h"
#include "daemon/report/events.h"
#include "daemon/state/commit.h"
#include "daemon/state/drive.h"
#include "daemon/workloads/park.h"
#include "daemon/workloads/workload.h"
#include "policy/quota/retry.h"

/* A program that dies this soon after its limit denied a demand has probably died of it; unwinding
 * and printing a message take time. */
#define DENIED_RECENTLY (60 * SL_S)

/* The driver knows of a lost GPU as soon as calls to it fail, but may be slow to answer. */
#define LOSS_TOLD_WITHIN (1 * SL_S)

/* A move that came to nothing costs two copies of all its memory. */
#define MOVED_AGAIN_AFTER (600 * SL_S)

static struct sl_cluster_event event_of(
	enum sl_cluster_event_type type, const struct sl_job_task *task)
{
	struct sl_cluster_event event = {.type = type};

	/* All events of a task begin with these two fields. */
	event.task_ended.job = task->job->row.id;
	event.task_ended.task = task->number;
	return event;
}

static void tell(struct sl_jobs *jobs, const struct sl_job_task *task,
	const struct sl_cluster_event *event)
{
	if (task->job->counted)
		sl_jobs_tell(jobs, event);
}

/* --- Stopping. --- */

static void stop_failed(struct sl_jobs *jobs, struct sl_job_task *task, const char *why)
{
	struct sl_cluster_event event = event_of(SL_CLUSTER_EVENT_STOP_FAILED, task);
	char label[SL_JOBS_LABEL_MAX];

	sl_error_set(&jobs->unmoved, "%s", why);
	sl_info("%s (%s): task %u stays where it is: %s", sl_jobs_label(task->job, label),
		task->job->row.name, task->number, why);
	tell(jobs, task, &event);
}

static void terminate(struct sl_jobs *jobs, struct sl_job_task *task)
{
	task->stopped = true;
	(void)sl_jobs_end_task(jobs, task, jobs->daemon->config.stop_grace, false);
}

uint64_t sl_jobs_held_by(const struct sl_jobs *jobs, const struct sl_workload *workload)
{
	uint64_t held = 0;

	for (uint32_t i = 0; i < workload->gpu_count; i++)
		held += sl_node_use(jobs->daemon->node, workload->id, workload->gpus[i])
				.held_bytes;
	return held;
}

/* moves: to go to other GPUs. */
static void park(struct sl_jobs *jobs, struct sl_job_task *task, bool moves)
{
	struct sl_workload *workload = sl_jobs_workload_of(jobs, task);
	struct sl_error text = {0};
	uint64_t held = workload ? sl_jobs_held_by(jobs, workload) : 0;
	char size[32];

	if (!workload)
		return; /* the task is over, and its end will be told */
	if (held) {
		sl_error_set(&text,
			"%s of it are shared with others or known to the driver, and "
			"cannot be moved",
			sl_bytes_format(held, size, sizeof(size)));
		stop_failed(jobs, task, text.text);
		return;
	}
	task->is_parked = false;
	/* First, because PARKED may come in this very step, and must count as the queue's. */
	sl_jobs_phase(task, SL_PHASE_PARKING);
	/* If a user has parked it already, only the phase changes. */
	if ((workload->park == SL_PARK_NOT || workload->park == SL_PARK_DETACHED) &&
		!sl_park_workload(jobs->daemon, workload, SL_PARK_PARKED, &text)) {
		sl_jobs_phase(task, SL_PHASE_RUNS);
		stop_failed(jobs, task, text.text);
		return;
	}
	if (workload->park == SL_PARK_PARKED && sl_park_is_done(jobs->daemon, workload))
		task->is_parked = true;
	task->moves = moves;
	if (moves)
		sl_jobs_when_away(jobs, workload, 0);
	task->deadline = sl_clock_now() + SL_JOBS_PARK_NS;
	sl_step(D_JOB_PARK_TAKEN);
	(void)sl_jobs_save(jobs, task->job);
	sl_jobs_awake(jobs);
}

void sl_jobs_on_stop(struct sl_jobs *jobs, const struct sl_cluster_action *action)
{
	struct sl_job *job = sl_jobs_find(jobs, action->stop.job);
	const struct sl_job *other = sl_jobs_find(jobs, action->stop.other);
	struct sl_job_task *task = job && action->stop.task < job->row.task_count
					   ? &job->tasks[action->stop.task]
					   : NULL;

	char label[SL_JOBS_LABEL_MAX];

	if (!task)
		return;
	sl_info("%s (%s): task %u is to %s%s%s", sl_jobs_label(job, label), job->row.name,
		task->number,
		action->stop.how == SL_STOP_PARK   ? "be parked"
		: action->stop.how == SL_STOP_MOVE ? "be moved"
						   : "be stopped",
		other ? " for " : "", other ? other->row.name : "");
	if (task->phase == SL_PHASE_CHOSEN) {
		struct sl_cluster_event event =
			event_of(SL_CLUSTER_EVENT_TASK_ENDED, task);

		event.task_ended.again = 1;
		sl_jobs_phase(task, SL_PHASE_WAITING);
		tell(jobs, task, &event);
	} else if (task->phase == SL_PHASE_STARTING) {
		terminate(jobs, task);
	} else if (task->phase != SL_PHASE_RUNS) {
		/* It is on its way already, or not on a GPU. */
		if (task->phase != SL_PHASE_STOPPING && task->phase != SL_PHASE_PARKING)
			stop_failed(jobs, task, "it is being resumed");
	} else if (action->stop.how == SL_STOP_MOVE && job->parks &&
		   !sl_jobs_may_move(jobs, job)) {
		stop_failed(jobs, task,
			"it may be parked, and what is parked comes back to its own GPU");
	} else if (action->stop.how == SL_STOP_PARK ||
		   (action->stop.how == SL_STOP_MOVE && job->parks)) {
		park(jobs, task, action->stop.how == SL_STOP_MOVE);
	} else if (job->foreground) {
		stop_failed(jobs, task, "nobody could start it again");
	} else {
		terminate(jobs, task);
	}
}

/* --- Parked and back. --- */

/* It is PARKING, and runs on where it is. */
static void stays(struct sl_jobs *jobs, struct sl_job_task *task, const char *why)
{
	struct sl_workload *workload = sl_jobs_workload_of(jobs, task);
	struct sl_error text = {0};

	if (task->moves && workload)
		sl_events_add(jobs->daemon,
			&(struct sl_node_because){.reason = SL_REASON_MOVE_STAYS,
				.workload = workload->id});
	if (task->moves)
		task->job->moves_from = sl_clock_now() + MOVED_AGAIN_AFTER;
	task->moves = false;
	if (workload &&
		!sl_park_workload(jobs->daemon, workload, SL_PARK_RESUMING, &text))
		sl_warning("job %" PRIu64 " (%s): task %u cannot be resumed again: %s",
			task->job->row.id, task->job->row.name, task->number, text.text);
	sl_jobs_phase(task, SL_PHASE_RUNS);
	stop_failed(jobs, task, why);
}

void sl_jobs_task_parked(struct sl_jobs *jobs, struct sl_job_task *task)
{
	struct sl_cluster_event ended = event_of(SL_CLUSTER_EVENT_TASK_ENDED, task);
	struct sl_cluster_event parked = event_of(SL_CLUSTER_EVENT_TASK_PARKED, task);
	const struct sl_workload *workload = sl_jobs_workload_of(jobs, task);

	task->is_parked = task->unheard = false;
	/* A user parked it: it keeps its place in the books until a user resumes it. */
	if (task->phase != SL_PHASE_PARKING || !workload)
		return;
	sl_jobs_phase(task, SL_PHASE_PARKED);
	ended.task_ended.again = 1;
	tell(jobs, task, &ended);
	/* An earlier daemon began to park it, and the machine knows only that it stops. */
	parked.task_parked.node = task->node;
	parked.task_parked.gpu_mask = task->gpu_mask;
	tell(jobs, task, &parked);
	sl_step(D_JOB_PARKED);
	/* The journal still has a foreground job as being parked. */
	if (task->job->foreground)
		sl_commit_soon(jobs->daemon);
	(void)sl_jobs_save(jobs, task->job);
}

void sl_jobs_task_left(struct sl_jobs *jobs, struct sl_job_task *task, bool away)
{
	task->is_parked = away;
	if (away)
		task->moves = false;
	else
		stays(jobs, task, "something of it is left on its GPUs and cannot leave");
	sl_jobs_awake(jobs);
}

void sl_jobs_goes_on_parking(struct sl_job_task *task)
{
	task->unheard = true;
	task->deadline = sl_clock_now() + SL_JOBS_PARK_NS;
}

bool sl_jobs_has_left(const struct sl_jobs *jobs, const struct sl_job_task *task)
{
	const struct sl_workload *workload = sl_jobs_workload_of(jobs, task);

	/* Before its processes have reported, it seems to hold nothing. */
	return workload && sl_jobs_may_choose(jobs) &&
	       sl_park_is_done(jobs->daemon, workload);
}

void sl_jobs_task_resumed(struct sl_jobs *jobs, struct sl_job_task *task)
{
	struct sl_cluster_event event = event_of(SL_CLUSTER_EVENT_TASK_RUNS, task);

	task->is_resumed = false;
	if (task->phase != SL_PHASE_RESUMING)
		return;
	sl_jobs_phase(task, SL_PHASE_RUNS);
	sl_step(D_JOB_RESUMED);
	(void)sl_jobs_save(jobs, task->job);
	tell(jobs, task, &event);
	if (task->job->stays) {
		task->job->stays = false;
		sl_jobs_put_anew(jobs, task->job);
	}
}

void sl_jobs_task_late(struct sl_jobs *jobs, struct sl_job_task *task)
{
	struct sl_workload *workload = sl_jobs_workload_of(jobs, task);
	struct sl_cluster_event event = event_of(SL_CLUSTER_EVENT_BIND_REFUSED, task);
	struct sl_error text = {0};

	task->deadline = 0;
	if (task->alone && (task->phase != SL_PHASE_STOPPING || task->told)) {
		sl_jobs_alone_look(jobs, task);
		return;
	}
	if (!workload && !task->alone)
		return;
	if (task->phase == SL_PHASE_STOPPING) {
		sl_jobs_stop_unwritten(jobs, task, "the disk does not answer");
		return;
	}
	if (task->phase == SL_PHASE_PARKING) {
		stays(jobs, task, "it did not leave its GPUs within 30 s");
		return;
	}
	/* It was to go to other GPUs, and something of it is still on its own. */
	if (sl_list_is_linked(&workload->move_link)) {
		sl_list_unlink(&workload->move_link);
		sl_jobs_task_goes(jobs, task, workload, false);
		return;
	}
	if (!sl_park_workload(jobs->daemon, workload, SL_PARK_PARKED, &text))
		sl_warning("job %" PRIu64 " (%s): task %u cannot be parked again: %s",
			task->job->row.id, task->job->row.name, task->number, text.text);
	sl_jobs_phase(task, SL_PHASE_PARKED);
	sl_wire_str(task->job->node_said, sizeof(task->job->node_said),
		"there was no room for its request within 30 s");
	tell(jobs, task, &event);
	(void)sl_jobs_save(jobs, task->job);
}

/* --- Over. --- */

/* Negative errno: the record cannot be read. */
static int read_record(const struct sl_jobs *jobs, const struct sl_job_task *task,
	struct sl_shim_record *record)
{
	const struct sl_job *job = task->job;
	char text[256];
	ssize_t size = sl_jobs_files_read_record(jobs->folder, job->row.id, task->number,
		job->row.tasks[task->number].attempt, text, sizeof(text));

	*record = sl_shim_record_parse(text, size > 0 ? (size_t)size : 0);
	return size < 0 ? (int)size : 0;
}

/*
 * The shim writes the record's first line before it starts anything. So the record says whether the
 * task got its go, whatever a daemon knew or stored. Only a crash of the computer can lose that
 * line.
 */
static enum sl_retry_ending how_it_ended(const struct sl_jobs *jobs,
	const struct sl_job_task *task, struct sl_shim_record *record)
{
	int r = read_record(jobs, task, record);
	bool went = task->went;

	switch (record->ending) {
	case SL_SHIM_EXITED: return SL_RETRY_EXITED;
	case SL_SHIM_ERROR: return SL_RETRY_NOT_STARTED;
	case SL_SHIM_BEGUN:
	case SL_SHIM_BAD: went = true; break;
	case SL_SHIM_NONE: break;
	}
	if (task->former && jobs->daemon->rebooted)
		return went ? SL_RETRY_REBOOT : SL_RETRY_NEVER_WENT;
	if (r == 0 && record->ending == SL_SHIM_NONE)
		return SL_RETRY_NEVER_WENT;
	return went ? SL_RETRY_LOST : SL_RETRY_NEVER_WENT;
}

bool sl_jobs_was_killed(const struct sl_jobs *jobs, const struct sl_job_task *task)
{
	struct sl_shim_record record;

	return read_record(jobs, task, &record) == 0 &&
	       (record.ending == SL_SHIM_BEGUN || record.ending == SL_SHIM_BAD);
}

void sl_jobs_find_begun(struct sl_jobs *jobs, struct sl_job_task *task)
{
	struct sl_shim_record record;

	if (task->went || read_record(jobs, task, &record) < 0 ||
		record.ending == SL_SHIM_NONE)
		return;
	sl_jobs_note_begun(task, record.started_ms);
}

/* Copies what the record says of the attempt into the row. */
static void note_record(struct sl_job_task *task, enum sl_retry_ending ending,
	const struct sl_shim_record *record)
{
	struct sl_jobs_task *row = &task->job->row.tasks[task->number];

	row->exit_status = ending == SL_RETRY_EXITED ? record->status : SL_JOB_LOST;
	if (!task->went && record->ending != SL_SHIM_NONE)
		sl_jobs_note_begun(task, record->started_ms);
	/* The task got its go and did not begin: it was killed at once, or its record had no disk
	 * space. */
	task->unwritten |= task->went && ending == SL_RETRY_NEVER_WENT;
}

/* Adds the demand that its limit denied before it died. */
static void blame_limit(const struct sl_job_task *task, char *why, size_t size)
{
	const struct sl_node_because *denied = &task->denied;
	char wanted[32], limit[32], left[32];
	size_t used = strlen(why);

	(void)snprintf(why + used, size - used,
		" after it asked for %s on GPU %u, of which its limit of %s left %s; "
		"submit it with a higher --limit",
		sl_bytes_format(denied->bytes, wanted, sizeof(wanted)), denied->gpu,
		sl_bytes_format(denied->other_bytes, limit, sizeof(limit)),
		sl_bytes_format(denied->available_bytes, left, sizeof(left)));
}

static void explain(struct sl_job_task *task, enum sl_retry_ending ending,
	const struct sl_shim_record *record)
{
	struct sl_jobs_row *row = &task->job->row;
	char which[32] = "it", what[160] = "";
	int status = (int)record->status;

	if (row->task_count > 1)
		(void)snprintf(which, sizeof(which), "task %u", task->number);
	switch (ending) {
	case SL_RETRY_EXITED:
		if (WIFSIGNALED(status))
			(void)snprintf(what, sizeof(what), "was killed by signal %d",
				WTERMSIG(status));
		else
			(void)snprintf(what, sizeof(what), "ended with exit status %d",
				WEXITSTATUS(status));
		break;
	case SL_RETRY_NOT_STARTED:
		(void)snprintf(what, sizeof(what), "could not be started: %s: %s",
			strcmp(record->what, "chdir") != 0 ? record->what : "its folder",
			strerror(record->error));
		break;
	case SL_RETRY_REBOOT:
		(void)snprintf(what, sizeof(what), "ran when the machine went down");
		break;
	case SL_RETRY_NEVER_WENT:
	case SL_RETRY_LOST:
		(void)snprintf(what, sizeof(what),
			"ended without a record; its supervisor was killed");
		break;
	}
	(void)snprintf(row->why, sizeof(row->why), "%s %s", which, what);
	if (ending == SL_RETRY_EXITED && task->denied_at &&
		sl_clock_now() - task->denied_at < DENIED_RECENTLY)
		blame_limit(task, row->why, sizeof(row->why));
	if (!row->exit_status)
		row->exit_status = row->tasks[task->number].exit_status;
}

/* Ends the task for good. */
static void for_good(struct sl_jobs *jobs, struct sl_job_task *task, bool failed)
{
	struct sl_cluster_event event = event_of(SL_CLUSTER_EVENT_TASK_ENDED, task);

	task->failed = failed;
	sl_jobs_phase(task, SL_PHASE_OVER);
	event.task_ended.failed = failed;
	tell(jobs, task, &event);
}

void sl_jobs_cancel(struct sl_jobs *jobs, struct sl_job_task *task)
{
	for_good(jobs, task, true);
}

void sl_jobs_unstart(struct sl_job_task *task, const char *why)
{
	if (task->phase != SL_PHASE_STARTING)
		return;
	sl_wire_str(task->job->node_said, sizeof(task->job->node_said), why);
	sl_shim_forget(&task->shim);
	sl_jobs_phase(task, SL_PHASE_STOPPING);
	task->told = task->unwritten = true;
}

static void once_more(struct sl_jobs *jobs, struct sl_job_task *task,
	const struct sl_retry_verdict *verdict)
{
	struct sl_cluster_event event = event_of(SL_CLUSTER_EVENT_TASK_ENDED, task);

	sl_jobs_phase(task, SL_PHASE_WAITING);
	event.task_ended.again = 1;
	/* Not started again at once: the cause that kept its start from being recorded must end
	 * first. */
	event.task_ended.failed = verdict->counts || task->unwritten;
	if (task->job->is_free)
		sl_jobs_free_at(jobs, task,
			sl_clock_now() + (task->unwritten ? SL_RETRY_PAUSE_FIRST
							  : verdict->pause));
	else
		tell(jobs, task, &event);
	task->unwritten = false;
}

/* The shim is our child, or an earlier daemon's. */
static void reap(struct sl_job_task *task)
{
	sl_shim_reap(task->shim.pid);
	sl_shim_forget(&task->shim);
	task->shim.pid = 0;
}

/* Only the process that started it saw how it ended. */
void sl_jobs_front_over(struct sl_jobs *jobs, struct sl_job_task *task)
{
	task->is_parked = task->is_resumed = false;
	task->over_at = 0;
	task->job->row.tasks[task->number].workload = 0;
	for_good(jobs, task, false);
	sl_jobs_check_end(jobs, task->job);
}

/* The program may have ended by the loss of a GPU of which the daemon has not heard: asks about
 * them, and waits for looks that began after its end. */
static bool may_be_bereft(struct sl_jobs *jobs, struct sl_job_task *task)
{
	uint32_t gpus = sl_jobs_gpus_at(&jobs->books, task->node, task->gpu_mask);
	sl_ns until = task->over_at + LOSS_TOLD_WITHIN;
	bool first = task->deadline != until;
	bool waits = false;

	task->deadline = until;
	if (sl_clock_now() >= until)
		return false;
	for (; gpus; gpus &= gpus - 1) {
		uint32_t number = (uint32_t)__builtin_ctz(gpus);
		const struct sl_gpu *gpu = &jobs->daemon->gpus[number];

		if (gpu->lost)
			return false;
		if (first)
			sl_asking_now(jobs->daemon, number);
		waits |= gpu->managed && (gpu->asked || gpu->asked_at < task->over_at);
	}
	jobs->listens |= waits;
	return waits;
}

/* Has a GPU of the task been lost? Most programs then exit at their next call, before they are
 * signalled; that is no failure of theirs. */
static bool is_bereft(const struct sl_jobs *jobs, const struct sl_job_task *task)
{
	uint32_t gpus = sl_jobs_gpus_at(&jobs->books, task->node, task->gpu_mask);

	for (; gpus; gpus &= gpus - 1) {
		if (jobs->daemon->gpus[__builtin_ctz(gpus)].lost)
			return true;
	}
	return task->bereft;
}

void sl_jobs_task_over(struct sl_jobs *jobs, struct sl_job_task *task)
{
	struct sl_job *job = task->job;
	struct sl_jobs_task *row = &job->row.tasks[task->number];
	struct sl_shim_record record;
	enum sl_retry_ending ending = how_it_ended(jobs, task, &record);
	struct sl_retry_facts facts = {.ending = ending,
		.ok = ending == SL_RETRY_EXITED && record.status == 0,
		.asked = task->asked || job->row.state == SL_JOB_STOPPING,
		.stopped = task->stopped && task->told,
		.preemptible = job->row.flags & SL_SUBMIT_PREEMPTIBLE,
		.failures = row->failures,
		.retries = job->row.retries};
	struct sl_retry_verdict verdict;

	if (!facts.ok && !facts.asked && !facts.stopped && may_be_bereft(jobs, task))
		return;
	facts.stopped |= !facts.ok && is_bereft(jobs, task);
	verdict = sl_retry_judge(&facts);
	task->is_parked = task->is_resumed = false;
	task->over_at = 0;
	note_record(task, ending, &record);
	reap(task);
	sl_jobs_trim_last(jobs, task);
	row->workload = 0;
	row->failures += verdict.counts;
	sl_info("job %" PRIu64 " (%s): task %u ended (%s)", job->row.id, job->row.name,
		task->number,
		verdict.outcome == SL_RETRY_DONE      ? "done"
		: verdict.outcome == SL_RETRY_AGAIN   ? "to be started again"
		: verdict.outcome == SL_RETRY_STOPPED ? "as asked"
						      : "failed");
	switch (verdict.outcome) {
	case SL_RETRY_DONE: for_good(jobs, task, false); break;
	case SL_RETRY_AGAIN: once_more(jobs, task, &verdict); break;
	case SL_RETRY_STOPPED:
		task->asked = true;
		/* The exit status, if it is known. */
		if (!job->row.exit_status && row->exit_status != SL_JOB_LOST)
			job->row.exit_status = row->exit_status;
		for_good(jobs, task, true);
		break;
	case SL_RETRY_FAILED:
		if (!job->row.why[0])
			explain(task, ending, &record);
		for_good(jobs, task, true);
		break;
	}
	sl_step(D_JOB_OVER);
	sl_jobs_check_end(jobs, job);
	if (!job->over)
		(void)sl_jobs_save(jobs, job);
}

/* --- Jobs. --- */

/* The rest of a gang cannot go on without the tasks that failed. */
static void end_rest(struct sl_jobs *jobs, struct sl_job *job)
{
	for (uint32_t i = 0; i < job->row.task_count; i++) {
		struct sl_job_task *task = &job->tasks[i];

		if (task->phase == SL_PHASE_OVER || task->asked)
			continue;
		(void)sl_jobs_end_task(jobs, task, jobs->daemon->config.stop_grace, true);
	}
}

static enum sl_job_state last_state(const struct sl_job *job)
{
	bool asked = job->row.state == SL_JOB_STOPPING;

	/* The first failure is the cause: what ended after it was stopped by us. */
	if (job->row.why[0])
		return SL_JOB_FAILED;
	for (uint32_t i = 0; i < job->row.task_count; i++)
		asked |= job->tasks[i].asked;
	return asked ? SL_JOB_STOPPED : SL_JOB_DONE;
}

void sl_jobs_check_end(struct sl_jobs *jobs, struct sl_job *job)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_REMOVE};
	uint32_t failed = 0, over = 0;

	if (job->over)
		return;
	for (uint32_t i = 0; i < job->row.task_count; i++)
		failed += job->tasks[i].phase == SL_PHASE_OVER && job->tasks[i].failed;
	if (sl_retry_is_hopeless(job->row.task_count, job->row.least, failed))
		end_rest(jobs, job);
	for (uint32_t i = 0; i < job->row.task_count; i++)
		over += job->tasks[i].phase == SL_PHASE_OVER;
	if (over < job->row.task_count || job->over)
		return;
	job->row.state = last_state(job);
	job->over = true;
	jobs->living--;
	jobs->tasks -= job->row.task_count;
	jobs->ended[job->row.state] += !job->foreground;
	job->row.ended_ms = sl_jobs_now_ms();
	event.job_remove.job = job->row.id;
	if (job->counted)
		sl_jobs_tell(jobs, &event);
	job->counted = false;
	if (job->foreground) {
		sl_jobs_front_ended(jobs, job);
		jobs->forget = true;
		return;
	}
	sl_info("job %" PRIu64 " (%s) %s%s%s", job->row.id, job->row.name,
		job->row.state == SL_JOB_DONE     ? "is done"
		: job->row.state == SL_JOB_FAILED ? "failed: "
						  : "was stopped",
		job->row.state == SL_JOB_FAILED ? job->row.why : "", "");
	(void)sl_jobs_save(jobs, job);
	sl_step(D_JOB_ENDED);
	sl_jobs_tell_waits(jobs, job);
	jobs->forget = true;
}

void sl_jobs_forget_old(struct sl_jobs *jobs)
{
	uint64_t now_ms = sl_jobs_now_ms();
	uint64_t keep_ms = jobs->daemon->config.keep_jobs_for / SL_MS;
	size_t ended = 0;

	jobs->forget = false;
	sl_list_foreach_safe (at, &jobs->all) {
		struct sl_job *job = SL_LIST_ENTRY(at, struct sl_job, link);

		ended += job->over && !job->foreground;
		if (job->over && job->foreground)
			sl_jobs_drop_job(jobs, job);
	}
	/* By number, which is roughly by age. */
	sl_list_foreach_safe (link, &jobs->all) {
		struct sl_job *job = SL_LIST_ENTRY(link, struct sl_job, link);
		bool old = keep_ms && job->row.ended_ms + keep_ms < now_ms;

		if (!job->over || job->reply_due || !job->stored ||
			(ended <= jobs->daemon->config.keep_jobs && !old))
			continue;
		if (!sl_jobs_remove(jobs, job))
			return;
		ended--;
	}
}
