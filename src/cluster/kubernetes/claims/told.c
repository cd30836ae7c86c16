/*
 * told - see the header
 *
 * This process knows of no Event for a NEW tale; creating the Event makes the tale KNOWN. If the
 * server answers that the Event exists, an earlier driver process wrote it. The tale is then ASKED
 * until that Event has been read, and KNOWN afterwards. Events live for an hour in most clusters;
 * one that has expired is made again.
 */
#include "cluster/kubernetes/claims/told.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/list.h"
#include "base/log.h"
#include "base/text.h"
#include "cluster/kubernetes/claims/slice.h"

#define SERIAL_ANNOTATION "sluice.dev/serial"
/* The API server's limits. */
#define MESSAGE_MAX  1024
#define INSTANCE_MAX 128

struct tale {
	struct sl_link link;
	enum { NEW = 0, ASKED, KNOWN } stage;
	char namespace[SL_SHARE_NAME_BYTES], pod[SL_SHARE_NAME_BYTES], uid[64];
	char name[SL_SHARE_NAME_BYTES]; /* of the Event */
	char reason[64], message[MESSAGE_MAX + 1];
	bool is_warning, is_dirty, is_gone;
	uint64_t count, serial, first_ms, last_ms;
	/* The part of count since this driver started; and the latest serial from before. */
	uint64_t fresh, earlier_serial;
	uint64_t generation; /* grows with each report */
	sl_ns due;
	struct sl_kube_backoff backoff;
};

struct sl_kube_teller {
	struct sl_kube *kube;
	sd_event_source *timer;
	char node[SL_SHARE_NAME_BYTES];
	sl_ns pause;
	struct sl_link tales; /* the last one reported stands last */
	size_t count;
	struct tale *at; /* the one being written */
	uint64_t writes; /* the generation of `at` */
	struct sl_kube_call *call;
};

const char *sl_kube_time(uint64_t realtime_ms, char buf[32])
{
	time_t seconds = (time_t)(realtime_ms / 1000);
	struct tm utc;

	if (!gmtime_r(&seconds, &utc) || !strftime(buf, 32, "%Y-%m-%dT%H:%M:%SZ", &utc))
		(void)snprintf(buf, 32, "1970-01-01T00:00:00Z");
	return buf;
}

static void go_on(struct sl_kube_teller *teller);

/* FNV-1a of 64 bits: with so few tales no two are the same. */
static uint64_t hash(uint64_t so_far, const char *text)
{
	for (; *text; text++)
		so_far = (so_far ^ (unsigned char)*text) * 0x100000001b3ull;
	return so_far;
}

/* The pod's name, cut to fit, and a hash of pod and reason. */
static void name_of(const struct tale *tale, char *name, size_t size)
{
	uint64_t own = hash(hash(0xcbf29ce484222325ull, tale->uid), tale->reason);
	size_t room = size - 1 - 17, length = strlen(tale->pod);

	length = sl_min_u64(length, room);
	/* A part of a name must not end with one of "-.". */
	while (length && !isalnum((unsigned char)tale->pod[length - 1]))
		length--;
	(void)snprintf(name, size, "%.*s.%016" PRIx64, (int)length, tale->pod, own);
}

static void drop(struct sl_kube_teller *teller, struct tale *tale)
{
	if (teller->at == tale) {
		sl_kube_cancel(&teller->call);
		teller->at = NULL;
	}
	sl_list_unlink(&tale->link);
	teller->count--;
	free(tale);
}

/* --- writing ------------------------------------------------------------------------------ */

static void set_timer(struct sl_kube_teller *teller, sl_ns due)
{
	(void)sd_event_source_set_time(teller->timer, due / SL_US);
	(void)sd_event_source_set_enabled(teller->timer, SD_EVENT_ONESHOT);
}

static json_t *changes(const struct tale *tale)
{
	char last[32], serial[24];

	(void)snprintf(serial, sizeof(serial), "%" PRIu64, tale->serial);
	return json_pack("{s{s{ss}} so sI ss ss}", "metadata", "annotations",
		SERIAL_ANNOTATION, serial, "message", sl_text_json(tale->message),
		"count", (json_int_t)tale->count, "lastTimestamp",
		sl_kube_time(tale->last_ms, last), "type",
		tale->is_warning ? "Warning" : "Normal");
}

