/*
 * plays_shares - plays about bounds: of a share in the pool, of a turn, and of what counts as
 * idle
 */
#include "stage.h"

/* The pool has space for all of A, but A may use only 4 GiB of it: it cannot be parked, and stays
 * as it is. */
static void pool_share(struct swap_world *w)
{
	uint32_t a;

	stage(w, 1, 64 * GIB);
	w->config.config.pool_member_bytes = 4 * GIB;
	swap_step(w, w->config);
	a = enter(w, (struct swap_workload){.request = 10 * GIB, .size = 10 * GIB});
	until(w, 5);
	person(w, SL_EVENT_WORKLOAD_PARK, a);
	until(w, 6);
	expect(how_many(SL_ACTION_REFUSE, 0, SL_REASON_PARK_BOUND) == 1 &&
			!how_many(SL_ACTION_EVICT, 0, 0),
		"A got more of the pool than its share");
}

/* Requests of 3 and 9 GiB, and turn_max is 1 s. So the turns are 1/3 s and 1 s, not 1 s and 3 s. */
static void longest_turn(struct swap_world *w)
{
	uint32_t before, turns;

	stage(w, 1, 64 * GIB);
	w->config.config.turn_max = SL_S;
	swap_step(w, w->config);
	(void)enter(w, (struct swap_workload){.request = 3 * GIB, .size = 10 * GIB});
	(void)enter(w, (struct swap_workload){.request = 9 * GIB, .size = 10 * GIB});
	until(w, 20);
	before = how_many(SL_ACTION_NOTE, 0, SL_REASON_RESTORED);
	until(w, 120);
	turns = how_many(SL_ACTION_NOTE, 0, SL_REASON_RESTORED) - before;
	expect(turns > 100, "%u turns in 100 s, none of them above 1 s", turns);
}

/* By its reports A is idle, but it falls silent before that is proven. So it is not moved for being
 * idle. */
static void unproven(struct swap_world *w)
{
	uint32_t a;

	stage(w, 1, 64 * GIB);
	a = enter(w, (struct swap_workload){.shape = SWAP_NOTEBOOK,
			     .request = 4 * GIB,
			     .size = 4 * GIB,
			     .pieces = 1,
			     .pause = 1000 * SL_S,
			     .warm_after = 5 * SL_S});
	until(w, 4);
	/* The idleness is not known yet. */
	client(w, a)->condition = SL_CONDITION_STOPPED;
	until(w, 15);
	expect(!how_many(SL_ACTION_EVICT, 0, 0), "A was moved without a proof");
}

/*
 * A's turns are 10 s long and come after 200 s of a higher priority, whose turns are 0.75 s. A has
 * little to do in its turn, and is soon moved out: the rest of the turn is not kept for it.
 */
static void one_turn(struct swap_world *w)
{
	uint32_t a, turns;

	stage(w, 1, 64 * GIB);
	a = enter(w, (struct swap_workload){.shape = SWAP_NOTEBOOK,
			     .request = 10 * GIB,
			     .size = 11 * GIB,
			     .pieces = 1,
			     .pause = SL_S});
	until(w, 5);
	(void)enter(w, (struct swap_workload){.size = 10 * GIB, .priority = 10});
	until(w, 450);
	turns = (uint32_t)view(w, a).turns;
	expect(turns < 10, "A had %u turns in 450 s", turns);
}

/*
 * N keeps 4 of 15 GiB and cannot be moved. A has 10 GiB and asks for 2 more, which never fit beside
 * N. A's demand is first in the queue and cannot be served; B asks behind it. A does nothing else,
 * so it makes room for B.
 */
static void asks_in_vain(struct swap_world *w)
{
	uint32_t a, b;

	stage(w, 1, 64 * GIB);
	(void)enter(w, (struct swap_workload){.request = 4 * GIB,
			       .size = 4 * GIB,
			       .flags = SL_WORKLOAD_NO_SWAP});
	a = enter(w, (struct swap_workload){.shape = SWAP_NOTEBOOK,
			     .size = 10 * GIB,
			     .pieces = 1,
			     .pause = SL_S});
	until(w, 0.5);
	w->workload[client(w, a)->workload].size = 12 * GIB;
	until(w, 3);
	expect(client(w, a)->thread == THREAD_ASKS && client(w, a)->resident[0],
		"A does not ask for more");
	b = enter(w, (struct swap_workload){.size = 10 * GIB});
	until(w, 5);
	expect(client(w, b)->resident[0] == 10 * GIB,
		"B waits for a demand that never fits");
	expect(!how_many(SL_ACTION_DENY, 0, 0), "a demand was denied");
}

