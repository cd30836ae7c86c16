/*
 * world - time, episodes, the machine's side: measurements, faults, a daemon's death
 *
 * Events wait in a queue by time (later.h). The node's WAKE_AT comes first when it is due. The
 * simulation gives it no other help, so a deadline that it does not ask for is missed here as it
 * would be in the daemon.
 */
#include "world.h"

#include <stdio.h>
#include <string.h>

/* --- events to come --- */

void world_later(struct world *w, sl_ns after, struct sim_later later)
{
	later.at = w->now + after;
	if (!sim_later_put(&w->later, later))
		shadow_fail(&w->shadow, "the simulation has no room for what is to come");
}

sl_ns world_span(struct world *w, sl_ns least, sl_ns most)
{
	return sl_rng_span(&w->rng, least, most);
}

/* --- one event --- */

static void on_action(void *context, const struct sl_action *a)
{
	struct world *w = context;

	sl_trace_action(&w->trace, w->now, w->stats.events, a);
	shadow_action(&w->shadow, a);
	switch (a->type) {
	case SL_ACTION_GRANT: w->stats.grants++; break;
	case SL_ACTION_DENY: w->stats.denies[a->deny.reason]++; break;
	case SL_ACTION_REFUSE: w->stats.refusals[a->refuse.reason]++; break;
	case SL_ACTION_NOTE: w->stats.notes[a->note.reason]++; return;
	case SL_ACTION_ADMIT: w->stats.admitted++; break;
	case SL_ACTION_SET_DONE: w->stats.set++; break;
	case SL_ACTION_PROBE: w->stats.probes++; break;
	case SL_ACTION_STOP:
		if (a->stop.stage == SL_STOP_TERM)
			w->stats.terms[a->stop.reason]++;
		else
			w->stats.kills[a->stop.reason]++;
		break;
	case SL_ACTION_STOP_STRANGER: w->stats.strangers_stopped++; break;
	default: return;
	}
	if (w->reactions < SL_ARRAY_LEN(w->reaction))
		w->reaction[w->reactions++] = *a;
	else
		shadow_fail(&w->shadow, "the simulation has no room for so many answers");
}

static void fail(struct world *w, const char *who, const char *what)
{
	if (!w->failed[0])
		(void)snprintf(w->failed, sizeof(w->failed), "%s: %s", who, what);
}

void world_step(struct world *w, struct sl_event event)
{
	struct sl_error err = {0};
	size_t used;

	if (w->failed[0])
		return;
	w->stats.events++;
	sl_trace_event(&w->trace, w->now, w->stats.events, &event);
	shadow_before(&w->shadow, w->now, &event);
	sl_node_step(w->node, w->now, &event, on_action, w);
	used = sl_arena_used_bytes(w->arena);
	shadow_after(&w->shadow, w->node, used);
	if (used > w->stats.most_arena_bytes)
		w->stats.most_arena_bytes = used;
	if (w->shadow.failed[0])
		fail(w, "rules", w->shadow.failed);
	if (sl_node_check(w->node, &err))
		fail(w, "node check", err.text);
}

/* --- the machine --- */

uint32_t world_gpu(struct world *w)
{
	uint32_t nth = (uint32_t)sl_rng_below(
		&w->rng, (uint32_t)__builtin_popcount(w->gpu_mask));
	uint32_t mask = w->gpu_mask;

	while (nth--)
		mask &= mask - 1;
	return (uint32_t)__builtin_ctz(mask);
}

/* Hidden bytes of a client, or those of an unmanaged process. */
static void measure(struct world *w)
{
	uint32_t slot = (uint32_t)sl_rng_below(&w->rng, WORLD_CLIENTS);
	uint32_t gpu = world_gpu(w);

	world_later(w, world_span(w, w->pace, w->pace * 200),
		(struct sim_later){.kind = LATER_MEASURE});
	if (sl_rng_one_in(&w->rng, 12)) {
		/* Mostly little or nothing; at times most of the GPU. */
		uint64_t most = w->capacity[gpu] / (sl_rng_one_in(&w->rng, 4) ? 1 : 16);

		if (sl_rng_one_in(&w->rng, 2))
			most = 0;
		world_step(
			w, (struct sl_event){.type = SL_EVENT_UNMANAGED,
				   .unmanaged = {gpu, sl_rng_below(&w->rng, most + 1)}});
	} else if (w->client[slot].used) {
		uint64_t most = w->capacity[gpu] / (sl_rng_one_in(&w->rng, 40) ? 2 : 64);

		world_step(w, (struct sl_event){.type = SL_EVENT_HIDDEN,
				      .hidden = {w->client[slot].id, gpu,
					      sl_rng_below(&w->rng, most + 1)}});
	}
	world_react(w);
}

