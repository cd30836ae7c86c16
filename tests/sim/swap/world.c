/*
 * world - time, messages under way, episodes; see the header
 *
 * Events wait in a queue by time (later.h). Messages between a process and the node take `up` and
 * `down` and keep their order, as one socket does; a daemon that dies takes those under way with
 * it. The node gets no help but the WAKE_AT it asked for.
 */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void swap_fail(struct swap_world *w, const char *format, ...)
{
	va_list args;

	if (w->failed[0])
		return;
	va_start(args, format);
	(void)vsnprintf(w->failed, sizeof(w->failed), format, args);
	va_end(args);
}

/* --- events to come --- */

void swap_later(struct swap_world *w, sl_ns after, struct sim_later later)
{
	later.at = w->now + after;
	if (!sim_later_put(&w->later, later))
		swap_fail(w, "the simulation has no room for what is to come");
}

sl_ns swap_span(struct swap_world *w, sl_ns least, sl_ns most)
{
	return sl_rng_span(&w->rng, least, most);
}

uint32_t swap_gpu_of(struct swap_world *w, uint32_t mask)
{
	uint32_t nth =
		(uint32_t)sl_rng_below(&w->rng, (uint32_t)__builtin_popcount(mask));

	while (nth--)
		mask &= mask - 1;
	return (uint32_t)__builtin_ctz(mask);
}

struct swap_client *swap_find(struct swap_world *w, uint64_t id)
{
	for (uint32_t i = 0; i < SWAP_CLIENTS; i++) {
		if (w->client[i].used && w->client[i].id == id)
			return &w->client[i];
	}
	return NULL;
}

/* --- messages --- */

static struct swap_message *new_message(struct swap_world *w, uint32_t slot)
{
	struct swap_message *m;

	if (w->message_free) {
		m = &w->message[w->message_free - 1];
		w->message_free = m->next_free;
	} else if (w->messages < SWAP_MESSAGES_MAX) {
		m = &w->message[w->messages++];
	} else {
		swap_fail(w, "the simulation has no room for messages");
		return NULL;
	}
	m->slot = slot;
	m->client = w->client[slot].id;
	m->line = w->client[slot].line;
	return m;
}

static void drop_message(struct swap_world *w, struct swap_message *m)
{
	m->next_free = w->message_free;
	w->message_free = (uint32_t)(m - w->message) + 1;
}

void swap_send(struct swap_world *w, uint32_t slot, struct sl_event event)
{
	struct swap_message *m;

	if (!w->client[slot].connected)
		return;
	m = new_message(w, slot);
	if (!m)
		return;
	m->event = event;
	swap_later(w, w->up,
		(struct sim_later){
			.kind = LATER_UP, .number = (uint64_t)(m - w->message)});
}

static void send_down(struct swap_world *w, uint64_t client, const struct sl_action *a)
{
	struct swap_client *c = swap_find(w, client);
	struct swap_message *m;

	if (!c)
		return;
	if (!c->connected) {
		if (a->type == SL_ACTION_EVICT || a->type == SL_ACTION_RESTORE)
			swap_later(w, SL_MS,
				(struct sim_later){.kind = LATER_REFUSE,
					.slot = (uint32_t)(c - w->client),
					.id = c->id,
					.number = a->id});
		/* The daemon says it again once the client is there. */
		if (a->type == SL_ACTION_PROBE)
			swap_receive(w, (uint32_t)(c - w->client), a);
		return;
	}
	m = new_message(w, (uint32_t)(c - w->client));
	if (!m)
		return;
	m->action = *a;
	swap_later(w, w->down,
		(struct sim_later){
			.kind = LATER_DOWN, .number = (uint64_t)(m - w->message)});
}

