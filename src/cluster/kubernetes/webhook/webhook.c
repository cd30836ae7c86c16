/*
 * webhook - see the header
 *
 * Each review runs through its steps independently: namespace, look-ups, templates, one call at a
 * time.
 */
#include "cluster/kubernetes/webhook/webhook.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/list.h"
#include "base/log.h"
#include "cluster/kubernetes/claims/admit.h"
#include "cluster/kubernetes/api/api.h"
#include "cluster/kubernetes/claims/slice.h"
#include "cluster/kubernetes/api/watch.h"
#include "cluster/kubernetes/webhook/keys.h"
#include "cluster/kubernetes/webhook/server.h"

#define SLICES_QUERY "fieldSelector=spec.driver%3D" SL_KUBE_DRIVER
/* Of one call; the API server waits 10 s for the answer. */
#define CALL_TIMEOUT (4 * SL_S)
/* For a refusal that is not about the pod. */
#define CODE_RETRY 503
#define STATUS_OK  200
#define STATUS_BAD 400
/* Above this size of the heap no review is read. A review takes up to 60 MiB of heap; all bodies
 * together take 64 MiB outside of it; the container has 256 MiB. */
#define HEAP_MAX_BYTES (64 * SL_MIB)

struct sl_webhook {
	sd_event *loop;
	struct sl_kube *kube;
	struct sl_kube_watch *slices_watch;
	struct sl_webhook_keys *keys;
	struct sl_webhook_server *server;
	struct sl_webhook_certs *waiting; /* until the slices are known */
	/* Slice to its GPUs: [memory, own, memory, own, ...] */
	json_t *slices;
	struct sl_sizes sizes;
	bool sizes_are_old;
	struct sl_link reviews;
};

struct review {
	struct sl_link link;
	struct sl_webhook *webhook;
	struct sl_webhook_call *call;
	struct sl_kube_call *kube_call;
	json_t *json; /* owns the texts of `is` */
	struct sl_admit_review is;
	json_t *namespace;
	json_t *paths; /* paths to look up */
	json_t *looked_up;
	size_t at; /* index in paths, then in the templates */
	struct sl_admit_answer answer;
};

/* --- GPUs ---------------------------------------------------------------------------------- */

static json_t *rooms_of(const json_t *slice)
{
	struct sl_gpu_room rooms[SL_KUBE_GPUS_MAX];
	size_t count = sl_gpu_rooms_read(slice, rooms, SL_KUBE_GPUS_MAX);
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++) {
		(void)json_array_append_new(
			list, json_integer((json_int_t)rooms[i].memory_bytes));
		(void)json_array_append_new(
			list, json_integer((json_int_t)rooms[i].own_bytes));
	}
	return list;
}

static void serve_waiting(struct sl_webhook *webhook);

static void on_slice(void *context, const struct sl_kube_event *event)
{
	struct sl_webhook *webhook = context;
	const char *name = sl_kube_text_at(event->object, "metadata", "name", NULL);

	switch (event->kind) {
	case SL_KUBE_ADDED:
	case SL_KUBE_MODIFIED:
		(void)json_object_set_new(webhook->slices, name, rooms_of(event->object));
		break;
	case SL_KUBE_DELETED: (void)json_object_del(webhook->slices, name); break;
	case SL_KUBE_SYNCED: serve_waiting(webhook); break;
	case SL_KUBE_TROUBLE: break;
	}
	webhook->sizes_are_old = true;
}

static uint64_t number_at(const json_t *list, size_t i)
{
	return (uint64_t)json_integer_value(json_array_get(list, i));
}

