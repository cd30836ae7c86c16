/*
 * sluice project: the projects of a daemon, from files and as files.
 *
 * This process reads the file, so an error names the line and the daemon never parses a user's
 * YAML. The daemon reports an error that only it can find (a parent that is missing there) with the
 * project's name; this file then adds the line.
 */
#include "cli/line/cli.h"
#include "cli/conn/project_use.h"
#include "cli/conn/ps_jobs.h"
#include "cli/conn/rows.h"
#include "cli/conn/state.h"
#include "cli/line/table.h"
#include "cli/line/text.h"
#include "cli/conn/told.h"

#include "daemon/projects/projects.h"
#include "daemon/projects/wire.h"
#include "policy/quota/explain.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct settings {
	const char *action, *word;
	bool json;
};

const struct sl_option sl_verb_project_options[] = {
	SL_OPT_OPERAND(struct settings, action, "ACTION",
		"apply FILE, list, show [NAME] or delete NAME."),
	SL_OPT_WORDS(
		"FILE", "Projects in YAML that are added or changed; -: standard input."),
	SL_OPT_WORDS("NAME", "The project; without it show prints all."),
	SL_OPT_JSON(struct settings),
	SL_OPT_END,
};

static int fail(const struct settings *s, int status, const char *text)
{
	return sl_cli_fail(SL_VERB_project, s->json, (enum sl_exit)status, "%s", text);
}

/* --- Changes. --- */

static int send_all(const struct sl_projects *set, struct sl_conn *conn,
	union sl_msg *reply, struct sl_error *err)
{
	int status = SL_EXIT_OK;

	for (size_t i = 0; !status && i < set->count; i++) {
		union sl_msg msg;

		sl_wire_init(&msg, SL_MSG_PROJECT_PUT);
		sl_project_to_put(&set->rows[i], &msg.project_put);
		msg.project_put.index = (uint32_t)i;
		msg.project_put.count = (uint32_t)set->count;
		if (i + 1 < set->count)
			status = sl_conn_send(conn, &msg, err);
		else
			status = sl_conn_call(
				conn, &msg, SL_MSG_PROJECT_REPLY, reply, err);
	}
	return status;
}

static int print_json(const struct sl_msg_project_reply *said)
{
	return sl_rows_print_json(SL_VERB_project,
		json_pack("{s:b, s:I, s:I, s:I}", "ok", 1, "added",
			(json_int_t)said->added, "changed", (json_int_t)said->changed,
			"removed", (json_int_t)said->removed));
}

/* Prints the daemon's text with the project's line in the file, if it is there. */
static int refused(const struct settings *s, const struct sl_projects *set,
	struct sl_msg_project_reply *said)
{
	const struct sl_project_row *row =
		set && said->name[0] ? sl_projects_find(set, said->name) : NULL;

	sl_text_tame(said->text);
	if (!row)
		return fail(s, SL_EXIT_REFUSED, said->text);
	return sl_cli_fail(SL_VERB_project, s->json, SL_EXIT_REFUSED, "%s, line %lu: %s",
		strcmp(s->word, "-") == 0 ? "standard input" : s->word, row->line,
		said->text);
}

/* Did the workload exist before, and could its GPUs be taken back then? */
static bool gave_before(
	const struct sl_project_use *before, const struct sl_msg_use_row *row)
{
	for (size_t i = 0; i < before->uses.count; i++) {
		const struct sl_msg_use_row *was = &before->uses.all[i].use_row;

		if (was->workload == row->workload && was->gpu == row->gpu)
			return sl_project_use_gives(before, was);
	}
	return true;
}

/* Warns now about workloads that can be parked from now on. */
static void say_who_gives(
	const struct sl_project_use *before, const struct sl_project_use *after)
{
	uint64_t last = 0;

	for (size_t i = 0; i < after->uses.count; i++) {
		const struct sl_msg_use_row *row = &after->uses.all[i].use_row;
		const struct sl_msg_job_row *job = sl_ps_job_of(&after->jobs, row);
		char user[64], name[64];

		if (row->workload == last || !sl_project_use_gives(after, row) ||
			gave_before(before, row))
			continue;
		last = row->workload;
		snprintf(name, sizeof(name), "%s", row->name);
		sl_text_tame(name);
		printf("%s of %s can now be %s when another project claims its quota: "
		       "project %s is over its own\n",
			name, sl_state_user(row->uid, user, sizeof(user)),
			job && job->flags & SL_SUBMIT_TERMINATES
				? "ended and started anew"
				: "parked",
			row->project[0] ? row->project : SL_PROJECT_DEFAULT);
	}
}

