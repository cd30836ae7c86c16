/*
 * front - RUN: a foreground job of one task, whose program is the process that asks
 *
 * The daemon neither stores nor starts the job: the process becomes the program once RUN is
 * answered, and its end is the job's end. All that a later daemon needs is in the journal, with the
 * workload.
 *
 * The cluster machine judges the rules (limits and quotas of the job's project, GPUs of its pools,
 * places kept for others). The node judges whether the job fits, because it sees bytes where the
 * machine counts GPUs. So a RUN within the rules is proposed to the node at once and, if the node
 * accepts, told to the machine as a fact. Where places are kept for others, the machine must find
 * one, in a cycle that stops no other job.
 *
 * A RUN that cannot start is refused, or waits (SL_RUN_WAIT) in the machine's queue like any job,
 * and others are parked for it. If the machine refuses it while GPUs are lost, it waits outside
 * until GPUs change.
 *
 * A running foreground job may be parked for others, and resumes by itself. It is never stopped for
 * them, because the daemon could not start it again. If it cannot be parked, it counts as not
 * preemptible.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/step.h"
#include "daemon/core/fields.h"
#include "daemon/gpu/groups.h"
#include "daemon/gpu/inventory.h"
#include "daemon/jobs/internal.h"
#include "daemon/report/events.h"
#include "daemon/state/commit.h"
#include "daemon/swap/hostpool.h"
#include "daemon/workloads/park.h"
#include "daemon/workloads/process.h"
#include "daemon/workloads/refusal.h"
#include "daemon/workloads/workload.h"

/* Least time between two messages about what it waits for. */
#define TELL_NS (3 * SL_S)

/* Why it cannot start now. */
struct no {
	struct sl_error text;
	uint32_t reason; /* the node's, if the node refused it */
	bool passes;     /* other workloads are in its way, and may end */
	bool later;      /* places are kept; the machine may find another one */
	bool is_fixed; /* rules are in its way, which only an administrator can change */
};

static uint32_t usable_by(const struct sl_jobs *jobs, const struct sl_job *job)
{
	return sl_inventory_usable(jobs->daemon,
		job->row.flags & SL_RUN_VISIBLE_SET ? job->row.visible : NULL);
}

static uint32_t count_of(uint32_t gpus)
{
	return (uint32_t)__builtin_popcount(gpus);
}

void sl_jobs_answer_run(struct sl_peer *peer, const struct sl_workload *workload,
	uint32_t reason, const char *text)
{
	const struct sl_daemon *daemon = peer->daemon;
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_RUN_REPLY);
	msg.run_reply.ok = workload != NULL;
	msg.run_reply.reason = reason;
	sl_wire_str(msg.run_reply.text, sizeof(msg.run_reply.text), text);
	if (workload) {
		msg.run_reply.workload = workload->id;
		memcpy(msg.run_reply.token, workload->token, sizeof(msg.run_reply.token));
		msg.run_reply.request_bytes = workload->request_bytes;
		msg.run_reply.limit_bytes = workload->limit_bytes;
		sl_wire_str(
			msg.run_reply.name, sizeof(msg.run_reply.name), workload->name);
		sl_workload_visible(daemon, workload, msg.run_reply.visible_out,
			sizeof(msg.run_reply.visible_out));
	}
	sl_peer_send(peer, &msg);
}

/* --- Rules. --- */

static bool rules_allow(struct sl_jobs *jobs, const struct sl_job *job, struct no *no)
{
	struct sl_pending_because because;

	if (sl_jobs_rules_allow(jobs, job, &because, &no->text))
		return true;
	no->passes = true;
	no->is_fixed = because.reason == SL_PENDING_OVER_LIMIT ||
		       because.reason == SL_PENDING_OVER_QUOTA;
	no->reason = SL_REASON_NONE;
	return false;
}

