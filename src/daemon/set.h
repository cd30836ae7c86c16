/*
 * set - changing and ending workloads that run: SET and STOP
 *
 * Only root, the daemon's own user and the workload's own may. Who may is told everything in the
 * reply; others are rejected (DENIED). What a SET changed is in the journal before the reply leaves.
 */
#ifndef SL_DAEMON_SET_H
#define SL_DAEMON_SET_H

#include "daemon/peer.h"

void sl_set_set(struct sl_peer *peer, const struct sl_msg_set *set);
void sl_set_stop(struct sl_peer *peer, const struct sl_msg_stop *stop);

#endif
