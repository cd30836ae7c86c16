/*
 * plays_host - plays of host memory that is short, and of stopped processes
 *
 * 15 GiB can be shared on each GPU.
 */
#include "stage.h"

/* A of 8 GiB is on the host, in one file, and frees half of that. Of the 10 GiB set aside, 2 are
 * left for C, which has 5 and is parked. A is asked to drop its copies, but still needs the whole
 * file. */
static uint32_t park_in_vain(struct swap_world *w, uint32_t *c)
{
	uint32_t a;

	stage(w, 1, 10 * GIB);
	a = enter_idle(w, 8 * GIB);
	client(w, a)->one_file = true;
	*c = enter_idle(w, 5 * GIB);
	until(w, 2);
	person(w, SL_EVENT_WORKLOAD_PARK, a);
	until(w, 4);
	w->workload[client(w, a)->workload].size = 4 * GIB;
	swap_free(w, a, 0, 4 * GIB);
	until(w, 5);
	expect(client(w, a)->evicted[0] == 4 * GIB && client(w, a)->store == 8 * GIB,
		"A is not on the host");
	person(w, SL_EVENT_WORKLOAD_PARK, *c);
	until(w, 8);
	expect(w->stats.trims && client(w, *c)->resident[0] == 5 * GIB,
		"A gives what it needs");
	return a;
}

/* Once all of A is back it can give the file, and is asked for it. */
static void copies_later(struct swap_world *w)
{
	uint32_t c, a = park_in_vain(w, &c);

	person(w, SL_EVENT_WORKLOAD_RESUME, a);
	until(w, 15);
	expect(client(w, a)->resident[0] == 4 * GIB, "A is not back");
	expect(!client(w, c)->resident[0], "C is not parked, for mere copies");
}

/* It frees the rest on the host instead. */
static void copies_freed(struct swap_world *w)
{
	uint32_t c, a = park_in_vain(w, &c);

	w->workload[client(w, a)->workload].size = 0;
	swap_free(w, a, 0, 4 * GIB);
	until(w, 15);
	expect(!client(w, c)->resident[0], "C is not parked, for mere copies");
}

/* A works within its request; its copies take 6 of the host's 9 GiB. C lacks 1 GiB. B leaves for it
 * in pieces of 4 GiB: for 1 GiB A's copies could stay, but once B has found no host memory they
 * must go. */
static void copies_for_a_grain(struct swap_world *w)
{
	uint32_t a, b, c;

	stage(w, 1, 9 * GIB);
	b = enter_idle(w, 8 * GIB);
	client(w, b)->grain = 4 * GIB;
	until(w, 1);
	a = enter(w, (struct swap_workload){.request = 6 * GIB, .size = 6 * GIB});
	until(w, 2);
	person(w, SL_EVENT_WORKLOAD_PARK, a);
	until(w, 4);
	person(w, SL_EVENT_WORKLOAD_RESUME, a);
	until(w, 6);
	expect(client(w, a)->resident[0] == 6 * GIB && client(w, a)->store == 6 * GIB,
		"A has no copies");
	c = enter(w, (struct swap_workload){.size = 2 * GIB});
	until(w, 20);
	expect(client(w, b)->evicted[0] == 4 * GIB, "B did not leave");
	expect(client(w, c)->resident[0] == 2 * GIB, "C waits for mere copies");
}

static void say_condition(
	struct swap_world *w, uint32_t slot, enum sl_client_condition condition)
{
	swap_step(w, (struct sl_event){.type = SL_EVENT_CONDITION,
			     .condition = {client(w, slot)->id, condition}});
}

static void set_condition(
	struct swap_world *w, uint32_t slot, enum sl_client_condition condition)
{
	client(w, slot)->condition = condition;
	say_condition(w, slot, condition);
}

/* A of 10 GiB is resumed while it is stopped, so no memory is kept for it. D asks for 12 GiB within
 * its request, and gets them. Once A goes on, D leaves for it, and A comes back. */
static void stopped_resumed(struct swap_world *w)
{
	uint32_t a, d;

	stage(w, 1, 64 * GIB);
	a = enter_idle(w, 10 * GIB);
	until(w, 2);
	person(w, SL_EVENT_WORKLOAD_PARK, a);
	until(w, 4);
	expect(client(w, a)->evicted[0] == 10 * GIB, "A is not on the host");
	set_condition(w, a, SL_CONDITION_STOPPED);
	person(w, SL_EVENT_WORKLOAD_RESUME, a);
	until(w, 10);
	expect(client(w, a)->evicted[0] == 10 * GIB, "A is told to come back");
	d = enter(w, (struct swap_workload){.shape = SWAP_NOTEBOOK,
			     .request = 12 * GIB,
			     .size = 12 * GIB,
			     .pieces = 1,
			     .pause = 1000 * SL_S});
	until(w, 60);
	expect(client(w, d)->resident[0] == 12 * GIB, "D has not what it requested");
	set_condition(w, a, SL_CONDITION_RUNNING);
	until(w, 70);
	expect(client(w, a)->resident[0] == 10 * GIB, "A goes on and is not back");
}

