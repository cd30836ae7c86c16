/*
 * history - the daemon's record of the past: one thread writes it, another answers questions
 *
 * One thread, the scribe, asks the loop for its lists once a second (inside.h) and follows the
 * loop's events. It alone writes data_dir/history.db. A second thread answers the command line's
 * questions; other threads of the daemon read the file themselves. The loop only passes questions
 * and answers on: it never waits for either thread, nor for the disk.
 *
 * A damaged file is moved aside and a new one begun. While the file cannot be written (a full disk,
 * a lock), rows wait in memory; beyond a bound they are dropped and counted. sl_history_health()
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

/* Starts the threads, once data_dir is known and the inside door is open. Does nothing if the
 * configuration turns the history off. 0 or negative errno; an unusable file is not an error here:
 * sl_history_health() reports it. */
SL_MUST_CHECK int sl_history_open(struct sl_daemon *daemon);
/* Writes what was seen, and waits for both threads. Call it after the door has ended, when no other
 * thread asks any more. */
void sl_history_close(struct sl_daemon *daemon);

/* --- the loop's ------------------------------------------------------------------------------- */

/* A HISTORY message came in. */
void sl_history_ask(struct sl_peer *peer, const struct sl_msg_history *history);
/* The peer disconnected: drops its questions. */
void sl_history_peer_gone(struct sl_peer *peer);
/* The configured keeping times changed. */
void sl_history_configure(struct sl_daemon *daemon);

/* The sums as of the last second, with a reference for the caller; NULL: no history, or no sums
 * yet. */
struct sl_history_sums *sl_history_latest(const struct sl_daemon *daemon);

/* State of the history and what was written so far, for `sluice doctor`. */
void sl_history_health(const struct sl_daemon *daemon, struct sl_part *part);

/* --- any thread's ----------------------------------------------------------------------------- */

/* Blocks: the scribe writes open rows first, then the file is read. The answer (JSON or CSV) must
 * be freed before the history is closed; NULL: err says why there is none. key: the asker, whose
 * answers share a bound on memory; a user's key is its number. history may be NULL (turned off):
 * then err says so. */
SL_MUST_CHECK struct sl_history_text *sl_history_answer(struct sl_history *history,
	const struct sl_history_ask *ask, uint64_t key, struct sl_error *err);

#endif
