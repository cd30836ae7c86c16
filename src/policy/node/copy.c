/*
 * copy - the sums that a plan works on, and what it must know about each client
 *
 * Bytes that are about to become free (dying, leaving, of clients told to end) are not on the copy.
 */
#include <stddef.h>
#include <string.h>

#include "policy/node/plan.h"

/* A client with this many refusals in a row, the first three within 1s, is taken as unwilling. */
#define UNWILLING_AFTER 4

static uint64_t movable(const struct sl_ledger_cell *cell)
{
	return sl_ledger_evictable(cell) + cell->evicted_bytes - cell->returning_bytes;
}

uint64_t sl_node_back(const struct sl_ledger_cell *cell)
{
	return movable(cell) + cell->returning_bytes;
}

uint64_t sl_node_missing(
	const struct sl_node *node, const struct sl_node_client *client, uint32_t gpu)
{
	const struct sl_ledger_cell *cell = &client->holding.cell[gpu];

	return cell->evicted_bytes + cell->leaving_bytes - cell->returning_bytes +
	       sl_ledger_entry(&node->ledger, cell, gpu);
}

uint32_t sl_node_away_gpus(const struct sl_node_client *client)
{
	uint32_t gpus = 0;

	sl_each_gpu (gpu, client->look->gpus) {
		const struct sl_ledger_cell *cell = &client->holding.cell[gpu];

		if (cell->evicted_bytes > cell->returning_bytes || cell->away_bytes)
			gpus |= 1u << gpu;
	}
	return gpus;
}

uint64_t sl_node_use_of(const struct sl_node_workload *workload)
{
	uint64_t bytes = 0;

	sl_each_gpu (gpu, workload->account.touched)
		bytes += sl_ledger_use(&workload->account, gpu);
	return bytes;
}

/* --- clients --- */

/* What was parked leaves whole, even if it is not to be moved any more. */
static bool can_move(const struct sl_node *node, const struct sl_node_client *client)
{
	const struct sl_node_workload *workload = client->workload;

	return node->config.config.pool_bytes && client->swaps &&
	       SL_MUTANT(EVICTS_NO_SWAP,
		       !sl_node_is_fixed(node, workload) || sl_node_is_parked(workload),
		       true);
}

/* It never leaves for other workloads. */
static bool is_kept(const struct sl_node *node, const struct sl_node_client *client)
{
	return !can_move(node, client) || !sl_node_has(node, SL_RESOLVER_SWAP);
}

/* It cannot leave now. */
static bool is_held_up(struct sl_node_step *step, const struct sl_node_client *client)
{
	bool backs_off = sl_node_must_stay(client, step->now);

	if (backs_off)
		sl_node_wake(step, client->back_off.until);
	return !client->look->answers || backs_off ||
	       SL_MUTANT(EVICTS_UNCOMMITTED, sl_node_has_open_grant(client), false) ||
	       (client->order.id && client->order.kind == SL_NODE_RESTORE);
}

static bool lasts(const struct sl_node_step *step, const struct sl_node_client *client)
{
	return is_kept(step->node, client) || !client->look->answers ||
	       (sl_node_must_stay(client, step->now) &&
		       client->back_off.times >= UNWILLING_AFTER);
}

/* Idle for this long, as far as reported. */
static bool is_quiet_for(
	struct sl_node_step *step, const struct sl_node_client *client, sl_ns span)
{
	return client->idle_since &&
	       sl_node_has_come(step, sl_node_later(sl_node_quiet_since(client), span));
}

/* The client has a waiting demand, seated or not. It then counts as idle sooner: while it counts as
 * working, its body is a claim of its own. That could take the demand's seat away, and the next
 * plan would give it back. */
static bool has_waiting(const struct sl_node_client *client)
{
	sl_node_each_demand_of (demand, client) {
		if (sl_node_is_waiting(demand))
			return true;
	}
	return false;
}

