/*
 * told - Events on pods, a few however much happens
 *
 * There is one Event for each pod and reason, with the latest message, how often, and when it was
 * first and last: so kubectl describe shows "x12 over 3m". What is new is written at once, what
 * comes again after a pause; one write at a time. Its name follows from pod and
 * reason, and it carries the serial of the latest of sluiced's events in it, so that a driver that
 * starts anew goes on where the one before ended. Loop's thread; as api.h.
 *
 * Needs: get, create, patch events.
 */
#ifndef SL_CLUSTER_KUBERNETES_CLAIMS_TOLD_H
#define SL_CLUSTER_KUBERNETES_CLAIMS_TOLD_H

#include "cluster/kubernetes/api/api.h"
#include "cluster/kubernetes/claims/share.h"

/* Kept; the oldest that is written goes first. */
#define SL_KUBE_TOLD_MAX 2048

struct sl_kube_teller;

struct sl_kube_told {
	const char *namespace, *pod, *uid; /* the pod it is about */
	const char *reason;                /* one word: "SwappedOut" */
	const char *message;
	bool is_warning;
	/* Before this driver started: may have been told already, and counts once. */
	bool is_earlier;
	uint64_t serial;      /* of sluiced's event; 0: it is none */
	uint64_t realtime_ms; /* since 1970 */
};

/* node: its name. pause: between two writes of one Event. 0 or negative errno. */
SL_MUST_CHECK int sl_kube_teller_new(struct sl_kube_teller **out, sd_event *loop,
	struct sl_kube *kube, const char *node, sl_ns pause);
/* Returns NULL; takes it, too. What is not written is lost. */
struct sl_kube_teller *sl_kube_teller_free(struct sl_kube_teller *teller);
/* Never fails: without memory nothing is told. */
void sl_kube_teller_tell(struct sl_kube_teller *teller, const struct sl_kube_told *told);
/* The pod is gone: nothing more is written about it. */
void sl_kube_teller_forget(struct sl_kube_teller *teller, const char *uid);

/* "2026-11-29T01:02:03Z". Returns buf. */
const char *sl_kube_time(uint64_t realtime_ms, char buf[32]);

#endif
