/*
 * scheduler - places pods on nodes with GPUs, for those that name it (schedulerName)
 *
 * All that it decides is decided by the cluster machine (policy/cluster.h); here watches become
 * its events, and its actions calls of the API. It keeps nothing of its own: whatever was
 * allocated is read from claims when it starts. Of several replicas one decides, by a Lease.
 *
 * One thread, the loop's. It ends the loop with an error when it loses its lease.
 */
#ifndef SL_CLUSTER_KUBERNETES_SCHEDULER_SCHEDULER_H
#define SL_CLUSTER_KUBERNETES_SCHEDULER_SCHEDULER_H

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/error.h"
#include "policy/placement/score.h"

#define SL_KUBE_SCHEDULER_NAME "sluice"

/* Texts outlive the scheduler. */
struct sl_kube_scheduler_options {
	const char *kubeconfig; /* NULL: as config.h finds it */
	const char *name;       /* schedulerName of its pods */
	const char *namespace;  /* of the Lease */
	const char *identity;   /* in the Lease; one for each replica */
	sl_ns lease;            /* how long it holds */
	sl_ns park_within;      /* a park without confirmation is taken back; 0: 2 min */
	enum sl_placement_policy placement;
};

struct sl_ks;

/* 0 or negative errno (err). */
SL_MUST_CHECK int sl_kube_scheduler_new(sd_event *loop,
	const struct sl_kube_scheduler_options *options, struct sl_ks **out,
	struct sl_error *err);
/* Nothing new is written; the loop ends once the Lease is given back, or over. */
void sl_kube_scheduler_end(struct sl_ks *ks);
/* Returns NULL; takes it, too. */
struct sl_ks *sl_kube_scheduler_free(struct sl_ks *ks);

#endif
