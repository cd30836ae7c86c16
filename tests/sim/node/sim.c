/*
 * sim - runs the policy in virtual time against modelled programs, from a printed seed
 *
 *   sim [--events N] [--seed S] [--gpus N] [--quiet] [--mutant NAME] [--list-mutants]
 *   sim --guarantee MIXES [--seed S]: what becomes of demands within the request (guarantee.h)
 *
 * Exit status: 0 all rules held; 1 one broke (seed, event, trace and reason are printed);
 * 2 bad usage. --mutant is for the build with faults in it (sim-mutant); the ordinary program
 * hands over to that one, which lies beside it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "guarantee.h"
#include "../common/mutants.h"
#include "../common/options.h"
#include "world.h"

static struct world world;

static void print_stats(uint64_t seed, double seconds)
{
	const struct world_stats *s = &world.stats;

	printf("sim: %" PRIu64 " events, seed %" PRIu64 ", %.1f s: all rules held\n",
		s->events, seed, seconds);
	printf("  %" PRIu64 " grants, %" PRIu64 " workloads admitted, %" PRIu64
	       " episodes, %" PRIu64 " daemon restarts\n",
		s->grants, s->admitted, s->episodes, s->restarts);
	printf("  demands waited after %.0f %% of the events, at most %u at once; books "
	       "<= %zu KiB\n",
		100.0 * (double)s->waited / (double)s->events, s->most_waiting,
		s->most_arena_bytes / 1024);
	sim_print_counts("denied", 9, s->denies);
	sim_print_counts("refused", 9, s->refusals);
	sim_print_counts("noted", 9, s->notes);
}

static int usage(void)
{
	fputs("usage: sim [--events N] [--seed S] [--gpus N] [--guarantee MIXES]"
	      " [--quiet] [--mutant NAME] [--list-mutants]\n",
		stderr);
	return 2;
}

int main(int argc, char **argv)
{
	uint64_t events = 1000000, seed = sim_some_seed(), gpus = 0, mixes = 0;
	uint64_t *number;
	bool quiet = false, held;
	sl_ns begin = sl_clock_now();

	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (strcmp(argv[i], "--quiet") == 0) {
			quiet = true;
			continue;
		}
		if (strcmp(argv[i], "--list-mutants") == 0) {
			sl_mutant_list(stdout);
			return 0;
		}
		if (!value)
			return usage();
		i++;
		number = strcmp(argv[i - 1], "--events") == 0      ? &events
			 : strcmp(argv[i - 1], "--seed") == 0      ? &seed
			 : strcmp(argv[i - 1], "--gpus") == 0      ? &gpus
			 : strcmp(argv[i - 1], "--guarantee") == 0 ? &mixes
								   : NULL;
		if (number) {
			if (!sim_read_number(value, number)) {
				fprintf(stderr, "sim: %s wants a number, not '%s'\n",
					argv[i - 1], value);
				return 2;
			}
		} else if (strcmp(argv[i - 1], "--mutant") != 0)
			return usage();
		else if (!sl_mutant_can_switch())
			return sim_hand_over("sim", argv);
		else if (!sl_mutant_switch(value)) {
			fprintf(stderr, "sim: no mutant is called %s\n", value);
			return 2;
		}
	}
	if (!quiet)
		printf("sim: seed %" PRIu64 "\n", seed);
	if (mixes)
		return sl_guarantee_run(mixes, seed, quiet) ? 0 : 1;
	world_init(&world, seed, (uint32_t)gpus);
	held = world_run(&world, events);
	if (!held) {
		if (!quiet) {
			sl_trace_print(&world.trace, stdout);
			shadow_print(&world.shadow, stdout);
		}
		printf("sim: seed %" PRIu64 ", event %" PRIu64 ": %s\n", seed,
			world.stats.events, world.failed);
	} else if (!quiet) {
		print_stats(seed, (double)(sl_clock_now() - begin) / 1e9);
	}
	world_fini(&world);
	return held ? 0 : 1;
}
