/*
 * config - rows in, values out
 *
 * The YAML is loaded as a document rather than as a stream of events: the file is small, and
 * every node then knows its line, which is what a message to the user needs. A value's text is
 * judged by its row's type; libyaml's own guesses at types are not used.
 */
#include "daemon/config.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/amount.h"
#include "base/file.h"
#include "base/log.h"

enum type { PATH, TIME, BYTES, COUNT, MODE, GROUP, LEVEL, GPUS };

struct row {
	const char *key;
	enum type type;
	size_t offset;
	const char *def;
	uint64_t min, max;
	const char *help;
};

static const struct row rows[] = {
#define SL_OPTION(key, TYPE, def, min, max, help) \
	{#key, TYPE, offsetof(struct sl_config, key), def, min, max, help},
#include "daemon/options.def"
#undef SL_OPTION
};

static const char *const type_words[] = {
	[PATH] = "path",
	[TIME] = "time",
	[BYTES] = "bytes",
	[COUNT] = "number",
	[MODE] = "octal mode",
	[GROUP] = "group",
	[LEVEL] = "log level",
	[GPUS] = "list of UUIDs",
};

static const struct row *row_of(const char *key)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		if (strcmp(rows[i].key, key) == 0)
			return &rows[i];
	}
	return NULL;
}

/* --- one value ---------------------------------------------------------------------------- */

static const char *format_value(
	const struct row *row, uint64_t value, char *buf, size_t size)
{
	if (row->type == TIME && value % SL_S == 0)
		(void)snprintf(buf, size, "%" PRIu64 "s", (uint64_t)(value / SL_S));
	else if (row->type == TIME)
		(void)snprintf(buf, size, "%" PRIu64 "ms", (uint64_t)(value / SL_MS));
	else if (row->type == BYTES)
		(void)sl_bytes_format(value, buf, size);
	else
		(void)snprintf(
			buf, size, row->type == MODE ? "%#" PRIo64 : "%" PRIu64, value);
	return buf;
}

static int check_range(
	const struct row *row, const char *text, uint64_t value, struct sl_error *err)
{
	char low[32], high[32];

	if (value >= row->min && value <= row->max)
		return SL_CONFIG_OK;
	sl_error_set(err, "%s: %.64s is out of range; write a %s from %s to %s", row->key,
		text, type_words[row->type],
		format_value(row, row->min, low, sizeof(low)),
		format_value(row, row->max, high, sizeof(high)));
	return SL_CONFIG_BAD;
}

static int parse_number(
	const struct row *row, const char *text, uint64_t *out, struct sl_error *err)
{
	int base = row->type == MODE ? 8 : 10;
	char *end = NULL;

	errno = 0;
	*out = strtoull(text, &end, base);
	if (!isdigit((unsigned char)text[0]) || *end || errno) {
		sl_error_set(err, "%s: '%.64s' is not a %s; write %s", row->key, text,
			type_words[row->type],
			row->type == MODE ? "for example 0660" : "digits only");
		return SL_CONFIG_BAD;
	}
	return check_range(row, text, *out, err);
}

static int parse_bytes(
	const struct row *row, const char *text, uint64_t *out, struct sl_error *err)
{
	struct sl_amount amount = {0};

	if (sl_amount_parse(text, &amount, err) != SL_AMOUNT_OK) {
		sl_error_wrap(err, "%s", row->key);
		return SL_CONFIG_BAD;
	}
	if (amount.kind != SL_AMOUNT_BYTES) {
		sl_error_set(err,
			"%s: '%.64s' is a fraction; write bytes, for example 2GiB",
			row->key, text);
		return SL_CONFIG_BAD;
	}
	*out = amount.value;
	return check_range(row, text, *out, err);
}

static int parse_time(
	const struct row *row, const char *text, uint64_t *out, struct sl_error *err)
{
	if (sl_duration_parse(text, out, err) != SL_AMOUNT_OK) {
		sl_error_wrap(err, "%s", row->key);
		return SL_CONFIG_BAD;
	}
	return check_range(row, text, *out, err);
}

static int parse_group(
	const struct row *row, const char *text, uint32_t *out, struct sl_error *err)
{
	struct group *group;

	*out = SL_CONFIG_GROUP_NONE;
	if (text[0] == '\0')
		return SL_CONFIG_OK;
	group = getgrnam(text);
	if (!group) {
		sl_error_set(err,
			"%s: there is no group '%.64s'; create it with groupadd, or name "
			"another",
			row->key, text);
		return SL_CONFIG_BAD;
	}
	*out = group->gr_gid;
	return SL_CONFIG_OK;
}

