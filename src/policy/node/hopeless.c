/*
 * hopeless - clients that wait for memory that only such clients have
 *
 * A waiting demand without a seat or a turn to come is a case for the deadlock rule
 * (verdicts/deadlock.h) once its client has stood still for idle_wait. Each plan denies one demand:
 * what its client then releases may save the others. While free bytes are kept for a demand, the
 * same rule says which claims may pass it, because only their clients can serve it.
 */
#include "policy/node/plan.h"
#include "policy/verdicts/deadlock.h"

struct sl_node_party {
	struct sl_deadlock_party party;
	struct sl_node_client *client;
};

struct sl_node_hopeless {
	struct sl_link parties;
	struct sl_node_party *party;
	/* As the rule sees them; parallel to plan->claims */
	struct sl_deadlock_demand *demand;
	struct sl_deadlock_claim *workload;
	uint64_t lend_bytes[SL_NODE_GPUS_MAX];
};

/* --- the scene --- */

void sl_node_make_room_for_hopeless(struct sl_node *node)
{
	struct sl_node_plan *plan = node->plan;
	struct sl_node_hopeless *h = plan->hopeless;

	if (!h)
		h = plan->hopeless = sl_arena_take(node->arena, sizeof(*h));
	h->party = sl_arena_take(node->arena, plan->room * sizeof(h->party[0]));
	h->demand = sl_arena_take(node->arena, plan->room * sizeof(h->demand[0]));
	h->workload = sl_arena_take(node->arena, plan->room * sizeof(h->workload[0]));
}

/* The client asks, gives and does nothing, and none of its demands is about to be retried after a
 * refusal of the driver. */
static bool is_still(struct sl_node_step *step, const struct sl_node_client *client)
{
	sl_ns at = sl_node_later(client->active_at, step->node->config.config.idle_wait);

	if (client->stage == SL_NODE_DYING || sl_node_is_told_to_end(client) ||
		!sl_node_has_come(step, at))
		return false;
	sl_node_each_demand_of (demand, client) {
		if (!demand->epoch &&
			step->now < sl_node_refused_until(step->node, demand))
			return false;
	}
	return true;
}

/* Its memory can go to the host if needed, as far as the pool has room; or is there. */
static bool gives(
	const struct sl_node *node, const struct sl_node_client *client, uint64_t *room)
{
	uint64_t bytes;

	if (client->order.id || sl_node_is_out(client))
		return true;
	if (client->look->lasts)
		return false;
	bytes = sl_ledger_evictable_on(client->holding.cell, client->holding.touched);
	if (SL_MUTANT(DEADLOCK_SWAP_UNSEEN, bytes > *room, true))
		return false;
	*room -= bytes;
	return true;
}

static void add_demand(struct sl_node_hopeless *h, struct sl_node_party *party,
	const struct sl_node_claim *claim, uint32_t index)
{
	struct sl_deadlock_demand *demand = &h->demand[index];

	*demand = (struct sl_deadlock_demand){.sequence = claim->demand->sequence,
		.bytes = claim->demand->bytes,
		.gpu = claim->demand->gpu,
		.entitled = !claim->demand->burst_since,
		.held = claim->demand->flags & SL_NODE_DEMAND_HELD};
	sl_list_push_tail(&party->party.demands, &demand->of_client);
	if (claim->has_seat)
		party->party.waits = false;
}

/* What the pool could still take of bursts on requests. */
static uint64_t pool_left(const struct sl_node *node)
{
	const struct sl_ledger *ledger = &node->ledger;
	uint64_t taken = node->config.config.slack_bytes + ledger->evicted_bytes +
			 ledger->leaving_bytes;

	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++)
		taken += sl_ledger_overlap(ledger, gpu);
	return sl_node_swaps(node) ? sl_sub_sat(node->config.config.pool_bytes, taken)
				   : 0;
}

