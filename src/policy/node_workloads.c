/*
 * node_workloads - workloads come, change, are to end, and go
 *
 * Admission asks two verdicts, which never call each other: admit (where could it go at all) and
 * bind (where of these it goes). A change is judged like an admission to the GPUs it has.
 */
#include "policy/mutant.h"
#include "policy/node_outlook.h"
#include "policy/node_state.h"
#include "policy/verdicts/admit.h"
#include "policy/verdicts/bind.h"

_Static_assert(SL_NODE_GPUS_MAX == SL_ADMIT_GPUS_MAX, "admit has room for every GPU");
_Static_assert(SL_NODE_GPUS_MAX == SL_BIND_GPUS_MAX, "bind has room for every GPU");

static void refuse(struct sl_node *node, uint64_t workload, enum sl_reason reason,
	uint32_t gpu, uint64_t wanted, uint64_t available)
{
	sl_node_emit(node, (struct sl_action){.type = SL_ACTION_REFUSE,
				   .refuse = {.workload = workload,
					   .reason = reason,
					   .wanted_bytes = wanted,
					   .available_bytes = available,
					   .gpu = gpu}});
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
	sl_list_init(&member->ending);
	sl_list_init(&member->of_parked);
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
	sl_list_unlink(&member->ending);
	member->next_spare = node->spare_members;
	node->spare_members = member;
	node->warms -= member->warm_after > 0;
	node->promotions -= member->promoted;
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
	member->warm_after = event->workload_add.warm_after;
	member->idle_grace = event->workload_add.idle_grace;
	node->warms += member->warm_after > 0;
	node->swap_dirty = node->probes_dirty = true;
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

static uint32_t lost_mask(const struct sl_node *node)
{
	uint32_t mask = 0;

	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++)
		mask |= node->queue[gpu].lost ? 1u << gpu : 0;
	return SL_MUTANT(ADMIT_LOST, mask, 0);
}

static void admit_facts(const struct sl_node *node, const struct sl_admit_ask *ask,
	uint32_t allowed, struct sl_admit_gpu *facts)
{
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		facts[gpu] = (struct sl_admit_gpu){
			.allowed = allowed >> gpu & 1,
			.degraded = node->queue[gpu].degraded,
			.shareable_bytes = sl_ledger_shareable(&node->ledger, gpu),
			.claims_bytes = node->ledger.gpu[gpu].claims_bytes,
		};
		if (facts[gpu].allowed && node->ledger.gpu[gpu].present)
			sl_node_context_facts(node, gpu,
				sl_admit_resolve(ask, facts[gpu].shareable_bytes)
					.request_bytes,
				&facts[gpu]);
	}
	/* Their contexts, and what is held of them; who comes back claims his own. */
	sl_list_foreach (link, &node->parked) {
		const struct sl_node_member *member =
			SL_LIST_ENTRY(link, struct sl_node_member, of_parked);

		for (uint32_t left = member->resuming ? 0 : member->account.touched; left;
			left &= left - 1) {
			uint32_t gpu = (uint32_t)__builtin_ctz(left);

			facts[gpu].parked_bytes += sl_ledger_claim(&member->account, gpu);
		}
	}
}

/* Free beyond what workloads may still claim. */
static uint64_t uncommitted(const struct sl_node *node, uint32_t gpu)
{
	return sl_sub_sat(sl_ledger_free_bytes(&node->ledger, gpu),
		node->ledger.gpu[gpu].unclaimed_bytes);
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
			.free_bytes = uncommitted(node, gpu),
			.request_bytes = offer->request_bytes,
		};
		if (plan->mask >> gpu & 1)
			can_burst |= offer->limit_bytes > offer->request_bytes;
	}
	return sl_bind_choose(rooms, plan->mask, gpu_count,
		can_burst && SL_MUTANT(PACK_IGNORED, node->placement != SL_PLACEMENT_PACK,
				     true));
}

uint32_t sl_node_workloads_of(const struct sl_node *node, uint32_t owner)
{
	uint32_t count = 0;

	sl_list_foreach (link, &node->all_members) {
		const struct sl_node_member *member =
			SL_LIST_ENTRY(link, struct sl_node_member, of_node);

		count += member->owner == owner &&
			 SL_MUTANT(BOUND_COUNTS_LEAVING, !member->leaving, true);
	}
	return count;
}

/*
 * Takes out of `facts` the GPUs on which the owner's bounds forbid it: a fraction can be allowed on
 * a small GPU and too much on a large one. True if that left too few, with the verdict of the
 * last one: the user then hears of his bound, before hearing of neighbours in the way.
 */
