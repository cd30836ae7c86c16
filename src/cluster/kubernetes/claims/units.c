/*
 * units - see the header
 */
#include "cluster/kubernetes/claims/units.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define KEY_PREFIX "m-"

const char *sl_units_id(const char *uuid, uint32_t unit, char buf[SL_UNITS_ID_MAX])
{
	(void)snprintf(buf, SL_UNITS_ID_MAX, "%s-%u", uuid, unit);
	return buf;
}

static struct sl_units_gpu *gpu_of(struct sl_units *units, const char *uuid, size_t size)
{
	struct sl_units_gpu *grown;

	for (size_t i = 0; i < units->gpu_count; i++) {
		const char *known = units->gpus[i].uuid;

		if (strncmp(known, uuid, size) == 0 && !known[size])
			return &units->gpus[i];
	}
	if (units->gpu_count == SL_UNITS_GPUS_MAX)
		return NULL;
	grown = realloc(units->gpus, (units->gpu_count + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	units->gpus = grown;
	grown = &units->gpus[units->gpu_count++];
	memset(grown, 0, sizeof(*grown));
	memcpy(grown->uuid, uuid, size);
	return grown;
}

static void set(struct sl_units_gpu *gpu, uint32_t unit)
{
	gpu->count += !gpu->has[unit];
	gpu->has[unit] = true;
}

bool sl_units_add(struct sl_units *units, const char *id, size_t size)
{
	const char *dash = memrchr(id, '-', size);
	size_t digits = dash ? size - (size_t)(dash - id) - 1 : 0;
	struct sl_units_gpu *gpu;
	uint32_t unit = 0;

	if (digits == 0 || digits > 4 || dash == id || dash - id >= SL_UNITS_UUID_MAX)
		return false;
	for (size_t i = 1; i <= digits; i++) {
		if (!isdigit((unsigned char)dash[i]))
			return false;
		unit = 10 * unit + (uint32_t)(dash[i] - '0');
	}
	/* Each number has only one form. */
	if (unit >= SL_UNITS_MAX || (digits > 1 && dash[1] == '0'))
		return false;
	gpu = gpu_of(units, id, (size_t)(dash - id));
	if (gpu)
		set(gpu, unit);
	return gpu != NULL;
}

void sl_units_fini(struct sl_units *units)
{
	free(units->gpus);
	*units = (struct sl_units){0};
}

uint32_t sl_units_count(const struct sl_units *units)
{
	uint32_t count = 0;

	for (size_t i = 0; i < units->gpu_count; i++)
		count += units->gpus[i].count;
	return count;
}

const struct sl_units_gpu *sl_units_one_gpu(
	const struct sl_units *units, struct sl_error *err)
{
	if (units->gpu_count == 1)
		return &units->gpus[0];
	sl_error_set(err,
		units->gpu_count ? "the units lie on %zu GPUs, and a container's must "
				   "lie on one; ask for less sluice.dev/memory, or start "
				   "the pod again when a GPU has more free"
				 : "there are no units, but %zu GPUs; ask for at least "
				   "sluice.dev/memory: 1",
		units->gpu_count);
	return NULL;
}

const char *sl_units_key(const struct sl_units_gpu *gpu, char buf[SL_UNITS_KEY_MAX])
{
	const char *uuid = strncmp(gpu->uuid, "GPU-", 4) == 0 ? gpu->uuid + 4 : gpu->uuid;
	size_t used = strlen(KEY_PREFIX);
	uint32_t first = 0;

	memcpy(buf, KEY_PREFIX, used);
	for (; *uuid; uuid++) {
		if (isalnum((unsigned char)*uuid))
			buf[used++] = *uuid;
	}
	while (first < SL_UNITS_MAX - 1 && !gpu->has[first])
		first++;
	(void)snprintf(buf + used, SL_UNITS_KEY_MAX - used, "-%u-%u", first, gpu->count);
	return buf;
}

bool sl_units_is_key(const char *key)
{
	return strncmp(key, KEY_PREFIX, strlen(KEY_PREFIX)) == 0;
}

static const struct sl_units_gpu *find(const struct sl_units *units, const char *uuid)
{
	for (size_t i = 0; i < units->gpu_count; i++) {
		if (strcmp(units->gpus[i].uuid, uuid) == 0)
			return &units->gpus[i];
	}
	return NULL;
}

/* The GPU with the most available units that has all units of must. */
static const struct sl_units_gpu *roomiest(
	const struct sl_units *available, const struct sl_units *must)
{
	const struct sl_units_gpu *best = NULL;

	for (size_t i = 0; i < available->gpu_count; i++) {
		const struct sl_units_gpu *gpu = &available->gpus[i];

		if (must->gpu_count && strcmp(must->gpus[0].uuid, gpu->uuid) != 0)
			continue;
		if (!best || gpu->count > best->count)
			best = gpu;
	}
	return best;
}

int sl_units_choose(const struct sl_units *available, const struct sl_units *must,
	uint32_t count, struct sl_units *out, struct sl_error *err)
{
	const struct sl_units_gpu *gpu = roomiest(available, must);
	const struct sl_units_gpu *first =
		gpu && must->gpu_count ? find(must, gpu->uuid) : NULL;
	struct sl_units_gpu *chosen;

	*out = (struct sl_units){0};
	if (!gpu || gpu->count < count || must->gpu_count > 1) {
		sl_error_set(err,
			"no GPU of this node has %u units of sluice.dev/memory free, of "
			"%llu MiB each: %u at most, and a container's must lie on one "
			"GPU; ask for fewer, or wait until pods end",
			count, (unsigned long long)(SL_UNIT_BYTES / SL_MIB),
			gpu ? gpu->count : 0);
		return sl_err_origin(-ENOSPC);
	}
	chosen = gpu_of(out, gpu->uuid, strlen(gpu->uuid));
	if (!chosen)
		return sl_err_origin(-ENOMEM);
	for (uint32_t i = 0; first && i < SL_UNITS_MAX; i++) {
		if (first->has[i])
			set(chosen, i);
	}
	for (uint32_t i = 0; i < SL_UNITS_MAX && chosen->count < count; i++) {
		if (gpu->has[i])
			set(chosen, i);
	}
	return 0;
}
