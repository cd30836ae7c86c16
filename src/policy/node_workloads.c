/*
 * node_workloads - workloads come, change, are to end, and go
 *
 * Admission asks two verdicts, which never call each other: admit (where could it go at all) and
 * bind (where of these it goes). A change is judged like an admission to the GPUs it has.
 */
#include "policy/mutant.h"
#include "policy/node_state.h"
#include "policy/verdicts/admit.h"
#include "policy/verdicts/bind.h"

_Static_assert(SL_NODE_GPUS_MAX == SL_ADMIT_GPUS_MAX, "admit has room for every GPU");
_Static_assert(SL_NODE_GPUS_MAX == SL_BIND_GPUS_MAX, "bind has room for every GPU");

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
	member->owner = event->workload_add.owner;
	member->flags = event->workload_add.flags;
	member->wait_max = event->workload_add.wait_max;
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

void sl_node_on_workload_add(struct sl_node *node, const struct sl_event *event)
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

void sl_node_on_workload_remove(struct sl_node *node, const struct sl_event *event)
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

/* TO DO: not there yet; refuses, so that nobody takes it for done. */
void sl_node_on_workload_set(struct sl_node *node, const struct sl_event *event)
{
	refuse(node, event->workload_set.workload, SL_REASON_UNKNOWN_WORKLOAD, 0, 0);
}

void sl_node_on_workload_stop(struct sl_node *node, const struct sl_event *event)
{
	sl_node_note(node, SL_REASON_STRAY, 0, event->workload_stop.workload, 0, 0);
}
