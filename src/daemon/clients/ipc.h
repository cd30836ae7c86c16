/*
 * ipc - memory of one client used by another: the daemon keeps the descriptors and hands them on
 *
 * A client offers memory under a key that it chose: 128 random bits, which the programs pass to the
 * openers by their own means. Descriptors are kept until the client withdraws the offer, dies, or
 * is back on a new connection (then it offers anew). An opener gets copies of its own, which
 * outlive the offer. Only processes of the same user, or of root, may open; and only on a GPU that
 * their workload has.
 *
 * Incomplete offers cannot be opened. An open of an unknown key waits a few seconds while a client
 * whose memory the opener may open may still offer it: a client of an earlier daemon that has yet
 * to reconnect, or one that has yet to send IPC_SETTLED. Descriptors are bounded per client, per
 * user and in all. Loop's thread.
 */
#ifndef SL_DAEMON_CLIENTS_IPC_H
#define SL_DAEMON_CLIENTS_IPC_H

#include "daemon/link/peer.h"

/* Most handles of one offer. */
#define SL_IPC_COUNT_MAX 8192
/* Most descriptors of all offers together, where the limits of the process allow for it. */
#define SL_IPC_FDS_MAX 65536
/* Most waiting opens of one client; more are answered at once. */
#define SL_IPC_WAITS_MAX 64
/* How long an open waits for an unknown key. */
#define SL_IPC_WAIT_NS (5 * SL_S)

/* A message of a greeted client; takes the descriptors that it keeps out of fds. */
void sl_ipc_message(
	struct sl_peer *peer, const union sl_msg *msg, struct sl_wire_fds *fds);
/* The client has a new connection: its earlier offers are void. */
void sl_ipc_client_back(struct sl_client *client);
/* The client exits, or is dropped. */
void sl_ipc_client_gone(struct sl_client *client);
void sl_ipc_fini(struct sl_daemon *daemon);

#endif
