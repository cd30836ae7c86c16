/*
 * share - see the header
 */
#include "cluster/kubernetes/claims/share.h"

#include <string.h>

#include "cluster/kubernetes/api/parse.h"
#include "cluster/kubernetes/api/quantity.h"
#include "cluster/kubernetes/claims/slice.h"
#include "wire/wire.h"

/* Copies a text if it fits. The API server has checked the rest of the claim. */
#define COPY(field, ...) copy((field), sizeof(field), sl_kube_text_at(__VA_ARGS__, NULL))

static bool copy(char *field, size_t size, const char *text)
{
	sl_wire_str(field, size, text);
	return strlen(text) < size;
}

/* absent: the value for a result without that key. */
static bool read_amount(const json_t *result, const char *key, uint64_t absent,
	uint64_t *out, struct sl_error *err)
{
	const char *text = sl_kube_text_at(result, "consumedCapacity", key, NULL);

	*out = absent;
	if (!text[0] || sl_kube_quantity_parse(text, out))
		return true;
	sl_error_set(err, "the claim's %s of %.64s is no amount", key, text);
	return false;
}

bool sl_share_compute_fits(uint64_t compute, uint64_t limit)
{
	return compute <= 100 && limit <= 100 && (!limit || limit >= compute);
}

static bool check_compute(uint64_t compute, uint64_t limit, struct sl_error *err)
{
	if (sl_share_compute_fits(compute, limit))
		return true;
	sl_error_set(err,
		"the claim's compute is %llu and its computeLimit %llu; write percents "
		"up "
		"to 100, and a computeLimit of at least compute, or none",
		(unsigned long long)compute, (unsigned long long)limit);
	return false;
}

static int add_device(const json_t *result, struct sl_share *out, struct sl_error *err)
{
	struct sl_share_device *device = &out->devices[out->count];
	uint64_t memory, limit, compute, compute_limit;

	if (out->count == SL_SHARE_DEVICES) {
		sl_error_set(err,
			"the claim has more than %d GPUs of this node; ask for fewer",
			SL_SHARE_DEVICES);
		return SL_SHARE_BAD;
	}
	if (json_is_true(json_object_get(result, "adminAccess"))) {
		sl_error_set(err,
			"the claim asks for adminAccess, which has no memory of its "
			"own; leave it out");
		return SL_SHARE_BAD;
	}
	if (!COPY(device->device, result, "device") ||
		!COPY(device->request, result, "request") ||
		!COPY(device->id, result, "shareID")) {
		sl_error_set(err, "a name in the claim's allocation is too long");
		return SL_SHARE_BAD;
	}
	if (!read_amount(result, "memory", UINT64_MAX, &memory, err) ||
		!read_amount(result, "memoryLimit", 0, &limit, err) ||
		!read_amount(result, "compute", 0, &compute, err) ||
		!read_amount(result, "computeLimit", 0, &compute_limit, err) ||
		!check_compute(compute, compute_limit, err))
		return SL_SHARE_BAD;
	if (limit && memory != UINT64_MAX && limit < memory) {
		sl_error_set(err, "the claim's memoryLimit is below its memory; give at "
				  "least that, "
				  "or leave memoryLimit out");
		return SL_SHARE_BAD;
	}
	/* The kubelet names an alternative ("gpu/small") by its request. */
	device->request[strcspn(device->request, "/")] = '\0';
	for (uint32_t i = 0; i < out->count; i++) {
		if (strcmp(out->devices[i].device, device->device) != 0)
			continue;
		sl_error_set(err,
			"two requests of the claim are on one GPU; ask for both amounts "
			"in one, or add a constraint of distinct devices");
		return SL_SHARE_BAD;
	}
	if (out->count && (memory != out->memory || limit != out->limit ||
				  compute != out->compute_pct ||
				  compute_limit != out->compute_limit_pct)) {
		sl_error_set(err,
			"the claim has different amounts of its GPUs; give all its "
			"requests the same amounts, or make two claims");
		return SL_SHARE_BAD;
	}
	out->memory = memory;
	out->limit = limit;
	out->compute_pct = compute;
	out->compute_limit_pct = compute_limit;
	out->count++;
	return SL_SHARE_OK;
}

/* Rounded down, so the published total never exceeds the memory. */
static uint64_t part_of(uint64_t bytes, unsigned int factor_pct)
{
	return bytes / factor_pct * SL_KUBE_FACTOR_ONE_PCT +
	       bytes % factor_pct * SL_KUBE_FACTOR_ONE_PCT / factor_pct;
}

void sl_share_divide(struct sl_share *share, unsigned int factor_pct, uint64_t own_bytes)
{
	if (factor_pct <= SL_KUBE_FACTOR_ONE_PCT || share->memory == UINT64_MAX)
		return;
	share->limit = sl_max_u64(share->limit, share->memory);
	if (own_bytes)
		share->limit = sl_min_u64(share->limit, own_bytes);
	share->memory = part_of(share->memory, factor_pct);
}

int sl_share_read(
	const json_t *claim, const char *pool, struct sl_share *out, struct sl_error *err)
{
	const json_t *results =
		sl_kube_at(claim, "status", "allocation", "devices", "results", NULL);
	const json_t *pod =
		json_array_get(sl_kube_at(claim, "status", "reservedFor", NULL), 0);

	*out = (struct sl_share){0};
	if (!COPY(out->uid, claim, "metadata", "uid") ||
		!COPY(out->namespace, claim, "metadata", "namespace") ||
		!COPY(out->name, claim, "metadata", "name") || !out->uid[0] ||
		!COPY(out->pod, pod, "name")) {
		sl_error_set(err, "this is no ResourceClaim");
		return SL_SHARE_BAD;
	}
	for (size_t i = 0; i < json_array_size(results); i++) {
		const json_t *result = json_array_get(results, i);
		int r;

		if (strcmp(sl_kube_text_at(result, "driver", NULL), SL_KUBE_DRIVER) !=
				0 ||
			strcmp(sl_kube_text_at(result, "pool", NULL), pool) != 0)
			continue;
		r = add_device(result, out, err);
		if (r != SL_SHARE_OK)
			return r;
	}
	return out->count ? SL_SHARE_OK : SL_SHARE_NONE;
}
