/*
 * admit - see the header
 */
#include "cluster/kubernetes/claims/admit.h"

#include <gnutls/gnutls.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "cluster/kubernetes/api/api.h"
#include "cluster/kubernetes/api/parse.h"

#define API     "/apis/resource.k8s.io/v1"
#define TOO_BIG 253
/* Characters of a uid, which is written back. */
#define UID_LETTERS "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-"
/* schedulerName of sluice-kube scheduler. */
#define SCHEDULER "sluice"

/* --- the review ---------------------------------------------------------------------------- */

static enum sl_admit_kind kind_of(const json_t *request)
{
	static const struct {
		const char *group, *kind;
		enum sl_admit_kind is;
	} kinds[] = {{"", "Pod", SL_ADMIT_POD},
		{"resource.k8s.io", "ResourceClaim", SL_ADMIT_CLAIM},
		{"resource.k8s.io", "ResourceClaimTemplate", SL_ADMIT_TEMPLATE}};
	const char *group = sl_kube_text_at(request, "kind", "group", NULL);
	const char *kind = sl_kube_text_at(request, "kind", "kind", NULL);

	if (strcmp(sl_kube_text_at(request, "operation", NULL), "CREATE") != 0 ||
		sl_kube_text_at(request, "subResource", NULL)[0])
		return SL_ADMIT_OTHER;
	for (size_t i = 0; i < SL_ARRAY_LEN(kinds); i++) {
		if (strcmp(kinds[i].group, group) == 0 &&
			strcmp(kinds[i].kind, kind) == 0)
			return kinds[i].is;
	}
	return SL_ADMIT_OTHER;
}

int sl_admit_read(const json_t *review, struct sl_admit_review *out, struct sl_error *err)
{
	const json_t *request = json_object_get(review, "request");

	*out = (struct sl_admit_review){.uid = sl_kube_text_at(request, "uid", NULL),
		.namespace = sl_kube_text_at(request, "namespace", NULL),
		.is_dry_run = json_is_true(json_object_get(request, "dryRun")),
		.object = json_object_get(request, "object")};
	if (strcmp(sl_kube_text_at(review, "kind", NULL), "AdmissionReview") != 0 ||
		strcmp(sl_kube_text_at(review, "apiVersion", NULL),
			"admission.k8s.io/v1") != 0 ||
		!out->uid[0]) {
		sl_error_set(err, "this is no AdmissionReview of admission.k8s.io/v1 "
				  "with a request");
		return SL_ADMIT_BAD;
	}
	if (out->namespace[0] && !sl_kube_is_name(out->namespace)) {
		sl_error_set(err, "the namespace is no name");
		return SL_ADMIT_BAD;
	}
	out->kind = out->namespace[0] && json_is_object(out->object) ? kind_of(request)
								     : SL_ADMIT_OTHER;
	return SL_ADMIT_OK;
}

bool sl_admit_find_uid(const char *text, char uid[64])
{
	static const char before[] = "\"request\":{\"uid\":\"";
	const char *at = strstr(text, before);
	size_t length;

	if (!at)
		return false;
	at += strlen(before);
	length = strspn(at, UID_LETTERS);
	if (length == 0 || length > 63 || at[length] != '"')
		return false;
	(void)snprintf(uid, 64, "%.*s", (int)length, at);
	return true;
}

static const json_t *claim_spec(const struct sl_admit_review *review)
{
	return review->kind == SL_ADMIT_TEMPLATE
		       ? sl_kube_at(review->object, "spec", "spec", NULL)
		       : sl_kube_at(review->object, "spec", NULL);
}

bool sl_admit_concerns(const struct sl_admit_review *review)
{
	struct sl_error err = {0};
	struct sl_asks asks;

	if (review->kind == SL_ADMIT_POD)
		return sl_asks_read(review->object, &asks, &err) != SL_ASKS_NONE;
	return review->kind != SL_ADMIT_OTHER && sl_claimspec_is_ours(claim_spec(review));
}

