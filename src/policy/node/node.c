/*
 * node - events in, actions out
 *
 * A step handles its event, then plans if the event or the time may have changed the plan. See
 * docs/decisions/0037-claims-and-seats.md.
 */
#include "policy/node.h"

#include "policy/node/internal.h"
#include "policy/node/plan.h"
#include "policy/verdicts/turns.h"

/* Until the first CONFIG: the defaults of design.md section 4. */
static const struct sl_event defaults = {.type = SL_EVENT_CONFIG,
	.config = {.chain = SL_RESOLVER_WAIT,
		.wait_max = 60 * SL_S,
		.head_pass = 1 * SL_S,
		.idle_wait = 1 * SL_S,
		.recover_wait = 2 * SL_S,
		.stop_idle = 600 * SL_S,
		.stop_grace = 10 * SL_S,
		.untakeable_after = 30 * SL_S,
		.turn_max = SL_TURNS_DEFAULT,
		.evict_drain = 2 * SL_S}};

_Static_assert(
	SL_NODE_GPUS_MAX == SL_LEDGER_GPUS_MAX, "the ledger has room for every GPU");

#ifdef SL_MUTANTS
int sl_mutant_now;
#endif

static bool changes_what_is_there(enum sl_action_type type)
{
	return type == SL_ACTION_GRANT || type == SL_ACTION_DENY ||
	       type == SL_ACTION_EVICT || type == SL_ACTION_RESTORE ||
	       type == SL_ACTION_ABORT || type == SL_ACTION_STOP;
}

uint64_t sl_node_emit(struct sl_node_step *step, struct sl_action action)
{
	action.id = ++step->node->next_action;
	step->changes |= changes_what_is_there(action.type);
	step->emit(step->context, &action);
	return action.id;
}

void sl_node_note_because(
	struct sl_node_step *step, const struct sl_node_because *because)
{
	sl_node_emit(step, (struct sl_action){.type = SL_ACTION_NOTE,
				   .note = {.reason = because->reason,
					   .gpu = because->gpu,
					   .workload = because->workload,
					   .other = because->other,
					   .bytes = because->bytes,
					   .available_bytes = because->available_bytes,
					   .other_bytes = because->other_bytes,
					   .span = because->span,
					   .client = because->client}});
}

void sl_node_note(struct sl_node_step *step, enum sl_reason reason, uint32_t gpu,
	uint64_t workload, uint64_t other, uint64_t bytes)
{
	sl_node_note_because(step, &(struct sl_node_because){.reason = reason,
					   .gpu = gpu,
					   .workload = workload,
					   .other = other,
					   .bytes = bytes});
}

struct sl_node_workload *sl_node_find_workload(const struct sl_node *node, uint64_t id)
{
	struct sl_index_node *found = sl_index_find(&node->workloads, id);

	return found ? SL_NODE_ENTRY(found, sl_node_workload) : NULL;
}

struct sl_node_client *sl_node_find_client(const struct sl_node *node, uint64_t id)
{
	struct sl_index_node *found = sl_index_find(&node->clients, id);

	return found ? SL_NODE_ENTRY(found, sl_node_client) : NULL;
}

struct sl_node *sl_node_new(struct sl_arena *arena)
{
	struct sl_node *node = sl_arena_take(arena, sizeof(*node));

	node->arena = arena;
	node->config = defaults;
	node->told_due = SL_NS_NEVER;
	sl_index_init(&node->workloads, arena);
	sl_index_init(&node->clients, arena);
	sl_index_init(&node->strangers, arena);
	sl_list_init(&node->all_workloads);
	sl_list_init(&node->spare_demands);
	node->plan = sl_arena_take(arena, sizeof(*node->plan));
	return node;
}

/* Only time has passed: plan if that is due. */
void sl_node_on_time(struct sl_node_step *step, const struct sl_event *event)
{
	step->plans |= step->now >= step->node->told_due;
	(void)event;
}

void sl_node_tell_left(struct sl_node_step *step)
{
	if (step->left.type == SL_ACTION_LEFT)
		sl_node_emit(step, step->left);
	step->left.type = SL_ACTIONS;
}

static void (*const handlers[SL_EVENTS])(
	struct sl_node_step *step, const struct sl_event *event) = {
#define SL_EVENT(NAME, name, fields) [SL_EVENT_##NAME] = sl_node_on_##name,
#include "policy/node/event.def"
#undef SL_EVENT
};

void sl_node_steps(struct sl_node *node, sl_ns now, const struct sl_event events[],
	uint32_t count, sl_action_fn emit, void *context)
{
	struct sl_node_step step = {.node = node,
		.now = sl_max_u64(node->now, now),
		.emit = emit,
		.context = context,
		.due = node->told_due,
		.degraded = sl_node_degraded(node),
		.left.type = SL_ACTIONS};

	node->now = step.now;
	for (uint32_t i = 0; i < count; i++) {
		if ((uint32_t)events[i].type < SL_EVENTS)
			handlers[events[i].type](&step, &events[i]);
	}
	sl_node_tell_degraded(&step);
	if (step.plans || step.now >= step.due) {
		step.due = SL_NS_NEVER;
		sl_node_plan(&step);
		sl_node_tell_degraded(&step);
	}
	sl_node_tell_left(&step);
	/* A due time in the past is told again, even if it is the same. */
	if (SL_MUTANT(
		    NO_WAKE, step.due != node->told_due || step.due <= step.now, false)) {
		node->told_due = step.due;
		sl_node_emit(&step, (struct sl_action){.type = SL_ACTION_WAKE_AT,
					    .wake_at = {.at = step.due}});
	}
}

void sl_node_step(struct sl_node *node, sl_ns now, const struct sl_event *event,
	sl_action_fn emit, void *context)
{
	sl_node_steps(node, now, event, 1, emit, context);
}