/*
 * A, two processes of 4 GiB, is within its request of 10; B has 8. N, of the highest priority,
 * cannot be moved, and asks for 6 GiB: more than is left beside A's request. Nothing that A leaves
 * of its request is for N, so the rest of B is not moved for N either.
 */
static void leaves_its_request(struct swap_world *w)
{
	uint32_t a, b;

	stage(w, 1, 64 * GIB);
	b = enter(w, (struct swap_workload){.size = 8 * GIB});
	until(w, 2);
	a = enter(w, (struct swap_workload){.request = 10 * GIB, .size = 4 * GIB});
	(void)swap_world_client(w, client(w, a)->workload);
	until(w, 4);
	(void)enter(
		w, (struct swap_workload){
			   .size = 6 * GIB, .priority = 5, .flags = SL_WORKLOAD_NO_SWAP});
	until(w, 60);
	expect(!how_many(SL_ACTION_EVICT, client(w, a)->id, 0), "A was moved");
	for (uint32_t i = 0; i < played_count; i++)
		expect(played[i].type != SL_ACTION_EVICT ||
				played[i].client != client(w, b)->id ||
				played[i].bytes <= 3 * GIB,
			"B gave more than A lacks and may still request");
}

/* Two processes of 5 GiB, which is their request. The first is always between two pieces of its
 * work before the second is. */
static void enter_two(struct swap_world *w)
{
	uint32_t a = enter(
		w, (struct swap_workload){
			   .request = 10 * GIB, .size = 5 * GIB, .piece = 390 * SL_MS});

	until(w, 2.2);
	(void)swap_world_client(w, client(w, a)->workload);
}

/*
 * A is within its request, B has 10.3 GiB. All of A's second process and a little of its first
 * leave for B, the first process sooner. What the first has left is then B's, and not the first's
 * own again.
 */
static void left_by_two(struct swap_world *w)
{
	uint32_t b;

	stage(w, 1, 64 * GIB);
	b = enter(w, (struct swap_workload){.size = 10 * GIB + 300 * SL_MIB});
	until(w, 2);
	enter_two(w);
	until(w, 60);
	expect(view(w, b).turns == 1, "B had %u turns in 60 s",
		(uint32_t)view(w, b).turns);
}

/* B has 5 GiB, and asks for 5.3 more. */
static void left_for_more(struct swap_world *w)
{
	uint32_t b;

	stage(w, 1, 64 * GIB);
	b = enter(w, (struct swap_workload){.size = 5 * GIB});
	until(w, 2);
	enter_two(w);
	until(w, 3);
	w->workload[client(w, b)->workload].size += 5 * GIB + 300 * SL_MIB;
	until(w, 60);
	expect(how_many(SL_ACTION_DENY, client(w, b)->id, SL_REASON_WAITED_TOO_LONG),
		"B was not denied");
}

/*
 * A, two processes of 4 GiB, is all within its request; B has 13. Each process of A computes for
 * about 9 s and then has no work for 6 s. The one without work is moved, and comes back while the
 * other one has its turn. That must not make the turn longer, so that B still runs within its
 * longest wait.
 */
static void one_by_one(struct swap_world *w)
{
	uint32_t a, b;

	stage(w, 1, 64 * GIB);
	b = enter(w, (struct swap_workload){.size = 13 * GIB});
	until(w, 2);
	a = enter(w, (struct swap_workload){.shape = SWAP_NOTEBOOK,
			     .request = 8 * GIB,
			     .size = 4 * GIB,
			     .pieces = 900,
			     .pause = 6 * SL_S});
	until(w, 7);
	(void)swap_world_client(w, client(w, a)->workload);
	until(w, 200);
	expect(view(w, b).turns > 5, "B had %u turns in 200 s",
		(uint32_t)view(w, b).turns);
}

/*
 * Three workloads of 10 GiB each always compute, with weights of 1, 2 and 2. Their turns are 2, 4
 * and 4 s, and over a hundred of them are played. Each gets its share to within a tenth of it; one
 * turn more or less is about a hundredth.
 */
static void long_shares(struct swap_world *w)
{
	static const uint32_t weights[3] = {1, 2, 2};
	uint32_t slot[3];
	sl_ns open0[3];
	double all = 0;

	stage(w, 1, 64 * GIB);
	for (uint32_t i = 0; i < 3; i++)
		slot[i] = enter(w, (struct swap_workload){.request = 2 * GIB * weights[i],
					   .size = 10 * GIB});
	until(w, 30);
	for (uint32_t i = 0; i < 3; i++)
		open0[i] = swap_open(w, client(w, slot[i]));
	until(w, 430);
	for (uint32_t i = 0; i < 3; i++)
		all += share(w, slot[i], open0[i], 400 * SL_S);
	for (uint32_t i = 0; i < 3; i++) {
		double part = share(w, slot[i], open0[i], 400 * SL_S) / all;

		expect(part > 0.18 * weights[i] && part < 0.22 * weights[i],
			"of weight %u in 5 ran %.3f of the time", weights[i], part);
	}
}

