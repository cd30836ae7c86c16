/*
 * wire - rows, waits, stops and logs
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "daemon/jobs/internal.h"
#include "daemon/link/bundle.h"
#include "daemon/workloads/workload.h"

/* --- Finding the job. --- */

/* A `sluice run` is listed as a workload, unless the queue holds it. */
static bool is_listed(const struct sl_job *job)
{
	return !job->foreground || sl_jobs_front_is_listed(job);
}

static uint64_t number_of(const char *name)
{
	char *end = NULL;
	uint64_t id = 0;

	if (name[0] >= '0' && name[0] <= '9')
		id = strtoull(name, &end, 10);
	return end && !*end ? id : 0;
}

/* Finds a job by number; or by name: the caller's own before others', living before ended, then the
 * newest; or by the number that the name spells. */
static struct sl_job *pick(
	const struct sl_peer *peer, uint64_t id, const char *name, struct sl_error *text)
{
	const struct sl_jobs *jobs = peer->daemon->jobs;
	struct sl_job *found = id ? sl_jobs_find(jobs, id) : NULL;
	int best = -1;

	for (const struct sl_link *link = jobs->all.next; !id && link != &jobs->all;
		link = link->next) {
		struct sl_job *job =
			SL_CONTAINER_OF((struct sl_link *)link, struct sl_job, link);
		int rank = 2 * (job->row.uid == peer->uid) + !job->over;

		if (!is_listed(job))
			continue;
		if (strcmp(job->row.name, name) == 0 && rank >= best) {
			best = rank;
			found = job;
		}
	}
	if (!found && !id)
		found = sl_jobs_find(jobs, number_of(name));
	if (found)
		return found;
	if (id & SL_JOB_FOREGROUND)
		sl_error_set(text,
			"no workload %" PRIu64 " waits in the foreground any more; "
			"sluice ps shows those there are",
			id & ~(uint64_t)SL_JOB_FOREGROUND);
	else if (id)
		sl_error_set(text,
			"there is no job %" PRIu64 "; sluice ps --all shows those there "
			"are",
			id);
	else
		sl_error_set(text,
			"there is no job '%.64s'; sluice ps --all shows those there are",
			name);
	return NULL;
}

static void reply(struct sl_peer *peer, const struct sl_job *job, uint32_t processes,
	const char *text)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_JOB_REPLY);
	msg.job_reply.ok = !text[0];
	msg.job_reply.processes = processes;
	sl_wire_str(msg.job_reply.text, sizeof(msg.job_reply.text), text);
	if (job) {
		msg.job_reply.job = job->row.id;
		msg.job_reply.state = sl_jobs_state_of(job);
		msg.job_reply.exit_status = job->row.exit_status;
		if (msg.job_reply.ok && job->over)
			memcpy(msg.job_reply.text, job->row.why,
				sizeof(msg.job_reply.text));
		memcpy(msg.job_reply.name, job->row.name, sizeof(msg.job_reply.name));
	}
	sl_peer_send(peer, &msg);
}

static bool may_change(struct sl_peer *peer, const struct sl_job *job, const char *verb)
{
	if (peer->uid == 0 || peer->uid == geteuid() || peer->uid == job->row.uid)
		return true;
	sl_peer_reject(peer, SL_REJECT_DENIED,
		"job %s belongs to user %u; only that user, root and sluiced's own user "
		"may %s",
		job->row.name, job->row.uid, verb);
	return false;
}

/* --- Waiting. --- */

void sl_jobs_wait(struct sl_peer *peer, const struct sl_msg_job_wait *asked)
{
	struct sl_error text = {0};
	struct sl_job *job = pick(peer, asked->job, asked->name, &text);
	struct sl_jobs_wait *wait;

	if (job && job->foreground) {
		sl_error_set(&text,
			"%s is a `sluice run`: only whoever started it hears how it "
			"ends",
			job->row.name);
		job = NULL;
	}
	if (!job || job->over) {
		reply(peer, job, 0, text.text);
		return;
	}
	/* An unanswered wait costs memory as long as the job runs. */
	sl_list_foreach (link, &peer->daemon->jobs->waits) {
		if (SL_LIST_ENTRY(link, struct sl_jobs_wait, link)->peer != peer)
			continue;
		sl_peer_reject(
			peer, SL_REJECT_PROTOCOL, "JOB_WAIT while another one is open");
		return;
	}
	wait = calloc(1, sizeof(*wait));
	if (!wait) {
		sl_peer_reject(peer, SL_REJECT_FULL, "sluiced is out of memory");
		return;
	}
	wait->peer = peer;
	wait->job = job->row.id;
	sl_list_push_tail(&peer->daemon->jobs->waits, &wait->link);
}

