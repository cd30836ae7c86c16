/* claims: the GPUs of a claim, by the driver's name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/kubectl/kubectl.h"
#include "cluster/kubernetes/claims/order.h"
#include "cluster/kubernetes/api/quantity.h"
#include "cluster/kubernetes/claims/slice.h"

#define CLAIMS "resourceclaims"
#define API    "/apis/resource.k8s.io/v1"

static const char *text(const json_t *object, const char *key)
{
	return sl_kube_text_at(object, key, NULL);
}

static bool is_same(const json_t *a, const json_t *b)
{
	static const char *const keys[] = {"driver", "pool", "device", "shareID"};

	for (size_t i = 0; i < SL_ARRAY_LEN(keys); i++) {
		if (strcmp(text(a, keys[i]), text(b, keys[i])) != 0)
			return false;
	}
	return true;
}

static uint64_t number(const json_t *device, const char *key)
{
	json_int_t value = json_integer_value(sl_kube_at(device, "data", key, NULL));

	return value > 0 ? (uint64_t)value : 0;
}

static void fill_parked(const json_t *device, struct kubectl_row *row)
{
	const json_t *conditions = json_object_get(device, "conditions");

	for (size_t i = 0; i < json_array_size(conditions); i++) {
		const json_t *one = json_array_get(conditions, i);

		if (strcmp(text(one, "type"), "Parked") != 0)
			continue;
		row->parked = text(one, "status");
		row->parked_reason = text(one, "reason");
	}
}

static void fill(const json_t *claim, const json_t *result, struct kubectl_row *row)
{
	const json_t *devices = sl_kube_at(claim, "status", "devices", NULL);
	const json_t *users = sl_kube_at(claim, "status", "reservedFor", NULL);
	const json_t *device = NULL;

	for (size_t i = 0; i < json_array_size(devices) && !device; i++) {
		if (is_same(json_array_get(devices, i), result))
			device = json_array_get(devices, i);
	}
	*row = (struct kubectl_row){.claim = claim,
		.namespace = sl_kube_text_at(claim, "metadata", "namespace", NULL),
		.pod = text(json_array_get(users, 0), "name"),
		.node = text(result, "pool"),
		.device = text(result, "device"),
		.state = "starting",
		.parked = "",
		.parked_reason = ""};
	if (!sl_kube_at(device, "data", NULL)) {
		if (!sl_kube_quantity_parse(
			    sl_kube_text_at(result, "consumedCapacity", "memory", NULL),
			    &row->request_bytes))
			row->request_bytes = 0;
		return;
	}
	row->is_known = true;
	row->state = sl_kube_text_at(device, "data", "state", NULL);
	row->request_bytes = number(device, "request");
	row->limit_bytes = number(device, "limit");
	row->resident_bytes = number(device, "resident");
	row->evicted_bytes = number(device, "evicted");
	fill_parked(device, row);
}

void kubectl_rows(const json_t *claim,
	void (*fn)(void *context, const struct kubectl_row *row), void *context)
{
	const json_t *results =
		sl_kube_at(claim, "status", "allocation", "devices", "results", NULL);

	for (size_t i = 0; i < json_array_size(results); i++) {
		const json_t *result = json_array_get(results, i);
		struct kubectl_row row;

		if (strcmp(text(result, "driver"), SL_KUBE_DRIVER) != 0)
			continue;
		fill(claim, result, &row);
		fn(context, &row);
	}
}

int kubectl_claims(struct kubectl *k, json_t **out, struct sl_error *err)
{
	char path[512];

	if (k->namespace)
		(void)snprintf(
			path, sizeof(path), API "/namespaces/%s/" CLAIMS, k->namespace);
	else
		(void)snprintf(path, sizeof(path), API "/" CLAIMS);
	return kubectl_list(k, path, out, err);
}

static void note(void *context, const struct kubectl_row *row)
{
	*(bool *)context = true;
}

static int add_claim(
	struct kubectl *k, const char *name, json_t *claims, struct sl_error *err)
{
	json_t *claim = NULL;
	bool is_ours = false;
	char path[720];
	int r;

	if (!sl_kube_is_name(name))
		return 0;
	(void)snprintf(path, sizeof(path), API "/namespaces/%s/" CLAIMS "/%s",
		k->namespace, name);
	r = kubectl_ask(k, SL_KUBE_GET, path, NULL, &claim, err);
	/* It may have ended meanwhile. */
	if (r == 404)
		r = 0;
	kubectl_rows(claim, note, &is_ours);
	if (is_ours)
		(void)json_array_append(claims, claim);
	json_decref(claim);
	return r;
}

int kubectl_pod(struct kubectl *k, const char *name, json_t **pod, json_t **claims,
	struct sl_error *err)
{
	char path[640];
	json_t *names;
	int r;

	*claims = NULL;
	(void)snprintf(
		path, sizeof(path), "/api/v1/namespaces/%s/pods/%s", k->namespace, name);
	r = kubectl_ask(k, SL_KUBE_GET, path, NULL, pod, err);
	if (r == 404)
		sl_error_set(err,
			"there is no pod %s in namespace %s; kubectl sluice ps -A lists "
			"those that have a GPU",
			name, k->namespace);
	if (r != 0)
		return r;
	names = sl_kube_order_claims(*pod);
	*claims = json_array();
	for (size_t i = 0; r == 0 && i < json_array_size(names); i++)
		r = add_claim(
			k, json_string_value(json_array_get(names, i)), *claims, err);
	json_decref(names);
	return r;
}

int kubectl_events(
	struct kubectl *k, const json_t *pod, json_t **out, struct sl_error *err)
{
	char path[640];

	(void)snprintf(path, sizeof(path),
		"/api/v1/namespaces/%s/events?fieldSelector=involvedObject.uid%%3D%s",
		k->namespace, sl_kube_text_at(pod, "metadata", "uid", NULL));
	return kubectl_list(k, path, out, err);
}

uint64_t kubectl_age_ms(const char *time_text)
{
	time_t now = time(NULL), then;
	struct tm utc = {0};

	if (!strptime(time_text, "%Y-%m-%dT%H:%M:%S", &utc))
		return 0;
	then = timegm(&utc);
	return then < now ? (uint64_t)(now - then) * 1000 : 0;
}
