/*
 * session - the first message of a peer
 *
 * Decides what a peer is, never what it gets: a CONTROL peer is welcomed as such; a CLIENT peer
 * becomes a new client of its workload, or is again the client that it was before its connection
 * broke.
 */
#ifndef SL_DAEMON_CLIENTS_SESSION_H
#define SL_DAEMON_CLIENTS_SESSION_H

#include "daemon/link/peer.h"

/* Any first message; may doom the peer. */
void sl_session_greet(struct sl_peer *peer, const union sl_msg *msg);

#endif
