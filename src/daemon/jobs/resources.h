/*
 * resources - compute resources: names for what a workload asks for
 *
 * Those of root and the daemon's own user are for all; those of other users are theirs alone,
 * within their bounds and projects. They are chosen by `--resource NAME` and on the page. The loop
 * holds the list; the store keeps it in state.db. Changes are stored one at a time. A change takes
 * effect, and is answered, once it is stored. All calls are the loop's.
 */
#ifndef SL_DAEMON_JOBS_RESOURCES_H
#define SL_DAEMON_JOBS_RESOURCES_H

#include "daemon/link/peer.h"

/* Reads the stored list. If it cannot be read, that is logged, and changes are refused. 0 or
 * negative errno. */
SL_MUST_CHECK int sl_resources_open(struct sl_daemon *daemon);
/* Waits for the write in progress. */
void sl_resources_close(struct sl_daemon *daemon);
void sl_resources_put(struct sl_peer *peer, const struct sl_msg_resource_put *put);
void sl_resources_delete(
	struct sl_peer *peer, const struct sl_msg_resource_delete *delete);
void sl_resources_peer_gone(struct sl_peer *peer);
/* The next row of a LIST; false at the end. */
SL_MUST_CHECK bool sl_resources_next(
	const struct sl_daemon *daemon, struct sl_peer_list *list, union sl_msg *msg);

#endif
