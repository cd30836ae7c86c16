/*
 * claimspec - from what a container asks for to the spec of a ResourceClaim, and its bounds
 *
 * A claim names bytes, and an annotation may name a part of a GPU; so the sizes of the cluster's
 * GPUs decide. GPUs that differ by less than 5% are one size, of which the smallest counts: the
 * same model never has quite the same memory. With several sizes the claim has an alternative for
 * each (firstAvailable), the smallest first.
 *
 * A namespace may have bounds, by annotations:
 *   sluice.dev/default-limit  for annotated pods that give none: "12Gi", or a part such as "0.8"
 *   sluice.dev/max-request    the most of a claim's memory, per GPU
 *   sluice.dev/max-limit      the most of its memoryLimit
 * Pure.
 */
#ifndef SL_CLUSTER_KUBERNETES_CLAIMS_CLAIMSPEC_H
#define SL_CLUSTER_KUBERNETES_CLAIMS_CLAIMSPEC_H

#include "cluster/kubernetes/claims/ask.h"

#define SL_KUBE_CLASS "gpu.sluice.dev"

/* Alternatives of a request that the API server takes. */
#define SL_SIZES_MAX 8

struct sl_gpu_room {
	uint64_t memory_bytes; /* what the device offers to all claims */
	uint64_t own_bytes;    /* the most that one claim may have of it */
};

struct sl_size {
	uint64_t least_bytes, most_bytes; /* of memory_bytes */
	uint64_t own_bytes;               /* the smallest */
};

/* In ascending order. */
struct sl_sizes {
	size_t count;
	struct sl_size of[SL_SIZES_MAX];
};

struct sl_bounds {
	struct sl_amount default_limit;  /* or UNSET */
	uint64_t max_request, max_limit; /* UINT64_MAX: none */
	const char *namespace;           /* for messages; the object's */
};

/* The GPUs of a ResourceSlice of ours, at most max; returns how many. */
size_t sl_gpu_rooms_read(const json_t *slice, struct sl_gpu_room *out, size_t max);
/* Sorts rooms. */
void sl_sizes_group(struct sl_gpu_room *rooms, size_t count, struct sl_sizes *out);

/* Of a Namespace; NULL: no bounds. False: an annotation is no amount (err). */
SL_MUST_CHECK bool sl_bounds_read(
	const json_t *namespace, struct sl_bounds *out, struct sl_error *err);

/* The spec for ask, a new reference; NULL: it cannot be (err says why and what to write). note is
 * set where the claim can be and no GPU of today has room for it. */
json_t *sl_claimspec_new(const struct sl_ask *ask, const struct sl_bounds *bounds,
	const struct sl_sizes *sizes, struct sl_error *note, struct sl_error *err);
/* The template for a spec (taken) in a namespace, named by the spec's content. NULL: no memory. */
json_t *sl_claimspec_template(const char *namespace, json_t *spec);
/* Whether a spec of ours is what the API server has, which may write an amount otherwise. */
SL_MUST_CHECK bool sl_claimspec_is_same(const json_t *spec, const json_t *stored);

/* Whether a claim's spec asks for our class at all. */
SL_MUST_CHECK bool sl_claimspec_is_ours(const json_t *spec);
/* Whether what users wrote of our class keeps the bounds. Outcomes as sl_claimspec_new. */
SL_MUST_CHECK bool sl_claimspec_check(const json_t *spec, const struct sl_bounds *bounds,
	const struct sl_sizes *sizes, struct sl_error *note, struct sl_error *err);

#endif
