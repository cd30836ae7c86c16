/*
 * watch - lists, watches, and handles the end of a watch
 *
 * There is always exactly one call, perhaps with a delay (`after`): a page of the list or the
 * stream of changes. So a watch needs no timer, and freeing the client ends it.
 *
 * A watch that ends continues from the last resource version, bookmarks included. It lists again if
 * that version cannot be trusted: 410 Gone (the server forgot it), an ERROR event, a line that is
 * not JSON or too long. `known` has the objects reported so far, so a complete list shows which
 * ones vanished. An event, or a watch that lived for a while, resets the back-off. A list does not
 * reset it: otherwise a server that answers each watch with 410 would be listed without a pause.
 */
#include "cluster/kubernetes/api/watch.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"

/* Objects of one page at first: some MiB of pods. */
#define PAGE_OBJECTS   250u
#define PAGE_MAX_BYTES (16 * SL_MIB)
/* The longest life of a watch that is asked of the server, and the extra time allowed. */
#define WATCH_S    300u
#define WATCH_MORE (30 * SL_S)
/* A watch that lived this long counts as working. */
#define LIVED (5 * SL_S)

struct sl_kube_watch {
	struct sl_kube *kube;
	struct sl_kube_call *call;
	char *path, *query; /* query is "" or ends with & */
	sl_kube_event_fn fn;
	void *context;

	char *version;   /* resource version to continue from; NULL: list */
	char *next_page; /* escaped token, or NULL */
	unsigned int page_objects;
	json_t *known; /* NAMESPACE/NAME: "UID VERSION" */
	json_t *seen;  /* keys of the present list */
	bool is_synced;
	struct sl_kube_backoff backoff;
	sl_ns since;    /* begin of the watch */
	bool is_broken; /* the stream's lines cannot be trusted; `why` has the reason */
	int broken_status;
	struct sl_error why;
	bool *gone; /* flag of the function that is passing on events */
};

static void go_on(struct sl_kube_watch *watch, sl_ns after);

/* --- passing on ---------------------------------------------------------------------------- */

/* Returns whether the watch and its client still exist. */
static SL_MUST_CHECK bool tell(
	struct sl_kube_watch *watch, const struct sl_kube_event *event)
{
	bool gone = false;

	watch->gone = &gone;
	watch->fn(watch->context, event);
	if (gone)
		return false;
	watch->gone = NULL;
	return !sl_kube_has_ended(watch->kube);
}

static SL_MUST_CHECK bool tell_object(
	struct sl_kube_watch *watch, enum sl_kube_event_kind kind, json_t *object)
{
	const struct sl_kube_event event = {.kind = kind, .object = object, .error = ""};

	return tell(watch, &event);
}

static char *key_of(const json_t *object)
{
	char *key = NULL;

	if (asprintf(&key, "%s/%s",
		    sl_kube_text_at(object, "metadata", "namespace", NULL),
		    sl_kube_text_at(object, "metadata", "name", NULL)) < 0)
		return NULL;
	return key;
}

/* "UID VERSION" of the object. */
static char *mark_of(const json_t *object)
{
	char *mark = NULL;

	if (asprintf(&mark, "%s %s", sl_kube_text_at(object, "metadata", "uid", NULL),
		    sl_kube_text_at(object, "metadata", "resourceVersion", NULL)) < 0)
		return NULL;
	return mark;
}

static bool is_same_uid(const char *a, const char *b)
{
	size_t length = strcspn(a, " ");

	return strcspn(b, " ") == length && strncmp(a, b, length) == 0;
}

/* A stand-in for an object of which only key and mark are known. */
static json_t *remnant(const char *key, const char *mark)
{
	const char *slash = strchr(key, '/');

	return json_pack("{s{ss%ss%ss*}}", "metadata", "uid", mark, strcspn(mark, " "),
		"namespace", key, (size_t)(slash - key), "name", slash + 1);
}

