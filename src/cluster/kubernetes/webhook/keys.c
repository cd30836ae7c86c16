/*
 * keys - see the header
 *
 * settle() compares the objects of the two watches with the wanted state, and starts the next call;
 * afterwards a watch or a timer calls it again.
 *
 * If the watch of the Secret is behind, another replica's bundle looks wrong. So the Secret is read
 * before the bundle is written. After a recent write of the bundle, reading the Secret is delayed,
 * longer each time, so replicas or other writers do not overwrite each other in a loop.
 */
#include "cluster/kubernetes/webhook/keys.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "cluster/kubernetes/api/watch.h"

#define SECRETS_PATH "/api/v1/namespaces/" SL_WEBHOOK_NAMESPACE "/secrets"
#define HOOKS_PATH   "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
#define SECRET_QUERY "fieldSelector=metadata.name%3D" SL_WEBHOOK_SECRET
#define HOOK_QUERY   "fieldSelector=metadata.name%3D" SL_WEBHOOK_NAME
#define LOOK_EVERY   (600 * SL_S)
/* After this time without a write of the bundle the next one is not delayed. */
#define QUIET (10 * SL_S)
/* Most webhooks of the configuration; each has one name. */
#define NAMES_MAX 8
#define HOST_MAX  254 /* a name of DNS and its end */

struct sl_webhook_keys {
	struct sl_kube *kube;
	sl_webhook_keys_fn fn;
	void *context;
	struct sl_kube_watch *secret_watch, *hook_watch;
	json_t *secret, *hook; /* NULL: absent, or not seen yet */
	struct sl_kube_call *call;
	json_t **changing;              /* the one that `call` reads or writes */
	bool is_read;                   /* `secret` is the API server's present object */
	struct sl_kube_backoff backoff; /* after failed calls */
	struct sl_kube_backoff pauses;  /* between writes of the bundle */
	sl_ns wrote_at;                 /* the bundle; 0: never */
	sd_event_source *timer;
	char *served;             /* the last certificate passed on */
	const char *told_missing; /* the object that was last warned about */
};

static const struct {
	const char *key;
	size_t offset;
} parts[] = {{"ca.crt", offsetof(struct sl_webhook_certs, authorities)},
	{"ca.key", offsetof(struct sl_webhook_certs, authority_key)},
	{"tls.crt", offsetof(struct sl_webhook_certs, certificate)},
	{"tls.key", offsetof(struct sl_webhook_certs, key)}};

static char **part_of(struct sl_webhook_certs *certs, size_t i)
{
	return (char **)(void *)((char *)certs + parts[i].offset);
}

/* --- base64 -------------------------------------------------------------------------------- */

/* New text; NULL if it is not base64. */
static char *decode(const char *coded)
{
	gnutls_datum_t in = {(unsigned char *)coded, (unsigned int)strlen(coded)};
	gnutls_datum_t out = {0};
	char *text;

	if (!in.size || gnutls_base64_decode2(&in, &out) < 0)
		return NULL;
	text = strndup((const char *)out.data, out.size);
	explicit_bzero(out.data, out.size);
	gnutls_free(out.data);
	return text;
}

static json_t *encode(const char *text)
{
	gnutls_datum_t in = {(unsigned char *)text, (unsigned int)strlen(text)};
	gnutls_datum_t out = {0};
	json_t *coded;

	if (gnutls_base64_encode2(&in, &out) < 0)
		return NULL;
	coded = json_stringn((const char *)out.data, out.size);
	gnutls_free(out.data);
	return coded;
}

/* --- the configuration --------------------------------------------------------------------- */

/* The host of https://HOST[:PORT][/PATH]; false: another form. */
static bool host_of(const char *url, char name[HOST_MAX])
{
	const char *at = strncmp(url, "https://", 8) == 0 ? url + 8 : "";
	size_t length = at[0] == '[' ? strcspn(++at, "]") : strcspn(at, ":/");

	if (length == 0 || length >= HOST_MAX)
		return false;
	(void)snprintf(name, HOST_MAX, "%.*s", (int)length, at);
	return true;
}

static bool name_of(const json_t *webhook, char name[HOST_MAX])
{
	const json_t *service = sl_kube_at(webhook, "clientConfig", "service", NULL);

	if (!service)
		return host_of(
			sl_kube_text_at(webhook, "clientConfig", "url", NULL), name);
	(void)snprintf(name, HOST_MAX, "%.63s.%.63s.svc",
		sl_kube_text_at(service, "name", NULL),
		sl_kube_text_at(service, "namespace", NULL));
	return true;
}

struct names {
	char text[NAMES_MAX][HOST_MAX];
	const char *list[NAMES_MAX + 1];
	size_t count;
};

