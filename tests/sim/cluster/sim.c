/*
 * sim - the cluster machine in a world that changes at random, judged by accounts of its own
 *
 *   cluster-sim [--events N] [--seed N] [--quiet] [--trace] [--mutant NAME]
 *
 * Worlds of a few nodes, a tree of projects and some dozens of jobs, one after the other, until N
 * events have been sent. Every so often the world falls silent. Then the machine must come to rest
 * within a bounded number of cycles, and at rest no job may wait for its project's guarantee. Exit
 * status 1: a rule broke; the seed and the number of the step are printed.
 */
#include "scenes.h"
#include "world.h"
#include "../common/mutants.h"
#include "../common/options.h"

#include <stdio.h>
#include <string.h>

#define STEPS_OF_WORLD  400
#define STEPS_TO_SETTLE 100

struct sums {
	uint64_t events, worlds, cycles, binds, stops, moves, settled;
	uint64_t parks, ends, given_up, foretold, late, taken_back;
	uint64_t kept, asked, spread;
};

static bool play(uint64_t seed, bool trace, bool quiet, struct sums *sums)
{
	static struct cw w;
	uint32_t step = 0;
	bool fine;

	cw_init(&w, seed);
	w.trace = trace;
	for (; step < STEPS_OF_WORLD && !w.broken[0]; step++) {
		cw_step(&w);
		if (step % STEPS_TO_SETTLE == STEPS_TO_SETTLE - 1)
			cw_settle(&w);
	}
	fine = !w.broken[0];
	if (!fine && trace)
		cw_dump(&w);
	if (!fine && !quiet)
		printf("cluster-sim: seed %lu, step %u: %s\n", (unsigned long)seed, step,
			w.broken);
	sums->events += w.events;
	sums->worlds++;
	sums->cycles += w.cycles;
	sums->binds += w.binds;
	sums->stops += w.stops;
	sums->moves += w.moves;
	sums->settled += w.settled;
	sums->parks += w.parks;
	sums->ends += w.ends;
	sums->given_up += w.given_up;
	sums->foretold += w.foretold;
	sums->late += w.late;
	sums->taken_back += w.taken_back;
	sums->kept += w.moved;
	sums->asked += w.asked_moves;
	sums->spread += w.spread;
	cw_fini(&w);
	return fine;
}

static int usage(void)
{
	fprintf(stderr, "usage: cluster-sim [--events N] [--seed N] [--quiet] [--trace] "
			"[--mutant NAME]\n");
	return 2;
}

int main(int argc, char **argv)
{
	uint64_t events = 100000, seed = sim_some_seed();
	bool quiet = false, trace = false;
	struct sums sums = {0};
	const char *wrong;

	for (int i = 1; i < argc; i++) {
		bool more = i + 1 < argc;

		if (!strcmp(argv[i], "--events") && more) {
			if (!sim_read_number(argv[++i], &events) || !events)
				return usage();
		} else if (!strcmp(argv[i], "--seed") && more) {
			if (!sim_read_number(argv[++i], &seed))
				return usage();
		} else if (!strcmp(argv[i], "--quiet"))
			quiet = true;
		else if (!strcmp(argv[i], "--trace"))
			trace = true;
		else if (!strcmp(argv[i], "--mutant") && more) {
			if (!sl_mutant_can_switch())
				return sim_hand_over("cluster-sim", argv);
			if (!sl_mutant_switch(argv[++i])) {
				fprintf(stderr, "cluster-sim: there is no fault %s\n",
					argv[i]);
				return 2;
			}
		} else
			return usage();
	}
	wrong = cw_scenes();
	if (wrong) {
		printf("cluster-sim: %s\n", wrong);
		return 1;
	}
	while (sums.events < events) {
		if (!play(seed++, trace, quiet, &sums))
			return 1;
	}
	if (!quiet)
		printf("cluster-sim: %lu events in %lu worlds, %lu cycles; %lu tasks "
		       "bound, %lu "
		       "stopped, of these %lu moved (%lu of them parked meanwhile, %lu "
		       "to "
		       "spread, %lu by users), %lu parked, %lu terminated; %lu parked "
		       "ones "
		       "given up; %lu were late, of these %lu parks taken back; %lu "
		       "forecasts; came to rest %lu times\n",
			(unsigned long)sums.events, (unsigned long)sums.worlds,
			(unsigned long)sums.cycles, (unsigned long)sums.binds,
			(unsigned long)sums.stops, (unsigned long)sums.moves,
			(unsigned long)(sums.kept + sums.asked),
			(unsigned long)sums.spread, (unsigned long)sums.asked,
			(unsigned long)sums.parks, (unsigned long)sums.ends,
			(unsigned long)sums.given_up, (unsigned long)sums.late,
			(unsigned long)sums.taken_back, (unsigned long)sums.foretold,
			(unsigned long)sums.settled);
	return 0;
}
