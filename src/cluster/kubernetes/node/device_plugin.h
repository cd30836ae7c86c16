/*
 * device_plugin - the service through which the kubelet allocates units of GPU memory
 *
 * For clusters without claims that share a device by capacity (Kubernetes before 1.36): the
 * resource sluice.dev/memory, v1beta1.DevicePlugin. The socket DIR/plugins/memory.sluice.dev/
 * plugin.sock is registered as register.h says. One thread, the loop's.
 */
#ifndef SL_CLUSTER_KUBERNETES_NODE_DEVICE_PLUGIN_H
#define SL_CLUSTER_KUBERNETES_NODE_DEVICE_PLUGIN_H

#include <systemd/sd-event.h>

#include "cluster/kubernetes/api/grpc.h"
#include "cluster/kubernetes/api/proto.h"
#include "cluster/kubernetes/claims/units.h"

struct sl_device_plugin;

struct sl_device_plugin_gpu {
	const char *uuid;
	uint32_t units; /* at most SL_UNITS_MAX */
	bool is_well;   /* else no new workload may start on it */
};

struct sl_device_plugin_handler {
	void *context;
	/* A pod with these units will start here. Puts the container's part of the answer
	 * (ContainerAllocateResponse) into out. False: err has the fault, and the pod fails for
	 * good. */
	bool (*allocate)(void *context, const struct sl_units_gpu *gpu,
		struct sl_proto_out *out, struct sl_error *err);
	/* The container of that key is about to start. Answer the call with an empty message, or
	 * refuse it; the kubelet then retries. */
	void (*start)(void *context, const char *key, struct sl_grpc_call *call);
	/* The kubelet has accepted the resource, or err says why not. */
	void (*registered)(void *context, const struct sl_error *err);
};

/* Makes its folders. 0 or negative errno (err). */
SL_MUST_CHECK int sl_device_plugin_new(sd_event *loop, const char *dir,
	const struct sl_device_plugin_handler *handler, struct sl_device_plugin **out,
	struct sl_error *err);
/* Not from within the handler's functions. Returns NULL; accepts NULL. */
struct sl_device_plugin *sl_device_plugin_free(struct sl_device_plugin *plugin);

/* Sets the node's GPUs; nothing is sent if nothing changed. */
void sl_device_plugin_tell(struct sl_device_plugin *plugin,
	const struct sl_device_plugin_gpu *gpus, size_t count);

#endif
