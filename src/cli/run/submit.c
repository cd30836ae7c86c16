/*
 * sluice submit: queues a command together with its words, environment and folder, so that the
 * daemon can run it after the user has left.
 *
 * --dir and --env change this process first, so the command is searched and checked as it will run.
 * Sluice's own variables are left out of the environment. The daemon sets them for each task, and a
 * job submitted by a job must not inherit the GPUs of that job.
 */
#include "cli/line/interrupt.h"
#include "cli/conn/jobs.h"
#include "cli/run/launch.h"
#include "base/library.h"
#include "cli/conn/told.h"
#include "cli/line/text.h"

#include "base/file.h"
#include "wire/jobspec.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEP_MS 1000

struct settings {
	struct sl_launch launch; /* first: see SL_LAUNCH_OPTIONS */
	int64_t gang, min, retries;
	sl_ns preempt_delay;
	enum sl_switch preemptible, on_reclaim;
	struct sl_strings env;
	const char *dir;
	bool try_only, wait;
};

const struct sl_option sl_verb_submit_options[] = {
	SL_LAUNCH_OPTIONS("a whole GPU", "all", "Print JSON."),
	SL_OPT(struct settings, gang, INTEGER, "N", 1, SL_JOB_TASKS_MAX,
		"Start CMD N times, as tasks of one job. Default 1."),
	SL_OPT(struct settings, min, INTEGER, "M", 1, SL_JOB_TASKS_MAX,
		"Least number of tasks that run together. Default: all."),
	SL_OPT(struct settings, preemptible, SWITCH, "yes|no", 0, 0,
		"Whether it may be preempted. no: it stays within its project's quota. "
		"Default yes."),
	SL_OPT_AS("on-reclaim", struct settings, on_reclaim, SWITCH, "park|terminate", 0,
		0,
		"When it is preempted: park it and resume it later, or end it and start "
		"again. Default park; with --swap off or --rdma, terminate."),
	SL_OPT_AS("preempt-delay", struct settings, preempt_delay, DURATION, "TIME", 0,
		SL_JOB_DELAY_MS_MAX,
		"How long to wait for free GPUs before jobs are preempted or moved for "
		"it. Default 0."),
	SL_OPT(struct settings, retries, INTEGER, "N", 0, SL_JOB_RETRIES_MAX,
		"How often a failed task is started again. Default 0."),
	SL_OPT(struct settings, env, STRINGS, "NAME=VALUE", 0, 0,
		"Environment variable; NAME alone copies it from here. May be given "
		"several times."),
	SL_OPT(struct settings, dir, STRING, "FOLDER", 0, 0,
		"Folder in which CMD starts. Default: this one."),
	SL_OPT_AS("try", struct settings, try_only, FLAG, NULL, 0, 0,
		"Only say what would happen; queue nothing."),
	SL_OPT(struct settings, wait, FLAG, NULL, 0, 0,
		"Wait until it has ended, and exit with its status."),
	SL_LAUNCH_AMOUNT,
	SL_OPT_WORDS("CMD", "The program; it gets this environment."),
	SL_OPT_END,
};

#define VERB SL_VERB_submit

/* --- the spec --- */

/* The daemon sets these for each task. LD_PRELOAD is handled separately. */
static bool is_sluices(const char *name, size_t len)
{
	static const char *const names[] = {"SLUICE_SOCKET", "SLUICE_WORKLOAD",
		"SLUICE_JOB", "SLUICE_TASK", "SLUICE_TASKS", "SLUICE_ATTEMPT",
		"CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES"};

	for (size_t i = 0; i < SL_ARRAY_LEN(names); i++)
		if (strlen(names[i]) == len && !memcmp(names[i], name, len))
			return true;
	return false;
}