uint32_t sl_jobs_kept_gpus(struct sl_jobs *jobs)
{
	uint32_t gpus = 0;

	sl_list_foreach (link, &jobs->active) {
		const struct sl_job_task *task =
			SL_LIST_ENTRY(link, struct sl_job_task, active);

		if (task->phase == SL_PHASE_CHOSEN || task->phase == SL_PHASE_RESUMING)
			gpus |= sl_jobs_gpus_at(&jobs->books, task->node, task->gpu_mask);
	}
	if (!jobs->promises)
		return gpus;
	jobs->promises = false;
	sl_list_foreach (at, &jobs->all) {
		const struct sl_job *job = SL_LIST_ENTRY(at, struct sl_job, link);
		struct sl_cluster_job_view view;

		if (!job->counted)
			continue;
		view = sl_cluster_job(jobs->books.cluster, job->row.id);
		for (uint32_t i = 0;
			(view.in[SL_TASK_PIPELINED] || view.in[SL_TASK_RELEASING]) &&
			i < job->row.task_count;
			i++) {
			struct sl_cluster_task_view task =
				sl_cluster_task(jobs->books.cluster, job->row.id, i);

			if (task.state == SL_TASK_PIPELINED)
				gpus |= sl_jobs_gpus_at(
					&jobs->books, task.node, task.place.gpu_mask);
			else if (task.moves)
				gpus |= sl_jobs_gpus_at(
					&jobs->books, task.next_node, task.next.gpu_mask);
			else
				continue;
			jobs->promises = true;
		}
	}
	return gpus;
}

/* --- It starts. --- */

static void waits_no_more(struct sl_jobs *jobs, struct sl_job *job)
{
	jobs->front_waits -= job->waits;
	job->waits = job->early = job->hurries = false;
}

/* The ledger has admitted the workload. */
static void begin(
	struct sl_jobs *jobs, struct sl_job_task *task, struct sl_workload *workload)
{
	struct sl_daemon *daemon = jobs->daemon;
	struct sl_job *job = task->job;
	struct sl_peer *peer = job->submitter;
	struct sl_error remark = {0};

	waits_no_more(jobs, job);
	job->submitter = NULL;
	job->node_said[0] = '\0';
	job->row.tasks[0].workload = workload->id;
	sl_jobs_note_begun(task, sl_jobs_now_ms());
	sl_jobs_phase(task, SL_PHASE_RUNS);
	if (!sl_list_is_linked(&task->active))
		sl_list_push_tail(&jobs->active, &task->active);
	/* A job without request is in the node's books only. */
	workload->task = job->is_free ? NULL : task;
	sl_workload_set_root(workload, sl_steal(&job->process));
	if (sl_peer_may_log(daemon, SL_LOG_INFO))
		sl_info("workload %" PRIu64 " (%s) of user %u, process %d", workload->id,
			workload->name, (unsigned int)peer->uid, (int)peer->pid);
	sl_step(D_RUN_ADMITTED);
	sl_events_add_of(daemon,
		&(struct sl_node_because){
			.reason = SL_REASON_STARTED, .workload = workload->id},
		peer->pid);
	sl_peer_hold(peer);
	sl_commit_soon(daemon);
	sl_refusal_add_cut(workload, &remark);
	sl_jobs_answer_run(peer, workload, SL_REASON_NONE, remark.text);
}

static void tell_refused(struct sl_daemon *daemon, const struct sl_workload *workload)
{
	const struct sl_admission *said = &daemon->admission;

	sl_events_add(daemon, &(struct sl_node_because){.reason = said->reason,
				      .gpu = said->gpu,
				      .workload = workload->id,
				      .bytes = said->wanted_bytes,
				      .available_bytes = said->available_bytes,
				      .other_bytes = (uint64_t)workload->uid + 1});
}

/* May more GPUs appear? Some are lost, or NVML has not listed them yet. */
static bool gpus_may_come(const struct sl_daemon *daemon)
{
	bool lost = false;

	for (uint32_t i = 0; i < daemon->gpu_count; i++)
		lost |= daemon->gpus[i].managed && daemon->gpus[i].lost;
	return lost || !daemon->nvml_ok;
}

/* May the node's refusal pass: other workloads may end, or GPUs may appear? */
static bool may_pass(const struct sl_daemon *daemon, uint32_t reason)
{
	return (reason == SL_REASON_TOO_FEW_GPUS && gpus_may_come(daemon)) ||
	       reason == SL_REASON_REQUESTS_TAKEN || reason == SL_REASON_COMPUTE_TAKEN ||
	       reason == SL_REASON_DEGRADED || reason == SL_REASON_CONTEXTS_FULL ||
	       reason == SL_REASON_BOUND_WORKLOADS;
}

