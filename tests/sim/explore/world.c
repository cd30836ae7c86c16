/*
 * world - what can happen in a small world, and what follows from it
 *
 * Each choice becomes events. The machine's actions are collected until the step is over, then
 * judged and carried out. That may cause more events at once: an answer to a probe, the report of a
 * thread that stands at its gate.
 */
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "../common/trace.h"

/* So late that no age of anything reaches back to 0. */
#define EPOCH (1000 * SL_S)
/* A piece of GPU work. A client that works is never seen longer in one. */
#define PIECE (100 * SL_MS)
/* Wake-ups on the way to a later moment. */
#define WAKES_MOST 200

uint64_t explore_client_id(uint32_t client)
{
	return 100 + client;
}

uint64_t explore_workload_id(uint32_t workload)
{
	return 10 + workload;
}

uint32_t explore_index(const struct explore *x, uint64_t client)
{
	return client >= 100 && client - 100 < x->world->clients
		       ? (uint32_t)(client - 100)
		       : EXPLORE_CLIENTS;
}

static struct explore_client *client_of(struct explore *x, uint64_t id)
{
	uint32_t i = explore_index(x, id);

	return i < EXPLORE_CLIENTS ? &x->s.client[i] : NULL;
}

/* --- steps --- */

static void receive(struct explore *x, const struct sl_action *a);
static void answer(struct explore *x, const struct sl_action *a);

static void keep_action(void *context, const struct sl_action *action)
{
	struct explore *x = context;

	x->spoken++;
	if (action->type != SL_ACTION_WAKE_AT)
		x->heard = (x->heard ^ action->type ^ (x->s.now - x->heard_from) << 8) *
			   0x9e3779b97f4a7c15u;
	if (x->actions < EXPLORE_BURST)
		x->action[x->actions++] = *action;
}

void explore_step(struct explore *x, struct sl_event event)
{
	struct sl_action action[EXPLORE_BURST];
	uint32_t actions;

	if (x->spoken > EXPLORE_BURST) {
		explore_break(
			x, EXPLORE_STORM, "more than %d actions at once", EXPLORE_BURST);
		return;
	}
	if (x->prints) {
		printf("  %9.3f ", (double)(x->s.now - x->s.began) / 1e9);
		sl_trace_print_event(&event, stdout);
		putchar('\n');
	}
	if (x->s.now >= x->s.wake)
		x->s.wake = SL_NS_NEVER;
	x->actions = 0;
	sl_node_step(x->node, x->s.now, &event, keep_action, x);
	if (!x->closes)
		explore_judge_quiet(x);
	actions = x->actions;
	memcpy(action, x->action, actions * sizeof(action[0]));
	for (uint32_t i = 0; i < actions; i++) {
		if (x->prints) {
			printf("            -> ");
			sl_trace_print_action(&action[i], stdout);
			putchar('\n');
		}
		explore_judge_action(x, &action[i]);
		receive(x, &action[i]);
	}
	explore_judge_least(x, action, actions);
	/* A client's answer to a PROBE is a step of its own. */
	for (uint32_t i = 0; i < actions; i++)
		answer(x, &action[i]);
}

/* --- what clients say --- */

void explore_pulse(struct explore *x, struct explore_client *c)
{
	struct sl_event e = {
		.type = SL_EVENT_PULSE, .pulse = {.client = explore_id(x, c)}};

	if (!c->alive || c->expected || c->probe == SL_PROBE_OFF)
		return;
	if (c->busy)
		e.pulse.busy = sl_min_u64(PIECE, x->s.now - c->since + 1);
	else if (!c->stands)
		e.pulse.idle = x->s.now - c->since + 1;
	e.pulse.proven = e.pulse.idle && c->probe == SL_PROBE_PROVE;
	explore_step(x, e);
}

void explore_begin_work(struct explore *x, struct explore_client *c)
{
	c->busy = true;
	c->since = x->s.now;
	EXPLORE_STEP(x, WORK, work, explore_id(x, c));
}

