/*
 * load - rows in, values out
 *
 * The YAML is loaded as a document, not as a stream of events: the file is small, and every node
 * then knows its line, which messages need.
 */
#include "daemon/config/config.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/file.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/paths.h"
#include "daemon/config/value.h"

static const struct sl_config_row rows[] = {
#define SL_OPTION(key, TYPE, def, min, max, help) \
	{#key, SL_CONFIG_##TYPE, offsetof(struct sl_config, key), def, min, max, help},
#include "daemon/config/options.def"
#undef SL_OPTION
};

static const struct sl_config_row *row_of(const char *key)
{
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		if (strcmp(rows[i].key, key) == 0)
			return &rows[i];
	}
	return NULL;
}

const char *sl_config_key(size_t index)
{
	return index < SL_ARRAY_LEN(rows) ? rows[index].key : NULL;
}

void sl_config_defaults(struct sl_config *config)
{
	struct sl_error err = {0};

	memset(config, 0, sizeof(*config));
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		/* A default outside its own range is a mistake in the table, which every start
		 * would find. */
		if (sl_config_value(&rows[i], rows[i].def, config, &err) !=
			SL_CONFIG_OK) {
			sl_error_log("the option table is wrong: %s", err.text);
			abort();
		}
	}
}

int sl_config_set(struct sl_config *config, const char *key, const char *value,
	struct sl_error *err)
{
	const struct sl_config_row *row = row_of(key);

	if (!row) {
		sl_error_set(err, "unknown option '%.64s'; did you mean '%s'?", key,
			sl_config_nearest(key));
		return SL_CONFIG_BAD;
	}
	return sl_config_value(row, value, config, err);
}

/* --- the file ----------------------------------------------------------------------------- */

struct document {
	yaml_parser_t parser;
	yaml_document_t document;
	bool parser_open, document_open;
	unsigned long line; /* of the latest mistake */
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
	const struct sl_config_row *row, const yaml_node_t *list, struct sl_error *err)
{
	const yaml_node_item_t *item = list->data.sequence.items.start;

	sl_config_list_begin(row, config);
	for (; item < list->data.sequence.items.top; item++) {
		const yaml_node_t *node = yaml_document_get_node(&yaml->document, *item);
		const char *text = scalar(node);

		if (sl_config_list_add(row, text ? text : "?", config, err) !=
			SL_CONFIG_OK) {
			yaml->line = node ? line_of(node) : 0;
			return SL_CONFIG_BAD;
		}
	}
	return sl_config_list_end(row, config, err);
}

/* The row with that name of bounds or gpu_groups, empty; NULL: err. */
static void *new_row(
	struct sl_config *config, bool is_bounds, const char *name, struct sl_error *err)
{
	struct sl_config_bound *bound = NULL;
	struct sl_config_gpu_group *group = NULL;

	if (is_bounds)
		return sl_config_bounds_row(&config->bounds, name, &bound, err) ==
				       SL_CONFIG_OK
			       ? bound
			       : NULL;
	return sl_config_group_row(&config->gpu_groups, name, &group, err) == SL_CONFIG_OK
		       ? group
		       : NULL;
}

static int set_in_row(void *row, bool is_bounds, const char *key, const char *text,
	struct sl_error *err)
{
	key = key ? key : "?";
	text = text ? text : "?";
	return is_bounds ? sl_config_bounds_set(row, key, text, err)
			 : sl_config_group_set(row, key, text, err);
}

/* The values of one row; a list of GPUs counts one by one. */
static int fill_row(struct document *yaml, void *row, bool is_bounds,
	const yaml_node_t *mapping, struct sl_error *err)
{
	yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
	int r = SL_CONFIG_OK;

	for (; pair < mapping->data.mapping.pairs.top && r == SL_CONFIG_OK; pair++) {
		const yaml_node_t *key =
			yaml_document_get_node(&yaml->document, pair->key);
		const yaml_node_t *value =
			yaml_document_get_node(&yaml->document, pair->value);
		const yaml_node_item_t *item;

		yaml->line = key ? line_of(key) : 0;
		if (is_bounds || !value || value->type != YAML_SEQUENCE_NODE) {
			r = set_in_row(row, is_bounds, scalar(key), scalar(value), err);
			continue;
		}
		item = value->data.sequence.items.start;
		for (; item < value->data.sequence.items.top && r == SL_CONFIG_OK; item++)
			r = set_in_row(row, false, scalar(key),
				scalar(yaml_document_get_node(&yaml->document, *item)),
				err);
	}
	return is_bounds || r != SL_CONFIG_OK ? r : sl_config_group_end(row, err);
}

