/*
 * sluice resource: names requests for `run` and `submit` (launch.c).
 */
#include "cli/line/amounts.h"
#include "cli/line/cli.h"
#include "cli/conn/rows.h"
#include "cli/conn/state.h"
#include "cli/line/table.h"
#include "cli/line/text.h"

#include "daemon/report/tell.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct settings {
	const char *action, *name, *project;
	struct sl_amount request, limit;
	int64_t gpus, priority;
	bool json;
};

const struct sl_option sl_verb_resource_options[] = {
	SL_OPT_OPERAND(
		struct settings, action, "ACTION", "apply NAME, list or delete NAME."),
	SL_OPT_WORDS("NAME", "The compute resource. Root's are for all users."),
	SL_OPT(struct settings, request, AMOUNT, "AMOUNT", 0, 0,
		"With apply: guaranteed GPU memory, on each GPU."),
	SL_OPT(struct settings, limit, AMOUNT, "AMOUNT", 0, 0,
		"With apply: the most it may hold on each GPU. Default: the request."),
	SL_OPT(struct settings, gpus, INTEGER, "N", 1, 32,
		"With apply: number of GPUs. Default 1."),
	SL_OPT(struct settings, priority, INTEGER, "N", -SL_PRIORITY_MAX, SL_PRIORITY_MAX,
		"With apply: higher is served first. Default 0."),
	SL_OPT(struct settings, project, NAME, "PROJECT", 0, 0,
		"With apply: the project that may use it. Default: any."),
	SL_OPT_JSON(struct settings),
	SL_OPT_END,
};

static int fail(const struct settings *s, int status, const char *text)
{
	return sl_cli_fail(SL_VERB_resource, s->json, (enum sl_exit)status, "%s", text);
}

/* Sends the message and prints the result. done: the word for success. */
static int change(const struct settings *s, const union sl_msg *msg, const char *done)
{
	sl_cleanup(sl_conn_close) struct sl_conn conn = {.fd = -1};
	struct sl_error err = {0};
	union sl_msg reply;
	int status = sl_conn_open(&conn, &err);

	if (!status)
		status = sl_conn_call(&conn, msg, SL_MSG_RESOURCE_REPLY, &reply, &err);
	if (status)
		return fail(s, status, err.text);
	sl_text_tame(reply.resource_reply.text);
	if (!reply.resource_reply.ok)
		return sl_cli_fail(SL_VERB_resource, s->json, SL_EXIT_REFUSED,
			"refused: %s", reply.resource_reply.text);
	if (s->json)
		return sl_rows_print_json(SL_VERB_resource,
			json_pack("{s:b, s:s}", "ok", 1, "name", s->name));
	printf("compute resource %s is %s\n", s->name, done);
	return sl_cli_finish(SL_VERB_resource, SL_EXIT_OK);
}

static int apply(const void *settings)
{
	const struct settings *s = settings;
	union sl_msg msg;
	int status = sl_amounts_check(
		SL_VERB_resource, s->json, &s->request, &s->limit, false);

	if (status >= 0)
		return status;
	sl_wire_init(&msg, SL_MSG_RESOURCE_PUT);
	msg.resource_put.request_kind = s->request.kind;
	msg.resource_put.request_value = s->request.value;
	msg.resource_put.limit_kind = s->limit.kind;
	msg.resource_put.limit_value = s->limit.value;
	msg.resource_put.gpu_count = (uint32_t)s->gpus;
	msg.resource_put.priority_biased =
		(uint32_t)(s->priority + (int64_t)SL_PRIORITY_BIAS);
	sl_wire_str(msg.resource_put.name, sizeof(msg.resource_put.name), s->name);
	sl_wire_str(msg.resource_put.project, sizeof(msg.resource_put.project),
		s->project ? s->project : "");
	return change(s, &msg, "defined");
}

static int delete (const void *settings)
{
	const struct settings *s = settings;
	union sl_msg msg;

	sl_wire_init(&msg, SL_MSG_RESOURCE_DELETE);
	msg.resource_delete.owner = UINT64_MAX;
	sl_wire_str(msg.resource_delete.name, sizeof(msg.resource_delete.name), s->name);
	return change(s, &msg, "deleted");
}

enum { NAME, OWNER, PROJECT, REQUEST, LIMIT, GPUS, PRIORITY, COLUMNS };

static bool add_row(struct sl_table *table, const struct sl_msg_resource_row *row)
{
	const struct sl_amount request = {
		.kind = row->request_kind, .value = row->request_value};
	const struct sl_amount limit = {
		.kind = row->limit_kind, .value = row->limit_value};
	char name[64], user[64], text[32];

	snprintf(name, sizeof(name), "%s", row->name);
	sl_text_tame(name);
	sl_table_set(table, NAME, "%s", name);
	sl_table_set(table, OWNER, "%s",
		row->shared ? "for all" : sl_state_user(row->owner, user, sizeof(user)));
	sl_table_set(table, PROJECT, "%s", row->project[0] ? row->project : "-");
	sl_table_set(table, REQUEST, "%s",
		request.kind ? sl_amount_format(&request, text, sizeof(text)) : "-");
	sl_table_set(table, LIMIT, "%s",
		limit.kind ? sl_amount_format(&limit, text, sizeof(text)) : "-");
	sl_table_set(table, GPUS, "%u", row->gpu_count);
	sl_table_set(table, PRIORITY, "%lld",
		(long long)row->priority_biased - (long long)SL_PRIORITY_BIAS);
	return sl_table_end_row(table);
}

static int list(const void *settings)
{
	const struct settings *s = settings;
	static const struct sl_column columns[COLUMNS] = {
		[NAME] = {"NAME", false, 8, 0},
		[OWNER] = {"USER", false, 0, 1},
		[PROJECT] = {"PROJECT", false, 0, 2},
		[REQUEST] = {"REQUEST", true, 0, 0},
		[LIMIT] = {"LIMIT", true, 0, 0},
		[GPUS] = {"GPUS", true, 0, 0},
		[PRIORITY] = {"PRIO", true, 0, 0},
	};
	sl_cleanup(sl_table_freep) struct sl_table *table = NULL;
	sl_cleanup(sl_rows_fini) struct sl_rows rows = {0};
	struct sl_error err = {0};
	int status = sl_rows_fetch(&rows, SL_LIST_RESOURCES, &err);
	json_t *array;

	if (status)
		return fail(s, status, err.text);
	if (s->json) {
		array = json_array();
		for (size_t i = 0; i < rows.count; i++)
			json_array_append_new(
				array, sl_tell_resource(&rows.all[i].resource_row));
		return sl_rows_print_json(SL_VERB_resource, array);
	}
	table = sl_table_new(columns, COLUMNS);
	for (size_t i = 0; i < rows.count && table; i++)
		if (!add_row(table, &rows.all[i].resource_row))
			table = sl_table_free(table);
	if (!table)
		return fail(s, SL_EXIT_SYSTEM, "out of memory");
	sl_table_print(table, sl_table_terminal_width(STDOUT_FILENO), stdout);
	return sl_cli_finish(SL_VERB_resource, SL_EXIT_OK);
}

static const struct sl_cli_action actions[] = {
	{"apply", "NAME", true, apply},
	{"list", NULL, false, list},
	{"delete", "NAME", true, delete},
	{NULL, NULL, false, NULL},
};

int sl_verb_resource(int argc, char **argv)
{
	struct settings s = {.gpus = 1};

	return sl_cli_act(SL_VERB_resource, actions, &s, &s.action, &s.name, argc, argv);
}