static int parse_path(const struct row *row, const char *text, struct sl_config_path *out,
	struct sl_error *err)
{
	if (text[0] && text[0] != '/') {
		sl_error_set(err, "%s: '%.64s' is not an absolute path; begin it with /",
			row->key, text);
		return SL_CONFIG_BAD;
	}
	if (strlen(text) > row->max) {
		sl_error_set(err,
			"%s: the path has %zu bytes, and %" PRIu64
			" are possible; choose a shorter one",
			row->key, strlen(text), row->max);
		return SL_CONFIG_BAD;
	}
	sl_wire_str(out->text, sizeof(out->text), text);
	return SL_CONFIG_OK;
}

static int parse_level(const struct row *row, const char *text,
	struct sl_config_level *out, struct sl_error *err)
{
	static const char *const names[] = {"off", "error", "warning", "info", "debug"};

	for (size_t i = 0; i < SL_ARRAY_LEN(names); i++) {
		if (strcmp(text, names[i]) == 0) {
			sl_wire_str(out->text, sizeof(out->text), text);
			return SL_CONFIG_OK;
		}
	}
	sl_error_set(err,
		"%s: '%.64s' is not a log level; write error, warning, info or debug",
		row->key, text);
	return SL_CONFIG_BAD;
}

static int add_gpu(const struct row *row, const char *text, struct sl_config_gpus *out,
	struct sl_error *err)
{
	uint8_t uuid[SL_WIRE_UUID_BYTES];

	if (!sl_wire_uuid_parse(text, uuid)) {
		sl_error_set(err,
			"%s: '%.64s' is not the UUID of a GPU; write all, or UUIDs as "
			"nvidia-smi "
			"-L prints them",
			row->key, text);
		return SL_CONFIG_BAD;
	}
	for (uint32_t i = 0; i < out->count; i++) {
		if (memcmp(out->uuids[i], uuid, sizeof(uuid)) == 0) {
			sl_error_set(err, "%s: %.64s is listed twice; remove one",
				row->key, text);
			return SL_CONFIG_BAD;
		}
	}
	if (out->count >= row->max) {
		sl_error_set(err, "%s: more than %" PRIu64 " GPUs", row->key, row->max);
		return SL_CONFIG_BAD;
	}
	memcpy(out->uuids[out->count++], uuid, sizeof(uuid));
	return SL_CONFIG_OK;
}

static int parse_gpus(const struct row *row, const char *text, struct sl_config_gpus *out,
	struct sl_error *err)
{
	*out = (struct sl_config_gpus){0};
	if (strcmp(text, "all") == 0) {
		out->all = true;
		return SL_CONFIG_OK;
	}
	return add_gpu(row, text, out, err);
}

static int set_value(struct sl_config *config, const struct row *row, const char *text,
	struct sl_error *err)
{
	void *field = (char *)config + row->offset;
	uint64_t number = 0;
	int r;

	switch (row->type) {
	case PATH: return parse_path(row, text, field, err);
	case TIME: return parse_time(row, text, field, err);
	case BYTES: return parse_bytes(row, text, field, err);
	case GROUP: return parse_group(row, text, field, err);
	case LEVEL: return parse_level(row, text, field, err);
	case GPUS: return parse_gpus(row, text, field, err);
	case COUNT:
	case MODE:
		r = parse_number(row, text, &number, err);
		if (r == SL_CONFIG_OK)
			*(uint32_t *)field = (uint32_t)number;
		return r;
	}
	return SL_CONFIG_BAD;
}

void sl_config_defaults(struct sl_config *config)
{
	struct sl_error err = {0};

	memset(config, 0, sizeof(*config));
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		/* A default out of its own range is a mistake in the table; a unit test and
		 * every start would meet it. */
		if (set_value(config, &rows[i], rows[i].def, &err) != SL_CONFIG_OK) {
			sl_error_log("the option table is wrong: %s", err.text);
			abort();
		}
	}
}

int sl_config_set(struct sl_config *config, const char *key, const char *value,
	struct sl_error *err)
{
	const struct row *row = row_of(key);

	if (!row) {
		sl_error_set(err, "unknown option '%.64s'; did you mean '%s'?", key,
			sl_config_nearest(key));
		return SL_CONFIG_BAD;
	}
	return set_value(config, row, value, err);
}

/* --- the file ----------------------------------------------------------------------------- */

