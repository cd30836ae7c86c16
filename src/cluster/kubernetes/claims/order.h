/*
 * order - orders of users for a running pod's workload, from its annotations
 *
 *   sluice.dev/limit: 12Gi     the new limit of each GPU; without it the claim's own counts
 *   sluice.dev/park: "true"    its memory leaves the GPU until the annotation goes or changes
 *
 * The pod's condition sluice.dev/Parked with status True parks it, too; writing that needs the
 * right to pods/status. If several pods use one claim, the first limit by pod name counts, and each
 * pod may park. Pure.
 */
#ifndef SL_CLUSTER_KUBERNETES_CLAIMS_ORDER_H
#define SL_CLUSTER_KUBERNETES_CLAIMS_ORDER_H

#include <jansson.h>

#include "base/error.h"

#define SL_KUBE_LIMIT_ANNOTATION "sluice.dev/limit"
#define SL_KUBE_PARK_ANNOTATION  "sluice.dev/park"
#define SL_KUBE_MOVE_ANNOTATION  "sluice.dev/move"
#define SL_KUBE_PARKED_CONDITION "sluice.dev/Parked"

/* Reads the limit in text, for a workload with that request on GPUs that can share most_bytes (0:
 * unknown), in a namespace whose max-limit is bound (UINT64_MAX: none). False: the limit is not
 * possible; err has the reason and what to write. */
SL_MUST_CHECK bool sl_kube_order_limit(const char *text, uint64_t request_bytes,
	uint64_t most_bytes, uint64_t bound_bytes, uint64_t *limit_bytes,
	struct sl_error *err);

/* The namespace's bound of limits; UINT64_MAX: none. False: it is not an amount (err). */
SL_MUST_CHECK bool sl_kube_order_bound(
	const json_t *namespace, uint64_t *bound_bytes, struct sl_error *err);

/* Is the pod ordered to park? An annotation that is neither true nor false counts as false and sets
 * err. */
SL_MUST_CHECK bool sl_kube_order_park(const json_t *pod, struct sl_error *err);

/* May containers be given other GPUs' device nodes, by this annotation of a claim or a namespace?
 * No if it says off. A value other than on and off sets err. */
SL_MUST_CHECK bool sl_kube_order_moves(const json_t *object, struct sl_error *err);

/* The names of the claims that a pod uses, an array: a new reference, NULL without memory. */
json_t *sl_kube_order_claims(const json_t *pod);

#endif
