/*
 * node_swap - orders to move memory to the host and back, and their answers
 *
 * An order is the client's one open memory action, from its EVICT or RESTORE to its DONE. What is
 * told to leave stays counted on the GPU until it is gone, and has its place in the pool from the
 * start; what is told to come back has its room on the GPU from the start, on all GPUs at once, and
 * is brought back on one after the other. Who leaves and who comes is decided elsewhere
 * (node_turns.c, node_park.c, node_warm.c).
 *
 * A refused order makes its client unwilling for a while, twice as long each time: whoever needed
 * the memory then looks for another victim, or for the next resolver.
 */
#include "policy/mutant.h"
#include "policy/node_state.h"

/* Of a client that was told to leave and to stay twice within it: so long it is not told again. */
#define LET_GO_SPAN (10 * SL_MS)
/* Refused: not asked again before, doubling. */
#define REFUSED_FIRST (100 * SL_MS)
#define REFUSED_MOST  (5 * SL_S)
/* Copies that were asked for are waited for so long. */
#define TRIM_WAIT (1 * SL_S)
/* After that their owner is not asked before, doubling. */
#define TRIM_AGAIN_FIRST (2 * SL_S)
#define TRIM_DOUBLINGS   4
/* Moving takes so long, or its process is stopped. */
#define RETURNS_BY (1 * SL_S)
/* A link that was not measured. */
#define LINK_DEFAULT (8 * SL_GIB)

bool sl_node_swaps(const struct sl_node *node)
{
	if (!node->pool.pool_bytes)
		return false;
	for (uint32_t chain = node->chain; chain; chain >>= 4) {
		if ((chain & 15) == SL_RESOLVER_SWAP)
			return true;
	}
	return false;
}

bool sl_node_is_away(const struct sl_node_client *client)
{
	return client->is_out || client->order.id || client->member->parked;
}

static bool has_open_grant(const struct sl_node_client *client)
{
	sl_list_foreach (link, &client->party.demands) {
		const struct sl_demand *demand =
			SL_LIST_ENTRY(link, struct sl_demand, of_client);

		if (demand->epoch && !demand->is_void)
			return true;
	}
	return false;
}

bool sl_node_answers(const struct sl_node_client *client)
{
	return client->alive && !client->untakeable &&
	       client->condition == SL_CONDITION_RUNNING;
}

bool sl_node_may_leave(const struct sl_node *node, const struct sl_node_client *client)
{
	return node->pool.pool_bytes && sl_node_answers(client) && !client->expected &&
	       !client->reports && client->swaps &&
	       SL_MUTANT(EVICTS_NO_SWAP, !(client->member->flags & SL_WORKLOAD_NO_SWAP),
		       true) &&
	       !client->member->stopping && !sl_node_is_going(client);
}

bool sl_node_can_leave(const struct sl_node *node, const struct sl_node_client *client)
{
	return sl_node_may_leave(node, client) && !client->order.id &&
	       SL_MUTANT(EVICTS_UNCOMMITTED, !has_open_grant(client), true);
}

/* --- costs --- */

/* Bytes are below 2^48 and a second has 2^30 ns: the product does not fit into 64 bits. */
static sl_ns span_of(uint64_t bytes, uint64_t bytes_s)
{
	return (sl_ns)((sl_node_wide)bytes * SL_S / (bytes_s ? bytes_s : LINK_DEFAULT));
}

sl_ns sl_node_cost_out(const struct sl_node *node, uint32_t gpu, uint64_t bytes)
{
	return span_of(bytes, node->queue[gpu].out_bytes_s);
}

sl_ns sl_node_cost_in(const struct sl_node *node, uint32_t gpu, uint64_t bytes)
{
	return span_of(bytes, node->queue[gpu].in_bytes_s);
}

/* --- the pool --- */

static uint64_t on_host(const struct sl_node_client *client)
{
	uint64_t bytes = 0;

	for (uint32_t left = client->holding.touched; left; left &= left - 1) {
		const struct sl_ledger_cell *cell =
			&client->holding.cell[__builtin_ctz(left)];

		bytes += cell->evicted_bytes + cell->leaving_bytes;
	}
	return bytes;
}

uint64_t sl_node_copies(const struct sl_node_client *client)
{
	return sl_sub_sat(client->store_bytes, on_host(client));
}

