/*
 * sluice project: the projects of a daemon, from files and as files.
 *
 * The file is read here, so that a mistake in it is told with its line, and nobody's YAML is parsed
 * by the daemon. What the daemon alone can see (a parent that stands elsewhere) comes back with the
 * project's name, and gets its line here.
 */
#include "cli/cli.h"
#include "cli/rows.h"
#include "cli/table.h"
#include "cli/text.h"
#include "cli/told.h"

#include "daemon/projects.h"
#include "daemon/projects_wire.h"
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
	SL_OPT_WORDS("NAME", "The project; all of them for show without it."),
	SL_OPT_JSON(struct settings),
	SL_OPT_END,
};

typedef int (*action_fn)(const struct settings *s);

static int fail(const struct settings *s, int status, const char *text)
{
	return sl_cli_fail(SL_VERB_project, s->json, (enum sl_exit)status, "%s", text);
}

/* --- What is changed. --- */

/* Outcomes of sl_conn_open. */
static int open_conn(struct sl_conn *conn, struct sl_error *err)
{
	int status = sl_conn_open(conn, err);

	if (!status)
		status = sl_conn_needs(
			conn, sl_wire_since(SL_MSG_PROJECT_PUT), "sluice project", err);
	return status;
}

static int send_all(
	const struct sl_projects *set, union sl_msg *reply, struct sl_error *err)
{
	struct sl_conn conn = {.fd = -1};
	int status = open_conn(&conn, err);

	for (size_t i = 0; !status && i < set->count; i++) {
		union sl_msg msg;

		sl_wire_init(&msg, SL_MSG_PROJECT_PUT);
		sl_project_to_put(&set->rows[i], &msg.project_put);
		msg.project_put.index = (uint32_t)i;
		msg.project_put.count = (uint32_t)set->count;
		if (i + 1 < set->count)
			status = sl_conn_send(&conn, &msg, err);
		else
			status = sl_conn_call(
				&conn, &msg, SL_MSG_PROJECT_REPLY, reply, err);
	}
	sl_conn_close(&conn);
	return status;
}

static int print_json(const struct sl_msg_project_reply *said)
{
	return sl_rows_print_json(SL_VERB_project,
		json_pack("{s:b, s:I, s:I, s:I}", "ok", 1, "added",
			(json_int_t)said->added, "changed", (json_int_t)said->changed,
			"removed", (json_int_t)said->removed));
}

/* The daemon's own words, with the place in the file where the project stands there. */
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

static int apply_set(const struct settings *s, const struct sl_projects *set)
{
	struct sl_error err = {0};
	union sl_msg reply;
	int status = send_all(set, &reply, &err);
	const struct sl_msg_project_reply *said = &reply.project_reply;

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
	return sl_cli_finish(SL_VERB_project, SL_EXIT_OK);
}