/* A thread stands at the gate while something is on the host or an order is open. */
void explore_look_at_gate(struct explore *x, struct explore_client *c)
{
	bool out = explore_is_out(c);

	if (!c->alive || c->expected || !c->stands)
		return;
	if (out && !c->told) {
		c->told = true;
		c->wants_at = x->s.now;
		c->wants_place = ++x->s.next_place;
		EXPLORE_STEP(x, WANT, want, explore_id(x, c), 1);
	} else if (!out && !c->order) {
		c->stands = false;
		if (c->told) {
			c->told = false;
			EXPLORE_STEP(x, WANT, want, explore_id(x, c), 0);
		}
		explore_begin_work(x, c);
	}
}

static void beat(struct explore *x)
{
	for (uint32_t i = 0; i < x->world->clients; i++) {
		struct explore_client *c = &x->s.client[i];

		if (c->alive && c->busy && !c->expected)
			EXPLORE_STEP(x, WORK, work, explore_id(x, c));
		explore_pulse(x, c);
	}
}

void explore_advance(struct explore *x, sl_ns at)
{
	for (uint32_t i = 0; i < WAKES_MOST && !x->broken; i++) {
		x->spoken = 0;
		x->s.now = sl_max_u64(x->s.now, sl_min_u64(at, x->s.wake));
		EXPLORE_STEP(x, TIME, time, 0);
		beat(x);
		if (x->s.now >= at)
			return;
	}
	if (!x->broken)
		explore_break(x, EXPLORE_STORM, "%d wake-ups on the way to one moment",
			WAKES_MOST);
}

/* --- messages to the clients --- */

static void on_evict(struct explore *x, const struct sl_action *a)
{
	struct explore_client *c = client_of(x, a->evict.client);

	if (!c || !c->alive || c->order || a->evict.gpu >= EXPLORE_GPUS)
		return;
	c->order = EXPLORE_EVICTS;
	c->order_id = a->id;
	c->order_gpu = (uint8_t)a->evict.gpu;
	c->order_units = (uint8_t)sl_min_u64(EXPLORE_ALL,
		a->evict.bytes / EXPLORE_UNIT + (a->evict.bytes % EXPLORE_UNIT > 0));
	c->tell_units = (uint8_t)sl_min_u64(
		EXPLORE_ALL, (a->evict.tell_bytes + EXPLORE_UNIT - 1) / EXPLORE_UNIT);
	c->moved = 0;
	c->aborted = false;
	c->told = false; /* its gate closes: a thread that waits there says so anew */
	x->s.orders++;
}

static void on_restore(struct explore *x, const struct sl_action *a)
{
	struct explore_client *c = client_of(x, a->restore.client);

	if (!c || !c->alive || c->order || a->restore.gpu >= EXPLORE_GPUS)
		return;
	c->order = EXPLORE_RESTORES;
	c->order_id = a->id;
	c->order_gpu = (uint8_t)a->restore.gpu;
	c->order_units = (uint8_t)sl_min_u64(
		c->evicted[c->order_gpu], a->restore.bytes / EXPLORE_UNIT);
	c->moved = 0;
	c->aborted = false;
	x->s.orders++;
}

static void on_place(
	struct explore *x, uint64_t client, uint64_t id, enum explore_order order)
{
	struct explore_client *c = client_of(x, client);
	uint8_t units;

	if (!c || !c->alive || c->order)
		return;
	c->order = order;
	c->order_id = id;
	c->order_gpu = c->order_units = c->moved = c->tell_units = 0;
	c->aborted = false;
	x->s.orders++;
	if (order == EXPLORE_DETACHES) {
		c->told = explore_is_out(c) && c->told;
		return;
	}
	units = c->away;
	c->away = 0;
	explore_set_context(x, c, units);
}

/* The runtime answers every PROBE at once, and then at each beat (runtime/link/pulse.c). In most
 * worlds only the first PROBE is answered at once. Otherwise machine and client could exchange
 * probes without end, and the search would not get beyond that. */