static int set_rows(struct document *yaml, struct sl_config *config, bool is_bounds,
	const yaml_node_t *mapping, struct sl_error *err)
{
	yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;

	for (; pair < mapping->data.mapping.pairs.top; pair++) {
		const yaml_node_t *key =
			yaml_document_get_node(&yaml->document, pair->key);
		const yaml_node_t *value =
			yaml_document_get_node(&yaml->document, pair->value);
		const char *name = scalar(key);
		void *row;

		yaml->line = key ? line_of(key) : 0;
		row = new_row(config, is_bounds, name ? name : "?", err);
		if (!row)
			return SL_CONFIG_BAD;
		if (!value || value->type != YAML_MAPPING_NODE) {
			sl_error_set(err,
				"%s: a mapping belongs behind '%.64s', for example %s",
				is_bounds ? "bounds" : "gpu_groups", name,
				is_bounds ? "{max_request: 0.5}" : "{gpus: [0, 1]}");
			return SL_CONFIG_BAD;
		}
		if (fill_row(yaml, row, is_bounds, value, err) != SL_CONFIG_OK)
			return SL_CONFIG_BAD;
	}
	return SL_CONFIG_OK;
}

static int set_pair(struct document *yaml, struct sl_config *config,
	const struct sl_config_row *row, const yaml_node_t *value, struct sl_error *err)
{
	const char *text = scalar(value);

	bool is_list = row->type == SL_CONFIG_GPUS || row->type == SL_CONFIG_CHAIN;
	bool is_mapping = row->type == SL_CONFIG_BOUNDS || row->type == SL_CONFIG_GROUPS;

	yaml->line = line_of(value);
	if (is_list && value->type == YAML_SEQUENCE_NODE)
		return set_list(yaml, config, row, value, err);
	if (is_mapping && value->type == YAML_MAPPING_NODE)
		return sl_config_value(row, "", config, err) == SL_CONFIG_OK
			       ? set_rows(yaml, config, row->type == SL_CONFIG_BOUNDS,
					 value, err)
			       : SL_CONFIG_BAD;
	if (text)
		return sl_config_value(row, text, config, err);
	sl_error_set(err, "%s: a single value (%s) belongs here, for example %s",
		row->key, sl_config_type_words(row), row->def[0] ? row->def : "\"\"");
	return SL_CONFIG_BAD;
}

static int read_pair(struct document *yaml, struct sl_config *config,
	const yaml_node_pair_t *pair, unsigned long lines[], const char *name,
	struct sl_error *err)
{
	const yaml_node_t *key_node = yaml_document_get_node(&yaml->document, pair->key);
	const yaml_node_t *value = yaml_document_get_node(&yaml->document, pair->value);
	const char *key = scalar(key_node);
	const struct sl_config_row *row = key ? row_of(key) : NULL;
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
	sl_error_wrap(err, "%s, line %lu", name, yaml->line);
	return SL_CONFIG_BAD;
}

static int read_root(struct document *yaml, struct sl_config *config, const char *name,
	struct sl_error *err)
{
	yaml_node_t *root = yaml_document_get_root_node(&yaml->document);
	unsigned long lines[SL_ARRAY_LEN(rows)] = {0};
	const char *text = scalar(root);

	/* An empty file, or one with only comments, means all defaults. */
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
	char usual[SL_PATH_MAX];
	int r = sl_file_read(path, SL_CONFIG_FILE_MAX, &text, &size);

	/* HOME may belong to another user: such a file is not our configuration. */
	if ((r == -ENOENT || r == -EACCES) &&
		sl_paths_config(usual, sizeof(usual), err) == SL_PATHS_OK &&
		strcmp(path, usual) == 0)
		return sl_config_parse("", 0, path, config, err);
	if (r < 0) {
		sl_error_set(err,
			"cannot read the configuration %.200s: %s; check --config", path,
			strerror(-r));
		return SL_CONFIG_BAD;
	}
	return sl_config_parse(text, size, path, config, err);
}

/* --- help --------------------------------------------------------------------------------- */

const char *sl_config_nearest(const char *key)
{
	struct sl_nearest near = sl_nearest_to(key);

	near.best = rows[0].key;
	near.distance = UINT_MAX;
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++)
		sl_nearest_offer(&near, rows[i].key);
	return near.best;
}

static void print_range(FILE *out, const struct sl_config_row *row)
{
	char low[32], high[32], words[128];

	if (row->type == SL_CONFIG_CHOICE)
		(void)fprintf(
			out, ": %s", sl_config_words(row->key, words, sizeof(words)));
	if (row->type == SL_CONFIG_TIME || row->type == SL_CONFIG_BYTES ||
		row->type == SL_CONFIG_COUNT || row->type == SL_CONFIG_MODE ||
		row->type == SL_CONFIG_POOL || row->type == SL_CONFIG_SHARE)
		(void)fprintf(out, ", %s to %s",
			sl_config_format(row, row->min, low, sizeof(low)),
			sl_config_format(row, row->max, high, sizeof(high)));
}

