/*
 * world_trouble - troubles of programs, people and machines
 *
 * Processes are stopped, traced and fall silent; GPU work does not end; agents answer a PROBE
 * late, never or wrongly; people change and end workloads; administrators change settings; GPUs
 * are lost and come back; strangers take memory. A process told to end does so after a while,
 * or does not care; killed, it always ends.
 */
#include "world.h"

#include <string.h>

static const uint32_t weights[TROUBLE_COUNT] = {
#define X(NAME, weight, text) [TROUBLE_##NAME] = weight,
	WORLD_TROUBLES(X)
#undef X
};

static void later_for(struct world *w, const struct world_client *c, enum world_kind kind,
	sl_ns least, sl_ns most)
{
	world_later(w, world_span(w, least, most),
		(struct sim_later){
			.kind = kind, .slot = (uint32_t)(c - w->client), .id = c->id});
}

static struct world_client *some_client(struct world *w)
{
	uint32_t at = (uint32_t)sl_rng_below(&w->rng, WORLD_CLIENTS);

	for (uint32_t i = 0; i < WORLD_CLIENTS; i++) {
		struct world_client *c = &w->client[(at + i) % WORLD_CLIENTS];

		if (c->used)
			return c;
	}
	return NULL;
}

static struct world_workload *some_workload(struct world *w)
{
	uint32_t at = (uint32_t)sl_rng_below(&w->rng, WORLD_WORKLOADS);

	for (uint32_t i = 0; i < WORLD_WORKLOADS; i++) {
		struct world_workload *wl = &w->workload[(at + i) % WORLD_WORKLOADS];

		if (wl->used)
			return wl;
	}
	return NULL;
}

/* --- GPU work, and reports of it --- */

void world_work(struct world *w, uint32_t slot)
{
	struct world_client *c = &w->client[slot];

	if (!c->busy_since) {
		c->busy_since = w->now;
		if (c->probe != SL_PROBE_OFF)
			later_for(w, c, LATER_PULSE, 10 * SL_US, SL_MS);
	}
	if (!c->endless)
		world_later(w, world_span(w, SL_MS, 50 * w->pace),
			(struct sim_later){.kind = LATER_IDLE,
				.slot = slot,
				.id = c->id,
				.number = c->busy_since});
	world_step(w, (struct sl_event){.type = SL_EVENT_WORK, .work = {c->id}});
	world_react(w);
}

void world_work_ends(struct world *w, const struct sim_later *later)
{
	struct world_client *c = &w->client[later->slot];

	if (!c->used || c->id != later->id || c->endless ||
		c->busy_since != later->number)
		return;
	c->busy_since = 0;
	c->idle_since = w->now;
	if (c->probe != SL_PROBE_OFF)
		later_for(w, c, LATER_PULSE, 10 * SL_US, SL_MS);
}

/* An agent that was told to PROVE knows what is finished; one that only watches does not. */
static struct sl_event pulse_of(const struct world *w, const struct world_client *c)
{
	struct sl_event e = {.type = SL_EVENT_PULSE, .pulse = {.client = c->id}};

	if (c->busy_since)
		e.pulse.busy = w->now - c->busy_since;
	else
		e.pulse.idle = w->now - c->idle_since;
	e.pulse.proven = !c->busy_since && c->probe == SL_PROBE_PROVE;
	return e;
}

void world_pulse(struct world *w, uint32_t slot, bool again)
{
	struct world_client *c = &w->client[slot];

	if (c->probe == SL_PROBE_OFF)
		return;
	if (again)
		later_for(w, c, LATER_BEAT, 500 * SL_MS, 8 * SL_S);
	if (c->condition != SL_CONDITION_RUNNING ||
		(w->faults && sl_rng_one_in(&w->rng, 10)))
		return; /* the process does not answer, or the answer was lost */
	world_step(w, pulse_of(w, c));
	if (sl_rng_one_in(&w->rng, 50))
		world_step(w, pulse_of(w, c));
	world_react(w);
}

void world_on_probe(struct world *w, const struct sl_action *a)
{
	struct world_client *c = world_find(w, a->probe.client);

	if (!c)
		return;
	if (c->probe == SL_PROBE_OFF && a->probe.mode != SL_PROBE_OFF)
		later_for(w, c, LATER_BEAT, 500 * SL_MS, 8 * SL_S);
	c->probe = (enum sl_probe)a->probe.mode;
	if (c->probe != SL_PROBE_OFF && !sl_rng_one_in(&w->rng, 10))
		later_for(w, c, LATER_PULSE, 10 * SL_US, 2 * SL_S);
}

