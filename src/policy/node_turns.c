/*
 * node_turns - who comes back, who leaves for whom
 *
 * One look goes through everybody who lacks memory, in the order of service (verdicts/turns.h):
 * clients with something on the host that want to run (or are to), and waiting demands. Who fits in
 * what is free beyond what is reserved for those before him comes back at once. Who does not has
 * bytes reserved that are on their way, or has others moved out for him (node_look.c), or waits
 * until that may be done. Whom nothing can help keeps nobody from anything.
 *
 * Demands are granted by their queues (node_settle.c), which leave to those who come back what is
 * reserved for them (kept_bytes).
 */
#include <stdlib.h>
#include <string.h>

#include "policy/mutant.h"
#include "policy/node_look.h"

/* --- who lacks memory --- */

bool sl_node_can_come_back(const struct sl_node_client *client)
{
	return SL_MUTANT(
		STOPPED_COMES_BACK, client->condition == SL_CONDITION_RUNNING, true);
}

bool sl_node_wants_back(const struct sl_node_client *client)
{
	return client->alive && client->is_out && !client->reports && !client->expected &&
	       !SL_MUTANT(PARKED_COMES_BACK, client->member->parked, false) &&
	       sl_node_can_come_back(client) &&
	       (client->wants || client->waiting || client->comes_back);
}

sl_ns sl_node_wants_since(const struct sl_node_client *client)
{
	sl_ns since =
		client->wants || client->comes_back ? client->wants_since : SL_NS_NEVER;

	sl_list_foreach (link, &client->party.demands) {
		const struct sl_demand *demand =
			SL_LIST_ENTRY(link, struct sl_demand, of_client);

		if (!demand->epoch)
			since = sl_min_u64(since, demand->arrived);
	}
	return since;
}

/* With what this client asks for all of its workload, wherever it is, is within its request. */
static bool is_entitled(const struct sl_node_client *client, uint32_t gpus)
{
	const struct sl_ledger_account *account = &client->member->account;

	sl_look_each_gpu(gpu, gpus)
	{
		if (sl_ledger_use(account, gpu) + sl_look_asks(client, gpu) >
			sl_ledger_request(account, gpu))
			return false;
	}
	return true;
}

static struct sl_node_unit *new_unit(struct sl_look *look)
{
	struct sl_node *node = look->node;

	if (look->count == node->units_room) {
		uint32_t room = node->units_room ? node->units_room * 2 : 64;
		struct sl_node_unit *more =
			sl_arena_take(node->arena, room * sizeof(*more));

		if (look->count)
			memcpy(more, node->units, look->count * sizeof(*more));
		node->units = more;
		node->units_room = room;
	}
	return &node->units[look->count++];
}

static bool is_leaving(const struct sl_node_client *client)
{
	return client->order.id &&
	       SL_MUTANT(PART_FORGETS_REST, !client->order.restores, true);
}

static void list_wants(struct sl_look *look)
{
	sl_list_foreach (link, &look->node->out) {
		struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_out);
		uint32_t gpus = client->is_out;

		/* Of whom a part is on its way back, the rest is needed all the same. */
		if (!client->returns &&
			(!sl_node_wants_back(client) || is_leaving(client)))
			continue;
		sl_list_foreach (at, &client->party.demands)
			gpus |= 1u << SL_LIST_ENTRY(at, struct sl_demand, of_client)->gpu;
		*new_unit(look) = (struct sl_node_unit){.client = client,
			.gpus = gpus,
			.coming = client->returns,
			.first = SL_MUTANT(EXCHANGE_LEFT, client->is_exchanged, false),
			.place = {.entitled = SL_MUTANT(RETURN_NOT_ENTITLED,
						      is_entitled(client, gpus), false) &&
					      !sl_node_is_behind(look->node, client),
				.promoted = client->member->promoted,
				.priority = client->member->priority,
				.since = sl_node_wants_since(client),
				.tie = client->index.id << 1}};
	}
}

