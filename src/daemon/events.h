/*
 * events - what happened on this machine: kept, logged, and told to who follows
 *
 * A ring of the last `events_kept` reasons with the names and numbers of their sentences as they were
 * then; ended workloads keep theirs. Loop's thread. Adding is O(1) and never fails: what cannot be
 * kept is counted as lost. A follower that does not read loses events (its next row says how many),
 * never its connection, and never delays anybody.
 */
#ifndef SL_DAEMON_EVENTS_H
#define SL_DAEMON_EVENTS_H

#include "daemon/daemon.h"

/* because->client names the process, where it matters. Also writes the log line. */
void sl_events_add(struct sl_daemon *daemon, const struct sl_node_because *because);
/* The same about a process that is no client, or none any more: its number is given. */
void sl_events_add_of(
	struct sl_daemon *daemon, const struct sl_node_because *because, pid_t pid);

#endif
