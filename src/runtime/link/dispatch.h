/*
 * dispatch - hands the daemon's messages to the modules they are for
 *
 * For the agent's thread. Takes the session's lock.
 */
#ifndef SL_RUNTIME_LINK_DISPATCH_H
#define SL_RUNTIME_LINK_DISPATCH_H

#include "runtime/session/line.h"

enum sl_dispatch_outcome {
	SL_DISPATCH_OK = 0,
	SL_DISPATCH_LOST,     /* drop the line and try again */
	SL_DISPATCH_REJECTED, /* drop the line; the agent ends */
	SL_DISPATCH_AGENT,    /* GATE, PROBE, EVICT and the like: for the agent */
};

/* Says HELLO on a new line. False: lost. */
bool sl_dispatch_greet(struct sl_line *line);
/* Called when the process that listens at the socket is not our daemon. LOST: we are a client
 * already, and our daemon may come back. REJECTED: we are no client yet, and joining has failed. */
SL_MUST_CHECK int sl_dispatch_distrust(const char *why);
/* Takes the descriptors that the message needs out of fds. */
SL_MUST_CHECK int sl_dispatch_message(const union sl_msg *msg, struct sl_wire_fds *fds);

#endif
