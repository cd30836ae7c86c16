/*
 * drive - see the header
 */
#include "daemon/state/drive.h"

#include "daemon/state/timer.h"

void sl_drive_all(
	struct sl_daemon *daemon, const struct sl_event events[], uint32_t count)
{
	sl_node_steps(
		daemon->node, sl_clock_now(), events, count, daemon->up->act, daemon);
}

void sl_drive(struct sl_daemon *daemon, const struct sl_event *event)
{
	sl_drive_all(daemon, event, 1);
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
