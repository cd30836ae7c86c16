/*
 * slice - the ResourceSlice that publishes a node's GPUs
 *
 * A device per GPU, in the terms of resource.k8s.io/v1 with consumable capacity (Kubernetes 1.36):
 * several claims share a device as long as its capacities suffice.
 *
 *   memory       what claims may request together: shareable bytes times the memory factor. A claim
 *                without it takes all of it.
 *   memoryLimit  the most that a claim's memory may grow to. Claims do not use it up: each may ask
 *                for all that the GPU can share. 0 means the same as no value.
 *   compute      guaranteed share of the GPU's time in percent; 0 means the same as no value.
 *   computeLimit the most of its time in percent while others want it. As with memoryLimit, claims
 *                do not use it up, and 0 means the same as no value.
 *
 * Amounts are whole MiB, rounded down. A GPU that is lost or degraded has a taint, which keeps new
 * claims away. Pure.
 */
#ifndef SL_CLUSTER_KUBERNETES_CLAIMS_SLICE_H
#define SL_CLUSTER_KUBERNETES_CLAIMS_SLICE_H

#include <jansson.h>

#include "base/error.h"

#define SL_KUBE_DRIVER         "gpu.sluice.dev"
#define SL_KUBE_SLICES_PATH    "/apis/resource.k8s.io/v1/resourceslices"
#define SL_KUBE_TAINT_LOST     "sluice.dev/lost"
#define SL_KUBE_TAINT_DEGRADED "sluice.dev/degraded"

/* Most devices with taints that the API server accepts in a slice. */
#define SL_KUBE_GPUS_MAX 64
/* A DNS label and its NUL. */
#define SL_KUBE_DEVICE_NAME_MAX 64
#define SL_KUBE_QUANTITY_MAX    24
/* Memory factors are in percent: 100 is what the GPU can share. */
#define SL_KUBE_FACTOR_ONE_PCT 100u

enum sl_kube_gpu_state {
	SL_KUBE_GPU_WELL = 0,
	SL_KUBE_GPU_DEGRADED, /* works, but must not get new workloads */
	SL_KUBE_GPU_LOST,
};

struct sl_kube_gpu {
	const char *uuid;  /* as the driver writes it: "GPU-..." */
	const char *model; /* may be NULL, as may the version */
	const char *driver_version;
	int numa_node; /* negative: unknown */
	bool can_swap;
	enum sl_kube_gpu_state state;
	uint64_t shareable_bytes; /* of a lost GPU the last known value */
};

struct sl_kube_inventory {
	const struct sl_kube_gpu *gpus;
	size_t gpu_count;
	unsigned int memory_factor_pct; /* 0: SL_KUBE_FACTOR_ONE_PCT */
};

/* bytes as Kubernetes writes them itself: "16Gi", "16383Mi", "0". Returns buf. */
const char *sl_kube_quantity(uint64_t bytes, char buf[SL_KUBE_QUANTITY_MAX]);

/* The device name of a GPU: "gpu-" and the UUID behind "GPU-" in lower case. If that is not a DNS
 * label it is turned into one with a checksum of the UUID at its end. Returns buf. */
const char *sl_kube_device_name(const char *uuid, char buf[SL_KUBE_DEVICE_NAME_MAX]);

/* The name of node's slice: NODE-gpu.sluice.dev. The caller frees it; NULL when out of memory. */
char *sl_kube_slice_name(const char *node);

/* The spec of node's slice, with pool generation 1, into *out: a new reference. GPUs of less than
 * 2 MiB are left out. 0; -E2BIG for more than SL_KUBE_GPUS_MAX GPUs, -EEXIST for two with one name,
 * -EINVAL for texts that are not UTF-8, -ENOMEM. */
SL_MUST_CHECK int sl_kube_slice_spec(
	json_t **out, const char *node, const struct sl_kube_inventory *inventory);

/* Are two specs equal, apart from the pool's generation and the API server's addition, the time of
 * a taint? */
SL_MUST_CHECK bool sl_kube_slice_is_equal(const json_t *a, const json_t *b);

#endif
