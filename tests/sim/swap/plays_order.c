/*
 * plays_order - plays about the order of turns: what is kept for which client, and when
 * others are moved
 */
#include <inttypes.h>

#include "stage.h"

/* `wait` stands before `swap`. So B first waits for its longest wait; only then A, which is idle,
 * is moved for it. */
static void wait_first(struct swap_world *w)
{
	const struct played *l;
	uint32_t a, b;

	stage(w, 1, 64 * GIB);
	w->config.config.chain = SL_CHAIN(SL_RESOLVER_WAIT, SL_RESOLVER_SWAP, 0);
	swap_step(w, w->config);
	a = enter_idle(w, 10 * GIB);
	until(w, 5);
	b = enter(w, (struct swap_workload){.size = 10 * GIB});
	until(w, 24.9);
	expect(!how_many(SL_ACTION_EVICT, 0, 0), "A was moved before the longest wait");
	until(w, 27);
	l = first_of(SL_ACTION_EVICT, 0);
	expect(l && l->client == client(w, a)->id && l->at >= 25 * SL_S,
		"A was not moved after the longest wait");
	expect(client(w, b)->resident[0] == 10 * GIB, "B has not got its memory");
	expect(!how_many(SL_ACTION_DENY, 0, 0), "a demand was denied");
}

/* The client that lacks its memory on the host; the other one runs. */
static uint32_t who_is_out(struct swap_world *w, uint32_t a, uint32_t b)
{
	return client(w, a)->evicted[0] ? a : b;
}

/* Runs until the next client has come back; false: none does. */
static bool next_turn(struct swap_world *w)
{
	uint32_t before = how_many(SL_ACTION_RESTORE, 0, 0);
	sl_ns end = w->now + 10 * SL_S;

	while (how_many(SL_ACTION_RESTORE, 0, 0) == before && w->now < end &&
		!w->failed[0])
		swap_world_until(w, w->now + SL_MS);
	return w->now < end;
}

/*
 * A of 10 GiB and B of 9 take turns beside C of 2, which comes before both. C ends early in a turn.
 * The one on the host lacks 6 GiB, of which 2 are then free, and these are kept for it. D comes
 * later, asks for 1 GiB, and must wait behind it.
 */
static void kept(struct swap_world *w)
{
	uint32_t a, b, c, d, out;

	stage(w, 1, 64 * GIB);
	c = enter(w, (struct swap_workload){.size = 2 * GIB, .priority = 5});
	until(w, 1);
	a = enter(w, (struct swap_workload){.size = 10 * GIB});
	b = enter(w, (struct swap_workload){.size = 9 * GIB});
	until(w, 10);
	expect(next_turn(w), "no turns are taken");
	swap_remove(w, client(w, c)->workload);
	while (sl_node_gpu(w->node, 0).free_bytes < 2 * GIB && w->now < 30 * SL_S)
		swap_world_until(w, w->now + SL_MS);
	out = who_is_out(w, a, b);
	expect(client(w, out)->evicted[0] == 6 * GIB &&
			client(w, out)->thread == THREAD_STANDS,
		"%" PRIu64 " bytes are on the host", client(w, out)->evicted[0]);
	swap_world_until(w, w->now + SL_S);
	d = enter(w, (struct swap_workload){.size = GIB});
	swap_world_until(w, w->now + 50 * SL_MS);
	expect(client(w, out)->evicted[0] == 6 * GIB, "the turn was over too early");
	expect(client(w, d)->thread == THREAD_ASKS && !client(w, d)->resident[0],
		"D took memory that is kept for a returning client");
	swap_world_until(w, w->now + 10 * SL_S);
	expect(client(w, d)->resident[0] + client(w, d)->evicted[0] == GIB,
		"D was never served");
}

/*
 * N keeps 4 of 15 GiB and cannot be moved. A, idle, was moved for B. While A is on the host it asks
 * for 2 GiB more. Its 12 GiB never fit beside N, so A must not come back for them.
 */
static void asks_too_much(struct swap_world *w)
{
	uint32_t a;

	stage(w, 1, 64 * GIB);
	(void)enter(w, (struct swap_workload){.request = 4 * GIB,
			       .size = 4 * GIB,
			       .flags = SL_WORKLOAD_NO_SWAP});
	until(w, 1);
	a = enter(w, (struct swap_workload){.shape = SWAP_NOTEBOOK,
			     .size = 10 * GIB,
			     .pieces = 1,
			     .pause = 5 * SL_S});
	until(w, 2);
	(void)enter(w, (struct swap_workload){.size = 10 * GIB});
	until(w, 4);
	expect(client(w, a)->evicted[0] == 9 * GIB, "A has %" PRIu64 " on the host",
		client(w, a)->evicted[0]);
	w->workload[client(w, a)->workload].size = 12 * GIB;
	until(w, 10);
	expect(client(w, a)->thread == THREAD_ASKS, "A does not ask for more");
	expect(!how_many(SL_ACTION_RESTORE, client(w, a)->id, 0),
		"A comes back for what never fits");
}

/*
 * A and B take turns, and one of them always waits on the host. C, of higher priority, comes before
 * the waiting one. It gets its memory within 250 ms, the time of a move, a piece of work and 100
 * ms, and keeps it.
 */