struct sl_node_pool_view sl_node_pool(const struct sl_node *node)
{
	struct sl_node_pool_view view = {.pool_bytes = node->pool.pool_bytes,
		.slack_bytes = node->pool.slack_bytes,
		.evicted_bytes = node->ledger.evicted_bytes,
		.leaving_bytes = node->ledger.leaving_bytes};

	for (const struct sl_index_node *at = sl_index_next(&node->clients, NULL); at;
		at = sl_index_next(&node->clients, at))
		view.copies_bytes += sl_node_copies(
			SL_CONTAINER_OF(at, const struct sl_node_client, index));
	for (uint32_t gpu = 0; gpu < SL_NODE_GPUS_MAX; gpu++)
		view.overlap_bytes += sl_ledger_overlap(&node->ledger, gpu);
	return view;
}

/* Copies of others that were asked for and have not come yet; lost: those that do not come. */
static uint64_t trimming(
	const struct sl_node *node, const struct sl_node_client *client, uint64_t *due)
{
	if (!client->trim_bytes || node->now >= client->trim_until)
		return 0;
	*due = sl_min_u64(*due, client->trim_until);
	return sl_min_u64(client->trim_bytes, sl_node_copies(client));
}

/* It is asked anew as one that never was: what of its host memory it needs is not what it was, or a
 * while is over. */
static void forget_trim(struct sl_node_client *client)
{
	client->trim_bytes = 0;
	client->trim_until = 0;
}

/* What is still to come is not asked for again: it may be on its way. */
static void gave_back(struct sl_node_client *client, uint64_t bytes)
{
	client->trim_bytes = sl_sub_sat(client->trim_bytes, bytes);
	if (!client->trim_bytes)
		forget_trim(client);
}

/* Who did not give what he was asked for in time is asked again once he says something, or has less
 * on the host, or a while later: of files that he needs some of he can give none, and does not say
 * when that ends. */
static bool is_left_alone(struct sl_node *node, struct sl_node_client *client)
{
	sl_ns again;

	if (!client->trim_bytes || node->now < client->trim_until)
		return false;
	again = sl_node_later(
		client->trim_until, TRIM_AGAIN_FIRST << client->trims_in_vain);
	if (SL_MUTANT(TRIM_ASKED_ONCE, node->now < again, true))
		return true;
	forget_trim(client);
	client->trims_in_vain += client->trims_in_vain < TRIM_DOUBLINGS;
	return false;
}

void sl_node_has_less_out(const struct sl_node *node, struct sl_node_client *client)
{
	if (SL_MUTANT(TRIM_ASKED_ONCE, false, true))
		return;
	/* What was asked for in the last second may still come: a client that frees in small pieces
	 * is not asked for each. */
	if (node->now >= client->trim_until)
		forget_trim(client);
	client->trims_in_vain = 0;
}

/* So many more. It is told all that is wanted of it, which takes the place of what it was told
 * before: what was counted anew meanwhile is not given twice. */
static void trim(struct sl_node *node, struct sl_node_client *client, uint64_t bytes)
{
	client->trim_bytes += bytes;
	client->trim_until = sl_node_later(node->now, TRIM_WAIT);
	node->swap_due = sl_min_u64(node->swap_due, client->trim_until);
	sl_node_emit(node, (struct sl_action){.type = SL_ACTION_TRIM,
				   .trim = {.client = client->index.id,
					   .bytes = client->trim_bytes}});
}

/* Clients of this workload, or of all. */
static bool is_of(
	const struct sl_node_client *client, const struct sl_node_member *member)
{
	return !member || client->member == member;
}

/* Asks others for their copies until those that are coming make up for what is missing. */
static uint64_t ask_for_copies(struct sl_node *node, const struct sl_node_client *but,
	const struct sl_node_member *member, uint64_t missing, uint64_t coming)
{
	for (struct sl_index_node *at = sl_index_next(&node->clients, NULL);
		at && coming < missing; at = sl_index_next(&node->clients, at)) {
		struct sl_node_client *client = SL_NODE_ENTRY(at, sl_node_client);
		uint64_t more;

		if (client == but || !is_of(client, member) || !client->alive ||
			is_left_alone(node, client))
			continue;
		more = sl_sub_sat(sl_node_copies(client), client->trim_bytes);
		if (!more)
			continue;
		more = sl_min_u64(more, missing - coming);
		trim(node, client, more);
		coming += more;
	}
	return coming;
}

