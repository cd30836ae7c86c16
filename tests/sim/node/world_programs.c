/*
 * world_programs - what programs do: arrive, ask, create, free, lie, die
 *
 * A program has one to three threads. A thread that asked is blocked until it is answered. So a
 * single-threaded program that waits does nothing else: it holds its memory, and can deadlock with
 * others. The next step of a program depends on its shape; a program may die at any moment.
 */
#include "world.h"

#include <string.h>

static const uint32_t shape_weight[WORLD_SHAPE_COUNT] = {
#define X(NAME, weight, text) [WORLD_##NAME] = weight,
	WORLD_SHAPES(X)
#undef X
};

static enum world_shape random_shape(struct world *w)
{
	uint32_t sum = 0, shape = 0;
	uint64_t at;

	for (uint32_t i = 0; i < WORLD_SHAPE_COUNT; i++)
		sum += shape_weight[i];
	for (at = sl_rng_below(&w->rng, sum); at >= shape_weight[shape]; shape++)
		at -= shape_weight[shape];
	return (enum world_shape)shape;
}

struct world_client *world_find(struct world *w, uint64_t id)
{
	for (uint32_t i = 0; i < WORLD_CLIENTS; i++) {
		if (w->client[i].used && w->client[i].id == id)
			return &w->client[i];
	}
	return NULL;
}

static void think_later(
	struct world *w, const struct world_client *c, sl_ns least, sl_ns most)
{
	world_later(w, world_span(w, least, most),
		(struct sim_later){.kind = LATER_THINK,
			.slot = (uint32_t)(c - w->client),
			.id = c->id});
}

/* --- workloads --- */

struct sl_amount world_amount(struct world *w)
{
	struct sl_amount a = {SL_AMOUNT_UNSET, 0, 0};

	switch (sl_rng_below(&w->rng, 5)) {
	case 0:
	case 1:
		a.kind = SL_AMOUNT_FRACTION;
		a.value = sl_rng_between(&w->rng, 1, 20) * SL_AMOUNT_WHOLE / 20;
		break;
	case 2:
		a.kind = SL_AMOUNT_BYTES;
		a.value = sl_rng_between(&w->rng, 0, 6000) * SL_MIB;
		break;
	case 3:
		a.kind = SL_AMOUNT_FRACTION;
		a.value = sl_rng_between(&w->rng, 1, SL_AMOUNT_WHOLE / 3);
		break;
	default: break;
	}
	return a;
}

static uint32_t owned_by(const struct world *w, uint32_t owner)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < WORLD_WORKLOADS; i++)
		count += w->workload[i].used && w->workload[i].owner == owner;
	return count;
}

static void add_workload(struct world *w)
{
	struct world_workload *wl = w->workload;
	uint32_t count = 1;

	while (wl < w->workload + WORLD_WORKLOADS && wl->used)
		wl++;
	if (wl == w->workload + WORLD_WORKLOADS)
		return;
	*wl = (struct world_workload){.id = ++w->next_id,
		.priority = (int32_t)sl_rng_below(&w->rng, 3) - 1,
		.owner = (uint32_t)sl_rng_below(&w->rng, 3),
		.flags = !NO_PRIORITY && sl_rng_one_in(&w->rng, 3)
				 ? (uint32_t)sl_rng_below(&w->rng, 4)
				 : 0,
		.wait_max = !NO_PRIORITY && sl_rng_one_in(&w->rng, 4)
				    ? world_span(w, SL_S, 60 * SL_S)
				    : 0,
		.shape = random_shape(w)};
	if (wl->shape == WORLD_GANG || sl_rng_one_in(&w->rng, 4))
		count = (uint32_t)sl_rng_between(&w->rng, 0, 3);
	world_step(w,
		(struct sl_event){.type = SL_EVENT_WORKLOAD_ADD,
			.workload_add = {.workload = wl->id,
				.request = world_amount(w),
				.limit = world_amount(w),
				.gpu_count = count,
				.gpu_mask = sl_rng_one_in(&w->rng, 3)
						    ? (uint32_t)sl_rng_next(&w->rng)
						    : UINT32_MAX,
				.priority = wl->priority,
				.owned = owned_by(w, wl->owner) + 1,
				.flags = wl->flags,
				.wait_max = wl->wait_max,
				.bounds = world_bounds(w),
				.compute_pm =
					sl_rng_one_in(&w->rng, 8)
						? (uint32_t)(sl_rng_next(&w->rng) % 1001)
						: 0}});
	world_react(w);
}

