/*
 * drive - see the header
 */
#include "daemon/state/drive.h"

#include "daemon/state/timer.h"

void sl_drive(struct sl_daemon *daemon, const struct sl_event *event)
{
	sl_node_step(daemon->node, sl_clock_now(), event, daemon->up->act, daemon);
}

void sl_drive_time(struct sl_daemon *daemon)
{
	sl_drive(daemon, &(struct sl_event){.type = SL_EVENT_TIME});
}

void sl_drive_arm(struct sl_daemon *daemon)
{
	if (!daemon->wake_changed)
		return;
	daemon->wake_changed = false;
	sl_timer_set(daemon->wake_timer, daemon->wake_at);
}
