/*
 * plays_places - plays of processes that leave their GPUs whole, and of their way back
 *
 * 15 GiB can be shared, and 1 GiB is kept for contexts. The context of A takes 768 MiB.
 */
#include "stage.h"

#define CONTEXT (768 * SL_MIB)

static void measure(struct swap_world *w, uint32_t slot, uint64_t bytes)
{
	client(w, slot)->hidden[0] = bytes;
	swap_step(w, (struct sl_event){.type = SL_EVENT_HIDDEN,
			     .hidden = {client(w, slot)->id, 0, bytes}});
}

/* A works, with 4 GiB of its request; its context is paid by the reserve. */
static uint32_t begin(struct swap_world *w)
{
	uint32_t a;

	stage(w, 1, 64 * GIB);
	w->config.config.detach = 1;
	swap_step(w, w->config);
	a = enter(w, (struct swap_workload){.request = 4 * GIB, .size = 4 * GIB});
	measure(w, a, CONTEXT);
	until(w, 1);
	return a;
}

static uint32_t count(enum sl_action_type type, struct swap_world *w, uint32_t slot)
{
	return how_many(type, client(w, slot)->id, 0);
}

static void leaves(struct swap_world *w, uint32_t a)
{
	person(w, SL_EVENT_WORKLOAD_PARK, a);
	until(w, 2);
	expect(client(w, a)->place == PLACE_AWAY, "A is in place %u",
		(unsigned)client(w, a)->place);
}

static void leaves_and_returns(struct swap_world *w)
{
	uint32_t a = begin(w);

	leaves(w, a);
	expect(view(w, a).residency == SL_RESIDENCY_PARKED && client(w, a)->want_told,
		"A is in state %u", (unsigned)view(w, a).residency);
	/* Samples from before do not count. */
	swap_step(w, (struct sl_event){.type = SL_EVENT_HIDDEN,
			     .hidden = {client(w, a)->id, 0, CONTEXT / 2}});
	person(w, SL_EVENT_WORKLOAD_RESUME, a);
	until(w, 3);
	expect(view(w, a).residency == SL_RESIDENCY_BOUND && client(w, a)->is_open,
		"A is in state %u", (unsigned)view(w, a).residency);
	expect(count(SL_ACTION_ATTACH, w, a) == 1 &&
			count(SL_ACTION_RESTORE, w, a) == 1 &&
			first_of(SL_ACTION_ATTACH, 0)->at <
				first_of(SL_ACTION_RESTORE, 0)->at,
		"its memory came first");
}

/* The connection of a process that is on its way may break. */
static void loses_its_line(struct swap_world *w)
{
	uint32_t a = begin(w);

	leaves(w, a);
	person(w, SL_EVENT_WORKLOAD_RESUME, a);
	swap_lose_line(w, a);
	until(w, 5);
	expect(view(w, a).residency == SL_RESIDENCY_BOUND, "A is in state %u",
		(unsigned)view(w, a).residency);
}

/* It is asked again after 5 s, then after 10, and so on; not after its RESUME. */
static void refuses(struct swap_world *w)
{
	uint32_t a = begin(w);

	w->refuses_places = SL_SWAP_DRIVER;
	person(w, SL_EVENT_WORKLOAD_PARK, a);
	until(w, 30);
	expect(count(SL_ACTION_DETACH, w, a) == 3, "A was asked %u times",
		count(SL_ACTION_DETACH, w, a));
	person(w, SL_EVENT_WORKLOAD_RESUME, a);
	until(w, 31);
	expect(view(w, a).residency == SL_RESIDENCY_BOUND, "A is in state %u",
		(unsigned)view(w, a).residency);
}

/* A has nothing but a context, refuses to leave, and bursts after its RESUME. It leaves for B,
 * which is within its request, as any other does. */
static void refuses_and_goes(struct swap_world *w, enum sl_swap_cause cause)
{
	uint32_t a, b;

	stage(w, 1, 64 * GIB);
	w->config.config.detach = 1;
	swap_step(w, w->config);
	a = enter(w, (struct swap_workload){.size = 0});
	measure(w, a, CONTEXT);
	w->refuses_places = cause;
	until(w, 1);
	person(w, SL_EVENT_WORKLOAD_PARK, a);
	until(w, 300);
	person(w, SL_EVENT_WORKLOAD_RESUME, a);
	w->workload[client(w, a)->workload].size = 10 * GIB;
	until(w, 301);
	expect(client(w, a)->resident[0] == 10 * GIB, "A has no memory yet");
	b = enter(w, (struct swap_workload){.request = 10 * GIB, .size = 10 * GIB});
	until(w, 304);
	expect(client(w, b)->resident[0] == 10 * GIB, "B waits for A");
}

static void goes_after_refusals(struct swap_world *w)
{
	refuses_and_goes(w, SL_SWAP_DRIVER);
}