static void arrive_up(struct swap_world *w, uint64_t number)
{
	struct swap_message m = w->message[number];
	struct swap_client *c = &w->client[m.slot];

	drop_message(w, &w->message[number]);
	/* The daemon has the files, and knows their sizes by then. */
	if (m.event.type == SL_EVENT_STORE && c->id == m.client)
		m.event.store.bytes = c->store;
	/* Messages that a process sent before it died may still arrive; not those on a line
	 * that broke. */
	if (c->id != m.client || c->line == m.line)
		swap_step(w, m.event);
}

static void arrive_down(struct swap_world *w, uint64_t number)
{
	struct swap_message m = w->message[number];
	struct swap_client *c = &w->client[m.slot];

	drop_message(w, &w->message[number]);
	if (m.line == c->line && c->used && c->id == m.client && c->connected)
		swap_receive(w, m.slot, &m.action);
}

/* --- one event --- */

/* A change took effect: what the journal would have. */
static void note_set(struct swap_world *w, uint64_t workload)
{
	const struct swap_member *m = swap_member_of(&w->rules, workload);

	for (uint32_t i = 0; i < SWAP_WORKLOADS; i++) {
		struct swap_workload *wl = &w->workload[i];

		if (!wl->used || !m || wl->id != m->id)
			continue;
		wl->request = m->request;
		wl->limit = m->limit;
		wl->priority = m->priority;
		wl->flags = m->flags;
		wl->warm_after = m->warm_after;
		wl->idle_grace = m->idle_grace;
		wl->parked = m->parked;
	}
}

static void print_if_asked(const struct swap_world *w)
{
	if (w->print_from && w->stats.events >= w->print_from)
		sl_trace_print_last(&w->trace, stdout);
}

static void on_action(void *context, const struct sl_action *a)
{
	struct swap_world *w = context;

	sl_trace_action(&w->trace, w->now, w->stats.events, a);
	print_if_asked(w);
	swap_rules_action(&w->rules, a);
	if (w->watch)
		w->watch(w, a);
	switch (a->type) {
	case SL_ACTION_DENY: w->stats.denies[a->deny.reason]++; break;
	case SL_ACTION_NOTE: w->stats.notes[a->note.reason]++; return;
	case SL_ACTION_PARKED: w->stats.notes[SL_REASON_PARKED]++; return;
	case SL_ACTION_RESUMED:
		w->stats.notes[SL_REASON_RESUMED]++;
		note_set(w, a->resumed.workload);
		return;
	case SL_ACTION_MOVES: swap_go_elsewhere(w, a); return;
	case SL_ACTION_LEFT: return;
	case SL_ACTION_GRANT: w->stats.grants++; break;
	case SL_ACTION_EVICT: w->stats.evicts++; break;
	case SL_ACTION_RESTORE: w->stats.restores++; break;
	case SL_ACTION_ABORT: w->stats.aborts++; break;
	case SL_ACTION_TRIM: w->stats.trims++; break;
	case SL_ACTION_STOP:
		w->stats.stops += a->stop.stage == SL_STOP_TERM;
		w->stats.kills += a->stop.stage == SL_STOP_KILL;
		break;
	case SL_ACTION_WAKE_AT: return;
	default: break;
	}
	if (w->reactions < SL_ARRAY_LEN(w->reaction))
		w->reaction[w->reactions++] = *a;
	else
		swap_fail(w, "the simulation has no room for so many answers");
}

static void admit(struct swap_world *w, const struct sl_action *a)
{
	for (uint32_t i = 0; i < SWAP_WORKLOADS; i++) {
		struct swap_workload *wl = &w->workload[i];

		if (!wl->used || wl->id != a->admit.workload || wl->mask)
			continue;
		wl->mask = a->admit.gpu_mask;
		wl->request = a->admit.request_bytes;
		wl->limit = a->admit.limit_bytes;
		/* The processes of some begin later (trouble.c). */
		if (w->mood == SWAP_CHAOS && wl->id % 4 == 0)
			return;
		for (uint32_t n = 0; n < wl->clients_most && !w->scripted; n++)
			swap_join(w, i);
	}
}