static void priority_before_turns(struct swap_world *w)
{
	uint32_t c;
	sl_ns open0;

	stage(w, 1, 64 * GIB);
	(void)enter(w, (struct swap_workload){.size = 10 * GIB});
	(void)enter(w, (struct swap_workload){.size = 10 * GIB});
	until(w, 10);
	expect(next_turn(w), "no turns are taken");
	swap_world_until(w, w->now + 500 * SL_MS);
	c = enter(w, (struct swap_workload){.size = 10 * GIB, .priority = 5});
	swap_world_until(w, w->now + 250 * SL_MS);
	expect(client(w, c)->resident[0] == 10 * GIB, "C waits behind those below it");
	open0 = swap_open(w, client(w, c));
	swap_world_until(w, w->now + 4 * SL_S);
	expect(share(w, c, open0, 4 * SL_S) > 0.99, "C was moved for those below it");
}

/* A computes in pieces of 10 ms. Because B lacks room, A is asked about its work (PROBE). A must be
 * asked again on its next connection; otherwise its last piece would seem never to end. */
static void asked_on_each_connection(struct swap_world *w)
{
	uint32_t a;

	stage(w, 1, 64 * GIB);
	a = enter(w, (struct swap_workload){.size = 10 * GIB, .request = 10 * GIB});
	(void)enter(w, (struct swap_workload){.size = 9 * GIB});
	until(w, 5.035);
	swap_lose_line(w, a);
	until(w, 15);
	expect(client(w, a)->connected, "A is not there again");
	expect(sl_node_client(w->node, client(w, a)->id).busy < SL_S,
		"A has been busy for %" PRIu64 " ms",
		swap_ms(sl_node_client(w->node, client(w, a)->id).busy));
}

/* B waits to come back within its request; A, which is in its way, cannot leave. Then B is removed.
 * A later client in B's slot must be judged by its own wait, not by B's. */
static void judged_anew(struct swap_world *w)
{
	struct swap_workload within = {.size = 8 * GIB, .request = 8 * GIB};
	uint32_t a, b;

	stage(w, 1, 64 * GIB);
	b = enter(w, within);
	until(w, 2);
	person(w, SL_EVENT_WORKLOAD_PARK, b);
	a = enter(w, (struct swap_workload){.size = 12 * GIB});
	until(w, 5);
	client(w, a)->capturing = true;
	person(w, SL_EVENT_WORKLOAD_RESUME, b);
	until(w, 5.5);
	expect(client(w, b)->evicted[0] == 8 * GIB &&
			client(w, b)->thread == THREAD_STANDS,
		"B does not wait");
	swap_remove(w, b);
	client(w, a)->capturing = false;
	until(w, 100);
	expect(enter(w, within) == b, "C is not in B's place");
	expect(until(w, 102), "%s", w->failed);
}

/* R uses nothing of its request of 12 GiB; A borrows 1 GiB of it. The pool lacks space for the half
 * GiB that B would borrow, so A ends for B, even while A's grant is still being created. */
static void made_meanwhile(struct swap_world *w)
{
	uint32_t a, b;

	stage(w, 1, GIB + GIB / 3);
	w->config.config.chain = SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_PRIORITY, 0);
	swap_step(w, w->config);
	(void)swap_world_workload(
		w, (struct swap_workload){
			   .size = GIB, .request = 12 * GIB, .limit = UINT64_MAX});
	a = enter(w, (struct swap_workload){.size = 4 * GIB, .priority = -1});
	/* Messages are under way for 10 ms: A hears of it at 20, B asks at 15. */
	w->up = w->down = 10 * SL_MS;
	until(w, 0.005);
	b = enter(w, (struct swap_workload){.size = GIB / 2});
	expect(until(w, 1), "%s", w->failed);
	expect(!client(w, a)->used && client(w, b)->resident[0], "A does not end for B");
}

/*
 * N wants 1 GiB that never moves, and must leave free the unused 4 GiB of the request of A's
 * workload. P, of higher priority, uses these, so N waits. Meanwhile no memory moves for A,
 * although all that is wanted would fit. A is told a longest wait that allows for this.
 */
static void behind_what_stays(struct swap_world *w)
{
	uint32_t a;

	stage(w, 1, 64 * GIB);
	a = enter(w, (struct swap_workload){.shape = SWAP_NOTEBOOK,
			     .request = 9 * GIB,
			     .size = 5 * GIB,
			     .pieces = 1,
			     .pause = 20 * SL_S});
	until(w, 10);
	a = swap_world_client(w, client(w, a)->workload);
	until(w, 12);
	(void)enter(w, (struct swap_workload){.size = 8 * GIB, .priority = 5});
	until(w, 24);
	(void)enter(w, (struct swap_workload){.size = GIB, .flags = SL_WORKLOAD_NO_SWAP});
	until(w, 32);
	expect(client(w, a)->evicted[0] == 3 * GIB &&
			client(w, a)->thread == THREAD_STANDS,
		"A has %" PRIu64 " on the host", client(w, a)->evicted[0]);
	expect(until(w, 50), "%s", w->failed);
	expect(!client(w, a)->evicted[0], "A did not come back");
}

const struct swap_play swap_plays_order[] = {
	{"waiting comes before moving others", wait_first},
	{"memory is kept for a returning client", kept},
	{"asking for what never fits", asks_too_much},
	{"higher priority is before those that wait", priority_before_turns},
	{"what is asked is asked on each connection", asked_on_each_connection},
	{"what comes in the place of another is judged anew", judged_anew},
	{"what is being made counts in the pool", made_meanwhile},
	{"a burst that stays counts with what it leaves free", behind_what_stays},
	{0},
};
