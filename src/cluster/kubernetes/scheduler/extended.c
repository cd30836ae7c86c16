/*
 * extended - see the header
 */
#include "cluster/kubernetes/scheduler/extended.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "cluster/kubernetes/api/parse.h"
#include "cluster/kubernetes/api/quantity.h"
#include "cluster/kubernetes/claims/slice.h"
#include "policy/placement/fit.h"

/* The name in class.yaml, and the default name of each class. */
static const char *const resources[] = {
	"sluice.dev/gpu", "deviceclass.resource.kubernetes.io/" SL_KUBE_DRIVER};

struct reading {
	const json_t *spec;
	size_t inits; /* number of init containers, which come first */
	json_t *requests, *mappings;
	uint64_t gpus;
	struct sl_facts_refusal *refusal;
};

bool sl_extended_is_gpu(const char *resource)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(resources); i++) {
		if (strcmp(resource, resources[i]) == 0)
			return true;
	}
	return false;
}

void sl_extended_name(const char *pod, const char *uid, char name[SL_EXTENDED_NAME])
{
	char base[SL_FACTS_NAME + 32];

	(void)snprintf(base, sizeof(base), "%s-extended-resources-", pod);
	/* Its length is that of names that the API server generates. */
	(void)snprintf(
		name, SL_EXTENDED_NAME, "%.55s%08x", base, sl_crc32(uid, strlen(uid)));
}

static const json_t *container_at(const struct reading *r, size_t i)
{
	return i < r->inits
		       ? json_array_get(json_object_get(r->spec, "initContainers"), i)
		       : json_array_get(
				 json_object_get(r->spec, "containers"), i - r->inits);
}

/* True if the containers behind it start only after it has ended. */
static bool ends_before(const struct reading *r, size_t i)
{
	return i < r->inits &&
	       strcmp(sl_kube_text_at(container_at(r, i), "restartPolicy", NULL),
		       "Always") != 0;
}

static uint64_t asked(const json_t *container, const char *resource)
{
	const char *text =
		sl_kube_text_at(container, "resources", "requests", resource, NULL);
	uint64_t count = 0;

	return sl_kube_quantity_parse(text, &count) ? count : 0;
}

/* kube-scheduler's form: the places of container and resource, the latter by name. */
static void request_name(
	const json_t *container, size_t i, const char *resource, char name[64])
{
	const json_t *requests = sl_kube_at(container, "resources", "requests", NULL);
	unsigned int before = 0;
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)requests, key, value) before +=
		strcmp(key, resource) < 0;
	(void)snprintf(name, 64, "container-%zu-request-%u", i, before);
}

static void map(struct reading *r, const json_t *container, const char *resource,
	const char *request)
{
	(void)json_array_append_new(
		r->mappings, json_pack("{ss ss ss}", "containerName",
				     sl_kube_text_at(container, "name", NULL),
				     "resourceName", resource, "requestName", request));
}

static void read_one_that_stays(struct reading *r, size_t i, const char *resource)
{
	const json_t *container = container_at(r, i);
	uint64_t count = asked(container, resource);
	char name[64];

	if (!count)
		return;
	r->gpus += sl_min_u64(count, UINT32_MAX);
	request_name(container, i, resource, name);
	(void)json_array_append_new(
		r->requests, json_pack("{ss s{ss ss sI}}", "name", name, "exactly",
				     "deviceClassName", SL_KUBE_DRIVER, "allocationMode",
				     "ExactCount", "count", (json_int_t)count));
	map(r, container, resource, name);
}

/* Uses the requests of the containers behind it. */
static void read_one_that_ends(struct reading *r, size_t i, const char *resource)
{
	const json_t *container = container_at(r, i), *behind;
	uint64_t count = asked(container, resource), found = 0;
	char name[64];

	for (size_t k = i + 1; found < count && (behind = container_at(r, k)); k++) {
		if (ends_before(r, k) || !asked(behind, resource))
			continue;
		found += asked(behind, resource);
		request_name(behind, k, resource, name);
		map(r, container, resource, name);
	}
	if (found < count && !r->refusal->text[0])
		(void)snprintf(r->refusal->text, sizeof(r->refusal->text),
			"init container %.60s asks for more GPUs than the containers "
			"behind it; ask for as many in one of these, or use the default "
			"scheduler",
			sl_kube_text_at(container, "name", NULL));
}

static void read_all(struct reading *r)
{
	for (size_t k = 0; k < SL_ARRAY_LEN(resources); k++) {
		for (size_t i = 0; container_at(r, i); i++) {
			if (ends_before(r, i))
				read_one_that_ends(r, i, resources[k]);
			else
				read_one_that_stays(r, i, resources[k]);
		}
	}
}

uint32_t sl_extended_read(
	const json_t *spec, json_t **out, struct sl_facts_refusal *refusal)
{
	struct reading r = {.spec = spec,
		.inits = json_array_size(json_object_get(spec, "initContainers")),
		.requests = json_array(),
		.mappings = json_array(),
		.refusal = refusal};
	json_t *read;

	read_all(&r);
	read = json_pack(
		"{so so}", "requests", r.requests, "requestMappings", r.mappings);
	if (r.gpus > SL_FIT_GPUS_MAX && !refusal->text[0])
		(void)snprintf(refusal->text, sizeof(refusal->text),
			"it asks for %llu GPUs, and a node has at most %d",
			(unsigned long long)r.gpus, SL_FIT_GPUS_MAX);
	if (out)
		*out = r.gpus ? json_incref(read) : NULL;
	json_decref(read);
	return (uint32_t)sl_min_u64(r.gpus, SL_FIT_GPUS_MAX);
}
