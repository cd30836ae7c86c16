/*
 * value - one field of a project from its text
 *
 * projects/file.c knows the lines; this knows the values. Pure.
 */
#ifndef SL_DAEMON_PROJECTS_VALUE_H
#define SL_DAEMON_PROJECTS_VALUE_H

#include "daemon/projects/projects.h"

/* The kind of value that a field has. */
enum sl_project_field_type {
	SL_PROJECT_FIELD_WORD,     /* a single value */
	SL_PROJECT_FIELD_LIST,     /* names */
	SL_PROJECT_FIELD_RESOURCE, /* a mapping of amounts */
};

struct sl_project_field {
	const char *key;
	enum sl_project_field_type type;
	enum sl_resource resource; /* of RESOURCE */
	size_t offset;             /* of WORD and LIST */
	const char *help;
};

extern const struct sl_project_field sl_project_fields[];
extern const size_t sl_project_field_count;

/* NULL: unknown. */
const struct sl_project_field *sl_project_field_of(const char *key);
/* "parent, priority, ... and swap"; returns buf. */
const char *sl_project_field_words(char *buf, size_t size);

/* Sets a WORD. err names the field and the remedy. */
SL_MUST_CHECK int sl_project_set_word(const struct sl_project_field *field,
	const char *text, struct sl_project_row *row, struct sl_error *err);
/* Adds a name to a LIST. */
SL_MUST_CHECK int sl_project_add_name(const struct sl_project_field *field,
	const char *text, struct sl_project_row *row, struct sl_error *err);
/* Sets quota, limit or over_quota_weight of a RESOURCE. */
SL_MUST_CHECK int sl_project_set_amount(const struct sl_project_field *field,
	const char *key, const char *text, struct sl_project_row *row,
	struct sl_error *err);

#endif
