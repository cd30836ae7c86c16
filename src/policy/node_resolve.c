/*
 * node_resolve - what is done about a collision besides waiting
 *
 * The queue is gone through in its order, each demand taking its bytes out of the outlook
 * (node_outlook.h); the first that finds too little is the one the resolver `priority` works for.
 * Nobody behind it is worked for until it is helped, since what came free would be kept for it
 * anyway. So nobody is stopped whose memory would not reach the one he is stopped for, and one
 * collision stops processes once.
 *
 * The need is looked at again when the grace is over: the outlook is then made without the victim.
 */
#include "policy/mutant.h"
#include "policy/node_outlook.h"

/* Whose stop was revoked is not told to end again at once: with no grace that could go on for ever
 * in one step. */
#define SPARED_FOR (1 * SL_S)
/* Who could not be signalled is not tried again before. */
#define TRIED_AGAIN_AFTER (60 * SL_S)
/* Choices of victims per look at a queue: each costs a walk over all clients. */
#define CHOICES_MOST 16

/* --- the chain --- */

static bool chain_has(const struct sl_node *node, enum sl_resolver resolver)
{
	for (uint32_t chain = node->chain; chain; chain >>= 4) {
		if ((chain & 15) == (uint32_t)resolver)
			return true;
	}
	return false;
}

bool sl_node_waits_at_all(const struct sl_node *node)
{
	return !node->chain || chain_has(node, SL_RESOLVER_WAIT);
}

bool sl_node_has_priority(const struct sl_node *node)
{
	return chain_has(node, SL_RESOLVER_PRIORITY);
}

/* `priority` stands before `wait`, or there is no `wait`. */
static bool stops_at_once(const struct sl_node *node)
{
	for (uint32_t chain = node->chain; chain; chain >>= 4) {
		if ((chain & 15) == SL_RESOLVER_WAIT)
			return SL_MUTANT(STOPS_BEFORE_WAIT, false, true);
		if ((chain & 15) == SL_RESOLVER_PRIORITY)
			return true;
	}
	return false;
}

sl_ns sl_node_wait_end(const struct sl_node *node, const struct sl_demand *demand)
{
	sl_ns own = SL_MUTANT(
		OWN_WAIT_IGNORED, sl_node_client_of(demand)->member->wait_max, 0);

	return sl_node_later(demand->entitled ? demand->arrived : demand->burst_since,
		own ? own : node->wait_max);
}

/* When `priority` may act for it. */
static sl_ns ripe_at(const struct sl_node *node, const struct sl_demand *demand)
{
	return stops_at_once(node) ? 0 : sl_node_wait_end(node, demand);
}

void sl_node_reconsider(struct sl_node *node, uint32_t gpu_mask)
{
	node->resolve_mask |= gpu_mask;
}

static void emit_stop(struct sl_node *node, const struct sl_node_client *client,
	enum sl_stop_stage stage)
{
	sl_node_emit(node, (struct sl_action){.type = SL_ACTION_STOP,
				   .stop = {.client = client->index.id,
					   .workload = client->member->index.id,
					   .stage = stage,
					   .reason = client->stop.reason,
					   .gpu = client->stop.gpu,
					   .other = client->stop.other,
					   .bytes = client->stop.bytes,
					   .other_bytes = client->stop.other_bytes,
					   .span = client->stop.span}});
}

static void stop(struct sl_outlook *outlook, struct sl_demand *demand,
	const struct sl_victim *victim, enum sl_reason reason)
{
	struct sl_node *node = outlook->node;
	struct sl_node_client *client = sl_node_find_client(node, victim->client);
	uint64_t within = reason == SL_REASON_STOP_OVER_LIMIT ? victim->limit_bytes
							      : victim->request_bytes;

	client->stopping = SL_NODE_TERMED;
	client->stop_due = sl_node_later(node->now, node->stop_grace);
	client->stop = (struct sl_node_because){.reason = reason,
		.gpu = outlook->gpu,
		.workload = client->member->index.id,
		.client = client->index.id,
		.other = sl_node_client_of(demand)->member->index.id,
		.bytes = demand->bytes,
		.other_bytes = sl_sub_sat(victim->workload_bytes, within),
		.span = victim->idle};
	client->party.waits = false; /* it is about to give all it has */
	demand->stops = SL_MUTANT(STOPS_FOR_OTHERS, true, false);
	node->queue[outlook->gpu].stops = true;
	sl_list_push_tail(&node->stops, &client->of_stops);
	node->books++;
	node->timers_dirty = true;
	sl_outlook_let_go(outlook, client->member, victim->held_bytes);
	emit_stop(node, client, SL_STOP_TERM);
}

