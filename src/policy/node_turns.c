/*
 * node_turns - who comes back, who leaves for whom
 *
 * One look goes through everybody who lacks memory, in the order of service (verdicts/turns.h): clients with
 * something on the host that want to run (or are to), and waiting demands. Who fits in what is free beyond what is
 * reserved for those before him comes back at once. Who does not has bytes reserved that are on their way, or
 * has others moved out for him (verdicts/evict.h), or waits until that may be done. Whom nothing can help keeps
 * nobody from anything.
 *
 * Demands are granted by their queues (node_settle.c), which leave to those who come back what is reserved for
 * them (kept_bytes).
 */
#include <stdlib.h>
#include <string.h>

#include "policy/mutant.h"
#include "policy/node_state.h"

struct sl_node_unit {
	struct sl_turns_place place;
	struct sl_node_client *client;
	struct sl_demand *demand; /* NULL: it wants to come back */
	uint32_t gpus;            /* on which it needs something */
	bool coming;              /* is being restored; only its demands need something */
	bool first; /* its exchange is under way, and is finished before others */
	bool was_helped;
	bool bare; /* what it asks for is left out: there may never be room for it */
};

enum outcome {
	SERVED, /* it has, or is being given, what it needs */
	MOVING, /* what it needs is on its way */
	LATER,  /* others may be moved for it later */
	BEHIND, /* others are to be helped first */
	NEVER   /* nothing that is known of helps */
};

/* One look. free_bytes, coming_bytes: not reserved yet; below 0: reserved from what is coming, or not there. */
struct look {
	struct sl_node *node;
	int64_t free_bytes[SL_NODE_GPUS_MAX], coming_bytes[SL_NODE_GPUS_MAX];
	uint32_t blocked; /* GPUs on which somebody waits until others may be moved */
	uint32_t lacking; /* GPUs of which somebody needs what is on its way */
	uint32_t flowing; /* GPUs of which a part of that has come; see node_pieces.c */
	uint32_t count, choices;
	uint32_t promised; /* of node->promises, until the end of the look */
};

/* Bytes that are to leave a GPU as soon as their client is gone from another. They are counted as if it had been told to
 * leave them, so that what is planned for one GPU has no room in the pool that another one needs. */
struct sl_node_promise {
	struct sl_node_client *client;
	uint32_t gpu;
	uint64_t bytes;
};

/* Looks for those who could leave: each costs a walk over all clients. Those in vain count a quarter: who cannot be
 * helped (the pool is full, nobody may leave) is not to keep those behind it from being looked at. */
#define CHOICES_MOST 64
#define CHOICE       4

#define for_each_gpu(gpu, mask)                                                      \
	for (uint32_t gpu##_left_ = (mask), gpu;                                     \
		gpu##_left_ && ((gpu = (uint32_t)__builtin_ctz(gpu##_left_)), true); \
		gpu##_left_ &= gpu##_left_ - 1)

/* --- who lacks memory --- */

static uint64_t asks_of(const struct sl_node_client *client, uint32_t gpu)
{
	uint64_t bytes = 0;

	sl_list_foreach (link, &client->party.demands) {
		const struct sl_demand *demand =
			SL_LIST_ENTRY(link, struct sl_demand, of_client);

		if (!demand->epoch && demand->gpu == gpu)
			bytes += sl_min_u64(demand->bytes, SL_LEDGER_BYTES_MAX);
	}
	return bytes;
}

static uint64_t need_of(const struct sl_node_unit *unit, uint32_t gpu)
{
	if (unit->demand)
		return sl_min_u64(unit->demand->bytes, SL_LEDGER_BYTES_MAX);
	/* What is coming back has its room already. */
	return (unit->bare ? 0 : asks_of(unit->client, gpu)) +
	       unit->client->holding.cell[gpu].evicted_bytes -
	       unit->client->holding.cell[gpu].returning_bytes;
}

bool sl_node_wants_back(const struct sl_node_client *client)
{
	return client->alive && client->is_out && !client->reports && !client->expected &&
	       !SL_MUTANT(PARKED_COMES_BACK, client->member->parked, false) &&
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

/* All of its workload, wherever it is, and what this client asks for: then it is an entitled demand. */
static bool is_within_request(const struct sl_node_client *client, uint32_t gpus)
{
	const struct sl_ledger_account *account = &client->member->account;

	for_each_gpu(gpu, gpus)
	{
		if (sl_ledger_use(account, gpu) + asks_of(client, gpu) >
			sl_ledger_request(account, gpu))
			return false;
	}
	return true;
}

static struct sl_node_unit *new_unit(struct look *look)
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

static void list_wants(struct look *look)
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
			.place = {.entitled = is_within_request(client, gpus),
				.promoted = client->member->promoted,
				.priority = client->member->priority,
				.since = sl_node_wants_since(client),
				.tie = client->index.id << 1}};
	}
}

