/*
 * facts - what pods, claims, nodes and slices of the API say to a scheduler of GPUs
 *
 * Reads objects as the API server has them into plain values. What this scheduler cannot honour is
 * refused with the reason and the remedy, so that a pod is never placed where one of its own rules
 * forbids it. Pure; texts are copied, JSON in the values is a reference of their own.
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
/* Reasons of that condition when an order was taken back. */
#define SL_FACTS_REASON_NOT_PARKED "NotParked"
#define SL_FACTS_REASON_SILENT     "NodeSilent"

struct sl_facts_pod {
	char uid[SL_FACTS_UID];
	char namespace[SL_FACTS_NAME], name[SL_FACTS_NAME];
	char node[SL_FACTS_NAME];    /* it is bound there, or "" */
	char project[SL_FACTS_NAME]; /* that it names itself, or "" */
	char queue[64];              /* KAI's Queue that its label names, or "" */
	char gang[SL_FACTS_NAME];    /* in its namespace, or "" */
	char group[SL_FACTS_NAME];   /* PodGroup of scheduling.k8s.io, or "" */
	char claim[SL_FACTS_NAME];   /* in its namespace, or "": none */
	char created[32];            /* RFC 3339: sorts by time */
	uint32_t gang_min;           /* 0: not said */
	uint32_t gpus; /* by limits (extended.h): `claim` is the scheduler's to make */
	uint32_t cpu_milli, memory_mib;
	int32_t priority;
	bool is_ours;    /* it names this scheduler; else only what it takes is read */
	bool is_over;    /* Succeeded or Failed */
	bool is_leaving; /* it is being deleted */
	bool is_gated;
	bool lacks_claim;       /* its claim is still to be made from its template */
	bool knows_claim;       /* gpus: its status names the claim */
	bool terminates;        /* on-reclaim: terminate */
	bool is_ordered_parked; /* condition sluice.dev/Parked */
	/* It is False, for an order was taken back; and its node had said nothing at all. */
	bool is_taken_back, is_node_silent;
	int64_t order_s; /* when the condition became so, of CLOCK_REALTIME; 0: not said */
	uint32_t told;   /* checksum of the message of PodScheduled=False; 0: none */
	struct sl_facts_refusal refusal;
};

/* Of a message, to know it again. 0: it is empty. */
uint32_t sl_facts_checksum(const char *text);

/* Of a pod; false: it is none. */
SL_MUST_CHECK bool sl_facts_pod(
	const json_t *pod, const char *scheduler, struct sl_facts_pod *out);

/* Reasons of a claim's condition Parked, as report.c writes it. */
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

/* To be given back by sl_facts_claim_fini(). */
struct sl_facts_claim {
	char uid[SL_FACTS_UID];
	char namespace[SL_FACTS_NAME], name[SL_FACTS_NAME];
	char owner
		[SL_FACTS_UID]; /* the pod whose limits it was made for (extended.h), or "" */
	uint64_t version;       /* resourceVersion */
	/* What it asks for: of each of `gpus` GPUs. memory_mib 0: all. limit_mib 0: as memory. */
	struct sl_facts_request *request;
	uint32_t requests;
	uint16_t gpus; /* of all requests */
	uint32_t memory_mib, limit_mib, compute_pct;
	bool is_leaving,
		is_protected; /* protected: it has the finalizer of the allocation */
	struct sl_facts_refusal refusal;
	/* What it has. count 0 and is_allocated: devices of other drivers. */
	bool is_allocated;
	uint32_t count;
	char pool[SL_FACTS_NAME];
	struct sl_facts_device *device;
	/* JSON of its spec's, for the driver, while it has nothing; or NULL. As a text, which is
	 * much smaller. */
	char *config;
	char pod_uid[SL_FACTS_UID]; /* the first that it is reserved for, or "" */
	uint32_t pods;
	bool is_parked, says_parked; /* status.devices: Parked is True; is there on all */
	bool is_parking,
		is_refused; /* memory is on its way to the host, or cannot go, of any */
};

SL_MUST_CHECK bool sl_facts_claim(const json_t *claim, struct sl_facts_claim *out);
void sl_facts_claim_fini(struct sl_facts_claim *claim);

struct sl_facts_node {
	char name[SL_FACTS_NAME];
	uint32_t cpu_milli, memory_mib, pods; /* allocatable */
	bool is_closed; /* cordoned, not ready, or under pressure: nothing new */
};

SL_MUST_CHECK bool sl_facts_node(const json_t *node, struct sl_facts_node *out);

struct sl_facts_slice {
	char node[SL_FACTS_NAME], pool[SL_FACTS_NAME];
	bool swaps; /* all of its devices do */
	uint32_t count;
	struct {
		char name[64];
		uint32_t memory_mib,
			limit_mib; /* limit: the most that a claim may have */
		bool is_closed;    /* tainted */
	} device[SL_FACTS_DEVICES];
};

/* False: it is no slice of our driver for one node. More than SL_FACTS_DEVICES: the first ones. */
SL_MUST_CHECK bool sl_facts_slice(const json_t *slice, struct sl_facts_slice *out);

#endif