void sl_jobs_tell_waits(struct sl_jobs *jobs, const struct sl_job *job)
{
	sl_list_foreach_safe (link, &jobs->waits) {
		struct sl_jobs_wait *wait =
			SL_LIST_ENTRY(link, struct sl_jobs_wait, link);

		if (wait->job != job->row.id)
			continue;
		sl_list_unlink(&wait->link);
		reply(wait->peer, job, 0, "");
		free(wait);
	}
}

void sl_jobs_peer_gone(struct sl_peer *peer)
{
	struct sl_jobs *jobs = peer->daemon->jobs;

	if (!jobs || !peer->control)
		return;
	sl_list_foreach_safe (link, &jobs->waits) {
		struct sl_jobs_wait *wait =
			SL_LIST_ENTRY(link, struct sl_jobs_wait, link);

		if (wait->peer != peer)
			continue;
		sl_list_unlink(&wait->link);
		free(wait);
	}
	sl_list_foreach (log, &jobs->logs) {
		struct sl_jobs_wait *wait = SL_LIST_ENTRY(log, struct sl_jobs_wait, link);

		if (wait->peer == peer)
			wait->peer = NULL;
	}
	/* Jobs that the peer submitted stay: they were accepted. Its foreground job does not. */
	sl_list_foreach (at, &jobs->all) {
		struct sl_job *job = SL_LIST_ENTRY(at, struct sl_job, link);

		if (job->submitter != peer)
			continue;
		job->submitter = NULL;
		if (job->foreground)
			sl_jobs_awake(jobs);
	}
}

/* --- Stopping. --- */

void sl_jobs_stop(struct sl_peer *peer, const struct sl_msg_job_stop *stop)
{
	struct sl_daemon *daemon = peer->daemon;
	struct sl_jobs *jobs = daemon->jobs;
	struct sl_error text = {0};
	struct sl_job *job = pick(peer, stop->job, stop->name, &text);
	sl_ns grace = stop->grace_ms == UINT32_MAX ? daemon->config.stop_grace
						   : (sl_ns)stop->grace_ms * SL_MS;
	char label[SL_JOBS_LABEL_MAX];
	uint32_t processes = 0;

	if (!job) {
		reply(peer, NULL, 0, text.text);
		return;
	}
	if (!may_change(peer, job, "stop it"))
		return;
	if (job->over) {
		sl_error_set(&text, "job %s has ended already", job->row.name);
		reply(peer, job, 0, text.text);
		return;
	}
	sl_info("stopping %s (%s) for process %d of user %u", sl_jobs_label(job, label),
		job->row.name, (int)peer->pid, (unsigned int)peer->uid);
	job->row.state = SL_JOB_STOPPING;
	for (uint32_t i = 0; i < job->row.task_count; i++) {
		struct sl_workload *workload =
			sl_map_get(&daemon->workloads, job->row.tasks[i].workload);

		/* For the event. */
		if (workload)
			workload->stop_asker = (uint64_t)peer->uid + 1;
	}
	for (uint32_t i = 0; i < job->row.task_count; i++)
		processes += sl_jobs_end_task(jobs, &job->tasks[i], grace, true);
	sl_jobs_check_end(jobs, job);
	/* A later daemon must go on with the stop, so the answer waits for the disk. */
	sl_jobs_hold_for(jobs, job, peer);
	reply(peer, job, processes, "");
}

/* --- Its output. --- */

static bool send_log(
	struct sl_peer *peer, const struct sl_job *job, uint32_t task, int fd)
{
	struct sl_bundle *bundle = sl_bundle_new(1, peer->uid, 0);
	union sl_msg msg;

