/*
 * orders - how a modelled process answers the node: grants, denials, orders to move
 *
 * The order of things is that of runtime/swap/swap.h: captures, gate, drain until the deadline,
 * copy, release, answer. An order is carried through, or given up before anything has moved or
 * between two pieces that are reported.
 */
#include "world.h"

/* Of an order that names none. */
#define DRAIN (2 * SL_S)

static void go_on_after(struct swap_world *w, uint32_t slot, sl_ns after)
{
	struct swap_client *c = &w->client[slot];

	swap_later(w, after,
		(struct sim_later){.kind = LATER_ORDER,
			.slot = slot,
			.id = c->id,
			.number = c->order.serial});
}

static void finish(struct swap_world *w, uint32_t slot, enum sl_swap_outcome outcome,
	enum sl_swap_cause cause)
{
	struct swap_client *c = &w->client[slot];
	struct swap_order o = c->order;

	w->copied_ns += o.copied;
	c->order.phase = ORDER_NONE;
	w->stats.done[outcome]++;
	w->stats.causes[cause]++;
	w->stats.moved_bytes += outcome == SL_SWAP_REFUSED ? 0 : o.moves;
	swap_send(w, slot,
		(struct sl_event){.type = SL_EVENT_DONE,
			.done = {.client = c->id,
				.order = o.id,
				.gpu = o.gpu,
				.outcome = outcome,
				.cause = cause,
				.evicted_bytes = c->evicted[o.gpu],
				.moved_bytes = outcome == SL_SWAP_REFUSED ? 0 : o.moves,
				.span = w->now - o.began}});
	swap_gate(w, slot);
}

static sl_ns copy_time(uint64_t bytes, uint64_t per_second)
{
	return (sl_ns)((double)bytes / (double)per_second * 1e9);
}

static uint64_t out_of(const struct swap_client *c)
{
	uint64_t out = 0;

	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++)
		out += c->evicted[gpu];
	return out;
}

/* Host memory that was made for others. In moods without limits on faults it may fall short of
 * what was set aside. */
static bool has_host(
	const struct swap_world *w, const struct swap_client *own, uint64_t bytes)
{
	for (uint32_t i = 0; i < SWAP_CLIENTS; i++) {
		if (w->client[i].used && &w->client[i] != own)
			bytes += w->client[i].store;
	}
	return !(w->faults || w->scripted) || bytes <= w->rules.pool;
}

/* The daemon makes the client's file as large as its evicted memory and what leaves next. False:
 * the host has no memory left. */
static bool make_store(struct swap_world *w, struct swap_client *c, uint64_t more)
{
	uint64_t out = out_of(c);

	if (c->store >= out + more)
		return true;
	if (!has_host(w, c, out + more))
		return false;
	c->store = out + more;
	swap_step(
		w, (struct sl_event){.type = SL_EVENT_STORE, .store = {c->id, c->store}});
	return true;
}

static bool fails(struct swap_world *w)
{
	return w->faults && !w->drains && sl_rng_one_in(&w->rng, 15);
}

/* What leaves before it tells again. */
static uint64_t piece_of(const struct swap_order *o)
{
	uint64_t left = o->moves - o->moved;
	uint64_t piece = sl_round_up(o->tell, SWAP_CHUNK);

	return piece ? sl_min_u64(piece, left) : left;
}

static void copy_piece(struct swap_world *w, uint32_t slot)
{
	struct swap_order *o = &w->client[slot].order;

	go_on_after(w, slot, copy_time(piece_of(o), w->link_out[o->gpu]));
}

/* Out of the drain: copies begin, or all stays as it is. */
static void move_out(struct swap_world *w, uint32_t slot)
{
	static const enum sl_swap_cause causes[] = {SL_SWAP_CAPTURE, SL_SWAP_BUSY,
		SL_SWAP_NO_HOST, SL_SWAP_DRIVER, SL_SWAP_BROKEN};
	struct swap_client *c = &w->client[slot];
	struct swap_order *o = &c->order;
	uint64_t movable = sl_sub_sat(c->resident[o->gpu], c->held[o->gpu]);

	uint64_t grain = sl_max_u64(c->grain, SWAP_CHUNK);

	o->moves = sl_min_u64(movable,
		o->bytes > movable ? movable : (o->bytes + grain - 1) / grain * grain);
	if (w->lost_mask >> o->gpu & 1) {
		finish(w, slot, SL_SWAP_REFUSED, SL_SWAP_BROKEN);
	} else if (!o->moves) {
		finish(w, slot, SL_SWAP_REFUSED, SL_SWAP_NOTHING);
	} else if (fails(w)) {
		finish(w, slot, SL_SWAP_REFUSED,
			causes[sl_rng_below(&w->rng, SL_ARRAY_LEN(causes))]);
	} else {
		if (fails(w))
			o->moves = sl_max_u64(
				SWAP_CHUNK, o->moves / 2 / SWAP_CHUNK * SWAP_CHUNK);
		if (!make_store(w, c, o->moves)) {
			finish(w, slot, SL_SWAP_REFUSED, SL_SWAP_NO_HOST);
			return;
		}
		o->phase = ORDER_COPIES;
		o->copied = copy_time(o->moves, w->link_out[o->gpu]);
		copy_piece(w, slot);
	}
}

