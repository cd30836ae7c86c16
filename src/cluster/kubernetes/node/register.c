/*
 * register - see the header
 */
#include "cluster/kubernetes/node/register.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cluster/kubernetes/api/proto.h"

struct sl_register {
	struct sl_register_plugin plugin;
	struct sl_grpc *grpc;
};

void sl_register_answer(struct sl_grpc_call *call, struct sl_proto_out *out)
{
	if (out->failed)
		sl_grpc_refuse(call, SL_GRPC_RESOURCE_EXHAUSTED, "out of memory");
	else
		sl_grpc_answer(call, out->data, out->size);
	sl_proto_fini(out);
}

static void get_info(const struct sl_register *reg, struct sl_grpc_call *call)
{
	const struct sl_register_plugin *plugin = &reg->plugin;
	struct sl_proto_out out = {0};

	sl_proto_put_text(&out, 1, plugin->type);
	sl_proto_put_text(&out, 2, plugin->name);
	sl_proto_put_text(&out, 3, plugin->endpoint);
	for (size_t i = 0; i < SL_ARRAY_LEN(plugin->versions) && plugin->versions[i]; i++)
		sl_proto_put_text(&out, 4, plugin->versions[i]);
	sl_register_answer(call, &out);
}

static void get_status(const struct sl_register *reg, struct sl_grpc_call *call,
	const uint8_t *message, size_t size)
{
	struct sl_proto_in in = {message, message + size};
	struct sl_proto_field field;
	struct sl_error err = {0};
	bool registered = false;
	int r;

	while ((r = sl_proto_next(&in, &field)) == SL_PROTO_FIELD) {
		char text[256];

		if (field.number == 1 && !field.is_bytes)
			registered = field.value != 0;
		if (field.number == 2 && sl_proto_text(&field, text, sizeof(text)))
			sl_error_set(&err, "the kubelet refuses %s %s: %s",
				reg->plugin.type, reg->plugin.name, text);
	}
	if (r == SL_PROTO_BAD) {
		sl_grpc_refuse(call, SL_GRPC_INVALID_ARGUMENT, "no RegistrationStatus");
		return;
	}
	sl_grpc_answer(call, NULL, 0);
	if (!registered && !err.text[0])
		sl_error_set(&err, "the kubelet does not take %s %s", reg->plugin.type,
			reg->plugin.name);
	reg->plugin.registered(reg->plugin.context, registered ? NULL : &err);
}

static void on_call(void *context, struct sl_grpc_call *call, const char *method,
	const uint8_t *message, size_t size)
{
	if (strcmp(method, "/pluginregistration.Registration/GetInfo") == 0)
		get_info(context, call);
	else if (strcmp(method, "/pluginregistration.Registration/"
				"NotifyRegistrationStatus") == 0)
		get_status(context, call, message, size);
	else
		sl_grpc_refuse(call, SL_GRPC_UNIMPLEMENTED, method);
}

static int make_folder(const char *path, struct sl_error *err)
{
	int r = sl_file_make_dirs(path, 0750);

	if (r < 0)
		sl_error_set(
			err, "cannot make the folder %.200s: %s", path, strerror(-r));
	return r;
}

int sl_register_endpoint(const char *dir, const char *name, const char *file,
	char path[SL_SOCKET_PATH_MAX], struct sl_error *err)
{
	char folder[SL_PATH_MAX];
	int r;

	(void)snprintf(folder, sizeof(folder), "%s/plugins/%s", dir, name);
	r = make_folder(folder, err);
	if (r < 0)
		return r;
	if (snprintf(path, SL_SOCKET_PATH_MAX, "%s/%s", folder, file) <
		SL_SOCKET_PATH_MAX)
		return 0;
	sl_error_set(err, "the path %.120s/%s is too long for a socket: at most %d bytes",
		folder, file, SL_SOCKET_PATH_MAX - 1);
	return sl_err_origin(-ENAMETOOLONG);
}

int sl_register_new(sd_event *loop, const char *dir,
	const struct sl_register_plugin *plugin, struct sl_register **out,
	struct sl_error *err)
{
	struct sl_register *reg = calloc(1, sizeof(*reg));
	char path[SL_PATH_MAX];
	int r;

	*out = NULL;
	if (!reg) {
		sl_error_set(err, "out of memory");
		return sl_err_origin(-ENOMEM);
	}
	reg->plugin = *plugin;
	(void)snprintf(path, sizeof(path), "%s/plugins_registry", dir);
	r = make_folder(path, err);
	if (r == 0) {
		(void)snprintf(path, sizeof(path), "%s/plugins_registry/%s-reg.sock", dir,
			plugin->file);
		r = sl_grpc_new(loop, path, on_call, reg, &reg->grpc, err);
	}
	if (r < 0)
		reg = sl_register_free(reg);
	*out = reg;
	return r;
}

struct sl_register *sl_register_free(struct sl_register *reg)
{
	if (!reg)
		return NULL;
	reg->grpc = sl_grpc_free(reg->grpc);
	free(reg);
	return NULL;
}
