/*
 * trouble - people, faults and the machine, as the modelled programs meet them
 */
#include "world.h"

static uint32_t some_workload(struct swap_world *w)
{
	uint32_t first = (uint32_t)sl_rng_below(&w->rng, SWAP_WORKLOADS);

	for (uint32_t i = 0; i < SWAP_WORKLOADS; i++) {
		uint32_t at = (first + i) % SWAP_WORKLOADS;

		if (w->workload[at].used && w->workload[at].mask)
			return at;
	}
	return UINT32_MAX;
}

static uint32_t some_client(struct swap_world *w)
{
	uint32_t first = (uint32_t)sl_rng_below(&w->rng, SWAP_CLIENTS);

	for (uint32_t i = 0; i < SWAP_CLIENTS; i++) {
		if (w->client[(first + i) % SWAP_CLIENTS].used)
			return (first + i) % SWAP_CLIENTS;
	}
	return UINT32_MAX;
}

static uint64_t some_bytes(struct swap_world *w, uint64_t most)
{
	return sl_rng_below(&w->rng, most / SWAP_CHUNK + 1) * SWAP_CHUNK;
}

/* --- people --- */

void swap_remove(struct swap_world *w, uint32_t slot)
{
	uint64_t id = w->workload[slot].id;

	for (uint32_t i = 0; i < SWAP_CLIENTS; i++) {
		if (w->client[i].used && w->client[i].workload == slot)
			swap_exit(w, i);
	}
	w->workload[slot].used = false;
	swap_step(w, (struct sl_event){
			     .type = SL_EVENT_WORKLOAD_REMOVE, .workload_remove = {id}});
}

static void resume(struct swap_world *w, const struct swap_workload *wl)
{
	w->stats.resumes++;
	swap_step(w, (struct sl_event){.type = SL_EVENT_WORKLOAD_RESUME,
			     .workload_resume = {wl->id, swap_draw_place(w, wl)}});
}

/* The queue looks for a place for what is away. Its numbers are its own. */
static bool resume_away(struct swap_world *w)
{
	struct sl_rng own = {w->rng.state ^ 0x68e31da4};
	uint32_t first = (uint32_t)sl_rng_below(&own, SWAP_WORKLOADS);

	for (uint32_t i = 0; i < SWAP_WORKLOADS; i++) {
		const struct swap_workload *wl =
			&w->workload[(first + i) % SWAP_WORKLOADS];

		if (!wl->used || !wl->parked ||
			sl_node_workload_alone(w->node, wl->id).presence !=
				SL_PRESENCE_AWAY)
			continue;
		if (sl_rng_one_in(&own, 2))
			return false;
		resume(w, wl);
		return true;
	}
	return false;
}

static void park(struct swap_world *w, struct swap_workload *wl)
{
	if (sl_rng_one_in(&w->rng, wl->parked ? 10 : 2)) {
		w->stats.parks++;
		swap_step(w, (struct sl_event){.type = SL_EVENT_WORKLOAD_PARK,
				     .workload_park = {wl->id, 0}});
		return;
	}
	resume(w, wl);
}

static void set(struct swap_world *w, struct swap_workload *wl)
{
	struct sl_event e = {.type = SL_EVENT_WORKLOAD_SET,
		.workload_set = {.workload = wl->id,
			.which = (uint32_t)sl_rng_below(&w->rng, 64),
			.request = {SL_AMOUNT_BYTES, 0,
				some_bytes(w, w->capacity[0] / 3)},
			.limit = {SL_AMOUNT_BYTES, 0, some_bytes(w, w->capacity[0])},
			.priority = (int32_t)sl_rng_below(&w->rng, 3) - 1,
			.flags = sl_rng_one_in(&w->rng, 4) ? SL_WORKLOAD_NO_SWAP : 0,
			.warm_after = sl_rng_one_in(&w->rng, 2) ? 0 : 5 * SL_S}};

	if (w->chains && sl_rng_one_in(&w->rng, 2)) {
		e.workload_set.which |= SL_SET_CHAIN;
		e.workload_set.flags |= swap_draw_chain(w);
	}
	e.workload_set.which |= SL_SET_GRACE;
	e.workload_set.idle_grace = swap_draw_grace(w);
	swap_step(w, e);
}