/* Projects at the top include those below them. */
static void warn_of_too_much(const struct sl_project_use *use)
{
	int64_t quotas = 0;
	char amount[32], text[192];

	for (size_t i = 0; i < use->projects.count; i++) {
		struct sl_project_row row;

		sl_project_from_row(&use->projects.all[i].project_row, &row);
		if (!row.parent[0] && row.quota.of[SL_RES_GPU] != SL_QUOTA_ALL)
			quotas += row.quota.of[SL_RES_GPU];
	}
	if (!use->gpus.count || quotas <= (int64_t)use->gpus.count * 1000)
		return;
	(void)snprintf(text, sizeof(text),
		"the projects' quotas add up to %s GPUs, and sluiced manages %zu: they "
		"cannot all be met at once; lower gpu.quota of some",
		sl_project_amount(SL_RES_GPU, quotas, amount, sizeof(amount)),
		use->gpus.count);
	sl_told_warning(SL_VERB_project, text);
}

static int apply_set(const struct settings *s, const struct sl_projects *set)
{
	sl_cleanup(sl_project_use_fini) struct sl_project_use before = {0}, after = {0};
	sl_cleanup(sl_conn_close) struct sl_conn conn = {.fd = -1};
	struct sl_error err = {0};
	union sl_msg reply;
	int status = sl_conn_open(&conn, &err);
	const struct sl_msg_project_reply *said = &reply.project_reply;

	if (!status)
		status = sl_project_use_fetch(&before, &conn, &err);
	if (!status)
		status = send_all(set, &conn, &reply, &err);
	if (!status && said->ok)
		status = sl_project_use_fetch(&after, &conn, &err);
	if (status)
		return fail(s, status, err.text);
	if (!said->ok)
		return refused(s, set, &reply.project_reply);
	if (s->json)
		return print_json(said);
	if (!said->added && !said->changed)
		printf("nothing to change: %zu project%s as the file says\n", set->count,
			set->count == 1 ? " is" : "s are");
	else
		printf("%u added, %u changed, %zu as before\n", said->added,
			said->changed, set->count - said->added - said->changed);
	say_who_gives(&before, &after);
	warn_of_too_much(&after);
	return sl_cli_finish(SL_VERB_project, SL_EXIT_OK);
}

static int apply(const void *settings)
{
	const struct settings *s = settings;
	struct sl_projects set = {0};
	struct sl_error err = {0};
	int status;

	if (sl_projects_load(s->word, &set, &err) != SL_PROJECTS_OK)
		return fail(s, SL_EXIT_USAGE, err.text);
	if (set.count == 0)
		status = sl_cli_fail(SL_VERB_project, s->json, SL_EXIT_USAGE,
			"%s: there are no projects in it", s->word);
	else
		status = apply_set(s, &set);
	sl_projects_fini(&set);
	return status;
}

static int delete (const void *settings)
{
	const struct settings *s = settings;
	struct sl_conn conn = {.fd = -1};
	struct sl_error err = {0};
	union sl_msg msg, reply;
	int status;

	/* It is no valid name; and must not appear in a message. */
	if (!sl_project_is_name(s->word))
		return sl_cli_fail(SL_VERB_project, s->json, SL_EXIT_USAGE,
			"'%.64s' is no name of a project; sluice project list shows all",
			s->word);
	status = sl_conn_open(&conn, &err);
	sl_wire_init(&msg, SL_MSG_PROJECT_DELETE);
	sl_wire_str(msg.project_delete.name, sizeof(msg.project_delete.name), s->word);
	if (!status)
		status = sl_conn_call(&conn, &msg, SL_MSG_PROJECT_REPLY, &reply, &err);
	sl_conn_close(&conn);
	if (status)
		return fail(s, status, err.text);
	if (!reply.project_reply.ok)
		return refused(s, NULL, &reply.project_reply);
	if (s->json)
		return print_json(&reply.project_reply);
	printf("%s is deleted\n", s->word);
	return sl_cli_finish(SL_VERB_project, SL_EXIT_OK);
}

