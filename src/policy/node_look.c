/*
 * node_look - see the header
 */
#include <string.h>

#include "policy/mutant.h"
#include "policy/node_look.h"

/* Bytes that are to leave a GPU as soon as their client is gone from another. They are counted as
 * if it had been told to leave them, so that what is planned for one GPU has no room in the pool
 * that another one needs. */
struct sl_node_promise {
	struct sl_node_client *client;
	uint32_t gpu;
	uint64_t bytes;
};

/* Looks for those who could leave: each costs a walk over all clients. Those in vain count a
 * quarter: who cannot be helped (the pool is full, nobody may leave) is not to keep those behind it
 * from being looked at. */
#define CHOICES_MOST 64
#define CHOICE       4

/* --- what is needed --- */

uint64_t sl_look_asks(const struct sl_node_client *client, uint32_t gpu)
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

uint64_t sl_look_need(const struct sl_node_unit *unit, uint32_t gpu)
{
	if (unit->demand)
		return sl_min_u64(unit->demand->bytes, SL_LEDGER_BYTES_MAX);
	/* What is coming back has its room already. */
	return (unit->bare ? 0 : sl_look_asks(unit->client, gpu)) +
	       unit->client->holding.cell[gpu].evicted_bytes -
	       unit->client->holding.cell[gpu].returning_bytes;
}

/* --- room --- */

/* Who was told to leave and does not answer: nobody waits for him, others are asked. */
static void leave_out_the_silent(struct sl_look *look)
{
	sl_list_foreach (link, &look->node->out) {
		const struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_out);

		if (!client->order.id || client->order.restores ||
			SL_MUTANT(SILENT_COME, sl_node_answers(client), true))
			continue;
		sl_look_each_gpu(gpu, client->holding.touched) look->coming_bytes[gpu] -=
			(int64_t)client->holding.cell[gpu].leaving_bytes;
	}
}

void sl_look_count_coming(struct sl_look *look)
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

		sl_look_each_gpu(gpu, client->holding.touched) look->coming_bytes[gpu] +=
			(int64_t)(sl_ledger_live(&client->holding.cell[gpu]) -
				  client->holding.cell[gpu].leaving_bytes);
	}
}

/* Of the workload on the GPU, what is counted as coming of the living: it leaves, or its process
 * was told to end. */
static uint64_t going_of(const struct sl_node_member *member, uint32_t gpu)
{
	uint64_t bytes = 0;

	sl_list_foreach (link, &member->clients) {
		const struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_member);
		const struct sl_ledger_cell *cell = &client->holding.cell[gpu];

		if (sl_node_is_going(client))
			bytes += sl_ledger_live(cell);
		else if (sl_node_answers(client))
			bytes += cell->leaving_bytes;
	}
	return bytes;
}

/* Of the workload's request, what it will have claimed no longer once that is gone. O(its clients),
 * if anything of it may be going. */
static uint64_t given_up_by(
	const struct sl_node *node, const struct sl_node_member *member, uint32_t gpu)
{
	uint64_t request, here;

	if (!member->account.cell[gpu].leaving_bytes && sl_list_is_empty(&node->stops))
		return 0;
	request = sl_ledger_request(&member->account, gpu);
	here = sl_ledger_here(&member->account, gpu);
	return sl_sub_sat(request, sl_sub_sat(here, going_of(member, gpu))) -
	       sl_sub_sat(request, here);
}

/* Of all requests, but those of higher priority than this; found out once as long as no bytes
 * move. */
static uint64_t given_up(const struct sl_node *node, uint32_t gpu, int32_t priority)
{
	struct sl_node_lent *cache = &node->caches->given_up[gpu];

	if (cache->as_of == node->books && cache->priority == priority)
		return cache->bytes;
	*cache = (struct sl_node_lent){.as_of = node->books, .priority = priority};
	if (!node->ledger.gpu[gpu].sum.leaving_bytes && sl_list_is_empty(&node->stops))
		return 0;
	sl_list_foreach (link, &node->all_members) {
		const struct sl_node_member *member =
			SL_LIST_ENTRY(link, struct sl_node_member, of_node);

		if (member->priority <= priority)
			cache->bytes += given_up_by(node, member, gpu);
	}
	return cache->bytes;
}

