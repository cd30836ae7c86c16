/*
 * register - announces a plugin to the kubelet
 *
 * The kubelet watches DIR/plugins_registry for sockets, at its start and whenever one appears. It
 * asks each for type, name, and the plugin's own socket (pluginregistration.Registration). DIR is
 * the kubelet's root. One thread, the loop's.
 */
#ifndef SL_CLUSTER_KUBERNETES_NODE_REGISTER_H
#define SL_CLUSTER_KUBERNETES_NODE_REGISTER_H

#include <systemd/sd-event.h>

#include "base/error.h"
#include "base/paths.h"
#include "cluster/kubernetes/api/grpc.h"
#include "cluster/kubernetes/api/proto.h"

/* Texts are borrowed. */
struct sl_register_plugin {
	const char *type,
		*name; /* "DRAPlugin" and the driver, "DevicePlugin" and the resource */
	const char *file;        /* in plugins_registry, without "-reg.sock" */
	const char *endpoint;    /* the plugin's own socket */
	const char *versions[4]; /* ends with NULL */
	/* The kubelet accepted it, or err says why not. */
	void (*registered)(void *context, const struct sl_error *err);
	void *context;
};

struct sl_register;

/* 0 or negative errno (err). Call it last: the kubelet asks as soon as it sees the socket. */
SL_MUST_CHECK int sl_register_new(sd_event *loop, const char *dir,
	const struct sl_register_plugin *plugin, struct sl_register **out,
	struct sl_error *err);
/* Not from within registered(). Returns NULL; accepts NULL. */
struct sl_register *sl_register_free(struct sl_register *reg);

/* Builds DIR/plugins/NAME/FILE and makes its folders. 0 or negative errno (err). */
SL_MUST_CHECK int sl_register_endpoint(const char *dir, const char *name,
	const char *file, char path[SL_SOCKET_PATH_MAX], struct sl_error *err);
/* Answers with out, which is freed. */
void sl_register_answer(struct sl_grpc_call *call, struct sl_proto_out *out);

#endif
