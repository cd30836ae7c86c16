/*
 * because - what a client or a demand waits for: a reason and its numbers
 *
 * Read from the facts and the verdicts of the last plan; nothing is decided again. Notes, denials
 * and `why` (why.c) give the same answer, which is as new as the state it explains.
 */
#include "policy/node/plan.h"

/* --- the claims of the last plan --- */

const struct sl_node_claim *sl_node_claim_of(const struct sl_node *node,
	const struct sl_node_client *client, const struct sl_node_demand *demand)
{
	const struct sl_node_plan *plan = node->plan;

	for (uint32_t i = 0; i < plan->claims_count; i++) {
		const struct sl_node_claim *claim = plan->order[i];

		if (claim->client == client && (!demand || claim->demand == demand) &&
			!claim->is_over)
			return claim;
	}
	return NULL;
}

static bool has_room_code(const struct sl_node_claim *claim, enum sl_room_code code)
{
	return claim && !claim->has_seat && claim->verdict == SL_NODE_LACKS &&
	       claim->room.code == code;
}

static enum sl_endless endless_of(const struct sl_node_claim *claim)
{
	return claim && !claim->has_seat ? claim->endless : SL_ENDLESS_NOT;
}

/* --- which other workload --- */

bool sl_node_name_most(const struct sl_node *node, struct sl_node_because *because,
	sl_node_bytes_fn bytes_of)
{
	because->other = because->other_bytes = 0;
	sl_node_each_workload (workload, node) {
		uint64_t bytes = bytes_of(node, workload, because->gpu);

		if (bytes <= because->other_bytes ||
			workload->index.id == because->workload)
			continue;
		because->other = workload->index.id;
		because->other_bytes = bytes;
	}
	return because->other_bytes;
}

static uint64_t here_on(
	const struct sl_node *node, const struct sl_node_workload *workload, uint32_t gpu)
{
	return sl_ledger_here(&workload->account, gpu);
}

static uint64_t leaving_on(
	const struct sl_node *node, const struct sl_node_workload *workload, uint32_t gpu)
{
	return workload->account.cell[gpu].leaving_bytes;
}

uint64_t sl_node_burst_on(
	const struct sl_node *node, const struct sl_node_workload *workload, uint32_t gpu)
{
	return sl_sub_sat(
		here_on(node, workload, gpu), sl_ledger_request(&workload->account, gpu));
}

uint64_t sl_node_lasting_on(
	const struct sl_node *node, const struct sl_node_workload *workload, uint32_t gpu)
{
	return workload->sums->lasts.on[gpu].fixed_bytes;
}

/* Within its request, so no burst moves it. */
static uint64_t graced_on(
	const struct sl_node *node, const struct sl_node_workload *workload, uint32_t gpu)
{
	return workload->sums->is_within
		       ? sl_sub_sat(here_on(node, workload, gpu),
				 sl_node_lasting_on(node, workload, gpu))
		       : 0;
}

static uint64_t ending_on(
	const struct sl_node *node, const struct sl_node_workload *workload, uint32_t gpu)
{
	uint64_t bytes = 0;

	if (sl_node_goes(workload))
		return here_on(node, workload, gpu);
	sl_node_each_client_of (client, workload)
		bytes += sl_node_is_told_to_end(client)
				 ? sl_ledger_live(&client->holding.cell[gpu])
				 : 0;
	return bytes;
}

uint64_t sl_node_hostless_on(
	const struct sl_node *node, const struct sl_node_workload *workload, uint32_t gpu)
{
	uint64_t bytes = 0;

	sl_node_each_client_of (client, workload)
		bytes += sl_node_is_hostless(client, node->now)
				 ? sl_ledger_evictable(&client->holding.cell[gpu])
				 : 0;
	return bytes;
}

/* Movable bytes that exceed its part of the pool. */
static uint64_t bound_on(
	const struct sl_node *node, const struct sl_node_workload *workload, uint32_t gpu)
{
	const struct sl_ledger_cell *cell = &workload->account.cell[gpu];

	return sl_sub_sat(sl_ledger_evictable(cell) - cell->leaving_bytes,
		sl_node_part_left(node, workload, true));
}

