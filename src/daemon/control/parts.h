/*
 * part - what the daemon needs for projects, jobs and its history, and whether it is well
 *
 * The daemon shares GPUs also without them, so what is wrong with one stops nothing but is told
 * here, to `sluice doctor`: the supervisor's program is looked for now, of database and folder it
 * is what was met last. Only the loop calls.
 */
#ifndef SL_DAEMON_CONTROL_PARTS_H
#define SL_DAEMON_CONTROL_PARTS_H

#include "daemon/link/peer.h"

/* The next PART_ROW; false: there are no more. */
bool sl_parts_next(
	const struct sl_daemon *daemon, struct sl_peer_list *list, union sl_msg *msg);

#endif