/* A has 10 GiB on each of two GPUs and comes back. It is stopped before it has reported that it is
 * back on the first. Nothing is kept for it on the second until it goes on. */
static void stopped_half_way(struct swap_world *w)
{
	uint32_t a;

	stage(w, 2, 64 * GIB);
	a = enter(w, (struct swap_workload){.shape = SWAP_NOTEBOOK,
			     .size = 10 * GIB,
			     .mask = 2,
			     .pieces = 1,
			     .pause = 1000 * SL_S});
	until(w, 2);
	person(w, SL_EVENT_WORKLOAD_PARK, a);
	until(w, 4);
	person(w, SL_EVENT_WORKLOAD_RESUME, a);
	until(w, 4.05);
	say_condition(w, a, SL_CONDITION_STOPPED);
	until(w, 4.2);
	client(w, a)->condition = SL_CONDITION_STOPPED;
	until(w, 10);
	expect(client(w, a)->resident[0] == 10 * GIB &&
			client(w, a)->evicted[1] == 10 * GIB,
		"A is not half way");
	expect(sl_node_gpu(w->node, 1).returning_bytes == 0, "room is kept for A");
	set_condition(w, a, SL_CONDITION_RUNNING);
	until(w, 12);
	expect(client(w, a)->resident[1] == 10 * GIB, "A goes on and is not back");
}

/* A has 10 GiB and B a burst of 8; both are on the host. B is stopped on its way back, and its room
 * is kept for it. After that A is resumed. */
static void stop_half_way(struct swap_world *w, enum sl_last_resort resort,
	uint64_t request, uint32_t *a, uint32_t *b)
{
	stage(w, 1, 64 * GIB);
	w->config.config.last_resort = resort;
	w->config.config.stop_grace = 2 * SL_S;
	swap_step(w, w->config);
	*a = enter(w, (struct swap_workload){.shape = SWAP_NOTEBOOK,
			      .request = request,
			      .size = 10 * GIB,
			      .pieces = 1,
			      .pause = 1000 * SL_S});
	until(w, 2);
	person(w, SL_EVENT_WORKLOAD_PARK, *a);
	until(w, 4);
	*b = enter_idle(w, 8 * GIB);
	until(w, 6);
	person(w, SL_EVENT_WORKLOAD_PARK, *b);
	until(w, 8);
	person(w, SL_EVENT_WORKLOAD_RESUME, *b);
	until(w, 8.01);
	client(w, *b)->condition = SL_CONDITION_STOPPED;
	until(w, 10);
	say_condition(w, *b, SL_CONDITION_STOPPED);
	person(w, SL_EVENT_WORKLOAD_RESUME, *a);
	until(w, 20);
	expect(client(w, *b)->evicted[0] == 8 * GIB &&
			sl_node_gpu(w->node, 0).returning_bytes == 8 * GIB,
		"B is not on its way back");
}

/* The last resort is to stop it, and A gets its request. */
static void stuck_half_way(struct swap_world *w)
{
	uint32_t a, b;

	stop_half_way(w, SL_LAST_RESORT_STOP, 10 * GIB, &a, &b);
	until(w, 60);
	expect(!client(w, b)->used, "B is not ended");
	expect(client(w, a)->resident[0] == 10 * GIB, "A is not back");
}

/* A waits until B goes on, which leaves for it then. */
static void waits_for_the_stuck(
	struct swap_world *w, enum sl_last_resort resort, uint64_t request)
{
	uint32_t a, b;

	stop_half_way(w, resort, request, &a, &b);
	until(w, 100);
	expect(client(w, b)->used && client(w, a)->evicted[0] == 10 * GIB,
		"B is ended, or A is back");
	set_condition(w, b, SL_CONDITION_RUNNING);
	until(w, 110);
	expect(client(w, a)->resident[0] == 10 * GIB, "B goes on and A is not back");
}

/* The last resort is to fail, but a return cannot fail. */
static void fails_no_return(struct swap_world *w)
{
	waits_for_the_stuck(w, SL_LAST_RESORT_FAIL, 10 * GIB);
}

/* A has more than its request. */
static void stuck_before_a_burst(struct swap_world *w)
{
	waits_for_the_stuck(w, SL_LAST_RESORT_STOP, 9 * GIB);
}