/* The names by which the API server calls, each once. */
static void read_names(const json_t *hook, struct names *out)
{
	const json_t *webhooks = json_object_get(hook, "webhooks"), *webhook;

	*out = (struct names){0};
	for (size_t i = 0; (webhook = json_array_get(webhooks, i)); i++) {
		char name[HOST_MAX] = "";
		bool is_skipped = !name_of(webhook, name);

		for (size_t k = 0; k < out->count; k++)
			is_skipped = is_skipped || strcmp(out->text[k], name) == 0;
		if (is_skipped)
			continue;
		if (out->count == NAMES_MAX) {
			sl_warning(
				"MutatingWebhookConfiguration " SL_WEBHOOK_NAME
				" has more than %d names; %s is not in the certificate",
				NAMES_MAX, name);
			continue;
		}
		out->list[out->count] = memcpy(out->text[out->count], name, sizeof(name));
		out->count++;
	}
}

/* --- calls --------------------------------------------------------------------------------- */

static void settle(struct sl_webhook_keys *keys);

static void look_again(struct sl_webhook_keys *keys, sl_ns after)
{
	(void)sd_event_source_set_time_relative(keys->timer, after / SL_US);
	(void)sd_event_source_set_enabled(keys->timer, SD_EVENT_ONESHOT);
}

/* After a conflict the watch brings the other replica's write. */
static void on_done(void *context, const struct sl_kube_answer *answer)
{
	struct sl_webhook_keys *keys = context;

	if (answer->status / 100 == 2) {
		keys->backoff = (struct sl_kube_backoff){0};
		json_decref(*keys->changing);
		*keys->changing = json_incref(answer->body);
		keys->is_read = keys->changing == &keys->secret;
		settle(keys);
		keys->is_read = false;
		return;
	}
	if (answer->status == 409)
		sl_info("another replica made the certificates; using those");
	else
		sl_warning("certificates: %s", answer->error);
	look_again(keys, sl_kube_backoff_next(&keys->backoff, answer->retry_after_s));
}

/* Takes body. */
static void call(struct sl_webhook_keys *keys, enum sl_kube_verb verb, const char *path,
	json_t **changing, json_t *body, sl_ns after)
{
	const struct sl_kube_request request = {.verb = verb,
		.path = path,
		.body = body,
		.done = on_done,
		.context = keys,
		.after = after};

	keys->changing = changing;
	if (sl_kube_call(keys->kube, &request, &keys->call) < 0)
		look_again(keys, sl_kube_backoff_next(&keys->backoff, 0));
	json_decref(body);
}

static void write_secret(struct sl_webhook_keys *keys, struct sl_webhook_certs *certs)
{
	json_t *secret = json_deep_copy(keys->secret), *data = json_object();

	for (size_t i = 0; i < SL_ARRAY_LEN(parts); i++)
		(void)json_object_set_new(data, parts[i].key, encode(*part_of(certs, i)));
	(void)json_object_set_new(secret, "data", data);
	(void)json_object_set_new(secret, "kind", json_string("Secret"));
	(void)json_object_set_new(secret, "apiVersion", json_string("v1"));
	sl_info("new certificates go into Secret " SL_WEBHOOK_NAMESPACE
		"/" SL_WEBHOOK_SECRET);
	call(keys, SL_KUBE_PUT, SECRETS_PATH "/" SL_WEBHOOK_SECRET, &keys->secret, secret,
		0);
}

static void read_secret(struct sl_webhook_keys *keys)
{
	bool is_quiet = !keys->wrote_at || sl_clock_now() - keys->wrote_at > QUIET;

	if (is_quiet)
		keys->pauses = (struct sl_kube_backoff){0};
	call(keys, SL_KUBE_GET, SECRETS_PATH "/" SL_WEBHOOK_SECRET, &keys->secret, NULL,
		is_quiet ? 0 : sl_kube_backoff_next(&keys->pauses, 0));
}

/* Takes list: the webhooks with another bundle. */
static void write_bundle(struct sl_webhook_keys *keys, json_t *list)
{
	sl_info("the authority goes into MutatingWebhookConfiguration " SL_WEBHOOK_NAME);
	keys->wrote_at = sl_clock_now();
	call(keys, SL_KUBE_STRATEGIC, HOOKS_PATH "/" SL_WEBHOOK_NAME, &keys->hook,
		json_pack("{so}", "webhooks", list), 0);
}

/* False: a webhook has another caBundle; the Secret is read again, then the bundle is patched. */
static bool settle_bundle(struct sl_webhook_keys *keys, const char *authorities)
{
	const json_t *webhooks = json_object_get(keys->hook, "webhooks"), *webhook;
	json_t *bundle = encode(authorities), *list = json_array();
	bool is_settled;

	for (size_t i = 0; (webhook = json_array_get(webhooks, i)); i++) {
		if (json_equal(sl_kube_at(webhook, "clientConfig", "caBundle", NULL),
			    bundle))
			continue;
		(void)json_array_append_new(
			list, json_pack("{sss{sO}}", "name",
				      sl_kube_text_at(webhook, "name", NULL),
				      "clientConfig", "caBundle", bundle));
	}
	json_decref(bundle);
	is_settled = json_array_size(list) == 0;
	if (!is_settled && keys->is_read)
		write_bundle(keys, json_incref(list));
	else if (!is_settled)
		read_secret(keys);
	json_decref(list);
	return is_settled;
}

