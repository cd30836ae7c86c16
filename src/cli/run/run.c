/*
 * sluice run: registers this process as a workload, then becomes the program.
 *
 * No wrapper process stays behind: exec keeps the pid that the daemon watches by a pidfd, and
 * exit status, signals, terminal and job control are the program's own.
 *
 * All local checks come before the workload is requested, so a refusal never creates a workload
 * for a moment. While they run, the daemon answers HELLO.
 */
#include "base/library.h"
#include "cli/line/cli.h"
#include "cli/conn/conn.h"
#include "cli/run/container.h"
#include "cli/run/launch.h"
#include "cli/run/run.h"
#include "cli/run/wait.h"
#include "cli/line/program.h"
#include "cli/line/text.h"
#include "cli/conn/told.h"

#include "base/file.h"
#include "policy/node.h"
#include "wire/wire.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct settings {
	struct sl_launch launch; /* first: see SL_LAUNCH_OPTIONS */
	bool wait;
	bool holds;       /* another process becomes CMD, as it is */
	size_t container; /* words up to `podman run` or the like; 0: an ordinary program */
	char library[SL_PATH_MAX];
	char by_loader[SL_PATH_MAX + 64]; /* the same, in the form for LD_PRELOAD */
};

const struct sl_option sl_verb_run_options[] = {
	SL_LAUNCH_OPTIONS(
		"0", "all", "Print the daemon's answer as JSON, on standard error."),
	SL_OPT(struct settings, wait, FLAG, NULL, 0, 0,
		"If it cannot start at once, wait until it can."),
	SL_LAUNCH_AMOUNT,
	SL_OPT_WORDS("CMD",
		"The program; its exit status and signals are those of sluice run."),
	SL_OPT_END,
};

static int fill_request(const struct sl_launch *s, char *const *words, union sl_msg *msg)
{
	char command[sizeof(msg->run.command)] = "";

	sl_wire_init(msg, SL_MSG_RUN);
	msg->run.request_kind = s->request.kind;
	msg->run.request_value = s->request.value;
	msg->run.limit_kind = s->limit.kind;
	msg->run.limit_value = s->limit.value;
	if (s->warm_after != SL_WARM_UNSET)
		msg->run.warm_after_ms = s->warm_after / SL_MS;
	if (s->detach_after != SL_WARM_UNSET)
		msg->run.detach_after_ms = s->detach_after / SL_MS;
	if (s->idle_grace != SL_WARM_UNSET)
		msg->run.idle_grace_ms = s->idle_grace / SL_MS;
	msg->run.compute_request_pm = sl_amounts_share_pm(&s->compute_request);
	msg->run.compute_limit_pm = sl_amounts_share_pm(&s->compute_limit);
	msg->run.gpu_count = (uint32_t)s->gpus;
	msg->run.priority_biased = (uint32_t)(s->priority + SL_PRIORITY_BIAS);
	msg->run.flags = sl_launch_flags(s);
	msg->run.longest_wait_ms = (uint32_t)(s->longest_wait / SL_MS);
	sl_wire_str(msg->run.name, sizeof(msg->run.name), s->name ? s->name : "");
	sl_wire_str(msg->run.project, sizeof(msg->run.project), s->project);
	sl_launch_join(command, sizeof(command), words);
	sl_wire_str(msg->run.command, sizeof(msg->run.command), command);
	return sl_launch_visible(SL_VERB_run, s->json, msg->run.visible,
		sizeof(msg->run.visible), &msg->run.flags);
}

/* The daemon's text names the request, which the user may not have written. NULL: nothing to
 * add. */
static const char *hint(const struct sl_launch *s, uint32_t reason)
{
	bool taken =
		reason == SL_REASON_REQUESTS_TAKEN || reason == SL_REASON_COMPUTE_TAKEN;

	if (!taken && reason != SL_REASON_REQUEST_TOO_LARGE)
		return NULL;
	if (reason != SL_REASON_COMPUTE_TAKEN && !s->request.kind && s->limit.kind)
		return taken ? "--limit alone is also the request; add --request 0, or "
			       "lower it; --wait waits until it fits, and sluice submit "
			       "queues it"
			     : "--limit alone is also the request; add --request 0, or "
			       "lower it";
	return taken ? "--wait waits until it fits; sluice submit queues it in the "
		       "background"
		     : NULL;
}