static int apply(const struct settings *s)
{
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

static int delete (const struct settings *s)
{
	struct sl_conn conn = {.fd = -1};
	struct sl_error err = {0};
	union sl_msg msg, reply;
	int status;

	/* It could not be the name of any; and is to reach no message. */
	if (!sl_project_is_name(s->word))
		return sl_cli_fail(SL_VERB_project, s->json, SL_EXIT_USAGE,
			"'%.64s' is no name of a project; sluice project list shows all",
			s->word);
	status = open_conn(&conn, &err);
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

/* --- What is shown. --- */

enum { PROJECT, QUOTA, LIMIT, WEIGHT, CPU, MEMORY, PRIO, SWAP, WORKLOADS, WHO, COLUMNS };
static const struct sl_column columns[COLUMNS] = {
	[PROJECT] = {"PROJECT", false, 12, 0},
	[QUOTA] = {"GPUS", true, 0, 0},
	[LIMIT] = {"LIMIT", true, 0, 0},
	[WEIGHT] = {"WEIGHT", true, 0, 2},
	[CPU] = {"CPUS", true, 0, 3},
	[MEMORY] = {"MEMORY", true, 0, 4},
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

	/* Parents stand before their children. */
	while (at-- > 0 && parent[0]) {
		if (strcmp(rows->all[at].project_row.name, parent) != 0)
			continue;
		parent = rows->all[at].project_row.parent;
		depth++;
	}
	return depth;
}

static bool add_line(struct sl_table *table, const struct sl_rows *rows, size_t at)
{
	const struct sl_msg_project_row *msg = &rows->all[at].project_row;
	struct sl_project_row row;
	char text[32];

	sl_project_from_row(msg, &row);
	sl_table_set(table, PROJECT, "%*s%s", 2 * depth_of(rows, at), "", row.name);
	sl_table_set(
		table, QUOTA, "%s", amount(SL_RES_GPU, row.quota.of[SL_RES_GPU], text));
	sl_table_set(
		table, LIMIT, "%s", amount(SL_RES_GPU, row.limit.of[SL_RES_GPU], text));
	sl_table_set(table, WEIGHT, "%u", row.weight[SL_RES_GPU]);
	set_range(table, CPU, SL_RES_CPU, &row);
	set_range(table, MEMORY, SL_RES_MEMORY, &row);
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

static int print_list(const struct sl_rows *rows)
{
	sl_cleanup(sl_table_freep) struct sl_table *table =
		sl_table_new(columns, COLUMNS);
	bool ok = table;

	for (size_t i = 0; ok && i < rows->count; i++)
		ok = add_line(table, rows, i);
	if (!ok)
		return sl_cli_fail(
			SL_VERB_project, false, SL_EXIT_SYSTEM, "no memory left");
	sl_table_print(table, sl_table_terminal_width(STDOUT_FILENO), stdout);
	return sl_cli_finish(SL_VERB_project, SL_EXIT_OK);
}

static int print_all_json(const struct sl_rows *rows)
{
	json_t *array = json_array();

	for (size_t i = 0; array && i < rows->count; i++)
		json_array_append_new(array, sl_tell_project(&rows->all[i].project_row));
	return sl_rows_print_json(SL_VERB_project, array);
}

/* An empty list must not look like one of a machine without projects. */
static int fetch(struct sl_rows *rows, struct sl_error *err)
{
	int status = sl_rows_fetch(rows, SL_LIST_PROJECTS, err);

	if (!status && rows->count && rows->all[0].project_row.flags & SL_PROJECT_UNREAD)
		fputs("sluice project: sluiced could not read its projects when it "
		      "started, these are "
		      "not all; its log says why, and so does an attempt to apply some\n",
			stderr);
	return status;
}

static int list(const struct settings *s)
{
	sl_cleanup(sl_rows_fini) struct sl_rows rows = {0};
	struct sl_error err = {0};
	int status = fetch(&rows, &err);

	if (status)
		return fail(s, status, err.text);
	return s->json ? print_all_json(&rows) : print_list(&rows);
}

static int show(const struct settings *s)
{
	sl_cleanup(sl_rows_fini) struct sl_rows rows = {0};
	struct sl_error err = {0};
	int status = fetch(&rows, &err);
	bool found = false;

	if (status)
		return fail(s, status, err.text);
	if (!s->word && s->json)
		return print_all_json(&rows);
	for (size_t i = 0; i < rows.count; i++) {
		struct sl_project_row row;

		sl_project_from_row(&rows.all[i].project_row, &row);
		if (s->word && strcmp(row.name, s->word) != 0)
			continue;
		if (s->json)
			return sl_rows_print_json(SL_VERB_project,
				sl_tell_project(&rows.all[i].project_row));
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

static const struct {
	const char *name, *word; /* word: what belongs behind it */
	bool needs_word;
	action_fn act;
} actions[] = {
	{"apply", "FILE", true, apply},
	{"list", NULL, false, list},
	{"show", "NAME", false, show},
	{"delete", "NAME", true, delete},
};

static int usage(const struct settings *s, const char *text)
{
	return sl_cli_fail(SL_VERB_project, s->json, SL_EXIT_USAGE,
		"%s\nSee: sluice project --help", text);
}

static int act(const struct settings *s)
{
	const char *names[SL_ARRAY_LEN(actions) + 1] = {NULL}, *near;
	char text[160];

	if (!s->action)
		return usage(s, "what is to be done? apply FILE, list, show [NAME] or "
				"delete NAME");
	for (size_t i = 0; i < SL_ARRAY_LEN(actions); i++) {
		names[i] = actions[i].name;
		if (strcmp(s->action, actions[i].name) != 0)
			continue;
		(void)snprintf(text, sizeof(text), "%s needs a %s", actions[i].name,
			actions[i].word ? actions[i].word : "");
		if (actions[i].needs_word && (!s->word || !s->word[0]))
			return usage(s, text);
		(void)snprintf(text, sizeof(text), "%s takes no word", actions[i].name);
		if (!actions[i].word && s->word)
			return usage(s, text);
		return actions[i].act(s);
	}
	near = sl_option_nearest(s->action, names);
	(void)snprintf(text, sizeof(text), "unknown action '%.40s'%s%s%s", s->action,
		near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
	sl_text_tame(text);
	return usage(s, text);
}

int sl_verb_project(int argc, char **argv)
{
	struct settings s = {0}, rest = {0};
	int first, status, last;

	status = sl_cli_parse(SL_VERB_project, &s, argc, argv, &first);
	if (status >= 0)
		return status;
	if (first < argc) {
		s.word = argv[first];
		/* Options may stand behind the word, too; argv[0] is skipped. */
		status = sl_cli_parse(
			SL_VERB_project, &rest, argc - first, argv + first, &last);
		if (status >= 0)
			return status;
		s.json |= rest.json;
		if (rest.action || last < argc - first)
			return usage(&s, "one word too many");
	}
	return act(&s);
}