/* Of its burst, the bytes of untakeable processes. */
uint64_t sl_node_stuck_on(
	const struct sl_node *node, const struct sl_node_workload *workload, uint32_t gpu)
{
	uint64_t bytes = 0;

	sl_node_each_client_of (client, workload)
		bytes += sl_node_is_untakeable(node, client)
				 ? sl_ledger_live(&client->holding.cell[gpu])
				 : 0;
	return sl_min_u64(bytes, sl_node_burst_on(node, workload, gpu));
}

/* Of its burst, the bytes of processes that are never moved. */
uint64_t sl_node_kept_on(
	const struct sl_node *node, const struct sl_node_workload *workload, uint32_t gpu)
{
	uint64_t bytes = 0;

	sl_node_each_client_of (client, workload)
		bytes += sl_node_is_fixed(node, workload) || !client->swaps
				 ? sl_ledger_live(&client->holding.cell[gpu])
				 : 0;
	return sl_min_u64(bytes, sl_node_burst_on(node, workload, gpu));
}

/* A client was told to end for it, and the plan counts on that. */
static bool name_ended(const struct sl_node *node, struct sl_node_because *because)
{
	sl_node_each_client (client, node) {
		uint64_t bytes = sl_ledger_live(&client->holding.cell[because->gpu]);

		if (!bytes || !sl_node_ends(client, node->now) ||
			client->stop.other != because->workload ||
			client->stop.gpu != because->gpu)
			continue;
		because->other = client->workload->index.id;
		because->other_bytes = bytes;
		return true;
	}
	return false;
}

/* If clients that do not answer have all it lacks, names the one with the most. */
static bool name_silent(const struct sl_node *node, const struct sl_node_claim *claim,
	struct sl_node_because *because)
{
	uint32_t gpu = claim ? claim->room.gpu : 0;
	const struct sl_node_client *most = NULL;
	uint64_t all = 0;

	if (!has_room_code(claim, SL_ROOM_GPU))
		return false;
	sl_node_each_client (client, node) {
		uint64_t bytes = sl_ledger_live(&client->holding.cell[gpu]);

		if (client->stage == SL_NODE_DYING || client == claim->client || !bytes ||
			sl_node_answers(node, client, node->now))
			continue;
		all += bytes;
		if (!most || bytes > sl_ledger_live(&most->holding.cell[gpu]))
			most = client;
	}
	if (!most || all < claim->room.lacks_bytes)
		return false;
	because->gpu = gpu;
	because->bytes = sl_node_missing(node, claim->client, gpu);
	because->client = most->index.id;
	because->other = most->workload->index.id;
	because->other_bytes = sl_ledger_live(&most->holding.cell[gpu]);
	because->available_bytes = most->condition;
	return true;
}

/* Now or at its turn, the pool has no room for what would have to leave. */
static bool is_barred(const struct sl_node_claim *claim, enum sl_room_code code,
	enum sl_endless endless)
{
	return has_room_code(claim, code) || endless_of(claim) == endless;
}

bool sl_node_waits_for_pool(const struct sl_node *node, const struct sl_node_claim *claim,
	struct sl_node_because *because)
{
	bool bound = is_barred(claim, SL_ROOM_BOUND, SL_ENDLESS_BOUND);

	if (!sl_node_swaps(node) ||
		(!bound && !is_barred(claim, SL_ROOM_POOL, SL_ENDLESS_POOL)))
		return false;
	because->reason = bound ? SL_REASON_POOL_BOUND_WAITS : SL_REASON_POOL_WAITS;
	because->other = because->other_bytes = 0;
	because->available_bytes = claim->lets_bytes;
	if (!bound)
		return true;
	because->available_bytes = node->config.config.pool_member_bytes;
	(void)sl_node_name_most(node, because, bound_on);
	because->other_bytes = 0;
	return true;
}

/* --- what it waits for --- */