static void list_demands(struct look *look)
{
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		sl_list_foreach (link, &look->node->queue[gpu].waiting) {
			struct sl_demand *demand =
				SL_LIST_ENTRY(link, struct sl_demand, queue);
			struct sl_node_client *client = sl_node_client_of(demand);

			bool was_helped = demand->helped;

			demand->helped = demand->moving = false;
			/* What was found for it says nothing of when it is back. */
			if (sl_node_is_away(client))
				demand->retried =
					SL_MUTANT(LAST_LOOK_KEPT, false, demand->retried);
			if (sl_node_is_away(client) || demand->there ||
				sl_node_is_going(client))
				continue;
			*new_unit(look) = (struct sl_node_unit){.client = client,
				.demand = demand,
				.was_helped = was_helped,
				.gpus = 1u << gpu,
				.place = {.entitled = demand->entitled,
					.promoted = client->member->promoted,
					.priority = demand->priority,
					.since = demand->arrived,
					.tie = demand->sequence << 1 | 1}};
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

/* Who was told to leave and does not answer: nobody waits for him, others are asked. */
static void leave_out_the_silent(struct look *look)
{
	sl_list_foreach (link, &look->node->out) {
		const struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_out);

		if (!client->order.id || client->order.restores ||
			SL_MUTANT(SILENT_COME, sl_node_answers(client), true))
			continue;
		for_each_gpu(gpu, client->holding.touched) look->coming_bytes[gpu] -=
			(int64_t)client->holding.cell[gpu].leaving_bytes;
	}
}

static void count_coming(struct look *look)
{
	struct sl_node *node = look->node;

	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		const struct sl_ledger_cell *sum = &node->ledger.gpu[gpu].sum;

		look->free_bytes[gpu] = (int64_t)sl_ledger_shareable(&node->ledger, gpu) -
					(int64_t)sl_ledger_resident(&node->ledger, gpu);
		look->coming_bytes[gpu] =
			(int64_t)(sum->leaving_bytes + sum->dying_bytes);
	}
	leave_out_the_silent(look);
	sl_list_foreach (link, &node->stops) {
		const struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_stops);

		for_each_gpu(gpu, client->holding.touched) look->coming_bytes[gpu] +=
			(int64_t)(sl_ledger_live(&client->holding.cell[gpu]) -
				  client->holding.cell[gpu].leaving_bytes);
	}
}

/* Of so many free bytes, how many the unit may take: a burst demand leaves others their requests. */
static int64_t room_for(const struct look *look, const struct sl_node_unit *unit,
	uint32_t gpu, int64_t bytes)
{
	const struct sl_node *node = look->node;
	const struct sl_demand *demand = unit->demand;
	uint64_t others;

	if (!demand || demand->entitled)
		return bytes;
	if (node->queue[gpu].degraded)
		return INT64_MIN / 2;
	others = node->ledger.gpu[gpu].unclaimed_bytes -
		 sl_ledger_unclaimed(demand->holding->account, gpu);
	return bytes - (int64_t)sl_sub_sat(others, sl_node_lend_to(node, demand));
}

static bool fits(
	const struct look *look, const struct sl_node_unit *unit, bool with_coming)
{
	for_each_gpu(gpu, unit->gpus)
	{
		int64_t bytes = look->free_bytes[gpu] +
				(with_coming ? look->coming_bytes[gpu] : 0);

		if (room_for(look, unit, gpu, bytes) < (int64_t)need_of(unit, gpu) ||
			look->node->queue[gpu].lost)
			return false;
	}
	return true;
}