static bool exceeds_bounds(const struct sl_node *node, const struct sl_event *event,
	const struct sl_admit_ask *ask, struct sl_admit_gpu *facts,
	struct sl_bounds_verdict *verdict)
{
	struct sl_bounds_ask facts_of_it = {.priority = event->workload_add.priority,
		.workloads = sl_node_workloads_of(node, event->workload_add.owner) + 1};
	uint32_t passed = 0, wanted = ask->gpu_count ? ask->gpu_count : 1;

	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		struct sl_admit_offer offer;
		struct sl_bounds_verdict here;

		if (!facts[gpu].allowed)
			continue;
		offer = sl_admit_resolve(ask, facts[gpu].shareable_bytes);
		facts_of_it.request_bytes = offer.request_bytes;
		facts_of_it.limit_bytes = offer.limit_bytes;
		facts_of_it.shareable_bytes = facts[gpu].shareable_bytes;
		here = sl_bounds_judge(&event->workload_add.bounds, &facts_of_it);
		if (here.reason == SL_REASON_NONE) {
			passed++;
			continue;
		}
		facts[gpu].allowed = false;
		*verdict = here;
	}
	return passed < wanted && verdict->reason != SL_REASON_NONE;
}

/* Asks the verdicts in turn. Returns the GPUs chosen, with the offer; 0 if it was refused. */
static uint32_t judge_new(
	struct sl_node *node, const struct sl_event *event, struct sl_admit_offer *offer)
{
	uint64_t id = event->workload_add.workload;
	uint32_t allowed =
		event->workload_add.gpu_mask & present_mask(node) & ~lost_mask(node);
	uint32_t chosen;
	struct sl_admit_ask ask = {event->workload_add.request, event->workload_add.limit,
		event->workload_add.gpu_count, event->workload_add.may_take_less};
	struct sl_bounds_verdict bound = {.reason = SL_REASON_NONE};
	struct sl_admit_gpu facts[SL_NODE_GPUS_MAX];
	struct sl_admit_plan plan;
	bool is_bound;

	admit_facts(node, &ask, allowed, facts);
	sl_admit_judge(&ask, facts, &plan);
	is_bound = plan.reason != SL_REASON_TOO_FEW_GPUS &&
		   plan.reason != SL_REASON_LIMIT_BELOW_REQUEST &&
		   exceeds_bounds(node, event, &ask, facts, &bound);
	if (is_bound) {
		refuse(node, id, bound.reason, 0, bound.wanted, bound.allowed);
		return 0;
	}
	if (bound.reason != SL_REASON_NONE)
		sl_admit_judge(&ask, facts, &plan); /* without some of them */
	if (plan.reason != SL_REASON_NONE) {
		refuse(node, id, plan.reason, plan.gpu, plan.wanted_bytes,
			plan.available_bytes);
		return 0;
	}
	chosen = choose_gpus(node, &plan, facts, ask.gpu_count ? ask.gpu_count : 1);
	*offer = smallest_offer(plan.offer, chosen);
	return chosen;
}

/* Admitted before, on exactly these GPUs: not judged again, whatever became of them since. */
static uint32_t take_over(
	struct sl_node *node, const struct sl_event *event, struct sl_admit_offer *offer)
{
	uint32_t mask = event->workload_add.gpu_mask & present_mask(node);
	struct sl_admit_ask ask = {event->workload_add.request, event->workload_add.limit,
		event->workload_add.gpu_count};
	struct sl_admit_gpu facts[SL_NODE_GPUS_MAX];
	struct sl_admit_plan plan;

	if (!mask) {
		refuse(node, event->workload_add.workload, SL_REASON_TOO_FEW_GPUS, 0, 1,
			0);
		return 0;
	}
	admit_facts(node, &ask, mask, facts);
	sl_admit_judge(&ask, facts, &plan);
	*offer = smallest_offer(plan.offer, mask);
	offer->limit_bytes = sl_max_u64(offer->limit_bytes, offer->request_bytes);
	return mask;
}

