/*
 * report - status.devices of a claim: the state of its workload on each GPU
 *
 *   data        state (in the words of sluice ps), gpu: the device where it is now, "": nowhere;
 *               request, limit, resident and evicted in bytes; resident: on the GPU, contexts and
 *               code included; evicted: on the host
 *   conditions  Ready: sluiced has the workload; Parked: all memory that can leave the GPU has left
 *
 * The status is written by server-side apply, which keeps the entries of other drivers. Pure.
 */
#ifndef SL_CLUSTER_KUBERNETES_CLAIMS_REPORT_H
#define SL_CLUSTER_KUBERNETES_CLAIMS_REPORT_H

#include <jansson.h>

#include "cluster/kubernetes/claims/share.h"

#define SL_KUBE_FIELD_MANAGER "sluice-node"

/* Figures of one GPU. */
struct sl_kube_figures {
	const char *state, *on; /* on: the device where it is, or "" */
	uint64_t request_bytes, limit_bytes, resident_bytes, evicted_bytes;
	bool is_ready;
	enum {
		SL_KUBE_NOT_PARKED = 0,
		SL_KUBE_PARK_REFUSED, /* refusal has the reason */
		SL_KUBE_PARKING,
		SL_KUBE_IS_PARKED,
		SL_KUBE_RESUMING
	} park;
	const char *refusal; /* or NULL */
};

/* The entries of this driver and pool in status.devices: an array; a new reference, NULL without
 * memory. */
json_t *sl_kube_report_read(const json_t *claim, const char *pool);
/* The entries that status.devices should have: one per device of the share. before: the present
 * entries. A condition that has not changed keeps its time; others get now
 * ("2026-01-01T00:00:00Z"). A new reference. */
json_t *sl_kube_report_devices(const struct sl_share *share, const char *pool,
	const struct sl_kube_figures figures[], const json_t *before, const char *now);
/* May something wait for the change? True for a condition, a limit, a request or a GPU. */
SL_MUST_CHECK bool sl_kube_report_is_urgent(const json_t *before, const json_t *after);
/* The object to apply to the claim's status. devices is borrowed. A new reference. */
json_t *sl_kube_report_patch(const struct sl_share *share, json_t *devices);

#endif
