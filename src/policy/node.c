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
#include "policy/verdicts/admit.h"
#include "policy/verdicts/bind.h"

/* Until the first CONFIG: the defaults of design.md section 4. */
#define DEFAULT_WAIT_MAX     (60 * SL_S)
#define DEFAULT_HEAD_PASS    (1 * SL_S)
#define DEFAULT_IDLE_WAIT    (1 * SL_S)
#define DEFAULT_RECOVER_WAIT (2 * SL_S)

_Static_assert(
	SL_NODE_GPUS_MAX == SL_LEDGER_GPUS_MAX, "the ledger has room for every GPU");
_Static_assert(SL_NODE_GPUS_MAX == SL_ADMIT_GPUS_MAX, "admit has room for every GPU");
_Static_assert(SL_NODE_GPUS_MAX == SL_BIND_GPUS_MAX, "bind has room for every GPU");

#ifdef SL_MUTANTS
int sl_mutant_now;
#endif

void sl_node_emit(struct sl_node *node, struct sl_action action)
{
	action.id = ++node->next_action;
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

void sl_node_touch(struct sl_node *node, uint32_t gpu_mask)
{
	node->dirty_mask |= gpu_mask;
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

/* --- workloads --- */

static void refuse(struct sl_node *node, uint64_t workload, enum sl_reason reason,
	uint64_t wanted, uint64_t available)
{
	sl_node_emit(node, (struct sl_action){.type = SL_ACTION_REFUSE,
				   .refuse = {.workload = workload,
					   .reason = reason,
					   .wanted_bytes = wanted,
					   .available_bytes = available}});
}

static struct sl_node_member *new_member(struct sl_node *node, uint64_t id)
{
	struct sl_node_member *member = node->spare_members;

	if (member)
		node->spare_members = member->next_spare;
	else
		member = sl_arena_take(node->arena, sizeof(*member));
	*member = (struct sl_node_member){.index.id = id};
	sl_list_init(&member->clients);
	sl_list_push_tail(&node->all_members, &member->of_node);
	sl_index_add(&node->members, &member->index);
	return member;
}

void sl_node_forget_member(struct sl_node *node, struct sl_node_member *member)
{
	if (!member->leaving || !sl_list_is_empty(&member->clients))
		return;
	sl_index_remove(&node->members, &member->index);
	sl_list_unlink(&member->of_node);
	member->next_spare = node->spare_members;
	node->spare_members = member;
}

static void admit(struct sl_node *node, const struct sl_event *event, uint32_t gpu_mask,
	struct sl_admit_offer offer)
{
	uint64_t id = event->workload_add.workload;
	struct sl_node_member *member = new_member(node, id);

	member->priority = event->workload_add.priority;
	sl_ledger_bind(&node->ledger, &member->account, gpu_mask, offer.request_bytes,
		offer.limit_bytes);
	sl_node_touch(node, gpu_mask);
	sl_node_emit(node, (struct sl_action){.type = SL_ACTION_ADMIT,
				   .admit = {.workload = id,
					   .gpu_mask = gpu_mask,
					   .request_bytes = offer.request_bytes,
					   .limit_bytes = offer.limit_bytes}});
}

/* One number per workload: the smallest over its GPUs, so that the promise holds on each. */
static struct sl_admit_offer smallest_offer(
	const struct sl_admit_offer offer[], uint32_t mask)
{
	struct sl_admit_offer least = {UINT64_MAX, UINT64_MAX};

	for (; mask; mask &= mask - 1) {
		const struct sl_admit_offer *o = &offer[__builtin_ctz(mask)];

		least.request_bytes = sl_min_u64(least.request_bytes, o->request_bytes);
		least.limit_bytes = sl_min_u64(least.limit_bytes, o->limit_bytes);
	}
	return least;
}

static uint32_t present_mask(const struct sl_node *node)
{
	uint32_t mask = 0;

	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++)
		mask |= node->ledger.gpu[gpu].present ? 1u << gpu : 0;
	return mask;
}

static void admit_facts(
	const struct sl_node *node, uint32_t allowed, struct sl_admit_gpu *facts)
{
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		facts[gpu] = (struct sl_admit_gpu){
			.allowed = allowed >> gpu & 1,
			.degraded = node->queue[gpu].degraded,
			.shareable_bytes = sl_ledger_shareable(&node->ledger, gpu),
			.claims_bytes = node->ledger.gpu[gpu].claims_bytes,
		};
	}
}

static uint32_t choose_gpus(const struct sl_node *node, const struct sl_admit_plan *plan,
	const struct sl_admit_gpu *facts, uint32_t gpu_count)
{
	struct sl_bind_gpu rooms[SL_NODE_GPUS_MAX];
	bool can_burst = false;

	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		const struct sl_admit_offer *offer = &plan->offer[gpu];

		rooms[gpu] = (struct sl_bind_gpu){
			.room_bytes = sl_sub_sat(facts[gpu].shareable_bytes,
				facts[gpu].claims_bytes + offer->request_bytes),
			.burstable = node->ledger.gpu[gpu].burstable,
		};
		if (plan->mask >> gpu & 1)
			can_burst |= offer->limit_bytes > offer->request_bytes;
	}
	return sl_bind_choose(rooms, plan->mask, gpu_count, can_burst);
}

