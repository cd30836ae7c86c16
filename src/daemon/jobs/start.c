/*
 * start - a place was found: the task is admitted, recorded, and only then gets its go
 *
 * The order matters. First the node's ledger, which has the last word. Then a shim, which waits.
 * Then the journal records the root process of the workload, and the job's state that its task is
 * being started. If the daemon is killed in between, the shim exits, and the next daemon starts the
 * task anew. Only when both are written does the shim get its go.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/file.h"
#include "base/library.h"
#include "base/log.h"
#include "base/step.h"
#include "daemon/gpu/inventory.h"
#include "daemon/jobs/internal.h"
#include "daemon/jobs/names.h"
#include "daemon/link/bounds.h"
#include "daemon/link/places.h"
#include "daemon/report/events.h"
#include "daemon/state/commit.h"
#include "daemon/workloads/park.h"
#include "daemon/workloads/process.h"
#include "daemon/workloads/refusal.h"
#include "daemon/workloads/workload.h"

/* Next try of a task without request that could not be started. */
#define FREE_AGAIN_NS (5 * SL_S)

/* --- The library. --- */

bool sl_jobs_find_library(struct sl_jobs *jobs, struct sl_error *err)
{
	char path[SL_PATH_MAX];

	/* Each time: it may have been installed or replaced since. */
	if (sl_library_find(path, sizeof(path), err) != SL_LIBRARY_OK)
		return false;
	sl_library_by_loader(path, jobs->preload, sizeof(jobs->preload));
	return true;
}

/* --- What it is started with. --- */

static int add_env(struct sl_jobspec *spec, const char *name, const char *value)
{
	sl_cleanup(sl_freep) char *text = NULL;

	if (asprintf(&text, "%s=%s", name, value) < 0) {
		text = NULL;
		return sl_err_origin(-ENOMEM);
	}
	return sl_jobspec_add(spec, SL_JOBSPEC_ENV, text);
}

static int add_env_number(struct sl_jobspec *spec, const char *name, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, value);
	return add_env(spec, name, text);
}

/* The last entry counts. */
static const char *env_of(const struct sl_jobspec *spec, const char *name)
{
	const char *found = NULL, *text;
	size_t at = 0, length = strlen(name);

	while ((text = sl_jobspec_next(spec, SL_JOBSPEC_ENV, &at))) {
		if (strncmp(text, name, length) == 0 && text[length] == '=')
			found = text + length + 1;
	}
	return found;
}

/* The variables that `sluice run` sets, and the task's identity. */
static int add_environment(const struct sl_jobs *jobs, struct sl_jobspec *spec,
	const struct sl_job_task *task, const struct sl_workload *workload)
{
	const struct sl_jobs_row *row = &task->job->row;
	sl_cleanup(sl_freep) char *preload =
		sl_library_preload(jobs->preload, env_of(spec, "LD_PRELOAD"));
	char visible[128], token[33];
	int r;

	if (!preload)
		return sl_err_origin(-ENOMEM);
	sl_wire_token_format(workload->token, token);
	sl_workload_visible(jobs->daemon, workload, visible, sizeof(visible));
	r = add_env(spec, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
	if (r == 0)
		r = add_env(spec, "CUDA_VISIBLE_DEVICES", visible);
	if (r == 0)
		r = add_env(spec, "SLUICE_SOCKET", jobs->daemon->socket_path);
	if (r == 0)
		r = add_env(spec, "SLUICE_WORKLOAD", token);
	if (r == 0)
		r = add_env(spec, "LD_PRELOAD", preload);
	if (r == 0)
		r = add_env_number(spec, "SLUICE_JOB", row->id);
	if (r == 0)
		r = add_env_number(spec, "SLUICE_TASK", task->number);
	if (r == 0)
		r = add_env_number(spec, "SLUICE_TASKS", row->task_count);
	if (r == 0)
		r = add_env_number(
			spec, "SLUICE_ATTEMPT", row->tasks[task->number].attempt);
	return r;
}

static int add_number(struct sl_jobspec *spec, const char *key, uint32_t value)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%" PRIu32, value);
	return sl_jobspec_add(spec, key, text);
}

