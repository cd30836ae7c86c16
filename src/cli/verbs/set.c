/*
 * sluice set: changes request, limit, priority and rules of a workload while it runs.
 *
 * Only the named settings change. One message has all flags, so flags that are not named are sent
 * as the list of workloads has them.
 */
#include "cli/line/amounts.h"
#include "cli/line/cli.h"
#include "cli/conn/named.h"
#include "cli/line/text.h"
#include "cli/conn/told.h"

#include "daemon/report/tell.h"
#include "policy/node.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define DAY_MS      (24 * 3600 * 1000)
#define NO_PRIORITY INT64_MIN
#define NO_WAIT     SL_NS_NEVER

struct settings {
	const char *name;
	struct sl_amount request, limit, compute_request, compute_limit;
	int64_t priority;
	enum sl_switch swap, oom_first;
	sl_ns longest_wait, warm_after, detach_after, idle_grace;
	enum sl_switch keep_resident;
	const char *on_collision;
	uint32_t chain;
	bool json;
};

const struct sl_option sl_verb_set_options[] = {
	SL_OPT_OPERAND(struct settings, name, "NAME",
		"The workload: its name or ID, as sluice ps shows it."),
	SL_OPT(struct settings, request, AMOUNT, "AMOUNT", 0, 0,
		"GPU memory that is guaranteed, on each of its GPUs."),
	SL_OPT(struct settings, limit, AMOUNT, "AMOUNT", 0, 0,
		"The most it may hold on each of its GPUs."),
	SL_OPT_AS("compute-request", struct settings, compute_request, AMOUNT, "SHARE", 0,
		0,
		"Share of each GPU's time it has when others want it; 0: what their "
		"requests leave, in equal parts."),
	SL_OPT_AS("compute-limit", struct settings, compute_limit, AMOUNT, "SHARE", 0, 0,
		"The most of each GPU's time it gets; 0: all."),
	SL_OPT(struct settings, priority, INTEGER, "N", -SL_PRIORITY_MAX, SL_PRIORITY_MAX,
		"Higher is served first, -1000 to 1000."),
	SL_OPT_AS("keep-resident", struct settings, keep_resident, SWITCH, "on|off", 0, 0,
		"Whether its memory always stays on its GPUs."),
	SL_OPT(struct settings, swap, SWITCH, "on|off", 0, 0,
		"The opposite of --keep-resident."),
	SL_OPT_AS("oom-first", struct settings, oom_first, SWITCH, "on|off", 0, 0,
		"Its first demand that does not fit gets out-of-memory, the next waits."),
	SL_OPT_AS("on-collision", struct settings, on_collision, NAME, "CHAIN", 0, 0,
		"If memory above the request does not fit: swap, wait, priority or fail, "
		"or several with commas; default: the daemon's."),
	SL_OPT_AS("longest-wait", struct settings, longest_wait, DURATION, "TIME", 0,
		DAY_MS, "Longest wait for memory above the request; 0: the daemon's."),
	SL_OPT_AS("warm-after", struct settings, warm_after, DURATION, "TIME", 0,
		SL_WARM_AFTER_MS_MAX,
		"Move it to host memory after this idle time; 0: never."),
	SL_OPT_AS("detach-after", struct settings, detach_after, DURATION, "TIME", 0,
		SL_WARM_AFTER_MS_MAX,
		"Detach it after this idle time, and give its request up until its next "
		"call; 0: never."),
	SL_OPT_AS("idle-grace", struct settings, idle_grace, DURATION, "TIME", 0,
		SL_WARM_AFTER_MS_MAX,
		"Idle time after which others' bursts may move its memory within its "
		"request; 0: as soon as it is idle."),
	SL_OPT(struct settings, json, FLAG, NULL, 0, 0, "Print a JSON object."),
	SL_OPT_END,
};

static uint32_t which(const struct settings *s)
{
	return (s->request.kind ? SL_SET_REQUEST : 0) |
	       (s->limit.kind ? SL_SET_LIMIT : 0) |
	       (s->priority != NO_PRIORITY ? SL_SET_PRIORITY : 0) |
	       (s->swap || s->oom_first ? SL_SET_FLAGS : 0) |
	       (s->on_collision ? SL_SET_CHAIN : 0) |
	       (s->longest_wait != NO_WAIT ? SL_SET_WAIT : 0) |
	       (s->warm_after != SL_WARM_UNSET ? SL_SET_WARM : 0) |
	       (s->detach_after != SL_WARM_UNSET ? SL_SET_DETACH : 0) |
	       (s->compute_request.kind ? SL_SET_COMPUTE_REQUEST : 0) |
	       (s->compute_limit.kind ? SL_SET_COMPUTE_LIMIT : 0) |
	       (s->idle_grace != SL_WARM_UNSET ? SL_SET_GRACE : 0);
}

