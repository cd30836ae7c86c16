/*
 * compare - one sequence on both sides, and the smallest part of it that still differs
 */
#ifndef SL_TESTS_STORM_COMPARE_H
#define SL_TESTS_STORM_COMPARE_H

#include "storm.h"

struct storm_sides {
	const char *self;   /* this program */
	const char *folder; /* for sequences and answers; left behind on a difference */
	char *const *front; /* words before `self` on the second side, NULL-terminated */
	const char *faults; /* fault plan of the second side, or NULL */
	uint64_t calls[STORM_IDS_MAX], refused[STORM_IDS_MAX],
		total; /* of the plain side */
};

enum storm_verdict {
	STORM_ALIKE,
	STORM_DIFFERS,
	STORM_BROKEN, /* the plain side itself did not get through */
};

struct storm_difference {
	enum storm_verdict verdict;
	size_t at;                                 /* step, in this sequence */
	char what[256];                            /* one sentence */
	char plain[STORM_TEXT], other[STORM_TEXT]; /* that step's own words */
};

/* Names the step in *d, if the rest of the two runs is alike. */
void storm_compare(struct storm_sides *sides, const struct storm_sequence *q,
	struct storm_difference *d);
/* Makes *q small, for at most so many seconds; *d belongs to the smaller one. */
void storm_shrink(struct storm_sides *sides, struct storm_sequence *q,
	struct storm_difference *d, unsigned seconds);
/* The file of answers of a side, mapped; NULL with a sentence on stderr. */
struct storm_answers *storm_map_answers(const char *path, size_t steps, bool make);

#endif
