/*
 * publish - keeps the node's ResourceSlice as it should be
 *
 * The slice is called NODE-gpu.sluice.dev and belongs to the Node, with which it goes. It is made
 * where it is missing, updated with a higher pool generation where its devices differ, and again
 * whenever somebody else deletes or changes it: the kubelet deletes all slices of its node when it
 * starts. Other slices of this driver for this node are deleted. Equal slices cause no write.
 * A slice that is changed by others again and again is written less and less often, at least every
 * 38 s. Loop's thread; as api.h.
 *
 * Needs: get nodes; list, watch, create, update, delete resourceslices.resource.k8s.io.
 */
#ifndef SL_CLUSTER_KUBERNETES_NODE_PUBLISH_H
#define SL_CLUSTER_KUBERNETES_NODE_PUBLISH_H

#include "cluster/kubernetes/api/api.h"
#include "cluster/kubernetes/claims/slice.h"

struct sl_kube_publisher;

/* Starts to watch; writes nothing before the first set. -EINVAL for a name that no node can have,
 * or other negative errno. */
SL_MUST_CHECK int sl_kube_publisher_new(
	struct sl_kube_publisher **out, struct sl_kube *kube, const char *node);
/* Leaves the slice as it is. Returns NULL. */
struct sl_kube_publisher *sl_kube_publisher_free(struct sl_kube_publisher *publisher);

/* What the node has from now on; may be called as often as one likes. Outcomes as
 * sl_kube_slice_spec; on an error the earlier inventory stays. */
SL_MUST_CHECK int sl_kube_publisher_set(
	struct sl_kube_publisher *publisher, const struct sl_kube_inventory *inventory);

/* Whether the API server has what was set. */
SL_MUST_CHECK bool sl_kube_publisher_is_current(
	const struct sl_kube_publisher *publisher);
/* What went wrong with the latest try; "" after success. Borrowed until the loop goes on. */
const char *sl_kube_publisher_trouble(const struct sl_kube_publisher *publisher);

#endif
