/*
 * quiet - a plan that does not ask for another one at once leaves nothing to do
 *
 * The machine plans twice more at the same instant; its state is put back afterwards. The first
 * plan may still do what was due later. If it does not ask for another plan at once, the second one
 * must do nothing: anything else had been forgotten. A POOL_SIZE with the same size makes the
 * machine plan and changes no fact.
 */
#include "world.h"

#include <stdio.h>

#include "../common/trace.h"

struct plan {
	uint32_t deeds;
	struct sl_action first; /* of these */
	sl_ns wake;             /* last value that was told */
};

static void look(void *context, const struct sl_action *action)
{
	struct plan *plan = context;

	if (action->type == SL_ACTION_WAKE_AT)
		plan->wake = action->wake_at.at;
	else if (!plan->deeds++)
		plan->first = *action;
}

static struct plan plan_once(struct explore *x)
{
	struct sl_event event = {.type = SL_EVENT_POOL_SIZE,
		.pool_size = {.pool_bytes = explore_bytes(x->world->pool)}};
	struct plan plan = {.wake = SL_NS_NEVER};

	sl_node_step(x->node, x->s.now, &event, look, &plan);
	return plan;
}

void explore_judge_quiet(struct explore *x)
{
	struct sl_arena_image *image = sl_arena_save(x->arena);
	struct plan first = plan_once(x), second = {0};
	char text[200] = {0};
	FILE *out;

	if (first.wake > x->s.now)
		second = plan_once(x);
	if (second.deeds) {
		out = fmemopen(text, sizeof(text) - 1, "w");
		if (out) {
			sl_trace_print_action(&second.first, out);
			(void)fclose(out);
		}
		explore_break(x, EXPLORE_QUIET, "planned twice at once: %s", text);
	}
	sl_arena_restore(x->arena, image);
}
