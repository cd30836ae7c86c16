/*
 * seats - by rank, each claim gets a seat if it fits beside the earlier ones
 *
 * The plan works on its copy of the sums. Of the facts, it only changes which clients and demands
 * have seats: COMING, SERVED, OVERDUE, and SEATED of a demand.
 */
#include <string.h>

#include "policy/node/plan.h"

/* A burst that the chain does not let move anything yet gets free memory only. */
static bool is_only_free(struct sl_node_step *step, const struct sl_node_claim *claim)
{
	uint32_t chain = sl_node_chain_of(step->node, claim);

	if (claim->entitled)
		return false;
	if (SL_MUTANT(MOVES_WITHOUT_SWAP, !sl_chain_has(chain, SL_RESOLVER_SWAP), false))
		return true;
	return SL_MUTANT(SWAPS_BEFORE_WAIT,
		       sl_chain_is_before(chain, SL_RESOLVER_WAIT, SL_RESOLVER_SWAP),
		       false) &&
	       !sl_node_has_come(step, sl_node_wait_end(step->node, claim));
}

/* --- facts --- */

static void unseat(struct sl_node_step *step, struct sl_node_client *client)
{
	/* What it was in the way of may fit now. */
	if (client->seat != SL_NODE_UNSEATED)
		sl_node_wake(step, step->now);
	client->seat = SL_NODE_UNSEATED;
	client->told &= ~SL_NODE_OVERDUE;
}

static void sit_body(struct sl_node_step *step, struct sl_node_client *client,
	bool blocked, bool overdue)
{
	if (client->seat == SL_NODE_SERVED ||
		(client->seat == SL_NODE_COMING && client->look->is_whole))
		return;
	if (client->look->is_whole) {
		client->seat = SL_NODE_SERVED;
		step->changes = true;
	} else if (blocked) {
		unseat(step, client);
	} else if (client->seat != SL_NODE_COMING) {
		client->seat = SL_NODE_COMING;
		sl_node_set_overdue(client, overdue);
		step->changes = true;
	}
}

static void sit(struct sl_node_step *step, struct sl_node_claim *claim, bool with_body)
{
	struct sl_node_client *client = claim->client;
	bool blocked = step->node->plan->blocked & claim->gpus;
	bool overdue = claim->rank.class == SL_RANK_OVERDUE;
	struct sl_node_claim *body = client->look->body;

	claim->has_seat = true;
	if (!claim->demand) {
		sit_body(step, client, blocked, overdue);
		return;
	}
	step->node->plan->asked_bytes[claim->demand->gpu] += claim->demand->bytes;
	if (!blocked) {
		step->changes |= !(claim->demand->flags & SL_NODE_DEMAND_SEATED);
		claim->demand->flags |= SL_NODE_DEMAND_SEATED;
	}
	if (!with_body)
		return;
	sit_body(step, client, blocked, overdue);
	if (body)
		body->has_seat = body->with_demand = true;
	client->look->sits = true;
}

/* --- room --- */

static void reserve(struct sl_node_step *step, struct sl_node_claim *claim,
	const struct sl_room_claim *of)
{
	struct sl_node_plan *plan = step->node->plan;
	bool comes = claim->verdict != SL_NODE_TIME && sl_node_comes(step->node, claim);

	sl_ns at =
		sl_node_later(claim->facts.asked_at, step->node->config.config.head_pass);

	/* Until then later claims may use free memory. */
	if (!sl_node_has_come(step, at) || (!claim->demand && !comes))
		return;
	sl_each_gpu (gpu, claim->gpus) {
		struct sl_room_gpu *room = &plan->now.gpu[gpu];
		uint64_t lacks = of->need[gpu].away_bytes + of->need[gpu].asks_bytes;
		uint64_t bytes = sl_min_u64(
			sl_sub_sat(sl_room_spare(room), plan->kept_bytes[gpu]), lacks);

		claim->reserved_bytes[gpu] = bytes;
		claim->reserves = true;
		if (!claim->demand) {
			room->fixed_bytes += bytes;
			continue;
		}
		plan->kept_bytes[gpu] += bytes;
		if (bytes && !plan->keeper[gpu])
			plan->keeper[gpu] = claim;
	}
}

uint64_t sl_node_fix_kept(struct sl_room_gpu *gpu, uint64_t kept_bytes)
{
	uint64_t bytes = sl_min_u64(kept_bytes, sl_room_spare(gpu));

	gpu->fixed_bytes += bytes;
	return bytes;
}