struct document {
	yaml_parser_t parser;
	yaml_document_t document;
	bool parser_open, document_open;
};

static void document_close(struct document *document)
{
	if (document->document_open)
		yaml_document_delete(&document->document);
	if (document->parser_open)
		yaml_parser_delete(&document->parser);
}

/* The text of a scalar without a NUL inside, or NULL. */
static const char *scalar(const yaml_node_t *node)
{
	if (!node || node->type != YAML_SCALAR_NODE)
		return NULL;
	if (strlen((const char *)node->data.scalar.value) != node->data.scalar.length)
		return NULL;
	return (const char *)node->data.scalar.value;
}

static unsigned long line_of(const yaml_node_t *node)
{
	return (unsigned long)node->start_mark.line + 1;
}

static int set_list(struct document *yaml, struct sl_config *config,
	const struct row *row, const yaml_node_t *list, struct sl_error *err)
{
	struct sl_config_gpus *gpus = (void *)((char *)config + row->offset);
	const yaml_node_item_t *item = list->data.sequence.items.start;

	*gpus = (struct sl_config_gpus){0};
	for (; item < list->data.sequence.items.top; item++) {
		const char *text = scalar(yaml_document_get_node(&yaml->document, *item));

		if (add_gpu(row, text ? text : "?", gpus, err) != SL_CONFIG_OK)
			return SL_CONFIG_BAD;
	}
	if (gpus->count > 0)
		return SL_CONFIG_OK;
	sl_error_set(
		err, "%s: the list is empty; write all, or at least one UUID", row->key);
	return SL_CONFIG_BAD;
}

static int set_pair(struct document *yaml, struct sl_config *config,
	const struct row *row, const yaml_node_t *value, struct sl_error *err)
{
	const char *text = scalar(value);

	if (row->type == GPUS && value->type == YAML_SEQUENCE_NODE)
		return set_list(yaml, config, row, value, err);
	if (text)
		return set_value(config, row, text, err);
	sl_error_set(err, "%s: a single value (%s) belongs here, for example %s",
		row->key, type_words[row->type], row->def[0] ? row->def : "\"\"");
	return SL_CONFIG_BAD;
}

static int read_pair(struct document *yaml, struct sl_config *config,
	const yaml_node_pair_t *pair, unsigned long lines[], const char *name,
	struct sl_error *err)
{
	const yaml_node_t *key_node = yaml_document_get_node(&yaml->document, pair->key);
	const yaml_node_t *value = yaml_document_get_node(&yaml->document, pair->value);
	const char *key = scalar(key_node);
	const struct row *row = key ? row_of(key) : NULL;
	unsigned long line = key_node ? line_of(key_node) : 0;

	if (!row || !value) {
		sl_error_set(err, "%s, line %lu: unknown key '%.64s'; did you mean '%s'?",
			name, line, key ? key : "?", sl_config_nearest(key ? key : ""));
		return SL_CONFIG_BAD;
	}
	if (lines[row - rows]) {
		sl_error_set(err,
			"%s, line %lu: '%s' was set in line %lu already; remove one of "
			"the two",
			name, line, row->key, lines[row - rows]);
		return SL_CONFIG_BAD;
	}
	lines[row - rows] = line;
	if (set_pair(yaml, config, row, value, err) == SL_CONFIG_OK)
		return SL_CONFIG_OK;
	sl_error_wrap(err, "%s, line %lu", name, line_of(value));
	return SL_CONFIG_BAD;
}

static int read_root(struct document *yaml, struct sl_config *config, const char *name,
	struct sl_error *err)
{
	yaml_node_t *root = yaml_document_get_root_node(&yaml->document);
	unsigned long lines[SL_ARRAY_LEN(rows)] = {0};
	const char *text = scalar(root);

	/* An empty file, or one of comments only, is a file of defaults. */
	if (!root || (text && text[0] == '\0'))
		return SL_CONFIG_OK;
	if (root->type != YAML_MAPPING_NODE) {
		sl_error_set(err,
			"%s, line %lu: 'key: value' lines belong here; see "
			"sluiced --help-config",
			name, line_of(root));
		return SL_CONFIG_BAD;
	}
	for (yaml_node_pair_t *pair = root->data.mapping.pairs.start;
		pair < root->data.mapping.pairs.top; pair++) {
		int r = read_pair(yaml, config, pair, lines, name, err);

		if (r != SL_CONFIG_OK)
			return r;
	}
	return SL_CONFIG_OK;
}