static void want_proof(struct sl_outlook *outlook, const struct sl_victim *victim)
{
	struct sl_node_client *client =
		sl_node_find_client(outlook->node, victim->client);

	client->prove_mask |= 1u << outlook->gpu;
	outlook->node->queue[outlook->gpu].proves = true;
	outlook->node->probes_dirty = true;
}

/* The resolver `priority`. True if with those it stops the demand has what it lacks. */
static bool stop_others(
	struct sl_outlook *outlook, struct sl_demand *demand, uint64_t missing)
{
	struct sl_node *node = outlook->node;
	struct sl_node_queue *queue = &node->queue[outlook->gpu];
	sl_ns ripe = ripe_at(node, demand);
	uint32_t count, taken;

	if (!sl_node_has_priority(node) ||
		(!sl_outlook_is_entitled(outlook, demand) && queue->degraded))
		return false;
	if (node->now < ripe) {
		queue->resolve_at = sl_min_u64(queue->resolve_at, ripe);
		return false;
	}
	if (outlook->choices++ >= CHOICES_MOST)
		return false;
	count = sl_outlook_list_victims(outlook, demand, NULL);
	taken = sl_outlook_choose(outlook, demand, missing, count);
	for (uint32_t i = 0; i < count; i++) {
		if (node->victims[i].taken)
			stop(outlook, demand, &node->victims[i], node->victims[i].reason);
		if (node->victims[i].prove)
			want_proof(outlook, &node->victims[i]);
	}
	return taken > 0;
}

/* --- the last resort --- */

static bool stops_as_last_resort(const struct sl_node *node)
{
	return node->untakeable && node->last_resort == SL_LAST_RESORT_STOP;
}

/* Chooses the untakeable who must go; what others can give is left to them. Returns how many there
 * are to choose from, 0: all do not suffice. */
static uint32_t choose_untakeable(
	struct sl_outlook *outlook, struct sl_demand *demand, uint64_t missing)
{
	struct sl_node *node = outlook->node;
	struct sl_victims_ask ask = {
		.missing_bytes = missing, .entitled = true, .priority = INT32_MAX};
	uint32_t all = sl_outlook_list_victims(outlook, demand, NULL), count = 0,
		 workloads = 0;

	for (uint32_t i = 0; i < all; i++) {
		struct sl_victim victim = node->victims[i];

		if (!sl_node_find_client(node, victim.client)->untakeable)
			continue;
		/* All may go alike. Numbers stay dense: siblings stand side by side. */
		victim.priority = 0;
		if (count && node->victims[count - 1].gone_bytes != victim.workload)
			workloads++;
		victim.gone_bytes = victim.workload;
		victim.workload = workloads;
		node->victims[count++] = victim;
	}
	return sl_victims_choose(node->victims, count, &ask) ? count : 0;
}

static void stop_untakeable(
	struct sl_outlook *outlook, struct sl_demand *demand, uint32_t count)
{
	struct sl_node *node = outlook->node;

	for (uint32_t i = 0; i < count; i++) {
		if (node->victims[i].taken)
			stop(outlook, demand, &node->victims[i],
				SL_REASON_STOP_LAST_RESORT);
	}
}

/* What it has there is on its way, rather. */
static bool comes_back(const struct sl_node_member *member, uint32_t gpu)
{
	const struct sl_ledger_cell *cell = member ? &member->account.cell[gpu] : NULL;

	return cell && cell->returning_bytes > cell->backing_bytes - cell->evicted_bytes;
}

/*
 * An entitled demand lacks what only an untakeable borrower has: without it the others could not
 * give enough, with it they could. True if the demand was denied for it.
 */
static bool last_resort(
	struct sl_outlook *outlook, struct sl_demand *demand, uint64_t missing)
{
	struct sl_node *node = outlook->node;
	struct sl_outlook_borrowed all;

