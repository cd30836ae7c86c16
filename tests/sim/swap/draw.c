/*
 * draw - episodes and workloads of swap-sim, drawn from the seed; see world.h
 *
 * The mood says what kind of machine it is and which workloads run on it. Moods that are judged by
 * the clock are drawn narrowly, so that the result is known; in the others nearly everything may
 * be drawn.
 */
#include "world.h"

static uint64_t chunks(struct swap_world *w, uint64_t least, uint64_t most)
{
	return sl_rng_between(&w->rng, least / SWAP_CHUNK, most / SWAP_CHUNK) *
	       SWAP_CHUNK;
}

static const uint64_t shape_weight[SWAP_SHAPE_COUNT] = {
#define X(NAME, weight, text) weight,
	SWAP_SHAPES(X)
#undef X
};
static const uint64_t mood_weight[SWAP_MOOD_COUNT] = {
#define X(NAME, weight, text) weight,
	SWAP_MOODS(X)
#undef X
};
static const uint32_t chain_of[SWAP_CHAIN_COUNT] = {
#define X(NAME, weight, turns, chain) chain,
	SWAP_CHAINS(X)
#undef X
};
/* Workloads whose turns are judged by their shares must be moved at once. */
static const uint64_t chain_weight[SWAP_CHAIN_COUNT] = {
#define X(NAME, weight, turns, chain) weight,
	SWAP_CHAINS(X)
#undef X
};
static const uint64_t turns_chain_weight[SWAP_CHAIN_COUNT] = {
#define X(NAME, weight, turns, chain) turns,
	SWAP_CHAINS(X)
#undef X
};

static uint32_t draw(struct swap_world *w, const uint64_t *weights, uint32_t count)
{
	uint64_t sum = 0, at;

	for (uint32_t i = 0; i < count; i++)
		sum += weights[i];
	at = sl_rng_below(&w->rng, sum);
	for (uint32_t i = 0;; i++) {
		if (at < weights[i])
			return i;
		at -= weights[i];
	}
}

/* One of the present workloads wants more than its request. */
static bool has_burst(const struct swap_world *w)
{
	for (uint32_t i = 0; i < SWAP_WORKLOADS; i++) {
		const struct swap_workload *wl = &w->workload[i];

		if (wl->used && wl->request < wl->size * wl->clients_most)
			return true;
	}
	return false;
}

/* Every second workload has no grace: it moves for bursts as soon as it is idle. The numbers come
 * from a generator of their own, so that they do not change the rest of a seed's story. */
sl_ns swap_draw_grace(const struct swap_world *w)
{
	struct sl_rng own = {w->rng.state ^ 0x5bd1e995};

	return sl_rng_one_in(&own, 2) ? 0 : sl_rng_span(&own, 100 * SL_MS, 30 * SL_S);
}

struct swap_workload swap_draw_workload(struct swap_world *w)
{
	uint64_t shareable = w->capacity[0] - w->capacity[0] / 16;
	struct swap_workload wl = {.used = true,
		.shape = (enum swap_shape)draw(w, shape_weight, SWAP_SHAPE_COUNT),
		.clients_most = 1,
		.idle_grace = swap_draw_grace(w),
		.limit = UINT64_MAX};
	uint32_t gpus = 1;

