/*
 * programs - what the modelled processes do by themselves: compute, allocate, free, wait, die
 *
 * A process has one thread. It asks for memory until it has what it wants, then computes in pieces
 * with pauses between stretches of them, as its shape says. A submission finds the gate shut while
 * an order is being carried out or anything is on the host. The thread then waits there, and once
 * memory is on the host the node is told (WANT).
 */
#include "world.h"

bool swap_is_out(const struct swap_client *c)
{
	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		if (c->evicted[gpu])
			return true;
	}
	return c->place != PLACE_THERE;
}

void swap_think_after(struct swap_world *w, uint32_t slot, sl_ns after)
{
	struct swap_client *c = &w->client[slot];

	c->serial = ++w->next_serial;
	swap_later(w, after,
		(struct sim_later){.kind = LATER_THINK,
			.slot = slot,
			.id = c->id,
			.number = c->serial});
}

static void want(struct swap_world *w, uint32_t slot, bool wants)
{
	struct swap_client *c = &w->client[slot];

	c->want_told = wants;
	w->stats.wants += wants;
	swap_send(w, slot,
		(struct sl_event){.type = SL_EVENT_WANT, .want = {c->id, wants}});
}

void swap_gate(struct swap_world *w, uint32_t slot)
{
	struct swap_client *c = &w->client[slot];
	bool open = c->order.phase == ORDER_NONE && !swap_is_out(c);

	if (open != c->is_open) {
		if (open)
			c->opened_at = w->now;
		else
			c->open_ns += w->now - c->opened_at;
		c->is_open = open;
	}
	if (open && c->want_told)
		want(w, slot, false);
	if (open && c->thread == THREAD_STANDS) {
		c->thread = THREAD_RUNS;
		swap_think_after(w, slot, 0);
	}
	if (!open && c->thread == THREAD_STANDS && !c->want_told && c->connected &&
		swap_is_out(c))
		want(w, slot, true);
}

/* --- memory --- */

static void send_ask(struct swap_world *w, uint32_t slot)
{
	struct swap_client *c = &w->client[slot];

	swap_send(w, slot,
		(struct sl_event){.type = SL_EVENT_ASK,
			.ask = {c->id, c->ask, c->ask_gpu, c->ask_bytes, c->ask_flags}});
}

static void ask(struct swap_world *w, uint32_t slot, uint32_t gpu, uint64_t bytes)
{
	struct swap_client *c = &w->client[slot];

	c->serial = ++w->next_serial;
	c->thread = THREAD_ASKS;
	c->ask = ++c->next_ask;
	c->ask_gpu = gpu;
	c->ask_bytes = bytes;
	c->ask_flags = w->faults && sl_rng_one_in(&w->rng, 30) ? SL_NODE_ASK_HELD : 0;
	send_ask(w, slot);
}

static void submit(struct swap_world *w, uint32_t slot, sl_ns piece);

/* The driver made it, or refused. */
void swap_created(struct swap_world *w, uint32_t slot)
{
	struct swap_client *c = &w->client[slot];
	const struct swap_workload *wl = &w->workload[c->workload];

	/* Nothing is made on a lost GPU, and the grant was void from then on. */
	if (w->lost_mask >> c->ask_gpu & 1) {
		c->thread = THREAD_RUNS;
		c->denied = true;
		swap_think_after(w, slot, swap_span(w, SL_MS, SL_S));
		return;
	}
	if (c->connected && w->faults && !w->drains && sl_rng_one_in(&w->rng, 40)) {
		c->thread = THREAD_ASKS;
		swap_send(w, slot,
			(struct sl_event){.type = SL_EVENT_CREATE_FAILED,
				.create_failed = {c->id, c->epoch}});
		return;
	}
	c->resident[c->ask_gpu] += c->ask_bytes;
	if (c->ask_flags & SL_NODE_ASK_HELD)
		c->held[c->ask_gpu] += c->ask_bytes;
	c->thread = THREAD_RUNS;
	swap_send(w, slot,
		(struct sl_event){.type = SL_EVENT_COMMIT,
			.commit = {c->id, c->epoch, c->ask_bytes}});
	/* A program that loads piece by piece fills each piece before the next. */
	if (wl->step)
		submit(w, slot, wl->piece);
	swap_think_after(w, slot, wl->step ? wl->piece : 0);
}

