/*
 * plays - see the header
 */
#include "plays.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "stage.h"

/* --- the plays --- */

/* Two of 10 GiB: each runs half of the time, and only the memory that lacks is moved. */
static void equal_turns(struct swap_world *w)
{
	uint32_t a, b;
	sl_ns a0, b0;

	stage(w, 1, 64 * GIB);
	a = enter(w, (struct swap_workload){.size = 10 * GIB});
	b = enter(w, (struct swap_workload){.size = 10 * GIB});
	until(w, 10);
	a0 = swap_open(w, client(w, a));
	b0 = swap_open(w, client(w, b));
	until(w, 110);
	expect(share(w, a, a0, 100 * SL_S) > 0.44, "A ran %.3f of the time",
		share(w, a, a0, 100 * SL_S));
	expect(share(w, b, b0, 100 * SL_S) > 0.44, "B ran %.3f of the time",
		share(w, b, b0, 100 * SL_S));
	expect(how_many(SL_ACTION_NOTE, 0, SL_REASON_RESTORED) >= 45 &&
			how_many(SL_ACTION_NOTE, 0, SL_REASON_RESTORED) <= 55,
		"%u times back in 110 s of turns of 2 s",
		how_many(SL_ACTION_NOTE, 0, SL_REASON_RESTORED));
	for (uint32_t i = 0; i < played_count; i++)
		expect(played[i].type != SL_ACTION_EVICT || played[i].bytes <= 5 * GIB,
			"%" PRIu64 " bytes are evicted, 5 GiB were lacking",
			played[i].bytes);
	expect(!how_many(SL_ACTION_DENY, 0, 0), "a demand was denied");
}

/* Requests of 3 and 9 GiB: turns of 2 s and 6 s. */
static void weights(struct swap_world *w)
{
	uint32_t a, b;
	sl_ns a0, b0;
	double ratio;

	stage(w, 1, 64 * GIB);
	a = enter(w, (struct swap_workload){.request = 3 * GIB, .size = 10 * GIB});
	b = enter(w, (struct swap_workload){.request = 9 * GIB, .size = 10 * GIB});
	until(w, 20);
	a0 = swap_open(w, client(w, a));
	b0 = swap_open(w, client(w, b));
	until(w, 420);
	ratio = share(w, b, b0, SL_S) / share(w, a, a0, SL_S);
	expect(ratio > 2.8 && ratio < 3.2, "B ran %.2f times as long as A", ratio);
	expect(share(w, a, a0, 400 * SL_S) + share(w, b, b0, 400 * SL_S) > 0.94,
		"together they ran %.3f of the time",
		share(w, a, a0, 400 * SL_S) + share(w, b, b0, 400 * SL_S));
}

/* A server of higher priority pushes training out at once, and training is back once it is idle. */
static void inference(struct swap_world *w)
{
	uint32_t training, server, before;
	sl_ns open0, stood = 0, longest = 0;

	stage(w, 1, 64 * GIB);
	server = enter(w, (struct swap_workload){.shape = SWAP_SERVER,
				  .request = 5 * GIB,
				  .size = 10 * GIB,
				  .priority = 10,
				  .pieces = 2,
				  .pause = 4 * SL_S});
	training = enter(w, (struct swap_workload){.request = 5 * GIB, .size = 10 * GIB});
	until(w, 10);
	open0 = swap_open(w, client(w, training));
	before = how_many(SL_ACTION_RESTORE, 0, 0);
	for (sl_ns at = w->now; at < 111 * SL_S && !w->failed[0]; at += SL_MS) {
		swap_world_until(w, at);
		if (client(w, server)->thread != THREAD_STANDS)
			stood = 0;
		else if (!stood)
			stood = at;
		if (stood && at - stood > longest)
			longest = at - stood;
	}
	/* A piece of training, 5 GiB out, 5 GiB in: 110 ms. */
	expect(longest < 115 * SL_MS, "a request waited %" PRIu64 " ms",
		swap_ms(longest));
	expect(share(w, training, open0, 100 * SL_S) > 0.85,
		"training ran %.3f of the time", share(w, training, open0, 100 * SL_S));
	expect(how_many(SL_ACTION_RESTORE, 0, 0) - before > 40, "only %u restores",
		how_many(SL_ACTION_RESTORE, 0, 0) - before);
}

/* A server that never rests leaves training min_share of the time, and at most a few times that. */
static void min_share(struct swap_world *w)
{
	uint32_t training;
	sl_ns open0;
	double part;

	stage(w, 1, 64 * GIB);
	training = enter(w, (struct swap_workload){.request = 5 * GIB, .size = 10 * GIB});
	until(w, 5);
	(void)enter(w, (struct swap_workload){
			       .request = 5 * GIB, .size = 10 * GIB, .priority = 10});
	until(w, 60);
	open0 = swap_open(w, client(w, training));
	until(w, 1060);
	part = share(w, training, open0, 1000 * SL_S);
	expect(part > 0.04 && part < 0.08, "training ran %.3f of the time", part);
}