static int nothing_to_change(const struct settings *s)
{
	char names[240] = "";
	size_t used = 0;

	for (const struct sl_option *row = sl_verb_set_options; row->type; row++)
		if (row->type != SL_OPTION_OPERAND && row->type != SL_OPTION_FLAG)
			used += (size_t)snprintf(names + used, sizeof(names) - used,
				"%s--%s", used ? ", " : "", row->name);
	return sl_cli_fail(SL_VERB_set, s->json, SL_EXIT_USAGE,
		"nothing to change; give at least one of %s", names);
}

static bool on(enum sl_switch said, bool now)
{
	return said == SL_SWITCH_UNSET ? now : said == SL_SWITCH_ON;
}

static void fill(
	const struct settings *s, const struct sl_msg_use_row *row, union sl_msg *msg)
{
	bool swap = on(s->swap, !(row->flags & SL_USE_NO_SWAP));
	bool oom_first = on(s->oom_first, row->flags & SL_USE_OOM_FIRST);

	sl_wire_init(msg, SL_MSG_SET);
	msg->set.workload = row->workload;
	msg->set.which = which(s);
	msg->set.flags = s->chain << SL_RUN_CHAIN_SHIFT |
			 (swap ? 0 : SL_WORKLOAD_NO_SWAP) |
			 (oom_first ? SL_WORKLOAD_OOM_FIRST : 0);
	msg->set.request_kind = s->request.kind;
	msg->set.request_value = s->request.value;
	msg->set.limit_kind = s->limit.kind;
	msg->set.limit_value = s->limit.value;
	msg->set.compute_request_pm = sl_amounts_share_pm(&s->compute_request);
	msg->set.compute_limit_pm = sl_amounts_share_pm(&s->compute_limit);
	msg->set.priority_biased = s->priority == NO_PRIORITY
					   ? row->priority_biased
					   : (uint32_t)(s->priority + SL_PRIORITY_BIAS);
	if (s->longest_wait != NO_WAIT)
		msg->set.longest_wait_ms = (uint32_t)(s->longest_wait / SL_MS);
	if (s->warm_after != SL_WARM_UNSET)
		msg->set.warm_after_ms = s->warm_after / SL_MS;
	if (s->detach_after != SL_WARM_UNSET)
		msg->set.detach_after_ms = s->detach_after / SL_MS;
	if (s->idle_grace != SL_WARM_UNSET)
		msg->set.idle_grace_ms = s->idle_grace / SL_MS;
	sl_wire_str(msg->set.name, sizeof(msg->set.name), row->name);
}

static int32_t priority(const struct sl_msg_set_reply *reply)
{
	return (int32_t)(reply->priority_biased - SL_PRIORITY_BIAS);
}

static void set_share(json_t *object, const char *key, const struct sl_amount *share)
{
	if (object && share->kind)
		json_object_set_new(
			object, key, json_real(sl_amounts_share_pm(share) / 1000.0));
}

static int print_json(const struct settings *s, const struct sl_msg_set_reply *reply)
{
	json_t *object = json_pack("{s:b, s:I, s:o, s:I, s:I, s:i, s:b, s:b, s:I, s:o}",
		"ok", 1, "workload", (json_int_t)reply->workload, "name",
		sl_text_json(reply->name), "request_bytes",
		(json_int_t)reply->request_bytes, "limit_bytes",
		(json_int_t)reply->limit_bytes, "priority", (int)priority(reply), "swap",
		!(reply->flags & SL_WORKLOAD_NO_SWAP), "oom_first",
		!!(reply->flags & SL_WORKLOAD_OOM_FIRST), "over_bytes",
		(json_int_t)reply->over_bytes, "text", sl_text_json(reply->text));

	if (object)
		json_object_set_new(object, "on_collision", sl_tell_chain(reply->flags));
	if (object && s->warm_after != SL_WARM_UNSET)
		json_object_set_new(object, "warm_after_ms",
			json_integer((json_int_t)(s->warm_after / SL_MS)));
	if (object && s->detach_after != SL_WARM_UNSET)
		json_object_set_new(object, "detach_after_ms",
			json_integer((json_int_t)(s->detach_after / SL_MS)));
	set_share(object, "compute_request", &s->compute_request);
	set_share(object, "compute_limit", &s->compute_limit);
	if (object && s->idle_grace != SL_WARM_UNSET)
		json_object_set_new(object, "idle_grace_ms",
			json_integer((json_int_t)(s->idle_grace / SL_MS)));
	return sl_rows_print_json(SL_VERB_set, object);
}

