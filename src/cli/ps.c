/*
 * sluice ps: one line per workload and GPU.
 *
 * USED is what counts against request and limit: backing and hidden bytes together, so that the
 * three columns can be compared by eye. --json has them apart.
 */
#include "cli/cli.h"
#include "cli/conn.h"
#include "cli/rows.h"
#include "cli/table.h"

#include "base/clock.h"

#include <jansson.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct settings {
	bool json;
	sl_ns watch;
};

const struct sl_option sl_verb_ps_options[] = {
	SL_OPT(struct settings, json, FLAG, NULL, 0, 0, "Print a JSON array."),
	SL_OPT(struct settings, watch, SECONDS, "SECONDS", 1000, 3600000,
		"Print again every SECONDS (1) until interrupted."),
	SL_OPT_END,
};

/* Columns and their fate on a narrow terminal. Printed to a pipe all of them stay, in this order. */
enum {
	NAME,
	PROJECT,
	USER,
	GPU,
	PRIO,
	STATE,
	REQUEST,
	LIMIT,
	USED,
	WAITING,
	CLIENTS,
	AGE,
	COMMAND,
	COLUMNS
};
static const struct sl_column columns[COLUMNS] = {
	[NAME] = {"NAME", false, 10, 0},
	[PROJECT] = {"PROJECT", false, 7, 1},
	[USER] = {"USER", false, 4, 4},
	[GPU] = {"GPU", true, 0, 0},
	[PRIO] = {"PRIO", true, 0, 3},
	[STATE] = {"STATE", false, 0, 0},
	[REQUEST] = {"REQUEST", true, 0, 0},
	[LIMIT] = {"LIMIT", true, 0, 0},
	[USED] = {"USED", true, 0, 0},
	[WAITING] = {"WAITING", true, 0, 0},
	[CLIENTS] = {"CLIENTS", true, 0, 2},
	[AGE] = {"AGE", true, 0, 6},
	[COMMAND] = {"COMMAND", false, 8, 5},
};

static const char *state_name(uint32_t state)
{
	static const char *const names[SL_STATES] = {
		[SL_STATE_RESERVED] = "reserved",
		[SL_STATE_BOUND] = "bound",
		[SL_STATE_WAITING] = "waiting",
		[SL_STATE_GONE] = "gone",
	};

	return state < SL_STATES ? names[state] : "?";
}

static const char *user_name(uint32_t uid, char *buf, size_t size)
{
	const struct passwd *user = getpwuid(uid);

	if (user)
		snprintf(buf, size, "%s", user->pw_name);
	else
		snprintf(buf, size, "%u", uid);
	return buf;
}

static int32_t priority(const struct sl_msg_use_row *row)
{
	return (int32_t)(row->priority_biased - SL_PRIORITY_BIAS);
}

static bool add_row(struct sl_table *table, const struct sl_msg_use_row *row)
{
	char text[64];

	sl_table_set(table, NAME, "%s", row->name);
	sl_table_set(table, PROJECT, "%s", row->project);
	sl_table_set(table, USER, "%s", user_name(row->uid, text, sizeof(text)));
	sl_table_set(table, GPU, "%u", row->gpu);
	sl_table_set(table, PRIO, "%d", priority(row));
	sl_table_set(table, STATE, "%s", state_name(row->state));
	sl_table_set(table, REQUEST, "%s",
		sl_table_bytes(row->request_bytes, text, sizeof(text)));
	sl_table_set(
		table, LIMIT, "%s", sl_table_bytes(row->limit_bytes, text, sizeof(text)));
	sl_table_set(table, USED, "%s",
		sl_table_bytes(
			row->backing_bytes + row->hidden_bytes, text, sizeof(text)));
	sl_table_set(table, WAITING, "%s",
		row->waiting ? sl_table_bytes(row->waiting_bytes, text, sizeof(text))
			     : "-");
	sl_table_set(table, CLIENTS, "%u", row->clients);
	sl_table_set(table, AGE, "%s", sl_table_age(row->age_ms, text, sizeof(text)));
	sl_table_set(table, COMMAND, "%s", row->command);
	return sl_table_end_row(table);
}

