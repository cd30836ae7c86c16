/*
 * timers - future events, the earliest first
 *
 * A heap. At equal times the one added first comes first, so a run is reproducible.
 */
#ifndef SL_CLI_SIMULATE_TIMERS_H
#define SL_CLI_SIMULATE_TIMERS_H

#include "base/clock.h"

enum sl_timer_kind {
	SL_TIMER_END = 0, /* of a job */
	SL_TIMER_STARTED, /* a parked task runs again */
	SL_TIMER_STOPPED, /* a task is parked; the kinds so far are of jobs, the next ones of
			   * nodes */
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
		turn; /* of the job or node; an outdated timer has an older turn */
};

/* Zero-initialise, and fini in any case. */
struct sl_timers {
	struct sl_timer *heap;
	uint32_t count, room;
	uint64_t added;
	uint32_t kinds[SL_TIMERS_KINDS]; /* number of timers by kind */
};

void sl_timers_fini(struct sl_timers *timers);
/* False: out of memory. */
SL_MUST_CHECK bool sl_timers_add(struct sl_timers *timers, struct sl_timer timer);
/* NULL: there is none. Valid until the next call. */
const struct sl_timer *sl_timers_first(const struct sl_timers *timers);
void sl_timers_drop_first(struct sl_timers *timers);

#endif
