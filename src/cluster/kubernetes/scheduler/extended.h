/*
 * extended - GPUs that a pod asks for by limits: {sluice.dev/gpu: 1}
 *
 * sluice.dev/gpu is an extended resource that stands for a DeviceClass (KEP-5004). The pod names no
 * claim, so the scheduler makes one: the pod owns it, an annotation marks it, and the pod's status
 * maps containers to its requests. The claim's name derives from the pod's uid, so a claim whose
 * creation was not answered is found again and never made twice.
 *
 * Each lasting container has its own request. Other init containers have ended before, so they use
 * the requests of the containers behind them. Pure.
 */
#ifndef SL_CLUSTER_KUBERNETES_SCHEDULER_EXTENDED_H
#define SL_CLUSTER_KUBERNETES_SCHEDULER_EXTENDED_H

#include <jansson.h>

#include "cluster/kubernetes/scheduler/refusal.h"

#define SL_EXTENDED_ANNOTATION "resource.kubernetes.io/extended-resource-claim"
#define SL_EXTENDED_NAME       64

/* Is it a resource that stands for Sluice's class? */
SL_MUST_CHECK bool sl_extended_is_gpu(const char *resource);
/* Number of GPUs that the pod's spec asks for; 0: none, or refused. *out: NULL, or a new reference
 * to {"requests": for the claim, "requestMappings": for the pod's status}. out may be NULL. */
uint32_t sl_extended_read(
	const json_t *spec, json_t **out, struct sl_facts_refusal *refusal);
/* The claim's name. */
void sl_extended_name(const char *pod, const char *uid, char name[SL_EXTENDED_NAME]);

#endif
