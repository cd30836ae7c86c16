/*
 * plays_growing - plays of programs that load their memory piece by piece
 *
 * 15 GiB can be shared. A and B want 10 each, in 40 pieces, and then work once and rest. At least 5
 * GiB of each must move out and in again: 10 GiB, which take 100 ms each way.
 */
#include "stage.h"

#define SIZE (10 * GIB)

static uint32_t enter_growing(struct swap_world *w, uint64_t request)
{
	return enter(w, (struct swap_workload){.shape = SWAP_NOTEBOOK,
				.request = request,
				.size = SIZE,
				.step = SIZE / 40,
				.pieces = 1,
				.pause = 1000 * SL_S});
}

static bool has_all(struct swap_world *w, uint32_t slot)
{
	return client(w, slot)->resident[0] + client(w, slot)->evicted[0] == SIZE;
}

/* Seconds until all of them have their memory; at most `most`. */
static double ready_at(struct swap_world *w, uint32_t a, uint32_t b, double most)
{
	double at = 0;

	while (at < most && !(has_all(w, a) && has_all(w, b)))
		until(w, at += 0.05);
	return at;
}

static void both_grow(struct swap_world *w)
{
	uint32_t a, b;
	double at;

	stage(w, 1, 64 * GIB);
	a = enter_growing(w, 4 * GIB);
	b = enter_growing(w, 4 * GIB);
	at = ready_at(w, a, b, 60);
	expect(at < 2 && how_many(SL_ACTION_EVICT, 0, 0) <= 4,
		"both are ready after %.1f s, with %u evictions", at,
		how_many(SL_ACTION_EVICT, 0, 0));
}

/* The link is so slow that moving takes as long as loading, and a turn is 10 s. A program that
 * waits for memory in its turn gives up all but the first part of it. */
static void both_grow_slowly(struct swap_world *w)
{
	uint32_t a, b;
	double at;

	stage(w, 1, 64 * GIB);
	w->link_out[0] = w->link_in[0] = 16 * GIB;
	swap_step(w, (struct sl_event){.type = SL_EVENT_LINK_COST,
			     .link_cost = {0, 16 * GIB, 16 * GIB}});
	a = enter_growing(w, 4 * GIB);
	b = enter_growing(w, 4 * GIB);
	at = ready_at(w, a, b, 60);
	expect(at < 2.8, "both are ready after %.1f s, with %u evictions", at,
		how_many(SL_ACTION_EVICT, 0, 0));
}

static void grows_beside_idle(struct swap_world *w)
{
	uint32_t idle, a;
	double at;

	stage(w, 1, 64 * GIB);
	idle = enter_idle(w, 10 * GIB);
	until(w, 5);
	a = enter_growing(w, 4 * GIB);
	at = ready_at(w, a, a, 60);
	expect(how_many(SL_ACTION_EVICT, client(w, idle)->id, 0) <= 4,
		"it is ready after %.1f s, with %u evictions", at,
		how_many(SL_ACTION_EVICT, 0, 0));
}

const struct swap_play swap_plays_growing[] = {
	{"two load piece by piece at once", both_grow},
	{"two load piece by piece over a slow link", both_grow_slowly},
	{"one loads piece by piece beside an idle one", grows_beside_idle},
	{0},
};
