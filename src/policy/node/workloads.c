/*
 * workloads - workloads are admitted, end, and go
 *
 * Admission asks two verdicts, which never call each other: admit (where could it go at all) and
 * bind (where of these it goes).
 */
#include "policy/compute/compute.h"
#include "policy/node/plan.h"
#include "policy/verdicts/admit.h"
#include "policy/verdicts/bind.h"

/* A workload still there this long after the kill: the node does not count on its end. */
#define UNCOUNTED_AFTER (10 * SL_S)

_Static_assert(SL_NODE_GPUS_MAX == SL_ADMIT_GPUS_MAX, "admit has room for every GPU");
_Static_assert(SL_NODE_GPUS_MAX == SL_BIND_GPUS_MAX, "bind has room for every GPU");

void sl_node_refuse(struct sl_node_step *step, uint64_t workload, enum sl_reason reason,
	uint32_t gpu, uint64_t wanted, uint64_t available)
{
	sl_node_emit(step, (struct sl_action){.type = SL_ACTION_REFUSE,
				   .refuse = {.workload = workload,
					   .reason = reason,
					   .wanted_bytes = wanted,
					   .available_bytes = available,
					   .gpu = gpu}});
}

static struct sl_node_workload *new_workload(struct sl_node *node, uint64_t id)
{
	struct sl_node_workload *workload = node->spare_workloads;
	struct sl_node_sums *sums;

	if (workload)
		node->spare_workloads = workload->next_spare;
	else
		workload = sl_arena_take(node->arena, sizeof(*workload));
	sums = workload->sums ? workload->sums
			      : sl_arena_take(node->arena, sizeof(*sums));
	*workload = (struct sl_node_workload){.index.id = id, .sums = sums};
	sl_list_init(&workload->clients);
	sl_list_push_tail(&node->all_workloads, &workload->of_node);
	sl_index_add(&node->workloads, &workload->index);
	return workload;
}

void sl_node_forget_workload(struct sl_node *node, struct sl_node_workload *workload)
{
	if (!sl_node_is_removed(workload) || !sl_list_is_empty(&workload->clients))
		return;
	sl_index_remove(&node->workloads, &workload->index);
	sl_list_unlink(&workload->of_node);
	workload->next_spare = node->spare_workloads;
	node->spare_workloads = workload;
}

static void admit(struct sl_node_step *step, const struct sl_event *event,
	uint32_t gpu_mask, struct sl_admit_offer offer)
{
	uint64_t id = event->workload_add.workload;
	struct sl_node_workload *workload = new_workload(step->node, id);

	workload->priority = event->workload_add.priority;
	workload->flags = event->workload_add.flags;
	workload->compute_pm = event->workload_add.compute_pm;
	workload->wait_max = event->workload_add.wait_max;
	workload->warm_after = event->workload_add.warm_after;
	workload->detach_after = event->workload_add.detach_after;
	sl_node_count_unused(step, workload);
	workload->idle_grace = event->workload_add.idle_grace;
	sl_ledger_bind(&step->node->ledger, &workload->account, gpu_mask,
		offer.request_bytes, offer.limit_bytes);
	sl_node_book_stays(step->node, workload);
	sl_node_emit(step, (struct sl_action){.type = SL_ACTION_ADMIT,
				   .admit = {.workload = id,
					   .gpu_mask = gpu_mask,
					   .request_bytes = offer.request_bytes,
					   .limit_bytes = offer.limit_bytes}});
	step->plans = true;
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

static uint32_t present_mask(const struct sl_node *node, bool lost_too)
{
	uint32_t mask = 0;

	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		if (node->ledger.gpu[gpu].present &&
			(lost_too || !SL_MUTANT(ADMIT_LOST, node->gpu[gpu].lost, false)))
			mask |= 1u << gpu;
	}
	return mask;
}

static void admit_facts(const struct sl_node *node, const struct sl_admit_ask *ask,
	uint32_t allowed, struct sl_admit_gpu *facts)
{
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		facts[gpu] = (struct sl_admit_gpu){
			.allowed = allowed >> gpu & 1,
			.degraded = sl_ledger_is_degraded(&node->ledger, gpu),
			.shareable_bytes = sl_ledger_shareable(&node->ledger, gpu),
			.claims_bytes = node->ledger.gpu[gpu].claims_bytes,
		};
		if (facts[gpu].allowed && node->ledger.gpu[gpu].present)
			sl_node_context_facts(node, gpu,
				sl_admit_resolve(ask, facts[gpu].shareable_bytes)
					.request_bytes,
				&facts[gpu]);
	}
	/* Contexts and held memory of parked workloads; a resuming one claims its own request. */
	sl_node_each_workload (workload, node) {
		if (!sl_node_is_put_away(workload))
			continue;
		sl_each_gpu (gpu, workload->account.touched) {
			facts[gpu].parked_bytes +=
				sl_ledger_claim(&workload->account, gpu);
		}
	}
}