/* What the daemon does with an action. */
static void react(struct swap_world *w, const struct sl_action *a)
{
	switch (a->type) {
	case SL_ACTION_GRANT: send_down(w, a->grant.client, a); break;
	case SL_ACTION_DENY: send_down(w, a->deny.client, a); break;
	case SL_ACTION_EVICT: send_down(w, a->evict.client, a); break;
	case SL_ACTION_RESTORE: send_down(w, a->restore.client, a); break;
	case SL_ACTION_ABORT: send_down(w, a->abort.client, a); break;
	case SL_ACTION_TRIM: send_down(w, a->trim.client, a); break;
	case SL_ACTION_DETACH: swap_place(w, a->detach.client, a); break;
	case SL_ACTION_ATTACH: swap_place(w, a->attach.client, a); break;
	case SL_ACTION_PROBE: send_down(w, a->probe.client, a); break;
	case SL_ACTION_ADMIT: admit(w, a); break;
	case SL_ACTION_STOP: swap_signal(w, a); break;
	case SL_ACTION_SET_DONE: note_set(w, a->set_done.workload); break;
	case SL_ACTION_REFUSE:
		for (uint32_t i = 0; i < SWAP_WORKLOADS; i++) {
			if (w->workload[i].used &&
				w->workload[i].id == a->refuse.workload &&
				!w->workload[i].mask)
				w->workload[i].used = false;
		}
		break;
	default: break;
	}
}

/* What is really on the GPUs never exceeds the accounts. */
static void judge_reality(struct swap_world *w)
{
	for (uint32_t gpu = 0; gpu < w->gpus; gpu++) {
		uint64_t there = 0;

		if (w->lost_mask >> gpu & 1)
			continue;
		for (uint32_t i = 0; i < SWAP_CLIENTS; i++) {
			const struct swap_client *c = &w->client[i];
			const struct swap_party *p;

			if (!c->used)
				continue;
			p = swap_party_of(&w->rules, c->id);
			if (!p || p->expected)
				return;
			if (c->gone >> gpu & 1)
				continue;
			there += c->resident[gpu];
			if (c->order.phase == ORDER_RETURNS && c->order.gpu == gpu)
				there += c->order.moves;
		}
		if (there > swap_physical(&w->rules, gpu))
			swap_fail(w,
				"GPU %u: %llu bytes are there, the accounts have %llu",
				gpu, (unsigned long long)there,
				(unsigned long long)swap_physical(&w->rules, gpu));
	}
}

void swap_steps(
	struct swap_world *w, const struct sl_event events[], uint32_t events_count)
{
	struct sl_action queued[SL_ARRAY_LEN(w->reaction)];
	struct sl_error err = {0};
	uint32_t count;

	if (w->failed[0])
		return;
	for (uint32_t i = 0; i < events_count; i++) {
		w->stats.events++;
		sl_trace_event(&w->trace, w->now, w->stats.events, &events[i]);
		if (w->stats.events == w->print_from)
			swap_rules_print(&w->rules, stdout);
		print_if_asked(w);
		swap_rules_before(&w->rules, w->now, &events[i]);
	}
	w->reactions = 0;
	sl_node_steps(w->node, w->now, events, events_count, on_action, w);
	swap_rules_after(&w->rules, w->node);
	w->stats.waited_after += w->rules.wanting > 0;
	if (w->rules.failed[0])
		swap_fail(w, "rules: %s", w->rules.failed);
	judge_reality(w);
	swap_judge_places(w);
	if (sl_node_check(w->node, &err))
		swap_fail(w, "node check: %s", err.text);
	/* Answers may step again. */
	count = w->reactions;
	memcpy(queued, w->reaction, count * sizeof(queued[0]));
	for (uint32_t i = 0; i < count && !w->failed[0]; i++)
		react(w, &queued[i]);
}

void swap_step(struct swap_world *w, struct sl_event event)
{
	swap_steps(w, &event, 1);
}

