/*
 * ipc - memory of one client used by another: the daemon keeps the descriptors and hands them on
 *
 * A client offers memory under a key that it made up: 128 random bits, which go to whoever is to
 * open it by ways of the programs' own. Descriptors are kept until the client withdraws them, or
 * its process is dead, or it is back on a new connection (then it offers anew). Who opens gets
 * copies of its own: they outlive all that. Only processes of the same user, and root's, may open;
 * of a GPU that their workload has.
 *
 * Half offers can be opened by nobody. An unknown key is waited for, for a few seconds, while some
 * client of that user may still offer it: one that a daemon before this one knew, or one that is
 * back and has not said that it has settled. Bounded per client, per user and in all, by
 * descriptors. Loop's thread.
 */
#ifndef SL_DAEMON_CLIENTS_IPC_H
#define SL_DAEMON_CLIENTS_IPC_H

#include "daemon/link/peer.h"

/* Handles that one offer may have. */
#define SL_IPC_COUNT_MAX 8192
/* Descriptors that all offers may have together, where the limits of the process allow for it. */
#define SL_IPC_FDS_MAX 65536
/* Opens of one client that may wait at a time; more are answered at once. */
#define SL_IPC_WAITS_MAX 64
/* So long an open waits for a key that may yet come. */
#define SL_IPC_WAIT_NS (5 * SL_S)

/* A message of a greeted client; takes what it wants out of fds. */
void sl_ipc_message(
	struct sl_peer *peer, const union sl_msg *msg, struct sl_wire_fds *fds);
/* It has a new connection: nothing that was said before counts. */
void sl_ipc_client_back(struct sl_client *client);
/* It exits, or is dropped. */
void sl_ipc_client_gone(struct sl_client *client);
/* The descriptors that are kept, and how many there may be. */
uint32_t sl_ipc_kept(const struct sl_daemon *daemon);
uint32_t sl_ipc_most(const struct sl_daemon *daemon);
void sl_ipc_fini(struct sl_daemon *daemon);

#endif
