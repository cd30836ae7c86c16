/*
 * node - events in, actions out
 *
 * A step has three parts: the event changes the books (one handler per event), settle decides
 * what follows from them, and the next deadline is told if it moved. Handlers never decide
 * about demands themselves, so every path to a grant is the same.
 */
#include "policy/node.h"
#include "policy/mutant.h"
#include "policy/node_state.h"

/* Until the first CONFIG: the defaults of design.md section 4. */
#define DEFAULT_WAIT_MAX     (60 * SL_S)
#define DEFAULT_HEAD_PASS    (1 * SL_S)
#define DEFAULT_IDLE_WAIT    (1 * SL_S)
#define DEFAULT_RECOVER_WAIT (2 * SL_S)
#define DEFAULT_STOP_IDLE    (600 * SL_S)
#define DEFAULT_STOP_GRACE   (10 * SL_S)
#define DEFAULT_UNTAKEABLE   (30 * SL_S)

_Static_assert(
	SL_NODE_GPUS_MAX == SL_LEDGER_GPUS_MAX, "the ledger has room for every GPU");

#ifdef SL_MUTANTS
int sl_mutant_now;
#endif

/* What a step can do only so often; see node_settle.c. */
static bool is_decision(enum sl_action_type type)
{
	return type == SL_ACTION_GRANT || type == SL_ACTION_DENY ||
	       type == SL_ACTION_EVICT || type == SL_ACTION_RESTORE ||
	       type == SL_ACTION_ABORT || type == SL_ACTION_STOP;
}

void sl_node_emit(struct sl_node *node, struct sl_action action)
{
	action.id = ++node->next_action;
	if (is_decision(action.type))
		node->serves = 0;
	node->emit(node->emit_context, &action);
}

void sl_node_note(struct sl_node *node, enum sl_reason reason, uint32_t gpu,
	uint64_t workload, uint64_t other, uint64_t bytes)
{
	sl_node_emit(node, (struct sl_action){.type = SL_ACTION_NOTE,
				   .note = {.reason = reason,
					   .gpu = gpu,
					   .workload = workload,
					   .other = other,
					   .bytes = bytes}});
}

void sl_node_note_because(struct sl_node *node, const struct sl_node_because *because)
{
	sl_node_emit(node, (struct sl_action){.type = SL_ACTION_NOTE,
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

void sl_node_touch(struct sl_node *node, uint32_t gpu_mask)
{
	node->dirty_mask |= gpu_mask;
	node->books++;
	/* What is lent on one GPU, or goes to the host, is taken from what can be lent on the
	 * others. */
	if (node->pool.pool_bytes && gpu_mask) {
		for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++)
			node->dirty_mask |= node->queue[gpu].count ? 1u << gpu : 0;
	}
	node->swap_dirty = true;
}

struct sl_node_member *sl_node_find_member(const struct sl_node *node, uint64_t id)
{
	struct sl_index_node *found = sl_index_find(&node->members, id);

	return found ? SL_NODE_ENTRY(found, sl_node_member) : NULL;
}

struct sl_node_client *sl_node_find_client(const struct sl_node *node, uint64_t id)
{
	struct sl_index_node *found = sl_index_find(&node->clients, id);

	return found ? SL_NODE_ENTRY(found, sl_node_client) : NULL;
}

static void on_time(struct sl_node *node, const struct sl_event *event)
{
}

/* --- the machine --- */

struct sl_node *sl_node_new(struct sl_arena *arena)
{
	struct sl_node *node = sl_arena_take(arena, sizeof(*node));

	node->arena = arena;
	node->caches = sl_arena_take(arena, sizeof(*node->caches));
	sl_list_init(&node->stops);
	sl_list_init(&node->unreached);
	sl_list_init(&node->suspects);
	sl_index_init(&node->members, arena);
	sl_index_init(&node->clients, arena);
	sl_index_init(&node->strangers, arena);
	sl_list_init(&node->ending);
	sl_list_init(&node->all_members);
	sl_list_init(&node->parties);
	sl_list_init(&node->spare_demands);
	sl_list_init(&node->contexts);
	sl_list_init(&node->spare_contexts);
	sl_list_init(&node->out);
	sl_list_init(&node->parked);
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++)
		sl_list_init(&node->queue[gpu].waiting);
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++)
		node->queue[gpu].resolve_at = SL_NS_NEVER;
	node->wait_max = DEFAULT_WAIT_MAX;
	node->head_pass = DEFAULT_HEAD_PASS;
	node->idle_wait = DEFAULT_IDLE_WAIT;
	node->recover_wait = DEFAULT_RECOVER_WAIT;
	node->stop_idle = DEFAULT_STOP_IDLE;
	node->stop_grace = DEFAULT_STOP_GRACE;
	node->untakeable_after = DEFAULT_UNTAKEABLE;
	node->turn_max = SL_TURNS_DEFAULT;
	node->evict_drain = SL_NODE_DRAIN;
	node->swap_due = SL_NS_NEVER;
	node->due = node->told_due = node->stops_due = SL_NS_NEVER;
	return node;
}