/* Proposes it to the node on some of these GPUs. loud: a refusal is an event. */
static struct sl_workload *propose(
	struct sl_jobs *jobs, struct sl_job *job, uint32_t gpus, bool loud, struct no *no)
{
	struct sl_daemon *daemon = jobs->daemon;
	bool took, masked = job->row.flags & SL_RUN_VISIBLE_SET;
	struct sl_workload *workload = sl_jobs_propose(jobs, &job->tasks[0], gpus, &took);

	if (took)
		return workload;
	*no = (struct no){0};
	if (!workload) {
		sl_error_set(&no->text, "sluiced is out of memory; try again");
		return NULL;
	}
	no->reason = daemon->admission.reason;
	no->passes = may_pass(daemon, no->reason);
	sl_refusal_text(daemon, workload, job->row.gpu_count, gpus, masked, &no->text);
	sl_wire_str(job->node_said, sizeof(job->node_said), no->text.text);
	if (loud)
		tell_refused(daemon, workload);
	sl_workload_discard(daemon, workload);
	return NULL;
}

/* The GPUs that it may use; false: its project has too few. */
static bool find_gpus(
	struct sl_jobs *jobs, const struct sl_job *job, uint32_t *gpus, struct no *no)
{
	uint32_t usable = usable_by(jobs, job), need = job->row.gpu_count;

	*gpus = usable & sl_jobs_project_gpus(jobs, job);
	if (count_of(*gpus) >= need || count_of(usable) < need)
		return true;
	*no = (struct no){.passes = gpus_may_come(jobs->daemon)};
	sl_error_set(&no->text,
		"%u GPU%s wanted, and project %.64s may use %u of those that are there; "
		"name another --project, or lower --gpus",
		need, need == 1 ? "" : "s", job->row.project, count_of(*gpus));
	return false;
}

/* A job that the node could never admit need not wait for rules to change: *no then says so. */
static void look_behind_rules(struct sl_jobs *jobs, struct sl_job *job, struct no *no)
{
	struct no never = {0};
	struct sl_workload *workload;
	uint32_t gpus;

	if (find_gpus(jobs, job, &gpus, &never)) {
		workload = propose(jobs, job, gpus, false, &never);
		job->node_said[0] = '\0';
		if (workload)
			sl_workload_dismiss(jobs->daemon, workload);
		if (workload)
			return;
	}
	if (!never.passes)
		*no = never;
}

/* Starts it where the node chooses, if rules allow. */
static bool start_here(
	struct sl_jobs *jobs, struct sl_job *job, uint32_t kept, bool loud, struct no *no)
{
	uint32_t gpus, need = job->row.gpu_count;
	struct sl_workload *workload;

	if (!find_gpus(jobs, job, &gpus, no))
		return false;
	if (!job->is_free) {
		if (kept && count_of(gpus & ~kept) < need && count_of(gpus) >= need) {
			no->passes = true;
			sl_error_set(&no->text, "the GPUs that it may use are kept for "
						"others that are about to start there");
			return false;
		}
		gpus &= ~kept;
	}
	workload = propose(jobs, job, gpus, loud, no);
	if (!workload)
		return false;
	begin(jobs, &job->tasks[0], workload);
	if (!job->is_free)
		sl_jobs_put_job(jobs, job);
	return true;
}

bool sl_jobs_front_start(struct sl_jobs *jobs, struct sl_job_task *task, uint32_t gpus)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_TASK_RUNS};
	struct sl_job *job = task->job;
	struct sl_workload *workload;
	struct no no = {0};

	/* It is about to be forgotten. */
	if (!job->submitter || !job->process || job->process->dead)
		return false;
	workload = propose(jobs, job, gpus, false, &no);
	if (!workload)
		return false;
	begin(jobs, task, workload);
	event.task_runs.job = job->row.id;
	event.task_runs.task = task->number;
	sl_jobs_tell(jobs, &event);
	return true;
}

/* --- It waits. --- */

