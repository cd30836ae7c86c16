/*
 * timer - timers of the loop
 */
#ifndef SL_DAEMON_STATE_TIMER_H
#define SL_DAEMON_STATE_TIMER_H

#include "daemon/state/daemon.h"

/* A timer of the loop, off until sl_timer_set. 0 or negative errno. */
SL_MUST_CHECK int sl_timer_new(struct sl_daemon *daemon, int64_t priority,
	sd_event_time_handler_t handler, sd_event_source **out);
/* Fires at the given time; SL_NS_NEVER turns it off. */
void sl_timer_set(sd_event_source *timer, sl_ns at);

#endif
