/*
 * later - events of a simulated world, by time
 *
 * A binary heap; events of the same time come in the order in which they were put in. The world
 * gives a meaning to all fields but `at` and `order`. It allocates nothing.
 */
#ifndef SL_SIM_LATER_H
#define SL_SIM_LATER_H

#include "base/clock.h"

#define SIM_LATER_MAX 16384

struct sim_later {
	sl_ns at;
	uint64_t order;
	uint32_t kind, slot, gpu;
	uint64_t id, number;
};

/* Zeroed it is empty. */
struct sim_queue {
	uint32_t count;
	uint64_t order;
	struct sim_later room[SIM_LATER_MAX];
};

/* later.at says when. False: it is full, and nothing was put in. */
SL_MUST_CHECK bool sim_later_put(struct sim_queue *queue, struct sim_later later);
/* The first one, taken out; there must be one. */
struct sim_later sim_later_take(struct sim_queue *queue);
/* Time of the next event; SL_NS_NEVER if there is none. */
sl_ns sim_later_next(const struct sim_queue *queue);

#endif
