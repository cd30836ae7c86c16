/*
 * plays_leaving - plays of `priority` where memory is moved, too, and of the begin of turns
 *
 * 15 GiB can be shared on each GPU.
 */
#include "stage.h"

static void chain(struct swap_world *w, uint32_t gpus, uint64_t pool)
{
	stage(w, gpus, pool);
	w->config.config.chain =
		SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_PRIORITY, SL_RESOLVER_WAIT);
	w->config.config.stop_grace = 2 * SL_S;
	swap_step(w, w->config);
}

/* Has 8 GiB of its request on each of so many GPUs, goes to the host in the first seconds, and
 * wants it back after 20. */
static uint32_t enter_owner(struct swap_world *w, uint32_t gpus)
{
	return enter(w, (struct swap_workload){.shape = SWAP_NOTEBOOK,
				.request = 8 * GIB,
				.size = 8 * GIB,
				.mask = gpus,
				.priority = 5,
				.pieces = 1,
				.pause = 20 * SL_S,
				.warm_after = SL_S});
}

/* With W on the host, which has no room for more, L stands on 5 GiB of W's request: it can be had
 * back by ending L. */
static void owed(struct swap_world *w)
{
	uint32_t owner, lower;

	chain(w, 1, 10 * GIB);
	owner = enter_owner(w, 1);
	until(w, 5);
	expect(client(w, owner)->evicted[0] == 8 * GIB, "W is not on the host");
	lower = enter(w, (struct swap_workload){.size = 12 * GIB});
	until(w, 10);
	expect(client(w, lower)->resident[0] == 12 * GIB, "L does not get what is lent");
	/* It thinks again, and will have left by itself a second later. */
	until(w, 21);
	expect(client(w, owner)->resident[0] == 8 * GIB,
		"W does not get back what it requested");
}

/* The same, but the GPU is lost before W wants anything: nothing that L has there is of use to
 * W. */
static void owed_on_the_lost(struct swap_world *w)
{
	uint32_t lower;

	chain(w, 1, 10 * GIB);
	(void)enter_owner(w, 1);
	until(w, 5);
	lower = enter(w, (struct swap_workload){.size = 12 * GIB});
	until(w, 10);
	expect(client(w, lower)->resident[0] == 12 * GIB, "L does not get what is lent");
	swap_step(w, (struct sl_event){.type = SL_EVENT_GPU_LOST, .gpu_lost = {0, 79}});
	/* W has thought, and a grace is over. */
	until(w, 24);
	expect(client(w, lower)->used, "L is ended");
}

/* W has all its memory of two GPUs on the host. The memory it lacks on the second is M's, which is
 * stopped and of no lower priority. So ending L, on the first GPU, would not help W. */
static void owed_in_vain(struct swap_world *w)
{
	uint32_t owner, lower, equal;

	chain(w, 2, 18 * GIB);
	owner = enter_owner(w, 2);
	until(w, 5);
	expect(client(w, owner)->evicted[0] == 8 * GIB &&
			client(w, owner)->evicted[1] == 8 * GIB,
		"W is not on the host");
	equal = enter(w, (struct swap_workload){
				 .size = 8 * GIB + GIB / 2, .mask = 1, .priority = 5});
	until(w, 6);
	lower = enter(w, (struct swap_workload){.size = 12 * GIB, .mask = 1});
	until(w, 8);
	expect(client(w, lower)->resident[0] + client(w, lower)->resident[1] ==
				12 * GIB &&
			client(w, equal)->resident[0] + client(w, equal)->resident[1] ==
				8 * GIB + GIB / 2,
		"L and M do not get what is lent");
	client(w, equal)->condition = SL_CONDITION_STOPPED;
	until(w, 30);
	expect(client(w, lower)->used &&
			client(w, lower)->resident[0] + client(w, lower)->resident[1] ==
				12 * GIB,
		"L was ended for a client that cannot come back all the same");
}

/* E, of higher priority, lacks 5 GiB that A is moving to the host. L asks for 5 GiB and would fit
 * in the 7 that are free. But E would then lack some of these, and could get them only by ending L,
 * which cannot be moved. */
static void passed(struct swap_world *w)
{
	uint32_t urgent, lower;

	chain(w, 1, 64 * GIB);
	(void)enter(w, (struct swap_workload){.size = 8 * GIB});
	until(w, 2);
	urgent = enter(w, (struct swap_workload){.size = 12 * GIB, .priority = 5});
	lower = enter(
		w, (struct swap_workload){.size = 5 * GIB, .flags = SL_WORKLOAD_NO_SWAP});
	until(w, 3);
	expect(client(w, urgent)->resident[0] == 12 * GIB, "E has not what it asked for");
	expect(client(w, lower)->used, "L was ended for what it took before E had it");
}

/* V and U cannot be moved, are told to end for E, of higher priority, and end one after the other.
 * Meanwhile R wants its 5 GiB back from the host. They would fit in what V leaves, but E would then
 * lack them again. */
static void left_to_the_head(struct swap_world *w)
{
	uint32_t urgent, warm;

	chain(w, 1, 64 * GIB);
	warm = enter(w, (struct swap_workload){.shape = SWAP_NOTEBOOK,
				.size = 5 * GIB,
				.pieces = 1,
				.pause = 20 * SL_S,
				.warm_after = SL_S});
	until(w, 5);
	expect(client(w, warm)->evicted[0] == 5 * GIB, "R is not on the host");
	for (uint32_t i = 0; i < 2; i++)
		(void)enter(w, (struct swap_workload){
				       .size = 6 * GIB, .flags = SL_WORKLOAD_NO_SWAP});
	until(w, 19.7);
	urgent = enter(w, (struct swap_workload){.size = 14 * GIB, .priority = 5});
	until(w, 23);
	expect(client(w, urgent)->resident[0] == 14 * GIB,
		"E has not what others were ended for");
	expect(client(w, warm)->used, "R was ended for what it took of that");
}

