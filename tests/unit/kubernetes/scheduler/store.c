/*
 * store - see the header
 */
#include "store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/kubernetes/api/parse.h"

#define CLAIMS 64
#define MADE   "/apis/resource.k8s.io/v1/namespaces/n/resourceclaims"
#define CLAIM  MADE "/"

static struct {
	char name[64];
	json_t *object;
} store[CLAIMS];
static unsigned int bindings;

int store_close(void **state)
{
	for (unsigned int i = 0; i < CLAIMS; i++)
		json_decref(store[i].object);
	(void)memset(store, 0, sizeof(store));
	bindings = 0;
	return stage_close(state);
}

/* Of that name, or the first that is free. */
static json_t **at(const char *name)
{
	for (unsigned int i = 0; i < CLAIMS; i++) {
		if (!store[i].name[0])
			(void)snprintf(store[i].name, sizeof(store[i].name), "%s", name);
		if (strcmp(store[i].name, name) == 0)
			return &store[i].object;
	}
	fail_msg("too many claims");
	return NULL;
}

static json_t *make(const char *name, const char *uid, unsigned int version,
	const char *memory, const char *meta, const char *status)
{
	char text[1024];
	json_t *object;

	(void)snprintf(text, sizeof(text),
		"{\"metadata\":{\"name\":\"%s\",\"namespace\":\"n\",\"uid\":\"%s\","
		"\"resourceVersion\":\"%u\"%s},\"spec\":{\"devices\":{\"requests\":[{"
		"\"name\":\"gpu\",\"exactly\":{\"deviceClassName\":\"gpu.sluice.dev\","
		"\"capacity\":{\"requests\":{\"memory\":\"%s\"}}}}]}},\"status\":{%s}}",
		name, uid, version, meta, memory, status);
	object = json_loads(text, 0, NULL);
	if (!object)
		fail_msg("no JSON: %s", text);
	return object;
}

void store_event(enum sl_kube_event_kind kind, const char *name)
{
	char *text = json_dumps(*at(name), 0);

	stage_event(SL_KS_WATCH_CLAIMS, kind, "%s", text);
	free(text);
}

static void keep(const char *name, json_t *object)
{
	json_decref(*at(name));
	*at(name) = object;
	store_event(SL_KUBE_ADDED, name);
}

void store_claim(
	const char *name, const char *uid, unsigned int version, const char *memory)
{
	keep(name, make(name, uid, version, memory, "", ""));
}

void store_allocated(const char *name, const char *memory, const char *node,
	const char *pod_uid, const char *meta)
{
	char status[400];

	(void)snprintf(status, sizeof(status),
		"\"allocation\":{\"devices\":{\"results\":[{\"driver\":\"gpu.sluice."
		"dev\",\"pool\":\"%s\",\"device\":\"gpu-0\",\"consumedCapacity\":{"
		"\"memory\":\"%s\"}}]}},\"reservedFor\":[{\"uid\":\"%s\"}]",
		node, memory, pod_uid);
	keep(name, make(name, name, 5, memory, meta, status));
}

const json_t *store_find(const char *name)
{
	return *at(name);
}

const char *store_consumed(const char *name)
{
	const json_t *results =
		sl_kube_at(*at(name), "status", "allocation", "devices", "results", NULL);

	return sl_kube_text_at(
		json_array_get(results, 0), "consumedCapacity", "memory", NULL);
}

static void write_claim(struct stage_call *call, json_t *object, bool is_status)
{
	json_t *meta = json_object_get(object, "metadata");
	const json_t *given = json_object_get(call->body, "metadata");
	const char *version = sl_kube_text_at(meta, "resourceVersion", NULL);
	char next[16];

	if (strcmp(sl_kube_text_at(given, "uid", NULL),
		    sl_kube_text_at(meta, "uid", NULL)) != 0 ||
		strcmp(sl_kube_text_at(given, "resourceVersion", NULL), version) != 0) {
		stage_answer(call, 409, NULL);
		return;
	}
	(void)snprintf(next, sizeof(next), "%d", atoi(version) + 1);
	(void)json_object_set_new(meta, "resourceVersion", json_string(next));
	if (is_status)
		(void)json_object_set(
			object, "status", json_object_get(call->body, "status"));
	else
		(void)json_object_set(
			meta, "finalizers", json_object_get(given, "finalizers"));
	stage_answer(call, 200, json_deep_copy(object));
}

static void make_claim(struct stage_call *call)
{
	const char *name = sl_kube_text_at(call->body, "metadata", "name", NULL);
	json_t **object = at(name), *meta;

	if (*object) {
		stage_answer(call, 409, NULL);
		return;
	}
	*object = json_deep_copy(call->body);
	meta = json_object_get(*object, "metadata");
	(void)json_object_set_new(meta, "uid", json_string(name));
	(void)json_object_set_new(meta, "resourceVersion", json_string("5"));
	stage_answer(call, 201, json_deep_copy(*object));
}

/* A call of a pod. */
static void serve_pod(struct stage_call *call)
{
	json_t *answer = json_object();

	bindings += strstr(call->path, "/binding") != NULL;
	if (call->verb == SL_KUBE_STRATEGIC)
		(void)json_object_update(answer, call->body);
	stage_answer(call, 201, answer);
}

void store_serve(struct stage_call *call)
{
	char name[64], rest[16] = "";
	json_t *object;

	if (strcmp(call->path, MADE) == 0) {
		make_claim(call);
		return;
	}
	if (sscanf(call->path, CLAIM "%63[^/]/%15s", name, rest) < 1) {
		serve_pod(call);
		return;
	}
	object = *at(name);
	if (!object)
		stage_answer(call, 404, NULL);
	else if (call->verb == SL_KUBE_GET)
		stage_answer(call, 200, json_deep_copy(object));
	else
		write_claim(call, object, strcmp(rest, "status") == 0);
}

void store_serve_all(void)
{
	struct stage_call *call;
	int most = 1000;

	stage_settle();
	while ((call = stage_find_call("/namespaces/n/"))) {
		assert_true(most-- > 0);
		store_serve(call);
		stage_settle();
	}
}

unsigned int store_bindings(void)
{
	unsigned int count = bindings;

	bindings = 0;
	return count;
}