static void reserve(struct look *look, const struct sl_node_unit *unit)
{
	for_each_gpu(gpu, unit->gpus)
	{
		struct sl_node_queue *queue = &look->node->queue[gpu];
		uint64_t need = need_of(unit, gpu);

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
	struct sl_turns_place place = {.entitled = demand->entitled,
		.promoted = client->member->promoted,
		.priority = demand->priority,
		.since = demand->arrived,
		.tie = demand->sequence << 1 | 1};

	if (sl_node_is_away(client))
		return UINT64_MAX;
	if (!queue->kept_bytes || sl_turns_is_before(&place, &queue->kept_from))
		return queue->exchange_bytes;
	return SL_MUTANT(KEPT_FROM_NOBODY, queue->kept_bytes + queue->exchange_bytes, 0);
}

/* --- making room --- */

bool sl_node_swaps_at_once(const struct sl_node *node)
{
	for (uint32_t chain = node->chain; chain; chain >>= 4) {
		if ((chain & 15) == SL_RESOLVER_WAIT)
			return SL_MUTANT(SWAPS_BEFORE_WAIT, false, true);
		if ((chain & 15) == SL_RESOLVER_SWAP)
			return true;
	}
	return false;
}

/* When others may be moved for it. */
static sl_ns ripe_at(const struct sl_node *node, const struct sl_node_unit *unit)
{
	sl_ns wait_max = unit->client->member->wait_max;

	if (sl_node_swaps_at_once(node))
		return 0;
	if (unit->demand)
		return sl_node_wait_end(node, unit->demand);
	return sl_node_later(unit->place.since, wait_max ? wait_max : node->wait_max);
}

/* Bytes that it lacks beyond what is free and on its way. */
static uint64_t missing_of(
	const struct look *look, const struct sl_node_unit *unit, uint32_t gpu)
{
	int64_t room = room_for(
		look, unit, gpu, look->free_bytes[gpu] + look->coming_bytes[gpu]);
	int64_t need = (int64_t)need_of(unit, gpu);

	return need > room ? (uint64_t)(need - room) : 0;
}

static struct sl_evict_ask ask_of(
	const struct look *look, const struct sl_node_unit *unit, uint32_t gpu)
{
	const struct sl_node *node = look->node;
	const struct sl_demand *demand = unit->demand;
	struct sl_evict_ask ask = {.missing_bytes = missing_of(look, unit, gpu),
		.priority = unit->place.priority,
		.entitled = unit->place.entitled,
		.promoted = unit->place.promoted,
		.leaves_requests = demand && !demand->entitled,
		.pool_bytes = sl_node_pool_room(node, gpu, true)};

	sl_node_count_i2(node, gpu, &ask);
	ask.claims_bytes +=
		sl_node_half_out(node, unit->gpus | unit->client->holding.touched);

	if (!ask.leaves_requests)
		return ask;
	ask.unclaimed_bytes = node->ledger.gpu[gpu].unclaimed_bytes -
			      sl_ledger_unclaimed(demand->holding->account, gpu);
	ask.lend_bytes = sl_node_lend_to(node, demand);
	return ask;
}

static struct sl_node_promise *new_promise(struct look *look)
{
	struct sl_node *node = look->node;

	if (look->promised == node->promises_room) {
		uint32_t room = node->promises_room ? node->promises_room * 2 : 64;
		struct sl_node_promise *more =
			sl_arena_take(node->arena, room * sizeof(*more));

		if (look->promised)
			memcpy(more, node->promises, look->promised * sizeof(*more));
		node->promises = more;
		node->promises_room = room;
	}
	return &node->promises[look->promised++];
}

static void promise(
	struct look *look, struct sl_node_client *client, uint32_t gpu, uint64_t bytes)
{
	*new_promise(look) = (struct sl_node_promise){client, gpu, bytes};
	sl_ledger_set_leaving(&look->node->ledger, &client->holding, gpu,
		client->holding.cell[gpu].leaving_bytes + bytes);
	look->node->books++;
}

/* Back to the first `count` of them. What was found out with them is not so any more. */
static void take_back_promises(struct look *look, uint32_t count)
{
	struct sl_node *node = look->node;

	while (look->promised > count) {
		const struct sl_node_promise *last = &node->promises[--look->promised];
		struct sl_ledger_holding *holding = &last->client->holding;

		sl_ledger_set_leaving(&node->ledger, holding, last->gpu,
			holding->cell[last->gpu].leaving_bytes - last->bytes);
		node->books++;
	}
}

/* What was chosen on this GPU is not there for the others. */
static void promise_chosen(struct look *look, uint32_t gpu, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct sl_evict_candidate *c = &look->node->candidates[i];

		if (c->take_bytes)
			promise(look, c->who, gpu,
				SL_MUTANT(PLANS_GPUS_ALONE, c->take_bytes, 0));
	}
}

