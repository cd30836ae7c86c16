/*
 * plays_returns - plays of which client comes first, and what is left to it
 *
 * 15 GiB can be shared in each.
 */
#include "stage.h"

#include <inttypes.h>

/* A is too large beside C and waits for room; B, resumed later, would fit and stays behind it. */
static void resumed_in_order(struct swap_world *w)
{
	uint32_t a, b, c;

	stage(w, 1, 64 * GIB);
	a = enter(w, (struct swap_workload){.request = 10 * GIB, .size = 10 * GIB});
	b = enter(w, (struct swap_workload){.request = 4 * GIB, .size = 4 * GIB});
	until(w, 5);
	person(w, SL_EVENT_WORKLOAD_PARK, a);
	person(w, SL_EVENT_WORKLOAD_PARK, b);
	until(w, 6);
	c = enter(w, (struct swap_workload){.request = 9 * GIB, .size = 9 * GIB});
	until(w, 8);
	person(w, SL_EVENT_WORKLOAD_RESUME, a);
	until(w, 9);
	person(w, SL_EVENT_WORKLOAD_RESUME, b);
	until(w, 11);
	expect(view(w, a).residency == SL_RESIDENCY_RESUMING &&
			view(w, b).residency == SL_RESIDENCY_RESUMING,
		"beside C: A is in state %u, B in state %u",
		(unsigned)view(w, a).residency, (unsigned)view(w, b).residency);
	swap_remove(w, client(w, c)->workload);
	until(w, 13);
	expect(view(w, a).residency == SL_RESIDENCY_BOUND &&
			view(w, b).residency == SL_RESIDENCY_BOUND,
		"after C: A is in state %u, B in state %u",
		(unsigned)view(w, a).residency, (unsigned)view(w, b).residency);
}

/* All memory fits. C took the time that A gave up with its park, so A comes back after C. */
static void resumed_without_time(struct swap_world *w)
{
	struct swap_workload wants = {
		.request = 4 * GIB, .size = 4 * GIB, .compute_pm = 600};
	uint32_t a, c;

	stage(w, 1, 64 * GIB);
	a = enter(w, wants);
	until(w, 5);
	person(w, SL_EVENT_WORKLOAD_PARK, a);
	until(w, 6);
	c = enter(w, wants);
	until(w, 8);
	person(w, SL_EVENT_WORKLOAD_RESUME, a);
	until(w, 11);
	expect(view(w, a).residency == SL_RESIDENCY_RESUMING,
		"beside C: A is in state %u", (unsigned)view(w, a).residency);
	swap_remove(w, client(w, c)->workload);
	until(w, 13);
	expect(view(w, a).residency == SL_RESIDENCY_BOUND, "after C: A is in state %u",
		(unsigned)view(w, a).residency);
}

/* A has given 5 of its 10 GiB and waits for them; C, behind it in the order, gets nothing of the
 * other 5. */
static void kept_by_the_first(struct swap_world *w)
{
	uint32_t a, before;

	stage(w, 1, 64 * GIB);
	a = enter(w, (struct swap_workload){.size = 10 * GIB, .priority = 1});
	until(w, 5);
	(void)enter(w, (struct swap_workload){.size = 10 * GIB, .priority = 5});
	until(w, 6);
	expect(client(w, a)->evicted[0] == 5 * GIB, "%" PRIu64 " bytes of A were evicted",
		client(w, a)->evicted[0]);
	before = how_many(SL_ACTION_EVICT, client(w, a)->id, 0);
	(void)enter(w, (struct swap_workload){.size = 3 * GIB});
	until(w, 7);
	expect(how_many(SL_ACTION_EVICT, client(w, a)->id, 0) == before,
		"A was evicted for a client that comes after it");
}

/* A waits for X, of higher priority, to end; B comes back to its request before A, whatever their
 * priorities. */
