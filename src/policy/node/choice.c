/*
 * choice - which processes a claim would get its room from if they ended (stops.c)
 *
 * Lists stoppable clients per GPU, and takes them off the copy until the claim fits
 * (verdicts/stops.h).
 */
#include "policy/node/plan.h"

/* What it has on the copy there: as a seat, or without one. */
static struct sl_room_share share_of(
	const struct sl_node *node, const struct sl_node_client *client, uint32_t gpu)
{
	struct sl_room_share share = sl_node_share_of(node, client, gpu);

	if (client->look->stays || node->gpu[gpu].lost || !client->look->sits)
		return share;
	share.away_bytes = sl_node_missing(node, client, gpu);
	share.seats_bytes = share.rest_bytes + share.away_bytes;
	share.rest_bytes = 0;
	return share;
}

/* What it has there and is not about to leave. */
static uint64_t here(
	const struct sl_node_choice *choice, const struct sl_node_client *client)
{
	struct sl_room_share share = share_of(choice->step->node, client, choice->gpu);

	return sl_room_here(&share);
}

static void move(void *context, const struct sl_stop *stop, bool gone)
{
	struct sl_node_choice *choice = context;
	struct sl_node *node = choice->step->node;
	struct sl_node_client *client = sl_node_find_client(node, stop->client);

	sl_each_gpu (gpu, client->holding.touched) {
		struct sl_room_share share = share_of(node, client, gpu);

		sl_room_take(&choice->plan->now, &client->workload->sums->now, gpu,
			&share, gone);
	}
	sl_node_above_changes(choice->plan, client->workload);
}

/* What it lacks on this GPU is free. */
static bool is_there_room(const struct sl_node_choice *choice)
{
	const struct sl_node_claim *claim = choice->claim;
	const struct sl_room_gpu *room = &choice->plan->now.gpu[choice->gpu];
	uint64_t lacks = sl_node_missing(choice->step->node, claim->client, choice->gpu);

	if (claim->demand && claim->demand->gpu == choice->gpu)
		lacks += claim->demand->bytes;
	return lacks <= sl_room_spare(room);
}

/* On this GPU; its other GPUs, and the pool for what leaves them, follow. */
static bool fits(void *context)
{
	const struct sl_node_choice *choice = context;
	struct sl_room_verdict verdict = sl_node_room_of(choice->step, choice->claim);

	if (verdict.lacks_bytes <= choice->given_bytes)
		return true;
	if (choice->on_all)
		return false;
	return verdict.code == SL_ROOM_GPU
		       ? verdict.gpu > choice->gpu
		       : verdict.code == SL_ROOM_POOL && is_there_room(choice);
}

void sl_node_take_back(struct sl_node_choice *choice)
{
	while (choice->chosen)
		move(choice, &choice->plan->stops[--choice->chosen], false);
}

/* Chosen for another GPU that the claim lacks: it is off the copy of all its GPUs. */
static bool is_chosen(
	const struct sl_node_choice *choice, const struct sl_node_client *client)
{
	for (uint32_t i = 0; i < choice->chosen; i++) {
		if (choice->plan->stops[i].client == client->index.id)
			return true;
	}
	return false;
}

/* The workload's use, without clients that are told to end. */
static uint64_t use_of(
	const struct sl_node_choice *choice, const struct sl_node_workload *workload)
{
	uint64_t bytes = 0;

	sl_node_each_client_of (client, workload) {
		if (client->stage != SL_NODE_DYING && !client->look->coming &&
			!is_chosen(choice, client))
			bytes += here(choice, client);
	}
	return bytes;
}

/* What stops leave to the workload: its request. The request of a parked workload counts, too,
 * although it was given up: parking lets other workloads use it, but must not cost the workload its
 * processes. */
static uint64_t kept_of(const struct sl_node_workload *workload, uint32_t gpu)
{
	uint64_t request = sl_ledger_request(&workload->account, gpu);

	return SL_MUTANT(PARKED_VICTIM, sl_node_is_parked(workload), false)
		       ? sl_max_u64(request, workload->request_bytes)
		       : request;
}

static bool may_be_stopped(
	const struct sl_node_choice *choice, const struct sl_node_client *client)
{
	struct sl_node_step *step = choice->step;

	if (is_chosen(choice, client))
		return false;
	if (client->stop_stage == SL_NODE_SPARED)
		sl_node_wake(step, client->stop_at);
	return client->stage != SL_NODE_DYING && client->stage != SL_NODE_EXPECTED &&
	       (client->stop_stage == SL_NODE_UNTOLD ||
		       sl_node_is_due(client, step->now));
}

/* A process that was stopped because it was idle may have become busy saving its work, as intended;
 * it still counts as idle. */