/* --- the wanted state ---------------------------------------------------------------------- */

/* NULL: both objects exist. An administrator must make what is missing. */
static const char *missing_of(const struct sl_webhook_keys *keys)
{
	if (!keys->secret)
		return "Secret " SL_WEBHOOK_NAMESPACE "/" SL_WEBHOOK_SECRET;
	return keys->hook ? NULL : "MutatingWebhookConfiguration " SL_WEBHOOK_NAME;
}

static void tell_missing(struct sl_webhook_keys *keys, const char *missing)
{
	if (missing && missing != keys->told_missing)
		sl_warning("%s is not there: kubectl apply -f webhook.yaml", missing);
	keys->told_missing = missing;
}

static void hand_out(struct sl_webhook_keys *keys, const struct sl_webhook_certs *certs)
{
	if (keys->served && strcmp(keys->served, certs->certificate) == 0)
		return;
	free(keys->served);
	keys->served = strdup(certs->certificate);
	keys->fn(keys->context, certs);
}

static void settle_certs(struct sl_webhook_keys *keys, struct sl_webhook_certs *certs)
{
	struct sl_error err = {0};
	struct names names;
	bool changed = false;

	read_names(keys->hook, &names);
	if (names.count == 0) {
		sl_warning("MutatingWebhookConfiguration " SL_WEBHOOK_NAME
			   " has neither a service nor an https URL");
		return;
	}
	if (sl_webhook_certs_renew(certs, names.list, time(NULL), &changed, &err) < 0) {
		sl_warning("%s", err.text);
		look_again(keys, sl_kube_backoff_next(&keys->backoff, 0));
	} else if (changed) {
		write_secret(keys, certs);
	} else if (settle_bundle(keys, certs->authorities)) {
		hand_out(keys, certs);
	}
}

static void settle(struct sl_webhook_keys *keys)
{
	struct sl_webhook_certs certs = {0};
	const char *missing;

	look_again(keys, LOOK_EVERY);
	if (keys->call || !sl_kube_watch_is_synced(keys->secret_watch) ||
		!sl_kube_watch_is_synced(keys->hook_watch))
		return;
	missing = missing_of(keys);
	tell_missing(keys, missing);
	if (missing)
		return;
	for (size_t i = 0; i < SL_ARRAY_LEN(parts); i++)
		*part_of(&certs, i) =
			decode(sl_kube_text_at(keys->secret, "data", parts[i].key, NULL));
	settle_certs(keys, &certs);
	sl_webhook_certs_fini(&certs);
}

static void note(json_t **slot, const struct sl_kube_event *event)
{
	if (event->kind == SL_KUBE_TROUBLE || event->kind == SL_KUBE_SYNCED)
		return;
	json_decref(*slot);
	*slot = event->kind == SL_KUBE_DELETED ? NULL : json_incref(event->object);
}

static void on_secret(void *context, const struct sl_kube_event *event)
{
	struct sl_webhook_keys *keys = context;

	note(&keys->secret, event);
	if (event->kind != SL_KUBE_TROUBLE)
		settle(keys);
}

static void on_hook(void *context, const struct sl_kube_event *event)
{
	struct sl_webhook_keys *keys = context;

	note(&keys->hook, event);
	if (event->kind != SL_KUBE_TROUBLE)
		settle(keys);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *context)
{
	settle(context);
	return 0;
}

int sl_webhook_keys_new(struct sl_webhook_keys **out, sd_event *loop,
	struct sl_kube *kube, sl_webhook_keys_fn fn, void *context)
{
	struct sl_webhook_keys *keys = calloc(1, sizeof(*keys));
	int r;

	*out = NULL;
	if (!keys)
		return sl_err_origin(-ENOMEM);
	keys->kube = kube;
	keys->fn = fn;
	keys->context = context;
	r = sl_err_origin(sd_event_add_time_relative(loop, &keys->timer, CLOCK_MONOTONIC,
		LOOK_EVERY / SL_US, SL_S / SL_US, on_timer, keys));
	if (r >= 0)
		r = sl_kube_watch_new(&keys->secret_watch, kube, SECRETS_PATH,
			SECRET_QUERY, on_secret, keys);
	if (r >= 0)
		r = sl_kube_watch_new(
			&keys->hook_watch, kube, HOOKS_PATH, HOOK_QUERY, on_hook, keys);
	if (r < 0)
		keys = sl_webhook_keys_free(keys);
	*out = keys;
	return r < 0 ? r : 0;
}

struct sl_webhook_keys *sl_webhook_keys_free(struct sl_webhook_keys *keys)
{
	if (!keys)
		return NULL;
	sl_kube_cancel(&keys->call);
	keys->secret_watch = sl_kube_watch_free(keys->secret_watch);
	keys->hook_watch = sl_kube_watch_free(keys->hook_watch);
	keys->timer = sd_event_source_disable_unref(keys->timer);
	json_decref(keys->secret);
	json_decref(keys->hook);
	free(keys->served);
	free(keys);
	return NULL;
}