/* One sample finds what was released in a span of it. */
static void release(struct swap_world *w, const struct sim_later *first)
{
	struct sim_later later = *first;
	struct sl_event found[8];
	uint32_t count = 0;

	for (;;) {
		found[count++] = (struct sl_event){.type = SL_EVENT_RELEASED,
			.released = {later.id, later.gpu, later.number}};
		if (count == SL_ARRAY_LEN(found) || !w->later.count ||
			w->later.room[0].kind != LATER_RELEASED ||
			sim_later_next(&w->later) > first->at + 50 * SL_MS ||
			w->rules.wake <= sim_later_next(&w->later))
			break;
		later = sim_later_take(&w->later);
		w->now = later.at;
	}
	swap_steps(w, found, count);
}

/* --- episodes --- */

void swap_arrive(struct swap_world *w, struct swap_workload wl)
{
	for (uint32_t i = 0; i < w->workloads_most; i++) {
		uint32_t count = wl.mask;

		if (w->workload[i].used)
			continue;
		wl.id = ++w->next_id;
		wl.mask = 0;
		if (w->chains && !w->scripted && w->mood != SWAP_TURNS &&
			w->mood != SWAP_SHARES)
			wl.flags |= swap_draw_chain(w);
		w->workload[i] = wl;
		swap_step(w, (struct sl_event){.type = SL_EVENT_WORKLOAD_ADD,
				     .workload_add = {.workload = wl.id,
					     .request = {SL_AMOUNT_BYTES, 0, wl.request},
					     .limit = {SL_AMOUNT_BYTES, 0,
						     sl_min_u64(wl.limit, 1ull << 46)},
					     .gpu_count = count,
					     .gpu_mask = (1u << w->gpus) - 1,
					     .priority = wl.priority,
					     .flags = wl.flags,
					     .warm_after = wl.warm_after,
					     .idle_grace = wl.idle_grace,
					     .compute_pm = wl.compute_pm}});
		return;
	}
}

void swap_introduce(struct swap_world *w)
{
	swap_step(w, w->config);
	for (uint32_t gpu = 0; gpu < w->gpus; gpu++) {
		swap_step(w,
			(struct sl_event){.type = SL_EVENT_GPU_ADD,
				.gpu_add = {gpu, w->capacity[gpu], w->capacity[gpu] / 16,
					.fixed = w->fixed >> gpu & 1}});
		swap_step(w,
			(struct sl_event){.type = SL_EVENT_LINK_COST,
				.link_cost = {gpu, w->link_out[gpu], w->link_in[gpu]}});
		if (w->lost_mask >> gpu & 1)
			swap_step(w, (struct sl_event){.type = SL_EVENT_GPU_LOST,
					     .gpu_lost = {gpu, 79}});
	}
}

static void fresh(struct swap_world *w)
{
	sl_arena_free(w->arena);
	w->arena = sl_arena_new();
	w->node = sl_node_new(w->arena);
	swap_rules_init(&w->rules);
	w->rules.quiet = !w->faults;
}

static void clear(struct swap_world *w)
{
	memset(w->workload, 0, sizeof(w->workload));
	memset(w->client, 0, sizeof(w->client));
	memset(w->share, 0, sizeof(w->share));
	w->later.count = 0;
	w->message_free = 0;
	w->messages = 0;
	w->lost_mask = 0;
	w->drains = false;
	w->drain_from = 0;
	w->judged_from = w->copied_ns = 0;
	w->episode_began = w->now;
}

static void begin_episode(struct swap_world *w)
{
	clear(w);
	w->stats.episodes++;
	swap_draw_episode(w);
	fresh(w);
	swap_introduce(w);
	for (uint32_t i = 0; i < w->workloads_most; i++)
		swap_arrive(w, swap_draw_workload(w));
	if (w->mood == SWAP_CHAOS || w->mood == SWAP_BUSY)
		swap_later(w, SL_S, (struct sim_later){.kind = LATER_PEOPLE});
	if (w->faults)
		swap_later(w, SL_S, (struct sim_later){.kind = LATER_TROUBLE});
}

