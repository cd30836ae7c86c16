/*
 * set - changing and ending workloads that run: SET and STOP
 *
 * Only root, the daemon's own user and the workload's own user may do this, and the reply gives
 * them every reason; other peers are rejected (DENIED). Before a SET's reply leaves, the journal
 * has the change.
 */
#ifndef SL_DAEMON_CONTROL_SET_H
#define SL_DAEMON_CONTROL_SET_H

#include "daemon/link/peer.h"

/* The workload that this peer may change; NULL after telling why not: in *text, or by rejecting the
 * peer. */
struct sl_workload *sl_set_changeable(struct sl_peer *peer, uint64_t id, const char *name,
	const char *verb, struct sl_error *text);
void sl_set_set(struct sl_peer *peer, const struct sl_msg_set *set);
void sl_set_stop(struct sl_peer *peer, const struct sl_msg_stop *stop);

#endif