/* A of 10 GiB has its turn. B of 9 GiB waits with 4 of them on the host, and C of 5 GiB waits
 * behind it. B frees the 4 and is fully resident, so its turn begins. B had no work while it could
 * not run; for that alone it must not give way to C. */
static void whole_by_freeing(struct swap_world *w)
{
	uint32_t b, c;

	stage(w, 1, 64 * GIB);
	b = enter(w, (struct swap_workload){.size = 9 * GIB});
	until(w, 3);
	(void)enter(w, (struct swap_workload){.size = 10 * GIB});
	until(w, 3.2);
	expect(client(w, b)->evicted[0] == 4 * GIB, "B has not left for A");
	c = enter(w, (struct swap_workload){.size = 5 * GIB});
	until(w, 3.5);
	expect(client(w, b)->evicted[0] == 4 * GIB && !client(w, c)->resident[0],
		"B and C do not wait");
	swap_send(w, b,
		(struct sl_event){.type = SL_EVENT_PULSE,
			.pulse = {client(w, b)->id, 300 * SL_MS, 0, 1}});
	w->workload[client(w, b)->workload].size = 5 * GIB;
	swap_free(w, b, 0, 4 * GIB);
	until(w, 3.6);
	expect(client(w, b)->resident[0] == 5 * GIB, "B was moved in its turn");
}

/* A and B, of higher priority, take turns of 2 s. L waits as long as a demand may, and so comes
 * before them; it gives up before the present turn has ended. The demand that it makes 1 s later
 * waits like any other of a lower priority. */
static void gave_up(struct swap_world *w)
{
	uint32_t lower;

	stage(w, 1, 64 * GIB);
	(void)enter(w, (struct swap_workload){.size = 10 * GIB, .priority = 1});
	(void)enter(w, (struct swap_workload){.size = 10 * GIB, .priority = 1});
	until(w, 4.5);
	lower = enter(w, (struct swap_workload){.size = 8 * GIB});
	until(w, 24.6);
	expect(client(w, lower)->thread == THREAD_ASKS, "L does not wait");
	swap_send(w, lower,
		(struct sl_event){.type = SL_EVENT_CANCEL,
			.cancel = {client(w, lower)->id, client(w, lower)->ask}});
	until(w, 25.6);
	expect(client(w, lower)->denied, "L has not given up");
	client(w, lower)->denied = false;
	until(w, 35);
	expect(!client(w, lower)->resident[0] && !client(w, lower)->evicted[0],
		"L is served in a turn that it gave up");
}

/* Both on the same two GPUs: each leaves one after the other, and is not told to stay while it is
 * about the first. */
static void both_on_both(struct swap_world *w)
{
	uint32_t slot[2];
	sl_ns open0[2];

	stage(w, 2, 128 * GIB);
	for (uint32_t i = 0; i < 2; i++)
		slot[i] = enter(w, (struct swap_workload){.size = 10 * GIB, .mask = 2});
	until(w, 20);
	for (uint32_t i = 0; i < 2; i++)
		open0[i] = swap_open(w, client(w, slot[i]));
	until(w, 60);
	for (uint32_t i = 0; i < 2; i++)
		expect(share(w, slot[i], open0[i], 40 * SL_S) > 0.25,
			"workload %u ran %.3f of the time", i,
			share(w, slot[i], open0[i], 40 * SL_S));
}

/* A has 8 GiB of each of two GPUs on the host and wants them back. For this, V would have to move 5
 * GiB from each GPU, and the host has room for 6. So A cannot come back, and V is not moved. */
static void room_for_one_gpu(struct swap_world *w)
{
	uint32_t urgent, lower;

	stage(w, 2, 22 * GIB);
	urgent = enter(w, (struct swap_workload){.shape = SWAP_NOTEBOOK,
				  .size = 8 * GIB,
				  .mask = 2,
				  .priority = 5,
				  .pieces = 1,
				  .pause = 20 * SL_S,
				  .warm_after = SL_S});
	until(w, 5);
	expect(client(w, urgent)->evicted[0] == 8 * GIB &&
			client(w, urgent)->evicted[1] == 8 * GIB,
		"A is not on the host");
	lower = enter(w, (struct swap_workload){.size = 12 * GIB, .mask = 2});
	until(w, 30);
	expect(client(w, lower)->resident[0] == 12 * GIB &&
			client(w, lower)->resident[1] == 12 * GIB,
		"V has not what is free");
	expect(client(w, urgent)->evicted[0] == 8 * GIB, "A came back");
	expect(!how_many(SL_ACTION_EVICT, client(w, lower)->id, 0),
		"V was moved for a client that cannot be helped");
}

/* A's context was measured before it had memory; its turn of 2 s began with its first memory and is
 * over. Then A's line to the daemon is lost, and A reports its memory again. That begins no new
 * turn: when B asks, A is moved at once. */
static void reports_anew(struct swap_world *w)
{
	uint32_t a, b;

	stage(w, 1, 64 * GIB);
	a = enter(w, (struct swap_workload){.size = 10 * GIB});
	client(w, a)->hidden[0] = GIB / 4;
	swap_send(w, a,
		(struct sl_event){.type = SL_EVENT_HIDDEN,
			.hidden = {client(w, a)->id, 0, GIB / 4}});
	until(w, 4);
	expect(client(w, a)->resident[0] == 10 * GIB, "A has no turn");
	swap_report(w, a);
	b = enter(w, (struct swap_workload){.size = 10 * GIB});
	until(w, 4.5);
	expect(client(w, b)->resident[0] == 10 * GIB,
		"B waits for a turn that no client began");
}

