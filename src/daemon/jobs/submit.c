/*
 * submit - a job comes in: checked as RUN is, counted, stored, and only then answered
 *
 * A question (SL_SUBMIT_TRY) goes to a second cluster machine, which is told all that the one in
 * force knows, and does one cycle for the jobs that wait already. Its forecast is the answer; its
 * decisions have no effect.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/step.h"
#include "daemon/core/fields.h"
#include "daemon/gpu/inventory.h"
#include "daemon/jobs/internal.h"
#include "daemon/jobs/names.h"
#include "daemon/link/bounds.h"
#include "daemon/link/pids.h"
#include "daemon/projects/registry.h"
#include "daemon/workloads/refusal.h"
#include "daemon/workloads/workload.h"

static void reply(
	struct sl_peer *peer, const struct sl_job *job, bool ok, const char *text)
{
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_SUBMIT_REPLY);
	msg.submit_reply.ok = ok;
	if (job) {
		msg.submit_reply.state = sl_jobs_state_of(job);
		msg.submit_reply.job = job->row.id;
		memcpy(msg.submit_reply.name, job->row.name,
			sizeof(msg.submit_reply.name));
	}
	sl_wire_str(msg.submit_reply.text, sizeof(msg.submit_reply.text), text);
	sl_peer_send(peer, &msg);
}

static void refuse(struct sl_peer *peer, const char *text)
{
	if (sl_peer_may_log(peer->daemon, SL_LOG_INFO))
		sl_info("refused a job of user %u: %s", (unsigned int)peer->uid, text);
	reply(peer, NULL, false, text);
}

/* --- What is wrong with it. --- */

/* The fields that RUN has, too, so that one rule judges both. */
static struct sl_msg_run as_run(const struct sl_msg_submit *submit)
{
	struct sl_msg_run run = {.request_kind = submit->request_kind,
		.limit_kind = submit->limit_kind,
		.request_value = submit->request_value,
		.limit_value = submit->limit_value,
		.gpu_count = submit->gpu_count,
		.priority_biased = submit->priority_biased,
		.flags = submit->flags,
		.longest_wait_ms = submit->longest_wait_ms,
		.warm_after_ms = submit->warm_after_ms,
		.detach_after_ms = submit->detach_after_ms,
		.idle_grace_ms = submit->idle_grace_ms,
		.compute_request_pm = submit->compute_request_pm,
		.compute_limit_pm = submit->compute_limit_pm};

	memcpy(run.name, submit->name, sizeof(run.name));
	memcpy(run.project, submit->project, sizeof(run.project));
	return run;
}

#define FLAGS_ALL                                                                     \
	(SL_RUN_ALL | SL_RUN_OBSERVE | SL_SUBMIT_PREEMPTIBLE | SL_SUBMIT_TERMINATES | \
		SL_SUBMIT_TRY | SL_SUBMIT_NEVER_WARM | SL_SUBMIT_NEVER_DETACH |       \
		SL_SUBMIT_GRACE | SL_RUN_CHAIN)

static const char *mistake_in(const struct sl_msg_submit *submit)
{
	struct sl_msg_run run = as_run(submit);
	const char *mistake = sl_field_mistake(&run);

	if (mistake)
		return mistake;
	if (submit->flags & ~FLAGS_ALL)
		return "a flag that this sluiced does not know; install sluice and "
		       "sluiced of one version";
	if (submit->tasks < 1 || submit->tasks > SL_JOB_TASKS_MAX)
		return "--gang must be from 1 to " SL_STRINGIFY(SL_JOB_TASKS_MAX);
	if (submit->tasks > 1 && strlen(submit->name) > SL_JOBS_GANG_NAME_MOST)
		return "--name of a gang must have at most " SL_STRINGIFY(
			SL_JOBS_GANG_NAME_MOST) " bytes: each task is named NAME.T; "
						"shorten it";
	if (submit->least > submit->tasks)
		return "--min must not be more than --gang";
	if (submit->retries > SL_JOB_RETRIES_MAX)
		return "--retries must be from 0 to " SL_STRINGIFY(SL_JOB_RETRIES_MAX);
	return NULL;
}

static bool has_place(const struct sl_jobs *jobs, const struct sl_msg_submit *submit,
	struct sl_error *text)
{
	if (jobs->living < SL_JOBS_MOST &&
		jobs->tasks + submit->tasks <= SL_JOBS_TASKS_MOST)
		return true;
	sl_error_set(text,
		"the queue is full: %u jobs with %u tasks, of at most %d and %d; wait "
		"for "
		"some to end, or stop some (sluice ps)",
		jobs->living, jobs->tasks, SL_JOBS_MOST, SL_JOBS_TASKS_MOST);
	return false;
}

