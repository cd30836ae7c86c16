/*
 * projects - creating, changing and deleting projects
 *
 * A body has the fields of a project's file (sluice-project(1)) as JSON, and only those that
 * change. The project is read, the fields replace its own, and it is sent as `sluice project apply`
 * does.
 */
#include "daemon/web/values.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "daemon/projects/value.h"
#include "daemon/projects/wire.h"

struct search {
	struct sl_project_row *row; /* its name is the one searched */
	bool found;
};

static void take_row(void *context, const union sl_msg *msg)
{
	struct search *search = context;
	struct sl_project_row row;

	sl_project_from_row(&msg->project_row, &row);
	if (strcmp(row.name, search->row->name) != 0)
		return;
	search->found = true;
	*search->row = row;
}

/* Reads the project into *row, if it exists. False: the request was refused. */
static bool find(struct sl_page_request *request, struct sl_inside *line,
	struct sl_project_row *row, bool *found, enum MHD_Result *r)
{
	struct search search = {.row = row};
	struct sl_error err = {0};
	int outcome = sl_inside_list(
		line, SL_LIST_PROJECTS, SL_MSG_PROJECT_ROW, take_row, &search, &err);

	*found = search.found;
	if (outcome != SL_INSIDE_OK)
		*r = sl_page_failed(request, line, outcome, &err);
	return outcome == SL_INSIDE_OK;
}

/* --- fields ----------------------------------------------------------------------------------- */

/* The value as a project's file has it; null becomes `nothing`. NULL: not a single value. */
static const char *as_text(const json_t *value, const char *nothing, char buf[32])
{
	if (json_is_string(value))
		return json_string_value(value);
	if (json_is_null(value))
		return nothing;
	if (json_is_boolean(value))
		return json_is_true(value) ? "yes" : "no";
	if (json_is_integer(value))
		(void)snprintf(
			buf, 32, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_real(value))
		(void)snprintf(buf, 32, "%.12g", json_real_value(value));
	else
		return NULL;
	return buf;
}

static int lay_amounts(const struct sl_project_field *field, const json_t *value,
	struct sl_project_row *row, struct sl_error *err)
{
	int r = json_is_object(value) ? SL_PROJECTS_OK : SL_PROJECTS_BAD;
	const char *key;
	json_t *amount;

	json_object_foreach((json_t *)value, key, amount)
	{
		char buf[32];
		const char *text = as_text(amount, "unlimited", buf);

		if (r == SL_PROJECTS_OK)
			r = text ? sl_project_set_amount(field, key, text, row, err)
				 : SL_PROJECTS_BAD;
	}
	return r;
}

static int lay_names(const struct sl_project_field *field, const json_t *value,
	struct sl_project_row *row, struct sl_error *err)
{
	int r = json_is_array(value) ? SL_PROJECTS_OK : SL_PROJECTS_BAD;

	*((char *)row + field->offset) = '\0';
	for (size_t i = 0; r == SL_PROJECTS_OK && i < json_array_size(value); i++) {
		const char *name = json_string_value(json_array_get(value, i));

		r = name ? sl_project_add_name(field, name, row, err) : SL_PROJECTS_BAD;
	}
	return r;
}

static int lay_field(const struct sl_project_field *field, const json_t *value,
	struct sl_project_row *row, struct sl_error *err)
{
	const char *text;
	char buf[32];

	if (field->type == SL_PROJECT_FIELD_RESOURCE)
		return lay_amounts(field, value, row, err);
	if (field->type == SL_PROJECT_FIELD_LIST)
		return lay_names(field, value, row, err);
	text = as_text(value, "", buf);
	return text ? sl_project_set_word(field, text, row, err) : SL_PROJECTS_BAD;
}

/* Replaces fields of *row by those of the body. False: the request was refused. */
static bool lay_body(
	struct sl_page_request *request, struct sl_project_row *row, enum MHD_Result *r)
{
	const char *key;
	json_t *value;

