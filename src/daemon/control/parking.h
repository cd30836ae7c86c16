/*
 * parking - PARK
 *
 * A user may park the workloads that they may SET (set.h). Before an ok is sent, the journal has
 * the change.
 */
#ifndef SL_DAEMON_CONTROL_PARKING_H
#define SL_DAEMON_CONTROL_PARKING_H

#include "daemon/link/peer.h"

void sl_parking_park(struct sl_peer *peer, const struct sl_msg_park *park);

#endif
