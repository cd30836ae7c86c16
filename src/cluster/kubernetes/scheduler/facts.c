/*
 * facts - see the header
 */
#include "cluster/kubernetes/scheduler/facts.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/crc.h"
#include "cluster/kubernetes/api/parse.h"
#include "cluster/kubernetes/api/quantity.h"
#include "cluster/kubernetes/scheduler/extended.h"
#include "cluster/kubernetes/claims/share.h"
#include "cluster/kubernetes/claims/slice.h"
#include "wire/wire.h"

#define COPY(field, ...) \
	sl_wire_str((field), sizeof(field), sl_kube_text_at(__VA_ARGS__, NULL))

static void refuse(struct sl_facts_refusal *refusal, const char *format, ...)
	SL_PRINTF(2, 3);
static void refuse(struct sl_facts_refusal *refusal, const char *format, ...)
{
	va_list args;

	/* Keep the first reason. */
	if (refusal->text[0])
		return;
	va_start(args, format);
	(void)vsnprintf(refusal->text, sizeof(refusal->text), format, args);
	va_end(args);
}

static bool has(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_array_size(value) > 0 || json_object_size(value) > 0;
}

static uint32_t to_mib(uint64_t bytes)
{
	return (uint32_t)sl_min_u64((bytes + SL_MIB - 1) / SL_MIB, UINT32_MAX / 4);
}

/* 0 if absent. */
static uint64_t amount(const json_t *object, const char *key, bool in_milli)
{
	const char *text = json_string_value(json_object_get(object, key));
	uint64_t value = 0;

	if (!text || !(in_milli ? sl_kube_quantity_parse_milli(text, &value)
				: sl_kube_quantity_parse(text, &value)))
		return 0;
	return value;
}

uint32_t sl_facts_checksum(const char *text)
{
	return text[0] ? sl_crc32(text, strlen(text)) | 1 : 0;
}

/* --- Pods: resources of the node. ----------------------------------------------------------- */

struct takes {
	uint64_t cpu_milli, memory;
};

static struct takes takes_of(const json_t *container)
{
	const json_t *requests = sl_kube_at(container, "resources", "requests", NULL);

	return (struct takes){
		amount(requests, "cpu", true), amount(requests, "memory", false)};
}

static void add(struct takes *sum, struct takes one)
{
	sum->cpu_milli += one.cpu_milli;
	sum->memory += one.memory;
}

static void at_least(struct takes *sum, struct takes one)
{
	sum->cpu_milli = sl_max_u64(sum->cpu_milli, one.cpu_milli);
	sum->memory = sl_max_u64(sum->memory, one.memory);
}

/* Counts as the kubelet does: lasting init containers run together with the containers. Each other
 * init container runs before the containers, beside the lasting ones listed in front of it. */
static void read_takes(const json_t *spec, struct sl_facts_pod *out)
{
	const json_t *overhead = json_object_get(spec, "overhead"), *container;
	const json_t *whole = sl_kube_at(spec, "resources", "requests", NULL);
	struct takes stay = {0}, most = {0}, sum = {0};
	size_t i;

	json_array_foreach(json_object_get(spec, "initContainers"), i, container)
	{
		struct takes one = takes_of(container);

		if (strcmp(sl_kube_text_at(container, "restartPolicy", NULL), "Always") ==
			0) {
			add(&stay, one);
			at_least(&most, stay);
		} else {
			add(&one, stay);
			at_least(&most, one);
		}
	}
	json_array_foreach(json_object_get(spec, "containers"), i, container)
		add(&sum, takes_of(container));
	add(&sum, stay);
	at_least(&sum, most);
	/* Requests of the pod as a whole replace them. */
	if (amount(whole, "cpu", true))
		sum.cpu_milli = amount(whole, "cpu", true);
	if (amount(whole, "memory", false))
		sum.memory = amount(whole, "memory", false);
	sum.cpu_milli += amount(overhead, "cpu", true);
	sum.memory += amount(overhead, "memory", false);
	out->cpu_milli = (uint32_t)sl_min_u64(sum.cpu_milli, UINT32_MAX / 4);
	out->memory_mib = to_mib(sum.memory);
}