void sl_node_on_workload_add(struct sl_node *node, const struct sl_event *event)
{
	uint64_t id = event->workload_add.workload;
	struct sl_admit_offer offer;
	uint32_t chosen;

	if (sl_node_find_member(node, id)) {
		refuse(node, id, SL_REASON_DUPLICATE, 0, 0, 0);
		return;
	}
	chosen = event->workload_add.recovered ? take_over(node, event, &offer)
					       : judge_new(node, event, &offer);
	if (chosen)
		admit(node, event, chosen, offer);
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
	/* It may have something, hidden bytes at least, where it was not bound. */
	sl_node_touch(node, member->account.gpu_mask | member->account.touched);
	member->leaving = true;
	sl_node_unpark(node, member);
	/* Not killed any more. */
	member->killed = SL_MUTANT(STOP_KILLS_THE_ENDED, true, member->killed);
	node->timers_dirty = true;
	sl_ledger_unbind(&node->ledger, &member->account);
	sl_node_forget_member(node, member);
}

/* --- change --- */

/* What a change would make of the workload, before it is judged. */
struct change {
	uint64_t request_bytes, limit_bytes; /* the limit cut to what can be shared */
	uint64_t uncut_limit_bytes;
	uint64_t shareable_bytes; /* of the smallest of its GPUs */
	int32_t priority;
	uint32_t smallest_gpu;
};

/* What it was promised, or gave up until it is resumed. */
static uint64_t request_of(const struct sl_node_member *member)
{
	return member->parked ? member->parked_bytes : member->account.request_bytes;
}

static struct change resolve_change(const struct sl_node *node,
	const struct sl_node_member *member, const struct sl_event *event)
{
	uint32_t which = event->workload_set.which;
	struct change to = {request_of(member), member->account.limit_bytes,
		member->account.limit_bytes, UINT64_MAX, member->priority};

	for (uint32_t left = member->account.gpu_mask; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(left);
		uint64_t bytes = sl_ledger_shareable(&node->ledger, gpu);

		if (bytes >= to.shareable_bytes)
			continue;
		to.shareable_bytes = bytes;
		to.smallest_gpu = gpu;
	}
	if (which & SL_SET_REQUEST)
		to.request_bytes = sl_amount_resolve(
			&event->workload_set.request, to.shareable_bytes, 0);
	if (which & SL_SET_LIMIT) {
		to.uncut_limit_bytes = sl_amount_resolve(&event->workload_set.limit,
			to.shareable_bytes, to.shareable_bytes);
		to.limit_bytes = sl_min_u64(to.uncut_limit_bytes,
			sl_max_u64(to.shareable_bytes, to.request_bytes));
	}
	if (which & SL_SET_PRIORITY)
		to.priority = event->workload_set.priority;
	return to;
}

/* Bounds hold for what somebody changes, not for what an administrator gave or allowed once. */
static struct sl_bounds_verdict judge_bounds(const struct sl_node_member *member,
	const struct change *to, const struct sl_event *event)
{
	struct sl_bounds bounds = event->workload_set.bounds;
	struct sl_bounds_ask ask = {
		.shareable_bytes = to->shareable_bytes, .priority = to->priority};

	bounds.has_priority &= to->priority != member->priority;
	if (SL_MUTANT(SET_JUDGES_ALL, to->request_bytes != request_of(member), true))
		ask.request_bytes = to->request_bytes;
	if (SL_MUTANT(
		    SET_JUDGES_ALL, to->limit_bytes != member->account.limit_bytes, true))
		ask.limit_bytes = to->limit_bytes;
	return sl_bounds_judge(&bounds, &ask);
}

/* A promise can be raised only where it can be kept: on each of its GPUs. */
static bool refuse_raise(
	struct sl_node *node, const struct sl_node_member *member, uint64_t request_bytes)
{
	uint64_t id = member->index.id;

	for (uint32_t left = member->account.gpu_mask; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(left);
		uint64_t claim = sl_ledger_claim(&member->account, gpu);
		uint64_t others = node->ledger.gpu[gpu].claims_bytes - claim;
		uint64_t room =
			sl_sub_sat(sl_ledger_shareable(&node->ledger, gpu), others);
		enum sl_reason reason = SL_REASON_NONE;

		if (request_bytes > room)
			reason = SL_REASON_REQUESTS_TAKEN;
		if (SL_MUTANT(RAISE_DEGRADED, node->queue[gpu].degraded, false))
			reason = SL_REASON_DEGRADED;
		if (SL_MUTANT(RAISE_LOST, node->queue[gpu].lost, false))
			reason = SL_REASON_GPU_LOST;
		if (SL_MUTANT(RAISE_OVERBOOKS, reason, SL_REASON_NONE) == SL_REASON_NONE)
			continue;
		refuse(node, id, reason, gpu, request_bytes, room);
		return true;
	}
	return false;
}

