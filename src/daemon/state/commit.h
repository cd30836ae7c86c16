/*
 * commit - when the journal is written, and who waits for it
 *
 * Whatever changes what the journal says calls sl_daemon_commit_soon(); answers that promise
 * something the next daemon must know are held (sl_peer_hold) until it is in the file. Changes that
 * come together are written together, and those that come while the thread writes, with the next.
 */
#ifndef SL_DAEMON_STATE_COMMIT_H
#define SL_DAEMON_STATE_COMMIT_H

#include "daemon/state/daemon.h"

/* Makes the thread, and the loop's sources for it. 0 or negative errno. */
SL_MUST_CHECK int sl_commit_open(struct sl_daemon *daemon);
/* The number of the writing that has in it what is so now; sl_daemon_commit_soon() sees to it that
 * there is one. */
SL_MUST_CHECK uint64_t sl_commit_next(const struct sl_daemon *daemon);
/* It is over, well or not (then nobody is kept waiting for a disk that is full). */
SL_MUST_CHECK bool sl_commit_is_done(const struct sl_daemon *daemon, uint64_t number);
/* Part of settling: what waits for the journal waits at most 5 ms until its writing begins,
 * however busy the loop is. */
void sl_commit_settle(struct sl_daemon *daemon);
/* The loop has ended: writes what is still to be written, and waits for it. */
void sl_commit_finish(struct sl_daemon *daemon);
void sl_commit_close(struct sl_daemon *daemon);

#endif
