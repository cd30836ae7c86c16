/*
 * compute - see the header
 */
#include "daemon/jobs/compute.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/projects/projects.h"
#include "daemon/store/record.h"
#include "policy/node.h"
#include "wire/wire.h"

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
	uint64_t number = 0;

	if (there) {
		number = there->number;
		*there = *resource;
		there->number = number;
		return true;
	}
	if (list->count == SL_RESOURCES_MOST)
		return false;
	for (uint32_t i = 0; i < list->count; i++)
		number = sl_max_u64(number, list->all[i].number);
	for (; at > 0 && compare(&list->all[at - 1], resource) > 0; at--)
		list->all[at] = list->all[at - 1];
	list->all[at] = *resource;
	if (!resource->number)
		list->all[at].number = number + 1;
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

/* --- the records ------------------------------------------------------------------------------ */

#define FIELD(what, member, least, most) \
	SL_FIELD_AT(sl_compute, what, member, least, most)
#define AMOUNT(name, member, what, most)                                    \
	{                                                                   \
		name, what, offsetof(struct sl_compute, member), 0, 0, most \
	}

static const struct sl_field fields[] = {
	FIELD(TEXT, name, 0, 0),
	FIELD(TEXT, project, 0, 0),
	FIELD(U32, owner, 0, UINT32_MAX),
	FIELD(YES, shared, 0, 0),
	AMOUNT("request_kind", request.kind, SL_FIELD_U32, SL_AMOUNT_KINDS - 1),
	AMOUNT("request_value", request.value, SL_FIELD_U64, 0),
	AMOUNT("limit_kind", limit.kind, SL_FIELD_U32, SL_AMOUNT_KINDS - 1),
	AMOUNT("limit_value", limit.value, SL_FIELD_U64, 0),
	FIELD(U32, gpus, 1, SL_NODE_GPUS_MAX),
	FIELD(I32, priority, -SL_PRIORITY_MAX, SL_PRIORITY_MAX),
};

static bool take(void *context, uint64_t number, const char *text, struct sl_error *why)
{
	struct sl_compute row = {.number = number};
	const char *mistake = "there are too many";

	if (!sl_record_read(fields, SL_ARRAY_LEN(fields), text, &row, why))
		return false;
	if (sl_compute_find(context, &row))
		mistake = "its name comes twice";
	else if (sl_compute_mistake(&row)[0])
		mistake = sl_compute_mistake(&row);
	else if (sl_compute_put(context, &row))
		return true;
	sl_error_set(why, "%s", mistake);
	return false;
}

int sl_compute_load(
	struct sl_store *store, struct sl_compute_list *list, struct sl_error *err)
{
	return sl_store_load(store, SL_KIND_RESOURCE, take, list, err);
}

void sl_compute_store(struct sl_store_change *change, const struct sl_compute *resource)
{
	sl_store_put_object(change, SL_KIND_RESOURCE, resource->number, fields,
		SL_ARRAY_LEN(fields), resource, sizeof(*resource));
}
