/*
 * match - which nodes a pod may be placed on, by labels and taints
 *
 * The rules of a pod are its nodeSelector, its required node affinity and its tolerations. Equal
 * rules are written as equal texts, so each set of rules is compared with each node once. Taints
 * that state the condition of a node (node.kubernetes.io/...) are ignored here: such a node is
 * closed for all pods. Pure.
 */
#ifndef SL_CLUSTER_KUBERNETES_SCHEDULER_MATCH_H
#define SL_CLUSTER_KUBERNETES_SCHEDULER_MATCH_H

#include <jansson.h>

#include "base/sl.h"

/* The rules of a pod: a new reference, {} if it has none; NULL: out of memory. */
json_t *sl_match_rules(const json_t *pod);
/* Their text, the same for equal rules; the caller frees it. NULL: out of memory. */
char *sl_match_text(const json_t *rules);
/* The properties of a node that count: a new reference. */
json_t *sl_match_node(const json_t *node);
/* May a pod with these rules be placed there? node: from sl_match_node(). An unknown operator
 * matches nothing. */
SL_MUST_CHECK bool sl_match(const json_t *rules, const json_t *node);

#endif