/* Names the first claim before `own` that is not served yet. Free memory is kept for that claim,
 * and nothing is moved for later ones before it has a seat. */
static bool name_first(const struct sl_node *node, const struct sl_node_claim *own,
	struct sl_node_because *because)
{
	const struct sl_node_plan *plan = node->plan;

	for (uint32_t i = 0; own && plan->order[i] != own; i++) {
		const struct sl_node_claim *claim = plan->order[i];

		if (claim->is_over || !(claim->gpus & own->gpus) ||
			(claim->has_seat &&
				!sl_node_set_aside(node, claim, because->gpu)))
			continue;
		because->other = claim->client->workload->index.id;
		because->other_bytes = 0;
		return true;
	}
	return false;
}

/* Names the workload that has the turn: of those that are seated there and can leave, the one with
 * the largest burst. If none has a burst, it is the first of them. */
static bool name_seated(const struct sl_node *node, struct sl_node_because *because)
{
	const struct sl_node_plan *plan = node->plan;

	because->other = because->other_bytes = 0;
	for (uint32_t i = 0; i < plan->claims_count; i++) {
		const struct sl_node_claim *claim = plan->order[i];
		const struct sl_node_workload *workload = claim->client->workload;
		uint64_t bytes = sl_ledger_use(&workload->account, because->gpu);

		bytes += claim->demand ? claim->demand->bytes : 0;
		bytes = sl_sub_sat(
			bytes, sl_ledger_request(&workload->account, because->gpu));
		if (!claim->has_seat || claim->client->look->lasts ||
			!(claim->gpus >> because->gpu & 1) ||
			workload->index.id == because->workload ||
			(because->other && bytes <= because->other_bytes))
			continue;
		because->other = workload->index.id;
		because->other_bytes = bytes;
	}
	return because->other;
}

/* What is on its way to a body or a demand, or kept for others. NONE: nothing is. */
static enum sl_reason explain(const struct sl_node *node,
	const struct sl_node_claim *claim, bool fits, bool backs_off,
	struct sl_node_because *because)
{
	bool comes = claim && claim->has_seat;
	bool kept = fits || (claim && (claim->verdict == SL_NODE_BEHIND ||
					      claim->verdict == SL_NODE_KEPT));
	uint64_t dying = node->ledger.gpu[because->gpu].sum.dying_bytes;

	if (comes && sl_node_name_most(node, because, leaving_on))
		return SL_REASON_LEAVING_WAITS;
	if (backs_off)
		return SL_REASON_DRIVER_WAITS;
	if (name_ended(node, because) ||
		(comes && sl_node_name_most(node, because, ending_on)))
		return SL_REASON_STOPPING_WAITS;
	if (kept && name_first(node, claim, because))
		return SL_REASON_KEPT_FOR_HEAD;
	because->other_bytes = dying;
	return comes && dying ? SL_REASON_DYING_WAITS : SL_REASON_NONE;
}

bool sl_node_is_away(const struct sl_node_client *client)
{
	return sl_node_is_out(client) || client->order.id;
}

/* The others' turns; where nothing of others is there, their requests. */
static void explain_return(const struct sl_node *node,
	const struct sl_node_client *client, struct sl_node_because *because)
{
	const struct sl_ledger *ledger = &node->ledger;
	uint32_t gpu = because->gpu;

	because->reason = SL_REASON_TURN_WAITS;
	if (name_seated(node, because) || sl_node_name_most(node, because, here_on) ||
		!client->workload->account.stays)
		return;
	because->reason = SL_REASON_REQUESTS_WAIT;
	because->available_bytes = sl_ledger_free_bytes(ledger, gpu);
	because->other_bytes = ledger->gpu[gpu].unclaimed_bytes -
			       sl_ledger_unclaimed(&client->workload->account, gpu);
}

