/*
 * claimspec - see the header
 */
#include "cluster/kubernetes/claims/claimspec.h"

#include <gnutls/gnutls.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cluster/kubernetes/api/parse.h"
#include "cluster/kubernetes/api/quantity.h"
#include "cluster/kubernetes/claims/share.h"
#include "cluster/kubernetes/claims/slice.h"

/* Sizes that differ by less count as one. */
#define ALIKE_PCT 5u
/* Of the name of a template: 64 bits of SHA-256. */
#define NAME_HASH_BYTES 8

/* --- sizes --------------------------------------------------------------------------------- */

static uint64_t quantity_at(const char *text)
{
	uint64_t bytes = 0;

	return sl_kube_quantity_parse(text, &bytes) ? bytes : 0;
}

size_t sl_gpu_rooms_read(const json_t *slice, struct sl_gpu_room *out, size_t max)
{
	const json_t *devices = sl_kube_at(slice, "spec", "devices", NULL), *device;
	size_t count = 0;

	if (strcmp(sl_kube_text_at(slice, "spec", "driver", NULL), SL_KUBE_DRIVER) != 0)
		return 0;
	for (size_t i = 0; count < max && (device = json_array_get(devices, i)); i++) {
		struct sl_gpu_room room = {
			.memory_bytes = quantity_at(sl_kube_text_at(
				device, "capacity", "memory", "value", NULL)),
			.own_bytes = quantity_at(
				sl_kube_text_at(device, "capacity", "memoryLimit",
					"requestPolicy", "validRange", "max", NULL))};

		if (room.memory_bytes && !room.own_bytes)
			room.own_bytes = room.memory_bytes;
		if (room.memory_bytes)
			out[count++] = room;
	}
	return count;
}

static int by_memory(const void *a, const void *b)
{
	const struct sl_gpu_room *one = a, *two = b;

	return (one->memory_bytes > two->memory_bytes) -
	       (one->memory_bytes < two->memory_bytes);
}

/* False: more sizes than a claim may have alternatives. */
static bool group(const struct sl_gpu_room *rooms, size_t count, unsigned int alike_pct,
	struct sl_sizes *out)
{
	struct sl_size *size = NULL;

	out->count = 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t bytes = rooms[i].memory_bytes;

		if (!size || (unsigned __int128)bytes * 100 >
				     (unsigned __int128)size->least_bytes *
					     (100 + alike_pct)) {
			if (out->count == SL_SIZES_MAX)
				return false;
			size = &out->of[out->count++];
			*size = (struct sl_size){bytes, bytes, rooms[i].own_bytes};
		}
		size->most_bytes = bytes;
		size->own_bytes = sl_min_u64(size->own_bytes, rooms[i].own_bytes);
	}
	return true;
}

void sl_sizes_group(struct sl_gpu_room *rooms, size_t count, struct sl_sizes *out)
{
	unsigned int alike_pct = ALIKE_PCT;

	if (count)
		qsort(rooms, count, sizeof(*rooms), by_memory);
	while (!group(rooms, count, alike_pct, out))
		alike_pct *= 2;
}

/* --- bounds -------------------------------------------------------------------------------- */

static bool read_bound(const json_t *namespace, const char *key, bool may_be_part,
	struct sl_amount *out, struct sl_error *err)
{
	const json_t *value = sl_kube_at(namespace, "metadata", "annotations", key, NULL);
	const char *text = json_string_value(value);
	struct sl_error why = {0};

	*out = (struct sl_amount){0};
	if (!value)
		return true;
	if (sl_amount_parse(text ? text : "", out, &why) == SL_AMOUNT_OK && out->value &&
		(may_be_part || out->kind == SL_AMOUNT_BYTES))
		return true;
	sl_error_set(err,
		"annotation %s of namespace %.63s is \"%.40s\": its owner has to write "
		"%s",
		key, sl_kube_text_at(namespace, "metadata", "name", NULL),
		text ? text : "",
		may_be_part ? "an amount such as \"12Gi\", or a part of a GPU such as "
			      "\"0.8\""
			    : "an amount such as \"8Gi\"");
	return false;
}

