/*
 * holders - see the header
 */
#include "cluster/kubernetes/node/holders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "cluster/kubernetes/claims/order.h"
#include "cluster/kubernetes/api/parse.h"
#include "cluster/kubernetes/api/proto.h"
#include "cluster/kubernetes/api/quantity.h"
#include "wire/wire.h"

/* Calls fn for each message or text of that field number. False: not a message, or fn returned
 * false. */
static bool each(const uint8_t *data, size_t size, uint32_t number, void *context,
	bool (*fn)(void *context, const struct sl_proto_field *field))
{
	struct sl_proto_in in = {data, data + size};
	struct sl_proto_field field;
	int r;

	while ((r = sl_proto_next(&in, &field)) == SL_PROTO_FIELD) {
		if (field.number == number && field.is_bytes && !fn(context, &field))
			return false;
	}
	return r == SL_PROTO_END;
}

struct reader {
	struct sl_holders *out;
	struct sl_holder holder; /* of the pod being read */
	struct sl_units units;   /* of the container being read */
	bool is_ours;            /* the devices being read are units */
};

static bool take_text(void *context, const struct sl_proto_field *field)
{
	return sl_proto_text(field, context, SL_SHARE_NAME_BYTES);
}

static bool take_resource(void *context, const struct sl_proto_field *field)
{
	struct reader *reader = context;

	reader->is_ours = field->size == strlen(SL_HOLDERS_RESOURCE) &&
			  memcmp(field->data, SL_HOLDERS_RESOURCE, field->size) == 0;
	return true;
}

static bool take_id(void *context, const struct sl_proto_field *field)
{
	struct reader *reader = context;

	if (!sl_units_add(&reader->units, (const char *)field->data, field->size))
		sl_debug("the kubelet has a unit of another form: %.*s", (int)field->size,
			(const char *)field->data);
	return true;
}

static bool take_devices(void *context, const struct sl_proto_field *field)
{
	struct reader *reader = context;

	reader->is_ours = false;
	return each(field->data, field->size, 1, reader, take_resource) &&
	       (!reader->is_ours || each(field->data, field->size, 2, reader, take_id));
}

static bool add(struct reader *reader)
{
	struct sl_holders *out = reader->out;
	const struct sl_units_gpu *gpu = sl_units_one_gpu(&reader->units, NULL);
	struct sl_holder *grown;

	if (!gpu)
		return true;
	grown = realloc(out->all, (out->count + 1) * sizeof(*grown));
	if (!grown)
		return false;
	out->all = grown;
	grown = &out->all[out->count++];
	*grown = reader->holder;
	(void)sl_units_key(gpu, grown->key);
	memcpy(grown->uuid, gpu->uuid, sizeof(grown->uuid));
	grown->memory = gpu->count * (uint64_t)SL_UNIT_BYTES;
	return true;
}

static bool take_container(void *context, const struct sl_proto_field *field)
{
	struct reader *reader = context;
	bool fits =
		each(field->data, field->size, 2, reader, take_devices) && add(reader);

	sl_units_fini(&reader->units);
	return fits;
}

static bool take_pod(void *context, const struct sl_proto_field *field)
{
	struct reader *reader = context;
	struct sl_holder *holder = &reader->holder;

	*holder = (struct sl_holder){0};
	return each(field->data, field->size, 1, holder->pod, take_text) &&
	       each(field->data, field->size, 2, holder->namespace, take_text) &&
	       each(field->data, field->size, 3, reader, take_container);
}

bool sl_holders_read(struct sl_holders *out, const uint8_t *message, size_t size)
{
	struct reader reader = {.out = out};

	*out = (struct sl_holders){0};
	if (each(message, size, 1, &reader, take_pod))
		return true;
	sl_holders_fini(out);
	return false;
}

void sl_holders_fini(struct sl_holders *holders)
{
	free(holders->all);
	*holders = (struct sl_holders){0};
}

struct sl_holder *sl_holders_find(const struct sl_holders *holders, const char *key)
{
	for (size_t i = 0; i < holders->count; i++) {
		if (strcmp(holders->all[i].key, key) == 0)
			return &holders->all[i];
	}
	return NULL;
}

/* --- pods --------------------------------------------------------------------------------- */

/* A container that asks for "0" units has none at the kubelet. */
bool sl_holders_asks(const json_t *pod)
{
	const json_t *containers = sl_kube_at(pod, "spec", "containers", NULL);

	for (size_t i = 0; i < json_array_size(containers); i++) {
		const json_t *limit = sl_kube_at(json_array_get(containers, i),
			"resources", "limits", SL_HOLDERS_RESOURCE, NULL);
		const char *text = json_string_value(limit);
		uint64_t count;

		if (limit && !(text && sl_kube_quantity_parse(text, &count) && !count))
			return true;
	}
	return false;
}

static bool is_over(const json_t *pod)
{
	const char *phase = sl_kube_text_at(pod, "status", "phase", NULL);

	return strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
}

/* Is a container of the pod a holder? */
static bool meet(struct sl_holders *holders, const json_t *pod)
{
	const char *namespace = sl_kube_text_at(pod, "metadata", "namespace", NULL);
	const char *name = sl_kube_text_at(pod, "metadata", "name", NULL);
	bool found = false;

	for (size_t i = 0; i < holders->count; i++) {
		struct sl_holder *holder = &holders->all[i];

		if (strcmp(holder->namespace, namespace) != 0 ||
			strcmp(holder->pod, name) != 0)
			continue;
		found = holder->has_pod = true;
		sl_wire_str(holder->limit, sizeof(holder->limit),
			sl_kube_text_at(pod, "metadata", "annotations",
				SL_KUBE_LIMIT_ANNOTATION, NULL));
	}
	return found;
}

bool sl_holders_meet(struct sl_holders *holders, const json_t *pods)
{
	const json_t *items = sl_kube_at(pods, "items", NULL);
	bool complete = true;

	for (size_t i = 0; i < json_array_size(items); i++) {
		const json_t *pod = json_array_get(items, i);

		if (!is_over(pod) && sl_holders_asks(pod))
			complete &= meet(holders, pod);
	}
	return complete;
}
