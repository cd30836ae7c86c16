/*
 * resources - defining, deleting and using compute resources
 */
#include "daemon/web/resources.h"

#include <string.h>

#include "base/text.h"
#include "daemon/report/tell.h"

struct search {
	const char *name;
	uint32_t uid;
	struct sl_compute *out;
	bool found;
};

static void take_row(void *context, const union sl_msg *msg)
{
	struct search *search = context;
	const struct sl_msg_resource_row *row = &msg->resource_row;

	if (!sl_tell_resource_is(row, search->name, search->uid))
		return;
	search->found = true;
	search->out->request = (struct sl_amount){
		.kind = row->request_kind, .value = row->request_value};
	search->out->limit =
		(struct sl_amount){.kind = row->limit_kind, .value = row->limit_value};
	search->out->gpus = row->gpu_count;
	search->out->priority =
		(int32_t)((int64_t)row->priority_biased - (int64_t)SL_PRIORITY_BIAS);
}

bool sl_page_resource_of(
	struct sl_page_request *request, struct sl_compute *out, enum MHD_Result *r)
{
	struct search search = {.out = out, .uid = request->who ? request->who->uid : 0};
	struct sl_error err = {0};
	struct sl_inside line;
	int outcome;

	*out = (struct sl_compute){.gpus = 1};
	if (!sl_page_string(request, "resource", out->name, sizeof(out->name), r))
		return false;
	if (!out->name[0])
		return true;
	search.name = out->name;
	if (!sl_page_line(request, &line, r))
		return false;
	outcome = sl_inside_list(
		&line, SL_LIST_RESOURCES, SL_MSG_RESOURCE_ROW, take_row, &search, &err);
	if (outcome != SL_INSIDE_OK)
		*r = sl_page_failed(request, &line, outcome, &err);
	else if (!search.found)
		*r = sl_page_refuse(request, 400,
			"there is no compute resource %s; the list is in /api/state",
			out->name);
	sl_inside_close(&line);
	return outcome == SL_INSIDE_OK && search.found;
}

static void take_visible(void *context, const union sl_msg *msg)
{
	(void)json_array_append_new(context, sl_tell_resource(&msg->resource_row));
}

/* Shared resources and the caller's own. /api/state lacks the latter, because it is the same for
 * all callers. */
enum MHD_Result sl_page_resources(struct sl_page_request *request)
{
	json_t *list = json_array();
	struct sl_error err = {0};
	struct sl_inside line;
	enum MHD_Result r = MHD_NO;
	int outcome;

	if (!list || !sl_page_line(request, &line, &r)) {
		json_decref(list);
		return r;
	}
	outcome = sl_inside_list(
		&line, SL_LIST_RESOURCES, SL_MSG_RESOURCE_ROW, take_visible, list, &err);
	if (outcome == SL_INSIDE_OK)
		r = sl_page_answer(request, 200, json_pack("{s:O}", "resources", list));
	else
		r = sl_page_failed(request, &line, outcome, &err);
	json_decref(list);
	sl_inside_close(&line);
	return r;
}

static enum MHD_Result ask(struct sl_page_request *request, const union sl_msg *msg)
{
	struct sl_error err = {0};
	struct sl_inside line;
	union sl_msg answer;
	enum MHD_Result r;
	int outcome;

	if (!sl_page_line(request, &line, &r))
		return r;
	outcome = sl_inside_call(&line, msg, SL_MSG_RESOURCE_REPLY, &answer, &err);
	if (outcome != SL_INSIDE_OK)
		r = sl_page_failed(request, &line, outcome, &err);
	else if (!answer.resource_reply.ok)
		r = sl_page_refuse(request,
			msg->head.type == SL_MSG_RESOURCE_DELETE &&
					!answer.resource_reply.known
				? 404
				: 409,
			"%s", answer.resource_reply.text);
	else
		r = sl_page_answer(request, 200,
			json_pack("{s:b, s:o}", "ok", 1, "name",
				sl_text_json(answer.resource_reply.name)));
	sl_inside_close(&line);
	return r;
}

enum MHD_Result sl_page_resource_put(struct sl_page_request *request)
{
	static const char *const keys[] = {
		"name", "project", "request", "limit", "gpus", "priority", NULL};
	struct sl_compute resource = {0};
	int64_t gpus, priority;
	const char *mistake;
	union sl_msg msg;
	enum MHD_Result r = MHD_NO;

	if (!sl_page_only(request, keys, &r) ||
		!sl_page_string(
			request, "name", resource.name, sizeof(resource.name), &r) ||
		!sl_page_string(request, "project", resource.project,
			sizeof(resource.project), &r) ||
		!sl_page_amount(request, "request", &resource.request, &r) ||
		!sl_page_amount(request, "limit", &resource.limit, &r) ||
		!sl_page_integer(request, "gpus", 1, 32, 1, &gpus, &r) ||
		!sl_page_integer(request, "priority", -SL_PRIORITY_MAX, SL_PRIORITY_MAX,
			0, &priority, &r))
		return r;
	resource.gpus = (uint32_t)gpus;
	resource.priority = (int32_t)priority;
	mistake = sl_compute_mistake(&resource);
	if (mistake[0])
		return sl_page_refuse(request, 400, "%s", mistake);
	sl_wire_init(&msg, SL_MSG_RESOURCE_PUT);
	msg.resource_put.request_kind = resource.request.kind;
	msg.resource_put.request_value = resource.request.value;
	msg.resource_put.limit_kind = resource.limit.kind;
	msg.resource_put.limit_value = resource.limit.value;
	msg.resource_put.gpu_count = resource.gpus;
	msg.resource_put.priority_biased =
		(uint32_t)(priority + (int64_t)SL_PRIORITY_BIAS);
	memcpy(msg.resource_put.name, resource.name, sizeof(msg.resource_put.name));
	memcpy(msg.resource_put.project, resource.project,
		sizeof(msg.resource_put.project));
	return ask(request, &msg);
}

enum MHD_Result sl_page_resource_delete(struct sl_page_request *request)
{
	static const char *const keys[] = {NULL};
	enum MHD_Result r = MHD_NO;
	union sl_msg msg;

	if (!sl_page_only(request, keys, &r))
		return r;
	sl_wire_init(&msg, SL_MSG_RESOURCE_DELETE);
	msg.resource_delete.owner = UINT64_MAX;
	if (strlen(request->argument) >= sizeof(msg.resource_delete.name))
		return sl_page_refuse(
			request, 404, "there is no compute resource of that name");
	sl_wire_str(msg.resource_delete.name, sizeof(msg.resource_delete.name),
		request->argument);
	return ask(request, &msg);
}