	if (!sl_outlook_is_entitled(outlook, demand) || !node->untakeable)
		return false;
	/* It lacks only what others before it are to get: first see whether they take it. */
	if (SL_MUTANT(RESORT_BEHIND_OTHERS,
		    (int64_t)demand->bytes <=
			    outlook->free_bytes + outlook->reserved_bytes,
		    false))
		return false;
	all = sl_outlook_borrowers(outlook, demand);
	if (SL_MUTANT(RESORT_TOO_EARLY, missing <= all.takeable_bytes, false) ||
		missing > all.takeable_bytes + all.untakeable_bytes)
		return false;
	if (node->last_resort == SL_LAST_RESORT_STOP) {
		stop_untakeable(outlook, demand,
			choose_untakeable(outlook, demand, missing - all.takeable_bytes));
		return false;
	}
	sl_node_deny_for(node, demand,
		comes_back(all.most, outlook->gpu) ? SL_REASON_RETURN_UNTAKEABLE
						   : SL_REASON_UNTAKEABLE,
		(struct sl_node_because){.other = all.most ? all.most->index.id : 0,
			.other_bytes = all.most_bytes});
	return true;
}

/* --- one GPU --- */

/* Why this burst demand ends now, or NONE. covered: the outlook has its bytes. */
static enum sl_reason ends_as(
	const struct sl_outlook *outlook, const struct sl_demand *demand, bool covered)
{
	const struct sl_node *node = outlook->node;
	bool degraded = node->queue[outlook->gpu].degraded;

	if (demand->entitled)
		return SL_REASON_NONE;
	if (node->now >= sl_node_wait_end(node, demand) &&
		!(covered && sl_outlook_is_coming(outlook)))
		return degraded ? SL_REASON_GPU_DEGRADED : SL_REASON_WAITED_TOO_LONG;
	if (SL_MUTANT(NO_WAIT_WAITS, sl_node_waits_at_all(node), true) || covered)
		return SL_REASON_NONE;
	return degraded ? SL_REASON_GPU_DEGRADED : SL_REASON_NO_RESOLVER;
}

/* A demand that is on its way out itself is worth nobody's stop. */
static bool is_worth_it(const struct sl_node *node, const struct sl_demand *demand)
{
	const struct sl_node_client *client = sl_node_client_of(demand);

	return !sl_node_is_going(client) && !sl_node_workload_is_going(client->member) &&
	       !sl_node_is_away(client);
}

/* Those that were told to end for it are to live, or leave it too little: it is one that others may
 * be moved for again. True if it was not before: then it is looked at before anything else becomes
 * of it. */
static bool is_ended_for_no_more(struct sl_node *node, struct sl_demand *demand)
{
	if (SL_MUTANT(ENDED_FOR_EVER, !demand->stops, true))
		return false;
	demand->stops = false;
	sl_node_touch(node, 1u << demand->gpu);
	sl_node_reconsider(node, 1u << demand->gpu);
	return SL_MUTANT(DENIED_UNLOOKED, true, false);
}

/* One demand's turn. True if it still lacks something, and those behind it are not helped. */
static bool resolve_one(
	struct sl_outlook *outlook, struct sl_demand *demand, bool blocked)
{
	/* Behind one that is not helped it matters only whether there is enough. */
	bool lacks = blocked && (int64_t)demand->bytes > outlook->free_bytes;
	int64_t room = lacks ? INT64_MIN : sl_outlook_room(outlook, demand);
	uint64_t missing = 0;
	bool covered;
	enum sl_reason reason;

	/* Others are moved to the host for it; nobody behind it is helped before. */
	if (demand->helped)
		return true;
	if (room < (int64_t)demand->bytes)
		missing = room == INT64_MIN ? demand->bytes
					    : (uint64_t)((int64_t)demand->bytes - room);
	covered = !missing || (!blocked && stop_others(outlook, demand, missing));
	if (!covered && is_ended_for_no_more(outlook->node, demand))
		return true;
	if (!covered && !blocked && last_resort(outlook, demand, missing))
		return false;
	reason = ends_as(outlook, demand, covered);
	if (reason != SL_REASON_NONE) {
		sl_node_deny(outlook->node, demand, reason);
		return false;
	}
	if (covered)
		sl_outlook_reserve(outlook, demand);
	return blocked || !covered;
}