static struct sl_stop stop_of(const struct sl_node_choice *choice,
	const struct sl_node_client *client, uint32_t workload, uint64_t held_bytes)
{
	struct sl_node_step *step = choice->step;
	bool told = client->stop_stage == SL_NODE_TERMED;
	bool was_idle = told && client->stop.reason == SL_REASON_STOP_IDLE;
	sl_ns idle = sl_node_idle(client, step->now);
	sl_ns enough = step->node->config.config.stop_idle;

	/* Time alone will make it stoppable. */
	if (!was_idle && idle && idle < enough)
		sl_node_wake(step, step->now + (enough - idle));
	return (struct sl_stop){.client = client->index.id,
		.gpu = choice->gpu,
		.workload = workload,
		.priority = client->workload->priority,
		.held_bytes = held_bytes,
		.workload_bytes = use_of(choice, client->workload),
		.request_bytes = kept_of(client->workload, choice->gpu),
		.limit_bytes = client->workload->account.limit_bytes,
		.told = told,
		.idle = was_idle ? sl_max_u64(idle, enough) : idle,
		.proven = was_idle || client->proven};
}

/* Lists clients of other workloads above their request there; stuck: only untakeable ones. Returns
 * how many. */
static uint32_t list(
	const struct sl_node_choice *choice, struct sl_stop stops[], bool stuck)
{
	uint32_t workloads = 0, count = 0;

	sl_node_each_workload (workload, choice->step->node) {
		uint32_t before = count;

		if (workload == choice->claim->client->workload ||
			sl_node_goes(workload) ||
			SL_MUTANT(VICTIM_WITHIN_REQUEST,
				use_of(choice, workload) <=
					kept_of(workload, choice->gpu),
				false))
			continue;
		sl_node_each_client_of (client, workload) {
			uint64_t held = 0;

			if (may_be_stopped(choice, client) &&
				(!stuck || sl_node_is_untakeable(
						   choice->step->node, client)))
				held = here(choice, client);
			if (held)
				stops[count++] = stop_of(choice, client, workloads, held);
		}
		workloads += count > before;
	}
	return count;
}

/* The part of the workload's burst that its takeable processes have: they give it sooner or later.
 * If a person is ending the workload, all that it has. Movable bytes are left out, because they
 * count as room already. */
static uint64_t given_by(
	const struct sl_node_choice *choice, const struct sl_node_workload *workload)
{
	const struct sl_room_share *share = &workload->sums->now.on[choice->gpu];
	uint64_t stays = share->fixed_bytes + share->seats_bytes - share->away_bytes;
	uint64_t burst = sl_sub_sat(use_of(choice, workload),
		sl_ledger_request(&workload->account, choice->gpu));
	uint64_t stuck = 0;

	if (sl_node_goes(workload))
		return stays;
	sl_node_each_client_of (client, workload) {
		if (client->stage != SL_NODE_DYING && !client->look->coming &&
			sl_node_is_untakeable(choice->step->node, client))
			stuck += sl_ledger_live(&client->holding.cell[choice->gpu]);
	}
	return sl_sub_sat(sl_min_u64(burst, stays), stuck);
}

static uint64_t given(const struct sl_node_choice *choice)
{
	uint64_t bytes = 0;

	sl_node_each_workload (workload, choice->step->node) {
		if (workload != choice->claim->client->workload)
			bytes += given_by(choice, workload);
	}
	return SL_MUTANT(RESORT_TOO_EARLY, bytes, 0);
}

/* False: none is needed, or all together do not suffice. */
static bool choose_on(struct sl_node_choice *choice, bool stuck)
{
	struct sl_stop *stops = choice->plan->stops + choice->chosen;
	uint32_t count = list(choice, stops, stuck);
	const struct sl_stops_ask ask = {
		.priority = choice->claim->client->workload->priority,
		.stop_idle = choice->step->node->config.config.stop_idle,
		.any = stuck,
		.context = choice,
		.move = move,
		.fits = fits};
	uint32_t taken = sl_stops_choose(stops, count, &ask);

	for (uint32_t i = 0; i < count; i++) {
		if (stops[i].prove)
			sl_node_find_client(choice->step->node, stops[i].client)
				->look->proves = true;
		if (!taken || !stops[i].taken)
			continue;
		move(choice, &stops[i], true);
		choice->plan->stops[choice->chosen++] = stops[i];
	}
	return taken;
}

/* Where the reserve pays for its contexts, a process that is away lacks nothing. */
uint32_t sl_node_lacking_gpus(
	const struct sl_node *node, const struct sl_node_claim *claim)
{
	const struct sl_node_client *client = claim->client;
	uint32_t gpus = claim->demand ? 1u << claim->demand->gpu : 0;

	sl_each_gpu (gpu, client->look->gpus) {
		if (sl_node_missing(node, client, gpu) >
			client->holding.cell[gpu].leaving_bytes)
			gpus |= 1u << gpu;
	}
	return gpus;
}

bool sl_node_choose(struct sl_node_choice *choice, bool stuck)
{
	bool suffices = true;

	for (uint32_t left = sl_node_lacking_gpus(choice->step->node, choice->claim);
		left && suffices; left &= left - 1) {
		choice->gpu = (uint32_t)__builtin_ctz(left);
		choice->on_all = !(left & (left - 1));
		choice->given_bytes = stuck && choice->claim->demand ? given(choice) : 0;
		suffices = fits(choice) || SL_MUTANT(RETURN_STOPS_IN_VAIN,
						   choose_on(choice, stuck), true);
	}
	if (suffices && choice->chosen)
		return true;
	sl_node_take_back(choice);
	return false;
}
