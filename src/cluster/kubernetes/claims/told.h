/*
 * told - Events on pods, few of them however much happens
 *
 * There is one Event per pod and reason, with the latest message, a count, and the times of the
 * first and last: kubectl describe shows "x12 over 3m". A new Event is written at once, a repeated
 * one after a pause; one write at a time. The Event's name derives from pod and reason. The Event
 * carries the serial of the latest sluiced event in it, so a restarted driver continues after that
 * event. Loop's thread; as api.h.
 *
 * Needs: get, create, patch events.
 */
#ifndef SL_CLUSTER_KUBERNETES_CLAIMS_TOLD_H
#define SL_CLUSTER_KUBERNETES_CLAIMS_TOLD_H

#include "cluster/kubernetes/api/api.h"
#include "cluster/kubernetes/claims/share.h"

/* Most tales kept; the oldest written one is dropped first. */
#define SL_KUBE_TOLD_MAX 2048

struct sl_kube_teller;

struct sl_kube_told {
	const char *namespace, *pod, *uid; /* the pod that it is about */
	const char *reason;                /* one word: "SwappedOut" */
	const char *message;
	bool is_warning;
	/* From before this driver started: may have been reported already, and counts once. */
	bool is_earlier;
	uint64_t serial;      /* of sluiced's event; 0: there is none */
	uint64_t realtime_ms; /* since 1970 */
};

/* node: its name. pause: between two writes of one Event. 0 or negative errno. */
SL_MUST_CHECK int sl_kube_teller_new(struct sl_kube_teller **out, sd_event *loop,
	struct sl_kube *kube, const char *node, sl_ns pause);
/* Returns NULL; accepts NULL. Unwritten tales are lost. */
struct sl_kube_teller *sl_kube_teller_free(struct sl_kube_teller *teller);
/* Never fails: without memory the report is dropped. */
void sl_kube_teller_tell(struct sl_kube_teller *teller, const struct sl_kube_told *told);
/* The pod is gone: drops its tales. */
void sl_kube_teller_forget(struct sl_kube_teller *teller, const char *uid);

/* "2026-11-29T01:02:03Z". Returns buf. */
const char *sl_kube_time(uint64_t realtime_ms, char buf[32]);

#endif