static void on_workload_add(struct sl_node *node, const struct sl_event *event)
{
	uint64_t id = event->workload_add.workload;
	uint32_t allowed = event->workload_add.gpu_mask & present_mask(node);
	struct sl_admit_ask ask = {event->workload_add.request, event->workload_add.limit,
		event->workload_add.gpu_count};
	struct sl_admit_gpu facts[SL_NODE_GPUS_MAX];
	struct sl_admit_plan plan;
	uint32_t chosen;

	if (sl_node_find_member(node, id)) {
		refuse(node, id, SL_REASON_DUPLICATE, 0, 0);
		return;
	}
	admit_facts(node, allowed, facts);
	sl_admit_judge(&ask, facts, &plan);
	chosen = allowed; /* recovered: admitted before, not judged again */
	if (!event->workload_add.recovered) {
		if (plan.reason != SL_REASON_NONE) {
			refuse(node, id, plan.reason, plan.wanted_bytes,
				plan.available_bytes);
			return;
		}
		chosen = choose_gpus(
			node, &plan, facts, ask.gpu_count ? ask.gpu_count : 1);
	} else if (!allowed) {
		refuse(node, id, SL_REASON_TOO_FEW_GPUS, 1, 0);
		return;
	}
	admit(node, event, chosen, smallest_offer(plan.offer, chosen));
}

static void on_workload_remove(struct sl_node *node, const struct sl_event *event)
{
	struct sl_node_member *member =
		sl_node_find_member(node, event->workload_remove.workload);

	if (!member || member->leaving) {
		sl_node_note(
			node, SL_REASON_STRAY, 0, event->workload_remove.workload, 0, 0);
		return;
	}
	sl_node_cancel_all(node, member);
	sl_node_touch(node, member->account.gpu_mask);
	member->leaving = true;
	sl_ledger_unbind(&node->ledger, &member->account);
	sl_node_forget_member(node, member);
}

/* --- GPUs and settings --- */

static void on_config(struct sl_node *node, const struct sl_event *event)
{
	node->wait_max = event->config.wait_max;
	node->head_pass = event->config.head_pass;
	node->idle_wait = event->config.idle_wait;
	node->recover_wait = event->config.recover_wait;
	node->pool.pool_bytes = sl_min_u64(event->config.pool_bytes, SL_LEDGER_BYTES_MAX);
	node->pool.slack_bytes = event->config.slack_bytes;
	node->dirty_mask = UINT32_MAX;
	node->deadlock_dirty = node->timers_dirty = true;
}

static void on_gpu_add(struct sl_node *node, const struct sl_event *event)
{
	uint32_t gpu = event->gpu_add.gpu;

	if (gpu >= SL_NODE_GPUS_MAX) {
		sl_node_note(node, SL_REASON_STRAY, gpu, 0, 0, 0);
		return;
	}
	sl_ledger_set_gpu(&node->ledger, gpu, event->gpu_add.capacity_bytes,
		event->gpu_add.reserve_bytes);
	sl_node_touch(node, 1u << gpu);
	node->deadlock_dirty = true;
}

static void on_unmanaged(struct sl_node *node, const struct sl_event *event)
{
	uint32_t gpu = event->unmanaged.gpu;

	if (gpu >= SL_NODE_GPUS_MAX || !node->ledger.gpu[gpu].present) {
		sl_node_note(node, SL_REASON_STRAY, gpu, 0, 0, event->unmanaged.bytes);
		return;
	}
	sl_ledger_set_unmanaged(&node->ledger, gpu, event->unmanaged.bytes);
	sl_node_touch(node, 1u << gpu);
	node->deadlock_dirty = true;
}

static void on_time(struct sl_node *node, const struct sl_event *event)
{
}

/* --- the machine --- */

struct sl_node *sl_node_new(struct sl_arena *arena)
{
	struct sl_node *node = sl_arena_take(arena, sizeof(*node));

	node->arena = arena;
	sl_index_init(&node->members, arena);
	sl_index_init(&node->clients, arena);
	sl_list_init(&node->all_members);
	sl_list_init(&node->parties);
	sl_list_init(&node->spare_demands);
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++)
		sl_list_init(&node->queue[gpu].waiting);
	node->wait_max = DEFAULT_WAIT_MAX;
	node->head_pass = DEFAULT_HEAD_PASS;
	node->idle_wait = DEFAULT_IDLE_WAIT;
	node->recover_wait = DEFAULT_RECOVER_WAIT;
	node->due = node->told_due = SL_NS_NEVER;
	return node;
}

static void (*const handlers[SL_EVENTS])(
	struct sl_node *node, const struct sl_event *event) = {
	[SL_EVENT_CONFIG] = on_config,
	[SL_EVENT_GPU_ADD] = on_gpu_add,
	[SL_EVENT_WORKLOAD_ADD] = on_workload_add,
	[SL_EVENT_WORKLOAD_REMOVE] = on_workload_remove,
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
	[SL_EVENT_UNMANAGED] = on_unmanaged,
	[SL_EVENT_TIME] = on_time,
};

void sl_node_step(struct sl_node *node, sl_ns now, const struct sl_event *event,
	sl_action_fn emit, void *context)
{
	node->now = sl_max_u64(node->now, now);
	node->emit = emit;
	node->emit_context = context;
	if ((uint32_t)event->type < SL_EVENTS)
		handlers[event->type](node, event);
	sl_node_settle(node);
	if (SL_MUTANT(NO_WAKE, node->due != node->told_due, false)) {
		node->told_due = node->due;
		sl_node_emit(node, (struct sl_action){.type = SL_ACTION_WAKE_AT,
					   .wake_at = {.at = node->due}});
	}
}
