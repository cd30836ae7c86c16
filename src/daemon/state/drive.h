/*
 * drive - the policy's events in, its actions out
 *
 * sl_drive steps the node with the clock's time and carries out the actions before it returns.
 * Actions send or queue messages but receive none, so the node is never stepped from within itself.
 */
#ifndef SL_DAEMON_STATE_DRIVE_H
#define SL_DAEMON_STATE_DRIVE_H

#include "daemon/state/daemon.h"

/* Something that arose while an action was carried out, and that may step the node. */
struct sl_letter {
	struct sl_link link; /* sl_daemon.inbox */
	void (*open)(struct sl_letter *letter);
};

void sl_drive(struct sl_daemon *daemon, const struct sl_event *event);
/* Events of one moment: the policy plans once, after all of them. */
void sl_drive_all(
	struct sl_daemon *daemon, const struct sl_event events[], uint32_t count);
/* Tells the policy the time. Call it before asking the policy how long something has lasted: its
 * answers are as of its last step. */
void sl_drive_time(struct sl_daemon *daemon);
/* Opens the letter when the policy's step is over; a letter that is posted already stays as it is.
 * For what arises inside an action. */
void sl_drive_post(struct sl_daemon *daemon, struct sl_letter *letter,
	void (*open)(struct sl_letter *letter));
/* Opens all letters, also those that opening posts; part of settling. */
void sl_drive_open_inbox(struct sl_daemon *daemon);
/* Sets the loop's timer to the time the policy asked for last; part of settling. */
void sl_drive_arm(struct sl_daemon *daemon);

#endif