/* Requests of others that the unit leaves to them. with_coming: what was claimed and comes is
 * claimed no longer, so that it is no room for a burst; but what `priority` takes back. */
static uint64_t unclaimed_by_others(const struct sl_look *look,
	const struct sl_node_unit *unit, uint32_t gpu, bool with_coming)
{
	const struct sl_node *node = look->node;
	const struct sl_node_member *own = unit->client->member;
	uint64_t others = node->ledger.gpu[gpu].unclaimed_bytes -
			  sl_ledger_unclaimed(&own->account, gpu);

	if (SL_MUTANT(COMING_IS_UNREQUESTED, !with_coming, true))
		return others;
	return others +
	       given_up(node, gpu,
		       sl_node_may_stand(node, own) ? unit->demand->priority
						    : INT32_MAX) -
	       given_up_by(node, own, gpu);
}

/* Of what is free, with_coming: and on its way, how much the unit may take: a burst demand leaves
 * others their requests. */
static int64_t room_for(const struct sl_look *look, const struct sl_node_unit *unit,
	uint32_t gpu, bool with_coming)
{
	const struct sl_node *node = look->node;
	int64_t bytes =
		look->free_bytes[gpu] + (with_coming ? look->coming_bytes[gpu] : 0);

	if (!unit->demand || unit->demand->entitled)
		return bytes;
	if (node->queue[gpu].degraded)
		return INT64_MIN / 2;
	return bytes -
	       (int64_t)sl_sub_sat(unclaimed_by_others(look, unit, gpu, with_coming),
		       sl_node_lend_to(node, unit->demand));
}

bool sl_look_fits(
	const struct sl_look *look, const struct sl_node_unit *unit, bool with_coming)
{
	sl_look_each_gpu(gpu, unit->gpus)
	{
		if (room_for(look, unit, gpu, with_coming) <
				(int64_t)sl_look_need(unit, gpu) ||
			look->node->queue[gpu].lost)
			return false;
	}
	return true;
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
	/* What is within a request is no collision: its share of the time would go with the
	 * wait. */
	if (SL_MUTANT(RETURNS_WAIT_FIRST, unit->place.entitled, false))
		return 0;
	return sl_node_later(unit->place.since, wait_max ? wait_max : node->wait_max);
}

/* Bytes that it lacks beyond what is free and on its way. */
static uint64_t missing_of(
	const struct sl_look *look, const struct sl_node_unit *unit, uint32_t gpu)
{
	int64_t room = room_for(look, unit, gpu, true);
	int64_t need = (int64_t)sl_look_need(unit, gpu);

	return need > room ? (uint64_t)(need - room) : 0;
}

/* Of the pool, as far as others are to have a way back from there. */
static uint64_t room_and_back(const struct sl_look *look, const struct sl_node_unit *unit,
	uint32_t gpu, uint64_t bytes)
{
	if (!unit->demand || unit->demand->entitled)
		return SL_LEDGER_BYTES_MAX;
	return sl_node_room_and_back(look->node, unit->client, gpu, bytes);
}

/* Who grows in its turn asks for more in a moment: as much as it has grown by already is moved with
 * what it lacks, within what it may have and the pool can exchange back. */
static void run_ahead(const struct sl_look *look, const struct sl_node_unit *unit,
	struct sl_evict_ask *ask)
{
	const struct sl_node_member *member = unit->client->member;
	uint64_t most, bytes;