/* --- Pods: unsupported features. ------------------------------------------------------------ */

static void refuse_container(const json_t *container, struct sl_facts_refusal *refusal)
{
	const json_t *requests = sl_kube_at(container, "resources", "requests", NULL),
		     *value, *port;
	const char *key;
	size_t i;

	json_object_foreach((json_t *)requests, key, value)
	{
		if (strcmp(key, "cpu") != 0 && strcmp(key, "memory") != 0 &&
			!sl_extended_is_gpu(key))
			refuse(refusal,
				"this scheduler counts no %.100s; leave the request "
				"out, or use the default scheduler",
				key);
	}
	json_array_foreach(json_object_get(container, "ports"), i, port)
	{
		if (json_integer_value(json_object_get(port, "hostPort")))
			refuse(refusal, "this scheduler keeps no account of ports of "
					"hosts; leave "
					"hostPort out, or use the default scheduler");
	}
}

static void refuse_spread(const json_t *spec, struct sl_facts_refusal *refusal)
{
	static const char *const kinds[] = {"podAffinity", "podAntiAffinity"};
	const json_t *constraint;
	size_t i;

	for (i = 0; i < 2; i++) {
		if (json_array_size(sl_kube_at(spec, "affinity", kinds[i],
			    "requiredDuringSchedulingIgnoredDuringExecution", NULL)))
			refuse(refusal,
				"this scheduler knows no required %s; leave it out, or "
				"use the default scheduler",
				kinds[i]);
	}
	json_array_foreach(
		json_object_get(spec, "topologySpreadConstraints"), i, constraint)
	{
		if (strcmp(sl_kube_text_at(constraint, "whenUnsatisfiable", NULL),
			    "ScheduleAnyway") != 0)
			refuse(refusal, "this scheduler keeps no "
					"topologySpreadConstraints; write "
					"whenUnsatisfiable: ScheduleAnyway, or use the "
					"default scheduler");
	}
}

static void refuse_what_is_unknown(const json_t *spec, struct sl_facts_refusal *refusal)
{
	const json_t *one;
	size_t i;

	refuse_spread(spec, refusal);
	json_array_foreach(json_object_get(spec, "volumes"), i, one)
	{
		if (has(one, "persistentVolumeClaim") ||
			json_object_get(one, "ephemeral"))
			refuse(refusal,
				"this scheduler knows no node's volumes (%.60s is a "
				"persistent one); use the default scheduler",
				sl_kube_text_at(one, "name", NULL));
	}
	json_array_foreach(json_object_get(spec, "initContainers"), i, one)
		refuse_container(one, refusal);
	json_array_foreach(json_object_get(spec, "containers"), i, one)
		refuse_container(one, refusal);
}

/* --- Pods: the rest. ---------------------------------------------------------------------- */

/* From annotations or labels; annotations win. */
static const char *mark(const json_t *pod, const char *key)
{
	const char *text = sl_kube_text_at(pod, "metadata", "annotations", key, NULL);

	return text[0] ? text : sl_kube_text_at(pod, "metadata", "labels", key, NULL);
}

static uint32_t number(const char *text)
{
	char *end = NULL;
	unsigned long value = strtoul(text, &end, 10);

	return text[0] >= '0' && text[0] <= '9' && !*end && value <= 1000000
		       ? (uint32_t)value
		       : UINT32_MAX;
}

static void read_gang(const json_t *pod, struct sl_facts_pod *out)
{
	const char *gang = mark(pod, SL_FACTS_LABEL_GANG);
	const char *least = mark(pod, SL_FACTS_LABEL_GANG_MIN);

	COPY(out->group, pod, "spec", "schedulingGroup", "podGroupName");
	if (!gang[0]) {
		gang = mark(pod, SL_FACTS_LABEL_COSCHED);
		least = mark(pod, SL_FACTS_LABEL_COSCHED_MIN);
	}
	sl_wire_str(out->gang, sizeof(out->gang), out->group[0] ? out->group : gang);
	if (!gang[0] || !least[0])
		return;
	out->gang_min = number(least);
	if (out->gang_min - 1 < 1000000)
		return;
	out->gang_min = 0;
	refuse(&out->refusal,
		"the least number of its gang, '%.40s', is no number from 1", least);
}