static void request_first(struct swap_world *w)
{
	uint32_t a, b, x;

	stage(w, 1, 64 * GIB);
	b = enter(w, (struct swap_workload){.request = 10 * GIB, .size = 10 * GIB});
	until(w, 2);
	person(w, SL_EVENT_WORKLOAD_PARK, b);
	until(w, 3);
	a = enter(w, (struct swap_workload){.size = 10 * GIB, .priority = 2});
	until(w, 5);
	x = enter(w, (struct swap_workload){.size = 10 * GIB, .priority = 5});
	until(w, 8);
	expect(client(w, a)->evicted[0] == 5 * GIB, "%" PRIu64 " bytes of A were evicted",
		client(w, a)->evicted[0]);
	person(w, SL_EVENT_WORKLOAD_RESUME, b);
	until(w, 9);
	expect(first_of(SL_ACTION_RESTORE, client(w, b)->id) && view(w, b).turns == 2 &&
			!first_of(SL_ACTION_RESTORE, client(w, a)->id),
		"B has had %" PRIu64 " turns", view(w, b).turns);
	until(w, 30);
	expect(client(w, b)->resident[0] == 10 * GIB, "B is moved within its request");
	(void)x;
}

/* A leaves for B, and is stopped half-way. C may use what B has got already, though B comes before
 * C. */
static void stopped_half_way(struct swap_world *w)
{
	uint32_t a, b, c;

	stage(w, 1, 64 * GIB);
	b = enter(w, (struct swap_workload){.size = 10 * GIB, .priority = 5});
	until(w, 2);
	person(w, SL_EVENT_WORKLOAD_PARK, b);
	until(w, 3);
	a = enter(w, (struct swap_workload){.size = 10 * GIB});
	until(w, 5);
	person(w, SL_EVENT_WORKLOAD_RESUME, b);
	while (!client(w, a)->evicted[0] && w->now < 10 * SL_S)
		(void)swap_world_until(w, w->now + SL_MS);
	expect(client(w, a)->resident[0] > 5 * GIB, "A had left at once");
	client(w, a)->condition = SL_CONDITION_STOPPED;
	swap_step(w, (struct sl_event){.type = SL_EVENT_CONDITION,
			     .condition = {client(w, a)->id, SL_CONDITION_STOPPED}});
	c = enter(w, (struct swap_workload){.size = GIB});
	until(w, 12);
	expect(client(w, c)->resident[0] == GIB, "C has %" PRIu64 " bytes",
		client(w, c)->resident[0]);
}

/* A leaves for B, and a part of B comes back meanwhile. Then B's line is lost, half-way. C, of
 * higher priority and within its request, fits in the free memory. C must not wait until B is
 * resident. */
static void fails_half_way(struct swap_world *w)
{
	uint32_t b, c;

	stage(w, 1, 64 * GIB);
	b = enter(w, (struct swap_workload){.size = 14 * GIB, .priority = 5});
	until(w, 1);
	person(w, SL_EVENT_WORKLOAD_PARK, b);
	until(w, 2);
	c = enter(w, (struct swap_workload){.request = GIB, .size = GIB, .priority = 9});
	until(w, 3);
	person(w, SL_EVENT_WORKLOAD_PARK, c);
	until(w, 4);
	(void)enter(w, (struct swap_workload){.size = 10 * GIB});
	until(w, 6);
	person(w, SL_EVENT_WORKLOAD_RESUME, b);
	until(w, 6.05);
	expect(client(w, b)->order.phase == ORDER_RETURNS &&
			client(w, b)->order.bytes < 14 * GIB,
		"no part of B comes back");
	swap_lose_line(w, b);
	person(w, SL_EVENT_WORKLOAD_RESUME, c);
	expect(how_many(SL_ACTION_RESTORE, client(w, c)->id, 0) == 1,
		"C waits for B, which has failed half-way");
	until(w, 20);
	expect(view(w, b).turns > 1, "B never came back");
}

/* A has 10 GiB on each of two GPUs, and comes back on the first. Meanwhile another process takes 8
 * GiB of the second. A must not be restored there on top of these, and comes back there once they
 * are gone. */
static void lost_room(struct swap_world *w)
{
	struct sl_event other = {.type = SL_EVENT_UNMANAGED, .unmanaged = {1, 8 * GIB}};
	uint32_t a;

	stage(w, 2, 64 * GIB);
	a = enter(w, (struct swap_workload){.size = 10 * GIB, .mask = 2});
	until(w, 5);
	person(w, SL_EVENT_WORKLOAD_PARK, a);
	until(w, 7);
	person(w, SL_EVENT_WORKLOAD_RESUME, a);
	until(w, 7.05);
	swap_step(w, other);
	until(w, 9);
	expect(client(w, a)->resident[0] == 10 * GIB &&
			client(w, a)->evicted[1] == 10 * GIB &&
			how_many(SL_ACTION_RESTORE, 0, 0) == 1,
		"A was brought in on top of what others have");
	other.unmanaged.bytes = 0;
	swap_step(w, other);
	until(w, 10);
	expect(client(w, a)->resident[1] == 10 * GIB, "A does not come back");
}

