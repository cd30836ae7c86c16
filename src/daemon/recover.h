/*
 * recover - from living objects to the journal, and back after a start
 */
#ifndef SL_DAEMON_RECOVER_H
#define SL_DAEMON_RECOVER_H

#include "daemon/daemon.h"

/* Writes the journal of what is now. Negative errno: it could not be written (logged). */
SL_MUST_CHECK int sl_recover_save(struct sl_daemon *daemon);
/*
 * Reads the journal of the daemon before: whoever of it still lives is taken in, its clients as
 * expected. A damaged journal is put aside with a log line. 0 or negative errno (err).
 */
SL_MUST_CHECK int sl_recover_load(struct sl_daemon *daemon, struct sl_error *err);

#endif