	json_object_foreach(request->json, key, value)
	{
		const struct sl_project_field *field = sl_project_field_of(key);
		struct sl_error err = {0};
		char words[256];

		if (strcmp(key, "project") == 0)
			continue;
		if (!field)
			sl_error_set(&err,
				"'%.64s' is no field of a project; the fields are %s",
				key, sl_project_field_words(words, sizeof(words)));
		else if (lay_field(field, value, row, &err) == SL_PROJECTS_OK)
			continue;
		/* A value of the wrong type was not parsed, so there is no other message. */
		if (!err.text[0])
			sl_error_set(&err, "%s: write it as /api/state has it", key);
		*r = sl_page_refuse(request, 400, "%s", err.text);
		return false;
	}
	return true;
}

/* --- what is asked ---------------------------------------------------------------------------- */

static enum MHD_Result ask(
	struct sl_page_request *request, struct sl_inside *line, const union sl_msg *msg)
{
	struct sl_error err = {0};
	union sl_msg answer;
	int outcome = sl_inside_call(line, msg, SL_MSG_PROJECT_REPLY, &answer, &err);
	const struct sl_msg_project_reply *said = &answer.project_reply;

	if (outcome != SL_INSIDE_OK)
		return sl_page_failed(request, line, outcome, &err);
	if (!said->ok)
		return sl_page_refuse(request, 409, "%s", said->text);
	return sl_page_answer(request, 200,
		json_pack("{s:b, s:I, s:I, s:I}", "ok", 1, "added",
			(json_int_t)said->added, "changed", (json_int_t)said->changed,
			"removed", (json_int_t)said->removed));
}

static enum MHD_Result put(struct sl_page_request *request, struct sl_inside *line,
	struct sl_project_row *row)
{
	enum MHD_Result r = MHD_NO;
	union sl_msg msg;
	bool found;

	if (!find(request, line, row, &found, &r) || !lay_body(request, row, &r))
		return r;
	sl_wire_init(&msg, SL_MSG_PROJECT_PUT);
	sl_project_to_put(row, &msg.project_put);
	msg.project_put.count = 1;
	return ask(request, line, &msg);
}

enum MHD_Result sl_page_project_put(struct sl_page_request *request)
{
	char name[SL_PROJECT_NAME_MAX];
	struct sl_project_row row;
	struct sl_inside line;
	enum MHD_Result r = MHD_NO;

	if (!sl_page_string(request, "project", name, sizeof(name), &r))
		return r;
	if (!sl_project_is_name(name))
		return sl_page_refuse(request, 400,
			"project: '%.64s' is no name of a project; write letters, "
			"digits, "
			"'.', '_' and '-', at most 63",
			name);
	sl_project_defaults(&row, name);
	if (!sl_page_line(request, &line, &r))
		return r;
	r = put(request, &line, &row);
	sl_inside_close(&line);
	return r;
}

static enum MHD_Result drop(struct sl_page_request *request, struct sl_inside *line)
{
	struct sl_project_row row;
	enum MHD_Result r = MHD_NO;
	bool found = false;
	union sl_msg msg;

	sl_project_defaults(&row, request->argument);
	if (!find(request, line, &row, &found, &r))
		return r;
	if (!found)
		return sl_page_refuse(
			request, 404, "there is no project %.64s", request->argument);
	sl_wire_init(&msg, SL_MSG_PROJECT_DELETE);
	sl_wire_str(msg.project_delete.name, sizeof(msg.project_delete.name), row.name);
	return ask(request, line, &msg);
}

enum MHD_Result sl_page_project_delete(struct sl_page_request *request)
{
	static const char *const keys[] = {NULL};
	enum MHD_Result r = MHD_NO;
	struct sl_inside line;

	if (!sl_page_only(request, keys, &r))
		return r;
	if (!sl_project_is_name(request->argument))
		return sl_page_refuse(request, 404, "there is no project of that name");
	if (!sl_page_line(request, &line, &r))
		return r;
	r = drop(request, &line);
	sl_inside_close(&line);
	return r;
}