static void answer(struct explore *x, const struct sl_action *a)
{
	struct explore_client *c =
		a->type == SL_ACTION_PROBE ? client_of(x, a->probe.client) : NULL;
	bool was_off;

	if (!c)
		return;
	was_off = c->probe == SL_PROBE_OFF;
	c->probe = (uint8_t)a->probe.mode;
	if (was_off || x->world->prompt)
		explore_pulse(x, c);
}

/* What its clients wait for goes along. */
static void on_admit(struct explore *x, const struct sl_action *a)
{
	for (uint32_t i = 0; i < x->world->clients; i++) {
		if (explore_workload_id(x->world->of[i]) == a->admit.workload)
			x->s.client[i].ask_gpu =
				(uint8_t)__builtin_ctz(a->admit.gpu_mask);
	}
	x->s.bound[a->admit.workload - explore_workload_id(0)] =
		(uint8_t)a->admit.gpu_mask;
}

/* What they have on the host, and what they ask for, goes along. */
static void on_moves(struct explore *x, const struct sl_action *a)
{
	uint32_t from = a->moves.from, to = a->moves.to;

	for (uint32_t i = 0; i < x->world->clients; i++) {
		struct explore_client *c = &x->s.client[i];

		if (!c->alive ||
			explore_workload_id(x->world->of[i]) != a->moves.workload)
			continue;
		c->evicted[to] += c->evicted[from];
		c->evicted[from] = 0;
		c->context_gpu = (uint8_t)to;
		if (c->ask_gpu == from)
			c->ask_gpu = (uint8_t)to;
	}
	x->s.bound[a->moves.workload - explore_workload_id(0)] = (uint8_t)(1u << to);
}

static void receive(struct explore *x, const struct sl_action *a)
{
	struct explore_client *c;

	switch (a->type) {
	case SL_ACTION_ADMIT: on_admit(x, a); break;
	case SL_ACTION_MOVES: on_moves(x, a); break;
	case SL_ACTION_GRANT:
		c = client_of(x, a->grant.client);
		if (c && c->ask_units && c->ask == a->grant.ask) {
			c->granted = true;
			c->epoch = a->grant.epoch;
			x->s.contest++;
		}
		break;
	case SL_ACTION_DENY:
		c = client_of(x, a->deny.client);
		if (c && c->ask_units && c->ask == a->deny.ask) {
			c->ask_units = 0;
			c->granted = false;
			x->s.contest++;
		}
		break;
	case SL_ACTION_EVICT: on_evict(x, a); break;
	case SL_ACTION_RESTORE: on_restore(x, a); break;
	case SL_ACTION_DETACH:
		on_place(x, a->detach.client, a->id, EXPLORE_DETACHES);
		break;
	case SL_ACTION_ATTACH:
		on_place(x, a->attach.client, a->id, EXPLORE_ATTACHES);
		break;
	case SL_ACTION_ABORT:
		c = client_of(x, a->abort.client);
		if (c && c->order == EXPLORE_EVICTS && c->order_id == a->abort.order)
			c->aborted = true;
		break;
	case SL_ACTION_STOP:
		c = client_of(x, a->stop.client);
		if (c)
			c->ends = true;
		break;
	case SL_ACTION_RESUMED:
		for (uint32_t i = 0; i < x->world->workloads; i++) {
			if (a->resumed.workload != explore_workload_id(i))
				continue;
			x->s.parked[i] = x->s.resuming[i] = false;
			x->s.returns[i] = true;
		}
		break;
	case SL_ACTION_REFUSE: /* of a park: the host has no space for it */
		for (uint32_t i = 0; i < x->world->workloads; i++) {
			if (a->refuse.workload == explore_workload_id(i))
				x->s.parked[i] = false;
		}
		break;
	case SL_ACTION_WAKE_AT: x->s.wake = a->wake_at.at; break;
	default: break;
	}
}