/* In this look, on whatever GPU: it has no order, and is to leave once the pool has room. */
static bool is_set_aside(const struct sl_node_client *client)
{
	for (uint32_t left = client->holding.touched; left; left &= left - 1) {
		if (client->holding.cell[__builtin_ctz(left)].leaving_bytes)
			return true;
	}
	return false;
}

/* Those for whom the pool has no room yet, or who are busy with an order, are counted on. */
static void send_away(
	struct look *look, const struct sl_node_unit *unit, uint32_t gpu, uint32_t count)
{
	struct sl_node *node = look->node;

	for (uint32_t i = 0; i < count; i++) {
		const struct sl_evict_candidate *c = &node->candidates[i];
		struct sl_node_client *client = c->who;

		if (!c->take_bytes)
			continue;
		/* One GPU after the other, and the first for whom it was set aside first. */
		if (!client->order.id && !is_set_aside(client) &&
			sl_node_trim_for(node, client, c->take_bytes))
			sl_node_evict(node, client, gpu, c->take_bytes,
				SL_REASON_EVICTED_FOR, unit->client->member->index.id, 0);
		else
			promise(look, client, gpu, c->take_bytes);
		look->coming_bytes[gpu] += (int64_t)c->take_bytes;
	}
}

static void want_proofs(struct look *look, uint32_t count)
{
	struct sl_node *node = look->node;

	for (uint32_t i = 0; i < count; i++) {
		struct sl_node_client *client = node->candidates[i].who;

		if (!SL_MUTANT(SWAP_NEVER_PROVES, node->candidates[i].prove, false))
			continue;
		client->asked_in = node->looks;
		node->asked++;
	}
}

/* Said once, until it is served. */
static void note_pool(struct look *look, const struct sl_node_unit *unit, uint32_t gpu,
	const struct sl_evict_plan *plan, uint32_t count)
{
	struct sl_node *node = look->node;
	struct sl_node_because note = {.gpu = gpu,
		.workload = unit->client->member->index.id,
		.client = unit->client->index.id,
		.bytes = need_of(unit, gpu),
		.available_bytes = sl_node_pool_room(node, gpu, unit->place.entitled)};

	if (!plan->pool_full && !plan->bound)
		return;
	unit->client->pool_lacks = true;
	if (unit->client->pool_told)
		return;
	unit->client->pool_told = true;
	note.reason = SL_REASON_POOL_FULL;
	/* Named is who has the bound. */
	for (uint32_t i = 0; plan->bound && i < count; i++) {
		const struct sl_evict_candidate *c = &node->candidates[i];
		const struct sl_node_client *client = c->who;

		if (c->share_bytes >= c->bytes)
			continue;
		note.reason = SL_REASON_POOL_BOUND;
		note.workload = client->member->index.id;
		note.client = client->index.id;
		note.available_bytes = node->pool_member_bytes;
		break;
	}
	sl_node_note_because(node, &note);
}

struct chance {
	bool enough, ever;
	sl_ns next;
};

/* Whether others can be moved for it on all GPUs where it lacks something, together. */
static struct chance look_for_leavers(
	struct look *look, const struct sl_node_unit *unit, uint32_t place)
{
	struct chance chance = {.enough = true, .ever = true, .next = SL_NS_NEVER};
	uint32_t promised = look->promised;

	for_each_gpu(gpu, unit->gpus)
	{
		struct sl_evict_ask ask = ask_of(look, unit, gpu);
		struct sl_evict_plan plan;
		uint32_t count;

		if (look->node->queue[gpu].lost) {
			chance = (struct chance){.next = SL_NS_NEVER};
			break;
		}
		if (!ask.missing_bytes)
			continue;
		plan = sl_node_choose_leavers(
			look->node, unit->client, place, gpu, &ask, &count);
		look->node->contended |= count > 0;
		chance.enough &= plan.enough;
		chance.ever &= plan.ever;
		chance.next = sl_min_u64(chance.next, plan.next);
		want_proofs(look, count);
		if (!plan.ever)
			note_pool(look, unit, gpu, &plan, count);
		promise_chosen(look, gpu, count);
	}
	take_back_promises(look, promised);
	return chance;
}

