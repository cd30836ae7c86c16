/*
 * queue - see jobs/internal.h for the parts of this folder
 */
#include "daemon/jobs/jobs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "daemon/jobs/internal.h"
#include "daemon/link/share.h"
#include "daemon/state/timer.h"
#include "daemon/workloads/process.h"
#include "daemon/workloads/workload.h"

/* How often to check what no event tells. */
#define UNHEARD_NS (100 * SL_MS)
/* Handling one thing may cause the next; after so many rounds the loop has its turn. */
#define ROUNDS_MOST 16

uint64_t sl_jobs_now_ms(void)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

struct sl_workload *sl_jobs_workload_of(
	const struct sl_jobs *jobs, const struct sl_job_task *task)
{
	uint64_t id = task->job->row.tasks[task->number].workload;

	return id ? sl_map_get(&jobs->daemon->workloads, id) : NULL;
}

struct sl_job *sl_jobs_find(const struct sl_jobs *jobs, uint64_t id)
{
	return sl_map_get(&jobs->by_id, id);
}

const char *sl_jobs_label(const struct sl_job *job, char buf[SL_JOBS_LABEL_MAX])
{
	/* A foreground job is known by its workload's number. */
	if (job->foreground)
		(void)snprintf(buf, SL_JOBS_LABEL_MAX, "run %" PRIu64,
			job->row.id & ~(uint64_t)SL_JOB_FOREGROUND);
	else
		(void)snprintf(buf, SL_JOBS_LABEL_MAX, "job %" PRIu64, job->row.id);
	return buf;
}

bool sl_jobs_need_project(
	const struct sl_daemon *daemon, const char *project, struct sl_error *err)
{
	const struct sl_jobs *jobs = daemon->jobs;

	for (const struct sl_link *link = jobs ? jobs->all.next : NULL;
		jobs && link != &jobs->all; link = link->next) {
		const struct sl_job *job =
			SL_CONTAINER_OF((struct sl_link *)link, struct sl_job, link);

		if (job->over || strcmp(job->row.project, project) != 0)
			continue;
		sl_error_set(err,
			"project %s has jobs, %s for one; wait for their end, or stop "
			"them",
			project, job->row.name);
		return true;
	}
	return false;
}

/* --- Jobs. --- */

static void job_free(struct sl_job *job)
{
	sl_jobs_row_fini(&job->row);
	job->process = sl_process_put(job->process);
	free(job->tasks);
	free(job);
}

struct sl_job *sl_jobs_new_job(struct sl_jobs *jobs, struct sl_jobs_row *row)
{
	struct sl_job *job = calloc(1, sizeof(*job));
	struct sl_link *place = jobs->all.prev;

	if (job)
		job->tasks = calloc(row->task_count, sizeof(job->tasks[0]));
	if (!job || !job->tasks || sl_map_put(&jobs->by_id, row->id, job) < 0) {
		if (job)
			free(job->tasks);
		free(job);
		return NULL;
	}
	sl_list_init(&job->write);
	job->jobs = jobs;
	job->row = *row;
	*row = (struct sl_jobs_row){0};
	for (uint32_t i = 0; i < job->row.task_count; i++) {
		struct sl_job_task *task = &job->tasks[i];

		task->job = job;
		task->number = i;
		task->shim = (struct sl_shim){.pidfd = -1, .go_fd = -1};
		sl_list_init(&task->active);
	}
	while (place != &jobs->all &&
		SL_LIST_ENTRY(place, struct sl_job, link)->row.id > job->row.id)
		place = place->prev;
	sl_list_insert_before(place->next, &job->link);
	jobs->living++;
	jobs->tasks += job->row.task_count;
	jobs->bounded += job->row.workloads_most != 0;
	return job;
}

void sl_jobs_drop_job(struct sl_jobs *jobs, struct sl_job *job)
{
	if (!job->over) {
		jobs->living--;
		jobs->tasks -= job->row.task_count;
	}
	jobs->bounded -= job->row.workloads_most != 0;
	for (uint32_t i = 0; i < job->row.task_count; i++)
		sl_list_unlink(&job->tasks[i].active);
	(void)sl_map_take(&jobs->by_id, job->row.id);
	sl_list_unlink(&job->link);
	sl_list_unlink(&job->write);
	job_free(job);
}

