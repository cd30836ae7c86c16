/*
 * facts - the values of pods, claims, nodes and slices that a scheduler of GPUs needs
 *
 * Reads objects of the API server into plain values. A rule that this scheduler cannot honour is
 * refused with the reason and the remedy, so a pod is never placed against one of its own rules.
 * Pure; texts are copied, JSON in the values is a new reference.
 */
#ifndef SL_CLUSTER_KUBERNETES_SCHEDULER_FACTS_H
#define SL_CLUSTER_KUBERNETES_SCHEDULER_FACTS_H

#include <jansson.h>

#include "base/error.h"
#include "cluster/kubernetes/scheduler/refusal.h"
#include "policy/placement/fit.h"

#define SL_FACTS_LABEL_PROJECT     "sluice.dev/project"
#define SL_FACTS_LABEL_QUEUE       "kai.scheduler/queue"
#define SL_FACTS_LABEL_RECLAIM     "sluice.dev/on-reclaim"
#define SL_FACTS_LABEL_GANG        "sluice.dev/gang"
#define SL_FACTS_LABEL_GANG_MIN    "sluice.dev/gang-min"
#define SL_FACTS_LABEL_COSCHED     "pod-group.scheduling.sigs.k8s.io/name"
#define SL_FACTS_LABEL_COSCHED_MIN "pod-group.scheduling.sigs.k8s.io/min-available"
#define SL_FACTS_CONDITION_PARKED  "sluice.dev/Parked"
/* Reasons of that condition after an order was cancelled. */
#define SL_FACTS_REASON_NOT_PARKED "NotParked"
#define SL_FACTS_REASON_SILENT     "NodeSilent"

struct sl_facts_pod {
	char uid[SL_FACTS_UID];
	char namespace[SL_FACTS_NAME], name[SL_FACTS_NAME];
	char node[SL_FACTS_NAME];    /* bound to this node, or "" */
	char project[SL_FACTS_NAME]; /* the one it names, or "" */
	char queue[64];              /* KAI's Queue in its label, or "" */
	char gang[SL_FACTS_NAME];    /* in its namespace, or "" */
	char group[SL_FACTS_NAME];   /* PodGroup of scheduling.k8s.io, or "" */
	char claim[SL_FACTS_NAME];   /* in its namespace, or "": none */
	char created[32];            /* RFC 3339: sorts by time */
	uint32_t gang_min;           /* 0: absent */
	uint32_t gpus; /* by limits (extended.h): the scheduler makes `claim` */
	uint32_t cpu_milli, memory_mib;
	int32_t priority;
	bool is_ours; /* it names this scheduler; else only its use of resources is read */
	bool is_over;    /* Succeeded or Failed */
	bool is_leaving; /* being deleted */
	bool is_gated;
	bool lacks_claim;       /* its claim is not made from its template yet */
	bool knows_claim;       /* gpus: its status names the claim */
	bool terminates;        /* on-reclaim: terminate */
	bool is_ordered_parked; /* condition sluice.dev/Parked */
	/* The condition is False because an order was cancelled; its node had not reacted at
	 * all. */
	bool is_taken_back, is_node_silent;
	int64_t order_s; /* time of that condition, CLOCK_REALTIME; 0: absent */
	uint32_t told;   /* checksum of the message of PodScheduled=False; 0: none */
	struct sl_facts_refusal refusal;
};

/* A checksum to recognise a message. 0: it is empty. */
uint32_t sl_facts_checksum(const char *text);

/* Reads a pod; false: it is not one. */
SL_MUST_CHECK bool sl_facts_pod(
	const json_t *pod, const char *scheduler, struct sl_facts_pod *out);

/* Reasons of a claim's condition Parked, written by report.c. */
#define SL_FACTS_REASON_PARKING "Parking"
#define SL_FACTS_REASON_REFUSED "Refused"

#define SL_FACTS_DEVICES  SL_FIT_GPUS_MAX
#define SL_FACTS_REQUESTS SL_FACTS_DEVICES

struct sl_facts_request {
	char name[64];
	uint16_t gpus;
};

struct sl_facts_device {
	char name[64];
	uint64_t memory_mib; /* UINT64_MAX: the device has no shares */
	uint32_t compute_pct;
};

/* Free it with sl_facts_claim_fini(). */
struct sl_facts_claim {
	char uid[SL_FACTS_UID];
	char namespace[SL_FACTS_NAME], name[SL_FACTS_NAME];
	char owner
		[SL_FACTS_UID]; /* the pod for whose limits it was made (extended.h), or "" */
	uint64_t version;       /* resourceVersion */
	/* What it asks for, per GPU. memory_mib 0: all. limit_mib 0: as memory. */
	struct sl_facts_request *request;
	uint32_t requests;
	uint16_t gpus; /* in all requests */
	uint32_t memory_mib, limit_mib, compute_pct, compute_limit_pct;
	bool is_leaving,
		is_protected; /* protected: it has the finalizer of the allocation */
	struct sl_facts_refusal refusal;
	/* Its allocation. count 0 and is_allocated: devices of other drivers. */
	bool is_allocated;
	uint32_t count;
	char pool[SL_FACTS_NAME];
	struct sl_facts_device *device;
	/* Configuration for the driver from its spec, while it is not allocated; or NULL. As JSON
	 * text, which is much smaller. */
	char *config;
	char pod_uid[SL_FACTS_UID]; /* the first that it is reserved for, or "" */
	uint32_t pods;
	bool is_parked, says_parked; /* Parked: is True; is present on all devices */
	bool is_parking,
		is_refused; /* for any device: memory is moving to the host, or cannot move */
};

SL_MUST_CHECK bool sl_facts_claim(const json_t *claim, struct sl_facts_claim *out);
void sl_facts_claim_fini(struct sl_facts_claim *claim);

struct sl_facts_node {
	char name[SL_FACTS_NAME];
	uint32_t cpu_milli, memory_mib, pods; /* allocatable */
	bool is_closed; /* cordoned, not ready, or under pressure: no new pods */
};

SL_MUST_CHECK bool sl_facts_node(const json_t *node, struct sl_facts_node *out);

struct sl_facts_slice {
	char node[SL_FACTS_NAME], pool[SL_FACTS_NAME];
	bool swaps; /* all of its devices do */
	uint32_t count;
	struct {
		char name[64];
		uint32_t memory_mib, limit_mib; /* limit: the most for one claim */
		bool is_closed;                 /* tainted */
	} device[SL_FACTS_DEVICES];
};

/* False: not a slice of this driver for one node. With more than SL_FACTS_DEVICES devices, the
 * first ones. */
SL_MUST_CHECK bool sl_facts_slice(const json_t *slice, struct sl_facts_slice *out);

#endif