static const struct sl_sizes *sizes_of(struct sl_webhook *webhook)
{
	sl_cleanup(sl_freep) struct sl_gpu_room *rooms = NULL;
	size_t count = 0, room = 0;
	const char *name;
	json_t *list;

	if (!webhook->sizes_are_old)
		return &webhook->sizes;
	json_object_foreach(webhook->slices, name, list)
	{
		room += json_array_size(list) / 2;
	}
	rooms = calloc(room + 1, sizeof(*rooms));
	if (!rooms)
		return &webhook->sizes;
	json_object_foreach(webhook->slices, name, list)
	{
		for (size_t i = 0; i + 1 < json_array_size(list); i += 2)
			rooms[count++] = (struct sl_gpu_room){
				number_at(list, i), number_at(list, i + 1)};
	}
	sl_sizes_group(rooms, count, &webhook->sizes);
	webhook->sizes_are_old = false;
	return &webhook->sizes;
}

/* --- a review ------------------------------------------------------------------------------ */

static void review_free(struct review *review)
{
	sl_list_unlink(&review->link);
	sl_kube_cancel(&review->kube_call);
	sl_admit_answer_fini(&review->answer);
	json_decref(review->json);
	json_decref(review->namespace);
	json_decref(review->paths);
	json_decref(review->looked_up);
	free(review);
}

static char *response_text(const char *uid, const struct sl_admit_answer *answer)
{
	json_t *response = sl_admit_response(uid, answer);
	char *text = response ? json_dumps(response, JSON_COMPACT) : NULL;

	json_decref(response);
	return text;
}

static void finish(struct review *review)
{
	const char *refusal = review->answer.refusal.text;

	if (refusal[0])
		sl_info("namespace %s: refused: %s", review->is.namespace, refusal);
	sl_webhook_answer(
		review->call, STATUS_OK, response_text(review->is.uid, &review->answer));
	review_free(review);
}

/* The pod may be valid: the caller may try again. */
static void finish_later(struct review *review, const char *what, const char *error)
{
	sl_admit_answer_fini(&review->answer);
	review->answer.code = CODE_RETRY;
	sl_error_set(&review->answer.refusal, "%s: %s; try again", what, error);
	finish(review);
}

static void ask(struct review *review, enum sl_kube_verb verb, const char *path,
	const json_t *body, sl_kube_done_fn done)
{
	const struct sl_kube_request request = {.verb = verb,
		.path = path,
		.body = body,
		.done = done,
		.context = review,
		.timeout = CALL_TIMEOUT};
	int r = sl_kube_call(review->webhook->kube, &request, &review->kube_call);

	if (r < 0)
		finish_later(review, "the API server cannot be asked", strerror(-r));
}

static void make_templates(struct review *review);

/* Asks about the next template: by its name, or "" for the path that creates it. */
static void ask_templates(struct review *review, enum sl_kube_verb verb, const char *name,
	const json_t *body, sl_kube_done_fn done)
{
	char path[512];

	(void)snprintf(path, sizeof(path),
		"/apis/resource.k8s.io/v1/namespaces/%s/resourceclaimtemplates%s%s",
		review->is.namespace, name[0] ? "/" : "", name);
	ask(review, verb, path, body, done);
}

static const json_t *template_of(const struct review *review)
{
	return json_array_get(review->answer.templates, review->at);
}

static const char *template_name(const struct review *review)
{
	return sl_kube_text_at(template_of(review), "metadata", "name", NULL);
}

/* The template's name derives from its content, but a user of the namespace may have made another
 * template of that name. */
static void on_namesake(void *context, const struct sl_kube_answer *answer)
{
	struct review *review = context;
	const char *name = template_name(review);

	if (answer->error[0]) {
		finish_later(review, "the pod's ResourceClaimTemplate cannot be read",
			answer->error);
	} else if (sl_claimspec_is_same(
			   sl_kube_at(template_of(review), "spec", "spec", NULL),
			   sl_kube_at(answer->body, "spec", "spec", NULL))) {
		review->at++;
		make_templates(review);
	} else {
		sl_error_set(&review->answer.refusal,
			"ResourceClaimTemplate %s is there, and asks for something else "
			"than the pod: delete it (kubectl -n %.63s delete "
			"resourceclaimtemplate %s)",
			name, review->is.namespace, name);
		finish(review);
	}
}

