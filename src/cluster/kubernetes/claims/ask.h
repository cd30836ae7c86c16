/*
 * ask - what a pod's annotations ask of a GPU
 *
 * Two families of words are in use, and both are read unchanged:
 *
 *   KAI and Run:ai, for one container (the first, or gpu-fraction-container-name):
 *     gpu-fraction            part of a GPU's memory, above 0 and at most 1
 *     gpu-memory              instead of it: MiB, a plain number
 *     gpu-fraction.limit      or gpu-fraction-limit: how far it may burst, as a part
 *     gpu-memory.limit        or gpu-memory-limit: likewise, a quantity such as 16Gi
 *     gpu-fraction-num-devices  the same on so many GPUs
 *     The variable RUNAI_GPU_MEMORY_LIMIT of that container is a limit, too.
 *   kai-gpu-fractioning, for each container by its name:
 *     nvidia.com/container.NAME.gpu-memory.request, .limit   quantities; one stands for both
 *
 *   Sluice's own, beside either of them, for all containers that ask:
 *     sluice.dev/compute        guaranteed share of the GPUs' time in percent, 1 to 100
 *     sluice.dev/compute-limit  the most of it while others want the GPU, likewise
 *
 * A limit that is missing stays unset; in the second family it becomes the request. Both families
 * may be present if they agree. Bytes are rounded up to whole MiB. Pure.
 */
#ifndef SL_CLUSTER_KUBERNETES_CLAIMS_ASK_H
#define SL_CLUSTER_KUBERNETES_CLAIMS_ASK_H

#include <jansson.h>

#include "base/amount.h"

/* A whole GPU, in a container's limits; docs/kubernetes/class.yaml defines it. */
#define SL_KUBE_EXTENDED "sluice.dev/gpu"

/* Containers of a pod that may ask. */
#define SL_ASKS_MAX 32

enum {
	SL_ASKS_OK = 0,
	SL_ASKS_NONE,
	SL_ASKS_BAD /* err: the fault, and what to write */
};

struct sl_ask {
	const char *list; /* "containers" or "initContainers" */
	size_t index;     /* of the container in that list */
	const char *container;
	struct sl_amount request;
	struct sl_amount limit; /* of the same kind, at least the request; or UNSET */
	uint32_t gpus;          /* 1 to SL_SHARE_DEVICES */
	uint32_t compute_pct, compute_limit_pct; /* 0: none */
};

/* Texts belong to the pod. */
struct sl_asks {
	size_t count;
	struct sl_ask of[SL_ASKS_MAX];
};

SL_MUST_CHECK int sl_asks_read(
	const json_t *pod, struct sl_asks *out, struct sl_error *err);

#endif
