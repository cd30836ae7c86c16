/*
 * events - past events, and why a workload waits
 */
#include "daemon/history/answers.h"
#include "daemon/web/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "daemon/report/tell.h"
#include "policy/words/reason.h"

#define EVENTS_DEFAULT 200
#define EVENTS_MOST    5000

/* --- /api/events ------------------------------------------------------------------------------ */

struct events {
	json_t *array;
	struct sl_history_ask ask;
};

static void take_event(void *context, const union sl_msg *msg)
{
	struct events *events = context;

	if (!sl_history_event_wanted(&events->ask, &msg->event_row))
		return;
	(void)json_array_append_new(events->array, sl_page_event_json(&msg->event_row));
	if (json_array_size(events->array) > events->ask.last)
		(void)json_array_remove(events->array, 0);
}

static int64_t serial_of(const json_t *event)
{
	return json_integer_value(json_object_get(event, "serial"));
}

/*
 * Adds older events from the history: the daemon keeps only the latest of its own, and none of an
 * earlier daemon. Serials grow, also over restarts. If the history was not reached or gave up, *gap
 * becomes what the answer says about that.
 */
static void add_older(
	struct sl_page_request *request, struct events *events, json_t **gap)
{
	struct sl_history_ask ask = events->ask;
	json_t *root, *older;
	struct sl_error err = {0};
	struct sl_history_text *text;

	ask.last -= json_array_size(events->array);
	if (json_array_size(events->array))
		ask.before = (uint64_t)serial_of(json_array_get(events->array, 0));
	text = sl_page_ask_history(request, &ask, &err);
	root = text ? json_loadfd(text->fd, 0, NULL) : NULL;
	if (text && !root)
		sl_error_set(&err, "sluiced is out of memory; try again");
	(void)sl_history_text_free(text);
	if (!root)
		*gap = json_pack("{s:I, s:o}", "reached", (json_int_t)ask.before, "text",
			sl_text_json(err.text));
	else if (json_is_false(json_object_get(root, "complete")))
		*gap = json_pack("{s:O, s:O}", "reached",
			json_object_get(root, "reached"), "text",
			json_object_get(root, "text"));
	older = json_object_get(root, "events");
	for (size_t i = json_array_size(older); i-- > 0;)
		(void)json_array_insert(
			events->array, 0, sl_page_event_of(json_array_get(older, i)));
	json_decref(root);
}

static bool read_text(struct sl_page_request *request, const char *key, char *out,
	size_t size, enum MHD_Result *r)
{
	const char *text = sl_page_query(request, key);

	if (text && strlen(text) >= size) {
		*r = sl_page_refuse(
			request, 400, "%s has more than %zu bytes", key, size - 1);
		return false;
	}
	(void)snprintf(out, size, "%s", text ? text : "");
	return true;
}

static bool read_reason(
	struct sl_page_request *request, struct sl_history_ask *ask, enum MHD_Result *r)
{
	if (!read_text(request, "reason", ask->reason, sizeof(ask->reason), r))
		return false;
	if (!ask->reason[0] || sl_reason_named(ask->reason) < SL_REASONS)
		return true;
	*r = sl_page_refuse(request, 400,
		"there is no reason %s; events have their reason with them, and "
		"words= looks for a part of one",
		ask->reason);
	return false;
}

static bool read_kinds(
	struct sl_page_request *request, struct sl_history_ask *ask, enum MHD_Result *r)
{
	if (sl_reason_kinds_read(sl_page_query(request, "kind"), &ask->kinds))
		return true;
	*r = sl_page_refuse(request, 400,
		"kind must be some of %s, with commas between them",
		sl_reason_kinds_known);
	return false;
}

static bool read_ask(
	struct sl_page_request *request, struct sl_history_ask *ask, enum MHD_Result *r)
{
	struct sl_msg_events line;

	ask->what = SL_HISTORY_EVENTS;
	if (!sl_page_query_number(request, "after", INT64_MAX, 0, &ask->after, r) ||
		!sl_page_query_number(request, "before", INT64_MAX, 0, &ask->before, r) ||
		!sl_page_query_number(
			request, "last", EVENTS_MOST, EVENTS_DEFAULT, &ask->last, r) ||
		!sl_page_query_number(
			request, "from_ms", INT64_MAX, 0, &ask->from_ms, r) ||
		!sl_page_query_number(request, "to_ms", INT64_MAX, 0, &ask->to_ms, r))
		return false;
	/* The name must also fit into the message to the loop. */
	return read_text(request, "name", ask->name, sizeof(line.name), r) &&
	       read_text(request, "words", ask->words, sizeof(ask->words), r) &&
	       read_reason(request, ask, r) && read_kinds(request, ask, r);
}

/* "complete": all that was asked for, within `last` and the time that is kept. */
static json_t *events_json(struct sl_page_request *request, struct events *events)
{
	json_t *gap = NULL, *answer;

	if (request->page->history && json_array_size(events->array) < events->ask.last)
		add_older(request, events, &gap);
	answer =
		json_pack("{s:o, s:b}", "events", events->array, "complete", gap == NULL);
	if (gap)
		(void)json_object_update(answer, gap);
	json_decref(gap);
	return answer;
}

enum MHD_Result sl_page_events(struct sl_page_request *request)
{
	struct events events = {0};
	struct sl_history_ask *wanted = &events.ask;
	struct sl_error err = {0};
	struct sl_inside line;
	union sl_msg ask;
	enum MHD_Result r = MHD_NO;
	int outcome;

	if (!read_ask(request, wanted, &r) || !sl_page_line(request, &line, &r))
		return r;
	sl_wire_init(&ask, SL_MSG_EVENTS);
	ask.events.after = wanted->after;
	/* With filters here, all kept events are needed; else the last ones. */
	ask.events.last = wanted->reason[0] || wanted->before || wanted->from_ms ||
					  wanted->to_ms || sl_history_events_sift(wanted)
				  ? 0
				  : (uint32_t)wanted->last;
	sl_wire_str(ask.events.name, sizeof(ask.events.name), wanted->name);
	events.array = json_array();
	outcome =
		sl_inside_rows(&line, &ask, SL_MSG_EVENT_ROW, take_event, &events, &err);
	sl_inside_close(&line);
	if (outcome == SL_INSIDE_OK) {
		r = sl_page_answer(request, 200, events_json(request, &events));
	} else {
		json_decref(events.array);
		r = sl_page_failed(request, &line, outcome, &err);
	}
	return r;
}

/* --- /api/why --------------------------------------------------------------------------------- */

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