static void forget_proofs(struct sl_node *node, uint32_t gpu)
{
	node->queue[gpu].proves = false;
	for (struct sl_index_node *at = sl_index_next(&node->clients, NULL); at;
		at = sl_index_next(&node->clients, at)) {
		struct sl_node_client *client = SL_NODE_ENTRY(at, sl_node_client);

		if (client->prove_mask >> gpu & 1)
			node->probes_dirty = true;
		client->prove_mask &= ~(1u << gpu);
	}
}

/* Also when the chain has `priority` no more, but somebody was told to end before. */
static bool has_something_to_do(
	const struct sl_node *node, const struct sl_node_queue *queue)
{
	return sl_node_has_priority(node) || !sl_node_waits_at_all(node) ||
	       node->untakeable || SL_MUTANT(ENDED_FOR_THE_CHAIN, queue->stops, false);
}

void sl_node_resolve(struct sl_node *node, uint32_t gpu)
{
	struct sl_node_queue *queue = &node->queue[gpu];
	struct sl_outlook outlook;
	bool blocked = false;

	node->resolve_mask &= ~(1u << gpu);
	queue->resolve_at = SL_NS_NEVER;
	if (queue->proves)
		forget_proofs(node, gpu);
	if (!queue->count || queue->lost || !has_something_to_do(node, queue))
		return;
	queue->stops = false;
	outlook = sl_outlook_look(node, gpu, NULL, false);
	sl_list_foreach_safe (link, &queue->waiting) {
		struct sl_demand *demand = SL_LIST_ENTRY(link, struct sl_demand, queue);

		queue->stops |= demand->stops;
		if (!is_worth_it(node, demand))
			continue;
		blocked = resolve_one(&outlook, demand, blocked);
	}
}

/* --- who wants back what is his --- */

/*
 * Who is to come back stands in no queue: who leaves for whom is decided in turns (node_turns.c).
 * But what `priority` lends of a request is lent since it can be taken back, and a full pool leaves
 * it to the next resolver. So it works for those within their requests for whom nobody can be
 * moved; what is above a request waits for its turn. Where even that does not help, the last resort
 * is there for them as for demands; but nothing of theirs can be failed.
 */

/* On all GPUs where something of it is on the host. What was lost with its GPU, nobody can give
 * back. */
static bool is_owed(const struct sl_node *node, const struct sl_node_client *client)
{
	const struct sl_ledger_account *account = &client->member->account;

	if (!sl_node_wants_back(client) || sl_node_is_going(client) ||
		sl_node_workload_is_going(client->member))
		return false;
	for (uint32_t left = client->is_out; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(left);

		if (sl_ledger_use(account, gpu) > sl_ledger_request(account, gpu) ||
			SL_MUTANT(RETURN_TO_THE_LOST, node->queue[gpu].lost, false))
			return false;
	}
	return true;
}

/* As if it asked for what is on the host. */
static struct sl_demand demand_of(struct sl_node_client *client, uint32_t gpu)
{
	const struct sl_ledger_cell *cell = &client->holding.cell[gpu];
	sl_ns since = sl_node_wants_since(client);

	return (struct sl_demand){.holding = &client->holding,
		.gpu = gpu,
		.bytes = cell->evicted_bytes - cell->returning_bytes,
		.priority = client->member->priority,
		.entitled = true,
		.arrived = since,
		.burst_since = since};
}

/* True if with those that may be stopped it has what it lacks on this GPU; stops them if it is
 * to. */
