/*
 * extended - GPUs that a pod asks for by limits: {sluice.dev/gpu: 1}
 *
 * An extended resource that is the other name of a DeviceClass (KEP-5004). The scheduler makes the
 * ResourceClaim that the pod does not name: it belongs to the pod, has an annotation that says what
 * it is, and the pod's status says which container uses which of its requests. Its name comes of
 * the pod's uid, so a claim that was made without an answer is found again, and never made twice.
 *
 * Each container that stays has a request of its own. Other init containers use those of the
 * containers behind them, as they have ended by then. Pure.
 */
#ifndef SL_CLUSTER_KUBERNETES_SCHEDULER_EXTENDED_H
#define SL_CLUSTER_KUBERNETES_SCHEDULER_EXTENDED_H

#include <jansson.h>

#include "cluster/kubernetes/scheduler/refusal.h"

#define SL_EXTENDED_ANNOTATION "resource.kubernetes.io/extended-resource-claim"
#define SL_EXTENDED_NAME       64

/* Is it one of those that stand for our class? */
SL_MUST_CHECK bool sl_extended_is_gpu(const char *resource);
/* How many GPUs a pod asks for, by the spec; 0: none, or it is refused. *out: NULL, or a reference
 * to {"requests": of the claim, "requestMappings": of the pod's status}. out may be NULL. */
uint32_t sl_extended_read(
	const json_t *spec, json_t **out, struct sl_facts_refusal *refusal);
/* Of the claim. */
void sl_extended_name(const char *pod, const char *uid, char name[SL_EXTENDED_NAME]);

#endif
