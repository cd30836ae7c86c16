/*
 * node_resolve - what is done about a collision besides waiting
 *
 * TO DO: the resolver `priority`, the last resort, and what both must know of clients.
 */
#include "policy/mutant.h"
#include "policy/node_state.h"

void sl_node_on_pulse(struct sl_node *node, const struct sl_event *event)
{
}

void sl_node_on_condition(struct sl_node *node, const struct sl_event *event)
{
}

struct sl_node_client_view sl_node_client(const struct sl_node *node, uint64_t client)
{
	return (struct sl_node_client_view){0};
}