static bool may_submit(
	struct sl_peer *peer, const struct sl_msg_submit *submit, struct sl_error *text)
{
	struct sl_daemon *daemon = peer->daemon;
	const char *apart;

	if (geteuid() != 0 && peer->uid != geteuid()) {
		sl_error_set(text,
			"this sluiced runs as user %u and can start programs of that "
			"user "
			"only; ask that user, or use a sluiced that runs as root (sluice "
			"run works here)",
			(unsigned int)geteuid());
		return false;
	}
	/* A uid in a container would be taken for that of a user outside, and its root for root. */
	apart = peer->who ? peer->who->contained
			  : sl_pids_apart(peer->pid, peer->start_ticks);
	if (apart) {
		sl_error_set(text,
			"this process %s, and jobs run outside of it; submit from the "
			"machine itself (sluice run works here)",
			apart);
		return false;
	}
	if (!sl_field_chain_fits(submit->flags, daemon->config.resolvers, text) ||
		!sl_registry_admits(peer, submit->project, text))
		return false;
	if (!sl_jobs_project_id(daemon, submit->project)) {
		sl_error_set(text,
			"there is no project %s; make it with `sluice project apply`, or "
			"name another one",
			submit->project);
		return false;
	}
	return has_place(daemon->jobs, submit, text);
}

/* --- The job. --- */

static void fill_row(struct sl_jobs *jobs, const struct sl_peer *peer,
	const struct sl_msg_submit *submit, struct sl_jobs_row *row)
{
	*row = (struct sl_jobs_row){.id = jobs->daemon->next_workload,
		.uid = peer->uid,
		.request = {.kind = submit->request_kind, .value = submit->request_value},
		.limit = {.kind = submit->limit_kind, .value = submit->limit_value},
		.gpu_count = submit->gpu_count,
		.flags = submit->flags & ~SL_SUBMIT_TRY,
		.task_count = submit->tasks,
		.least = submit->least ? submit->least : submit->tasks,
		.retries = submit->retries,
		.workloads_most = sl_bounds_of_peer(peer).workloads,
		.priority = (int32_t)((int64_t)submit->priority_biased -
				      (int64_t)SL_PRIORITY_BIAS),
		.wait_max = (sl_ns)submit->longest_wait_ms * SL_MS,
		.warm_after = submit->warm_after_ms * SL_MS,
		.detach_after = submit->detach_after_ms * SL_MS,
		.idle_grace = submit->idle_grace_ms * SL_MS,
		.compute_request_pm = submit->compute_request_pm,
		.compute_limit_pm = submit->compute_limit_pm,
		.state = SL_JOB_QUEUED,
		.submitted_ms = sl_jobs_now_ms()};
	/* A job that names no size gets whole GPUs. */
	if (row->request.kind == SL_AMOUNT_UNSET && row->limit.kind == SL_AMOUNT_UNSET)
		row->request = row->limit = (struct sl_amount){
			.kind = SL_AMOUNT_FRACTION, .value = SL_AMOUNT_WHOLE};
	sl_wire_str(row->project, sizeof(row->project),
		submit->project[0] ? submit->project : SL_PROJECT_DEFAULT);
	memcpy(row->command, submit->command, sizeof(row->command));
	memcpy(row->visible, submit->visible, sizeof(row->visible));
	memcpy(row->name, submit->name, sizeof(row->name));
	sl_field_tame(row->command);
	if (!row->name[0])
		sl_field_make_name(row->command, "j", row->id, row->name);
}

/* Adds the user and groups that it runs as: the submitter's, from the kernel. */
static int add_owner(
	const struct sl_peer *peer, struct sl_jobs_row *row, struct sl_jobspec *spec)
{
	sl_cleanup(sl_freep) uint32_t *gids =
		calloc(SL_BOUNDS_GROUPS_MAX, sizeof(gids[0]));
	char text[16];
	size_t count;
	int r;

	if (!gids)
		return sl_err_origin(-ENOMEM);
	/* The first is the primary group. */
	count = sl_bounds_groups_of(peer, gids);
	if (count == 0)
		return sl_err_origin(-ESRCH);
	row->gid = gids[0];
	(void)snprintf(text, sizeof(text), "%u", row->uid);
	r = sl_jobspec_add(spec, SL_JOBSPEC_UID, text);
	(void)snprintf(text, sizeof(text), "%u", row->gid);
	if (r == 0)
		r = sl_jobspec_add(spec, SL_JOBSPEC_GID, text);
	for (size_t i = 1; r == 0 && i < count; i++) {
		(void)snprintf(text, sizeof(text), "%u", gids[i]);
		r = sl_jobspec_add(spec, SL_JOBSPEC_GROUP, text);
	}
	return r;
}