static int syntax_error(
	const yaml_parser_t *parser, const char *name, struct sl_error *err)
{
	sl_error_set(err, "%s, line %zu: not YAML: %.200s; write 'key: value' lines",
		name, parser->problem_mark.line + 1,
		parser->problem ? parser->problem : "unreadable");
	return SL_CONFIG_BAD;
}

int sl_config_parse(const char *text, size_t size, const char *name,
	struct sl_config *config, struct sl_error *err)
{
	sl_cleanup(document_close) struct document yaml = {0};
	struct sl_config fresh;
	int r;

	if (size > SL_CONFIG_FILE_MAX) {
		sl_error_set(err,
			"%s: a configuration has at most %u bytes, this one %zu", name,
			SL_CONFIG_FILE_MAX, size);
		return SL_CONFIG_BAD;
	}
	if (!yaml_parser_initialize(&yaml.parser)) {
		sl_error_set(err, "%s: no memory to read it", name);
		return SL_CONFIG_BAD;
	}
	yaml.parser_open = true;
	yaml_parser_set_input_string(&yaml.parser, (const unsigned char *)text, size);
	if (!yaml_parser_load(&yaml.parser, &yaml.document))
		return syntax_error(&yaml.parser, name, err);
	yaml.document_open = true;
	sl_config_defaults(&fresh);
	r = read_root(&yaml, &fresh, name, err);
	if (r == SL_CONFIG_OK)
		*config = fresh;
	return r;
}

int sl_config_load(const char *path, struct sl_config *config, struct sl_error *err)
{
	sl_cleanup(sl_freep) char *text = NULL;
	size_t size = 0;
	int r = sl_file_read(path, SL_CONFIG_FILE_MAX, &text, &size);

	if (r < 0) {
		sl_error_set(err,
			"cannot read the configuration %.200s: %s; check --config", path,
			strerror(-r));
		return SL_CONFIG_BAD;
	}
	return sl_config_parse(text, size, path, config, err);
}

/* --- help --------------------------------------------------------------------------------- */

/* Edits (insert, remove, replace) between two words, each cut at 32 letters. */
static unsigned int distance(const char *a, const char *b)
{
	size_t na = strnlen(a, 32), nb = strnlen(b, 32);
	unsigned int line[33];

	for (size_t j = 0; j <= nb; j++)
		line[j] = (unsigned int)j;
	for (size_t i = 1; i <= na; i++) {
		unsigned int diagonal = line[0];

		line[0] = (unsigned int)i;
		for (size_t j = 1; j <= nb; j++) {
			unsigned int up = line[j];
			unsigned int best = diagonal + (a[i - 1] != b[j - 1]);

			if (up + 1 < best)
				best = up + 1;
			if (line[j - 1] + 1 < best)
				best = line[j - 1] + 1;
			diagonal = up;
			line[j] = best;
		}
	}
	return line[nb];
}

const char *sl_config_nearest(const char *key)
{
	const char *best = rows[0].key;
	unsigned int best_distance = UINT_MAX;

	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		unsigned int d = distance(key, rows[i].key);

		if (d < best_distance) {
			best_distance = d;
			best = rows[i].key;
		}
	}
	return best;
}

static void print_range(FILE *out, const struct row *row)
{
	char low[32], high[32];

	if (row->type == TIME || row->type == BYTES || row->type == COUNT ||
		row->type == MODE)
		(void)fprintf(out, ", %s to %s",
			format_value(row, row->min, low, sizeof(low)),
			format_value(row, row->max, high, sizeof(high)));
}

/* mdoc wants each sentence on a line of its own. */
static void print_sentences(FILE *out, const char *text, const char *before)
{
	while (*text) {
		const char *end = strstr(text, ". ");
		size_t length = end ? (size_t)(end - text) + 1 : strlen(text);

		(void)fprintf(out, "%s%.*s\n", before, (int)length, text);
		text += end ? length + 1 : length;
	}
}

void sl_config_help(FILE *out, bool mdoc)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];

		(void)fprintf(out, mdoc ? ".It Cm %s : Ar %s\n" : "%s: %s\n", row->key,
			row->def[0] ? row->def
			: mdoc      ? "\\(dq\\(dq"
				    : "\"\"");
		print_sentences(out, row->help, mdoc ? "" : "\t");
		(void)fprintf(out, mdoc ? ".Pq %s" : "\t(%s", type_words[row->type]);
		print_range(out, row);
		(void)fputs(mdoc ? "\n" : ")\n", out);
	}
}
