/*
 * swap - the policy's orders to move memory, from the action to its one answer
 *
 * An EVICT waits until the client has host memory for it (hostpool.h), is sent, and is answered by
 * SWAPPED; a RESTORE is sent at once. Whatever happens to the client, its connection or the host,
 * the policy gets exactly one DONE per order. In doubt, memory counts as on the GPU until the
 * client's next report: an eviction that was cut short counts as having moved nothing, a restore as
 * having moved everything. One order per client.
 */
#ifndef SL_DAEMON_SWAP_SWAP_H
#define SL_DAEMON_SWAP_SWAP_H

#include "daemon/link/peer.h"

/* After an order, samples are not judged for this long: NVML's figures lag. */
#define SL_SWAP_CALM_NS (100 * SL_MS)

/* Actions. Unknown clients are ignored: the policy has forgotten them as well. */
void sl_swap_evict(struct sl_daemon *daemon, const struct sl_action *action);
void sl_swap_restore(struct sl_daemon *daemon, const struct sl_action *action);
void sl_swap_abort(struct sl_daemon *daemon, const struct sl_action *action);
void sl_swap_trim(struct sl_daemon *daemon, const struct sl_action *action);

/* The host memory for the client's order is there, or not available. */
void sl_swap_host_ready(struct sl_client *client, bool ok);
/* The client or its connection is gone. Never inside an action. */
void sl_swap_lost(struct sl_client *client);

/* Messages; may reject the peer. */
void sl_swap_on_swapped(struct sl_peer *peer, const struct sl_msg_swapped *msg);
void sl_swap_on_moved(struct sl_peer *peer, const struct sl_msg_moved *msg);
void sl_swap_on_want(struct sl_peer *peer, const struct sl_msg_want *msg);

/* Is there an order, or was there one until a moment before `at`? */
SL_MUST_CHECK bool sl_swap_is_moving(const struct sl_client *client, sl_ns at);

#endif
