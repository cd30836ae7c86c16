/*
 * nearest - which of several names a mistyped word means
 *
 * Names are offered one by one; `best` is the nearest so far, NULL while none is near enough. Pure:
 * it keeps pointers to the word and to the best name, which the caller owns.
 */
#ifndef SL_BASE_NEAREST_H
#define SL_BASE_NEAREST_H

#include "base/error.h"
#include "base/sl.h"

struct sl_nearest {
	const char *word, *best;
	unsigned int distance; /* of best, in edits; a better name must have fewer */
};

struct sl_nearest sl_nearest_to(const char *word);
/* O(length of both), at most 32 x 32 steps. */
void sl_nearest_offer(struct sl_nearest *nearest, const char *name);
/* Adds "; did you mean 'NAME'?" to the error, or `otherwise` if no name is near. */
void sl_nearest_add(
	const struct sl_nearest *nearest, const char *otherwise, struct sl_error *err);

#endif