static int set_one(const struct settings *s, const char *text)
{
	const char *equals = strchr(text, '=');
	size_t len = equals ? (size_t)(equals - text) : strlen(text);
	sl_cleanup(sl_freep) char *name = strndup(text, len);

	if (!name)
		return sl_cli_fail(VERB, s->launch.json, SL_EXIT_SYSTEM, "out of memory");
	if (!len)
		return sl_cli_fail(VERB, s->launch.json, SL_EXIT_USAGE,
			"--env '%.60s' has no name; write NAME=VALUE", text);
	if (!strncmp(name, "SLUICE_", strlen("SLUICE_")) && is_sluices(name, len))
		return sl_cli_fail(VERB, s->launch.json, SL_EXIT_USAGE,
			"--env %s: Sluice sets it itself, for each task", name);
	if (!equals && !getenv(name))
		return sl_cli_fail(VERB, s->launch.json, SL_EXIT_USAGE,
			"--env %.60s: there is no such variable here; write %.60s=VALUE",
			name, name);
	if (equals && setenv(name, equals + 1, 1))
		return sl_cli_fail(VERB, s->launch.json, SL_EXIT_SYSTEM,
			"--env %.60s: %s", name, strerror(errno));
	return -1;
}

/* Applies --dir and --env to this process. -1 to go on, else the exit status. */
static int set_surroundings(const struct settings *s)
{
	/* The list that Sluice set for a workload is not the user's choice. */
	if (getenv("SLUICE_WORKLOAD"))
		(void)unsetenv("CUDA_VISIBLE_DEVICES");
	for (size_t i = 0; i < s->env.count; i++) {
		int status = set_one(s, s->env.all[i]);

		if (status >= 0)
			return status;
	}
	if (s->dir && chdir(s->dir))
		return sl_cli_fail(VERB, s->launch.json, SL_EXIT_USAGE,
			"--dir %.200s: %s", s->dir, strerror(errno));
	return -1;
}

static int add_env(struct sl_jobspec *spec, const char *entry)
{
	const char *equals = strchr(entry, '=');
	size_t len = equals ? (size_t)(equals - entry) : 0;
	sl_cleanup(sl_freep) char *theirs = NULL;
	sl_cleanup(sl_freep) char *line = NULL;

	/* A malformed entry cannot be passed on; shells drop it, too. */
	if (!len || is_sluices(entry, len))
		return 0;
	if (len != strlen("LD_PRELOAD") || memcmp(entry, "LD_PRELOAD", len))
		return sl_jobspec_add(spec, SL_JOBSPEC_ENV, entry);
	theirs = sl_library_preload("", equals + 1);
	if (!theirs)
		return -ENOMEM;
	if (!theirs[0])
		return 0;
	if (asprintf(&line, "LD_PRELOAD=%s", theirs + 1) < 0) {
		line = NULL;
		return -ENOMEM;
	}
	return sl_jobspec_add(spec, SL_JOBSPEC_ENV, line);
}

static int fill_spec(
	const struct settings *s, struct sl_jobspec *spec, char *const *words)
{
	sl_cleanup(sl_freep) char *dir = getcwd(NULL, 0);
	mode_t mask = umask(0);
	char octal[16], delay[24];
	int r = dir ? 0 : -errno;

	umask(mask);
	snprintf(octal, sizeof(octal), "%03o", (unsigned int)mask);
	for (; !r && *words; words++)
		r = sl_jobspec_add(spec, SL_JOBSPEC_ARG, *words);
	if (!r)
		r = sl_jobspec_add(spec, SL_JOBSPEC_DIR, dir);
	if (!r)
		r = sl_jobspec_add(spec, SL_JOBSPEC_UMASK, octal);
	snprintf(delay, sizeof(delay), "%llu",
		(unsigned long long)(s->preempt_delay / SL_MS));
	if (!r && s->preempt_delay)
		r = sl_jobspec_add(spec, SL_JOBSPEC_DELAY, delay);
	for (char **entry = environ; !r && *entry; entry++)
		r = add_env(spec, *entry);
	return r;
}

/* The descriptor, or -1 after a message with the exit status in *status. */
static int make_spec(
	const struct settings *s, char *const *words, uint32_t *bytes, int *status)
{
	sl_cleanup(sl_jobspec_fini) struct sl_jobspec spec = {0};
	int r = fill_spec(s, &spec, words), fd = r ? r : sl_jobspec_to_fd(&spec);

	if (fd >= 0) {
		*bytes = (uint32_t)spec.size;
		return fd;
	}
	if (fd == -E2BIG)
		*status = sl_cli_fail(VERB, s->launch.json, SL_EXIT_USAGE,
			"command and environment together have more than %u MiB or %u "
			"entries; put what is long into a file",
			SL_JOBSPEC_BYTES_MAX >> 20, SL_JOBSPEC_ENTRIES_MAX);
	else
		*status = sl_cli_fail(VERB, s->launch.json, SL_EXIT_SYSTEM,
			"gathering command, folder and environment: %s", strerror(-fd));
	return -1;
}

