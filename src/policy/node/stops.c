/*
 * stops - what is done for a claim that no move can serve: others are told to end
 *
 * Per GPU, for the first that has no seat (decision 0037, section 3.5). The resolver `priority`
 * tells processes to end; the last resort is for what is entitled and lacks what only the
 * untakeable have. Nobody behind it is worked for: what came free would be the first one's. What
 * was told to end makes no claim, and is off the copy; so the plan looks at its claims once more,
 * and the one that it ends for has its seat. When the grace is over the choice is made again as if
 * it had not been told: then it is killed, or spared.
 */
#include "policy/node/plan.h"
#include "policy/verdicts/stops.h"

/* Whose stop was revoked is not told to end again at once: with no grace that could go on for ever
 * in one step. */
#define SPARED_FOR (1 * SL_S)
/* Killed, and still there after this long: it hangs in the kernel, and nobody counts on it. */
#define STUBBORN_AFTER (10 * SL_S)

/* --- what is due --- */

bool sl_node_is_told_to_end(const struct sl_node_client *client)
{
	return client->stop_stage == SL_NODE_TERMED ||
	       client->stop_stage == SL_NODE_KILLED;
}

/* Its grace is over: is it still the one that has to go? */
static bool is_due(const struct sl_node_client *client, sl_ns now)
{
	return client->stop_stage == SL_NODE_TERMED && now >= client->stop_at;
}

bool sl_node_ends(const struct sl_node_client *client, sl_ns now)
{
	return sl_node_is_told_to_end(client) && !is_due(client, now);
}

void sl_node_time_stop(struct sl_node_step *step, struct sl_node_client *client)
{
	if (client->stop_stage == SL_NODE_UNTOLD ||
		client->stop_stage == SL_NODE_STUBBORN)
		return;
	if (step->now < client->stop_at)
		sl_node_wake(step, client->stop_at);
	else if (client->stop_stage == SL_NODE_KILLED)
		client->stop_stage = SL_NODE_STUBBORN;
	else if (client->stop_stage != SL_NODE_TERMED)
		client->stop_stage = SL_NODE_UNTOLD;
}

/* --- actions --- */

static void emit_stop(struct sl_node_step *step, const struct sl_node_client *client,
	enum sl_stop_stage stage)
{
	sl_node_emit(step, (struct sl_action){.type = SL_ACTION_STOP,
				   .stop = {.client = client->index.id,
					   .workload = client->workload->index.id,
					   .stage = stage,
					   .reason = client->stop.reason,
					   .gpu = client->stop.gpu,
					   .other = client->stop.other,
					   .bytes = client->stop.bytes,
					   .other_bytes = client->stop.other_bytes,
					   .span = client->stop.span}});
}

static void kill_it(struct sl_node_step *step, struct sl_node_client *client)
{
	client->stop_stage = SL_NODE_KILLED;
	client->stop_at = sl_node_later(step->now, STUBBORN_AFTER);
	emit_stop(step, client, SL_STOP_KILL);
}

static void spare(struct sl_node_step *step, struct sl_node_client *client)
{
	client->stop_stage = SL_NODE_SPARED;
	client->stop_at = sl_node_later(step->now, SPARED_FOR);
	client->stop.reason = SL_REASON_STOP_REVOKED;
	sl_node_note_because(step, &client->stop);
}

/* --- a choice --- */

struct choice {
	struct sl_node_step *step;
	struct sl_node_plan *plan;
	struct sl_node_claim *claim;
	uint32_t gpu;
	bool on_all;          /* the last of its GPUs: it is to fit on each */
	uint64_t given_bytes; /* of what it lacks: left to others to give */
	uint32_t chosen;      /* in plan->stops, off the copy */
};

/* What of it is on the copy, and where: with its seat, if it has one. */
static struct sl_room_share share_of(
	const struct sl_node *node, const struct sl_node_client *client, uint32_t gpu)
{
	struct sl_room_share share = sl_node_share_of(node, client, gpu);

	if (client->look->stays || node->gpu[gpu].lost || !client->look->sits)
		return share;
	share.away_bytes = sl_node_missing(&client->holding.cell[gpu]);
	share.seats_bytes = share.rest_bytes + share.away_bytes;
	share.rest_bytes = 0;
	return share;
}

