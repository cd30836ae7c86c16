/*
 * refusals - demands whose answer does not depend on others
 *
 * A demand that can never be served is denied, also during a recovery: above the limit, on a lost
 * GPU, or for held memory where requests leave no room. Demands to hold existing memory are
 * answered at once.
 */
#include "policy/node/plan.h"

bool sl_node_exceeds_limit(const struct sl_node_demand *demand)
{
	const struct sl_ledger_account *account = &demand->client->workload->account;

	return !(demand->flags & SL_NODE_DEMAND_THERE) &&
	       sl_ledger_use(account, demand->gpu) + demand->bytes > account->limit_bytes;
}

/* An untakeable client lowered its workload's limit to what it holds. */
static bool is_dropped(const struct sl_node *node, const struct sl_node_demand *demand)
{
	const struct sl_node_workload *workload = demand->client->workload;

	/* An evicted client is judged when it is back; while reports are missing, the use is
	 * unknown. */
	if (demand->flags & SL_NODE_DEMAND_CONTEXT || node->recover_until ||
		sl_node_is_parked(workload) || sl_node_is_out(demand->client) ||
		!sl_node_is_burst(demand))
		return false;
	sl_node_each_client_of (client, workload) {
		if (sl_node_is_untakeable(node, client))
			return true;
	}
	return false;
}

/* Why it can never be served. */
static enum sl_reason never(
	const struct sl_node *node, const struct sl_node_demand *demand)
{
	const struct sl_node_workload *workload = demand->client->workload;

	if (SL_MUTANT(LOST_IS_SERVED, node->gpu[demand->gpu].lost, false))
		return SL_REASON_GPU_LOST;
	if (SL_MUTANT(STOPPING_IS_SERVED,
		    sl_node_is_stopped(workload) || sl_node_is_removed(workload), false))
		return SL_REASON_CANCELLED;
	if (SL_MUTANT(LIMIT_WAITS, sl_node_exceeds_limit(demand), false))
		return SL_REASON_OVER_LIMIT;
	return SL_MUTANT(LIMIT_STAYS, is_dropped(node, demand), false)
		       ? SL_REASON_LIMIT_DROPPED
		       : SL_REASON_NONE;
}

void sl_node_each_waiting(struct sl_node_step *step, sl_node_waiting_fn fn)
{
	struct sl_node_plan *plan = step->node->plan;

	for (uint32_t i = 0; i < plan->askers_count; i++) {
		sl_list_foreach_safe (link, &plan->askers[i]->demands) {
			if (!sl_node_demand_at(link)->epoch)
				fn(step, sl_node_demand_at(link));
		}
	}
}

static void refuse(struct sl_node_step *step, struct sl_node_demand *demand)
{
	enum sl_reason reason = never(step->node, demand);

	if (reason != SL_REASON_NONE)
		sl_node_deny(step, demand, reason);
}

void sl_node_refuse_demands(struct sl_node_step *step)
{
	sl_node_each_waiting(step, refuse);
}

/* A grant may have used up the limit for another demand: the next plan denies that one, and decides
 * what must leave. */
void sl_node_find_over_limit(struct sl_node_step *step)
{
	struct sl_node_plan *plan = step->node->plan;

	for (uint32_t i = 0; i < plan->askers_count; i++) {
		sl_node_each_demand_of (demand, plan->askers[i]) {
			if (demand->epoch || !sl_node_exceeds_limit(demand))
				continue;
			plan->is_stale = true;
			sl_node_wake(step, step->now);
		}
	}
}

/* New memory may wait for what others have beyond their requests; existing memory may not. */
uint64_t sl_node_holdable(const struct sl_node *node,
	const struct sl_node_workload *workload, uint32_t gpu, bool there)
{
	const struct sl_ledger_account *account = &workload->account;
	const struct sl_ledger_gpu *g = &node->ledger.gpu[gpu];
	uint64_t others = SL_MUTANT(HELD_GIVES_UP, there, true)
				  ? g->claims_bytes - sl_ledger_claim(account, gpu)
				  : g->requests_bytes - sl_ledger_request(account, gpu);

	return sl_sub_sat(sl_ledger_shareable(&node->ledger, gpu),
		others + sl_ledger_fixed(&account->cell[gpu]));
}

/* Why it can never be held, whatever others give back; NONE: it can. */
static enum sl_reason never_held(
	const struct sl_node *node, const struct sl_node_demand *demand)
{
	const struct sl_node_workload *workload = demand->client->workload;
	uint32_t gpu = demand->gpu;
	bool there = demand->flags & SL_NODE_DEMAND_THERE;
	uint64_t own = sl_ledger_fixed(&workload->account.cell[gpu]) + demand->bytes;

	if (own <= sl_ledger_request(&workload->account, gpu))
		return SL_REASON_NONE;
	if (there && sl_ledger_is_degraded(&node->ledger, gpu))
		return SL_REASON_GPU_DEGRADED;
	return demand->bytes <= sl_node_holdable(node, workload, gpu, there)
		       ? SL_REASON_NONE
		       : SL_REASON_HELD_ON_REQUESTS;
}

/* When it is asked for; later each plan decides it anew. */
bool sl_node_is_burst(const struct sl_node_demand *demand)
{
	const struct sl_ledger_account *account = &demand->client->workload->account;
	uint32_t gpu = demand->gpu;
	uint64_t use = demand->flags & SL_NODE_DEMAND_THERE
			       ? sl_ledger_fixed(&account->cell[gpu])
			       : sl_ledger_use(account, gpu);

	return use + demand->bytes > sl_ledger_request(account, gpu);
}

static void answer_there(struct sl_node_step *step, struct sl_node_demand *demand)
{
	enum sl_reason never;

	if (!(demand->flags & SL_NODE_DEMAND_THERE))
		return;
	never = never_held(step->node, demand);
	if (never != SL_REASON_NONE)
		sl_node_deny(step, demand, never);
	else
		sl_node_grant(step, demand);
}

/* Denies demands that can never be held. Records whether and since when others are bursts, even if
 * they make no claim. */
static void class_it(struct sl_node_step *step, struct sl_node_demand *demand)
{
	enum sl_reason never;

	if (demand->flags & SL_NODE_DEMAND_CONTEXT ||
		sl_node_is_parked(demand->client->workload))
		return;
	never = demand->flags & SL_NODE_DEMAND_HELD ? never_held(step->node, demand)
						    : SL_REASON_NONE;
	if (never != SL_REASON_NONE)
		sl_node_deny(step, demand, never);
	else if (!sl_node_is_burst(demand))
		demand->burst_since = 0;
	else if (!demand->burst_since)
		demand->burst_since = sl_node_stamp(step);
}

void sl_node_answer_there(struct sl_node_step *step)
{
	sl_node_each_waiting(step, answer_there);
	sl_node_each_waiting(step, class_it);
}