/* Ctrl-C at the gate, a cancelled demand, or the end of the process. */
static void interrupt(struct swap_world *w, uint32_t slot)
{
	struct swap_client *c = &w->client[slot];

	if (c->thread == THREAD_STANDS && c->want_told) {
		c->thread = THREAD_RUNS;
		c->want_told = false;
		swap_send(w, slot,
			(struct sl_event){.type = SL_EVENT_WANT, .want = {c->id, 0}});
		swap_think_after(w, slot, swap_span(w, SL_MS, 5 * SL_S));
	} else if (c->thread == THREAD_ASKS && c->connected) {
		c->thread = THREAD_RUNS;
		swap_send(w, slot,
			(struct sl_event){
				.type = SL_EVENT_CANCEL, .cancel = {c->id, c->ask}});
		swap_think_after(w, slot, swap_span(w, SL_MS, 5 * SL_S));
	} else if (sl_rng_one_in(&w->rng, 3)) {
		swap_exit(w, slot);
	}
}

void swap_people(struct swap_world *w)
{
	uint32_t at = some_workload(w), slot = some_client(w);

	if (w->drains)
		return;
	swap_later(w, swap_span(w, 100 * SL_MS, (w->detaches ? 2 : 20) * SL_S),
		(struct sim_later){.kind = LATER_PEOPLE});
	if (w->detaches && w->gpus > 1 && resume_away(w))
		return;
	/* Parks are rare otherwise. */
	if (w->detaches && at != UINT32_MAX && sl_rng_one_in(&w->rng, 2)) {
		park(w, &w->workload[at]);
		return;
	}
	if (at == UINT32_MAX || sl_rng_one_in(&w->rng, 8)) {
		swap_arrive_drawn(w);
		return;
	}
	switch (sl_rng_below(&w->rng, 10)) {
	case 0: swap_remove(w, at); break;
	case 1:
	case 2:
		if (w->workload[at].clients_most)
			swap_join(w, at);
		break;
	case 3:
	case 4: set(w, &w->workload[at]); break;
	case 5:
	case 6:
	case 7: park(w, &w->workload[at]); break;
	default:
		if (slot != UINT32_MAX)
			interrupt(w, slot);
	}
}

/* --- faults --- */

void swap_go_on(struct swap_world *w, uint32_t slot)
{
	struct swap_client *c = &w->client[slot];

	if (c->condition != SL_CONDITION_RUNNING) {
		c->condition = SL_CONDITION_RUNNING;
		swap_step(w, (struct sl_event){.type = SL_EVENT_CONDITION,
				     .condition = {c->id, c->condition}});
	}
	c->capturing = false;
	if (c->endless) {
		c->endless = false;
		c->busy_until = w->now;
		swap_quiet(w, slot);
	}
	if (c->order.phase == ORDER_DRAINS)
		swap_order_goes_on(w, slot);
	if (c->thread == THREAD_RUNS)
		swap_think_after(w, slot, SL_MS);
}

/* The process cannot be asked about an order that is in the books, so the daemon's answer is
 * played. A RESTORE that the process may carry out counts as done until its next report. */
void swap_refuse(struct swap_world *w, uint32_t slot, uint64_t order, bool sent)
{
	const struct swap_party *p = swap_party_of(&w->rules, w->client[slot].id);

	if (!p || !order || p->order != order || p->travels)
		return;
	swap_step(w, (struct sl_event){.type = SL_EVENT_DONE,
			     .done = {.client = p->id,
				     .order = p->order,
				     .gpu = p->order_gpu,
				     .outcome = SL_SWAP_REFUSED,
				     .cause = SL_SWAP_LOST,
				     .evicted_bytes = sl_sub_sat(p->evicted[p->order_gpu],
					     p->is_restore ? p->order_bytes : 0)}});
}

void swap_lose_line(struct swap_world *w, uint32_t slot)
{
	struct swap_client *c = &w->client[slot];
	const struct swap_party *p = swap_party_of(&w->rules, c->id);

	c->connected = false;
	c->line = ++w->next_line;
	c->want_told = false;
	swap_step(w, (struct sl_event){.type = SL_EVENT_WANT, .want = {c->id, 0}});
	if (p && p->order && !p->travels)
		swap_refuse(w, slot, p->order, true);
	swap_later(w, swap_span(w, SL_MS, SL_S),
		(struct sim_later){.kind = LATER_REPORT, .slot = slot, .id = c->id});
}

