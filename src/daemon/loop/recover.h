/*
 * recover - from living objects to the journal, and back after a start
 */
#ifndef SL_DAEMON_LOOP_RECOVER_H
#define SL_DAEMON_LOOP_RECOVER_H

#include "daemon/state/daemon.h"

/* The journal's file. */
void sl_recover_path(const struct sl_daemon *daemon, char *buf, size_t size);
/* Takes down what is now, and has the journal's thread write it. A few hundred nanoseconds per
 * workload. Negative errno: without memory nothing is written. */
SL_MUST_CHECK int sl_recover_save(struct sl_daemon *daemon);
/*
 * Reads the journal of the daemon before: whoever of it still lives is taken in, its clients as
 * expected. A damaged journal is put aside with a log line. 0 or negative errno (err).
 */
SL_MUST_CHECK int sl_recover_load(struct sl_daemon *daemon, struct sl_error *err);

#endif