static void introduce(struct world *w)
{
	world_step(w, w->config);
	for (uint32_t gpu = 0; gpu < SHADOW_GPUS; gpu++) {
		if (w->gpu_mask >> gpu & 1)
			world_step(w, (struct sl_event){.type = SL_EVENT_GPU_ADD,
					      .gpu_add = {gpu, w->capacity[gpu],
						      w->capacity[gpu] / 16}});
		if (w->lost_mask >> gpu & 1)
			world_step(w, (struct sl_event){.type = SL_EVENT_GPU_LOST,
					      .gpu_lost = {gpu, 79}});
	}
}

/* A thread that waits across a daemon's death asks the next daemon again: counted there. */
static void keep_outcomes(struct world *w)
{
	struct shadow_outcomes o = shadow_outcomes(&w->shadow);

	w->outcomes.demands += o.demands - o.wait;
	w->outcomes.granted += o.granted;
	w->outcomes.fell += o.fell;
	w->outcomes.died += o.died;
	for (uint32_t i = 0; i < SL_REASONS; i++)
		w->outcomes.denied[i] += o.denied[i];
}

static void fresh_node(struct world *w)
{
	uint64_t order = w->shadow.next_order;

	if (w->node)
		keep_outcomes(w);
	sl_arena_free(w->arena);
	w->arena = sl_arena_new();
	w->node = sl_node_new(w->arena);
	shadow_init(&w->shadow);
	w->shadow.next_order = order;
	w->shadow.arena_bytes = 0;
	w->reactions = 0;
}

/* The daemon dies and comes back: identity from the journal, bytes from the clients. */
static void restart(struct world *w)
{
	w->stats.restarts++;
	fresh_node(w);
	introduce(w);
	for (uint32_t i = 0; i < WORLD_WORKLOADS; i++) {
		struct world_workload *wl = &w->workload[i];

		if (!wl->used)
			continue;
		world_step(
			w, (struct sl_event){.type = SL_EVENT_WORKLOAD_ADD,
				   .workload_add = {.workload = wl->id,
					   .request = {SL_AMOUNT_BYTES, 0, wl->request},
					   .limit = {SL_AMOUNT_BYTES, 0, wl->limit},
					   .gpu_count =
						   (uint32_t)__builtin_popcount(wl->mask),
					   .gpu_mask = wl->mask,
					   .priority = wl->priority,
					   .recovered = 1,
					   .flags = wl->flags,
					   .wait_max = wl->wait_max}});
	}
	w->reactions = 0;
	for (uint32_t i = 0; i < WORLD_CLIENTS; i++) {
		struct world_client *c = &w->client[i];

		if (!c->used)
			continue;
		c->connected = false;
		c->probe = SL_PROBE_OFF;
		if (!w->workload[c->workload].used) {
			c->used =
				false; /* of a workload that was removed: not in the journal */
			continue;
		}
		world_step(w, (struct sl_event){.type = SL_EVENT_CLIENT_JOIN,
				      .client_join = {c->id, w->workload[c->workload].id,
					      !sl_rng_one_in(&w->rng, 20)}});
		if (sl_rng_one_in(&w->rng, 8))
			continue; /* never heard of again, but for its exit */
		world_later(w, world_span(w, SL_MS, 3 * SL_S),
			(struct sim_later){.kind = LATER_REPORT, .slot = i, .id = c->id});
	}
	world_react(w);
}

static void fault(struct world *w)
{
	uint32_t gpu = world_gpu(w);

	world_later(w, world_span(w, 20 * SL_S, 200 * SL_S),
		(struct sim_later){.kind = LATER_FAULT});
	if (!w->faults)
		return;
	if (sl_rng_one_in(&w->rng, 3))
		restart(w);
	else
		w->refuses_until[gpu] = w->now + world_span(w, 20 * SL_MS, 90 * SL_S);
}