static const char *claim_of(const json_t *pod, const json_t *entry)
{
	const char *name = sl_kube_text_at(entry, "name", NULL);
	const json_t *status;
	size_t i;

	if (sl_kube_text_at(entry, "resourceClaimName", NULL)[0])
		return sl_kube_text_at(entry, "resourceClaimName", NULL);
	json_array_foreach(
		sl_kube_at(pod, "status", "resourceClaimStatuses", NULL), i, status)
	{
		if (strcmp(sl_kube_text_at(status, "name", NULL), name) == 0)
			return sl_kube_text_at(status, "resourceClaimName", NULL);
	}
	return "";
}

static void read_claim(const json_t *pod, struct sl_facts_pod *out)
{
	const json_t *claims = sl_kube_at(pod, "spec", "resourceClaims", NULL);

	if (json_array_size(claims) > 1)
		refuse(&out->refusal,
			"it has %zu claims, and this scheduler takes pods with one; "
			"claim all its GPUs in one (count: 2)",
			json_array_size(claims));
	if (json_array_size(claims) && out->gpus)
		refuse(&out->refusal,
			"it has a claim and GPUs in limits, and this scheduler takes "
			"pods with one of the two; claim all its GPUs (count: 2)");
	if (!json_array_size(claims))
		return;
	sl_wire_str(
		out->claim, sizeof(out->claim), claim_of(pod, json_array_get(claims, 0)));
	out->lacks_claim = !out->claim[0];
}

static void read_limits(const json_t *pod, struct sl_facts_pod *out)
{
	char name[SL_EXTENDED_NAME];

	out->gpus = sl_extended_read(json_object_get(pod, "spec"), NULL, &out->refusal);
	if (!out->gpus)
		return;
	sl_extended_name(out->name, out->uid, name);
	sl_wire_str(out->claim, sizeof(out->claim), name);
	out->knows_claim =
		strcmp(sl_kube_text_at(pod, "status", "extendedResourceClaimStatus",
			       "resourceClaimName", NULL),
			name) == 0;
}

static void read_reclaim(const json_t *pod, struct sl_facts_pod *out)
{
	const char *text = mark(pod, SL_FACTS_LABEL_RECLAIM);

	out->terminates = strcmp(text, "terminate") == 0;
	if (text[0] && !out->terminates && strcmp(text, "park") != 0)
		refuse(&out->refusal, "%s is '%.40s'; write park or terminate",
			SL_FACTS_LABEL_RECLAIM, text);
}

static const json_t *condition(const json_t *conditions, const char *type)
{
	const json_t *one;
	size_t i;

	json_array_foreach(conditions, i, one)
	{
		if (strcmp(sl_kube_text_at(one, "type", NULL), type) == 0)
			return one;
	}
	return NULL;
}

static bool is_true(const json_t *conditions, const char *type)
{
	return strcmp(sl_kube_text_at(condition(conditions, type), "status", NULL),
		       "True") == 0;
}

/* Seconds since 1970 of a time in the API's form; 0: not a time. */
static int64_t time_of(const char *text)
{
	struct tm utc = {0};

	return strptime(text, "%Y-%m-%dT%H:%M:%S", &utc) ? timegm(&utc) : 0;
}

static void read_order(const json_t *conditions, struct sl_facts_pod *out)
{
	const json_t *order = condition(conditions, SL_FACTS_CONDITION_PARKED);
	const char *reason = sl_kube_text_at(order, "reason", NULL);

	out->is_ordered_parked = is_true(conditions, SL_FACTS_CONDITION_PARKED);
	out->is_node_silent = strcmp(reason, SL_FACTS_REASON_SILENT) == 0;
	out->is_taken_back =
		out->is_node_silent || strcmp(reason, SL_FACTS_REASON_NOT_PARKED) == 0;
	out->order_s = time_of(sl_kube_text_at(order, "lastTransitionTime", NULL));
}

