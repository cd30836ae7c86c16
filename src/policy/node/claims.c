/*
 * claims - which clients want to be on which GPUs, by rank
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "policy/node/plan.h"

static bool has_claims(const struct sl_node *node, const struct sl_node_client *client)
{
	/* A client that cannot come back has no use for room. */
	if (!client->look->is_whole &&
		!(client->look->answers &&
			SL_MUTANT(ATTACH_KEEPS_ROOM, sl_node_may_attach(node, client),
				true)))
		return false;
	return client->stage != SL_NODE_EXPECTED && !client->look->coming &&
	       !sl_node_is_told_to_end(client) && !sl_node_is_parked(client->workload) &&
	       client->workload->stage != SL_NODE_UNCOUNTED;
}

/* --- which --- */

static bool is_idle_for_grace(
	struct sl_node_step *step, const struct sl_node_client *client)
{
	sl_ns grace = SL_MUTANT(NO_GRACE, client->workload->idle_grace, 0);

	if (client->stage == SL_NODE_DYING)
		return true;
	if (client->wants_since)
		return false;
	/* A client without memory on a GPU needs no proof: its work is reported. */
	if (sl_node_has_memory(client) && (!client->idle_since || !client->proven))
		return false;
	return sl_node_has_come(step, sl_node_later(sl_node_quiet_since(client), grace));
}

static bool has_grace(struct sl_node_step *step, const struct sl_node_workload *workload)
{
	if (!workload->sums->is_within || workload->sums->is_warm)
		return false;
	sl_node_each_client_of (client, workload) {
		if (!is_idle_for_grace(step, client))
			return true;
	}
	return false;
}

static bool runs(const struct sl_node_client *client)
{
	return client->look->is_whole ? !client->look->is_idle : client->wants_since != 0;
}

/* --- facts --- */

/* What it lacks on each of its GPUs is free or on its way. */
static bool is_covered(const struct sl_node *node, const struct sl_node_claim *claim)
{
	const struct sl_node_client *client = claim->client;

	sl_each_gpu (gpu, claim->gpus) {
		uint64_t lacks = sl_node_missing(node, client, gpu);
		uint64_t comes = sl_ledger_free_bytes(&node->ledger, gpu) +
				 node->plan->leaving_bytes[gpu];

		if (claim->demand && claim->demand->gpu == gpu)
			lacks += claim->demand->bytes;
		/* Until dying bytes are gone, what bursts take is lent (I2). */
		if (claim->demand && !claim->entitled)
			lacks += node->ledger.gpu[gpu].sum.dying_bytes;
		/* Memory that is never given back must leave others their requests. */
		if (claim->demand && !claim->entitled &&
			sl_node_stays_for_good(node, claim->demand))
			lacks += node->ledger.gpu[gpu].unclaimed_bytes -
				 sl_ledger_unclaimed(&client->workload->account, gpu);
		if (lacks > comes)
			return false;
	}
	return true;
}

uint32_t sl_node_set_of(
	const struct sl_node_plan *plan, const struct sl_node_workload *workload)
{
	uint32_t mask =
		workload->sums->gpus ? workload->sums->gpus : workload->account.gpu_mask;

	return mask ? plan->set_of[__builtin_ctz(mask)] : 0;
}

sl_ns sl_node_patience_of(
	const struct sl_node *node, const struct sl_node_workload *workload)
{
	const struct sl_node_plan *plan = node->plan;

	if (plan->highest[sl_node_set_of(plan, workload)] <= workload->priority ||
		SL_MUTANT(NO_MIN_SHARE, false, true))
		return 0;
	return sl_turns_patience(workload->sums->slice, node->config.config.min_share_pm);
}

static bool is_stalled(const struct sl_node_client *client)
{
	return client->look->is_idle && !client->wants_since;
}