static void remove_workload(struct world *w, uint32_t at)
{
	uint64_t id = w->workload[at].id;

	w->workload[at].used = false;
	world_step(w, (struct sl_event){
			      .type = SL_EVENT_WORKLOAD_REMOVE, .workload_remove = {id}});
	world_react(w);
}

void world_arrive(struct world *w)
{
	uint32_t used = 0, clients = 0;

	world_later(w, world_span(w, w->pace, 2000 * w->pace),
		(struct sim_later){.kind = LATER_ARRIVE});
	for (uint32_t i = 0; i < WORLD_WORKLOADS; i++) {
		bool lives = false;

		for (uint32_t c = 0; c < WORLD_CLIENTS; c++)
			lives |= w->client[c].used && w->client[c].workload == i;
		if (!w->workload[i].used)
			continue;
		used++;
		/* One that has ended is removed; at times one that still runs. */
		if (sl_rng_one_in(&w->rng, lives ? 60 : 3))
			remove_workload(w, i);
	}
	for (uint32_t i = 0; i < WORLD_CLIENTS; i++)
		clients += w->client[i].used;
	if (used < w->workloads_most)
		add_workload(w);
	else if (clients < w->clients_most) {
		uint32_t at = (uint32_t)sl_rng_below(&w->rng, WORLD_WORKLOADS);

		if (w->workload[at].used)
			world_join(w, at, false, ++w->next_id);
	}
}

/* --- clients --- */

void world_join(struct world *w, uint32_t workload, bool expected, uint64_t id)
{
	struct world_client *c = w->client;

	while (c < w->client + WORLD_CLIENTS && c->used)
		c++;
	if (c == w->client + WORLD_CLIENTS)
		return;
	*c = (struct world_client){.used = true,
		.connected = true,
		.deaf = sl_rng_one_in(&w->rng, 4),
		.idle_since = w->now,
		.id = id,
		.workload = workload,
		.shape = w->workload[workload].shape,
		.threads = (uint32_t)sl_rng_between(
			&w->rng, 1, sl_rng_one_in(&w->rng, 3) ? WORLD_THREADS : 1)};
	/* Often one thread for each GPU, so that it waits on several at once. */
	if (c->shape == WORLD_GANG && sl_rng_one_in(&w->rng, 2))
		c->threads = WORLD_THREADS;
	world_step(w, (struct sl_event){.type = SL_EVENT_CLIENT_JOIN,
			      .client_join = {id, w->workload[workload].id, expected}});
	think_later(w, c, SL_MS, 10 * w->pace);
}

void world_exit(struct world *w, uint32_t slot)
{
	struct world_client *c = &w->client[slot];
	struct shadow_client *s;
	uint64_t id = c->id;

	c->used = false;
	world_step(
		w, (struct sl_event){.type = SL_EVENT_CLIENT_EXIT, .client_exit = {id}});
	s = shadow_client(&w->shadow, id);
	for (uint32_t gpu = 0; s && gpu < SHADOW_GPUS; gpu++) {
		sl_ns slow = world_span(
			w, SL_MS, sl_rng_one_in(&w->rng, 10) ? 30 * SL_S : SL_S);
		struct sim_later later = {.kind = LATER_RELEASE,
			.id = id,
			.gpu = gpu,
			.number = s->dying[gpu] / 3};

		if (!s->dying[gpu])
			continue;
		if (sl_rng_one_in(&w->rng, 2))
			world_later(w, slow / 2, later);
		later.number = 0;
		world_later(w, slow, later);
	}
	world_react(w);
}

