/*
 * story - connects this node's sluiced with the API: states and events out, orders in
 *
 * While the node has claims, sluiced is asked every second, and at once after a new order. The
 * state of each claim's workload becomes the claim's status.devices (report.h); its events become
 * Events on the pods (told.h). The node's pods are watched. If their annotations have an order
 * (order.h) that sluiced does not follow yet, the order is sent to sluiced. So an order survives
 * restarts of both, and overrides settings made by hand on the node.
 *
 * A claim's status is written when it differs, at most every 2 s; figures that keep changing are
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
/* Before the node's client and line are freed. Returns NULL; accepts NULL. */
struct sl_kube_story *sl_kube_story_free(struct sl_kube_story *story);

/* The claim is prepared on this node. claim: the API server's object. */
void sl_kube_story_claim(
	struct sl_kube_story *story, const json_t *claim, const struct sl_share *share);
/* A container with units of memory: a workload of its pod without a claim. */
void sl_kube_story_units(struct sl_kube_story *story, const struct sl_share *share);
/* It is unprepared or gone. */
void sl_kube_story_forget(struct sl_kube_story *story, const char *uid);
/* NAMESPACE/NAME of the claims that are prepared here or that a pod of this node uses: a set, a new
 * reference. NULL: the pods are not known yet, or out of memory. */
json_t *sl_kube_story_claims(const struct sl_kube_story *story);
/* All claims of the node are known, so their events may be reported. */
void sl_kube_story_is_whole(struct sl_kube_story *story);

#endif