static void on_template(void *context, const struct sl_kube_answer *answer)
{
	struct review *review = context;

	if (answer->status == 409) {
		ask_templates(
			review, SL_KUBE_GET, template_name(review), NULL, on_namesake);
		return;
	}
	if (answer->error[0]) {
		finish_later(review, "the pod's ResourceClaimTemplate cannot be made",
			answer->error);
		return;
	}
	review->at++;
	make_templates(review);
}

static void make_templates(struct review *review)
{
	const json_t *template = template_of(review);

	if (!template || review->is.is_dry_run)
		finish(review);
	else
		ask_templates(review, SL_KUBE_POST, "", template, on_template);
}

static void decide(struct review *review)
{
	const struct sl_admit_facts facts = {.sizes = sizes_of(review->webhook),
		.namespace = review->namespace,
		.looked_up = review->looked_up};

	sl_admit_decide(&review->is, &facts, &review->answer);
	review->at = 0;
	make_templates(review);
}

static void look_up(struct review *review);

static void on_looked_up(void *context, const struct sl_kube_answer *answer)
{
	struct review *review = context;
	const char *path = json_string_value(json_array_get(review->paths, review->at));

	if (answer->error[0] && answer->status != 404) {
		finish_later(review, "a claim of the pod cannot be read", answer->error);
		return;
	}
	if (!answer->error[0])
		(void)json_object_set(review->looked_up, path, answer->body);
	review->at++;
	look_up(review);
}

static void look_up(struct review *review)
{
	const char *path = json_string_value(json_array_get(review->paths, review->at));

	if (path)
		ask(review, SL_KUBE_GET, path, NULL, on_looked_up);
	else
		decide(review);
}

static void on_namespace(void *context, const struct sl_kube_answer *answer)
{
	struct review *review = context;

	if (answer->error[0] && answer->status != 404) {
		finish_later(review, "the namespace cannot be read", answer->error);
		return;
	}
	if (!answer->error[0])
		review->namespace = json_incref(answer->body);
	look_up(review);
}