static struct sl_turns_place place_of(const struct sl_demand *demand)
{
	return (struct sl_turns_place){.entitled = demand->entitled,
		.promoted = sl_node_client_of(demand)->member->promoted,
		.priority = demand->priority,
		.since = demand->grows ? 0 : demand->arrived,
		.tie = demand->sequence << 1 | 1};
}

/* Turns begin and end, and with them the places of what is asked for in them. */
static void rank_demands(struct sl_node *node, uint32_t gpu)
{
	struct sl_node_queue *queue = &node->queue[gpu];

	/* Ends: a demand that was moved back in the queue is met again, and stays there. */
	sl_list_foreach_safe (link, &queue->waiting) {
		struct sl_demand *demand = SL_LIST_ENTRY(link, struct sl_demand, queue);
		bool grows = SL_MUTANT(GROWS_BY_TURNS,
			!demand->entitled &&
				sl_node_is_growing(node, sl_node_client_of(demand)),
			false);

		if (grows == demand->grows)
			continue;
		demand->grows = grows;
		sl_list_unlink(link);
		sl_demand_enqueue(&queue->waiting, demand);
		node->dirty_mask |= 1u << gpu;
	}
}

static void list_demands(struct sl_look *look)
{
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		rank_demands(look->node, gpu);
		sl_list_foreach (link, &look->node->queue[gpu].waiting) {
			struct sl_demand *demand =
				SL_LIST_ENTRY(link, struct sl_demand, queue);
			struct sl_node_client *client = sl_node_client_of(demand);

			bool was_helped = demand->helped, was_moving = demand->moving;

			demand->helped = demand->moving = false;
			/* What was found for it says nothing of when it is back. */
			if (sl_node_is_away(client))
				demand->retried =
					SL_MUTANT(LAST_LOOK_KEPT, false, demand->retried);
			if (sl_node_is_away(client) || demand->there ||
				sl_node_is_going(client)) {
				if (was_moving)
					sl_node_moves_no_more(look->node, demand);
				continue;
			}
			*new_unit(look) = (struct sl_node_unit){.client = client,
				.demand = demand,
				.was_helped = was_helped,
				.was_moving = was_moving,
				.gpus = 1u << gpu,
				.place = place_of(demand)};
		}
	}
}

static int compare(const void *left, const void *right)
{
	const struct sl_node_unit *a = left, *b = right;

	if (a->first != b->first)
		return a->first ? -1 : 1;
	return sl_turns_is_before(&a->place, &b->place) ? -1 : 1;
}

/* --- room --- */

static void reserve(struct sl_look *look, const struct sl_node_unit *unit)
{
	sl_look_each_gpu(gpu, unit->gpus)
	{
		struct sl_node_queue *queue = &look->node->queue[gpu];
		uint64_t need = sl_look_need(unit, gpu);

		look->free_bytes[gpu] -= (int64_t)need;
		if (unit->demand || !need)
			continue;
		if (unit->first) {
			queue->exchange_bytes += need;
			continue;
		}
		if (!queue->kept_bytes)
			queue->kept_from = unit->place;
		queue->kept_bytes += need;
	}
}

uint64_t sl_node_kept_from(const struct sl_node *node, const struct sl_demand *demand)
{
	const struct sl_node_queue *queue = &node->queue[demand->gpu];
	const struct sl_node_client *client = sl_node_client_of(demand);
	struct sl_turns_place place = place_of(demand);

	if (sl_node_is_away(client))
		return UINT64_MAX;
	if (!queue->kept_bytes || sl_turns_is_before(&place, &queue->kept_from))
		return queue->exchange_bytes;
	return SL_MUTANT(KEPT_FROM_NOBODY, queue->kept_bytes + queue->exchange_bytes, 0);
}

/* --- min_share --- */