/* --- Output. --- */

enum {
	PROJECT,
	USED,
	QUOTA,
	LIMIT,
	WEIGHT,
	CPU,
	MEMORY,
	COMPUTE,
	PRIO,
	SWAP,
	WORKLOADS,
	WHO,
	COLUMNS
};
static const struct sl_column columns[COLUMNS] = {
	[PROJECT] = {"PROJECT", false, 12, 0},
	[USED] = {"USED", true, 0, 0},
	[QUOTA] = {"QUOTA", true, 0, 0},
	[LIMIT] = {"LIMIT", true, 0, 0},
	[WEIGHT] = {"WEIGHT", true, 0, 2},
	[CPU] = {"CPUS", true, 0, 3},
	[MEMORY] = {"MEMORY", true, 0, 4},
	[COMPUTE] = {"COMPUTE", true, 0, 4},
	[PRIO] = {"PRIO", true, 0, 5},
	[SWAP] = {"SWAP", false, 0, 6},
	[WORKLOADS] = {"WORKLOADS", true, 0, 7},
	[WHO] = {"WHO", false, 8, 1},
};

static const char *amount(enum sl_resource r, int64_t value, char text[32])
{
	return value == SL_QUOTA_ALL ? "-" : sl_project_amount(r, value, text, 32);
}

/* "8", "8 to 16", "up to 16" or "-". */
static void set_range(struct sl_table *table, size_t column, enum sl_resource r,
	const struct sl_project_row *row)
{
	int64_t quota = row->quota.of[r], limit = row->limit.of[r];
	char a[32], b[32];

	if (limit == SL_QUOTA_ALL || limit == quota)
		sl_table_set(table, column, "%s", amount(r, quota, a));
	else if (quota == SL_QUOTA_ALL)
		sl_table_set(table, column, "up to %s", amount(r, limit, a));
	else
		sl_table_set(table, column, "%s to %s", amount(r, quota, a),
			amount(r, limit, b));
}

static int depth_of(const struct sl_rows *rows, size_t at)
{
	const char *parent = rows->all[at].project_row.parent;
	int depth = 0;

	/* Parents come before their children. */
	while (at-- > 0 && parent[0]) {
		if (strcmp(rows->all[at].project_row.name, parent) != 0)
			continue;
		parent = rows->all[at].project_row.parent;
		depth++;
	}
	return depth;
}

static bool add_line(struct sl_table *table, const struct sl_project_use *use, size_t at)
{
	const struct sl_rows *rows = &use->projects;
	const struct sl_msg_project_row *msg = &rows->all[at].project_row;
	struct sl_project_row row;
	char text[32];

	sl_project_from_row(msg, &row);
	sl_table_set(table, PROJECT, "%*s%s", 2 * depth_of(rows, at), "", row.name);
	sl_table_set(table, USED, "%s",
		sl_project_amount(SL_RES_GPU, sl_project_use_of(use, row.name), text,
			sizeof(text)));
	sl_table_set(
		table, QUOTA, "%s", amount(SL_RES_GPU, row.quota.of[SL_RES_GPU], text));
	sl_table_set(
		table, LIMIT, "%s", amount(SL_RES_GPU, row.limit.of[SL_RES_GPU], text));
	sl_table_set(table, WEIGHT, "%u", row.weight[SL_RES_GPU]);
	set_range(table, CPU, SL_RES_CPU, &row);
	set_range(table, MEMORY, SL_RES_MEMORY, &row);
	set_range(table, COMPUTE, SL_RES_COMPUTE, &row);
	sl_table_set(table, PRIO, "%d", row.priority);
	sl_table_set(table, SWAP, "%s", row.no_swap ? "no" : "yes");
	sl_table_set(table, WORKLOADS, "%u", msg->workloads);
	if (!row.users[0] && !row.groups[0])
		sl_table_set(table, WHO, "everybody");
	else
		sl_table_set(table, WHO, "%s%s%s%s", row.users,
			row.users[0] && row.groups[0] ? " and " : "",
			row.groups[0] ? "group " : "", row.groups);
	return sl_table_end_row(table);
}

