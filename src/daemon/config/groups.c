/*
 * groups - GPUs with a name of their own, and whether they are swapped
 *
 *	gpu_groups:
 *	  inference: {gpus: [0, GPU-6e1a2c9b-3f44-4b7e-9d55-0a1b2c3d4e5f], swap: off}
 *	  training: {gpus: h100}
 *
 * What a row names is compared with a GPU when that is found (gpu/groups.c).
 */
#include "daemon/config/value.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

int sl_config_group_row(struct sl_config_gpu_groups *groups, const char *name,
	struct sl_config_gpu_group **out, struct sl_error *err)
{
	if (!name[0] || name[strcspn(name, " \t,")] ||
		strlen(name) >= sizeof((*out)->name)) {
		sl_error_set(err,
			"gpu_groups: '%.64s' is no name; write 1 to 63 bytes without "
			"blanks and commas",
			name);
		return SL_CONFIG_BAD;
	}
	for (uint32_t i = 0; i < groups->count; i++) {
		if (strcmp(groups->rows[i].name, name) == 0) {
			sl_error_set(
				err, "gpu_groups: %.64s comes twice; remove one", name);
			return SL_CONFIG_BAD;
		}
	}
	if (groups->count == SL_CONFIG_GPU_GROUPS_MAX) {
		sl_error_set(err, "gpu_groups: more than %d groups; join some",
			SL_CONFIG_GPU_GROUPS_MAX);
		return SL_CONFIG_BAD;
	}
	*out = &groups->rows[groups->count++];
	sl_wire_str((*out)->name, sizeof((*out)->name), name);
	return SL_CONFIG_OK;
}

static int add_gpu(
	struct sl_config_gpu_group *row, const char *text, struct sl_error *err)
{
	size_t used = strlen(row->gpus), length = strlen(text);

	if (!text[strcspn(text, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRST"
				"UVWXYZ")]) {
		sl_error_set(err,
			"gpu_groups: %s: gpus: '%.64s' names no GPU; write its number, "
			"its UUID or words of its model's name",
			row->name, text);
		return SL_CONFIG_BAD;
	}
	if (used + length + 2 > sizeof(row->gpus)) {
		sl_error_set(err,
			"gpu_groups: %s: gpus: more than %zu bytes; name a model",
			row->name, sizeof(row->gpus) - 1);
		return SL_CONFIG_BAD;
	}
	(void)snprintf(row->gpus + used, sizeof(row->gpus) - used, "%s%s",
		used ? "," : "", text);
	return SL_CONFIG_OK;
}

int sl_config_group_set(struct sl_config_gpu_group *row, const char *key,
	const char *text, struct sl_error *err)
{
	bool off = strcmp(text, "off") == 0 || strcmp(text, "no") == 0 ||
		   strcmp(text, "false") == 0;
	bool on = strcmp(text, "on") == 0 || strcmp(text, "yes") == 0 ||
		  strcmp(text, "true") == 0;

	if (strcmp(key, "gpus") == 0)
		return add_gpu(row, text, err);
	row->fixed = off;
	if (strcmp(key, "swap") == 0 && (on || off))
		return SL_CONFIG_OK;
	if (strcmp(key, "swap") == 0)
		sl_error_set(err, "gpu_groups: %s: swap: '%.64s' is neither on nor off",
			row->name, text);
	else
		sl_error_set(err,
			"gpu_groups: %s: unknown key '%.64s'; there are gpus and swap",
			row->name, key);
	return SL_CONFIG_BAD;
}

int sl_config_group_end(const struct sl_config_gpu_group *row, struct sl_error *err)
{
	if (row->gpus[0])
		return SL_CONFIG_OK;
	sl_error_set(err,
		"gpu_groups: %s has no GPUs; write {gpus: [0, 1]}, with numbers, UUIDs "
		"or "
		"words of models' names",
		row->name);
	return SL_CONFIG_BAD;
}