static bool take_back(struct sl_node *node, struct sl_node_client *client, uint32_t gpu,
	bool stops_them)
{
	struct sl_outlook outlook = sl_outlook_look(node, gpu, NULL, true);
	struct sl_demand demand = demand_of(client, gpu);
	int64_t room = sl_outlook_room(&outlook, &demand);
	sl_ns *resolve_at = &node->queue[gpu].resolve_at, before = *resolve_at;
	uint32_t count, taken;

	if (room >= (int64_t)demand.bytes)
		return true;
	*resolve_at = SL_NS_NEVER;
	count = sl_outlook_list_victims(&outlook, &demand, NULL);
	taken = sl_outlook_choose(
		&outlook, &demand, (uint64_t)((int64_t)demand.bytes - room), count);
	node->swap_due = sl_min_u64(node->swap_due, *resolve_at);
	*resolve_at = before;
	for (uint32_t i = 0; i < count; i++) {
		struct sl_victim *victim = &node->victims[i];

		if (victim->prove) {
			sl_node_find_client(node, victim->client)->asked_in = node->looks;
			node->asked++;
		}
		if (!victim->taken || !stops_them)
			continue;
		stop(&outlook, &demand, victim, victim->reason);
		/* What it lacks is coming now, and kept for it. */
		node->swap_dirty = true;
	}
	return taken > 0;
}

/* What others have above their requests and could be made to leave in turns: nothing of who is
 * never moved, nor what the host has no room for. */
static uint64_t movable_bytes(
	const struct sl_outlook *outlook, const struct sl_demand *demand)
{
	const struct sl_node *node = outlook->node;
	const struct sl_node_member *own = sl_node_client_of(demand)->member;
	uint64_t sum = 0;

	if (!sl_node_swaps(node))
		return 0;
	sl_list_foreach (at, &node->all_members) {
		const struct sl_node_member *member =
			SL_LIST_ENTRY(at, struct sl_node_member, of_node);
		uint64_t burst = sl_sub_sat(sl_outlook_use(outlook, member),
			sl_ledger_request(&member->account, outlook->gpu));
		uint64_t movable = 0;

		if (member == own)
			continue;
		sl_list_foreach (link, &member->clients) {
			const struct sl_node_client *client =
				SL_LIST_ENTRY(link, struct sl_node_client, of_member);

			if (!client->untakeable && sl_node_may_leave(node, client))
				movable += sl_ledger_evictable(
					&client->holding.cell[outlook->gpu]);
		}
		sum += sl_min_u64(
			sl_min_u64(burst, movable), sl_node_pool_share(node, member));
	}
	return sl_min_u64(sum, sl_node_pool_there(node));
}

/* The same of what only untakeable borrowers have, whatever is in the chain. */
static bool wrest_back(struct sl_node *node, struct sl_node_client *client, uint32_t gpu,
	bool stops_them)
{
	struct sl_outlook outlook = sl_outlook_look(node, gpu, NULL, true);
	struct sl_demand demand = demand_of(client, gpu);
	int64_t room = sl_outlook_room(&outlook, &demand);
	sl_ns *resolve_at = &node->queue[gpu].resolve_at, before = *resolve_at;
	uint64_t movable = movable_bytes(&outlook, &demand), missing;
	uint32_t count;

	/* That is taken in turns. */
	if (room + (int64_t)movable >= (int64_t)demand.bytes)
		return true;
	missing = (uint64_t)((int64_t)demand.bytes - room) - movable;
	*resolve_at = SL_NS_NEVER;
	count = choose_untakeable(&outlook, &demand, missing);
	node->swap_due = sl_min_u64(node->swap_due, *resolve_at);
	*resolve_at = before;
	if (count && stops_them) {
		stop_untakeable(&outlook, &demand, count);
		node->swap_dirty = true;
	}
	return count > 0;
}

typedef bool (*take_fn)(struct sl_node *node, struct sl_node_client *client, uint32_t gpu,
	bool stops_them);

/* On all its GPUs, or nobody. True if it will have what it lacks. */
static bool take_on_all(struct sl_node *node, struct sl_node_client *client, take_fn take)
{
	bool suffices = true;

	for (uint32_t left = client->is_out; left; left &= left - 1)
		suffices &= take(node, client, (uint32_t)__builtin_ctz(left), false);
	for (uint32_t left = SL_MUTANT(RETURN_STOPS_IN_VAIN, suffices, true)
				     ? client->is_out
				     : 0;
		left; left &= left - 1)
		(void)take(node, client, (uint32_t)__builtin_ctz(left), true);
	return suffices;
}

static bool has_priority_for(struct sl_node *node, struct sl_node_client *client)
{
	struct sl_demand any = demand_of(client, (uint32_t)__builtin_ctz(client->is_out));
	sl_ns ripe = ripe_at(node, &any);

	if (!sl_node_has_priority(node) || node->now >= ripe)
		return sl_node_has_priority(node);
	node->swap_due = sl_min_u64(node->swap_due, ripe);
	return false;
}