static void print_admission(const struct sl_msg_run_reply *reply)
{
	json_t *object = json_pack("{s:b, s:I, s:o, s:I, s:I, s:s, s:o*}", "ok", 1,
		"workload", (json_int_t)reply->workload, "name",
		sl_text_json(reply->name), "request_bytes",
		(json_int_t)reply->request_bytes, "limit_bytes",
		(json_int_t)reply->limit_bytes, "visible_devices", reply->visible_out,
		"warning", reply->text[0] ? sl_text_json(reply->text) : NULL);

	if (!object)
		return;
	json_dumpf(object, stderr, 0);
	fputc('\n', stderr);
	json_decref(object);
}

/* Sets the environment of the program and its children. False when out of memory. */
static bool set_environment(
	const char *socket, const char *by_loader, const struct sl_msg_run_reply *reply)
{
	sl_cleanup(sl_freep) char *preload =
		sl_library_preload(by_loader, getenv("LD_PRELOAD"));
	char token[33];

	sl_wire_token_format(reply->token, token);
	/* Integers by PCI bus order: UUIDs break programs that parse the list (vllm#46132). */
	return preload && !setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1) &&
	       !setenv("CUDA_VISIBLE_DEVICES", reply->visible_out, 1) &&
	       !setenv("SLUICE_SOCKET", socket, 1) &&
	       !setenv("SLUICE_WORKLOAD", token, 1) && !setenv("LD_PRELOAD", preload, 1);
}

/* Gives the workload a socket of its own and *words the options by which the container gets it.
 * -1 to go on, else the exit status. */
static int enter(const struct settings *settings, struct sl_conn *conn,
	const struct sl_msg_run_reply *got, char ***words)
{
	const struct sl_launch *s = &settings->launch;
	struct sl_error err = {0};
	union sl_msg ask, answer;
	int status;

	sl_wire_init(&ask, SL_MSG_ENTRY_OPEN);
	ask.entry_open.workload = got->workload;
	status = sl_conn_call(conn, &ask, SL_MSG_ENTRY_REPLY, &answer, &err);
	if (status)
		return sl_cli_fail(
			SL_VERB_run, s->json, (enum sl_exit)status, "%s", err.text);
	if (!answer.entry_reply.ok)
		return sl_cli_fail(SL_VERB_run, s->json, SL_EXIT_REFUSED, "%s",
			answer.entry_reply.text);
	if (!sl_run_container_words(*words, settings->container, &answer.entry_reply,
		    settings->library, words, &err))
		return sl_cli_fail(SL_VERB_run, s->json, SL_EXIT_SYSTEM, "%s", err.text);
	return -1;
}

static int become(const struct sl_launch *s, char **words)
{
	int error;

	execvp(words[0], words);
	error = errno;
	return sl_cli_fail(SL_VERB_run, s->json,
		error == ENOENT ? SL_EXIT_NOT_FOUND : SL_EXIT_NOT_EXECUTABLE,
		"%.200s: %s", words[0], strerror(error));
}

/* -1 to go on, else the exit status. A signal ends the wait and the process. */
static int get_place(struct settings *settings, struct sl_conn *conn, union sl_msg *ask,
	struct sl_msg_run_reply *got)
{
	const struct sl_launch *s = &settings->launch;
	struct sl_error err = {0};
	union sl_msg reply;
	int status = SL_EXIT_OK;

