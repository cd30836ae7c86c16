/*
 * change - changes to a workload: set, park, resume, stop
 *
 * Sends the messages that `sluice` sends; the daemon decides and answers, and a refusal has the
 * daemon's text.
 */
#include "daemon/web/values.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "daemon/report/tell.h"
#include "policy/compute/compute.h"
#include "policy/node.h"
#include "policy/words/reason.h"

/* --- answers ---------------------------------------------------------------------------------- */

/* 409: understood and allowed, but not possible at present. */
static enum MHD_Result refused(
	struct sl_page_request *request, uint32_t reason, const char *text)
{
	return sl_page_refuse(request, reason == SL_REASON_UNKNOWN_WORKLOAD ? 404 : 409,
		"%s", text[0] ? text : "sluiced refused without a word");
}

/* One message and its answer, over a line of the request's user. */
static bool ask(struct sl_page_request *request, const union sl_msg *question,
	uint32_t want, union sl_msg *answer, enum MHD_Result *r)
{
	struct sl_error err = {0};
	struct sl_inside line;
	int outcome;

	if (!sl_page_line(request, &line, r))
		return false;
	outcome = sl_inside_call(&line, question, want, answer, &err);
	if (outcome != SL_INSIDE_OK)
		*r = sl_page_failed(request, &line, outcome, &err);
	sl_inside_close(&line);
	return outcome == SL_INSIDE_OK;
}

/* --- set -------------------------------------------------------------------------------------- */

/* A share of time in thousandths. */
static bool fill_share(struct sl_page_request *request, const char *key, uint32_t bit,
	uint32_t *pm, uint32_t *which, enum MHD_Result *r)
{
	struct sl_amount share;

	if (!sl_page_amount(request, key, &share, r))
		return false;
	if (share.kind == SL_AMOUNT_FRACTION)
		*pm = (uint32_t)(share.value * SL_COMPUTE_WHOLE / SL_AMOUNT_WHOLE);
	if (share.value && !*pm) {
		*r = sl_page_refuse(
			request, 400, "%s: write 0.001 to 1, or 0 for none", key);
		return false;
	}
	*which |= share.kind ? bit : 0;
	return true;
}

static bool fill_set(
	struct sl_page_request *request, struct sl_msg_set *set, enum MHD_Result *r)
{
	struct sl_amount request_of, limit;
	int64_t priority, wait, warm, detach, grace;
	uint32_t chain = 0;

	if (!sl_page_amount(request, "request", &request_of, r) ||
		!sl_page_amount(request, "limit", &limit, r) ||
		!sl_page_integer(request, "priority", -SL_PRIORITY_MAX, SL_PRIORITY_MAX,
			0, &priority, r) ||
		!sl_page_chain(request, &chain, r) ||
		!sl_page_integer(
			request, "longest_wait_ms", 1, UINT32_MAX, 0, &wait, r) ||
		!sl_page_integer(request, "warm_after_ms", 0, INT64_MAX, -1, &warm, r) ||
		!sl_page_integer(
			request, "detach_after_ms", 0, INT64_MAX, -1, &detach, r) ||
		!sl_page_integer(request, "idle_grace_ms", 0, INT64_MAX, -1, &grace, r))
		return false;
	set->request_kind = request_of.kind;
	set->request_value = request_of.value;
	set->limit_kind = limit.kind;
	set->limit_value = limit.value;
	set->priority_biased = (uint32_t)(priority + (int64_t)SL_PRIORITY_BIAS);
	set->flags = chain << SL_RUN_CHAIN_SHIFT;
	set->longest_wait_ms = (uint32_t)wait;
	set->warm_after_ms = (uint64_t)warm;
	set->detach_after_ms = (uint64_t)detach;
	set->idle_grace_ms = (uint64_t)grace;
	set->which = (request_of.kind ? SL_SET_REQUEST : 0) |
		     (limit.kind ? SL_SET_LIMIT : 0) |
		     (sl_page_has(request, "priority") ? SL_SET_PRIORITY : 0) |
		     (sl_page_has(request, "on_collision") ? SL_SET_CHAIN : 0) |
		     (wait ? SL_SET_WAIT : 0) | (warm >= 0 ? SL_SET_WARM : 0) |
		     (detach >= 0 ? SL_SET_DETACH : 0) | (grace >= 0 ? SL_SET_GRACE : 0);
	return fill_share(request, "compute_request", SL_SET_COMPUTE_REQUEST,
		       &set->compute_request_pm, &set->which, r) &&
	       fill_share(request, "compute_limit", SL_SET_COMPUTE_LIMIT,
		       &set->compute_limit_pm, &set->which, r);
}