static void help_back(struct sl_node *node, struct sl_node_client *client)
{
	if (has_priority_for(node, client) && take_on_all(node, client, take_back))
		return;
	if (SL_MUTANT(RETURN_HAS_NO_RESORT, stops_as_last_resort(node), false))
		(void)take_on_all(node, client, wrest_back);
}

/* It has waited for long: whether those in its way can be taken from has to be seen. */
static void press_for(struct sl_node *node, const struct sl_node_client *client)
{
	sl_ns at = sl_node_later(sl_node_wants_since(client), SL_NODE_NOTE_AFTER);

	if (node->now < at)
		node->swap_due = sl_min_u64(node->swap_due, at);
	else
		node->owed_mask |= client->is_out;
}

void sl_node_resolve_returns(struct sl_node *node)
{
	bool helps = sl_node_has_priority(node) || stops_as_last_resort(node);
	uint32_t choices = 0, was_owed = node->owed_mask;

	node->owed_mask = 0;
	sl_list_foreach (link, &node->out) {
		struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_out);

		if (client->unhelped_in != node->looks ||
			SL_MUTANT(RESORT_FOR_BURSTS, !is_owed(node, client), false))
			continue;
		press_for(node, client);
		/* A part of it is coming: what it lacks then is known once that is there. */
		if (SL_MUTANT(RETURNS_UNRESOLVED, helps, false) && !client->order.id &&
			choices++ < CHOICES_MOST)
			help_back(node, client);
	}
	node->probes_dirty |= was_owed != node->owed_mask;
}

/* --- the grace is over --- */

/* It alone would do, or it is among those that would. */
static bool is_one_of_those(struct sl_outlook *outlook, const struct sl_demand *demand,
	uint64_t missing, const struct sl_node_client *client)
{
	struct sl_node *node = outlook->node;
	uint32_t count = sl_outlook_list_victims(outlook, demand, client);

	if (sl_outlook_choose(outlook, demand, missing, count))
		return true;
	count = sl_outlook_list_victims(outlook, demand, NULL);
	(void)sl_outlook_choose(outlook, demand, missing, count);
	for (uint32_t i = 0; i < count; i++) {
		if (node->victims[i].client == client->index.id)
			return node->victims[i].taken;
	}
	return false;
}

/* missing: beyond what others can give. */
static bool is_last_resort_for(struct sl_outlook *outlook, const struct sl_demand *demand,
	int64_t missing, const struct sl_node_client *client)
{
	if (!sl_outlook_is_entitled(outlook, demand) || !client->untakeable ||
		demand->holding->account == &client->member->account)
		return false;
	return missing > 0 &&
	       sl_outlook_use(outlook, client->member) >
		       sl_ledger_request(&client->member->account, outlook->gpu);
}

/* Somebody who waits lacks what this one is to free, and could still have it stopped for that. */
static bool is_needed(struct sl_node *node, const struct sl_node_client *client)
{
	uint32_t gpu = client->stop.gpu;
	struct sl_outlook outlook = sl_outlook_look(node, gpu, client, false);

	sl_list_foreach (link, &node->queue[gpu].waiting) {
		const struct sl_demand *demand =
			SL_LIST_ENTRY(link, struct sl_demand, queue);
		int64_t room = sl_outlook_room(&outlook, demand);

		if (!is_worth_it(node, demand))
			continue;
		if (room >= (int64_t)demand->bytes) {
			sl_outlook_reserve(&outlook, demand);
			continue;
		}
		if (room == INT64_MIN)
			return false;
		if (client->stop.reason == SL_REASON_STOP_LAST_RESORT)
			return is_last_resort_for(&outlook, demand,
				(int64_t)demand->bytes - room -
					(int64_t)sl_outlook_borrowers(&outlook, demand)
						.takeable_bytes,
				client);
		return node->now >= ripe_at(node, demand) &&
		       is_one_of_those(&outlook, demand,
			       (uint64_t)((int64_t)demand->bytes - room), client);
	}
	return false;
}