static void ask_as(struct world *w, struct world_client *c, struct world_thread *t,
	uint32_t gpu, uint64_t bytes, uint32_t flags)
{
	t->state = THREAD_WAITS;
	t->ask = ++c->next_ask;
	t->gpu = gpu;
	t->is_void = false;
	t->bytes = bytes;
	t->flags = flags;
	if (sl_rng_one_in(&w->rng, 40))
		world_later(w, world_span(w, SL_MS, 10 * SL_S),
			(struct sim_later){
				.kind = LATER_CANCEL, .id = c->id, .number = t->ask});
	world_step(w, (struct sl_event){.type = SL_EVENT_ASK,
			      .ask = {c->id, t->ask, gpu, bytes, flags}});
	world_react(w);
}

/* At times for arrays, pools and the like. */
static void ask(struct world *w, struct world_client *c, struct world_thread *t,
	uint32_t gpu, uint64_t bytes)
{
	ask_as(w, c, t, gpu, bytes, sl_rng_one_in(&w->rng, 4) ? SL_NODE_ASK_HELD : 0);
}

/* An export: some of its memory cannot be moved any more. */
static void hold(
	struct world *w, struct world_client *c, struct world_thread *t, uint32_t gpu)
{
	uint64_t bytes = c->bytes[gpu] - c->held[gpu];

	if (sl_rng_one_in(&w->rng, 2))
		bytes = sl_rng_below(&w->rng, bytes + 1);
	if (c->shape == WORLD_LIAR)
		bytes = sl_rng_next(&w->rng) >> (1 + sl_rng_below(&w->rng, 62));
	if (bytes)
		ask_as(w, c, t, gpu, bytes, SL_NODE_ASK_HELD | SL_NODE_ASK_THERE);
}

static void tell_held(struct world *w, const struct world_client *c, uint32_t gpu)
{
	uint64_t bytes = c->held[gpu];

	if (c->shape == WORLD_LIAR && sl_rng_one_in(&w->rng, 3))
		bytes = sl_rng_next(&w->rng) >> sl_rng_below(&w->rng, 64);
	world_step(
		w, (struct sl_event){.type = SL_EVENT_HELD, .held = {c->id, gpu, bytes}});
	world_react(w);
}

/* Exports are closed again. */
static void let_go(struct world *w, struct world_client *c, uint32_t gpu)
{
	c->held[gpu] =
		sl_rng_one_in(&w->rng, 2) ? 0 : sl_rng_below(&w->rng, c->held[gpu] + 1);
	tell_held(w, c, gpu);
}

/* Sizes from a few pages to all a workload may hold; whole chunks and odd ones. */
static uint64_t random_size(struct world *w, uint64_t limit, uint64_t parts)
{
	uint64_t bytes = sl_rng_below(&w->rng, limit / parts + 1);

	return sl_rng_one_in(&w->rng, 4) ? bytes + 1 : sl_round_up(bytes + 1, 2 * SL_MIB);
}

static uint32_t pick_gpu(struct world *w, uint32_t mask)
{
	uint32_t nth;

	if (!mask)
		return 0;
	nth = (uint32_t)sl_rng_below(&w->rng, (uint32_t)__builtin_popcount(mask));
	while (nth--)
		mask &= mask - 1;
	return (uint32_t)__builtin_ctz(mask);
}