/* What is made for the workload, or for all, is to stay within most_bytes when so many more of the
 * client's are there. */
static bool trim_within(struct sl_node *node, const struct sl_node_client *client,
	uint64_t bytes, const struct sl_node_member *member, uint64_t most_bytes)
{
	uint64_t made = 0, coming = 0, missing;

	for (struct sl_index_node *at = sl_index_next(&node->clients, NULL); at;
		at = sl_index_next(&node->clients, at)) {
		struct sl_node_client *other = SL_NODE_ENTRY(at, sl_node_client);

		if (!is_of(other, member))
			continue;
		made += sl_max_u64(other->store_bytes,
			on_host(other) + (other == client ? bytes : 0));
		if (other != client)
			coming += trimming(node, other, &node->swap_due);
	}
	missing = sl_sub_sat(made, most_bytes);
	if (SL_MUTANT(COPIES_STAY, !missing, true))
		return true;
	/* What does not come in time is not waited for: the host may have room all the same, and
	 * says so. */
	return ask_for_copies(node, client, member, missing, coming) < missing;
}

bool sl_node_trim_for(struct sl_node *node, struct sl_node_client *client, uint64_t bytes)
{
	if (!trim_within(node, client, bytes, NULL, node->pool.pool_bytes))
		return false;
	return !node->pool_member_bytes ||
	       trim_within(node, client, bytes, client->member, node->pool_member_bytes);
}

/* --- orders --- */

/* Nobody of its workload still waits to come back: the turn begins, unless one is on that it has a
 * part in. */
static void begin_turn(
	struct sl_node *node, const struct sl_node_client *back, sl_ns wants_since)
{
	struct sl_node_member *member = back->member;
	uint64_t had_bytes = member->began_bytes;

	if (SL_MUTANT(TURN_AGAIN, sl_node_joins_turn(node, back, wants_since), false))
		return;
	sl_list_foreach (link, &member->clients) {
		const struct sl_node_client *client =
			SL_LIST_ENTRY(link, struct sl_node_client, of_member);

		if (client->is_out && (client->wants || client->returns))
			return;
	}
	sl_node_begin_turn(node, member);
	/* It goes on growing. */
	if (member->waiting)
		member->began_bytes = had_bytes;
	member->turns++;
}

void sl_node_sort_out(struct sl_node *node, struct sl_node_client *client)
{
	bool is_in = sl_list_is_linked(&client->of_out), has;
	bool was_out = client->is_out;

	client->is_out = 0;
	for (uint32_t left = client->holding.touched; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(left);

		if (client->holding.cell[gpu].evicted_bytes)
			client->is_out |= 1u << gpu;
	}
	if (!client->is_out)
		client->is_part_in = client->is_exchanged = false;
	/* It freed what was there. That it did nothing while it could not run says nothing of
	 * now. */
	if (was_out && !client->is_out && !client->order.id && client->alive) {
		client->resident_at =
			SL_MUTANT(IDLE_SINCE_IT_LEFT, node->now, client->resident_at);
		begin_turn(node, client, sl_node_wants_since(client));
	}
	has = client->is_out || client->order.id;
	if (has && !is_in)
		sl_list_push_tail(&node->out, &client->of_out);
	else if (!has && is_in)
		sl_list_unlink(&client->of_out);
	node->books++;
	node->swap_dirty = true;
}

/* Its demands are served, or no longer. */
static void touch_its(struct sl_node *node, const struct sl_node_client *client)
{
	sl_node_touch(node, client->holding.touched | client->member->account.gpu_mask);
}

