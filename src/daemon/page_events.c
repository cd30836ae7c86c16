/*
 * page_events - what happened, and why somebody waits
 */
#include "daemon/page_history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/tell.h"
#include "policy/reason.h"

#define EVENTS_DEFAULT 200
#define EVENTS_MOST    5000

/* --- /api/events ------------------------------------------------------------------------------------------------ */

struct events {
	json_t *array;
	const char *reason; /* NULL: any */
	uint64_t from_ms, to_ms, last;
};

static void take_event(void *context, const union sl_msg *msg)
{
	struct events *events = context;
	const struct sl_msg_event_row *row = &msg->event_row;

	if (row->realtime_ms < events->from_ms || row->realtime_ms > events->to_ms)
		return;
	if (events->reason && strcmp(events->reason, sl_reason_name(row->reason)) != 0)
		return;
	(void)json_array_append_new(events->array, sl_page_event_json(row));
	if (json_array_size(events->array) > events->last)
		(void)json_array_remove(events->array, 0);
}

static int64_t serial_of(const json_t *event)
{
	return json_integer_value(json_object_get(event, "serial"));
}

/*
 * What the daemon has kept ends somewhere, and a new daemon has nothing of the one before: what came earlier is in the history. Serials grow, also over
 * restarts. Without a history, or while it cannot be asked, there are those that are kept.
 */
static void add_older(struct sl_page_request *request, struct events *events,
	uint64_t after, const char *name)
{
	struct sl_history_ask ask = {.what = SL_HISTORY_EVENTS,
		.from_ms = events->from_ms,
		.to_ms = events->to_ms,
		.after = after,
		.last = events->last};
	int64_t first = json_array_size(events->array)
				? serial_of(json_array_get(events->array, 0))
				: INT64_MAX;
	json_t *root, *older;
	struct sl_error err = {0};
	struct sl_history_text *text;
	size_t missing;

	(void)snprintf(ask.name, sizeof(ask.name), "%s", name);
	(void)snprintf(ask.reason, sizeof(ask.reason), "%s",
		events->reason ? events->reason : "");
	text = sl_page_ask_history(request, &ask, &err);
	if (!text)
		return;
	root = json_loadb(text->bytes, text->size, 0, NULL);
	(void)sl_history_text_free(text);
	older = json_object_get(root, "events");
	missing = events->last - json_array_size(events->array);
	for (size_t i = json_array_size(older); i-- > 0 && missing;) {
		json_t *event = json_array_get(older, i);

		if (serial_of(event) >= first)
			continue;
		(void)json_array_insert(events->array, 0, sl_page_event_of(event));
		missing--;
	}
	json_decref(root);
}

enum MHD_Result sl_page_events(struct sl_page_request *request)
{
	const char *name = sl_page_query(request, "name");
	struct events events = {.reason = sl_page_query(request, "reason")};
	struct sl_error err = {0};
	struct sl_inside line;
	union sl_msg ask;
	uint64_t after;
	enum MHD_Result r;
	int outcome;

	if (!sl_page_query_number(request, "after", INT64_MAX, 0, &after, &r) ||
		!sl_page_query_number(
			request, "last", EVENTS_MOST, EVENTS_DEFAULT, &events.last, &r) ||
		!sl_page_query_number(
			request, "from_ms", INT64_MAX, 0, &events.from_ms, &r) ||
		!sl_page_query_number(
			request, "to_ms", INT64_MAX, INT64_MAX, &events.to_ms, &r))
		return r;
	if (events.reason && !events.reason[0])
		events.reason = NULL;
	sl_wire_init(&ask, SL_MSG_EVENTS);
	if (name && strlen(name) >= sizeof(ask.events.name))
		return sl_page_refuse(request, 400, "name has more than %zu bytes",
			sizeof(ask.events.name) - 1);
	if (!sl_page_line(request, &line, &r))
		return r;
	ask.events.after = after;
	/* All that may be among the last of those that are wanted. */
	ask.events.last = events.reason || events.from_ms || events.to_ms < INT64_MAX
				  ? 0
				  : (uint32_t)events.last;
	sl_wire_str(ask.events.name, sizeof(ask.events.name), name ? name : "");
	events.array = json_array();
	outcome =
		sl_inside_rows(&line, &ask, SL_MSG_EVENT_ROW, take_event, &events, &err);
	sl_inside_close(&line);
	if (outcome == SL_INSIDE_OK) {
		if (request->page->history && json_array_size(events.array) < events.last)
			add_older(request, &events, after, name ? name : "");
		r = sl_page_answer(
			request, 200, json_pack("{s:o}", "events", events.array));
	} else {
		json_decref(events.array);
		r = sl_page_failed(request, &line, outcome, &err);
	}
	return r;
}

/* --- /api/why ----------------------------------------------------------------------------------------------------- */

struct why {
	json_t *sentences, *now, *before;
};

static void take_why(void *context, const union sl_msg *msg)
{
	struct why *why = context;
	const struct sl_msg_event_row *row = &msg->event_row;
	char text[SL_TELL_TEXT_MAX];

	if (row->current)
		(void)json_array_append_new(why->sentences,
			json_string(sl_tell_sentence(row, text, sizeof(text))));
	(void)json_array_append_new(
		row->current ? why->now : why->before, sl_page_event_json(row));
}

enum MHD_Result sl_page_why(struct sl_page_request *request)
{
	struct why why = {json_array(), json_array(), json_array()};
	struct sl_error err = {0};
	struct sl_inside line;
	union sl_msg ask;
	char *end = NULL;
	enum MHD_Result r;
	int outcome;

	sl_wire_init(&ask, SL_MSG_WHY);
	ask.why.workload = strtoull(request->argument, &end, 10);
	if (*end || !request->argument[0]) {
		ask.why.workload = 0;
		sl_wire_str(ask.why.name, sizeof(ask.why.name), request->argument);
	}
	if (sl_page_line(request, &line, &r)) {
		outcome = sl_inside_rows(
			&line, &ask, SL_MSG_EVENT_ROW, take_why, &why, &err);
		r = outcome == SL_INSIDE_OK
			    ? sl_page_answer(request, 200,
				      json_pack("{s:O, s:O, s:O}", "sentences",
					      why.sentences, "now", why.now, "before",
					      why.before))
			    : sl_page_failed(request, &line, outcome, &err);
		sl_inside_close(&line);
	}
	json_decref(why.sentences);
	json_decref(why.now);
	json_decref(why.before);
	return r;
}
