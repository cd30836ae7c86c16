/*
 * plays_victims - plays of which client gives memory first, and how much
 *
 * 15 GiB can be shared in each. Expected are the orders, their clients, and their bytes.
 */
#include "stage.h"

#include <inttypes.h>

/* So many bytes were told to leave this one at or after this second. */
static uint64_t evicted(struct swap_world *w, uint32_t slot, double seconds)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < played_count; i++) {
		if (played[i].type == SL_ACTION_EVICT &&
			played[i].client == client(w, slot)->id &&
			played[i].at >= (sl_ns)(seconds * 1e9))
			bytes += played[i].bytes;
	}
	return bytes;
}

/* A has given 5 of its 10 GiB and cannot run. The 3 GiB that are lacking next are A's, too, and X
 * goes on computing. */
static void suspended_first(struct swap_world *w)
{
	uint32_t a, x;

	stage(w, 1, 64 * GIB);
	x = enter(w, (struct swap_workload){.size = 4 * GIB});
	a = enter(w, (struct swap_workload){.size = 10 * GIB});
	until(w, 5);
	(void)enter(w, (struct swap_workload){.size = 6 * GIB, .priority = 5});
	until(w, 6);
	expect(evicted(w, a, 5) == 5 * GIB && !evicted(w, x, 0),
		"%" PRIu64 " bytes of A were evicted", evicted(w, a, 5));
	(void)enter(w, (struct swap_workload){.size = 3 * GIB, .priority = 4});
	until(w, 7);
	expect(evicted(w, a, 6) == 3 * GIB, "%" PRIu64 " more bytes of A were evicted",
		evicted(w, a, 6));
	expect(!evicted(w, x, 0), "X was evicted though A cannot run anyhow");
}

/* Both have had no work for long, A for longer: it gives all of its 5 GiB, B the 2 GiB still
 * missing. */
static void longest_idle(struct swap_world *w)
{
	struct swap_workload idle = {.shape = SWAP_NOTEBOOK,
		.size = 5 * GIB,
		.priority = 5,
		.pieces = 1,
		.pause = 1000 * SL_S};
	uint32_t a, b;

	stage(w, 1, 64 * GIB);
	a = enter(w, idle);
	until(w, 3);
	b = enter(w, idle);
	until(w, 6);
	/* Of a lower priority: only from those that are idle may it take. */
	(void)enter(w, (struct swap_workload){.size = 12 * GIB});
	until(w, 10);
	expect(evicted(w, a, 0) == 5 * GIB, "%" PRIu64 " bytes of A were evicted",
		evicted(w, a, 0));
	expect(evicted(w, b, 0) == 2 * GIB, "%" PRIu64 " bytes of B were evicted",
		evicted(w, b, 0));
}

/* C asks for its request of 8 GiB. From clients that come before it in the order it gets only what
 * is above their requests. */
static void bursts_only(struct swap_world *w)
{
	const struct played *of_a, *of_b;
	uint32_t a, b;

	stage(w, 1, 64 * GIB);
	a = enter(w, (struct swap_workload){
			     .request = 4 * GIB, .size = 6 * GIB, .priority = 2});
	b = enter(w, (struct swap_workload){.size = 9 * GIB, .priority = 3});
	until(w, 10);
	(void)enter(w, (struct swap_workload){.request = 8 * GIB, .size = 8 * GIB});
	until(w, 10.5);
	/* The first of each: they come back for C's place soon. */
	of_a = first_of(SL_ACTION_EVICT, client(w, a)->id);
	of_b = first_of(SL_ACTION_EVICT, client(w, b)->id);
	expect(!of_a && of_b && of_b->bytes == 8 * GIB,
		"%" PRIu64 " bytes of B were evicted", of_b ? of_b->bytes : 0);
}

/*
 * Each holds the memory that the other one waits for, and memory is moved only after the longest
 * wait. Until then neither is hopeless; after it, both get their demands.
 */
static void hopeful(struct swap_world *w)
{
	uint32_t a, b;

	stage(w, 1, 64 * GIB);
	w->config.config.chain = SL_CHAIN(SL_RESOLVER_WAIT, SL_RESOLVER_SWAP, 0);
	swap_step(w, w->config);
	a = enter(w, (struct swap_workload){.size = 8 * GIB});
	b = enter(w, (struct swap_workload){.size = 7 * GIB});
	until(w, 0.5);
	for (uint32_t i = 0; i < 2; i++)
		w->workload[client(w, i ? b : a)->workload].size += 4 * GIB;
	until(w, 25); /* the second once the turn of the first is over */
	expect(!how_many(SL_ACTION_DENY, 0, 0), "%u were denied",
		how_many(SL_ACTION_DENY, 0, 0));
	expect(client(w, a)->resident[0] + client(w, a)->evicted[0] == 12 * GIB &&
			client(w, b)->resident[0] + client(w, b)->evicted[0] == 11 * GIB,
		"a demand was not granted");
}

/* H asks for 6 GiB within its request and lacks 4. L, of the lowest priority, has 5 within its own,
 * and B has 8 above. */
static void bursts_first(struct swap_world *w)
{
	uint32_t l, b, h;

	stage(w, 1, 64 * GIB);
	l = enter(w, (struct swap_workload){.request = 5 * GIB, .size = 5 * GIB});
	b = enter(w, (struct swap_workload){.size = 8 * GIB, .priority = 1});
	until(w, 1.5);
	h = enter(w, (struct swap_workload){
			     .request = 6 * GIB, .size = 6 * GIB, .priority = 2});
	until(w, 2);
	expect(client(w, h)->resident[0] == 6 * GIB, "H has not what it requested");
	expect(!how_many(SL_ACTION_EVICT, client(w, l)->id, 0), "L is moved for it");
	expect(how_many(SL_ACTION_EVICT, client(w, b)->id, 0) == 1, "B is not moved");
}

/* X has ended, and D waits for X's memory when `swap` leaves the chain. Then a stranger gets that
 * memory. Nothing is moved for D any more, so V is ended for D. */
static void helped_otherwise(struct swap_world *w)
{
	uint32_t ended, higher;

	stage(w, 1, 64 * GIB);
	w->config.config.stop_grace = 2 * SL_S;
	swap_step(w, w->config);
	ended = enter(w, (struct swap_workload){.size = 8 * GIB, .pieces = 1});
	(void)enter_idle(w, 5 * GIB);
	until(w, 5);
	swap_exit(w, ended);
	higher = enter(
		w, (struct swap_workload){.size = 9 * GIB, .pieces = 1, .priority = 5});
	until(w, 5.02);
	expect(!client(w, higher)->resident[0] && !how_many(SL_ACTION_EVICT, 0, 0),
		"D does not wait for what X leaves");
	w->config.config.chain = SL_CHAIN(SL_RESOLVER_PRIORITY, SL_RESOLVER_WAIT, 0);
	swap_step(w, w->config);
	swap_step(w,
		(struct sl_event){.type = SL_EVENT_UNMANAGED, .unmanaged = {0, 5 * GIB}});
	until(w, 20);
	expect(client(w, higher)->resident[0] == 9 * GIB, "no process is ended for D");
}

const struct swap_play swap_plays_victims[] = {
	{"a client that cannot run anyhow gives first", suspended_first},
	{"the client that was idle longest gives first", longest_idle},
	{"of those before it only bursts are taken", bursts_only},
	{"a client that can be moved is not hopeless", hopeful},
	{"no request is taken for another while there are bursts", bursts_first},
	{"no client is moved for a demand whose chain lost `swap`", helped_otherwise},
	{0},
};