void swap_free(struct swap_world *w, uint32_t slot, uint32_t gpu, uint64_t bytes)
{
	struct swap_client *c = &w->client[slot];
	bool evicted = c->evicted[gpu] && (w->scripted || sl_rng_one_in(&w->rng, 2) ||
						  c->resident[gpu] <= c->held[gpu]);
	uint64_t *from = evicted ? &c->evicted[gpu] : &c->resident[gpu];

	/* The control lock is closed while bytes move. */
	if (c->order.phase == ORDER_COPIES || c->order.phase == ORDER_RETURNS || c->place)
		return;
	bytes = sl_min_u64(bytes, evicted ? *from : sl_sub_sat(*from, c->held[gpu]));
	if (!bytes)
		return;
	*from -= bytes;
	swap_send(w, slot,
		(struct sl_event){
			.type = SL_EVENT_FREED, .freed = {c->id, gpu, bytes, evicted}});
	swap_gate(w, slot);
}

/* --- work --- */

static void pulse(struct swap_world *w, uint32_t slot)
{
	struct swap_client *c = &w->client[slot];
	struct sl_event e = {.type = SL_EVENT_PULSE, .pulse = {.client = c->id}};

	if (c->condition != SL_CONDITION_RUNNING || c->probe == SL_PROBE_OFF)
		return;
	/* A thread at the gate wants to work, however long it has had none. */
	if (c->busy)
		e.pulse.busy = sl_max_u64(1, w->now - c->busy_since);
	else if (c->thread != THREAD_STANDS)
		e.pulse.idle = sl_max_u64(1, w->now - c->idle_since);
	e.pulse.proven = e.pulse.idle && c->probe == SL_PROBE_PROVE;
	swap_send(w, slot, e);
}

void swap_beat(struct swap_world *w, uint32_t slot)
{
	struct swap_client *c = &w->client[slot];

	if (c->probe == SL_PROBE_OFF)
		return;
	pulse(w, slot);
	swap_later(w, w->drains ? 5 * SL_S : w->beat,
		(struct sim_later){.kind = LATER_BEAT, .slot = slot, .id = c->id});
}

void swap_quiet(struct swap_world *w, uint32_t slot)
{
	struct swap_client *c = &w->client[slot];

	if (!c->busy || c->endless || w->now < c->busy_until)
		return;
	c->busy = false;
	c->idle_since = w->now;
	if (c->probe != SL_PROBE_OFF)
		swap_later(w, 20 * SL_MS,
			(struct sim_later){.kind = LATER_PROMPT,
				.slot = slot,
				.id = c->id,
				.number = w->now});
}

/* A change is told soon, if it lasts. */
void swap_prompt(struct swap_world *w, uint32_t slot, sl_ns idle_since)
{
	if (!w->client[slot].busy && w->client[slot].idle_since == idle_since)
		pulse(w, slot);
}

sl_ns swap_open(const struct swap_world *w, const struct swap_client *c)
{
	return c->open_ns + (c->is_open ? w->now - c->opened_at : 0);
}

static void submit(struct swap_world *w, uint32_t slot, sl_ns piece)
{
	struct swap_client *c = &w->client[slot];
	bool was_busy = c->busy,
	     is_news = !was_busy && w->now - c->idle_since > 20 * SL_MS;

	if (!was_busy) {
		c->busy = true;
		c->busy_since = w->now;
		c->busy_until = w->now;
	}
	c->busy_until = sl_max_u64(w->now, c->busy_until) + piece;
	swap_later(w, c->busy_until - w->now,
		(struct sim_later){.kind = LATER_QUIET, .slot = slot, .id = c->id});
	if (is_news || w->now - c->told_work > 250 * SL_MS) {
		c->told_work = w->now;
		swap_send(w, slot,
			(struct sl_event){.type = SL_EVENT_WORK, .work = {c->id}});
	}
}