/* A piece has left, and more is to come. */
static void tell(struct swap_world *w, uint32_t slot)
{
	struct swap_client *c = &w->client[slot];
	struct swap_order *o = &c->order;

	if (o->stopped) {
		o->moves = o->moved;
		finish(w, slot, SL_SWAP_PART, SL_SWAP_ABORTED);
		return;
	}
	w->stats.told++;
	swap_send(w, slot,
		(struct sl_event){.type = SL_EVENT_MOVED,
			.moved = {c->id, o->id, o->gpu, c->evicted[o->gpu]}});
	copy_piece(w, slot);
}

static void piece_has_left(struct swap_world *w, uint32_t slot)
{
	struct swap_client *c = &w->client[slot];
	struct swap_order *o = &c->order;
	uint64_t piece = piece_of(o);

	if (c->condition != SL_CONDITION_RUNNING) {
		go_on_after(w, slot, 500 * SL_MS);
		return;
	}
	c->resident[o->gpu] -= piece;
	c->evicted[o->gpu] += piece;
	o->moved += piece;
	if (o->moved < o->moves)
		tell(w, slot);
	else if (o->moves < o->bytes && o->bytes != UINT64_MAX)
		finish(w, slot, SL_SWAP_PART, SL_SWAP_NOTHING);
	else
		finish(w, slot, SL_SWAP_OK, SL_SWAP_NO_CAUSE);
}

static void drain(struct swap_world *w, uint32_t slot)
{
	struct swap_client *c = &w->client[slot];
	struct swap_order *o = &c->order;

	if (c->condition != SL_CONDITION_RUNNING)
		go_on_after(w, slot, 500 * SL_MS);
	else if (c->capturing)
		finish(w, slot, SL_SWAP_REFUSED, SL_SWAP_CAPTURE);
	else if (!c->busy || c->busy_until <= w->now)
		move_out(w, slot);
	else if (w->now >= o->deadline)
		finish(w, slot, SL_SWAP_REFUSED, SL_SWAP_BUSY);
	else
		go_on_after(w, slot, sl_min_u64(o->deadline, c->busy_until) - w->now);
}

void swap_order_goes_on(struct swap_world *w, uint32_t slot)
{
	struct swap_client *c = &w->client[slot];
	struct swap_order *o = &c->order;

	switch (o->phase) {
	case ORDER_DRAINS: drain(w, slot); break;
	case ORDER_COPIES: piece_has_left(w, slot); break;
	case ORDER_RETURNS:
		if (c->condition != SL_CONDITION_RUNNING) {
			go_on_after(w, slot, 500 * SL_MS);
			return;
		}
		c->evicted[o->gpu] -= o->moves;
		c->resident[o->gpu] += o->moves;
		if (o->moves < o->due)
			finish(w, slot, SL_SWAP_PART, SL_SWAP_NO_ROOM);
		else
			finish(w, slot, SL_SWAP_OK, SL_SWAP_NO_CAUSE);
		break;
	default: break;
	}
}

static uint64_t grain_of(const struct swap_client *c)
{
	return c->id % 4 ? SWAP_CHUNK : 256 * SL_MIB;
}

