/*
 * swap_share - has a workload within its request its share of the time, in any window?
 *
 * The promise: within its request a workload that wants to run holds the GPU at least
 * request/shareable of the time in any window as long as the longest wait it was told, less the
 * drains of those that leave for it. It holds the GPU while its gate is open, and while its own
 * work drains; a workload of several processes in the part that holds it of those that want to.
 *
 * Time is counted only while it wants to run and nobody who has to leave for it is draining; what
 * it held is noted whenever that changes, so each window is looked at when it ends with a change. A
 * window begins anew when the workload has nothing to do, asks for more than its request, is
 * parked, or is not promised anything (no longest wait, a full pool), and when somebody in its way
 * has ended.
 *
 * Where moving takes long against a turn, the bound of turns wins over the share (turn_max; ten
 * times what moving takes, which is nobody's time): then no more is due than turns leave. Whoever
 * is within his request is away for what it takes to move him out and in, to move the largest other
 * in and out, and for the first part of its turn; then he has a turn.
 */
#include <inttypes.h>
#include <string.h>

#include "swap_world.h"

/* What all processes of a workload do just now. */
struct doing {
	bool is_beyond,
		is_idle; /* idle: nobody of it wants anything, or one was moved since it did not */
	uint32_t hold, wait;
	uint64_t use[SWAP_GPUS];
};

static bool wants(const struct swap_client *c)
{
	return c->thread == THREAD_STANDS || (c->thread == THREAD_ASKS && swap_is_out(c));
}

static void add(struct doing *d, const struct swap_client *c)
{
	if (c->is_open || c->order.phase == ORDER_DRAINS)
		d->hold++;
	else if (wants(c))
		d->wait++;
	d->is_idle |= c->order.was_idle;
	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++)
		d->use[gpu] += c->resident[gpu] + c->evicted[gpu] + c->hidden[gpu];
	if (c->thread == THREAD_ASKS || c->thread == THREAD_CREATES)
		d->use[c->ask_gpu] += c->ask_bytes;
}

/* --- windows --- */

/* The i-th last. */
static const struct swap_share_mark *mark_of(const struct swap_share *s, uint32_t i)
{
	return &s->mark[(s->next + SWAP_SHARE_MARKS - 1 - i) % SWAP_SHARE_MARKS];
}

static void mark(struct swap_share *s, sl_ns bound)
{
	s->mark[s->next] = (struct swap_share_mark){s->counted, s->held, bound};
	s->next = (s->next + 1) % SWAP_SHARE_MARKS;
	if (s->count < SWAP_SHARE_MARKS)
		s->count++;
}

/* The longest that was told in the window that ends now; 0: it did not want to run for so long. */
static sl_ns window_of(const struct swap_share *s)
{
	sl_ns bound = 0;

	for (uint32_t i = 0; i < s->count; i++) {
		const struct swap_share_mark *m = mark_of(s, i);

		bound = sl_max_u64(bound, m->bound);
		if (bound && m->counted + bound <= s->counted)
			return bound;
	}
	return 0;
}

/* How much of the window it held. Between two marks it held the same part all the time. */
static double held_in(const struct swap_share *s, sl_ns window)
{
	sl_ns from = s->counted - window, counted = s->counted, held = s->held;

	for (uint32_t i = 0; i < s->count; i++) {
		const struct swap_share_mark *m = mark_of(s, i);

		if (m->counted <= from) {
			double part = counted > m->counted
					      ? (double)(from - m->counted) /
							(double)(counted - m->counted)
					      : 0;

			return (double)(s->held - m->held) -
			       part * (double)(held - m->held);
		}
		counted = m->counted;
		held = m->held;
	}
	return (double)s->held;
}

/* --- what is due --- */

/* What turns leave of a window to whoever comes back as soon as he may. */
static double left_by_turns(struct swap_world *w, uint32_t slot, double window)
{
	const struct swap_rules *r = &w->rules;
	uint64_t id = w->workload[slot].id;
	sl_ns most = 20 * SL_MS;
	double away, cycle, rest;

	for (uint32_t i = 0; i < SWAP_WORKLOADS; i++) {
		if (w->workload[i].used && i != slot)
			most = sl_max_u64(most, swap_cost(r, w->workload[i].id));
	}
	/* The others' moves, its first part, and an order each way of both, with its answer; and
	 * the want. */
	away = (double)(swap_cost(r, id) + 2 * most + 5 * (w->up + w->down));
	cycle = away + (double)swap_least_turn(r, swap_member_of(&w->rules, id));
	rest = window - cycle * (double)(uint64_t)(window / cycle);
	return window - away * (double)(uint64_t)(window / cycle) -
	       (rest < away ? rest : away);
}