/* A process is stopped, its kernel does not end, or it captures; for a while. */
static void seize(struct swap_world *w, uint32_t slot)
{
	struct swap_client *c = &w->client[slot];

	switch (sl_rng_below(&w->rng, 3)) {
	case 0:
		c->condition = SL_CONDITION_STOPPED +
			       (enum sl_client_condition)sl_rng_below(&w->rng, 3);
		swap_step(w, (struct sl_event){.type = SL_EVENT_CONDITION,
				     .condition = {c->id, c->condition}});
		break;
	case 1:
		if (c->is_open && c->busy) {
			c->endless = true;
			c->busy_until = SL_NS_NEVER;
		}
		break;
	default:
		if (c->is_open)
			c->capturing = true;
	}
	swap_later(w, swap_span(w, 100 * SL_MS, 60 * SL_S),
		(struct sim_later){.kind = LATER_GO_ON, .slot = slot, .id = c->id});
}

/* One process is told to end: it saves its work first, or does not hear of it; SIGKILL ends it. */
static void signal_one(struct swap_world *w, uint32_t slot, uint32_t stage)
{
	struct swap_client *c = &w->client[slot];
	sl_ns takes = 10 * SL_MS;

	if (w->faults && !w->drains && sl_rng_one_in(&w->rng, 12)) {
		swap_later(w, SL_MS,
			(struct sim_later){
				.kind = LATER_NO_SIGNAL, .slot = slot, .id = c->id});
		return;
	}
	if (stage == SL_STOP_TERM) {
		if (c->condition == SL_CONDITION_STOPPED || sl_rng_one_in(&w->rng, 3))
			return;
		takes = swap_span(w, SL_MS, 8 * SL_S);
	}
	swap_later(w, takes,
		(struct sim_later){.kind = LATER_DIE, .slot = slot, .id = c->id});
}

void swap_signal(struct swap_world *w, const struct sl_action *a)
{
	for (uint32_t i = 0; i < SWAP_CLIENTS; i++) {
		struct swap_client *c = &w->client[i];

		if (c->used && (a->stop.client ? c->id == a->stop.client
					       : w->workload[c->workload].id ==
							 a->stop.workload))
			signal_one(w, i, a->stop.stage);
	}
}

static void lose(struct swap_world *w, uint32_t gpu)
{
	w->lost_mask |= 1u << gpu;
	swap_step(w, (struct sl_event){.type = SL_EVENT_GPU_LOST, .gpu_lost = {gpu, 79}});
	for (uint32_t i = 0; i < SWAP_CLIENTS; i++) {
		struct swap_client *c = &w->client[i];

		if (!c->used || !(c->resident[gpu] || c->evicted[gpu] ||
					(c->place && c->hidden[gpu])))
			continue;
		c->gone |= 1u << gpu;
		swap_later(w, swap_span(w, SL_MS, SL_S),
			(struct sim_later){.kind = LATER_DIE, .slot = i, .id = c->id});
	}
	swap_later(w, swap_span(w, 2 * SL_S, 30 * SL_S),
		(struct sim_later){.kind = LATER_BACK, .gpu = gpu});
}

void swap_back(struct swap_world *w, uint32_t gpu)
{
	if (!(w->lost_mask >> gpu & 1))
		return;
	w->lost_mask &= ~(1u << gpu);
	swap_step(w, (struct sl_event){.type = SL_EVENT_GPU_ADD,
			     .gpu_add = {gpu, w->capacity[gpu], w->capacity[gpu] / 16,
				     .fixed = w->fixed >> gpu & 1}});
}