/* 6 of A's 10 GiB are on the host, and A frees them while its line is lost. The 4 GiB of its report
 * are not on the host, so they must not be granted to a client that waits for 4. */
static void freed_unheard(struct swap_world *w)
{
	uint32_t a;

	stage(w, 1, 64 * GIB);
	a = enter(w, (struct swap_workload){.shape = SWAP_NOTEBOOK,
			     .size = 10 * GIB,
			     .pieces = 1,
			     .pause = 1000 * SL_S});
	until(w, 4);
	(void)enter(w, (struct swap_workload){
			       .request = 11 * GIB, .size = 11 * GIB, .priority = 5});
	until(w, 8);
	expect(client(w, a)->evicted[0] == 6 * GIB, "6 GiB of A are not on the host");
	swap_lose_line(w, a);
	swap_free(w, a, 0, 6 * GIB);
	until(w, 12);
	expect(client(w, a)->connected && client(w, a)->resident[0] == 4 * GIB,
		"A did not report");
}

/* With `wait` first, memory is moved for A, which lacks 1 GiB, once its longest wait is over. S is
 * told to leave, but its kernel does not end. Then A is to leave for C, which wants its request,
 * and cannot because it captures. Being told to leave must not end A's own wait. */
static void told_to_leave(struct swap_world *w)
{
	uint32_t a, s, c;

	stage(w, 1, 64 * GIB);
	w->config.config.chain = SL_CHAIN(SL_RESOLVER_WAIT, SL_RESOLVER_SWAP, 0);
	swap_step(w, w->config);
	a = enter(w, (struct swap_workload){.size = 6 * GIB});
	s = enter(w, (struct swap_workload){.size = 4 * GIB});
	(void)enter(
		w, (struct swap_workload){.size = 4 * GIB, .flags = SL_WORKLOAD_NO_SWAP});
	until(w, 1);
	client(w, s)->endless = true;
	client(w, s)->busy_until = SL_NS_NEVER;
	client(w, a)->capturing = true;
	w->workload[client(w, a)->workload].size = 8 * GIB;
	until(w, 2);
	expect(client(w, a)->thread == THREAD_ASKS, "A does not wait");
	until(w, 22);
	c = enter(w, (struct swap_workload){.request = 5 * GIB, .size = 5 * GIB});
	until(w, 22.5);
	expect(how_many(SL_ACTION_EVICT, client(w, s)->id, 0) &&
			client(w, c)->thread == THREAD_ASKS,
		"S was not told to leave");
	expect(!first_of(SL_ACTION_DENY, client(w, a)->id),
		"A is refused what others are moved for");
}

static void expect_share(struct swap_world *w, const uint32_t slot[], uint32_t count,
	double seconds, double least)
{
	sl_ns open0[3], from = w->now;

	for (uint32_t i = 0; i < count; i++)
		open0[i] = swap_open(w, client(w, slot[i]));
	swap_world_until(w, from + (sl_ns)(seconds * 1e9));
	for (uint32_t i = 0; i < count; i++)
		expect(share(w, slot[i], open0[i], w->now - from) > least,
			"of %u, process %u ran %.3f of the time", count, i,
			share(w, slot[i], open0[i], w->now - from));
}

/* A has two processes of 6 GiB each, and runs. A stranger takes 5 GiB, so the two no longer fit
 * together, and C of 8 GiB moves them out. From then on all three processes take turns; after C has
 * ended, the two of A do. */
static void siblings(struct swap_world *w)
{
	uint32_t slot[3];

	stage(w, 1, 64 * GIB);
	slot[0] = enter(w, (struct swap_workload){.size = 6 * GIB});
	slot[1] = swap_world_client(w, client(w, slot[0])->workload);
	until(w, 3);
	expect(client(w, slot[0])->resident[0] + client(w, slot[1])->resident[0] ==
			12 * GIB,
		"A does not run");
	swap_step(w,
		(struct sl_event){.type = SL_EVENT_UNMANAGED, .unmanaged = {0, 5 * GIB}});
	slot[2] = enter(w, (struct swap_workload){.size = 8 * GIB});
	until(w, 20);
	expect_share(w, slot, 3, 60, 0.25);
	swap_exit(w, slot[2]);
	until(w, 85);
	expect_share(w, slot, 2, 30, 0.4);
}

/* A has two processes of 5 GiB each, and B 8. One of A fits beside B, and stays; the other takes
 * turns with B, not with its sibling. */
static void siblings_stay(struct swap_world *w)
{
	uint32_t slot[3];

	stage(w, 1, 64 * GIB);
	slot[0] = enter(w, (struct swap_workload){.size = 5 * GIB});
	slot[1] = swap_world_client(w, client(w, slot[0])->workload);
	slot[2] = enter(w, (struct swap_workload){.size = 8 * GIB});
	until(w, 20);
	expect_share(w, slot, 1, 60, 0.95);
	expect_share(w, slot + 1, 2, 60, 0.4);
}

/* A server within its request runs beside two bursts that take turns. It must not make these
 * shorter: they are 1.6 s as without the server, not a share of the longest turn. */
static void turns_beside_a_server(struct swap_world *w)
{
	uint32_t a;

	stage(w, 1, 64 * GIB);
	w->config.config.turn_max = 2 * SL_S;
	swap_step(w, w->config);
	(void)enter(w, (struct swap_workload){.request = 5 * GIB, .size = 4 * GIB});
	a = enter(w, (struct swap_workload){.size = 8 * GIB});
	(void)enter(w, (struct swap_workload){.size = 8 * GIB});
	until(w, 65);
	expect(how_many(SL_ACTION_EVICT, client(w, a)->id, 0) < 25, "A left %u times",
		how_many(SL_ACTION_EVICT, client(w, a)->id, 0));
}