/* Four models of 10 GiB: no demand is denied, all run. */
static void four_models(struct swap_world *w)
{
	uint32_t slot[4];
	sl_ns open0[4];

	stage(w, 1, 64 * GIB);
	for (uint32_t i = 0; i < 4; i++)
		slot[i] = enter(
			w, (struct swap_workload){.request = 3 * GIB, .size = 10 * GIB});
	until(w, 60);
	for (uint32_t i = 0; i < 4; i++)
		open0[i] = swap_open(w, client(w, slot[i]));
	until(w, 260);
	for (uint32_t i = 0; i < 4; i++)
		expect(share(w, slot[i], open0[i], 200 * SL_S) > 0.2,
			"model %u ran %.3f of the time", i,
			share(w, slot[i], open0[i], 200 * SL_S));
	expect(!how_many(SL_ACTION_DENY, 0, 0), "a demand was denied");
}

/* The same, asked once a minute: in between none of them is left on the GPU, and all come back. */
static void four_warm_models(struct swap_world *w)
{
	uint32_t slot[4];

	stage(w, 1, 64 * GIB);
	for (uint32_t i = 0; i < 4; i++)
		slot[i] = enter(w, (struct swap_workload){.shape = SWAP_NOTEBOOK,
					   .request = 3 * GIB,
					   .size = 10 * GIB,
					   .pieces = 1,
					   .pause = 60 * SL_S,
					   .warm_after = 5 * SL_S});
	until(w, 50);
	for (uint32_t i = 0; i < 4; i++)
		expect(view(w, slot[i]).residency == SL_RESIDENCY_WARM &&
				client(w, slot[i])->evicted[0] == 10 * GIB,
			"model %u is in state %u", i,
			(unsigned)view(w, slot[i]).residency);
	until(w, 250);
	for (uint32_t i = 0; i < 4; i++)
		expect(view(w, slot[i]).turns >= 3, "model %u was back %" PRIu64 " times",
			i, view(w, slot[i]).turns);
	expect(how_many(SL_ACTION_NOTE, 0, SL_REASON_EVICTED_IDLE),
		"no model left by itself");
	expect(!how_many(SL_ACTION_DENY, 0, 0), "a demand was denied");
}

/* 1 GiB is lacking, 1 GiB goes. */
static void partial(struct swap_world *w)
{
	const struct played *l;
	uint32_t a;

	stage(w, 1, 64 * GIB);
	a = enter_idle(w, 10 * GIB);
	until(w, 5);
	(void)enter(w, (struct swap_workload){.size = 6 * GIB});
	until(w, 10);
	l = first_of(SL_ACTION_EVICT, 0);
	expect(l && l->client == client(w, a)->id && l->bytes == GIB,
		"evicted: %" PRIu64 " bytes", l ? l->bytes : 0);
	expect(how_many(SL_ACTION_EVICT, 0, 0) == 1, "%u evictions",
		how_many(SL_ACTION_EVICT, 0, 0));
	expect(view(w, a).residency == SL_RESIDENCY_PARTIAL, "A is in state %u",
		(unsigned)view(w, a).residency);
}

/* Parked: all out, the request is free for others; resumed: through the queue. */
static void park(struct swap_world *w)
{
	uint32_t a, b;

	stage(w, 1, 64 * GIB);
	a = enter(w, (struct swap_workload){.request = 10 * GIB, .size = 10 * GIB});
	until(w, 5);
	person(w, SL_EVENT_WORKLOAD_PARK, a);
	until(w, 6);
	expect(view(w, a).residency == SL_RESIDENCY_PARKED &&
			client(w, a)->evicted[0] == 10 * GIB,
		"parked: state %u, %" PRIu64 " on the host",
		(unsigned)view(w, a).residency, client(w, a)->evicted[0]);
	expect(view(w, a).request_bytes == 0 ||
			sl_node_gpu(w->node, 0).requests_bytes == 0,
		"its request is still claimed");
	b = enter(w, (struct swap_workload){.request = 9 * GIB, .size = 9 * GIB});
	until(w, 8);
	person(w, SL_EVENT_WORKLOAD_RESUME, a);
	until(w, 10);
	expect(view(w, a).residency == SL_RESIDENCY_RESUMING &&
			client(w, a)->evicted[0] == 10 * GIB,
		"to be resumed: state %u", (unsigned)view(w, a).residency);
	swap_remove(w, client(w, b)->workload);
	until(w, 12);
	expect(view(w, a).residency == SL_RESIDENCY_BOUND && client(w, a)->is_open,
		"resumed: state %u", (unsigned)view(w, a).residency);
}