/* --- the pod's present claims --------------------------------------------------------------- */

/* The path of an entry of spec.resourceClaims; false: it names no object. */
static bool path_of(const struct sl_admit_review *review, const json_t *entry, char *path,
	size_t size)
{
	const char *of_template =
		sl_kube_text_at(entry, "resourceClaimTemplateName", NULL);
	const char *name = of_template[0]
				   ? of_template
				   : sl_kube_text_at(entry, "resourceClaimName", NULL);

	if (!sl_kube_is_name(name))
		return false;
	(void)snprintf(path, size, API "/namespaces/%s/%s/%s", review->namespace,
		of_template[0] ? "resourceclaimtemplates" : "resourceclaims", name);
	return true;
}

json_t *sl_admit_look_ups(const struct sl_admit_review *review)
{
	const json_t *entries =
		sl_kube_at(review->object, "spec", "resourceClaims", NULL);
	json_t *paths = json_array();
	const json_t *entry;
	char path[3 * TOO_BIG];

	if (review->kind != SL_ADMIT_POD)
		return paths;
	for (size_t i = 0; (entry = json_array_get(entries, i)) &&
			   json_array_size(paths) < SL_ADMIT_LOOK_UPS_MAX;
		i++) {
		if (path_of(review, entry, path, sizeof(path)))
			(void)json_array_append_new(paths, json_string(path));
	}
	return paths;
}

/* Is the pod's claim of Sluice's device class? */
static bool is_ours(const struct sl_admit_review *review,
	const struct sl_admit_facts *facts, const json_t *entry)
{
	char path[3 * TOO_BIG];
	const json_t *object;

	if (!path_of(review, entry, path, sizeof(path)))
		return false;
	object = json_object_get(facts->looked_up, path);
	return sl_claimspec_is_ours(sl_kube_at(object, "spec", "spec", NULL)) ||
	       sl_claimspec_is_ours(sl_kube_at(object, "spec", NULL));
}

/* --- the pod's patch ----------------------------------------------------------------------- */

struct making {
	const struct sl_admit_review *review;
	const struct sl_admit_facts *facts;
	const struct sl_asks *asks;
	struct sl_admit_answer *out;
	/* Tracks the patched pod, since later operations see earlier ones. */
	bool has_claims;
};

static void name_claim(const struct sl_asks *asks, size_t i, char name[64])
{
	if (asks->count == 1)
		(void)snprintf(name, 64, "sluice-gpu");
	else
		(void)snprintf(name, 64, "sluice-gpu-%zu", i);
}

static const json_t *entry_named(const json_t *entries, const char *name)
{
	const json_t *entry;

	for (size_t i = 0; (entry = json_array_get(entries, i)); i++) {
		if (strcmp(sl_kube_text_at(entry, "name", NULL), name) == 0)
			return entry;
	}
	return NULL;
}

static void add(struct sl_admit_answer *out, const char *path, json_t *value)
{
	if (!out->patch)
		out->patch = json_array();
	(void)json_array_append_new(out->patch,
		json_pack("{ssssso}", "op", "add", "path", path, "value", value));
}

/* Appends to a list; the first operation creates the list if it is missing. */
static void add_to_list(
	struct sl_admit_answer *out, const char *list, bool *is_there, json_t *value)
{
	char path[160];

	(void)snprintf(path, sizeof(path), "%s%s", list, *is_there ? "/-" : "");
	add(out, path, *is_there ? value : json_pack("[o]", value));
	*is_there = true;
}

/* Lets the container use the claim. */
static void patch_container(
	struct making *making, const struct sl_ask *ask, const char *claim)
{
	const json_t *container = json_array_get(
		sl_kube_at(making->review->object, "spec", ask->list, NULL), ask->index);
	const json_t *resources = json_object_get(container, "resources");
	const json_t *claims = json_object_get(resources, "claims");
	bool is_there = json_is_array(claims);
	char path[128];

