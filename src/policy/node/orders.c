/*
 * orders - memory moves to the host and back
 *
 * An order is its client's one open memory action, from its EVICT or RESTORE to its DONE. Leaving
 * bytes count on the GPU until they are gone, and have room reserved in the pool from the start.
 * Returning bytes have room reserved on each of their GPUs while the RESTORE is open; its answer
 * gives back unused room, and the plan decides anew. A refused order is not repeated at once: the
 * back-off doubles each time.
 */
#include "policy/node/internal.h"

#define EVICT_AGAIN_FIRST   (100 * SL_MS)
#define EVICT_AGAIN_MOST    (5 * SL_S)
#define ABORTED_AGAIN       (10 * SL_MS)
#define ABORTED_AGAIN_MOST  (320 * SL_MS)
#define RESTORE_AGAIN_FIRST (20 * SL_MS)
#define RESTORE_AGAIN_MOST  (2 * SL_S)

/* An order and its answer take about 0.2 ms. A piece is what the link moves in ten times that
 * (PIECE_SPAN), but at least the fixed cost of a chunk in bytes (PIECE_LEAST, as in
 * runtime/swap/choose.c). */
#define PIECE_SPAN  (2 * SL_MS)
#define PIECE_LEAST (8 * SL_MIB)
/* In the first and the last piece one direction of the link is idle. If the way in keeps its full
 * speed beside the way out, an exchange takes 1 + 1 / PIECES times the one way. With half speed, as
 * published for an A100, it takes 1.5 + 1 / (2 * PIECES). */
#define PIECES 16
/* A retry comes after a while, and may take longer than that to be answered. */
#define HEARD_WITHIN (2 * SL_S)

/* --- back-offs --- */

void sl_node_back_off(struct sl_node_step *step, struct sl_node_back_off *off,
	sl_ns since, sl_ns first, sl_ns most, enum sl_reason cause)
{
	uint32_t doublings = off->times < 10 ? off->times : 10;

	if (!off->times++)
		off->since = since;
	off->until = sl_node_later(step->now, sl_min_u64(first << doublings, most));
	off->cause = cause;
}

bool sl_node_must_stay(const struct sl_node_client *client, sl_ns now)
{
	return now < client->back_off.until &&
	       client->back_off.cause != SL_REASON_RESTORE_FAILED;
}

bool sl_node_must_wait(const struct sl_node_client *client, sl_ns now)
{
	return now < client->back_off.until && client->back_off.times &&
	       client->back_off.cause == SL_REASON_RESTORE_FAILED;
}

bool sl_node_is_hostless(const struct sl_node_client *client, sl_ns now)
{
	return client->back_off.times && !client->order.id &&
	       client->back_off.cause == SL_REASON_EVICT_NO_HOST &&
	       now < sl_node_later(client->back_off.until, HEARD_WITHIN);
}

/* --- orders --- */

uint64_t sl_node_least_piece(const struct sl_node *node, uint32_t gpu)
{
	sl_ns span = sl_node_cost_out(node, gpu, PIECE_LEAST);

	return span >= PIECE_SPAN ? PIECE_LEAST
				  : PIECE_LEAST * PIECE_SPAN / sl_max_u64(span, 1);
}

static uint64_t piece_of(const struct sl_node *node, uint32_t gpu, uint64_t bytes)
{
	uint64_t piece = sl_max_u64(bytes / PIECES, sl_node_least_piece(node, gpu));

	return bytes < 2 * piece ? 0 : piece;
}