/* The GPU with most shareable bytes; *bytes 0 if there is none. */
static uint32_t largest_gpu(const struct sl_daemon *daemon, uint64_t *bytes)
{
	uint32_t largest = 0;

	*bytes = 0;
	for (uint32_t i = 0; i < daemon->gpu_count; i++) {
		uint64_t here = sl_node_gpu(daemon->node, i).shareable_bytes;

		if (here <= *bytes)
			continue;
		*bytes = here;
		largest = i;
	}
	return largest;
}

bool sl_jobs_within_bounds(
	struct sl_peer *peer, const struct sl_jobs_row *row, struct sl_error *text)
{
	struct sl_daemon *daemon = peer->daemon;
	struct sl_bounds bounds = sl_bounds_of_peer(peer);
	/* Refuse what exceeds the bounds for ever; what exceeds them now waits. */
	struct sl_bounds_ask ask = {.priority = row->priority, .workloads = row->least};
	struct sl_bounds_verdict verdict;
	struct sl_workload asked = {.uid = row->uid};
	uint32_t gpu;

	gpu = largest_gpu(daemon, &ask.shareable_bytes);
	ask.request_bytes = sl_amount_resolve(
		row->request.kind ? &row->request : &row->limit, ask.shareable_bytes, 0);
	ask.limit_bytes = sl_amount_resolve(
		row->limit.kind ? &row->limit : &row->request, ask.shareable_bytes, 0);
	verdict = sl_bounds_judge(&bounds, &ask);
	if (verdict.reason == SL_REASON_NONE && ask.shareable_bytes &&
		ask.request_bytes > ask.shareable_bytes)
		verdict =
			(struct sl_bounds_verdict){.reason = SL_REASON_REQUEST_TOO_LARGE,
				.wanted = ask.request_bytes,
				.allowed = ask.shareable_bytes};
	if (verdict.reason == SL_REASON_NONE)
		return true;
	if (verdict.reason == SL_REASON_BOUND_WORKLOADS) {
		sl_error_set(text,
			"%u tasks of it must run together, and the administrator allows "
			"you %u workloads at a time; lower --min, or ask the "
			"administrator (bounds in sluiced.conf)",
			row->least, bounds.workloads);
		return false;
	}
	daemon->admission = (struct sl_admission){.reason = verdict.reason,
		.gpu = gpu,
		.wanted_bytes = verdict.wanted,
		.available_bytes = verdict.allowed};
	sl_refusal_text(daemon, &asked, row->gpu_count, UINT32_MAX, false, text);
	return false;
}

/* Are GPUs of the project's pools here, or unknown yet? */
static bool has_pool(
	const struct sl_jobs *jobs, const char *project, struct sl_error *text)
{
	const struct sl_project_row *row =
		sl_projects_find(sl_registry_set(jobs->daemon), project);

	if (!row || !jobs->books.works ||
		sl_jobs_pools_named(jobs, row->pools) != SL_JOBS_NO_POOL)
		return true;
	sl_error_set(text,
		"project %s may use GPUs of %s only, and this machine has none of these "
		"now; name another project, or change its pools with sluice project "
		"apply",
		project, row->pools);
	return false;
}

static bool has_sense(
	struct sl_jobs *jobs, const struct sl_job *job, struct sl_error *text)
{
	const struct sl_jobs_row *row = &job->row;

	if (row->request.kind && row->limit.kind &&
		row->request.kind == row->limit.kind &&
		row->limit.value < row->request.value) {
		sl_error_set(text, "--limit must not be below --request; raise it");
		return false;
	}
	if (!has_pool(jobs, row->project, text))
		return false;
	if (job->need.pools != SL_JOBS_NO_POOL || !jobs->daemon->nvml_ok)
		return true;
	sl_error_set(text,
		"CUDA_VISIBLE_DEVICES names no GPU that sluiced manages; change or unset "
		"it");
	return false;
}

/* --- Texts. --- */

/* A job without request is delayed by its user's bound only, and cannot be preempted. */
static const char *describe_free(
	const struct sl_jobs *jobs, const struct sl_job *job, char *buf, size_t size)
{
	char why[SL_FORECAST_MAX];

	if (!jobs->books.works)
		return "it waits: " SL_JOBS_NO_GPU;
	if (!job->bound)
		return "it starts at once";
	(void)snprintf(buf, size, "it waits: %s",
		sl_pending_text(&job->refused, sl_jobs_project_name, jobs->daemon, why,
			sizeof(why)));
	return buf;
}