static void move(void *context, const struct sl_stop *stop, bool gone)
{
	struct choice *choice = context;
	struct sl_node *node = choice->step->node;
	struct sl_node_client *client = sl_node_find_client(node, stop->client);

	for (uint32_t left = client->holding.touched; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(left);
		struct sl_room_share share = share_of(node, client, gpu);

		sl_room_take(&choice->plan->now, &client->workload->sums->now, gpu,
			&share, gone);
	}
	sl_node_above_changes(choice->plan, client->workload);
}

static bool fits(void *context)
{
	const struct choice *choice = context;
	struct sl_room_verdict verdict = sl_node_room_of(choice->step, choice->claim);

	if (verdict.lacks_bytes <= choice->given_bytes)
		return true;
	return !choice->on_all && verdict.code == SL_ROOM_GPU &&
	       verdict.gpu > choice->gpu;
}

static void take_back(struct choice *choice)
{
	while (choice->chosen)
		move(choice, &choice->plan->stops[--choice->chosen], false);
}

static uint64_t here(struct sl_room_share share)
{
	return share.fixed_bytes + share.seats_bytes - share.away_bytes +
	       share.rest_bytes;
}

/* What it has there and is not about to leave, whoever of it is told to end. */
static uint64_t use_of(
	const struct sl_node *node, const struct sl_node_workload *workload, uint32_t gpu)
{
	uint64_t bytes = 0;

	sl_node_each_client_of(client, workload)
	{
		if (client->stage != SL_NODE_DYING && !client->look->coming)
			bytes += here(share_of(node, client, gpu));
	}
	return bytes;
}

/* Told to end by a person; not for ever, if the kill did nothing. */
static bool goes(const struct sl_node_workload *workload)
{
	return sl_node_is_stopped(workload) && workload->stage != SL_NODE_UNCOUNTED;
}

/* What is not taken from it by stopping it. What is parked gave its request up so that others can
 * be promised it, and lives on with all it had. */
static uint64_t kept_of(const struct sl_node_workload *workload, uint32_t gpu)
{
	uint64_t request = sl_ledger_request(&workload->account, gpu);

	return SL_MUTANT(PARKED_VICTIM, sl_node_is_parked(workload), false)
		       ? sl_max_u64(request, workload->request_bytes)
		       : request;
}

static bool may_be_stopped(struct sl_node_step *step, const struct sl_node_client *client)
{
	if (client->stop_stage == SL_NODE_SPARED)
		sl_node_wake(step, client->stop_at);
	return client->stage != SL_NODE_DYING && client->stage != SL_NODE_EXPECTED &&
	       (client->stop_stage == SL_NODE_UNTOLD || is_due(client, step->now));
}

/* What was stopped for its idleness may have become busy by saving its work, as it was asked to,
 * and goes on being the idle one. */
static struct sl_stop stop_of(const struct choice *choice,
	const struct sl_node_client *client, uint32_t workload, uint64_t held_bytes)
{
	struct sl_node_step *step = choice->step;
	bool told = client->stop_stage == SL_NODE_TERMED;
	bool was_idle = told && client->stop.reason == SL_REASON_STOP_IDLE;
	sl_ns idle = sl_node_idle(client, step->now);
	sl_ns enough = step->node->config.config.stop_idle;

	/* Time alone will make it one that may be stopped. */
	if (!was_idle && idle && idle < enough)
		sl_node_wake(step, step->now + (enough - idle));
	return (struct sl_stop){.client = client->index.id,
		.gpu = choice->gpu,
		.workload = workload,
		.priority = client->workload->priority,
		.held_bytes = held_bytes,
		.workload_bytes = use_of(step->node, client->workload, choice->gpu),
		.request_bytes = kept_of(client->workload, choice->gpu),
		.limit_bytes = client->workload->account.limit_bytes,
		.told = told,
		.idle = was_idle ? sl_max_u64(idle, enough) : idle,
		.proven = was_idle || client->proven};
}

/* Those of other workloads that have something above their request there; stuck: only those that
 * are untakeable. Returns how many. */
static uint32_t list(const struct choice *choice, struct sl_stop stops[], bool stuck)
{
	uint32_t workloads = 0, count = 0;

	sl_list_foreach (link, &choice->step->node->all_workloads) {
		struct sl_node_workload *workload = sl_node_workload_at(link);
		uint32_t before = count;

		if (workload == choice->claim->client->workload || goes(workload) ||
			SL_MUTANT(VICTIM_WITHIN_REQUEST,
				use_of(choice->step->node, workload, choice->gpu) <=
					kept_of(workload, choice->gpu),
				false))
			continue;
		sl_node_each_client_of(client, workload)
		{
			uint64_t held = 0;

			if (may_be_stopped(choice->step, client) &&
				(!stuck || sl_node_is_untakeable(
						   choice->step->node, client)))
				held = here(share_of(
					choice->step->node, client, choice->gpu));
			if (held)
				stops[count++] = stop_of(choice, client, workloads, held);
		}
		workloads += count > before;
	}
	return count;
}

