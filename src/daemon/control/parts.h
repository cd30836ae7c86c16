/*
 * parts - health of supervisor, projects, jobs, history, page and metrics
 *
 * Sharing GPUs needs none of these parts, so a fault in one stops nothing; `sluice doctor` shows
 * it. The supervisor's program is looked for at each call; the other parts report the last error
 * that they met. Only the loop calls.
 */
#ifndef SL_DAEMON_CONTROL_PARTS_H
#define SL_DAEMON_CONTROL_PARTS_H

#include "daemon/link/peer.h"

/* The next PART_ROW; false at the end. */
bool sl_parts_next(
	const struct sl_daemon *daemon, struct sl_peer_list *list, union sl_msg *msg);

#endif