void sl_node_evict(struct sl_node_step *step, struct sl_node_client *client, uint32_t gpu,
	uint64_t bytes, uint64_t other)
{
	struct sl_node *node = step->node;
	bool is_park = other == client->workload->index.id &&
		       sl_node_is_parked(client->workload);
	enum sl_reason reason = is_park ? SL_REASON_PARK_BEGINS
				: other ? SL_REASON_EVICTED_FOR
					: SL_REASON_EVICTED_IDLE;
	struct sl_action action = {.type = SL_ACTION_EVICT,
		.evict = {.client = client->index.id,
			.gpu = gpu,
			.bytes = bytes,
			.drain = node->config.config.evict_drain,
			.reason = reason,
			.workload = client->workload->index.id,
			.other = is_park ? 0 : other,
			.tell_bytes = reason == SL_REASON_EVICTED_FOR
					      ? piece_of(node, gpu, bytes)
					      : 0}};

	/* No thread waits at a gate that was open. */
	if (!sl_node_is_out(client))
		client->wants_since = 0;
	sl_ledger_set_leaving(&node->ledger, &client->holding, gpu,
		SL_MUTANT(LEAVING_UNCOUNTED, bytes, 0));
	client->order = (struct sl_node_order){.id = sl_node_emit(step, action),
		.kind = SL_NODE_EVICT,
		.gpu = gpu,
		.out_bytes = client->holding.cell[gpu].evicted_bytes,
		.since = sl_node_stamp(step),
		.other = other};
}

void sl_node_restore(struct sl_node_step *step, struct sl_node_client *client,
	uint32_t gpu, uint64_t bytes)
{
	struct sl_node *node = step->node;
	bool is_part = bytes < client->holding.cell[gpu].evicted_bytes;
	struct sl_action action = {.type = SL_ACTION_RESTORE,
		.restore = {.client = client->index.id,
			.gpu = gpu,
			.bytes = bytes,
			.workload = client->workload->index.id}};

	sl_each_gpu (at, client->holding.touched) {
		sl_ledger_set_returning(&node->ledger, &client->holding, at,
			is_part ? (at == gpu ? bytes : 0)
				: SL_MUTANT(RETURN_TAKES_NO_ROOM,
					  client->holding.cell[at].evicted_bytes, 0));
	}
	client->order = (struct sl_node_order){.id = sl_node_emit(step, action),
		.kind = SL_NODE_RESTORE,
		.gpu = gpu,
		.out_bytes = client->holding.cell[gpu].evicted_bytes,
		.since = sl_node_stamp(step)};
}

void sl_node_abort(struct sl_node_step *step, struct sl_node_client *client)
{
	client->order.kind = SL_NODE_ABORTED;
	sl_node_emit(step, (struct sl_action){.type = SL_ACTION_ABORT,
				   .abort = {.client = client->index.id,
					   .order = client->order.id}});
}

/* --- answers --- */

static void note_of(struct sl_node_step *step, const struct sl_node_client *client,
	enum sl_reason reason, const struct sl_node_order *order, uint64_t bytes,
	sl_ns span)
{
	uint64_t own = client->workload->index.id;

	sl_node_note_because(
		step, &(struct sl_node_because){.reason = reason,
			      .gpu = order->gpu,
			      .workload = own,
			      .other = order->other == own ? 0 : order->other,
			      .client = client->index.id,
			      .bytes = bytes,
			      .span = span});
}

/* NONE: nothing lasting was in the way. */
static enum sl_reason refusal_of(uint32_t cause)
{
	switch (cause) {
	case SL_SWAP_ABORTED:
	case SL_SWAP_LOST:
	case SL_SWAP_STOPPED:
	case SL_SWAP_NOTHING:
	case SL_SWAP_NO_CAUSE: return SL_REASON_NONE;
	case SL_SWAP_CAPTURE: return SL_REASON_EVICT_CAPTURE;
	case SL_SWAP_BUSY: return SL_REASON_EVICT_BUSY;
	case SL_SWAP_NO_HOST: return SL_REASON_EVICT_NO_HOST;
	default: return SL_REASON_EVICT_FAILED;
	}
}

/* Each further abort within a second makes the next EVICT wait twice as long. Otherwise each plan
 * could undo the last one: with the EVICT open the pool has no room to go on, and without it the
 * pool has (0037, BOUND). */
static void aborted(struct sl_node_step *step, struct sl_node_back_off *off)
{
	sl_ns span = off->times ? 0 : sl_sub_sat(off->until, off->since);
	bool again = span && step->now < sl_node_later(off->until, SL_S);

	span = again ? sl_min_u64(2 * span, ABORTED_AGAIN_MOST) : ABORTED_AGAIN;
	*off = (struct sl_node_back_off){
		.since = step->now, .until = sl_node_later(step->now, span)};
}

