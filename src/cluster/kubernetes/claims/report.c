/*
 * report - see the header
 */
#include "cluster/kubernetes/claims/report.h"

#include <string.h>

#include "base/text.h"
#include "cluster/kubernetes/api/parse.h"
#include "cluster/kubernetes/claims/slice.h"

static const char *text(const json_t *object, const char *key)
{
	return sl_kube_text_at(object, key, NULL);
}

json_t *sl_kube_report_read(const json_t *claim, const char *pool)
{
	const json_t *all = sl_kube_at(claim, "status", "devices", NULL);
	json_t *ours = json_array();

	for (size_t i = 0; ours && i < json_array_size(all); i++) {
		json_t *device = json_array_get(all, i);

		if (strcmp(text(device, "driver"), SL_KUBE_DRIVER) == 0 &&
			strcmp(text(device, "pool"), pool) == 0)
			(void)json_array_append(ours, device);
	}
	return ours;
}

/* The entry of that device and share, or NULL. */
static const json_t *entry_of(const json_t *devices, const json_t *like)
{
	for (size_t i = 0; i < json_array_size(devices); i++) {
		const json_t *device = json_array_get(devices, i);

		if (strcmp(text(device, "device"), text(like, "device")) == 0 &&
			strcmp(text(device, "shareID"), text(like, "shareID")) == 0)
			return device;
	}
	return NULL;
}

static const json_t *condition_of(const json_t *device, const char *type)
{
	const json_t *all = json_object_get(device, "conditions");

	for (size_t i = 0; i < json_array_size(all); i++) {
		const json_t *one = json_array_get(all, i);

		if (strcmp(text(one, "type"), type) == 0)
			return one;
	}
	return NULL;
}

static json_t *condition(const json_t *before, const char *type, bool is_true,
	const char *reason, const char *message, const char *now)
{
	const json_t *old = condition_of(before, type);
	const char *status = is_true ? "True" : "False";
	bool stays = strcmp(text(old, "status"), status) == 0 &&
		     text(old, "lastTransitionTime")[0];

	return json_pack("{ss ss ss so ss}", "type", type, "status", status, "reason",
		reason, "message", sl_text_json(message), "lastTransitionTime",
		stays ? text(old, "lastTransitionTime") : now);
}

static json_t *conditions(
	const struct sl_kube_figures *figures, const json_t *before, const char *now)
{
	static const char *const reasons[] = {
		[SL_KUBE_NOT_PARKED] = "NotParked",
		[SL_KUBE_PARK_REFUSED] = "Refused",
		[SL_KUBE_PARKING] = "Parking",
		[SL_KUBE_IS_PARKED] = "MemoryOnHost",
		[SL_KUBE_RESUMING] = "Resuming",
	};
	bool ready = figures->is_ready;

	return json_pack("[oo]",
		condition(before, "Ready", ready, ready ? "Ready" : "NoWorkload",
			ready ? "" : "sluiced on this node does not know the claim", now),
		condition(before, "Parked", figures->park == SL_KUBE_IS_PARKED,
			reasons[figures->park], figures->refusal ? figures->refusal : "",
			now));
}

json_t *sl_kube_report_devices(const struct sl_share *share, const char *pool,
	const struct sl_kube_figures figures[], const json_t *before, const char *now)
{
	json_t *devices = json_array();

	for (uint32_t i = 0; devices && i < share->count; i++) {
		const struct sl_kube_figures *f = &figures[i];
		json_t *device = json_pack("{ss ss ss s{ss ss sI sI sI sI}}", "driver",
			SL_KUBE_DRIVER, "pool", pool, "device", share->devices[i].device,
			"data", "state", f->state, "gpu", f->on, "request",
			(json_int_t)f->request_bytes, "limit", (json_int_t)f->limit_bytes,
			"resident", (json_int_t)f->resident_bytes, "evicted",
			(json_int_t)f->evicted_bytes);

		if (device && share->devices[i].id[0])
			(void)json_object_set_new(
				device, "shareID", json_string(share->devices[i].id));
		if (device)
			(void)json_object_set_new(device, "conditions",
				conditions(f, entry_of(before, device), now));
		(void)json_array_append_new(devices, device);
	}
	return devices;
}

static bool differs(const json_t *a, const json_t *b, const char *inner, const char *key)
{
	return !json_equal(
		sl_kube_at(a, inner, key, NULL), sl_kube_at(b, inner, key, NULL));
}

bool sl_kube_report_is_urgent(const json_t *before, const json_t *after)
{
	for (size_t i = 0; i < json_array_size(after); i++) {
		const json_t *device = json_array_get(after, i);
		const json_t *old = entry_of(before, device);

		if (!json_equal(json_object_get(old, "conditions"),
			    json_object_get(device, "conditions")) ||
			differs(old, device, "data", "gpu") ||
			differs(old, device, "data", "limit") ||
			differs(old, device, "data", "request"))
			return true;
	}
	return false;
}

json_t *sl_kube_report_patch(const struct sl_share *share, json_t *devices)
{
	/* A claim of that name with another uid: the server answers with a conflict. */
	return json_pack("{ss ss s{ss ss ss} s{sO}}", "apiVersion", "resource.k8s.io/v1",
		"kind", "ResourceClaim", "metadata", "name", share->name, "namespace",
		share->namespace, "uid", share->uid, "status", "devices", devices);
}