/* What the cycle since has made of the job; what reclaim would do for the job is taken from the
 * forecast. */
static const char *describe(
	const struct sl_jobs *jobs, const struct sl_job *job, char *buf, size_t size)
{
	struct sl_cluster_job_view view =
		sl_cluster_job(jobs->books.cluster, job->row.id);
	struct sl_cluster_forecast forecast = job->forecast;
	uint32_t runs = view.in[SL_TASK_RUNNING] + view.in[SL_TASK_BINDING];

	if (job->is_free || !jobs->books.works)
		return describe_free(jobs, job, buf, size);
	if (runs && runs < job->row.task_count) {
		(void)snprintf(buf, size, "%u of its %u tasks start at once", runs,
			job->row.task_count);
		return buf;
	}
	/* The forecast's stops may have happened by now. */
	if (runs && forecast.fate == SL_FORECAST_TAKES)
		return sl_forecast_text(
			&forecast, sl_jobs_project_name, jobs->daemon, buf, size);
	if (runs)
		forecast.fate = SL_FORECAST_RUNS;
	else if (!view.in[SL_TASK_PIPELINED])
		forecast.fate = SL_FORECAST_WAITS;
	else if (forecast.fate != SL_FORECAST_TAKES)
		forecast.fate = SL_FORECAST_FOLLOWS;
	forecast.because = view.known ? view.because : job->refused;
	/* No cycle has judged it yet: use the forecast. */
	if (forecast.fate == SL_FORECAST_WAITS && !forecast.because.reason)
		forecast = job->forecast;
	return sl_forecast_text(&forecast, sl_jobs_project_name, jobs->daemon, buf, size);
}

/* --- A question. --- */

/* Can it never run, even alone and with other rules for its project? */
static bool is_hopeless(const struct sl_cluster_forecast *forecast)
{
	return forecast->fate == SL_FORECAST_NEVER &&
	       forecast->because.reason != SL_PENDING_OVER_LIMIT &&
	       forecast->because.reason != SL_PENDING_OVER_QUOTA;
}

static struct sl_cluster_forecast foresee(
	const struct sl_jobs *jobs, const struct sl_job *job)
{
	struct sl_cluster_event add = sl_jobs_add_event(jobs, job);

	return sl_cluster_forecast(jobs->books.cluster, sl_clock_now(), &add);
}

/* Holds it if its user's bound is reached, whatever is free. */
static void hold_to_bound(const struct sl_jobs *jobs, struct sl_job *job,
	struct sl_cluster_forecast *forecast)
{
	struct sl_pending_because because;

	job->bound = forecast->fate != SL_FORECAST_NEVER &&
		     sl_jobs_bound_holds(jobs, job, &because);
	if (!job->bound)
		return;
	job->refused = forecast->because = because;
	forecast->fate = SL_FORECAST_WAITS;
}

static void answer_try(struct sl_jobs *jobs, struct sl_peer *peer, struct sl_job *job)
{
	char text[SL_FORECAST_MAX];
	struct sl_cluster_forecast forecast;

	if (job->is_free || !jobs->books.works) {
		job->bound = sl_jobs_bound_holds(jobs, job, &job->refused);
		reply(peer, NULL, true, describe_free(jobs, job, text, sizeof(text)));
		return;
	}
	forecast = foresee(jobs, job);
	hold_to_bound(jobs, job, &forecast);
	if (is_hopeless(&forecast))
		refuse(peer, sl_pending_text(&forecast.because, sl_jobs_project_name,
				     jobs->daemon, text, sizeof(text)));
	else
		reply(peer, NULL, true,
			sl_forecast_text(&forecast, sl_jobs_project_name, jobs->daemon,
				text, sizeof(text)));
}

/* --- SUBMIT. --- */

static void take_in(struct sl_jobs *jobs, struct sl_peer *peer, struct sl_job *job,
	struct sl_jobspec *spec, const struct sl_queue_verdict *share)
{
	char why[600];

	if (!job->is_free) {
		job->forecast = foresee(jobs, job);
		job->refused = job->forecast.because;
		hold_to_bound(jobs, job, &job->forecast);
	} else {
		job->bound = sl_jobs_bound_holds(jobs, job, &job->refused);
	}
	/* Refuse gangs that can never run together, and what the machine rejects. */
	if (!job->is_free && (job->refused.reason == SL_PENDING_GANG_NEVER ||
				     !(job->bound || sl_jobs_count(jobs, job)))) {
		refuse(peer, sl_pending_text(&job->refused, sl_jobs_project_name,
				     jobs->daemon, why, sizeof(why)));
		sl_jobs_drop_job(jobs, job);
		return;
	}
	jobs->daemon->next_workload++;
	job->drops = share->drop_jobs || share->drop_bytes;
	sl_step(D_JOB_TAKEN);
	job->submitter = peer;
	sl_jobs_keep(jobs, job, spec);
}

