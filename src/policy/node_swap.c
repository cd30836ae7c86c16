/*
 * node_swap - what is on the host, and who moves there or back
 *
 * Only takes note so far: orders are not given yet.
 */
#include "policy/node_state.h"

void sl_node_on_pool_size(struct sl_node *node, const struct sl_event *event)
{
}

void sl_node_on_link_cost(struct sl_node *node, const struct sl_event *event)
{
}

void sl_node_on_workload_park(struct sl_node *node, const struct sl_event *event)
{
}

void sl_node_on_workload_resume(struct sl_node *node, const struct sl_event *event)
{
}

void sl_node_on_client_evicted(struct sl_node *node, const struct sl_event *event)
{
}

void sl_node_on_want(struct sl_node *node, const struct sl_event *event)
{
}

void sl_node_on_done(struct sl_node *node, const struct sl_event *event)
{
}

void sl_node_on_store(struct sl_node *node, const struct sl_event *event)
{
}

struct sl_node_pool_view sl_node_pool(const struct sl_node *node)
{
	return (struct sl_node_pool_view){.pool_bytes = node->pool.pool_bytes,
		.slack_bytes = node->pool.slack_bytes};
}