static bool enqueue(struct sl_jobs *jobs, struct sl_job *job)
{
	job->stored = true;
	return sl_jobs_count(jobs, job);
}

/* Can it never run, by the machine's word? */
static bool is_never(const struct sl_jobs *jobs, const struct sl_job *job)
{
	return jobs->books.works && !job->counted && !gpus_may_come(jobs->daemon);
}

static struct no never(const struct sl_jobs *jobs, const struct sl_job *job)
{
	char text[SL_FORECAST_MAX];
	struct no no = {0};

	sl_error_set(&no.text, "%s",
		sl_pending_text(&job->refused, sl_jobs_project_name, jobs->daemon, text,
			sizeof(text)));
	return no;
}

static bool wait_for_it(struct sl_jobs *jobs, struct sl_job *job, struct no *no)
{
	if (jobs->living > SL_JOBS_MOST) {
		sl_error_set(&no->text,
			"the queue is full: %u jobs wait or run, of at most %d; wait for "
			"some to end, or stop some (sluice ps)",
			jobs->living, SL_JOBS_MOST);
		no->passes = false;
		return false;
	}
	if (!job->counted && !enqueue(jobs, job) && is_never(jobs, job)) {
		*no = never(jobs, job);
		return false;
	}
	job->waits = true;
	jobs->front_waits++;
	sl_info("job %s of user %u waits: %s", job->row.name, job->row.uid,
		no->text.text);
	jobs->dirty = true;
	sl_jobs_awake(jobs);
	return true;
}

/* The job cannot start any more: GPUs or projects have changed. */
static void give_up(struct sl_jobs *jobs, struct sl_job *job)
{
	struct sl_peer *peer = job->submitter;
	struct no no = never(jobs, job);

	sl_info("job %s of user %u does not wait any more: %s", job->row.name,
		job->row.uid, no.text.text);
	job->submitter = NULL;
	sl_jobs_answer_run(peer, NULL, SL_REASON_NONE, no.text.text);
	/* The job has only lost its submitter. Settling frees it, because a caller may be walking
	 * the list. */
	sl_jobs_awake(jobs);
}

void sl_jobs_front_again(struct sl_jobs *jobs, struct sl_job *job)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_BIND_AGAIN};

	job->hurries = false;
	event.bind_again.job = job->row.id;
	sl_jobs_tell(jobs, &event);
	jobs->dirty = true;
}

void sl_jobs_front_hurry(struct sl_jobs *jobs)
{
	if (!jobs->front_waits)
		return;
	sl_list_foreach (link, &jobs->all) {
		struct sl_job *job = SL_LIST_ENTRY(link, struct sl_job, link);

		if (!job->waits)
			continue;
		job->hurries = job->counted;
		jobs->free_at = 0;
		sl_jobs_awake(jobs);
	}
}

/* 0: no cycle has judged it yet. */
static uint32_t waits_for(const struct sl_jobs *jobs, const struct sl_job *job)
{
	struct sl_cluster_job_view view =
		sl_cluster_job(jobs->books.cluster, job->row.id);

	if (view.in[SL_TASK_PIPELINED])
		return SL_PENDING_PROMISED;
	return view.known ? view.because.reason : job->refused.reason;
}

static void tell_why(struct sl_jobs *jobs, struct sl_job *job, sl_ns now)
{
	uint32_t what = waits_for(jobs, job);
	char text[1024];
	union sl_msg msg;

	if (!what || what == job->told)
		return;
	if (job->told && now < job->told_at + TELL_NS) {
		jobs->tell_at = sl_min_u64(jobs->tell_at, job->told_at + TELL_NS);
		return;
	}
	job->told = what;
	job->told_at = now;
	sl_wire_init(&msg, SL_MSG_RUN_WAITS);
	msg.run_waits.job = job->row.id;
	memcpy(msg.run_waits.name, job->row.name, sizeof(msg.run_waits.name));
	sl_wire_str(msg.run_waits.text, sizeof(msg.run_waits.text),
		sl_jobs_why(jobs, job, text, sizeof(text)));
	sl_peer_send(job->submitter, &msg);
}