static void (*const handlers[SL_EVENTS])(
	struct sl_node *node, const struct sl_event *event) = {
	[SL_EVENT_CONFIG] = sl_node_on_config,
	[SL_EVENT_GPU_ADD] = sl_node_on_gpu_add,
	[SL_EVENT_WORKLOAD_ADD] = sl_node_on_workload_add,
	[SL_EVENT_WORKLOAD_REMOVE] = sl_node_on_workload_remove,
	[SL_EVENT_CLIENT_JOIN] = sl_node_on_client_join,
	[SL_EVENT_CLIENT_REPORT] = sl_node_on_client_report,
	[SL_EVENT_CLIENT_REPORTED] = sl_node_on_client_reported,
	[SL_EVENT_CLIENT_EXIT] = sl_node_on_client_exit,
	[SL_EVENT_RELEASED] = sl_node_on_released,
	[SL_EVENT_ASK] = sl_node_on_ask,
	[SL_EVENT_CANCEL] = sl_node_on_cancel,
	[SL_EVENT_COMMIT] = sl_node_on_commit,
	[SL_EVENT_CREATE_FAILED] = sl_node_on_create_failed,
	[SL_EVENT_FREED] = sl_node_on_freed,
	[SL_EVENT_WORK] = sl_node_on_work,
	[SL_EVENT_HIDDEN] = sl_node_on_hidden,
	[SL_EVENT_HELD] = sl_node_on_held,
	[SL_EVENT_UNMANAGED] = sl_node_on_unmanaged,
	[SL_EVENT_GPU_LOST] = sl_node_on_gpu_lost,
	[SL_EVENT_STRANGER] = sl_node_on_stranger,
	[SL_EVENT_WORKLOAD_SET] = sl_node_on_workload_set,
	[SL_EVENT_WORKLOAD_STOP] = sl_node_on_workload_stop,
	[SL_EVENT_PULSE] = sl_node_on_pulse,
	[SL_EVENT_CONDITION] = sl_node_on_condition,
	[SL_EVENT_STOP_FAILED] = sl_node_on_stop_failed,
	[SL_EVENT_POOL_SIZE] = sl_node_on_pool_size,
	[SL_EVENT_LINK_COST] = sl_node_on_link_cost,
	[SL_EVENT_WORKLOAD_PARK] = sl_node_on_workload_park,
	[SL_EVENT_WORKLOAD_RESUME] = sl_node_on_workload_resume,
	[SL_EVENT_CLIENT_EVICTED] = sl_node_on_client_evicted,
	[SL_EVENT_WANT] = sl_node_on_want,
	[SL_EVENT_DONE] = sl_node_on_done,
	[SL_EVENT_MOVED] = sl_node_on_moved,
	[SL_EVENT_STORE] = sl_node_on_store,
	[SL_EVENT_CHUNK] = sl_node_on_chunk,
	[SL_EVENT_TIME] = on_time,
};

static void tell_left(struct sl_node *node)
{
	if (node->left.type != SL_ACTION_LEFT)
		return;
	sl_node_emit(node, node->left);
	node->left.type = SL_ACTIONS;
}

void sl_node_step(struct sl_node *node, sl_ns now, const struct sl_event *event,
	sl_action_fn emit, void *context)
{
	node->now = sl_max_u64(node->now, now);
	node->books++;
	node->emit = emit;
	node->emit_context = context;
	if ((uint32_t)event->type < SL_EVENTS)
		handlers[event->type](node, event);
	sl_node_settle(node);
	tell_left(node);
	if (SL_MUTANT(NO_WAKE, node->due != node->told_due, false)) {
		node->told_due = node->due;
		sl_node_emit(node, (struct sl_action){.type = SL_ACTION_WAKE_AT,
					   .wake_at = {.at = node->due}});
	}
}
