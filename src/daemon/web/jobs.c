/*
 * jobs - submitting, stopping, and the output of a job
 *
 * A job from the page has no shell to take environment and folder from. So it gets the environment
 * of a fresh login, its user's home as its folder, and what the request adds to both.
 */
#include "daemon/web/values.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "daemon/report/tell.h"
#include "daemon/web/resources.h"
#include "wire/jobspec.h"

#define PATH_DEFAULT "/usr/local/bin:/usr/bin:/bin"
#define WORDS_MAX    4096
/* Bytes from the end of a log. */
#define LOG_DEFAULT (256u << 10)
#define LOG_MOST    (4u << 20)

/* --- what it executes ------------------------------------------------------------------------- */

static int add_variable(struct sl_jobspec *spec, const char *name, const char *value)
{
	sl_cleanup(sl_freep) char *entry = NULL;

	if (asprintf(&entry, "%s=%s", name, value) < 0) {
		entry = NULL;
		return -ENOMEM;
	}
	return sl_jobspec_add(spec, SL_JOBSPEC_ENV, entry);
}

/* Adds the environment of a login. Sets *home even if the system does not know the user. */
static int add_login(struct sl_jobspec *spec, uid_t uid, char home[4096])
{
	struct passwd entry, *found = NULL;
	char room[8192], number[16];
	struct stat there;
	int r;

	(void)snprintf(number, sizeof(number), "%u", (unsigned int)uid);
	if (getpwuid_r(uid, &entry, room, sizeof(room), &found) != 0)
		found = NULL;
	/* Homes of service users may not exist. */
	(void)snprintf(home, 4096, "%s",
		found && found->pw_dir[0] == '/' && stat(found->pw_dir, &there) == 0 &&
				S_ISDIR(there.st_mode)
			? found->pw_dir
			: "/");
	r = add_variable(spec, "PATH", PATH_DEFAULT);
	if (r == 0)
		r = add_variable(spec, "HOME", home);
	if (r == 0)
		r = add_variable(spec, "USER", found ? found->pw_name : number);
	if (r == 0)
		r = add_variable(spec, "LOGNAME", found ? found->pw_name : number);
	if (r == 0)
		r = add_variable(spec, "SHELL",
			found && found->pw_shell[0] ? found->pw_shell : "/bin/sh");
	return r == 0 ? add_variable(spec, "LANG", "C.UTF-8") : r;
}

static int add_words(struct sl_page_request *request, struct sl_jobspec *spec)
{
	const json_t *words = json_object_get(request->json, "command");
	int r = 0;

	for (size_t i = 0; r == 0 && i < json_array_size(words); i++)
		r = sl_jobspec_add(spec, SL_JOBSPEC_ARG,
			json_string_value(json_array_get(words, i)));
	return r;
}

static int add_env(struct sl_page_request *request, struct sl_jobspec *spec)
{
	const char *name;
	json_t *value;
	int r = 0;

	json_object_foreach(json_object_get(request->json, "env"), name, value)
	{
		if (r == 0)
			r = add_variable(spec, name, json_string_value(value));
	}
	return r;
}

static bool are_words(struct sl_page_request *request, enum MHD_Result *r)
{
	const json_t *words = json_object_get(request->json, "command");
	bool ok = json_is_array(words) && json_array_size(words) > 0 &&
		  json_array_size(words) <= WORDS_MAX;

	for (size_t i = 0; ok && i < json_array_size(words); i++)
		ok = json_is_string(json_array_get(words, i));
	if (!ok)
		*r = sl_page_refuse(request, 400,
			"command must be an array of the program and its words, for "
			"example [\"python3\", \"train.py\"]");
	return ok;
}

static bool is_env(struct sl_page_request *request, enum MHD_Result *r)
{
	const json_t *env = json_object_get(request->json, "env");
	bool ok = !env || json_is_null(env) || json_is_object(env);
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)env, name, value) ok &=
		name[0] && !strchr(name, '=') && json_is_string(value);
	if (!ok)
		*r = sl_page_refuse(request, 400,
			"env must be an object of names and texts, for example "
			"{\"SEED\": \"1\"}");
	return ok;
}