	if (!settings->wait)
		status = sl_conn_send(conn, ask, &err);
	/* Test-loads the library while the daemon writes its journal. */
	sl_library_by_loader(
		settings->library, settings->by_loader, sizeof(settings->by_loader));
	if (!status && settings->wait)
		status = sl_run_wait(conn, ask, s->json, &reply, &err);
	else if (!status)
		status = sl_conn_receive(conn, SL_MSG_RUN_REPLY, &reply, &err);
	if (status)
		return sl_cli_fail(
			SL_VERB_run, s->json, (enum sl_exit)status, "%s", err.text);
	*got = reply.run_reply;
	if (got->ok)
		return -1;
	if (got->reason == SL_REASON_STOP_ASKED) {
		sl_text_tame(got->text);
		return sl_cli_fail(SL_VERB_run, s->json, (enum sl_exit)(128 + SIGTERM),
			"stopped: %s", got->text);
	}
	return sl_told_refusal(
		SL_VERB_run, s->json, got->reason, got->text, hint(s, got->reason));
}

/* Can Sluice work in the command, or in the container that it starts? As sl_launch_command. */
static int judge(const struct settings *settings, char **words)
{
	char path[SL_PATH_MAX];

	if (settings->container && sl_program_inspect(words[0], path, sizeof(path),
					   NULL) == SL_PROGRAM_UNFIT)
		return -1;
	return sl_launch_command(SL_VERB_run, &settings->launch, words);
}

/* -1 to go on, else the exit status. */
static int prepare(struct settings *settings, char **words, union sl_msg *ask)
{
	const struct sl_launch *s = &settings->launch;
	struct sl_error err = {0};
	int status;

	settings->container = settings->holds ? 0 : sl_run_container(words);
	status = judge(settings, words);
	if (status >= 0)
		return status;
	if (sl_library_find(settings->library, sizeof(settings->library), &err))
		return sl_cli_fail(SL_VERB_run, s->json, SL_EXIT_INSTALL, "%s", err.text);
	return fill_request(s, words, ask);
}

/* -1 to go on, else the exit status. */
static int take_place(struct settings *settings, char ***words)
{
	const struct sl_launch *s = &settings->launch;
	sl_cleanup(sl_conn_close) struct sl_conn conn = {.fd = -1};
	struct sl_error unmet = {0};
	struct sl_msg_run_reply got;
	union sl_msg ask;
	int meets = sl_conn_begin(&conn, &unmet);
	int status = prepare(settings, *words, &ask);

	if (status >= 0)
		return status;
	if (!meets)
		meets = sl_conn_await(&conn, &unmet);
	if (meets)
		return sl_cli_fail(
			SL_VERB_run, s->json, (enum sl_exit)meets, "%s", unmet.text);
	status = get_place(settings, &conn, &ask, &got);
	if (status >= 0)
		return status;
	if (s->json)
		print_admission(&got);
	else
		sl_told_warning(SL_VERB_run, got.text);
	if (settings->container)
		return enter(settings, &conn, &got, words);
	if (!set_environment(conn.socket, settings->by_loader, &got))
		return sl_cli_fail(SL_VERB_run, s->json, SL_EXIT_SYSTEM, "out of memory");
	return -1;
}

/* Likewise. *words: the command that the process becomes. */
static int begin(struct settings *settings, int argc, char **argv, char ***words)
{
	struct sl_launch *s = &settings->launch;
	int first = 0, status;

	static_assert(offsetof(struct settings, launch) == 0, "the rows are of both");
	status = sl_cli_parse(SL_VERB_run, settings, argc, argv, &first);
	*words = argv + first;
	if (status < 0)
		status = sl_launch_words(SL_VERB_run, s->json, *words);
	if (status < 0)
		status = sl_launch_amounts(SL_VERB_run, s);
	return status >= 0 ? status : take_place(settings, words);
}

int sl_run_begin(int argc, char **argv)
{
	struct settings settings = {.launch = SL_LAUNCH_PRESET, .holds = true};
	char **words;

	return begin(&settings, argc, argv, &words);
}

int sl_verb_run(int argc, char **argv)
{
	struct settings settings = {.launch = SL_LAUNCH_PRESET};
	char **words;
	int status = begin(&settings, argc, argv, &words);

	return status >= 0 ? status : become(&settings.launch, words);
}