static void read_status(const json_t *pod, struct sl_facts_pod *out)
{
	const char *phase = sl_kube_text_at(pod, "status", "phase", NULL);
	const json_t *conditions = sl_kube_at(pod, "status", "conditions", NULL);

	out->is_over = strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
	out->is_leaving = sl_kube_text_at(pod, "metadata", "deletionTimestamp", NULL)[0];
	out->is_gated =
		json_array_size(sl_kube_at(pod, "spec", "schedulingGates", NULL)) > 0;
	read_order(conditions, out);
	if (!is_true(conditions, "PodScheduled"))
		out->told = sl_facts_checksum(sl_kube_text_at(
			condition(conditions, "PodScheduled"), "message", NULL));
}

bool sl_facts_pod(const json_t *pod, const char *scheduler, struct sl_facts_pod *out)
{
	const json_t *spec = json_object_get(pod, "spec");

	*out = (struct sl_facts_pod){0};
	COPY(out->uid, pod, "metadata", "uid");
	COPY(out->namespace, pod, "metadata", "namespace");
	COPY(out->name, pod, "metadata", "name");
	COPY(out->node, spec, "nodeName");
	if (!out->uid[0] || !out->name[0])
		return false;
	read_status(pod, out);
	read_takes(spec, out);
	if (strcmp(sl_kube_text_at(spec, "schedulerName", NULL), scheduler) != 0)
		return true;
	out->is_ours = true;
	COPY(out->created, pod, "metadata", "creationTimestamp");
	sl_wire_str(
		out->project, sizeof(out->project), mark(pod, SL_FACTS_LABEL_PROJECT));
	COPY(out->queue, pod, "metadata", "labels", SL_FACTS_LABEL_QUEUE);
	out->priority = (int32_t)json_integer_value(json_object_get(spec, "priority"));
	read_gang(pod, out);
	read_reclaim(pod, out);
	read_limits(pod, out);
	read_claim(pod, out);
	if (!out->node[0])
		refuse_what_is_unknown(spec, &out->refusal);
	return true;
}

/* --- Claims. ------------------------------------------------------------------------------ */

static bool read_capacity(const json_t *asked, const char *key, uint64_t *out,
	struct sl_facts_refusal *refusal)
{
	const char *text = json_string_value(json_object_get(asked, key));

	*out = 0;
	if (!text || sl_kube_quantity_parse(text, out))
		return true;
	refuse(refusal, "the claim's %s, '%.40s', is no amount", key, text);
	return false;
}

static void read_amounts(const json_t *exactly, struct sl_facts_claim *out)
{
	const json_t *asked = sl_kube_at(exactly, "capacity", "requests", NULL), *value;
	uint64_t memory, limit, compute, compute_limit;
	const char *key;

	json_object_foreach((json_t *)asked, key, value)
	{
		if (strcmp(key, "memory") != 0 && strcmp(key, "memoryLimit") != 0 &&
			strcmp(key, "compute") != 0 && strcmp(key, "computeLimit") != 0)
			refuse(&out->refusal,
				"a GPU has no capacity %.60s; it has memory, "
				"memoryLimit, compute and computeLimit",
				key);
	}
	if (!read_capacity(asked, "memory", &memory, &out->refusal) ||
		!read_capacity(asked, "memoryLimit", &limit, &out->refusal) ||
		!read_capacity(asked, "compute", &compute, &out->refusal) ||
		!read_capacity(asked, "computeLimit", &compute_limit, &out->refusal))
		return;
	if (!memory && json_object_get(asked, "memory"))
		refuse(&out->refusal,
			"the claim's memory is 0; write an amount such as 8Gi, or leave "
			"it out for a whole GPU");
	out->memory_mib = to_mib(memory);
	out->limit_mib = to_mib(limit);
	if (limit && limit < memory)
		refuse(&out->refusal,
			"the claim's memoryLimit is below its memory; give at least "
			"that, or leave memoryLimit out");
	if (!sl_share_compute_fits(compute, compute_limit))
		refuse(&out->refusal, "the claim's compute and computeLimit are percents "
				      "up to 100, and "
				      "computeLimit is at least compute, or left out");
	out->compute_pct = (uint32_t)sl_min_u64(compute, 100);
	out->compute_limit_pct = (uint32_t)sl_min_u64(compute_limit, 100);
}

