/*
 * places - how many connections, workloads and clients there may be
 *
 * max_clients of each. Workloads and clients outlive their connections, so counting those is not
 * enough. The last quarter of each is kept for users who have less than a quarter, so that no
 * user alone can shut the others out; root and the daemon's own user are not held to that.
 */
#ifndef SL_DAEMON_LINK_PLACES_H
#define SL_DAEMON_LINK_PLACES_H

#include "daemon/state/daemon.h"

/* One more for this user has no place. O(1) until three quarters are taken. */
bool sl_places_peers_full(const struct sl_daemon *daemon, uid_t uid);
bool sl_places_workloads_full(const struct sl_daemon *daemon, uid_t uid);
bool sl_places_clients_full(const struct sl_daemon *daemon, uid_t uid);
/* A workload with its own socket (entry.h) has a quarter of all connections, and of all clients,
 * whoever its users are: one more has no place. */
bool sl_places_entry_full(const struct sl_daemon *daemon, uint64_t workload);
/* Those that are not over. O(workloads). */
uint32_t sl_places_workloads_of(const struct sl_daemon *daemon, uid_t uid);

#endif
