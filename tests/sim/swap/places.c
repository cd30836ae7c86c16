/*
 * places - modelled processes leave their GPUs whole, contexts included, and come back
 *
 * The daemon does it, whatever becomes of the process's connection. A process that is away or on
 * its way stands still, as at a closed gate. A daemon that dies leaves the process where it just
 * is; its successor finds it there, or away.
 */
#include "world.h"

bool swap_draw_detach(uint64_t seed)
{
	return (seed * 0x9e3779b97f4a7c15) >> 63;
}

/* What its contexts take, from the start. Only where processes leave with them. */
void swap_make_contexts(struct swap_world *w, uint32_t slot)
{
	struct swap_client *c = &w->client[slot];
	uint32_t mask = w->workload[c->workload].mask;
	/* The reserve is a sixteenth: it pays all of them, except where it is to be too small. */
	uint64_t part = w->mood == SWAP_CHAOS ? 64 : w->mood == SWAP_BUSY ? 128 : 1024;

	if (!w->config.config.detach || w->scripted)
		return;
	for (uint32_t gpu = 0; gpu < w->gpus; gpu++) {
		uint64_t most = w->capacity[gpu] / part / SWAP_CHUNK;

		if (!(mask >> gpu & 1) || !most)
			continue;
		c->hidden[gpu] = (1 + sl_rng_below(&w->rng, most)) * SWAP_CHUNK;
		swap_send(w, slot,
			(struct sl_event){.type = SL_EVENT_HIDDEN,
				.hidden = {c->id, gpu, c->hidden[gpu]}});
	}
}

static bool has_lost(const struct swap_world *w, const struct swap_client *c)
{
	for (uint32_t gpu = 0; gpu < w->gpus; gpu++) {
		if (c->hidden[gpu] && w->lost_mask >> gpu & 1)
			return true;
	}
	return false;
}

void swap_place(struct swap_world *w, uint64_t client, const struct sl_action *a)
{
	struct swap_client *c = swap_find(w, client);
	const struct swap_party *p = swap_party_of(&w->rules, client);
	bool leaves = a->type == SL_ACTION_DETACH;
	uint32_t slot;

	if (!c || !p)
		return;
	slot = (uint32_t)(c - w->client);
	if (c->order.phase || c->place != (leaves ? PLACE_THERE : PLACE_AWAY)) {
		swap_fail(w, "client %llu is told to %s in the middle of something",
			(unsigned long long)client, leaves ? "leave" : "return");
		return;
	}
	/* It takes along what was measured last. */
	for (uint32_t gpu = 0; leaves && gpu < SWAP_GPUS; gpu++)
		c->hidden[gpu] = p->hidden[gpu] + p->paid[gpu];
	c->place = leaves ? PLACE_LEAVES : PLACE_RETURNS;
	c->place_order = a->id;
	c->place_since = w->now;
	swap_gate(w, slot);
	swap_later(w, w->scripted ? 10 * SL_MS : swap_span(w, 5 * SL_MS, SL_S),
		(struct sim_later){.kind = LATER_PLACED,
			.slot = slot,
			.id = c->id,
			.number = a->id});
	if (w->faults && !w->drains && sl_rng_one_in(&w->rng, 20))
		swap_later(w, swap_span(w, SL_MS, SL_S),
			(struct sim_later){.kind = LATER_DIE, .slot = slot, .id = c->id});
}

/* 0: the driver does it. */
static enum sl_swap_cause refuses(struct swap_world *w, const struct swap_client *c)
{
	bool leaves = c->place == PLACE_LEAVES;

	if (has_lost(w, c))
		return SL_SWAP_DRIVER;
	if (leaves && (c->capturing || c->busy))
		return SL_SWAP_BUSY;
	if (w->refuses_places)
		return w->refuses_places;
	if (!w->faults || w->drains || !sl_rng_one_in(&w->rng, 4))
		return SL_SWAP_NO_CAUSE;
	return leaves && sl_rng_one_in(&w->rng, 2) ? SL_SWAP_BUSY : SL_SWAP_DRIVER;
}