/* mdoc wants each sentence on its own line. */
static void print_sentences(FILE *out, const char *text, const char *before)
{
	while (*text) {
		const char *end = strstr(text, ". ");
		size_t length = end ? (size_t)(end - text) + 1 : strlen(text);

		(void)fprintf(out, "%s%.*s\n", before, (int)length, text);
		text += end ? length + 1 : length;
	}
}

/* Wraps comments to the width of a terminal. */
static void print_comment(FILE *out, const char *text)
{
	size_t column = 1;

	(void)fputc('#', out);
	for (size_t length; *text; text += length, text += strspn(text, " ")) {
		length = strcspn(text, " ");
		if (column > 1 && column + 1 + length > 78) {
			(void)fputs("\n#", out);
			column = 1;
		}
		(void)fprintf(out, " %.*s", (int)length, text);
		column += 1 + length;
	}
	(void)fputc('\n', out);
}

static void print_sample(FILE *out)
{
	(void)fputs("# sluiced.conf - each key with its default; sluiced.conf(5) has the "
		    "ranges.\n# `sluiced --check` says what is wrong with it; SIGHUP "
		    "has it read anew.\n",
		out);
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		(void)fputc('\n', out);
		print_comment(out, rows[i].help);
		(void)fprintf(out, "#%s: %s\n", rows[i].key,
			rows[i].def[0] ? rows[i].def : "\"\"");
	}
}

void sl_config_help(FILE *out, enum sl_config_form form)
{
	bool mdoc = form == SL_CONFIG_FOR_MAN;

	if (form == SL_CONFIG_FOR_SAMPLE) {
		print_sample(out);
		return;
	}
	for (size_t i = 0; i < SL_ARRAY_LEN(rows); i++) {
		const struct sl_config_row *row = &rows[i];

		(void)fprintf(out, mdoc ? ".It Cm %s : Ar %s\n" : "%s: %s\n", row->key,
			row->def[0] ? row->def
			: mdoc      ? "\\(dq\\(dq"
				    : "\"\"");
		print_sentences(out, row->help, mdoc ? "" : "\t");
		(void)fprintf(out, mdoc ? ".Pq %s" : "\t(%s", sl_config_type_words(row));
		print_range(out, row);
		(void)fputs(mdoc ? "\n" : ")\n", out);
	}
}

/* --- values as text ------------------------------------------------------------------------ */

static const char *show_gpus(const struct sl_config_gpus *gpus, char *buf, size_t size)
{
	size_t used = 0;

	if (gpus->all)
		return "all";
	buf[0] = '\0';
	for (uint32_t i = 0; i < gpus->count && used + 42 < size; i++) {
		char uuid[41];

		sl_wire_uuid_format(gpus->uuids[i], uuid);
		used += (size_t)snprintf(
			buf + used, size - used, "%s%s", i ? " " : "", uuid);
	}
	return buf;
}

const char *sl_config_show(
	const struct sl_config *config, const char *key, char *buf, size_t size)
{
	const struct sl_config_row *row = row_of(key);
	const void *field;

	if (!row)
		return NULL;
	field = (const char *)config + row->offset;
	switch (row->type) {
	case SL_CONFIG_TEXT:
	case SL_CONFIG_PATH: return ((const struct sl_config_path *)field)->text;
	case SL_CONFIG_LEVEL: return ((const struct sl_config_level *)field)->text;
	case SL_CONFIG_ADDRESS: return ((const struct sl_config_address *)field)->text;
	case SL_CONFIG_GPUS: return show_gpus(field, buf, size);
	case SL_CONFIG_CHOICE:
		return sl_config_choice_word(key, *(const uint32_t *)field);
	case SL_CONFIG_FLAG: return *(const bool *)field ? "yes" : "no";
	case SL_CONFIG_CHAIN: return sl_chain_format(*(const uint32_t *)field, buf, size);
	case SL_CONFIG_TIME:
	case SL_CONFIG_BYTES:
	case SL_CONFIG_POOL:
		return sl_config_format(row, *(const uint64_t *)field, buf, size);
	case SL_CONFIG_COUNT:
	case SL_CONFIG_MODE:
	case SL_CONFIG_SHARE:
		return sl_config_format(row, *(const uint32_t *)field, buf, size);
	case SL_CONFIG_GROUP:
		if (*(const uint32_t *)field == SL_CONFIG_GROUP_NONE)
			return "";
		(void)snprintf(buf, size, "%u", *(const uint32_t *)field);
		return buf;
	case SL_CONFIG_BOUNDS:
		(void)snprintf(buf, size, "%u rows",
			((const struct sl_config_bounds *)field)->count);
		return buf;
	case SL_CONFIG_GROUPS:
		(void)snprintf(buf, size, "%u groups",
			((const struct sl_config_gpu_groups *)field)->count);
		return buf;
	}
	return "?";
}