/* Memory that cannot be moved to the host cannot be parked. */
static bool stays(const struct settings *s)
{
	return s->launch.swap == SL_SWITCH_OFF || s->launch.rdma;
}

static bool terminates(const struct settings *s)
{
	return s->on_reclaim == SL_SWITCH_OFF || (!s->on_reclaim && stays(s));
}

static uint32_t flags(const struct settings *s)
{
	return sl_launch_flags(&s->launch) |
	       (s->preemptible == SL_SWITCH_OFF ? 0 : SL_SUBMIT_PREEMPTIBLE) |
	       (terminates(s) ? SL_SUBMIT_TERMINATES : 0) |
	       (s->try_only ? SL_SUBMIT_TRY : 0);
}

static int fill(const struct settings *s, char *const *words, union sl_msg *ask)
{
	const struct sl_launch *launch = &s->launch;
	struct sl_msg_submit *msg = &ask->submit;

	sl_wire_init(ask, SL_MSG_SUBMIT);
	msg->request_kind = launch->request.kind;
	msg->request_value = launch->request.value;
	msg->limit_kind = launch->limit.kind;
	msg->limit_value = launch->limit.value;
	if (launch->warm_after != SL_WARM_UNSET)
		msg->warm_after_ms = launch->warm_after / SL_MS;
	if (launch->detach_after != SL_WARM_UNSET)
		msg->detach_after_ms = launch->detach_after / SL_MS;
	if (launch->idle_grace != SL_WARM_UNSET)
		msg->idle_grace_ms = launch->idle_grace / SL_MS;
	msg->compute_request_pm = sl_amounts_share_pm(&launch->compute_request);
	msg->compute_limit_pm = sl_amounts_share_pm(&launch->compute_limit);
	msg->gpu_count = (uint32_t)launch->gpus;
	msg->priority_biased = (uint32_t)(launch->priority + SL_PRIORITY_BIAS);
	msg->flags = flags(s);
	msg->longest_wait_ms = (uint32_t)(launch->longest_wait / SL_MS);
	msg->tasks = (uint32_t)s->gang;
	msg->least = (uint32_t)s->min;
	msg->retries = (uint32_t)s->retries;
	sl_wire_str(msg->name, sizeof(msg->name), launch->name ? launch->name : "");
	sl_wire_str(msg->project, sizeof(msg->project), launch->project);
	sl_launch_join(msg->command, sizeof(msg->command), words);
	return sl_launch_visible(
		VERB, launch->json, msg->visible, sizeof(msg->visible), &msg->flags);
}

/* --- messages --- */

static int print(const struct settings *s, struct sl_msg_submit_reply *reply)
{
	if (s->launch.json)
		return sl_rows_print_json(
			VERB, json_pack("{s:b, s:b, s:I, s:o, s:s, s:o}", "ok", 1, "try",
				      (int)s->try_only, "job", (json_int_t)reply->job,
				      "name", sl_text_json(reply->name), "state",
				      sl_wire_job_state(reply->state), "text",
				      sl_text_json(reply->text)));
	sl_text_tame(reply->name);
	sl_text_tame(reply->text);
	if (s->try_only)
		printf("%s%s%s\n", reply->name, reply->name[0] ? ": " : "", reply->text);
	else
		printf("%s: queued as job %llu%s%s\n", reply->name,
			(unsigned long long)reply->job, reply->text[0] ? "; " : "",
			reply->text);
	return sl_cli_finish(VERB, SL_EXIT_OK);
}

static int print_end(const struct settings *s, struct sl_msg_job_reply *end)
{
	int status = sl_jobs_exit(end->state, end->exit_status);
	char text[SL_JOBS_END_MAX];

	if (!s->launch.json)
		fprintf(stderr, "%s\n", sl_jobs_end_text(end, text, sizeof(text)));
	return status;
}

/* The job goes on without this process. */
static int gave_up(const char *name)
{
	fprintf(stderr,
		"sluice submit: interrupted; %s stays queued or runs on. To stop it: "
		"sluice stop %s\n",
		name, name);
	sl_interrupt_die();
	return SL_EXIT_SYSTEM;
}