	if (!bundle)
		return false;
	sl_bundle_add(bundle, &fd, 1);
	sl_wire_init(&msg, SL_MSG_JOB_LOG_FILE);
	msg.job_log_file.job = job->row.id;
	msg.job_log_file.task = task;
	msg.job_log_file.state = sl_jobs_state_of(job);
	sl_peer_send_fds(peer, &msg, bundle, 0, 1);
	(void)sl_bundle_unref(bundle);
	return true;
}

static void answer_log(const struct sl_jobs *jobs, struct sl_peer *peer,
	const struct sl_job *job, uint32_t task, int fd)
{
	struct sl_error text = {0};

	if (fd == -ENOENT)
		sl_error_set(&text,
			"task %u of job %s has not started yet; sluice why %s says why",
			task, job->row.name, job->row.name);
	else if (fd < 0)
		sl_error_set(&text, "the log in %.200s/%" PRIu64 " cannot be read: %s",
			jobs->folder, job->row.id, strerror(-fd));
	if (fd < 0) {
		reply(peer, job, 0, text.text);
	} else if (!send_log(peer, job, task, fd)) {
		(void)close(fd);
		reply(peer, job, 0, "sluiced is out of memory; try again");
	}
}

static void on_log(void *context, int r, const struct sl_error *err)
{
	struct sl_jobs_wait *wait = context;
	struct sl_jobs *jobs = wait->jobs;
	const struct sl_job *job = sl_jobs_find(jobs, wait->job);

	if (jobs->closes)
		return;
	if (wait->peer && job)
		answer_log(jobs, wait->peer, job, wait->task, sl_steal_fd(&wait->fd));
	else if (wait->peer)
		reply(wait->peer, NULL, 0, "the job was removed meanwhile");
	sl_closep(&wait->fd);
	sl_list_unlink(&wait->link);
	free(wait);
}

/* The store's thread opens it, as it may wait for the disk. */
static void ask_for_log(struct sl_jobs *jobs, struct sl_peer *peer,
	const struct sl_job *job, uint32_t task)
{
	struct sl_store_change *change;
	struct sl_jobs_wait *wait;

	/* Each costs a descriptor. */
	sl_list_foreach (link, &jobs->logs) {
		if (SL_LIST_ENTRY(link, struct sl_jobs_wait, link)->peer != peer)
			continue;
		sl_peer_reject(
			peer, SL_REJECT_PROTOCOL, "JOB_LOG while another one is open");
		return;
	}
	wait = calloc(1, sizeof(*wait));
	change = wait ? sl_store_change_new() : NULL;
	if (wait) {
		*wait = (struct sl_jobs_wait){.jobs = jobs,
			.peer = peer,
			.job = job->row.id,
			.task = task,
			.fd = -1};
		sl_list_init(&wait->link);
		sl_jobs_store_read_log(
			change, jobs->folder, job->row.id, task, &wait->fd);
	}
	if (sl_store_commit(jobs->daemon->store, change, on_log, wait) < 0) {
		free(wait);
		sl_peer_reject(peer, SL_REJECT_FULL, "sluiced is out of memory");
		return;
	}
	sl_list_push_tail(&jobs->logs, &wait->link);
}

void sl_jobs_log(struct sl_peer *peer, const struct sl_msg_job_log *log)
{
	struct sl_jobs *jobs = peer->daemon->jobs;
	struct sl_error text = {0};
	struct sl_job *job = pick(peer, log->job, log->name, &text);

	if (!job) {
		reply(peer, NULL, 0, text.text);
		return;
	}
	if (!may_change(peer, job, "read its output"))
		return;
	if (job->foreground) {
		sl_error_set(&text,
			"%s is a `sluice run`, and writes where it was started",
			job->row.name);
		reply(peer, job, 0, text.text);
		return;
	}
	if (log->task >= job->row.task_count) {
		sl_error_set(&text, "job %s has %u task%s, numbered from 0",
			job->row.name, job->row.task_count,
			job->row.task_count == 1 ? "" : "s");
		reply(peer, job, 0, text.text);
		return;
	}
	ask_for_log(jobs, peer, job, log->task);
}

/* --- Rows. --- */

/* Do some of its tasks wait while others run? */
static bool waits_in_part(const struct sl_job *job)
{
	for (uint32_t i = 0; i < job->row.task_count; i++) {
		if (job->tasks[i].phase == SL_PHASE_WAITING ||
			job->tasks[i].phase == SL_PHASE_PARKED)
			return true;
	}
	return false;
}