static SL_MUST_CHECK bool forget(
	struct sl_kube_watch *watch, const char *key, json_t *object)
{
	sl_cleanup(sl_freep) char *mark = NULL;
	const char *known = json_string_value(json_object_get(watch->known, key));
	bool there;

	if (!known)
		return true;
	mark = strdup(known);
	object = object ? json_incref(object) : mark ? remnant(key, mark) : NULL;
	(void)json_object_del(watch->known, key);
	there = tell_object(watch, SL_KUBE_DELETED, object);
	json_decref(object);
	return there;
}

/* Reports an object as ADDED or MODIFIED. */
static SL_MUST_CHECK bool meet(struct sl_kube_watch *watch, json_t *object)
{
	sl_cleanup(sl_freep) char *key = key_of(object), *mark = mark_of(object);
	enum sl_kube_event_kind kind = SL_KUBE_ADDED;
	const char *known;

	if (!key || !mark)
		return true;
	if (watch->seen)
		(void)json_object_set_new(watch->seen, key, json_true());
	known = json_string_value(json_object_get(watch->known, key));
	if (known && strcmp(known, mark) == 0)
		return true;
	if (known && is_same_uid(known, mark))
		kind = SL_KUBE_MODIFIED;
	else if (known && !forget(watch, key, NULL))
		return false;
	(void)json_object_set_new(watch->known, key, json_string(mark));
	return tell_object(watch, kind, object);
}

/* After a complete list: reports missing objects as DELETED. */
static SL_MUST_CHECK bool forget_vanished(struct sl_kube_watch *watch)
{
	sl_cleanup(sl_freep) char **keys = NULL;
	size_t count = 0;
	bool there = true;
	const char *key;
	json_t *mark;

	keys = calloc(json_object_size(watch->known) + 1, sizeof(*keys));
	if (!keys)
		return true;
	json_object_foreach(watch->known, key, mark)
	{
		if (!json_object_get(watch->seen, key))
			keys[count++] = strdup(key);
	}
	for (size_t i = 0; i < count; i++) {
		if (there && keys[i])
			there = forget(watch, keys[i], NULL);
		free(keys[i]);
	}
	return there;
}

static SL_MUST_CHECK bool tell_trouble(
	struct sl_kube_watch *watch, int status, const char *why)
{
	const struct sl_kube_event event = {
		.kind = SL_KUBE_TROUBLE, .status = status, .error = why};

	/* The caller decides about a kind that is not served. */
	if (status == 404)
		sl_debug("watch of %s: %s", watch->path, why);
	else
		sl_info("watch of %s: %s", watch->path, why);
	return tell(watch, &event);
}

/* --- the list ------------------------------------------------------------------------------ */

static void list_anew(struct sl_kube_watch *watch)
{
	free(sl_steal(&watch->version));
	free(sl_steal(&watch->next_page));
	json_decref(sl_steal(&watch->seen));
}

/* Escaped for the path; NULL if there is no further page. */
static char *next_page(const json_t *list)
{
	const char *token = sl_kube_text_at(list, "metadata", "continue", NULL);
	char *escaped = *token ? curl_easy_escape(NULL, token, 0) : NULL;
	char *copy = escaped ? strdup(escaped) : NULL;

	curl_free(escaped);
	return copy;
}

static void list_failed(
	struct sl_kube_watch *watch, const struct sl_kube_answer *answer, const char *why)
{
	sl_ns after;

	/* Large objects: ask for fewer per page. */
	if (answer->is_too_large && watch->page_objects > 1) {
		watch->page_objects = (watch->page_objects + 3) / 4;
		go_on(watch, 0);
		return;
	}
	/* The token of the next page expires after some minutes. */
	if (answer->status == 410)
		list_anew(watch);
	after = sl_kube_backoff_next(&watch->backoff, answer->retry_after_s);
	if (tell_trouble(watch, answer->status, why))
		go_on(watch, after);
}