static int wait_for_end(const struct settings *s, struct sl_conn *conn,
	const struct sl_msg_submit_reply *reply, const sigset_t *unblocked)
{
	struct sl_jobs_watch watch = {
		.conn = *conn, .job = reply->job, .unblocked = unblocked, .verb = VERB};
	struct sl_error err = {0};
	int outcome;

	conn->fd = -1;
	do
		outcome = sl_jobs_watch_step(&watch, STEP_MS, &err);
	while (outcome == SL_JOBS_WATCH_ON && !sl_interrupt_came());
	sl_jobs_watch_fini(&watch);
	if (outcome == SL_JOBS_WATCH_OVER)
		return print_end(s, &watch.end);
	if (outcome == SL_JOBS_WATCH_ON)
		return gave_up(reply->name);
	return sl_cli_fail(
		VERB, s->launch.json, (enum sl_exit)watch.status, "%s", err.text);
}

static int submit(const struct settings *s, char *const *words)
{
	sl_cleanup(sl_conn_close) struct sl_conn conn = {.fd = -1};
	sl_cleanup(sl_closep) int file = -1;
	struct sl_error err = {0};
	union sl_msg ask, reply;
	sigset_t unblocked;
	int status = fill(s, words, &ask);

	if (status >= 0)
		return status;
	file = make_spec(s, words, &ask.submit.spec_bytes, &status);
	if (file < 0)
		return status;
	status = sl_conn_open(&conn, &err);
	/* From here on an interruption must not leave a job that the user was not told of. */
	if (s->wait)
		sl_interrupt_catch(&unblocked);
	if (!status)
		status = sl_conn_call_giving(
			&conn, &ask, file, SL_MSG_SUBMIT_REPLY, &reply, &err);
	if (status)
		return sl_cli_fail(
			VERB, s->launch.json, (enum sl_exit)status, "%s", err.text);
	if (!reply.submit_reply.ok) {
		sl_text_tame(reply.submit_reply.text);
		return sl_cli_fail(VERB, s->launch.json, SL_EXIT_REFUSED, "refused: %s",
			reply.submit_reply.text);
	}
	status = print(s, &reply.submit_reply);
	sl_text_tame(reply.submit_reply.name);
	if (status || !s->wait)
		return status;
	return wait_for_end(s, &conn, &reply.submit_reply, &unblocked);
}

static int check(const struct settings *s)
{
	if (s->min > s->gang)
		return sl_cli_fail(VERB, s->launch.json, SL_EXIT_USAGE,
			"--min %lld is above --gang %lld, the number of tasks",
			(long long)s->min, (long long)s->gang);
	if (stays(s) && s->on_reclaim == SL_SWITCH_ON)
		return sl_cli_fail(VERB, s->launch.json, SL_EXIT_USAGE,
			"with --swap off or --rdma it cannot be parked; write "
			"--on-reclaim "
			"terminate, or leave one of them out");
	if (s->wait && s->try_only)
		return sl_cli_fail(VERB, s->launch.json, SL_EXIT_USAGE,
			"--try queues nothing to --wait for; give one of them");
	return -1;
}

static int main_with(struct settings *s, char *const *words)
{
	struct sl_launch *launch = &s->launch;
	int status = sl_launch_words(VERB, launch->json, words);

	if (status < 0)
		status = sl_launch_amounts(VERB, launch);
	/* A batch job without amounts or a compute resource was written for a GPU of its own
	 * (docs/decisions/0018-a-job-gets-a-whole-gpu.md). */
	if (!launch->request.kind && !launch->limit.kind)
		launch->request = (struct sl_amount){
			.kind = SL_AMOUNT_FRACTION, .value = SL_AMOUNT_WHOLE};
	if (status < 0)
		status = check(s);
	if (status < 0)
		status = set_surroundings(s);
	if (status < 0)
		status = sl_launch_command(VERB, launch, words);
	return status < 0 ? submit(s, words) : status;
}

int sl_verb_submit(int argc, char **argv)
{
	struct settings s = {.launch = SL_LAUNCH_PRESET, .gang = 1};
	int first, status;

	static_assert(offsetof(struct settings, launch) == 0, "the rows are of both");
	status = sl_cli_parse(VERB, &s, argc, argv, &first);
	if (status < 0)
		status = main_with(&s, argv + first);
	sl_strings_fini(&s.env);
	return status;
}
