/*
 * device_plugin - see the header
 *
 * The field numbers are those of the kubelet's published messages. All requests list names of units
 * in the same place: field 1 of a container's message, which is field 1 of the request.
 */
#include "cluster/kubernetes/node/device_plugin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cluster/kubernetes/node/register.h"
#include "cluster/kubernetes/api/stream.h"

#define FOLDER "memory.sluice.dev"

struct sl_device_plugin {
	struct sl_device_plugin_handler handler;
	char endpoint[SL_SOCKET_PATH_MAX];
	struct sl_grpc *grpc;
	struct sl_register *registration;
	struct sl_stream watchers;
};

/* --- the node's units --------------------------------------------------------------------- */

static void put_unit(
	struct sl_proto_out *out, const struct sl_device_plugin_gpu *gpu, uint32_t unit)
{
	struct sl_proto_out device = {0};
	char id[SL_UNITS_ID_MAX];

	sl_proto_put_text(&device, 1, sl_units_id(gpu->uuid, unit, id));
	sl_proto_put_text(&device, 2, gpu->is_well ? "Healthy" : "Unhealthy");
	sl_proto_put_message(out, 1, &device);
}

void sl_device_plugin_tell(struct sl_device_plugin *plugin,
	const struct sl_device_plugin_gpu *gpus, size_t count)
{
	const struct sl_stream *watchers = &plugin->watchers;
	struct sl_proto_out out = {0};
	bool is_known;

	for (size_t i = 0; i < count; i++) {
		for (uint32_t unit = 0; unit < gpus[i].units; unit++)
			put_unit(&out, &gpus[i], unit);
	}
	is_known = watchers->latest && watchers->size == out.size &&
		   (!out.size || memcmp(watchers->latest, out.data, out.size) == 0);
	if (!out.failed && !is_known)
		sl_stream_tell(&plugin->watchers, out.data, out.size);
	sl_proto_fini(&out);
}

/* --- requests ----------------------------------------------------------------------------- */

/* Request of one container; must and count only for GetPreferredAllocation. */
struct request {
	struct sl_units units, must;
	uint32_t count;
};

static void request_fini(struct request *request)
{
	sl_units_fini(&request->units);
	sl_units_fini(&request->must);
}

static bool read_request(const uint8_t *data, size_t size, struct request *out)
{
	struct sl_proto_in in = {data, data + size};
	struct sl_proto_field field;
	int r;

	*out = (struct request){0};
	while ((r = sl_proto_next(&in, &field)) == SL_PROTO_FIELD) {
		if (field.number == 3 && !field.is_bytes)
			out->count = (uint32_t)field.value;
		if (field.number > 2 || !field.is_bytes)
			continue;
		if (!sl_units_add(field.number == 1 ? &out->units : &out->must,
			    (const char *)field.data, field.size))
			return false;
	}
	return r == SL_PROTO_END;
}

/* A container's part of an answer. False: err. */
typedef bool (*part_fn)(struct sl_device_plugin *plugin, const struct request *request,
	struct sl_proto_out *part, struct sl_error *err);

static bool prefer(struct sl_device_plugin *plugin, const struct request *request,
	struct sl_proto_out *part, struct sl_error *err)
{
	struct sl_units chosen;
	int r = sl_units_choose(
		&request->units, &request->must, request->count, &chosen, err);
	char id[SL_UNITS_ID_MAX];

	for (uint32_t i = 0; r == 0 && i < SL_UNITS_MAX; i++) {
		if (chosen.gpus[0].has[i])
			sl_proto_put_text(
				part, 1, sl_units_id(chosen.gpus[0].uuid, i, id));
	}
	sl_units_fini(&chosen);
	return r == 0;
}

static bool allocate(struct sl_device_plugin *plugin, const struct request *request,
	struct sl_proto_out *part, struct sl_error *err)
{
	const struct sl_device_plugin_handler *handler = &plugin->handler;
	const struct sl_units_gpu *gpu = sl_units_one_gpu(&request->units, err);

	return gpu && handler->allocate(handler->context, gpu, part, err);
}