/* --- processes --- */

static void change_condition(struct world *w)
{
	struct world_client *c = some_client(w);
	struct sl_event e = {.type = SL_EVENT_CONDITION};

	if (!c)
		return;
	if (c->condition != SL_CONDITION_RUNNING && !sl_rng_one_in(&w->rng, 4))
		c->condition = SL_CONDITION_RUNNING;
	else
		c->condition =
			(enum sl_client_condition)sl_rng_below(&w->rng, SL_CONDITIONS);
	if (c->termed && c->condition == SL_CONDITION_RUNNING)
		later_for(w, c, LATER_DIE, 10 * SL_US, SL_S);
	e.condition.client = sl_rng_one_in(&w->rng, 20) ? w->next_id + 9 : c->id;
	e.condition.condition = c->condition;
	if (sl_rng_one_in(&w->rng, 30))
		e.condition.condition = 77;
	world_step(w, e);
	world_react(w);
}

static void change_endless(struct world *w)
{
	struct world_client *c = some_client(w);

	if (!c)
		return;
	c->endless = !c->endless;
	if (c->endless) {
		world_work(w, (uint32_t)(c - w->client));
		return;
	}
	c->busy_since = 0;
	c->idle_since = w->now;
	if (c->probe != SL_PROBE_OFF)
		later_for(w, c, LATER_PULSE, 10 * SL_US, SL_MS);
}

static void stray_pulse(struct world *w)
{
	struct world_client *c = some_client(w);
	struct sl_event e = {.type = SL_EVENT_PULSE};

	if (!c)
		return;
	e = pulse_of(w, c);
	if (sl_rng_one_in(&w->rng, 4))
		e.pulse.client = w->next_id + 9;
	/* Longer idle than the machine is up, or idle and busy at once. */
	if (c->shape == WORLD_LIAR && sl_rng_one_in(&w->rng, 2)) {
		e.pulse.idle = sl_rng_next(&w->rng) >> sl_rng_below(&w->rng, 64);
		e.pulse.busy = sl_rng_next(&w->rng) >> sl_rng_below(&w->rng, 64);
		e.pulse.proven = (uint8_t)sl_rng_below(&w->rng, 3);
	}
	world_step(w, e);
	world_react(w);
}

/* SIGTERM of a stopped process waits until it is continued; SIGKILL does not wait. */
static void signal_client(struct world *w, struct world_client *c, uint32_t stage)
{
	if (stage == SL_STOP_KILL) {
		later_for(w, c, LATER_DIE, 10 * SL_US, 100 * SL_MS);
		return;
	}
	if (c->deaf)
		return;
	c->termed = true;
	if (c->condition == SL_CONDITION_RUNNING)
		later_for(w, c, LATER_DIE, 10 * SL_US, 20 * SL_S);
}

void world_on_stop(struct world *w, const struct sl_action *a)
{
	for (uint32_t i = 0; i < WORLD_CLIENTS; i++) {
		struct world_client *c = &w->client[i];
		bool meant = a->stop.client
				     ? c->id == a->stop.client
				     : w->workload[c->workload].id == a->stop.workload;

		if (!c->used || !meant)
			continue;
		if (w->faults && sl_rng_one_in(&w->rng, 10))
			world_step(w, (struct sl_event){.type = SL_EVENT_STOP_FAILED,
					      .stop_failed = {c->id}});
		else
			signal_client(w, c, a->stop.stage);
	}
}

/* --- people --- */

struct sl_bounds world_bounds(struct world *w)
{
	struct sl_bounds b = {0};

	if (!sl_rng_one_in(&w->rng, 4))
		return b;
	if (sl_rng_one_in(&w->rng, 2))
		b.request = world_amount(w);
	if (sl_rng_one_in(&w->rng, 2))
		b.limit = world_amount(w);
	b.has_priority = sl_rng_one_in(&w->rng, 2);
	b.priority = (int32_t)sl_rng_below(&w->rng, 3) - 1;
	b.workloads = (uint32_t)sl_rng_below(&w->rng, 5);
	return b;
}

