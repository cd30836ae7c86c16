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

void sl_drive_post(struct sl_daemon *daemon, struct sl_letter *letter,
	void (*open)(struct sl_letter *letter))
{
	if (sl_list_is_linked(&letter->link))
		return;
	letter->open = open;
	sl_list_push_tail(&daemon->inbox, &letter->link);
}

void sl_drive_open_inbox(struct sl_daemon *daemon)
{
	while (!sl_list_is_empty(&daemon->inbox)) {
		struct sl_letter *letter =
			SL_LIST_ENTRY(daemon->inbox.next, struct sl_letter, link);

		sl_list_unlink(&letter->link);
		letter->open(letter);
	}
}

void sl_drive_arm(struct sl_daemon *daemon)
{
	if (!daemon->wake_changed)
		return;
	daemon->wake_changed = false;
	sl_timer_set(daemon->wake_timer, daemon->wake_at);
}
