#include "daemon/gpu/groups.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

/* Does the model's name have that word, in any case? */
static bool has_word(const char *model, const char *word, size_t length)
{
	while (*model) {
		size_t here = 0;

		while (isalnum((unsigned char)model[here]))
			here++;
		if (here == length && strncasecmp(model, word, length) == 0)
			return true;
		model += here ? here : 1;
	}
	return false;
}

bool sl_groups_is_model(const char *model, const char *words, size_t length)
{
	bool any = false;

	for (size_t at = 0; at < length;) {
		size_t word = 0;

		while (at + word < length && isalnum((unsigned char)words[at + word]))
			word++;
		if (word && !has_word(model, words + at, word))
			return false;
		any |= word > 0;
		at += word ? word : 1;
	}
	return any;
}

/* One entry of gpus: a number, a UUID, or words of the model's name. */
static bool is_named(const struct sl_gpu *gpu, const char *entry, size_t length)
{
	uint8_t uuid[SL_WIRE_UUID_BYTES];
	char text[64] = "";

	if (length >= sizeof(text))
		return false;
	memcpy(text, entry, length);
	if (strspn(text, "0123456789") == length)
		return strtoul(text, NULL, 10) == gpu->rank;
	if (sl_wire_uuid_parse(text, uuid))
		return memcmp(uuid, gpu->uuid, sizeof(uuid)) == 0;
	return sl_groups_is_model(gpu->name, text, length);
}

static bool has(const struct sl_config_gpu_group *group, const struct sl_gpu *gpu)
{
	for (const char *at = group->gpus; *at;) {
		size_t length = strcspn(at, ",");

		if (is_named(gpu, at, length))
			return true;
		at += length + (at[length] == ',');
	}
	return false;
}

void sl_groups_join(struct sl_daemon *daemon, struct sl_gpu *gpu)
{
	const struct sl_config_gpu_groups *groups = &daemon->config.gpu_groups;

	for (uint32_t i = groups->count; i-- > 0;)
		gpu->group = has(&groups->rows[i], gpu) ? i + 1 : gpu->group;
	if (gpu->group)
		sl_info("GPU %u belongs to the group %s%s",
			(uint32_t)(gpu - daemon->gpus), sl_groups_name(daemon, gpu),
			groups->rows[gpu->group - 1].fixed ? ", free of swapping" : "");
}

const char *sl_groups_name(const struct sl_daemon *daemon, const struct sl_gpu *gpu)
{
	return gpu->group ? daemon->config.gpu_groups.rows[gpu->group - 1].name : "";
}

uint32_t sl_groups_fixed(const struct sl_daemon *daemon, uint32_t gpus)
{
	uint32_t fixed = 0;

	for (uint32_t left = gpus; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(left);
		uint32_t group = daemon->gpus[gpu].group;

		if (group && daemon->config.gpu_groups.rows[group - 1].fixed)
			fixed |= 1u << gpu;
	}
	return fixed;
}
