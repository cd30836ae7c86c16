/*
 * plays_moves - plays of parked workloads that come back to other GPUs
 *
 * 15 GiB can be shared of each GPU, and 1 GiB is kept for contexts. The context of A takes 768 MiB.
 */
#include "stage.h"

#define CONTEXT (768 * SL_MIB)

static void set_stage(struct swap_world *w, uint32_t gpus)
{
	stage(w, gpus, 64 * GIB);
	w->config.config.detach = 1;
	swap_step(w, w->config);
}

static void measure(struct swap_world *w, uint32_t slot, uint32_t gpu)
{
	client(w, slot)->hidden[gpu] = CONTEXT;
	swap_step(w, (struct sl_event){.type = SL_EVENT_HIDDEN,
			     .hidden = {client(w, slot)->id, gpu, CONTEXT}});
}

static uint32_t gpus_of(struct swap_world *w, uint32_t slot)
{
	return w->workload[client(w, slot)->workload].mask;
}

static uint32_t gpu_of(struct swap_world *w, uint32_t slot)
{
	return (uint32_t)__builtin_ctz(gpus_of(w, slot));
}

/* A works, with 4 GiB of its request. */
static uint32_t begin(struct swap_world *w, uint32_t gpus)
{
	uint32_t a;

	set_stage(w, gpus);
	a = enter(w, (struct swap_workload){.request = 4 * GIB, .size = 4 * GIB});
	measure(w, a, gpu_of(w, a));
	until(w, 1);
	return a;
}

static void resume_on(struct swap_world *w, uint32_t slot, uint32_t mask)
{
	swap_step(w, (struct sl_event){.type = SL_EVENT_WORKLOAD_RESUME,
			     .workload_resume = {
				     w->workload[client(w, slot)->workload].id, mask}});
}

static void is(
	struct swap_world *w, uint32_t slot, enum sl_presence expected, const char *what)
{
	expect(view(w, slot).presence == expected, "%s: A has presence %u", what,
		(unsigned)view(w, slot).presence);
}

static void leaves(struct swap_world *w, uint32_t a)
{
	is(w, a, SL_PRESENCE_HERE, "running");
	person(w, SL_EVENT_WORKLOAD_PARK, a);
	is(w, a, SL_PRESENCE_HERE, "leaving");
	until(w, 2);
	is(w, a, SL_PRESENCE_AWAY, "gone");
}

static void runs_on(struct swap_world *w, uint32_t a, uint32_t mask, uint64_t bytes)
{
	expect(view(w, a).residency == SL_RESIDENCY_BOUND && client(w, a)->is_open &&
			gpus_of(w, a) == mask &&
			client(w, a)->resident[gpu_of(w, a)] == bytes,
		"A is in state %u, on GPUs %x", (unsigned)view(w, a).residency,
		gpus_of(w, a));
}

static uint32_t refusals(enum sl_reason reason)
{
	return how_many(SL_ACTION_REFUSE, 0, reason);
}

/* What was evicted on one GPU comes back on the other, and nothing of it stays on the first. */
static void goes(struct swap_world *w)
{
	uint32_t a = begin(w, 2), was = gpu_of(w, a), to = 3 & ~gpus_of(w, a);

	leaves(w, a);
	resume_on(w, a, to);
	until(w, 3);
	runs_on(w, a, to, 4 * GIB);
	expect(sl_node_gpu(w->node, was).free_bytes == 15 * GIB &&
			!sl_node_gpu(w->node, was).paid_bytes,
		"something stayed on GPU %u", was);
	expect(view(w, a).actual_mask == to, "A is said to be on GPUs %x",
		view(w, a).actual_mask);
}

/* Not while something of it is on a GPU. */
static void is_not_away(struct swap_world *w)
{
	uint32_t a = begin(w, 2), own = gpus_of(w, a);

	person(w, SL_EVENT_WORKLOAD_PARK, a);
	resume_on(w, a, 3 & ~own);
	expect(refusals(SL_REASON_MOVE_NOT_AWAY) == 1, "A went with its memory");
	w->refuses_places = SL_SWAP_DRIVER;
	until(w, 2);
	is(w, a, SL_PRESENCE_STAYS, "refused");
	resume_on(w, a, 3 & ~own);
	expect(refusals(SL_REASON_MOVE_NOT_AWAY) == 2, "A went with its contexts");
	resume_on(w, a, 0);
	until(w, 3);
	runs_on(w, a, own, 4 * GIB);
}