/* The name that a GPU keeps when the order of GPUs changes; NULL if the daemon lists it no more. */
static const char *gpu_uuid(const struct sl_rows *gpus, uint32_t gpu, char text[41])
{
	for (size_t i = 0; i < gpus->count; i++)
		if (gpus->all[i].gpu_row.gpu == gpu) {
			sl_wire_uuid_format(gpus->all[i].gpu_row.uuid, text);
			return text;
		}
	return NULL;
}

static json_t *to_json(const struct sl_msg_use_row *row, const struct sl_rows *gpus)
{
	char user[64], uuid[41];

	user_name(row->uid, user, sizeof(user));
	return json_pack(
		"{s:I, s:s%, s:s%, s:s, s:i, s:i, s:i, s:s?, s:i, s:s, s:I, s:I, s:I, "
		"s:I, s:I, "
		"s:I, s:i, s:i, s:I, s:s%}",
		"workload", (json_int_t)row->workload, "name", row->name,
		strlen(row->name), "project", row->project, strlen(row->project), "user",
		user, "uid", (int)row->uid, "pid", (int)row->pid, "gpu", (int)row->gpu,
		"gpu_uuid", gpu_uuid(gpus, row->gpu, uuid), "priority",
		(int)priority(row), "state", state_name(row->state), "request_bytes",
		(json_int_t)row->request_bytes, "limit_bytes",
		(json_int_t)row->limit_bytes, "backing_bytes",
		(json_int_t)row->backing_bytes, "hidden_bytes",
		(json_int_t)row->hidden_bytes, "dying_bytes",
		(json_int_t)row->dying_bytes, "waiting_bytes",
		(json_int_t)row->waiting_bytes, "waiting", (int)row->waiting, "clients",
		(int)row->clients, "age_ms", (json_int_t)row->age_ms, "command",
		row->command, strlen(row->command));
}

static int print_once(const struct settings *s, bool clear)
{
	sl_cleanup(sl_rows_fini) struct sl_rows rows = {0};
	sl_cleanup(sl_rows_fini) struct sl_rows gpus = {0};
	sl_cleanup(sl_table_freep) struct sl_table *table = NULL;
	struct sl_error err = {0};
	int status = sl_rows_fetch_two(
		&rows, SL_LIST_USES, s->json ? &gpus : NULL, SL_LIST_GPUS, &err);

	if (status)
		return sl_cli_fail(
			SL_VERB_ps, s->json, (enum sl_exit)status, "%s", err.text);
	if (s->json) {
		json_t *array = json_array();

		for (size_t i = 0; i < rows.count; i++)
			json_array_append_new(
				array, to_json(&rows.all[i].use_row, &gpus));
		return sl_rows_print_json(SL_VERB_ps, array);
	}
	table = sl_table_new(columns, COLUMNS);
	for (size_t i = 0; table && i < rows.count; i++)
		if (!add_row(table, &rows.all[i].use_row))
			table = sl_table_free(table);
	if (!table)
		return sl_cli_fail(SL_VERB_ps, false, SL_EXIT_SYSTEM, "out of memory");
	if (clear)
		fputs("\033[H\033[J", stdout);
	sl_table_print(table, sl_table_terminal_width(STDOUT_FILENO), stdout);
	return sl_cli_finish(SL_VERB_ps, SL_EXIT_OK);
}

int sl_verb_ps(int argc, char **argv)
{
	struct settings s = {0};
	bool terminal = isatty(STDOUT_FILENO);
	int first, status;

	status = sl_cli_parse(SL_VERB_ps, &s, argc, argv, &first);
	if (status >= 0)
		return status;
	for (;;) {
		status = print_once(&s, s.watch && terminal && !s.json);
		if (!s.watch || status || ferror(stdout))
			return status;
		sl_clock_sleep(s.watch);
	}
}
