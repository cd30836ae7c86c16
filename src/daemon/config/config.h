/*
 * config - the daemon's options: one table (options.def), read from YAML
 *
 * A struct sl_config is a value. Parsing is pure except for GROUP and BOUNDS, which ask the
 * system's databases of users and groups. Times are nanoseconds, sizes bytes. A file with an error
 * changes nothing. One thread at a time.
 */
#ifndef SL_DAEMON_CONFIG_CONFIG_H
#define SL_DAEMON_CONFIG_CONFIG_H

#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "policy/compute/compute.h"
#include "policy/node.h"
#include "policy/placement/score.h"
#include "wire/wire.h"

#define SL_CONFIG_TEXT_MAX       4096
#define SL_CONFIG_GPUS_MAX       32
#define SL_CONFIG_BOUNDS_MAX     64
#define SL_CONFIG_GPU_GROUPS_MAX 16
/* libyaml takes time quadratic in the depth of nesting; a real file has a few hundred bytes. */
#define SL_CONFIG_FILE_MAX   (16u << 10)
#define SL_CONFIG_GROUP_NONE UINT32_MAX
#define SL_CONFIG_WORD       UINT64_MAX

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

enum sl_config_address_kind {
	SL_CONFIG_NOWHERE = 0,
	SL_CONFIG_IPV4,
	SL_CONFIG_IPV6,
	SL_CONFIG_SOCKET, /* text is its path */
	SL_CONFIG_AUTO    /* chosen by the daemon */
};
struct sl_config_address {
	uint32_t kind; /* enum sl_config_address_kind */
	uint32_t port;
	uint8_t host[16]; /* network order; IPv4: the first 4 */
	char text[112];
};

enum sl_config_subject { SL_CONFIG_DEFAULT = 0, SL_CONFIG_USER, SL_CONFIG_OF_GROUP };
struct sl_config_bound {
	uint32_t subject; /* SL_CONFIG_DEFAULT ... */
	uint32_t id;      /* uid or gid */
	uint32_t set;     /* mask of the bounds that are set */
	uint32_t pad;
	struct sl_bounds bounds;
};
struct sl_config_bounds {
	uint32_t count, pad;
	struct sl_config_bound rows[SL_CONFIG_BOUNDS_MAX];
};

/* gpus: numbers, UUIDs or words of models' names, with commas between them. fixed: swap: off. */
struct sl_config_gpu_group {
	char name[64], gpus[512];
	bool fixed;
};
struct sl_config_gpu_groups {
	uint32_t count, pad;
	struct sl_config_gpu_group rows[SL_CONFIG_GPU_GROUPS_MAX];
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
typedef uint32_t sl_option_CHOICE; /* a value of choices.def */
typedef bool sl_option_FLAG;
typedef uint64_t sl_option_POOL;  /* bytes, or SL_CONFIG_WORD */
typedef uint32_t sl_option_SHARE; /* thousandths */
typedef uint32_t sl_option_CHAIN; /* SL_CHAIN of policy/words/chain.h */
typedef struct sl_config_address sl_option_ADDRESS;
typedef struct sl_config_path sl_option_TEXT;
typedef struct sl_config_bounds sl_option_BOUNDS;
typedef struct sl_config_gpu_groups sl_option_GROUPS;

struct sl_config {
#define SL_OPTION(key, TYPE, def, min, max, help) sl_option_##TYPE key;
#include "daemon/config/options.def"
#undef SL_OPTION
};

enum { SL_CONFIG_OK = 0, SL_CONFIG_BAD /* err names place, key and remedy */ };

/* Sets the table's defaults. */
void sl_config_defaults(struct sl_config *config);
/*
 * Reads size bytes of YAML into *config, over the defaults. Errors call the file `name`. *config is
 * untouched on SL_CONFIG_BAD. size may be 0: all defaults; more than SL_CONFIG_FILE_MAX is refused.
 */
SL_MUST_CHECK int sl_config_parse(const char *text, size_t size, const char *name,
	struct sl_config *config, struct sl_error *err);
/* Likewise from a file of at most SL_CONFIG_FILE_MAX bytes. The usual file (sl_paths_config) may be
 * absent: all defaults. */
SL_MUST_CHECK int sl_config_load(
	const char *path, struct sl_config *config, struct sl_error *err);
/* Sets one option from text, as --socket and the defaults do. */
SL_MUST_CHECK int sl_config_set(struct sl_config *config, const char *key,
	const char *value, struct sl_error *err);

/* The known key closest to key in edits. */
const char *sl_config_nearest(const char *key);
/*
 * The bounds of a user with these groups: the user's own row; else, bound by bound, the most
 * generous of its groups' rows; else the default row. free: the user is root or the daemon's own,
 * and only a row of its own binds it. Amounts are compared as on a GPU with shareable_bytes.
 */
struct sl_bounds sl_config_bounds_of(const struct sl_config_bounds *bounds, uint32_t uid,
	bool free, const uint32_t gids[], size_t gid_count, uint64_t shareable_bytes);
/* The word for a value of a CHOICE; "?" if there is none. */
const char *sl_config_choice_word(const char *key, uint32_t value);
/* The text that `sluiced --help-config` prints for a value. Works for every option, for dumps.
 * Returns buf; NULL: no such key. */
const char *sl_config_show(
	const struct sl_config *config, const char *key, char *buf, size_t size);
/* The keys in the order of the table; NULL after the last. */
const char *sl_config_key(size_t index);

enum sl_config_form {
	SL_CONFIG_FOR_PEOPLE = 0,
	SL_CONFIG_FOR_MAN,   /* rows of mdoc, for sluiced.conf(5) */
	SL_CONFIG_FOR_SAMPLE /* a configuration in which every key is a comment */
};
/* Prints the table. */
void sl_config_help(FILE *out, enum sl_config_form form);

#endif