/* B, which is never moved and of a high priority, is resident, and its kernel never ends. Only A,
 * which was moved out before B came, lacks memory. */
static void stuck_there(struct swap_world *w)
{
	uint32_t a, b;

	stage(w, 1, 64 * GIB);
	w->config.config.chain =
		SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_PRIORITY, SL_RESOLVER_WAIT);
	w->config.config.last_resort = SL_LAST_RESORT_STOP;
	w->config.config.stop_grace = 2 * SL_S;
	swap_step(w, w->config);
	a = enter(w, (struct swap_workload){.shape = SWAP_NOTEBOOK,
			     .request = 10 * GIB,
			     .size = 10 * GIB,
			     .pieces = 1,
			     .pause = 1000 * SL_S});
	until(w, 2);
	person(w, SL_EVENT_WORKLOAD_PARK, a);
	until(w, 4);
	b = enter(
		w, (struct swap_workload){
			   .size = 8 * GIB, .priority = 5, .flags = SL_WORKLOAD_NO_SWAP});
	until(w, 6);
	expect(client(w, b)->resident[0] == 8 * GIB, "B has nothing");
	client(w, b)->endless = true;
	client(w, b)->busy_until = SL_NS_NEVER;
	person(w, SL_EVENT_WORKLOAD_RESUME, a);
	until(w, 60);
	expect(!client(w, b)->used, "B is not ended");
	expect(client(w, a)->resident[0] == 10 * GIB, "A is not back");
}

/* B asks for 12 GiB beside A, which has 9 and works. 6 of A would have to leave, and as much of B
 * before A is back. */
static void way_back(struct swap_world *w, uint64_t pool, uint32_t *a, uint32_t *b)
{
	stage(w, 1, pool);
	*a = enter(w, (struct swap_workload){.size = 9 * GIB});
	until(w, 5);
	*b = enter(w, (struct swap_workload){.size = 12 * GIB});
	until(w, 60);
}

/* The host has room for the 6 GiB of one, but not for both. A would never come back beside B, so A
 * stays. */
static void no_way_back(struct swap_world *w)
{
	uint32_t a, b;

	way_back(w, 11 * GIB, &a, &b);
	expect(!how_many(SL_ACTION_EVICT, client(w, a)->id, 0), "A is moved");
	expect(how_many(SL_ACTION_DENY, client(w, b)->id, 0) > 0, "B is not refused");
	expect(how_many(SL_ACTION_NOTE, 0, SL_REASON_POOL_FULL) > 0,
		"no note says that the host is full");
}

/* A has chunks of 4 GiB, two of which would leave. */
static void whole_chunks(struct swap_world *w, uint64_t pool, uint32_t *a, uint32_t *b)
{
	stage(w, 1, pool);
	*a = enter(w, (struct swap_workload){.size = 9 * GIB});
	client(w, *a)->grain = 4 * GIB;
	swap_step(w, (struct sl_event){.type = SL_EVENT_CHUNK,
			     .chunk = {client(w, *a)->id, 4 * GIB}});
	until(w, 5);
	*b = enter(w, (struct swap_workload){.size = 12 * GIB});
	until(w, 60);
}

/* The host has room for an exchange of 6 beside a chunk, not of 8. */
static void chunks_stay(struct swap_world *w)
{
	uint32_t a, b;

	whole_chunks(w, 18 * GIB, &a, &b);
	expect(!how_many(SL_ACTION_EVICT, client(w, a)->id, 0), "A is moved");
	expect(how_many(SL_ACTION_DENY, client(w, b)->id, 0) > 0, "B is not refused");
}

static void chunks_change_places(struct swap_world *w)
{
	uint32_t a, b;

	whole_chunks(w, 25 * GIB, &a, &b);
	expect(how_many(SL_ACTION_EVICT, client(w, a)->id, 0) > 5 &&
			how_many(SL_ACTION_RESTORE, client(w, b)->id, 0) > 5,
		"A and B take no turns");
}

/* With room for both they take turns. */
static void some_way_back(struct swap_world *w)
{
	uint32_t a, b;

	way_back(w, 13 * GIB, &a, &b);
	expect(how_many(SL_ACTION_EVICT, client(w, a)->id, 0) > 5 &&
			how_many(SL_ACTION_RESTORE, client(w, a)->id, 0) > 5 &&
			how_many(SL_ACTION_RESTORE, client(w, b)->id, 0) > 5,
		"A and B take no turns");
}

/* The host has 10 GiB, and A's 8 are on their way back from there: B of 6 can be parked once they
 * are gone. */