void sl_node_evict(struct sl_node *node, struct sl_node_client *client, uint32_t gpu,
	uint64_t bytes, enum sl_reason reason, uint64_t other, sl_ns idle)
{
	/* Nobody can stand at a gate that was open, nor has anything to come back. */
	if (!client->is_out)
		sl_node_set_wants(node, client, false, false);
	sl_ledger_set_leaving(&node->ledger, &client->holding, gpu,
		SL_MUTANT(LEAVING_UNCOUNTED, bytes, 0));
	sl_node_emit(node,
		(struct sl_action){.type = SL_ACTION_EVICT,
			.evict = {.client = client->index.id,
				.gpu = gpu,
				.bytes = bytes,
				.drain = node->evict_drain,
				.reason = reason,
				.workload = client->member->index.id,
				.other = other,
				.tell_bytes = reason == SL_REASON_EVICTED_FOR
						      ? sl_node_piece(node, gpu, bytes)
						      : 0}});
	client->order = (struct sl_node_order){.id = node->next_action,
		.gpu = gpu,
		.out_bytes = client->holding.cell[gpu].evicted_bytes,
		.reason = reason,
		.bytes = bytes,
		.other = other,
		.had_bytes = client->holding.cell[gpu].backing_bytes,
		.since = node->now,
		.idle = idle};
	sl_node_sort_out(node, client);
	touch_its(node, client);
}

void sl_node_abort(struct sl_node *node, struct sl_node_client *client)
{
	if (!client->order.id || client->order.restores || client->order.aborted)
		return;
	client->order.aborted = true;
	/* What it was moving out is counted on no more. */
	sl_node_reconsider(node, 1u << client->order.gpu);
	sl_node_emit(node, (struct sl_action){.type = SL_ACTION_ABORT,
				   .abort = {.client = client->index.id,
					   .order = client->order.id}});
}

void sl_node_restore(
	struct sl_node *node, struct sl_node_client *client, uint32_t gpu, uint64_t bytes)
{
	uint64_t out_bytes = client->holding.cell[gpu].evicted_bytes;

	sl_node_emit(node, (struct sl_action){.type = SL_ACTION_RESTORE,
				   .restore = {.client = client->index.id,
					   .gpu = gpu,
					   .bytes = bytes,
					   .workload = client->member->index.id}});
	client->order = (struct sl_node_order){.id = node->next_action,
		.restores = true,
		.part = bytes < out_bytes,
		.out_bytes = out_bytes,
		.gpu = gpu,
		.bytes = bytes,
		.since = node->now};
	sl_node_sort_out(node, client);
}

bool sl_node_returns_late(const struct sl_node *node, const struct sl_node_client *client)
{
	return client->order.id && client->order.restores &&
	       node->now - client->order.since >= RETURNS_BY;
}

void sl_node_expect(struct sl_node *node, const struct sl_node_client *client,
	bool is_late, sl_ns span)
{
	if (!client->order.id || client->probe != SL_PROBE_OFF)
		return;
	if (is_late)
		node->probes_dirty = true;
	else
		node->swap_due = sl_min_u64(
			node->swap_due, sl_node_later(client->order.since, span));
}

void sl_node_expect_back(struct sl_node *node, const struct sl_node_client *client)
{
	sl_node_expect(node, client, sl_node_returns_late(node, client), RETURNS_BY);
}

/* The next of its GPUs. */
static void restore_next(struct sl_node *node, struct sl_node_client *client)
{
	uint32_t gpu = (uint32_t)__builtin_ctz(client->is_out);

	sl_node_restore(node, client, gpu, client->holding.cell[gpu].evicted_bytes);
}

static void keep_room(struct sl_node *node, struct sl_node_client *client, bool keep)
{
	client->returns = keep;
	node->books++;
	for (uint32_t left = client->is_out; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(left);
		uint64_t bytes = client->holding.cell[gpu].evicted_bytes;

		sl_ledger_set_returning(&node->ledger, &client->holding, gpu,
			keep ? SL_MUTANT(RETURN_TAKES_NO_ROOM, bytes, 0) : 0);
		sl_node_touch(node, 1u << gpu);
	}
}

/* What is measured, or reported late, asks nobody: it may have taken what was kept. Then the client
 * is not brought in beyond what can be shared, but waits in its place until there is room again. */
static bool has_its_room(const struct sl_node *node, const struct sl_node_client *client)
{
	for (uint32_t left = client->is_out; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(left);

		if (sl_ledger_resident(&node->ledger, gpu) >
			sl_ledger_shareable(&node->ledger, gpu))
			return false;
	}
	return true;
}

/* What is known to be on the host of who comes back has its room kept. */
static void keep_rest(struct sl_node *node, struct sl_node_client *client, uint32_t gpu)
{
	if (client->returns)
		sl_ledger_set_returning(&node->ledger, &client->holding, gpu,
			client->holding.cell[gpu].evicted_bytes);
}