bool sl_bounds_read(const json_t *namespace, struct sl_bounds *out, struct sl_error *err)
{
	struct sl_amount request, limit;

	*out = (struct sl_bounds){
		.namespace = sl_kube_text_at(namespace, "metadata", "name", NULL),
		.max_request = UINT64_MAX,
		.max_limit = UINT64_MAX};
	if (!read_bound(namespace, "sluice.dev/default-limit", true, &out->default_limit,
		    err) ||
		!read_bound(namespace, "sluice.dev/max-request", false, &request, err) ||
		!read_bound(namespace, "sluice.dev/max-limit", false, &limit, err))
		return false;
	if (request.kind)
		out->max_request = request.value;
	if (limit.kind)
		out->max_limit = limit.value;
	return true;
}

struct share {
	uint64_t request, limit;
};

static bool above(const char *what, const char *bound, uint64_t bytes, uint64_t most,
	const struct sl_bounds *bounds, struct sl_error *err)
{
	char asked[SL_KUBE_QUANTITY_MAX], allowed[SL_KUBE_QUANTITY_MAX];

	if (bytes <= most)
		return false;
	sl_error_set(err,
		"%s of %s is more than the %s that namespace %.63s allows (%s): ask for "
		"less",
		what, sl_kube_quantity(bytes, asked), sl_kube_quantity(most, allowed),
		bounds->namespace, bound);
	return true;
}

static bool keeps_bounds(
	const struct share *share, const struct sl_bounds *bounds, struct sl_error *err)
{
	return !above("a request", "sluice.dev/max-request", share->request,
		       bounds->max_request, bounds, err) &&
	       !above("a limit", "sluice.dev/max-limit", share->limit, bounds->max_limit,
		       bounds, err);
}

/* For fixed amounts: notes that no present GPU has space. */
static void note_room(
	const struct share *share, const struct sl_sizes *sizes, struct sl_error *note)
{
	char text[SL_KUBE_QUANTITY_MAX], largest_text[SL_KUBE_QUANTITY_MAX];
	uint64_t largest = 0;

	for (size_t i = 0; i < sizes->count; i++)
		largest = sl_max_u64(largest, sizes->of[i].own_bytes);
	if (largest && sl_max_u64(share->request, share->limit) > largest)
		sl_error_set(note,
			"no GPU of the cluster has %s now, the largest has %s: the pod "
			"stays Pending until one comes",
			sl_kube_quantity(sl_max_u64(share->request, share->limit), text),
			sl_kube_quantity(largest, largest_text));
}

/* --- the spec ------------------------------------------------------------------------------ */

/* A default limit in bytes depends on the size of the GPU; if no GPU is known it stays
 * unchanged. */
static bool depends_on_size(const struct sl_ask *ask, const struct sl_bounds *bounds,
	const struct sl_sizes *sizes)
{
	uint32_t by_default = ask->limit.kind == SL_AMOUNT_UNSET
				      ? bounds->default_limit.kind
				      : (uint32_t)SL_AMOUNT_UNSET;

	return ask->request.kind == SL_AMOUNT_FRACTION ||
	       by_default == SL_AMOUNT_FRACTION ||
	       (by_default == SL_AMOUNT_BYTES && sizes->count > 0);
}

/* The share on a GPU where one claim may have own_bytes. A default limit is lowered to
 * own_bytes. */
static struct share share_of(
	const struct sl_ask *ask, const struct sl_bounds *bounds, uint64_t own_bytes)
{
	struct share share = {.request = sl_amount_resolve(&ask->request, own_bytes, 0)};

	if (ask->request.kind == SL_AMOUNT_FRACTION)
		share.request = sl_max_u64(share.request, SL_MIB);
	if (ask->limit.kind != SL_AMOUNT_UNSET) {
		share.limit = sl_amount_resolve(&ask->limit, own_bytes, 0);
		share.limit = sl_max_u64(share.limit, share.request);
		return share;
	}
	share.limit = sl_amount_resolve(&bounds->default_limit, own_bytes, share.request);
	share.limit -= share.limit % SL_MIB;
	share.limit = sl_min_u64(share.limit, sl_min_u64(bounds->max_limit, own_bytes));
	share.limit = sl_max_u64(share.limit, share.request);
	return share;
}

static void set_percent(json_t *requests, const char *key, uint32_t percent)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%u", percent);
	if (percent)
		(void)json_object_set_new(requests, key, json_string(text));
}

