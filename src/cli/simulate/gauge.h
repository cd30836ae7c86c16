/*
 * gauge - how fragmented a cluster is, node by node
 *
 * Fragmentation is the idle capacity that a typical job cannot use, as a mean over typical jobs
 * (policy/placement/typical.h). The gauge is told all typical jobs before it measures.
 */
#ifndef SL_CLI_SIMULATE_GAUGE_H
#define SL_CLI_SIMULATE_GAUGE_H

#include "policy/placement/typical.h"

struct sl_gauge {
	struct sl_typical typical;
	double fragments, *by_node; /* thousandths of a GPU */
};

void sl_gauge_init(struct sl_gauge *gauge, struct sl_arena *arena, uint32_t nodes);
/* Sets the state of a node; NULL: the node is gone. */
void sl_gauge_node(
	struct sl_gauge *gauge, uint32_t number, const struct sl_fit_node *state);

#endif