uint32_t sl_node_compute_room(
	const struct sl_node *node, const struct sl_node_workload *but, uint32_t gpu)
{
	uint32_t pm = 0;

	sl_node_each_workload (workload, node) {
		if (workload != but && !sl_node_is_parked(workload) &&
			workload->account.gpu_mask >> gpu & 1)
			pm += workload->compute_pm;
	}
	return (uint32_t)sl_sub_sat(SL_COMPUTE_WHOLE, pm);
}

static void time_facts(const struct sl_node *node, const struct sl_node_workload *but,
	uint32_t compute_pm, struct sl_admit_gpu *facts)
{
	for (uint32_t gpu = 0; compute_pm && gpu < SL_NODE_GPUS_MAX; gpu++)
		facts[gpu].compute_full =
			facts[gpu].allowed &&
			compute_pm > sl_node_compute_room(node, but, gpu);
}

/* Free memory beyond unclaimed requests. */
static uint64_t uncommitted(const struct sl_node *node, uint32_t gpu)
{
	return sl_sub_sat(sl_ledger_free_bytes(&node->ledger, gpu),
		node->ledger.gpu[gpu].unclaimed_bytes);
}

/* What bind chooses by. True: it spreads. */
static bool bind_facts(const struct sl_node *node, const struct sl_admit_plan *plan,
	const struct sl_admit_gpu *facts, struct sl_bind_gpu rooms[SL_NODE_GPUS_MAX])
{
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
	return can_burst &&
	       SL_MUTANT(PACK_IGNORED, node->config.config.placement != SL_PLACEMENT_PACK,
		       true);
}

/*
 * Removes from `facts` the GPUs on which the user's bounds forbid the workload: a fraction can be
 * allowed on a small GPU and too much on a large one. True: too few GPUs are left, and *verdict has
 * the last removal. This check comes before the others, so users learn of their bound before they
 * learn of neighbours.
 */
static bool exceeds_bounds(const struct sl_event *event, const struct sl_admit_ask *ask,
	struct sl_admit_gpu *facts, struct sl_bounds_verdict *verdict)
{
	struct sl_bounds_ask facts_of_it = {.priority = event->workload_add.priority,
		.workloads = event->workload_add.owned};
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

/* Asks the verdicts in turn. Returns the chosen GPUs and the offer; 0: refused. */
static uint32_t judge_new(struct sl_node_step *step, const struct sl_event *event,
	struct sl_admit_offer *offer)
{
	uint64_t id = event->workload_add.workload;
	uint32_t allowed = event->workload_add.gpu_mask & present_mask(step->node, false);
	uint32_t chosen;
	struct sl_admit_ask ask = {event->workload_add.request, event->workload_add.limit,
		event->workload_add.gpu_count, event->workload_add.may_take_less};
	struct sl_bounds_verdict bound = {.reason = SL_REASON_NONE};
	struct sl_admit_gpu facts[SL_NODE_GPUS_MAX];
	struct sl_admit_plan plan;
	struct sl_bind_gpu rooms[SL_NODE_GPUS_MAX];
	bool is_bound, spread;