static void fill(struct sl_node_step *step, struct sl_node_claim *claim)
{
	const struct sl_node *node = step->node;
	const struct sl_node_client *client = claim->client;
	const struct sl_node_workload *workload = client->workload;
	struct sl_node_demand *demand = claim->demand;
	bool evicts = client->order.id && client->order.kind == SL_NODE_EVICT;

	claim->facts = (struct sl_rank_facts){.kind = claim->facts.kind,
		.entitled = claim->entitled,
		.whole = client->look->is_whole,
		.evict_open = evicts,
		.crowded = node->plan->crowded & claim->gpus,
		.coming = demand ? demand->flags & SL_NODE_DEMAND_SEATED
				 : client->seat == SL_NODE_COMING,
		.backs_off = sl_node_must_wait(client, step->now) ||
			     (demand && step->now < demand->back_off.until),
		.served = client->seat == SL_NODE_SERVED,
		.overdue_seat = client->told & SL_NODE_OVERDUE,
		.stalls = demand && !(demand->flags & SL_NODE_DEMAND_SEATED) &&
			  is_stalled(client),
		.priority = workload->priority,
		.asked_at = demand ? demand->arrived : client->wants_since,
		.served_at = workload->served_at,
		.slice_ends = workload->slice_ends,
		.cost = client->look->cost,
		.patience = sl_node_patience_of(node, workload),
		.sequence = demand ? demand->sequence : 0,
		.client = client->index.id};
	claim->facts.covered = claim->facts.coming && is_covered(node, claim);
}

/* --- the list --- */

static struct sl_node_claim *add(
	struct sl_node *node, struct sl_node_client *client, enum sl_rank_kind kind)
{
	struct sl_node_plan *plan = node->plan;
	struct sl_node_claim *claim = &plan->claims[plan->claims_count++];

	memset(claim, 0,
		offsetof(struct sl_node_claim, reserved_bytes) +
			plan->now.gpus * sizeof(claim->reserved_bytes[0]));
	claim->client = client;
	claim->facts.kind = kind;
	claim->gpus = client->look->gpus;
	claim->entitled = client->workload->sums->is_within;
	return claim;
}

/* By arrival: older demands of the workload use its request first. */
static int by_sequence(const void *a, const void *b)
{
	const struct sl_node_claim *x = *(struct sl_node_claim *const *)a;
	const struct sl_node_claim *y = *(struct sl_node_claim *const *)b;

	return x->demand->sequence < y->demand->sequence ? -1 : 1;
}

static void entitle(struct sl_node_claim *of[], uint32_t count)
{
	uint64_t asked[SL_NODE_GPUS_MAX] = {0};

	qsort(of, count, sizeof(of[0]), by_sequence);
	for (uint32_t i = 0; i < count; i++) {
		struct sl_node_demand *demand = of[i]->demand;
		const struct sl_ledger_account *account =
			&demand->client->workload->account;
		uint32_t gpu = demand->gpu;

		uint64_t use = sl_ledger_use(account, gpu) + demand->bytes;
		uint64_t request = sl_ledger_request(account, gpu);

		/* If it exceeds the request together with older demands, it ranks as a burst. It is
		 * not denied, because those may give up. */
		of[i]->entitled = use + asked[gpu] <= request;
		if (of[i]->entitled)
			asked[gpu] += demand->bytes;
	}
}

/* Joins GPUs on which one workload has memory: they take turns together. */
static void join(struct sl_node_plan *plan, uint32_t mask)
{
	uint32_t roots = 0, least;

	sl_each_gpu (gpu, mask)
		roots |= 1u << plan->set_of[gpu];
	if (!(roots & (roots - 1)))
		return;
	least = (uint32_t)__builtin_ctz(roots);
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		if (roots >> plan->set_of[gpu] & 1)
			plan->set_of[gpu] = least;
	}
}

