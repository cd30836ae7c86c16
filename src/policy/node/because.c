/*
 * because - what a client or a demand waits for: a reason and its numbers
 *
 * Read from the facts and from the verdicts of the last plan; no decision is made again. Notes,
 * denials and whoever asks (why.c) have the same answer, which is never older than the state that
 * it explains.
 */
#include "policy/node/plan.h"

/* --- the claims of the last plan --- */

/* Of a demand, or (demand NULL) of the client's body. NULL: it makes none. */
const struct sl_node_claim *sl_node_claim_of(const struct sl_node *node,
	const struct sl_node_client *client, const struct sl_node_demand *demand)
{
	const struct sl_node_plan *plan = node->plan;

	for (uint32_t i = 0; i < plan->claims_count; i++) {
		const struct sl_node_claim *claim = plan->order[i];

		if (claim->client == client && claim->demand == demand && !claim->is_over)
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

typedef uint64_t (*bytes_fn)(const struct sl_node *node,
	const struct sl_node_workload *workload, uint32_t gpu);

/* The other workload with most of it; false: none has any. */
static bool name_most(
	const struct sl_node *node, struct sl_node_because *because, bytes_fn bytes_of)
{
	because->other = because->other_bytes = 0;
	sl_list_foreach (link, &node->all_workloads) {
		const struct sl_node_workload *workload = sl_node_workload_at(link);
		uint64_t bytes = bytes_of(node, workload, because->gpu);

		if (bytes <= because->other_bytes ||
			workload->index.id == because->workload)
			continue;
		because->other = workload->index.id;
		because->other_bytes = bytes;
	}
	return because->other_bytes;
}

/* The same of its own workload. */
static bool name_own(const struct sl_node *node, const struct sl_node_workload *own,
	struct sl_node_because *because, bytes_fn bytes_of)
{
	uint64_t bytes = bytes_of(node, own, because->gpu);

	because->other = bytes ? own->index.id : 0;
	because->other_bytes = bytes;
	return bytes;
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

static uint64_t burst_on(
	const struct sl_node *node, const struct sl_node_workload *workload, uint32_t gpu)
{
	return sl_sub_sat(
		here_on(node, workload, gpu), sl_ledger_request(&workload->account, gpu));
}

static uint64_t lasting_on(
	const struct sl_node *node, const struct sl_node_workload *workload, uint32_t gpu)
{
	return workload->sums->lasts.on[gpu].fixed_bytes;
}

/* Within its request, and moved for no burst. */
static uint64_t graced_on(
	const struct sl_node *node, const struct sl_node_workload *workload, uint32_t gpu)
{
	return workload->sums->is_within ? sl_sub_sat(here_on(node, workload, gpu),
						   lasting_on(node, workload, gpu))
					 : 0;
}

static uint64_t ending_on(
	const struct sl_node *node, const struct sl_node_workload *workload, uint32_t gpu)
{
	uint64_t bytes = 0;

	if (sl_node_is_stopped(workload))
		return here_on(node, workload, gpu);
	sl_node_each_client_of(client, workload) bytes +=
		sl_node_is_told_to_end(client)
			? sl_ledger_live(&client->holding.cell[gpu])
			: 0;
	return bytes;
}

/* A burst gets nothing of a request. */
static uint64_t ending_burst_on(
	const struct sl_node *node, const struct sl_node_workload *workload, uint32_t gpu)
{
	return sl_min_u64(ending_on(node, workload, gpu), burst_on(node, workload, gpu));
}

static uint64_t hostless_on(
	const struct sl_node *node, const struct sl_node_workload *workload, uint32_t gpu)
{
	uint64_t bytes = 0;

	sl_node_each_client_of(client, workload) bytes +=
		sl_node_is_hostless(client, node->now)
			? sl_ledger_evictable(&client->holding.cell[gpu])
			: 0;
	return bytes;
}

/* Of what could leave, what its part of the pool does not let. */
static uint64_t bound_on(
	const struct sl_node *node, const struct sl_node_workload *workload, uint32_t gpu)
{
	const struct sl_ledger_cell *cell = &workload->account.cell[gpu];

	return sl_sub_sat(sl_ledger_evictable(cell) - cell->leaving_bytes,
		sl_node_part_left(node, workload, true));
}

void sl_node_name_borrower(const struct sl_node *node, struct sl_node_because *because)
{
	(void)name_most(node, because, burst_on);
}

/* Of what it has above its request, that of processes that cannot be made to give it back. */
static uint64_t stuck_on(
	const struct sl_node *node, const struct sl_node_workload *workload, uint32_t gpu)
{
	uint64_t bytes = 0;

	sl_node_each_client_of(client, workload) bytes +=
		sl_node_is_untakeable(node, client)
			? sl_ledger_live(&client->holding.cell[gpu])
			: 0;
	return sl_min_u64(bytes, burst_on(node, workload, gpu));
}

void sl_node_name_stuck(const struct sl_node *node, struct sl_node_because *because)
{
	(void)name_most(node, because, stuck_on);
}

void sl_node_name_lasting(const struct sl_node *node, struct sl_node_because *because)
{
	(void)name_most(node, because, lasting_on);
}

bool sl_node_name_hostless(const struct sl_node *node, struct sl_node_because *because)
{
	return name_most(node, because, hostless_on);
}

/* A client was told to end for it. */
static bool name_ended(const struct sl_node *node, struct sl_node_because *because)
{
	for (struct sl_index_node *at = sl_index_next(&node->clients, NULL); at;
		at = sl_index_next(&node->clients, at)) {
		const struct sl_node_client *client = SL_NODE_ENTRY(at, sl_node_client);

		if (!sl_node_is_told_to_end(client) ||
			client->stop.other != because->workload ||
			client->stop.gpu != because->gpu)
			continue;
		because->other = client->workload->index.id;
		because->other_bytes =
			sl_ledger_live(&client->holding.cell[because->gpu]);
		return true;
	}
	return false;
}

/* Clients that do not answer have what it lacks: the one with most of it. */
static bool name_silent(const struct sl_node *node, const struct sl_node_claim *claim,
	struct sl_node_because *because)
{
	uint32_t gpu = claim ? claim->room.gpu : 0;
	const struct sl_node_client *most = NULL;
	uint64_t all = 0;

	if (!has_room_code(claim, SL_ROOM_GPU))
		return false;
	for (struct sl_index_node *at = sl_index_next(&node->clients, NULL); at;
		at = sl_index_next(&node->clients, at)) {
		const struct sl_node_client *client = SL_NODE_ENTRY(at, sl_node_client);
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
	because->bytes = sl_node_missing(&claim->client->holding.cell[gpu]);
	because->client = most->index.id;
	because->other = most->workload->index.id;
	because->other_bytes = sl_ledger_live(&most->holding.cell[gpu]);
	return true;
}

/* --- what is free --- */

static uint64_t set_aside_for(const struct sl_node_claim *claim, uint32_t gpu)
{
	if (claim->is_over || !(claim->gpus >> gpu & 1))
		return 0;
	if (!claim->has_seat)
		return claim->reserved_bytes[gpu];
	if (!claim->demand)
		return sl_node_missing(&claim->client->holding.cell[gpu]);
	return claim->demand->gpu == gpu && !claim->demand->epoch ? claim->demand->bytes
								  : 0;
}

/* Free bytes that are kept for claims before this one; *first of them. */
static uint64_t kept_before(const struct sl_node *node, const struct sl_node_claim *own,
	uint32_t gpu, uint64_t *first)
{
	const struct sl_node_plan *plan = node->plan;
	uint64_t bytes = 0;

	for (uint32_t i = 0; own && plan->order[i] != own; i++) {
		uint64_t more = set_aside_for(plan->order[i], gpu);

		if (more && !bytes)
			*first = plan->order[i]->client->workload->index.id;
		bytes += more;
	}
	return bytes;
}

/* What others requested and do not use, as far as this demand may not stand on it. */
static uint64_t promised(const struct sl_node *node, const struct sl_node_demand *demand)
{
	const struct sl_node_workload *own = demand->client->workload;
	bool stays = sl_node_stays_for_good(demand);
	bool stands = sl_node_has(node, SL_RESOLVER_PRIORITY) &&
		      !(demand->flags & SL_NODE_DEMAND_HELD) &&
		      !(own->flags & SL_WORKLOAD_NO_SWAP);
	uint64_t bytes = 0;

	sl_list_foreach (link, &node->all_workloads) {
		const struct sl_node_workload *other = sl_node_workload_at(link);

		if (other != own && !(stands && other->priority > own->priority))
			bytes += sl_ledger_unclaimed(&other->account, demand->gpu);
	}
	return stays ? bytes : sl_sub_sat(bytes, sl_node_lend(node, demand->gpu));
}

/* For the demand, also of what is kept for others, once `more` bytes are free. */
static uint64_t free_with(
	const struct sl_node *node, const struct sl_node_demand *demand, uint64_t more)
{
	uint64_t bytes = sl_ledger_free_bytes(&node->ledger, demand->gpu) + more;

	if (sl_node_is_entitled(demand))
		return bytes;
	return sl_ledger_is_degraded(&node->ledger, demand->gpu)
		       ? 0
		       : sl_sub_sat(bytes, promised(node, demand));
}

static uint64_t free_for(const struct sl_node *node, const struct sl_node_demand *demand)
{
	return free_with(node, demand, 0);
}

uint64_t sl_node_available(
	const struct sl_node *node, const struct sl_node_demand *demand)
{
	uint64_t bytes = free_for(node, demand), first;
	uint64_t unkept = sl_sub_sat(sl_ledger_free_bytes(&node->ledger, demand->gpu),
		kept_before(node, sl_node_claim_of(node, demand->client, demand),
			demand->gpu, &first));

	return sl_node_is_entitled(demand) ? bytes : sl_min_u64(bytes, unkept);
}

/* --- the pool --- */

/* It has no room for what would have to leave for the claim. */
bool sl_node_waits_for_pool(const struct sl_node *node, const struct sl_node_claim *claim,
	struct sl_node_because *because)
{
	bool bound = has_room_code(claim, SL_ROOM_BOUND);

	if (!sl_node_swaps(node) || (!bound && !has_room_code(claim, SL_ROOM_POOL)))
		return false;
	because->reason = bound ? SL_REASON_POOL_BOUND_WAITS : SL_REASON_POOL_WAITS;
	because->other = because->other_bytes = 0;
	because->available_bytes = sl_sub_sat(claim->out_bytes, claim->room.lacks_bytes);
	if (!bound)
		return true;
	because->available_bytes = node->config.config.pool_member_bytes;
	(void)name_most(node, because, bound_on);
	because->other_bytes = 0;
	return true;
}

bool sl_node_pool_because(const struct sl_node *node, const struct sl_node_claim *claim,
	struct sl_node_because *because)
{
	const struct sl_node_demand *demand = claim->demand;
	uint32_t gpu;

	if (claim->endless != SL_ENDLESS_POOL && claim->endless != SL_ENDLESS_BOUND)
		return false;
	gpu = demand ? demand->gpu : (uint32_t)__builtin_ctz(claim->gpus);
	*because = (struct sl_node_because){.gpu = gpu,
		.workload = claim->client->workload->index.id,
		.client = claim->client->index.id,
		.bytes = demand ? demand->bytes
				: sl_node_missing(&claim->client->holding.cell[gpu])};
	if (!sl_node_waits_for_pool(node, claim, because))
		return false;
	if (because->reason == SL_REASON_POOL_WAITS) {
		because->reason = SL_REASON_POOL_FULL;
		return true;
	}
	/* The sentence is about the workload that has the bound. */
	because->reason = SL_REASON_POOL_BOUND;
	because->workload = because->other;
	because->other = because->client = 0;
	return true;
}

/* --- what it waits for --- */

/* The first that has no seat on its GPUs: nothing is moved for it before that has one. */
static bool name_first(const struct sl_node *node, const struct sl_node_claim *own,
	struct sl_node_because *because)
{
	const struct sl_node_plan *plan = node->plan;

	for (uint32_t i = 0; plan->order[i] != own; i++) {
		const struct sl_node_claim *claim = plan->order[i];

		if (claim->has_seat || claim->is_over || !(claim->gpus & own->gpus))
			continue;
		because->other = claim->client->workload->index.id;
		because->other_bytes = 0;
		return true;
	}
	return false;
}

/* A client that is not whole on its GPUs, or is being moved. */
bool sl_node_is_away(const struct sl_node_client *client)
{
	return sl_node_is_out(client) || client->order.id;
}

struct sl_node_because sl_node_away_because(
	const struct sl_node *node, const struct sl_node_client *client)
{
	const struct sl_node_claim *claim = sl_node_claim_of(node, client, NULL);
	const struct sl_node_order *order = &client->order;
	struct sl_node_because because = {.workload = client->workload->index.id,
		.client = client->index.id,
		.gpu = order->gpu,
		.span = client->wants_since ? node->now - client->wants_since : 0};
	bool leaves = order->id && order->kind != SL_NODE_RESTORE;
	uint64_t dying;

	for (uint32_t left = client->holding.touched; left; left &= left - 1) {
		because.gpu = (uint32_t)__builtin_ctz(left);
		if (client->holding.cell[because.gpu].evicted_bytes)
			break;
	}
	because.bytes = client->holding.cell[because.gpu].evicted_bytes;
	dying = node->ledger.gpu[because.gpu].sum.dying_bytes;
	if (client->workload->stage == SL_NODE_PARKED) {
		because.reason = SL_REASON_PARKED_WAITS;
	} else if (client->condition != SL_CONDITION_RUNNING && !leaves) {
		because.reason = order->id || client->seat == SL_NODE_COMING
					 ? SL_REASON_RETURN_STOPPED
					 : SL_REASON_AWAY_STOPPED;
		because.span = node->now - sl_node_stuck_since(client);
	} else if (order->id && !leaves) {
		because.reason = SL_REASON_RETURN_WAITS;
	} else if (name_ended(node, &because)) {
		because.reason = SL_REASON_STOPPING_WAITS;
	} else if (name_silent(node, claim, &because)) {
		because.reason = SL_REASON_STUCK_WAITS;
	} else if (!leaves && name_most(node, &because, leaving_on)) {
		because.reason = SL_REASON_LEAVING_WAITS;
	} else if (sl_node_waits_for_pool(node, claim, &because)) {
		return because;
	} else if (sl_node_must_wait(client, node->now)) {
		because.reason = SL_REASON_DRIVER_WAITS;
	} else if (claim && claim->has_seat && dying) {
		because.reason = SL_REASON_DYING_WAITS;
		because.other_bytes = dying;
	} else if (endless_of(claim) == SL_ENDLESS_REQUESTS &&
		   name_most(node, &because, graced_on)) {
		because.reason = SL_REASON_GRACE_WAITS;
	} else if (claim && claim->verdict == SL_NODE_BEHIND &&
		   name_first(node, claim, &because)) {
		because.reason = SL_REASON_KEPT_FOR_HEAD;
	} else {
		because.reason = SL_REASON_TURN_WAITS;
		if (!name_most(node, &because, here_on) &&
			order->other != because.workload)
			because.other = order->other; /* for which it leaves */
	}
	return because;
}

/* It has no seat, and what it lacks is not on its way. */
static void explain_lack(const struct sl_node *node, const struct sl_node_demand *demand,
	const struct sl_node_claim *claim, struct sl_node_because *because)
{
	bool entitled = sl_node_is_entitled(demand);
	uint64_t kept = promised(node, demand);

	because->reason = entitled ? SL_REASON_ENTITLED_WAITS : SL_REASON_BURST_WAITS;
	if (name_most(node, because, burst_on) || entitled ||
		sl_ledger_is_degraded(&node->ledger, demand->gpu))
		return;
	if (kept) {
		/* What it lacks is free, but promised to others. */
		because->reason = SL_REASON_REQUESTS_WAIT;
		because->other_bytes = kept;
	} else if (sl_node_swaps(node) && endless_of(claim) != SL_ENDLESS_STAYS &&
		   name_most(node, because, graced_on)) {
		because->reason = SL_REASON_GRACE_WAITS;
	}
}

struct sl_node_because sl_node_waits_because(
	const struct sl_node *node, const struct sl_node_demand *demand)
{
	const struct sl_node_client *client = demand->client;
	const struct sl_node_claim *claim = sl_node_claim_of(node, client, demand);
	bool comes = claim && claim->has_seat;
	bool fits = demand->bytes <= free_for(node, demand);
	bytes_fn ending = sl_node_is_entitled(demand) ? ending_on : ending_burst_on;
	uint64_t dying = node->ledger.gpu[demand->gpu].sum.dying_bytes, first = 0;
	struct sl_node_because because = {.gpu = demand->gpu,
		.workload = client->workload->index.id,
		.client = client->index.id,
		.bytes = demand->bytes,
		.available_bytes = sl_node_available(node, demand)};

	if (node->recover_until) {
		because.reason = SL_REASON_RECOVERY_WAITS;
	} else if (sl_node_is_away(client)) {
		because = sl_node_away_because(node, client);
	} else if (comes && name_most(node, &because, leaving_on)) {
		because.reason = SL_REASON_LEAVING_WAITS;
	} else if (fits && demand->back_off.times) {
		because.reason = SL_REASON_DRIVER_WAITS;
	} else if (fits && kept_before(node, claim, demand->gpu, &first)) {
		because.reason = SL_REASON_KEPT_FOR_HEAD;
		because.other = first;
	} else if (comes &&
		   (name_most(node, &because, ending) || name_ended(node, &because) ||
			   name_own(node, client->workload, &because, ending))) {
		because.reason = SL_REASON_STOPPING_WAITS;
	} else if (comes && dying && demand->bytes <= free_with(node, demand, dying)) {
		because.reason = SL_REASON_DYING_WAITS;
		because.other_bytes = dying;
	} else {
		explain_lack(node, demand, claim, &because);
	}
	because.span = node->now - demand->arrived;
	return because;
}