/* Unclaimed requests of others on this GPU that the workload may not stand on. */
static uint64_t kept_from(const struct sl_node *node, const struct sl_node_member *but,
	uint32_t gpu, int32_t priority, bool from_all)
{
	uint64_t bytes = 0;

	sl_list_foreach (link, &node->all_members) {
		const struct sl_node_member *member =
			SL_LIST_ENTRY(link, struct sl_node_member, of_node);

		if (member != but && (from_all || member->priority <= priority))
			bytes += sl_ledger_unclaimed(&member->account, gpu);
	}
	return bytes;
}

/*
 * Who stands on others' requests because those are of higher priority, and could take them back by
 * `priority`, may not rise out of their reach with what he has. O(workloads).
 */
static bool refuse_rise(struct sl_node *node, const struct sl_node_member *member,
	const struct change *to, const struct sl_event *event)
{
	bool now_kept = event->workload_set.which & SL_SET_FLAGS &&
			event->workload_set.flags & SL_WORKLOAD_NO_SWAP;

	if (!sl_node_may_stand(node, member) ||
		(to->priority <= member->priority && !now_kept))
		return false;
	for (uint32_t left = member->account.touched; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(left);
		uint64_t burst = sl_sub_sat(
			sl_ledger_here(&member->account, gpu), to->request_bytes);
		uint64_t kept = kept_from(node, member, gpu, to->priority, now_kept);
		uint64_t free_bytes = sl_ledger_free_bytes(&node->ledger, gpu);

		if (!burst || kept <= free_bytes || node->queue[gpu].lost ||
			kept <= kept_from(node, member, gpu, member->priority, false))
			continue;
		if (SL_MUTANT(RISES_WITH_LOAN, false, true))
			continue;
		refuse(node, member->index.id, SL_REASON_STANDS_ON_REQUESTS, gpu, burst,
			free_bytes);
		return true;
	}
	return false;
}

static bool refuse_change(struct sl_node *node, const struct sl_node_member *member,
	const struct change *to, const struct sl_event *event)
{
	uint64_t id = member->index.id;
	struct sl_bounds_verdict bound = judge_bounds(member, to, event);

	if (to->request_bytes > request_of(member) &&
		to->request_bytes > to->shareable_bytes)
		refuse(node, id, SL_REASON_REQUEST_TOO_LARGE, to->smallest_gpu,
			to->request_bytes, to->shareable_bytes);
	else if (to->uncut_limit_bytes < to->request_bytes)
		refuse(node, id, SL_REASON_LIMIT_BELOW_REQUEST, 0, to->request_bytes,
			to->uncut_limit_bytes);
	else if (bound.reason != SL_REASON_NONE)
		refuse(node, id, bound.reason, 0, bound.wanted, bound.allowed);
	else
		return (to->request_bytes > request_of(member) && !member->parked &&
			       refuse_raise(node, member, to->request_bytes)) ||
		       refuse_rise(node, member, to, event);
	return true;
}

/* The most that it holds above its limit on one GPU. */
static uint64_t over_bytes(const struct sl_node_member *member)
{
	uint64_t most = 0;

	for (uint32_t left = member->account.touched; left; left &= left - 1) {
		uint64_t use =
			sl_ledger_use(&member->account, (uint32_t)__builtin_ctz(left));

		most = sl_max_u64(most, sl_sub_sat(use, member->account.limit_bytes));
	}
	return most;
}

static void tell_new_limit(struct sl_node *node, const struct sl_node_member *member)
{
	if (SL_MUTANT(SET_UNTOLD, !member->living, true))
		return;
	for (uint32_t left = member->account.gpu_mask; left; left &= left - 1)
		sl_node_emit(
			node, (struct sl_action){.type = SL_ACTION_VIEW,
				      .view = {.workload = member->index.id,
					      .gpu = (uint32_t)__builtin_ctz(left)}});
}

static void set_warm(struct sl_node *node, struct sl_node_member *member, sl_ns after)
{
	node->warms += (after > 0) - (member->warm_after > 0);
	member->warm_after = after;
	node->swap_dirty = node->probes_dirty = true;
}

/*
 * Takes effect in this step: every GPU of it is looked at again, where its waiting demands are
 * denied if they no longer fit under the limit, and ranked anew as entitled or burst. A higher
 * request takes room from the others' bursts, so somebody may be hopeless now.
 */
