/*
 * scheduler - places pods that name it (schedulerName) on nodes with GPUs
 *
 * The cluster machine (policy/cluster.h) makes every decision. Watches become the machine's events,
 * and its actions become calls of the API. The scheduler stores nothing: at its start it reads all
 * allocations from claims. Of several replicas one decides, by a Lease.
 *
 * One thread, the loop's. The scheduler ends the loop with an error when it loses its Lease.
 */
#ifndef SL_CLUSTER_KUBERNETES_SCHEDULER_SCHEDULER_H
#define SL_CLUSTER_KUBERNETES_SCHEDULER_SCHEDULER_H

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/error.h"
#include "policy/placement/score.h"

#define SL_KUBE_SCHEDULER_NAME "sluice"

/* Texts must stay valid as long as the scheduler. */
struct sl_kube_scheduler_options {
	const char *kubeconfig; /* NULL: as config.h finds it */
	const char *name;       /* schedulerName of its pods */
	const char *namespace;  /* namespace of the Lease */
	const char *identity;   /* in the Lease; one for each replica */
	sl_ns lease;            /* its duration */
	sl_ns park_within; /* a park without confirmation is cancelled after this; 0: 2 min */
	enum sl_placement_policy placement;
};

struct sl_ks;

/* 0 or negative errno (err). */
SL_MUST_CHECK int sl_kube_scheduler_new(sd_event *loop,
	const struct sl_kube_scheduler_options *options, struct sl_ks **out,
	struct sl_error *err);
/* Stops new writes; the loop ends once the Lease is given up or over. */
void sl_kube_scheduler_end(struct sl_ks *ks);
/* Returns NULL; accepts NULL. */
struct sl_ks *sl_kube_scheduler_free(struct sl_ks *ks);

#endif