static void free_some(struct world *w, struct world_client *c, uint32_t gpu, bool all)
{
	uint64_t bytes = all ? c->bytes[gpu] : sl_rng_below(&w->rng, c->bytes[gpu] + 1);

	if (!bytes)
		return;
	c->bytes[gpu] -= bytes;
	world_step(w,
		(struct sl_event){.type = SL_EVENT_FREED, .freed = {c->id, gpu, bytes}});
	/* Held memory is freed last, and told a moment later. */
	if (c->held[gpu] > c->bytes[gpu]) {
		c->held[gpu] = c->bytes[gpu];
		tell_held(w, c, gpu);
	}
	world_react(w);
}

static void work(struct world *w, struct world_client *c)
{
	world_work(w, (uint32_t)(c - w->client));
}

static void lie(struct world *w, struct world_client *c, uint32_t gpu)
{
	uint64_t any = sl_rng_next(&w->rng) >> sl_rng_below(&w->rng, 64);
	struct sl_event e = {.type = SL_EVENT_TIME};

	switch (sl_rng_below(&w->rng, 8)) {
	case 0:
		e = (struct sl_event){.type = SL_EVENT_FREED, .freed = {c->id, gpu, any}};
		break;
	case 1:
		e = (struct sl_event){.type = SL_EVENT_COMMIT,
			.commit = {c->id, sl_rng_below(&w->rng, w->shadow.last_epoch + 3),
				any}};
		break;
	case 2:
		e = (struct sl_event){.type = SL_EVENT_CREATE_FAILED,
			.create_failed = {
				c->id, sl_rng_below(&w->rng, w->shadow.last_epoch + 3)}};
		break;
	case 3: /* the same ask again, with another size */
		e = (struct sl_event){.type = SL_EVENT_ASK,
			.ask = {c->id, c->next_ask, gpu, 1 + (any >> 1)}};
		break;
	case 4:
		e = (struct sl_event){.type = SL_EVENT_ASK,
			.ask = {c->id, ++c->next_ask, (uint32_t)(any % 40),
				any % 2 ? 0 : any}};
		break;
	case 5:
		e = (struct sl_event){
			.type = SL_EVENT_RELEASED, .released = {c->id, gpu, 0}};
		break;
	case 6:
		e = (struct sl_event){
			.type = SL_EVENT_CANCEL, .cancel = {c->id, any % 50}};
		break;
	default:
		e = (struct sl_event){.type = SL_EVENT_CLIENT_REPORT,
			.client_report = {c->id, gpu, any % (w->capacity[gpu] + 1)}};
	}
	world_step(w, e);
	world_react(w);
}

static void act(struct world *w, struct world_client *c, struct world_thread *t)
{
	const struct world_workload *wl = &w->workload[c->workload];
	uint32_t gpu = pick_gpu(w, wl->mask);
	bool holds = c->bytes[gpu] > 0;

	if (c->bytes[gpu] > c->held[gpu] && sl_rng_one_in(&w->rng, 8)) {
		hold(w, c, t, gpu);
		return;
	}
	if (c->held[gpu] && sl_rng_one_in(&w->rng, 12)) {
		let_go(w, c, gpu);
		return;
	}
	switch (c->shape) {
	case WORLD_HOLDER:
		if (holds)
			work(w, c);
		else
			ask(w, c, t, gpu, random_size(w, wl->limit, 1));
		break;
	case WORLD_SERVER:
	case WORLD_FORKER:
		if (c->shape == WORLD_FORKER && sl_rng_one_in(&w->rng, 30) && wl->used)
			world_join(w, c->workload, false, ++w->next_id);
		else if (holds && sl_rng_one_in(&w->rng, 2))
			free_some(w, c, gpu, sl_rng_one_in(&w->rng, 3));
		else if (sl_rng_one_in(&w->rng, 3))
			work(w, c);
		else
			ask(w, c, t, gpu, random_size(w, wl->limit, 8));
		break;
	case WORLD_BURSTY:
		if (holds && sl_rng_one_in(&w->rng, 3))
			free_some(w, c, gpu, true);
		else if (holds && sl_rng_one_in(&w->rng, 2))
			work(w, c);
		else
			ask(w, c, t, gpu, random_size(w, wl->limit, 2));
		break;
	case WORLD_HOARDER:
		if (c->full)
			work(w, c);
		else
			ask(w, c, t, gpu, random_size(w, wl->limit, 3));
		break;
	case WORLD_GANG:
		/* All GPUs of a round first, in the program's order; then free all. */
		gpu = pick_gpu(w, wl->mask & ~c->gang);
		if (c->gang == wl->mask) {
			c->gang = 0;
			for (gpu = 0; gpu < SHADOW_GPUS; gpu++)
				free_some(w, c, gpu, true);
		} else {
			c->gang |= 1u << gpu;
			ask(w, c, t, gpu, random_size(w, wl->limit, 2));
		}
		break;
	default:
		if (sl_rng_one_in(&w->rng, 2))
			lie(w, c, gpu);
		else
			ask(w, c, t, gpu, random_size(w, wl->limit, 3));
	}
}