static double due_in(struct swap_world *w, uint32_t slot, double window)
{
	const struct swap_workload *wl = &w->workload[slot];
	double due, left = left_by_turns(w, slot, window);
	uint64_t shareable = 0;

	for (uint32_t gpu = 0; gpu < w->gpus; gpu++) {
		if (wl->mask >> gpu & 1)
			shareable = sl_max_u64(shareable, swap_shareable(&w->rules, gpu));
	}
	due = window * (double)wl->request / (double)shareable;
	return due < left ? due : left;
}

static void judge(struct swap_world *w, uint32_t slot)
{
	struct swap_share *s = &w->share[slot];
	sl_ns window = window_of(s);
	double had, due;

	if (!window)
		return;
	w->stats.windows++;
	had = held_in(s, window);
	due = due_in(w, slot, (double)window);
	/* A thousandth is for rounding. */
	if (had < 0.999 * due)
		swap_fail(w,
			"shares: workload %" PRIu64
			", within its request, had %.1f %% of the last %" PRIu64
			" ms, its longest wait; %.1f %% are due",
			w->workload[slot].id, 100 * had / (double)window, swap_ms(window),
			100 * due / (double)window);
}

/* --- what is going on --- */

/* Somebody has ended: what he held is still there, and how long he may have been in the way is not
 * known any more. */
static bool is_dying(const struct swap_world *w, uint32_t mask)
{
	for (uint32_t i = 0; i < w->rules.parties; i++) {
		const struct swap_party *p = &w->rules.party[i];

		for (uint32_t gpu = 0; p->used && gpu < w->gpus; gpu++) {
			if (mask >> gpu & 1 && p->dying[gpu])
				return true;
		}
	}
	return false;
}

static bool is_promised(
	struct swap_world *w, const struct swap_workload *wl, const struct doing *d)
{
	const struct swap_member *m;

	if (d->is_beyond || d->is_idle || !(d->hold || d->wait) || wl->parked ||
		!wl->mask)
		return false;
	/* Only who waits could be without what he was promised. */
	if (!d->wait)
		return true;
	m = swap_member_of(&w->rules, wl->id);
	return m && !m->removed && !m->stopping && w->rules.swaps &&
	       !swap_is_pool_in_the_way(&w->rules) && !is_dying(w, wl->mask);
}

static void begin(struct swap_share *s, const struct swap_workload *wl)
{
	*s = (struct swap_share){.id = wl->id, .request = wl->request, .at = s->at};
}

static void count_time(struct swap_share *s, sl_ns now)
{
	sl_ns passed = now - s->at;

	s->at = now;
	if (!s->goes_on || s->pauses)
		return;
	s->counted += passed;
	s->held += passed * s->hold / (s->hold + s->wait);
}

static void look_at(
	struct swap_world *w, uint32_t slot, const struct doing *d, uint32_t others_drain)
{
	struct swap_share *s = &w->share[slot];
	const struct swap_workload *wl = &w->workload[slot];
	bool goes_on = is_promised(w, wl, d), pauses;
	sl_ns bound;

	count_time(s, w->now);
	if (!goes_on || wl->id != s->id || wl->request != s->request)
		begin(s, wl);
	pauses = goes_on && d->wait && others_drain & wl->mask;
	if (goes_on == s->goes_on && pauses == s->pauses && d->hold == s->hold &&
		d->wait == s->wait)
		return;
	if (s->goes_on)
		judge(w, slot);
	s->goes_on = goes_on;
	s->pauses = pauses;
	s->hold = d->hold;
	s->wait = d->wait;
	if (!goes_on)
		return;
	bound = sl_node_workload(w->node, wl->id).longest_wait;
	if (bound == SL_NS_NEVER)
		begin(s, wl);
	else
		mark(s, bound);
}

void swap_share_look(struct swap_world *w)
{
	struct doing doing[SWAP_WORKLOADS];
	uint32_t drains[SWAP_GPUS] = {0}; /* workloads of which one drains there */

	/* With faults there are borrowers that cannot be drained, which is the exception to the
	 * promise. */
	if (w->faults || w->drains)
		return;
	memset(doing, 0, sizeof(doing));
	for (uint32_t i = 0; i < SWAP_CLIENTS; i++) {
		const struct swap_client *c = &w->client[i];

		if (!c->used)
			continue;
		add(&doing[c->workload], c);
		doing[c->workload].is_beyond |= c->condition != SL_CONDITION_RUNNING;
		if (c->order.phase == ORDER_DRAINS)
			drains[c->order.gpu] |= 1u << c->workload;
	}
	for (uint32_t i = 0; i < SWAP_WORKLOADS; i++) {
		uint32_t others_drain = 0;

		if (!w->workload[i].used)
			continue;
		for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
			doing[i].is_beyond |= doing[i].use[gpu] > w->workload[i].request;
			if (drains[gpu] & ~(1u << i))
				others_drain |= 1u << gpu;
		}
		look_at(w, i, &doing[i], others_drain);
	}
}
