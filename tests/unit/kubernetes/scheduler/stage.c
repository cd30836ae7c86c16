/*
 * stage - see the header
 */
#include "stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
	struct sl_ks *ks;
	sd_event *loop;
	struct sl_link calls;
	struct {
		sl_kube_event_fn fn;
		void *context;
	} watch[SL_KS_WATCHES];
	unsigned int watches, version;
	bool is_mute;
} s;

/* --- Stand-ins for the client of the API. ------------------------------------------------- */

int sl_kube_config_find(
	struct sl_kube_config *out, const char *path, struct sl_error *err)
{
	*out = (struct sl_kube_config){0};
	return 0;
}

int sl_kube_new(struct sl_kube **out, sd_event *event, struct sl_kube_config *config)
{
	*out = NULL;
	return 0;
}

struct sl_kube *sl_kube_free(struct sl_kube *kube)
{
	return NULL;
}

sl_ns sl_kube_backoff_next(struct sl_kube_backoff *backoff, unsigned int retry_after_s)
{
	backoff->tries++;
	return SL_S;
}

int sl_kube_call(struct sl_kube *kube, const struct sl_kube_request *request,
	struct sl_kube_call **slot)
{
	struct stage_call *call = calloc(1, sizeof(*call));

	assert_non_null(call);
	call->verb = request->verb;
	(void)snprintf(call->path, sizeof(call->path), "%s", request->path);
	call->body = request->body ? json_deep_copy(request->body) : NULL;
	call->after = request->after;
	call->done = request->done;
	call->context = request->context;
	call->slot = slot;
	if (slot)
		*slot = (struct sl_kube_call *)call;
	sl_list_push_tail(&s.calls, &call->link);
	return 0;
}

static void drop(struct stage_call *call)
{
	if (call->slot)
		*call->slot = NULL;
	sl_list_unlink(&call->link);
	json_decref(call->body);
	free(call);
}

void sl_kube_cancel(struct sl_kube_call **slot)
{
	if (*slot)
		drop((struct stage_call *)*slot);
}

int sl_kube_watch_new(struct sl_kube_watch **out, struct sl_kube *kube, const char *path,
	const char *query, sl_kube_event_fn fn, void *context)
{
	*out = NULL;
	assert_true(s.watches < SL_KS_WATCHES);
	s.watch[s.watches].fn = fn;
	s.watch[s.watches++].context = context;
	return 0;
}

struct sl_kube_watch *sl_kube_watch_free(struct sl_kube_watch *watch)
{
	return NULL;
}

/* --- Calls. ------------------------------------------------------------------------------- */

struct stage_call *stage_find_call(const char *part)
{
	sl_list_foreach (link, &s.calls) {
		struct stage_call *call = SL_LIST_ENTRY(link, struct stage_call, link);

		if (strstr(call->path, part))
			return call;
	}
	return NULL;
}

unsigned int stage_count_calls(const char *part)
{
	unsigned int count = 0;

	sl_list_foreach (link, &s.calls)
		count += strstr(SL_LIST_ENTRY(link, struct stage_call, link)->path,
				 part) != NULL;
	return count;
}

void stage_answer(struct stage_call *call, int status, json_t *body)
{
	struct sl_kube_answer answer = {.status = status,
		.body = body,
		.error = status / 100 == 2 ? "" : "refused",
		.reason = ""};
	sl_kube_done_fn done = call->done;
	void *context = call->context;

	drop(call);
	done(context, &answer);
	json_decref(body);
}

static json_t *lease_of(unsigned int version)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%u", version);
	return json_pack("{s{ss}s{ss}}", "metadata", "resourceVersion", text, "spec",
		"holderIdentity", "me");
}

static void answer_lease(void)
{
	struct stage_call *call = s.is_mute ? NULL : stage_find_call("/leases");

	if (call && call->verb == SL_KUBE_GET)
		stage_answer(call, s.version ? 200 : 404, lease_of(s.version));
	else if (call)
		stage_answer(call, 200, lease_of(++s.version));
}

/* --- Time. -------------------------------------------------------------------------------- */

static void turn(void)
{
	answer_lease();
	assert_true(sd_event_run(s.loop, 1000) >= 0);
}

void stage_mute_lease(void)
{
	s.is_mute = true;
}

void stage_settle(void)
{
	sl_ks_awake(s.ks);
	while (s.ks->cycle_at != SL_NS_NEVER)
		turn();
}

void stage_tell(void)
{
	sl_ns end = sl_clock_now() + 30 * SL_MS;

	sl_list_foreach (link, &s.ks->pods)
		SL_LIST_ENTRY(link, struct sl_ks_pod, link)->since = 0;
	(void)sd_event_source_set_time_relative(s.ks->teller, 0);
	while (sl_clock_now() < end)
		turn();
}