void swap_placed(struct swap_world *w, uint32_t slot, uint64_t order)
{
	struct swap_client *c = &w->client[slot];
	bool leaves = c->place == PLACE_LEAVES;
	struct sl_event e = {.type = SL_EVENT_PLACED,
		.placed = {.client = c->id,
			.order = order,
			.span = w->now - c->place_since}};

	if (!order || c->place_order != order)
		return;
	/* A stopped process is waited for, and so is its work, for as long as it may take. */
	if (c->condition != SL_CONDITION_RUNNING ||
		(leaves && c->busy && w->now < c->place_since + 2 * SL_S)) {
		swap_later(w, 200 * SL_MS,
			(struct sim_later){.kind = LATER_PLACED,
				.slot = slot,
				.id = c->id,
				.number = order});
		return;
	}
	e.placed.cause = refuses(w, c);
	if (e.placed.cause)
		e.placed.outcome = SL_SWAP_REFUSED;
	else if (!leaves && w->faults && !w->drains && sl_rng_one_in(&w->rng, 20))
		e.placed.cause = SL_SWAP_BROKEN;
	c->place = leaves == !e.placed.outcome ? PLACE_AWAY : PLACE_THERE;
	c->place_order = 0;
	w->stats.placed[leaves ? 0 : 1] += !e.placed.outcome;
	w->stats.placed[2] += e.placed.outcome != 0;
	swap_step(w, e);
	if (!c->used || c->id != e.placed.client)
		return;
	if (e.placed.cause == SL_SWAP_BROKEN)
		swap_later(w, swap_span(w, SL_MS, SL_S),
			(struct sim_later){.kind = LATER_DIE, .slot = slot, .id = c->id});
	swap_gate(w, slot);
}

/* The next daemon finds it where it was left. */
void swap_find_place(struct swap_world *w, uint32_t slot)
{
	struct swap_client *c = &w->client[slot];

	if (c->place == PLACE_LEAVES || c->place == PLACE_RETURNS)
		c->place = sl_rng_one_in(&w->rng, 2) ? PLACE_AWAY : PLACE_THERE;
	c->place_order = 0;
	for (uint32_t gpu = 0; c->place == PLACE_AWAY && gpu < w->gpus; gpu++) {
		if (c->hidden[gpu])
			swap_step(
				w, (struct sl_event){.type = SL_EVENT_CLIENT_AWAY,
					   .client_away = {c->id, gpu, c->hidden[gpu]}});
	}
}

/* --- other GPUs --- */

/* Equal GPUs; now and then GPUs that are lost, or while it is not away. The numbers come from a
 * generator of their own, so that they do not change the rest of a seed's story. */
uint32_t swap_draw_place(const struct swap_world *w, const struct swap_workload *wl)
{
	struct sl_rng own = {w->rng.state ^ 0x2545f491};
	uint32_t first = (uint32_t)__builtin_ctz(wl->mask) + 1 +
			 (uint32_t)sl_rng_below(&own, w->gpus),
		 mask = 0;
	uint32_t count = (uint32_t)__builtin_popcount(wl->mask);
	enum sl_presence is = sl_node_workload_alone(w->node, wl->id).presence;

	if (!w->detaches || sl_rng_one_in(&own, 4) ||
		(is != SL_PRESENCE_AWAY && !sl_rng_one_in(&own, 8)))
		return 0;
	for (uint32_t i = 0; i < w->gpus; i++) {
		uint32_t gpu = (first + i) % w->gpus;
		bool lost = w->lost_mask >> gpu & 1;

		if (count && w->capacity[gpu] == w->capacity[0] &&
			(!lost || sl_rng_one_in(&own, 2))) {
			mask |= 1u << gpu;
			count--;
		}
	}
	for (uint32_t gpu = 0; gpu < w->gpus; gpu++) {
		if (wl->mask >> gpu & 1 && w->capacity[gpu] != w->capacity[0])
			return 0;
	}
	return count ? 0 : mask;
}