/* A frees its memory while it is told to leave: the answer is still to come. */
static void answer_is_due(struct swap_world *w)
{
	uint32_t a;

	set_stage(w, 2);
	a = enter(w, (struct swap_workload){.size = 4 * GIB, .piece = 30 * SL_S});
	until(w, 1);
	person(w, SL_EVENT_WORKLOAD_PARK, a);
	swap_free(w, a, gpu_of(w, a), 4 * GIB);
	until(w, 1.001);
	expect(!sl_node_use(w->node, w->workload[client(w, a)->workload].id, gpu_of(w, a))
			.backing_bytes,
		"A has not freed its memory");
	resume_on(w, a, 3 & ~gpus_of(w, a));
	expect(refusals(SL_REASON_MOVE_NOT_AWAY) == 1, "A went with an open order");
}

/* The contexts of A were never measured: it is not told to leave with them, so it stays. */
static void is_unmeasured(struct swap_world *w)
{
	uint32_t a, own;

	set_stage(w, 2);
	a = enter(w, (struct swap_workload){.size = 4 * GIB});
	own = gpus_of(w, a);
	until(w, 1);
	person(w, SL_EVENT_WORKLOAD_PARK, a);
	until(w, 2);
	is(w, a, SL_PRESENCE_STAYS, "unmeasured");
	resume_on(w, a, 3 & ~own);
	expect(refusals(SL_REASON_MOVE_NOT_AWAY) == 1, "A went with its contexts");
	resume_on(w, a, 0);
	until(w, 3);
	runs_on(w, a, own, 4 * GIB);
}

static void is_lost(struct swap_world *w)
{
	uint32_t a = begin(w, 2), other = 1 - gpu_of(w, a);

	leaves(w, a);
	w->lost_mask |= 1u << other;
	swap_step(
		w, (struct sl_event){.type = SL_EVENT_GPU_LOST, .gpu_lost = {other, 79}});
	resume_on(w, a, 1u << other);
	expect(refusals(SL_REASON_TOO_FEW_GPUS) == 1, "A went to a lost GPU");
}

/* A was granted memory when its GPU was lost. That grant is void, and keeps A nowhere. */
static void its_grant_is_void(struct swap_world *w)
{
	uint32_t a, own;

	set_stage(w, 2);
	a = enter(w, (struct swap_workload){
			     .shape = SWAP_NOTEBOOK, .pieces = 1, .pause = 1000 * SL_S});
	own = gpu_of(w, a);
	until(w, 1);
	swap_step(w, (struct sl_event){.type = SL_EVENT_ASK,
			     .ask = {client(w, a)->id, 1, own, GIB}});
	w->lost_mask |= 1u << own;
	swap_step(w, (struct sl_event){.type = SL_EVENT_GPU_LOST, .gpu_lost = {own, 79}});
	person(w, SL_EVENT_WORKLOAD_PARK, a);
	is(w, a, SL_PRESENCE_STAYS, "void");
}

/* B keeps A from growing, there as here. Once B is gone, A gets on its new GPU what it asked for on
 * the old one. */
static void its_demand_goes_along(struct swap_world *w)
{
	uint32_t a, b, to;

	set_stage(w, 2);
	a = enter(w, (struct swap_workload){
			     .request = 2 * GIB, .size = 4 * GIB, .step = 2 * GIB});
	to = 1 - gpu_of(w, a);
	measure(w, a, gpu_of(w, a));
	b = enter(w, (struct swap_workload){.mask = 2,
			     .request = 12 * GIB,
			     .size = 12 * GIB,
			     .flags = SL_WORKLOAD_NO_SWAP});
	until(w, 1);
	leaves(w, a);
	resume_on(w, a, 1u << to);
	until(w, 3);
	expect(client(w, a)->thread == THREAD_ASKS && client(w, a)->ask_gpu == to,
		"A does not wait there");
	swap_exit(w, b);
	until(w, 5);
	runs_on(w, a, 1u << to, 4 * GIB);
}

