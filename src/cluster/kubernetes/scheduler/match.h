/*
 * match - which nodes a pod may stand on, by labels and taints
 *
 * The rules of a pod are its nodeSelector, its required node affinity and its tolerations. Pods
 * with
 * equal rules have equal texts, so that each set of rules is compared with each node once. Taints
 * of a node's own state (node.kubernetes.io/...) are not looked at: such a node is closed for all.
 * Pure.
 */
#ifndef SL_CLUSTER_KUBERNETES_SCHEDULER_MATCH_H
#define SL_CLUSTER_KUBERNETES_SCHEDULER_MATCH_H

#include <jansson.h>

#include "base/sl.h"

/* The rules of a pod: a new reference, {} where it has none; NULL: out of memory. */
json_t *sl_match_rules(const json_t *pod);
/* As a text, the same for equal rules; to be freed. NULL: out of memory. */
char *sl_match_text(const json_t *rules);
/* What of a node counts: a new reference. */
json_t *sl_match_node(const json_t *node);
/* May a pod with these rules stand there? node: of sl_match_node(). An operator that is unknown
 * matches nothing. */
SL_MUST_CHECK bool sl_match(const json_t *rules, const json_t *node);

#endif