static enum outcome make_room(
	struct look *look, const struct sl_node_unit *unit, uint32_t place)
{
	struct sl_node *node = look->node;
	struct chance chance;
	bool first = !look->choices;

	if (node->now < ripe_at(node, unit)) {
		node->swap_due = sl_min_u64(node->swap_due, ripe_at(node, unit));
		return NEVER;
	}
	if (look->blocked & unit->gpus)
		return BEHIND;
	/* Not looked at: that is no help either, so its longest wait and the last resort are as ever. */
	if (look->choices >= CHOICES_MOST)
		return NEVER;
	chance = look_for_leavers(look, unit, place);
	look->choices += chance.ever ? CHOICE : 1;
	if (node->contended && first)
		sl_node_note_long(node);
	if (!chance.enough) {
		node->swap_due =
			sl_min_u64(node->swap_due, sl_node_later(node->now, chance.next));
		return chance.ever ? LATER : NEVER;
	}
	for_each_gpu(gpu, unit->gpus)
	{
		struct sl_evict_ask ask = ask_of(look, unit, gpu);
		uint32_t count;

		if (ask.missing_bytes && sl_node_choose_leavers(node, unit->client, place,
						 gpu, &ask, &count)
						 .enough)
			send_away(look, unit, gpu, count);
	}
	return MOVING;
}

/* --- min_share --- */

/* A lower priority that has waited for long enough comes before all others, for one turn. */
static void promote(struct look *look, const struct sl_node_unit *unit)
{
	struct sl_node *node = look->node;
	struct sl_node_member *member = unit->client->member;
	sl_ns at;

	if (member->promoted || !sl_node_swaps(node) ||
		(unit->demand && unit->demand->entitled))
		return;
	if (!sl_node_is_below_others(node, member))
		return;
	at = sl_node_later(unit->place.since,
		sl_turns_patience(sl_node_turn_of(node, member), node->min_share_pm));
	/* A burst demand is refused then; rather it has its turn. */
	if (unit->demand)
		at = sl_min_u64(at, sl_node_wait_end(node, unit->demand));
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
	/* The order is another one now, also for those of its demands that left what is free to others. */
	sl_node_touch(node, unit->gpus);
}

/* --- one after the other --- */

static enum outcome serve(
	struct look *look, const struct sl_node_unit *unit, uint32_t place)
{
	struct sl_node *node = look->node;

	if (unit->coming)
		return MOVING;
	if (fits(look, unit, false)) {
		/* The rest of it comes as soon as the part is there. */
		if (!unit->demand && unit->client->order.id)
			return MOVING;
		if (unit->demand || node->now >= unit->client->restore_at)
			return SERVED;
		node->swap_due = sl_min_u64(node->swap_due, unit->client->restore_at);
		return MOVING;
	}
	if (fits(look, unit, true))
		return MOVING;
	if (sl_node_swaps(node))
		return make_room(look, unit, place);
	/* Nobody can be moved: as the head of a queue, it is passed for a while. */
	if (unit->demand)
		return NEVER;
	if (unit->place.entitled || node->now - unit->place.since >= node->head_pass)
		return LATER;
	node->swap_due = sl_min_u64(
		node->swap_due, sl_node_later(unit->place.since, node->head_pass));
	return NEVER;
}

static void bring_back(struct look *look, const struct sl_node_unit *unit)
{
	for_each_gpu(gpu, unit->gpus) look->free_bytes[gpu] -=
		(int64_t)need_of(unit, gpu);
	unit->client->pool_told = false;
	sl_node_bring_back(look->node, unit->client);
}

/* Of what it needs a part has come and the rest is on its way: it does not wait for all of it. */
static void bring_part(struct look *look, const struct sl_node_unit *unit)
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

/* Processes were told to end for it, which is the resolvers' affair. What it gets of that is for nobody behind it: who came
 * back with it would be the next one to be ended. */
static void leave_what_ends(
	struct look *look, const struct sl_node_unit *unit, uint32_t place)
{
	bool is_coming = fits(look, unit, true);