static void fix_kept(struct sl_node_plan *plan)
{
	for (uint32_t gpu = 0; gpu < plan->now.gpus; gpu++)
		plan->kept_bytes[gpu] =
			sl_node_fix_kept(&plan->now.gpu[gpu], plan->kept_bytes[gpu]);
}

static void unfix_kept(struct sl_node_plan *plan)
{
	for (uint32_t gpu = 0; gpu < plan->now.gpus; gpu++)
		plan->now.gpu[gpu].fixed_bytes -= plan->kept_bytes[gpu];
}

/* Whether it has room beside what earlier demands keep. */
static struct sl_room_verdict ask_room_behind(
	struct sl_node_plan *plan, const struct sl_room_claim *of, bool keeps)
{
	struct sl_room_verdict verdict;

	if (!keeps)
		return sl_room_for(&plan->now, of);
	fix_kept(plan);
	verdict = sl_room_for(&plan->now, of);
	unfix_kept(plan);
	return verdict;
}

/* Sets *kept if the claim would fit but for what earlier demands keep. A demand that already has
 * its seat ignores what they keep, because that includes what leaves for it. */
static struct sl_room_verdict ask_room(struct sl_node_step *step,
	struct sl_node_claim *claim, const struct sl_room_claim *of, bool *kept)
{
	struct sl_node_plan *plan = step->node->plan;
	struct sl_node_demand *demand = claim->demand;
	struct sl_room_verdict verdict, without;
	bool keeps;

	*kept = false;
	claim->helps = demand && demand->flags & SL_NODE_DEMAND_SEATED;
	keeps = SL_MUTANT(HEAD_NOT_KEPT, demand && !claim->helps, false);
	verdict = ask_room_behind(plan, of, keeps);
	if (verdict.code == SL_ROOM_OK || !keeps || !plan->kept_bytes[demand->gpu])
		return verdict;
	without = ask_room_behind(plan, of, false);
	if (without.code != SL_ROOM_OK)
		return verdict;
	claim->helps = sl_node_helps(step, claim);
	*kept = !claim->helps;
	return claim->helps ? without : verdict;
}

static enum sl_node_verdict judge(struct sl_node_step *step, struct sl_node_claim *claim,
	const struct sl_room_claim *of)
{
	struct sl_node_plan *plan = step->node->plan;
	bool kept;

	claim->room = ask_room(step, claim, of, &kept);
	if (claim->room.code != SL_ROOM_OK) {
		if (claim->room.code == SL_ROOM_POOL)
			claim->lets_bytes = sl_node_lets(&plan->now, of, &claim->room);
		return kept ? SL_NODE_KEPT : SL_NODE_LACKS;
	}
	if (!claim->room.moves)
		return SL_NODE_SEATED;
	if (is_only_free(step, claim))
		return SL_NODE_TIME;
	return plan->blocked & claim->gpus ? SL_NODE_BEHIND : SL_NODE_SEATED;
}

/* A demand also needs its body if that has no seat yet. */
static bool needs_body(const struct sl_node_claim *claim)
{
	const struct sl_node_look *look = claim->client->look;

	return !claim->demand ||
	       (look->gpus && !look->sits && !(look->body && look->body->has_seat));
}

static void need_of(struct sl_node_step *step, const struct sl_node_claim *claim,
	struct sl_room_claim *of)
{
	sl_node_room_claim(step->node, claim, needs_body(claim),
		&claim->client->workload->sums->now, of);
}

struct sl_room_verdict sl_node_room_of(
	struct sl_node_step *step, struct sl_node_claim *claim)
{
	struct sl_room_claim of;
	bool kept;

	need_of(step, claim, &of);
	return ask_room(step, claim, &of, &kept);
}

/* OOM_FIRST denies the first burst of the client that does not fit, and the first after each
 * granted burst, before anything leaves for it. */
static bool is_oom_first(struct sl_node_step *step, const struct sl_node_claim *claim,
	const struct sl_room_claim *of)
{
	struct sl_node_client *client = claim->client;
	struct sl_node_demand *demand = claim->demand;
	struct sl_room_verdict verdict;

	if (!demand || !demand->burst_since || demand->told & SL_NODE_MET ||
		!(client->workload->flags & SL_WORKLOAD_OOM_FIRST) ||
		!client->look->is_whole)
		return false;
	demand->told |= SL_NODE_MET;
	if (client->told & SL_NODE_TOLD_OOM)
		return false;
	verdict = ask_room_behind(step->node->plan, of, false);
	if (verdict.code == SL_ROOM_OK && !verdict.moves &&
		demand->bytes <= sl_ledger_free_bytes(&step->node->ledger, demand->gpu) &&
		sl_node_can_lend(step->node, claim))
		return false;
	client->told |= SL_MUTANT(OOM_ALWAYS, SL_NODE_TOLD_OOM, 0);
	return true;
}

