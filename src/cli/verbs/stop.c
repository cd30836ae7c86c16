/* sluice stop: SIGTERM to all processes of a workload, and SIGKILL to those left after the grace
 * period. It also removes a job from the queue. The daemon does both; the verb does not wait for
 * the end. */
#include "cli/line/cli.h"
#include "cli/conn/jobs.h"
#include "cli/conn/named.h"
#include "cli/line/text.h"
#include "cli/conn/told.h"

#include <jansson.h>
#include <stdio.h>

#define DAY_MS   (24 * 3600 * 1000)
#define NO_GRACE SL_NS_NEVER

struct settings {
	struct sl_strings names;
	sl_ns grace;
	bool now, json;
};

const struct sl_option sl_verb_stop_options[] = {
	SL_OPT_OPERANDS(struct settings, names, "NAME",
		"The workloads or jobs: their names or IDs, as sluice ps shows them."),
	SL_OPT(struct settings, grace, DURATION, "TIME", 0, DAY_MS,
		"Time from SIGTERM to SIGKILL. Default: stop_grace of the daemon."),
	SL_OPT(struct settings, now, FLAG, NULL, 0, 0,
		"SIGKILL follows at once: --grace 0."),
	SL_OPT(struct settings, json, FLAG, NULL, 0, 0, "Print a JSON object for each."),
	SL_OPT_END,
};

/* Fields common to the answers about jobs and workloads. print() replaces control characters in
 * name; print_json() keeps them. */
struct stopped {
	uint64_t workload, job; /* one of them is 0 */
	uint32_t processes, state;
	char *name, *text;
};

static int print_json(const struct stopped *stopped)
{
	json_t *object = json_pack("{s:b, s:I, s:o, s:i, s:o}", "ok", 1, "workload",
		(json_int_t)stopped->workload, "name", sl_text_json(stopped->name),
		"processes", (int)stopped->processes, "text",
		sl_text_json(stopped->text));

	if (object && stopped->job)
		json_object_set_new(object, "job", sl_tell_job_number(stopped->job));
	return sl_rows_print_json(SL_VERB_stop, object);
}

static int print(const struct settings *s, struct stopped *stopped)
{
	unsigned int n = stopped->processes;
	char title[32];

	sl_text_tame(stopped->name);
	if (stopped->job && !n) {
		printf("%s: %s %s\n", stopped->name,
			sl_jobs_title(stopped->job, title, sizeof(title)),
			stopped->state == SL_JOB_STOPPED ? "is out of the queue"
							 : "is being stopped");
	} else {
		printf("%s: SIGTERM to %u process%s", stopped->name, n,
			n == 1 ? "" : "es");
		if (s->grace == NO_GRACE)
			fputs(", and SIGKILL when the daemon's stop_grace is over",
				stdout);
		else if (!s->grace)
			fputs(", and SIGKILL at once", stdout);
		else
			printf(", and SIGKILL after %s",
				sl_duration_format(s->grace, title, sizeof(title)));
		putchar('\n');
	}
	sl_told_warning(SL_VERB_stop, stopped->text);
	return sl_cli_finish(SL_VERB_stop, SL_EXIT_OK);
}

static int say(const struct settings *s, struct stopped *stopped)
{
	return s->json ? print_json(stopped) : print(s, stopped);
}

static uint32_t grace_ms(const struct settings *s)
{
	return s->grace == NO_GRACE ? UINT32_MAX : (uint32_t)(s->grace / SL_MS);
}

static int stop_workload(
	const struct settings *s, struct sl_conn *conn, const struct sl_msg_use_row *row)
{
	struct sl_error err = {0};
	union sl_msg ask, reply;
	int status;

	sl_wire_init(&ask, SL_MSG_STOP);
	ask.stop.workload = row->workload;
	ask.stop.grace_ms = grace_ms(s);
	sl_wire_str(ask.stop.name, sizeof(ask.stop.name), row->name);
	status = sl_conn_call(conn, &ask, SL_MSG_STOP_REPLY, &reply, &err);
	if (status)
		return sl_cli_fail(
			SL_VERB_stop, s->json, (enum sl_exit)status, "%s", err.text);
	if (!reply.stop_reply.ok)
		return sl_told_refusal(SL_VERB_stop, s->json, reply.stop_reply.reason,
			reply.stop_reply.text, NULL);
	return say(s, &(struct stopped){.workload = reply.stop_reply.workload,
			      .processes = reply.stop_reply.processes,
			      .name = reply.stop_reply.name,
			      .text = reply.stop_reply.text});
}