static json_t *whole(const struct sl_kube_teller *teller, const struct tale *tale)
{
	json_t *event = changes(tale);
	char first[32], node[INSTANCE_MAX + 1];
	json_t *rest, *meta = json_object_get(event, "metadata");

	(void)snprintf(node, sizeof(node), "%.*s", INSTANCE_MAX, teller->node);
	rest = json_pack("{ss ss s{ss ss ss ss ss} ss s{ss ss} ss ss ss}", "apiVersion",
		"v1", "kind", "Event", "involvedObject", "apiVersion", "v1", "kind",
		"Pod", "namespace", tale->namespace, "name", tale->pod, "uid", tale->uid,
		"reason", tale->reason, "source", "component", "sluice", "host",
		teller->node, "firstTimestamp", sl_kube_time(tale->first_ms, first),
		"reportingComponent", SL_KUBE_DRIVER, "reportingInstance", node);
	if (!rest || !meta || json_object_update(event, rest) < 0 ||
		json_object_set_new(meta, "name", json_string(tale->name)) < 0 ||
		json_object_set_new(meta, "namespace", json_string(tale->namespace)) <
			0) {
		json_decref(event);
		event = NULL;
	}
	json_decref(rest);
	return event;
}

/* Adds the count that an earlier driver process wrote. */
static void take_earlier(struct tale *tale, const json_t *event)
{
	const char *serial = sl_kube_text_at(
		event, "metadata", "annotations", SERIAL_ANNOTATION, NULL);
	json_int_t count = json_integer_value(json_object_get(event, "count"));
	uint64_t known = strtoull(serial, NULL, 10);

	tale->stage = KNOWN;
	tale->is_dirty = tale->fresh || tale->earlier_serial > known;
	tale->count = (count > 0 ? (uint64_t)count : 0) + tale->fresh +
		      (tale->earlier_serial > known);
}

static void fail(struct tale *tale, const struct sl_kube_answer *answer)
{
	if (!tale->backoff.tries)
		sl_warning("an event of pod %s/%s cannot be written: %s", tale->namespace,
			tale->pod, answer->error);
	tale->due = sl_clock_now() +
		    sl_kube_backoff_next(&tale->backoff, answer->retry_after_s);
}

static void on_answer(void *context, const struct sl_kube_answer *answer)
{
	struct sl_kube_teller *teller = context;
	struct tale *tale = teller->at;
	bool is_ok = !answer->error[0];

	teller->at = NULL;
	if (is_ok && tale->stage == ASKED) {
		take_earlier(tale, answer->body);
	} else if (is_ok) {
		tale->stage = KNOWN;
		tale->backoff.tries = 0;
		tale->is_dirty = teller->writes != tale->generation;
		tale->due = sl_clock_now() + teller->pause;
	} else if (tale->stage == NEW && answer->status == 409) {
		tale->stage = ASKED;
	} else if (tale->stage != NEW && answer->status == 404) {
		tale->stage = NEW;
	} else if (answer->status == 404 || answer->status == 422) {
		/* The namespace is gone, or the server refuses the Event for good. */
		sl_warning("an event of pod %s/%s is dropped: %s", tale->namespace,
			tale->pod, answer->error);
		tale->is_gone = true;
		tale->is_dirty = false;
	} else {
		fail(tale, answer);
	}
	go_on(teller);
}

static int write_tale(struct sl_kube_teller *teller, struct tale *tale)
{
	static const enum sl_kube_verb verbs[] = {
		[NEW] = SL_KUBE_POST, [ASKED] = SL_KUBE_GET, [KNOWN] = SL_KUBE_MERGE};
	json_t *body = tale->stage == NEW     ? whole(teller, tale)
		       : tale->stage == KNOWN ? changes(tale)
					      : NULL;
	char path[640];
	int r;

	(void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s/events%s%s",
		tale->namespace, tale->stage == NEW ? "" : "/",
		tale->stage == NEW ? "" : tale->name);
	teller->at = tale;
	teller->writes = tale->generation;
	r = sl_kube_call(teller->kube,
		&(struct sl_kube_request){.verb = verbs[tale->stage],
			.path = path,
			.body = body,
			.done = on_answer,
			.context = teller},
		&teller->call);
	json_decref(body);
	if (r < 0)
		teller->at = NULL;
	return r;
}

/* Writes the next due tale, or sets the timer. */
static void go_on(struct sl_kube_teller *teller)
{
	struct tale *next = NULL;

	if (teller->at)
		return;
	sl_list_foreach (link, &teller->tales) {
		struct tale *tale = SL_LIST_ENTRY(link, struct tale, link);

		if (tale->is_dirty && (!next || tale->due < next->due))
			next = tale;
	}
	if (!next)
		return;
	if (next->due > sl_clock_now()) {
		set_timer(teller, next->due);
	} else if (write_tale(teller, next) < 0) {
		next->due = sl_clock_now() + teller->pause;
		set_timer(teller, next->due);
	}
}