/* A has no work, and is above its limit, which was lowered. L, of lower priority, lacks 3 GiB. A is
 * asked to prove that it is idle, and is then moved. No process is ended for memory that can be
 * moved. */
static void proven_first(struct swap_world *w)
{
	uint32_t idle, lower;
	struct sl_event set = {.type = SL_EVENT_WORKLOAD_SET,
		.workload_set = {
			.which = SL_SET_LIMIT, .limit = {SL_AMOUNT_BYTES, 0, 4 * GIB}}};

	chain(w, 1, 64 * GIB);
	idle = enter(w, (struct swap_workload){.shape = SWAP_NOTEBOOK,
				.size = 8 * GIB,
				.priority = 5,
				.pieces = 1,
				.pause = 1000 * SL_S});
	until(w, 10);
	set.workload_set.workload = w->workload[client(w, idle)->workload].id;
	swap_step(w, set);
	lower = enter(w, (struct swap_workload){.size = 10 * GIB});
	until(w, 15);
	expect(client(w, idle)->used, "A is ended");
	expect(client(w, idle)->evicted[0] == 3 * GIB, "A is not moved");
	expect(client(w, lower)->resident[0] == 10 * GIB, "L does not run");
}

/* A server that never rests leaves a training workload its least share. That also holds while
 * another training process asks for memory in vain: it cannot be moved, so its demand would have to
 * leave the server its request. */
static void share_in_vain(struct swap_world *w)
{
	uint64_t other = 1000;
	uint32_t training;
	sl_ns open0;
	double part;

	stage(w, 1, 64 * GIB);
	w->config.config.wait_max = 3600 * SL_S;
	swap_step(w, w->config);
	training = enter(w, (struct swap_workload){.request = 5 * GIB, .size = 10 * GIB});
	until(w, 5);
	(void)enter(w, (struct swap_workload){
			       .request = 9 * GIB, .size = 10 * GIB, .priority = 10});
	until(w, 10);
	swap_step(w,
		(struct sl_event){.type = SL_EVENT_CLIENT_JOIN,
			.client_join = {.client = other,
				.workload =
					w->workload[client(w, training)->workload].id}});
	swap_step(w, (struct sl_event){
			     .type = SL_EVENT_ASK, .ask = {other, 1, 0, 5 * GIB, 0}});
	until(w, 60);
	open0 = swap_open(w, client(w, training));
	until(w, 260);
	part = share(w, training, open0, 200 * SL_S);
	expect(part > 0.04 && part < 0.08, "training ran %.3f of the time", part);
}

static uint64_t arrives_on(struct swap_world *w, uint32_t gpu, uint64_t workload,
	uint64_t request, bool swaps)
{
	swap_step(w, (struct sl_event){.type = SL_EVENT_WORKLOAD_ADD,
			     .workload_add = {.workload = workload,
				     .request = {SL_AMOUNT_BYTES, 0, request},
				     .limit = {SL_AMOUNT_BYTES, 0, 15 * GIB},
				     .gpu_count = 1,
				     .gpu_mask = 1u << gpu}});
	swap_step(w, (struct sl_event){.type = SL_EVENT_CLIENT_JOIN,
			     .client_join = {workload + 1, workload, 0, swaps}});
	return workload + 1;
}

static uint64_t arrives(
	struct swap_world *w, uint64_t workload, uint64_t request, bool swaps)
{
	return arrives_on(w, 0, workload, request, swaps);
}

static void asks_on(struct swap_world *w, uint32_t gpu, uint64_t client, uint64_t bytes)
{
	swap_step(w, (struct sl_event){
			     .type = SL_EVENT_ASK, .ask = {client, 1, gpu, bytes, 0}});
}

static void asks(struct swap_world *w, uint64_t client, uint64_t bytes)
{
	asks_on(w, 0, client, bytes);
}

/* Z has 10 GiB, and H asks for 4; neither can be moved. H must leave W its request of 5 GiB, so it
 * waits for Z. D asks for 6 GiB, and R wants back as much. Z frees 2 GiB after more than a second.
 * They are not D's; they are kept for H, but do not suffice for it. So R comes back. */
static void yields(struct swap_world *w)
{
	uint32_t r;
	uint64_t z, h, d;

	stage(w, 1, 64 * GIB);
	r = enter(w, (struct swap_workload){.shape = SWAP_NOTEBOOK,
			     .size = 6 * GIB,
			     .pieces = 1,
			     .pause = 10 * SL_S,
			     .warm_after = SL_S});
	until(w, 3);
	(void)arrives(w, 1000, 5 * GIB, true);
	z = arrives(w, 1100, 0, false);
	asks(w, z, 10 * GIB);
	swap_step(w,
		(struct sl_event){.type = SL_EVENT_COMMIT, .commit = {z, 2, 10 * GIB}});
	h = arrives(w, 1200, 0, false);
	asks(w, h, 4 * GIB);
	d = arrives(w, 1300, 0, true);
	asks(w, d, 6 * GIB);
	until(w, 13);
	expect(client(w, r)->evicted[0] == 6 * GIB, "R is not on the host");
	swap_step(w,
		(struct sl_event){.type = SL_EVENT_FREED, .freed = {z, 0, 2 * GIB, 0}});
	until(w, 14);
	expect(how_many(SL_ACTION_RESTORE, client(w, r)->id, 0), "R does not come back");
}

/* A, C and D have their requests, 4.5 GiB each. All of D and a part of C leave for B, a burst of
 * 7.5 GiB, which then comes back before all others. C wants back at once, and waits for the first
 * part of B's turn. A, of lower priority, must not be moved for C. */