static void judge(struct sl_jobs *jobs, struct sl_peer *peer,
	const struct sl_msg_submit *submit, struct sl_jobspec *spec)
{
	struct sl_error text = {0};
	struct sl_jobs_row row;
	struct sl_job *job;
	struct sl_queue_verdict share;
	bool may, ok;

	fill_row(jobs, peer, submit, &row);
	row.preempt_delay = sl_jobspec_number(spec, SL_JOBSPEC_DELAY, 0) * SL_MS;
	/* A generated name may be taken, too. */
	may = sl_jobs_name_is_free(
		      peer->daemon, peer->uid, row.name, row.task_count, &text) &&
	      sl_jobs_user_may(
		      jobs, peer->uid, row.task_count, spec->size, &share, &text);
	row.tasks = calloc(row.task_count, sizeof(row.tasks[0]));
	job = row.tasks && add_owner(peer, &row, spec) == 0 ? sl_jobs_new_job(jobs, &row)
							    : NULL;
	if (!job) {
		sl_jobs_row_fini(&row);
		refuse(peer, "sluiced is out of memory; try again");
		return;
	}
	sl_jobs_set_need(jobs, job);
	ok = may && has_sense(jobs, job, &text) &&
	     sl_jobs_within_bounds(peer, &job->row, &text) &&
	     sl_jobs_find_library(jobs, &text);
	if (!ok) {
		refuse(peer, text.text);
		sl_jobs_drop_job(jobs, job);
	} else if (submit->flags & SL_SUBMIT_TRY) {
		/* The second machine must not be told of it as a job of the queue. */
		sl_list_unlink(&job->link);
		answer_try(jobs, peer, job);
		sl_jobs_drop_job(jobs, job);
	} else {
		job->used_bytes = spec->size;
		take_in(jobs, peer, job, spec, &share);
	}
}

void sl_jobs_submit(
	struct sl_peer *peer, const struct sl_msg_submit *submit, struct sl_wire_fds *fds)
{
	struct sl_jobs *jobs = peer->daemon->jobs;
	sl_cleanup(sl_jobspec_fini) struct sl_jobspec spec = {0};
	const char *mistake = mistake_in(submit);
	struct sl_user_rights rights;
	struct sl_error text = {0};
	int r;

	if (mistake) {
		refuse(peer, mistake);
		return;
	}
	if (fds->count != 1) {
		refuse(peer, "sluiced has no descriptors left; try again");
		return;
	}
	if (!sl_jobs_ask_rights(peer, &rights, &text) ||
		!may_submit(peer, submit, &text)) {
		refuse(peer, text.text);
		return;
	}
	r = sl_jobspec_from_fd(fds->fd[0], submit->spec_bytes, false, &spec, &text);
	if (r == SL_JOBSPEC_OK)
		r = sl_jobs_add_rights(&rights, &spec);
	if (r != SL_JOBSPEC_OK) {
		refuse(peer, r < 0 ? "sluiced is out of memory; try again" : text.text);
		return;
	}
	judge(jobs, peer, submit, &spec);
}

void sl_jobs_reply_submit(struct sl_jobs *jobs, struct sl_job *job)
{
	char text[SL_FORECAST_MAX];

	job->reply_due = false;
	sl_info("job %" PRIu64 " (%s) of user %u is in the queue", job->row.id,
		job->row.name, job->row.uid);
	if (!job->submitter)
		return;
	reply(job->submitter, job, true, describe(jobs, job, text, sizeof(text)));
	job->submitter = NULL;
}

void sl_jobs_store_failed(
	struct sl_jobs *jobs, struct sl_job *job, const struct sl_error *err)
{
	struct sl_cluster_event event = {.type = SL_CLUSTER_EVENT_JOB_REMOVE};

	event.job_remove.job = job->row.id;
	if (job->counted)
		sl_jobs_tell(jobs, &event);
	if (job->submitter)
		refuse(job->submitter, err->text);
	job->row.state = SL_JOB_FAILED;
	job->row.exit_status = SL_JOB_LOST;
	sl_jobs_tell_waits(jobs, job);
	sl_jobs_drop_job(jobs, job);
}