static void tell(struct sl_node_step *step, const struct sl_node_claim *claim,
	const struct sl_stop *stop)
{
	struct sl_node_client *client = sl_node_find_client(step->node, stop->client);
	uint64_t within = stop->reason == SL_REASON_STOP_OVER_LIMIT ? stop->limit_bytes
								    : stop->request_bytes;

	client->look->coming = true;
	if (client->stop_stage == SL_NODE_TERMED) {
		kill_it(step, client);
		return;
	}
	client->stop_stage = SL_NODE_TERMED;
	client->stop_at = sl_node_later(step->now, step->node->config.config.stop_grace);
	client->stop = (struct sl_node_because){.reason = stop->reason,
		.gpu = stop->gpu,
		.workload = client->workload->index.id,
		.client = client->index.id,
		.other = claim->client->workload->index.id,
		.bytes = claim->demand ? claim->demand->bytes
				       : sl_node_missing(
						 &claim->client->holding.cell[stop->gpu]),
		.other_bytes = sl_sub_sat(stop->workload_bytes, within),
		.span = stop->idle};
	sl_node_wake(step, client->stop_at);
	emit_stop(step, client, SL_STOP_TERM);
}

/* Of what is above its request, what its takeable processes have: left to them to give, sooner or
 * later, as it is for whoever asks. What can be moved is counted by the room. */
static uint64_t given_by(
	const struct choice *choice, const struct sl_node_workload *workload)
{
	const struct sl_room_share *share = &workload->sums->now.on[choice->gpu];
	uint64_t stays = share->fixed_bytes + share->seats_bytes - share->away_bytes;
	uint64_t burst = sl_sub_sat(use_of(choice->step->node, workload, choice->gpu),
		sl_ledger_request(&workload->account, choice->gpu));
	uint64_t stuck = 0;

	sl_node_each_client_of(client, workload)
	{
		if (client->stage != SL_NODE_DYING &&
			sl_node_is_untakeable(choice->step->node, client))
			stuck += sl_ledger_live(&client->holding.cell[choice->gpu]);
	}
	return sl_sub_sat(sl_min_u64(burst, stays), stuck);
}

static uint64_t given(const struct choice *choice)
{
	uint64_t bytes = 0;

	sl_list_foreach (link, &choice->step->node->all_workloads) {
		const struct sl_node_workload *workload = sl_node_workload_at(link);

		if (workload != choice->claim->client->workload)
			bytes += given_by(choice, workload);
	}
	return SL_MUTANT(RESORT_TOO_EARLY, bytes, 0);
}

static void choose_on(struct choice *choice, bool stuck)
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
}

/* Where it lacks anything. */
static uint32_t lacking_gpus(const struct sl_node_claim *claim)
{
	uint32_t gpus = claim->demand ? 1u << claim->demand->gpu : 0;

	for (uint32_t left = claim->gpus; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(left);

		if (sl_node_missing(&claim->client->holding.cell[gpu]))
			gpus |= 1u << gpu;
	}
	return gpus;
}

/* Takes those off the copy without whom the claim has a seat on all its GPUs. False: not even all
 * together suffice, or nobody is needed; then nobody is off it. */
static bool choose(struct choice *choice, bool stuck)
{
	bool suffices = true;

	for (uint32_t left = lacking_gpus(choice->claim); left && suffices;
		left &= left - 1) {
		choice->gpu = (uint32_t)__builtin_ctz(left);
		choice->on_all = !(left & (left - 1));
		choice->given_bytes = stuck && choice->claim->demand ? given(choice) : 0;
		if (fits(choice))
			continue;
		choose_on(choice, stuck);
		suffices = SL_MUTANT(RETURN_STOPS_IN_VAIN, fits(choice), true);
	}
	if (suffices && choice->chosen)
		return true;
	take_back(choice);
	return false;
}

static void tell_all(const struct choice *choice)
{
	for (uint32_t i = 0; i < choice->chosen; i++)
		tell(choice->step, choice->claim, &choice->plan->stops[i]);
}