/* Since when its workload waits for its share. What it asks for, perhaps in vain, may have waited
 * since before its last turn of min_share, which others of the workload had: one turn is not one
 * after the other. */
static sl_ns share_since(const struct sl_node_unit *unit)
{
	return unit->demand ? sl_max_u64(unit->place.since,
				      SL_MUTANT(MIN_SHARE_AGAIN,
					      unit->client->member->share_ended, 0))
			    : unit->place.since;
}

/* A lower priority that has waited for long enough comes before all others, for one turn. */
static void promote(struct sl_look *look, const struct sl_node_unit *unit)
{
	struct sl_node *node = look->node;
	struct sl_node_member *member = unit->client->member;
	sl_ns at;

	if (member->promoted || !sl_node_swaps(node) ||
		(unit->demand && unit->demand->entitled))
		return;
	if (!sl_node_is_below_others(node, member))
		return;
	at = sl_node_later(share_since(unit),
		sl_turns_patience(sl_node_turn_of(node, member), node->min_share_pm));
	/* A burst demand is refused then; rather it has its turn. */
	if (unit->demand)
		at = sl_min_u64(at, sl_node_wait_end(node, unit->demand));
	/* The one before ended at this instant, since another of its clients wants back that was
	 * moved in it: the two would end and begin each other without end. */
	if (member->share_ended == node->now)
		at = sl_max_u64(at, node->now + 1);
	if (SL_MUTANT(NO_MIN_SHARE, node->now < at, true)) {
		node->swap_due =
			sl_min_u64(node->swap_due, sl_max_u64(at, node->now + 1));
		return;
	}
	member->promoted = true;
	node->promotions++;
	member->promoted_at = node->now;
	if (unit->demand)
		unit->demand->helped = true; /* by the next look, which is due at once */
	/* The order is another one now, also for those of its demands that left what is free to
	 * others. */
	sl_node_touch(node, unit->gpus);
}

/* --- one after the other --- */

/* It fits, and leaves that to the head of its queue, which nothing helps: what it will not have is
 * kept from nobody behind it. */
static bool yields_in_vain(const struct sl_look *look, const struct sl_node_unit *unit)
{
	const struct sl_node *node = look->node;
	const struct sl_demand *head;

	if (!unit->demand || !(look->vain & unit->gpus))
		return false;
	head = node->queue[unit->demand->gpu].head;
	return head && head != unit->demand &&
	       sl_demand_yields(unit->demand, head, node->now - head->head_since,
		       node->head_pass, sl_node_has_priority(node));
}

static enum sl_look_outcome serve(
	struct sl_look *look, const struct sl_node_unit *unit, uint32_t place)
{
	struct sl_node *node = look->node;

	if (unit->coming) {
		sl_node_expect_back(node, unit->client);
		return SL_LOOK_MOVING;
	}
	if (sl_look_fits(look, unit, false)) {
		/* The rest of it comes as soon as the part is there. */
		if (!unit->demand && unit->client->order.id)
			return SL_LOOK_MOVING;
		if (unit->demand || node->now >= unit->client->restore_at)
			return SL_LOOK_SERVED;
		node->swap_due = sl_min_u64(node->swap_due, unit->client->restore_at);
		return SL_LOOK_MOVING;
	}
	if (sl_look_fits(look, unit, true))
		return SL_LOOK_MOVING;
	if (sl_node_swaps(node))
		return sl_look_make_room(look, unit, place);
	/* Nobody can be moved: as the head of a queue, it is passed for a while. */
	if (unit->demand)
		return SL_LOOK_NEVER;
	if (unit->place.entitled || node->now - unit->place.since >= node->head_pass)
		return SL_LOOK_LATER;
	node->swap_due = sl_min_u64(
		node->swap_due, sl_node_later(unit->place.since, node->head_pass));
	return SL_LOOK_NEVER;
}