static void refuse_request(const json_t *request, struct sl_facts_refusal *refusal)
{
	const json_t *exactly = json_object_get(request, "exactly");

	if (!exactly)
		refuse(refusal, "the claim has alternatives (firstAvailable), which this "
				"scheduler does not choose from; write exactly");
	else if (strcmp(sl_kube_text_at(exactly, "deviceClassName", NULL),
			 SL_KUBE_DRIVER) != 0)
		refuse(refusal,
			"the claim is of class %.100s, which this scheduler does not "
			"serve; write %s, or use the default scheduler",
			sl_kube_text_at(exactly, "deviceClassName", NULL),
			SL_KUBE_DRIVER);
	else if (strcmp(sl_kube_text_at(exactly, "allocationMode", NULL), "All") == 0)
		refuse(refusal, "the claim asks for all GPUs of a node; give a count");
	else if (json_is_true(json_object_get(exactly, "adminAccess")))
		refuse(refusal,
			"the claim asks for adminAccess, which has no memory of its own; "
			"leave it out");
	else if (has(exactly, "selectors"))
		refuse(refusal, "the claim selects devices by an expression, which this "
				"scheduler "
				"does not read; use the pod's nodeSelector");
}

/* Is it the constraint that all GPUs are distinct? It always holds here; the webhook writes it. */
static bool are_kept_anyway(const json_t *constraints)
{
	const json_t *one;

	for (size_t i = 0; (one = json_array_get(constraints, i)); i++) {
		if (strcmp(sl_kube_text_at(one, "distinctAttribute", NULL),
			    SL_KUBE_DRIVER "/uuid") != 0)
			return false;
	}
	return true;
}

static uint16_t count_of(const json_t *exactly, struct sl_facts_refusal *refusal)
{
	json_int_t count = json_integer_value(json_object_get(exactly, "count"));

	if (count > SL_FACTS_DEVICES)
		refuse(refusal, "the claim asks for %lld GPUs, and a node has at most %d",
			(long long)count, SL_FACTS_DEVICES);
	return (uint16_t)(count > 0 && count <= SL_FACTS_DEVICES ? count : 1);
}

/* All of its GPUs have one size, so the machine places the request as a unit. */
static void read_request(
	const json_t *request, struct sl_facts_claim *out, struct sl_facts_request *to)
{
	const json_t *exactly = json_object_get(request, "exactly");
	struct sl_facts_claim one = {0};

	COPY(to->name, request, "name");
	refuse_request(request, &out->refusal);
	to->gpus = count_of(exactly, &out->refusal);
	out->gpus += to->gpus;
	read_amounts(exactly, &one);
	refuse(&out->refusal, "%s", one.refusal.text);
	if (out->requests++ == 0) {
		out->memory_mib = one.memory_mib;
		out->limit_mib = one.limit_mib;
		out->compute_pct = one.compute_pct;
		out->compute_limit_pct = one.compute_limit_pct;
	}
	if (one.memory_mib != out->memory_mib || one.limit_mib != out->limit_mib ||
		one.compute_pct != out->compute_pct ||
		one.compute_limit_pct != out->compute_limit_pct)
		refuse(&out->refusal,
			"the claim's requests ask for different amounts, which this "
			"scheduler does not serve; give all of them the same");
}

static bool read_requests(const json_t *claim, struct sl_facts_claim *out)
{
	const json_t *devices = sl_kube_at(claim, "spec", "devices", NULL), *one;
	const json_t *requests = json_object_get(devices, "requests");
	size_t i;

	if (!json_array_size(requests))
		refuse(&out->refusal, "the claim requests nothing");
	if (!are_kept_anyway(json_object_get(devices, "constraints")))
		refuse(&out->refusal,
			"the claim has constraints, which this scheduler does not "
			"read; leave them out");
	out->request = calloc(json_array_size(requests) + 1, sizeof(*out->request));
	if (!out->request)
		return false;
	json_array_foreach(requests, i, one)
	{
		if (i < SL_FACTS_REQUESTS)
			read_request(one, out, &out->request[i]);
	}
	if (out->gpus > SL_FACTS_DEVICES)
		refuse(&out->refusal,
			"the claim asks for %u GPUs, and a node has at most %d",
			out->gpus, SL_FACTS_DEVICES);
	return true;
}

