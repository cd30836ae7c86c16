/*
 * config - the daemon's options: one table (options.def), read from YAML
 *
 * A struct sl_config is a value. Parsing is pure but for GROUP, which asks the system's group
 * database. Times are nanoseconds, sizes bytes. A file is taken whole or not at all. One
 * thread at a time.
 */
#ifndef SL_DAEMON_CONFIG_H
#define SL_DAEMON_CONFIG_H

#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "wire/wire.h"

#define SL_CONFIG_TEXT_MAX 4096
#define SL_CONFIG_GPUS_MAX 32
/* libyaml takes time quadratic in the depth of nesting; a real file has a few hundred bytes. */
#define SL_CONFIG_FILE_MAX   (16u << 10)
#define SL_CONFIG_GROUP_NONE UINT32_MAX

struct sl_config_path {
	char text[SL_CONFIG_TEXT_MAX];
};
struct sl_config_level {
	char text[16];
};
struct sl_config_gpus {
	bool all;
	uint32_t count;
	uint8_t uuids[SL_CONFIG_GPUS_MAX][SL_WIRE_UUID_BYTES];
};

/* C types of the option types. */
typedef struct sl_config_path sl_option_PATH;
typedef sl_ns sl_option_TIME;
typedef uint64_t sl_option_BYTES;
typedef uint32_t sl_option_COUNT;
typedef uint32_t sl_option_MODE;
typedef uint32_t sl_option_GROUP; /* gid, or SL_CONFIG_GROUP_NONE */
typedef struct sl_config_level sl_option_LEVEL;
typedef struct sl_config_gpus sl_option_GPUS;

struct sl_config {
#define SL_OPTION(key, TYPE, def, min, max, help) sl_option_##TYPE key;
#include "daemon/options.def"
#undef SL_OPTION
};

enum { SL_CONFIG_OK = 0, SL_CONFIG_BAD /* err names place, key and remedy */ };

/* The table's defaults. */
void sl_config_defaults(struct sl_config *config);
/*
 * Reads size bytes of YAML into *config, over the defaults. name is what errors call the file.
 * *config is untouched on SL_CONFIG_BAD. size may be 0: all defaults; more than
 * SL_CONFIG_FILE_MAX is refused.
 */
SL_MUST_CHECK int sl_config_parse(const char *text, size_t size, const char *name,
	struct sl_config *config, struct sl_error *err);
/* The same from a file of at most SL_CONFIG_FILE_MAX bytes. */
SL_MUST_CHECK int sl_config_load(
	const char *path, struct sl_config *config, struct sl_error *err);
/* Sets one option from text, as --socket and the defaults do. */
SL_MUST_CHECK int sl_config_set(struct sl_config *config, const char *key,
	const char *value, struct sl_error *err);

/* The known key nearest to key, by edits. */
const char *sl_config_nearest(const char *key);
/* Prints the table for people, or as mdoc rows for sluiced.conf(5). */
void sl_config_help(FILE *out, bool mdoc);

#endif
