/*
 * parts - the state of what projects, jobs and history need
 *
 * The daemon shares GPUs without them, too, so a fault in one stops nothing; it is reported here,
 * to `sluice doctor`. The supervisor's program is looked for now; for database and folder it is the
 * last error met. Only the loop calls.
 */
#ifndef SL_DAEMON_CONTROL_PARTS_H
#define SL_DAEMON_CONTROL_PARTS_H

#include "daemon/link/peer.h"

/* The next PART_ROW; false at the end. */
bool sl_parts_next(
	const struct sl_daemon *daemon, struct sl_peer_list *list, union sl_msg *msg);

#endif