/* The pod that owns the claim, if it was made for a pod's limits. */
static void read_owner(const json_t *claim, struct sl_facts_claim *out)
{
	const json_t *owner;
	size_t i;

	if (strcmp(sl_kube_text_at(claim, "metadata", "annotations",
			   SL_EXTENDED_ANNOTATION, NULL),
		    "true") != 0)
		return;
	json_array_foreach(
		sl_kube_at(claim, "metadata", "ownerReferences", NULL), i, owner)
	{
		if (json_is_true(json_object_get(owner, "controller")))
			COPY(out->owner, owner, "uid");
	}
}

static void read_result(const json_t *result, struct sl_facts_claim *out)
{
	const json_t *has_of = json_object_get(result, "consumedCapacity");
	struct sl_facts_device *device;

	if (strcmp(sl_kube_text_at(result, "driver", NULL), SL_KUBE_DRIVER) != 0)
		return;
	device = &out->device[out->count++];
	COPY(out->pool, result, "pool");
	COPY(device->name, result, "device");
	device->memory_mib = UINT64_MAX;
	if (json_object_get(has_of, "memory"))
		device->memory_mib = to_mib(amount(has_of, "memory", false));
	device->compute_pct = (uint32_t)sl_min_u64(amount(has_of, "compute", false), 100);
}

static bool read_allocation(const json_t *claim, struct sl_facts_claim *out)
{
	const json_t *allocation = sl_kube_at(claim, "status", "allocation", NULL), *one;
	const json_t *results = sl_kube_at(allocation, "devices", "results", NULL);
	size_t i;

	out->is_allocated = json_is_object(allocation);
	if (!json_array_size(results))
		return true;
	out->device = calloc(json_array_size(results), sizeof(*out->device));
	if (!out->device)
		return false;
	json_array_foreach(results, i, one) read_result(one, out);
	return true;
}

static void read_parked(const json_t *claim, struct sl_facts_claim *out)
{
	const json_t *device;
	uint32_t said = 0, parked = 0;
	size_t i;

	json_array_foreach(sl_kube_at(claim, "status", "devices", NULL), i, device)
	{
		const json_t *conditions = json_object_get(device, "conditions");
		const json_t *says = condition(conditions, "Parked");
		const char *reason;

		if (strcmp(sl_kube_text_at(device, "driver", NULL), SL_KUBE_DRIVER) !=
				0 ||
			!says)
			continue;
		said++;
		parked += is_true(conditions, "Parked");
		reason = sl_kube_text_at(says, "reason", NULL);
		out->is_parking |= strcmp(reason, SL_FACTS_REASON_PARKING) == 0;
		out->is_refused |= strcmp(reason, SL_FACTS_REASON_REFUSED) == 0;
	}
	out->says_parked = said && said >= out->count;
	out->is_parked = out->says_parked && parked == said;
}

bool sl_facts_claim(const json_t *claim, struct sl_facts_claim *out)
{
	const json_t *reserved = sl_kube_at(claim, "status", "reservedFor", NULL), *one;
	size_t i;

	*out = (struct sl_facts_claim){0};
	COPY(out->uid, claim, "metadata", "uid");
	COPY(out->namespace, claim, "metadata", "namespace");
	COPY(out->name, claim, "metadata", "name");
	if (!out->uid[0] || !out->name[0])
		return false;
	out->version = strtoull(
		sl_kube_text_at(claim, "metadata", "resourceVersion", NULL), NULL, 10);
	out->is_leaving =
		sl_kube_text_at(claim, "metadata", "deletionTimestamp", NULL)[0];
	json_array_foreach(sl_kube_at(claim, "metadata", "finalizers", NULL), i, one)
	{
		if (strcmp(json_string_value(one) ? json_string_value(one) : "",
			    "resource.kubernetes.io/delete-protection") == 0)
			out->is_protected = true;
	}
	read_owner(claim, out);
	if (!read_requests(claim, out) || !read_allocation(claim, out)) {
		sl_facts_claim_fini(out);
		return false;
	}
	out->pods = (uint32_t)json_array_size(reserved);
	COPY(out->pod_uid, json_array_get(reserved, 0), "uid");
	read_parked(claim, out);
	if (!out->is_allocated)
		out->config =
			json_dumps(sl_kube_at(claim, "spec", "devices", "config", NULL),
				JSON_COMPACT);
	return true;
}