	if (entry_named(claims, claim))
		return;
	if (!json_is_object(resources)) {
		(void)snprintf(path, sizeof(path), "/spec/%s/%zu/resources", ask->list,
			ask->index);
		add(making->out, path, json_pack("{s[{ss}]}", "claims", "name", claim));
		return;
	}
	(void)snprintf(path, sizeof(path), "/spec/%s/%zu/resources/claims", ask->list,
		ask->index);
	add_to_list(making->out, path, &is_there, json_pack("{ss}", "name", claim));
}

/* False: the pod has a different claim of Sluice's class. */
static bool patch_pod(struct making *making, size_t i, const char *template)
{
	const json_t *entries =
		sl_kube_at(making->review->object, "spec", "resourceClaims", NULL);
	const json_t *entry;
	char name[64];

	name_claim(making->asks, i, name);
	entry = entry_named(entries, name);
	if (entry && strcmp(sl_kube_text_at(entry, "resourceClaimTemplateName", NULL),
			     template) != 0) {
		sl_error_set(&making->out->refusal,
			"the pod has a claim \"%s\" already, and annotations ask for "
			"another one: remove the claim (the webhook makes it) or the "
			"annotations",
			name);
		return false;
	}
	if (!entry)
		add_to_list(making->out, "/spec/resourceClaims", &making->has_claims,
			json_pack("{ssss}", "name", name, "resourceClaimTemplateName",
				template));
	patch_container(making, &making->asks->of[i], name);
	return true;
}

/* Is it a claim that the annotations ask for? Such a claim is compared with the one to be made. */
static bool is_asked(const struct sl_asks *asks, const char *name)
{
	char own[64];

	for (size_t i = 0; i < asks->count; i++) {
		name_claim(asks, i, own);
		if (strcmp(name, own) == 0)
			return true;
	}
	return false;
}

/* Checks other claims of Sluice's class. */
static bool check_others(struct making *making)
{
	const json_t *entries =
		sl_kube_at(making->review->object, "spec", "resourceClaims", NULL);
	const json_t *entry;

	for (size_t i = 0; (entry = json_array_get(entries, i)); i++) {
		const char *name = sl_kube_text_at(entry, "name", NULL);

		if (is_asked(making->asks, name) ||
			!is_ours(making->review, making->facts, entry))
			continue;
		sl_error_set(&making->out->refusal,
			"the pod's claim \"%.63s\" has a GPU of " SL_KUBE_CLASS
			" already, and annotations ask for one as well: remove one of "
			"them",
			name);
		return false;
	}
	return true;
}

/* sluice-kube's scheduler evaluates no expressions and no alternatives. */
static bool suits_scheduler(struct making *making, const json_t *spec)
{
	const json_t *request =
		json_array_get(sl_kube_at(spec, "devices", "requests", NULL), 0);

	if (strcmp(sl_kube_text_at(making->review->object, "spec", "schedulerName", NULL),
		    SCHEDULER) != 0 ||
		(!json_object_get(request, "firstAvailable") &&
			!sl_kube_at(request, "exactly", "selectors", NULL)))
		return true;
	sl_error_set(&making->out->refusal,
		"the cluster has GPUs of several sizes, and scheduler " SCHEDULER
		" does not choose between them: ask for amounts (gpu-memory and "
		"gpu-memory-limit), or leave schedulerName out");
	return false;
}

static bool make_claim(struct making *making, size_t i, const struct sl_bounds *bounds)
{
	struct sl_admit_answer *out = making->out;
	json_t *spec = sl_claimspec_new(&making->asks->of[i], bounds,
		making->facts->sizes, &out->warning, &out->refusal);
	json_t *template;

	if (!spec) {
		sl_error_wrap(
			&out->refusal, "container %.63s", making->asks->of[i].container);
		return false;
	}
	if (!suits_scheduler(making, spec)) {
		json_decref(spec);
		return false;
	}
	template = sl_claimspec_template(making->review->namespace, spec);
	if (!template) {
		sl_error_set(&out->refusal, "the webhook is out of memory; try again");
		return false;
	}
	(void)json_array_append_new(out->templates, template);
	return patch_pod(making, i, sl_kube_text_at(template, "metadata", "name", NULL));
}

