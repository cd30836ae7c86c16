/*
 * order - what users want of a running pod's workload, as its annotations say
 *
 *   sluice.dev/limit: 12Gi     the new limit of each GPU; without it the claim's own counts
 *   sluice.dev/park: "true"    its memory leaves the GPU until the annotation goes or changes
 *
 * Besides, the pod's condition sluice.dev/Parked with status True parks it; writing that takes the
 * right to pods/status. Several pods may use one claim: the limit of the first by name that has one
 * counts, and each may park. Pure.
 */
#ifndef SL_CLUSTER_KUBERNETES_CLAIMS_ORDER_H
#define SL_CLUSTER_KUBERNETES_CLAIMS_ORDER_H

#include <jansson.h>

#include "base/error.h"

#define SL_KUBE_LIMIT_ANNOTATION "sluice.dev/limit"
#define SL_KUBE_PARK_ANNOTATION  "sluice.dev/park"
#define SL_KUBE_PARKED_CONDITION "sluice.dev/Parked"

/* The limit that text asks for, of a workload with that request on GPUs that can share most_bytes
 * (0: not known), in a namespace whose bound that is (UINT64_MAX: none). False: it cannot be; err
 * says why and what to write. */
SL_MUST_CHECK bool sl_kube_order_limit(const char *text, uint64_t request_bytes,
	uint64_t most_bytes, uint64_t bound_bytes, uint64_t *limit_bytes,
	struct sl_error *err);

/* The bound of limits in a namespace; UINT64_MAX: it has none. False: it is no amount (err). */
SL_MUST_CHECK bool sl_kube_order_bound(
	const json_t *namespace, uint64_t *bound_bytes, struct sl_error *err);

/* Whether the pod is ordered to be parked. err, where the annotation is neither true nor false: it
 * counts as false. */
SL_MUST_CHECK bool sl_kube_order_park(const json_t *pod, struct sl_error *err);

/* The names of the claims that a pod uses, an array: a new reference, NULL without memory. */
json_t *sl_kube_order_claims(const json_t *pod);

#endif