static void bring_back(struct sl_look *look, const struct sl_node_unit *unit)
{
	sl_look_each_gpu(gpu, unit->gpus) look->free_bytes[gpu] -=
		(int64_t)sl_look_need(unit, gpu);
	unit->client->pool_told = false;
	sl_node_bring_back(look->node, unit->client);
}

/* Of what it needs a part has come and the rest is on its way: it does not wait for all of it. */
static void bring_part(struct sl_look *look, const struct sl_node_unit *unit)
{
	uint32_t gpu = (uint32_t)__builtin_ctz(unit->gpus);
	uint64_t bytes;

	/* Of several GPUs it is kept from none before there is room on all of them. */
	if (unit->demand || unit->coming || !(look->flowing >> gpu & 1) ||
		SL_MUTANT(PART_OF_SEVERAL, (unit->gpus & (unit->gpus - 1)) != 0, false))
		return;
	bytes = sl_node_part(look->node, unit->client, gpu, look->free_bytes[gpu]);
	if (!bytes)
		return;
	look->free_bytes[gpu] -= (int64_t)bytes;
	sl_node_bring_part(look->node, unit->client, gpu, bytes);
}

/* --- one of them --- */

/* Helpless is of whom nothing is helped: the first of its places says so, unless another is. */
static void note_help(const struct sl_look *look, const struct sl_node_unit *unit,
	uint32_t place, bool is_helped)
{
	if (is_helped)
		unit->client->helpless_in = 0;
	else if (unit->client->place == place)
		unit->client->helpless_in = look->node->looks;
}

/* Processes were told to end for it, which is the resolvers' affair. What it gets of that is for
 * nobody behind it: who came back with it would be the next one to be ended. */
static void leave_what_ends(
	struct sl_look *look, const struct sl_node_unit *unit, uint32_t place)
{
	bool is_coming = sl_look_fits(look, unit, true);

	note_help(look, unit, place, is_coming);
	if (SL_MUTANT(RETURN_TAKES_ENDED, !is_coming, true))
		return;
	if (!sl_look_fits(look, unit, false))
		look->lacking |= unit->gpus;
	reserve(look, unit);
}

/* With what it asks for, or else without. */
static enum sl_look_outcome try_to_serve(
	struct sl_look *look, struct sl_node_unit *unit, uint32_t place)
{
	enum sl_look_outcome outcome = serve(look, unit, place);

	if (unit->first && outcome != SL_LOOK_MOVING && outcome != SL_LOOK_SERVED) {
		/* Who was to leave for it fails: the others are looked at again, in their order. */
		unit->client->is_exchanged = false;
		look->node->swap_dirty = true;
	}
	if (outcome == SL_LOOK_NEVER && !unit->demand && unit->client->waiting &&
		SL_MUTANT(NEVER_WITHOUT_ASKS, true, false)) {
		unit->bare = true;
		outcome = serve(look, unit, place);
	}
	return outcome;
}

static void tell_demand(struct sl_look *look, const struct sl_node_unit *unit,
	enum sl_look_outcome outcome)
{
	struct sl_demand *demand = unit->demand;

	if (outcome == SL_LOOK_NEVER && demand == look->node->queue[demand->gpu].head)
		look->vain |= unit->gpus;
	demand->helped = outcome != SL_LOOK_NEVER && outcome != SL_LOOK_SERVED;
	demand->moving = outcome == SL_LOOK_MOVING;
	if (!unit->was_helped || demand->helped)
		return;
	/* Its longest wait may be over. */
	look->node->timers_dirty = true;
	sl_node_reconsider(look->node, unit->gpus);
}