	if (is_coming)
		unit->client->helpless_in = 0;
	else if (unit->client->place == place)
		unit->client->helpless_in = look->node->looks;
	if (SL_MUTANT(RETURN_TAKES_ENDED, !is_coming, true))
		return;
	if (!fits(look, unit, false))
		look->lacking |= unit->gpus;
	reserve(look, unit);
}

static void look_at(struct look *look, struct sl_node_unit *unit, uint32_t place)
{
	enum outcome outcome;

	unit->client->pool_lacks = false;
	/* It was told to leave for somebody before it. */
	if (!unit->coming && (is_leaving(unit->client) ||
				     (unit->demand && sl_node_is_away(unit->client))))
		return;
	if (unit->demand && unit->demand->stops) {
		leave_what_ends(look, unit, place);
		return;
	}
	outcome = serve(look, unit, place);
	if (unit->first && outcome != MOVING && outcome != SERVED) {
		/* Who was to leave for it fails: the others are looked at again, in their order. */
		unit->client->is_exchanged = false;
		look->node->swap_dirty = true;
	}
	if (outcome == NEVER && !unit->demand && unit->client->waiting &&
		SL_MUTANT(NEVER_WITHOUT_ASKS, true, false)) {
		unit->bare = true;
		outcome = serve(look, unit, place);
	}
	if (!unit->demand &&
		(outcome == NEVER || (outcome == LATER && !sl_node_swaps(look->node))))
		unit->client->unhelped_in = look->node->looks;
	if (unit->demand) {
		unit->demand->helped = outcome != NEVER && outcome != SERVED;
		unit->demand->moving = outcome == MOVING;
		/* Its longest wait may be over. */
		look->node->timers_dirty |= unit->was_helped && !unit->demand->helped;
		if (unit->was_helped && !unit->demand->helped)
			sl_node_reconsider(look->node, unit->gpus);
	}
	/* Helpless is of whom nothing is helped. */
	if (outcome != NEVER)
		unit->client->helpless_in = 0;
	else if (unit->client->place == place)
		unit->client->helpless_in = look->node->looks;
	if (outcome == SERVED && !unit->demand) {
		bring_back(look, unit);
		return;
	}
	if (outcome == NEVER || outcome == BEHIND) {
		promote(look, unit);
		return;
	}
	if (outcome == MOVING)
		bring_part(look, unit);
	reserve(look, unit);
	if (outcome == MOVING)
		look->lacking |= unit->gpus;
	if (outcome != LATER)
		return;
	look->lacking |= unit->gpus;
	look->blocked |= unit->gpus;
	promote(look, unit);
}

/* --- around it --- */

/* Nobody needs any more what they were told to move. */
static void abort_the_unneeded(struct look *look)
{
	sl_list_foreach (link, &look->node->out) {
		struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_out);

		if (client->order.id && !client->order.restores &&
			client->order.reason == SL_REASON_EVICTED_FOR &&
			!(look->lacking >> client->order.gpu & 1))
			sl_node_abort(look->node, client);
	}
}

/* Somebody counts on what others were told to leave, whoever that was for: it has to be seen whether they go on. */
static void watch_who_leaves(const struct look *look)
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
static void end_exchanges(struct look *look)
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
static void put_in_order(struct look *look)
{
	struct sl_node *node = look->node;

	qsort(node->units, look->count, sizeof(*node->units), compare);
	for (uint32_t i = look->count; i-- > 0;) {
		node->units[i].client->seen_in = node->looks;
		node->units[i].client->place = i;
	}
}

static void go_through(struct look *look)
{
	struct sl_node *node = look->node;

	if (!sl_list_is_empty(&node->out) || sl_node_swaps(node)) {
		list_wants(look);
		list_demands(look);
	}
	if (!look->count) {
		node->contended = false;
		return;
	}
	put_in_order(look);
	count_coming(look);
	look->flowing = sl_node_flowing(node);
	for (uint32_t i = 0; i < look->count; i++)
		look_at(look, &node->units[i], i);
	take_back_promises(look, 0);
}

void sl_node_take_turns(struct sl_node *node)
{
	struct look look = {.node = node};
	struct kept kept_before[SL_NODE_GPUS_MAX];
	bool was_contended = node->contended;
	uint32_t asked_before = node->asked;

	node->swap_dirty = false;
	node->swap_due = SL_NS_NEVER;
	node->looks++;
	node->asked = 0;
	/* Demands of whose request is claimed again are entitled now: who fits is served before anybody leaves. */
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