/* A is parked, and B runs. A workload wants all of the GPU, and would take less beside the parked
 * A. But B's request is in its way, too, so it is refused. */
static void less_beside_parked(struct swap_world *w)
{
	struct sl_event all = {.type = SL_EVENT_WORKLOAD_ADD};
	uint32_t a;

	stage(w, 1, 64 * GIB);
	a = enter(w, (struct swap_workload){.request = 8 * GIB, .size = 8 * GIB});
	(void)enter(w, (struct swap_workload){.request = 4 * GIB, .size = 4 * GIB});
	until(w, 5);
	person(w, SL_EVENT_WORKLOAD_PARK, a);
	until(w, 8);
	all.workload_add.workload = 1u << 20;
	all.workload_add.request =
		(struct sl_amount){.kind = SL_AMOUNT_FRACTION, .value = SL_AMOUNT_WHOLE};
	all.workload_add.gpu_count = all.workload_add.gpu_mask = 1;
	all.workload_add.may_take_less = 1;
	swap_step(w, all);
	expect(how_many(SL_ACTION_REFUSE, 0, SL_REASON_REQUESTS_TAKEN) == 1,
		"it was let in beside B");
}

static void set_request(struct swap_world *w, uint64_t workload, uint64_t bytes)
{
	swap_step(w, (struct sl_event){.type = SL_EVENT_WORKLOAD_SET,
			     .workload_set = {.workload = workload,
				     .which = SL_SET_REQUEST,
				     .request = {SL_AMOUNT_BYTES, 0, bytes}}});
}

/* A has 9 GiB since before the daemon's start, and reports that they are held. Meanwhile B was
 * promised 10 GiB, so only 5 are believed. B may lower its request and raise it again to what these
 * leave. */
static void raised_over_doubts(struct swap_world *w)
{
	const uint64_t a = 1050;
	uint32_t workload = 1000;
	struct sl_event add = {.type = SL_EVENT_WORKLOAD_ADD,
		.workload_add = {.workload = workload,
			.request = {SL_AMOUNT_BYTES, 0, GIB},
			.limit = {SL_AMOUNT_BYTES, 0, 15 * GIB},
			.gpu_count = 1,
			.gpu_mask = 1,
			.recovered = true}};

	stage(w, 1, 64 * GIB);
	swap_step(w, add);
	swap_step(w, (struct sl_event){.type = SL_EVENT_CLIENT_JOIN,
			     .client_join = {a, workload, 1, 1}});
	add.workload_add.workload = 1100;
	add.workload_add.request.value = 10 * GIB;
	add.workload_add.recovered = false;
	swap_step(w, add);
	swap_step(w, (struct sl_event){.type = SL_EVENT_CLIENT_REPORT,
			     .client_report = {a, 0, 9 * GIB}});
	swap_step(w, (struct sl_event){.type = SL_EVENT_HELD, .held = {a, 0, 9 * GIB}});
	swap_step(w, (struct sl_event){
			     .type = SL_EVENT_CLIENT_REPORTED, .client_reported = {a}});
	expect(how_many(SL_ACTION_NOTE, 0, SL_REASON_HELD_UNASKED) == 1,
		"all that A holds is believed");
	set_request(w, 1100, 4 * GIB);
	set_request(w, 1100, 9 * GIB);
	expect(how_many(SL_ACTION_SET_DONE, 0, 0) == 2, "B's request is not raised");
}

const struct swap_play swap_plays_shares[] = {
	{"no workload has more of the pool than its share", pool_share},
	{"no turn is longer than the longest", longest_turn, true},
	{"idle without a proof is not warm", unproven},
	{"no workload takes less of others' requests", less_beside_parked},
	{"a turn of the least share is one", one_turn, true},
	{"a client that asks in vain keeps no other waiting", asks_in_vain},
	{"what leaves of a request is not given to a held burst", leaves_its_request},
	{"memory that the first of two left is not taken back", left_by_two},
	{"memory that the first of two left is there for a demand", left_for_more},
	{"a turn is no longer for a process that comes back in it", one_by_one},
	{"a request is raised over held memory that is not believed", raised_over_doubts},
	{"shares over a hundred turns", long_shares, true},
	{0},
};