static json_t *set_json(const struct sl_msg_set_reply *reply)
{
	return json_pack("{s:b, s:I, s:o, s:I, s:I, s:I, s:i, s:o}", "ok", 1, "id",
		(json_int_t)reply->workload, "name", sl_text_json(reply->name),
		"request_bytes", (json_int_t)reply->request_bytes, "limit_bytes",
		(json_int_t)reply->limit_bytes, "over_bytes",
		(json_int_t)reply->over_bytes, "priority",
		(int)(reply->priority_biased - SL_PRIORITY_BIAS), "text",
		sl_text_json(reply->text));
}

enum MHD_Result sl_page_set(struct sl_page_request *request)
{
	static const char *const keys[] = {"request", "limit", "priority", "on_collision",
		"longest_wait_ms", "warm_after_ms", "detach_after_ms", "idle_grace_ms",
		"compute_request", "compute_limit", NULL};
	union sl_msg msg, answer = {0};
	enum MHD_Result r = MHD_NO;
	uint64_t id;

	sl_wire_init(&msg, SL_MSG_SET);
	if (!sl_page_id(request, &id, &r) || !sl_page_only(request, keys, &r) ||
		!fill_set(request, &msg.set, &r))
		return r;
	msg.set.workload = id;
	if (!msg.set.which)
		return sl_page_refuse(request, 400,
			"nothing that can be set was named; give request, limit, "
			"priority, "
			"on_collision, longest_wait_ms, warm_after_ms, detach_after_ms "
			"or "
			"idle_grace_ms");
	if (!ask(request, &msg, SL_MSG_SET_REPLY, &answer, &r))
		return r;
	if (!answer.set_reply.ok)
		return refused(request, answer.set_reply.reason, answer.set_reply.text);
	return sl_page_answer(request, 200, set_json(&answer.set_reply));
}

/* --- park, resume, stop ----------------------------------------------------------------------- */

static enum MHD_Result park(struct sl_page_request *request, bool parked)
{
	static const char *const keys[] = {NULL};
	union sl_msg msg, answer;
	enum MHD_Result r = MHD_NO;
	uint64_t id;

	if (!sl_page_id(request, &id, &r) || !sl_page_only(request, keys, &r))
		return r;
	sl_wire_init(&msg, SL_MSG_PARK);
	msg.park.workload = id;
	msg.park.parked = parked;
	if (!ask(request, &msg, SL_MSG_PARK_REPLY, &answer, &r))
		return r;
	if (!answer.park_reply.ok)
		return refused(request, answer.park_reply.reason, answer.park_reply.text);
	return sl_page_answer(request, 200,
		json_pack("{s:b, s:I, s:o, s:I, s:o}", "ok", 1, "id",
			(json_int_t)answer.park_reply.workload, "name",
			sl_text_json(answer.park_reply.name), "held_bytes",
			(json_int_t)answer.park_reply.held_bytes, "text",
			sl_text_json(answer.park_reply.text)));
}

enum MHD_Result sl_page_park(struct sl_page_request *request)
{
	return park(request, true);
}

enum MHD_Result sl_page_resume(struct sl_page_request *request)
{
	return park(request, false);
}

enum MHD_Result sl_page_stop(struct sl_page_request *request)
{
	static const char *const keys[] = {"grace_ms", NULL};
	union sl_msg msg, answer;
	enum MHD_Result r = MHD_NO;
	int64_t grace;
	uint64_t id;

	if (!sl_page_id(request, &id, &r) || !sl_page_only(request, keys, &r) ||
		!sl_page_integer(
			request, "grace_ms", 0, UINT32_MAX - 1, UINT32_MAX, &grace, &r))
		return r;
	sl_wire_init(&msg, SL_MSG_STOP);
	msg.stop.workload = id;
	msg.stop.grace_ms = (uint32_t)grace;
	if (!ask(request, &msg, SL_MSG_STOP_REPLY, &answer, &r))
		return r;
	if (!answer.stop_reply.ok)
		return refused(request, answer.stop_reply.reason, answer.stop_reply.text);
	return sl_page_answer(request, 200,
		json_pack("{s:b, s:I, s:o, s:i}", "ok", 1, "id",
			(json_int_t)answer.stop_reply.workload, "name",
			sl_text_json(answer.stop_reply.name), "processes",
			(int)answer.stop_reply.processes));
}