/* The job's user came from the kernel with SUBMIT, and is stored with the rest. */
static int complete(const struct sl_jobs *jobs, struct sl_jobspec *spec,
	const struct sl_job_task *task, const struct sl_workload *workload)
{
	int r = add_environment(jobs, spec, task, workload);

	if (r == 0)
		r = add_number(spec, SL_JOBSPEC_TASK, task->number);
	if (r == 0)
		r = add_number(spec, SL_JOBSPEC_ATTEMPT,
			task->job->row.tasks[task->number].attempt);
	return r;
}

/* --- Its workload. --- */

/* Which GPU it gets may be decided when its first process begins. */
static bool names_no_gpu(const struct sl_jobs_row *row)
{
	return row->gpu_count == 1 && !(row->flags & SL_RUN_VISIBLE_SET);
}

static struct sl_workload *new_workload(
	struct sl_jobs *jobs, const struct sl_job_task *task)
{
	struct sl_daemon *daemon = jobs->daemon;
	const struct sl_jobs_row *row = &task->job->row;
	struct sl_workload *workload = sl_workload_new(
		daemon, task->job->foreground ? row->id & ~SL_JOB_FOREGROUND
					      : daemon->next_workload++);

	if (!workload)
		return NULL;
	if (getrandom(workload->token, sizeof(workload->token), 0) !=
		(ssize_t)sizeof(workload->token)) {
		sl_workload_discard(daemon, workload);
		return NULL;
	}
	workload->uid = row->uid;
	workload->request = row->request;
	workload->limit = row->limit;
	workload->priority = row->priority;
	workload->flags = sl_workload_flags(daemon, row->flags) |
			  (names_no_gpu(row) ? SL_WORKLOAD_LATE : 0);
	workload->wait_max = row->wait_max;
	if (!(row->flags & SL_SUBMIT_NEVER_WARM))
		workload->warm_after =
			row->warm_after ? row->warm_after : daemon->config.warm_after;
	if (!(row->flags & SL_SUBMIT_NEVER_DETACH))
		workload->detach_after = row->detach_after ? row->detach_after
							   : daemon->config.detach_after;
	workload->compute.request_pm = row->compute_request_pm;
	workload->compute.limit_pm = row->compute_limit_pm;
	workload->idle_grace = row->flags & SL_SUBMIT_GRACE ? row->idle_grace
							    : daemon->config.idle_grace;
	memcpy(workload->project, row->project, sizeof(workload->project));
	memcpy(workload->command, row->command, sizeof(workload->command));
	sl_jobs_task_name(row, task->number, workload->name);
	return workload;
}

/* A job's size was judged when it was submitted; the number of its user's workloads is judged
 * now. */
static struct sl_event proposal(const struct sl_daemon *daemon, const struct sl_job *job,
	const struct sl_workload *workload, uint32_t gpus)
{
	struct sl_event event = sl_workload_event(workload, job->row.gpu_count, gpus);

	event.workload_add.owned = sl_places_workloads_of(daemon, workload->uid);
	if (job->foreground && job->submitter)
		event.workload_add.bounds = sl_bounds_of_peer(job->submitter);
	else
		event.workload_add.bounds.workloads = job->row.workloads_most;
	/* Parked programs keep their contexts on the GPU: some hundred MiB that cannot be moved. A
	 * job that asks for a fraction and has a place from the machine gets that fraction of what
	 * is left; a job that asks for bytes gets all of them or waits. */
	event.workload_add.may_take_less = job->counted || !job->foreground;
	return event;
}

struct sl_workload *sl_jobs_propose(
	struct sl_jobs *jobs, struct sl_job_task *task, uint32_t gpus, bool *took)
{
	struct sl_daemon *daemon = jobs->daemon;
	struct sl_workload *workload = new_workload(jobs, task);
	struct sl_event event;