void sl_jobs_awake(struct sl_jobs *jobs)
{
	jobs->awake = true;
}

void sl_jobs_phase(struct sl_job_task *task, enum sl_job_phase phase)
{
	task->phase = phase;
	task->deadline = 0;
	task->unheard = false;
	if (phase == SL_PHASE_WAITING || phase == SL_PHASE_OVER)
		sl_list_unlink(&task->active);
}

enum sl_job_state sl_jobs_state_of(const struct sl_job *job)
{
	bool runs = false, parked = false, asked = false;

	if (job->over)
		return (enum sl_job_state)job->row.state;
	for (uint32_t i = 0; i < job->row.task_count; i++) {
		switch (job->tasks[i].phase) {
		case SL_PHASE_STARTING:
		case SL_PHASE_RUNS:
		case SL_PHASE_PARKING:
		case SL_PHASE_RESUMING:
		case SL_PHASE_STOPPING: runs = true; break;
		case SL_PHASE_PARKED: parked = true; break;
		default: break;
		}
		asked |= job->tasks[i].asked;
	}
	if (job->row.state == SL_JOB_STOPPING)
		return SL_JOB_STOPPING;
	if (asked && runs && job->row.task_count == 1)
		return SL_JOB_STOPPING;
	return runs ? SL_JOB_RUNNING : parked ? SL_JOB_PARKED : SL_JOB_QUEUED;
}

void sl_jobs_numbers(const struct sl_daemon *daemon, uint64_t in[SL_JOB_STATES],
	uint64_t ended[SL_JOB_STATES])
{
	const struct sl_jobs *jobs = daemon->jobs;

	memset(in, 0, SL_JOB_STATES * sizeof(in[0]));
	memset(ended, 0, SL_JOB_STATES * sizeof(ended[0]));
	if (!jobs)
		return;
	memcpy(ended, jobs->ended, sizeof(jobs->ended));
	for (const struct sl_link *link = jobs->all.next; link != &jobs->all;
		link = link->next) {
		const struct sl_job *job =
			SL_CONTAINER_OF((struct sl_link *)link, struct sl_job, link);

		if (!job->foreground || sl_jobs_front_is_listed(job))
			in[sl_jobs_state_of(job)]++;
	}
}

/* --- Settling. --- */

static void look_at(struct sl_jobs *jobs, struct sl_job_task *task, sl_ns now)
{
	if (task->over_at && task->job->foreground) {
		sl_jobs_front_over(jobs, task);
		return;
	}
	if (task->over_at) {
		sl_jobs_task_over(jobs, task);
		return;
	}
	if (task->phase == SL_PHASE_PARKING && task->unheard)
		task->is_parked |= sl_jobs_has_left(jobs, task);
	if (task->is_parked && !task->moves)
		sl_jobs_task_parked(jobs, task);
	if (task->is_resumed)
		sl_jobs_task_resumed(jobs, task);
	if (task->phase == SL_PHASE_STARTING)
		sl_jobs_try_go(jobs, task);
	if (task->phase == SL_PHASE_STOPPING)
		sl_jobs_try_stop(jobs, task);
	if (task->phase == SL_PHASE_CHOSEN && task->job->stored)
		sl_jobs_start(jobs, task);
	if (task->deadline && now >= task->deadline)
		sl_jobs_task_late(jobs, task);
}

/* Handling one task may end others, so only the head of the list is relied on. */
void sl_jobs_look(struct sl_jobs *jobs, sl_ns now)
{
	struct sl_link looking;

	sl_list_init(&looking);
	while (!sl_list_is_empty(&jobs->active)) {
		struct sl_link *link = jobs->active.next;

		sl_list_unlink(link);
		sl_list_push_tail(&looking, link);
	}
	while (!sl_list_is_empty(&looking)) {
		struct sl_link *link = looking.next;

		sl_list_unlink(link);
		sl_list_push_tail(&jobs->active, link);
		look_at(jobs, SL_LIST_ENTRY(link, struct sl_job_task, active), now);
	}
}

void sl_jobs_look_now(struct sl_daemon *daemon)
{
	if (daemon->jobs)
		sl_jobs_look(daemon->jobs, sl_clock_now());
}

