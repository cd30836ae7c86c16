/*
 * ops - what the files with operations share
 */
#ifndef SL_TESTS_STORM_OPS_H
#define SL_TESTS_STORM_OPS_H

#include "lane.h"

/* The slot's buffer if it is free for a new one, else NULL. */
static inline struct storm_buffer *storm_free_buffer(struct storm_lane *l, uint32_t slot)
{
	return slot < STORM_BUFFER_SLOTS && !l->buffer[slot].live ? &l->buffer[slot]
								  : NULL;
}

/* Verifies a part, frees by the call that fits; false: it is still there. */
bool storm_give_back(struct storm_lane *l, struct storm_buffer *b);

/* Bytes that follow from a number, in the lane's scratch memory. */
void storm_fill_scratch(struct storm_lane *l, uint32_t seed, size_t bytes);

#endif