void sl_node_list_claims(struct sl_node_step *step, struct sl_node_workload *workload)
{
	struct sl_node *node = step->node;
	struct sl_node_plan *plan = node->plan;
	struct sl_node_claim **demands = plan->order;
	uint32_t count = 0;
	bool grace = has_grace(step, workload);

	sl_node_each_client_of (client, workload) {
		if (client->stage == SL_NODE_DYING || !has_claims(node, client))
			continue;
		if (client->look->gpus && runs(client))
			client->look->body = add(node, client, SL_RANK_BODY);
		else if (client->look->gpus && grace && client->look->is_whole)
			client->look->body = add(node, client, SL_RANK_GRACE);
		sl_node_each_demand_of (demand, client) {
			struct sl_node_claim *claim;
			sl_ns until;

			if (!sl_node_is_waiting(demand))
				continue;
			/* Until it is retried, others may use its room. */
			until = sl_node_refused_until(node, demand);
			if (!sl_node_has_come(step, until)) {
				plan->refused |= 1u << demand->gpu;
				continue;
			}
			claim = add(node, client, SL_RANK_DEMAND);
			claim->demand = demand;
			claim->gpus |= 1u << demand->gpu;
			workload->sums->gpus |= 1u << demand->gpu;
			workload->sums->cost +=
				sl_node_cost_out(node, demand->gpu, demand->bytes) +
				sl_node_cost_in(node, demand->gpu, demand->bytes);
			demands[count++] = claim;
		}
	}
	if (count)
		entitle(demands, count);
	join(plan, workload->sums->gpus);
}

/* --- competitors --- */

/* A demand within its request may bring a body that exceeds the request on another GPU: that body
 * is a burst. */
static void add_entitled(
	const struct sl_node *node, const struct sl_node_claim *claim, uint64_t needs[])
{
	if (!claim->entitled)
		return;
	if (SL_MUTANT(CROWDED_BY_BODY, claim->client->workload->sums->is_within, true))
		sl_node_add_needs(node, claim, needs);
	else
		needs[claim->demand->gpu] += claim->demand->bytes;
}

/* Seats the entitled claims on the copy that tells whether a burst ever fits: each of them gets its
 * turn sooner or later. GPUs where they do not all fit beside lasting memory are crowded: there
 * they take turns among themselves. */
static void seat_entitled(struct sl_node *node)
{
	struct sl_node_plan *plan = node->plan;
	uint64_t needs[SL_NODE_GPUS_MAX] = {0};

	plan->crowded = 0;
	for (uint32_t i = 0; i < plan->claims_count; i++)
		add_entitled(node, &plan->claims[i], needs);
	for (uint32_t gpu = 0; gpu < plan->lasts.gpus; gpu++) {
		if (SL_MUTANT(CROWDED_UNSEEN,
			    plan->lasts.gpu[gpu].fixed_bytes + needs[gpu],
			    0) > plan->lasts.gpu[gpu].shareable_bytes)
			plan->crowded |= 1u << gpu;
	}
	for (uint32_t i = 0; i < plan->claims_count; i++) {
		struct sl_node_claim *claim = &plan->claims[i];
		struct sl_room_claim of;

		/* Whether a burst that comes along ever fits depends on what is added here. */
		if (!claim->entitled ||
			(!sl_node_brings_burst(claim) &&
				sl_node_endless(node, claim) != SL_ENDLESS_NOT))
			continue;
		sl_node_room_claim(node, claim, !claim->demand,
			&claim->client->workload->sums->lasts_bursts, &of);
		sl_room_add(&plan->lasts_bursts, &of);
	}
}

static uint64_t weight_of(
	const struct sl_node_plan *plan, const struct sl_node_workload *workload)
{
	uint64_t least = SL_LEDGER_BYTES_MAX;

	sl_each_gpu (gpu, workload->account.gpu_mask)
		least = sl_min_u64(least, plan->now.gpu[gpu].shareable_bytes);
	return sl_turns_weight(workload->account.request_bytes, least);
}

/* A workload within its request does not share the turns of bursts, or shorten them. */
static bool takes_turns(
	const struct sl_node_plan *plan, const struct sl_node_claim *claim)
{
	return !claim->entitled || plan->crowded & claim->gpus;
}

