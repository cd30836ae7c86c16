/*
 * publish - keeps the node's ResourceSlice up to date
 *
 * The slice is called NODE-gpu.sluice.dev and belongs to the Node, with which it is deleted. It is
 * created if it is missing, and updated with a higher pool generation if its devices differ. So a
 * change or deletion by others is undone; a starting kubelet, for one, deletes all slices of its
 * node. Other slices of this driver for this node are deleted. An equal slice is not written. If
 * others change a slice again and again, the waits between writes grow to 38 s. Loop's thread; as
 * api.h.
 *
 * Needs: get nodes; list, watch, create, update, delete resourceslices.resource.k8s.io.
 */
#ifndef SL_CLUSTER_KUBERNETES_NODE_PUBLISH_H
#define SL_CLUSTER_KUBERNETES_NODE_PUBLISH_H

#include "cluster/kubernetes/api/api.h"
#include "cluster/kubernetes/claims/slice.h"

struct sl_kube_publisher;

/* Starts to watch; writes nothing before the first set. -EINVAL for an invalid name of a node, or
 * other negative errno. */
SL_MUST_CHECK int sl_kube_publisher_new(
	struct sl_kube_publisher **out, struct sl_kube *kube, const char *node);
/* Leaves the slice as it is. Returns NULL. */
struct sl_kube_publisher *sl_kube_publisher_free(struct sl_kube_publisher *publisher);

/* Sets the node's GPUs; may be called at any time. Outcomes as sl_kube_slice_spec; on an error the
 * earlier inventory stays. */
SL_MUST_CHECK int sl_kube_publisher_set(
	struct sl_kube_publisher *publisher, const struct sl_kube_inventory *inventory);

/* Does the API server have what was set? */
SL_MUST_CHECK bool sl_kube_publisher_is_current(
	const struct sl_kube_publisher *publisher);
/* The error of the latest attempt; "" after success. Borrowed until the loop goes on. */
const char *sl_kube_publisher_trouble(const struct sl_kube_publisher *publisher);

#endif