static void begin(struct swap_world *w, uint32_t slot, struct swap_order order)
{
	struct swap_client *c = &w->client[slot];

	if (c->order.phase) {
		swap_fail(w, "client %llu got an order while it carries another out",
			(unsigned long long)c->id);
		return;
	}
	c->order = order;
	c->order.serial = ++w->next_serial;
	c->order.began = w->now;
	c->order.was_idle = !order.is_restore && !c->busy && c->thread == THREAD_RUNS;
	swap_gate(w, slot);
	if (!order.is_restore) {
		drain(w, slot);
		return;
	}
	/* Bytes in whole chunks, which are large for some clients; the last one is what is left. */
	c->order.moves = c->evicted[order.gpu];
	if (order.bytes < c->order.moves)
		c->order.moves = order.bytes / grain_of(c) * grain_of(c);
	c->order.due = c->order.moves;
	if (w->lost_mask >> order.gpu & 1) {
		c->order.moves = 0;
		finish(w, slot, SL_SWAP_REFUSED, SL_SWAP_BROKEN);
		return;
	}
	if (c->order.moves && fails(w)) {
		c->order.moves = sl_rng_one_in(&w->rng, 2)
					 ? 0
					 : c->order.moves / 2 / SWAP_CHUNK * SWAP_CHUNK;
		if (!c->order.moves) {
			finish(w, slot, SL_SWAP_REFUSED, SL_SWAP_NO_ROOM);
			return;
		}
	}
	c->order.copied = copy_time(c->order.moves, w->link_in[order.gpu]);
	go_on_after(w, slot, c->order.copied);
}

static void on_grant(struct swap_world *w, uint32_t slot, const struct sl_action *a)
{
	struct swap_client *c = &w->client[slot];

	if (c->thread != THREAD_ASKS || c->ask != a->grant.ask) {
		swap_send(w, slot,
			(struct sl_event){.type = SL_EVENT_COMMIT,
				.commit = {c->id, a->grant.epoch, 0}});
		return;
	}
	c->thread = THREAD_CREATES;
	c->epoch = a->grant.epoch;
	c->serial = ++w->next_serial;
	swap_later(w, w->scripted ? 0 : swap_span(w, 20 * SL_US, 2 * SL_MS),
		(struct sim_later){.kind = LATER_CREATED,
			.slot = slot,
			.id = c->id,
			.number = c->serial});
}

static void on_deny(struct swap_world *w, uint32_t slot, const struct sl_action *a)
{
	struct swap_client *c = &w->client[slot];

	if (c->thread != THREAD_ASKS || c->ask != a->deny.ask)
		return;
	c->thread = THREAD_RUNS;
	c->denied = true;
	swap_think_after(w, slot, w->scripted ? SL_MS : swap_span(w, SL_MS, SL_S));
}

static void on_trim(struct swap_world *w, uint32_t slot, uint64_t bytes)
{
	struct swap_client *c = &w->client[slot];
	uint64_t out = out_of(c);

	/* Files go as a whole: it has none to give, and says nothing. */
	if (c->one_file && out)
		return;
	if (c->one_file)
		bytes = c->store;
	c->store -= sl_min_u64(bytes, sl_sub_sat(c->store, out));
	swap_send(w, slot,
		(struct sl_event){.type = SL_EVENT_STORE, .store = {c->id, c->store}});
}

void swap_receive(struct swap_world *w, uint32_t slot, const struct sl_action *a)
{
	struct swap_client *c = &w->client[slot];
	bool probed = c->probe != SL_PROBE_OFF;

	switch (a->type) {
	case SL_ACTION_GRANT: on_grant(w, slot, a); break;
	case SL_ACTION_DENY: on_deny(w, slot, a); break;
	case SL_ACTION_EVICT:
		begin(w, slot,
			(struct swap_order){.phase = ORDER_DRAINS,
				.id = a->id,
				.gpu = a->evict.gpu,
				.bytes = a->evict.bytes,
				.tell = a->evict.tell_bytes,
				.deadline = w->now +
					    (a->evict.drain ? sl_min_u64(a->evict.drain,
								      3600 * SL_S)
							    : DRAIN)});
		break;
	case SL_ACTION_RESTORE:
		begin(w, slot,
			(struct swap_order){.phase = ORDER_RETURNS,
				.is_restore = true,
				.id = a->id,
				.gpu = a->restore.gpu,
				.bytes = a->restore.bytes});
		break;
	case SL_ACTION_ABORT:
		if (c->order.phase == ORDER_DRAINS && c->order.id == a->abort.order)
			finish(w, slot, SL_SWAP_REFUSED, SL_SWAP_ABORTED);
		else if (c->order.phase == ORDER_COPIES && c->order.id == a->abort.order)
			c->order.stopped = true;
		break;
	case SL_ACTION_TRIM: on_trim(w, slot, a->trim.bytes); break;
	case SL_ACTION_PROBE:
		c->probe = (enum sl_probe)a->probe.mode;
		if (!probed && c->probe != SL_PROBE_OFF)
			swap_beat(w, slot);
		break;
	default: break;
	}
}
