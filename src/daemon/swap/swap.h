/*
 * swap - the policy's orders to move memory, from the action to its one answer
 *
 * An EVICT waits until the client has host memory for it (hostpool.h), goes out, and is answered by
 * SWAPPED; a RESTORE goes out at once. Whatever becomes of the client, its connection or the host,
 * the policy hears DONE exactly once per order. What may be on the GPU counts as there: an eviction
 * that was cut short took nothing away, a restore that was brought all back, until the client's
 * next report tells. One order per client.
 */
#ifndef SL_DAEMON_SWAP_SWAP_H
#define SL_DAEMON_SWAP_SWAP_H

#include "daemon/link/peer.h"

/* The protocol that brought it. */
#define SL_SWAP_VERSION 4
/* After an order samples are not judged for so long: NVML's own figures lag. */
#define SL_SWAP_CALM_NS (100 * SL_MS)

/* Actions; clients that are unknown are ignored, the policy has forgotten them as well. */
void sl_swap_evict(struct sl_daemon *daemon, const struct sl_action *action);
void sl_swap_restore(struct sl_daemon *daemon, const struct sl_action *action);
void sl_swap_abort(struct sl_daemon *daemon, const struct sl_action *action);
void sl_swap_trim(struct sl_daemon *daemon, const struct sl_action *action);
/* Tells the policy what it could not be told inside an action; part of settling. */
void sl_swap_settle(struct sl_daemon *daemon);

/* The host memory that its order waited for is there, or cannot be had. */
void sl_swap_host_ready(struct sl_client *client, bool ok);
/* Its connection, or it, is gone. Never inside an action. */
void sl_swap_lost(struct sl_client *client);

/* Messages; may reject the peer. */
void sl_swap_on_swapped(struct sl_peer *peer, const struct sl_msg_swapped *msg);
void sl_swap_on_moved(struct sl_peer *peer, const struct sl_msg_moved *msg);
void sl_swap_on_want(struct sl_peer *peer, const struct sl_msg_want *msg);

/* Is there an order, or was there one until a moment before `at`? */
SL_MUST_CHECK bool sl_swap_is_moving(const struct sl_client *client, sl_ns at);

#endif
