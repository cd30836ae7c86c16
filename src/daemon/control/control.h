/*
 * control - what the command line asks
 *
 * A message goes to its subject from here. RUN is checked first, and the queue proposes it
 * (jobs/front.c). Every user may LIST, as with ps(1); rows are made as the peer reads.
 */
#ifndef SL_DAEMON_CONTROL_CONTROL_H
#define SL_DAEMON_CONTROL_CONTROL_H

#include "daemon/link/peer.h"

/* A message of a greeted control peer. fds: what came along; what is left in it is closed. */
void sl_control_take(
	struct sl_peer *peer, const union sl_msg *msg, struct sl_wire_fds *fds);
/* Sends more rows of what is going out, as many as are due in one turn. */
void sl_control_list_more(struct sl_peer *peer);

#endif
