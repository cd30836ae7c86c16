/*
 * node_pieces - one comes back while another still leaves
 *
 * The two directions of a link are independent of each other, so an exchange that first moves all
 * of A out and then all of B in takes twice as long as it must. A's EVICT stays one order: one
 * gate, one drain, one proof, one choice of what leaves. But its client says how far it is (MOVED),
 * once per piece, and what has left is free from then on. B, for whom it leaves, is restored by
 * several orders, each of what is free by then: RESTORE needs neither drain nor proof, and the gate
 * stays closed until the last of them.
 *
 * B begins only when A has given something, not when it was told to: an EVICT that is refused (a
 * capture, work that does not end) costs nobody anything. From then on B comes before all others,
 * whatever their rights, until all of it is back, as if all its room had been kept from the start:
 * who comes meanwhile finds B at the beginning of its turn. So two that each take from the other do
 * it once per turn, not once per piece. Where nothing comes in pieces (what leaves is small, or B
 * is on several GPUs) B's place is kept from when the first of those who leave for it has left.
 * That ends when B, or A, fails half-way or is gone, or B does not want any more. B has its
 * ordinary place then, and can be taken from by those before it; and where nothing can help it, by
 * those behind it, too, A above all: what B has got is of use to nobody (node_leave.c). A part of
 * each is on the host then. One of them can only come if the other goes, so the pool keeps room for
 * that.
 *
 * A waiting demand is granted whole, so nothing comes for it in pieces, and it keeps its place in
 * the order. Only who left for a burst demand does not come before it for being within his request,
 * while others still leave for it.
 */
#include "policy/mutant.h"
#include "policy/node_state.h"

/* An order and its answer take some 0.2 ms, so a piece is what the link moves in ten times that;
 * and not less than what a chunk costs whatever its size (runtime/piece_choose.c). What is moved is
 * a whole chunk, often of more. */
#define PIECE_SPAN  (2 * SL_MS)
#define PIECE_LEAST (8 * SL_MIB)
/* In the first piece and the last one direction rests. Where the way in has all its speed beside
 * the way out an exchange takes 1 + 1 / PIECES times the one way; where it has half, as was
 * published for an A100, 1.5 + 1 / (2 * PIECES). */
#define PIECES 16

static uint64_t least_of(const struct sl_node *node, uint32_t gpu)
{
	uint64_t span = sl_node_cost_out(node, gpu, PIECE_LEAST);

	return span >= PIECE_SPAN ? PIECE_LEAST
				  : PIECE_LEAST * PIECE_SPAN / sl_max_u64(span, 1);
}

uint64_t sl_node_piece(const struct sl_node *node, uint32_t gpu, uint64_t bytes)
{
	uint64_t piece = sl_max_u64(bytes / PIECES, least_of(node, gpu));

	return bytes < 2 * piece ? 0 : piece;
}

void sl_node_on_moved(struct sl_node *node, const struct sl_event *event)
{
	struct sl_node_client *client = sl_node_find_client(node, event->moved.client);
	uint32_t gpu = event->moved.gpu;
	uint64_t bytes = event->moved.evicted_bytes, moved, leaving;

	if (!client || !client->alive || !client->order.id || client->order.restores ||
		client->order.id != event->moved.order || client->order.gpu != gpu) {
		sl_node_note(node, SL_REASON_STRAY, 0,
			client ? client->member->index.id : 0, 0, bytes);
		return;
	}
	moved = sl_sub_sat(bytes, client->holding.cell[gpu].evicted_bytes);
	if (!moved)
		return;
	leaving = client->holding.cell[gpu].leaving_bytes;
	sl_ledger_set_evicted(&node->ledger, &client->holding, gpu, bytes);
	sl_ledger_set_leaving(&node->ledger, &client->holding, gpu,
		sl_sub_sat(leaving, SL_MUTANT(MOVED_STILL_LEAVES, moved, 0)));
	sl_node_sort_out(node, client);
	sl_node_released(node, gpu);
	sl_node_touch(node, 1u << gpu);
	node->timers_dirty = node->deadlock_dirty = true;
}

