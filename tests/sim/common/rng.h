/*
 * rng - numbers from a seed, the same on every machine
 *
 * SplitMix64 (Steele, Lea, Flood 2014): one 64-bit state, passes the usual statistical tests,
 * and any seed is a good one. Not for secrets.
 */
#ifndef SL_SIM_RNG_H
#define SL_SIM_RNG_H

#include "base/sl.h"

struct sl_rng {
	uint64_t state;
};

static inline uint64_t sl_rng_next(struct sl_rng *rng)
{
	uint64_t z = rng->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* 0 <= result < bound; 0 for bound 0. The bias of the remainder does not matter here. */
static inline uint64_t sl_rng_below(struct sl_rng *rng, uint64_t bound)
{
	return bound ? sl_rng_next(rng) % bound : 0;
}

static inline uint64_t sl_rng_between(struct sl_rng *rng, uint64_t least, uint64_t most)
{
	return least + sl_rng_below(rng, most - least + 1);
}

/* Small ones more often: one of the octaves between the bounds, then a place in it. least is above
 * 0. */
static inline uint64_t sl_rng_span(struct sl_rng *rng, uint64_t least, uint64_t most)
{
	uint32_t octaves = 64 - (uint32_t)__builtin_clzll(most / least);
	uint64_t low = least << sl_rng_below(rng, octaves);

	return sl_min_u64(most, sl_rng_between(rng, low, low * 2));
}

/* True once in n. */
static inline bool sl_rng_one_in(struct sl_rng *rng, uint64_t n)
{
	return sl_rng_below(rng, n) == 0;
}

#endif
