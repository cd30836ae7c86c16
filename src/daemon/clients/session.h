/*
 * session - the first message of a peer
 *
 * Decides who somebody is, never what they get: CONTROL peers are welcomed as such, CLIENT
 * peers become a new client of their workload, or take up the one they were before.
 */
#ifndef SL_DAEMON_CLIENTS_SESSION_H
#define SL_DAEMON_CLIENTS_SESSION_H

#include "daemon/link/peer.h"

/* Any first message; may doom the peer. */
void sl_session_greet(struct sl_peer *peer, const union sl_msg *msg);

#endif