void sl_jobs_front_settle(struct sl_jobs *jobs)
{
	sl_ns now = sl_clock_now();

	jobs->tell_at = SL_NS_NEVER;
	if (!jobs->front_waits)
		return;
	sl_list_foreach_safe (link, &jobs->all) {
		struct sl_job *job = SL_LIST_ENTRY(link, struct sl_job, link);

		if (!job->waits || job->over)
			continue;
		if (!job->submitter || job->process->dead) {
			sl_jobs_cancel(jobs, &job->tasks[0]);
			sl_jobs_check_end(jobs, job);
		} else if (!job->early && is_never(jobs, job)) {
			give_up(jobs, job);
		} else if (!job->early && !jobs->dirty) {
			tell_why(jobs, job, now);
		}
	}
}

void sl_jobs_front_ended(struct sl_jobs *jobs, struct sl_job *job)
{
	struct sl_peer *peer = job->submitter;

	if (!job->waits)
		return;
	waits_no_more(jobs, job);
	sl_info("job %s of user %u does not wait any more", job->row.name, job->row.uid);
	job->submitter = NULL;
	if (peer)
		sl_jobs_answer_run(peer, NULL, SL_REASON_STOP_ASKED,
			"somebody asked for its end while it waited (sluice stop)");
}

bool sl_jobs_front_is_listed(const struct sl_job *job)
{
	enum sl_job_phase phase = job->tasks[0].phase;

	return !job->over && (phase == SL_PHASE_WAITING || phase == SL_PHASE_CHOSEN ||
				     phase == SL_PHASE_PARKED);
}

/* --- RUN. --- */

bool sl_jobs_run_waits(const struct sl_peer *peer)
{
	const struct sl_jobs *jobs = peer->daemon->jobs;

	if (!jobs->front_waits)
		return false;
	sl_list_foreach (link, &jobs->all) {
		const struct sl_job *job = SL_LIST_ENTRY(link, struct sl_job, link);

		if (job->waits && job->submitter == peer)
			return true;
	}
	return false;
}

static void fill_row(struct sl_jobs *jobs, const struct sl_peer *peer,
	const struct sl_msg_run *run, struct sl_jobs_row *row)
{
	uint64_t workload = jobs->daemon->next_workload++;

	*row = (struct sl_jobs_row){.id = workload | SL_JOB_FOREGROUND,
		.uid = peer->uid,
		.request = {.kind = run->request_kind, .value = run->request_value},
		.limit = {.kind = run->limit_kind, .value = run->limit_value},
		.gpu_count = run->gpu_count,
		.flags = run->flags & (SL_RUN_ALL | SL_RUN_OBSERVE | SL_RUN_CHAIN |
					      SL_SUBMIT_NEVER_WARM |
					      SL_SUBMIT_NEVER_DETACH | SL_SUBMIT_GRACE),
		.task_count = 1,
		.least = 1,
		.priority = (int32_t)((int64_t)run->priority_biased -
				      (int64_t)SL_PRIORITY_BIAS),
		.wait_max = (sl_ns)run->longest_wait_ms * SL_MS,
		.warm_after = run->warm_after_ms * SL_MS,
		.detach_after = run->detach_after_ms * SL_MS,
		.idle_grace = run->idle_grace_ms * SL_MS,
		.compute_request_pm = run->compute_request_pm,
		.compute_limit_pm = run->compute_limit_pm,
		.state = SL_JOB_QUEUED,
		.submitted_ms = sl_jobs_now_ms()};
	memcpy(row->project, run->project, sizeof(row->project));
	memcpy(row->command, run->command, sizeof(row->command));
	memcpy(row->visible, run->visible, sizeof(row->visible));
	memcpy(row->name, run->name, sizeof(row->name));
	sl_field_tame(row->command);
	if (!row->name[0])
		sl_field_make_name(row->command, "", workload, row->name);
}

/* Takes what the row owns, also if memory runs out. */
static struct sl_job *new_job(struct sl_jobs *jobs, struct sl_jobs_row *row)
{
	struct sl_job *job;

	row->tasks = calloc(1, sizeof(row->tasks[0]));
	job = row->tasks ? sl_jobs_new_job(jobs, row) : NULL;
	if (!job) {
		sl_jobs_row_fini(row);
		return NULL;
	}
	job->foreground = true;
	sl_jobs_set_need(jobs, job);
	return job;
}