	admit_facts(step->node, &ask, allowed, facts);
	time_facts(step->node, NULL, event->workload_add.compute_pm, facts);
	sl_admit_judge(&ask, facts, &plan);
	is_bound = plan.reason != SL_REASON_TOO_FEW_GPUS &&
		   plan.reason != SL_REASON_LIMIT_BELOW_REQUEST &&
		   exceeds_bounds(event, &ask, facts, &bound);
	if (is_bound) {
		sl_node_refuse(step, id, bound.reason, 0, bound.wanted, bound.allowed);
		return 0;
	}
	if (bound.reason != SL_REASON_NONE)
		sl_admit_judge(&ask, facts, &plan); /* without those GPUs */
	if (plan.reason != SL_REASON_NONE) {
		sl_node_refuse(step, id, plan.reason, plan.gpu, plan.wanted_bytes,
			plan.available_bytes);
		return 0;
	}
	spread = bind_facts(step->node, &plan, facts, rooms);
	chosen = sl_bind_choose(
		rooms, plan.mask, ask.gpu_count ? ask.gpu_count : 1, spread);
	*offer = smallest_offer(plan.offer, chosen);
	return chosen;
}

/* Admitted by an earlier daemon on exactly these GPUs; not judged again. */
static uint32_t take_over(struct sl_node_step *step, const struct sl_event *event,
	struct sl_admit_offer *offer)
{
	uint32_t mask = event->workload_add.gpu_mask & present_mask(step->node, true);
	struct sl_admit_ask ask = {event->workload_add.request, event->workload_add.limit,
		event->workload_add.gpu_count};
	struct sl_admit_gpu facts[SL_NODE_GPUS_MAX];
	struct sl_admit_plan plan;

	if (!mask) {
		sl_node_refuse(step, event->workload_add.workload, SL_REASON_TOO_FEW_GPUS,
			0, 1, 0);
		return 0;
	}
	admit_facts(step->node, &ask, mask, facts);
	sl_admit_judge(&ask, facts, &plan);
	*offer = smallest_offer(plan.offer, mask);
	offer->limit_bytes = sl_max_u64(offer->limit_bytes, offer->request_bytes);
	return mask;
}

void sl_node_on_workload_add(struct sl_node_step *step, const struct sl_event *event)
{
	uint64_t id = event->workload_add.workload;
	struct sl_admit_offer offer;
	uint32_t chosen;

	if (sl_node_find_workload(step->node, id)) {
		sl_node_refuse(step, id, SL_REASON_DUPLICATE, 0, 0, 0);
		return;
	}
	chosen = event->workload_add.recovered ? take_over(step, event, &offer)
					       : judge_new(step, event, &offer);
	if (chosen)
		admit(step, event, chosen, offer);
}

/* --- its first process begins --- */

/* Its GPU is chosen again, as if the workload came now. It stays where all that its limit allows is
 * free, and where no other GPU is better. Returns the other GPU as a mask, or 0. */
static uint32_t suits_better(
	struct sl_node *node, struct sl_node_workload *workload, uint32_t mask)
{
	struct sl_ledger_account *account = &workload->account;
	uint64_t request = account->request_bytes, limit = account->limit_bytes;
	uint32_t own = account->gpu_mask, there = present_mask(node, false), best;
	uint32_t gpu = (uint32_t)__builtin_ctz(own);
	struct sl_admit_ask ask = {.request = {SL_AMOUNT_BYTES, 0, request},
		.limit = {SL_AMOUNT_BYTES, 0, limit},
		.gpu_count = 1};
	struct sl_admit_gpu facts[SL_NODE_GPUS_MAX];
	struct sl_bind_gpu rooms[SL_NODE_GPUS_MAX];
	struct sl_admit_plan plan;
	bool spread;

