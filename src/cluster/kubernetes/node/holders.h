/*
 * holders - the containers that have units of GPU memory, according to the kubelet
 *
 * Reads the answer of v1.PodResourcesLister/List: all pods of the node and the devices of their
 * containers. The answer lacks init containers other than sidecars. The API server's pods of this
 * node are read next, and add their annotations. Pure but for memory.
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
	bool has_pod;    /* the API server has the pod */
	char limit[64];  /* its annotation sluice.dev/limit, or "" */
};

struct sl_holders {
	struct sl_holder *all;
	size_t count;
};

/* Reads the kubelet's answer, leaving out units on several GPUs and other devices. False: not such
 * an answer, or out of memory. */
SL_MUST_CHECK bool sl_holders_read(
	struct sl_holders *out, const uint8_t *message, size_t size);
void sl_holders_fini(struct sl_holders *holders);
/* NULL: no container. */
struct sl_holder *sl_holders_find(const struct sl_holders *holders, const char *key);
/* Adds a list of pods. False: an unfinished pod that asks for units has none in the kubelet's
 * answer, as when the kubelet has just started and does not know its pods yet. A container that is
 * missing in the answer may then still have its units. */
SL_MUST_CHECK bool sl_holders_meet(struct sl_holders *holders, const json_t *pods);
/* Does a container of the pod ask for units? */
SL_MUST_CHECK bool sl_holders_asks(const json_t *pod);

#endif