static void look_at(struct sl_node_step *step, struct sl_node_client *client)
{
	struct sl_node *node = step->node;
	struct sl_node_look *look = client->look;

	*look = (struct sl_node_look){.is_whole = !sl_node_is_out(client)};
	look->answers = sl_node_answers(node, client, step->now);
	sl_each_gpu (gpu, client->holding.touched) {
		const struct sl_ledger_cell *cell = &client->holding.cell[gpu];
		uint64_t bytes = movable(cell);

		if (!bytes && !cell->returning_bytes && !cell->away_bytes)
			continue;
		look->gpus |= 1u << gpu;
		look->cost += sl_node_cost_out(node, gpu, bytes) +
			      sl_node_cost_in(node, gpu, bytes);
	}
	look->goes = can_move(node, client) && !is_held_up(step, client);
	look->stays = !look->goes || !sl_node_has(node, SL_RESOLVER_SWAP);
	look->lasts = lasts(step, client);
	look->is_idle = client->proven &&
			is_quiet_for(step, client,
				has_waiting(client) ? sl_turns_first_part(0)
						    : sl_turns_first_part(look->cost));
	look->coming = sl_node_ends(client, step->now) ||
		       (sl_node_goes(client->workload) && look->is_idle &&
			       !sl_node_is_due(client, step->now));
}

/* --- sums --- */

/* The part that no order and no answer takes away. */
static uint64_t lasting_of(
	const struct sl_node *node, const struct sl_node_client *client, uint32_t gpu)
{
	const struct sl_ledger_cell *cell = &client->holding.cell[gpu];
	uint64_t live = sl_ledger_live(cell);

	return client->look->lasts || node->gpu[gpu].lost
		       ? live
		       : sl_min_u64(live, sl_ledger_fixed(cell));
}

struct sl_room_share sl_node_share_of(
	const struct sl_node *node, const struct sl_node_client *client, uint32_t gpu)
{
	const struct sl_ledger_cell *cell = &client->holding.cell[gpu];
	uint64_t live = sl_ledger_live(cell), moves = sl_ledger_evictable(cell);

	/* Even where nothing is moved for others, a client going warm was told to leave. */
	if (client->look->stays && client->look->goes && !node->gpu[gpu].lost)
		live -= cell->leaving_bytes;
	if (client->look->stays || node->gpu[gpu].lost)
		return (struct sl_room_share){.fixed_bytes = live,
			.lasts_bytes = sl_min_u64(live, lasting_of(node, client, gpu))};
	return (struct sl_room_share){.fixed_bytes = live - moves,
		.lasts_bytes = live - moves,
		.rest_bytes = sl_sub_sat(moves, cell->leaving_bytes)};
}

static void add_now(struct sl_node_step *step, const struct sl_node_client *client)
{
	struct sl_node_plan *plan = step->node->plan;

	if (client->look->coming)
		return;
	sl_each_gpu (gpu, client->holding.touched) {
		struct sl_room_share of = sl_node_share_of(step->node, client, gpu);
		struct sl_room_share *share = &client->workload->sums->now.on[gpu];

		share->fixed_bytes += of.fixed_bytes;
		share->lasts_bytes += of.lasts_bytes;
		share->rest_bytes += of.rest_bytes;
		if (client->look->stays || step->node->gpu[gpu].lost)
			continue;
		plan->leaving_bytes[gpu] += client->holding.cell[gpu].leaving_bytes;
		plan->now.gpu[gpu].chunk_bytes =
			sl_max_u64(plan->now.gpu[gpu].chunk_bytes, client->chunk_bytes);
	}
}

static void add_lasting(struct sl_node_step *step, const struct sl_node_client *client)
{
	sl_each_gpu (gpu, client->holding.touched) {
		struct sl_room_share *share = &client->workload->sums->lasts.on[gpu];
		uint64_t fixed = lasting_of(step->node, client, gpu);

		if (client->look->coming)
			continue;
		share->fixed_bytes += fixed;
		share->lasts_bytes += fixed;
		share->rest_bytes += sl_ledger_live(&client->holding.cell[gpu]) - fixed;
	}
}