void sl_jobs_front_set_flags(const struct sl_jobs *jobs, struct sl_job *job)
{
	uint32_t gpus = sl_jobs_project_gpus(jobs, job);
	bool parks = !(job->row.flags & (SL_RUN_NO_SWAP | SL_RUN_RDMA)) &&
		     sl_hostpool_swap_is_on(jobs->daemon) &&
		     (!gpus || sl_groups_fixed(jobs->daemon, gpus) != gpus);

	job->row.flags &= ~SL_SUBMIT_PREEMPTIBLE;
	job->row.flags |= parks ? SL_SUBMIT_PREEMPTIBLE : 0;
}

/* no->later: the machine must say where it may go. */
static bool start_now(struct sl_jobs *jobs, struct sl_job *job, struct no *no)
{
	bool loud = !job->patient;
	uint32_t kept;

	if (job->is_free)
		return start_here(jobs, job, 0, loud, no);
	if (!rules_allow(jobs, job, no)) {
		look_behind_rules(jobs, job, no);
		return false;
	}
	kept = sl_jobs_kept_gpus(jobs);
	if (start_here(jobs, job, kept, loud && !kept, no))
		return true;
	no->later = kept && no->passes;
	return false;
}

static void say_more(struct no *no, const char *text)
{
	size_t used = strlen(no->text.text);

	(void)snprintf(no->text.text + used, sizeof(no->text.text) - used, "%s", text);
}

/* Adds what --wait would lead to, where others would have to be stopped. */
static bool add_hope(struct sl_jobs *jobs, const struct sl_job *job, struct no *no)
{
	struct sl_cluster_event add = sl_jobs_add_event(jobs, job);
	struct sl_cluster_forecast forecast;
	char text[SL_FORECAST_MAX];

	if (job->is_free || !no->passes)
		return false;
	forecast = sl_cluster_forecast(jobs->books.cluster, sl_clock_now(), &add);
	if (forecast.fate != SL_FORECAST_TAKES)
		return false;
	(void)sl_forecast_text(
		&forecast, sl_jobs_project_name, jobs->daemon, text, sizeof(text));
	/* The first sentence only. */
	if (strstr(text, ". "))
		*strstr(text, ". ") = '\0';
	say_more(no, "; with --wait ");
	say_more(no, text);
	return true;
}

static void refuse(
	struct sl_jobs *jobs, struct sl_peer *peer, struct sl_job *job, struct no *no)
{
	if (sl_peer_may_log(jobs->daemon, SL_LOG_INFO))
		sl_info("refused %s of user %u: %s", job->row.name,
			(unsigned int)peer->uid, no->text.text);
	sl_jobs_take_job(jobs, job);
	if (job->patient && job->is_free && no->passes)
		say_more(no,
			"; --wait waits for what a --request asks for, and sluice submit "
			"waits without one, too");
	/* Texts of the node get their remedy from the program that prints them. */
	else if (!add_hope(jobs, job, no) && no->passes && !no->is_fixed &&
		 no->reason == SL_REASON_NONE)
		say_more(no, "; --wait waits for that, and sluice submit queues it");
	sl_jobs_drop_job(jobs, job);
	sl_jobs_answer_run(peer, NULL, no->reason, no->text.text);
}

static void does_not_start(struct sl_jobs *jobs, struct sl_job *job, struct no *no)
{
	if (!job->patient || !no->passes || job->is_free || !wait_for_it(jobs, job, no))
		refuse(jobs, job->submitter, job, no);
}

/*
 * Earlier jobs go first, so the RUN waits for the next regular cycle. It starts no cycle of its
 * own: a loop of RUNs would cause one each, and right after the daemon's start a cycle would choose
 * places before the GPUs' use is known.
 */
static void let_others_first(struct sl_jobs *jobs, struct sl_job *job)
{
	job->waits = job->early = true;
	jobs->front_waits++;
	jobs->dirty = true;
	sl_jobs_awake(jobs);
}

