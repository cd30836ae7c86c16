/*
 * guarantee - see the header
 *
 * The counts of all mixes lie in memory that the processes share; each writes only its own.
 */
#include "guarantee.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "world.h"

#define PROCESSES 2
#define SHOWN     5 /* bad mixes, per process */

struct tally {            /* of one process */
	uint64_t running; /* seed of the mix it plays */
	uint64_t mixes, held, events;
	struct shadow_outcomes outcomes;
	uint32_t bad;
	struct {
		uint64_t seed, event;
		char why[600];
	} worst[SHOWN];
};

static void add_outcomes(struct shadow_outcomes *sum, const struct shadow_outcomes *add)
{
	sum->demands += add->demands;
	sum->granted += add->granted;
	sum->fell += add->fell;
	sum->died += add->died;
	sum->wait += add->wait;
	for (uint32_t i = 0; i < SL_REASONS; i++)
		sum->denied[i] += add->denied[i];
}

static void run_mix(struct tally *tally, struct world *world, uint64_t seed, bool trace)
{
	struct shadow_outcomes outcomes;
	bool held;

	tally->running = seed;
	world_init(world, seed, 0);
	held = world_run_mix(world);
	outcomes = shadow_outcomes(&world->shadow);
	tally->mixes++;
	tally->held += held;
	tally->events += world->stats.events;
	add_outcomes(&tally->outcomes, &world->outcomes);
	add_outcomes(&tally->outcomes, &outcomes);
	if (!held && trace) {
		sl_trace_print(&world->trace, stdout);
		shadow_print(&world->shadow, stdout);
	}
	if (!held && tally->bad < SHOWN) {
		tally->worst[tally->bad].seed = seed;
		tally->worst[tally->bad].event = world->stats.events;
		memcpy(tally->worst[tally->bad].why, world->failed,
			sizeof(world->failed));
		tally->bad++;
	}
	world_fini(world);
}

static void run_share(
	struct tally *tally, uint64_t mixes, uint64_t seed, uint32_t which, bool trace)
{
	static struct world world;

	for (uint64_t i = which; i < mixes; i += PROCESSES)
		run_mix(tally, &world, seed + i, trace);
}

/* One that does not come back has not held: its mixes stay uncounted. */
static void run_all(struct tally *tally, uint64_t mixes, uint64_t seed)
{
	pid_t child[PROCESSES];

	if (mixes == 1) { /* to be looked at: with its trace */
		run_share(tally, 1, seed, 0, true);
		return;
	}
	(void)fflush(NULL);
	for (uint32_t i = 0; i < PROCESSES; i++) {
		child[i] = fork();
		if (child[i] != 0)
			continue;
		run_share(&tally[i], mixes, seed, i, false);
		_exit(0);
	}
	for (uint32_t i = 0; i < PROCESSES; i++) {
		int status = 0;

		if (child[i] > 0 && waitpid(child[i], &status, 0) == child[i] &&
			status == 0)
			continue;
		printf("sim: the process that played the mix of seed %" PRIu64
		       " ended with status %d (sim --guarantee 1 --seed %" PRIu64 ")\n",
			tally[i].running, status, tally[i].running);
	}
}

static uint64_t print_denied(const struct shadow_outcomes *o)
{
	uint64_t wrong = 0, denied = 0;

	for (uint32_t i = 0; i < SL_REASONS; i++) {
		if (i == SL_REASON_CANCELLED)
			continue; /* its process ended */
		denied += o->denied[i];
		if (sl_reason_kind(i) != SL_REASON_KIND_EXCEPT)
			wrong += o->denied[i];
	}
	printf(", %" PRIu64 " denied, each by an exception of promise 2:", denied);
	for (uint32_t i = 0; i < SL_REASONS; i++) {
		/* UNKNOWN_CLIENT names no client's demand, so it is never one of these. */
		if (i == SL_REASON_UNKNOWN_CLIENT || i == SL_REASON_CANCELLED)
			continue;
		if (o->denied[i] || sl_reason_kind(i) == SL_REASON_KIND_EXCEPT)
			printf(" %s %" PRIu64, sl_reason_name(i), o->denied[i]);
	}
	return wrong;
}

static bool print_row(const struct tally *sum, uint64_t mixes)
{
	const struct shadow_outcomes *o = &sum->outcomes;
	uint64_t wrong;

	printf("%" PRIu64 " of %" PRIu64 " mixes: %" PRIu64 " entitled demands, %" PRIu64
	       " granted",
		sum->held, mixes, o->demands, o->granted);
	wrong = print_denied(o) + (mixes - sum->held);
	printf("; %" PRIu64 " ended with their process, %" PRIu64
	       " left the request while they waited, %" PRIu64
	       " wait at the end of their mix; %" PRIu64 " wrong\n",
		o->died, o->fell, o->wait, wrong);
	return wrong == 0;
}

bool sl_guarantee_run(uint64_t mixes, uint64_t seed, bool quiet)
{
	struct tally *tally = mmap(NULL, PROCESSES * sizeof(*tally),
		PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct tally sum = {0};
	bool held;

	if (tally == MAP_FAILED) {
		fprintf(stderr, "sim: no memory to count in\n");
		return false;
	}
	run_all(tally, mixes, seed);
	for (uint32_t i = 0; i < PROCESSES; i++) {
		sum.mixes += tally[i].mixes;
		sum.held += tally[i].held;
		sum.events += tally[i].events;
		add_outcomes(&sum.outcomes, &tally[i].outcomes);
		for (uint32_t k = 0; k < tally[i].bad; k++)
			printf("sim: mix of seed %" PRIu64 ", event %" PRIu64 ": %s"
			       " (sim --guarantee 1 --seed %" PRIu64 ")\n",
				tally[i].worst[k].seed, tally[i].worst[k].event,
				tally[i].worst[k].why, tally[i].worst[k].seed);
	}
	if (!quiet)
		printf("sim: %" PRIu64 " events, seeds from %" PRIu64 "\n", sum.events,
			seed);
	held = print_row(&sum, mixes);
	(void)munmap(tally, PROCESSES * sizeof(*tally));
	return held;
}
