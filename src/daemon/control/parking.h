/*
 * parking - PARK, and what the policy asks for that amounts to it
 *
 * A user may park the workloads that they may SET (set.h). Before an ok is sent, the journal has
 * the change.
 */
#ifndef SL_DAEMON_CONTROL_PARKING_H
#define SL_DAEMON_CONTROL_PARKING_H

#include "daemon/link/peer.h"

/* Actions: the workload has had no work for long, or is detached and calls. */
void sl_parking_idle(struct sl_daemon *daemon, uint64_t workload, bool calls);

void sl_parking_move(struct sl_peer *peer, const struct sl_msg_move *move);
void sl_parking_park(struct sl_peer *peer, const struct sl_msg_park *park);

#endif