void sl_jobs_carry_out(struct sl_jobs *jobs)
{
	/* An action may be answered at once, and that may queue more. */
	for (size_t i = 0; i < jobs->todo_count; i++) {
		struct sl_cluster_action action = jobs->todo[i];

		if (action.type == SL_CLUSTER_ACTION_BIND)
			sl_jobs_on_bind(jobs, &action);
		else if (action.type == SL_CLUSTER_ACTION_STOP)
			sl_jobs_on_stop(jobs, &action);
	}
	jobs->todo_count = 0;
}

void sl_jobs_cycle(struct sl_jobs *jobs, uint32_t which)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_CYCLE};
	sl_ns now = sl_clock_now();

	jobs->look_at = SL_NS_NEVER;
	sl_jobs_measure(jobs);
	if (which == SL_CYCLE_ALL) {
		jobs->dirty = false;
		jobs->cycle_at = now + SL_JOBS_CYCLE_NS;
		if (now >= jobs->wake_at)
			jobs->wake_at = SL_NS_NEVER;
	}
	event.cycle.which = which;
	sl_jobs_tell(jobs, &event);
	sl_jobs_carry_out(jobs);
}

/* When new places may be chosen. What processes of an earlier daemon hold is unknown until they
 * report; before, a place could be promised where their contexts are. Like grants, new places wait
 * for these reports, up to recover_wait. */
static sl_ns choosing_at(const struct sl_jobs *jobs)
{
	const struct sl_daemon *daemon = jobs->daemon;

	return daemon->expected_count ? daemon->started + daemon->config.recover_wait : 0;
}

bool sl_jobs_may_choose(const struct sl_jobs *jobs)
{
	return sl_clock_now() >= choosing_at(jobs);
}

/* When the next cycle is due. */
static sl_ns cycle_due(const struct sl_jobs *jobs)
{
	sl_ns at =
		jobs->dirty ? sl_min_u64(jobs->wake_at, jobs->cycle_at) : jobs->wake_at;

	at = sl_min_u64(at, jobs->look_at);
	return sl_max_u64(at, choosing_at(jobs));
}

static void arm(struct sl_jobs *jobs)
{
	sl_ns at = sl_min_u64(cycle_due(jobs), jobs->free_at);

	at = sl_min_u64(at, jobs->tell_at);
	at = sl_min_u64(at, sl_jobs_moves_due(jobs));
	at = sl_min_u64(at, jobs->guests.look_at);
	if (jobs->unwritten && jobs->write_at > sl_clock_now())
		at = sl_min_u64(at, jobs->write_at);
	/* More than fitted into one turn of the loop. */
	if (jobs->awake)
		at = 0;
	sl_list_foreach (link, &jobs->active) {
		const struct sl_job_task *task =
			SL_LIST_ENTRY(link, struct sl_job_task, active);

		if (task->deadline)
			at = sl_min_u64(at, task->deadline);
		if (task->phase == SL_PHASE_PARKING && task->unheard)
			at = sl_min_u64(at, sl_clock_now() + UNHEARD_NS);
		at = sl_min_u64(at, sl_jobs_trim_due(jobs, task));
	}
	sl_timer_set(jobs->timer, at);
}

/* Only once a cycle has judged the jobs. */
static void answer_submitters(struct sl_jobs *jobs)
{
	if (jobs->dirty)
		return;
	sl_list_foreach (link, &jobs->all) {
		struct sl_job *job = SL_LIST_ENTRY(link, struct sl_job, link);

		if (job->reply_due)
			sl_jobs_reply_submit(jobs, job);
	}
}