	if (w->mood == SWAP_TURNS) {
		wl.shape = SWAP_TRAINER;
		wl.size = chunks(w, shareable * 11 / 20, shareable * 12 / 20);
		wl.request = chunks(w, 0, shareable / 5);
	} else if (w->mood == SWAP_SHARES) {
		bool bursts = !has_burst(w);

		wl.shape = sl_rng_one_in(&w->rng, 5)
				   ? (enum swap_shape)sl_rng_below(&w->rng, SWAP_CHURNER)
				   : SWAP_TRAINER;
		wl.clients_most = bursts ? 1 : 1 + (uint32_t)sl_rng_one_in(&w->rng, 4);
		while (gpus < w->gpus && sl_rng_one_in(&w->rng, 4))
			gpus++;
		wl.size = bursts ? chunks(w, shareable / 2, shareable * 19 / 20)
				 : chunks(w, shareable / 20, shareable * 19 / 20);
		wl.size = sl_round_up(wl.size / wl.clients_most, SWAP_CHUNK);
		wl.request =
			bursts ? chunks(w, 0, shareable / 8) : wl.size * wl.clients_most;
		if (!bursts && sl_rng_one_in(&w->rng, 2))
			wl.priority = -1;
	} else if (w->mood == SWAP_ROOMY) {
		wl.clients_most = 1 + (uint32_t)sl_rng_below(&w->rng, 2);
		wl.shape = (enum swap_shape)sl_rng_below(&w->rng, SWAP_CHURNER);
		wl.size = chunks(w, SWAP_CHUNK, shareable / (2 * SWAP_WORKLOADS));
		wl.request = chunks(w, 0, shareable / (2 * SWAP_WORKLOADS));
	} else {
		while (gpus < w->gpus && sl_rng_one_in(&w->rng, 4))
			gpus++;
		wl.clients_most = 1 + (uint32_t)sl_rng_below(&w->rng, 3);
		wl.size = chunks(w, SWAP_CHUNK, shareable * 8 / 10 / wl.clients_most);
		wl.request = sl_rng_one_in(&w->rng, 3) ? 0 : chunks(w, 0, shareable / 3);
		if (sl_rng_one_in(&w->rng, 3))
			wl.limit =
				sl_max_u64(wl.request, chunks(w, SWAP_CHUNK, shareable));
		if (w->stops || sl_rng_one_in(&w->rng, 3))
			wl.priority = (int32_t)sl_rng_below(&w->rng, 3) - 1;
		if (sl_rng_one_in(&w->rng, 10))
			wl.flags |= SL_WORKLOAD_NO_SWAP;
		if (sl_rng_one_in(&w->rng, 5))
			wl.warm_after = swap_span(w, SL_S, 20 * SL_S);
	}
	wl.mask = gpus; /* the count, until it is admitted */
	switch (wl.shape) {
	case SWAP_TRAINER: wl.piece = swap_span(w, 5 * SL_MS, 200 * SL_MS); break;
	case SWAP_SERVER:
		wl.piece = swap_span(w, 5 * SL_MS, 50 * SL_MS);
		wl.pause = swap_span(w, 50 * SL_MS, 10 * SL_S);
		wl.pieces = 4;
		break;
	default:
		wl.piece = swap_span(w, 10 * SL_MS, 500 * SL_MS);
		wl.pause = swap_span(w, 100 * SL_MS, 30 * SL_S);
		wl.pieces = 1 + (uint32_t)sl_rng_below(&w->rng, 20);
	}
	return wl;
}

void swap_arrive_drawn(struct swap_world *w)
{
	swap_arrive(w, swap_draw_workload(w));
}

static void draw_machine(struct swap_world *w)
{
	uint64_t capacity = chunks(w, SL_GIB, 16 * SL_GIB) / 16 * 16;

	w->gpus = w->mood == SWAP_TURNS || sl_rng_one_in(&w->rng, 2)
			  ? 1
			  : 1 + (uint32_t)sl_rng_below(&w->rng, SWAP_GPUS);
	for (uint32_t gpu = 0; gpu < w->gpus; gpu++) {
		w->capacity[gpu] = capacity;
		if (w->mood != SWAP_TURNS && sl_rng_one_in(&w->rng, 4))
			w->capacity[gpu] = chunks(w, SL_GIB, 16 * SL_GIB) / 16 * 16;
		w->link_out[gpu] = chunks(w, SL_GIB, 32 * SL_GIB);
		w->link_in[gpu] = chunks(w, SL_GIB, 32 * SL_GIB);
	}
	w->pool = capacity * w->gpus * 4;
	if (w->mood == SWAP_CHAOS || w->mood == SWAP_BUSY)
		w->pool = chunks(w, 0, capacity * w->gpus * 2);
	/* What the pool has no room for is the next resolver's. */
	if (w->mood != SWAP_TURNS && w->mood != SWAP_SHARES && w->stops &&
		sl_rng_one_in(&w->rng, 2))
		w->pool = chunks(w, 0, capacity * w->gpus / 4);
	w->fixed = 0;
	if (w->chains && (w->mood == SWAP_CHAOS || w->mood == SWAP_BUSY) &&
		sl_rng_one_in(&w->rng, 4))
		w->fixed = 1u << sl_rng_below(&w->rng, w->gpus);
	w->slack = sl_min_u64(w->pool / 8, 256 * SL_MIB);
	w->up = w->down = 0;
	if (w->mood != SWAP_TURNS && sl_rng_one_in(&w->rng, 2))
		w->up = w->down = swap_span(w, 20 * SL_US, 20 * SL_MS);
}