static void goes_after_it_was_busy(struct swap_world *w)
{
	refuses_and_goes(w, SL_SWAP_BUSY);
}

/* Resumed while it leaves, and it refuses: it stays, and waits for nothing. */
static void resumed_while_it_leaves(struct swap_world *w)
{
	uint32_t a;

	stage(w, 1, 64 * GIB);
	w->config.config.detach = 1;
	swap_step(w, w->config);
	a = enter(w, (struct swap_workload){.size = 0});
	measure(w, a, CONTEXT);
	w->refuses_places = SL_SWAP_DRIVER;
	until(w, 1);
	person(w, SL_EVENT_WORKLOAD_PARK, a);
	person(w, SL_EVENT_WORKLOAD_RESUME, a);
	until(w, 2);
	expect(client(w, a)->place == PLACE_THERE && client(w, a)->is_open,
		"A is in place %u", (unsigned)client(w, a)->place);
	expect(count(SL_ACTION_DETACH, w, a) == 1, "A was asked %u times",
		count(SL_ACTION_DETACH, w, a));
}

/* Held memory stays, and its process with it. */
static void holds(struct swap_world *w)
{
	uint32_t a = begin(w);

	client(w, a)->held[0] = GIB;
	swap_step(w, (struct sl_event){
			     .type = SL_EVENT_HELD, .held = {client(w, a)->id, 0, GIB}});
	person(w, SL_EVENT_WORKLOAD_PARK, a);
	until(w, 20);
	expect(view(w, a).residency == SL_RESIDENCY_PARKED &&
			count(SL_ACTION_DETACH, w, a) == 0,
		"A was told to leave with the memory that it holds");
}

/* The context of C took the reserve. Beside A's own context C could never be whole again: A waits
 * until C is gone. */
static void reserve_is_taken(struct swap_world *w)
{
	uint32_t a = begin(w), c;

	leaves(w, a);
	c = enter(w, (struct swap_workload){.request = GIB, .size = 15 * GIB});
	measure(w, c, CONTEXT);
	until(w, 3);
	person(w, SL_EVENT_WORKLOAD_RESUME, a);
	until(w, 5);
	expect(view(w, a).residency == SL_RESIDENCY_RESUMING &&
			count(SL_ACTION_ATTACH, w, a) == 0,
		"A is in state %u", (unsigned)view(w, a).residency);
	swap_exit(w, c);
	until(w, 8);
	expect(view(w, a).residency == SL_RESIDENCY_BOUND, "A is in state %u",
		(unsigned)view(w, a).residency);
}

/* A has no request. Requests of others take the whole GPU, and another context the reserve: what
 * A's context needs beyond that has no room until a request goes. Before its RESUME, or after it.
 */
static void requests_took_it(struct swap_world *w, bool before)
{
	uint32_t a, b;

	stage(w, 1, 64 * GIB);
	w->config.config.detach = 1;
	swap_step(w, w->config);
	a = enter(w, (struct swap_workload){.size = GIB});
	measure(w, a, CONTEXT);
	until(w, 1);
	leaves(w, a);
	b = enter(w, (struct swap_workload){.request = 15 * GIB, .size = GIB});
	until(w, 3);
	if (before)
		measure(w, b, CONTEXT);
	w->refuses_places = SL_SWAP_DRIVER;
	person(w, SL_EVENT_WORKLOAD_RESUME, a);
	until(w, 3.011);
	if (!before)
		measure(w, b, CONTEXT);
	w->refuses_places = SL_SWAP_NO_CAUSE;
	until(w, 8);
	expect(client(w, a)->place == PLACE_AWAY &&
			view(w, a).residency ==
				(before ? SL_RESIDENCY_RESUMING : SL_RESIDENCY_EVICTED),
		"A is in place %u, state %u", (unsigned)client(w, a)->place,
		(unsigned)view(w, a).residency);
	swap_exit(w, b);
	until(w, 12);
	expect(view(w, a).residency == SL_RESIDENCY_BOUND, "A is in state %u",
		(unsigned)view(w, a).residency);
}

/* Meanwhile it keeps nothing from C. */
static void keeps_nothing(struct swap_world *w)
{
	uint32_t a, b, c;

	stage(w, 1, 64 * GIB);
	w->config.config.detach = 1;
	swap_step(w, w->config);
	a = enter(w, (struct swap_workload){.size = 4 * GIB});
	measure(w, a, CONTEXT);
	until(w, 1);
	leaves(w, a);
	b = enter(w, (struct swap_workload){.request = 15 * GIB, .size = GIB});
	until(w, 3);
	w->refuses_places = SL_SWAP_DRIVER;
	person(w, SL_EVENT_WORKLOAD_RESUME, a);
	until(w, 3.011);
	measure(w, b, CONTEXT);
	w->refuses_places = SL_SWAP_NO_CAUSE;
	until(w, 8);
	expect(client(w, a)->place == PLACE_AWAY, "A is in place %u",
		(unsigned)client(w, a)->place);
	c = enter(w, (struct swap_workload){.size = 12 * GIB});
	until(w, 15);
	expect(client(w, c)->resident[0] == 12 * GIB, "C waits behind A");
}

