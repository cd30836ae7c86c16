/*
 * rows - what `sluice ps`, `gpus`, `doctor` and `version` are told
 */
#ifndef SL_DAEMON_CONTROL_ROWS_H
#define SL_DAEMON_CONTROL_ROWS_H

#include "daemon/link/peer.h"

/* The next row of the list, by its cursor; false at the end. Workloads that come or go meanwhile
 * may be missing; none comes twice. */
bool sl_rows_next(
	const struct sl_daemon *daemon, struct sl_peer_list *list, union sl_msg *msg);

#endif
