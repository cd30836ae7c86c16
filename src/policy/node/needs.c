/*
 * needs - what a claim needs, and whether it ever gets it
 *
 * Both questions are about the claim's body together with its demand. Whether the claim ever gets
 * its seat depends on what lasts: memory that no order and no answer takes away, and, for a burst,
 * all entitled claims.
 */
#include "policy/node/plan.h"

static const struct sl_room_workload *sums_in(
	const struct sl_node_sums *sums, uint32_t room)
{
	return room == 0 ? &sums->now : room == 1 ? &sums->lasts : &sums->lasts_bursts;
}

/* Claims come mostly by falling priority, so this is computed once per priority. */
static const uint64_t *above_in(struct sl_node *node, uint32_t room, int32_t priority)
{
	struct sl_node_above *above = &node->plan->above[room];

	if (above->known && above->priority == priority)
		return above->bytes;
	*above = (struct sl_node_above){.known = true, .priority = priority};
	sl_node_each_workload (workload, node) {
		const struct sl_room_workload *sums = sums_in(workload->sums, room);

		if (workload->priority <= priority)
			continue;
		for (uint32_t gpu = 0; gpu < node->plan->now.gpus; gpu++)
			above->bytes[gpu] += sl_sub_sat(sums->on[gpu].request_bytes,
				sl_room_here(&sums->on[gpu]));
	}
	return above->bytes;
}

void sl_node_above_changes(
	struct sl_node_plan *plan, const struct sl_node_workload *workload)
{
	plan->above[0].known &= workload->priority <= plan->above[0].priority;
}

/* `priority` takes back for a request what stands on it. */
bool sl_node_stands_above(const struct sl_node *node, const struct sl_node_claim *claim)
{
	return claim->demand && !claim->entitled &&
	       sl_node_has(node, SL_RESOLVER_PRIORITY) &&
	       SL_MUTANT(HELD_ON_LOAN, !(claim->demand->flags & SL_NODE_DEMAND_HELD),
		       true) &&
	       SL_MUTANT(LENDS_TO_NO_SWAP,
		       !sl_node_is_fixed(node, claim->client->workload), true);
}

/* The body's need on one of its GPUs; now: on the plan's copy. */
static struct sl_room_need body_need(const struct sl_node *node,
	const struct sl_node_client *client, uint32_t gpu, bool now)
{
	const struct sl_ledger_cell *cell = &client->holding.cell[gpu];
	uint64_t away = cell->evicted_bytes - cell->returning_bytes +
			sl_ledger_entry(&node->ledger, cell, gpu);

	if (node->gpu[gpu].lost || (now ? client->look->stays : client->look->lasts))
		return (struct sl_room_need){.away_bytes = away};
	if (now)
		return (struct sl_room_need){.away_bytes = away + cell->leaving_bytes,
			.there_bytes = sl_sub_sat(
				sl_ledger_evictable(cell), cell->leaving_bytes)};
	return (struct sl_room_need){.away_bytes = away,
		.there_bytes = sl_sub_sat(sl_ledger_live(cell), sl_ledger_fixed(cell))};
}

/* A seated burst of its workload may have used up its request. */
static bool is_entitled_beside(
	const struct sl_node_claim *claim, const struct sl_room_workload *of)
{
	const struct sl_node_demand *demand = claim->demand;
	const struct sl_room_share *share = demand ? &of->on[demand->gpu] : NULL;

	return claim->entitled &&
	       (!demand || sl_room_here(share) + share->away_bytes + demand->bytes <=
				   share->request_bytes);
}

void sl_node_room_claim(struct sl_node *node, const struct sl_node_claim *claim,
	bool with_body, struct sl_room_workload *of, struct sl_room_claim *room)
{
	const struct sl_node_client *client = claim->client;
	const struct sl_node_demand *demand = claim->demand;
	const struct sl_node_look *look = client->look;
	const struct sl_node_sums *sums = client->workload->sums;
	bool entitled = is_entitled_beside(claim, of);
	uint32_t which = of == &sums->now ? 0 : of == &sums->lasts ? 1 : 2;
	const uint64_t *above =
		sl_node_stands_above(node, claim)
			? above_in(node, which, client->workload->priority)
			: NULL;

	room->workload = of;
	/* A body that comes along must be within its request, too. A body that is there and stays
	 * needs no seat. */
	room->burst = !entitled ||
		      (demand && with_body && look->gpus &&
			      !(look->is_whole && look->stays) && !sums->is_within);
	room->demand = demand && !entitled;
	room->turns = demand && claim->entitled && node->plan->crowded & claim->gpus;
	room->stays = demand && sl_node_stays_for_good(node, demand);
	room->keeps =
		SL_MUTANT(KEPT_RETURNS_ON_LOAN, client->workload->account.stays, false);
	for (uint32_t gpu = 0; gpu < node->plan->now.gpus; gpu++) {
		bool has = look->gpus >> gpu & 1;

		room->need[gpu] = has && with_body
					  ? body_need(node, client, gpu, which == 0)
					  : (struct sl_room_need){0};
		room->above_bytes[gpu] = above ? above[gpu] : 0;
		room->own.bytes[gpu] =
			has && demand ? sl_node_back(&client->holding.cell[gpu]) : 0;
	}
	if (demand)
		room->need[demand->gpu].asks_bytes = demand->bytes;
}