/* Where an event of a process names a GPU; NULL: nowhere. */
static uint32_t *gpu_of(struct sl_event *e)
{
	switch (e->type) {
	case SL_EVENT_CLIENT_REPORT: return &e->client_report.gpu;
	case SL_EVENT_CLIENT_EVICTED: return &e->client_evicted.gpu;
	case SL_EVENT_ASK: return &e->ask.gpu;
	case SL_EVENT_FREED: return &e->freed.gpu;
	case SL_EVENT_HIDDEN: return &e->hidden.gpu;
	case SL_EVENT_HELD: return &e->held.gpu;
	case SL_EVENT_DONE: return &e->done.gpu;
	case SL_EVENT_MOVED: return &e->moved.gpu;
	default: return NULL;
	}
}

/* A process names its GPUs by their ordinals, which stay. */
static void readdress(
	struct swap_world *w, const struct swap_client *c, uint32_t from, uint32_t to)
{
	for (uint32_t i = 0; i < w->later.count; i++) {
		struct swap_message *m = &w->message[w->later.room[i].number];
		uint32_t *gpu;

		if (w->later.room[i].kind != LATER_UP || m->client != c->id)
			continue;
		gpu = gpu_of(&m->event);
		if (gpu && *gpu == from)
			*gpu = to;
	}
}

void swap_go_elsewhere(struct swap_world *w, const struct sl_action *a)
{
	uint32_t from = a->moves.from, to = a->moves.to;

	w->stats.moves++;
	for (uint32_t i = 0; i < SWAP_CLIENTS; i++) {
		struct swap_client *c = &w->client[i];

		if (!c->used || w->workload[c->workload].id != a->moves.workload)
			continue;
		if (c->resident[from] || c->order.phase || c->place_order ||
			(c->hidden[from] && c->place != PLACE_AWAY))
			swap_fail(w,
				"client %llu goes from GPU %u to %u, and is not away",
				(unsigned long long)c->id, from, to);
		c->evicted[to] += c->evicted[from];
		c->hidden[to] += c->hidden[from];
		c->evicted[from] = c->hidden[from] = 0;
		c->gone &= ~(1u << from);
		if (c->ask_gpu == from)
			c->ask_gpu = to;
		readdress(w, c, from, to);
	}
	for (uint32_t i = 0; i < SWAP_WORKLOADS; i++) {
		struct swap_workload *wl = &w->workload[i];

		if (wl->used && wl->id == a->moves.workload)
			wl->mask ^= 1u << from | 1u << to;
	}
}

/* A sample that tells of the time before the move, or of none. */
void swap_measure_away(struct swap_world *w, uint32_t slot, uint32_t gpu)
{
	struct swap_client *c = &w->client[slot];

	swap_step(w, (struct sl_event){.type = SL_EVENT_HIDDEN,
			     .hidden = {c->id, gpu,
				     sl_rng_one_in(&w->rng, 2) ? 0 : c->hidden[gpu]}});
}

/* A process runs only on the GPUs to which its workload is bound. Contexts that are there, or may
 * be: the accounts have room for them. */
void swap_judge_places(struct swap_world *w)
{
	for (uint32_t i = 0; i < SWAP_CLIENTS; i++) {
		const struct swap_client *c = &w->client[i];
		const struct swap_party *p =
			c->used && c->place ? swap_party_of(&w->rules, c->id) : NULL;

		for (uint32_t gpu = 0; c->used && gpu < w->gpus; gpu++) {
			if (c->resident[gpu] &&
				!(w->workload[c->workload].mask >> gpu & 1))
				swap_fail(w,
					"client %llu has memory on GPU %u, to which its "
					"workload is not bound",
					(unsigned long long)c->id, gpu);
		}
		for (uint32_t gpu = 0;
			p && !p->expected && c->place != PLACE_AWAY && gpu < w->gpus;
			gpu++) {
			if (c->hidden[gpu] > p->hidden[gpu] + p->paid[gpu])
				swap_fail(w,
					"GPU %u: contexts of client %llu take %llu, the "
					"accounts have %llu",
					gpu, (unsigned long long)c->id,
					(unsigned long long)c->hidden[gpu],
					(unsigned long long)(p->hidden[gpu] +
							     p->paid[gpu]));
		}
	}
}