static int on_timer(sd_event_source *source, uint64_t usec, void *context)
{
	go_on(context);
	return 0;
}

/* --- reports ------------------------------------------------------------------------------ */

static struct tale *find(
	const struct sl_kube_teller *teller, const char *uid, const char *reason)
{
	sl_list_foreach (link, &teller->tales) {
		struct tale *tale = SL_LIST_ENTRY(link, struct tale, link);

		if (strcmp(tale->uid, uid) == 0 && strcmp(tale->reason, reason) == 0)
			return tale;
	}
	return NULL;
}

static void make_room(struct sl_kube_teller *teller)
{
	if (teller->count < SL_KUBE_TOLD_MAX)
		return;
	sl_list_foreach (link, &teller->tales) {
		struct tale *tale = SL_LIST_ENTRY(link, struct tale, link);

		if (tale->is_dirty || tale == teller->at)
			continue;
		drop(teller, tale);
		return;
	}
}

static struct tale *begin(struct sl_kube_teller *teller, const struct sl_kube_told *told)
{
	struct tale *tale;

	make_room(teller);
	tale = teller->count < SL_KUBE_TOLD_MAX ? calloc(1, sizeof(*tale)) : NULL;
	if (!tale)
		return NULL;
	(void)snprintf(tale->namespace, sizeof(tale->namespace), "%s", told->namespace);
	(void)snprintf(tale->pod, sizeof(tale->pod), "%s", told->pod);
	(void)snprintf(tale->uid, sizeof(tale->uid), "%s", told->uid);
	(void)snprintf(tale->reason, sizeof(tale->reason), "%s", told->reason);
	name_of(tale, tale->name, sizeof(tale->name));
	tale->first_ms = told->realtime_ms;
	sl_list_init(&tale->link);
	teller->count++;
	return tale;
}

void sl_kube_teller_tell(struct sl_kube_teller *teller, const struct sl_kube_told *told)
{
	struct tale *tale = find(teller, told->uid, told->reason);

	if (!sl_kube_is_name(told->namespace) || !sl_kube_is_name(told->pod))
		return;
	if (!tale)
		tale = begin(teller, told);
	if (!tale || tale->is_gone)
		return;
	sl_list_unlink(&tale->link);
	sl_list_push_tail(&teller->tales, &tale->link);
	(void)snprintf(tale->message, sizeof(tale->message), "%s", told->message);
	/* How many of the earlier ones were reported is unknown. */
	if (!told->is_earlier || !tale->count)
		tale->count++;
	if (told->is_earlier)
		tale->earlier_serial = told->serial;
	else
		tale->fresh++;
	tale->is_warning = told->is_warning;
	tale->serial = sl_max_u64(tale->serial, told->serial);
	tale->last_ms = told->realtime_ms;
	tale->generation++;
	tale->is_dirty = true;
	go_on(teller);
}

void sl_kube_teller_forget(struct sl_kube_teller *teller, const char *uid)
{
	sl_list_foreach_safe (link, &teller->tales) {
		struct tale *tale = SL_LIST_ENTRY(link, struct tale, link);

		if (strcmp(tale->uid, uid) == 0)
			drop(teller, tale);
	}
	go_on(teller);
}

int sl_kube_teller_new(struct sl_kube_teller **out, sd_event *loop, struct sl_kube *kube,
	const char *node, sl_ns pause)
{
	struct sl_kube_teller *teller = calloc(1, sizeof(*teller));
	int r;

	if (!teller)
		return sl_err_origin(-ENOMEM);
	teller->kube = sl_kube_ref(kube);
	teller->pause = pause;
	sl_list_init(&teller->tales);
	(void)snprintf(teller->node, sizeof(teller->node), "%s", node);
	r = sd_event_add_time(
		loop, &teller->timer, CLOCK_MONOTONIC, 0, 0, on_timer, teller);
	if (r >= 0)
		r = sd_event_source_set_enabled(teller->timer, SD_EVENT_OFF);
	if (r < 0) {
		(void)sl_kube_teller_free(teller);
		return sl_err_origin(r);
	}
	*out = teller;
	return 0;
}

struct sl_kube_teller *sl_kube_teller_free(struct sl_kube_teller *teller)
{
	if (!teller)
		return NULL;
	sl_kube_cancel(&teller->call);
	while (!sl_list_is_empty(&teller->tales))
		drop(teller, SL_LIST_ENTRY(teller->tales.next, struct tale, link));
	teller->timer = sd_event_source_disable_unref(teller->timer);
	teller->kube = sl_kube_unref(teller->kube);
	free(teller);
	return NULL;
}