	*took = false;
	if (!workload)
		return NULL;
	event = proposal(daemon, task->job, workload, gpus);
	*took = sl_workload_propose(daemon, &event);
	if (!*took)
		return workload;
	workload->request_bytes = daemon->admission.request_bytes;
	workload->limit_bytes = daemon->admission.limit_bytes;
	sl_workload_bind(daemon, workload, daemon->admission.gpu_mask);
	return workload;
}

/* Admitted, with its GPUs; NULL: refused, or no memory. */
static struct sl_workload *admit(
	struct sl_jobs *jobs, struct sl_job_task *task, uint32_t gpus)
{
	struct sl_job *job = task->job;
	bool took;
	struct sl_workload *workload = sl_jobs_propose(jobs, task, gpus, &took);

	if (!workload || took)
		return workload;
	(void)sl_refusal_sentence(
		jobs->daemon, workload->name, job->node_said, sizeof(job->node_said));
	sl_info("job %" PRIu64 " (%s) cannot start yet: %s", job->row.id, job->row.name,
		job->node_said);
	sl_workload_discard(jobs->daemon, workload);
	return NULL;
}

/* --- Its shim. --- */

static int start_shim(struct sl_jobs *jobs, struct sl_job_task *task,
	struct sl_workload *workload, struct sl_error *err)
{
	const struct sl_jobs_row *row = &task->job->row;
	uint32_t attempt = row->tasks[task->number].attempt;
	sl_cleanup(sl_jobspec_fini) struct sl_jobspec spec = {0};
	sl_cleanup(sl_closep) int log = -1;
	sl_cleanup(sl_closep) int record = -1;
	struct sl_process *process = NULL;
	int r, pidfd;

	if (!sl_jobs_find_library(jobs, err))
		return sl_err_origin(-ENOENT);
	if (!sl_jobs_files_read_spec(jobs->folder, row->id, &spec, err))
		return sl_err_origin(-EBADMSG);
	r = complete(jobs, &spec, task, workload);
	if (r < 0)
		return r;
	log = sl_jobs_files_open_log(jobs->folder, row->id, task->number, true);
	record = sl_jobs_files_open_record(jobs->folder, row->id, task->number, attempt);
	if (log < 0 || record < 0) {
		r = log < 0 ? log : record;
		sl_error_set(err, "its files in %.200s/%" PRIu64 " cannot be written: %s",
			jobs->folder, row->id, strerror(-r));
		return r;
	}
	r = sl_shim_start(
		&(struct sl_shim_start){
			.spec = &spec, .log_fd = log, .record_fd = record},
		&task->shim, err);
	if (r < 0)
		return r;
	pidfd = sl_steal_fd(&task->shim.pidfd);
	if (sl_process_get(jobs->daemon, task->shim.pid, &pidfd, 0, &process) !=
		SL_PROCESS_OK) {
		sl_closep(&pidfd);
		sl_error_set(err, "its supervisor, process %d, cannot be watched",
			(int)task->shim.pid);
		sl_shim_forget(&task->shim);
		return sl_err_origin(-ESRCH);
	}
	sl_closep(&pidfd);
	sl_workload_set_root(workload, process);
	return 0;
}

/* --- From BIND to go. --- */

/* phase: its phase from now on, WAITING or PARKED. */
static void answer_refused(
	struct sl_jobs *jobs, struct sl_job_task *task, enum sl_job_phase phase)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_BIND_REFUSED};

	sl_jobs_phase(task, phase);
	event.bind_refused.job = task->job->row.id;
	event.bind_refused.task = task->number;
	if (task->job->is_free)
		sl_jobs_free_at(jobs, task, sl_clock_now() + FREE_AGAIN_NS);
	else if (task->job->counted)
		sl_jobs_tell(jobs, &event);
}