/* A has requested 8 GiB for its two processes, C has one of 3 GiB; B bursts, and fits beside none
 * but C. All compute. Returns B. */
static uint32_t begin_first_part(struct swap_world *w, uint64_t request_of_c)
{
	uint32_t a;

	stage(w, 1, 64 * GIB);
	w->link_in[0] = LINK / 2; /* so that B is not back before C wants */
	w->next_id += 5; /* for A's second process, whose chunks are large then */
	a = enter(w, (struct swap_workload){
			     .request = 8 * GIB, .size = 4 * GIB, .clients_most = 2});
	(void)swap_world_client(w, client(w, a)->workload);
	(void)enter(w, (struct swap_workload){.request = request_of_c, .size = 3 * GIB});
	until(w, 2);
	return enter(w, (struct swap_workload){.size = 9 * GIB});
}

/* C has requested its 3 GiB. In each round of 10 s, B runs for the first part of its turn, which is
 * 180 ms. */
static void bursts_first_part(struct swap_world *w)
{
	uint32_t b = begin_first_part(w, 3 * GIB);
	sl_ns before;

	until(w, 12);
	before = swap_open(w, client(w, b));
	until(w, 62);
	expect(swap_open(w, client(w, b)) - before > 4 * 180 * SL_MS, "B ran for %.3f s",
		(double)(swap_open(w, client(w, b)) - before) / 1e9);
}

/* The same, but C bursts. While B comes back, the rest of A waits for B, and must not be moved for
 * C. In one round, at most both processes of A, and C, leave for B, and B leaves for each of
 * these. */
static void waits_for_the_exchange(struct swap_world *w)
{
	uint32_t b = begin_first_part(w, 0);

	until(w, 62);
	expect(how_many(SL_ACTION_EVICT, 0, 0) <= 6 * (uint32_t)view(w, b).turns,
		"%u left in %u rounds", how_many(SL_ACTION_EVICT, 0, 0),
		(uint32_t)view(w, b).turns);
}

/* With `wait` first, B leaves for A only after 20 s. A, which wants nothing by itself, was resumed
 * at 8 s, parked at 18 s, and resumed again at 20 s. */
static void resumed_again(struct swap_world *w)
{
	const struct played *l;
	uint32_t a, b;

	stage(w, 1, 64 * GIB);
	w->config.config.chain = SL_CHAIN(SL_RESOLVER_WAIT, SL_RESOLVER_SWAP, 0);
	swap_step(w, w->config);
	a = enter_idle(w, 10 * GIB);
	until(w, 5);
	person(w, SL_EVENT_WORKLOAD_PARK, a);
	until(w, 6);
	b = enter(w, (struct swap_workload){.size = 10 * GIB});
	until(w, 8);
	person(w, SL_EVENT_WORKLOAD_RESUME, a);
	until(w, 18);
	person(w, SL_EVENT_WORKLOAD_PARK, a);
	until(w, 20);
	person(w, SL_EVENT_WORKLOAD_RESUME, a);
	until(w, 42);
	l = first_of(SL_ACTION_EVICT, client(w, b)->id);
	expect(l && l->at >= 40 * SL_S, "B was moved after %.1f s",
		l ? (double)l->at / 1e9 : 0);
}

/* C has 2 GiB on the first GPU and 1 on the second, where V and U have 7 each, and asks for another
 * one there, for which V leaves. Then C's workload is parked, and X comes back with 1. V waits for
 * what C leaves on the second GPU, 1 GiB/s. D of C's workload asks for 1 GiB on the first, so once
 * the workload is resumed, C is above its request there, and may move no other yet. But what C asks
 * for is within its request. */
