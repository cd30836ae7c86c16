/*
 * file - YAML in, rows out
 *
 * The text is read twice. The first pass is a stream of events. It refuses aliases and deep
 * nesting: libyaml takes time quadratic in the depth, and a file of projects needs four levels. The
 * second pass loads a document, whose nodes know their lines.
 */
#include "daemon/projects/projects.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/file.h"
#include "daemon/projects/value.h"

#define LEVELS_MOST 8

struct reader {
	const char *name; /* of the file */
	struct sl_projects *set;
	struct sl_error *err;
	yaml_parser_t parser;
	yaml_document_t document;
	bool parser_open, document_open;
};

static void reader_close(struct reader *reader)
{
	if (reader->document_open)
		yaml_document_delete(&reader->document);
	if (reader->parser_open)
		yaml_parser_delete(&reader->parser);
	reader->document_open = reader->parser_open = false;
}

static bool reader_open(struct reader *reader, const char *text, size_t size)
{
	reader->parser_open = yaml_parser_initialize(&reader->parser);
	if (!reader->parser_open) {
		sl_error_set(reader->err, "%s: no memory to read it", reader->name);
		return false;
	}
	yaml_parser_set_input_string(&reader->parser, (const unsigned char *)text, size);
	return true;
}

static int not_yaml(struct reader *reader)
{
	const yaml_parser_t *parser = &reader->parser;
	unsigned long line = parser->problem_mark.line + 1;

	if (parser->error == YAML_READER_ERROR)
		sl_error_set(reader->err,
			"%s, byte %zu: not YAML: %.200s; write it in UTF-8", reader->name,
			parser->problem_offset,
			parser->problem ? parser->problem : "unreadable");
	else
		sl_error_set(reader->err,
			"%s, line %lu: not YAML: %.200s; look for a missing quote, "
			"bracket or "
			"colon",
			reader->name, line,
			parser->problem ? parser->problem : "unreadable");
	return SL_PROJECTS_BAD;
}

static SL_PRINTF(3, 4) int bad(
	struct reader *reader, unsigned long line, const char *format, ...)
{
	char text[SL_ERROR_TEXT_MAX];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	sl_error_set(reader->err, "%s, line %lu: %s", reader->name, line, text);
	return SL_PROJECTS_BAD;
}

/* Progress of look_through. */
struct look {
	int levels, documents;
	bool done;
};

static int look_at_event(struct reader *reader, struct look *look)
{
	yaml_event_t event;
	int r = SL_PROJECTS_OK;

	if (!yaml_parser_parse(&reader->parser, &event))
		return not_yaml(reader);
	if (event.type == YAML_MAPPING_START_EVENT ||
		event.type == YAML_SEQUENCE_START_EVENT)
		look->levels++;
	if (event.type == YAML_MAPPING_END_EVENT || event.type == YAML_SEQUENCE_END_EVENT)
		look->levels--;
	if (event.type == YAML_DOCUMENT_START_EVENT && ++look->documents > 1)
		r = bad(reader, event.start_mark.line + 1,
			"a second document begins here; write all projects into one");
	if (event.type == YAML_ALIAS_EVENT)
		r = bad(reader, event.start_mark.line + 1,
			"aliases (*name) are not understood; write it out");
	if (look->levels > LEVELS_MOST)
		r = bad(reader, event.start_mark.line + 1,
			"nested too deep; projects stand side by side, with parent: "
			"NAME");
	look->done = event.type == YAML_STREAM_END_EVENT;
	yaml_event_delete(&event);
	return r;
}

static int look_through(struct reader *reader, const char *text, size_t size)
{
	struct look look = {0};
	int r = SL_PROJECTS_OK;

	if (!reader_open(reader, text, size))
		return SL_PROJECTS_BAD;
	while (!look.done && r == SL_PROJECTS_OK)
		r = look_at_event(reader, &look);
	reader_close(reader);
	return r;
}

/* --- Nodes. --- */

static const yaml_node_t *node_of(struct reader *reader, int number)
{
	return yaml_document_get_node(&reader->document, number);
}

