/*
 * hostpool_ahead - host memory made before anybody has ordered it
 *
 * Where workloads share a GPU that is getting full, or one is to be moved when it is idle, its
 * clients are given files a while before: as long as half of the pool is left, one at a time,
 * looked for by a timer. They can then pin them while nobody waits. Loop's thread; nothing blocks.
 */
#ifndef SL_DAEMON_SWAP_HOSTPOOL_AHEAD_H
#define SL_DAEMON_SWAP_HOSTPOOL_AHEAD_H

#include "daemon/state/daemon.h"

/* How often it is looked who may need files soon, and at how many workloads at once. */
#define SL_HOSTPOOL_AHEAD_NS  (250 * SL_MS)
#define SL_HOSTPOOL_AHEAD_MAX 16

/* Makes the pool's timer, which sl_hostpool_close ends. 0 or negative errno. */
SL_MUST_CHECK int sl_hostpool_ahead_open(struct sl_daemon *daemon);
/* By the configuration: whether anything is to be made ahead at all. */
void sl_hostpool_ahead_set(struct sl_daemon *daemon, bool on);

#endif