struct sl_node_because sl_node_away_because(
	const struct sl_node *node, const struct sl_node_client *client)
{
	const struct sl_node_claim *claim = sl_node_claim_of(node, client, NULL);
	sl_ns wanted = sl_node_wanted_since(client);
	struct sl_node_because because = {.workload = client->workload->index.id,
		.client = client->index.id,
		.span = wanted ? node->now - wanted : 0};
	bool comes = sl_node_is_returning(client);

	for (uint32_t left = client->holding.touched; left && !because.bytes;
		left &= left - 1) {
		const struct sl_ledger_cell *cell;

		because.gpu = (uint32_t)__builtin_ctz(left);
		cell = &client->holding.cell[because.gpu];
		because.bytes = cell->evicted_bytes + cell->leaving_bytes;
	}
	if (sl_node_is_put_away(client->workload)) {
		because.reason = client->workload->stage == SL_NODE_PARKED
					 ? SL_REASON_PARKED_WAITS
					 : SL_REASON_DETACHED_WAITS;
	} else if (client->condition != SL_CONDITION_RUNNING &&
		   (comes || !client->order.id || sl_node_is_travelling(client))) {
		because.reason = comes || client->seat == SL_NODE_COMING
					 ? SL_REASON_RETURN_STOPPED
					 : SL_REASON_AWAY_STOPPED;
		because.available_bytes = client->condition;
		because.span = node->now - sl_node_stuck_since(client);
	} else if (comes) {
		because.reason = SL_REASON_RETURN_WAITS;
	} else if (sl_node_lacks_reserve(node, client, &because)) {
		because.reason = SL_REASON_ENTRY_WAITS;
	} else if (name_silent(node, claim, &because)) {
		because.reason = SL_REASON_STUCK_WAITS;
	} else if (!sl_node_waits_for_pool(node, claim, &because)) {
		because.reason = explain(node, claim, false,
			sl_node_must_wait(client, node->now), &because);
	}
	if (because.reason)
		return because;
	if (endless_of(claim) == SL_ENDLESS_REQUESTS &&
		sl_node_name_most(node, &because, graced_on)) {
		because.reason = SL_REASON_GRACE_WAITS;
	} else {
		explain_return(node, client, &because);
	}
	return because;
}

/* It has no seat, and what it lacks is not on its way. */
static void explain_lack(const struct sl_node *node, const struct sl_node_demand *demand,
	const struct sl_node_claim *claim, struct sl_node_because *because)
{
	bool entitled = sl_node_is_entitled(demand);
	uint64_t kept = sl_node_promised(node, demand);

	because->reason = entitled ? SL_REASON_ENTITLED_WAITS : SL_REASON_BURST_WAITS;
	if (sl_node_name_most(node, because, sl_node_burst_on) || entitled ||
		sl_ledger_is_degraded(&node->ledger, demand->gpu))
		return;
	if (kept) {
		/* What it lacks is free, but promised to others. */
		because->reason = SL_REASON_REQUESTS_WAIT;
		because->other_bytes = kept;
	} else if (sl_node_swaps(node) && claim &&
		   sl_chain_has(sl_node_chain_of(node, claim), SL_RESOLVER_SWAP) &&
		   endless_of(claim) != SL_ENDLESS_STAYS &&
		   sl_node_name_most(node, because, graced_on)) {
		because->reason = SL_REASON_GRACE_WAITS;
	}
}

struct sl_node_because sl_node_waits_because(
	const struct sl_node *node, const struct sl_node_demand *demand)
{
	const struct sl_node_client *client = demand->client;
	const struct sl_node_claim *claim = sl_node_claim_of(node, client, demand);
	bool fits = demand->bytes <= sl_node_free_for(node, demand);
	struct sl_node_because because = {.gpu = demand->gpu,
		.workload = client->workload->index.id,
		.client = client->index.id,
		.bytes = demand->bytes,
		.available_bytes = sl_node_available(node, demand),
		.span = node->now - demand->arrived};

	if (node->recover_until) {
		because.reason = SL_REASON_RECOVERY_WAITS;
		return because;
	}
	if (sl_node_is_away(client))
		return sl_node_away_because(node, client);
	because.reason =
		explain(node, claim, fits, fits && demand->back_off.times, &because);
	if (!because.reason)
		explain_lack(node, demand, claim, &because);
	return because;
}
