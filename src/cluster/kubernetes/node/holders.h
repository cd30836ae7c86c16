/*
 * holders - which containers have units of GPU memory, by the kubelet's own word
 *
 * Reads the answer of v1.PodResourcesLister/List: all pods of the node and the devices of their
 * containers. Init containers are not in it, but for sidecars. Then the pods of the node as the API
 * server has them add what their owners wrote. Pure but for memory.
 */
#ifndef SL_CLUSTER_KUBERNETES_NODE_HOLDERS_H
#define SL_CLUSTER_KUBERNETES_NODE_HOLDERS_H

#include <jansson.h>

#include "cluster/kubernetes/node/device_plugin.h"
#include "cluster/kubernetes/claims/share.h"
#include "cluster/kubernetes/claims/units.h"

#define SL_HOLDERS_METHOD   "/v1.PodResourcesLister/List"
#define SL_HOLDERS_RESOURCE SL_UNITS_RESOURCE

/* A container with units. */
struct sl_holder {
	char key[SL_UNITS_KEY_MAX];
	char uuid[SL_UNITS_UUID_MAX];
	char namespace[SL_SHARE_NAME_BYTES], pod[SL_SHARE_NAME_BYTES];
	uint64_t memory; /* bytes of its units */
	bool has_pod;    /* the API server has it */
	char limit[64];  /* its annotation sluice.dev/limit, or "" */
};

struct sl_holders {
	struct sl_holder *all;
	size_t count;
};

/* Of the kubelet's answer. Units on several GPUs, and what is no unit, are left out. False: it is
 * none, or no memory. */
SL_MUST_CHECK bool sl_holders_read(
	struct sl_holders *out, const uint8_t *message, size_t size);
void sl_holders_fini(struct sl_holders *holders);
/* NULL: no container. */
struct sl_holder *sl_holders_find(const struct sl_holders *holders, const char *key);
/* Of a list of pods. False: a pod that asks for units and is not over has none in the kubelet's
 * answer, as when the kubelet has started a moment ago and does not know its pods yet: what is
 * missing in the answer may be there. */
SL_MUST_CHECK bool sl_holders_meet(struct sl_holders *holders, const json_t *pods);
/* Whether a container of the pod asks for units. */
SL_MUST_CHECK bool sl_holders_asks(const json_t *pod);

#endif