void sl_jobs_settle(struct sl_daemon *daemon)
{
	struct sl_jobs *jobs = daemon->jobs;

	if (jobs && !sl_list_is_empty(&jobs->moving))
		sl_jobs_look_at_moves(jobs);
	if (!jobs || (!jobs->awake && (!jobs->unwritten || jobs->writes)))
		return;
	for (int round = 0; round < ROUNDS_MOST && jobs->awake; round++) {
		sl_ns now = sl_clock_now();

		jobs->awake = jobs->listens = false;
		sl_jobs_look(jobs, now);
		sl_jobs_look_at_bounds(jobs);
		sl_jobs_guests_look(jobs);
		if (jobs->gpus_changed)
			sl_jobs_follow_gpus(jobs);
		sl_jobs_start_free(jobs);
		if (now < cycle_due(jobs))
			continue;
		sl_jobs_cycle(jobs, SL_CYCLE_ALL);
		sl_jobs_front_after_cycle(jobs);
	}
	answer_submitters(jobs);
	sl_jobs_front_settle(jobs);
	if (jobs->forget)
		sl_jobs_forget_old(jobs);
	sl_jobs_write(jobs);
	sl_jobs_trim(jobs, sl_clock_now());
	arm(jobs);
}

static int on_time(sd_event_source *source, uint64_t usec, void *context)
{
	struct sl_daemon *daemon = context;

	sl_jobs_awake(daemon->jobs);
	daemon->up->settle(daemon);
	return 0;
}

/* --- Start and end. --- */

int sl_jobs_open(struct sl_daemon *daemon, struct sl_error *err)
{
	struct sl_jobs *jobs = calloc(1, sizeof(*jobs));
	int r;

	if (!jobs)
		return sl_err_origin(-ENOMEM);
	jobs->daemon = daemon;
	jobs->wake_at = jobs->look_at = jobs->free_at = jobs->tell_at = SL_NS_NEVER;
	jobs->ticket = 1;
	/* An earlier daemon may have sent a guest home. */
	jobs->guests.spread_from = sl_clock_now() + SL_JOBS_PARK_NS;
	sl_list_init(&jobs->all);
	sl_list_init(&jobs->active);
	sl_list_init(&jobs->waits);
	sl_list_init(&jobs->logs);
	sl_list_init(&jobs->moving);
	sl_list_init(&jobs->held);
	sl_list_init(&jobs->unsaved);
	sl_list_init(&jobs->saving);
	(void)snprintf(jobs->folder, sizeof(jobs->folder), "%s/jobs", daemon->data_dir);
	daemon->jobs = jobs;
	r = sl_timer_new(daemon, SL_PRIORITY_TIMER, on_time, &jobs->timer);
	if (r < 0) {
		sl_error_set(err, "cannot keep jobs in %.200s: %s", jobs->folder,
			strerror(-r));
		return r;
	}
	sl_jobs_recover(jobs);
	sl_jobs_front_recover(jobs);
	sl_jobs_books_open(jobs);
	/* Jobs whose tasks are all over need only their end told. */
	sl_list_foreach_safe (link, &jobs->all) {
		sl_jobs_check_end(jobs, SL_LIST_ENTRY(link, struct sl_job, link));
	}
	jobs->forget = true;
	return 0;
}

void sl_jobs_close(struct sl_daemon *daemon)
{
	struct sl_jobs *jobs = daemon->jobs;

	if (!jobs)
		return;
	sl_jobs_write_last(jobs);
	jobs->timer = sd_event_source_disable_unref(jobs->timer);
	sl_list_foreach_safe (link, &jobs->waits) {
		sl_list_unlink(link);
		free(SL_LIST_ENTRY(link, struct sl_jobs_wait, link));
	}
	sl_list_foreach_safe (link, &jobs->logs) {
		struct sl_jobs_wait *wait =
			SL_LIST_ENTRY(link, struct sl_jobs_wait, link);

		sl_list_unlink(link);
		sl_closep(&wait->fd);
		free(wait);
	}
	/* Peers outlive the jobs. */
	sl_jobs_let_go(jobs);
	while (!sl_list_is_empty(&jobs->all)) {
		struct sl_job *job = SL_LIST_ENTRY(jobs->all.next, struct sl_job, link);

		/* Tasks without their go are dropped: the next daemon starts them anew. */
		for (uint32_t i = 0; i < job->row.task_count; i++) {
			if (job->tasks[i].phase == SL_PHASE_STARTING)
				sl_shim_forget(&job->tasks[i].shim);
		}
		sl_jobs_drop_job(jobs, job);
	}
	jobs->books.arena = sl_arena_free(jobs->books.arena);
	sl_map_fini(&jobs->by_id);
	free(jobs);
	daemon->jobs = NULL;
}