/* For one who wants back what is his it is still the one that is to end. */
static bool is_due_for(struct sl_outlook *outlook, const struct sl_demand *demand,
	uint64_t missing, const struct sl_node_client *client)
{
	struct sl_node *node = outlook->node;

	if (client->stop.reason == SL_REASON_STOP_LAST_RESORT)
		return is_last_resort_for(outlook, demand,
			(int64_t)(missing - movable_bytes(outlook, demand)), client);
	return sl_node_has_priority(node) && node->now >= ripe_at(node, demand) &&
	       is_one_of_those(outlook, demand, missing, client);
}

/* The same of somebody who wants back what is his. */
static bool is_needed_back(struct sl_node *node, const struct sl_node_client *client)
{
	uint32_t gpu = client->stop.gpu;
	struct sl_outlook outlook = sl_outlook_look(node, gpu, client, true);

	sl_list_foreach (link, &node->out) {
		struct sl_node_client *own =
			SL_LIST_ENTRY(link, struct sl_node_client, of_out);
		struct sl_demand demand = demand_of(own, gpu);
		int64_t room;

		if (!demand.bytes || !is_owed(node, own))
			continue;
		room = sl_outlook_room(&outlook, &demand);
		if (room >= (int64_t)demand.bytes)
			sl_outlook_reserve(&outlook, &demand);
		else if (is_due_for(&outlook, &demand,
				 (uint64_t)((int64_t)demand.bytes - room), client))
			return true;
	}
	return false;
}

void sl_node_stop_ended(struct sl_node *node, struct sl_node_client *client)
{
	sl_list_unlink(&client->of_stops);
	client->stopping = SL_NODE_LIVES;
	node->books++;
	sl_node_reconsider(node, client->holding.touched);
}

static void revoke(struct sl_node *node, struct sl_node_client *client)
{
	client->stop.reason = SL_REASON_STOP_REVOKED;
	client->spared_until = sl_node_later(node->now, SPARED_FOR);
	sl_node_note_because(node, &client->stop);
	sl_node_stop_ended(node, client);
	/* It may count as waiting again. */
	node->timers_dirty = node->deadlock_dirty = true;
}

/* The demand is worked for anew, without this one; who counted as going may wait again. */
void sl_node_on_stop_failed(struct sl_node *node, const struct sl_event *event)
{
	struct sl_node_client *client =
		sl_node_find_client(node, event->stop_failed.client);

	/* It may have been let off, or have ended, meanwhile. */
	if (!client || SL_MUTANT(FAILED_STOP_COUNTS, !sl_node_is_going(client), true))
		return;
	sl_node_stop_ended(node, client);
	client->stopping = SL_NODE_UNREACHED;
	client->stop_due = sl_node_later(node->now, TRIED_AGAIN_AFTER);
	sl_list_push_tail(&node->unreached, &client->of_stops);
	node->timers_dirty = node->deadlock_dirty = true;
}

static void grace_is_over(struct sl_node *node, struct sl_node_client *client)
{
	if (client->stopping == SL_NODE_KILLED) {
		sl_node_stop_ended(node, client);
		client->stopping = SL_NODE_STUBBORN;
		node->timers_dirty = node->deadlock_dirty = true;
		return;
	}
	if (!SL_MUTANT(KILLS_THE_UNNEEDED,
		    is_needed(node, client) || is_needed_back(node, client), true)) {
		revoke(node, client);
		return;
	}
	client->stopping = SL_NODE_KILLED;
	client->stop_due = sl_node_later(node->now, SL_OUTLOOK_STUBBORN_AFTER);
	emit_stop(node, client, SL_STOP_KILL);
}

sl_ns sl_node_time_victims(struct sl_node *node)
{
	sl_ns next = SL_NS_NEVER;

	sl_list_foreach_safe (link, &node->stops) {
		struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_stops);

		if (node->now >= client->stop_due)
			grace_is_over(node, client);
		if (sl_list_is_linked(&client->of_stops))
			next = sl_min_u64(next, client->stop_due);
	}
	sl_list_foreach_safe (link, &node->unreached) {
		struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_stops);

		if (node->now >= client->stop_due)
			sl_node_stop_ended(node, client);
		else
			next = sl_min_u64(next, client->stop_due);
	}
	return next;
}
