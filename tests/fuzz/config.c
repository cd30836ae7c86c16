/*
 * A refused configuration changes nothing and says why. In an accepted one each option is in range,
 * and the configuration is the same when read again. Half of the inputs become the value of a known
 * key: chance alone would never write one.
 */
#include "fuzz.h"

#include "daemon/config/config.h"

#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 4096

static const char *const keys[] = {
#define SL_OPTION(key, TYPE, def, min, max, help) #key,
#include "daemon/config/options.def"
#undef SL_OPTION
};

static bool in_range(uint64_t value, uint64_t min, uint64_t max)
{
	return value >= min && value <= max;
}

static bool is_text(const char *text, size_t size, uint64_t min, uint64_t max)
{
	return memchr(text, '\0', size) && in_range(strlen(text), min, max);
}

#define GOOD_PATH(value, min, max)  is_text((value).text, sizeof((value).text), min, max)
#define GOOD_TEXT(value, min, max)  is_text((value).text, sizeof((value).text), min, max)
#define GOOD_TIME(value, min, max)  in_range(value, min, max)
#define GOOD_BYTES(value, min, max) in_range(value, min, max)
#define GOOD_COUNT(value, min, max) in_range(value, min, max)
#define GOOD_MODE(value, min, max)  in_range(value, min, max)
#define GOOD_GROUP(value, min, max) true
#define GOOD_LEVEL(value, min, max) is_text((value).text, sizeof((value).text), 1, 15)
#define GOOD_GPUS(value, min, max)  ((value).count <= SL_CONFIG_GPUS_MAX)

#define GOOD_CHOICE(value, min, max) ((value) <= 2)
#define GOOD_FLAG(value, min, max)   ((value) == 0 || (value) == 1)
#define GOOD_CHAIN(value, min, max)  is_chain(value)
#define GOOD_POOL(value, min, max) \
	((value) == SL_CONFIG_WORD || in_range(value, min, max))
#define GOOD_SHARE(value, min, max)   in_range(value, min, max)
#define GOOD_ADDRESS(value, min, max) is_address(&(value))
#define GOOD_BOUNDS(value, min, max)  are_bounds(&(value))
#define GOOD_GROUPS(value, min, max)  are_groups(&(value))

#define SAME_PATH(a, b)  (strcmp((a).text, (b).text) == 0)
#define SAME_TIME(a, b)  ((a) == (b))
#define SAME_BYTES(a, b) ((a) == (b))
#define SAME_COUNT(a, b) ((a) == (b))
#define SAME_MODE(a, b)  ((a) == (b))
#define SAME_GROUP(a, b) ((a) == (b))
#define SAME_LEVEL(a, b) (strcmp((a).text, (b).text) == 0)
#define SAME_GPUS(a, b)                                  \
	((a).all == (b).all && (a).count == (b).count && \
		memcmp((a).uuids, (b).uuids, (a).count * sizeof((a).uuids[0])) == 0)

#define SAME_CHOICE(a, b)  ((a) == (b))
#define SAME_FLAG(a, b)    ((a) == (b))
#define SAME_CHAIN(a, b)   ((a) == (b))
#define SAME_POOL(a, b)    ((a) == (b))
#define SAME_SHARE(a, b)   ((a) == (b))
#define SAME_ADDRESS(a, b) (memcmp(&(a), &(b), sizeof(a)) == 0)
#define SAME_TEXT(a, b)    (strcmp((a).text, (b).text) == 0)
#define SAME_BOUNDS(a, b)  (memcmp(&(a), &(b), sizeof(a)) == 0)
#define SAME_GROUPS(a, b)  (memcmp(&(a), &(b), sizeof(a)) == 0)

/* One or more resolvers that exist, none twice. */
static bool is_chain(uint32_t chain)
{
	uint32_t seen = 0;

	if (!chain)
		return false;
	for (; chain; chain >>= 4) {
		uint32_t resolver = chain & 15;

		if (resolver == SL_RESOLVER_NONE || resolver >= SL_RESOLVERS ||
			seen & 1u << resolver)
			return false;
		seen |= 1u << resolver;
	}
	return true;
}

static bool is_address(const struct sl_config_address *address)
{
	bool is_host = address->kind == SL_CONFIG_IPV4 || address->kind == SL_CONFIG_IPV6;

	if (address->kind > SL_CONFIG_AUTO ||
		!is_text(address->text, sizeof(address->text), 0, 107))
		return false;
	return is_host == in_range(address->port, 1, 65535);
}

