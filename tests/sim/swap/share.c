/*
 * share - SHARE: has a workload within its request its share of the time?
 *
 * The promise: within its request a workload that wants to run holds the GPU at least
 * request/shareable of the time. That holds in any window as long as the longest wait it was told.
 * It holds the GPU while its gate is open; of several processes, those count that want to run and
 * hold it.
 *
 * Windows follow each other. Time is counted only while the workload wants to run and nothing moves
 * on its GPUs: moving time belongs to no workload. A window begins anew when the workload has
 * nothing to do, asks for more than its request, is parked, or has no promise (no longest wait, a
 * full pool). It also does when a process in its way has ended. Nothing is judged where turns may
 * hardly be longer than the protected 200 ms, because that bound wins over the share.
 */
#include <inttypes.h>
#include <string.h>

#include "world.h"

#define TURN_MAX_LEAST (20 * 200 * SL_MS)

/* What all processes of a workload do just now. */
struct doing {
	bool is_beyond,
		is_idle; /* idle: none of its clients wants anything, or one was moved since it did
			  * not */
	uint32_t hold, wait;
	uint64_t use[SWAP_GPUS];
};

static void add(struct doing *d, const struct swap_client *c)
{
	if (c->is_open)
		d->hold++;
	else if (c->thread == THREAD_STANDS ||
		 (c->thread == THREAD_ASKS && swap_is_out(c)))
		d->wait++;
	d->is_idle |= c->order.was_idle;
	d->is_beyond |= c->condition != SL_CONDITION_RUNNING;
	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++)
		d->use[gpu] += c->resident[gpu] + c->evicted[gpu] + c->hidden[gpu];
	if (c->thread == THREAD_ASKS || c->thread == THREAD_CREATES)
		d->use[c->ask_gpu] += c->ask_bytes;
}

/* A process has ended: its memory is still there, and how long it was in the way is not known any
 * more. */
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

	for (uint32_t gpu = 0; gpu < SWAP_GPUS; gpu++) {
		if (d->use[gpu] > wl->request)
			return false;
	}
	if (d->is_beyond || d->is_idle || !(d->hold || d->wait) || wl->parked)
		return false;
	/* Only a waiting client could be without its promise. */
	if (!d->wait)
		return true;
	m = swap_member_of(&w->rules, wl->id);
	return m && !m->removed && !m->stopping && w->rules.swaps &&
	       !swap_is_pool_in_the_way(&w->rules) && !is_dying(w, wl->mask);
}

static double due_of(const struct swap_world *w, const struct swap_workload *wl)
{
	uint64_t shareable = 1;

	for (uint32_t gpu = 0; gpu < w->gpus; gpu++) {
		if (wl->mask >> gpu & 1)
			shareable = sl_max_u64(shareable, swap_shareable(&w->rules, gpu));
	}
	return (double)wl->request / (double)shareable;
}

static void judge(
	struct swap_world *w, const struct swap_workload *wl, const struct swap_share *s)
{
	double had = (double)s->held / (double)s->counted;

	w->stats.windows++;
	/* A thousandth is for rounding. */
	if (had < 0.999 * due_of(w, wl))
		swap_fail(w,
			"SHARE: workload %" PRIu64
			", within its request, had %.1f %% of the last %" PRIu64
			" ms, its longest wait; %.1f %% are due",
			wl->id, 100 * had, swap_ms(s->counted), 100 * due_of(w, wl));
}

static void look_at(
	struct swap_world *w, uint32_t slot, const struct doing *d, bool something_moves)
{
	struct swap_share *s = &w->share[slot];
	const struct swap_workload *wl = &w->workload[slot];
	sl_ns passed = w->now - s->at, bound;

	s->at = w->now;
	if (s->hold + s->wait) {
		s->counted += passed;
		s->held += passed * s->hold / (s->hold + s->wait);
	}
	if (s->bound && s->counted >= s->bound) {
		judge(w, wl, s);
		s->bound = 0;
	}
	if (!is_promised(w, wl, d))
		s->bound = 0;
	bound = d->wait ? sl_node_workload(w->node, wl->id).longest_wait : 0;
	if (!s->bound)
		s->counted = s->held = 0;
	s->bound = bound == SL_NS_NEVER ? 0 : sl_max_u64(s->bound, bound);
	s->hold = something_moves || !s->bound ? 0 : d->hold;
	s->wait = something_moves || !s->bound ? 0 : d->wait;
}

void swap_share_look(struct swap_world *w)
{
	struct doing doing[SWAP_WORKLOADS];
	uint32_t moves = 0; /* GPUs */

	/* With faults there are borrowers that cannot be drained, which is the exception to the
	 * promise. */
	if (w->faults || w->drains || w->rules.turn_max < TURN_MAX_LEAST)
		return;
	memset(doing, 0, sizeof(doing));
	for (uint32_t i = 0; i < SWAP_CLIENTS; i++) {
		const struct swap_client *c = &w->client[i];

		if (!c->used)
			continue;
		add(&doing[c->workload], c);
		if (c->order.phase)
			moves |= 1u << c->order.gpu;
	}
	for (uint32_t i = 0; i < SWAP_WORKLOADS; i++) {
		/* A later client in its place begins anew. */
		if (w->workload[i].used)
			look_at(w, i, &doing[i], moves & w->workload[i].mask);
		else
			w->share[i] = (struct swap_share){0};
	}
}
