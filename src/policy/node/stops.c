/*
 * stops - ending other processes for a claim that no move can serve
 *
 * Per GPU, for the first claim without a seat (decision 0037, section 3.5); later ones get nothing,
 * because freed memory would be the first one's. The resolver `priority` tells processes to end.
 * The last resort is for entitled claims that lack what only untakeable clients have. A process
 * told to end makes no claim and is off the copy, so the plan looks at its claims once more, and
 * the claim it ends for gets its seat. After the grace period the choice is made again as if that
 * process had not been told to end: it is then killed or spared.
 */
#include "policy/node/plan.h"
#include "policy/verdicts/stops.h"

/* A spared process is not told to end again this soon: without a grace period, one step could tell
 * and spare it for ever. */
#define SPARED_FOR (1 * SL_S)
/* A killed process still there after this long hangs in the kernel; the node does not count on its
 * end. */
#define STUBBORN_AFTER (10 * SL_S)

/* --- what is due --- */

bool sl_node_is_told_to_end(const struct sl_node_client *client)
{
	return client->stop_stage == SL_NODE_TERMED ||
	       client->stop_stage == SL_NODE_KILLED;
}

bool sl_node_is_due(const struct sl_node_client *client, sl_ns now)
{
	return client->stop_stage == SL_NODE_TERMED && now >= client->stop_at;
}

bool sl_node_ends(const struct sl_node_client *client, sl_ns now)
{
	return sl_node_is_told_to_end(client) && !sl_node_is_due(client, now);
}

void sl_node_time_stop(struct sl_node_step *step, struct sl_node_client *client)
{
	if (client->stop_stage == SL_NODE_UNTOLD ||
		client->stop_stage == SL_NODE_STUBBORN ||
		!sl_node_has_come(step, client->stop_at))
		return;
	if (client->stop_stage == SL_NODE_KILLED)
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
		.bytes = claim->demand
				 ? claim->demand->bytes
				 : sl_node_missing(step->node, claim->client, stop->gpu),
		.other_bytes = sl_sub_sat(stop->workload_bytes, within),
		.span = stop->idle};
	sl_node_wake(step, client->stop_at);
	emit_stop(step, client, SL_STOP_TERM);
}

static void tell_all(const struct sl_node_choice *choice)
{
	for (uint32_t i = 0; i < choice->chosen; i++)
		tell(choice->step, choice->claim, &choice->plan->stops[i]);
}

/* --- priority --- */

static bool is_ripe(struct sl_node_step *step, const struct sl_node_claim *claim)
{
	return SL_MUTANT(STOPS_BEFORE_WAIT,
		       sl_chain_is_before(sl_node_chain_of(step->node, claim),
			       SL_RESOLVER_PRIORITY, SL_RESOLVER_WAIT),
		       true) ||
	       sl_node_has_come(step, sl_node_wait_end(step->node, claim));
}

static bool by_priority(struct sl_node_choice *choice)
{
	uint32_t chain = sl_node_chain_of(choice->step->node, choice->claim);

	if (!sl_chain_has(chain, SL_RESOLVER_PRIORITY) ||
		!is_ripe(choice->step, choice->claim) || !sl_node_choose(choice, false))
		return false;
	/* Notes why nothing was moved instead; the claim has its room when they have ended. */
	sl_node_note_pool_for(choice->step, choice->claim);
	tell_all(choice);
	return true;
}

/* --- the last resort --- */

/* Its own memory there is mostly on its way back. */
static bool comes_back(const struct sl_node_choice *choice)
{
	const struct sl_ledger_cell *cell =
		&sl_node_find_client(choice->step->node, choice->plan->stops[0].client)
			 ->workload->account.cell[choice->gpu];

	return cell->returning_bytes > cell->backing_bytes - cell->evicted_bytes;
}

/* It lacks only what earlier demands will get: first see whether they take it. */
static bool lacks_what_others_get(const struct sl_node_choice *choice)
{
	const struct sl_node_claim *claim = choice->claim;

	return claim->demand && claim->room.code == SL_ROOM_GPU &&
	       claim->room.lacks_bytes <=
		       SL_MUTANT(RESORT_BEHIND_OTHERS,
			       choice->plan->asked_bytes[claim->demand->gpu], 0);
}

/* It lacks what only untakeable clients have: the others cannot give enough without them. */
static bool by_last_resort(struct sl_node_choice *choice)
{
	struct sl_node_claim *claim = choice->claim;

	if (!SL_MUTANT(RESORT_FOR_BURSTS, claim->entitled, true) ||
		lacks_what_others_get(choice) || !sl_node_choose(choice, true))
		return false;
	if (choice->step->node->config.config.last_resort == SL_LAST_RESORT_STOP) {
		tell_all(choice);
		return true;
	}
	sl_node_take_back(choice);
	/* For a return there is no demand to fail; it waits. */
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
	/* No process is stopped for a workload that is ending itself. */
	if (sl_node_goes(claim->client->workload))
		return false;
	if (claim->verdict == SL_NODE_TIME)
		return true;
	return claim->verdict == SL_NODE_LACKS &&
	       sl_node_endless(step->node, claim) != SL_ENDLESS_NOT;
}

bool sl_node_stop_for(struct sl_node_step *step, struct sl_node_claim *claim)
{
	struct sl_node_plan *plan = step->node->plan;
	struct sl_node_choice choice = {.step = step, .plan = plan, .claim = claim};
	uint32_t lacking = sl_node_lacking_gpus(step->node, claim);
	bool is_first = !(plan->worked & lacking);

	if (claim->verdict == SL_NODE_BODY)
		return false;
	plan->worked |= lacking;
	return is_first && is_worth_it(step, claim) &&
	       (by_priority(&choice) || by_last_resort(&choice));
}

void sl_node_spare(struct sl_node_step *step, struct sl_node_client *client)
{
	if (!sl_node_is_due(client, step->now))
		return;
	if (SL_MUTANT(KILLS_THE_UNNEEDED, false, true))
		kill_it(step, client);
	else
		spare(step, client);
	step->node->plan->is_stale = true;
	sl_node_wake(step, step->now);
}