static void room_of_the_returning(struct swap_world *w)
{
	uint32_t a, b;

	stage(w, 1, 10 * GIB);
	a = enter_idle(w, 8 * GIB);
	until(w, 2);
	person(w, SL_EVENT_WORKLOAD_PARK, a);
	until(w, 4);
	b = enter_idle(w, 6 * GIB);
	until(w, 6);
	expect(client(w, a)->evicted[0] == 8 * GIB, "A is not on the host");
	person(w, SL_EVENT_WORKLOAD_RESUME, a);
	until(w, 6.01);
	expect(how_many(SL_ACTION_RESTORE, client(w, a)->id, 0) == 1,
		"A is not on its way back");
	person(w, SL_EVENT_WORKLOAD_PARK, b);
	expect(how_many(SL_ACTION_REFUSE, 0, SL_REASON_PARK_NO_POOL) == 1,
		"B is to leave for where A is");
	until(w, 7);
	person(w, SL_EVENT_WORKLOAD_PARK, b);
	until(w, 8);
	expect(client(w, b)->evicted[0] == 6 * GIB, "B is not parked");
}

/* B is stopped, and has a burst that the last resort could end. A lacks a burst, too: no
 * process is ended for that. */
static void stuck_before_a_demand(struct swap_world *w)
{
	uint32_t a, b;

	stage(w, 1, 64 * GIB);
	w->config.config.last_resort = SL_LAST_RESORT_STOP;
	w->config.config.stop_grace = 2 * SL_S;
	swap_step(w, w->config);
	b = enter_idle(w, 10 * GIB);
	until(w, 2);
	set_condition(w, b, SL_CONDITION_STOPPED);
	until(w, 40);
	a = enter(w, (struct swap_workload){.size = 8 * GIB});
	until(w, 50);
	expect(client(w, a)->thread == THREAD_ASKS, "A does not wait");
	expect(!how_many(SL_ACTION_STOP, client(w, b)->id, 0), "B is ended");
}

static uint32_t enter_chunky(
	struct swap_world *w, struct swap_workload wl, uint64_t grain)
{
	uint32_t slot = enter(w, wl);

	client(w, slot)->grain = grain;
	return slot;
}

/* A burst of 12 GiB is resident. Then A is admitted, which works within its request, and B, which
 * loads its request piece by piece. The burst leaves all at once, and the host has too little space
 * for it, so not all requests fit beside it and they take turns. Once A could not come back from
 * the host, B gets no more memory: otherwise B would fill the GPU, and none of the three would
 * run. */
static void someone_runs(struct swap_world *w)
{
	const uint64_t slow = 8 * GIB;
	uint32_t a;

	stage(w, 1, 2400 * SL_MIB);
	w->config.config.slack_bytes = 512 * SL_MIB;
	swap_step(w, w->config);
	w->link_out[0] = w->link_in[0] = slow;
	swap_step(w, (struct sl_event){
			     .type = SL_EVENT_LINK_COST, .link_cost = {0, slow, slow}});
	enter_chunky(w, (struct swap_workload){.size = 12304 * SL_MIB}, 1536 * SL_MIB);
	until(w, 6);
	a = enter_chunky(w,
		(struct swap_workload){.request = 1600 * SL_MIB, .size = 1216 * SL_MIB},
		400 * SL_MIB);
	until(w, 7);
	enter_chunky(w,
		(struct swap_workload){.request = 6400 * SL_MIB,
			.size = 6000 * SL_MIB,
			.step = 400 * SL_MIB},
		400 * SL_MIB);
	until(w, 60);
	expect(swap_open(w, client(w, a)) > 50 * SL_S, "A does not run");
}

const struct swap_play swap_plays_host[] = {
	{"copies that could not be given are asked for again", copies_later},
	{"copies of what was freed are asked for again", copies_freed},
	{"a client that leaves in larger pieces has copies make room for them",
		copies_for_a_grain},
	{"no memory is kept for a stopped process", stopped_resumed},
	{"nor for one that is stopped half way", stopped_half_way},
	{"a process stopped on its way back is ended for a request", stuck_half_way},
	{"or is waited for, where the last resort is to fail", fails_no_return},
	{"a process stopped on its way back is not ended for a burst",
		stuck_before_a_burst},
	{"a resident process with an endless kernel is ended for a request", stuck_there},
	{"a workload without a way back is not moved to the host", no_way_back},
	{"nor is one whose chunks are too large for a way back", chunks_stay},
	{"large chunks change places where the host has room", chunks_change_places},
	{"a workload with a way back takes turns", some_way_back},
	{"the host is full until what comes back is gone", room_of_the_returning},
	{"no process is ended for a burst demand", stuck_before_a_demand},
	{"where requests do not fit one workload runs", someone_runs},
	{0},
};
