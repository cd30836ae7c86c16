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
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "guarantee.h"
#include "mutants.h"
#include "world.h"

static struct world world;

static void print_counts(const char *title, const uint64_t count[SL_REASONS])
{
	printf("  %-9s", title);
	for (uint32_t i = 0; i < SL_REASONS; i++) {
		if (count[i])
			printf(" %s %" PRIu64, sl_reason_name(i), count[i]);
	}
	putchar('\n');
}

static void print_stats(uint64_t seed, double seconds)
{
	const struct world_stats *s = &world.stats;

	printf("sim: %" PRIu64 " events, seed %" PRIu64 ", %.1f s: all rules held\n",
		s->events, seed, seconds);
	printf("  %" PRIu64 " grants, %" PRIu64 " workloads admitted, %" PRIu64
	       " episodes, %" PRIu64 " daemon restarts\n",
		s->grants, s->admitted, s->episodes, s->restarts);
	printf("  somebody waited after %.0f %% of the events, at most %u at once; books "
	       "<= %zu KiB\n",
		100.0 * (double)s->waited / (double)s->events, s->most_waiting,
		s->most_arena_bytes / 1024);
	print_counts("denied", s->denies);
	print_counts("refused", s->refusals);
	print_counts("noted", s->notes);
}

/* The program with the faults in it lies beside this one. */
static int hand_over(char **argv)
{
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - sizeof("-mutant"));

	if (len < 0)
		return 2;
	(void)strcpy(path + len, "-mutant");
	execv(path, argv);
	fprintf(stderr, "sim: %s is not built\n", path);
	return 2;
}

static int usage(void)
{
	fputs("usage: sim [--events N] [--seed S] [--gpus N] [--guarantee MIXES]"
	      " [--quiet] [--mutant NAME] [--list-mutants]\n",
		stderr);
	return 2;
}

static uint64_t some_seed(void)
{
	return (sl_clock_now() ^ ((uint64_t)getpid() << 32)) % 1000000007;
}

/* Junk is refused: a run of no events holds every rule. */
static bool read_number(const char *text, uint64_t *out)
{
	char *end = NULL;

	*out = strtoull(text, &end, 0);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0';
}

int main(int argc, char **argv)
{
	uint64_t events = 1000000, seed = some_seed(), gpus = 0, mixes = 0;
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
			if (!read_number(value, number)) {
				fprintf(stderr, "sim: %s wants a number, not '%s'\n",
					argv[i - 1], value);
				return 2;
			}
		} else if (strcmp(argv[i - 1], "--mutant") != 0)
			return usage();
		else if (!sl_mutant_can_switch())
			return hand_over(argv);
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