static unsigned long line_of(const yaml_node_t *node)
{
	return node ? (unsigned long)node->start_mark.line + 1 : 0;
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

/* "gpu:" without a value is an empty mapping. */
static bool is_nothing(const yaml_node_t *node)
{
	const char *text = scalar(node);

	return text && !text[0] && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

/* The line of an earlier occurrence of this key in the mapping; 0: none. */
static unsigned long line_before(
	struct reader *reader, const yaml_node_t *mapping, const yaml_node_pair_t *pair)
{
	const char *key = scalar(node_of(reader, pair->key));

	for (const yaml_node_pair_t *at = mapping->data.mapping.pairs.start; at < pair;
		at++) {
		const char *other = scalar(node_of(reader, at->key));

		if (key && other && strcmp(key, other) == 0)
			return line_of(node_of(reader, at->key));
	}
	return 0;
}

/* Puts the place before an error about a field. */
static int blame(struct reader *reader, unsigned long line, const char *project,
	const struct sl_error *said)
{
	return bad(reader, line, "project %s: %s", project, said->text);
}

static int read_resource(struct reader *reader, struct sl_project_row *row,
	const struct sl_project_field *field, const yaml_node_t *mapping)
{
	const yaml_node_pair_t *pair;

	if (is_nothing(mapping))
		return SL_PROJECTS_OK;
	if (mapping->type != YAML_MAPPING_NODE)
		return bad(reader, line_of(mapping),
			"project %s: %s: a mapping belongs here; write for example "
			"{quota: %s}",
			row->name, field->key,
			field->resource == SL_RES_MEMORY ? "64GiB" : "2");
	for (pair = mapping->data.mapping.pairs.start;
		pair < mapping->data.mapping.pairs.top; pair++) {
		const yaml_node_t *key = node_of(reader, pair->key);
		const yaml_node_t *value = node_of(reader, pair->value);
		const char *word = scalar(key), *text = scalar(value);
		unsigned long before = line_before(reader, mapping, pair);
		struct sl_error said = {0};

		if (before)
			return bad(reader, line_of(key),
				"project %s: %s.%.64s was set in line %lu already; "
				"remove one of "
				"the two",
				row->name, field->key, word, before);
		if (sl_project_set_amount(field, word ? word : "?", text ? text : "?",
			    row, &said) != SL_PROJECTS_OK)
			return blame(reader, line_of(value), row->name, &said);
	}
	return SL_PROJECTS_OK;
}

static int read_list(struct reader *reader, struct sl_project_row *row,
	const struct sl_project_field *field, const yaml_node_t *list)
{
	if (is_nothing(list))
		return SL_PROJECTS_OK;
	if (list->type != YAML_SEQUENCE_NODE)
		return bad(reader, line_of(list),
			"project %s: %s: a list belongs here; write for example [one, "
			"two]",
			row->name, field->key);
	for (const yaml_node_item_t *item = list->data.sequence.items.start;
		item < list->data.sequence.items.top; item++) {
		const yaml_node_t *node = node_of(reader, *item);
		const char *text = scalar(node);
		struct sl_error said = {0};

		if (sl_project_add_name(field, text ? text : "?", row, &said) !=
			SL_PROJECTS_OK)
			return blame(reader, line_of(node), row->name, &said);
	}
	return SL_PROJECTS_OK;
}

static int read_word(struct reader *reader, struct sl_project_row *row,
	const struct sl_project_field *field, const yaml_node_t *value)
{
	const char *text = scalar(value);
	struct sl_error said = {0};

	if (!text)
		return bad(reader, line_of(value),
			"project %s: %s: a single value belongs here", row->name,
			field->key);
	if (sl_project_set_word(field, text, row, &said) != SL_PROJECTS_OK)
		return blame(reader, line_of(value), row->name, &said);
	return SL_PROJECTS_OK;
}

static int read_field(struct reader *reader, struct sl_project_row *row,
	const yaml_node_t *mapping, const yaml_node_pair_t *pair)
{
	const yaml_node_t *key = node_of(reader, pair->key);
	const yaml_node_t *value = node_of(reader, pair->value);
	const char *word = scalar(key);
	const struct sl_project_field *field = word ? sl_project_field_of(word) : NULL;
	unsigned long before = line_before(reader, mapping, pair);
	char words[256];

	if (!field || !value)
		return bad(reader, line_of(key),
			"project %s: unknown field '%.64s'; the fields are %s", row->name,
			word ? word : "?", sl_project_field_words(words, sizeof(words)));
	if (before)
		return bad(reader, line_of(key),
			"project %s: %s was set in line %lu already; remove one of the "
			"two",
			row->name, field->key, before);
	switch (field->type) {
	case SL_PROJECT_FIELD_WORD: return read_word(reader, row, field, value);
	case SL_PROJECT_FIELD_LIST: return read_list(reader, row, field, value);
	case SL_PROJECT_FIELD_RESOURCE: return read_resource(reader, row, field, value);
	}
	return SL_PROJECTS_BAD;
}

static int add_row(struct reader *reader, const struct sl_project_row *row)
{
	struct sl_error said = {0};
	int r;

	if (sl_project_check(row, &said) != SL_PROJECTS_OK)
		return bad(reader, row->line, "%s", said.text);
	r = sl_projects_put(reader->set, row);
	if (r == 0)
		return SL_PROJECTS_OK;
	return bad(reader, row->line, "project %s: %s", row->name,
		reader->set->count == SL_PROJECTS_MAX
			? "there are more than " SL_STRINGIFY(
				  SL_PROJECTS_MAX) " projects; "
						   "remove some"
			: "no memory for it");
}

static int read_project(struct reader *reader, const yaml_node_pair_t *pair)
{
	const yaml_node_t *key = node_of(reader, pair->key);
	const yaml_node_t *value = node_of(reader, pair->value);
	const char *name = scalar(key);
	const struct sl_project_row *known;
	struct sl_project_row row;

	if (!name || !sl_project_is_name(name))
		return bad(reader, line_of(key),
			"'%.64s' is no name of a project; write letters, digits, '.', "
			"'_' and "
			"'-', at most 63",
			name ? name : "?");
	known = sl_projects_find(reader->set, name);
	if (known)
		return bad(reader, line_of(key),
			"project %s stands in line %lu already; remove one of the two",
			name, known->line);
	sl_project_defaults(&row, name);
	row.line = line_of(key);
	if (is_nothing(value))
		return add_row(reader, &row);
	if (!value || value->type != YAML_MAPPING_NODE)
		return bad(reader, line_of(value),
			"project %s: a mapping belongs here; write for example {gpu: "
			"{quota: 2}}",
			name);
	for (const yaml_node_pair_t *at = value->data.mapping.pairs.start;
		at < value->data.mapping.pairs.top; at++) {
		if (read_field(reader, &row, value, at) != SL_PROJECTS_OK)
			return SL_PROJECTS_BAD;
	}
	return add_row(reader, &row);
}

static int read_projects(struct reader *reader, const yaml_node_t *mapping)
{
	if (is_nothing(mapping))
		return SL_PROJECTS_OK;
	if (mapping->type != YAML_MAPPING_NODE)
		return bad(reader, line_of(mapping),
			"projects: rows 'NAME: {...}' belong below it");
	for (const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
		pair < mapping->data.mapping.pairs.top; pair++) {
		if (read_project(reader, pair) != SL_PROJECTS_OK)
			return SL_PROJECTS_BAD;
	}
	return SL_PROJECTS_OK;
}

static int read_root(struct reader *reader)
{
	const yaml_node_t *root = yaml_document_get_root_node(&reader->document);
	const yaml_node_pair_t *pair;

	if (!root)
		return bad(reader, 1, "it is empty; begin it with 'projects:'");
	if (root->type != YAML_MAPPING_NODE)
		return bad(reader, line_of(root), "begin it with 'projects:'");
	for (pair = root->data.mapping.pairs.start; pair < root->data.mapping.pairs.top;
		pair++) {
		const yaml_node_t *key = node_of(reader, pair->key);
		const char *word = scalar(key);
		unsigned long before = line_before(reader, root, pair);

		if (!word || strcmp(word, "projects") != 0)
			return bad(reader, line_of(key),
				"unknown key '%.64s'; only 'projects:' stands at the "
				"beginning of "
				"a line",
				word ? word : "?");
		if (before)
			return bad(reader, line_of(key),
				"'projects' stands in line %lu already; put all of them "
				"there",
				before);
		if (read_projects(reader, node_of(reader, pair->value)) != SL_PROJECTS_OK)
			return SL_PROJECTS_BAD;
	}
	return SL_PROJECTS_OK;
}

static int read_document(struct reader *reader, const char *text, size_t size)
{
	if (look_through(reader, text, size) != SL_PROJECTS_OK ||
		!reader_open(reader, text, size))
		return SL_PROJECTS_BAD;
	if (!yaml_parser_load(&reader->parser, &reader->document))
		return not_yaml(reader);
	reader->document_open = true;
	return read_root(reader);
}

int sl_projects_parse(const char *text, size_t size, const char *name,
	struct sl_projects *set, struct sl_error *err)
{
	struct reader reader = {.name = name, .set = set, .err = err};
	int r;

	if (size > SL_PROJECTS_FILE_MAX) {
		sl_error_set(err,
			"%s: a file of projects has at most %u bytes, this one %zu; "
			"split it",
			name, SL_PROJECTS_FILE_MAX, size);
		return SL_PROJECTS_BAD;
	}
	r = read_document(&reader, text, size);
	reader_close(&reader);
	if (r != SL_PROJECTS_OK)
		sl_projects_fini(set);
	return r;
}

int sl_projects_load(const char *path, struct sl_projects *set, struct sl_error *err)
{
	bool is_stdin = strcmp(path, "-") == 0;
	sl_cleanup(sl_freep) char *text = NULL;
	size_t size = 0;
	int r = sl_file_read(
		is_stdin ? "/dev/stdin" : path, SL_PROJECTS_FILE_MAX, &text, &size);

	if (r == -EFBIG) {
		sl_error_set(err,
			"%.200s: a file of projects has at most %u bytes; split it", path,
			SL_PROJECTS_FILE_MAX);
		return SL_PROJECTS_BAD;
	}
	if (r < 0) {
		sl_error_set(err, "cannot read %.200s: %s; check the path", path,
			strerror(-r));
		return SL_PROJECTS_BAD;
	}
	return sl_projects_parse(
		text, size, is_stdin ? "standard input" : path, set, err);
}