void world_think(struct world *w, uint32_t slot)
{
	struct world_client *c = &w->client[slot];
	struct world_thread *t = c->thread;

	if (!c->connected)
		return;
	if (sl_rng_one_in(&w->rng, c->shape == WORLD_HOARDER ? 60 : 250)) {
		world_exit(w, slot);
		return;
	}
	think_later(w, c, w->pace, 100 * w->pace);
	if (c->condition == SL_CONDITION_STOPPED || c->condition == SL_CONDITION_TRACED)
		return;
	while (t < c->thread + c->threads && t->state != THREAD_FREE)
		t++;
	if (t < c->thread + c->threads)
		act(w, c, t);
}

/* So much of its grant exists now, or is held. */
static void made(struct world_client *c, const struct world_thread *t, uint64_t used)
{
	if (!(t->flags & SL_NODE_ASK_THERE))
		c->bytes[t->gpu] += used;
	if (t->flags)
		c->held[t->gpu] = sl_min_u64(c->held[t->gpu] + used, c->bytes[t->gpu]);
}

void world_created(struct world *w, const struct sim_later *later)
{
	struct world_client *c = &w->client[later->slot];
	struct world_thread *t = &c->thread[later->gpu];
	uint64_t used;

	if (!c->used || c->id != later->id || t->state != THREAD_CREATES ||
		t->epoch != later->number)
		return;
	if (c->shape == WORLD_LIAR && sl_rng_one_in(&w->rng, 6))
		return; /* never says */
	if (t->is_void && sl_rng_one_in(&w->rng, 2)) {
		/* It created some of it, or says that the creation failed. */
		t->state = THREAD_FREE;
		world_step(w, (struct sl_event){.type = SL_EVENT_COMMIT,
				      .commit = {c->id, t->epoch,
					      sl_rng_below(&w->rng, 2) * t->bytes}});
		world_react(w);
		return;
	}
	if (t->is_void || w->refuses_until[t->gpu] > w->now ||
		(w->faults && sl_rng_one_in(&w->rng, 60))) {
		t->state = THREAD_WAITS;
		world_step(w, (struct sl_event){.type = SL_EVENT_CREATE_FAILED,
				      .create_failed = {c->id, t->epoch}});
		world_react(w);
		return;
	}
	used = sl_rng_one_in(&w->rng, 12) ? sl_rng_below(&w->rng, t->bytes + 1)
					  : t->bytes;
	if (t->flags & SL_NODE_ASK_THERE && sl_rng_one_in(&w->rng, 20)) {
		/* Nothing was granted for it, and it says that the creation failed. */
		t->state = THREAD_WAITS;
		world_step(w, (struct sl_event){.type = SL_EVENT_CREATE_FAILED,
				      .create_failed = {c->id, t->epoch}});
		world_react(w);
		return;
	}
	made(c, t, used);
	t->state = THREAD_FREE;
	if (c->shape == WORLD_LIAR && sl_rng_one_in(&w->rng, 4))
		used += sl_rng_below(&w->rng, SL_GIB);
	world_step(w, (struct sl_event){.type = SL_EVENT_COMMIT,
			      .commit = {c->id, t->epoch, used}});
	world_react(w);
}

