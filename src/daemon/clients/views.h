/*
 * views - the GPU messages: what a client may see of its GPUs
 *
 * Clients of a workload whose numbers changed are told at once, then at most every 10 ms; the last
 * value always arrives. A client that reads slowly gets the newest value, not a queue.
 */
#ifndef SL_DAEMON_CLIENTS_VIEWS_H
#define SL_DAEMON_CLIENTS_VIEWS_H

#include "daemon/state/daemon.h"

struct sl_client;

#define SL_VIEWS_PAUSE_NS (10 * SL_MS)

/* This workload's numbers on this GPU changed, says the policy. O(1). */
void sl_views_changed(struct sl_daemon *daemon, uint64_t workload, uint32_t gpu);
/* One GPU message per ordinal, after WELCOME. */
void sl_views_send_all(struct sl_client *client);
/* One GPU message, changed or not: the answer to MEASURE. */
void sl_views_answer(struct sl_client *client, uint32_t ordinal);
/* The client's queue is empty again. */
void sl_views_catch_up(struct sl_client *client);
/* Sends what is ready; part of settling. */
void sl_views_settle(struct sl_daemon *daemon);
/* 0 or negative errno. */
SL_MUST_CHECK int sl_views_open(struct sl_daemon *daemon);
/* After the workloads. */
void sl_views_close(struct sl_daemon *daemon);

#endif