/* Answers with a part for each container of the request. */
static void answer_each(struct sl_device_plugin *plugin, struct sl_grpc_call *call,
	const uint8_t *message, size_t size, part_fn fn)
{
	struct sl_proto_in in = {message, message + size};
	struct sl_proto_out out = {0};
	struct sl_proto_field field;
	struct sl_error err = {0};
	int r;

	while ((r = sl_proto_next(&in, &field)) == SL_PROTO_FIELD) {
		struct sl_proto_out part = {0};
		struct request request;

		if (field.number != 1 || !field.is_bytes)
			continue;
		if (!read_request(field.data, field.size, &request))
			sl_error_set(&err, "a unit has a name that is not ours");
		else if (!fn(plugin, &request, &part, &err) && !err.text[0])
			sl_error_set(&err, "out of memory");
		request_fini(&request);
		sl_proto_put_message(&out, 1, &part);
		if (err.text[0])
			break;
	}
	if (r == SL_PROTO_END) {
		sl_register_answer(call, &out);
		return;
	}
	sl_grpc_refuse(call, SL_GRPC_INVALID_ARGUMENT,
		err.text[0] ? err.text : "this is no list of units");
	sl_proto_fini(&out);
}

static void start(struct sl_device_plugin *plugin, struct sl_grpc_call *call,
	const uint8_t *message, size_t size)
{
	const struct sl_units_gpu *gpu = NULL;
	struct sl_error err = {0};
	char key[SL_UNITS_KEY_MAX];
	struct request request;

	if (!read_request(message, size, &request))
		sl_error_set(&err, "a unit has a name that is not ours");
	else
		gpu = sl_units_one_gpu(&request.units, &err);
	if (gpu)
		(void)sl_units_key(gpu, key);
	request_fini(&request);
	if (gpu)
		plugin->handler.start(plugin->handler.context, key, call);
	else
		sl_grpc_refuse(call, SL_GRPC_INVALID_ARGUMENT, err.text);
}

static void get_options(struct sl_grpc_call *call)
{
	struct sl_proto_out out = {0};

	sl_proto_put_number(&out, 1, true); /* pre_start_required */
	sl_proto_put_number(&out, 2, true); /* get_preferred_allocation_available */
	sl_register_answer(call, &out);
}

static void on_call(void *context, struct sl_grpc_call *call, const char *method,
	const uint8_t *message, size_t size)
{
	struct sl_device_plugin *plugin = context;

#define SERVICE "/v1beta1.DevicePlugin/"
	if (strcmp(method, SERVICE "GetDevicePluginOptions") == 0)
		get_options(call);
	else if (strcmp(method, SERVICE "ListAndWatch") == 0)
		sl_stream_add(&plugin->watchers, call);
	else if (strcmp(method, SERVICE "GetPreferredAllocation") == 0)
		answer_each(plugin, call, message, size, prefer);
	else if (strcmp(method, SERVICE "Allocate") == 0)
		answer_each(plugin, call, message, size, allocate);
	else if (strcmp(method, SERVICE "PreStartContainer") == 0)
		start(plugin, call, message, size);
	else
		sl_grpc_refuse(call, SL_GRPC_UNIMPLEMENTED, method);
#undef SERVICE
}

/* --- the plugin --------------------------------------------------------------------------- */

int sl_device_plugin_new(sd_event *loop, const char *dir,
	const struct sl_device_plugin_handler *handler, struct sl_device_plugin **out,
	struct sl_error *err)
{
	struct sl_device_plugin *plugin = calloc(1, sizeof(*plugin));
	struct sl_register_plugin registration = {.type = "DevicePlugin",
		.name = SL_UNITS_RESOURCE,
		.file = FOLDER,
		.versions = {"v1beta1"},
		.registered = handler->registered,
		.context = handler->context};
	int r;

	*out = NULL;
	if (!plugin) {
		sl_error_set(err, "out of memory");
		return sl_err_origin(-ENOMEM);
	}
	plugin->handler = *handler;
	registration.endpoint = plugin->endpoint;
	r = sl_register_endpoint(dir, FOLDER, "plugin.sock", plugin->endpoint, err);
	if (r == 0)
		r = sl_grpc_new(
			loop, plugin->endpoint, on_call, plugin, &plugin->grpc, err);
	if (r == 0)
		r = sl_register_new(loop, dir, &registration, &plugin->registration, err);
	if (r < 0)
		plugin = sl_device_plugin_free(plugin);
	*out = plugin;
	return r;
}

struct sl_device_plugin *sl_device_plugin_free(struct sl_device_plugin *plugin)
{
	if (!plugin)
		return NULL;
	plugin->registration = sl_register_free(plugin->registration);
	plugin->grpc = sl_grpc_free(plugin->grpc);
	sl_stream_fini(&plugin->watchers);
	free(plugin);
	return NULL;
}
