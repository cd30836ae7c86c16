/*
 * drive - the policy's events in, its actions out
 *
 * sl_drive steps the node with the clock's time and carries out the actions before it returns.
 * Actions send or queue messages but receive none, so the node is never stepped from within itself.
 */
#ifndef SL_DAEMON_STATE_DRIVE_H
#define SL_DAEMON_STATE_DRIVE_H

#include "daemon/state/daemon.h"

void sl_drive(struct sl_daemon *daemon, const struct sl_event *event);
/* Events of one moment: the policy plans once, after all of them. */
void sl_drive_all(
	struct sl_daemon *daemon, const struct sl_event events[], uint32_t count);
/* Tells the policy the time. Call it before asking the policy how long something has lasted: its
 * answers are as of its last step. */
void sl_drive_time(struct sl_daemon *daemon);
/* Sets the loop's timer to the time the policy asked for last; part of settling. */
void sl_drive_arm(struct sl_daemon *daemon);

#endif