/* --- the daemon's death --- */

void swap_restart(struct swap_world *w)
{
	w->stats.restarts++;
	fresh(w);
	swap_introduce(w);
	for (uint32_t i = 0; i < SWAP_WORKLOADS; i++) {
		struct swap_workload *wl = &w->workload[i];

		if (!wl->used || !wl->mask)
			continue;
		swap_step(w, (struct sl_event){.type = SL_EVENT_WORKLOAD_ADD,
				     .workload_add = {.workload = wl->id,
					     .request = {SL_AMOUNT_BYTES, 0, wl->request},
					     .limit = {SL_AMOUNT_BYTES, 0, wl->limit},
					     .gpu_count = (uint32_t)__builtin_popcount(
						     wl->mask),
					     .gpu_mask = wl->mask,
					     .priority = wl->priority,
					     .recovered = 1,
					     .flags = wl->flags,
					     .warm_after = wl->warm_after,
					     .idle_grace = wl->idle_grace}});
		if (wl->parked)
			swap_step(w, (struct sl_event){.type = SL_EVENT_WORKLOAD_PARK,
					     .workload_park = {wl->id, 1}});
	}
	for (uint32_t i = 0; i < SWAP_CLIENTS; i++) {
		struct swap_client *c = &w->client[i];

		if (!c->used)
			continue;
		c->connected = false;
		c->line = ++w->next_line;
		c->want_told = false;
		c->probe = SL_PROBE_OFF;
		swap_step(w, (struct sl_event){.type = SL_EVENT_CLIENT_JOIN,
				     .client_join = {c->id, w->workload[c->workload].id,
					     1, c->swaps}});
		swap_find_place(w, i);
		if (w->drains || !sl_rng_one_in(&w->rng, 20))
			swap_later(w, swap_span(w, SL_MS, 3 * SL_S),
				(struct sim_later){
					.kind = LATER_REPORT, .slot = i, .id = c->id});
		else
			swap_later(w, 10 * SL_S,
				(struct sim_later){
					.kind = LATER_DIE, .slot = i, .id = c->id});
	}
}

/* --- running --- */

static void happen(struct swap_world *w, const struct sim_later *later)
{
	struct swap_client *c = &w->client[later->slot];
	bool same = c->used && c->id == later->id;

	switch ((enum swap_kind)later->kind) {
	case LATER_UP: arrive_up(w, later->number); return;
	case LATER_DOWN: arrive_down(w, later->number); return;
	case LATER_PEOPLE: swap_people(w); return;
	case LATER_TROUBLE: swap_trouble(w); return;
	case LATER_BACK: swap_back(w, later->gpu); return;
	case LATER_RELEASED: release(w, later); return;
	default: break;
	}
	if (!same)
		return;
	switch ((enum swap_kind)later->kind) {
	case LATER_THINK:
		if (c->serial == later->number && c->thread == THREAD_RUNS)
			swap_think(w, later->slot);
		break;
	case LATER_CREATED:
		if (c->serial == later->number)
			swap_created(w, later->slot);
		break;
	case LATER_ORDER:
		if (c->order.phase && c->order.serial == later->number)
			swap_order_goes_on(w, later->slot);
		break;
	case LATER_QUIET: swap_quiet(w, later->slot); break;
	case LATER_PROMPT: swap_prompt(w, later->slot, later->number); break;
	case LATER_BEAT: swap_beat(w, later->slot); break;
	case LATER_REPORT: swap_report(w, later->slot); break;
	case LATER_REFUSE: swap_refuse(w, later->slot, later->number, false); break;
	case LATER_GO_ON: swap_go_on(w, later->slot); break;
	case LATER_PLACED: swap_placed(w, later->slot, later->number); break;
	case LATER_NO_SIGNAL:
		swap_step(w, (struct sl_event){.type = SL_EVENT_STOP_FAILED,
				     .stop_failed = {c->id}});
		break;
	case LATER_DIE: swap_exit(w, later->slot); break;
	default: break;
	}
}