/* What it gets, or counts on, is taken off what there is for those behind it. */
static void settle(struct sl_look *look, const struct sl_node_unit *unit,
	enum sl_look_outcome outcome)
{
	switch (outcome) {
	case SL_LOOK_SERVED:
		if (!unit->demand)
			bring_back(look, unit);
		else if (SL_MUTANT(YIELDS_AND_KEEPS, !yields_in_vain(look, unit), true))
			reserve(look, unit);
		break;
	case SL_LOOK_MOVING:
		bring_part(look, unit);
		reserve(look, unit);
		look->lacking |= unit->gpus;
		break;
	case SL_LOOK_LATER:
		reserve(look, unit);
		look->lacking |= unit->gpus;
		look->blocked |= unit->gpus;
		promote(look, unit);
		break;
	case SL_LOOK_BEHIND:
	case SL_LOOK_NEVER: promote(look, unit); break;
	}
}

static void look_at(struct sl_look *look, struct sl_node_unit *unit, uint32_t place)
{
	struct sl_node_client *client = unit->client;
	enum sl_look_outcome outcome;

	client->pool_lacks.reason = SL_REASON_NONE;
	/* It was told to leave for somebody before it. */
	if (!unit->coming &&
		(is_leaving(client) || (unit->demand && sl_node_is_away(client))))
		return;
	if (unit->demand && unit->demand->stops) {
		leave_what_ends(look, unit, place);
		return;
	}
	outcome = try_to_serve(look, unit, place);
	/* One that does not answer is waited for by nobody. */
	if (unit->first && client->is_exchanged &&
		sl_node_may_leave(look->node, client)) {
		look->first |= unit->gpus;
		look->first_bursts |= unit->place.entitled ? 0 : unit->gpus;
	}
	if (unit->demand)
		tell_demand(look, unit, outcome);
	else if (outcome == SL_LOOK_NEVER ||
		 (outcome == SL_LOOK_LATER && !sl_node_swaps(look->node)))
		client->unhelped_in = look->node->looks;
	note_help(look, unit, place, outcome != SL_LOOK_NEVER);
	settle(look, unit, outcome);
}

/* --- around it --- */

/* Who it leaves for has what it lacked, and asks for more in a moment. */
static bool runs_ahead(const struct sl_node *node, const struct sl_node_order *order)
{
	const struct sl_node_client *lacker =
		order->ahead ? sl_node_find_client(node, order->lacker) : NULL;

	return lacker && lacker->alive && sl_node_is_growing(node, lacker);
}

/* Nobody needs any more what they were told to move. */
static void abort_the_unneeded(struct sl_look *look)
{
	sl_list_foreach (link, &look->node->out) {
		struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_out);

		if (client->order.id && !client->order.restores &&
			client->order.reason == SL_REASON_EVICTED_FOR &&
			!(look->lacking >> client->order.gpu & 1) &&
			!runs_ahead(look->node, &client->order))
			sl_node_abort(look->node, client);
	}
}

/* Somebody counts on what others were told to leave, whoever that was for: it has to be seen
 * whether they go on. */
static void watch_who_leaves(const struct sl_look *look)
{
	sl_list_foreach (link, &look->node->out) {
		const struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_out);

		if (client->order.id && !client->order.restores &&
			look->lacking >> client->order.gpu & 1)
			look->node->contended = true;
	}
}

/* Who does not want to come back any more is in nobody's way. */
static void end_exchanges(struct sl_look *look)
{
	sl_list_foreach (link, &look->node->out) {
		struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_out);

		if (client->seen_in != look->node->looks)
			client->is_exchanged = false;
	}
}

/* What a GPU's demands leave to others. */
struct kept {
	uint64_t bytes, exchange_bytes;
	struct sl_turns_place from;
	bool for_head; /* others are moved for it */
};

static bool is_head_moving(const struct sl_node_queue *queue)
{
	return queue->head && queue->head->moving;
}

static struct kept forget_kept(struct sl_node_queue *queue)
{
	struct kept kept = {.bytes = queue->kept_bytes,
		.exchange_bytes = queue->exchange_bytes,
		.from = queue->kept_from,
		.for_head = is_head_moving(queue)};

	queue->kept_bytes = queue->exchange_bytes = 0;
	return kept;
}