void sl_jobs_start(struct sl_jobs *jobs, struct sl_job_task *task)
{
	struct sl_job *job = task->job;
	struct sl_jobs_task *row = &job->row.tasks[task->number];
	uint32_t gpus =
		job->is_free ? task->gpu_mask
			     : sl_jobs_gpus_at(&jobs->books, task->node, task->gpu_mask);
	struct sl_pending_because because;
	struct sl_workload *workload;
	struct sl_error err = {0};

	if (job->foreground) {
		if (!gpus || !sl_jobs_front_start(jobs, task, gpus))
			answer_refused(jobs, task, SL_PHASE_WAITING);
		return;
	}
	/* All tasks of a gang or none. */
	if (sl_jobs_bound_holds(jobs, job, &because))
		gpus = 0;
	workload = gpus ? admit(jobs, task, gpus) : NULL;
	if (!workload) {
		answer_refused(jobs, task, SL_PHASE_WAITING);
		return;
	}
	row->attempt++;
	row->workload = workload->id;
	task->went = task->stopped = task->bereft = task->former = false;
	task->denied_at = 0;
	task->is_parked = task->is_resumed = false;
	task->over_at = 0;
	if (start_shim(jobs, task, workload, &err) < 0) {
		sl_error_log("job %" PRIu64 " (%s) cannot be started: %s", job->row.id,
			job->row.name, err.text[0] ? err.text : "out of memory");
		sl_wire_str(job->node_said, sizeof(job->node_said),
			err.text[0] ? err.text : "sluiced is out of memory");
		row->attempt--;
		row->workload = 0;
		sl_workload_dismiss(jobs->daemon, workload);
		answer_refused(jobs, task, SL_PHASE_WAITING);
		return;
	}
	workload->task = task;
	workload->has_shim = true;
	sl_step(D_JOB_WAITS);
	job->node_said[0] = '\0';
	sl_jobs_phase(task, SL_PHASE_STARTING);
	if (!sl_list_is_linked(&task->active))
		sl_list_push_tail(&jobs->active, &task->active);
	sl_commit_soon(jobs->daemon);
	task->commit = sl_commit_next(jobs->daemon);
	task->ticket = sl_jobs_save(jobs, job);
}

void sl_jobs_note_begun(struct sl_job_task *task, uint64_t when_ms)
{
	struct sl_jobs_row *row = &task->job->row;

	task->went = true;
	if (!row->started_ms)
		row->started_ms = when_ms;
	row->started++;
}

void sl_jobs_try_go(struct sl_jobs *jobs, struct sl_job_task *task)
{
	struct sl_job *job = task->job;
	const struct sl_jobs_task *row = &job->row.tasks[task->number];
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_TASK_RUNS};
	const struct sl_workload *workload =
		sl_map_get(&jobs->daemon->workloads, row->workload);

	if (task->ticket || !sl_commit_is_done(jobs->daemon, task->commit) || !workload)
		return;
	sl_step(D_JOB_WRITTEN);
	sl_shim_go(&task->shim);
	sl_step(D_JOB_GOES);
	sl_jobs_note_begun(task, sl_jobs_now_ms());
	sl_jobs_phase(task, SL_PHASE_RUNS);
	sl_info("job %" PRIu64 " (%s) of user %u: task %u runs as workload %" PRIu64
		" (attempt %u)",
		job->row.id, job->row.name, job->row.uid, task->number, row->workload,
		row->attempt);
	sl_events_add_of(jobs->daemon,
		&(struct sl_node_because){
			.reason = SL_REASON_STARTED, .workload = row->workload},
		workload->root_pid);
	(void)sl_jobs_save(jobs, job);
	event.task_runs.job = job->row.id;
	event.task_runs.task = task->number;
	if (job->counted)
		sl_jobs_tell(jobs, &event);
}

/* gpus: where to; 0: where it was parked. */
static void resume_on(struct sl_jobs *jobs, struct sl_job_task *task,
	struct sl_workload *workload, uint32_t gpus)
{
	struct sl_error text = {0};

	if (workload && sl_park_resume_on(jobs->daemon, workload, gpus, &text)) {
		sl_step(D_JOB_RESUME_TAKEN);
		(void)sl_jobs_save(jobs, task->job);
		return;
	}
	/* A user resumed it meanwhile. */
	if (workload && workload->park == SL_PARK_NOT) {
		task->is_resumed = true;
		sl_jobs_awake(jobs);
		return;
	}
	sl_info("job %" PRIu64 " (%s) cannot be resumed yet: %s", task->job->row.id,
		task->job->row.name, text.text);
	answer_refused(jobs, task, SL_PHASE_PARKED);
}

