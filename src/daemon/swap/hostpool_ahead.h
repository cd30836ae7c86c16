/*
 * hostpool_ahead - makes host memory before an order needs it
 *
 * Clients get files ahead where workloads share a GPU that is getting full, or if their workload is
 * to be evicted when idle. They can then pin the files before an order waits for that. A timer
 * makes one file at a time, as long as half of the pool is left. Loop's thread; nothing blocks.
 */
#ifndef SL_DAEMON_SWAP_HOSTPOOL_AHEAD_H
#define SL_DAEMON_SWAP_HOSTPOOL_AHEAD_H

#include "daemon/state/daemon.h"

/* How often to look for clients that may need files soon, and how many workloads at a time. */
#define SL_HOSTPOOL_AHEAD_NS  (250 * SL_MS)
#define SL_HOSTPOOL_AHEAD_MAX 16

/* Makes the pool's timer, which sl_hostpool_close ends. 0 or negative errno. */
SL_MUST_CHECK int sl_hostpool_ahead_open(struct sl_daemon *daemon);
/* Turns making ahead on or off, by the configuration. */
void sl_hostpool_ahead_set(struct sl_daemon *daemon, bool on);

#endif