/* --- its next step --- */

/* True: it asked for something or let go of something, and goes on later. */
static bool churns(struct swap_world *w, uint32_t slot, struct swap_workload *wl)
{
	struct swap_client *c = &w->client[slot];
	uint32_t gpu = swap_gpu_of(w, wl->mask);
	uint64_t all = c->resident[gpu] + c->evicted[gpu];

	if (wl->shape == SWAP_HOARDER && c->denied) {
		c->denied = false;
		for (gpu = 0; gpu < SWAP_GPUS; gpu++) {
			swap_free(w, slot, gpu, UINT64_MAX);
			swap_free(w, slot, gpu, UINT64_MAX);
		}
		return false;
	}
	if (wl->shape != SWAP_CHURNER && wl->shape != SWAP_HOARDER)
		return false;
	if (!sl_rng_one_in(&w->rng, 3))
		return false;
	if (wl->shape == SWAP_CHURNER && all && sl_rng_one_in(&w->rng, 2)) {
		swap_free(w, slot, gpu,
			(1 + sl_rng_below(&w->rng, all / SWAP_CHUNK)) * SWAP_CHUNK);
		return false;
	}
	ask(w, slot, gpu,
		(1 + sl_rng_below(&w->rng, wl->size / SWAP_CHUNK)) * SWAP_CHUNK);
	return true;
}

/* True: it asked for some of the memory that it still lacks. */
static bool grows(struct swap_world *w, uint32_t slot, struct swap_workload *wl)
{
	struct swap_client *c = &w->client[slot];

	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		uint64_t has = c->resident[gpu] + c->evicted[gpu];

		if (!(wl->mask >> gpu & 1) || has >= wl->size || c->denied)
			continue;
		if (!w->scripted && sl_rng_one_in(&w->rng, 2))
			ask(w, slot, gpu,
				sl_max_u64(SWAP_CHUNK,
					(wl->size - has) / 2 / SWAP_CHUNK * SWAP_CHUNK));
		else
			ask(w, slot, gpu,
				sl_min_u64(wl->size - has,
					wl->step ? wl->step : UINT64_MAX));
		return true;
	}
	return false;
}

void swap_think(struct swap_world *w, uint32_t slot)
{
	struct swap_client *c = &w->client[slot];
	struct swap_workload *wl = &w->workload[c->workload];
	sl_ns piece = wl->piece;

	c->hasty = c->condition != SL_CONDITION_RUNNING;
	if (c->hasty || w->drains || c->endless)
		return;
	if (wl->shape != SWAP_HOARDER && c->denied && !w->scripted &&
		sl_rng_one_in(&w->rng, 8))
		c->denied = false;
	if (!c->place && (grows(w, slot, wl) || churns(w, slot, wl)))
		return;
	if (!c->is_open) {
		c->serial = ++w->next_serial;
		c->thread = THREAD_STANDS;
		swap_gate(w, slot);
		return;
	}
	if (!w->scripted && w->mood != SWAP_TURNS)
		piece = swap_span(w, piece / 4, piece);
	submit(w, slot, piece);
	if (wl->pause && ++c->left >= wl->pieces) {
		c->left = 0;
		swap_think_after(w, slot,
			piece + (w->scripted ? wl->pause
					     : swap_span(w, wl->pause / 8, wl->pause)));
	} else {
		swap_think_after(w, slot, piece);
	}
}

/* --- coming and going --- */