static int print_list(const struct sl_project_use *use)
{
	sl_cleanup(sl_table_freep) struct sl_table *table =
		sl_table_new(columns, COLUMNS);
	bool ok = table;

	for (size_t i = 0; ok && i < use->projects.count; i++)
		ok = add_line(table, use, i);
	if (!ok)
		return sl_cli_fail(
			SL_VERB_project, false, SL_EXIT_SYSTEM, "no memory left");
	sl_table_print(table, sl_table_terminal_width(STDOUT_FILENO), stdout);
	return sl_cli_finish(SL_VERB_project, SL_EXIT_OK);
}

static json_t *to_json(
	const struct sl_project_use *use, const struct sl_msg_project_row *row)
{
	json_t *object = sl_tell_project(row);

	json_object_set_new(object, "used_gpus",
		json_real((double)sl_project_use_of(use, row->name) / 1000));
	return object;
}

static int print_all_json(const struct sl_project_use *use)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < use->projects.count; i++)
		json_array_append_new(
			array, to_json(use, &use->projects.all[i].project_row));
	return sl_rows_print_json(SL_VERB_project, array);
}

/* An incomplete list must not look like one of a machine without projects. */
static int fetch(struct sl_project_use *use, struct sl_error *err)
{
	sl_cleanup(sl_conn_close) struct sl_conn conn = {.fd = -1};
	const struct sl_rows *rows = &use->projects;
	int status = sl_conn_open(&conn, err);

	if (!status)
		status = sl_project_use_fetch(use, &conn, err);
	if (!status && rows->count && rows->all[0].project_row.flags & SL_PROJECT_UNREAD)
		fputs("sluice project: sluiced could not read all projects when it "
		      "started, so this list is incomplete; its log says why, and so "
		      "does sluice project apply\n",
			stderr);
	return status;
}

static int list(const void *settings)
{
	const struct settings *s = settings;
	sl_cleanup(sl_project_use_fini) struct sl_project_use use = {0};
	struct sl_error err = {0};
	int status = fetch(&use, &err);

	if (status)
		return fail(s, status, err.text);
	return s->json ? print_all_json(&use) : print_list(&use);
}

static int show(const void *settings)
{
	const struct settings *s = settings;
	sl_cleanup(sl_project_use_fini) struct sl_project_use use = {0};
	const struct sl_rows *rows = &use.projects;
	struct sl_error err = {0};
	int status = fetch(&use, &err);
	bool found = false;

	if (status)
		return fail(s, status, err.text);
	if (!s->word && s->json)
		return print_all_json(&use);
	for (size_t i = 0; i < rows->count; i++) {
		struct sl_project_row row;

		sl_project_from_row(&rows->all[i].project_row, &row);
		if (s->word && strcmp(row.name, s->word) != 0)
			continue;
		if (s->json)
			return sl_rows_print_json(SL_VERB_project,
				to_json(&use, &rows->all[i].project_row));
		if (!found)
			puts("projects:");
		found = true;
		sl_project_write(stdout, &row);
	}
	if (found)
		return sl_cli_finish(SL_VERB_project, SL_EXIT_OK);
	return sl_cli_fail(SL_VERB_project, s->json, SL_EXIT_REFUSED,
		"there is no project %.64s; sluice project list shows all", s->word);
}

/* --- The verb. --- */

static const struct sl_cli_action actions[] = {
	{"apply", "FILE", true, apply},
	{"list", NULL, false, list},
	{"show", "NAME", false, show},
	{"delete", "NAME", true, delete},
	{NULL, NULL, false, NULL},
};

int sl_verb_project(int argc, char **argv)
{
	struct settings s = {0};

	return sl_cli_act(SL_VERB_project, actions, &s, &s.action, &s.word, argc, argv);
}
