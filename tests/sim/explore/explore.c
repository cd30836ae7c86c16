/*
 * explore - every order of events in small worlds, against the real node machine
 *
 *   explore [--world NAME] [--depth N] [--seconds S] [--merge view|close] [--no-symmetry]
 *           [--known FILE] [--mutant NAME]
 *   explore --world NAME --replay "HISTORY" | --list | --self-test FILE
 *
 * Prints for each world the states, the depth, and the shortest history to each promise that broke.
 * Exit status 0: all promises held, or broke only where FILE says so; 1: one broke, or one in FILE
 * does not break any more; 2: bad usage. FILE (known): a line "WORLD PROMISE HISTORY" each.
 * --seconds: for all worlds together. --self-test: breaks the machine on purpose, fault by fault
 * (sim/common/mutants.def), and says which faults are found; for the build explore-mutant.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search.h"
#include "../common/mutants.h"
#include "../common/options.h"

#define KNOWN_MOST 64

struct known {
	const struct explore_world *world;
	enum explore_promise promise;
	char history[EXPLORE_HISTORY];
};

static struct known known[KNOWN_MOST];
static uint32_t known_count;

static struct explore_result result;

/* --- the list of known breaks --- */

static const struct explore_world *world_named(const char *name)
{
	for (uint32_t i = 0; i < explore_worlds_count; i++) {
		if (strcmp(explore_worlds[i].name, name) == 0)
			return &explore_worlds[i];
	}
	return NULL;
}

static bool is_known(const struct explore_world *world, enum explore_promise promise)
{
	for (uint32_t i = 0; i < known_count; i++) {
		if (known[i].world == world && known[i].promise == promise)
			return true;
	}
	return false;
}

static bool read_line(const char *path, const char *line)
{
	struct known *k = &known[known_count];
	char world[32], promise[32];

	if (*line == '#' || *line == '\n')
		return true;
	if (known_count == KNOWN_MOST ||
		sscanf(line, "%31s %31s %511[^\n]", world, promise, k->history) != 3) {
		fprintf(stderr, "explore: %s: not WORLD PROMISE HISTORY: %s", path, line);
		return false;
	}
	k->world = world_named(world);
	k->promise = explore_promise_named(promise);
	if (!k->world || !k->promise) {
		fprintf(stderr, "explore: %s: no world or promise: %s", path, line);
		return false;
	}
	known_count++;
	return true;
}

static bool read_known(const char *path)
{
	FILE *in = fopen(path, "re");
	char line[EXPLORE_HISTORY + 80];
	bool good = in != NULL;

	if (!in)
		perror(path);
	while (good && fgets(line, sizeof(line), in))
		good = read_line(path, line);
	if (in)
		(void)fclose(in);
	return good;
}

/* Each entry still breaks its promise; otherwise it must leave the list. */
static bool known_still_break(void)
{
	bool still = true;
	char because[300];

	for (uint32_t i = 0; i < known_count; i++) {
		const struct known *k = &known[i];
		enum explore_promise broken = explore_replay(
			k->world, k->history, false, because, sizeof(because));

		if (broken == k->promise)
			continue;
		printf("explore: %s %s holds now: take it off the list: %s\n",
			k->world->name, explore_promise_name(k->promise), k->history);
		still = false;
	}
	return still;
}

/* --- a world --- */

static void print_find(const struct explore_world *world, const struct explore_find *find)
{
	bool is = is_known(world, find->promise);

	printf("  %s%s: %s\n    %s\n    after %" PRIu32 ": %s\n",
		is ? "known: " : "BROKEN ", explore_promise_name(find->promise),
		explore_promise_text(find->promise), find->because, find->depth,
		find->history);
}

/* False: a promise broke that is not known to. */
static bool search(
	const struct explore_world *world, struct explore_options options, bool quiet)
{
	bool held = true;

	if (!options.depth)
		options.depth = world->depth;
	explore_search(world, &options, &result);
	if (!quiet)
		printf("%-9s depth %u%s, %u states, %u merged, %.1f s of CPU, %.0f "
		       "states/s; %s\n",
			world->name, result.depth, result.is_all ? " (all)" : "",
			result.states, result.merged, result.seconds,
			result.states / (result.seconds + 1e-9), world->text);
	for (uint32_t i = 1; i < EXPLORE_PROMISES_END; i++) {
		if (!result.find[i].promise)
			continue;
		if (!quiet)
			print_find(world, &result.find[i]);
		held &= is_known(world, (enum explore_promise)i);
	}
	(void)fflush(stdout);
	return held;
}