static void set_workload(struct world *w)
{
	struct world_workload *wl = some_workload(w);
	struct sl_event e = {.type = SL_EVENT_WORKLOAD_SET};

	if (!wl)
		return;
	e.workload_set.workload = sl_rng_one_in(&w->rng, 20) ? w->next_id + 9 : wl->id;
	e.workload_set.which = (uint32_t)sl_rng_below(&w->rng, 32);
	e.workload_set.request = world_amount(w);
	e.workload_set.limit = world_amount(w);
	e.workload_set.priority = (int32_t)sl_rng_below(&w->rng, 3) - 1;
	e.workload_set.flags = NO_PRIORITY ? 0 : (uint32_t)sl_rng_below(&w->rng, 4);
	e.workload_set.wait_max = NO_PRIORITY || sl_rng_one_in(&w->rng, 2)
					  ? 0
					  : world_span(w, SL_S, 60 * SL_S);
	e.workload_set.bounds = world_bounds(w);
	w->set_event = e;
	world_step(w, e);
	world_react(w);
}

static void stop_workload(struct world *w)
{
	struct world_workload *wl = some_workload(w);
	struct sl_event e = {.type = SL_EVENT_WORKLOAD_STOP};

	if (!wl || NO_STOP)
		return;
	e.workload_stop.workload = sl_rng_one_in(&w->rng, 10) ? w->next_id + 9 : wl->id;
	e.workload_stop.grace =
		sl_rng_one_in(&w->rng, 4) ? 0 : world_span(w, 10 * SL_MS, 30 * SL_S);
	world_step(w, e);
	world_react(w);
}

static uint32_t some_chain(struct world *w)
{
	static const uint32_t chains[] = {0, SL_CHAIN(SL_RESOLVER_WAIT, 0, 0),
		SL_CHAIN(SL_RESOLVER_WAIT, 0, 0),
		SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0),
		SL_CHAIN(SL_RESOLVER_PRIORITY, 0, 0),
		SL_CHAIN(SL_RESOLVER_PRIORITY, SL_RESOLVER_WAIT, 0),
		SL_CHAIN(SL_RESOLVER_PRIORITY, SL_RESOLVER_WAIT, 0),
		SL_CHAIN(SL_RESOLVER_WAIT, SL_RESOLVER_PRIORITY, 0),
		SL_CHAIN(SL_RESOLVER_WAIT, SL_RESOLVER_PRIORITY, 0),
		SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_PRIORITY, SL_RESOLVER_WAIT),
		SL_CHAIN(SL_RESOLVER_SWAP, 0, 0)};

	if (NO_PRIORITY)
		return SL_CHAIN(SL_RESOLVER_WAIT, 0, 0);
	return chains[sl_rng_below(&w->rng, SL_ARRAY_LEN(chains))];
}

void world_configure(struct world *w)
{
	/* Each wait also from the far ends: a head that keeps at once, a short patience. */
	sl_ns head_pass =
		sl_rng_one_in(&w->rng, 8) ? 0 : world_span(w, 50 * SL_MS, 2 * SL_S);

	w->config = (struct sl_event){.type = SL_EVENT_CONFIG,
		.config = {.wait_max = world_span(w, 2 * SL_S, 60 * SL_S),
			.head_pass = head_pass,
			.idle_wait = world_span(w, 100 * SL_MS, 1 * SL_S),
			.recover_wait = 2 * SL_S,
			.chain = some_chain(w),
			.stop_idle = sl_rng_one_in(&w->rng, 4)
					     ? 0
					     : world_span(w, 100 * SL_MS, 60 * SL_S),
			.stop_grace = sl_rng_one_in(&w->rng, 8)
					      ? 0
					      : world_span(w, 10 * SL_MS, 20 * SL_S),
			.untakeable_after =
				NO_UNTAKEABLE || sl_rng_one_in(&w->rng, 6)
					? 0
					: world_span(w, 500 * SL_MS, 60 * SL_S),
			.last_resort =
				NO_UNTAKEABLE ? 0 : (uint8_t)sl_rng_below(&w->rng, 2),
			.placement = NO_PACK ? 0 : (uint8_t)sl_rng_below(&w->rng, 2),
			.unmanaged =
				NO_STRANGERS ? 0 : (uint8_t)sl_rng_below(&w->rng, 3)}};
}

/* --- machines --- */

