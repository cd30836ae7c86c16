/*
 * commit - what changes the journal asks for its writing
 *
 * Whatever changes what the journal says calls sl_commit_soon(); answers that promise something the
 * next daemon must know are held (sl_peer_hold) until it is in the file. loop/saving.c writes it.
 */
#ifndef SL_DAEMON_STATE_COMMIT_H
#define SL_DAEMON_STATE_COMMIT_H

#include "daemon/state/daemon.h"

/* The journal must be written before what is held leaves; soon, together with others. */
void sl_commit_soon(struct sl_daemon *daemon);
/* The number of the writing that has in it what is so now; sl_commit_soon() sees to it that there
 * is one. */
SL_MUST_CHECK uint64_t sl_commit_next(const struct sl_daemon *daemon);
/* It is over, well or not: no peer is kept waiting for a disk that is full. */
SL_MUST_CHECK bool sl_commit_is_done(const struct sl_daemon *daemon, uint64_t number);

#endif