	if (!unit->demand || unit->demand->held ||
		!sl_node_is_growing(look->node, unit->client))
		return;
	most = ask->entitled ? sl_ledger_request(&member->account, ask->gpu)
			     : member->account.limit_bytes;
	most = sl_sub_sat(most, sl_ledger_use(&member->account, ask->gpu) +
					sl_look_asks(unit->client, ask->gpu));
	bytes = sl_min_u64(most, sl_node_grown(member));
	if (ask->missing_bytes + bytes <=
		room_and_back(look, unit, ask->gpu, unit->demand->bytes + bytes))
		ask->ahead_bytes = SL_MUTANT(NEVER_RUNS_AHEAD, bytes, 0);
}

static struct sl_evict_ask ask_of(
	const struct sl_look *look, const struct sl_node_unit *unit, uint32_t gpu)
{
	const struct sl_node *node = look->node;
	const struct sl_demand *demand = unit->demand;
	struct sl_evict_ask ask = {.missing_bytes = missing_of(look, unit, gpu),
		.priority = unit->place.priority,
		.entitled = unit->place.entitled,
		.promoted = unit->place.promoted,
		.leaves_requests = demand && !demand->entitled,
		.burst_comes = look->first_bursts >> gpu & 1,
		.gpu = gpu,
		.pool_bytes = sl_node_pool_there(node),
		.pool = sl_node_pool_for(
			node, unit->gpus | unit->client->holding.touched)};

	run_ahead(look, unit, &ask);
	if (!ask.leaves_requests)
		return ask;
	ask.pool_bytes =
		sl_min_u64(ask.pool_bytes, room_and_back(look, unit, gpu, demand->bytes));
	ask.unclaimed_bytes = unclaimed_by_others(look, unit, gpu, true);
	ask.lend_bytes = sl_node_lend_to(node, demand);
	return ask;
}

static struct sl_node_promise *new_promise(struct sl_look *look)
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
	struct sl_look *look, struct sl_node_client *client, uint32_t gpu, uint64_t bytes)
{
	*new_promise(look) = (struct sl_node_promise){client, gpu, bytes};
	sl_ledger_set_leaving(&look->node->ledger, &client->holding, gpu,
		client->holding.cell[gpu].leaving_bytes + bytes);
	look->node->books++;
}

/* Back to the first `count` of them. What was found out with them is not so any more. */
void sl_look_take_back(struct sl_look *look, uint32_t count)
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
static void promise_chosen(struct sl_look *look, uint32_t gpu, uint32_t count)
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
static void send_away(struct sl_look *look, const struct sl_node_unit *unit,
	const struct sl_evict_ask *ask, uint32_t count)
{
	struct sl_node *node = look->node;
	uint32_t gpu = ask->gpu;

	for (uint32_t i = 0; i < count; i++) {
		const struct sl_evict_candidate *c = &node->candidates[i];
		struct sl_node_client *client = c->who;

		if (!c->take_bytes)
			continue;
		/* One GPU after the other, and the first for whom it was set aside first. */
		if (client->order.id || is_set_aside(client) ||
			!sl_node_trim_for(node, client, c->take_bytes)) {
			promise(look, client, gpu, c->take_bytes);
		} else {
			sl_node_evict(node, client, gpu, c->take_bytes,
				SL_REASON_EVICTED_FOR, unit->client->member->index.id, 0);
			client->member->turn_over |= !c->turn_left;
			client->order.ahead = ask->ahead_bytes;
			client->order.lacker = unit->client->index.id;
			client->order.lacker_demand =
				unit->demand ? unit->demand->sequence : 0;
		}
		look->coming_bytes[gpu] += (int64_t)c->take_bytes;
	}
}

static void want_proofs(struct sl_look *look, uint32_t count)
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

/* Said once of each wait. */
static void note_pool(struct sl_look *look, const struct sl_node_unit *unit,
	const struct sl_evict_ask *ask, const struct sl_evict_plan *plan, uint32_t count)
{
	struct sl_node *node = look->node;
	struct sl_node_because note = {.gpu = ask->gpu,
		.workload = unit->client->member->index.id,
		.client = unit->client->index.id,
		.bytes = sl_look_need(unit, ask->gpu),
		.available_bytes = ask->entitled
					   ? ask->pool_bytes
					   : sl_min_u64(ask->pool_bytes,
						     sl_pool_lend(&ask->pool, ask->gpu))};

	if (!plan->pool_full && !plan->bound)
		return;
	/* Less than the pool has, where chunks are too large for all of it. */
	if (ask->leaves_requests)
		note.available_bytes =
			sl_min_u64(note.available_bytes, plan->gives_bytes);
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
	unit->client->pool_lacks = note;
	if (!unit->client->pool_told)
		sl_node_note_because(node, &note);
	unit->client->pool_told = true;
}