static void one(struct swap_world *w)
{
	if (w->rules.wake <= sim_later_next(&w->later)) {
		w->now = sl_max_u64(w->now, w->rules.wake);
		swap_step(w, (struct sl_event){.type = SL_EVENT_TIME});
	} else {
		struct sim_later next = sim_later_take(&w->later);

		w->now = next.at;
		happen(w, &next);
	}
	swap_share_look(w);
}

static bool has_next(const struct swap_world *w, sl_ns until)
{
	return sl_min_u64(w->rules.wake, sim_later_next(&w->later)) <= until;
}

/* Long enough for every longest wait and back-off to have come. */
#define DRAIN_SPAN (600 * SL_S)

static void end_episode(struct swap_world *w)
{
	if (!w->drains) {
		swap_fair_judge(w);
		w->drains = true;
		w->drain_from = w->now;
		swap_calm(w);
		return;
	}
	if (has_next(w, w->drain_from + DRAIN_SPAN))
		return;
	w->now = sl_max_u64(w->now, w->drain_from + DRAIN_SPAN);
	swap_rules_drained(&w->rules, w->node);
	if (w->rules.failed[0])
		swap_fail(w, "drained: %s", w->rules.failed);
	else
		begin_episode(w);
}

bool swap_world_run(struct swap_world *w, uint64_t events)
{
	begin_episode(w);
	while (w->stats.events < events && !w->failed[0]) {
		if (w->stats.events >= w->episode_ends)
			end_episode(w);
		if (!has_next(w, SL_NS_NEVER - 1)) {
			if (w->drains)
				continue;
			w->episode_ends = w->stats.events; /* none is left */
			continue;
		}
		swap_fair_look(w);
		if (!w->failed[0])
			one(w);
		if (w->stats.events > w->episode_ends + 400000)
			swap_fail(w, "an episode does not come to rest");
	}
	return !w->failed[0];
}

/* Events of the longest play, thrice. */
#define SCRIPT_MOST 500000

bool swap_world_until(struct swap_world *w, sl_ns at)
{
	while (!w->failed[0] && has_next(w, at)) {
		one(w);
		if (w->stats.events > SCRIPT_MOST)
			swap_fail(w, "a play does not come to its end");
	}
	w->now = sl_max_u64(w->now, at);
	return !w->failed[0];
}

void swap_world_init(struct swap_world *w, uint64_t seed)
{
	memset(w, 0, sizeof(*w));
	w->rng.state = seed;
	w->detaches = swap_draw_detach(seed);
	w->chains = swap_draw_chains(seed);
	w->now = 1 * SL_S;
}

void swap_world_fini(struct swap_world *w)
{
	w->arena = sl_arena_free(w->arena);
}

/* --- scripts --- */

void swap_world_script(struct swap_world *w)
{
	w->scripted = true;
	w->workloads_most = SWAP_WORKLOADS;
	w->clients_most = SWAP_CLIENTS;
	w->beat = 20 * SL_MS;
	clear(w);
	fresh(w);
	swap_introduce(w);
}

uint32_t swap_world_workload(struct swap_world *w, struct swap_workload wl)
{
	for (uint32_t i = 0; i < SWAP_WORKLOADS; i++) {
		if (w->workload[i].used)
			continue;
		wl.used = true;
		if (!wl.mask)
			wl.mask = 1;
		swap_arrive(w, wl);
		return i;
	}
	return 0;
}

uint32_t swap_world_client(struct swap_world *w, uint32_t workload)
{
	swap_join(w, workload);
	for (uint32_t i = 0; i < SWAP_CLIENTS; i++) {
		if (w->client[i].used && w->client[i].id == w->next_id)
			return i;
	}
	return 0;
}
