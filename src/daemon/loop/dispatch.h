/*
 * dispatch - passes messages, and news that something has ended, to their modules
 *
 * Has the functions of struct sl_upcalls (state/daemon.h) that concern more than one folder.
 * Messages judged by what the driver shows wait for a fresh sample first (control/recount.h).
 */
#ifndef SL_DAEMON_LOOP_DISPATCH_H
#define SL_DAEMON_LOOP_DISPATCH_H

#include "daemon/link/peer.h"

void sl_dispatch_message(
	struct sl_peer *peer, const union sl_msg *msg, struct sl_wire_fds *fds);
void sl_dispatch_drained(struct sl_peer *peer);
void sl_dispatch_gone(struct sl_peer *peer);
void sl_dispatch_process_died(struct sl_process *process);
void sl_dispatch_workload_over(struct sl_daemon *daemon, struct sl_workload *workload);

/* Handles messages whose sample has come, or will not come. */
void sl_dispatch_recounted(struct sl_daemon *daemon);
/* The same when the longest wait is over. */
int sl_dispatch_late(sd_event_source *source, uint64_t usec, void *context);

#endif
