/*
 * plays_kept - plays of workloads whose memory never leaves a GPU, and of GPUs that are free of
 * swapping
 *
 * 15 GiB can be shared on each GPU.
 */
#include "stage.h"

/* Computes once, and then has its memory for longer than any play lasts. */
static uint32_t enter_once(
	struct swap_world *w, uint64_t request, uint64_t size, uint32_t flags)
{
	return enter(w, (struct swap_workload){.shape = SWAP_NOTEBOOK,
				.request = request,
				.size = size,
				.flags = flags,
				.pieces = 1,
				.pause = 1000 * SL_S});
}

static uint32_t refused(enum sl_reason reason)
{
	return how_many(SL_ACTION_REFUSE, 0, reason);
}

static void keep(struct swap_world *w, uint32_t slot)
{
	swap_step(
		w, (struct sl_event){.type = SL_EVENT_WORKLOAD_SET,
			   .workload_set = {
				   .workload = w->workload[client(w, slot)->workload].id,
				   .which = SL_SET_FLAGS,
				   .flags = SL_WORKLOAD_NO_SWAP}});
}

/* K has 10 GiB above its request and never moves, so 5 can be promised. */
static void keeps_what_it_has(struct swap_world *w)
{
	uint32_t a;

	stage(w, 1, 64 * GIB);
	(void)enter_once(w, 0, 10 * GIB, SL_WORKLOAD_NO_SWAP);
	until(w, 2);
	(void)swap_world_workload(
		w, (struct swap_workload){.request = 6 * GIB, .limit = UINT64_MAX});
	expect(refused(SL_REASON_REQUESTS_TAKEN) == 1,
		"6 GiB are promised where they never will be");
	a = enter(w, (struct swap_workload){.request = 5 * GIB, .size = 5 * GIB});
	until(w, 3);
	expect(client(w, a)->resident[0] == 5 * GIB, "A waits for its request");
}

/* The same, but `priority` ends K for what was promised. */
static void is_ended_for_a_request(struct swap_world *w)
{
	uint32_t a;

	stage(w, 1, 64 * GIB);
	w->config.config.chain =
		SL_CHAIN(SL_RESOLVER_SWAP, SL_RESOLVER_PRIORITY, SL_RESOLVER_WAIT);
	swap_step(w, w->config);
	(void)enter_once(w, 0, 10 * GIB, SL_WORKLOAD_NO_SWAP);
	until(w, 2);
	a = enter(w, (struct swap_workload){
			     .request = 6 * GIB, .size = 6 * GIB, .priority = 1});
	until(w, 10);
	expect(client(w, a)->resident[0] == 6 * GIB, "A waits for its request");
}

/* K has borrowed 3 GiB of the 8 that A requested and does not use. */
static void stands_on_requests(struct swap_world *w)
{
	uint32_t k;

	stage(w, 1, 64 * GIB);
	(void)enter_once(w, 8 * GIB, 2 * GIB, 0);
	k = enter_once(w, 0, 10 * GIB, 0);
	until(w, 2);
	expect(client(w, k)->resident[0] == 10 * GIB, "K is not lent anything");
	keep(w, k);
	expect(refused(SL_REASON_STANDS_ON_REQUESTS) == 1 &&
			!(view(w, k).flags & SL_WORKLOAD_NO_SWAP),
		"K keeps what it borrowed");
}

/* K was parked with 10 GiB and will never move again once it is back. It waits until all requests
 * have room beside it, though nothing of A is there yet. */
static void comes_back_for_good(struct swap_world *w)
{
	uint32_t a, k;

	stage(w, 1, 64 * GIB);
	k = enter_once(w, 0, 10 * GIB, 0);
	until(w, 2);
	person(w, SL_EVENT_WORKLOAD_PARK, k);
	until(w, 3);
	a = enter_once(w, 8 * GIB, 0, 0);
	keep(w, k);
	person(w, SL_EVENT_WORKLOAD_RESUME, k);
	until(w, 9);
	expect(!client(w, k)->resident[0], "K comes back onto A's request");
	person(w, SL_EVENT_WORKLOAD_REMOVE, a);
	until(w, 11);
	expect(client(w, k)->resident[0] == 10 * GIB, "K is not back");
}

/* K is resumed while its 10 GiB still leave. If they stayed, A's 8 GiB would have no room. */
static void is_resumed_while_it_leaves(struct swap_world *w)
{
	uint32_t k;

	stage(w, 1, 64 * GIB);
	k = enter_once(w, 0, 10 * GIB, 0);
	until(w, 2);
	person(w, SL_EVENT_WORKLOAD_PARK, k);
	keep(w, k);
	(void)enter_once(w, 8 * GIB, 8 * GIB, 0);
	person(w, SL_EVENT_WORKLOAD_RESUME, k);
	until(w, 9);
	expect(view(w, k).residency != SL_RESIDENCY_PARKED && !client(w, k)->resident[0],
		"K is in state %u", (unsigned)view(w, k).residency);
}

/* GPU 0 is free of swapping, and too small for A, which has a context there, and its memory on GPU
 * 1. That may leave for B. */
static void looks_at_a_fixed_gpu(struct swap_world *w)
{
	uint32_t a, b;

	stage(w, 2, 64 * GIB);
	swap_step(
		w, (struct sl_event){.type = SL_EVENT_GPU_ADD,
			   .gpu_add = {.gpu = 0, .capacity_bytes = 4 * GIB, .fixed = 1}});
	a = enter_once(w, 5 * GIB, 8 * GIB, 0);
	client(w, a)->hidden[0] = GIB;
	swap_step(w, (struct sl_event){.type = SL_EVENT_HIDDEN,
			     .hidden = {client(w, a)->id, 0, GIB}});
	until(w, 2);
	expect(client(w, a)->resident[1] == 8 * GIB, "A is not on GPU 1");
	b = enter(w, (struct swap_workload){.request = 5 * GIB, .size = 10 * GIB});
	until(w, 4);
	expect(client(w, b)->resident[1] == 10 * GIB, "A keeps its memory from B");
}

const struct swap_play swap_plays_kept[] = {
	{"a request arrives beside a burst that never moves", keeps_what_it_has},
	{"a request arrives where a burst that never moves can be ended",
		is_ended_for_a_request},
	{"a borrower is to be moved no more", stands_on_requests},
	{"a parked burst is to be moved no more", comes_back_for_good},
	{"it is to be moved no more while it leaves", is_resumed_while_it_leaves},
	{"its context is on a GPU that is free of swapping", looks_at_a_fixed_gpu},
	{0},
};