static void on_list(void *context, const struct sl_kube_answer *answer)
{
	struct sl_kube_watch *watch = context;
	const json_t *items = sl_kube_at(answer->body, "items", NULL);
	const char *version =
		sl_kube_text_at(answer->body, "metadata", "resourceVersion", NULL);
	const struct sl_kube_event synced = {.kind = SL_KUBE_SYNCED, .error = ""};
	size_t i;
	json_t *item;

	if (*answer->error) {
		list_failed(watch, answer, answer->error);
		return;
	}
	/* An invalid list must not count as empty: every object would be DELETED. */
	if (!items || !*version) {
		list_failed(watch, answer, "the answer is not a list");
		return;
	}
	json_array_foreach(items, i, item)
	{
		if (!meet(watch, item))
			return;
	}
	/* The objects behind large ones may be small again. */
	watch->page_objects = (unsigned int)sl_min_u64(
		PAGE_OBJECTS, watch->page_objects + watch->page_objects / 4 + 1);
	free(watch->next_page);
	watch->next_page = next_page(answer->body);
	if (watch->next_page) {
		go_on(watch, 0);
		return;
	}
	if (!forget_vanished(watch))
		return;
	list_anew(watch);
	watch->version = strdup(version);
	watch->is_synced = true;
	if (tell(watch, &synced))
		go_on(watch, 0);
}

/* --- the stream ---------------------------------------------------------------------------- */

static SL_PRINTF(3, 4) void mistrust(
	struct sl_kube_watch *watch, int status, const char *format, ...)
{
	va_list args;
	char text[SL_ERROR_TEXT_MAX];

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	sl_error_set(&watch->why, "%s", text);
	watch->is_broken = true;
	watch->broken_status = status;
}

static void note_version(struct sl_kube_watch *watch, const json_t *object)
{
	const char *version =
		sl_kube_text_at(object, "metadata", "resourceVersion", NULL);
	char *copy = *version ? strdup(version) : NULL;

	if (!copy)
		return;
	free(watch->version);
	watch->version = copy;
	watch->backoff = (struct sl_kube_backoff){0};
}

/* Stores the version before reporting, since the watch may be gone then. */
static void serve_change(struct sl_kube_watch *watch, const char *type, json_t *object)
{
	sl_cleanup(sl_freep) char *key = NULL;

	note_version(watch, object);
	if (strcmp(type, "BOOKMARK") == 0)
		return;
	if (strcmp(type, "DELETED") == 0) {
		key = key_of(object);
		if (key && !forget(watch, key, object))
			return;
	} else if (!meet(watch, object)) {
		return;
	}
}

static void on_line(void *context, char *text, size_t size)
{
	struct sl_kube_watch *watch = context;
	json_t *change, *object;
	const char *type;

	if (watch->is_broken || size == 0)
		return;
	change = sl_kube_parse_object(text, size);
	object = sl_kube_at(change, "object", NULL);
	type = sl_kube_text_at(change, "type", NULL);
	if (!json_is_object(object) || !*type)
		mistrust(watch, 0, "a line that is no event: %.100s", text);
	else if (strcmp(type, "ERROR") == 0)
		mistrust(watch, (int)json_integer_value(sl_kube_at(object, "code", NULL)),
			"%.300s", sl_kube_text_at(object, "message", NULL));
	else
		serve_change(watch, type, object);
	json_decref(change);
}