/* It is the first of a client without another claim: its body comes along. */
static bool brings_body(const struct sl_node_claim *claim)
{
	return !claim->client->look->body &&
	       sl_node_first_waiting(claim->client) == claim->demand;
}

void sl_node_add_needs(
	const struct sl_node *node, const struct sl_node_claim *claim, uint64_t needs[])
{
	bool with_body = !claim->demand || brings_body(claim);

	if (claim->demand)
		needs[claim->demand->gpu] += claim->demand->bytes;
	sl_each_gpu (gpu, with_body ? claim->client->look->gpus : 0) {
		const struct sl_ledger_cell *cell = &claim->client->holding.cell[gpu];

		needs[gpu] += sl_ledger_entry(&node->ledger, cell, gpu);
		needs[gpu] += claim->client->look->lasts || node->gpu[gpu].lost
				      ? cell->evicted_bytes
				      : sl_ledger_all(cell) - sl_ledger_fixed(cell);
	}
}

/* --- what the pool lets --- */

static uint64_t out_of(const struct sl_room_gpu *gpu, uint64_t more)
{
	return sl_sub_sat(gpu->fixed_bytes + gpu->seats_bytes + gpu->rest_bytes + more,
		gpu->shareable_bytes);
}

uint64_t sl_node_lets(const struct sl_room *room, const struct sl_room_claim *claim,
	const struct sl_room_verdict *verdict)
{
	uint64_t bytes = 0;

	for (uint32_t gpu = 0; gpu < room->gpus; gpu++) {
		uint64_t more = claim->need[gpu].away_bytes + claim->need[gpu].asks_bytes;

		bytes += out_of(&room->gpu[gpu], more) - out_of(&room->gpu[gpu], 0);
	}
	return sl_sub_sat(bytes, verdict->lacks_bytes);
}

/* --- endless --- */

static bool is_before(
	const struct sl_node_demand *demand, const struct sl_node_claim *claim)
{
	bool entitled = !demand->burst_since;

	if (demand->epoch || demand == claim->demand)
		return false;
	if (entitled != claim->entitled)
		return entitled;
	return demand->sequence < claim->demand->sequence;
}

bool sl_node_brings_burst(const struct sl_node_claim *claim)
{
	return claim->demand && !claim->client->look->is_whole &&
	       !claim->client->workload->sums->is_within;
}

/* All that it needs at its turn, including earlier demands of its client. */
static void whole_need(struct sl_node *node, const struct sl_node_claim *claim,
	struct sl_room_workload *in, struct sl_room_claim *of)
{
	sl_node_room_claim(node, claim, true, in, of);
	if (!claim->demand)
		return;
	sl_node_each_demand_of (demand, claim->client) {
		if (is_before(demand, claim))
			of->need[demand->gpu].asks_bytes += demand->bytes;
	}
}

static enum sl_endless endless_of(struct sl_node *node, struct sl_node_claim *claim)
{
	struct sl_node_plan *plan = node->plan;
	struct sl_node_sums *sums = claim->client->workload->sums;
	bool burst = !claim->entitled || sl_node_brings_burst(claim);
	struct sl_room *room = burst ? &plan->lasts_bursts : &plan->lasts;
	struct sl_room_claim of;
	struct sl_room_verdict verdict;
	const struct sl_room_need *need;

	whole_need(node, claim, burst ? &sums->lasts_bursts : &sums->lasts, &of);
	verdict = sl_room_for(room, &of);
	need = &of.need[verdict.gpu];
	switch (verdict.code) {
	case SL_ROOM_OK: return SL_ENDLESS_NOT;
	case SL_ROOM_BOUND: return SL_ENDLESS_BOUND;
	case SL_ROOM_POOL:
		claim->lets_bytes = sl_node_lets(room, &of, &verdict);
		return SL_ENDLESS_POOL;
	default: break;
	}
	if (need->there_bytes + need->away_bytes + need->asks_bytes >
		room->gpu[verdict.gpu].shareable_bytes)
		return SL_ENDLESS_WHOLE;
	if (burst && verdict.code == SL_ROOM_GPU) {
		whole_need(node, claim, &sums->lasts, &of);
		of.stays = of.keeps = false;
		verdict = sl_room_for(&plan->lasts, &of);
		if (verdict.code == SL_ROOM_OK || verdict.code == SL_ROOM_POOL ||
			verdict.code == SL_ROOM_BOUND)
			return SL_ENDLESS_REQUESTS;
	}
	return SL_ENDLESS_STAYS;
}

enum sl_endless sl_node_endless(struct sl_node *node, struct sl_node_claim *claim)
{
	if (!claim->has_endless)
		claim->endless = endless_of(node, claim);
	claim->has_endless = true;
	return claim->endless;
}