/* After a restart: the memory it holds, then the demands of its waiting threads. */
void world_report(struct world *w, uint32_t slot)
{
	struct world_client *c = &w->client[slot];
	bool asks_first = sl_rng_one_in(&w->rng, 4);

	c->connected = true;
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < c->threads && (round == 0) == asks_first; i++) {
			struct world_thread *t = &c->thread[i];

			if (t->state != THREAD_WAITS)
				continue;
			world_step(w, (struct sl_event){.type = SL_EVENT_ASK,
					      .ask = {c->id, t->ask, t->gpu, t->bytes,
						      t->flags}});
		}
		if ((round == 0) == asks_first)
			continue;
		for (uint32_t i = 0; i < c->threads; i++) {
			if (c->thread[i].state != THREAD_CREATES)
				continue;
			/* Created while no daemon listened: part of the report. */
			made(c, &c->thread[i], c->thread[i].bytes);
			c->thread[i].state = THREAD_FREE;
		}
		for (uint32_t gpu = 0; gpu < SHADOW_GPUS; gpu++) {
			if (c->bytes[gpu])
				world_step(w,
					(struct sl_event){.type = SL_EVENT_CLIENT_REPORT,
						.client_report = {
							c->id, gpu, c->bytes[gpu]}});
			if (c->held[gpu])
				tell_held(w, c, gpu);
		}
		world_step(w, (struct sl_event){.type = SL_EVENT_CLIENT_REPORTED,
				      .client_reported = {c->id}});
	}
	world_react(w);
	if (c->used)
		think_later(w, c, SL_MS, 10 * w->pace);
}

/* Events that name unknown ids; a spurious tick; the exit of a client that is never heard
 * of again. */
void world_junk(struct world *w)
{
	uint64_t any = sl_rng_below(&w->rng, w->next_id + 3);
	uint32_t slot = (uint32_t)sl_rng_below(&w->rng, WORLD_CLIENTS);
	struct sl_event e = {.type = SL_EVENT_TIME};

	world_later(w, world_span(w, 10 * w->pace, 1000 * w->pace),
		(struct sim_later){.kind = LATER_JUNK});
	switch (sl_rng_below(&w->rng, 8)) {
	case 6:
		e = (struct sl_event){
			.type = SL_EVENT_HELD, .held = {any, (uint32_t)(any % 40), any}};
		break;
	case 0:
		e = (struct sl_event){
			.type = SL_EVENT_CLIENT_EXIT, .client_exit = {w->next_id + 9}};
		break;
	case 1:
		e = (struct sl_event){.type = SL_EVENT_WORKLOAD_REMOVE,
			.workload_remove = {w->next_id + 9}};
		break;
	case 2:
		e = (struct sl_event){.type = SL_EVENT_CLIENT_JOIN,
			.client_join = {any, w->next_id + 9, 0}};
		break;
	case 3:
		e = (struct sl_event){
			.type = SL_EVENT_ASK, .ask = {w->next_id + 9, any, 0, any}};
		break;
	case 4:
		if (w->workload[slot % WORLD_WORKLOADS].used)
			e = (struct sl_event){.type = SL_EVENT_WORKLOAD_ADD,
				.workload_add = {
					.workload =
						w->workload[slot % WORLD_WORKLOADS].id,
					.gpu_mask = UINT32_MAX}};
		break;
	case 5:
		if (w->client[slot].used) {
			world_exit(w, slot);
			return;
		}
		break;
	default: break;
	}
	world_step(w, e);
	world_react(w);
}

/* --- answers --- */