static bool are_bounds(const struct sl_config_bounds *bounds)
{
	for (uint32_t i = 0; i < bounds->count && i < SL_CONFIG_BOUNDS_MAX; i++) {
		const struct sl_config_bound *row = &bounds->rows[i];

		if (row->subject > SL_CONFIG_OF_GROUP || row->set > 15 ||
			row->bounds.priority > SL_PRIORITY_MAX ||
			row->bounds.priority < -SL_PRIORITY_MAX ||
			row->bounds.request.kind >= SL_AMOUNT_KINDS ||
			row->bounds.limit.kind >= SL_AMOUNT_KINDS)
			return false;
	}
	return bounds->count <= SL_CONFIG_BOUNDS_MAX;
}

static bool are_groups(const struct sl_config_gpu_groups *groups)
{
	for (uint32_t i = 0; i < groups->count && i < SL_CONFIG_GPU_GROUPS_MAX; i++) {
		const struct sl_config_gpu_group *row = &groups->rows[i];

		if (!is_text(row->name, sizeof(row->name), 1, 63) ||
			!is_text(row->gpus, sizeof(row->gpus), 1, 511))
			return false;
	}
	return groups->count <= SL_CONFIG_GPU_GROUPS_MAX;
}

static void check_range(const struct sl_config *config)
{
#define SL_OPTION(key, TYPE, def, min, max, help) \
	if (!GOOD_##TYPE(config->key, min, max))  \
		abort();
#include "daemon/config/options.def"
#undef SL_OPTION
}

static void check_same(const struct sl_config *a, const struct sl_config *b)
{
#define SL_OPTION(key, TYPE, def, min, max, help) \
	if (!SAME_##TYPE(a->key, b->key))         \
		abort();
#include "daemon/config/options.def"
#undef SL_OPTION
}

/* Beginnings of files that chance alone would never write, all for mappings. */
static const char *const starts[] = {"bounds: {default: {max_request: ",
	"bounds:\n  user root: {max_limit: ", "bounds: {group root: {", "bounds: {",
	"gpu_groups: {a: {gpus: [", "gpu_groups: {a: {gpus: 0, swap: "};

/* The input as a file: as it is, as the value of a key, or behind a start. Returns its size. */
static size_t compose(const uint8_t *data, size_t size, char text[TEXT_MAX])
{
	size_t choice = (data[0] >> 1) % (SL_ARRAY_LEN(keys) + SL_ARRAY_LEN(starts));
	size_t prefix = 0;

	if (data[0] & 1 && choice < SL_ARRAY_LEN(keys))
		prefix = (size_t)snprintf(text, TEXT_MAX, "%s: ", keys[choice]);
	else if (data[0] & 1)
		prefix = (size_t)snprintf(
			text, TEXT_MAX, "%s", starts[choice - SL_ARRAY_LEN(keys)]);
	size = sl_min_u64(size - 1, TEXT_MAX - prefix);
	memcpy(text + prefix, data + 1, size);
	return prefix + size;
}

/* One option set as by the command line: a C string, so what stands before the first zero. */
static void try_set(const uint8_t *data, size_t size)
{
	static struct sl_config config;
	struct sl_error err = {{0}};
	char value[256] = "";
	int r;

	sl_config_defaults(&config);
	check_range(&config);
	memcpy(value, data + 1, sl_min_u64(size - 1, sizeof(value) - 1));
	r = sl_config_set(
		&config, keys[(data[0] >> 1) % SL_ARRAY_LEN(keys)], value, &err);
	if (r == SL_CONFIG_OK)
		check_range(&config);
	else if (!err.text[0])
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sl_config config, again, untouched;
	struct sl_error err = {{0}};
	char text[TEXT_MAX];

	if (size < 1)
		return 0;
	try_set(data, size);
	size = compose(data, size, text);
	memset(&config, 0xa5, sizeof(config));
	memset(&untouched, 0xa5, sizeof(untouched));
	if (sl_config_parse(text, size, "fuzz", &config, &err) == SL_CONFIG_BAD) {
		if (!err.text[0] || memcmp(&config, &untouched, sizeof(config)) != 0)
			abort();
		return 0;
	}
	check_range(&config);
	if (sl_config_parse(text, size, "fuzz", &again, &err) != SL_CONFIG_OK)
		abort();
	check_same(&config, &again);
	return 0;
}
