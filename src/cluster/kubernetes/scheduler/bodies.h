/*
 * bodies - the bodies of the scheduler's writes to the API
 *
 * Each function makes the body of one call; a new reference, NULL when out of memory. Pure, but for
 * the random numbers in the ids of shares.
 */
#ifndef SL_CLUSTER_KUBERNETES_SCHEDULER_BODIES_H
#define SL_CLUSTER_KUBERNETES_SCHEDULER_BODIES_H

#include <jansson.h>

#include "cluster/kubernetes/scheduler/facts.h"

/* One GPU of an allocation. */
struct sl_bodies_device {
	const char *name;
	const char *request;            /* its name in the claim */
	uint32_t memory_mib, limit_mib; /* limit 0: none was asked for */
	uint32_t compute_pct, compute_limit_pct;
};

struct sl_bodies_allocation {
	const char *node, *pool;
	const struct sl_bodies_device *devices;
	size_t count;
	/* The pod that gets it. */
	const char *pod, *pod_uid;
	/* The claim as it was read: a write to another one, or to a newer version, is a
	 * conflict. */
	const char *claim_uid;
	uint64_t version;     /* 0: any */
	const json_t *config; /* of the claim's spec, or NULL */
};

/* POST of the claim for the GPUs in a pod's limits; extended: from extended.h. */
json_t *sl_bodies_claim(const struct sl_facts_pod *pod, const json_t *extended);
/* PATCH (strategic) of the pod's status: names that claim. */
json_t *sl_bodies_know_claim(const struct sl_facts_pod *pod, const json_t *extended);
/* PATCH (strategic) of the claim: a finalizer keeps it while it is allocated. */
json_t *sl_bodies_protect(const char *claim_uid, uint64_t version);
/* PATCH (merge) of the claim's status. */
json_t *sl_bodies_allocate(const struct sl_bodies_allocation *allocation);
/* POST to the pod's binding. */
json_t *sl_bodies_bind(
	const char *namespace, const char *pod, const char *uid, const char *node);
/* POST to the pod's eviction. */
json_t *sl_bodies_evict(const char *namespace, const char *pod, const char *uid);
/* PATCH (strategic) of the pod's status: one condition. now_s: seconds since 1970. */
json_t *sl_bodies_condition(const char *uid, const char *type, bool is_true,
	const char *reason, const char *message, int64_t now_s);

#endif
