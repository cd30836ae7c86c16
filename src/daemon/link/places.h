/*
 * places - limits on the number of connections, workloads and clients
 *
 * Each may reach max_clients. Workloads and clients outlive their connections, so counting
 * connections is not enough. The last quarter of each is kept for users with less than a quarter,
 * so that one user cannot shut out others. Root and the daemon's own user may use it, too.
 */
#ifndef SL_DAEMON_LINK_PLACES_H
#define SL_DAEMON_LINK_PLACES_H

#include "daemon/state/daemon.h"

/* No place for one more of this user. O(1) until three quarters are taken. */
bool sl_places_peers_full(const struct sl_daemon *daemon, uid_t uid);
bool sl_places_workloads_full(const struct sl_daemon *daemon, uid_t uid);
bool sl_places_clients_full(const struct sl_daemon *daemon, uid_t uid);
/* Is there no place for one more connection at this workload's own socket (entry.h)? The workload
 * may have a quarter of all connections and a quarter of all clients, for all its users
 * together. */
bool sl_places_entry_full(const struct sl_daemon *daemon, uint64_t workload);
/* Workloads that are not over. O(workloads). */
uint32_t sl_places_workloads_of(const struct sl_daemon *daemon, uid_t uid);

#endif