/* A sealed memfd of the job, which the caller closes; -1: the request was refused. */
static int make_spec(struct sl_page_request *request, uint32_t *bytes, enum MHD_Result *r)
{
	sl_cleanup(sl_jobspec_fini) struct sl_jobspec spec = {0};
	char dir[4096], home[4096], delay[24];
	int64_t delay_ms;
	int fd;

	if (!are_words(request, r) || !is_env(request, r) ||
		!sl_page_string(request, "dir", dir, sizeof(dir), r) ||
		!sl_page_integer(request, "preempt_delay_ms", 0, SL_JOB_DELAY_MS_MAX, 0,
			&delay_ms, r))
		return -1;
	(void)snprintf(delay, sizeof(delay), "%lld", (long long)delay_ms);
	if (dir[0] && dir[0] != '/') {
		*r = sl_page_refuse(request, 400, "dir must begin with /");
		return -1;
	}
	fd = add_login(&spec, request->who->uid, home);
	if (fd == 0)
		fd = add_env(request, &spec);
	if (fd == 0)
		fd = add_words(request, &spec);
	if (fd == 0)
		fd = sl_jobspec_add(&spec, SL_JOBSPEC_DIR, dir[0] ? dir : home);
	if (fd == 0 && delay_ms)
		fd = sl_jobspec_add(&spec, SL_JOBSPEC_DELAY, delay);
	if (fd == 0)
		fd = sl_jobspec_to_fd(&spec);
	*bytes = (uint32_t)spec.size;
	if (fd < 0)
		*r = sl_page_refuse(
			request, 503, "sluiced cannot keep it: %s", strerror(-fd));
	return fd < 0 ? -1 : fd;
}

/* --- what it needs ---------------------------------------------------------------------------- */

/* "python3 train.py", as in lists. */
static void set_command(
	const struct sl_page_request *request, struct sl_msg_submit *submit)
{
	const json_t *words = json_object_get(request->json, "command");
	char text[4 * sizeof(submit->command)] = "";
	size_t used = 0;

	for (size_t i = 0; i < json_array_size(words) && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
			i ? " " : "", json_string_value(json_array_get(words, i)));
	sl_wire_str(submit->command, sizeof(submit->command), text);
}

static bool set_kind(
	struct sl_page_request *request, struct sl_msg_submit *submit, enum MHD_Result *r)
{
	bool preemptible, swap;
	char on_reclaim[16];

	if (!sl_page_bool(request, "preemptible", true, &preemptible, r) ||
		!sl_page_bool(request, "swap", true, &swap, r) ||
		!sl_page_string(request, "on_reclaim", on_reclaim, sizeof(on_reclaim), r))
		return false;
	if (on_reclaim[0] && strcmp(on_reclaim, "park") != 0 &&
		strcmp(on_reclaim, "terminate") != 0) {
		*r = sl_page_refuse(request, 400, "on_reclaim must be park or terminate");
		return false;
	}
	submit->flags |= preemptible ? SL_SUBMIT_PREEMPTIBLE : 0;
	submit->flags |= swap ? 0 : SL_RUN_NO_SWAP;
	/* Without swapping it cannot be parked. */
	if (strcmp(on_reclaim, "terminate") == 0 || (!on_reclaim[0] && !swap))
		submit->flags |= SL_SUBMIT_TERMINATES;
	return true;
}

/* As `sluice submit --observe`: no limit hides what it needs, and no request is guaranteed, because
 * its need is not known yet. */
static bool read_observe(struct sl_page_request *request, struct sl_msg_submit *submit,
	struct sl_amount *amount, enum MHD_Result *r)
{
	static const char *const others[] = {"request", "limit", "resource"};
	bool observe;

	if (!sl_page_bool(request, "observe", false, &observe, r))
		return false;
	for (size_t i = 0; observe && i < SL_ARRAY_LEN(others); i++) {
		if (!sl_page_has(request, others[i]))
			continue;
		*r = sl_page_refuse(request, 400,
			"observe finds out what request and limit would do, and goes "
			"without them; leave out %s",
			others[i]);
		return false;
	}
	if (observe) {
		*amount = (struct sl_amount){.kind = SL_AMOUNT_BYTES};
		submit->flags |= SL_RUN_OBSERVE;
	}
	return true;
}

static bool set_amounts(
	struct sl_page_request *request, struct sl_msg_submit *submit, enum MHD_Result *r)
{
	struct sl_compute resource;
	struct sl_amount amount, limit;
	int64_t gpus, priority;