static void on_watch_end(void *context, const struct sl_kube_answer *answer)
{
	struct sl_kube_watch *watch = context;
	int status = watch->is_broken ? watch->broken_status : answer->status;
	bool is_over = status == 410;
	bool has_lived = sl_clock_now() - watch->since >= LIVED;
	char why[SL_ERROR_TEXT_MAX];
	sl_ns after;

	if (answer->status == 200 && has_lived && !watch->is_broken)
		watch->backoff = (struct sl_kube_backoff){0};
	/* The normal end: the server's time for it was up. Continue at once. */
	if (answer->status == 200 && !*answer->error && !watch->is_broken && has_lived) {
		go_on(watch, 0);
		return;
	}
	if (is_over || watch->is_broken || answer->is_too_large)
		list_anew(watch);
	(void)snprintf(why, sizeof(why), "%s",
		watch->is_broken ? watch->why.text
		: *answer->error ? answer->error
				 : "it ended at once");
	after = is_over && watch->backoff.tries == 0 ? 0 : SL_NS_NEVER;
	if (after == 0)
		watch->backoff.tries = 1;
	else
		after = sl_kube_backoff_next(&watch->backoff, answer->retry_after_s);
	if (tell_trouble(watch, status, why))
		go_on(watch, after);
}

/* --- the one call -------------------------------------------------------------------------- */

static int ask(struct sl_kube_watch *watch, sl_ns after)
{
	struct sl_kube_request request = {.context = watch, .after = after};
	sl_cleanup(sl_freep) char *path = NULL;
	int n;

	if (watch->version) {
		n = asprintf(&path,
			"%s?%swatch=true&allowWatchBookmarks=true&resourceVersion=%s&"
			"timeoutSeconds=%u",
			watch->path, watch->query, watch->version, WATCH_S);
		request.line = on_line;
		request.done = on_watch_end;
		request.timeout = WATCH_S * SL_S + WATCH_MORE;
		watch->is_broken = false;
		watch->since = sl_clock_now() + after;
	} else {
		n = asprintf(&path, "%s?%slimit=%u%s%s", watch->path, watch->query,
			watch->page_objects, watch->next_page ? "&continue=" : "",
			watch->next_page ? watch->next_page : "");
		request.done = on_list;
		request.max_bytes = PAGE_MAX_BYTES;
		/* A page of a single object is always accepted: a user made the object, and
		 * refusing it would hide those behind it. */
		request.is_page = watch->page_objects > 1;
		if (!watch->seen)
			watch->seen = json_object();
	}
	if (n < 0)
		return sl_err_origin(-ENOMEM);
	request.path = path;
	return sl_kube_call(watch->kube, &request, &watch->call);
}

static void go_on(struct sl_kube_watch *watch, sl_ns after)
{
	int r = ask(watch, after);

	/* Out of memory: no call is left that could try again. */
	if (r < 0)
		sl_error_log("watch of %s ends: %s", watch->path, strerror(-r));
}

int sl_kube_watch_new(struct sl_kube_watch **out, struct sl_kube *kube, const char *path,
	const char *query, sl_kube_event_fn fn, void *context)
{
	struct sl_kube_watch *watch = calloc(1, sizeof(*watch));
	int r = -ENOMEM;

	*out = NULL;
	if (!watch)
		return sl_err_origin(-ENOMEM);
	watch->kube = sl_kube_ref(kube);
	watch->fn = fn;
	watch->context = context;
	watch->page_objects = PAGE_OBJECTS;
	watch->path = strdup(path);
	if (asprintf(&watch->query, "%s%s", query ? query : "", query ? "&" : "") < 0)
		watch->query = NULL;
	watch->known = json_object();
	if (watch->path && watch->query && watch->known)
		r = ask(watch, 0);
	if (r < 0)
		watch = sl_kube_watch_free(watch);
	*out = watch;
	return r;
}

struct sl_kube_watch *sl_kube_watch_free(struct sl_kube_watch *watch)
{
	if (!watch)
		return NULL;
	if (watch->gone)
		*watch->gone = true;
	sl_kube_cancel(&watch->call);
	(void)sl_kube_unref(watch->kube);
	list_anew(watch);
	json_decref(watch->known);
	free(watch->path);
	free(watch->query);
	free(watch);
	return NULL;
}

bool sl_kube_watch_is_synced(const struct sl_kube_watch *watch)
{
	return watch->is_synced;
}