void sl_node_bring_back(struct sl_node *node, struct sl_node_client *client)
{
	keep_room(node, client, true);
	restore_next(node, client);
}

void sl_node_forget_swap(struct sl_node *node, struct sl_node_client *client)
{
	sl_list_unlink(&client->of_out);
	client->order.id = 0;
	client->returns = false;
	sl_node_set_wants(node, client, false, false);
	client->is_out = client->told_out = 0;
	client->part_least = 0;
	client->is_part_in = client->is_exchanged = false;
	client->store_bytes = client->trim_bytes = 0;
	client->trims_in_vain = 0;
	node->swap_dirty = true;
}

/* --- answers --- */

static void note_of(struct sl_node *node, const struct sl_node_client *client,
	enum sl_reason reason, const struct sl_node_order *order, uint64_t bytes,
	sl_ns span)
{
	struct sl_node_because note = {.reason = reason,
		.gpu = order->gpu,
		.workload = client->member->index.id,
		.other = order->other,
		.client = client->index.id,
		.bytes = bytes,
		.span = span};

	sl_node_note_because(node, &note);
}

static void back_off(struct sl_node *node, struct sl_node_client *client)
{
	uint32_t doublings = client->refusals < 6 ? client->refusals : 6;
	sl_ns span = sl_min_u64(REFUSED_FIRST << doublings, REFUSED_MOST);

	client->refusals++;
	client->refused_until =
		sl_node_later(node->now, SL_MUTANT(REFUSED_IS_ASKED_AGAIN, span, 0));
}

/* It is as willing as before. But where two looks do not agree it would be told to leave and to
 * stay as fast as it answers. */
static void let_go(struct sl_node *node, struct sl_node_client *client)
{
	if (client->let_go_at && node->now - client->let_go_at < LET_GO_SPAN)
		client->refused_until = sl_max_u64(
			client->refused_until, sl_node_later(node->now, LET_GO_SPAN));
	client->let_go_at = node->now;
}

/* NONE: nothing that lasts was in the way. */
static enum sl_reason refusal_of(uint32_t cause)
{
	switch (cause) {
	case SL_SWAP_ABORTED:
	case SL_SWAP_LOST:
	case SL_SWAP_STOPPED:
	case SL_SWAP_NOTHING: return SL_REASON_NONE;
	case SL_SWAP_CAPTURE: return SL_REASON_EVICT_CAPTURE;
	case SL_SWAP_BUSY: return SL_REASON_EVICT_BUSY;
	case SL_SWAP_NO_HOST: return SL_REASON_EVICT_NO_HOST;
	default: return SL_REASON_EVICT_FAILED;
	}
}

/* Said once in a row of refusals. */
static void note_refusal(struct sl_node *node, struct sl_node_client *client,
	const struct sl_node_order *order, uint32_t cause, sl_ns span)
{
	client->refused_for = refusal_of(cause);
	if (client->refusals)
		return;
	client->refused_since = order->since;
	if (client->refused_for)
		note_of(node, client, client->refused_for, order, order->bytes, span);
}

static void evict_done(struct sl_node *node, struct sl_node_client *client,
	const struct sl_node_order *order, const struct sl_event *event)
{
	const struct sl_ledger_cell *cell = &client->holding.cell[order->gpu];
	uint64_t moved = sl_sub_sat(cell->evicted_bytes, order->out_bytes);
	/* What it freed since then need not be moved. */
	bool is_less = moved || cell->backing_bytes < order->had_bytes;
	bool refused = event->done.outcome != SL_SWAP_OK || !is_less;

	if (moved && order->reason == SL_REASON_EVICTED_FOR)
		note_of(node, client, order->reason, order, moved, event->done.span);
	else if (moved && order->reason == SL_REASON_EVICTED_IDLE)
		note_of(node, client, order->reason, order, moved, order->idle);
	if (moved)
		sl_node_left_for(node, client, order);
	if (!client->is_out)
		sl_node_set_wants(node, client, false, false); /* its gate is open */
	if (!refused) {
		client->refusals = 0;
		return;
	}
	note_refusal(node, client, order, event->done.cause, event->done.span);
	if (event->done.cause != SL_SWAP_ABORTED || !order->aborted)
		back_off(node, client);
	else if (!moved)
		let_go(node, client);
}