/* What it asks for besides is no reason for others of its own workload to leave. */
static struct sl_node_asker asker_of(const struct sl_node_unit *unit, uint32_t place)
{
	return (struct sl_node_asker){.client = unit->client,
		.place = place,
		.own_too = SL_MUTANT(SIBLINGS_STAY,
			!unit->demand && (unit->bare || !unit->client->waiting), false)};
}

struct chance {
	bool enough, ever;
	sl_ns next;
};

/* Others may be moved for it at some time. Who comes back before all others may be, once he is
 * back, whatever the sums say: they count what of him is on the host as if it stayed there. Else
 * those behind it would take what is left of its workload, and it then what he still lacks. */
static bool may_ever(
	const struct sl_look *look, uint32_t gpu, const struct sl_evict_plan *plan)
{
	return plan->ever ||
	       SL_MUTANT(EXCHANGE_HELPS_NOBODY, look->first >> gpu & 1, false);
}

/* Whether others can be moved for it on all GPUs where it lacks something, together. */
static struct chance look_for_leavers(
	struct sl_look *look, const struct sl_node_unit *unit, uint32_t place)
{
	struct chance chance = {.enough = true, .ever = true, .next = SL_NS_NEVER};
	struct sl_node_asker asker = asker_of(unit, place);
	uint32_t promised = look->promised;

	sl_look_each_gpu(gpu, unit->gpus)
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
		plan = sl_node_choose_leavers(look->node, &asker, gpu, &ask, &count);
		look->node->contended |= count > 0;
		chance.enough &= plan.enough;
		chance.ever &= may_ever(look, gpu, &plan);
		chance.next = sl_min_u64(chance.next, plan.next);
		want_proofs(look, count);
		if (!may_ever(look, gpu, &plan))
			note_pool(look, unit, &ask, &plan, count);
		promise_chosen(look, gpu, count);
	}
	sl_look_take_back(look, promised);
	return chance;
}

enum sl_look_outcome sl_look_make_room(
	struct sl_look *look, const struct sl_node_unit *unit, uint32_t place)
{
	struct sl_node *node = look->node;
	struct sl_node_asker asker = asker_of(unit, place);
	struct chance chance;
	bool first = !look->choices;

	if (node->now < ripe_at(node, unit)) {
		node->swap_due = sl_min_u64(node->swap_due, ripe_at(node, unit));
		return SL_LOOK_NEVER;
	}
	if (look->blocked & unit->gpus)
		return SL_LOOK_BEHIND;
	/* Not looked at: that is no help either, so its longest wait and the last resort are as
	 * ever. */
	if (look->choices >= CHOICES_MOST)
		return SL_LOOK_NEVER;
	chance = look_for_leavers(look, unit, place);
	look->choices += chance.ever ? CHOICE : 1;
	if (node->contended && first)
		sl_node_note_long(node);
	if (!chance.enough) {
		node->swap_due =
			sl_min_u64(node->swap_due, sl_node_later(node->now, chance.next));
		return chance.ever ? SL_LOOK_LATER : SL_LOOK_NEVER;
	}
	sl_look_each_gpu(gpu, unit->gpus)
	{
		struct sl_evict_ask ask = ask_of(look, unit, gpu);
		uint32_t count;

		if (ask.missing_bytes &&
			sl_node_choose_leavers(node, &asker, gpu, &ask, &count).enough)
			send_away(look, unit, &ask, count);
	}
	return SL_LOOK_MOVING;
}
