/*
 * kubelet - the services by which the kubelet of a node knows and uses this driver
 *
 * Two sockets. One says what is here (register.h). The other one, DIR/plugins/DRIVER/dra.sock, is
 * where pods' claims are prepared before their containers start and unprepared after they ended
 * (k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin), and where the kubelet hears how devices are
 * (v1.DRAResourceHealth, and its equal v1alpha1). DIR is the kubelet's root.
 *
 * A call may name many claims; it is answered when each of them is done. The kubelet repeats what
 * failed, and what it does not remember, so both must be idempotent. One thread, the loop's.
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

/* What a prepared claim has; texts are borrowed. */
struct sl_kubelet_device {
	const char *request, *pool, *device;
	const char *cdi[2]; /* "vendor/class=name"; the second may be NULL */
	const char *share;  /* "": none */
};

struct sl_kubelet_health {
	const char *pool, *device;
	const char *trouble; /* NULL: it works */
};

struct sl_kubelet_handler {
	void *context;
	/* Each is ended by exactly one sl_kubelet_done, now or later, also after the kubelet's line
	 * was lost, or the whole was freed. */
	void (*prepare)(void *context, const struct sl_kubelet_claim *claim,
		struct sl_kubelet_work *work);
	void (*unprepare)(void *context, const struct sl_kubelet_claim *claim,
		struct sl_kubelet_work *work);
	/* The kubelet took this driver in (it has deleted the node's slices before), or err says
	 * why not. */
	void (*registered)(void *context, const struct sl_error *err);
};

/* driver: its name. Makes the folders of its own. 0 or negative errno (err). */
SL_MUST_CHECK int sl_kubelet_new(sd_event *loop, const char *dir, const char *driver,
	const struct sl_kubelet_handler *handler, struct sl_kubelet **out,
	struct sl_error *err);
/* Not from within the handler's functions. Returns NULL; takes it, too. */
struct sl_kubelet *sl_kubelet_free(struct sl_kubelet *kubelet);

/* err NULL: it went well, and these are its devices (none for unprepare). */
void sl_kubelet_done(struct sl_kubelet_work *work,
	const struct sl_kubelet_device *devices, size_t count,
	const struct sl_error *err);

/* All devices as they are now. The kubelet calls unknown what it did not hear of for 30 s. */
void sl_kubelet_tell_health(struct sl_kubelet *kubelet,
	const struct sl_kubelet_health *devices, size_t count);

#endif
