/*
 * value - one option's value, from text; inside config only
 *
 * A row is a line of options.def. The value goes into the row's field of struct sl_config. On
 * SL_CONFIG_BAD err names the key, the given text, and a right form. Pure except for GROUP and
 * BOUNDS, which ask the system's databases. One thread at a time.
 */
#ifndef SL_DAEMON_CONFIG_VALUE_H
#define SL_DAEMON_CONFIG_VALUE_H

#include "daemon/config/config.h"

enum sl_config_type {
	SL_CONFIG_PATH,
	SL_CONFIG_TIME,
	SL_CONFIG_BYTES,
	SL_CONFIG_COUNT,
	SL_CONFIG_MODE,
	SL_CONFIG_GROUP,
	SL_CONFIG_LEVEL,
	SL_CONFIG_GPUS,
	SL_CONFIG_CHOICE,
	SL_CONFIG_FLAG,
	SL_CONFIG_CHAIN,
	SL_CONFIG_POOL,
	SL_CONFIG_SHARE,
	SL_CONFIG_ADDRESS,
	SL_CONFIG_TEXT,
	SL_CONFIG_BOUNDS,
	SL_CONFIG_GROUPS
};

struct sl_config_row {
	const char *key;
	enum sl_config_type type;
	size_t offset;
	const char *def;
	uint64_t min, max;
	const char *help;
};

/* The name of this type in messages and help: "time", "list of UUIDs". */
const char *sl_config_type_words(const struct sl_config_row *row);
/* A number of the row's type as written in the file; returns buf. 32 bytes suffice. */
const char *sl_config_format(
	const struct sl_config_row *row, uint64_t value, char *buf, size_t size);
/* "fail or stop": the words of a CHOICE; returns buf. */
const char *sl_config_words(const char *key, char *buf, size_t size);

/* Sets the field from a text that holds one value. */
SL_MUST_CHECK int sl_config_value(const struct sl_config_row *row, const char *text,
	struct sl_config *config, struct sl_error *err);

/* A list in the file (GPUS, CHAIN): begin, then add each, then end. */
void sl_config_list_begin(const struct sl_config_row *row, struct sl_config *config);
SL_MUST_CHECK int sl_config_list_add(const struct sl_config_row *row, const char *text,
	struct sl_config *config, struct sl_error *err);
SL_MUST_CHECK int sl_config_list_end(const struct sl_config_row *row,
	const struct sl_config *config, struct sl_error *err);

/* For a mapping of type BOUNDS: call _row for each key ("default", "user NAME", "group NAME"), then
 * _set for each bound of that row. *out stays valid until the next row. */
SL_MUST_CHECK int sl_config_bounds_row(struct sl_config_bounds *bounds,
	const char *subject, struct sl_config_bound **out, struct sl_error *err);
SL_MUST_CHECK int sl_config_bounds_set(struct sl_config_bound *row, const char *key,
	const char *text, struct sl_error *err);

/* Likewise for GROUPS, with _set for each GPU of a list, and _end at last. */
SL_MUST_CHECK int sl_config_group_row(struct sl_config_gpu_groups *groups,
	const char *name, struct sl_config_gpu_group **out, struct sl_error *err);
SL_MUST_CHECK int sl_config_group_set(struct sl_config_gpu_group *row, const char *key,
	const char *text, struct sl_error *err);
SL_MUST_CHECK int sl_config_group_end(
	const struct sl_config_gpu_group *row, struct sl_error *err);

/* The number of a user or group; false: unknown. A name of digits is the number itself, for users
 * that the system does not know (containers). Asks the system's databases. */
SL_MUST_CHECK bool sl_config_find_id(const char *name, bool is_user, uint32_t *out);

#endif