void swap_join(struct swap_world *w, uint32_t workload)
{
	for (uint32_t i = 0; i < w->clients_most; i++) {
		struct swap_client *c = &w->client[i];

		if (c->used)
			continue;
		*c = (struct swap_client){.used = true,
			.connected = true,
			.swaps = w->scripted || w->mood == SWAP_TURNS ||
				 !sl_rng_one_in(&w->rng, 20),
			.id = ++w->next_id,
			.line = ++w->next_line,
			.workload = workload,
			.one_file = w->faults && !(w->next_id % 3),
			.idle_since = w->now,
			.is_open = true,
			.opened_at = w->now};
		/* The socket's first message is the one that joins: never overtaken. Its GPU is
		 * chosen before. */
		if (!w->scripted && w->mood == SWAP_CHAOS)
			swap_step(w, (struct sl_event){.type = SL_EVENT_WORKLOAD_BEGINS,
					     .workload_begins = {w->workload[workload].id,
						     (1u << w->gpus) - 1}});
		swap_step(w, (struct sl_event){.type = SL_EVENT_CLIENT_JOIN,
				     .client_join = {c->id, w->workload[workload].id, 0,
					     c->swaps}});
		swap_make_contexts(w, i);
		swap_think_after(w, i, w->scripted ? 0 : sl_rng_below(&w->rng, 2 * SL_S));
		return;
	}
}

void swap_report(struct swap_world *w, uint32_t slot)
{
	struct swap_client *c = &w->client[slot];

	/* Work that was begun is finished first, and reported as it is then. */
	if (c->order.phase || c->thread == THREAD_CREATES) {
		swap_later(w, 20 * SL_MS,
			(struct sim_later){
				.kind = LATER_REPORT, .slot = slot, .id = c->id});
		return;
	}
	c->connected = true;
	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		/* A report with no memory left is sent, too: it may have been freed while no line
		 * could say so. */
		if (!(w->workload[c->workload].mask >> gpu & 1))
			continue;
		swap_send(w, slot,
			(struct sl_event){.type = SL_EVENT_CLIENT_REPORT,
				.client_report = {
					c->id, gpu, c->resident[gpu] + c->evicted[gpu]}});
		swap_send(w, slot,
			(struct sl_event){.type = SL_EVENT_CLIENT_EVICTED,
				.client_evicted = {c->id, gpu, c->evicted[gpu]}});
		if (c->held[gpu])
			swap_send(w, slot,
				(struct sl_event){.type = SL_EVENT_HELD,
					.held = {c->id, gpu, c->held[gpu]}});
		if (c->hidden[gpu] && !c->place)
			swap_send(w, slot,
				(struct sl_event){.type = SL_EVENT_HIDDEN,
					.hidden = {c->id, gpu, c->hidden[gpu]}});
	}
	swap_send(w, slot,
		(struct sl_event){.type = SL_EVENT_STORE, .store = {c->id, c->store}});
	swap_send(w, slot,
		(struct sl_event){
			.type = SL_EVENT_CLIENT_REPORTED, .client_reported = {c->id}});
	if (c->thread == THREAD_ASKS)
		send_ask(w, slot);
	swap_gate(w, slot);
}

void swap_exit(struct swap_world *w, uint32_t slot)
{
	struct swap_client *c = &w->client[slot];
	struct swap_client dead = *c;

	c->used = false;
	swap_step(w, (struct sl_event){
			     .type = SL_EVENT_CLIENT_EXIT, .client_exit = {dead.id}});
	for (uint32_t gpu = 0; gpu < w->gpus; gpu++) {
		if (dead.resident[gpu] > SWAP_CHUNK && sl_rng_one_in(&w->rng, 3))
			swap_later(w, swap_span(w, 1 * SL_MS, 50 * SL_MS),
				(struct sim_later){.kind = LATER_RELEASED,
					.id = dead.id,
					.gpu = gpu,
					.number = dead.resident[gpu] / 2});
		swap_later(w, swap_span(w, 50 * SL_MS, SL_S),
			(struct sim_later){
				.kind = LATER_RELEASED, .id = dead.id, .gpu = gpu});
	}
}
