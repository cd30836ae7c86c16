/*
 * timers - what will happen at which time, the earliest first
 *
 * A heap. Of equal times what was added first comes first, so that a run is the same each time.
 */
#ifndef SL_CLI_SIMULATE_TIMERS_H
#define SL_CLI_SIMULATE_TIMERS_H

#include "base/clock.h"

enum sl_timer_kind {
	SL_TIMER_END = 0, /* of a job */
	SL_TIMER_STARTED, /* a task runs again that was parked */
	SL_TIMER_STOPPED, /* a task is parked; so far of jobs, from here on of nodes */
	SL_TIMER_FAILS,
	SL_TIMER_REPAIRED,
	SL_TIMER_WAKE, /* the machine asked for a cycle */
	SL_TIMERS_KINDS
};

struct sl_timer {
	sl_ns at;
	uint64_t number;
	enum sl_timer_kind kind;
	uint32_t of, task,
		turn; /* job or node; the owner knows by turn what is out of date */
};

/* Zero-initialise, and fini in any case. */
struct sl_timers {
	struct sl_timer *heap;
	uint32_t count, room;
	uint64_t added;
	uint32_t kinds[SL_TIMERS_KINDS]; /* how many there are */
};

void sl_timers_fini(struct sl_timers *timers);
/* False: out of memory. */
SL_MUST_CHECK bool sl_timers_add(struct sl_timers *timers, struct sl_timer timer);
/* NULL: there is none. Until the next call. */
const struct sl_timer *sl_timers_first(const struct sl_timers *timers);
void sl_timers_drop_first(struct sl_timers *timers);

#endif