static void requests_are_taken(struct swap_world *w)
{
	requests_took_it(w, true);
}

static void requests_are_taken_late(struct swap_world *w)
{
	requests_took_it(w, false);
}

/* Both processes of A are away, and the reserve has room for one. The other waits until B is gone:
 * strangers have taken some of the GPU, and the host has no room for what B would have to give. */
static void reserve_pays_once(struct swap_world *w)
{
	uint32_t a, other, b;

	stage(w, 1, 64 * SL_MIB);
	w->config.config.detach = 1;
	w->config.config.slack_bytes = 0;
	swap_step(w, w->config);
	a = enter(w, (struct swap_workload){.size = 0});
	other = swap_world_client(w, client(w, a)->workload);
	measure(w, a, CONTEXT);
	measure(w, other, CONTEXT);
	until(w, 1);
	leaves(w, a);
	b = enter(w, (struct swap_workload){.request = GIB, .size = 59 * GIB / 4});
	until(w, 3);
	swap_step(
		w, (struct sl_event){.type = SL_EVENT_UNMANAGED, .unmanaged = {0, GIB}});
	person(w, SL_EVENT_WORKLOAD_RESUME, a);
	until(w, 4);
	expect(count(SL_ACTION_EVICT, w, b) == 0, "B was told to leave");
	expect(client(w, a)->place == PLACE_THERE &&
			client(w, other)->place == PLACE_AWAY,
		"they are in places %u and %u", (unsigned)client(w, a)->place,
		(unsigned)client(w, other)->place);
	swap_exit(w, b);
	until(w, 6);
	expect(client(w, other)->place == PLACE_THERE, "the other is in place %u",
		(unsigned)client(w, other)->place);
}

/* The daemon dies while A is away. Parked, it stays away; resumed, it comes back. */
static void is_found_away(struct swap_world *w)
{
	uint32_t a = begin(w);

	leaves(w, a);
	swap_restart(w);
	until(w, 8);
	expect(client(w, a)->place == PLACE_AWAY &&
			view(w, a).residency == SL_RESIDENCY_PARKED,
		"A is in place %u", (unsigned)client(w, a)->place);
	person(w, SL_EVENT_WORKLOAD_RESUME, a);
	until(w, 9);
	expect(view(w, a).residency == SL_RESIDENCY_BOUND, "A is in state %u",
		(unsigned)view(w, a).residency);
}

/* A process that is told to end may need its GPU for that. */
static void ends_away(struct swap_world *w)
{
	uint32_t a = begin(w);

	leaves(w, a);
	/* It does not call, and ends by itself. */
	swap_step(w,
		(struct sl_event){.type = SL_EVENT_WANT, .want = {client(w, a)->id, 0}});
	swap_step(w, (struct sl_event){.type = SL_EVENT_WORKLOAD_STOP,
			     .workload_stop = {
				     w->workload[client(w, a)->workload].id, 60 * SL_S}});
	expect(count(SL_ACTION_ATTACH, w, a) == 1, "A stays away");
}

/* Parked for lack of work, it asks to be resumed when it wants to run, and only then. */
static void calls(struct swap_world *w)
{
	uint32_t a = begin(w);
	uint64_t id = client(w, a)->id;

	swap_step(w,
		(struct sl_event){.type = SL_EVENT_WORKLOAD_PARK,
			.workload_park = {w->workload[client(w, a)->workload].id, 0, 1}});
	swap_step(w, (struct sl_event){.type = SL_EVENT_WANT, .want = {id, 1}});
	expect(how_many(SL_ACTION_CALLS, 0, 0) == 1, "it calls %u times",
		how_many(SL_ACTION_CALLS, 0, 0));
}

const struct swap_play swap_plays_places[] = {
	{"a parked process leaves its GPU and comes back", leaves_and_returns},
	{"its line breaks on its way back", loses_its_line},
	{"it refuses to leave", refuses},
	{"it bursts after it refused to leave", goes_after_refusals},
	{"it bursts after it was too busy to leave", goes_after_it_was_busy},
	{"it is resumed while it leaves", resumed_while_it_leaves},
	{"it holds memory", holds},
	{"another context took the reserve", reserve_is_taken},
	{"requests took the room of its context", requests_are_taken},
	{"requests took it after the resume", requests_are_taken_late},
	{"requests took it, and it keeps nothing from others", keeps_nothing},
	{"the reserve pays one of two", reserve_pays_once},
	{"the daemon died while it was away", is_found_away},
	{"it is stopped while it is away", ends_away},
	{"it was parked for lack of work", calls},
	{0},
};
