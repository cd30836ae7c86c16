/*
 * place - the policy's orders to take a process off its GPUs whole and to bring it back
 *
 * away/away.h carries them out; the policy gets one PLACED for each. Before a process leaves, none
 * of its threads is in the driver, since its door is shut (GATE), and the journal says that it
 * leaves: a daemon that starts meanwhile knows that it must bring the process back. The door opens
 * when the process is on its GPUs again. One order per client.
 */
#ifndef SL_DAEMON_SWAP_PLACE_H
#define SL_DAEMON_SWAP_PLACE_H

#include "daemon/link/peer.h"
#include "daemon/state/client.h"

/* 0 or negative errno. */
SL_MUST_CHECK int sl_place_open(struct sl_daemon *daemon);
void sl_place_close(struct sl_daemon *daemon);

/* Actions. Unknown clients are ignored: the policy has forgotten them as well. */
void sl_place_detach(struct sl_daemon *daemon, const struct sl_action *action);
void sl_place_attach(struct sl_daemon *daemon, const struct sl_action *action);

/* A message; also told again by a client that is back. */
void sl_place_on_gate_done(struct sl_peer *peer, const struct sl_msg_gate_done *msg);
/* Its connection is gone. Never inside an action. */
void sl_place_lost(struct sl_client *client);
/* Its process is dead. */
void sl_place_gone(struct sl_client *client);
/* The journal was written, or that failed. Never inside an action. */
void sl_place_written(struct sl_daemon *daemon);
/* A client of an earlier daemon was joined. away_bytes: as the journal says; 0: it is there. */
void sl_place_recovered(struct sl_client *client, uint64_t away_bytes);

#endif