/* A demand is not refused while its client waits for a turn; but only the first turn begins its
 * wait anew, or clients that ask in vain would make room for each other without end. */
static void restart_clocks(struct sl_node *node, struct sl_node_client *client)
{
	sl_list_foreach (link, &client->party.demands) {
		struct sl_demand *demand =
			SL_LIST_ENTRY(link, struct sl_demand, of_client);

		if (!demand->returned)
			sl_demand_restart(demand, node->now);
		demand->returned = true;
	}
	node->timers_dirty = true;
}

/* Said of each GPU it was away from, for it was said of each that it left. */
static void note_return(struct sl_node *node, struct sl_node_client *client)
{
	sl_ns span = node->now - sl_min_u64(sl_node_wants_since(client), node->now);

	for (uint32_t left = client->came_back; left; left &= left - 1) {
		struct sl_node_order there = {.gpu = (uint32_t)__builtin_ctz(left)};

		note_of(node, client, SL_REASON_RESTORED, &there,
			client->holding.cell[there.gpu].backing_bytes, span);
	}
	client->came_back = 0;
}

/* turns: that its workload had before its last chunk was back. */
static void is_back(struct sl_node *node, struct sl_node_client *client, uint64_t turns)
{
	sl_ns wants_since = sl_node_wants_since(client);

	note_return(node, client);
	client->returns = false;
	sl_node_set_wants(node, client, false, false);
	client->failures = 0;
	client->part_least = 0;
	client->resident_at = node->now;
	/* What it did before it left says nothing of now. */
	client->idle = 0;
	client->proven = false;
	restart_clocks(node, client);
	if (client->member->turns == turns)
		begin_turn(node, client, wants_since);
}

static void restore_done(struct sl_node *node, struct sl_node_client *client,
	const struct sl_node_order *order, const struct sl_event *event, uint64_t turns)
{
	uint32_t doublings = client->failures < 8 ? client->failures : 8;

	if (event->done.outcome == SL_SWAP_OK)
		client->came_back |= 1u << order->gpu;
	if (event->done.outcome == SL_SWAP_OK && !client->is_out) {
		is_back(node, client, turns);
		return;
	}
	if (event->done.outcome == SL_SWAP_OK && order->part) {
		sl_node_part_done(client, order);
		return;
	}
	if (event->done.outcome == SL_SWAP_OK && !(client->is_out >> order->gpu & 1)) {
		/* Parked or stopped on its way back, or its room was lost: the rest of it stays
		 * where it is. */
		if (client->member->parked || !sl_node_can_come_back(client) ||
			!SL_MUTANT(LOST_ROOM_USED, has_its_room(node, client), true))
			keep_room(node, client, false);
		else
			restore_next(node, client);
		return;
	}
	keep_room(node, client, false);
	/* It has its ordinary place again: who comes before it is not kept waiting for what
	 * fails. */
	client->is_exchanged &= SL_MUTANT(FAILED_KEEPS_PLACE, false, true);
	/* Nothing failed: it is brought back once it goes on. */
	if (event->done.cause == SL_SWAP_STOPPED) {
		client->restore_at = sl_node_later(node->now, SL_NODE_RETRY_FIRST);
		return;
	}
	if (!client->failures && event->done.cause != SL_SWAP_LOST)
		note_of(node, client, SL_REASON_RESTORE_FAILED, order, order->bytes,
			event->done.span);
	client->failures++;
	client->restore_at = node->now + sl_min_u64(SL_NODE_RETRY_FIRST << doublings,
						 SL_NODE_RETRY_MOST * 4);
}