void stage_start(sl_ns lease)
{
	const struct sl_kube_scheduler_options options = {.name = "sluice",
		.namespace = "sluice",
		.identity = "me",
		.lease = lease};
	struct sl_error err = {0};

	s = (typeof(s)){0};
	sl_list_init(&s.calls);
	assert_int_equal(sd_event_new(&s.loop), 0);
	assert_int_equal(sl_kube_scheduler_new(s.loop, &options, &s.ks, &err), 0);
	while (s.watches < SL_KS_WATCHES)
		turn();
}

void stage_sync(void)
{
	for (int i = 0; i < SL_KS_WATCHES; i++)
		s.watch[i].fn(s.watch[i].context,
			&(struct sl_kube_event){.kind = SL_KUBE_SYNCED, .error = ""});
	stage_settle();
}

void stage_open_for(sl_ns lease)
{
	stage_start(lease);
	stage_sync();
}

int stage_open(void **state)
{
	stage_open_for(60 * SL_S);
	return 0;
}

int stage_close(void **state)
{
	s.ks = sl_kube_scheduler_free(s.ks);
	sl_list_foreach_safe (link, &s.calls)
		drop(SL_LIST_ENTRY(link, struct stage_call, link));
	s.loop = sd_event_unref(s.loop);
	return 0;
}

struct sl_ks *stage(void)
{
	return s.ks;
}

/* --- Objects. ----------------------------------------------------------------------------- */

void stage_event(
	enum sl_ks_watch watch, enum sl_kube_event_kind kind, const char *format, ...)
{
	json_error_t why = {0};
	json_t *object;
	char *text = NULL;
	va_list args;

	va_start(args, format);
	assert_true(vasprintf(&text, format, args) >= 0);
	va_end(args);
	object = json_loads(text, 0, &why);
	if (!object)
		fail_msg("%s: %s", why.text, text);
	s.watch[watch].fn(s.watch[watch].context,
		&(struct sl_kube_event){.kind = kind, .object = object, .error = ""});
	json_decref(object);
	free(text);
}

void stage_node(enum sl_kube_event_kind kind, const char *name, const char *labels,
	unsigned int cpus)
{
	stage_event(SL_KS_WATCH_NODES, kind,
		"{\"metadata\":{\"name\":\"%s\",\"labels\":{\"host\":\"%s\"%s}},"
		"\"status\":{\"allocatable\":{\"cpu\":\"%u\",\"memory\":\"64Gi\","
		"\"pods\":\"110\"},\"conditions\":[{\"type\":\"Ready\",\"status\":"
		"\"True\"}]}}",
		name, name, labels, cpus);
}

void stage_slice(enum sl_kube_event_kind kind, const char *node, unsigned int gpus,
	unsigned int gib)
{
	char devices[4096] = "";

	for (unsigned int i = 0; i < gpus; i++) {
		size_t used = strlen(devices);

		(void)snprintf(devices + used, sizeof(devices) - used,
			"%s{\"name\":\"gpu-%u\",\"capacity\":{\"memory\":{\"value\":"
			"\"%uGi\"},\"memoryLimit\":{\"requestPolicy\":{\"validRange\":{"
			"\"max\":\"%uGi\"}}}}}",
			i ? "," : "", i, gib, gib);
	}
	stage_event(SL_KS_WATCH_SLICES, kind,
		"{\"metadata\":{\"name\":\"%s-gpu.sluice.dev\"},\"spec\":{\"driver\":"
		"\"gpu.sluice.dev\",\"nodeName\":\"%s\",\"pool\":{\"name\":\"%s\"},"
		"\"devices\":[%s]}}",
		node, node, node, devices);
}

void stage_pod(enum sl_kube_event_kind kind, const char *name, const char *meta,
	const char *spec)
{
	stage_event(SL_KS_WATCH_PODS, kind,
		"{\"metadata\":{\"name\":\"%s\",\"namespace\":\"n\",\"uid\":\"%s\"%s},"
		"\"spec\":{\"schedulerName\":\"sluice\"%s},\"status\":{\"phase\":"
		"\"Pending\"}}",
		name, name, meta, spec);
}

struct sl_ks_pod *stage_find_pod(const char *name)
{
	char key[SL_KS_NAME_MAX];

	return sl_ks_find(&s.ks->pods_by_name, sl_ks_key(key, "n", name));
}

const char *stage_place(const char *pod)
{
	const struct sl_ks_pod *found = stage_find_pod(pod);

	return found && found->place.node ? found->place.node->named.key : "";
}
