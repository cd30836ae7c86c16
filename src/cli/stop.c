/* sluice stop: SIGTERM to all processes of a workload, and SIGKILL to those that are still there when
 * the grace is over. The daemon does it; this does not wait for the end. */
#include "cli/cli.h"
#include "cli/named.h"
#include "cli/text.h"
#include "cli/told.h"

#include <jansson.h>
#include <stdio.h>

#define DAY_MS   (24 * 3600 * 1000)
#define NO_GRACE SL_NS_NEVER

struct settings {
	const char *name;
	sl_ns grace;
	bool now, json;
};

const struct sl_option sl_verb_stop_options[] = {
	SL_OPT_OPERAND(struct settings, name, "NAME",
		"The workload: its name, or its id in sluice ps --json."),
	SL_OPT(struct settings, grace, DURATION, "TIME", 0, DAY_MS,
		"From SIGTERM to SIGKILL. Default: stop_grace of the daemon."),
	SL_OPT(struct settings, now, FLAG, NULL, 0, 0,
		"SIGKILL follows at once: --grace 0."),
	SL_OPT(struct settings, json, FLAG, NULL, 0, 0, "Print a JSON object."),
	SL_OPT_END,
};

static int print_json(const struct sl_msg_stop_reply *reply)
{
	return sl_rows_print_json(SL_VERB_stop,
		json_pack("{s:b, s:I, s:o, s:i, s:o}", "ok", 1, "workload",
			(json_int_t)reply->workload, "name", sl_text_json(reply->name),
			"processes", (int)reply->processes, "text",
			sl_text_json(reply->text)));
}

static int print(const struct settings *s, struct sl_msg_stop_reply *reply)
{
	unsigned int n = reply->processes;

	sl_text_tame(reply->name);
	printf("%s: SIGTERM to %u process%s", reply->name, n, n == 1 ? "" : "es");
	if (s->grace == NO_GRACE)
		fputs(", and SIGKILL when the daemon's stop_grace is over", stdout);
	else if (!s->grace)
		fputs(", and SIGKILL at once", stdout);
	else
		printf(", and SIGKILL after %g s", (double)s->grace / SL_S);
	putchar('\n');
	sl_told_warning(SL_VERB_stop, reply->text);
	return sl_cli_finish(SL_VERB_stop, SL_EXIT_OK);
}

int sl_verb_stop(int argc, char **argv)
{
	sl_cleanup(sl_conn_close) struct sl_conn conn = {.fd = -1};
	sl_cleanup(sl_rows_fini) struct sl_rows uses = {0};
	struct settings s = {.grace = NO_GRACE};
	const struct sl_msg_use_row *row;
	struct sl_error err = {0};
	union sl_msg ask, reply;
	int first, status;

	status = sl_cli_parse(SL_VERB_stop, &s, argc, argv, &first);
	if (status >= 0)
		return status;
	if (s.now && s.grace != NO_GRACE && s.grace)
		return sl_cli_fail(SL_VERB_stop, s.json, SL_EXIT_USAGE,
			"--now leaves no --grace; give one of them");
	if (s.now)
		s.grace = 0;
	status = sl_named_open(&conn, &uses, s.name, 2, "sluice stop", &row, &err);
	if (!status) {
		sl_wire_init(&ask, SL_MSG_STOP);
		ask.stop.workload = row->workload;
		ask.stop.grace_ms =
			s.grace == NO_GRACE ? UINT32_MAX : (uint32_t)(s.grace / SL_MS);
		sl_wire_str(ask.stop.name, sizeof(ask.stop.name), row->name);
		status = sl_conn_call(&conn, &ask, SL_MSG_STOP_REPLY, &reply, &err);
	}
	if (status)
		return sl_cli_fail(
			SL_VERB_stop, s.json, (enum sl_exit)status, "%s", err.text);
	if (!reply.stop_reply.ok)
		return sl_told_refusal(SL_VERB_stop, s.json, reply.stop_reply.reason,
			reply.stop_reply.text, NULL);
	return s.json ? print_json(&reply.stop_reply) : print(&s, &reply.stop_reply);
}
