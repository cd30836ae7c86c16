/*
 * bodies - see the header
 */
#include "cluster/kubernetes/scheduler/bodies.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>

#include "base/text.h"
#include "cluster/kubernetes/api/parse.h"
#include "cluster/kubernetes/scheduler/extended.h"
#include "cluster/kubernetes/claims/slice.h"

#define PROTECTION "resource.kubernetes.io/delete-protection"

/* A random UUID (version 4). */
static void share_id(char buf[37])
{
	unsigned char r[16] = {0};

	if (getrandom(r, sizeof(r), 0) < 0)
		r[0] = 0;
	r[6] = (unsigned char)((r[6] & 0x0f) | 0x40);
	r[8] = (unsigned char)((r[8] & 0x3f) | 0x80);
	(void)snprintf(buf, 37,
		"%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[11],
		r[12], r[13], r[14], r[15]);
}

static json_t *metadata(const char *uid, uint64_t version)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, version);
	return version ? json_pack("{ssss}", "uid", uid, "resourceVersion", text)
		       : json_pack("{ss}", "uid", uid);
}

json_t *sl_bodies_protect(const char *claim_uid, uint64_t version)
{
	json_t *meta = metadata(claim_uid, version);

	(void)json_object_set_new(meta, "finalizers", json_pack("[s]", PROTECTION));
	return json_pack("{so}", "metadata", meta);
}

/* It is protected from the start; it can be deleted all the same until it is allocated. */
json_t *sl_bodies_claim(const struct sl_facts_pod *pod, const json_t *extended)
{
	return json_pack("{ss ss s{ss ss s[s] s{ss} s[{ss ss ss ss sb}]} s{s{sO}}}",
		"apiVersion", "resource.k8s.io/v1", "kind", "ResourceClaim", "metadata",
		"name", pod->claim, "namespace", pod->namespace, "finalizers", PROTECTION,
		"annotations", SL_EXTENDED_ANNOTATION, "true", "ownerReferences",
		"apiVersion", "v1", "kind", "Pod", "name", pod->name, "uid", pod->uid,
		"controller", 1, "spec", "devices", "requests",
		json_object_get(extended, "requests"));
}

json_t *sl_bodies_know_claim(const struct sl_facts_pod *pod, const json_t *extended)
{
	return json_pack("{s{ss} s{s{ss sO}}}", "metadata", "uid", pod->uid, "status",
		"extendedResourceClaimStatus", "resourceClaimName", pod->claim,
		"requestMappings", json_object_get(extended, "requestMappings"));
}

/* A slice of an earlier version has no computeLimit, so it is written only where asked for. */
static void set_compute_limit(json_t *result, uint32_t percent)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%u", percent);
	if (percent)
		(void)json_object_set_new(json_object_get(result, "consumedCapacity"),
			"computeLimit", json_string(text));
}

static json_t *result(
	const struct sl_bodies_allocation *a, const struct sl_bodies_device *device)
{
	char memory[SL_KUBE_QUANTITY_MAX], limit[SL_KUBE_QUANTITY_MAX], compute[16],
		id[37];
	json_t *result;

	share_id(id);
	(void)snprintf(compute, sizeof(compute), "%u", device->compute_pct);
	result = json_pack("{ss ss ss ss ss s{ss ss ss}}", "request", device->request,
		"driver", SL_KUBE_DRIVER, "pool", a->pool, "device", device->name,
		"shareID", id, "consumedCapacity", "memory",
		sl_kube_quantity((uint64_t)device->memory_mib * SL_MIB, memory),
		"memoryLimit",
		sl_kube_quantity((uint64_t)device->limit_mib * SL_MIB, limit), "compute",
		compute);
	set_compute_limit(result, device->compute_limit_pct);
	return result;
}

/* Copies the claim's configuration for the driver. */
static json_t *config_of(const struct sl_bodies_allocation *a)
{
	json_t *config = json_array(), *one;
	size_t i;

	json_array_foreach((json_t *)a->config, i, one)
	{
		json_t *copy = json_copy(one);

		(void)json_object_set_new(copy, "source", json_string("FromClaim"));
		(void)json_array_append_new(config, copy);
	}
	return config;
}

json_t *sl_bodies_allocate(const struct sl_bodies_allocation *a)
{
	json_t *results = json_array(), *devices;

	for (size_t i = 0; i < a->count; i++)
		(void)json_array_append_new(results, result(a, &a->devices[i]));
	devices = json_pack("{so}", "results", results);
	if (json_array_size(a->config))
		(void)json_object_set_new(devices, "config", config_of(a));
	return json_pack("{so s{s{so s{s[{s[{ss ss s[s]}]}]}} s[{ss ss ss}]}}",
		"metadata", metadata(a->claim_uid, a->version), "status", "allocation",
		"devices", devices, "nodeSelector", "nodeSelectorTerms", "matchFields",
		"key", "metadata.name", "operator", "In", "values", a->node,
		"reservedFor", "resource", "pods", "name", a->pod, "uid", a->pod_uid);
}

json_t *sl_bodies_bind(
	const char *namespace, const char *pod, const char *uid, const char *node)
{
	return json_pack("{ss ss s{ss ss ss} s{ss ss ss}}", "apiVersion", "v1", "kind",
		"Binding", "metadata", "namespace", namespace, "name", pod, "uid", uid,
		"target", "apiVersion", "v1", "kind", "Node", "name", node);
}

json_t *sl_bodies_evict(const char *namespace, const char *pod, const char *uid)
{
	return json_pack("{ss ss s{ss ss} s{s{ss}}}", "apiVersion", "policy/v1", "kind",
		"Eviction", "metadata", "namespace", namespace, "name", pod,
		"deleteOptions", "preconditions", "uid", uid);
}

json_t *sl_bodies_condition(const char *uid, const char *type, bool is_true,
	const char *reason, const char *message, int64_t now_s)
{
	time_t at = (time_t)now_s;
	struct tm utc = {0};
	char when[32];

	(void)gmtime_r(&at, &utc);
	(void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &utc);
	return json_pack("{s{ss} s{s[{ss ss ss so ss}]}}", "metadata", "uid", uid,
		"status", "conditions", "type", type, "status",
		is_true ? "True" : "False", "reason", reason, "message",
		sl_text_json(message), "lastTransitionTime", when);
}