	if (!sl_page_resource_of(request, &resource, r) ||
		!sl_page_amount(request, "request", &amount, r) ||
		!sl_page_amount(request, "limit", &limit, r) ||
		!sl_page_integer(request, "gpus", 1, 32, resource.gpus, &gpus, r) ||
		!sl_page_integer(request, "priority", -SL_PRIORITY_MAX, SL_PRIORITY_MAX,
			resource.priority, &priority, r) ||
		!read_observe(request, submit, &amount, r))
		return false;
	amount = amount.kind ? amount : resource.request;
	limit = limit.kind ? limit : resource.limit;
	/* A request of 0 guarantees nothing, and says nothing about the limit either. */
	if (!limit.kind && amount.kind == SL_AMOUNT_BYTES && !amount.value)
		limit = (struct sl_amount){
			.kind = SL_AMOUNT_FRACTION, .value = SL_AMOUNT_WHOLE};
	submit->request_kind = amount.kind;
	submit->request_value = amount.value;
	submit->limit_kind = limit.kind;
	submit->limit_value = limit.value;
	submit->gpu_count = (uint32_t)gpus;
	submit->priority_biased = (uint32_t)(priority + (int64_t)SL_PRIORITY_BIAS);
	return true;
}

static bool fill_submit(
	struct sl_page_request *request, struct sl_msg_submit *submit, enum MHD_Result *r)
{
	int64_t gang, least, retries;
	bool try_only;

	if (!set_amounts(request, submit, r) || !set_kind(request, submit, r) ||
		!sl_page_string(request, "name", submit->name, sizeof(submit->name), r) ||
		!sl_page_string(request, "project", submit->project,
			sizeof(submit->project), r) ||
		!sl_page_integer(request, "gang", 1, SL_JOB_TASKS_MAX, 1, &gang, r) ||
		!sl_page_integer(request, "min", 1, SL_JOB_TASKS_MAX, 0, &least, r) ||
		!sl_page_integer(
			request, "retries", 0, SL_JOB_RETRIES_MAX, 0, &retries, r) ||
		!sl_page_bool(request, "try", false, &try_only, r))
		return false;
	submit->tasks = (uint32_t)gang;
	submit->least = (uint32_t)least;
	submit->retries = (uint32_t)retries;
	submit->flags |= try_only ? SL_SUBMIT_TRY : 0;
	set_command(request, submit);
	return true;
}

static enum MHD_Result submitted(
	struct sl_page_request *request, const struct sl_msg_submit_reply *reply)
{
	if (!reply->ok)
		return sl_page_refuse(request, 409, "%s", reply->text);
	return sl_page_answer(request, 200,
		json_pack("{s:b, s:I, s:o, s:s, s:o}", "ok", 1, "job",
			(json_int_t)reply->job, "name", sl_text_json(reply->name),
			"state", sl_wire_job_state(reply->state), "text",
			sl_text_json(reply->text)));
}

enum MHD_Result sl_page_submit(struct sl_page_request *request)
{
	static const char *const keys[] = {"command", "name", "project", "resource",
		"request", "limit", "observe", "gpus", "priority", "gang", "min",
		"on_reclaim", "preemptible", "swap", "retries", "preempt_delay_ms", "dir",
		"env", "try", NULL};
	sl_cleanup(sl_closep) int file = -1;
	struct sl_error err = {0};
	union sl_msg msg, answer;
	struct sl_inside line;
	enum MHD_Result r = MHD_NO;
	int outcome;

	sl_wire_init(&msg, SL_MSG_SUBMIT);
	if (!sl_page_only(request, keys, &r))
		return r;
	file = make_spec(request, &msg.submit.spec_bytes, &r);
	if (file < 0 || !fill_submit(request, &msg.submit, &r) ||
		!sl_page_line(request, &line, &r))
		return r;
	outcome = sl_inside_call_giving(
		&line, &msg, file, SL_MSG_SUBMIT_REPLY, &answer, &err);
	r = outcome == SL_INSIDE_OK ? submitted(request, &answer.submit_reply)
				    : sl_page_failed(request, &line, outcome, &err);
	sl_inside_close(&line);
	return r;
}

/* --- its end ---------------------------------------------------------------------------------- */

static enum MHD_Result job_refused(
	struct sl_page_request *request, const struct sl_msg_job_reply *reply)
{
	return sl_page_refuse(request, reply->job ? 409 : 404, "%s", reply->text);
}