static void exchange_is_waited_for(struct swap_world *w)
{
	struct swap_workload within = {.request = 9 * GIB / 2, .size = 9 * GIB / 2};
	uint32_t a, b, c;

	stage(w, 1, 64 * GIB);
	b = enter_idle(w, 15 * GIB / 2);
	until(w, 2);
	person(w, SL_EVENT_WORKLOAD_PARK, b);
	until(w, 4);
	c = enter(w, within);
	(void)enter(w, within);
	until(w, 20);
	within.priority = -1;
	a = enter(w, within);
	until(w, 20.1);
	person(w, SL_EVENT_WORKLOAD_RESUME, b);
	until(w, 20.3);
	expect(!how_many(SL_ACTION_EVICT, client(w, c)->id, 0) &&
			!how_many(SL_ACTION_RESTORE, client(w, b)->id, 0),
		"C is moved for B");
	expect(!how_many(SL_ACTION_EVICT, client(w, a)->id, 0), "A is moved in its turn");
}

/* A has requested 4 GiB and is parked. Its contexts stay: the reserve pays for 1 GiB of them, and 1
 * GiB more is left on the GPU. B's burst lacks a part of that. A has been idle for long, but must
 * not be ended for it. */
static void parked_lives(struct swap_world *w)
{
	uint32_t a;

	chain(w, 1, 64 * GIB);
	w->config.config.stop_idle = SL_S;
	swap_step(w, w->config);
	a = enter(w, (struct swap_workload){.shape = SWAP_NOTEBOOK,
			     .request = 4 * GIB,
			     .size = 4 * GIB,
			     .pieces = 1,
			     .pause = 1000 * SL_S});
	until(w, 3);
	client(w, a)->hidden[0] = 2 * GIB;
	swap_step(w, (struct sl_event){.type = SL_EVENT_HIDDEN,
			     .hidden = {client(w, a)->id, 0, 2 * GIB}});
	person(w, SL_EVENT_WORKLOAD_PARK, a);
	until(w, 6);
	expect(client(w, a)->evicted[0] == 4 * GIB, "A is not parked");
	(void)enter(w, (struct swap_workload){.size = 14 * GIB + GIB / 2});
	until(w, 15);
	expect(client(w, a)->used, "A is ended");
	expect(how_many(SL_ACTION_STOP, 0, 0) == 0, "a process is ended");
}

/* A has 4 GiB on each of two GPUs, and thinks. It stays until the host has space for both. */
static void warm_as_a_whole(struct swap_world *w)
{
	uint32_t a;

	stage(w, 2, 6 * GIB);
	a = enter(w, (struct swap_workload){.shape = SWAP_NOTEBOOK,
			     .request = 4 * GIB,
			     .size = 4 * GIB,
			     .mask = 2,
			     .pieces = 1,
			     .pause = 1000 * SL_S,
			     .warm_after = SL_S});
	until(w, 10);
	expect(client(w, a)->evicted[0] + client(w, a)->evicted[1] == 0,
		"a part of A is on the host");
	swap_step(
		w, (struct sl_event){.type = SL_EVENT_POOL_SIZE, .pool_size = {9 * GIB}});
	until(w, 20);
	expect(client(w, a)->evicted[0] + client(w, a)->evicted[1] == 8 * GIB,
		"A is not on the host");
}

/* A, of lower priority, has 9 GiB and has requested 5. One of its processes cannot be moved, and is
 * told to end for B. The other one's memory is then within A's request. So it need not leave for C,
 * which must leave A its request. */
static void rest_of_the_ended(struct swap_world *w)
{
	uint64_t ended = 1000, b, c;
	uint32_t a;

	chain(w, 1, 64 * GIB);
	a = enter(w, (struct swap_workload){
			     .request = 5 * GIB, .size = 2 * GIB, .priority = -1});
	until(w, 2);
	swap_step(
		w, (struct sl_event){.type = SL_EVENT_CLIENT_JOIN,
			   .client_join = {.client = ended,
				   .workload = w->workload[client(w, a)->workload].id}});
	swap_step(w, (struct sl_event){.type = SL_EVENT_CLIENT_REPORT,
			     .client_report = {ended, 0, 7 * GIB}});
	swap_step(w, (struct sl_event){.type = SL_EVENT_CLIENT_REPORTED,
			     .client_reported = {ended}});
	b = arrives(w, 1100, 0, false);
	asks(w, b, 9 * GIB);
	until(w, 2.5);
	expect(how_many(SL_ACTION_STOP, ended, 0) == 1, "no process is ended for B");
	c = arrives(w, 1200, 0, false);
	asks(w, c, 2 * GIB);
	until(w, 3);
	expect(!how_many(SL_ACTION_EVICT, client(w, a)->id, 0), "A leaves in vain");
}

static void set_priority(struct swap_world *w, uint64_t workload, int32_t priority)
{
	swap_step(w, (struct sl_event){.type = SL_EVENT_WORKLOAD_SET,
			     .workload_set = {.workload = workload,
				     .which = SL_SET_PRIORITY,
				     .priority = priority}});
}

static void set_chain(struct swap_world *w, uint32_t resolvers)
{
	w->config.config.chain = resolvers;
	swap_step(w, w->config);
}

/* L, of lower priority, has 12 GiB and is told to end for A, because the host has no space for L's
 * memory. Then the host gets space, L's priority rises to A's, and the chain changes. So L lives,
 * and is moved instead. */
static void moves_after_all(struct swap_world *w, uint32_t first, uint32_t then)
{
	uint64_t l;

	chain(w, 1, GIB);
	set_chain(w, first);
	l = arrives(w, 1000, 0, true);
	set_priority(w, 1000, -1);
	asks(w, l, 12 * GIB);
	swap_step(w,
		(struct sl_event){.type = SL_EVENT_COMMIT, .commit = {l, 1, 12 * GIB}});
	until(w, 4);
	asks(w, arrives(w, 1100, 0, true), 9 * GIB);
	until(w, 5);
	expect(how_many(SL_ACTION_STOP, l, 0) == 1, "L is not told to end");
	set_priority(w, 1000, 0);
	set_chain(w, then);
	swap_step(w,
		(struct sl_event){.type = SL_EVENT_POOL_SIZE, .pool_size = {64 * GIB}});
	until(w, 10);
	expect(how_many(SL_ACTION_STOP, l, 0) == 1, "L is killed");
	expect(how_many(SL_ACTION_EVICT, l, 0) == 1, "L does not leave");
}

