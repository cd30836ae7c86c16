/*
 * stage - what the plays of swapping share: the stage, its programs, and the orders
 *
 * Each play sets a machine of round numbers, so that the result can be worked out by head: 15 GiB
 * to share, a link of 100 GiB/s both ways. Moving 10 GiB out and back thus costs 200 ms, and a turn
 * is 2 s. Nothing in the plays is random.
 */
#ifndef SL_SIM_SWAP_STAGE_H
#define SL_SIM_SWAP_STAGE_H

#include "world.h"

#define GIB  SL_GIB
#define LINK (100 * GIB)

struct played { /* of orders; at: since the beginning */
	sl_ns at;
	enum sl_action_type type;
	uint64_t client, bytes, reason;
};

struct swap_play {
	const char *name;
	void (*play)(struct swap_world *world);
	bool is_long; /* minutes of many events: after all others, which mostly tell before */
};

extern struct played played[];
extern uint32_t played_count;
extern char wrong[400]; /* the first expectation that did not hold */

/* More plays, by file; each ends with one that has no name. */
extern const struct swap_play swap_plays_order[];
extern const struct swap_play swap_plays_victims[];
extern const struct swap_play swap_plays_returns[];
extern const struct swap_play swap_plays_shares[];
extern const struct swap_play swap_plays_leaving[];
extern const struct swap_play swap_plays_host[];
extern const struct swap_play swap_plays_growing[];
extern const struct swap_play swap_plays_places[];
extern const struct swap_play swap_plays_moves[];
extern const struct swap_play swap_plays_kept[];

void stage(struct swap_world *w, uint32_t gpus, uint64_t pool);
/* A workload of one process; returns the slot of both. */
uint32_t enter(struct swap_world *w, struct swap_workload wl);
/* One without a request that computes once and then thinks for longer than any play lasts. */
uint32_t enter_idle(struct swap_world *w, uint64_t bytes);
/* So many seconds after the beginning. */
bool until(struct swap_world *w, double seconds);
/* An event whose first field is the workload of this one. */
void person(struct swap_world *w, enum sl_event_type type, uint32_t slot);

struct swap_client *client(struct swap_world *w, uint32_t slot);
struct sl_node_workload_view view(struct swap_world *w, uint32_t slot);
/* How much of the span its gate was open. */
double share(struct swap_world *w, uint32_t slot, sl_ns since_open, sl_ns span);

void expect(bool holds, const char *format, ...) SL_PRINTF(2, 3);
/* client, reason: 0: any. */
uint32_t how_many(enum sl_action_type type, uint64_t client, uint64_t reason);
/* NULL: none. */
const struct played *first_of(enum sl_action_type type, uint64_t client);

#endif
