/*
 * moves - a workload that changes its GPUs
 */
#ifndef SL_DAEMON_CLIENTS_MOVES_H
#define SL_DAEMON_CLIENTS_MOVES_H

#include "daemon/state/daemon.h"

/* Action MOVES: the ordinal of `from` means `to` from now on. Its processes are away with their
 * doors shut, and learn it before these open. */
void sl_moves(struct sl_daemon *daemon, const struct sl_action *action);

#endif