/* Resumes the task on the place that was chosen. */
static void resume(struct sl_jobs *jobs, struct sl_job_task *task)
{
	struct sl_workload *workload = sl_map_get(
		&jobs->daemon->workloads, task->job->row.tasks[task->number].workload);
	uint32_t gpus = sl_jobs_gpus_at(&jobs->books, task->node, task->gpu_mask);

	sl_jobs_phase(task, SL_PHASE_RESUMING);
	task->deadline = sl_clock_now() + SL_JOBS_RESUME_NS;
	task->is_resumed = false;
	if (workload && gpus && gpus != sl_workload_gpus(workload))
		sl_jobs_when_away(jobs, workload, gpus);
	else
		resume_on(jobs, task, workload, 0);
}

void sl_jobs_task_goes(struct sl_jobs *jobs, struct sl_job_task *task,
	struct sl_workload *workload, bool away)
{
	if (away) {
		resume_on(jobs, task, workload, workload->move_to);
		return;
	}
	/* Or a user resumed it meanwhile, where it was. */
	task->job->stays = sl_park_is_put_away(workload);
	sl_jobs_phase(task, task->job->stays ? SL_PHASE_PARKED : SL_PHASE_RUNS);
	sl_jobs_put_anew(jobs, task->job);
}

void sl_jobs_on_bind(struct sl_jobs *jobs, const struct sl_cluster_action *action)
{
	struct sl_job *job = sl_jobs_find(jobs, action->bind.job);
	struct sl_job_task *task = job && action->bind.task < job->row.task_count
					   ? &job->tasks[action->bind.task]
					   : NULL;

	if (!task)
		return;
	task->node = action->bind.node;
	task->gpu_mask = action->bind.gpu_mask;
	if (task->phase == SL_PHASE_PARKED) {
		resume(jobs, task);
	} else if (task->phase == SL_PHASE_WAITING) {
		sl_jobs_phase(task, SL_PHASE_CHOSEN);
		sl_list_push_tail(&jobs->active, &task->active);
		if (job->stored)
			sl_jobs_start(jobs, task);
	} else {
		struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_BIND_REFUSED};

		/* Its old attempt is not gone yet. */
		event.bind_refused.job = job->row.id;
		event.bind_refused.task = task->number;
		sl_jobs_tell(jobs, &event);
	}
}

/* --- Without request: the node chooses, and nothing is counted. --- */

void sl_jobs_free_at(struct sl_jobs *jobs, struct sl_job_task *task, sl_ns at)
{
	task->retry_at = at;
	jobs->free_at = sl_min_u64(jobs->free_at, at);
	sl_jobs_awake(jobs);
}

static void start_free(struct sl_jobs *jobs, struct sl_job *job, sl_ns now)
{
	for (uint32_t i = 0; i < job->row.task_count; i++) {
		struct sl_job_task *task = &job->tasks[i];

		if (task->phase != SL_PHASE_WAITING)
			continue;
		if (task->retry_at > now) {
			jobs->free_at = sl_min_u64(jobs->free_at, task->retry_at);
			continue;
		}
		task->gpu_mask =
			sl_jobs_project_gpus(jobs, job) &
			sl_inventory_usable(jobs->daemon,
				job->row.flags & SL_RUN_VISIBLE_SET ? job->row.visible
								    : NULL);
		sl_jobs_start(jobs, task);
	}
}

void sl_jobs_start_free(struct sl_jobs *jobs)
{
	sl_ns now = sl_clock_now();

	if (now < jobs->free_at)
		return;
	jobs->free_at = SL_NS_NEVER;
	sl_list_foreach (link, &jobs->all) {
		struct sl_job *job = SL_LIST_ENTRY(link, struct sl_job, link);

		if (job->hurries)
			sl_jobs_front_again(jobs, job);
		else if (job->is_free && job->stored && !job->over && !job->bound)
			start_free(jobs, job, now);
	}
}