uint32_t sl_node_flowing(const struct sl_node *node)
{
	uint32_t mask = 0;

	sl_list_foreach (link, &node->out) {
		const struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_out);
		const struct sl_node_order *order = &client->order;

		if (!order->id || order->restores || order->aborted ||
			!sl_node_answers(client))
			continue;
		if (SL_MUTANT(PART_TOO_EARLY,
			    client->holding.cell[order->gpu].evicted_bytes >
				    order->out_bytes,
			    true))
			mask |= 1u << order->gpu;
	}
	return mask;
}

uint64_t sl_node_part(const struct sl_node *node, const struct sl_node_client *client,
	uint32_t gpu, int64_t free_bytes)
{
	uint64_t out = client->holding.cell[gpu].evicted_bytes;
	uint64_t least = sl_max_u64(least_of(node, gpu), client->part_least);

	/* All of it would fit: it waits for what it asks for, and comes as a whole. */
	if (client->order.id || free_bytes <= 0 || (uint64_t)free_bytes >= out ||
		(uint64_t)free_bytes < least || node->now < client->restore_at)
		return 0;
	return (uint64_t)free_bytes;
}

void sl_node_bring_part(
	struct sl_node *node, struct sl_node_client *client, uint32_t gpu, uint64_t bytes)
{
	sl_ledger_set_returning(&node->ledger, &client->holding, gpu,
		SL_MUTANT(PART_TAKES_NO_ROOM, bytes, 0));
	sl_node_touch(node, 1u << gpu);
	client->is_part_in = client->is_exchanged = true;
	sl_node_restore(node, client, gpu, bytes);
}

static const struct sl_demand *demand_of(
	const struct sl_node_client *client, uint64_t sequence)
{
	sl_list_foreach (link, &client->party.demands) {
		const struct sl_demand *demand =
			SL_LIST_ENTRY(link, struct sl_demand, of_client);

		if (demand->sequence == sequence)
			return demand;
	}
	return NULL;
}

void sl_node_left_for(struct sl_node *node, struct sl_node_client *client,
	const struct sl_node_order *order)
{
	/* It may have ended meanwhile. */
	struct sl_node_client *lacker = sl_node_find_client(node, order->lacker);
	const struct sl_demand *demand;

	client->left_for_demand = 0;
	if (!lacker || !lacker->alive)
		return;
	if (!order->lacker_demand) {
		if (sl_node_wants_back(lacker))
			lacker->is_exchanged |= SL_MUTANT(LEFT_FOR_NOBODY, true, false);
		return;
	}
	demand = demand_of(lacker, order->lacker_demand);
	if (!demand || !demand->moving)
		return;
	client->left_for = order->lacker;
	client->left_for_demand = SL_MUTANT(LEFT_FOR_NO_DEMAND, order->lacker_demand, 0);
}

bool sl_node_is_behind(const struct sl_node *node, const struct sl_node_client *client)
{
	const struct sl_node_client *lacker =
		client->left_for_demand ? sl_node_find_client(node, client->left_for)
					: NULL;
	const struct sl_demand *demand =
		lacker ? demand_of(lacker, client->left_for_demand) : NULL;

	return demand && !demand->epoch && !demand->entitled;
}

void sl_node_moves_no_more(struct sl_node *node, const struct sl_demand *demand)
{
	sl_list_foreach (link, &node->out) {
		struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_out);

		if (client->left_for_demand != demand->sequence)
			continue;
		client->left_for_demand = 0;
		node->swap_dirty = true;
	}
}

void sl_node_part_done(struct sl_node_client *client, const struct sl_node_order *order)
{
	if (!order->part)
		return;
	/* Twice as much the next time. */
	client->part_least =
		client->holding.cell[order->gpu].evicted_bytes >= order->out_bytes
			? SL_MUTANT(PART_ASKED_AGAIN, 2 * order->bytes, 0)
			: 0;
}