uint64_t sl_node_part_left(
	const struct sl_node *node, const struct sl_node_workload *workload, bool leaving)
{
	uint64_t part = node->config.config.pool_member_bytes, out = 0;

	if (SL_MUTANT(POOL_UNBOUND, !part, true))
		return SL_LEDGER_BYTES_MAX;
	sl_each_gpu (gpu, workload->account.touched) {
		const struct sl_ledger_cell *cell = &workload->account.cell[gpu];

		out += cell->evicted_bytes + (leaving ? cell->leaving_bytes : 0);
	}
	return sl_sub_sat(part, out);
}

static void begin_room(const struct sl_node *node, struct sl_room *room, bool back)
{
	memset(room, 0, sizeof(*room));
	room->pool_bytes = sl_node_swaps(node) ? node->config.config.pool_bytes : 0;
	room->slack_bytes = node->config.config.slack_bytes;
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		const struct sl_ledger_gpu *of = &node->ledger.gpu[gpu];
		struct sl_room_gpu *to = &room->gpu[gpu];

		if (!of->present)
			continue;
		room->gpus = gpu + 1;
		to->shareable_bytes = sl_ledger_shareable(&node->ledger, gpu);
		/* Where nothing is seated, leaving bytes are in rest again. */
		to->host_bytes = of->sum.evicted_bytes +
				 (back ? 0 : of->sum.leaving_bytes) -
				 (back ? of->sum.returning_bytes : 0);
		to->lost = node->gpu[gpu].lost;
		to->degraded = sl_ledger_is_degraded(&node->ledger, gpu);
		room->returning_bytes += back ? 0 : of->sum.returning_bytes;
	}
}

/* Something of it can leave: memory, or its contexts if these are to leave, too. */
static bool has_on_gpus(const struct sl_node_client *client, bool contexts)
{
	if (client->stage == SL_NODE_DYING)
		return false;
	if (client->look->gpus || sl_node_has_memory(client))
		return true;
	sl_each_gpu (gpu, contexts ? client->holding.touched : 0) {
		if (sl_ledger_measured(&client->holding.cell[gpu]))
			return true;
	}
	return false;
}

/* Proven idle for `after`; its last process to become idle decides. */
static bool is_idle_for(struct sl_node_step *step,
	const struct sl_node_workload *workload, sl_ns after, bool contexts)
{
	bool proven = true, has = false;

	if (!after || workload->stage != SL_NODE_RUNS || sl_node_is_removed(workload) ||
		sl_node_is_fixed(step->node, workload) ||
		!step->node->config.config.pool_bytes)
		return false;
	sl_node_each_client_of (client, workload) {
		if (!has_on_gpus(client, contexts))
			continue;
		if (client->wants_since || !sl_list_is_empty(&client->demands) ||
			!is_quiet_for(step, client, after))
			return false;
		client->look->proves |= !client->proven;
		proven &= client->proven;
		has = true;
	}
	return proven && has;
}

/* No process of it uses a GPU, so its request alone keeps others out; stage_at says since when. */
static bool is_unused(const struct sl_node *node, const struct sl_node_workload *workload)
{
	sl_node_each_client_of (client, workload) {
		if (client->stage != SL_NODE_DYING)
			return false;
	}
	return workload->detach_after && workload->stage == SL_NODE_RUNS &&
	       workload->account.request_bytes && !sl_node_is_removed(workload) &&
	       !sl_node_is_fixed(node, workload) && node->config.config.pool_bytes;
}

static size_t size_for(uint32_t gpus)
{
	return offsetof(struct sl_room_workload, on) +
	       gpus * sizeof(struct sl_room_share);
}

static void clear(struct sl_room_workload *workload, uint32_t gpus)
{
	memset(workload, 0, size_for(gpus));
}

/* Sums over all clients, for the host. */
struct all {
	struct sl_room_client most; /* of those on one GPU, for each GPU */
	uint64_t copies_bytes;      /* of resident chunks */
	uint64_t movable_bytes;     /* on GPUs */
};

/* For the way back: per GPU the client with most there, and every client on several GPUs. */
static void add_back(
	struct sl_node *node, const struct sl_node_client *client, struct all *all)
{
	struct sl_node_plan *plan = node->plan;
	uint32_t gpus = client->look->gpus;
	struct sl_room_client *to = &all->most;

