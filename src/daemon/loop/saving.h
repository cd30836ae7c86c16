/*
 * saving - the journal is written, and the peers that wait for it are answered
 *
 * Changes that come together are written together; changes that come while the store writes go
 * into the next write (state/commit.h).
 */
#ifndef SL_DAEMON_LOOP_SAVING_H
#define SL_DAEMON_LOOP_SAVING_H

#include "daemon/state/daemon.h"

/* Makes the loop's source for it. 0 or negative errno. */
SL_MUST_CHECK int sl_saving_open(struct sl_daemon *daemon);
/* Part of settling: a change waits at most 5 ms for its write to begin, however busy the loop
 * is. */
void sl_saving_settle(struct sl_daemon *daemon);
/* The loop has ended: writes the rest, and waits for it. */
void sl_saving_finish(struct sl_daemon *daemon);
void sl_saving_close(struct sl_daemon *daemon);

#endif