/* The reply lacks them; they are as asked for. */
static void print_longest_wait(sl_ns wait)
{
	char text[32];

	if (wait == NO_WAIT)
		return;
	if (wait)
		printf(", longest wait %s", sl_duration_format(wait, text, sizeof(text)));
	else
		fputs(", longest wait the daemon's", stdout);
}

static void print_after(const char *what, sl_ns after)
{
	char text[32];

	if (after == SL_WARM_UNSET)
		return;
	if (after)
		printf(", %s after %s", what,
			sl_duration_format(after, text, sizeof(text)));
	else
		printf(", never %s for being idle", what);
}

static void print_share(const char *what, const struct sl_amount *share)
{
	if (share->kind)
		printf(", %s %g", what, sl_amounts_share_pm(share) / 1000.0);
}

static int print(const struct settings *s, struct sl_msg_set_reply *reply)
{
	char request[32], limit[32], over[32];

	sl_text_tame(reply->name);
	printf("%s: request %s, limit %s, priority %d%s%s", reply->name,
		sl_bytes_format(reply->request_bytes, request, sizeof(request)),
		sl_bytes_format(reply->limit_bytes, limit, sizeof(limit)),
		(int)priority(reply),
		reply->flags & SL_WORKLOAD_NO_SWAP ? ", no swap" : "",
		reply->flags & SL_WORKLOAD_OOM_FIRST ? ", out-of-memory first" : "");
	if (s->on_collision)
		printf(", on collision %s", s->on_collision);
	print_longest_wait(s->longest_wait);
	print_after("warm", s->warm_after);
	print_after("detached", s->detach_after);
	print_share("compute request", &s->compute_request);
	print_share("compute limit", &s->compute_limit);
	if (s->idle_grace != SL_WARM_UNSET)
		printf(", idle grace %s",
			sl_duration_format(s->idle_grace, limit, sizeof(limit)));
	putchar('\n');
	if (reply->over_bytes)
		printf("It holds %s above its limit. It keeps that until another "
		       "workload needs it, and gets no more until it is below; the "
		       "resolver 'priority', if configured, then stops it first.\n",
			sl_bytes_format(reply->over_bytes, over, sizeof(over)));
	sl_told_warning(SL_VERB_set, reply->text);
	return sl_cli_finish(SL_VERB_set, SL_EXIT_OK);
}

int sl_verb_set(int argc, char **argv)
{
	sl_cleanup(sl_conn_close) struct sl_conn conn = {.fd = -1};
	sl_cleanup(sl_rows_fini) struct sl_rows uses = {0};
	struct settings s = {.priority = NO_PRIORITY,
		.longest_wait = NO_WAIT,
		.warm_after = SL_WARM_UNSET,
		.detach_after = SL_WARM_UNSET,
		.idle_grace = SL_WARM_UNSET};
	const struct sl_msg_use_row *row;
	struct sl_error err = {0};
	union sl_msg ask, reply;
	int first, status;

	status = sl_cli_parse(SL_VERB_set, &s, argc, argv, &first);
	if (status >= 0)
		return status;
	if (s.keep_resident)
		s.swap = s.keep_resident == SL_SWITCH_ON ? SL_SWITCH_OFF : SL_SWITCH_ON;
	if (!which(&s))
		return nothing_to_change(&s);
	if (s.swap == SL_SWITCH_OFF && sl_amounts_goes(s.warm_after, s.detach_after))
		return sl_cli_fail(SL_VERB_set, s.json, SL_EXIT_USAGE,
			"%s and --swap off exclude each other: memory that must stay on "
			"the GPU never goes to the host; leave one of them out",
			sl_amounts_goes(s.warm_after, s.detach_after));
	status = sl_amounts_check_compute(
		SL_VERB_set, s.json, &s.compute_request, &s.compute_limit);
	if (status < 0)
		status = sl_amounts_chain(SL_VERB_set, s.json, s.on_collision, &s.chain);
	if (status < 0)
		status = sl_amounts_check(
			SL_VERB_set, s.json, &s.request, &s.limit, false);
	if (status >= 0)
		return status;
	status = sl_named_open(&conn, &uses, s.name, "sluice set", &row, &err);
	if (!status) {
		fill(&s, row, &ask);
		status = sl_conn_call(&conn, &ask, SL_MSG_SET_REPLY, &reply, &err);
	}
	if (status)
		return sl_cli_fail(
			SL_VERB_set, s.json, (enum sl_exit)status, "%s", err.text);
	if (!reply.set_reply.ok)
		return sl_told_refusal(SL_VERB_set, s.json, reply.set_reply.reason,
			reply.set_reply.text, NULL);
	return s.json ? print_json(&s, &reply.set_reply) : print(&s, &reply.set_reply);
}
