/*
 * swap-sim - runs the rules of swapping in virtual time against modelled programs, from a printed
 * seed
 *
 *   swap-sim [--events N] [--seed S] [--mood NAME] [--chain NAME] [--print FROM]
 *            [--scenes [--otherwise FILE]] [--quiet] [--mutant NAME]
 *
 * --scenes: the plays with exact expectations (plays.c) instead; those that FILE names, a
 * line each, must come out otherwise. Exit status 0: all rules
 * held; 1: one broke (seed, event, trace and accounts are printed); 2: bad usage. --mutant is for
 * the build with faults in it (swap-sim-mutant); the ordinary program hands over to that one.
 * A failure is played again by its seed, with at least as many events; --print: with the accounts
 * before event FROM, and all events and actions from there on.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../common/mutants.h"
#include "../common/options.h"
#include "plays.h"
#include "world.h"

static struct swap_world world;

static void print_stats(uint64_t seed, double seconds)
{
	const struct swap_stats *s = &world.stats;

	printf("swap-sim: %" PRIu64 " events, seed %" PRIu64 ", %.1f s: all rules held\n",
		s->events, seed, seconds);
	printf("  %" PRIu64 " episodes, %" PRIu64 " daemon restarts, %" PRIu64
	       " grants, %" PRIu64 " evictions, %" PRIu64 " restores, %" PRIu64
	       " aborts, %" PRIu64 " trims, %" PRIu64 " stops, %" PRIu64
	       " kills, %" PRIu64 " GiB moved\n",
		s->episodes, s->restarts, s->grants, s->evicts, s->restores, s->aborts,
		s->trims, s->stops, s->kills, (uint64_t)(s->moved_bytes / SL_GIB));
	printf("  orders: %" PRIu64 " done, %" PRIu64 " in part, %" PRIu64
	       " refused; %" PRIu64 " wants; clients waited on the host after %.0f %% "
	       "of the events; shares due in %" PRIu64 " windows\n",
		s->done[SL_SWAP_OK], s->done[SL_SWAP_PART], s->done[SL_SWAP_REFUSED],
		s->wants, 100.0 * (double)s->waited_after / (double)s->events,
		s->windows);
	printf("  processes off their GPUs %" PRIu64 ", back %" PRIu64
	       ", refused %" PRIu64 "; moves to other GPUs %" PRIu64 "\n",
		s->placed[0], s->placed[1], s->placed[2], s->moves);
	printf("  moved %" PRIu64 " MiB for others, %" PRIu64 " were needed at least\n",
		(uint64_t)(world.rules.moved / SL_MIB),
		(uint64_t)(world.rules.needed / SL_MIB));
	sim_print_counts("denied", 7, s->denies);
	sim_print_counts("noted", 7, s->notes);
}

static int usage(void)
{
	fputs("usage: swap-sim [--events N] [--seed S] [--mood NAME] [--chain NAME]"
	      " [--print FROM] [--scenes [--otherwise FILE]] [--quiet] [--mutant NAME]\n",
		stderr);
	return 2;
}

static bool read_mood(const char *text)
{
	static const char *const names[] = {
#define X(NAME, weight, text) #NAME,
		SWAP_MOODS(X)
#undef X
	};

	for (uint32_t i = 0; i < SL_ARRAY_LEN(names); i++) {
		if (strcmp(names[i], text) == 0)
			world.forced_mood = i + 1;
	}
	return world.forced_mood;
}

static bool read_chain(const char *text)
{
	static const char *const names[] = {
#define X(NAME, weight, turns, chain) #NAME,
		SWAP_CHAINS(X)
#undef X
	};

	for (uint32_t i = 0; i < SL_ARRAY_LEN(names); i++) {
		if (strcmp(names[i], text) == 0)
			world.forced_chain = i + 1;
	}
	return world.forced_chain;
}

static void print_because(void *context, const struct sl_node_because *b)
{
	(void)context;
	printf("why %" PRIu64 ": %s gpu=%u client=%" PRIu64 " other=%" PRIu64
	       " bytes=%" PRIu64 " available=%" PRIu64 " span=%" PRIu64 " ms\n",
		b->workload, sl_reason_name(b->reason), b->gpu, b->client, b->other,
		b->bytes, b->available_bytes, swap_ms(b->span));
}

/* The node's own count of waiting clients: no judge asks it. */
static void print_why(void)
{
	for (uint32_t i = 0; i < SWAP_WORKLOADS; i++) {
		if (world.workload[i].used)
			sl_node_why(
				world.node, world.workload[i].id, print_because, NULL);
	}
}

static int run(uint64_t seed, uint64_t events, bool quiet)
{
	sl_ns begin = sl_clock_now();
	uint64_t mood = world.forced_mood, chain = world.forced_chain,
		 print_from = world.print_from;
	bool held;

	if (!quiet)
		printf("swap-sim: seed %" PRIu64 "\n", seed);
	swap_world_init(&world, seed);
	world.forced_mood = mood;
	world.forced_chain = chain;
	world.print_from = print_from;
	held = swap_world_run(&world, events);
	if (!held) {
		if (!quiet) {
			sl_trace_print(&world.trace, stdout);
			swap_rules_print(&world.rules, stdout);
			print_why();
		}
		printf("swap-sim: seed %" PRIu64 ", event %" PRIu64 ": %s\n", seed,
			world.stats.events, world.failed);
	} else if (!quiet) {
		print_stats(seed, (double)(sl_clock_now() - begin) / 1e9);
	}
	swap_world_fini(&world);
	return held ? 0 : 1;
}

int main(int argc, char **argv)
{
	uint64_t events = 1000000, seed = sim_some_seed();
	bool quiet = false, scenes = false;
	const char *otherwise = NULL;

	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (strcmp(argv[i], "--quiet") == 0) {
			quiet = true;
			continue;
		}
		if (strcmp(argv[i], "--scenes") == 0) {
			scenes = true;
			continue;
		}
		if (!value)
			return usage();
		i++;
		if (strcmp(argv[i - 1], "--mutant") == 0) {
			if (!sl_mutant_can_switch())
				return sim_hand_over("swap-sim", argv);
			if (!sl_mutant_switch(value)) {
				fprintf(stderr, "swap-sim: no mutant is called %s\n",
					value);
				return 2;
			}
		} else if (strcmp(argv[i - 1], "--events") == 0) {
			if (!sim_read_number(value, &events))
				return usage();
		} else if (strcmp(argv[i - 1], "--seed") == 0) {
			if (!sim_read_number(value, &seed))
				return usage();
		} else if (strcmp(argv[i - 1], "--print") == 0) {
			if (!sim_read_number(value, &world.print_from))
				return usage();
		} else if (strcmp(argv[i - 1], "--otherwise") == 0) {
			otherwise = value;
		} else if (strcmp(argv[i - 1], "--chain") == 0) {
			if (!read_chain(value))
				return usage();
		} else if (strcmp(argv[i - 1], "--mood") != 0 || !read_mood(value)) {
			return usage();
		}
	}
	if (scenes)
		return swap_scenes_run(&world, quiet, otherwise) ? 0 : 1;
	return run(seed, events, quiet);
}