/* The job fitted when it was accepted: the lost GPUs would hold it. */
static bool say_lost(const struct sl_daemon *daemon, char *buf, size_t size)
{
	unsigned int lost = 0;

	for (uint32_t i = 0; i < daemon->gpu_count; i++)
		lost += daemon->gpus[i].managed && daemon->gpus[i].lost;
	if (lost)
		(void)snprintf(buf, size,
			"%u GPU%s here %s lost, and the others cannot hold it; it runs "
			"when %s back, or submitted anew if it asks for less",
			lost, lost == 1 ? "" : "s", lost == 1 ? "is" : "are",
			lost == 1 ? "that is" : "these are");
	return lost > 0;
}

const char *sl_jobs_why(
	const struct sl_jobs *jobs, const struct sl_job *job, char *buf, size_t size)
{
	struct sl_cluster_job_view view;
	const struct sl_pending_because *because = &job->refused;
	struct sl_pending_because now;
	enum sl_job_state state = sl_jobs_state_of(job);

	buf[0] = '\0';
	if (job->over || state == SL_JOB_STOPPING) {
		(void)snprintf(buf, size, "%s", job->row.why);
		return buf;
	}
	if (sl_jobs_alone_any(job)) {
		(void)snprintf(buf, size,
			"sluiced has lost what it knew of %s, and %s processes run on; "
			"it is over when they have ended",
			job->row.task_count > 1 ? "some tasks" : "it",
			job->row.task_count > 1 ? "their" : "its");
		return buf;
	}
	if (state == SL_JOB_RUNNING && !waits_in_part(job))
		return buf;
	if (!jobs->books.works) {
		(void)snprintf(buf, size, "%s", SL_JOBS_NO_GPU);
		return buf;
	}
	if (job->is_free) {
		if (job->node_said[0])
			(void)snprintf(
				buf, size, "%.200s; it is tried again", job->node_said);
		else if (job->bound && sl_jobs_bound_holds(jobs, job, &now))
			(void)sl_pending_text(
				&now, sl_jobs_project_name, jobs->daemon, buf, size);
		return buf;
	}
	view = sl_cluster_job(jobs->books.cluster, job->row.id);
	if (view.known)
		because = &view.because;
	/* With the numbers of now. */
	if ((job->bound || because->reason == SL_PENDING_BOUND) &&
		sl_jobs_bound_holds(jobs, job, &now))
		because = &now;
	if ((because->reason == SL_PENDING_NEVER ||
		    because->reason == SL_PENDING_GANG_NEVER) &&
		say_lost(jobs->daemon, buf, size))
		return buf;
	if (view.in[SL_TASK_PIPELINED])
		(void)snprintf(buf, size,
			"it has a place, and starts once what is stopped or moved for it "
			"is "
			"gone");
	else if (because->reason == SL_PENDING_BIND_REFUSED && job->node_said[0])
		(void)snprintf(buf, size,
			"there was a place for it, and then it could not start: %.250s; "
			"it is "
			"tried again after a while",
			job->node_said);
	else if (because->reason != SL_PENDING_NONE)
		(void)sl_pending_text(
			because, sl_jobs_project_name, jobs->daemon, buf, size);
	return buf;
}

static void count_tasks(const struct sl_job *job, struct sl_msg_job_row *row)
{
	for (uint32_t i = job->row.task_count; i-- > 0;) {
		uint64_t workload = job->row.tasks[i].workload;

		switch (job->tasks[i].phase) {
		case SL_PHASE_WAITING:
		case SL_PHASE_CHOSEN: row->queued++; break;
		case SL_PHASE_PARKED: row->parked++; break;
		case SL_PHASE_OVER: row->ended++; break;
		default: row->running++; break;
		}
		if (workload)
			row->workload = workload;
	}
}