static void evict_done(struct sl_node_step *step, struct sl_node_client *client,
	const struct sl_node_order *order, uint64_t bytes, const struct sl_event *event)
{
	uint64_t out = client->holding.cell[order->gpu].evicted_bytes;
	uint64_t moved = sl_sub_sat(out, order->out_bytes);
	enum sl_reason refused = refusal_of(event->done.cause);
	bool is_for_others = order->other && order->other != client->workload->index.id;

	if (moved && is_for_others)
		note_of(step, client, SL_REASON_EVICTED_FOR, order, moved,
			event->done.span);
	else if (moved && !order->other)
		note_of(step, client, SL_REASON_EVICTED_IDLE, order, moved,
			sl_node_idle(client, step->now));
	if (!sl_node_is_out(client)) { /* its gate is open */
		client->wants_since = 0;
		client->told &= ~SL_NODE_COMES_BACK;
	}
	if (event->done.outcome == SL_SWAP_OK && moved) {
		client->back_off = (struct sl_node_back_off){0};
		return;
	}
	if (order->kind == SL_NODE_ABORTED && event->done.cause == SL_SWAP_ABORTED) {
		if (!moved)
			aborted(step, &client->back_off);
		return;
	}
	if (refused && (!client->back_off.times ||
			       client->back_off.cause == SL_REASON_RESTORE_FAILED))
		note_of(step, client, refused, order, bytes, event->done.span);
	sl_node_back_off(step, &client->back_off, order->since, EVICT_AGAIN_FIRST,
		SL_MUTANT(REFUSED_IS_ASKED_AGAIN, EVICT_AGAIN_MOST, 0), refused);
}

void sl_node_is_back(struct sl_node_step *step, struct sl_node_client *client)
{
	client->wants_since = 0;
	client->told &= ~SL_NODE_COMES_BACK;
	client->active_at =
		SL_MUTANT(IDLE_SINCE_IT_LEFT, sl_node_stamp(step), client->active_at);
	/* Its pulses from before it left do not describe it now. */
	client->idle_since = 0;
	client->proven = false;
}

sl_ns sl_node_wanted_since(const struct sl_node_client *client)
{
	sl_ns since = client->wants_since;

	sl_node_each_demand_of (demand, client) {
		if (!demand->epoch && (!since || demand->arrived < since))
			since = demand->arrived;
	}
	return since;
}

static void restore_done(struct sl_node_step *step, struct sl_node_client *client,
	const struct sl_node_order *order, uint64_t bytes, const struct sl_event *event)
{
	const struct sl_ledger_cell *cell = &client->holding.cell[order->gpu];

	if (event->done.outcome == SL_SWAP_OK) {
		sl_ns wanted = sl_node_wanted_since(client);

		client->back_off = (struct sl_node_back_off){0};
		if (!cell->evicted_bytes)
			note_of(step, client, SL_REASON_RESTORED, order,
				cell->backing_bytes, wanted ? step->now - wanted : 0);
		else if (cell->evicted_bytes == order->out_bytes) {
			/* No chunk is this small: ask for more next time; all of it may come at
			 * once. */
			client->chunk_bytes = sl_max_u64(client->chunk_bytes, bytes + 1);
			client->back_off = (struct sl_node_back_off){
				.until = sl_node_later(step->now, RESTORE_AGAIN_FIRST),
				.cause = SL_REASON_RESTORE_FAILED};
		}
		if (!sl_node_is_out(client))
			sl_node_is_back(step, client);
		return;
	}
	if (event->done.cause != SL_SWAP_STOPPED && event->done.cause != SL_SWAP_LOST &&
		(!client->back_off.times ||
			client->back_off.cause != SL_REASON_RESTORE_FAILED))
		note_of(step, client, SL_REASON_RESTORE_FAILED, order, bytes,
			event->done.span);
	sl_node_back_off(step, &client->back_off, order->since, RESTORE_AGAIN_FIRST,
		RESTORE_AGAIN_MOST, SL_REASON_RESTORE_FAILED);
}