/* Also the same bytes for somebody else keep others from them. */
static bool is_kept_the_same(const struct sl_node_queue *queue, const struct kept *before)
{
	const struct sl_turns_place *from = &queue->kept_from;

	/* It keeps bytes only while it is helped. */
	if (before->for_head && !is_head_moving(queue))
		return false;
	return queue->kept_bytes == before->bytes &&
	       queue->exchange_bytes == before->exchange_bytes &&
	       (!before->bytes || (!sl_turns_is_before(from, &before->from) &&
					  !sl_turns_is_before(&before->from, from)));
}

/* Demands that were held back by what was kept before are looked at again. */
static void tell_kept(struct sl_node *node, const struct kept *before)
{
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		if (node->queue[gpu].count &&
			!is_kept_the_same(&node->queue[gpu], &before[gpu]))
			sl_node_touch(node, 1u << gpu);
	}
}

/* In their order; each client knows the first of its places. */
static void put_in_order(struct sl_look *look)
{
	struct sl_node *node = look->node;

	qsort(node->units, look->count, sizeof(*node->units), compare);
	for (uint32_t i = look->count; i-- > 0;) {
		node->units[i].client->seen_in = node->looks;
		node->units[i].client->place = i;
	}
}

/* There are no looks any more that would say so of each: others may act for them, or end them. */
static void help_nobody(struct sl_node *node)
{
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		sl_list_foreach (link, &node->queue[gpu].waiting) {
			struct sl_demand *demand =
				SL_LIST_ENTRY(link, struct sl_demand, queue);

			demand->helped = demand->moving = false;
		}
		if (node->queue[gpu].count || node->queue[gpu].proves)
			sl_node_reconsider(node, 1u << gpu);
	}
	/* Who goes warm gave way to them. */
	node->timers_dirty = node->swap_dirty = true;
}

static void go_through(struct sl_look *look)
{
	struct sl_node *node = look->node;
	bool looks = !sl_list_is_empty(&node->out) || sl_node_swaps(node);

	if (looks) {
		list_wants(look);
		list_demands(look);
	} else if (SL_MUTANT(HELPED_FOR_EVER, node->looked, false)) {
		help_nobody(node);
	}
	node->looked = looks;
	if (!look->count) {
		node->contended = false;
		return;
	}
	put_in_order(look);
	sl_look_count_coming(look);
	look->flowing = sl_node_flowing(node);
	for (uint32_t i = 0; i < look->count; i++) {
		const struct sl_node_unit *unit = &node->units[i];

		look_at(look, &node->units[i], i);
		if (unit->demand && unit->was_moving && !unit->demand->moving)
			sl_node_moves_no_more(node, unit->demand);
	}
	sl_look_take_back(look, 0);
}

void sl_node_take_turns(struct sl_node *node)
{
	struct sl_look look = {.node = node};
	struct kept kept_before[SL_NODE_GPUS_MAX];
	bool was_contended = node->contended;
	uint32_t asked_before = node->asked;

	node->swap_dirty = false;
	node->swap_due = SL_NS_NEVER;
	node->looks++;
	node->asked = 0;
	/* Demands of whose request is claimed again are entitled now: who fits is served before
	 * anybody leaves. */
	if (sl_node_time_parked(node)) {
		node->asked = asked_before;
		node->swap_dirty = true;
		return;
	}
	sl_node_time_warm(node);
	sl_node_end_promotions(node);
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++)
		kept_before[gpu] = forget_kept(&node->queue[gpu]);
	go_through(&look);
	end_exchanges(&look);
	abort_the_unneeded(&look);
	watch_who_leaves(&look);
	sl_node_resolve_returns(node);
	tell_kept(node, kept_before);
	if (node->asked || asked_before || was_contended != node->contended)
		node->probes_dirty = true;
	if (node->retimes)
		node->timers_dirty = true;
	node->retimes = false;
}