static bool search_all(const char *name, struct explore_options options, double seconds)
{
	bool held = true;
	uint32_t left = name ? 1 : explore_worlds_count;

	for (uint32_t i = 0; i < explore_worlds_count; i++) {
		sl_ns began = sl_clock_now();

		if (name && strcmp(explore_worlds[i].name, name) != 0)
			continue;
		options.until =
			seconds > 0 ? began + (sl_ns)(seconds / left * 1e9) : SL_NS_NEVER;
		held &= search(&explore_worlds[i], options, false);
		seconds -= (double)(sl_clock_now() - began) / 1e9;
		left--;
	}
	return held;
}

/* --- itself --- */

/* Faults that must all be found: the world that finds each, and its depth. */
static const struct {
	const char *mutant, *world;
	uint32_t depth;
} faults[] = {
#define FAULT(mutant, world, depth) {#mutant, #world, depth},
#include "faults.def"
#undef FAULT
};

static bool self_test(void)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < SL_ARRAY_LEN(faults); i++) {
		struct explore_options options = {.depth = faults[i].depth,
			.until = SL_NS_NEVER,
			.symmetry = true,
			.closes = true};
		const struct explore_world *world = world_named(faults[i].world);
		bool held;

		if (!world || !sl_mutant_switch(faults[i].mutant)) {
			fprintf(stderr, "explore: no such fault: %s\n", faults[i].mutant);
			return false;
		}
		held = search(world, options, true);
		printf("%-24s %s\n", faults[i].mutant, held ? "NOT FOUND" : world->name);
		found += !held;
	}
	printf("%u of %zu faults found\n", found, SL_ARRAY_LEN(faults));
	return found == SL_ARRAY_LEN(faults);
}

static int replay(const char *name, const char *history)
{
	const struct explore_world *world = name ? world_named(name) : NULL;
	enum explore_promise broken;
	char because[300];

	if (!world) {
		fputs("explore: --replay needs the --world that it is of\n", stderr);
		return 2;
	}
	broken = explore_replay(world, history, true, because, sizeof(because));
	printf("%s: %s\n", explore_promise_name(broken), because);
	return broken ? 1 : 0;
}

static int list(void)
{
	for (uint32_t i = 0; i < explore_worlds_count; i++)
		printf("%-9s depth %u: %s\n", explore_worlds[i].name,
			explore_worlds[i].depth, explore_worlds[i].text);
	return 0;
}

static int usage(void)
{
	fputs("usage: explore [--world NAME] [--depth N] [--seconds S]"
	      " [--merge view|close] [--no-symmetry] [--known FILE] [--mutant NAME]\n"
	      "       explore --world NAME --replay HISTORY | --list | --self-test "
	      "FILE\n",
		stderr);
	return 2;
}

int main(int argc, char **argv)
{
	struct explore_options options = {.symmetry = true, .closes = true};
	const char *world = NULL, *history = NULL, *list_of = NULL;
	bool selves = false;
	uint64_t depth = 0, seconds = 0;
	bool held;

	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (strcmp(argv[i], "--list") == 0)
			return list();
		if (strcmp(argv[i], "--no-symmetry") == 0) {
			options.symmetry = false;
			continue;
		}
		if (!value)
			return usage();
		i++;
		if (strcmp(argv[i - 1], "--world") == 0) {
			world = value;
		} else if (strcmp(argv[i - 1], "--replay") == 0) {
			history = value;
		} else if (strcmp(argv[i - 1], "--merge") == 0) {
			options.deep = strcmp(value, "close") == 0;
		} else if (strcmp(argv[i - 1], "--depth") == 0) {
			if (!sim_read_number(value, &depth))
				return usage();
		} else if (strcmp(argv[i - 1], "--seconds") == 0) {
			if (!sim_read_number(value, &seconds))
				return usage();
		} else if (strcmp(argv[i - 1], "--mutant") == 0) {
			if (!sl_mutant_can_switch())
				return sim_hand_over("explore", argv);
			if (!sl_mutant_switch(value))
				return usage();
		} else if (strcmp(argv[i - 1], "--known") == 0) {
			list_of = value;
		} else if (strcmp(argv[i - 1], "--self-test") == 0) {
			list_of = value;
			selves = true;
		} else {
			return usage();
		}
	}
	if (world && !world_named(world)) {
		fprintf(stderr, "explore: no world is called %s; --list tells them\n",
			world);
		return 2;
	}
	if (history)
		return replay(world, history);
	if (list_of && !read_known(list_of))
		return 2;
	if (selves)
		return self_test() ? 0 : 1;
	options.depth = (uint32_t)depth;
	held = search_all(world, options, (double)seconds);
	held &= known_still_break();
	return held ? 0 : 1;
}