/* "7", or "front-7": a workload in the foreground has a number that JSON cannot write. */
static bool job_id(struct sl_page_request *request, uint64_t *out, enum MHD_Result *r)
{
	static const char front[] = "front-";
	bool is_front = strncmp(request->argument, front, sizeof(front) - 1) == 0;

	if (is_front)
		memmove(request->argument, request->argument + sizeof(front) - 1,
			sizeof(request->argument) - (sizeof(front) - 1));
	if (!sl_page_id(request, out, r))
		return false;
	*out |= is_front ? SL_JOB_FOREGROUND : 0;
	return true;
}

enum MHD_Result sl_page_job_stop(struct sl_page_request *request)
{
	static const char *const keys[] = {"grace_ms", NULL};
	struct sl_error err = {0};
	union sl_msg msg, answer;
	struct sl_inside line;
	enum MHD_Result r = MHD_NO;
	int64_t grace;
	int outcome;

	sl_wire_init(&msg, SL_MSG_JOB_STOP);
	if (!job_id(request, &msg.job_stop.job, &r) || !sl_page_only(request, keys, &r) ||
		!sl_page_integer(
			request, "grace_ms", 0, UINT32_MAX - 1, UINT32_MAX, &grace, &r) ||
		!sl_page_line(request, &line, &r))
		return r;
	msg.job_stop.grace_ms = (uint32_t)grace;
	outcome = sl_inside_call(&line, &msg, SL_MSG_JOB_REPLY, &answer, &err);
	if (outcome != SL_INSIDE_OK)
		r = sl_page_failed(request, &line, outcome, &err);
	else if (!answer.job_reply.ok)
		r = job_refused(request, &answer.job_reply);
	else
		r = sl_page_answer(request, 200,
			json_pack("{s:b, s:o, s:o, s:s, s:i}", "ok", 1, "job",
				sl_tell_job_number(answer.job_reply.job), "name",
				sl_text_json(answer.job_reply.name), "state",
				sl_wire_job_state(answer.job_reply.state), "processes",
				(int)answer.job_reply.processes));
	sl_inside_close(&line);
	return r;
}

/* --- what it wrote ---------------------------------------------------------------------------- */

/* Sends the end of the file as plain text, which a browser displays and never runs. */
static enum MHD_Result send_end(struct sl_page_request *request, int file, uint64_t most)
{
	struct MHD_Response *response;
	struct stat about = {0};
	uint64_t size, from;
	char *text;
	ssize_t got;

	(void)fstat(file, &about);
	/* Not before the part that was dropped. */
	size = sl_min_u64(
		sl_sub_sat((uint64_t)about.st_size, (uint64_t)sl_file_first(file)), most);
	from = (uint64_t)about.st_size - size;
	text = malloc(size + 1);
	if (!text)
		return MHD_NO;
	got = pread(file, text, size, (off_t)from);
	response = MHD_create_response_from_buffer(
		got > 0 ? (size_t)got : 0, text, MHD_RESPMEM_MUST_FREE);
	if (!response) {
		free(text);
		return MHD_NO;
	}
	return sl_page_send(request, 200, response, "text/plain; charset=utf-8");
}

enum MHD_Result sl_page_job_log(struct sl_page_request *request)
{
	struct sl_error err = {0};
	union sl_msg msg, answer;
	struct sl_inside line;
	uint64_t task, most;
	enum MHD_Result r = MHD_NO;
	int outcome, file = -1;

	sl_wire_init(&msg, SL_MSG_JOB_LOG);
	if (!sl_page_id(request, &msg.job_log.job, &r) ||
		!sl_page_query_number(
			request, "task", SL_JOB_TASKS_MAX - 1, 0, &task, &r) ||
		!sl_page_query_number(
			request, "bytes", LOG_MOST, LOG_DEFAULT, &most, &r) ||
		!sl_page_line(request, &line, &r))
		return r;
	msg.job_log.task = (uint32_t)task;
	outcome = sl_inside_call_taking(
		&line, &msg, SL_MSG_JOB_LOG_FILE, SL_MSG_JOB_REPLY, &answer, &file, &err);
	if (outcome != SL_INSIDE_OK)
		r = sl_page_failed(request, &line, outcome, &err);
	else if (file < 0)
		r = job_refused(request, &answer.job_reply);
	else
		r = send_end(request, file, most);
	sl_closep(&file);
	sl_inside_close(&line);
	return r;
}
