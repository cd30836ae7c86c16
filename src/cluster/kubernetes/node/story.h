/*
 * story - between this node's sluiced and what people see and say in the API
 *
 * While the node has claims, sluiced is asked every second, and at once when an order changed:
 * how each claim's workload stands, which becomes status.devices of the claim (report.h), and what
 * happened to it, which becomes Events on its pods (told.h). The node's pods are watched; what
 * their annotations order (order.h) and sluiced does not do yet it is told: so an order outlives
 * restarts of both, and what is set on the node by hand is set back.
 *
 * A claim's status is written when it differs, at most every 2 s; figures that go on changing are
 * written less and less often, down to every 32 s. Loop's thread.
 *
 * Needs: list, watch pods; get namespaces; patch resourceclaims/status; and as told.h.
 */
#ifndef SL_CLUSTER_KUBERNETES_NODE_STORY_H
#define SL_CLUSTER_KUBERNETES_NODE_STORY_H

#include <jansson.h>

#include "cluster/kubernetes/claims/share.h"

struct sl_kube_node;
struct sl_kube_story;

/* Uses the node's client, line and GPUs. 0 or negative errno. */
SL_MUST_CHECK int sl_kube_story_new(
	struct sl_kube_node *node, struct sl_kube_story **out);
/* Before the node's client and line. Returns NULL; takes it, too. */
struct sl_kube_story *sl_kube_story_free(struct sl_kube_story *story);

/* The claim has been prepared on this node, or is still. claim: as the API server has it. */
void sl_kube_story_claim(
	struct sl_kube_story *story, const json_t *claim, const struct sl_share *share);
/* A container with units of memory: a workload of its pod without a claim. */
void sl_kube_story_units(struct sl_kube_story *story, const struct sl_share *share);
/* It is unprepared, or gone. */
void sl_kube_story_forget(struct sl_kube_story *story, const char *uid);
/* NAMESPACE/NAME of the claims that are prepared here or that a pod of this node uses: a set, a new
 * reference. NULL: the pods are not known yet, or no memory. */
json_t *sl_kube_story_claims(const struct sl_kube_story *story);
/* All claims of the node were told of: what happened to them may be told. */
void sl_kube_story_is_whole(struct sl_kube_story *story);

#endif
