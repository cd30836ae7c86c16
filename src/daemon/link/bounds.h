/*
 * bounds - what the administrator allows the user behind a connection
 *
 * The kernel names user and groups of the connecting process (SO_PEERCRED, SO_PEERGROUPS), so no
 * name service is asked while programs wait.
 */
#ifndef SL_DAEMON_LINK_BOUNDS_H
#define SL_DAEMON_LINK_BOUNDS_H

#include "daemon/core/user.h"
#include "daemon/link/peer.h"

#define SL_BOUNDS_GROUPS_MAX SL_USER_GROUPS_MAX

/* Reads the groups of the connecting process, the primary one first. Returns how many. */
size_t sl_bounds_groups_of(
	const struct sl_peer *peer, uint32_t gids[SL_BOUNDS_GROUPS_MAX]);
struct sl_bounds sl_bounds_of_peer(const struct sl_peer *peer);
/* True for root, the daemon's own user, and the workload's user. */
bool sl_bounds_may_change(const struct sl_peer *peer, const struct sl_workload *workload);

#endif