static json_t *capacity_of(const struct sl_ask *ask, const struct share *share)
{
	char request[SL_KUBE_QUANTITY_MAX], limit[SL_KUBE_QUANTITY_MAX];
	json_t *requests =
		json_pack("{ss}", "memory", sl_kube_quantity(share->request, request));

	if (share->limit > share->request)
		(void)json_object_set_new(requests, "memoryLimit",
			json_string(sl_kube_quantity(share->limit, limit)));
	set_percent(requests, "compute", ask->compute_pct);
	set_percent(requests, "computeLimit", ask->compute_limit_pct);
	return json_pack("{so}", "requests", requests);
}

static json_t *selectors_of(const struct sl_size *size)
{
	static const char *const memory =
		"device.capacity[\"" SL_KUBE_DRIVER "\"].memory.compareTo(quantity(";
	char least[SL_KUBE_QUANTITY_MAX], most[SL_KUBE_QUANTITY_MAX], expression[320];

	(void)snprintf(expression, sizeof(expression),
		"%s\"%s\")) >= 0 && %s\"%s\")) <= 0", memory,
		sl_kube_quantity(size->least_bytes, least), memory,
		sl_kube_quantity(size->most_bytes, most));
	return json_pack("[{s{ss}}]", "cel", "expression", expression);
}

/* size: NULL for GPUs of all sizes. */
static json_t *request_of(
	const struct sl_ask *ask, const struct share *share, const struct sl_size *size)
{
	json_t *request = json_pack("{sssssIso}", "deviceClassName", SL_KUBE_CLASS,
		"allocationMode", "ExactCount", "count", (json_int_t)ask->gpus,
		"capacity", capacity_of(ask, share));

	if (size)
		(void)json_object_set_new(request, "selectors", selectors_of(size));
	return request;
}

/* Takes request. If it asks for several GPUs they must be distinct. */
static json_t *spec_of(const struct sl_ask *ask, const char *how, json_t *request)
{
	json_t *devices =
		json_pack("{s[{ssso}]}", "requests", "name", "gpu", how, request);

	if (ask->gpus > 1)
		(void)json_object_set_new(devices, "constraints",
			json_pack("[{s[s]ss}]", "requests", "gpu", "distinctAttribute",
				SL_KUBE_DRIVER "/uuid"));
	return json_pack("{so}", "devices", devices);
}

static json_t *fixed_spec(const struct sl_ask *ask, const struct share *share,
	const struct sl_bounds *bounds, const struct sl_sizes *sizes,
	struct sl_error *note, struct sl_error *err)
{
	if (!keeps_bounds(share, bounds, err))
		return NULL;
	note_room(share, sizes, note);
	return spec_of(ask, "exactly", request_of(ask, share, NULL));
}

struct alternatives {
	size_t count;
	const struct sl_size *size[SL_SIZES_MAX];
	struct share share[SL_SIZES_MAX];
};

/* The sizes that have space for it within the bounds. err: why the last other one has not. */
static void find_alternatives(const struct sl_ask *ask, const struct sl_bounds *bounds,
	const struct sl_sizes *sizes, struct alternatives *out, struct sl_error *err)
{
	for (size_t i = sizes->count; i-- > 0;) {
		const struct sl_size *size = &sizes->of[i];
		struct share share = share_of(ask, bounds, size->own_bytes);

		if (keeps_bounds(&share, bounds, err) && share.limit <= size->own_bytes) {
			out->size[out->count] = size;
			out->share[out->count++] = share;
		}
	}
}

static bool are_same(const struct alternatives *a)
{
	for (size_t i = 1; i < a->count; i++) {
		if (a->share[i].request != a->share[0].request ||
			a->share[i].limit != a->share[0].limit)
			return false;
	}
	return true;
}

static json_t *spec_of_alternatives(const struct sl_ask *ask,
	const struct alternatives *found, const struct sl_sizes *sizes)
{
	json_t *list;

	if (found->count == sizes->count && are_same(found))
		return spec_of(ask, "exactly", request_of(ask, &found->share[0], NULL));
	if (found->count == 1)
		return spec_of(ask, "exactly",
			request_of(ask, &found->share[0], found->size[0]));
	list = json_array();
	for (size_t i = found->count; i-- > 0;) {
		json_t *request = request_of(ask, &found->share[i], found->size[i]);
		char name[64];

		(void)snprintf(name, sizeof(name), "of-%llumi",
			(unsigned long long)(found->size[i]->least_bytes / SL_MIB));
		(void)json_object_set_new(request, "name", json_string(name));
		(void)json_array_append_new(list, request);
	}
	return spec_of(ask, "firstAvailable", list);
}

