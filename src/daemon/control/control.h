/*
 * control - messages of the command line
 *
 * Passes each message to the module for its subject. RUN is checked first, and the queue proposes
 * it (jobs/front.c). Every user may LIST, as with ps(1); rows are made as the peer reads them.
 */
#ifndef SL_DAEMON_CONTROL_CONTROL_H
#define SL_DAEMON_CONTROL_CONTROL_H

#include "daemon/link/peer.h"

/* A message of a greeted control peer. Descriptors that stay in fds are closed. */
void sl_control_take(
	struct sl_peer *peer, const union sl_msg *msg, struct sl_wire_fds *fds);
/* Sends more rows of the answer in progress, as many as one turn allows. */
void sl_control_list_more(struct sl_peer *peer);

#endif
