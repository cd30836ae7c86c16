/*
 * recover - writes the living objects to the journal, and reads them back after a start
 */
#ifndef SL_DAEMON_LOOP_RECOVER_H
#define SL_DAEMON_LOOP_RECOVER_H

#include "daemon/state/daemon.h"

/* The journal's path. */
void sl_recover_path(const struct sl_daemon *daemon, char *buf, size_t size);
/* Copies the state of now and has the journal's thread write it. A few hundred nanoseconds per
 * workload. Negative errno: without memory nothing is written. */
SL_MUST_CHECK int sl_recover_save(struct sl_daemon *daemon);
/*
 * Reads the earlier daemon's journal: takes in its workloads whose processes live, with their
 * clients as expected. A damaged journal is set aside and logged. 0 or negative errno (err).
 */
SL_MUST_CHECK int sl_recover_load(struct sl_daemon *daemon, struct sl_error *err);

#endif