#define SWAP_FIRST(...) SL_CHAIN(SL_RESOLVER_SWAP, __VA_ARGS__)

static void moved_after_all(struct swap_world *w)
{
	moves_after_all(w, SWAP_FIRST(SL_RESOLVER_PRIORITY, SL_RESOLVER_WAIT),
		SWAP_FIRST(SL_RESOLVER_PRIORITY, SL_RESOLVER_WAIT));
}

static void moved_before_denied(struct swap_world *w)
{
	moves_after_all(w, SWAP_FIRST(SL_RESOLVER_PRIORITY, 0),
		SWAP_FIRST(SL_RESOLVER_PRIORITY, 0));
}

static void moved_without_priority(struct swap_world *w)
{
	moves_after_all(w, SWAP_FIRST(SL_RESOLVER_PRIORITY, SL_RESOLVER_WAIT),
		SWAP_FIRST(SL_RESOLVER_WAIT, 0));
}

/* V takes 6 s to leave GPU 0 for W, and X, on GPU 1, goes warm after 3 s without work: it leaves
 * after V. */
static void warm_after_demands(struct swap_world *w)
{
	uint32_t v, x;
	uint64_t asker;

	stage(w, 2, 64 * GIB);
	w->link_out[0] = LINK / 100;
	swap_step(w, (struct sl_event){.type = SL_EVENT_LINK_COST,
			     .link_cost = {0, LINK / 100, LINK}});
	v = enter(w, (struct swap_workload){.size = 12 * GIB});
	x = enter(w, (struct swap_workload){.shape = SWAP_NOTEBOOK,
			     .size = 10 * GIB,
			     .pieces = 1,
			     .pause = 1000 * SL_S,
			     .warm_after = 3 * SL_S});
	until(w, 2);
	asker = arrives(w, 1000, 0, true);
	set_priority(w, 1000, 1);
	asks(w, asker, 9 * GIB);
	until(w, 7);
	expect(client(w, v)->evicted[0] > 0 && client(w, v)->evicted[0] < 6 * GIB,
		"V is not on its way");
	expect(!how_many(SL_ACTION_EVICT, client(w, x)->id, 0), "X leaves before V");
	until(w, 15);
	expect(client(w, x)->evicted[1] == 10 * GIB, "X is not on the host");
}

/* V has borrowed the 6 GiB that W requested on GPU 1, and is told to give back 4.5 of them. Only
 * 1.5 are lent there then, and the host's 9 GiB suffice for the 3 that D borrows of R's request on
 * GPU 0. */
static void lent_no_more(struct swap_world *w)
{
	uint64_t v, d;

	stage(w, 2, 9 * GIB + 64 * SL_MIB);
	w->config.config.chain = SL_CHAIN(SL_RESOLVER_SWAP, 0, 0);
	swap_step(w, w->config);
	v = arrives_on(w, 1, 1000, 0, true);
	asks_on(w, 1, v, 15 * GIB);
	swap_step(w,
		(struct sl_event){.type = SL_EVENT_COMMIT, .commit = {v, 1, 15 * GIB}});
	until(w, 8);
	asks_on(w, 1, arrives_on(w, 1, 1100, 6 * GIB, true), 9 * GIB / 2);
	until(w, 9);
	expect(how_many(SL_ACTION_EVICT, v, 0) == 1, "V does not leave");
	(void)arrives(w, 1200, 51 * GIB / 4, true);
	d = arrives(w, 1300, 0, true);
	asks(w, d, 21 * GIB / 4);
	until(w, 9.1);
	expect(!how_many(SL_ACTION_DENY, d, 0), "D is denied what is lent no more");
}

/* A is within its request and has been idle for less than its grace. B exceeds its request on the
 * same GPU, is partly on the host, and asks for memory within its request on another GPU. That must
 * move no memory of A while A's grace goes on. */
static void brings_a_burst(struct swap_world *w)
{
	uint64_t b = 1001;
	uint32_t a;

	stage(w, 2, 64 * GIB);
	a = enter(w, (struct swap_workload){.shape = SWAP_NOTEBOOK,
			     .request = 8 * GIB,
			     .size = 8 * GIB,
			     .mask = 1,
			     .pieces = 1,
			     .pause = 1000 * SL_S,
			     .idle_grace = 20 * SL_S});
	until(w, 2);
	swap_step(w, (struct sl_event){.type = SL_EVENT_WORKLOAD_ADD,
			     .workload_add = {.workload = 1000,
				     .request = {SL_AMOUNT_BYTES, 0, 4 * GIB},
				     .limit = {SL_AMOUNT_BYTES, 0, 15 * GIB},
				     .gpu_count = 2,
				     .gpu_mask = 3}});
	swap_step(w, (struct sl_event){.type = SL_EVENT_CLIENT_JOIN,
			     .client_join = {b, 1000, 0, true}});
	swap_step(w, (struct sl_event){.type = SL_EVENT_CLIENT_REPORT,
			     .client_report = {b, 0, 11 * GIB}});
	swap_step(w, (struct sl_event){.type = SL_EVENT_CLIENT_EVICTED,
			     .client_evicted = {b, 0, 4 * GIB}});
	swap_step(w, (struct sl_event){
			     .type = SL_EVENT_CLIENT_REPORTED, .client_reported = {b}});
	asks_on(w, 1, b, GIB);
	until(w, 10);
	expect(client(w, a)->resident[0] == 8 * GIB && client(w, a)->idle_since,
		"A is not idle on its GPU");
	expect(!how_many(SL_ACTION_EVICT, client(w, a)->id, 0), "A leaves for a burst");
}