	/* Its own promise is in its way nowhere. */
	sl_ledger_unbind(&node->ledger, account);
	admit_facts(node, &ask, (mask | own) & there, facts);
	time_facts(node, workload, workload->compute_pm, facts);
	sl_admit_judge(&ask, facts, &plan);
	plan.mask = SL_MUTANT(BEGINS_ON_REQUESTS, plan.mask, (mask | own) & there);
	spread = bind_facts(node, &plan, facts, rooms);
	sl_ledger_bind(&node->ledger, account, own, request, limit);
	best = sl_bind_choose(rooms, plan.mask & ~own, 1, spread);
	if (!best || !(plan.mask & own))
		return best;
	if (rooms[gpu].free_bytes >= SL_MUTANT(BEGINS_IN_VAIN,
					     plan.offer[gpu].limit_bytes, UINT64_MAX) ||
		!sl_bind_is_better(&rooms[__builtin_ctz(best)], &rooms[gpu], spread))
		return 0;
	return best;
}

static bool has_begun(const struct sl_node_workload *workload)
{
	sl_node_each_client_of (client, workload) {
		if (client->stage != SL_NODE_DYING)
			return true;
	}
	return false;
}

void sl_node_on_workload_begins(struct sl_node_step *step, const struct sl_event *event)
{
	uint64_t id = event->workload_begins.workload;
	struct sl_node_workload *workload = sl_node_find_workload(step->node, id);
	uint32_t to;

	if (!workload || sl_node_is_removed(workload)) {
		sl_node_note(step, SL_REASON_STRAY, 0, id, 0, 0);
		return;
	}
	/* Before all clients have reported, full GPUs may look empty. */
	if (workload->stage != SL_NODE_RUNS ||
		SL_MUTANT(BEGINS_IN_RECOVERY, step->node->recover_until != 0, false) ||
		SL_MUTANT(BEGINS_AGAIN, has_begun(workload), false) ||
		workload->account.gpu_mask & (workload->account.gpu_mask - 1))
		return;
	to = suits_better(step->node, workload, event->workload_begins.gpu_mask);
	if (!to)
		return;
	sl_node_rebind(step, workload,
		(uint32_t)__builtin_ctz(workload->account.gpu_mask),
		(uint32_t)__builtin_ctz(to), SL_REASON_BEGINS_ELSEWHERE);
	step->plans = true;
}

void sl_node_on_workload_remove(struct sl_node_step *step, const struct sl_event *event)
{
	uint64_t id = event->workload_remove.workload;
	struct sl_node_workload *workload = sl_node_find_workload(step->node, id);

	if (!workload || sl_node_is_removed(workload)) {
		sl_node_note(step, SL_REASON_STRAY, 0, id, 0, 0);
		return;
	}
	sl_node_cancel_all(step, workload);
	/* No kill any more. */
	if (workload->stage != SL_NODE_ENDING ||
		SL_MUTANT(STOP_KILLS_THE_ENDED, true, false))
		workload->stage = SL_NODE_RUNS;
	sl_ledger_unbind(&step->node->ledger, &workload->account);
	sl_node_forget_workload(step->node, workload);
	step->plans = true;
}

/* --- end --- */

static void tell_stop(struct sl_node_step *step, const struct sl_node_workload *workload,
	enum sl_stop_stage stage)
{
	sl_node_emit(step, (struct sl_action){.type = SL_ACTION_STOP,
				   .stop = {.workload = workload->index.id,
					   .stage = stage,
					   .reason = SL_REASON_STOP_ASKED}});
}

/*
 * Also denies the workload's waiting demands: a process that should save its work must not sleep in
 * an allocation until its grace is over. A second stop after the kill begins a new grace, after
 * which survivors and later clients are killed.
 */
void sl_node_on_workload_stop(struct sl_node_step *step, const struct sl_event *event)
{
	uint64_t id = event->workload_stop.workload;
	struct sl_node_workload *workload = sl_node_find_workload(step->node, id);
	sl_ns kill_at = sl_node_later(step->now, event->workload_stop.grace);

	if (!workload || sl_node_is_removed(workload)) {
		sl_node_note(step, SL_REASON_STRAY, 0, id, 0, 0);
		return;
	}
	if (!sl_node_is_stopped(workload)) {
		tell_stop(step, workload, SL_STOP_TERM);
		/* To save its work and to end, a process may need its GPUs. */
		sl_node_each_client_of (client, workload)
			SL_MUTANT(ENDS_AWAY, sl_node_call_back(step, client), (void)0);
		sl_node_cancel_all(step, workload);
	} else if (workload->stage == SL_NODE_ENDING) {
		kill_at = SL_MUTANT(STOP_LONGER_COUNTS,
			sl_min_u64(workload->stage_at, kill_at), kill_at);
	}
	/* What a park gave up is not claimed again. */
	if (sl_node_is_parked(workload))
		workload->compute_pm = 0;
	workload->stage = SL_NODE_ENDING;
	workload->stage_at = kill_at;
	step->plans = true;
}

void sl_node_time_workloads(struct sl_node_step *step)
{
	sl_node_each_workload (workload, step->node) {
		if (workload->stage == SL_NODE_ENDING &&
			step->now >= workload->stage_at) {
			workload->stage = SL_NODE_ENDED;
			workload->stage_at =
				sl_node_later(workload->stage_at, UNCOUNTED_AFTER);
			if (SL_MUTANT(STOP_NEVER_KILLS, true, false))
				tell_stop(step, workload, SL_STOP_KILL);
		}
		if (workload->stage == SL_NODE_ENDED && step->now >= workload->stage_at)
			workload->stage = SL_NODE_UNCOUNTED;
		if (workload->stage == SL_NODE_ENDING || workload->stage == SL_NODE_ENDED)
			sl_node_wake(step, workload->stage_at);
	}
}