json_t *sl_claimspec_new(const struct sl_ask *ask, const struct sl_bounds *bounds,
	const struct sl_sizes *sizes, struct sl_error *note, struct sl_error *err)
{
	struct alternatives found = {0};
	struct share share;

	if (!depends_on_size(ask, bounds, sizes)) {
		share = share_of(ask, bounds, UINT64_MAX);
		return fixed_spec(ask, &share, bounds, sizes, note, err);
	}
	if (sizes->count == 0) {
		sl_error_set(err,
			"a part of a GPU is asked for, and no node has published a GPU "
			"yet: wait for one (kubectl get resourceslices), or ask for an "
			"amount (gpu-memory)");
		return NULL;
	}
	find_alternatives(ask, bounds, sizes, &found, err);
	if (found.count) {
		*err = (struct sl_error){0};
		return spec_of_alternatives(ask, &found, sizes);
	}
	if (err->text[0])
		return NULL;
	/* No present GPU has that amount; the default limit follows it. */
	share.request = share.limit = ask->request.value;
	return fixed_spec(ask, &share, bounds, sizes, note, err);
}

/* --- templates ----------------------------------------------------------------------------- */

static bool name_of(const json_t *spec, char name[64])
{
	sl_cleanup(sl_freep) char *text = json_dumps(spec, JSON_COMPACT | JSON_SORT_KEYS);
	unsigned char hash[32];
	int used = snprintf(name, 64, "sluice-");

	if (!text || gnutls_hash_fast(GNUTLS_DIG_SHA256, text, strlen(text), hash) < 0)
		return false;
	for (size_t i = 0; i < NAME_HASH_BYTES; i++)
		used += snprintf(name + used, 64 - (size_t)used, "%02x", hash[i]);
	return true;
}

json_t *sl_claimspec_template(const char *namespace, json_t *spec)
{
	char name[64];

	if (!name_of(spec, name)) {
		json_decref(spec);
		return NULL;
	}
	return json_pack("{sssss{sssss{ss}}s{so}}", "apiVersion", "resource.k8s.io/v1",
		"kind", "ResourceClaimTemplate", "metadata", "name", name, "namespace",
		namespace, "labels", "app.kubernetes.io/managed-by", "sluice", "spec",
		"spec", spec);
}

static bool is_same_amount(const char *one, const char *two)
{
	uint64_t a, b;

	return sl_kube_quantity_parse(one, &a) && sl_kube_quantity_parse(two, &b) &&
	       a == b;
}

/* A spec made here includes the API server's defaults. */
bool sl_claimspec_is_same(const json_t *spec, const json_t *stored)
{
	bool is_same = spec && stored && json_typeof(spec) == json_typeof(stored);
	const char *key;
	json_t *value;

	if (!is_same || json_is_string(spec))
		return is_same && (json_equal(spec, stored) ||
					  is_same_amount(json_string_value(spec),
						  json_string_value(stored)));
	if (!json_is_object(spec) && !json_is_array(spec))
		return json_equal(spec, stored);
	is_same = json_object_size(spec) == json_object_size(stored) &&
		  json_array_size(spec) == json_array_size(stored);
	json_object_foreach((json_t *)spec, key, value)
	{
		is_same = is_same &&
			  sl_claimspec_is_same(value, json_object_get(stored, key));
	}
	for (size_t i = 0; is_same && i < json_array_size(spec); i++)
		is_same = sl_claimspec_is_same(
			json_array_get(spec, i), json_array_get(stored, i));
	return is_same;
}

/* --- claims that users wrote --------------------------------------------------------------- */

/* The next part of a request that asks for a class; NULL at the end. */
static const json_t *part_of(const json_t *request, size_t i)
{
	const json_t *exactly = json_object_get(request, "exactly");

	if (exactly)
		return i == 0 ? exactly : NULL;
	return json_array_get(json_object_get(request, "firstAvailable"), i);
}

static bool is_our_class(const json_t *part)
{
	return strcmp(sl_kube_text_at(part, "deviceClassName", NULL), SL_KUBE_CLASS) == 0;
}