static void measure(struct swap_world *w, uint32_t slot, uint32_t gpu)
{
	struct swap_client *c = &w->client[slot];

	if (sl_rng_one_in(&w->rng, 3)) {
		swap_step(w,
			(struct sl_event){.type = SL_EVENT_UNMANAGED,
				.unmanaged = {gpu,
					some_bytes(w, w->capacity[gpu] /
							      (sl_rng_one_in(&w->rng, 3)
									      ? 3
									      : 16))}});
		return;
	}
	/* No samples are judged while one of its orders is open. */
	if (c->place)
		swap_measure_away(w, slot, gpu);
	if (c->order.phase || c->place || !c->connected)
		return;
	c->hidden[gpu] = some_bytes(w, w->capacity[gpu] / 64);
	swap_send(w, slot,
		(struct sl_event){
			.type = SL_EVENT_HIDDEN, .hidden = {c->id, gpu, c->hidden[gpu]}});
}

static void junk(struct swap_world *w, uint32_t slot, uint32_t gpu)
{
	struct swap_client *c = &w->client[slot];
	struct sl_event e = {.type = SL_EVENT_WANT};

	switch (sl_rng_below(&w->rng, 4)) {
	case 0: e.want.client = w->next_id + 9; break;
	case 1:
		e.type = SL_EVENT_DONE;
		e.done.client = w->next_id + 9;
		e.done.order = sl_rng_below(&w->rng, 100);
		e.done.gpu = (uint32_t)sl_rng_below(&w->rng, 64);
		e.done.outcome = (uint32_t)sl_rng_below(&w->rng, 5);
		e.done.evicted_bytes = some_bytes(w, w->capacity[gpu]);
		break;
	case 2:
		e.type = SL_EVENT_WORKLOAD_RESUME;
		e.workload_resume.workload = w->next_id + 9;
		break;
	default:
		e.type = SL_EVENT_DONE;
		e.done.client = c->id;
		e.done.order = UINT64_MAX; /* never given */
		e.done.gpu = 40;
	}
	swap_step(w, e);
}

void swap_trouble(struct swap_world *w)
{
	uint32_t slot = some_client(w), gpu = (uint32_t)sl_rng_below(&w->rng, w->gpus);

	if (w->drains)
		return;
	swap_later(w, swap_span(w, 100 * SL_MS, 10 * SL_S),
		(struct sim_later){.kind = LATER_TROUBLE});
	if (slot == UINT32_MAX)
		return;
	switch (sl_rng_below(&w->rng, 16)) {
	case 0: swap_restart(w); break;
	case 1:
	case 2:
		swap_step(w, (struct sl_event){.type = SL_EVENT_POOL_SIZE,
				     .pool_size = {some_bytes(w, w->pool)}});
		break;
	case 3: lose(w, gpu); break;
	case 4:
		w->link_out[gpu] = SL_GIB + some_bytes(w, 31 * SL_GIB);
		swap_step(w,
			(struct sl_event){.type = SL_EVENT_LINK_COST,
				.link_cost = {gpu, w->link_out[gpu], w->link_in[gpu]}});
		break;
	case 5:
	case 6:
	case 7:
	case 8: seize(w, slot); break;
	case 9:
	case 10:
	case 11: measure(w, slot, gpu); break;
	case 12: swap_exit(w, slot); break;
	case 13:
		if (w->client[slot].connected && w->client[slot].thread != THREAD_ASKS &&
			w->client[slot].thread != THREAD_CREATES)
			swap_lose_line(w, slot);
		break;
	default: junk(w, slot, gpu);
	}
}

/* --- the drain --- */

void swap_calm(struct swap_world *w)
{
	swap_step(
		w, (struct sl_event){.type = SL_EVENT_POOL_SIZE, .pool_size = {w->pool}});
	for (uint32_t gpu = 0; gpu < w->gpus; gpu++) {
		swap_back(w, gpu);
		swap_step(w, (struct sl_event){
				     .type = SL_EVENT_UNMANAGED, .unmanaged = {gpu, 0}});
	}
	for (uint32_t i = 0; i < SWAP_CLIENTS; i++) {
		struct swap_client *c = &w->client[i];
		bool holds = false;

		if (!c->used)
			continue;
		for (uint32_t gpu = 0; gpu < w->gpus; gpu++)
			holds |= c->held[gpu] > 0;
		/* A workload that cannot be moved may block others for ever: it ends. */
		if (!c->swaps || holds ||
			w->workload[c->workload].flags & SL_WORKLOAD_NO_SWAP) {
			swap_exit(w, i);
			continue;
		}
		swap_go_on(w, i);
	}
}