/* The pool has no room: said, and left to the next resolver. */
static void pool_full(struct swap_world *w)
{
	uint32_t a, b;

	stage(w, 1, 2 * GIB);
	a = enter_idle(w, 10 * GIB);
	until(w, 5);
	b = enter(w, (struct swap_workload){.size = 10 * GIB});
	until(w, 30);
	expect(!how_many(SL_ACTION_EVICT, 0, 0), "A was evicted");
	expect(how_many(SL_ACTION_NOTE, 0, SL_REASON_POOL_FULL) >= 1,
		"no note says that the pool is full");
	expect(how_many(SL_ACTION_DENY, client(w, b)->id, SL_REASON_WAITED_TOO_LONG) == 1,
		"B was not denied after the longest wait");
	expect(client(w, a)->is_open, "A is suspended");
	person(w, SL_EVENT_WORKLOAD_PARK, a);
	until(w, 31);
	expect(how_many(SL_ACTION_REFUSE, 0, SL_REASON_PARK_NO_POOL) == 1,
		"A is parked without room for it");
}

/* A and B were moved for C: when it ends, B, of higher priority, comes back first, though A waits
 * for longer. */
static void priority_first(struct swap_world *w)
{
	const struct played *back = NULL;
	uint32_t b, c;

	stage(w, 1, 64 * GIB);
	(void)enter(w, (struct swap_workload){.size = 10 * GIB});
	until(w, 2);
	b = enter(w, (struct swap_workload){.size = 10 * GIB, .priority = 1});
	until(w, 4);
	c = enter(w, (struct swap_workload){.size = 10 * GIB, .priority = 5});
	until(w, 8);
	expect(!client(w, b)->is_open, "B was not moved for C");
	swap_remove(w, client(w, c)->workload);
	until(w, 10);
	for (uint32_t i = 0; i < played_count && !back; i++) {
		if (played[i].type == SL_ACTION_RESTORE && played[i].at >= 8 * SL_S)
			back = &played[i];
	}
	expect(back && back->client == client(w, b)->id, "B did not come back first");
}

/* A kernel that never ends: asked again, less and less often, and then the last resort. */
static void undrainable(struct swap_world *w)
{
	const struct played *denied;
	uint32_t a, b, asked;

	stage(w, 1, 64 * GIB);
	a = enter(w, (struct swap_workload){.size = 12 * GIB});
	until(w, 5);
	client(w, a)->endless = true;
	client(w, a)->busy_until = SL_NS_NEVER;
	b = enter(w, (struct swap_workload){.request = 10 * GIB, .size = 10 * GIB});
	until(w, 60);
	asked = how_many(SL_ACTION_EVICT, client(w, a)->id, 0);
	denied = first_of(SL_ACTION_DENY, client(w, b)->id);
	expect(asked >= 3 && asked <= 14, "A was asked %u times", asked);
	expect(denied && denied->reason == SL_REASON_UNTAKEABLE,
		"B's demand was not failed as untakeable");
	expect(denied && denied->at > 30 * SL_S, "B was denied too early");
}

/* A stopped process answers no order: it is not counted on, and the last resort comes as always. */
static void stopped(struct swap_world *w)
{
	const struct played *denied;
	uint32_t a, b;

	stage(w, 1, 64 * GIB);
	a = enter(w, (struct swap_workload){.size = 12 * GIB});
	until(w, 5);
	client(w, a)->condition = SL_CONDITION_STOPPED;
	b = enter(w, (struct swap_workload){.request = 10 * GIB, .size = 10 * GIB});
	until(w, 6);
	expect(how_many(SL_ACTION_EVICT, client(w, a)->id, 0) == 1, "A was not asked");
	swap_step(w, (struct sl_event){.type = SL_EVENT_CONDITION,
			     .condition = {client(w, a)->id, SL_CONDITION_STOPPED}});
	until(w, 60);
	denied = first_of(SL_ACTION_DENY, client(w, b)->id);
	expect(denied && denied->reason == SL_REASON_UNTAKEABLE,
		"B's demand was not failed as untakeable");
	expect(denied && denied->at > 30 * SL_S, "B was denied too early");
}

/* Idle for warm_after: all of it goes to the host; it returns with the next work. */
static void warm(struct swap_world *w)
{
	uint32_t a;

	stage(w, 1, 64 * GIB);
	a = enter(w, (struct swap_workload){.shape = SWAP_NOTEBOOK,
			     .request = 4 * GIB,
			     .size = 4 * GIB,
			     .pieces = 1,
			     .pause = 20 * SL_S,
			     .warm_after = 5 * SL_S});
	until(w, 4);
	expect(view(w, a).residency == SL_RESIDENCY_BOUND, "A left too early");
	until(w, 15);
	expect(view(w, a).residency == SL_RESIDENCY_WARM &&
			client(w, a)->evicted[0] == 4 * GIB,
		"A is in state %u", (unsigned)view(w, a).residency);
	expect(sl_node_gpu(w->node, 0).requests_bytes == 4 * GIB, "A lost its request");
	until(w, 20.5);
	expect(view(w, a).residency == SL_RESIDENCY_BOUND && client(w, a)->is_open,
		"A did not come back");
}