static void change(struct sl_node *node, struct sl_node_member *member,
	const struct change *to, const struct sl_event *event)
{
	bool limit_moves = to->limit_bytes != member->account.limit_bytes;

	if (member->parked)
		member->parked_bytes = to->request_bytes;
	sl_ledger_change(&node->ledger, &member->account,
		member->parked ? 0 : to->request_bytes, to->limit_bytes);
	if (event->workload_set.which & SL_SET_FLAGS)
		member->flags = event->workload_set.flags;
	if (event->workload_set.which & SL_SET_WAIT)
		member->wait_max = event->workload_set.wait_max;
	if (event->workload_set.which & SL_SET_WARM)
		set_warm(node, member, event->workload_set.warm_after);
	if (event->workload_set.which & SL_SET_GRACE)
		member->idle_grace = event->workload_set.idle_grace;
	if (to->priority != member->priority)
		sl_node_reprioritize(node, member, to->priority);
	sl_node_touch(node, member->account.gpu_mask | member->account.touched);
	node->deadlock_dirty = node->timers_dirty = true;
	sl_node_emit(node, (struct sl_action){.type = SL_ACTION_SET_DONE,
				   .set_done = {.workload = member->index.id,
					   .request_bytes = to->request_bytes,
					   .limit_bytes = to->limit_bytes,
					   .priority = to->priority,
					   .over_bytes = over_bytes(member)}});
	if (limit_moves)
		tell_new_limit(node, member);
}

void sl_node_on_workload_set(struct sl_node *node, const struct sl_event *event)
{
	uint64_t id = event->workload_set.workload;
	struct sl_node_member *member = sl_node_find_member(node, id);
	struct change to;

	if (!member || member->leaving) {
		refuse(node, id, SL_REASON_UNKNOWN_WORKLOAD, 0, 0, 0);
		return;
	}
	to = resolve_change(node, member, event);
	if (!refuse_change(node, member, &to, event))
		change(node, member, &to, event);
}

/* --- end --- */

static void tell_stop(struct sl_node *node, const struct sl_node_member *member,
	enum sl_stop_stage stage)
{
	sl_node_emit(node, (struct sl_action){.type = SL_ACTION_STOP,
				   .stop = {.workload = member->index.id,
					   .stage = stage,
					   .reason = SL_REASON_STOP_ASKED}});
}

/*
 * Its waiting demands end with it: a process that is about to save its work must not sleep in an
 * allocation through its grace. Asked again after the kill: whatever has survived, or joined
 * since, is killed again after the new grace.
 */
void sl_node_on_workload_stop(struct sl_node *node, const struct sl_event *event)
{
	struct sl_node_member *member =
		sl_node_find_member(node, event->workload_stop.workload);
	sl_ns kill_at = sl_node_later(node->now, event->workload_stop.grace);

	if (!member || member->leaving) {
		sl_node_note(
			node, SL_REASON_STRAY, 0, event->workload_stop.workload, 0, 0);
		return;
	}
	if (!member->stopping) {
		member->stopping = true;
		sl_node_unpark(node, member); /* it may need its memory to end well */
		tell_stop(node, member, SL_STOP_TERM);
		sl_node_cancel_all(node, member);
		/* What it has comes free: with that, stopping another may suffice where it did
		 * not. */
		sl_node_touch(node, member->account.gpu_mask | member->account.touched);
	}
	if (!sl_list_is_linked(&member->ending))
		sl_list_push_tail(&node->ending, &member->ending);
	else if (!member->killed)
		kill_at = SL_MUTANT(STOP_LONGER_COUNTS,
			sl_min_u64(member->kill_at, kill_at), kill_at);
	member->killed = false;
	member->kill_at = kill_at;
	node->timers_dirty = true;
}

/* Who is still there long after the kill is counted on no more. */
sl_ns sl_node_time_stops(struct sl_node *node)
{
	sl_ns next = SL_NS_NEVER;

	sl_list_foreach_safe (link, &node->ending) {
		struct sl_node_member *member =
			SL_LIST_ENTRY(link, struct sl_node_member, ending);
		sl_ns end = sl_node_later(member->kill_at, SL_OUTLOOK_STUBBORN_AFTER);

		if (!member->killed && node->now >= member->kill_at) {
			member->killed = true;
			if (SL_MUTANT(STOP_NEVER_KILLS, true, false))
				tell_stop(node, member, SL_STOP_KILL);
		}
		if (node->now >= end) {
			sl_list_unlink(&member->ending);
			node->books++;
			sl_node_touch(
				node, member->account.gpu_mask | member->account.touched);
			node->deadlock_dirty = true;
			continue;
		}
		next = sl_min_u64(next, member->killed ? end : member->kill_at);
	}
	return next;
}