static void commits(struct swap_world *w, uint64_t client, uint64_t epoch, uint64_t bytes)
{
	swap_step(w, (struct sl_event){
			     .type = SL_EVENT_COMMIT, .commit = {client, epoch, bytes}});
}

static void parks(struct swap_world *w, uint64_t workload)
{
	swap_step(w, (struct sl_event){.type = SL_EVENT_WORKLOAD_PARK,
			     .workload_park = {workload}});
}

/* C, on GPU 1, has 6 GiB and is creating one more when it is parked. Before C has created it, L
 * borrows 5 of the 8 GiB that W requested on GPU 0. The host has 10 GiB: 5 beside those, too few
 * for C. So C leaves only after L has given some back. */
static void parked_beside_lent(struct swap_world *w)
{
	uint64_t l, c;

	stage(w, 2, 10 * GIB + 64 * SL_MIB);
	(void)arrives_on(w, 0, 1000, 8 * GIB, true);
	c = arrives_on(w, 1, 1200, 0, true);
	asks_on(w, 1, c, 6 * GIB);
	commits(w, c, 1, 6 * GIB);
	swap_step(w, (struct sl_event){.type = SL_EVENT_ASK, .ask = {c, 2, 1, GIB, 0}});
	parks(w, 1200);
	l = arrives_on(w, 0, 1100, 0, true);
	asks_on(w, 0, l, 12 * GIB);
	commits(w, l, 3, 12 * GIB);
	commits(w, c, 2, GIB);
	until(w, 2);
	expect(!how_many(SL_ACTION_EVICT, c, 0), "C leaves for what is kept for L");
	swap_step(w,
		(struct sl_event){.type = SL_EVENT_FREED, .freed = {l, 0, 2 * GIB, 0}});
	until(w, 3);
	expect(how_many(SL_ACTION_EVICT, c, 0) == 1, "C does not leave");
}

/* C is about to create one more GiB when it is parked: then all of it leaves. */
static void parked_in_the_act(struct swap_world *w)
{
	uint64_t c;

	stage(w, 1, 10 * GIB);
	c = arrives_on(w, 0, 1200, 0, true);
	asks_on(w, 0, c, 6 * GIB);
	commits(w, c, 1, 6 * GIB);
	swap_step(w, (struct sl_event){.type = SL_EVENT_ASK, .ask = {c, 2, 0, GIB, 0}});
	parks(w, 1200);
	until(w, 4);
	expect(!how_many(SL_ACTION_PARKED, 0, 0), "it is parked before all is there");
	commits(w, c, 2, GIB);
	until(w, 6);
	expect(how_many(SL_ACTION_EVICT, c, 0) == 1, "it does not leave");
}

/* V has borrowed the 6 GiB that W requested on GPU 1, and is told to give back 4.5 of them. The
 * host's 9 GiB then have space for 3 more: C, on GPU 0, leaves at once when it is parked. */
static void parked_beside_leaving(struct swap_world *w)
{
	uint64_t v, c;

	stage(w, 2, 9 * GIB + 64 * SL_MIB);
	v = arrives_on(w, 1, 1000, 0, true);
	asks_on(w, 1, v, 15 * GIB);
	commits(w, v, 1, 15 * GIB);
	c = arrives_on(w, 0, 1200, 0, true);
	asks_on(w, 0, c, 3 * GIB);
	commits(w, c, 2, 3 * GIB);
	until(w, 8);
	asks_on(w, 1, arrives_on(w, 1, 1100, 6 * GIB, true), 9 * GIB / 2);
	until(w, 9);
	expect(how_many(SL_ACTION_EVICT, v, 0) == 1, "V does not leave");
	parks(w, 1200);
	until(w, 9.1);
	expect(how_many(SL_ACTION_EVICT, c, 0) == 1, "C waits for what is lent no more");
}

/* B, of higher priority, lacks some of A's memory. A was granted more memory and is still creating
 * it: A leaves only once that is done. */
static void makes_it_first(struct swap_world *w)
{
	uint64_t a, b;

	stage(w, 1, 64 * GIB);
	a = arrives(w, 1000, 0, true);
	asks(w, a, 10 * GIB);
	commits(w, a, 1, 10 * GIB);
	swap_step(
		w, (struct sl_event){.type = SL_EVENT_ASK, .ask = {a, 2, 0, 2 * GIB, 0}});
	until(w, 8);
	b = arrives(w, 1100, 0, true);
	set_priority(w, 1100, 5);
	asks(w, b, 6 * GIB);
	until(w, 9);
	expect(!how_many(SL_ACTION_EVICT, a, 0), "A leaves with an open grant");
	commits(w, a, 2, 2 * GIB);
	until(w, 10);
	expect(how_many(SL_ACTION_EVICT, a, 0) == 1, "A does not leave");
}

/* D and E, which cannot be moved, have 5 GiB each, and A has 4; each lacks 10. A is the youngest,
 * but E gives way, because A can go to the host instead. */
static void movable_has_hope(struct swap_world *w)
{
	uint64_t of[3];

	stage(w, 1, 64 * GIB);
	for (uint32_t i = 0; i < 3; i++) {
		uint64_t has = i == 2 ? 4 * GIB : 5 * GIB;

		of[i] = arrives(w, 1000 + 100 * i, 0, i == 2);
		asks(w, of[i], has);
		commits(w, of[i], i + 1, has);
	}
	until(w, 4);
	for (uint32_t i = 0; i < 3; i++)
		swap_step(w, (struct sl_event){.type = SL_EVENT_ASK,
				     .ask = {of[i], 2, 0, 10 * GIB, 0}});
	until(w, 10);
	expect(!how_many(SL_ACTION_DENY, of[2], 0), "A gives way");
	expect(how_many(SL_ACTION_DENY, of[1], 0) == 1, "E does not give way");
}