/* --- the beginning --- */

void explore_join(struct explore *x, uint32_t i)
{
	const struct explore_world *w = x->world;
	const struct explore_workload *wl = &w->workload[w->of[i]];
	struct explore_client *c = &x->s.client[i];

	if (wl->late) {
		EXPLORE_STEP(x, WORKLOAD_BEGINS, workload_begins,
			explore_workload_id(w->of[i]), wl->gpu_mask);
		explore_judge_begin(x, w->of[i]);
	}
	c->alive = true;
	c->unborn = false;
	c->since = x->s.now;
	c->expected = w->restarts;
	c->resident[0] = w->had[i];
	c->evicted[0] = w->had_out[i];
	EXPLORE_STEP(x, CLIENT_JOIN, client_join, explore_client_id(i),
		explore_workload_id(w->of[i]), w->restarts, 1);
	if (w->context[i]) {
		c->context_gpu = (uint8_t)__builtin_ctz(wl->gpu_mask);
		explore_set_context(x, c, w->context[i]);
		EXPLORE_STEP(x, HIDDEN, hidden, explore_client_id(i), c->context_gpu,
			explore_bytes(c->context));
	}
	/* Its memory that was not reported is measured. */
	if (c->resident[0])
		EXPLORE_STEP(x, HIDDEN, hidden, explore_client_id(i), 0,
			explore_bytes(c->resident[0]));
}

static void introduce(struct explore *x)
{
	const struct explore_world *w = x->world;

	EXPLORE_STEP(x, CONFIG, config, .wait_max = 4 * SL_S, .head_pass = SL_S,
		.idle_wait = SL_S, .recover_wait = EXPLORE_RECOVERS,
		.pool_bytes = explore_bytes(w->pool),
		.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0),
		.untakeable_after = 30 * SL_S, .detach = w->detach);
	for (uint32_t gpu = 0; gpu < w->gpus; gpu++)
		EXPLORE_STEP(x, GPU_ADD, gpu_add, gpu,
			explore_bytes(w->units + w->reserve), explore_bytes(w->reserve),
			0);
	for (uint32_t i = 0; i < w->workloads; i++) {
		const struct explore_workload *wl = &w->workload[i];

		EXPLORE_STEP(x, WORKLOAD_ADD, workload_add,
			.workload = explore_workload_id(i),
			.request = {SL_AMOUNT_BYTES, 0, explore_bytes(wl->request)},
			.limit = {SL_AMOUNT_BYTES, 0, explore_bytes(wl->limit)},
			.gpu_count =
				wl->late ? 1 : (uint32_t)__builtin_popcount(wl->gpu_mask),
			.gpu_mask = wl->gpu_mask, .priority = wl->priority,
			.recovered = w->restarts, .flags = wl->flags,
			.idle_grace = wl->idle_grace);
	}
	for (uint32_t i = 0; i < w->clients; i++) {
		x->s.client[i].unborn = w->workload[w->of[i]].late;
		if (!x->s.client[i].unborn)
			explore_join(x, i);
		x->spoken = 0;
	}
}

void explore_begin(struct explore *x, const struct explore_world *world)
{
	bool prints = x->prints;
	const char *at = world->setup;

	memset(x, 0, sizeof(*x));
	x->prints = prints;
	x->world = world;
	x->arena = sl_arena_new();
	x->node = sl_node_new(x->arena);
	x->s.now = x->s.began = EPOCH;
	x->s.wake = SL_NS_NEVER;
	introduce(x);
	while (at && *at && !x->broken) {
		struct explore_choice o;
		const char *next = explore_choice_read(at, &o);

		if (!next || !explore_can(x, o)) {
			explore_break(x, EXPLORE_STAYS, "the setup cannot be: %s", at);
			return;
		}
		explore_do(x, o);
		at = next;
	}
	x->s.orders = 0;
	x->s.faults = world->faults;
}

void explore_end(struct explore *x)
{
	x->arena = sl_arena_free(x->arena);
}
