/*
 * contexts - contexts and code, and the reserve that pays for them
 *
 * A context stays as long as its process (places.c). First come, first paid: measured bytes are
 * paid as far as the reserve has room, and stay paid while they are measured. The rest counts
 * against the workload until the reserve has room again. A process makes its first context only if
 * the reserve also has room for the next one; otherwise a workload there might never be fully
 * resident again. A process asks for its first context with a demand of 0 bytes. This demand has no
 * rank: it takes nothing from others, and nothing is moved for it.
 */
#include "policy/node/plan.h"
#include "policy/verdicts/admit.h"

/* One more context is assumed to need as much as the largest process there, plus 1 / CODE_PART of
 * what the reserve has for contexts, because code is loaded later. */
#define CODE_PART 8

/* Of the clients with unpaid bytes, the one that joined first. */
static struct sl_node_client *first_unpaid(const struct sl_node *node, uint32_t gpu)
{
	struct sl_node_client *first = NULL;

	sl_node_each_client (client, node) {
		if (client->holding.cell[gpu].hidden_bytes &&
			(!first || client->index.id < first->index.id))
			first = client;
	}
	return first;
}

void sl_node_repay(struct sl_node_step *step, uint32_t gpu)
{
	struct sl_node *node = step->node;

	while (node->ledger.gpu[gpu].sum.hidden_bytes &&
		SL_MUTANT(PAID_ONCE, sl_ledger_reserve_room(&node->ledger, gpu), 0)) {
		struct sl_node_client *client = first_unpaid(node, gpu);

		sl_ledger_set_hidden(&node->ledger, &client->holding, gpu,
			sl_ledger_measured(&client->holding.cell[gpu]));
		sl_node_tell_view(step, client->workload, gpu, 1);
		step->plans = true;
	}
}

static bool has_context(const struct sl_ledger_cell cell[], uint32_t gpu)
{
	return sl_ledger_measured(&cell[gpu]);
}

static uint64_t context_of(const struct sl_node *node, uint32_t gpu)
{
	const struct sl_ledger_gpu *g = &node->ledger.gpu[gpu];
	uint64_t largest = 0;

	sl_node_each_client (client, node)
		largest = sl_max_u64(
			largest, sl_ledger_measured(&client->holding.cell[gpu]));
	return largest + sl_sub_sat(g->reserve_bytes, g->driver_bytes) / CODE_PART;
}

/* The client was granted its context there, which is not measured yet. */
static bool is_making(const struct sl_node_client *client, uint32_t gpu)
{
	sl_node_each_demand_of (demand, client) {
		if (demand->flags & SL_NODE_DEMAND_CONTEXT && demand->epoch &&
			demand->gpu == gpu)
			return !has_context(client->holding.cell, gpu);
	}
	return false;
}

/* Its contexts were given up, too: they come back only where the reserve has room. */
static bool has_left(const struct sl_node_workload *workload)
{
	sl_node_each_client_of (client, workload) {
		if (sl_node_is_detached(client))
			return sl_node_is_parked(workload);
	}
	return false;
}

/* Contexts still to come there: one for each admitted workload without any, except `but`, and those
 * granted to further processes of any workload. */
static uint32_t to_come(
	const struct sl_node *node, uint32_t gpu, const struct sl_node_workload *but)
{
	uint32_t count = 0;

	sl_node_each_workload (workload, node) {
		bool has = has_context(workload->account.cell, gpu);

		count += workload != but && (workload->account.gpu_mask >> gpu & 1) &&
			 !has && !has_left(workload);
		sl_node_each_client_of (client, workload)
			count += (workload == but || has) && is_making(client, gpu);
	}
	return count;
}

/* The part that can never be moved. */
static uint64_t stays(
	const struct sl_node *node, const struct sl_node_client *client, uint32_t gpu)
{
	const struct sl_ledger_cell *cell = &client->holding.cell[gpu];

	return client->swaps && !sl_node_is_fixed(node, client->workload)
		       ? sl_ledger_fixed(cell)
		       : sl_ledger_live(cell);
}

static uint64_t stays_of(
	const struct sl_node *node, const struct sl_node_workload *workload, uint32_t gpu)
{
	uint64_t bytes = 0;

	sl_node_each_client_of (client, workload)
		bytes += stays(node, client, gpu);
	return bytes;
}