/* The resolvers, and the requests of those that stop processes. */
static void draw_resolvers(struct swap_world *w)
{
	const uint64_t *weights =
		w->mood == SWAP_TURNS ? turns_chain_weight : chain_weight;
	uint32_t chain = w->forced_chain ? (uint32_t)w->forced_chain - 1
					 : draw(w, weights, SWAP_CHAIN_COUNT);

	w->stops = false;
	w->config.config.chain = chain_of[chain];
	for (chain = chain_of[chain]; chain; chain >>= 4)
		w->stops |= (chain & 15) == SL_RESOLVER_PRIORITY;
	w->config.config.stop_idle =
		sl_rng_one_in(&w->rng, 3) ? 0 : swap_span(w, 2 * SL_S, 60 * SL_S);
	w->config.config.stop_grace = swap_span(w, 10 * SL_MS, 5 * SL_S);
	w->config.config.last_resort =
		sl_rng_one_in(&w->rng, 2) ? SL_LAST_RESORT_FAIL : SL_LAST_RESORT_STOP;
}

bool swap_draw_chains(uint64_t seed)
{
	return (seed * 0xd1342543de82ef95) >> 63;
}

uint32_t swap_draw_chain(struct swap_world *w)
{
	static const uint32_t chains[] = {0, SL_CHAIN(SL_RESOLVER_WAIT, 0, 0),
		SL_CHAIN(SL_RESOLVER_FAIL, 0, 0), SL_CHAIN(SL_RESOLVER_SWAP, 0, 0),
		SL_CHAIN(SL_RESOLVER_WAIT, SL_RESOLVER_SWAP, 0),
		SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, 0),
		SL_CHAIN(SL_RESOLVER_PRIORITY, SL_RESOLVER_WAIT, 0),
		SL_CHAIN(SL_RESOLVER_WAIT, SL_RESOLVER_PRIORITY, 0),
		SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_WAIT, SL_RESOLVER_PRIORITY)};

	return chains[sl_rng_below(&w->rng, SL_ARRAY_LEN(chains))]
	       << SL_WORKLOAD_CHAIN_SHIFT;
}

void swap_draw_episode(struct swap_world *w)
{
	w->mood = w->forced_mood ? (enum swap_mood)(w->forced_mood - 1)
				 : (enum swap_mood)draw(w, mood_weight, SWAP_MOOD_COUNT);
	w->faults = w->mood == SWAP_CHAOS;
	draw_resolvers(w);
	draw_machine(w);
	w->beat = swap_span(w, 50 * SL_MS, SL_S);
	w->workloads_most = w->mood == SWAP_TURNS || w->mood == SWAP_SHARES
				    ? 2 + (uint32_t)sl_rng_below(&w->rng, 5)
				    : 2 + (uint32_t)swap_span(w, 1, SWAP_WORKLOADS - 2);
	w->workloads_most = (uint32_t)sl_min_u64(w->workloads_most, SWAP_WORKLOADS);
	w->clients_most = SWAP_CLIENTS;
	w->episode_ends = w->stats.events + sl_rng_between(&w->rng, 1000, 10000);
	w->config = (struct sl_event){.type = SL_EVENT_CONFIG,
		.config = {.wait_max = swap_span(w, 5 * SL_S, 60 * SL_S),
			.head_pass = SL_S,
			.idle_wait = SL_S,
			.recover_wait = 2 * SL_S,
			.pool_bytes = w->pool,
			.slack_bytes = w->slack,
			.untakeable_after = 30 * SL_S,
			.detach = w->detaches,
			.chain = w->config.config.chain,
			.stop_idle = w->config.config.stop_idle,
			.stop_grace = w->config.config.stop_grace,
			.last_resort = w->config.config.last_resort,
			.turn_max = sl_rng_one_in(&w->rng, 3)
					    ? swap_span(w, 200 * SL_MS, 20 * SL_S)
					    : 0}};
	if (w->faults && sl_rng_one_in(&w->rng, 5))
		w->config.config.pool_member_bytes = chunks(w, 0, w->pool);
}
