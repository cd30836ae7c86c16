/*
 * helper - starts sluice-move for a user
 */
#ifndef SL_DAEMON_AWAY_HELPER_H
#define SL_DAEMON_AWAY_HELPER_H

#include <sys/types.h>

#include "base/error.h"

/* fd: the daemon's end of the socket, non-blocking. The descriptors are the caller's, and so is the
 * child, to be reaped. 0, or negative errno: nothing was started, and err says why. */
SL_MUST_CHECK int sl_away_helper_start(
	uid_t uid, gid_t gid, pid_t *pid, int *pidfd, int *fd, struct sl_error *err);

#endif