/* A workload that could now be fully resident on the GPU, but never again beside more_bytes that
 * cannot leave; NULL: none. but_bursts: only workloads with a request count. */
static const struct sl_node_workload *not_whole_beside(
	const struct sl_node *node, uint32_t gpu, uint64_t more_bytes, bool but_bursts)
{
	uint64_t shareable = sl_ledger_shareable(&node->ledger, gpu), all = 0;

	sl_node_each_workload (workload, node)
		all += stays_of(node, workload, gpu);
	sl_node_each_workload (workload, node) {
		uint64_t use = sl_ledger_use(&workload->account, gpu);
		uint64_t need = all - stays_of(node, workload, gpu) + use;

		if (use && need <= shareable && need + more_bytes > shareable &&
			(!but_bursts || sl_ledger_request(&workload->account, gpu)))
			return workload;
	}
	return NULL;
}

static const struct sl_node_workload *judge(const struct sl_node *node, uint32_t gpu,
	const struct sl_node_workload *own, bool has_request, struct sl_admit_gpu *facts)
{
	uint64_t context = context_of(node, gpu);
	uint64_t left = sl_sub_sat(sl_ledger_reserve_room(&node->ledger, gpu),
		to_come(node, gpu, own) * context);

	facts->context_bytes = context;
	facts->reserve_bytes = left;
	/* If nothing can be moved, everything that runs is whole. */
	return left < context && sl_node_swaps(node)
		       ? not_whole_beside(node, gpu, context - left, has_request)
		       : NULL;
}

void sl_node_context_facts(const struct sl_node *node, uint32_t gpu, bool has_request,
	struct sl_admit_gpu *facts)
{
	facts->crowded = judge(node, gpu, NULL, has_request, facts) != NULL;
}

/* --- the first context of a process --- */

static void grant(struct sl_node_step *step, struct sl_node_demand *demand)
{
	demand->epoch = ++step->node->next_epoch;
	sl_node_emit(step, (struct sl_action){.type = SL_ACTION_GRANT,
				   .grant = {.client = demand->client->index.id,
					   .ask = demand->ask,
					   .epoch = demand->epoch,
					   .gpu = demand->gpu}});
}

struct sl_node_because sl_node_context_because(
	const struct sl_node *node, const struct sl_node_demand *demand)
{
	const struct sl_node_workload *own = demand->client->workload;
	struct sl_admit_gpu facts = {0};
	const struct sl_node_workload *other = judge(node, demand->gpu, own,
		sl_ledger_request(&own->account, demand->gpu), &facts);

	return (struct sl_node_because){
		.reason = other ? SL_REASON_CONTEXT_WAITS : SL_REASON_NONE,
		.gpu = demand->gpu,
		.workload = own->index.id,
		.client = demand->client->index.id,
		.other = other ? other->index.id : 0,
		.other_bytes = other ? sl_ledger_use(&other->account, demand->gpu) : 0,
		.bytes = facts.context_bytes,
		.available_bytes = facts.reserve_bytes,
		.span = node->now - demand->arrived};
}

static void decide(struct sl_node_step *step, struct sl_node_demand *demand)
{
	sl_ns end = sl_node_later(
		demand->arrived, sl_node_wait_max(step->node, demand->client->workload));

	if (sl_node_context_because(step->node, demand).reason == SL_REASON_NONE) {
		grant(step, demand);
	} else if (sl_node_has_come(step, end)) {
		sl_node_deny(step, demand, SL_REASON_CONTEXT_WAITED);
	} else {
		step->node->awaits = true;
	}
}

void sl_node_contexts(struct sl_node_step *step)
{
	const struct sl_node_plan *plan = step->node->plan;
	struct sl_node_demand *first;
	uint64_t after = 0;

	do {
		first = NULL;
		for (uint32_t i = 0; i < plan->askers_count; i++) {
			sl_node_each_demand_of (demand, plan->askers[i]) {
				if (demand->flags & SL_NODE_DEMAND_CONTEXT &&
					!demand->epoch && demand->sequence > after &&
					(!first || demand->sequence < first->sequence))
					first = demand;
			}
		}
		if (first) {
			after = first->sequence;
			decide(step, first);
		}
	} while (first);
}