static struct world_thread *thread_of(struct world_client *c, uint64_t ask_id)
{
	for (uint32_t i = 0; c && i < c->threads; i++) {
		if (c->thread[i].state == THREAD_WAITS && c->thread[i].ask == ask_id)
			return &c->thread[i];
	}
	return NULL;
}

static void on_grant(struct world *w, const struct sl_action *a)
{
	struct world_client *c = world_find(w, a->grant.client);
	struct world_thread *t = thread_of(c, a->grant.ask);

	if (!t)
		return; /* a liar's demand: it never creates nor commits */
	t->state = THREAD_CREATES;
	t->epoch = a->grant.epoch;
	t->bytes = a->grant.bytes;
	world_later(w, world_span(w, 10 * SL_US, 10 * SL_MS),
		(struct sim_later){.kind = LATER_CREATED,
			.slot = (uint32_t)(c - w->client),
			.gpu = (uint32_t)(t - c->thread),
			.id = c->id,
			.number = t->epoch});
}

static void on_deny(struct world *w, const struct sl_action *a)
{
	struct world_client *c = world_find(w, a->deny.client);
	struct world_thread *t = thread_of(c, a->deny.ask);

	if (!t)
		return;
	t->state = THREAD_FREE;
	c->full = true;
	/* As frameworks do: drop the cache and try again, give up, or die of it. */
	if (sl_rng_one_in(&w->rng, 2))
		free_some(w, c, t->gpu, sl_rng_one_in(&w->rng, 2));
	else if (sl_rng_one_in(&w->rng, 8))
		world_exit(w, (uint32_t)(c - w->client));
}

/* Only the named values change; the program keeps its old view of its limit. */
static void on_set_done(
	struct world *w, const struct sl_action *a, const struct sl_event *e)
{
	for (uint32_t i = 0; i < WORLD_WORKLOADS; i++) {
		struct world_workload *wl = &w->workload[i];

		if (!wl->used || wl->id != a->set_done.workload)
			continue;
		wl->request = a->set_done.request_bytes;
		wl->limit = a->set_done.limit_bytes;
		wl->priority = a->set_done.priority;
		if (e->workload_set.which & SL_SET_FLAGS)
			wl->flags = e->workload_set.flags;
		if (e->workload_set.which & SL_SET_WAIT)
			wl->wait_max = e->workload_set.wait_max;
	}
}

static void on_admit(struct world *w, const struct sl_action *a)
{
	for (uint32_t i = 0; i < WORLD_WORKLOADS; i++) {
		struct world_workload *wl = &w->workload[i];

		if (wl->id != a->admit.workload)
			continue;
		wl->used = true;
		wl->mask = a->admit.gpu_mask;
		wl->request = a->admit.request_bytes;
		wl->limit = a->admit.limit_bytes;
		world_join(w, i, false, ++w->next_id);
		return;
	}
}

void world_react(struct world *w)
{
	/* Reactions make further steps, and those reactions: the queue is worked off by the
	 * outermost call only, in order. */
	static bool busy;

	if (busy)
		return;
	busy = true;
	for (uint32_t i = 0; i < w->reactions; i++) {
		const struct sl_action a = w->reaction[i];

		if (a.type == SL_ACTION_GRANT)
			on_grant(w, &a);
		else if (a.type == SL_ACTION_DENY)
			on_deny(w, &a);
		else if (a.type == SL_ACTION_ADMIT)
			on_admit(w, &a);
		else if (a.type == SL_ACTION_SET_DONE)
			on_set_done(w, &a, &w->set_event);
		else if (a.type == SL_ACTION_STOP)
			world_on_stop(w, &a);
		else if (a.type == SL_ACTION_STOP_STRANGER)
			world_on_stop_stranger(w, &a);
		else if (a.type == SL_ACTION_PROBE)
			world_on_probe(w, &a);
	}
	w->reactions = 0;
	busy = false;
}
