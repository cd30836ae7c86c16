/*
 * helper - starts sluice-move for a user
 */
#ifndef SL_DAEMON_AWAY_HELPER_H
#define SL_DAEMON_AWAY_HELPER_H

#include <sys/types.h>

#include "base/error.h"

/* What the helper becomes: as the processes that it moves, and no more. */
struct sl_away_user {
	uid_t uid;
	gid_t gid;
	uint64_t capabilities; /* a bit each; of those that the daemon has itself */
};

/* fd: the daemon's end of the socket, non-blocking. The descriptors are the caller's, and so is the
 * child, to be reaped. 0, or negative errno: nothing was started, and err says why. */
SL_MUST_CHECK int sl_away_helper_start(const struct sl_away_user *user, pid_t *pid,
	int *pidfd, int *fd, struct sl_error *err);

#endif
