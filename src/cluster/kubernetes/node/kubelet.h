/*
 * kubelet - the services through which a node's kubelet knows and uses this driver
 *
 * Two sockets. One announces the driver (register.h). Through the other,
 * DIR/plugins/DRIVER/dra.sock, the kubelet has claims prepared before containers start and
 * unprepared after they ended (k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin), and learns the health of
 * devices (v1.DRAResourceHealth, and its equal v1alpha1). DIR is the kubelet's root.
 *
 * A call may name many claims and is answered when all are done. The kubelet repeats failed and
 * forgotten calls, so both must be idempotent. One thread, the loop's.
 */
#ifndef SL_CLUSTER_KUBERNETES_NODE_KUBELET_H
#define SL_CLUSTER_KUBERNETES_NODE_KUBELET_H

#include <systemd/sd-event.h>

#include "base/error.h"

#define SL_KUBELET_DEVICES 8

struct sl_kubelet;
struct sl_kubelet_work; /* one claim of a call, until it is done */

struct sl_kubelet_claim {
	char namespace[254], name[254], uid[64];
};

/* The claim itself, and the vendor's names of the GPUs. */
#define SL_KUBELET_CDI_MAX 33

/* A device of a prepared claim; texts are borrowed. */
struct sl_kubelet_device {
	const char *request, *pool, *device;
	const char *cdi[SL_KUBELET_CDI_MAX]; /* "vendor/class=name", then NULL */
	const char *share;                   /* "": none */
};

struct sl_kubelet_health {
	const char *pool, *device;
	const char *trouble; /* NULL: it works */
};

struct sl_kubelet_handler {
	void *context;
	/* End each with exactly one sl_kubelet_done, now or later, even after the kubelet's
	 * connection was lost or everything was freed. */
	void (*prepare)(void *context, const struct sl_kubelet_claim *claim,
		struct sl_kubelet_work *work);
	void (*unprepare)(void *context, const struct sl_kubelet_claim *claim,
		struct sl_kubelet_work *work);
	/* The kubelet accepted this driver (it has deleted the node's slices before), or err says
	 * why not. */
	void (*registered)(void *context, const struct sl_error *err);
};

/* driver: its name. Makes its folders. 0 or negative errno (err). */
SL_MUST_CHECK int sl_kubelet_new(sd_event *loop, const char *dir, const char *driver,
	const struct sl_kubelet_handler *handler, struct sl_kubelet **out,
	struct sl_error *err);
/* Not from within the handler's functions. Returns NULL; accepts NULL. */
struct sl_kubelet *sl_kubelet_free(struct sl_kubelet *kubelet);

/* err NULL: success, with its devices (none for unprepare). */
void sl_kubelet_done(struct sl_kubelet_work *work,
	const struct sl_kubelet_device *devices, size_t count,
	const struct sl_error *err);

/* The present health of all devices. The kubelet calls a device unknown after 30 s without news. */
void sl_kubelet_tell_health(struct sl_kubelet *kubelet,
	const struct sl_kubelet_health *devices, size_t count);

#endif
