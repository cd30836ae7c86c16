/* gauge - see the header */
#include "cli/simulate/gauge.h"

void sl_gauge_init(struct sl_gauge *gauge, struct sl_arena *arena, uint32_t nodes)
{
	gauge->fragments = 0;
	gauge->by_node = sl_arena_take(arena, nodes * sizeof(*gauge->by_node));
	sl_typical_init(&gauge->typical, arena);
}

void sl_gauge_node(
	struct sl_gauge *gauge, uint32_t number, const struct sl_fit_node *state)
{
	double fragments = state ? sl_typical_fragments(&gauge->typical, state) : 0;

	gauge->fragments += fragments - gauge->by_node[number];
	gauge->by_node[number] = fragments;
}
