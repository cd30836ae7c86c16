/*
 * claimspec - turns a container's ask into the spec of a ResourceClaim, within bounds
 *
 * A claim names bytes, and an annotation may name a part of a GPU; so the sizes of the cluster's
 * GPUs matter. GPUs that differ by less than 5% count as one size, with the smallest memory, since
 * the same model never has exactly the same memory. With several sizes the claim has an alternative
 * for each (firstAvailable), the smallest first.
 *
 * A namespace may have bounds, by annotations:
 *   sluice.dev/default-limit  for annotated pods without a limit: "12Gi", or a part such as "0.8"
 *   sluice.dev/max-request    the most of a claim's memory, per GPU
 *   sluice.dev/max-limit      the most of its memoryLimit
 * Pure.
 */
#ifndef SL_CLUSTER_KUBERNETES_CLAIMS_CLAIMSPEC_H
#define SL_CLUSTER_KUBERNETES_CLAIMS_CLAIMSPEC_H

#include "cluster/kubernetes/claims/ask.h"

#define SL_KUBE_CLASS "gpu.sluice.dev"

/* Most alternatives that the API server accepts in a request. */
#define SL_SIZES_MAX 8

struct sl_gpu_room {
	uint64_t memory_bytes; /* the device's capacity for all claims */
	uint64_t own_bytes;    /* the most for one claim */
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
	const char *namespace;           /* for messages; the object owns it */
};

/* Reads the GPUs of a ResourceSlice of Sluice, at most max; returns how many. */
size_t sl_gpu_rooms_read(const json_t *slice, struct sl_gpu_room *out, size_t max);
/* Sorts rooms. */
void sl_sizes_group(struct sl_gpu_room *rooms, size_t count, struct sl_sizes *out);

/* The bounds of a Namespace; NULL: none. False: an annotation is not an amount (err). */
SL_MUST_CHECK bool sl_bounds_read(
	const json_t *namespace, struct sl_bounds *out, struct sl_error *err);

/* The spec for ask, a new reference; NULL: no claim can express ask (err has the reason and what to
 * write). note is set if the claim is valid but no present GPU has space for it. */
json_t *sl_claimspec_new(const struct sl_ask *ask, const struct sl_bounds *bounds,
	const struct sl_sizes *sizes, struct sl_error *note, struct sl_error *err);
/* The template for a spec (taken) in a namespace, named by a hash of the spec. NULL: out of
 * memory. */
json_t *sl_claimspec_template(const char *namespace, json_t *spec);
/* Does the API server have this spec? It may write an amount in another form. */
SL_MUST_CHECK bool sl_claimspec_is_same(const json_t *spec, const json_t *stored);

/* Does a claim's spec ask for Sluice's class? */
SL_MUST_CHECK bool sl_claimspec_is_ours(const json_t *spec);
/* Does a claim that a user wrote for Sluice's class keep the bounds? Outcomes as
 * sl_claimspec_new. */
SL_MUST_CHECK bool sl_claimspec_check(const json_t *spec, const struct sl_bounds *bounds,
	const struct sl_sizes *sizes, struct sl_error *note, struct sl_error *err);

#endif