/* Its limit is cut to what the GPU can share. */
static void is_smaller(struct swap_world *w)
{
	uint32_t a = begin(w, 2), other = 1 - gpu_of(w, a);

	expect(view(w, a).limit_bytes == 15 * GIB, "A has another limit");
	leaves(w, a);
	swap_step(w, (struct sl_event){
			     .type = SL_EVENT_UNMANAGED, .unmanaged = {other, 4 * GIB}});
	resume_on(w, a, 1u << other);
	until(w, 3);
	runs_on(w, a, 1u << other, 4 * GIB);
	expect(view(w, a).limit_bytes == 11 * GIB, "A has a limit of %llu",
		(unsigned long long)view(w, a).limit_bytes);
}

/* Asked again after 5 s; only then it counts as one that stays. */
static void is_busy(struct swap_world *w)
{
	uint32_t a = begin(w, 2);

	w->refuses_places = SL_SWAP_BUSY;
	person(w, SL_EVENT_WORKLOAD_PARK, a);
	until(w, 2);
	is(w, a, SL_PRESENCE_HERE, "busy once");
	until(w, 8);
	is(w, a, SL_PRESENCE_STAYS, "busy again");
	w->refuses_places = SL_SWAP_NO_CAUSE;
	until(w, 20);
	is(w, a, SL_PRESENCE_AWAY, "asked again");
}

/* Of two GPUs one stays. */
static void has_two(struct swap_world *w)
{
	uint32_t a, own, to;

	set_stage(w, 3);
	a = enter(w,
		(struct swap_workload){.mask = 2, .request = 4 * GIB, .size = 4 * GIB});
	own = gpus_of(w, a);
	to = 7 & ~(own & -own);
	measure(w, a, gpu_of(w, a));
	until(w, 1);
	leaves(w, a);
	resume_on(w, a, to);
	until(w, 4);
	runs_on(w, a, to, 4 * GIB);
}

/* Requests of others keep it from there: it goes to a third. */
static void finds_no_room(struct swap_world *w)
{
	uint32_t a = begin(w, 3), full, third;

	full = gpus_of(
		w, enter(w, (struct swap_workload){.request = 14 * GIB, .size = GIB}));
	third = 7 & ~full & ~gpus_of(w, a);
	leaves(w, a);
	resume_on(w, a, full);
	until(w, 3);
	expect(gpus_of(w, a) == full && view(w, a).residency == SL_RESIDENCY_RESUMING,
		"A is in state %u", (unsigned)view(w, a).residency);
	is(w, a, SL_PRESENCE_AWAY, "waiting");
	resume_on(w, a, third);
	until(w, 4);
	runs_on(w, a, third, 4 * GIB);
}

/* The daemon dies while A is on its way: the next one finds it away, or there, on its new GPU. */
static void is_found_there(struct swap_world *w)
{
	uint32_t a = begin(w, 2), to = 3 & ~gpus_of(w, a);

	leaves(w, a);
	resume_on(w, a, to);
	expect(client(w, a)->place == PLACE_RETURNS, "A is in place %u",
		(unsigned)client(w, a)->place);
	swap_restart(w);
	until(w, 9);
	runs_on(w, a, to, 4 * GIB);
}

const struct swap_play swap_plays_moves[] = {
	{"a parked workload comes back to another GPU", goes},
	{"something of it is on a GPU", is_not_away},
	{"it freed what was to leave", answer_is_due},
	{"its contexts were not measured", is_unmeasured},
	{"the other GPU is lost", is_lost},
	{"its grant is void", its_grant_is_void},
	{"it asked for more before it went", its_demand_goes_along},
	{"the other GPU can share less", is_smaller},
	{"it is busy when it is to leave", is_busy},
	{"one of its two GPUs stays", has_two},
	{"its request has no room there", finds_no_room},
	{"the daemon died while it was on its way", is_found_there},
	{0},
};