bool sl_jobs_row_at(const struct sl_daemon *daemon, uint64_t *after, union sl_msg *msg)
{
	const struct sl_jobs *jobs = daemon->jobs;
	const struct sl_job *job = jobs ? sl_jobs_find(jobs, *after + 1) : NULL;
	const struct sl_jobs_row *from;
	struct sl_msg_job_row *row;

	if (job && !is_listed(job))
		job = NULL;
	for (struct sl_link *link = jobs ? jobs->all.next : NULL;
		jobs && !job && link != &jobs->all; link = link->next) {
		const struct sl_job *at = SL_LIST_ENTRY(link, struct sl_job, link);

		if (at->row.id > *after && is_listed(at))
			job = at;
	}
	if (!job)
		return false;
	*after = job->row.id;
	from = &job->row;
	sl_wire_init(msg, SL_MSG_JOB_ROW);
	row = &msg->job_row;
	row->job = from->id;
	row->state = sl_jobs_state_of(job);
	row->flags = from->flags;
	row->uid = from->uid;
	row->priority_biased =
		(uint32_t)((int64_t)from->priority + (int64_t)SL_PRIORITY_BIAS);
	row->tasks = from->task_count;
	row->least = from->least;
	row->gpu_count = from->gpu_count;
	row->exit_status = from->exit_status;
	row->started = from->started;
	row->retries = from->retries;
	row->submitted_ms = from->submitted_ms;
	row->started_ms = from->started_ms;
	row->ended_ms = from->ended_ms;
	row->request_kind = from->request.kind;
	row->request_value = from->request.value;
	row->limit_kind = from->limit.kind;
	row->limit_value = from->limit.value;
	memcpy(row->name, from->name, sizeof(row->name));
	memcpy(row->project, from->project, sizeof(row->project));
	memcpy(row->command, from->command, sizeof(row->command));
	(void)sl_jobs_why(jobs, job, row->why, sizeof(row->why));
	count_tasks(job, row);
	return true;
}

/* Counted with the first row, and sent with each. */
static uint64_t count_waiting(const struct sl_jobs *jobs)
{
	uint64_t waiting = 0;

	for (const struct sl_link *link = jobs->all.next; link != &jobs->all;
		link = link->next)
		waiting += sl_jobs_state_of(SL_CONTAINER_OF((struct sl_link *)link,
				   struct sl_job, link)) == SL_JOB_QUEUED;
	return waiting;
}

bool sl_jobs_queue_next(
	const struct sl_daemon *daemon, struct sl_peer_list *list, union sl_msg *msg)
{
	const struct sl_jobs *jobs = daemon->jobs;

	if (!jobs || list->place == SL_QUEUE_ROWS)
		return false;
	if (!list->place++)
		list->until = count_waiting(jobs);
	for (const struct sl_link *link = jobs->all.next; link != &jobs->all;
		link = link->next) {
		const struct sl_job *job =
			SL_CONTAINER_OF((struct sl_link *)link, struct sl_job, link);
		struct sl_msg_queue_row *row = &msg->queue_row;

		if (job->row.id <= list->workload ||
			sl_jobs_state_of(job) != SL_JOB_QUEUED)
			continue;
		list->workload = job->row.id;
		sl_wire_init(msg, SL_MSG_QUEUE_ROW);
		row->job = job->row.id;
		row->waiting = list->until;
		memcpy(row->name, job->row.name, sizeof(row->name));
		memcpy(row->project, job->row.project, sizeof(row->project));
		(void)sl_jobs_why(jobs, job, row->why, sizeof(row->why));
		return true;
	}
	return false;
}

void sl_jobs_part(const struct sl_daemon *daemon, struct sl_part *part)
{
	const struct sl_jobs *jobs = daemon->jobs;

	sl_wire_str(part->path, sizeof(part->path),
		sl_store_path(daemon->store, SL_KIND_JOB));
	for (const struct sl_link *link = jobs->all.next; link != &jobs->all;
		link = link->next) {
		const struct sl_job *job =
			SL_CONTAINER_OF((struct sl_link *)link, struct sl_job, link);

		/* A `sluice run` stores nothing there. */
		part->count += !job->over && !job->foreground;
	}
	if (jobs->unstored.text[0] || jobs->is_unread) {
		part->health = SL_HEALTH_BROKEN;
		part->text = jobs->unstored.text[0] ? jobs->unstored : jobs->unread;
	} else if (jobs->unread.text[0]) {
		part->health = SL_HEALTH_PARTLY;
		part->text = jobs->unread;
	}
}
