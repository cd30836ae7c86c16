/*
 * history - the daemon's memory of what was: one thread that writes it down, and one that answers
 * questions
 *
 * The scribe asks the loop once a second what it tells everybody (inside.h) and follows its events;
 * it alone writes data_dir/history.db. Questions of the command line are answered by a thread of
 * their own; other threads of the daemon ask by themselves. The loop only passes both on: it never
 * waits for either, nor for the disk.
 *
 * A damaged file is moved aside, and a new one begun. While it cannot be written (a full disk, a
 * lock) what was to be written is kept for a while, then dropped and counted. sl_history_health()
 * says what is wrong.
 */
#ifndef SL_DAEMON_HISTORY_HISTORY_H
#define SL_DAEMON_HISTORY_HISTORY_H

#include "daemon/history/query.h"
#include "daemon/history/sums.h"
#include "daemon/history/text.h"
#include "daemon/state/daemon.h"
#include "daemon/state/part.h"

struct sl_history;

/* Starts the threads, after the folder of data is known and the door inside is there. Nothing to do
 * where the configuration says so. 0 or negative errno; a file that cannot be used is no error, but
 * a trouble. */
SL_MUST_CHECK int sl_history_open(struct sl_daemon *daemon);
/* What was seen is written; waits for both threads. After the door has ended; no other thread may
 * be asking any more. */
void sl_history_close(struct sl_daemon *daemon);

/* --- the loop's ------------------------------------------------------------------------------- */

/* HISTORY came in. */
void sl_history_ask(struct sl_peer *peer, const struct sl_msg_history *history);
/* Nobody is there to be answered any more. */
void sl_history_peer_gone(struct sl_peer *peer);
/* How long things are kept was changed. */
void sl_history_configure(struct sl_daemon *daemon);

/* Its sums as of the last second, with a user more; NULL: there is no history, or it has none
 * yet. */
struct sl_history_sums *sl_history_latest(const struct sl_daemon *daemon);

/* How it is, and what was written so far; for `sluice doctor`. */
void sl_history_health(const struct sl_daemon *daemon, struct sl_part *part);

/* --- any thread's ----------------------------------------------------------------------------- */

/* Blocks: what is open is written first, then the file is read. The answer, of JSON or CSV, is to
 * be freed before the history is closed; NULL: err says why there is none. key: who asks, for what
 * is kept for one at a time; numbers of users are theirs. history may be NULL: there is none. */
SL_MUST_CHECK struct sl_history_text *sl_history_answer(struct sl_history *history,
	const struct sl_history_ask *ask, uint64_t key, struct sl_error *err);

#endif