static void lose(struct world *w)
{
	uint32_t gpu = world_gpu(w);

	if (NO_LOST || !w->faults || w->lost_mask >> gpu & 1 ||
		!sl_rng_one_in(&w->rng, 3))
		return;
	w->lost_mask |= 1u << gpu;
	/* The memory being created fails: the driver says so. */
	for (uint32_t i = 0; i < WORLD_CLIENTS; i++) {
		for (uint32_t t = 0; t < WORLD_THREADS; t++)
			w->client[i].thread[t].is_void |=
				w->client[i].thread[t].gpu == gpu;
	}
	world_later(w, world_span(w, SL_S, 60 * SL_S),
		(struct sim_later){.kind = LATER_BACK, .gpu = gpu});
	world_step(
		w, (struct sl_event){.type = SL_EVENT_GPU_LOST, .gpu_lost = {gpu, 79}});
	world_react(w);
}

void world_back(struct world *w, uint32_t gpu)
{
	w->lost_mask &= ~(1u << gpu);
	world_step(w, (struct sl_event){.type = SL_EVENT_GPU_ADD,
			      .gpu_add = {gpu, w->capacity[gpu], w->capacity[gpu] / 16}});
	world_react(w);
}

/* --- strangers --- */

static void tell_stranger(struct world *w, const struct world_stranger *s)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < WORLD_STRANGERS; i++)
		sum += w->stranger[i].id && w->stranger[i].gpu == s->gpu
			       ? w->stranger[i].bytes
			       : 0;
	world_step(w, (struct sl_event){.type = SL_EVENT_STRANGER,
			      .stranger = {s->id, s->gpu, s->bytes}});
	world_step(w, (struct sl_event){
			      .type = SL_EVENT_UNMANAGED, .unmanaged = {s->gpu, sum}});
	world_react(w);
}

static void change_stranger(struct world *w)
{
	struct world_stranger *s = &w->stranger[sl_rng_below(&w->rng, WORLD_STRANGERS)];

	if (!s->id) {
		s->id = ++w->next_id;
		s->gpu = world_gpu(w);
		s->deaf = sl_rng_one_in(&w->rng, 3);
	}
	s->bytes = sl_rng_one_in(&w->rng, 3)
			   ? 0
			   : sl_rng_below(&w->rng,
				     w->capacity[s->gpu] /
					     (sl_rng_one_in(&w->rng, 6) ? 2 : 16));
	tell_stranger(w, s);
	if (!s->bytes)
		s->id = 0;
}

void world_stranger_dies(struct world *w, uint32_t slot)
{
	struct world_stranger *s = &w->stranger[slot];

	if (!s->id)
		return;
	s->bytes = 0;
	tell_stranger(w, s);
	s->id = 0;
}

void world_on_stop_stranger(struct world *w, const struct sl_action *a)
{
	bool kill = a->stop_stranger.stage == SL_STOP_KILL;

	for (uint32_t i = 0; i < WORLD_STRANGERS; i++) {
		if (w->stranger[i].id != a->stop_stranger.stranger ||
			(w->stranger[i].deaf && !kill))
			continue;
		world_later(w, world_span(w, SL_MS, kill ? SL_S : 20 * SL_S),
			(struct sim_later){.kind = LATER_STRANGER_DIES,
				.slot = i,
				.id = w->stranger[i].id});
	}
}

/* --- */

void world_trouble(struct world *w)
{
	uint32_t sum = 0, which = 0;
	uint64_t at;

	world_later(w, world_span(w, 5 * w->pace, 1000 * w->pace),
		(struct sim_later){.kind = LATER_TROUBLE});
	for (uint32_t i = 0; i < TROUBLE_COUNT; i++)
		sum += weights[i];
	for (at = sl_rng_below(&w->rng, sum); at >= weights[which]; which++)
		at -= weights[which];
	switch ((enum world_trouble)which) {
	case TROUBLE_CONDITION: change_condition(w); break;
	case TROUBLE_ENDLESS: change_endless(w); break;
	case TROUBLE_PULSE: stray_pulse(w); break;
	case TROUBLE_SET: set_workload(w); break;
	case TROUBLE_STOP: stop_workload(w); break;
	case TROUBLE_LOST: lose(w); break;
	case TROUBLE_STRANGER: change_stranger(w); break;
	case TROUBLE_CONFIG:
		world_configure(w);
		world_step(w, w->config);
		world_react(w);
		break;
	default: break;
	}
}