bool sl_claimspec_is_ours(const json_t *spec)
{
	const json_t *requests = sl_kube_at(spec, "devices", "requests", NULL);
	const json_t *request, *part;

	for (size_t i = 0; (request = json_array_get(requests, i)); i++)
		for (size_t k = 0; (part = part_of(request, k)); k++)
			if (is_our_class(part))
				return true;
	return false;
}

/* The amounts of a part; without an amount the whole of the largest GPU. */
static struct share share_of_part(const json_t *part, const struct sl_sizes *sizes)
{
	const json_t *asked = sl_kube_at(part, "capacity", "requests", NULL);
	struct share share = {
		.request = quantity_at(sl_kube_text_at(asked, "memory", NULL)),
		.limit = quantity_at(sl_kube_text_at(asked, "memoryLimit", NULL))};

	if (!json_object_get(asked, "memory"))
		share.request =
			sizes->count ? sizes->of[sizes->count - 1].own_bytes : UINT64_MAX;
	return share;
}

static bool check_compute(const json_t *part, const char *name, struct sl_error *err)
{
	const json_t *asked = sl_kube_at(part, "capacity", "requests", NULL);
	const char *compute = sl_kube_text_at(asked, "compute", NULL);
	const char *limit = sl_kube_text_at(asked, "computeLimit", NULL);
	uint64_t one = 0, most = 0;

	if ((!compute[0] || sl_kube_quantity_parse(compute, &one)) &&
		(!limit[0] || sl_kube_quantity_parse(limit, &most)) &&
		sl_share_compute_fits(one, most))
		return true;
	sl_error_set(err,
		"request %.63s: compute is \"%.20s\" and computeLimit \"%.20s\": write "
		"whole "
		"percents of each GPU's time up to 100, and a computeLimit of at least "
		"compute, or leave it out",
		name, compute, limit);
	return false;
}

static bool check_part(const json_t *part, const char *name,
	const struct sl_bounds *bounds, const struct sl_sizes *sizes,
	struct sl_error *note, struct sl_error *err)
{
	struct share share = share_of_part(part, sizes);
	bool has_memory = sl_kube_at(part, "capacity", "requests", "memory", NULL);
	uint64_t most = sl_min_u64(bounds->max_request, bounds->max_limit);
	char limit[SL_KUBE_QUANTITY_MAX], request[SL_KUBE_QUANTITY_MAX];

	if (!check_compute(part, name, err))
		return false;
	if (has_memory && !share.request) {
		sl_error_set(err,
			"request %.63s: memory is %.40s: write an amount such as 8Gi, or "
			"leave it out for a whole GPU",
			name,
			sl_kube_text_at(part, "capacity", "requests", "memory", NULL));
		return false;
	}
	if (share.limit && share.limit < share.request) {
		if (has_memory)
			sl_error_set(err,
				"request %.63s: memoryLimit %s is below memory %s: give "
				"at least that, or leave memoryLimit out",
				name, sl_kube_quantity(share.limit, limit),
				sl_kube_quantity(share.request, request));
		else
			sl_error_set(err,
				"request %.63s: memoryLimit is given without memory, "
				"which then is the whole GPU: write memory as well",
				name);
		return false;
	}
	if (!has_memory && share.request > most) {
		sl_error_set(err,
			"request %.63s asks for a whole GPU, and namespace %.63s allows "
			"%s (sluice.dev/max-request, max-limit): write memory",
			name, bounds->namespace, sl_kube_quantity(most, request));
		return false;
	}
	share.limit = sl_max_u64(share.limit, share.request);
	if (!keeps_bounds(&share, bounds, err))
		return false;
	if (has_memory || share.request != UINT64_MAX)
		note_room(&share, sizes, note);
	return true;
}

bool sl_claimspec_check(const json_t *spec, const struct sl_bounds *bounds,
	const struct sl_sizes *sizes, struct sl_error *note, struct sl_error *err)
{
	const json_t *requests = sl_kube_at(spec, "devices", "requests", NULL);
	const json_t *request, *part;

	for (size_t i = 0; (request = json_array_get(requests, i)); i++)
		for (size_t k = 0; (part = part_of(request, k)); k++)
			if (is_our_class(part) &&
				!check_part(part, sl_kube_text_at(request, "name", NULL),
					bounds, sizes, note, err))
				return false;
	return true;
}