static void comes_with_its_demand(struct swap_world *w)
{
	uint32_t v, u, x, c, d;

	stage(w, 2, 64 * GIB);
	w->config.config.chain = SL_CHAIN(SL_RESOLVER_WAIT, SL_RESOLVER_SWAP, 0);
	swap_step(w, w->config);
	w->link_out[1] = GIB;
	/* Its request makes the others go to the second GPU. */
	(void)enter(w, (struct swap_workload){.request = 10 * GIB});
	v = enter(w, (struct swap_workload){.size = 7 * GIB});
	u = enter(w, (struct swap_workload){.size = 7 * GIB});
	x = enter_idle(w, GIB);
	until(w, 1);
	person(w, SL_EVENT_WORKLOAD_PARK, x);
	until(w, 3);
	c = enter(
		w, (struct swap_workload){
			   .request = 2 * GIB, .size = 2 * GIB, .step = GIB, .mask = 2});
	until(w, 3.5);
	person(w, SL_EVENT_WORKLOAD_PARK, c);
	d = swap_world_client(w, client(w, c)->workload);
	until(w, 3.6);
	person(w, SL_EVENT_WORKLOAD_RESUME, x);
	until(w, 4.3);
	expect(client(w, c)->order.id && client(w, c)->evicted[0] == 2 * GIB &&
			client(w, c)->thread == THREAD_ASKS &&
			client(w, v)->evicted[1] + client(w, u)->evicted[1],
		"C does not leave, or V does not wait for it");
	person(w, SL_EVENT_WORKLOAD_RESUME, c);
	until(w, 8);
	expect(!client(w, c)->evicted[0] && client(w, d)->resident[0],
		"C did not come back");
}

static void reports(struct swap_world *w, uint64_t client, uint32_t gpu)
{
	swap_step(w, (struct sl_event){.type = SL_EVENT_CLIENT_REPORT,
			     .client_report = {client, gpu, 2 * GIB}});
	swap_step(w, (struct sl_event){.type = SL_EVENT_CLIENT_EVICTED,
			     .client_evicted = {client, gpu, 2 * GIB}});
}

/* A has memory of two GPUs on the host. Its line is lost with a RESTORE that never reached it. Its
 * next report, by which memory of the first GPU is still on the host, comes while a RESTORE of the
 * second is open. That one has no room for more than at its beginning. */
static void reports_late(struct swap_world *w)
{
	struct sl_event lost = {.type = SL_EVENT_DONE,
		.done = {.client = 1001,
			.outcome = SL_SWAP_REFUSED,
			.cause = SL_SWAP_LOST}};

	stage(w, 2, 64 * GIB);
	swap_step(w, (struct sl_event){.type = SL_EVENT_WORKLOAD_ADD,
			     .workload_add = {.workload = 1000,
				     .limit = {SL_AMOUNT_BYTES, 0, 15 * GIB},
				     .gpu_count = 2,
				     .gpu_mask = 3}});
	swap_step(w, (struct sl_event){.type = SL_EVENT_CLIENT_JOIN,
			     .client_join = {1001, 1000, 0, true}});
	reports(w, 1001, 0);
	reports(w, 1001, 1);
	swap_step(w, (struct sl_event){.type = SL_EVENT_CLIENT_REPORTED,
			     .client_reported = {1001}});
	swap_step(w, (struct sl_event){.type = SL_EVENT_WANT, .want = {1001, 1}});
	lost.done.order = swap_party_of(&w->rules, 1001)->order;
	swap_step(w, lost);
	until(w, 1);
	expect(swap_party_of(&w->rules, 1001)->order_gpu == 1 &&
			how_many(SL_ACTION_RESTORE, 1001, 0) == 2,
		"A does not come back on its second GPU");
	reports(w, 1001, 0);
	expect(!swap_party_returning(swap_party_of(&w->rules, 1001), 0),
		"the first GPU has room for A");
}

const struct swap_play swap_plays_returns[] = {
	{"a client reports while it comes back", reports_late},
	{"a client comes back with what it asks for", comes_with_its_demand},
	{"a workload is resumed once there is time for it", resumed_without_time},
	{"a client that is resumed again waits anew", resumed_again},
	{"the first part of a burst's turn", bursts_first_part},
	{"a client that waits for an exchange is left alone", waits_for_the_exchange},
	{"a client that fails half-way keeps no other waiting", fails_half_way},
	{"the workload that was resumed first comes back first", resumed_in_order},
	{"the client that comes first keeps its memory", kept_by_the_first},
	{"a client within its request comes first", request_first},
	{"a client loses its place on the way back", lost_room},
	{"a client is stopped half-way", stopped_half_way},
	{0},
};