/* The machine has found no place for it beside those that it keeps. */
static void finds_no_place(struct sl_jobs *jobs, struct sl_job *job)
{
	struct sl_cluster_job_view view =
		sl_cluster_job(jobs->books.cluster, job->row.id);
	struct no no = {.passes = true};
	char text[SL_FORECAST_MAX];

	waits_no_more(jobs, job);
	sl_error_set(&no.text, "%s",
		sl_pending_text(&view.because, sl_jobs_project_name, jobs->daemon, text,
			sizeof(text)));
	does_not_start(jobs, job, &no);
}

/* A job whose process is gone is forgotten soon. */
static bool is_next(const struct sl_job *job)
{
	return job->early && !job->over && job->submitter && !job->process->dead;
}

/* Where places are kept for others, the machine says where a job may go; it stops nothing for this
 * job. */
void sl_jobs_front_after_cycle(struct sl_jobs *jobs)
{
	bool asked = false;

	if (!jobs->front_waits)
		return;
	sl_list_foreach_safe (link, &jobs->all) {
		struct sl_job *job = SL_LIST_ENTRY(link, struct sl_job, link);
		struct no no = {0};

		if (!is_next(job) || start_now(jobs, job, &no))
			continue;
		if (no.later && enqueue(jobs, job)) {
			asked = true;
			continue;
		}
		waits_no_more(jobs, job);
		does_not_start(jobs, job, &no);
	}
	if (asked)
		sl_jobs_cycle(jobs, SL_CYCLE_ALLOCATE);
	if (!asked)
		return;
	sl_list_foreach_safe (link, &jobs->all) {
		struct sl_job *job = SL_LIST_ENTRY(link, struct sl_job, link);

		if (is_next(job))
			finds_no_place(jobs, job);
	}
}

void sl_jobs_run(
	struct sl_peer *peer, const struct sl_msg_run *run, struct sl_process *process)
{
	struct sl_jobs *jobs = peer->daemon->jobs;
	struct sl_jobs_row row;
	struct no no = {0};
	struct sl_job *job;

	fill_row(jobs, peer, run, &row);
	job = new_job(jobs, &row);
	if (!job) {
		(void)sl_process_put(process);
		sl_peer_reject(peer, SL_REJECT_FULL, "sluiced is out of memory");
		return;
	}
	job->process = process;
	job->submitter = peer;
	job->patient = run->flags & SL_RUN_WAIT;
	if (!job->is_free && jobs->dirty &&
		sl_cluster_totals(jobs->books.cluster).pending) {
		let_others_first(jobs, job);
		return;
	}
	if (start_now(jobs, job, &no)) {
		if (job->is_free)
			sl_jobs_drop_job(jobs, job);
	} else if (no.later) {
		let_others_first(jobs, job);
	} else {
		does_not_start(jobs, job, &no);
	}
}

/* --- Workloads that are there. --- */

/* Copies the workload's values of now. */
static void follow(struct sl_job *job, const struct sl_workload *workload)
{
	struct sl_jobs_row *row = &job->row;

	row->request = workload->request;
	row->limit = workload->limit;
	row->compute_request_pm = workload->compute.request_pm;
	row->compute_limit_pm = workload->compute.limit_pm;
	row->priority = workload->priority;
	row->flags &= ~(SL_RUN_NO_SWAP | SL_RUN_RDMA | SL_RUN_CHAIN);
	row->flags |= workload->flags & SL_RUN_CHAIN;
	row->flags |= workload->flags & SL_WORKLOAD_NO_SWAP ? SL_RUN_NO_SWAP : 0;
	row->flags |= workload->flags & SL_WORKLOAD_RDMA ? SL_RUN_RDMA : 0;
}

static enum sl_job_phase phase_of(const struct sl_workload *workload)
{
	if (workload->kill_at)
		return SL_PHASE_STOPPING;
	/* A detached one calls again. */
	if (!workload->by_queue || workload->park == SL_PARK_NOT ||
		workload->park == SL_PARK_DETACHED)
		return SL_PHASE_RUNS;
	if (workload->park == SL_PARK_PARKED)
		return workload->leaving ? SL_PHASE_PARKING : SL_PHASE_PARKED;
	return SL_PHASE_RESUMING;
}