/* A coming claim, or one in its slice, is tried before its ordinary place in the order. If it does
 * not fit there, it falls back to that place: by then fewer bytes within requests must leave, or
 * more is back, so the pool may suffice. The next plan would seat it there anyway. But a body in
 * its slice that lacks room on a GPU has had its turn. */
static bool stand_back(struct sl_node_step *step, uint32_t at)
{
	struct sl_node_plan *plan = step->node->plan;
	struct sl_node_claim *claim = plan->order[at];

	if (claim->facts.coming)
		claim->facts.coming = false;
	else if (claim->facts.served &&
		 (claim->demand || claim->room.code == SL_ROOM_POOL))
		claim->facts.served = false;
	else
		return false;
	claim->rank = sl_rank_of(&claim->facts, step->now, &plan->rank_due);
	while (at + 1 < plan->claims_count &&
		sl_rank_compare(&plan->order[at + 1]->rank, &claim->rank) < 0) {
		plan->order[at] = plan->order[at + 1];
		plan->order[++at] = claim;
	}
	return true;
}

/* False: it is looked at again later. */
static bool look(struct sl_node_step *step, uint32_t at)
{
	struct sl_node_plan *plan = step->node->plan;
	struct sl_node_claim *claim = plan->order[at];
	struct sl_node_client *client = claim->client;
	struct sl_node_claim *body = client->look->body;
	bool with_body = needs_body(claim), stands_back;
	struct sl_room_claim of;

	need_of(step, claim, &of);
	if (claim->rank.class == SL_RANK_THERE)
		claim->verdict = SL_NODE_SEATED;
	else if (claim->demand && body && body->is_looked && !body->has_seat)
		claim->verdict = SL_NODE_BODY;
	else
		claim->verdict = judge(step, claim, &of);
	stands_back = claim->verdict != SL_NODE_SEATED && stand_back(step, at);
	/* Its demands do not wait for its body's second try. */
	claim->is_looked = SL_MUTANT(FIRST_TRY_COUNTS, !stands_back, true);
	if (stands_back)
		return false;
	if (is_oom_first(step, claim, &of))
		sl_node_end_demand(step, claim, SL_REASON_OOM_FIRST);
	else if (claim->verdict != SL_NODE_SEATED && sl_node_stop_for(step, claim))
		claim->verdict = judge(step, claim, &of);
	if (claim->is_over)
		return true;
	if (claim->verdict == SL_NODE_SEATED) {
		/* Others leave for it beside what is kept, which stays kept unless it may pass
		 * that. */
		if (claim->demand && claim->room.moves && !claim->helps) {
			fix_kept(plan);
			memset(plan->kept_bytes, 0, sizeof(plan->kept_bytes));
		}
		sl_room_add(&plan->now, &of);
		sl_node_above_changes(plan, client->workload);
		sit(step, claim, claim->demand && with_body);
		if (!claim->demand)
			client->look->sits = true;
		return true;
	}
	if (claim->verdict != SL_NODE_TIME && sl_node_comes(step->node, claim))
		plan->blocked |= claim->gpus;
	reserve(step, claim, &of);
	return true;
}

void sl_node_seat(struct sl_node_step *step)
{
	struct sl_node_plan *plan = step->node->plan;

	plan->blocked = plan->worked = 0;
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++)
		plan->kept_bytes[gpu] = 0;
	memset(plan->keeper, 0, sizeof(plan->keeper));
	plan->helped = NULL;
	plan->is_stale = false;
	for (uint32_t i = 0; i < plan->claims_count;) {
		bool skips = plan->order[i]->with_demand ||
			     plan->order[i]->client->look->coming;

		i += skips || look(step, i);
	}
	for (uint32_t i = 0; i < plan->claims_count; i++) {
		struct sl_node_claim *claim = plan->order[i];

		if (!claim->demand || claim->has_seat ||
			!(claim->demand->flags & SL_NODE_DEMAND_SEATED))
			continue;
		claim->demand->flags &= ~SL_NODE_DEMAND_SEATED;
		sl_node_wake(step, step->now);
	}
	for (uint32_t i = 0; i < plan->all_count; i++) {
		struct sl_node_client *client = plan->all[i];

		if (client->stage == SL_NODE_DYING)
			continue;
		if (client->look->gpus && (!client->look->sits || client->look->coming) &&
			client->seat != SL_NODE_UNSEATED)
			unseat(step, client);
		if (!client->look->coming)
			sl_node_spare(step, client);
	}
}
