/*
 * timer - see the header
 */
#include "daemon/state/timer.h"

int sl_timer_new(struct sl_daemon *daemon, int64_t priority,
	sd_event_time_handler_t handler, sd_event_source **out)
{
	int r = sd_event_add_time(
		daemon->loop, out, CLOCK_MONOTONIC, UINT64_MAX, 1, handler, daemon);

	if (r < 0)
		return sl_err_origin(r);
	(void)sd_event_source_set_priority(*out, priority);
	(void)sd_event_source_set_enabled(*out, SD_EVENT_OFF);
	return 0;
}

void sl_timer_set(sd_event_source *timer, sl_ns at)
{
	/* Rounded up to the next microsecond: a timer that fires early would fire twice. */
	if (at != SL_NS_NEVER)
		(void)sd_event_source_set_time(timer, at / SL_US + 1);
	(void)sd_event_source_set_enabled(
		timer, at == SL_NS_NEVER ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
}