static struct sl_deadlock_scene scene_of(
	struct sl_node_step *step, struct sl_node_hopeless *h)
{
	struct sl_node *node = step->node;
	const struct sl_node_plan *plan = node->plan;
	struct sl_deadlock_scene scene = {.parties = &h->parties,
		.ledger = &node->ledger,
		.lend_bytes = h->lend_bytes};
	uint64_t room = pool_left(node);
	uint32_t parties = 0, workloads = 0;

	sl_list_init(&h->parties);
	for (uint32_t gpu = 0; gpu < plan->now.gpus; gpu++) {
		h->lend_bytes[gpu] = sl_node_lend(node, gpu);
		scene.degraded_mask |= plan->now.gpu[gpu].degraded ? 1u << gpu : 0;
	}
	/* The claims of a client are adjacent, and so are those of a workload. */
	for (uint32_t i = 0; i < plan->claims_count; i++) {
		const struct sl_node_claim *claim = &plan->claims[i];
		struct sl_node_workload *workload = claim->client->workload;

		if (!claim->demand || claim->is_over || claim->demand->epoch)
			continue;
		if (!workloads || h->workload[workloads - 1].of != workload)
			h->workload[workloads++] = (struct sl_deadlock_claim){
				.of = workload,
				.priority = workload->priority,
				.stands = sl_node_has(node, SL_RESOLVER_PRIORITY) &&
					  !sl_node_is_fixed(node, workload)};
		if (!parties || h->party[parties - 1].client != claim->client) {
			struct sl_node_party *party = &h->party[parties++];

			*party = (struct sl_node_party){.client = claim->client,
				.party = {.holding = &claim->client->holding,
					.claim = &h->workload[workloads - 1],
					.waits = is_still(step, claim->client),
					.gives = gives(node, claim->client, &room)}};
			sl_list_init(&party->party.demands);
			sl_list_push_tail(&h->parties, &party->party.link);
		}
		add_demand(h, &h->party[parties - 1], claim, i);
	}
	return scene;
}

/* --- the victim --- */

static bool is_any_without_hope(struct sl_node_step *step)
{
	const struct sl_node_plan *plan = step->node->plan;
	bool is = false;

	for (uint32_t i = 0; i < plan->claims_count; i++) {
		struct sl_node_claim *claim = plan->order[i];

		is |= claim->demand && is_still(step, claim->client) &&
		      !claim->has_seat &&
		      sl_node_endless(step->node, claim) != SL_ENDLESS_NOT;
	}
	return is;
}

void sl_node_break_deadlock(struct sl_node_step *step)
{
	struct sl_node_hopeless *h = step->node->plan->hopeless;
	struct sl_deadlock_scene scene;
	struct sl_deadlock_plan found;

	if (!is_any_without_hope(step))
		return;
	scene = scene_of(step, h);
	found = sl_deadlock_find(&scene);
	if (found.victim)
		sl_node_end_demand(step,
			&step->node->plan->claims[found.victim - h->demand],
			SL_REASON_HOPELESS);
}

/* --- the helpers --- */

bool sl_node_helps(struct sl_node_step *step, const struct sl_node_claim *claim)
{
	struct sl_node_plan *plan = step->node->plan;
	const struct sl_node_claim *head = plan->keeper[claim->demand->gpu];
	struct sl_node_hopeless *h = plan->hopeless;
	const struct sl_deadlock_party *owner = NULL;

	if (!head || SL_MUTANT(KEPT_FROM_HELPERS, !is_still(step, claim->client), true))
		return false;
	if (plan->helped != head) {
		struct sl_deadlock_scene scene = scene_of(step, h);

		plan->helped = head;
		sl_list_foreach (link, &h->parties) {
			const struct sl_node_party *party =
				SL_LIST_ENTRY(link, struct sl_node_party, party.link);

			if (party->client == head->client)
				owner = &party->party;
		}
		sl_deadlock_helpers(&scene, &h->demand[head - plan->claims], owner);
	}
	sl_list_foreach (link, &h->parties) {
		const struct sl_node_party *party =
			SL_LIST_ENTRY(link, struct sl_node_party, party.link);

		if (party->client == claim->client)
			return party->party.helps;
	}
	return false;
}