void sl_node_on_done(struct sl_node *node, const struct sl_event *event)
{
	struct sl_node_client *client = sl_node_find_living(node, event->done.client);
	uint32_t gpu = event->done.gpu;
	struct sl_node_order order;
	uint64_t turns;

	if (!client || gpu >= SL_NODE_GPUS_MAX)
		return;
	order = client->order;
	turns = client->member->turns;
	if (event->done.evicted_bytes < client->holding.cell[gpu].evicted_bytes)
		sl_node_has_less_out(node, client);
	sl_ledger_set_evicted(
		&node->ledger, &client->holding, gpu, event->done.evicted_bytes);
	if (event->done.order != order.id || !order.id || order.gpu != gpu) {
		keep_rest(node, client, gpu);
		sl_node_note(node, SL_REASON_STRAY, gpu, client->member->index.id, 0,
			event->done.evicted_bytes);
		sl_node_sort_out(node, client);
		sl_node_released(node, gpu);
		return;
	}
	client->order = (struct sl_node_order){0};
	sl_ledger_set_leaving(&node->ledger, &client->holding, gpu, 0);
	sl_ledger_set_returning(&node->ledger, &client->holding, gpu, 0);
	sl_node_sort_out(node, client);
	sl_node_released(node, gpu);
	touch_its(node, client);
	node->timers_dirty = node->deadlock_dirty = true;
	node->probes_dirty |= client->member->parked;
	if (order.restores)
		restore_done(node, client, &order, event, turns);
	else
		evict_done(node, client, &order, event);
}

void sl_node_on_want(struct sl_node *node, const struct sl_event *event)
{
	struct sl_node_client *client = sl_node_find_living(node, event->want.client);

	if (!client)
		return;
	if (event->want.wants && !client->wants)
		client->wants_since = node->now;
	sl_node_set_wants(node, client, event->want.wants, client->comes_back);
	node->swap_dirty = true;
}

void sl_node_on_store(struct sl_node *node, const struct sl_event *event)
{
	struct sl_node_client *client = sl_node_find_living(node, event->store.client);
	uint64_t bytes = sl_min_u64(event->store.bytes, SL_LEDGER_BYTES_MAX);

	if (!client)
		return;
	if (bytes < client->store_bytes)
		gave_back(client, client->store_bytes - bytes);
	else
		forget_trim(client);
	client->store_bytes = bytes;
	client->trims_in_vain = 0;
	node->swap_dirty = true;
}

void sl_node_on_chunk(struct sl_node *node, const struct sl_event *event)
{
	struct sl_node_client *client = sl_node_find_living(node, event->chunk.client);

	if (!client)
		return;
	client->chunk_bytes = sl_min_u64(event->chunk.bytes, SL_LEDGER_BYTES_MAX);
	node->swap_dirty = true;
}

/* --- reports --- */

void sl_node_on_client_evicted(struct sl_node *node, const struct sl_event *event)
{
	uint32_t gpu = event->client_evicted.gpu;
	struct sl_node_client *client =
		sl_node_find_living(node, event->client_evicted.client);

	if (!client || gpu >= SL_NODE_GPUS_MAX || !node->ledger.gpu[gpu].present)
		return;
	sl_ledger_set_evicted(
		&node->ledger, &client->holding, gpu, event->client_evicted.bytes);
	keep_rest(node, client, gpu);
	client->told_out |= 1u << gpu;
	sl_node_sort_out(node, client);
	sl_node_touch(node, 1u << gpu);
	node->deadlock_dirty = true;
}

void sl_node_reports_out(struct sl_node *node, struct sl_node_client *client)
{
	for (uint32_t left = client->is_out & ~client->told_out; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctz(left);

		sl_ledger_set_evicted(&node->ledger, &client->holding, gpu, 0);
		sl_node_touch(node, 1u << gpu);
	}
	client->told_out = 0;
	client->reports = false;
	/* When it came here, the former daemon knew. */
	if (SL_MUTANT(REPORT_BEGINS_TURN, !client->member->turn_began, true))
		client->member->turn_began = node->now;
	sl_node_sort_out(node, client);
}

/* --- settings --- */

void sl_node_on_pool_size(struct sl_node *node, const struct sl_event *event)
{
	node->pool.pool_bytes =
		sl_min_u64(event->pool_size.pool_bytes, SL_LEDGER_BYTES_MAX);
	node->dirty_mask = UINT32_MAX;
	node->deadlock_dirty = node->timers_dirty = node->probes_dirty = true;
	node->swap_dirty = true;
}

void sl_node_on_link_cost(struct sl_node *node, const struct sl_event *event)
{
	uint32_t gpu = event->link_cost.gpu;

	if (gpu >= SL_NODE_GPUS_MAX)
		return;
	node->queue[gpu].out_bytes_s = event->link_cost.out_bytes_s;
	node->queue[gpu].in_bytes_s = event->link_cost.in_bytes_s;
	node->swap_dirty = true;
}