/* A has no work for 60 ms again and again, and B has work all the time. Moving A takes three times
 * as long as such a rest, so A keeps its turns of 2 s. */
static void short_rests(struct swap_world *w)
{
	uint32_t a;

	stage(w, 1, 64 * GIB);
	a = enter(w, (struct swap_workload){.shape = SWAP_NOTEBOOK,
			     .size = 10 * GIB,
			     .pieces = 10,
			     .pause = 60 * SL_MS});
	(void)enter(w, (struct swap_workload){.size = 10 * GIB});
	until(w, 60);
	expect(how_many(SL_ACTION_EVICT, client(w, a)->id, 0) < 20,
		"A was moved %u times", how_many(SL_ACTION_EVICT, client(w, a)->id, 0));
}

/* A's first process has 5 GiB, and with them a turn of 2 s. In that turn A's second process asks,
 * and B leaves for it: B has 10 GiB and no work. Soon B wants its memory back. It waits for the end
 * of A's turn, which the second process has joined and does not make longer. */
static void later_joins(struct swap_world *w)
{
	uint32_t a, b;

	stage(w, 1, 64 * GIB);
	b = enter(w, (struct swap_workload){.shape = SWAP_NOTEBOOK,
			     .size = 10 * GIB,
			     .pieces = 1,
			     .pause = 2800 * SL_MS});
	until(w, 2);
	a = enter(w, (struct swap_workload){.size = 5 * GIB});
	until(w, 2.5);
	expect(client(w, a)->resident[0] == 5 * GIB, "A does not run");
	a = swap_world_client(w, client(w, a)->workload);
	until(w, 2.75);
	expect(client(w, a)->resident[0] == 5 * GIB &&
			client(w, b)->evicted[0] == 5 * GIB,
		"B has not left for A's second process");
	until(w, 4.1);
	expect(client(w, b)->resident[0] == 10 * GIB, "A has another turn");
}

/* A has 10 GiB since before the daemon's start, and tells it so: that begins a turn of 2 s, and A
 * leaves for B then. */
static void turn_after_a_start(struct swap_world *w)
{
	const uint64_t a = 1050;

	stage(w, 1, 64 * GIB);
	(void)arrives(w, 1000, 0, true);
	swap_step(w, (struct sl_event){.type = SL_EVENT_CLIENT_JOIN,
			     .client_join = {a, 1000, 1, 1}});
	swap_step(w, (struct sl_event){.type = SL_EVENT_CLIENT_REPORT,
			     .client_report = {a, 0, 10 * GIB}});
	swap_step(w, (struct sl_event){
			     .type = SL_EVENT_CLIENT_REPORTED, .client_reported = {a}});
	until(w, 1);
	asks(w, arrives(w, 1100, 0, true), 10 * GIB);
	until(w, 1.5);
	expect(!how_many(SL_ACTION_EVICT, a, 0), "A has no turn");
	until(w, 2.5);
	expect(how_many(SL_ACTION_EVICT, a, 0) == 1, "A does not leave");
}

const struct swap_play swap_plays_leaving[] = {
	{"a turn begins with what a daemon is told at its start", turn_after_a_start},
	{"what comes later joins the turn of its workload", later_joins},
	{"a parked workload leaves host memory for what is lent", parked_beside_lent},
	{"parked during a creation, and parked once it is done", parked_in_the_act},
	{"what leaves elsewhere is lent no more", parked_beside_leaving},
	{"what is granted is made before its process leaves", makes_it_first},
	{"a client that can be moved is not hopeless in a deadlock", movable_has_hope},
	{"short rests end no turn", short_rests},
	{"what leaves is lent no more", lent_no_more},
	{"a workload that goes warm leaves after others' demands", warm_after_demands},
	{"a process that was told to end and lives is moved", moved_after_all},
	{"a process that was told to end and lives is moved before a demand is denied",
		moved_before_denied},
	{"a process that was told to end and lives is moved, whatever the chain is by "
	 "then",
		moved_without_priority},
	{"ending the borrower gives a request back", owed},
	{"no process is ended for memory that was lost with its GPU", owed_on_the_lost},
	{"no process is ended for a client that cannot come back all the same",
		owed_in_vain},
	{"a burst that would be ended for the head does not pass it", passed},
	{"a process proves that it is idle before it is ended", proven_first},
	{"the rest of an ending workload is within its request", rest_of_the_ended},
	{"an exchange is waited for within a request", exchange_is_waited_for},
	{"a parked process lives on", parked_lives},
	{"a workload goes warm as a whole", warm_as_a_whole},
	{"whole by freeing the rest", whole_by_freeing},
	{"what others end for is left to the head", left_to_the_head},
	{"a workload that gave up has no turn left over", gave_up},
	{"two models on the same two GPUs", both_on_both},
	{"the host has room for one GPU of two", room_for_one_gpu},
	{"a client that reports again begins no turn", reports_anew},
	{"freed on the host without a line", freed_unheard},
	{"a server within its request shortens no turns", turns_beside_a_server},
	{"two of one workload do not fit any longer", siblings},
	{"two of one workload that fit take no turns", siblings_stay},
	{"told to leave while others are moved for it", told_to_leave},
	{"what is left to the head is not kept from the host", yields},
	{"a client that asks in vain has no share for another", share_in_vain, true},
	{"a demand within a request does not make its burst entitled", brings_a_burst},
	{0},
};
