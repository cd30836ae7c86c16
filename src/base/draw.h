/*
 * draw - pseudo-random numbers that are the same on every machine
 */
#ifndef SL_BASE_DRAW_H
#define SL_BASE_DRAW_H

#include <stdint.h>

/* xorshift64*. *state must not be 0. */
static inline uint64_t sl_draw(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(0x2545f4914f6cdd1d);
}

#endif
