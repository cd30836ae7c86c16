/*
 * slice - GPUs in, JSON out
 *
 * Quantities are written in the API server's own form. So the server's answer equals the request,
 * and comparing needs no arithmetic.
 */
#include "cluster/kubernetes/claims/slice.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc.h"
#include "base/text.h"

/* More than all claims of a GPU can ask for together. */
#define LIMIT_CAPACITY_BYTES (1024 * 1024 * SL_GIB)
/* In percent, likewise. */
#define COMPUTE_LIMIT_CAPACITY "1M"
/* The API server requires space for the smallest request and one step. */
#define LEAST_BYTES (2 * SL_MIB)
/* Longest text of an attribute. */
#define TEXT_MAX 64

const char *sl_kube_quantity(uint64_t bytes, char buf[SL_KUBE_QUANTITY_MAX])
{
	static const char *const units[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
	size_t unit = 0;

	for (; bytes && bytes % 1024 == 0; bytes /= 1024)
		unit++;
	(void)snprintf(buf, SL_KUBE_QUANTITY_MAX, "%llu%s", (unsigned long long)bytes,
		units[unit]);
	return buf;
}

const char *sl_kube_device_name(const char *uuid, char buf[SL_KUBE_DEVICE_NAME_MAX])
{
	const char *part = strncasecmp(uuid, "GPU-", 4) == 0 ? uuid + 4 : uuid;
	size_t used = (size_t)snprintf(buf, SL_KUBE_DEVICE_NAME_MAX, "gpu-");
	bool is_fit = *part && part != uuid && strlen(part) <= TEXT_MAX - 5;

	for (; *part && used < SL_KUBE_DEVICE_NAME_MAX - 1; part++) {
		unsigned char c = (unsigned char)*part;
		bool is_plain = c < 0x80 && (isalnum(c) || c == '-');

		is_fit = is_fit && is_plain;
		buf[used++] = is_plain ? (char)tolower(c) : '-';
	}
	buf[used] = '\0';
	if (is_fit && buf[used - 1] != '-')
		return buf;
	used = sl_min_u64(used, SL_KUBE_DEVICE_NAME_MAX - 10);
	(void)snprintf(buf + used, SL_KUBE_DEVICE_NAME_MAX - used, "-%08x",
		sl_crc32(uuid, strlen(uuid)));
	return buf;
}

char *sl_kube_slice_name(const char *node)
{
	char *name = NULL;

	return asprintf(&name, "%s-" SL_KUBE_DRIVER, node) < 0 ? NULL : name;
}

/* --- attributes ---------------------------------------------------------------------------- */

/* Reads one number of a version without leading zeros; returns the text behind it. */
static const char *take_number(const char *text, unsigned long long *out)
{
	char *end = NULL;

	if (!isdigit((unsigned char)*text) || strspn(text, "0123456789") > 18)
		return NULL;
	*out = strtoull(text, &end, 10);
	return end;
}

/* "535.054.03" is no semantic version because of the zeros. It becomes 535.54.3, which sorts
 * correctly. */
static bool make_version(const char *text, char *buf, size_t size)
{
	unsigned long long number[3] = {0};

	for (size_t i = 0; i < SL_ARRAY_LEN(number); i++) {
		text = take_number(text, &number[i]);
		if (!text)
			return false;
		if (!*text && i > 0)
			break;
		if (i < 2 && *text++ != '.')
			return false;
	}
	if (*text)
		return false;
	(void)snprintf(buf, size, "%llu.%llu.%llu", number[0], number[1], number[2]);
	return true;
}

/* Cuts between characters. */
static json_t *short_text(const char *text)
{
	const char *at = text;

	while (*at) {
		const char *next = at;

		(void)sl_text_next(&next);
		if (next - text > TEXT_MAX)
			break;
		at = next;
	}
	return json_pack("{ss%}", "string", text, (size_t)(at - text));
}

static json_t *version_of(const char *text)
{
	char version[64];

	return make_version(text, version, sizeof(version))
		       ? json_pack("{ss}", "version", version)
		       : short_text(text);
}

static json_t *attributes_of(const struct sl_kube_gpu *gpu)
{
	json_t *all = json_pack("{sos{sb}}", "uuid", short_text(gpu->uuid), "swap",
		"bool", gpu->can_swap);

	if (gpu->model && *gpu->model)
		(void)json_object_set_new(all, "model", short_text(gpu->model));
	if (gpu->driver_version && *gpu->driver_version)
		(void)json_object_set_new(
			all, "driverVersion", version_of(gpu->driver_version));
	if (gpu->numa_node >= 0)
		(void)json_object_set_new(
			all, "numaNode", json_pack("{si}", "int", gpu->numa_node));
	return all;
}

/* --- capacity ------------------------------------------------------------------------------ */

static json_t *capacity(const char *value, const char *by_default, const char *least,
	const char *step, const char *most)
{
	return json_pack("{sss{sss{ssssss}}}", "value", value, "requestPolicy", "default",
		by_default, "validRange", "min", least, "step", step, "max", most);
}

/* The product would overflow at 180 PiB, which no GPU has. */
static uint64_t offered_bytes(const struct sl_kube_gpu *gpu, unsigned int factor_pct)
{
	uint64_t bytes = gpu->shareable_bytes / 100 * factor_pct +
			 gpu->shareable_bytes % 100 * factor_pct / 100;

	return bytes - bytes % SL_MIB;
}

static json_t *capacities_of(const struct sl_kube_gpu *gpu, unsigned int factor_pct)
{
	char offered[SL_KUBE_QUANTITY_MAX], own[SL_KUBE_QUANTITY_MAX];
	char endless[SL_KUBE_QUANTITY_MAX];

	(void)sl_kube_quantity(offered_bytes(gpu, factor_pct), offered);
	(void)sl_kube_quantity(gpu->shareable_bytes - gpu->shareable_bytes % SL_MIB, own);
	(void)sl_kube_quantity(LIMIT_CAPACITY_BYTES, endless);
	return json_pack("{sosososo}", "memory",
		capacity(offered, offered, "1Mi", "1Mi", offered), "memoryLimit",
		capacity(endless, "0", "0", "1Mi", own), "compute",
		capacity("100", "0", "0", "1", "100"), "computeLimit",
		capacity(COMPUTE_LIMIT_CAPACITY, "0", "0", "1", "100"));
}

/* --- the slice ----------------------------------------------------------------------------- */

static json_t *device_of(const struct sl_kube_gpu *gpu, unsigned int factor_pct)
{
	char name[SL_KUBE_DEVICE_NAME_MAX];
	json_t *device =
		json_pack("{sssbsoso}", "name", sl_kube_device_name(gpu->uuid, name),
			"allowMultipleAllocations", true, "attributes",
			attributes_of(gpu), "capacity", capacities_of(gpu, factor_pct));

	if (gpu->state != SL_KUBE_GPU_WELL)
		(void)json_object_set_new(device, "taints",
			json_pack("[{ssss}]", "key",
				gpu->state == SL_KUBE_GPU_LOST ? SL_KUBE_TAINT_LOST
							       : SL_KUBE_TAINT_DEGRADED,
				"effect", "NoSchedule"));
	return device;
}

static bool has_device(const json_t *devices, const char *name)
{
	json_t *device;
	size_t i;

	json_array_foreach(devices, i, device)
	{
		if (strcmp(json_string_value(json_object_get(device, "name")), name) == 0)
			return true;
	}
	return false;
}

/* Takes device. */
static int add_device(json_t *devices, json_t *device)
{
	const char *name = json_string_value(json_object_get(device, "name"));
	bool is_second = name && has_device(devices, name);

	if (name && !is_second)
		return json_array_append_new(devices, device) < 0 ? sl_err_origin(-ENOMEM)
								  : 0;
	json_decref(device);
	return sl_err_origin(is_second ? -EEXIST : -EINVAL);
}

int sl_kube_slice_spec(
	json_t **out, const char *node, const struct sl_kube_inventory *inventory)
{
	unsigned int factor_pct = inventory->memory_factor_pct
					  ? inventory->memory_factor_pct
					  : SL_KUBE_FACTOR_ONE_PCT;
	json_t *devices;
	int r = 0;

	*out = NULL;
	if (inventory->gpu_count > SL_KUBE_GPUS_MAX)
		return sl_err_origin(-E2BIG);
	devices = json_array();
	for (size_t i = 0; r == 0 && i < inventory->gpu_count; i++) {
		const struct sl_kube_gpu *gpu = &inventory->gpus[i];

		if (sl_min_u64(gpu->shareable_bytes, offered_bytes(gpu, factor_pct)) >=
			LEAST_BYTES)
			r = add_device(devices, device_of(gpu, factor_pct));
	}
	if (r < 0) {
		json_decref(devices);
		return r;
	}
	*out = json_pack("{sssss{sssisi}so}", "driver", SL_KUBE_DRIVER, "nodeName", node,
		"pool", "name", node, "generation", 1, "resourceSliceCount", 1, "devices",
		devices);
	return *out ? 0 : sl_err_origin(-EINVAL);
}

/* --- comparing ----------------------------------------------------------------------------- */

/* A copy for comparison, without the members that do not count. */
static json_t *bare(const json_t *spec)
{
	json_t *copy = json_deep_copy(spec), *device, *taint;
	size_t i, k;

	(void)json_object_del(json_object_get(copy, "pool"), "generation");
	json_array_foreach(json_object_get(copy, "devices"), i, device)
	{
		json_array_foreach(json_object_get(device, "taints"), k, taint)
		{
			(void)json_object_del(taint, "timeAdded");
		}
	}
	/* The API server omits an empty list. */
	if (json_array_size(json_object_get(copy, "devices")) == 0)
		(void)json_object_del(copy, "devices");
	return copy;
}

bool sl_kube_slice_is_equal(const json_t *a, const json_t *b)
{
	json_t *bare_a = bare(a), *bare_b = bare(b);
	bool is_equal = bare_a && bare_b && json_equal(bare_a, bare_b);

	json_decref(bare_a);
	json_decref(bare_b);
	return is_equal;
}
