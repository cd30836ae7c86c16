/*
 * commit - asks for the journal to be written
 *
 * Code that changes what the journal says calls sl_commit_soon(). An answer that promises something
 * the next daemon must know is held (sl_peer_hold) until loop/saving.c has written the journal.
 */
#ifndef SL_DAEMON_STATE_COMMIT_H
#define SL_DAEMON_STATE_COMMIT_H

#include "daemon/state/daemon.h"

/* Has the journal written soon, with other changes; held output leaves afterwards. */
void sl_commit_soon(struct sl_daemon *daemon);
/* The number of the writing that includes the present state. sl_commit_soon() asks for it. */
SL_MUST_CHECK uint64_t sl_commit_next(const struct sl_daemon *daemon);
/* That writing is over, even if it failed: a full disk keeps no peer waiting. */
SL_MUST_CHECK bool sl_commit_is_done(const struct sl_daemon *daemon, uint64_t number);

#endif