/* All of the workload fits beside what lasts. */
static bool fits_together(
	const struct sl_node *node, const struct sl_node_workload *workload)
{
	const struct sl_room *room = workload->sums->is_within
					     ? &node->plan->lasts
					     : &node->plan->lasts_bursts;
	const struct sl_room_workload *own = workload->sums->is_within
						     ? &workload->sums->lasts
						     : &workload->sums->lasts_bursts;

	sl_each_gpu (gpu, workload->sums->gpus) {
		uint64_t others = room->gpu[gpu].fixed_bytes +
				  room->gpu[gpu].seats_bytes - own->on[gpu].fixed_bytes -
				  own->on[gpu].seats_bytes;

		if (others + sl_ledger_use(&workload->account, gpu) >
			room->gpu[gpu].shareable_bytes)
			return false;
	}
	return true;
}

/* Sets the lengths of slices, and begins those that are due. */
static void measure_slices(struct sl_node_step *step)
{
	struct sl_node *node = step->node;
	struct sl_node_plan *plan = node->plan;
	struct sl_turns_unit unit[SL_NODE_GPUS_MAX] = {{0}};
	int32_t *highest = plan->highest;
	sl_ns turn_max = node->config.config.turn_max;

	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++)
		highest[gpu] = INT32_MIN;
	for (uint32_t i = 0; i < plan->claims_count; i++) {
		struct sl_node_workload *workload = plan->claims[i].client->workload;
		uint32_t set = sl_node_set_of(plan, workload);

		if (workload->priority > highest[set])
			highest[set] = workload->priority;
		if (workload->sums->takes_turns || !takes_turns(plan, &plan->claims[i]))
			continue;
		workload->sums->takes_turns = true;
		sl_turns_join(&unit[set], workload->sums->cost, weight_of(plan, workload),
			turn_max);
	}
	sl_node_each_workload (workload, node) {
		workload->sums->slice =
			sl_turns_length(&unit[sl_node_set_of(plan, workload)],
				weight_of(plan, workload), turn_max);
		workload->sums->fits_together = fits_together(node, workload);
		sl_node_begin_slices(step, workload);
	}
}

/* --- siblings --- */

/* The oldest waiting body of its workload that will get a turn. */
static void find_sibling(struct sl_node *node, struct sl_node_claim *claim)
{
	struct sl_node_sums *sums = claim->client->workload->sums;

	if (claim->demand || !claim->client->wants_since || claim->facts.whole ||
		!sums->fits_together || sl_node_endless(node, claim) != SL_ENDLESS_NOT)
		return;
	if (!sums->sibling || claim->facts.asked_at < sums->sibling->asked_at)
		sums->sibling = &claim->facts;
}

static void join_sibling(struct sl_node_claim *claim)
{
	const struct sl_rank_facts *sibling = claim->client->workload->sums->sibling;

	if (sibling && sibling->client != claim->facts.client)
		claim->facts.sibling = SL_MUTANT(SIBLINGS_UNSEEN, sibling, NULL);
}

/* --- all of it --- */

static int by_rank(const void *a, const void *b)
{
	return sl_rank_compare(&(*(struct sl_node_claim *const *)a)->rank,
		&(*(struct sl_node_claim *const *)b)->rank);
}

void sl_node_rank_claims(struct sl_node_step *step)
{
	struct sl_node *node = step->node;
	struct sl_node_plan *plan = node->plan;

	for (uint32_t room = 0; room < 3; room++)
		plan->above[room].known = false;
	seat_entitled(node);
	measure_slices(step);
	for (uint32_t i = 0; i < plan->claims_count; i++) {
		fill(step, &plan->claims[i]);
		find_sibling(node, &plan->claims[i]);
	}
	plan->rank_due = SL_NS_NEVER;
	for (uint32_t i = 0; i < plan->claims_count; i++) {
		struct sl_node_claim *claim = &plan->claims[i];

		join_sibling(claim);
		claim->rank = sl_rank_of(&claim->facts, step->now, &plan->rank_due);
		plan->order[i] = claim;
	}
	if (plan->claims_count)
		qsort(plan->order, plan->claims_count, sizeof(plan->order[0]), by_rank);
}