/* Gives back its room on every GPU. */
static void close_order(struct sl_node *node, struct sl_node_client *client)
{
	sl_each_gpu (gpu, client->holding.touched) {
		sl_ledger_set_leaving(&node->ledger, &client->holding, gpu, 0);
		sl_ledger_set_returning(&node->ledger, &client->holding, gpu, 0);
	}
	client->order = (struct sl_node_order){0};
}

void sl_node_on_done(struct sl_node_step *step, const struct sl_event *event)
{
	struct sl_node *node = step->node;
	struct sl_node_client *client = sl_node_living(step, event->done.client);
	uint32_t gpu = event->done.gpu;
	struct sl_node_order order;
	uint64_t bytes; /* still to be moved */

	if (!client || gpu >= SL_NODE_GPUS_MAX)
		return;
	order = client->order;
	bytes = client->holding.cell[gpu].leaving_bytes +
		client->holding.cell[gpu].returning_bytes;
	if (event->done.evicted_bytes < client->holding.cell[gpu].evicted_bytes)
		sl_node_trim_anew(step, client);
	sl_ledger_set_evicted(
		&node->ledger, &client->holding, gpu, event->done.evicted_bytes);
	step->plans = true;
	sl_node_released(node, gpu);
	if (event->done.order != order.id || !order.id || order.gpu != gpu ||
		sl_node_is_travelling(client)) {
		sl_node_note(step, SL_REASON_STRAY, gpu, client->workload->index.id, 0,
			event->done.evicted_bytes);
		return;
	}
	close_order(node, client);
	if (order.kind == SL_NODE_RESTORE)
		restore_done(step, client, &order, bytes, event);
	else
		evict_done(step, client, &order, bytes, event);
}

void sl_node_on_moved(struct sl_node_step *step, const struct sl_event *event)
{
	struct sl_node_client *client =
		sl_node_find_client(step->node, event->moved.client);
	uint32_t gpu = event->moved.gpu;
	const struct sl_ledger_cell *cell;
	uint64_t more;

	if (!client || client->stage == SL_NODE_DYING || !client->order.id ||
		client->order.id != event->moved.order ||
		client->order.kind == SL_NODE_RESTORE || client->order.gpu != gpu ||
		sl_node_is_travelling(client)) {
		sl_node_note(step, SL_REASON_STRAY, 0,
			client ? client->workload->index.id : 0, 0,
			event->moved.evicted_bytes);
		return;
	}
	cell = &client->holding.cell[gpu];
	more = sl_sub_sat(event->moved.evicted_bytes, cell->evicted_bytes);
	if (!more)
		return;
	more = sl_min_u64(more, sl_ledger_evictable(cell));
	sl_ledger_set_leaving(&step->node->ledger, &client->holding, gpu,
		sl_sub_sat(cell->leaving_bytes, more));
	sl_ledger_set_evicted(
		&step->node->ledger, &client->holding, gpu, cell->evicted_bytes + more);
	step->plans = true;
}

void sl_node_on_want(struct sl_node_step *step, const struct sl_event *event)
{
	struct sl_node_client *client = sl_node_living(step, event->want.client);
	sl_ns before;

	if (!client)
		return;
	before = client->wants_since;
	if (!event->want.wants && !(client->told & SL_NODE_COMES_BACK))
		client->wants_since = 0;
	else if (event->want.wants && !before)
		client->wants_since = sl_node_stamp(step);
	if (event->want.wants) {
		client->idle_since = 0;
		client->proven = false;
	}
	step->plans |= before != client->wants_since;
}

void sl_node_on_chunk(struct sl_node_step *step, const struct sl_event *event)
{
	struct sl_node_client *client = sl_node_living(step, event->chunk.client);

	if (!client)
		return;
	client->chunk_bytes = sl_min_u64(event->chunk.bytes, SL_LEDGER_BYTES_MAX);
	sl_node_wake(step, sl_node_later(step->now, SL_MS));
}