/* On two GPUs with one neighbour on each: on both or on none, and all get on. */
static void joined(struct swap_world *w)
{
	uint32_t slot[3];
	sl_ns open0[3];

	stage(w, 2, 128 * GIB);
	for (uint32_t i = 0; i < 3; i++) {
		slot[i] = enter(
			w, (struct swap_workload){.size = 10 * GIB, .mask = i ? 1 : 2});
	}
	until(w, 60);
	for (uint32_t i = 0; i < 3; i++)
		open0[i] = swap_open(w, client(w, slot[i]));
	until(w, 260);
	for (uint32_t i = 0; i < 3; i++)
		expect(share(w, slot[i], open0[i], 200 * SL_S) > 0.25,
			"workload %u ran %.3f of the time", i,
			share(w, slot[i], open0[i], 200 * SL_S));
}

static const struct swap_play plays[] = {
	{"two equal models take turns", equal_turns},
	{"shares follow requests", weights, true},
	{"inference over training", inference},
	{"training keeps its least share", min_share, true},
	{"four models of 10 GiB", four_models, true},
	{"four warm models of 10 GiB", four_warm_models},
	{"only what is lacking is evicted", partial},
	{"park and resume", park},
	{"a full pool", pool_full},
	{"higher priority comes back first", priority_first},
	{"a kernel that does not end", undrainable},
	{"a process that is stopped", stopped},
	{"warm", warm},
	{"a workload on two GPUs", joined, true},
	{0},
};

static void print_lines(void)
{
	for (uint32_t i = 0; i < played_count && i < 60; i++)
		printf("  %10.3f s  %-8s client %" PRIu64 " %" PRIu64 " MiB %s\n",
			(double)played[i].at / 1e9, sl_action_name(played[i].type),
			played[i].client, (uint64_t)(played[i].bytes / SL_MIB),
			played[i].reason ? sl_reason_name((uint32_t)played[i].reason)
					 : "");
}

/* The file has this line; NULL has none. */
static bool names(FILE *list, const char *name)
{
	char line[120];

	if (!list)
		return false;
	rewind(list);
	while (fgets(line, sizeof(line), list)) {
		line[strcspn(line, "\n")] = '\0';
		if (strcmp(line, name) == 0)
			return true;
	}
	return false;
}

/* One of them; false: the result is not as expected. */
static bool run(
	struct swap_world *w, const struct swap_play *play, bool quiet, FILE *list)
{
	bool is_otherwise = names(list, play->name);

	wrong[0] = '\0';
	play->play(w);
	/* A world in which a promise broke stands still: nothing else is as expected then. */
	if (w->failed[0])
		wrong[0] = '\0';
	expect(!w->failed[0], "%s", w->failed);
	if (wrong[0] && !quiet && !is_otherwise) {
		print_lines();
		sl_trace_print(&w->trace, stdout);
		swap_rules_print(&w->rules, stdout);
	}
	if (!quiet || wrong[0])
		printf("swap scene '%s': %s\n", play->name,
			wrong[0] ? wrong : "as expected");
	swap_world_fini(w);
	if (is_otherwise && !wrong[0])
		printf("'%s' is on the list of those that come out otherwise\n",
			play->name);
	return is_otherwise == (wrong[0] != '\0');
}

bool swap_scenes_run(struct swap_world *w, bool quiet, const char *otherwise)
{
	FILE *list = otherwise ? fopen(otherwise, "r") : NULL;
	const struct swap_play *const more[] = {plays, swap_plays_order,
		swap_plays_victims, swap_plays_returns, swap_plays_shares,
		swap_plays_leaving, swap_plays_host, swap_plays_growing,
		swap_plays_places, swap_plays_moves, swap_plays_kept};
	bool all = !otherwise || list;

	if (!all)
		printf("swap scenes: no file %s\n", otherwise);
	/* The long ones last. */
	for (uint32_t i = 0; i < 2 * SL_ARRAY_LEN(more) && (all || !quiet); i++) {
		bool is_long = i >= SL_ARRAY_LEN(more);

		for (const struct swap_play *play = more[i % SL_ARRAY_LEN(more)];
			play->name; play++) {
			if (play->is_long == is_long)
				all &= run(w, play, quiet, list);
			if (!all && quiet)
				break;
		}
	}
	if (list)
		fclose(list);
	return all;
}