/* Makes a job of a workload found after a restart, or given a request only now. */
static struct sl_job *adopt(struct sl_jobs *jobs, struct sl_workload *workload)
{
	struct sl_jobs_row row = {.id = workload->id | SL_JOB_FOREGROUND,
		.uid = workload->uid,
		.gpu_count = workload->gpu_count,
		.task_count = 1,
		.least = 1,
		.state = SL_JOB_RUNNING,
		.submitted_ms = sl_jobs_now_ms()};
	struct sl_job_task *task;
	struct sl_job *job;

	memcpy(row.name, workload->name, sizeof(row.name));
	memcpy(row.project, workload->project, sizeof(row.project));
	memcpy(row.command, workload->command, sizeof(row.command));
	job = new_job(jobs, &row);
	if (!job) {
		sl_error_log("out of memory: the queue does not know of workload "
			     "%" PRIu64 " (%s)",
			workload->id, workload->name);
		return NULL;
	}
	job->stored = true;
	job->row.tasks[0].workload = workload->id;
	task = &job->tasks[0];
	workload->task = task;
	sl_jobs_note_begun(task, sl_jobs_now_ms());
	sl_list_push_tail(&jobs->active, &task->active);
	sl_jobs_phase(task, phase_of(workload));
	/* loop/recover.c goes on with stopping it. */
	task->told = task->phase == SL_PHASE_STOPPING;
	if (task->phase == SL_PHASE_RESUMING)
		task->deadline = sl_clock_now() + SL_JOBS_RESUME_NS;
	else if (task->phase == SL_PHASE_PARKING)
		sl_jobs_goes_on_parking(task);
	return job;
}

/* The queue parked it, but counts it no more, so nothing else would resume it. */
static void let_back(
	struct sl_jobs *jobs, struct sl_job_task *task, struct sl_workload *workload)
{
	bool parked = task->phase == SL_PHASE_PARKED || task->phase == SL_PHASE_PARKING;
	struct sl_error text = {0};

	if (task->job->counted || (!parked && task->phase != SL_PHASE_RESUMING))
		return;
	/* First, because it may resume in this very step. */
	sl_jobs_phase(task, SL_PHASE_RUNS);
	if (parked && !sl_park_workload(jobs->daemon, workload, SL_PARK_RESUMING, &text))
		sl_warning("%s was parked for others and cannot be resumed (%s); resume "
			   "it with sluice resume",
			workload->name, text.text);
}

void sl_jobs_workload_changed(struct sl_daemon *daemon, struct sl_workload *workload)
{
	struct sl_jobs *jobs = daemon->jobs;
	struct sl_cluster_event before;
	struct sl_job *job;

	if (!jobs || workload->over || !workload->gpu_count || workload->has_shim ||
		workload->is_claimed)
		return;
	if (!workload->task && !sl_workload_has_request(workload))
		return;
	job = workload->task ? workload->task->job : adopt(jobs, workload);
	if (!job)
		return;
	before = sl_jobs_add_event(jobs, job);
	follow(job, workload);
	sl_jobs_put_again(jobs, job, &before);
	let_back(jobs, &job->tasks[0], workload);
}

void sl_jobs_front_recover(struct sl_jobs *jobs)
{
	sl_list_foreach (link, &jobs->daemon->workload_list) {
		struct sl_workload *workload =
			SL_LIST_ENTRY(link, struct sl_workload, link);
		struct sl_job *job;

		if (workload->over || workload->task || !workload->gpu_count ||
			!sl_workload_has_request(workload) || workload->is_claimed)
			continue;
		job = adopt(jobs, workload);
		if (job)
			follow(job, workload);
	}
}

bool sl_jobs_keeps_run(const struct sl_workload *workload)
{
	const struct sl_job_task *task = workload->has_shim ? NULL : workload->task;

	return task &&
	       (task->phase == SL_PHASE_PARKING || task->phase == SL_PHASE_PARKED ||
		       task->phase == SL_PHASE_RESUMING);
}

bool sl_jobs_run_leaves(const struct sl_workload *workload)
{
	return sl_jobs_keeps_run(workload) && workload->task->phase == SL_PHASE_PARKING;
}