static void begin_episode(struct world *w)
{
	uint32_t count =
		w->gpus_wanted ? w->gpus_wanted : 1 + (uint32_t)sl_rng_below(&w->rng, 3);

	w->stats.episodes++;
	memset(w->workload, 0, sizeof(w->workload));
	memset(w->client, 0, sizeof(w->client));
	memset(w->refuses_until, 0, sizeof(w->refuses_until));
	memset(w->stranger, 0, sizeof(w->stranger));
	w->lost_mask = 0;
	w->later.count = 0;
	w->gpu_mask = 0;
	while ((uint32_t)__builtin_popcount(w->gpu_mask) < count) {
		uint32_t gpu = (uint32_t)sl_rng_below(&w->rng, SHADOW_GPUS);

		w->gpu_mask |= 1u << gpu;
		w->capacity[gpu] = sl_rng_between(&w->rng, 2048, 16384) * SL_MIB;
	}
	w->faults = sl_rng_one_in(&w->rng, 2) || w->mix;
	w->workloads_most = (uint32_t)sl_rng_between(&w->rng, 2, 8);
	w->clients_most = (uint32_t)sl_rng_between(&w->rng, w->workloads_most, 16);
	w->pace = world_span(w, 1 * SL_MS, 200 * SL_MS);
	w->episode_ends =
		w->stats.events + sl_rng_between(&w->rng, 2000, w->mix ? 4000 : 20000);
	fresh_node(w);
	world_configure(w);
	introduce(w);
	world_later(w, w->pace, (struct sim_later){.kind = LATER_TROUBLE});
	world_later(w, 0, (struct sim_later){.kind = LATER_ARRIVE});
	world_later(w, w->pace, (struct sim_later){.kind = LATER_MEASURE});
	world_later(w, w->pace, (struct sim_later){.kind = LATER_JUNK});
	world_later(w, 10 * SL_S, (struct sim_later){.kind = LATER_FAULT});
}

static void cancel(struct world *w, const struct sim_later *later)
{
	world_step(w, (struct sl_event){.type = SL_EVENT_CANCEL,
			      .cancel = {later->id, later->number}});
	world_react(w);
}

static void release(struct world *w, const struct sim_later *later)
{
	world_step(w, (struct sl_event){.type = SL_EVENT_RELEASED,
			      .released = {later->id, later->gpu, later->number}});
	world_react(w);
}

static void happen(struct world *w, const struct sim_later *later)
{
	struct world_client *c = &w->client[later->slot];

	switch ((enum world_kind)later->kind) {
	case LATER_THINK:
		if (c->used && c->id == later->id)
			world_think(w, later->slot);
		break;
	case LATER_CREATED: world_created(w, later); break;
	case LATER_CANCEL: cancel(w, later); break;
	case LATER_RELEASE: release(w, later); break;
	case LATER_REPORT:
		if (c->used && c->id == later->id)
			world_report(w, later->slot);
		break;
	case LATER_ARRIVE: world_arrive(w); break;
	case LATER_MEASURE: measure(w); break;
	case LATER_FAULT: fault(w); break;
	case LATER_JUNK: world_junk(w); break;
	case LATER_TROUBLE: world_trouble(w); break;
	case LATER_IDLE: world_work_ends(w, later); break;
	case LATER_PULSE:
	case LATER_BEAT:
		if (c->used && c->id == later->id)
			world_pulse(w, later->slot, later->kind == LATER_BEAT);
		break;
	case LATER_DIE:
		if (c->used && c->id == later->id)
			world_exit(w, later->slot);
		break;
	case LATER_BACK: world_back(w, later->gpu); break;
	case LATER_STRANGER_DIES:
		if (w->stranger[later->slot].id == later->id)
			world_stranger_dies(w, later->slot);
		break;
	}
}

void world_init(struct world *w, uint64_t seed, uint32_t gpus)
{
	memset(w, 0, sizeof(*w));
	w->rng.state = seed;
	w->now = 1 * SL_S;
	w->gpus_wanted = sl_min_u64(gpus, SHADOW_GPUS);
}

void world_fini(struct world *w)
{
	w->arena = sl_arena_free(w->arena);
}

bool world_run(struct world *w, uint64_t events)
{
	while (w->stats.events < events && !w->failed[0]) {
		uint32_t waiting = 0;

		if (w->stats.events >= w->episode_ends)
			begin_episode(w);
		if (w->shadow.wake <= sim_later_next(&w->later)) {
			w->now = sl_max_u64(w->now, w->shadow.wake);
			world_step(w, (struct sl_event){.type = SL_EVENT_TIME});
			world_react(w);
		} else {
			struct sim_later next = sim_later_take(&w->later);

			w->now = next.at;
			happen(w, &next);
		}
		for (uint32_t i = 0; i < w->shadow.demands_top; i++)
			waiting +=
				w->shadow.demand[i].used && !w->shadow.demand[i].granted;
		w->stats.waited += waiting > 0;
		if (waiting > w->stats.most_waiting)
			w->stats.most_waiting = waiting;
		if (w->shadow.failed[0])
			fail(w, "rules", w->shadow.failed);
	}
	return !w->failed[0];
}

bool world_run_mix(struct world *w)
{
	w->mix = true;
	begin_episode(w);
	return world_run(w, w->episode_ends);
}
