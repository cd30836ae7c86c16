/*
 * resources_file - see the header
 */
#include "daemon/jobs/resources_file.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/paths.h"
#include "daemon/projects/projects.h"
#include "policy/node.h"
#include "wire/wire.h"

#define FILE_MAX (1u << 20)

/* --- the list --------------------------------------------------------------------------------- */

const char *sl_compute_mistake(const struct sl_compute *resource)
{
	const struct sl_amount *request = &resource->request, *limit = &resource->limit;

	if (!sl_project_is_name(resource->name))
		return "a compute resource's name has letters, digits, '.', '_' and '-', "
		       "begins with a letter or digit, and has at most 63 of them";
	if (resource->gpus < 1 || resource->gpus > SL_NODE_GPUS_MAX)
		return "gpus must be from 1 to " SL_STRINGIFY(SL_NODE_GPUS_MAX);
	if (resource->priority < -SL_PRIORITY_MAX || resource->priority > SL_PRIORITY_MAX)
		return "priority must be from -1000 to 1000";
	if (request->kind == SL_AMOUNT_UNSET && limit->kind == SL_AMOUNT_UNSET)
		return "a compute resource needs a request or a limit";
	if (request->kind && request->kind == limit->kind &&
		limit->value < request->value)
		return "limit must not be below request";
	return "";
}

/* Shared ones first, then each owner's; by name. */
static int compare(const struct sl_compute *a, const struct sl_compute *b)
{
	if (a->shared != b->shared)
		return a->shared ? -1 : 1;
	if (!a->shared && a->owner != b->owner)
		return a->owner < b->owner ? -1 : 1;
	return strcmp(a->name, b->name);
}

struct sl_compute *sl_compute_find(
	struct sl_compute_list *list, const struct sl_compute *key)
{
	for (uint32_t i = 0; i < list->count; i++) {
		if (compare(&list->all[i], key) == 0)
			return &list->all[i];
	}
	return NULL;
}

bool sl_compute_put(struct sl_compute_list *list, const struct sl_compute *resource)
{
	struct sl_compute *there = sl_compute_find(list, resource);
	uint32_t at = list->count;

	if (there) {
		*there = *resource;
		return true;
	}
	if (list->count == SL_RESOURCES_MOST)
		return false;
	for (; at > 0 && compare(&list->all[at - 1], resource) > 0; at--)
		list->all[at] = list->all[at - 1];
	list->all[at] = *resource;
	list->count++;
	return true;
}

bool sl_compute_drop(struct sl_compute_list *list, const struct sl_compute *key)
{
	struct sl_compute *there = sl_compute_find(list, key);

	if (!there)
		return false;
	list->count--;
	memmove(there, there + 1,
		(size_t)(&list->all[list->count] - there) * sizeof(*there));
	return true;
}

/* --- the file --------------------------------------------------------------------------------- */

static void path_of(const char *folder, char path[SL_PATH_MAX])
{
	(void)snprintf(path, SL_PATH_MAX, "%s/%s", folder, SL_RESOURCES_FILE);
}

static int damaged(const char *path, const char *what, struct sl_error *err)
{
	sl_error_set(err,
		"the compute resources in %.200s are damaged: %.200s; mend it or move it "
		"away, and restart sluiced",
		path, what);
	return SL_RESOURCES_BAD;
}

static bool read_amount(const json_t *row, const char *key, struct sl_amount *out)
{
	const json_t *value = json_object_get(row, key);

	*out = (struct sl_amount){0};
	if (!value || json_is_null(value))
		return true;
	return json_is_string(value) &&
	       sl_amount_parse(json_string_value(value), out, NULL) == SL_AMOUNT_OK;
}

static bool read_row(const json_t *row, struct sl_compute *out)
{
	const char *name = json_string_value(json_object_get(row, "name"));
	const char *project = json_string_value(json_object_get(row, "project"));
	const json_t *owner = json_object_get(row, "owner");
	json_int_t gpus = json_integer_value(json_object_get(row, "gpus")),
		   priority = json_integer_value(json_object_get(row, "priority"));

	*out = (struct sl_compute){0};
	if (!name || strlen(name) >= sizeof(out->name) || gpus < 1 ||
		gpus > SL_NODE_GPUS_MAX || priority < -SL_PRIORITY_MAX ||
		priority > SL_PRIORITY_MAX)
		return false;
	(void)snprintf(out->name, sizeof(out->name), "%s", name);
	(void)snprintf(out->project, sizeof(out->project), "%s", project ? project : "");
	out->shared = !owner || json_is_null(owner);
	out->owner = (uint32_t)json_integer_value(owner);
	out->gpus = (uint32_t)gpus;
	out->priority = (int32_t)priority;
	return read_amount(row, "request", &out->request) &&
	       read_amount(row, "limit", &out->limit) && !sl_compute_mistake(out)[0];
}

int sl_resources_load(
	const char *folder, struct sl_compute_list *list, struct sl_error *err)
{
	sl_cleanup(sl_freep) char *text = NULL;
	char path[SL_PATH_MAX];
	json_error_t where;
	json_t *root;
	size_t size;
	int r;

	list->count = 0;
	path_of(folder, path);
	r = sl_file_read(path, FILE_MAX, &text, &size);
	if (r == -ENOENT)
		return SL_RESOURCES_OK;
	if (r < 0)
		return damaged(path, strerror(-r), err);
	root = json_loadb(text, size, 0, &where);
	r = json_is_array(root) ? SL_RESOURCES_OK
				: damaged(path, root ? "no list" : where.text, err);
	for (size_t i = 0; r == SL_RESOURCES_OK && i < json_array_size(root); i++) {
		struct sl_compute row;

		if (!read_row(json_array_get(root, i), &row) ||
			!sl_compute_put(list, &row))
			r = damaged(path, "a row is not what it may be", err);
	}
	json_decref(root);
	if (r != SL_RESOURCES_OK)
		list->count = 0;
	return r;
}

static json_t *amount_json(const struct sl_amount *amount)
{
	char text[32];

	return amount->kind ? json_string(sl_amount_format(amount, text, sizeof(text)))
			    : json_null();
}

static json_t *to_json(const struct sl_compute_list *list)
{
	json_t *array = json_array();

	for (uint32_t i = 0; array && i < list->count; i++) {
		const struct sl_compute *row = &list->all[i];

		(void)json_array_append_new(
			array, json_pack("{s:s, s:s, s:o, s:o, s:o, s:i, s:i}", "name",
				       row->name, "project", row->project, "owner",
				       row->shared ? json_null()
						   : json_integer((json_int_t)row->owner),
				       "request", amount_json(&row->request), "limit",
				       amount_json(&row->limit), "gpus", (int)row->gpus,
				       "priority", (int)row->priority));
	}
	return array;
}

int sl_resources_save(
	const char *folder, const struct sl_compute_list *list, struct sl_error *err)
{
	json_t *json = to_json(list);
	char *text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
	char path[SL_PATH_MAX];
	int r = text ? sl_file_make_dirs(folder, 0755) : -ENOMEM;

	path_of(folder, path);
	if (r == 0)
		r = sl_file_replace(path, text, strlen(text), true);
	json_decref(json);
	free(text);
	if (r == 0)
		return SL_RESOURCES_OK;
	sl_error_set(err,
		"cannot write the compute resources to %.200s: %s; make room or let "
		"sluiced's user write there, and try again",
		path, strerror(-r));
	return SL_RESOURCES_BAD;
}