static int stop_job(
	const struct settings *s, struct sl_conn *conn, const struct sl_msg_job_row *row)
{
	struct sl_error err = {0};
	union sl_msg ask, reply;
	int status;

	sl_wire_init(&ask, SL_MSG_JOB_STOP);
	ask.job_stop.job = row->job;
	ask.job_stop.grace_ms = grace_ms(s);
	sl_wire_str(ask.job_stop.name, sizeof(ask.job_stop.name), row->name);
	status = sl_conn_call(conn, &ask, SL_MSG_JOB_REPLY, &reply, &err);
	if (status)
		return sl_cli_fail(
			SL_VERB_stop, s->json, (enum sl_exit)status, "%s", err.text);
	if (!reply.job_reply.ok) {
		sl_text_tame(reply.job_reply.text);
		return sl_cli_fail(SL_VERB_stop, s->json, SL_EXIT_REFUSED, "refused: %s",
			reply.job_reply.text);
	}
	return say(s, &(struct stopped){.job = reply.job_reply.job,
			      .state = reply.job_reply.state,
			      .processes = reply.job_reply.processes,
			      .name = reply.job_reply.name,
			      .text = reply.job_reply.text});
}

/* It has ended already, which is what was asked for. */
static int say_over(const struct settings *s, uint64_t job, const char *name)
{
	char tamed[64], text[128];

	snprintf(tamed, sizeof(tamed), "%s", name);
	sl_text_tame(tamed);
	snprintf(text, sizeof(text), "%s has ended already", tamed);
	if (s->json)
		return print_json(
			&(struct stopped){.job = job, .name = tamed, .text = text});
	puts(text);
	return sl_cli_finish(SL_VERB_stop, SL_EXIT_OK);
}

static int stop_one(const struct settings *s, const char *name)
{
	sl_cleanup(sl_conn_close) struct sl_conn conn = {.fd = -1};
	sl_cleanup(sl_rows_fini) struct sl_rows rows = {0};
	struct sl_error err = {0};
	const union sl_msg *row;
	int status = sl_named_open_job(&conn, &rows, name, true, &row, &err);

	if (status == SL_EXIT_REFUSED && sl_named_has_ended(&conn, name))
		return say_over(s, 0, name);
	if (status)
		return sl_cli_fail(
			SL_VERB_stop, s->json, (enum sl_exit)status, "%s", err.text);
	if (row->head.type != SL_MSG_JOB_ROW)
		return stop_workload(s, &conn, &row->use_row);
	if (sl_tell_job_is_over(row->job_row.state))
		return say_over(s, row->job_row.job, row->job_row.name);
	return stop_job(s, &conn, &row->job_row);
}

int sl_verb_stop(int argc, char **argv)
{
	struct settings s = {.grace = NO_GRACE};
	int first, status, failed = 0;

	status = sl_cli_parse(SL_VERB_stop, &s, argc, argv, &first);
	if (status < 0 && s.now && s.grace != NO_GRACE && s.grace)
		status = sl_cli_fail(SL_VERB_stop, s.json, SL_EXIT_USAGE,
			"--now leaves no --grace; give one of them");
	if (s.now)
		s.grace = 0;
	/* Without a name the usage error comes once. */
	for (size_t i = 0; status < 0 && failed != SL_EXIT_NO_DAEMON &&
			   i < sl_max_u64(s.names.count, 1);
		i++) {
		int one = stop_one(&s, s.names.count ? s.names.all[i] : NULL);

		failed = failed ? failed : one;
	}
	sl_strings_fini(&s.names);
	return status < 0 ? failed : status;
}