/* --- priority --- */

/* `priority` stands before `wait`, or there is no `wait`. */
static bool stops_at_once(const struct sl_node *node)
{
	for (uint32_t chain = node->config.config.chain; chain; chain >>= 4) {
		if ((chain & 15) == SL_RESOLVER_WAIT)
			return SL_MUTANT(STOPS_BEFORE_WAIT, false, true);
		if ((chain & 15) == SL_RESOLVER_PRIORITY)
			return true;
	}
	return false;
}

static bool is_ripe(struct sl_node_step *step, const struct sl_node_claim *claim)
{
	sl_ns at = sl_node_wait_end(step->node, claim);

	if (stops_at_once(step->node) || step->now >= at)
		return true;
	sl_node_wake(step, at);
	return false;
}

static bool by_priority(struct choice *choice)
{
	if (!sl_node_has(choice->step->node, SL_RESOLVER_PRIORITY) ||
		!is_ripe(choice->step, choice->claim) || !choose(choice, false))
		return false;
	tell_all(choice);
	return true;
}

/* --- the last resort --- */

/* What it has there is on its way, rather. */
static bool comes_back(const struct choice *choice)
{
	const struct sl_ledger_cell *cell =
		&sl_node_find_client(choice->step->node, choice->plan->stops[0].client)
			 ->workload->account.cell[choice->gpu];

	return cell->returning_bytes > cell->backing_bytes - cell->evicted_bytes;
}

/* It lacks only what demands before it are to get: first see whether they take it. */
static bool lacks_what_others_get(const struct choice *choice)
{
	const struct sl_node_claim *claim = choice->claim;

	return claim->demand && claim->room.code == SL_ROOM_GPU &&
	       claim->room.lacks_bytes <=
		       SL_MUTANT(RESORT_BEHIND_OTHERS,
			       choice->plan->asked_bytes[claim->demand->gpu], 0);
}

/* It lacks what only the untakeable have: without them the others could not give enough, with them
 * they could. */
static bool by_last_resort(struct choice *choice)
{
	struct sl_node_claim *claim = choice->claim;

	if (!SL_MUTANT(RESORT_FOR_BURSTS, claim->entitled, true) ||
		lacks_what_others_get(choice) || !choose(choice, true))
		return false;
	if (choice->step->node->config.config.last_resort == SL_LAST_RESORT_STOP) {
		tell_all(choice);
		return true;
	}
	take_back(choice);
	/* What is to come back is failed nothing, and waits. */
	if (claim->demand)
		sl_node_end_demand(choice->step, claim,
			comes_back(choice) ? SL_REASON_RETURN_UNTAKEABLE
					   : SL_REASON_UNTAKEABLE);
	return false;
}

/* --- all of it --- */

static bool is_worth_it(struct sl_node_step *step, struct sl_node_claim *claim)
{
	if (!claim->demand && !claim->entitled)
		return false;
	/* What is on its way out itself is worth nobody's stop. */
	if (goes(claim->client->workload))
		return false;
	if (claim->verdict == SL_NODE_TIME)
		return true;
	return claim->verdict == SL_NODE_LACKS &&
	       sl_node_endless(step->node, claim) != SL_ENDLESS_NOT;
}

bool sl_node_stop_for(struct sl_node_step *step, struct sl_node_claim *claim)
{
	struct sl_node_plan *plan = step->node->plan;
	struct choice choice = {.step = step, .plan = plan, .claim = claim};
	bool is_first = !(plan->worked & claim->gpus);

	if (claim->verdict == SL_NODE_BODY)
		return false;
	plan->worked |= claim->gpus;
	return is_first && is_worth_it(step, claim) &&
	       (by_priority(&choice) || by_last_resort(&choice));
}

void sl_node_spare(struct sl_node_step *step)
{
	struct sl_node *node = step->node;

	for (struct sl_index_node *at = sl_index_next(&node->clients, NULL); at;
		at = sl_index_next(&node->clients, at)) {
		struct sl_node_client *client = SL_NODE_ENTRY(at, sl_node_client);

		if (client->stage == SL_NODE_DYING || client->look->coming ||
			!is_due(client, step->now))
			continue;
		if (SL_MUTANT(KILLS_THE_UNNEEDED, false, true))
			kill_it(step, client);
		else
			spare(step, client);
		sl_node_wake(step, step->now);
	}
}