void sl_facts_claim_fini(struct sl_facts_claim *claim)
{
	free(sl_steal(&claim->request));
	free(sl_steal(&claim->device));
	free(sl_steal(&claim->config));
}

/* --- Nodes. ------------------------------------------------------------------------------- */

bool sl_facts_node(const json_t *node, struct sl_facts_node *out)
{
	const json_t *has_of = sl_kube_at(node, "status", "allocatable", NULL), *taint;
	size_t i;

	*out = (struct sl_facts_node){0};
	COPY(out->name, node, "metadata", "name");
	if (!out->name[0])
		return false;
	out->cpu_milli =
		(uint32_t)sl_min_u64(amount(has_of, "cpu", true), UINT32_MAX / 4);
	out->memory_mib = (uint32_t)sl_min_u64(
		amount(has_of, "memory", false) / SL_MIB, UINT32_MAX / 4);
	out->pods = (uint32_t)sl_min_u64(amount(has_of, "pods", false), UINT32_MAX);
	out->is_closed =
		json_is_true(sl_kube_at(node, "spec", "unschedulable", NULL)) ||
		!is_true(sl_kube_at(node, "status", "conditions", NULL), "Ready") ||
		sl_kube_text_at(node, "metadata", "deletionTimestamp", NULL)[0];
	/* Taints of the node's own state: pods tolerate them so that they are not ended at once. */
	json_array_foreach(sl_kube_at(node, "spec", "taints", NULL), i, taint)
	{
		if (strncmp(sl_kube_text_at(taint, "key", NULL), "node.kubernetes.io/",
			    19) == 0 &&
			strcmp(sl_kube_text_at(taint, "effect", NULL),
				"PreferNoSchedule") != 0)
			out->is_closed = true;
	}
	return true;
}

/* --- Slices. ------------------------------------------------------------------------------ */

static bool is_tainted(const json_t *device)
{
	const json_t *taint;
	size_t i;

	json_array_foreach(json_object_get(device, "taints"), i, taint)
	{
		if (strcmp(sl_kube_text_at(taint, "effect", NULL), "None") != 0)
			return true;
	}
	return false;
}

bool sl_facts_slice(const json_t *slice, struct sl_facts_slice *out)
{
	const json_t *spec = json_object_get(slice, "spec"), *device;
	size_t i;

	*out = (struct sl_facts_slice){.swaps = true};
	COPY(out->node, spec, "nodeName");
	COPY(out->pool, spec, "pool", "name");
	if (strcmp(sl_kube_text_at(spec, "driver", NULL), SL_KUBE_DRIVER) != 0 ||
		!out->node[0])
		return false;
	json_array_foreach(json_object_get(spec, "devices"), i, device)
	{
		const json_t *memory = sl_kube_at(device, "capacity", "memory", NULL);
		const json_t *range = sl_kube_at(device, "capacity", "memoryLimit",
			"requestPolicy", "validRange", NULL);

		if (out->count == SL_FACTS_DEVICES)
			break;
		COPY(out->device[out->count].name, device, "name");
		out->device[out->count].memory_mib =
			to_mib(amount(memory, "value", false));
		out->device[out->count].limit_mib = to_mib(amount(range, "max", false));
		out->device[out->count].is_closed =
			is_tainted(device) || !out->device[out->count].memory_mib;
		out->swaps &= json_is_true(
			sl_kube_at(device, "attributes", "swap", "bool", NULL));
		out->count++;
	}
	return true;
}