static void decide_pod(const struct sl_admit_review *review,
	const struct sl_admit_facts *facts, struct sl_admit_answer *out)
{
	struct sl_bounds bounds;
	struct sl_asks asks;
	struct making making = {.review = review,
		.facts = facts,
		.asks = &asks,
		.out = out,
		.has_claims = json_is_array(
			sl_kube_at(review->object, "spec", "resourceClaims", NULL))};

	if (sl_asks_read(review->object, &asks, &out->refusal) != SL_ASKS_OK)
		return;
	if (!sl_bounds_read(facts->namespace, &bounds, &out->refusal))
		return;
	out->templates = json_array();
	if (!check_others(&making))
		return;
	for (size_t i = 0; i < asks.count; i++)
		if (!make_claim(&making, i, &bounds))
			return;
}

static void decide_claim(const struct sl_admit_review *review,
	const struct sl_admit_facts *facts, struct sl_admit_answer *out)
{
	struct sl_bounds bounds;

	if (!sl_bounds_read(facts->namespace, &bounds, &out->refusal))
		return;
	if (!sl_claimspec_check(claim_spec(review), &bounds, facts->sizes, &out->warning,
		    &out->refusal) &&
		!out->refusal.text[0])
		sl_error_set(&out->refusal, "it does not keep the namespace's bounds");
}

void sl_admit_decide(const struct sl_admit_review *review,
	const struct sl_admit_facts *facts, struct sl_admit_answer *out)
{
	if (review->kind == SL_ADMIT_POD)
		decide_pod(review, facts, out);
	else if (review->kind != SL_ADMIT_OTHER)
		decide_claim(review, facts, out);
	/* All or nothing. */
	if (out->refusal.text[0]) {
		json_decref(sl_steal(&out->patch));
		json_decref(sl_steal(&out->templates));
	}
}

void sl_admit_answer_fini(struct sl_admit_answer *answer)
{
	json_decref(answer->patch);
	json_decref(answer->templates);
	*answer = (struct sl_admit_answer){0};
}

/* --- the response -------------------------------------------------------------------------- */

/* Base64 of the JSON text; NULL when out of memory. */
static json_t *encode(const json_t *patch)
{
	sl_cleanup(sl_freep) char *text = json_dumps(patch, JSON_COMPACT);
	gnutls_datum_t plain = {(unsigned char *)text, text ? (unsigned)strlen(text) : 0};
	gnutls_datum_t coded = {0};
	json_t *out;

	if (!text || gnutls_base64_encode2(&plain, &coded) < 0)
		return NULL;
	out = json_stringn((const char *)coded.data, coded.size);
	gnutls_free(coded.data);
	return out;
}

json_t *sl_admit_response(const char *uid, const struct sl_admit_answer *answer)
{
	bool is_allowed = !answer->refusal.text[0];
	json_t *response = json_pack("{sssb}", "uid", uid, "allowed", is_allowed);

	if (!is_allowed)
		(void)json_object_set_new(response, "status",
			json_pack("{sosi}", "message", sl_text_json(answer->refusal.text),
				"code", answer->code ? answer->code : 403));
	if (answer->warning.text[0])
		(void)json_object_set_new(response, "warnings",
			json_pack("[o]", sl_text_json(answer->warning.text)));
	if (is_allowed && answer->patch) {
		json_t *patch = encode(answer->patch);

		if (!patch) {
			json_decref(response);
			return NULL;
		}
		(void)json_object_set_new(
			response, "patchType", json_string("JSONPatch"));
		(void)json_object_set_new(response, "patch", patch);
	}
	return json_pack("{ssssso}", "apiVersion", "admission.k8s.io/v1", "kind",
		"AdmissionReview", "response", response);
}
