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
};

enum outcome {
	SERVED, /* it has, or is being given, what it needs */
	MOVING, /* what it needs is on its way */
	LATER,  /* others may be moved for it later */
	NEVER   /* nothing that is known of helps */
};

/* One look. free_bytes, coming_bytes: not reserved yet; below 0: reserved from what is coming, or not there. */
struct look {
	struct sl_node *node;
	int64_t free_bytes[SL_NODE_GPUS_MAX], coming_bytes[SL_NODE_GPUS_MAX];
	uint32_t blocked; /* GPUs on which somebody waits until others may be moved */
	uint32_t count;
};

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
	return asks_of(unit->client, gpu) +
	       (unit->coming ? 0 : unit->client->holding.cell[gpu].evicted_bytes);
}

/* Something of it is on the host, and it wants to run: a thread stands at its gate, or needs more. */
static bool wants_back(const struct sl_node_client *client)
{
	return client->alive && client->is_out &&
	       !SL_MUTANT(PARKED_COMES_BACK, client->member->parked, false) &&
	       (client->wants || client->waiting || client->comes_back);
}

static sl_ns waits_since(const struct sl_node_client *client)
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

static bool is_within_request(const struct sl_node_client *client)
{
	const struct sl_ledger_account *account = &client->member->account;

	for_each_gpu(gpu, client->is_out)
	{
		const struct sl_ledger_cell *cell = &client->holding.cell[gpu];

		if (sl_ledger_here(account, gpu) + cell->evicted_bytes -
				cell->returning_bytes + asks_of(client, gpu) >
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

static void list_wants(struct look *look)
{
	sl_list_foreach (link, &look->node->out) {
		struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_out);
		uint32_t gpus = client->is_out;

		if (!client->returns && (!wants_back(client) || client->order.id))
			continue;
		sl_list_foreach (at, &client->party.demands)
			gpus |= 1u << SL_LIST_ENTRY(at, struct sl_demand, of_client)->gpu;
		*new_unit(look) = (struct sl_node_unit){.client = client,
			.gpus = gpus,
			.coming = client->returns,
			.place = {.entitled = is_within_request(client),
				.promoted = client->member->promoted,
				.priority = client->member->priority,
				.since = waits_since(client),
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

			if (sl_node_is_away(client) || demand->there || demand->stops ||
				sl_node_is_going(client))
				continue;
			*new_unit(look) = (struct sl_node_unit){.client = client,
				.demand = demand,
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

	return sl_turns_is_before(&a->place, &b->place) ? -1 : 1;
}

/* --- room --- */

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
	sl_list_foreach (link, &node->stops) {
		const struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_stops);

		for_each_gpu(gpu, client->holding.touched) look->coming_bytes[gpu] +=
			(int64_t)sl_ledger_live(&client->holding.cell[gpu]);
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
		return 0;
	return SL_MUTANT(KEPT_FROM_NOBODY, queue->kept_bytes, 0);
}

/* --- one after the other --- */

static enum outcome serve(struct look *look, const struct sl_node_unit *unit)
{
	struct sl_node *node = look->node;

	if (unit->coming)
		return MOVING;
	if (fits(look, unit, false)) {
		if (unit->demand)
			return SERVED;
		if (node->now < unit->client->restore_at) {
			node->swap_due =
				sl_min_u64(node->swap_due, unit->client->restore_at);
			return MOVING;
		}
		return SERVED;
	}
	if (fits(look, unit, true))
		return MOVING;
	if (!sl_node_swaps(node) && !unit->demand)
		return LATER;
	return NEVER;
}

static void look_at(struct look *look, const struct sl_node_unit *unit)
{
	switch (serve(look, unit)) {
	case SERVED:
		if (unit->demand) {
			reserve(look, unit);
			return;
		}
		for_each_gpu(gpu, unit->gpus) look->free_bytes[gpu] -=
			(int64_t)unit->client->holding.cell[gpu].evicted_bytes;
		sl_node_bring_back(look->node, unit->client);
		return;
	case MOVING: reserve(look, unit); return;
	case LATER:
		reserve(look, unit);
		look->blocked |= unit->gpus;
		return;
	case NEVER: return;
	}
}

/* Demands that were held back by what was kept before are looked at again. */
static void tell_kept(struct sl_node *node, const uint64_t *kept_before)
{
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		if (node->queue[gpu].kept_bytes != kept_before[gpu] &&
			node->queue[gpu].count)
			sl_node_touch(node, 1u << gpu);
	}
}

void sl_node_take_turns(struct sl_node *node)
{
	struct look look = {.node = node};
	uint64_t kept_before[SL_NODE_GPUS_MAX];

	node->swap_dirty = false;
	node->swap_due = SL_NS_NEVER;
	sl_node_time_parked(node);
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++) {
		kept_before[gpu] = node->queue[gpu].kept_bytes;
		node->queue[gpu].kept_bytes = 0;
	}
	if (!sl_list_is_empty(&node->out) || sl_node_swaps(node)) {
		list_wants(&look);
		list_demands(&look);
	}
	if (look.count) {
		qsort(node->units, look.count, sizeof(*node->units), compare);
		count_coming(&look);
		for (uint32_t i = 0; i < look.count; i++)
			look_at(&look, &node->units[i]);
	}
	tell_kept(node, kept_before);
}
