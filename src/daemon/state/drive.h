/*
 * drive - the policy's events in, its actions out
 *
 * sl_drive steps the node with the clock's time; actions are carried out before it returns:
 * messages are sent or queued, never received, so nothing comes back into the node.
 */
#ifndef SL_DAEMON_STATE_DRIVE_H
#define SL_DAEMON_STATE_DRIVE_H

#include "daemon/state/daemon.h"

void sl_drive(struct sl_daemon *daemon, const struct sl_event *event);
/* Only time has passed. Before the policy is asked how long something has been so: what it answers
 * is as of its last step. */
void sl_drive_time(struct sl_daemon *daemon);
/* Sets the loop's timer to what the policy asked for last; part of settling. */
void sl_drive_arm(struct sl_daemon *daemon);

#endif