	if (sl_node_is_parked(client->workload) || is_kept(node, client))
		return;
	if (gpus & (gpus - 1)) {
		to = &plan->clients[plan->now.clients++];
		*to = (struct sl_room_client){{0}};
	}
	sl_each_gpu (gpu, gpus) {
		to->bytes[gpu] = sl_max_u64(
			to->bytes[gpu], sl_node_back(&client->holding.cell[gpu]));
	}
}

static void sum_up(
	struct sl_node_step *step, struct sl_node_workload *workload, struct all *all)
{
	struct sl_node *node = step->node;
	struct sl_node_sums *sums = workload->sums;

	/* Only existing GPUs: every plan does this for each workload. */
	clear(&sums->now, node->plan->now.gpus);
	clear(&sums->lasts, node->plan->now.gpus);
	memset(sums, 0, offsetof(struct sl_node_sums, now));
	sums->is_within = sums->asks_within = true;
	for (uint32_t gpu = 0; gpu < node->plan->now.gpus; gpu++) {
		uint64_t request = sl_ledger_request(&workload->account, gpu);

		sums->now.on[gpu].request_bytes = request;
		sums->lasts.on[gpu].request_bytes = request;
		sums->is_within &= sl_ledger_use(&workload->account, gpu) <= request;
	}
	sums->now.part_bytes = sl_node_part_left(node, workload, true);
	sums->lasts.part_bytes = sl_node_part_left(node, workload, false);
	sl_node_each_client_of (client, workload) {
		all->copies_bytes += sl_node_copies(client);
		if (client->stage == SL_NODE_DYING)
			continue;
		look_at(step, client);
		add_back(node, client, all);
		all->movable_bytes += sl_ledger_evictable_on(
			client->holding.cell, client->holding.touched);
		sums->gpus |= client->look->gpus;
		sums->cost += client->look->cost;
		add_now(step, client);
		add_lasting(step, client);
	}
	sums->is_left = is_idle_for(step, workload, workload->detach_after,
				step->node->config.config.detach) ||
			is_unused(node, workload);
	sums->is_warm = is_idle_for(step, workload,
		SL_MUTANT(WARM_TOO_EARLY, workload->warm_after, !!workload->warm_after),
		false);
	memcpy(&sums->lasts_bursts, &sums->lasts, size_for(node->plan->now.gpus));
	sl_room_load(&node->plan->now, &sums->now);
	sl_room_load(&node->plan->lasts, &sums->lasts);
}

static void end_copy(struct sl_node *node, const struct all *all)
{
	struct sl_node_plan *plan = node->plan;

	for (uint32_t gpu = 0; gpu < plan->now.gpus; gpu++) {
		struct sl_room_client *to = &plan->clients[plan->now.clients];

		plan->lasts.gpu[gpu].chunk_bytes = plan->now.gpu[gpu].chunk_bytes;
		if (!all->most.bytes[gpu])
			continue;
		*to = (struct sl_room_client){{0}};
		to->bytes[gpu] = all->most.bytes[gpu];
		plan->now.clients++;
	}
	plan->now.client = plan->lasts.client = plan->clients;
	plan->lasts.clients = plan->now.clients;
	plan->lasts_bursts = plan->lasts;
	/* Besides copies of resident chunks, the host has no room for everything that could move
	 * there. */
	plan->trims = all->copies_bytes && all->copies_bytes + all->movable_bytes +
							   node->ledger.evicted_bytes >
						   node->config.config.pool_bytes;
}

void sl_node_copy(struct sl_node_step *step)
{
	struct sl_node *node = step->node;
	struct sl_node_plan *plan = node->plan;
	struct all all = {{{0}}};

	begin_room(node, &plan->now, false);
	begin_room(node, &plan->lasts, true);
	memset(plan->leaving_bytes, 0, sizeof(plan->leaving_bytes));
	memset(plan->asked_bytes, 0, sizeof(plan->asked_bytes));
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++)
		plan->set_of[gpu] = gpu;
	plan->claims_count = 0;
	plan->refused = 0;
	sl_node_each_workload (workload, node) {
		sum_up(step, workload, &all);
		sl_node_list_claims(step, workload);
	}
	end_copy(node, &all);
}
