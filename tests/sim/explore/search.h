/*
 * search - all histories of a world, the shorter ones first
 *
 * Breadth first, so that the first history that breaks a promise is a shortest one. A state is
 * stored as its history. To go on from it, the history is played again and the machine's arena is
 * saved; before each choice, the saved arena is put back. One search at a time; one thread.
 */
#ifndef SL_SIM_EXPLORE_SEARCH_H
#define SL_SIM_EXPLORE_SEARCH_H

#include "world.h"

#define EXPLORE_HISTORY 512 /* of text */

struct explore_options {
	uint32_t depth;
	sl_ns until; /* of sl_clock_now(): the search ends then; SL_NS_NEVER: not */
	bool deep;   /* merges only what does the same in its closing run, too */
	bool symmetry, closes; /* closes: judge the closing runs */
};

struct explore_find {
	enum explore_promise promise; /* EXPLORE_KEPT: this one was not broken */
	uint32_t depth;
	char history[EXPLORE_HISTORY], because[300];
};

struct explore_result {
	uint32_t states, merged, depth; /* depth: to which all was tried */
	bool is_all;                    /* nothing is left beyond it */
	double seconds;                 /* of the processor */
	struct explore_find find[EXPLORE_PROMISES_END]; /* by promise */
};

void explore_search(const struct explore_world *world,
	const struct explore_options *options, struct explore_result *result);
/* Plays a history and its closing runs, and returns what it breaks. prints: every event
 * and action. */
enum explore_promise explore_replay(const struct explore_world *world,
	const char *history, bool prints, char *because, size_t size);

#endif