static void begin(struct review *review)
{
	char path[300];

	if (!sl_admit_concerns(&review->is)) {
		finish(review);
		return;
	}
	review->paths = sl_admit_look_ups(&review->is);
	review->looked_up = json_object();
	(void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s", review->is.namespace);
	ask(review, SL_KUBE_GET, path, NULL, on_namespace);
}

/* A failed call admits claims, so an unreadable review is refused by an answer. */
static void refuse_unread(
	struct review *review, const char *body, const struct sl_error *err)
{
	char uid[64];

	if (sl_admit_find_uid(body, uid)) {
		review->is = (struct sl_admit_review){.uid = uid, .namespace = "?"};
		review->answer.refusal = *err;
		finish(review);
		return;
	}
	sl_info("a call that is no review: %s", err->text);
	sl_webhook_answer(review->call, STATUS_BAD, strdup(err->text));
	review_free(review);
}

/* False: err. */
static bool read_review(
	struct review *review, char *body, size_t size, struct sl_error *err)
{
	review->json = size ? sl_kube_parse(body, size) : NULL;
	if (review->json)
		return sl_admit_read(review->json, &review->is, err) == SL_ADMIT_OK;
	sl_error_set(err,
		"it is no JSON, or has more than %d values; an AdmissionReview is "
		"expected",
		SL_KUBE_VALUES_MAX);
	return false;
}

static void on_review(
	void *context, struct sl_webhook_call *call, char *body, size_t size, bool is_cut)
{
	struct sl_webhook *webhook = context;
	struct review *review = calloc(1, sizeof(*review));
	struct sl_error err = {0};

	if (!review) {
		sl_webhook_answer(call, STATUS_BAD, NULL);
		return;
	}
	sl_list_push_tail(&webhook->reviews, &review->link);
	review->webhook = webhook;
	review->call = call;
	if (is_cut || mallinfo2().uordblks > HEAP_MAX_BYTES) {
		review->answer.code = CODE_RETRY;
		sl_error_set(
			&err, "it is too large, or too much is sent at once; try again");
		refuse_unread(review, body, &err);
	} else if (read_review(review, body, size, &err)) {
		begin(review);
	} else {
		refuse_unread(review, body, &err);
	}
}

/* --- start and end ------------------------------------------------------------------------- */

static void serve(struct sl_webhook *webhook, const struct sl_webhook_certs *certs)
{
	struct sl_error err = {0};

	if (sl_webhook_server_set_certs(webhook->server, certs, &err) < 0)
		sl_warning("%s", err.text);
	else
		sl_info("serving reviews");
}

static void drop_waiting(struct sl_webhook *webhook)
{
	if (webhook->waiting)
		sl_webhook_certs_fini(webhook->waiting);
	free(sl_steal(&webhook->waiting));
}

static void serve_waiting(struct sl_webhook *webhook)
{
	if (webhook->waiting)
		serve(webhook, webhook->waiting);
	drop_waiting(webhook);
}

/* The first certificates wait until the GPUs are known. */
static void on_certs(void *context, const struct sl_webhook_certs *certs)
{
	struct sl_webhook *webhook = context;

	if (sl_kube_watch_is_synced(webhook->slices_watch)) {
		serve(webhook, certs);
		return;
	}
	drop_waiting(webhook);
	webhook->waiting = calloc(1, sizeof(*webhook->waiting));
	if (!webhook->waiting)
		return;
	webhook->waiting->certificate = strdup(certs->certificate);
	webhook->waiting->key = strdup(certs->key);
}

int sl_webhook_new(struct sl_webhook **out, sd_event *loop, struct sl_kube_config *config,
	const char *listen, struct sl_error *err)
{
	struct sl_webhook *webhook = calloc(1, sizeof(*webhook));
	int r;

	*out = NULL;
	if (!webhook) {
		sl_kube_config_fini(config);
		return sl_err_origin(-ENOMEM);
	}
	webhook->loop = sd_event_ref(loop);
	webhook->slices = json_object();
	sl_list_init(&webhook->reviews);
	r = sl_kube_new(&webhook->kube, loop, config);
	if (r >= 0)
		r = sl_webhook_server_new(
			&webhook->server, loop, listen, on_review, webhook, err);
	if (r >= 0)
		r = sl_kube_watch_new(&webhook->slices_watch, webhook->kube,
			SL_KUBE_SLICES_PATH, SLICES_QUERY, on_slice, webhook);
	if (r >= 0)
		r = sl_webhook_keys_new(
			&webhook->keys, loop, webhook->kube, on_certs, webhook);
	if (r < 0)
		webhook = sl_webhook_free(webhook);
	*out = webhook;
	return r;
}

struct sl_webhook *sl_webhook_free(struct sl_webhook *webhook)
{
	if (!webhook)
		return NULL;
	while (!sl_list_is_empty(&webhook->reviews))
		finish_later(SL_LIST_ENTRY(webhook->reviews.next, struct review, link),
			"the webhook is restarting", "another one follows");
	webhook->server = sl_webhook_server_free(webhook->server);
	webhook->keys = sl_webhook_keys_free(webhook->keys);
	webhook->slices_watch = sl_kube_watch_free(webhook->slices_watch);
	webhook->kube = sl_kube_free(webhook->kube);
	drop_waiting(webhook);
	json_decref(webhook->slices);
	sd_event_unref(webhook->loop);
	free(webhook);
	return NULL;
}

uint16_t sl_webhook_port(const struct sl_webhook *webhook)
{
	return sl_webhook_server_port(webhook->server);
}
