/*
 * recover - writes the living objects to the journal, and reads them back after a start
 */
#ifndef SL_DAEMON_LOOP_RECOVER_H
#define SL_DAEMON_LOOP_RECOVER_H

#include "daemon/state/daemon.h"

/* Copies the state of now to commit.journal. A few hundred nanoseconds per workload. 0 or
 * -ENOMEM. */
SL_MUST_CHECK int sl_recover_save(struct sl_daemon *daemon);
/*
 * Reads the earlier daemon's journal and takes over the workloads whose processes live; their
 * clients are expected to reconnect. Damage is logged. 0 or negative errno (err).
 */
SL_MUST_CHECK int sl_recover_load(struct sl_daemon *daemon, struct sl_error *err);

#endif
